#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/seam.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void clocks_run_forward(void **state)
{
    (void)state;
    const struct seam *seam = seam_system();
    i64 before = seam_monotonic_us(seam);
    seam_wait_us(seam, 2000);
    seam_wait_us(seam, 0);
    seam_wait_us(seam, -5);
    assert_true(seam_monotonic_us(seam) >= before + 2000);
    /* Between the years 2020 and 2100: microseconds, not milliseconds nor seconds. */
    assert_true(seam_now(seam) > (instant)1577836800 * TIME_SECOND_US);
    assert_true(seam_now(seam) < (instant)4102444800 * TIME_SECOND_US);
}

static void random_fills_all_bytes_asked_for_and_no_more(void **state)
{
    (void)state;
    u8 seen[64] = {0};
    for (int round = 0; round < 20; round++) {
        u8 bytes[65] = {0};
        seam_random(seam_system(), bytes, 64);
        assert_int_equal(bytes[64], 0);
        for (size_t i = 0; i < 64; i++) {
            seen[i] |= bytes[i];
        }
    }
    for (size_t i = 0; i < 64; i++) {
        assert_true(seen[i] != 0);
    }
    static u8 large[100000];
    seam_random(seam_system(), large, sizeof(large));
    seam_random(seam_system(), large, 0);
}

#ifdef LHBOX_FAILPOINTS
/* How a child that passes two named points three times ends: 0, or the signal. */
static int end_of_child(const char *setting)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (setting != NULL) {
            setenv("LHBOX_CRASH_POINT", setting, 1);
        }
        for (int i = 0; i < 3; i++) {
            CRASH_POINT(before_put);
            CRASH_POINT(after_put);
        }
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void crash_point_kills_at_the_passage_named(void **state)
{
    (void)state;
    assert_int_equal(end_of_child(NULL), 0);
    assert_int_equal(end_of_child("after_put"), SIGKILL);
    assert_int_equal(end_of_child("after_put:3"), SIGKILL);
    assert_int_equal(end_of_child("after_put:4"), 0);
    assert_int_equal(end_of_child("after_pu"), 0);
    assert_int_equal(end_of_child("elsewhere"), 0);
}
#else
static void crash_point_is_nothing_without_failpoints(void **state)
{
    (void)state;
    setenv("LHBOX_CRASH_POINT", "before_put", 1);
    CRASH_POINT(before_put);
    unsetenv("LHBOX_CRASH_POINT");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_run_forward),
        cmocka_unit_test(random_fills_all_bytes_asked_for_and_no_more),
#ifdef LHBOX_FAILPOINTS
        cmocka_unit_test(crash_point_kills_at_the_passage_named),
#else
        cmocka_unit_test(crash_point_is_nothing_without_failpoints),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
