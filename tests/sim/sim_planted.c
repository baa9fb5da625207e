#include "sim.h"

#include "base/assert.h"
#include "base/planted.h"
#include "sink/restore_steps.h"
#include "sink/roll_steps.h"
#include "table/document.h"

/* What the planted faults do where leaving something out is not enough. The simulator's planted
 * build alone calls it. */

#ifdef LHBOX_PLANTED

int planted_fault;

static json_t *mutable_json(const void *value)
{
    return (json_t *)(uintptr_t)value;
}

/* ---- judged by what retained snapshots say (1, 5) ---- */

struct plan_batch {
    struct arena *arena;
    str plan_id;
    struct db_rows rows;
};

static err plan_batch_body(struct db_tx *tx, void *context, struct error *error)
{
    struct plan_batch *batch = context;
    const struct db_value values[] = {DB_T(batch->plan_id)};
    return db_query(tx, batch->arena,
                    "SELECT batch_id, received_at FROM batch WHERE plan = ?1 ORDER BY seq LIMIT 1",
                    values, 1, &batch->rows, error);
}

static bool names_batch(const json_t *summary, str batch_id, instant received_at)
{
    instant rolled_at = 0;
    bool named = str_find(document_text(summary, "lakehousebox.sink.batches"), batch_id) >= 0;
    return named && time_parse(document_text(summary, "lakehousebox.sink.rolled_at"), &rolled_at) &&
           received_at <= rolled_at + SIM_HOUR;
}

static int judge(int fault, const struct ledger_plan *plan, const struct table *table)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)MIB);
    const json_t *snapshots = json_object_get(metadata_json(table->metadata), "snapshots");
    str roll = plan == NULL ? STR("")
                            : str_format(arena, "%lld-%.*s", (long long)plan->n, STR_ARG(plan->id));
    struct plan_batch batch = {.arena = arena, .plan_id = plan == NULL ? STR("") : plan->id};
    err read = db_read(&sim->raw_db, plan_batch_body, &batch, NULL);
    assert(read == OK);
    for (size_t i = 0; i < json_array_size(snapshots); i++) {
        const json_t *summary = json_object_get(json_array_get(snapshots, i), "summary");
        bool named = fault == 1 ? str_equal(document_text(summary, "lakehousebox.sink.roll"), roll)
                                : batch.rows.row_count == 1 &&
                                      names_batch(summary, db_text(&batch.rows, 0, 0),
                                                  db_number(&batch.rows, 0, 1));
        if (named) {
            return PLAN_READS_COMMITTED;
        }
    }
    return PLAN_READS_NOT_COMMITTED;
}

/* ---- a fence is taken as landed because main has moved since it was sent (26) ---- */

static int main_moved(const struct roll_plan *plan, const struct table *table)
{
    static char plan_id[ID_UID_SIZE];
    static i64 base;
    i64 head = 0;
    bool has_head = metadata_main(table->metadata, &head);
    bool same = plan->row.fences.data != NULL &&
                memcmp(plan_id, plan->row.id.data, ID_UID_SIZE) == 0;
    int moved = same && has_head && head != base ? 1 : 0;
    memcpy(plan_id, plan->row.id.data, ID_UID_SIZE);
    base = head;
    return moved;
}

int planted_ask(int fault, const void *a, const void *b, const void *c)
{
    (void)a;
    switch (fault) {
    case 1:
    case 5:
        return judge(fault, b, c);
    case 26:
        return main_moved(b, c);
    default:
        return 0;
    }
}

/* ---- acts ---- */

static void drop_requirement(json_t *request, const char *type)
{
    json_t *requirements = json_object_get(request, "requirements");
    for (size_t i = 0; i < json_array_size(requirements); i++) {
        if (str_equal(document_text(json_array_get(requirements, i), "type"), str_from(type))) {
            (void)json_array_remove(requirements, i);
            return;
        }
    }
}

static void drop_update(json_t *request, const char *action)
{
    json_t *updates = json_object_get(request, "updates");
    for (size_t i = 0; i < json_array_size(updates); i++) {
        if (str_equal(document_text(json_array_get(updates, i), "action"), str_from(action))) {
            (void)json_array_remove(updates, i);
            return;
        }
    }
}

/* The refused plan's batches are free at once. */
static void void_now(const struct roll *roll)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)MIB);
    struct ledger_plan plan = {0};
    if (ledger_live_plan(&sim->raw_db, arena, roll->sink.id, &plan, NULL) != OK ||
        ledger_begin_void(&sim->raw_db, plan.id, STR("refused"), NULL) != OK) {
        return;
    }
    err ended = ledger_end_void(&sim->raw_db, plan.id, NULL, 0, NULL);
    assert(ended == OK);
}

static void remove_objects(const struct roll *roll, const struct roll_plan *plan)
{
    for (size_t i = 0; i < plan->batch_count; i++) {
        err removed = store_remove(&roll->env->warehouse->files, plan->batches[i].object_key, NULL);
        (void)removed;
    }
}

static void remove_files(const struct roll *roll, const str *paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        err removed = location_remove(&roll->env->warehouse->locations, roll->arena, paths[i],
                                      NULL);
        (void)removed;
    }
}

/* ---- plans judged by their number: the first of them in the store's order (16) ---- */

static void judge_by_number(const struct restore *restore, struct chain_link *link)
{
    struct arena *arena = restore->roll.arena;
    struct store_list list = {0};
    str prefix = str_format(arena, "_sink/%.*s/plans/%lld-", STR_ARG(restore->roll.sink.id),
                            (long long)link->n);
    err listed = store_list(&sim->raw_store, arena, prefix, STR(""), 100, &list, NULL);
    assert(listed == OK);
    for (size_t i = 0; i < list.count; i++) {
        str name = str_slice(list.objects[i].key, prefix.size, list.objects[i].key.size);
        if (name.size == ID_UID_SIZE + sizeof(".json") - 1) {
            link->id = str_copy(arena, str_slice(name, 0, ID_UID_SIZE));
            return;
        }
    }
}

static void judge_all_by_number(const struct restore *restore, struct chain_link *links,
                                size_t count)
{
    for (size_t i = 0; i < count; i++) {
        judge_by_number(restore, &links[i]);
    }
}

void planted_act(int fault, const void *a, const void *b, const void *c)
{
    switch (fault) {
    case 2:
        drop_requirement(mutable_json(a), "assert-ref-snapshot-id");
        return;
    case 6:
        remove_objects(a, b);
        return;
    case 16:
        judge_all_by_number(a, (struct chain_link *)(uintptr_t)b, *(const size_t *)c);
        return;
    case 22:
        void_now(a);
        return;
    case 23:
        remove_files(a, b, *(const size_t *)c);
        return;
    case 33:
        drop_update(mutable_json(a), "add-snapshot");
        drop_update(mutable_json(a), "set-snapshot-ref");
        return;
    default:
        return;
    }
}

#endif

/* As docs/exactly-once.md numbers them. 19 and 20 are faults of keyed sinks, which this version has
 * not. */
static const struct {
    i32 number;
    const char *meaning;
    i32 profile; /* what half of the schedules are about; 0: as without a fault */
} FAULTS[] = {
    {1, "judged by snapshot summaries in place of the property", 0},
    {2, "no base assert", 0},
    {3, "ledger row before the object", 0},
    {4, "no comparison of bytes on a reused id", 0},
    {5, "the one-hour clock rule", 0},
    {6, "objects deleted before the finish is durable", 0},
    {7, "recover only updates the rows it finds", 0},
    {8, "collector without a void row", 0},
    {9, "no sequence-number check, under rollback", 0},
    {10, "sink delete without a fence", 0},
    {11, "no compare-and-swap before a try", 0},
    {12, "no acceptance deadline and no node lease", 0},
    {13, "restore without plan objects", 0},
    {14, "restore without adoption", 0},
    {15, "restore without the fence", SIM_PROFILE_RESTORES},
    {16, "restore: plans judged by number in place of the chain", 0},
    {17, "restore: adoption without the copy", 0},
    {18, "restore: different orphans of one id adopted by guess", 0},
    {21, "no plan object before the commit", 0},
    {22, "409 taken as failure", 0},
    {23, "no answer taken as failure, with the data file deleted", 0},
    {24, "void of an attempted plan without a fence", 0},
    {25, "object key = batch id", 0},
    {26, "fence taken as landed because main moved", SIM_PROFILE_VOIDS},
    {27, "recover leaves a row of another uid than the chain's", 0},
    {28, "recover leaves a pending row whose object is gone", 0},
    {29, "a loser deletes its object after a lost answer", 0},
    {30, "what the intake log holds gets its row in a sink that is deleted, too", 0},
    {31, "embedded restore without the pointer in the store", 0},
    {32, "claimed goes back to attempted", 0},
    {33, "late claim without an empty append", 0},
    {34, "early answers of a sink that somebody else changes", 0},
    {35, "an early answer whose rows cannot be made at once is forgotten", 0},
    {36, "a shared object is put again from those of its records that were not released",
     SIM_PROFILE_BURSTS},
};

i32 sim_planted_profile(i32 number)
{
    for (size_t i = 0; i < ARRAY_COUNT(FAULTS); i++) {
        if (FAULTS[i].number == number) {
            return FAULTS[i].profile;
        }
    }
    return 0;
}

bool sim_planted_at(size_t index, i32 *out_number, const char **out_meaning)
{
    if (index >= ARRAY_COUNT(FAULTS)) {
        return false;
    }
    *out_number = FAULTS[index].number;
    *out_meaning = FAULTS[index].meaning;
    return true;
}

bool sim_plant(i32 number)
{
#ifdef LHBOX_PLANTED
    planted_fault = number;
    return true;
#else
    return number == 0;
#endif
}
