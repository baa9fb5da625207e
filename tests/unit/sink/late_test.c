/* Long after: what comes late, or is looked at late, counts once all the same. */
#include "restore_fixture.h"

#include "sink/sweep.h"

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

static void sweep_all(struct roll_fixture *f)
{
    i64 deleted = 0;
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    must(f, sweep_rows(&f->db, &f->error));
}

/* Killed after the commit; before the next start the owner keeps one snapshot, and not that one. */
static void expired_to_one_snapshot_between_commit_and_recovery(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    send_object(f, "b", "{\"x\":2}\n{\"x\":3}");
    f->before_commit = die_after_the_commit;
    roll_tick(f);
    door_heal(f);
    assert_int_equal(look_batch(f, "b").state, BATCH_PLANNED);
    foreign_append(f);
    expire_to_one(f);
    i64 rows = table_rows(f);
    roll_out(f);
    assert_int_equal(look_batch(f, "b").state, BATCH_COMMITTED);
    assert_int_equal(look_sink(f).rows_committed, 3);
    assert_int_equal(table_rows(f), rows);
}

static void roll_by_another(struct roll_fixture *f)
{
    struct roll_env other = f->env;
    enum roll_end end = ROLL_LATER;
    other.holder = STR("other");
    must(f, roll_sink(&other, f->sink_id, STR("asked"), &end, &f->error));
    assert_int_equal(end, ROLL_ENDED);
}

/* Its batch is committed and forgotten, its snapshot expired, its objects are deleted. */
static void others_work_for_a_week(struct roll_fixture *f)
{
    static const char *const names[] = {"d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8"};
    f->before_commit = NULL;
    age(f, 60 * TIME_SECOND_US);
    roll_by_another(f);
    for (size_t day = 0; day < ARRAY_COUNT(names); day++) {
        send_object(f, names[day], "{\"x\":5}");
        roll_by_another(f);
        expire_to_one(f);
        sweep_all(f);
        for (int hour = 0; hour < 24; hour++) {
            age(f, 3600 * TIME_SECOND_US);
        }
    }
}

static void a_roller_frozen_over_a_week_of_others_work(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    send_object(f, "b", "{\"x\":2}");
    f->before_commit = others_work_for_a_week;
    roll_tick(f);
    sweep_all(f);
    assert_false(has_batch(f, "b"));
    assert_true(has_batch(f, "d8"));
    roll_out(f);
    assert_int_equal(table_rows(f), 11);
    assert_int_equal(look_sink(f).last_n, 11);
    assert_int_equal(look_sink(f).state, SINK_ACTIVE);
    assert_books(f);
}

/* The object, and then the ledger's word on the id. */
static struct ledger_accept resend(struct roll_fixture *f, const char *batch_id, const char *body)
{
    struct ledger_accept item = store_batch(f, batch_id, body);
    accept_item(f, &item);
    return item;
}

static void assert_once(struct roll_fixture *f)
{
    roll_out(f);
    sweep_all(f);
    assert_int_equal(look_sink(f).batches, 2);
    assert_int_equal(look_batch(f, "a").rows_committed, 1);
    assert_int_equal(table_rows(f), 2);
    assert_books(f);
}

static void a_retry_two_hours_after_the_roll(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    send_object(f, "b", "{\"x\":2}");
    roll_out(f);
    expire_to_one(f);
    sweep_all(f);
    age(f, 2 * 3600 * TIME_SECOND_US);
    struct ledger_accept again = resend(f, "a", "{\"x\":1}");
    assert_int_equal(again.outcome, ACCEPT_DUPLICATE);
    assert_int_equal(again.state, BATCH_COMMITTED);
    assert_once(f);
}

/* Not one row of it is taken: the sender hears 422, and knows. */
static void a_grown_resend_under_the_same_id(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    assert_int_equal(resend(f, "a", "{\"x\":1}\n{\"x\":9}").outcome, ACCEPT_REUSED);
    roll_out(f);
    assert_int_equal(resend(f, "a", "{\"x\":1}\n{\"x\":9}").outcome, ACCEPT_REUSED);
    send_object(f, "b", "{\"x\":2}");
    assert_once(f);
    age(f, 2 * 3600 * TIME_SECOND_US);
    assert_int_equal(resend(f, "a", "{\"x\":1}\n{\"x\":9}").outcome, ACCEPT_REUSED);
    assert_once(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(expired_to_one_snapshot_between_commit_and_recovery),
        TEST(a_roller_frozen_over_a_week_of_others_work),
        TEST(a_retry_two_hours_after_the_roll),
        TEST(a_grown_resend_under_the_same_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
