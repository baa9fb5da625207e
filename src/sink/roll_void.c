#include "base/assert.h"
#include "base/planted.h"
#include "sink/roll_steps.h"

/* Voids and fences (section 5). The picture of the plan's states is in ledger_plan.c.
 *
 * A fence works because no try can start after the swap to voiding, every older request asserts a
 * base older than the fence, and the fence moves main and the sequence number: none of them can
 * land. It has landed only when a load or a 2xx shows a snapshot id that the plan's row records. */

enum { FENCE_TRIES = 5, FENCE_APART_MS = 500 };

/* ---- fences ---- */

/* `fences` is kept in step with what the ledger records. */
static err remember_fence(struct roll *roll, struct roll_plan *plan, i64 snapshot_id,
                          struct error *error)
{
    TRY(ledger_record_fence(roll->env->db, plan->row.id, snapshot_id, error));
    str before = plan->row.fences;
    plan->row.fences = before.data == NULL
                           ? str_format(roll->arena, "[%lld]", (long long)snapshot_id)
                           : str_format(roll->arena, "%.*s,%lld]",
                                        STR_ARG(str_slice(before, 0, before.size - 1)),
                                        (long long)snapshot_id);
    return plan->row.fences.data == NULL ? error_memory(error) : OK;
}

static err send_fence(struct roll *roll, struct roll_plan *plan, const struct table *table,
                      struct error *error)
{
    struct append fence = commit_begin(roll->env->seam);
    TRY(remember_fence(roll, plan, fence.snapshot_id, error));
    CRASH_POINT(fence_recorded);
    json_t *request = NULL;
    TRY(commit_append(roll->arena, &roll->env->warehouse->locations, table, roll->env->seam, &fence,
                      &request, error));
    struct table after AUTO_TABLE = {0};
    roll_send(roll, request, NULL, &after);
    json_decref(request);
    CRASH_POINT(fence_sent);
    return OK;
}

static err end_void(struct roll *roll, struct roll_plan *plan, const struct ledger_hold *holds,
                    size_t hold_count, enum roll_step *out_step, struct error *error)
{
    CRASH_POINT(fence_landed);
    TRY(ledger_end_void(roll->env->db, plan->row.id, holds, hold_count, error));
    plan->row.state = PLAN_VOID;
    *out_step = STEP_AGAIN;
    return OK;
}

/* One look, and one fence if none has landed. STEP_GO: look again. The landing is always seen by a
 * load, so that property and fence are read from one version of the table. */
static err fence_once(struct roll *roll, struct roll_plan *plan, const struct ledger_hold *holds,
                      size_t hold_count, enum roll_step *out_step, struct error *error)
{
    struct table table AUTO_TABLE = {0};
    enum roll_place place = ROLL_PLACE_GONE;
    TRY(roll_find_table(roll, &place, &table, error));
    if (place != ROLL_PLACE_TABLE) {
        return roll_disable(roll, place == ROLL_PLACE_GONE ? "table_gone" : "table_replaced",
                            STR("the table is gone while a roll is being taken back"), out_step,
                            error);
    }
    enum plan_reading reading = roll_judge(roll, &plan->row, &table);
    switch (reading) {
    case PLAN_READS_COMMITTED:
        TRY(roll_finish(roll, plan, &table, error));
        *out_step = STEP_ENDED;
        return OK;
    case PLAN_READS_AHEAD:
    case PLAN_READS_OTHER:
        return roll_mismatch(roll, reading, &table, out_step, error);
    case PLAN_READS_NOT_COMMITTED:
        break;
    }
    TRY(roll_match(roll, error));
    if (plan_fence_landed(plan->row.fences, table.metadata) || PLANTED(24) ||
        PLANTED_ASK(26, roll, plan, &table)) {
        return end_void(roll, plan, holds, hold_count, out_step, error);
    }
    *out_step = STEP_GO;
    return send_fence(roll, plan, &table, error);
}

err roll_fence(struct roll *roll, struct roll_plan *plan, const struct ledger_hold *holds,
               size_t hold_count, enum roll_step *out_step, struct error *error)
{
    assert(plan->row.state == PLAN_VOIDING);
    for (int tries = 0; tries <= FENCE_TRIES; tries++) {
        TRY(roll_keep_lease(roll, error));
        TRY(fence_once(roll, plan, holds, hold_count, out_step, error));
        if (*out_step != STEP_GO) {
            return OK;
        }
        if (tries > 0) {
            seam_wait_us(roll->env->seam, FENCE_APART_MS * 1000);
        }
    }
    *out_step = STEP_LATER;
    return OK;
}

/* ---- voids ---- */

err roll_void(struct roll *roll, struct roll_plan *plan, const char *reason,
              const struct ledger_hold *holds, size_t hold_count, enum roll_step *out_step,
              struct error *error)
{
    if (plan->row.state == PLAN_OPEN) {
        struct error lost = {0};
        err voided = ledger_void_open(roll->env->db, plan->row.id, str_from(reason), holds,
                                      hold_count, &lost);
        /* CONFLICT: another roller attempted it meanwhile; the next look knows. */
        *out_step = STEP_AGAIN;
        return voided == CONFLICT ? OK
               : voided == OK     ? OK
                                  : error_set(error, voided, lost.code, "%s", lost.message);
    }
    TRY(ledger_begin_void(roll->env->db, plan->row.id, str_from(reason), error));
    CRASH_POINT(plan_voiding);
    plan->row.state = PLAN_VOIDING;
    return roll_fence(roll, plan, holds, hold_count, out_step, error);
}

/* ---- all rejected (5.3) ---- */

err roll_outcome(struct roll *roll, const struct plan_counts *counts,
                 struct ledger_outcome *out_outcome, struct error *error)
{
    struct ledger_count *reasons = arena_array(roll->arena, REJECT_REASON_COUNT, sizeof(*reasons));
    if (reasons == NULL) {
        return error_memory(error);
    }
    size_t reason_count = 0;
    for (size_t i = 0; i < REJECT_REASON_COUNT; i++) {
        if (counts->reasons[i] > 0) {
            reasons[reason_count++] = (struct ledger_count){
                .name = reject_reason_text((enum reject_reason)i), .count = counts->reasons[i]};
        }
    }
    *out_outcome = (struct ledger_outcome){
        .verdicts = counts->verdicts,
        .verdict_count = counts->verdict_count,
        .reasons = reasons,
        .reason_count = reason_count,
        .recent = counts->recent,
        .recent_count = counts->recent_count,
        .roll_us = seam_monotonic_us(roll->env->seam) - roll->began_at,
    };
    return OK;
}

err roll_write_verdict(const struct roll_env *env, struct arena *arena,
                       const struct ledger_plan *plan, struct error *error)
{
    struct ledger_batch *batches = NULL;
    size_t count = 0;
    TRY(ledger_plan_batches(env->db, arena, plan->id, &batches, &count, error));
    str bytes;
    TRY(plan_print_void(arena, env->installation_id, plan, batches, count, &bytes, error));
    str key = plan_void_key(arena, plan->sink_id, plan->n, plan->id);
    if (key.data == NULL) {
        return error_memory(error);
    }
    const struct store_meta meta = {.content_type = STR_INIT("application/json")};
    TRY(store_put(&env->warehouse->files, key, bytes, &meta, error));
    CRASH_POINT(verdict_durable);
    return ledger_doom_rejected(env->db, plan->id, error);
}

err roll_void_rejected(struct roll *roll, const struct roll_plan *plan,
                       const struct plan_counts *counts, struct error *error)
{
    assert(plan->row.state == PLAN_OPEN);
    assert(counts->rows_committed == 0);
    struct ledger_outcome outcome = {0};
    TRY(roll_outcome(roll, counts, &outcome, error));
    TRY(ledger_void_rejected(roll->env->db, plan->row.id, &outcome, error));
    CRASH_POINT(plan_void_rejected);
    /* The plan has ended whatever becomes of this; recover_verdicts does it again. */
    return roll_write_verdict(roll->env, roll->arena, &plan->row, error);
}
