/* writer: what a Parquet writer remembers, shared by the parts that write chunks and the footer.
 *
 * Everything is in the arena given at parquet_open. Scratch is used again for every column chunk;
 * what the footer needs is kept to the end. Private to parquet. */
#ifndef LHBOX_FORMAT_PARQUET_WRITER_H
#define LHBOX_FORMAT_PARQUET_WRITER_H

#include "format/parquet/bloom.h"
#include "format/parquet/choice.h"
#include "format/parquet/levels.h"
#include "format/parquet/parquet.h"
#include "format/parquet/statistics.h"

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

struct scratch {
    struct level_rooms levels;
    struct value_rooms values;
    struct choice_rooms choice;
    struct room stamps;
    struct room selection;
    buf pages;  /* of struct page */
    buf body;   /* of a page, as encoded */
    buf packed; /* and compressed */
    buf header;
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
    struct scratch scratch;
};

/* Hands bytes to the output and counts them. */
MUST_USE err parquet_put(struct parquet_writer *writer, str bytes, struct error *error);

/* One column chunk: its dictionary page, if any, and its data pages. */
MUST_USE err chunk_write(struct parquet_writer *writer, size_t leaf_index,
                         const struct column *columns, struct compressor *compressor,
                         struct chunk_meta *out_meta, struct error *error);

/* The bloom filters, the page indexes and the footer, with the length and PAR1 behind it. */
MUST_USE err footer_write(struct parquet_writer *writer, struct error *error);

#endif
