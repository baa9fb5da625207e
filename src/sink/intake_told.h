/* intake_told: a group that is answered before its rows are in the ledger; private to
 * sink/intake*.c. When that may be is told in intake_early.h. */
#ifndef LHBOX_SINK_INTAKE_TOLD_H
#define LHBOX_SINK_INTAKE_TOLD_H

#include "sink/intake_group.h"

/* Before it is logged: true when it may be answered early; it has joined an object of others then
 * (intake_apply.h), and bytes of its own. */
void intake_told_begin(struct intake_group *group);
/* It is durable in the log. Anything but OK: time has passed, and it may not be answered. */
MUST_USE err intake_told_check(const struct intake_group *group, struct error *error);
/* All but those that wait for their commit, and those of which elements were refused: their rejects
 * files are there before their answer. Nothing is refused any more. */
void intake_told_answer(struct intake_group *group);
/* Nothing of it was told: it is taken back in the log, if it is there, and refused. */
void intake_told_fail(struct intake_group *group, err result, const struct error *error);
/* What was told cannot be applied for now: what waits for the sink, and what comes until
 * intake_line_go_on, is refused. */
void intake_told_delay(struct intake_sink *sink, err result, const struct error *error);
/* It has its rows, or (not `made`) the process ends before it could get them. */
void intake_told_end(struct intake_group *group, bool made);
/* Those of its sends that have no answer yet. */
void intake_told_answer_rest(struct intake_group *group, bool made);
/* After a group that the ledger has judged: whether the next ones can do without. */
void intake_told_learn(struct intake_group *group);

#endif
