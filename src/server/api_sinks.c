/* Sinks: made, listed, shown, changed, stopped, deleted. */
#include "server/api.h"
#include "server/roller.h"
#include "server/sink_json.h"
#include "sink/ledger.h"
#include "sink/lifecycle.h"

static struct lifecycle lifecycle_of(const struct service *service)
{
    return (struct lifecycle){
        .db = &service->db,
        .seam = service->seam,
        .warehouses = service->warehouses,
        .installation_id = service->installation_id,
    };
}

static struct lifecycle_bounds bounds_of(const struct service *service)
{
    return service->dev ? lifecycle_bounds_dev() : lifecycle_bounds_default();
}

err api_find_sink(struct api_request *request, struct ledger_sink *out_sink, struct error *error)
{
    struct call *call = request->call;
    struct ledger_sink sink = {0};
    TRY(ledger_find_sink(&call->service->db, call->arena, call->principal.project,
                         request->parts[0], &sink, error));
    if (!str_equal(sink.project, call->principal.project)) {
        return error_set(error, NOT_FOUND, ERROR_SINK_NOT_FOUND, "there is no sink %.*s",
                         STR_ARG(request->parts[0]));
    }
    *out_sink = sink;
    return OK;
}

static err reply_sink(struct api_request *request, int status, const struct ledger_sink *sink,
                      struct error *error)
{
    json_t *json = NULL;
    TRY(sink_json(request->call, sink, &json, error));
    return api_reply(request, status, json);
}

/* ---- creating ---- */

/* key: absent and null make an appending sink; a key is for a later version. */
static err refuse_key(const json_t *body, struct error *error)
{
    const json_t *key = json_object_get(body, "key");
    if (key == NULL || json_is_null(key)) {
        return OK;
    }
    err result = error_set(error, INVALID, ERROR_NOT_IMPLEMENTED,
                           "keyed sinks are not in this version: rolls append");
    error_hint(error, "leave `key` out");
    return result;
}

static err read_seconds(const json_t *body, const char *name, i64 *out_value, struct error *error)
{
    const json_t *value = json_object_get(body, name);
    if (json_is_null(value)) {
        *out_value = 0;
        return OK;
    }
    TRY(api_integer(body, name, API_OPTIONAL, out_value, error));
    /* 0 is how "off" is kept; as a request it is out of bounds. */
    *out_value = json_is_integer(value) && *out_value == 0 ? -1 : *out_value;
    return OK;
}

static err read_create(struct api_request *request, const json_t *body,
                       struct lifecycle_request *out_request, struct error *error)
{
    struct lifecycle_bounds bounds = bounds_of(request->call->service);
    struct lifecycle_request wanted = {
        .project = request->call->principal.project,
        .roll_seconds = bounds.roll_seconds_default,
        .roll_bytes = bounds.roll_bytes_default,
        .unknown_fields = STR("reject"),
        .idempotency = STR("required"),
    };
    struct table_name name = {0};
    str table = {0};
    TRY(refuse_key(body, error));
    TRY(api_text(request, body, "name", API_REQUIRED, &wanted.name, error));
    TRY(api_text(request, body, "table", API_REQUIRED, &table, error));
    TRY(api_text(request, body, "warehouse", API_REQUIRED, &wanted.warehouse, error));
    TRY(api_text(request, body, "unknown_fields", API_OPTIONAL, &wanted.unknown_fields, error));
    TRY(api_text(request, body, "idempotency", API_OPTIONAL, &wanted.idempotency, error));
    TRY(api_integer(body, "roll_seconds", API_OPTIONAL, &wanted.roll_seconds, error));
    TRY(api_integer(body, "roll_bytes", API_OPTIONAL, &wanted.roll_bytes, error));
    TRY(read_seconds(body, "inactivity_seconds", &wanted.inactivity_seconds, error));
    TRY(lifecycle_parse_table(request->call->arena, table, &name, error));
    wanted.namespace_name = name.namespace_name;
    wanted.table_name = name.name;
    *out_request = wanted;
    return OK;
}

static err created_json(struct api_request *request, const struct lifecycle_created *created,
                        json_t **out_json, struct error *error)
{
    struct call *call = request->call;
    struct ledger_sink sink = {0};
    TRY(ledger_find_sink(&call->service->db, call->arena, STR(""), created->sink_id, &sink, error));
    json_t *json = NULL;
    TRY(sink_json(call, &sink, &json, error));
    str url = str_format(call->arena, "%.*s/v1/sinks/%.*s", STR_ARG(call->service->public_url),
                         STR_ARG(sink.id));
    json_object_set_new(json, "send_key", api_json_text(created->send_key));
    json_object_set_new(json, "send_url", api_json_text(url));
    json_object_set_new(json, "iam_writes", json_array());
    if (created->docs_hint.data != NULL) {
        json_object_set_new(json, "docs_hint", api_json_text(created->docs_hint));
    }
    json_t *warnings = json_object_get(json, "warnings");
    for (size_t i = 0; i < created->warning_count; i++) {
        json_array_append_new(warnings, api_json_text(created->warnings[i]));
    }
    *out_json = json;
    return OK;
}

err api_sink_create(struct api_request *request, struct error *error)
{
    static const char *const known[] = {"name",
                                        "table",
                                        "warehouse",
                                        "roll_seconds",
                                        "roll_bytes",
                                        "inactivity_seconds",
                                        "unknown_fields",
                                        "idempotency",
                                        "key",
                                        NULL};
    struct lifecycle lifecycle = lifecycle_of(request->call->service);
    struct lifecycle_bounds bounds = bounds_of(request->call->service);
    struct lifecycle_request wanted = {0};
    struct lifecycle_created created = {0};
    json_t *body = NULL;
    json_t *json = NULL;
    TRY(api_body(request, known, &body, error));
    err result = read_create(request, body, &wanted, error);
    json_decref(body);
    TRY(result);
    TRY(lifecycle_create(&lifecycle, request->call->arena, &bounds, &wanted, &created, error));
    api_sink_changed(request, created.sink_id);
    api_audit_write(request, "sink.create", created.sink_id);
    TRY(created_json(request, &created, &json, error));
    return api_reply(request, 201, json);
}

/* ---- reading ---- */

err api_sink_get(struct api_request *request, struct error *error)
{
    struct ledger_sink sink = {0};
    TRY(api_find_sink(request, &sink, error));
    return reply_sink(request, 200, &sink, error);
}

err api_sink_list(struct api_request *request, struct error *error)
{
    struct call *call = request->call;
    size_t limit = 0;
    struct ledger_sink *sinks = NULL;
    size_t count = 0;
    str warehouse = http_request_parameter(call->request, STR("warehouse"));
    TRY(api_limit(request, &limit, error));
    TRY(ledger_list_sinks(&call->service->db, call->arena, call->principal.project,
                          warehouse.data != NULL ? warehouse : STR(""),
                          api_flag(request, STR("include_deleted")), api_cursor(request), limit + 1,
                          &sinks, &count, error));
    json_t *list = json_array();
    for (size_t i = 0; i < count && i < limit; i++) {
        json_t *json = NULL;
        err result = sink_json(call, &sinks[i], &json, error);
        if (result != OK) {
            json_decref(list);
            return result;
        }
        json_array_append_new(list, json);
    }
    json_t *page = json_pack("{s:o}", "sinks", list);
    if (count > limit) {
        json_object_set_new(page, "next_cursor", api_json_text(sinks[limit - 1].id));
    }
    return api_reply(request, 200, page);
}

/* ---- changing ---- */

struct patch_values {
    str name;
    str unknown_fields;
    str idempotency;
    i64 roll_seconds;
    i64 roll_bytes;
    i64 inactivity_seconds;
};

static err read_patch(struct api_request *request, const json_t *body, struct patch_values *values,
                      struct ledger_sink_patch *out_patch, struct error *error)
{
    struct ledger_sink_patch patch = {0};
    TRY(refuse_key(body, error));
    TRY(api_text(request, body, "name", API_OPTIONAL, &values->name, error));
    TRY(api_text(request, body, "unknown_fields", API_OPTIONAL, &values->unknown_fields, error));
    TRY(api_text(request, body, "idempotency", API_OPTIONAL, &values->idempotency, error));
    TRY(api_integer(body, "roll_seconds", API_OPTIONAL, &values->roll_seconds, error));
    TRY(api_integer(body, "roll_bytes", API_OPTIONAL, &values->roll_bytes, error));
    TRY(read_seconds(body, "inactivity_seconds", &values->inactivity_seconds, error));
    patch.name = json_object_get(body, "name") != NULL ? &values->name : NULL;
    patch.unknown_fields = json_object_get(body, "unknown_fields") != NULL ? &values->unknown_fields
                                                                           : NULL;
    patch.idempotency = json_object_get(body, "idempotency") != NULL ? &values->idempotency : NULL;
    patch.roll_seconds = json_object_get(body, "roll_seconds") != NULL ? &values->roll_seconds
                                                                       : NULL;
    patch.roll_bytes = json_object_get(body, "roll_bytes") != NULL ? &values->roll_bytes : NULL;
    patch.inactivity_seconds = json_object_get(body, "inactivity_seconds") != NULL
                                   ? &values->inactivity_seconds
                                   : NULL;
    *out_patch = patch;
    return OK;
}

static err check_live(const struct ledger_sink *sink, struct error *error)
{
    if (sink->state == SINK_ACTIVE || sink->state == SINK_DISABLED) {
        return OK;
    }
    return error_set(error, NOT_FOUND, ERROR_SINK_DELETED, "the sink %.*s is deleted",
                     STR_ARG(sink->name));
}

err api_sink_patch(struct api_request *request, struct error *error)
{
    static const char *const known[] = {
        "name",           "roll_seconds", "roll_bytes", "inactivity_seconds",
        "unknown_fields", "idempotency",  "key",        NULL};
    struct call *call = request->call;
    struct lifecycle lifecycle = lifecycle_of(call->service);
    struct lifecycle_bounds bounds = bounds_of(call->service);
    struct ledger_sink sink = {0};
    struct patch_values values = {0};
    struct ledger_sink_patch patch = {0};
    json_t *body = NULL;
    TRY(api_body(request, known, &body, error));
    err result = api_find_sink(request, &sink, error);
    if (result == OK) {
        result = check_live(&sink, error);
    }
    if (result == OK) {
        result = read_patch(request, body, &values, &patch, error);
    }
    json_decref(body);
    TRY(result);
    TRY(lifecycle_patch(&lifecycle, call->arena, &bounds, &sink, &patch, error));
    api_sink_changed(request, sink.id);
    api_audit_write(request, "sink.update", sink.id);
    TRY(ledger_find_sink(&call->service->db, call->arena, STR(""), sink.id, &sink, error));
    return reply_sink(request, 200, &sink, error);
}

err api_sink_resume(struct api_request *request, struct error *error)
{
    static const char *const known[] = {"reclaim", NULL};
    struct call *call = request->call;
    struct ledger_sink sink = {0};
    json_t *body = NULL;
    TRY(api_body(request, known, &body, error));
    bool reclaim = json_is_true(json_object_get(body, "reclaim"));
    json_decref(body);
    TRY(api_find_sink(request, &sink, error));
    TRY(check_live(&sink, error));
    TRY(reclaim ? roller_reclaim_sink(call->service->roller, sink.id, error)
                : ledger_resume_sink(&call->service->db, sink.id, error));
    api_sink_changed(request, sink.id);
    api_audit_write(request, "sink.update", sink.id);
    TRY(ledger_find_sink(&call->service->db, call->arena, STR(""), sink.id, &sink, error));
    return reply_sink(request, 200, &sink, error);
}

err api_sink_dedupe(struct api_request *request, struct error *error)
{
    struct ledger_sink sink = {0};
    TRY(api_find_sink(request, &sink, error));
    return error_set(error, INVALID, ERROR_NOT_IMPLEMENTED, "dedupe is not in this version");
}
