/* The nearest double and float: against the C library's, which is exact, and against division. */
#include "base/real.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static u64 next_random(u64 *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    u64 z = *state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* All ways give the same bits, those of the C library. */
static void check(const char *text)
{
    double values[3] = {strtod(text, NULL)};
    float narrow[3] = {strtof(text, NULL)};
    bool is_finite = !isinf(values[0]);
    bool is_narrow = !isinf(narrow[0]);
    if (real_parse_double(str_from(text), &values[1]) != is_finite ||
        real_exact_double(str_from(text), &values[2]) != is_finite ||
        real_parse_float(str_from(text), &narrow[1]) != is_narrow ||
        real_exact_float(str_from(text), &narrow[2]) != is_narrow) {
        fail_msg("%s: the range differs", text);
    }
    for (size_t i = 1; i < 3; i++) {
        if (memcmp(&values[i], &values[0], sizeof(double)) != 0 ||
            memcmp(&narrow[i], &narrow[0], sizeof(float)) != 0) {
            fail_msg("%s: %zu gives %.17g and %.9g", text, i, values[i], (double)narrow[i]);
        }
    }
}

static void edges(void **state)
{
    (void)state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "-0.0e5",
                                        "1",
                                        "-1.5",
                                        "0.1",
                                        "1e22",
                                        "1e23",
                                        "9007199254740993",
                                        "9007199254740992.999",
                                        "9007199254740993.000000000000000000000000000000000000001",
                                        "1.7976931348623157e308",
                                        "1.7976931348623158e308",
                                        "1.797693134862315807e308",
                                        "1.7976931348623159e308",
                                        "179769313486231580793e289",
                                        "2.2250738585072014e-308",
                                        "2.2250738585072011e-308",
                                        "4.9406564584124654e-324",
                                        "2.4703282292062327e-324",
                                        "2.4703282292062328e-324",
                                        "3.4028234663852886e38",
                                        "3.4028235677973366e38",
                                        "3.40282356779733661637539395458142568447e38",
                                        "3.4028235677973367e38",
                                        "1e39",
                                        "1.401298464324817e-45",
                                        "7.006492321624085e-46",
                                        "7.0064923216240854e-46",
                                        "1.17549435e-38",
                                        "1.1754943e-38",
                                        "16777217",
                                        "16777217.0000001",
                                        "1e-400",
                                        "1e400",
                                        "123456789012345678901234567890e-30",
                                        "0.000000000000000000000000000000000000001e39",
                                        "5e-324",
                                        "1e-999",
                                        "8.5",
                                        "0.30000000000000004",
                                        "6.0221407600000005e23"};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        check(texts[i]);
    }
    double value = 1;
    assert_true(real_parse_double(STR("1e-1000"), &value));
    assert_true(value <= 0 && !signbit(value));
    assert_true(real_parse_double(STR("-1e-99999999999999999999"), &value));
    assert_true(signbit(value));
    assert_false(real_parse_double(STR("0.001e1000"), &value));
    assert_true(real_parse_double(STR("0.000e1000"), &value));
}

/* The point halfway between two doubles has up to 767 digits; a digit far behind decides. */
static void halfway(void **state)
{
    (void)state;
    u64 random = 7;
    char text[1400];
    for (int i = 0; i < 300; i++) {
        u64 bits = next_random(&random) & ~(UINT64_C(1) << 63);
        bits = i % 3 == 0 ? bits & ((UINT64_C(1) << 52) - 1) : bits;
        u64 next_bits = bits + 1;
        double value;
        double next;
        memcpy(&value, &bits, sizeof(value));
        memcpy(&next, &next_bits, sizeof(next));
        if (!isfinite(value) || !isfinite(next)) {
            continue;
        }
        /* An x87 long double has the eleven bits more that hold the half. */
        long double middle = ((long double)value + (long double)next) / 2;
        int size = snprintf(text, sizeof(text), "%.1100Le", middle);
        assert_true(size > 0 && (size_t)size < sizeof(text));
        check(text);
        text[1050] = '1';
        check(text);
    }
}

/* Every power of ten, with mantissas of every length. */
static void all_powers(void **state)
{
    (void)state;
    u64 random = 1;
    char text[64];
    for (int power = -360; power <= 320; power++) {
        for (int i = 0; i < 40; i++) {
            u64 mantissa = next_random(&random) >> (next_random(&random) % 64);
            (void)snprintf(text, sizeof(text), "%llue%d", (unsigned long long)mantissa, power);
            check(text);
            double value = 0;
            float narrow = 0;
            bool is_finite = real_double(mantissa, power, &value);
            bool is_narrow = real_float(mantissa, power, &narrow);
            double expected = strtod(text, NULL);
            float expected_narrow = strtof(text, NULL);
            assert_int_equal(is_finite, !isinf(expected));
            assert_int_equal(is_narrow, !isinf(expected_narrow));
            assert_memory_equal(&value, &expected, sizeof(value));
            assert_memory_equal(&narrow, &expected_narrow, sizeof(narrow));
            (void)snprintf(text, sizeof(text), "-%llu.%llue%d", (unsigned long long)mantissa,
                           (unsigned long long)next_random(&random), power);
            check(text);
        }
    }
}

/* What doubles and floats are printed as comes back, and so do the neighbours. */
static void round_trips(void **state)
{
    (void)state;
    u64 random = 3;
    char text[64];
    for (int i = 0; i < 20000; i++) {
        u64 bits = next_random(&random);
        double value;
        memcpy(&value, &bits, sizeof(value));
        if (isfinite(value)) {
            (void)snprintf(text, sizeof(text), "%.*g", 15 + i % 5, value);
            check(text);
        }
        u32 half = (u32)bits;
        float narrow;
        memcpy(&narrow, &half, sizeof(narrow));
        if (isfinite(narrow)) {
            (void)snprintf(text, sizeof(text), "%.*g", 6 + i % 5, (double)narrow);
            check(text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges),
        cmocka_unit_test(halfway),
        cmocka_unit_test(all_powers),
        cmocka_unit_test(round_trips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
