#include "sink/intake_log.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/map.h"
#include "sink/batch.h"
#include "sink/intake_group.h"

/* Two passes: the voids of the whole log are known before its first record is brought back. Each
 * record then is one transaction, and its files are looked at after it: whatever stops in between
 * is done again, for the log is released at the end alone. */

enum { REPLAY_RECORD_BYTES_MAX = 32 * MIB, REPLAY_VOIDS_BYTES_MAX = 512 * MIB };

struct replay {
    struct intake_log *log;
    const struct intake_log_options *options;
    struct arena *voids_arena;
    struct map *voids;   /* uid to a bool of each batch */
    struct arena *arena; /* of a record */
    struct intake_log_replayed *told;
};

/* ---- first pass ---- */

static err collect_void(void *context, u64 position, str bytes, struct error *error)
{
    struct replay *replay = context;
    struct intake_log_record record = {0};
    struct arena_mark mark = arena_mark(replay->voids_arena);
    (void)position;
    arena_reset(replay->arena);
    TRY(intake_log_record_parse(replay->arena, bytes, &record, error));
    if (record.kind != INTAKE_LOG_VOID) {
        return OK;
    }
    bool is_new = false;
    str uid = str_copy(replay->voids_arena, id_uid_str(&record.uid));
    u64 *place = uid.data == NULL ? NULL : map_put(replay->voids, uid, &is_new);
    if (place == NULL) {
        return error_memory(error);
    }
    if (is_new) {
        bool *flags = arena_array(replay->voids_arena, INTAKE_LOG_BATCHES_MAX, sizeof(*flags));
        if (flags == NULL) {
            return error_memory(error);
        }
        *place = (u64)(uintptr_t)flags;
    } else {
        arena_reset_to(replay->voids_arena, mark); /* the key that is there stays */
    }
    bool *flags = (bool *)(uintptr_t)*place;
    for (size_t i = 0; i < record.count; i++) {
        flags[i] = flags[i] || record.voided[i];
    }
    return OK;
}

/* ---- files ---- */

static bool same_meta(const struct store_meta *a, const struct store_meta *b)
{
    for (size_t i = 0; i < b->count; i++) {
        str value = store_meta_value(a, b->entries[i].name);
        if (value.data == NULL || !str_equal(value, b->entries[i].value)) {
            return false;
        }
    }
    return true;
}

/* What a power loss took of a file is anything: none of it, a part, or its metadata. One that is
 * well may still be unsynced, written by a process that was killed. */
static err ensure_file(struct replay *replay, const struct warehouse *warehouse, str key, str body,
                       struct store_meta *meta, struct error *error)
{
    struct store_object object = {0};
    struct arena *arena AUTO_ARENA = arena_create((size_t)REPLAY_RECORD_BYTES_MAX);
    if (key.data == NULL) {
        return error_memory(error);
    }
    intake_log_touch(replay->log, warehouse);
    err got = store_get(&warehouse->files, arena, key, &object, NULL);
    if (got == OK && str_equal(object.body, body) && same_meta(&object.meta, meta)) {
        return OK;
    }
    meta->durability = STORE_LATER;
    TRY(store_put(&warehouse->files, key, body, meta, error));
    replay->told->objects++;
    return OK;
}

static err ensure_rejects(struct replay *replay, const struct warehouse *warehouse,
                          const struct intake_log_record *record, size_t index, struct error *error)
{
    struct store_meta meta = {0};
    str rejects = record->rejects[index];
    TRY(intake_rejects_meta(replay->arena, rejects, &meta, error));
    return ensure_file(replay, warehouse,
                       batch_intake_rejects_key(replay->arena, record->sink_id,
                                                record->items[index].batch_id, &record->uid),
                       rejects, &meta, error);
}

static err ensure_files(struct replay *replay, const struct warehouse *warehouse,
                        const struct intake_log_record *record, const enum ledger_logged *logged,
                        struct error *error)
{
    bool needed = false;
    for (size_t i = 0; i < record->count; i++) {
        bool kept = logged[i] == LEDGER_LOGGED_WAITS || logged[i] == LEDGER_LOGGED_ORPHAN;
        needed = needed || (kept && record->items[i].rows > 0);
        if ((kept || logged[i] == LEDGER_LOGGED_ENDED) && record->rejects[i].size > 0) {
            TRY(ensure_rejects(replay, warehouse, record, i, error));
        }
    }
    struct store_object object = {0};
    /* What is not needed is not made again; but half of it would be taken for a damaged batch. */
    if (record->object_key.size == 0 ||
        (!needed && store_head(&warehouse->files, replay->arena, record->object_key, &object,
                               NULL) == NOT_FOUND)) {
        return OK;
    }
    struct store_meta meta = {0};
    TRY(intake_object_meta(replay->arena, record->sink_id, record->items, record->count, &meta,
                           error));
    return ensure_file(replay, warehouse, record->object_key, record->body, &meta, error);
}

/* ---- second pass ---- */

static err find_warehouse(const struct replay *replay, const struct intake_log_record *record,
                          const struct warehouse **out_warehouse, struct error *error)
{
    const struct intake_log_options *options = replay->options;
    *out_warehouse = options->find(options->find_context, record->warehouse);
    if (*out_warehouse == NULL) {
        err result = error_set(
            error, CORRUPT, ERROR_INTERNAL,
            "the intake log has batches of warehouse %.*s, which the ledger does "
            "not know",
            STR_ARG(record->warehouse));
        error_hint(error, "put back a ledger that knows it, or move the directory intake-log away "
                          "and lose what only the log holds");
        return result;
    }
    return OK;
}

static err bring_back(void *context, u64 position, str bytes, struct error *error)
{
    struct replay *replay = context;
    struct intake_log_record record = {0};
    const struct warehouse *warehouse = NULL;
    (void)position;
    arena_reset(replay->arena);
    TRY(intake_log_record_parse(replay->arena, bytes, &record, error));
    if (record.kind != INTAKE_LOG_ACCEPT) {
        return OK;
    }
    TRY(find_warehouse(replay, &record, &warehouse, error));
    enum ledger_logged *logged = arena_array(replay->arena, record.count, sizeof(*logged));
    if (logged == NULL) {
        return error_memory(error);
    }
    const u64 *voided = map_get(replay->voids, id_uid_str(&record.uid));
    const bool *flags = voided == NULL ? record.voided : (const bool *)(uintptr_t)*voided;
    TRY(ledger_accept_logged(replay->options->db, replay->arena, record.sink_id, record.items,
                             flags, record.count, logged, error));
    CRASH_POINT(intake_log_row_made);
    replay->told->records++;
    replay->told->batches += (i64)record.count;
    return ensure_files(replay, warehouse, &record, logged, error);
}

static err replay_all(struct replay *replay, struct error *error)
{
    const struct journal *journal = replay->options->journal;
    TRY(journal_replay(journal, collect_void, replay, error));
    TRY(journal_replay(journal, bring_back, replay, error));
    return intake_log_checkpoint(replay->log, error);
}

err intake_log_replay(struct intake_log *log, struct intake_log_replayed *out_replayed,
                      struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)REPLAY_RECORD_BYTES_MAX);
    struct arena *voids AUTO_ARENA = arena_create((size_t)REPLAY_VOIDS_BYTES_MAX);
    *out_replayed = (struct intake_log_replayed){0};
    struct replay replay = {
        .log = log,
        .options = intake_log_options_of(log),
        .arena = arena,
        .voids_arena = voids,
        .voids = map_create(voids, 64),
        .told = out_replayed,
    };
    if (replay.voids == NULL) {
        return error_memory(error);
    }
    TRY(replay_all(&replay, error));
    if (out_replayed->records > 0) {
        log_event(LOG_INFO, "intake_log_replayed", LOG_N("records", out_replayed->records),
                  LOG_N("batches", out_replayed->batches), LOG_N("objects", out_replayed->objects));
    }
    return OK;
}
