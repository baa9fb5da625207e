#include "account_fixture.h"

#include "account/alert.h"
#include "account/usage.h"

static void make_sink(struct fixture *fixture)
{
    struct error error = {0};
    const struct ledger_sink sink = {
        .id = STR("snk_000000000001"),
        .project = STR("prj_1"),
        .warehouse = STR("garden"),
        .namespace_name = STR("demo"),
        .table_name = STR("events"),
        .table_uuid = STR("u"),
        .name = STR("events_in"),
        .roll_seconds = 60,
        .roll_bytes = 64 * (i64)MIB,
        .unknown_fields = STR("reject"),
        .idempotency = STR("required"),
        .send_key_id = STR("000000000001"),
        .claim_id = STR("00000000000000000000000000"),
    };
    assert_int_equal(ledger_insert_sink(&fixture->db, &sink, &error), OK);
}

static enum ledger_accept_outcome send(struct fixture *fixture, str batch_id)
{
    struct error error = {0};
    instant now = 0;
    str node = STR("nod_000000000001");
    assert_int_equal(ledger_register_node(&fixture->db, node, STR("all"), &now, &error), OK);
    struct ledger_accept item = {
        .batch_id = batch_id,
        .uid = id_uid_make(&fixture->seam),
        .object_key = STR("_sink/snk_000000000001/x.ndjson"),
        .bytes = 7,
        .rows = 1,
        .received_at = fixture->now,
        .began_at = now,
        .answer = STR("{}"),
    };
    assert_int_equal(ledger_accept(&fixture->db, fixture->arena, node, STR("snk_000000000001"),
                                   LEDGER_BACKLOG_DEFAULT, LEDGER_DURABLE, &item, 1, &error),
                     OK);
    return item.outcome;
}

/* How many alerts of this kind are open. */
static size_t open_alerts(struct fixture *fixture, str kind)
{
    struct error error = {0};
    struct alert *alerts = NULL;
    size_t count = 0;
    size_t open = 0;
    assert_int_equal(alert_look(&fixture->db, &fixture->seam, &error), OK);
    assert_int_equal(
        alert_list(&fixture->db, fixture->arena, STR("prj_1"), 100, &alerts, &count, &error), OK);
    for (size_t i = 0; i < count; i++) {
        open += str_equal(alerts[i].kind, kind) && alerts[i].closed_at == 0 ? 1 : 0;
    }
    return open;
}

static err run_sql(struct db_tx *tx, void *context, struct error *error)
{
    return db_exec(tx, context, NULL, 0, NULL, error);
}

static void change(struct fixture *fixture, char *sql)
{
    struct error error = {0};
    assert_int_equal(db_transact(&fixture->db, run_sql, sql, &error), OK);
}

static void a_quiet_installation_has_no_alerts(void **state)
{
    struct fixture *fixture = *state;
    make_sink(fixture);
    assert_int_equal(send(fixture, STR("a")), ACCEPT_NEW);
    assert_int_equal(open_alerts(fixture, STR("sink_lag")), 0);
    struct error error = {0};
    struct alert *alerts = NULL;
    size_t count = 9;
    assert_int_equal(
        alert_list(&fixture->db, fixture->arena, STR("prj_1"), 100, &alerts, &count, &error), OK);
    assert_int_equal(count, 0);
}

static void lag_opens_one_alert_after_three_rolls_and_closes_with_its_cause(void **state)
{
    struct fixture *fixture = *state;
    make_sink(fixture);
    assert_int_equal(send(fixture, STR("a")), ACCEPT_NEW);
    fixture->now += 180 * TIME_SECOND_US;
    assert_int_equal(open_alerts(fixture, STR("sink_lag")), 0);
    fixture->now += 1 * TIME_SECOND_US;
    assert_int_equal(open_alerts(fixture, STR("sink_lag")), 1);
    assert_int_equal(open_alerts(fixture, STR("sink_lag")), 1);
    char settle[] = "UPDATE batch SET state = 2";
    change(fixture, settle);
    assert_int_equal(open_alerts(fixture, STR("sink_lag")), 0);
}

static void a_closed_alert_is_shown_for_a_week(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    make_sink(fixture);
    assert_int_equal(ledger_disable_sink(&fixture->db, STR("snk_000000000001"), STR("table_gone"),
                                         STR(""), &error),
                     OK);
    assert_int_equal(open_alerts(fixture, STR("sink_disabled")), 1);
    assert_int_equal(ledger_resume_sink(&fixture->db, STR("snk_000000000001"), &error), OK);
    assert_int_equal(open_alerts(fixture, STR("sink_disabled")), 0);
    struct alert *alerts = NULL;
    size_t count = 0;
    assert_int_equal(
        alert_list(&fixture->db, fixture->arena, STR("prj_1"), 100, &alerts, &count, &error), OK);
    assert_int_equal(count, 1);
    fixture->now += 7 * TIME_DAY_US + 1;
    assert_int_equal(
        alert_list(&fixture->db, fixture->arena, STR("prj_1"), 100, &alerts, &count, &error), OK);
    assert_int_equal(count, 0);
}

static void books_that_do_not_add_up_are_an_alert(void **state)
{
    struct fixture *fixture = *state;
    make_sink(fixture);
    assert_int_equal(send(fixture, STR("a")), ACCEPT_NEW);
    assert_int_equal(open_alerts(fixture, STR("books_difference")), 0);
    char lose[] = "UPDATE sink SET rows_accepted = rows_accepted + 1";
    change(fixture, lose);
    assert_int_equal(open_alerts(fixture, STR("books_difference")), 1);
}

static void an_alert_of_another_project_is_not_shown(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    make_sink(fixture);
    assert_int_equal(ledger_disable_sink(&fixture->db, STR("snk_000000000001"), STR("table_gone"),
                                         STR(""), &error),
                     OK);
    assert_int_equal(open_alerts(fixture, STR("sink_disabled")), 1);
    struct alert *alerts = NULL;
    size_t count = 9;
    assert_int_equal(
        alert_list(&fixture->db, fixture->arena, STR("prj_2"), 100, &alerts, &count, &error), OK);
    assert_int_equal(count, 0);
}

static void usage_counts_a_batch_once_and_duplicates_never(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    struct usage usage = {0};
    make_sink(fixture);
    assert_int_equal(send(fixture, STR("a")), ACCEPT_NEW);
    assert_int_equal(send(fixture, STR("a")), ACCEPT_DUPLICATE);
    assert_int_equal(send(fixture, STR("b")), ACCEPT_NEW);
    assert_int_equal(usage_month(&fixture->db, fixture->arena, STR("prj_1"), &usage, &error), OK);
    assert_int_equal(usage.batches, 2);
    assert_int_equal(usage.bytes, 14);
    assert_int_equal(usage.rows_accepted, 2);
    assert_int_equal(usage.sink_count, 1);
    fixture->now += 40 * TIME_DAY_US;
    assert_int_equal(usage_month(&fixture->db, fixture->arena, STR("prj_1"), &usage, &error), OK);
    assert_int_equal(usage.batches, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_quiet_installation_has_no_alerts),
        TEST(lag_opens_one_alert_after_three_rolls_and_closes_with_its_cause),
        TEST(a_closed_alert_is_shown_for_a_week),
        TEST(books_that_do_not_add_up_are_an_alert),
        TEST(an_alert_of_another_project_is_not_shown),
        TEST(usage_counts_a_batch_once_and_duplicates_never),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
