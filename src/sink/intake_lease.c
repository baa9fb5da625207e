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
    struct queue *stop; /* nothing comes; closing it ends the pause */
    atomic_bool closing;
    pthread_t thread;
    pthread_mutex_t lock;
    char node_id[ID_SHORT_SIZE];
    instant ledger_time;
    i64 renewed_us; /* monotonic, before the renewal was asked for */
};

static void node_id_make(struct intake_lease *lease)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)4 * KIB);
    str id = id_short_make(arena, lease->options->seam, "nod_");
    assert(id.size == ID_SHORT_SIZE);
    memcpy(lease->node_id, id.data, ID_SHORT_SIZE);
}

MUST_USE static err lease_renew(struct intake_lease *lease, struct error *error)
{
    i64 asked_us = seam_monotonic_us(lease->options->seam);
    instant ledger_time = 0;
    char node_id[ID_SHORT_SIZE];
    (void)pthread_mutex_lock(&lease->lock);
    if (asked_us - lease->renewed_us > LEASE_GONE_US) {
        node_id_make(lease);
    }
    memcpy(node_id, lease->node_id, sizeof(node_id));
    (void)pthread_mutex_unlock(&lease->lock);
    TRY(ledger_renew_node(lease->options->db, (str){node_id, sizeof(node_id)}, STR("intake"),
                          &ledger_time, error));
    (void)pthread_mutex_lock(&lease->lock);
    lease->ledger_time = ledger_time;
    lease->renewed_us = asked_us;
    (void)pthread_mutex_unlock(&lease->lock);
    return OK;
}

static void *lease_thread(void *argument)
{
    struct intake_lease *lease = argument;
    i64 pause_us = LEASE_RENEW_US;
    for (;;) {
        void *nothing = queue_pop(lease->stop, pause_us);
        assert(nothing == NULL);
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
    lease->renewed_us = seam_monotonic_us(options->seam);
    lease->stop = queue_create(1);
    int made = pthread_mutex_init(&lease->lock, NULL);
    assert(made == 0);
    node_id_make(lease);
    err result = lease_renew(lease, error);
    if (result != OK) {
        queue_destroy(lease->stop);
        return result;
    }
    made = pthread_create(&lease->thread, NULL, lease_thread, lease);
    assert(made == 0);
    *out_lease = lease;
    return OK;
}

void intake_lease_close(struct intake_lease *lease)
{
    atomic_store(&lease->closing, true);
    queue_close(lease->stop);
    (void)pthread_join(lease->thread, NULL);
    queue_destroy(lease->stop);
    (void)pthread_mutex_destroy(&lease->lock);
}

bool intake_lease_begin(struct intake_lease *lease, struct intake_send *send)
{
    i64 now_us = seam_monotonic_us(lease->options->seam);
    (void)pthread_mutex_lock(&lease->lock);
    bool held = now_us - lease->renewed_us <= LEASE_GONE_US;
    memcpy(send->node_id, lease->node_id, sizeof(send->node_id));
    send->began_at = lease->ledger_time;
    (void)pthread_mutex_unlock(&lease->lock);
    return held;
}
