/* catalog_schema: the catalog's part of the ledger's schema, for tests without a ledger. */
#ifndef LHBOX_TESTS_CATALOG_SCHEMA_H
#define LHBOX_TESTS_CATALOG_SCHEMA_H

#include "io/db.h"

/* The tables that the catalog keeps in the ledger. */
static const char *const TABLES[] = {
    "CREATE TABLE catalog_namespace (warehouse TEXT NOT NULL, name TEXT NOT NULL, "
    "properties TEXT NOT NULL, PRIMARY KEY (warehouse, name))",
    "CREATE TABLE catalog_table (warehouse TEXT NOT NULL, namespace TEXT NOT NULL, "
    "name TEXT NOT NULL, kind BIGINT NOT NULL, uuid TEXT NOT NULL, "
    "metadata_location TEXT NOT NULL, PRIMARY KEY (warehouse, namespace, name))",
    "CREATE TABLE catalog_receipt (warehouse TEXT NOT NULL, id TEXT NOT NULL, "
    "request BYTEA NOT NULL, status BIGINT NOT NULL, body TEXT NOT NULL, at BIGINT NOT NULL, "
    "PRIMARY KEY (warehouse, id))",
};

static inline err make_schema(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    for (size_t i = 0; i < ARRAY_COUNT(TABLES); i++) {
        TRY(db_exec(tx, TABLES[i], NULL, 0, NULL, error));
    }
    return OK;
}

#endif
