#include "format/byte_stream_split.h"

#include "base/assert.h"

static void split_put_u32(u8 *at, const u8 *numbers, i64 count)
{
    for (i64 i = 0; i < count; i++) {
        u32 value = num_load_u32(numbers + i * 4);
        for (i64 b = 0; b < 4; b++) {
            at[b * count + i] = (u8)(value >> 8 * b);
        }
    }
}

static void split_put_u64(u8 *at, const u8 *numbers, i64 count)
{
    for (i64 i = 0; i < count; i++) {
        u64 value = num_load_u64(numbers + i * 8);
        for (i64 b = 0; b < 8; b++) {
            at[b * count + i] = (u8)(value >> 8 * b);
        }
    }
}

void byte_stream_split_put(buf *out, const u8 *numbers, size_t width, i64 count)
{
    assert(width == sizeof(u32) || width == sizeof(u64));
    assert(count >= 0);
    size_t size = (size_t)count * width;
    u8 *at = size > 0 ? (u8 *)buf_reserve(out, size) : NULL;
    if (at == NULL) {
        return;
    }
    if (width == sizeof(u32)) {
        split_put_u32(at, numbers, count);
    } else {
        split_put_u64(at, numbers, count);
    }
    buf_commit(out, size);
}
