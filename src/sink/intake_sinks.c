#include "sink/intake_sinks.h"

#include "base/assert.h"
#include "base/id.h"
#include "base/map.h"
#include "sink/intake_index.h"

enum {
    PAGE = 500,
    ADDRESSES = 1024,
    TOMBSTONE_DAYS = 30, /* a deleted sink's key is told so for as long */
};
#define SINKS_BYTES_MAX ((size_t)1024 * MIB)
#define PAGE_BYTES_MAX  ((size_t)64 * MIB)

/* Refused keys of one address in the minute at hand. Addresses may share a place: then one counts
 * for the other, and a good key is never refused for it. */
struct address {
    u64 hash;
    i64 minute;
    i32 failures;
};

struct intake_sinks {
    const struct intake_options *options;
    struct arena *arena; /* guarded by the lock */
    pthread_rwlock_t lock;
    struct map *by_id;
    struct sha256 nobody; /* compared with where no sink is found */
    pthread_mutex_t address_lock;
    struct address addresses[ADDRESSES];
};

/* ---- reading ---- */

/* With the lock held for writing. */
MUST_USE static err sink_put(struct intake_sinks *sinks, const struct ledger_sink *from,
                             struct error *error)
{
    u64 *place = map_get(sinks->by_id, from->id);
    struct intake_sink *sink = NULL;
    if (place == NULL) {
        bool is_new = false;
        sink = arena_alloc(sinks->arena, sizeof(*sink));
        struct intake_send *driver = arena_alloc(sinks->arena, sizeof(*driver));
        str id = str_copy(sinks->arena, from->id);
        place = id.data != NULL && sink != NULL && driver != NULL
                    ? map_put(sinks->by_id, id, &is_new)
                    : NULL;
        if (place == NULL) {
            return error_memory(error);
        }
        sink->id = id;
        sink->hash = intake_index_sink(id);
        *driver = (struct intake_send){.entry = INTAKE_ENTRY_DRIVE, .sink = sink};
        sink->driver = driver;
        int made = pthread_mutex_init(&sink->lock, NULL);
        assert(made == 0);
        *place = (u64)(uintptr_t)sink;
    }
    sink = (struct intake_sink *)(uintptr_t)*place; // NOLINT(performance-no-int-to-ptr)
    sink->key_hash = from->send_key_sha256;
    sink->state = from->state;
    sink->id_optional = str_equal(from->idempotency, STR("optional"));
    sink->warehouse = warehouse_get(sinks->options->warehouses, from->warehouse);
    return OK;
}

static bool sink_forgotten(const struct intake_sinks *sinks, const struct ledger_sink *sink)
{
    instant now = seam_now(sinks->options->seam);
    return sink->state == SINK_DELETED && now - sink->deleted_at > TOMBSTONE_DAYS * TIME_DAY_US;
}

MUST_USE static err sinks_read(struct intake_sinks *sinks, struct error *error)
{
    AUTO_ARENA struct arena *page = arena_create(PAGE_BYTES_MAX);
    char after[ID_SHORT_SIZE * 4] = {0};
    size_t after_size = 0;
    for (;;) {
        struct ledger_sink *found = NULL;
        size_t count = 0;
        arena_reset(page);
        TRY(ledger_list_sinks(sinks->options->db, page, STR(""), STR(""), true,
                              (str){after, after_size}, PAGE, &found, &count, error));
        for (size_t i = 0; i < count; i++) {
            if (!sink_forgotten(sinks, &found[i])) {
                TRY(sink_put(sinks, &found[i], error));
            }
        }
        if (count < PAGE) {
            return OK;
        }
        after_size = found[count - 1].id.size;
        assert(after_size <= sizeof(after));
        memcpy(after, found[count - 1].id.data, after_size);
    }
}

err intake_sinks_open(struct arena *arena, const struct intake_options *options,
                      struct intake_sinks **out_sinks, struct error *error)
{
    struct intake_sinks *sinks = arena_alloc(arena, sizeof(*sinks));
    if (sinks == NULL) {
        return error_memory(error);
    }
    sinks->options = options;
    sinks->arena = arena_create(SINKS_BYTES_MAX);
    sinks->by_id = map_create(sinks->arena, 64);
    seam_random(options->seam, sinks->nobody.bytes, sizeof(sinks->nobody.bytes));
    int made = pthread_rwlock_init(&sinks->lock, NULL) |
               pthread_mutex_init(&sinks->address_lock, NULL);
    assert(made == 0);
    err result = sinks->by_id != NULL ? sinks_read(sinks, error) : error_memory(error);
    if (result != OK) {
        intake_sinks_close(sinks);
        return result;
    }
    *out_sinks = sinks;
    return OK;
}

void intake_sinks_close(struct intake_sinks *sinks)
{
    arena_destroy(sinks->arena);
    (void)pthread_rwlock_destroy(&sinks->lock);
    (void)pthread_mutex_destroy(&sinks->address_lock);
}

err intake_sinks_refresh(struct intake_sinks *sinks, str sink_id, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)MIB);
    struct ledger_sink sink = {0};
    TRY(ledger_find_sink(sinks->options->db, arena, STR(""), sink_id, &sink, error));
    (void)pthread_rwlock_wrlock(&sinks->lock);
    err result = sink_put(sinks, &sink, error);
    (void)pthread_rwlock_unlock(&sinks->lock);
    return result;
}

struct intake_sink *intake_sinks_find(struct intake_sinks *sinks, str sink_id)
{
    (void)pthread_rwlock_rdlock(&sinks->lock);
    const u64 *place = map_get(sinks->by_id, sink_id);
    struct intake_sink *sink = NULL;
    if (place != NULL) {
        sink = (struct intake_sink *)(uintptr_t)*place; // NOLINT(performance-no-int-to-ptr)
    }
    (void)pthread_rwlock_unlock(&sinks->lock);
    return sink;
}

struct intake_sink_view intake_sinks_view(struct intake_sinks *sinks,
                                          const struct intake_sink *sink)
{
    (void)pthread_rwlock_rdlock(&sinks->lock);
    struct intake_sink_view view = {.id_optional = sink->id_optional, .warehouse = sink->warehouse};
    (void)pthread_rwlock_unlock(&sinks->lock);
    return view;
}

/* ---- keys ---- */

/* Counts the failure; past the limit the address is told to slow down. */
MUST_USE static err key_refused(struct intake_sinks *sinks, str peer, struct error *error)
{
    u64 hash = str_hash(peer);
    i64 minute = seam_monotonic_us(sinks->options->seam) / (60 * TIME_SECOND_US);
    (void)pthread_mutex_lock(&sinks->address_lock);
    struct address *address = &sinks->addresses[hash % ADDRESSES];
    if (address->hash != hash || address->minute != minute) {
        *address = (struct address){.hash = hash, .minute = minute};
    }
    bool often = address->failures >= sinks->options->failures_per_minute_max;
    address->failures += often ? 0 : 1;
    (void)pthread_mutex_unlock(&sinks->address_lock);
    if (often) {
        return error_set(error, BUSY, ERROR_RATE_LIMITED,
                         "too many refused keys from this address");
    }
    err result = error_set(error, DENIED, ERROR_BAD_KEY, "this is not the send key of this sink");
    error_hint(error,
               "send `Authorization: Bearer al_send_…` with the key shown when the sink was made");
    return result;
}

static struct sha256 key_hash(str authorization, str key, struct intake_known_key *known)
{
    if (known != NULL && known->size > 0 && known->size == authorization.size &&
        crypto_equal(known->header, authorization.data, authorization.size)) {
        return known->hash;
    }
    struct sha256 hash = crypto_sha256(key);
    if (known != NULL && authorization.size <= sizeof(known->header)) {
        known->size = (u32)authorization.size;
        if (authorization.size > 0) {
            memcpy(known->header, authorization.data, authorization.size);
        }
        known->hash = hash;
    }
    return hash;
}

err intake_sinks_authenticate(struct intake_sinks *sinks, str sink_id, str authorization,
                              struct intake_known_key *known, str peer,
                              struct intake_sink **out_sink, struct error *error)
{
    str key = id_bearer(authorization);
    if (str_starts(key, STR("al_key_")) || str_starts(key, STR("al_tok_"))) {
        return error_set(error, DENIED, ERROR_SEND_ONLY,
                         "the send route takes the sink's send key and no other");
    }
    struct sha256 given = key_hash(authorization, key, known);
    struct sha256 wanted = sinks->nobody;
    enum sink_state state = SINK_ACTIVE;
    struct intake_sink *sink = intake_sinks_find(sinks, sink_id);
    if (sink != NULL) {
        (void)pthread_rwlock_rdlock(&sinks->lock);
        wanted = sink->key_hash;
        state = sink->state;
        (void)pthread_rwlock_unlock(&sinks->lock);
    }
    bool same = crypto_equal(given.bytes, wanted.bytes, sizeof(given.bytes));
    crypto_wipe(&given, sizeof(given));
    if (!same || sink == NULL) {
        return key_refused(sinks, peer, error);
    }
    if (state == SINK_DELETING || state == SINK_DELETED) {
        return error_set(error, DENIED, ERROR_SINK_DELETED, "the sink %.*s was deleted",
                         STR_ARG(sink->id));
    }
    *out_sink = sink;
    return OK;
}
