#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/map.h"

static void keys_are_found_again(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * (size_t)MIB);
    struct map *map = map_create(arena, 0);
    enum { COUNT = 10000 };
    for (u64 i = 0; i < COUNT; i++) {
        bool is_new = false;
        u64 *value = map_put(map, str_format(arena, "key %llu", (unsigned long long)i), &is_new);
        assert_non_null(value);
        assert_true(is_new);
        assert_true(*value == 0);
        *value = i;
    }
    assert_int_equal(map_count(map), COUNT);
    for (u64 i = 0; i < COUNT; i++) {
        u64 *value = map_get(map, str_format(arena, "key %llu", (unsigned long long)i));
        assert_non_null(value);
        assert_true(*value == i);
    }
    assert_null(map_get(map, STR("key 10000")));
    assert_null(map_get(map, STR("")));
}

static void putting_a_known_key_gives_its_place(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct map *map = map_create(arena, 1);
    bool is_new = false;
    *map_put(map, STR("a"), &is_new) = 7;
    assert_true(is_new);
    u64 *again = map_put(map, STR("a"), &is_new);
    assert_false(is_new);
    assert_true(*again == 7);
    assert_int_equal(map_count(map), 1);
}

static void empty_and_binary_keys_are_keys(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct map *map = map_create(arena, 4);
    bool is_new = false;
    *map_put(map, STR(""), &is_new) = 1;
    *map_put(map, STR("\0"), &is_new) = 2;
    *map_put(map, STR("\0\0"), &is_new) = 3;
    assert_int_equal(map_count(map), 3);
    assert_true(*map_get(map, (str){NULL, 0}) == 1);
    assert_true(*map_get(map, STR("\0")) == 2);
    assert_true(*map_get(map, STR("\0\0")) == 3);
}

static void expected_keys_need_no_growth(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    char keys[1000][4];
    struct map *map = map_create(arena, ARRAY_COUNT(keys));
    size_t bytes = arena_bytes(arena);
    for (u32 i = 0; i < ARRAY_COUNT(keys); i++) {
        num_store_u32(keys[i], i);
        bool is_new = false;
        assert_non_null(map_put(map, (str){keys[i], sizeof(keys[i])}, &is_new));
    }
    assert_int_equal(arena_bytes(arena), bytes);
}

static void put_at_the_limit_is_null_and_keeps_the_others(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * KIB);
    char keys[1000][4];
    struct map *map = map_create(arena, 0);
    size_t count = 0;
    bool is_new = false;
    for (u32 i = 0; i < ARRAY_COUNT(keys); i++) {
        num_store_u32(keys[i], i);
        u64 *value = map_put(map, (str){keys[i], sizeof(keys[i])}, &is_new);
        if (value == NULL) {
            break;
        }
        *value = i;
        count++;
    }
    assert_true(count < ARRAY_COUNT(keys));
    assert_int_equal(map_count(map), count);
    for (u32 i = 0; i < count; i++) {
        assert_true(*map_get(map, (str){keys[i], sizeof(keys[i])}) == i);
    }
    AUTO_ARENA struct arena *full = arena_create(0);
    assert_null(map_create(full, 0));
    assert_null(map_create(arena, SIZE_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_found_again),
        cmocka_unit_test(putting_a_known_key_gives_its_place),
        cmocka_unit_test(empty_and_binary_keys_are_keys),
        cmocka_unit_test(expected_keys_need_no_growth),
        cmocka_unit_test(put_at_the_limit_is_null_and_keeps_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
