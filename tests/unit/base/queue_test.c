#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/queue.h"
#include "base/seam.h"

#include <pthread.h>
#include <stdatomic.h>

static void items_come_out_in_order(void **state)
{
    (void)state;
    struct queue *queue = queue_create(3);
    char items[7];
    for (size_t round = 0; round < 5; round++) {
        assert_true(queue_push(queue, &items[round]));
        assert_true(queue_push(queue, &items[round + 1]));
        assert_ptr_equal(queue_pop(queue, 0), &items[round]);
        assert_ptr_equal(queue_pop(queue, 0), &items[round + 1]);
    }
    assert_null(queue_pop(queue, 0));
    queue_destroy(queue);
    queue_destroy(NULL);
}

static void full_queue_refuses(void **state)
{
    (void)state;
    struct queue *queue = queue_create(2);
    char items[3];
    assert_true(queue_push(queue, &items[0]));
    assert_true(queue_push(queue, &items[1]));
    assert_false(queue_push(queue, &items[2]));
    assert_ptr_equal(queue_pop(queue, -1), &items[0]);
    assert_true(queue_push(queue, &items[2]));
    assert_ptr_equal(queue_pop(queue, -1), &items[1]);
    assert_ptr_equal(queue_pop(queue, -1), &items[2]);
    queue_destroy(queue);
}

static void closed_queue_refuses_but_hands_out_what_is_inside(void **state)
{
    (void)state;
    struct queue *queue = queue_create(4);
    char item;
    assert_true(queue_push(queue, &item));
    queue_close(queue);
    assert_false(queue_push(queue, &item));
    assert_ptr_equal(queue_pop(queue, -1), &item);
    assert_null(queue_pop(queue, -1));
    assert_null(queue_pop(queue, 1000000));
    queue_close(queue);
    queue_destroy(queue);
}

static void empty_queue_waits_as_long_as_told(void **state)
{
    (void)state;
    struct queue *queue = queue_create(1);
    i64 before = seam_monotonic_us(seam_system());
    assert_null(queue_pop(queue, 20000));
    i64 waited = seam_monotonic_us(seam_system()) - before;
    assert_true(waited >= 20000);
    queue_destroy(queue);
}

enum { PRODUCERS = 3, TAKERS = 3, ITEMS = 20000 };

struct traffic {
    struct queue *queue;
    _Atomic i64 next;        /* the next item to push */
    _Atomic u8 taken[ITEMS]; /* how often each was taken */
    char items[ITEMS];
};

static void *push_many(void *argument)
{
    struct traffic *traffic = argument;
    for (i64 i = traffic->next++; i < ITEMS; i = traffic->next++) {
        while (!queue_push(traffic->queue, &traffic->items[i])) {
            seam_wait_us(seam_system(), 10);
        }
    }
    return NULL;
}

static void *take_all(void *argument)
{
    struct traffic *traffic = argument;
    for (;;) {
        char *item = queue_pop(traffic->queue, -1);
        if (item == NULL) {
            return NULL;
        }
        traffic->taken[item - traffic->items]++;
    }
}

static void every_item_is_taken_once_and_closing_wakes_all_takers(void **state)
{
    (void)state;
    static struct traffic traffic;
    traffic.queue = queue_create(16);
    pthread_t producers[PRODUCERS];
    pthread_t takers[TAKERS];
    for (size_t i = 0; i < TAKERS; i++) {
        assert_int_equal(pthread_create(&takers[i], NULL, take_all, &traffic), 0);
    }
    for (size_t i = 0; i < PRODUCERS; i++) {
        assert_int_equal(pthread_create(&producers[i], NULL, push_many, &traffic), 0);
    }
    for (size_t i = 0; i < PRODUCERS; i++) {
        assert_int_equal(pthread_join(producers[i], NULL), 0);
    }
    queue_close(traffic.queue);
    for (size_t i = 0; i < TAKERS; i++) {
        assert_int_equal(pthread_join(takers[i], NULL), 0);
    }
    for (size_t i = 0; i < ITEMS; i++) {
        assert_int_equal(traffic.taken[i], 1);
    }
    queue_destroy(traffic.queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_out_in_order),
        cmocka_unit_test(full_queue_refuses),
        cmocka_unit_test(closed_queue_refuses_but_hands_out_what_is_inside),
        cmocka_unit_test(empty_queue_waits_as_long_as_told),
        cmocka_unit_test(every_item_is_taken_once_and_closing_wakes_all_takers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
