/* roller: the threads that roll: a few roll workers, and one tick that knows when which sink is
 * due.
 *
 * The tick sleeps until the next sink becomes due, and looks at all of them every 10 s as a safety
 * net. A sink is worked on by one worker at a time. Whatever happens to one sink never stops
 * another. roller_wake may be called from any thread and never blocks on the ledger. */
#ifndef LHBOX_SERVER_ROLLER_H
#define LHBOX_SERVER_ROLLER_H

#include "sink/policy.h"
#include "sink/warehouse.h"

enum { ROLLER_WORKERS = 2, ROLLER_SINKS_MAX = 10000, ROLLER_WAITERS_MAX = 1024 };

struct roller;

struct roller_options {
    const struct db *db;
    const struct seam *seam;
    const struct warehouses *warehouses;
    str installation_id;
    str node_id;
    struct intake_early *early; /* sink/intake_early.h; NULL: none */
    struct policy_limits limits;
    i32 workers; /* 0: ROLLER_WORKERS */
    i32 threads; /* that encode one roll, its own included; 0: its own alone */
};

/* Starts the threads; each first settles what an earlier process left (recover). */
MUST_USE err roller_start(struct arena *arena, const struct roller_options *options,
                          struct roller **out_roller, struct error *error);
/* Batches of this sink came. */
void roller_wake(struct roller *roller, str sink_id);
/* Somebody made, patched or resumed the sink: it is looked at now, though it may have been left
 * alone for a while after a roll that could not end. */
void roller_look(struct roller *roller, str sink_id);

/* Asks for a roll now, as roller_look. out_upto_seq: the last batch accepted before the call. */
MUST_USE err roller_ask(struct roller *roller, str sink_id, instant *out_asked_at,
                        i64 *out_upto_seq, struct error *error);
/* Calls `done` once, from another thread: `settled` when no batch of the sink up to that seq is
 * pending or planned, else at the timeout or when the roller stops. Returns BUSY, without a call,
 * when ROLLER_WAITERS_MAX wait already. */
typedef void (*roller_done)(void *context, bool settled);
MUST_USE err roller_wait(struct roller *roller, str sink_id, i64 upto_seq, i64 timeout_us,
                         roller_done done, void *context, struct error *error);
/* The same, blocking: OK with *out_settled false at the timeout. */
MUST_USE err roller_await(struct roller *roller, str sink_id, i64 upto_seq, i64 timeout_us,
                          bool *out_settled, struct error *error);
/* sink_delete, kept apart from the workers' rolls of the same sink. */
MUST_USE err roller_delete_sink(struct roller *roller, str sink_id, i64 *out_discarded_batches,
                                struct error *error);

/* Until roller_resume_deletes, by the same thread, no sweep deletes anything from a store: a backup
 * copies it. Waits for a sweep under way. BUSY: deletes are paused already. */
MUST_USE err roller_pause_deletes(struct roller *roller, struct error *error);
void roller_resume_deletes(struct roller *roller);

/* restore_reclaim and orphan_resolve, kept apart from the workers' jobs on the same sink. */
MUST_USE err roller_reclaim_sink(struct roller *roller, str sink_id, struct error *error);
MUST_USE err roller_resolve_batch(struct roller *roller, struct arena *arena, str sink_id,
                                  str batch_id, str keep_uid, str *out_row_id, struct error *error);

/* No new plan, no new try; a commit under way gets up to 30 s. Waiters are answered. */
void roller_stop(struct roller *roller);

#endif
