#include "sink/intake_wait.h"

#include "base/assert.h"
#include "base/queue.h"

struct intake_waits {
    const struct intake_options *options;
    struct queue *wakes; /* what is in it says nothing but: look */
    pthread_t thread;
    pthread_mutex_t lock;
    struct intake_send *sends;
    i32 count;
    bool ending;  /* nothing waits any more */
    bool closing; /* the thread ends */
};

static void wake(struct intake_waits *waits)
{
    /* Full is as good: a wake is on its way. */
    bool pushed = queue_push(waits->wakes, waits);
    (void)pushed;
}

static bool waits_ending(struct intake_waits *waits)
{
    (void)pthread_mutex_lock(&waits->lock);
    bool ending = waits->ending;
    (void)pthread_mutex_unlock(&waits->lock);
    return ending;
}

static bool waits_closing(struct intake_waits *waits)
{
    (void)pthread_mutex_lock(&waits->lock);
    bool closing = waits->closing;
    (void)pthread_mutex_unlock(&waits->lock);
    return closing;
}

enum look { LOOK_NOW, LOOK_LAST };

/* True when the send was answered: its batch is final, or it has waited long enough. */
static bool wait_look(struct intake_waits *waits, struct intake_send *send, enum look look)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)MIB);
    struct ledger_batch batch = {0};
    err result = ledger_find_batch(waits->options->db, arena, send->sink->id, send->batch_id,
                                   &batch, NULL);
    bool final = result == OK && batch.state >= BATCH_COMMITTED;
    if (final) {
        intake_send_answer(send, &(struct intake_answer){.status = 200, .batch = &batch});
        return true;
    }
    if (look == LOOK_NOW) {
        if (result == OK && !send->watched && waits->options->watch != NULL) {
            send->watched = true;
            waits->options->watch(waits->options->watch_context, send->sink->id, batch.seq,
                                  send->wait_us);
        }
        return false;
    }
    if (result == OK) {
        intake_send_accepted(send, batch.state);
    } else {
        /* The batch was accepted, whatever the ledger says now. */
        intake_send_answer(send, &(struct intake_answer){.status = 202, .body = send->answer});
    }
    return true;
}

/* Takes those out that are to be looked at now, and finds the nearest deadline of the others. */
static struct intake_send *waits_take(struct intake_waits *waits, i64 now_us, i64 *out_next_us)
{
    struct intake_send *taken = NULL;
    (void)pthread_mutex_lock(&waits->lock);
    *out_next_us = INT64_MAX;
    struct intake_send **link = &waits->sends;
    while (*link != NULL) {
        struct intake_send *send = *link;
        bool over = waits->ending || send->deadline_us <= now_us;
        u64 commits = atomic_load(&send->sink->commits);
        if (over || send->look_again || commits != send->commits_seen) {
            /* Noted before the ledger is read: what becomes final later counts anew. */
            send->commits_seen = commits;
            send->look_again = false;
            *link = send->next;
            send->next = taken;
            taken = send;
            continue;
        }
        *out_next_us = num_min_i64(*out_next_us, send->deadline_us);
        link = &send->next;
    }
    (void)pthread_mutex_unlock(&waits->lock);
    return taken;
}

static void waits_put_back(struct intake_waits *waits, struct intake_send *send)
{
    (void)pthread_mutex_lock(&waits->lock);
    send->next = waits->sends;
    waits->sends = send;
    (void)pthread_mutex_unlock(&waits->lock);
}

/* Looks at what is due. Returns the time of the next deadline. */
static i64 waits_look(struct intake_waits *waits)
{
    i64 next_us = INT64_MAX;
    i64 now_us = seam_monotonic_us(waits->options->seam);
    bool ending = waits_ending(waits);
    struct intake_send *send = waits_take(waits, now_us, &next_us);
    while (send != NULL) {
        struct intake_send *following = send->next;
        i64 deadline_us = send->deadline_us;
        bool over = ending || deadline_us <= now_us;
        if (wait_look(waits, send, over ? LOOK_LAST : LOOK_NOW)) {
            (void)pthread_mutex_lock(&waits->lock);
            waits->count--;
            (void)pthread_mutex_unlock(&waits->lock);
        } else {
            waits_put_back(waits, send);
            next_us = num_min_i64(next_us, deadline_us);
        }
        send = following;
    }
    return next_us;
}

static void *waits_thread(void *argument)
{
    struct intake_waits *waits = argument;
    while (!waits_closing(waits)) {
        i64 next_us = waits_look(waits);
        i64 left_us = next_us == INT64_MAX
                          ? -1
                          : num_max_i64(1, next_us - seam_monotonic_us(waits->options->seam));
        void *token = queue_pop(waits->wakes, left_us);
        (void)token;
    }
    (void)waits_look(waits);
    return NULL;
}

err intake_waits_open(struct arena *arena, const struct intake_options *options,
                      struct intake_waits **out_waits, struct error *error)
{
    struct intake_waits *waits = arena_alloc(arena, sizeof(*waits));
    if (waits == NULL) {
        return error_memory(error);
    }
    waits->options = options;
    waits->wakes = queue_create(16);
    int made = pthread_mutex_init(&waits->lock, NULL) |
               pthread_create(&waits->thread, NULL, waits_thread, waits);
    assert(made == 0);
    *out_waits = waits;
    return OK;
}

void intake_waits_close(struct intake_waits *waits)
{
    (void)pthread_mutex_lock(&waits->lock);
    waits->ending = true;
    waits->closing = true;
    (void)pthread_mutex_unlock(&waits->lock);
    queue_close(waits->wakes);
    (void)pthread_join(waits->thread, NULL);
    assert(waits->count == 0);
    queue_destroy(waits->wakes);
    (void)pthread_mutex_destroy(&waits->lock);
}

void intake_wait_add(struct intake_waits *waits, struct intake_send *send)
{
    (void)pthread_mutex_lock(&waits->lock);
    bool room = waits->count < waits->options->waits_max && !waits->ending;
    if (room) {
        send->deadline_us = seam_monotonic_us(waits->options->seam) + send->wait_us;
        /* It may be final already: a first look in any case. */
        send->look_again = true;
        send->next = waits->sends;
        waits->sends = send;
        waits->count++;
    }
    (void)pthread_mutex_unlock(&waits->lock);
    if (room) {
        wake(waits);
    } else {
        intake_send_answer(send, &(struct intake_answer){.status = 202, .body = send->answer});
    }
}

void intake_waits_end(struct intake_waits *waits)
{
    (void)pthread_mutex_lock(&waits->lock);
    waits->ending = true;
    (void)pthread_mutex_unlock(&waits->lock);
    /* The next look ends them all, those that are being looked at now too. */
    wake(waits);
}

void intake_waits_notify(struct intake_waits *waits, struct intake_sink *sink)
{
    atomic_fetch_add(&sink->commits, 1);
    wake(waits);
}
