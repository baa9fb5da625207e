#include "sink/ledger_sql.h"

#include "base/planted.h"

/*                 patch, resume
 *        ┌────┐
 *        ▼    │   disable            begin_delete            end_delete
 *      active ┴──────────► disabled ──────────────► deleting ───────────► deleted
 *        ▲                    │ │                      ▲
 *        └────────────────────┘ └──── (active too) ────┘
 *               resume
 *
 * active:   takes batches, makes plans, starts tries.
 * disabled: takes batches; makes no plan and starts no try; a plan that the property proves is
 *           still finished. state_reason says why.
 * deleting: takes nothing, plans nothing, attempts no claim. Its batches stay until the last
 *           fence.
 * deleted:  final; no batch waits. */

enum { SINK_SCRATCH_BYTES_MAX = 1024 * 1024, MISMATCH_APART_SECONDS = 5 };

/* ---- create ---- */

static err refuse_taken(struct db_tx *tx, const struct ledger_sink *sink, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(SINK_SCRATCH_BYTES_MAX);
    struct db_rows rows = {0};
    TRY(sql_select(
        tx, arena, &rows, error,
        "SELECT id FROM sink WHERE warehouse = ?1 AND namespace = ?2 AND table_name = ?3 "
        "AND state <> 4",
        DB_T(sink->warehouse), DB_T(sink->namespace_name), DB_T(sink->table_name)));
    if (rows.row_count > 0) {
        str other = db_text(&rows, 0, 0);
        err kind = error_set(error, CONFLICT, ERROR_SINK_EXISTS, "sink %.*s stands on the table",
                             STR_ARG(other));
        error_field_text(error, "sink_id", other);
        return kind;
    }
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT id FROM sink WHERE project = ?1 AND name = ?2 AND state <> 4",
                   DB_T(sink->project), DB_T(sink->name)));
    if (rows.row_count > 0) {
        return error_set(error, CONFLICT, ERROR_NAME_TAKEN, "a sink %.*s exists already",
                         STR_ARG(sink->name));
    }
    return OK;
}

static err insert_sink_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct ledger_sink *sink = context;
    TRY(refuse_taken(tx, sink, error));
    return db_run(
        tx, error,
        "INSERT INTO sink (id, project, warehouse, namespace, table_name, table_uuid, name, state, "
        "recovering, config_version, roll_seconds, roll_bytes, inactivity_seconds, unknown_fields, "
        "idempotency, key_columns, send_key_id, send_key_sha256, claim_id, claim_state, next_seq, "
        "last_ingest_ts, last_n, last_plan_id, lease_until, created_at, batches, rows_accepted, "
        "bytes_accepted, rows_refused, duplicates, rows_committed, rows_rejected, rows_discarded, "
        "waiting_batches, waiting_bytes, reject_batches) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, "
        "1, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, 0, 1, 0, 0, ?16, 0, ?17, 0, 0, 0, 0, 0, 0, "
        "0, 0, 0, 0, 0)",
        DB_T(sink->id), DB_T(sink->project), DB_T(sink->warehouse), DB_T(sink->namespace_name),
        DB_T(sink->table_name), DB_T(sink->table_uuid), DB_T(sink->name), DB_N(sink->roll_seconds),
        DB_N(sink->roll_bytes), sql_number_or_null(sink->inactivity_seconds),
        DB_T(sink->unknown_fields), DB_T(sink->idempotency), sql_text_or_null(sink->key_columns),
        DB_T(sink->send_key_id),
        sql_bytes(sink->send_key_sha256.bytes, sizeof(sink->send_key_sha256.bytes)),
        DB_T(sink->claim_id), DB_N(db_now(tx)));
}

err ledger_insert_sink(const struct db *db, const struct ledger_sink *sink, struct error *error)
{
    struct ledger_sink copy = *sink;
    return db_transact(db, insert_sink_body, &copy, error);
}

/* ---- change ---- */

struct patching {
    str sink_id;
    const struct ledger_sink_patch *patch;
};

static err check_patch_name(struct db_tx *tx, const struct patching *patching, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(SINK_SCRATCH_BYTES_MAX);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT o.id FROM sink o JOIN sink s ON s.project = o.project WHERE s.id = ?1 "
                   "AND o.id <> ?1 AND o.name = ?2 AND o.state <> 4",
                   DB_T(patching->sink_id), DB_T(*patching->patch->name)));
    if (rows.row_count > 0) {
        return error_set(error, CONFLICT, ERROR_NAME_TAKEN, "a sink %.*s exists already",
                         STR_ARG(*patching->patch->name));
    }
    return OK;
}

static err no_such_sink(struct error *error, str sink_id)
{
    return error_set(error, NOT_FOUND, ERROR_SINK_NOT_FOUND, "no sink %.*s", STR_ARG(sink_id));
}

/* Why a change of a living sink met no row: the sink is gone, or going, or never was. */
static err no_living_sink(struct db_tx *tx, str sink_id, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(SINK_SCRATCH_BYTES_MAX);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error, "SELECT 1 FROM sink WHERE id = ?1", DB_T(sink_id)));
    if (rows.row_count == 0) {
        return no_such_sink(error, sink_id);
    }
    return error_set(error, NOT_FOUND, ERROR_SINK_DELETED, "the sink %.*s is deleted",
                     STR_ARG(sink_id));
}

static struct db_value text_or_keep(const str *text)
{
    return text == NULL ? DB_NIL : DB_T(*text);
}

static struct db_value number_or_keep(const i64 *number)
{
    return number == NULL ? DB_NIL : DB_N(*number);
}

static err patch_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct patching *patching = context;
    const struct ledger_sink_patch *patch = patching->patch;
    if (patch->name != NULL) {
        TRY(check_patch_name(tx, patching, error));
    }
    i64 changes = 0;
    TRY(sql_change(tx, error, &changes,
                   "UPDATE sink SET config_version = config_version + 1, "
                   "name = coalesce(?2, name), roll_seconds = coalesce(?3, roll_seconds), "
                   "roll_bytes = coalesce(?4, roll_bytes), "
                   "inactivity_seconds = nullif(coalesce(?5, inactivity_seconds), 0), "
                   "unknown_fields = coalesce(?6, unknown_fields), "
                   "idempotency = coalesce(?7, idempotency), "
                   "key_columns = CASE WHEN ?8 = 1 THEN ?9 ELSE key_columns END "
                   "WHERE id = ?1 AND state <= 1",
                   DB_T(patching->sink_id), text_or_keep(patch->name),
                   number_or_keep(patch->roll_seconds), number_or_keep(patch->roll_bytes),
                   number_or_keep(patch->inactivity_seconds), text_or_keep(patch->unknown_fields),
                   text_or_keep(patch->idempotency), DB_N(patch->key_columns != NULL ? 1 : 0),
                   patch->key_columns != NULL ? sql_text_or_null(*patch->key_columns) : DB_NIL));
    return changes == 1 ? OK : no_living_sink(tx, patching->sink_id, error);
}

err ledger_patch_sink(const struct db *db, str sink_id, const struct ledger_sink_patch *patch,
                      struct error *error)
{
    struct patching patching = {.sink_id = sink_id, .patch = patch};
    return db_transact(db, patch_body, &patching, error);
}

struct sink_text {
    str sink_id;
    str reason;
    str text;
};

static err disable_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct sink_text *change = context;
    return db_run(tx, error,
                  "UPDATE sink SET state = 1, state_reason = ?2, last_error = ?3 WHERE id = ?1 AND "
                  "state = 0",
                  DB_T(change->sink_id), DB_T(change->reason), sql_text_or_null(change->text));
}

err ledger_disable_sink(const struct db *db, str sink_id, str reason, str detail,
                        struct error *error)
{
    struct sink_text change = {.sink_id = sink_id, .reason = reason, .text = detail};
    return db_transact(db, disable_body, &change, error);
}

static err resume_body(struct db_tx *tx, void *context, struct error *error)
{
    const str *sink_id = context;
    i64 changes = 0;
    TRY(sql_change(tx, error, &changes,
                   "UPDATE sink SET state = 0, state_reason = NULL, last_error = NULL, "
                   "mismatch_at = NULL WHERE id = ?1 AND state <= 1",
                   DB_T(*sink_id)));
    if (changes == 0) {
        return no_living_sink(tx, *sink_id, error);
    }
    return db_run(tx, error, "UPDATE plan SET begun = 0 WHERE sink = ?1 AND state <= 2",
                  DB_T(*sink_id));
}

err ledger_resume_sink(const struct db *db, str sink_id, struct error *error)
{
    return db_transact(db, resume_body, &sink_id, error);
}

static err last_error_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct sink_text *change = context;
    return db_run(tx, error, "UPDATE sink SET last_error = ?2 WHERE id = ?1", DB_T(change->sink_id),
                  sql_text_or_null(change->text));
}

err ledger_set_last_error(const struct db *db, str sink_id, str text, struct error *error)
{
    struct sink_text change = {.sink_id = sink_id, .text = text};
    return db_transact(db, last_error_body, &change, error);
}

struct renaming {
    str sink_id;
    str namespace_name;
    str table_name;
};

static err rename_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct renaming *renaming = context;
    return db_run(tx, error,
                  "UPDATE sink SET namespace = ?2, table_name = ?3 WHERE id = ?1 AND NOT EXISTS "
                  "(SELECT 1 FROM sink o WHERE o.warehouse = sink.warehouse AND o.namespace = ?2 "
                  "AND o.table_name = ?3 AND o.state <> 4 AND o.id <> ?1)",
                  DB_T(renaming->sink_id), DB_T(renaming->namespace_name),
                  DB_T(renaming->table_name));
}

err ledger_rename_table(const struct db *db, str sink_id, str namespace_name, str table_name,
                        struct error *error)
{
    struct renaming renaming = {
        .sink_id = sink_id, .namespace_name = namespace_name, .table_name = table_name};
    return db_transact(db, rename_body, &renaming, error);
}

struct roll_request {
    str sink_id;
    instant asked_at;
    i64 upto_seq;
};

static err ask_roll_body(struct db_tx *tx, void *context, struct error *error)
{
    struct roll_request *request = context;
    struct arena *arena AUTO_ARENA = arena_create(SINK_SCRATCH_BYTES_MAX);
    i64 changes = 0;
    request->asked_at = db_now(tx);
    TRY(sql_change(
        tx, error, &changes,
        "UPDATE sink SET roll_asked_at = ?2, roll_asked_seq = next_seq - 1 WHERE id = ?1 AND "
        "state <= 1",
        DB_T(request->sink_id), DB_N(request->asked_at)));
    if (changes == 0) {
        return no_living_sink(tx, request->sink_id, error);
    }
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error, "SELECT next_seq FROM sink WHERE id = ?1",
                   DB_T(request->sink_id)));
    request->upto_seq = db_number(&rows, 0, 0) - 1;
    return OK;
}

err ledger_ask_roll(const struct db *db, str sink_id, instant *out_asked_at, i64 *out_upto_seq,
                    struct error *error)
{
    struct roll_request request = {.sink_id = sink_id};
    TRY(db_transact_later(db, ask_roll_body, &request, error));
    *out_asked_at = request.asked_at;
    *out_upto_seq = request.upto_seq;
    return OK;
}

/* ---- the claim ---- */

static err attempt_claim_body(struct db_tx *tx, void *context, struct error *error)
{
    const str *sink_id = context;
    i64 changes = 0;
    TRY(sql_change(tx, error, &changes,
                   "UPDATE sink SET claim_state = 1 WHERE id = ?1 AND claim_state <= ?2 AND "
                   "state = 0 AND recovering = 0",
                   DB_T(*sink_id), DB_N(PLANTED(32) ? CLAIM_CLAIMED : CLAIM_ATTEMPTED)));
    return changes == 1 ? OK : ledger_lost(error, "the claim may not be attempted now");
}

err ledger_attempt_claim(const struct db *db, str sink_id, struct error *error)
{
    return db_transact(db, attempt_claim_body, &sink_id, error);
}

/* Never back: a claimed sink with plans keeps its last committed plan. */
static err finish_claim_body(struct db_tx *tx, void *context, struct error *error)
{
    const str *sink_id = context;
    return db_run(tx, error,
                  "UPDATE sink SET claim_state = 2, last_n = 0, last_plan_id = claim_id WHERE "
                  "id = ?1 AND claim_state = 1",
                  DB_T(*sink_id));
}

err ledger_finish_claim(const struct db *db, str sink_id, struct error *error)
{
    return db_transact(db, finish_claim_body, &sink_id, error);
}

/* ---- a table that disagrees (O4) ---- */

struct mismatch {
    str sink_id;
    str detail;
    bool disabled;
};

static err note_mismatch_body(struct db_tx *tx, void *context, struct error *error)
{
    struct mismatch *mismatch = context;
    instant now = db_now(tx);
    i64 changes = 0;
    mismatch->disabled = false;
    TRY(sql_change(tx, error, &changes,
                   "UPDATE sink SET state = 1, state_reason = 'ledger_mismatch', last_error = ?2, "
                   "mismatch_at = NULL WHERE id = ?1 AND state = 0 AND mismatch_at <= ?3",
                   DB_T(mismatch->sink_id), DB_T(mismatch->detail),
                   DB_N(now - MISMATCH_APART_SECONDS * TIME_SECOND_US)));
    mismatch->disabled = changes == 1;
    return db_run(tx, error,
                  "UPDATE sink SET mismatch_at = coalesce(mismatch_at, ?2), last_error = ?3 WHERE "
                  "id = ?1 AND state = 0",
                  DB_T(mismatch->sink_id), DB_N(now), DB_T(mismatch->detail));
}

err ledger_note_mismatch(const struct db *db, str sink_id, str detail, bool *out_disabled,
                         struct error *error)
{
    struct mismatch mismatch = {.sink_id = sink_id, .detail = detail};
    TRY(db_transact(db, note_mismatch_body, &mismatch, error));
    *out_disabled = mismatch.disabled;
    return OK;
}

static err clear_mismatch_body(struct db_tx *tx, void *context, struct error *error)
{
    const str *sink_id = context;
    return db_run(tx, error,
                  "UPDATE sink SET mismatch_at = NULL, last_error = NULL WHERE id = ?1 AND "
                  "mismatch_at IS NOT NULL",
                  DB_T(*sink_id));
}

err ledger_clear_mismatch(const struct db *db, str sink_id, struct error *error)
{
    return db_transact(db, clear_mismatch_body, &sink_id, error);
}

/* ---- delete (8.2) ---- */

static err begin_delete_body(struct db_tx *tx, void *context, struct error *error)
{
    const str *sink_id = context;
    struct arena *arena AUTO_ARENA = arena_create(SINK_SCRATCH_BYTES_MAX);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error, "SELECT state, recovering FROM sink WHERE id = ?1",
                   DB_T(*sink_id)));
    if (rows.row_count == 0 || db_number(&rows, 0, 0) == SINK_DELETED) {
        return no_such_sink(error, *sink_id);
    }
    if (db_number(&rows, 0, 1) != 0) {
        return error_set(error, BUSY, ERROR_UNAVAILABLE, "the sink is recovering");
    }
    return db_run(tx, error, "UPDATE sink SET state = 3, state_reason = NULL WHERE id = ?1",
                  DB_T(*sink_id));
}

err ledger_begin_delete(const struct db *db, str sink_id, struct error *error)
{
    return db_transact(db, begin_delete_body, &sink_id, error);
}

struct ending {
    str sink_id;
    i64 batches;
};

static err check_ending(struct db_tx *tx, str sink_id, bool *out_deleted, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(SINK_SCRATCH_BYTES_MAX);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT state, (SELECT count(*) FROM plan WHERE sink = ?1 AND state <= 2) "
                   "FROM sink WHERE id = ?1",
                   DB_T(sink_id)));
    if (rows.row_count == 0) {
        return no_such_sink(error, sink_id);
    }
    *out_deleted = db_number(&rows, 0, 0) == SINK_DELETED;
    if (!*out_deleted && db_number(&rows, 0, 0) != SINK_DELETING) {
        return ledger_lost(error, "the sink is not being deleted");
    }
    if (db_number(&rows, 0, 1) != 0) {
        return ledger_lost(error, "the sink has a live plan");
    }
    return OK;
}

static err discard_waiting(struct db_tx *tx, str sink_id, i64 *out_batches, struct error *error)
{
    instant now = db_now(tx);
    /* Objects first, while it can still be told which batches waited. Every batch of the sink is
     * final at the end of this transaction, and a verdict object (O2) of a deleted sink is read by
     * nobody. */
    TRY(db_run(tx, error,
               "INSERT INTO doomed_object (warehouse, object_key, at, tries) SELECT DISTINCT "
               "s.warehouse, b.object_key, ?2, 0 FROM batch b JOIN sink s ON s.id = b.sink WHERE "
               "b.sink = ?1 AND b.state <= 1 AND b.object_key <> '' "
               "ON CONFLICT (warehouse, object_key) DO NOTHING",
               DB_T(sink_id), DB_N(now)));
    TRY(db_run(tx, error,
               "UPDATE sink SET rows_discarded = rows_discarded + (SELECT coalesce(sum(rows), 0) "
               "FROM batch WHERE sink = ?1 AND state <= 1) WHERE id = ?1",
               DB_T(sink_id)));
    return sql_change(tx, error, out_batches,
                      "UPDATE batch SET state = 4, finished_at = ?2 WHERE sink = ?1 AND state <= 1",
                      DB_T(sink_id), DB_N(now));
}

static err end_delete_body(struct db_tx *tx, void *context, struct error *error)
{
    struct ending *ending = context;
    bool deleted = false;
    ending->batches = 0;
    TRY(check_ending(tx, ending->sink_id, &deleted, error));
    if (deleted) {
        return OK;
    }
    TRY(discard_waiting(tx, ending->sink_id, &ending->batches, error));
    return db_run(tx, error,
                  "UPDATE sink SET state = 4, deleted_at = ?2, waiting_batches = 0, "
                  "waiting_bytes = 0 WHERE id = ?1",
                  DB_T(ending->sink_id), DB_N(db_now(tx)));
}

err ledger_end_delete(const struct db *db, str sink_id, i64 *out_discarded_batches,
                      struct error *error)
{
    struct ending ending = {.sink_id = sink_id};
    TRY(db_transact(db, end_delete_body, &ending, error));
    *out_discarded_batches = ending.batches;
    return OK;
}
