#include "sink/intake_quota.h"

#include "base/assert.h"
#include "base/log.h"

enum { PAGE = 1000 };
#define PAGE_BYTES_MAX ((size_t)16 * MIB)
/* A full bucket is measured again after this many times what measuring it took, so that refusing
 * costs a bounded share of the machine and room that a roll made is seen soon. */
#define REST_TIMES 10

struct bucket {
    const struct warehouse *warehouse;
    i64 used;
    i64 measured_us; /* monotonic */
    i64 took_us;     /* to measure it */
};

struct intake_quota {
    const struct intake_options *options;
    pthread_mutex_t lock;
    struct bucket *buckets;
    size_t count;
};

err intake_quota_open(struct arena *arena, const struct intake_options *options,
                      struct intake_quota **out_quota, struct error *error)
{
    struct intake_quota *quota = arena_alloc(arena, sizeof(*quota));
    struct bucket *buckets = arena_array(arena, WAREHOUSES_MAX, sizeof(*buckets));
    if (quota == NULL || buckets == NULL) {
        return error_memory(error);
    }
    quota->options = options;
    quota->buckets = buckets;
    int made = pthread_mutex_init(&quota->lock, NULL);
    assert(made == 0);
    *out_quota = quota;
    return OK;
}

void intake_quota_close(struct intake_quota *quota)
{
    (void)pthread_mutex_destroy(&quota->lock);
}

MUST_USE static err bucket_measure(const struct warehouse *warehouse, i64 *out_bytes,
                                   struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create(PAGE_BYTES_MAX);
    char after[STORE_KEY_MAX];
    size_t after_size = 0;
    i64 bytes = 0;
    struct store_list list = {.more = true};
    while (list.more) {
        arena_reset(arena);
        TRY(store_list(&warehouse->files, arena, STR(""), (str){after, after_size}, PAGE, &list,
                       error));
        for (size_t i = 0; i < list.count; i++) {
            bytes += list.objects[i].size;
        }
        if (list.more) {
            str last = list.objects[list.count - 1].key;
            after_size = last.size;
            memcpy(after, last.data, last.size);
        }
    }
    *out_bytes = bytes;
    return OK;
}

static void bucket_look(const struct intake_quota *quota, struct bucket *bucket)
{
    struct error error = {0};
    i64 began_us = seam_monotonic_us(quota->options->seam);
    err result = bucket_measure(bucket->warehouse, &bucket->used, &error);
    if (result != OK) {
        log_error("bucket_not_measured", result, &error, bucket->warehouse->name);
    }
    bucket->measured_us = seam_monotonic_us(quota->options->seam);
    bucket->took_us = bucket->measured_us - began_us;
}

/* NULL: not measured yet. */
static struct bucket *bucket_find(struct intake_quota *quota, const struct warehouse *warehouse)
{
    for (size_t i = 0; i < quota->count; i++) {
        if (quota->buckets[i].warehouse == warehouse) {
            return &quota->buckets[i];
        }
    }
    return NULL;
}

static struct bucket *bucket_of(struct intake_quota *quota, const struct warehouse *warehouse)
{
    struct bucket *known = bucket_find(quota, warehouse);
    if (known != NULL) {
        return known;
    }
    assert(quota->count < WAREHOUSES_MAX);
    struct bucket *bucket = &quota->buckets[quota->count++];
    bucket->warehouse = warehouse;
    bucket_look(quota, bucket);
    return bucket;
}

bool intake_quota_try(struct intake_quota *quota, const struct warehouse *warehouse, i64 bytes)
{
    i64 most = quota != NULL ? quota->options->bucket_bytes_max : 0;
    if (most == 0 || warehouse == NULL) {
        return true;
    }
    if (pthread_mutex_trylock(&quota->lock) != 0) {
        return false; /* somebody measures */
    }
    struct bucket *bucket = bucket_find(quota, warehouse);
    bool room = bucket != NULL && bucket->used + bytes <= most;
    if (room) {
        bucket->used += bytes;
    }
    (void)pthread_mutex_unlock(&quota->lock);
    return room;
}

bool intake_quota_take(struct intake_quota *quota, const struct warehouse *warehouse, i64 bytes)
{
    i64 most = quota->options->bucket_bytes_max;
    if (most == 0 || warehouse == NULL) {
        return true;
    }
    (void)pthread_mutex_lock(&quota->lock);
    struct bucket *bucket = bucket_of(quota, warehouse);
    i64 now_us = seam_monotonic_us(quota->options->seam);
    if (bucket->used + bytes > most &&
        now_us - bucket->measured_us >= REST_TIMES * bucket->took_us) {
        bucket_look(quota, bucket);
    }
    bool room = bucket->used + bytes <= most;
    bucket->used += room ? bytes : 0;
    (void)pthread_mutex_unlock(&quota->lock);
    return room;
}
