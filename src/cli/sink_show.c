/* Sinks: what they are doing, what became of batches and rows. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/remote.h"

#include "base/time.h"

enum { WAIT_SECONDS_MAX = 60 };

static const struct cli_flag list_flags[] = {
    {"warehouse", CLI_TEXT, "NAME", NULL, "of this warehouse only"},
    {"include-deleted", CLI_SWITCH, NULL, NULL, "deleted ones too"},
    {"limit", CLI_NUMBER, "N", "100", "at most so many, up to 1,000"},
    {"cursor", CLI_TEXT, "TEXT", NULL, "go on where the list before ended"},
};

static const struct cli_flag roll_flags[] = {
    {"wait", CLI_NUMBER, "SECONDS", NULL, "wait for it, at most so long (up to 60)"},
};

static const struct cli_flag batches_flags[] = {
    {"state", CLI_TEXT, "STATE", NULL, "pending, planned, committed, rejected or discarded"},
    {"held", CLI_SWITCH, NULL, NULL, "only those whose object is damaged or lost"},
    {"quarantined", CLI_SWITCH, NULL, NULL,
     "ids that were sent with several contents, and where these lie"},
    {"limit", CLI_NUMBER, "N", "100", "at most so many, up to 1,000"},
    {"cursor", CLI_TEXT, "TEXT", NULL, "go on where the list before ended"},
};

static const struct cli_flag resolve_flags[] = {
    {"keep", CLI_TEXT, "OBJECT", NULL, "the object that the id stands for, of those listed"},
};

static const struct cli_flag rejects_flags[] = {
    {"reason", CLI_TEXT, "REASON", NULL, "with this reason only"},
    {"since", CLI_TEXT, "TIME", NULL, "received since, RFC 3339"},
    {"batch-id", CLI_TEXT, "ID", NULL, "of this batch only"},
    {"limit", CLI_NUMBER, "N", "100", "at most so many, up to 1,000"},
    {"cursor", CLI_TEXT, "TEXT", NULL, "go on where the list before ended"},
};

static str sink_path(struct remote *remote, const char *rest)
{
    str name = remote_part(remote, remote->cli->arguments[0]);
    return str_format(remote->cli->arena, "/v1/sinks/%.*s%s", STR_ARG(name), rest);
}

static str paged(struct remote *remote, str path)
{
    path = remote_query(remote, path, "limit", cli_text(remote->cli, "limit"));
    return remote_query(remote, path, "cursor", cli_text(remote->cli, "cursor"));
}

/* ---- list and get ---- */

static int list(struct cli *cli)
{
    static const struct output_column columns[] = {
        {"NAME", "name", OUTPUT_TEXT},
        {"ID", "id", OUTPUT_TEXT},
        {"WAREHOUSE", "warehouse", OUTPUT_TEXT},
        {"TABLE", "table", OUTPUT_TEXT},
        {"STATE", "state", OUTPUT_TEXT},
        {"ROWS", "received.rows", OUTPUT_NUMBER},
        {"REJECTED", "rejects.rows_total", OUTPUT_NUMBER},
        {"WAITING", "lag.batches_waiting", OUTPUT_NUMBER},
        {"BEHIND (S)", "lag.seconds_behind", OUTPUT_NUMBER},
    };
    struct remote remote = {0};
    json_t *answer = NULL;
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        str path = paged(&remote, STR("/v1/sinks"));
        path = remote_query(&remote, path, "warehouse", cli_text(cli, "warehouse"));
        path = remote_query(&remote, path, "include_deleted",
                            cli_given(cli, "include-deleted") ? STR("true") : (str){0});
        result = remote_call(&remote, "GET", path, NULL, &answer);
    }
    if (result == CLI_OK) {
        result = output_list(cli, answer, "sinks", columns, ARRAY_COUNT(columns));
    }
    remote_close(&remote);
    return result;
}

static const struct output_column sink_lines[] = {
    {"sink", "id", OUTPUT_TEXT},
    {"name", "name", OUTPUT_TEXT},
    {"table", "table", OUTPUT_TEXT},
    {"warehouse", "warehouse", OUTPUT_TEXT},
    {"state", "state", OUTPUT_TEXT},
    {"reason", "state_reason", OUTPUT_TEXT},
    {"last error", "last_error", OUTPUT_TEXT},
    {"key", "key", OUTPUT_TEXT},
    {"roll seconds", "roll.seconds", OUTPUT_TEXT},
    {"roll bytes", "roll.bytes", OUTPUT_BYTES},
    {"inactivity seconds", "roll.inactivity_seconds", OUTPUT_TEXT},
    {"received batches", "received.batches", OUTPUT_TEXT},
    {"received rows", "received.rows", OUTPUT_TEXT},
    {"refused at once", "received.rejected_rows", OUTPUT_TEXT},
    {"received bytes", "received.bytes", OUTPUT_BYTES},
    {"duplicates", "received.duplicates", OUTPUT_TEXT},
    {"last received", "received.last_at", OUTPUT_TEXT},
    {"waiting batches", "lag.batches_waiting", OUTPUT_TEXT},
    {"waiting bytes", "lag.bytes_waiting", OUTPUT_BYTES},
    {"seconds behind", "lag.seconds_behind", OUTPUT_TEXT},
    {"last roll", "last_roll.at", OUTPUT_TEXT},
    {"  rows", "last_roll.rows", OUTPUT_TEXT},
    {"  rejected rows", "last_roll.rejected_rows", OUTPUT_TEXT},
    {"  snapshot", "last_roll.snapshot_id", OUTPUT_TEXT},
    {"rows committed", "books.committed", OUTPUT_TEXT},
    {"rows rejected", "books.rejected", OUTPUT_TEXT},
    {"rows pending", "books.pending", OUTPUT_TEXT},
    {"rows discarded", "books.discarded", OUTPUT_TEXT},
    {"books differ by", "books.difference", OUTPUT_TEXT},
    {"rejects in", "rejects.prefix", OUTPUT_TEXT},
    {"rejects by reason", "rejects.by_reason", OUTPUT_TEXT},
    {"last reject", "rejects.last_at", OUTPUT_TEXT},
    {"warnings", "warnings", OUTPUT_TEXT},
};

static int get(struct cli *cli)
{
    struct remote remote = {0};
    json_t *answer = NULL;
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        result = remote_call(&remote, "GET", sink_path(&remote, ""), NULL, &answer);
    }
    if (result == CLI_OK) {
        result = output_object(cli, answer, sink_lines, ARRAY_COUNT(sink_lines));
    }
    remote_close(&remote);
    return result;
}

/* ---- roll ---- */

static int roll(struct cli *cli)
{
    static const struct output_column lines[] = {
        {"requested at", "requested_at", OUTPUT_TEXT},
        {"last roll", "last_roll.at", OUTPUT_TEXT},
        {"  batches", "last_roll.batches", OUTPUT_TEXT},
        {"  rows", "last_roll.rows", OUTPUT_TEXT},
        {"  rejected rows", "last_roll.rejected_rows", OUTPUT_TEXT},
        {"  snapshot", "last_roll.snapshot_id", OUTPUT_TEXT},
    };
    struct remote remote = {0};
    json_t *answer = NULL;
    i64 seconds = cli_number(cli, "wait", 0);
    if (seconds < 0 || seconds > WAIT_SECONDS_MAX) {
        return cli_usage_error(cli, "--wait wants 0 to 60 seconds");
    }
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        str path = remote_query(&remote, sink_path(&remote, "/roll"), "wait",
                                cli_text(cli, "wait"));
        result = remote_call_within(&remote, "POST", path, json_object(),
                                    (seconds + 30) * TIME_SECOND_US, &answer);
    }
    if (result == CLI_OK) {
        bool settled = json_object_get(answer, "last_roll") != NULL;
        result = output_object(cli, answer, lines, ARRAY_COUNT(lines));
        if (seconds > 0 && !settled) {
            cli_note("not done after %lld seconds; it goes on by itself", (long long)seconds);
            result = CLI_TIMED_OUT;
        }
    }
    remote_close(&remote);
    return result;
}

/* ---- batches ---- */

static int get_batch(struct cli *cli, struct remote *remote)
{
    static const struct output_column lines[] = {
        {"batch", "batch_id", OUTPUT_TEXT},
        {"state", "state", OUTPUT_TEXT},
        {"held", "held", OUTPUT_TEXT},
        {"rows", "rows", OUTPUT_TEXT},
        {"rejected rows", "rejected_rows", OUTPUT_TEXT},
        {"bytes", "bytes", OUTPUT_BYTES},
        {"received at", "received_at", OUTPUT_TEXT},
        {"committed at", "committed_at", OUTPUT_TEXT},
        {"snapshot", "snapshot_id", OUTPUT_TEXT},
        {"remembered until", "remembered_until", OUTPUT_TEXT},
    };
    json_t *answer = NULL;
    str id = remote_part(remote, cli->arguments[1]);
    str path = str_format(cli->arena, "%.*s/%.*s", STR_ARG(sink_path(remote, "/batches")),
                          STR_ARG(id));
    int result = remote_call(remote, "GET", path, NULL, &answer);
    return result == CLI_OK ? output_object(cli, answer, lines, ARRAY_COUNT(lines)) : result;
}

/* Ids with the objects to choose from. */
static int list_quarantined(struct cli *cli, struct remote *remote)
{
    static const struct output_column columns[] = {
        {"BATCH", "batch_id", OUTPUT_TEXT},
        {"SINCE", "since", OUTPUT_TEXT},
        {"OBJECTS", "objects", OUTPUT_TEXT},
    };
    json_t *answer = NULL;
    str path = paged(remote, sink_path(remote, "/batches"));
    path = remote_query(remote, path, "state", STR("quarantined"));
    int result = remote_call(remote, "GET", path, NULL, &answer);
    return result == CLI_OK ? output_list(cli, answer, "batches", columns, ARRAY_COUNT(columns))
                            : result;
}

static int list_batches(struct cli *cli, struct remote *remote)
{
    static const struct output_column columns[] = {
        {"BATCH", "batch_id", OUTPUT_TEXT},
        {"STATE", "state", OUTPUT_TEXT},
        {"ROWS", "rows", OUTPUT_NUMBER},
        {"REJECTED", "rejected_rows", OUTPUT_NUMBER},
        {"BYTES", "bytes", OUTPUT_BYTES},
        {"RECEIVED", "received_at", OUTPUT_TEXT},
        {"COMMITTED", "committed_at", OUTPUT_TEXT},
    };
    json_t *answer = NULL;
    str path = paged(remote, sink_path(remote, "/batches"));
    str state = cli_given(cli, "held") ? STR("held") : cli_text(cli, "state");
    path = remote_query(remote, path, "state", state);
    int result = remote_call(remote, "GET", path, NULL, &answer);
    return result == CLI_OK ? output_list(cli, answer, "batches", columns, ARRAY_COUNT(columns))
                            : result;
}

static int batches(struct cli *cli)
{
    struct remote remote = {0};
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        result = cli->argument_count > 1         ? get_batch(cli, &remote)
                 : cli_given(cli, "quarantined") ? list_quarantined(cli, &remote)
                                                 : list_batches(cli, &remote);
    }
    remote_close(&remote);
    return result;
}

/* POST …/batches/{id}/<what> of the batch that is named by the second argument. */
static int post_batch(struct remote *remote, const char *what, json_t *body, json_t **out_answer)
{
    str id = remote_part(remote, remote->cli->arguments[1]);
    str path = str_format(remote->cli->arena, "%.*s/%.*s/%s",
                          STR_ARG(sink_path(remote, "/batches")), STR_ARG(id), what);
    return remote_call(remote, "POST", path, body, out_answer);
}

static int resolve(struct cli *cli)
{
    struct remote remote = {0};
    json_t *answer = NULL;
    str keep = cli_text(cli, "keep");
    if (keep.data == NULL) {
        return cli_usage_error(cli,
                               "--keep OBJECT is wanted; sink batches --quarantined lists them");
    }
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        json_t *body = json_object();
        json_object_set_new(body, "keep", json_stringn(keep.data, keep.size));
        result = post_batch(&remote, "resolve", body, &answer);
    }
    if (result == CLI_OK && !output_json(cli, answer)) {
        str id = output_text(cli, answer, "batch_id", OUTPUT_TEXT);
        str state = output_text(cli, answer, "state", OUTPUT_TEXT);
        cli_note("object %.*s is kept as batch %.*s, which is %.*s", STR_ARG(keep), STR_ARG(id),
                 STR_ARG(state));
    }
    json_decref(answer);
    remote_close(&remote);
    return result;
}

static int discard(struct cli *cli)
{
    struct remote remote = {0};
    json_t *answer = NULL;
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        result = post_batch(&remote, "discard", json_object(), &answer);
    }
    if (result == CLI_OK && !output_json(cli, answer)) {
        cli_note("batch %.*s is discarded: its rows count as discarded in the books",
                 STR_ARG(cli->arguments[1]));
    }
    json_decref(answer);
    remote_close(&remote);
    return result;
}

/* ---- rejects ---- */

static int rejects(struct cli *cli)
{
    static const struct output_column columns[] = {
        {"BATCH", "batch_id", OUTPUT_TEXT}, {"ROW", "row", OUTPUT_NUMBER},
        {"REASON", "reason", OUTPUT_TEXT},  {"COLUMN", "column", OUTPUT_TEXT},
        {"DETAIL", "detail", OUTPUT_TEXT},  {"DATA", "data", OUTPUT_TEXT},
    };
    struct remote remote = {0};
    json_t *answer = NULL;
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        str path = paged(&remote, sink_path(&remote, "/rejects"));
        path = remote_query(&remote, path, "reason", cli_text(cli, "reason"));
        path = remote_query(&remote, path, "since", cli_text(cli, "since"));
        path = remote_query(&remote, path, "batch_id", cli_text(cli, "batch-id"));
        result = remote_call(&remote, "GET", path, NULL, &answer);
    }
    if (result == CLI_OK) {
        result = output_list(cli, answer, "rejects", columns, ARRAY_COUNT(columns));
    }
    remote_close(&remote);
    return result;
}

/* ---- the table ---- */

const struct cli_command cli_sink_list = {
    .path = "sink list",
    .arguments = "",
    .summary = "List the sinks, with their lag",
    .example = "lhbox sink list --warehouse garden",
    .flags = list_flags,
    .flag_count = ARRAY_COUNT(list_flags),
    .access = CLI_API,
    .run = list,
};

const struct cli_command cli_sink_get = {
    .path = "sink get",
    .arguments = "SINK",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Show a sink: lag, last roll, books, rejects",
    .example = "lhbox sink get events_in",
    .access = CLI_API,
    .run = get,
};

const struct cli_command cli_sink_roll = {
    .path = "sink roll",
    .arguments = "SINK",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Commit what waits, now",
    .text = "With --wait, ends when everything accepted before is committed or rejected (0), or "
            "when the\n"
            "time is over (4).",
    .example = "lhbox sink roll events_in --wait 30",
    .flags = roll_flags,
    .flag_count = ARRAY_COUNT(roll_flags),
    .access = CLI_API,
    .run = roll,
};

const struct cli_command cli_sink_batches = {
    .path = "sink batches",
    .arguments = "SINK [BATCH]",
    .arguments_min = 1,
    .arguments_max = 2,
    .summary = "List a sink's batches, or show one",
    .example = "lhbox sink batches events_in --state pending",
    .flags = batches_flags,
    .flag_count = ARRAY_COUNT(batches_flags),
    .access = CLI_API,
    .run = batches,
};

const struct cli_command cli_sink_batches_discard = {
    .path = "sink batches discard",
    .arguments = "SINK BATCH",
    .arguments_min = 2,
    .arguments_max = 2,
    .summary = "Give up a held batch, whose object is damaged or lost",
    .example = "lhbox sink batches discard events_in 2026-09-21T12:00:00Z-0001",
    .access = CLI_API,
    .run = discard,
};

const struct cli_command cli_sink_batches_resolve = {
    .path = "sink batches resolve",
    .arguments = "SINK BATCH",
    .arguments_min = 2,
    .arguments_max = 2,
    .summary = "Say which content a quarantined batch id stands for",
    .text = "The content that is kept is rolled as that batch; the others are removed.",
    .example = "lhbox sink batches events_in --quarantined\n"
               "lhbox sink batches resolve events_in 2026-09-21T12:00:00Z-0001 --keep "
               "01k5nr8vd3hq7x2m4c6b9yte0g",
    .flags = resolve_flags,
    .flag_count = ARRAY_COUNT(resolve_flags),
    .access = CLI_API,
    .run = resolve,
};

const struct cli_command cli_sink_rejects = {
    .path = "sink rejects",
    .arguments = "SINK",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Show the rows that did not fit, and why",
    .text = "Long rows are cut to fit; --json shows them whole.",
    .example = "lhbox sink rejects events_in --reason required_missing",
    .flags = rejects_flags,
    .flag_count = ARRAY_COUNT(rejects_flags),
    .access = CLI_API,
    .run = rejects,
};
