/* intake_dry: the verdict on each row against today's schema, with nothing stored (?dry_run=1);
 * private to sink/intake*.c. On a worker: it loads the table. */
#ifndef LHBOX_SINK_INTAKE_DRY_H
#define LHBOX_SINK_INTAKE_DRY_H

#include "sink/intake_send.h"

/* Answers the send. */
void intake_dry_run(const struct intake_options *options, struct intake_send *send);

#endif
