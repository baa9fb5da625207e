/* warehouse: what a warehouse's name stands for: its catalog, its file bucket, its table files.
 *
 * The registry is made at start from the ledger's rows and grows by warehouse_create; entries are
 * never removed, so that a pointer stays good until the process ends. Thread-safe. */
#ifndef LHBOX_SINK_WAREHOUSE_H
#define LHBOX_SINK_WAREHOUSE_H

#include "io/db.h"
#include "table/catalog.h"

enum { WAREHOUSES_MAX = 1024 };

struct warehouse {
    str name;
    str project;
    struct store files; /* the file bucket, where _sink/ lies */
    struct catalog catalog;
    struct location_set locations; /* where its tables may lie */
    str tables_uri;                /* file:///data/warehouse/<name>/tables */
    str files_path;                /* directory of the file bucket; data NULL: no local one */
    bool embedded;                 /* its catalog is ours */
};

struct warehouses;

struct warehouse_options {
    str data_directory;           /* absolute */
    const str *allowed_locations; /* more URI prefixes for embedded tables */
    size_t allowed_count;
};

MUST_USE err warehouses_open(struct arena *arena, const struct db *db, const struct seam *seam,
                             const struct warehouse_options *options, struct warehouses **out,
                             struct error *error);
/* Closes stores and catalogs; no entry may be used after it. */
void warehouses_close(struct warehouses *warehouses);
/* NULL: no such warehouse. */
const struct warehouse *warehouse_get(const struct warehouses *warehouses, str name);
/* Every warehouse of a project (empty: all), oldest first; at most `max`. Returns how many. */
size_t warehouse_list(const struct warehouses *warehouses, str project,
                      const struct warehouse **out, size_t max);
/* [a-z0-9_-]{1,63}. store and catalog are the request's objects or NULL (dir, embedded); others
 * than those two answer not_implemented. CONFLICT: name_taken. */
MUST_USE err warehouse_create(struct warehouses *warehouses, str project, str name,
                              const json_t *store, const json_t *catalog,
                              const struct warehouse **out_warehouse, struct error *error);

#endif
