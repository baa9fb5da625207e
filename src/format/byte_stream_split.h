/* byte_stream_split: BYTE_STREAM_SPLIT, all first bytes of the numbers, then all second ones, and
 * so on: signs and exponents that are alike stand together.
 *
 * Spec: Parquet Encodings.md. Appends to a buffer; whether it had room is asked once at the end
 * (buf_ok). Pure; any thread. */
#ifndef LHBOX_FORMAT_BYTE_STREAM_SPLIT_H
#define LHBOX_FORMAT_BYTE_STREAM_SPLIT_H

#include "base/buf.h"

/* `width`: bytes of a number, 4 or 8. */
void byte_stream_split_put(buf *out, const u8 *numbers, size_t width, i64 count);

#endif
