#include "io/db_statement.h"

#include "base/assert.h"
#include "io/file.h"

#include <string.h>

enum { BUSY_WAIT_MS = 5000, CACHE_KIB = 16 * 1024 };

/* ---- errors ---- */

static bool sync_failed(int code)
{
    return code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC ||
           code == SQLITE_IOERR_CLOSE || code == SQLITE_IOERR_DIR_CLOSE;
}

static err kind_of(int code)
{
    if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY ||
        code == SQLITE_CONSTRAINT_ROWID) {
        return CONFLICT;
    }
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return BUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return CORRUPT;
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
        return LIMIT;
    case SQLITE_CONSTRAINT:
        return INVALID;
    default:
        return IO;
    }
}

static enum error_code code_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
        return ERROR_DISK_LOW;
    case SQLITE_ERROR: /* a statement that is wrong: ours */
    case SQLITE_MISUSE:
    case SQLITE_RANGE:
    case SQLITE_MISMATCH:
    case SQLITE_CONSTRAINT:
        return ERROR_INTERNAL;
    default:
        return ERROR_LEDGER_DOWN;
    }
}

err db_connection_failed(struct db_connection *connection, const char *what, struct error *error)
{
    int code = sqlite3_extended_errcode(connection->handle);
    if (sync_failed(code)) {
        file_durability_lost("fsync", connection->path, sqlite3_system_errno(connection->handle));
    }
    err kind = kind_of(code);
    if (kind == CONFLICT) {
        return CONFLICT; /* what it means is the caller's to say */
    }
    return error_set(error, kind, code_of(code), "the database failed: %s (%d) at: %.120s",
                     sqlite3_errmsg(connection->handle), code, what);
}

/* ---- statements ---- */

/* The prepared statement of this text. Its slots may be taken by others: then one of those goes. */
MUST_USE static err statement_find(struct db_connection *connection, const char *sql,
                                   sqlite3_stmt **out_statement, struct error *error)
{
    /* Statements are literals, so where one stands tells as much as its text. */
    u64 hash = (u64)(uintptr_t)sql * 0x9e3779b97f4a7c15ULL >> 32;
    sqlite3_stmt **free_slot = NULL;
    for (u64 i = 0; i < DB_STATEMENT_WAYS; i++) {
        sqlite3_stmt **slot = &connection->statements[(hash + i) % DB_STATEMENT_SLOTS];
        if (*slot != NULL && strcmp(sqlite3_sql(*slot), sql) == 0) {
            *out_statement = *slot;
            return OK;
        }
        free_slot = *slot == NULL ? slot : free_slot;
    }
    if (free_slot == NULL) {
        free_slot =
            &connection->statements[(hash + hash / 7 % DB_STATEMENT_WAYS) % DB_STATEMENT_SLOTS];
        (void)sqlite3_finalize(*free_slot);
        *free_slot = NULL;
    }
    if (sqlite3_prepare_v3(connection->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, free_slot,
                           NULL) != SQLITE_OK) {
        return db_connection_failed(connection, sql, error);
    }
    *out_statement = *free_slot;
    return OK;
}

static int value_bind(sqlite3_stmt *statement, int index, const struct db_value *value)
{
    switch (value->kind) {
    case DB_NULL:
        return sqlite3_bind_null(statement, index);
    case DB_I64:
        return sqlite3_bind_int64(statement, index, value->number);
    case DB_TEXT:
        return sqlite3_bind_text64(statement, index, value->bytes.data, value->bytes.size,
                                   SQLITE_STATIC, SQLITE_UTF8);
    case DB_BLOB:
        return sqlite3_bind_blob64(statement, index, value->bytes.data, value->bytes.size,
                                   SQLITE_STATIC);
    }
    return SQLITE_MISUSE;
}

MUST_USE static err statement_begin(struct db_connection *connection, const char *sql,
                                    const struct db_value *values, size_t count,
                                    sqlite3_stmt **out_statement, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    TRY(statement_find(connection, sql, &statement, error));
    assert(sqlite3_bind_parameter_count(statement) == (int)count);
    for (size_t i = 0; i < count; i++) {
        if (value_bind(statement, (int)i + 1, &values[i]) != SQLITE_OK) {
            return db_connection_failed(connection, sql, error);
        }
    }
    *out_statement = statement;
    return OK;
}

/* Bound bytes are the caller's: they are let go with the statement. */
static void statement_end(sqlite3_stmt *statement)
{
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
}

MUST_USE static err tx_exec(struct db_tx *tx, const char *sql, const struct db_value *values,
                            size_t count, i64 *out_changes, struct error *error)
{
    struct db_connection *connection = tx->connection;
    sqlite3_stmt *statement = NULL;
    TRY(statement_begin(connection, sql, values, count, &statement, error));
    int step = sqlite3_step(statement);
    err result = OK;
    if (step != SQLITE_DONE && step != SQLITE_ROW) {
        result = db_connection_failed(connection, sql, error);
    } else if (out_changes != NULL) {
        *out_changes = (i64)sqlite3_changes64(connection->handle);
    }
    statement_end(statement);
    return result;
}

MUST_USE static err value_copy(struct arena *arena, sqlite3_stmt *statement, int column,
                               struct db_value *out_value, struct error *error)
{
    struct db_value value = DB_NIL;
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
        value = DB_N(sqlite3_column_int64(statement, column));
        break;
    case SQLITE_TEXT:
        value.kind = DB_TEXT;
        value.bytes.data = (const char *)sqlite3_column_text(statement, column);
        break;
    case SQLITE_BLOB:
        value.kind = DB_BLOB;
        value.bytes.data = sqlite3_column_blob(statement, column);
        break;
    case SQLITE_NULL:
        break;
    default: /* a float: no column of ours is one, an expression may be */
        value = DB_N(sqlite3_column_int64(statement, column));
        break;
    }
    if (value.kind == DB_TEXT || value.kind == DB_BLOB) {
        value.bytes.size = (size_t)sqlite3_column_bytes(statement, column);
        value.bytes = str_copy(arena, value.bytes);
        if (value.bytes.data == NULL) {
            return error_memory(error);
        }
    }
    *out_value = value;
    return OK;
}

MUST_USE static err row_copy(struct arena *arena, sqlite3_stmt *statement, struct db_rows *rows,
                             size_t *capacity, struct error *error)
{
    if (rows->row_count == *capacity) {
        size_t wanted = *capacity == 0 ? 1 : *capacity * 4;
        size_t cells = 0;
        struct db_value *values = NULL;
        if (num_mul_size(wanted, rows->column_count, &cells)) {
            values = arena_array(arena, cells, sizeof(*values));
        }
        if (values == NULL) {
            return error_memory(error);
        }
        if (rows->row_count > 0) {
            memcpy(values, rows->values,
                   rows->row_count * rows->column_count * sizeof(*rows->values));
        }
        rows->values = values;
        *capacity = wanted;
    }
    struct db_value *row = rows->values + rows->row_count * rows->column_count;
    for (size_t i = 0; i < rows->column_count; i++) {
        TRY(value_copy(arena, statement, (int)i, &row[i], error));
    }
    rows->row_count++;
    return OK;
}

MUST_USE static err tx_query(struct db_tx *tx, struct arena *arena, const char *sql,
                             const struct db_value *values, size_t count, struct db_rows *out_rows,
                             struct error *error)
{
    struct db_connection *connection = tx->connection;
    sqlite3_stmt *statement = NULL;
    TRY(statement_begin(connection, sql, values, count, &statement, error));
    struct db_rows rows = {.column_count = (size_t)sqlite3_column_count(statement)};
    size_t capacity = 0;
    err result = OK;
    int step = sqlite3_step(statement);
    while (step == SQLITE_ROW && result == OK) {
        result = row_copy(arena, statement, &rows, &capacity, error);
        step = result == OK ? sqlite3_step(statement) : SQLITE_DONE;
    }
    if (step != SQLITE_DONE) {
        result = db_connection_failed(connection, sql, error);
    }
    statement_end(statement);
    if (result == OK) {
        *out_rows = rows;
    }
    return result;
}

static const struct db_tx_ops tx_ops = {.exec = tx_exec, .query = tx_query};

struct db_tx db_connection_tx(struct db_connection *connection, instant now)
{
    return (struct db_tx){.ops = &tx_ops, .connection = connection, .now = now};
}

err db_connection_run(struct db_connection *connection, const char *sql, struct error *error)
{
    struct db_tx tx = db_connection_tx(connection, 0);
    return tx_exec(&tx, sql, NULL, 0, NULL, error);
}

/* ---- opening ---- */

MUST_USE static err pragma_is(struct db_connection *connection, const char *sql, str wanted,
                              struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * KIB);
    struct db_tx tx = db_connection_tx(connection, 0);
    struct db_rows rows = {0};
    TRY(tx_query(&tx, arena, sql, NULL, 0, &rows, error));
    if (rows.row_count != 1 || !str_equal(db_text(&rows, 0, 0), wanted)) {
        return error_set(error, IO, ERROR_LEDGER_DOWN, "the database %.*s refuses: %s",
                         STR_ARG(connection->path), sql);
    }
    return OK;
}

MUST_USE static err connection_prepare(struct db_connection *connection,
                                       enum db_connection_role role, struct error *error)
{
    static const char *const settings[] = {
        "PRAGMA synchronous=FULL",  "PRAGMA foreign_keys=ON",    "PRAGMA trusted_schema=OFF",
        "PRAGMA temp_store=MEMORY", "PRAGMA cell_size_check=ON", "PRAGMA wal_autocheckpoint=0",
    };
    int ok = sqlite3_busy_timeout(connection->handle, BUSY_WAIT_MS);
    if (role == DB_CONNECTION_WRITER) {
        /* Room (16 MiB) for the pages of a large transaction, which otherwise go to the file and
         * come back. */
        TRY(db_connection_run(connection, "PRAGMA cache_size=-16384", error));
        TRY(pragma_is(connection, "PRAGMA journal_mode=WAL", STR("wal"), error));
    }
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
        TRY(db_connection_run(connection, settings[i], error));
    }
    if (role == DB_CONNECTION_READER) {
        TRY(db_connection_run(connection, "PRAGMA query_only=ON", error));
        /* The writer alone checkpoints. */
        ok |= sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    ok |= sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    ok |= sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    ok |= sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    return ok == SQLITE_OK ? OK : db_connection_failed(connection, "its settings", error);
}

err db_connection_open(struct db_connection *connection, str path, enum db_connection_role role,
                       struct error *error)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                SQLITE_OPEN_EXRESCODE | (role == DB_CONNECTION_MEMORY ? SQLITE_OPEN_MEMORY : 0);
    *connection = (struct db_connection){.path = path};
    if (sqlite3_open_v2(path.data, &connection->handle, flags, NULL) != SQLITE_OK) {
        err result = connection->handle == NULL ? error_memory(error)
                                                : db_connection_failed(connection, "open", error);
        db_connection_close(connection);
        return result;
    }
    err result = connection_prepare(connection, role, error);
    if (result != OK) {
        db_connection_close(connection);
    }
    return result;
}

void db_connection_close(struct db_connection *connection)
{
    for (size_t i = 0; i < DB_STATEMENT_SLOTS; i++) {
        (void)sqlite3_finalize(connection->statements[i]);
        connection->statements[i] = NULL;
    }
    int code = sqlite3_close(connection->handle);
    assert(code == SQLITE_OK);
    connection->handle = NULL;
}
