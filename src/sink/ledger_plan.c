#include "sink/ledger_sql.h"

#include "base/planted.h"

/*             make_plan          mark_attempted              finish_plan
 *   (none) ─────────────► open ─────────────────► attempted ─────────────► committed
 *                          │                       │     ▲                    ▲
 *        void_open,        │            begin_void │     └─ mark_attempted    │
 *        void_rejected     ▼                       ▼                          │ finish_plan
 *                         void ◄─────────────── voiding ──────────────────────┘
 *                                   end_void
 *
 * open:      plan row and its object perhaps durable; no request was ever sent. A plan that is lost
 *            with the machine here leaves its batches pending, and an object that no chain names.
 * attempted: plan row and object are durable; at most one try can land.
 * voiding:   no new try may start; an old one may still land. The batches stay planned.
 * committed: the property read (n, id). Final.
 * void:      no request of it can land any more. Final.
 *
 * Each edge is one compare-and-swap in one transaction. A sink has one live plan (open, attempted,
 * voiding) at most; the unique index plan_live holds that too (I8). The edges out of the live
 * states are in ledger_finish.c. */

enum { PLAN_SCRATCH_BYTES_MAX = 64 * 1024 * 1024 };

err ledger_plan_in(struct db_tx *tx, struct arena *arena, str plan_id, struct ledger_plan *out_plan,
                   struct error *error)
{
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT " LEDGER_PLAN_COLUMNS " FROM plan WHERE id = ?1", DB_T(plan_id)));
    if (rows.row_count == 0) {
        return error_set(error, NOT_FOUND, ERROR_INTERNAL, "no plan %.*s", STR_ARG(plan_id));
    }
    *out_plan = ledger_row_plan(&rows, 0);
    return OK;
}

struct plan_query {
    struct arena *arena;
    str sink_id;
    str plan_id;
    struct ledger_plan plan;
    struct ledger_batch *batches;
    size_t batch_count;
};

static err live_plan_body(struct db_tx *tx, void *context, struct error *error)
{
    struct plan_query *query = context;
    struct db_rows rows = {0};
    TRY(sql_select(tx, query->arena, &rows, error,
                   "SELECT " LEDGER_PLAN_COLUMNS " FROM plan WHERE sink = ?1 AND state <= 2",
                   DB_T(query->sink_id)));
    if (rows.row_count == 0) {
        return error_set(error, NOT_FOUND, ERROR_NOT_FOUND, "the sink has no live plan");
    }
    query->plan = ledger_row_plan(&rows, 0);
    return OK;
}

static err find_plan_body(struct db_tx *tx, void *context, struct error *error)
{
    struct plan_query *query = context;
    return ledger_plan_in(tx, query->arena, query->plan_id, &query->plan, error);
}

err ledger_find_plan(const struct db *db, struct arena *arena, str plan_id,
                     struct ledger_plan *out_plan, struct error *error)
{
    struct plan_query query = {.arena = arena, .plan_id = plan_id};
    TRY(db_read(db, find_plan_body, &query, error));
    *out_plan = query.plan;
    return OK;
}

err ledger_live_plan(const struct db *db, struct arena *arena, str sink_id,
                     struct ledger_plan *out_plan, struct error *error)
{
    struct plan_query query = {.arena = arena, .sink_id = sink_id};
    TRY(db_read(db, live_plan_body, &query, error));
    *out_plan = query.plan;
    return OK;
}

static err plan_batches_body(struct db_tx *tx, void *context, struct error *error)
{
    struct plan_query *query = context;
    struct db_rows rows = {0};
    TRY(sql_select(tx, query->arena, &rows, error,
                   "SELECT " LEDGER_BATCH_COLUMNS LEDGER_BATCH_FROM
                   "WHERE b.plan = ?1 ORDER BY b.seq",
                   DB_T(query->plan_id)));
    return ledger_rows_batches(query->arena, &rows, &query->batches, &query->batch_count, error);
}

err ledger_plan_batches(const struct db *db, struct arena *arena, str plan_id,
                        struct ledger_batch **out_batches, size_t *out_count, struct error *error)
{
    struct plan_query query = {.arena = arena, .plan_id = plan_id};
    TRY(db_read(db, plan_batches_body, &query, error));
    *out_batches = query.batches;
    *out_count = query.batch_count;
    return OK;
}

/* ---- make ---- */

struct planning {
    struct arena *arena;
    str sink_id;
    str plan_id;
    i64 bytes_max;
    i64 batches_max;
    str trigger;
    struct ledger_plan plan;
};

/* The update takes the sink's row, so that two rollers plan one after the other. */
static err take_sink(struct db_tx *tx, const struct planning *planning, struct db_rows *out_sink,
                     struct error *error)
{
    i64 changes = 0;
    TRY(sql_change(tx, error, &changes,
                   "UPDATE sink SET rolled_at = ?2 WHERE id = ?1 AND state = 0 AND recovering = 0 "
                   "AND claim_state = 2",
                   DB_T(planning->sink_id), DB_N(db_now(tx))));
    if (changes == 0) {
        return ledger_lost(error, "the sink makes no plan in its present state");
    }
    return sql_select(tx, planning->arena, out_sink, error,
                      "SELECT last_n, last_plan_id, config_version, (SELECT count(*) FROM plan "
                      "WHERE sink = ?1 AND state <= 2) FROM sink WHERE id = ?1",
                      DB_T(planning->sink_id));
}

/* The last seq that the plan takes. The first batch always fits. */
static err choose_upto(struct db_tx *tx, const struct planning *planning, i64 *out_upto,
                       struct error *error)
{
    struct arena *scratch AUTO_ARENA = arena_create(PLAN_SCRATCH_BYTES_MAX);
    struct db_rows rows = {0};
    TRY(sql_select(tx, scratch, &rows, error,
                   "SELECT seq, bytes FROM batch WHERE sink = ?1 AND state <= 1 AND state = 0 AND "
                   "held = 0 ORDER BY seq LIMIT ?2",
                   DB_T(planning->sink_id), DB_N(planning->batches_max)));
    if (rows.row_count == 0) {
        return error_set(error, NOT_FOUND, ERROR_NOT_FOUND, "nothing waits for a roll");
    }
    i64 bytes = 0;
    i64 upto = 0;
    for (size_t i = 0; i < rows.row_count; i++) {
        bytes += db_number(&rows, i, 1);
        if (i > 0 && bytes > planning->bytes_max) {
            break;
        }
        upto = db_number(&rows, i, 0);
    }
    *out_upto = upto;
    return OK;
}

static err insert_plan(struct db_tx *tx, const struct planning *planning,
                       const struct db_rows *sink, i64 upto, struct error *error)
{
    TRY(db_run(
        tx, error,
        "INSERT INTO plan (id, sink, n, prev, config_version, state, begun, tried, attempts, "
        "rows_committed, rows_rejected, trigger, doomed, created_at) VALUES (?1, ?2, ?3, "
        "?4, ?5, 0, 0, 0, '[]', 0, 0, ?6, 0, ?7)",
        DB_T(planning->plan_id), DB_T(planning->sink_id), DB_N(db_number(sink, 0, 0) + 1),
        sql_text(db_text(sink, 0, 1)), DB_N(db_number(sink, 0, 2)), sql_text(planning->trigger),
        DB_N(db_now(tx))));
    return db_run(tx, error,
                  "UPDATE batch SET state = 1, plan = ?2 WHERE sink = ?1 AND state <= 1 AND "
                  "state = 0 AND held = 0 AND seq <= ?3",
                  DB_T(planning->sink_id), DB_T(planning->plan_id), DB_N(upto));
}

static err make_plan_body(struct db_tx *tx, void *context, struct error *error)
{
    struct planning *planning = context;
    struct db_rows sink = {0};
    TRY(take_sink(tx, planning, &sink, error));
    if (db_number(&sink, 0, 3) != 0) {
        return ledger_lost(error, "the sink has a live plan");
    }
    i64 upto = 0;
    TRY(choose_upto(tx, planning, &upto, error));
    TRY(insert_plan(tx, planning, &sink, upto, error));
    return ledger_plan_in(tx, planning->arena, planning->plan_id, &planning->plan, error);
}

err ledger_make_plan(const struct db *db, struct arena *arena, str sink_id, str plan_id,
                     i64 bytes_max, i64 batches_max, str trigger, struct ledger_plan *out_plan,
                     struct error *error)
{
    struct planning planning = {
        .arena = arena,
        .sink_id = sink_id,
        .plan_id = plan_id,
        .bytes_max = bytes_max,
        .batches_max = num_min_i64(batches_max, PLAN_BATCHES_MAX),
        .trigger = trigger,
    };
    TRY(db_transact_later(db, make_plan_body, &planning, error));
    *out_plan = planning.plan;
    return OK;
}

/* ---- tries ---- */

struct begun_try {
    str plan_id;
    bool ended;
    bool crash_loop;
    i64 tries; /* with this one */
};

static err read_tries(struct db_tx *tx, str plan_id, i64 *out_tries, bool *out_open,
                      struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)64 * KIB);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error, "SELECT tried, state FROM plan WHERE id = ?1",
                   DB_T(plan_id)));
    *out_tries = rows.row_count == 1 ? db_number(&rows, 0, 0) : 0;
    *out_open = rows.row_count == 1 && db_number(&rows, 0, 1) <= PLAN_ATTEMPTED;
    return OK;
}

static err begin_try_body(struct db_tx *tx, void *context, struct error *error)
{
    struct begun_try *begun = context;
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * KIB);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT begun, tried FROM plan WHERE id = ?1 AND state <= 1",
                   DB_T(begun->plan_id)));
    begun->ended = rows.row_count == 0;
    begun->crash_loop = !begun->ended && db_number(&rows, 0, 0) >= PLAN_BEGUN_MAX;
    if (begun->ended) {
        return OK;
    }
    begun->tries = db_number(&rows, 0, 1) + 1;
    if (!begun->crash_loop) {
        return db_run(tx, error,
                      "UPDATE plan SET begun = begun + 1, tried = tried + 1 WHERE id = ?1",
                      DB_T(begun->plan_id));
    }
    return db_run(tx, error,
                  "UPDATE sink SET state = 1, state_reason = 'crash_loop', last_error = "
                  "'the process died three times while rolling the same plan' WHERE state = 0 AND "
                  "id = (SELECT sink FROM plan WHERE id = ?1)",
                  DB_T(begun->plan_id));
}

err ledger_begin_try(const struct db *db, str plan_id, i64 *out_tries, struct error *error)
{
    struct begun_try begun = {.plan_id = plan_id};
    TRY(db_transact_later(db, begin_try_body, &begun, error));
    if (begun.ended) {
        return ledger_lost(error, "the plan has ended, or is about to");
    }
    if (begun.crash_loop) {
        return ledger_lost(error, "the plan was begun three times without an end");
    }
    *out_tries = begun.tries;
    return OK;
}

struct last_try {
    str plan_id;
    i64 tries;
    bool last;
};

static err is_last_body(struct db_tx *tx, void *context, struct error *error)
{
    struct last_try *asked = context;
    i64 tries = 0;
    bool open = false;
    TRY(read_tries(tx, asked->plan_id, &tries, &open, error));
    asked->last = open && tries == asked->tries;
    return OK;
}

err ledger_is_last_try(const struct db *db, str plan_id, i64 tries, bool *out_last,
                       struct error *error)
{
    struct last_try asked = {.plan_id = plan_id, .tries = tries};
    TRY(db_read(db, is_last_body, &asked, error));
    *out_last = asked.last;
    return OK;
}

static err end_try_body(struct db_tx *tx, void *context, struct error *error)
{
    const str *plan_id = context;
    return db_run(tx, error, "UPDATE plan SET begun = 0 WHERE id = ?1", DB_T(*plan_id));
}

err ledger_end_try(const struct db *db, str plan_id, struct error *error)
{
    return db_transact_later(db, end_try_body, &plan_id, error);
}

struct marking {
    str plan_id;
    str try_json;
    str counts;
};

/* The condition on the sink is I12's other half: after a void, a stop or a change of its settings
 * has committed, no try can start. */
static err mark_attempted_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct marking *marking = context;
    i64 changes = 0;
    TRY(sql_change(tx, error, &changes,
                   "UPDATE plan SET state = 1, counts = ?3, attempts = CASE WHEN attempts = '[]' "
                   "THEN '[' || ?2 || ']' ELSE substr(attempts, 1, length(attempts) - 1) || ',' || "
                   "?2 || ']' END WHERE id = ?1 AND state <= 1 AND EXISTS (SELECT 1 FROM sink s "
                   "WHERE s.id = plan.sink AND s.state = 0 AND s.recovering = 0 AND "
                   "s.config_version = plan.config_version)",
                   DB_T(marking->plan_id), DB_T(marking->try_json), DB_T(marking->counts)));
    return changes == 1 || PLANTED(11)
               ? OK
               : ledger_lost(error, "the plan may not be attempted any more");
}

err ledger_mark_attempted(const struct db *db, str plan_id, str try_json, str counts,
                          enum ledger_durability durability, struct error *error)
{
    struct marking marking = {.plan_id = plan_id, .try_json = try_json, .counts = counts};
    return durability == LEDGER_LATER ? db_transact_later(db, mark_attempted_body, &marking, error)
                                      : db_transact(db, mark_attempted_body, &marking, error);
}

/* ---- fences ---- */

struct recording {
    str id;
    str reason;
    i64 snapshot_id;
};

static err begin_void_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct recording *recording = context;
    i64 changes = 0;
    TRY(sql_change(
        tx, error, &changes,
        "UPDATE plan SET void_reason = CASE WHEN state = 2 THEN void_reason ELSE ?2 END, "
        "state = 2 WHERE id = ?1 AND state IN (1, 2)",
        DB_T(recording->id), DB_T(recording->reason)));
    return changes == 1 ? OK : ledger_lost(error, "the plan is neither attempted nor voiding");
}

err ledger_begin_void(const struct db *db, str plan_id, str reason, struct error *error)
{
    struct recording recording = {.id = plan_id, .reason = reason};
    return db_transact(db, begin_void_body, &recording, error);
}

#define APPEND_FENCE                                                                               \
    "fences = CASE WHEN fences IS NULL THEN '[' || ?2 || ']' ELSE "                                \
    "substr(fences, 1, length(fences) - 1) || ',' || ?2 || ']' END"

static err record_fence_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct recording *recording = context;
    i64 changes = 0;
    TRY(sql_change(tx, error, &changes,
                   "UPDATE plan SET " APPEND_FENCE " WHERE id = ?1 AND state = 2",
                   DB_T(recording->id), DB_N(recording->snapshot_id)));
    return changes == 1 ? OK : ledger_lost(error, "the plan is not voiding");
}

err ledger_record_fence(const struct db *db, str plan_id, i64 snapshot_id, struct error *error)
{
    struct recording recording = {.id = plan_id, .snapshot_id = snapshot_id};
    return db_transact(db, record_fence_body, &recording, error);
}

static err record_sink_fence_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct recording *recording = context;
    i64 changes = 0;
    TRY(sql_change(tx, error, &changes,
                   "UPDATE sink SET " APPEND_FENCE " WHERE id = ?1 AND state = 3",
                   DB_T(recording->id), DB_N(recording->snapshot_id)));
    return changes == 1 ? OK : ledger_lost(error, "the sink is not being deleted");
}

err ledger_record_sink_fence(const struct db *db, str sink_id, i64 snapshot_id, struct error *error)
{
    struct recording recording = {.id = sink_id, .snapshot_id = snapshot_id};
    return db_transact(db, record_sink_fence_body, &recording, error);
}
