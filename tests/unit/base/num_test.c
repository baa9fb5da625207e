#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/num.h"

static void sums_and_products_that_overflow_leave_the_result_alone(void **state)
{
    (void)state;
    i64 number = 4711;
    assert_false(num_add_i64(INT64_MAX, 1, &(i64){0}));
    assert_true(num_add_i64(INT64_MAX, 0, &number));
    assert_true(number == INT64_MAX);
    assert_true(num_mul_i64(-1, INT64_MAX, &number));
    assert_true(number == -INT64_MAX);
    assert_false(num_mul_i64(-1, INT64_MIN, &(i64){0}));
    size_t size = 4711;
    assert_true(num_add_size(SIZE_MAX - 1, 1, &size));
    assert_true(size == SIZE_MAX);
    assert_false(num_add_size(SIZE_MAX, 1, &(size_t){0}));
    assert_true(num_mul_size(SIZE_MAX / 2, 2, &size));
    assert_true(size == SIZE_MAX - 1);
    assert_false(num_mul_size(SIZE_MAX / 2, 3, &(size_t){0}));
}

static void loads_and_stores_are_little_endian_at_any_address(void **state)
{
    (void)state;
    u8 bytes[16] = {0};
    num_store_u32(bytes + 1, 0x04030201);
    num_store_u64(bytes + 5, 0x0c0b0a0908070605);
    for (u8 i = 1; i <= 12; i++) {
        assert_int_equal(bytes[i], i);
    }
    assert_true(num_load_u32(bytes + 3) == 0x06050403);
    assert_true(num_load_u64(bytes + 3) == 0x0a09080706050403);
}

static void smaller_and_larger(void **state)
{
    (void)state;
    assert_true(num_min_i64(-1, 1) == -1);
    assert_true(num_max_i64(-1, 1) == 1);
    assert_true(num_min_i64(INT64_MIN, INT64_MAX) == INT64_MIN);
    assert_true(num_max_i64(INT64_MIN, INT64_MAX) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_products_that_overflow_leave_the_result_alone),
        cmocka_unit_test(loads_and_stores_are_little_endian_at_any_address),
        cmocka_unit_test(smaller_and_larger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
