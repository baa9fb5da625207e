/* intake_wait: sends that are answered when their batch is committed (?wait=committed); private to
 * sink/intake*.c.
 *
 * One thread looks, when it is told that batches of a sink became final, and at the nearest
 * deadline. Nothing polls. */
#ifndef LHBOX_SINK_INTAKE_WAIT_H
#define LHBOX_SINK_INTAKE_WAIT_H

#include "sink/intake_send.h"

struct intake_waits;

MUST_USE err intake_waits_open(struct arena *arena, const struct intake_options *options,
                               struct intake_waits **out_waits, struct error *error);
/* Answers all that still wait with their present state. */
void intake_waits_close(struct intake_waits *waits);
/* Takes a send whose `answer` is set. */
void intake_wait_add(struct intake_waits *waits, struct intake_send *send);
/* From here on nothing waits: what does is answered with its present state. */
void intake_waits_end(struct intake_waits *waits);
void intake_waits_notify(struct intake_waits *waits, struct intake_sink *sink);

#endif
