/* Shell completion: scripts made from the table of commands. They complete words of commands, then
 * flags, then file names. */
#include "cli/cli.h"

#include <stdio.h>

/* Does an earlier command have the same next word? */
static bool word_seen(const struct cli *cli, size_t upto, str path, str word)
{
    for (size_t index = 0; index < upto; index++) {
        if (str_equal(cli_word_after(cli->commands[index], path), word)) {
            return true;
        }
    }
    return false;
}

static void print_words(const struct cli *cli, str path)
{
    for (size_t index = 0; index < cli->command_count; index++) {
        str word = cli_word_after(cli->commands[index], path);
        if (word.data != NULL && cli->commands[index]->summary[0] != 0 &&
            !word_seen(cli, index, path, word)) {
            printf("%.*s ", STR_ARG(word));
        }
    }
}

static void print_flags(const struct cli_command *command)
{
    const struct cli_flag *flag = NULL;
    for (size_t index = 0; (flag = cli_flag_at(command, index)) != NULL; index++) {
        printf("--%s ", flag->name);
    }
}

/* `case` arms that set `choices` for what has been typed. */
static void print_cases(const struct cli *cli)
{
    printf("        \"\") choices=\"");
    print_words(cli, STR(""));
    printf("\" ;;\n");
    for (size_t index = 0; index < cli->command_count; index++) {
        str rest = str_from(cli->commands[index]->path);
        str group = {0};
        i64 space = str_find_byte(rest, ' ');
        group = space < 0 ? (str){0} : str_slice(rest, 0, (size_t)space);
        if (group.data != NULL && !word_seen(cli, index, STR(""), group)) {
            printf("        \"%.*s\") choices=\"", STR_ARG(group));
            print_words(cli, group);
            printf("\" ;;\n");
        }
    }
    for (size_t index = 0; index < cli->command_count; index++) {
        const struct cli_command *command = cli->commands[index];
        printf("        \"%s\" | \"%s \"*) choices=\"", command->path, command->path);
        print_words(cli, str_from(command->path));
        print_flags(command);
        printf("\" ;;\n");
    }
}

static int print_bash(const struct cli *cli)
{
    printf("# eval \"$(lhbox completion bash)\"\n"
           "_lhbox() {\n"
           "    local current=\"${COMP_WORDS[COMP_CWORD]}\" typed=\"\" choices=\"\" word\n"
           "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
           "        case \"$word\" in -*) ;; *) typed=\"${typed:+$typed }$word\" ;; esac\n"
           "    done\n"
           "    case \"$typed\" in\n");
    print_cases(cli);
    printf("    esac\n"
           "    COMPREPLY=($(compgen -W \"$choices\" -- \"$current\"))\n"
           "}\n"
           "complete -o default -F _lhbox lhbox\n");
    return CLI_OK;
}

static int print_zsh(const struct cli *cli)
{
    printf("#compdef lhbox\n"
           "# eval \"$(lhbox completion zsh)\"\n"
           "_lhbox() {\n"
           "    local typed=\"\" choices=\"\" word\n"
           "    for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
           "        case \"$word\" in -*) ;; *) typed=\"${typed:+$typed }$word\" ;; esac\n"
           "    done\n"
           "    case \"$typed\" in\n");
    print_cases(cli);
    printf("    esac\n"
           "    compadd -- ${=choices}\n"
           "    _files\n"
           "}\n"
           "compdef _lhbox lhbox\n");
    return CLI_OK;
}

static void print_fish_command(const struct cli *cli, size_t index)
{
    const struct cli_command *command = cli->commands[index];
    str path = str_from(command->path);
    i64 space = str_find_last_byte(path, ' ');
    str group = space < 0 ? STR("") : str_slice(path, 0, (size_t)space);
    str word = space < 0 ? path : str_slice(path, (size_t)space + 1, path.size);
    if (space > 0 && !word_seen(cli, index, STR(""), group)) {
        printf("complete -c lhbox -f -n '__lhbox_at \"\"' -a '%.*s'\n", STR_ARG(group));
    }
    printf("complete -c lhbox -f -n '__lhbox_at \"%.*s\"' -a '%.*s' -d \"%s\"\n", STR_ARG(group),
           STR_ARG(word), command->summary);
    const struct cli_flag *flag = NULL;
    for (size_t at = 0; (flag = cli_flag_at(command, at)) != NULL; at++) {
        printf("complete -c lhbox -n '__lhbox_in \"%s\"' -l '%s' %s -d \"%s\"\n", command->path,
               flag->name, flag->kind == CLI_SWITCH ? "" : "-r", flag->help);
    }
}

static int print_fish(const struct cli *cli)
{
    printf("# lhbox completion fish | source\n"
           "function __lhbox_typed\n"
           "    string join ' ' -- (string match -v -- '-*' (commandline -opc)[2..-1])\n"
           "end\n"
           "function __lhbox_at\n"
           "    test (__lhbox_typed) = \"$argv[1]\"\n"
           "end\n"
           "function __lhbox_in\n"
           "    set -l typed (__lhbox_typed)\n"
           "    test \"$typed\" = \"$argv[1]\"; or string match -q -- \"$argv[1] *\" \"$typed\"\n"
           "end\n");
    for (size_t index = 0; index < cli->command_count; index++) {
        if (cli->commands[index]->summary[0] != 0) {
            print_fish_command(cli, index);
        }
    }
    return CLI_OK;
}

static int run(struct cli *cli)
{
    str shell = cli->arguments[0];
    if (str_equal(shell, STR("bash"))) {
        return print_bash(cli);
    }
    if (str_equal(shell, STR("zsh"))) {
        return print_zsh(cli);
    }
    if (str_equal(shell, STR("fish"))) {
        return print_fish(cli);
    }
    return cli_usage_error(cli, "bash, zsh or fish is wanted, not `%.*s`", STR_ARG(shell));
}

const struct cli_command cli_completion = {
    .path = "completion",
    .arguments = "bash|zsh|fish",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Print a script that completes lhbox's commands in your shell",
    .example = "eval \"$(lhbox completion bash)\"",
    .run = run,
};
