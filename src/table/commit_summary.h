/* commit_summary: the summary of a snapshot. Private to table/. */
#ifndef LHBOX_TABLE_COMMIT_SUMMARY_H
#define LHBOX_TABLE_COMMIT_SUMMARY_H

#include "table/commit.h"

/* What became of manifests. */
struct summary_manifests {
    i64 created;
    i64 kept;
    i64 replaced; /* > 0: the snapshot replaces manifests, and changes nothing else */
    i64 entries;  /* that stand in other manifests now */
};

/* A new reference. `parent` is the snapshot that is the branch's head, or NULL. */
MUST_USE err commit_summary(struct arena *arena, const struct append *append, const json_t *parent,
                            size_t partition_fields, const struct summary_manifests *manifests,
                            json_t **out_summary, struct error *error);

#endif
