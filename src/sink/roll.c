#include "sink/roll.h"

#include "base/assert.h"
#include "base/planted.h"
#include "sink/batch.h"
#include "sink/restore.h"
#include "sink/roll_steps.h"

/*                       ┌──────────────── look ◄──────────────┐
 *          nothing      │  live plan?    no: claimed?         │ again
 *   end ◄───────────────┤     │ yes         │ no    │ yes     │
 *                       │     ▼             ▼       ▼         │
 *                       │   settle        claim   make plan ──┤
 *                       │     │             └─────────────────┤
 *   ended, later,       │     ▼                               │
 *   disabled ◄──────────┴─ commit / fence / void ─────────────┘
 *
 * look      reads the sink and its live plan from the ledger; everything else follows from them,
 *           so that a roll may be killed anywhere and begun again anywhere.
 * settle    roll_settle: by the plan's state and its pinned settings.
 * commit    roll_commit_plan (roll_commit.c), finish with it.
 * void      roll_void, roll_fence (roll_void.c).
 * claim     roll_claim (roll_claim.c).
 *
 * Each pass of the loop changes a durable state or ends the tick; LOOKS_MAX bounds it all the
 * same. */

enum { LOOKS_MAX = 64, LEASE_RENEW_SECONDS = 10 };

bool roll_stopping(const struct roll *roll)
{
    return roll->env->stopping != NULL && roll->env->stopping(roll->env->stopping_context);
}

err roll_keep_lease(struct roll *roll, struct error *error)
{
    i64 now = seam_monotonic_us(roll->env->seam);
    if (roll->lease_taken != 0 && now - roll->lease_taken < LEASE_RENEW_SECONDS * TIME_SECOND_US) {
        return OK;
    }
    TRY(ledger_take_lease(roll->env->db, roll->sink.id, roll->env->holder, error));
    roll->lease_taken = now;
    return OK;
}

err roll_read_sink(struct roll *roll, str sink_id, struct error *error)
{
    return ledger_find_sink(roll->env->db, roll->arena, STR(""), sink_id, &roll->sink, error);
}

err roll_disable(struct roll *roll, const char *reason, str detail, enum roll_step *out_step,
                 struct error *error)
{
    TRY(ledger_disable_sink(roll->env->db, roll->sink.id, str_from(reason), detail, error));
    *out_step = STEP_DISABLED;
    return OK;
}

/* ---- plan ---- */

static err make_plan(struct roll *roll, enum roll_step *out_step, struct error *error)
{
    struct uid id = id_uid_make(roll->env->seam);
    struct ledger_plan plan = {0};
    struct error ignored = {0};
    err made = ledger_make_plan(roll->env->db, roll->arena, roll->sink.id, id_uid_str(&id),
                                roll->sink.roll_bytes, roll->batches_max, roll->trigger, &plan,
                                &ignored);
    if (made == NOT_FOUND) {
        *out_step = STEP_NOTHING;
        return OK;
    }
    /* CONFLICT: another roller was faster, or the sink was stopped. UNKNOWN: perhaps made (P2). */
    if (made == OK || made == CONFLICT || made == UNKNOWN) {
        CRASH_POINT(plan_made);
        *out_step = made == OK ? STEP_AGAIN : STEP_LATER;
        return OK;
    }
    if (error != NULL) {
        *error = ignored;
    }
    return made;
}

/* Any two writers print the same bytes, so writing it again is harmless (P3). */
static err write_plan_object(struct roll *roll, const struct roll_plan *plan, struct error *error)
{
    str bytes;
    TRY(plan_print_object(roll->arena, roll->env->installation_id, &plan->row, plan->batches,
                          plan->batch_count, &bytes, error));
    str key = batch_plan_key(roll->arena, roll->sink.id, plan->row.n, plan->row.id);
    if (key.data == NULL) {
        return error_memory(error);
    }
    const struct store_meta meta = {.content_type = STR_INIT("application/json")};
    return store_put(&roll->env->warehouse->files, key, bytes, &meta, error);
}

/* ---- settle ---- */

/* A disabled sink starts no try; what the table proves is finished all the same. */
static err settle_disabled(struct roll *roll, struct roll_plan *plan, enum roll_step *out_step,
                           struct error *error)
{
    *out_step = STEP_NOTHING;
    if (plan->row.state == PLAN_OPEN) {
        return OK;
    }
    struct table table AUTO_TABLE = {0};
    enum roll_place place = ROLL_PLACE_GONE;
    TRY(roll_find_table(roll, &place, &table, error));
    if (place != ROLL_PLACE_TABLE || roll_judge(roll, &plan->row, &table) != PLAN_READS_COMMITTED) {
        return OK;
    }
    TRY(roll_finish(roll, plan, &table, error));
    *out_step = STEP_ENDED;
    return OK;
}

static err roll_settle(struct roll *roll, struct roll_plan *plan, enum roll_step *out_step,
                       struct error *error)
{
    if (roll->sink.state == SINK_DISABLED) {
        return settle_disabled(roll, plan, out_step, error);
    }
    if (plan->row.state == PLAN_VOIDING) {
        return roll_fence(roll, plan, NULL, 0, out_step, error);
    }
    if (plan->row.config_version != roll->sink.config_version) {
        return roll_void(roll, plan, "settings_changed", NULL, 0, out_step, error);
    }
    if (roll_stopping(roll)) {
        *out_step = STEP_LATER;
        return OK;
    }
    if (plan->row.state == PLAN_OPEN && !PLANTED(21)) {
        TRY(write_plan_object(roll, plan, error));
        CRASH_POINT(plan_object_durable);
    }
    return roll_commit_plan(roll, plan, out_step, error);
}

/* ---- recover ---- */

/* The table is ahead of the ledger, or a recover was stopped: it goes on before anything else. What
 * ledger_mismatch stopped waits for a person. */
static err recover(struct roll *roll, enum roll_step *out_step, struct error *error)
{
    struct restore_sink report = {0};
    if (roll->sink.state == SINK_DISABLED &&
        str_equal(roll->sink.state_reason, STR("ledger_mismatch"))) {
        return OK;
    }
    TRY(restore_flagged(roll->env, roll->arena, roll->sink.id, &report, error));
    *out_step = report.end == RESTORE_RECOVERED ? STEP_AGAIN : STEP_DISABLED;
    return OK;
}

/* ---- look ---- */

static err roll_look(struct roll *roll, str sink_id, enum roll_step *out_step, struct error *error)
{
    TRY(roll_read_sink(roll, sink_id, error));
    TRY(roll_keep_lease(roll, error));
    *out_step = STEP_NOTHING;
    bool alive = roll->sink.state == SINK_ACTIVE || roll->sink.state == SINK_DISABLED;
    if (!alive) {
        return OK;
    }
    if (roll->sink.recovering) {
        return recover(roll, out_step, error);
    }
    if (roll->sink.has_live_plan) {
        struct roll_plan plan = {0};
        struct error ignored = {0};
        err found = ledger_live_plan(roll->env->db, roll->arena, sink_id, &plan.row, &ignored);
        if (found == NOT_FOUND) {
            *out_step = STEP_AGAIN;
            return OK;
        }
        TRY(found);
        TRY(ledger_plan_batches(roll->env->db, roll->arena, plan.row.id, &plan.batches,
                                &plan.batch_count, error));
        if (plan.batch_count == 0) {
            *out_step = STEP_AGAIN; /* void since it was read: its batches are pending again */
            return OK;
        }
        return roll_settle(roll, &plan, out_step, error);
    }
    if (roll->sink.state != SINK_ACTIVE || roll->sink.due_batches == 0 || roll_stopping(roll)) {
        return OK;
    }
    if (roll->sink.claim_state != CLAIM_CLAIMED) {
        return roll_claim(roll, out_step, error);
    }
    return make_plan(roll, out_step, error);
}

static enum roll_end end_of(enum roll_step step)
{
    switch (step) {
    case STEP_GO:
    case STEP_AGAIN:
    case STEP_LATER:
        return ROLL_LATER;
    case STEP_ENDED:
        return ROLL_ENDED;
    case STEP_NOTHING:
        return ROLL_NOTHING;
    case STEP_DISABLED:
        return ROLL_DISABLED;
    }
    return ROLL_LATER;
}

static err roll_under_lease(struct roll *roll, str sink_id, enum roll_step *out_step,
                            struct error *error)
{
    for (int looks = 0; looks < LOOKS_MAX; looks++) {
        struct arena_mark mark = arena_mark(roll->arena);
        TRY(roll_look(roll, sink_id, out_step, error));
        arena_reset_to(roll->arena, mark);
        if (*out_step != STEP_AGAIN) {
            return OK;
        }
    }
    *out_step = STEP_LATER;
    return OK;
}

/* Best effort: the next roll tells its own story. */
static void note_error(const struct roll_env *env, str sink_id, const struct error *error)
{
    struct error ignored = {0};
    err noted = ledger_set_last_error(env->db, sink_id, str_from(error->message), &ignored);
    (void)noted;
}

static void release_lease(const struct roll_env *env, str sink_id)
{
    struct error ignored = {0};
    err released = ledger_release_lease(env->db, sink_id, env->holder, &ignored);
    (void)released;
}

err roll_sink(const struct roll_env *env, str sink_id, str trigger, enum roll_end *out_end,
              struct error *error)
{
    assert(env->warehouse != NULL);
    struct arena *arena AUTO_ARENA = arena_create((size_t)ROLL_ARENA_MIB_MAX * MIB);
    struct roll roll = {
        .env = env,
        .arena = arena,
        .trigger = trigger,
        .batches_max = PLAN_BATCHES_MAX,
        .began_at = seam_monotonic_us(env->seam),
    };
    struct error told = {0};
    *out_end = ROLL_LATER;
    err leased = ledger_take_lease(env->db, sink_id, env->holder, &told);
    if (leased == BUSY) {
        *out_end = ROLL_ELSEWHERE;
        return OK;
    }
    roll.lease_taken = roll.began_at;
    enum roll_step step = STEP_LATER;
    err result = leased == OK ? roll_under_lease(&roll, sink_id, &step, &told) : leased;
    if (result != OK) {
        note_error(env, sink_id, &told);
        step = STEP_LATER;
    }
    release_lease(env, sink_id);
    *out_end = end_of(step);
    if (result != OK && error != NULL) {
        *error = told;
    }
    return result;
}
