/* sweep: what nobody needs any more goes: objects of final batches, old rejects, old rows, old
 * plans.
 *
 * An object is deleted only when the ledger doomed it (I16), and the rest only when its age is
 * reached by the ledger's clock and by running time (I19). A delete that fails is tried again
 * later and blocks nothing. Blocking; one thread at a time per warehouse. */
#ifndef LHBOX_SINK_SWEEP_H
#define LHBOX_SINK_SWEEP_H

#include "sink/roll.h"

#define SWEEP_REJECTS_US (7 * TIME_DAY_US)
#define SWEEP_BATCHES_US (7 * TIME_DAY_US)
#define SWEEP_PLANS_US   (35 * TIME_DAY_US)
/* So long after its delete a sink's folder is looked at: by then everything in it is old enough. */
#define SWEEP_DELETED_US (42 * TIME_DAY_US)

/* Doomed objects of the warehouse, until none is left or a whole page failed. None goes while the
 * store does not tell the present version of each embedded table (section 9, step 0). */
MUST_USE err sweep_objects(const struct roll_env *env, i64 *out_deleted, struct error *error);
/* `_sink/<sink>/rejects/` alone, every page of it. */
MUST_USE err sweep_rejects(const struct roll_env *env, str sink_id, i64 *out_deleted,
                           struct error *error);
/* `_sink/<sink>/plans/` of plans that no batch row names any more. */
MUST_USE err sweep_plan_objects(const struct roll_env *env, str sink_id, i64 *out_deleted,
                                struct error *error);
/* `_sink/<sink>/sink/`: settings objects older than 35 days of a sink that is deleted or that the
 * ledger does not know. A sink that lives keeps all of them. */
MUST_USE err sweep_settings(const struct roll_env *env, str sink_id, i64 *out_deleted,
                            struct error *error);
/* Batch rows and plans of the whole ledger. */
MUST_USE err sweep_rows(const struct db *db, struct error *error);
/* Held batches of one sink whose last look is an hour old: those that verify now are pending again.
 * Those of a keyed sink wait for an operator. */
MUST_USE err sweep_held(const struct roll_env *env, str sink_id, struct error *error);

#endif
