/* backup: a copy of the data directory, made while it is in use (exactly-once section 9, O1).
 *
 * Deletes pause; the ledger is copied first, then each table's version hint, then everything else:
 * what the copied ledger or a copied hint names was durable before it, and is still there. Sends
 * and rolls go on. The copy is marked, so that it recovers before it serves, and then verified:
 * every file's bytes are read back, and every sink of the copy is checked as `lhbox verify` does.
 *
 * A copy without lhbox.db is not complete: that file comes last. Blocking, for as long as the bytes
 * take; one at a time. */
#ifndef LHBOX_SERVER_BACKUP_H
#define LHBOX_SERVER_BACKUP_H

#include "io/file_tree.h"
#include "server/service.h"
#include "sink/verify.h"

struct backup_finding {
    str sink; /* its name */
    struct verify_finding finding;
};

struct backup_report {
    str directory;
    i64 files;
    i64 bytes;
    i64 sinks;
    i64 us; /* how long it took */
    struct backup_finding *findings;
    size_t finding_count; /* the first ones */
    i64 findings_in_all;
};

enum { BACKUP_FINDINGS_MAX = 100 };

/* `directory` is missing or empty, absolute, and outside the data directory: else INVALID or
 * CONFLICT. BUSY: another backup is under way. */
MUST_USE err backup_make(struct service *service, struct arena *arena, str directory,
                         enum file_tree_how how, struct backup_report *out_report,
                         struct error *error);

/* The command: asks the server that has the data directory. Returns the exit code, as in serve.h; 3
 * when there is none. */
struct config_source;
int backup_command(const struct config_source *source, const char *directory,
                   enum file_tree_how how, bool json);

#endif
