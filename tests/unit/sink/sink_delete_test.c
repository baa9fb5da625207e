#include "roll_fixture.h"

/* Deleting a sink: nothing of it lands afterwards, and the books agree wherever it is killed. */

static int open_plain(void **state)
{
    *state = fixture_open();
    return 0;
}

static int close_any(void **state)
{
    fixture_close(*state);
    return 0;
}

static void a_deleted_sink_discards_what_waits(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    send_batch(f, "c", "{\"x\":3}");
    i64 discarded = 0;
    must(f, sink_delete(&f->env, f->sink_id, &discarded, &f->error));
    assert_int_equal(discarded, 2);
    assert_int_equal(look_sink(f).state, SINK_DELETED);
    assert_int_equal(look_batch(f, "b").state, BATCH_DISCARDED);
    assert_true(table_property(f).data == NULL);
    assert_int_equal(table_rows(f), 1);
    assert_books(f);
    assert_int_equal(sink_delete(&f->env, f->sink_id, &discarded, NULL), NOT_FOUND);
    i64 deleted = 0;
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    assert_int_equal(deleted, 3);
}

static void a_deleted_sinks_table_takes_another(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    i64 discarded = 0;
    must(f, sink_delete(&f->env, f->sink_id, &discarded, &f->error));
    struct ledger_sink second = look_sink(f);
    second.id = STR("snk_000000000002");
    second.send_key_id = STR("ba9876543210");
    must(f, ledger_insert_sink(&f->db, &second, &f->error));
    f->sink_id = second.id;
    send_batch(f, "a", "{\"x\":2}");
    roll_out(f);
    assert_int_equal(table_rows(f), 2);
    assert_int_equal(look_sink(f).rows_committed, 1);
}

static void a_sink_whose_table_is_gone_is_deleted(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    f->before_commit = die_before_the_commit;
    roll_tick(f); /* attempted, and perhaps under way */
    door_heal(f);
    must(f, catalog_drop(&f->catalog, fixture_table(), &f->error));
    i64 discarded = 0;
    must(f, sink_delete(&f->env, f->sink_id, &discarded, &f->error));
    assert_int_equal(discarded, 1);
    assert_int_equal(look_sink(f).state, SINK_DELETED);
    assert_int_equal(look_sink(f).rows_committed, 1);
    assert_int_equal(look_sink(f).rows_discarded, 1);
}

static void an_unclaimed_sink_is_deleted_without_a_commit(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    i64 discarded = 0;
    must(f, sink_delete(&f->env, f->sink_id, &discarded, &f->error));
    assert_int_equal(discarded, 1);
    assert_int_equal(f->commits, 0);
    assert_books(f);
}

static void nothing_is_accepted_by_a_deleted_sink(void **state)
{
    struct roll_fixture *f = *state;
    i64 discarded = 0;
    must(f, sink_delete(&f->env, f->sink_id, &discarded, &f->error));
    struct ledger_accept item = describe_batch(f, "late", STR("{\"x\":1}"));
    accept_item(f, &item);
    assert_int_equal(item.outcome, ACCEPT_REFUSED);
    assert_int_equal(item.refusal, ERROR_SINK_DELETED);
}

/* A plan attempted, its answer lost, the delete killed at every call: the row is in the table and
 * committed, or not in the table and discarded; never both, never neither (I23). */
static void delete_with_fault(enum door_fault fault, void (*death)(struct roll_fixture *f))
{
    for (i64 at = 1; at <= 80; at++) {
        struct roll_fixture *f = fixture_open();
        send_batch(f, "a", "{\"x\":1}");
        roll_out(f);
        send_batch(f, "b", "{\"x\":2}");
        f->before_commit = death;
        roll_tick(f);
        assert_true(f->doors.dead);
        door_heal(f);
        i64 discarded = 0;
        door_arm(f, fault, at);
        err first = sink_delete(&f->env, f->sink_id, &discarded, NULL);
        bool reached = f->doors.calls >= at;
        door_heal(f);
        if (first != OK && look_sink(f).state != SINK_DELETED) {
            f->now += 60 * TIME_SECOND_US;
            must(f, sink_delete(&f->env, f->sink_id, &discarded, &f->error));
        }
        assert_int_equal(look_sink(f).state, SINK_DELETED);
        assert_int_equal(look_sink(f).waiting_batches, 0);
        assert_int_equal(look_sink(f).rows_committed + look_sink(f).rows_discarded, 2);
        assert_true(table_property(f).data == NULL);
        assert_books(f);
        fixture_close(f);
        if (!reached) {
            return;
        }
    }
    fail_msg("the delete has more calls than this test looks at");
}

static void a_delete_killed_anywhere_goes_on(void **state)
{
    (void)state;
    delete_with_fault(DOOR_DIES_BEFORE, die_before_the_commit);
    delete_with_fault(DOOR_DIES_AFTER, die_after_the_commit);
    delete_with_fault(DOOR_DIES_BEFORE, die_after_the_commit);
    delete_with_fault(DOOR_DIES_AFTER, die_before_the_commit);
}

static void a_delete_whose_answers_are_lost_goes_on(void **state)
{
    (void)state;
    delete_with_fault(DOOR_LOSES, die_after_the_commit);
    delete_with_fault(DOOR_FAILS, die_before_the_commit);
    delete_with_fault(DOOR_LIES_409, die_before_the_commit);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_plain, close_any)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_deleted_sink_discards_what_waits),
        TEST(an_unclaimed_sink_is_deleted_without_a_commit),
        TEST(nothing_is_accepted_by_a_deleted_sink),
        TEST(a_deleted_sinks_table_takes_another),
        TEST(a_sink_whose_table_is_gone_is_deleted),
        cmocka_unit_test(a_delete_killed_anywhere_goes_on),
        cmocka_unit_test(a_delete_whose_answers_are_lost_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
