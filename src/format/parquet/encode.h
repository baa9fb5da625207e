/* encode: a leaf's values in their physical form, and PLAIN.
 *
 * values_build leaves nulls out and turns decimals into the physical type of their precision; where
 * nothing has to change it points into the column. Spec: Parquet Encodings.md. Private to parquet.
 */
#ifndef LHBOX_FORMAT_PARQUET_ENCODE_H
#define LHBOX_FORMAT_PARQUET_ENCODE_H

#include "base/buf.h"
#include "format/parquet/leaf.h"
#include "format/parquet/room.h"

enum { PLAIN_LENGTH_SIZE = 4 }; /* before each byte array */

struct values {
    i64 count;
    enum leaf_physical physical;
    size_t width;       /* bytes of each in data; 0: byte array */
    const u8 *data;     /* little-endian, a boolean one byte, a decimal in FIXED big-endian */
    const i64 *offsets; /* byte array: [count + 1] into data */
};

struct value_rooms {
    struct room data;
    struct room offsets;
};

/* False at the arena's limit. */
MUST_USE bool values_build(const struct leaf *leaf, const struct column *column,
                           struct arena *arena, struct value_rooms *rooms,
                           struct values *out_values);
static inline str values_at(const struct values *values, i64 index)
{
    const char *data = (const char *)values->data;
    if (values->width > 0) {
        return (str){data + (size_t)index * values->width, values->width};
    }
    i64 start = values->offsets[index];
    return (str){data != NULL ? data + start : data, (size_t)(values->offsets[index + 1] - start)};
}
/* Bytes of the values [from, to) in PLAIN. */
i64 values_plain_bytes(const struct values *values, i64 from, i64 to);
void values_put_plain(buf *out, const struct values *values, i64 from, i64 to);

#endif
