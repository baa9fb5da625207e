#include "base/assert.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/metric.h"
#include "base/planted.h"
#include "sink/roll_steps.h"
#include "table/catalog_local.h"

/* Step 3, the commit of one plan, as a machine:
 *
 *     ┌─► load ──► prepare ──► send ──► answer ──► reload ──► wait ─┐
 *     │     │                             │          │              │
 *     │     └───────────────► finish ◄────┴──────────┘              │
 *     └─────────────────────────────────────────────────────────────┘
 *
 *   ended      ◄── finish; prepare (all rows rejected, or a plan to be taken back had landed)
 *   again      ◄── load, reload (another roller finished it, or the ledger is behind);
 *                  prepare (the plan was taken back: schema changed, bytes lost, too much for one)
 *   disabled   ◄── load, reload, prepare (no such table, or its property is not ours)
 *   later      ◄── each but answer: a seam failed or gave no answer, a stop is wanted, the swap to
 *                  attempted failed, the files are too old, the tries are used up
 *
 * state     work                                   what holds on entering it
 * load      roll_open_table, roll_judge            open or attempted; a late request may be under
 *                                                  way
 * prepare   batches to rows to files; checks what  the loaded version reads (n-1, prev)
 *           was computed in an earlier try
 * send      build on the loaded base, mark         there is a result under the schema and the spec
 *           attempted, send                        of the loaded version, fresh enough
 * answer    is a 2xx proof?                        attempted; a request was sent
 * reload    roll_open_table, roll_judge            attempted; the answer proved nothing
 * wait      0.5 to 8 s                             attempted; the reloaded version reads
 *                                                  (n-1, prev)
 * finish    roll_finish (step 4)                   the loaded version reads (n, id)
 *
 * I12: the base is loaded before the plan is marked attempted, and the request asserts that base.
 * I10, I11: only the property of a loaded version says committed or not; no answer of a send does,
 * save that a 2xx carries such a version.
 * O5: a plan attempted under one schema is never decoded under another: it is fenced and void
 * first. */

enum { BACKOFF_FIRST_MS = 500, BACKOFF_LAST_MS = 8000, RESULT_FRESH_SECONDS = 45 * 60 };

enum state {
    AT_LOAD,
    AT_PREPARE,
    AT_SEND,
    AT_ANSWER,
    AT_RELOAD,
    AT_WAIT,
    AT_FINISH,
    /* the ends */
    AT_ENDED,
    AT_AGAIN,
    AT_DISABLED,
    AT_LATER,
};

static const char *const STATES[] = {"load",   "prepare", "send",  "answer",   "reload", "wait",
                                     "finish", "ended",   "again", "disabled", "later"};

#define TO(name) MACHINE_TO(AT_##name)
static const u32 EDGES[] = {
    [AT_LOAD] = TO(PREPARE) | TO(FINISH) | TO(AGAIN) | TO(DISABLED) | TO(LATER),
    [AT_PREPARE] = TO(SEND) | TO(ENDED) | TO(AGAIN) | TO(DISABLED) | TO(LATER),
    [AT_SEND] = TO(ANSWER) | TO(LATER),
    [AT_ANSWER] = TO(FINISH) | TO(RELOAD),
    [AT_RELOAD] = TO(WAIT) | TO(FINISH) | TO(AGAIN) | TO(DISABLED) | TO(LATER),
    [AT_WAIT] = TO(LOAD) | TO(LATER),
    [AT_FINISH] = TO(ENDED) | TO(LATER),
    [AT_LATER] = 0,
};
#undef TO
static const struct machine MACHINE = {"commit", STATES, EDGES, ARRAY_COUNT(EDGES)};
_Static_assert(ARRAY_COUNT(STATES) == ARRAY_COUNT(EDGES), "each state has a name");

/* What the states share. */
struct committing {
    struct roll *roll;
    struct roll_plan *plan;
    int tries;          /* that were sent */
    struct table table; /* as last loaded */
    struct table after; /* what a 2xx showed; may be empty */
    bool begun;         /* ledger_begin_try was called */
    struct roll_bytes bytes;
    bool has_result;
    struct roll_result result;
    /* What the tries of earlier ticks were decoded under; from the plan's counts. */
    bool has_basis;
    i32 basis_schema;
    i32 basis_spec;
};

/* ---- finish (step 4) ---- */

err roll_finish(struct roll *roll, const struct roll_plan *plan, const struct table *table,
                struct error *error)
{
    struct plan_counts counts = {0};
    struct ledger_outcome outcome = {0};
    CRASH_POINT(commit_landed);
    TRY(plan_parse_counts(roll->arena, plan->row.counts, plan->batches, plan->batch_count, &counts,
                          error));
    TRY(roll_outcome(roll, &counts, &outcome, error));
    outcome.snapshot_id = plan_landed_snapshot(plan->row.attempts, table->metadata);
    PLANTED_ACT(6, true, roll, plan, NULL);
    TRY(roll_point_store(roll, error));
    TRY(ledger_finish_plan(roll->env->db, plan->row.id, &outcome, error));
    CRASH_POINT(plan_finished);
    metric_add(METRIC_ROLL_COMMITS, 1);
    metric_add(METRIC_ROLL_ROWS, counts.rows_committed);
    metric_add(METRIC_ROLL_REJECTED, counts.rows_rejected);
    /* The plan has ended; what follows is housekeeping, and its failing says nothing about it. */
    struct error trouble = {0};
    err mended = roll_mend_rejects(roll, plan, table, &trouble);
    if (mended != OK) {
        log_error("rejects_not_mended", mended, &trouble, roll->sink.id);
    }
    return OK;
}

/* ---- one computed result ---- */

static err take_basis(struct committing *committing, struct error *error)
{
    struct roll_plan *plan = committing->plan;
    struct plan_counts counts = {0};
    committing->has_basis = false;
    if (plan->row.state != PLAN_ATTEMPTED) {
        return OK;
    }
    TRY(plan_parse_counts(committing->roll->arena, plan->row.counts, plan->batches,
                          plan->batch_count, &counts, error));
    committing->has_basis = true;
    committing->basis_schema = counts.schema_id;
    committing->basis_spec = counts.spec_id;
    return OK;
}

static i32 metadata_id(const struct table *table, const char *member)
{
    return (i32)json_integer_value(json_object_get(metadata_json(table->metadata), member));
}

static bool basis_is(const struct table *table, i32 schema_id, i32 spec_id)
{
    return metadata_id(table, "current-schema-id") == schema_id &&
           metadata_id(table, "default-spec-id") == spec_id;
}

/* CONFLICT: it ended meanwhile, or was begun too often. The tick ends; the next look knows. */
static err begin_try(struct committing *committing, enum roll_step *out_step, struct error *error)
{
    struct roll_plan *plan = committing->plan;
    struct error told = {0};
    err begun = ledger_begin_try(committing->roll->env->db, plan->row.id, &plan->row.tries, &told);
    if (begun == CONFLICT) {
        *out_step = STEP_LATER;
        return OK;
    }
    if (begun != OK) {
        return error_set(error, begun, told.code, "%s", told.message);
    }
    committing->begun = true;
    CRASH_POINT(try_begun);
    return OK;
}

static err compute_result(struct committing *committing, const struct table *table,
                          enum roll_step *out_step, struct error *error)
{
    struct roll *roll = committing->roll;
    if (!committing->begun) {
        TRY(begin_try(committing, out_step, error));
        if (*out_step != STEP_GO) {
            return OK;
        }
    }
    TRY(roll_compute(roll, committing->plan, table, &committing->bytes, &committing->result,
                     out_step, error));
    committing->has_result = *out_step == STEP_GO;
    return OK;
}

/* What waits in the roll's group is shown: not by a roller that was away while others went on, for
 * its rejects files may be those of another schema. */
static err show_files(struct committing *committing, struct error *error)
{
    struct roll *roll = committing->roll;
    const struct ledger_plan *plan = &committing->plan->row;
    bool last = true;
    TRY(roll_keep_lease(roll, error));
    if (committing->result.counts.rows_rejected > 0) {
        TRY(ledger_is_last_try(roll->env->db, plan->id, plan->tries, &last, error));
    }
    return last ? store_group_end(roll->group, error)
                : error_set(error, BUSY, ERROR_UNAVAILABLE, "another roller has the plan");
}

/* Only an open plan can come to this: an attempted one had rows, and decodes to the same. */
static err end_rejected(struct committing *committing, enum roll_step *out_step,
                        struct error *error)
{
    struct roll *roll = committing->roll;
    if (committing->plan->row.state != PLAN_OPEN) {
        return roll_void(roll, committing->plan, "all_rejected", NULL, 0, out_step, error);
    }
    TRY(show_files(committing, error)); /* the plan object, too, which the verdict's stands by */
    TRY(roll_void_rejected(roll, committing->plan, &committing->result.counts, error));
    *out_step = STEP_ENDED;
    return OK;
}

/* STEP_GO: there is a result that fits the table as it was loaded. */
static err prepare(struct committing *committing, const struct table *table,
                   enum roll_step *out_step, struct error *error)
{
    *out_step = STEP_GO;
    if (committing->has_basis &&
        !basis_is(table, committing->basis_schema, committing->basis_spec)) {
        return roll_void(committing->roll, committing->plan, "schema_changed", NULL, 0, out_step,
                         error);
    }
    const struct plan_counts *counts = &committing->result.counts;
    if (committing->has_result && basis_is(table, counts->schema_id, counts->spec_id)) {
        return OK;
    }
    TRY(compute_result(committing, table, out_step, error));
    if (*out_step == STEP_GO && committing->result.counts.rows_committed == 0) {
        return end_rejected(committing, out_step, error);
    }
    return OK;
}

/* ---- one try ---- */

/* The mark is durable before the commit is. A commit to an embedded catalog is a transaction of the
 * ledger's own log, so that it cannot be durable before what stands there already. */
static enum ledger_durability mark_durability(const struct roll *roll)
{
    const struct catalog_local *local = catalog_local_of(&roll->env->warehouse->catalog);
    bool same = local != NULL && catalog_local_is_in(local, roll->env->db);
    return same ? LEDGER_LATER : LEDGER_DURABLE;
}

static err mark_attempted(struct committing *committing, const struct table *table,
                          struct error *error)
{
    struct roll *roll = committing->roll;
    struct roll_plan *plan = committing->plan;
    struct roll_result *result = &committing->result;
    struct plan_try try_made = {
        .snapshot_id = result->append.snapshot_id,
        .files = result->file_paths,
        .file_count = result->recorded ? 0 : result->file_count,
    };
    try_made.has_base = metadata_main(table->metadata, &try_made.base);
    str record;
    TRY(plan_print_try(roll->arena, &try_made, &record, error));
    TRY(ledger_mark_attempted(roll->env->db, plan->row.id, record, result->counts_json,
                              mark_durability(roll), error));
    CRASH_POINT(plan_attempted);
    result->recorded = true;
    /* In step with the row, so that a finish of this tick needs no second read. */
    str before = plan->row.attempts;
    plan->row.attempts = before.size <= 2
                             ? str_format(roll->arena, "[%.*s]", STR_ARG(record))
                             : str_format(roll->arena, "%.*s,%.*s]",
                                          STR_ARG(str_slice(before, 0, before.size - 1)),
                                          STR_ARG(record));
    plan->row.counts = result->counts_json;
    plan->row.state = PLAN_ATTEMPTED;
    committing->has_basis = true;
    committing->basis_schema = result->counts.schema_id;
    committing->basis_spec = result->counts.spec_id;
    return plan->row.attempts.data == NULL ? error_memory(error) : OK;
}

static err send_try(struct committing *committing, enum roll_step *out_step, struct error *error)
{
    struct roll *roll = committing->roll;
    json_t *request = NULL;
    TRY(commit_append(roll->arena, &roll->env->warehouse->locations, &committing->table,
                      roll->env->seam, &committing->result.append, &request, error));
    struct catalog_staged staged = {0};
    struct error told = {0};
    roll_stage(roll, request, &staged);
    err marked = show_files(committing, &told);
    if (marked == OK) {
        CRASH_POINT(commit_files_durable);
        marked = mark_attempted(committing, &committing->table, &told);
    }
    if (marked == OK) {
        table_close(&committing->after);
        roll_send(roll, request, &staged, &committing->after);
        CRASH_POINT(commit_sent);
    } else {
        catalog_unstage(&roll->env->warehouse->catalog, &staged);
    }
    json_decref(request);
    *out_step = marked == OK ? STEP_GO : STEP_LATER;
    /* CONFLICT: void, stopped or patched meanwhile. The tick ends; the next look knows. */
    return marked == OK || marked == CONFLICT
               ? OK
               : error_set(error, marked, told.code, "%s", told.message);
}

/* ---- the machine ---- */

/* Where a step leads that did its work, or left something else to do. */
static enum state state_after(enum roll_step left, enum state on)
{
    switch (left) {
    case STEP_GO:
        return on;
    case STEP_AGAIN:
        return AT_AGAIN;
    case STEP_ENDED:
        return AT_ENDED;
    case STEP_NOTHING:
    case STEP_LATER:
        return AT_LATER;
    case STEP_DISABLED:
        return AT_DISABLED;
    }
    return AT_LATER;
}

static enum roll_step step_of(enum state end)
{
    switch (end) {
    case AT_ENDED:
        return STEP_ENDED;
    case AT_AGAIN:
        return STEP_AGAIN;
    case AT_DISABLED:
        return STEP_DISABLED;
    case AT_LOAD:
    case AT_PREPARE:
    case AT_SEND:
    case AT_ANSWER:
    case AT_RELOAD:
    case AT_WAIT:
    case AT_FINISH:
    case AT_LATER:
        break;
    }
    return STEP_LATER;
}

/* Loads the table and judges by its property; `on` when it is not committed. */
static err load(struct committing *committing, enum state on, enum state *out_next,
                struct error *error)
{
    struct roll *roll = committing->roll;
    enum roll_step left = STEP_LATER;
    table_close(&committing->table);
    TRY(roll_open_table(roll, &committing->table, &left, error));
    if (left != STEP_GO) {
        *out_next = state_after(left, on);
        return OK;
    }
    enum plan_reading reading = roll_judge(roll, &committing->plan->row, &committing->table);
    switch (reading) {
    case PLAN_READS_COMMITTED:
        *out_next = AT_FINISH;
        return OK;
    case PLAN_READS_NOT_COMMITTED:
        *out_next = on;
        return roll_match(roll, error);
    case PLAN_READS_AHEAD:
    case PLAN_READS_OTHER:
        break;
    }
    TRY(roll_mismatch(roll, reading, &committing->table, &left, error));
    *out_next = state_after(left, on);
    return OK;
}

static enum state answer(struct committing *committing)
{
    struct roll *roll = committing->roll;
    bool told = committing->after.metadata != NULL;
    if (told &&
        roll_judge(roll, &committing->plan->row, &committing->after) == PLAN_READS_COMMITTED) {
        table_close(&committing->table);
        committing->table = committing->after;
        committing->after = (struct table){0};
        return AT_FINISH;
    }
    metric_add(told ? METRIC_ROLL_CONFLICTS : METRIC_ROLL_UNKNOWN, 1);
    PLANTED_ACT(23, !told, roll, committing->result.file_paths, &committing->result.file_count);
    return AT_RELOAD;
}

/* 0.5 to 8 s, doubling, with half of it drawn by lot. */
static void back_off(struct roll *roll, int tries)
{
    u32 lot = 0;
    seam_random(roll->env->seam, &lot, sizeof(lot));
    i64 full = (i64)BACKOFF_FIRST_MS << tries;
    full = num_min_i64(full, BACKOFF_LAST_MS) * 1000;
    seam_wait_us(roll->env->seam, full / 2 + (i64)(lot % (u32)(full / 2 + 1)));
}

static enum state wait(struct committing *committing)
{
    committing->tries++;
    if (roll_stopping(committing->roll) || committing->tries == ROLL_TRIES) {
        return AT_LATER;
    }
    back_off(committing->roll, committing->tries - 1);
    return AT_LOAD;
}

/* Uploaded too long ago, after a pause: the files are written again by the next tick. */
static bool may_send(const struct committing *committing)
{
    const struct roll *roll = committing->roll;
    i64 age = seam_monotonic_us(roll->env->seam) - committing->result.written_at;
    return !roll_stopping(roll) && age <= RESULT_FRESH_SECONDS * TIME_SECOND_US;
}

/* Does the state's work. *out_next is meant for OK only. */
static err step(struct committing *committing, enum state state, enum state *out_next,
                struct error *error)
{
    enum roll_step left = STEP_LATER;
    switch (state) {
    case AT_LOAD:
        TRY(roll_keep_lease(committing->roll, error));
        return load(committing, AT_PREPARE, out_next, error);
    case AT_PREPARE:
        TRY(prepare(committing, &committing->table, &left, error));
        *out_next = left == STEP_GO && !may_send(committing) ? AT_LATER
                                                             : state_after(left, AT_SEND);
        return OK;
    case AT_SEND:
        TRY(send_try(committing, &left, error));
        *out_next = state_after(left, AT_ANSWER);
        return OK;
    case AT_ANSWER:
        *out_next = answer(committing);
        return OK;
    case AT_RELOAD:
        return load(committing, AT_WAIT, out_next, error);
    case AT_WAIT:
        *out_next = wait(committing);
        return OK;
    case AT_FINISH:
        *out_next = AT_ENDED;
        return roll_finish(committing->roll, committing->plan, &committing->table, error);
    case AT_ENDED:
    case AT_AGAIN:
    case AT_DISABLED:
    case AT_LATER:
        assert(state < AT_ENDED);
        break;
    }
    return OK;
}

static err commit(struct committing *committing, enum roll_step *out_step, struct error *error)
{
    enum state state = AT_LOAD;
    err result = OK;
    while (state < AT_ENDED) {
        enum state next = AT_LATER;
        result = step(committing, state, &next, error);
        state = machine_take(&MACHINE, state, result == OK ? next : AT_LATER);
    }
    *out_step = step_of(state);
    return result;
}

/* A try that came to nothing because others went on with the plan: a put of a rejects file that
 * took long may have ended after them. */
static void mend_lost(const struct committing *committing)
{
    struct roll *roll = committing->roll;
    const struct ledger_plan *plan = &committing->plan->row;
    struct error trouble = {0};
    bool last = true;
    err mended = ledger_is_last_try(roll->env->db, plan->id, plan->tries, &last, &trouble);
    if (mended == OK && !last && committing->table.metadata != NULL) {
        mended = roll_mend_lost(roll, committing->plan, &committing->table, &trouble);
    }
    if (mended != OK) {
        log_error("rejects_not_mended", mended, &trouble, roll->sink.id);
    }
}

err roll_commit_plan(struct roll *roll, struct roll_plan *plan, enum roll_step *out_step,
                     struct error *error)
{
    assert(plan->row.state == PLAN_OPEN || plan->row.state == PLAN_ATTEMPTED);
    struct committing committing = {.roll = roll, .plan = plan};
    TRY(take_basis(&committing, error));
    err result = commit(&committing, out_step, error);
    bool over = result == OK && *out_step == STEP_ENDED;
    if (committing.begun && !over && *out_step != STEP_AGAIN) {
        mend_lost(&committing);
    }
    table_close(&committing.after);
    table_close(&committing.table);
    roll_bytes_close(&committing.bytes);
    if (committing.begun && !over) {
        /* The process lived through it: no crash loop (decisions 31). A plan that is over has none.
         */
        struct error ignored = {0};
        err ended = ledger_end_try(roll->env->db, plan->row.id, &ignored);
        (void)ended;
    }
    return result;
}
