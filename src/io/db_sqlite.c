/* One thread writes at a time. The writer's thread takes all bodies that wait, runs each in a
 * savepoint of one transaction, commits once, and then answers them all: the cost of the sync is
 * shared, the fate is not. A later body has no sync to share: when nobody writes, its caller does,
 * without a change of threads. A group of later bodies alone is committed without a sync; the next
 * other one syncs the write-ahead log, and with it all that stands before. Readers take a
 * connection from a pool; each read is a transaction begun after the call, so it sees whatever was
 * answered before. A third thread copies the write-ahead log into the database meanwhile. */
#include "io/db.h"

#include "base/assert.h"
#include "base/queue.h"
#include "io/db_statement.h"
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

enum { READERS = 4, WAITING_MAX = 4096, GROUP_MAX = 256 };
/* Of the write-ahead log: so many more, and they are copied; so many, and it has to begin anew. */
enum { CHECKPOINT_PAGES = 4000, WAL_PAGES_MAX = 16000 };

enum durability { DURABLE, LATER };

/* A body on its way; lies on its caller's stack until it is done. */
struct job {
    db_body body;
    void *context;
    struct error *error;
    enum durability durability;
    err result;
    bool done;
    pthread_cond_t answered;
    struct job *next;
};

struct sqlite_db {
    const struct seam *seam;
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    struct job *first;
    struct job *last;
    size_t waiting;
    bool writing; /* somebody is the writer: its thread, or the caller of a later body */
    bool closing;
    pthread_t thread;
    /* the writer's own */
    struct db_connection writer;
    int wal_pages;
    int copied_pages;        /* of them, when a copy was last asked for */
    enum durability setting; /* of the connection */
    bool wrote;              /* the last commit wrote frames */
    bool unsynced;           /* frames of the log may not be on the disk */

    pthread_mutex_t copying; /* one at a time */
    struct queue *copies;    /* asked for; one wake is as good as many */
    pthread_t copier_thread;
    struct db_connection copier;

    pthread_mutex_t reader_lock;
    pthread_cond_t reader_free;
    struct db_connection readers[READERS];
    struct db_connection *free_readers[READERS];
    size_t free_count;
};

/* ---- the writer's group ---- */

/* A savepoint each: what fails is undone alone. A job that is its whole group needs none, which
 * spares SQLite a copy of every page that it changes. Returns false when the whole transaction is
 * gone, as after a full disk; then nothing of the group was done. */
static bool job_run(struct sqlite_db *db, struct job *job, bool alone)
{
    struct db_tx tx = db_connection_tx(&db->writer, seam_now(db->seam));
    if (job->error != NULL) {
        error_clear(job->error); /* it may have run before, in a group that broke */
    }
    job->result = alone ? OK : db_connection_run(&db->writer, "SAVEPOINT body", job->error);
    if (job->result == OK) {
        job->result = job->body(&tx, job->context, job->error);
    }
    if (sqlite3_get_autocommit(db->writer.handle) != 0) {
        job->result = job->result == OK ? IO : job->result;
        return false;
    }
    if (alone) {
        return job->result == OK;
    }
    if (job->result != OK && db_connection_run(&db->writer, "ROLLBACK TO body", NULL) != OK) {
        return false;
    }
    err released = db_connection_run(&db->writer, "RELEASE body", job->error);
    job->result = job->result == OK ? released : job->result;
    return released == OK;
}

static void rollback(struct sqlite_db *db)
{
    if (sqlite3_get_autocommit(db->writer.handle) == 0 &&
        db_connection_run(&db->writer, "ROLLBACK", NULL) != OK) {
        /* A connection that cannot undo cannot be trusted with anything further. */
        file_durability_lost("rollback", db->writer.path, EIO);
    }
}

/* What a failed COMMIT means. Without the lock, or without room for its frames, nothing was written
 * that could be taken for a commit; else the log may hold it. */
static err commit_outcome(int code)
{
    int kind = code & 0xff;
    return kind == SQLITE_BUSY || kind == SQLITE_LOCKED || kind == SQLITE_FULL ? IO : UNKNOWN;
}

MUST_USE static err group_commit(struct sqlite_db *db, struct error *error)
{
    err result = db_connection_run(&db->writer, "COMMIT", error);
    if (result == OK) {
        return OK;
    }
    int code = sqlite3_extended_errcode(db->writer.handle);
    rollback(db);
    return commit_outcome(code);
}

static void error_share(struct error *to, const struct error *from)
{
    if (to != NULL) {
        *to = *from;
    }
}

static void group_fail(struct job *group, err result, const struct error *error)
{
    for (struct job *job = group; job != NULL; job = job->next) {
        if (job->result == OK) {
            job->result = result;
            error_share(job->error, error);
        }
    }
}

/* The group without a job that took the transaction with it; its result stands. */
static struct job *group_without(struct job *group, const struct job *gone, struct job **out_gone)
{
    struct job **link = &group;
    while (*link != gone) {
        link = &(*link)->next;
    }
    struct job *removed = *link;
    *link = removed->next;
    removed->next = *out_gone;
    *out_gone = removed;
    return group;
}

/* ---- what is durable when ---- */

static enum durability group_durability(const struct job *group)
{
    for (const struct job *job = group; job != NULL; job = job->next) {
        if (job->durability == DURABLE) {
            return DURABLE;
        }
    }
    return LATER;
}

/* Not through a kept statement: SQLite obeys this pragma when it is prepared, not when it runs. */
MUST_USE static err durability_set(struct sqlite_db *db, enum durability durability,
                                   struct error *error)
{
    if (db->setting == durability) {
        return OK;
    }
    const char *sql = durability == DURABLE ? "PRAGMA synchronous=FULL"
                                            : "PRAGMA synchronous=NORMAL";
    if (sqlite3_exec(db->writer.handle, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return db_connection_failed(&db->writer, sql, error);
    }
    db->setting = durability;
    return OK;
}

/* The file of the log as it is: a commit that writes nothing syncs nothing. */
static void wal_sync(struct sqlite_db *db)
{
    sqlite3_file *wal = NULL;
    int found = sqlite3_file_control(db->writer.handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal);
    assert(found == SQLITE_OK && wal != NULL && wal->pMethods != NULL);
    if (wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL) != SQLITE_OK) {
        file_durability_lost("fsync", db->writer.path, errno);
    }
    db->unsynced = false;
}

static void committed(struct sqlite_db *db, enum durability durability)
{
    if (db->wrote) {
        db->unsynced = durability == LATER; /* what was synced was the whole log */
    }
    if (durability == DURABLE && db->unsynced) {
        wal_sync(db);
    }
}

/* Runs the group in one transaction. Returns the job that broke it, or NULL. */
static struct job *group_run(struct sqlite_db *db, struct job *group)
{
    struct error error = {0};
    enum durability durability = group_durability(group);
    err begun = durability_set(db, durability, &error);
    if (begun == OK) {
        begun = db_connection_run(&db->writer, "BEGIN IMMEDIATE", &error);
    }
    for (struct job *job = group; job != NULL; job = job->next) {
        job->result = OK;
    }
    if (begun != OK) {
        group_fail(group, begun, &error);
        return NULL;
    }
    for (struct job *job = group; job != NULL; job = job->next) {
        if (!job_run(db, job, group->next == NULL)) {
            rollback(db);
            return job;
        }
    }
    db->wrote = false;
    err result = group_commit(db, &error);
    if (result == OK) {
        committed(db, durability);
    } else {
        db->unsynced = true; /* it may have left frames */
        group_fail(group, result, &error);
    }
    return NULL;
}

static void group_answer(struct sqlite_db *db, struct job *group)
{
    (void)pthread_mutex_lock(&db->lock);
    while (group != NULL) {
        struct job *job = group;
        group = job->next; /* after done is seen the job is its caller's again */
        job->done = true;
        (void)pthread_cond_signal(&job->answered);
    }
    (void)pthread_mutex_unlock(&db->lock);
}

static void group_do(struct sqlite_db *db, struct job *group)
{
    struct job *gone = NULL;
    while (group != NULL) {
        struct job *breaker = group_run(db, group);
        if (breaker == NULL) {
            break;
        }
        group = group_without(group, breaker, &gone);
    }
    CRASH_POINT(db_after_commit);
    group_answer(db, group);
    group_answer(db, gone);
}

/* ---- checkpoints ---- */

static int wal_grew(void *context, sqlite3 *handle, const char *name, int pages)
{
    (void)handle;
    (void)name;
    struct sqlite_db *db = context;
    db->wal_pages = pages;
    db->wrote = true;
    return SQLITE_OK;
}

/* Its syncs are watched like all others. */
static void checkpoint(struct sqlite_db *db, struct db_connection *connection, int mode)
{
    (void)pthread_mutex_lock(&db->copying);
    int code = sqlite3_wal_checkpoint_v2(connection->handle, NULL, mode, NULL, NULL);
    (void)pthread_mutex_unlock(&db->copying);
    if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY) {
        struct error error = {0};
        err ignored = db_connection_failed(connection, "checkpoint", &error);
        (void)ignored; /* a failed sync ended the process; anything else is tried again later */
    }
}

static void *copier_thread(void *argument)
{
    struct sqlite_db *db = argument;
    while (queue_pop(db->copies, -1) != NULL) {
        checkpoint(db, &db->copier, SQLITE_CHECKPOINT_PASSIVE);
    }
    return NULL;
}

/* The pages are copied beside the writer, so that no answer waits for the syncs. But the log only
 * begins anew when all of it was copied: if it never is, the writer copies what is left. */
static void checkpoint_if_due(struct sqlite_db *db)
{
    if (db->wal_pages < db->copied_pages) {
        db->copied_pages = 0; /* it began anew */
    }
    if (db->wal_pages >= WAL_PAGES_MAX) {
        checkpoint(db, &db->writer, SQLITE_CHECKPOINT_PASSIVE);
        db->wal_pages = 0;
    } else if (db->wal_pages - db->copied_pages >= CHECKPOINT_PAGES) {
        db->copied_pages = db->wal_pages;
        bool woken = queue_push(db->copies, db);
        (void)woken;
    }
}

/* ---- the writer thread ---- */

static struct job *group_take(struct sqlite_db *db)
{
    (void)pthread_mutex_lock(&db->lock);
    while (db->writing || (db->first == NULL && !db->closing)) {
        (void)pthread_cond_wait(&db->arrived, &db->lock);
    }
    struct job *group = db->first;
    db->writing = true;
    struct job *end = group;
    for (size_t taken = 1; end != NULL; taken++) {
        db->waiting--;
        if (taken == GROUP_MAX || end->next == NULL) {
            break;
        }
        end = end->next;
    }
    db->first = end != NULL ? end->next : NULL;
    db->last = db->first != NULL ? db->last : NULL;
    if (end != NULL) {
        end->next = NULL;
    }
    (void)pthread_mutex_unlock(&db->lock);
    return group;
}

/* Of whoever has become the writer. */
static void group_write(struct sqlite_db *db, struct job *group)
{
    group_do(db, group);
    checkpoint_if_due(db);
    (void)pthread_mutex_lock(&db->lock);
    db->writing = false;
    if (db->first != NULL || db->closing) {
        (void)pthread_cond_signal(&db->arrived);
    }
    (void)pthread_mutex_unlock(&db->lock);
}

static void *writer_thread(void *argument)
{
    struct sqlite_db *db = argument;
    for (struct job *group = group_take(db); group != NULL; group = group_take(db)) {
        group_write(db, group);
    }
    checkpoint(db, &db->writer, SQLITE_CHECKPOINT_TRUNCATE);
    return NULL;
}

/* With the lock. */
static void job_enqueue(struct sqlite_db *db, struct job *job)
{
    if (db->last != NULL) {
        db->last->next = job;
    } else {
        db->first = job;
    }
    db->last = job;
    db->waiting++;
    if (!db->writing) {
        (void)pthread_cond_signal(&db->arrived);
    }
}

/* With the lock, which is let go meanwhile. */
static void job_await(struct sqlite_db *db, struct job *job)
{
    if (job->durability == LATER && !db->writing && db->first == NULL) {
        db->writing = true;
        (void)pthread_mutex_unlock(&db->lock);
        group_write(db, job);
        (void)pthread_mutex_lock(&db->lock);
    } else {
        job_enqueue(db, job);
    }
    while (!job->done) {
        (void)pthread_cond_wait(&job->answered, &db->lock);
    }
}

MUST_USE static err transact_as(struct sqlite_db *db, enum durability durability, db_body body,
                                void *context, struct error *error)
{
    struct job job = {.body = body, .context = context, .error = error, .durability = durability};
    (void)pthread_mutex_lock(&db->lock);
    if (db->waiting >= WAITING_MAX || db->closing) {
        (void)pthread_mutex_unlock(&db->lock);
        return error_set(error, BUSY, ERROR_OVERLOADED, "too much waits for the ledger");
    }
    int made = pthread_cond_init(&job.answered, NULL);
    assert(made == 0);
    job_await(db, &job);
    (void)pthread_mutex_unlock(&db->lock);
    (void)pthread_cond_destroy(&job.answered);
    return job.result;
}

MUST_USE static err sqlite_transact(void *self, db_body body, void *context, struct error *error)
{
    return transact_as(self, DURABLE, body, context, error);
}

MUST_USE static err sqlite_transact_later(void *self, db_body body, void *context,
                                          struct error *error)
{
    return transact_as(self, LATER, body, context, error);
}

/* ---- readers ---- */

static struct db_connection *reader_take(struct sqlite_db *db)
{
    (void)pthread_mutex_lock(&db->reader_lock);
    while (db->free_count == 0) {
        (void)pthread_cond_wait(&db->reader_free, &db->reader_lock);
    }
    struct db_connection *reader = db->free_readers[--db->free_count];
    (void)pthread_mutex_unlock(&db->reader_lock);
    return reader;
}

static void reader_give(struct sqlite_db *db, struct db_connection *reader)
{
    (void)pthread_mutex_lock(&db->reader_lock);
    db->free_readers[db->free_count++] = reader;
    (void)pthread_cond_signal(&db->reader_free);
    (void)pthread_mutex_unlock(&db->reader_lock);
}

MUST_USE static err read_run(struct db_connection *reader, const struct seam *seam, db_body body,
                             void *context, struct error *error)
{
    struct db_tx tx = db_connection_tx(reader, seam_now(seam));
    TRY(db_connection_run(reader, "BEGIN", error));
    err result = body(&tx, context, error);
    err ended = db_connection_run(reader, "ROLLBACK", NULL);
    (void)ended; /* it wrote nothing; a transaction that is gone already is as good */
    return result;
}

MUST_USE static err sqlite_read(void *self, db_body body, void *context, struct error *error)
{
    struct sqlite_db *db = self;
    struct db_connection *reader = reader_take(db);
    err result = read_run(reader, db->seam, body, context, error);
    reader_give(db, reader);
    return result;
}

/* ---- backup ---- */

MUST_USE static err backup_copy(struct db_connection *from, sqlite3 *to, struct error *error)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from->handle, "main");
    if (backup == NULL) {
        return error_set(error, IO, ERROR_LEDGER_DOWN, "the backup cannot begin: %s",
                         sqlite3_errmsg(to));
    }
    /* All pages in one step: one snapshot, which nobody's commit can restart. */
    int step = sqlite3_backup_step(backup, -1);
    int ended = sqlite3_backup_finish(backup);
    if (step != SQLITE_DONE || ended != SQLITE_OK) {
        bool full = ((step | ended) & 0xff) == SQLITE_FULL;
        return error_set(error, IO, full ? ERROR_DISK_LOW : ERROR_LEDGER_DOWN,
                         "the backup failed: %s", sqlite3_errmsg(to));
    }
    return OK;
}

MUST_USE static err backup_to(struct db_connection *from, str path, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * KIB);
    str name = str_copy(arena, path);
    sqlite3 *to = NULL;
    if (name.data == NULL) {
        return error_memory(error);
    }
    TRY(file_write_new(name, STR(""), error));
    int opened = sqlite3_open_v2(name.data, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE,
                                 NULL);
    err result = opened == SQLITE_OK
                     ? backup_copy(from, to, error)
                     : error_set(error, IO, ERROR_LEDGER_DOWN, "the backup file cannot be opened");
    int closed = sqlite3_close(to);
    assert(closed == SQLITE_OK);
    if (result != OK) {
        (void)unlink(name.data);
    }
    return result;
}

MUST_USE static err sqlite_backup(void *self, str path, struct error *error)
{
    struct sqlite_db *db = self;
    struct db_connection *reader = reader_take(db);
    err result = backup_to(reader, path, error);
    reader_give(db, reader);
    return result;
}

/* ---- opening and closing ---- */

static void readers_close(struct sqlite_db *db)
{
    for (size_t i = 0; i < READERS; i++) {
        db_connection_close(&db->readers[i]);
    }
    db_connection_close(&db->copier);
}

static void sqlite_close(void *self)
{
    struct sqlite_db *db = self;
    (void)pthread_mutex_lock(&db->lock);
    db->closing = true;
    (void)pthread_cond_broadcast(&db->arrived);
    (void)pthread_mutex_unlock(&db->lock);
    (void)pthread_join(db->thread, NULL);
    queue_close(db->copies);
    (void)pthread_join(db->copier_thread, NULL);
    queue_destroy(db->copies);
    assert(db->free_count == READERS);
    readers_close(db);
    db_connection_close(&db->writer);
}

static const struct db_ops sqlite_ops = {
    .transact = sqlite_transact,
    .transact_later = sqlite_transact_later,
    .read = sqlite_read,
    .backup = sqlite_backup,
    .close = sqlite_close,
};

MUST_USE static err readers_open(struct sqlite_db *db, str path, struct error *error)
{
    TRY(db_connection_open(&db->copier, path, DB_CONNECTION_READER, error));
    for (size_t i = 0; i < READERS; i++) {
        TRY(db_connection_open(&db->readers[i], path, DB_CONNECTION_READER, error));
        db->free_readers[i] = &db->readers[i];
    }
    db->free_count = READERS;
    return OK;
}

MUST_USE static err sqlite_connect(struct sqlite_db *db, str path, struct error *error)
{
    TRY(db_connection_open(&db->writer, path, DB_CONNECTION_WRITER, error));
    (void)sqlite3_wal_hook(db->writer.handle, wal_grew, db);
    err result = readers_open(db, path, error);
    if (result != OK) {
        readers_close(db);
        db_connection_close(&db->writer);
    }
    return result;
}

/* ---- in memory: one connection, one lock, bodies within bodies allowed ---- */

struct memory_db {
    const struct seam *seam;
    pthread_mutex_t lock; /* recursive: a body may call again */
    struct db_connection connection;
};

MUST_USE static err memory_run(struct memory_db *db, db_body body, void *context,
                               struct error *error)
{
    struct db_tx tx = db_connection_tx(&db->connection, seam_now(db->seam));
    TRY(db_connection_run(&db->connection, "SAVEPOINT body", error));
    err result = body(&tx, context, error);
    if (result != OK) {
        err undone = db_connection_run(&db->connection, "ROLLBACK TO body", NULL);
        assert(undone == OK);
    }
    err released = db_connection_run(&db->connection, "RELEASE body", error);
    return result != OK ? result : released;
}

MUST_USE static err memory_transact(void *self, db_body body, void *context, struct error *error)
{
    struct memory_db *db = self;
    (void)pthread_mutex_lock(&db->lock);
    err result = memory_run(db, body, context, error);
    (void)pthread_mutex_unlock(&db->lock);
    return result;
}

MUST_USE static err memory_backup(void *self, str path, struct error *error)
{
    struct memory_db *db = self;
    (void)pthread_mutex_lock(&db->lock);
    err result = backup_to(&db->connection, path, error);
    (void)pthread_mutex_unlock(&db->lock);
    return result;
}

static void memory_close(void *self)
{
    struct memory_db *db = self;
    db_connection_close(&db->connection);
    (void)pthread_mutex_destroy(&db->lock);
}

static const struct db_ops memory_ops = {
    .transact = memory_transact,
    .read = memory_transact,
    .backup = memory_backup,
    .close = memory_close,
};

MUST_USE static err memory_open(struct arena *arena, const struct seam *seam, struct db *out_db,
                                struct error *error)
{
    struct memory_db *db = arena_alloc(arena, sizeof(*db));
    if (db == NULL) {
        return error_memory(error);
    }
    db->seam = seam;
    TRY(db_connection_open(&db->connection, STR(":memory:"), DB_CONNECTION_MEMORY, error));
    pthread_mutexattr_t recursive;
    int made = pthread_mutexattr_init(&recursive) |
               pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE) |
               pthread_mutex_init(&db->lock, &recursive);
    assert(made == 0);
    (void)pthread_mutexattr_destroy(&recursive);
    *out_db = (struct db){.ops = &memory_ops, .self = db};
    return OK;
}

/* The file is made here, so that it, and what SQLite puts beside it, is the owner's alone. */
MUST_USE static err file_prepare(str path, struct error *error)
{
    err result = file_exists(path) ? OK : file_write_new(path, STR(""), error);
    return result == CONFLICT ? OK : result;
}

err db_open_sqlite(struct arena *arena, str path, const struct seam *seam, struct db *out_db,
                   struct error *error)
{
    if (str_equal(path, STR(":memory:"))) {
        return memory_open(arena, seam, out_db, error);
    }
    struct sqlite_db *db = arena_alloc(arena, sizeof(*db));
    str name = str_copy(arena, path);
    if (db == NULL || name.data == NULL) {
        return error_memory(error);
    }
    db->seam = seam;
    TRY(file_prepare(name, error));
    TRY(sqlite_connect(db, name, error));
    db->copies = queue_create(1);
    int made = pthread_mutex_init(&db->lock, NULL) | pthread_cond_init(&db->arrived, NULL) |
               pthread_mutex_init(&db->copying, NULL) | pthread_mutex_init(&db->reader_lock, NULL) |
               pthread_cond_init(&db->reader_free, NULL) |
               pthread_create(&db->copier_thread, NULL, copier_thread, db) |
               pthread_create(&db->thread, NULL, writer_thread, db);
    assert(made == 0);
    *out_db = (struct db){.ops = &sqlite_ops, .self = db};
    return OK;
}
