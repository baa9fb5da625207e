/* merge: a table's small data manifests packed into few. Private to table/; commit_merge makes a
 * snapshot of it.
 *
 * Every append adds a manifest and carries all that were there, so that commits and readers get
 * slower with each. Packing changes none of what a reader finds: each live file stands in exactly
 * one manifest as before, as EXISTING and with the snapshot, the sequence numbers and the row id
 * that it had; entries of files that are deleted already go. Delete manifests, large ones, those of
 * other specs and those that hold what this cannot write stay as they are.
 *
 * The table's own properties are the settings, with the reference library's names and defaults:
 * commit.manifest-merge.enabled, commit.manifest.min-count-to-merge, and
 * commit.manifest.target-size-bytes. */
#ifndef LHBOX_TABLE_MERGE_H
#define LHBOX_TABLE_MERGE_H

#include "table/manifest.h"

/* So many manifests are read for one snapshot: the rest is left to the next. */
enum { MERGE_MANIFESTS_MAX = 1000 };

struct merge {
    struct arena *arena; /* of the result */
    const struct location_set *locations;
    const struct metadata *metadata;
    const struct schema *schema; /* current */
    i64 snapshot_id;             /* of the commit */
    i64 sequence_number;
    str prefix;                /* of the new manifests' URIs: a number and .avro follow */
    struct store_group *group; /* of their puts */
    /* The result: the new manifests first, then what is left of the parent's in their order. */
    struct manifest_list list;
    size_t created;
    size_t replaced; /* 0: there is nothing to merge */
    i64 entries;     /* live ones in the new manifests */
};

/* May the table have so many small manifests that merging is worth a look at the list? By the
 * summary of the snapshot alone where that tells how many there are. */
bool merge_may_be_due(const struct metadata *metadata, const json_t *snapshot);
/* Fails as the store does, but that a manifest which is gone or damaged stays named. */
MUST_USE err merge_pack(struct merge *merge, const struct manifest_list *parent,
                        struct error *error);

#endif
