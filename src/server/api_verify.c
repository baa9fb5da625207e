/* POST /v1/sinks/{id}/verify: what sink/verify finds, as JSON. */
#include "server/api.h"
#include "sink/verify.h"

static json_t *findings_json(const struct verify_report *report)
{
    json_t *list = json_array();
    for (size_t i = 0; i < report->finding_count; i++) {
        const struct verify_finding *finding = &report->findings[i];
        json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:s}", "rule", finding->rule,
                                              "subject", api_json_text(finding->subject), "finding",
                                              api_json_text(finding->text), "cure", finding->cure));
    }
    return list;
}

static json_t *notes_json(const struct verify_report *report)
{
    json_t *list = json_array();
    for (size_t i = 0; i < report->note_count; i++) {
        json_array_append_new(list, json_pack("{s:s, s:o}", "kind", report->notes[i].kind,
                                              "subject", api_json_text(report->notes[i].subject)));
    }
    return list;
}

static json_t *checked_json(const struct verify_report *report)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "batches",
                     (json_int_t)report->batches, "plans", (json_int_t)report->plans, "objects",
                     (json_int_t)report->objects, "rejects_files",
                     (json_int_t)report->rejects_files, "snapshots", (json_int_t)report->snapshots,
                     "manifests", (json_int_t)report->manifests, "data_files",
                     (json_int_t)report->data_files, "rows", (json_int_t)report->rows);
}

err api_sink_verify(struct api_request *request, struct error *error)
{
    struct service *service = request->call->service;
    struct ledger_sink sink = {0};
    struct verify_report report = {0};
    TRY(api_find_sink(request, &sink, error));
    struct verify_env env = {
        .db = &service->db,
        .seam = service->seam,
        .warehouse = warehouse_get(service->warehouses, sink.warehouse),
        .installation_id = service->installation_id,
        .what = VERIFY_LIVE,
        .depth = api_flag(request, STR("rows")) ? VERIFY_ROWS : VERIFY_SIZES,
    };
    if (env.warehouse == NULL) {
        return error_set(error, NOT_FOUND, ERROR_WAREHOUSE_NOT_FOUND, "no warehouse %.*s",
                         STR_ARG(sink.warehouse));
    }
    TRY(verify_sink(&env, request->call->arena, sink.id, &report, error));
    return api_reply(request, 200,
                     json_pack("{s:o, s:o, s:b, s:o, s:I, s:o, s:I, s:o}", "sink",
                               api_json_text(sink.id), "name", api_json_text(sink.name), "sound",
                               report.findings_in_all == 0, "findings", findings_json(&report),
                               "findings_in_all", (json_int_t)report.findings_in_all, "notes",
                               notes_json(&report), "notes_in_all", (json_int_t)report.notes_in_all,
                               "checked", checked_json(&report)));
}
