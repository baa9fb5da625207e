#include "cli/commands.h"

#include <stdio.h>

#ifndef LHBOX_VERSION
#define LHBOX_VERSION "0.0.0"
#endif

static const struct cli_flag version_flags[] = {
    {"json", CLI_SWITCH, NULL, NULL, "print it as JSON"},
};

static int run(struct cli *cli)
{
    if (cli_given(cli, "json")) {
        printf("{\"version\":\"%s\"}\n", LHBOX_VERSION);
    } else {
        printf("lhbox %s\n", LHBOX_VERSION);
    }
    return CLI_OK;
}

const struct cli_command cli_version = {
    .path = "version",
    .arguments = "",
    .summary = "Print the version",
    .example = "lhbox version",
    .flags = version_flags,
    .flag_count = ARRAY_COUNT(version_flags),
    .run = run,
};
