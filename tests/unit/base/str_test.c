#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/str.h"

static void equality_is_by_bytes_and_size(void **state)
{
    (void)state;
    assert_true(str_equal(STR("abc"), STR("abc")));
    assert_false(str_equal(STR("abc"), STR("abd")));
    assert_false(str_equal(STR("abc"), STR("ab")));
    assert_true(str_equal((str){NULL, 0}, STR("")));
    assert_true(str_equal(STR("a\0b"), STR("a\0b")));
    assert_false(str_equal(STR("a\0b"), STR("a\0c")));
    assert_true(str_equal_ignore_case(STR("Content-TYPE"), STR("content-type")));
    assert_false(str_equal_ignore_case(STR("[`"), STR("{@")));
    assert_false(str_equal_ignore_case(STR("a"), STR("ab")));
    assert_false(str_equal_ignore_case(STR("\xc3\x84"), STR("\xc3\xa4"))); /* ASCII only */
}

static void order_is_by_unsigned_bytes_then_size(void **state)
{
    (void)state;
    assert_int_equal(str_compare(STR("a"), STR("b")), -1);
    assert_int_equal(str_compare(STR("b"), STR("a")), 1);
    assert_int_equal(str_compare(STR("a"), STR("ab")), -1);
    assert_int_equal(str_compare(STR("ab"), STR("a")), 1);
    assert_int_equal(str_compare(STR("ab"), STR("ab")), 0);
    assert_int_equal(str_compare(STR("\x7f"), STR("\x80")), -1);
    assert_int_equal(str_compare((str){NULL, 0}, STR("")), 0);
    assert_int_equal(str_compare((str){NULL, 0}, STR("a")), -1);
}

static void prefixes_and_suffixes(void **state)
{
    (void)state;
    assert_true(str_starts(STR("al_key_x"), STR("al_key_")));
    assert_false(str_starts(STR("al"), STR("al_")));
    assert_true(str_starts(STR(""), STR("")));
    assert_true(str_ends(STR("a.ndjson"), STR(".ndjson")));
    assert_false(str_ends(STR("json"), STR(".ndjson")));
    assert_true(str_ends((str){NULL, 0}, (str){NULL, 0}));
}

static void finding_answers_the_place_or_minus_one(void **state)
{
    (void)state;
    assert_int_equal(str_find_byte(STR("a/b/c"), '/'), 1);
    assert_int_equal(str_find_last_byte(STR("a/b/c"), '/'), 3);
    assert_int_equal(str_find_byte(STR("abc"), '/'), -1);
    assert_int_equal(str_find_last_byte((str){NULL, 0}, '/'), -1);
    assert_int_equal(str_find(STR("hello world"), STR("o w")), 4);
    assert_int_equal(str_find(STR("hello"), STR("hello!")), -1);
    assert_int_equal(str_find(STR("aaab"), STR("aab")), 1);
    assert_int_equal(str_find(STR("x"), STR("")), 0);
}

static void slices_are_clamped(void **state)
{
    (void)state;
    assert_true(str_equal(str_slice(STR("hello"), 1, 3), STR("el")));
    assert_true(str_equal(str_slice(STR("hello"), 3, 99), STR("lo")));
    assert_int_equal(str_slice(STR("hello"), 4, 2).size, 0);
    assert_int_equal(str_slice(STR("hello"), 99, 100).size, 0);
    assert_int_equal(str_slice((str){NULL, 0}, 0, 5).size, 0);
    assert_true(str_equal(str_trim(STR(" \t a b\t ")), STR("a b")));
    assert_int_equal(str_trim(STR(" \t ")).size, 0);
    assert_int_equal(str_trim((str){NULL, 0}).size, 0);
}

static void next_gives_every_part_empty_ones_too(void **state)
{
    (void)state;
    str rest = STR("a,,bc,");
    str part = {NULL, 0};
    const char *wanted[] = {"a", "", "bc", ""};
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        assert_true(str_next(&rest, ',', &part));
        assert_true(str_equal(part, str_from(wanted[i])));
    }
    assert_null(rest.data);
    assert_false(str_next(&rest, ',', &part));
    rest = STR("");
    assert_true(str_next(&rest, ',', &part));
    assert_int_equal(part.size, 0);
    assert_false(str_next(&rest, ',', &part));
}

static void integers_are_read_exactly_or_refused(void **state)
{
    (void)state;
    const struct {
        const char *text;
        i64 value;
    } good[] = {{"0", 0},
                {"-0", 0},
                {"007", 7},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN},
                {"-1", -1}};
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        i64 value = 12345;
        assert_true(str_to_i64(str_from(good[i].text), &value));
        assert_true(value == good[i].value);
    }
    const char *bad[] = {"",
                         "-",
                         "+1",
                         " 1",
                         "1 ",
                         "1a",
                         "0x1",
                         "9223372036854775808",
                         "1.0",
                         "--1",
                         "-9223372036854775809",
                         "99999999999999999999999"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        i64 value = 12345;
        assert_false(str_to_i64(str_from(bad[i]), &value));
        assert_true(value == 12345);
    }
    i64 value = 0;
    assert_false(str_to_i64((str){NULL, 0}, &value));
}

static void copies_are_their_own_and_nul_terminated(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(64 * KIB);
    char text[] = "hello";
    str copy = str_copy(arena, (str){text, 4});
    text[0] = 'j';
    assert_true(str_equal(copy, STR("hell")));
    assert_int_equal(copy.data[4], '\0');
    assert_non_null(str_copy(arena, (str){NULL, 0}).data);
    str formatted = str_format(arena, "%s-%d-%.*s", "a", 12, STR_ARG(STR("xyz")));
    assert_true(str_equal(formatted, STR("a-12-xyz")));
    assert_int_equal(formatted.data[formatted.size], '\0');
    assert_int_equal(str_format(arena, "%.*s", STR_ARG(((str){NULL, 0}))).size, 0);
}

static void copies_past_the_arena_limit_have_no_data(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(0);
    assert_null(str_copy(arena, STR("x")).data);
    assert_null(str_format(arena, "%d", 1).data);
}

static void hash_depends_on_every_byte_and_on_the_size(void **state)
{
    (void)state;
    char bytes[40] = {0};
    u64 hashes[1 + 40 + 40];
    size_t count = 0;
    for (size_t size = 0; size <= 40; size++) {
        hashes[count++] = str_hash((str){bytes, size});
    }
    for (size_t i = 0; i < 40; i++) {
        bytes[i] = 1;
        hashes[count++] = str_hash((str){bytes, 40});
        bytes[i] = 0;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = i + 1; k < count; k++) {
            assert_true(hashes[i] != hashes[k]);
        }
    }
    assert_true(str_hash((str){bytes, 40}) == hashes[40]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equality_is_by_bytes_and_size),
        cmocka_unit_test(order_is_by_unsigned_bytes_then_size),
        cmocka_unit_test(prefixes_and_suffixes),
        cmocka_unit_test(finding_answers_the_place_or_minus_one),
        cmocka_unit_test(slices_are_clamped),
        cmocka_unit_test(next_gives_every_part_empty_ones_too),
        cmocka_unit_test(integers_are_read_exactly_or_refused),
        cmocka_unit_test(copies_are_their_own_and_nul_terminated),
        cmocka_unit_test(copies_past_the_arena_limit_have_no_data),
        cmocka_unit_test(hash_depends_on_every_byte_and_on_the_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
