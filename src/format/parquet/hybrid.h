/* hybrid: runs and bit-packed groups mixed, for levels and for dictionary indices.
 *
 * Spec: Parquet Encodings.md, "Run Length Encoding / Bit-Packing Hybrid". Appends to a buffer;
 * whether it had room is asked once at the end (buf_ok). Private to parquet. */
#ifndef LHBOX_FORMAT_PARQUET_HYBRID_H
#define LHBOX_FORMAT_PARQUET_HYBRID_H

#include "base/buf.h"

/* Bits that hold 0..max. */
i32 hybrid_width(u32 max);
/* Append the values in the hybrid encoding, without a length in front. */
void hybrid_put_u8(buf *out, const u8 *values, i64 count, i32 width);
void hybrid_put_u32(buf *out, const u32 *values, i64 count, i32 width);
/* `count` times the same. */
void hybrid_put_run(buf *out, u32 value, i64 count, i32 width);

#endif
