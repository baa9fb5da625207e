/* What the comparison with the reference model (tests/oracle/test_reference.py) cannot show:
 * rows in sequence, memory running out, limits; and the examples of the rules, so that they
 * stand here too. */
#include "sink/decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The row itself is one level more. */
enum { LEVELS = 511 };

struct column_text {
    const char *name;
    const char *type; /* with " required" where it is */
    const char *write_default;
};

/* A decoder over a few columns. */
struct bench {
    struct arena *arena;
    struct schema schema;
    struct decoder *decoder;
    struct column *columns;
    size_t column_count;
    struct decode_result result;
};

static void schema_make(struct arena *arena, const struct column_text *columns, size_t count,
                        struct schema *out_schema)
{
    struct field *fields = arena_array(arena, count, sizeof(*fields));
    i32 last_id = 0;
    for (size_t i = 0; i < count; i++) {
        fields[i].name = str_from(columns[i].name);
        assert_int_equal(schema_parse_type(arena, str_from(columns[i].type), &fields[i].type,
                                           &fields[i].required, NULL),
                         OK);
        if (columns[i].write_default != NULL) {
            fields[i].write_default = str_from(columns[i].write_default);
        }
    }
    *out_schema = (struct schema){
        .id = 1, .root = {.kind = TYPE_STRUCT, .fields = fields, .field_count = count}};
    schema_assign_ids(&out_schema->root, &last_id);
}

static struct bench bench_open(const struct column_text *columns, size_t count,
                               const struct decode_settings *settings)
{
    struct bench bench = {.arena = arena_create(64 * MIB)};
    struct schema *schema = arena_alloc(bench.arena, sizeof(*schema));
    schema_make(bench.arena, columns, count, schema);
    struct decode_settings none = {0};
    assert_int_equal(decoder_open(bench.arena, schema, settings != NULL ? settings : &none,
                                  &bench.decoder, NULL),
                     OK);
    bench.columns = decoder_columns(bench.decoder, &bench.column_count);
    assert_int_equal(bench.column_count, count);
    return bench;
}

static enum decode_verdict decode(struct bench *bench, str line)
{
    struct error error = {0};
    assert_int_equal(decode_line(bench->decoder, line, 42, &bench->result, &error), OK);
    return bench->result.verdict;
}

static void assert_rejected(struct bench *bench, str line, enum reject_reason reason,
                            const char *column, const char *detail)
{
    i64 before = bench->columns[0].count;
    assert_int_equal(decode(bench, line), DECODE_REJECT);
    const struct reject_hit *first = &bench->result.hits[0];
    assert_int_equal(first->reason, reason);
    assert_true(str_equal(first->column, str_from(column)));
    assert_true(str_equal(first->detail, str_from(detail)));
    for (size_t i = 0; i < bench->column_count; i++) {
        assert_int_equal(bench->columns[i].count, before);
    }
}

static i64 value_i64(const struct column *column, i64 index)
{
    i64 value = 0;
    memcpy(&value, column->data + (size_t)index * 8, 8);
    return value;
}

static str value_text(const struct column *column, i64 index)
{
    i64 start = column->offsets[index];
    return (str){(const char *)column->data + start, (size_t)(column->offsets[index + 1] - start)};
}

static void the_examples_of_the_rules_hold(void **state)
{
    (void)state;
    static const struct column_text columns[] = {{"x", "long", NULL},
                                                 {"d", "date", NULL},
                                                 {"t", "timestamptz", NULL},
                                                 {"s", "string", NULL}};
    struct bench bench = bench_open(columns, 4, NULL);
    assert_int_equal(decode(&bench, STR("{\"x\":1.0}")), DECODE_ROW);
    assert_int_equal(decode(&bench, STR("{\"x\":\"1\"}")), DECODE_ROW);
    assert_int_equal(value_i64(&bench.columns[0], 0), 1);
    assert_int_equal(value_i64(&bench.columns[0], 1), 1);
    assert_int_equal(bench.columns[1].null_count, 2);
    assert_rejected(&bench, STR("{\"x\":1.5}"), REJECT_NOT_INTEGRAL, "x", "1.5 is no long");
    assert_rejected(&bench, STR("{\"x\":9223372036854775808}"), REJECT_OUT_OF_RANGE, "x",
                    "9223372036854775808 is no long");
    assert_rejected(&bench, STR("{\"x\":1,\"x\":2}"), REJECT_DUPLICATE_KEY, "x",
                    "the name appears twice");
    assert_rejected(&bench, STR("{\"x\":1,\"__ingest_ts\":null}"), REJECT_RESERVED_COLUMN,
                    "__ingest_ts", "the sink writes this column");
    assert_rejected(&bench, STR("{\"d\":\"2024-02-30\"}"), REJECT_BAD_DATE, "d",
                    "\"2024-02-30\" is no date");
    assert_int_equal(decode(&bench, STR("{\"t\":\"2015-10-01T08:00:00-0700\"}")), DECODE_ROW);
    assert_int_equal(value_i64(&bench.columns[2], 2), 1443711600000000);
    assert_int_equal(decode(&bench, STR("{\"t\":\"1969-12-31T23:59:59.9999999Z\"}")), DECODE_ROW);
    assert_int_equal(value_i64(&bench.columns[2], 3), -1);
    assert_rejected(&bench, STR("{\"s\":\"\\ud83d\"}"), REJECT_BAD_UNICODE, "s",
                    "a surrogate without its pair");
    assert_int_equal(decode(&bench, STR("{\"s\":\"\\ud83d\\ude00\"}")), DECODE_ROW);
    assert_true(str_equal(value_text(&bench.columns[3], 4), STR("\xF0\x9F\x98\x80")));
    assert_rejected(&bench, STR("{\"X\":1}"), REJECT_UNKNOWN_COLUMN, "X", "no such column");
    assert_true(str_equal(bench.result.did_you_mean, STR("x")));
    arena_destroy(bench.arena);
}

static void a_reject_between_rows_leaves_no_trace(void **state)
{
    (void)state;
    static const struct column_text columns[] = {
        {"s", "string", NULL},
        {"l", "list<struct<a: int required, b: string>>", NULL},
        {"m", "map<long, string required>", NULL},
        {"z", "int required", NULL}};
    struct bench bench = bench_open(columns, 4, NULL);
    str good = STR("{\"s\":\"abc\",\"l\":[{\"a\":1,\"b\":\"x\"},{\"a\":2}],\"m\":{\"1\":\"u\","
                   "\"2\":\"v\"},\"z\":1}");
    for (i64 i = 0; i < 50; i++) {
        assert_int_equal(decode(&bench, good), DECODE_ROW);
        assert_rejected(&bench,
                        STR("{\"s\":\"longer text\",\"l\":[{\"a\":1},{\"a\":null}],"
                            "\"m\":{\"7\":\"u\",\"7.0\":null},\"z\":\"\"}"),
                        REJECT_REQUIRED_MISSING, "l[1].a", "null");
        assert_int_equal(bench.result.hit_count, 4);
        assert_int_equal(bench.result.hits[1].reason, REJECT_BAD_NUMBER);
        assert_int_equal(bench.result.hits[2].reason, REJECT_REQUIRED_MISSING);
        assert_int_equal(bench.result.hits[3].reason, REJECT_BAD_NUMBER);
    }
    assert_int_equal(bench.columns[1].children[0].count, 100);
    assert_int_equal(bench.columns[1].children[0].children[0].count, 100);
    assert_int_equal(bench.columns[2].children[0].count, 100);
    assert_true(str_equal(value_text(&bench.columns[0], 49), STR("abc")));
    assert_true(str_equal(value_text(&bench.columns[2].children[1], 99), STR("v")));
    arena_destroy(bench.arena);
}

static void clear_takes_all_rows_away(void **state)
{
    (void)state;
    static const struct column_text columns[] = {{"s", "string", NULL}, {"l", "list<int>", NULL}};
    struct bench bench = bench_open(columns, 2, NULL);
    assert_int_equal(decode(&bench, STR("{\"s\":\"abc\",\"l\":[1,2]}")), DECODE_ROW);
    decoder_clear(bench.decoder);
    assert_int_equal(bench.columns[0].count, 0);
    assert_int_equal(bench.columns[1].children[0].count, 0);
    assert_int_equal(decode(&bench, STR("{\"s\":\"d\",\"l\":[3]}")), DECODE_ROW);
    assert_true(str_equal(value_text(&bench.columns[0], 0), STR("d")));
    assert_int_equal(bench.columns[1].children[0].count, 1);
    arena_destroy(bench.arena);
}

static void the_clock_is_the_intakes(void **state)
{
    (void)state;
    static const struct column_text columns[] = {{"x", "int", NULL},
                                                 {"__ingest_ts", "timestamptz", NULL}};
    struct bench bench = bench_open(columns, 2, NULL);
    assert_int_equal(decode(&bench, STR("{}")), DECODE_ROW);
    assert_int_equal(value_i64(&bench.columns[1], 0), 42);
    arena_destroy(bench.arena);
}

static void a_line_that_no_intake_stores_is_empty_or_unreadable(void **state)
{
    (void)state;
    static const struct column_text columns[] = {{"x", "int", NULL}};
    struct bench bench = bench_open(columns, 1, NULL);
    static const str lines[] = {STR_INIT("[]"),       STR_INIT("1"),
                                STR_INIT("{\"x\":1"), STR_INIT("{\"x\":1}}"),
                                STR_INIT("{} {}"),    STR_INIT("{\"x\":\"\xff\"}"),
                                STR_INIT(" ")};
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        assert_int_equal(decode(&bench, lines[i]), DECODE_UNREADABLE);
        assert_int_equal(bench.result.hit_count, 0);
    }
    assert_int_equal(decode(&bench, STR("")), DECODE_EMPTY);
    assert_int_equal(bench.columns[0].count, 0);
    assert_int_equal(decode(&bench, STR(" {\"x\":1} ")), DECODE_ROW);
    arena_destroy(bench.arena);
}

/* A second member, so that it is the tree that reads the row, and lets the first be taken. */
static void members_are_taken_only_where_members_may_stand(void **state)
{
    (void)state;
    static const str lines[] = {
        STR_INIT("{\"x\":1 \"y\":2}"),  STR_INIT("{,\"x\":1}"),
        STR_INIT("[\"x\":1,\"y\":2]"),  STR_INIT("{\"x\":1,\"y\":2]"),
        STR_INIT("{\"x\":1,,\"y\":2}"), STR_INIT("{\"x\":1,\"y\":2,}"),
        STR_INIT("{\"n\":1 \"x\":1}"),  STR_INIT("[\"x\",\"x\":1}"),
    };
    const struct column_text columns[] = {{"x", "long", NULL}, {"y", "string", NULL}};
    struct bench bench = bench_open(columns, 2, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        assert_int_equal(decode(&bench, lines[i]), DECODE_UNREADABLE);
        assert_int_equal(bench.columns[0].count, 0);
    }
    assert_rejected(&bench, STR("{\"x\":\"no\", \"y\":\"a\",\"x\":1}"), REJECT_DUPLICATE_KEY, "x",
                    "the name appears twice");
    assert_int_equal(bench.result.hit_count, 2);
    arena_destroy(bench.arena);
}

static void unknown_names_are_rejected_ignored_or_captured(void **state)
{
    (void)state;
    static const struct column_text columns[] = {{"x", "int", NULL}, {"rest", "string", NULL}};
    str line = STR("{\"b\":[1,{\"c\":2}],\"x\":1}");
    struct bench bench = bench_open(columns, 2, NULL);
    assert_rejected(&bench, line, REJECT_UNKNOWN_COLUMN, "b", "no such column");
    arena_destroy(bench.arena);

    bench = bench_open(columns, 2, &(struct decode_settings){.unknown = DECODE_UNKNOWN_IGNORE});
    assert_int_equal(decode(&bench, line), DECODE_ROW);
    assert_int_equal(bench.columns[1].null_count, 1);
    arena_destroy(bench.arena);

    bench = bench_open(columns, 2,
                       &(struct decode_settings){.unknown = DECODE_UNKNOWN_CAPTURE,
                                                 .capture_column = STR("rest")});
    assert_int_equal(decode(&bench, line), DECODE_ROW);
    assert_true(str_equal(value_text(&bench.columns[1], 0), STR("{\"b\":[1,{\"c\":2}]}")));
    assert_int_equal(decode(&bench, STR("{\"x\":2}")), DECODE_ROW);
    assert_int_equal(bench.columns[1].null_count, 1);
    arena_destroy(bench.arena);
}

static void settings_that_do_not_fit_the_schema_are_refused(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    static const struct column_text columns[] = {{"x", "int", NULL}, {"s", "string", NULL}};
    struct schema schema;
    schema_make(arena, columns, 2, &schema);
    struct decoder *decoder = NULL;
    static const str keys[] = {STR_INIT("nope")};
    struct error error = {0};
    struct decode_settings keyed = {.key_columns = keys, .key_count = 1};
    assert_int_equal(decoder_open(arena, &schema, &keyed, &decoder, &error), INVALID);
    assert_int_equal(error.code, ERROR_KEY_COLUMN_UNSUPPORTED);
    struct decode_settings capture = {.unknown = DECODE_UNKNOWN_CAPTURE,
                                      .capture_column = STR("x")};
    error_clear(&error);
    assert_int_equal(decoder_open(arena, &schema, &capture, &decoder, &error), INVALID);
    assert_int_equal(error.code, ERROR_INVALID_REQUEST);
    assert_null(decoder);
}

static void columns_that_no_sink_writes_are_refused(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    static const struct {
        struct column_text column;
        enum error_code code;
    } refused[] = {
        {{"g", "geography", NULL}, ERROR_UNSUPPORTED_COLUMN_TYPE},
        {{"v", "variant", "1"}, ERROR_UNSUPPORTED_COLUMN_TYPE},
        {{"g", "list<struct<a: geometry>>", NULL}, ERROR_UNSUPPORTED_COLUMN_TYPE},
        {{"__ingest_ts", "timestamp", NULL}, ERROR_RESERVED_COLUMN_CONFLICT},
        {{"d", "int", "\"x\""}, ERROR_UNSUPPORTED_COLUMN_TYPE},
        {{"d", "int", "3000000000"}, ERROR_UNSUPPORTED_COLUMN_TYPE},
        {{"d", "fixed[2]", "\"00\""}, ERROR_UNSUPPORTED_COLUMN_TYPE},
        {{"d", "binary", "\"0g\""}, ERROR_UNSUPPORTED_COLUMN_TYPE},
        {{"d", "binary", "\"000\""}, ERROR_UNSUPPORTED_COLUMN_TYPE},
        {{"d", "list<int>", "[1,"}, ERROR_UNSUPPORTED_COLUMN_TYPE},
        {{"d", "list<struct<a: int>>", "[{}]"}, ERROR_UNSUPPORTED_COLUMN_TYPE},
        {{"d", "map<string, int>", "{\"keys\":[\"a\"],\"values\":[]}"},
         ERROR_UNSUPPORTED_COLUMN_TYPE},
        {{"d", "map<string, int>", "{\"a\":1}"}, ERROR_UNSUPPORTED_COLUMN_TYPE},
        {{"d", "date", "\"2024-02-30\""}, ERROR_UNSUPPORTED_COLUMN_TYPE},
        {{"d", "int", "1 2"}, ERROR_UNSUPPORTED_COLUMN_TYPE},
    };
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        struct schema schema;
        struct decoder *decoder = NULL;
        struct error error = {0};
        schema_make(arena, &refused[i].column, 1, &schema);
        assert_int_equal(
            decoder_open(arena, &schema, &(struct decode_settings){0}, &decoder, &error), INVALID);
        assert_int_equal(error.code, refused[i].code);
    }
}

static void an_absent_column_gets_its_default_and_null_does_not(void **state)
{
    (void)state;
    static const struct column_text columns[] = {{"x", "long required", "7"},
                                                 {"b", "binary", "\"00ff\""},
                                                 {"l", "list<string>", "[\"a\",null]"},
                                                 {"n", "long", "null"}};
    struct bench bench = bench_open(columns, 4, NULL);
    assert_int_equal(decode(&bench, STR("{}")), DECODE_ROW);
    assert_int_equal(decode(&bench, STR("{\"x\":1,\"b\":null,\"l\":[]}")), DECODE_ROW);
    assert_int_equal(value_i64(&bench.columns[0], 0), 7);
    assert_true(str_equal(value_text(&bench.columns[1], 0), STR("\0\xff")));
    assert_int_equal(bench.columns[1].null_count, 1);
    assert_int_equal(bench.columns[2].offsets[1], 2);
    assert_int_equal(bench.columns[2].children[0].null_count, 1);
    assert_int_equal(bench.columns[3].null_count, 2);
    assert_rejected(&bench, STR("{\"x\":null}"), REJECT_REQUIRED_MISSING, "x", "null");
    arena_destroy(bench.arena);
}

static void deep_json_is_walked_without_deep_calls(void **state)
{
    (void)state;
    static const struct column_text columns[] = {{"x", "int", NULL}};
    struct bench bench = bench_open(columns, 1,
                                    &(struct decode_settings){.unknown = DECODE_UNKNOWN_IGNORE});
    buf line = buf_create(bench.arena, 4 * KIB, MIB);
    buf_append(&line, STR("{\"u\":"));
    for (int i = 0; i < LEVELS; i++) {
        buf_append(&line, i % 2 == 0 ? STR("[") : STR("{\"k\":"));
    }
    buf_append(&line, STR("1"));
    for (int i = LEVELS; i > 0; i--) {
        buf_append(&line, i % 2 == 1 ? STR("]") : STR("}"));
    }
    buf_append(&line, STR(",\"x\":1}"));
    assert_int_equal(decode(&bench, buf_str(&line)), DECODE_ROW);
    arena_destroy(bench.arena);
}

/* Ten thousand columns, named in another order than the schema's; and as many unknown names. */
static void wide_rows_are_not_quadratic(void **state)
{
    (void)state;
    enum { WIDE = 10000, ROWS = 50 };
    struct arena *arena = arena_create(512 * MIB);
    struct field *fields = arena_array(arena, WIDE, sizeof(*fields));
    buf line = buf_create(arena, MIB, 4 * MIB);
    buf_append_byte(&line, '{');
    for (i32 i = 0; i < WIDE; i++) {
        fields[i] = (struct field){
            .id = i + 1, .name = str_format(arena, "column_%d", i), .type = {.kind = TYPE_INT}};
        i32 shuffled = (i32)((i64)i * 7919 % WIDE);
        buf_append_format(&line, "%s\"column_%d\":%d", i > 0 ? "," : "", shuffled, shuffled);
    }
    size_t known = line.size;
    for (i32 i = 0; i < WIDE; i++) {
        buf_append_format(&line, ",\"other_%d\":null", i);
    }
    buf_append_byte(&line, '}');
    struct schema schema = {.root = {.kind = TYPE_STRUCT, .fields = fields, .field_count = WIDE}};
    struct decoder *decoder = NULL;
    struct decode_settings settings = {.unknown = DECODE_UNKNOWN_IGNORE};
    assert_int_equal(decoder_open(arena, &schema, &settings, &decoder, NULL), OK);
    struct decode_result result;
    for (int row = 0; row < ROWS; row++) {
        assert_int_equal(decode_line(decoder, buf_str(&line), 0, &result, NULL), OK);
        assert_int_equal(result.verdict, DECODE_ROW);
    }
    size_t count = 0;
    struct column *columns = decoder_columns(decoder, &count);
    for (i32 i = 0; i < WIDE; i++) {
        i32 value = 0;
        memcpy(&value, columns[i].data + (ROWS - 1) * sizeof(value), sizeof(value));
        assert_int_equal(value, i);
    }
    /* The same name at both ends. */
    buf_truncate(&line, known);
    buf_append(&line, STR(",\"column_0\":1}"));
    assert_int_equal(decode_line(decoder, buf_str(&line), 0, &result, NULL), OK);
    assert_int_equal(result.verdict, DECODE_REJECT);
    assert_int_equal(result.hits[0].reason, REJECT_DUPLICATE_KEY);
    arena_destroy(arena);
}

/* ---- memory ---- */

static const struct column_text many_columns[] = {
    {"s", "string", NULL},
    {"l", "list<struct<a: int required, b: map<long, string>>>", NULL},
    {"m", "map<long, double>", NULL},
    {"d", "list<long>", "[1,2,3]"},
    {"rest", "string", NULL}};

static const struct decode_settings many_settings = {.unknown = DECODE_UNKNOWN_CAPTURE,
                                                     .capture_column = STR_INIT("rest")};

static str long_line(struct arena *arena, int count)
{
    buf line = buf_create(arena, KIB, 4 * MIB);
    buf_append(&line, STR("{\"s\":\"\\u00e9"));
    for (int i = 0; i < count; i++) {
        buf_append(&line, STR("some text "));
    }
    buf_append(&line, STR("\",\"l\":["));
    for (int i = 0; i < count; i++) {
        buf_append_format(&line, "%s{\"a\":%d,\"b\":{\"%d\":\"x\\n\"}}", i > 0 ? "," : "", i, i);
    }
    buf_append(&line, STR("],\"m\":{"));
    for (int i = 0; i < count; i++) {
        buf_append_format(&line, "%s\"%d\":%d.5", i > 0 ? "," : "", i, i);
    }
    buf_append(&line, STR("},\"unknown\":[true]}"));
    return buf_str(&line);
}

/* Whether the whole goes through with the n-th growth of an arena failing. What fails must be
 * told, and leave the columns in step. */
static bool runs_with_failure_at(i64 n)
{
    AUTO_ARENA struct arena *texts = arena_create(8 * MIB);
    struct schema schema;
    schema_make(texts, many_columns, ARRAY_COUNT(many_columns), &schema);
    str lines[] = {long_line(texts, 3), STR("{\"s\":1,\"l\":[{}]}"), long_line(texts, 500)};
    AUTO_ARENA struct arena *arena = arena_create(64 * MIB);
    struct decoder *decoder = NULL;
    struct error error = {0};
    arena_fail_allocation_at(n);
    err opened = decoder_open(arena, &schema, &many_settings, &decoder, &error);
    if (opened != OK) {
        arena_fail_growth_at(0);
        assert_int_equal(opened, LIMIT);
        return false;
    }
    size_t count = 0;
    struct column *columns = decoder_columns(decoder, &count);
    bool whole = true;
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        struct decode_result result = {0};
        i64 before = columns[0].count;
        err done = decode_line(decoder, lines[i], 0, &result, &error);
        assert_true(done == OK || done == LIMIT);
        whole = whole && done == OK;
        i64 after = before + (done == OK && result.verdict == DECODE_ROW);
        for (size_t j = 0; j < count; j++) {
            assert_int_equal(columns[j].count, after);
        }
    }
    arena_fail_growth_at(0);
    return whole;
}

static void memory_running_out_is_told_and_leaves_whole_rows(void **state)
{
    (void)state;
    i64 failures = 0;
    while (!runs_with_failure_at(failures + 1)) {
        failures++;
        assert_true(failures < 1000);
    }
    assert_true(failures > 3);
}

static void a_row_past_the_arena_is_limit_and_the_next_one_fits(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *texts = arena_create(32 * MIB);
    struct schema schema;
    schema_make(texts, many_columns, ARRAY_COUNT(many_columns), &schema);
    str huge = long_line(texts, 60000);
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct decoder *decoder = NULL;
    struct decode_result result;
    struct error error = {0};
    assert_int_equal(decoder_open(arena, &schema, &many_settings, &decoder, &error), OK);
    assert_int_equal(decode_line(decoder, huge, 0, &result, &error), LIMIT);
    assert_int_equal(error.code, ERROR_OVERLOADED);
    assert_int_equal(decode_line(decoder, STR("{\"s\":\"x\"}"), 0, &result, NULL), OK);
    assert_int_equal(result.verdict, DECODE_ROW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_rules_hold),
        cmocka_unit_test(a_reject_between_rows_leaves_no_trace),
        cmocka_unit_test(clear_takes_all_rows_away),
        cmocka_unit_test(the_clock_is_the_intakes),
        cmocka_unit_test(a_line_that_no_intake_stores_is_empty_or_unreadable),
        cmocka_unit_test(members_are_taken_only_where_members_may_stand),
        cmocka_unit_test(unknown_names_are_rejected_ignored_or_captured),
        cmocka_unit_test(settings_that_do_not_fit_the_schema_are_refused),
        cmocka_unit_test(columns_that_no_sink_writes_are_refused),
        cmocka_unit_test(an_absent_column_gets_its_default_and_null_does_not),
        cmocka_unit_test(deep_json_is_walked_without_deep_calls),
        cmocka_unit_test(wide_rows_are_not_quadratic),
        cmocka_unit_test(memory_running_out_is_told_and_leaves_whole_rows),
        cmocka_unit_test(a_row_past_the_arena_is_limit_and_the_next_one_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
