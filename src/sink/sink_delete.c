#include "sink/sink_delete.h"

#include "base/planted.h"

#include "sink/ledger_recover.h"
#include "sink/roll_steps.h"
#include "sink/settings.h"

/* Deleting a sink (8.2), over its states in ledger_sink.c:
 *
 *   begin_delete ─► settle the live plan ─► last fence, removes the property ─► end_delete
 *
 * Each step is found again from the ledger and the table, so that a repeated call goes on (D1,
 * D2). The plan's batches stay planned or pending until end_delete discards them; nothing of the
 * sink can land after its last fence. */

enum { DELETE_TRIES = 8, DELETE_APART_MS = 500 };

/* ---- the table's side ---- */

/* In a delete the table is fenced whatever the property says; only (n, id) wins. */
static err send_last_fence(struct roll *roll, const struct table *table, struct error *error)
{
    static const char *const removed[] = {METADATA_ROLL_PROPERTY};
    struct append fence = commit_begin(roll->env->seam);
    struct plan_property read = {0};
    str text = metadata_property(table->metadata, METADATA_ROLL_PROPERTY);
    bool ours = text.data != NULL && plan_parse_property(text, &read) &&
                str_equal(read.installation, roll->env->installation_id) &&
                str_equal(read.sink_id, roll->sink.id);
    fence.removed_properties = removed;
    fence.removed_property_count = ours ? 1 : 0;
    TRY(ledger_record_sink_fence(roll->env->db, roll->sink.id, fence.snapshot_id, error));
    CRASH_POINT(last_fence_recorded);
    json_t *request = NULL;
    TRY(commit_append(roll->arena, &roll->env->warehouse->locations, table, roll->env->seam, &fence,
                      &request, error));
    struct table after AUTO_TABLE = {0};
    roll_send(roll, request, NULL, &after);
    json_decref(request);
    CRASH_POINT(last_fence_sent);
    return OK;
}

/* ---- the live plan's side ---- */

/* STEP_GO: the plan needs its batches to stay away: attempted is voiding now, and is ended
 * together with the last fence. */
static err settle_plan(struct roll *roll, const struct table *table, enum roll_step *out_step,
                       struct error *error)
{
    struct roll_plan plan = {0};
    struct error told = {0};
    *out_step = STEP_GO;
    err found = ledger_live_plan(roll->env->db, roll->arena, roll->sink.id, &plan.row, &told);
    if (found == NOT_FOUND) {
        return OK;
    }
    if (found != OK) {
        return error_set(error, found, told.code, "%s", told.message);
    }
    TRY(ledger_plan_batches(roll->env->db, roll->arena, plan.row.id, &plan.batches,
                            &plan.batch_count, error));
    if (plan.row.state == PLAN_OPEN) {
        return ledger_void_open(roll->env->db, plan.row.id, STR("sink_deleted"), NULL, 0, error);
    }
    TRY(ledger_begin_void(roll->env->db, plan.row.id, STR("sink_deleted"), error));
    if (table == NULL) {
        /* There is no table that a late request could change. */
        return ledger_end_void(roll->env->db, plan.row.id, NULL, 0, error);
    }
    if (roll_judge(roll, &plan.row, table) == PLAN_READS_COMMITTED) {
        return roll_finish(roll, &plan, table, error);
    }
    if (!PLANTED(10) && !plan_fence_landed(plan.row.fences, table->metadata)) {
        struct append fence = commit_begin(roll->env->seam);
        TRY(ledger_record_fence(roll->env->db, plan.row.id, fence.snapshot_id, error));
        json_t *request = NULL;
        TRY(commit_append(roll->arena, &roll->env->warehouse->locations, table, roll->env->seam,
                          &fence, &request, error));
        struct table after AUTO_TABLE = {0};
        roll_send(roll, request, NULL, &after);
        json_decref(request);
        *out_step = STEP_AGAIN;
        return OK;
    }
    return ledger_end_void(roll->env->db, plan.row.id, NULL, 0, error);
}

/* STEP_ENDED: nothing of the sink can land any more. STEP_AGAIN: look again. */
static err delete_once(struct roll *roll, enum roll_step *out_step, struct error *error)
{
    struct table table AUTO_TABLE = {0};
    enum roll_place place = ROLL_PLACE_GONE;
    TRY(roll_read_sink(roll, roll->sink.id, error));
    if (roll->sink.claim_state == CLAIM_NONE) {
        *out_step = STEP_ENDED;
        return OK;
    }
    TRY(roll_find_table(roll, &place, &table, error));
    TRY(settle_plan(roll, place == ROLL_PLACE_TABLE ? &table : NULL, out_step, error));
    if (*out_step != STEP_GO) {
        return OK;
    }
    bool landed = PLANTED(10) || place != ROLL_PLACE_TABLE ||
                  plan_fence_landed(roll->sink.fences, table.metadata);
    *out_step = landed ? STEP_ENDED : STEP_AGAIN;
    return landed ? OK : send_last_fence(roll, &table, error);
}

static err fence_table(struct roll *roll, struct error *error)
{
    for (int tries = 0; tries < DELETE_TRIES; tries++) {
        enum roll_step step = STEP_AGAIN;
        struct arena_mark mark = arena_mark(roll->arena);
        str sink_id = roll->sink.id;
        TRY(roll_keep_lease(roll, error));
        TRY(delete_once(roll, &step, error));
        roll->sink.id = sink_id;
        arena_reset_to(roll->arena, mark);
        if (step == STEP_ENDED) {
            return OK;
        }
        if (tries > 1) {
            seam_wait_us(roll->env->seam, DELETE_APART_MS * 1000);
        }
    }
    return error_set(error, BUSY, ERROR_UNAVAILABLE,
                     "the table's last fence has not landed yet; delete again");
}

/* ---- delete ---- */

/* Waits for a roll of another worker to let go of the lease; at most as long as a lease lasts. */
static err take_lease(struct roll *roll, struct error *error)
{
    enum { LEASE_LOOKS = 40 };
    for (int looks = 0; looks < LEASE_LOOKS; looks++) {
        struct error told = {0};
        err taken = ledger_take_lease(roll->env->db, roll->sink.id, roll->env->holder, &told);
        if (taken != BUSY) {
            roll->lease_taken = seam_monotonic_us(roll->env->seam);
            return taken == OK ? OK : error_set(error, taken, told.code, "%s", told.message);
        }
        seam_wait_us(roll->env->seam, TIME_SECOND_US);
    }
    return error_set(error, BUSY, ERROR_UNAVAILABLE, "a roll of the sink is under way");
}

/* The store knows before the ledger does: an older copy of the ledger learns it from there (O14).
 */
static err write_state(const struct roll_env *env, str sink_id, enum settings_state state,
                       struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)MIB);
    struct ledger_sink sink = {0};
    TRY(ledger_find_sink(env->db, arena, STR(""), sink_id, &sink, error));
    return settings_write(&env->warehouse->files, env->seam, arena, env->installation_id, &sink,
                          state, NULL, error);
}

err sink_delete_begin(const struct roll_env *env, str sink_id, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)MIB);
    struct ledger_sink sink = {0};
    TRY(ledger_find_sink(env->db, arena, STR(""), sink_id, &sink, error));
    TRY(roll_close_sink(env, sink_id, error));
    if (sink.recovering && sink.state == SINK_DISABLED) {
        TRY(ledger_stop_recover(env->db, sink.id, sink.state_reason, STR("the sink is deleted"),
                                LEDGER_STOP_CLEAR_FLAG, error));
        sink.recovering = false;
    }
    bool begins = sink.state == SINK_ACTIVE || sink.state == SINK_DISABLED;
    if (begins && !sink.recovering) {
        TRY(write_state(env, sink.id, SETTINGS_DELETING, error));
        CRASH_POINT(deleting_written);
    }
    return ledger_begin_delete(env->db, sink_id, error);
}

static err delete_under_lease(struct roll *roll, i64 *out_discarded_batches, struct error *error)
{
    TRY(fence_table(roll, error));
    CRASH_POINT(last_fence_landed);
    TRY(write_state(roll->env, roll->sink.id, SETTINGS_DELETED, error));
    CRASH_POINT(deleted_written);
    TRY(ledger_end_delete(roll->env->db, roll->sink.id, out_discarded_batches, error));
    CRASH_POINT(sink_deleted);
    return OK;
}

err sink_delete(const struct roll_env *env, str sink_id, i64 *out_discarded_batches,
                struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)ROLL_ARENA_MIB_MAX * MIB);
    struct roll roll = {
        .env = env,
        .arena = arena,
        .sink = {.id = sink_id},
        .began_at = seam_monotonic_us(env->seam),
    };
    TRY(sink_delete_begin(env, sink_id, error));
    CRASH_POINT(sink_deleting);
    TRY(take_lease(&roll, error));
    err result = delete_under_lease(&roll, out_discarded_batches, error);
    struct error ignored = {0};
    err released = ledger_release_lease(env->db, sink_id, env->holder, &ignored);
    (void)released;
    return result;
}
