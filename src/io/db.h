/* db: one SQL database behind a seam (SQLite embedded, PostgreSQL scaled out).
 *
 * All work is done inside a function that gets an open transaction. db_transact makes its effect
 * durable before it answers OK; transactions of several threads may share one commit (group
 * commit), each inside its own savepoint, so that one failing undoes itself alone. db_read sees one
 * consistent snapshot and may write nothing. Both block; any thread may call.
 *
 * db_transact_later is for what a log elsewhere can bring back: committed, seen by every read and
 * transaction after it, but perhaps lost when the machine loses its power. What is lost is an end
 * of the history, never a piece in the middle: a db_transact that answers OK made everything
 * before it durable, too, even if it wrote nothing itself.
 *
 * SQLite: one connection writes and checkpoints, owned by the writer thread (WAL, synchronous=FULL
 * but for groups of later transactions alone, foreign_keys, trusted_schema=OFF, DEFENSIVE); a small
 * pool of read-only connections serves db_read.
 *
 * SQL uses ?1, ?2 … and only what SQLite and PostgreSQL both take. Values are bound, never printed
 * into the text. */
#ifndef LHBOX_IO_DB_H
#define LHBOX_IO_DB_H

#include "base/arena.h"
#include "base/error.h"
#include "base/seam.h"

struct db;
struct db_tx;

enum db_value_kind { DB_NULL, DB_I64, DB_TEXT, DB_BLOB };
struct db_value {
    enum db_value_kind kind;
    i64 number;
    str bytes;
};
#define DB_N(value) ((struct db_value){DB_I64, (i64)(value), {NULL, 0}})
#define DB_T(value) ((struct db_value){DB_TEXT, 0, (value)})
#define DB_B(value) ((struct db_value){DB_BLOB, 0, (value)})
#define DB_NIL      ((struct db_value){DB_NULL, 0, {NULL, 0}})

struct db_rows {
    struct db_value *values; /* row-major */
    size_t row_count;
    size_t column_count;
};

/* The body of a transaction. Returning anything but OK undoes it. It may be run again from the
 * start, so it changes nothing but the database and its context's results. */
typedef err (*db_body)(struct db_tx *tx, void *context, struct error *error);

struct db_ops {
    err (*transact)(void *self, db_body body, void *context, struct error *error);
    /* NULL: every transaction is durable */
    err (*transact_later)(void *self, db_body body, void *context, struct error *error);
    err (*read)(void *self, db_body body, void *context, struct error *error);
    err (*backup)(void *self, str path, struct error *error);
    void (*close)(void *self);
};
struct db {
    const struct db_ops *ops;
    void *self;
};

/* The body's own result when it is not OK (nothing was changed); else OK (durable), IO (surely not
 * done), UNKNOWN (it may have been committed), BUSY (queue full). */
MUST_USE err db_transact(const struct db *db, db_body body, void *context, struct error *error);
/* The same, but that OK means committed, not durable: durable with the next db_sync or db_transact
 * that answers OK. */
MUST_USE err db_transact_later(const struct db *db, db_body body, void *context,
                               struct error *error);
/* Makes every transaction durable that was answered before the call. */
MUST_USE err db_sync(const struct db *db, struct error *error);
MUST_USE err db_read(const struct db *db, db_body body, void *context, struct error *error);

/* Inside a body. out_changes may be NULL. CONFLICT on a broken unique constraint. */
MUST_USE err db_exec(struct db_tx *tx, const char *sql, const struct db_value *values, size_t count,
                     i64 *out_changes, struct error *error);
/* All rows, copied into the arena. */
MUST_USE err db_query(struct db_tx *tx, struct arena *arena, const char *sql,
                      const struct db_value *values, size_t count, struct db_rows *out_rows,
                      struct error *error);
/* Calls with literal values: db_run(tx, error, "UPDATE …", DB_N(1), DB_T(name)). */
#define db_run(tx, error, sql, ...)                                                                \
    db_exec((tx), (sql), (const struct db_value[]){__VA_ARGS__},                                   \
            sizeof((const struct db_value[]){__VA_ARGS__}) / sizeof(struct db_value), NULL,        \
            (error))
/* One time for the whole transaction: the ledger's clock, the only one in any rule. */
instant db_now(struct db_tx *tx);
const struct db_value *db_at(const struct db_rows *rows, size_t row, size_t column);
i64 db_number(const struct db_rows *rows, size_t row, size_t column); /* 0 for NULL */
str db_text(const struct db_rows *rows, size_t row, size_t column);   /* data NULL for NULL */

/* Opens or makes the file. `path` ":memory:" is a private database without threads, for tests. */
MUST_USE err db_open_sqlite(struct arena *arena, str path, const struct seam *seam,
                            struct db *out_db, struct error *error);
/* A consistent copy of the database as a new file, while running. */
MUST_USE err db_backup(const struct db *db, str path, struct error *error);
void db_close(struct db *db);

#endif
