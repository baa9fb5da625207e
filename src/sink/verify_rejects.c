#include "sink/batch.h"
#include "sink/verify_steps.h"

/* Rejects files against the ledger's counts: one record a rejected row, of this batch, with a
 * reason that the plan's counts name so often; and byte for byte what was written, by the hash
 * beside it. */

enum { RECORD_HEAD_BYTES = 2048 };

/* What is read of one file. */
struct rejects_seen {
    i64 lines;
    i64 rows; /* a record without a row number stands for the whole batch */
    i64 reasons[REJECT_REASON_COUNT];
    i64 last_row;
    bool damaged;
};

/* ---- one record ---- */

/* Takes `wanted` off the front of *rest. */
static bool take(str *rest, str wanted)
{
    if (!str_starts(*rest, wanted)) {
        return false;
    }
    *rest = str_slice(*rest, wanted.size, rest->size);
    return true;
}

static bool take_until(str *rest, char end, str *out_text)
{
    i64 at = str_find_byte(*rest, end);
    if (at < 0) {
        return false;
    }
    *out_text = str_slice(*rest, 0, (size_t)at);
    *rest = str_slice(*rest, (size_t)at, rest->size);
    return true;
}

static bool find_reason(str text, enum reject_reason *out_reason)
{
    for (size_t i = 0; i < REJECT_REASON_COUNT; i++) {
        if (str_equal(reject_reason_text((enum reject_reason)i), text)) {
            *out_reason = (enum reject_reason)i;
            return true;
        }
    }
    return false;
}

/* The members before `column`, in the order in which they are written. `head`: the batch's part. */
static bool read_record(str line, str head, i64 batch_rows, struct rejects_seen *seen)
{
    str rest = line;
    str row_text = {0};
    str reason_text = {0};
    enum reject_reason reason = REJECT_NOT_AN_OBJECT;
    i64 row = -1;
    if (!take(&rest, head) || !take_until(&rest, ',', &row_text) ||
        !take(&rest, STR(",\"reason\":\"")) || !take_until(&rest, '"', &reason_text) ||
        !take(&rest, STR("\",\"column\":")) || !find_reason(reason_text, &reason) ||
        !str_ends(line, STR("}"))) {
        return false;
    }
    bool whole = str_equal(row_text, STR("null"));
    if (!whole && (!str_to_i64(row_text, &row) || row <= seen->last_row)) {
        return false;
    }
    i64 rows = whole ? batch_rows : 1;
    seen->last_row = whole ? seen->last_row : row;
    seen->rows += rows;
    seen->reasons[reason] += rows;
    return true;
}

static bool print_head(struct arena *arena, const struct ledger_batch *batch, str *out_head)
{
    buf head = buf_create(arena, 256, RECORD_HEAD_BYTES);
    buf_append(&head, STR("{\"batch_id\":"));
    buf_append_json_string(&head, batch->batch_id);
    buf_append(&head, STR(",\"row\":"));
    *out_head = buf_str(&head);
    return buf_ok(&head);
}

static void read_lines(str body, str head, i64 batch_rows, struct rejects_seen *seen)
{
    str rest = body;
    seen->damaged = body.size > 0 && body.data[body.size - 1] != '\n';
    while (rest.size > 0) {
        const char *end = memchr(rest.data, '\n', rest.size);
        size_t size = end == NULL ? rest.size : (size_t)(end - rest.data);
        if (!read_record(str_slice(rest, 0, size), head, batch_rows, seen)) {
            seen->damaged = true;
        }
        seen->lines++;
        rest = end == NULL ? STR("") : str_slice(rest, size + 1, rest.size);
    }
}

/* ---- one file ---- */

/* True as well when there is no hash beside it. */
static bool hash_fits(struct arena *arena, const struct store_object *object)
{
    str kept = store_meta_value(&object->meta, STR("sha256"));
    return kept.size == 0 || str_equal(kept, reject_hash(arena, object->body));
}

/* `wanted`: how many rows the ledger counts. */
MUST_USE static err check_file(struct verify *verify, const struct ledger_batch *batch, str key,
                               i64 wanted, struct rejects_seen *seen, struct error *error)
{
    struct store_object object = {0};
    struct error told = {0};
    str head = {0};
    if (key.data == NULL || !print_head(verify->scratch, batch, &head)) {
        return error_memory(error);
    }
    err got = store_get(&verify->env->warehouse->files, verify->scratch, key, &object, &told);
    if (got != OK && got != NOT_FOUND && got != CORRUPT) {
        return error_set(error, got, told.code, "reading %.*s: %s", STR_ARG(key), told.message);
    }
    verify->report->rejects_files++;
    seen->last_row = -1;
    i64 before = seen->rows;
    if (got != OK) {
        verify_find(verify, "I15", key, VERIFY_CURE_REJECTS,
                    "%lld rows were rejected, and the rejects file is missing", (long long)wanted);
        seen->damaged = true;
        return OK;
    }
    read_lines(object.body, head, batch->rows, seen);
    if (seen->damaged || !hash_fits(verify->scratch, &object)) {
        verify_find(verify, "I15", key, VERIFY_CURE_REJECTS,
                    "the rejects file is not as it was written");
        seen->damaged = true;
    } else if (seen->rows - before != wanted) {
        verify_find(verify, "I13", key, VERIFY_CURE_REJECTS,
                    "the ledger counts %lld rejected rows, the rejects file %lld",
                    (long long)wanted, (long long)(seen->rows - before));
        seen->damaged = true;
    }
    return OK;
}

/* ---- the rejects of one plan ---- */

static void check_reasons(struct verify *verify, const struct ledger_plan *plan,
                          const struct plan_counts *counts, const struct rejects_seen *seen)
{
    for (size_t i = 0; i < REJECT_REASON_COUNT; i++) {
        if (counts->reasons[i] != seen->reasons[i]) {
            str reason = reject_reason_text((enum reject_reason)i);
            verify_find(verify, "I15", plan->id, VERIFY_CURE_REJECTS,
                        "plan %lld rejected %lld rows for %.*s, its rejects files name %lld",
                        (long long)plan->n, (long long)counts->reasons[i], STR_ARG(reason),
                        (long long)seen->reasons[i]);
        }
    }
}

MUST_USE static err check_plan(struct verify *verify, size_t index, struct error *error)
{
    const struct ledger_plan *plan = &verify->plans[index];
    size_t count = 0;
    const struct ledger_batch *batches = verify_batches_of(verify, index, &count);
    struct rejects_seen seen = {0};
    bool damaged = false;
    struct arena_mark mark = arena_mark(verify->scratch);
    for (size_t i = 0; i < count; i++) {
        if (batches[i].rows_rejected > 0) {
            str key = batch_rejects_key(verify->scratch, verify->sink.id, batches[i].batch_id);
            TRY(check_file(verify, &batches[i], key, batches[i].rows_rejected, &seen, error));
            damaged = damaged || seen.damaged;
        }
        arena_reset_to(verify->scratch, mark);
    }
    /* A void plan that was attempted has counts still, of batches that went to others. */
    bool given_up = plan->state == PLAN_VOID && count == 0;
    if (damaged || given_up || plan->counts.data == NULL) {
        return OK;
    }
    struct plan_counts counts = {0};
    struct error told = {0};
    err parsed = plan_parse_counts(verify->scratch, plan->counts, batches, count, &counts, &told);
    if (parsed == OK) {
        check_reasons(verify, plan, &counts, &seen);
    } else if (parsed == CORRUPT) {
        verify_find(verify, "I13", plan->id, VERIFY_CURE_LEDGER,
                    "the counts of plan %lld do not go with its %zu batches", (long long)plan->n,
                    count);
    } else {
        return error_set(error, parsed, told.code, "%s", told.message);
    }
    arena_reset_to(verify->scratch, mark);
    return OK;
}

err verify_rejects(struct verify *verify, struct error *error)
{
    struct arena_mark mark = arena_mark(verify->scratch);
    for (size_t i = 0; i < verify->plan_count; i++) {
        const struct ledger_plan *plan = &verify->plans[i];
        bool is_final = plan->state == PLAN_COMMITTED || plan->state == PLAN_VOID;
        if (is_final && plan->finished_at > verify->young) {
            TRY(check_plan(verify, i, error));
        }
    }
    for (size_t i = 0; i < verify->batch_count; i++) {
        const struct ledger_batch *batch = &verify->batches[i];
        struct rejects_seen seen = {0};
        if (batch->refused > 0 && batch->received_at > verify->young) {
            str key = batch_intake_rejects_key(verify->scratch, verify->sink.id, batch->batch_id,
                                               &batch->uid);
            TRY(check_file(verify, batch, key, batch->refused, &seen, error));
        }
        arena_reset_to(verify->scratch, mark);
    }
    return OK;
}
