#include "table/catalog_lock.h"

#include "base/assert.h"

enum { PAUSE_FIRST_US = 500, PAUSE_MAX_US = 20000 };

static void mutex_do(int (*call)(pthread_mutex_t *), pthread_mutex_t *mutex)
{
    int result = call(mutex);
    assert(result == 0);
}

void catalog_lock_open(struct catalog_lock *lock)
{
    lock->count = 0;
    int result = pthread_mutex_init(&lock->mutex, NULL);
    assert(result == 0);
}

void catalog_lock_close(struct catalog_lock *lock)
{
    assert(lock->count == 0);
    mutex_do(pthread_mutex_destroy, &lock->mutex);
}

/* The index of the key from `from` on, or the count. */
static size_t key_find(const struct catalog_lock *lock, u64 key, size_t from)
{
    size_t index = from;
    while (index < lock->count && lock->keys[index] != key) {
        index++;
    }
    return index;
}

static bool take_now(struct catalog_lock *lock, const u64 *keys, size_t count)
{
    mutex_do(pthread_mutex_lock, &lock->mutex);
    bool free = lock->count + count <= CATALOG_LOCK_KEYS_MAX;
    for (size_t i = 0; i < count && free; i++) {
        free = key_find(lock, keys[i], 0) == lock->count;
    }
    if (free) {
        memcpy(lock->keys + lock->count, keys, count * sizeof(*keys));
        lock->count += count;
    }
    mutex_do(pthread_mutex_unlock, &lock->mutex);
    return free;
}

err catalog_lock_take(struct catalog_lock *lock, const struct seam *seam, const u64 *keys,
                      size_t count, i64 wait_us, struct error *error)
{
    assert(count <= CATALOG_LOCK_KEYS_MAX);
    i64 began = seam_monotonic_us(seam);
    i64 pause = PAUSE_FIRST_US;
    while (!take_now(lock, keys, count)) {
        if (seam_monotonic_us(seam) - began >= wait_us) {
            return error_set(error, BUSY, ERROR_COMMIT_CONFLICT,
                             "other commits to the table are under way");
        }
        seam_wait_us(seam, pause);
        pause = num_min_i64(pause * 2, PAUSE_MAX_US);
    }
    return OK;
}

void catalog_lock_release(struct catalog_lock *lock, const u64 *keys, size_t count)
{
    mutex_do(pthread_mutex_lock, &lock->mutex);
    for (size_t i = 0; i < count; i++) {
        size_t index = key_find(lock, keys[i], 0);
        assert(index < lock->count);
        lock->count -= 1;
        lock->keys[index] = lock->keys[lock->count];
    }
    mutex_do(pthread_mutex_unlock, &lock->mutex);
}
