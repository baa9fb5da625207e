#include "table/catalog_local.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/log.h"
#include "base/utf8.h"
#include "table/catalog_keep.h"
#include "table/catalog_purge.h"
#include "table/catalog_state.h"
#include "table/document.h"
#include "table/metadata_file.h"

enum { PLACE_PART_BYTES_MAX = 48, PLACE_SUFFIX_SIZE = 12, TRIMS_BYTES_MAX = 16 * MIB };

u64 catalog_lock_key(struct table_name name)
{
    u64 space = str_hash(name.namespace_name);
    return space * 0x9e3779b97f4a7c15ULL + str_hash(name.name);
}

/* ---- names ---- */

static bool is_name(str name)
{
    bool slashes = true;
    bool control = false;
    for (size_t i = 0; i < name.size; i++) {
        slashes = slashes && name.data[i] == '/';
        control = control || (u8)name.data[i] < 0x20 || name.data[i] == 0x7f;
    }
    return !slashes && !control && name.size <= CATALOG_NAME_BYTES_MAX && utf8_valid(name);
}

err catalog_check_name(str name, struct error *error)
{
    if (!is_name(name)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "a name is 1 to %d bytes of UTF-8 without control characters",
                         CATALOG_NAME_BYTES_MAX);
    }
    return OK;
}

err catalog_check_namespace(str namespace_name, struct error *error)
{
    str rest = namespace_name;
    str part;
    int parts = 0;
    bool names = true;
    while (str_next(&rest, CATALOG_NAMESPACE_SEPARATOR, &part)) {
        names = names && is_name(part);
        parts++;
    }
    if (!names || parts == 0 || parts > CATALOG_NAMESPACE_PARTS_MAX) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "a namespace has 1 to %d parts, each a name of 1 to %d bytes of UTF-8 "
                         "without control characters",
                         CATALOG_NAMESPACE_PARTS_MAX, CATALOG_NAME_BYTES_MAX);
    }
    return OK;
}

/* ---- places ---- */

static bool is_plain(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '_' || byte == '-' || byte == '.';
}

static void append_part(buf *out, str part)
{
    for (size_t i = 0; i < part.size && i < PLACE_PART_BYTES_MAX; i++) {
        bool plain = is_plain(part.data[i]) && !(i == 0 && part.data[i] == '.');
        buf_append_byte(out, plain ? (u8)part.data[i] : '_');
    }
}

str catalog_place(struct arena *arena, const struct seam *seam, str root, struct table_name name)
{
    buf out = buf_create(arena, 256, 4 * KIB);
    buf_append(&out, root);
    str rest = name.namespace_name;
    str part;
    while (str_next(&rest, CATALOG_NAMESPACE_SEPARATOR, &part)) {
        buf_append_byte(&out, '/');
        append_part(&out, part);
    }
    buf_append_byte(&out, '/');
    append_part(&out, name.name);
    struct uid uid = id_uid_make(seam);
    buf_append_byte(&out, '-');
    buf_append(&out, str_slice(id_uid_str(&uid), 0, PLACE_SUFFIX_SIZE));
    return buf_ok(&out) ? buf_str(&out) : (str){0};
}

/* ---- tables ---- */

/* As the request says, without slashes at its end and never without a scheme. */
static str requested_location(struct arena *arena, const json_t *request)
{
    str location = document_text(request, "location");
    if (location.size == 0) {
        return (str){0};
    }
    while (location.size > 1 && location.data[location.size - 1] == '/') {
        location.size -= 1;
    }
    return str_starts(location, STR("/")) ? location_from_path(arena, location) : location;
}

err catalog_find_place(struct catalog_local *local, struct arena *arena, enum catalog_item item,
                       struct table_name name, const json_t *request, str *out_location,
                       struct error *error)
{
    TRY(catalog_check_name(name.name, error));
    json_auto_t *properties = NULL;
    TRY(catalog_local_load_namespace(local, name.namespace_name, &properties, error));
    TRY(catalog_rows_check_free(&local->rows, item, name, error));
    str location = requested_location(arena, request);
    if (location.data == NULL) {
        str root = document_text(properties, "location");
        root = root.size > 0 ? metadata_file_normal(arena, root) : local->tables_uri;
        location = catalog_place(arena, local->seam, root, name);
    }
    if (location.data == NULL) {
        return error_memory(error);
    }
    *out_location = location;
    return OK;
}

MUST_USE static err make_document(struct catalog_local *local, struct arena *arena,
                                  struct table_name name, const json_t *request,
                                  struct metadata **out_metadata, struct error *error)
{
    str location = {0};
    TRY(catalog_find_place(local, arena, CATALOG_TABLE, name, request, &location, error));
    AUTO_METADATA struct metadata *metadata = NULL;
    TRY(metadata_create(request, location, local->seam, &metadata, error));
    TRY(metadata_file_check(local->locations, metadata_json(metadata), error));
    TRY(metadata_file_make_directories(local->locations, location, error));
    *out_metadata = metadata;
    metadata = NULL;
    return OK;
}

static err local_create(void *self, struct arena *arena, struct table_name name,
                        const json_t *request, struct table *out_table, struct error *error)
{
    struct catalog_local *local = self;
    AUTO_METADATA struct metadata *metadata = NULL;
    TRY(make_document(local, arena, name, request, &metadata, error));
    str uri = {0};
    if (!json_is_true(json_object_get(request, "stage-create"))) {
        u64 key = catalog_lock_key(name);
        TRY(catalog_lock_take(&local->shared->lock, local->seam, &key, 1, CATALOG_LOCK_WAIT_US,
                              error));
        struct catalog_swap swap = {.name = name, .uuid = metadata_uuid(metadata)};
        err result = catalog_store(local, arena, &swap, metadata_json(metadata), error);
        uri = swap.to;
        catalog_lock_release(&local->shared->lock, &key, 1);
        TRY(result);
    }
    *out_table = (struct table){.metadata = metadata, .metadata_location = uri};
    metadata = NULL;
    return OK;
}

MUST_USE static err read_file(struct catalog_local *local, str uri, struct metadata **out_metadata,
                              struct error *error)
{
    struct metadata *metadata = metadata_cache_find(&local->shared->cache, uri);
    if (metadata == NULL) {
        size_t bytes = 0;
        TRY(metadata_file_read(local->locations, uri, &metadata, &bytes, error));
        metadata_cache_put(&local->shared->cache, uri, metadata, bytes);
    }
    *out_metadata = metadata;
    return OK;
}

err catalog_read(struct catalog_local *local, struct arena *arena, struct table_name name,
                 struct catalog_pointer *out_pointer, struct metadata **out_metadata,
                 struct error *error)
{
    struct catalog_pointer pointer = {0};
    TRY(catalog_rows_find(&local->rows, arena, CATALOG_TABLE, name, &pointer, error));
    struct error why = {0};
    err result = read_file(local, pointer.metadata_location, out_metadata, &why);
    if (result == CORRUPT) {
        /* The file may have been trimmed between the two reads: the pointer has moved then. */
        str read = pointer.metadata_location;
        TRY(catalog_rows_find(&local->rows, arena, CATALOG_TABLE, name, &pointer, error));
        if (!str_equal(read, pointer.metadata_location)) {
            error_clear(&why);
            result = read_file(local, pointer.metadata_location, out_metadata, &why);
        }
    }
    if (result != OK) {
        return error_set(error, result, why.code, "%s", why.message);
    }
    catalog_keep_check(local->locations, local->seam, *out_metadata);
    *out_pointer = pointer;
    return OK;
}

static err local_load(void *self, struct arena *arena, struct table_name name,
                      struct table *out_table, struct error *error)
{
    struct catalog_pointer pointer = {0};
    struct metadata *metadata = NULL;
    TRY(catalog_read(self, arena, name, &pointer, &metadata, error));
    *out_table = (struct table){metadata, pointer.metadata_location};
    return OK;
}

static err local_commit(void *self, struct arena *arena, struct table_name name,
                        const json_t *request, struct table *out_after, struct error *error)
{
    struct catalog_change change = {.name = name, .request = request};
    TRY(catalog_local_commit(self, arena, &change, 1, error));
    if (out_after != NULL) {
        *out_after = change.after;
    } else {
        table_close(&change.after);
    }
    return OK;
}

static err local_stage(void *self, struct arena *arena, struct table_name name,
                       const json_t *request, struct store_group *group,
                       struct catalog_staged *out_staged, struct error *error)
{
    return catalog_local_stage(self, arena, name, request, group, out_staged, error);
}

static err local_commit_staged(void *self, struct arena *arena, struct table_name name,
                               const json_t *request, struct catalog_staged *staged,
                               struct table *out_after, struct error *error)
{
    struct catalog_change change = {.name = name, .request = request, .staged = staged};
    err result = catalog_local_commit(self, arena, &change, 1, error);
    if (change.staged != NULL) { /* no try has looked at it */
        catalog_local_unstage(self, staged);
    }
    metadata_text_close(staged->after);
    *staged = (struct catalog_staged){0};
    if (result == OK && out_after != NULL) {
        *out_after = change.after;
    } else {
        table_close(&change.after);
    }
    return result;
}

static void local_unstage(void *self, struct catalog_staged *staged)
{
    catalog_local_unstage(self, staged);
}

err catalog_local_find(struct catalog_local *local, struct arena *arena, struct table_name name,
                       str *out_metadata_location, struct error *error)
{
    struct catalog_pointer pointer = {0};
    TRY(catalog_rows_find(&local->rows, arena, CATALOG_TABLE, name, &pointer, error));
    *out_metadata_location = pointer.metadata_location;
    return OK;
}

MUST_USE static err register_locked(struct catalog_local *local, const struct catalog_swap *swap,
                                    enum catalog_register how, const json_t *document,
                                    struct error *error)
{
    if (how == CATALOG_REGISTER_OVERWRITE) {
        TRY(catalog_rows_replace(&local->rows, swap, error));
    } else {
        TRY(catalog_rows_swap(&local->rows, swap, 1, error));
    }
    catalog_point(local, document, swap->to);
    return OK;
}

err catalog_register_place(struct catalog_local *local, struct arena *arena, struct table_name name,
                           str metadata_location, str *out_uri, struct error *error)
{
    TRY(catalog_check_name(name.name, error));
    json_auto_t *properties = NULL;
    TRY(catalog_local_load_namespace(local, name.namespace_name, &properties, error));
    *out_uri = str_copy(arena, metadata_file_normal(arena, metadata_location));
    return out_uri->data == NULL ? error_memory(error) : OK;
}

err catalog_register_at(struct catalog_local *local, const struct catalog_swap *swap,
                        enum catalog_register how, const json_t *document, struct error *error)
{
    TRY(metadata_file_check(local->locations, document, error));
    u64 key = catalog_lock_key(swap->name);
    TRY(catalog_lock_take(&local->shared->lock, local->seam, &key, 1, CATALOG_LOCK_WAIT_US, error));
    err result = register_locked(local, swap, how, document, error);
    catalog_lock_release(&local->shared->lock, &key, 1);
    return result;
}

err catalog_local_register(struct catalog_local *local, struct arena *arena, struct table_name name,
                           str metadata_location, enum catalog_register how,
                           struct table *out_table, struct error *error)
{
    str uri = {0};
    TRY(catalog_register_place(local, arena, name, metadata_location, &uri, error));
    AUTO_METADATA struct metadata *metadata = NULL;
    size_t bytes = 0;
    TRY(metadata_file_read(local->locations, uri, &metadata, &bytes, error));
    /* Somebody else's file: as it is now. */
    metadata_cache_put(&local->shared->cache, uri, metadata, bytes);
    struct catalog_swap swap = {.name = name, .uuid = metadata_uuid(metadata), .to = uri};
    TRY(catalog_register_at(local, &swap, how, metadata_json(metadata), error));
    *out_table = (struct table){metadata, uri};
    metadata = NULL;
    return OK;
}

err catalog_local_rename(struct catalog_local *local, enum catalog_item item,
                         struct table_name from, struct table_name to, struct error *error)
{
    TRY(catalog_check_name(to.name, error));
    TRY(catalog_check_namespace(to.namespace_name, error));
    u64 keys[] = {catalog_lock_key(from), catalog_lock_key(to)};
    TRY(catalog_lock_take(&local->shared->lock, local->seam, keys, 2, CATALOG_LOCK_WAIT_US, error));
    err result = catalog_rows_rename(&local->rows, item, from, to, error);
    catalog_lock_release(&local->shared->lock, keys, 2);
    return result;
}

err catalog_local_drop(struct catalog_local *local, struct table_name name,
                       enum catalog_files files, struct error *error)
{
    AUTO_ARENA struct arena *scratch = arena_create(MIB);
    AUTO_TABLE struct table table = {0};
    u64 key = catalog_lock_key(name);
    TRY(catalog_lock_take(&local->shared->lock, local->seam, &key, 1, CATALOG_LOCK_WAIT_US, error));
    bool purge = files == CATALOG_FILES_PURGE &&
                 local_load(local, scratch, name, &table, NULL) == OK;
    err result = catalog_rows_drop(&local->rows, CATALOG_TABLE, name, error);
    catalog_lock_release(&local->shared->lock, &key, 1);
    TRY(result);
    if (purge) {
        catalog_purge(local->locations, table.metadata, table.metadata_location);
    }
    return OK;
}

err catalog_local_unregister(struct catalog_local *local, struct arena *arena,
                             struct table_name name, struct table *out_table, struct error *error)
{
    AUTO_TABLE struct table table = {0};
    u64 key = catalog_lock_key(name);
    TRY(catalog_lock_take(&local->shared->lock, local->seam, &key, 1, CATALOG_LOCK_WAIT_US, error));
    err result = local_load(local, arena, name, &table, error);
    if (result == OK) {
        result = catalog_rows_drop(&local->rows, CATALOG_TABLE, name, error);
    }
    catalog_lock_release(&local->shared->lock, &key, 1);
    TRY(result);
    *out_table = table;
    table = (struct table){0};
    return OK;
}

static err local_drop(void *self, struct table_name name, struct error *error)
{
    return catalog_local_drop(self, name, CATALOG_FILES_KEEP, error);
}

static err local_list_tables(void *self, struct arena *arena, str namespace_name,
                             struct catalog_names *out_names, struct error *error)
{
    struct catalog_local *local = self;
    return catalog_rows_list(&local->rows, arena, CATALOG_TABLE, namespace_name, out_names, error);
}

static err local_find_by_uuid(void *self, struct arena *arena, str uuid,
                              struct table_name *out_name, struct error *error)
{
    struct catalog_local *local = self;
    return catalog_rows_find_by_uuid(&local->rows, arena, uuid, out_name, error);
}

/* ---- the catalog ---- */

static err local_create_namespace(void *self, str namespace_name, struct error *error)
{
    struct error why = {0};
    err result = catalog_local_make_namespace(self, namespace_name, NULL, &why);
    if (result == OK || result == CONFLICT) {
        return OK;
    }
    return error_set(error, result, why.code, "%s", why.message);
}

static err local_list_namespaces(void *self, struct arena *arena, struct catalog_names *out_names,
                                 struct error *error)
{
    return catalog_all_namespaces(self, arena, out_names, error);
}

static const struct catalog_ops LOCAL_OPS = {
    .load = local_load,
    .commit = local_commit,
    .stage = local_stage,
    .commit_staged = local_commit_staged,
    .unstage = local_unstage,
    .create = local_create,
    .drop = local_drop,
    .create_namespace = local_create_namespace,
    .list_namespaces = local_list_namespaces,
    .list_tables = local_list_tables,
    .find_by_uuid = local_find_by_uuid,
};

err catalog_local_open(struct arena *arena, const struct catalog_local_options *options,
                       struct catalog *out_catalog, struct error *error)
{
    assert(options->warehouse.size > 0);
    struct catalog_local *local = arena_alloc(arena, sizeof(*local));
    struct catalog_shared *shared = arena_alloc(arena, sizeof(*shared));
    if (local == NULL || shared == NULL) {
        return error_memory(error);
    }
    *local = (struct catalog_local){
        .rows = {options->db, options->warehouse},
        .seam = options->seam,
        .locations = options->locations,
        .tables_uri = options->tables_uri,
        .shared = shared,
    };
    atomic_init(&shared->hints_missed, 0);
    atomic_init(&shared->hints_settled, 0);
    catalog_lock_open(&shared->lock);
    metadata_cache_open(&shared->cache);
    int made = pthread_mutex_init(&shared->trim_lock, NULL);
    assert(made == 0);
    *out_catalog = (struct catalog){.ops = &LOCAL_OPS, .self = local};
    return OK;
}

void catalog_local_close(struct catalog *catalog)
{
    struct catalog_local *local = catalog_local_of(catalog);
    assert(local != NULL);
    assert(local->shared->trim_arena == NULL);
    (void)pthread_mutex_destroy(&local->shared->trim_lock);
    metadata_cache_close(&local->shared->cache);
    catalog_lock_close(&local->shared->lock);
    *catalog = (struct catalog){0};
}

void catalog_local_pause_trims(struct catalog_local *local)
{
    struct arena *arena = arena_create(2 * (size_t)TRIMS_BYTES_MAX);
    (void)pthread_mutex_lock(&local->shared->trim_lock);
    assert(local->shared->trim_arena == NULL);
    local->shared->trim_arena = arena;
    local->shared->trims = buf_create(arena, 4 * KIB, TRIMS_BYTES_MAX);
    (void)pthread_mutex_unlock(&local->shared->trim_lock);
}

void catalog_local_resume_trims(struct catalog_local *local)
{
    AUTO_ARENA struct arena *scratch = arena_create(MIB);
    (void)pthread_mutex_lock(&local->shared->trim_lock);
    struct arena *arena = local->shared->trim_arena;
    str rest = buf_str(&local->shared->trims);
    local->shared->trim_arena = NULL;
    (void)pthread_mutex_unlock(&local->shared->trim_lock);
    str uri = {0};
    while (str_next(&rest, '\n', &uri)) {
        struct error error = {0};
        err removed = uri.size == 0 ? OK : location_remove(local->locations, scratch, uri, &error);
        if (removed != OK) {
            log_error("metadata_trim_failed", removed, &error, uri);
        }
        arena_reset(scratch);
    }
    arena_destroy(arena);
}

struct catalog_local *catalog_local_of(const struct catalog *catalog)
{
    return catalog->ops == &LOCAL_OPS ? catalog->self : NULL;
}

bool catalog_local_is_in(const struct catalog_local *local, const struct db *db)
{
    return local->rows.db->ops == db->ops && local->rows.db->self == db->self;
}
