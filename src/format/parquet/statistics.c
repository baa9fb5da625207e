#include "format/parquet/statistics.h"

#include "base/assert.h"
#include "base/decimal.h"
#include "base/utf8.h"
#include "format/extremes.h"

/* ---- order ---- */

static enum extremes_type number_type(enum leaf_physical physical)
{
    switch (physical) {
    case LEAF_BOOLEAN:
        return EXTREMES_U8;
    case LEAF_INT32:
        return EXTREMES_I32;
    case LEAF_INT64:
        return EXTREMES_I64;
    case LEAF_FLOAT:
        return EXTREMES_FLOAT;
    case LEAF_DOUBLE:
        return EXTREMES_DOUBLE;
    case LEAF_BYTE_ARRAY:
    case LEAF_FIXED:
        break;
    }
    assert(false);
    return EXTREMES_U8;
}

static int number_compare(enum leaf_physical physical, str a, str b)
{
    enum extremes_type type = number_type(physical);
    i64 key_a = extremes_key(type, (const u8 *)a.data);
    i64 key_b = extremes_key(type, (const u8 *)b.data);
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

enum { BOUNDS_BLOCK = 1024 };

/* The bounds so far, as keys, and where the block begins that has the first of each. */
struct number_bounds {
    struct extremes keys;
    i64 least_at; /* -1: there is none */
    i64 greatest_at;
};

/* Of the others. Returns how many NaNs there are. */
static i64 extremes_without_nans(enum extremes_type type, const u8 *data, size_t width, i64 count,
                                 struct extremes *out_keys)
{
    struct extremes keys = {INT64_MAX, INT64_MIN};
    i64 nans = 0;
    for (i64 i = 0; i < count; i++) {
        i64 key = extremes_key(type, data + (size_t)i * width);
        if (extremes_key_is_nan(type, key)) {
            nans++;
            continue;
        }
        keys.least = key < keys.least ? key : keys.least;
        keys.greatest = key > keys.greatest ? key : keys.greatest;
    }
    *out_keys = keys;
    return nans;
}

/* Returns the block's NaNs, which move no bound. */
static i64 widen_by_block(const struct values *values, i64 from, i64 to,
                          struct number_bounds *bounds)
{
    enum extremes_type type = number_type(values->physical);
    const u8 *data = values->data + (size_t)from * values->width;
    struct extremes keys = extremes_best()(type, data, to - from);
    i64 nans = 0;
    if (extremes_key_is_nan(type, keys.least) || extremes_key_is_nan(type, keys.greatest)) {
        nans = extremes_without_nans(type, data, values->width, to - from, &keys);
    }
    if (nans == to - from) {
        return nans;
    }
    if (bounds->least_at < 0 || keys.least < bounds->keys.least) {
        bounds->keys.least = keys.least;
        bounds->least_at = from;
    }
    if (bounds->greatest_at < 0 || keys.greatest > bounds->keys.greatest) {
        bounds->keys.greatest = keys.greatest;
        bounds->greatest_at = from;
    }
    return nans;
}

/* The first value of this key, from `at` on. */
static str find_key(const struct values *values, i64 at, i64 wanted)
{
    enum extremes_type type = number_type(values->physical);
    while (extremes_key(type, values->data + (size_t)at * values->width) != wanted) {
        at++;
    }
    return values_at(values, at);
}

static struct bounds bounds_of_numbers(const struct values *values, i64 from, i64 to, i64 *nans)
{
    struct number_bounds bounds = {.least_at = -1, .greatest_at = -1};
    for (i64 block = from; block < to; block += BOUNDS_BLOCK) {
        *nans += widen_by_block(values, block, num_min_i64(block + BOUNDS_BLOCK, to), &bounds);
    }
    if (bounds.least_at < 0) {
        return (struct bounds){0};
    }
    return (struct bounds){find_key(values, bounds.least_at, bounds.keys.least),
                           find_key(values, bounds.greatest_at, bounds.keys.greatest)};
}

static inline i64 selected(const u32 *selection, i64 index)
{
    return selection != NULL ? (i64)selection[index] : index;
}

/* Sorts as the value's first bytes do; equal ones say nothing. */
static inline u64 bytes_key(str value)
{
    const u8 *bytes = (const u8 *)value.data;
    size_t size = value.size;
    if (size >= sizeof(u64)) {
        return __builtin_bswap64(num_load_u64(bytes));
    }
    if (size >= sizeof(u32)) {
        u64 first = __builtin_bswap32(num_load_u32(bytes));
        u64 last = __builtin_bswap32(num_load_u32(bytes + size - sizeof(u32)));
        return first << 32 | last << (64 - 8 * size);
    }
    u64 key = 0;
    for (size_t i = 0; i < size; i++) {
        key |= (u64)bytes[i] << (56 - 8 * i);
    }
    return key;
}

/* Whether all have eight bytes at `at`, and the same. The last one is looked at first: it differs
 * in most columns. */
static bool bytes_are_shared(const struct values *values, const u32 *selection, i64 from, i64 to,
                             size_t at)
{
    str last = values_at(values, selected(selection, to - 1));
    if (last.size < at + sizeof(u64)) {
        return false;
    }
    u64 wanted = num_load_u64(last.data + at);
    u64 differing = 0;
    for (i64 i = from; i < to && differing == 0; i++) {
        str value = values_at(values, selected(selection, i));
        if (value.size < at + sizeof(u64)) {
            return false;
        }
        differing = num_load_u64(value.data + at) ^ wanted;
    }
    return differing == 0;
}

/* Not of decimals, whose first bit is a sign. */
static struct bounds bounds_of_bytes(const struct values *values, const u32 *selection, i64 from,
                                     i64 to)
{
    size_t shared = 0;
    while (to - from > 1 && bytes_are_shared(values, selection, from, to, shared)) {
        shared += sizeof(u64);
    }
    str first = values_at(values, selected(selection, from));
    struct bounds bounds = {first, first};
    u64 least = bytes_key((str){first.data + shared, first.size - shared});
    u64 greatest = least;
    for (i64 i = from + 1; i < to; i++) {
        str value = values_at(values, selected(selection, i));
        u64 key = bytes_key((str){value.data + shared, value.size - shared});
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
                        i64 from, i64 to, i64 *nans)
{
    if (!leaf_is_number(leaf)) {
        return bounds_of_arrays(leaf, values, selection, from, to);
    }
    assert(selection == NULL);
    return bounds_of_numbers(values, from, to, nans);
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
