/* intake_request: what a worker does with a complete send, as a state machine; private to
 * sink/intake*.c. */
#ifndef LHBOX_SINK_INTAKE_REQUEST_H
#define LHBOX_SINK_INTAKE_REQUEST_H

#include "sink/intake_group.h"

/* Takes the send; answers it sooner or later. Blocks: a thread that finds no PUT of the sink in
 * flight drives the sink until nothing waits, for the sends of others, too. */
void intake_request_run(const struct intake_groups *groups, struct intake_send *send);

#endif
