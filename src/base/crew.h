/* crew: a few threads that help others with numbered tasks.
 *
 * Any thread may ask. A crew helps one asker at a time; who asks meanwhile does all tasks alone,
 * which is no loss when the machine is busy anyway. Tasks run in any order and at the same time, so
 * that each must have its own memory: by its index for what it makes, by its worker for scratch. */
#ifndef LHBOX_BASE_CREW_H
#define LHBOX_BASE_CREW_H

#include "base/num.h"

enum { CREW_HELPERS_MAX = 64 };

struct crew;

/* `helpers`: threads beside the asker. `begin`: what each does first; NULL: nothing. */
struct crew *crew_create(size_t helpers, void (*begin)(void));
/* Nobody may be asking. NULL is allowed. */
void crew_destroy(struct crew *crew);
/* How many workers a run may have: the asker, who is 0, and the helpers. NULL: the asker alone. */
size_t crew_workers(const struct crew *crew);
typedef void (*crew_task)(void *context, size_t index, size_t worker);
/* Does the tasks 0 to count - 1; all are done when it returns. */
void crew_run(struct crew *crew, size_t count, crew_task task, void *context);
/* The same, and after each task `then`, in the tasks' order and never two at once, by whichever
 * worker: what it touches needs no lock. `ended`: [count], all false. */
void crew_run_ordered(struct crew *crew, size_t count, crew_task task, crew_task then,
                      void *context, bool *ended);

/* One task beside what the asker does meanwhile, zeroed but for `task` and `context`. A helper
 * takes it that has nothing else to do. */
struct crew_aside {
    crew_task task;
    void *context;
    enum { ASIDE_KEPT, ASIDE_ASKED, ASIDE_TAKEN, ASIDE_DONE } state; /* the crew's lock guards it */
};
/* What the task touches is not the asker's until crew_end. */
void crew_begin(struct crew *crew, struct crew_aside *aside);
/* The task is done when it returns: by the asker, if nobody took it. */
void crew_end(struct crew *crew, struct crew_aside *aside);

#endif
