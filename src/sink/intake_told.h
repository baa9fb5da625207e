/* intake_told: a group that is answered before its rows are in the ledger; private to
 * sink/intake*.c. When that may be is told in intake_early.h. */
#ifndef LHBOX_SINK_INTAKE_TOLD_H
#define LHBOX_SINK_INTAKE_TOLD_H

#include "sink/intake_group.h"

/* A group that is durable in the log: true when it may be answered now. It has bytes of its own
 * then, for a send goes with its answer; and nothing is refused any more. */
bool intake_told_begin(struct intake_group *group);
/* All but those that wait for their commit, and those of which elements were refused: their rejects
 * files are there before their answer. */
void intake_told_answer(struct intake_group *group);
/* The ledger's transaction, which judges no more. */
MUST_USE err intake_told_record(struct intake_group *group, struct error *error);
/* Its rows cannot be made for now: what waits behind it for the sink, and what comes until
 * intake_told_go_on, is refused. */
void intake_told_delay(struct intake_group *group, err result, const struct error *error);
void intake_told_go_on(struct intake_group *group);
/* It has its rows, or (not `made`) the process ends before it could get them. */
void intake_told_end(struct intake_group *group, bool made);
/* After a group that the ledger has judged: whether the next ones can do without. */
void intake_told_learn(struct intake_group *group);

#endif
