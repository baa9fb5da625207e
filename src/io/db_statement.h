/* db_statement: one SQLite connection with its prepared statements; private to io.
 *
 * Statements are kept by their text, so that a hot one is parsed once per connection. A connection
 * belongs to one thread at a time. Errors of the file system become IO, BUSY or CORRUPT; a failed
 * sync is file_durability_lost. */
#ifndef LHBOX_IO_DB_STATEMENT_H
#define LHBOX_IO_DB_STATEMENT_H

#include "io/db_tx.h"

#include <sqlite3.h>

enum { DB_STATEMENT_SLOTS = 512, DB_STATEMENT_WAYS = 4 };

struct db_connection {
    sqlite3 *handle;
    str path;
    sqlite3_stmt *statements[DB_STATEMENT_SLOTS];
};

enum db_connection_role { DB_CONNECTION_WRITER, DB_CONNECTION_READER, DB_CONNECTION_MEMORY };

MUST_USE err db_connection_open(struct db_connection *connection, str path,
                                enum db_connection_role role, struct error *error);
void db_connection_close(struct db_connection *connection);
/* Tells what the connection's last failure was, and ends the process after a failed sync. */
MUST_USE err db_connection_failed(struct db_connection *connection, const char *what,
                                  struct error *error);
/* A statement without values and rows, by its text: BEGIN, COMMIT, … */
MUST_USE err db_connection_run(struct db_connection *connection, const char *sql,
                               struct error *error);
/* The transaction's view of a connection. */
struct db_tx db_connection_tx(struct db_connection *connection, instant now);

#endif
