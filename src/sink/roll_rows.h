/* roll_rows: the lines of a plan's batches, judged: rows kept or written, rejects recorded.
 * Private to sink/roll*.c.
 *
 * One pass decodes every line of every batch once. Without partitions the rows go to the writer as
 * they come. With them the pass only learns which line belongs to which partition value, and each
 * value's lines are decoded again into its file: twice the decoding, and memory for one file at a
 * time. */
#ifndef LHBOX_SINK_ROLL_ROWS_H
#define LHBOX_SINK_ROLL_ROWS_H

#include "base/map.h"
#include "sink/decode.h"
#include "sink/roll_write.h"

enum {
    ROWS_PARTITIONS_MAX =
        2000, /* of one batch; rows of the smallest values past that are rejected */
    ROWS_PARTITIONS_FULL = 500,      /* a plan takes no further batch past this */
    ROWS_BATCH_BYTES_MAX = 64 * MIB, /* the most that a body may be made to have */
    ROWS_RECENT_DATA_MAX = 1024,     /* bytes of a row shown with a recent reject */
};

struct rows_group {
    const struct partition_value *values;
    i64 rows;
    bool refused;
};

struct rows_line {
    const char *data;
    u32 size;
    u32 batch;
    u32 group;
};

struct rows_pass {
    struct roll *roll;
    const struct roll_plan *plan;
    const str *segments; /* one per batch; NULL: they come by the stream, one at a time */
    struct roll_stream *stream;
    struct schema schema;
    struct partition_spec spec;
    struct decode_settings settings;
    struct decoder *decoder;
    struct decode_result result; /* of the line at hand */
    struct column *columns;
    size_t column_count;
    struct roll_writer *writer; /* NULL: rejects only */
    struct arena *scratch;      /* columns, groups, lines: of the whole pass */
    struct arena *batch_scratch;
    struct plan_counts counts;
    buf recent[PLAN_RECENT_MAX]; /* a ring: the next one goes to recent_next */
    i64 recent_next;
    bool *unreadable; /* one per batch */
    str unwritable;   /* why the file cannot hold the plan's one batch; data NULL: it can */
    buf rejects;      /* of the batch under way */
    bool foreseen;    /* the columns have room for the batches to come */
    bool mends;       /* the plan is committed: this verdict is the last one */
    bool told;        /* the ledger knows of the try, whatever happens */
    bool restarted;   /* rejects files may have been put already */
    /* partitions */
    bool partitioned;
    bool limited; /* groups were refused already */
    struct map *group_places;
    const struct column **sources; /* one per field of the spec; NULL: void */
    struct rows_group *groups;
    size_t group_count;
    size_t group_capacity;
    struct rows_line *lines;
    size_t line_count;
    size_t line_capacity;
};

/* What the pass over all batches came to. */
enum rows_end {
    ROWS_DONE,
    ROWS_RESTART, /* a batch turned out unreadable, or has too many partitions: again, knowing it */
    ROWS_DAMAGED, /* a batch that came by the stream does not verify: nothing was judged */
    ROWS_SPLIT,   /* too many partitions for one roll: *out_fits batches would do */
};

/* Judges all batches and writes their rejects files; unpartitioned rows are handed to the writer.
 */
MUST_USE err rows_run(struct rows_pass *pass, enum rows_end *out_end, size_t *out_fits,
                      struct error *error);
/* One batch's lines; its rejects stay in pass->rejects. */
MUST_USE err rows_batch(struct rows_pass *pass, size_t batch, enum rows_end *out_end,
                        struct error *error);
/* Partitioned: the files, one per value that was not refused. */
MUST_USE err rows_write_groups(struct rows_pass *pass, struct error *error);

/* ---- roll_partition ---- */

MUST_USE err rows_open_partitions(struct rows_pass *pass, struct error *error);
/* The group of the last row of the columns. */
MUST_USE err rows_find_group(struct rows_pass *pass, u32 *out_group, struct error *error);
MUST_USE err rows_keep_line(struct rows_pass *pass, str line, size_t batch, u32 group,
                            struct error *error);
/* Refuses the smallest groups past the limit. */
MUST_USE err rows_refuse_smallest(struct rows_pass *pass, struct error *error);

#endif
