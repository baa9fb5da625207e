#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/machine.h"

enum state { DOOR_OPEN, DOOR_SHUT, DOOR_LOCKED };
static const char *const STATES[] = {"open", "shut", "locked"};
static const u32 EDGES[] = {
    [DOOR_OPEN] = MACHINE_TO(DOOR_SHUT),
    [DOOR_SHUT] = MACHINE_TO(DOOR_OPEN) | MACHINE_TO(DOOR_LOCKED),
    [DOOR_LOCKED] = MACHINE_TO(DOOR_SHUT),
};
static const struct machine DOOR = {"door", STATES, EDGES, 3};

/* The wait status of a child that takes the edge. */
static int child_takes(u32 from, u32 to)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        close(STDERR_FILENO);
        _exit(machine_take(&DOOR, from, to) == to ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void an_edge_of_the_table_may_be_taken_and_no_other(void **state)
{
    (void)state;
    for (u32 from = 0; from < 4; from++) {
        for (u32 to = 0; to < 4; to++) {
            bool in_table = from < 3 && to < 3 && (EDGES[from] & MACHINE_TO(to)) != 0;
            int status = child_takes(from, to);
            if (in_table) {
                assert_true(WIFEXITED(status));
                assert_int_equal(WEXITSTATUS(status), 0);
            } else {
                assert_true(WIFSIGNALED(status));
                assert_int_equal(WTERMSIG(status), SIGABRT);
            }
        }
    }
}

static u32 seen_from;
static u32 seen_to;
static int seen;

static void watch(const struct machine *machine, u32 from, u32 to)
{
    assert_ptr_equal(machine, &DOOR);
    seen_from = from;
    seen_to = to;
    seen++;
}

static void a_watcher_sees_each_edge(void **state)
{
    (void)state;
    machine_watch(watch);
    (void)machine_take(&DOOR, DOOR_SHUT, DOOR_LOCKED);
    assert_int_equal(seen, 1);
    assert_int_equal(seen_from, DOOR_SHUT);
    assert_int_equal(seen_to, DOOR_LOCKED);
    machine_watch(NULL);
    (void)machine_take(&DOOR, DOOR_SHUT, DOOR_OPEN);
    assert_int_equal(seen, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edge_of_the_table_may_be_taken_and_no_other),
        cmocka_unit_test(a_watcher_sees_each_edge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
