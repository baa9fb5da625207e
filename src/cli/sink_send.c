/* lhbox sink send: bodies to a sink, each until it is surely stored.
 *
 * A batch id makes a send safe to repeat, so everything that may pass is tried again with the same
 * id: 429 and 503 (and what a proxy answers in their place), broken and refused connections. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/remote.h"
#include "cli/send_source.h"

#include "base/base64.h"
#include "base/seam.h"
#include "io/crypto.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    RETRY_SECONDS = 60,
    FIRST_CONTACT_SECONDS = 3,
    WAIT_SECONDS = 600,
    WAIT_STEP_SECONDS = 60,
    CALL_SECONDS = 600,
    BATCH_ID_SIZE = 32,
    PROGRESS_FROM_BYTES = MIB,
    PROGRESS_WIDTH = 40,
};

static const struct cli_flag flags[] = {
    {"send-key-file", CLI_TEXT, "FILE", NULL,
     "what `sink create --save` wrote, or a file with the bare key"},
    {"send-key", CLI_TEXT, "KEY", "LHBOX_SEND_KEY", "the send key itself"},
    {"batch-id", CLI_TEXT, "ID", "made of the body's SHA-256",
     "the name that makes a repeated send harmless; several batches get -0001, -0002, …"},
    {"wait", CLI_SWITCH, NULL, NULL, "until everything sent is committed"},
    {"wait-seconds", CLI_NUMBER, "N", "600", "how long --wait waits"},
    {"retry-seconds", CLI_NUMBER, "N", "60", "how long one batch is tried again"},
    {"dry-run", CLI_SWITCH, NULL, NULL, "ask for each row's verdict; nothing is stored"},
};

struct sender {
    struct cli *cli;
    struct http_client *client;
    str url;
    str authorization;
    str name_prefix; /* --batch-id; data NULL: by hash */
    i64 retry_us;
    bool reached; /* the server has answered once */
    bool progress;
    i64 source_size;
    i64 bytes_before; /* of the source, in batches that are stored */
    i64 percent_shown;
    i64 batches;
    i64 accepted;
    i64 rejected;
};

/* ---- which sink, with which key ---- */

struct target {
    str sink_id; /* data NULL: not known */
    str name;
    str send_url;
    str send_key;
};

static str member_text(struct cli *cli, const json_t *object, const char *name)
{
    return output_text(cli, object, name, OUTPUT_TEXT);
}

/* What --save wrote, or a bare key. */
static int target_from_file(struct cli *cli, str path, struct target *target)
{
    str bytes = {0};
    struct error error = {0};
    if (file_read(cli->arena, path, PROFILE_FILE_BYTES_MAX, &bytes, &error) != OK) {
        return cli_failed_error(&error);
    }
    json_t *json = json_loadb(bytes.data, bytes.size, 0, NULL);
    if (json == NULL) {
        return profile_read_key(cli, path, "send_key", &target->send_key);
    }
    target->sink_id = member_text(cli, json, "sink_id");
    target->name = member_text(cli, json, "name");
    target->send_url = member_text(cli, json, "send_url");
    target->send_key = member_text(cli, json, "send_key");
    json_decref(json);
    if (target->send_key.data == NULL) {
        return cli_failed("%.*s holds no send_key", STR_ARG(path));
    }
    str wanted = cli->arguments[0];
    if (target->sink_id.data != NULL && !str_equal(wanted, target->sink_id) &&
        !str_equal(wanted, target->name)) {
        return cli_usage_error(cli, "%.*s is the key of %.*s (%.*s), not of %.*s", STR_ARG(path),
                               STR_ARG(target->name), STR_ARG(target->sink_id), STR_ARG(wanted));
    }
    return CLI_OK;
}

static int target_key(struct cli *cli, struct target *target)
{
    const char *variable = getenv("LHBOX_SEND_KEY");
    if (cli_given(cli, "send-key-file")) {
        return target_from_file(cli, cli_text(cli, "send-key-file"), target);
    }
    target->send_key = cli_text(cli, "send-key");
    if (target->send_key.data == NULL && variable != NULL && variable[0] != 0) {
        target->send_key = str_from(variable);
    }
    return target->send_key.data != NULL
               ? CLI_OK
               : cli_usage_error(cli, "no send key: --send-key-file, --send-key or LHBOX_SEND_KEY");
}

/* A send key cannot ask who it is: a sink by name needs an API key to find its id. */
static int target_find_id(struct cli *cli, struct target *target)
{
    struct remote remote = {0};
    json_t *answer = NULL;
    if (str_starts(cli->arguments[0], STR("snk_"))) {
        target->sink_id = cli->arguments[0];
        return CLI_OK;
    }
    int result = remote_open(cli, &remote);
    if (result == CLI_USAGE) {
        cli_note("hint: with a bare send key give the sink by its id (snk_…)");
    }
    if (result == CLI_OK) {
        str name = remote_part(&remote, cli->arguments[0]);
        str path = str_format(cli->arena, "/v1/sinks/%.*s", STR_ARG(name));
        result = remote_call(&remote, "GET", path, NULL, &answer);
    }
    if (result == CLI_OK) {
        target->sink_id = member_text(cli, answer, "id");
    }
    json_decref(answer);
    remote_close(&remote);
    return result;
}

static int target_resolve(struct cli *cli, struct target *target)
{
    struct profile profile = {0};
    int result = target_key(cli, target);
    if (result == CLI_OK && target->send_url.data != NULL && !cli_given(cli, "url")) {
        return CLI_OK;
    }
    if (result == CLI_OK && target->sink_id.data == NULL) {
        result = target_find_id(cli, target);
    }
    if (result == CLI_OK) {
        result = profile_load(cli, &profile);
    }
    if (result == CLI_OK) {
        target->send_url = str_format(cli->arena, "%.*s/v1/sinks/%.*s", STR_ARG(profile.url),
                                      STR_ARG(target->sink_id));
    }
    return result;
}

/* ---- progress ---- */

static void show_progress(void *context, i64 sent)
{
    struct sender *sender = context;
    if (!sender->progress || sender->source_size <= 0) {
        return;
    }
    i64 done = num_min_i64(sender->bytes_before + sent, sender->source_size);
    i64 percent = done * 100 / sender->source_size;
    if (percent == sender->percent_shown) {
        return;
    }
    sender->percent_shown = percent;
    char bar[PROGRESS_WIDTH + 1];
    for (i64 at = 0; at < PROGRESS_WIDTH; at++) {
        bar[at] = at * 100 < percent * PROGRESS_WIDTH ? '#' : '.';
    }
    bar[PROGRESS_WIDTH] = 0;
    (void)fprintf(stderr, "\r[%s] %3lld %%%s", bar, (long long)percent, percent == 100 ? "\n" : "");
    (void)fflush(stderr);
}

/* ---- one batch ---- */

static bool status_may_pass(int status)
{
    return status == 408 || status == 429 || status == 502 || status == 503 || status == 504;
}

/* What the server asked for, else twice as long each time, with jitter. */
static i64 pause_us(const struct http_reply *reply, i32 tries)
{
    i64 seconds = 0;
    u32 jitter = 0;
    seam_random(seam_system(), &jitter, sizeof(jitter));
    if (reply != NULL && str_to_i64(http_reply_header(reply, STR("retry-after")), &seconds) &&
        seconds > 0) {
        return num_min_i64(seconds, 60) * TIME_SECOND_US + jitter % 250000;
    }
    i64 base = TIME_SECOND_US / 4 << num_min_i64(tries, 6);
    return base + (i64)(jitter % (u32)base);
}

/* Is there time for another try? Says so, and waits. */
static bool retry_after_pause(const struct sender *sender, i64 started_us,
                              const struct http_reply *reply, i32 tries, const char *why)
{
    i64 pause = pause_us(reply, tries);
    i64 spent = seam_monotonic_us(seam_system()) - started_us;
    i64 allowed = sender->retry_us;
    if (reply == NULL && !sender->reached && !cli_given(sender->cli, "retry-seconds")) {
        allowed = num_min_i64(allowed, FIRST_CONTACT_SECONDS * TIME_SECOND_US);
    }
    if (spent + pause > allowed) {
        return false;
    }
    cli_note("%s; again in %lld.%lld s", why, (long long)(pause / TIME_SECOND_US),
             (long long)(pause % TIME_SECOND_US / 100000));
    seam_wait_us(seam_system(), pause);
    return true;
}

static err post_once(struct sender *sender, const struct send_batch *batch, str id, str query,
                     struct http_reply *out_reply, struct error *error)
{
    struct http_call call = {
        .method = STR("POST"),
        .url = str_format(sender->cli->arena, "%.*s%.*s", STR_ARG(sender->url), STR_ARG(query)),
        .headers = {{STR("Authorization"), sender->authorization},
                    {STR("Idempotency-Key"), id},
                    {STR("Content-Type"), STR("application/json")}},
        .header_count = 3,
        .body = batch->body,
        .timeout_us = CALL_SECONDS * TIME_SECOND_US,
        .progress = show_progress,
        .progress_context = sender,
    };
    return http_client_call(sender->client, sender->cli->arena, &call, out_reply, error);
}

/* CLI_OK: the server has taken it; *out_reply is its answer. */
static int post(struct sender *sender, const struct send_batch *batch, str id, str query,
                struct http_reply *out_reply)
{
    i64 started_us = seam_monotonic_us(seam_system());
    for (i32 tries = 0;; tries++) {
        struct error error = {0};
        struct http_reply reply = {0};
        char why[64];
        err sent = post_once(sender, batch, id, query, &reply, &error);
        if (sent != OK && sent != IO && sent != UNKNOWN) {
            return cli_failed_error(&error);
        }
        sender->reached = sender->reached || sent == OK;
        if (sent == OK && (reply.status == 200 || reply.status == 202)) {
            *out_reply = reply;
            return CLI_OK;
        }
        if (sent == OK && !status_may_pass(reply.status)) {
            return remote_refused(sender->cli, &reply);
        }
        (void)snprintf(why, sizeof(why), sent == OK ? "the server answered %d" : "no answer",
                       reply.status);
        if (!retry_after_pause(sender, started_us, sent == OK ? &reply : NULL, tries, why)) {
            if (sent == OK) {
                return remote_refused(sender->cli, &reply);
            }
            (void)cli_failed_error(&error);
            return CLI_UNREACHABLE;
        }
    }
}

static void print_reasons(const json_t *answer)
{
    const json_t *reasons = json_object_get(answer, "reasons");
    for (size_t index = 0; index < json_array_size(reasons); index++) {
        const json_t *one = json_array_get(reasons, index);
        const char *reason = json_string_value(json_object_get(one, "reason"));
        const char *detail = json_string_value(json_object_get(one, "detail"));
        printf("  row %lld: %s", (long long)json_integer_value(json_object_get(one, "row")),
               reason != NULL ? reason : "");
        if (detail != NULL) {
            printf(": ");
            output_print(str_from(detail));
        }
        printf("\n");
    }
    if (json_is_true(json_object_get(answer, "reasons_truncated"))) {
        printf("  and more\n");
    }
}

/* The rows that a dry run would reject. */
static void print_verdicts(const json_t *answer)
{
    const json_t *rows = json_object_get(answer, "rows");
    for (size_t row = 0; row < json_array_size(rows); row++) {
        const json_t *hits = json_object_get(json_array_get(rows, row), "hits");
        for (size_t index = 0; index < json_array_size(hits); index++) {
            const json_t *hit = json_array_get(hits, index);
            const char *reason = json_string_value(json_object_get(hit, "reason"));
            const char *column = json_string_value(json_object_get(hit, "column"));
            const char *detail = json_string_value(json_object_get(hit, "detail"));
            printf("  row %zu: %s ", row, reason != NULL ? reason : "");
            output_print(str_from(column != NULL ? column : ""));
            printf(": ");
            output_print(str_from(detail != NULL ? detail : ""));
            printf("\n");
        }
    }
}

static void print_answer(struct sender *sender, const json_t *answer, str id)
{
    str batch_id = member_text(sender->cli, answer, "batch_id");
    str state = member_text(sender->cli, answer, "state");
    i64 accepted = (i64)json_integer_value(json_object_get(answer, "accepted"));
    i64 rejected = (i64)json_integer_value(json_object_get(answer, "rejected"));
    sender->accepted += accepted;
    sender->rejected += rejected;
    if (output_json(sender->cli, answer)) {
        return;
    }
    bool dry = json_is_true(json_object_get(answer, "dry_run"));
    printf("%s %.*s: %lld accepted, %lld rejected", dry ? "dry run of" : "batch",
           STR_ARG(batch_id.data != NULL ? batch_id : id), (long long)accepted,
           (long long)rejected);
    if (json_is_true(json_object_get(answer, "duplicate"))) {
        printf(", was there already");
    }
    if (state.data != NULL) {
        printf(", %.*s", STR_ARG(state));
    }
    printf("\n");
    print_reasons(answer);
    print_verdicts(answer);
}

/* ---- all of them ---- */

/* The same bytes get the same id, today and tomorrow. */
static str batch_id(struct sender *sender, const struct send_batch *batch, bool alone)
{
    struct arena *arena = sender->cli->arena;
    if (sender->name_prefix.data != NULL) {
        return alone ? sender->name_prefix
                     : str_format(arena, "%.*s-%04lld", STR_ARG(sender->name_prefix),
                                  (long long)sender->batches + 1);
    }
    struct sha256 hash = crypto_sha256(batch->body);
    buf hex = buf_create(arena, 2 * sizeof(hash.bytes), 2 * sizeof(hash.bytes));
    base64_hex(&hex, (str){(const char *)hash.bytes, sizeof(hash.bytes)});
    str id = str_slice(buf_str(&hex), 0, BATCH_ID_SIZE);
    cli_note("batch id %.*s", STR_ARG(id));
    return id;
}

static int answer_parse(const struct http_reply *reply, json_t **out_json)
{
    *out_json = json_loadb(reply->body.data != NULL ? reply->body.data : "", reply->body.size, 0,
                           NULL);
    return *out_json != NULL ? CLI_OK : cli_failed("the answer is not JSON: is it an lhbox?");
}

/* Batches of a sink are committed in the order of their acceptance: when the last one is, all are.
 */
static int wait_committed(struct sender *sender, const struct send_batch *last, str id)
{
    i64 end_us = seam_monotonic_us(seam_system()) +
                 cli_number(sender->cli, "wait-seconds", WAIT_SECONDS) * TIME_SECOND_US;
    for (;;) {
        struct http_reply reply = {0};
        json_t *answer = NULL;
        i64 left = (end_us - seam_monotonic_us(seam_system())) / TIME_SECOND_US;
        str query = str_format(sender->cli->arena, "?wait=committed&timeout=%lld",
                               (long long)num_max_i64(0, num_min_i64(left, WAIT_STEP_SECONDS)));
        int result = post(sender, last, id, query, &reply);
        if (result == CLI_OK) {
            result = answer_parse(&reply, &answer);
        }
        if (result != CLI_OK) {
            return result;
        }
        str state = member_text(sender->cli, answer, "state");
        bool settled = !str_equal(state, STR("pending")) && !str_equal(state, STR("planned"));
        if (settled && !output_json(sender->cli, answer)) {
            printf("%.*s\n", STR_ARG(state));
        }
        json_decref(answer);
        if (settled) {
            return CLI_OK;
        }
        if (left <= 0) {
            cli_note("not committed yet; it goes on by itself");
            return CLI_TIMED_OUT;
        }
    }
}

static int send_batch(struct sender *sender, const struct send_batch *batch, str id)
{
    struct http_reply reply = {0};
    json_t *answer = NULL;
    str query = cli_given(sender->cli, "dry-run") ? STR("?dry_run=1") : STR("");
    int result = post(sender, batch, id, query, &reply);
    if (result == CLI_OK) {
        result = answer_parse(&reply, &answer);
    }
    if (result == CLI_OK) {
        print_answer(sender, answer, id);
        sender->batches++;
        sender->bytes_before = batch->bytes_read;
    }
    json_decref(answer);
    return result;
}

static int send_all(struct sender *sender, struct send_source *source)
{
    struct error error = {0};
    struct send_batch batch = {0};
    str id = {0};
    int result = CLI_OK;
    err next = OK;
    while (result == CLI_OK && (next = send_source_next(source, &batch, &error)) == OK) {
        bool alone = sender->batches == 0 && batch.last;
        id = batch_id(sender, &batch, alone);
        result = send_batch(sender, &batch, id);
    }
    if (result != CLI_OK) {
        return result;
    }
    if (next != NOT_FOUND) {
        return cli_failed_error(&error);
    }
    if (sender->batches > 1 && !cli_given(sender->cli, "json")) {
        printf("%lld batches: %lld accepted, %lld rejected\n", (long long)sender->batches,
               (long long)sender->accepted, (long long)sender->rejected);
    }
    bool waits = cli_given(sender->cli, "wait") && !cli_given(sender->cli, "dry-run");
    return waits && sender->batches > 0 ? wait_committed(sender, &batch, id) : CLI_OK;
}

static int run(struct cli *cli)
{
    struct error error = {0};
    struct target target = {0};
    struct sender sender = {.cli = cli, .name_prefix = cli_text(cli, "batch-id")};
    struct send_source *source = NULL;
    const struct http_client_options options = {.user_agent = STR("lhbox-cli")};
    int result = target_resolve(cli, &target);
    if (result != CLI_OK) {
        return result;
    }
    if (send_source_open(cli->arena, cli->arguments[1], &source, &error) != OK ||
        http_client_create(cli->arena, &options, &sender.client, &error) != OK) {
        return cli_failed_error(&error);
    }
    sender.url = target.send_url;
    sender.authorization = str_format(cli->arena, "Bearer %.*s", STR_ARG(target.send_key));
    sender.retry_us = cli_number(cli, "retry-seconds", RETRY_SECONDS) * TIME_SECOND_US;
    sender.source_size = send_source_size(source);
    sender.progress = isatty(STDERR_FILENO) == 1 && !cli_given(cli, "json") &&
                      sender.source_size > PROGRESS_FROM_BYTES;
    result = send_all(&sender, source);
    http_client_destroy(sender.client);
    send_source_close(source);
    return result;
}

const struct cli_command cli_sink_send = {
    .path = "sink send",
    .arguments = "SINK FILE|-",
    .arguments_min = 2,
    .arguments_max = 2,
    .summary = "Send a JSON array, or NDJSON, to a sink",
    .text =
        "A file of one object a line (NDJSON) is made into arrays of at most 16 MiB. 429, 503 and\n"
        "broken connections are tried again with the same batch id, so nothing is stored twice.\n"
        "SINK is its name, or its id where only a bare send key is known.",
    .example = "lhbox sink send events_in batch.json --send-key-file ~/events-sink.json\n"
               "cat rows.ndjson | lhbox sink send events_in - --send-key-file ~/events-sink.json "
               "--wait",
    .flags = flags,
    .flag_count = ARRAY_COUNT(flags),
    .access = CLI_API,
    .run = run,
};
