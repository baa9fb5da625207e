#include "table/metadata_cache.h"

#include "table_fixture.h"

static struct metadata *document_of(int snapshots)
{
    json_t *list = json_array();
    for (int i = 0; i < snapshots; i++) {
        assert_int_equal(json_array_append_new(list, json_pack("{s:i}", "snapshot-id", i)), 0);
    }
    return (struct metadata *)(void *)json_pack("{s:o}", "snapshots", list);
}

static size_t references(const struct metadata *metadata)
{
    return metadata_json(metadata)->refcount;
}

static int set_up(void **state)
{
    static struct metadata_cache cache;
    metadata_cache_open(&cache);
    *state = &cache;
    return 0;
}

static void what_was_put_is_found_as_the_same_document(void **state)
{
    struct metadata_cache *cache = *state;
    struct metadata *document = document_of(1);
    metadata_cache_put(cache, STR("file:///t/1"), document, 1);
    struct metadata *found = metadata_cache_find(cache, STR("file:///t/1"));
    assert_ptr_equal(found, document);
    assert_null(metadata_cache_find(cache, STR("file:///t/2")));
    metadata_close(found);
    metadata_cache_close(cache);
    assert_int_equal(references(document), 1);
    metadata_close(document);
}

static void what_is_put_again_takes_the_place(void **state)
{
    struct metadata_cache *cache = *state;
    struct metadata *first = document_of(1);
    struct metadata *second = document_of(2);
    metadata_cache_put(cache, STR("u"), first, 1);
    metadata_cache_put(cache, STR("u"), second, 1);
    assert_int_equal(references(first), 1);
    struct metadata *found = metadata_cache_find(cache, STR("u"));
    assert_ptr_equal(found, second);
    metadata_close(found);
    metadata_cache_put(cache, STR("u"), first, METADATA_CACHE_BYTES_MAX + 1);
    assert_null(metadata_cache_find(cache, STR("u")));
    metadata_cache_close(cache);
    metadata_close(first);
    metadata_close(second);
}

static void the_oldest_makes_room(void **state)
{
    struct metadata_cache *cache = *state;
    struct metadata *document = document_of(0);
    for (u8 i = 0; i <= METADATA_CACHE_FILES; i++) {
        char uri = (char)('A' + i);
        metadata_cache_put(cache, (str){&uri, 1}, document, 1);
    }
    assert_int_equal(references(document), 1 + METADATA_CACHE_FILES);
    assert_null(metadata_cache_find(cache, STR("A")));
    struct metadata *found = metadata_cache_find(cache, STR("B"));
    assert_non_null(found);
    metadata_close(found);
    metadata_cache_close(cache);
    metadata_close(document);
}

static void a_text_is_found_until_its_document_is_put_without(void **state)
{
    struct metadata_cache *cache = *state;
    struct metadata *document = document_of(1);
    struct metadata_text *text = NULL;
    assert_int_equal(metadata_text_print(document, NULL, &text, NULL), OK);
    metadata_cache_put_text(cache, STR("u"), STR(""), text);
    struct metadata *found = metadata_cache_find(cache, STR("u"));
    struct metadata_text *found_text = metadata_cache_find_text(cache, STR("u"));
    assert_ptr_equal(found, document);
    assert_ptr_equal(found_text, text);
    assert_null(metadata_cache_find_text(cache, STR("v")));
    metadata_cache_put(cache, STR("u"), document, 1);
    assert_null(metadata_cache_find_text(cache, STR("u")));
    metadata_close(found);
    metadata_text_close(found_text);
    metadata_cache_put_text(cache, STR("u"), STR(""), text);
    metadata_text_close(text);
    metadata_cache_close(cache);
    assert_int_equal(references(document), 1);
    metadata_close(document);
}

static void a_version_takes_the_place_of_the_one_that_it_follows(void **state)
{
    struct metadata_cache *cache = *state;
    struct metadata *other = document_of(0);
    struct metadata *document = document_of(1);
    struct metadata_text *text = NULL;
    assert_int_equal(metadata_text_print(document, NULL, &text, NULL), OK);
    metadata_cache_put(cache, STR("other"), other, 1);
    char from = '0';
    for (char uri = 'a'; uri < 'a' + METADATA_CACHE_FILES + 8; uri++) {
        metadata_cache_put_text(cache, (str){&uri, 1}, (str){&from, 1}, text);
        assert_null(metadata_cache_find_text(cache, (str){&from, 1}));
        from = uri;
    }
    AUTO_METADATA struct metadata *found = metadata_cache_find(cache, STR("other"));
    assert_ptr_equal(found, other);
    AUTO_METADATA_TEXT struct metadata_text *last = metadata_cache_find_text(cache,
                                                                             (str){&from, 1});
    assert_ptr_equal(last, text);
    metadata_cache_close(cache);
    metadata_close(other);
    metadata_close(document);
    metadata_text_close(text);
}

static void a_version_that_grew_too_large_ends_the_one_that_it_follows(void **state)
{
    struct metadata_cache *cache = *state;
    struct metadata *small = document_of(1);
    struct metadata *large = document_of(METADATA_CACHE_BYTES_MAX / 16);
    struct metadata_text *text = NULL;
    assert_int_equal(metadata_text_print(large, NULL, &text, NULL), OK);
    metadata_cache_put(cache, STR("small"), small, 1);
    metadata_cache_put_text(cache, STR("large"), STR("small"), text);
    assert_null(metadata_cache_find(cache, STR("small")));
    assert_null(metadata_cache_find(cache, STR("large")));
    metadata_cache_close(cache);
    metadata_close(small);
    metadata_close(large);
    metadata_text_close(text);
}

static void large_documents_and_long_names_are_not_kept(void **state)
{
    struct metadata_cache *cache = *state;
    char uri[METADATA_CACHE_URI_MAX + 1];
    memset(uri, 'u', sizeof(uri));
    struct metadata *large = document_of(1);
    struct metadata *small = document_of(1);
    metadata_cache_put(cache, STR("large"), large, METADATA_CACHE_BYTES_MAX + 1);
    metadata_cache_put(cache, (str){uri, sizeof(uri)}, small, METADATA_CACHE_BYTES_MAX);
    assert_int_equal(references(large), 1);
    assert_int_equal(references(small), 1);
    metadata_cache_put(cache, (str){uri, sizeof(uri) - 1}, small, METADATA_CACHE_BYTES_MAX);
    assert_int_equal(references(small), 2);
    metadata_cache_close(cache);
    metadata_close(large);
    metadata_close(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_was_put_is_found_as_the_same_document, set_up),
        cmocka_unit_test_setup(what_is_put_again_takes_the_place, set_up),
        cmocka_unit_test_setup(the_oldest_makes_room, set_up),
        cmocka_unit_test_setup(a_text_is_found_until_its_document_is_put_without, set_up),
        cmocka_unit_test_setup(a_version_takes_the_place_of_the_one_that_it_follows, set_up),
        cmocka_unit_test_setup(a_version_that_grew_too_large_ends_the_one_that_it_follows, set_up),
        cmocka_unit_test_setup(large_documents_and_long_names_are_not_kept, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
