/* parquet_case: writes a Parquet file of made-up rows and says on stdout what must be in it.
 *
 *     parquet_case CASE[_compact] FILE
 *
 * The answer is one JSON object: fields (with ids), rows (one array of values a row), options and
 * the writer's own statistics. Values are in a form that loses nothing: floats, binaries and uuids
 * as hex of their bytes, decimals as unscaled integers in a string, dates and times as integers,
 * structs and lists as arrays, maps as arrays of pairs. All is a function of CASE; nothing is
 * random. */
#include "format/parquet/parquet.h"
#include "parquet_generator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIELDS_MAX = 160, LEAVES_MAX = 1000, ARENA_MAX = 1024 * MIB };

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

/* What is stored as an integer or a float, of narrow precision where that matters. */
static size_t schema_numbers(struct generator *g, struct field *fields)
{
    static const enum type_kind kinds[] = {
        TYPE_INT,   TYPE_LONG,   TYPE_DATE,    TYPE_TIME,   TYPE_TIMESTAMP, TYPE_TIMESTAMPTZ_NS,
        TYPE_FLOAT, TYPE_DOUBLE, TYPE_DECIMAL, TYPE_DECIMAL};
    size_t count = 0;
    for (enum need need = OPTIONAL; need <= REQUIRED; need++) {
        for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
            struct type type = {.kind = kinds[i]};
            if (kinds[i] == TYPE_DECIMAL) {
                type.precision = i % 2 == 0 ? 9 : 18;
                type.scale = 2;
            }
            fields[count++] = field_make(g, need, "number", type);
        }
    }
    fields[count++] = field_make(g, OPTIONAL, "number_list", list_make(g, OPTIONAL, type_long));
    return count;
}

static size_t schema_huge(struct generator *g, struct field *fields)
{
    fields[0] = field_make(g, REQUIRED, "huge", type_string);
    fields[1] = field_make(g, OPTIONAL, "huge", type_binary);
    fields[2] = field_make(g, OPTIONAL, "huge", list_make(g, REQUIRED, type_int));
    return 3;
}

/* ---- rows ---- */

typedef void (*put_row)(struct generator *g, struct column *columns, size_t count, i64 row);

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

static void put_number(struct generator *g, struct column *column, i64 number)
{
    enum type_kind kind = column->field->type.kind;
    float narrow = (float)number + (float)(next(g) % 1024) / 1024;
    double wide = (double)number + (double)(next(g) % (1 << 30)) / (1 << 30);
    if (kind == TYPE_FLOAT) {
        put_raw(g, column, &narrow, sizeof(narrow));
    } else if (kind == TYPE_DOUBLE) {
        put_raw(g, column, &wide, sizeof(wide));
    } else if (kind == TYPE_DECIMAL) {
        const i128 value = number;
        check(column_append_fixed(column, &value));
        buf_append_format(&g->json, "\"%" PRId64 "\"", number);
    } else if (kind == TYPE_INT || kind == TYPE_DATE) {
        put_int(g, column, number);
    } else {
        put_long(g, column, number);
    }
}

/* The first 3,000 rows repeat a few numbers, the others go up in small steps; now and then comes
 * one from the other end of the type. Nulls come alone and in runs of more than a page. */
static void row_numbers(struct generator *g, struct column *columns, size_t count, i64 row)
{
    for (size_t i = 0; i < count; i++) {
        enum type_kind kind = columns[i].field->type.kind;
        u64 random = next(g);
        i64 number = (row < 3000 ? 0 : row * 3) + (i64)(random % 5);
        comma(g, i);
        if (kind == TYPE_LIST) {
            put_value(g, &columns[i], random);
        } else if (!columns[i].field->required && (row / 700 % 3 == 1 || random >> 40 == 0)) {
            put_null(g, &columns[i]);
        } else if (row % 997 == 500 && kind == TYPE_INT) {
            put_int(g, &columns[i], random % 2 == 0 ? INT32_MIN : INT32_MAX);
        } else if (row % 997 == 500 && kind == TYPE_LONG) {
            put_long(g, &columns[i], random % 2 == 0 ? INT64_MIN : INT64_MAX);
        } else {
            put_number(g, &columns[i], number);
        }
    }
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
    enum compress_codec codec; /* when there is no zstd level */
    i64 page_rows;             /* 0: the writer's own */
    bool columns;              /* options of their own for the columns, else none */
};

static const struct parquet_case cases[] = {
    {"types", schema_types, row_any, 400, 150, 3, MIB, MIB, COMPRESS_NONE, 0, false},
    {"types_plain", schema_types, row_any, 100, 100, 0, 64, 0, COMPRESS_NONE, 0, false},
    {"types_one_row", schema_types, row_any, 1, 1, 1, MIB, MIB, COMPRESS_NONE, 0, false},
    {"nested", schema_nested, row_any, 600, 250, 1, 512, 1024, COMPRESS_NONE, 0, false},
    {"nested_dictionary", schema_nested, row_any, 1000, 1000, 0, MIB, MIB, COMPRESS_NONE, 0, false},
    {"pages", schema_pages, row_pages, 66000, 100000, 1, MIB, MIB, COMPRESS_NONE, 0, false},
    {"pages_small", schema_pages, row_pages, 12000, 5000, 1, 8 * KIB, 512, COMPRESS_NONE, 0, false},
    {"strings", schema_strings, row_strings, 5, 5, 1, MIB, MIB, COMPRESS_NONE, 0, false},
    {"strings_in_groups", schema_strings, row_strings, 5, 1, 1, MIB, MIB, COMPRESS_NONE, 0, false},
    {"strings_raised", schema_strings, row_strings, 2, 1, 1, MIB, MIB, COMPRESS_NONE, 0, false},
    {"huge", schema_huge, row_huge, 6, 4, 1, MIB, MIB, COMPRESS_NONE, 0, false},
    {"numbers", schema_numbers, row_numbers, 9000, 4000, 1, MIB, 0, COMPRESS_NONE, 300, false},
    {"numbers_mixed", schema_numbers, row_numbers, 6000, 3000, 1, MIB, MIB, COMPRESS_NONE, 0,
     false},
    {"numbers_by_1", schema_numbers, row_numbers, 3, 1, 1, MIB, 0, COMPRESS_NONE, 0, false},
    {"numbers_by_33", schema_numbers, row_numbers, 97, 33, 0, MIB, 0, COMPRESS_NONE, 32, false},
    {"numbers_by_128", schema_numbers, row_numbers, 255, 128, 0, MIB, 0, COMPRESS_NONE, 0, false},
    {"numbers_by_129", schema_numbers, row_numbers, 161, 129, 1, MIB, 0, COMPRESS_NONE, 0, false},
    {"types_gzip", schema_types, row_any, 60, 45, 0, MIB, MIB, COMPRESS_GZIP, 0, false},
    {"types_snappy", schema_types, row_any, 60, 45, 0, MIB, MIB, COMPRESS_SNAPPY, 0, false},
    {"pages_by_rows", schema_pages, row_pages, 1000, 700, 1, MIB, MIB, COMPRESS_NONE, 70, false},
    {"metrics", schema_types, row_any, 150, 75, 1, MIB, MIB, COMPRESS_NONE, 0, true},
    {"metrics_nested", schema_nested, row_any, 150, 75, 1, MIB, MIB, COMPRESS_NONE, 0, true},
    {"metrics_pages", schema_pages, row_pages, 6000, 2500, 1, MIB, MIB, COMPRESS_NONE, 0, true},
    {"metrics_strings", schema_strings, row_strings, 5, 2, 1, MIB, MIB, COMPRESS_NONE, 0, true},
};

/* ---- options of columns ---- */

static void columns_choose(struct generator *g, const struct field *fields, size_t count,
                           struct parquet_column_options *columns, size_t *at)
{
    static const i64 units[] = {PARQUET_BOUND_WHOLE, 1, 3, 16, 40};
    for (size_t i = 0; i < count; i++) {
        const struct type *type = &fields[i].type;
        columns_choose(g, type->fields, type->field_count, columns, at);
        if (type_is_nested(type) || type->kind == TYPE_UNKNOWN) {
            continue;
        }
        u64 random = next(g);
        if (random % 8 == 0) {
            continue; /* the writer's own options */
        }
        columns[(*at)++] = (struct parquet_column_options){
            .field_id = fields[i].id,
            .metrics = random % 8 == 1   ? PARQUET_METRICS_NONE
                       : random % 8 == 2 ? PARQUET_METRICS_COUNTS
                                         : PARQUET_METRICS_BOUNDS,
            .bound_units_max = units[(random >> 8) % ARRAY_COUNT(units)],
            .bloom = (random >> 16) % 4 != 0,
            .bloom_fpp = (random >> 24) % 2 == 0 ? 0.01 : 0.2,
        };
    }
}

static void put_columns(struct generator *g, const struct parquet_options *options)
{
    static const char *const metrics[] = {"none", "counts", "bounds"};
    buf_append(&g->json, STR("\"columns\":["));
    for (size_t i = 0; i < options->column_count; i++) {
        const struct parquet_column_options *column = &options->columns[i];
        comma(g, i);
        buf_append_format(&g->json,
                          "{\"id\":%d,\"metrics\":\"%s\",\"units\":%" PRId64
                          ",\"bloom\":%s,\"fpp\":%g}",
                          column->field_id, metrics[column->metrics], column->bound_units_max,
                          column->bloom ? "true" : "false", column->bloom_fpp);
    }
    buf_append(&g->json, STR("],"));
}

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

static void case_run(struct generator *g, const struct parquet_case *it,
                     enum parquet_encodings encodings)
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
    options.codec = it->zstd_level > 0 ? COMPRESS_ZSTD : it->codec;
    options.compress_level = it->zstd_level;
    options.page_rows_max = it->page_rows > 0 ? it->page_rows : options.page_rows_max;
    if (it->columns) {
        struct parquet_column_options *chosen = must(
            arena_array(g->arena, LEAVES_MAX, sizeof(*chosen)));
        columns_choose(g, fields, count, chosen, &options.column_count);
        options.columns = chosen;
    }
    options.encodings = encodings;
    options.page_bytes_max = it->page_bytes;
    options.dictionary_bytes_max = it->dictionary_bytes;
    struct error error = {0};
    struct parquet_writer *writer = NULL;
    if (parquet_open(g->arena, fields, count, &options, STR("{\"type\":\"struct\"}"), file_append,
                     &g->file, &writer, &error) != OK) {
        fail(error.message);
    }
    buf_append_format(&g->json,
                      "{\"compact\":%s,\"page_bytes\":%" PRId64 ",\"dictionary_bytes\":%" PRId64
                      ",\"row_group_rows\":%" PRId64 ",\"zstd_level\":%d,",
                      encodings == PARQUET_ENCODINGS_COMPACT ? "true" : "false", it->page_bytes,
                      it->dictionary_bytes, it->row_group_rows, it->zstd_level);
    put_columns(g, &options);
    buf_append(&g->json, STR("\"fields\":"));
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
        fail("usage: parquet_case CASE[_compact] FILE");
    }
    static const str compact = STR_INIT("_compact");
    str name = str_from(argv[1]);
    enum parquet_encodings encodings = PARQUET_ENCODINGS_COMPATIBLE;
    if (str_ends(name, compact)) {
        name = str_slice(name, 0, name.size - compact.size);
        encodings = PARQUET_ENCODINGS_COMPACT;
    }
    AUTO_ARENA struct arena *arena = arena_create((size_t)ARENA_MAX);
    struct generator g = {.arena = arena, .state = 1};
    g.json = buf_create(arena, MIB, ARENA_MAX);
    g.file = buf_create(arena, MIB, ARENA_MAX);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        if (str_equal(name, str_from(cases[i].name))) {
            case_run(&g, &cases[i], encodings);
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
