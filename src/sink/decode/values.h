/* decode/values: the values of a row, appended to columns in schema order, and what is wrong with
 * them.
 *
 * Where a value cannot be made a null is appended in its place, so that the columns stay in step
 * while the search for more hits goes on; the caller takes a row with hits back off the columns. */
#ifndef LHBOX_SINK_DECODE_VALUES_H
#define LHBOX_SINK_DECODE_VALUES_H

#include "sink/decode/variant.h"

/* The row at hand. */
struct decode_row {
    struct arena *arena; /* of the plan's hash tables */
    struct decode_tree *tree;
    struct decode_hits *hits;
    struct variant_builder *variant;
    u64 bad; /* values that could not be made */
    bool out_of_memory;
};

/* A column's or field's value: what is there, or its default, or null. False: stop, because
 * memory is out or the hits are full. */
MUST_USE bool decode_member(struct decode_row *row, struct decode_plan *plan, struct column *column,
                            struct decode_at at);

#endif
