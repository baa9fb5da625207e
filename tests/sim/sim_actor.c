#include "sim.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define SIM_FIBERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_FIBERS 1
#endif
#endif
#ifdef SIM_FIBERS
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK_BYTES = 512 * KIB, STACKS_KEPT = 256 };

struct sim_world *sim;

/* ---- chance ---- */

static u64 mix(u64 x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

u64 sim_hash(u64 a, u64 b, u64 c)
{
    return mix(mix(mix(a) ^ b) ^ c);
}

u64 sim_draw(void)
{
    struct actor *actor = sim->current;
    if (actor == NULL) {
        return sim_hash(sim->config->seed, 0, sim->outside_draws++);
    }
    return sim_hash(sim->config->seed, actor->id, actor->draws++);
}

u64 sim_below(u64 bound)
{
    return bound == 0 ? 0 : sim_draw() % bound;
}

bool sim_chance(u32 parts)
{
    return (sim_draw() & 0xffff) < parts;
}

i64 sim_between(i64 low, i64 high)
{
    return low + (i64)sim_below((u64)(high - low + 1));
}

/* ---- events: a heap by time ---- */

struct sim_event {
    i64 at;
    u64 order;
    struct actor *actor;
    u64 token;
    void (*happen)(void *argument);
    void *argument;
};

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void event_push(struct sim_event event)
{
    if (sim->event_count == sim->event_capacity) {
        size_t capacity = sim->event_capacity == 0 ? 256 : sim->event_capacity * 2;
        struct sim_event *events = arena_array(sim->arena, capacity, sizeof(*events));
        assert(events != NULL);
        if (sim->event_count > 0) {
            memcpy(events, sim->events, sim->event_count * sizeof(*events));
        }
        sim->events = events;
        sim->event_capacity = capacity;
    }
    event.order = sim->event_order++;
    size_t at = sim->event_count++;
    while (at > 0 && before(&event, &sim->events[(at - 1) / 2])) {
        sim->events[at] = sim->events[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sim->events[at] = event;
}

static struct sim_event event_pop(void)
{
    struct sim_event first = sim->events[0];
    struct sim_event last = sim->events[--sim->event_count];
    size_t at = 0;
    for (;;) {
        size_t child = at * 2 + 1;
        if (child >= sim->event_count) {
            break;
        }
        if (child + 1 < sim->event_count && before(&sim->events[child + 1], &sim->events[child])) {
            child++;
        }
        if (!before(&sim->events[child], &last)) {
            break;
        }
        sim->events[at] = sim->events[child];
        at = child;
    }
    if (sim->event_count > 0) {
        sim->events[at] = last;
    }
    return first;
}

void sim_later(i64 delay_us, void (*happen)(void *argument), void *argument)
{
    i64 at = sim->now + delay_us;
    sim->next_late = num_max_i64(sim->next_late, at);
    event_push((struct sim_event){.at = at, .happen = happen, .argument = argument});
}

/* ---- coroutines ---- */

static void *stacks[STACKS_KEPT];
static size_t stack_count;

/* What was on an earlier stack at these addresses, of an actor that died in the middle of a call,
 * means nothing for the next one. */
static void *stack_fresh(void *stack)
{
#ifdef SIM_FIBERS
    __asan_unpoison_memory_region(stack, STACK_BYTES);
#endif
    return stack;
}

static void *stack_take(void)
{
    if (stack_count > 0) {
        return stack_fresh(stacks[--stack_count]);
    }
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    assert(stack != MAP_FAILED);
    return stack_fresh(stack);
}

static void stack_give(void *stack)
{
    if (stack_count < STACKS_KEPT) {
        stacks[stack_count++] = stack;
    } else {
        int unmapped = munmap(stack, STACK_BYTES);
        assert(unmapped == 0);
    }
}

#ifdef SIM_FIBERS
static const void *main_stack;
static size_t main_stack_size;
#endif

/* Saves on the stack what a call preserves, leaves the stack's top in *out_from, and goes on where
 * `to` was left. swapcontext would also ask the kernel for the signal mask, twice a step. */
void sim_switch(void **out_from, void *to);
__asm__(".text\n"
        ".type sim_switch, @function\n"
        "sim_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size sim_switch, . - sim_switch\n");

static void switch_to(void **out_from, void *to, const void *stack, size_t size, bool last)
{
#ifdef SIM_FIBERS
    void *fake = NULL;
    __sanitizer_start_switch_fiber(last ? NULL : &fake, stack, size);
#else
    (void)stack;
    (void)size;
    (void)last;
#endif
    sim_switch(out_from, to);
#ifdef SIM_FIBERS
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
}

static void leave(struct actor *actor)
{
#ifdef SIM_FIBERS
    switch_to(&actor->left_at, sim->left_at, main_stack, main_stack_size, actor->done);
#else
    switch_to(&actor->left_at, sim->left_at, NULL, 0, actor->done);
#endif
}

static void actor_begin(void)
{
#ifdef SIM_FIBERS
    __sanitizer_finish_switch_fiber(NULL, &main_stack, &main_stack_size);
#endif
    struct actor *actor = sim->current;
    actor->run(actor);
    actor->done = true;
    if (actor->process != NULL) {
        actor->process->actors--;
    }
    leave(actor);
    abort();
}

/* As if actor_begin had been about to be called: six saved registers, then where to go on. */
static void *first_frame(void *stack)
{
    enum { SAVED = 6, WORDS = SAVED + 2 };
    void **frame = (void **)stack + STACK_BYTES / sizeof(void *) - WORDS;
    memset(frame, 0, WORDS * sizeof(*frame));
    void (*begin)(void) = actor_begin;
    memcpy(&frame[SAVED], &begin, sizeof(begin));
    return frame;
}

static void resume(struct actor *actor)
{
    sim->current = actor;
    sim->result->steps++;
    switch_to(&sim->left_at, actor->left_at, actor->stack, STACK_BYTES, false);
    sim->current = NULL;
    if (actor->done && actor->stack != NULL) {
        stack_give(actor->stack);
        actor->stack = NULL;
        sim->actor_count--;
    }
}

struct actor *sim_spawn(const char *name, u64 id, struct sim_process *process,
                        void (*run)(struct actor *), void *argument, i64 delay_us)
{
    struct actor *actor = arena_alloc(sim->arena, sizeof(*actor));
    assert(actor != NULL);
    (void)snprintf(actor->name, sizeof(actor->name), "%s", name);
    actor->id = id;
    actor->process = process;
    actor->run = run;
    actor->argument = argument;
    actor->stack = stack_take();
    actor->left_at = first_frame(actor->stack);
    actor->next = sim->actors;
    sim->actors = actor;
    sim->actor_count++;
    if (process != NULL) {
        process->actors++;
    }
    event_push((struct sim_event){.at = sim->now + delay_us, .actor = actor});
    return actor;
}

bool sim_dead(void)
{
    const struct actor *actor = sim->current;
    return actor != NULL && actor->process != NULL && actor->process->dead;
}

void sim_sleep(i64 microseconds)
{
    struct actor *actor = sim->current;
    assert(actor != NULL);
    if (sim_dead()) {
        return;
    }
    actor->token++;
    event_push((struct sim_event){
        .at = sim->now + num_max_i64(microseconds, 0), .actor = actor, .token = actor->token});
    leave(actor);
}

void sim_wait(i64 microseconds)
{
    i64 until = sim->now + microseconds;
    while (!sim_dead() && !sim->stopping && sim->now < until) {
        sim_sleep(until - sim->now);
    }
}

void sim_wake(struct actor *actor)
{
    actor->token++;
    event_push((struct sim_event){.at = sim->now, .actor = actor, .token = actor->token});
}

/* Those that sleep look at the time again. */
static void wake_all(const struct sim_process *process)
{
    for (struct actor *actor = sim->actors; actor != NULL; actor = actor->next) {
        if (actor->process == process && !actor->done && actor != sim->current) {
            sim_wake(actor);
        }
    }
}

void sim_thaw(struct sim_process *process)
{
    if (process->frozen_until > sim->now) {
        process->frozen_until = 0;
        wake_all(process);
    }
}

void sim_kill(struct sim_process *process)
{
    if (process->dead) {
        return;
    }
    process->dead = true;
    sim_node_died(process);
    process->frozen_until = 0;
    wake_all(process);
    if (!sim->stopping) {
        sim_process_died(process);
    }
}

/* ---- the scheduler ---- */

static void event_run(const struct sim_event *event)
{
    if (event->happen != NULL) {
        event->happen(event->argument);
        return;
    }
    struct actor *actor = event->actor;
    if (actor->done || event->token != actor->token) {
        return;
    }
    const struct sim_process *process = actor->process;
    if (process != NULL && process->frozen_until > sim->now) {
        event_push(
            (struct sim_event){.at = process->frozen_until, .actor = actor, .token = actor->token});
        return;
    }
    resume(actor);
}

void sim_scheduler(i64 until)
{
    while (sim->event_count > 0 && sim->events[0].at <= until && !sim->stopping) {
        struct sim_event event = event_pop();
        sim->now = num_max_i64(sim->now, event.at);
        event_run(&event);
        if (sim->result->steps > sim->steps_max) {
            sim_violate("steps", "the schedule does not end");
        }
    }
    sim->now = sim->stopping ? sim->now : num_max_i64(sim->now, until);
}

void sim_finish_actors(void)
{
    sim->stopping = true;
    sim->faults = false;
    for (size_t i = 0; i < sim->process_count; i++) {
        sim_kill(sim->processes[i]);
    }
    for (struct actor *actor = sim->actors; actor != NULL; actor = actor->next) {
        if (!actor->done) {
            sim_wake(actor);
        }
    }
    while (sim->event_count > 0) {
        struct sim_event event = event_pop();
        event_run(&event); /* things that happen see that all is over */
    }
    assert(sim->actor_count == 0);
}

void sim_actors_free(void)
{
    while (stack_count > 0) {
        int unmapped = munmap(stacks[--stack_count], STACK_BYTES);
        assert(unmapped == 0);
    }
}

/* ---- the clock's seam ---- */

static instant seam_wall(void *self)
{
    const struct sim_process *process = self;
    return SIM_EPOCH + sim->now + (process == NULL ? sim->ledger_offset : process->wall_offset);
}

static i64 seam_mono(void *self)
{
    const struct sim_process *process = self;
    return TIME_SECOND_US + sim->now - (process == NULL ? 0 : process->started_at);
}

static void seam_bytes(void *self, void *out_bytes, size_t size)
{
    (void)self;
    u8 *bytes = out_bytes;
    struct actor *actor = sim->current;
    for (size_t at = 0; at < size; at += 8) {
        u64 drawn = actor == NULL ? sim_hash(~sim->config->seed, 1, sim->outside_randoms++)
                                  : sim_hash(~sim->config->seed, actor->id, actor->randoms++);
        memcpy(bytes + at, &drawn, size - at < 8 ? size - at : 8);
    }
}

/* What a dead process waits for comes only when its other actors have run out. */
static void seam_pause(void *self, i64 microseconds)
{
    (void)self;
    sim_wait(microseconds);
    if (sim_dead() || sim->stopping) {
        sim_wake(sim->current);
        leave(sim->current);
    }
}

struct seam sim_seam(struct sim_process *process)
{
    return (struct seam){.now = seam_wall,
                         .monotonic_us = seam_mono,
                         .random = seam_bytes,
                         .wait_us = seam_pause,
                         .self = process};
}
