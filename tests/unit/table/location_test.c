#include "table_fixture.h"

#include "table/location.h"

struct places {
    struct arena *arena;
    struct location items[3];
    struct location_set set;
};

static int open_places(void **state)
{
    struct arena *arena = arena_create(4 * MIB);
    struct places *places = arena_alloc(arena, sizeof(*places));
    static const char *const PREFIXES[] = {"file:///w", "file:///w/inner", "s3://bucket/tables"};
    places->arena = arena;
    for (size_t i = 0; i < ARRAY_COUNT(PREFIXES); i++) {
        places->items[i].prefix = str_from(PREFIXES[i]);
        assert_int_equal(store_open_mem(arena, MIB, &places->items[i].store, NULL), OK);
    }
    places->set = (struct location_set){places->items, ARRAY_COUNT(PREFIXES)};
    *state = places;
    return 0;
}

static int close_places(void **state)
{
    struct places *places = *state;
    for (size_t i = 0; i < places->set.count; i++) {
        store_close(&places->items[i].store);
    }
    arena_destroy(places->arena);
    return 0;
}

static void expect_key(struct places *places, const char *uri, size_t item, const char *wanted)
{
    struct store store = {0};
    str key = {NULL, 0};
    assert_int_equal(location_find(&places->set, places->arena, str_from(uri), &store, &key, NULL),
                     OK);
    assert_str(key, wanted);
    assert_ptr_equal(store.self, places->items[item].store.self);
}

static void iceberg_8_7_101_three_forms_of_a_file_uri_name_the_same_place(void **state)
{
    expect_key(*state, "file:///w/t/data/a.parquet", 0, "t/data/a.parquet");
    expect_key(*state, "file:/w/t/data/a.parquet", 0, "t/data/a.parquet");
    expect_key(*state, "/w/t/data/a.parquet", 0, "t/data/a.parquet");
    expect_key(*state, "s3://bucket/tables/t/a", 2, "t/a");
}

static void the_longest_prefix_wins(void **state)
{
    expect_key(*state, "file:///w/inner/t/a", 1, "t/a");
    expect_key(*state, "file:///w/inner2/t/a", 0, "inner2/t/a");
}

static void nothing_outside_the_prefixes_is_reached(void **state)
{
    struct places *places = *state;
    static const char *const URIS[] = {"file:///etc/passwd",
                                       "/etc/passwd",
                                       "file:///w",
                                       "file:///w/",
                                       "file:///w2/t/a",
                                       "file:///w/../etc/passwd",
                                       "file:///w/t/../../etc/passwd",
                                       "file:///w//t/a",
                                       "file:///w/./a",
                                       "s3://bucket/other/a",
                                       "s3://bucket2/tables/a",
                                       "file://host/w/t/a",
                                       "w/t/a",
                                       "",
                                       "http://w/t/a"};
    for (size_t i = 0; i < ARRAY_COUNT(URIS); i++) {
        struct store store = {0};
        struct error error = {0};
        str key = {NULL, 0};
        err result = location_find(&places->set, places->arena, str_from(URIS[i]), &store, &key,
                                   &error);
        if (result != DENIED || error.code != ERROR_LOCATION_REFUSED) {
            fail_msg("%s: %s", URIS[i], err_text(result));
        }
    }
}

static void what_is_put_is_got_and_removed(void **state)
{
    struct places *places = *state;
    str uri = STR("file:///w/t/metadata/a.json");
    str pieces[2] = {STR("one"), STR("two")};
    str bytes = {NULL, 0};
    assert_int_equal(location_put(&places->set, places->arena, uri, pieces, 2, NULL), OK);
    assert_int_equal(location_get(&places->set, places->arena, uri, &bytes, NULL), OK);
    assert_str(bytes, "onetwo");
    assert_int_equal(location_remove(&places->set, places->arena, uri, NULL), OK);
    assert_int_equal(location_get(&places->set, places->arena, uri, &bytes, NULL), NOT_FOUND);
}

static void a_path_becomes_a_uri_with_three_slashes(void **state)
{
    struct places *places = *state;
    assert_str(location_from_path(places->arena, STR("/data/w")), "file:///data/w");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            iceberg_8_7_101_three_forms_of_a_file_uri_name_the_same_place, open_places,
            close_places),
        cmocka_unit_test_setup_teardown(the_longest_prefix_wins, open_places, close_places),
        cmocka_unit_test_setup_teardown(nothing_outside_the_prefixes_is_reached, open_places,
                                        close_places),
        cmocka_unit_test_setup_teardown(what_is_put_is_got_and_removed, open_places, close_places),
        cmocka_unit_test_setup_teardown(a_path_becomes_a_uri_with_three_slashes, open_places,
                                        close_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
