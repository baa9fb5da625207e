#include "sim.h"

#include "base/assert.h"

#include <stdio.h>

/* One schedule: a hostile part, in which everything goes wrong, and a quiet end, in which all must
 * come right. */

const char *sim_part_name(enum sim_part part)
{
    static const char *const names[SIM_PART_COUNT] = {
        "foreign", "compactor", "expirer", "rollback", "unsetter", "renamer",  "dropper",
        "alterer", "patcher",   "deleter", "clocks",   "freezes",  "restorer", "deaths",
        "replays", "growth",    "rejects", "bursts",   "merges",
    };
    return names[part];
}

#define PART(part) (1U << (part))

/* What a schedule is about. Half of them are a mixture of everything; each of the others has so
 * much of one kind of trouble that its rare meetings happen too. */
struct profile {
    u32 parts;      /* that always act */
    i64 minutes[4]; /* until the faults end; one of them */
    bool unsettled; /* reads are old, and commits stay without an answer, as often as may be */
};

static const struct profile WIDE = {0, {60, 360, 1440, 17280}, false};
static const struct profile PROFILES[] = {
    /* the ledger is put back, often soon after many retries */
    {PART(SIM_RESTORER) | PART(SIM_DEATHS) | PART(SIM_GROWTH), {60, 360, 1440, 17280}, false},
    {PART(SIM_RESTORER) | PART(SIM_PATCHER), {60, 360, 1440, 1440}, true},
    /* the copy is up to a month old */
    {PART(SIM_RESTORER) | PART(SIM_REPLAYS), {17280, 57600, 57600, 57600}, false},
    /* plans are given up while their requests are under way */
    {PART(SIM_FOREIGN) | PART(SIM_PATCHER) | PART(SIM_ALTERER), {60, 360, 1440, 1440}, true},
    /* the owner goes back while requests are under way; what is a minute late has no more chance */
    {PART(SIM_ROLLBACK), {5, 5, 5, 60}, true},
    /* orphans get old, rows are forgotten, processes stand still for days */
    {PART(SIM_FREEZES) | PART(SIM_REPLAYS) | PART(SIM_GROWTH), {17280, 17280, 17280, 17280}, false},
    /* many sends at once, whose process dies under them */
    {PART(SIM_BURSTS) | PART(SIM_DEATHS) | PART(SIM_REJECTS), {5, 5, 60, 1440}, false},
};

/* How much happens in a schedule. Most of what can go wrong shows where little happens, and many
 * little ones are tried in the time of a long one; some meetings need the long ones. */
static const struct sim_scope SMALL = {
    .minutes = 5760, .ticks = 12, .producers = 2, .sends = 2, .acts = 2, .rollers = 2};
static const struct sim_scope LONG = {
    .minutes = 57600, .ticks = 50, .producers = 3, .sends = 4, .acts = 5, .rollers = 3};

static const struct sim_scope *scope_of(void)
{
    return sim_hash(sim->config->seed ^ 0x5c09, 0, 0) % 8 > 0 ? &SMALL : &LONG;
}

static const struct profile *profile_of(void)
{
    u64 drawn = sim_hash(sim->config->seed ^ 0x9f0f, 0, 0);
    i32 planted = sim_planted_profile(sim->config->planted);
    if (planted > 0 && drawn % 2 != 0) {
        return &PROFILES[planted - 1];
    }
    return drawn % 2 == 0 ? &WIDE : &PROFILES[(drawn >> 8) % ARRAY_COUNT(PROFILES)];
}

bool sim_part(enum sim_part part)
{
    static const u32 odds[SIM_PART_COUNT] = {
        [SIM_FOREIGN] = 128, [SIM_COMPACTOR] = 90, [SIM_EXPIRER] = 128, [SIM_ROLLBACK] = 96,
        [SIM_UNSETTER] = 10, [SIM_RENAMER] = 24,   [SIM_DROPPER] = 14,  [SIM_ALTERER] = 60,
        [SIM_PATCHER] = 60,  [SIM_DELETER] = 60,   [SIM_CLOCKS] = 90,   [SIM_FREEZES] = 128,
        [SIM_DEATHS] = 180,  [SIM_REPLAYS] = 160,  [SIM_GROWTH] = 100,  [SIM_REJECTS] = 128,
        [SIM_RESTORER] = 24, [SIM_BURSTS] = 90,    [SIM_MERGES] = 128,
    };
    u64 drawn = sim_hash(sim->config->seed ^ 0x9a47, (u64)part, 0);
    bool acts = drawn % 256 < odds[part] || (profile_of()->parts & PART(part)) != 0;
    return acts && (sim->config->parts_off & PART(part)) == 0;
}

static u32 intensity(u64 drawn, u32 low, u32 high)
{
    switch (drawn % 4) {
    case 0:
        return 0;
    case 1:
        return low;
    case 2:
        return (low + high) / 2;
    default:
        return high;
    }
}

static i32 limited(i32 drawn, i32 most)
{
    return most >= 0 && drawn > most ? most : drawn;
}

static void draw_parameters(void)
{
    u64 a = sim_hash(sim->config->seed, 1, 1);
    u64 b = sim_hash(sim->config->seed, 1, 2);
    const struct profile *profile = profile_of();
    static const i64 roll_seconds[] = {30, 60, 300, 3600};
    sim->scope = scope_of();
    i64 most = num_max_i64(sim->scope->minutes, profile->minutes[0]);
    sim->horizon = num_min_i64(profile->minutes[a % 4], most) * 60 * TIME_SECOND_US;
    sim->roll_seconds = num_min_i64(roll_seconds[(a >> 4) % 4],
                                    sim->horizon / (10 * TIME_SECOND_US));
    sim->tick_us = num_min_i64(num_max_i64(10 * TIME_SECOND_US, sim->horizon / sim->scope->ticks),
                               6 * SIM_HOUR);
    sim->p_fail = intensity(a >> 8, 300, 3000);
    sim->p_unknown = intensity(a >> 12, 600, 12000);
    sim->p_read = intensity(a >> 16, 300, 9000);
    sim->p_unknown = profile->unsettled ? 12000 : sim->p_unknown;
    sim->p_read = profile->unsettled ? 9000 : sim->p_read;
    sim->unsettled = profile->unsettled;
    sim->p_slow = intensity(a >> 20, 60, 1500);
    sim->p_die = sim_part(SIM_DEATHS) ? intensity(a >> 24, 100, 3000) : 0;
    sim->p_freeze = sim_part(SIM_FREEZES) ? intensity(a >> 28, 30, 600) : 0;
    sim->freeze_max = num_min_i64(sim->horizon, 9 * TIME_DAY_US);
    sim->late_max = num_min_i64(sim->horizon / 2, 2 * TIME_DAY_US);
    sim->embedded = b % 4 == 0;
    sim->logged = (b >> 28) % 3 > 0;
    bool stormy = profile->unsettled || (b >> 20) % 3 > 0;
    sim->storm_us = !sim->embedded && stormy ? sim->horizon / 20 : 0;
    sim->intake_count = limited(1 + (i32)((b >> 4) % 3), sim->config->intakes_max);
    sim->roller_count = limited(1 + (i32)((b >> 8) % (u64)sim->scope->rollers),
                                sim->config->rollers_max);
    /* One process serves an embedded ledger; when it ends, all of it ends. */
    bool alone = sim->embedded && sim_part(SIM_RESTORER);
    sim->roller_count = alone ? 1 : sim->roller_count;
    if (sim->logged) {
        sim->intake_count = 1;
        sim->p_die /= 8;
    }
    sim->slot_count = (b >> 12) % 5 == 0 ? 2 : 1;
    sim->steps_max = 400000;
}

static void open_world(void)
{
    struct error error = {0};
    sim_journal_erase();
    sim->ledger_seam = sim_seam(NULL);
    sim->quiet_seam = sim_seam(NULL);
    sim_db_open();
    err opened = store_open_mem(sim->arena, (size_t)64 * MIB, &sim->raw_store, &error);
    assert(opened == OK);
    sim->raw_location = (struct location){STR("s3://w/tables"), sim->raw_store};
    sim->raw_locations = (struct location_set){&sim->raw_location, 1};
    opened = sim_catalog_open();
    assert(opened == OK);
    opened = catalog_create_namespace(&sim->catalog, STR("ns"), &error);
    assert(opened == OK);
    opened = ledger_installation(&sim->raw_db, sim->arena, &sim->installation, &error);
    assert(opened == OK);
    sim->times = map_create(sim->arena, 512);
    sim->manifests = map_create(sim->arena, 64);
    sim->shadow = map_create(sim->arena, 256);
    sim->snapshots = arena_array(sim->arena, SIM_SNAPSHOTS_MAX, sizeof(*sim->snapshots));
    sim->versions = arena_array(sim->arena, SIM_VERSIONS_MAX, sizeof(*sim->versions));
    for (i32 i = 0; i < sim->slot_count; i++) {
        sim_make_table(i);
        i32 sink = sim_make_sink(i);
        assert(sink >= 0);
    }
}

/* ---- the quiet end ---- */

struct left {
    struct arena *arena;
    struct db_rows rows;
};

static err left_body(struct db_tx *tx, void *context, struct error *error)
{
    struct left *left = context;
    return db_query(
        tx, left->arena,
        "SELECT s.table_uuid, s.recovering OR EXISTS (SELECT 1 FROM batch b WHERE b.sink = s.id "
        "AND b.state <= 1) OR EXISTS (SELECT 1 FROM plan p WHERE p.sink = s.id AND p.state <= 2), "
        "s.state = 3 FROM sink s",
        NULL, 0, &left->rows, error);
}

/* The owner took the table or its property away: its sink may wait for ever. */
bool sim_table_broken(str uuid)
{
    for (i32 i = 0; i < sim->table_count; i++) {
        if (str_equal(str_from(sim->tables[i].uuid), uuid)) {
            return sim->tables[i].touched || sim->tables[i].gone;
        }
    }
    return true;
}

static bool is_settled(void)
{
    struct arena_mark mark = arena_mark(sim->scratch);
    struct left left = {.arena = sim->scratch};
    err read = db_read(&sim->raw_db, left_body, &left, NULL);
    assert(read == OK);
    bool settled = sim->errands == 0 && !sim_stopped();
    for (size_t i = 0; i < left.rows.row_count; i++) {
        bool waits = db_number(&left.rows, i, 1) != 0;
        bool waived = sim_table_broken(db_text(&left.rows, i, 0));
        bool deleting = db_number(&left.rows, i, 2) != 0; /* ends without a table as well */
        settled = settled && (!waits || waived) && !deleting;
    }
    arena_reset_to(sim->scratch, mark);
    for (i32 i = 0; i < sim->intake_count; i++) {
        settled = settled && sim_node_idle(sim->intakes[i]);
    }
    return settled;
}

static void ask_rolls(void)
{
    for (i32 i = 0; i < sim->sink_count; i++) {
        i64 seq = 0;
        instant at = 0;
        err asked = ledger_ask_roll(&sim->raw_db, str_from(sim->sinks[i].id), &at, &seq, NULL);
        (void)asked; /* a deleted one needs none */
    }
}

/* Calls and ends of deletes: one that comes late commits its fence. */
static i32 count_deletes(void)
{
    i32 count = 0;
    for (i32 i = 0; i < sim->sink_count; i++) {
        count += (sim->sinks[i].deleting ? 1 : 0) + (sim->sinks[i].deleted ? 1 : 0);
    }
    return count;
}

static void settle(void)
{
    enum { ROUNDS = 60, ASK_FROM = 6, HELD_FROM = 30 };
    for (int round = 0; round < ROUNDS && !sim->stopping && !is_settled(); round++) {
        if (round % 4 == 3) {
            sim_operate();
        }
        bool asks = sim_part(SIM_CLOCKS) || round > ASK_FROM;
        if (asks) {
            ask_rolls();
        }
        i64 step = round < HELD_FROM ? 3 * 60 * TIME_SECOND_US + sim->roll_seconds * 250000
                                     : 15 * 60 * TIME_SECOND_US;
        sim_scheduler(sim->now + step);
    }
}

static void quiet_end(void)
{
    sim->faults = false;
    sim->tick_us = 60 * TIME_SECOND_US;
    /* Set right without going back: what is stamped in the future of a clock only waits. */
    sim->ledger_offset = sim->ledger_offset_max;
    sim_trace("== faults are over");
    for (size_t i = 0; i < sim->process_count; i++) {
        sim_thaw(sim->processes[i]);
    }
    sim_scheduler(num_max_i64(sim->now, sim->next_late) + 60 * TIME_SECOND_US);
    settle();
    /* Of merges one may have begun before, and been slow. */
    i64 commits = sim->result->commits - sim->result->merges;
    i32 deletes = count_deletes();
    sim_scheduler(sim->now + 3 * 60 * TIME_SECOND_US);
    bool broken = false;
    for (i32 i = 0; i < sim->table_count; i++) {
        broken = broken || sim->tables[i].touched || sim->tables[i].gone;
    }
    bool changed = sim->result->commits - sim->result->merges != commits &&
                   count_deletes() == deletes;
    if (!sim->stopping && !broken && is_settled() && changed) {
        sim_violate("I26", "a further recovery has changed something");
    }
    settle(); /* the collector may have found something meanwhile */
}

void sim_run(const struct sim_config *config, struct sim_result *result)
{
    static struct sim_world world;
    memset(&world, 0, sizeof(world));
    *result = (struct sim_result){0};
    world.config = config;
    world.result = result;
    world.arena = arena_create((size_t)512 * MIB);
    world.scratch = arena_create((size_t)128 * MIB);
    sim = &world;
    bool planted = sim_plant(config->planted);
    assert(planted);
    draw_parameters();
    open_world();
    if (sim->logged) {
        sim_live();
    }
    for (i32 i = 0; i < sim->intake_count; i++) {
        sim_process_start(SIM_INTAKE, i, 0);
    }
    for (i32 i = 0; i < sim->roller_count; i++) {
        sim_process_start(SIM_ROLLER, i, 0);
    }
    if (!sim->embedded) {
        sim_process_start(SIM_COLLECTOR, 0, 0);
    }
    sim_start_producers();
    sim_start_owners();
    sim->faults = true;
    sim_scheduler(sim->horizon);
    if (!sim->stopping) {
        quiet_end();
    }
    if (!sim->stopping) {
        sim_check_final();
    }
    result->batches = sim->batch_count;
    sim_finish_actors();
    sim_lives_free();
    sim_versions_close();
    sim_catalog_close();
    sim_db_close();
    store_close(&sim->raw_store);
    arena_destroy(world.scratch);
    arena_destroy(world.arena);
    sim = NULL;
}
