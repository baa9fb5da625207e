#include "base/seam.h"

#include "base/assert.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>

#ifdef LHBOX_FAILPOINTS
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#endif

static i64 clock_us(clockid_t clock)
{
    struct timespec now = {0};
    int result = clock_gettime(clock, &now);
    assert(result == 0);
    return (i64)now.tv_sec * TIME_SECOND_US + now.tv_nsec / 1000;
}

static instant system_now(void *self)
{
    (void)self;
    return clock_us(CLOCK_REALTIME);
}

static i64 system_monotonic_us(void *self)
{
    (void)self;
    return clock_us(CLOCK_MONOTONIC);
}

static void system_random(void *self, void *out_bytes, size_t size)
{
    (void)self;
    u8 *bytes = out_bytes;
    while (size > 0) {
        ssize_t drawn = getrandom(bytes, size, 0);
        if (drawn < 0) {
            assert(errno == EINTR);
            continue;
        }
        bytes += drawn;
        size -= (size_t)drawn;
    }
}

static void system_wait_us(void *self, i64 microseconds)
{
    if (microseconds <= 0) {
        return;
    }
    i64 until_us = system_monotonic_us(self) + microseconds;
    struct timespec until = {.tv_sec = until_us / TIME_SECOND_US,
                             .tv_nsec = until_us % TIME_SECOND_US * 1000};
    int result = EINTR;
    while (result == EINTR) {
        result = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    assert(result == 0);
}

const struct seam *seam_system(void)
{
    static const struct seam seam = {.now = system_now,
                                     .monotonic_us = system_monotonic_us,
                                     .random = system_random,
                                     .wait_us = system_wait_us};
    return &seam;
}

#ifdef LHBOX_FAILPOINTS
void seam_crash_point(const char *name)
{
    static _Atomic i64 passages;
    const char *setting = getenv("LHBOX_CRASH_POINT");
    if (setting == NULL) {
        return;
    }
    str rest = str_from(setting);
    str wanted = {NULL, 0};
    i64 count = 1;
    if (!str_next(&rest, ':', &wanted) || !str_equal(wanted, str_from(name))) {
        return;
    }
    if (rest.data != NULL) {
        bool number = str_to_i64(rest, &count);
        assert(number && count >= 1);
    }
    if (++passages == count) {
        kill(getpid(), SIGKILL);
    }
}
#endif
