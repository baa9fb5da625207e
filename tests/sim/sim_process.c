#include "sim.h"

#include "base/assert.h"
#include "sink/intake_early.h"

#include <stdio.h>

static const char *const ROLES[] = {"intake", "roller", "collector", "recover", "start"};

/* Processes: made, killed, started again after a while by whoever watches over them. */

void sim_process_start(enum sim_role role, i32 slot, i32 incarnation)
{
    struct sim_process *process = arena_alloc(sim->arena, sizeof(*process));
    assert(process != NULL && sim->process_count < SIM_PROCESSES_MAX);
    *process = (struct sim_process){
        .role = role,
        .slot = slot,
        .incarnation = incarnation,
        .started_at = sim->now,
    };
    (void)snprintf(process->name, sizeof(process->name), "%s%d.%d", ROLES[role], slot, incarnation);
    if (sim_part(SIM_CLOCKS)) {
        u64 drawn = sim_hash(sim->config->seed ^ 0xc10c, (u64)slot, (u64)incarnation * 4 + role);
        i64 span = drawn % 8 == 0 ? 2 * TIME_DAY_US : 90 * 60 * TIME_SECOND_US;
        process->wall_offset = (i64)((drawn >> 8) % (u64)(2 * span)) - span;
    }
    process->seam = sim_seam(process);
    process->db = sim_db(process);
    struct store store = sim_store(process);
    process->location = (struct location){STR("s3://w/tables"), store};
    process->locations = (struct location_set){&process->location, 1};
    process->warehouse = (struct warehouse){
        .name = STR("w"),
        .project = STR("default"),
        .files = store,
        .locations = process->locations,
        .tables_uri = STR("s3://w/tables"),
        .embedded = sim->embedded,
    };
    process->warehouse.catalog = sim_catalog(process);
    sim->processes[sim->process_count++] = process;
    switch (role) {
    case SIM_INTAKE:
        sim->intakes[slot] = process;
        sim_node_open(process);
        break;
    case SIM_ROLLER:
        sim->rollers[slot] = process;
        sim_roller_open(process);
        break;
    case SIM_COLLECTOR:
        sim_collector_open(process);
        break;
    case SIM_RECOVERER:
        (void)sim_spawn(process->name, sim_hash(14, (u64)incarnation, 0), process, sim_recover,
                        NULL, 1);
        break;
    case SIM_STARTER:
        (void)sim_spawn(process->name, sim_hash(15, (u64)incarnation, 0), process, sim_start_up,
                        NULL, 1);
        break;
    }
}

static void start_again(void *argument)
{
    struct sim_process *process = argument;
    if (sim_stopped() && !sim->stopping) {
        sim_later(sim->tick_us / 8, start_again, process); /* nothing is served yet */
    } else if (!sim->stopping) {
        sim_process_start(process->role, process->slot, process->incarnation + 1);
        sim_trace("** %s has started", sim->processes[sim->process_count - 1]->name);
    }
}

/* ---- one machine ---- */

void sim_live(void)
{
    assert(sim->life_count < SIM_LIVES_MAX);
    sim->early = intake_early_create();
    sim->lives[sim->life_count++] = sim->early;
}

void sim_lives_free(void)
{
    for (size_t i = 0; i < sim->life_count; i++) {
        intake_early_destroy(sim->lives[i]);
    }
}

bool sim_stopped(void)
{
    return sim->restoring || sim->down;
}

void sim_start_up(struct actor *actor)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    struct error error = {0};
    err replayed = sim_replay(actor->process, arena, &error);
    sim_trace("start: %s %s", err_text(replayed), error.message);
    if (replayed == OK && !sim_dead() && !sim->stopping) {
        sim->down = false;
    }
}

/* Who watches over the machine ends a start that takes too long, and begins another. */
#define START_PATIENCE_US (10 * 60 * TIME_SECOND_US)
#define START_LOOK_US     (5 * TIME_SECOND_US)

/* Until a start comes to its end; where the ledger was put back, `recover` does it. One watches, so
 * that no two starts have the log: it also sees to a machine that dies again before it looked. */
static void run_machine(struct actor *actor)
{
    (void)actor;
    i64 pause = TIME_SECOND_US;
    while (sim->down && !sim->restoring && !sim->stopping) {
        sim_wait(sim_between(pause / 2, pause));
        if (!sim->down || sim->restoring || sim->stopping) {
            break;
        }
        sim_process_start(SIM_STARTER, 0, (i32)sim->starters++);
        struct sim_process *process = sim->processes[sim->process_count - 1];
        i64 until = sim->now + START_PATIENCE_US;
        while (process->actors > 0 && sim->now < until && !sim->stopping) {
            sim_wait(START_LOOK_US);
        }
        sim_kill(process);
        pause = num_min_i64(2 * pause, sim->tick_us);
    }
    sim->watched = false;
}

static void power_may_fail(void)
{
    if (sim_below(2) == 0) {
        sim_trace("** the power fails");
        sim_store_power_loss();
        sim_db_power_loss();
        sim->shadow = map_create(sim->arena, 256);
        assert(sim->shadow != NULL);
    }
}

/* All of it dies together, and only once until it is up again. */
static void machine_died(void)
{
    sim_journal_died(sim->journal);
    if (sim->down) {
        return;
    }
    sim->down = true;
    for (size_t i = 0; i < sim->process_count; i++) {
        sim_kill(sim->processes[i]);
    }
    sim_live();
    power_may_fail();
    if (sim->process_count > SIM_PROCESSES_MAX / 2) {
        sim->p_die = 0;
    }
    if (!sim->restoring && !sim->watched) {
        sim->watched = true;
        (void)sim_spawn("machine", sim_hash(16, (u64)sim->starters, 0), NULL, run_machine, NULL,
                        TIME_SECOND_US);
    }
}

void sim_process_died(struct sim_process *process)
{
    bool brief = process->role == SIM_RECOVERER || process->role == SIM_STARTER;
    if (sim->logged && brief && process->actors > 0) {
        sim_journal_died(sim->journal);
        power_may_fail();
    } else if (sim->logged && !brief) {
        machine_died();
    }
    u64 drawn = sim_hash(sim->config->seed ^ 0xdead, (u64)process->slot,
                         (u64)process->incarnation * 4 + process->role);
    i64 most = drawn % 8 == 0 ? 6 * SIM_HOUR : 5 * 60 * TIME_SECOND_US;
    sim_trace("** %s has died", process->name);
    if (brief) {
        return; /* the operator looks after it, or the machine */
    }
    sim_later(TIME_SECOND_US + (i64)((drawn >> 8) % (u64)most), start_again, process);
}

struct roll_env sim_roll_env(struct sim_process *process, const char *holder)
{
    return (struct roll_env){.db = &process->db,
                             .seam = &process->seam,
                             .warehouse = &process->warehouse,
                             .installation_id = sim->installation,
                             .early = sim->early,
                             .holder = str_from(holder)};
}
