/* output: JSON answers as aligned text, or as they are. */
#ifndef LHBOX_CLI_OUTPUT_H
#define LHBOX_CLI_OUTPUT_H

#include "cli/cli.h"

#include <jansson.h>

enum output_kind {
    OUTPUT_TEXT,
    OUTPUT_NUMBER, /* aligned to the right */
    OUTPUT_BYTES,  /* 1.4 MiB */
};

/* A column of a list, or a line of one object. */
struct output_column {
    const char *title;
    const char *path; /* "lag.seconds_behind" */
    enum output_kind kind;
};

enum { OUTPUT_COLUMNS_MAX = 16 };

/* With --json the whole answer; else one line an element of `list`, a member of it. Says so when
 * there is nothing, and how to see more when there is. Takes the reference. */
int output_list(struct cli *cli, json_t *answer, const char *list,
                const struct output_column *columns, size_t count);
/* With --json the whole answer, else a line a column; what is absent or null is left out. Takes the
 * reference. */
int output_object(struct cli *cli, json_t *answer, const struct output_column *columns,
                  size_t count);
/* The answer as it is, when --json stands. */
bool output_json(struct cli *cli, const json_t *answer);
/* The member at a path, as text in the arena; data NULL when it is absent or null. */
str output_text(struct cli *cli, const json_t *object, const char *path, enum output_kind kind);
/* JSON text in the arena, by jansson's flags; data NULL when a text in it is not UTF-8. */
str output_dump(struct cli *cli, const json_t *json, size_t flags);
/* Printed with bytes that could steer a terminal replaced. */
void output_print(str text);

#endif
