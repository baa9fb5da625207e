/* intake_lease: the node's lease in the ledger; private to sink/intake*.c.
 *
 * A thread renews it every 10 s. A request begins under the lease of that moment: its start is the
 * ledger's time at the last renewal, and it is inserted under the node id of then. A node that was
 * away for longer than its lease gets a new one, under a new id; its listener and every open
 * request are closed before anything begins under that, and what had begun before is refused by the
 * inserting transaction itself (I4). */
#ifndef LHBOX_SINK_INTAKE_LEASE_H
#define LHBOX_SINK_INTAKE_LEASE_H

#include "sink/intake_send.h"

struct intake_lease;

/* Registers before it returns. */
MUST_USE err intake_lease_open(struct arena *arena, const struct intake_options *options,
                               struct intake_lease **out_lease, struct error *error);
void intake_lease_close(struct intake_lease *lease);
/* Looks at the lease now: a refused batch may mean that it was dropped. Does not block. */
void intake_lease_wake(struct intake_lease *lease);
/* Start and node id of a request whose head is read now; false when the lease is gone. */
bool intake_lease_begin(struct intake_lease *lease, struct intake_send *send);

#endif
