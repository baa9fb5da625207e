#include "io/db.h"

#include "base/assert.h"
#include "io/db_tx.h"

err db_transact(const struct db *db, db_body body, void *context, struct error *error)
{
    return db->ops->transact(db->self, body, context, error);
}

err db_transact_later(const struct db *db, db_body body, void *context, struct error *error)
{
    if (db->ops->transact_later == NULL) {
        return db_transact(db, body, context, error);
    }
    return db->ops->transact_later(db->self, body, context, error);
}

static err nothing_body(struct db_tx *tx, void *context, struct error *error)
{
    (void)tx;
    (void)context;
    (void)error;
    return OK;
}

err db_sync(const struct db *db, struct error *error)
{
    return db_transact(db, nothing_body, NULL, error);
}

err db_read(const struct db *db, db_body body, void *context, struct error *error)
{
    return db->ops->read(db->self, body, context, error);
}

err db_exec(struct db_tx *tx, const char *sql, const struct db_value *values, size_t count,
            i64 *out_changes, struct error *error)
{
    return tx->ops->exec(tx, sql, values, count, out_changes, error);
}

err db_query(struct db_tx *tx, struct arena *arena, const char *sql, const struct db_value *values,
             size_t count, struct db_rows *out_rows, struct error *error)
{
    return tx->ops->query(tx, arena, sql, values, count, out_rows, error);
}

instant db_now(struct db_tx *tx)
{
    return tx->now;
}

const struct db_value *db_at(const struct db_rows *rows, size_t row, size_t column)
{
    assert(row < rows->row_count);
    assert(column < rows->column_count);
    return &rows->values[row * rows->column_count + column];
}

i64 db_number(const struct db_rows *rows, size_t row, size_t column)
{
    const struct db_value *value = db_at(rows, row, column);
    return value->kind == DB_I64 ? value->number : 0;
}

str db_text(const struct db_rows *rows, size_t row, size_t column)
{
    const struct db_value *value = db_at(rows, row, column);
    bool bytes = value->kind == DB_TEXT || value->kind == DB_BLOB;
    return bytes ? value->bytes : (str){NULL, 0};
}

err db_backup(const struct db *db, str path, struct error *error)
{
    return db->ops->backup(db->self, path, error);
}

void db_close(struct db *db)
{
    if (db->ops != NULL) {
        db->ops->close(db->self);
    }
    *db = (struct db){0};
}
