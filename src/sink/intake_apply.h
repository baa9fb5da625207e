/* intake_apply: what was answered gets its files and its rows, many groups at a time; private to
 * sink/intake*.c.
 *
 * A group that may be answered early (intake_early.h) gets a place in an object that it shares with
 * those before and behind it: the record in the log names the object and the place. When the first
 * of them is durable, or it is full, the object is sealed; when all of them are, whoever brings the
 * last one applies it, unless one before is still being applied: then it grows meanwhile, and full
 * ones wait in a row. So nobody waits for anybody.
 *
 *      open ──► sealed ──► applied: rejects files, object, one transaction of all rows, leave
 *     joined     arrived
 *
 * What was told does not fail any more: files and rows are tried until they are there, or the
 * process ends and the next one replays the log. */
#ifndef LHBOX_SINK_INTAKE_APPLY_H
#define LHBOX_SINK_INTAKE_APPLY_H

#include "sink/intake_group.h"

struct intake_shared;

/* The next place in the object of its sink: the group's items are of that object from here on, and
 * intake_apply_arrive must follow. Its bytes are its own (one piece), for they go with the object.
 * False: it is too large, or out of memory, and nothing was done. */
bool intake_apply_join(struct intake_group *group);
/* Before it is told: what its senders send next does not share its object when that is applied at
 * once. */
void intake_apply_seal(struct intake_group *group);
/* It is durable and was told, or has failed and is not (`told`). It belongs to its object from here
 * on. Returns the object that the caller is to apply now; NULL: none. */
struct intake_shared *intake_apply_arrive(struct intake_group *group);
/* Applies it; all that is of it is gone then. Returns the next one, or NULL. */
struct intake_shared *intake_apply_run(struct intake_shared *shared);

#endif
