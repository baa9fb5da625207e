/* parquet: writes one Parquet file from columns.
 *
 * Format 2.x with what every reader takes: data page v1, PLAIN and RLE_DICTIONARY (others where
 * they are asked for), RLE levels, field ids on every node, REQUIRED where the schema says so,
 * logical types and (where they exist) converted types, full statistics, and bloom filters where
 * they are asked for. Three-level lists named list/element, maps key_value/key/value. Spec: Apache
 * Parquet format, parquet.thrift, LogicalTypes.md, Encodings.md, BloomFilter.md; Iceberg spec
 * appendix A.
 *
 * A writer takes row groups one at a time and hands finished bytes to the caller's sink in order,
 * so that memory is bound by a row group. Owned by one roll worker. Fails with LIMIT (arena) or
 * whatever the sink answers. */
#ifndef LHBOX_FORMAT_PARQUET_PARQUET_H
#define LHBOX_FORMAT_PARQUET_PARQUET_H

#include "base/error.h"
#include "format/column.h"
#include "format/compress.h"

/* Takes the next bytes of the file. The slice is the caller's only during the call. */
typedef err (*parquet_output)(void *context, str bytes, struct error *error);

/* How much parquet_column_stats tell. Leaves inside lists and maps never tell more than NONE. */
enum parquet_metrics {
    PARQUET_METRICS_NONE,   /* the size alone */
    PARQUET_METRICS_COUNTS, /* and how many values, nulls and NaNs */
    PARQUET_METRICS_BOUNDS, /* and least and greatest value */
};

enum { PARQUET_BOUND_WHOLE = 0, PARQUET_BOUND_UNITS = 16 };

/* What values without a dictionary are written in. */
enum parquet_encodings {
    PARQUET_ENCODINGS_COMPATIBLE, /* PLAIN, which every reader takes */
    /* Where it is smaller DELTA_BINARY_PACKED for INT32 and INT64, BYTE_STREAM_SPLIT for FLOAT and
     * DOUBLE, else PLAIN. */
    PARQUET_ENCODINGS_COMPACT,
};

struct parquet_column_options {
    i32 field_id;
    enum parquet_metrics metrics;
    i64 bound_units_max; /* code points of strings, bytes of binaries; or PARQUET_BOUND_WHOLE */
    bool bloom;          /* never of booleans, binary and fixed */
    double bloom_fpp;    /* between 0 and 1: how often it may be wrong about what is not there */
};

struct crew;
struct parquet_kit;

struct parquet_options {
    enum compress_codec codec; /* not DEFLATE */
    i32 compress_level;        /* zstd 1..19, gzip 0..9 */
    i64 row_group_rows_max;
    i64 row_group_bytes_max; /* of columns in memory, when the caller should give them */
    i64 page_bytes_max;      /* of values before compression */
    i64 page_rows_max;
    i64 dictionary_bytes_max; /* a column chunk has no dictionary past this */
    enum parquet_encodings encodings;
    i64 bloom_bytes_max; /* of one filter */
    const char *created_by;
    /* In the order in which a walk through the schema meets the leaves; those that are not among
     * them have bounds of PARQUET_BOUND_UNITS and no filter. */
    const struct parquet_column_options *columns;
    size_t column_count;
    struct parquet_kit *kit; /* NULL: one thread, and memory in the writer's arena */
};
struct parquet_options parquet_options_default(void);

/* What writers work with, one after the other: a compressor and scratch memory for each worker of
 * the crew, kept from file to file. The crew (NULL: nobody) helps to encode the columns of a row
 * group; the file is the same. Of each worker `bytes_max`; the kit itself is in the arena. Fails
 * with LIMIT. */
MUST_USE err parquet_kit_open(struct arena *arena, struct crew *crew, size_t bytes_max,
                              struct parquet_kit **out_kit, struct error *error);
void parquet_kit_close(struct parquet_kit *kit); /* NULL is allowed */
void parquet_kit_close_at(struct parquet_kit **kit);
#define AUTO_PARQUET_KIT __attribute__((cleanup(parquet_kit_close_at)))

/* What the manifest wants to know of one leaf column, over the whole file. Bounds are Iceberg
 * single-value bytes (spec appendix D), strings and binaries cut as the column's options say with
 * the upper bound raised; data NULL: none. */
struct parquet_column_stats {
    i32 field_id;
    i64 compressed_bytes;
    i64 value_count; /* nulls, and NaNs, included; -1: not told */
    i64 null_count;  /* -1: not told */
    i64 nan_count;   /* -1: not told, or not a float type */
    str lower;
    str upper;
};

struct parquet_file_stats {
    i64 rows;
    i64 file_bytes;
    /* In schema order, leaves only, `unknown` and variants left out. */
    struct parquet_column_stats *columns;
    size_t column_count;
    i64 *split_offsets; /* start of each row group */
    size_t split_count;
};

struct parquet_writer;

/* `schema_json` (may be empty) goes into the footer under the key iceberg.schema. */
MUST_USE err parquet_open(struct arena *arena, const struct field *fields, size_t field_count,
                          const struct parquet_options *options, str schema_json,
                          parquet_output output, void *output_context,
                          struct parquet_writer **out_writer, struct error *error);
/* Writes one row group of all values in `columns` (one per field, equal counts). The columns may be
 * truncated afterwards. */
MUST_USE err parquet_row_group(struct parquet_writer *writer, const struct column *columns,
                               struct error *error);
/* The footer. The stats live in the arena given at open. */
MUST_USE err parquet_finish(struct parquet_writer *writer, struct parquet_file_stats *out_stats,
                            struct error *error);

#endif
