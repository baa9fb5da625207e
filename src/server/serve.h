/* serve: the processes `lhbox dev` and `lhbox serve`, and what makes and checks their ground.
 *
 * Each call runs a command from its start to its end, prints for people (results to stdout, errors
 * to stderr) and returns the exit code: 0 ok, 1 it could not be done, 2 wrong configuration or
 * usage, 5 a check found something, 74 a durable write was lost.
 *
 * Threads of a server: http loops, intake workers, management workers, the ledger's writer, roll
 * workers and their tick, the lease. The main thread waits for signals and watches the disk. */
#ifndef LHBOX_SERVER_SERVE_H
#define LHBOX_SERVER_SERVE_H

#include "server/config.h"

/* Needs no configuration: makes its data directory (./lhbox-data unless given) and a demo table. */
int serve_dev(const struct config_source *source);
/* Serves a data directory that serve_init made. */
int serve_run(const struct config_source *source);

enum serve_show { SERVE_SAVE_KEY, SERVE_SHOW_KEY };
struct serve_init_options {
    struct config_source source;
    enum serve_show show;
    const char *save_file; /* SERVE_SAVE_KEY: made with mode 0600, must not exist */
};
/* Ledger, the project `default` with a first admin key, and keys/bootstrap. */
int serve_init(const struct serve_init_options *options);

/* Prints the effective values, or what is wrong. */
int serve_config_check(const struct config_source *source);

#endif
