#include "cli/commands.h"

#include <stdio.h>

#ifndef LHBOX_VERSION
#define LHBOX_VERSION "0.0.0"
#endif

static int run(struct cli *cli)
{
    (void)cli;
    printf("lhbox %s\n", LHBOX_VERSION);
    return CLI_OK;
}

const struct cli_command cli_version = {
    .path = "version",
    .arguments = "",
    .summary = "Print the version",
    .example = "lhbox version",
    .run = run,
};
