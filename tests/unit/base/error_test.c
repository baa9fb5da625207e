#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/utf8.h"

static void set_fills_and_returns_the_kind(void **state)
{
    (void)state;
    struct error error = {0};
    assert_int_equal(error_set(&error, CONFLICT, ERROR_SINK_EXISTS, "table %s", "t"), CONFLICT);
    assert_int_equal(error.code, ERROR_SINK_EXISTS);
    assert_string_equal(error.message, "table t");
    assert_int_equal(error_set(NULL, IO, ERROR_STORE_DOWN, "nobody listens"), IO);
}

static void first_fact_stands(void **state)
{
    (void)state;
    struct error error = {0};
    assert_int_equal(error_set(&error, IO, ERROR_STORE_DOWN, "first"), IO);
    assert_int_equal(error_set(&error, INVALID, ERROR_INTERNAL, "second"), INVALID);
    assert_int_equal(error.code, ERROR_STORE_DOWN);
    assert_string_equal(error.message, "first");
    error_hint(&error, "do %d", 1);
    error_hint(&error, "do %d", 2);
    assert_string_equal(error.hint, "do 1");
    error_clear(&error);
    assert_int_equal(error.code, ERROR_NONE);
    assert_string_equal(error.message, "");
    assert_string_equal(error.hint, "");
}

static void long_messages_are_cut_at_a_character(void **state)
{
    (void)state;
    for (int prefix = 0; prefix < 4; prefix++) {
        char text[2000] = {0};
        memset(text, 'a', (size_t)prefix);
        for (size_t at = (size_t)prefix; at + 4 < sizeof(text); at += 4) {
            memcpy(text + at, "\xf0\x9f\x98\x80", 4);
        }
        struct error error = {0};
        error_set(&error, INVALID, ERROR_INVALID_REQUEST, "%s", text);
        str message = str_from(error.message);
        assert_true(message.size < ERROR_MESSAGE_MAX);
        assert_true(message.size > ERROR_MESSAGE_MAX - 6);
        assert_true(utf8_valid(message));
    }
}

static void fields_are_members_of_an_object(void **state)
{
    (void)state;
    struct error error = {0};
    error_field_text(&error, "sink_id", STR("snk_\"1\""));
    error_field_i64(&error, "offset", -3);
    error_field_json(&error, "tables", STR("[\"a\",\"b\"]"));
    assert_string_equal(error.fields,
                        "\"sink_id\":\"snk_\\\"1\\\"\",\"offset\":-3,\"tables\":[\"a\",\"b\"]");
    error_field_text(NULL, "a", STR("b"));
    error_field_i64(NULL, "a", 1);
    error_field_json(NULL, "a", STR("1"));
    error_hint(NULL, "x");
    error_clear(NULL);
}

static void field_without_room_is_left_out_whole(void **state)
{
    (void)state;
    static char large[ERROR_FIELDS_MAX];
    memset(large, 'x', sizeof(large));
    struct error error = {0};
    error_field_i64(&error, "a", 1);
    error_field_text(&error, "large", (str){large, sizeof(large)});
    error_field_i64(&error, "b", 2);
    assert_string_equal(error.fields, "\"a\":1,\"b\":2");
    size_t room = ERROR_FIELDS_MAX - 1 - strlen(error.fields) - strlen(",\"c\":\"\"");
    error_field_text(&error, "c", (str){large, room + 1});
    assert_string_equal(error.fields, "\"a\":1,\"b\":2");
    error_field_text(&error, "c", (str){large, room});
    assert_int_equal(strlen(error.fields), ERROR_FIELDS_MAX - 1);
}

static void full_memory_is_limit_and_overloaded(void **state)
{
    (void)state;
    struct error error = {0};
    assert_int_equal(error_memory(&error), LIMIT);
    assert_int_equal(error.code, ERROR_OVERLOADED);
    assert_true(strlen(error.message) > 0);
    assert_int_equal(error_memory(NULL), LIMIT);
}

static void every_code_has_its_own_text_and_a_status(void **state)
{
    (void)state;
    for (int i = ERROR_NONE + 1; i < ERROR_CODE_COUNT; i++) {
        enum error_code code = (enum error_code)i;
        int status = error_code_http_status(code);
        assert_true(status >= 400 && status <= 599);
        assert_true(strlen(error_code_text(code)) > 0);
        for (int k = i + 1; k < ERROR_CODE_COUNT; k++) {
            assert_string_not_equal(error_code_text(code), error_code_text((enum error_code)k));
        }
    }
    assert_string_equal(error_code_text(ERROR_INVALID_JSON), "invalid_json");
    assert_int_equal(error_code_http_status(ERROR_SINK_DELETED), 410);
    assert_true(error_code_retryable(ERROR_STORE_DOWN));
    assert_false(error_code_retryable(ERROR_INVALID_JSON));
}

static void every_kind_has_its_name(void **state)
{
    (void)state;
    const struct {
        err kind;
        const char *name;
    } cases[] = {{OK, "OK"},
                 {INVALID, "INVALID"},
                 {DENIED, "DENIED"},
                 {LIMIT, "LIMIT"},
                 {NOT_FOUND, "NOT_FOUND"},
                 {CONFLICT, "CONFLICT"},
                 {BUSY, "BUSY"},
                 {IO, "IO"},
                 {UNKNOWN, "UNKNOWN"},
                 {CORRUPT, "CORRUPT"},
                 {CANCELLED, "CANCELLED"}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_string_equal(err_text(cases[i].kind), cases[i].name);
    }
}

static err twice(err first, err second, int *calls)
{
    *calls += 1;
    TRY(first);
    *calls += 1;
    TRY(second);
    *calls += 1;
    return OK;
}

static void try_returns_at_the_first_failure(void **state)
{
    (void)state;
    int calls = 0;
    assert_int_equal(twice(OK, OK, &calls), OK);
    assert_int_equal(calls, 3);
    calls = 0;
    assert_int_equal(twice(OK, UNKNOWN, &calls), UNKNOWN);
    assert_int_equal(calls, 2);
    calls = 0;
    assert_int_equal(twice(IO, OK, &calls), IO);
    assert_int_equal(calls, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_fills_and_returns_the_kind),
        cmocka_unit_test(first_fact_stands),
        cmocka_unit_test(long_messages_are_cut_at_a_character),
        cmocka_unit_test(fields_are_members_of_an_object),
        cmocka_unit_test(field_without_room_is_left_out_whole),
        cmocka_unit_test(full_memory_is_limit_and_overloaded),
        cmocka_unit_test(every_code_has_its_own_text_and_a_status),
        cmocka_unit_test(every_kind_has_its_name),
        cmocka_unit_test(try_returns_at_the_first_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
