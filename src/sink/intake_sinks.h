/* intake_sinks: the sinks and their send keys in memory; private to sink/intake*.c.
 *
 * All sinks of the ledger are read at the start and again when told, so that a request is judged
 * without waiting for anything. A sink is never taken out. Any thread. */
#ifndef LHBOX_SINK_INTAKE_SINKS_H
#define LHBOX_SINK_INTAKE_SINKS_H

#include "sink/intake_send.h"

struct intake_sinks;

MUST_USE err intake_sinks_open(struct arena *arena, const struct intake_options *options,
                               struct intake_sinks **out_sinks, struct error *error);
void intake_sinks_close(struct intake_sinks *sinks);
/* Reads one sink again. */
MUST_USE err intake_sinks_refresh(struct intake_sinks *sinks, str sink_id, struct error *error);
/* NULL: not known. */
struct intake_sink *intake_sinks_find(struct intake_sinks *sinks, str sink_id);
MUST_USE err intake_sinks_authenticate(struct intake_sinks *sinks, str sink_id, str authorization,
                                       struct intake_known_key *known, str peer,
                                       struct intake_sink **out_sink, struct error *error);
/* What may change, read under the lock. */
struct intake_sink_view {
    bool id_optional;
    const struct warehouse *warehouse;
};
struct intake_sink_view intake_sinks_view(struct intake_sinks *sinks,
                                          const struct intake_sink *sink);

#endif
