#include "format/variant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct arena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = arena_create(4 * (size_t)MIB);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

static void assert_bytes(str got, const char *bytes, size_t size)
{
    assert_int_equal(got.size, size);
    assert_memory_equal(got.data, bytes, size);
}

static void an_object_lists_its_members_by_name_and_its_values_as_they_came(void **state)
{
    (void)state;
    struct variant_builder builder;
    assert_true(variant_builder_init(&builder, arena));
    variant_begin(&builder);
    variant_object(&builder);
    variant_name(&builder, STR("b"));
    variant_integer(&builder, 300);
    variant_name(&builder, STR("a"));
    variant_array(&builder);
    variant_string(&builder, STR("b"));
    variant_null(&builder);
    variant_end(&builder);
    variant_end(&builder);
    str metadata;
    str value;
    assert_true(variant_finish(&builder, &metadata, &value));
    assert_bytes(metadata,
                 "\x01\x02\x00\x01\x02"
                 "ba",
                 7);
    assert_bytes(value,
                 "\x02\x02\x01\x00\x03\x00\x0b" /* two members: a at 3, b at 0, 11 bytes */
                 "\x10\x2c\x01"                 /* int16 300 */
                 "\x03\x02\x00\x02\x03\x05"
                 "b\x00",
                 18);
}

static void a_builder_starts_anew_with_each_value(void **state)
{
    (void)state;
    struct variant_builder builder;
    assert_true(variant_builder_init(&builder, arena));
    for (i64 round = 0; round < 3; round++) {
        str metadata;
        str value;
        variant_begin(&builder);
        variant_object(&builder);
        for (i64 i = 0; i < 100; i++) {
            variant_name(&builder, str_format(arena, "n%03lld", (long long)i));
            variant_boolean(&builder, true);
        }
        variant_end(&builder);
        assert_true(variant_finish(&builder, &metadata, &value));
        assert_int_equal(metadata.size, 1 + 2 + 101 * 2 + 400); /* offsets to 400: two bytes */
        assert_int_equal((u8)metadata.data[0], 0x51);           /* sorted, two bytes */
        assert_int_equal(value.size, 2 + 100 + 101 + 100);
        variant_begin(&builder);
        variant_double(&builder, 0.5);
        assert_true(variant_finish(&builder, &metadata, &value));
        assert_bytes(metadata, "\x11\x00\x00", 3);
        assert_bytes(value, "\x1c\x00\x00\x00\x00\x00\x00\xe0\x3f", 9);
    }
}

static void many_values_take_the_room_of_the_largest(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *small = arena_create(128 * (size_t)KIB);
    static char names[200][8];
    struct variant_builder builder;
    assert_true(variant_builder_init(&builder, small));
    for (int i = 0; i < 200; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "n%d", i);
    }
    for (int round = 0; round < 2000; round++) {
        str metadata;
        str value;
        variant_begin(&builder);
        variant_object(&builder);
        for (int i = 0; i < 1 + round % 200; i++) {
            variant_name(&builder, str_from(names[i]));
            variant_string(&builder, STR("x"));
        }
        variant_end(&builder);
        assert_true(variant_finish(&builder, &metadata, &value));
    }
}

static void decimals_take_the_room_of_their_digits(void **state)
{
    (void)state;
    static const struct {
        i64 unscaled;
        u8 header;
        size_t size;
    } wanted[] = {
        {999999999, 8 << 2, 6},
        {-1000000000, 9 << 2, 10},
        {999999999999999999, 9 << 2, 10},
        {-1000000000000000000, 10 << 2, 18},
    };
    struct variant_builder builder;
    assert_true(variant_builder_init(&builder, arena));
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        str metadata;
        str value;
        variant_begin(&builder);
        variant_decimal(&builder, wanted[i].unscaled, 38);
        assert_true(variant_finish(&builder, &metadata, &value));
        assert_int_equal(value.size, wanted[i].size);
        assert_int_equal((u8)value.data[0], wanted[i].header);
        assert_int_equal((u8)value.data[1], 38);
    }
}

static void a_value_past_the_arenas_limit_is_told(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *small = arena_create(64 * (size_t)KIB);
    struct variant_builder builder;
    assert_true(variant_builder_init(&builder, small));
    variant_begin(&builder);
    variant_array(&builder);
    for (i64 i = 0; i < 100000; i++) {
        variant_object(&builder);
        variant_name(&builder, STR("x"));
        variant_integer(&builder, i);
        variant_end(&builder);
    }
    variant_end(&builder);
    str metadata = {0};
    str value = {0};
    assert_false(variant_finish(&builder, &metadata, &value));
}

static void assert_prints(const char *metadata, size_t metadata_size, const char *value,
                          size_t value_size, const char *wanted)
{
    buf out = buf_create(arena, 64, KIB);
    err printed = variant_print(arena, (str){metadata, metadata_size}, (str){value, value_size},
                                &out, NULL);
    assert_int_equal(printed, wanted != NULL ? OK : CORRUPT);
    if (wanted != NULL) {
        assert_bytes(buf_str(&out), wanted, strlen(wanted));
    }
}
#define PRINTS(metadata, value, wanted)                                                            \
    assert_prints(metadata, sizeof(metadata) - 1, value, sizeof(value) - 1, wanted)

/* Bytes of other writers too: members in any place, names and offsets of any width. */
static void parts_print_as_json(void **state)
{
    (void)state;
    PRINTS("\x11\x00\x00", "\x0c\xff", "-1");
    PRINTS("\x01\x02\x00\x01\x02"
           "ba",
           "\x02\x02\x01\x00\x03\x00\x0b\x10\x2c\x01\x03\x02\x00\x02\x03\x05"
           "b\x00",
           "{\"a\":[\"b\",null],\"b\":300}");
    PRINTS("\xd1\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00"
           "k",
           "\x7e\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x04",
           "{\"k\":true}");
    PRINTS("\x11\x00\x00", "\x20\x02\x6a\xff\xff\xff", "-1.50");
    PRINTS("\x11\x00\x00", "\x1c\x9a\x99\x99\x99\x99\x99\xb9\x3f", "0.1");
    PRINTS("\x11\x00\x00",
           "\x40\x02\x00\x00\x00"
           "\xc3\xa9",
           "\"\xc3\xa9\"");
}

static void bytes_that_are_no_variant_are_refused(void **state)
{
    (void)state;
    PRINTS("", "\x00", NULL);
    PRINTS("\x12\x00\x00", "\x00", NULL);         /* a version of its own */
    PRINTS("\x11\x05\x00", "\x00", NULL);         /* names that are not there */
    PRINTS("\x11\x00\x00", "", NULL);             /* no value */
    PRINTS("\x11\x00\x00", "\x10\x01", NULL);     /* half an int16 */
    PRINTS("\x11\x00\x00", "\x09\xff\xff", NULL); /* a string that is not UTF-8 */
    PRINTS("\x11\x00\x00",
           "\x09"
           "a",
           NULL);                                             /* and one cut short */
    PRINTS("\x11\x00\x00", "\x03\x02\x00\x01", NULL);         /* offsets cut short */
    PRINTS("\x11\x00\x00", "\x03\x01\x05\x01\x00", NULL);     /* an offset past the end */
    PRINTS("\x11\x00\x00", "\x02\x01\x00\x00\x01\x00", NULL); /* a name that is none */
    PRINTS("\x11\x00\x00", "\x2c\x00\x00\x00\x00", NULL);     /* a date */
    PRINTS("\x11\x00\x00", "\x1c\x00\x00\x00\x00\x00\x00\xf0\x7f", NULL); /* infinity */
    PRINTS("\x11\x00\x00", "\x20\x27\x01\x00\x00\x00", NULL);             /* scale 39 */
    PRINTS("\x11\x00\x00",
           "\x28\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x7f", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_lists_its_members_by_name_and_its_values_as_they_came),
        cmocka_unit_test(a_builder_starts_anew_with_each_value),
        cmocka_unit_test(many_values_take_the_room_of_the_largest),
        cmocka_unit_test(decimals_take_the_room_of_their_digits),
        cmocka_unit_test(a_value_past_the_arenas_limit_is_told),
        cmocka_unit_test(parts_print_as_json),
        cmocka_unit_test(bytes_that_are_no_variant_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
