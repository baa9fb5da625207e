/* Projects, keys, usage, audit, alerts, health: the routes about the installation itself. */
#include "account/alert.h"
#include "account/audit.h"
#include "account/usage.h"
#include "base/metric.h"
#include "server/api.h"

/* ---- health ---- */

err api_health(struct api_request *request, struct error *error)
{
    (void)error;
    return api_reply(request, 200, json_pack("{s:s}", "status", "ok"));
}

err api_ready(struct api_request *request, struct error *error)
{
    if (atomic_load(&request->call->service->draining)) {
        return error_set(error, BUSY, ERROR_DRAINING, "the server is stopping");
    }
    return api_reply(request, 200, json_pack("{s:s}", "status", "ready"));
}

err api_metrics(struct api_request *request, struct error *error)
{
    buf out = buf_create(request->call->arena, 16 * (size_t)KIB, MIB);
    metric_print(&out);
    if (!buf_ok(&out)) {
        return error_memory(error);
    }
    request->answer = (struct api_answer){
        .status = 200, .text = buf_str(&out), .content_type = STR("text/plain; version=0.0.4")};
    return OK;
}

/* ---- projects and keys ---- */

err api_project_create(struct api_request *request, struct error *error)
{
    static const char *const known[] = {"name", NULL};
    struct call *call = request->call;
    json_t *body = NULL;
    str name = {0};
    TRY(api_body(request, known, &body, error));
    err read = api_text(request, body, "name", API_REQUIRED, &name, error);
    json_decref(body);
    TRY(read);
    str id = {0};
    str key = {0};
    TRY(access_create_project(&call->service->db, call->arena, call->service->seam, name, &id, &key,
                              error));
    call->principal.project = id;
    api_audit_write(request, "project.create", id);
    return api_reply(request, 201,
                     json_pack("{s:o, s:o, s:o}", "id", api_json_text(id), "name",
                               api_json_text(name), "api_key", api_json_text(key)));
}

err api_project_list(struct api_request *request, struct error *error)
{
    struct access_project *projects = NULL;
    size_t count = 0;
    TRY(access_list_projects(&request->call->service->db, request->call->arena, &projects, &count,
                             error));
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list,
                              json_pack("{s:o, s:o, s:o}", "id", api_json_text(projects[i].id),
                                        "name", api_json_text(projects[i].name), "created_at",
                                        api_json_time(projects[i].created_at)));
    }
    return api_reply(request, 200, json_pack("{s:o}", "projects", list));
}

static json_t *key_json(const struct access_key *key)
{
    return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o}", "id", api_json_text(key->id), "name",
                     api_json_text(key->name), "level", access_level_text(key->level), "created_at",
                     api_json_time(key->created_at), "expires_at", api_json_time(key->expires_at),
                     "last_used_at", api_json_time(key->last_used_at));
}

static err read_key_request(struct api_request *request, const json_t *body, str *out_name,
                            enum access_level *out_level, instant *out_expires_at,
                            struct error *error)
{
    str level = {0};
    str expires_at = {0};
    TRY(api_text(request, body, "name", API_REQUIRED, out_name, error));
    TRY(api_text(request, body, "level", API_REQUIRED, &level, error));
    TRY(api_text(request, body, "expires_at", API_OPTIONAL, &expires_at, error));
    TRY(access_level_parse(level, out_level, error));
    if (expires_at.data != NULL && !time_parse(expires_at, out_expires_at)) {
        return api_invalid(error, "expires_at", "an RFC 3339 time is wanted");
    }
    return OK;
}

err api_key_create(struct api_request *request, struct error *error)
{
    static const char *const known[] = {"name", "level", "expires_at", NULL};
    struct call *call = request->call;
    json_t *body = NULL;
    str name = {0};
    enum access_level level = ACCESS_NONE;
    instant expires_at = 0;
    TRY(api_body(request, known, &body, error));
    err read = read_key_request(request, body, &name, &level, &expires_at, error);
    json_decref(body);
    TRY(read);
    str key = {0};
    struct access_key row = {0};
    TRY(access_create_key(&call->service->db, call->arena, call->service->seam,
                          call->principal.project, name, level, expires_at, &key, &row, error));
    api_audit_write(request, "key.create", row.id);
    json_t *json = key_json(&row);
    json_object_set_new(json, "api_key", api_json_text(key));
    return api_reply(request, 201, json);
}

err api_key_list(struct api_request *request, struct error *error)
{
    struct call *call = request->call;
    size_t limit = 0;
    TRY(api_limit(request, &limit, error));
    struct access_key *keys = NULL;
    size_t count = 0;
    TRY(access_list_keys(&call->service->db, call->arena, call->principal.project,
                         api_cursor(request), limit + 1, &keys, &count, error));
    json_t *list = json_array();
    for (size_t i = 0; i < count && i < limit; i++) {
        json_array_append_new(list, key_json(&keys[i]));
    }
    json_t *json = json_pack("{s:o}", "keys", list);
    if (count > limit) {
        json_object_set_new(json, "next_cursor", api_json_text(keys[limit - 1].id));
    }
    return api_reply(request, 200, json);
}

err api_key_delete(struct api_request *request, struct error *error)
{
    struct call *call = request->call;
    TRY(access_delete_key(&call->service->db, call->principal.project, request->parts[0], error));
    api_audit_write(request, "key.delete", request->parts[0]);
    return api_reply(request, 204, NULL);
}

err api_identities(struct api_request *request, struct error *error)
{
    i64 count = 0;
    TRY(access_count_keys(&request->call->service->db, request->call->principal.project, &count,
                          error));
    return api_reply(request, 200, json_pack("{s:I}", "count", (json_int_t)count));
}

/* ---- usage, audit, alerts ---- */

static json_t *usage_sinks(const struct usage *usage)
{
    json_t *list = json_array();
    for (size_t i = 0; i < usage->sink_count; i++) {
        const struct usage_sink *one = &usage->by_sink[i];
        json_array_append_new(
            list,
            json_pack("{s:o, s:o, s:I, s:I, s:I, s:I}", "sink_id", api_json_text(one->sink_id),
                      "name", api_json_text(one->name), "bytes", (json_int_t)one->bytes, "batches",
                      (json_int_t)one->batches, "rows_accepted", (json_int_t)one->rows_accepted,
                      "rows_rejected", (json_int_t)one->rows_rejected));
    }
    return list;
}

err api_usage(struct api_request *request, struct error *error)
{
    struct usage usage = {0};
    TRY(usage_month(&request->call->service->db, request->call->arena,
                    request->call->principal.project, &usage, error));
    json_t *ingest = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:o, s:b}", "month", usage.month, "month_to_date",
        (json_int_t)usage.bytes, "batches", (json_int_t)usage.batches, "rows_accepted",
        (json_int_t)usage.rows_accepted, "rows_rejected", (json_int_t)usage.rows_rejected,
        "by_sink", usage_sinks(&usage), "enforced", 0);
    return api_reply(request, 200, json_pack("{s:o}", "ingest_bytes", ingest));
}

err api_audit(struct api_request *request, struct error *error)
{
    struct call *call = request->call;
    size_t limit = 0;
    i64 before = 0;
    str cursor = api_cursor(request);
    TRY(api_limit(request, &limit, error));
    if (cursor.size > 0 && (!str_to_i64(cursor, &before) || before < 1)) {
        return api_invalid(error, "cursor", "a next_cursor of an earlier answer is wanted");
    }
    struct audit_entry *entries = NULL;
    size_t count = 0;
    TRY(audit_list(&call->service->db, call->arena, call->principal.project, before, limit,
                   &entries, &count, error));
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "at",
                                              api_json_time(entries[i].at), "actor",
                                              api_json_text(entries[i].actor), "action",
                                              api_json_text(entries[i].action), "object",
                                              api_json_text(entries[i].object), "outcome",
                                              api_json_text(entries[i].outcome), "request_id",
                                              api_json_text(entries[i].request_id)));
    }
    json_t *json = json_pack("{s:o}", "audit", list);
    if (count == limit) {
        str next = str_format(call->arena, "%lld", (long long)entries[count - 1].seq);
        json_object_set_new(json, "next_cursor", api_json_text(next));
    }
    return api_reply(request, 200, json);
}

err api_alerts(struct api_request *request, struct error *error)
{
    struct call *call = request->call;
    size_t limit = 0;
    TRY(api_limit(request, &limit, error));
    struct alert *alerts = NULL;
    size_t count = 0;
    TRY(alert_list(&call->service->db, call->arena, call->principal.project, limit, &alerts, &count,
                   error));
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "id",
                                              api_json_text(alerts[i].id), "kind",
                                              api_json_text(alerts[i].kind), "sink_id",
                                              api_json_text(alerts[i].sink_id), "opened_at",
                                              api_json_time(alerts[i].opened_at), "closed_at",
                                              api_json_time(alerts[i].closed_at), "detail",
                                              api_json_text(alerts[i].detail)));
    }
    return api_reply(request, 200, json_pack("{s:o}", "alerts", list));
}
