#include "restore_fixture.h"

/* Sweeps while a recover is under way, or has ended too early. */

/* What the chain has doomed is not deleted before its neighbours are adopted, wherever the recover
 * ended; afterwards it is. */
static void a_sweep_amid_a_recover_takes_nothing(void **state)
{
    (void)state;
    bool more = true;
    for (i64 at = 1; more; at++) {
        struct roll_fixture *f = aged_fixture();
        roll_half_a_group(f);
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
