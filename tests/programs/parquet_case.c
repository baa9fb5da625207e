/* parquet_case: writes a Parquet file of made-up rows and says on stdout what must be in it.
 *
 *     parquet_case CASE FILE
 *
 * The answer is one JSON object: fields (with ids), rows (one array of values a row), options and
 * the writer's own statistics. Values are in a form that loses nothing: floats, binaries and uuids
 * as hex of their bytes, decimals as unscaled integers in a string, dates and times as integers,
 * structs and lists as arrays, maps as arrays of pairs. All is a function of CASE; nothing is
 * random. */
#include "base/buf.h"
#include "format/parquet/parquet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIELDS_MAX = 160, ARENA_MAX = 1024 * MIB };

struct generator {
    struct arena *arena;
    u64 state;
    i32 last_id;
    buf json;
    buf file;
};

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "parquet_case: %s\n", what);
    exit(2);
}

static void *must(void *pointer)
{
    if (pointer == NULL) {
        fail("out of memory");
    }
    return pointer;
}

static void check(bool ok)
{
    if (!ok) {
        fail("out of memory");
    }
}

/* splitmix64 */
static u64 next(struct generator *generator)
{
    u64 z = generator->state += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

/* ---- schemas ---- */

static const struct type primitives[] = {
    {.kind = TYPE_BOOLEAN},
    {.kind = TYPE_INT},
    {.kind = TYPE_LONG},
    {.kind = TYPE_FLOAT},
    {.kind = TYPE_DOUBLE},
    {.kind = TYPE_DECIMAL, .precision = 1, .scale = 0},
    {.kind = TYPE_DECIMAL, .precision = 9, .scale = 2},
    {.kind = TYPE_DECIMAL, .precision = 10, .scale = 10},
    {.kind = TYPE_DECIMAL, .precision = 18, .scale = 3},
    {.kind = TYPE_DECIMAL, .precision = 19, .scale = 0},
    {.kind = TYPE_DECIMAL, .precision = 23, .scale = 7},
    {.kind = TYPE_DECIMAL, .precision = 38, .scale = 38},
    {.kind = TYPE_DATE},
    {.kind = TYPE_TIME},
    {.kind = TYPE_TIMESTAMP},
    {.kind = TYPE_TIMESTAMPTZ},
    {.kind = TYPE_TIMESTAMP_NS},
    {.kind = TYPE_TIMESTAMPTZ_NS},
    {.kind = TYPE_STRING},
    {.kind = TYPE_UUID},
    {.kind = TYPE_FIXED, .length = 5},
    {.kind = TYPE_FIXED, .length = 300},
    {.kind = TYPE_BINARY},
};

enum need { OPTIONAL, REQUIRED };

static struct field field_make(struct generator *generator, enum need need, const char *name,
                               struct type type)
{
    return (struct field){
        .id = ++generator->last_id,
        .required = need == REQUIRED,
        .name = str_format(generator->arena, "%s_%d", name, generator->last_id),
        .type = type,
    };
}

static struct type struct_make(struct generator *generator, const struct field *fields,
                               size_t count)
{
    struct field *copy = must(arena_array(generator->arena, count, sizeof(*copy)));
    memcpy(copy, fields, count * sizeof(*copy));
    return (struct type){.kind = TYPE_STRUCT, .fields = copy, .field_count = count};
}

static struct type list_make(struct generator *generator, enum need need, struct type type)
{
    struct field element = field_make(generator, need, "element", type);
    element.name = STR("element");
    struct type list = struct_make(generator, &element, 1);
    list.kind = TYPE_LIST;
    return list;
}

static struct type map_make(struct generator *generator, struct type key, enum need need,
                            struct type value)
{
    struct field fields[2] = {
        field_make(generator, REQUIRED, "key", key),
        field_make(generator, need, "value", value),
    };
    fields[0].name = STR("key");
    fields[1].name = STR("value");
    struct type map = struct_make(generator, fields, 2);
    map.kind = TYPE_MAP;
    return map;
}

static const struct type type_int = {.kind = TYPE_INT};
static const struct type type_long = {.kind = TYPE_LONG};
static const struct type type_double = {.kind = TYPE_DOUBLE};
static const struct type type_float = {.kind = TYPE_FLOAT};
static const struct type type_string = {.kind = TYPE_STRING};
static const struct type type_binary = {.kind = TYPE_BINARY};
static const struct type type_boolean = {.kind = TYPE_BOOLEAN};
static const struct type type_unknown = {.kind = TYPE_UNKNOWN};

/* Every type, required and optional, by itself and in a struct, a list and a map. */
static size_t schema_types(struct generator *g, struct field *fields)
{
    size_t count = 0;
    for (enum need need = OPTIONAL; need <= REQUIRED; need++) {
        enum need other = need == OPTIONAL ? REQUIRED : OPTIONAL;
        struct field inside[ARRAY_COUNT(primitives)];
        for (size_t i = 0; i < ARRAY_COUNT(primitives); i++) {
            fields[count++] = field_make(g, need, "flat", primitives[i]);
        }
        for (size_t i = 0; i < ARRAY_COUNT(primitives); i++) {
            inside[i] = field_make(g, i % 2 == 0 ? need : other, "inner", primitives[i]);
        }
        fields[count++] = field_make(g, other, "struct",
                                     struct_make(g, inside, ARRAY_COUNT(primitives)));
        for (size_t i = 0; i < ARRAY_COUNT(primitives); i++) {
            enum need element = i % 2 == 0 ? OPTIONAL : REQUIRED;
            fields[count++] = field_make(g, need, "list", list_make(g, element, primitives[i]));
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(primitives); i++) {
        enum need need = i % 2 == 0 ? OPTIONAL : REQUIRED;
        enum need value = i % 3 == 0 ? OPTIONAL : REQUIRED;
        struct type key = i % 2 == 0 ? type_string : type_long;
        fields[count++] = field_make(g, need, "map", map_make(g, key, value, primitives[i]));
    }
    return count;
}

static struct type record_make(struct generator *g, enum need flag, enum need names)
{
    struct field fields[3] = {
        field_make(g, names, "names", list_make(g, names, type_string)),
        field_make(g, OPTIONAL, "nothing", type_unknown),
        field_make(g, flag, "flag", type_boolean),
    };
    return struct_make(g, fields, 3);
}

/* Lists, maps and structs in each other, and columns that have no place in the file. */
static size_t schema_nested(struct generator *g, struct field *fields)
{
    size_t count = 0;
    for (i32 needs = 0; needs < 8; needs++) {
        enum need a = needs & 1 ? REQUIRED : OPTIONAL;
        enum need b = needs & 2 ? REQUIRED : OPTIONAL;
        enum need c = needs & 4 ? REQUIRED : OPTIONAL;
        struct type inner = list_make(g, c, type_int);
        fields[count++] = field_make(g, a, "list_list", list_make(g, b, inner));

        fields[count++] = field_make(g, a, "list_struct", list_make(g, b, record_make(g, b, c)));
        fields[count++] = field_make(g, a, "map_struct",
                                     map_make(g, type_string, b, record_make(g, b, c)));

        struct field deep[2] = {
            field_make(g, b, "record", record_make(g, c, b)),
            field_make(g, c, "map", map_make(g, type_int, b, list_make(g, c, type_double))),
        };
        fields[count++] = field_make(g, a, "struct_struct", struct_make(g, deep, 2));
        struct type three = list_make(g, b, list_make(g, c, list_make(g, a, type_binary)));
        fields[count++] = field_make(g, a, "list_list_list", three);
    }
    struct field nothing = field_make(g, OPTIONAL, "nothing", type_unknown);
    fields[count++] = nothing;
    nothing.id = ++g->last_id;
    fields[count++] = field_make(g, OPTIONAL, "struct_of_nothing", struct_make(g, &nothing, 1));
    return count;
}

static size_t schema_pages(struct generator *g, struct field *fields)
{
    size_t count = 0;
    const struct type types[] = {type_int,    type_long,   type_float,  type_double,
                                 type_string, type_binary, type_boolean};
    for (enum need need = OPTIONAL; need <= REQUIRED; need++) {
        for (size_t i = 0; i < ARRAY_COUNT(types); i += need == REQUIRED ? 2 : 1) {
            fields[count++] = field_make(g, need, "few", types[i]);
            fields[count++] = field_make(g, need, "many", types[i]);
        }
    }
    fields[count++] = field_make(g, OPTIONAL, "few_list", list_make(g, OPTIONAL, type_long));
    fields[count++] = field_make(g, REQUIRED, "many_list", list_make(g, REQUIRED, type_string));
    return count;
}

static size_t schema_strings(struct generator *g, struct field *fields)
{
    fields[0] = field_make(g, OPTIONAL, "string", type_string);
    fields[1] = field_make(g, OPTIONAL, "binary", type_binary);
    fields[2] = field_make(g, OPTIONAL, "nan", type_double);
    fields[3] = field_make(g, OPTIONAL, "zero", type_double);
    fields[4] = field_make(g, OPTIONAL, "zero", type_float);
    fields[5] = field_make(g, OPTIONAL, "null", type_int);
    fields[6] = field_make(g, OPTIONAL, "list", list_make(g, OPTIONAL, type_string));
    return 7;
}

static size_t schema_huge(struct generator *g, struct field *fields)
{
    fields[0] = field_make(g, REQUIRED, "huge", type_string);
    fields[1] = field_make(g, OPTIONAL, "huge", type_binary);
    fields[2] = field_make(g, OPTIONAL, "huge", list_make(g, REQUIRED, type_int));
    return 3;
}

/* ---- values ---- */

static void put_hex(buf *json, const void *bytes, size_t size)
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

static void put_int(struct generator *g, struct column *column, i64 value)
{
    i32 narrow = (i32)value;
    put_fixed(column, &narrow);
    buf_append_i64(&g->json, value);
}

static void put_long(struct generator *g, struct column *column, i64 value)
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
static void put_raw(struct generator *g, struct column *column, const void *bytes, size_t size)
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

static void put_bytes(struct generator *g, struct column *column, str bytes)
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

static void put_primitive(struct generator *g, struct column *column, u64 how)
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

static void put_null(struct generator *g, struct column *column)
{
    check(column_append_null(column));
    buf_append(&g->json, STR("null"));
}

static void put_value(struct generator *g, struct column *column, u64 how);

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

static void put_value(struct generator *g, struct column *column, u64 how)
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

/* ---- rows ---- */

typedef void (*put_row)(struct generator *g, struct column *columns, size_t count, i64 row);

static void comma(struct generator *g, size_t index)
{
    if (index > 0) {
        buf_append_byte(&g->json, ',');
    }
}

static void row_any(struct generator *g, struct column *columns, size_t count, i64 row)
{
    (void)row;
    for (size_t i = 0; i < count; i++) {
        comma(g, i);
        put_value(g, &columns[i], next(g));
    }
}

static void put_of_few(struct generator *g, struct column *column, u64 number)
{
    enum type_kind kind = column->field->type.kind;
    if (kind == TYPE_INT) {
        put_int(g, column, (i64)number);
    } else if (kind == TYPE_LONG) {
        put_long(g, column, (i64)number - 50);
    } else if (kind == TYPE_FLOAT) {
        float value = (float)number / 4;
        put_raw(g, column, &value, sizeof(value));
    } else if (kind == TYPE_DOUBLE) {
        double value = (double)number / 4 - 3;
        put_raw(g, column, &value, sizeof(value));
    } else if (kind == TYPE_STRING) {
        put_bytes(g, column, str_format(g->arena, "value %" PRIu64, number));
    } else if (kind == TYPE_BINARY) {
        put_bytes(g, column, (str){(const char *)&number, 1 + number % 8});
    } else {
        put_primitive(g, column, number);
    }
}

/* "few" columns repeat their values, now and then in long runs; "many" columns don't. */
static void row_pages(struct generator *g, struct column *columns, size_t count, i64 row)
{
    for (size_t i = 0; i < count; i++) {
        comma(g, i);
        bool few = str_starts(columns[i].field->name, STR("few"));
        u64 random = next(g);
        if (type_is_nested(&columns[i].field->type)) {
            put_value(g, &columns[i], random);
        } else if (!columns[i].field->required && (random >> 40) % 5 == 0) {
            put_null(g, &columns[i]);
        } else {
            u64 number = row / 1000 % 2 == 0 ? (u64)row / 100 % 100 : random % 100;
            put_of_few(g, &columns[i], few ? number : random & INT32_MAX);
        }
    }
}

struct string_row {
    str string;
    str binary;
    double nan;
    double zero;
};

static void row_strings(struct generator *g, struct column *columns, size_t count, i64 row)
{
    static const struct string_row rows[] = {
        /* the cut upper bound: ü is raised to ý, U+D7FF to U+E000 and the last one to nothing */
        {STR_INIT("\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc"
                  "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc-"),
         STR_INIT("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xff-"), -0.0, 0.0},
        {STR_INIT("fifteen letters\xed\x9f\xbf-"), STR_INIT("sixteen letters!-"), 0.0, -0.0},
        {STR_INIT("\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf"
                  "\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf"
                  "\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf"
                  "\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf-"),
         STR_INIT("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff-"), 0.0, 0.0},
        {STR_INIT("fifteen letters\xf4\x8f\xbf\xbf-"),
         STR_INIT("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\xff\x01"), 0.0,
         0.0},
        {STR_INIT(""), STR_INIT(""), 0.0, 0.0},
    };
    const struct string_row *it = &rows[(size_t)row % ARRAY_COUNT(rows)];
    const u64 nan = 0x7ff8000000000000U;
    float zero = (float)it->zero;
    put_bytes(g, &columns[0], it->string);
    comma(g, 1);
    put_bytes(g, &columns[1], it->binary);
    comma(g, 1);
    put_raw(g, &columns[2], &nan, sizeof(nan));
    comma(g, 1);
    put_raw(g, &columns[3], &it->zero, sizeof(it->zero));
    comma(g, 1);
    put_raw(g, &columns[4], &zero, sizeof(zero));
    comma(g, 1);
    put_null(g, &columns[5]);
    comma(g, 1);
    put_value(g, &columns[6], next(g));
    (void)count;
}

static void row_huge(struct generator *g, struct column *columns, size_t count, i64 row)
{
    size_t size = (size_t)3 * MIB + (size_t)row;
    char *text = must(arena_alloc(g->arena, size));
    for (size_t i = 0; i < size; i++) {
        text[i] = (char)('a' + next(g) % 26);
    }
    put_bytes(g, &columns[0], (str){text, size});
    comma(g, 1);
    put_bytes(g, &columns[1], (str){text, row % 2 == 0 ? 0 : size / 2});
    comma(g, 1);
    buf_append_byte(&g->json, '[');
    for (i64 i = 0; i < 100000; i++) {
        comma(g, (size_t)i);
        put_int(g, &columns[2].children[0], i % 1000 == 0 ? (i64)(next(g) % 1000) : row);
    }
    buf_append_byte(&g->json, ']');
    check(column_append_nested(&columns[2]));
    (void)count;
}

/* ---- cases ---- */

struct parquet_case {
    const char *name;
    size_t (*schema)(struct generator *g, struct field *fields);
    put_row row;
    i64 rows;
    i64 row_group_rows;
    i32 zstd_level;
    i64 page_bytes;
    i64 dictionary_bytes;
};

static const struct parquet_case cases[] = {
    {"types", schema_types, row_any, 400, 150, 3, MIB, MIB},
    {"types_plain", schema_types, row_any, 100, 100, 0, 64, 0},
    {"types_one_row", schema_types, row_any, 1, 1, 1, MIB, MIB},
    {"nested", schema_nested, row_any, 600, 250, 1, 512, 1024},
    {"nested_dictionary", schema_nested, row_any, 1000, 1000, 0, MIB, MIB},
    {"pages", schema_pages, row_pages, 66000, 100000, 1, MIB, MIB},
    {"pages_small", schema_pages, row_pages, 12000, 5000, 1, 8 * KIB, 512},
    {"strings", schema_strings, row_strings, 5, 5, 1, MIB, MIB},
    {"strings_in_groups", schema_strings, row_strings, 5, 1, 1, MIB, MIB},
    {"strings_raised", schema_strings, row_strings, 2, 1, 1, MIB, MIB},
    {"huge", schema_huge, row_huge, 6, 4, 1, MIB, MIB},
};

static void put_fields(struct generator *g, const struct field *fields, size_t count)
{
    buf_append_byte(&g->json, '[');
    for (size_t i = 0; i < count; i++) {
        comma(g, i);
        const struct type *type = &fields[i].type;
        str text = type_text_short(g->arena, type);
        buf_append_format(&g->json,
                          "{\"id\":%d,\"name\":\"%.*s\",\"required\":%s,\"type\":\"%.*s\"",
                          fields[i].id, STR_ARG(fields[i].name),
                          fields[i].required ? "true" : "false", STR_ARG(text));
        buf_append(&g->json, STR(",\"fields\":"));
        put_fields(g, type->fields, type->field_count);
        buf_append_byte(&g->json, '}');
    }
    buf_append_byte(&g->json, ']');
}

static void put_optional_hex(struct generator *g, const char *name, str bytes)
{
    buf_append_format(&g->json, ",\"%s\":", name);
    if (bytes.data == NULL) {
        buf_append(&g->json, STR("null"));
    } else {
        put_hex(&g->json, bytes.data, bytes.size);
    }
}

static void put_stats(struct generator *g, const struct parquet_file_stats *stats)
{
    buf_append_format(&g->json, "{\"rows\":%" PRId64 ",\"file_bytes\":%" PRId64 ",\"splits\":[",
                      stats->rows, stats->file_bytes);
    for (size_t i = 0; i < stats->split_count; i++) {
        comma(g, i);
        buf_append_i64(&g->json, stats->split_offsets[i]);
    }
    buf_append(&g->json, STR("],\"columns\":["));
    for (size_t i = 0; i < stats->column_count; i++) {
        comma(g, i);
        const struct parquet_column_stats *column = &stats->columns[i];
        buf_append_format(&g->json,
                          "{\"id\":%d,\"bytes\":%" PRId64 ",\"values\":%" PRId64
                          ",\"nulls\":%" PRId64 ",\"nans\":%" PRId64,
                          column->field_id, column->compressed_bytes, column->value_count,
                          column->null_count, column->nan_count);
        put_optional_hex(g, "lower", column->lower);
        put_optional_hex(g, "upper", column->upper);
        buf_append_byte(&g->json, '}');
    }
    buf_append(&g->json, STR("]}"));
}

static err file_append(void *context, str bytes, struct error *error)
{
    (void)error;
    buf *file = context;
    buf_append(file, bytes);
    return buf_ok(file) ? OK : LIMIT;
}

static void write_rows(struct generator *g, const struct parquet_case *it,
                       struct parquet_writer *writer, struct column *columns, size_t count)
{
    struct error error = {0};
    buf_append(&g->json, STR(",\"rows\":["));
    for (i64 row = 0; row < it->rows; row++) {
        comma(g, (size_t)row);
        buf_append_byte(&g->json, '[');
        it->row(g, columns, count, row);
        buf_append_byte(&g->json, ']');
        if (row + 1 == it->rows || (row + 1) % it->row_group_rows == 0) {
            if (parquet_row_group(writer, columns, &error) != OK) {
                fail(error.message);
            }
            for (size_t i = 0; i < count; i++) {
                column_truncate(&columns[i], 0);
            }
        }
    }
    buf_append_byte(&g->json, ']');
}

static void case_run(struct generator *g, const struct parquet_case *it)
{
    struct field *fields = must(arena_array(g->arena, FIELDS_MAX, sizeof(*fields)));
    size_t count = it->schema(g, fields);
    if (count > FIELDS_MAX) {
        fail("too many fields");
    }
    struct column *columns = must(arena_array(g->arena, count, sizeof(*columns)));
    for (size_t i = 0; i < count; i++) {
        check(column_init(&columns[i], g->arena, &fields[i]));
    }
    struct parquet_options options = parquet_options_default();
    options.zstd_level = it->zstd_level;
    options.page_bytes_max = it->page_bytes;
    options.dictionary_bytes_max = it->dictionary_bytes;
    struct error error = {0};
    struct parquet_writer *writer = NULL;
    if (parquet_open(g->arena, fields, count, &options, STR("{\"type\":\"struct\"}"), file_append,
                     &g->file, &writer, &error) != OK) {
        fail(error.message);
    }
    buf_append_format(&g->json,
                      "{\"page_bytes\":%" PRId64 ",\"dictionary_bytes\":%" PRId64
                      ",\"row_group_rows\":%" PRId64 ",\"zstd_level\":%d,\"fields\":",
                      it->page_bytes, it->dictionary_bytes, it->row_group_rows, it->zstd_level);
    put_fields(g, fields, count);
    write_rows(g, it, writer, columns, count);
    struct parquet_file_stats stats = {0};
    if (parquet_finish(writer, &stats, &error) != OK) {
        fail(error.message);
    }
    buf_append(&g->json, STR(",\"stats\":"));
    put_stats(g, &stats);
    buf_append(&g->json, STR("}\n"));
}

static void file_save(const char *path, str bytes)
{
    FILE *file = must(fopen(path, "wb"));
    if (fwrite(bytes.data, 1, bytes.size, file) != bytes.size || fclose(file) != 0) {
        fail("cannot write the file");
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fail("usage: parquet_case CASE FILE");
    }
    AUTO_ARENA struct arena *arena = arena_create((size_t)ARENA_MAX);
    struct generator g = {.arena = arena, .state = 1};
    g.json = buf_create(arena, MIB, ARENA_MAX);
    g.file = buf_create(arena, MIB, ARENA_MAX);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        if (str_equal(str_from(argv[1]), str_from(cases[i].name))) {
            case_run(&g, &cases[i]);
            if (!buf_ok(&g.json)) {
                fail("out of memory");
            }
            file_save(argv[2], buf_str(&g.file));
            fwrite(g.json.data, 1, g.json.size, stdout);
            return 0;
        }
    }
    fail("no such case");
}
