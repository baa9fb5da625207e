/* restore_steps: the steps of one sink's recover, shared by sink/restore*.c. Private to them. */
#ifndef LHBOX_SINK_RESTORE_STEPS_H
#define LHBOX_SINK_RESTORE_STEPS_H

#include "sink/chain.h"
#include "sink/ledger_recover.h"
#include "sink/restore.h"
#include "sink/roll_steps.h"

struct restore {
    struct roll roll; /* env, arena, the sink as last read */
    struct restore_sink *report;
    bool going;   /* its settings objects say that it is being deleted, or deleted */
    bool stopped; /* disabled; or, when it is going, its delete carries on */
};

/* ---- restore_chain: steps 3 to 6 ---- */

/* What the property of the fenced table says against the copy. */
enum restore_reading {
    RESTORE_UNCLAIMED, /* absent, and the copy's claim none or attempted */
    RESTORE_SAME,      /* the copy's last plan */
    RESTORE_AHEAD,
    RESTORE_OTHER,
};
MUST_USE err restore_read(struct restore *restore, const struct table *table,
                          enum restore_reading *out_reading, struct plan_property *out_property,
                          struct error *error);
/* Proves the chain, undoes what is not on it, redoes what is. `stopped` when it cannot be proven.
 */
MUST_USE err restore_redo(struct restore *restore, const struct table *table,
                          const struct plan_property *property, struct error *error);
/* The verdicts that the copy does not know (O2). */
MUST_USE err restore_verdicts(struct restore *restore, struct error *error);
/* Of the rows that wait for an object that is gone, those that a verdict explains. out_settled:
 * their number. */
MUST_USE err restore_missing(struct restore *restore, const struct map *missing, i64 *out_settled,
                             struct error *error);

/* ---- restore_adopt: step 7 ---- */

MUST_USE err restore_adopt(struct restore *restore, struct error *error);

/* ---- restore ---- */

/* Disables the sink; the recover ends. One that is going is deleting again in place of that. */
MUST_USE err restore_stop(struct restore *restore, const char *reason, str detail,
                          enum ledger_stop flag, struct error *error);

#endif
