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
    /* A hash table of the fields' keys: one more than the index, 0 where there is none. */
    u16 *slots;
    u32 slot_shift;
    /* The fields that were seen in front last and the time before, and behind this one. */
    struct decode_step *first[2];
    struct decode_step *next[2];
    i32 scale; /* of a decimal, and how many digits may stand before its point */
    i32 whole;
    bool nanoseconds; /* of a timestamp; and whether it must have a zone */
    bool zoned;
    u8 date[16]; /* the text that was seen last, and its days */
    i64 days;
};

/* Where the search for a name begins. Schemas make the table, so that no row can crowd it. At least
 * eight bytes can be read at `name`. */
static inline u32 decode_step_slot(const struct decode_step *step, const u8 *name, u32 size)
{
    u64 first = num_load_u64(name);
    u64 last = size < 8 ? 0 : num_load_u64(name + size - 8);
    first = size < 8 ? first & ((UINT64_C(1) << 8 * size) - 1) : first;
    u64 hash = (first ^ (last << 23 | last >> 41) ^ size) * UINT64_C(0x9E3779B97F4A7C15);
    return (u32)(hash >> step->slot_shift);
}

/* `columns`: those of the root's fields. False at the arena's limit. */
MUST_USE bool decode_step_make_root(struct arena *arena, const struct decode_plan *root,
                                    struct column *columns, struct decode_step *out_step);

#endif
