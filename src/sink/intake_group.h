/* intake_group: what waits for one sink becomes one object; private to sink/intake*.c.
 *
 *   waiting ──take──► group ──rejects files, object durable──► ledger transaction ──► answers
 *      ▲                │ trouble: 503 for all, nothing is deleted
 *      └── arriving ────┘ while the PUT is in flight
 *
 * No timer: a lone batch is one object at once (step 1.4). The thread that adds a send and finds no
 * PUT in flight drives the sink until nothing waits. Never two sends of one batch id in one object:
 * the second waits for the first one's transaction and then looks into the ledger again. */
#ifndef LHBOX_SINK_INTAKE_GROUP_H
#define LHBOX_SINK_INTAKE_GROUP_H

#include "sink/intake_send.h"
#include "sink/intake_wait.h"

enum {
    INTAKE_META_BYTES_MAX = 1900,      /* of one object, names and values */
    INTAKE_GROUP_BYTES_MAX = 16 * MIB, /* of its body, unless it is one batch */
    INTAKE_GROUP_MAX = 64,             /* sends; the metadata bounds those with rows before */
};

struct intake_lease;
struct intake_groups {
    const struct intake_options *options;
    struct intake_waits *waits;
    struct intake_lease *lease; /* looked at when a batch is refused for now; NULL: none */
};

/* Takes the send; answers it sooner or later. On a worker: blocks while it drives. */
void intake_group_add(const struct intake_groups *groups, struct intake_send *send);
/* Answers a send whose id the ledger knows. False: it does not know it, and nothing was done. */
bool intake_group_known(const struct intake_groups *groups, struct intake_send *send);

#endif
