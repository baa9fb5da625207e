/* cli: commands as a table: parsing, help, shell completion and docs/cli.md come from it.
 *
 * A command is a row: its path (`sink send`), arguments, flags, texts and the function that does
 * it. src/main.c lists them all. One command a process: the arena lives as long as it, exit frees
 * it.
 *
 * Exit codes are the contract: see enum cli_exit. */
#ifndef LHBOX_CLI_CLI_H
#define LHBOX_CLI_CLI_H

#include "base/arena.h"
#include "base/error.h"

enum cli_exit {
    CLI_OK = 0,
    CLI_REFUSED = 1,     /* the server said no, or a local step failed */
    CLI_USAGE = 2,       /* the command line is wrong */
    CLI_UNREACHABLE = 3, /* no server */
    CLI_TIMED_OUT = 4,   /* waited long enough */
    CLI_FOUND = 5,       /* a check found something */
};

enum cli_kind {
    CLI_SWITCH, /* --wait */
    CLI_TEXT,   /* --name NAME; the last one stands */
    CLI_NUMBER, /* a whole number, checked */
    CLI_LIST,   /* may be given again */
};

struct cli_flag {
    const char *name; /* without the dashes */
    enum cli_kind kind;
    const char *value;  /* what stands for the value in help; NULL for a switch */
    const char *preset; /* shown in help; NULL: none */
    const char *help;
};

enum cli_access {
    CLI_LOCAL, /* speaks to no server, or is one */
    CLI_API,   /* speaks to the API: has --url, --key-file, --json */
};

struct cli;

struct cli_command {
    const char *path;      /* "sink send" */
    const char *arguments; /* "NAME FILE|-" */
    i32 arguments_min;
    i32 arguments_max;
    const char *summary; /* one line */
    const char *text;    /* more; NULL: nothing */
    const char *example; /* lines of commands */
    const struct cli_flag *flags;
    size_t flag_count;
    enum cli_access access;
    int (*run)(struct cli *cli);
};

enum { CLI_ARGUMENTS_MAX = 16, CLI_VALUES_MAX = 512, CLI_COMMANDS_MAX = 64 };

struct cli_value {
    const struct cli_flag *flag;
    str text; /* empty for a switch */
};

struct cli {
    struct arena *arena;
    const struct cli_command *const *commands;
    size_t command_count;
    const struct cli_command *command;
    str arguments[CLI_ARGUMENTS_MAX];
    size_t argument_count;
    struct cli_value values[CLI_VALUES_MAX];
    size_t value_count;
};

/* The whole program: finds the command, parses, runs it. Returns the exit code. */
int cli_main(const struct cli_command *const *commands, size_t count, int argc, char **argv);

/* ---- for commands ---- */

str cli_text(const struct cli *cli, const char *flag); /* data NULL: not given */
bool cli_given(const struct cli *cli, const char *flag);
i64 cli_number(const struct cli *cli, const char *flag, i64 preset);
/* The index-th value of a list; false when there are fewer. */
bool cli_list(const struct cli *cli, const char *flag, size_t index, str *out_value);
/* On stderr, as `lhbox: …`; answers CLI_USAGE, CLI_REFUSED. */
int cli_usage_error(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int cli_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Message and hint of an error. */
int cli_failed_error(const struct error *error);
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- the table in other forms ---- */

enum { CLI_COMMON_FLAG_COUNT = 3 };
extern const struct cli_flag cli_common_flags[CLI_COMMON_FLAG_COUNT]; /* of CLI_API commands */
extern const struct cli_flag cli_help_flag;

void cli_print_help(const struct cli *cli, str path);
/* The commands whose paths begin with `path` and have more words; false when there is none. */
bool cli_is_group(const struct cli *cli, str path);
/* The command that is meant by a wrong one; NULL when nothing is near. */
const struct cli_command *cli_nearest(const struct cli *cli, str path);
const char *cli_nearest_flag(const struct cli_command *command, str name);
/* The index-th flag of a command, its own first; NULL past the last. */
const struct cli_flag *cli_flag_at(const struct cli_command *command, size_t index);
/* The word after `path` in a command's path; data NULL when it is none of the group's. */
str cli_word_after(const struct cli_command *command, str path);

extern const struct cli_command cli_completion;
extern const struct cli_command cli_docs; /* not listed: it prints docs/cli.md */

#endif
