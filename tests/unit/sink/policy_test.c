#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sink/policy.h"

#define SECONDS(n) ((i64)(n) * TIME_SECOND_US)

static const instant NOW = 1790000000000000;

/* One batch of 10 bytes that came 5 s ago; rolls every 60 s. */
static struct ledger_sink one_batch(void)
{
    return (struct ledger_sink){
        .state = SINK_ACTIVE,
        .roll_seconds = 60,
        .roll_bytes = 1000,
        .due_batches = 1,
        .due_bytes = 10,
        .oldest_due_at = NOW - SECONDS(5),
        .newest_due_at = NOW - SECONDS(5),
        .oldest_due_seq = 7,
        .now = NOW,
    };
}

static struct policy_verdict judge(struct ledger_sink sink)
{
    struct policy_limits limits = policy_limits_default();
    return policy_judge(&sink, &limits);
}

static void assert_due(struct ledger_sink sink, enum policy_trigger trigger)
{
    struct policy_verdict verdict = judge(sink);
    assert_int_equal(verdict.trigger, trigger);
    assert_int_equal(verdict.due_at, NOW);
}

static void assert_later(struct ledger_sink sink, instant due_at)
{
    struct policy_verdict verdict = judge(sink);
    assert_int_equal(verdict.trigger, POLICY_NONE);
    assert_int_equal(verdict.due_at, due_at);
}

static void nothing_waiting_is_never_due(void **state)
{
    (void)state;
    struct ledger_sink sink = one_batch();
    sink.due_batches = 0;
    sink.roll_asked_at = NOW;
    sink.roll_asked_seq = 100;
    assert_later(sink, 0);
}

static void the_oldest_batch_makes_it_due_after_roll_seconds(void **state)
{
    (void)state;
    struct ledger_sink sink = one_batch();
    assert_later(sink, NOW + SECONDS(55));
    sink.oldest_due_at = NOW - SECONDS(60);
    assert_due(sink, POLICY_SECONDS);
    sink.oldest_due_at = NOW - SECONDS(60) + 1;
    assert_later(sink, NOW + 1);
}

static void bytes_make_it_due_but_not_too_often(void **state)
{
    (void)state;
    struct ledger_sink sink = one_batch();
    sink.due_bytes = 999;
    assert_later(sink, NOW + SECONDS(55));
    sink.due_bytes = 1000;
    assert_due(sink, POLICY_BYTES);
    sink.rolled_at = NOW - SECONDS(3);
    assert_later(sink, NOW + SECONDS(7));
    sink.rolled_at = NOW - SECONDS(10);
    assert_due(sink, POLICY_BYTES);
}

static void a_thousand_batches_make_it_due_but_not_too_often(void **state)
{
    (void)state;
    struct ledger_sink sink = one_batch();
    sink.due_batches = 999;
    assert_later(sink, NOW + SECONDS(55));
    sink.due_batches = 1000;
    assert_due(sink, POLICY_COUNT);
    sink.rolled_at = NOW - SECONDS(1);
    assert_later(sink, NOW + SECONDS(9));
    struct policy_limits dev = policy_limits_dev();
    assert_int_equal(policy_judge(&sink, &dev).trigger, POLICY_COUNT);
}

static void silence_makes_it_due_when_the_sink_wants_that(void **state)
{
    (void)state;
    struct ledger_sink sink = one_batch();
    sink.inactivity_seconds = 6;
    assert_later(sink, NOW + SECONDS(1));
    sink.newest_due_at = NOW - SECONDS(6);
    assert_due(sink, POLICY_INACTIVITY);
    sink.newest_due_at = NOW;
    assert_later(sink, NOW + SECONDS(6));
}

static void asking_counts_for_what_came_before_it(void **state)
{
    (void)state;
    struct ledger_sink sink = one_batch();
    sink.roll_asked_at = NOW - SECONDS(1);
    sink.roll_asked_seq = 6;
    assert_later(sink, NOW + SECONDS(55));
    sink.roll_asked_seq = 7;
    assert_due(sink, POLICY_ASKED);
    sink.rolled_at = NOW; /* no spacing for what was asked for */
    assert_due(sink, POLICY_ASKED);
}

static void a_live_plan_is_settled_at_once(void **state)
{
    (void)state;
    struct ledger_sink sink = one_batch();
    sink.due_batches = 0;
    sink.has_live_plan = true;
    assert_due(sink, POLICY_SETTLE);
    sink.state = SINK_DISABLED;
    assert_due(sink, POLICY_SETTLE);
}

static void a_recover_goes_on_unless_a_person_has_to_decide(void **state)
{
    (void)state;
    struct ledger_sink sink = one_batch();
    sink.recovering = true;
    assert_due(sink, POLICY_SETTLE);
    sink.state = SINK_DISABLED;
    sink.state_reason = STR("table_gone");
    assert_due(sink, POLICY_SETTLE);
    sink.state_reason = STR("ledger_mismatch");
    assert_later(sink, 0);
    sink.state = SINK_DELETING;
    assert_later(sink, 0);
}

static void only_an_active_sink_is_due(void **state)
{
    (void)state;
    const enum sink_state states[] = {SINK_DISABLED, SINK_DELETING, SINK_DELETED};
    for (size_t i = 0; i < ARRAY_COUNT(states); i++) {
        struct ledger_sink sink = one_batch();
        sink.oldest_due_at = NOW - SECONDS(1000);
        sink.state = states[i];
        assert_later(sink, 0);
    }
}

static void the_earliest_trigger_gives_the_reason(void **state)
{
    (void)state;
    struct ledger_sink sink = one_batch();
    sink.oldest_due_at = NOW - SECONDS(100);
    sink.newest_due_at = NOW - SECONDS(50);
    sink.inactivity_seconds = 20;
    assert_due(sink, POLICY_SECONDS); /* 40 s ago; silence was long enough 30 s ago */
    sink.newest_due_at = NOW - SECONDS(70);
    assert_due(sink, POLICY_INACTIVITY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_waiting_is_never_due),
        cmocka_unit_test(the_oldest_batch_makes_it_due_after_roll_seconds),
        cmocka_unit_test(bytes_make_it_due_but_not_too_often),
        cmocka_unit_test(a_thousand_batches_make_it_due_but_not_too_often),
        cmocka_unit_test(silence_makes_it_due_when_the_sink_wants_that),
        cmocka_unit_test(asking_counts_for_what_came_before_it),
        cmocka_unit_test(a_live_plan_is_settled_at_once),
        cmocka_unit_test(a_recover_goes_on_unless_a_person_has_to_decide),
        cmocka_unit_test(only_an_active_sink_is_due),
        cmocka_unit_test(the_earliest_trigger_gives_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
