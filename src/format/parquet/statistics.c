#include "format/parquet/statistics.h"

#include "base/assert.h"
#include "base/decimal.h"
#include "base/utf8.h"

#define STATISTICS_INLINE inline __attribute__((always_inline))

/* ---- order ---- */

#define FLOAT_INFINITY_BITS  0x7f800000U
#define DOUBLE_INFINITY_BITS 0x7ff0000000000000U

/* A number that sorts as the value does; false for NaN. Floats in their total order: a negative
 * one's other bits are turned round. */
static STATISTICS_INLINE bool number_key(enum leaf_physical physical, const u8 *value, i64 *out_key)
{
    u32 bits32 = 0;
    u64 bits64 = 0;
    switch (physical) {
    case LEAF_BOOLEAN:
        *out_key = *value;
        return true;
    case LEAF_INT32:
        *out_key = (i32)num_load_u32(value);
        return true;
    case LEAF_INT64:
        *out_key = (i64)num_load_u64(value);
        return true;
    case LEAF_FLOAT:
        bits32 = num_load_u32(value);
        *out_key = (i32)(bits32 >> 31 != 0 ? bits32 ^ INT32_MAX : bits32);
        return (bits32 & INT32_MAX) <= FLOAT_INFINITY_BITS;
    case LEAF_DOUBLE:
        bits64 = num_load_u64(value);
        *out_key = (i64)(bits64 >> 63 != 0 ? bits64 ^ INT64_MAX : bits64);
        return (bits64 & INT64_MAX) <= DOUBLE_INFINITY_BITS;
    case LEAF_BYTE_ARRAY:
    case LEAF_FIXED:
        return false;
    }
    return false;
}

static bool leaf_is_number(const struct leaf *leaf)
{
    return leaf->physical != LEAF_BYTE_ARRAY && leaf->physical != LEAF_FIXED;
}

static int number_compare(enum leaf_physical physical, str a, str b)
{
    i64 key_a = 0;
    i64 key_b = 0;
    bool comparable = number_key(physical, (const u8 *)a.data, &key_a) &&
                      number_key(physical, (const u8 *)b.data, &key_b);
    assert(comparable);
    return (key_a > key_b) - (key_a < key_b);
}

/* Big-endian two's complement of equal width: only the first byte has a sign. */
static int decimal_compare(str a, str b)
{
    i8 sign_a = (i8)a.data[0];
    i8 sign_b = (i8)b.data[0];
    if (sign_a != sign_b) {
        return sign_a < sign_b ? -1 : 1;
    }
    return str_compare(a, b);
}

static int leaf_compare(const struct leaf *leaf, str a, str b)
{
    if (leaf_is_number(leaf)) {
        return number_compare(leaf->physical, a, b);
    }
    return leaf->field->type.kind == TYPE_DECIMAL ? decimal_compare(a, b) : str_compare(a, b);
}

/* ---- least and greatest ---- */

static STATISTICS_INLINE i64 selected(const u32 *selection, i64 index)
{
    return selection != NULL ? (i64)selection[index] : index;
}

enum { BOUNDS_BLOCK = 256 };

struct extremes {
    i64 least;
    i64 greatest;
    i64 least_at; /* the block with the first of them, then the value itself; -1: there is none */
    i64 greatest_at;
};

/* Without branches: a NaN moves neither. */
static STATISTICS_INLINE void extremes_of_block(enum leaf_physical physical,
                                                const struct values *values, const u32 *selection,
                                                i64 from, i64 to, struct extremes *extremes)
{
    i64 least = INT64_MAX;
    i64 greatest = INT64_MIN;
    i64 seen = 0;
    for (i64 i = from; i < to; i++) {
        i64 index = selected(selection, i);
        i64 key = 0;
        bool comparable = number_key(physical, values->data + (size_t)index * values->width, &key);
        i64 low = comparable ? key : INT64_MAX;
        i64 high = comparable ? key : INT64_MIN;
        least = low < least ? low : least;
        greatest = high > greatest ? high : greatest;
        seen += comparable;
    }
    if (seen > 0 && (extremes->least_at < 0 || least < extremes->least)) {
        extremes->least = least;
        extremes->least_at = from;
    }
    if (seen > 0 && (extremes->greatest_at < 0 || greatest > extremes->greatest)) {
        extremes->greatest = greatest;
        extremes->greatest_at = from;
    }
}

/* The first value of this key, from `at` on. */
static STATISTICS_INLINE str find_key(enum leaf_physical physical, const struct values *values,
                                      const u32 *selection, i64 at, i64 wanted)
{
    for (;; at++) {
        i64 index = selected(selection, at);
        i64 key = 0;
        if (number_key(physical, values->data + (size_t)index * values->width, &key) &&
            key == wanted) {
            return values_at(values, index);
        }
    }
}

static STATISTICS_INLINE struct bounds bounds_of_numbers(enum leaf_physical physical,
                                                         const struct values *values,
                                                         const u32 *selection, i64 from, i64 to)
{
    struct extremes extremes = {.least_at = -1, .greatest_at = -1};
    for (i64 block = from; block < to; block += BOUNDS_BLOCK) {
        i64 end = num_min_i64(block + BOUNDS_BLOCK, to);
        if (selection != NULL) {
            extremes_of_block(physical, values, selection, block, end, &extremes);
        } else {
            extremes_of_block(physical, values, NULL, block, end, &extremes);
        }
    }
    if (extremes.least_at < 0) {
        return (struct bounds){0};
    }
    return (struct bounds){
        find_key(physical, values, selection, extremes.least_at, extremes.least),
        find_key(physical, values, selection, extremes.greatest_at, extremes.greatest),
    };
}

/* Sorts as the value's first bytes do; equal ones say nothing. */
static STATISTICS_INLINE u64 bytes_key(str value)
{
    if (value.size >= sizeof(u64)) {
        return __builtin_bswap64(num_load_u64(value.data));
    }
    u64 key = 0;
    for (size_t i = 0; i < value.size; i++) {
        key |= (u64)(u8)value.data[i] << (56 - 8 * i);
    }
    return key;
}

/* Not of decimals, whose first bit is a sign. */
static struct bounds bounds_of_bytes(const struct values *values, const u32 *selection, i64 from,
                                     i64 to)
{
    str first = values_at(values, selected(selection, from));
    struct bounds bounds = {first, first};
    u64 least = bytes_key(first);
    u64 greatest = least;
    for (i64 i = from + 1; i < to; i++) {
        str value = values_at(values, selected(selection, i));
        u64 key = bytes_key(value);
        if (key < least || (key == least && str_compare(value, bounds.lower) < 0)) {
            bounds.lower = value;
            least = key;
        }
        if (key > greatest || (key == greatest && str_compare(value, bounds.upper) > 0)) {
            bounds.upper = value;
            greatest = key;
        }
    }
    return bounds;
}

static struct bounds bounds_of_decimals(const struct values *values, const u32 *selection, i64 from,
                                        i64 to)
{
    str first = values_at(values, selected(selection, from));
    struct bounds bounds = {first, first};
    for (i64 i = from + 1; i < to; i++) {
        str value = values_at(values, selected(selection, i));
        if (decimal_compare(value, bounds.lower) < 0) {
            bounds.lower = value;
        } else if (decimal_compare(value, bounds.upper) > 0) {
            bounds.upper = value;
        }
    }
    return bounds;
}

static struct bounds bounds_of_arrays(const struct leaf *leaf, const struct values *values,
                                      const u32 *selection, i64 from, i64 to)
{
    if (from == to) {
        return (struct bounds){0};
    }
    struct bounds bounds = leaf->field->type.kind == TYPE_DECIMAL
                               ? bounds_of_decimals(values, selection, from, to)
                               : bounds_of_bytes(values, selection, from, to);
    /* An empty string is a bound too, although its bytes may be nowhere. */
    if (bounds.lower.data == NULL) {
        bounds.lower = STR("");
    }
    if (bounds.upper.data == NULL) {
        bounds.upper = STR("");
    }
    return bounds;
}

struct bounds bounds_of(const struct leaf *leaf, const struct values *values, const u32 *selection,
                        i64 from, i64 to)
{
    switch (values->physical) {
    case LEAF_BOOLEAN:
        return bounds_of_numbers(LEAF_BOOLEAN, values, selection, from, to);
    case LEAF_INT32:
        return bounds_of_numbers(LEAF_INT32, values, selection, from, to);
    case LEAF_INT64:
        return bounds_of_numbers(LEAF_INT64, values, selection, from, to);
    case LEAF_FLOAT:
        return bounds_of_numbers(LEAF_FLOAT, values, selection, from, to);
    case LEAF_DOUBLE:
        return bounds_of_numbers(LEAF_DOUBLE, values, selection, from, to);
    case LEAF_BYTE_ARRAY:
    case LEAF_FIXED:
        return bounds_of_arrays(leaf, values, selection, from, to);
    }
    return (struct bounds){0};
}

void bounds_widen(const struct leaf *leaf, struct bounds *bounds, struct bounds more)
{
    if (more.lower.data != NULL &&
        (bounds->lower.data == NULL || leaf_compare(leaf, more.lower, bounds->lower) < 0)) {
        bounds->lower = more.lower;
    }
    if (more.upper.data != NULL &&
        (bounds->upper.data == NULL || leaf_compare(leaf, more.upper, bounds->upper) > 0)) {
        bounds->upper = more.upper;
    }
}

i64 statistics_count_nans(const struct values *values)
{
    if (values->physical != LEAF_FLOAT && values->physical != LEAF_DOUBLE) {
        return -1;
    }
    i64 count = 0;
    if (values->physical == LEAF_FLOAT) {
        for (i64 i = 0; i < values->count; i++) {
            count += (num_load_u32(values->data + i * 4) & INT32_MAX) > FLOAT_INFINITY_BITS;
        }
    } else {
        for (i64 i = 0; i < values->count; i++) {
            count += (num_load_u64(values->data + i * 8) & INT64_MAX) > DOUBLE_INFINITY_BITS;
        }
    }
    return count;
}

/* ---- cutting ---- */

static bool byte_continues(char byte)
{
    return ((u8)byte & 0xc0) == 0x80;
}

/* The size of the first code points or bytes. */
static size_t cut_size(enum type_kind kind, str value, i64 units_max)
{
    if (units_max == PARQUET_BOUND_WHOLE || (i64)value.size <= units_max) {
        return value.size;
    }
    if (kind == TYPE_BINARY) {
        return (size_t)units_max;
    }
    i64 units = 0;
    size_t at = 0;
    while (at < value.size) {
        if (!byte_continues(value.data[at]) && units++ == units_max) {
            break;
        }
        at++;
    }
    return at;
}

/* The last byte that can be raised is, what stands behind it goes. False: there is none. */
static bool raise_bytes(char *bytes, size_t *size)
{
    while (*size > 0) {
        u8 last = (u8)bytes[*size - 1];
        if (last < UINT8_MAX) {
            bytes[*size - 1] = (char)(last + 1);
            return true;
        }
        (*size)--;
    }
    return false;
}

static u32 decode_code_point(const char *bytes, size_t size)
{
    static const u8 masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    assert(size < ARRAY_COUNT(masks));
    u32 code_point = (u8)bytes[0] & masks[size];
    for (size_t i = 1; i < size; i++) {
        code_point = code_point << 6 | ((u8)bytes[i] & 0x3f);
    }
    return code_point;
}

/* The same by code points; `bytes` has room for one of 4 bytes at any of its code points. */
static bool raise_code_points(char *bytes, size_t *size)
{
    enum { SURROGATE_FIRST = 0xd800, SURROGATE_END = 0xe000, CODE_POINT_MAX = 0x10ffff };
    while (*size > 0) {
        size_t start = *size - 1;
        while (start > 0 && byte_continues(bytes[start])) {
            start--;
        }
        if (*size - start > 4) {
            return false; /* not UTF-8, so that there is nothing to raise */
        }
        u32 code_point = decode_code_point(bytes + start, *size - start) + 1;
        if (code_point == SURROGATE_FIRST) {
            code_point = SURROGATE_END;
        }
        if (code_point <= CODE_POINT_MAX) {
            *size = start + utf8_encode(code_point, bytes + start);
            return true;
        }
        *size = start;
    }
    return false;
}

MUST_USE static bool keep_copy(struct arena *arena, str value, str *out_kept)
{
    *out_kept = str_copy(arena, value);
    return out_kept->data != NULL;
}

/* The upper bound, cut and raised, or none. */
MUST_USE static bool keep_upper(enum type_kind kind, str value, size_t size, struct arena *arena,
                                str *out_kept)
{
    enum { CODE_POINT_BYTES_MAX = 4 };
    char *bytes = arena_alloc(arena, size + CODE_POINT_BYTES_MAX);
    if (bytes == NULL) {
        return false;
    }
    memcpy(bytes, value.data, size);
    bool raised = kind == TYPE_STRING ? raise_code_points(bytes, &size) : raise_bytes(bytes, &size);
    *out_kept = raised ? (str){bytes, size} : (str){0};
    return true;
}

bool bounds_keep(const struct leaf *leaf, struct bounds whole, i64 units_max, struct arena *arena,
                 struct kept_bounds *out_kept)
{
    struct kept_bounds kept = {.lower_exact = true, .upper_exact = true};
    enum type_kind kind = leaf->field->type.kind;
    i64 units = kind == TYPE_STRING || kind == TYPE_BINARY ? units_max : PARQUET_BOUND_WHOLE;
    if (whole.lower.data != NULL) {
        size_t size = cut_size(kind, whole.lower, units);
        kept.lower_exact = size == whole.lower.size;
        if (!keep_copy(arena, (str){whole.lower.data, size}, &kept.bounds.lower)) {
            return false;
        }
    }
    if (whole.upper.data != NULL) {
        size_t size = cut_size(kind, whole.upper, units);
        kept.upper_exact = size == whole.upper.size;
        bool done = kept.upper_exact
                        ? keep_copy(arena, whole.upper, &kept.bounds.upper)
                        : keep_upper(kind, whole.upper, size, arena, &kept.bounds.upper);
        if (!done) {
            return false;
        }
    }
    *out_kept = kept;
    return true;
}

/* ---- the two forms ---- */

static bool bytes_are_zero(str value, size_t without_last)
{
    for (size_t i = 0; i + without_last < value.size; i++) {
        if (value.data[i] != 0) {
            return false;
        }
    }
    return true;
}

struct bounds bounds_for_parquet(const struct leaf *leaf, struct bounds kept)
{
    static const char zero[8] = {0};
    static const char minus_zero_float[4] = {0, 0, 0, (char)0x80};
    static const char minus_zero_double[8] = {0, 0, 0, 0, 0, 0, 0, (char)0x80};
    if (leaf->physical != LEAF_FLOAT && leaf->physical != LEAF_DOUBLE) {
        return kept;
    }
    bool is_float = leaf->physical == LEAF_FLOAT;
    if (kept.lower.data != NULL && bytes_are_zero(kept.lower, 0)) {
        kept.lower.data = is_float ? minus_zero_float : minus_zero_double;
    }
    if (kept.upper.data != NULL && bytes_are_zero(kept.upper, 1) &&
        (u8)kept.upper.data[kept.upper.size - 1] == 0x80) {
        kept.upper.data = zero;
    }
    return kept;
}

/* A decimal of any physical type as the fewest bytes. */
MUST_USE static bool decimal_shorten(const struct leaf *leaf, struct arena *arena, str value,
                                     str *out_bytes)
{
    if (value.data == NULL) {
        *out_bytes = value;
        return true;
    }
    bool big_endian = leaf->physical == LEAF_FIXED;
    char top = value.data[big_endian ? 0 : value.size - 1];
    u8 wide[sizeof(i128)];
    memset(wide, top < 0 ? 0xff : 0, sizeof(wide));
    for (size_t i = 0; i < value.size; i++) {
        wide[i] = (u8)value.data[big_endian ? value.size - 1 - i : i];
    }
    i128 unscaled = 0;
    memcpy(&unscaled, wide, sizeof(unscaled));
    u8 bytes[16];
    size_t size = decimal_bytes(unscaled, bytes);
    return keep_copy(arena, (str){(const char *)bytes, size}, out_bytes);
}

bool bounds_for_iceberg(const struct leaf *leaf, struct bounds kept, struct arena *arena,
                        struct bounds *out_bounds)
{
    if (leaf->field->type.kind != TYPE_DECIMAL) {
        *out_bounds = kept;
        return true;
    }
    return decimal_shorten(leaf, arena, kept.lower, &out_bounds->lower) &&
           decimal_shorten(leaf, arena, kept.upper, &out_bounds->upper);
}
