#include "server/process.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/time.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Leak checking at the exit traces the process. */
#if defined(__SANITIZE_ADDRESS__)
#define PROCESS_TRACED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PROCESS_TRACED 1
#endif
#endif

void process_harden(void)
{
    struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
    struct rlimit files;
    (void)umask(0077);
    arena_return_blocks();
    (void)setrlimit(RLIMIT_CORE, &none);
#ifndef PROCESS_TRACED
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

static sigset_t stop_signals(void)
{
    sigset_t set;
    int failed = sigemptyset(&set);
    failed |= sigaddset(&set, SIGTERM);
    failed |= sigaddset(&set, SIGINT);
    assert(failed == 0);
    return set;
}

void process_step_back(void)
{
    enum { STEP_BACK_NICE = 15 };
    int nice_now = getpriority(PRIO_PROCESS, 0);
    (void)setpriority(PRIO_PROCESS, 0, nice_now + STEP_BACK_NICE); /* of the thread, on Linux */
}

void process_hold_signals(void)
{
    sigset_t set = stop_signals();
    int failed = sigprocmask(SIG_BLOCK, &set, NULL);
    assert(failed == 0);
    (void)signal(SIGPIPE, SIG_IGN);
}

bool process_signalled(i64 timeout_us)
{
    assert(timeout_us >= 0);
    sigset_t set = stop_signals();
    struct timespec timeout = {.tv_sec = timeout_us / TIME_SECOND_US,
                               .tv_nsec = timeout_us % TIME_SECOND_US * 1000};
    return sigtimedwait(&set, NULL, &timeout) > 0;
}

_Noreturn void process_leave(int code)
{
    _exit(code);
}

static void write_all(int fd, str text)
{
    while (text.size > 0) {
        ssize_t wrote = write(fd, text.data, text.size);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            return; /* nobody listens */
        }
        text = str_slice(text, (size_t)wrote, text.size);
    }
}

void process_say(str text)
{
    write_all(STDOUT_FILENO, text);
}

void process_complain(const struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)64 * KIB);
    buf text = buf_create(arena, KIB, 8 * KIB);
    buf_append_format(&text, "lhbox: %s\n", error->message);
    if (error->hint[0] != '\0') {
        buf_append_format(&text, "  %s\n", error->hint);
    }
    write_all(STDERR_FILENO, buf_str(&text));
}
