/* commit: from new data files to one append snapshot, or from many manifests to few, as a request
 * for the catalog.
 *
 * Writes the manifest (once) and the manifest list (one per try) and builds the request with the
 * asserts of exactly-once 3.8: table uuid, main = base, current schema id, default spec id.
 * Without data files it is a fence: an empty append that carries all manifests. The snapshot id
 * and the manifest stay the same when the same result is committed on another base (decisions
 * 2). */
#ifndef LHBOX_TABLE_COMMIT_H
#define LHBOX_TABLE_COMMIT_H

#include "base/id.h"
#include "table/catalog.h"
#include "table/manifest.h"

struct commit_entry {
    str key;
    str value;
};

/* One computed result, built by the caller and kept over its tries. */
struct append {
    i64 snapshot_id; /* commit_snapshot_id */
    char commit_uuid[ID_UUID_SIZE];
    struct data_file
        *files; /* all of one partition spec: the base's default when they were written */
    size_t file_count;
    struct commit_entry *summary; /* never overwrites computed keys */
    size_t summary_count;
    struct commit_entry *properties; /* set in the same request */
    size_t property_count;
    const char *const *removed_properties;
    size_t removed_property_count;
    struct store_group *group; /* NULL or: holds the data files, and takes those of a try */
    i32 try_number;            /* 0 before the first; raised by commit_append */
    bool manifest_written;     /* set by commit_append */
    struct manifest_file manifest;
};

/* Random, positive, below 2^53. */
i64 commit_snapshot_id(const struct seam *seam);
/* A fresh append without files. */
struct append commit_begin(const struct seam *seam);
/* Writes the files of this try and makes its request (a new reference). All that it names is
 * durable then, or waits in the append's group, whose end comes before the request is sent; after a
 * failure that is gone. Fails as the store
 * does, but for CORRUPT when a file that the table names is gone. An UNKNOWN put of a file is not
 * an unknown commit: nothing was sent. The manifest's entry lives in the arena of the try that
 * wrote it, which must outlive the later ones. */
MUST_USE err commit_append(struct arena *arena, const struct location_set *locations,
                           const struct table *base, const struct seam *seam, struct append *append,
                           json_t **out_request, struct error *error);

/* May there be enough small manifests? Told by the table's metadata alone. */
bool commit_merge_due(const struct table *base);
/* A snapshot of the same files in fewer manifests (table/merge.h), asserting the base as an append
 * does. *out_request is a new reference, whose files are durable; NULL: there are too few small
 * manifests. Fails as the store does, but for CORRUPT when the base's manifest list is gone. What
 * was written for a request that does not land stays. */
MUST_USE err commit_merge(struct arena *arena, const struct location_set *locations,
                          const struct table *base, const struct seam *seam, json_t **out_request,
                          struct error *error);

#endif
