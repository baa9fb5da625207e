/* store_fixture: a store in a directory of its own, or in memory, and a kernel that fails. */
#ifndef LHBOX_TESTS_STORE_FIXTURE_H
#define LHBOX_TESTS_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/seam.h"
#include "io/store.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <signal.h>

struct fixture {
    struct arena *arena;
    struct store store;
    char directory[64]; /* empty: in memory */
};

static struct fixture fixture;

static inline int set_up_mem(void **state)
{
    fixture = (struct fixture){.arena = arena_create((size_t)64 * MIB)};
    assert_int_equal(store_open_mem(fixture.arena, MIB, &fixture.store, NULL), OK);
    *state = &fixture;
    return 0;
}

static inline int set_up_dir(void **state)
{
    fixture = (struct fixture){.arena = arena_create((size_t)64 * MIB)};
    (void)snprintf(fixture.directory, sizeof(fixture.directory), "/tmp/lhbox-store-XXXXXX");
    assert_non_null(mkdtemp(fixture.directory));
    assert_int_equal(
        store_open_dir(fixture.arena, str_from(fixture.directory), &fixture.store, NULL), OK);
    *state = &fixture;
    return 0;
}

static inline int remove_entry(const char *path, const struct stat *status, int flag,
                               struct FTW *walk)
{
    (void)status;
    (void)flag;
    (void)walk;
    return remove(path);
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;
    store_close(&f->store);
    if (f->directory[0] != '\0') {
        char temporary[96];
        (void)snprintf(temporary, sizeof(temporary), "/tmp/.%s.tmp",
                       f->directory + sizeof("/tmp/") - 1);
        (void)nftw(f->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
        (void)nftw(temporary, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
    arena_destroy(f->arena);
    return 0;
}

static inline void put(struct fixture *f, const char *key, const char *body)
{
    struct error error = {0};
    err result = store_put(&f->store, str_from(key), str_from(body), NULL, &error);
    if (result != OK) {
        fail_msg("%s: %s", key, error.message);
    }
}

static inline void assert_body(struct fixture *f, const char *key, const char *body)
{
    struct store_object object = {0};
    assert_int_equal(store_get(&f->store, f->arena, str_from(key), &object, NULL), OK);
    assert_true(str_equal(object.body, str_from(body)));
    assert_int_equal(object.size, (i64)object.body.size);
}

static inline str in(struct fixture *f, const char *name)
{
    return str_format(f->arena, "%s/%s", f->directory, name);
}

/* Beside the directory: /tmp/lhbox-store-X has /tmp/.lhbox-store-X.tmp. */
static const char *temporary_directory(const struct fixture *f)
{
    return str_format(f->arena, "/tmp/.%s.tmp", f->directory + sizeof("/tmp/") - 1).data;
}

static inline size_t temporary_files(struct fixture *f)
{
    DIR *entries = opendir(temporary_directory(f));
    assert_non_null(entries);
    size_t count = 0;
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        count += entry->d_name[0] != '.' ? 1 : 0;
    }
    (void)closedir(entries);
    return count;
}

/* From here on the kernel answers this call with the error, in this process. */
static inline void fail_system_call(long number, int error_number)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (u32)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (u32)error_number),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_COUNT(filter), .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(99);
    }
}

/* The exit code of `body` in a process of its own where the call fails. */
static inline int in_child(struct fixture *f, long number, int error_number,
                           int (*body)(struct fixture *))
{
    pid_t child = fork();
    if (child == 0) {
        fail_system_call(number, error_number);
        _exit(body(f));
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define BOTH(test)                                                                                 \
    {"mem: " #test, test, set_up_mem, tear_down, NULL},                                            \
    {                                                                                              \
        "dir: " #test, test, set_up_dir, tear_down, NULL                                           \
    }
#define DIR_ONLY(test) {"dir: " #test, test, set_up_dir, tear_down, NULL}

#endif
