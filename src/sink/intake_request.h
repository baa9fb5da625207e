/* intake_request: what becomes of a complete send, as a state machine; private to sink/intake*.c.
 */
#ifndef LHBOX_SINK_INTAKE_REQUEST_H
#define LHBOX_SINK_INTAKE_REQUEST_H

#include "sink/intake_group.h"

/* On the http thread, and never blocks: the send goes into its sink's line if it surely may, else
 * to a worker. False, and the send is still the caller's: the workers have too much to do, or end.
 */
MUST_USE bool intake_request_meet(const struct intake_groups *groups, struct intake_send *send);
/* On a worker. Takes the send; answers it sooner or later. Blocks: a thread that finds no PUT of
 * the sink in flight drives the sink until nothing waits, for the sends of others, too. */
void intake_request_run(const struct intake_groups *groups, struct intake_send *send);

#endif
