#include "sink/warehouse.h"

#include "base/assert.h"
#include "io/file.h"
#include "table/catalog_local.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    WAREHOUSE_NAME_MAX = 63,
    WAREHOUSES_BYTES_MAX = 64 * MIB,
    WAREHOUSE_SCRATCH_BYTES = 4 * MIB,
};

#define STORE_DIR        "{\"type\":\"dir\"}"
#define CATALOG_EMBEDDED "{\"type\":\"embedded\"}"

/* `items` grows at its end only, under the mutex; an entry is complete before the count shows it.
 */
struct warehouses {
    struct arena *arena; /* of the entries; under the mutex */
    const struct db *db;
    const struct seam *seam;
    str data_directory;
    struct location *allowed;
    size_t allowed_count;
    pthread_mutex_t mutex;
    atomic_size_t count;
    struct warehouse *items[WAREHOUSES_MAX];
};

/* ---- one warehouse ---- */

MUST_USE static err open_directory(struct warehouses *warehouses, str name, const char *part,
                                   str *out_path, struct store *out_store, struct error *error)
{
    str path = str_format(warehouses->arena, "%.*s/warehouse/%.*s/%s",
                          STR_ARG(warehouses->data_directory), STR_ARG(name), part);
    if (path.data == NULL) {
        return error_memory(error);
    }
    TRY(file_make_directory(path, error));
    TRY(store_open_dir(warehouses->arena, path, out_store, error));
    *out_path = path;
    return OK;
}

MUST_USE static err set_locations(const struct warehouses *warehouses, struct warehouse *warehouse,
                                  str tables_path, struct store tables, struct error *error)
{
    size_t count = warehouses->allowed_count + 1;
    struct location *items = arena_array(warehouses->arena, count, sizeof(*items));
    warehouse->tables_uri = location_from_path(warehouses->arena, tables_path);
    if (items == NULL || warehouse->tables_uri.data == NULL) {
        return error_memory(error);
    }
    items[0] = (struct location){.prefix = warehouse->tables_uri, .store = tables};
    for (size_t i = 1; i < count; i++) {
        items[i] = warehouses->allowed[i - 1];
    }
    warehouse->locations = (struct location_set){items, count};
    return OK;
}

MUST_USE static err open_catalog(const struct warehouses *warehouses, struct warehouse *warehouse,
                                 struct error *error)
{
    const struct catalog_local_options options = {
        .db = warehouses->db,
        .seam = warehouses->seam,
        .warehouse = warehouse->name,
        .tables_uri = warehouse->tables_uri,
        .locations = &warehouse->locations,
    };
    warehouse->embedded = true;
    return catalog_local_open(warehouses->arena, &options, &warehouse->catalog, error);
}

/* Directories, stores and catalog; nothing is published. */
MUST_USE static err open_warehouse(struct warehouses *warehouses, str project, str name,
                                   struct warehouse **out_warehouse, struct error *error)
{
    struct warehouse *warehouse = arena_alloc(warehouses->arena, sizeof(*warehouse));
    if (warehouse == NULL) {
        return error_memory(error);
    }
    warehouse->name = str_copy(warehouses->arena, name);
    warehouse->project = str_copy(warehouses->arena, project);
    if (warehouse->name.data == NULL || warehouse->project.data == NULL) {
        return error_memory(error);
    }
    struct store tables = {0};
    str tables_path = {0};
    TRY(open_directory(warehouses, name, "tables", &tables_path, &tables, error));
    err result = open_directory(warehouses, name, "files", &warehouse->files_path,
                                &warehouse->files, error);
    if (result == OK) {
        result = set_locations(warehouses, warehouse, tables_path, tables, error);
        result = result == OK ? open_catalog(warehouses, warehouse, error) : result;
        if (result != OK) {
            store_close(&warehouse->files);
        }
    }
    if (result != OK) {
        store_close(&tables);
        return result;
    }
    *out_warehouse = warehouse;
    return OK;
}

static void close_warehouse(struct warehouse *warehouse)
{
    catalog_local_close(&warehouse->catalog);
    store_close(&warehouse->files);
    store_close(&warehouse->locations.items[0].store);
}

static void publish(struct warehouses *warehouses, struct warehouse *warehouse)
{
    size_t count = atomic_load_explicit(&warehouses->count, memory_order_relaxed);
    assert(count < WAREHOUSES_MAX);
    warehouses->items[count] = warehouse;
    atomic_store_explicit(&warehouses->count, count + 1, memory_order_release);
}

/* ---- at start ---- */

MUST_USE static err open_allowed(struct warehouses *warehouses,
                                 const struct warehouse_options *options, struct error *error)
{
    struct arena *arena = warehouses->arena;
    warehouses->allowed = arena_array(arena, options->allowed_count, sizeof(struct location));
    if (warehouses->allowed == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < options->allowed_count; i++) {
        str uri = options->allowed_locations[i];
        str path = str_starts(uri, STR("file://")) ? str_slice(uri, sizeof("file://") - 1, uri.size)
                                                   : uri;
        while (path.size > 1 && path.data[path.size - 1] == '/') {
            path.size -= 1;
        }
        if (path.size < 2 || path.data[0] != '/') {
            return error_set(error, INVALID, ERROR_INVALID_CONFIG,
                             "allowed_locations: %.*s is no file:///<directory>", STR_ARG(uri));
        }
        struct location *location = &warehouses->allowed[i];
        location->prefix = location_from_path(arena, path);
        if (location->prefix.data == NULL) {
            return error_memory(error);
        }
        TRY(store_open_dir(arena, path, &location->store, error));
        warehouses->allowed_count = i + 1;
    }
    return OK;
}

struct list_work {
    struct arena *arena;
    struct db_rows rows;
};

static err list_body(struct db_tx *tx, void *context, struct error *error)
{
    struct list_work *work = context;
    return db_query(tx, work->arena,
                    "SELECT name, project, store, catalog FROM warehouse ORDER BY created_at, name",
                    NULL, 0, &work->rows, error);
}

MUST_USE static err open_row(struct warehouses *warehouses, const struct db_rows *rows, size_t row,
                             struct error *error)
{
    str name = db_text(rows, row, 0);
    if (!str_equal(db_text(rows, row, 2), STR(STORE_DIR)) ||
        !str_equal(db_text(rows, row, 3), STR(CATALOG_EMBEDDED))) {
        return error_set(error, INVALID, ERROR_NOT_IMPLEMENTED,
                         "the warehouse %.*s needs a store or catalog that this version lacks",
                         STR_ARG(name));
    }
    struct warehouse *warehouse = NULL;
    TRY(open_warehouse(warehouses, db_text(rows, row, 1), name, &warehouse, error));
    publish(warehouses, warehouse);
    return OK;
}

MUST_USE static err open_all(struct warehouses *warehouses, const struct warehouse_options *options,
                             struct error *error)
{
    TRY(open_allowed(warehouses, options, error));
    AUTO_ARENA struct arena *scratch = arena_create(WAREHOUSE_SCRATCH_BYTES);
    struct list_work work = {.arena = scratch};
    TRY(db_read(warehouses->db, list_body, &work, error));
    if (work.rows.row_count > WAREHOUSES_MAX) {
        return error_set(error, LIMIT, ERROR_INVALID_CONFIG, "more than %d warehouses",
                         WAREHOUSES_MAX);
    }
    for (size_t i = 0; i < work.rows.row_count; i++) {
        TRY(open_row(warehouses, &work.rows, i, error));
    }
    return OK;
}

err warehouses_open(struct arena *arena, const struct db *db, const struct seam *seam,
                    const struct warehouse_options *options, struct warehouses **out,
                    struct error *error)
{
    struct warehouses *warehouses = arena_alloc(arena, sizeof(*warehouses));
    str directory = str_copy(arena, options->data_directory);
    if (warehouses == NULL || directory.data == NULL) {
        return error_memory(error);
    }
    assert(directory.size > 0 && directory.data[0] == '/');
    warehouses->arena = arena_create(WAREHOUSES_BYTES_MAX);
    warehouses->db = db;
    warehouses->seam = seam;
    warehouses->data_directory = directory;
    int made = pthread_mutex_init(&warehouses->mutex, NULL);
    assert(made == 0);
    err result = open_all(warehouses, options, error);
    if (result != OK) {
        warehouses_close(warehouses);
        return result;
    }
    *out = warehouses;
    return OK;
}

void warehouses_close(struct warehouses *warehouses)
{
    size_t count = atomic_load_explicit(&warehouses->count, memory_order_acquire);
    for (size_t i = 0; i < count; i++) {
        close_warehouse(warehouses->items[i]);
    }
    for (size_t i = 0; i < warehouses->allowed_count; i++) {
        store_close(&warehouses->allowed[i].store);
    }
    int destroyed = pthread_mutex_destroy(&warehouses->mutex);
    assert(destroyed == 0);
    arena_destroy(warehouses->arena);
}

/* ---- looking ---- */

const struct warehouse *warehouse_get(const struct warehouses *warehouses, str name)
{
    size_t count = atomic_load_explicit(&warehouses->count, memory_order_acquire);
    for (size_t i = 0; i < count; i++) {
        if (str_equal(warehouses->items[i]->name, name)) {
            return warehouses->items[i];
        }
    }
    return NULL;
}

size_t warehouse_list(const struct warehouses *warehouses, str project,
                      const struct warehouse **out, size_t max)
{
    size_t count = atomic_load_explicit(&warehouses->count, memory_order_acquire);
    size_t listed = 0;
    for (size_t i = 0; i < count && listed < max; i++) {
        const struct warehouse *warehouse = warehouses->items[i];
        if (project.size == 0 || str_equal(warehouse->project, project)) {
            out[listed++] = warehouse;
        }
    }
    return listed;
}

/* ---- making ---- */

static bool is_name(str name)
{
    bool good = name.size >= 1 && name.size <= WAREHOUSE_NAME_MAX;
    for (size_t i = 0; i < name.size && good; i++) {
        char byte = name.data[i];
        good = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '_' ||
               byte == '-';
    }
    return good;
}

/* `part` is NULL or {"type": wanted}. */
MUST_USE static err check_type(const json_t *part, const char *member, const char *wanted,
                               const char *other, struct error *error)
{
    if (part == NULL || json_is_null(part)) {
        return OK;
    }
    const char *type = json_string_value(json_object_get(part, "type"));
    if (type != NULL && strcmp(type, other) == 0) {
        return error_set(error, INVALID, ERROR_NOT_IMPLEMENTED,
                         "a %s of type %s is not in this version", member, other);
    }
    if (type == NULL || strcmp(type, wanted) != 0) {
        error_field_text(error, "path", str_from(member));
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "%s.type: %s or %s is wanted",
                         member, wanted, other);
    }
    if (json_object_size(part) > 1) {
        error_field_text(error, "path", str_from(member));
        return error_set(error, INVALID, ERROR_UNKNOWN_FIELD,
                         "a %s of type %s has no other members", member, wanted);
    }
    return OK;
}

struct insert_work {
    str project;
    str name;
};

/* A row of this project that no warehouse in memory belongs to was inserted by a request whose
 * answer was lost: it is taken for this one's. */
static err insert_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct insert_work *work = context;
    AUTO_ARENA struct arena *arena = arena_create(64 * (size_t)KIB);
    struct db_rows rows = {0};
    TRY(db_query(tx, arena, "SELECT project FROM warehouse WHERE name = ?1",
                 (const struct db_value[]){DB_T(work->name)}, 1, &rows, error));
    if (rows.row_count > 0 && str_equal(db_text(&rows, 0, 0), work->project)) {
        return OK;
    }
    return db_run(tx, error,
                  "INSERT INTO warehouse (name, project, store, catalog, created_at) "
                  "VALUES (?1, ?2, ?3, ?4, ?5)",
                  DB_T(work->name), DB_T(work->project), DB_T(STR(STORE_DIR)),
                  DB_T(STR(CATALOG_EMBEDDED)), DB_N(db_now(tx)));
}

static err name_taken(str name, struct error *error)
{
    return error_set(error, CONFLICT, ERROR_NAME_TAKEN, "there is a warehouse %.*s already",
                     STR_ARG(name));
}

MUST_USE static err create_locked(struct warehouses *warehouses, str project, str name,
                                  const struct warehouse **out_warehouse, struct error *error)
{
    if (warehouse_get(warehouses, name) != NULL) {
        return name_taken(name, error);
    }
    if (atomic_load_explicit(&warehouses->count, memory_order_relaxed) == WAREHOUSES_MAX) {
        return error_set(error, LIMIT, ERROR_INVALID_REQUEST, "at most %d warehouses",
                         WAREHOUSES_MAX);
    }
    struct warehouse *warehouse = NULL;
    TRY(open_warehouse(warehouses, project, name, &warehouse, error));
    struct error why = {0};
    struct insert_work work = {project, name};
    err result = db_transact(warehouses->db, insert_body, &work, &why);
    if (result != OK) {
        close_warehouse(warehouse);
        return result == CONFLICT ? name_taken(name, error)
                                  : error_set(error, result, why.code, "%s", why.message);
    }
    publish(warehouses, warehouse);
    *out_warehouse = warehouse;
    return OK;
}

err warehouse_create(struct warehouses *warehouses, str project, str name, const json_t *store,
                     const json_t *catalog, const struct warehouse **out_warehouse,
                     struct error *error)
{
    if (!is_name(name)) {
        error_field_text(error, "path", STR("name"));
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "name: 1 to %d of a-z 0-9 _ - are wanted", WAREHOUSE_NAME_MAX);
    }
    TRY(check_type(store, "store", "dir", "s3", error));
    TRY(check_type(catalog, "catalog", "embedded", "rest", error));
    int locked = pthread_mutex_lock(&warehouses->mutex);
    assert(locked == 0);
    err result = create_locked(warehouses, project, name, out_warehouse, error);
    int unlocked = pthread_mutex_unlock(&warehouses->mutex);
    assert(unlocked == 0);
    return result;
}
