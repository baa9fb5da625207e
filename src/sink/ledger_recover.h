/* ledger_recover: the transactions of `recover`, incarnation numbers, and sinks that a copy of the
 * ledger lacks (exactly-once section 9, O1, O2, O12 to O14).
 *
 * Each function is one transaction; a recover may be killed between any two of them and begun again
 * (I26). Any thread; blocking. UNKNOWN from any of them: begin again. */
#ifndef LHBOX_SINK_LEDGER_RECOVER_H
#define LHBOX_SINK_LEDGER_RECOVER_H

#include "base/map.h"
#include "sink/ledger.h"

/* ---- the flag (steps 1 and 9) ---- */

/* Sets the flag, forgets the fences of earlier recovers, drops all node registrations. sink_id
 * empty: of every active and disabled sink. Deleting and deleted ones are left alone. */
MUST_USE err ledger_begin_recover(const struct db *db, str sink_id, struct error *error);
/* A load showed the property at (n, plan_id). Sets the flag as above when the ledger is really
 * behind; out_behind: it is, or the sink is recovering already. */
MUST_USE err ledger_note_ahead(const struct db *db, str sink_id, i64 n, str plan_id,
                               bool *out_behind, struct error *error);
/* CONFLICT unless the sink is recovering. */
MUST_USE err ledger_record_recover_fence(const struct db *db, str sink_id, i64 snapshot_id,
                                         struct error *error);
/* Clears the flag; a sink that was stopped by ledger_mismatch is active again. What waits is
 * counted afresh. CORRUPT, and nothing changes, when the books or the uids do not agree (step 8).
 */
MUST_USE err ledger_end_recover(const struct db *db, str sink_id, struct error *error);
/* The sink is disabled for `reason`. CONFLICT when it is not recovering any more. */
enum ledger_stop { LEDGER_STOP_KEEP_FLAG, LEDGER_STOP_CLEAR_FLAG };
MUST_USE err ledger_stop_recover(const struct db *db, str sink_id, str reason, str detail,
                                 enum ledger_stop flag, struct error *error);

/* ---- plans (steps 3 to 6) ---- */

/* The property names this sink: none or attempted -> claimed, L = (0, claim id). */
MUST_USE err ledger_prove_claim(const struct db *db, str sink_id, struct error *error);
/* Every assignment that is not proven is undone: the live plan -> void, unless it is `proven_id`;
 * planned batches of void plans -> pending. */
MUST_USE err ledger_undo_plans(const struct db *db, str sink_id, str proven_id, i64 *out_undone,
                               struct error *error);

/* Rejected rows of one batch by reason, as its rejects file tells; what it does not tell is counted
 * as `unknown`. */
struct ledger_reasons {
    const struct ledger_count *counts;
    size_t count;
};
/* One plan of the chain, from its plan object. */
struct ledger_proven {
    str sink_id;
    i64 n;
    str id;
    str prev;
    i64 config_version;
    const struct ledger_batch *batches;    /* as the plan object tells them */
    const struct ledger_verdict *verdicts; /* one per batch */
    const struct ledger_reasons *reasons;  /* one per batch; NULL: not known */
    size_t count;
    i64 snapshot_id; /* 0: not known */
    /* out */
    i64 committed;   /* batches whose row is new or changed */
    i64 quarantined; /* rows of other bytes under the same id */
};
MUST_USE err ledger_prove_plan(const struct db *db, struct ledger_proven *plan,
                               struct error *error);
/* A verdict object (O2), with the batches of its plan object: rejected as it says. A plan that the
 * ledger knows to be void and settled, or that the chain proved, changes nothing. out_known: so it
 * was. */
MUST_USE err ledger_prove_verdict(const struct db *db, struct ledger_proven *plan, bool *out_known,
                                  struct error *error);
/* A verdict that the ledger knows, and rows that wait for the same bytes under another uid, while
 * the store has their object no more (`missing` as for ledger_weigh_orphan): an earlier recover had
 * adopted them as copies, and the copies were rejected. Rejected as the verdict says, under its
 * uid. Rows whose object is there are decoded afresh: their id may have been used anew. */
MUST_USE err ledger_settle_missing(const struct db *db, struct ledger_proven *plan,
                                   const struct map *missing, struct error *error);
/* True when the ledger has the plan as committed, or as void with its verdict written. */
MUST_USE err ledger_knows_plan(const struct db *db, str plan_id, bool *out_known,
                               struct error *error);

/* ---- sinks by their settings objects (O14) ---- */

/* The settings of `sink` are newer than the ledger's: they take their place. No such sink: it is
 * made, recovering, with the flag set. state SINK_DELETED: carried on as that; its live plans are
 * void, its batches discarded. A deleting one has to be recovered first. CONFLICT: another live
 * sink has its table or its name. out_made: it was not there. */
MUST_USE err ledger_restore_sink(const struct db *db, const struct ledger_sink *sink,
                                 bool *out_made, struct error *error);

/* Ends the recover of a sink that is being deleted: recovering -> deleting. What the table holds of
 * it is settled and its late requests are fenced, or nothing can be proven: live plans stay as they
 * are for the delete to void. CONFLICT when it is not recovering any more. */
MUST_USE err ledger_recover_deleting(const struct db *db, str sink_id, struct error *error);

/* ---- incarnation (O1) ---- */

struct ledger_incarnation {
    i64 number;
    bool copied; /* a backup's copy */
};
MUST_USE err ledger_read_incarnation(const struct db *db,
                                     struct ledger_incarnation *out_incarnation,
                                     struct error *error);
/* The number that stands in the warehouse's bucket, as far as the ledger knows; -1: none was
 * written. */
MUST_USE err ledger_bucket_incarnation(const struct db *db, str warehouse, i64 *out_number,
                                       struct error *error);
/* After the buckets have it: `from` -> `to`. CONFLICT when the ledger's number is not `from`. */
MUST_USE err ledger_raise_incarnation(const struct db *db, i64 from, i64 to, const str *warehouses,
                                      size_t count, struct error *error);
/* Of a copy made by a backup. */
MUST_USE err ledger_mark_copy(const struct db *db, struct error *error);
/* Every sink has its flag or was recovered: the copy is an installation again. */
MUST_USE err ledger_unmark_copy(const struct db *db, struct error *error);

#endif
