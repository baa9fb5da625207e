#include "base/assert.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/planted.h"
#include "sink/roll_steps.h"

/* Step 3, the commit of one plan:
 *
 *   load ─► judge ─► (compute) ─► build ─► mark attempted ─► send ─► load ─► judge ─► wait ─┐
 *     ▲        │                                                        │                  │
 *     │        └────────────► finish ◄──────────────────────────────────┘                  │
 *     └────────────────────────────────────────────────────────────────────────────────────┘
 *
 * I12: the base is loaded before the plan is marked attempted, and the request asserts that base.
 * I10, I11: only the property of a loaded version says committed or not; no answer of a send does,
 * save that a 2xx carries such a version.
 * O5: a plan attempted under one schema is never decoded under another: it is fenced and void
 * first. */

enum { BACKOFF_FIRST_MS = 500, BACKOFF_LAST_MS = 8000, RESULT_FRESH_SECONDS = 45 * 60 };

struct committing {
    struct roll *roll;
    struct roll_plan *plan;
    bool begun;     /* ledger_begin_try was called */
    bool has_bytes; /* the batches were read in this tick */
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

static err compute_result(struct committing *committing, const struct table *table,
                          enum roll_step *out_step, struct error *error)
{
    struct roll *roll = committing->roll;
    if (!committing->begun) {
        TRY(ledger_begin_try(roll->env->db, committing->plan->row.id, error));
        committing->begun = true;
        CRASH_POINT(try_begun);
    }
    if (!committing->has_bytes) {
        TRY(roll_read_batches(roll, committing->plan, &committing->bytes, out_step, error));
        if (*out_step != STEP_GO) {
            return OK;
        }
        committing->has_bytes = true;
    }
    TRY(roll_compute(roll, committing->plan, table, &committing->bytes, &committing->result,
                     out_step, error));
    committing->has_result = *out_step == STEP_GO;
    return OK;
}

/* Only an open plan can come to this: an attempted one had rows, and decodes to the same. */
static err end_rejected(struct committing *committing, enum roll_step *out_step,
                        struct error *error)
{
    struct roll *roll = committing->roll;
    if (committing->plan->row.state != PLAN_OPEN) {
        return roll_void(roll, committing->plan, "all_rejected", NULL, 0, out_step, error);
    }
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
    TRY(ledger_mark_attempted(roll->env->db, plan->row.id, record, result->counts_json, error));
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

/* *out_after holds a version only when the answer was a 2xx. */
static err send_try(struct committing *committing, const struct table *table,
                    struct table *out_after, enum roll_step *out_step, struct error *error)
{
    struct roll *roll = committing->roll;
    json_t *request = NULL;
    TRY(commit_append(roll->arena, &roll->env->warehouse->locations, table, roll->env->seam,
                      &committing->result.append, &request, error));
    struct error told = {0};
    err marked = mark_attempted(committing, table, &told);
    if (marked == OK) {
        roll_send(roll, request, out_after);
        CRASH_POINT(commit_sent);
    }
    json_decref(request);
    *out_step = marked == OK ? STEP_GO : STEP_LATER;
    /* CONFLICT: void, stopped or patched meanwhile. The tick ends; the next look knows. */
    return marked == OK || marked == CONFLICT
               ? OK
               : error_set(error, marked, told.code, "%s", told.message);
}

/* STEP_GO: not committed. */
static err judge_table(struct committing *committing, const struct table *table,
                       enum roll_step *out_step, struct error *error)
{
    struct roll *roll = committing->roll;
    enum plan_reading reading = roll_judge(roll, &committing->plan->row, table);
    switch (reading) {
    case PLAN_READS_COMMITTED:
        *out_step = STEP_ENDED;
        return roll_finish(roll, committing->plan, table, error);
    case PLAN_READS_NOT_COMMITTED:
        *out_step = STEP_GO;
        return roll_match(roll, error);
    case PLAN_READS_AHEAD:
    case PLAN_READS_OTHER:
        break;
    }
    return roll_mismatch(roll, reading, table, out_step, error);
}

static err look_after(struct committing *committing, const struct table *after,
                      enum roll_step *out_step, struct error *error)
{
    struct roll *roll = committing->roll;
    if (after->metadata != NULL &&
        roll_judge(roll, &committing->plan->row, after) == PLAN_READS_COMMITTED) {
        return judge_table(committing, after, out_step, error);
    }
    metric_add(after->metadata == NULL ? METRIC_ROLL_UNKNOWN : METRIC_ROLL_CONFLICTS, 1);
    PLANTED_ACT(23, after->metadata == NULL, roll, committing->result.file_paths,
                &committing->result.file_count);
    struct table table AUTO_TABLE = {0};
    TRY(roll_open_table(roll, &table, out_step, error));
    return *out_step == STEP_GO ? judge_table(committing, &table, out_step, error) : OK;
}

static err commit_try(struct committing *committing, enum roll_step *out_step, struct error *error)
{
    struct roll *roll = committing->roll;
    struct table table AUTO_TABLE = {0};
    TRY(roll_keep_lease(roll, error));
    TRY(roll_open_table(roll, &table, out_step, error));
    if (*out_step != STEP_GO) {
        return OK;
    }
    TRY(judge_table(committing, &table, out_step, error));
    if (*out_step != STEP_GO) {
        return OK;
    }
    TRY(prepare(committing, &table, out_step, error));
    if (*out_step != STEP_GO) {
        return OK;
    }
    /* Uploaded too long ago, after a pause: the files are written again by the next tick. */
    i64 age = seam_monotonic_us(roll->env->seam) - committing->result.written_at;
    if (roll_stopping(roll) || age > RESULT_FRESH_SECONDS * TIME_SECOND_US) {
        *out_step = STEP_LATER;
        return OK;
    }
    struct table after AUTO_TABLE = {0};
    TRY(send_try(committing, &table, &after, out_step, error));
    return *out_step == STEP_GO ? look_after(committing, &after, out_step, error) : OK;
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

static err commit_tries(struct committing *committing, enum roll_step *out_step,
                        struct error *error)
{
    for (int tries = 0; tries < ROLL_TRIES; tries++) {
        if (tries > 0) {
            back_off(committing->roll, tries - 1);
        }
        TRY(commit_try(committing, out_step, error));
        if (*out_step != STEP_GO) {
            return OK;
        }
        if (roll_stopping(committing->roll)) {
            break;
        }
    }
    *out_step = STEP_LATER;
    return OK;
}

err roll_commit_plan(struct roll *roll, struct roll_plan *plan, enum roll_step *out_step,
                     struct error *error)
{
    assert(plan->row.state == PLAN_OPEN || plan->row.state == PLAN_ATTEMPTED);
    struct committing committing = {.roll = roll, .plan = plan};
    TRY(take_basis(&committing, error));
    err result = commit_tries(&committing, out_step, error);
    if (committing.begun) {
        /* The process lived through it: no crash loop (decisions 31). */
        struct error ignored = {0};
        err ended = ledger_end_try(roll->env->db, plan->row.id, &ignored);
        (void)ended;
    }
    return result;
}
