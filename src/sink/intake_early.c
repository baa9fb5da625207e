#include "sink/intake_early.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/map.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SINKS_EXPECTED = 64, SINKS_BYTES_MAX = 32 * MIB };
#define LOOK_APART_US ((i64)200)

struct intake_early_sink {
    str id;
    bool closed;
    i64 batches; /* that may still be answered */
    i64 bytes;
    size_t kept; /* groups that have no rows and get none from this process */
};

struct intake_early {
    struct arena *arena;
    pthread_mutex_t lock;
    struct map *sinks;
    bool closed; /* those, too, that are not known yet */
    struct intake_early_group *open;
    u64 tickets;
    atomic_int awaiting; /* callers of intake_early_await */
};

struct intake_early *intake_early_create(void)
{
    struct arena *arena = arena_create(SINKS_BYTES_MAX);
    struct intake_early *early = arena_alloc(arena, sizeof(*early));
    assert(early != NULL);
    *early = (struct intake_early){.arena = arena, .sinks = map_create(arena, SINKS_EXPECTED)};
    int made = pthread_mutex_init(&early->lock, NULL);
    assert(made == 0);
    assert(early->sinks != NULL);
    return early;
}

void intake_early_destroy(struct intake_early *early)
{
    if (early == NULL) {
        return;
    }
    assert(early->open == NULL);
    (void)pthread_mutex_destroy(&early->lock);
    arena_destroy(early->arena);
}

/* With the lock. */
static struct intake_early_sink *find(struct intake_early *early, str sink_id)
{
    const u64 *known = map_get(early->sinks, sink_id);
    if (known != NULL) {
        return (struct intake_early_sink *)(uintptr_t)*known;
    }
    bool is_new = false;
    struct intake_early_sink *sink = arena_alloc(early->arena, sizeof(*sink));
    str id = str_copy(early->arena, sink_id);
    u64 *place = sink == NULL || id.data == NULL ? NULL : map_put(early->sinks, id, &is_new);
    if (place == NULL) {
        return NULL;
    }
    *sink = (struct intake_early_sink){.id = id, .closed = early->closed};
    *place = (u64)(uintptr_t)sink;
    return sink;
}

struct intake_early_sink *intake_early_sink_of(struct intake_early *early, str sink_id)
{
    (void)pthread_mutex_lock(&early->lock);
    struct intake_early_sink *sink = find(early, sink_id);
    (void)pthread_mutex_unlock(&early->lock);
    return sink;
}

/* ---- waiting ---- */

static bool is_open_before(struct intake_early *early, u64 ticket)
{
    bool open = false;
    (void)pthread_mutex_lock(&early->lock);
    for (const struct intake_early_group *group = early->open; group != NULL; group = group->next) {
        open = open || group->ticket < ticket;
    }
    (void)pthread_mutex_unlock(&early->lock);
    return open;
}

/* By looking again and again: it takes a millisecond, and hardly anybody waits. */
bool intake_early_await(struct intake_early *early, const struct seam *seam, i64 most_us)
{
    if (early == NULL) {
        return true;
    }
    (void)pthread_mutex_lock(&early->lock);
    u64 ticket = early->tickets;
    (void)pthread_mutex_unlock(&early->lock);
    i64 left = most_us;
    atomic_fetch_add(&early->awaiting, 1);
    while (is_open_before(early, ticket) && left > 0) {
        seam_wait_us(seam, LOOK_APART_US);
        left -= LOOK_APART_US;
    }
    atomic_fetch_sub(&early->awaiting, 1);
    return left > 0;
}

bool intake_early_is_awaited(const struct intake_early *early)
{
    return atomic_load(&early->awaiting) > 0;
}

size_t intake_early_count(struct intake_early *early, str sink_id)
{
    if (early == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&early->lock);
    const struct intake_early_sink *sink = find(early, sink_id);
    size_t count = sink == NULL ? 0 : sink->kept;
    for (const struct intake_early_group *group = early->open; group != NULL; group = group->next) {
        count += str_equal(group->sink->id, sink_id) ? 1 : 0;
    }
    (void)pthread_mutex_unlock(&early->lock);
    return count;
}

/* ---- closing ---- */

/* At the memory limit all are closed rather than none. */
void intake_early_close_sink(struct intake_early *early, str sink_id)
{
    if (early == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&early->lock);
    struct intake_early_sink *sink = find(early, sink_id);
    bool *closed = sink == NULL ? &early->closed : &sink->closed;
    *closed = true;
    (void)pthread_mutex_unlock(&early->lock);
}

void intake_early_close_all(struct intake_early *early)
{
    if (early == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&early->lock);
    early->closed = true;
    (void)pthread_mutex_unlock(&early->lock);
}

/* ---- the intake ---- */

/* With the lock. */
static bool is_closed(const struct intake_early *early, const struct intake_early_sink *sink)
{
    return early->closed || sink->closed;
}

bool intake_early_wants(struct intake_early *early, const struct intake_early_sink *sink)
{
    (void)pthread_mutex_lock(&early->lock);
    bool wants = !is_closed(early, sink) && (sink->batches <= 0 || sink->bytes <= 0);
    (void)pthread_mutex_unlock(&early->lock);
    return wants;
}

void intake_early_grant(struct intake_early *early, struct intake_early_sink *sink, i64 batches,
                        i64 bytes)
{
    (void)pthread_mutex_lock(&early->lock);
    if (!is_closed(early, sink)) {
        sink->batches = batches;
        sink->bytes = bytes;
    }
    (void)pthread_mutex_unlock(&early->lock);
}

bool intake_early_enter(struct intake_early *early, struct intake_early_sink *sink, i64 batches,
                        i64 bytes, struct intake_early_group *out_group)
{
    (void)pthread_mutex_lock(&early->lock);
    bool may = !is_closed(early, sink) && batches <= sink->batches && bytes <= sink->bytes;
    if (may) {
        sink->batches -= batches;
        sink->bytes -= bytes;
        *out_group = (struct intake_early_group){
            .sink = sink, .ticket = early->tickets++, .open = true, .next = early->open};
        early->open = out_group;
    } else {
        sink->batches = 0; /* a new grant is due, from a look at the ledger as it is then */
    }
    (void)pthread_mutex_unlock(&early->lock);
    return may;
}

void intake_early_leave(struct intake_early *early, struct intake_early_group *group, bool made)
{
    (void)pthread_mutex_lock(&early->lock);
    struct intake_early_group **link = &early->open;
    while (*link != group) {
        link = &(*link)->next;
    }
    *link = group->next;
    group->open = false;
    group->sink->kept += made ? 0 : 1;
    (void)pthread_mutex_unlock(&early->lock);
}
