/* What a roller does beside rolling, with each call failing, each answer lost and each growth of an
 * arena failing: it says why, and done again it is complete, and was done once. */
#include "restore_fixture.h"

#include "sink/incarnation.h"
#include "sink/settings.h"
#include "sink/verify.h"

#define HOURS(n) ((n) * (i64)3600 * TIME_SECOND_US)

static struct doors *doors_of(void *world)
{
    return &((struct roll_fixture *)world)->doors;
}

static void close_world(void *world)
{
    fixture_close(world);
}

/* ---- a roll ---- */

static void *open_waiting(void)
{
    struct roll_fixture *f = aged_fixture();
    send_object(f, "a", "{\"x\":1}\n{\"x\":\"no\"}");
    send_object(f, "bad", "{\"x\":\"no\"}");
    send_object(f, "b", "{\"x\":2,\"who\":\"north\"}");
    return f;
}

static err act_roll(void *world, struct error *error)
{
    struct roll_fixture *f = world;
    enum roll_end end = ROLL_LATER;
    err rolled = roll_sink(&f->env, f->sink_id, STR("asked"), &end, error);
    f->now += 60 * TIME_SECOND_US;
    return rolled;
}

static void settle_roll(void *world, err result)
{
    struct roll_fixture *f = world;
    (void)result;
    assert_int_equal(look_sink(f).state, SINK_ACTIVE);
    roll_out(f);
    assert_int_equal(table_rows(f), 2);
    assert_int_equal(look_batch(f, "a").rows_rejected, 1);
    assert_int_equal(look_batch(f, "bad").state, BATCH_REJECTED);
    assert_int_equal(count_objects(f, "rejects/"), 2);
    assert_books(f);
}

/* ---- recovery ---- */

static void *open_half_done(void)
{
    struct roll_fixture *f = open_waiting();
    door_arm(f, DOOR_DIES_AFTER, 25);
    roll_tick(f);
    assert_true(f->doors.dead);
    door_heal(f);
    f->now += 60 * TIME_SECOND_US;
    return f;
}

static err act_recover(void *world, struct error *error)
{
    struct roll_fixture *f = world;
    struct recover_report report = {0};
    TRY(recover_sinks(&f->env, &report, error));
    f->now += 60 * TIME_SECOND_US;
    return recover_verdicts(&f->env, f->sink_id, error);
}

/* ---- sweeps ---- */

static void *open_to_sweep(void)
{
    struct roll_fixture *f = open_waiting();
    roll_out(f);
    send_object(f, "held", "{\"x\":3}");
    tell_sql(f, "UPDATE batch SET held = 1, held_reason = 'object_missing' WHERE state = 0");
    age(f, HOURS(24) * 40);
    files_age_us = HOURS(24) * 40;
    return f;
}

static err act_sweep(void *world, struct error *error)
{
    struct roll_fixture *f = world;
    i64 deleted = 0;
    TRY(sweep_objects(&f->env, &deleted, error));
    TRY(sweep_rejects(&f->env, f->sink_id, &deleted, error));
    TRY(sweep_plan_objects(&f->env, f->sink_id, &deleted, error));
    TRY(sweep_held(&f->env, f->sink_id, error));
    return sweep_rows(f->env.db, error);
}

static void settle_sweep(void *world, err result)
{
    struct roll_fixture *f = world;
    struct error told = {0};
    (void)result;
    /* an object that could not be deleted is tried again an hour later */
    age(f, HOURS(2));
    if (act_sweep(f, &told) != OK) {
        fail_msg("%s", told.message);
    }
    assert_int_equal(count_objects(f, "rejects/"), 0);
    assert_int_equal(count_objects(f, "plans/"), 0);
    assert_int_equal(count_objects(f, "a."), 0);
    assert_int_equal(count_objects(f, "held."), 1);
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM batch WHERE state <> 0"), 0);
    assert_false(look_batch(f, "held").held);
    roll_out(f);
    assert_int_equal(table_rows(f), 3);
    assert_books(f);
}

/* ---- orphans ---- */

static void *open_orphans(void)
{
    struct roll_fixture *f = aged_fixture();
    struct orphan_report report = {0};
    send_object(f, "there", "{\"x\":1}");
    store_batch(f, "there", "{\"x\":1}");
    store_batch(f, "adopt", "{\"x\":2}");
    store_batch(f, "rival", "{\"x\":3}");
    store_batch(f, "rival", "{\"x\":4}");
    must(f, orphan_collect(&f->env, f->sink_id, &report, &f->error));
    age(f, HOURS(25));
    return f;
}

static err act_collect(void *world, struct error *error)
{
    struct roll_fixture *f = world;
    struct orphan_report report = {0};
    return orphan_collect(&f->env, f->sink_id, &report, error);
}

static void settle_collect(void *world, err result)
{
    struct roll_fixture *f = world;
    (void)result;
    must(f, act_collect(f, &f->error));
    roll_out(f);
    assert_int_equal(table_rows(f), 2);
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM batch"), 2);
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM quarantine"), 1);
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM void_uid"), 1);
    assert_books(f);
}

/* Of the two objects the first is to be kept. */
static char kept_uid[ID_UID_SIZE];

static void *open_quarantined(void)
{
    struct roll_fixture *f = open_orphans();
    struct ledger_quarantined *items = NULL;
    size_t count = 0;
    must(f, act_collect(f, &f->error));
    must(f, ledger_list_quarantined(&f->db, f->arena, f->sink_id, STR(""), 10, &items, &count,
                                    &f->error));
    assert_int_equal(count, 1);
    assert_int_equal(items[0].uids.size, 2 * ID_UID_SIZE + 1);
    memcpy(kept_uid, items[0].uids.data, ID_UID_SIZE);
    return f;
}

static err act_resolve(void *world, struct error *error)
{
    struct roll_fixture *f = world;
    str row_id = {0};
    return orphan_resolve(&f->env, f->arena, f->sink_id, STR("rival"), (str){kept_uid, ID_UID_SIZE},
                          &row_id, error);
}

static void settle_resolve(void *world, err result)
{
    struct roll_fixture *f = world;
    /* It was done, and not told: then there is nothing to decide about any more. */
    if (ask_sql(f, "SELECT count(*) FROM quarantine") > 0) {
        must(f, act_resolve(f, &f->error));
    } else {
        assert_true(result == OK || result == UNKNOWN);
    }
    roll_out(f);
    assert_int_equal(table_rows(f), 3);
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM quarantine"), 0);
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM batch WHERE batch_id = 'rival'"), 1);
    /* the other one goes, and so does a copy that was made in vain */
    must(f, act_collect(f, &f->error));
    age(f, HOURS(25));
    must(f, act_collect(f, &f->error));
    roll_out(f);
    assert_int_equal(table_rows(f), 3);
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM quarantine"), 0);
    assert_books(f);
}

/* ---- an older ledger ---- */

static void *open_older(void)
{
    struct roll_fixture *f = aged_fixture();
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    struct db copy = take_copy(f);
    send_object(f, "b", "{\"x\":2}\n{\"x\":\"no\"}");
    roll_out(f);
    send_object(f, "c", "{\"x\":3}");
    put_back(f, &copy);
    db_close(&copy);
    f->now += 60 * TIME_SECOND_US;
    return f;
}

static err act_restore(void *world, struct error *error)
{
    struct roll_fixture *f = world;
    struct restore_report report = {0};
    err restored = restore_warehouse(&f->env, f->arena, RESTORE_ALL, &report, error);
    f->now += 60 * TIME_SECOND_US;
    return restored;
}

static void settle_restore(void *world, err result)
{
    struct roll_fixture *f = world;
    (void)result;
    /* trouble is no mismatch */
    assert_int_equal(look_sink(f).state, SINK_ACTIVE);
    must(f, act_restore(f, &f->error));
    roll_out(f);
    assert_int_equal(look_sink(f).state, SINK_ACTIVE);
    assert_int_equal(table_rows(f), 3);
    assert_int_equal(look_sink(f).rows_rejected, 1);
    assert_books(f);
}

/* The table is behind: an operator reclaims it. */
static void *open_mismatched(void)
{
    struct roll_fixture *f = aged_fixture();
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    send_object(f, "b", "{\"x\":2}");
    foreign_set_property(f, STR("edited"));
    roll_tick(f);
    roll_tick(f);
    assert_int_equal(look_sink(f).state, SINK_DISABLED);
    f->now += 60 * TIME_SECOND_US;
    return f;
}

static err act_reclaim(void *world, struct error *error)
{
    struct roll_fixture *f = world;
    err reclaimed = restore_reclaim(&f->env, f->arena, f->sink_id, error);
    f->now += 60 * TIME_SECOND_US;
    return reclaimed;
}

static void settle_reclaim(void *world, err result)
{
    struct roll_fixture *f = world;
    /* It was done, and not told: then there is nothing to reclaim any more. */
    if (look_sink(f).state == SINK_DISABLED) {
        must(f, act_reclaim(f, &f->error));
    } else {
        assert_true(result == OK || result == UNKNOWN);
    }
    roll_out(f);
    assert_int_equal(look_sink(f).state, SINK_ACTIVE);
    assert_int_equal(table_rows(f), 2);
    assert_books(f);
}

/* ---- a delete ---- */

static void *open_to_delete(void)
{
    struct roll_fixture *f = aged_fixture();
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    send_object(f, "b", "{\"x\":2}");
    return f;
}

static err act_delete(void *world, struct error *error)
{
    struct roll_fixture *f = world;
    i64 discarded = 0;
    err deleted = sink_delete(&f->env, f->sink_id, &discarded, error);
    f->now += 60 * TIME_SECOND_US;
    return deleted;
}

static void settle_delete(void *world, err result)
{
    struct roll_fixture *f = world;
    if (look_sink(f).state != SINK_DELETED) {
        assert_int_not_equal(result, OK);
        must(f, act_delete(f, &f->error));
    }
    assert_int_equal(look_sink(f).state, SINK_DELETED);
    assert_int_equal(table_rows(f), 1);
    assert_int_equal(look_sink(f).rows_discarded, 1);
    assert_true(table_property(f).data == NULL);
    assert_books(f);
}

/* ---- verify ---- */

static void *open_rolled(void)
{
    struct roll_fixture *f = open_waiting();
    struct ledger_sink sink = look_sink(f);
    must(f, settings_write(&f->store, &f->seam, f->arena, f->installation, &sink, SETTINGS_ACTIVE,
                           NULL, &f->error));
    roll_out(f);
    return f;
}

static err act_verify(void *world, struct error *error)
{
    struct roll_fixture *f = world;
    struct verify_report report = {0};
    const struct verify_env env = {.db = f->env.db,
                                   .seam = &f->seam,
                                   .warehouse = &f->warehouse,
                                   .installation_id = f->installation,
                                   .depth = VERIFY_ROWS};
    TRY(verify_sink(&env, f->arena, f->sink_id, &report, error));
    if (report.findings_in_all > 0) { /* trouble is an error, and no finding */
        fail_msg("%s: %.*s: %.*s", report.findings[0].rule, STR_ARG(report.findings[0].subject),
                 STR_ARG(report.findings[0].text));
    }
    assert_int_equal(report.rows, 2);
    return OK;
}

static void settle_verify(void *world, err result)
{
    struct roll_fixture *f = world;
    (void)result;
    must(f, act_verify(f, &f->error));
}

/* ---- the incarnation ---- */

static void *open_aged(void)
{
    return aged_fixture();
}

static err act_incarnation(void *world, struct error *error)
{
    struct roll_fixture *f = world;
    const struct warehouse *const warehouses[] = {&f->warehouse};
    struct incarnation incarnation = {.db = &f->door_db,
                                      .warehouses = warehouses,
                                      .count = 1,
                                      .installation_id = f->installation};
    enum incarnation_reading reading = INCARNATION_FINE;
    TRY(incarnation_read(&incarnation, &reading, error));
    assert_int_equal(reading, INCARNATION_FINE);
    TRY(incarnation_raise(&incarnation, error));
    TRY(incarnation_watch(&incarnation, &reading, error));
    assert_int_equal(reading, INCARNATION_FINE);
    return OK;
}

static void settle_incarnation(void *world, err result)
{
    struct roll_fixture *f = world;
    const struct warehouse *const warehouses[] = {&f->warehouse};
    struct incarnation incarnation = {.db = &f->door_db,
                                      .warehouses = warehouses,
                                      .count = 1,
                                      .installation_id = f->installation};
    enum incarnation_reading reading = INCARNATION_FINE;
    (void)result;
    must(f, incarnation_read(&incarnation, &reading, &f->error));
    /* A number that the store has and the ledger has not looks like a copy: sinks recover, and find
     * nothing to do. The next raise makes up for it. */
    must(f, incarnation_raise(&incarnation, &f->error));
    must(f, incarnation_read(&incarnation, &reading, &f->error));
    assert_int_equal(reading, INCARNATION_FINE);
}

/* ---- settings ---- */

static err act_settings(void *world, struct error *error)
{
    struct roll_fixture *f = world;
    const struct ledger_sink sink = {.id = f->sink_id,
                                     .name = STR("events"),
                                     .project = STR("prj"),
                                     .warehouse = STR("garden"),
                                     .namespace_name = STR("demo"),
                                     .table_name = STR("events"),
                                     .table_uuid = STR("9c12d441-03fe-4693-9a96-a0705ddf69c1"),
                                     .roll_seconds = 60,
                                     .roll_bytes = 64 * (i64)MIB,
                                     .unknown_fields = STR("reject"),
                                     .idempotency = STR("required"),
                                     .send_key_id = STR("0123456789ab"),
                                     .claim_id = STR("0123456789abcdefghjkmnpqrs"),
                                     .config_version = 1};
    struct ledger_sink read = {0};
    str *ids = NULL;
    size_t count = 0;
    const struct store *files = &f->warehouse.files;
    TRY(settings_write(files, &f->seam, f->arena, f->installation, &sink, SETTINGS_ACTIVE, NULL,
                       error));
    TRY(settings_read(files, f->arena, f->installation, f->sink_id, &read, error));
    assert_true(str_equal(read.name, sink.name));
    TRY(settings_list_sinks(files, f->arena, &ids, &count, error));
    assert_int_equal(count, 1);
    return OK;
}

static void settle_settings(void *world, err result)
{
    struct roll_fixture *f = world;
    (void)result;
    must(f, act_settings(f, &f->error));
}

/* ---- merges of manifests ---- */

static void *open_many_manifests(void)
{
    struct roll_fixture *f = fixture_open();
    foreign_commit(f, "{'requirements':[],'updates':[{'action':'set-properties','updates':"
                      "{'commit.manifest.min-count-to-merge':'2'}}]}");
    for (const char *name = "abc"; *name != '\0'; name++) {
        send_batch(f, name, "{\"x\":1}");
        roll_out(f);
    }
    return f;
}

static err act_merge(void *world, struct error *error)
{
    struct roll_fixture *f = world;
    return roll_merge(&f->env, f->sink_id, error);
}

static void settle_merge(void *world, err result)
{
    struct roll_fixture *f = world;
    (void)result;
    f->now += 60 * TIME_SECOND_US; /* past a lease that was not given back */
    assert_books(f);
    must(f, act_merge(f, &f->error));
    assert_books(f);
    send_batch(f, "later", "{\"x\":2}");
    roll_out(f);
    assert_int_equal(table_rows(f), 4);
    assert_books(f);
}

/* ---- the loops ---- */

#define SCENE(name, open, act, settle) {name, open, doors_of, act, settle, close_world}

/* The first SMALL of them allocate little. */
enum { SMALL = 4 };
static const struct door_scene SCENES[] = {
    SCENE("sweep", open_to_sweep, act_sweep, settle_sweep),
    SCENE("resolve", open_quarantined, act_resolve, settle_resolve),
    SCENE("incarnation", open_aged, act_incarnation, settle_incarnation),
    SCENE("settings", open_aged, act_settings, settle_settings),
    SCENE("merge", open_many_manifests, act_merge, settle_merge),
    SCENE("recover", open_half_done, act_recover, settle_roll),
    SCENE("restore a warehouse", open_older, act_restore, settle_restore),
    SCENE("reclaim", open_mismatched, act_reclaim, settle_reclaim),
};

/* Their calls fail in the tests of their own. */
static const struct door_scene STARVED[] = {
    SCENE("collect", open_orphans, act_collect, settle_collect),
    SCENE("roll", open_waiting, act_roll, settle_roll),
    SCENE("delete", open_to_delete, act_delete, settle_delete),
    SCENE("verify", open_rolled, act_verify, settle_verify),
};

static void a_call_that_fails_costs_another_try(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(SCENES); i++) {
        assert_true(door_every(&SCENES[i], DOOR_FAILS) > 0);
    }
}

static void an_answer_that_is_lost_costs_another_try(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(SCENES); i++) {
        assert_true(door_every(&SCENES[i], DOOR_LOSES) > 0);
    }
}

static void a_growth_that_fails_costs_another_try(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(SCENES); i++) {
        assert_true(door_every(&SCENES[i], DOOR_STARVES) > 0);
    }
    for (size_t i = 0; i < ARRAY_COUNT(STARVED); i++) {
        assert_true(door_every(&STARVED[i], DOOR_STARVES) > 0);
    }
}

/* Of the large ones in the long tier. */
static void an_allocation_that_fails_costs_another_try(void **state)
{
    (void)state;
    bool all = door_takes_its_time();
    for (size_t i = 0; i < (all ? ARRAY_COUNT(SCENES) : SMALL); i++) {
        assert_true(door_every(&SCENES[i], DOOR_STARVES_ANY) > 0);
    }
    for (size_t i = 0; i < (all ? ARRAY_COUNT(STARVED) : 1); i++) {
        assert_true(door_every(&STARVED[i], DOOR_STARVES_ANY) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_fails_costs_another_try),
        cmocka_unit_test(an_answer_that_is_lost_costs_another_try),
        cmocka_unit_test(a_growth_that_fails_costs_another_try),
        cmocka_unit_test(an_allocation_that_fails_costs_another_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
