/* recover: what a process does with a warehouse's sinks before it rolls anything new.
 *
 * Both starts, clean and unclean, are the same path: live plans are settled by the table's
 * property, half-done deletes go on, void plans whose verdict was not written yet get it. Nothing
 * is guessed: a sink whose table is ahead of the ledger is stopped with ledger_mismatch. Orphans,
 * objects without a row, are left alone. Idempotent; may be killed anywhere (I26). Blocking; one
 * roll worker's thread. */
#ifndef LHBOX_SINK_RECOVER_H
#define LHBOX_SINK_RECOVER_H

#include "sink/roll.h"

struct recover_report {
    i64 sinks;
    i64 settled; /* live plans that ended */
    i64 waiting; /* live plans that the next tick looks at again */
    i64 deleted; /* sinks whose delete was finished */
};

/* One sink: its live plan is settled, its half-done delete goes on. */
void recover_sink(const struct roll_env *env, const struct ledger_sink *sink,
                  struct recover_report *report);
/* A sink that cannot be settled now does not stop the others; its error is its last_error. */
MUST_USE err recover_sinks(const struct roll_env *env, struct recover_report *out_report,
                           struct error *error);
/* Writes the verdicts of void plans and dooms their objects (O2); sink_id empty: of all sinks of
 * the warehouse. */
MUST_USE err recover_verdicts(const struct roll_env *env, str sink_id, struct error *error);

#endif
