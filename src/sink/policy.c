#include "sink/policy.h"

struct policy_limits policy_limits_default(void)
{
    return (struct policy_limits){.batches = POLICY_BATCHES, .apart_us = 10 * TIME_SECOND_US};
}

struct policy_limits policy_limits_dev(void)
{
    return (struct policy_limits){.batches = POLICY_BATCHES, .apart_us = TIME_SECOND_US};
}

/* Takes over a trigger that comes earlier. */
static void consider(struct policy_verdict *verdict, enum policy_trigger trigger, instant at)
{
    if (verdict->trigger == POLICY_NONE || at < verdict->due_at) {
        *verdict = (struct policy_verdict){.trigger = trigger, .due_at = at};
    }
}

static struct policy_verdict earliest(const struct ledger_sink *sink,
                                      const struct policy_limits *limits)
{
    struct policy_verdict verdict = {0};
    if (sink->roll_asked_at != 0 && sink->oldest_due_seq <= sink->roll_asked_seq) {
        consider(&verdict, POLICY_ASKED, sink->roll_asked_at);
    }
    instant apart = sink->rolled_at == 0 ? 0 : sink->rolled_at + limits->apart_us;
    if (sink->due_bytes >= sink->roll_bytes) {
        consider(&verdict, POLICY_BYTES, num_max_i64(apart, sink->oldest_due_at));
    }
    if (sink->due_batches >= limits->batches) {
        consider(&verdict, POLICY_COUNT, num_max_i64(apart, sink->oldest_due_at));
    }
    consider(&verdict, POLICY_SECONDS, sink->oldest_due_at + sink->roll_seconds * TIME_SECOND_US);
    if (sink->inactivity_seconds > 0) {
        consider(&verdict, POLICY_INACTIVITY,
                 sink->newest_due_at + sink->inactivity_seconds * TIME_SECOND_US);
    }
    return verdict;
}

struct policy_verdict policy_judge(const struct ledger_sink *sink,
                                   const struct policy_limits *limits)
{
    bool alive = sink->state == SINK_ACTIVE || sink->state == SINK_DISABLED;
    /* A recover that could not be ended; one that ledger_mismatch stopped waits for a person. */
    bool recovers = sink->recovering && !(sink->state == SINK_DISABLED &&
                                          str_equal(sink->state_reason, STR("ledger_mismatch")));
    if (alive && (sink->recovering ? recovers : sink->has_live_plan)) {
        return (struct policy_verdict){.trigger = POLICY_SETTLE, .due_at = sink->now};
    }
    if (sink->state != SINK_ACTIVE || sink->recovering || sink->due_batches == 0) {
        return (struct policy_verdict){0};
    }
    struct policy_verdict verdict = earliest(sink, limits);
    if (verdict.due_at > sink->now) {
        return (struct policy_verdict){.trigger = POLICY_NONE, .due_at = verdict.due_at};
    }
    verdict.due_at = sink->now;
    return verdict;
}

str policy_trigger_text(enum policy_trigger trigger)
{
    switch (trigger) {
    case POLICY_NONE:
        return STR("none");
    case POLICY_SETTLE:
        return STR("settle");
    case POLICY_ASKED:
        return STR("asked");
    case POLICY_SECONDS:
        return STR("roll_seconds");
    case POLICY_BYTES:
        return STR("roll_bytes");
    case POLICY_COUNT:
        return STR("batches");
    case POLICY_INACTIVITY:
        return STR("inactivity");
    }
    return STR("none");
}
