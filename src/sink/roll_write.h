/* roll_write: row groups to data files in the table's folder. Private to sink/roll*.c.
 *
 * One file at a time: rows come as columns, leave as a finished file with its statistics. A file
 * is put whole, and waits in the roll's group to be durable with the others. Memory is bounded by
 * one file's bytes and one row group. */
#ifndef LHBOX_SINK_ROLL_WRITE_H
#define LHBOX_SINK_ROLL_WRITE_H

#include "sink/roll_steps.h"

enum { ROLL_FILES_MAX = 2000 };

struct roll_writer {
    struct roll *roll;
    const struct schema *schema;
    const struct partition_spec *spec;
    struct parquet_options options;
    str schema_json;
    const struct metadata *metadata; /* the table's, while the writer is */
    struct arena *scratch;           /* of the file under way; reset after it */
    struct parquet_writer *parquet;  /* NULL: no file is under way */
    str *pieces;
    size_t piece_count;
    char *piece_end;   /* where the last piece goes on */
    size_t piece_room; /* left in the last piece */
    i64 bytes;
    struct data_file *files; /* finished ones, in the roll's arena */
    size_t file_count;
};

/* `scratch` is the writer's alone. */
MUST_USE err roll_writer_init(struct roll_writer *writer, struct roll *roll,
                              const struct table *table, const struct schema *schema,
                              const struct partition_spec *spec, struct arena *scratch,
                              struct error *error);
/* Is it time to hand over what the columns hold? */
bool roll_writer_wants(const struct roll_writer *writer, const struct column *columns,
                       size_t count);
/* One row group; the first begins a file. */
/* The columns hold the rows of `done` of the `total` bytes that are to come: they get room for the
 * rest, or for what a row group takes. */
MUST_USE err roll_writer_foresee(const struct roll_writer *writer, struct column *columns,
                                 size_t count, i64 done, i64 total, struct error *error);
MUST_USE err roll_writer_rows(struct roll_writer *writer, const struct column *columns,
                              struct error *error);
/* The file is written, and durable when the roll's group ends. `values`: its partition, one per
 * field of the spec. Without rows: nothing.
 */
MUST_USE err roll_writer_end(struct roll_writer *writer, const struct partition_value *values,
                             struct error *error);

#endif
