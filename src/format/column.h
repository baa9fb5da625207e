/* column: values of one field in the Arrow layout, growing row by row.
 *
 * One column per field, with children for nested types: struct has its fields' columns (as many
 * values as itself), variant likewise those of its two parts, list has offsets and one child
 * "element", map has offsets and two children, key and value. Widths: boolean 1 byte (not bits,
 * while building), int/float/date 4, long/double/time/ timestamps 8, decimal 16 (i128), uuid 16,
 * fixed its length; string and binary have i64 offsets and bytes. Validity is one byte a value
 * while building (1 = there).
 *
 * A row that turns out to be a reject is undone by column_truncate to the marks taken before it.
 * Owned by one roll worker, memory from its arena; every append answers false at the arena's limit
 * (then the column is as before for this value, and the caller gives up with LIMIT). */
#ifndef LHBOX_FORMAT_COLUMN_H
#define LHBOX_FORMAT_COLUMN_H

#include "base/arena.h"
#include "format/type.h"

struct column {
    const struct field *field;
    size_t width; /* as column_width says */
    i64 count;    /* values, nulls included */
    i64 null_count;
    u8 *valid;     /* [count] 1 or 0 */
    u8 *data;      /* fixed-width values, or the bytes of string and binary */
    i64 data_size; /* bytes used in data */
    i64 *offsets;  /* [count + 1] string, binary: into data; list, map: into the children */
    struct column *children;
    size_t child_count;
    i64 capacity;      /* of valid and offsets, in values */
    i64 data_capacity; /* of data, in bytes */
    struct arena *arena;
};

/* Makes the column and its children, empty. False at the arena's limit. `field` must outlive it. */
MUST_USE bool column_init(struct column *column, struct arena *arena, const struct field *field);
/* Width in bytes of a fixed-width type, 0 for string, binary, unknown, variant and nested types. */
size_t column_width(const struct type *type);

/* Room for one more value, and for `size` more bytes of data: then whoever knows the layout may put
 * the value in its place and count it. */
MUST_USE bool column_reserve(struct column *column, size_t size);

/* Room for `times` sixteenths of what is there, in the column and its children, if that is more
 * than there is room for: what will come is about known, and need not be moved again and again on
 * the way. */
enum { COLUMN_TIMES_ONE = 16, COLUMN_TIMES_MAX = COLUMN_TIMES_ONE * KIB };
MUST_USE bool column_foresee(struct column *column, i64 times);

/* Appends a null (with zeroed data; children of a struct or variant get a null too, lists and maps
 * are empty). */
MUST_USE bool column_append_null(struct column *column);
/* `bytes` holds the width of the type, in memory order. */
MUST_USE bool column_append_fixed(struct column *column, const void *bytes);
MUST_USE bool column_append_bytes(struct column *column, str bytes);
/* Struct, variant: marks one value as there after its children got one value each. List, map: the
 * same, ending at the present count of the children. */
MUST_USE bool column_append_nested(struct column *column);
/* Takes the column and its children back to `count` values. */
void column_truncate(struct column *column, i64 count);
/* Bytes in use by values, children included: what a row-group bound is measured by. */
i64 column_bytes(const struct column *column);

#endif
