#include "table/catalog_restore.h"

#include "base/log.h"
#include "base/planted.h"
#include "table/catalog_state.h"
#include "table/document.h"
#include "table/metadata_file.h"

#define HINT_FOLDER "/metadata/"
#define HINT_NAME   "version-hint.text"

enum { RESTORE_SCRATCH_BYTES_MAX = 16 * 1024 * 1024, RESTORE_PAGE = 1000, HINT_BYTES_MAX = 512 };

/* ---- names ---- */

/* The number that a metadata file's name begins with, or -1. */
static i64 version_of(str name)
{
    str file = str_slice(name, (size_t)(str_find_last_byte(name, '/') + 1), name.size);
    i64 dash = str_find_byte(file, '-');
    i64 version = -1;
    if (dash <= 0 || !str_to_i64(str_slice(file, 0, (size_t)dash), &version)) {
        return -1;
    }
    return version;
}

static str directory_of(str uri)
{
    i64 slash = str_find_last_byte(uri, '/');
    return slash < 0 ? uri : str_slice(uri, 0, (size_t)slash);
}

/* The hint's content as a name, without what could lead elsewhere; empty: unusable. */
static str clean_hint(str text)
{
    str name = str_trim(text);
    while (name.size > 0 &&
           (name.data[name.size - 1] == '\n' || name.data[name.size - 1] == '\r')) {
        name.size--;
    }
    bool bad = name.size == 0 || name.size > HINT_BYTES_MAX || str_find_byte(name, '/') >= 0 ||
               str_find_byte(name, '\0') >= 0;
    return bad ? (str){NULL, 0} : name;
}

/* ---- one table or view ---- */

struct pointing {
    struct catalog_local *local;
    struct arena *arena;
    enum catalog_item item;
    struct table_name name;
    struct catalog_pointer pointer;
    str hint; /* data NULL: there is none */
    str location;
};

/* A new reference to what the file holds. */
static err read_document(const struct pointing *pointing, str uri, json_t **out_document,
                         struct error *error)
{
    const struct location_set *locations = pointing->local->locations;
    if (pointing->item == CATALOG_VIEW) {
        return metadata_file_read_view(locations, uri, out_document, error);
    }
    AUTO_METADATA struct metadata *metadata = NULL;
    TRY(metadata_file_read(locations, uri, &metadata, NULL, error));
    *out_document = json_incref(document_mutable(metadata_json(metadata)));
    return OK;
}

static str uuid_of(const struct pointing *pointing, const json_t *document)
{
    return document_text(document, pointing->item == CATALOG_VIEW ? "view-uuid" : "table-uuid");
}

/* Where the table lies: by its metadata; when that file was trimmed since, by the pointer's place.
 */
static err find_location(struct pointing *pointing, struct error *error)
{
    AUTO_METADATA struct metadata *cached = metadata_cache_find(
        &pointing->local->shared->cache, pointing->pointer.metadata_location);
    if (cached != NULL) {
        str known = metadata_file_normal(pointing->arena, metadata_location(cached));
        pointing->location = str_copy(pointing->arena, known);
        return pointing->location.data != NULL ? OK : error_memory(error);
    }
    json_auto_t *document = NULL;
    struct error told = {0};
    err read = read_document(pointing, pointing->pointer.metadata_location, &document, &told);
    str location = {0};
    if (read == OK) {
        location = metadata_file_normal(pointing->arena, document_text(document, "location"));
    } else if (read == CORRUPT) {
        location = directory_of(directory_of(pointing->pointer.metadata_location));
    } else {
        return error_set(error, read, told.code, "%s", told.message);
    }
    pointing->location = str_copy(pointing->arena, location);
    return pointing->location.data != NULL ? OK : error_memory(error);
}

static err read_hint(struct pointing *pointing, struct error *error)
{
    struct error told = {0};
    str text = {0};
    str uri = str_format(pointing->arena, "%.*s" HINT_FOLDER HINT_NAME,
                         STR_ARG(pointing->location));
    if (uri.data == NULL) {
        return error_memory(error);
    }
    err got = location_get(pointing->local->locations, pointing->arena, uri, &text, &told);
    if (got == OK) {
        pointing->hint = clean_hint(text);
        return OK;
    }
    return got == NOT_FOUND ? OK : error_set(error, got, told.code, "%s", told.message);
}

/* The hint names a file beside the present one, or in the table's own metadata folder. */
static err read_hinted(struct pointing *pointing, str *out_uri, json_t **out_document,
                       struct error *error)
{
    const str folders[] = {
        directory_of(pointing->pointer.metadata_location),
        str_format(pointing->arena, "%.*s/metadata", STR_ARG(pointing->location))};
    struct error told = {0};
    err read = CORRUPT;
    for (size_t i = 0; i < ARRAY_COUNT(folders) && read == CORRUPT; i++) {
        str uri = str_format(pointing->arena, "%.*s/%.*s.metadata.json", STR_ARG(folders[i]),
                             STR_ARG(pointing->hint));
        if (uri.data == NULL) {
            return error_memory(error);
        }
        error_clear(&told);
        read = read_document(pointing, uri, out_document, &told);
        *out_uri = uri;
    }
    return read == OK ? OK : error_set(error, read, told.code, "%s", told.message);
}

static err move_forward(struct pointing *pointing, struct catalog_restored *restored,
                        struct error *error)
{
    json_auto_t *document = NULL;
    str uri = {0};
    TRY(read_hinted(pointing, &uri, &document, error));
    if (!str_equal(uuid_of(pointing, document), pointing->pointer.uuid)) {
        return error_set(error, CORRUPT, ERROR_INTERNAL, "the hint of %.*s names another table",
                         STR_ARG(pointing->name.name));
    }
    const struct catalog_swap swap = {.name = pointing->name,
                                      .item = pointing->item,
                                      .uuid = pointing->pointer.uuid,
                                      .from = pointing->pointer.metadata_location,
                                      .to = uri};
    TRY(catalog_rows_swap(&pointing->local->rows, &swap, 1, error));
    restored->moved++;
    log_event(LOG_WARN, "table_pointer_moved_forward", LOG_S("table", pointing->name.name),
              LOG_S("from", pointing->pointer.metadata_location), LOG_S("to", uri));
    return OK;
}

static err write_hint(struct pointing *pointing, struct catalog_restored *restored,
                      struct error *error)
{
    json_auto_t *document = NULL;
    TRY(read_document(pointing, pointing->pointer.metadata_location, &document, error));
    TRY(metadata_file_point(pointing->local->locations, document,
                            pointing->pointer.metadata_location, error));
    restored->hints++;
    return OK;
}

static bool is_hinted(const struct pointing *pointing, str uri)
{
    str file = str_slice(uri, (size_t)(str_find_last_byte(uri, '/') + 1), uri.size);
    return str_starts(file, pointing->hint) &&
           str_equal(str_slice(file, pointing->hint.size, file.size), STR(".metadata.json"));
}

/* Whether the line of versions that the pointer ends has another file of the hint's number. Then
 * the pointer's copy is of a line that an earlier restore has left, for the hint's. */
static err is_left(const struct pointing *pointing, i64 hinted, bool *out_left, struct error *error)
{
    str pointed = pointing->pointer.metadata_location;
    json_auto_t *document = NULL;
    struct error told = {0};
    *out_left = hinted == version_of(pointed) && !is_hinted(pointing, pointed);
    err read = read_document(pointing, pointed, &document, &told);
    if (read != OK && read != CORRUPT) {
        return error_set(error, read, told.code, "%s", told.message);
    }
    const json_t *log = json_object_get(document, "metadata-log");
    for (size_t i = 0; i < json_array_size(log); i++) {
        str uri = document_text(json_array_get(log, i), "metadata-file");
        *out_left = *out_left || (version_of(uri) == hinted && !is_hinted(pointing, uri));
    }
    return OK;
}

/* While commits go on, a hint ahead of its pointer is not believed. */
enum restore_way { POINTERS_AND_HINTS, HINTS_ALONE };

static err restore_pointer(struct pointing *pointing, enum restore_way way,
                           struct catalog_restored *restored, struct error *error)
{
    TRY(catalog_rows_find(&pointing->local->rows, pointing->arena, pointing->item, pointing->name,
                          &pointing->pointer, error));
    TRY(find_location(pointing, error));
    TRY(read_hint(pointing, error));
    i64 hinted = pointing->hint.data != NULL ? version_of(pointing->hint) : -1;
    i64 pointed = version_of(pointing->pointer.metadata_location);
    bool left = false;
    if (way == POINTERS_AND_HINTS && hinted >= 0 && hinted <= pointed) {
        TRY(is_left(pointing, hinted, &left, error));
    }
    if ((hinted > pointed && way == POINTERS_AND_HINTS) || left) {
        return move_forward(pointing, restored, error);
    }
    return hinted < pointed ? write_hint(pointing, restored, error) : OK;
}

static err restore_locked(struct catalog_local *local, enum catalog_item item,
                          struct table_name name, enum restore_way way,
                          struct catalog_restored *restored, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(RESTORE_SCRATCH_BYTES_MAX);
    struct pointing pointing = {.local = local, .arena = arena, .item = item, .name = name};
    u64 key = catalog_lock_key(name);
    TRY(catalog_lock_take(&local->shared->lock, local->seam, &key, 1, CATALOG_LOCK_WAIT_US, error));
    err result = restore_pointer(&pointing, way, restored, error);
    catalog_lock_release(&local->shared->lock, &key, 1);
    return result;
}

/* All items of one kind in a namespace. */
static err restore_items(struct catalog_local *local, enum catalog_item item, str space,
                         enum restore_way way, struct catalog_restored *restored,
                         struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(RESTORE_SCRATCH_BYTES_MAX);
    struct catalog_names items = {0};
    TRY(catalog_rows_list(&local->rows, arena, item, space, &items, error));
    for (size_t i = 0; i < items.count; i++) {
        const struct table_name name = {space, items.names[i]};
        struct error told = {0};
        err result = restore_locked(local, item, name, way, restored, &told);
        restored->tables++;
        if (result == CORRUPT || result == NOT_FOUND || result == DENIED) {
            restored->lost++;
            log_error("table_pointer_not_checked", result, &told, name.name);
        } else if (result != OK) {
            return error_set(error, result, told.code, "%s", told.message);
        }
    }
    return OK;
}

static err restore_all(struct catalog_local *local, enum restore_way way,
                       struct catalog_restored *out_restored, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)64 * MIB);
    struct catalog_restored restored = {0};
    struct catalog_names spaces = {0};
    TRY(catalog_rows_list_namespaces(&local->rows, arena, &spaces, error));
    for (size_t i = 0; i < spaces.count; i++) {
        TRY(restore_items(local, CATALOG_TABLE, spaces.names[i], way, &restored, error));
        TRY(restore_items(local, CATALOG_VIEW, spaces.names[i], way, &restored, error));
    }
    *out_restored = restored;
    return OK;
}

err catalog_restore_pointers(struct catalog_local *local, struct catalog_restored *out_restored,
                             struct error *error)
{
    return restore_all(local, POINTERS_AND_HINTS, out_restored, error);
}

/* Two at a time do the same work: what the one has begun, the other must not take for done. */
err catalog_restore_hints(struct catalog_local *local, struct error *error)
{
    struct catalog_restored restored = {0};
    i64 missed = atomic_load(&local->shared->hints_missed);
    if (atomic_load(&local->shared->hints_settled) >= missed) {
        return OK;
    }
    TRY(restore_all(local, HINTS_ALONE, &restored, error));
    atomic_store(&local->shared->hints_settled, missed);
    log_event(LOG_INFO, "version_hints_written", LOG_N("hints", restored.hints));
    return OK;
}

err catalog_restore_hint(struct catalog_local *local, struct table_name name, struct error *error)
{
    struct catalog_restored restored = {0};
    if (PLANTED(31)) {
        return OK;
    }
    return restore_locked(local, CATALOG_TABLE, name, HINTS_ALONE, &restored, error);
}

/* ---- a table without a pointer ---- */

/* Whether the hint at this key is of the table; then the file it names. */
static err judge_hint(struct catalog_local *local, struct arena *arena, str root, str key, str uuid,
                      str *out_uri, struct error *error)
{
    AUTO_METADATA struct metadata *metadata = NULL;
    struct error told = {0};
    str text = {0};
    str uri = str_format(arena, "%.*s/%.*s", STR_ARG(root), STR_ARG(key));
    if (uri.data == NULL) {
        return error_memory(error);
    }
    err got = location_get(local->locations, arena, uri, &text, &told);
    str hint = got == OK ? clean_hint(text) : (str){NULL, 0};
    if (got != OK && got != NOT_FOUND) {
        return error_set(error, got, told.code, "%s", told.message);
    }
    str file = str_format(arena, "%.*s/%.*s.metadata.json", STR_ARG(directory_of(uri)),
                          STR_ARG(hint));
    if (hint.data == NULL || file.data == NULL) {
        return OK;
    }
    error_clear(&told);
    err read = metadata_file_read(local->locations, file, &metadata, NULL, &told);
    if (read == OK && str_equal(metadata_uuid(metadata), uuid)) {
        *out_uri = file;
    }
    return read == OK || read == CORRUPT ? OK
                                         : error_set(error, read, told.code, "%s", told.message);
}

static err search(struct catalog_local *local, struct arena *arena, str root, str uuid,
                  str *out_uri, struct error *error)
{
    struct store store = {0};
    str first = {0};
    char after_bytes[STORE_KEY_MAX];
    str after = STR("");
    bool more = true;
    str probe = str_format(arena, "%.*s/x", STR_ARG(root));
    if (probe.data == NULL) {
        return error_memory(error);
    }
    TRY(location_find(local->locations, arena, probe, &store, &first, error));
    str prefix = str_slice(first, 0, first.size - 1);
    while (more && out_uri->data == NULL) {
        struct store_list list = {0};
        struct arena *page AUTO_ARENA = arena_create(RESTORE_SCRATCH_BYTES_MAX);
        TRY(store_list(&store, page, prefix, after, RESTORE_PAGE, &list, error));
        for (size_t i = 0; i < list.count && out_uri->data == NULL; i++) {
            str key = list.objects[i].key;
            if (str_ends(key, STR(HINT_FOLDER HINT_NAME))) {
                TRY(judge_hint(local, arena, root, str_slice(key, prefix.size, key.size), uuid,
                               out_uri, error));
            }
        }
        more = list.more && list.count > 0;
        if (more) {
            str last = list.objects[list.count - 1].key;
            memcpy(after_bytes, last.data, last.size);
            after = (str){after_bytes, last.size};
        }
    }
    return OK;
}

err catalog_restore_table(struct catalog_local *local, str root, struct table_name name, str uuid,
                          struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)64 * MIB);
    struct table_name found = {0};
    struct error told = {0};
    str uri = {0};
    err there = catalog_rows_find_by_uuid(&local->rows, arena, uuid, &found, &told);
    if (there != NOT_FOUND) {
        return there == OK ? OK : error_set(error, there, told.code, "%s", told.message);
    }
    TRY(search(local, arena, root, uuid, &uri, error));
    if (uri.data == NULL) {
        return OK;
    }
    error_clear(&told);
    err made = catalog_local_make_namespace(local, name.namespace_name, NULL, &told);
    if (made != OK && made != CONFLICT) {
        return error_set(error, made, told.code, "%s", told.message);
    }
    const struct catalog_swap swap = {.name = name, .uuid = uuid, .to = uri};
    TRY(catalog_rows_swap(&local->rows, &swap, 1, error));
    log_event(LOG_WARN, "table_pointer_made_again", LOG_S("table", name.name), LOG_S("to", uri));
    return OK;
}
