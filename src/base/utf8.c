#include "base/utf8.h"

#include "base/assert.h"

static bool in_range(u8 byte, u8 low, u8 high)
{
    return byte >= low && byte <= high;
}

/* The size of the well-formed sequence at `bytes` whose first byte is no ASCII, or 0. The cases are
 * the rows of table 3-7 of the Unicode standard. */
static size_t utf8_sequence(const u8 *bytes, size_t left)
{
    u8 first = bytes[0];
    if (in_range(first, 0xc2, 0xdf)) {
        return left >= 2 && in_range(bytes[1], 0x80, 0xbf) ? 2 : 0;
    }
    if (in_range(first, 0xe0, 0xef)) {
        u8 low = first == 0xe0 ? 0xa0 : 0x80;
        u8 high = first == 0xed ? 0x9f : 0xbf;
        bool good = left >= 3 && in_range(bytes[1], low, high) && in_range(bytes[2], 0x80, 0xbf);
        return good ? 3 : 0;
    }
    if (in_range(first, 0xf0, 0xf4)) {
        u8 low = first == 0xf0 ? 0x90 : 0x80;
        u8 high = first == 0xf4 ? 0x8f : 0xbf;
        bool good = left >= 4 && in_range(bytes[1], low, high) && in_range(bytes[2], 0x80, 0xbf) &&
                    in_range(bytes[3], 0x80, 0xbf);
        return good ? 4 : 0;
    }
    return 0;
}

size_t utf8_check(str text)
{
    const u8 *bytes = (const u8 *)text.data;
    size_t i = 0;
    while (i < text.size) {
        if (text.size - i >= 8 && (num_load_u64(bytes + i) & 0x8080808080808080U) == 0) {
            i += 8;
            continue;
        }
        if (bytes[i] < 0x80) {
            i++;
            continue;
        }
        size_t size = utf8_sequence(bytes + i, text.size - i);
        if (size == 0) {
            return i;
        }
        i += size;
    }
    return text.size;
}

str utf8_cut(str text, size_t bytes_max)
{
    if (text.size <= bytes_max) {
        return text;
    }
    size_t size = bytes_max;
    while (size > 0 && ((u8)text.data[size] & 0xc0) == 0x80) {
        size--;
    }
    return str_slice(text, 0, size);
}

size_t utf8_encode(u32 code_point, char out[4])
{
    assert(code_point <= 0x10ffff);
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (char)(0xc0 | code_point >> 6);
        out[1] = (char)(0x80 | (code_point & 63));
        return 2;
    }
    if (code_point < 0x10000) {
        out[0] = (char)(0xe0 | code_point >> 12);
        out[1] = (char)(0x80 | (code_point >> 6 & 63));
        out[2] = (char)(0x80 | (code_point & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | code_point >> 18);
    out[1] = (char)(0x80 | (code_point >> 12 & 63));
    out[2] = (char)(0x80 | (code_point >> 6 & 63));
    out[3] = (char)(0x80 | (code_point & 63));
    return 4;
}
