/* audit: who changed what, append-only, without secrets.
 *
 * One row a change: sink.create, sink.update, sink.delete, sink.roll, key.create, key.delete,
 * table.*, warehouse.*, project.create. Any thread; blocking. */
#ifndef LHBOX_ACCOUNT_AUDIT_H
#define LHBOX_ACCOUNT_AUDIT_H

#include "io/db.h"

struct audit_entry {
    i64 seq;
    instant at;
    str project;
    str actor;   /* public id of the key, "bootstrap" or "roller" */
    str action;  /* sink.create */
    str object;  /* id or full name */
    str outcome; /* "ok" or the error's code */
    str request_id;
};

/* `seq` and `at` are given by the transaction. */
MUST_USE err audit_write(const struct db *db, const struct audit_entry *entry, struct error *error);
/* The same, durable with the next change of the database that is (db_transact_later). */
MUST_USE err audit_write_later(const struct db *db, const struct audit_entry *entry,
                               struct error *error);
/* Newest first, before the entry numbered `before` (0: from the newest). */
MUST_USE err audit_list(const struct db *db, struct arena *arena, str project, i64 before,
                        size_t limit, struct audit_entry **out_entries, size_t *out_count,
                        struct error *error);

#endif
