#include "table/catalog_keep.h"

#include "base/buf.h"
#include "base/log.h"
#include "format/avro.h"
#include "table/document.h"
#include "table/manifest.h"
#include "table/metadata_file.h"

#include <errno.h>
#include <unistd.h>

enum {
    KEEP_SCRATCH_MAX = 256 * MIB,
    KEEP_NAMES_MAX = 4 * MIB,
    KEEP_LIST_MAX = 1000,
    FIELD_STATUS = 0,
    FIELD_DATA_FILE = 2,
    FIELD_FILE_PATH = 100,
    STATUS_ADDED = 1,
};

#define KEEP_NAMES ".names"

/* One table while its links are made or looked at. */
struct keep {
    const struct location_set *locations;
    struct arena *arena;
    str location;  /* file:///… without a slash at the end */
    str directory; /* <location>/metadata/kept */
};

/* False for a table that does not lie in the local file system. */
static bool keep_open(struct keep *keep, const struct location_set *locations, struct arena *arena,
                      const struct metadata *metadata)
{
    *keep = (struct keep){.locations = locations, .arena = arena};
    keep->location = metadata_file_normal(arena, metadata_location(metadata));
    keep->directory = str_format(arena, "%.*s/metadata/kept", STR_ARG(keep->location));
    return str_starts(keep->location, STR("file:///")) && keep->directory.data != NULL;
}

/* The path of a file:/// URI, NUL-terminated; NULL without memory or with a NUL inside. */
static const char *path_of(struct arena *arena, str uri)
{
    str path = str_copy(arena, str_slice(uri, sizeof("file://") - 1, uri.size));
    bool usable = path.data != NULL && str_find_byte(path, '\0') < 0;
    return usable ? path.data : NULL;
}

/* ---- making links ---- */

/* Names, relative to the location, of the files that one snapshot adds; one a line. */
struct added {
    const struct keep *keep;
    buf names;
    size_t count;
};

static void add_name(struct added *added, str uri)
{
    const struct keep *keep = added->keep;
    str normal = metadata_file_normal(keep->arena, uri);
    bool below = str_starts(normal, keep->location) && normal.size > keep->location.size + 1 &&
                 normal.data[keep->location.size] == '/';
    struct store store = {0};
    str key = {0};
    if (!below || str_find_byte(normal, '\n') >= 0 ||
        location_find(keep->locations, keep->arena, normal, &store, &key, NULL) != OK) {
        return;
    }
    buf_append(&added->names, str_slice(normal, keep->location.size + 1, normal.size));
    buf_append_byte(&added->names, '\n');
    added->count++;
}

MUST_USE static err add_entries(struct added *added, str manifest, struct error *error)
{
    const struct keep *keep = added->keep;
    str bytes = {0};
    struct avro_file *file = NULL;
    TRY(location_get(keep->locations, keep->arena, manifest, &bytes, error));
    TRY(avro_read(keep->arena, bytes, &file, error));
    for (size_t i = 0; i < avro_file_count(file); i++) {
        const struct avro_value *entry = avro_file_record(file, i);
        const struct avro_value *status = avro_field_of(entry, FIELD_STATUS, STR("status"));
        const struct avro_value *data = avro_field_of(entry, FIELD_DATA_FILE, STR("data_file"));
        const struct avro_value *path = data != NULL
                                            ? avro_field_of(data, FIELD_FILE_PATH, STR("file_path"))
                                            : NULL;
        if (status != NULL && status->number == STATUS_ADDED && path != NULL) {
            add_name(added, path->bytes);
        }
    }
    return OK;
}

MUST_USE static err add_snapshot(struct added *added, const json_t *snapshot, struct error *error)
{
    const struct keep *keep = added->keep;
    i64 id = document_i64_or(snapshot, "snapshot-id", -1);
    str list_uri = document_text(snapshot, "manifest-list");
    str bytes = {0};
    struct manifest_list list = {0};
    TRY(location_get(keep->locations, keep->arena, list_uri, &bytes, error));
    TRY(manifest_list_read(keep->arena, bytes, &list, error));
    add_name(added, list_uri);
    for (size_t i = 0; i < list.count; i++) {
        if (list.files[i].added_snapshot_id == id) {
            add_name(added, list.files[i].path);
            TRY(add_entries(added, list.files[i].path, error));
        }
    }
    return OK;
}

/* Links number i of `stem` to the i-th name. */
MUST_USE static err link_names(const struct keep *keep, str stem, str names, struct error *error)
{
    str name;
    for (int i = 0; str_next(&names, '\n', &name) && name.size > 0; i++) {
        const char *from = path_of(keep->arena, str_format(keep->arena, "%.*s/%.*s",
                                                           STR_ARG(keep->location), STR_ARG(name)));
        const char *to = path_of(keep->arena, str_format(keep->arena, "%.*s.%d", STR_ARG(stem), i));
        if (from == NULL || to == NULL) {
            return error_memory(error);
        }
        if (link(from, to) != 0 && errno != EEXIST) {
            return error_set(error, IO, ERROR_STORE_DOWN, "link: %.200s: errno %d", to, errno);
        }
    }
    return OK;
}

MUST_USE static err keep_snapshot(const struct keep *keep, const struct seam *seam,
                                  const json_t *snapshot, struct error *error)
{
    struct added added = {.keep = keep, .names = buf_create(keep->arena, KIB, KEEP_NAMES_MAX)};
    TRY(add_snapshot(&added, snapshot, error));
    str stem = str_format(keep->arena, "%.*s/%lld-%lld", STR_ARG(keep->directory),
                          (long long)seam_now(seam),
                          (long long)document_i64_or(snapshot, "snapshot-id", -1));
    str names_uri = str_format(keep->arena, "%.*s" KEEP_NAMES, STR_ARG(stem));
    if (!buf_ok(&added.names) || names_uri.data == NULL) {
        return error_memory(error);
    }
    str names = buf_str(&added.names);
    TRY(location_put(keep->locations, keep->arena, names_uri, &names, 1, error));
    return link_names(keep, stem, names, error);
}

/* Is the snapshot of the version before? *at: where the search in it goes on. The two versions
 * share what both have, in one order; a look through all is for those that do not. */
static bool was_there(const struct metadata *before, const json_t *snapshot, i64 id, size_t *at)
{
    const json_t *snapshots = before == NULL ? NULL
                                             : json_object_get(metadata_json(before), "snapshots");
    for (size_t i = *at; i < json_array_size(snapshots); i++) {
        if (json_array_get(snapshots, i) == snapshot) {
            *at = i + 1;
            return true;
        }
    }
    return before != NULL && metadata_snapshot(before, id) != NULL;
}

void catalog_keep_add(const struct location_set *locations, const struct seam *seam,
                      const struct metadata *before, const struct metadata *after)
{
    AUTO_ARENA struct arena *arena = arena_create(KEEP_SCRATCH_MAX);
    struct keep keep = {0};
    if (!keep_open(&keep, locations, arena, after)) {
        return;
    }
    size_t at = 0;
    const json_t *snapshots = json_object_get(metadata_json(after), "snapshots");
    for (size_t i = 0; i < json_array_size(snapshots); i++) {
        const json_t *snapshot = json_array_get(snapshots, i);
        i64 id = document_i64_or(snapshot, "snapshot-id", -1);
        if (was_there(before, snapshot, id, &at)) {
            continue;
        }
        struct error error = {0};
        err result = keep_snapshot(&keep, seam, snapshot, &error);
        if (result != OK) {
            log_error("committed_files_not_kept", result, &error, keep.location);
        }
    }
}

/* ---- looking at them ---- */

/* <directory>/<microseconds>-<snapshot id>.names */
struct kept {
    str stem; /* key without the ending */
    i64 at;
    i64 snapshot_id;
};

static bool kept_parse(str key, struct kept *out_kept)
{
    if (!str_ends(key, STR(KEEP_NAMES))) {
        return false;
    }
    str stem = str_slice(key, 0, key.size - (sizeof(KEEP_NAMES) - 1));
    str name = str_slice(stem, (size_t)(str_find_last_byte(stem, '/') + 1), stem.size);
    i64 dash = str_find_byte(name, '-');
    struct kept kept = {.stem = stem};
    if (dash < 1 || !str_to_i64(str_slice(name, 0, (size_t)dash), &kept.at) ||
        !str_to_i64(str_slice(name, (size_t)dash + 1, name.size), &kept.snapshot_id)) {
        return false;
    }
    *out_kept = kept;
    return true;
}

/* What to do with the names of one snapshot. */
enum keep_action { KEEP_RESTORE, KEEP_END };

/* Puts the file back when it is gone. */
static void restore_one(const struct keep *keep, str kept_uri, str name)
{
    str original = str_format(keep->arena, "%.*s/%.*s", STR_ARG(keep->location), STR_ARG(name));
    const char *from = path_of(keep->arena, kept_uri);
    const char *to = path_of(keep->arena, original);
    if (from == NULL || to == NULL || access(to, F_OK) == 0 || errno != ENOENT) {
        return;
    }
    if (link(from, to) == 0) {
        log_event(LOG_WARN, "committed_file_restored", LOG_S("file", original));
    }
}

MUST_USE static err keep_each(const struct keep *keep, const struct store *store, str stem,
                              enum keep_action action, struct error *error)
{
    struct store_object object = {0};
    str names_key = str_format(keep->arena, "%.*s" KEEP_NAMES, STR_ARG(stem));
    str base = str_slice(stem, (size_t)(str_find_last_byte(stem, '/') + 1), stem.size);
    TRY(store_get(store, keep->arena, names_key, &object, error));
    str names = object.body;
    str name;
    for (int i = 0; str_next(&names, '\n', &name) && name.size > 0; i++) {
        if (action == KEEP_RESTORE) {
            restore_one(
                keep,
                str_format(keep->arena, "%.*s/%.*s.%d", STR_ARG(keep->directory), STR_ARG(base), i),
                name);
        } else {
            str key = str_format(keep->arena, "%.*s.%d", STR_ARG(stem), i);
            TRY(store_remove(store, key, error));
        }
    }
    return action == KEEP_END ? store_remove(store, names_key, error) : OK;
}

/* Puts back what belongs to a snapshot of the table, then ends what began at or before
 * `end_before`. */
MUST_USE static err keep_one(const struct keep *keep, const struct store *store, str key,
                             const struct metadata *metadata, instant end_before,
                             struct error *error)
{
    struct kept kept = {0};
    if (!kept_parse(key, &kept)) {
        return OK;
    }
    if (metadata_snapshot(metadata, kept.snapshot_id) != NULL) {
        TRY(keep_each(keep, store, kept.stem, KEEP_RESTORE, error));
    }
    return kept.at <= end_before ? keep_each(keep, store, kept.stem, KEEP_END, error) : OK;
}

MUST_USE static err keep_walk(const struct keep *keep, const struct metadata *metadata,
                              instant end_before, struct error *error)
{
    struct store store = {0};
    str key = {0};
    struct store_list list = {.more = true};
    str after = {0};
    str probe = str_format(keep->arena, "%.*s/x", STR_ARG(keep->directory));
    TRY(location_find(keep->locations, keep->arena, probe, &store, &key, error));
    str prefix = str_slice(key, 0, key.size - 1);
    while (list.more) {
        TRY(store_list(&store, keep->arena, prefix, after, KEEP_LIST_MAX, &list, error));
        for (size_t i = 0; i < list.count; i++) {
            after = list.objects[i].key;
            TRY(keep_one(keep, &store, after, metadata, end_before, error));
        }
    }
    return OK;
}

static void keep_look(const struct location_set *locations, const struct metadata *metadata,
                      instant end_before)
{
    AUTO_ARENA struct arena *arena = arena_create(KEEP_SCRATCH_MAX);
    struct keep keep = {0};
    struct error error = {0};
    if (!keep_open(&keep, locations, arena, metadata)) {
        return;
    }
    const char *path = path_of(arena, keep.directory);
    if (path == NULL || access(path, F_OK) != 0) {
        return;
    }
    err result = keep_walk(&keep, metadata, end_before, &error);
    if (result != OK) {
        log_error("kept_files_unread", result, &error, keep.location);
    }
}

void catalog_keep_check(const struct location_set *locations, const struct seam *seam,
                        const struct metadata *metadata)
{
    keep_look(locations, metadata, seam_now(seam) - CATALOG_KEEP_US);
}

void catalog_keep_end(const struct location_set *locations, const struct metadata *metadata)
{
    keep_look(locations, metadata, INT64_MAX);
}
