/* restore: `recover`, the only way from an older copy of the ledger back to the truth (exactly-once
 * section 9, I26, I27).
 *
 * Per sink: flag, fence landed, property read, chain walked over the plan objects, assignments
 * undone and redone in the ledger, orphans adopted as copies under fresh uids, flag cleared. While
 * the flag stands nothing of the sink is served; it begins again at its first step whenever it was
 * stopped. A chain that cannot be proven stops the sink with ledger_mismatch, nothing is guessed.
 * Straight-line code over the seams, no static state; idempotent. Blocking; one thread at a time
 * per sink. */
#ifndef LHBOX_SINK_RESTORE_H
#define LHBOX_SINK_RESTORE_H

#include "base/buf.h"
#include "sink/roll.h"

enum restore_end {
    RESTORE_RECOVERED,
    RESTORE_STOPPED, /* disabled: `detail` says why */
    RESTORE_DELETED, /* its settings object said so */
    RESTORE_DELETING,
    RESTORE_LATER, /* could not be done now: `detail`; the flag stands */
};

struct restore_sink {
    str sink_id;
    str name;
    enum restore_end end;
    bool made;       /* the copy lacked it */
    i64 plans;       /* of the chain, above the copy's last */
    i64 committed;   /* batches whose row is new or changed by them, verdicts included */
    i64 undone;      /* live plans that are not proven */
    i64 adopted;     /* batches that have a row again */
    i64 taken;       /* rows that have another object of the same bytes now */
    i64 quarantined; /* objects */
    i64 missing;     /* pending rows whose object is gone */
    i64 unknown;     /* batches whose rejected rows could not be counted any more (O13) */
    str detail;      /* data NULL: nothing to say */
};

struct restore_report {
    struct restore_sink *sinks;
    size_t count;
    size_t room;
};

/* Steps 1 to 9 of one sink, under its lease. Only what keeps it from being done now is an error;
 * the flag stands then. Deleting and deleted sinks are left alone. */
MUST_USE err restore_sink(const struct roll_env *env, struct arena *arena, str sink_id,
                          struct restore_sink *out_sink, struct error *error);
/* The same for a roller that has the lease; begins with step 2, the flag stands. */
MUST_USE err restore_flagged(const struct roll_env *env, struct arena *arena, str sink_id,
                             struct restore_sink *out_sink, struct error *error);
/* A warehouse: sinks that the settings objects know and the ledger lacks are made again, those that
 * they call deleted are deleted. Those that they call deleting are recovered before their delete
 * goes on. With RESTORE_ALL every sink is recovered, with RESTORE_FLAGGED
 * those whose flag stands. A sink that fails does not stop the others. Adds to the report, in the
 * arena. */
enum restore_which { RESTORE_ALL, RESTORE_FLAGGED };
MUST_USE err restore_warehouse(const struct roll_env *env, struct arena *arena,
                               enum restore_which which, struct restore_report *report,
                               struct error *error);

/* A load showed a property above the ledger's last plan. *out_behind: the ledger is really behind
 * (it was read again), and the sink's flag stands; else somebody else has finished that plan. */
MUST_USE err restore_note_ahead(const struct roll_env *env, const struct ledger_sink *sink,
                                const struct table *table, bool *out_behind, struct error *error);

/* What an operator asks for with `reclaim` (decisions 39): a fence, then the property is set back
 * to the ledger's last committed plan; unproven assignments are undone, orphans adopted, the sink
 * is active again. He answers for what the table holds beyond that. */
MUST_USE err restore_reclaim(const struct roll_env *env, struct arena *arena, str sink_id,
                             struct error *error);

const char *restore_end_text(enum restore_end end);
/* One line a sink, or a JSON object {"sinks":[…]}. */
enum restore_form { RESTORE_TEXT, RESTORE_JSON };
void restore_print(buf *out, const struct restore_report *report, enum restore_form form);

#endif
