/* CRC-32: the known value, and the same by any way for all sizes. */
#include "format/crc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { BYTES = 1000 };

static void the_check_value_is_right(void **state)
{
    (void)state;
    assert_int_equal(crc_of(STR("123456789")), 0xcbf43926);
    assert_int_equal(crc_of((str){NULL, 0}), 0);
}

static void all_sizes_and_places_agree(void **state)
{
    (void)state;
    char bytes[BYTES + 16];
    u32 random = 1;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        random = random * 1664525 + 1013904223;
        bytes[i] = (char)(random >> 24);
    }
    for (size_t size = 0; size <= BYTES; size++) {
        str some = {bytes + size % 16, size};
        assert_int_equal(crc_of(some), crc_portable(some));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_check_value_is_right),
        cmocka_unit_test(all_sizes_and_places_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
