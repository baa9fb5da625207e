/* metadata: one version of a table's metadata.json as a document.
 *
 * Unknown members and the text of ids are kept; only what an update names is changed. Versions 1
 * to 3 are read and written (sinks take 2 and 3). The same functions serve the roller's commits and
 * the REST routes: a commit is the REST spec's request, {"requirements":[…],"updates":[…]}. Iceberg
 * table spec, "Table metadata"; REST catalog spec, TableUpdate and TableRequirement.
 *
 * A metadata document is one reference-counted tree; metadata_close drops a reference. A shared one
 * is not changed any more, and any thread may read it; else one thread at a time. */
#ifndef LHBOX_TABLE_METADATA_H
#define LHBOX_TABLE_METADATA_H

#include "base/seam.h"
#include "table/partition.h"
#include "table/schema.h"

struct metadata;

/* What decides about a sink's rolls: exactly-once C.6. */
#define METADATA_ROLL_PROPERTY "lakehousebox.sink.roll"

MUST_USE err metadata_parse(str bytes, struct metadata **out_metadata, struct error *error);
MUST_USE err metadata_from_json(const json_t *document, struct metadata **out_metadata,
                                struct error *error);
/* For metadata_apply, which changes neither the snapshots, schemas and other items that are there
 * nor the original: the two share them. */
MUST_USE err metadata_copy(const struct metadata *metadata, struct metadata **out_copy,
                           struct error *error);
/* One more reference to the same document. */
struct metadata *metadata_share(const struct metadata *metadata);
void metadata_close(struct metadata *metadata); /* NULL is allowed */
void metadata_close_at(struct metadata **metadata);
#define AUTO_METADATA __attribute__((cleanup(metadata_close_at)))
MUST_USE err metadata_print(struct arena *arena, const struct metadata *metadata, str *out_bytes,
                            struct error *error);
/* Borrowed; valid while the metadata is. */
const json_t *metadata_json(const struct metadata *metadata);

i32 metadata_format_version(const struct metadata *metadata);
str metadata_uuid(const struct metadata *metadata);     /* borrowed */
str metadata_location(const struct metadata *metadata); /* borrowed */
i64 metadata_last_sequence_number(const struct metadata *metadata);
instant metadata_last_updated(const struct metadata *metadata);
/* The head of main; false when the table is empty. */
bool metadata_main(const struct metadata *metadata, i64 *out_snapshot_id);
/* Borrowed; NULL: no such snapshot. */
const json_t *metadata_snapshot(const struct metadata *metadata, i64 snapshot_id);
/* data NULL when it is not set; borrowed. */
str metadata_property(const struct metadata *metadata, const char *key);
i64 metadata_property_i64(const struct metadata *metadata, const char *key, i64 otherwise);
MUST_USE err metadata_schema(struct arena *arena, const struct metadata *metadata,
                             struct schema *out_schema, struct error *error); /* current */
MUST_USE err metadata_schema_by_id(struct arena *arena, const struct metadata *metadata, i32 id,
                                   struct schema *out_schema, struct error *error);
MUST_USE err metadata_spec(struct arena *arena, const struct metadata *metadata,
                           struct partition_spec *out_spec, struct error *error); /* default */
MUST_USE err metadata_spec_by_id(struct arena *arena, const struct metadata *metadata, i32 id,
                                 struct partition_spec *out_spec, struct error *error);
i32 metadata_last_column_id(const struct metadata *metadata);
i64 metadata_next_row_id(const struct metadata *metadata); /* v3; -1 before */

/* A table's first metadata from the REST spec's CreateTableRequest (schema, partition-spec,
 * write-order, properties); field ids are assigned afresh. `format-version` is a property of it. */
MUST_USE err metadata_create(const json_t *request, str location, const struct seam *seam,
                             struct metadata **out_metadata, struct error *error);
/* A table's first metadata from a commit's updates (the end of a staged create): the format
 * version is taken from them first, then they are applied to an empty document. They must give a
 * schema and a spec; `location` stands until a set-location. */
MUST_USE err metadata_create_from_updates(const json_t *updates, str location,
                                          const struct seam *seam, struct metadata **out_metadata,
                                          struct error *error);
/* All requirements hold, or CONFLICT; INVALID for an unknown one. `metadata` NULL: no such
 * table. */
MUST_USE err metadata_check(const struct metadata *metadata, const json_t *requirements,
                            struct error *error);
/* Applies the updates in order and then stamps last-updated-ms = max(now, last + 1), the logs
 * and the trimmed metadata log. CONFLICT: a stale sequence number or snapshot id (I32). INVALID:
 * an unknown or malformed update. On failure the document is spoiled: close it.
 * `previous_location` goes to the metadata log (empty: none). Updates without an effect stamp
 * nothing: metadata_last_updated is as before, and no new version needs to be written. */
MUST_USE err metadata_apply(struct metadata *metadata, const json_t *updates, instant now,
                            str previous_location, struct error *error);
/* Locations of metadata files that stood in `before`'s log and not in `after`'s, when the table
 * asks for their deletion. Slices in the arena. */
MUST_USE err metadata_trimmed(struct arena *arena, const struct metadata *before,
                              const struct metadata *after, str **out_locations, size_t *out_count,
                              struct error *error);
/* True when every add-snapshot of the request (one at least) is in the table's history already,
 * with the same manifest list: the request was sent twice. */
bool metadata_has_applied(const struct metadata *metadata, const json_t *updates);

#endif
