#include "sim.h"

#include "base/assert.h"

#include <stdio.h>

static const char *const ROLES[] = {"intake", "roller", "collector", "recover"};

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
    }
}

static void start_again(void *argument)
{
    struct sim_process *process = argument;
    if (sim->restoring && !sim->stopping) {
        sim_later(sim->tick_us / 8, start_again, process); /* nothing is served yet */
    } else if (!sim->stopping) {
        sim_process_start(process->role, process->slot, process->incarnation + 1);
        sim_trace("** %s has started", sim->processes[sim->process_count - 1]->name);
    }
}

void sim_process_died(struct sim_process *process)
{
    u64 drawn = sim_hash(sim->config->seed ^ 0xdead, (u64)process->slot,
                         (u64)process->incarnation * 4 + process->role);
    i64 most = drawn % 8 == 0 ? 6 * SIM_HOUR : 5 * 60 * TIME_SECOND_US;
    sim_trace("** %s has died", process->name);
    if (process->role == SIM_RECOVERER) {
        return; /* the operator looks after it */
    }
    sim_later(TIME_SECOND_US + (i64)((drawn >> 8) % (u64)most), start_again, process);
}

struct roll_env sim_roll_env(struct sim_process *process, const char *holder)
{
    return (struct roll_env){.db = &process->db,
                             .seam = &process->seam,
                             .warehouse = &process->warehouse,
                             .installation_id = sim->installation,
                             .holder = str_from(holder)};
}
