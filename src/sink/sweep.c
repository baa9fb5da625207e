#include "sink/sweep.h"

#include "base/log.h"
#include "sink/roll_steps.h"
#include "table/catalog_restore.h"

enum { SWEEP_PAGE = 500, SWEEP_SCRATCH_MIB_MAX = 64, PRUNE_BATCHES = 1000, PRUNE_ROUNDS = 100 };
#define HELD_LOOK_APART_US (3600 * TIME_SECOND_US)

/* ---- doomed objects ---- */

/* A pointer that the store does not know yet goes with a lost ledger, and the rows with it: their
 * objects stay as long. */
static err settle_hints(const struct roll_env *env, struct error *error)
{
    struct catalog_local *local = catalog_local_of(&env->warehouse->catalog);
    return local == NULL ? OK : catalog_restore_hints(local, error);
}

static err sweep_page(const struct roll_env *env, struct arena *arena, i64 *out_found,
                      i64 *out_deleted, struct error *error)
{
    struct ledger_doomed *objects = NULL;
    size_t count = 0;
    TRY(ledger_list_doomed(env->db, arena, env->warehouse->name, SWEEP_PAGE, &objects, &count,
                           error));
    struct ledger_doomed_done *done = arena_array(arena, count, sizeof(*done));
    if (done == NULL) {
        return error_memory(error);
    }
    TRY(settle_hints(env, error));
    if (count > 0) {
        TRY(db_sync(env->db, error)); /* what doomed them is for good */
    }
    i64 deleted = 0;
    for (size_t i = 0; i < count; i++) {
        struct error told = {0};
        err removed = store_remove(&env->warehouse->files, objects[i].object_key, &told);
        if (removed != OK && objects[i].tries == 0) {
            log_error("object_not_deleted", removed, &told, objects[i].object_key);
        }
        done[i] = (struct ledger_doomed_done){.object = objects[i], .deleted = removed == OK};
        deleted += removed == OK ? 1 : 0;
        CRASH_POINT(object_deleted);
    }
    CRASH_POINT(objects_deleted);
    if (count > 0) {
        TRY(ledger_settle_doomed(env->db, done, count, error));
    }
    *out_found = (i64)count;
    *out_deleted = deleted;
    return OK;
}

err sweep_objects(const struct roll_env *env, i64 *out_deleted, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)SWEEP_SCRATCH_MIB_MAX * MIB);
    i64 total = 0;
    i64 found = SWEEP_PAGE;
    i64 deleted = SWEEP_PAGE;
    while (found == SWEEP_PAGE && deleted > 0) {
        arena_reset(arena);
        TRY(sweep_page(env, arena, &found, &deleted, error));
        total += deleted;
    }
    *out_deleted = total;
    return OK;
}

/* ---- old files of a prefix ---- */

/* The list decides only what is looked at; the age decides what goes. A key that is not below the
 * prefix is somebody else's, whatever the store says. */
static err sweep_prefix(const struct roll_env *env, str prefix, instant before, i64 *out_deleted,
                        struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)SWEEP_SCRATCH_MIB_MAX * MIB);
    char after_bytes[STORE_KEY_MAX];
    str after = STR("");
    bool more = true;
    while (more) {
        struct store_list list = {0};
        arena_reset(arena);
        TRY(store_list(&env->warehouse->files, arena, prefix, after, SWEEP_PAGE, &list, error));
        for (size_t i = 0; i < list.count; i++) {
            const struct store_object *object = &list.objects[i];
            if (object->modified_at < before && str_starts(object->key, prefix)) {
                TRY(store_remove(&env->warehouse->files, object->key, error));
                (*out_deleted)++;
            }
        }
        more = list.more && list.count > 0;
        if (more) {
            str last = list.objects[list.count - 1].key;
            memcpy(after_bytes, last.data, last.size);
            after = (str){after_bytes, last.size};
        }
    }
    return OK;
}

static err sweep_folder(const struct roll_env *env, str sink_id, const char *folder, i64 age_us,
                        i64 *out_deleted, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(KIB * 64);
    str prefix = str_format(arena, "_sink/%.*s/%s/", STR_ARG(sink_id), folder);
    if (prefix.data == NULL) {
        return error_memory(error);
    }
    instant before = 0;
    TRY(ledger_old_before(env->db, age_us, &before, error));
    *out_deleted = 0;
    return sweep_prefix(env, prefix, before, out_deleted, error);
}

err sweep_rejects(const struct roll_env *env, str sink_id, i64 *out_deleted, struct error *error)
{
    return sweep_folder(env, sink_id, "rejects", SWEEP_REJECTS_US, out_deleted, error);
}

err sweep_plan_objects(const struct roll_env *env, str sink_id, i64 *out_deleted,
                       struct error *error)
{
    return sweep_folder(env, sink_id, "plans", SWEEP_PLANS_US, out_deleted, error);
}

err sweep_settings(const struct roll_env *env, str sink_id, i64 *out_deleted, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)MIB);
    struct ledger_sink sink = {0};
    struct error told = {0};
    *out_deleted = 0;
    err found = ledger_find_sink(env->db, arena, STR(""), sink_id, &sink, &told);
    if (found != OK && found != NOT_FOUND) {
        return error_set(error, found, told.code, "%s", told.message);
    }
    if (found == OK && sink.state != SINK_DELETED) {
        return OK;
    }
    return sweep_folder(env, sink_id, "sink", SWEEP_PLANS_US, out_deleted, error);
}

/* ---- rows ---- */

err sweep_rows(const struct db *db, struct error *error)
{
    instant before = 0;
    TRY(ledger_old_before(db, SWEEP_BATCHES_US, &before, error));
    i64 pruned = PRUNE_BATCHES;
    for (int round = 0; round < PRUNE_ROUNDS && pruned == PRUNE_BATCHES; round++) {
        TRY(ledger_prune_batches(db, before, PRUNE_BATCHES, &pruned, error));
    }
    TRY(ledger_old_before(db, SWEEP_PLANS_US, &before, error));
    return ledger_prune_plans(db, before, error);
}

/* ---- held batches ---- */

static err look_at_held(const struct roll_env *env, str sink_id, const struct ledger_batch *batch,
                        struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)SWEEP_SCRATCH_MIB_MAX * MIB);
    struct error told = {0};
    str bytes;
    str reason;
    err verified = roll_read_batch(env, arena, batch, &bytes, &reason, &told);
    if (verified == OK) {
        return ledger_release_held(env->db, sink_id, batch->batch_id, error);
    }
    if (verified == CORRUPT) {
        return ledger_touch_held(env->db, sink_id, batch->batch_id, error);
    }
    return error_set(error, verified, told.code, "%s", told.message);
}

err sweep_held(const struct roll_env *env, str sink_id, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)SWEEP_SCRATCH_MIB_MAX * MIB);
    struct ledger_sink sink = {0};
    TRY(ledger_find_sink(env->db, arena, STR(""), sink_id, &sink, error));
    if (sink.key_columns.data != NULL || sink.state == SINK_DELETED) {
        return OK;
    }
    i64 after_seq = 0;
    size_t count = SWEEP_PAGE;
    while (count == SWEEP_PAGE) {
        struct ledger_batch *batches = NULL;
        struct arena_mark mark = arena_mark(arena);
        TRY(ledger_list_batches(env->db, arena, sink_id, BATCH_PENDING, true, after_seq, SWEEP_PAGE,
                                &batches, &count, error));
        for (size_t i = 0; i < count; i++) {
            after_seq = batches[i].seq;
            if (batches[i].missed_at <= sink.now - HELD_LOOK_APART_US) {
                TRY(look_at_held(env, sink_id, &batches[i], error));
            }
        }
        arena_reset_to(arena, mark);
    }
    return OK;
}
