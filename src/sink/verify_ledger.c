#include "sink/ledger_sql.h"
#include "sink/sweep.h"
#include "sink/verify_steps.h"

/* What the ledger alone shows. It is read in one transaction; the sweeps' ages are asked after it,
 * so that whatever they had forgotten by then counts as old. */

#define SLACK_US (3600 * TIME_SECOND_US)

/* ---- reading ---- */

struct ledger_reading {
    struct verify *verify;
    str sink_id;
};

/* ledger_row_batch's order, without the answers: they are the bulk of a row. */
#define BATCH_COLUMNS                                                                              \
    "b.batch_id, b.uid, b.object_key, b.byte_offset, b.bytes, b.rows, b.refused, b.sha256, "       \
    "b.body_hash, b.seq, b.received_at, b.ingest_ts, '', b.state, b.held, b.held_reason, "         \
    "b.misses, b.missed_at, b.plan, b.rows_committed, b.rows_rejected, b.finished_at, "            \
    "p.snapshot_id, b.retried"

static struct ledger_sink row_sink(const struct db_rows *rows)
{
    return (struct ledger_sink){
        .id = db_text(rows, 0, 0),
        .name = db_text(rows, 0, 1),
        .namespace_name = db_text(rows, 0, 2),
        .table_name = db_text(rows, 0, 3),
        .table_uuid = db_text(rows, 0, 4),
        .state = (enum sink_state)db_number(rows, 0, 5),
        .config_version = db_number(rows, 0, 6),
        .key_columns = db_text(rows, 0, 7),
        .claim_id = db_text(rows, 0, 8),
        .claim_state = (enum claim_state)db_number(rows, 0, 9),
        .last_n = db_number(rows, 0, 10),
        .last_plan_id = db_text(rows, 0, 11),
        .created_at = db_number(rows, 0, 12),
        .batches = db_number(rows, 0, 13),
        .rows_accepted = db_number(rows, 0, 14),
        .rows_refused = db_number(rows, 0, 15),
        .rows_committed = db_number(rows, 0, 16),
        .rows_rejected = db_number(rows, 0, 17),
        .rows_discarded = db_number(rows, 0, 18),
    };
}

MUST_USE static err read_sink(struct db_tx *tx, struct verify *verify, str sink_id,
                              struct error *error)
{
    struct db_rows rows = {0};
    TRY(sql_select(tx, verify->arena, &rows, error,
                   "SELECT id, name, namespace, table_name, table_uuid, state, config_version, "
                   "key_columns, claim_id, claim_state, last_n, last_plan_id, created_at, batches, "
                   "rows_accepted, rows_refused, rows_committed, rows_rejected, rows_discarded, "
                   "next_seq, waiting_batches, waiting_bytes, (SELECT coalesce(sum(rows), 0) FROM "
                   "reject_count r WHERE r.sink = sink.id) FROM sink WHERE id = ?1",
                   DB_T(sink_id)));
    if (rows.row_count == 0) {
        return error_set(error, NOT_FOUND, ERROR_SINK_NOT_FOUND, "there is no sink %.*s",
                         STR_ARG(sink_id));
    }
    verify->sink = row_sink(&rows);
    verify->counters = (struct verify_counters){.next_seq = db_number(&rows, 0, 19),
                                                .waiting_batches = db_number(&rows, 0, 20),
                                                .waiting_bytes = db_number(&rows, 0, 21),
                                                .reject_rows = db_number(&rows, 0, 22)};
    return OK;
}

MUST_USE static err read_plans(struct db_tx *tx, struct verify *verify, str sink_id,
                               struct error *error)
{
    struct db_rows rows = {0};
    TRY(sql_select(tx, verify->arena, &rows, error,
                   "SELECT " LEDGER_PLAN_COLUMNS " FROM plan WHERE sink = ?1 ORDER BY n, "
                   "created_at, id",
                   DB_T(sink_id)));
    verify->plans = arena_array(verify->arena, rows.row_count, sizeof(*verify->plans));
    if (verify->plans == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < rows.row_count; i++) {
        verify->plans[i] = ledger_row_plan(&rows, i);
    }
    verify->plan_count = rows.row_count;
    return OK;
}

static err read_body(struct db_tx *tx, void *context, struct error *error)
{
    struct ledger_reading *reading = context;
    struct verify *verify = reading->verify;
    struct db_rows rows = {0};
    TRY(read_sink(tx, verify, reading->sink_id, error));
    TRY(read_plans(tx, verify, reading->sink_id, error));
    TRY(sql_select(tx, verify->arena, &rows, error,
                   "SELECT " BATCH_COLUMNS LEDGER_BATCH_FROM
                   "WHERE b.sink = ?1 ORDER BY b.seq, b.batch_id",
                   DB_T(reading->sink_id)));
    TRY(ledger_rows_batches(verify->arena, &rows, &verify->batches, &verify->batch_count, error));
    TRY(sql_select(tx, verify->arena, &rows, error,
                   "SELECT DISTINCT b.uid FROM batch b JOIN void_uid v ON v.uid = b.uid WHERE "
                   "b.sink = ?1 ORDER BY b.uid",
                   DB_T(reading->sink_id)));
    for (size_t i = 0; i < rows.row_count; i++) {
        verify_find(verify, "I6", db_text(&rows, i, 0), VERIFY_CURE_LEDGER,
                    "the uid is void, and a batch row names it");
    }
    TRY(sql_select(tx, verify->arena, &rows, error,
                   "SELECT DISTINCT b.object_key FROM batch b JOIN doomed_object d ON "
                   "d.object_key = b.object_key WHERE b.sink = ?1 AND b.state <= 1 AND d.warehouse "
                   "= ?2 ORDER BY b.object_key",
                   DB_T(reading->sink_id), DB_T(verify->env->warehouse->name)));
    for (size_t i = 0; i < rows.row_count; i++) {
        verify_find(verify, "I16", db_text(&rows, i, 0), VERIFY_CURE_LEDGER,
                    "the object is to be deleted, and a batch in it is not final");
    }
    return OK;
}

/* The index of the batch's plan; plan_count when it has none that is there. */
static size_t plan_index(const struct verify *verify, const struct ledger_batch *batch)
{
    const u64 *place = batch->plan_id.data == NULL ? NULL
                                                   : map_get(verify->plan_of, batch->plan_id);
    return place == NULL ? verify->plan_count : (size_t)*place;
}

/* A counting sort: each plan's batches side by side, in seq order. */
MUST_USE static err group_by_plan(struct verify *verify, struct error *error)
{
    size_t *first = arena_array(verify->arena, verify->plan_count + 2, sizeof(*first));
    verify->planned = arena_array(verify->arena, verify->batch_count, sizeof(*verify->planned));
    if (first == NULL || verify->planned == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < verify->batch_count; i++) {
        first[plan_index(verify, &verify->batches[i]) + 1]++;
    }
    for (size_t i = 0; i <= verify->plan_count; i++) {
        first[i + 1] += first[i];
    }
    size_t *next = arena_array(verify->scratch, verify->plan_count + 1, sizeof(*next));
    if (next == NULL) {
        return error_memory(error);
    }
    memcpy(next, first, (verify->plan_count + 1) * sizeof(*next));
    for (size_t i = 0; i < verify->batch_count; i++) {
        verify->planned[next[plan_index(verify, &verify->batches[i])]++] = verify->batches[i];
    }
    verify->plan_first = first;
    return OK;
}

MUST_USE static err index_rows(struct verify *verify, struct error *error)
{
    verify->batch_of = map_create(verify->arena, verify->batch_count);
    verify->plan_of = map_create(verify->arena, verify->plan_count);
    if (verify->batch_of == NULL || verify->plan_of == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < verify->batch_count; i++) {
        u64 *place = map_put(verify->batch_of, verify->batches[i].batch_id, &(bool){false});
        if (place == NULL) {
            return error_memory(error);
        }
        *place = i;
    }
    for (size_t i = 0; i < verify->plan_count; i++) {
        u64 *place = map_put(verify->plan_of, verify->plans[i].id, &(bool){false});
        if (place == NULL) {
            return error_memory(error);
        }
        *place = i;
    }
    return group_by_plan(verify, error);
}

err verify_read_ledger(struct verify *verify, str sink_id, struct error *error)
{
    struct ledger_reading reading = {.verify = verify, .sink_id = sink_id};
    TRY(db_read(verify->env->db, read_body, &reading, error));
    TRY(ledger_old_before(verify->env->db, SWEEP_BATCHES_US, &verify->young, error));
    TRY(ledger_old_before(verify->env->db, SWEEP_PLANS_US, &verify->young_plan, error));
    verify->young += SLACK_US;
    verify->young_plan += SLACK_US;
    verify->report->batches = (i64)verify->batch_count;
    verify->report->plans = (i64)verify->plan_count;
    return index_rows(verify, error);
}

struct ledger_batch *verify_batches_of(const struct verify *verify, size_t plan, size_t *out_count)
{
    *out_count = verify->plan_first[plan + 1] - verify->plan_first[plan];
    return &verify->planned[verify->plan_first[plan]];
}

/* ---- one batch ---- */

bool verify_is_final(const struct ledger_batch *batch)
{
    return batch->state != BATCH_PENDING && batch->state != BATCH_PLANNED;
}

static bool plan_is(const struct verify *verify, str plan_id, enum plan_state a, enum plan_state b,
                    enum plan_state c)
{
    const u64 *place = plan_id.data == NULL ? NULL : map_get(verify->plan_of, plan_id);
    if (place == NULL) {
        return false;
    }
    enum plan_state state = verify->plans[*place].state;
    return state == a || state == b || state == c;
}

static bool plan_fits(const struct verify *verify, const struct ledger_batch *batch)
{
    switch (batch->state) {
    case BATCH_PENDING:
        return batch->plan_id.data == NULL;
    case BATCH_PLANNED:
        return plan_is(verify, batch->plan_id, PLAN_OPEN, PLAN_ATTEMPTED, PLAN_VOIDING);
    case BATCH_COMMITTED:
        return plan_is(verify, batch->plan_id, PLAN_COMMITTED, PLAN_COMMITTED, PLAN_COMMITTED);
    case BATCH_REJECTED: /* at the intake, without a plan */
        return (batch->plan_id.data == NULL && batch->object_key.size == 0) ||
               plan_is(verify, batch->plan_id, PLAN_COMMITTED, PLAN_VOID, PLAN_VOID);
    case BATCH_DISCARDED:
        return true;
    }
    return false;
}

static void check_batch(struct verify *verify, const struct ledger_batch *batch)
{
    if (!plan_fits(verify, batch)) {
        verify_find(verify, "I17", batch->batch_id, VERIFY_CURE_LEDGER,
                    "the batch's state %d does not go with its plan %.*s", (int)batch->state,
                    STR_ARG(batch->plan_id.data == NULL ? STR("(none)") : batch->plan_id));
    }
    bool counted = batch->state == BATCH_COMMITTED || batch->state == BATCH_REJECTED;
    if (counted && batch->rows_committed + batch->rows_rejected != batch->rows) {
        verify_find(verify, "I13", batch->batch_id, VERIFY_CURE_LEDGER,
                    "%lld rows were accepted, %lld are committed and %lld rejected",
                    (long long)batch->rows, (long long)batch->rows_committed,
                    (long long)batch->rows_rejected);
    }
    if (verify_is_final(batch) != (batch->finished_at != 0)) {
        verify_find(verify, "I17", batch->batch_id, VERIFY_CURE_LEDGER, "%s",
                    batch->finished_at != 0 ? "it waits, and has the time of its end"
                                            : "it is final, and has no time of its end");
    }
    if (batch->seq >= verify->counters.next_seq) {
        verify_find(verify, "I20", batch->batch_id, VERIFY_CURE_LEDGER,
                    "its seq %lld was not given out yet: the next one is %lld",
                    (long long)batch->seq, (long long)verify->counters.next_seq);
    }
    if (batch->held) {
        verify_note(verify, "held", batch->batch_id);
    }
}

/* Neighbours in seq order; segments of one object follow each other. */
static void check_order(struct verify *verify, const struct ledger_batch *before,
                        const struct ledger_batch *batch)
{
    if (before->seq == batch->seq) {
        verify_find(verify, "I20", batch->batch_id, VERIFY_CURE_LEDGER,
                    "its seq %lld is that of batch %.*s too", (long long)batch->seq,
                    STR_ARG(before->batch_id));
    }
    if (before->ingest_ts > batch->ingest_ts) {
        verify_find(verify, "I20", batch->batch_id, VERIFY_CURE_LEDGER,
                    "its __ingest_ts is before that of batch %.*s, accepted before it",
                    STR_ARG(before->batch_id));
    }
    bool same_object = batch->object_key.size > 0 &&
                       str_equal(before->object_key, batch->object_key);
    if (same_object && before->offset < batch->offset + batch->bytes &&
        batch->offset < before->offset + before->bytes) {
        verify_find(verify, "I2", batch->batch_id, VERIFY_CURE_LEDGER,
                    "its bytes overlap those of batch %.*s in one object",
                    STR_ARG(before->batch_id));
    }
}

/* ---- the books ---- */

struct ledger_sums {
    i64 committed;
    i64 rejected;
    i64 discarded;
    i64 refused;
    i64 waiting_rows;
    i64 waiting_batches;
    i64 waiting_bytes;
};

static struct ledger_sums add_up(const struct verify *verify)
{
    struct ledger_sums sums = {0};
    for (size_t i = 0; i < verify->batch_count; i++) {
        const struct ledger_batch *batch = &verify->batches[i];
        bool waits = !verify_is_final(batch);
        sums.committed += batch->rows_committed;
        sums.rejected += batch->rows_rejected;
        sums.refused += batch->refused;
        sums.discarded += batch->state == BATCH_DISCARDED ? batch->rows : 0;
        sums.waiting_batches += waits ? 1 : 0;
        sums.waiting_rows += waits ? batch->rows : 0;
        sums.waiting_bytes += waits ? batch->bytes : 0;
    }
    return sums;
}

static void check_books(struct verify *verify, const struct ledger_sums *sums)
{
    const struct ledger_sink *sink = &verify->sink;
    i64 difference = sink->rows_accepted - sink->rows_committed - sink->rows_rejected -
                     sink->rows_discarded - sums->waiting_rows;
    if (difference != 0) {
        verify_find(verify, "I13", sink->id, VERIFY_CURE_LEDGER,
                    "the books differ by %lld: %lld accepted, %lld committed, %lld rejected, %lld "
                    "discarded, %lld waiting",
                    (long long)difference, (long long)sink->rows_accepted,
                    (long long)sink->rows_committed, (long long)sink->rows_rejected,
                    (long long)sink->rows_discarded, (long long)sums->waiting_rows);
    }
    if (sink->rows_rejected + sink->rows_refused != verify->counters.reject_rows) {
        verify_find(verify, "I13", sink->id, VERIFY_CURE_LEDGER,
                    "%lld rows were rejected or refused, and the counts by reason add up to %lld",
                    (long long)(sink->rows_rejected + sink->rows_refused),
                    (long long)verify->counters.reject_rows);
    }
    if (verify->counters.waiting_batches != sums->waiting_batches ||
        verify->counters.waiting_bytes != sums->waiting_bytes) {
        verify_find(verify, "I13", sink->id, VERIFY_CURE_LEDGER,
                    "the sink counts %lld batches waiting (%lld bytes), its batch rows are %lld "
                    "(%lld bytes)",
                    (long long)verify->counters.waiting_batches,
                    (long long)verify->counters.waiting_bytes, (long long)sums->waiting_batches,
                    (long long)sums->waiting_bytes);
    }
}

/* Rows are forgotten 7 days after their end at the earliest: until then none may be missing, and
 * the counters are the sums. */
static void check_counters(struct verify *verify, const struct ledger_sums *sums)
{
    const struct ledger_sink *sink = &verify->sink;
    bool all_there = (i64)verify->batch_count == sink->batches;
    if ((i64)verify->batch_count > sink->batches ||
        (!all_there && sink->created_at > verify->young)) {
        verify_find(verify, "I2", sink->id, VERIFY_CURE_LEDGER,
                    "the sink accepted %lld batches, and the ledger has %zu rows of them",
                    (long long)sink->batches, verify->batch_count);
        return;
    }
    if (all_there &&
        (sums->committed != sink->rows_committed || sums->rejected != sink->rows_rejected ||
         sums->discarded != sink->rows_discarded || sums->refused != sink->rows_refused)) {
        verify_find(verify, "I13", sink->id, VERIFY_CURE_LEDGER,
                    "the sink counts %lld rows committed, %lld rejected, %lld discarded, %lld "
                    "refused; its batches add up to %lld, %lld, %lld, %lld",
                    (long long)sink->rows_committed, (long long)sink->rows_rejected,
                    (long long)sink->rows_discarded, (long long)sink->rows_refused,
                    (long long)sums->committed, (long long)sums->rejected,
                    (long long)sums->discarded, (long long)sums->refused);
    }
}

void verify_ledger(struct verify *verify)
{
    for (size_t i = 0; i < verify->batch_count; i++) {
        check_batch(verify, &verify->batches[i]);
        if (i > 0) {
            check_order(verify, &verify->batches[i - 1], &verify->batches[i]);
        }
    }
    struct ledger_sums sums = add_up(verify);
    check_books(verify, &sums);
    check_counters(verify, &sums);
}
