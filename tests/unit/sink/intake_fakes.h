/* intake_fakes: a store whose PUTs can be held back and made to fail, a database that loses
 * answers, and a clock that can be moved. One per test program. */
#ifndef LHBOX_TESTS_INTAKE_FAKES_H
#define LHBOX_TESTS_INTAKE_FAKES_H

#include "base/seam.h"
#include "io/db.h"
#include "io/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- a store behind a gate ---- */

struct gate {
    struct store inner;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed;
    int waiting; /* PUTs that stand before the gate */
    err fail;    /* what PUTs answer in place of doing anything */
    enum error_code code;
};

static inline err gate_put(void *self, str key, const str *pieces, size_t count,
                           const struct store_meta *meta, struct error *error)
{
    struct gate *gate = self;
    (void)pthread_mutex_lock(&gate->lock);
    gate->waiting++;
    (void)pthread_cond_broadcast(&gate->changed);
    while (gate->closed) {
        (void)pthread_cond_wait(&gate->changed, &gate->lock);
    }
    gate->waiting--;
    err fail = gate->fail;
    (void)pthread_mutex_unlock(&gate->lock);
    if (fail != OK) {
        return error_set(error, fail, gate->code, "as asked");
    }
    return store_put_pieces(&gate->inner, key, pieces, count, meta, error);
}

static inline err gate_get(void *self, struct arena *arena, str key, struct store_object *out,
                           struct error *error)
{
    return store_get(&((struct gate *)self)->inner, arena, key, out, error);
}

static inline err gate_head(void *self, struct arena *arena, str key, struct store_object *out,
                            struct error *error)
{
    return store_head(&((struct gate *)self)->inner, arena, key, out, error);
}

static inline err gate_remove(void *self, str key, struct error *error)
{
    return store_remove(&((struct gate *)self)->inner, key, error);
}

static inline err gate_list(void *self, struct arena *arena, str prefix, str after, size_t limit,
                            struct store_list *out, struct error *error)
{
    return store_list(&((struct gate *)self)->inner, arena, prefix, after, limit, out, error);
}

static inline err gate_sync(void *self, struct error *error)
{
    return store_sync(&((struct gate *)self)->inner, error);
}

static inline void gate_close_store(void *self)
{
    store_close(&((struct gate *)self)->inner);
}

static const struct store_ops gate_ops = {
    .put = gate_put,
    .get = gate_get,
    .head = gate_head,
    .remove = gate_remove,
    .list = gate_list,
    .sync = gate_sync,
    .close = gate_close_store,
};

static inline void gate_set(struct gate *gate, bool closed)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->closed = closed;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->lock);
}

/* Until so many PUTs stand before the gate. */
static inline void gate_await(struct gate *gate, int count)
{
    (void)pthread_mutex_lock(&gate->lock);
    while (gate->waiting < count) {
        (void)pthread_cond_wait(&gate->changed, &gate->lock);
    }
    (void)pthread_mutex_unlock(&gate->lock);
}

/* ---- a database that loses answers ---- */

enum loss { LOSE_NOTHING, LOSE_THE_ANSWER, LOSE_THE_WORK };

struct lossy {
    struct db inner;
    atomic_int loss; /* of the next transaction */
    atomic_bool down;
    atomic_int refused; /* transactions, as it was down */
    atomic_int reads;
};

static inline err lossy_transact(void *self, db_body body, void *context, struct error *error)
{
    struct lossy *lossy = self;
    if (atomic_load(&lossy->down)) {
        atomic_fetch_add(&lossy->refused, 1);
        return error_set(error, IO, ERROR_LEDGER_DOWN, "the ledger is down");
    }
    int loss = atomic_exchange(&lossy->loss, LOSE_NOTHING);
    if (loss != LOSE_THE_WORK) {
        err result = db_transact(&lossy->inner, body, context, error);
        if (result != OK || loss == LOSE_NOTHING) {
            return result;
        }
    }
    return error_set(error, UNKNOWN, ERROR_LEDGER_DOWN, "the answer was lost");
}

static inline err lossy_read(void *self, db_body body, void *context, struct error *error)
{
    struct lossy *lossy = self;
    atomic_fetch_add(&lossy->reads, 1);
    return db_read(&lossy->inner, body, context, error);
}

static inline err lossy_backup(void *self, str path, struct error *error)
{
    return db_backup(&((struct lossy *)self)->inner, path, error);
}

static inline void lossy_close(void *self)
{
    db_close(&((struct lossy *)self)->inner);
}

static const struct db_ops lossy_ops = {
    .transact = lossy_transact,
    .read = lossy_read,
    .backup = lossy_backup,
    .close = lossy_close,
};

/* ---- a clock that can be moved ---- */

static _Atomic i64 clock_ahead_us;

static inline i64 moved_monotonic_us(void *self)
{
    (void)self;
    return seam_monotonic_us(seam_system()) + atomic_load(&clock_ahead_us);
}

static inline instant moved_now(void *self)
{
    (void)self;
    return seam_now(seam_system()) + atomic_load(&clock_ahead_us);
}

#endif
