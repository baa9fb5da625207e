#include "format/avro.h"
#include "sink/verify_steps.h"
#include "table/manifest.h"

#include <jansson.h>

/* The files of a table, by its manifests: each is there with its size, none is listed twice among
 * those that are live, and none was added by two snapshots. A manifest is read once, however many
 * snapshots list it. */

enum { MANIFEST_ENTRY_EXISTING = 0, MANIFEST_ENTRY_ADDED = 1, MANIFEST_ENTRY_DELETED = 2 };

/* Which snapshots are being read. */
enum files_line {
    FILES_OF_ANCESTORS, /* main and those before it */
    FILES_OF_OTHERS,    /* branches, staged and rolled back ones */
    FILES_OF_MAIN,      /* main again: its files are looked at one by one */
};

struct files {
    struct verify *verify;
    const struct metadata *metadata;
    struct map *manifests; /* path -> 1 read, 2 read as one of main */
    struct map *added;     /* paths of data files that ancestors added */
    struct map *live;      /* path -> 1 */
    struct map *ancestors; /* snapshot ids of main and those before it */
    enum files_line line;  /* of the snapshot being read */
};

struct manifest_entry {
    i64 status;
    i64 snapshot_id; /* the manifest's where it has none */
    str path;
    i64 bytes;
    i64 rows;
};

/* ---- reading ---- */

static i64 number_of(const struct avro_value *record, i32 id, str name, i64 otherwise)
{
    const struct avro_value *value = avro_field_of(record, id, name);
    return value != NULL && value->kind == AVRO_VALUE_LONG ? value->number : otherwise;
}

static bool read_entry(const struct avro_value *record, i64 snapshot_id,
                       struct manifest_entry *out_entry)
{
    const struct avro_value *file = record->kind == AVRO_VALUE_RECORD
                                        ? avro_field_of(record, 2, STR("data_file"))
                                        : NULL;
    if (file == NULL || file->kind != AVRO_VALUE_RECORD) {
        return false;
    }
    const struct avro_value *path = avro_field_of(file, 100, STR("file_path"));
    if (path == NULL || path->kind != AVRO_VALUE_BYTES || path->bytes.size == 0) {
        return false;
    }
    *out_entry = (struct manifest_entry){
        .status = number_of(record, 0, STR("status"), -1),
        .snapshot_id = number_of(record, 1, STR("snapshot_id"), snapshot_id),
        .path = path->bytes,
        .bytes = number_of(file, 104, STR("file_size_in_bytes"), -1),
        .rows = number_of(file, 103, STR("record_count"), -1),
    };
    return out_entry->status >= MANIFEST_ENTRY_EXISTING &&
           out_entry->status <= MANIFEST_ENTRY_DELETED && out_entry->bytes >= 0 &&
           out_entry->rows >= 0;
}

/* *out_bytes has data NULL, and the finding is made, when the file is not there or not readable. */
MUST_USE static err read_file(struct files *files, str path, const char *what, str *out_bytes,
                              struct error *error)
{
    struct verify *verify = files->verify;
    struct error told = {0};
    err got = location_get(&verify->env->warehouse->locations, verify->scratch, path, out_bytes,
                           &told);
    if (got == OK) {
        return OK;
    }
    *out_bytes = (str){NULL, 0};
    if (got != NOT_FOUND && got != CORRUPT && got != DENIED) {
        return error_set(error, got, told.code, "reading %.*s: %s", STR_ARG(path), told.message);
    }
    verify_find(verify, "I25", path, VERIFY_CURE_FILES, "the %s is %s", what,
                got == NOT_FOUND ? "missing" : "not readable");
    return OK;
}

/* ---- data files ---- */

/* The last 8 bytes of a Parquet file: its footer's length, and PAR1. */
static bool footer_fits(str bytes)
{
    enum { TAIL = 8, MAGIC = 4 };
    if (bytes.size < TAIL + MAGIC || !str_starts(bytes, STR("PAR1")) ||
        !str_ends(bytes, STR("PAR1"))) {
        return false;
    }
    const u8 *tail = (const u8 *)bytes.data + bytes.size - TAIL;
    size_t length = (size_t)tail[0] | (size_t)tail[1] << 8 | (size_t)tail[2] << 16 |
                    (size_t)tail[3] << 24;
    return length > 0 && length <= bytes.size - TAIL - MAGIC;
}

MUST_USE static err check_content(struct files *files, const struct manifest_entry *entry,
                                  struct error *error)
{
    struct verify *verify = files->verify;
    str bytes = {0};
    struct arena_mark mark = arena_mark(verify->scratch);
    TRY(read_file(files, entry->path, "data file", &bytes, error));
    if (bytes.data != NULL && !footer_fits(bytes)) {
        verify_find(verify, "I25", entry->path, VERIFY_CURE_FILES,
                    "the data file is no Parquet file");
    }
    arena_reset_to(verify->scratch, mark);
    return OK;
}

MUST_USE static err check_data_file(struct files *files, const struct manifest_entry *entry,
                                    struct error *error)
{
    struct verify *verify = files->verify;
    struct store store = {0};
    struct store_object head = {0};
    struct error told = {0};
    str key = {0};
    struct arena_mark mark = arena_mark(verify->scratch);
    err got = location_find(&verify->env->warehouse->locations, verify->scratch, entry->path,
                            &store, &key, &told);
    got = got == OK ? store_head(&store, verify->scratch, key, &head, &told) : got;
    arena_reset_to(verify->scratch, mark);
    if (got != OK && got != NOT_FOUND && got != DENIED && got != CORRUPT) {
        return error_set(error, got, told.code, "%s", told.message);
    }
    if (got != OK) {
        verify_find(verify, "I25", entry->path, VERIFY_CURE_FILES, "the data file is %s",
                    got == NOT_FOUND ? "missing" : "not readable");
        return OK;
    }
    if (head.size != entry->bytes) {
        verify_find(verify, "I25", entry->path, VERIFY_CURE_FILES,
                    "the data file has %lld bytes, its manifest says %lld", (long long)head.size,
                    (long long)entry->bytes);
        return OK;
    }
    return verify->env->depth == VERIFY_ROWS ? check_content(files, entry, error) : OK;
}

MUST_USE static err put_path(struct files *files, struct map *map, str path, u64 value,
                             bool *out_fresh, struct error *error)
{
    str copy = str_copy(files->verify->arena, path);
    u64 *place = copy.data == NULL ? NULL : map_put(map, copy, out_fresh);
    if (place == NULL) {
        return error_memory(error);
    }
    *place = *out_fresh ? value : *place;
    return OK;
}

MUST_USE static err take_live(struct files *files, const struct manifest_entry *entry,
                              struct error *error)
{
    struct verify *verify = files->verify;
    bool fresh = map_get(files->live, entry->path) == NULL;
    if (!fresh) {
        verify_find(verify, "I13", entry->path, VERIFY_CURE_TWICE,
                    "the data file is listed twice: its %lld rows are read twice",
                    (long long)entry->rows);
        return OK;
    }
    TRY(put_path(files, files->live, entry->path, 1, &fresh, error));
    verify->report->data_files++;
    verify->report->rows += entry->rows;
    return check_data_file(files, entry, error);
}

/* ---- manifests ---- */

MUST_USE static err take_added(struct files *files, const struct manifest_entry *entry,
                               struct error *error)
{
    struct verify *verify = files->verify;
    const u64 *known = map_get(files->added, entry->path);
    if (known != NULL) {
        verify_find(verify, "I13", entry->path, VERIFY_CURE_TWICE,
                    "the data file was added twice in the table's history");
        return OK;
    }
    bool fresh = false;
    return put_path(files, files->added, entry->path, 1, &fresh, error);
}

MUST_USE static err take_entry(struct files *files, const struct manifest_file *manifest,
                               const struct manifest_entry *entry, bool first_time,
                               struct error *error)
{
    bool data = manifest->content == 0;
    if (data && first_time && files->line == FILES_OF_ANCESTORS &&
        entry->status == MANIFEST_ENTRY_ADDED) {
        TRY(take_added(files, entry, error));
    }
    if (files->line != FILES_OF_MAIN || entry->status == MANIFEST_ENTRY_DELETED) {
        return OK;
    }
    return data ? take_live(files, entry, error) : check_data_file(files, entry, error);
}

MUST_USE static err read_entries(struct files *files, const struct manifest_file *manifest,
                                 const struct avro_file *avro, bool first_time, struct error *error)
{
    i64 rows[3] = {0};
    i64 counts[3] = {0};
    for (size_t i = 0; i < avro_file_count(avro); i++) {
        struct manifest_entry entry = {0};
        if (!read_entry(avro_file_record(avro, i), manifest->added_snapshot_id, &entry)) {
            verify_find(files->verify, "I25", manifest->path, VERIFY_CURE_FILES,
                        "entry %zu of the manifest is damaged", i);
            return OK;
        }
        rows[entry.status] += entry.rows;
        counts[entry.status]++;
        TRY(take_entry(files, manifest, &entry, first_time, error));
    }
    bool counted =
        (manifest->added_files < 0 || manifest->added_files == counts[MANIFEST_ENTRY_ADDED]) &&
        (manifest->existing_files < 0 ||
         manifest->existing_files == counts[MANIFEST_ENTRY_EXISTING]) &&
        (manifest->deleted_files < 0 ||
         manifest->deleted_files == counts[MANIFEST_ENTRY_DELETED]) &&
        (manifest->added_rows < 0 || manifest->added_rows == rows[MANIFEST_ENTRY_ADDED]) &&
        (manifest->existing_rows < 0 || manifest->existing_rows == rows[MANIFEST_ENTRY_EXISTING]);
    if (!counted) {
        verify_find(files->verify, "I13", manifest->path, VERIFY_CURE_FILES,
                    "the manifest has other counts than the manifest list says");
    }
    return OK;
}

MUST_USE static err read_manifest(struct files *files, const struct manifest_file *manifest,
                                  struct error *error)
{
    struct verify *verify = files->verify;
    u64 wanted = files->line == FILES_OF_MAIN ? 2 : 1;
    bool fresh = map_get(files->manifests, manifest->path) == NULL;
    if (fresh) {
        TRY(put_path(files, files->manifests, manifest->path, 0, &(bool){false}, error));
    }
    u64 *seen = map_get(files->manifests, manifest->path);
    if (*seen >= wanted) {
        return OK;
    }
    *seen = wanted;
    struct avro_file *avro = NULL;
    struct error told = {0};
    str bytes = {0};
    TRY(read_file(files, manifest->path, "manifest", &bytes, error));
    verify->report->manifests += fresh ? 1 : 0;
    if (bytes.data == NULL) {
        return OK;
    }
    err read = avro_read(verify->scratch, bytes, &avro, &told);
    if (read == LIMIT) {
        return error_set(error, read, told.code, "%s", told.message);
    }
    if (read != OK) {
        verify_find(verify, "I25", manifest->path, VERIFY_CURE_FILES, "the manifest is damaged");
        return OK;
    }
    if (manifest->length >= 0 && manifest->length != (i64)bytes.size) {
        verify_find(verify, "I25", manifest->path, VERIFY_CURE_FILES,
                    "the manifest has %zu bytes, the manifest list says %lld", bytes.size,
                    (long long)manifest->length);
    }
    return read_entries(files, manifest, avro, fresh, error);
}

/* ---- snapshots ---- */

MUST_USE static err read_list(struct files *files, str path, struct error *error)
{
    struct verify *verify = files->verify;
    struct manifest_list list = {0};
    struct error told = {0};
    str bytes = {0};
    TRY(read_file(files, path, "manifest list", &bytes, error));
    if (bytes.data == NULL) {
        return OK;
    }
    err read = manifest_list_read(verify->scratch, bytes, &list, &told);
    if (read == LIMIT) {
        return error_set(error, read, told.code, "%s", told.message);
    }
    if (read != OK) {
        verify_find(verify, "I25", path, VERIFY_CURE_FILES, "the manifest list is damaged");
        return OK;
    }
    struct map *listed = map_create(verify->scratch, list.count);
    struct arena_mark mark = arena_mark(verify->scratch);
    for (size_t i = 0; i < list.count; i++) {
        bool fresh = false;
        if (listed == NULL || map_put(listed, list.files[i].path, &fresh) == NULL) {
            return error_memory(error);
        }
        if (!fresh) {
            verify_find(verify, "I13", list.files[i].path, VERIFY_CURE_TWICE,
                        "a manifest list names the manifest twice: its rows are read twice");
        }
    }
    for (size_t i = 0; i < list.count; i++) {
        TRY(read_manifest(files, &list.files[i], error));
        arena_reset_to(verify->scratch, mark);
    }
    return OK;
}

MUST_USE static err read_snapshot(struct files *files, const json_t *snapshot, struct error *error)
{
    const json_t *path = json_object_get(snapshot, "manifest-list");
    if (!json_is_string(path)) {
        return OK; /* version 1 may list manifests inline */
    }
    str copy = str_copy(files->verify->arena,
                        (str){json_string_value(path), json_string_length(path)});
    if (copy.data == NULL) {
        return error_memory(error);
    }
    err read = read_list(files, copy, error);
    arena_reset(files->verify->scratch);
    return read;
}

/* Main and its ancestors that are still in the history, as keys of their ids' bytes. A staged
 * snapshot that was picked onto main adds the same files again, and is none of them. */
MUST_USE static err find_ancestors(struct files *files, i64 head, struct error *error)
{
    i64 id = head;
    const json_t *snapshot = metadata_snapshot(files->metadata, id);
    while (snapshot != NULL) {
        bool fresh = false;
        str key = str_copy(files->verify->arena, (str){(const char *)&id, sizeof(id)});
        if (key.data == NULL || map_put(files->ancestors, key, &fresh) == NULL) {
            return error_memory(error);
        }
        const json_t *parent = json_object_get(snapshot, "parent-snapshot-id");
        id = json_integer_value(parent);
        snapshot = fresh && json_is_integer(parent) ? metadata_snapshot(files->metadata, id) : NULL;
    }
    return OK;
}

/* The ancestors first: what they list is then known when the others are read. */
MUST_USE static err read_snapshots(struct files *files, enum files_line line, struct error *error)
{
    const json_t *snapshots = json_object_get(metadata_json(files->metadata), "snapshots");
    files->line = line;
    for (size_t i = 0; i < json_array_size(snapshots); i++) {
        const json_t *snapshot = json_array_get(snapshots, i);
        i64 id = json_integer_value(json_object_get(snapshot, "snapshot-id"));
        bool ancestor = map_get(files->ancestors, (str){(const char *)&id, sizeof(id)}) != NULL;
        if (ancestor == (line == FILES_OF_ANCESTORS)) {
            TRY(read_snapshot(files, snapshot, error));
        }
    }
    return OK;
}

err verify_files(struct verify *verify, const struct metadata *metadata, struct error *error)
{
    struct files files = {.verify = verify,
                          .metadata = metadata,
                          .manifests = map_create(verify->arena, 256),
                          .added = map_create(verify->arena, 256),
                          .live = map_create(verify->arena, 256),
                          .ancestors = map_create(verify->arena, 256)};
    i64 head = 0;
    if (files.manifests == NULL || files.added == NULL || files.live == NULL ||
        files.ancestors == NULL) {
        return error_memory(error);
    }
    arena_reset(verify->scratch);
    bool has_main = metadata_main(metadata, &head);
    if (has_main) {
        TRY(find_ancestors(&files, head, error));
    }
    TRY(read_snapshots(&files, FILES_OF_ANCESTORS, error));
    TRY(read_snapshots(&files, FILES_OF_OTHERS, error));
    files.line = FILES_OF_MAIN;
    const json_t *snapshot = has_main ? metadata_snapshot(metadata, head) : NULL;
    return snapshot == NULL ? OK : read_snapshot(&files, snapshot, error);
}
