/* db_tx: an open transaction, as the databases behind db.h give it; private to io.
 *
 * A body runs on one thread with one connection. */
#ifndef LHBOX_IO_DB_TX_H
#define LHBOX_IO_DB_TX_H

#include "io/db.h"

struct db_tx_ops {
    err (*exec)(struct db_tx *tx, const char *sql, const struct db_value *values, size_t count,
                i64 *out_changes, struct error *error);
    err (*query)(struct db_tx *tx, struct arena *arena, const char *sql,
                 const struct db_value *values, size_t count, struct db_rows *out_rows,
                 struct error *error);
};

struct db_tx {
    const struct db_tx_ops *ops;
    void *connection;
    instant now;
};

#endif
