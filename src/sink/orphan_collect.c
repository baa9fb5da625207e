#include "sink/orphan.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/map.h"
#include "sink/chain.h"
#include "sink/sweep.h"

/* One pass of the collector over one sink, as a machine:
 *
 *                            ┌──────◄───── a page is done ─┐   ┌──◄── its next object
 *                            ▼                             │   ▼ │
 *   record ───────────────► take ────────────────────────► judge ┘
 *                            │                             │   ▲ │
 *                no old ones │             the last page's │   │ │ the first that was not
 *                            ▼              last object    │   │ ▼ looked up on the chain
 *          ┌─────────────────┴───────────◄─────────────────┘   check
 *          ▼
 *        sweep (where an object was voided) ──► prune ──► done
 *
 *   failed ◄── each: a seam failed or gave no answer. Nothing is lost by it: what was decided is
 *              durable, and the next pass begins anew.
 *
 * state    work                             what holds on entering it
 * record   orphan_record                    nothing: it may come after a crash anywhere
 * take     ledger_list_orphans, one page    every object in the store that no row refers to is
 *                                           recorded, and nothing that is gone
 * judge    ledger_judge_orphan, one object  the page's object was recorded 24 h ago by both clocks,
 *                                           or its sink is deleted; what stands before it is judged
 * check    orphan_check_chain               the object judged last is undecided: no look-up yet
 * sweep    sweep_objects                    each object to be deleted is void, durably (I6)
 * prune    ledger_prune_voids               nothing to be deleted is left from this pass
 *
 * One orphan's life is a row of the decision table: recorded ──► adopted | void | quarantined |
 * kept. It is decided in one ledger transaction, which reads all that decides. */

enum state {
    AT_RECORD,
    AT_TAKE,
    AT_JUDGE,
    AT_CHECK,
    AT_SWEEP,
    AT_PRUNE,
    /* the ends */
    AT_DONE,
    AT_FAILED,
};

static const char *const STATES[] = {"record", "take",  "judge", "check",
                                     "sweep",  "prune", "done",  "failed"};

#define TO(name) MACHINE_TO(AT_##name)
static const u32 EDGES[] = {
    [AT_RECORD] = TO(TAKE) | TO(FAILED),
    [AT_TAKE] = TO(JUDGE) | TO(SWEEP) | TO(PRUNE) | TO(FAILED),
    [AT_JUDGE] = TO(JUDGE) | TO(CHECK) | TO(TAKE) | TO(SWEEP) | TO(PRUNE) | TO(FAILED),
    [AT_CHECK] = TO(JUDGE) | TO(FAILED),
    [AT_SWEEP] = TO(PRUNE) | TO(FAILED),
    [AT_PRUNE] = TO(DONE) | TO(FAILED),
    [AT_FAILED] = 0,
};
#undef TO
static const struct machine MACHINE = {"orphan", STATES, EDGES, ARRAY_COUNT(EDGES)};
_Static_assert(ARRAY_COUNT(STATES) == ARRAY_COUNT(EDGES), "each state has a name");

/* What the states share. */
struct pass {
    const struct roll_env *env;
    struct arena *arena; /* of one page */
    str sink_id;
    struct ledger_segment *segments; /* the page, in order of their objects' keys */
    size_t count;
    size_t at; /* in judge and check: of the object */
    str after; /* the last page's last key */
    char after_bytes[STORE_KEY_MAX];
    bool checked; /* the chain was read */
    struct orphan_report report;
};

/* ---- the chain ---- */

/* A segment is explained by a plan that names it: or, after its row was forgotten, by one that
 * names the same batch under another uid (a resend, or a copy). One that names its id with other
 * bytes makes it a matter for a person (O16). An object that cannot be read is explained by its uid
 * alone. */
struct checks {
    const struct ledger_segment *segments;
    struct ledger_checked *checked; /* one per segment */
    u64 *next;                      /* of the same name; count: the last */
    struct map *places;             /* name -> its first segment */
    size_t count;
};

/* Of an object that cannot be read its uid; else the batch id. */
static str name_of(const struct ledger_segment *segment)
{
    return segment->batch_id.size > 0 ? segment->batch_id : id_uid_str(&segment->uid);
}

static void mark_named(struct checks *checks, str name, const struct ledger_batch *batch)
{
    const u64 *place = map_get(checks->places, name);
    for (u64 i = place == NULL ? checks->count : *place; i < checks->count; i = checks->next[i]) {
        const struct ledger_segment *segment = &checks->segments[i];
        bool same = segment->batch_id.size == 0 ||
                    memcmp(segment->body_hash, batch->body_hash, sizeof(batch->body_hash)) == 0;
        checks->checked[i].proven = checks->checked[i].proven || same;
        checks->checked[i].other = checks->checked[i].other || !same;
    }
}

static err mark_plan(void *context, const struct chain_plan *plan, struct error *error)
{
    struct checks *checks = context;
    (void)error;
    for (size_t i = 0; i < plan->count; i++) {
        mark_named(checks, plan->batches[i].batch_id, &plan->batches[i]);
        mark_named(checks, id_uid_str(&plan->batches[i].uid), &plan->batches[i]);
    }
    return OK;
}

static err open_checks(struct arena *arena, const struct ledger_segment *segments, size_t count,
                       struct checks *checks, struct error *error)
{
    *checks = (struct checks){
        .segments = segments,
        .checked = arena_array(arena, count, sizeof(*checks->checked)),
        .next = arena_array(arena, count, sizeof(*checks->next)),
        .places = map_create(arena, count),
        .count = count,
    };
    if (checks->places == NULL || checks->checked == NULL || checks->next == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        bool fresh = false;
        u64 *place = map_put(checks->places, name_of(&segments[i]), &fresh);
        if (place == NULL) {
            return error_memory(error);
        }
        checks->checked[i] = (struct ledger_checked){.uid = segments[i].uid,
                                                     .batch_id = segments[i].batch_id};
        checks->next[i] = fresh ? count : *place;
        *place = i;
    }
    return OK;
}

/* The proven chain ends in the ledger's last committed plan, which the property proved. */
err orphan_check_chain(const struct roll_env *env, str sink_id, enum ledger_orphans which,
                       struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)ORPHAN_SCRATCH_MIB_MAX * MIB);
    struct ledger_segment *segments = NULL;
    struct ledger_sink sink = {0};
    struct checks checks = {0};
    size_t count = 0;
    TRY(ledger_find_sink(env->db, arena, STR(""), sink_id, &sink, error));
    TRY(ledger_list_orphans(env->db, arena, sink_id, which, STR(""), ORPHAN_CHECKS_MAX, &segments,
                            &count, error));
    if (count == 0) {
        return OK;
    }
    TRY(open_checks(arena, segments, count, &checks, error));
    TRY(chain_visit_all(&env->warehouse->files, sink_id, sink.last_n, sink.last_plan_id, mark_plan,
                        &checks, error));
    return ledger_check_orphans(env->db, sink_id, checks.checked, checks.count, error);
}

/* ---- the decision table ---- */

static err judge_object(struct pass *pass, str key, bool *out_unchecked, struct error *error)
{
    const struct roll_env *env = pass->env;
    struct arena *arena = pass->arena;
    struct orphan_report *report = &pass->report;
    str sink_id = pass->sink_id;
    struct store_object object = {0};
    struct error told = {0};
    struct ledger_orphan_verdict verdict = {0};
    err there = store_head(&env->warehouse->files, arena, key, &object, &told);
    if (there == NOT_FOUND) {
        return ledger_forget_orphan(env->db, sink_id, key, error);
    }
    if (there != OK) {
        return error_set(error, there, told.code, "%s", told.message);
    }
    TRY(roll_close_sink(env, sink_id, error));
    TRY(ledger_judge_orphan(env->db, arena, sink_id, key, &verdict, error));
    CRASH_POINT(orphan_judged);
    *out_unchecked = verdict.unchecked;
    report->adopted += verdict.adopted;
    report->quarantined += verdict.quarantined;
    report->kept += verdict.kept;
    report->voided += verdict.voided ? 1 : 0;
    if (verdict.adopted > 0) {
        log_event(LOG_WARN, "orphan_adopted", LOG_S("sink", sink_id), LOG_S("object", key));
    }
    return OK;
}

/* ---- the machine ---- */

/* Behind the page that was taken last. */
static enum state state_after_page(const struct pass *pass)
{
    if (pass->count == ORPHAN_PAGE) {
        return AT_TAKE;
    }
    return pass->report.voided > 0 ? AT_SWEEP : AT_PRUNE;
}

static err take(struct pass *pass, enum state *out_next, struct error *error)
{
    arena_reset(pass->arena);
    TRY(ledger_list_orphans(pass->env->db, pass->arena, pass->sink_id, ORPHANS_OLD, pass->after,
                            ORPHAN_PAGE, &pass->segments, &pass->count, error));
    pass->at = 0;
    pass->report.segments += (i64)pass->count;
    if (pass->count > 0) {
        str last = pass->segments[pass->count - 1].object_key;
        memcpy(pass->after_bytes, last.data, last.size);
        pass->after = (str){pass->after_bytes, last.size};
    }
    *out_next = pass->count > 0 ? AT_JUDGE : state_after_page(pass);
    return OK;
}

static err judge(struct pass *pass, enum state *out_next, struct error *error)
{
    assert(pass->at < pass->count);
    struct arena_mark mark = arena_mark(pass->arena);
    str key = pass->segments[pass->at].object_key;
    bool unchecked = false;
    TRY(judge_object(pass, key, &unchecked, error));
    arena_reset_to(pass->arena, mark);
    if (unchecked && !pass->checked) {
        *out_next = AT_CHECK;
        return OK;
    }
    while (pass->at < pass->count && str_equal(pass->segments[pass->at].object_key, key)) {
        pass->at++;
    }
    *out_next = pass->at < pass->count ? AT_JUDGE : state_after_page(pass);
    return OK;
}

static err prune(struct pass *pass, struct error *error)
{
    instant before = 0;
    TRY(ledger_old_before(pass->env->db, SWEEP_PLANS_US, &before, error));
    return ledger_prune_voids(pass->env->db, before, error);
}

/* Does the state's work. *out_next is meant for OK only. */
static err step(struct pass *pass, enum state state, enum state *out_next, struct error *error)
{
    i64 deleted = 0;
    switch (state) {
    case AT_RECORD:
        *out_next = AT_TAKE;
        return orphan_record(pass->env, pass->sink_id, ORPHAN_LOOK_OLD, error);
    case AT_TAKE:
        return take(pass, out_next, error);
    case AT_JUDGE:
        return judge(pass, out_next, error);
    case AT_CHECK:
        *out_next = AT_JUDGE;
        pass->checked = true;
        return orphan_check_chain(pass->env, pass->sink_id, ORPHANS_UNCHECKED, error);
    case AT_SWEEP:
        *out_next = AT_PRUNE;
        return sweep_objects(pass->env, &deleted, error);
    case AT_PRUNE:
        *out_next = AT_DONE;
        return prune(pass, error);
    case AT_DONE:
    case AT_FAILED:
        assert(state < AT_DONE);
        break;
    }
    return OK;
}

err orphan_collect(const struct roll_env *env, str sink_id, struct orphan_report *out_report,
                   struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)ORPHAN_SCRATCH_MIB_MAX * MIB);
    struct pass pass = {.env = env, .arena = arena, .sink_id = sink_id, .after = STR("")};
    enum state state = AT_RECORD;
    err result = OK;
    while (state < AT_DONE) {
        enum state next = AT_FAILED;
        result = step(&pass, state, &next, error);
        state = machine_take(&MACHINE, state, result == OK ? next : AT_FAILED);
    }
    if (result == OK) {
        *out_report = pass.report;
    }
    return result;
}
