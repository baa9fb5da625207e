#include "table/catalog_purge.h"

#include "base/log.h"
#include "base/map.h"
#include "format/avro.h"
#include "table/catalog_keep.h"
#include "table/document.h"
#include "table/manifest.h"
#include "table/metadata_file.h"

enum {
    PURGE_BYTES_MAX = 256 * MIB, /* names seen; and, apart, one manifest with its records */
    FIELD_DATA_FILE = 2,
    FIELD_FILE_PATH = 100,
};

struct purge {
    const struct location_set *locations;
    struct arena *arena;   /* names */
    struct arena *scratch; /* one file at a time */
    struct map *seen;      /* manifests and lists that were dealt with */
    str roots[3];          /* with a slash at the end */
    size_t root_count;
};

static void purge_note(const char *event, err result, const struct error *error, str uri)
{
    log_error(event, result, error, uri);
}

static void purge_root(struct purge *purge, str uri)
{
    if (uri.size > 0) {
        str normal = metadata_file_normal(purge->arena, uri);
        str root = str_format(purge->arena, "%.*s/", STR_ARG(normal));
        if (root.data != NULL) {
            purge->roots[purge->root_count++] = root;
        }
    }
}

static bool purge_owns(const struct purge *purge, str uri)
{
    str normal = metadata_file_normal(purge->scratch, uri);
    for (size_t i = 0; i < purge->root_count; i++) {
        if (str_starts(normal, purge->roots[i])) {
            return true;
        }
    }
    return false;
}

static void purge_file(struct purge *purge, str uri)
{
    struct error error = {0};
    if (uri.size == 0 || !purge_owns(purge, uri)) {
        return;
    }
    err result = location_remove(purge->locations, purge->scratch, uri, &error);
    if (result != OK) {
        purge_note("purge_file_left", result, &error, uri);
    }
}

/* True the first time. Without memory for the name the file is left alone. */
static bool purge_first_sight(struct purge *purge, str uri)
{
    bool fresh = false;
    str name = str_copy(purge->arena, uri);
    return name.data != NULL && map_put(purge->seen, name, &fresh) != NULL && fresh;
}

MUST_USE static err purge_entries(struct purge *purge, str uri, struct error *error)
{
    str bytes = {0};
    TRY(location_get(purge->locations, purge->scratch, uri, &bytes, error));
    struct avro_file *file = NULL;
    TRY(avro_read(purge->scratch, bytes, &file, error));
    for (size_t i = 0; i < avro_file_count(file); i++) {
        const struct avro_value *entry = avro_file_record(file, i);
        const struct avro_value *data = avro_field_of(entry, FIELD_DATA_FILE, STR("data_file"));
        const struct avro_value *path = data != NULL
                                            ? avro_field_of(data, FIELD_FILE_PATH, STR("file_path"))
                                            : NULL;
        if (path != NULL && path->kind == AVRO_VALUE_BYTES) {
            purge_file(purge, path->bytes);
        }
    }
    return OK;
}

static void purge_manifest(struct purge *purge, str uri)
{
    if (!purge_first_sight(purge, uri)) {
        return;
    }
    struct arena_mark mark = arena_mark(purge->scratch);
    struct error error = {0};
    err result = purge_entries(purge, uri, &error);
    if (result != OK) {
        purge_note("purge_manifest_unread", result, &error, uri);
    }
    purge_file(purge, uri);
    arena_reset_to(purge->scratch, mark);
}

static void purge_list(struct purge *purge, str uri)
{
    if (!purge_first_sight(purge, uri)) {
        return;
    }
    struct error error = {0};
    str bytes = {0};
    struct manifest_list list = {0};
    err result = location_get(purge->locations, purge->scratch, uri, &bytes, &error);
    if (result == OK) {
        result = manifest_list_read(purge->scratch, bytes, &list, &error);
    }
    if (result != OK) {
        purge_note("purge_list_unread", result, &error, uri);
    }
    for (size_t i = 0; i < list.count; i++) {
        purge_manifest(purge, list.files[i].path);
    }
    purge_file(purge, uri);
    arena_reset(purge->scratch);
}

/* The files that the objects of an array name in one member. */
static void purge_named(struct purge *purge, const json_t *array, const char *member)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        purge_file(purge, document_text(json_array_get(array, i), member));
    }
}

static void purge_all(struct purge *purge, const struct metadata *metadata, str metadata_uri)
{
    const json_t *document = metadata_json(metadata);
    const json_t *snapshots = json_object_get(document, "snapshots");
    for (size_t i = 0; i < json_array_size(snapshots); i++) {
        str list = document_text(json_array_get(snapshots, i), "manifest-list");
        if (list.size > 0) {
            purge_list(purge, list);
        }
    }
    purge_named(purge, json_object_get(document, "statistics"), "statistics-path");
    purge_named(purge, json_object_get(document, "partition-statistics"), "statistics-path");
    purge_named(purge, json_object_get(document, "metadata-log"), "metadata-file");
    purge_file(purge, metadata_uri);
    str location = metadata_file_normal(purge->arena, metadata_location(metadata));
    purge_file(purge,
               str_format(purge->scratch, "%.*s/metadata/version-hint.text", STR_ARG(location)));
}

void catalog_purge(const struct location_set *locations, const struct metadata *metadata,
                   str metadata_uri)
{
    if (str_equal_ignore_case(metadata_property(metadata, "gc.enabled"), STR("false"))) {
        return;
    }
    catalog_keep_end(locations, metadata);
    AUTO_ARENA struct arena *arena = arena_create(PURGE_BYTES_MAX);
    AUTO_ARENA struct arena *scratch = arena_create(2 * PURGE_BYTES_MAX);
    struct purge purge = {.locations = locations,
                          .arena = arena,
                          .scratch = scratch,
                          .seen = map_create(arena, 1024)};
    if (purge.seen == NULL) {
        return;
    }
    purge_root(&purge, metadata_location(metadata));
    purge_root(&purge, metadata_property(metadata, "write.data.path"));
    purge_root(&purge, metadata_property(metadata, "write.metadata.path"));
    purge_all(&purge, metadata, metadata_uri);
}
