/* The table of commands as docs/cli.md. */
#include "cli/cli.h"

#include <stdio.h>

/* A bar would end the cell. */
static void print_cell(const char *text)
{
    for (const char *at = text; *at != 0; at++) {
        printf("%s%c", *at == '|' ? "\\" : "", *at);
    }
}

static void print_flag(const struct cli_flag *flag)
{
    printf("| `--%s", flag->name);
    if (flag->value != NULL) {
        printf(" ");
        print_cell(flag->value);
    }
    printf("` | ");
    print_cell(flag->preset != NULL ? flag->preset : "");
    printf(" | ");
    print_cell(flag->help);
    printf("%s |\n", flag->kind == CLI_LIST ? "; may be given again" : "");
}

static void print_flags(const struct cli_command *command)
{
    if (command->flag_count == 0) {
        return;
    }
    printf("| flag | default | |\n|---|---|---|\n");
    for (size_t index = 0; index < command->flag_count; index++) {
        print_flag(&command->flags[index]);
    }
    printf("\n");
}

static void print_command(const struct cli_command *command)
{
    printf("## lhbox %s\n\n%s.\n\n", command->path, command->summary);
    printf("    lhbox %s%s%s [flags]\n\n", command->path, command->arguments[0] != 0 ? " " : "",
           command->arguments);
    if (command->text != NULL) {
        printf("%s\n\n", command->text);
    }
    print_flags(command);
    if (command->example != NULL) {
        printf("```sh\n%s\n```\n\n", command->example);
    }
}

static int run(struct cli *cli)
{
    printf(
        "# The command line\n\n"
        "Made from the table of commands by `lhbox docs`; `lhbox COMMAND --help` shows the "
        "same.\n\n"
        "Exit codes: 0 all is well, 1 the server refused (its message and hint are on stderr) or a "
        "local step failed, 2 the command line is wrong, 3 the server cannot be reached, 4 timed "
        "out waiting, 5 a check found something.\n\n"
        "The server and the API key come from `--url` and `--key-file`, else from `LHBOX_URL` and "
        "`LHBOX_API_KEY`, else from the profile that `lhbox login` wrote "
        "(`$XDG_CONFIG_HOME/lhbox/profile.json`), else from `./lhbox-data/dev.json`, which "
        "`lhbox dev` writes. A profile's key is sent to that profile's server only.\n\n"
        "Commands that speak to the server also take:\n\n| flag | default | |\n|---|---|---|\n");
    for (size_t index = 0; index < CLI_COMMON_FLAG_COUNT; index++) {
        print_flag(&cli_common_flags[index]);
    }
    printf("\n");
    for (size_t index = 0; index < cli->command_count; index++) {
        if (cli->commands[index]->summary[0] != 0) {
            print_command(cli->commands[index]);
        }
    }
    return CLI_OK;
}

const struct cli_command cli_docs = {
    .path = "docs",
    .arguments = "",
    .summary = "",
    .run = run,
};
