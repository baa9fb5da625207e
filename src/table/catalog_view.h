/* catalog_view: the embedded catalog's views, by the same rules as its tables.
 *
 * A commit writes the next metadata file and then moves the pointer by compare-and-swap under the
 * name's lock; requirements are checked on what the pointer names then, so nothing has to be tried
 * again by the client. Views lie where tables may lie, and nowhere else. NOT_FOUND: view_not_found
 * or namespace_not_found. Other results are those of catalog_local. */
#ifndef LHBOX_TABLE_CATALOG_VIEW_H
#define LHBOX_TABLE_CATALOG_VIEW_H

#include "table/catalog_local.h"

/* One loaded version of a view. catalog_view_close drops the document. */
struct catalog_view {
    json_t *document;
    str metadata_location; /* in the arena of the call */
};
void catalog_view_close(struct catalog_view *view);
#define AUTO_VIEW __attribute__((cleanup(catalog_view_close)))

MUST_USE err catalog_view_load(const struct catalog_local *local, struct arena *arena,
                               struct table_name name, struct catalog_view *out_view,
                               struct error *error);
/* The pointer alone. */
MUST_USE err catalog_view_find(const struct catalog_local *local, struct arena *arena,
                               struct table_name name, str *out_metadata_location,
                               struct error *error);
/* `request` is a CreateViewRequest. CONFLICT: a view or a table has the name. */
MUST_USE err catalog_view_create(struct catalog_local *local, struct arena *arena,
                                 struct table_name name, const json_t *request,
                                 struct catalog_view *out_view, struct error *error);
/* `request` is a CommitViewRequest. */
MUST_USE err catalog_view_commit(struct catalog_local *local, struct arena *arena,
                                 struct table_name name, const json_t *request,
                                 struct catalog_view *out_view, struct error *error);
MUST_USE err catalog_view_register(struct catalog_local *local, struct arena *arena,
                                   struct table_name name, str metadata_location,
                                   enum catalog_register how, struct catalog_view *out_view,
                                   struct error *error);
/* The pointer; files stay. */
MUST_USE err catalog_view_drop(struct catalog_local *local, struct table_name name,
                               struct error *error);
MUST_USE err catalog_view_list(const struct catalog_local *local, struct arena *arena,
                               str namespace_name, struct catalog_names *out_names,
                               struct error *error);

#endif
