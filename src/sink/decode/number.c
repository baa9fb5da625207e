/* Floats, and exact decimals of any scale, from their decimal text. */
#include "base/assert.h"
#include "sink/decode/scalar.h"

#include <math.h>
#include <stdlib.h>

enum { EXPONENT_MAX = 999 };

bool decode_is_integer(str text)
{
    size_t start = str_starts(text, STR("-")) ? 1 : 0;
    if (start == text.size || (text.data[start] == '0' && text.size > start + 1)) {
        return false;
    }
    for (size_t i = start; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
    }
    return true;
}

bool decode_is_number(str text)
{
    struct json_reader reader;
    json_reader_init(&reader, text);
    /* The reader takes white space around a value, a number's form has none. */
    return json_next(&reader) == JSON_TOKEN_NUMBER && reader.text.size == text.size;
}

/* A number's text taken apart: mantissa x 10^exponent, where the mantissa may have lost digits. */
struct number_parts {
    u64 mantissa;
    i32 digits; /* of the mantissa, zeros before the first other digit not counted */
    bool cut;   /* there were more digits than a mantissa holds */
    bool negative;
    i32 written; /* the exponent as written, kept at ±(EXPONENT_MAX + 1) when it is beyond */
    i64 exponent;
};

enum { MANTISSA_DIGITS_MAX = 19 };

static i32 exponent_written(str text)
{
    bool negative = str_starts(text, STR("-"));
    i32 value = 0;
    for (size_t i = 0; i < text.size && value <= EXPONENT_MAX; i++) {
        if (text.data[i] >= '0' && text.data[i] <= '9') {
            value = value * 10 + (text.data[i] - '0');
        }
    }
    value = value > EXPONENT_MAX ? EXPONENT_MAX + 1 : value;
    return negative ? -value : value;
}

static void parts_add_digit(struct number_parts *parts, char byte)
{
    if (parts->digits == MANTISSA_DIGITS_MAX) {
        parts->cut = true;
        return;
    }
    parts->mantissa = parts->mantissa * 10 + (u64)(byte - '0');
    parts->digits += parts->mantissa > 0 ? 1 : 0;
}

static struct number_parts number_split(str text)
{
    struct number_parts parts = {.negative = str_starts(text, STR("-"))};
    i64 fraction = 0;
    bool after_point = false;
    size_t i = parts.negative ? 1 : 0;
    for (; i < text.size && text.data[i] != 'e' && text.data[i] != 'E'; i++) {
        if (text.data[i] == '.') {
            after_point = true;
            continue;
        }
        parts_add_digit(&parts, text.data[i]);
        fraction += after_point ? 1 : 0;
    }
    parts.written = exponent_written(str_slice(text, i + 1, text.size));
    parts.exponent = parts.written - fraction;
    return parts;
}

/* What the parts alone decide. */
enum number_fate {
    NUMBER_IS_ZERO,
    NUMBER_IS_INFINITE,
    NUMBER_IS_SMALL, /* mantissa and power of ten are both exact, so that one step rounds once */
    NUMBER_IS_LONG,
};

static enum number_fate number_judge(const struct number_parts *parts, u64 mantissa_max,
                                     i64 exponent_max)
{
    if (parts->digits == 0 || parts->written < -EXPONENT_MAX) {
        return NUMBER_IS_ZERO;
    }
    if (parts->written > EXPONENT_MAX) {
        return NUMBER_IS_INFINITE;
    }
    bool small = !parts->cut && parts->mantissa <= mantissa_max &&
                 parts->exponent >= -exponent_max && parts->exponent <= exponent_max;
    return small ? NUMBER_IS_SMALL : NUMBER_IS_LONG;
}

/* A copy with a NUL behind it, as strtod wants. The process never sets a locale, so that its
 * point is the decimal point; its result is the nearest value, ties to even, for any number of
 * digits. */
static const char *number_terminated(str text, buf *scratch)
{
    size_t start = scratch->size;
    buf_append(scratch, text);
    buf_append_byte(scratch, 0);
    assert(buf_ok(scratch));
    return scratch->data + start;
}

bool decode_double(str text, buf *scratch, double *out_value)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    struct number_parts parts = number_split(text);
    double value = 0;
    switch (number_judge(&parts, UINT64_C(1) << 53, 22)) {
    case NUMBER_IS_ZERO:
        break;
    case NUMBER_IS_INFINITE:
        return false;
    case NUMBER_IS_SMALL:
        value = parts.exponent < 0 ? (double)parts.mantissa / tens[-parts.exponent]
                                   : (double)parts.mantissa * tens[parts.exponent];
        break;
    case NUMBER_IS_LONG:
        value = fabs(strtod(number_terminated(text, scratch), NULL));
        break;
    }
    *out_value = parts.negative ? -value : value;
    return !isinf(value);
}

bool decode_float(str text, buf *scratch, float *out_value)
{
    static const float tens[] = {1e0F, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F, 1e6F, 1e7F, 1e8F, 1e9F, 1e10F};
    struct number_parts parts = number_split(text);
    float value = 0;
    switch (number_judge(&parts, UINT64_C(1) << 24, 10)) {
    case NUMBER_IS_ZERO:
        break;
    case NUMBER_IS_INFINITE:
        return false;
    case NUMBER_IS_SMALL:
        value = parts.exponent < 0 ? (float)parts.mantissa / tens[-parts.exponent]
                                   : (float)parts.mantissa * tens[parts.exponent];
        break;
    case NUMBER_IS_LONG:
        value = fabsf(strtof(number_terminated(text, scratch), NULL));
        break;
    }
    *out_value = parts.negative ? -value : value;
    return !isinf(value);
}

/* ---- exact ---- */

enum { EXACT_DIGITS_MAX = 38 };

/* Digits x 10^exponent, the last digit no zero. */
struct exact_parts {
    u128 digits;
    i32 count; /* of digits; 0: the number is zero */
    i32 zeros; /* seen since the last digit that was none */
    bool cut;  /* more than EXACT_DIGITS_MAX */
};

static void exact_add_digit(struct exact_parts *parts, char byte)
{
    if (byte == '0' || parts->cut) {
        parts->zeros += parts->count > 0 ? 1 : 0;
        return;
    }
    i32 more = parts->count > 0 ? parts->zeros + 1 : 1;
    if (more > EXACT_DIGITS_MAX - parts->count) {
        parts->cut = true;
        return;
    }
    for (i32 i = 0; i < more; i++) {
        parts->digits *= 10;
    }
    parts->digits += (u8)(byte - '0');
    parts->count += more;
    parts->zeros = 0;
}

bool decode_exact(str text, i128 *out_unscaled, i32 *out_scale)
{
    struct exact_parts parts = {0};
    bool negative = str_starts(text, STR("-"));
    bool after_point = false;
    i64 exponent = 0;
    size_t i = negative ? 1 : 0;
    for (; i < text.size && text.data[i] != 'e' && text.data[i] != 'E'; i++) {
        if (text.data[i] == '.') {
            after_point = true;
            continue;
        }
        exact_add_digit(&parts, text.data[i]);
        exponent -= after_point ? 1 : 0;
    }
    i32 written = exponent_written(str_slice(text, i + 1, text.size));
    exponent += (i64)written + parts.zeros;
    if (parts.count == 0) {
        exponent = 0;
    } else if (parts.cut || written > EXPONENT_MAX || written < -EXPONENT_MAX ||
               exponent > EXACT_DIGITS_MAX - parts.count || exponent < -EXACT_DIGITS_MAX) {
        return false;
    }
    for (; exponent > 0; exponent--) {
        parts.digits *= 10;
    }
    *out_unscaled = negative ? -(i128)parts.digits : (i128)parts.digits;
    *out_scale = (i32)-exponent;
    return true;
}

_Static_assert(__FLT_EVAL_METHOD__ == 0, "float arithmetic must round to float at once");
