#include "base/log.h"
#include "server/roller_private.h"

/* Waiters: told by the tick alone, so that nobody is told twice. */

#define ANSWER_AGAIN_US TIME_SECOND_US /* when the ledger could not be asked */

err roller_wait(struct roller *roller, str sink_id, i64 upto_seq, i64 timeout_us, roller_done done,
                void *context, struct error *error)
{
    struct roller_waiter waiter = {
        .used = true,
        .upto_seq = upto_seq,
        .deadline = roller_now(roller) + timeout_us,
        .done = done,
        .context = context,
    };
    pthread_mutex_lock(&roller->lock);
    bool room = roller->waiter_count < ROLLER_WAITERS_MAX && !atomic_load(&roller->stopping);
    waiter.entry = room ? roller_entry_of(roller, sink_id) : NULL;
    if (waiter.entry != NULL) {
        waiter.entry->wants_answers = true;
        roller->waiters[roller->waiter_count++] = waiter;
    }
    pthread_mutex_unlock(&roller->lock);
    if (waiter.entry == NULL) {
        return error_set(error, BUSY, ERROR_OVERLOADED, "too many requests wait for rolls");
    }
    roller_poke(roller);
    return OK;
}

/* Takes one waiter out that is over or whose sink wants a look; false when there is none. */
static bool take_waiter(struct roller *roller, i64 now, struct roller_waiter *out_waiter)
{
    bool taken = false;
    pthread_mutex_lock(&roller->lock);
    for (size_t i = 0; i < roller->waiter_count && !taken; i++) {
        struct roller_waiter *waiter = &roller->waiters[i];
        if (waiter->deadline <= now || waiter->used) {
            *out_waiter = *waiter;
            *waiter = roller->waiters[--roller->waiter_count];
            taken = true;
        }
    }
    pthread_mutex_unlock(&roller->lock);
    return taken;
}

/* Marks those to look at by `used`, once per call of roller_answer. */
static void mark_waiters(struct roller *roller)
{
    pthread_mutex_lock(&roller->lock);
    for (size_t i = 0; i < roller->waiter_count; i++) {
        roller->waiters[i].used = roller->waiters[i].entry->wants_answers;
    }
    for (size_t i = 0; i < roller->waiter_count; i++) {
        roller->waiters[i].entry->wants_answers = false;
    }
    pthread_mutex_unlock(&roller->lock);
}

static void put_back(struct roller *roller, struct roller_waiter waiter, bool again)
{
    pthread_mutex_lock(&roller->lock);
    waiter.used = false;
    waiter.entry->wants_answers = waiter.entry->wants_answers || again;
    /* It was taken out a moment ago; who came meanwhile may have taken its room. */
    bool room = roller->waiter_count < ROLLER_WAITERS_MAX;
    if (room) {
        roller->waiters[roller->waiter_count++] = waiter;
    }
    pthread_mutex_unlock(&roller->lock);
    if (!room) {
        waiter.done(waiter.context, false);
    }
}

static i64 next_deadline(struct roller *roller)
{
    i64 next = ROLLER_NEVER;
    pthread_mutex_lock(&roller->lock);
    for (size_t i = 0; i < roller->waiter_count; i++) {
        next = num_min_i64(next, roller->waiters[i].deadline);
    }
    pthread_mutex_unlock(&roller->lock);
    return next;
}

i64 roller_answer(struct roller *roller)
{
    bool again = false;
    struct roller_waiter waiter = {0};
    mark_waiters(roller);
    while (take_waiter(roller, roller_now(roller), &waiter)) {
        i64 waiting = 0;
        struct error told = {0};
        err counted = ledger_count_waiting(roller->options.db, waiter.entry->id, waiter.upto_seq,
                                           &waiting, &told);
        if (counted == OK && waiting == 0) {
            waiter.done(waiter.context, true);
        } else if (waiter.deadline <= roller_now(roller)) {
            waiter.done(waiter.context, false);
        } else {
            again = again || counted != OK;
            put_back(roller, waiter, counted != OK);
        }
    }
    i64 next = next_deadline(roller);
    return again ? num_min_i64(next, roller_now(roller) + ANSWER_AGAIN_US) : next;
}

void roller_answer_all(struct roller *roller)
{
    for (size_t i = 0; i < roller->waiter_count; i++) {
        roller->waiters[i].done(roller->waiters[i].context, false);
    }
    roller->waiter_count = 0;
}

/* ---- blocking ---- */

struct blocked {
    pthread_mutex_t lock;
    pthread_cond_t told;
    bool done;
    bool settled;
};

static void unblock(void *context, bool settled)
{
    struct blocked *blocked = context;
    pthread_mutex_lock(&blocked->lock);
    blocked->done = true;
    blocked->settled = settled;
    pthread_cond_signal(&blocked->told);
    pthread_mutex_unlock(&blocked->lock);
}

err roller_await(struct roller *roller, str sink_id, i64 upto_seq, i64 timeout_us,
                 bool *out_settled, struct error *error)
{
    struct blocked blocked = {.done = false};
    pthread_mutex_init(&blocked.lock, NULL);
    pthread_cond_init(&blocked.told, NULL);
    err waited = roller_wait(roller, sink_id, upto_seq, timeout_us, unblock, &blocked, error);
    if (waited == OK) {
        pthread_mutex_lock(&blocked.lock);
        while (!blocked.done) {
            pthread_cond_wait(&blocked.told, &blocked.lock);
        }
        pthread_mutex_unlock(&blocked.lock);
        *out_settled = blocked.settled;
    }
    pthread_cond_destroy(&blocked.told);
    pthread_mutex_destroy(&blocked.lock);
    return waited;
}
