#include "cli/remote.h"

#include "cli/output.h"

#include "base/time.h"

#include <stdio.h>

static int remote_client(struct cli *cli, struct remote *remote)
{
    struct error error = {0};
    const struct http_client_options options = {.user_agent = STR("lhbox-cli")};
    remote->cli = cli;
    if (http_client_create(cli->arena, &options, &remote->client, &error) != OK) {
        return cli_failed_error(&error);
    }
    return CLI_OK;
}

int remote_open(struct cli *cli, struct remote *out_remote)
{
    struct remote remote = {0};
    int result = profile_load(cli, &remote.profile);
    if (result != CLI_OK) {
        return result;
    }
    if (remote.profile.api_key.data == NULL) {
        (void)cli_failed("no API key for %.*s", STR_ARG(remote.profile.url));
        cli_note("hint: --key-file FILE, LHBOX_API_KEY, or `lhbox login`");
        return CLI_USAGE;
    }
    result = remote_client(cli, &remote);
    *out_remote = remote;
    return result;
}

int remote_open_with_key(struct cli *cli, str key, struct remote *out_remote)
{
    struct remote remote = {0};
    int result = profile_load(cli, &remote.profile);
    if (result == CLI_OK) {
        remote.profile.api_key = key;
        result = remote_client(cli, &remote);
    }
    *out_remote = remote;
    return result;
}

void remote_close(struct remote *remote)
{
    http_client_destroy(remote->client);
}

/* ---- refusals ---- */

static const char *text_member(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

int remote_refused(const struct cli *cli, const struct http_reply *reply)
{
    json_t *json = json_loadb(reply->body.data != NULL ? reply->body.data : "", reply->body.size, 0,
                              NULL);
    const json_t *error = json_object_get(json, "error");
    if (error != NULL) {
        const char *hint = text_member(error, "hint");
        (void)cli_failed("%s: %s", text_member(error, "code"), text_member(error, "message"));
        if (hint[0] != 0) {
            cli_note("hint: %s", hint);
        }
    } else {
        (void)cli_failed("the server answered %d", reply->status);
    }
    if (json != NULL && cli_given(cli, "json")) {
        printf("%.*s\n", STR_ARG(reply->body));
    }
    json_decref(json);
    return CLI_REFUSED;
}

static int unreached(err kind, const struct error *error)
{
    (void)cli_failed_error(error);
    if (kind == IO || kind == UNKNOWN) {
        if (kind == UNKNOWN) {
            cli_note("it may have been done: look before you do it again");
        }
        return CLI_UNREACHABLE;
    }
    return CLI_REFUSED;
}

/* ---- calling ---- */

static void header_add(struct http_call *call, const char *name, str value)
{
    call->headers[call->header_count++] = (struct http_client_header){str_from(name), value};
}

static int body_text(struct cli *cli, json_t *body, str *out_text)
{
    str text = output_dump(cli, body, JSON_COMPACT);
    json_decref(body);
    if (text.data == NULL) {
        return cli_failed("the arguments are not UTF-8");
    }
    *out_text = text;
    return CLI_OK;
}

static int reply_take(const struct remote *remote, const struct http_reply *reply,
                      json_t **out_json)
{
    if (reply->status < 200 || reply->status > 299) {
        return remote_refused(remote->cli, reply);
    }
    json_t *json = NULL;
    if (reply->body.size > 0) {
        json = json_loadb(reply->body.data, reply->body.size, JSON_DECODE_ANY, NULL);
        if (json == NULL) {
            return cli_failed("the answer of %.*s is not JSON: is it an lhbox?",
                              STR_ARG(remote->profile.url));
        }
    }
    if (out_json == NULL) {
        json_decref(json);
    } else {
        *out_json = json;
    }
    return CLI_OK;
}

int remote_call_within(struct remote *remote, const char *method, str path, json_t *body,
                       i64 timeout_us, json_t **out_json)
{
    struct cli *cli = remote->cli;
    struct error error = {0};
    struct http_reply reply = {0};
    struct http_call call = {.method = str_from(method), .timeout_us = timeout_us};
    if (body != NULL) {
        int made = body_text(cli, body, &call.body);
        if (made != CLI_OK) {
            return made;
        }
        header_add(&call, "Content-Type", STR("application/json"));
    }
    str authorization = str_format(cli->arena, "Bearer %.*s", STR_ARG(remote->profile.api_key));
    call.url = str_format(cli->arena, "%.*s%.*s", STR_ARG(remote->profile.url), STR_ARG(path));
    header_add(&call, "Authorization", authorization);
    err called = http_client_call(remote->client, cli->arena, &call, &reply, &error);
    return called == OK ? reply_take(remote, &reply, out_json) : unreached(called, &error);
}

int remote_call(struct remote *remote, const char *method, str path, json_t *body,
                json_t **out_json)
{
    return remote_call_within(remote, method, path, body, 0, out_json);
}

str remote_part(struct remote *remote, str text)
{
    return http_client_escape(remote->cli->arena, text);
}

str remote_query(struct remote *remote, str path, const char *name, str value)
{
    if (value.data == NULL) {
        return path;
    }
    str escaped = http_client_escape(remote->cli->arena, value);
    return str_format(remote->cli->arena, "%.*s%c%s=%.*s", STR_ARG(path),
                      str_find_byte(path, '?') < 0 ? '?' : '&', name, STR_ARG(escaped));
}
