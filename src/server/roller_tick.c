#include "base/log.h"
#include "server/roller_private.h"
#include "sink/sweep.h"
#include "table/catalog_restore.h"

/* The tick: which sink is due now, and until when may it sleep. */

enum { TICK_SECONDS = 10, RUNNING_SECONDS = 60, PAGE = 100, ID_ROOM = ROLLER_ID_MAX };
/* Of a longer time since the last count, more was spent frozen than running. */
#define RUNNING_COUNTED_MAX_US (5 * RUNNING_SECONDS * TIME_SECOND_US)
#define LOOK_APART_US          ((i64)50 * 1000) /* of one sink that is touched again and again */
/* And so many times what the last look took: it reads all that waits. */
#define LOOK_REST_TIMES 20
#define LEDGER_AGAIN_US TIME_SECOND_US
#define HOUR_US         (3600 * TIME_SECOND_US)

struct tick {
    struct roller *roller;
    struct arena *arena;
    i64 all_at;      /* when all sinks are looked at next */
    i64 running_at;  /* when running time is counted next */
    i64 running_was; /* when it was counted last */
    i64 deleted_at;  /* when deleted sinks are looked at next */
    i64 look_took;   /* the read of the sink at hand */
};

/* ---- one sink ---- */

/* Under the lock. Gives the entry to the workers; false when their queue is full. */
static bool hand_over(struct roller *roller, struct roller_entry *entry, enum roller_job job,
                      enum policy_trigger trigger)
{
    entry->job = job;
    entry->trigger = trigger;
    entry->busy = true;
    if (!queue_push(roller->jobs, entry)) {
        entry->busy = false;
        return false;
    }
    return true;
}

static void schedule(struct roller *roller, struct roller_entry *entry,
                     const struct ledger_sink *sink, i64 now)
{
    struct policy_verdict verdict = policy_judge(sink, &roller->options.limits);
    bool deleting = sink->state == SINK_DELETING;
    if (verdict.trigger == POLICY_NONE && !deleting) {
        entry->look_at = verdict.due_at == 0 ? ROLLER_NEVER : now + (verdict.due_at - sink->now);
        return;
    }
    if (!hand_over(roller, entry, deleting ? ROLLER_RECOVER : ROLLER_ROLL, verdict.trigger)) {
        entry->look_at = now + LOOK_APART_US;
    }
}

/* What was read of a sink becomes a job or a time. */
/* NULL: there is no room. Half of it is for sinks that live: of deleted ones the folder alone is
 * swept a while longer, and that can wait. */
static struct roller_entry *entry_for(struct roller *roller, const struct ledger_sink *sink)
{
    bool crowded = roller->entry_count >= ROLLER_SINKS_MAX / 2;
    bool known = map_get(roller->places, sink->id) != NULL;
    return sink->state == SINK_DELETED && crowded && !known ? NULL
                                                            : roller_entry_of(roller, sink->id);
}

static void apply(struct tick *tick, const struct ledger_sink *sink)
{
    struct roller *roller = tick->roller;
    const struct warehouse *warehouse = warehouse_get(roller->options.warehouses, sink->warehouse);
    i64 now = roller_now(roller);
    pthread_mutex_lock(&roller->lock);
    struct roller_entry *entry = entry_for(roller, sink);
    if (entry != NULL && warehouse != NULL && roller_entry_free(entry)) {
        entry->warehouse = warehouse;
        if (now >= entry->look_floor) {
            entry->look_floor = now + num_max_i64(LOOK_APART_US, LOOK_REST_TIMES * tick->look_took);
            schedule(roller, entry, sink, now);
        } else {
            entry->look_at = entry->look_floor;
        }
    }
    pthread_mutex_unlock(&roller->lock);
}

static void look_at_one(struct tick *tick, str sink_id)
{
    struct ledger_sink sink = {0};
    struct error told = {0};
    arena_reset(tick->arena);
    i64 began = roller_now(tick->roller);
    err found = ledger_find_sink(tick->roller->options.db, tick->arena, STR(""), sink_id, &sink,
                                 &told);
    tick->look_took = roller_now(tick->roller) - began;
    if (found == OK) {
        apply(tick, &sink);
        return;
    }
    if (found != NOT_FOUND) {
        log_error("sink_not_read", found, &told, sink_id);
    }
    pthread_mutex_lock(&tick->roller->lock);
    struct roller_entry *entry = roller_entry_of(tick->roller, sink_id);
    if (entry != NULL) {
        entry->look_at = found == NOT_FOUND ? ROLLER_NEVER
                                            : roller_now(tick->roller) + LEDGER_AGAIN_US;
    }
    pthread_mutex_unlock(&tick->roller->lock);
}

/* ---- all sinks ---- */

/* A deleted sink is looked at until its folder is empty. */
static bool is_over(const struct ledger_sink *sink)
{
    return sink->state == SINK_DELETED && sink->deleted_at < sink->now - SWEEP_DELETED_US;
}

static void look_at_all(struct tick *tick, bool deleted_too)
{
    char last[ID_ROOM];
    str after = STR("");
    size_t count = PAGE;
    while (count == PAGE && !atomic_load(&tick->roller->stopping)) {
        struct ledger_sink *sinks = NULL;
        struct error told = {0};
        arena_reset(tick->arena);
        err listed = ledger_list_sinks(tick->roller->options.db, tick->arena, STR(""), STR(""),
                                       deleted_too, after, PAGE, &sinks, &count, &told);
        if (listed != OK) {
            log_error("sinks_not_listed", listed, &told, STR(""));
            return;
        }
        tick->look_took = 0; /* of all of them */
        for (size_t i = 0; i < count; i++) {
            if (!is_over(&sinks[i])) {
                apply(tick, &sinks[i]);
            }
        }
        if (count > 0 && sinks[count - 1].id.size <= sizeof(last)) {
            memcpy(last, sinks[count - 1].id.data, sinks[count - 1].id.size);
            after = (str){last, sinks[count - 1].id.size};
        }
    }
}

static void count_running(struct tick *tick, i64 now)
{
    struct error told = {0};
    i64 elapsed_us = num_min_i64(now - tick->running_was, RUNNING_COUNTED_MAX_US);
    err added = ledger_add_running(tick->roller->options.db, elapsed_us, &told);
    if (added != OK) {
        log_error("running_not_counted", added, &told, STR(""));
        return; /* the time is added by the next call */
    }
    tick->running_was = now;
}

/* Rejects after a roll, and the hourly sweeps: a job of its own, when the sink is not busy. */
static void hand_out_sweeps(struct roller *roller, i64 now)
{
    pthread_mutex_lock(&roller->lock);
    for (size_t i = 0; i < roller->entry_count; i++) {
        struct roller_entry *entry = roller->entries[i];
        if (!roller_entry_free(entry) || entry->warehouse == NULL) {
            continue;
        }
        bool hourly = now - entry->swept_at >= HOUR_US;
        if (entry->wants_sweep || hourly) {
            /* The worker may already be at it when this returns: what it reads comes first. */
            entry->wants_sweep = false;
            if (!hand_over(roller, entry, ROLLER_HOUSEKEEP, POLICY_NONE)) {
                entry->wants_sweep = true;
            }
        }
    }
    pthread_mutex_unlock(&roller->lock);
}

/* ---- the loop ---- */

/* The next entry to look at now; false when there is none, *out_next then says when there will be.
 */
static bool next_entry(struct roller *roller, i64 now, char id[ID_ROOM], size_t *out_size,
                       i64 *out_next)
{
    bool found = false;
    i64 next = ROLLER_NEVER;
    pthread_mutex_lock(&roller->lock);
    for (size_t i = 0; i < roller->entry_count && !found; i++) {
        struct roller_entry *entry = roller->entries[i];
        if (!roller_entry_free(entry)) {
            continue;
        }
        i64 at = entry->touched ? entry->look_floor
                                : num_max_i64(entry->look_at, entry->look_floor);
        if (entry->look_at == ROLLER_NEVER && !entry->touched) {
            continue;
        }
        next = num_min_i64(next, at);
        if (at <= now) {
            memcpy(id, entry->id.data, entry->id.size);
            *out_size = entry->id.size;
            entry->touched = false; /* what touches it from here on is looked at again */
            found = true;
        }
    }
    pthread_mutex_unlock(&roller->lock);
    *out_next = next;
    return found;
}

/* Hints that a full disk kept from being written; the sweeps wait for them, too. */
static void settle_hints(const struct roller *roller)
{
    const struct warehouse *all[WAREHOUSES_MAX];
    size_t count = warehouse_list(roller->options.warehouses, STR(""), all, WAREHOUSES_MAX);
    for (size_t i = 0; i < count; i++) {
        struct catalog_local *local = catalog_local_of(&all[i]->catalog);
        struct error told = {0};
        err settled = local == NULL ? OK : catalog_restore_hints(local, &told);
        if (settled != OK) {
            log_error("version_hints_not_written", settled, &told, all[i]->name);
        }
    }
}

static void regular(struct tick *tick, i64 now)
{
    if (now >= tick->running_at) {
        count_running(tick, now);
        tick->running_at = now + RUNNING_SECONDS * TIME_SECOND_US;
    }
    if (now >= tick->all_at) {
        bool hourly = now >= tick->deleted_at;
        look_at_all(tick, hourly);
        tick->deleted_at = hourly ? now + HOUR_US : tick->deleted_at;
        settle_hints(tick->roller);
        hand_out_sweeps(tick->roller, now);
        arena_trim();
        tick->all_at = now + TICK_SECONDS * TIME_SECOND_US;
    }
}

static i64 look(struct tick *tick)
{
    struct roller *roller = tick->roller;
    char id[ID_ROOM];
    size_t size = 0;
    i64 next = ROLLER_NEVER;
    while (!atomic_load(&roller->stopping) &&
           next_entry(roller, roller_now(roller), id, &size, &next)) {
        look_at_one(tick, (str){id, size});
    }
    return next;
}

void *roller_tick_run(void *context)
{
    struct roller *roller = context;
    struct tick tick = {.roller = roller, .arena = arena_create((size_t)64 * MIB)};
    i64 now = roller_now(roller);
    tick.running_was = now;
    tick.running_at = now + RUNNING_SECONDS * TIME_SECOND_US;
    while (!atomic_load(&roller->stopping)) {
        atomic_store(&roller->poked, false);
        regular(&tick, roller_now(roller));
        i64 next = num_min_i64(look(&tick), roller_answer(roller));
        next = num_min_i64(next, num_min_i64(tick.all_at, tick.running_at));
        i64 wait = next - roller_now(roller);
        if (wait > 0) {
            void *poke = queue_pop(roller->pokes, wait);
            (void)poke;
        }
    }
    arena_destroy(tick.arena);
    return NULL;
}
