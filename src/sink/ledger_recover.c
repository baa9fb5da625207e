#include "sink/ledger_recover.h"

#include "base/planted.h"
#include "sink/ledger_orphan_sql.h"
#include "sink/ledger_sql.h"

/* The flag stands beside the sink's state:
 *
 *               begin_recover, note_ahead            end_recover
 *   (clear) ───────────────────────────► recovering ─────────────► (clear)
 *                                         │      ▲ begin again
 *                                         ▼      │
 *                                        stop_recover: disabled; the flag stays (a chain that
 * cannot be proven) or goes (no table any more)
 *
 * While it stands the sink accepts nothing, plans nothing and starts no try. */

enum { RECOVER_SCRATCH_BYTES_MAX = 4 * 1024 * 1024 };

/* ---- the flag ---- */

static err set_flag(struct db_tx *tx, str sink_id, struct error *error)
{
    TRY(db_run(tx, error,
               "UPDATE sink SET recovering = 1, fences = NULL, mismatch_at = NULL WHERE "
               "(?1 = '' OR id = ?1) AND state <= 1",
               sql_text(sink_id)));
    return db_run(tx, error, "DELETE FROM node WHERE ?1 = ?1", DB_N(1));
}

static err begin_body(struct db_tx *tx, void *context, struct error *error)
{
    const str *sink_id = context;
    return set_flag(tx, *sink_id, error);
}

err ledger_begin_recover(const struct db *db, str sink_id, struct error *error)
{
    return db_transact(db, begin_body, &sink_id, error);
}

/* A recover that stood still may wake when another one has come to its end, and rolls and deletes
 * have gone on: none of its steps may happen any more. */
err ledger_recover_goes_on(struct db_tx *tx, str sink_id, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(RECOVER_SCRATCH_BYTES_MAX);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT 1 FROM sink WHERE id = ?1 AND recovering = 1 AND state <= 1",
                   DB_T(sink_id)));
    return rows.row_count == 1 ? OK : ledger_lost(error, "the sink is not recovering any more");
}

struct ahead {
    str sink_id;
    i64 n;
    str plan_id;
    bool behind;
};

/* The caller's reading of the ledger may be older than another roller's finish: it is read again.
 */
static err note_ahead_body(struct db_tx *tx, void *context, struct error *error)
{
    struct ahead *ahead = context;
    struct arena *arena AUTO_ARENA = arena_create(RECOVER_SCRATCH_BYTES_MAX);
    struct db_rows rows = {0};
    ahead->behind = false;
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT recovering, last_n, (SELECT count(*) FROM plan WHERE id = ?2 AND state "
                   "<= 3) FROM sink WHERE id = ?1 AND state <= 1",
                   DB_T(ahead->sink_id), DB_T(ahead->plan_id)));
    if (rows.row_count == 0) {
        return OK;
    }
    bool recovering = db_number(&rows, 0, 0) != 0;
    ahead->behind = recovering ||
                    (db_number(&rows, 0, 1) < ahead->n && db_number(&rows, 0, 2) == 0);
    return ahead->behind && !recovering ? set_flag(tx, ahead->sink_id, error) : OK;
}

err ledger_note_ahead(const struct db *db, str sink_id, i64 n, str plan_id, bool *out_behind,
                      struct error *error)
{
    struct ahead ahead = {.sink_id = sink_id, .n = n, .plan_id = plan_id};
    TRY(db_transact(db, note_ahead_body, &ahead, error));
    *out_behind = ahead.behind;
    return OK;
}

struct fencing {
    str sink_id;
    i64 snapshot_id;
};

static err fence_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct fencing *fencing = context;
    i64 changes = 0;
    TRY(sql_change(tx, error, &changes,
                   "UPDATE sink SET fences = CASE WHEN fences IS NULL THEN '[' || ?2 || ']' ELSE "
                   "substr(fences, 1, length(fences) - 1) || ',' || ?2 || ']' END WHERE id = ?1 "
                   "AND recovering = 1 AND state <= 1",
                   DB_T(fencing->sink_id), DB_N(fencing->snapshot_id)));
    return changes == 1 ? OK : ledger_lost(error, "the sink is not recovering");
}

err ledger_record_recover_fence(const struct db *db, str sink_id, i64 snapshot_id,
                                struct error *error)
{
    struct fencing fencing = {.sink_id = sink_id, .snapshot_id = snapshot_id};
    return db_transact(db, fence_body, &fencing, error);
}

/* Step 8. Each query counts what may not be. */
static err check_invariants(struct db_tx *tx, struct arena *arena, str sink_id, struct error *error)
{
    static const struct {
        const char *what;
        const char *sql;
    } checks[] = {
        {"I13: the books",
         "SELECT count(*) FROM sink s WHERE s.id = ?1 AND s.rows_accepted - s.rows_committed - "
         "s.rows_rejected - s.rows_discarded <> (SELECT coalesce(sum(b.rows), 0) FROM batch b "
         "WHERE "
         "b.sink = s.id AND b.state <= 1)"},
        {"I6: a void uid in a waiting row",
         "SELECT count(*) FROM batch b JOIN void_uid v ON v.uid = b.uid WHERE b.sink = ?1 AND "
         "b.state <= 1"},
        {"I8: a planned batch without a live plan",
         "SELECT count(*) FROM batch b LEFT JOIN plan p ON p.id = b.plan WHERE b.sink = ?1 AND "
         "b.state = 1 AND (p.id IS NULL OR p.state > 2)"},
        {"I7: a live plan", "SELECT count(*) FROM plan WHERE sink = ?1 AND state <= 2"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(checks); i++) {
        struct db_rows rows = {0};
        TRY(sql_select(tx, arena, &rows, error, checks[i].sql, DB_T(sink_id)));
        if (db_number(&rows, 0, 0) != 0) {
            return error_set(error, CORRUPT, ERROR_INTERNAL, "recovered sink %.*s breaks %s",
                             STR_ARG(sink_id), checks[i].what);
        }
    }
    return OK;
}

err ledger_recount_waiting(struct db_tx *tx, str sink_id, struct error *error)
{
    return db_run(tx, error,
                  "UPDATE sink SET waiting_batches = (SELECT count(*) FROM batch b WHERE b.sink = "
                  "?1 AND b.state <= 1), waiting_bytes = (SELECT coalesce(sum(b.bytes), 0) FROM "
                  "batch b WHERE b.sink = ?1 AND b.state <= 1) WHERE id = ?1",
                  DB_T(sink_id));
}

static err end_body(struct db_tx *tx, void *context, struct error *error)
{
    const str *sink_id = context;
    struct arena *arena AUTO_ARENA = arena_create(RECOVER_SCRATCH_BYTES_MAX);
    TRY(ledger_recover_goes_on(tx, *sink_id, error));
    TRY(check_invariants(tx, arena, *sink_id, error));
    TRY(ledger_recount_waiting(tx, *sink_id, error));
    TRY(db_run(tx, error,
               "UPDATE sink SET recovering = 0, fences = NULL, mismatch_at = NULL, last_error = "
               "NULL WHERE id = ?1",
               DB_T(*sink_id)));
    return db_run(tx, error,
                  "UPDATE sink SET state = 0, state_reason = NULL WHERE id = ?1 AND state = 1 AND "
                  "state_reason = 'ledger_mismatch'",
                  DB_T(*sink_id));
}

err ledger_end_recover(const struct db *db, str sink_id, struct error *error)
{
    return db_transact(db, end_body, &sink_id, error);
}

struct stopping {
    str sink_id;
    str reason;
    str detail;
    enum ledger_stop flag;
};

static err stop_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct stopping *stopping = context;
    TRY(ledger_recover_goes_on(tx, stopping->sink_id, error));
    TRY(ledger_recount_waiting(tx, stopping->sink_id, error));
    return db_run(
        tx, error,
        "UPDATE sink SET state = 1, state_reason = ?2, last_error = ?3, mismatch_at = "
        "NULL, recovering = CASE WHEN ?4 = 1 THEN 0 ELSE recovering END WHERE id = ?1 AND "
        "state <= 1",
        DB_T(stopping->sink_id), DB_T(stopping->reason), DB_T(stopping->detail),
        DB_N(stopping->flag == LEDGER_STOP_CLEAR_FLAG ? 1 : 0));
}

err ledger_stop_recover(const struct db *db, str sink_id, str reason, str detail,
                        enum ledger_stop flag, struct error *error)
{
    struct stopping stopping = {
        .sink_id = sink_id, .reason = reason, .detail = detail, .flag = flag};
    return db_transact(db, stop_body, &stopping, error);
}

/* ---- claim and undo ---- */

static err prove_claim_body(struct db_tx *tx, void *context, struct error *error)
{
    const str *sink_id = context;
    return db_run(tx, error,
                  "UPDATE sink SET claim_state = 2, last_n = 0, last_plan_id = claim_id WHERE "
                  "id = ?1 AND claim_state <= 1 AND recovering = 1",
                  DB_T(*sink_id));
}

err ledger_prove_claim(const struct db *db, str sink_id, struct error *error)
{
    return db_transact(db, prove_claim_body, &sink_id, error);
}

struct undoing {
    str sink_id;
    str proven_id;
    i64 undone;
};

static err undo_body(struct db_tx *tx, void *context, struct error *error)
{
    struct undoing *undoing = context;
    TRY(ledger_recover_goes_on(tx, undoing->sink_id, error));
    TRY(sql_change(tx, error, &undoing->undone,
                   "UPDATE plan SET state = 4, begun = 0, doomed = 1, void_reason = 'recover', "
                   "finished_at = ?3 WHERE sink = ?1 AND state <= 2 AND id <> ?2",
                   DB_T(undoing->sink_id), sql_text(undoing->proven_id), DB_N(db_now(tx))));
    /* What waits was perhaps planned since, by plans that are forgotten. */
    return db_run(tx, error,
                  "UPDATE batch SET state = 0, plan = NULL, retried = 1 WHERE sink = ?1 AND state "
                  "<= 1 AND (plan IS NULL OR plan <> ?2)",
                  DB_T(undoing->sink_id), sql_text(undoing->proven_id));
}

err ledger_undo_plans(const struct db *db, str sink_id, str proven_id, i64 *out_undone,
                      struct error *error)
{
    struct undoing undoing = {.sink_id = sink_id, .proven_id = proven_id};
    TRY(db_transact(db, undo_body, &undoing, error));
    *out_undone = undoing.undone;
    return OK;
}

/* ---- redo ---- */

struct proving {
    struct ledger_proven *plan;
    struct arena *arena;
    enum plan_state as; /* PLAN_COMMITTED, or PLAN_VOID by a verdict */
    const struct map *missing;
    bool known;
    i64 rows_committed;
    i64 rows_rejected;
};

static err put_plan(struct db_tx *tx, const struct proving *proving, struct error *error)
{
    const struct ledger_proven *plan = proving->plan;
    return db_run(
        tx, error,
        "INSERT INTO plan (id, sink, n, prev, config_version, state, begun, tried, attempts, "
        "void_reason, snapshot_id, rows_committed, rows_rejected, trigger, doomed, created_at, "
        "finished_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 1, '[]', ?7, ?8, ?9, ?10, 'recovery', "
        "?11, "
        "?12, ?12) ON CONFLICT (id) DO UPDATE SET state = excluded.state, begun = 0, snapshot_id = "
        "coalesce(excluded.snapshot_id, plan.snapshot_id), rows_committed = "
        "excluded.rows_committed, rows_rejected = excluded.rows_rejected, doomed = "
        "excluded.doomed, void_reason = excluded.void_reason, finished_at = excluded.finished_at",
        DB_T(plan->id), DB_T(plan->sink_id), DB_N(plan->n), DB_T(plan->prev),
        DB_N(plan->config_version), DB_N(proving->as),
        proving->as == PLAN_VOID ? DB_T(STR("all_rejected")) : DB_NIL,
        sql_number_or_null(plan->snapshot_id), DB_N(proving->rows_committed),
        DB_N(proving->rows_rejected), DB_N(proving->as == PLAN_VOID ? 1 : 0), DB_N(db_now(tx)));
}

/* The row that stands under the id, as far as it matters here. */
struct standing {
    bool found;
    bool same_uid;
    bool same_body;
    enum batch_state state;
    bool settled; /* by this very plan */
    i64 rows;
    i64 bytes;
    i64 rows_committed;
    i64 rows_rejected;
    struct uid uid;
    str object_key;
};

static err find_standing(struct db_tx *tx, const struct proving *proving,
                         const struct ledger_batch *batch, struct standing *out_standing,
                         struct error *error)
{
    struct db_rows rows = {0};
    struct standing standing = {0};
    TRY(sql_select(tx, proving->arena, &rows, error,
                   "SELECT uid, body_hash, state, plan, rows, bytes, rows_committed, "
                   "rows_rejected, object_key FROM batch WHERE sink = ?1 AND batch_id = ?2",
                   DB_T(proving->plan->sink_id), DB_T(batch->batch_id)));
    if (rows.row_count > 0) {
        str hash = db_at(&rows, 0, 1)->bytes;
        standing = (struct standing){
            .found = true,
            .same_uid = str_equal(db_text(&rows, 0, 0), id_uid_str(&batch->uid)),
            .same_body = hash.size == sizeof(batch->body_hash) &&
                         memcmp(hash.data, batch->body_hash, hash.size) == 0,
            .state = (enum batch_state)db_number(&rows, 0, 2),
            .settled = str_equal(db_text(&rows, 0, 3), proving->plan->id) &&
                       db_number(&rows, 0, 2) >= BATCH_COMMITTED,
            .rows = db_number(&rows, 0, 4),
            .bytes = db_number(&rows, 0, 5),
            .rows_committed = db_number(&rows, 0, 6),
            .rows_rejected = db_number(&rows, 0, 7),
            .object_key = db_text(&rows, 0, 8),
        };
        if (!id_uid_parse(db_text(&rows, 0, 0), &standing.uid)) {
            return error_set(error, CORRUPT, ERROR_LEDGER_DOWN, "batch row %.*s is damaged",
                             STR_ARG(batch->batch_id));
        }
    }
    *out_standing = standing;
    return OK;
}

static err insert_proven(struct db_tx *tx, const struct proving *proving,
                         const struct ledger_batch *batch, struct error *error)
{
    struct ledger_segment segment = {.object_key = batch->object_key,
                                     .batch_id = batch->batch_id,
                                     .uid = batch->uid,
                                     .bytes = batch->bytes,
                                     .rows = batch->rows,
                                     .refused = batch->refused,
                                     .received_at = batch->received_at};
    str answer;
    /* A copy of another history may call it void: the table knows better (I6). */
    TRY(db_run(tx, error, "DELETE FROM void_uid WHERE uid = ?1", DB_T(id_uid_str(&batch->uid))));
    TRY(orphan_print_answer(proving->arena, &segment, &answer, error));
    TRY(db_run(tx, error,
               "INSERT INTO batch (sink, batch_id, uid, object_key, byte_offset, bytes, rows, "
               "refused, sha256, body_hash, seq, received_at, ingest_ts, answer, state, held, "
               "misses, retried, rows_committed, rows_rejected) VALUES (?1, ?2, ?3, ?4, ?5, ?6, "
               "?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 0, 0, 0, 0, 0, 0)",
               DB_T(proving->plan->sink_id), DB_T(batch->batch_id), DB_T(id_uid_str(&batch->uid)),
               DB_T(batch->object_key), DB_N(batch->offset), DB_N(batch->bytes), DB_N(batch->rows),
               DB_N(batch->refused), sql_bytes(batch->sha256.bytes, 32),
               sql_bytes(batch->body_hash, 16), DB_N(batch->seq), DB_N(batch->received_at),
               DB_N(batch->ingest_ts), DB_T(answer)));
    return orphan_count_accepted(tx, proving->plan->sink_id, &segment, error);
}

static err remove_row(struct db_tx *tx, const struct proving *proving,
                      const struct ledger_batch *batch, struct error *error)
{
    return db_run(tx, error, "DELETE FROM batch WHERE sink = ?1 AND batch_id = ?2",
                  DB_T(proving->plan->sink_id), DB_T(batch->batch_id));
}

/* A waiting row that never was: its rows leave the books, its object waits for a person or goes. */
static err displace_row(struct db_tx *tx, struct proving *proving, const struct ledger_batch *batch,
                        const struct standing *standing, struct error *error)
{
    str sink_id = proving->plan->sink_id;
    bool referred = false;
    TRY(remove_row(tx, proving, batch, error));
    TRY(db_run(tx, error,
               "UPDATE sink SET rows_accepted = rows_accepted - ?2, bytes_accepted = "
               "bytes_accepted - ?3, batches = batches - 1 WHERE id = ?1",
               DB_T(sink_id), DB_N(standing->rows), DB_N(standing->bytes)));
    if (!standing->same_body) {
        proving->plan->quarantined++;
        return orphan_quarantine(tx, proving->arena, sink_id, batch->batch_id, &standing->uid,
                                 error);
    }
    TRY(orphan_is_referred(tx, proving->arena, sink_id, &standing->uid, &referred, error));
    return referred ? OK : orphan_void(tx, sink_id, &standing->uid, standing->object_key, error);
}

/* The chain wins over what the ledger took for final. */
static err unsettle_row(struct db_tx *tx, const struct proving *proving,
                        const struct standing *standing, struct error *error)
{
    return db_run(tx, error,
                  "UPDATE sink SET rows_committed = rows_committed - ?2, rows_rejected = "
                  "rows_rejected - ?3, rows_discarded = rows_discarded - ?4 WHERE id = ?1",
                  DB_T(proving->plan->sink_id), DB_N(standing->rows_committed),
                  DB_N(standing->rows_rejected),
                  DB_N(standing->state == BATCH_DISCARDED ? standing->rows : 0));
}

static err count_reasons(struct db_tx *tx, const struct proving *proving, size_t index,
                         struct error *error)
{
    i64 left = proving->plan->verdicts[index].rows_rejected;
    const struct ledger_reasons *reasons = proving->plan->reasons;
    for (size_t i = 0; reasons != NULL && i < reasons[index].count && left > 0; i++) {
        i64 rows = num_min_i64(reasons[index].counts[i].count, left);
        TRY(orphan_count_reason(tx, proving->plan->sink_id, reasons[index].counts[i].name, rows,
                                error));
        left -= rows;
    }
    return orphan_count_reason(tx, proving->plan->sink_id, STR(ORPHAN_REASON_UNKNOWN), left, error);
}

static err settle_row(struct db_tx *tx, struct proving *proving, size_t index, struct error *error)
{
    const struct ledger_batch *batch = &proving->plan->batches[index];
    const struct ledger_verdict *verdict = &proving->plan->verdicts[index];
    bool rejected = proving->as == PLAN_VOID ||
                    (verdict->rows_committed == 0 && verdict->rows_rejected > 0);
    proving->plan->committed++;
    TRY(count_reasons(tx, proving, index, error));
    TRY(db_run(tx, error,
               "UPDATE batch SET state = ?3, plan = ?4, rows_committed = ?5, rows_rejected = ?6, "
               "held = 0, held_reason = NULL, finished_at = ?7 WHERE sink = ?1 AND batch_id = ?2",
               DB_T(proving->plan->sink_id), DB_T(batch->batch_id),
               DB_N(rejected ? BATCH_REJECTED : BATCH_COMMITTED), DB_T(proving->plan->id),
               DB_N(verdict->rows_committed), DB_N(verdict->rows_rejected), DB_N(db_now(tx))));
    return db_run(tx, error,
                  "UPDATE sink SET rows_committed = rows_committed + ?2, rows_rejected = "
                  "rows_rejected + ?3, next_seq = CASE WHEN next_seq <= ?4 THEN ?4 + 1 ELSE "
                  "next_seq END, last_ingest_ts = CASE WHEN last_ingest_ts < ?5 THEN ?5 ELSE "
                  "last_ingest_ts END WHERE id = ?1",
                  DB_T(proving->plan->sink_id), DB_N(verdict->rows_committed),
                  DB_N(verdict->rows_rejected), DB_N(batch->seq), DB_N(batch->ingest_ts));
}

static err prove_batch(struct db_tx *tx, struct proving *proving, size_t index, struct error *error)
{
    const struct ledger_batch *batch = &proving->plan->batches[index];
    struct standing standing = {0};
    TRY(find_standing(tx, proving, batch, &standing, error));
    proving->rows_committed += proving->plan->verdicts[index].rows_committed;
    proving->rows_rejected += proving->plan->verdicts[index].rows_rejected;
    bool waits = standing.found && standing.state <= BATCH_PLANNED;
    if (standing.settled || (PLANTED(27) && standing.found && !standing.same_uid) ||
        (PLANTED(7) && !standing.found) || (proving->as == PLAN_VOID && standing.found && !waits)) {
        return OK; /* so it was; or the chain wins over the verdict */
    }
    if (proving->as == PLAN_VOID && standing.found && !standing.same_uid) {
        return OK;
    }
    if (standing.found && standing.same_uid && !waits) {
        TRY(unsettle_row(tx, proving, &standing, error));
    }
    /* A final row under another uid: the id was used anew after its seven days. Its counts stay in
     * the books. */
    if (standing.found && !standing.same_uid) {
        TRY(waits ? displace_row(tx, proving, batch, &standing, error)
                  : remove_row(tx, proving, batch, error));
    }
    if (!standing.same_uid) {
        TRY(insert_proven(tx, proving, batch, error));
    }
    return settle_row(tx, proving, index, error);
}

static err prove_body(struct db_tx *tx, void *context, struct error *error)
{
    struct proving *proving = context;
    struct ledger_proven *plan = proving->plan;
    struct arena *arena AUTO_ARENA = arena_create((size_t)64 * MIB);
    proving->arena = arena;
    proving->rows_committed = 0;
    proving->rows_rejected = 0;
    plan->committed = 0;
    plan->quarantined = 0;
    TRY(ledger_recover_goes_on(tx, plan->sink_id, error));
    for (size_t i = 0; i < plan->count; i++) {
        struct arena_mark mark = arena_mark(arena);
        TRY(prove_batch(tx, proving, i, error));
        arena_reset_to(arena, mark);
    }
    TRY(put_plan(tx, proving, error));
    if (proving->as == PLAN_COMMITTED) {
        TRY(db_run(tx, error,
                   "UPDATE sink SET last_n = ?2, last_plan_id = ?3 WHERE id = ?1 AND last_n < ?2",
                   DB_T(plan->sink_id), DB_N(plan->n), DB_T(plan->id)));
    }
    return ledger_doom_plan_objects(tx, plan->id, error);
}

err ledger_prove_plan(const struct db *db, struct ledger_proven *plan, struct error *error)
{
    struct proving proving = {.plan = plan, .as = PLAN_COMMITTED};
    return db_transact(db, prove_body, &proving, error);
}

static err knows_plan(struct db_tx *tx, str plan_id, bool *out_known, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(RECOVER_SCRATCH_BYTES_MAX);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT 1 FROM plan WHERE id = ?1 AND (state = 3 OR (state = 4 AND "
                   "void_reason = 'all_rejected'))",
                   DB_T(plan_id)));
    *out_known = rows.row_count > 0;
    return OK;
}

static err prove_verdict_body(struct db_tx *tx, void *context, struct error *error)
{
    struct proving *proving = context;
    TRY(knows_plan(tx, proving->plan->id, &proving->known, error));
    return proving->known ? OK : prove_body(tx, proving, error);
}

err ledger_prove_verdict(const struct db *db, struct ledger_proven *plan, bool *out_known,
                         struct error *error)
{
    struct proving proving = {.plan = plan, .as = PLAN_VOID};
    TRY(db_transact(db, prove_verdict_body, &proving, error));
    *out_known = proving.known;
    return OK;
}

static err is_missing(const struct proving *proving, const struct ledger_batch *batch,
                      const struct standing *standing, bool *out_missing, struct error *error)
{
    str key = str_format(proving->arena, "%.*s/%.*s", STR_ARG(id_uid_str(&standing->uid)),
                         STR_ARG(batch->batch_id));
    if (key.data == NULL) {
        return error_memory(error);
    }
    *out_missing = map_get(proving->missing, key) != NULL;
    return OK;
}

static err settle_missing(struct db_tx *tx, struct proving *proving, size_t index,
                          struct error *error)
{
    const struct ledger_batch *batch = &proving->plan->batches[index];
    struct standing standing = {0};
    bool missing = false;
    TRY(find_standing(tx, proving, batch, &standing, error));
    if (!standing.found || standing.state > BATCH_PLANNED || !standing.same_body) {
        return OK;
    }
    TRY(is_missing(proving, batch, &standing, &missing, error));
    if (!missing) {
        return OK;
    }
    TRY(displace_row(tx, proving, batch, &standing, error));
    TRY(insert_proven(tx, proving, batch, error));
    return settle_row(tx, proving, index, error);
}

static err settle_missing_body(struct db_tx *tx, void *context, struct error *error)
{
    struct proving *proving = context;
    struct ledger_proven *plan = proving->plan;
    struct arena *arena AUTO_ARENA = arena_create((size_t)64 * MIB);
    proving->arena = arena;
    plan->committed = 0;
    TRY(ledger_recover_goes_on(tx, plan->sink_id, error));
    for (size_t i = 0; i < plan->count; i++) {
        struct arena_mark mark = arena_mark(arena);
        TRY(settle_missing(tx, proving, i, error));
        arena_reset_to(arena, mark);
    }
    return ledger_doom_plan_objects(tx, plan->id, error);
}

err ledger_settle_missing(const struct db *db, struct ledger_proven *plan,
                          const struct map *missing, struct error *error)
{
    struct proving proving = {.plan = plan, .as = PLAN_VOID, .missing = missing};
    return db_transact(db, settle_missing_body, &proving, error);
}

struct plan_known {
    str plan_id;
    bool known;
};

static err knows_plan_body(struct db_tx *tx, void *context, struct error *error)
{
    struct plan_known *asked = context;
    return knows_plan(tx, asked->plan_id, &asked->known, error);
}

err ledger_knows_plan(const struct db *db, str plan_id, bool *out_known, struct error *error)
{
    struct plan_known asked = {.plan_id = plan_id};
    TRY(db_read(db, knows_plan_body, &asked, error));
    *out_known = asked.known;
    return OK;
}
