#include "base/map.h"
#include "base/planted.h"
#include "sink/orphan.h"
#include "sink/restore_steps.h"

/* Step 7: orphans become rows again, as copies under fresh uids, whatever their age. A delete of
 * the old object may be under way from before the restore; of the copy nobody knows. */

enum {
    ADOPT_PAGE = 500,
    ADOPT_OBJECTS_MAX = 1000000,
    ADOPT_SCRATCH_MIB_MAX = 512,
    ADOPT_STEP_MIB_MAX = 64,
};

/* ---- rows without their object ---- */

static err look_for_object(struct restore *restore, struct arena *arena, struct arena *scratch,
                           const struct ledger_batch *batch, struct map *missing,
                           struct error *error)
{
    struct store_object object = {0};
    struct error told = {0};
    arena_reset(scratch);
    err there = store_head(&restore->roll.env->warehouse->files, scratch, batch->object_key,
                           &object, &told);
    if (there != NOT_FOUND) {
        return there == OK ? OK : error_set(error, there, told.code, "%s", told.message);
    }
    bool fresh = false;
    str id = str_format(arena, "%.*s/%.*s", STR_ARG(id_uid_str(&batch->uid)),
                        STR_ARG(batch->batch_id));
    return id.data != NULL && map_put(missing, id, &fresh) != NULL ? OK : error_memory(error);
}

static err find_missing(struct restore *restore, struct arena *arena, struct map *missing,
                        struct error *error)
{
    struct arena *page AUTO_ARENA = arena_create((size_t)ADOPT_STEP_MIB_MAX * MIB);
    struct arena *scratch AUTO_ARENA = arena_create((size_t)MIB);
    i64 after_seq = -1;
    size_t count = ADOPT_PAGE;
    while (count == ADOPT_PAGE) {
        struct ledger_batch *batches = NULL;
        arena_reset(page);
        TRY(ledger_list_batches(restore->roll.env->db, page, restore->roll.sink.id, BATCH_PENDING,
                                false, after_seq, ADOPT_PAGE, &batches, &count, error));
        for (size_t i = 0; i < count; i++) {
            after_seq = batches[i].seq;
            TRY(look_for_object(restore, arena, scratch, &batches[i], missing, error));
        }
    }
    return OK;
}

/* ---- orphans ---- */

static err adopt_object(struct restore *restore, const struct ledger_segment *segment,
                        const struct map *missing, i64 *found, struct error *error)
{
    const struct roll_env *env = restore->roll.env;
    struct arena *arena AUTO_ARENA = arena_create((size_t)ADOPT_STEP_MIB_MAX * MIB);
    enum ledger_adoption adoption = ADOPT_NOTHING;
    struct ledger_copy copy = {.old_key = segment->object_key,
                               .old_uid = segment->uid,
                               .new_key = segment->object_key,
                               .new_uid = segment->uid};
    struct ledger_adopted adopted = {0};
    i64 quarantined = 0;
    TRY(ledger_weigh_orphan(env->db, arena, restore->roll.sink.id, segment->object_key, missing,
                            &adoption, &quarantined, error));
    restore->report->quarantined += quarantined;
    if (adoption == ADOPT_NOTHING) {
        return OK;
    }
    struct error told = {0};
    err copied = PLANTED(17)
                     ? OK
                     : orphan_copy(env, arena, restore->roll.sink.id, segment, &copy, &told);
    if (copied == NOT_FOUND) {
        return ledger_forget_orphan(env->db, restore->roll.sink.id, segment->object_key, error);
    }
    if (copied != OK) {
        return error_set(error, copied, told.code, "%s", told.message);
    }
    TRY(ledger_adopt_copy(env->db, arena, restore->roll.sink.id, &copy, missing, &adopted, error));
    CRASH_POINT(orphan_adopted);
    restore->report->adopted += adopted.adopted;
    restore->report->taken += adopted.taken;
    *found += adopted.found;
    return OK;
}

/* In order of received, then uid: so that seq follows the order in which they came. */
static err adopt_all(struct restore *restore, struct arena *arena, const struct map *missing,
                     i64 *found, struct error *error)
{
    struct ledger_segment *segments = NULL;
    size_t count = 0;
    TRY(ledger_list_orphans(restore->roll.env->db, arena, restore->roll.sink.id, ORPHANS_ALL,
                            STR(""), ADOPT_OBJECTS_MAX, &segments, &count, error));
    for (size_t i = 0; i < count; i++) {
        bool again = i > 0 && str_equal(segments[i].object_key, segments[i - 1].object_key);
        if (!again) {
            TRY(roll_keep_lease(&restore->roll, error));
            TRY(adopt_object(restore, &segments[i], missing, found, error));
        }
    }
    return OK;
}

err restore_adopt(struct restore *restore, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)ADOPT_SCRATCH_MIB_MAX * MIB);
    struct map *missing = map_create(arena, 64);
    if (missing == NULL) {
        return error_memory(error);
    }
    TRY(orphan_record(restore->roll.env, restore->roll.sink.id, ORPHAN_LOOK_ALL, error));
    TRY(orphan_check_chain(restore->roll.env, restore->roll.sink.id, ORPHANS_ALL, error));
    TRY(find_missing(restore, arena, missing, error));
    i64 found = 0;
    TRY(adopt_all(restore, arena, missing, &found, error));
    /* An orphan of the same bytes may be a later resend: it comes before an old verdict. */
    i64 settled = 0;
    TRY(restore_missing(restore, missing, &settled, error));
    restore->report->committed += settled;
    restore->report->missing = (i64)map_count(missing) - found - settled;
    return OK;
}
