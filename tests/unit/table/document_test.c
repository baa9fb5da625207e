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

/* ---- after another ---- */

static struct document_text print_after(struct arena *arena, const json_t *document,
                                        const struct document_text *before)
{
    struct document_text text = {0};
    assert_int_equal(document_print_after(arena, document, before, &text, NULL), OK);
    return text;
}

static void items_that_were_there_are_copied_not_printed(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    AUTO_JSON json_t *base = fixture_json("{'n':1,'list':[{'a':1},{'b':[2]}],'none':[],'o':{}}");
    struct document_text before = print_after(arena, base, NULL);
    assert_str(before.text, "{\"n\":1,\"list\":[{\"a\":1},{\"b\":[2]}],\"none\":[],\"o\":{}}");
    AUTO_JSON json_t *after = document_branch(base);
    document_set_i64(after, "n", 2);
    document_append(json_object_get(after, "list"), json_true());
    document_append(json_object_get(after, "none"), json_false());
    /* Another text of the same length tells where it came from. */
    before.text = STR("{\"n\":1,\"list\":[?????????????????],\"none\":[],\"o\":{}}");
    struct document_text text = print_after(arena, after, &before);
    assert_str(text.text, "{\"n\":2,\"list\":[?????????????????,true],\"none\":[false],\"o\":{}}");
    text = print_after(arena, base, &before);
    assert_true(str_equal(text.text, before.text));
}

static void a_list_that_lost_or_changed_an_item_is_printed(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    AUTO_JSON json_t *base = fixture_json("{'list':[{'a':1},{'b':2}]}");
    struct document_text before = print_after(arena, base, NULL);
    before.text = STR("{\"list\":[???????????????]}");
    AUTO_JSON json_t *shorter = document_branch(base);
    json_array_remove(json_object_get(shorter, "list"), 1);
    assert_str(print_after(arena, shorter, &before).text, "{\"list\":[{\"a\":1}]}");
    AUTO_JSON json_t *equal = document_copy(base);
    assert_str(print_after(arena, equal, &before).text, "{\"list\":[{\"a\":1},{\"b\":2}]}");
    AUTO_JSON json_t *changed = document_branch(base);
    json_array_set_new(json_object_get(changed, "list"), 1, json_integer(3));
    assert_str(print_after(arena, changed, &before).text, "{\"list\":[{\"a\":1},3]}");
}

static void more_lists_than_are_remembered_are_printed(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    AUTO_JSON json_t *base = json_object();
    for (int i = 0; i < DOCUMENT_LISTS_MAX + 3; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "l%d", i);
        document_append(document_array(base, name), json_integer(i));
    }
    struct document_text before = print_after(arena, base, NULL);
    assert_int_equal(before.list_count, DOCUMENT_LISTS_MAX);
    assert_true(str_equal(print_after(arena, base, &before).text, before.text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_reads_back_and_says_the_same),
        cmocka_unit_test(a_deep_document_is_printed),
        cmocka_unit_test(the_arena_s_limit_is_an_error),
        cmocka_unit_test(items_that_were_there_are_copied_not_printed),
        cmocka_unit_test(a_list_that_lost_or_changed_an_item_is_printed),
        cmocka_unit_test(more_lists_than_are_remembered_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
