#include "sink/recover.h"

#include "base/log.h"
#include "sink/roll_steps.h"

enum { RECOVER_PAGE = 100, RECOVER_SCRATCH_MIB_MAX = 64 };

/* A sink needs a look when something of it is half done. */
static bool is_half_done(const struct ledger_sink *sink)
{
    return sink->state == SINK_DELETING || (sink->state != SINK_DELETED && sink->has_live_plan);
}

static void recover_delete(const struct roll_env *env, str sink_id, struct recover_report *report)
{
    struct error told = {0};
    i64 discarded = 0;
    err deleted = sink_delete(env, sink_id, &discarded, &told);
    if (deleted == OK) {
        report->deleted++;
    } else {
        log_error("delete_not_finished", deleted, &told, sink_id);
    }
}

static void recover_plan(const struct roll_env *env, str sink_id, struct recover_report *report)
{
    struct error told = {0};
    enum roll_end end = ROLL_LATER;
    err rolled = roll_sink(env, sink_id, STR("recovery"), &end, &told);
    if (rolled != OK) {
        log_error("plan_not_settled", rolled, &told, sink_id);
    }
    if (end == ROLL_ENDED) {
        report->settled++;
    } else {
        report->waiting++;
    }
}

void recover_sink(const struct roll_env *env, const struct ledger_sink *sink,
                  struct recover_report *report)
{
    report->sinks++;
    if (!is_half_done(sink)) {
        return;
    }
    if (sink->state == SINK_DELETING) {
        recover_delete(env, sink->id, report);
    } else {
        recover_plan(env, sink->id, report);
    }
}

err recover_sinks(const struct roll_env *env, struct recover_report *out_report,
                  struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)RECOVER_SCRATCH_MIB_MAX * MIB);
    struct recover_report report = {0};
    char last[64] = {0};
    str after = STR("");
    size_t count = RECOVER_PAGE;
    TRY(recover_verdicts(env, STR(""), error));
    while (count == RECOVER_PAGE) {
        struct ledger_sink *sinks = NULL;
        arena_reset(arena);
        TRY(ledger_list_sinks(env->db, arena, STR(""), env->warehouse->name, false, after,
                              RECOVER_PAGE, &sinks, &count, error));
        for (size_t i = 0; i < count; i++) {
            if (env->stopping != NULL && env->stopping(env->stopping_context)) {
                return error_set(error, CANCELLED, ERROR_DRAINING, "the server is stopping");
            }
            recover_sink(env, &sinks[i], &report);
        }
        if (count > 0 && sinks[count - 1].id.size < sizeof(last)) {
            memcpy(last, sinks[count - 1].id.data, sinks[count - 1].id.size);
            after = (str){last, sinks[count - 1].id.size};
        }
    }
    *out_report = report;
    return OK;
}

/* ---- verdicts (O2) ---- */

static err recover_verdict(const struct roll_env *env, struct arena *arena,
                           const struct ledger_plan *plan, struct error *error)
{
    struct ledger_sink sink = {0};
    TRY(ledger_find_sink(env->db, arena, STR(""), plan->sink_id, &sink, error));
    if (!str_equal(sink.warehouse, env->warehouse->name)) {
        return OK;
    }
    return roll_write_verdict(env, arena, plan, error);
}

err recover_verdicts(const struct roll_env *env, str sink_id, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)RECOVER_SCRATCH_MIB_MAX * MIB);
    struct ledger_plan *plans = NULL;
    size_t count = 0;
    TRY(ledger_list_undoomed(env->db, arena, sink_id, &plans, &count, error));
    for (size_t i = 0; i < count; i++) {
        struct arena_mark mark = arena_mark(arena);
        TRY(recover_verdict(env, arena, &plans[i], error));
        arena_reset_to(arena, mark);
    }
    return OK;
}
