/* The forms of numbers, and exact decimals of any scale from their decimal text. */
#include "sink/decode/scalar.h"

#include "base/real.h"

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
    i32 written = real_written_exponent(str_slice(text, i + 1, text.size));
    exponent += (i64)written + parts.zeros;
    if (parts.count == 0) {
        exponent = 0;
    } else if (parts.cut || written > REAL_WRITTEN_MAX || written < -REAL_WRITTEN_MAX ||
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
