#include "table/catalog_receipt.h"

#include "table/catalog_state.h"

struct catalog_receipt {
    struct db db; /* the catalog's, with the receipt in every transaction */
    const struct db *inner;
    struct catalog_local local; /* the catalog behind `db` */
    struct catalog catalog;
    str id;
    str request_hash;
    bool written;
};

/* One transaction with its receipt. */
struct noted {
    const struct catalog_receipt *receipt;
    db_body body; /* NULL: the receipt alone */
    void *context;
    int status;
    str answer;
    struct arena *arena;
    struct db_rows found;
};

static err noted_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct noted *noted = context;
    const struct catalog_receipt *receipt = noted->receipt;
    instant now = db_now(tx);
    if (noted->body != NULL) {
        TRY(noted->body(tx, noted->context, error));
    }
    TRY(db_run(tx, error, "DELETE FROM catalog_receipt WHERE at < ?1",
               DB_N(now - CATALOG_RECEIPT_US)));
    return db_run(tx, error,
                  "INSERT INTO catalog_receipt (warehouse, id, request, status, body, at) "
                  "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                  DB_T(receipt->local.rows.warehouse), DB_T(receipt->id),
                  DB_B(receipt->request_hash), DB_N(noted->status), DB_T(noted->answer), DB_N(now));
}

static err receipt_transact(void *self, db_body body, void *context, struct error *error)
{
    struct catalog_receipt *receipt = self;
    struct noted noted = {.receipt = receipt, .body = body, .context = context, .answer = STR("")};
    err result = db_transact(receipt->inner, noted_body, &noted, error);
    receipt->written = receipt->written || result == OK;
    return result;
}

static err receipt_read(void *self, db_body body, void *context, struct error *error)
{
    const struct catalog_receipt *receipt = self;
    return db_read(receipt->inner, body, context, error);
}

static const struct db_ops RECEIPT_OPS = {.transact = receipt_transact, .read = receipt_read};

err catalog_receipt_open(struct arena *arena, const struct catalog *catalog, str id,
                         str request_hash, struct catalog_receipt **out_receipt,
                         struct error *error)
{
    const struct catalog_local *local = catalog_local_of(catalog);
    struct catalog_receipt *receipt = arena_alloc(arena, sizeof(*receipt));
    if (receipt == NULL) {
        return error_memory(error);
    }
    *receipt = (struct catalog_receipt){
        .db = {&RECEIPT_OPS, receipt},
        .inner = local->rows.db,
        .local = *local,
        .id = id,
        .request_hash = request_hash,
    };
    receipt->local.rows.db = &receipt->db;
    receipt->catalog = (struct catalog){catalog->ops, &receipt->local};
    *out_receipt = receipt;
    return OK;
}

struct catalog catalog_receipt_catalog(struct catalog_receipt *receipt)
{
    return receipt->catalog;
}

static err find_body(struct db_tx *tx, void *context, struct error *error)
{
    struct noted *noted = context;
    const struct db_value values[] = {DB_T(noted->receipt->local.rows.warehouse),
                                      DB_T(noted->receipt->id),
                                      DB_N(db_now(tx) - CATALOG_RECEIPT_US)};
    return db_query(tx, noted->arena,
                    "SELECT request, status, body FROM catalog_receipt WHERE warehouse = ?1 "
                    "AND id = ?2 AND at >= ?3",
                    values, ARRAY_COUNT(values), &noted->found, error);
}

err catalog_receipt_find(struct catalog_receipt *receipt, struct arena *arena,
                         struct catalog_outcome *out_outcome, struct error *error)
{
    struct noted noted = {.receipt = receipt, .arena = arena};
    TRY(db_read(receipt->inner, find_body, &noted, error));
    if (noted.found.row_count == 0) {
        *out_outcome = (struct catalog_outcome){.found = false};
        return OK;
    }
    if (!str_equal(db_at(&noted.found, 0, 0)->bytes, receipt->request_hash)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "the Idempotency-Key was used for another request");
    }
    *out_outcome = (struct catalog_outcome){.found = true,
                                            .status = (int)db_number(&noted.found, 0, 1),
                                            .body = db_text(&noted.found, 0, 2)};
    return OK;
}

err catalog_receipt_write(struct catalog_receipt *receipt, int status, str body,
                          struct error *error)
{
    if (receipt->written) {
        return OK;
    }
    struct error why = {0};
    struct noted noted = {.receipt = receipt, .status = status, .answer = body};
    err result = db_transact(receipt->inner, noted_body, &noted, &why);
    return result == OK || result == CONFLICT
               ? OK
               : error_set(error, result, why.code, "%s", why.message);
}
