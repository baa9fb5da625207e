/* The table of commands as docs/cli.md. */
#include "cli/cli.h"

#include <stdio.h>

static void print_flags(const struct cli_command *command)
{
    if (command->flag_count == 0) {
        return;
    }
    printf("| flag | default | |\n|---|---|---|\n");
    for (size_t index = 0; index < command->flag_count; index++) {
        const struct cli_flag *flag = &command->flags[index];
        printf("| `--%s%s%s` | %s | %s%s |\n", flag->name, flag->value != NULL ? " " : "",
               flag->value != NULL ? flag->value : "", flag->preset != NULL ? flag->preset : "",
               flag->help, flag->kind == CLI_LIST ? "; may be given again" : "");
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
        const struct cli_flag *flag = &cli_common_flags[index];
        printf("| `--%s%s%s` | %s | %s |\n", flag->name, flag->value != NULL ? " " : "",
               flag->value != NULL ? flag->value : "", flag->preset != NULL ? flag->preset : "",
               flag->help);
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
