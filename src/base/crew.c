#include "base/crew.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct run {
    crew_task task;
    void *context;
    size_t count;
    atomic_size_t next;
    /* NULL: nothing is to be done after a task. Its lock guards the rest. */
    crew_task then;
    pthread_mutex_t lock;
    bool *ended;
    size_t then_next;
    bool then_busy;
};

struct helper {
    struct crew *crew;
    size_t worker;
    pthread_t thread;
};

/* The lock guards run, round, busy, aside and closed. */
struct crew {
    pthread_mutex_t lock;
    pthread_cond_t asked;     /* there is a run, a task aside, or the end */
    pthread_cond_t idle;      /* no helper is busy with the run any more */
    pthread_cond_t done;      /* a task aside is */
    struct crew_aside *aside; /* that nobody has taken; NULL: none */
    struct run *run;          /* of the asker, on its stack; NULL: nobody asks */
    u64 round;                /* so that a helper takes part in a run once */
    size_t busy;
    bool closed;
    void (*begin)(void);
    size_t helper_count;
    struct helper helpers[];
};

static void take_lock(pthread_mutex_t *lock)
{
    int failed = pthread_mutex_lock(lock);
    assert(failed == 0);
}

static void give_lock(pthread_mutex_t *lock)
{
    int failed = pthread_mutex_unlock(lock);
    assert(failed == 0);
}

/* What can follow now that this task has ended. Who is at it already does this one's turn, too. */
static void run_then(struct run *run, size_t index, size_t worker)
{
    take_lock(&run->lock);
    run->ended[index] = true;
    while (!run->then_busy && run->then_next < run->count && run->ended[run->then_next]) {
        run->then_busy = true;
        give_lock(&run->lock);
        run->then(run->context, run->then_next, worker);
        take_lock(&run->lock);
        run->then_next++;
        run->then_busy = false;
    }
    give_lock(&run->lock);
}

static void run_tasks(struct run *run, size_t worker)
{
    for (;;) {
        size_t index = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
        if (index >= run->count) {
            return;
        }
        run->task(run->context, index, worker);
        if (run->then != NULL) {
            run_then(run, index, worker);
        }
    }
}

/* With the lock, which is given away meanwhile. */
static void take_aside(struct crew *crew, size_t worker)
{
    struct crew_aside *aside = crew->aside;
    crew->aside = NULL;
    aside->state = ASIDE_TAKEN;
    give_lock(&crew->lock);
    aside->task(aside->context, 0, worker);
    take_lock(&crew->lock);
    aside->state = ASIDE_DONE;
    (void)pthread_cond_broadcast(&crew->done);
}

static void *help(void *context)
{
    struct helper *helper = context;
    struct crew *crew = helper->crew;
    u64 seen = 0;
    if (crew->begin != NULL) {
        crew->begin();
    }
    take_lock(&crew->lock);
    while (!crew->closed) {
        if (crew->aside != NULL) {
            take_aside(crew, helper->worker);
            continue;
        }
        if (crew->run == NULL || crew->round == seen) {
            (void)pthread_cond_wait(&crew->asked, &crew->lock);
            continue;
        }
        struct run *run = crew->run;
        seen = crew->round;
        crew->busy++;
        give_lock(&crew->lock);
        run_tasks(run, helper->worker);
        take_lock(&crew->lock);
        crew->busy--;
        if (crew->busy == 0) {
            (void)pthread_cond_signal(&crew->idle);
        }
    }
    give_lock(&crew->lock);
    return NULL;
}

struct crew *crew_create(size_t helpers, void (*begin)(void))
{
    assert(helpers <= CREW_HELPERS_MAX);
    struct crew *crew = calloc(1, sizeof(*crew) + helpers * sizeof(struct helper));
    assert(crew != NULL);
    crew->begin = begin;
    int failed = pthread_mutex_init(&crew->lock, NULL);
    failed |= pthread_cond_init(&crew->asked, NULL);
    failed |= pthread_cond_init(&crew->idle, NULL);
    failed |= pthread_cond_init(&crew->done, NULL);
    assert(failed == 0);
    /* A machine without room for a thread has a smaller crew. */
    for (size_t i = 0; i < helpers; i++) {
        struct helper *helper = &crew->helpers[i];
        *helper = (struct helper){.crew = crew, .worker = i + 1};
        if (pthread_create(&helper->thread, NULL, help, helper) != 0) {
            break;
        }
        crew->helper_count++;
    }
    return crew;
}

void crew_destroy(struct crew *crew)
{
    if (crew == NULL) {
        return;
    }
    take_lock(&crew->lock);
    assert(crew->run == NULL);
    assert(crew->aside == NULL);
    crew->closed = true;
    (void)pthread_cond_broadcast(&crew->asked);
    give_lock(&crew->lock);
    for (size_t i = 0; i < crew->helper_count; i++) {
        (void)pthread_join(crew->helpers[i].thread, NULL);
    }
    int failed = pthread_cond_destroy(&crew->asked);
    failed |= pthread_cond_destroy(&crew->idle);
    failed |= pthread_cond_destroy(&crew->done);
    failed |= pthread_mutex_destroy(&crew->lock);
    assert(failed == 0);
    free(crew);
}

size_t crew_workers(const struct crew *crew)
{
    return crew == NULL ? 1 : crew->helper_count + 1;
}

/* False: somebody else is asking. */
static bool begin_run(struct crew *crew, struct run *run)
{
    take_lock(&crew->lock);
    bool taken = crew->run != NULL;
    if (!taken) {
        crew->run = run;
        crew->round++;
        (void)pthread_cond_broadcast(&crew->asked);
    }
    give_lock(&crew->lock);
    return !taken;
}

/* No helper looks at the run after this. */
static void end_run(struct crew *crew)
{
    take_lock(&crew->lock);
    while (crew->busy > 0) {
        (void)pthread_cond_wait(&crew->idle, &crew->lock);
    }
    crew->run = NULL;
    give_lock(&crew->lock);
}

static void run_all(struct crew *crew, struct run *run)
{
    bool helped = crew != NULL && run->count > 1 && begin_run(crew, run);
    run_tasks(run, 0);
    if (helped) {
        end_run(crew);
    }
}

void crew_run(struct crew *crew, size_t count, crew_task task, void *context)
{
    run_all(crew, &(struct run){.task = task, .context = context, .count = count});
}

void crew_run_ordered(struct crew *crew, size_t count, crew_task task, crew_task then,
                      void *context, bool *ended)
{
    struct run run = {
        .task = task, .context = context, .count = count, .then = then, .ended = ended};
    int failed = pthread_mutex_init(&run.lock, NULL);
    assert(failed == 0);
    run_all(crew, &run);
    assert(run.then_next == count);
    failed = pthread_mutex_destroy(&run.lock);
    assert(failed == 0);
}

void crew_begin(struct crew *crew, struct crew_aside *aside)
{
    assert(aside->state == ASIDE_KEPT);
    if (crew == NULL || crew->helper_count == 0) {
        return;
    }
    take_lock(&crew->lock);
    if (crew->aside == NULL) {
        crew->aside = aside;
        aside->state = ASIDE_ASKED;
        (void)pthread_cond_signal(&crew->asked);
    }
    give_lock(&crew->lock);
}

/* Nobody took it, and nobody will. */
static bool take_back(struct crew *crew, struct crew_aside *aside)
{
    take_lock(&crew->lock);
    bool back = aside->state == ASIDE_KEPT || aside->state == ASIDE_ASKED;
    if (aside->state == ASIDE_ASKED) {
        crew->aside = NULL;
    }
    while (!back && aside->state != ASIDE_DONE) {
        (void)pthread_cond_wait(&crew->done, &crew->lock);
    }
    give_lock(&crew->lock);
    return back;
}

void crew_end(struct crew *crew, struct crew_aside *aside)
{
    if (crew == NULL || take_back(crew, aside)) {
        aside->task(aside->context, 0, 0);
    }
    aside->state = ASIDE_KEPT;
}
