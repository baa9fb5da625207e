#include "sim.h"

#include "base/assert.h"
#include "format/avro.h"
#include "table/document.h"
#include "table/manifest.h"
#include "table/metadata_file.h"

#include <stdlib.h>

/* What stands in the tables, read from their files at every change: each new snapshot keeps all
 * that its parent had, its files are there, and the rows in them are counted into the model. */

enum {
    FILE_ROWS_MAX = SIM_BATCHES_MAX * SIM_ROWS_MAX,
    MANIFEST_FILES_MAX = 256,
    STATUS_DELETED = 2,
};

/* ---- rows ---- */

/* A row is named ~bbbb.r~ in its own text. Page headers and footers may say it again. */
size_t sim_rows_in(str bytes, u16 *out_rows, size_t max)
{
    enum { MARK = 8 };
    bool seen[FILE_ROWS_MAX] = {false};
    size_t count = 0;
    const char *at = bytes.data;
    const char *end = bytes.data + bytes.size;
    while (at != NULL && end - at >= MARK) {
        at = memchr(at, '~', (size_t)(end - at));
        if (at == NULL || end - at < MARK) {
            break;
        }
        i64 batch = 0;
        bool mark = at[5] == '.' && at[7] == '~' && at[6] >= '0' && at[6] < '0' + SIM_ROWS_MAX &&
                    str_to_i64((str){at + 1, 4}, &batch) && batch >= 0 && batch < SIM_BATCHES_MAX;
        if (!mark) {
            at++;
            continue;
        }
        size_t row = (size_t)batch * SIM_ROWS_MAX + (size_t)(at[6] - '0');
        if (!seen[row] && count < max) {
            seen[row] = true;
            out_rows[count++] = (u16)row;
        }
        at += MARK;
    }
    return count;
}

static int compare_rows(const void *a, const void *b)
{
    return (int)*(const u16 *)a - (int)*(const u16 *)b;
}

/* ---- files ---- */

static str read_file(struct arena *arena, str uri)
{
    str bytes = {NULL, 0};
    err got = location_get(&sim->raw_locations, arena, uri, &bytes, NULL);
    if (got != OK) {
        sim_violate("I25", "the table names %.*s, which is not there", STR_ARG(uri));
        return (str){"", 0};
    }
    return bytes;
}

struct file_rows {
    u16 rows[FILE_ROWS_MAX];
    size_t count;
    size_t foreign; /* files of another writer, which are not there to be read */
};

static i64 number_of(const struct avro_value *record, i32 id, const char *name)
{
    const struct avro_value *value = avro_field_of(record, id, str_from(name));
    return value == NULL ? -1 : value->number;
}

/* What a manifest names: read once, for it and its files are written once and never changed. */
struct manifest_rows {
    str files[MANIFEST_FILES_MAX];
    size_t file_count;
    struct file_rows rows;
};

static void add_data_file(struct arena *arena, const struct avro_value *file,
                          struct manifest_rows *out)
{
    const struct avro_value *path = avro_field_of(file, 100, STR("file_path"));
    assert(path != NULL);
    if (str_find(path->bytes, STR("foreign")) >= 0) {
        out->rows.foreign++;
        return;
    }
    u16 rows[FILE_ROWS_MAX];
    size_t count = sim_rows_in(read_file(arena, path->bytes), rows, FILE_ROWS_MAX);
    i64 recorded = number_of(file, 103, "record_count");
    if ((i64)count != recorded) {
        sim_violate("rows", "%.*s holds %zu different rows and says %lld", STR_ARG(path->bytes),
                    count, (long long)recorded);
    }
    assert(out->file_count < MANIFEST_FILES_MAX);
    out->files[out->file_count++] = str_copy(sim->arena, path->bytes);
    for (size_t i = 0; i < count && out->rows.count < FILE_ROWS_MAX; i++) {
        out->rows.rows[out->rows.count++] = rows[i];
    }
}

static void read_manifest(struct arena *arena, str path, struct manifest_rows *out)
{
    struct avro_file *file = NULL;
    err read = avro_read(arena, read_file(arena, path), &file, NULL);
    if (read != OK) {
        sim_violate("manifest", "%.*s cannot be read", STR_ARG(path));
        return;
    }
    for (size_t i = 0; i < avro_file_count(file); i++) {
        const struct avro_value *entry = avro_file_record(file, i);
        const struct avro_value *data = avro_field_of(entry, 2, STR("data_file"));
        if (number_of(entry, 0, "status") != STATUS_DELETED && data != NULL) {
            add_data_file(arena, data, out);
        }
    }
}

bool sim_is_there(struct arena *arena, str uri)
{
    struct store_object head = {0};
    struct store store = {0};
    str key = {0};
    return location_find(&sim->raw_locations, arena, uri, &store, &key, NULL) == OK &&
           store_head(&store, arena, key, &head, NULL) == OK;
}

static void must_be_there(struct arena *arena, str uri)
{
    if (!sim_is_there(arena, uri)) {
        sim_violate("I25", "the table names %.*s, which is not there", STR_ARG(uri));
    }
}

static void add_manifest(struct arena *arena, str path, struct file_rows *out)
{
    bool is_new = false;
    u64 *place = map_get(sim->manifests, path);
    if (place == NULL) {
        place = map_put(sim->manifests, str_copy(sim->arena, path), &is_new);
        struct manifest_rows *read = arena_alloc(sim->arena, sizeof(*read));
        assert(place != NULL && read != NULL);
        read_manifest(arena, path, read);
        *place = (u64)(uintptr_t)read;
    }
    const struct manifest_rows *known = (const struct manifest_rows *)(uintptr_t)*place;
    if (!is_new) {
        must_be_there(arena, path);
        for (size_t i = 0; i < known->file_count; i++) {
            must_be_there(arena, known->files[i]);
        }
    }
    out->foreign += known->rows.foreign;
    for (size_t i = 0; i < known->rows.count && out->count < FILE_ROWS_MAX; i++) {
        out->rows[out->count++] = known->rows.rows[i];
    }
}

/* ---- snapshots ---- */

static struct sim_snapshot *find_snapshot(i64 id, str uuid)
{
    for (size_t i = 0; i < sim->snapshot_count; i++) {
        struct sim_snapshot *snapshot = &sim->snapshots[i];
        if (snapshot->id == id && str_equal(str_from(snapshot->uuid), uuid)) {
            return snapshot;
        }
    }
    return NULL;
}

static bool has_manifest(const struct sim_snapshot *snapshot, str path)
{
    for (size_t i = 0; i < snapshot->manifest_count; i++) {
        if (str_equal(snapshot->manifests[i], path)) {
            return true;
        }
    }
    return false;
}

static void rows_of(struct arena *arena, const struct sim_snapshot *snapshot, struct file_rows *out)
{
    *out = (struct file_rows){0};
    for (size_t i = 0; i < snapshot->manifest_count; i++) {
        add_manifest(arena, snapshot->manifests[i], out);
    }
    qsort(out->rows, out->count, sizeof(out->rows[0]), compare_rows);
}

static void land_row(u16 row, i64 snapshot)
{
    struct sim_batch *batch = &sim->batches[row / SIM_ROWS_MAX];
    i32 *landed = &batch->landed[row % SIM_ROWS_MAX];
    (*landed)++;
    if (*landed > 1) {
        sim_violate("twice", "row %d of batch %s is in the table twice, again by snapshot %lld",
                    row % SIM_ROWS_MAX, batch->id, (long long)snapshot);
    }
}

/* All manifests of the parent, and what is new. */
static void judge_append(struct arena *arena, struct sim_snapshot *snapshot,
                         const struct sim_snapshot *parent)
{
    struct file_rows *rows = arena_alloc(arena, sizeof(*rows));
    assert(rows != NULL);
    size_t kept = 0;
    for (size_t i = 0; i < snapshot->manifest_count; i++) {
        if (parent != NULL && has_manifest(parent, snapshot->manifests[i])) {
            kept++;
            continue;
        }
        add_manifest(arena, snapshot->manifests[i], rows);
    }
    if (parent != NULL && kept != parent->manifest_count) {
        sim_violate("carry", "snapshot %lld carries %zu of its parent's %zu manifests",
                    (long long)snapshot->id, kept, parent->manifest_count);
    }
    snapshot->rows = arena_array(sim->arena, rows->count, sizeof(*snapshot->rows));
    assert(snapshot->rows != NULL);
    snapshot->row_count = rows->count;
    for (size_t i = 0; i < rows->count; i++) {
        snapshot->rows[i] = rows->rows[i];
        land_row(rows->rows[i], snapshot->id);
    }
    sim_trace("  == snapshot %lld: %zu new rows", (long long)snapshot->id, rows->count);
}

/* `merged`: manifests alone were replaced, ours by ours. The compactor leaves foreign files out. */
static void judge_replace(struct arena *arena, const struct sim_snapshot *snapshot,
                          const struct sim_snapshot *parent, bool merged)
{
    struct file_rows *mine = arena_alloc(arena, sizeof(*mine));
    struct file_rows *theirs = arena_alloc(arena, sizeof(*theirs));
    assert(mine != NULL && theirs != NULL && parent != NULL);
    rows_of(arena, snapshot, mine);
    rows_of(arena, parent, theirs);
    if (mine->count != theirs->count ||
        memcmp(mine->rows, theirs->rows, mine->count * sizeof(mine->rows[0])) != 0) {
        sim_violate("replace", "snapshot %lld is not its parent's rows", (long long)snapshot->id);
    }
    if (merged &&
        (mine->foreign != theirs->foreign || snapshot->manifest_count >= parent->manifest_count)) {
        sim_violate("replace",
                    "snapshot %lld has %zu foreign files in %zu manifests, its parent "
                    "%zu in %zu",
                    (long long)snapshot->id, mine->foreign, snapshot->manifest_count,
                    theirs->foreign, parent->manifest_count);
    }
}

static void take_manifests(struct arena *arena, const json_t *document,
                           struct sim_snapshot *snapshot)
{
    struct manifest_list list = {0};
    str bytes = read_file(arena, document_text(document, "manifest-list"));
    if (bytes.size == 0 || manifest_list_read(arena, bytes, &list, NULL) != OK) {
        sim_violate("list", "the manifest list of snapshot %lld cannot be read",
                    (long long)snapshot->id);
        return;
    }
    snapshot->manifests = arena_array(sim->arena, list.count, sizeof(str));
    assert(snapshot->manifests != NULL);
    snapshot->manifest_count = list.count;
    for (size_t i = 0; i < list.count; i++) {
        snapshot->manifests[i] = str_copy(sim->arena, list.files[i].path);
    }
}

static void take_snapshot(struct arena *arena, str uuid, const json_t *document)
{
    i64 id = document_i64_or(document, "snapshot-id", 0);
    if (find_snapshot(id, uuid) != NULL) {
        return;
    }
    if (sim->snapshot_count == SIM_SNAPSHOTS_MAX) {
        sim_violate("I29", "the tables have %d snapshots: something does not come to its end",
                    SIM_SNAPSHOTS_MAX);
        return;
    }
    struct sim_snapshot *snapshot = &sim->snapshots[sim->snapshot_count++];
    *snapshot = (struct sim_snapshot){
        .id = id, .at = sim->now, .parent = document_i64_or(document, "parent-snapshot-id", 0)};
    memcpy(snapshot->uuid, uuid.data, uuid.size < ID_UUID_SIZE ? uuid.size : ID_UUID_SIZE);
    take_manifests(arena, document, snapshot);
    const struct sim_snapshot *parent = find_snapshot(snapshot->parent, uuid);
    const json_t *summary = json_object_get(document, "summary");
    str operation = document_text(summary, "operation");
    if (str_equal(operation, STR("replace"))) {
        bool merged = json_object_get(summary, "entries-processed") != NULL;
        judge_replace(arena, snapshot, parent, merged);
        sim->result->merges += merged ? 1 : 0;
    } else {
        judge_append(arena, snapshot, parent);
    }
    sim->result->commits++;
}

/* ---- versions ---- */

static void take_version(struct sim_table *table, str location, const struct metadata *told)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)64 * MIB);
    struct metadata *metadata = told == NULL ? NULL : metadata_share(told);
    table->pointer = str_copy(sim->arena, location);
    if (told == NULL &&
        metadata_file_read(&sim->raw_locations, location, &metadata, NULL, NULL) != OK) {
        sim_violate("pointer", "the metadata file %.*s cannot be read", STR_ARG(location));
        return;
    }
    assert(sim->version_count < SIM_VERSIONS_MAX);
    sim->versions[sim->version_count++] = (struct sim_version){.table = (i32)(table - sim->tables),
                                                               .at = sim->now,
                                                               .location = table->pointer,
                                                               .metadata = metadata};
    str property = metadata_property(metadata, METADATA_ROLL_PROPERTY);
    sim_trace("  == %s is at version %.12s, roll = %.*s", table->name,
              location.data + str_find_last_byte(location, '/') + 1,
              STR_ARG(property.data == NULL ? STR("(absent)") : property));
    sim_check_landed(property);
    const json_t *snapshots = json_object_get(metadata_json(metadata), "snapshots");
    for (size_t i = 0; i < json_array_size(snapshots); i++) {
        take_snapshot(arena, metadata_uuid(metadata), json_array_get(snapshots, i));
    }
}

struct pointers {
    struct arena *arena;
    struct db_rows rows;
};

static err pointers_body(struct db_tx *tx, void *context, struct error *error)
{
    struct pointers *pointers = context;
    return db_query(tx, pointers->arena, "SELECT uuid, metadata_location, name FROM catalog_table",
                    NULL, 0, &pointers->rows, error);
}

/* `after`: what a commit has just answered, or NULL. */
void sim_table_observe(const struct table *after)
{
    if (sim->pointers_old) {
        return;
    }
    struct arena_mark mark = arena_mark(sim->scratch);
    struct pointers pointers = {.arena = sim->scratch};
    err read = db_read(&sim->raw_db, pointers_body, &pointers, NULL);
    assert(read == OK);
    for (size_t i = 0; i < pointers.rows.row_count; i++) {
        str uuid = db_text(&pointers.rows, i, 0);
        str location = db_text(&pointers.rows, i, 1);
        for (i32 j = 0; j < sim->table_count; j++) {
            struct sim_table *table = &sim->tables[j];
            if (str_equal(str_from(table->uuid), uuid) && !str_equal(table->pointer, location)) {
                bool told = after != NULL && str_equal(after->metadata_location, location);
                take_version(table, location, told ? after->metadata : NULL);
            }
        }
    }
    arena_reset_to(sim->scratch, mark);
}

/* ---- after a restore ---- */

static void forget_since(const struct sim_table *table, i64 at)
{
    for (size_t i = 0; i < sim->snapshot_count; i++) {
        struct sim_snapshot *snapshot = &sim->snapshots[i];
        if (snapshot->at <= at || strcmp(snapshot->uuid, table->uuid) != 0) {
            continue;
        }
        for (size_t j = 0; j < snapshot->row_count; j++) {
            u16 row = snapshot->rows[j];
            sim->batches[row / SIM_ROWS_MAX].landed[row % SIM_ROWS_MAX]--;
        }
        sim_trace("  == snapshot %lld is not in the table any more", (long long)snapshot->id);
        snapshot->uuid[0] = '\0';
    }
}

/* A commit whose process died before the hint was written was never told to anybody: it may go
 * with the ledger. Anything else is missed at the end. */
static void go_back(struct sim_table *table, str location)
{
    for (size_t i = sim->version_count; i > 0; i--) {
        const struct sim_version *version = &sim->versions[i - 1];
        if (str_equal(version->location, location)) {
            table->pointer = version->location;
            forget_since(table, version->at);
            return;
        }
    }
}

static void follow(struct sim_table *table, const struct db_rows *rows)
{
    bool found = false;
    for (size_t i = 0; i < rows->row_count; i++) {
        if (!str_equal(db_text(rows, i, 0), str_from(table->uuid))) {
            continue;
        }
        str name = db_text(rows, i, 2);
        found = true;
        assert(name.size < sizeof(table->name));
        memcpy(table->name, name.data, name.size);
        table->name[name.size] = '\0';
        if (!str_equal(table->pointer, db_text(rows, i, 1))) {
            go_back(table, db_text(rows, i, 1));
        }
    }
    /* What its owner dropped is there again; what he made may be lost. He has to look at it. */
    table->touched = table->touched || table->gone == found;
    table->gone = !found;
}

void sim_table_restored(void)
{
    struct arena_mark mark = arena_mark(sim->scratch);
    struct pointers pointers = {.arena = sim->scratch};
    err read = db_read(&sim->raw_db, pointers_body, &pointers, NULL);
    assert(read == OK);
    for (i32 i = 0; i < sim->table_count && sim->embedded; i++) {
        follow(&sim->tables[i], &pointers.rows);
    }
    arena_reset_to(sim->scratch, mark);
    sim->pointers_old = false;
}

size_t sim_table_rows(struct arena *arena, const struct metadata *metadata, u16 **out_rows)
{
    i64 head = 0;
    struct file_rows *rows = arena_alloc(arena, sizeof(*rows));
    assert(rows != NULL);
    if (!metadata_main(metadata, &head)) {
        return 0;
    }
    const struct sim_snapshot *snapshot = find_snapshot(head, metadata_uuid(metadata));
    assert(snapshot != NULL);
    rows_of(arena, snapshot, rows);
    *out_rows = rows->rows;
    return rows->count;
}

/* What the table's pointer names; NULL: the table is gone, or the file is. */
static const struct metadata *present_version(struct arena *arena, const struct sim_table *table)
{
    const struct metadata *found = NULL;
    for (size_t i = 0; i < sim->version_count && table->pointer.data != NULL; i++) {
        if (str_equal(sim->versions[i].location, table->pointer)) {
            found = sim->versions[i].metadata;
        }
    }
    return found != NULL && sim_is_there(arena, table->pointer) ? found : NULL;
}

void sim_versions_close(void)
{
    for (size_t i = 0; i < sim->version_count; i++) {
        metadata_close(sim->versions[i].metadata);
    }
}

/* ---- at the end ---- */

/* Every row that ever landed is still in main, unless its owner went back. */
static void check_kept(const struct sim_table *table, i32 index, const struct file_rows *rows)
{
    for (i32 i = 0; i < sim->batch_count && !table->rewound && !table->touched; i++) {
        const struct sim_batch *batch = &sim->batches[i];
        for (i32 row = 0; row < SIM_ROWS_MAX; row++) {
            u16 wanted = (u16)(i * SIM_ROWS_MAX + row);
            bool landed = batch->landed[row] > 0 && sim->sinks[batch->sink].table == index;
            if (landed &&
                bsearch(&wanted, rows->rows, rows->count, sizeof(wanted), compare_rows) == NULL) {
                sim_violate("lost", "row %d of batch %s was in %s and is not any more", row,
                            batch->id, table->name);
            }
        }
    }
}

/* Main holds what its own line of snapshots brought, each row once, and every file is there. */
void sim_table_check_final(void)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)64 * MIB);
    struct file_rows *rows = arena_alloc(arena, sizeof(*rows));
    assert(rows != NULL);
    for (i32 i = 0; i < sim->table_count; i++) {
        const struct sim_table *table = &sim->tables[i];
        const struct metadata *metadata = present_version(arena, table);
        i64 head = 0;
        if (metadata == NULL || !metadata_main(metadata, &head)) {
            continue;
        }
        const struct sim_snapshot *snapshot = find_snapshot(head, metadata_uuid(metadata));
        assert(snapshot != NULL);
        rows_of(arena, snapshot, rows);
        check_kept(table, i, rows);
        for (size_t j = 1; j < rows->count; j++) {
            if (rows->rows[j] == rows->rows[j - 1]) {
                sim_violate("twice", "main of %s holds row %d of batch %s twice", table->name,
                            rows->rows[j] % SIM_ROWS_MAX,
                            sim->batches[rows->rows[j] / SIM_ROWS_MAX].id);
            }
        }
    }
}
