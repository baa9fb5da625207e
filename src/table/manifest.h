/* manifest: manifests and manifest lists, written and read.
 *
 * Field ids, types and key-values as the Iceberg table spec ("Manifests", "Manifest lists") and as
 * the reference library reads them. Versions 2 and 3. */
#ifndef LHBOX_TABLE_MANIFEST_H
#define LHBOX_TABLE_MANIFEST_H

#include "format/parquet/parquet.h"
#include "table/location.h"
#include "table/metadata.h"

struct data_file {
    str path; /* URI */
    struct parquet_file_stats stats;
    i32 spec_id;
    const struct partition_value *partition; /* one per field of the spec */
};

/* One entry of a manifest list (manifest_file). */
struct manifest_file {
    str path;
    i64 length;
    i32 spec_id;
    i32 content;         /* 0 data, 1 deletes */
    i64 sequence_number; /* -1 until a commit gives it */
    i64 min_sequence_number;
    i64 added_snapshot_id;
    i32 added_files; /* the six counts: -1 where a foreign list has none */
    i32 existing_files;
    i32 deleted_files;
    i64 added_rows;
    i64 existing_rows;
    i64 deleted_rows;
    i64 first_row_id; /* v3; -1: none */
    str key_metadata; /* data NULL: none */
    str partitions;   /* the entry's partitions as an encoded Avro array; empty: null */
};

struct manifest_list {
    struct manifest_file *files;
    size_t count;
};

/* A data manifest of ADDED entries: bytes of the file, and its list entry (path and length
 * filled). */
MUST_USE err manifest_write(struct arena *arena, const struct metadata *metadata,
                            const struct schema *schema, const struct partition_spec *spec,
                            i64 snapshot_id, const struct data_file *files, size_t count, str path,
                            str *out_bytes, struct manifest_file *out_file, struct error *error);
MUST_USE err manifest_list_write(struct arena *arena, i32 format_version, i64 snapshot_id,
                                 bool has_parent, i64 parent_id, i64 sequence_number,
                                 i64 first_row_id, const struct manifest_list *list, str *out_bytes,
                                 struct error *error);
MUST_USE err manifest_list_read(struct arena *arena, str bytes, struct manifest_list *out_list,
                                struct error *error);
/* The manifest's six counts from its own entries, for lists that leave them out. */
MUST_USE err manifest_count(struct arena *arena, str bytes, struct manifest_file *file,
                            struct error *error);

#endif
