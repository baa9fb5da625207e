/* policy: is a sink due for a roll, why, and if not, when will it be.
 *
 * Due when the first of these is true for pending batches that are not held: the oldest waits
 * roll_seconds; roll_bytes wait; nothing arrived for inactivity_seconds; 1,000 batches wait; a
 * roll was asked for. A roll for count or bytes comes at most every `apart_us` per sink. A live
 * plan is due at once: it has to be settled. Pure; any thread. */
#ifndef LHBOX_SINK_POLICY_H
#define LHBOX_SINK_POLICY_H

#include "sink/ledger.h"

enum { POLICY_BATCHES = 1000 };

struct policy_limits {
    i64 batches;  /* POLICY_BATCHES */
    i64 apart_us; /* between rolls for count or bytes */
};
struct policy_limits policy_limits_default(void);
struct policy_limits policy_limits_dev(void);

enum policy_trigger {
    POLICY_NONE, /* nothing waits, or not yet */
    POLICY_SETTLE,
    POLICY_ASKED,
    POLICY_SECONDS,
    POLICY_BYTES,
    POLICY_COUNT,
    POLICY_INACTIVITY,
};

/* due_at: when it becomes due if nothing else arrives (0: never); sink->now when it is due. */
struct policy_verdict {
    enum policy_trigger trigger;
    instant due_at;
};

/* By the ledger's time of the read, sink->now. A sink that is not active and has no live plan is
 * never due. */
struct policy_verdict policy_judge(const struct ledger_sink *sink,
                                   const struct policy_limits *limits);
/* What last_roll.reason says: asked, roll_seconds, roll_bytes, batches, inactivity. */
str policy_trigger_text(enum policy_trigger trigger);

#endif
