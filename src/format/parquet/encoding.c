#include "format/parquet/encoding.h"

#include "base/assert.h"
#include "format/byte_stream_split.h"
#include "format/delta.h"

enum page_encoding encoding_compact(enum leaf_physical physical)
{
    switch (physical) {
    case LEAF_INT32:
    case LEAF_INT64:
        return ENCODING_DELTA_BINARY_PACKED;
    case LEAF_FLOAT:
    case LEAF_DOUBLE:
        return ENCODING_BYTE_STREAM_SPLIT;
    case LEAF_BOOLEAN:
    case LEAF_BYTE_ARRAY:
    case LEAF_FIXED:
        return ENCODING_PLAIN;
    }
    return ENCODING_PLAIN;
}

void encoding_put(buf *out, enum page_encoding encoding, const struct values *values, i64 from,
                  i64 to)
{
    if (encoding == ENCODING_PLAIN) {
        values_put_plain(out, values, from, to);
        return;
    }
    assert(encoding == encoding_compact(values->physical));
    assert(0 <= from && from <= to && to <= values->count);
    const u8 *numbers = values->data + (size_t)from * values->width;
    if (encoding == ENCODING_DELTA_BINARY_PACKED) {
        delta_put(out, numbers, values->width, to - from);
    } else {
        byte_stream_split_put(out, numbers, values->width, to - from);
    }
}
