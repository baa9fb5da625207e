/* roller_private: what the roller's files share. Private to server/roller*.c.
 *
 * Threads: `tick` looks and decides, `workers` do. They talk through two bounded queues (pokes to
 * the tick, jobs to the workers); what both see of a sink is its entry, under the one lock. No
 * lock is held while the ledger, a store or a catalog is asked. */
#ifndef LHBOX_SERVER_ROLLER_PRIVATE_H
#define LHBOX_SERVER_ROLLER_PRIVATE_H

#include "base/map.h"
#include "base/queue.h"
#include "server/roller.h"
#include "sink/recover.h"

#include <pthread.h>
#include <stdatomic.h>

enum { ROLLER_WORKERS_MAX = 16, ROLLER_ID_MAX = 64, ROLLER_JOBS_MAX = 64 };
#define ROLLER_NEVER INT64_MAX

/* Of the memory of rolls, what is kept for the next one within a minute: about one roll's of
 * 64 MiB. */
#define ROLLER_WARM_BYTES ((size_t)128 * MIB)

enum roller_job { ROLLER_ROLL, ROLLER_RECOVER, ROLLER_HOUSEKEEP };

/* One sink that the process has heard of. Lives until the process ends. */
struct roller_entry {
    char id_text[ROLLER_ID_MAX];
    str id;
    const struct warehouse *warehouse; /* NULL: not looked at yet */
    bool touched;                      /* something changed: look as soon as the floor allows */
    bool busy;                         /* with a worker, in its queue, or being deleted */
    i32 awaited;                       /* by those who want it next: the tick leaves it to them */
    bool wants_sweep;                  /* it rolled since its rejects were swept */
    bool wants_answers;                /* waiters of it have to be looked at */
    i64 look_at;                       /* monotonic; ROLLER_NEVER: only when touched */
    i64 look_floor;                    /* monotonic: not before this, however touched */
    i64 swept_at;                      /* monotonic: hourly sweeps */
    enum roller_job job;
    enum policy_trigger trigger;
};

/* Under the lock. */
static inline bool roller_entry_free(const struct roller_entry *entry)
{
    return !entry->busy && entry->awaited == 0;
}

struct roller_waiter {
    bool used;
    struct roller_entry *entry;
    i64 upto_seq;
    i64 deadline; /* monotonic */
    roller_done done;
    void *context;
};

struct roller {
    struct roller_options options;
    struct arena *arena; /* entries; under the lock */
    pthread_mutex_t lock;
    pthread_cond_t freed; /* an entry is not busy any more */
    struct map *places;   /* id -> index of the entry */
    struct roller_entry **entries;
    size_t entry_count;
    struct roller_waiter *waiters;
    size_t waiter_count;
    pthread_rwlock_t deletes; /* read: whoever deletes from a store; written: nobody may */
    atomic_bool deletes_paused;
    atomic_bool stopping;
    atomic_bool poked; /* a poke lies in the queue */
    struct queue *pokes;
    struct queue *jobs;
    pthread_t tick;
    pthread_t workers[ROLLER_WORKERS_MAX];
    struct crew *crew; /* helps one worker at a time; NULL: none does */
    i32 worker_count;
};

i64 roller_now(const struct roller *roller);
void roller_poke(struct roller *roller);
/* Under the lock: the entry of this id, made when new; NULL when there is no room. */
struct roller_entry *roller_entry_of(struct roller *roller, str sink_id);
struct roll_env roller_env(struct roller *roller, const struct warehouse *warehouse);

/* ---- roller_tick ---- */

void *roller_tick_run(void *context);

/* ---- roller_work ---- */

void *roller_work_run(void *context);

/* ---- roller_wait ---- */

/* The tick: answers whoever has waited long enough or for what has come. Returns when the next
 * one's time is over. */
i64 roller_answer(struct roller *roller);
/* All that are left, unsettled. */
void roller_answer_all(struct roller *roller);

#endif
