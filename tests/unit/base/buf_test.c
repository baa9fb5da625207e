#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/buf.h"

static void assert_text(const buf *buffer, const char *wanted)
{
    assert_true(buf_ok(buffer));
    assert_int_equal(buffer->size, strlen(wanted));
    assert_memory_equal(buffer->data, wanted, buffer->size);
}

static void appends_come_out_in_order(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    buf buffer = buf_create(arena, 0, 1000);
    assert_int_equal(buf_str(&buffer).size, 0);
    buf_append(&buffer, STR("ab"));
    buf_append_bytes(&buffer, "cd", 2);
    buf_append_byte(&buffer, 'e');
    buf_append_i64(&buffer, -12);
    buf_append_format(&buffer, "%s%03d", "x", 7);
    buf_append(&buffer, (str){NULL, 0});
    assert_text(&buffer, "abcde-12x007");
}

static void integers_of_all_sizes(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    buf buffer = buf_create(arena, 0, 1000);
    const i64 values[] = {0, 9, 10, -1, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        buf_append_i64(&buffer, values[i]);
        buf_append_byte(&buffer, ' ');
    }
    assert_text(&buffer, "0 9 10 -1 9223372036854775807 -9223372036854775808 ");
}

static void maximum_can_be_reached_but_not_passed(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    buf buffer = buf_create(arena, 3, 10);
    buf_append(&buffer, STR("0123456789"));
    assert_text(&buffer, "0123456789");
    buf_append(&buffer, STR(""));
    assert_true(buf_ok(&buffer));
    buf_append_byte(&buffer, 'x');
    assert_false(buf_ok(&buffer));
    assert_int_equal(buffer.size, 10);
}

static void failed_buffer_stays_failed_and_unchanged(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    buf buffer = buf_create(arena, 0, 4);
    buf_append(&buffer, STR("ab"));
    buf_append(&buffer, STR("cde"));
    assert_false(buf_ok(&buffer));
    buf_append_byte(&buffer, 'c');
    buf_append_format(&buffer, "%d", 1);
    buf_append_i64(&buffer, 1);
    assert_null(buf_reserve(&buffer, 1));
    assert_false(buf_ok(&buffer));
    assert_true(str_equal(buf_str(&buffer), STR("ab")));
}

static void arena_limit_fails_the_buffer(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * KIB);
    buf buffer = buf_create(arena, 0, MIB);
    size_t good = 0;
    while (buf_ok(&buffer)) {
        good = buffer.size;
        buf_append(&buffer, STR("0123456789"));
    }
    assert_true(good > 0);
    assert_int_equal(buffer.size, good);
    buf no_room = buf_create(arena, MIB, 2 * (size_t)MIB);
    assert_false(buf_ok(&no_room));
}

static void growth_keeps_the_bytes(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(4 * (size_t)MIB);
    buf a = buf_create(arena, 0, MIB);
    buf b = buf_create(arena, 0, MIB);
    for (i64 i = 0; i < 50000; i++) {
        buf_append_byte(&a, (u8)(i % 251));
        buf_append_byte(&b, (u8)(i % 241));
    }
    assert_true(buf_ok(&a) && buf_ok(&b));
    for (i64 i = 0; i < 50000; i++) {
        assert_int_equal((u8)a.data[i], i % 251);
        assert_int_equal((u8)b.data[i], i % 241);
    }
}

static void reserved_room_is_filled_and_committed(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    buf buffer = buf_create(arena, 0, 100);
    char *room = buf_reserve(&buffer, 100);
    assert_non_null(room);
    memset(room, 'x', 100);
    buf_commit(&buffer, 3);
    assert_text(&buffer, "xxx");
    buf_truncate(&buffer, 1);
    assert_text(&buffer, "x");
    assert_null(buf_reserve(&buffer, 100));
}

static void format_may_fill_the_buffer_to_its_last_byte(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    buf buffer = buf_create(arena, 0, 5);
    buf_append_format(&buffer, "%d", 12345);
    assert_text(&buffer, "12345");
    buf long_text = buf_create(arena, 0, 5000);
    buf_append_format(&long_text, "%04000d", 1);
    assert_int_equal(long_text.size, 4000);
    assert_int_equal(long_text.data[3999], '1');
}

static void json_strings_escape_what_must_be(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    const struct {
        str text;
        const char *wanted;
    } cases[] = {
        {STR_INIT(""), "\"\""},
        {STR_INIT("plain"), "\"plain\""},
        {STR_INIT("a\"b\\c/"), "\"a\\\"b\\\\c/\""},
        {STR_INIT("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\""},
        {STR_INIT("\x00\x01\x0b\x1f\x7f"), "\"\\u0000\\u0001\\u000b\\u001f\x7f\""},
        {STR_INIT("\xc3\xa4\xf0\x9f\x98\x80"), "\"\xc3\xa4\xf0\x9f\x98\x80\""},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        buf buffer = buf_create(arena, 0, 1000);
        buf_append_json_string(&buffer, cases[i].text);
        assert_text(&buffer, cases[i].wanted);
    }
}

/* Each byte at each place of a word, by the rule written out. */
static void json_strings_find_each_byte_at_each_place(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(64 * MIB);
    for (int byte = 0; byte < 256; byte++) {
        for (size_t at = 0; at < 19; at++) {
            char text[19];
            memset(text, 'a', sizeof(text));
            text[at] = (char)byte;
            buf wanted = buf_create(arena, 0, 64);
            buf_append_byte(&wanted, '"');
            for (size_t i = 0; i < sizeof(text); i++) {
                buf one = buf_create(arena, 0, 64);
                buf_append_json_string(&one, (str){text + i, 1});
                buf_append(&wanted, str_slice(buf_str(&one), 1, one.size - 1));
            }
            buf_append_byte(&wanted, '"');
            buf found = buf_create(arena, 0, 64);
            buf_append_json_string(&found, (str){text, sizeof(text)});
            assert_true(str_equal(buf_str(&found), buf_str(&wanted)));
        }
    }
}

static void each_growth_that_fails_fails_the_buffer(void **state)
{
    (void)state;
    for (i64 n = 1; n < 100; n++) {
        arena_fail_growth_at(n);
        AUTO_ARENA struct arena *arena = arena_create(MIB);
        buf buffer = buf_create(arena, 0, MIB);
        for (int i = 0; i < 10000; i++) {
            buf_append(&buffer, STR("0123456789"));
        }
        bool failed = arena_growths() >= n;
        assert_int_equal(buf_ok(&buffer), !failed);
        assert_int_equal(buffer.size % 10, 0);
        if (!failed) {
            assert_true(n > 1);
            arena_fail_growth_at(0);
            return;
        }
    }
    fail();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_come_out_in_order),
        cmocka_unit_test(integers_of_all_sizes),
        cmocka_unit_test(maximum_can_be_reached_but_not_passed),
        cmocka_unit_test(failed_buffer_stays_failed_and_unchanged),
        cmocka_unit_test(arena_limit_fails_the_buffer),
        cmocka_unit_test(growth_keeps_the_bytes),
        cmocka_unit_test(reserved_room_is_filled_and_committed),
        cmocka_unit_test(format_may_fill_the_buffer_to_its_last_byte),
        cmocka_unit_test(json_strings_escape_what_must_be),
        cmocka_unit_test(json_strings_find_each_byte_at_each_place),
        cmocka_unit_test(each_growth_that_fails_fails_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
