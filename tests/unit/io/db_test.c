#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing_disk.h"
#include "io/db.h"

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    struct arena *arena;
    struct db db;
    char directory[64]; /* empty: in memory */
    str path;
};

static struct fixture fixture;

static err make_table(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    return db_exec(tx, "CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT, b BYTEA)", NULL, 0, NULL,
                   error);
}

static void open_db(struct fixture *f)
{
    struct error error = {0};
    err result = db_open_sqlite(f->arena, f->path, seam_system(), &f->db, &error);
    if (result != OK) {
        fail_msg("%s", error.message);
    }
}

static int set_up_memory(void **state)
{
    fixture = (struct fixture){.arena = arena_create((size_t)64 * MIB), .path = STR(":memory:")};
    open_db(&fixture);
    assert_int_equal(db_transact(&fixture.db, make_table, NULL, NULL), OK);
    *state = &fixture;
    return 0;
}

static int set_up_file(void **state)
{
    fixture = (struct fixture){.arena = arena_create((size_t)64 * MIB)};
    (void)snprintf(fixture.directory, sizeof(fixture.directory), "/tmp/lhbox-db-XXXXXX");
    assert_non_null(mkdtemp(fixture.directory));
    fixture.path = str_format(fixture.arena, "%s/a.db", fixture.directory);
    open_db(&fixture);
    assert_int_equal(db_transact(&fixture.db, make_table, NULL, NULL), OK);
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
    struct fixture *f = *state;
    db_close(&f->db);
    arena_destroy(f->arena);
    if (f->directory[0] != '\0') {
        (void)nftw(f->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
    return 0;
}

/* ---- bodies ---- */

struct insert {
    i64 key;
    err then; /* what the body answers after its insert */
};

static err insert_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct insert *insert = context;
    TRY(db_run(tx, error, "INSERT INTO t (k, v) VALUES (?1, ?2)", DB_N(insert->key),
               DB_T(STR("v"))));
    return insert->then == OK ? OK : error_set(error, insert->then, ERROR_NAME_TAKEN, "as asked");
}

static err insert_key(struct fixture *f, i64 key, err then)
{
    struct insert insert = {.key = key, .then = then};
    return db_transact(&f->db, insert_body, &insert, NULL);
}

static err insert_later(struct fixture *f, i64 key, err then)
{
    struct insert insert = {.key = key, .then = then};
    return db_transact_later(&f->db, insert_body, &insert, NULL);
}

static err count_body(struct db_tx *tx, void *context, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)64 * KIB);
    struct db_rows rows = {0};
    TRY(db_query(tx, arena, "SELECT count(*) FROM t", NULL, 0, &rows, error));
    *(i64 *)context = db_number(&rows, 0, 0);
    return OK;
}

static i64 count_rows(struct fixture *f)
{
    i64 count = -1;
    assert_int_equal(db_read(&f->db, count_body, &count, NULL), OK);
    return count;
}

/* ---- promises ---- */

static err write_kinds(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    static const char *const sql = "INSERT INTO t (k, v, b) VALUES (?1, ?2, ?3)";
    TRY(db_run(tx, error, sql, DB_N(INT64_MIN), DB_T(STR("")), DB_B(STR(""))));
    TRY(db_run(tx, error, sql, DB_N(INT64_MAX), DB_T(STR("a\0b")), DB_B(STR("\xff\0"))));
    return db_run(tx, error, sql, DB_N(0), DB_T(((str){NULL, 0})), DB_NIL);
}

static err read_kinds(struct db_tx *tx, void *context, struct error *error)
{
    struct fixture *f = context;
    struct db_rows rows = {0};
    TRY(db_query(tx, f->arena, "SELECT k, v, b FROM t ORDER BY k", NULL, 0, &rows, error));
    assert_int_equal(rows.row_count, 3);
    assert_int_equal(rows.column_count, 3);
    assert_true(db_number(&rows, 0, 0) == INT64_MIN && db_number(&rows, 2, 0) == INT64_MAX);
    assert_true(db_text(&rows, 0, 1).data != NULL && db_text(&rows, 0, 1).size == 0);
    assert_true(db_text(&rows, 0, 2).data != NULL && db_text(&rows, 0, 2).size == 0);
    assert_null(db_text(&rows, 1, 1).data);
    assert_int_equal(db_at(&rows, 1, 2)->kind, DB_NULL);
    assert_int_equal(db_number(&rows, 1, 2), 0);
    assert_true(str_equal(db_text(&rows, 2, 1), STR("a\0b")));
    assert_true(str_equal(db_text(&rows, 2, 2), STR("\xff\0")));
    return OK;
}

static void values_come_back_as_they_went_in(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(db_transact(&f->db, write_kinds, NULL, NULL), OK);
    assert_int_equal(db_read(&f->db, read_kinds, f, NULL), OK);
}

static void a_failing_body_changes_nothing_and_gives_its_own_result(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(insert_key(f, 1, OK), OK);
    assert_int_equal(insert_key(f, 2, DENIED), DENIED);
    assert_int_equal(insert_key(f, 3, NOT_FOUND), NOT_FOUND);
    assert_int_equal(count_rows(f), 1);
}

static void a_broken_unique_constraint_is_a_conflict(void **state)
{
    struct fixture *f = *state;
    struct error error = {0};
    struct insert insert = {.key = 7};
    assert_int_equal(insert_key(f, 7, OK), OK);
    assert_int_equal(db_transact(&f->db, insert_body, &insert, &error), CONFLICT);
    assert_int_equal(error.code, ERROR_NONE);
    assert_int_equal(count_rows(f), 1);
}

static err wrong_sql(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    return db_exec(tx, "INSERT INTO nowhere VALUES (1)", NULL, 0, NULL, error);
}

static void a_wrong_statement_is_internal(void **state)
{
    struct fixture *f = *state;
    struct error error = {0};
    assert_int_equal(db_transact(&f->db, wrong_sql, NULL, &error), IO);
    assert_int_equal(error.code, ERROR_INTERNAL);
    assert_int_equal(insert_key(f, 1, OK), OK);
}

static err update_body(struct db_tx *tx, void *context, struct error *error)
{
    return db_exec(tx, "UPDATE t SET v = 'w' WHERE k < 3", NULL, 0, context, error);
}

static void changes_are_counted(void **state)
{
    struct fixture *f = *state;
    i64 changes = -1;
    for (i64 key = 0; key < 5; key++) {
        assert_int_equal(insert_key(f, key, OK), OK);
    }
    assert_int_equal(db_transact(&f->db, update_body, &changes, NULL), OK);
    assert_int_equal(changes, 3);
}

static err read_into(struct db_tx *tx, void *context, struct error *error)
{
    struct db_rows rows = {0};
    return db_query(tx, context, "SELECT k, v FROM t", NULL, 0, &rows, error);
}

static void a_result_larger_than_the_arena_is_a_limit(void **state)
{
    struct fixture *f = *state;
    for (i64 key = 0; key < 500; key++) {
        assert_int_equal(insert_key(f, key, OK), OK);
    }
    AUTO_ARENA struct arena *small = arena_create((size_t)8 * KIB);
    assert_int_equal(db_read(&f->db, read_into, small, NULL), LIMIT);
    assert_int_equal(count_rows(f), 500);
}

/* More texts than the cache has places: every one still works, more than once. */
static err many_statements(struct db_tx *tx, void *context, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    (void)context;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1500; i++) {
            struct db_rows rows = {0};
            str sql = str_format(arena, "SELECT %d + ?1", i);
            TRY(db_query(tx, arena, sql.data, (struct db_value[]){DB_N(1)}, 1, &rows, error));
            assert_int_equal(db_number(&rows, 0, 0), i + 1);
        }
    }
    return OK;
}

static void statements_outnumber_the_cache(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(db_transact(&f->db, many_statements, NULL, NULL), OK);
    assert_int_equal(db_read(&f->db, many_statements, NULL, NULL), OK);
}

static instant fixed_now(void *self)
{
    return (*(instant *)self)++;
}

static err two_times(struct db_tx *tx, void *context, struct error *error)
{
    (void)error;
    instant *times = context;
    times[0] = db_now(tx);
    times[1] = db_now(tx);
    return OK;
}

static void a_transaction_has_one_time_from_the_seam(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create((size_t)8 * MIB);
    instant at = 1000;
    struct seam seam = *seam_system();
    seam.now = fixed_now;
    seam.self = &at;
    struct db db = {0};
    instant times[2] = {0};
    assert_int_equal(db_open_sqlite(arena, STR(":memory:"), &seam, &db, NULL), OK);
    assert_int_equal(db_transact(&db, two_times, times, NULL), OK);
    assert_true(times[0] >= 1000 && times[0] == times[1] && at == times[0] + 1);
    db_close(&db);
}

static err insert_inside(struct db_tx *tx, void *context, struct error *error)
{
    struct fixture *f = context;
    TRY(db_run(tx, error, "INSERT INTO t (k) VALUES (?1)", DB_N(1)));
    assert_int_equal(insert_key(f, 2, OK), OK);
    assert_int_equal(insert_key(f, 3, DENIED), DENIED);
    return OK;
}

static void bodies_may_nest_in_memory(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(db_transact(&f->db, insert_inside, f, NULL), OK);
    assert_int_equal(count_rows(f), 2);
}

/* ---- the file ---- */

static void what_was_answered_is_there_after_a_reopen(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(insert_key(f, 1, OK), OK);
    db_close(&f->db);
    struct stat status;
    assert_int_equal(stat(f->path.data, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    open_db(f);
    assert_int_equal(count_rows(f), 1);
}

static void what_a_killed_process_was_answered_is_there(void **state)
{
    struct fixture *f = *state;
    db_close(&f->db);
    pid_t child = fork();
    if (child == 0) {
        open_db(f);
        for (i64 key = 0; key < 100; key++) {
            if (insert_key(f, key, OK) != OK) {
                _exit(1);
            }
        }
        _exit(0); /* nothing is closed */
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    open_db(f);
    assert_int_equal(count_rows(f), 100);
}

enum { LARGE_BYTES = MIB, LARGE_ROWS = 120, LOG_BYTES_MAX = 80 * MIB };

static err write_large(struct db_tx *tx, void *context, struct error *error)
{
    const i64 *key = context;
    static char bytes[LARGE_BYTES];
    return db_run(tx, error, "INSERT INTO t (k, b) VALUES (?1, ?2)", DB_N(*key),
                  DB_B(((str){bytes, sizeof(bytes)})));
}

/* Copied beside the writer or, in the end, by it. */
static void the_log_begins_anew_however_much_is_written(void **state)
{
    struct fixture *f = *state;
    struct stat log;
    for (i64 key = 0; key < LARGE_ROWS; key++) {
        assert_int_equal(db_transact_later(&f->db, write_large, &key, NULL), OK);
    }
    assert_int_equal(stat(str_format(f->arena, "%s-wal", f->path.data).data, &log), 0);
    assert_in_range(log.st_size, 1, LOG_BYTES_MAX);
    assert_int_equal(count_rows(f), LARGE_ROWS);
}

static err write_in_read(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    return db_run(tx, error, "INSERT INTO t (k) VALUES (?1)", DB_N(9));
}

static void a_read_may_write_nothing(void **state)
{
    struct fixture *f = *state;
    assert_int_not_equal(db_read(&f->db, write_in_read, NULL, NULL), OK);
    assert_int_equal(count_rows(f), 0);
}

struct snapshot {
    struct fixture *fixture;
    i64 before;
    i64 after;
};

static err read_around_a_write(struct db_tx *tx, void *context, struct error *error)
{
    struct snapshot *snapshot = context;
    TRY(count_body(tx, &snapshot->before, error));
    assert_int_equal(insert_key(snapshot->fixture, 5, OK), OK);
    return count_body(tx, &snapshot->after, error);
}

static void a_read_sees_one_snapshot(void **state)
{
    struct fixture *f = *state;
    struct snapshot snapshot = {.fixture = f};
    assert_int_equal(db_read(&f->db, read_around_a_write, &snapshot, NULL), OK);
    assert_int_equal(snapshot.before, 0);
    assert_int_equal(snapshot.after, 0);
    assert_int_equal(count_rows(f), 1);
}

struct worker {
    struct fixture *fixture;
    i64 first;
    bool ok;
};

static void *write_and_read_back(void *argument)
{
    struct worker *worker = argument;
    worker->ok = true;
    for (i64 i = 0; i < 100; i++) {
        i64 before = count_rows(worker->fixture);
        /* Every third fails; in a shared commit it must not take the others along. */
        err then = i % 3 == 0 ? DENIED : OK;
        /* Every second is content with being durable later. */
        err (*insert)(struct fixture *, i64, err) = i % 2 == 0 ? insert_later : insert_key;
        worker->ok = worker->ok && insert(worker->fixture, worker->first + i, then) == then;
        i64 gained = count_rows(worker->fixture) - before;
        worker->ok = worker->ok && gained >= (then == OK ? 1 : 0);
    }
    return NULL;
}

static void groups_share_a_commit_but_not_a_fate(void **state)
{
    struct fixture *f = *state;
    struct worker workers[8];
    pthread_t threads[8];
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
        workers[i] = (struct worker){.fixture = f, .first = (i64)i * 1000};
        assert_int_equal(pthread_create(&threads[i], NULL, write_and_read_back, &workers[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(workers[i].ok);
    }
    assert_int_equal(count_rows(f), 8 * 66);
}

static void a_backup_is_a_whole_database(void **state)
{
    struct fixture *f = *state;
    for (i64 key = 0; key < 50; key++) {
        assert_int_equal(insert_key(f, key, OK), OK);
    }
    str path = str_format(f->arena, "%s/copy.db", f->directory);
    assert_int_equal(db_backup(&f->db, path, NULL), OK);
    assert_int_equal(db_backup(&f->db, path, NULL), CONFLICT);
    assert_int_equal(insert_key(f, 50, OK), OK);
    struct fixture copy = {.arena = f->arena, .path = path};
    open_db(&copy);
    assert_int_equal(count_rows(&copy), 50);
    db_close(&copy.db);
}

static void a_file_that_is_no_database_is_refused(void **state)
{
    struct fixture *f = *state;
    str path = str_format(f->arena, "%s/text", f->directory);
    FILE *file = fopen(path.data, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++) {
        assert_true(fputs("this is no database\n", file) >= 0);
    }
    (void)fclose(file);
    struct db db = {0};
    struct error error = {0};
    assert_int_equal(db_open_sqlite(f->arena, path, seam_system(), &db, &error), CORRUPT);
    assert_int_equal(error.code, ERROR_LEDGER_DOWN);
}

static err delete_all(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    return db_exec(tx, "DELETE FROM t", NULL, 0, NULL, error);
}

/* ---- a failing disk ---- */

static int in_child(struct fixture *f, int (*body)(struct fixture *))
{
    db_close(&f->db);
    pid_t child = fork();
    if (child == 0) {
        open_db(f);
        _exit(body(f));
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    open_db(f);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int write_without_sync(struct fixture *f)
{
    (void)close(STDERR_FILENO);
    fail_system_call(SYS_fsync, EIO);
    fail_system_call(SYS_fdatasync, EIO);
    return insert_key(f, 1, OK) == OK ? 1 : 2;
}

static void a_failed_sync_of_a_commit_ends_the_process_with_74(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(in_child(f, write_without_sync), 74);
}

/* ---- what is durable later ---- */

static void a_later_transaction_is_seen_at_once_and_undone_alone(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(insert_later(f, 1, OK), OK);
    assert_int_equal(insert_later(f, 2, DENIED), DENIED);
    assert_int_equal(insert_later(f, 1, OK), CONFLICT);
    assert_int_equal(count_rows(f), 1);
    assert_int_equal(db_sync(&f->db, NULL), OK);
    assert_int_equal(insert_key(f, 3, OK), OK);
    assert_int_equal(insert_later(f, 4, OK), OK);
    assert_int_equal(count_rows(f), 3);
}

static void what_is_durable_later_outlives_its_process(void **state)
{
    struct fixture *f = *state;
    db_close(&f->db);
    pid_t child = fork();
    if (child == 0) {
        open_db(f);
        for (i64 key = 0; key < 100; key++) {
            if (insert_later(f, key, OK) != OK) {
                _exit(1);
            }
        }
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    open_db(f);
    assert_int_equal(count_rows(f), 100);
}

/* From here on a sync ends the process with 74. */
static void forbid_syncs(void)
{
    (void)close(STDERR_FILENO);
    fail_system_call(SYS_fsync, EIO);
    fail_system_call(SYS_fdatasync, EIO);
}

/* The log of the database is begun, and on the disk: its header is synced in any case. */
static bool insert_some(struct fixture *f, i64 first, err (*insert)(struct fixture *, i64, err))
{
    for (i64 key = first; key < first + 10; key++) {
        if (insert(f, key, OK) != OK) {
            return false;
        }
    }
    return true;
}

static int later_ones_alone(struct fixture *f)
{
    bool done = insert_some(f, 0, insert_key);
    forbid_syncs();
    return done && insert_some(f, 100, insert_later) && count_rows(f) == 20 ? 5 : 1;
}

static int later_ones_then_sync(struct fixture *f)
{
    bool done = insert_some(f, 0, insert_key) && insert_some(f, 100, insert_later);
    forbid_syncs();
    return done && db_sync(&f->db, NULL) == OK ? 1 : 2;
}

static int later_ones_then_a_write(struct fixture *f)
{
    bool done = insert_some(f, 0, insert_key) && insert_some(f, 100, insert_later);
    forbid_syncs();
    return done && insert_key(f, 200, OK) == OK ? 1 : 2;
}

static int later_ones_then_one_that_only_looks(struct fixture *f)
{
    bool done = insert_some(f, 0, insert_key) && insert_some(f, 100, insert_later);
    i64 count = 0;
    forbid_syncs();
    return done && db_transact(&f->db, count_body, &count, NULL) == OK ? 1 : 2;
}

/* One sync is enough: neither a sync nor a durable transaction leaves anything for the next. */
static int nothing_left_to_sync(struct fixture *f)
{
    i64 count = 0;
    bool done = insert_some(f, 0, insert_later) && db_sync(&f->db, NULL) == OK &&
                insert_some(f, 100, insert_later) && insert_key(f, 200, OK) == OK;
    forbid_syncs();
    return done && db_sync(&f->db, NULL) == OK &&
                   db_transact(&f->db, count_body, &count, NULL) == OK && count == 21
               ? 5
               : 1;
}

static void later_transactions_sync_nothing(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(in_child(f, later_ones_alone), 5);
    assert_int_equal(count_rows(f), 20);
}

static void a_sync_a_write_and_a_look_sync_what_was_to_be_durable_later(void **state)
{
    struct fixture *f = *state;
    int (*const ways[])(struct fixture *) = {later_ones_then_sync, later_ones_then_a_write,
                                             later_ones_then_one_that_only_looks};
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        assert_int_equal(in_child(f, ways[i]), 74);
        assert_int_equal(db_transact(&f->db, delete_all, NULL, NULL), OK);
    }
    assert_int_equal(in_child(f, nothing_left_to_sync), 5);
}

static int write_without_room(struct fixture *f)
{
    struct error error = {0};
    struct insert insert = {.key = 1};
    fail_system_call(SYS_pwrite64, ENOSPC);
    err result = db_transact(&f->db, insert_body, &insert, &error);
    return result == IO && error.code == ERROR_DISK_LOW ? 0 : 1;
}

static void a_full_disk_is_surely_not_done(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(in_child(f, write_without_room), 0);
    assert_int_equal(count_rows(f), 0);
    assert_int_equal(insert_key(f, 1, OK), OK);
}

#define BOTH(test)                                                                                 \
    {"memory: " #test, test, set_up_memory, tear_down, NULL},                                      \
    {                                                                                              \
        "file: " #test, test, set_up_file, tear_down, NULL                                         \
    }
#define FILE_ONLY(test) {"file: " #test, test, set_up_file, tear_down, NULL}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(values_come_back_as_they_went_in),
        BOTH(a_failing_body_changes_nothing_and_gives_its_own_result),
        BOTH(a_broken_unique_constraint_is_a_conflict),
        BOTH(a_wrong_statement_is_internal),
        BOTH(changes_are_counted),
        BOTH(a_result_larger_than_the_arena_is_a_limit),
        BOTH(statements_outnumber_the_cache),
        cmocka_unit_test(a_transaction_has_one_time_from_the_seam),
        BOTH(a_later_transaction_is_seen_at_once_and_undone_alone),
        FILE_ONLY(what_is_durable_later_outlives_its_process),
        FILE_ONLY(later_transactions_sync_nothing),
        FILE_ONLY(a_sync_a_write_and_a_look_sync_what_was_to_be_durable_later),
        {"memory: bodies_may_nest", bodies_may_nest_in_memory, set_up_memory, tear_down, NULL},
        FILE_ONLY(what_was_answered_is_there_after_a_reopen),
        FILE_ONLY(what_a_killed_process_was_answered_is_there),
        FILE_ONLY(the_log_begins_anew_however_much_is_written),
        FILE_ONLY(a_read_may_write_nothing),
        FILE_ONLY(a_read_sees_one_snapshot),
        FILE_ONLY(groups_share_a_commit_but_not_a_fate),
        FILE_ONLY(a_backup_is_a_whole_database),
        FILE_ONLY(a_file_that_is_no_database_is_refused),
        FILE_ONLY(a_failed_sync_of_a_commit_ends_the_process_with_74),
        FILE_ONLY(a_full_disk_is_surely_not_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
