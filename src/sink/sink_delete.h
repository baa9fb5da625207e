/* sink_delete: the end of a sink (8.2), fenced so that nothing of it lands afterwards.
 *
 * Works over the seams of a roll (sink/roll.h). Blocking; may be killed anywhere and called again.
 */
#ifndef LHBOX_SINK_SINK_DELETE_H
#define LHBOX_SINK_SINK_DELETE_H

#include "base/error.h"

struct roll_env;

/* The first step: the settings object that says `deleting`, then the ledger's transaction (O14). A
 * sink that a recover had to stop gives up on it. NOT_FOUND, BUSY as ledger_begin_delete. */
MUST_USE err sink_delete_begin(const struct roll_env *env, str sink_id, struct error *error);
/* Deletes a sink (8.2): nothing of it can land once this has answered OK. Repeating the call goes
 * on where an earlier one ended; of a deleted sink it is NOT_FOUND. Any other error: the sink is
 * still deleting, and nothing was discarded. */
MUST_USE err sink_delete(const struct roll_env *env, str sink_id, i64 *out_discarded_batches,
                         struct error *error);

#endif
