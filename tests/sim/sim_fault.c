#include "sim.h"

#include "base/assert.h"

enum { LATENCY_US = 20000 };

static const char *const NAMES[SIM_FAULT_COUNT] = {
    "",
    "fails",
    "disk full",
    "not done, not told",
    "done, not told",
    "late",
    "done, refused",
    "stale",
    "partial",
    "slow",
    "freezes",
    "dies before",
    "dies after",
};

static bool left_out(u64 identity)
{
    for (size_t i = 0; i < sim->config->only_count; i++) {
        if (sim->config->only[i] == identity) {
            return false;
        }
    }
    return sim->config->only != NULL;
}

/* Which of a class strikes is drawn from the same number, so that a call's fate is one draw. */
static enum sim_fault choose(u64 drawn)
{
    static const enum sim_fault unknowns[] = {SIM_FAULT_LOST, SIM_FAULT_DONE, SIM_FAULT_DONE,
                                              SIM_FAULT_LATE, SIM_FAULT_LATE, SIM_FAULT_REFUSED};
    u32 x = (u32)(drawn & 0xffff);
    u32 y = (u32)(drawn >> 32);
    if (x < sim->p_die) {
        return y % 2 == 0 ? SIM_FAULT_DIE_BEFORE : SIM_FAULT_DIE_AFTER;
    }
    x -= sim->p_die;
    if (x < sim->p_freeze) {
        return SIM_FAULT_FREEZE;
    }
    x -= sim->p_freeze;
    if (x < sim->p_slow) {
        return SIM_FAULT_SLOW;
    }
    x -= sim->p_slow;
    if (x < sim->p_unknown) {
        return unknowns[y % ARRAY_COUNT(unknowns)];
    }
    x -= sim->p_unknown;
    if (x < sim->p_fail) {
        return y % 8 == 0 ? SIM_FAULT_FULL : SIM_FAULT_BEFORE;
    }
    x -= sim->p_fail;
    if (x < sim->p_read) {
        return y % 2 == 0 ? SIM_FAULT_STALE : SIM_FAULT_PARTIAL;
    }
    return SIM_FAULT_NONE;
}

/* For a while no commit is answered, and most land later: what is under way stays under way. */
static bool in_storm(void)
{
    return sim->storm_us > 0 &&
           sim_hash(sim->config->seed ^ 0x5708, (u64)(sim->now / sim->storm_us), 0) % 5 == 0;
}

static enum sim_fault draw_fault(const struct actor *actor, u64 call, u32 allowed)
{
    static const u32 always = SIM_ALLOW(SIM_FAULT_SLOW) | SIM_ALLOW(SIM_FAULT_FREEZE) |
                              SIM_ALLOW(SIM_FAULT_DIE_BEFORE) | SIM_ALLOW(SIM_FAULT_DIE_AFTER) |
                              SIM_ALLOW(SIM_FAULT_BEFORE);
    u64 drawn = sim_hash(sim->config->seed ^ 0xfa17, actor->id, call);
    enum sim_fault fault = choose(drawn);
    if ((allowed & SIM_ALLOW(SIM_FAULT_REFUSED)) != 0 && fault < SIM_FAULT_SLOW && in_storm()) {
        fault = drawn >> 50 & 1 ? SIM_FAULT_LATE : SIM_FAULT_LOST;
    }
    bool load = allowed == SIM_ALLOW(SIM_FAULT_STALE);
    if (load && fault == SIM_FAULT_NONE && sim->unsettled && (drawn >> 52) % 4 == 0) {
        fault = SIM_FAULT_STALE;
    }
    u64 identity = sim_hash(7, actor->id, call);
    bool may = ((allowed | always) & SIM_ALLOW(fault)) != 0 &&
               (sim->config->faults_off & SIM_ALLOW(fault)) == 0;
    if (fault == SIM_FAULT_NONE || !may || left_out(identity)) {
        return SIM_FAULT_NONE;
    }
    if (sim->result->fault_count < SIM_FAULTS_MAX) {
        sim->result->faults[sim->result->fault_count++] = identity;
    }
    return fault;
}

/* Some last seconds, some minutes, few longer. */
static i64 long_time(u64 drawn, i64 most)
{
    u64 scale = drawn % 4;
    i64 span = scale == 0 ? 60 * TIME_SECOND_US : scale == 1 ? SIM_HOUR : most;
    span = num_min_i64(span, most);
    return TIME_SECOND_US + (i64)((drawn >> 8) % (u64)num_max_i64(span, 1));
}

enum sim_fault sim_strike(u32 allowed, const char *what, str about)
{
    struct actor *actor = sim->current;
    if (actor == NULL || actor->process == NULL || sim->in_body) {
        return SIM_FAULT_NONE;
    }
    if (sim_dead() || sim->stopping) {
        return SIM_FAULT_DIE_BEFORE;
    }
    u64 call = actor->calls++;
    u64 drawn = sim_hash(sim->config->seed ^ 0x71e, actor->id, call);
    enum sim_fault fault = sim->faults ? draw_fault(actor, call, allowed) : SIM_FAULT_NONE;
    i64 latency = 1 + (i64)(drawn % LATENCY_US);
    latency = (drawn >> 40) % 16 == 0 ? latency * 50 : latency;
    if (fault == SIM_FAULT_SLOW) {
        latency = long_time(drawn >> 16, 40 * 60 * TIME_SECOND_US);
    }
    bool freeze_first = fault == SIM_FAULT_FREEZE && (drawn >> 60) % 2 == 0;
    i64 freeze = long_time(drawn >> 12, sim->freeze_max);
    if (freeze_first) {
        actor->process->frozen_until = sim->now + freeze;
    }
    sim_sleep(latency);
    if (sim_dead() || sim->stopping) {
        return SIM_FAULT_DIE_BEFORE;
    }
    bool told = fault != SIM_FAULT_NONE || strcmp(what, "catalog: commit") == 0 ||
                strcmp(what, "catalog: load") == 0 || strcmp(what, "store: put") == 0 ||
                strcmp(what, "store: remove") == 0;
    if (sim->config->trace && told) {
        sim_trace("%s %.*s%s%s", what, STR_ARG(about), fault == SIM_FAULT_NONE ? "" : "   !! ",
                  NAMES[fault]);
    }
    /* Not when the faults ended in between: the quiet end has thawed who was frozen. */
    if (fault == SIM_FAULT_FREEZE && !freeze_first && sim->faults) {
        actor->process->frozen_until = sim->now + freeze;
    }
    if (fault == SIM_FAULT_DIE_BEFORE) {
        sim_kill(actor->process);
    }
    return fault;
}

void sim_after(enum sim_fault fault)
{
    if (fault == SIM_FAULT_DIE_AFTER) {
        sim_kill(sim->current->process);
    }
}

err sim_failed(enum sim_fault fault, struct error *error)
{
    switch (fault) {
    case SIM_FAULT_BEFORE:
        return error_set(error, IO, ERROR_UNAVAILABLE, "simulated: fails");
    case SIM_FAULT_FULL:
        return error_set(error, IO, ERROR_DISK_LOW, "simulated: the disk is full");
    case SIM_FAULT_REFUSED:
        return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT, "simulated: refused");
    case SIM_FAULT_LOST:
    case SIM_FAULT_DONE:
    case SIM_FAULT_LATE:
    case SIM_FAULT_DIE_BEFORE:
    case SIM_FAULT_DIE_AFTER:
        return error_set(error, UNKNOWN, ERROR_UNAVAILABLE, "simulated: no answer");
    case SIM_FAULT_NONE:
    case SIM_FAULT_STALE:
    case SIM_FAULT_PARTIAL:
    case SIM_FAULT_SLOW:
    case SIM_FAULT_FREEZE:
    case SIM_FAULT_COUNT:
        break;
    }
    return OK;
}

i64 sim_late_delay(void)
{
    return long_time(sim_draw(), sim->late_max);
}
