#include "format/varint.h"

enum { VARINT_SIZE_MAX = 10 };

void varint_put(buf *out, u64 value)
{
    u8 bytes[VARINT_SIZE_MAX];
    size_t size = 0;
    while (value >= 0x80) {
        bytes[size++] = (u8)(value | 0x80);
        value >>= 7;
    }
    bytes[size++] = (u8)value;
    buf_append_bytes(out, bytes, size);
}

void varint_put_zigzag(buf *out, i64 value)
{
    varint_put(out, ((u64)value << 1) ^ (value < 0 ? UINT64_MAX : 0));
}
