/* json_token: the tokens of JSON, for the two doors of format/json alone.
 *
 * A scanner can stop at the end of its bytes and go on with the next piece: all that it knows is in
 * its state. Pure. */
#ifndef LHBOX_FORMAT_JSON_TOKEN_H
#define LHBOX_FORMAT_JSON_TOKEN_H

#include "format/json.h"

enum string_state {
    STRING_BODY,
    STRING_ESCAPE,
    STRING_HEX_1, /* one hex digit to come; HEX_1 + n: n more */
    STRING_HEX_2,
    STRING_HEX_3,
    STRING_HEX_4,
    STRING_END,
    STRING_BAD,
};

enum number_state {
    NUMBER_MINUS,
    NUMBER_ZERO,
    NUMBER_WHOLE,
    NUMBER_POINT,
    NUMBER_FRACTION,
    NUMBER_E,
    NUMBER_SIGN,
    NUMBER_EXPONENT,
    NUMBER_END, /* the byte at hand is not part of it */
    NUMBER_BAD,
};

/* From inside a string to past its closing quote (END), to a byte that cannot stand there (BAD),
 * or to the end of the bytes. */
const u8 *json_string_scan(const u8 *at, const u8 *end, i32 *state);
/* Stops at the first byte that is not part of the number (END), that cannot stand there (BAD),
 * or at the end of the bytes, where the number may go on. */
const u8 *json_number_scan(const u8 *at, const u8 *end, i32 *state);
/* From byte *done of the word on; stops at its end, at a wrong byte, or at the end of the bytes. */
const u8 *json_word_scan(const u8 *at, const u8 *end, str word, i32 *done);
/* -1: none. */
i32 json_hex_digit(u8 byte);

static inline bool json_is_digit(u8 byte)
{
    return (u8)(byte - '0') <= 9;
}

static inline i32 json_number_begin(u8 byte)
{
    return byte == '-' ? NUMBER_MINUS : byte == '0' ? NUMBER_ZERO : NUMBER_WHOLE;
}

static inline bool json_number_may_end(i32 state)
{
    return state == NUMBER_ZERO || state == NUMBER_WHOLE || state == NUMBER_FRACTION ||
           state == NUMBER_EXPONENT;
}

static inline str json_word_of(enum json_kind kind)
{
    return kind == JSON_KIND_TRUE    ? STR("true")
           : kind == JSON_KIND_FALSE ? STR("false")
                                     : STR("null");
}

static inline bool json_is_space(u8 byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static inline const u8 *json_space_scan(const u8 *at, const u8 *end)
{
    while (at < end && json_is_space(*at)) {
        at++;
    }
    return at;
}

/* What a value's first byte makes it; false when no value starts so. */
static inline bool json_kind_of(u8 byte, enum json_kind *out_kind)
{
    switch (byte) {
    case '{':
        *out_kind = JSON_KIND_OBJECT;
        return true;
    case '[':
        *out_kind = JSON_KIND_ARRAY;
        return true;
    case '"':
        *out_kind = JSON_KIND_STRING;
        return true;
    case 't':
        *out_kind = JSON_KIND_TRUE;
        return true;
    case 'f':
        *out_kind = JSON_KIND_FALSE;
        return true;
    case 'n':
        *out_kind = JSON_KIND_NULL;
        return true;
    default:
        *out_kind = JSON_KIND_NUMBER;
        return byte == '-' || json_is_digit(byte);
    }
}

/* Levels of objects and arrays: one bit each. */

static inline void json_level_open(u64 *stack, i32 level, enum json_kind kind)
{
    u64 bit = UINT64_C(1) << (level & 63);
    if (kind == JSON_KIND_OBJECT) {
        stack[level >> 6] |= bit;
    } else {
        stack[level >> 6] &= ~bit;
    }
}

static inline bool json_level_is_object(const u64 *stack, i32 level)
{
    return (stack[level >> 6] >> (level & 63) & 1) != 0;
}

#endif
