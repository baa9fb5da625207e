/* ledger_sql: what the ledger's own files share: statements with literal values, and rows to
 * structs.
 *
 * Private to sink/ledger*.c and to the tests of none. All of it runs inside a transaction's body.
 */
#ifndef LHBOX_SINK_LEDGER_SQL_H
#define LHBOX_SINK_LEDGER_SQL_H

#include "sink/ledger.h"

#define SQL_VALUES(...) ((const struct db_value[]){__VA_ARGS__})
#define SQL_COUNT(...)  (sizeof((const struct db_value[]){__VA_ARGS__}) / sizeof(struct db_value))
/* A statement whose number of changed rows matters. */
#define sql_change(tx, error, out_changes, sql, ...)                                               \
    db_exec((tx), (sql), SQL_VALUES(__VA_ARGS__), SQL_COUNT(__VA_ARGS__), (out_changes), (error))
#define sql_select(tx, arena, out_rows, error, sql, ...)                                           \
    db_query((tx), (arena), (sql), SQL_VALUES(__VA_ARGS__), SQL_COUNT(__VA_ARGS__), (out_rows),    \
             (error))

/* NULL for a str without data, and for 0. */
static inline struct db_value sql_text_or_null(str text)
{
    return text.data == NULL ? DB_NIL : DB_T(text);
}
static inline struct db_value sql_number_or_null(i64 number)
{
    return number == 0 ? DB_NIL : DB_N(number);
}
/* TEXT NOT NULL takes an empty str, never a NULL. */
static inline struct db_value sql_text(str text)
{
    return text.data == NULL ? DB_T(STR("")) : DB_T(text);
}
static inline struct db_value sql_bytes(const void *bytes, size_t size)
{
    return DB_B(((str){bytes, size}));
}

/* What ledger_row_batch reads, in its order, from `batch b LEFT JOIN plan p ON p.id = b.plan`. */
#define LEDGER_BATCH_COLUMNS                                                                       \
    "b.batch_id, b.uid, b.object_key, b.byte_offset, b.bytes, b.rows, b.refused, b.sha256, "       \
    "b.body_hash, b.seq, b.received_at, b.ingest_ts, b.answer, b.state, b.held, b.held_reason, "   \
    "b.misses, b.missed_at, b.plan, b.rows_committed, b.rows_rejected, b.finished_at, "            \
    "p.snapshot_id, b.retried"
#define LEDGER_BATCH_FROM " FROM batch b LEFT JOIN plan p ON p.id = b.plan "
/* CORRUPT when a column has not the form it was written with. */
MUST_USE err ledger_row_batch(const struct db_rows *rows, size_t row,
                              struct ledger_batch *out_batch, struct error *error);
MUST_USE err ledger_rows_batches(struct arena *arena, const struct db_rows *rows,
                                 struct ledger_batch **out_batches, size_t *out_count,
                                 struct error *error);

#define LEDGER_PLAN_COLUMNS                                                                        \
    "id, sink, n, prev, config_version, state, begun, attempts, counts, fences, "                  \
    "void_reason, snapshot_id, rows_committed, rows_rejected, trigger, created_at, finished_at, "  \
    "tried"
struct ledger_plan ledger_row_plan(const struct db_rows *rows, size_t row);

/* The plan of this id. NOT_FOUND. */
MUST_USE err ledger_plan_in(struct db_tx *tx, struct arena *arena, str plan_id,
                            struct ledger_plan *out_plan, struct error *error);

/* Dooms every object of the batches of `plan_id` of which all batches are final (I16): none waits,
 * and none was rejected by a void plan whose verdict is not durable yet. */
MUST_USE err ledger_doom_plan_objects(struct db_tx *tx, str plan_id, struct error *error);

/* CONFLICT unless the sink is recovering: for every step of a recover. */
MUST_USE err ledger_recover_goes_on(struct db_tx *tx, str sink_id, struct error *error);
/* Counts afresh what waits. */
MUST_USE err ledger_recount_waiting(struct db_tx *tx, str sink_id, struct error *error);

/* The compare-and-swap found another state. */
err ledger_lost(struct error *error, const char *what);

#endif
