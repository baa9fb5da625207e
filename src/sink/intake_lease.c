#include "sink/intake_lease.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/queue.h"

/* Given up a little before the ledger does (O11), by the node's monotonic clock, which only has to
 * run about as fast. */
#define LEASE_RENEW_US ((i64)10 * TIME_SECOND_US)
#define LEASE_RETRY_US ((i64)1 * TIME_SECOND_US)
#define LEASE_GONE_US  ((i64)28 * TIME_SECOND_US)

struct intake_lease {
    const struct intake_options *options;
    struct queue *wakes; /* what comes ends the pause, and so does closing it */
    atomic_bool closing;
    pthread_t thread;
    pthread_mutex_t lock;
    char node_id[ID_SHORT_SIZE];
    instant ledger_time;
    i64 running_us;
    i64 renewed_us; /* monotonic, before the renewal was asked for */
    bool held;
};

/* What the ledger gave. */
struct lease_term {
    char node_id[ID_SHORT_SIZE];
    instant ledger_time;
    i64 running_us;
    i64 asked_us; /* monotonic, before it was asked for */
};

static void lease_set(struct intake_lease *lease, const struct lease_term *term)
{
    (void)pthread_mutex_lock(&lease->lock);
    memcpy(lease->node_id, term->node_id, ID_SHORT_SIZE);
    lease->ledger_time = term->ledger_time;
    lease->running_us = term->running_us;
    lease->renewed_us = term->asked_us;
    lease->held = true;
    (void)pthread_mutex_unlock(&lease->lock);
}

MUST_USE static err lease_register(const struct intake_lease *lease, struct lease_term *out_term,
                                   struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)4 * KIB);
    struct lease_term term = {.asked_us = seam_monotonic_us(lease->options->seam)};
    str node_id = id_short_make(arena, lease->options->seam, "nod_");
    assert(node_id.size == ID_SHORT_SIZE);
    memcpy(term.node_id, node_id.data, ID_SHORT_SIZE);
    TRY(ledger_register_node(lease->options->db, node_id, STR("intake"), &term.ledger_time, error));
    TRY(ledger_running(lease->options->db, &term.running_us, error));
    *out_term = term;
    return OK;
}

/* What waits at the listener or is half read was sent at a time that nobody knows, perhaps longer
 * ago than ids are remembered: it goes before anything can begin under the new lease. But not
 * before there is one: a ledger that is down cuts nobody off, readers of the catalog least. */
MUST_USE static err lease_regain(struct intake_lease *lease, struct error *error)
{
    struct lease_term term = {.ledger_time = 0};
    (void)pthread_mutex_lock(&lease->lock);
    lease->held = false;
    (void)pthread_mutex_unlock(&lease->lock);
    TRY(lease_register(lease, &term, error));
    if (lease->options->lease_lost != NULL) {
        lease->options->lease_lost(lease->options->lease_lost_context);
    }
    lease_set(lease, &term);
    return OK;
}

/* Only this thread writes what the lock guards. */
MUST_USE static err lease_renew(struct intake_lease *lease, struct error *error)
{
    struct lease_term term = {.asked_us = seam_monotonic_us(lease->options->seam)};
    memcpy(term.node_id, lease->node_id, ID_SHORT_SIZE);
    err renewed = CONFLICT;
    if (lease->held && term.asked_us - lease->renewed_us <= LEASE_GONE_US) {
        renewed = ledger_renew_node(lease->options->db, (str){term.node_id, ID_SHORT_SIZE},
                                    &term.ledger_time, error);
    }
    if (renewed == CONFLICT) {
        error_clear(error);
        return lease_regain(lease, error);
    }
    if (renewed == OK) {
        TRY(ledger_running(lease->options->db, &term.running_us, error));
        lease_set(lease, &term);
    }
    return renewed;
}

static void *lease_thread(void *argument)
{
    struct intake_lease *lease = argument;
    i64 pause_us = LEASE_RENEW_US;
    for (;;) {
        void *wake = queue_pop(lease->wakes, pause_us);
        (void)wake;
        if (atomic_load(&lease->closing)) {
            return NULL;
        }
        struct error error = {0};
        err result = lease_renew(lease, &error);
        pause_us = result == OK ? LEASE_RENEW_US : LEASE_RETRY_US;
        if (result != OK) {
            log_error("node_lease_not_renewed", result, &error, STR(""));
        }
    }
}

err intake_lease_open(struct arena *arena, const struct intake_options *options,
                      struct intake_lease **out_lease, struct error *error)
{
    struct intake_lease *lease = arena_alloc(arena, sizeof(*lease));
    if (lease == NULL) {
        return error_memory(error);
    }
    lease->options = options;
    lease->wakes = queue_create(1);
    int made = pthread_mutex_init(&lease->lock, NULL);
    assert(made == 0);
    struct lease_term term = {.ledger_time = 0};
    err result = lease_register(lease, &term, error);
    if (result != OK) {
        queue_destroy(lease->wakes);
        return result;
    }
    lease_set(lease, &term);
    made = pthread_create(&lease->thread, NULL, lease_thread, lease);
    assert(made == 0);
    *out_lease = lease;
    return OK;
}

void intake_lease_close(struct intake_lease *lease)
{
    atomic_store(&lease->closing, true);
    queue_close(lease->wakes);
    (void)pthread_join(lease->thread, NULL);
    queue_destroy(lease->wakes);
    (void)pthread_mutex_destroy(&lease->lock);
}

void intake_lease_wake(struct intake_lease *lease)
{
    bool woken = queue_push(lease->wakes, lease);
    (void)woken; /* one wake is as good as many */
}

bool intake_lease_begin(struct intake_lease *lease, struct intake_send *send)
{
    i64 now_us = seam_monotonic_us(lease->options->seam);
    (void)pthread_mutex_lock(&lease->lock);
    bool held = lease->held && now_us - lease->renewed_us <= LEASE_GONE_US;
    memcpy(send->node_id, lease->node_id, sizeof(send->node_id));
    send->began_at = lease->ledger_time;
    send->began_running_us = lease->running_us;
    (void)pthread_mutex_unlock(&lease->lock);
    if (!held) {
        intake_lease_wake(lease);
    }
    return held;
}
