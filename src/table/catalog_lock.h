/* catalog_lock: names held while their tables' pointers move.
 *
 * Orders the commits of one process, so that none works in vain and version hints follow their
 * swaps; correctness does not rest on it, the compare-and-swap decides. A set of keys is taken all
 * at once or not at all, so that no two takers can wait for each other. Waiting goes through the
 * seam. */
#ifndef LHBOX_TABLE_CATALOG_LOCK_H
#define LHBOX_TABLE_CATALOG_LOCK_H

#include "base/error.h"
#include "base/seam.h"

#include <pthread.h>

enum { CATALOG_LOCK_KEYS_MAX = 1024 };

struct catalog_lock {
    pthread_mutex_t mutex; /* around the array, never while waiting */
    u64 keys[CATALOG_LOCK_KEYS_MAX];
    size_t count;
};

void catalog_lock_open(struct catalog_lock *lock);
void catalog_lock_close(struct catalog_lock *lock);
/* Keys may repeat. BUSY after wait_us. */
MUST_USE err catalog_lock_take(struct catalog_lock *lock, const struct seam *seam, const u64 *keys,
                               size_t count, i64 wait_us, struct error *error);
void catalog_lock_release(struct catalog_lock *lock, const u64 *keys, size_t count);

#endif
