#include "table/document.h"

#include "table_fixture.h"

static void what_is_printed_reads_back_and_says_the_same(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[]",
        "null",
        "-9223372036854775808",
        "{\"a\":1,\"b\":[2,3,{},[]],\"c\":{\"d\":null},\"e\":[],\"f\":[true,false]}",
        "{\"quotes \\\" and \\\\ and \\n\":\"\\u0001 \xc3\xa9\"}",
        "[1.5,0.1,1e+300]",
    };
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        json_auto_t *value = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        str text = {0};
        assert_non_null(value);
        assert_int_equal(document_print(arena, value, &text, NULL), OK);
        json_auto_t *again = json_loadb(text.data, text.size, JSON_DECODE_ANY, NULL);
        assert_non_null(again);
        assert_true(json_equal(value, again));
        if (i < 6) {
            assert_true(str_equal(text, str_from(texts[i])));
        }
    }
}

static void a_deep_document_is_printed(void **state)
{
    (void)state;
    enum { LEVELS = 2000 };
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    json_t *value = json_array();
    for (int i = 1; i < LEVELS; i++) {
        json_t *outer = json_array();
        assert_int_equal(json_array_append_new(outer, value), 0);
        value = outer;
    }
    str text = {0};
    assert_int_equal(document_print(arena, value, &text, NULL), OK);
    json_decref(value);
    assert_int_equal(text.size, 2 * LEVELS);
    assert_true(text.data[LEVELS - 1] == '[' && text.data[LEVELS] == ']');
}

static void the_arena_s_limit_is_an_error(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * KIB);
    json_auto_t *value = json_array();
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(json_array_append_new(value, json_integer(i)), 0);
    }
    str text = {0};
    struct error error = {0};
    assert_int_not_equal(document_print(arena, value, &text, &error), OK);
    assert_null(text.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_reads_back_and_says_the_same),
        cmocka_unit_test(a_deep_document_is_printed),
        cmocka_unit_test(the_arena_s_limit_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
