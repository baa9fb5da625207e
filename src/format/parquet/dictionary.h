/* dictionary: a column chunk's values, each distinct one once, and which of them stands where.
 *
 * Built in one pass with a hash table. It is given up as soon as its page is past the limit or the
 * probes into the table are too many (only values that were made to collide need so many); whether
 * it pays is the choice's to say (choice.h). Spec: Parquet Encodings.md. Private to parquet. */
#ifndef LHBOX_FORMAT_PARQUET_DICTIONARY_H
#define LHBOX_FORMAT_PARQUET_DICTIONARY_H

#include "format/parquet/encode.h"

struct dictionary {
    u32 count;
    const u32 *first;   /* [count] index among the values of each entry's first one */
    const u32 *indices; /* [values] the entry of each value */
    str entries;        /* in PLAIN: what the dictionary page holds */
    i32 width;          /* bits of an index */
};

struct dictionary_rooms {
    struct room first;
    struct room entries;
    struct room places;
    struct room table[2];
    struct room indices;
};

/* Bits that hold the index of any of `count` entries. */
i32 dictionary_width(i64 count);
/* `entries_likely` may be wrong. *out_made: false when it was given up. Returns false at the
 * arena's limit. */
MUST_USE bool dictionary_build(const struct values *values, i64 entries_likely, i64 bytes_max,
                               struct arena *arena, struct dictionary_rooms *rooms,
                               struct dictionary *out_dictionary, bool *out_made);
/* The values [from, to) as the data page has them. */
void dictionary_put_indices(buf *out, const struct dictionary *dictionary, i64 from, i64 to);
/* A hash of one value, equal for equal bytes; its upper bits are the better ones. */
u64 dictionary_hash(const struct values *values, i64 index);

#endif
