#include "sink/intake_log.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/map.h"
#include "sink/batch.h"
#include "sink/intake_group.h"
#include "sink/intake_log_object.h"

/* Two passes: the voids of the whole log are known before its first record is brought back, and
 * which record of an object is its last. Each record then is one transaction, and its files are
 * looked at after it, with its object's last one at the latest: whatever stops in between is done
 * again, for the log is released at the end alone. */

enum { REPLAY_RECORD_BYTES_MAX = 32 * MIB, REPLAY_VOIDS_BYTES_MAX = 512 * MIB };

struct replay {
    struct intake_log *log;
    const struct intake_log_options *options;
    struct arena *voids_arena;
    struct map *voids; /* what names a record to a bool of each batch */
    struct intake_log_objects *objects;
    struct arena *arena; /* of a record */
    struct intake_log_replayed *told;
};

/* ---- first pass ---- */

static str name_of(struct arena *arena, const struct intake_log_record *record)
{
    return str_format(arena, "%.*s %lld", STR_ARG(id_uid_str(&record->uid)),
                      (long long)record->body_at);
}

static err collect_void(struct replay *replay, const struct intake_log_record *record,
                        struct error *error)
{
    struct arena_mark mark = arena_mark(replay->voids_arena);
    bool is_new = false;
    str name = name_of(replay->voids_arena, record);
    u64 *place = name.data == NULL ? NULL : map_put(replay->voids, name, &is_new);
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
    for (size_t i = 0; i < record->count; i++) {
        flags[i] = flags[i] || record->voided[i];
    }
    return OK;
}

static err collect(void *context, u64 position, str bytes, struct error *error)
{
    struct replay *replay = context;
    struct intake_log_record record = {0};
    arena_reset(replay->arena);
    TRY(intake_log_record_parse(replay->arena, bytes, &record, error));
    return record.kind == INTAKE_LOG_VOID
               ? collect_void(replay, &record, error)
               : intake_log_objects_note(replay->objects, &record, position, error);
}

/* ---- files ---- */

static err ensure_rejects(struct replay *replay, const struct warehouse *warehouse,
                          const struct intake_log_record *record, size_t index, struct error *error)
{
    struct store_meta meta = {0};
    bool put = false;
    str rejects = record->rejects[index];
    str key = batch_intake_rejects_key(replay->arena, record->sink_id,
                                       record->items[index].batch_id, &record->uid);
    TRY(intake_rejects_meta(replay->arena, rejects, &meta, error));
    if (key.data == NULL) {
        return error_memory(error);
    }
    TRY(intake_log_ensure_file(warehouse, key, rejects, &meta, &put, error));
    replay->told->objects += put ? 1 : 0;
    return OK;
}

/* One that is well may still be unsynced, written by a process that was killed. */
static err ensure_files(struct replay *replay, const struct warehouse *warehouse,
                        const struct intake_log_record *record, u64 position,
                        const enum ledger_logged *logged, struct error *error)
{
    bool needed = false;
    bool put = false;
    intake_log_touch(replay->log, warehouse);
    for (size_t i = 0; i < record->count; i++) {
        bool kept = logged[i] == LEDGER_LOGGED_WAITS || logged[i] == LEDGER_LOGGED_ORPHAN;
        needed = needed || (kept && record->items[i].rows > 0);
        if ((kept || logged[i] == LEDGER_LOGGED_ENDED) && record->rejects[i].size > 0) {
            TRY(ensure_rejects(replay, warehouse, record, i, error));
        }
    }
    TRY(intake_log_objects_add(replay->objects, record, position, warehouse, needed, &put, error));
    replay->told->objects += put ? 1 : 0;
    return OK;
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
    arena_reset(replay->arena);
    TRY(intake_log_record_parse(replay->arena, bytes, &record, error));
    if (record.kind != INTAKE_LOG_ACCEPT) {
        return OK;
    }
    TRY(find_warehouse(replay, &record, &warehouse, error));
    enum ledger_logged *logged = arena_array(replay->arena, record.count, sizeof(*logged));
    str name = name_of(replay->arena, &record);
    if (logged == NULL || name.data == NULL) {
        return error_memory(error);
    }
    const u64 *voided = map_get(replay->voids, name);
    const bool *flags = voided == NULL ? record.voided : (const bool *)(uintptr_t)*voided;
    TRY(ledger_accept_logged(replay->options->db, replay->arena, record.sink_id, record.items,
                             flags, record.count, logged, error));
    CRASH_POINT(intake_log_row_made);
    replay->told->records++;
    replay->told->batches += (i64)record.count;
    return ensure_files(replay, warehouse, &record, position, logged, error);
}

static err replay_all(struct replay *replay, struct error *error)
{
    const struct journal *journal = replay->options->journal;
    TRY(journal_replay(journal, collect, replay, error));
    TRY(journal_replay(journal, bring_back, replay, error));
    return intake_log_checkpoint(replay->log, error);
}

static void log_replayed(const struct intake_log_replayed *told)
{
    log_event(LOG_INFO, "intake_log_replayed", LOG_N("records", told->records),
              LOG_N("batches", told->batches), LOG_N("objects", told->objects));
}

err intake_log_replay(struct intake_log *log, struct intake_log_replayed *out_replayed,
                      struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)REPLAY_RECORD_BYTES_MAX);
    struct arena *voids AUTO_ARENA = arena_create((size_t)REPLAY_VOIDS_BYTES_MAX);
    *out_replayed = (struct intake_log_replayed){0};
    struct intake_log_objects *objects = intake_log_objects_create();
    struct replay replay = {
        .log = log,
        .options = intake_log_options_of(log),
        .arena = arena,
        .voids_arena = voids,
        .voids = map_create(voids, 64),
        .objects = objects,
        .told = out_replayed,
    };
    err result = replay.voids == NULL || objects == NULL ? error_memory(error)
                                                         : replay_all(&replay, error);
    intake_log_objects_destroy(objects);
    if (result == OK && out_replayed->records > 0) {
        log_replayed(out_replayed);
    }
    return result;
}
