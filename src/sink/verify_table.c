#include "sink/verify_steps.h"

#include <jansson.h>

/* What the table says of the sink's rolls: its property above all (I10), and the summaries of the
 * snapshots that are still in its history. Summaries decide nothing in a roll; here they are one
 * more witness. */

#define SUMMARY_SINK "lakehousebox.sink.id"
#define SUMMARY_ROLL "lakehousebox.sink.roll"
#define SUMMARY_ROWS "lakehousebox.sink.rows"

/* ---- the property ---- */

static str told(str text)
{
    return text.data == NULL ? STR("absent") : text;
}

static void find_other(struct verify *verify, str text, const char *wanted)
{
    verify_find(verify, "I10", verify->sink.id, VERIFY_CURE_PROPERTY,
                "the table's " METADATA_ROLL_PROPERTY " is %.*s, and %s", STR_ARG(told(text)),
                wanted);
}

static const struct ledger_plan *live_plan(const struct verify *verify)
{
    for (size_t i = 0; i < verify->plan_count; i++) {
        enum plan_state state = verify->plans[i].state;
        if (state == PLAN_OPEN || state == PLAN_ATTEMPTED || state == PLAN_VOIDING) {
            return &verify->plans[i];
        }
    }
    return NULL;
}

static void judge_claimed(struct verify *verify, str text)
{
    const struct ledger_sink *sink = &verify->sink;
    switch (plan_judge(verify->env->installation_id, sink, live_plan(verify), text)) {
    case PLAN_READS_COMMITTED:
    case PLAN_READS_NOT_COMMITTED:
        return;
    case PLAN_READS_AHEAD:
        if (verify->env->what == VERIFY_LIVE) {
            verify_find(verify, "I27", sink->id, VERIFY_CURE_AHEAD,
                        "the table's " METADATA_ROLL_PROPERTY
                        " is %.*s, the ledger's last plan is %lld",
                        STR_ARG(told(text)), (long long)sink->last_n);
        }
        return;
    case PLAN_READS_OTHER:
        break;
    }
    str wanted = str_format(verify->scratch, "the ledger's last plan is %lld, %.*s",
                            (long long)sink->last_n, STR_ARG(sink->last_plan_id));
    find_other(verify, text, wanted.data == NULL ? "that is not the last plan" : wanted.data);
}

static void check_property(struct verify *verify, str text)
{
    const struct ledger_sink *sink = &verify->sink;
    struct plan_property read = {0};
    bool ours = text.data != NULL && plan_parse_property(text, &read) &&
                str_equal(read.installation, verify->env->installation_id) &&
                str_equal(read.sink_id, sink->id);
    bool claim = ours && read.n == 0 && str_equal(read.id, sink->claim_id);
    if (sink->state == SINK_DELETED || (sink->state == SINK_DELETING && text.data == NULL)) {
        if (ours && sink->state == SINK_DELETED) {
            find_other(verify, text, "the sink is deleted");
        }
        return;
    }
    switch (sink->claim_state) {
    case CLAIM_NONE:
        if (ours) {
            find_other(verify, text, "the sink never claimed the table");
        }
        return;
    case CLAIM_ATTEMPTED:
        if (text.data != NULL && ours && !claim) {
            find_other(verify, text, "the sink's claim is not settled yet");
        }
        return;
    case CLAIM_CLAIMED:
        judge_claimed(verify, text);
        return;
    }
}

/* ---- the snapshots of our rolls ---- */

static str summary_text(const json_t *snapshot, const char *key)
{
    const json_t *value = json_object_get(json_object_get(snapshot, "summary"), key);
    return (str){json_string_value(value), json_string_length(value)};
}

static void check_rows(struct verify *verify, const struct ledger_plan *plan,
                       const json_t *snapshot)
{
    i64 rows = 0;
    i64 added = 0;
    bool has_rows = str_to_i64(summary_text(snapshot, SUMMARY_ROWS), &rows);
    bool has_added = str_to_i64(summary_text(snapshot, "added-records"), &added);
    bool append = verify->sink.key_columns.data == NULL;
    if (plan->state != PLAN_COMMITTED) {
        return;
    }
    if ((has_rows && rows != plan->rows_committed) ||
        (append && has_added && added != plan->rows_committed)) {
        verify_find(verify, "I13", plan->id, VERIFY_CURE_LEDGER,
                    "the ledger counts %lld rows committed by plan %lld, its snapshot %lld",
                    (long long)plan->rows_committed, (long long)plan->n,
                    (long long)(has_rows && rows != plan->rows_committed ? rows : added));
    }
}

static void check_known_roll(struct verify *verify, const struct ledger_plan *plan,
                             const json_t *snapshot)
{
    if (plan->state == PLAN_VOID) {
        verify_find(verify, "I10", plan->id, VERIFY_CURE_TWICE,
                    "plan %lld is void, and a snapshot of it is in the table's history",
                    (long long)plan->n);
        return;
    }
    check_rows(verify, plan, snapshot);
}

/* `roll`: "<n>-<plan id>". */
static void check_unknown_roll(struct verify *verify, str roll)
{
    i64 n = 0;
    i64 dash = str_find_byte(roll, '-');
    bool numbered = dash > 0 && str_to_i64(str_slice(roll, 0, (size_t)dash), &n);
    bool pruned = verify->plan_count == 0 ? verify->sink.created_at <= verify->young_plan
                                          : n < verify->plans[0].n;
    if (!numbered || (!pruned && n <= verify->sink.last_n)) {
        verify_find(verify, "I7", roll, VERIFY_CURE_LEDGER,
                    "a snapshot of this roll is in the table's history, and the ledger does not "
                    "know the plan");
    }
}

MUST_USE static err check_snapshot(struct verify *verify, const json_t *snapshot, struct map *rolls,
                                   struct error *error)
{
    str sink_id = summary_text(snapshot, SUMMARY_SINK);
    str roll = summary_text(snapshot, SUMMARY_ROLL);
    if (sink_id.data == NULL || roll.data == NULL || !str_equal(sink_id, verify->sink.id)) {
        return OK;
    }
    bool fresh = false;
    if (map_put(rolls, roll, &fresh) == NULL) {
        return error_memory(error);
    }
    if (!fresh) {
        verify_find(verify, "I10", roll, VERIFY_CURE_TWICE,
                    "two snapshots in the table's history are of this one roll");
        return OK;
    }
    i64 dash = str_find_byte(roll, '-');
    str plan_id = dash < 0 ? roll : str_slice(roll, (size_t)dash + 1, roll.size);
    const u64 *place = map_get(verify->plan_of, plan_id);
    if (place != NULL) {
        check_known_roll(verify, &verify->plans[*place], snapshot);
    } else {
        check_unknown_roll(verify, roll);
    }
    return OK;
}

/* A client that replaces the table keeps the number it chose (I32); a roll never does that. */
static bool may_begin(const json_t *snapshot)
{
    return json_object_get(snapshot, "parent-snapshot-id") == NULL &&
           summary_text(snapshot, SUMMARY_ROLL).data == NULL;
}

MUST_USE static err check_history(struct verify *verify, const struct metadata *metadata,
                                  struct error *error)
{
    const json_t *snapshots = json_object_get(metadata_json(metadata), "snapshots");
    struct map *rolls = map_create(verify->arena, json_array_size(snapshots));
    i64 last_sequence = -1;
    if (rolls == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < json_array_size(snapshots); i++) {
        const json_t *snapshot = json_array_get(snapshots, i);
        i64 sequence = json_integer_value(json_object_get(snapshot, "sequence-number"));
        if ((sequence <= last_sequence && !may_begin(snapshot)) ||
            sequence > metadata_last_sequence_number(metadata)) {
            i64 id = json_integer_value(json_object_get(snapshot, "snapshot-id"));
            verify_find(verify, "I32", verify->sink.id, VERIFY_CURE_TWICE,
                        "the sequence number %lld of snapshot %lld is not above those before it",
                        (long long)sequence, (long long)id);
        }
        last_sequence = num_max_i64(last_sequence, sequence);
        TRY(check_snapshot(verify, snapshot, rolls, error));
    }
    verify->report->snapshots = (i64)json_array_size(snapshots);
    return OK;
}

/* ---- the pointer beside the table (section 9, step 0) ---- */

MUST_USE static err check_hint(struct verify *verify, const struct table *table,
                               struct error *error)
{
    str location = metadata_location(table->metadata);
    str uri = str_format(verify->scratch, "%.*s/metadata/version-hint.text", STR_ARG(location));
    str hint = {0};
    struct error told_why = {0};
    str name = table->metadata_location;
    i64 slash = str_find_last_byte(name, '/');
    name = slash < 0 ? name : str_slice(name, (size_t)slash + 1, name.size);
    if (uri.data == NULL) {
        return error_memory(error);
    }
    if (str_ends(name, STR(".metadata.json"))) {
        name = str_slice(name, 0, name.size - (sizeof(".metadata.json") - 1));
    }
    err got = location_get(&verify->env->warehouse->locations, verify->scratch, uri, &hint,
                           &told_why);
    if (got != OK && got != NOT_FOUND && got != CORRUPT) {
        return error_set(error, got, told_why.code, "%s", told_why.message);
    }
    while (hint.size > 0 && hint.data[hint.size - 1] == '\n') {
        hint.size--;
    }
    if (got != OK || !str_equal(hint, name)) {
        verify_find(verify, "I27", uri, VERIFY_CURE_AHEAD,
                    "version-hint.text says %.*s, the catalog %.*s",
                    STR_ARG(got == OK ? hint : STR("nothing")), STR_ARG(name));
    }
    return OK;
}

/* ---- the table ---- */

MUST_USE static err check_table(struct verify *verify, const struct table *table,
                                struct error *error)
{
    const struct ledger_sink *sink = &verify->sink;
    str uuid = metadata_uuid(table->metadata);
    if (!str_equal(uuid, sink->table_uuid)) {
        if (sink->state != SINK_DELETED) {
            verify_find(verify, "I24", sink->id, VERIFY_CURE_PROPERTY,
                        "the table's uuid is %.*s, the sink's table had %.*s", STR_ARG(uuid),
                        STR_ARG(sink->table_uuid));
        }
        return OK;
    }
    check_property(verify, metadata_property(table->metadata, METADATA_ROLL_PROPERTY));
    TRY(check_history(verify, table->metadata, error));
    if (verify->env->warehouse->embedded && verify->env->what == VERIFY_LIVE) {
        TRY(check_hint(verify, table, error));
    }
    return verify_files(verify, table->metadata, error);
}

/* Renamed tables are found by their uuid, as a roll does. */
MUST_USE static err load(struct verify *verify, struct table *out_table, struct error *error)
{
    const struct catalog *catalog = &verify->env->warehouse->catalog;
    struct table_name name = {.namespace_name = verify->sink.namespace_name,
                              .name = verify->sink.table_name};
    err loaded = catalog_load(catalog, verify->arena, name, out_table, error);
    if (loaded != NOT_FOUND) {
        return loaded;
    }
    error_clear(error);
    TRY(catalog_find_by_uuid(catalog, verify->arena, verify->sink.table_uuid, &name, error));
    return catalog_load(catalog, verify->arena, name, out_table, error);
}

err verify_table(struct verify *verify, struct error *error)
{
    struct table table AUTO_TABLE = {0};
    struct error why = {0};
    err loaded = load(verify, &table, &why);
    if (loaded == OK) {
        return check_table(verify, &table, error);
    }
    if (loaded == NOT_FOUND || loaded == CORRUPT) {
        if (verify->sink.state != SINK_DELETED) {
            verify_find(verify, loaded == CORRUPT ? "I25" : "I24", verify->sink.id,
                        loaded == CORRUPT ? VERIFY_CURE_FILES : VERIFY_CURE_PROPERTY,
                        "the sink's table cannot be loaded: %s", why.message);
        }
        return OK;
    }
    return error_set(error, loaded, why.code, "loading the table: %s", why.message);
}
