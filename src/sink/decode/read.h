/* decode/read: the usual form of each scalar type, from a line into a column. For decode/straight
 * alone.
 *
 * `at` is where the value begins, or behind its quote. All return the byte behind the value, or
 * NULL: it has some other form, or is wrong, or memory is out; the column is as before then. They
 * read freely, because the line feed behind the line is a byte that none of them passes. */
#ifndef LHBOX_SINK_DECODE_READ_H
#define LHBOX_SINK_DECODE_READ_H

#include "base/real.h"
#include "base/time.h"
#include "base/utf8.h"
#include "format/json_scan.h"
#include "sink/decode/scalar.h"
#include "sink/decode/step.h"

/* ---- room ---- */

static HOT bool make_room(struct column *column, i64 size)
{
    bool room = column->count < column->capacity &&
                column->data_capacity - column->data_size >= size;
    return room || column_reserve(column, (size_t)size);
}

static HOT bool put_fixed(struct column *column, const void *bytes, i64 width)
{
    if (!make_room(column, width)) {
        return false;
    }
    memcpy(column->data + column->data_size, bytes, (size_t)width);
    column->data_size += width;
    column->valid[column->count] = 1;
    column->count++;
    return true;
}

/* ---- strings ---- */

/* A hex digit's value with HEX_IS, else 0. */
enum { HEX_IS = 0x10 };

static const u8 hex_digits[256] = {
    ['0'] = 0x10, ['1'] = 0x11, ['2'] = 0x12, ['3'] = 0x13, ['4'] = 0x14, ['5'] = 0x15,
    ['6'] = 0x16, ['7'] = 0x17, ['8'] = 0x18, ['9'] = 0x19, ['a'] = 0x1A, ['b'] = 0x1B,
    ['c'] = 0x1C, ['d'] = 0x1D, ['e'] = 0x1E, ['f'] = 0x1F, ['A'] = 0x1A, ['B'] = 0x1B,
    ['C'] = 0x1C, ['D'] = 0x1D, ['E'] = 0x1E, ['F'] = 0x1F};

/* Two digits as a byte; *is stays as it is where they are some. */
static inline u32 hex_byte(const u8 *at, u32 *is)
{
    u32 high = hex_digits[at[0]];
    u32 low = hex_digits[at[1]];
    *is &= high & low;
    return (high << 4 | (low & 15)) & 0xFF;
}

/* Four digits, or UINT32_MAX. */
static inline u32 hex_unit(const u8 *at)
{
    u32 is = HEX_IS;
    u32 unit = hex_byte(at, &is) << 8 | hex_byte(at + 2, &is);
    return is != 0 ? unit : UINT32_MAX;
}

/* \uXXXX, a pair of surrogates as one. NULL: none, or half a pair. */
static COLD const u8 *read_unit(const u8 *at, u8 *to, u32 *out_size)
{
    u32 point = hex_unit(at + 2);
    at += 6;
    if (point == UINT32_MAX) {
        return NULL;
    }
    if (point >= 0xD800 && point <= 0xDFFF) {
        u32 low = point <= 0xDBFF && at[0] == '\\' && at[1] == 'u' ? hex_unit(at + 2) : UINT32_MAX;
        if (low < 0xDC00 || low > 0xDFFF) {
            return NULL;
        }
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
        at += 6;
    }
    *out_size = (u32)utf8_encode(point, (char *)to);
    return at;
}

/* One escape. */
static inline const u8 *read_escape(const u8 *at, u8 *to, u32 *out_size)
{
    static const u8 letters[256] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};
    u8 letter = letters[at[1]];
    if (letter == 0) {
        return at[1] == 'u' ? read_unit(at, to, out_size) : NULL;
    }
    *to = letter;
    *out_size = 1;
    return at + 2;
}

/* For a piece, and for a character that was escaped behind it. */
enum { STRING_ROOM = SCAN_BYTES + 4 };

/* From behind the opening quote to behind the closing one. */
static const u8 *read_string(struct column *column, const u8 *at)
{
    i64 size = column->data_size;
    u64 high = 0;
    if (!make_room(column, STRING_ROOM)) {
        return NULL;
    }
    for (;;) {
        if (column->data_capacity - size < STRING_ROOM &&
            !column_reserve(column, (size_t)(size - column->data_size) + STRING_ROOM)) {
            return NULL;
        }
        struct scan_piece piece = scan_copy(at, column->data + size);
        high |= piece.high;
        at += piece.size;
        size += piece.size;
        if (piece.size == SCAN_BYTES) {
            continue;
        }
        if (*at != '\\') {
            break;
        }
        u32 unescaped = 0;
        at = read_escape(at, column->data + size, &unescaped);
        if (at == NULL) {
            return NULL;
        }
        size += unescaped;
    }
    str text = {(const char *)column->data + column->data_size, (size_t)(size - column->data_size)};
    if (*at != '"' || (high != 0 && !utf8_valid(text))) {
        return NULL;
    }
    column->data_size = size;
    column->valid[column->count] = 1;
    column->count++;
    column->offsets[column->count] = size;
    return at + 1;
}

/* ---- numbers ---- */

/* Digits from `at` on, at least none; with up to 19 of them, leading zeros included, *value is
 * right. */
static HOT const u8 *read_digits(const u8 *at, u64 *value)
{
    static const u64 tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    u32 count;
    do {
        u64 part;
        count = scan_digits(num_load_u64(at), &part);
        *value = *value * tens[count] + part;
        at += count;
    } while (count == 8);
    return at;
}

enum { DIGITS_MAX = 18 };

/* Numbers of any length, eight digits at a time. False: none, or too long. */
static COLD bool read_plain_slowly(const u8 *at, struct scan_number *out)
{
    *out = (struct scan_number){0};
    const u8 *end = read_digits(at, &out->digits);
    i64 whole = end - at;
    i64 fraction = 0;
    if (*end == '.') {
        const u8 *point = end;
        end = read_digits(point + 1, &out->digits);
        fraction = end - point - 1;
    }
    if (whole + fraction > DIGITS_MAX) {
        return false;
    }
    out->whole = (i32)whole;
    out->fraction = (i32)fraction;
    out->size = (i32)(end - at);
    return true;
}

/* scan_plain or read_plain_slowly. Of each reader there are two: the first takes what stands in one
 * register and keeps all in registers itself; what it does not take is read again by the slow
 * one. */
typedef bool scan_function(const u8 *at, struct scan_number *out);

/* A number without exponent; a lone zero before the point is not counted. */
static HOT const u8 *read_plain(const u8 *at, scan_function *scan, struct scan_number *out,
                                bool *out_negative)
{
    *out_negative = *at == '-';
    at += *out_negative ? 1 : 0;
    if (!scan(at, out)) {
        return NULL;
    }
    const u8 *end = at + out->size;
    bool zero = *at == '0';
    bool bare_point = out->size > out->whole && out->fraction == 0;
    if (out->whole == 0 || (zero && out->whole > 1) || bare_point || (*end | 0x20) == 'e') {
        return NULL;
    }
    out->whole -= zero ? 1 : 0;
    return end;
}

static HOT const u8 *read_integer(const u8 *at, scan_function *scan, i64 *out_value)
{
    struct scan_number number;
    bool negative;
    at = read_plain(at, scan, &number, &negative);
    if (at == NULL || number.fraction > 0) {
        return NULL;
    }
    *out_value = negative ? -(i64)number.digits : (i64)number.digits;
    return at;
}

static COLD const u8 *read_double_slowly(struct column *column, const u8 *at)
{
    struct scan_number number;
    bool negative;
    double value;
    at = read_plain(at, read_plain_slowly, &number, &negative);
    if (at == NULL || !real_double(number.digits, -number.fraction, &value)) {
        return NULL;
    }
    value = negative ? -value : value;
    return put_fixed(column, &value, sizeof(value)) ? at : NULL;
}

static inline const u8 *read_double(struct column *column, const u8 *at)
{
    struct scan_number number;
    bool negative;
    double value;
    const u8 *end = read_plain(at, scan_plain, &number, &negative);
    if (end == NULL || !real_double_at_once(number.digits, -number.fraction, &value)) {
        return read_double_slowly(column, at);
    }
    value = negative ? -value : value;
    return put_fixed(column, &value, sizeof(value)) ? end : NULL;
}

static inline const u8 *read_float(struct column *column, const u8 *at)
{
    struct scan_number number;
    bool negative;
    float value;
    const u8 *end = read_plain(at, scan_plain, &number, &negative);
    end = end != NULL ? end : read_plain(at, read_plain_slowly, &number, &negative);
    if (end == NULL || !real_float(number.digits, -number.fraction, &value)) {
        return NULL;
    }
    value = negative ? -value : value;
    return put_fixed(column, &value, sizeof(value)) ? end : NULL;
}

/* Numbers that may as well stand in a string: `at` is moved past its quote. */
static HOT bool skip_quote(const u8 **at)
{
    bool quoted = **at == '"';
    *at += quoted ? 1 : 0;
    return quoted;
}

static HOT const u8 *after_quote(const u8 *at, bool quoted)
{
    return at == NULL || !quoted ? at : *at == '"' ? at + 1 : NULL;
}

static HOT const u8 *read_int_by(struct column *column, const u8 *at, scan_function *scan)
{
    i64 value;
    bool quoted = skip_quote(&at);
    at = after_quote(read_integer(at, scan, &value), quoted);
    if (at == NULL || value < INT32_MIN || value > INT32_MAX) {
        return NULL;
    }
    i32 narrow = (i32)value;
    return put_fixed(column, &narrow, sizeof(narrow)) ? at : NULL;
}

static COLD const u8 *read_int_slowly(struct column *column, const u8 *at)
{
    return read_int_by(column, at, read_plain_slowly);
}

static inline const u8 *read_int(struct column *column, const u8 *at)
{
    const u8 *end = read_int_by(column, at, scan_plain);
    return end != NULL ? end : read_int_slowly(column, at);
}

static HOT const u8 *read_long_by(struct column *column, const u8 *at, scan_function *scan)
{
    i64 value;
    bool quoted = skip_quote(&at);
    at = after_quote(read_integer(at, scan, &value), quoted);
    return at != NULL && put_fixed(column, &value, sizeof(value)) ? at : NULL;
}

static COLD const u8 *read_long_slowly(struct column *column, const u8 *at)
{
    return read_long_by(column, at, read_plain_slowly);
}

static inline const u8 *read_long(struct column *column, const u8 *at)
{
    const u8 *end = read_long_by(column, at, scan_plain);
    return end != NULL ? end : read_long_slowly(column, at);
}

static HOT const u8 *read_decimal_by(const struct decode_step *step, const u8 *at,
                                     scan_function *scan)
{
    static const u64 tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    struct scan_number number;
    bool negative;
    bool quoted = skip_quote(&at);
    at = after_quote(read_plain(at, scan, &number, &negative), quoted);
    if (at == NULL || number.whole > step->whole || number.fraction > step->scale ||
        step->scale - number.fraction > 8) {
        return NULL;
    }
    i128 value = (i128)((u128)number.digits * tens[step->scale - number.fraction]);
    value = negative ? -value : value;
    return put_fixed(step->column, &value, sizeof(value)) ? at : NULL;
}

static COLD const u8 *read_decimal_slowly(const struct decode_step *step, const u8 *at)
{
    return read_decimal_by(step, at, read_plain_slowly);
}

static inline const u8 *read_decimal(const struct decode_step *step, const u8 *at)
{
    const u8 *end = read_decimal_by(step, at, scan_plain);
    return end != NULL ? end : read_decimal_slowly(step, at);
}

/* ---- dates and times, from behind the quote ---- */

static COLD bool read_other_days(struct decode_step *step, const u8 *at)
{
    i32 days;
    enum reject_reason reason;
    if (decode_date((str){(const char *)at, 10}, &days, &reason) != DECODE_FITS) {
        return false;
    }
    memcpy(step->date, at, 10);
    step->days = days;
    return true;
}

/* False: no date. Its days are the step's now. */
static HOT bool read_days(struct decode_step *step, const u8 *at)
{
    bool same = num_load_u64(at) == num_load_u64(step->date) && at[8] == step->date[8] &&
                at[9] == step->date[9];
    return same || read_other_days(step, at);
}

/* The eight bytes HH:MM:SS of a real clock. */
static HOT bool read_clock(u64 word, i64 *out_seconds)
{
    u64 x = word ^ UINT64_C(0x30303A30303A3030);
    u64 wrong = ((x + UINT64_C(0x76767F76767F7676)) | x) & UINT64_C(0x8080808080808080);
    x = x * 10 + (x >> 8);
    i64 hour = (i64)(x & 0xFF);
    i64 minute = (i64)(x >> 24 & 0xFF);
    i64 second = (i64)(x >> 48 & 0xFF);
    *out_seconds = hour * 3600 + minute * 60 + second;
    return wrong == 0 && hour <= 23 && minute <= 59 && second <= 59;
}

/* A point and up to nine digits behind it, or nothing. */
static HOT const u8 *read_fraction(const u8 *at, i64 *out_nanoseconds)
{
    static const i64 tens[] = {1000000000, 100000000, 10000000, 1000000, 100000,
                               10000,      1000,      100,      10,      1};
    u64 value = 0;
    *out_nanoseconds = 0;
    if (*at != '.') {
        return at;
    }
    const u8 *start = at + 1;
    at = read_digits(start, &value);
    i64 count = at - start;
    if (count == 0 || count > 9) {
        return NULL;
    }
    *out_nanoseconds = (i64)value * tens[count];
    return at;
}

/* Z, ±HH:MM or nothing, and the closing quote. */
static HOT const u8 *read_zone(const u8 *at, bool zoned, i64 *out_seconds)
{
    *out_seconds = 0;
    if (at[0] == 'Z' && at[1] == '"') {
        return at + 2;
    }
    if (at[0] == '"') {
        return zoned ? NULL : at + 1;
    }
    i64 seconds;
    u64 minutes = (num_load_u64(at + 1) & UINT64_C(0xFFFFFFFFFF)) | UINT64_C(0x30303A) << 40;
    if ((at[0] != '+' && at[0] != '-') || at[6] != '"' || !read_clock(minutes, &seconds)) {
        return NULL;
    }
    *out_seconds = at[0] == '-' ? -seconds : seconds;
    return at + 7;
}

static inline const u8 *read_timestamp(struct decode_step *step, const u8 *at)
{
    enum { DAYS_NEAR = 100000 }; /* nanoseconds of them do not overflow */
    i64 seconds;
    i64 nanoseconds;
    i64 offset;
    if (!read_days(step, at) || step->days > DAYS_NEAR || step->days < -DAYS_NEAR ||
        (at[10] != 'T' && at[10] != ' ') || !read_clock(num_load_u64(at + 11), &seconds)) {
        return NULL;
    }
    at = read_fraction(at + 19, &nanoseconds);
    at = at != NULL ? read_zone(at, step->zoned, &offset) : NULL;
    if (at == NULL) {
        return NULL;
    }
    seconds += step->days * 86400 - offset;
    i64 value = step->nanoseconds ? seconds * 1000000000 + nanoseconds
                                  : seconds * TIME_SECOND_US + nanoseconds / 1000;
    return put_fixed(step->column, &value, sizeof(value)) ? at : NULL;
}

static inline const u8 *read_date(struct decode_step *step, const u8 *at)
{
    if (!read_days(step, at) || at[10] != '"') {
        return NULL;
    }
    i32 narrow = (i32)step->days;
    return put_fixed(step->column, &narrow, sizeof(narrow)) ? at + 11 : NULL;
}

/* ---- others ---- */

static inline const u8 *read_uuid(struct column *column, const u8 *at)
{
    static const u8 places[16] = {0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34};
    u64 halves[2] = {0, 0};
    u32 is = HEX_IS;
    for (u32 i = 0; i < 16; i++) {
        halves[i / 8] |= (u64)hex_byte(at + places[i], &is) << 8 * (i % 8);
    }
    bool dashes = at[8] == '-' && at[13] == '-' && at[18] == '-' && at[23] == '-';
    if (is == 0 || !dashes || at[36] != '"') {
        return NULL;
    }
    return put_fixed(column, halves, sizeof(halves)) ? at + 37 : NULL;
}

static inline const u8 *read_boolean(struct column *column, const u8 *at)
{
    bool is_true = memcmp(at, "true", 4) == 0;
    if (!is_true && memcmp(at, "false", 5) != 0) {
        return NULL;
    }
    u8 value = is_true ? 1 : 0;
    return put_fixed(column, &value, 1) ? at + (is_true ? 4 : 5) : NULL;
}

/* ---- any ---- */

/* The usual form of a scalar. What is not one leaves the column alone. */
static HOT const u8 *read_usual(struct decode_step *step, const u8 *at)
{
    bool quote = *at == '"';
    switch (step->kind) {
    case TYPE_BOOLEAN:
        return read_boolean(step->column, at);
    case TYPE_INT:
        return read_int(step->column, at);
    case TYPE_LONG:
        return read_long(step->column, at);
    case TYPE_FLOAT:
        return read_float(step->column, at);
    case TYPE_DOUBLE:
        return read_double(step->column, at);
    case TYPE_DECIMAL:
        return read_decimal(step, at);
    case TYPE_STRING:
        return quote ? read_string(step->column, at + 1) : NULL;
    case TYPE_DATE:
        return quote ? read_date(step, at + 1) : NULL;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_TIMESTAMP_NS:
    case TYPE_TIMESTAMPTZ_NS:
        return quote ? read_timestamp(step, at + 1) : NULL;
    case TYPE_UUID:
        return quote ? read_uuid(step->column, at + 1) : NULL;
    case TYPE_TIME:
    case TYPE_FIXED:
    case TYPE_BINARY:
    case TYPE_UNKNOWN:
    case TYPE_STRUCT:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_VARIANT:
    case TYPE_GEOMETRY:
    case TYPE_GEOGRAPHY:
        break;
    }
    return NULL;
}

#endif
