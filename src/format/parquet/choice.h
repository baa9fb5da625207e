/* choice: whether a column chunk gets a dictionary, what encodes it else, and whether its pages are
 * compressed.
 *
 * A sample of the values, in a few runs spread over the chunk, says how many distinct ones there
 * must be and what the codec makes of them. A dictionary is built where it promises to be smaller
 * once both forms are compressed, and kept where it is. Values without one are in PLAIN, or, where
 * compact encodings are asked for, in theirs if that leaves less of the sample. What the codec
 * saves little of is stored as it is. At zstd's fastest level, values in which the sample shows
 * little that repeats are searched for it in a quicker way, and those with next to nothing are
 * coded without a search, if their first page is as small so. The same values always get the same
 * choice. Private to parquet. */
#ifndef LHBOX_FORMAT_PARQUET_CHOICE_H
#define LHBOX_FORMAT_PARQUET_CHOICE_H

#include "base/error.h"
#include "format/compress.h"
#include "format/parquet/dictionary.h"
#include "format/parquet/encoding.h"
#include "format/parquet/parquet.h"

struct choice {
    bool has_dictionary;
    struct dictionary dictionary;
    enum page_encoding encoding; /* of the data pages */
    bool compressed;
    enum compress_search search; /* when compressed */
    bool try_coding;             /* on the first page: COMPRESS_SEARCH_NONE may do as well */
};

struct choice_rooms {
    struct dictionary_rooms dictionary;
    struct room hashes;
    buf *body;   /* scratch */
    buf *packed; /* scratch */
};

/* Fails with LIMIT. */
MUST_USE err choice_make(const struct values *values, const struct parquet_options *options,
                         struct compressor *compressor, struct arena *arena,
                         struct choice_rooms *rooms, struct choice *out_choice,
                         struct error *error);

#endif
