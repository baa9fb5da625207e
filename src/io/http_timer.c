#include "io/http_timer.h"

#include "base/assert.h"

static struct http_timer *slot_of(struct http_wheel *wheel, i64 tick)
{
    return &wheel->slots[(size_t)tick % HTTP_TIMER_SLOTS];
}

void http_wheel_init(struct http_wheel *wheel, i64 now_us)
{
    *wheel = (struct http_wheel){.tick = now_us / HTTP_TIMER_TICK_US + 1};
    for (size_t index = 0; index < HTTP_TIMER_SLOTS; index++) {
        wheel->slots[index].next = &wheel->slots[index];
        wheel->slots[index].previous = &wheel->slots[index];
    }
}

static void timer_file(struct http_wheel *wheel, struct http_timer *timer)
{
    i64 tick = timer->deadline_us / HTTP_TIMER_TICK_US + 1;
    tick = num_max_i64(tick, wheel->tick);
    tick = num_min_i64(tick, wheel->tick + HTTP_TIMER_SLOTS - 2);
    struct http_timer *head = slot_of(wheel, tick);
    timer->tick = tick;
    timer->next = head;
    timer->previous = head->previous;
    head->previous->next = timer;
    head->previous = timer;
    size_t slot = (size_t)tick % HTTP_TIMER_SLOTS;
    wheel->filled[slot / 64] |= (u64)1 << (slot % 64);
}

void http_timer_set(struct http_wheel *wheel, struct http_timer *timer, i64 deadline_us)
{
    timer->deadline_us = deadline_us;
    if (timer->tick != 0 && timer->tick <= deadline_us / HTTP_TIMER_TICK_US + 1) {
        return;
    }
    http_timer_clear(timer);
    timer_file(wheel, timer);
}

void http_timer_clear(struct http_timer *timer)
{
    if (timer->tick == 0) {
        return;
    }
    timer->next->previous = timer->previous;
    timer->previous->next = timer->next;
    timer->next = NULL;
    timer->previous = NULL;
    timer->tick = 0;
}

/* The first tick from `from` on whose slot may hold timers; -1 when none does. */
static i64 wheel_next_tick(const struct http_wheel *wheel, i64 from)
{
    for (i64 ahead = 0; ahead < HTTP_TIMER_SLOTS;) {
        size_t slot = (size_t)(from + ahead) % HTTP_TIMER_SLOTS;
        u64 rest = wheel->filled[slot / 64] >> (slot % 64);
        if (rest != 0) {
            i64 found = ahead + __builtin_ctzll(rest);
            return found < HTTP_TIMER_SLOTS ? from + found : -1;
        }
        ahead += 64 - (i64)(slot % 64);
    }
    return -1;
}

/* Forgets the mark of a slot that turned out empty. */
static bool slot_empty(struct http_wheel *wheel, i64 tick)
{
    const struct http_timer *head = slot_of(wheel, tick);
    if (head->next != head) {
        return false;
    }
    size_t slot = (size_t)tick % HTTP_TIMER_SLOTS;
    wheel->filled[slot / 64] &= ~((u64)1 << (slot % 64));
    return true;
}

i64 http_wheel_wait(struct http_wheel *wheel, i64 now_us)
{
    i64 tick = wheel_next_tick(wheel, wheel->tick);
    while (tick >= 0 && slot_empty(wheel, tick)) {
        tick = wheel_next_tick(wheel, wheel->tick);
    }
    return tick < 0 ? -1 : num_max_i64(0, tick * HTTP_TIMER_TICK_US - now_us);
}

struct http_timer *http_wheel_expire(struct http_wheel *wheel, i64 now_us)
{
    i64 now_tick = now_us / HTTP_TIMER_TICK_US;
    for (;;) {
        i64 tick = wheel_next_tick(wheel, wheel->tick);
        if (tick < 0 || tick > now_tick) {
            wheel->tick = num_max_i64(wheel->tick, now_tick + 1);
            return NULL;
        }
        wheel->tick = tick;
        if (slot_empty(wheel, tick)) {
            continue;
        }
        struct http_timer *timer = slot_of(wheel, tick)->next;
        http_timer_clear(timer);
        if (timer->deadline_us <= now_us) {
            return timer;
        }
        wheel->tick = tick + 1; /* not to be filed into the slot that is being emptied */
        timer_file(wheel, timer);
        wheel->tick = tick;
    }
}
