/* decode/variant: any JSON value to a value of a variant column.
 *
 * Numbers that are integral and fit 64 bits become integers, others decimals of up to 38 digits
 * where those are exact, else doubles; all else is kept as it is. A number past the largest double
 * is out_of_range, a string with half a surrogate pair bad_unicode. */
#ifndef LHBOX_SINK_DECODE_VARIANT_H
#define LHBOX_SINK_DECODE_VARIANT_H

#include "format/variant.h"
#include "sink/decode/hits.h"

/* Appends the value at `node` to a variant column; what is wrong with it are hits, and then what
 * was appended is to be taken back. False at the arena's limit. */
MUST_USE bool decode_variant_append(struct variant_builder *builder, struct decode_hits *hits,
                                    struct decode_tree *tree, const struct decode_plan *plan,
                                    struct column *column, u32 node);
/* Appends the captured members (decode/names) as one object, or null when there are none and null
 * may stand. */
MUST_USE bool decode_variant_capture(struct variant_builder *builder, struct decode_hits *hits,
                                     struct decode_tree *tree, const struct decode_plan *plan,
                                     struct column *column);

#endif
