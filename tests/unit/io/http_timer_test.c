#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/http_timer.h"

static struct http_wheel wheel;
static const i64 start_us = 5 * 1000 * 1000 + 77;

static void timer_fires_at_its_deadline_and_not_before(void **state)
{
    (void)state;
    static const i64 delays[] = {0,      1,       9999,    10000,    10001,    123456,
                                 999999, 5000000, 9999999, 10240000, 10250000, 90000000};
    for (size_t index = 0; index < ARRAY_COUNT(delays); index++) {
        struct http_timer timer = {0};
        http_wheel_init(&wheel, start_us);
        http_timer_set(&wheel, &timer, start_us + delays[index]);
        i64 now_us = start_us;
        int looks = 0;
        while (http_wheel_expire(&wheel, now_us) == NULL) {
            i64 wait_us = http_wheel_wait(&wheel, now_us);
            assert_true(wait_us >= 0);
            now_us += wait_us > 0 ? wait_us : 1;
            looks++;
            assert_true(looks < 12000);
        }
        assert_true(now_us >= start_us + delays[index]);
        assert_true(now_us <= start_us + delays[index] + 2 * HTTP_TIMER_TICK_US);
        assert_int_equal(http_wheel_wait(&wheel, now_us), -1);
    }
}

static void timer_set_later_does_not_fire_at_its_old_deadline(void **state)
{
    (void)state;
    struct http_timer timer = {0};
    http_wheel_init(&wheel, start_us);
    http_timer_set(&wheel, &timer, start_us + 100000);
    http_timer_set(&wheel, &timer, start_us + 30000000);
    assert_null(http_wheel_expire(&wheel, start_us + 29999999));
    assert_ptr_equal(http_wheel_expire(&wheel, start_us + 30020000), &timer);
}

static void timer_set_earlier_fires_earlier(void **state)
{
    (void)state;
    struct http_timer timer = {0};
    http_wheel_init(&wheel, start_us);
    http_timer_set(&wheel, &timer, start_us + 30000000);
    http_timer_set(&wheel, &timer, start_us + 50000);
    assert_null(http_wheel_expire(&wheel, start_us + 40000));
    assert_ptr_equal(http_wheel_expire(&wheel, start_us + 70000), &timer);
}

static void cleared_timer_never_fires(void **state)
{
    (void)state;
    struct http_timer timer = {0};
    http_wheel_init(&wheel, start_us);
    http_timer_set(&wheel, &timer, start_us + 50000);
    http_timer_clear(&timer);
    assert_null(http_wheel_expire(&wheel, start_us + 100000000));
    assert_int_equal(http_wheel_wait(&wheel, start_us + 100000000), -1);
}

/* Against a plain list of deadlines, with pauses longer than the wheel. */
static void many_timers_all_fire_once_in_time(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    static struct http_timer timers[COUNT];
    static int fired[COUNT];
    u64 seed = 12345;
    http_wheel_init(&wheel, start_us);
    for (size_t index = 0; index < COUNT; index++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        http_timer_set(&wheel, &timers[index], start_us + (i64)(seed >> 33) % 40000000);
    }
    i64 now_us = start_us;
    while (now_us < start_us + 41000000) {
        struct http_timer *timer = http_wheel_expire(&wheel, now_us);
        if (timer != NULL) {
            assert_true(timer->deadline_us <= now_us);
            fired[timer - timers]++;
            continue;
        }
        for (size_t index = 0; index < COUNT; index++) {
            assert_true(fired[index] == 1 ||
                        timers[index].deadline_us + 2 * HTTP_TIMER_TICK_US > now_us);
        }
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        now_us += (seed >> 60) == 0 ? 11000000 : (i64)(seed >> 33) % 300000;
    }
    for (size_t index = 0; index < COUNT; index++) {
        assert_int_equal(fired[index], 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timer_fires_at_its_deadline_and_not_before),
        cmocka_unit_test(timer_set_later_does_not_fire_at_its_old_deadline),
        cmocka_unit_test(timer_set_earlier_fires_earlier),
        cmocka_unit_test(cleared_timer_never_fires),
        cmocka_unit_test(many_timers_all_fire_once_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
