#include "base/assert.h"
#include "base/decimal.h"
#include "base/utf8.h"
#include "format/variant.h"
#include "format/variant_encoding.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Bytes from outside: every count, width and offset is looked at before it is used. */

enum {
    DOUBLE_DIGITS_LEAST = 15,
    DOUBLE_DIGITS_EXACT = 17,
    DOUBLE_TEXT_BYTES = 32,
};

MUST_USE static err print_corrupt(struct error *error, const char *what)
{
    return error_set(error, CORRUPT, ERROR_INTERNAL, "no variant: %s", what);
}

/* `width` bytes at `at`, little-endian. False: they are not all there. */
static bool take_number(str bytes, size_t at, u32 width, u32 *out_value)
{
    if (at > bytes.size || bytes.size - at < width) {
        return false;
    }
    u32 value = 0;
    for (u32 i = 0; i < width; i++) {
        value |= (u32)(u8)bytes.data[at + i] << (8 * i);
    }
    *out_value = value;
    return true;
}

/* ---- tables of offsets: count + 1 of them, then the bytes that they cut up ---- */

struct offsets {
    str table;
    str bytes;
    u32 count;
    u32 width;
};

/* The last offset says how long the bytes are; what is behind them is left over. */
static bool offsets_open(str rest, u32 count, u32 width, struct offsets *out_offsets)
{
    size_t size = ((size_t)count + 1) * width;
    u32 end = 0;
    if (rest.size < size || !take_number(rest, (size_t)count * width, width, &end) ||
        end > rest.size - size) {
        return false;
    }
    *out_offsets = (struct offsets){
        .table = str_slice(rest, 0, size),
        .bytes = str_slice(rest, size, size + end),
        .count = count,
        .width = width,
    };
    return true;
}

/* From offset `index` to the end of the bytes. */
static bool offsets_from(const struct offsets *offsets, u32 index, str *out_bytes)
{
    u32 start = 0;
    if (!take_number(offsets->table, (size_t)index * offsets->width, offsets->width, &start) ||
        start > offsets->bytes.size) {
        return false;
    }
    *out_bytes = str_slice(offsets->bytes, start, offsets->bytes.size);
    return true;
}

/* ---- names ---- */

static bool names_open(str metadata, struct offsets *out_names)
{
    u8 header = metadata.size > 0 ? (u8)metadata.data[0] : 0;
    u32 width = (header >> VARIANT_META_WIDTH_SHIFT) + 1U;
    u32 count = 0;
    return (header & VARIANT_META_VERSION_MASK) == VARIANT_VERSION &&
           take_number(metadata, 1, width, &count) &&
           offsets_open(str_slice(metadata, 1 + (size_t)width, metadata.size), count, width,
                        out_names);
}

static bool name_get(const struct offsets *names, u32 id, str *out_name)
{
    str from = {0};
    str behind = {0};
    if (id >= names->count || !offsets_from(names, id, &from) ||
        !offsets_from(names, id + 1, &behind) || behind.size > from.size) {
        return false;
    }
    *out_name = str_slice(from, 0, from.size - behind.size);
    return utf8_valid(*out_name);
}

/* ---- scalars ---- */

static void print_double(buf *out, double value)
{
    char text[DOUBLE_TEXT_BYTES];
    for (int digits = DOUBLE_DIGITS_LEAST; digits <= DOUBLE_DIGITS_EXACT; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (memcmp(&back, &value, sizeof(value)) == 0) {
            break;
        }
    }
    buf_append(out, str_from(text));
}

static bool print_string(buf *out, str text)
{
    if (!utf8_valid(text)) {
        return false;
    }
    buf_append_json_string(out, text);
    return true;
}

/* `size` bytes, sign-extended. */
static i128 take_integer(const char *bytes, size_t size)
{
    u128 value = ((u8)bytes[size - 1] & 0x80) != 0 ? ~(u128)0 : 0;
    for (size_t i = size; i > 0; i--) {
        value = value << 8 | (u8)bytes[i - 1];
    }
    return (i128)value;
}

/* The scale, then the digits. */
static bool print_decimal(buf *out, str rest, size_t size)
{
    if (rest.size < 1 + size || (u8)rest.data[0] > VARIANT_DECIMAL_SCALE_MAX) {
        return false;
    }
    static const i128 limit = (i128)1000000000000000000 * 1000000000000000000 * 100;
    i128 unscaled = take_integer(rest.data + 1, size);
    if (unscaled <= -limit || unscaled >= limit) {
        return false;
    }
    char text[48];
    size_t length = decimal_format(unscaled, (u8)rest.data[0], text);
    buf_append_bytes(out, text, length);
    return true;
}

static bool print_integer(buf *out, str rest, size_t size)
{
    if (rest.size < size) {
        return false;
    }
    buf_append_i64(out, (i64)take_integer(rest.data, size));
    return true;
}

static bool print_primitive(buf *out, u32 type, str rest)
{
    u32 size = 0;
    double number = 0;
    switch (type) {
    case VARIANT_NULL:
        buf_append(out, STR("null"));
        return true;
    case VARIANT_TRUE:
        buf_append(out, STR("true"));
        return true;
    case VARIANT_FALSE:
        buf_append(out, STR("false"));
        return true;
    case VARIANT_INT8:
    case VARIANT_INT16:
    case VARIANT_INT32:
    case VARIANT_INT64:
        return print_integer(out, rest, (size_t)1 << (type - VARIANT_INT8));
    case VARIANT_DECIMAL4:
    case VARIANT_DECIMAL8:
    case VARIANT_DECIMAL16:
        return print_decimal(out, rest, (size_t)4 << (type - VARIANT_DECIMAL4));
    case VARIANT_DOUBLE:
        if (rest.size < sizeof(number)) {
            return false;
        }
        memcpy(&number, rest.data, sizeof(number));
        print_double(out, number);
        return isfinite(number);
    case VARIANT_STRING:
        return take_number(rest, 0, 4, &size) && size <= rest.size - 4 &&
               print_string(out, str_slice(rest, 4, 4 + (size_t)size));
    default:
        return false;
    }
}

/* ---- arrays and objects ---- */

struct print_frame {
    struct offsets items;
    str ids; /* of an object */
    u32 id_width;
    u32 next;
    bool is_object;
};

struct printing {
    struct offsets names;
    buf *out;
    struct print_frame frames[VARIANT_DEPTH_MAX];
    i32 depth;
};

/* `rest` follows the first byte, whose upper six bits are `bits`. */
static bool frame_open(struct printing *printing, bool is_object, u32 bits, str rest)
{
    struct print_frame frame = {.is_object = is_object};
    u32 large = is_object ? bits >> 4 & 1 : bits >> 2 & 1;
    u32 count_width = large != 0 ? 4 : 1;
    u32 count = 0;
    if (printing->depth == VARIANT_DEPTH_MAX || !take_number(rest, 0, count_width, &count)) {
        return false;
    }
    rest = str_slice(rest, count_width, rest.size);
    if (is_object) {
        frame.id_width = (bits >> 2 & 3) + 1;
        size_t size = (size_t)count * frame.id_width;
        if (rest.size < size) {
            return false;
        }
        frame.ids = str_slice(rest, 0, size);
        rest = str_slice(rest, size, rest.size);
    }
    if (!offsets_open(rest, count, (bits & 3) + 1, &frame.items)) {
        return false;
    }
    buf_append_byte(printing->out, is_object ? '{' : '[');
    printing->frames[printing->depth++] = frame;
    return true;
}

static bool print_value(struct printing *printing, str value)
{
    if (value.size == 0) {
        return false;
    }
    u8 first = (u8)value.data[0];
    u32 bits = first >> 2;
    str rest = str_slice(value, 1, value.size);
    switch (first & 3) {
    case VARIANT_BASIC_SHORT_STRING:
        return bits <= rest.size && print_string(printing->out, str_slice(rest, 0, bits));
    case VARIANT_BASIC_OBJECT:
        return frame_open(printing, true, bits, rest);
    case VARIANT_BASIC_ARRAY:
        return frame_open(printing, false, bits, rest);
    default:
        return print_primitive(printing->out, bits, rest);
    }
}

/* The next item of the innermost container, or its end. */
static bool print_step(struct printing *printing)
{
    struct print_frame *frame = &printing->frames[printing->depth - 1];
    if (frame->next == frame->items.count) {
        buf_append_byte(printing->out, frame->is_object ? '}' : ']');
        printing->depth--;
        return true;
    }
    u32 index = frame->next++;
    if (index > 0) {
        buf_append_byte(printing->out, ',');
    }
    if (frame->is_object) {
        u32 id = 0;
        str name = {0};
        if (!take_number(frame->ids, (size_t)index * frame->id_width, frame->id_width, &id) ||
            !name_get(&printing->names, id, &name)) {
            return false;
        }
        buf_append_json_string(printing->out, name);
        buf_append_byte(printing->out, ':');
    }
    str value = {0};
    return offsets_from(&frame->items, index, &value) && print_value(printing, value);
}

err variant_print(struct arena *arena, str metadata, str value, buf *out, struct error *error)
{
    struct printing *printing = arena_alloc(arena, sizeof(*printing));
    if (printing == NULL) {
        return error_memory(error);
    }
    *printing = (struct printing){.out = out};
    if (!names_open(metadata, &printing->names)) {
        return print_corrupt(error, "its metadata");
    }
    bool good = print_value(printing, value);
    while (good && printing->depth > 0 && buf_ok(out)) {
        good = print_step(printing);
    }
    if (!good) {
        return print_corrupt(error, "its value");
    }
    return buf_ok(out) ? OK : error_memory(error);
}
