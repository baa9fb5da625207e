/* schema_walk: every field of a type tree, parents before their children, without recursion.
 *
 * A walk is a value on the stack; the tree must not change while it runs. Depth is at most
 * SCHEMA_DEPTH_MAX, which whoever builds a tree has checked. Private to table/. */
#ifndef LHBOX_TABLE_SCHEMA_WALK_H
#define LHBOX_TABLE_SCHEMA_WALK_H

#include "table/schema.h"

struct schema_walk {
    const struct type *types[SCHEMA_DEPTH_MAX + 1];
    size_t next[SCHEMA_DEPTH_MAX + 1];
    i32 level; /* of the type under way; -1 at the end */
    i32 depth; /* of the field last given: 0 is a column */
};

void schema_walk_begin(struct schema_walk *walk, const struct type *root);
/* NULL at the end. */
struct field *schema_walk_next(struct schema_walk *walk);

#endif
