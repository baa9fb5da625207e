/* catalog_state: what the files of the embedded catalog share; nobody else includes it.
 *
 * catalog_local.c has the catalog's operations, catalog_commit.c the way of a commit,
 * catalog_namespace.c the namespaces. */
#ifndef LHBOX_TABLE_CATALOG_STATE_H
#define LHBOX_TABLE_CATALOG_STATE_H

#include "table/catalog_lock.h"
#include "table/catalog_rows.h"

#include <stdatomic.h>

struct catalog_local {
    struct catalog_rows rows;
    const struct seam *seam;
    const struct location_set *locations;
    str tables_uri;
    struct catalog_lock lock;
    atomic_bool hints_behind; /* one could not be written after its swap */
};

u64 catalog_lock_key(struct table_name name);
/* The pointer and the document that it points to. */
MUST_USE err catalog_read(const struct catalog_local *local, struct arena *arena,
                          struct table_name name, struct catalog_pointer *out_pointer,
                          struct metadata **out_metadata, struct error *error);
/* <root>/<namespace parts>/<name>-<random>: letters outside [A-Za-z0-9_.-] become `_`. data NULL at
 * the arena's limit. */
str catalog_place(struct arena *arena, const struct seam *seam, str root, struct table_name name);
/* After a swap, under the table's lock: the hint names `uri`. What fails here no longer makes the
 * commit fail: catalog_restore_hints writes it later. */
void catalog_point(struct catalog_local *local, const struct metadata *metadata, str uri);
/* Points a name that is not in use at a first file. */
MUST_USE err catalog_store_first(struct catalog_local *local, struct arena *arena,
                                 struct table_name name, const struct metadata *metadata,
                                 str *out_uri, struct error *error);
/* With the parents that only their children imply, in byte order. */
MUST_USE err catalog_all_namespaces(struct catalog_local *local, struct arena *arena,
                                    struct catalog_names *out_names, struct error *error);

#endif
