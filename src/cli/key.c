#include "cli/commands.h"
#include "cli/output.h"
#include "cli/remote.h"

static const struct cli_flag create_flags[] = {
    {"level", CLI_TEXT, "LEVEL", NULL, "read, write or admin"},
    {"expires-at", CLI_TEXT, "TIME", "never", "when it stops being good, RFC 3339"},
    {"save", CLI_TEXT, "FILE", NULL, "write the key there, mode 0600"},
    {"show-key", CLI_SWITCH, NULL, NULL, "print it instead, once"},
};

static const struct cli_flag list_flags[] = {
    {"limit", CLI_NUMBER, "N", "100", "at most so many, up to 1,000"},
    {"cursor", CLI_TEXT, "TEXT", NULL, "go on where the list before ended"},
};

static json_t *create_body(struct cli *cli)
{
    str level = cli_text(cli, "level");
    str expires_at = cli_text(cli, "expires-at");
    json_t *body = json_pack("{s:s%, s:s%}", "name", cli->arguments[0].data, cli->arguments[0].size,
                             "level", level.data, level.size);
    if (expires_at.data != NULL && body != NULL) {
        json_object_set_new(body, "expires_at", json_stringn(expires_at.data, expires_at.size));
    }
    return body;
}

static int keep_created(struct cli *cli, const struct secret_place *place, const json_t *answer)
{
    str key = output_text(cli, answer, "api_key", OUTPUT_TEXT);
    if (output_json(cli, answer)) {
        return place->path.data != NULL ? secret_keep(cli, place, key, key) : CLI_OK;
    }
    int kept = secret_keep(cli, place, key, key);
    cli_note("key %s made", json_string_value(json_object_get(answer, "id")));
    return kept;
}

static int create(struct cli *cli)
{
    struct remote remote = {0};
    struct secret_place place = {0};
    json_t *answer = NULL;
    if (!cli_given(cli, "level")) {
        return cli_usage_error(cli, "--level read, write or admin is wanted");
    }
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        result = secret_prepare(cli, &place);
    }
    if (result == CLI_OK) {
        result = remote_call(&remote, "POST", STR("/v1/keys"), create_body(cli), &answer);
        if (result == CLI_OK) {
            result = keep_created(cli, &place, answer);
        } else {
            secret_abandon(&place);
        }
    }
    json_decref(answer);
    remote_close(&remote);
    return result;
}

static int list(struct cli *cli)
{
    static const struct output_column columns[] = {
        {"ID", "id", OUTPUT_TEXT},
        {"NAME", "name", OUTPUT_TEXT},
        {"LEVEL", "level", OUTPUT_TEXT},
        {"CREATED", "created_at", OUTPUT_TEXT},
        {"EXPIRES", "expires_at", OUTPUT_TEXT},
        {"LAST USED", "last_used_at", OUTPUT_TEXT},
    };
    struct remote remote = {0};
    json_t *answer = NULL;
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        str path = remote_query(&remote, STR("/v1/keys"), "limit", cli_text(cli, "limit"));
        path = remote_query(&remote, path, "cursor", cli_text(cli, "cursor"));
        result = remote_call(&remote, "GET", path, NULL, &answer);
    }
    if (result == CLI_OK) {
        result = output_list(cli, answer, "keys", columns, ARRAY_COUNT(columns));
    }
    remote_close(&remote);
    return result;
}

static int delete_key(struct cli *cli)
{
    struct remote remote = {0};
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        str id = remote_part(&remote, cli->arguments[0]);
        str path = str_format(cli->arena, "/v1/keys/%.*s", STR_ARG(id));
        result = remote_call(&remote, "DELETE", path, NULL, NULL);
    }
    if (result == CLI_OK) {
        cli_note("key %.*s is good for nothing from now on", STR_ARG(cli->arguments[0]));
    }
    remote_close(&remote);
    return result;
}

const struct cli_command cli_key_create = {
    .path = "key create",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Make an API key",
    .text =
        "The key is told once. read sees, write also changes tables and sinks, admin also keys.",
    .example = "lhbox key create dashboard --level read --save ./dashboard.key",
    .flags = create_flags,
    .flag_count = ARRAY_COUNT(create_flags),
    .access = CLI_API,
    .run = create,
};

const struct cli_command cli_key_list = {
    .path = "key list",
    .arguments = "",
    .summary = "List the API keys, never the keys themselves",
    .example = "lhbox key list",
    .flags = list_flags,
    .flag_count = ARRAY_COUNT(list_flags),
    .access = CLI_API,
    .run = list,
};

const struct cli_command cli_key_delete = {
    .path = "key delete",
    .arguments = "ID",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Revoke an API key, at once",
    .example = "lhbox key delete 0a1b2c3d4e5f",
    .access = CLI_API,
    .run = delete_key,
};
