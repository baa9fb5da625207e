/* decode/step: a schema as steps that put values straight into its columns.
 *
 * One step a field, with all that the hot path asks of it at hand: its column, what it takes, its
 * name as it stands in a line, and which field came after it the last two times. Lives in the
 * decoder's arena, beside the plan. */
#ifndef LHBOX_SINK_DECODE_STEP_H
#define LHBOX_SINK_DECODE_STEP_H

#include "format/json_scan.h"
#include "sink/decode/plan.h"

struct decode_step {
    struct column *column;
    enum type_kind kind;
    bool nullable; /* null may stand here, and absent means null */
    bool own;      /* a column that the sink writes: found by no name */
    struct scan_key key;
    const struct decode_plan *plan;
    /* Struct: its fields. List: the element. Map: key and value. */
    struct decode_step *fields;
    u32 field_count;
    u32 sent_count; /* of the fields, those that are not the sink's own */
    /* The fields that were seen in front last and the time before, and behind this one. */
    struct decode_step *first[2];
    struct decode_step *next[2];
    const u8 *end; /* of the value that was taken last */
    i32 scale;     /* of a decimal, and how many digits may stand before its point */
    i32 whole;
    bool nanoseconds; /* of a timestamp; and whether it must have a zone */
    bool zoned;
    u8 date[16]; /* the text that was seen last, and its days */
    i64 days;
};

/* `columns`: those of the root's fields. False at the arena's limit. */
MUST_USE bool decode_step_make_root(struct arena *arena, const struct decode_plan *root,
                                    struct column *columns, struct decode_step *out_step);

#endif
