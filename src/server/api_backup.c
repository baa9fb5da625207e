/* POST /internal/backup {"directory": "/abs", "link": false}. */
#include "server/api.h"
#include "server/backup.h"

static json_t *report_json(const struct backup_report *report)
{
    json_t *findings = json_array();
    for (size_t i = 0; i < report->finding_count; i++) {
        const struct backup_finding *found = &report->findings[i];
        json_array_append_new(
            findings,
            json_pack("{s:o, s:s, s:o, s:o, s:s}", "sink", api_json_text(found->sink), "rule",
                      found->finding.rule, "subject", api_json_text(found->finding.subject),
                      "finding", api_json_text(found->finding.text), "cure", found->finding.cure));
    }
    return json_pack("{s:o, s:I, s:I, s:I, s:f, s:b, s:o, s:I}", "directory",
                     api_json_text(report->directory), "files", (json_int_t)report->files, "bytes",
                     (json_int_t)report->bytes, "sinks", (json_int_t)report->sinks, "seconds",
                     (double)report->us / (double)TIME_SECOND_US, "sound",
                     report->findings_in_all == 0, "findings", findings, "findings_in_all",
                     (json_int_t)report->findings_in_all);
}

err api_internal_backup(struct api_request *request, struct error *error)
{
    static const char *const known[] = {"directory", "link", NULL};
    struct call *call = request->call;
    struct backup_report report = {0};
    str directory = {0};
    json_t *body = NULL;
    TRY(api_body(request, known, &body, error));
    bool link = json_is_true(json_object_get(body, "link"));
    err read = api_text(request, body, "directory", API_REQUIRED, &directory, error);
    json_decref(body);
    TRY(read);
    TRY(backup_make(call->service, call->arena, directory, link ? FILE_TREE_LINK : FILE_TREE_COPY,
                    &report, error));
    return api_reply(request, 200, report_json(&report));
}
