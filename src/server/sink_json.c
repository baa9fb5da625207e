#include "server/sink_json.h"

#include "server/api.h"
#include "sink/lifecycle.h"

enum { REMEMBERED_DAYS = 7 };

static const char *state_text(enum sink_state state)
{
    switch (state) {
    case SINK_ACTIVE:
        return "active";
    case SINK_DISABLED:
        return "disabled";
    case SINK_DELETING:
        return "deleting";
    case SINK_DELETED:
        return "deleted";
    }
    return "deleted";
}

/* JSON text that the ledger keeps; null when there is none. */
static json_t *kept_json(str text)
{
    json_t *json = text.data == NULL ? NULL
                                     : json_loadb(text.data, text.size, JSON_DECODE_ANY, NULL);
    return json != NULL ? json : json_null();
}

static json_t *received_json(const struct ledger_sink *sink)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "batches", (json_int_t)sink->batches, "rows",
        (json_int_t)sink->rows_accepted, "bytes", (json_int_t)sink->bytes_accepted, "rejected_rows",
        (json_int_t)sink->rows_refused, "duplicates", (json_int_t)sink->duplicates, "first_at",
        api_json_time(sink->first_at), "last_at", api_json_time(sink->last_at));
}

static json_t *lag_json(const struct ledger_sink *sink, instant now)
{
    i64 behind = sink->oldest_waiting_at == 0
                     ? 0
                     : num_max_i64(0, (now - sink->oldest_waiting_at) / TIME_SECOND_US);
    return json_pack("{s:I, s:I, s:o, s:I}", "batches_waiting", (json_int_t)sink->waiting_batches,
                     "bytes_waiting", (json_int_t)sink->waiting_bytes, "oldest_waiting_at",
                     api_json_time(sink->oldest_waiting_at), "seconds_behind", (json_int_t)behind);
}

static json_t *books_json(const struct ledger_sink *sink)
{
    i64 difference = sink->rows_accepted - sink->rows_committed - sink->rows_rejected -
                     sink->waiting_rows - sink->rows_discarded;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "accepted", (json_int_t)sink->rows_accepted,
                     "committed", (json_int_t)sink->rows_committed, "rejected",
                     (json_int_t)sink->rows_rejected, "pending", (json_int_t)sink->waiting_rows,
                     "discarded", (json_int_t)sink->rows_discarded, "difference",
                     (json_int_t)difference);
}

static str rejects_prefix(struct call *call, const struct ledger_sink *sink)
{
    const struct warehouse *warehouse = warehouse_get(call->service->warehouses, sink->warehouse);
    if (warehouse == NULL || warehouse->files_path.data == NULL) {
        return str_format(call->arena, "_sink/%.*s/rejects/", STR_ARG(sink->id));
    }
    return str_format(call->arena, "%.*s/_sink/%.*s/rejects/", STR_ARG(warehouse->files_path),
                      STR_ARG(sink->id));
}

static err rejects_json(struct call *call, const struct ledger_sink *sink, json_t **out_json,
                        struct error *error)
{
    struct ledger_count *reasons = NULL;
    str *recent = NULL;
    size_t reason_count = 0;
    size_t recent_count = 0;
    TRY(ledger_list_rejects(&call->service->db, call->arena, sink->id, &reasons, &reason_count,
                            &recent, &recent_count, error));
    json_t *by_reason = json_object();
    for (size_t i = 0; i < reason_count; i++) {
        str name = str_copy(call->arena, reasons[i].name);
        json_object_set_new(by_reason, name.data, json_integer(reasons[i].count));
    }
    json_t *list = json_array();
    for (size_t i = 0; i < recent_count; i++) {
        json_array_append_new(list, kept_json(recent[i]));
    }
    *out_json = json_pack(
        "{s:I, s:I, s:o, s:o, s:o, s:o}", "rows_total",
        (json_int_t)(sink->rows_rejected + sink->rows_refused), "batches_with_rejects",
        (json_int_t)sink->reject_batches, "last_at", api_json_time(sink->reject_last_at), "prefix",
        api_json_text(rejects_prefix(call, sink)), "by_reason", by_reason, "recent", list);
    return OK;
}

static json_t *roll_json(const struct ledger_sink *sink)
{
    return json_pack("{s:I, s:I, s:o}", "seconds", (json_int_t)sink->roll_seconds, "bytes",
                     (json_int_t)sink->roll_bytes, "inactivity_seconds",
                     sink->inactivity_seconds == 0 ? json_null()
                                                   : json_integer(sink->inactivity_seconds));
}

/* What comes only sometimes. */
static void add_states(json_t *json, const struct ledger_sink *sink)
{
    if (sink->state_reason.data != NULL) {
        json_object_set_new(json, "state_reason", api_json_text(sink->state_reason));
    }
    if (sink->recovering) {
        json_object_set_new(json, "recovering", json_true());
    }
    if (sink->last_error.data != NULL) {
        json_object_set_new(json, "last_error", api_json_text(sink->last_error));
    }
    if (sink->deleted_at != 0) {
        json_object_set_new(json, "deleted_at", api_json_time(sink->deleted_at));
    }
}

err sink_json(struct call *call, const struct ledger_sink *sink, json_t **out_json,
              struct error *error)
{
    json_t *rejects = NULL;
    TRY(rejects_json(call, sink, &rejects, error));
    str full = lifecycle_full_name(call->arena, sink->warehouse, sink->namespace_name,
                                   sink->table_name);
    str table = str_slice(full, sink->warehouse.size + 1, full.size);
    json_t *json = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "id", api_json_text(sink->id),
        "name", api_json_text(sink->name), "warehouse", api_json_text(sink->warehouse), "table",
        api_json_text(table), "table_uuid", api_json_text(sink->table_uuid), "state",
        state_text(sink->state), "key", kept_json(sink->key_columns), "roll", roll_json(sink),
        "unknown_fields", api_json_text(sink->unknown_fields), "idempotency",
        api_json_text(sink->idempotency), "created_at", api_json_time(sink->created_at));
    add_states(json, sink);
    json_object_set_new(json, "received", received_json(sink));
    json_object_set_new(json, "lag", lag_json(sink, sink->now));
    json_object_set_new(json, "last_roll", kept_json(sink->last_roll));
    json_object_set_new(json, "rejects", rejects);
    json_object_set_new(json, "books", books_json(sink));
    json_object_set_new(json, "dedupe", json_null());
    json_object_set_new(json, "warnings", json_array());
    *out_json = json;
    return OK;
}

/* ---- batches ---- */

const char *sink_json_batch_state(enum batch_state state)
{
    switch (state) {
    case BATCH_PENDING:
        return "pending";
    case BATCH_PLANNED:
        return "planned";
    case BATCH_COMMITTED:
        return "committed";
    case BATCH_REJECTED:
        return "rejected";
    case BATCH_DISCARDED:
        return "discarded";
    }
    return "pending";
}

json_t *sink_json_batch(const struct ledger_batch *batch)
{
    json_t *json = json_pack(
        "{s:o, s:s, s:I, s:I, s:I, s:o, s:I}", "batch_id", api_json_text(batch->batch_id), "state",
        sink_json_batch_state(batch->state), "rows", (json_int_t)batch->rows, "rejected_rows",
        (json_int_t)(batch->refused + batch->rows_rejected), "bytes", (json_int_t)batch->bytes,
        "received_at", api_json_time(batch->received_at), "seq", (json_int_t)batch->seq);
    if (batch->finished_at != 0) {
        json_object_set_new(json, "committed_at", api_json_time(batch->finished_at));
        json_object_set_new(json, "remembered_until",
                            api_json_time(batch->finished_at + REMEMBERED_DAYS * TIME_DAY_US));
    }
    if (batch->snapshot_id != 0) {
        json_object_set_new(json, "snapshot_id", json_integer(batch->snapshot_id));
    }
    if (batch->held) {
        json_object_set_new(json, "held", api_json_text(batch->held_reason));
    }
    return json;
}
