#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"

/* Runs `assert(value > 0)` in a child whose stderr is a pipe. Fills `out` with what it wrote and
 * returns its wait status. */
static int child_asserts(int value, char *out, size_t room)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        assert(value > 0);
        _exit(0);
    }
    close(ends[1]);
    size_t size = 0;
    ssize_t count = 0;
    while ((count = read(ends[0], out + size, room - 1 - size)) > 0) {
        size += (size_t)count;
    }
    out[size] = '\0';
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void false_condition_tells_where_and_aborts(void **state)
{
    (void)state;
    char text[2000];
    int status = child_asserts(0, text, sizeof(text));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(text, "value > 0"));
    assert_non_null(strstr(text, "child_asserts"));
    assert_non_null(strstr(text, "assert_test.c:"));
}

static void true_condition_is_silent(void **state)
{
    (void)state;
    char text[2000];
    int status = child_asserts(1, text, sizeof(text));
    assert_true(WIFEXITED(status));
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(false_condition_tells_where_and_aborts),
        cmocka_unit_test(true_condition_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
