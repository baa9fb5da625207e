/* decode/value: values that are in columns: appended, copied, compared as a map compares its keys.
 *
 * Two values are equal when their bytes are: a float's zeros differ, its NaN equals itself.
 * Pure; any thread. */
#ifndef LHBOX_SINK_DECODE_VALUE_H
#define LHBOX_SINK_DECODE_VALUE_H

#include "format/column.h"
#include "sink/decode/scalar.h"

/* False at the arena's limit. */
MUST_USE bool decode_value_append(struct column *column, const struct decode_scalar *value);
/* Appends value `index` of `from`, a column of the same type. False at the arena's limit. */
MUST_USE bool decode_value_copy(struct column *to, const struct column *from, i64 index);

u64 decode_value_hash(const struct column *column, i64 index);
bool decode_value_equal(const struct column *column, i64 a, i64 b);

#endif
