#include "cli/cli.h"

#include "cli/commands.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARENA_BYTES_MAX = 256 * MIB, PATH_WORDS_MAX = 4 };

/* ---- flags ---- */

const struct cli_flag cli_common_flags[CLI_COMMON_FLAG_COUNT] = {
    {"json", CLI_SWITCH, NULL, NULL, "print the API's answer as it is"},
    {"url", CLI_TEXT, "URL", "LHBOX_URL, else the profile's", "the server"},
    {"key-file", CLI_TEXT, "FILE", "LHBOX_API_KEY, else the profile's", "file with the API key"},
};

const struct cli_flag cli_help_flag = {"help", CLI_SWITCH, NULL, NULL, "print this"};

const struct cli_flag *cli_flag_at(const struct cli_command *command, size_t index)
{
    if (index < command->flag_count) {
        return &command->flags[index];
    }
    index -= command->flag_count;
    if (command->access == CLI_API) {
        if (index < CLI_COMMON_FLAG_COUNT) {
            return &cli_common_flags[index];
        }
        index -= CLI_COMMON_FLAG_COUNT;
    }
    return index == 0 ? &cli_help_flag : NULL;
}

static const struct cli_flag *flag_find(const struct cli_command *command, str name)
{
    const struct cli_flag *flag = NULL;
    for (size_t index = 0; (flag = cli_flag_at(command, index)) != NULL; index++) {
        if (str_equal(str_from(flag->name), name)) {
            return flag;
        }
    }
    return NULL;
}

/* The last value given for a flag; NULL when there is none. Asking for an unknown flag is a fault
 * of ours. */
static const struct cli_value *value_find(const struct cli *cli, const char *name)
{
    const struct cli_flag *flag = flag_find(cli->command, str_from(name));
    assert(flag != NULL);
    for (size_t index = cli->value_count; index > 0; index--) {
        if (cli->values[index - 1].flag == flag) {
            return &cli->values[index - 1];
        }
    }
    return NULL;
}

str cli_text(const struct cli *cli, const char *flag)
{
    const struct cli_value *value = value_find(cli, flag);
    return value != NULL ? value->text : (str){0};
}

bool cli_given(const struct cli *cli, const char *flag)
{
    return value_find(cli, flag) != NULL;
}

i64 cli_number(const struct cli *cli, const char *flag, i64 preset)
{
    const struct cli_value *value = value_find(cli, flag);
    i64 number = preset;
    if (value != NULL) {
        bool checked = str_to_i64(value->text, &number); /* when it was parsed */
        assert(checked);
    }
    return number;
}

bool cli_list(const struct cli *cli, const char *flag, size_t index, str *out_value)
{
    for (size_t at = 0; at < cli->value_count; at++) {
        if (strcmp(cli->values[at].flag->name, flag) != 0) {
            continue;
        }
        if (index == 0) {
            *out_value = cli->values[at].text;
            return true;
        }
        index--;
    }
    return false;
}

/* ---- parsing ---- */

static int value_add(struct cli *cli, const struct cli_flag *flag, str text)
{
    i64 number = 0;
    if (cli->value_count == CLI_VALUES_MAX) {
        return cli_usage_error(cli, "too many flags");
    }
    if (flag->kind == CLI_NUMBER && !str_to_i64(text, &number)) {
        return cli_usage_error(cli, "--%s wants a whole number, not `%.*s`", flag->name,
                               STR_ARG(text));
    }
    cli->values[cli->value_count++] = (struct cli_value){flag, text};
    return CLI_OK;
}

static int flag_unknown(const struct cli *cli, str name)
{
    const char *near = cli_nearest_flag(cli->command, name);
    if (near != NULL) {
        return cli_usage_error(cli, "there is no flag --%.*s; did you mean --%s?", STR_ARG(name),
                               near);
    }
    return cli_usage_error(cli, "there is no flag --%.*s", STR_ARG(name));
}

/* --name=value, --name value, --switch. Moves *index past a value that stands by itself. */
static int flag_parse(struct cli *cli, str word, char **argv, int argc, int *index)
{
    str name = str_slice(word, 2, word.size);
    i64 equals = str_find_byte(name, '=');
    str value = equals < 0 ? (str){0} : str_slice(name, (size_t)equals + 1, name.size);
    name = equals < 0 ? name : str_slice(name, 0, (size_t)equals);
    const struct cli_flag *flag = flag_find(cli->command, name);
    if (flag == NULL) {
        return flag_unknown(cli, name);
    }
    if (flag->kind == CLI_SWITCH) {
        return equals < 0 ? value_add(cli, flag, STR(""))
                          : cli_usage_error(cli, "--%s takes no value", flag->name);
    }
    if (equals < 0) {
        if (*index + 1 >= argc) {
            return cli_usage_error(cli, "--%s wants a value: --%s %s", flag->name, flag->name,
                                   flag->value);
        }
        *index += 1;
        value = str_from(argv[*index]);
    }
    return value_add(cli, flag, value);
}

static int argument_add(struct cli *cli, str word)
{
    if (cli->argument_count >= (size_t)cli->command->arguments_max ||
        cli->argument_count == CLI_ARGUMENTS_MAX) {
        return cli_usage_error(cli, "`%.*s` is one argument too many", STR_ARG(word));
    }
    cli->arguments[cli->argument_count++] = word;
    return CLI_OK;
}

/* Everything after the command's own words. */
static int words_parse(struct cli *cli, int argc, char **argv)
{
    int result = CLI_OK;
    bool only_arguments = false;
    for (int index = 0; index < argc && result == CLI_OK; index++) {
        str word = str_from(argv[index]);
        if (!only_arguments && str_equal(word, STR("--"))) {
            only_arguments = true;
        } else if (!only_arguments && str_equal(word, STR("-h"))) {
            result = value_add(cli, &cli_help_flag, STR(""));
        } else if (!only_arguments && str_starts(word, STR("--"))) {
            result = flag_parse(cli, word, argv, argc, &index);
        } else if (!only_arguments && word.size > 1 && word.data[0] == '-') {
            result = cli_usage_error(cli, "there is no flag %.*s", STR_ARG(word));
        } else {
            result = argument_add(cli, word);
        }
    }
    return result;
}

/* ---- finding the command ---- */

/* The command with the longest path that the words begin with. */
static const struct cli_command *command_find(const struct cli *cli, int argc, char **argv,
                                              int *out_words)
{
    const struct cli_command *found = NULL;
    for (size_t index = 0; index < cli->command_count; index++) {
        str rest = str_from(cli->commands[index]->path);
        str word = {0};
        int words = 0;
        bool matches = true;
        while (matches && str_next(&rest, ' ', &word)) {
            matches = words < argc && str_equal(str_from(argv[words]), word);
            words++;
        }
        if (matches && (found == NULL || words > *out_words)) {
            found = cli->commands[index];
            *out_words = words;
        }
    }
    return found;
}

/* The words before the first flag, joined by blanks. */
static str path_of(struct cli *cli, int argc, char **argv)
{
    str path = STR("");
    for (int index = 0; index < argc && index < PATH_WORDS_MAX && argv[index][0] != '-'; index++) {
        path = str_format(cli->arena, "%.*s%s%s", STR_ARG(path), index > 0 ? " " : "", argv[index]);
    }
    return path;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int index = 0; index < argc; index++) {
        if (strcmp(argv[index], "--help") == 0 || strcmp(argv[index], "-h") == 0) {
            return true;
        }
    }
    return false;
}

static int command_unknown(struct cli *cli, int argc, char **argv)
{
    str path = path_of(cli, argc, argv);
    if (argc > 0 && strcmp(argv[0], "--version") == 0) {
        cli->command = &cli_version;
        return cli_version.run(cli);
    }
    if (path.size == 0 || cli_is_group(cli, path)) {
        cli_print_help(cli, path);
        return asks_for_help(argc, argv) ? CLI_OK : CLI_USAGE;
    }
    const struct cli_command *near = cli_nearest(cli, path);
    (void)fprintf(stderr, "lhbox: there is no command `%.*s`", STR_ARG(path));
    if (near != NULL) {
        (void)fprintf(stderr, "; did you mean `lhbox %s`?", near->path);
    }
    (void)fprintf(stderr, "\n       `lhbox --help` lists them all\n");
    return CLI_USAGE;
}

static int command_run(struct cli *cli, int argc, char **argv)
{
    int parsed = words_parse(cli, argc, argv);
    if (parsed != CLI_OK) {
        return parsed;
    }
    if (cli_given(cli, "help")) {
        cli_print_help(cli, str_from(cli->command->path));
        return CLI_OK;
    }
    if (cli->argument_count < (size_t)cli->command->arguments_min) {
        return cli_usage_error(cli, "arguments are missing: lhbox %s %s", cli->command->path,
                               cli->command->arguments);
    }
    return cli->command->run(cli);
}

static const struct cli_flag *common_flag(str word)
{
    for (size_t index = 0; index < CLI_COMMON_FLAG_COUNT; index++) {
        str name = str_from(cli_common_flags[index].name);
        str given = str_slice(word, 2, word.size);
        if (str_starts(word, STR("--")) &&
            (str_equal(given, name) || (str_starts(given, name) && given.data[name.size] == '='))) {
            return &cli_common_flags[index];
        }
    }
    return NULL;
}

/* `lhbox --json sink list` is `lhbox sink list --json`. `out` gets all words, those
 * that stand before the command at the end. */
static void leading_flags_last(int argc, char **argv, char **out)
{
    int leading = 0;
    while (leading < argc) {
        str word = str_from(argv[leading]);
        const struct cli_flag *flag = common_flag(word);
        if (flag == NULL) {
            break;
        }
        bool value_follows = flag->kind != CLI_SWITCH && str_find_byte(word, '=') < 0;
        leading += value_follows && leading + 1 < argc ? 2 : 1;
    }
    for (int index = 0; index < argc; index++) {
        out[index] = argv[(index + leading) % argc];
    }
}

int cli_main(const struct cli_command *const *commands, size_t count, int argc, char **argv)
{
    assert(count <= CLI_COMMANDS_MAX);
    struct arena *arena = arena_create(ARENA_BYTES_MAX);
    struct cli *cli = arena_alloc(arena, sizeof(*cli));
    assert(cli != NULL);
    *cli = (struct cli){.arena = arena, .commands = commands, .command_count = count};
    if (argc > 1 && strcmp(argv[1], "help") == 0) {
        cli_print_help(cli, path_of(cli, argc - 2, argv + 2));
        arena_destroy(arena);
        return CLI_OK;
    }
    int count_words = argc > 0 ? argc - 1 : 0;
    char **words = arena_array(arena, (size_t)count_words + 1, sizeof(*words));
    assert(words != NULL);
    leading_flags_last(count_words, argv + 1, words);
    int used = 0;
    cli->command = command_find(cli, count_words, words, &used);
    int result = cli->command == NULL ? command_unknown(cli, count_words, words)
                                      : command_run(cli, count_words - used, words + used);
    if (fflush(stdout) != 0 && result == CLI_OK) {
        result = cli_failed("the output cannot be written");
    }
    arena_destroy(arena);
    return result;
}
