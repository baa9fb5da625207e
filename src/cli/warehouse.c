#include "cli/commands.h"
#include "cli/output.h"
#include "cli/remote.h"

static const struct cli_flag create_flags[] = {
    {"store", CLI_TEXT, "JSON", "{\"type\":\"dir\"}", "where the files are"},
    {"catalog", CLI_TEXT, "JSON", "{\"type\":\"embedded\"}", "who knows the tables"},
};

static const struct cli_flag list_flags[] = {
    {"limit", CLI_NUMBER, "N", "100", "at most so many, up to 1,000"},
    {"cursor", CLI_TEXT, "TEXT", NULL, "go on where the list before ended"},
};

static const struct output_column columns[] = {
    {"NAME", "name", OUTPUT_TEXT},
    {"STORE", "store.type", OUTPUT_TEXT},
    {"CATALOG", "catalog.type", OUTPUT_TEXT},
    {"TABLES", "tables_uri", OUTPUT_TEXT},
};

static const struct output_column lines[] = {
    {"name", "name", OUTPUT_TEXT},
    {"store", "store.type", OUTPUT_TEXT},
    {"catalog", "catalog.type", OUTPUT_TEXT},
    {"tables", "tables_uri", OUTPUT_TEXT},
};

/* A flag's JSON becomes a member. */
static int member_json(struct cli *cli, json_t *body, const char *name)
{
    str text = cli_text(cli, name);
    if (text.data == NULL) {
        return CLI_OK;
    }
    json_t *value = json_loadb(text.data, text.size, 0, NULL);
    if (value == NULL) {
        return cli_usage_error(cli, "--%s wants a JSON object", name);
    }
    json_object_set_new(body, name, value);
    return CLI_OK;
}

static int create(struct cli *cli)
{
    struct remote remote = {0};
    json_t *answer = NULL;
    json_t *body = json_pack("{s:s%}", "name", cli->arguments[0].data, cli->arguments[0].size);
    int result = member_json(cli, body, "store");
    if (result == CLI_OK) {
        result = member_json(cli, body, "catalog");
    }
    if (result == CLI_OK) {
        result = remote_open(cli, &remote);
    }
    if (result == CLI_OK) {
        result = remote_call(&remote, "POST", STR("/v1/warehouses"), json_incref(body), &answer);
    }
    json_decref(body);
    if (result == CLI_OK) {
        result = output_object(cli, answer, lines, ARRAY_COUNT(lines));
    }
    remote_close(&remote);
    return result;
}

static int list(struct cli *cli)
{
    struct remote remote = {0};
    json_t *answer = NULL;
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        str path = remote_query(&remote, STR("/v1/warehouses"), "limit", cli_text(cli, "limit"));
        path = remote_query(&remote, path, "cursor", cli_text(cli, "cursor"));
        result = remote_call(&remote, "GET", path, NULL, &answer);
    }
    if (result == CLI_OK) {
        result = output_list(cli, answer, "warehouses", columns, ARRAY_COUNT(columns));
    }
    remote_close(&remote);
    return result;
}

static int get(struct cli *cli)
{
    struct remote remote = {0};
    json_t *answer = NULL;
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        str name = remote_part(&remote, cli->arguments[0]);
        str path = str_format(cli->arena, "/v1/warehouses/%.*s", STR_ARG(name));
        result = remote_call(&remote, "GET", path, NULL, &answer);
    }
    if (result == CLI_OK) {
        result = output_object(cli, answer, lines, ARRAY_COUNT(lines));
    }
    remote_close(&remote);
    return result;
}

const struct cli_command cli_warehouse_create = {
    .path = "warehouse create",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Make a warehouse: an Iceberg catalog and its files",
    .text =
        "Without flags the files are in the server's data directory and the catalog is the one\n"
        "built in.",
    .example = "lhbox warehouse create garden",
    .flags = create_flags,
    .flag_count = ARRAY_COUNT(create_flags),
    .access = CLI_API,
    .run = create,
};

const struct cli_command cli_warehouse_list = {
    .path = "warehouse list",
    .arguments = "",
    .summary = "List the warehouses",
    .example = "lhbox warehouse list",
    .flags = list_flags,
    .flag_count = ARRAY_COUNT(list_flags),
    .access = CLI_API,
    .run = list,
};

const struct cli_command cli_warehouse_get = {
    .path = "warehouse get",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Show a warehouse",
    .example = "lhbox warehouse get garden",
    .access = CLI_API,
    .run = get,
};
