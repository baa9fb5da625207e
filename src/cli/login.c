#include "cli/commands.h"
#include "cli/remote.h"

#include <stdio.h>

/* The key is tried before it is written down. */
static int run(struct cli *cli)
{
    struct remote remote = {0};
    json_t *answer = NULL;
    str path = {0};
    if (!cli_given(cli, "url") || !cli_given(cli, "key-file")) {
        return cli_usage_error(cli, "--url and --key-file are wanted");
    }
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        result = remote_call(&remote, "GET", STR("/v1/warehouses?limit=1"), NULL, &answer);
    }
    if (result == CLI_OK) {
        result = profile_save(cli, remote.profile.url, remote.profile.api_key, &path);
    }
    if (result == CLI_OK) {
        printf("%.*s is remembered in %.*s\n", STR_ARG(remote.profile.url), STR_ARG(path));
    }
    json_decref(answer);
    remote_close(&remote);
    return result;
}

const struct cli_command cli_login = {
    .path = "login",
    .arguments = "",
    .summary = "Remember a server and an API key for this user",
    .text = "Tries the key, then writes it to $XDG_CONFIG_HOME/lhbox/profile.json (mode 0600).\n"
            "LHBOX_URL and LHBOX_API_KEY, or --url and --key-file, go before what is remembered.",
    .example = "lhbox login --url https://lhbox.example.com --key-file ./admin.key",
    .access = CLI_API,
    .run = run,
};
