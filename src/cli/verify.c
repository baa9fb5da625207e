/* verify: every sink, or one, checked against the rules of docs/exactly-once.md. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/remote.h"

#include "base/time.h"

#include <stdio.h>

enum { VERIFY_SECONDS_MAX = 600 };

static const struct cli_flag verify_flags[] = {
    {"rows", CLI_SWITCH, NULL, NULL, "read the data files too, not only their sizes"},
};

/* What has been seen of all sinks. */
struct verification {
    struct remote remote;
    json_t *reports;
    size_t findings;
};

static bool is_wanted(struct cli *cli, const json_t *sink)
{
    static const char *const names[] = {"id", "name", "table"};
    if (cli->argument_count == 0) {
        return true;
    }
    str full = str_format(cli->arena, "%.*s.%.*s",
                          STR_ARG(output_text(cli, sink, "warehouse", OUTPUT_TEXT)),
                          STR_ARG(output_text(cli, sink, "table", OUTPUT_TEXT)));
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (str_equal(output_text(cli, sink, names[i], OUTPUT_TEXT), cli->arguments[0])) {
            return true;
        }
    }
    return str_equal(full, cli->arguments[0]);
}

/* ---- one sink ---- */

static void say_sink(struct cli *cli, const json_t *sink, const json_t *report)
{
    const json_t *findings = json_object_get(report, "findings");
    size_t count = json_array_size(findings);
    output_print(str_format(
        cli->arena, "%.*s (%.*s): %s\n", STR_ARG(output_text(cli, sink, "name", OUTPUT_TEXT)),
        STR_ARG(output_text(cli, sink, "table", OUTPUT_TEXT)), count == 0 ? "sound" : "DAMAGED"));
    output_print(str_format(
        cli->arena,
        "  looked at %.*s batches, %.*s plans, %.*s objects, %.*s rejects files, %.*s manifests, "
        "%.*s data files with %.*s rows\n",
        STR_ARG(output_text(cli, report, "checked.batches", OUTPUT_TEXT)),
        STR_ARG(output_text(cli, report, "checked.plans", OUTPUT_TEXT)),
        STR_ARG(output_text(cli, report, "checked.objects", OUTPUT_TEXT)),
        STR_ARG(output_text(cli, report, "checked.rejects_files", OUTPUT_TEXT)),
        STR_ARG(output_text(cli, report, "checked.manifests", OUTPUT_TEXT)),
        STR_ARG(output_text(cli, report, "checked.data_files", OUTPUT_TEXT)),
        STR_ARG(output_text(cli, report, "checked.rows", OUTPUT_TEXT))));
    for (size_t i = 0; i < count; i++) {
        const json_t *finding = json_array_get(findings, i);
        output_print(str_format(cli->arena, "  %.*s  %.*s: %.*s\n      %.*s\n",
                                STR_ARG(output_text(cli, finding, "rule", OUTPUT_TEXT)),
                                STR_ARG(output_text(cli, finding, "subject", OUTPUT_TEXT)),
                                STR_ARG(output_text(cli, finding, "finding", OUTPUT_TEXT)),
                                STR_ARG(output_text(cli, finding, "cure", OUTPUT_TEXT))));
    }
    const json_t *notes = json_object_get(report, "notes");
    for (size_t i = 0; i < json_array_size(notes); i++) {
        const json_t *note = json_array_get(notes, i);
        output_print(str_format(cli->arena, "  (%.*s: %.*s)\n",
                                STR_ARG(output_text(cli, note, "kind", OUTPUT_TEXT)),
                                STR_ARG(output_text(cli, note, "subject", OUTPUT_TEXT))));
    }
}

static int verify_one(struct cli *cli, struct verification *verification, const json_t *sink)
{
    json_t *report = NULL;
    str id = output_text(cli, sink, "id", OUTPUT_TEXT);
    str path = str_format(cli->arena, "/v1/sinks/%.*s/verify%s", STR_ARG(id),
                          cli_given(cli, "rows") ? "?rows=true" : "");
    int result = remote_call_within(&verification->remote, "POST", path, json_object(),
                                    VERIFY_SECONDS_MAX * TIME_SECOND_US, &report);
    if (result != CLI_OK) {
        return result;
    }
    verification->findings += json_array_size(json_object_get(report, "findings"));
    if (!cli_given(cli, "json")) {
        say_sink(cli, sink, report);
    }
    json_array_append_new(verification->reports, report);
    return CLI_OK;
}

/* ---- all of them ---- */

static int verify_page(struct cli *cli, struct verification *verification, const json_t *page)
{
    const json_t *sinks = json_object_get(page, "sinks");
    int result = CLI_OK;
    for (size_t i = 0; result == CLI_OK && i < json_array_size(sinks); i++) {
        const json_t *sink = json_array_get(sinks, i);
        if (is_wanted(cli, sink)) {
            result = verify_one(cli, verification, sink);
        }
    }
    return result;
}

static int verify_all(struct cli *cli, struct verification *verification)
{
    str cursor = {NULL, 0};
    int result = CLI_OK;
    do {
        json_t *page = NULL;
        str path = remote_query(&verification->remote, STR("/v1/sinks?limit=1000"), "cursor",
                                cursor);
        result = remote_call(&verification->remote, "GET", path, NULL, &page);
        if (result == CLI_OK) {
            result = verify_page(cli, verification, page);
            cursor = output_text(cli, page, "next_cursor", OUTPUT_TEXT);
        }
        json_decref(page);
    } while (result == CLI_OK && cursor.data != NULL);
    return result;
}

static int verify(struct cli *cli)
{
    struct verification verification = {.reports = json_array()};
    int result = remote_open(cli, &verification.remote);
    if (result == CLI_OK) {
        result = verify_all(cli, &verification);
    }
    remote_close(&verification.remote);
    size_t looked = json_array_size(verification.reports);
    json_t *answer = json_pack("{s:b, s:o}", "sound", verification.findings == 0, "sinks",
                               verification.reports);
    if (result == CLI_OK && looked == 0 && cli->argument_count > 0) {
        result = cli_failed("no sink has this name, id or table: %.*s", STR_ARG(cli->arguments[0]));
    } else if (result == CLI_OK) {
        bool printed = output_json(cli, answer);
        if (looked == 0 && !printed) {
            cli_note("there is no sink to verify");
        }
        result = verification.findings == 0 ? CLI_OK : CLI_FOUND;
    }
    json_decref(answer);
    return result;
}

const struct cli_command cli_verify = {
    .path = "verify",
    .arguments = "[SINK|TABLE]",
    .arguments_min = 0,
    .arguments_max = 1,
    .summary = "Check that every accepted row is there once",
    .text =
        "Read-only, while everything runs: ledger, plans, waiting batches, rejects files, and the\n"
        "table with its manifests and data files are held against each other. Ends with 0, or with "
        "5\n"
        "and the rule of docs/exactly-once.md that is broken, with what to do.",
    .example = "lhbox verify\n"
               "lhbox verify events_in --json",
    .flags = verify_flags,
    .flag_count = ARRAY_COUNT(verify_flags),
    .access = CLI_API,
    .run = verify,
};
