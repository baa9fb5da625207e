#include "sink/ledger_recover.h"
#include "sink/ledger_sql.h"

/* Sinks that a copy of the ledger lacks, and incarnation numbers. */

enum { RESTORE_SCRATCH_BYTES_MAX = 1024 * 1024 };

/* ---- sinks by their settings objects ---- */

struct restoring {
    const struct ledger_sink *sink;
    bool made;
};

static err refuse_taken(struct db_tx *tx, const struct ledger_sink *sink, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(RESTORE_SCRATCH_BYTES_MAX);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT id FROM sink WHERE state <> 4 AND id <> ?1 AND ((warehouse = ?2 AND "
                   "namespace = ?3 AND table_name = ?4) OR (project = ?5 AND name = ?6))",
                   DB_T(sink->id), DB_T(sink->warehouse), DB_T(sink->namespace_name),
                   DB_T(sink->table_name), DB_T(sink->project), DB_T(sink->name)));
    if (rows.row_count > 0) {
        return error_set(error, CONFLICT, ERROR_SINK_EXISTS,
                         "sink %.*s has the table or the name of sink %.*s",
                         STR_ARG(db_text(&rows, 0, 0)), STR_ARG(sink->id));
    }
    return OK;
}

static err insert_sink(struct db_tx *tx, const struct ledger_sink *sink, struct error *error)
{
    return db_run(
        tx, error,
        "INSERT INTO sink (id, project, warehouse, namespace, table_name, table_uuid, name, state, "
        "recovering, config_version, roll_seconds, roll_bytes, inactivity_seconds, unknown_fields, "
        "idempotency, key_columns, send_key_id, send_key_sha256, claim_id, claim_state, next_seq, "
        "last_ingest_ts, last_n, last_plan_id, lease_until, created_at, batches, rows_accepted, "
        "bytes_accepted, rows_refused, duplicates, rows_committed, rows_rejected, rows_discarded, "
        "waiting_batches, waiting_bytes, reject_batches) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 1, "
        "?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, 0, 1, 0, 0, ?17, 0, ?18, 0, 0, 0, 0, 0, "
        "0, "
        "0, 0, 0, 0, 0)",
        DB_T(sink->id), DB_T(sink->project), DB_T(sink->warehouse), DB_T(sink->namespace_name),
        DB_T(sink->table_name), DB_T(sink->table_uuid), DB_T(sink->name),
        DB_N(sink->config_version), DB_N(sink->roll_seconds), DB_N(sink->roll_bytes),
        sql_number_or_null(sink->inactivity_seconds), DB_T(sink->unknown_fields),
        DB_T(sink->idempotency), sql_text_or_null(sink->key_columns), DB_T(sink->send_key_id),
        sql_bytes(sink->send_key_sha256.bytes, sizeof(sink->send_key_sha256.bytes)),
        DB_T(sink->claim_id), DB_N(db_now(tx)));
}

static err update_settings(struct db_tx *tx, const struct ledger_sink *sink, struct error *error)
{
    return db_run(tx, error,
                  "UPDATE sink SET config_version = ?2, name = ?3, roll_seconds = ?4, roll_bytes = "
                  "?5, inactivity_seconds = ?6, unknown_fields = ?7, idempotency = ?8, key_columns "
                  "= ?9, send_key_id = ?10, send_key_sha256 = ?11 WHERE id = ?1 AND state <= 1 AND "
                  "config_version < ?2",
                  DB_T(sink->id), DB_N(sink->config_version), DB_T(sink->name),
                  DB_N(sink->roll_seconds), DB_N(sink->roll_bytes),
                  sql_number_or_null(sink->inactivity_seconds), DB_T(sink->unknown_fields),
                  DB_T(sink->idempotency), sql_text_or_null(sink->key_columns),
                  DB_T(sink->send_key_id),
                  sql_bytes(sink->send_key_sha256.bytes, sizeof(sink->send_key_sha256.bytes)));
}

/* The last fence had landed before the object that says `deleted` was written: what is left is the
 * last transaction of the delete. */
static err delete_sink(struct db_tx *tx, str sink_id, struct error *error)
{
    instant now = db_now(tx);
    TRY(db_run(tx, error,
               "UPDATE plan SET state = 4, begun = 0, doomed = 1, void_reason = 'sink_deleted', "
               "finished_at = ?2 WHERE sink = ?1 AND state <= 2",
               DB_T(sink_id), DB_N(now)));
    TRY(db_run(tx, error,
               "INSERT INTO doomed_object (warehouse, object_key, at, tries) SELECT DISTINCT "
               "s.warehouse, b.object_key, ?2, 0 FROM batch b JOIN sink s ON s.id = b.sink WHERE "
               "b.sink = ?1 AND b.state <= 1 AND b.object_key <> '' "
               "ON CONFLICT (warehouse, object_key) DO NOTHING",
               DB_T(sink_id), DB_N(now)));
    TRY(db_run(tx, error,
               "UPDATE sink SET rows_discarded = rows_discarded + (SELECT coalesce(sum(rows), 0) "
               "FROM batch WHERE sink = ?1 AND state <= 1), state = 4, recovering = 0, deleted_at "
               "= ?2, waiting_batches = 0, waiting_bytes = 0 WHERE id = ?1 AND state <> 4",
               DB_T(sink_id), DB_N(now)));
    return db_run(tx, error,
                  "UPDATE batch SET state = 4, finished_at = ?2 WHERE sink = ?1 AND state <= 1",
                  DB_T(sink_id), DB_N(now));
}

static err restore_body(struct db_tx *tx, void *context, struct error *error)
{
    struct restoring *restoring = context;
    const struct ledger_sink *sink = restoring->sink;
    struct arena *arena AUTO_ARENA = arena_create(RESTORE_SCRATCH_BYTES_MAX);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error, "SELECT state FROM sink WHERE id = ?1",
                   DB_T(sink->id)));
    restoring->made = rows.row_count == 0;
    if (sink->state == SINK_DELETED) {
        return restoring->made ? OK : delete_sink(tx, sink->id, error);
    }
    if (!restoring->made) {
        return update_settings(tx, sink, error);
    }
    TRY(refuse_taken(tx, sink, error));
    return insert_sink(tx, sink, error);
}

err ledger_restore_sink(const struct db *db, const struct ledger_sink *sink, bool *out_made,
                        struct error *error)
{
    struct restoring restoring = {.sink = sink};
    TRY(db_transact(db, restore_body, &restoring, error));
    *out_made = restoring.made;
    return OK;
}

/* The fences that were recorded are of the recover: the delete's last one takes the property away,
 * which may be there, whatever the copy knows of the claim. */
static err deleting_body(struct db_tx *tx, void *context, struct error *error)
{
    const str *sink_id = context;
    TRY(ledger_recover_goes_on(tx, *sink_id, error));
    TRY(ledger_recount_waiting(tx, *sink_id, error));
    return db_run(tx, error,
                  "UPDATE sink SET state = 3, state_reason = NULL, recovering = 0, fences = NULL, "
                  "mismatch_at = NULL, last_error = NULL, claim_state = CASE WHEN claim_state = 0 "
                  "THEN 1 ELSE claim_state END WHERE id = ?1",
                  DB_T(*sink_id));
}

err ledger_recover_deleting(const struct db *db, str sink_id, struct error *error)
{
    return db_transact(db, deleting_body, &sink_id, error);
}

/* ---- incarnation ---- */

static err read_body(struct db_tx *tx, void *context, struct error *error)
{
    struct ledger_incarnation *incarnation = context;
    struct arena *arena AUTO_ARENA = arena_create(RESTORE_SCRATCH_BYTES_MAX);
    struct db_rows rows = {0};
    TRY(db_query(tx, arena, "SELECT incarnation, copied FROM installation", NULL, 0, &rows, error));
    if (rows.row_count != 1) {
        return error_set(error, CORRUPT, ERROR_LEDGER_DOWN, "the ledger has no installation row");
    }
    *incarnation = (struct ledger_incarnation){.number = db_number(&rows, 0, 0),
                                               .copied = db_number(&rows, 0, 1) != 0};
    return OK;
}

err ledger_read_incarnation(const struct db *db, struct ledger_incarnation *out_incarnation,
                            struct error *error)
{
    struct ledger_incarnation incarnation = {0};
    TRY(db_read(db, read_body, &incarnation, error));
    *out_incarnation = incarnation;
    return OK;
}

struct bucket {
    str warehouse;
    i64 number;
};

static err bucket_body(struct db_tx *tx, void *context, struct error *error)
{
    struct bucket *bucket = context;
    struct arena *arena AUTO_ARENA = arena_create(RESTORE_SCRATCH_BYTES_MAX);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT incarnation FROM incarnation_bucket WHERE warehouse = ?1",
                   DB_T(bucket->warehouse)));
    bucket->number = rows.row_count > 0 ? db_number(&rows, 0, 0) : -1;
    return OK;
}

err ledger_bucket_incarnation(const struct db *db, str warehouse, i64 *out_number,
                              struct error *error)
{
    struct bucket bucket = {.warehouse = warehouse};
    TRY(db_read(db, bucket_body, &bucket, error));
    *out_number = bucket.number;
    return OK;
}

struct raising {
    i64 from;
    i64 to;
    const str *warehouses;
    size_t count;
};

static err raise_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct raising *raising = context;
    i64 changes = 0;
    TRY(sql_change(tx, error, &changes,
                   "UPDATE installation SET incarnation = ?2 WHERE incarnation = ?1",
                   DB_N(raising->from), DB_N(raising->to)));
    if (changes != 1) {
        return ledger_lost(error, "another node has raised the incarnation");
    }
    for (size_t i = 0; i < raising->count; i++) {
        TRY(db_run(tx, error,
                   "INSERT INTO incarnation_bucket (warehouse, incarnation) VALUES (?1, ?2) ON "
                   "CONFLICT (warehouse) DO UPDATE SET incarnation = excluded.incarnation",
                   DB_T(raising->warehouses[i]), DB_N(raising->to)));
    }
    return OK;
}

err ledger_raise_incarnation(const struct db *db, i64 from, i64 to, const str *warehouses,
                             size_t count, struct error *error)
{
    struct raising raising = {.from = from, .to = to, .warehouses = warehouses, .count = count};
    return db_transact(db, raise_body, &raising, error);
}

static err mark_body(struct db_tx *tx, void *context, struct error *error)
{
    const i64 *copied = context;
    return db_run(tx, error, "UPDATE installation SET copied = ?1", DB_N(*copied));
}

err ledger_mark_copy(const struct db *db, struct error *error)
{
    i64 copied = 1;
    return db_transact(db, mark_body, &copied, error);
}

err ledger_unmark_copy(const struct db *db, struct error *error)
{
    i64 copied = 0;
    return db_transact(db, mark_body, &copied, error);
}
