#include "table/catalog_rows.h"

#include "base/assert.h"

/* A name as messages show it: parts joined by dots, cut to fit. */
struct shown {
    char text[256];
};

static void show_append(struct shown *shown, str part)
{
    size_t used = strlen(shown->text);
    for (size_t i = 0; i < part.size && used + 1 < sizeof(shown->text); i++) {
        shown->text[used++] = part.data[i] == CATALOG_NAMESPACE_SEPARATOR ? '.' : part.data[i];
    }
    shown->text[used] = '\0';
}

static struct shown show_namespace(str name)
{
    struct shown shown = {{0}};
    show_append(&shown, name);
    return shown;
}

static struct shown show_table(struct table_name name)
{
    struct shown shown = show_namespace(name.namespace_name);
    show_append(&shown, STR("."));
    show_append(&shown, name.name);
    return shown;
}

static const char *const ITEM_WORDS[] = {[CATALOG_TABLE] = "Table", [CATALOG_VIEW] = "View"};

static err item_missing(enum catalog_item item, struct table_name name, struct error *error)
{
    return error_set(error, NOT_FOUND,
                     item == CATALOG_VIEW ? ERROR_VIEW_NOT_FOUND : ERROR_TABLE_NOT_FOUND,
                     "%s does not exist: %s", ITEM_WORDS[item], show_table(name).text);
}

/* `found` stands where `wanted` was to be made. */
static err item_exists(enum catalog_item found, enum catalog_item wanted, struct table_name name,
                       struct error *error)
{
    return error_set(error, CONFLICT, found == CATALOG_VIEW ? ERROR_NAME_TAKEN : ERROR_TABLE_EXISTS,
                     "%s%s already exists: %s", ITEM_WORDS[found],
                     found == wanted ? "" : " with same name", show_table(name).text);
}

static err namespace_missing(str name, struct error *error)
{
    return error_set(error, NOT_FOUND, ERROR_NAMESPACE_NOT_FOUND, "Namespace does not exist: %s",
                     show_namespace(name).text);
}

/* What every body gets; each uses the members it needs. */
struct work {
    const struct catalog_rows *rows;
    struct arena *arena;
    enum catalog_item item;
    struct table_name name;
    struct table_name to;
    str text;
    str from;
    const struct catalog_swap *swaps;
    size_t count;
    struct db_rows found;
};

/* ---- pieces of transactions ---- */

/* kind, uuid, metadata_location of whatever has the name. */
MUST_USE static err query_pointer(struct db_tx *tx, const struct catalog_rows *rows,
                                  struct arena *arena, struct table_name name,
                                  struct db_rows *out_found, struct error *error)
{
    const struct db_value values[] = {DB_T(rows->warehouse), DB_T(name.namespace_name),
                                      DB_T(name.name)};
    return db_query(tx, arena,
                    "SELECT kind, uuid, metadata_location FROM catalog_table "
                    "WHERE warehouse = ?1 AND namespace = ?2 AND name = ?3",
                    values, ARRAY_COUNT(values), out_found, error);
}

static enum catalog_item item_of(const struct db_rows *found)
{
    return db_number(found, 0, 0) == CATALOG_VIEW ? CATALOG_VIEW : CATALOG_TABLE;
}

MUST_USE static err need_free(struct db_tx *tx, const struct catalog_rows *rows,
                              enum catalog_item item, struct table_name name, struct error *error)
{
    AUTO_ARENA struct arena *scratch = arena_create(MIB);
    struct db_rows found = {0};
    TRY(query_pointer(tx, rows, scratch, name, &found, error));
    return found.row_count == 0 ? OK : item_exists(item_of(&found), item, name, error);
}

/* Rows that show that the namespace exists: its own, or one below it. */
MUST_USE static err query_namespace(struct db_tx *tx, const struct catalog_rows *rows,
                                    struct arena *arena, str name, struct db_rows *out_found,
                                    struct error *error)
{
    str below = str_format(arena, "%.*s%c", STR_ARG(name), CATALOG_NAMESPACE_SEPARATOR);
    if (below.data == NULL) {
        return error_memory(error);
    }
    const struct db_value values[] = {DB_T(rows->warehouse), DB_T(name), DB_T(below)};
    return db_query(tx, arena,
                    "SELECT name, properties FROM catalog_namespace WHERE warehouse = ?1 "
                    "AND (name = ?2 OR substr(name, 1, length(?3)) = ?3) ORDER BY name LIMIT 2",
                    values, ARRAY_COUNT(values), out_found, error);
}

MUST_USE static err need_namespace(struct db_tx *tx, const struct catalog_rows *rows, str name,
                                   struct error *error)
{
    AUTO_ARENA struct arena *scratch = arena_create(MIB);
    struct db_rows found = {0};
    TRY(query_namespace(tx, rows, scratch, name, &found, error));
    return found.row_count > 0 ? OK : namespace_missing(name, error);
}

MUST_USE static err insert_pointer(struct db_tx *tx, const struct catalog_rows *rows,
                                   const struct catalog_swap *swap, struct error *error)
{
    TRY(need_namespace(tx, rows, swap->name.namespace_name, error));
    TRY(need_free(tx, rows, swap->item, swap->name, error));
    return db_run(tx, error,
                  "INSERT INTO catalog_table (warehouse, namespace, name, kind, uuid, "
                  "metadata_location) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                  DB_T(rows->warehouse), DB_T(swap->name.namespace_name), DB_T(swap->name.name),
                  DB_N(swap->item), DB_T(swap->uuid), DB_T(swap->to));
}

MUST_USE static err move_pointer(struct db_tx *tx, const struct catalog_rows *rows,
                                 const struct catalog_swap *swap, struct error *error)
{
    const struct db_value values[] = {
        DB_T(rows->warehouse), DB_T(swap->name.namespace_name),
        DB_T(swap->name.name), DB_T(swap->uuid),
        DB_T(swap->from),      DB_T(swap->to),
        DB_N(swap->item),
    };
    i64 changes = 0;
    TRY(db_exec(tx,
                "UPDATE catalog_table SET metadata_location = ?6 WHERE warehouse = ?1 "
                "AND namespace = ?2 AND name = ?3 AND uuid = ?4 AND metadata_location = ?5 "
                "AND kind = ?7",
                values, ARRAY_COUNT(values), &changes, error));
    if (changes != 1) {
        return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT,
                         "Cannot commit %s: another commit was faster",
                         show_table(swap->name).text);
    }
    return OK;
}

/* ---- tables and views ---- */

static err find_body(struct db_tx *tx, void *context, struct error *error)
{
    struct work *work = context;
    return query_pointer(tx, work->rows, work->arena, work->name, &work->found, error);
}

err catalog_rows_find(const struct catalog_rows *rows, struct arena *arena, enum catalog_item item,
                      struct table_name name, struct catalog_pointer *out_pointer,
                      struct error *error)
{
    struct work work = {.rows = rows, .arena = arena, .name = name};
    TRY(db_read(rows->db, find_body, &work, error));
    if (work.found.row_count == 0 || item_of(&work.found) != item) {
        return item_missing(item, name, error);
    }
    *out_pointer = (struct catalog_pointer){db_text(&work.found, 0, 1), db_text(&work.found, 0, 2)};
    return OK;
}

static err check_free_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct work *work = context;
    return need_free(tx, work->rows, work->item, work->name, error);
}

err catalog_rows_check_free(const struct catalog_rows *rows, enum catalog_item item,
                            struct table_name name, struct error *error)
{
    struct work work = {.rows = rows, .item = item, .name = name};
    return db_read(rows->db, check_free_body, &work, error);
}

static err find_by_uuid_body(struct db_tx *tx, void *context, struct error *error)
{
    struct work *work = context;
    const struct db_value values[] = {DB_T(work->rows->warehouse), DB_T(work->text),
                                      DB_N(CATALOG_TABLE)};
    return db_query(tx, work->arena,
                    "SELECT namespace, name FROM catalog_table WHERE warehouse = ?1 AND uuid = ?2 "
                    "AND kind = ?3 ORDER BY namespace, name LIMIT 1",
                    values, ARRAY_COUNT(values), &work->found, error);
}

err catalog_rows_find_by_uuid(const struct catalog_rows *rows, struct arena *arena, str uuid,
                              struct table_name *out_name, struct error *error)
{
    struct work work = {.rows = rows, .arena = arena, .text = uuid};
    TRY(db_read(rows->db, find_by_uuid_body, &work, error));
    if (work.found.row_count == 0) {
        return error_set(error, NOT_FOUND, ERROR_TABLE_NOT_FOUND, "No table has the uuid %.*s",
                         STR_ARG(uuid));
    }
    *out_name = (struct table_name){db_text(&work.found, 0, 0), db_text(&work.found, 0, 1)};
    return OK;
}

static err swap_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct work *work = context;
    for (size_t i = 0; i < work->count; i++) {
        const struct catalog_swap *swap = &work->swaps[i];
        if (swap->from.size == 0) {
            TRY(insert_pointer(tx, work->rows, swap, error));
        } else {
            TRY(move_pointer(tx, work->rows, swap, error));
        }
    }
    return OK;
}

err catalog_rows_swap(const struct catalog_rows *rows, const struct catalog_swap *swaps,
                      size_t count, struct error *error)
{
    assert(count > 0);
    struct work work = {.rows = rows, .swaps = swaps, .count = count};
    return db_transact(rows->db, swap_body, &work, error);
}

static err delete_pointer(struct db_tx *tx, const struct catalog_rows *rows, enum catalog_item item,
                          struct table_name name, i64 *out_changes, struct error *error)
{
    const struct db_value values[] = {DB_T(rows->warehouse), DB_T(name.namespace_name),
                                      DB_T(name.name), DB_N(item)};
    return db_exec(tx,
                   "DELETE FROM catalog_table WHERE warehouse = ?1 AND namespace = ?2 "
                   "AND name = ?3 AND kind = ?4",
                   values, ARRAY_COUNT(values), out_changes, error);
}

static err replace_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct work *work = context;
    TRY(delete_pointer(tx, work->rows, work->swaps->item, work->swaps->name, NULL, error));
    return insert_pointer(tx, work->rows, work->swaps, error);
}

err catalog_rows_replace(const struct catalog_rows *rows, const struct catalog_swap *swap,
                         struct error *error)
{
    struct work work = {.rows = rows, .swaps = swap, .count = 1};
    return db_transact(rows->db, replace_body, &work, error);
}

static err rename_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct work *work = context;
    AUTO_ARENA struct arena *scratch = arena_create(MIB);
    struct db_rows source = {0};
    TRY(query_pointer(tx, work->rows, scratch, work->name, &source, error));
    if (source.row_count == 0 || item_of(&source) != work->item) {
        return item_missing(work->item, work->name, error);
    }
    TRY(need_namespace(tx, work->rows, work->to.namespace_name, error));
    struct db_rows target = {0};
    TRY(query_pointer(tx, work->rows, scratch, work->to, &target, error));
    if (target.row_count > 0) {
        return error_set(error, CONFLICT, ERROR_NAME_TAKEN,
                         "Cannot rename %s to %s. %s already exists", show_table(work->name).text,
                         show_table(work->to).text, ITEM_WORDS[item_of(&target)]);
    }
    return db_run(tx, error,
                  "UPDATE catalog_table SET namespace = ?4, name = ?5 WHERE warehouse = ?1 "
                  "AND namespace = ?2 AND name = ?3",
                  DB_T(work->rows->warehouse), DB_T(work->name.namespace_name),
                  DB_T(work->name.name), DB_T(work->to.namespace_name), DB_T(work->to.name));
}

err catalog_rows_rename(const struct catalog_rows *rows, enum catalog_item item,
                        struct table_name from, struct table_name to, struct error *error)
{
    struct work work = {.rows = rows, .item = item, .name = from, .to = to};
    return db_transact(rows->db, rename_body, &work, error);
}

static err drop_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct work *work = context;
    i64 changes = 0;
    TRY(delete_pointer(tx, work->rows, work->item, work->name, &changes, error));
    return changes == 1 ? OK : item_missing(work->item, work->name, error);
}

err catalog_rows_drop(const struct catalog_rows *rows, enum catalog_item item,
                      struct table_name name, struct error *error)
{
    struct work work = {.rows = rows, .item = item, .name = name};
    return db_transact(rows->db, drop_body, &work, error);
}

/* The first column as names. */
MUST_USE static err names_from(struct arena *arena, const struct db_rows *found,
                               struct catalog_names *out_names, struct error *error)
{
    str *names = arena_array(arena, found->row_count, sizeof(*names));
    if (names == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < found->row_count; i++) {
        names[i] = db_text(found, i, 0);
    }
    *out_names = (struct catalog_names){names, found->row_count};
    return OK;
}

static err list_body(struct db_tx *tx, void *context, struct error *error)
{
    struct work *work = context;
    TRY(need_namespace(tx, work->rows, work->text, error));
    const struct db_value values[] = {DB_T(work->rows->warehouse), DB_T(work->text),
                                      DB_N(work->item)};
    return db_query(tx, work->arena,
                    "SELECT name FROM catalog_table WHERE warehouse = ?1 AND namespace = ?2 "
                    "AND kind = ?3 ORDER BY name",
                    values, ARRAY_COUNT(values), &work->found, error);
}

err catalog_rows_list(const struct catalog_rows *rows, struct arena *arena, enum catalog_item item,
                      str namespace_name, struct catalog_names *out_names, struct error *error)
{
    struct work work = {.rows = rows, .arena = arena, .item = item, .text = namespace_name};
    TRY(db_read(rows->db, list_body, &work, error));
    return names_from(arena, &work.found, out_names, error);
}

/* ---- namespaces ---- */

static err create_namespace_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct work *work = context;
    AUTO_ARENA struct arena *scratch = arena_create(MIB);
    struct db_rows found = {0};
    const struct db_value values[] = {DB_T(work->rows->warehouse), DB_T(work->name.namespace_name),
                                      DB_T(work->text)};
    TRY(db_query(tx, scratch,
                 "SELECT name FROM catalog_namespace WHERE warehouse = ?1 AND name = ?2", values, 2,
                 &found, error));
    if (found.row_count > 0) {
        return error_set(error, CONFLICT, ERROR_NAME_TAKEN, "Namespace already exists: %s",
                         show_namespace(work->name.namespace_name).text);
    }
    return db_exec(tx,
                   "INSERT INTO catalog_namespace (warehouse, name, properties) "
                   "VALUES (?1, ?2, ?3)",
                   values, ARRAY_COUNT(values), NULL, error);
}

err catalog_rows_create_namespace(const struct catalog_rows *rows, str name, str properties,
                                  struct error *error)
{
    struct work work = {.rows = rows, .name.namespace_name = name, .text = properties};
    return db_transact(rows->db, create_namespace_body, &work, error);
}

static err load_namespace_body(struct db_tx *tx, void *context, struct error *error)
{
    struct work *work = context;
    return query_namespace(tx, work->rows, work->arena, work->text, &work->found, error);
}

err catalog_rows_load_namespace(const struct catalog_rows *rows, struct arena *arena, str name,
                                str *out_properties, struct error *error)
{
    struct work work = {.rows = rows, .arena = arena, .text = name};
    TRY(db_read(rows->db, load_namespace_body, &work, error));
    if (work.found.row_count == 0) {
        return namespace_missing(name, error);
    }
    /* The row of the namespace itself sorts before those below it. */
    bool own = str_equal(db_text(&work.found, 0, 0), name);
    *out_properties = own ? db_text(&work.found, 0, 1) : STR("{}");
    return OK;
}

/* A namespace that only its children imply gets its row with its first properties. */
static err swap_properties_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct work *work = context;
    AUTO_ARENA struct arena *scratch = arena_create(4 * MIB);
    struct db_rows found = {0};
    str name = work->name.namespace_name;
    TRY(query_namespace(tx, work->rows, scratch, name, &found, error));
    if (found.row_count == 0) {
        return namespace_missing(name, error);
    }
    bool own = str_equal(db_text(&found, 0, 0), name);
    str present = own ? db_text(&found, 0, 1) : STR("{}");
    if (!str_equal(present, work->from)) {
        return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT,
                         "The properties of %s were changed meanwhile", show_namespace(name).text);
    }
    const struct db_value values[] = {DB_T(work->rows->warehouse), DB_T(name), DB_T(work->text)};
    const char *sql = own ? "UPDATE catalog_namespace SET properties = ?3 "
                            "WHERE warehouse = ?1 AND name = ?2"
                          : "INSERT INTO catalog_namespace (warehouse, name, properties) "
                            "VALUES (?1, ?2, ?3)";
    return db_exec(tx, sql, values, ARRAY_COUNT(values), NULL, error);
}

err catalog_rows_swap_properties(const struct catalog_rows *rows, str name, str from, str to,
                                 struct error *error)
{
    struct work work = {.rows = rows, .name.namespace_name = name, .from = from, .text = to};
    return db_transact(rows->db, swap_properties_body, &work, error);
}

static err drop_namespace_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct work *work = context;
    AUTO_ARENA struct arena *scratch = arena_create(4 * MIB);
    struct db_rows found = {0};
    TRY(query_namespace(tx, work->rows, scratch, work->text, &found, error));
    if (found.row_count == 0) {
        return namespace_missing(work->text, error);
    }
    bool children = found.row_count > 1 || !str_equal(db_text(&found, 0, 0), work->text);
    const struct db_value values[] = {DB_T(work->rows->warehouse), DB_T(work->text)};
    struct db_rows tables = {0};
    TRY(db_query(tx, scratch,
                 "SELECT name FROM catalog_table WHERE warehouse = ?1 AND namespace = ?2 LIMIT 1",
                 values, ARRAY_COUNT(values), &tables, error));
    if (children || tables.row_count > 0) {
        return error_set(error, CONFLICT, ERROR_INVALID_REQUEST, "Namespace %s is not empty",
                         show_namespace(work->text).text);
    }
    return db_exec(tx, "DELETE FROM catalog_namespace WHERE warehouse = ?1 AND name = ?2", values,
                   ARRAY_COUNT(values), NULL, error);
}

err catalog_rows_drop_namespace(const struct catalog_rows *rows, str name, struct error *error)
{
    struct work work = {.rows = rows, .text = name};
    return db_transact(rows->db, drop_namespace_body, &work, error);
}

static err list_namespaces_body(struct db_tx *tx, void *context, struct error *error)
{
    struct work *work = context;
    const struct db_value values[] = {DB_T(work->rows->warehouse)};
    return db_query(tx, work->arena,
                    "SELECT name FROM catalog_namespace WHERE warehouse = ?1 ORDER BY name", values,
                    ARRAY_COUNT(values), &work->found, error);
}

err catalog_rows_list_namespaces(const struct catalog_rows *rows, struct arena *arena,
                                 struct catalog_names *out_names, struct error *error)
{
    struct work work = {.rows = rows, .arena = arena};
    TRY(db_read(rows->db, list_namespaces_body, &work, error));
    return names_from(arena, &work.found, out_names, error);
}
