/* http_timer: deadlines of one event loop in a timer wheel.
 *
 * A wheel of 1,024 slots of 10 ms. Setting a deadline later than the one a timer is filed under
 * leaves it where it is: it is looked at once too early and filed again, so that the common change
 * of phase is one store. Owned by its loop's thread. Cannot fail. */
#ifndef LHBOX_IO_HTTP_TIMER_H
#define LHBOX_IO_HTTP_TIMER_H

#include "base/num.h"

enum { HTTP_TIMER_SLOTS = 1024, HTTP_TIMER_TICK_US = 10 * 1000 };

struct http_timer {
    struct http_timer *next;
    struct http_timer *previous;
    i64 deadline_us; /* on the monotonic clock */
    i64 tick;        /* when it is looked at; 0: not filed */
};

struct http_wheel {
    struct http_timer slots[HTTP_TIMER_SLOTS]; /* list heads */
    u64 filled[HTTP_TIMER_SLOTS / 64];         /* a bit a slot that may hold timers */
    i64 tick;                                  /* all before it are done */
};

void http_wheel_init(struct http_wheel *wheel, i64 now_us);
void http_timer_set(struct http_wheel *wheel, struct http_timer *timer, i64 deadline_us);
void http_timer_clear(struct http_timer *timer);
/* Microseconds until a timer is to be looked at; -1 when there is none. */
i64 http_wheel_wait(struct http_wheel *wheel, i64 now_us);
/* One timer whose deadline has passed, taken out; NULL when there is none left. */
struct http_timer *http_wheel_expire(struct http_wheel *wheel, i64 now_us);

#endif
