#include "sim.h"

#include "base/assert.h"
#include "sink/lifecycle.h"
#include "sink/settings.h"
#include "sink/sink_delete.h"
#include "table/commit.h"
#include "table/document.h"

#include <stdio.h>

/* Everybody else: other writers, the table's owner, the operator, those who make and delete sinks.
 * They act on the catalog and the ledger themselves, and nothing of theirs goes wrong. */

#define AUTO_JSON json_auto_t

/* lifecycle asks the registry of warehouses; here it is one warehouse. */
struct warehouses {
    const struct warehouse *warehouse;
};
const struct warehouse *warehouse_get(const struct warehouses *warehouses, str name)
{
    (void)name;
    return warehouses->warehouse;
}

static struct table_name name_of(const struct sim_table *table)
{
    return (struct table_name){STR("ns"), str_from(table->name)};
}

/* ---- tables ---- */

struct sim_table *sim_table_of_slot(i32 slot)
{
    struct sim_table *found = NULL;
    for (i32 i = 0; i < sim->table_count; i++) {
        if (sim->tables[i].slot == slot) {
            found = sim->tables[i].gone ? NULL : &sim->tables[i];
        }
    }
    return found;
}

void sim_make_table(i32 slot)
{
    if (sim->table_count == SIM_TABLES_MAX) {
        return;
    }
    AUTO_ARENA struct arena *arena = arena_create((size_t)8 * MIB);
    u64 drawn = sim_hash(sim->config->seed ^ 0x7ab1e, (u64)slot, 0);
    struct sim_table *table = &sim->tables[sim->table_count];
    *table = (struct sim_table){.slot = slot, .partitioned = drawn % 5 == 0};
    (void)snprintf(table->name, sizeof(table->name), "t%d", slot);
    json_t *fields = json_pack("[{s:i,s:s,s:b,s:s},{s:i,s:s,s:b,s:s},{s:i,s:s,s:b,s:s}]", "id", 1,
                               "name", "rid", "required", 0, "type", "string", "id", 2, "name", "n",
                               "required", 0, "type", "int", "id", 3, "name", "p", "required", 0,
                               "type", "date");
    if (drawn >> 8 & 1) {
        document_append(fields, json_pack("{s:i,s:s,s:b,s:s}", "id", 4, "name", "__ingest_ts",
                                          "required", 0, "type", "timestamptz"));
    }
    AUTO_JSON *request = json_pack(
        "{s:s, s:{s:s, s:i, s:o}, s:{s:s, s:s}}", "name", table->name, "schema", "type", "struct",
        "schema-id", 0, "fields", fields, "properties", "write.parquet.compression-codec",
        "uncompressed", "format-version", table->partitioned || drawn % 3 == 0 ? "3" : "2");
    if (sim_part(SIM_MERGES)) {
        document_set(json_object_get(request, "properties"), "commit.manifest.min-count-to-merge",
                     json_sprintf("%d", (int)(2 + (drawn >> 16) % 3)));
    }
    if (table->partitioned) {
        document_set(request, "partition-spec",
                     json_pack("{s:i, s:[{s:i, s:i, s:s, s:s}]}", "spec-id", 0, "fields",
                               "source-id", 3, "field-id", 1000, "name", "p_day", "transform",
                               "day"));
    }
    struct table made = {0};
    struct error error = {0};
    err created = catalog_create(&sim->catalog, arena, name_of(table), request, &made, &error);
    if (created != OK) {
        sim_violate("setup", "the table cannot be made: %s", error.message);
        return;
    }
    str uuid = metadata_uuid(made.metadata);
    memcpy(table->uuid, uuid.data, ID_UUID_SIZE);
    table_close(&made);
    sim->table_count++;
    sim_table_observe(NULL);
}

static bool load(struct arena *arena, i32 slot, struct sim_table **out_table,
                 struct table *out_loaded)
{
    struct sim_table *table = sim_table_of_slot(slot);
    *out_table = table;
    return table != NULL &&
           catalog_load(&sim->catalog, arena, name_of(table), out_loaded, NULL) == OK;
}

static err commit(struct arena *arena, const struct sim_table *table, const json_t *request)
{
    AUTO_TABLE struct table after = {0};
    struct error error = {0};
    err result = catalog_commit(&sim->catalog, arena, name_of(table), request, &after, &error);
    if (result != OK) {
        sim_trace("    refused: %s", error.message);
    }
    sim_table_observe(result == OK ? &after : NULL);
    return result;
}

/* ---- sinks ---- */

i32 sim_sink_of_slot(i32 slot)
{
    i32 found = -1;
    for (i32 i = 0; i < sim->sink_count; i++) {
        if (sim->sinks[i].slot == slot) {
            found = i;
        }
    }
    return found;
}

i32 sim_make_sink(i32 slot)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)4 * MIB);
    AUTO_TABLE struct table loaded = {0};
    struct sim_table *table = NULL;
    if (sim->sink_count == SIM_SINKS_MAX || !load(arena, slot, &table, &loaded)) {
        return -1;
    }
    u64 drawn = sim_hash(sim->config->seed ^ 0x51, (u64)sim->sink_count, 0);
    struct uid claim = id_uid_make(&sim->quiet_seam);
    struct ledger_sink sink = {
        .id = id_short_make(arena, &sim->quiet_seam, "snk_"),
        .project = STR("default"),
        .warehouse = STR("w"),
        .namespace_name = STR("ns"),
        .table_name = str_from(table->name),
        .table_uuid = metadata_uuid(loaded.metadata),
        .name = str_format(arena, "s%d", sim->sink_count),
        .roll_seconds = sim->roll_seconds,
        .roll_bytes = drawn % 3 == 0 ? 64 * (i64)MIB : 40 + (i64)(drawn >> 8) % 400,
        .unknown_fields = STR("reject"),
        .idempotency = STR("required"),
        .send_key_id = str_format(arena, "%012d", sim->sink_count),
        .claim_id = id_uid_str(&claim),
        .config_version = 1,
    };
    struct error error = {0};
    if (ledger_insert_sink(&sim->raw_db, &sink, &error) != OK) {
        sim_trace("owner: no sink: %s", error.message);
        return -1;
    }
    err written = settings_write(&sim->raw_store, &sim->quiet_seam, arena, sim->installation, &sink,
                                 SETTINGS_ACTIVE, NULL, &error);
    assert(written == OK);
    struct sim_sink *made = &sim->sinks[sim->sink_count];
    *made = (struct sim_sink){.slot = slot, .table = (i32)(table - sim->tables)};
    memcpy(made->id, sink.id.data, ID_SHORT_SIZE);
    sim_trace("owner: sink %s on %s", made->id, table->name);
    return sim->sink_count++;
}

/* ---- other writers ---- */

static void foreign_once(struct arena *arena, i32 slot)
{
    static const struct partition_value NOTHING[1] = {{.number = 0}};
    AUTO_TABLE struct table loaded = {0};
    struct sim_table *table = NULL;
    if (!load(arena, slot, &table, &loaded)) {
        return;
    }
    struct append append = commit_begin(&sim->quiet_seam);
    struct data_file file = {
        .path = str_format(arena, "%.*s/data/foreign-%lld.parquet",
                           STR_ARG(metadata_location(loaded.metadata)),
                           (long long)append.snapshot_id),
        .stats = {.rows = 1, .file_bytes = 100},
        .partition = NOTHING,
    };
    append.files = &file;
    append.file_count = 1;
    json_t *request = NULL;
    if (commit_append(arena, &sim->raw_locations, &loaded, &sim->quiet_seam, &append, &request,
                      NULL) == OK) {
        sim_trace("foreign writer: appends to %s", table->name);
        (void)!commit(arena, table, request);
        json_decref(request);
    }
}

static void foreign_append(struct arena *arena, i32 slot)
{
    i64 times = sim_below(3) == 0 ? sim_between(2, 5) : 1;
    for (i64 i = 0; i < times && !sim->stopping; i++) {
        foreign_once(arena, slot);
        sim_wait(times > 1 ? sim_between(100000, 3 * TIME_SECOND_US) : 0);
    }
}

/* One new file in place of all. */
static void write_file(struct arena *arena, const u16 *rows, size_t count, str path)
{
    buf bytes = buf_create(arena, 1024, MIB);
    for (size_t i = 0; i < count; i++) {
        char mark[16];
        (void)snprintf(mark, sizeof(mark), "~%04d.%d~", rows[i] / SIM_ROWS_MAX,
                       rows[i] % SIM_ROWS_MAX);
        buf_append(&bytes, str_from(mark));
    }
    str body = buf_str(&bytes);
    err put = location_put(&sim->raw_locations, arena, path, &body, 1, NULL);
    assert(put == OK);
}

static json_t *replace_request(struct arena *arena, const struct table *loaded, i64 head,
                               struct manifest_file manifest, i64 snapshot_id, str location)
{
    const struct metadata *metadata = loaded->metadata;
    i64 sequence = metadata_last_sequence_number(metadata) + 1;
    i32 version = metadata_format_version(metadata);
    i64 first_row = metadata_next_row_id(metadata);
    manifest.sequence_number = sequence;
    manifest.min_sequence_number = sequence;
    manifest.first_row_id = version >= 3 ? first_row : -1;
    struct manifest_list list = {&manifest, 1};
    str bytes = {NULL, 0};
    str path = str_format(arena, "%.*s/metadata/replace-%lld.avro", STR_ARG(location),
                          (long long)snapshot_id);
    err written = manifest_list_write(arena, version, snapshot_id, true, head, sequence, first_row,
                                      &list, &bytes, NULL);
    assert(written == OK);
    written = location_put(&sim->raw_locations, arena, path, &bytes, 1, NULL);
    assert(written == OK);
    json_t *snapshot = json_pack(
        "{s:I, s:I, s:I, s:I, s:s, s:{s:s}, s:i}", "snapshot-id", (json_int_t)snapshot_id,
        "parent-snapshot-id", (json_int_t)head, "sequence-number", (json_int_t)sequence,
        "timestamp-ms", (json_int_t)(metadata_last_updated(metadata) / 1000 + 1), "manifest-list",
        path.data, "summary", "operation", "replace", "schema-id", 0);
    if (version >= 3) {
        document_set_i64(snapshot, "first-row-id", first_row);
        document_set_i64(snapshot, "added-rows", manifest.added_rows);
    }
    return json_pack("{s:[{s:s, s:s, s:I}], s:[{s:s, s:o}, {s:s, s:s, s:s, s:I}]}", "requirements",
                     "type", "assert-ref-snapshot-id", "ref", "main", "snapshot-id",
                     (json_int_t)head, "updates", "action", "add-snapshot", "snapshot", snapshot,
                     "action", "set-snapshot-ref", "ref-name", "main", "type", "branch",
                     "snapshot-id", (json_int_t)snapshot_id);
}

static void compact(struct arena *arena, i32 slot)
{
    AUTO_TABLE struct table loaded = {0};
    struct sim_table *table = NULL;
    i64 head = 0;
    u16 *rows = NULL;
    if (!load(arena, slot, &table, &loaded) || table->partitioned ||
        !metadata_main(loaded.metadata, &head)) {
        return;
    }
    size_t count = sim_table_rows(arena, loaded.metadata, &rows);
    if (count == 0) {
        return;
    }
    str location = metadata_location(loaded.metadata);
    i64 snapshot_id = commit_snapshot_id(&sim->quiet_seam);
    struct schema schema = {0};
    struct partition_spec spec = {0};
    err read = metadata_schema(arena, loaded.metadata, &schema, NULL);
    assert(read == OK);
    read = metadata_spec(arena, loaded.metadata, &spec, NULL);
    assert(read == OK);
    struct data_file file = {
        .path = str_format(arena, "%.*s/data/compact-%lld.parquet", STR_ARG(location),
                           (long long)snapshot_id),
        .stats = {.rows = (i64)count, .file_bytes = 100},
        .spec_id = spec.id,
    };
    write_file(arena, rows, count, file.path);
    str bytes = {NULL, 0};
    struct manifest_file manifest = {0};
    str path = str_format(arena, "%.*s/metadata/compact-%lld-m0.avro", STR_ARG(location),
                          (long long)snapshot_id);
    err written = manifest_write(arena, loaded.metadata, &schema, &spec, snapshot_id, &file, 1,
                                 path, &bytes, &manifest, NULL);
    assert(written == OK);
    written = location_put(&sim->raw_locations, arena, path, &bytes, 1, NULL);
    assert(written == OK);
    AUTO_JSON *request = replace_request(arena, &loaded, head, manifest, snapshot_id, location);
    sim_trace("compactor: %zu rows of %s in one file", count, table->name);
    (void)!commit(arena, table, request);
}

/* ---- the owner ---- */

static void expire(struct arena *arena, i32 slot)
{
    AUTO_TABLE struct table loaded = {0};
    struct sim_table *table = NULL;
    if (!load(arena, slot, &table, &loaded)) {
        return;
    }
    const json_t *snapshots = json_object_get(metadata_json(loaded.metadata), "snapshots");
    size_t keep = 1 + (size_t)sim_below(3);
    i64 head = 0;
    bool has_head = metadata_main(loaded.metadata, &head);
    json_t *ids = json_array();
    for (size_t i = 0; i + keep < json_array_size(snapshots); i++) {
        i64 id = document_i64_or(json_array_get(snapshots, i), "snapshot-id", 0);
        if (!has_head || id != head) {
            document_append(ids, json_integer(id));
        }
    }
    AUTO_JSON *request = json_pack("{s:[{s:s, s:o}]}", "updates", "action", "remove-snapshots",
                                   "snapshot-ids", ids);
    if (json_array_size(ids) > 0) {
        sim_trace("owner: expires %zu snapshots of %s", json_array_size(ids), table->name);
        (void)!commit(arena, table, request);
    }
}

static bool is_late_base(i64 id)
{
    for (size_t i = 0; i < SIM_LATE_MAX; i++) {
        if (sim->late_bases[i] == id) {
            return true;
        }
    }
    return false;
}

/* By one to three, or to just where a request under way expects main to be. */
static i64 back_from(const struct metadata *metadata, i64 head)
{
    i64 steps = sim_between(1, 3);
    i64 to = head;
    i64 at = head;
    for (i64 i = 0; i < 8; i++) {
        const json_t *snapshot = metadata_snapshot(metadata, at);
        i64 parent = document_i64_or(snapshot, "parent-snapshot-id", 0);
        if (metadata_snapshot(metadata, parent) == NULL) {
            return to;
        }
        at = parent;
        if (is_late_base(at)) {
            return at;
        }
        to = i < steps ? at : to;
    }
    return to;
}

static void roll_back(struct arena *arena, i32 slot)
{
    AUTO_TABLE struct table loaded = {0};
    struct sim_table *table = NULL;
    i64 head = 0;
    if (!load(arena, slot, &table, &loaded) || !metadata_main(loaded.metadata, &head)) {
        return;
    }
    i64 to = back_from(loaded.metadata, head);
    if (to == head) {
        return;
    }
    AUTO_JSON *request = json_pack("{s:[{s:s, s:s, s:s, s:I}]}", "updates", "action",
                                   "set-snapshot-ref", "ref-name", "main", "type", "branch",
                                   "snapshot-id", (json_int_t)to);
    table->rewound = true;
    sim_trace("owner: rolls %s back to %lld", table->name, (long long)to);
    (void)!commit(arena, table, request);
}

static void unset(struct arena *arena, i32 slot)
{
    AUTO_TABLE struct table loaded = {0};
    struct sim_table *table = NULL;
    if (!load(arena, slot, &table, &loaded) ||
        metadata_property(loaded.metadata, METADATA_ROLL_PROPERTY).data == NULL) {
        return;
    }
    bool garbage = sim_below(3) == 0;
    AUTO_JSON *request = garbage
                             ? json_pack("{s:[{s:s, s:{s:s}}]}", "updates", "action",
                                         "set-properties", "updates", METADATA_ROLL_PROPERTY,
                                         "mine:now:1:x")
                             : json_pack("{s:[{s:s, s:[s]}]}", "updates", "action",
                                         "remove-properties", "removals", METADATA_ROLL_PROPERTY);
    sim_trace("owner: takes the property of %s away", table->name);
    table->touched = true;
    (void)!commit(arena, table, request);
}

static void alter(struct arena *arena, i32 slot)
{
    AUTO_TABLE struct table loaded = {0};
    struct sim_table *table = NULL;
    if (!load(arena, slot, &table, &loaded)) {
        return;
    }
    const json_t *root = metadata_json(loaded.metadata);
    i64 current = document_i64_or(root, "current-schema-id", 0);
    AUTO_JSON *schema = json_deep_copy(
        document_find(json_object_get(root, "schemas"), "schema-id", (i32)current));
    json_t *fields = json_object_get(schema, "fields");
    i64 last = document_i64_or(root, "last-column-id", 0);
    str type = document_text(json_array_get(fields, 1), "type");
    if (str_equal(type, STR("int"))) {
        document_set_text(json_array_get(fields, 1), "type", STR("long"));
    } else {
        last++;
        char name[24];
        (void)snprintf(name, sizeof(name), "c%lld", (long long)last);
        document_append(fields, json_pack("{s:I,s:s,s:b,s:s}", "id", (json_int_t)last, "name", name,
                                          "required", 0, "type", "string"));
    }
    json_object_del(schema, "schema-id");
    AUTO_JSON *request = json_pack(
        "{s:[{s:s,s:O,s:I},{s:s,s:i}]}", "updates", "action", "add-schema", "schema", schema,
        "last-column-id", (json_int_t)last, "action", "set-current-schema", "schema-id", -1);
    sim_trace("owner: alters %s", table->name);
    (void)!commit(arena, table, request);
}

static void rename_table(struct arena *arena, i32 slot)
{
    (void)arena;
    struct sim_table *table = sim_table_of_slot(slot);
    if (table == NULL) {
        return;
    }
    struct sim_table renamed = *table;
    (void)snprintf(renamed.name, sizeof(renamed.name), "t%d_%d", slot, ++sim->renames);
    err result = catalog_local_rename(catalog_local_of(&sim->catalog), CATALOG_TABLE,
                                      name_of(table), name_of(&renamed), NULL);
    if (result == OK) {
        sim_trace("owner: %s is now %s", table->name, renamed.name);
        memcpy(table->name, renamed.name, sizeof(table->name));
    }
}

static void drop_table(struct arena *arena, i32 slot)
{
    (void)arena;
    struct sim_table *table = sim_table_of_slot(slot);
    if (table == NULL || catalog_drop(&sim->catalog, name_of(table), NULL) != OK) {
        return;
    }
    sim_trace("owner: drops %s", table->name);
    table->gone = true;
    if (sim_below(3) > 0) {
        sim_make_table(slot);
    }
}

/* ---- settings and deletes, through a process ---- */

static struct sim_process *pick_roller(void)
{
    struct sim_process *process = sim->rollers[sim_below((u64)sim->roller_count)];
    return process->dead ? NULL : process;
}

struct errand {
    i32 sink;
    bool done;
};

static void run_delete(struct actor *actor)
{
    struct errand *errand = actor->argument;
    struct sim_sink *sink = &sim->sinks[errand->sink];
    char holder[48];
    (void)snprintf(holder, sizeof(holder), "%s-delete", actor->process->name);
    struct roll_env env = sim_roll_env(actor->process, holder);
    i64 discarded = 0;
    struct error error = {0};
    err deleted = sink_delete(&env, str_from(sink->id), &discarded, &error);
    sim_trace("delete of %s: %s, %lld discarded %s", sink->id, err_text(deleted),
              (long long)discarded, error.message);
    if (!sim_dead() && !sim->stopping && (deleted == OK || deleted == NOT_FOUND)) {
        sink->deleted = true;
    }
    errand->done = true;
}

static void delete_sink(struct actor *actor, i32 slot)
{
    i32 index = sim_sink_of_slot(slot);
    if (index < 0) {
        return;
    }
    struct errand *errand = arena_alloc(sim->arena, sizeof(*errand));
    assert(errand != NULL);
    for (u64 i = 0; i < 6 && !sim->stopping && !sim->sinks[index].deleted; i++) {
        struct sim_process *process = pick_roller();
        *errand = (struct errand){.sink = index};
        if (process != NULL) {
            sim->sinks[index].deleting_at = sim->sinks[index].deleting
                                                ? sim->sinks[index].deleting_at
                                                : sim->now;
            sim->sinks[index].deleting = true;
            (void)sim_spawn("deleter", sim_hash(8, (u64)index, i), process, run_delete, errand, 1);
        }
        sim_wait(sim_between(1, 600) * TIME_SECOND_US);
    }
    (void)actor;
    while (sim_stopped() && !sim->stopping) {
        sim_wait(sim->tick_us / 4);
    }
    if (sim->sinks[index].deleted && !sim->stopping) {
        i32 made = sim_make_sink(slot);
        (void)made;
    }
}

static void run_patch(struct actor *actor)
{
    sim->errands++;
    AUTO_ARENA struct arena *arena = arena_create((size_t)4 * MIB);
    const struct errand *errand = actor->argument;
    struct sim_process *process = actor->process;
    const struct warehouses warehouses = {&process->warehouse};
    const struct lifecycle lifecycle = {&process->db, &process->seam, &warehouses,
                                        sim->installation};
    const struct lifecycle_bounds bounds = {.roll_seconds_min = 1,
                                            .roll_seconds_max = 86400,
                                            .roll_bytes_min = 1,
                                            .roll_bytes_max = 64 * (i64)MIB,
                                            .inactivity_seconds_min = 1,
                                            .inactivity_seconds_max = 3600};
    struct ledger_sink sink = {0};
    struct error error = {0};
    i64 seconds = sim->roll_seconds + (i64)sim_below(3);
    const struct ledger_sink_patch patch = {.roll_seconds = &seconds};
    err result = ledger_find_sink(&process->db, arena, STR(""),
                                  str_from(sim->sinks[errand->sink].id), &sink, &error);
    result = result == OK ? lifecycle_patch(&lifecycle, arena, &bounds, &sink, &patch, &error)
                          : result;
    sim->errands--;
    sim_trace("patch of %s: %s %s", sim->sinks[errand->sink].id, err_text(result), error.message);
}

static void patch_sink(i32 slot)
{
    struct sim_process *process = pick_roller();
    i32 index = sim_sink_of_slot(slot);
    if (process == NULL || index < 0) {
        return;
    }
    struct errand *errand = arena_alloc(sim->arena, sizeof(*errand));
    assert(errand != NULL);
    *errand = (struct errand){.sink = index};
    (void)sim_spawn("patcher", sim_hash(9, (u64)index, (u64)sim->now), process, run_patch, errand,
                    1);
}

/* ---- the operator ---- */

void sim_operate(void)
{
    if (sim_stopped()) {
        return;
    }
    AUTO_ARENA struct arena *arena = arena_create((size_t)8 * MIB);
    for (i32 i = 0; i < sim->sink_count; i++) {
        struct ledger_sink sink = {0};
        struct error error = {0};
        err found = ledger_find_sink(&sim->raw_db, arena, STR(""), str_from(sim->sinks[i].id),
                                     &sink, &error);
        if (found == OK && sink.state == SINK_DISABLED) {
            sim_trace("operator: %s was disabled: %.*s: %.*s", sim->sinks[i].id,
                      STR_ARG(sink.state_reason), STR_ARG(sink.last_error));
            err resumed = ledger_resume_sink(&sim->raw_db, sink.id, &error);
            assert(resumed == OK);
        }
    }
}

static void run_operator(struct actor *actor)
{
    (void)actor;
    while (!sim->stopping && sim->now < sim->horizon) {
        sim_wait(sim_between(sim->horizon / 40, sim->horizon / 8));
        if (!sim->stopping) {
            sim_operate();
        }
    }
}

/* ---- who acts how often ---- */

static void step_clock(void)
{
    i64 span = sim_below(4) == 0 ? 2 * TIME_DAY_US : 30 * 60 * TIME_SECOND_US;
    sim->ledger_offset += sim_between(-span, span);
    sim->ledger_offset_max = num_max_i64(sim->ledger_offset_max, sim->ledger_offset);
    sim_trace("** the ledger's clock steps, it is off by %lld s",
              (long long)(sim->ledger_offset / TIME_SECOND_US));
}

/* An intake with an open request stands still for longer than its batch is remembered. */
static void freeze_long(void)
{
    struct sim_process *process = NULL;
    for (i64 looks = 0; looks < 200 && process == NULL && !sim->stopping; looks++) {
        struct sim_process *seen = sim->intakes[sim_below((u64)sim->intake_count)];
        process = !seen->dead && !sim_node_idle(seen) ? seen : NULL;
        if (process == NULL) {
            sim_wait(sim_between(1000, sim->horizon / 400));
        }
    }
    if (process != NULL && !sim->stopping && sim->horizon > 9 * TIME_DAY_US) {
        i64 length = sim_between(7 * TIME_DAY_US, 9 * TIME_DAY_US);
        process->frozen_until = num_max_i64(process->frozen_until, sim->now + length);
        sim_trace("** %s freezes for %lld h", process->name, (long long)(length / SIM_HOUR));
    }
}

static void act(struct actor *actor, enum sim_part part, i32 slot)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)32 * MIB);
    switch (part) {
    case SIM_FOREIGN:
        foreign_append(arena, slot);
        return;
    case SIM_COMPACTOR:
        compact(arena, slot);
        return;
    case SIM_EXPIRER: /* what keeps a table in order often writes a snapshot of its own before */
        if (sim_below(2) == 0) {
            foreign_once(arena, slot);
        }
        expire(arena, slot);
        return;
    case SIM_ROLLBACK:
        roll_back(arena, slot);
        return;
    case SIM_UNSETTER:
        unset(arena, slot);
        return;
    case SIM_RENAMER:
        rename_table(arena, slot);
        return;
    case SIM_DROPPER:
        drop_table(arena, slot);
        return;
    case SIM_ALTERER:
        alter(arena, slot);
        return;
    case SIM_PATCHER:
        patch_sink(slot);
        return;
    case SIM_DELETER:
        delete_sink(actor, slot);
        return;
    case SIM_CLOCKS:
        step_clock();
        return;
    case SIM_FREEZES:
        freeze_long();
        return;
    case SIM_RESTORER:
    case SIM_DEATHS:
    case SIM_REPLAYS:
    case SIM_GROWTH:
    case SIM_REJECTS:
    case SIM_BURSTS:
    case SIM_MERGES:
    case SIM_PART_COUNT:
        return;
    }
}

/* Main has moved on from where a request under way expects it. */
static bool is_left_behind(i32 slot)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)8 * MIB);
    AUTO_TABLE struct table loaded = {0};
    struct sim_table *table = NULL;
    i64 head = 0;
    if (!sim_commit_under_way() || !load(arena, slot, &table, &loaded) ||
        !metadata_main(loaded.metadata, &head) || is_late_base(head)) {
        return false;
    }
    return is_late_base(back_from(loaded.metadata, head));
}

/* Whoever waits for the worst moment acts while a commit request is still under way. */
void sim_await_trouble(enum sim_part part, i32 slot)
{
    for (int looks = 0; looks < 120 && !sim->stopping; looks++) {
        if (part == SIM_ROLLBACK ? is_left_behind(slot) : sim_commit_under_way()) {
            break;
        }
        sim_wait(sim_between(1000, sim->horizon / 200));
    }
    sim_wait(sim_between(0, 3 * TIME_SECOND_US));
}

/* The embedded catalog stands still while the ledger is put back. */
static void await_service(void)
{
    while (sim->embedded && sim_stopped() && !sim->stopping) {
        sim_wait(sim->tick_us / 4);
    }
}

static void run_part(struct actor *actor)
{
    enum sim_part part = (enum sim_part)(intptr_t)actor->argument;
    bool rare = part == SIM_UNSETTER || part == SIM_DROPPER || part == SIM_DELETER ||
                part == SIM_FREEZES;
    bool often = sim->unsettled &&
                 (part == SIM_FOREIGN || part == SIM_PATCHER || part == SIM_ROLLBACK);
    i64 times = rare    ? 1
                : often ? sim->scope->acts + sim_between(0, sim->scope->acts)
                        : sim_between(1, sim->scope->acts);
    for (i64 i = 0; i < times && !sim->stopping; i++) {
        i64 left = num_max_i64(sim->horizon - sim->now, 0);
        left = part == SIM_FREEZES ? left / 6 : left;
        sim_wait((i64)sim_below((u64)(left / (times - i) + 1)));
        i32 slot = (i32)sim_below((u64)sim->slot_count);
        u64 patience = part == SIM_ROLLBACK || (often && part == SIM_PATCHER) ? 8 : often ? 1 : 2;
        if (part != SIM_FREEZES && sim_below(patience) != 0) {
            sim_await_trouble(part, slot);
        }
        await_service();
        if (!sim->stopping && sim->faults) {
            sim->errands++;
            act(actor, part, slot);
            sim->errands--;
        }
    }
}

void sim_start_owners(void)
{
    for (i32 part = 0; part <= SIM_FREEZES; part++) {
        if (sim_part((enum sim_part)part)) {
            (void)sim_spawn("owner", sim_hash(10, (u64)part, 0), NULL, run_part,
                            (void *)(intptr_t)part, 1);
        }
    }
    if (sim_part(SIM_RESTORER)) {
        (void)sim_spawn("restorer", sim_hash(12, 0, 0), NULL, sim_run_restorer, NULL, 1);
    }
    (void)sim_spawn("operator", sim_hash(11, 0, 0), NULL, run_operator, NULL, 1);
}
