#include "sim.h"

#include "base/assert.h"
#include "sink/incarnation.h"
#include "sink/orphan.h"
#include "sink/policy.h"
#include "sink/sweep.h"
#include "table/catalog_restore.h"

#include <stdio.h>

/* A roller process: what server/roller does with its threads, by one coroutine. */

static void sweep(const struct roll_env *env, const struct ledger_sink *sink)
{
    i64 swept = 0;
    err results[] = {
        sweep_held(env, sink->id, NULL),
        sweep_rejects(env, sink->id, &swept, NULL),
        sweep_plan_objects(env, sink->id, &swept, NULL),
    };
    (void)results;
}

static void sweep_all(struct sim_process *process, const struct roll_env *env, i64 *running_was)
{
    i64 deleted = 0;
    i64 now = seam_monotonic_us(&process->seam);
    err result = OK;
    /* Running time is counted once an installation. */
    if (process->slot == 0) {
        result = ledger_add_running(&process->db, now - *running_was, NULL);
        *running_was = result == OK ? now : *running_was;
        result = sweep_rows(&process->db, NULL);
    }
    result = sweep_objects(env, &deleted, NULL);
    result = recover_verdicts(env, STR(""), NULL);
    (void)result;
}

/* False: nothing is to be done, now or later, as long as the ledger stays as it is. */
static bool roll_due(const struct roll_env *env, const struct ledger_sink *sink)
{
    const struct policy_limits limits = policy_limits_default();
    struct recover_report report = {0};
    if (sink->state == SINK_DELETING) {
        recover_sink(env, sink, &report);
        return true;
    }
    struct policy_verdict verdict = policy_judge(sink, &limits);
    if (verdict.trigger == POLICY_NONE) {
        return sink->due_batches > 0 || sink->has_live_plan;
    }
    enum roll_end end = ROLL_NOTHING;
    struct error error = {0};
    err rolled = roll_sink(env, sink->id, policy_trigger_text(verdict.trigger), &end, &error);
    sim_trace("roll of %.*s: %s, end %d %s", STR_ARG(sink->id), err_text(rolled), (int)end,
              error.message);
    return true;
}

/* The quiet end is to show that nothing is left to do for rolls. */
static void merge(const struct roll_env *env, const struct ledger_sink *sink)
{
    struct error error = {0};
    if (sim->faults && sim_part(SIM_MERGES) && sim_below(2) == 0) {
        err merged = roll_merge(env, sink->id, &error);
        sim_trace("merge of %.*s: %s %s", STR_ARG(sink->id), err_text(merged), error.message);
    }
}

/* False: another tick would do nothing either, as long as the ledger stays as it is. */
static bool tick(const struct roll_env *env, bool sweeping)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    struct ledger_sink *sinks = NULL;
    size_t count = 0;
    err listed = ledger_list_sinks(env->db, arena, STR(""), STR("w"), true, STR(""), 100, &sinks,
                                   &count, NULL);
    bool busy = listed != OK;
    for (size_t i = 0; listed == OK && i < count && !sim_dead(); i++) {
        if (sinks[i].state != SINK_DELETED) {
            busy = roll_due(env, &sinks[i]) || busy;
            merge(env, &sinks[i]);
        }
        if (sweeping) {
            sweep(env, &sinks[i]);
        }
    }
    return busy;
}

/* ---- the collector: a process of its own, or the embedded one's ---- */

static void collect(const struct roll_env *env)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    struct ledger_sink *sinks = NULL;
    size_t count = 0;
    err listed = ledger_list_sinks(env->db, arena, STR(""), STR("w"), true, STR(""), 100, &sinks,
                                   &count, NULL);
    for (size_t i = 0; listed == OK && i < count && !sim_dead(); i++) {
        struct orphan_report report = {0};
        struct error error = {0};
        err collected = orphan_collect(env, sinks[i].id, &report, &error);
        if (collected != OK || report.segments > 0) {
            sim_trace("collector: %.*s: %s %s %lld seen, %lld adopted, %lld voided, %lld in "
                      "quarantine, %lld kept",
                      STR_ARG(sinks[i].id), err_text(collected), error.message,
                      (long long)report.segments, (long long)report.adopted,
                      (long long)report.voided, (long long)report.quarantined,
                      (long long)report.kept);
        }
    }
}

static void run_collector(struct actor *actor)
{
    struct roll_env env = sim_roll_env(actor->process, actor->process->name);
    i64 apart = num_max_i64(SIM_HOUR, 2 * sim->tick_us);
    while (!sim_dead() && !sim->stopping) {
        sim_wait(apart / 2 + (i64)sim_below((u64)apart));
        if (!sim_dead() && !sim->stopping) {
            collect(&env);
        }
    }
}

void sim_collector_open(struct sim_process *process)
{
    (void)sim_spawn("collector", sim_hash(15, (u64)process->incarnation, 0), process, run_collector,
                    NULL, sim_between(0, 1000000));
}

/* ---- the roller ---- */

static struct incarnation incarnation_of(struct sim_process *process,
                                         const struct warehouse **warehouse)
{
    *warehouse = &process->warehouse;
    return (struct incarnation){.db = &process->db,
                                .warehouses = warehouse,
                                .count = 1,
                                .installation_id = sim->installation};
}

/* Before anything is served the embedded tables' hints are compared with their pointers. */
static void start(struct sim_process *process, const struct roll_env *env)
{
    struct catalog_local *local = catalog_local_of(&process->warehouse.catalog);
    struct catalog_restored restored = {0};
    struct recover_report report = {0};
    while (local != NULL && !sim_dead() && !sim->stopping &&
           catalog_restore_pointers(local, &restored, NULL) != OK) {
        sim_wait(TIME_SECOND_US);
    }
    err recovered = recover_sinks(env, &report, NULL);
    (void)recovered;
}

static void run_roller(struct actor *actor)
{
    struct sim_process *process = actor->process;
    char holder[48];
    (void)snprintf(holder, sizeof(holder), "%s", process->name);
    struct roll_env env = sim_roll_env(process, holder);
    start(process, &env);
    i64 running_was = seam_monotonic_us(&process->seam);
    i64 swept_at = sim->now;
    i64 idle_since = -1; /* the version of the ledger then */
    const struct warehouse *warehouse = NULL;
    struct incarnation incarnation = incarnation_of(process, &warehouse);
    bool raises = process->slot == 0 && sim_part(SIM_RESTORER);
    while (!sim_dead() && !sim->stopping) {
        if (raises) {
            err raised = incarnation_raise(&incarnation, NULL);
            (void)raised;
        }
        sim_wait(sim->tick_us / 2 + (i64)sim_below((u64)sim->tick_us));
        bool sweeping = sim->now - swept_at >= num_max_i64(SIM_HOUR, 4 * sim->tick_us);
        if (sweeping || idle_since != sim->ledger_version) {
            i64 before = sim->ledger_version;
            idle_since = tick(&env, sweeping) ? -1 : before;
        }
        if (sweeping || sim_below(6) == 0) {
            sweep_all(process, &env, &running_was);
        }
        swept_at = sweeping ? sim->now : swept_at;
    }
}

void sim_roller_open(struct sim_process *process)
{
    (void)sim_spawn(process->name, sim_hash(3, (u64)process->slot, (u64)process->incarnation),
                    process, run_roller, NULL, sim_between(0, 1000000));
    if (sim->embedded && process->slot == 0) {
        sim_collector_open(process);
    }
}
