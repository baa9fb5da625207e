#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/metric.h"

#include <pthread.h>

static void adding_and_setting_show_in_get(void **state)
{
    (void)state;
    metric_set(METRIC_HTTP_CONNECTIONS, 5);
    metric_add(METRIC_HTTP_CONNECTIONS, -2);
    assert_int_equal(metric_get(METRIC_HTTP_CONNECTIONS), 3);
}

static void *add_many(void *argument)
{
    (void)argument;
    for (int i = 0; i < 10000; i++) {
        metric_add(METRIC_INTAKE_ROWS, 1);
    }
    return NULL;
}

static void no_addition_of_any_thread_is_lost(void **state)
{
    (void)state;
    metric_set(METRIC_INTAKE_ROWS, 0);
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, NULL), 0);
    }
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(metric_get(METRIC_INTAKE_ROWS), 40000);
}

static void text_has_help_type_and_value_of_every_metric(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    buf out = buf_create(arena, 0, 64 * KIB);
    metric_set(METRIC_BOOKS_DIFFERENCE, -4);
    metric_print(&out);
    assert_true(buf_ok(&out));
    assert_true(str_find(buf_str(&out), STR("# HELP lhbox_books_difference ")) >= 0);
    assert_true(str_find(buf_str(&out), STR("\n# TYPE lhbox_books_difference gauge\n"
                                            "lhbox_books_difference -4\n")) > 0);
    size_t lines = 0;
    for (size_t i = 0; i < out.size; i++) {
        lines += out.data[i] == '\n' ? 1 : 0;
    }
    assert_int_equal(lines, 3 * METRIC_COUNT);
    buf small = buf_create(arena, 0, 100);
    metric_print(&small);
    assert_false(buf_ok(&small));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adding_and_setting_show_in_get),
        cmocka_unit_test(no_addition_of_any_thread_is_lost),
        cmocka_unit_test(text_has_help_type_and_value_of_every_metric),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
