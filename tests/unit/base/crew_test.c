#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/crew.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { TASKS = 1000, ROUNDS = 200, ASKERS = 3 };

struct work {
    atomic_int done[TASKS];
    size_t workers;
    atomic_int strangers; /* workers that the crew does not have */
};

static void count(void *context, size_t index, size_t worker)
{
    struct work *work = context;
    atomic_fetch_add(&work->done[index], 1);
    if (worker >= work->workers) {
        atomic_fetch_add(&work->strangers, 1);
    }
}

static void check(struct work *work, size_t tasks, int times)
{
    for (size_t i = 0; i < TASKS; i++) {
        assert_int_equal(atomic_load(&work->done[i]), i < tasks ? times : 0);
    }
    assert_int_equal(atomic_load(&work->strangers), 0);
}

static void without_a_crew_the_asker_does_all(void **state)
{
    (void)state;
    static struct work work;
    work.workers = crew_workers(NULL);
    assert_int_equal(work.workers, 1);
    crew_run(NULL, TASKS, count, &work);
    check(&work, TASKS, 1);
}

static void each_task_is_done_once_in_each_run(void **state)
{
    (void)state;
    static struct work work;
    struct crew *crew = crew_create(3, NULL);
    work.workers = crew_workers(crew);
    assert_in_range(work.workers, 1, 4);
    for (int i = 0; i < ROUNDS; i++) {
        crew_run(crew, 10, count, &work);
    }
    check(&work, 10, ROUNDS);
    crew_run(crew, 0, count, &work);
    crew_destroy(crew);
    check(&work, 10, ROUNDS);
}

struct asker {
    struct crew *crew;
    struct work work;
};

static void *ask(void *context)
{
    struct asker *asker = context;
    for (int i = 0; i < ROUNDS; i++) {
        crew_run(asker->crew, TASKS, count, &asker->work);
    }
    return NULL;
}

static atomic_int begun;

static void begin(void)
{
    atomic_fetch_add(&begun, 1);
}

static void askers_at_the_same_time_get_all_of_theirs(void **state)
{
    (void)state;
    static struct asker askers[ASKERS];
    pthread_t threads[ASKERS];
    struct crew *crew = crew_create(2, begin);
    for (size_t i = 0; i < ASKERS; i++) {
        askers[i].crew = crew;
        askers[i].work.workers = crew_workers(crew);
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
    }
    for (size_t i = 0; i < ASKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        check(&askers[i].work, TASKS, ROUNDS);
    }
    crew_destroy(crew);
    assert_in_range(atomic_load(&begun), 0, 2);
    crew_destroy(NULL);
}

struct line {
    struct work work;
    bool ended[TASKS];
    size_t turns;
    size_t wrong;    /* turns out of order, or before the task's end */
    atomic_int busy; /* in a turn */
};

static void take_turn(void *context, size_t index, size_t worker)
{
    struct line *line = context;
    line->wrong += atomic_fetch_add(&line->busy, 1) != 0;
    line->wrong += index != line->turns || atomic_load(&line->work.done[index]) != 1;
    line->wrong += worker >= line->work.workers;
    line->turns++;
    atomic_fetch_sub(&line->busy, 1);
}

static void what_follows_a_task_does_so_in_order_and_alone(void **state)
{
    (void)state;
    struct crew *crews[] = {NULL, crew_create(3, NULL)};
    for (int i = 0; i < ROUNDS; i++) {
        static struct line line;
        line = (struct line){.work.workers = crew_workers(crews[i % 2])};
        crew_run_ordered(crews[i % 2], TASKS, count, take_turn, &line, line.ended);
        assert_int_equal(line.turns, TASKS);
        assert_int_equal(line.wrong, 0);
        check(&line.work, TASKS, 1);
    }
    crew_destroy(crews[1]);
}

/* Before the helper comes to it, meanwhile, or after the asker waited: always once. Beside runs,
 * and with more of them than one can wait. */
static void a_task_aside_is_done_once_when_it_ends(void **state)
{
    (void)state;
    struct crew *crews[] = {NULL, crew_create(0, NULL), crew_create(1, NULL)};
    for (size_t i = 0; i < (size_t)3 * ROUNDS; i++) {
        static struct work works[3];
        struct crew *crew = crews[i % 3];
        struct crew_aside asides[2];
        memset(works, 0, sizeof(works));
        for (size_t w = 0; w < 3; w++) {
            works[w].workers = crew_workers(crew);
        }
        for (size_t w = 0; w < 2; w++) {
            asides[w] = (struct crew_aside){.task = count, .context = &works[w]};
            crew_begin(crew, &asides[w]);
        }
        crew_run(crew, i % 10, count, &works[2]);
        check(&works[2], i % 10, 1);
        crew_end(crew, &asides[1]);
        check(&works[1], 1, 1);
        crew_end(crew, &asides[0]);
        check(&works[0], 1, 1);
    }
    for (size_t i = 0; i < 3; i++) {
        crew_destroy(crews[i]);
    }
}

static void begin_it(void *context, size_t index, size_t worker)
{
    (void)index;
    assert_int_equal(worker, 1);
    atomic_store((atomic_bool *)context, true);
}

/* The asker never ends it: only the helper can have done it. */
static void a_helper_does_what_is_aside(void **state)
{
    (void)state;
    atomic_bool done = false;
    struct crew *crew = crew_create(1, NULL);
    struct crew_aside aside = {.task = begin_it, .context = &done};
    assert_int_equal(crew_workers(crew), 2);
    crew_begin(crew, &aside);
    while (!atomic_load(&done)) {
        sched_yield();
    }
    crew_end(crew, &aside);
    crew_destroy(crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_crew_the_asker_does_all),
        cmocka_unit_test(each_task_is_done_once_in_each_run),
        cmocka_unit_test(what_follows_a_task_does_so_in_order_and_alone),
        cmocka_unit_test(a_task_aside_is_done_once_when_it_ends),
        cmocka_unit_test(a_helper_does_what_is_aside),
        cmocka_unit_test(askers_at_the_same_time_get_all_of_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
