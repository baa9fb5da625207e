#include "sink/intake_apply.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/planted.h"
#include "sink/batch.h"
#include "sink/intake_line.h"
#include "sink/intake_told.h"

/* Of one object: so that it is written, and its rows are made, in some milliseconds. */
enum {
    SHARED_BYTES_MAX = 4 * MIB,
    SHARED_BATCHES_MAX = 1024,
    SEALED_MAX = 16, /* objects of a sink that wait: the ledger may be taken for some tenths of a
                        second by the plan, or the end, of a roll of many batches */
};
#define SHARED_ARENA_MAX ((size_t)32 * MIB)

/* Under load one object in so long a time, unless it has grown to a part of its bounds: what makes
 * a file, and a transaction, costs the same for one batch as for hundreds. */
#define APART_US      ((i64)20000)
#define APART_LOOK_US ((i64)2000)
enum { APART_PART = 4 };

#define AGAIN_US      ((i64)100000)
#define AGAIN_LAST_US ((i64)2 * TIME_SECOND_US)

struct intake_shared {
    struct arena *arena;
    struct intake_sink *sink;
    const struct intake_groups *groups;
    const struct warehouse *warehouse;
    struct uid uid;
    str object_key;
    size_t bytes;
    size_t meta;
    size_t batches;
    size_t joined;
    size_t arrived;
    struct intake_group *first; /* in the order of their places */
    struct intake_group **end;
    struct intake_shared *next; /* sealed after it */
    /* of all that were told, while it is applied */
    struct ledger_accept *items;
    size_t count;
};

/* ---- joining; with the sink's lock ---- */

static struct intake_shared *shared_open(const struct intake_group *group)
{
    struct arena *arena = arena_create(SHARED_ARENA_MAX);
    struct intake_shared *shared = arena_alloc(arena, sizeof(*shared));
    str key = shared == NULL ? STR("") : str_copy(arena, group->object_key);
    if (shared == NULL || key.data == NULL) {
        arena_destroy(arena);
        return NULL;
    }
    *shared = (struct intake_shared){.arena = arena,
                                     .sink = group->sink,
                                     .groups = group->groups,
                                     .warehouse = group->warehouse,
                                     .uid = group->uid,
                                     .object_key = key,
                                     .end = &shared->first};
    return shared;
}

static size_t group_meta(const struct intake_group *group)
{
    size_t meta = 0;
    for (size_t i = 0; i < group->count; i++) {
        meta += group->items[i].rows > 0 ? intake_line_entry_max(group->sends[i]) : 0;
    }
    return meta;
}

static bool has_place(const struct intake_shared *shared, const struct intake_group *group,
                      size_t meta)
{
    return shared->warehouse == group->warehouse &&
           shared->bytes + 1 + group->body_size <= SHARED_BYTES_MAX &&
           shared->meta + meta <= intake_line_entries_max(group->warehouse) &&
           shared->batches + group->count <= SHARED_BATCHES_MAX;
}

static void seal(struct intake_sink *sink)
{
    struct intake_shared **link = &sink->sealed;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = sink->open;
    sink->sealed_count++;
    sink->open = NULL;
}

static struct intake_shared *place_for(struct intake_group *group, size_t meta)
{
    struct intake_sink *sink = group->sink;
    const struct intake_shared empty = {.warehouse = group->warehouse};
    if (sink->open != NULL && !has_place(sink->open, group, meta) &&
        sink->sealed_count < SEALED_MAX) {
        seal(sink);
    }
    bool opens = sink->open == NULL && has_place(&empty, group, meta);
    sink->open = opens ? shared_open(group) : sink->open;
    bool joins = sink->open != NULL && has_place(sink->open, group, meta);
    return joins ? sink->open : NULL;
}

/* A line end is between two groups, as between two batches. */
static void take_place(struct intake_shared *shared, struct intake_group *group, size_t meta)
{
    group->body_at = (i64)shared->bytes + (shared->joined > 0 ? 1 : 0);
    shared->bytes = (size_t)group->body_at + group->body_size;
    shared->meta += meta;
    shared->batches += group->count;
    shared->joined++;
    *shared->end = group;
    shared->end = &group->member;
    group->shared = shared;
    group->uid = shared->uid;
    group->object_key = shared->object_key;
    for (size_t i = 0; i < group->count; i++) {
        struct ledger_accept *item = &group->items[i];
        item->uid = shared->uid;
        item->offset += item->rows > 0 ? group->body_at : 0;
        item->object_key = item->rows > 0 ? shared->object_key : STR("");
    }
}

bool intake_apply_join(struct intake_group *group)
{
    size_t meta = group_meta(group);
    (void)pthread_mutex_lock(&group->sink->lock);
    struct intake_shared *shared = place_for(group, meta);
    if (shared != NULL) {
        take_place(shared, group, meta);
    }
    (void)pthread_mutex_unlock(&group->sink->lock);
    return shared != NULL;
}

/* ---- whose turn it is; with the sink's lock ---- */

static struct intake_shared *next(struct intake_sink *sink)
{
    if (sink->applying) {
        return NULL;
    }
    if (sink->sealed == NULL && sink->open != NULL && sink->open->arrived > 0) {
        seal(sink);
    }
    struct intake_shared *sealed = sink->sealed;
    if (sealed == NULL || sealed->arrived < sealed->joined) {
        return NULL;
    }
    sink->sealed = sealed->next;
    sink->sealed_count--;
    sink->applying = true;
    return sealed;
}

void intake_apply_seal(struct intake_group *group)
{
    struct intake_sink *sink = group->sink;
    (void)pthread_mutex_lock(&sink->lock);
    if (!sink->applying && sink->sealed == NULL && sink->open == group->shared) {
        seal(sink);
    }
    (void)pthread_mutex_unlock(&sink->lock);
}

struct intake_shared *intake_apply_arrive(struct intake_group *group)
{
    struct intake_sink *sink = group->sink;
    (void)pthread_mutex_lock(&sink->lock);
    group->shared->arrived++;
    struct intake_shared *shared = next(sink);
    (void)pthread_mutex_unlock(&sink->lock);
    return shared;
}

/* ---- files ---- */

/* Of what failed its bytes stay, as those of any loser of a group. */
MUST_USE static err put_object(struct intake_shared *shared, struct error *error)
{
    struct store_meta meta = {0};
    size_t count = 0;
    str *pieces = arena_array(shared->arena, 2 * shared->joined, sizeof(*pieces));
    if (pieces == NULL) {
        return error_memory(error);
    }
    for (const struct intake_group *group = shared->first; group != NULL; group = group->member) {
        if (count > 0) {
            pieces[count++] = STR("\n");
        }
        pieces[count++] = group->pieces[0];
    }
    TRY(intake_object_meta(shared->arena, shared->sink->id, shared->items, shared->count, &meta,
                           error));
    meta.durability = STORE_LATER;
    TRY(store_put_pieces(&shared->warehouse->files, shared->object_key, pieces, count, &meta,
                         error));
    metric_add(METRIC_INTAKE_OBJECTS, 1);
    return OK;
}

MUST_USE static err put(struct intake_shared *shared, struct error *error)
{
    for (struct intake_group *group = shared->first; group != NULL; group = group->member) {
        if (group->told) {
            TRY(intake_group_put_rejects(group, error));
        }
    }
    TRY(put_object(shared, error));
    CRASH_POINT(intake_after_put);
    return OK;
}

/* ---- rows ---- */

/* A row that is not made, against all that was certain, has its object kept: the orphan rules take
 * it in. */
MUST_USE static err record(struct intake_shared *shared, struct error *error)
{
    enum ledger_logged *logged = arena_array(shared->arena, shared->count, sizeof(*logged));
    bool *voided = arena_array(shared->arena, shared->count, sizeof(*voided));
    if (logged == NULL || voided == NULL) {
        return error_memory(error);
    }
    TRY(ledger_accept_logged(shared->groups->options->db, shared->arena, shared->sink->id,
                             shared->items, voided, shared->count, logged, error));
    CRASH_POINT(intake_after_ledger);
    for (size_t i = 0; i < shared->count; i++) {
        if (logged[i] == LEDGER_LOGGED_ORPHAN || logged[i] == LEDGER_LOGGED_NOTHING) {
            log_event(LOG_ERROR, "accepted_batch_has_no_row", LOG_S("sink", shared->sink->id),
                      LOG_S("batch_id", shared->items[i].batch_id),
                      LOG_S("object", shared->object_key));
        }
    }
    return OK;
}

/* ---- all of it ---- */

MUST_USE static bool gather(struct intake_shared *shared)
{
    shared->items = arena_array(shared->arena, shared->batches, sizeof(*shared->items));
    for (const struct intake_group *group = shared->first; group != NULL && shared->items != NULL;
         group = group->member) {
        for (size_t i = 0; i < group->count && group->told; i++) {
            struct ledger_accept *item = &shared->items[shared->count++];
            *item = group->items[i];
            item->began_running_us = INT64_MAX; /* nobody else has had the id meanwhile */
        }
    }
    return shared->items != NULL;
}

/* Until it succeeds: what is full or down is so for a while. False: the process ends first. */
static bool do_through(struct intake_shared *shared,
                       err (*work)(struct intake_shared *, struct error *))
{
    struct arena_mark mark = arena_mark(shared->arena);
    struct error error = {0};
    i64 pause = AGAIN_US;
    bool delayed = false;
    err result = work(shared, &error);
    while (result != OK && !atomic_load(shared->groups->closing) && !PLANTED(35)) {
        if (!delayed) {
            intake_told_delay(shared->sink, result, &error);
        }
        delayed = true;
        seam_wait_us(shared->groups->options->seam, pause);
        pause = num_min_i64(2 * pause, AGAIN_LAST_US);
        error_clear(&error);
        arena_reset_to(shared->arena, mark); /* of a work that fails nothing stays */
        result = work(shared, &error);
    }
    if (delayed) {
        intake_line_go_on(shared->sink);
    }
    return result == OK;
}

/* All leave the log at once, so that no checkpoint releases a part of the object's records. */
static void settle(struct intake_shared *shared, bool made)
{
    struct intake_log *log = shared->groups->log;
    struct intake_logged *all = NULL;
    for (struct intake_group *group = shared->first; group != NULL; group = group->member) {
        if (group->logged.open) {
            group->logged.beside = all;
            all = &group->logged;
        }
    }
    if (made || PLANTED(35)) {
        intake_log_end(log, all);
    } else {
        intake_log_keep(log, all);
    }
}

static void leave_all(struct intake_shared *shared, bool made)
{
    const struct intake_options *options = shared->groups->options;
    struct intake_group *group = shared->first;
    if (made && shared->count > 0 && options->accepted != NULL) {
        options->accepted(options->accepted_context, shared->sink->id);
    }
    intake_group_hold_answers(shared->groups);
    while (group != NULL) {
        struct intake_group *member = group->member;
        if (group->told) {
            intake_told_end(group, made);
        }
        intake_line_leave(group);
        intake_told_answer_rest(group, made);
        arena_destroy(group->arena);
        group = member;
    }
    intake_group_release_answers(shared->groups);
}

/* A send whose id another one of them has: it is answered when that has its row. */
static bool is_awaited(const struct intake_sink *sink)
{
    const struct intake_send *send = sink->first;
    while (send != NULL && !send->look_again) {
        send = send->next;
    }
    return send != NULL;
}

/* The next one is there, and may grow. */
static bool may_grow(struct intake_sink *sink)
{
    (void)pthread_mutex_lock(&sink->lock);
    const struct intake_shared *open = sink->open;
    bool grows = sink->sealed == NULL && open != NULL && !is_awaited(sink) &&
                 open->bytes < SHARED_BYTES_MAX / APART_PART &&
                 open->batches < SHARED_BATCHES_MAX / APART_PART &&
                 open->meta < intake_line_entries_max(open->warehouse) / APART_PART;
    (void)pthread_mutex_unlock(&sink->lock);
    return grows;
}

static void keep_apart(const struct intake_groups *groups, struct intake_sink *sink, i64 began_us)
{
    const struct seam *seam = groups->options->seam;
    while (may_grow(sink) && !intake_early_is_awaited(groups->early) &&
           !atomic_load(groups->closing) && seam_monotonic_us(seam) - began_us < APART_US) {
        seam_wait_us(seam, APART_LOOK_US);
    }
}

struct intake_shared *intake_apply_run(struct intake_shared *shared)
{
    const struct intake_groups *groups = shared->groups;
    struct intake_sink *sink = shared->sink;
    i64 began_us = seam_monotonic_us(groups->options->seam);
    bool gathered = gather(shared);
    assert(gathered); /* there is room for so many as can join */
    bool made = shared->count == 0 || (do_through(shared, put) && do_through(shared, record));
    settle(shared, made);
    leave_all(shared, made);
    arena_destroy(shared->arena);
    keep_apart(groups, sink, began_us);
    (void)pthread_mutex_lock(&sink->lock);
    sink->applying = false;
    struct intake_shared *following = next(sink);
    (void)pthread_mutex_unlock(&sink->lock);
    return following;
}
