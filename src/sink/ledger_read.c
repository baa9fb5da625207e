#include "sink/ledger_sql.h"

/* Reading: batches, sinks, counts. Each function is one consistent snapshot. */

/* ---- batches ---- */

struct batch_query {
    struct arena *arena;
    str sink_id;
    str batch_id;
    int state;
    bool held_only;
    i64 after_seq;
    size_t limit;
    struct ledger_batch *batches;
    size_t count;
};

static err find_batch_body(struct db_tx *tx, void *context, struct error *error)
{
    struct batch_query *query = context;
    struct db_rows rows = {0};
    TRY(sql_select(tx, query->arena, &rows, error,
                   "SELECT " LEDGER_BATCH_COLUMNS LEDGER_BATCH_FROM
                   "WHERE b.sink = ?1 AND b.batch_id = ?2",
                   DB_T(query->sink_id), DB_T(query->batch_id)));
    if (rows.row_count == 0) {
        return error_set(error, NOT_FOUND, ERROR_BATCH_NOT_FOUND, "the sink knows no batch %.*s",
                         STR_ARG(query->batch_id));
    }
    return ledger_rows_batches(query->arena, &rows, &query->batches, &query->count, error);
}

err ledger_find_batch(const struct db *db, struct arena *arena, str sink_id, str batch_id,
                      struct ledger_batch *out_batch, struct error *error)
{
    struct batch_query query = {.arena = arena, .sink_id = sink_id, .batch_id = batch_id};
    TRY(db_read(db, find_batch_body, &query, error));
    *out_batch = query.batches[0];
    return OK;
}

static err list_batches_body(struct db_tx *tx, void *context, struct error *error)
{
    struct batch_query *query = context;
    struct db_rows rows = {0};
    /* The constant states let the held ones be found by the index of what waits. */
    const char *sql = query->held_only
                          ? "SELECT " LEDGER_BATCH_COLUMNS LEDGER_BATCH_FROM
                            "WHERE b.sink = ?1 AND b.seq > ?2 AND (?3 < 0 OR b.state = ?3) AND "
                            "b.state <= 1 AND b.held = 1 ORDER BY b.seq LIMIT ?4"
                          : "SELECT " LEDGER_BATCH_COLUMNS LEDGER_BATCH_FROM
                            "WHERE b.sink = ?1 AND b.seq > ?2 AND (?3 < 0 OR b.state = ?3) "
                            "ORDER BY b.seq LIMIT ?4";
    TRY(sql_select(tx, query->arena, &rows, error, sql, DB_T(query->sink_id),
                   DB_N(query->after_seq), DB_N(query->state), DB_N(query->limit)));
    return ledger_rows_batches(query->arena, &rows, &query->batches, &query->count, error);
}

err ledger_list_batches(const struct db *db, struct arena *arena, str sink_id, int state,
                        bool held_only, i64 after_seq, size_t limit,
                        struct ledger_batch **out_batches, size_t *out_count, struct error *error)
{
    struct batch_query query = {
        .arena = arena,
        .sink_id = sink_id,
        .state = state,
        .held_only = held_only,
        .after_seq = after_seq,
        .limit = limit,
    };
    TRY(db_read(db, list_batches_body, &query, error));
    *out_batches = query.batches;
    *out_count = query.count;
    return OK;
}

struct ids_query {
    struct arena *arena;
    const struct ledger_id *after;
    size_t limit;
    struct ledger_id *ids;
    size_t count;
};

static err list_ids_body(struct db_tx *tx, void *context, struct error *error)
{
    struct ids_query *query = context;
    struct db_rows rows = {0};
    TRY(sql_select(tx, query->arena, &rows, error,
                   "SELECT sink, batch_id FROM batch WHERE (sink, batch_id) > (?1, ?2) "
                   "ORDER BY sink, batch_id LIMIT ?3",
                   sql_text(query->after->sink_id), sql_text(query->after->batch_id),
                   DB_N(query->limit)));
    query->ids = arena_array(query->arena, rows.row_count, sizeof(*query->ids));
    if (query->ids == NULL) {
        return error_memory(error);
    }
    for (size_t row = 0; row < rows.row_count; row++) {
        query->ids[row] = (struct ledger_id){db_text(&rows, row, 0), db_text(&rows, row, 1)};
    }
    query->count = rows.row_count;
    return OK;
}

err ledger_list_ids(const struct db *db, struct arena *arena, const struct ledger_id *after,
                    size_t limit, struct ledger_id **out_ids, size_t *out_count,
                    struct error *error)
{
    struct ids_query query = {.arena = arena, .after = after, .limit = limit};
    TRY(db_read(db, list_ids_body, &query, error));
    *out_ids = query.ids;
    *out_count = query.count;
    return OK;
}

struct waiting_query {
    str sink_id;
    i64 upto_seq;
    i64 count;
};

static err count_waiting_body(struct db_tx *tx, void *context, struct error *error)
{
    struct waiting_query *query = context;
    struct arena *arena AUTO_ARENA = arena_create(KIB * 64);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT count(*) FROM batch WHERE sink = ?1 AND state <= 1 AND seq <= ?2",
                   DB_T(query->sink_id), DB_N(query->upto_seq)));
    query->count = db_number(&rows, 0, 0);
    return OK;
}

err ledger_count_waiting(const struct db *db, str sink_id, i64 upto_seq, i64 *out_count,
                         struct error *error)
{
    struct waiting_query query = {.sink_id = sink_id, .upto_seq = upto_seq};
    TRY(db_read(db, count_waiting_body, &query, error));
    *out_count = query.count;
    return OK;
}

/* ---- sinks ---- */

#define SINK_COLUMNS                                                                               \
    "id, project, warehouse, namespace, table_name, table_uuid, name, state, state_reason, "       \
    "recovering, config_version, roll_seconds, roll_bytes, inactivity_seconds, unknown_fields, "   \
    "idempotency, key_columns, send_key_id, send_key_sha256, claim_id, claim_state, last_n, "      \
    "last_plan_id, roll_asked_at, roll_asked_seq, mismatch_at, rolled_at, fences, created_at, "    \
    "deleted_at, "                                                                                 \
    "batches, rows_accepted, bytes_accepted, rows_refused, duplicates, first_at, last_at, "        \
    "rows_committed, rows_rejected, rows_discarded, reject_batches, reject_last_at, last_roll, "   \
    "last_error"

static void take_identity(const struct db_rows *rows, size_t row, struct ledger_sink *sink)
{
    sink->id = db_text(rows, row, 0);
    sink->project = db_text(rows, row, 1);
    sink->warehouse = db_text(rows, row, 2);
    sink->namespace_name = db_text(rows, row, 3);
    sink->table_name = db_text(rows, row, 4);
    sink->table_uuid = db_text(rows, row, 5);
    sink->name = db_text(rows, row, 6);
    sink->state = (enum sink_state)db_number(rows, row, 7);
    sink->state_reason = db_text(rows, row, 8);
    sink->recovering = db_number(rows, row, 9) != 0;
    sink->config_version = db_number(rows, row, 10);
    sink->roll_seconds = db_number(rows, row, 11);
    sink->roll_bytes = db_number(rows, row, 12);
    sink->inactivity_seconds = db_number(rows, row, 13);
    sink->unknown_fields = db_text(rows, row, 14);
    sink->idempotency = db_text(rows, row, 15);
    sink->key_columns = db_text(rows, row, 16);
    sink->send_key_id = db_text(rows, row, 17);
    str hash = db_at(rows, row, 18)->bytes;
    if (hash.size == sizeof(sink->send_key_sha256.bytes)) {
        memcpy(sink->send_key_sha256.bytes, hash.data, hash.size);
    }
}

static void take_progress(const struct db_rows *rows, size_t row, struct ledger_sink *sink)
{
    sink->claim_id = db_text(rows, row, 19);
    sink->claim_state = (enum claim_state)db_number(rows, row, 20);
    sink->last_n = db_number(rows, row, 21);
    sink->last_plan_id = db_text(rows, row, 22);
    sink->roll_asked_at = db_number(rows, row, 23);
    sink->roll_asked_seq = db_number(rows, row, 24);
    sink->mismatch_at = db_number(rows, row, 25);
    sink->rolled_at = db_number(rows, row, 26);
    sink->fences = db_text(rows, row, 27);
    sink->created_at = db_number(rows, row, 28);
    sink->deleted_at = db_number(rows, row, 29);
    sink->batches = db_number(rows, row, 30);
    sink->rows_accepted = db_number(rows, row, 31);
    sink->bytes_accepted = db_number(rows, row, 32);
    sink->rows_refused = db_number(rows, row, 33);
    sink->duplicates = db_number(rows, row, 34);
    sink->first_at = db_number(rows, row, 35);
    sink->last_at = db_number(rows, row, 36);
    sink->rows_committed = db_number(rows, row, 37);
    sink->rows_rejected = db_number(rows, row, 38);
    sink->rows_discarded = db_number(rows, row, 39);
    sink->reject_batches = db_number(rows, row, 40);
    sink->reject_last_at = db_number(rows, row, 41);
    sink->last_roll = db_text(rows, row, 42);
    sink->last_error = db_text(rows, row, 43);
}

/* Counted from the batch rows themselves, so that the books compare two independent counts (I13).
 */
static err take_waiting(struct db_tx *tx, struct arena *arena, struct ledger_sink *sink,
                        struct error *error)
{
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT count(*), coalesce(sum(rows), 0), coalesce(sum(bytes), 0), "
                   "min(received_at), max(received_at), "
                   "coalesce(sum(CASE WHEN state = 0 AND held = 0 THEN 1 ELSE 0 END), 0), "
                   "coalesce(sum(CASE WHEN state = 0 AND held = 0 THEN bytes ELSE 0 END), 0), "
                   "min(CASE WHEN state = 0 AND held = 0 THEN received_at END), "
                   "max(CASE WHEN state = 0 AND held = 0 THEN received_at END), "
                   "(SELECT count(*) FROM plan WHERE sink = ?1 AND state <= 2), "
                   "min(CASE WHEN state = 0 AND held = 0 THEN seq END) "
                   "FROM batch WHERE sink = ?1 AND state <= 1",
                   DB_T(sink->id)));
    sink->waiting_batches = db_number(&rows, 0, 0);
    sink->waiting_rows = db_number(&rows, 0, 1);
    sink->waiting_bytes = db_number(&rows, 0, 2);
    sink->oldest_waiting_at = db_number(&rows, 0, 3);
    sink->newest_waiting_at = db_number(&rows, 0, 4);
    sink->due_batches = db_number(&rows, 0, 5);
    sink->due_bytes = db_number(&rows, 0, 6);
    sink->oldest_due_at = db_number(&rows, 0, 7);
    sink->newest_due_at = db_number(&rows, 0, 8);
    sink->has_live_plan = db_number(&rows, 0, 9) > 0;
    sink->oldest_due_seq = db_number(&rows, 0, 10);
    sink->now = db_now(tx);
    return OK;
}

struct sink_query {
    struct arena *arena;
    str project;
    str warehouse;
    str wanted;
    bool include_deleted;
    str after;
    size_t limit;
    struct ledger_sink *sinks;
    size_t count;
};

static err take_sinks(struct db_tx *tx, struct sink_query *query, const struct db_rows *rows,
                      struct error *error)
{
    struct ledger_sink *sinks = arena_array(query->arena, rows->row_count, sizeof(*sinks));
    if (sinks == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < rows->row_count; i++) {
        take_identity(rows, i, &sinks[i]);
        take_progress(rows, i, &sinks[i]);
        TRY(take_waiting(tx, query->arena, &sinks[i], error));
    }
    query->sinks = sinks;
    query->count = rows->row_count;
    return OK;
}

static err find_sink_body(struct db_tx *tx, void *context, struct error *error)
{
    struct sink_query *query = context;
    struct db_rows rows = {0};
    TRY(sql_select(tx, query->arena, &rows, error,
                   "SELECT " SINK_COLUMNS " FROM sink WHERE id = ?2 AND (?1 = '' OR project = ?1)",
                   sql_text(query->project), sql_text(query->wanted)));
    if (rows.row_count == 0 && query->project.size > 0) {
        TRY(sql_select(tx, query->arena, &rows, error,
                       "SELECT " SINK_COLUMNS " FROM sink WHERE project = ?1 AND name = ?2 AND "
                       "state <> 4",
                       sql_text(query->project), sql_text(query->wanted)));
    }
    if (rows.row_count == 0) {
        return error_set(error, NOT_FOUND, ERROR_SINK_NOT_FOUND, "no sink %.*s",
                         STR_ARG(query->wanted));
    }
    return take_sinks(tx, query, &rows, error);
}

err ledger_find_sink(const struct db *db, struct arena *arena, str project, str id_or_name,
                     struct ledger_sink *out_sink, struct error *error)
{
    struct sink_query query = {.arena = arena, .project = project, .wanted = id_or_name};
    TRY(db_read(db, find_sink_body, &query, error));
    *out_sink = query.sinks[0];
    return OK;
}

static err find_by_key_body(struct db_tx *tx, void *context, struct error *error)
{
    struct sink_query *query = context;
    struct db_rows rows = {0};
    TRY(sql_select(tx, query->arena, &rows, error,
                   "SELECT " SINK_COLUMNS " FROM sink WHERE send_key_id = ?1",
                   sql_text(query->wanted)));
    if (rows.row_count == 0) {
        return error_set(error, NOT_FOUND, ERROR_SINK_NOT_FOUND, "no sink has this send key");
    }
    return take_sinks(tx, query, &rows, error);
}

err ledger_find_sink_by_key(const struct db *db, struct arena *arena, str send_key_id,
                            struct ledger_sink *out_sink, struct error *error)
{
    struct sink_query query = {.arena = arena, .wanted = send_key_id};
    TRY(db_read(db, find_by_key_body, &query, error));
    *out_sink = query.sinks[0];
    return OK;
}

static err list_sinks_body(struct db_tx *tx, void *context, struct error *error)
{
    struct sink_query *query = context;
    struct db_rows rows = {0};
    TRY(sql_select(tx, query->arena, &rows, error,
                   "SELECT " SINK_COLUMNS " FROM sink WHERE (?1 = '' OR project = ?1) AND "
                   "(?2 = '' OR warehouse = ?2) AND (?3 = 1 OR state <> 4) AND (?4 = '' OR "
                   "(created_at, id) > (SELECT a.created_at, a.id FROM sink a WHERE a.id = ?4)) "
                   "ORDER BY created_at, id LIMIT ?5",
                   sql_text(query->project), sql_text(query->warehouse),
                   DB_N(query->include_deleted ? 1 : 0), sql_text(query->after),
                   DB_N(query->limit)));
    return take_sinks(tx, query, &rows, error);
}

err ledger_list_sinks(const struct db *db, struct arena *arena, str project, str warehouse,
                      bool include_deleted, str after, size_t limit, struct ledger_sink **out_sinks,
                      size_t *out_count, struct error *error)
{
    struct sink_query query = {
        .arena = arena,
        .project = project,
        .warehouse = warehouse,
        .include_deleted = include_deleted,
        .after = after,
        .limit = limit,
    };
    TRY(db_read(db, list_sinks_body, &query, error));
    *out_sinks = query.sinks;
    *out_count = query.count;
    return OK;
}

/* ---- rejects ---- */

struct reject_query {
    struct arena *arena;
    str sink_id;
    struct ledger_count *reasons;
    size_t reason_count;
    str *recent;
    size_t recent_count;
};

static err list_rejects_body(struct db_tx *tx, void *context, struct error *error)
{
    struct reject_query *query = context;
    struct db_rows rows = {0};
    TRY(sql_select(tx, query->arena, &rows, error,
                   "SELECT reason, rows FROM reject_count WHERE sink = ?1 ORDER BY reason",
                   DB_T(query->sink_id)));
    query->reasons = arena_array(query->arena, rows.row_count, sizeof(*query->reasons));
    query->reason_count = rows.row_count;
    if (query->reasons == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < rows.row_count; i++) {
        query->reasons[i] = (struct ledger_count){.name = db_text(&rows, i, 0),
                                                  .count = db_number(&rows, i, 1)};
    }
    struct db_rows recent = {0};
    TRY(sql_select(tx, query->arena, &recent, error,
                   "SELECT record FROM reject_recent WHERE sink = ?1 ORDER BY position",
                   DB_T(query->sink_id)));
    query->recent = arena_array(query->arena, recent.row_count, sizeof(*query->recent));
    query->recent_count = recent.row_count;
    if (query->recent == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < recent.row_count; i++) {
        query->recent[i] = db_text(&recent, i, 0);
    }
    return OK;
}

err ledger_list_rejects(const struct db *db, struct arena *arena, str sink_id,
                        struct ledger_count **out_reasons, size_t *out_reason_count,
                        str **out_recent, size_t *out_recent_count, struct error *error)
{
    struct reject_query query = {.arena = arena, .sink_id = sink_id};
    TRY(db_read(db, list_rejects_body, &query, error));
    *out_reasons = query.reasons;
    *out_reason_count = query.reason_count;
    *out_recent = query.recent;
    *out_recent_count = query.recent_count;
    return OK;
}
