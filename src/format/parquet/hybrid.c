#include "format/parquet/hybrid.h"

#include "base/assert.h"
#include "format/varint.h"

enum { HYBRID_GROUP = 8, HYBRID_WIDTH_MAX = 32 };

i32 hybrid_width(u32 max)
{
    return max == 0 ? 0 : 32 - __builtin_clz(max);
}

void hybrid_put_run(buf *out, u32 value, i64 count, i32 width)
{
    if (count == 0) {
        return;
    }
    varint_put(out, (u64)count << 1);
    u8 bytes[4];
    num_store_u32(bytes, value);
    buf_append_bytes(out, bytes, (size_t)(width + 7) / 8);
}

/* The encoders for bytes and for 32-bit values are this one, made for a constant `size`. */
#define HYBRID_INLINE inline __attribute__((always_inline))

static HYBRID_INLINE u32 hybrid_load(const void *values, size_t size, i64 index)
{
    return size == 1 ? ((const u8 *)values)[index] : ((const u32 *)values)[index];
}

/* Values [from, to) in groups of eight, the last one filled up with zeros. */
static HYBRID_INLINE void hybrid_put_packed(buf *out, const void *values, size_t size, i64 from,
                                            i64 to, i32 width)
{
    i64 groups = (to - from + HYBRID_GROUP - 1) / HYBRID_GROUP;
    if (groups == 0) {
        return;
    }
    varint_put(out, (u64)groups << 1 | 1);
    size_t bytes = (size_t)groups * (size_t)width;
    u8 *at = (u8 *)buf_reserve(out, bytes);
    if (at == NULL) {
        return;
    }
    const u8 *end = at + bytes;
    u64 bits = 0;
    i32 bit_count = 0;
    for (i64 i = from; i < to; i++) {
        bits |= (u64)hybrid_load(values, size, i) << bit_count;
        bit_count += width;
        if (bit_count >= 32) {
            num_store_u32(at, (u32)bits);
            at += sizeof(u32);
            bits >>= 32;
            bit_count -= 32;
        }
    }
    while (at < end) {
        *at++ = (u8)bits;
        bits >>= 8;
    }
    buf_commit(out, bytes);
}

static HYBRID_INLINE i64 hybrid_run_end(const void *values, size_t size, i64 from, i64 count)
{
    u32 value = hybrid_load(values, size, from);
    i64 to = from + 1;
    while (to < count && hybrid_load(values, size, to) == value) {
        to++;
    }
    return to;
}

/* Looks for a run of eight or more at every group's start: each value is looked at twice at most.
 */
static HYBRID_INLINE void hybrid_put(buf *out, const void *values, size_t size, i64 count,
                                     i32 width)
{
    assert(width <= HYBRID_WIDTH_MAX);
    i64 packed_from = 0;
    i64 at = 0;
    while (at < count) {
        i64 end = hybrid_run_end(values, size, at, count);
        if (end - at >= HYBRID_GROUP) {
            hybrid_put_packed(out, values, size, packed_from, at, width);
            hybrid_put_run(out, hybrid_load(values, size, at), end - at, width);
            at = end;
            packed_from = end;
        } else {
            at = num_min_i64(at + HYBRID_GROUP, count);
        }
    }
    hybrid_put_packed(out, values, size, packed_from, count, width);
}

void hybrid_put_u8(buf *out, const u8 *values, i64 count, i32 width)
{
    hybrid_put(out, values, sizeof(u8), count, width);
}

void hybrid_put_u32(buf *out, const u32 *values, i64 count, i32 width)
{
    hybrid_put(out, values, sizeof(u32), count, width);
}
