/* catalog_keep: committed files of local tables, kept from clients that delete them by mistake.
 *
 * A client whose commit was applied but whose answer was lost may take it for refused and delete
 * its files; then the table names files that are gone, and nothing can read it. So before a
 * client's commit moves the pointer, every file that its snapshots add gets a second hard link
 * below
 * `<location>/metadata/kept/`. Loading the table within CATALOG_KEEP_US puts back what is missing,
 * when the snapshot is in the table; after that the links go at the next load.
 *
 * All of it is best effort: a failure is logged, and neither a commit nor a load fails by it.
 * Tables outside the local file system are left alone. Any thread. */
#ifndef LHBOX_TABLE_CATALOG_KEEP_H
#define LHBOX_TABLE_CATALOG_KEEP_H

#include "table/location.h"
#include "table/metadata.h"

/* Longer than clients try again. */
#define CATALOG_KEEP_US (180 * TIME_SECOND_US)

/* Links what the snapshots of `after` add that `before` (NULL: a new table) has not. */
void catalog_keep_add(const struct location_set *locations, const struct seam *seam,
                      const struct metadata *before, const struct metadata *after);
/* Puts back what is missing, and ends what is old enough. */
void catalog_keep_check(const struct location_set *locations, const struct seam *seam,
                        const struct metadata *metadata);
/* Ends all links of a table that is purged. */
void catalog_keep_end(const struct location_set *locations, const struct metadata *metadata);

#endif
