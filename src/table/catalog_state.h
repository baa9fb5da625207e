/* catalog_state: what the files of the embedded catalog share; nobody else includes it.
 *
 * catalog_local.c has the catalog's operations, catalog_commit.c the way of a commit,
 * catalog_namespace.c the namespaces, catalog_view.c the views. */
#ifndef LHBOX_TABLE_CATALOG_STATE_H
#define LHBOX_TABLE_CATALOG_STATE_H

#include "base/buf.h"
#include "table/catalog_lock.h"
#include "table/catalog_rows.h"
#include "table/metadata_cache.h"

#include <stdatomic.h>

/* What all ways into one catalog share (catalog_receipt opens more). */
struct catalog_shared {
    struct catalog_lock lock;
    atomic_llong hints_missed;  /* that could not be written after their swap, ever */
    atomic_llong hints_settled; /* of those, the ones that were written since */
    pthread_mutex_t trim_lock;
    struct arena *trim_arena; /* under the lock; NULL: trims are not paused */
    buf trims;                /* old metadata files that go afterwards, a line each */
    struct metadata_cache cache;
};

struct catalog_local {
    struct catalog_rows rows;
    const struct seam *seam;
    const struct location_set *locations;
    str tables_uri;
    struct catalog_shared *shared;
};

u64 catalog_lock_key(struct table_name name);
/* The pointer and the document that it points to. */
MUST_USE err catalog_read(struct catalog_local *local, struct arena *arena, struct table_name name,
                          struct catalog_pointer *out_pointer, struct metadata **out_metadata,
                          struct error *error);
/* <root>/<namespace parts>/<name>-<random>: letters outside [A-Za-z0-9_.-] become `_`. data NULL at
 * the arena's limit. */
str catalog_place(struct arena *arena, const struct seam *seam, str root, struct table_name name);
/* After a swap, under the name's lock: the hint names `uri`. What fails here no longer makes the
 * commit fail: catalog_restore_hints writes it later. */
void catalog_point(struct catalog_local *local, const json_t *document, str uri);
/* Where an item that is to be made goes: as the request says, or a place of its own. CONFLICT: the
 * name is in use. NOT_FOUND: no such namespace. */
MUST_USE err catalog_find_place(struct catalog_local *local, struct arena *arena,
                                enum catalog_item item, struct table_name name,
                                const json_t *request, str *out_location, struct error *error);
/* Writes the document as the next file after `swap->from`, sets `swap->to` to it and moves the
 * pointer there. What is not done leaves no file, unless it is UNKNOWN. */
MUST_USE err catalog_store(struct catalog_local *local, struct arena *arena,
                           struct catalog_swap *swap, const json_t *document, struct error *error);
/* Checks the name and that its namespace is there; the file's place in its normal form, in the
 * arena. */
MUST_USE err catalog_register_place(struct catalog_local *local, struct arena *arena,
                                    struct table_name name, str metadata_location, str *out_uri,
                                    struct error *error);
/* Points a name at a file that is there already. */
MUST_USE err catalog_register_at(struct catalog_local *local, const struct catalog_swap *swap,
                                 enum catalog_register how, const json_t *document,
                                 struct error *error);
/* With the parents that only their children imply, in byte order. */
MUST_USE err catalog_all_namespaces(struct catalog_local *local, struct arena *arena,
                                    struct catalog_names *out_names, struct error *error);

#endif
