/* Help on every level, and what was meant by a wrong word. */
#include "cli/cli.h"

#include "base/num.h"

#include <stdio.h>

enum { WORD_MAX = 48, DISTANCE_MAX = 3, SUMMARY_COLUMN = 24 };

/* ---- groups ---- */

str cli_word_after(const struct cli_command *command, str path)
{
    str whole = str_from(command->path);
    if (path.size > 0) {
        if (!str_starts(whole, path) || whole.size == path.size || whole.data[path.size] != ' ') {
            return (str){0};
        }
        whole = str_slice(whole, path.size + 1, whole.size);
    }
    str word = {0};
    (void)str_next(&whole, ' ', &word);
    return word;
}

bool cli_is_group(const struct cli *cli, str path)
{
    for (size_t index = 0; index < cli->command_count; index++) {
        if (cli_word_after(cli->commands[index], path).data != NULL) {
            return true;
        }
    }
    return false;
}

/* ---- nearest ---- */

/* Letters to change, add, drop or swap. */
static size_t distance(str a, str b)
{
    size_t rows[3][WORD_MAX + 1];
    if (a.size > WORD_MAX || b.size > WORD_MAX) {
        return WORD_MAX;
    }
    for (size_t at = 0; at <= b.size; at++) {
        rows[0][at] = at;
    }
    for (size_t i = 1; i <= a.size; i++) {
        size_t *now = rows[i % 3];
        const size_t *before = rows[(i - 1) % 3];
        const size_t *two_before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b.size; j++) {
            size_t changed = before[j - 1] + (a.data[i - 1] == b.data[j - 1] ? 0 : 1);
            size_t shorter = before[j] < now[j - 1] ? before[j] + 1 : now[j - 1] + 1;
            now[j] = changed < shorter ? changed : shorter;
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] &&
                a.data[i - 2] == b.data[j - 1] && two_before[j - 2] + 1 < now[j]) {
                now[j] = two_before[j - 2] + 1;
            }
        }
    }
    return rows[a.size % 3][b.size];
}

const struct cli_command *cli_nearest(const struct cli *cli, str path)
{
    const struct cli_command *nearest = NULL;
    size_t best = DISTANCE_MAX + 1;
    for (size_t index = 0; index < cli->command_count; index++) {
        if (cli->commands[index]->summary[0] == 0) {
            continue; /* not for users */
        }
        str other = str_from(cli->commands[index]->path);
        /* A wrong command may be followed by arguments. */
        size_t found = distance(path, other);
        size_t cut = distance(str_slice(path, 0, other.size), other);
        found = cut < found ? cut : found;
        if (found < best && found * 2 < path.size) {
            best = found;
            nearest = cli->commands[index];
        }
    }
    return nearest;
}

const char *cli_nearest_flag(const struct cli_command *command, str name)
{
    const char *nearest = NULL;
    size_t best = DISTANCE_MAX + 1;
    const struct cli_flag *flag = NULL;
    for (size_t index = 0; (flag = cli_flag_at(command, index)) != NULL; index++) {
        size_t found = distance(name, str_from(flag->name));
        if (found < best && found < name.size) {
            best = found;
            nearest = flag->name;
        }
    }
    return nearest;
}

/* ---- printing ---- */

static void print_flag(const struct cli_flag *flag)
{
    char left[64];
    (void)snprintf(left, sizeof(left), "--%s%s%s", flag->name, flag->value != NULL ? " " : "",
                   flag->value != NULL ? flag->value : "");
    printf("  %-28s %s", left, flag->help);
    if (flag->preset != NULL) {
        printf(" (default: %s)", flag->preset);
    }
    printf("%s\n", flag->kind == CLI_LIST ? "; may be given again" : "");
}

static void print_indented(const char *text)
{
    str rest = str_from(text);
    str line = {0};
    while (str_next(&rest, '\n', &line)) {
        printf("  %.*s\n", STR_ARG(line));
    }
}

static void print_command(const struct cli *cli, const struct cli_command *command)
{
    printf("%s\n\nUsage:\n  lhbox %s%s%s [flags]\n", command->summary, command->path,
           command->arguments[0] != 0 ? " " : "", command->arguments);
    if (command->text != NULL) {
        printf("\n%s\n", command->text);
    }
    printf("\nFlags:\n");
    const struct cli_flag *flag = NULL;
    for (size_t index = 0; (flag = cli_flag_at(command, index)) != NULL; index++) {
        print_flag(flag);
    }
    if (command->example != NULL) {
        printf("\nExample:\n");
        print_indented(command->example);
    }
    if (cli_is_group(cli, str_from(command->path))) {
        printf("\nMore:\n");
        for (size_t index = 0; index < cli->command_count; index++) {
            if (cli_word_after(cli->commands[index], str_from(command->path)).data != NULL) {
                printf("  lhbox %s\n", cli->commands[index]->path);
            }
        }
    }
}

static void print_group(const struct cli *cli, str path)
{
    if (path.size == 0) {
        printf("lhbox: one HTTP intake per Iceberg table. Post JSON arrays, read rows.\n\n"
               "Usage:\n  lhbox COMMAND [arguments] [flags]\n\nCommands:\n");
    } else {
        printf("Usage:\n  lhbox %.*s COMMAND [arguments] [flags]\n\nCommands:\n", STR_ARG(path));
    }
    for (size_t index = 0; index < cli->command_count; index++) {
        const struct cli_command *command = cli->commands[index];
        if (command->summary[0] != 0 && cli_word_after(command, path).data != NULL) {
            printf("  %-*s %s\n", SUMMARY_COLUMN, command->path, command->summary);
        }
    }
    if (path.size == 0) {
        printf("\nBegin with:\n  lhbox dev\n");
    }
    printf("\n`lhbox COMMAND --help` shows a command's flags and an example.\n");
}

void cli_print_help(const struct cli *cli, str path)
{
    for (size_t index = 0; index < cli->command_count; index++) {
        if (str_equal(str_from(cli->commands[index]->path), path)) {
            print_command(cli, cli->commands[index]);
            return;
        }
    }
    print_group(cli, cli_is_group(cli, path) ? path : STR(""));
}
