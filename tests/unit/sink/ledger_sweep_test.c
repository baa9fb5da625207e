/* What is old, by both clocks (I19), and what is forgotten then. */
#include "roll_fixture.h"

#include "sink/sweep.h"

static int open_any(void **state)
{
    *state = fixture_open();
    return 0;
}

static int close_any(void **state)
{
    fixture_close(*state);
    return 0;
}

#define DAYS(n)  ((i64)(n) * TIME_DAY_US)
#define HOURS(n) ((i64)(n) * 3600 * TIME_SECOND_US)

/* Runs so long, counting each hour. */
static void run_for(struct roll_fixture *f, i64 hours)
{
    for (i64 i = 0; i < hours; i++) {
        f->now += HOURS(1);
        must(f, ledger_add_running(&f->db, HOURS(1), &f->error));
    }
}

static instant old_before(struct roll_fixture *f)
{
    instant before = 0;
    must(f, ledger_old_before(&f->db, DAYS(7), &before, &f->error));
    return before;
}

static void age_counts_by_running_time_too(void **state)
{
    struct roll_fixture *f = *state;
    instant start = f->now;
    assert_int_equal(old_before(f), start - DAYS(7));
    run_for(f, 6 * 24);
    assert_true(old_before(f) <= start);
    run_for(f, 24 + 2);
    assert_true(old_before(f) > start);
    assert_true(old_before(f) <= f->now - DAYS(7));
}

static void a_clock_that_jumps_ahead_makes_nothing_old(void **state)
{
    struct roll_fixture *f = *state;
    run_for(f, 24);
    instant written = f->now;
    f->now += DAYS(30);
    must(f, ledger_add_running(&f->db, TIME_SECOND_US, &f->error));
    assert_true(old_before(f) <= written);
    run_for(f, 6 * 24 - 2);
    assert_true(old_before(f) <= written);
    run_for(f, 24 + 2);
    assert_true(old_before(f) > written);
}

static void a_clock_that_jumps_back_makes_nothing_old(void **state)
{
    struct roll_fixture *f = *state;
    run_for(f, 24);
    f->now -= DAYS(2);
    must(f, ledger_add_running(&f->db, TIME_SECOND_US, &f->error));
    instant written = f->now;
    run_for(f, 6 * 24);
    f->now += DAYS(2);
    assert_true(old_before(f) <= written);
}

static void rows_are_forgotten_a_week_after_their_end(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    run_for(f, 8 * 24);
    must(f, sweep_rows(&f->db, &f->error));
    look_batch(f, "a"); /* its object is not deleted yet */
    i64 deleted = 0;
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    must(f, sweep_rows(&f->db, &f->error));
    struct ledger_batch row;
    assert_int_equal(ledger_find_batch(&f->db, f->arena, f->sink_id, STR("a"), &row, NULL),
                     NOT_FOUND);
    assert_int_equal(look_batch(f, "b").state, BATCH_PENDING);
    /* the id is new again */
    send_batch(f, "a", "{\"x\":3}");
    roll_out(f);
    assert_int_equal(table_rows(f), 3);
    assert_books(f);
}

static void a_long_stop_forgets_nothing(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    i64 deleted = 0;
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    f->now += DAYS(20);
    must(f, ledger_add_running(&f->db, TIME_SECOND_US, &f->error));
    must(f, sweep_rows(&f->db, &f->error));
    look_batch(f, "a");
}

/* ---- objects ---- */

/* Section 9: the pointer is in the store before any intake object goes. */
static void objects_stay_until_the_version_hint_is_written(void **state)
{
    struct roll_fixture *f = *state;
    i64 deleted = 0;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    assert_int_equal(deleted, 1);
    send_batch(f, "b", "{\"x\":2}");
    roll_out(f);
    assert_int_equal(table_rows(f), 2);
    hints_fail(f);
    widen(f);
    deleted = 0;
    assert_int_equal(sweep_objects(&f->env, &deleted, NULL), IO);
    assert_int_equal(deleted, 0);
    hints_heal(f);
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    assert_int_equal(deleted, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_any, close_any)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(age_counts_by_running_time_too),
        TEST(a_clock_that_jumps_ahead_makes_nothing_old),
        TEST(a_clock_that_jumps_back_makes_nothing_old),
        TEST(rows_are_forgotten_a_week_after_their_end),
        TEST(a_long_stop_forgets_nothing),
        TEST(objects_stay_until_the_version_hint_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
