#include "cli/commands.h"
#include "cli/output.h"
#include "cli/remote.h"

#define BOOTSTRAP_FILE "./lhbox-data/keys/bootstrap"

static const struct cli_flag create_flags[] = {
    {"save", CLI_TEXT, "FILE", NULL, "write the project's first admin key there, mode 0600"},
    {"show-key", CLI_SWITCH, NULL, NULL, "print it instead, once"},
    {"bootstrap-file", CLI_TEXT, "FILE", BOOTSTRAP_FILE, "file with the installation's secret"},
};

static const struct cli_flag list_flags[] = {
    {"bootstrap-file", CLI_TEXT, "FILE", BOOTSTRAP_FILE, "file with the installation's secret"},
};

/* These two routes want the installation's own secret, which `lhbox init` wrote. */
static int open_with_bootstrap(struct cli *cli, struct remote *out_remote)
{
    str key = {0};
    str path = cli_text(cli, "bootstrap-file");
    int result = profile_read_key(cli, path.data != NULL ? path : STR(BOOTSTRAP_FILE), "secret",
                                  &key);
    return result == CLI_OK ? remote_open_with_key(cli, key, out_remote) : result;
}

static int keep_created(struct cli *cli, const struct secret_place *place, const json_t *answer)
{
    str key = output_text(cli, answer, "api_key", OUTPUT_TEXT);
    if (output_json(cli, answer)) {
        return place->path.data != NULL ? secret_keep(cli, place, key, key) : CLI_OK;
    }
    int kept = secret_keep(cli, place, key, key);
    cli_note("project %s made", json_string_value(json_object_get(answer, "id")));
    return kept;
}

static int create(struct cli *cli)
{
    struct remote remote = {0};
    struct secret_place place = {0};
    json_t *answer = NULL;
    int result = open_with_bootstrap(cli, &remote);
    if (result == CLI_OK) {
        result = secret_prepare(cli, &place);
    }
    if (result == CLI_OK) {
        json_t *body = json_pack("{s:s%}", "name", cli->arguments[0].data, cli->arguments[0].size);
        result = remote_call(&remote, "POST", STR("/v1/projects"), body, &answer);
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
        {"CREATED", "created_at", OUTPUT_TEXT},
    };
    struct remote remote = {0};
    json_t *answer = NULL;
    int result = open_with_bootstrap(cli, &remote);
    if (result == CLI_OK) {
        result = remote_call(&remote, "GET", STR("/v1/projects"), NULL, &answer);
    }
    if (result == CLI_OK) {
        result = output_list(cli, answer, "projects", columns, ARRAY_COUNT(columns));
    }
    remote_close(&remote);
    return result;
}

const struct cli_command cli_project_create = {
    .path = "project create",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Make a project, with its first admin key",
    .text = "Needs the installation's secret, which `lhbox init` wrote to keys/bootstrap.",
    .example = "lhbox project create weather --save ./weather-admin.key",
    .flags = create_flags,
    .flag_count = ARRAY_COUNT(create_flags),
    .access = CLI_API,
    .run = create,
};

const struct cli_command cli_project_list = {
    .path = "project list",
    .arguments = "",
    .summary = "List the projects of the installation",
    .example = "lhbox project list",
    .flags = list_flags,
    .flag_count = ARRAY_COUNT(list_flags),
    .access = CLI_API,
    .run = list,
};
