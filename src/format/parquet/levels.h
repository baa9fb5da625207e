/* levels: definition and repetition levels of a leaf.
 *
 * Levels are one byte a slot: a slot is a value of the leaf, or a place where something on the path
 * to it is null or empty. Built one nesting step at a time for all rows, in time linear in the
 * slots. Spec: Dremel, "record shredding"; Parquet's README, "Nested Encoding". Private to parquet.
 */
#ifndef LHBOX_FORMAT_PARQUET_LEVELS_H
#define LHBOX_FORMAT_PARQUET_LEVELS_H

#include "format/parquet/leaf.h"
#include "format/parquet/room.h"

struct levels {
    i64 count;            /* slots */
    const u8 *definition; /* NULL: all are the leaf's maximum */
    const u8 *repetition; /* NULL: all are 0 */
};

struct level_rooms {
    struct room definition[2];
    struct room repetition[2];
    struct room index[2];
};

/* Points into the rooms or into the column's own validity. False at the arena's limit. */
MUST_USE bool levels_build(const struct leaf *leaf, const struct column *columns,
                           struct arena *arena, struct level_rooms *rooms,
                           struct levels *out_levels);

#endif
