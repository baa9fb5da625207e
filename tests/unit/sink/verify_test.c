#include "roll_fixture.h"

#include "sink/verify.h"

/* A sound sink is found sound at every age; damage under its rule; and a store that cannot be read
 * is trouble, never damage. */

static const char *const SETTINGS = "{\"format\":1}";

static int open_garden(void **state)
{
    struct roll_fixture *f = fixture_open();
    str key = str_format(f->arena, "_sink/%.*s/sink/1.a.json", STR_ARG(f->sink_id));
    must(f, store_put(&f->store, key, str_from(SETTINGS), NULL, &f->error));
    *state = f;
    return 0;
}

static int close_garden(void **state)
{
    fixture_close(*state);
    return 0;
}

/* ---- helpers ---- */

static void roll_now(struct roll_fixture *f)
{
    enum roll_end end = ROLL_NOTHING;
    must(f, roll_sink(&f->env, f->sink_id, STR("test"), &end, &f->error));
    assert_int_equal(end, ROLL_ENDED);
}

static err look(struct roll_fixture *f, struct verify_report *out_report)
{
    const struct verify_env env = {
        .db = f->env.db,
        .seam = &f->seam,
        .warehouse = &f->warehouse,
        .installation_id = f->installation,
        .what = VERIFY_LIVE,
        .depth = VERIFY_ROWS,
    };
    return verify_sink(&env, f->arena, f->sink_id, out_report, &f->error);
}

static struct verify_report must_look(struct roll_fixture *f)
{
    struct verify_report report = {0};
    must(f, look(f, &report));
    return report;
}

static void assert_sound(struct roll_fixture *f)
{
    struct verify_report report = must_look(f);
    if (report.findings_in_all > 0) {
        fail_msg("%s: %.*s: %.*s", report.findings[0].rule, STR_ARG(report.findings[0].subject),
                 STR_ARG(report.findings[0].text));
    }
}

static void assert_found(struct roll_fixture *f, const char *rule, str subject)
{
    struct verify_report report = must_look(f);
    bool found = false;
    for (size_t i = 0; i < report.finding_count; i++) {
        found = found || (str_equal(str_from(report.findings[i].rule), str_from(rule)) &&
                          str_equal(report.findings[i].subject, subject));
    }
    if (!found) {
        fail_msg("%s of %.*s is not among the %zu findings", rule, STR_ARG(subject),
                 report.finding_count);
    }
}

struct statement {
    const char *sql;
    i64 changes;
};

static err change_body(struct db_tx *tx, void *context, struct error *error)
{
    struct statement *statement = context;
    return db_exec(tx, statement->sql, NULL, 0, &statement->changes, error);
}

static void change(struct roll_fixture *f, const char *sql)
{
    struct statement statement = {.sql = sql};
    must(f, db_transact(&f->db, change_body, &statement, &f->error));
    assert_true(statement.changes > 0);
}

/* Rolls, rejects, a batch that was rejected whole, a plan that was given up, one that waits. */
static void live(struct roll_fixture *f)
{
    send_batch(f, "a", "{\"x\":1}\n{\"x\":\"many\"}\n{\"x\":2}");
    send_batch(f, "b", "{\"x\":3}");
    roll_now(f);
    send_batch(f, "none", "{\"x\":\"many\"}");
    roll_now(f);
    send_batch(f, "c", "{\"x\":4}");
    roll_now(f);
    send_batch(f, "waits", "{\"x\":5}\n{\"x\":6}");
}

/* So many days of running, with their sweeps. */
static void pass_days(struct roll_fixture *f, i64 days)
{
    for (i64 hour = 0; hour < days * 24; hour++) {
        f->now += 3600 * TIME_SECOND_US;
        must(f, ledger_add_running(&f->db, 3600 * TIME_SECOND_US, &f->error));
    }
    i64 deleted = 0;
    must(f, recover_verdicts(&f->env, STR(""), &f->error));
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    must(f, sweep_rows(&f->db, &f->error));
}

/* ---- sound ---- */

static void a_sink_that_lived_is_sound(void **state)
{
    struct roll_fixture *f = *state;
    assert_sound(f);
    live(f);
    must(f, recover_verdicts(&f->env, STR(""), &f->error));
    assert_sound(f);
    struct verify_report report = must_look(f);
    assert_int_equal(report.batches, 5);
    assert_int_equal(report.plans, 3);
    assert_int_equal(report.rejects_files, 2);
    assert_int_equal(report.data_files, 2);
    assert_int_equal(report.rows, 4);
}

static void a_commit_whose_answer_was_lost_is_sound_before_and_after_its_finish(void **state)
{
    struct roll_fixture *f = *state;
    live(f);
    f->before_commit = die_after_the_commit;
    enum roll_end end = ROLL_NOTHING;
    err rolled = roll_sink(&f->env, f->sink_id, STR("test"), &end, &f->error);
    assert_int_not_equal(rolled, OK);
    error_clear(&f->error);
    door_heal(f);
    assert_sound(f);
    roll_now(f);
    assert_sound(f);
}

static void what_the_sweeps_forgot_is_no_damage(void **state)
{
    struct roll_fixture *f = *state;
    live(f);
    roll_now(f);
    pass_days(f, 8);
    assert_sound(f);
    assert_int_equal(must_look(f).batches, 0);
    send_batch(f, "late", "{\"x\":7}");
    roll_now(f);
    pass_days(f, 40);
    assert_sound(f);
    assert_int_equal(must_look(f).plans, 0);
}

/* ---- trouble ---- */

static void what_cannot_be_read_is_trouble_and_no_damage(void **state)
{
    struct roll_fixture *f = *state;
    live(f);
    must(f, recover_verdicts(&f->env, STR(""), &f->error));
    door_arm(f, DOOR_SOUND, 0);
    assert_sound(f);
    i64 calls = f->doors.calls;
    assert_true(calls > 20);
    for (i64 at = 1; at <= calls; at++) {
        struct verify_report report = {0};
        door_arm(f, DOOR_FAILS, at);
        err looked = look(f, &report);
        assert_int_equal(looked, IO);
        error_clear(&f->error);
    }
    door_heal(f);
    assert_sound(f);
}

static void a_sink_that_is_not_there_is_not_found(void **state)
{
    struct roll_fixture *f = *state;
    f->sink_id = STR("snk_none");
    struct verify_report report = {0};
    assert_int_equal(look(f, &report), NOT_FOUND);
    assert_int_equal(f->error.code, ERROR_SINK_NOT_FOUND);
}

/* ---- damage ---- */

static void changed_rows_are_found(void **state)
{
    static const struct {
        const char *sql;
        const char *undo;
        const char *rule;
        const char *subject;
    } cases[] = {
        {"UPDATE batch SET rows_committed = 1 WHERE batch_id = 'a'",
         "UPDATE batch SET rows_committed = 2 WHERE batch_id = 'a'", "I13", "a"},
        {"UPDATE batch SET plan = NULL WHERE batch_id = 'c'", NULL, "I17", "c"},
        {"UPDATE batch SET seq = 9000 WHERE batch_id = 'waits'", NULL, "I20", "waits"},
        {"UPDATE batch SET finished_at = NULL WHERE batch_id = 'b'", NULL, "I17", "b"},
        {"UPDATE batch SET seq = (SELECT seq FROM batch WHERE batch_id = 'c') WHERE batch_id = "
         "'waits'",
         NULL, "I20", "waits"},
    };
    struct roll_fixture *f = *state;
    live(f);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        change(f, cases[i].sql);
        assert_found(f, cases[i].rule, str_from(cases[i].subject));
        if (cases[i].undo != NULL) {
            change(f, cases[i].undo);
            assert_sound(f);
        }
    }
}

static void a_lost_batch_is_missed_for_seven_days(void **state)
{
    struct roll_fixture *f = *state;
    live(f);
    change(f, "DELETE FROM batch WHERE batch_id = 'b'");
    assert_found(f, "I2", STR("b"));
}

static void a_doomed_object_with_a_waiting_batch_is_found(void **state)
{
    struct roll_fixture *f = *state;
    live(f);
    change(f, "INSERT INTO doomed_object (warehouse, object_key, at, tries) SELECT 'garden', "
              "object_key, 1, 0 FROM batch WHERE batch_id = 'waits'");
    assert_found(f, "I16", look_batch(f, "waits").object_key);
}

static void a_second_live_plan_is_found(void **state)
{
    struct roll_fixture *f = *state;
    live(f);
    change(f, "DROP INDEX plan_live");
    change(f, "UPDATE plan SET state = 1 WHERE state = 3");
    assert_found(f, "I8", f->sink_id);
}

static void a_roll_that_the_ledger_forgot_is_found(void **state)
{
    struct roll_fixture *f = *state;
    live(f);
    change(f, "UPDATE plan SET n = 7 WHERE n = 1 AND state = 3");
    assert_found(f, "I7", f->sink_id);
}

static void a_dropped_table_is_found(void **state)
{
    struct roll_fixture *f = *state;
    live(f);
    must(f, catalog_drop(&f->catalog, fixture_table(), &f->error));
    assert_found(f, "I24", f->sink_id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sink_that_lived_is_sound, open_garden, close_garden),
        cmocka_unit_test_setup_teardown(
            a_commit_whose_answer_was_lost_is_sound_before_and_after_its_finish, open_garden,
            close_garden),
        cmocka_unit_test_setup_teardown(what_the_sweeps_forgot_is_no_damage, open_garden,
                                        close_garden),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_trouble_and_no_damage, open_garden,
                                        close_garden),
        cmocka_unit_test_setup_teardown(a_sink_that_is_not_there_is_not_found, open_garden,
                                        close_garden),
        cmocka_unit_test_setup_teardown(changed_rows_are_found, open_garden, close_garden),
        cmocka_unit_test_setup_teardown(a_lost_batch_is_missed_for_seven_days, open_garden,
                                        close_garden),
        cmocka_unit_test_setup_teardown(a_doomed_object_with_a_waiting_batch_is_found, open_garden,
                                        close_garden),
        cmocka_unit_test_setup_teardown(a_second_live_plan_is_found, open_garden, close_garden),
        cmocka_unit_test_setup_teardown(a_roll_that_the_ledger_forgot_is_found, open_garden,
                                        close_garden),
        cmocka_unit_test_setup_teardown(a_dropped_table_is_found, open_garden, close_garden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
