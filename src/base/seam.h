/* seam: the clock, the monotonic clock and randomness, as something that can be replaced.
 *
 * Nothing else in lhbox reads a clock or draws a random number. seam_system() is the real one;
 * the simulator and the tests pass their own. All functions are thread-safe. */
#ifndef LHBOX_BASE_SEAM_H
#define LHBOX_BASE_SEAM_H

#include "base/time.h"

struct seam {
    instant (*now)(void *self);                               /* wall clock, UTC */
    i64 (*monotonic_us)(void *self);                          /* microseconds, never back */
    void (*random)(void *self, void *out_bytes, size_t size); /* unpredictable bytes */
    void (*wait_us)(void *self, i64 microseconds);            /* blocks the calling actor */
    void *self;
};

const struct seam *seam_system(void);

static inline instant seam_now(const struct seam *seam)
{
    return seam->now(seam->self);
}
static inline i64 seam_monotonic_us(const struct seam *seam)
{
    return seam->monotonic_us(seam->self);
}
static inline void seam_random(const struct seam *seam, void *out_bytes, size_t size)
{
    seam->random(seam->self, out_bytes, size);
}
static inline void seam_wait_us(const struct seam *seam, i64 microseconds)
{
    seam->wait_us(seam->self, microseconds);
}

/* A named place at which a test build can kill the process or fail the call:
 * LHBOX_CRASH_POINT=name[:count] in the environment kills it at the count-th passage. Compiles to
 * nothing unless LHBOX_FAILPOINTS is defined. */
#ifdef LHBOX_FAILPOINTS
void seam_crash_point(const char *name);
#define CRASH_POINT(name) seam_crash_point(#name)
#else
#define CRASH_POINT(name) ((void)0)
#endif

#endif
