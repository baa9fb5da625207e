/* usage: what a project's sinks took in this month (UTC), as the ledger counted it with each batch.
 *
 * A batch counts once, when its row is made; duplicates, empty arrays, refused requests and batches
 * refused whole at the intake count nothing. Any thread; blocking. */
#ifndef LHBOX_ACCOUNT_USAGE_H
#define LHBOX_ACCOUNT_USAGE_H

#include "io/db.h"

struct usage_sink {
    str sink_id;
    str name;
    i64 batches;
    i64 bytes;
    i64 rows_accepted;
    i64 rows_rejected;
};

struct usage {
    char month[8]; /* 2026-09, NUL */
    i64 batches;
    i64 bytes;
    i64 rows_accepted;
    i64 rows_rejected;
    struct usage_sink *by_sink;
    size_t sink_count;
};

MUST_USE err usage_month(const struct db *db, struct arena *arena, str project,
                         struct usage *out_usage, struct error *error);

#endif
