/* What asks the roller for something: a roll now, the end of a sink, and the internal routes. */
#include "server/api.h"
#include "server/roller.h"
#include "server/sink_json.h"
#include "sink/intake.h"

enum { WAIT_SECONDS_MAX = 60 };

void api_sink_changed(struct api_request *request, str sink_id)
{
    struct service *service = request->call->service;
    intake_notify_sink(service->intake, sink_id);
    roller_look(service->roller, sink_id);
}

/* ---- a roll now ---- */

static err read_wait(struct api_request *request, i64 *out_seconds, struct error *error)
{
    str text = http_request_parameter(request->call->request, STR("wait"));
    i64 seconds = 0;
    if (text.data != NULL &&
        (!str_to_i64(text, &seconds) || seconds < 0 || seconds > WAIT_SECONDS_MAX)) {
        return api_invalid(error, "wait", "0 to 60 seconds is wanted");
    }
    *out_seconds = seconds;
    return OK;
}

static err check_rolls(const struct ledger_sink *sink, struct error *error)
{
    if (sink->state == SINK_ACTIVE) {
        return OK;
    }
    if (sink->state != SINK_DISABLED) {
        return error_set(error, NOT_FOUND, ERROR_SINK_DELETED, "the sink %.*s is deleted",
                         STR_ARG(sink->name));
    }
    error_field_text(error, "reason", sink->state_reason);
    err result = error_set(error, CONFLICT, ERROR_SINK_DISABLED, "the sink %.*s is stopped: %.*s",
                           STR_ARG(sink->name), STR_ARG(sink->state_reason));
    error_hint(error, "docs/operations.md has the cure; then `lhbox sink resume %.*s`",
               STR_ARG(sink->name));
    return result;
}

/* The roll that was waited for, or the time at which it was asked for. */
static err reply_roll(struct api_request *request, const struct ledger_sink *sink, bool settled,
                      instant asked_at, struct error *error)
{
    struct call *call = request->call;
    json_t *json = json_pack("{s:o}", "requested_at", api_json_time(asked_at));
    if (settled) {
        struct ledger_sink now = {0};
        err found = ledger_find_sink(&call->service->db, call->arena, STR(""), sink->id, &now,
                                     error);
        if (found != OK) {
            json_decref(json);
            return found;
        }
        if (now.state == SINK_DELETED) {
            json_decref(json);
            return error_set(error, NOT_FOUND, ERROR_SINK_DELETED,
                             "the sink %.*s was deleted, and what waited was discarded",
                             STR_ARG(now.name));
        }
        json_t *last = now.last_roll.data == NULL
                           ? json_null()
                           : json_loadb(now.last_roll.data, now.last_roll.size, 0, NULL);
        json_object_set_new(json, "last_roll", last);
    }
    return api_reply(request, settled ? 200 : 202, json);
}

err api_sink_roll(struct api_request *request, struct error *error)
{
    struct roller *roller = request->call->service->roller;
    struct ledger_sink sink = {0};
    i64 seconds = 0;
    instant asked_at = 0;
    bool settled = false;
    TRY(api_find_sink(request, &sink, error));
    TRY(read_wait(request, &seconds, error));
    TRY(check_rolls(&sink, error));
    i64 upto_seq = 0;
    TRY(roller_ask(roller, sink.id, &asked_at, &upto_seq, error));
    if (seconds == 0) {
        api_audit_write(request, "sink.roll", sink.id);
    } else {
        /* The roll waits for the same ledger, and makes this durable with its commit. */
        api_audit_write_later(request, "sink.roll", sink.id);
        TRY(roller_await(roller, sink.id, upto_seq, seconds * TIME_SECOND_US, &settled, error));
    }
    return reply_roll(request, &sink, settled, asked_at, error);
}

/* ---- the end of a sink ---- */

err api_sink_delete(struct api_request *request, struct error *error)
{
    struct ledger_sink sink = {0};
    i64 discarded = 0;
    TRY(api_find_sink(request, &sink, error));
    if (sink.state == SINK_DELETED) {
        return error_set(error, NOT_FOUND, ERROR_SINK_NOT_FOUND, "there is no sink %.*s",
                         STR_ARG(request->parts[0]));
    }
    err deleted = roller_delete_sink(request->call->service->roller, sink.id, &discarded, error);
    intake_notify_sink(request->call->service->intake, sink.id);
    TRY(deleted);
    api_audit_write(request, "sink.delete", sink.id);
    return api_reply(request, 202,
                     json_pack("{s:o, s:I}", "id", api_json_text(sink.id),
                               "pending_batches_discarded", (json_int_t)discarded));
}

/* ---- the internal listener ---- */

err api_internal_sinks(struct api_request *request, struct error *error)
{
    struct call *call = request->call;
    size_t limit = 0;
    struct ledger_sink *sinks = NULL;
    size_t count = 0;
    TRY(api_limit(request, &limit, error));
    TRY(ledger_list_sinks(&call->service->db, call->arena, STR(""), STR(""), false,
                          api_cursor(request), limit, &sinks, &count, error));
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(
            list, json_pack("{s:o, s:o, s:i, s:I, s:o, s:I}", "id", api_json_text(sinks[i].id),
                            "project", api_json_text(sinks[i].project), "state",
                            (int)sinks[i].state, "n", (json_int_t)sinks[i].last_n, "last_plan",
                            api_json_text(sinks[i].last_plan_id), "batches_waiting",
                            (json_int_t)sinks[i].waiting_batches));
    }
    json_t *json = json_pack("{s:o}", "sinks", list);
    if (count == limit) {
        json_object_set_new(json, "next_cursor", api_json_text(sinks[count - 1].id));
    }
    return api_reply(request, 200, json);
}

/* A report decides nothing and deletes nothing: it only makes the roller look at the table. */
err api_internal_roll(struct api_request *request, struct error *error)
{
    static const char *const known[] = {"n", "id", "property", NULL};
    struct call *call = request->call;
    struct ledger_sink sink = {0};
    json_t *body = NULL;
    TRY(api_body(request, known, &body, error));
    json_decref(body);
    TRY(ledger_find_sink(&call->service->db, call->arena, STR(""), request->parts[0], &sink,
                         error));
    roller_look(call->service->roller, sink.id);
    return api_reply(request, 202, json_object());
}
