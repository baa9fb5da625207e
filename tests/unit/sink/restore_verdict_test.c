#include "restore_fixture.h"

/* Verdicts on batches of which every row was rejected (O2), and ledgers older than they are. */

#define BAD "{\"x\":\"no\"}"

static int set_up(void **state)
{
    struct roll_fixture *f = aged_fixture();
    send_object(f, "first", "{\"x\":1}");
    roll_out(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture_close(*state);
    return 0;
}

static void put_back_and_close(struct roll_fixture *f, struct db *copy)
{
    put_back(f, copy);
    db_close(copy);
}

static void reject_and_forget(struct roll_fixture *f, const char *batch_id)
{
    struct db before = take_copy(f);
    send_object(f, batch_id, BAD);
    roll_out(f);
    sweep(f);
    assert_int_equal(look_batch(f, batch_id).state, BATCH_REJECTED);
    put_back_and_close(f, &before);
    assert_false(has_batch(f, batch_id));
}

static void a_verdict_keeps_a_rejected_batch_from_coming_back(void **state)
{
    struct roll_fixture *f = *state;
    struct db copy = take_copy(f);
    send_object(f, "a", BAD);
    struct db pending = take_copy(f);
    roll_out(f);
    sweep(f);
    assert_int_equal(look_batch(f, "a").state, BATCH_REJECTED);
    put_back_and_close(f, &copy);
    recover_sink_now(f);
    assert_int_equal(look_batch(f, "a").state, BATCH_REJECTED);
    assert_whole(f, 1);
    put_back_and_close(f, &pending);
    assert_int_equal(recover_sink_now(f).missing, 0);
    assert_int_equal(look_batch(f, "a").state, BATCH_REJECTED);
    assert_whole(f, 1);
}

/* A first recover adopts the batch as a copy, which is rejected; the second one's ledger has the
 * batch waiting under its first uid. */
static void a_verdict_on_an_adopted_copy_ends_the_row_that_waits_for_the_original(void **state)
{
    struct roll_fixture *f = *state;
    struct db before = take_copy(f);
    struct ledger_accept sent = send_object(f, "a", BAD);
    struct db pending = take_copy(f);
    put_back_and_close(f, &before);
    assert_int_equal(recover_sink_now(f).adopted, 1);
    struct uid copied = look_batch(f, "a").uid;
    roll_out(f);
    sweep(f);
    assert_int_equal(look_batch(f, "a").state, BATCH_REJECTED);
    assert_false(has_object(f, sent.object_key));
    put_back_and_close(f, &pending);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.committed, 1);
    assert_int_equal(report.missing, 0);
    assert_int_equal(look_batch(f, "a").state, BATCH_REJECTED);
    assert_memory_equal(look_batch(f, "a").uid.text, copied.text, ID_UID_SIZE);
    assert_true(is_void(f, &sent.uid));
    assert_whole(f, 1);
    assert_int_equal(recover_sink_now(f).committed, 0);
}

/* Its id was used anew: there are bytes, and perhaps a schema that they fit. */
static void an_old_verdict_leaves_a_row_alone_whose_object_is_there(void **state)
{
    struct roll_fixture *f = *state;
    reject_and_forget(f, "a");
    struct ledger_accept again = send_object(f, "a", BAD);
    assert_int_equal(recover_sink_now(f).missing, 0);
    assert_int_equal(look_batch(f, "a").state, BATCH_PENDING);
    assert_memory_equal(look_batch(f, "a").uid.text, again.uid.text, ID_UID_SIZE);
    assert_whole(f, 1);
}

static void an_orphan_of_the_same_bytes_comes_before_an_old_verdict(void **state)
{
    struct roll_fixture *f = *state;
    reject_and_forget(f, "a");
    struct ledger_accept again = send_object(f, "a", BAD);
    store_batch(f, "a", BAD);
    must(f, store_remove(&f->store, again.object_key, &f->error));
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.taken, 1);
    assert_int_equal(report.missing, 0);
    assert_int_equal(look_batch(f, "a").state, BATCH_PENDING);
    assert_whole(f, 1);
}

static void other_bytes_are_not_ended_by_a_verdict(void **state)
{
    struct roll_fixture *f = *state;
    reject_and_forget(f, "a");
    struct ledger_accept again = send_object(f, "a", "{\"x\":2}");
    must(f, store_remove(&f->store, again.object_key, &f->error));
    assert_int_equal(recover_sink_now(f).missing, 1);
    assert_int_equal(look_batch(f, "a").state, BATCH_PENDING);
}

/* Its objects are explained by the verdict and go: so its row has to be there. */
static void a_sink_that_is_reclaimed_knows_its_verdicts(void **state)
{
    struct roll_fixture *f = *state;
    reject_and_forget(f, "a");
    foreign_commit(f, "{'requirements':[],'updates':[{'action':'remove-properties','removals':["
                      "'lakehousebox.sink.roll']}]}");
    assert_int_equal(recover_sink_now(f).end, RESTORE_STOPPED);
    must(f, restore_reclaim(&f->env, f->arena, f->sink_id, &f->error));
    assert_int_equal(look_batch(f, "a").state, BATCH_REJECTED);
    assert_whole(f, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_verdict_keeps_a_rejected_batch_from_coming_back),
        TEST(a_verdict_on_an_adopted_copy_ends_the_row_that_waits_for_the_original),
        TEST(an_old_verdict_leaves_a_row_alone_whose_object_is_there),
        TEST(an_orphan_of_the_same_bytes_comes_before_an_old_verdict),
        TEST(other_bytes_are_not_ended_by_a_verdict),
        TEST(a_sink_that_is_reclaimed_knows_its_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
