/* Rows in sequence, by every way that a decoder has: the same verdicts, reasons and columns. Orders
 * of names change from row to row, values come in all forms, good and bad. */
#include "sink/decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define LONG_NAME   "a_name_of_more_than_thirty_two_bytes_in_all"
#define LONGER_NAME LONG_NAME "_and_of_more_than_sixty_four_with_this"

/* A column and what may stand in it, the usual first. */
struct column_text {
    const char *name;
    const char *type;
    const char *values[9];
};

static const struct column_text column_texts[] = {
    {"id",
     "long required",
     {"1", "-7", "123456789012345678", "9223372036854775807", "\"12\"", "5.0", "1e3", "01",
      "\"x\""}},
    {"i",
     "int",
     {"0", "2147483647", "-2147483648", "\"5\"", "2147483648", "1.5", "null", "-0", "\"\""}},
    {"d",
     "double",
     {"1.5", "-20.25", "0.30000000000000004", "1e-320", "\"NaN\"", "123456789.123456789", "\"7.5\"",
      "1.", "12345678901234567890123"}},
    {"f",
     "float",
     {"1.5", "16777217", "3.4028236e38", "1e39", "0.1", "-0", "\"Infinity\"", "null", "true"}},
    {"m",
     "decimal(9,2)",
     {"\"12.50\"", "1.5", "-0.01", "1234567.89", "12345678.9", "1.234", "1.230", "0", "\".5\""}},
    {"n",
     "decimal(38,10)",
     {"\"1.0000000001\"", "0.5", "1234567890123456789012345678", "null", "-1", "1e27", "1e28",
      "\"-0.0\"", "2"}},
    {"when",
     "timestamptz required",
     {"\"2026-03-01T10:20:30.123456Z\"", "\"2026-03-01T10:20:31Z\"",
      "\"2026-03-02T00:00:00.5+02:00\"", "\"2026-03-02 10:20:30.1234567890Z\"",
      "\"2026-02-30T10:20:30Z\"", "\"2026-03-01T10:20:30\"", "\"2026-03-01t10:20z\"",
      "\"1969-12-31T23:59:59.9999999-0730\"", "\"0001-01-01T00:00:00+01:00\""}},
    {"local",
     "timestamp_ns",
     {"\"2026-03-01T10:20:30\"", "\"1677-09-21T00:12:43Z\"", "\"2262-04-11T23:47:16.854775807Z\"",
      "\"2262-04-11T23:47:16.854775808Z\"", "null", "\"2026-03-01T24:00:00Z\"",
      "\"2026-03-01T10:20:30.Z\"", "5", "\"2026-03-01T10:20:30-00:00\""}},
    {"day",
     "date",
     {"\"2026-03-01\"", "\"2026-03-01\"", "\"2024-02-29\"", "\"2023-02-29\"", "\"0000-01-01\"",
      "null", "\"2026-03-01T00:00:00Z\"", "20260301", "\"1970-01-01\""}},
    {"t",
     "time",
     {"\"10:20\"", "\"10:20:30.123\"", "\"24:00\"", "null", "\"1:2\"", "0", "\"00:00:00\"",
      "\"10:20:30Z\"", "\"23:59:59.9999999\""}},
    {"ok", "boolean", {"true", "false", "null", "0", "\"true\"", "true", "false", "tru", "True"}},
    {"u",
     "uuid",
     {"\"00112233-4455-6677-8899-aabbccddeeff\"", "\"00112233-4455-6677-8899-AABBCCDDEEFF\"",
      "\"00112233445566778899aabbccddeeff\"", "\"00112233-4455-6677-8899-aabbccddeefg\"", "null",
      "\"{0112233-4455-6677-8899-aabbccddeeff}\"", "1", "\"\"",
      "\"\\u0030"
      "0112233-4455-6677-8899-aabbccddeeff\""}},
    {"s",
     "string",
     {"\"short\"", "\"a text that is longer than thirty-two bytes are\"",
      "\"\\n\\\"\\\\\\/\\u00e9\"", "\"\\ud83d\\ude00\"", "\"\\ud83d\"", "\"\xC3\xA4\xE2\x82\xAC\"",
      "null", "\"\"", "12"}},
    {LONG_NAME,
     "string",
     {"\"x\"", "null", "\"31 bytes and then an escape ..\\u20ac\"", "\"a\"", "\"b\"", "\"c\"",
      "\"0123456789012345678901234567890\\t\"", "{}", "\"\x01\""}},
    {LONGER_NAME, "int", {"1", "2", "null", "3", "4", "5", "6", "7", "x"}},
    {"q\"q", "int", {"1", "2", "null", "3", "4", "5", "6", "7", "8"}},
    {"x",
     "binary",
     {"\"AQID\"", "\"AQI=\"", "\"\"", "\"A\"", "null", "\"-_8\"", "1", "\"AQI\"", "\"+_8\""}},
    {"st",
     "struct<a: int required, b: string>",
     {"{\"a\":1,\"b\":\"x\"}", "{\"b\":null,\"a\":2}", "{\"a\":3}", "{}", "null",
      "{\"a\":1,\"c\":2}", "{\"a\":1,\"a\":2}", "[]", "{ \"a\" : 4 , \"b\" : \"\" }"}},
    {"li",
     "list<string>",
     {"[\"a\",\"b\"]", "[]", "[null]", "null", "[ \"a\" ]", "[1]", "{}", "[\"a\",]", "[\"a\""}},
    {"ls",
     "list<struct<k: string required, v: double>>",
     {"[{\"k\":\"a\",\"v\":1.5},{\"v\":null,\"k\":\"b\"}]", "[]", "null", "[{\"k\":\"a\"}]",
      "[{\"v\":1}]", "[null]", "[{\"k\":\"a\",\"v\":2},{\"k\":1}]", "[[]]",
      "[{\"k\":\"z\"},{\"k\":\"y\",\"v\":1}]"}},
    {"ma",
     "map<string, int>",
     {"{\"a\":1,\"b\":2}", "{}", "{\"a\":null}", "null", "{\"a\":1,\"\\u0061\":2}", "{\"a\":\"x\"}",
      "[]", "{\"\":1}", "{\"a\":1,\"b\":2,\"c\":3}"}},
    {"mi",
     "map<int, string>",
     {"null", "null", "null", "{\"1\":\"a\"}", "[{\"key\":1,\"value\":\"a\"}]", "null",
      "{\"x\":\"a\"}", "{}", "null"}},
    {"va",
     "variant",
     {"null", "null", "null", "1", "{\"a\":[1,2.5]}", "null", "null", "null", "\"x\""}},
};

enum { COLUMNS = ARRAY_COUNT(column_texts), WAYS = 3, LINE_MAX = 16 * KIB };

struct ways {
    struct arena *arena;
    struct schema schema;
    struct decoder *decoders[WAYS];
    struct decode_result results[WAYS];
    size_t count; /* of ways that this machine has */
    u64 random;
};

static u64 next_random(struct ways *ways, u64 below)
{
    ways->random = ways->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (ways->random >> 33) % below;
}

static void ways_open(struct ways *ways, const struct decode_settings *settings, u64 seed)
{
    i32 last_id = 0;
    *ways = (struct ways){.arena = arena_create(512 * MIB), .random = seed};
    struct field *fields = arena_array(ways->arena, COLUMNS + 1, sizeof(*fields));
    for (size_t i = 0; i < COLUMNS; i++) {
        fields[i].name = str_from(column_texts[i].name);
        assert_int_equal(schema_parse_type(ways->arena, str_from(column_texts[i].type),
                                           &fields[i].type, &fields[i].required, NULL),
                         OK);
    }
    fields[1].write_default = STR("17");
    fields[COLUMNS] = (struct field){.name = STR(DECODE_INGEST_COLUMN),
                                     .type = {.kind = TYPE_TIMESTAMPTZ}};
    ways->schema = (struct schema){
        .root = {.kind = TYPE_STRUCT, .fields = fields, .field_count = COLUMNS + 1}};
    schema_assign_ids(&ways->schema.root, &last_id);
    for (enum decode_way way = DECODE_WAY_TREE; way <= DECODE_WAY_WIDE; way++) {
        struct decoder **decoder = &ways->decoders[ways->count];
        assert_int_equal(decoder_open(ways->arena, &ways->schema, settings, decoder, NULL), OK);
        ways->count += decoder_choose_way(*decoder, way) ? 1 : 0;
    }
}

/* ---- rows ---- */

static void put_space(struct ways *ways, buf *out)
{
    if (next_random(ways, 16) == 0) {
        buf_append(out, next_random(ways, 2) == 0 ? STR(" ") : STR("\t \r"));
    }
}

/* `wrong` of a hundred values are any, others one of the first four. */
static void put_member(struct ways *ways, buf *out, size_t column, u64 wrong)
{
    const struct column_text *text = &column_texts[column];
    u64 choices = next_random(ways, 100) < wrong ? ARRAY_COUNT(text->values) : 3;
    put_space(ways, out);
    if (next_random(ways, 50) == 0) {
        buf_append(out, STR("\"\\u0069d\"")); /* id */
    } else {
        buf_append_json_string(out, str_from(text->name));
    }
    put_space(ways, out);
    buf_append_byte(out, ':');
    put_space(ways, out);
    buf_append(out, str_from(text->values[next_random(ways, choices)]));
    put_space(ways, out);
}

static void put_row(struct ways *ways, buf *out, u64 wrong)
{
    size_t order[COLUMNS];
    size_t count = 0;
    bool shuffled = next_random(ways, 8) == 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        if (wrong == 0 || next_random(ways, 30) > 0) {
            order[count++] = i;
        }
    }
    for (size_t i = 0; shuffled && i < count; i++) {
        size_t other = next_random(ways, count);
        size_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    buf_append_byte(out, '{');
    for (size_t i = 0; i < count; i++) {
        buf_append(out, i > 0 ? STR(",") : STR(""));
        put_member(ways, out, order[i], wrong);
        if (wrong > 0 && next_random(ways, 400) == 0) {
            buf_append(out, next_random(ways, 2) == 0 ? STR(",\"other\":{\"a\":[1]}")
                                                      : STR(",\"s\":\"twice\""));
        }
    }
    buf_append_byte(out, '}');
    if (wrong > 0 && next_random(ways, 100) == 0) {
        buf_append(out, next_random(ways, 2) == 0 ? STR(" {}") : STR(" "));
    }
    if (wrong > 0 && next_random(ways, 50) == 0) {
        out->data[next_random(ways, out->size)] = (char)next_random(ways, 256);
    }
}

/* ---- the same ---- */

static void assert_same_columns(const struct column *a, const struct column *b)
{
    size_t count = (size_t)a->count;
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->null_count, b->null_count);
    assert_int_equal(a->data_size, b->data_size);
    if (count > 0) {
        assert_memory_equal(a->valid, b->valid, count);
    }
    if (a->data_size > 0) {
        assert_memory_equal(a->data, b->data, (size_t)a->data_size);
    }
    if (count > 0 && a->offsets != NULL) {
        assert_memory_equal(a->offsets, b->offsets, (count + 1) * sizeof(i64));
    }
    for (size_t i = 0; i < a->child_count; i++) {
        assert_same_columns(&a->children[i], &b->children[i]);
    }
}

static void assert_same_result(const struct decode_result *a, const struct decode_result *b,
                               str line)
{
    if (a->verdict != b->verdict || a->hit_count != b->hit_count) {
        fail_msg("%d and %d of %.*s", (int)a->verdict, (int)b->verdict, STR_ARG(line));
    }
    for (size_t i = 0; i < a->hit_count; i++) {
        assert_int_equal(a->hits[i].reason, b->hits[i].reason);
        assert_true(str_equal(a->hits[i].column, b->hits[i].column));
        assert_true(str_equal(a->hits[i].detail, b->hits[i].detail));
    }
}

/* The line at the front of others, or without any behind it: read in place and from a copy. */
static void decode_in_place(struct decoder *decoder, str line, bool last, i64 row, buf *lines,
                            struct decode_result *out_result)
{
    str found;
    buf_truncate(lines, 0);
    buf_append(lines, line);
    for (int i = 0; i < 100 && !last; i++) {
        buf_append(lines, STR("\n{}"));
    }
    str rest = buf_str(lines);
    decoder_reads(decoder, (str){NULL, 0}); /* the buffer's bytes are others than before */
    decoder_reads(decoder, rest);
    assert_int_equal(decode_next(decoder, &rest, row, &found, out_result, NULL), OK);
    assert_true(str_equal(found, line));
    assert_int_equal(rest.size, last ? 0 : lines->size - line.size - 1);
    assert_int_equal(rest.data == NULL, last);
}

/* Counts the rows taken. */
static i64 decode_rows(struct ways *ways, i64 rows, u64 wrong)
{
    buf line = buf_create(ways->arena, LINE_MAX, LINE_MAX);
    buf lines = buf_create(ways->arena, 2 * LINE_MAX, 2 * LINE_MAX);
    i64 taken = 0;
    for (i64 row = 0; row < rows; row++) {
        buf_truncate(&line, 0);
        put_row(ways, &line, wrong);
        assert_true(buf_ok(&line));
        for (size_t i = 0; i < ways->count; i++) {
            struct decode_result *result = &ways->results[i];
            if (row % 3 == 0) {
                assert_int_equal(decode_line(ways->decoders[i], buf_str(&line), row, result, NULL),
                                 OK);
            } else {
                decode_in_place(ways->decoders[i], buf_str(&line), row % 3 == 1, row, &lines,
                                result);
            }
            assert_same_result(&ways->results[0], &ways->results[i], buf_str(&line));
        }
        taken += ways->results[0].verdict == DECODE_ROW ? 1 : 0;
    }
    return taken;
}

static void ways_close(struct ways *ways)
{
    size_t count = 0;
    const struct column *expected = decoder_columns(ways->decoders[0], &count);
    for (size_t i = 1; i < ways->count; i++) {
        const struct column *columns = decoder_columns(ways->decoders[i], &count);
        for (size_t j = 0; j < count; j++) {
            assert_same_columns(&expected[j], &columns[j]);
        }
    }
    arena_destroy(ways->arena);
}

static void every_way_takes_the_same_rows(void **state)
{
    (void)state;
    static const u64 wrongs[] = {0, 1, 3, 20};
    static const enum decode_unknown unknowns[] = {DECODE_UNKNOWN_REJECT, DECODE_UNKNOWN_IGNORE,
                                                   DECODE_UNKNOWN_CAPTURE};
    for (size_t i = 0; i < ARRAY_COUNT(wrongs) * ARRAY_COUNT(unknowns); i++) {
        struct ways ways;
        const str keys[] = {STR("id"), STR("day")};
        struct decode_settings settings = {.unknown = unknowns[i % ARRAY_COUNT(unknowns)],
                                           .capture_column = STR("s"),
                                           .key_columns = keys,
                                           .key_count = i % 2 == 0 ? 2 : 0};
        u64 wrong = wrongs[i / ARRAY_COUNT(unknowns)];
        ways_open(&ways, &settings, i);
        i64 taken = decode_rows(&ways, 1500, wrong);
        assert_true(wrong == 20 || taken > 50);
        ways_close(&ways);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_takes_the_same_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
