#include "cli/commands.h"
#include "cli/output.h"
#include "cli/remote.h"

static const struct cli_flag create_flags[] = {
    {"column", CLI_LIST, "NAME:TYPE[:required]", NULL, "a column, in order"},
    {"format-version", CLI_NUMBER, "2|3", "2", "Iceberg format version"},
    {"partition", CLI_LIST, "TEXT", NULL,
     "a partition field: day(ts), hour(ts), month(d), year(d)"},
    {"property", CLI_LIST, "NAME=VALUE", NULL, "a table property"},
    {"doc", CLI_TEXT, "TEXT", NULL, "what one row is"},
};

static const struct cli_flag list_flags[] = {
    {"warehouse", CLI_TEXT, "NAME", NULL, "of this warehouse only"},
    {"namespace", CLI_TEXT, "NAME", NULL, "of this namespace only"},
    {"limit", CLI_NUMBER, "N", "100", "at most so many, up to 1,000"},
    {"cursor", CLI_TEXT, "TEXT", NULL, "go on where the list before ended"},
};

static const struct cli_flag document_flags[] = {
    {"doc", CLI_TEXT, "TEXT", NULL, "what one row is"},
    {"column", CLI_LIST, "NAME=TEXT", NULL, "what a column holds"},
};

static const struct output_column lines[] = {
    {"table", "table", OUTPUT_TEXT},
    {"doc", "doc", OUTPUT_TEXT},
    {"format version", "format_version", OUTPUT_TEXT},
    {"partition", "partition", OUTPUT_TEXT},
    {"location", "location", OUTPUT_TEXT},
    {"uuid", "uuid", OUTPUT_TEXT},
    {"to describe it", "docs_hint", OUTPUT_TEXT},
};

static int print_table(struct cli *cli, json_t *answer)
{
    static const struct output_column columns[] = {
        {"COLUMN", "name", OUTPUT_TEXT},
        {"TYPE", "type", OUTPUT_TEXT},
        {"REQUIRED", "required", OUTPUT_TEXT},
        {"DOC", "doc", OUTPUT_TEXT},
    };
    if (cli_given(cli, "json")) {
        return output_object(cli, answer, lines, ARRAY_COUNT(lines));
    }
    int result = output_object(cli, json_incref(answer), lines, ARRAY_COUNT(lines));
    output_print(STR("\n"));
    (void)output_list(cli, answer, "columns", columns, ARRAY_COUNT(columns));
    return result;
}

/* ---- create ---- */

/* NAME:TYPE[:required]: the name ends at the first colon, the type at the last one outside
 * brackets. */
static json_t *column_json(str text)
{
    i64 colon = str_find_byte(text, ':');
    if (colon <= 0 || (size_t)colon + 1 == text.size) {
        return NULL;
    }
    str name = str_slice(text, 0, (size_t)colon);
    str type = str_slice(text, (size_t)colon + 1, text.size);
    bool required = str_ends(type, STR(":required"));
    if (required) {
        type = str_slice(type, 0, type.size - (sizeof(":required") - 1));
    }
    json_t *column = json_pack("{s:s%, s:s%}", "name", name.data, name.size, "type", type.data,
                               type.size);
    if (column != NULL && required) {
        json_object_set_new(column, "required", json_true());
    }
    return column;
}

static int add_columns(struct cli *cli, json_t *body)
{
    json_t *columns = json_array();
    str text = {0};
    json_object_set_new(body, "columns", columns);
    for (size_t index = 0; cli_list(cli, "column", index, &text); index++) {
        json_t *column = column_json(text);
        if (column == NULL) {
            return cli_usage_error(
                cli, "--column wants NAME:TYPE or NAME:TYPE:required, not `%.*s`", STR_ARG(text));
        }
        json_array_append_new(columns, column);
    }
    return json_array_size(columns) > 0
               ? CLI_OK
               : cli_usage_error(cli, "a table has columns: --column NAME:TYPE");
}

/* NAME=VALUE pairs of a list flag become members of `object`. */
static int add_pairs(struct cli *cli, const char *flag, json_t *object)
{
    str text = {0};
    for (size_t index = 0; cli_list(cli, flag, index, &text); index++) {
        i64 equals = str_find_byte(text, '=');
        if (equals <= 0) {
            return cli_usage_error(cli, "--%s wants NAME=VALUE, not `%.*s`", flag, STR_ARG(text));
        }
        str name = str_copy(cli->arena, str_slice(text, 0, (size_t)equals));
        str value = str_slice(text, (size_t)equals + 1, text.size);
        json_object_set_new(object, name.data, json_stringn(value.data, value.size));
    }
    return CLI_OK;
}

static int create_body(struct cli *cli, json_t *body)
{
    str text = {0};
    int result = add_columns(cli, body);
    if (result != CLI_OK) {
        return result;
    }
    if (cli_given(cli, "format-version")) {
        json_object_set_new(body, "format_version",
                            json_integer((json_int_t)cli_number(cli, "format-version", 2)));
    }
    if (cli_given(cli, "partition")) {
        json_t *partition = json_array();
        for (size_t index = 0; cli_list(cli, "partition", index, &text); index++) {
            json_array_append_new(partition, json_stringn(text.data, text.size));
        }
        json_object_set_new(body, "partition", partition);
    }
    if (cli_given(cli, "property")) {
        json_t *properties = json_object();
        json_object_set_new(body, "properties", properties);
        result = add_pairs(cli, "property", properties);
    }
    if (cli_given(cli, "doc")) {
        text = cli_text(cli, "doc");
        json_object_set_new(body, "doc", json_stringn(text.data, text.size));
    }
    return result;
}

static int create(struct cli *cli)
{
    struct remote remote = {0};
    json_t *answer = NULL;
    json_t *body = json_pack("{s:s%}", "table", cli->arguments[0].data, cli->arguments[0].size);
    if (body == NULL) {
        return cli_usage_error(cli, "the table's name is not UTF-8");
    }
    int result = create_body(cli, body);
    if (result == CLI_OK) {
        result = remote_open(cli, &remote);
    }
    if (result == CLI_OK) {
        result = remote_call(&remote, "POST", STR("/v1/tables"), json_incref(body), &answer);
    }
    json_decref(body);
    if (result == CLI_OK) {
        result = print_table(cli, answer);
    }
    remote_close(&remote);
    return result;
}

/* ---- the others ---- */

static str table_path(struct remote *remote, const char *rest)
{
    str name = remote_part(remote, remote->cli->arguments[0]);
    return str_format(remote->cli->arena, "/v1/tables/%.*s%s", STR_ARG(name), rest);
}

static int list(struct cli *cli)
{
    static const struct output_column columns[] = {{"TABLE", "table", OUTPUT_TEXT}};
    struct remote remote = {0};
    json_t *answer = NULL;
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        str path = STR("/v1/tables");
        path = remote_query(&remote, path, "warehouse", cli_text(cli, "warehouse"));
        path = remote_query(&remote, path, "namespace", cli_text(cli, "namespace"));
        path = remote_query(&remote, path, "limit", cli_text(cli, "limit"));
        path = remote_query(&remote, path, "cursor", cli_text(cli, "cursor"));
        result = remote_call(&remote, "GET", path, NULL, &answer);
    }
    if (result == CLI_OK) {
        result = output_list(cli, answer, "tables", columns, ARRAY_COUNT(columns));
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
        result = remote_call(&remote, "GET", table_path(&remote, ""), NULL, &answer);
    }
    if (result == CLI_OK) {
        result = print_table(cli, answer);
    }
    remote_close(&remote);
    return result;
}

static int document_body(struct cli *cli, json_t *body)
{
    str doc = cli_text(cli, "doc");
    if (doc.data != NULL) {
        json_object_set_new(body, "doc", json_stringn(doc.data, doc.size));
    }
    if (!cli_given(cli, "column")) {
        return doc.data != NULL ? CLI_OK
                                : cli_usage_error(cli, "--doc or --column NAME=TEXT is wanted");
    }
    json_t *columns = json_object();
    json_object_set_new(body, "columns", columns);
    return add_pairs(cli, "column", columns);
}

static int document(struct cli *cli)
{
    struct remote remote = {0};
    json_t *answer = NULL;
    json_t *body = json_object();
    int result = document_body(cli, body);
    if (result == CLI_OK) {
        result = remote_open(cli, &remote);
    }
    if (result == CLI_OK) {
        result = remote_call(&remote, "PATCH", table_path(&remote, "/docs"), json_incref(body),
                             &answer);
    }
    json_decref(body);
    if (result == CLI_OK) {
        result = print_table(cli, answer);
    }
    remote_close(&remote);
    return result;
}

static int delete_table(struct cli *cli)
{
    struct remote remote = {0};
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        result = remote_call(&remote, "DELETE", table_path(&remote, ""), NULL, NULL);
    }
    if (result == CLI_OK) {
        cli_note("%.*s is deleted", STR_ARG(cli->arguments[0]));
    }
    remote_close(&remote);
    return result;
}

const struct cli_command cli_table_create = {
    .path = "table create",
    .arguments = "WAREHOUSE.NAMESPACE.TABLE",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Make a table",
    .text = "Types are Iceberg's: boolean, int, long, float, double, decimal(10,2), date, time,\n"
            "timestamp, timestamptz, string, uuid, fixed[16], binary, list<string>, map<string, "
            "long>,\n"
            "struct<a: int, b: list<double>>. The namespace is made when it is missing.",
    .example =
        "lhbox table create garden.garden.events --column x:long:required --column who:string\n"
        "lhbox table create garden.garden.log --format-version 3 --partition 'day(ts)' "
        "--column ts:timestamptz:required",
    .flags = create_flags,
    .flag_count = ARRAY_COUNT(create_flags),
    .access = CLI_API,
    .run = create,
};

const struct cli_command cli_table_list = {
    .path = "table list",
    .arguments = "",
    .summary = "List the tables",
    .example = "lhbox table list --warehouse garden",
    .flags = list_flags,
    .flag_count = ARRAY_COUNT(list_flags),
    .access = CLI_API,
    .run = list,
};

const struct cli_command cli_table_get = {
    .path = "table get",
    .arguments = "WAREHOUSE.NAMESPACE.TABLE",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Show a table and its columns",
    .example = "lhbox table get garden.garden.events",
    .access = CLI_API,
    .run = get,
};

const struct cli_command cli_table_document = {
    .path = "table document",
    .arguments = "WAREHOUSE.NAMESPACE.TABLE",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Describe a table and its columns",
    .example = "lhbox table document garden.garden.events --doc 'one visit' "
               "--column 'who=name of the gate'",
    .flags = document_flags,
    .flag_count = ARRAY_COUNT(document_flags),
    .access = CLI_API,
    .run = document,
};

const struct cli_command cli_table_delete = {
    .path = "table delete",
    .arguments = "WAREHOUSE.NAMESPACE.TABLE",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Delete a table that no sink stands on",
    .example = "lhbox table delete garden.garden.events",
    .access = CLI_API,
    .run = delete_table,
};
