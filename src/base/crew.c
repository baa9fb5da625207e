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
};

struct helper {
    struct crew *crew;
    size_t worker;
    pthread_t thread;
};

/* The lock guards run, round, busy and closed. */
struct crew {
    pthread_mutex_t lock;
    pthread_cond_t asked; /* there is a run, or the end */
    pthread_cond_t idle;  /* no helper is busy any more */
    struct run *run;      /* of the asker, on its stack; NULL: nobody asks */
    u64 round;            /* so that a helper takes part in a run once */
    size_t busy;
    bool closed;
    void (*begin)(void);
    size_t helper_count;
    struct helper helpers[];
};

static void crew_lock(struct crew *crew)
{
    int failed = pthread_mutex_lock(&crew->lock);
    assert(failed == 0);
}

static void crew_unlock(struct crew *crew)
{
    int failed = pthread_mutex_unlock(&crew->lock);
    assert(failed == 0);
}

static void run_tasks(struct run *run, size_t worker)
{
    for (;;) {
        size_t index = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
        if (index >= run->count) {
            return;
        }
        run->task(run->context, index, worker);
    }
}

static void *help(void *context)
{
    struct helper *helper = context;
    struct crew *crew = helper->crew;
    u64 seen = 0;
    if (crew->begin != NULL) {
        crew->begin();
    }
    crew_lock(crew);
    while (!crew->closed) {
        if (crew->run == NULL || crew->round == seen) {
            (void)pthread_cond_wait(&crew->asked, &crew->lock);
            continue;
        }
        struct run *run = crew->run;
        seen = crew->round;
        crew->busy++;
        crew_unlock(crew);
        run_tasks(run, helper->worker);
        crew_lock(crew);
        crew->busy--;
        if (crew->busy == 0) {
            (void)pthread_cond_signal(&crew->idle);
        }
    }
    crew_unlock(crew);
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
    crew_lock(crew);
    assert(crew->run == NULL);
    crew->closed = true;
    (void)pthread_cond_broadcast(&crew->asked);
    crew_unlock(crew);
    for (size_t i = 0; i < crew->helper_count; i++) {
        (void)pthread_join(crew->helpers[i].thread, NULL);
    }
    int failed = pthread_cond_destroy(&crew->asked);
    failed |= pthread_cond_destroy(&crew->idle);
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
    crew_lock(crew);
    bool taken = crew->run != NULL;
    if (!taken) {
        crew->run = run;
        crew->round++;
        (void)pthread_cond_broadcast(&crew->asked);
    }
    crew_unlock(crew);
    return !taken;
}

/* No helper looks at the run after this. */
static void end_run(struct crew *crew)
{
    crew_lock(crew);
    while (crew->busy > 0) {
        (void)pthread_cond_wait(&crew->idle, &crew->lock);
    }
    crew->run = NULL;
    crew_unlock(crew);
}

void crew_run(struct crew *crew, size_t count, crew_task task, void *context)
{
    struct run run = {.task = task, .context = context, .count = count};
    bool helped = crew != NULL && count > 1 && begin_run(crew, &run);
    run_tasks(&run, 0);
    if (helped) {
        end_run(crew);
    }
}
