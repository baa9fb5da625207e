/* encode: a leaf's values in their physical form, PLAIN, and as a dictionary.
 *
 * values_build leaves nulls out and turns decimals into the physical type of their precision; where
 * nothing has to change it points into the column. A dictionary is given up when it would not pay:
 * more than three quarters of the first values are distinct, its page is past the limit, the probes
 * into its hash table are too many, or PLAIN is smaller. Spec: Parquet Encodings.md. Private to
 * parquet. */
#ifndef LHBOX_FORMAT_PARQUET_ENCODE_H
#define LHBOX_FORMAT_PARQUET_ENCODE_H

#include "base/buf.h"
#include "format/parquet/leaf.h"
#include "format/parquet/room.h"

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

struct dictionary {
    u32 count;
    const u32 *first;   /* [count] index among the values of each entry's first one */
    const u32 *indices; /* [values] the entry of each value */
    i64 bytes;          /* of the entries in PLAIN */
    i32 width;          /* bits of an index */
};

struct dictionary_rooms {
    struct room first;
    struct room hashes;
    struct room table;
    struct room indices;
};

/* *out_used: false when PLAIN is better. Returns false at the arena's limit. */
MUST_USE bool dictionary_build(const struct values *values, i64 bytes_max, struct arena *arena,
                               struct dictionary_rooms *rooms, struct dictionary *out_dictionary,
                               bool *out_used);
/* The entries, as the dictionary page has them. */
void dictionary_put_entries(buf *out, const struct values *values,
                            const struct dictionary *dictionary);
/* The values [from, to) as the data page has them. */
void dictionary_put_indices(buf *out, const struct dictionary *dictionary, i64 from, i64 to);

#endif
