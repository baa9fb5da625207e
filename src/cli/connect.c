#include "cli/commands.h"
#include "cli/output.h"
#include "cli/remote.h"

#include <stdio.h>

#define KEY_PLACEHOLDER "<your API key>"

static const struct cli_flag flags[] = {
    {"warehouse", CLI_TEXT, "NAME", "the first one", "which warehouse"},
    {"hide-key", CLI_SWITCH, NULL, NULL, "leave a placeholder where the API key stands"},
};

/* The block as it can be pasted: with the key of this profile. */
static void print_block(struct cli *cli, const char *engine, str block, str api_key)
{
    if (cli->argument_count == 0) {
        printf("# %s\n", engine);
    }
    i64 at = str_find(block, STR(KEY_PLACEHOLDER));
    if (at < 0 || cli_given(cli, "hide-key")) {
        output_print(block);
    } else {
        output_print(str_slice(block, 0, (size_t)at));
        output_print(api_key);
        output_print(str_slice(block, (size_t)at + sizeof(KEY_PLACEHOLDER) - 1, block.size));
    }
    printf("\n");
}

static int print_blocks(struct cli *cli, const json_t *answer, str api_key)
{
    const json_t *blocks = json_object_get(answer, "blocks");
    const char *engine = NULL;
    json_t *block = NULL;
    size_t printed = 0;
    json_object_foreach((json_t *)(uintptr_t)blocks, engine, block)
    {
        if (cli->argument_count == 0 || str_equal(str_from(engine), cli->arguments[0])) {
            str text = {json_string_value(block), json_string_length(block)};
            print_block(cli, engine, text, api_key);
            printed++;
        }
    }
    if (printed == 0) {
        return cli_usage_error(cli, "there is no block for `%.*s`", STR_ARG(cli->arguments[0]));
    }
    const char *note = json_string_value(json_object_get(answer, "sinks_note"));
    if (note != NULL) {
        cli_note("%s", note);
    }
    return CLI_OK;
}

static int run(struct cli *cli)
{
    struct remote remote = {0};
    json_t *answer = NULL;
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        str warehouse = cli_text(cli, "warehouse");
        warehouse = warehouse.data != NULL ? warehouse : remote.profile.warehouse;
        str path = remote_query(&remote, STR("/v1/connection"), "warehouse", warehouse);
        result = remote_call(&remote, "GET", path, NULL, &answer);
    }
    if (result == CLI_OK && !output_json(cli, answer)) {
        result = print_blocks(cli, answer, remote.profile.api_key);
    }
    json_decref(answer);
    remote_close(&remote);
    return result;
}

const struct cli_command cli_connect = {
    .path = "connect",
    .arguments = "[duckdb|pyiceberg|spark|trino|curl]",
    .arguments_max = 1,
    .summary = "Print what to paste into an engine, to read the tables",
    .text = "The block is printed on stdout, with your API key in its place, and a note about "
            "sinks on\n"
            "stderr. Without a name the blocks of all engines are printed.",
    .example = "lhbox connect duckdb --warehouse garden",
    .flags = flags,
    .flag_count = ARRAY_COUNT(flags),
    .access = CLI_API,
    .run = run,
};
