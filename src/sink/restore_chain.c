#include "base/planted.h"
#include "sink/batch.h"
#include "sink/restore_steps.h"
#include "table/document.h"

/* Steps 3 to 6: the property, the chain, undo and redo. A plan is proven by the chain from the
 * property's id through the prev links, never by its number: an abandoned fork may hold plans with
 * the same numbers that never landed. */

enum { RESTORE_PLAN_MIB_MAX = 256, RESTORE_REJECTS_MIB_MAX = 512 };
#define RESTORE_REJECTS_US (7 * TIME_DAY_US)

/* ---- the property ---- */

/* The last fence of a deleted sink removes the property; a copy may have missed it. */
static err names_deleted_sink(struct restore *restore, str sink_id, bool *out_deleted,
                              struct error *error)
{
    struct ledger_sink other = {0};
    struct error told = {0};
    err found = ledger_find_sink(restore->roll.env->db, restore->roll.arena, STR(""), sink_id,
                                 &other, &told);
    if (found != OK && found != NOT_FOUND) {
        return error_set(error, found, told.code, "%s", told.message);
    }
    *out_deleted = found == OK && other.state == SINK_DELETED;
    return OK;
}

/* A plan is made only after the table was claimed: then the property was there, and somebody has
 * taken it away. What it read, nobody knows any more. */
static err has_plans(struct restore *restore, bool *out_has, struct error *error)
{
    struct store_list list = {0};
    str prefix = str_format(restore->roll.arena, "_sink/%.*s/plans/",
                            STR_ARG(restore->roll.sink.id));
    if (prefix.data == NULL) {
        return error_memory(error);
    }
    TRY(store_list(&restore->roll.env->warehouse->files, restore->roll.arena, prefix, STR(""), 1,
                   &list, error));
    *out_has = list.count > 0;
    return OK;
}

err restore_read(struct restore *restore, const struct table *table,
                 enum restore_reading *out_reading, struct plan_property *out_property,
                 struct error *error)
{
    const struct ledger_sink *sink = &restore->roll.sink;
    bool unclaimed = sink->claim_state != CLAIM_CLAIMED;
    str text = metadata_property(table->metadata, METADATA_ROLL_PROPERTY);
    *out_reading = RESTORE_OTHER;
    if (text.data == NULL) {
        bool planned = false;
        TRY(has_plans(restore, &planned, error));
        *out_reading = unclaimed && !planned ? RESTORE_UNCLAIMED : RESTORE_OTHER;
        return OK;
    }
    struct plan_property read = {0};
    if (!plan_parse_property(text, &read) ||
        !str_equal(read.installation, restore->roll.env->installation_id)) {
        return OK;
    }
    if (!str_equal(read.sink_id, sink->id)) {
        bool deleted = false;
        TRY(names_deleted_sink(restore, read.sink_id, &deleted, error));
        *out_reading = unclaimed && deleted ? RESTORE_UNCLAIMED : RESTORE_OTHER;
        return OK;
    }
    *out_property = read;
    bool same = read.n == sink->last_n && str_equal(read.id, sink->last_plan_id);
    *out_reading = same ? RESTORE_SAME : read.n > sink->last_n ? RESTORE_AHEAD : RESTORE_OTHER;
    return OK;
}

/* ---- counts (O13) ---- */

/* The snapshot whose summary names this plan; NULL: none is left. */
static const json_t *find_snapshot(const struct metadata *metadata, str roll)
{
    const json_t *snapshots = json_object_get(metadata_json(metadata), "snapshots");
    for (size_t i = json_array_size(snapshots); i > 0; i--) {
        const json_t *snapshot = json_array_get(snapshots, i - 1);
        const json_t *summary = json_object_get(snapshot, "summary");
        const char *text = json_string_value(json_object_get(summary, "lakehousebox.sink.roll"));
        if (text != NULL && str_equal(str_from(text), roll)) {
            return snapshot;
        }
    }
    return NULL;
}

/* What a batch's rejects file tells. A record without a row stands for the whole batch. */
struct rejects {
    bool found;
    i64 rows;
    struct ledger_count reasons[REJECT_REASON_COUNT];
    size_t reason_count;
};

static err add_record(struct arena *arena, struct rejects *rejects, str line, i64 batch_rows,
                      struct error *error)
{
    json_t *record = json_loadb(line.data, line.size, 0, NULL);
    i64 rows = json_is_null(json_object_get(record, "row")) ? batch_rows : 1;
    str reason = str_copy(arena, document_text(record, "reason"));
    json_decref(record);
    rejects->rows += rows;
    if (reason.data == NULL) {
        return error_memory(error);
    }
    size_t place = 0;
    while (place < rejects->reason_count && !str_equal(rejects->reasons[place].name, reason)) {
        place++;
    }
    if (place == REJECT_REASON_COUNT) {
        return OK; /* names that we never wrote: counted as unknown */
    }
    rejects->reasons[place].name = reason;
    rejects->reasons[place].count += rows;
    rejects->reason_count += place == rejects->reason_count ? 1 : 0;
    return OK;
}

static err read_rejects(struct restore *restore, struct arena *arena,
                        const struct ledger_batch *batch, struct rejects *out_rejects,
                        struct error *error)
{
    struct arena *body AUTO_ARENA = arena_create((size_t)RESTORE_REJECTS_MIB_MAX * MIB);
    struct store_object object = {0};
    struct error told = {0};
    str key = batch_rejects_key(body, restore->roll.sink.id, batch->batch_id);
    err got = store_get(&restore->roll.env->warehouse->files, body, key, &object, &told);
    if (got == NOT_FOUND) {
        return OK;
    }
    if (got != OK) {
        return error_set(error, got, told.code, "%s", told.message);
    }
    out_rejects->found = true;
    str rest = object.body;
    str line = {0};
    while (str_next(&rest, '\n', &line)) {
        if (line.size > 0) {
            TRY(add_record(arena, out_rejects, line, batch->rows, error));
        }
    }
    out_rejects->rows = num_min_i64(out_rejects->rows, batch->rows);
    return OK;
}

struct counting {
    struct ledger_verdict *verdicts;
    struct ledger_reasons *reasons;
    i64 snapshot_id;
    i64 unknown;
};

static err counting_open(struct arena *arena, size_t count, struct counting *counting,
                         struct error *error)
{
    *counting = (struct counting){
        .verdicts = arena_array(arena, count, sizeof(*counting->verdicts)),
        .reasons = arena_array(arena, count, sizeof(*counting->reasons)),
    };
    return counting->verdicts != NULL && counting->reasons != NULL ? OK : error_memory(error);
}

static err keep_reasons(struct arena *arena, const struct rejects *rejects, size_t index,
                        struct counting *counting, struct error *error)
{
    struct ledger_count *kept = arena_array(arena, rejects->reason_count, sizeof(*kept));
    if (kept == NULL) {
        return error_memory(error);
    }
    memcpy(kept, rejects->reasons, rejects->reason_count * sizeof(*kept));
    counting->reasons[index] = (struct ledger_reasons){kept, rejects->reason_count};
    return OK;
}

static err count_batch(struct restore *restore, struct arena *arena, const struct chain_plan *plan,
                       size_t index, bool none_rejected, struct counting *counting,
                       struct error *error)
{
    const struct ledger_batch *batch = &plan->batches[index];
    struct rejects rejects = {0};
    if (!none_rejected) {
        TRY(read_rejects(restore, arena, batch, &rejects, error));
        TRY(keep_reasons(arena, &rejects, index, counting, error));
        /* No file: nothing was rejected, as long as files of that time are kept. */
        bool kept = restore->roll.sink.now - plan->written_at < RESTORE_REJECTS_US;
        counting->unknown += !rejects.found && !kept ? 1 : 0;
    }
    counting->verdicts[index] = (struct ledger_verdict){.batch_id = batch->batch_id,
                                                        .rows_committed = batch->rows -
                                                                          rejects.rows,
                                                        .rows_rejected = rejects.rows};
    return OK;
}

static err count_plan(struct restore *restore, struct arena *arena, const struct table *table,
                      const struct chain_plan *plan, struct counting *counting, struct error *error)
{
    str roll = str_format(arena, "%lld-%.*s", (long long)plan->n, STR_ARG(plan->id));
    TRY(counting_open(arena, plan->count, counting, error));
    if (roll.data == NULL) {
        return error_memory(error);
    }
    const json_t *snapshot = find_snapshot(table->metadata, roll);
    const json_t *summary = json_object_get(snapshot, "summary");
    str rejected = document_text(summary, "lakehousebox.sink.rejected_rows");
    counting->snapshot_id = json_integer_value(json_object_get(snapshot, "snapshot-id"));

    bool none_rejected = str_equal(rejected, STR("0"));
    for (size_t i = 0; i < plan->count; i++) {
        TRY(count_batch(restore, arena, plan, i, none_rejected, counting, error));
    }
    return OK;
}

/* ---- redo ---- */

static struct ledger_proven proven_of(const struct restore *restore, const struct chain_plan *plan,
                                      const struct counting *counting)
{
    return (struct ledger_proven){
        .sink_id = restore->roll.sink.id,
        .n = plan->n,
        .id = plan->id,
        .prev = plan->prev,
        .config_version = plan->config_version,
        .batches = plan->batches,
        .verdicts = counting->verdicts,
        .reasons = counting->reasons,
        .count = plan->count,
        .snapshot_id = counting->snapshot_id,
    };
}

static err redo_plan(struct restore *restore, const struct table *table,
                     const struct chain_link *link, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)RESTORE_PLAN_MIB_MAX * MIB);
    struct chain_plan plan = {0};
    struct counting counting = {0};
    TRY(chain_read(&restore->roll.env->warehouse->files, arena, restore->roll.sink.id, link->n,
                   link->id, &plan, error));
    TRY(count_plan(restore, arena, table, &plan, &counting, error));
    struct ledger_proven proven = proven_of(restore, &plan, &counting);
    TRY(ledger_prove_plan(restore->roll.env->db, &proven, error));
    CRASH_POINT(plan_proven);
    restore->report->plans++;
    restore->report->committed += proven.committed;
    restore->report->quarantined += proven.quarantined;
    restore->report->unknown += counting.unknown;
    return OK;
}

/* The walk from the property has to reach the copy's last plan; a sink that the copy does not know
 * to be claimed begins with its claim. */
static err walk(struct restore *restore, const struct plan_property *property,
                struct chain_link **out_links, size_t *out_count, struct error *error)
{
    const struct ledger_sink *sink = &restore->roll.sink;
    struct error told = {0};
    str floor = {0};
    if (PLANTED(13)) {
        return OK;
    }
    err walked = chain_walk(&restore->roll.env->warehouse->files, restore->roll.arena, sink->id,
                            property->n, property->id, sink->last_n, out_links, out_count, &floor,
                            &told);
    if (walked == NOT_FOUND || walked == CORRUPT) {
        return restore_stop(restore, "ledger_mismatch", str_from(told.message),
                            LEDGER_STOP_KEEP_FLAG, error);
    }
    if (walked != OK) {
        return error_set(error, walked, told.code, "%s", told.message);
    }
    if (!str_equal(floor, sink->last_plan_id)) {
        return restore_stop(
            restore, "ledger_mismatch",
            STR("the table's chain of rolls does not lead to the ledger's last one"),
            LEDGER_STOP_KEEP_FLAG, error);
    }
    return OK;
}

err restore_redo(struct restore *restore, const struct table *table,
                 const struct plan_property *property, struct error *error)
{
    const struct db *db = restore->roll.env->db;
    struct chain_link *links = NULL;
    size_t count = 0;
    TRY(walk(restore, property, &links, &count, error));
    PLANTED_ACT(16, true, restore, links, &count);
    if (restore->stopped) {
        return OK;
    }
    TRY(roll_point_store(&restore->roll, error));
    TRY(ledger_prove_claim(db, restore->roll.sink.id, error));
    /* The copy's live plan has the number after its last one. */
    str proven = count > 0 ? links[count - 1].id : STR("");
    TRY(ledger_undo_plans(db, restore->roll.sink.id, proven, &restore->report->undone, error));
    CRASH_POINT(plans_undone);
    for (size_t i = count; i > 0; i--) {
        TRY(roll_keep_lease(&restore->roll, error));
        TRY(redo_plan(restore, table, &links[i - 1], error));
    }
    return OK;
}

/* ---- verdicts ---- */

static err count_verdict(struct restore *restore, struct arena *arena,
                         const struct chain_plan *plan, struct counting *counting,
                         struct error *error)
{
    TRY(counting_open(arena, plan->count, counting, error));
    for (size_t i = 0; i < plan->count; i++) {
        struct rejects rejects = {0};
        TRY(read_rejects(restore, arena, &plan->batches[i], &rejects, error));
        TRY(keep_reasons(arena, &rejects, i, counting, error));
        counting->verdicts[i] = (struct ledger_verdict){.batch_id = plan->batches[i].batch_id,
                                                        .rows_rejected = plan->batches[i].rows};
    }
    return OK;
}

static err redo_verdict(void *context, const struct chain_plan *plan, struct error *error)
{
    struct restore *restore = context;
    const struct db *db = restore->roll.env->db;
    bool known = false;
    TRY(ledger_knows_plan(db, plan->id, &known, error));
    if (known) {
        return OK;
    }
    struct arena *arena AUTO_ARENA = arena_create((size_t)RESTORE_PLAN_MIB_MAX * MIB);
    struct counting counting = {0};
    TRY(count_verdict(restore, arena, plan, &counting, error));
    struct ledger_proven proven = proven_of(restore, plan, &counting);
    TRY(ledger_prove_verdict(db, &proven, &known, error));
    restore->report->committed += known ? 0 : proven.committed;
    return OK;
}

err restore_verdicts(struct restore *restore, struct error *error)
{
    return chain_visit_verdicts(&restore->roll.env->warehouse->files, restore->roll.sink.id,
                                redo_verdict, restore, error);
}

struct settling {
    struct restore *restore;
    const struct map *missing;
    i64 settled;
};

static err settle_by(void *context, const struct chain_plan *plan, struct error *error)
{
    struct settling *settling = context;
    struct restore *restore = settling->restore;
    struct arena *arena AUTO_ARENA = arena_create((size_t)RESTORE_PLAN_MIB_MAX * MIB);
    struct counting counting = {0};
    TRY(count_verdict(restore, arena, plan, &counting, error));
    struct ledger_proven proven = proven_of(restore, plan, &counting);
    TRY(ledger_settle_missing(restore->roll.env->db, &proven, settling->missing, error));
    settling->settled += proven.committed;
    return OK;
}

err restore_missing(struct restore *restore, const struct map *missing, i64 *out_settled,
                    struct error *error)
{
    struct settling settling = {.restore = restore, .missing = missing};
    if (map_count(missing) > 0) {
        TRY(chain_visit_verdicts(&restore->roll.env->warehouse->files, restore->roll.sink.id,
                                 settle_by, &settling, error));
    }
    *out_settled = settling.settled;
    return OK;
}
