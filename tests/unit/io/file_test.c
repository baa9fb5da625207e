#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/seam.h"
#include "io/file.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    struct arena *arena;
    char directory[64];
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture.arena = arena_create((size_t)4 * MIB);
    (void)snprintf(fixture.directory, sizeof(fixture.directory), "/tmp/lhbox-file-XXXXXX");
    assert_non_null(mkdtemp(fixture.directory));
    *state = &fixture;
    return 0;
}

static int remove_entry(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
    (void)status;
    (void)flag;
    (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    (void)nftw(fixture->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    arena_destroy(fixture->arena);
    return 0;
}

static str in(struct fixture *fixture, const char *name)
{
    return str_format(fixture->arena, "%s/%s", fixture->directory, name);
}

static void directories_are_made_private_and_may_exist(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    str path = in(fixture, "a//b/c");
    assert_int_equal(file_make_directory(path, &error), OK);
    assert_int_equal(file_make_directory(path, &error), OK);
    struct stat status;
    assert_int_equal(stat(in(fixture, "a/b/c").data, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
}

static void a_file_in_the_way_of_a_directory_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    assert_int_equal(file_write_new(in(fixture, "f"), STR("x"), &error), OK);
    assert_int_equal(file_make_directory(in(fixture, "f/g"), &error), IO);
    assert_int_equal(error.code, ERROR_STORE_DOWN);
}

static void what_is_written_is_read_and_replaced_whole(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    str bytes = {0};
    assert_int_equal(file_write_durable(in(fixture, "f"), STR("first"), 0640, &error), OK);
    assert_int_equal(file_write_durable(in(fixture, "f"), STR("2nd"), 0600, &error), OK);
    assert_int_equal(file_read(fixture->arena, in(fixture, "f"), 100, &bytes, &error), OK);
    assert_true(str_equal(bytes, STR("2nd")));
    assert_int_equal(file_read(fixture->arena, in(fixture, "f"), 2, &bytes, &error), LIMIT);
}

static void a_missing_file_is_not_found(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    str bytes = {0};
    assert_int_equal(file_read(fixture->arena, in(fixture, "none"), 9, &bytes, &error), NOT_FOUND);
    assert_false(file_exists(in(fixture, "none")));
}

static void a_secret_is_never_overwritten_and_not_exposed(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    str path = in(fixture, "key");
    assert_int_equal(file_write_new(path, STR("s3cret"), &error), OK);
    assert_false(file_is_exposed(path));
    assert_int_equal(file_write_new(path, STR("other"), &error), CONFLICT);
    str bytes = {0};
    assert_int_equal(file_read(fixture->arena, path, 100, &bytes, &error), OK);
    assert_true(str_equal(bytes, STR("s3cret")));
    assert_int_equal(chmod(path.data, 0640), 0);
    assert_true(file_is_exposed(path));
}

static void a_locked_directory_refuses_a_second_process(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    str directory = str_from(fixture->directory);
    assert_int_equal(file_lock_directory(directory, &error), OK);
    pid_t child = fork();
    if (child == 0) {
        struct error refusal = {0};
        err result = file_lock_directory(directory, &refusal);
        _exit(result == BUSY && refusal.hint[0] != '\0' ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_lost_write_ends_the_process_with_74(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        (void)close(STDERR_FILENO);
        file_durability_lost("fsync", STR("somewhere"), 5);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), FILE_EXIT_DURABILITY);
}

static void paths_become_absolute_without_dots(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *path;
        const char *absolute;
    } cases[] = {{"/a/b", "/a/b"}, {"/a/./b/", "/a/b"}, {"/a/../b", "/b"},  {"/../..", "/"},
                 {"/", "/"},       {"//a///b", "/a/b"}, {"/a/b/../..", "/"}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        str out = {0};
        struct error error = {0};
        assert_int_equal(file_absolute(fixture->arena, str_from(cases[i].path), &out, &error), OK);
        assert_string_equal(out.data, cases[i].absolute);
    }
    assert_int_equal(chdir(fixture->directory), 0);
    str out = {0};
    assert_int_equal(file_absolute(fixture->arena, STR("x/../y"), &out, NULL), OK);
    assert_true(str_equal(out, in(fixture, "y")));
    assert_int_equal(file_absolute(fixture->arena, STR(""), &out, NULL), INVALID);
}

static void space_is_told_of_the_file_system(void **state)
{
    struct fixture *fixture = *state;
    i64 free_bytes = -1;
    i64 total = -1;
    assert_int_equal(file_space(str_from(fixture->directory), &free_bytes, &total, NULL), OK);
    assert_true(free_bytes >= 0 && total > free_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(directories_are_made_private_and_may_exist, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_file_in_the_way_of_a_directory_is_an_error, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_written_is_read_and_replaced_whole, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_missing_file_is_not_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_secret_is_never_overwritten_and_not_exposed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_locked_directory_refuses_a_second_process, set_up,
                                        tear_down),
        cmocka_unit_test(a_lost_write_ends_the_process_with_74),
        cmocka_unit_test_setup_teardown(paths_become_absolute_without_dots, set_up, tear_down),
        cmocka_unit_test_setup_teardown(space_is_told_of_the_file_system, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
