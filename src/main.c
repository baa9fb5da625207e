/* lhbox: the table of commands, and the four that are a server. */
#include "cli/commands.h"
#include "server/backup.h"
#include "server/recovery.h"
#include "server/serve.h"

#include "base/assert.h"

enum { OVERRIDES_MAX = 128, SETTING_KEY_MAX = 64 };

#define CONFIG_FLAGS                                                                               \
    {"config", CLI_TEXT, "FILE", "/etc/lhbox/lhbox.conf, then ./lhbox.conf", "settings"},          \
        {"data", CLI_TEXT, "DIR", "./lhbox-data", "the data directory"},                           \
        {"listen", CLI_TEXT, "ADDRESS", "127.0.0.1", "where to listen"},                           \
        {"port", CLI_NUMBER, "N", "8181", "0 takes a free one"},                                   \
        {"set", CLI_LIST, "SECTION.KEY=VALUE", NULL, "any setting of docs/configuration.md"}

static const struct cli_flag config_flags[] = {CONFIG_FLAGS};

static const struct cli_flag init_flags[] = {
    {"save", CLI_TEXT, "FILE", NULL, "write the first admin key there, mode 0600"},
    {"show-key", CLI_SWITCH, NULL, NULL, "print it instead, once"},
    CONFIG_FLAGS,
};

static const struct cli_flag backup_flags[] = {
    {"link", CLI_SWITCH, NULL, NULL, "hard links in place of copies; the same file system only"},
    {"json", CLI_SWITCH, NULL, NULL, "print the report as JSON"},
    CONFIG_FLAGS,
};

static const struct cli_flag recover_flags[] = {
    {"json", CLI_SWITCH, NULL, NULL, "print the report as JSON"},
    CONFIG_FLAGS,
};

struct settings {
    struct config_source source;
    struct config_override overrides[OVERRIDES_MAX];
};

static const char *c_string(struct cli *cli, str text)
{
    str copy = str_copy(cli->arena, text);
    assert(copy.data != NULL); /* the command line is smaller than the arena */
    return copy.data;
}

static int settings_add(struct cli *cli, struct settings *settings, str key, str value)
{
    if (settings->source.override_count == OVERRIDES_MAX) {
        return cli_usage_error(cli, "too many settings");
    }
    settings->overrides[settings->source.override_count] = (struct config_override){
        c_string(cli, key), c_string(cli, value)};
    settings->source.override_count++;
    return CLI_OK;
}

static int settings_read(struct cli *cli, struct settings *settings)
{
    static const char *const shortcuts[][2] = {
        {"data", "server.data"}, {"listen", "server.listen"}, {"port", "server.port"}};
    *settings = (struct settings){0};
    settings->source.overrides = settings->overrides;
    if (cli_given(cli, "config")) {
        settings->source.file = c_string(cli, cli_text(cli, "config"));
    }
    int result = CLI_OK;
    for (size_t index = 0; result == CLI_OK && index < ARRAY_COUNT(shortcuts); index++) {
        str value = cli_text(cli, shortcuts[index][0]);
        if (value.data != NULL) {
            result = settings_add(cli, settings, str_from(shortcuts[index][1]), value);
        }
    }
    str setting = {0};
    for (size_t index = 0; result == CLI_OK && cli_list(cli, "set", index, &setting); index++) {
        i64 equals = str_find_byte(setting, '=');
        if (equals <= 0) {
            return cli_usage_error(cli, "--set wants SECTION.KEY=VALUE, not `%.*s`",
                                   STR_ARG(setting));
        }
        result = settings_add(cli, settings, str_slice(setting, 0, (size_t)equals),
                              str_slice(setting, (size_t)equals + 1, setting.size));
    }
    return result;
}

static int dev(struct cli *cli)
{
    struct settings settings;
    int result = settings_read(cli, &settings);
    return result == CLI_OK ? serve_dev(&settings.source) : result;
}

static int serve(struct cli *cli)
{
    struct settings settings;
    int result = settings_read(cli, &settings);
    return result == CLI_OK ? serve_run(&settings.source) : result;
}

static int config_check(struct cli *cli)
{
    struct settings settings;
    int result = settings_read(cli, &settings);
    return result == CLI_OK ? serve_config_check(&settings.source) : result;
}

static int init(struct cli *cli)
{
    struct settings settings;
    if (cli_given(cli, "save") == cli_given(cli, "show-key")) {
        return cli_usage_error(cli, "the key is told once: say --save FILE (mode 0600), or "
                                    "--show-key to print it");
    }
    int result = settings_read(cli, &settings);
    if (result != CLI_OK) {
        return result;
    }
    struct serve_init_options options = {.source = settings.source, .show = SERVE_SHOW_KEY};
    if (cli_given(cli, "save")) {
        options.show = SERVE_SAVE_KEY;
        options.save_file = c_string(cli, cli_text(cli, "save"));
    }
    return serve_init(&options);
}

static int backup(struct cli *cli)
{
    struct settings settings;
    int result = settings_read(cli, &settings);
    return result != CLI_OK
               ? result
               : backup_command(&settings.source, c_string(cli, cli->arguments[0]),
                                cli_given(cli, "link") ? FILE_TREE_LINK : FILE_TREE_COPY,
                                cli_given(cli, "json"));
}

static int recover(struct cli *cli)
{
    struct settings settings;
    int result = settings_read(cli, &settings);
    return result != CLI_OK
               ? result
               : recovery_command(&settings.source,
                                  cli_given(cli, "json") ? RESTORE_JSON : RESTORE_TEXT);
}

static const struct cli_command command_dev = {
    .path = "dev",
    .arguments = "",
    .summary = "Start a server to try things on; needs no configuration",
    .text =
        "Makes the data directory, a project, a warehouse, a table, a sink and keys, serves on\n"
        "127.0.0.1 and prints blocks to paste. The other commands find it by themselves.",
    .example = "lhbox dev",
    .flags = config_flags,
    .flag_count = ARRAY_COUNT(config_flags),
    .run = dev,
};

static const struct cli_command command_init = {
    .path = "init",
    .arguments = "",
    .summary = "Make a data directory for `lhbox serve`",
    .text = "Makes the ledger, the project `default` with its first admin key, and keys/bootstrap, "
            "the\n"
            "secret that makes more projects.",
    .example = "lhbox init --data /var/lib/lhbox --save ./admin.key",
    .flags = init_flags,
    .flag_count = ARRAY_COUNT(init_flags),
    .run = init,
};

static const struct cli_command command_serve = {
    .path = "serve",
    .arguments = "",
    .summary = "Serve a data directory",
    .text = "SIGTERM stops it in good order: requests under way are finished, nothing is lost.",
    .example = "lhbox serve --config /etc/lhbox/lhbox.conf",
    .flags = config_flags,
    .flag_count = ARRAY_COUNT(config_flags),
    .run = serve,
};

static const struct cli_command command_config_check = {
    .path = "config check",
    .arguments = "",
    .summary = "Check the settings and print the effective values",
    .text =
        "Later wins: the file, LHBOX_<SECTION>_<KEY>, flags. Ends with 5 when something is wrong.",
    .example = "lhbox config check --config ./lhbox.conf",
    .flags = config_flags,
    .flag_count = ARRAY_COUNT(config_flags),
    .run = config_check,
};

static const struct cli_command command_backup = {
    .path = "backup",
    .arguments = "DIR",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Copy the data directory while it is served",
    .text =
        "Asks the server of this machine's data directory. Sends and rolls go on; every file is\n"
        "read back, and every sink of the copy is verified. Ends with 5 when that finds "
        "something.\n"
        "To restore: stop the server, put the copy in the data directory's place, start.",
    .example = "lhbox backup /mnt/backup/2026-09-21 --data /var/lib/lhbox",
    .flags = backup_flags,
    .flag_count = ARRAY_COUNT(backup_flags),
    .run = backup,
};

static const struct cli_command command_recover = {
    .path = "recover",
    .arguments = "",
    .summary = "Bring an older copy of the ledger back to what the store and the tables say",
    .text =
        "For a data directory whose lhbox.db was put back from a copy. `lhbox serve` does it by\n"
        "itself for copies of `lhbox backup` and for those older than a minute; for others run it\n"
        "before serving. The server is stopped. Ends with 5 when a sink could not be recovered.",
    .example = "lhbox recover --data /var/lib/lhbox",
    .flags = recover_flags,
    .flag_count = ARRAY_COUNT(recover_flags),
    .run = recover,
};

/* In the order of help and docs/cli.md. */
static const struct cli_command *const commands[] = {
    &command_dev,
    &command_init,
    &command_serve,
    &command_config_check,
    &command_backup,
    &command_recover,
    &cli_login,
    &cli_connect,
    &cli_project_create,
    &cli_project_list,
    &cli_warehouse_create,
    &cli_warehouse_list,
    &cli_warehouse_get,
    &cli_table_create,
    &cli_table_list,
    &cli_table_get,
    &cli_table_document,
    &cli_table_delete,
    &cli_sink_create,
    &cli_sink_update,
    &cli_sink_list,
    &cli_sink_get,
    &cli_sink_delete,
    &cli_sink_send,
    &cli_sink_roll,
    &cli_sink_batches,
    &cli_sink_batches_discard,
    &cli_sink_batches_resolve,
    &cli_sink_rejects,
    &cli_sink_resume,
    &cli_sink_dedupe,
    &cli_verify,
    &cli_key_create,
    &cli_key_list,
    &cli_key_delete,
    &cli_completion,
    &cli_version,
    &cli_docs,
};

int main(int argc, char **argv)
{
    return cli_main(commands, ARRAY_COUNT(commands), argc, argv);
}
