#include "format/delta.h"

#include "base/assert.h"
#include "format/varint.h"

enum {
    DELTA_BLOCK = 128,
    DELTA_MINIBLOCKS = 4,
    DELTA_MINIBLOCK = DELTA_BLOCK / DELTA_MINIBLOCKS,
    DELTA_BITS_MAX = 64,
    /* The widths, and what is behind them. */
    DELTA_BLOCK_BYTES_MAX = DELTA_MINIBLOCKS + DELTA_BLOCK * DELTA_BITS_MAX / 8,
};

/* The loops over the numbers are made twice, for four and for eight bytes. */
#define DELTA_INLINE inline __attribute__((always_inline))

struct delta_block {
    i64 least;
    u64 deltas[DELTA_BLOCK]; /* what each has more; 0 where there are none left */
};

/* ---- packing ---- */

static i32 bits_of(u64 number)
{
    return number == 0 ? 0 : DELTA_BITS_MAX - __builtin_clzll(number);
}

/* Returns the end. A miniblock is a multiple of 32 bits. */
static u8 *miniblock_put(u8 *at, const u64 *deltas, i32 width)
{
    u64 bits = 0;
    i32 bit_count = 0;
    for (i64 i = 0; i < DELTA_MINIBLOCK; i++) {
        bits |= deltas[i] << bit_count;
        bit_count += width;
        if (bit_count >= DELTA_BITS_MAX) {
            num_store_u64(at, bits);
            at += sizeof(u64);
            bit_count -= DELTA_BITS_MAX;
            bits = bit_count == 0 ? 0 : deltas[i] >> (width - bit_count);
        }
    }
    if (bit_count > 0) {
        num_store_u32(at, (u32)bits);
        at += sizeof(u32);
    }
    return at;
}

static void block_put(buf *out, const struct delta_block *block)
{
    varint_put_zigzag(out, block->least);
    u8 *start = (u8 *)buf_reserve(out, DELTA_BLOCK_BYTES_MAX);
    if (start == NULL) {
        return;
    }
    u8 *at = start + DELTA_MINIBLOCKS;
    for (i64 i = 0; i < DELTA_MINIBLOCKS; i++) {
        const u64 *deltas = block->deltas + i * DELTA_MINIBLOCK;
        u64 all = 0;
        for (i64 d = 0; d < DELTA_MINIBLOCK; d++) {
            all |= deltas[d];
        }
        i32 width = bits_of(all);
        start[i] = (u8)width;
        at = width == 0 ? at : miniblock_put(at, deltas, width);
    }
    buf_commit(out, (size_t)(at - start));
}

/* ---- differences ---- */

static DELTA_INLINE u64 number_load(const u8 *numbers, size_t width, i64 index)
{
    return width == sizeof(u32) ? num_load_u32(numbers + index * 4)
                                : num_load_u64(numbers + index * 8);
}

static DELTA_INLINE i64 number_signed(u64 number, size_t width)
{
    return width == sizeof(u32) ? (i32)(u32)number : (i64)number;
}

/* Of the numbers [from, from + count) to the ones before them. What is added and subtracted is
 * unsigned, and may wrap. */
static DELTA_INLINE void block_fill(struct delta_block *block, const u8 *numbers, size_t width,
                                    i64 from, i64 count)
{
    *block = (struct delta_block){.least = INT64_MAX};
    u64 before = number_load(numbers, width, from - 1);
    for (i64 i = 0; i < count; i++) {
        u64 number = number_load(numbers, width, from + i);
        i64 delta = number_signed(number - before, width);
        block->least = num_min_i64(block->least, delta);
        block->deltas[i] = (u64)delta;
        before = number;
    }
    for (i64 i = 0; i < count; i++) {
        block->deltas[i] -= (u64)block->least;
    }
}

static DELTA_INLINE void blocks_put(buf *out, const u8 *numbers, size_t width, i64 count)
{
    struct delta_block block;
    for (i64 at = 1; at < count; at += DELTA_BLOCK) {
        block_fill(&block, numbers, width, at, num_min_i64(count - at, DELTA_BLOCK));
        block_put(out, &block);
    }
}

void delta_put(buf *out, const u8 *numbers, size_t width, i64 count)
{
    assert(width == sizeof(u32) || width == sizeof(u64));
    assert(count >= 0);
    u64 first = count > 0 ? number_load(numbers, width, 0) : 0;
    varint_put(out, DELTA_BLOCK);
    varint_put(out, DELTA_MINIBLOCKS);
    varint_put(out, (u64)count);
    varint_put_zigzag(out, number_signed(first, width));
    if (width == sizeof(u32)) {
        blocks_put(out, numbers, sizeof(u32), count);
    } else {
        blocks_put(out, numbers, sizeof(u64), count);
    }
}
