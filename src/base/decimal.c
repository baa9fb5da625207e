#include "base/decimal.h"

#include "base/assert.h"

enum { DECIMAL_EXPONENT_MAX = 999, DECIMAL_DIGITS_MAX = 38 };

/* A number's text taken apart. Places count digits only, the point left out: digit `first` is the
 * first that is not zero, `last` the last such, and `point` digits stand before the point after the
 * exponent has moved it (less than zero: zeros stand between point and digits). */
struct decimal_parts {
    str mantissa; /* digits and at most one point */
    bool negative;
    bool zero;
    bool huge; /* the exponent as written is beyond ±999 */
    i64 first;
    i64 last;
    i64 point;
};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* The written exponent, kept at ±(DECIMAL_EXPONENT_MAX + 1) when it is beyond. */
static i64 decimal_exponent(str text)
{
    bool negative = str_starts(text, STR("-"));
    i64 value = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (is_digit(text.data[i])) {
            value = num_min_i64(value * 10 + (text.data[i] - '0'), DECIMAL_EXPONENT_MAX + 1);
        }
    }
    return negative ? -value : value;
}

static struct decimal_parts decimal_split(str text)
{
    struct decimal_parts parts = {.zero = true, .negative = str_starts(text, STR("-"))};
    size_t i = parts.negative ? 1 : 0;
    size_t start = i;
    i64 count = 0;
    i64 point = -1;
    for (; i < text.size && text.data[i] != 'e' && text.data[i] != 'E'; i++) {
        if (text.data[i] == '.') {
            point = count;
            continue;
        }
        assert(is_digit(text.data[i]));
        if (text.data[i] != '0') {
            parts.first = parts.zero ? count : parts.first;
            parts.last = count;
            parts.zero = false;
        }
        count++;
    }
    i64 exponent = decimal_exponent(str_slice(text, i + 1, text.size));
    parts.mantissa = str_slice(text, start, i);
    parts.point = (point >= 0 ? point : count) + exponent;
    parts.huge = exponent > DECIMAL_EXPONENT_MAX || exponent < -DECIMAL_EXPONENT_MAX;
    return parts;
}

/* The digits first..last as one number, then `zeros` zeros. The caller has checked that both
 * together are no more than DECIMAL_DIGITS_MAX digits. */
static i128 decimal_digits(const struct decimal_parts *parts, i64 zeros)
{
    i128 value = 0;
    i64 place = 0;
    for (size_t i = 0; i < parts->mantissa.size && place <= parts->last; i++) {
        char byte = parts->mantissa.data[i];
        if (byte == '.') {
            continue;
        }
        if (place >= parts->first) {
            value = value * 10 + (byte - '0');
        }
        place++;
    }
    for (i64 i = 0; i < zeros; i++) {
        value *= 10;
    }
    return parts->negative ? -value : value;
}

enum decimal_result decimal_parse(str text, i32 precision, i32 scale, i128 *out_unscaled)
{
    assert(precision >= 1 && precision <= DECIMAL_DIGITS_MAX);
    assert(scale >= 0 && scale <= precision);

    struct decimal_parts parts = decimal_split(text);
    if (parts.zero) {
        *out_unscaled = 0;
        return DECIMAL_OK;
    }
    if (parts.huge || parts.point - parts.first > precision - scale) {
        return DECIMAL_OUT_OF_RANGE;
    }
    i64 fraction = parts.last + 1 - parts.point;
    if (fraction > scale) {
        return DECIMAL_INEXACT;
    }
    *out_unscaled = decimal_digits(&parts, scale - fraction);
    return DECIMAL_OK;
}

enum decimal_result decimal_parse_i64(str text, i64 *out_value)
{
    enum { I64_DIGITS_MAX = 19 };
    struct decimal_parts parts = decimal_split(text);
    if (parts.zero) {
        *out_value = 0;
        return DECIMAL_OK;
    }
    if (parts.huge) {
        return DECIMAL_OUT_OF_RANGE;
    }
    if (parts.last >= parts.point) {
        return DECIMAL_INEXACT;
    }
    if (parts.point - parts.first > I64_DIGITS_MAX) {
        return DECIMAL_OUT_OF_RANGE;
    }
    i128 value = decimal_digits(&parts, parts.point - parts.last - 1);
    if (value > INT64_MAX || value < INT64_MIN) {
        return DECIMAL_OUT_OF_RANGE;
    }
    *out_value = (i64)value;
    return DECIMAL_OK;
}

size_t decimal_format(i128 unscaled, i32 scale, char out[48])
{
    assert(scale >= 0 && scale <= DECIMAL_DIGITS_MAX);
    char digits[48];
    i32 count = 0;
    u128 rest = unscaled < 0 ? 0 - (u128)unscaled : (u128)unscaled;
    while (rest > 0 || count <= scale) {
        digits[count] = (char)('0' + (int)(rest % 10));
        rest /= 10;
        count++;
    }
    size_t size = 0;
    if (unscaled < 0) {
        out[size++] = '-';
    }
    for (i32 i = count - 1; i >= 0; i--) {
        out[size++] = digits[i];
        if (i == scale && scale > 0) {
            out[size++] = '.';
        }
    }
    return size;
}

size_t decimal_bytes(i128 unscaled, u8 out[16])
{
    u8 all[16];
    for (size_t i = 0; i < sizeof(all); i++) {
        all[i] = (u8)((u128)unscaled >> (8 * (15 - i)));
    }
    u8 fill = unscaled < 0 ? 0xff : 0;
    size_t start = 0;
    while (start < 15 && all[start] == fill && (all[start + 1] & 0x80) == (fill & 0x80)) {
        start++;
    }
    memcpy(out, all + start, sizeof(all) - start);
    return sizeof(all) - start;
}
