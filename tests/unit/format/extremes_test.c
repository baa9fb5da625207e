/* Least and greatest of numbers: both ways find what comparing one by one finds. */
#include "format/extremes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { COUNT_MAX = 70, ROUNDS = 200 };

static u64 next_random(u64 *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 32 ^ *state << 32;
}

static const enum extremes_type types[] = {EXTREMES_U8, EXTREMES_I32, EXTREMES_I64, EXTREMES_FLOAT,
                                           EXTREMES_DOUBLE};
static const size_t widths[] = {1, 4, 8, 4, 8};

static struct extremes one_by_one(enum extremes_type type, size_t width, const u8 *data, i64 count)
{
    struct extremes found = {extremes_key(type, data), extremes_key(type, data)};
    for (i64 i = 1; i < count; i++) {
        i64 key = extremes_key(type, data + (size_t)i * width);
        found.least = num_min_i64(found.least, key);
        found.greatest = key > found.greatest ? key : found.greatest;
    }
    return found;
}

static void check(extremes_function *function, u64 seed)
{
    u8 data[COUNT_MAX * sizeof(u64) + 1];
    for (size_t t = 0; t < ARRAY_COUNT(types); t++) {
        for (i64 round = 0; round < ROUNDS; round++) {
            for (size_t i = 0; i < sizeof(data); i++) {
                data[i] = (u8)next_random(&seed);
            }
            const u8 *at = data + round % 2; /* no value need be aligned */
            i64 count = 1 + round % COUNT_MAX;
            struct extremes wanted = one_by_one(types[t], widths[t], at, count);
            struct extremes found = function(types[t], at, count);
            assert_int_equal(found.least, wanted.least);
            assert_int_equal(found.greatest, wanted.greatest);
        }
    }
}

static void any_way_finds_the_same(void **state)
{
    (void)state;
    check(extremes_portable, 1);
    check(extremes_best(), 2);
}

static i64 double_key(double value)
{
    return extremes_key(EXTREMES_DOUBLE, (const u8 *)&value);
}

static i64 float_key(float value)
{
    return extremes_key(EXTREMES_FLOAT, (const u8 *)&value);
}

static void keys_sort_as_numbers_do_with_nans_outside(void **state)
{
    (void)state;
    double infinity = __builtin_inf();
    double nan = __builtin_nan("");
    const double rising[] = {-infinity, -2.5, -1e-320, -0.0, 0.0, 1e-320, 2.5, infinity};
    for (size_t i = 0; i < ARRAY_COUNT(rising); i++) {
        assert_false(extremes_key_is_nan(EXTREMES_DOUBLE, double_key(rising[i])));
        assert_false(extremes_key_is_nan(EXTREMES_FLOAT, float_key((float)rising[i])));
        if (i > 0) {
            assert_true(double_key(rising[i - 1]) < double_key(rising[i]));
        }
    }
    assert_true(double_key(nan) > double_key(infinity));
    assert_true(double_key(-nan) < double_key(-infinity));
    assert_true(extremes_key_is_nan(EXTREMES_DOUBLE, double_key(nan)));
    assert_true(extremes_key_is_nan(EXTREMES_DOUBLE, double_key(-nan)));
    assert_true(extremes_key_is_nan(EXTREMES_FLOAT, float_key((float)nan)));
    assert_true(extremes_key_is_nan(EXTREMES_FLOAT, float_key(-(float)nan)));
    assert_false(extremes_key_is_nan(EXTREMES_I64, INT64_MIN));
    assert_false(extremes_key_is_nan(EXTREMES_I64, INT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_way_finds_the_same),
        cmocka_unit_test(keys_sort_as_numbers_do_with_nans_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
