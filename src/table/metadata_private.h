/* metadata_private: what the files of the metadata module share. Private to table/. */
#ifndef LHBOX_TABLE_METADATA_PRIVATE_H
#define LHBOX_TABLE_METADATA_PRIVATE_H

#include "base/map.h"
#include "table/document.h"
#include "table/metadata.h"
#include "table/schema_text.h"
#include "table/schema_walk.h"

enum {
    METADATA_VERSION_MAX = 3,
    METADATA_SCRATCH_BYTES_MAX = 512 * MIB,
    METADATA_PARTITION_ID_FIRST = 1000,
    METADATA_CLOCK_SLACK_MS = 60000, /* how far a log may go back: readers refuse more */
};

#define METADATA_MAIN "main"

/* A `struct metadata` is the document's root under another name. */
json_t *metadata_root(struct metadata *metadata);
struct metadata *metadata_of(json_t *root);

/* Adds what older versions may leave out (lists, refs, ids), drops nulls that are no values, and
 * checks what any reader checks on loading. */
MUST_USE err metadata_normalise(json_t *root, struct error *error);
/* The rules that tie the parts of a document together. */
MUST_USE err metadata_validate(const json_t *root, struct error *error);
/* Version 1 has its current schema and default spec a second time, for its readers. */
void metadata_copy_for_v1(json_t *root);
/* Null in version 3, -1 before. */
void metadata_set_no_snapshot(json_t *root);
bool metadata_current_snapshot(const json_t *root, i64 *out_snapshot_id);
/* A member of an update under its present or its former name. */
json_t *change_member(const json_t *update, const char *key, const char *former);

/* One metadata_apply under way. */
struct change {
    json_t *root;
    struct arena *arena;   /* scratch, gone afterwards */
    i64 stamp_ms;          /* the new last-updated-ms; a later snapshot may raise it */
    i32 last_added_schema; /* what -1 means; itself -1: none was added */
    i32 last_added_spec;
    i32 last_added_order;
    struct map *added_snapshots; /* ids, 8 bytes each */
    size_t log_start;            /* entries of the snapshot log before */
    bool replaces;               /* main was removed: what is added next begins a new history */
    bool changed;
};

typedef err change_function(struct change *change, const json_t *update, struct error *error);

/* metadata_layout.c */
change_function change_add_schema;
change_function change_set_current_schema;
change_function change_remove_schemas;
change_function change_add_spec;
change_function change_set_default_spec;
change_function change_remove_specs;
change_function change_add_sort_order;
change_function change_set_default_sort_order;

/* metadata_apply.c: applies the updates; the caller validates and stamps. */
MUST_USE err metadata_apply_updates(struct change *change, const json_t *updates,
                                    struct error *error);
/* Properties that stand for members of the document and are never kept as properties. */
bool metadata_property_reserved(const char *key);

/* Is the schema one that a table of this version can have? `document` is its JSON. */
MUST_USE err metadata_check_schema(const json_t *document, const struct schema *schema, i64 version,
                                   struct error *error);
MUST_USE err metadata_check_order(const json_t *order, const struct type *root,
                                  struct error *error);
/* Gives the spec's fields that have no id one: an equal field's of `specs`, else the next after
 * last_id. Returns the highest id in use. */
i64 metadata_number_spec(json_t *spec, const json_t *specs, i64 last_id);

/* metadata_snapshot.c */
change_function change_add_snapshot;
change_function change_remove_snapshots;
change_function change_set_snapshot_ref;
change_function change_remove_snapshot_ref;
change_function change_set_statistics;
change_function change_remove_statistics;
change_function change_set_partition_statistics;
change_function change_remove_partition_statistics;
/* Snapshots that came and went inside one commit leave no entry in the log. */
void change_settle_snapshot_log(struct change *change);

#endif
