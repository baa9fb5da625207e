#include "restore_fixture.h"

/* An older copy of the ledger is put back while the store is intact: nothing that was accepted is
 * lost or doubled, whatever its age within the 35 days for which plan objects are kept. Batches go
 * on coming, rolls and sweeps take place as they do in a server, and the clock is the test's own.
 */

enum { STEPS = 30 };

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

static void housekeep(struct roll_fixture *f)
{
    i64 deleted = 0;
    struct orphan_report orphans = {0};
    must(f, recover_verdicts(&f->env, STR(""), &f->error));
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    must(f, sweep_rejects(&f->env, f->sink_id, &deleted, &f->error));
    must(f, sweep_plan_objects(&f->env, f->sink_id, &deleted, &f->error));
    must(f, orphan_collect(&f->env, f->sink_id, &orphans, &f->error));
    must(f, sweep_rows(&f->db, &f->error));
}

/* Batch n holds the one row {"x": n}; every fifth has one that is rejected beside it. */
static void send_numbered(struct roll_fixture *f, int n)
{
    char id[32];
    char body[64];
    (void)snprintf(id, sizeof(id), "batch-%03d.", n);
    (void)snprintf(body, sizeof(body), n % 5 == 0 ? "{\"x\":%d}\n{\"x\":\"no\"}" : "{\"x\":%d}", n);
    send_object(f, id, body);
}

/* How many rolls say that they took the batch: what each of them added is counted beside it. */
static int rolls_of(struct roll_fixture *f, int n)
{
    char id[32];
    int rolls = 0;
    struct table table = load_table(f);
    const json_t *snapshots = json_object_get(metadata_json(table.metadata), "snapshots");
    (void)snprintf(id, sizeof(id), "batch-%03d.", n);
    for (size_t i = 0; i < json_array_size(snapshots); i++) {
        const json_t *summary = json_object_get(json_array_get(snapshots, i), "summary");
        const char *batches = json_string_value(
            json_object_get(summary, "lakehousebox.sink.batches"));
        rolls += batches != NULL && strstr(batches, id) != NULL ? 1 : 0;
    }
    table_close(&table);
    return rolls;
}

static void assert_each_once(struct roll_fixture *f, int count)
{
    roll_out(f);
    housekeep(f);
    for (int n = 1; n <= count; n++) {
        assert_int_equal(rolls_of(f, n), 1);
    }
    assert_int_equal(table_rows(f), count);
    assert_books(f);
    assert_int_equal(look_sink(f).waiting_batches, 0);
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM quarantine"), 0);
}

static void restore_after(struct roll_fixture *f, i64 age_us)
{
    int sent = 0;
    send_numbered(f, ++sent);
    roll_out(f);
    send_numbered(f, ++sent);
    struct db copy = take_copy(f);
    for (int step = 0; step < STEPS; step++) {
        age(f, age_us / STEPS);
        send_numbered(f, ++sent);
        if (step % 3 == 0) {
            roll_out(f);
            housekeep(f);
        }
    }
    assert_true(look_sink(f).waiting_batches > 0);
    assert_true(table_rows(f) > 20);
    put_back(f, &copy);
    db_close(&copy);
    assert_int_equal(recover_sink_now(f).end, RESTORE_RECOVERED);
    assert_each_once(f, sent);
    send_numbered(f, ++sent);
    assert_each_once(f, sent);
}

static void a_ledger_of_a_minute_ago_loses_and_doubles_nothing(void **state)
{
    restore_after(*state, 60 * TIME_SECOND_US);
}

static void a_ledger_of_an_hour_ago_loses_and_doubles_nothing(void **state)
{
    restore_after(*state, 3600 * TIME_SECOND_US);
}

static void a_ledger_of_thirty_days_ago_loses_and_doubles_nothing(void **state)
{
    restore_after(*state, 30 * TIME_DAY_US);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_ledger_of_a_minute_ago_loses_and_doubles_nothing),
        TEST(a_ledger_of_an_hour_ago_loses_and_doubles_nothing),
        TEST(a_ledger_of_thirty_days_ago_loses_and_doubles_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
