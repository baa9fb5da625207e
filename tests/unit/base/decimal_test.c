#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/decimal.h"

#define NINES_38 "99999999999999999999999999999999999999"

static i128 power_of_ten(int exponent)
{
    i128 value = 1;
    for (int i = 0; i < exponent; i++) {
        value *= 10;
    }
    return value;
}

static void numbers_are_exact_or_refused(void **state)
{
    (void)state;
    const struct {
        const char *text;
        i32 precision;
        i32 scale;
        enum decimal_result result;
        i64 unscaled;
    } cases[] = {
        {"0", 5, 1, DECIMAL_OK, 0},
        {"-0.000", 5, 1, DECIMAL_OK, 0},
        {"0e99999999999999999999", 5, 1, DECIMAL_OK, 0},
        {"0.0e-99999999999999999999", 5, 1, DECIMAL_OK, 0},
        {"12.50", 5, 1, DECIMAL_OK, 125},
        {"12.5", 5, 1, DECIMAL_OK, 125},
        {"12.55", 5, 1, DECIMAL_INEXACT, 0},
        {"12345.0", 5, 1, DECIMAL_OUT_OF_RANGE, 0},
        {"12345.05", 5, 1, DECIMAL_OUT_OF_RANGE, 0}, /* the range wins */
        {"1e2", 5, 2, DECIMAL_OK, 10000},
        {"1E+1", 5, 2, DECIMAL_OK, 1000},
        {"1e-2", 5, 2, DECIMAL_OK, 1},
        {"1e-3", 5, 2, DECIMAL_INEXACT, 0},
        {"1000e-3", 5, 2, DECIMAL_OK, 100},
        {"0.001e3", 5, 2, DECIMAL_OK, 100},
        {"0.00001234e4", 5, 4, DECIMAL_OK, 1234},
        {"999.99", 5, 2, DECIMAL_OK, 99999},
        {"1000", 5, 2, DECIMAL_OUT_OF_RANGE, 0},
        {"999.999", 5, 2, DECIMAL_INEXACT, 0},
        {"-999.99", 5, 2, DECIMAL_OK, -99999},
        {"1", 1, 1, DECIMAL_OUT_OF_RANGE, 0},
        {"0.9", 1, 1, DECIMAL_OK, 9},
        {"0.99", 1, 1, DECIMAL_INEXACT, 0},
        {"1e999", 38, 0, DECIMAL_OUT_OF_RANGE, 0},
        {"1e1000", 38, 0, DECIMAL_OUT_OF_RANGE, 0},
        {"1e-999", 38, 38, DECIMAL_INEXACT, 0},
        {"1e-1000", 38, 38, DECIMAL_OUT_OF_RANGE, 0}, /* as written beyond ±999 */
        {"1e-99999999999999999999999999", 38, 38, DECIMAL_OUT_OF_RANGE, 0},
        {"1e00000000000000000000000002", 5, 2, DECIMAL_OK, 10000},
        {"1e37", 38, 0, DECIMAL_OK, -1},
        {"1e38", 38, 0, DECIMAL_OUT_OF_RANGE, 0},
        {"1e-38", 38, 38, DECIMAL_OK, 1},
        {"1e-39", 38, 38, DECIMAL_INEXACT, 0},
        {"100000000000000000000000000000000000000", 38, 0, DECIMAL_OUT_OF_RANGE, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        i128 unscaled = 4711;
        enum decimal_result result = decimal_parse(str_from(cases[i].text), cases[i].precision,
                                                   cases[i].scale, &unscaled);
        i128 wanted = cases[i].unscaled == -1 ? power_of_ten(37) : cases[i].unscaled;
        wanted = cases[i].result == DECIMAL_OK ? wanted : 4711;
        if (result != cases[i].result || unscaled != wanted) {
            fail_msg("%s as decimal(%d,%d)", cases[i].text, cases[i].precision, cases[i].scale);
        }
    }
}

static void all_38_digits_can_be_held(void **state)
{
    (void)state;
    i128 largest = power_of_ten(38) - 1;
    i128 value = 0;
    assert_int_equal(decimal_parse(STR(NINES_38), 38, 0, &value), DECIMAL_OK);
    assert_true(value == largest);
    assert_int_equal(decimal_parse(STR("-" NINES_38), 38, 0, &value), DECIMAL_OK);
    assert_true(value == -largest);
    assert_int_equal(decimal_parse(STR("0." NINES_38), 38, 38, &value), DECIMAL_OK);
    assert_true(value == largest);
    assert_int_equal(decimal_parse(STR("0.000" NINES_38 "e3"), 38, 38, &value), DECIMAL_OK);
    assert_true(value == largest);
    assert_int_equal(decimal_parse(STR(NINES_38 "00000e-5"), 38, 0, &value), DECIMAL_OK);
    assert_true(value == largest);
    assert_int_equal(decimal_parse(STR(NINES_38 "9"), 38, 0, &value), DECIMAL_OUT_OF_RANGE);
}

static void text_has_exactly_the_scale(void **state)
{
    (void)state;
    const struct {
        i128 unscaled;
        i32 scale;
        const char *wanted;
    } cases[] = {
        {0, 0, "0"},
        {0, 2, "0.00"},
        {5, 2, "0.05"},
        {-5, 2, "-0.05"},
        {125, 1, "12.5"},
        {-125, 0, "-125"},
        {10000, 2, "100.00"},
        {1, 38, "0.00000000000000000000000000000000000001"},
        {power_of_ten(38) - 1, 0, NINES_38},
        {1 - power_of_ten(38), 38, "-0." NINES_38},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char text[48];
        size_t size = decimal_format(cases[i].unscaled, cases[i].scale, text);
        assert_true(str_equal((str){text, size}, str_from(cases[i].wanted)));
    }
}

static void text_read_back_is_the_same_number(void **state)
{
    (void)state;
    i128 value = 7;
    for (i32 step = 0; step < 2000; step++) {
        i32 scale = step % 39;
        value = (value * 6364136223846793005 + 1442695040888963407) % power_of_ten(38);
        char text[48];
        size_t size = decimal_format(value, scale, text);
        i128 back = 0;
        assert_int_equal(decimal_parse((str){text, size}, 38, scale, &back), DECIMAL_OK);
        assert_true(back == value);
    }
}

static void integers_are_integral_first_and_in_range_second(void **state)
{
    (void)state;
    const struct {
        const char *text;
        enum decimal_result result;
        i64 value;
    } cases[] = {
        {"0", DECIMAL_OK, 0},
        {"-0", DECIMAL_OK, 0},
        {"0e1000", DECIMAL_OK, 0},
        {"0.0000", DECIMAL_OK, 0},
        {"9223372036854775807", DECIMAL_OK, INT64_MAX},
        {"-9223372036854775808", DECIMAL_OK, INT64_MIN},
        {"9223372036854775808", DECIMAL_OUT_OF_RANGE, 0},
        {"-9223372036854775809", DECIMAL_OUT_OF_RANGE, 0},
        {"1.5", DECIMAL_INEXACT, 0},
        {"1.0", DECIMAL_OK, 1},
        {"1e18", DECIMAL_OK, 1000000000000000000},
        {"1e19", DECIMAL_OUT_OF_RANGE, 0},
        {"1.5e1", DECIMAL_OK, 15},
        {"-150e-1", DECIMAL_OK, -15},
        {"15e-2", DECIMAL_INEXACT, 0},
        {"99999999999999999999.5", DECIMAL_INEXACT, 0},
        {"1e999", DECIMAL_OUT_OF_RANGE, 0},
        {"1e1000", DECIMAL_OUT_OF_RANGE, 0},
        {"1e-999", DECIMAL_INEXACT, 0},
        {"1e-1000", DECIMAL_OUT_OF_RANGE, 0},
        {"9223372036854775807000e-3", DECIMAL_OK, INT64_MAX},
        {"0.00000009223372036854775807e26", DECIMAL_OK, INT64_MAX},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        i64 value = 4711;
        enum decimal_result result = decimal_parse_i64(str_from(cases[i].text), &value);
        i64 wanted = cases[i].result == DECIMAL_OK ? cases[i].value : 4711;
        if (result != cases[i].result || value != wanted) {
            fail_msg("%s", cases[i].text);
        }
    }
}

static void bytes_are_the_shortest_twos_complement(void **state)
{
    (void)state;
    const struct {
        i64 value;
        str wanted;
    } cases[] = {
        {0, STR_INIT("\x00")},
        {1, STR_INIT("\x01")},
        {-1, STR_INIT("\xff")},
        {127, STR_INIT("\x7f")},
        {128, STR_INIT("\x00\x80")},
        {-128, STR_INIT("\x80")},
        {-129, STR_INIT("\xff\x7f")},
        {255, STR_INIT("\x00\xff")},
        {256, STR_INIT("\x01\x00")},
        {1420, STR_INIT("\x05\x8c")}, /* 14.20 in the Iceberg spec's single values */
        {INT64_MIN, STR_INIT("\x80\x00\x00\x00\x00\x00\x00\x00")},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        u8 bytes[16];
        size_t size = decimal_bytes(cases[i].value, bytes);
        assert_true(str_equal((str){(const char *)bytes, size}, cases[i].wanted));
    }
    u8 bytes[16];
    assert_int_equal(decimal_bytes(power_of_ten(38) - 1, bytes), 16);
    assert_memory_equal(bytes, "\x4b\x3b\x4c\xa8\x5a\x86\xc4\x7a\x09\x8a\x22\x3f\xff\xff\xff\xff",
                        16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_exact_or_refused),
        cmocka_unit_test(all_38_digits_can_be_held),
        cmocka_unit_test(text_has_exactly_the_scale),
        cmocka_unit_test(text_read_back_is_the_same_number),
        cmocka_unit_test(integers_are_integral_first_and_in_range_second),
        cmocka_unit_test(bytes_are_the_shortest_twos_complement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
