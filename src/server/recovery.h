/* recovery: what happens to a data directory before it is served, and `lhbox recover` (exactly-once
 * section 9, O1).
 *
 * At every start the tables' pointers are compared with the store; a ledger that is a copy (its
 * incarnation is behind the store's, a pointer is, or a backup marked it) recovers every sink.
 * Called by the main thread, while nothing is served; blocking. */
#ifndef LHBOX_SERVER_RECOVERY_H
#define LHBOX_SERVER_RECOVERY_H

#include "server/config.h"
#include "server/service.h"
#include "sink/incarnation.h"
#include "sink/restore.h"

struct recovery {
    const struct service *service;
    const struct warehouse *warehouses[WAREHOUSES_MAX];
    struct incarnation incarnation;
};

enum recovery_why {
    RECOVERY_START,   /* recovers a copy, and sinks whose recover was stopped */
    RECOVERY_COMMAND, /* recovers every sink */
};
/* A sink that cannot be recovered now keeps its flag, and is not served; any other failure is a
 * reason not to start. *out_copy: the ledger was one. The report is in the arena. */
MUST_USE err recovery_run(struct recovery *recovery, const struct service *service,
                          struct arena *arena, enum recovery_why why,
                          struct restore_report *out_report, bool *out_copy, struct error *error);
/* Every minute of serving. A ledger that was put back under the running server: every sink's flag
 * is set, the roller recovers them. */
void recovery_watch(struct recovery *recovery);
/* A warehouse was made since: its bucket has no number yet. */
bool recovery_is_due(const struct recovery *recovery);

/* The command: the server is stopped, the directory is locked. Prints the report; the exit code as
 * in serve.h: 5 when a sink was stopped or could not be recovered. */
int recovery_command(const struct config_source *source, enum restore_form form);

#endif
