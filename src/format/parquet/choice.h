/* choice: whether a column chunk gets a dictionary, and whether its pages are compressed.
 *
 * A sample of the values, in a few runs spread over the chunk, says how many distinct ones there
 * must be and what the codec makes of them. A dictionary is built where it promises to be smaller
 * once both forms are compressed, and kept where it is. What the codec saves little of is stored as
 * it is. At zstd's fastest level, values in which the sample shows next to nothing that repeats are
 * coded without a search for it, if their first page is as small so. The same values always get
 * the same choice. Private to parquet. */
#ifndef LHBOX_FORMAT_PARQUET_CHOICE_H
#define LHBOX_FORMAT_PARQUET_CHOICE_H

#include "base/error.h"
#include "format/compress.h"
#include "format/parquet/dictionary.h"

enum choice_search {
    CHOICE_SEARCHED,
    CHOICE_TRIED, /* both ways, of which the first page shows the better one */
    CHOICE_CODED, /* compress_append_coded */
};

struct choice {
    bool has_dictionary;
    struct dictionary dictionary;
    bool compressed;
    enum choice_search search; /* when compressed */
};

struct choice_rooms {
    struct dictionary_rooms dictionary;
    struct room hashes;
    buf *body;   /* scratch */
    buf *packed; /* scratch */
};

/* `bytes_max`: of the dictionary page. Fails with LIMIT. */
MUST_USE err choice_make(const struct values *values, i64 bytes_max, struct compressor *compressor,
                         struct arena *arena, struct choice_rooms *rooms, struct choice *out_choice,
                         struct error *error);

#endif
