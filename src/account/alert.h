/* alert: what an operator should look at, opened and closed by a regular look at the ledger.
 *
 * Kinds: sink_lag (the oldest waiting batch is older than 3 × roll_seconds), sink_disabled,
 * ledger_mismatch (disabled for that reason), books_difference (I13 does not hold), object_missing
 * and object_damaged (a held batch), batch_quarantined (a person decides which bytes an id stands
 * for), orphan_kept (an object that no row explains and no rule may adopt). An alert is one row
 * from its opening to its closing; it is listed for 7 days more. Any thread; blocking. */
#ifndef LHBOX_ACCOUNT_ALERT_H
#define LHBOX_ACCOUNT_ALERT_H

#include "io/db.h"

enum { ALERT_LAG_ROLLS = 3, ALERT_SHOWN_DAYS = 7 };

struct alert {
    str id;
    str kind;
    str sink_id;
    instant opened_at;
    instant closed_at; /* 0: open */
    str detail;
};

/* Opens and closes alerts by the state of every sink; the books' difference goes to the metric. */
MUST_USE err alert_look(const struct db *db, const struct seam *seam, struct error *error);
/* Newest first. */
MUST_USE err alert_list(const struct db *db, struct arena *arena, str project, size_t limit,
                        struct alert **out_alerts, size_t *out_count, struct error *error);

#endif
