#include "sink/reject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct reject_batch rolled = {.batch_id = STR_INIT("b-1"),
                                           .received_at = 1443711600123456,
                                           .schema_id = 3,
                                           .mapping_version = -1};

static struct reject_hit hit(enum reject_reason reason, const char *column, const char *detail)
{
    return (struct reject_hit){
        .reason = reason,
        .column = column != NULL ? str_from(column) : (str){NULL, 0},
        .detail = str_from(detail),
    };
}

static void assert_record(const struct reject_batch *batch, const struct reject_row *row,
                          const char *wanted)
{
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    buf out = buf_create(arena, 0, MIB);
    reject_record(&out, batch, row);
    assert_true(buf_ok(&out));
    buf_append_byte(&out, 0);
    assert_string_equal(out.data, wanted);
}

static void a_record_has_every_member_in_the_order_of_the_law(void **state)
{
    (void)state;
    struct reject_hit hits[] = {hit(REJECT_OUT_OF_RANGE, "reading.temp", "4e40 is no float"),
                                hit(REJECT_WRONG_TYPE, "who", "a number is no string")};
    assert_record(&rolled,
                  &(struct reject_row){.row = 17,
                                       .hits = hits,
                                       .hit_count = 2,
                                       .data = STR("{\"reading\":{\"temp\":4e40},\r\n\"who\":1}")},
                  "{\"batch_id\":\"b-1\",\"row\":17,\"reason\":\"out_of_range\",\"column\":"
                  "\"reading.temp\",\"detail\":\"4e40 is no float\",\"also\":[{\"column\":\"who\","
                  "\"reason\":\"wrong_type\"}],\"received_at\":\"2015-10-01T15:00:00.123456Z\","
                  "\"schema_id\":3,\"mapping_version\":null,\"data\":{\"reading\":{\"temp\":4e40},"
                  "  \"who\":1}}\n");
}

static void what_is_not_there_is_null(void **state)
{
    (void)state;
    struct reject_hit hits[] = {hit(REJECT_NOT_AN_OBJECT, NULL, "a number is no object")};
    struct reject_batch intake = rolled;
    intake.schema_id = -1;
    intake.mapping_version = 2;
    assert_record(&intake,
                  &(struct reject_row){.row = 0, .hits = hits, .hit_count = 1, .data = STR("1")},
                  "{\"batch_id\":\"b-1\",\"row\":0,\"reason\":\"not_an_object\",\"column\":null,"
                  "\"detail\":\"a number is no object\",\"also\":[],\"received_at\":"
                  "\"2015-10-01T15:00:00.123456Z\",\"schema_id\":null,\"mapping_version\":2,"
                  "\"data\":1}\n");
    hits[0] = hit(REJECT_BATCH_UNREADABLE, NULL, "the object is gone");
    assert_record(&rolled, &(struct reject_row){.row = -1, .hits = hits, .hit_count = 1},
                  "{\"batch_id\":\"b-1\",\"row\":null,\"reason\":\"batch_unreadable\",\"column\":"
                  "null,\"detail\":\"the object is gone\",\"also\":[],\"received_at\":"
                  "\"2015-10-01T15:00:00.123456Z\",\"schema_id\":3,\"mapping_version\":null,"
                  "\"data\":null}\n");
}

static void the_field_that_was_meant_stands_after_the_detail(void **state)
{
    (void)state;
    struct reject_hit hits[] = {hit(REJECT_UNKNOWN_COLUMN, "X", "no such column")};
    assert_record(&rolled,
                  &(struct reject_row){.row = 1,
                                       .hits = hits,
                                       .hit_count = 1,
                                       .did_you_mean = STR("x"),
                                       .data = STR("{\"X\":1}")},
                  "{\"batch_id\":\"b-1\",\"row\":1,\"reason\":\"unknown_column\",\"column\":\"X\","
                  "\"detail\":\"no such column\",\"did_you_mean\":\"x\",\"also\":[],"
                  "\"received_at\":\"2015-10-01T15:00:00.123456Z\",\"schema_id\":3,"
                  "\"mapping_version\":null,\"data\":{\"X\":1}}\n");
}

/* The record with one hit of this path, from "column" up to "detail". */
static str column_of(struct arena *arena, str path)
{
    struct reject_hit one = {.reason = REJECT_WRONG_TYPE, .column = path, .detail = STR("d")};
    buf out = buf_create(arena, 0, MIB);
    reject_record(&out, &rolled,
                  &(struct reject_row){.hits = &one, .hit_count = 1, .data = STR("{}")});
    i64 start = str_find(buf_str(&out), STR("\"column\":"));
    i64 end = str_find(buf_str(&out), STR(",\"detail\""));
    return str_slice(buf_str(&out), (size_t)start + 9, (size_t)end);
}

static str repeated(struct arena *arena, const char *before, const char *unit, size_t count)
{
    buf out = buf_create(arena, 0, MIB);
    buf_append(&out, str_from(before));
    for (size_t i = 0; i < count; i++) {
        buf_append(&out, str_from(unit));
    }
    return buf_str(&out);
}

static void a_long_path_is_cut_at_a_character(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(4 * MIB);
    str whole = column_of(arena, repeated(arena, "", "a", 512));
    assert_int_equal(whole.size, 514);
    str longer = column_of(arena, repeated(arena, "", "a", 513));
    assert_int_equal(longer.size, 2 + 512 + 3);
    assert_true(str_ends(longer, STR("a\xE2\x80\xA6\"")));
    /* 511 bytes and then a character of two. */
    str split = column_of(arena, repeated(arena, "x", "\xC3\xA9", 256));
    assert_int_equal(split.size, 2 + 511 + 3);
    assert_true(str_ends(split, STR("\xC3\xA9\xE2\x80\xA6\"")));
    str huge = column_of(arena, repeated(arena, "", "\xE6\x97\xA5", 9000));
    assert_int_equal(huge.size, 2 + 510 + 3);
}

static void half_pairs_in_a_path_are_replaced(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(4 * MIB);
    str shown = column_of(arena, STR("a\xED\xA0\xBD.\xED\x9F\xBF\xED\xB8\x80"));
    assert_true(str_equal(shown, STR("\"a\xEF\xBF\xBD.\xED\x9F\xBF\xEF\xBF\xBD\"")));
    /* Cut just after a half pair, and with one past the cut. */
    str cut = column_of(arena, repeated(arena, "aa", "\xED\xA0\xBD", 200));
    assert_int_equal(cut.size, 2 + 512 + 3);
    assert_true(str_ends(cut, STR("\xEF\xBF\xBD\xE2\x80\xA6\"")));
}

static void only_twenty_stand_in_also(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(4 * MIB);
    struct reject_hit hits[30];
    for (size_t i = 0; i < ARRAY_COUNT(hits); i++) {
        hits[i] = hit(REJECT_BAD_DATE, "d", "x");
    }
    buf out = buf_create(arena, 0, MIB);
    reject_record(
        &out, &rolled,
        &(struct reject_row){.hits = hits, .hit_count = ARRAY_COUNT(hits), .data = STR("{}")});
    size_t count = 0;
    str rest = buf_str(&out);
    for (i64 at = 0; (at = str_find(rest, STR("bad_date"))) >= 0; count++) {
        rest = str_slice(rest, (size_t)at + 1, rest.size);
    }
    assert_int_equal(count, 1 + REJECT_ALSO_MAX);
}

static bool is_base64(struct arena *arena, str data)
{
    struct reject_hit one = hit(REJECT_WRONG_TYPE, "c", "d");
    buf out = buf_create(arena, 0, MIB);
    reject_record(&out, &rolled, &(struct reject_row){.hits = &one, .hit_count = 1, .data = data});
    assert_true(str_ends(buf_str(&out), STR("}\n")));
    bool encoded = str_find(buf_str(&out), STR(",\"data_base64\":\"")) >= 0;
    bool plain = str_find(buf_str(&out), STR(",\"data\":")) >= 0;
    assert_true(encoded != plain);
    return encoded;
}

static void what_a_json_reader_would_stumble_over_is_base64(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(4 * MIB);
    assert_false(is_base64(arena, STR("{\"a\":\"\\ud83d\\ude00 \xC3\xA9\"}")));
    assert_false(is_base64(arena, STR("{\"a\":1,\"a\":2}")));
    assert_true(is_base64(arena, STR("{\"a\":\"\\ud83d\"}")));
    assert_true(is_base64(arena, STR("{\"\\udc00\":[1]}")));
    assert_true(is_base64(arena, STR("{\"a\":\"\xff\"}")));
    assert_true(is_base64(arena, STR("{\"a\":")));
    assert_true(is_base64(arena, STR("")));
}

static void every_reason_has_its_text(void **state)
{
    (void)state;
    assert_true(str_equal(reject_reason_text(REJECT_NOT_AN_OBJECT), STR("not_an_object")));
    assert_true(str_equal(reject_reason_text(REJECT_KEY_NULL), STR("key_null")));
    for (int reason = 0; reason < REJECT_REASON_COUNT; reason++) {
        assert_true(reject_reason_text((enum reject_reason)reason).size > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_has_every_member_in_the_order_of_the_law),
        cmocka_unit_test(what_is_not_there_is_null),
        cmocka_unit_test(the_field_that_was_meant_stands_after_the_detail),
        cmocka_unit_test(a_long_path_is_cut_at_a_character),
        cmocka_unit_test(half_pairs_in_a_path_are_replaced),
        cmocka_unit_test(only_twenty_stand_in_also),
        cmocka_unit_test(what_a_json_reader_would_stumble_over_is_base64),
        cmocka_unit_test(every_reason_has_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
