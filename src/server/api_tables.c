/* Tables: made, listed, shown, documented, dropped, all through the warehouse's catalog. */
#include "base/assert.h"
#include "server/api.h"
#include "sink/ledger.h"
#include "sink/lifecycle.h"

enum { COLUMNS_MAX = 20000, DOCS_TRIES_MAX = 5, TABLES_SHOWN_MAX = 10000 };

struct table_ref {
    const struct warehouse *warehouse;
    struct table_name name;
    str full;
};

/* ---- names ---- */

/* <warehouse>.<namespace>.<table>: the first dot ends the warehouse, the last begins the table. */
static err find_ref(struct api_request *request, str full, struct table_ref *out_ref,
                    struct error *error)
{
    struct call *call = request->call;
    i64 dot = str_find_byte(full, '.');
    if (dot <= 0) {
        return api_invalid(error, "table", "<warehouse>.<namespace>.<table> is wanted");
    }
    struct table_ref ref = {.full = full};
    str rest = str_slice(full, (size_t)dot + 1, full.size);
    TRY(lifecycle_parse_table(call->arena, rest, &ref.name, error));
    str name = str_slice(full, 0, (size_t)dot);
    ref.warehouse = warehouse_get(call->service->warehouses, name);
    if (ref.warehouse == NULL || !str_equal(ref.warehouse->project, call->principal.project)) {
        err result = error_set(error, NOT_FOUND, ERROR_WAREHOUSE_NOT_FOUND,
                               "there is no warehouse %.*s", STR_ARG(name));
        error_hint(error, "`lhbox warehouse list` shows yours");
        return result;
    }
    *out_ref = ref;
    return OK;
}

/* ---- showing ---- */

static json_t *columns_json(struct arena *arena, const struct schema *schema)
{
    json_t *columns = json_array();
    for (size_t i = 0; i < schema->root.field_count; i++) {
        const struct field *field = &schema->root.fields[i];
        json_array_append_new(
            columns, json_pack("{s:o, s:o, s:b, s:o}", "name", api_json_text(field->name), "type",
                               api_json_text(type_text(arena, &field->type)), "required",
                               (int)field->required, "doc", api_json_text(field->doc)));
    }
    return columns;
}

static json_t *partition_json(const struct partition_spec *spec)
{
    json_t *names = json_array();
    for (size_t i = 0; i < spec->count; i++) {
        json_array_append_new(names, api_json_text(spec->fields[i].name));
    }
    return names;
}

static err table_json(struct api_request *request, const struct table_ref *ref,
                      const struct table *table, json_t **out_json, struct error *error)
{
    struct arena *arena = request->call->arena;
    const struct metadata *metadata = table->metadata;
    struct schema schema = {0};
    struct partition_spec spec = {0};
    str hint = {0};
    TRY(metadata_schema(arena, metadata, &schema, error));
    TRY(metadata_spec(arena, metadata, &spec, error));
    TRY(lifecycle_docs_hint(arena, ref->full, metadata, &hint, error));
    json_t *json = json_pack(
        "{s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:O}", "table", api_json_text(ref->full), "uuid",
        api_json_text(metadata_uuid(metadata)), "location",
        api_json_text(metadata_location(metadata)), "metadata_location",
        api_json_text(table->metadata_location), "format_version",
        metadata_format_version(metadata), "columns", columns_json(arena, &schema), "partition",
        partition_json(&spec), "doc", api_json_text(metadata_property(metadata, "comment")),
        "properties", json_object_get(metadata_json(metadata), "properties"));
    if (hint.data != NULL) {
        json_object_set_new(json, "docs_hint", api_json_text(hint));
    }
    *out_json = json;
    return OK;
}

/* ---- creating ---- */

static bool kind_needs_v3(enum type_kind kind)
{
    return kind == TYPE_TIMESTAMP_NS || kind == TYPE_TIMESTAMPTZ_NS || kind == TYPE_UNKNOWN ||
           kind == TYPE_VARIANT || kind == TYPE_GEOMETRY || kind == TYPE_GEOGRAPHY;
}

static err check_column_members(struct arena *arena, const json_t *entry, size_t index,
                                struct error *error)
{
    static const char *const known[] = {"name", "type", "required", "doc"};
    const char *member = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)entry, member, value)
    {
        bool found = false;
        for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
            found = found || str_equal(str_from(member), str_from(known[i]));
        }
        if (!found) {
            error_field_text(error, "path", str_format(arena, "columns[%zu].%.80s", index, member));
            return error_set(error, INVALID, ERROR_UNKNOWN_FIELD,
                             "columns[%zu]: there is no member %.80s", index, member);
        }
    }
    return OK;
}

static err read_column(struct api_request *request, const json_t *entry, i64 format_version,
                       struct field *out_field, struct error *error)
{
    struct field field = {0};
    str type = {0};
    if (!json_is_object(entry)) {
        return api_invalid(error, "columns", "objects with name and type are wanted");
    }
    TRY(api_text(request, entry, "name", API_REQUIRED, &field.name, error));
    TRY(api_text(request, entry, "type", API_REQUIRED, &type, error));
    TRY(api_text(request, entry, "doc", API_OPTIONAL, &field.doc, error));
    TRY(schema_parse_type(request->call->arena, type, &field.type, &field.required, error));
    const json_t *required = json_object_get(entry, "required");
    if (required != NULL && !json_is_boolean(required)) {
        return api_invalid(error, "columns.required", "true or false is wanted");
    }
    field.required = field.required || json_is_true(required);
    if (format_version < 3 && kind_needs_v3(field.type.kind)) {
        return api_invalid(error, "columns.type", "this type needs format_version 3");
    }
    if (field.required && field.type.kind == TYPE_UNKNOWN) {
        return api_invalid(error, "columns.required", "an unknown column is never required");
    }
    *out_field = field;
    return OK;
}

static err read_columns(struct api_request *request, const json_t *body, i64 format_version,
                        struct schema *out_schema, struct error *error)
{
    const json_t *columns = json_object_get(body, "columns");
    size_t count = json_array_size(columns);
    if (!json_is_array(columns) || count == 0 || count > COLUMNS_MAX) {
        return api_invalid(error, "columns", "an array of 1 to 20000 columns is wanted");
    }
    struct schema schema = {.root = {.kind = TYPE_STRUCT, .field_count = count}};
    schema.root.fields = arena_array(request->call->arena, count, sizeof(struct field));
    if (schema.root.fields == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        TRY(check_column_members(request->call->arena, json_array_get(columns, i), i, error));
        TRY(read_column(request, json_array_get(columns, i), format_version, &schema.root.fields[i],
                        error));
    }
    TRY(schema_check_names(&schema.root, error));
    i32 last_id = 0;
    schema_assign_ids(&schema.root, &last_id);
    *out_schema = schema;
    return OK;
}

static err read_partition(const json_t *body, const struct schema *schema, json_t **out_spec,
                          struct error *error)
{
    enum { FIRST_PARTITION_ID = 1000, PARTITIONS_MAX = 100 };
    const json_t *texts = json_object_get(body, "partition");
    if (texts != NULL && (!json_is_array(texts) || json_array_size(texts) > PARTITIONS_MAX)) {
        return api_invalid(error, "partition", "an array of texts as day(ts) is wanted");
    }
    json_t *fields = json_array();
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *text = json_array_get(texts, i);
        json_t *field = NULL;
        str slice = {json_string_value(text), json_string_length(text)};
        err parsed = json_is_string(text)
                         ? partition_parse_text(slice, &schema->root, FIRST_PARTITION_ID + (i32)i,
                                                &field, error)
                         : api_invalid(error, "partition", "texts as day(ts) are wanted");
        if (parsed != OK) {
            json_decref(fields);
            return parsed;
        }
        json_array_append_new(fields, field);
    }
    *out_spec = json_pack("{s:i, s:o}", "spec-id", 0, "fields", fields);
    return OK;
}

static err read_properties(const json_t *body, str doc, i64 format_version, json_t **out_properties,
                           struct error *error)
{
    const json_t *given = json_object_get(body, "properties");
    if (given != NULL && !json_is_object(given)) {
        return api_invalid(error, "properties", "an object of strings is wanted");
    }
    json_t *properties = json_object();
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)given, key, value)
    {
        if (!json_is_string(value) || str_starts(str_from(key), STR("lakehousebox."))) {
            json_decref(properties);
            return api_invalid(error, "properties",
                               "strings are wanted, and no lakehousebox. keys");
        }
        json_object_set(properties, key, value);
    }
    if (doc.data != NULL) {
        json_object_set_new(properties, "comment", api_json_text(doc));
    }
    json_object_set_new(properties, "format-version", json_string(format_version == 3 ? "3" : "2"));
    *out_properties = properties;
    return OK;
}

/* The REST spec's CreateTableRequest out of the body. */
static err create_request(struct api_request *request, const json_t *body, str table_name,
                          json_t **out_request, struct error *error)
{
    i64 format_version = 2;
    str doc = {0};
    struct schema schema = {0};
    json_t *spec = NULL;
    json_t *properties = NULL;
    TRY(api_integer(body, "format_version", API_OPTIONAL, &format_version, error));
    if (format_version != 2 && format_version != 3) {
        return api_invalid(error, "format_version", "2 or 3 is wanted");
    }
    TRY(api_text(request, body, "doc", API_OPTIONAL, &doc, error));
    TRY(read_columns(request, body, format_version, &schema, error));
    TRY(read_properties(body, doc, format_version, &properties, error));
    err result = read_partition(body, &schema, &spec, error);
    if (result != OK) {
        json_decref(properties);
        return result;
    }
    *out_request = json_pack("{s:o, s:o, s:o, s:o}", "name", api_json_text(table_name), "schema",
                             schema_to_json(&schema), "partition-spec", spec, "properties",
                             properties);
    assert(*out_request != NULL);
    return OK;
}

static err create_table(struct api_request *request, const json_t *body, struct table_ref *out_ref,
                        struct table *out_table, struct error *error)
{
    str full = {0};
    json_t *create = NULL;
    TRY(api_text(request, body, "table", API_REQUIRED, &full, error));
    TRY(find_ref(request, full, out_ref, error));
    TRY(create_request(request, body, out_ref->name.name, &create, error));
    const struct catalog *catalog = &out_ref->warehouse->catalog;
    err result = catalog_create_namespace(catalog, out_ref->name.namespace_name, error);
    if (result == OK) {
        result = catalog_create(catalog, request->call->arena, out_ref->name, create, out_table,
                                error);
    }
    json_decref(create);
    return result;
}

err api_table_create(struct api_request *request, struct error *error)
{
    static const char *const known[] = {
        "table", "columns", "format_version", "partition", "properties", "doc", NULL};
    json_t *body = NULL;
    json_t *json = NULL;
    struct table_ref ref = {0};
    AUTO_TABLE struct table table = {0};
    TRY(api_body(request, known, &body, error));
    err result = create_table(request, body, &ref, &table, error);
    json_decref(body);
    TRY(result);
    api_audit_write(request, "table.create", ref.full);
    TRY(table_json(request, &ref, &table, &json, error));
    return api_reply(request, 201, json);
}

/* ---- reading ---- */

static err load(struct api_request *request, struct table_ref *out_ref, struct table *out_table,
                struct error *error)
{
    TRY(find_ref(request, request->parts[0], out_ref, error));
    return catalog_load(&out_ref->warehouse->catalog, request->call->arena, out_ref->name,
                        out_table, error);
}

err api_table_get(struct api_request *request, struct error *error)
{
    struct table_ref ref = {0};
    AUTO_TABLE struct table table = {0};
    json_t *json = NULL;
    TRY(load(request, &ref, &table, error));
    TRY(table_json(request, &ref, &table, &json, error));
    return api_reply(request, 200, json);
}

struct table_names {
    str *names;
    size_t count;
};

static err collect_namespace(struct api_request *request, const struct warehouse *warehouse,
                             str space, struct table_names *names, struct error *error)
{
    struct catalog_names tables = {0};
    TRY(catalog_list_tables(&warehouse->catalog, request->call->arena, space, &tables, error));
    for (size_t i = 0; i < tables.count && names->count < TABLES_SHOWN_MAX; i++) {
        names->names[names->count++] = lifecycle_full_name(request->call->arena, warehouse->name,
                                                           space, tables.names[i]);
    }
    return OK;
}

static err collect_warehouse(struct api_request *request, const struct warehouse *warehouse,
                             struct table_names *names, struct error *error)
{
    str wanted = http_request_parameter(request->call->request, STR("namespace"));
    struct catalog_names spaces = {0};
    TRY(catalog_list_namespaces(&warehouse->catalog, request->call->arena, &spaces, error));
    for (size_t i = 0; i < spaces.count; i++) {
        str dotted = str_copy(request->call->arena, spaces.names[i]);
        char *bytes = (char *)(uintptr_t)dotted.data;
        for (size_t k = 0; k < dotted.size; k++) {
            bytes[k] = bytes[k] == CATALOG_NAMESPACE_SEPARATOR ? '.' : bytes[k];
        }
        if (wanted.data == NULL || str_equal(wanted, dotted)) {
            TRY(collect_namespace(request, warehouse, spaces.names[i], names, error));
        }
    }
    return OK;
}

static json_t *names_page(struct arena *arena, const struct table_names *names, str cursor,
                          size_t limit)
{
    json_t *list = json_array();
    str next = {0};
    size_t shown = 0;
    size_t i = 0;
    while (cursor.size > 0 && i < names->count && !str_equal(names->names[i], cursor)) {
        i++;
    }
    i = cursor.size > 0 ? i + 1 : 0;
    for (; i < names->count && shown < limit; i++, shown++) {
        json_array_append_new(list, json_pack("{s:o}", "table", api_json_text(names->names[i])));
        next = names->names[i];
    }
    json_t *json = json_pack("{s:o}", "tables", list);
    if (i < names->count) {
        json_object_set_new(json, "next_cursor", api_json_text(str_copy(arena, next)));
    }
    return json;
}

err api_table_list(struct api_request *request, struct error *error)
{
    struct call *call = request->call;
    size_t limit = 0;
    TRY(api_limit(request, &limit, error));
    str wanted = http_request_parameter(call->request, STR("warehouse"));
    const struct warehouse **all = arena_array(call->arena, WAREHOUSES_MAX,
                                               sizeof(const struct warehouse *));
    struct table_names names = {arena_array(call->arena, TABLES_SHOWN_MAX, sizeof(str)), 0};
    if (all == NULL || names.names == NULL) {
        return error_memory(error);
    }
    size_t count = warehouse_list(call->service->warehouses, call->principal.project, all,
                                  WAREHOUSES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (wanted.data == NULL || str_equal(wanted, all[i]->name)) {
            TRY(collect_warehouse(request, all[i], &names, error));
        }
    }
    return api_reply(request, 200, names_page(call->arena, &names, api_cursor(request), limit));
}

/* ---- dropping ---- */

static err check_no_sink(struct api_request *request, const struct table_ref *ref,
                         struct error *error)
{
    struct call *call = request->call;
    struct ledger_sink *sinks = NULL;
    size_t count = 0;
    str after = STR("");
    do {
        TRY(ledger_list_sinks(&call->service->db, call->arena, call->principal.project,
                              ref->warehouse->name, false, after, API_LIMIT_MAX, &sinks, &count,
                              error));
        for (size_t i = 0; i < count; i++) {
            if (str_equal(sinks[i].namespace_name, ref->name.namespace_name) &&
                str_equal(sinks[i].table_name, ref->name.name)) {
                error_field_text(error, "sink_id", sinks[i].id);
                err result = error_set(error, CONFLICT, ERROR_TABLE_HAS_SINK,
                                       "the sink %.*s stands on the table", STR_ARG(sinks[i].name));
                error_hint(error, "delete it first: lhbox sink delete %.*s",
                           STR_ARG(sinks[i].name));
                return result;
            }
            after = sinks[i].id;
        }
    } while (count == API_LIMIT_MAX);
    return OK;
}

err api_table_delete(struct api_request *request, struct error *error)
{
    struct table_ref ref = {0};
    TRY(find_ref(request, request->parts[0], &ref, error));
    TRY(check_no_sink(request, &ref, error));
    TRY(catalog_drop(&ref.warehouse->catalog, ref.name, error));
    api_audit_write(request, "table.delete", ref.full);
    return api_reply(request, 204, NULL);
}

/* ---- documenting ---- */

static err apply_docs(const json_t *body, struct schema *schema, bool *out_changed,
                      struct error *error)
{
    const json_t *columns = json_object_get(body, "columns");
    const char *name = NULL;
    json_t *doc = NULL;
    if (columns != NULL && !json_is_object(columns)) {
        return api_invalid(error, "columns", "an object of name and description is wanted");
    }
    json_object_foreach((json_t *)(uintptr_t)columns, name, doc)
    {
        struct field *found = NULL;
        for (size_t i = 0; i < schema->root.field_count; i++) {
            if (str_equal(schema->root.fields[i].name, str_from(name))) {
                found = &schema->root.fields[i];
            }
        }
        if (found == NULL || !json_is_string(doc)) {
            return api_invalid(error, name,
                               found == NULL ? "there is no such column" : "a string is wanted");
        }
        found->doc = (str){json_string_value(doc), json_string_length(doc)};
        *out_changed = true;
    }
    return OK;
}

static err docs_commit(struct api_request *request, const json_t *body, const struct table *table,
                       json_t **out_commit, struct error *error)
{
    struct schema schema = {0};
    bool changed = false;
    str doc = {0};
    TRY(metadata_schema(request->call->arena, table->metadata, &schema, error));
    TRY(apply_docs(body, &schema, &changed, error));
    TRY(api_text(request, body, "doc", API_OPTIONAL, &doc, error));
    json_t *updates = json_array();
    if (doc.data != NULL) {
        json_array_append_new(updates, json_pack("{s:s, s:{s:o}}", "action", "set-properties",
                                                 "updates", "comment", api_json_text(doc)));
    }
    if (changed) {
        json_array_append_new(updates,
                              json_pack("{s:s, s:o, s:i}", "action", "add-schema", "schema",
                                        schema_to_json(&schema), "last-column-id",
                                        metadata_last_column_id(table->metadata)));
        json_array_append_new(
            updates, json_pack("{s:s, s:i}", "action", "set-current-schema", "schema-id", -1));
    }
    *out_commit = json_pack(
        "{s:[{s:s, s:o}, {s:s, s:i}], s:o}", "requirements", "type", "assert-table-uuid", "uuid",
        api_json_text(metadata_uuid(table->metadata)), "type", "assert-current-schema-id",
        "current-schema-id", schema.id, "updates", updates);
    return OK;
}

static err document(struct api_request *request, const json_t *body, struct table_ref *out_ref,
                    struct table *out_after, struct error *error)
{
    for (int tries = 0;; tries++) {
        AUTO_TABLE struct table table = {0};
        json_t *commit = NULL;
        TRY(load(request, out_ref, &table, error));
        TRY(docs_commit(request, body, &table, &commit, error));
        error_clear(error);
        err result = catalog_commit(&out_ref->warehouse->catalog, request->call->arena,
                                    out_ref->name, commit, out_after, error);
        json_decref(commit);
        if (result != CONFLICT || tries == DOCS_TRIES_MAX) {
            return result;
        }
    }
}

err api_table_docs(struct api_request *request, struct error *error)
{
    static const char *const known[] = {"doc", "columns", NULL};
    json_t *body = NULL;
    json_t *json = NULL;
    struct table_ref ref = {0};
    AUTO_TABLE struct table after = {0};
    TRY(api_body(request, known, &body, error));
    err result = document(request, body, &ref, &after, error);
    json_decref(body);
    TRY(result);
    api_audit_write(request, "table.document", ref.full);
    TRY(table_json(request, &ref, &after, &json, error));
    return api_reply(request, 200, json);
}
