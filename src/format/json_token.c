#include "format/json_token.h"

/* ---- strings ---- */

static u64 bytes_all(u8 byte)
{
    return (u64)byte * UINT64_C(0x0101010101010101);
}

/* High bits where a byte of `word` is `byte`; exact up to the first one. */
static u64 bytes_equal(u64 word, u8 byte)
{
    u64 other = word ^ bytes_all(byte);
    return (other - bytes_all(1)) & ~other & bytes_all(0x80);
}

/* The first byte that is a quote, a backslash or a control byte. */
static const u8 *string_plain(const u8 *at, const u8 *end)
{
    while (end - at >= 8) {
        u64 word = num_load_u64(at);
        u64 control = (word - bytes_all(0x20)) & ~word & bytes_all(0x80);
        u64 stop = control | bytes_equal(word, '"') | bytes_equal(word, '\\');
        if (stop != 0) {
            return at + (__builtin_ctzll(stop) >> 3);
        }
        at += 8;
    }
    while (at < end && *at >= 0x20 && *at != '"' && *at != '\\') {
        at++;
    }
    return at;
}

i32 json_hex_digit(u8 byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    u8 lower = byte | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* After a backslash, or in its four hex digits. */
static i32 string_escape(i32 state, u8 byte)
{
    if (state != STRING_ESCAPE) {
        if (json_hex_digit(byte) < 0) {
            return STRING_BAD;
        }
        return state == STRING_HEX_1 ? STRING_BODY : state - 1;
    }
    switch (byte) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return STRING_BODY;
    case 'u':
        return STRING_HEX_4;
    default:
        return STRING_BAD;
    }
}

/* With a backslash in it, or a byte that cannot stand there, or cut off. */
static const u8 *string_scan_rest(const u8 *at, const u8 *end, i32 *state)
{
    while (at < end) {
        if (*state == STRING_BODY) {
            at = string_plain(at, end);
            if (at == end) {
                return at;
            }
            if (*at == '"') {
                *state = STRING_END;
                return at + 1;
            }
            *state = *at == '\\' ? STRING_ESCAPE : STRING_BAD;
        } else {
            *state = string_escape(*state, *at);
        }
        if (*state == STRING_BAD) {
            return at;
        }
        at++;
    }
    return at;
}

const u8 *json_string_scan(const u8 *at, const u8 *end, i32 *state)
{
    if (*state == STRING_BODY) {
        at = string_plain(at, end);
        if (at < end && *at == '"') {
            *state = STRING_END;
            return at + 1;
        }
    }
    return string_scan_rest(at, end, state);
}

/* ---- numbers ---- */

/* The state after a digit. */
static i32 number_digit(i32 state, u8 byte)
{
    switch (state) {
    case NUMBER_MINUS:
        return json_number_begin(byte);
    case NUMBER_ZERO:
        return NUMBER_END;
    case NUMBER_POINT:
        return NUMBER_FRACTION;
    case NUMBER_E:
    case NUMBER_SIGN:
        return NUMBER_EXPONENT;
    default:
        return state;
    }
}

static i32 number_next(i32 state, u8 byte)
{
    if (json_is_digit(byte)) {
        return number_digit(state, byte);
    }
    if (byte == '.' && (state == NUMBER_ZERO || state == NUMBER_WHOLE)) {
        return NUMBER_POINT;
    }
    if ((byte | 0x20) == 'e' && json_number_may_end(state) && state != NUMBER_EXPONENT) {
        return NUMBER_E;
    }
    if ((byte == '+' || byte == '-') && state == NUMBER_E) {
        return NUMBER_SIGN;
    }
    return json_number_may_end(state) ? NUMBER_END : NUMBER_BAD;
}

const u8 *json_number_scan(const u8 *at, const u8 *end, i32 *state)
{
    while (at < end) {
        i32 next = number_next(*state, *at);
        if (next >= NUMBER_END) {
            *state = next;
            return at;
        }
        *state = next;
        at++;
        /* One digit more changes nothing after these. */
        bool digits = next == NUMBER_WHOLE || next == NUMBER_FRACTION || next == NUMBER_EXPONENT;
        while (digits && at < end && json_is_digit(*at)) {
            at++;
        }
    }
    return at;
}

/* ---- words ---- */

const u8 *json_word_scan(const u8 *at, const u8 *end, str word, i32 *done)
{
    while (at < end && (size_t)*done < word.size && *at == (u8)word.data[*done]) {
        at++;
        *done += 1;
    }
    return at;
}
