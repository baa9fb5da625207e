/* intake_index: which batch ids may be known to the ledger, in bounded memory; private to
 * sink/intake*.c.
 *
 * A set of fingerprints that errs on one side: an id that it does not have is surely new, and is
 * taken without a read of the ledger; one that it may have is looked up there, as all are while the
 * set is being filled at the start. Ids go in before anything is stored of their batch. What the
 * set does not see is an id that an orphan brings which the collector adopts while this process
 * runs: its sink is closed to early answers then (intake_early.h), and the ledger's unique row
 * decides (I2).
 *
 * Fingerprints are keyed, and five bits each. They lie in layers of doubling size, made as they
 * fill; when the bound is reached the last one gets denser, so that more and more ids are looked up
 * in the ledger. Nothing is taken out; a start fills the set anew. Any thread. */
#ifndef LHBOX_SINK_INTAKE_INDEX_H
#define LHBOX_SINK_INTAKE_INDEX_H

#include "sink/intake_send.h"

struct intake_index;

/* Reads a first part of the ledger's ids, and the rest of a long ledger on a thread of its own. */
MUST_USE err intake_index_open(struct arena *arena, const struct intake_options *options,
                               struct intake_index **out_index, struct error *error);
void intake_index_close(struct intake_index *index);
/* Part of an id's fingerprint, which a sink keeps. */
u64 intake_index_sink(str sink_id);
/* The fingerprint; never 0. */
u64 intake_index_id(u64 sink_hash, str batch_id);
/* Notes the id of this fingerprint; true when it is surely new. Of two who come with one id at the
 * same time, both may hear that, unless they come under one lock, as those of one sink do. Does not
 * block. */
bool intake_index_claim(struct intake_index *index, u64 id_hash);

#endif
