/* The journal's directory: its files, what befalls them, and processes that end. */
#include "failing_disk.h"
#include "journal_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- the directory ---- */

static str file_of(struct fixture *f, const char *ending, char room[512])
{
    char command[256];
    (void)snprintf(command, sizeof(command), "ls -d %s/log/*%s", f->directory, ending);
    FILE *names = popen(command, "r");
    assert_non_null(names);
    assert_non_null(fgets(room, 512, names));
    (void)pclose(names);
    room[strcspn(room, "\n")] = '\0';
    return str_from(room);
}

static void the_files_are_the_owners_alone_and_of_one_process(void **state)
{
    struct fixture *f = *state;
    static const char *const endings[] = {"head", ".000", ".001"};
    must_open(f);
    for (size_t i = 0; i < ARRAY_COUNT(endings); i++) {
        char room[512];
        struct stat status;
        assert_int_equal(stat(file_of(f, endings[i], room).data, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
        assert_true(i == 0 || (status.st_size == MIB && status.st_blocks >= MIB / 512));
    }
    AUTO_ARENA struct arena *arena = arena_create((size_t)4 * MIB);
    struct journal other = {0};
    assert_int_equal(journal_open_dir(arena, &f->options, &other, NULL), BUSY);
}

static void flip(str path, long at)
{
    FILE *file = fopen(path.data, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
    assert_int_equal(fclose(file), 0);
}

static void a_damaged_head_is_refused(void **state)
{
    struct fixture *f = *state;
    char room[512];
    struct stat status;
    must_open(f);
    journal_close(&f->journal);
    str head = file_of(f, "head", room);
    assert_int_equal(stat(head.data, &status), 0);
    for (long at = 0; at < status.st_size; at++) {
        flip(head, at);
        assert_int_equal(try_open(f, NULL), CORRUPT);
        flip(head, at);
    }
    must_open(f);
}

static void a_lost_head_is_not_taken_for_a_new_log(void **state)
{
    struct fixture *f = *state;
    char room[512];
    struct error error = {0};
    must_open(f);
    journal_close(&f->journal);
    assert_int_equal(unlink(file_of(f, "head", room).data), 0);
    must_open(f); /* nothing was in it */
    assert_int_equal(append(f, 0, 10), OK);
    journal_close(&f->journal);
    assert_int_equal(unlink(file_of(f, "head", room).data), 0);
    assert_int_equal(try_open(f, &error), CORRUPT);
    assert_non_null(strstr(error.message, "head is missing"));
}

static void a_missing_or_shorter_segment_is_named(void **state)
{
    struct fixture *f = *state;
    char room[512];
    struct error error = {0};
    must_open(f);
    journal_close(&f->journal);
    str segment = file_of(f, ".001", room);
    assert_int_equal(truncate(segment.data, MIB - 4096), 0);
    assert_int_equal(try_open(f, &error), CORRUPT);
    assert_non_null(strstr(error.message, ".001 has"));
    error_clear(&error);
    assert_int_equal(unlink(segment.data), 0);
    assert_int_equal(try_open(f, &error), CORRUPT);
    assert_non_null(strstr(error.message, ".001 is missing"));
}

static void a_damaged_durable_record_is_refused_and_named(void **state)
{
    struct fixture *f = *state;
    char room[512];
    struct error error = {0};
    must_open(f);
    for (u32 id = 0; id < 3; id++) {
        assert_int_equal(append(f, id, 100), OK);
    }
    journal_close(&f->journal);
    flip(file_of(f, ".000", room), 2 * JOURNAL_BLOCK_BYTES + 100);
    assert_int_equal(try_open(f, &error), CORRUPT);
    assert_non_null(strstr(error.message, "segment 0 at offset 8192 (position 8192)"));
}

/* A process that is killed at any time: what it was told is durable is there. */
static void what_a_killed_process_was_told_is_there(void **state)
{
    struct fixture *f = *state;
    static struct replayed replayed;
    for (int round = 0; round < 5; round++) {
        int told[2];
        assert_int_equal(pipe(told), 0);
        pid_t child = fork();
        if (child == 0) {
            must_open(f);
            for (u32 id = 0;; id++) {
                if (append(f, id, 100 + id % 9000) != OK || write(told[1], &id, 4) != 4) {
                    _exit(1);
                }
            }
        }
        (void)close(told[1]);
        u32 id = 0;
        while (id < 40 && read(told[0], &id, 4) == 4) {
        }
        assert_int_equal(kill(child, SIGKILL), 0);
        while (read(told[0], &id, 4) == 4) {
        }
        (void)close(told[0]);
        assert_int_equal(waitpid(child, NULL, 0), child);
        must_open(f);
        replay(f, &replayed);
        assert_true(replayed.count >= id + 1);
        assert_int_equal(replayed.ids[id], id);
        assert_int_equal(journal_release(&f->journal, journal_end(&f->journal), NULL), OK);
        journal_close(&f->journal);
    }
}

/* Bytes of the file that were never written. */
static off_t holes_of(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &status), 0);
    off_t holes = 0;
    off_t at = lseek(fd, 0, SEEK_HOLE);
    while (at >= 0 && at < status.st_size) {
        off_t data = lseek(fd, at, SEEK_DATA);
        off_t until = data < 0 ? status.st_size : data;
        holes += until - at;
        at = lseek(fd, until, SEEK_HOLE);
    }
    (void)close(fd);
    return holes;
}

/* Where a file system tells of no holes there is nothing to see here. */
static void a_segment_is_full_of_zeros_before_it_is_written_to(void **state)
{
    struct fixture *f = *state;
    char first[512];
    char second[512];
    must_open(f);
    (void)file_of(f, ".000", first);
    (void)file_of(f, ".001", second);
    assert_int_equal(holes_of(first), 0);
    bool tells = holes_of(second) > 0;
    u32 count = 0;
    while (count < 20 && append(f, count, 70000) == OK) {
        count++;
    }
    assert_int_equal(count, 20); /* over the end of the first */
    assert_true(!tells || holes_of(second) == 0);
    reopen(f);
    assert_replay(f, 0, count);
}

/* A hole with blocks of the log behind it is filled, and they are not. */
static void holes_alone_are_filled(void **state)
{
    struct fixture *f = *state;
    char path[512];
    u64 position = 0;
    must_open(f);
    for (u32 id = 0; id < 3; id++) {
        assert_int_equal(submit(f, id, 300000, &position), OK);
        assert_int_equal(journal_wait(&f->journal, position, NULL), OK);
    }
    assert_int_equal(journal_release(&f->journal, position, NULL), OK);
    journal_close(&f->journal);
    int fd = open(file_of(f, ".000", path).data, O_RDWR);
    assert_true(fd >= 0);
    off_t hole = 64 * KIB;
    int punched = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, hole, hole);
    (void)close(fd);
    assert_true(punched != 0 || holes_of(path) == hole);
    must_open(f);
    assert_int_equal(holes_of(path), 0);
    assert_replay(f, 2, 1);
}

/* From here on files are not opened for direct writes. */
static void refuse_direct(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_DIRECT, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_COUNT(filter), .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(99);
    }
}

static void a_file_system_without_direct_writes_will_do(void **state)
{
    struct fixture *f = *state;
    pid_t child = fork();
    if (child == 0) {
        refuse_direct();
        must_open(f);
        _exit(append(f, 0, 10) == OK && append(f, 1, 9000) == OK ? 7 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    must_open(f);
    assert_replay(f, 0, 2);
}

static void a_write_that_the_disk_refuses_ends_the_process_with_74(void **state)
{
    struct fixture *f = *state;
    pid_t child = fork();
    if (child == 0) {
        must_open(f);
        (void)close(STDERR_FILENO);
        fail_system_call(SYS_pwrite64, EIO);
        _exit(append(f, 0, 10) == OK ? 1 : 2);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 74);
}

#define DIR_ONLY(test) {"dir: " #test, test, set_up_dir, tear_down, NULL}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DIR_ONLY(the_files_are_the_owners_alone_and_of_one_process),
        DIR_ONLY(a_damaged_head_is_refused),
        DIR_ONLY(a_lost_head_is_not_taken_for_a_new_log),
        DIR_ONLY(a_missing_or_shorter_segment_is_named),
        DIR_ONLY(a_damaged_durable_record_is_refused_and_named),
        DIR_ONLY(what_a_killed_process_was_told_is_there),
        DIR_ONLY(a_segment_is_full_of_zeros_before_it_is_written_to),
        DIR_ONLY(holes_alone_are_filled),
        DIR_ONLY(a_file_system_without_direct_writes_will_do),
        DIR_ONLY(a_write_that_the_disk_refuses_ends_the_process_with_74),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
