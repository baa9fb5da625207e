/* Compiled once as it is and once with AVX2 and STRAIGHT_WIDE. */
#include "sink/decode/straight.h"

#include "base/assert.h"
#include "base/real.h"
#include "base/time.h"
#include "base/utf8.h"
#include "format/json.h"
#include "format/json_scan.h"
#include "sink/decode/scalar.h"
#include "sink/decode/value.h"

/* The walk_ functions go over a value at `at` and append it; the read_ functions know one form of
 * one type. All return the byte behind it, or NULL: not here. They read freely, because the line
 * feed behind the line is a byte that none of them passes.
 *
 * Functions walk a schema's tree by calling themselves: its depth is bounded where a schema is
 * read. */

static inline const u8 *skip_space(const u8 *at)
{
    if (*at > ' ') {
        return at;
    }
    while (*at == ' ' || *at == '\t' || *at == '\r') {
        at++;
    }
    return at;
}

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
static const u8 *walk_string(struct column *column, const u8 *at)
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

/* A number without exponent; a lone zero before the point is not counted. */
static HOT const u8 *read_plain(const u8 *at, struct scan_number *out, bool *out_negative)
{
    *out_negative = *at == '-';
    at += *out_negative ? 1 : 0;
    if (!scan_plain(at, out) && !read_plain_slowly(at, out)) {
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

static HOT const u8 *read_integer(const u8 *at, i64 *out_value)
{
    struct scan_number number;
    bool negative;
    at = read_plain(at, &number, &negative);
    if (at == NULL || number.fraction > 0) {
        return NULL;
    }
    *out_value = negative ? -(i64)number.digits : (i64)number.digits;
    return at;
}

static inline const u8 *read_double(struct column *column, const u8 *at)
{
    struct scan_number number;
    bool negative;
    double value;
    at = read_plain(at, &number, &negative);
    if (at == NULL || !real_double(number.digits, -number.fraction, &value)) {
        return NULL;
    }
    value = negative ? -value : value;
    return put_fixed(column, &value, sizeof(value)) ? at : NULL;
}

static inline const u8 *read_float(struct column *column, const u8 *at)
{
    struct scan_number number;
    bool negative;
    float value;
    at = read_plain(at, &number, &negative);
    if (at == NULL || !real_float(number.digits, -number.fraction, &value)) {
        return NULL;
    }
    value = negative ? -value : value;
    return put_fixed(column, &value, sizeof(value)) ? at : NULL;
}

/* Numbers that may as well stand in a string: `at` is moved past its quote. */
static inline bool skip_quote(const u8 **at)
{
    bool quoted = **at == '"';
    *at += quoted ? 1 : 0;
    return quoted;
}

static inline const u8 *after_quote(const u8 *at, bool quoted)
{
    return at == NULL || !quoted ? at : *at == '"' ? at + 1 : NULL;
}

static inline const u8 *read_int(struct column *column, const u8 *at)
{
    i64 value;
    bool quoted = skip_quote(&at);
    at = after_quote(read_integer(at, &value), quoted);
    if (at == NULL || value < INT32_MIN || value > INT32_MAX) {
        return NULL;
    }
    i32 narrow = (i32)value;
    return put_fixed(column, &narrow, sizeof(narrow)) ? at : NULL;
}

static inline const u8 *read_long(struct column *column, const u8 *at)
{
    i64 value;
    bool quoted = skip_quote(&at);
    at = after_quote(read_integer(at, &value), quoted);
    return at != NULL && put_fixed(column, &value, sizeof(value)) ? at : NULL;
}

static inline const u8 *read_decimal(const struct decode_step *step, const u8 *at)
{
    static const u64 tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    struct scan_number number;
    bool negative;
    bool quoted = skip_quote(&at);
    at = after_quote(read_plain(at, &number, &negative), quoted);
    if (at == NULL || number.whole > step->whole || number.fraction > step->scale ||
        step->scale - number.fraction > 8) {
        return NULL;
    }
    i128 value = (i128)((u128)number.digits * tens[step->scale - number.fraction]);
    value = negative ? -value : value;
    return put_fixed(step->column, &value, sizeof(value)) ? at : NULL;
}

/* ---- dates and times, from behind the quote ---- */

static HOT bool read_days(struct decode_step *step, const u8 *at, i64 *out_days)
{
    if (num_load_u64(at) != num_load_u64(step->date) || at[8] != step->date[8] ||
        at[9] != step->date[9]) {
        i32 days;
        enum reject_reason reason;
        if (decode_date((str){(const char *)at, 10}, &days, &reason) != DECODE_FITS) {
            return false;
        }
        memcpy(step->date, at, 10);
        step->days = days;
    }
    *out_days = step->days;
    return true;
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
    i64 days;
    i64 seconds;
    i64 nanoseconds;
    i64 offset;
    if (!read_days(step, at, &days) || days > DAYS_NEAR || days < -DAYS_NEAR ||
        (at[10] != 'T' && at[10] != ' ') || !read_clock(num_load_u64(at + 11), &seconds)) {
        return NULL;
    }
    at = read_fraction(at + 19, &nanoseconds);
    at = at != NULL ? read_zone(at, step->zoned, &offset) : NULL;
    if (at == NULL) {
        return NULL;
    }
    seconds += days * 86400 - offset;
    i64 value = step->nanoseconds ? seconds * 1000000000 + nanoseconds
                                  : seconds * TIME_SECOND_US + nanoseconds / 1000;
    return put_fixed(step->column, &value, sizeof(value)) ? at : NULL;
}

static inline const u8 *read_date(struct decode_step *step, const u8 *at)
{
    i64 days;
    if (!read_days(step, at, &days) || at[10] != '"') {
        return NULL;
    }
    i32 narrow = (i32)days;
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

/* Any form of a scalar, as the tree reads it. */
static COLD const u8 *walk_scalar(struct straight *straight, const struct decode_step *step,
                                  const u8 *at)
{
    struct json_reader reader;
    json_reader_init(&reader, (str){(const char *)at, (size_t)(straight->end - at)});
    enum json_token token = json_next(&reader);
    if (token != JSON_TOKEN_STRING && token != JSON_TOKEN_NUMBER) {
        return NULL;
    }
    enum json_kind kind = token == JSON_TOKEN_STRING ? JSON_KIND_STRING : JSON_KIND_NUMBER;
    struct decode_scalar value = {0};
    enum reject_reason reason;
    buf_truncate(&straight->scratch, 0);
    if (!buf_reserve(&straight->scratch, 2 * reader.text.size + 64) ||
        decode_scalar_read(&step->plan->field->type, kind, reader.text, &straight->scratch, &value,
                           &reason) != DECODE_FITS ||
        !decode_value_append(step->column, &value)) {
        return NULL;
    }
    return at + reader.at;
}

static const u8 *walk_null(const struct decode_step *step, const u8 *at)
{
    bool null = step->nullable && memcmp(at, "null", 4) == 0;
    return null && column_append_null(step->column) ? at + 4 : NULL;
}

/* ---- nested ---- */

static const u8 *walk_nested(struct straight *straight, struct decode_step *step, const u8 *at);

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
        return quote ? walk_string(step->column, at + 1) : NULL;
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

/* All but the usual form of a scalar. */
static COLD const u8 *walk_unusual(struct straight *straight, struct decode_step *step,
                                   const u8 *at)
{
    if (step->fields != NULL) {
        return walk_nested(straight, step, at);
    }
    bool any = *at != 'n' && step->kind != TYPE_STRING && step->kind != TYPE_VARIANT;
    return any ? walk_scalar(straight, step, at) : walk_null(step, at);
}

static HOT const u8 *walk_field(struct straight *straight, struct decode_step *step, const u8 *at)
{
    const u8 *usual = read_usual(step, at);
    return usual != NULL ? usual : walk_unusual(straight, step, at);
}

/* The same out of line, for what is inside of lists and maps. */
static const u8 *walk_value(struct straight *straight, struct decode_step *step, const u8 *at)
{
    return walk_field(straight, step, at);
}

/* Behind a value: past a comma and the space around it, or to the end of what it stands in. NULL:
 * neither. */
static inline const u8 *skip_comma(const u8 *at, u8 end, bool *out_more)
{
    at = skip_space(at);
    *out_more = *at == ',';
    if (*out_more) {
        return skip_space(at + 1);
    }
    return *at == end ? at + 1 : NULL;
}

static inline const u8 *skip_colon(const u8 *at)
{
    at = skip_space(at);
    return *at == ':' ? skip_space(at + 1) : NULL;
}

/* A name with escapes, or a long one. */
static COLD const u8 *walk_odd_name(struct straight *straight, struct decode_step *step,
                                    const u8 *at, struct decode_step **out_field)
{
    struct json_reader reader;
    bool lone = false;
    json_reader_init(&reader, (str){(const char *)at, (size_t)(straight->end - at)});
    if (json_next(&reader) != JSON_TOKEN_STRING) {
        return NULL;
    }
    buf_truncate(&straight->scratch, 0);
    str name = json_unescape(&straight->scratch, reader.text, &lone);
    u32 field = name.data == NULL || lone ? DECODE_NONE
                                          : decode_plan_find(step->plan, name, DECODE_NONE);
    if (field == DECODE_NONE || step->fields[field].own) {
        return NULL;
    }
    *out_field = &step->fields[field];
    return skip_colon(at + reader.at);
}

/* A name that was not foretold. */
static COLD const u8 *walk_other_name(struct straight *straight, struct decode_step *step,
                                      const u8 *at, struct decode_step **out_field)
{
    u32 size = 0;
    u32 more;
    do {
        more = scan_look(at + 1 + size).size;
        size += more;
    } while (more == SCAN_BYTES && size < SCAN_KEY_BYTES - SCAN_BYTES);
    if (at[0] != '"' || at[1 + size] != '"' || size > SCAN_KEY_BYTES - 3) {
        return walk_odd_name(straight, step, at, out_field);
    }
    u32 mask = (UINT32_C(1) << (64 - step->slot_shift)) - 1;
    u32 slot = decode_step_slot(step, at + 1, size);
    for (; step->slots[slot] != 0; slot = (slot + 1) & mask) {
        struct decode_step *field = &step->fields[step->slots[slot] - 1];
        if (field->key.size == size + 3 && memcmp(at, field->key.bytes, size + 2) == 0) {
            *out_field = field;
            return skip_colon(at + size + 2);
        }
    }
    return NULL;
}

/* A name and its colon; `foretold` are the two that were seen here last, and become this one and
 * the last. */
static inline const u8 *walk_name(struct straight *straight, struct decode_step *step, const u8 *at,
                                  struct decode_step **foretold, struct decode_step **out_field)
{
    struct decode_step *last = foretold[0];
    *out_field = last;
    if (scan_is_key(at, &last->key)) {
        return skip_space(at + last->key.size);
    }
    struct decode_step *other = foretold[1];
    if (scan_is_key(at, &other->key)) {
        *out_field = other;
        at = skip_space(at + other->key.size);
    } else {
        at = walk_other_name(straight, step, at, out_field);
    }
    foretold[0] = *out_field;
    foretold[1] = last;
    return at;
}

/* Fields that the object does not have. */
static bool fill_absent(const struct decode_step *step, i64 row)
{
    for (u32 i = 0; i < step->field_count; i++) {
        const struct decode_step *field = &step->fields[i];
        if (field->column->count != row || field->own) {
            continue;
        }
        bool filled = false;
        if (field->plan->has_default) {
            /* A default helps no key, and one of a struct is its fields'. */
            filled = field->kind != TYPE_STRUCT && field->plan->role == DECODE_ORDINARY &&
                     decode_value_copy(field->column, field->plan->default_value, 0);
        } else {
            filled = field->nullable && column_append_null(field->column);
        }
        if (!filled) {
            return false;
        }
    }
    return true;
}

/* From behind the brace; the fields' columns have `row` values. */
static const u8 *walk_object(struct straight *straight, struct decode_step *step, const u8 *at,
                             i64 row)
{
    u32 sent = 0;
    struct decode_step **foretold = step->first;
    at = skip_space(at);
    bool more = *at != '}';
    at += more ? 0 : 1;
    while (more) {
        struct decode_step *field;
        at = walk_name(straight, step, at, foretold, &field);
        /* No name comes twice. */
        if (at == NULL || field->column->count != row) {
            return NULL;
        }
        at = walk_field(straight, field, at);
        at = at != NULL ? skip_comma(at, '}', &more) : NULL;
        if (at == NULL) {
            return NULL;
        }
        foretold = field->next;
        sent++;
    }
    return sent == step->sent_count || fill_absent(step, row) ? at : NULL;
}

static const u8 *walk_struct(struct straight *straight, struct decode_step *step, const u8 *at)
{
    at = walk_object(straight, step, at + 1, step->column->count);
    return at != NULL && column_append_nested(step->column) ? at : NULL;
}

static const u8 *walk_list(struct straight *straight, struct decode_step *step, const u8 *at)
{
    at = skip_space(at + 1);
    bool more = *at != ']';
    at += more ? 0 : 1;
    while (more) {
        at = walk_value(straight, &step->fields[0], at);
        at = at != NULL ? skip_comma(at, ']', &more) : NULL;
        if (at == NULL) {
            return NULL;
        }
    }
    return column_append_nested(step->column) ? at : NULL;
}

/* The last key is none of those from value `first` on. */
static bool key_is_new(const struct column *keys, i64 first)
{
    i64 last = keys->count - 1;
    for (i64 i = first; i < last; i++) {
        if (decode_value_equal(keys, i, last)) {
            return false;
        }
    }
    return true;
}

/* Of string keys, and not too many of them. */
static const u8 *walk_map(struct straight *straight, struct decode_step *step, const u8 *at)
{
    enum { KEYS_MAX = 16 };
    struct column *keys = step->fields[0].column;
    i64 first = keys->count;
    at = skip_space(at + 1);
    bool more = *at != '}';
    at += more ? 0 : 1;
    while (more) {
        at = *at == '"' ? walk_string(keys, at + 1) : NULL;
        if (at == NULL || keys->count - first > KEYS_MAX || !key_is_new(keys, first)) {
            return NULL;
        }
        at = skip_colon(at);
        at = at != NULL ? walk_value(straight, &step->fields[1], at) : NULL;
        at = at != NULL ? skip_comma(at, '}', &more) : NULL;
        if (at == NULL) {
            return NULL;
        }
    }
    return column_append_nested(step->column) ? at : NULL;
}

static const u8 *walk_nested(struct straight *straight, struct decode_step *step, const u8 *at)
{
    if (step->kind == TYPE_STRUCT && *at == '{') {
        return walk_struct(straight, step, at);
    }
    if (step->kind == TYPE_LIST && *at == '[') {
        return walk_list(straight, step, at);
    }
    if (step->kind == TYPE_MAP && *at == '{' && step->fields[0].kind == TYPE_STRING) {
        return walk_map(straight, step, at);
    }
    return walk_null(step, at);
}

#if defined(STRAIGHT_WIDE)
bool straight_row_wide(struct straight *straight, str line, i64 row)
#else
bool straight_row_portable(struct straight *straight, str line, i64 row)
#endif
{
    const u8 *at = skip_space((const u8 *)line.data);
    straight->end = (const u8 *)line.data + line.size;
    assert(*straight->end == '\n');
    at = *at == '{' ? walk_object(straight, &straight->root, at + 1, row) : NULL;
    return at != NULL && skip_space(at) == straight->end;
}
