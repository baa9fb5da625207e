/* incarnation: a number that ledger and file buckets both hold, by which an older copy of the
 * ledger is recognised (exactly-once O1).
 *
 * `_sink/incarnation.json` in each bucket is raised at each start and every minute, store first,
 * then ledger. A bucket that is ahead of the ledger: the ledger is a copy, and every sink recovers
 * before it is served. A ledger that is ahead of a bucket stands on the wrong store: nothing is
 * served. Blocking; one node at a time, which the compare-and-swap in the ledger holds. */
#ifndef LHBOX_SINK_INCARNATION_H
#define LHBOX_SINK_INCARNATION_H

#include "sink/warehouse.h"

struct incarnation {
    const struct db *db;
    const struct warehouse *const *warehouses;
    size_t count;
    str installation_id;
    i64 seen; /* the highest number that this node has seen; starts with 0 */
};

enum incarnation_reading {
    INCARNATION_FINE,
    INCARNATION_BEHIND, /* the ledger is a copy: recover before serving */
};
/* CORRUPT: a bucket belongs to another installation, or is behind the ledger; `error` says which.
 */
MUST_USE err incarnation_read(struct incarnation *incarnation,
                              enum incarnation_reading *out_reading, struct error *error);
/* To above everything that was seen. A bucket that does not answer keeps its number, and so does
 * the ledger's record of it. CONFLICT: another node was faster. */
MUST_USE err incarnation_raise(struct incarnation *incarnation, struct error *error);
/* Every minute. *out_reading: BEHIND when the ledger has lost a number that this node has seen;
 * then nothing was raised. */
MUST_USE err incarnation_watch(struct incarnation *incarnation,
                               enum incarnation_reading *out_reading, struct error *error);

#endif
