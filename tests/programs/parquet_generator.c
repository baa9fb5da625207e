#include "parquet_generator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void fail(const char *what)
{
    fprintf(stderr, "parquet_case: %s\n", what);
    exit(2);
}

void *must(void *pointer)
{
    if (pointer == NULL) {
        fail("out of memory");
    }
    return pointer;
}

void check(bool ok)
{
    if (!ok) {
        fail("out of memory");
    }
}

/* splitmix64 */
u64 next(struct generator *generator)
{
    u64 z = generator->state += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

void comma(struct generator *g, size_t index)
{
    if (index > 0) {
        buf_append_byte(&g->json, ',');
    }
}

/* ---- values ---- */

void put_hex(buf *json, const void *bytes, size_t size)
{
    const u8 *at = bytes;
    buf_append_byte(json, '"');
    for (size_t i = 0; i < size; i++) {
        const char digits[] = "0123456789abcdef";
        buf_append_byte(json, (u8)digits[at[i] >> 4]);
        buf_append_byte(json, (u8)digits[at[i] & 15]);
    }
    buf_append_byte(json, '"');
}

static void put_fixed(struct column *column, const void *bytes)
{
    check(column_append_fixed(column, bytes));
}

void put_int(struct generator *g, struct column *column, i64 value)
{
    i32 narrow = (i32)value;
    put_fixed(column, &narrow);
    buf_append_i64(&g->json, value);
}

void put_long(struct generator *g, struct column *column, i64 value)
{
    put_fixed(column, &value);
    buf_append_i64(&g->json, value);
}

/* One of low, high, the middle, or anything between. */
static i64 pick(struct generator *g, u64 how, i64 low, i64 high)
{
    switch (how % 5) {
    case 0:
        return low;
    case 1:
        return high;
    case 2:
        return low <= 0 && high >= 0 ? 0 : low;
    default: {
        u64 span = (u64)high - (u64)low;
        return (i64)((u64)low + (span == UINT64_MAX ? next(g) : next(g) % (span + 1)));
    }
    }
}

static void put_decimal(struct generator *g, struct column *column, i32 precision, u64 how)
{
    i128 limit = 1;
    for (i32 i = 0; i < precision; i++) {
        limit *= 10;
    }
    i128 value = how % 4 == 0   ? limit - 1
                 : how % 4 == 1 ? 1 - limit
                 : how % 4 == 2 ? 0
                                : (i128)(((u128)next(g) << 64 | next(g)) % (u128)limit);
    value = how % 8 == 7 ? -value : value;
    put_fixed(column, &value);
    char digits[48];
    size_t at = sizeof(digits);
    u128 rest = value < 0 ? (u128)-value : (u128)value;
    do {
        digits[--at] = (char)('0' + (int)(rest % 10));
        rest /= 10;
    } while (rest > 0);
    buf_append_byte(&g->json, '"');
    if (value < 0) {
        buf_append_byte(&g->json, '-');
    }
    buf_append(&g->json, (str){digits + at, sizeof(digits) - at});
    buf_append_byte(&g->json, '"');
}

/* Any fixed-width value whose form in the JSON is the hex of its bytes. */
void put_raw(struct generator *g, struct column *column, const void *bytes, size_t size)
{
    put_fixed(column, bytes);
    put_hex(&g->json, bytes, size);
}

static void put_float(struct generator *g, struct column *column, u64 how)
{
    static const u32 edges[] = {0,           0x80000000U, 0x7f800000U, 0xff800000U, 0x7fc00000U,
                                0xffc00001U, 0x7f7fffffU, 1,           0x3f800000U, 0xc0490fdbU};
    u32 bits = how % 16 < ARRAY_COUNT(edges) ? edges[how % 16] : (u32)next(g) & 0xbf7fffffU;
    put_raw(g, column, &bits, sizeof(bits));
}

static void put_double(struct generator *g, struct column *column, u64 how)
{
    static const u64 edges[] = {0,
                                0x8000000000000000U,
                                0x7ff0000000000000U,
                                0xfff0000000000000U,
                                0x7ff8000000000000U,
                                0xfff8000000000001U,
                                0x7fefffffffffffffU,
                                1,
                                0x3ff0000000000000U,
                                0xc00921fb54442d18U};
    u64 bits = how % 16 < ARRAY_COUNT(edges) ? edges[how % 16] : next(g) & 0xbfefffffffffffffU;
    put_raw(g, column, &bits, sizeof(bits));
}

void put_bytes(struct generator *g, struct column *column, str bytes)
{
    check(column_append_bytes(column, bytes));
    if (column->field->type.kind == TYPE_STRING) {
        buf_append_json_string(&g->json, bytes);
    } else {
        put_hex(&g->json, bytes.data, bytes.size);
    }
}

static void put_string(struct generator *g, struct column *column, u64 how)
{
    static const str edges[] = {
        STR_INIT(""),
        STR_INIT("a"),
        STR_INIT("\x7f"),
        STR_INIT("z\xc3\xbc"),
        STR_INIT("sixteen letters!"),
        STR_INIT("seventeen letters"),
        STR_INIT("\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80 smile"),
        STR_INIT("\"\\\n\t"),
    };
    if (how % 12 < ARRAY_COUNT(edges)) {
        put_bytes(g, column, edges[how % 12]);
        return;
    }
    put_bytes(g, column, str_format(g->arena, "text %" PRIx64, next(g) >> (how % 64)));
}

static void put_blob(struct generator *g, struct column *column, size_t size)
{
    u8 *bytes = must(arena_alloc(g->arena, size));
    u64 how = next(g) % 8;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = how == 0 ? 0 : how == 1 ? 0xff : (u8)next(g);
    }
    if (column->field->type.kind == TYPE_BINARY) {
        put_bytes(g, column, (str){(const char *)bytes, size});
        return;
    }
    put_raw(g, column, bytes, size);
}

void put_primitive(struct generator *g, struct column *column, u64 how)
{
    const i64 day = 86400;
    const i64 first_day = -719162; /* of year 1 */
    const i64 last_day = 2932896;  /* of year 9999 */
    const struct type *type = &column->field->type;
    enum type_kind kind = type->kind;
    if (kind == TYPE_BOOLEAN) {
        put_fixed(column, &(u8){how & 1});
        buf_append(&g->json, how & 1 ? STR("true") : STR("false"));
    } else if (kind == TYPE_INT) {
        put_int(g, column, pick(g, how, INT32_MIN, INT32_MAX));
    } else if (kind == TYPE_DATE) {
        put_int(g, column, pick(g, how, first_day, last_day));
    } else if (kind == TYPE_LONG) {
        put_long(g, column, pick(g, how, INT64_MIN, INT64_MAX));
    } else if (kind == TYPE_TIME) {
        put_long(g, column, pick(g, how, 0, day * 1000000 - 1));
    } else if (kind == TYPE_TIMESTAMP || kind == TYPE_TIMESTAMPTZ) {
        put_long(g, column,
                 pick(g, how, first_day * day * 1000000, (last_day + 1) * day * 1000000 - 1));
    } else if (kind == TYPE_TIMESTAMP_NS || kind == TYPE_TIMESTAMPTZ_NS) {
        put_long(g, column, pick(g, how, INT64_MIN / 1000000 * 1000000 + 1000, INT64_MAX - 1));
    } else if (kind == TYPE_FLOAT) {
        put_float(g, column, how);
    } else if (kind == TYPE_DOUBLE) {
        put_double(g, column, how);
    } else if (kind == TYPE_DECIMAL) {
        put_decimal(g, column, type->precision, how);
    } else if (kind == TYPE_STRING) {
        put_string(g, column, how);
    } else if (kind == TYPE_BINARY) {
        put_blob(g, column, how % 7 == 0 ? 0 : how % 23);
    } else {
        put_blob(g, column, column_width(type));
    }
}

void put_null(struct generator *g, struct column *column)
{
    check(column_append_null(column));
    buf_append(&g->json, STR("null"));
}

/* Keys of one map differ. */
static void put_key(struct generator *g, struct column *column, i64 index)
{
    if (column->field->type.kind == TYPE_STRING) {
        put_bytes(g, column, str_format(g->arena, "key %" PRId64, index));
    } else if (column->field->type.kind == TYPE_INT) {
        put_int(g, column, index - 1);
    } else {
        put_long(g, column, index * 1000003);
    }
}

static void put_nested(struct generator *g, struct column *column, u64 how)
{
    enum type_kind kind = column->field->type.kind;
    static const i64 counts[] = {0, 1, 3, 0, 2, 9};
    i64 count = kind == TYPE_STRUCT ? 1 : counts[how / 2 % ARRAY_COUNT(counts)];
    buf_append_byte(&g->json, '[');
    for (i64 i = 0; i < count; i++) {
        if (i > 0) {
            buf_append_byte(&g->json, ',');
        }
        if (kind == TYPE_MAP) {
            buf_append_byte(&g->json, '[');
            put_key(g, &column->children[0], i);
            buf_append_byte(&g->json, ',');
            put_value(g, &column->children[1], next(g));
            buf_append_byte(&g->json, ']');
        } else if (kind == TYPE_LIST) {
            put_value(g, &column->children[0], next(g));
        } else {
            for (size_t c = 0; c < column->child_count; c++) {
                if (c > 0) {
                    buf_append_byte(&g->json, ',');
                }
                put_value(g, &column->children[c], next(g));
            }
        }
    }
    buf_append_byte(&g->json, ']');
    check(column_append_nested(column));
}

void put_value(struct generator *g, struct column *column, u64 how)
{
    if (!column->field->required && (how >> 32) % 4 == 0) {
        put_null(g, column);
    } else if (column->field->type.kind == TYPE_UNKNOWN) {
        put_null(g, column);
    } else if (type_is_nested(&column->field->type)) {
        put_nested(g, column, how);
    } else {
        put_primitive(g, column, how);
    }
}
