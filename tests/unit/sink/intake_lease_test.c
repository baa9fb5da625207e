/* The node's lease (I4): what is taken under it, and what becomes of it all when it is lost. */
#include "intake_fixture.h"

#include "sink/ledger_recover.h"

#include <sched.h>

static void a_node_without_its_lease_takes_nothing(void **state)
{
    (void)state;
    struct intake_request request = {.batch_id = STR("a"), .content_length = 10};
    atomic_store(&clock_ahead_us, 31 * TIME_SECOND_US);
    assert_not_begun(request, BUSY, ERROR_UNAVAILABLE);
}

static err try_begin(struct intake_send **out_send, struct answer *answer)
{
    struct intake_sink *sink = NULL;
    *answer = (struct answer){.done = queue_create(1), .arena = arena_create((size_t)4 * MIB)};
    const struct intake_request request = {
        .batch_id = STR("late"), .content_length = 4, .answered = answered, .context = answer};
    assert_int_equal(
        intake_authenticate(f.intake, SINK, bearer(f.key), NULL, STR("1.1.1.1"), &sink, NULL), OK);
    err begun = intake_begin(f.intake, sink, &request, out_send, NULL);
    if (begun != OK) {
        queue_destroy(answer->done);
        forget(answer);
    }
    return begun;
}

/* Until the node has registered again; it is asked to by the refusals themselves. */
static void begin_again(struct intake_send **out_send, struct answer *answer)
{
    i64 end_us = seam_monotonic_us(seam_system()) + 5 * TIME_SECOND_US;
    while (try_begin(out_send, answer) != OK) {
        assert_true(seam_monotonic_us(seam_system()) < end_us);
        (void)sched_yield();
    }
}

/* I4: what was open is closed first, and what it still brings is refused. */
static void a_lost_lease_is_told_before_the_node_registers_again(void **state)
{
    (void)state;
    struct intake_send *old = NULL;
    struct intake_send *send = NULL;
    struct answer old_answer;
    struct answer answer;
    assert_int_equal(try_begin(&old, &old_answer), OK);
    hold_losses(true);
    atomic_store(&clock_ahead_us, 31 * TIME_SECOND_US);
    assert_int_equal(try_begin(&send, &answer), BUSY);
    await_loss();
    assert_int_equal(try_begin(&send, &answer), BUSY);
    hold_losses(false);
    begin_again(&send, &answer);
    assert_int_equal(f.losses, 1);
    assert_int_equal(intake_send_body(old, STR("[{}]"), NULL), OK);
    intake_send_complete(old);
    finish(&old_answer);
    assert_int_equal(old_answer.code, ERROR_UNAVAILABLE);
    assert_no_row("late");
    assert_int_equal(intake_send_body(send, STR("[{}]"), NULL), OK);
    intake_send_complete(send);
    finish(&answer);
    assert_int_equal(answer.status, 202);
    forget(&old_answer);
    forget(&answer);
}

/* One object, one transaction, one lease. What was taken under the old lease is still good in the
 * ledger for two seconds after the node has given it up. */
static void the_sends_of_two_leases_are_two_objects(void **state)
{
    (void)state;
    struct answer held;
    struct answer old;
    struct answer answer;
    struct intake_send *send = NULL;
    gate_set(&f.gate, true);
    start_id(&held, "held", "[{}]");
    gate_await(&f.gate, 1);
    start_id(&old, "old", "[{}]");
    turns_await(1);
    atomic_store(&clock_ahead_us, 29 * TIME_SECOND_US);
    begin_again(&send, &answer);
    assert_int_equal(intake_send_body(send, STR("[{}]"), NULL), OK);
    intake_send_complete(send);
    turns_await(2);
    gate_set(&f.gate, false);
    finish(&held);
    finish(&old);
    finish(&answer);
    assert_int_equal(old.status, 202);
    assert_int_equal(answer.status, 202);
    struct ledger_batch late = row_of("late");
    assert_true(str_find(late.object_key, STR("/late.")) >= 0);
    assert_verifies(&late, "{}");
    forget(&held);
    forget(&old);
    forget(&answer);
}

static void a_ledger_that_is_down_cuts_nobody_off(void **state)
{
    (void)state;
    struct intake_send *send = NULL;
    struct answer answer;
    i64 end_us = seam_monotonic_us(seam_system()) + 20 * TIME_SECOND_US;
    atomic_store(&f.lossy.down, true);
    atomic_store(&clock_ahead_us, 31 * TIME_SECOND_US);
    while (atomic_load(&f.lossy.refused) < 3) {
        assert_int_equal(try_begin(&send, &answer), BUSY);
        assert_true(seam_monotonic_us(seam_system()) < end_us);
        (void)sched_yield();
    }
    hold_losses(false); /* takes the lock: what the thread did is seen */
    assert_int_equal(f.losses, 0);
    atomic_store(&f.lossy.down, false);
    begin_again(&send, &answer);
    assert_int_equal(f.losses, 1);
    assert_int_equal(intake_send_body(send, STR("[{}]"), NULL), OK);
    intake_send_complete(send);
    finish(&answer);
    assert_int_equal(answer.status, 202);
    forget(&answer);
}

/* A recover of some sink drops all registrations; the others' senders don't wait for it. */
static void a_dropped_registration_is_renewed_at_once(void **state)
{
    (void)state;
    struct intake_send *send = NULL;
    struct answer answer;
    assert_int_equal(ledger_begin_recover(&f.db, STR("snk_00000000000f"), NULL), OK);
    assert_refused("a", "[{}]", ERROR_UNAVAILABLE);
    await_loss();
    begin_again(&send, &answer);
    assert_int_equal(intake_send_body(send, STR("[{}]"), NULL), OK);
    intake_send_complete(send);
    finish(&answer);
    assert_int_equal(answer.status, 202);
    forget(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_node_without_its_lease_takes_nothing),
        TEST(a_lost_lease_is_told_before_the_node_registers_again),
        TEST(the_sends_of_two_leases_are_two_objects),
        TEST(a_ledger_that_is_down_cuts_nobody_off),
        TEST(a_dropped_registration_is_renewed_at_once),
    };
    machine_watch(watch);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
