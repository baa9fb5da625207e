#include "restore_fixture.h"

/* Sweeps while a recover is under way, or has ended too early. */

/* One batch of an object was rolled after the copy that is put back, the other one was not. */
static struct roll_fixture *half_a_group(void)
{
    struct roll_fixture *f = aged_fixture();
    send_object(f, "first", "{\"x\":0}");
    roll_out(f);
    struct db copy = take_copy(f);
    struct ledger_accept items[] = {describe_batch(f, "a", STR("{\"x\":1}")),
                                    describe_batch(f, "b", STR("{\"x\":2}"))};
    const char *const bodies[] = {"{\"x\":1}", "{\"x\":2}"};
    store_group(f, items, bodies, 2);
    accept_item(f, &items[0]);
    accept_item(f, &items[1]);
    tell_sql(f, "UPDATE sink SET roll_bytes = 1");
    f->now += 120 * TIME_SECOND_US;
    roll_tick(f);
    assert_int_equal(look_batch(f, "a").state, BATCH_COMMITTED);
    assert_int_equal(look_batch(f, "b").state, BATCH_PENDING);
    put_back(f, &copy);
    db_close(&copy);
    return f;
}

/* What the chain has doomed is not deleted before its neighbours are adopted, wherever the recover
 * ended; afterwards it is. */
static void a_sweep_amid_a_recover_takes_nothing(void **state)
{
    (void)state;
    bool more = true;
    for (i64 at = 1; more; at++) {
        struct roll_fixture *f = half_a_group();
        struct restore_sink report = {0};
        i64 deleted = 0;
        door_arm(f, DOOR_DIES_BEFORE, at);
        err recovered = restore_sink(&f->env, f->arena, f->sink_id, &report, NULL);
        more = f->doors.calls >= at;
        assert_true(more || recovered == OK);
        door_heal(f);
        f->now += 60 * TIME_SECOND_US;
        must(f, sweep_objects(&f->env, &deleted, &f->error));
        assert_int_equal(recover_sink_now(f).end, RESTORE_RECOVERED);
        assert_whole(f, 3);
        must(f, sweep_objects(&f->env, &deleted, &f->error));
        assert_int_equal(ask_sql(f, "SELECT count(*) FROM doomed_object"), 0);
        fixture_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sweep_amid_a_recover_takes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
