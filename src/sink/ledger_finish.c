#include "base/buf.h"
#include "sink/ledger_sql.h"

/* The edges out of a plan's live states (the picture is in ledger_plan.c), with what becomes of its
 * batches:
 *
 *   pending ◄──────► planned ──► committed | rejected          (finish)
 *      │               │ └─────► rejected                      (void_rejected, on verified bytes)
 *      └───────────────┴───────► discarded                     (delete; a held one by name)
 *
 * An object is doomed by the transaction that made the last of its batches final (I16). */

enum { FINISH_SCRATCH_BYTES_MAX = 64 * 1024 * 1024, RECENT_REJECTS = 5 };

struct finishing {
    str plan_id;
    const struct ledger_outcome *outcome;
};

/* What the outcome adds up to. */
struct totals {
    i64 batches;
    i64 bytes;
    i64 rows_committed;
    i64 rows_rejected;
    i64 batches_with_rejects; /* that had none before */
};

/* Most batches have no rejects: those are finished by one statement, and only the others each by
 * its own. */
static bool is_plain(const struct ledger_verdict *verdict, i64 rows)
{
    return verdict->rows_rejected == 0 && verdict->rows_committed == rows && rows > 0;
}

static err finish_one(struct db_tx *tx, str sink_id, const struct ledger_verdict *verdict,
                      struct error *error)
{
    bool rejected = verdict->rows_committed == 0 && verdict->rows_rejected > 0;
    return db_run(tx, error,
                  "UPDATE batch SET state = ?3, rows_committed = ?4, rows_rejected = ?5, "
                  "finished_at = ?6 WHERE sink = ?1 AND batch_id = ?2",
                  DB_T(sink_id), DB_T(verdict->batch_id),
                  DB_N(rejected ? BATCH_REJECTED : BATCH_COMMITTED), DB_N(verdict->rows_committed),
                  DB_N(verdict->rows_rejected), DB_N(db_now(tx)));
}

static err finish_batches(struct db_tx *tx, struct arena *arena, const struct finishing *finishing,
                          struct totals *out_totals, struct error *error)
{
    const struct ledger_outcome *outcome = finishing->outcome;
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT batch_id, bytes, refused, sink, rows FROM batch WHERE plan = ?1 AND "
                   "state = 1 ORDER BY seq",
                   DB_T(finishing->plan_id)));
    if (rows.row_count != outcome->verdict_count) {
        return error_set(error, CORRUPT, ERROR_INTERNAL, "plan %.*s has %zu batches, not %zu",
                         STR_ARG(finishing->plan_id), rows.row_count, outcome->verdict_count);
    }
    TRY(db_run(tx, error,
               "UPDATE batch SET state = 2, rows_committed = rows, rows_rejected = 0, "
               "finished_at = ?2 WHERE plan = ?1 AND state = 1",
               DB_T(finishing->plan_id), DB_N(db_now(tx))));
    struct totals totals = {.batches = (i64)rows.row_count};
    for (size_t i = 0; i < rows.row_count; i++) {
        const struct ledger_verdict *verdict = &outcome->verdicts[i];
        if (!str_equal(verdict->batch_id, db_text(&rows, i, 0))) {
            return error_set(error, CORRUPT, ERROR_INTERNAL, "plan %.*s has no batch %.*s there",
                             STR_ARG(finishing->plan_id), STR_ARG(verdict->batch_id));
        }
        if (!is_plain(verdict, db_number(&rows, i, 4))) {
            TRY(finish_one(tx, db_text(&rows, i, 3), verdict, error));
        }
        totals.bytes += db_number(&rows, i, 1);
        totals.rows_committed += verdict->rows_committed;
        totals.rows_rejected += verdict->rows_rejected;
        totals.batches_with_rejects += verdict->rows_rejected > 0 && db_number(&rows, i, 2) == 0
                                           ? 1
                                           : 0;
    }
    *out_totals = totals;
    return OK;
}

static err count_reasons(struct db_tx *tx, str sink_id, const struct ledger_outcome *outcome,
                         struct error *error)
{
    for (size_t i = 0; i < outcome->reason_count; i++) {
        TRY(db_run(tx, error,
                   "INSERT INTO reject_count (sink, reason, rows) VALUES (?1, ?2, ?3) "
                   "ON CONFLICT (sink, reason) DO UPDATE SET rows = reject_count.rows + "
                   "excluded.rows",
                   DB_T(sink_id), DB_T(outcome->reasons[i].name), DB_N(outcome->reasons[i].count)));
    }
    return OK;
}

/* Newest first at position 0; the new ones push the old ones out. */
static err keep_recent(struct db_tx *tx, str sink_id, const struct ledger_outcome *outcome,
                       struct error *error)
{
    size_t fresh = outcome->recent_count;
    if (fresh == 0) {
        return OK;
    }
    /* Through negative positions, so that no two rows meet on one. */
    TRY(db_run(tx, error, "UPDATE reject_recent SET position = -1 - position - ?2 WHERE sink = ?1",
               DB_T(sink_id), DB_N(fresh)));
    TRY(db_run(tx, error, "UPDATE reject_recent SET position = -1 - position WHERE sink = ?1",
               DB_T(sink_id)));
    TRY(db_run(tx, error, "DELETE FROM reject_recent WHERE sink = ?1 AND position >= ?2",
               DB_T(sink_id), DB_N(RECENT_REJECTS)));
    for (size_t i = 0; i < fresh && i < RECENT_REJECTS; i++) {
        TRY(db_run(tx, error,
                   "INSERT INTO reject_recent (sink, position, record) VALUES (?1, ?2, ?3)",
                   DB_T(sink_id), DB_N(i), DB_T(outcome->recent[fresh - 1 - i])));
    }
    return OK;
}

static err print_last_roll(struct db_tx *tx, struct arena *arena, const struct ledger_plan *plan,
                           const struct ledger_outcome *outcome, const struct totals *totals,
                           str *out_json, struct error *error)
{
    char at[TIME_TEXT_SIZE];
    buf json = buf_create(arena, 512, KIB * 16);
    buf_append_format(&json, "{\"at\":\"%.*s\",\"batches\":%lld,\"rows\":%lld,",
                      STR_ARG(time_format(db_now(tx), at)), (long long)totals->batches,
                      (long long)totals->rows_committed);
    buf_append_format(&json,
                      "\"rejected_rows\":%lld,\"snapshot_id\":", (long long)totals->rows_rejected);
    if (outcome->snapshot_id != 0) {
        buf_append_i64(&json, outcome->snapshot_id);
    } else {
        buf_append(&json, STR("null"));
    }
    buf_append_format(&json, ",\"seconds\":%lld.%06lld,\"reason\":",
                      (long long)(outcome->roll_us / TIME_SECOND_US),
                      (long long)(outcome->roll_us % TIME_SECOND_US));
    buf_append_json_string(&json, plan->trigger);
    buf_append(&json, STR("}"));
    if (!buf_ok(&json)) {
        return error_memory(error);
    }
    *out_json = buf_str(&json);
    return OK;
}

static err count_sink(struct db_tx *tx, const struct ledger_plan *plan, const struct totals *totals,
                      str last_roll, struct error *error)
{
    TRY(db_run(tx, error,
               "UPDATE sink SET rows_committed = rows_committed + ?2, rows_rejected = "
               "rows_rejected + ?3, waiting_batches = waiting_batches - ?4, waiting_bytes = "
               "waiting_bytes - ?5, reject_batches = reject_batches + ?6, last_roll = ?7, "
               "last_error = CASE WHEN state = 0 AND NOT EXISTS (SELECT 1 FROM batch b WHERE "
               "b.sink = sink.id AND b.state <= 1 AND b.held = 1) THEN NULL ELSE last_error END, "
               "mismatch_at = NULL WHERE id = ?1",
               DB_T(plan->sink_id), DB_N(totals->rows_committed), DB_N(totals->rows_rejected),
               DB_N(totals->batches), DB_N(totals->bytes), DB_N(totals->batches_with_rejects),
               DB_T(last_roll)));
    if (totals->rows_rejected == 0) {
        return OK;
    }
    instant now = db_now(tx);
    TRY(db_run(tx, error, "UPDATE sink SET reject_last_at = ?2 WHERE id = ?1", DB_T(plan->sink_id),
               DB_N(now)));
    char text[TIME_TEXT_SIZE];
    str month = str_slice(time_format(now, text), 0, 7);
    return db_run(tx, error,
                  "INSERT INTO usage_month (project, sink, month, batches, bytes, rows_accepted, "
                  "rows_rejected) SELECT project, id, ?2, 0, 0, 0, ?3 FROM sink WHERE id = ?1 "
                  "ON CONFLICT (project, sink, month) DO UPDATE SET "
                  "rows_rejected = usage_month.rows_rejected + excluded.rows_rejected",
                  DB_T(plan->sink_id), DB_T(month), DB_N(totals->rows_rejected));
}

/* What finish and void_rejected have in common: everything but the plan's own state. */
static err settle_batches(struct db_tx *tx, struct arena *arena, const struct ledger_plan *plan,
                          const struct finishing *finishing, struct totals *out_totals,
                          struct error *error)
{
    TRY(finish_batches(tx, arena, finishing, out_totals, error));
    str last_roll;
    TRY(print_last_roll(tx, arena, plan, finishing->outcome, out_totals, &last_roll, error));
    TRY(count_sink(tx, plan, out_totals, last_roll, error));
    TRY(count_reasons(tx, plan->sink_id, finishing->outcome, error));
    return keep_recent(tx, plan->sink_id, finishing->outcome, error);
}

/* Each object is looked at once, however many of its batches the plan has. */
err ledger_doom_plan_objects(struct db_tx *tx, str plan_id, struct error *error)
{
    return db_run(tx, error,
                  "INSERT INTO doomed_object (warehouse, object_key, at, tries) SELECT "
                  "s.warehouse, b.object_key, ?2, 0 FROM (SELECT DISTINCT sink, uid, object_key "
                  "FROM batch WHERE plan = ?1 AND object_key <> '') b JOIN sink s ON s.id = b.sink "
                  "WHERE NOT EXISTS (SELECT 1 FROM batch o "
                  "LEFT JOIN plan p ON p.id = o.plan WHERE o.sink = b.sink AND o.uid = b.uid AND "
                  "(o.state <= 1 OR (o.state = 3 AND p.state = 4 AND p.doomed = 0))) "
                  "ON CONFLICT (warehouse, object_key) DO NOTHING",
                  DB_T(plan_id), DB_N(db_now(tx)));
}

static err finish_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct finishing *finishing = context;
    struct arena *arena AUTO_ARENA = arena_create(FINISH_SCRATCH_BYTES_MAX);
    struct ledger_plan plan = {0};
    TRY(ledger_plan_in(tx, arena, finishing->plan_id, &plan, error));
    if (plan.state == PLAN_COMMITTED) {
        return OK;
    }
    if (plan.state != PLAN_ATTEMPTED && plan.state != PLAN_VOIDING) {
        return ledger_lost(error, "only an attempted or voiding plan can be finished");
    }
    struct totals totals = {0};
    TRY(settle_batches(tx, arena, &plan, finishing, &totals, error));
    TRY(db_run(tx, error,
               "UPDATE plan SET state = 3, begun = 0, snapshot_id = ?2, rows_committed = ?3, "
               "rows_rejected = ?4, finished_at = ?5 WHERE id = ?1",
               DB_T(plan.id), sql_number_or_null(finishing->outcome->snapshot_id),
               DB_N(totals.rows_committed), DB_N(totals.rows_rejected), DB_N(db_now(tx))));
    TRY(db_run(tx, error, "UPDATE sink SET last_n = ?2, last_plan_id = ?3 WHERE id = ?1",
               DB_T(plan.sink_id), DB_N(plan.n), DB_T(plan.id)));
    return ledger_doom_plan_objects(tx, plan.id, error);
}

err ledger_finish_plan(const struct db *db, str plan_id, const struct ledger_outcome *outcome,
                       struct error *error)
{
    struct finishing finishing = {.plan_id = plan_id, .outcome = outcome};
    return db_transact_later(db, finish_body, &finishing, error);
}

static err void_rejected_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct finishing *finishing = context;
    struct arena *arena AUTO_ARENA = arena_create(FINISH_SCRATCH_BYTES_MAX);
    struct ledger_plan plan = {0};
    TRY(ledger_plan_in(tx, arena, finishing->plan_id, &plan, error));
    if (plan.state != PLAN_OPEN) {
        return ledger_lost(error, "the plan is not open any more");
    }
    struct totals totals = {0};
    TRY(settle_batches(tx, arena, &plan, finishing, &totals, error));
    if (totals.rows_committed != 0) {
        return error_set(error, CORRUPT, ERROR_INTERNAL, "plan %.*s has rows to commit",
                         STR_ARG(plan.id));
    }
    return db_run(tx, error,
                  "UPDATE plan SET state = 4, begun = 0, void_reason = 'all_rejected', doomed = 0, "
                  "rows_rejected = ?2, finished_at = ?3 WHERE id = ?1",
                  DB_T(plan.id), DB_N(totals.rows_rejected), DB_N(db_now(tx)));
}

err ledger_void_rejected(const struct db *db, str plan_id, const struct ledger_outcome *outcome,
                         struct error *error)
{
    struct finishing finishing = {.plan_id = plan_id, .outcome = outcome};
    return db_transact(db, void_rejected_body, &finishing, error);
}

static err doom_rejected_body(struct db_tx *tx, void *context, struct error *error)
{
    const str *plan_id = context;
    TRY(db_run(tx, error, "UPDATE plan SET doomed = 1 WHERE id = ?1 AND state = 4",
               DB_T(*plan_id)));
    return ledger_doom_plan_objects(tx, *plan_id, error);
}

err ledger_doom_rejected(const struct db *db, str plan_id, struct error *error)
{
    return db_transact(db, doom_rejected_body, &plan_id, error);
}

/* ---- voids that give the batches back ---- */

struct voiding {
    str plan_id;
    str reason;
    const struct ledger_hold *holds;
    size_t hold_count;
    enum plan_state from;
};

static err void_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct voiding *voiding = context;
    i64 changes = 0;
    TRY(sql_change(tx, error, &changes,
                   "UPDATE plan SET state = 4, begun = 0, doomed = 1, "
                   "void_reason = coalesce(?3, void_reason), finished_at = ?4 WHERE id = ?1 AND "
                   "state = ?2",
                   DB_T(voiding->plan_id), DB_N(voiding->from), sql_text_or_null(voiding->reason),
                   DB_N(db_now(tx))));
    if (changes == 0) {
        return ledger_lost(error, "the plan cannot be voided from here");
    }
    for (size_t i = 0; i < voiding->hold_count; i++) {
        TRY(db_run(tx, error,
                   "UPDATE batch SET held = 1, held_reason = ?3, missed_at = ?4 WHERE plan = ?1 "
                   "AND batch_id = ?2 AND state = 1",
                   DB_T(voiding->plan_id), DB_T(voiding->holds[i].batch_id),
                   DB_T(voiding->holds[i].reason), DB_N(db_now(tx))));
    }
    return db_run(tx, error,
                  "UPDATE batch SET state = 0, plan = NULL, retried = CASE WHEN (SELECT tried FROM "
                  "plan WHERE id = ?1) > 0 THEN 1 ELSE retried END WHERE plan = ?1 AND state = 1",
                  DB_T(voiding->plan_id));
}

err ledger_void_open(const struct db *db, str plan_id, str reason, const struct ledger_hold *holds,
                     size_t hold_count, struct error *error)
{
    struct voiding voiding = {
        .plan_id = plan_id,
        .reason = reason,
        .holds = holds,
        .hold_count = hold_count,
        .from = PLAN_OPEN,
    };
    return db_transact(db, void_body, &voiding, error);
}

err ledger_end_void(const struct db *db, str plan_id, const struct ledger_hold *holds,
                    size_t hold_count, struct error *error)
{
    struct voiding voiding = {
        .plan_id = plan_id,
        .holds = holds,
        .hold_count = hold_count,
        .from = PLAN_VOIDING,
    };
    return db_transact(db, void_body, &voiding, error);
}

struct undoomed_query {
    struct arena *arena;
    str sink_id;
    struct ledger_plan *plans;
    size_t count;
};

static err list_undoomed_body(struct db_tx *tx, void *context, struct error *error)
{
    struct undoomed_query *query = context;
    struct db_rows rows = {0};
    TRY(sql_select(tx, query->arena, &rows, error,
                   "SELECT " LEDGER_PLAN_COLUMNS " FROM plan WHERE state = 4 AND doomed = 0 AND "
                   "(?1 = '' OR sink = ?1) ORDER BY created_at, id",
                   sql_text(query->sink_id)));
    struct ledger_plan *plans = arena_array(query->arena, rows.row_count, sizeof(*plans));
    if (plans == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < rows.row_count; i++) {
        plans[i] = ledger_row_plan(&rows, i);
    }
    query->plans = plans;
    query->count = rows.row_count;
    return OK;
}

err ledger_list_undoomed(const struct db *db, struct arena *arena, str sink_id,
                         struct ledger_plan **out_plans, size_t *out_count, struct error *error)
{
    struct undoomed_query query = {.arena = arena, .sink_id = sink_id};
    TRY(db_read(db, list_undoomed_body, &query, error));
    *out_plans = query.plans;
    *out_count = query.count;
    return OK;
}

/* ---- held batches (decisions 21) ---- */

struct held_batch {
    str sink_id;
    str batch_id;
    str reason;
    i64 misses;
};

static err note_miss_body(struct db_tx *tx, void *context, struct error *error)
{
    struct held_batch *held = context;
    struct arena *arena AUTO_ARENA = arena_create(KIB * 64);
    instant now = db_now(tx);
    TRY(db_run(tx, error,
               "UPDATE batch SET misses = misses + 1, missed_at = ?3, held_reason = ?4 WHERE "
               "sink = ?1 AND batch_id = ?2 AND state = 1 AND (missed_at IS NULL OR "
               "missed_at <= ?5)",
               DB_T(held->sink_id), DB_T(held->batch_id), DB_N(now), DB_T(held->reason),
               DB_N(now - HELD_MISS_APART_US)));
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT misses FROM batch WHERE sink = ?1 AND batch_id = ?2",
                   DB_T(held->sink_id), DB_T(held->batch_id)));
    held->misses = rows.row_count == 1 ? db_number(&rows, 0, 0) : 0;
    return OK;
}

err ledger_note_miss(const struct db *db, str sink_id, str batch_id, str reason, i64 *out_misses,
                     struct error *error)
{
    struct held_batch held = {.sink_id = sink_id, .batch_id = batch_id, .reason = reason};
    TRY(db_transact(db, note_miss_body, &held, error));
    *out_misses = held.misses;
    return OK;
}

static err release_held_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct held_batch *held = context;
    return db_run(tx, error,
                  "UPDATE batch SET held = 0, held_reason = NULL, misses = 0, missed_at = NULL "
                  "WHERE sink = ?1 AND batch_id = ?2 AND state = 0",
                  DB_T(held->sink_id), DB_T(held->batch_id));
}

err ledger_release_held(const struct db *db, str sink_id, str batch_id, struct error *error)
{
    struct held_batch held = {.sink_id = sink_id, .batch_id = batch_id};
    return db_transact(db, release_held_body, &held, error);
}

static err touch_held_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct held_batch *held = context;
    return db_run(tx, error,
                  "UPDATE batch SET missed_at = ?3 WHERE sink = ?1 AND batch_id = ?2 AND held = 1",
                  DB_T(held->sink_id), DB_T(held->batch_id), DB_N(db_now(tx)));
}

err ledger_touch_held(const struct db *db, str sink_id, str batch_id, struct error *error)
{
    struct held_batch held = {.sink_id = sink_id, .batch_id = batch_id};
    return db_transact(db, touch_held_body, &held, error);
}

/* Its object may hold other batches: it goes with the last of them. */
static err discard_held_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct held_batch *held = context;
    i64 changes = 0;
    TRY(sql_change(tx, error, &changes,
                   "UPDATE batch SET state = 4, finished_at = ?3 WHERE sink = ?1 AND batch_id = ?2 "
                   "AND state = 0 AND held = 1",
                   DB_T(held->sink_id), DB_T(held->batch_id), DB_N(db_now(tx))));
    if (changes == 0) {
        return error_set(error, NOT_FOUND, ERROR_BATCH_NOT_FOUND, "no held batch %.*s",
                         STR_ARG(held->batch_id));
    }
    TRY(db_run(tx, error,
               "UPDATE sink SET rows_discarded = rows_discarded + (SELECT rows FROM batch WHERE "
               "sink = ?1 AND batch_id = ?2), waiting_batches = waiting_batches - 1, "
               "waiting_bytes = waiting_bytes - (SELECT bytes FROM batch WHERE sink = ?1 AND "
               "batch_id = ?2) WHERE id = ?1",
               DB_T(held->sink_id), DB_T(held->batch_id)));
    return db_run(tx, error,
                  "INSERT INTO doomed_object (warehouse, object_key, at, tries) SELECT DISTINCT "
                  "s.warehouse, b.object_key, ?3, 0 FROM batch b JOIN sink s ON s.id = b.sink "
                  "WHERE b.sink = ?1 AND b.batch_id = ?2 AND NOT EXISTS (SELECT 1 FROM batch o "
                  "LEFT JOIN plan p ON p.id = o.plan WHERE o.sink = b.sink AND o.uid = b.uid AND "
                  "(o.state <= 1 OR (o.state = 3 AND p.state = 4 AND p.doomed = 0))) "
                  "ON CONFLICT (warehouse, object_key) DO NOTHING",
                  DB_T(held->sink_id), DB_T(held->batch_id), DB_N(db_now(tx)));
}

err ledger_discard_held(const struct db *db, str sink_id, str batch_id, struct error *error)
{
    struct held_batch held = {.sink_id = sink_id, .batch_id = batch_id};
    return db_transact(db, discard_held_body, &held, error);
}
