/* delta: DELTA_BINARY_PACKED, each integer as its difference from the one before.
 *
 * Blocks of 128 in four miniblocks, each with as many bits as its greatest difference from the
 * block's least one takes: what Java's writers have, so that every reader has met it. Differences
 * wrap at the width of the numbers, so that they never take more bits than these. Spec: Parquet
 * Encodings.md. Appends to a buffer; whether it had room is asked once at the end (buf_ok). Pure;
 * any thread. */
#ifndef LHBOX_FORMAT_DELTA_H
#define LHBOX_FORMAT_DELTA_H

#include "base/buf.h"

/* `width`: bytes of a number, 4 or 8. */
void delta_put(buf *out, const u8 *numbers, size_t width, i64 count);

#endif
