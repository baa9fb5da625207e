/* leaf: the columns that a Parquet file really has, one for each non-nested field at any depth,
 * and two for a variant.
 *
 * Lists and maps get their three levels here (list/element, key_value/key/value), fields of type
 * `unknown` and groups of nothing else are left out. Private to parquet; lives in the writer's
 * arena. */
#ifndef LHBOX_FORMAT_PARQUET_LEAF_H
#define LHBOX_FORMAT_PARQUET_LEAF_H

#include "base/error.h"
#include "format/column.h"

/* The numbers of parquet.thrift's Type. */
enum leaf_physical {
    LEAF_BOOLEAN = 0,
    LEAF_INT32 = 1,
    LEAF_INT64 = 2,
    LEAF_FLOAT = 4,
    LEAF_DOUBLE = 5,
    LEAF_BYTE_ARRAY = 6,
    LEAF_FIXED = 7,
};

struct leaf {
    const struct field *field;
    /* From the file's columns down: which column, which child of it, and so on to the leaf. */
    const size_t *path;
    size_t depth;
    /* path_in_schema: with the names of the repeated groups. */
    const str *names;
    size_t name_count;
    i32 definition_max;
    i32 repetition_max;
    enum leaf_physical physical;
    size_t width; /* bytes of one physical value, a boolean 1; 0: byte array */
};

enum leaf_physical leaf_physical_of(const struct type *type);
/* Bytes of one physical value: of a decimal the fewest that hold its precision. */
size_t leaf_width_of(const struct type *type);
static inline bool leaf_is_number(const struct leaf *leaf)
{
    return leaf->physical != LEAF_BYTE_ARRAY && leaf->physical != LEAF_FIXED;
}
/* A variant's two parts have neither an id nor bounds: their order means nothing. */
static inline bool leaf_has_bounds(const struct leaf *leaf)
{
    return leaf->field->id != TYPE_NO_ID;
}
/* False for `unknown` and for groups of nothing else. */
bool leaf_is_stored(const struct field *field);

/* Fails with INVALID for types that cannot be written, LIMIT. */
MUST_USE err leaf_list(struct arena *arena, const struct field *fields, size_t field_count,
                       struct leaf **out_leaves, size_t *out_count, struct error *error);

#endif
