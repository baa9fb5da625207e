#include "sink/batch.h"
#include "sink/verify_steps.h"

#include <jansson.h>

/* The chain of committed plans (I7), and the plan objects: there for 35 days, and byte for byte
 * what the ledger would print. */

enum { EMPTY_ARRAY_BYTES = 2 };

static bool is_live(const struct ledger_plan *plan)
{
    return plan->state == PLAN_OPEN || plan->state == PLAN_ATTEMPTED || plan->state == PLAN_VOIDING;
}

/* ---- the chain ---- */

/* `before`: the committed plan before it, or NULL. */
static void check_link(struct verify *verify, const struct ledger_plan *before,
                       const struct ledger_plan *plan)
{
    if (plan->n == 1 && !str_equal(plan->prev, verify->sink.claim_id)) {
        verify_find(verify, "I7", plan->id, VERIFY_CURE_LEDGER,
                    "plan 1 follows %.*s, not the sink's claim", STR_ARG(plan->prev));
    }
    if (before == NULL) {
        return;
    }
    if (before->n == plan->n) {
        verify_find(verify, "I7", plan->id, VERIFY_CURE_LEDGER,
                    "plan %lld was committed twice, as %.*s too", (long long)plan->n,
                    STR_ARG(before->id));
    } else if (before->n + 1 == plan->n && !str_equal(plan->prev, before->id)) {
        verify_find(verify, "I7", plan->id, VERIFY_CURE_LEDGER,
                    "plan %lld follows %.*s, and plan %lld is %.*s", (long long)plan->n,
                    STR_ARG(plan->prev), (long long)before->n, STR_ARG(before->id));
    } else if (before->n + 1 < plan->n && before->finished_at > verify->young_plan) {
        verify_find(verify, "I7", plan->id, VERIFY_CURE_LEDGER,
                    "no plan between %lld and %lld is in the ledger", (long long)before->n,
                    (long long)plan->n);
    }
}

static void check_live(struct verify *verify, const struct ledger_plan *plan)
{
    const struct ledger_sink *sink = &verify->sink;
    if (plan->n != sink->last_n + 1 || !str_equal(plan->prev, sink->last_plan_id)) {
        verify_find(verify, "I7", plan->id, VERIFY_CURE_LEDGER,
                    "the live plan is %lld after %.*s, the last committed one %lld, %.*s",
                    (long long)plan->n, STR_ARG(plan->prev), (long long)sink->last_n,
                    STR_ARG(sink->last_plan_id));
    }
}

static void check_last(struct verify *verify, const struct ledger_plan *last)
{
    const struct ledger_sink *sink = &verify->sink;
    bool wants = sink->last_n > 0 && sink->created_at > verify->young_plan;
    bool wrong = last == NULL ? wants
                              : last->n != sink->last_n || !str_equal(last->id, sink->last_plan_id);
    if (wrong) {
        verify_find(verify, "I7", sink->id, VERIFY_CURE_LEDGER,
                    "the sink's last committed plan is %lld, %.*s; the last one of its plans is "
                    "%lld, %.*s",
                    (long long)sink->last_n, STR_ARG(sink->last_plan_id),
                    (long long)(last == NULL ? 0 : last->n),
                    STR_ARG(last == NULL ? STR("none") : last->id));
    }
}

static void check_sums(struct verify *verify, size_t index)
{
    const struct ledger_plan *plan = &verify->plans[index];
    size_t count = 0;
    const struct ledger_batch *batches = verify_batches_of(verify, index, &count);
    i64 committed = 0;
    i64 rejected = 0;
    for (size_t i = 0; i < count; i++) {
        committed += batches[i].rows_committed;
        rejected += batches[i].rows_rejected;
    }
    if (committed != plan->rows_committed || rejected != plan->rows_rejected) {
        verify_find(verify, "I13", plan->id, VERIFY_CURE_LEDGER,
                    "plan %lld committed %lld rows and rejected %lld; its batches add up to %lld "
                    "and %lld",
                    (long long)plan->n, (long long)plan->rows_committed,
                    (long long)plan->rows_rejected, (long long)committed, (long long)rejected);
    }
}

static void check_chain(struct verify *verify)
{
    const struct ledger_plan *last = NULL;
    i64 live = 0;
    for (size_t i = 0; i < verify->plan_count; i++) {
        const struct ledger_plan *plan = &verify->plans[i];
        if (is_live(plan)) {
            live++;
            check_live(verify, plan);
        }
        if (plan->state == PLAN_COMMITTED) {
            check_link(verify, last, plan);
            last = plan;
            if (plan->finished_at > verify->young) {
                check_sums(verify, i);
            }
        }
    }
    check_last(verify, last);
    if (live > 1) {
        verify_find(verify, "I8", verify->sink.id, VERIFY_CURE_LEDGER, "%lld plans are live",
                    (long long)live);
    }
}

/* ---- one plan object ---- */

static str member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return (str){json_string_value(value), json_string_length(value)};
}

static bool header_fits(const struct verify *verify, const struct ledger_plan *plan,
                        const json_t *document)
{
    return json_integer_value(json_object_get(document, "format")) == 1 &&
           str_equal(member(document, "installation"), verify->env->installation_id) &&
           str_equal(member(document, "sink_id"), verify->sink.id) &&
           json_integer_value(json_object_get(document, "n")) == plan->n &&
           str_equal(member(document, "id"), plan->id) &&
           str_equal(member(document, "prev"), plan->prev) &&
           json_integer_value(json_object_get(document, "config_version")) ==
               plan->config_version &&
           json_is_array(json_object_get(document, "batches"));
}

/* True when the batch's row explains why the object and the ledger differ. */
static bool check_named(struct verify *verify, const struct ledger_plan *plan, const json_t *named)
{
    str batch_id = member(named, "batch_id");
    str uid = member(named, "uid");
    const u64 *place = batch_id.data == NULL ? NULL : map_get(verify->batch_of, batch_id);
    if (batch_id.data == NULL || uid.data == NULL) {
        return false;
    }
    if (place == NULL) {
        verify_find(verify, "I2", batch_id, VERIFY_CURE_LEDGER,
                    "plan %lld took the batch, and the ledger has no row of it",
                    (long long)plan->n);
        return true;
    }
    const struct ledger_batch *batch = &verify->batches[*place];
    if (!str_equal(id_uid_str(&batch->uid), uid)) {
        verify_find(verify, "I2", batch_id, VERIFY_CURE_LEDGER,
                    "plan %lld took the batch as %.*s, its row says %.*s", (long long)plan->n,
                    STR_ARG(uid), STR_ARG(id_uid_str(&batch->uid)));
        return true;
    }
    if (!str_equal(batch->plan_id, plan->id)) {
        verify_find(verify, "I8", batch_id, VERIFY_CURE_LEDGER,
                    "plan %lld took the batch, and its row says plan %.*s", (long long)plan->n,
                    STR_ARG(batch->plan_id.data == NULL ? STR("(none)") : batch->plan_id));
        return true;
    }
    return false;
}

static void explain(struct verify *verify, const struct ledger_plan *plan, const json_t *document,
                    str key)
{
    const json_t *named = json_object_get(document, "batches");
    bool explained = false;
    for (size_t i = 0; i < json_array_size(named); i++) {
        bool told = check_named(verify, plan, json_array_get(named, i));
        explained = told || explained;
    }
    if (!explained) {
        verify_find(verify, "I7", key, VERIFY_CURE_PLAN,
                    "the plan object is not what the ledger would write");
    }
}

/* A void plan gave its batches back, and rows are forgotten after 7 days: then the head alone can
 * be compared. */
static bool has_its_batches(const struct verify *verify, const struct ledger_plan *plan)
{
    bool rejected = plan->state == PLAN_VOID && plan->void_reason.data != NULL &&
                    str_equal(plan->void_reason, STR("all_rejected"));
    bool keeps = plan->state != PLAN_VOID || rejected;
    return keeps && (is_live(plan) || plan->finished_at > verify->young);
}

MUST_USE static err compare(struct verify *verify, size_t index, str key, str body,
                            struct error *error)
{
    const struct ledger_plan *plan = &verify->plans[index];
    size_t count = 0;
    const struct ledger_batch *batches = verify_batches_of(verify, index, &count);
    bool whole = has_its_batches(verify, plan);
    str wanted = {0};
    TRY(plan_print_object(verify->scratch, verify->env->installation_id, plan, batches, count,
                          &wanted, error));
    if (whole && str_equal(wanted, body)) {
        return OK;
    }
    json_t *document = json_loadb(body.data, body.size, 0, NULL);
    if (!header_fits(verify, plan, document)) {
        verify_find(verify, "I7", key, VERIFY_CURE_PLAN,
                    "the plan object is not one of plan %lld, %.*s", (long long)plan->n,
                    STR_ARG(plan->id));
    } else if (whole) {
        explain(verify, plan, document, key);
    }
    json_decref(document);
    return OK;
}

MUST_USE static err check_object(struct verify *verify, size_t index, struct error *error)
{
    const struct ledger_plan *plan = &verify->plans[index];
    struct store_object object = {0};
    struct error told = {0};
    str key = batch_plan_key(verify->scratch, verify->sink.id, plan->n, plan->id);
    if (key.data == NULL) {
        return error_memory(error);
    }
    bool tried = plan->state == PLAN_ATTEMPTED || plan->state == PLAN_VOIDING ||
                 plan->state == PLAN_COMMITTED || plan->attempts.size > EMPTY_ARRAY_BYTES;
    err got = store_get(&verify->env->warehouse->files, verify->scratch, key, &object, &told);
    if (got == OK) {
        verify->report->objects++;
        return compare(verify, index, key, object.body, error);
    }
    if (got != NOT_FOUND && got != CORRUPT) {
        return error_set(error, got, told.code, "reading %.*s: %s", STR_ARG(key), told.message);
    }
    if (got == CORRUPT || (tried && plan->created_at > verify->young_plan)) {
        verify_find(verify, "I7", key, VERIFY_CURE_PLAN, "the plan object of plan %lld is %s",
                    (long long)plan->n, got == CORRUPT ? "unreadable" : "missing");
    }
    return OK;
}

/* ---- verdicts of void plans (O2) ---- */

MUST_USE static err check_verdict(struct verify *verify, size_t index, struct error *error)
{
    const struct ledger_plan *plan = &verify->plans[index];
    size_t count = 0;
    const struct ledger_batch *batches = verify_batches_of(verify, index, &count);
    struct store_object object = {0};
    struct error told = {0};
    str wanted = {0};
    str key = plan_void_key(verify->scratch, verify->sink.id, plan->n, plan->id);
    if (key.data == NULL) {
        return error_memory(error);
    }
    TRY(plan_print_void(verify->scratch, verify->env->installation_id, plan, batches, count,
                        &wanted, error));
    err got = store_get(&verify->env->warehouse->files, verify->scratch, key, &object, &told);
    if (got != OK && got != NOT_FOUND && got != CORRUPT) {
        return error_set(error, got, told.code, "reading %.*s: %s", STR_ARG(key), told.message);
    }
    if (got != OK || !str_equal(object.body, wanted)) {
        verify_find(verify, "I16", key, VERIFY_CURE_PLAN,
                    "the verdict on the rejected batches of plan %lld is %s", (long long)plan->n,
                    got == OK ? "not what the ledger would write" : "missing");
    }
    return OK;
}

/* Those not written yet are left out: their objects are still there. */
MUST_USE static err check_verdicts(struct verify *verify, struct error *error)
{
    struct ledger_plan *undoomed = NULL;
    size_t count = 0;
    TRY(ledger_list_undoomed(verify->env->db, verify->scratch, verify->sink.id, &undoomed, &count,
                             error));
    struct map *open = map_create(verify->scratch, count);
    for (size_t i = 0; i < count; i++) {
        if (open == NULL || map_put(open, undoomed[i].id, &(bool){false}) == NULL) {
            return error_memory(error);
        }
    }
    struct arena_mark mark = arena_mark(verify->scratch);
    for (size_t i = 0; i < verify->plan_count; i++) {
        const struct ledger_plan *plan = &verify->plans[i];
        if (plan->state == PLAN_VOID && has_its_batches(verify, plan) &&
            map_get(open, plan->id) == NULL) {
            TRY(check_verdict(verify, i, error));
        }
        arena_reset_to(verify->scratch, mark);
    }
    return OK;
}

err verify_plans(struct verify *verify, struct error *error)
{
    check_chain(verify);
    struct arena_mark mark = arena_mark(verify->scratch);
    for (size_t i = 0; i < verify->plan_count; i++) {
        TRY(check_object(verify, i, error));
        arena_reset_to(verify->scratch, mark);
    }
    err verdicts = check_verdicts(verify, error);
    arena_reset_to(verify->scratch, mark);
    return verdicts;
}
