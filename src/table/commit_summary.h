/* commit_summary: the summary of an append snapshot. Private to table/. */
#ifndef LHBOX_TABLE_COMMIT_SUMMARY_H
#define LHBOX_TABLE_COMMIT_SUMMARY_H

#include "table/commit.h"

/* A new reference. `parent` is the snapshot that is the branch's head, or NULL; `kept` manifests
 * are carried over. */
MUST_USE err commit_summary(struct arena *arena, const struct append *append, const json_t *parent,
                            size_t partition_fields, size_t kept, json_t **out_summary,
                            struct error *error);

#endif
