#include "sink/roll.h"

#include "base/assert.h"
#include "base/machine.h"
#include "base/planted.h"
#include "sink/batch.h"
#include "sink/intake_early.h"
#include "sink/restore.h"
#include "sink/roll_steps.h"

/* One roll of one sink, as a machine. Every state does one straight-line step over the seams; all
 * that a later state needs is durable by then, so that a roll may be killed in any state and begun
 * again in look.
 *
 *                 ┌──────────────────────────────◄───────────────────────────────┐
 *                 ▼                                                              │
 *               look ──┬─ recovering ───────────► recover ───────────────────────┤
 *    ▲            │    ├─ not claimed yet ──────► claim ─────────────────────────┤ look again
 *    └────────────┘    ├─ batches are due ──────► plan ──────────────────────────┤
 *      the live plan   └─ a live plan:                                           │
 *      is gone              voiding ────────────► fence ─────────────────────────┤
 *                           settings changed ───► void ──────────────────────────┤
 *                           attempted ──────────► commit ────────────────────────┤
 *                           open ──► store ─────► commit ────────────────────────┘
 *                           sink is disabled ───► prove
 *
 *   nothing    ◄── look (nothing is due, or the sink may not roll), plan, prove
 *   ended      ◄── commit, fence, void, prove
 *   disabled   ◄── recover, claim, commit, fence, void
 *   later      ◄── each: a seam failed or gave no answer, a stop is wanted, the tries are used up
 *
 * state     work                                  what holds on entering it
 * look      roll_read_sink, ledger_live_plan      nothing: it may come after a crash anywhere
 * recover   restore_flagged                       the sink is recovering; no plan is made or tried
 * claim     roll_claim (roll_claim.c)             active, due, claim not finished, no live plan
 * plan      ledger_make_plan                      active, due, claimed, no live plan (I9)
 * prove     settle what the property proves       disabled, the plan attempted or voiding
 * fence     roll_fence (roll_void.c)              the plan is voiding: no new try can start
 * void      roll_void (roll_void.c)               the plan is open or attempted, its settings old
 * store     the plan object                       the plan is open, made for today's settings
 * commit    roll_commit_plan (roll_commit.c)      open or attempted; its object waits in the group,
 *                                                 whose end comes before attempted (I7, P3)
 * nothing, ended, disabled, later                 the tick is over
 *
 * Each way back to look changed a durable state, or saw that another roller did; LOOKS_MAX bounds
 * them all the same. */

enum { LOOKS_MAX = 64, LEASE_RENEW_SECONDS = 10, GROUP_KIB_MAX = 512 };

enum state {
    AT_LOOK,
    AT_RECOVER,
    AT_CLAIM,
    AT_PLAN,
    AT_PROVE,
    AT_FENCE,
    AT_VOID,
    AT_STORE,
    AT_COMMIT,
    /* the ends */
    AT_NOTHING,
    AT_ENDED,
    AT_DISABLED,
    AT_LATER,
};

static const char *const STATES[] = {"look",  "recover",  "claim", "plan",   "prove",
                                     "fence", "void",     "store", "commit", "nothing",
                                     "ended", "disabled", "later"};

#define TO(name) MACHINE_TO(AT_##name)
static const u32 EDGES[] = {
    [AT_LOOK] = TO(LOOK) | TO(RECOVER) | TO(CLAIM) | TO(PLAN) | TO(PROVE) | TO(FENCE) | TO(VOID) |
                TO(STORE) | TO(COMMIT) | TO(NOTHING) | TO(LATER),
    [AT_RECOVER] = TO(LOOK) | TO(DISABLED) | TO(LATER),
    [AT_CLAIM] = TO(LOOK) | TO(DISABLED) | TO(LATER),
    [AT_PLAN] = TO(LOOK) | TO(NOTHING) | TO(LATER),
    [AT_PROVE] = TO(NOTHING) | TO(ENDED) | TO(LATER),
    [AT_FENCE] = TO(LOOK) | TO(ENDED) | TO(DISABLED) | TO(LATER),
    [AT_VOID] = TO(LOOK) | TO(ENDED) | TO(DISABLED) | TO(LATER),
    [AT_STORE] = TO(COMMIT) | TO(LATER),
    [AT_COMMIT] = TO(LOOK) | TO(ENDED) | TO(DISABLED) | TO(LATER),
    [AT_LATER] = 0,
};
#undef TO
static const struct machine MACHINE = {"roll", STATES, EDGES, ARRAY_COUNT(EDGES)};
_Static_assert(ARRAY_COUNT(STATES) == ARRAY_COUNT(EDGES), "each state has a name");

/* What the states share. */
struct turn {
    struct roll *roll;
    str sink_id;
    struct arena_mark mark;
    int looks;
    struct roll_plan plan; /* in prove, fence, void, store and commit: the live one */
};

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
    assert(plan->row.state == PLAN_OPEN);
    if (PLANTED(21)) {
        return OK;
    }
    TRY(plan_print_object(roll->arena, roll->env->installation_id, &plan->row, plan->batches,
                          plan->batch_count, &bytes, error));
    str key = batch_plan_key(roll->arena, roll->sink.id, plan->row.n, plan->row.id);
    if (key.data == NULL) {
        return error_memory(error);
    }
    const struct store_meta meta = {.content_type = STR_INIT("application/json")};
    TRY(store_group_put(&roll->env->warehouse->files, roll->group, key, &bytes, 1, &meta, error));
    CRASH_POINT(plan_object_written);
    return OK;
}

/* ---- prove ---- */

/* A disabled sink starts no try; what the table proves is finished all the same. */
static err prove(struct roll *roll, struct roll_plan *plan, enum roll_step *out_step,
                 struct error *error)
{
    assert(plan->row.state == PLAN_ATTEMPTED || plan->row.state == PLAN_VOIDING);
    *out_step = STEP_NOTHING;
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

/* ---- recover ---- */

/* The table is ahead of the ledger, or a recover was stopped: it goes on before anything else. */
static err recover(struct roll *roll, enum roll_step *out_step, struct error *error)
{
    struct restore_sink report = {0};
    TRY(restore_flagged(roll->env, roll->arena, roll->sink.id, &report, error));
    *out_step = report.end == RESTORE_RECOVERED ? STEP_AGAIN : STEP_DISABLED;
    return OK;
}

/* ---- look ---- */

/* The live plan of an active or disabled sink. */
static enum state plan_state(const struct roll *roll, const struct ledger_plan *plan)
{
    if (roll->sink.state == SINK_DISABLED) {
        return plan->state == PLAN_OPEN ? AT_NOTHING : AT_PROVE;
    }
    if (plan->state == PLAN_VOIDING) {
        return AT_FENCE;
    }
    if (plan->config_version != roll->sink.config_version) {
        return AT_VOID;
    }
    if (roll_stopping(roll)) {
        return AT_LATER;
    }
    return plan->state == PLAN_OPEN ? AT_STORE : AT_COMMIT;
}

static err look_at_plan(struct turn *turn, enum state *out_next, struct error *error)
{
    struct roll *roll = turn->roll;
    struct roll_plan plan = {0};
    struct error ignored = {0};
    *out_next = AT_LOOK;
    err found = ledger_live_plan(roll->env->db, roll->arena, roll->sink.id, &plan.row, &ignored);
    if (found != OK) {
        return found == NOT_FOUND ? OK
                                  : error_set(error, found, ignored.code, "%s", ignored.message);
    }
    TRY(ledger_plan_batches(roll->env->db, roll->arena, plan.row.id, &plan.batches,
                            &plan.batch_count, error));
    if (plan.batch_count == 0) {
        return OK; /* void since it was read: its batches are pending again */
    }
    turn->plan = plan;
    *out_next = plan_state(roll, &plan.row);
    return OK;
}

/* A sink that recovers: what ledger_mismatch stopped waits for a person. */
static enum state recovering_state(const struct ledger_sink *sink)
{
    bool waits = sink->state == SINK_DISABLED &&
                 str_equal(sink->state_reason, STR("ledger_mismatch"));
    return waits ? AT_NOTHING : AT_RECOVER;
}

static err look(struct turn *turn, enum state *out_next, struct error *error)
{
    struct roll *roll = turn->roll;
    if (turn->looks++ == LOOKS_MAX) {
        *out_next = AT_LATER;
        return OK;
    }
    store_group_drop(roll->group);
    arena_reset_to(roll->arena, turn->mark);
    TRY(roll_read_sink(roll, turn->sink_id, error));
    TRY(roll_keep_lease(roll, error));
    *out_next = AT_NOTHING;
    bool alive = roll->sink.state == SINK_ACTIVE || roll->sink.state == SINK_DISABLED;
    if (!alive) {
        return OK;
    }
    if (roll->sink.recovering) {
        *out_next = recovering_state(&roll->sink);
        return OK;
    }
    if (roll->sink.has_live_plan) {
        return look_at_plan(turn, out_next, error);
    }
    if (roll->sink.state != SINK_ACTIVE || roll->sink.due_batches == 0 || roll_stopping(roll)) {
        return OK;
    }
    *out_next = roll->sink.claim_state == CLAIM_CLAIMED ? AT_PLAN : AT_CLAIM;
    return OK;
}

/* ---- the machine ---- */

/* Where what a state's work left to do leads. */
static enum state state_after(enum roll_step step)
{
    switch (step) {
    case STEP_GO:
        return AT_COMMIT;
    case STEP_AGAIN:
        return AT_LOOK;
    case STEP_ENDED:
        return AT_ENDED;
    case STEP_NOTHING:
        return AT_NOTHING;
    case STEP_LATER:
        return AT_LATER;
    case STEP_DISABLED:
        return AT_DISABLED;
    }
    return AT_LATER;
}

/* Does the state's work. *out_next is meant for OK only. */
static err step(struct turn *turn, enum state state, enum state *out_next, struct error *error)
{
    struct roll *roll = turn->roll;
    struct roll_plan *plan = &turn->plan;
    enum roll_step left = STEP_LATER;
    switch (state) {
    case AT_LOOK:
        return look(turn, out_next, error);
    case AT_RECOVER:
        TRY(recover(roll, &left, error));
        break;
    case AT_CLAIM:
        TRY(roll_claim(roll, &left, error));
        break;
    case AT_PLAN:
        TRY(make_plan(roll, &left, error));
        break;
    case AT_PROVE:
        TRY(prove(roll, plan, &left, error));
        break;
    case AT_FENCE:
        TRY(roll_fence(roll, plan, NULL, 0, &left, error));
        break;
    case AT_VOID:
        TRY(roll_void(roll, plan, "settings_changed", NULL, 0, &left, error));
        break;
    case AT_STORE:
        TRY(write_plan_object(roll, plan, error));
        left = STEP_GO;
        break;
    case AT_COMMIT:
        TRY(roll_commit_plan(roll, plan, &left, error));
        break;
    case AT_NOTHING:
    case AT_ENDED:
    case AT_DISABLED:
    case AT_LATER:
        assert(state < AT_NOTHING);
        break;
    }
    *out_next = state_after(left);
    return OK;
}

static err roll_under_lease(struct roll *roll, str sink_id, enum state *out_end,
                            struct error *error)
{
    struct turn turn = {.roll = roll, .sink_id = sink_id, .mark = arena_mark(roll->arena)};
    enum state state = AT_LOOK;
    err result = OK;
    while (state < AT_NOTHING) {
        enum state next = AT_LATER;
        result = step(&turn, state, &next, error);
        state = machine_take(&MACHINE, state, result == OK ? next : AT_LATER);
    }
    *out_end = state;
    return result;
}

static enum roll_end end_of(enum state state)
{
    switch (state) {
    case AT_ENDED:
        return ROLL_ENDED;
    case AT_NOTHING:
        return ROLL_NOTHING;
    case AT_DISABLED:
        return ROLL_DISABLED;
    case AT_LOOK:
    case AT_RECOVER:
    case AT_CLAIM:
    case AT_PLAN:
    case AT_PROVE:
    case AT_FENCE:
    case AT_VOID:
    case AT_STORE:
    case AT_COMMIT:
    case AT_LATER:
        break;
    }
    return ROLL_LATER;
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

#define CLOSE_LOOK_US      ((i64)200)
#define CLOSE_LOOK_LAST_US ((i64)200000)
#define CLOSE_WAIT_US      ((i64)10 * TIME_SECOND_US)

err roll_close_sink(const struct roll_env *env, str sink_id, struct error *error)
{
    i64 left = CLOSE_WAIT_US;
    i64 look = CLOSE_LOOK_US;
    if (PLANTED(34)) {
        return OK;
    }
    intake_early_close_sink(env->early, sink_id);
    while (intake_early_count(env->early, sink_id) > 0) {
        if (left <= 0 || (env->stopping != NULL && env->stopping(env->stopping_context))) {
            return error_set(error, BUSY, ERROR_UNAVAILABLE,
                             "accepted batches of the sink are not in the ledger yet");
        }
        seam_wait_us(env->seam, look);
        left -= look;
        look = num_min_i64(2 * look, CLOSE_LOOK_LAST_US);
    }
    return OK;
}

err roll_sink(const struct roll_env *env, str sink_id, str trigger, enum roll_end *out_end,
              struct error *error)
{
    assert(env->warehouse != NULL);
    struct arena *arena AUTO_ARENA = arena_create((size_t)ROLL_ARENA_MIB_MAX * MIB);
    struct arena *held AUTO_ARENA = arena_create((size_t)GROUP_KIB_MAX * KIB);
    struct store_group group = {.arena = held};
    struct roll roll = {
        .env = env,
        .arena = arena,
        .group = &group,
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
    enum state end = AT_LATER;
    err result = leased == OK ? roll_under_lease(&roll, sink_id, &end, &told) : leased;
    store_group_drop(&group);
    if (result != OK) {
        note_error(env, sink_id, &told);
    }
    release_lease(env, sink_id);
    *out_end = end_of(end);
    if (result != OK && error != NULL) {
        *error = told;
    }
    return result;
}
