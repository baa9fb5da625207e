/* manifest_writer: a data manifest, put together entry by entry. Private to table/.
 *
 * Entries are written to `entries` in the order of manifest_entry_schema, each with its partition
 * by manifest_put_partition, and counted by manifest_tally_add. */
#ifndef LHBOX_TABLE_MANIFEST_WRITER_H
#define LHBOX_TABLE_MANIFEST_WRITER_H

#include "base/buf.h"
#include "table/manifest.h"

enum manifest_status { MANIFEST_EXISTING = 0, MANIFEST_ADDED = 1, MANIFEST_DELETED = 2 };

/* What partition values take in a manifest list, by field. */
struct manifest_bound {
    struct type type;
    bool contains_null;
    bool has_value;
    i64 lower;
    i64 upper;
};

struct manifest_tally {
    i32 files[3]; /* by status */
    i64 rows[3];
};

struct manifest_writer {
    struct arena *arena;
    const struct metadata *metadata;
    const struct schema *schema; /* what stands in the header, and the sources of the spec */
    const struct partition_spec *spec;
    i64 snapshot_id;
    i32 format_version;
    struct manifest_bound *bounds;
    struct manifest_tally tally;
    buf entries;
};

/* `bytes`: a guess of what the entries will take. */
MUST_USE err manifest_writer_open(struct arena *arena, const struct metadata *metadata,
                                  const struct schema *schema, const struct partition_spec *spec,
                                  i64 snapshot_id, size_t bytes, struct manifest_writer *out_writer,
                                  struct error *error);
/* INVALID for values of a type that no sink writes. */
MUST_USE err manifest_put_partition(struct manifest_writer *writer,
                                    const struct partition_value *values, struct error *error);
/* LIMIT: more than a manifest can hold. */
MUST_USE err manifest_tally_add(struct manifest_tally *tally, enum manifest_status status, i64 rows,
                                struct error *error);
/* The bytes of the file, and its entry in a list, but for the sequence numbers. There are entries:
 * readers refuse an empty manifest. */
MUST_USE err manifest_writer_end(struct manifest_writer *writer, str path, str *out_bytes,
                                 struct manifest_file *out_file, struct error *error);

#endif
