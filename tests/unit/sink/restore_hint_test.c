#include "restore_fixture.h"

/* A version that the store does not tell of: recover finds the table as it was before. */

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

static void assert_rolled(struct roll_fixture *f, i64 rows)
{
    roll_out(f);
    assert_int_equal(table_rows(f), rows);
    assert_books(f);
    assert_int_equal(look_sink(f).waiting_batches, 0);
}

/* Nobody took the property away, and no plan object may say so. */
static void a_claim_that_went_back_with_the_ledger_is_made_again(void **state)
{
    struct roll_fixture *f = *state;
    struct db copy = take_copy(f);
    hints_fail(f);
    send_object(f, "a", "{\"x\":1}");
    roll_tick(f);
    hints_heal(f);
    put_back(f, &copy);
    db_close(&copy);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.end, RESTORE_RECOVERED);
    assert_int_equal(report.adopted, 1);
    assert_rolled(f, 1);
}

static void no_plan_is_made_before_the_hint_tells_of_the_claim(void **state)
{
    struct roll_fixture *f = *state;
    hints_fail(f);
    send_object(f, "a", "{\"x\":1}");
    assert_int_equal(roll_tick(f), ROLL_LATER);
    assert_int_equal(look_sink(f).claim_state, CLAIM_ATTEMPTED);
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM plan"), 0);
    hints_heal(f);
    error_clear(&f->error);
    assert_rolled(f, 1);
}

static void no_plan_is_finished_before_the_hint_tells_of_it(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    assert_rolled(f, 1);
    hints_fail(f);
    send_object(f, "b", "{\"x\":2}");
    assert_int_equal(roll_tick(f), ROLL_LATER);
    assert_int_equal(table_rows(f), 2);
    assert_int_equal(look_sink(f).last_n, 1);
    hints_heal(f);
    error_clear(&f->error);
    assert_rolled(f, 2);
}

/* The first of the two copies leads the table back to before the roll. The second, of a later time,
 * must not tell that the roll is in the table. */
static void a_copy_is_never_ahead_of_a_table_that_an_older_one_led_back(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    assert_rolled(f, 1);
    struct db before = take_copy(f);
    hints_fail(f);
    send_object(f, "b", "{\"x\":2}");
    roll_tick(f);
    error_clear(&f->error);
    struct db after = take_copy(f);
    hints_heal(f);
    put_back(f, &before);
    assert_int_equal(recover_sink_now(f).end, RESTORE_RECOVERED);
    assert_rolled(f, 2);
    put_back(f, &after);
    assert_int_equal(recover_sink_now(f).end, RESTORE_RECOVERED);
    assert_whole(f, 2);
    db_close(&before);
    db_close(&after);
}

static void set_note(struct roll_fixture *f, const char *value)
{
    json_t *request = json_pack("{s:[], s:[{s:s, s:{s:s}}]}", "requirements", "updates", "action",
                                "set-properties", "updates", "note", value);
    struct table after = {0};
    must(f, catalog_commit(&f->catalog, f->arena, fixture_table(), request, &after, &f->error));
    json_decref(request);
    table_close(&after);
}

/* The copy's pointer has a higher number than the hint, but is of the line that was left. */
static void a_copy_does_not_lead_back_to_a_line_that_was_left(void **state)
{
    struct roll_fixture *f = *state;
    static const char *const NOTES[] = {"1", "2", "3", "4", "5"};
    send_object(f, "a", "{\"x\":1}");
    assert_rolled(f, 1);
    send_object(f, "b", "{\"x\":2}");
    struct db before = take_copy(f);
    hints_fail(f);
    for (size_t i = 0; i < ARRAY_COUNT(NOTES); i++) {
        set_note(f, NOTES[i]);
    }
    struct db after = take_copy(f);
    hints_heal(f);
    put_back(f, &before);
    assert_int_equal(recover_sink_now(f).end, RESTORE_RECOVERED);
    assert_whole(f, 2);
    put_back(f, &after);
    assert_int_equal(recover_sink_now(f).end, RESTORE_RECOVERED);
    assert_whole(f, 2);
    db_close(&before);
    db_close(&after);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_claim_that_went_back_with_the_ledger_is_made_again),
        TEST(no_plan_is_made_before_the_hint_tells_of_the_claim),
        TEST(no_plan_is_finished_before_the_hint_tells_of_it),
        TEST(a_copy_is_never_ahead_of_a_table_that_an_older_one_led_back),
        TEST(a_copy_does_not_lead_back_to_a_line_that_was_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
