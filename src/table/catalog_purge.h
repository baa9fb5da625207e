/* catalog_purge: the files of a dropped table, removed.
 *
 * Removes what the metadata names and nothing else: data and delete files, manifests, manifest
 * lists, statistics, metadata files and the version hint, as far as they lie below the table's
 * location or the places where its properties send files. Never a whole directory.
 * `gc.enabled=false` keeps everything. A file that cannot be read or removed is logged and passed
 * over: it stays as an orphan. */
#ifndef LHBOX_TABLE_CATALOG_PURGE_H
#define LHBOX_TABLE_CATALOG_PURGE_H

#include "table/location.h"
#include "table/metadata.h"

void catalog_purge(const struct location_set *locations, const struct metadata *metadata,
                   str metadata_uri);

#endif
