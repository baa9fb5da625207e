/* view: a view's metadata.json as a document, and the updates of it. Iceberg view spec, "View
 * metadata"; REST catalog spec, CreateViewRequest and CommitViewRequest.
 *
 * A view is its schemas, and versions of which one is current; a version's representations (SQL
 * texts by dialect) are opaque here. Unknown members are kept. Documents are JSON trees: what a
 * function gives is a new reference, what it takes is not changed. Any thread. */
#ifndef LHBOX_TABLE_VIEW_H
#define LHBOX_TABLE_VIEW_H

#include "base/error.h"
#include "base/seam.h"

#include <jansson.h>

enum {
    VIEW_VERSIONS_KEPT = 10, /* unless `version.history.num-entries` says another number */
    VIEW_ITEMS_MAX = 1000,   /* schemas, versions, entries of the log; updates of one commit */
};

/* CORRUPT or INVALID when it is no view's metadata. */
MUST_USE err view_parse(str bytes, json_t **out_view, struct error *error);
/* From a CreateViewRequest. INVALID. */
MUST_USE err view_create(const json_t *request, str location, const struct seam *seam,
                         json_t **out_view, struct error *error);
/* All hold, or CONFLICT; INVALID for an unknown one. NULL: there are none. */
MUST_USE err view_check(const json_t *view, const json_t *requirements, struct error *error);
/* The document after the updates, in order. *out_changed false: nothing needs to be written. An
 * equal schema or version is used again under its id, so that a commit which is sent twice changes
 * nothing the second time. INVALID. */
MUST_USE err view_apply(const json_t *view, const json_t *updates, instant now, json_t **out_after,
                        bool *out_changed, struct error *error);

#endif
