#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "sink/intake_body.h"

static struct arena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = arena_create((size_t)256 * MIB);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

/* Reads the body cut into pieces of `step` bytes; the body object lives in the test's arena. */
static err read_in(str text, size_t step, const struct intake_limits *limits,
                   struct intake_body *body, struct error *error)
{
    intake_body_begin(body, arena, limits, step > 1 ? (i64)text.size : -1);
    for (size_t at = 0; at < text.size; at += step) {
        TRY(intake_body_add(body, str_slice(text, at, at + step), error));
    }
    return intake_body_end(body, error);
}

static void assert_stored(const char *text, const char *stored, i64 accepted, i64 refused)
{
    struct intake_limits limits = intake_limits_default();
    str input = str_from(text);
    for (size_t step = 1; step <= input.size; step++) {
        struct intake_body body;
        struct error error = {0};
        if (read_in(input, step, &limits, &body, &error) != OK) {
            fail_msg("%s: %s", text, error.message);
        }
        str have = intake_body_stored(&body);
        assert_int_equal(have.size, strlen(stored));
        assert_memory_equal(have.data, stored, have.size);
        assert_int_equal(body.accepted, accepted);
        assert_int_equal((i64)body.refused_count, refused);
        struct sha256 wanted = crypto_sha256(have);
        struct sha256 hash = intake_body_stored_hash(&body);
        assert_memory_equal(hash.bytes, wanted.bytes, sizeof(wanted.bytes));
        wanted = crypto_sha256(input);
        hash = intake_body_hash(&body);
        assert_memory_equal(hash.bytes, wanted.bytes, sizeof(wanted.bytes));
    }
}

static void elements_are_stored_one_a_line_wherever_the_body_is_cut(void **state)
{
    (void)state;
    assert_stored("[{\"x\":1},{\"who\":\"ann, ]\"}]", "{\"x\":1}\n{\"who\":\"ann, ]\"}", 2, 0);
    assert_stored(" [ {} , {} ,\n{}\t] \n", "{}\n{}\n{}", 3, 0);
    assert_stored("[]", "", 0, 0);
    assert_stored("\xef\xbb\xbf[{\"a\":\"\xc3\xa9\"}]", "{\"a\":\"\xc3\xa9\"}", 1, 0);
    assert_stored("[{\"a\":\"\\n\\r\"}]", "{\"a\":\"\\n\\r\"}", 1, 0);
}

static void line_ends_between_tokens_become_blanks(void **state)
{
    (void)state;
    assert_stored("[\r\n{\r\n  \"x\" :\n1\r}\n]", "{    \"x\" : 1 }", 1, 0);
}

static void a_refused_element_leaves_an_empty_line(void **state)
{
    (void)state;
    assert_stored("[1,{\"x\":1}]", "\n{\"x\":1}", 1, 1);
    assert_stored("[{\"x\":1},1]", "{\"x\":1}\n", 1, 1);
    assert_stored("[1,-2.5e3,\"a,]\",null,true,false,[[1]],{\"x\":1},12]",
                  "\n\n\n\n\n\n\n{\"x\":1}\n", 1, 8);
    assert_stored("[1,2]", "", 0, 2);
    assert_stored("[{\"a\":\"\xff\"},{\"b\":\"\xc3\"},{}]", "\n\n{}", 1, 2);
}

static void assert_reasons(const char *text, const struct intake_limits *limits,
                           const char *reasons, const char *counts)
{
    struct intake_body body;
    struct error error = {0};
    assert_int_equal(read_in(str_from(text), 3, limits, &body, &error), OK);
    buf out = buf_create(arena, 256, 64 * KIB);
    intake_body_print_reasons(&body, &out);
    buf_append_byte(&out, '\0');
    assert_string_equal(out.data, reasons);
    str by_reason = intake_body_refused_reasons(&body);
    assert_true(str_equal(by_reason, str_from(counts)));
}

static void reasons_are_those_of_the_law_in_its_order(void **state)
{
    (void)state;
    struct intake_limits limits = intake_limits_default();
    assert_reasons("[1,{},[]]", &limits,
                   "[{\"row\":0,\"reason\":\"not_an_object\",\"detail\":\"a number is no object\"},"
                   "{\"row\":2,\"reason\":\"not_an_object\",\"detail\":\"an array is no object\"}]",
                   "{\"not_an_object\":2}");
    assert_reasons("[{\"a\":\"12\xff\"}]", &limits,
                   "[{\"row\":0,\"reason\":\"invalid_utf8\",\"detail\":\"byte 8 is not UTF-8\"}]",
                   "{\"invalid_utf8\":1}");
    limits.row_bytes_max = 10;
    limits.row_depth_max = 2;
    assert_reasons(
        "[{\"a\":12345},{\"b\":[[]]},{\"a\":1234}]", &limits,
        "[{\"row\":0,\"reason\":\"row_too_large\",\"detail\":\"11 bytes, the limit is 10\"},"
        "{\"row\":1,\"reason\":\"too_deep\",\"detail\":\"3 levels, the limit is 2\"}]",
        "{\"row_too_large\":1,\"too_deep\":1}");
}

static void twenty_reasons_are_shown_and_all_are_recorded(void **state)
{
    (void)state;
    struct intake_limits limits = intake_limits_default();
    struct intake_body body;
    assert_int_equal(
        read_in(STR("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,{}]"), 5, &limits, &body, NULL),
        OK);
    assert_int_equal(body.refused_count, 23);
    buf out = buf_create(arena, 256, 64 * KIB);
    intake_body_print_reasons(&body, &out);
    assert_true(str_find(buf_str(&out), STR("\"row\":19,")) > 0);
    assert_true(str_find(buf_str(&out), STR("\"row\":20,")) < 0);
    buf rejects = buf_create(arena, 256, 64 * KIB);
    struct reject_batch batch = {
        .batch_id = STR("b"), .received_at = 0, .schema_id = -1, .mapping_version = -1};
    intake_body_print_rejects(&body, &batch, &rejects);
    assert_int_equal(body.rows, 24);
    assert_true(str_find(buf_str(&rejects), STR("\"row\":22,")) > 0);
}

static void several_reasons_stand_in_one_record(void **state)
{
    (void)state;
    struct intake_limits limits = intake_limits_default();
    limits.row_depth_max = 2;
    struct intake_body body;
    assert_int_equal(read_in(STR("[[[[\"\xff\"]]]\n]"), 4, &limits, &body, NULL), OK);
    buf out = buf_create(arena, 256, 64 * KIB);
    struct reject_batch batch = {
        .batch_id = STR("b"), .received_at = 0, .schema_id = -1, .mapping_version = -1};
    intake_body_print_rejects(&body, &batch, &out);
    buf_append_byte(&out, '\0');
    assert_string_equal(
        out.data, "{\"batch_id\":\"b\",\"row\":0,\"reason\":\"not_an_object\",\"column\":null,"
                  "\"detail\":\"an array is no object\",\"also\":[{\"column\":null,\"reason\":"
                  "\"too_deep\"},{\"column\":null,\"reason\":\"invalid_utf8\"}],"
                  "\"received_at\":\"1970-01-01T00:00:00.000000Z\",\"schema_id\":null,"
                  "\"mapping_version\":null,\"data_base64\":\"W1tbIv8iXV1d\"}\n");
}

static void assert_refused(const char *text, enum error_code code, const char *fields)
{
    struct intake_limits limits = intake_limits_default();
    str input = str_from(text);
    for (size_t step = 1; step <= input.size + 1; step++) {
        struct intake_body body;
        struct error error = {0};
        assert_int_equal(read_in(input, step, &limits, &body, &error), INVALID);
        assert_int_equal(error.code, code);
        assert_string_equal(error.fields, fields);
    }
}

static void bodies_that_are_no_arrays_are_refused_whole(void **state)
{
    (void)state;
    assert_refused("{\"a\":1}", ERROR_NOT_AN_ARRAY, "");
    assert_refused("nonsense", ERROR_NOT_AN_ARRAY, "");
    assert_refused("", ERROR_INVALID_JSON, "\"offset\":0");
    assert_refused("[{\"a\":1}", ERROR_INVALID_JSON, "\"offset\":8");
    assert_refused("[{\"a\":NaN}]", ERROR_INVALID_JSON, "\"offset\":6");
    assert_refused("[{}] x", ERROR_INVALID_JSON, "\"offset\":5");
    assert_refused("[{},]", ERROR_INVALID_JSON, "\"offset\":4");
    assert_refused("[{\"a\":\"\n\"}]", ERROR_INVALID_JSON, "\"offset\":7");
}

static void limits_of_the_body_hold(void **state)
{
    (void)state;
    struct intake_limits limits = intake_limits_default();
    struct intake_body body;
    struct error error = {0};
    limits.rows_max = 2;
    assert_int_equal(read_in(STR("[{},{}]"), 2, &limits, &body, NULL), OK);
    assert_int_equal(read_in(STR("[{},{},{}]"), 2, &limits, &body, &error), INVALID);
    assert_int_equal(error.code, ERROR_TOO_MANY_ROWS);
    error_clear(&error);
    limits.body_bytes_max = 9;
    limits.rows_max = 100;
    assert_int_equal(read_in(STR("[{},{}]  "), 2, &limits, &body, NULL), OK);
    assert_int_equal(read_in(STR("[{},{}]   "), 2, &limits, &body, &error), INVALID);
    assert_int_equal(error.code, ERROR_BODY_TOO_LARGE);
}

static void a_body_that_is_too_deep_is_told_so(void **state)
{
    (void)state;
    struct intake_limits limits = intake_limits_default();
    struct intake_body body;
    struct error error = {0};
    char deep[JSON_DEPTH_MAX + 8];
    memset(deep, '[', sizeof(deep));
    assert_int_equal(read_in((str){deep, sizeof(deep)}, 7, &limits, &body, &error), INVALID);
    assert_int_equal(error.code, ERROR_INVALID_JSON);
    assert_non_null(strstr(error.hint, "512 levels"));
    error_clear(&error);
    deep[JSON_DEPTH_MAX + 1] = '}';
    assert_int_equal(read_in((str){deep, JSON_DEPTH_MAX + 2}, 7, &limits, &body, &error), INVALID);
    assert_string_equal(error.hint, "");
}

static void a_full_arena_is_a_limit(void **state)
{
    (void)state;
    struct intake_limits limits = intake_limits_default();
    struct intake_body body;
    AUTO_ARENA struct arena *small = arena_create((size_t)8 * KIB);
    char *text = arena_alloc(arena, 20000);
    memset(text, ' ', 20000);
    memcpy(text, "[{\"a\":\"", 7);
    memset(text + 7, 'x', 15000);
    struct error error = {0};
    intake_body_begin(&body, small, &limits, -1);
    assert_int_equal(intake_body_add(&body, (str){text, 15007}, &error), LIMIT);
    assert_int_equal(error.code, ERROR_OVERLOADED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_stored_one_a_line_wherever_the_body_is_cut),
        cmocka_unit_test(line_ends_between_tokens_become_blanks),
        cmocka_unit_test(a_refused_element_leaves_an_empty_line),
        cmocka_unit_test(reasons_are_those_of_the_law_in_its_order),
        cmocka_unit_test(twenty_reasons_are_shown_and_all_are_recorded),
        cmocka_unit_test(several_reasons_stand_in_one_record),
        cmocka_unit_test(bodies_that_are_no_arrays_are_refused_whole),
        cmocka_unit_test(limits_of_the_body_hold),
        cmocka_unit_test(a_body_that_is_too_deep_is_told_so),
        cmocka_unit_test(a_full_arena_is_a_limit),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
