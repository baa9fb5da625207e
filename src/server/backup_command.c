/* `lhbox backup DIR`: asks the server of the data directory, by its socket there. */
#include "base/buf.h"
#include "io/file.h"
#include "io/http_client.h"
#include "server/backup.h"
#include "server/config.h"
#include "server/process.h"

#include <jansson.h>

enum { COMMAND_BYTES_MAX = 64 * MIB, EXIT_FOUND = 5, EXIT_UNREACHABLE = 3 };

MUST_USE static err print_request(struct arena *arena, str directory, enum file_tree_how how,
                                  str *out_body, struct error *error)
{
    buf body = buf_create(arena, KIB, 64 * KIB);
    buf_append(&body, STR("{\"directory\":"));
    buf_append_json_string(&body, directory);
    buf_append_format(&body, ",\"link\":%s}", how == FILE_TREE_LINK ? "true" : "false");
    *out_body = buf_str(&body);
    return buf_ok(&body) ? OK : error_memory(error);
}

MUST_USE static err ask(struct arena *arena, str data, str body, struct http_reply *out_reply,
                        struct error *error)
{
    struct http_client *client = NULL;
    struct http_client_options options = {
        .unix_path = str_format(arena, "%.*s/internal.sock", STR_ARG(data))};
    struct http_call call = {.method = STR("POST"),
                             .url = STR("http://lhbox/internal/backup"),
                             .body = body,
                             .timeout_us = TIME_DAY_US};
    call.headers[call.header_count++] = (struct http_client_header){STR("Content-Type"),
                                                                    STR("application/json")};
    if (options.unix_path.data == NULL) {
        return error_memory(error);
    }
    TRY(http_client_create(arena, &options, &client, error));
    err result = http_client_call(client, arena, &call, out_reply, error);
    http_client_destroy(client);
    if (result != OK) {
        error_hint(error, "a backup is made by the running server; is one serving %.*s?",
                   STR_ARG(data));
    }
    return result;
}

/* ---- what it said ---- */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text == NULL ? "" : text;
}

static long long number_of(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

static int say_report(struct arena *arena, const json_t *report)
{
    buf out = buf_create(arena, 4 * KIB, MIB);
    const json_t *findings = json_object_get(report, "findings");
    size_t count = json_array_size(findings);
    buf_append_format(&out, "copied %s: %lld files, %lld bytes, %lld sinks verified\n",
                      text_of(report, "directory"), number_of(report, "files"),
                      number_of(report, "bytes"), number_of(report, "sinks"));
    for (size_t i = 0; i < count; i++) {
        const json_t *finding = json_array_get(findings, i);
        buf_append_format(&out, "  %s  %s: %s: %s\n      %s\n", text_of(finding, "rule"),
                          text_of(finding, "sink"), text_of(finding, "subject"),
                          text_of(finding, "finding"), text_of(finding, "cure"));
    }
    process_say(buf_str(&out));
    return count == 0 ? 0 : EXIT_FOUND;
}

static int say_refusal(const struct http_reply *reply, const json_t *answer)
{
    struct error error = {0};
    const json_t *refusal = json_object_get(answer, "error");
    err set = error_set(&error, INVALID, ERROR_INVALID_REQUEST, "%s (%d)",
                        text_of(refusal, "message"), reply->status);
    error_hint(&error, "%s", text_of(refusal, "hint"));
    process_complain(&error);
    return set == OK ? 0 : 1;
}

static int say(struct arena *arena, const struct http_reply *reply, bool json)
{
    json_t *answer = json_loadb(reply->body.data, reply->body.size, 0, NULL);
    int code = reply->status != 200 ? say_refusal(reply, answer) : 0;
    if (code == 0 && json) {
        process_say(str_format(arena, "%.*s\n", STR_ARG(reply->body)));
        code = json_is_true(json_object_get(answer, "sound")) ? 0 : EXIT_FOUND;
    } else if (code == 0) {
        code = say_report(arena, answer);
    }
    json_decref(answer);
    return code;
}

int backup_command(const struct config_source *source, const char *directory,
                   enum file_tree_how how, bool json)
{
    AUTO_ARENA struct arena *arena = arena_create(COMMAND_BYTES_MAX);
    struct config *config = NULL;
    struct error error = {0};
    struct http_reply reply = {0};
    str data = {0};
    str target = {0};
    str body = {0};
    err result = config_load(arena, source, &config, &error);
    if (result != OK) {
        process_complain(&error);
        return 2;
    }
    result = file_absolute(arena, config_text(config, CONFIG_SERVER_DATA), &data, &error);
    result = result == OK ? file_absolute(arena, str_from(directory), &target, &error) : result;
    result = result == OK ? print_request(arena, target, how, &body, &error) : result;
    result = result == OK ? ask(arena, data, body, &reply, &error) : result;
    if (result != OK) {
        process_complain(&error);
        return EXIT_UNREACHABLE;
    }
    return say(arena, &reply, json);
}
