#include "restore_fixture.h"

#include "sink/settings.h"

/* recover: the sinks that the settings objects know (O14). */

static int set_up(void **state)
{
    *state = aged_fixture();
    return 0;
}

static int tear_down(void **state)
{
    fixture_close(*state);
    return 0;
}

static struct restore_report recover_warehouse(struct roll_fixture *f)
{
    struct restore_report report = {0};
    must(f, restore_warehouse(&f->env, f->arena, RESTORE_ALL, &report, &f->error));
    return report;
}

static void write_settings(struct roll_fixture *f, enum settings_state state)
{
    struct ledger_sink sink = look_sink(f);
    must(f, settings_write(&f->store, &f->seam, f->arena, f->installation, &sink, state, NULL,
                           &f->error));
}

static void a_sink_that_the_copy_lacks_is_made_again(void **state)
{
    struct roll_fixture *f = *state;
    write_settings(f, SETTINGS_ACTIVE);
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    sweep(f);
    send_object(f, "b", "{\"x\":2}");
    tell_sql(f, "DELETE FROM sink");
    tell_sql(f, "DELETE FROM batch");
    tell_sql(f, "DELETE FROM plan");
    struct restore_report report = recover_warehouse(f);
    assert_int_equal(report.count, 1);
    assert_true(report.sinks[0].made);
    assert_int_equal(report.sinks[0].end, RESTORE_RECOVERED);
    struct ledger_sink sink = look_sink(f);
    assert_int_equal(sink.roll_seconds, 60);
    assert_true(str_equal(sink.send_key_id, STR("0123456789ab")));
    assert_whole(f, 2);
}

static void newer_settings_take_the_place_of_the_copys(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_sink sink = look_sink(f);
    sink.config_version = 3;
    sink.roll_seconds = 77;
    must(f, settings_write(&f->store, &f->seam, f->arena, f->installation, &sink, SETTINGS_ACTIVE,
                           NULL, &f->error));
    sink.config_version = 2;
    sink.roll_seconds = 66;
    must(f, settings_write(&f->store, &f->seam, f->arena, f->installation, &sink, SETTINGS_ACTIVE,
                           NULL, &f->error));
    recover_warehouse(f);
    assert_int_equal(look_sink(f).roll_seconds, 77);
    assert_int_equal(look_sink(f).config_version, 3);
}

static void a_deleted_sink_stays_deleted(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    send_object(f, "b", "{\"x\":2}");
    struct db copy = take_copy(f);
    i64 discarded = 0;
    must(f, sink_delete(&f->env, f->sink_id, &discarded, &f->error));
    assert_int_equal(discarded, 1);
    put_back(f, &copy);
    db_close(&copy);
    struct restore_report report = recover_warehouse(f);
    assert_int_equal(report.count, 1);
    assert_int_equal(report.sinks[0].end, RESTORE_DELETED);
    assert_int_equal(look_sink(f).state, SINK_DELETED);
    assert_int_equal(look_sink(f).rows_discarded, 1);
    assert_int_equal(table_rows(f), 1);
}

/* A deleted sink gives its table to the next one, however often a call fails on the way. */
static void a_read_that_fails_makes_no_sink_undeleted(void **state)
{
    (void)state;
    bool more = true;
    for (i64 at = 1; more; at++) {
        struct roll_fixture *f = aged_fixture();
        struct ledger_sink next = look_sink(f);
        struct db copy = take_copy(f);
        i64 discarded = 0;
        must(f, sink_delete(&f->env, f->sink_id, &discarded, &f->error));
        next.id = STR("snk_000000000002");
        next.send_key_id = STR("0123456789ac");
        must(f, settings_write(&f->store, &f->seam, f->arena, f->installation, &next,
                               SETTINGS_ACTIVE, NULL, &f->error));
        put_back(f, &copy);
        db_close(&copy);
        struct restore_report report = {0};
        door_arm(f, DOOR_FAILS, at);
        err recovered = restore_warehouse(&f->env, f->arena, RESTORE_ALL, &report, NULL);
        more = f->doors.calls >= at;
        door_heal(f);
        assert_true(recovered != OK ||
                    ask_sql(f, "SELECT count(*) FROM sink WHERE state = 4 OR id LIKE '%2'") == 2);
        fixture_close(f);
        assert_true(at < 500);
    }
}

static void a_sink_that_was_being_deleted_goes_on_with_it(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    struct db copy = take_copy(f);
    must(f, sink_delete_begin(&f->env, f->sink_id, &f->error));
    put_back(f, &copy);
    db_close(&copy);
    recover_warehouse(f);
    assert_int_equal(look_sink(f).state, SINK_DELETING);
    struct recover_report report = {0};
    must(f, recover_sinks(&f->env, &report, &f->error));
    assert_int_equal(report.deleted, 1);
    assert_true(table_property(f).data == NULL);
}

/* A tick that dies as soon as its plan is made, before it is tried. */
static void plan_without_a_try(struct roll_fixture *f)
{
    for (i64 at = 1; ask_sql(f, "SELECT count(*) FROM plan WHERE state = 0") == 0; at++) {
        assert_true(at < 50);
        door_arm(f, DOOR_DIES_BEFORE, at);
        roll_tick(f);
        door_heal(f);
        f->now += 60 * TIME_SECOND_US; /* its lease */
    }
}

static void assert_deleted(struct roll_fixture *f, i64 committed, i64 discarded)
{
    struct recover_report report = {0};
    must(f, recover_sinks(&f->env, &report, &f->error));
    assert_int_equal(report.deleted, 1);
    struct ledger_sink sink = look_sink(f);
    assert_int_equal(sink.state, SINK_DELETED);
    assert_int_equal(sink.rows_committed, committed);
    assert_int_equal(sink.rows_discarded, discarded);
    assert_true(table_property(f).data == NULL);
    assert_books(f);
}

/* The copy calls a plan open whose request is still under way: it may not land any more once its
 * batch is called discarded. */
static void a_delete_that_goes_on_lets_no_request_of_before_land(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    send_object(f, "b", "{\"x\":2}");
    plan_without_a_try(f);
    struct db copy = take_copy(f);
    f->keeps_requests = true;
    f->before_commit = die_before_the_commit; /* kept, and then the process dies */
    roll_tick(f);
    door_heal(f);
    assert_non_null(f->kept);
    must(f, sink_delete_begin(&f->env, f->sink_id, &f->error));
    put_back(f, &copy);
    db_close(&copy);
    recover_warehouse(f);
    assert_int_equal(look_sink(f).state, SINK_DELETING);
    assert_int_equal(look_sink(f).has_live_plan, false);
    assert_int_equal(land_kept(f), CONFLICT);
    assert_deleted(f, 1, 1);
}

static void a_delete_that_goes_on_counts_what_was_committed_after_the_copy(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    send_object(f, "b", "{\"x\":2}");
    plan_without_a_try(f);
    struct db copy = take_copy(f);
    roll_out(f);
    must(f, sink_delete_begin(&f->env, f->sink_id, &f->error));
    put_back(f, &copy);
    db_close(&copy);
    struct restore_report report = recover_warehouse(f);
    assert_int_equal(report.count, 1);
    assert_int_equal(report.sinks[0].end, RESTORE_DELETING);
    assert_int_equal(report.sinks[0].committed, 1);
    assert_deleted(f, 2, 0);
}

/* Its last fence has taken the property away: nothing can be proven, and nothing stops the delete.
 */
static void a_delete_goes_on_behind_its_last_fence(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    send_object(f, "b", "{\"x\":2}");
    plan_without_a_try(f);
    struct db copy = take_copy(f);
    for (i64 at = 1; table_property(f).data != NULL; at++) {
        i64 discarded = 0;
        door_arm(f, DOOR_DIES_BEFORE, at);
        err deleted = sink_delete(&f->env, f->sink_id, &discarded, NULL);
        assert_int_not_equal(deleted, OK);
        door_heal(f);
        f->now += 60 * TIME_SECOND_US;
    }
    assert_int_equal(look_sink(f).state, SINK_DELETING);
    put_back(f, &copy);
    db_close(&copy);
    recover_warehouse(f);
    assert_int_equal(look_sink(f).state, SINK_DELETING);
    assert_deleted(f, 1, 1);
}

/* The roller goes on with what the command could not end; it reads the settings itself. */
static void a_roller_that_goes_on_with_the_recover_knows_of_the_delete(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    struct db copy = take_copy(f);
    must(f, sink_delete_begin(&f->env, f->sink_id, &f->error));
    put_back(f, &copy);
    db_close(&copy);
    must(f, ledger_begin_recover(&f->db, f->sink_id, &f->error));
    roll_tick(f);
    assert_int_equal(look_sink(f).state, SINK_DELETING);
    assert_deleted(f, 1, 0);
}

static size_t count_settings(struct roll_fixture *f, str sink_id)
{
    struct store_list list = {0};
    str prefix = str_format(f->arena, "_sink/%.*s/sink/", STR_ARG(sink_id));
    must(f, store_list(&f->store, f->arena, prefix, STR(""), 100, &list, &f->error));
    return list.count;
}

/* Killed between its settings object and its row; then the name and the table were used again. */
static void a_creation_that_was_cut_off_is_no_sink(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_sink unmade = look_sink(f);
    write_settings(f, SETTINGS_ACTIVE);
    unmade.id = STR("snk_00000000dead");
    must(f, settings_write(&f->store, &f->seam, f->arena, f->installation, &unmade,
                           SETTINGS_CREATING, NULL, &f->error));
    struct restore_report report = recover_warehouse(f);
    assert_int_equal(report.count, 1);
    assert_int_equal(report.sinks[0].end, RESTORE_RECOVERED);
    assert_int_equal(count_settings(f, unmade.id), 1);
    files_age_us = 37 * TIME_DAY_US;
    age(f, 36 * TIME_DAY_US);
    recover_warehouse(f);
    assert_int_equal(count_settings(f, unmade.id), 0);
    assert_int_equal(count_settings(f, f->sink_id), 1);
}

static void settings_stay_while_the_sink_lives_and_35_days(void **state)
{
    struct roll_fixture *f = *state;
    i64 deleted = 0;
    write_settings(f, SETTINGS_CREATING);
    write_settings(f, SETTINGS_ACTIVE);
    files_age_us = 37 * TIME_DAY_US;
    age(f, 36 * TIME_DAY_US);
    must(f, sweep_settings(&f->env, f->sink_id, &deleted, &f->error));
    assert_int_equal(deleted, 0);
    must(f, sink_delete(&f->env, f->sink_id, &deleted, &f->error));
    files_age_us = 0;
    must(f, sweep_settings(&f->env, f->sink_id, &deleted, &f->error));
    assert_int_equal(deleted, 0);
    files_age_us = 37 * TIME_DAY_US;
    age(f, 36 * TIME_DAY_US);
    must(f, sweep_settings(&f->env, f->sink_id, &deleted, &f->error));
    assert_int_equal(deleted, 4); /* creating, active, deleting, deleted */
    assert_int_equal(count_settings(f, f->sink_id), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sink_that_the_copy_lacks_is_made_again),
        TEST(newer_settings_take_the_place_of_the_copys),
        TEST(a_deleted_sink_stays_deleted),
        cmocka_unit_test(a_read_that_fails_makes_no_sink_undeleted),
        TEST(a_sink_that_was_being_deleted_goes_on_with_it),
        TEST(a_delete_that_goes_on_lets_no_request_of_before_land),
        TEST(a_delete_that_goes_on_counts_what_was_committed_after_the_copy),
        TEST(a_delete_goes_on_behind_its_last_fence),
        TEST(a_roller_that_goes_on_with_the_recover_knows_of_the_delete),
        TEST(a_creation_that_was_cut_off_is_no_sink),
        TEST(settings_stay_while_the_sink_lives_and_35_days),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
