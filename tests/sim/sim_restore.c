#include "sim.h"

#include "base/assert.h"
#include "sink/incarnation.h"
#include "sink/ledger_recover.h"
#include "sink/restore.h"
#include "table/catalog_restore.h"

#include <stdio.h>

/* The operator who puts an older copy of the ledger back while the store is intact: all processes
 * are stopped, the copy takes the ledger's place, `recover` runs until it has come to its end, then
 * the processes are started again. What was under way to store and table stays under way. */

enum { COPIES_MAX = 4, RECOVER_MIB_MAX = 64 };
#define RECOVER_PATIENCE_US (10 * 60 * TIME_SECOND_US)

struct copy {
    struct sim_ledger *ledger;
    i64 at;
};

/* ---- one run of recover: what server/recovery does before anything is served ---- */

static void tell(const struct restore_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct restore_sink *sink = &report->sinks[i];
        sim_trace("recover of %.*s: %s, %lld plans, %lld committed, %lld undone, %lld adopted, "
                  "%lld taken, %lld in quarantine, %lld missing %.*s",
                  STR_ARG(sink->sink_id), restore_end_text(sink->end), (long long)sink->plans,
                  (long long)sink->committed, (long long)sink->undone, (long long)sink->adopted,
                  (long long)sink->taken, (long long)sink->quarantined, (long long)sink->missing,
                  STR_ARG(sink->detail.data == NULL ? STR("") : sink->detail));
    }
}

static err restore_pointers(struct sim_process *process, struct error *error)
{
    struct catalog_local *local = catalog_local_of(&process->warehouse.catalog);
    struct catalog_restored restored = {0};
    if (local != NULL) {
        TRY(catalog_restore_pointers(local, &restored, error));
    }
    sim_trace("recover: %lld pointers moved forward", (long long)restored.moved);
    if (!sim_dead() && !sim->stopping) {
        sim_table_restored();
    }
    return OK;
}

static err recover_all(struct sim_process *process, struct arena *arena, struct error *error)
{
    const struct roll_env env = sim_roll_env(process, process->name);
    const struct warehouse *warehouse = &process->warehouse;
    struct incarnation incarnation = {.db = &process->db,
                                      .warehouses = &warehouse,
                                      .count = 1,
                                      .installation_id = sim->installation};
    enum incarnation_reading reading = INCARNATION_FINE;
    struct restore_report report = {0};
    TRY(incarnation_read(&incarnation, &reading, error));
    TRY(restore_pointers(process, error));
    TRY(ledger_begin_recover(&process->db, STR(""), error));
    TRY(sim_replay(process, arena, error));
    TRY(restore_warehouse(&env, arena, RESTORE_ALL, &report, error));
    tell(&report);
    TRY(ledger_unmark_copy(&process->db, error));
    return incarnation_raise(&incarnation, error);
}

void sim_recover(struct actor *actor)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)RECOVER_MIB_MAX * MIB);
    struct error error = {0};
    err recovered = recover_all(actor->process, arena, &error);
    sim_trace("recover: %s %s", err_text(recovered), error.message);
    if (recovered == OK && !sim_dead() && !sim->stopping) {
        sim_table_restored();
        sim->restoring = false;
        sim->down = false;
    }
}

/* ---- the operator ---- */

static void recover_until_done(void)
{
    i64 pause = TIME_SECOND_US;
    while (sim->restoring && !sim->stopping) {
        sim_process_start(SIM_RECOVERER, 0, sim->recoverers++);
        struct sim_process *process = sim->processes[sim->process_count - 1];
        i64 until = sim->now + RECOVER_PATIENCE_US;
        while (process->actors > 0 && sim->now < until && !sim->stopping) {
            sim_wait(20 * TIME_SECOND_US);
        }
        sim_kill(process);
        sim_wait(sim->restoring ? pause : 0);
        pause = num_min_i64(2 * pause, sim->tick_us);
    }
}

static void put_back(const struct copy *copy)
{
    sim_trace("** the ledger of %lld s ago is put back",
              (long long)((sim->now - copy->at) / TIME_SECOND_US));
    sim->restoring = true;
    sim->pointers_old = sim->embedded;
    sim->restored_at = sim->now;
    for (size_t i = 0; i < sim->process_count; i++) {
        sim_kill(sim->processes[i]);
    }
    sim_db_put_back(copy->ledger);
    sim_forget_unstored(copy->at);
    sim->shadow = map_create(sim->arena, 256);
    assert(sim->shadow != NULL);
    if (sim_below(3) == 0) {
        err marked = ledger_mark_copy(&sim->raw_db, NULL);
        assert(marked == OK);
    }
}

/* A minute, an hour, a day or a month; as far as the time left reaches. */
static i64 draw_age(void)
{
    static const i64 ages[] = {60 * TIME_SECOND_US, SIM_HOUR, TIME_DAY_US, 30 * TIME_DAY_US};
    i64 left = num_max_i64(sim->horizon - sim->now, 1);
    i64 age = ages[sim_below(sim->horizon > 31 * TIME_DAY_US ? ARRAY_COUNT(ages) : 3)];
    age = sim_between(age / 2, age);
    return num_min_i64(age, left);
}

/* Batches around the copy and after it: what the copy lacks. */
static void send_around(i32 slot, i64 age)
{
    i64 soon = num_min_i64(age, 4 * sim->tick_us);
    i64 count = sim_between(1, num_min_i64(3, sim->scope->sends));
    for (i64 i = 0; i < count; i++) {
        sim_send_soon(slot, sim_between(0, sim_below(2) == 0 ? soon : age));
    }
}

static void take_copy(struct copy *copies, size_t *count)
{
    while (sim->down && !sim->stopping) {
        sim_wait(TIME_SECOND_US); /* it is running, or stopped in good order */
    }
    sim_trace("operator: copies the ledger");
    if (*count == COPIES_MAX) {
        *count -= 1;
        memmove(copies, copies + 1, *count * sizeof(*copies));
    }
    copies[(*count)++] = (struct copy){sim_db_copy(sim->arena), sim->now};
}

/* Often a second one follows, in which something waits that the first one lacks. */
static void take_copies(i32 slot, struct copy *copies, size_t *count)
{
    take_copy(copies, count);
    if (sim_below(3) > 0) {
        i64 gap = sim_between(TIME_SECOND_US, sim->tick_us);
        send_around(slot, gap);
        sim_wait(gap);
        if (!sim->stopping && !sim->restoring) {
            take_copy(copies, count);
        }
    }
}

void sim_run_restorer(struct actor *actor)
{
    struct copy copies[COPIES_MAX];
    size_t count = 0;
    i64 times = sim_between(1, num_min_i64(4, sim->scope->acts));
    (void)actor;
    for (i64 i = 0; i < times && !sim->stopping && sim->now < sim->horizon; i++) {
        i32 slot = (i32)sim_below((u64)sim->slot_count);
        i64 left = num_max_i64(sim->horizon - sim->now, 0);
        i64 wait = (i64)sim_below((u64)(left / (times - i + 1) + 1));
        /* One restore often follows another. */
        wait = i > 0 && sim_below(2) == 0 ? num_min_i64(wait, 4 * sim->tick_us) : wait;
        send_around(slot, wait);
        sim_wait(wait);
        take_copies(slot, copies, &count);
        i64 age = draw_age();
        send_around(slot, age);
        sim_wait(age);
        if (sim_below(3) == 0) {
            sim_await_trouble(SIM_RESTORER, slot);
        }
        const struct copy *copy = &copies[sim_below(count)];
        /* Plan objects are kept for 35 days. */
        bool kept = sim->now - copy->at < 34 * TIME_DAY_US;
        if (!sim->stopping && sim->faults && kept) {
            sim->errands++;
            put_back(copy);
            recover_until_done();
            sim->errands--;
        }
    }
}
