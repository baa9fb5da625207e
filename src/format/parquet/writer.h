/* writer: what a Parquet writer remembers, shared by the parts that write chunks and the footer.
 *
 * A chunk is encoded, by any thread of a kit, into memory of that thread; it is put when its turn
 * in the schema's order has come, by one thread at a time, and its memory is used again. What the
 * footer needs is kept to the end in the writer's arena. Private to parquet. */
#ifndef LHBOX_FORMAT_PARQUET_WRITER_H
#define LHBOX_FORMAT_PARQUET_WRITER_H

#include "base/crew.h"
#include "format/parquet/bloom.h"
#include "format/parquet/choice.h"
#include "format/parquet/levels.h"
#include "format/parquet/parquet.h"
#include "format/parquet/statistics.h"

#include <stdatomic.h>

/* Wider fixed values have no statistics in the file: they would bloat its footer. */
enum { CHUNK_STATISTICS_WIDTH_MAX = 256 };

/* Where a serialised index lies, first in its buffer and then in the file. */
struct index_place {
    i64 at;
    i64 size; /* 0: there is none */
};

struct chunk_meta {
    i64 start; /* of the first page */
    i64 data_page_at;
    bool has_dictionary;
    enum page_encoding encoding; /* of its data pages */
    enum compress_codec codec;
    i64 page_count;  /* data pages */
    i64 value_count; /* slots: nulls and empty lists count */
    i64 null_count;
    i64 nan_count;
    i64 uncompressed_bytes; /* both with page headers */
    i64 compressed_bytes;
    struct kept_bounds kept;     /* for the file's own statistics */
    struct kept_bounds manifest; /* for the manifest */
    struct index_place bloom;
    struct index_place column_index;
    struct index_place offset_index;
};

struct row_group_meta {
    i64 start;
    i64 rows;
    struct chunk_meta *chunks; /* one per leaf */
};

struct page {
    i64 slot_from;
    i64 slot_to;
    i64 value_from;
    i64 value_to;
    i64 row_from;
    i64 offset; /* of the chunk */
    str bytes;  /* with the header */
    struct kept_bounds kept;
};

/* What a thread encodes with, used again for every column chunk. */
struct encoder {
    struct arena *arena;
    struct compressor compressor;
    struct arena *output; /* the chunks that were encoded here and are not put yet */
    atomic_size_t held;   /* so many */
    struct level_rooms levels;
    struct value_rooms values;
    struct choice_rooms choice;
    struct room stamps;
    struct room selection;
    buf body;   /* of a page, as encoded */
    buf packed; /* and compressed */
    buf header;
};

struct parquet_kit {
    struct crew *crew;
    struct encoder *encoders; /* one per worker of the crew */
    size_t encoder_count;
    struct room done; /* both: for each chunk of a row group, in the first encoder's arena */
    struct room ended;
};

/* A chunk that is encoded, in the output of its encoder. Its offsets begin at the chunk. */
struct chunk_done {
    struct encoder *encoder;
    err result;
    struct error error; /* unless it is OK */
    struct chunk_meta meta;
    str dictionary_page;
    buf pages; /* of struct page */
    buf bloom;
};

struct parquet_writer {
    struct arena *arena;
    const struct field *fields;
    size_t field_count;
    struct parquet_options options;
    str schema_json;
    parquet_output output;
    void *output_context;

    struct leaf *leaves;
    struct parquet_column_options *columns; /* one per leaf */
    size_t leaf_count;
    i64 offset; /* bytes given to the output */
    struct row_group_meta *row_groups;
    size_t row_group_count;
    size_t row_group_capacity;
    i64 rows;
    buf blooms;
    buf column_indexes;
    buf offset_indexes;
    struct parquet_kit *kit;
    struct parquet_kit own; /* the kit, where none was given */
};

/* Hands bytes to the output and counts them. */
MUST_USE err parquet_put(struct parquet_writer *writer, str bytes, struct error *error);

/* In `arena`, without a compressor. */
void encoder_init(struct encoder *encoder, struct arena *arena);
/* Encodes a column chunk: its dictionary page, if any, and its data pages. Touches of the writer
 * only what does not change. Tells an error in *out_done. */
MUST_USE err chunk_encode(const struct parquet_writer *writer, struct encoder *encoder,
                          size_t leaf_index, const struct column *columns,
                          struct chunk_done *out_done);
/* Hands its bytes to the output, and keeps what the footer needs. */
MUST_USE err chunk_put(struct parquet_writer *writer, size_t leaf_index,
                       const struct chunk_done *done, struct chunk_meta *out_meta,
                       struct error *error);
bool chunk_has_statistics(const struct leaf *leaf);

/* The bloom filters, the page indexes and the footer, with the length and PAR1 behind it. */
MUST_USE err footer_write(struct parquet_writer *writer, struct error *error);

#endif
