/* Updates of schemas, partition specs and sort orders.
 *
 * An equal one is used again under its id; a new one gets the highest id plus 1. "-1" in a set-…
 * means the one last added in the same request. */
#include "base/assert.h"
#include "table/metadata_private.h"

MUST_USE static err layout_invalid(struct error *error, const char *what)
{
    return error_set(error, INVALID, ERROR_INVALID_REQUEST, "%s", what);
}

static i64 layout_highest(const json_t *items, const char *key, i64 at_least)
{
    i64 highest = at_least;
    for (size_t i = 0; i < json_array_size(items); i++) {
        highest = num_max_i64(highest, document_i64_or(json_array_get(items, i), key, -1));
    }
    return highest;
}

/* ---- schemas ---- */

static bool layout_needs_v3(enum type_kind kind)
{
    return kind == TYPE_TIMESTAMP_NS || kind == TYPE_TIMESTAMPTZ_NS || kind == TYPE_UNKNOWN ||
           kind == TYPE_VARIANT || kind == TYPE_GEOMETRY || kind == TYPE_GEOGRAPHY;
}

MUST_USE static err layout_check_version(const struct type *root, i64 version, struct error *error)
{
    struct schema_walk walk;
    schema_walk_begin(&walk, root);
    for (const struct field *field = schema_walk_next(&walk); field != NULL && version < 3;
         field = schema_walk_next(&walk)) {
        if (layout_needs_v3(field->type.kind)) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "Invalid schema for v%lld: Invalid type for %.*s: %s is not supported "
                             "until v3",
                             (long long)version, STR_ARG(field->name),
                             schema_kind_word(field->type.kind));
        }
        if (field->initial_default.data != NULL || field->write_default.data != NULL) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "Invalid schema for v%lld: Invalid default for %.*s: non-null "
                             "default is not supported until v3",
                             (long long)version, STR_ARG(field->name));
        }
    }
    return OK;
}

static bool layout_may_identify(const struct field *field)
{
    return field->required && !type_is_nested(&field->type) && field->type.kind != TYPE_FLOAT &&
           field->type.kind != TYPE_DOUBLE;
}

/* Identifier fields are required, simple, no floats, and inside required structs only. */
MUST_USE static err layout_check_identifier(const struct type *root, i64 id, struct error *error)
{
    bool required[SCHEMA_DEPTH_MAX + 2] = {true};
    struct schema_walk walk;
    schema_walk_begin(&walk, root);
    for (const struct field *field = schema_walk_next(&walk); field != NULL;
         field = schema_walk_next(&walk)) {
        bool in_struct = walk.types[walk.depth]->kind == TYPE_STRUCT && required[walk.depth];
        required[walk.depth + 1] = in_struct && field->required;
        if (field->id != id) {
            continue;
        }
        if (!in_struct || !layout_may_identify(field)) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "Cannot add field %.*s as an identifier field", STR_ARG(field->name));
        }
        return OK;
    }
    return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                     "Cannot add fieldId %lld as an identifier field: field does not exist",
                     (long long)id);
}

err metadata_check_schema(const json_t *document, const struct schema *schema, i64 version,
                          struct error *error)
{
    TRY(schema_check_unique(&schema->root, error));
    TRY(layout_check_version(&schema->root, version, error));
    const json_t *identifiers = json_object_get(document, "identifier-field-ids");
    for (size_t i = 0; i < json_array_size(identifiers); i++) {
        i64 id = json_integer_value(json_array_get(identifiers, i));
        TRY(layout_check_identifier(&schema->root, id, error));
    }
    return OK;
}

/* Equal identifier sets; both are short lists without repeats. */
static bool layout_same_identifiers(const json_t *a, const json_t *b)
{
    const json_t *left = json_object_get(a, "identifier-field-ids");
    const json_t *right = json_object_get(b, "identifier-field-ids");
    size_t count = json_array_size(left);
    if (count != json_array_size(right)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        for (size_t j = 0; j < count; j++) {
            found = found || json_equal(json_array_get(left, i), json_array_get(right, j)) != 0;
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

/* The id of a schema of the same fields in the same form; -1: none. */
MUST_USE static err layout_find_schema(const struct change *change, const json_t *document,
                                       const struct schema *schema, i64 *out_id,
                                       struct error *error)
{
    const json_t *schemas = json_object_get(change->root, "schemas");
    json_t *wanted = schema_type_to_json(&schema->root);
    i64 id = -1;
    err result = OK;
    for (size_t i = 0; i < json_array_size(schemas) && id == -1 && result == OK; i++) {
        const json_t *item = json_array_get(schemas, i);
        struct arena_mark mark = arena_mark(change->arena);
        struct schema present = {0};
        result = schema_from_json(change->arena, item, &present, error);
        if (result == OK) {
            json_t *found = schema_type_to_json(&present.root);
            if (json_equal(found, wanted) && layout_same_identifiers(item, document)) {
                id = present.id;
            }
            json_decref(found);
        }
        arena_reset_to(change->arena, mark);
    }
    json_decref(wanted);
    *out_id = id;
    return result;
}

static bool layout_partition_uses(const json_t *specs, const struct field *column)
{
    for (size_t i = 0; i < json_array_size(specs); i++) {
        const json_t *fields = json_object_get(json_array_get(specs, i), "fields");
        for (size_t j = 0; j < json_array_size(fields); j++) {
            const json_t *field = json_array_get(fields, j);
            if (str_equal(document_text(field, "name"), column->name) &&
                document_i64_or(field, "source-id", -1) != column->id) {
                return true;
            }
        }
    }
    return false;
}

/* A column that is new may not take a partition field's name. */
MUST_USE static err layout_check_new_names(const struct change *change, const struct schema *schema,
                                           struct error *error)
{
    struct schema present = {0};
    const json_t *specs = json_object_get(change->root, "partition-specs");
    if (document_i64_or(change->root, "current-schema-id", -1) != -1) {
        TRY(metadata_schema(change->arena, metadata_of(change->root), &present, error));
    }
    for (size_t i = 0; i < schema->root.field_count; i++) {
        const struct field *column = &schema->root.fields[i];
        if (type_field(&present.root, column->name) == NULL &&
            layout_partition_uses(specs, column)) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "Cannot add column %.*s: a partition field has this name",
                             STR_ARG(column->name));
        }
    }
    return OK;
}

err change_add_schema(struct change *change, const json_t *update, struct error *error)
{
    const json_t *document = json_object_get(update, "schema");
    struct schema schema = {0};
    TRY(schema_from_json(change->arena, document, &schema, error));
    i64 version = document_i64_or(change->root, "format-version", 0);
    TRY(metadata_check_schema(document, &schema, version, error));
    TRY(layout_check_new_names(change, &schema, error));
    i64 id = -1;
    TRY(layout_find_schema(change, document, &schema, &id, error));
    if (id == -1) {
        json_t *schemas = document_array(change->root, "schemas");
        id = layout_highest(schemas, "schema-id", -1) + 1;
        json_t *copy = document_copy(document);
        document_set_i64(copy, "schema-id", id);
        document_append(schemas, copy);
        change->changed = true;
    }
    i64 last_column = document_i64_or(change->root, "last-column-id", 0);
    i64 highest = schema_highest_id(&schema.root);
    if (highest > last_column) { /* never down, nested ids included */
        document_set_i64(change->root, "last-column-id", highest);
        change->changed = true;
    }
    change->last_added_schema = (i32)id;
    return OK;
}

/* Sets `member` to the id that the update names under `key`, or to `last_added` for -1. */
MUST_USE static err layout_set_current(struct change *change, const json_t *update, const char *key,
                                       const char *member, const char *list, const char *id_key,
                                       i32 last_added, struct error *error)
{
    i64 id = 0;
    if (!document_i64(update, key, &id)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "update without %s", key);
    }
    if (id == -1 && last_added == -1) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "Cannot set last added %s: none has been added", key);
    }
    id = id == -1 ? last_added : id;
    if (document_find(json_object_get(change->root, list), id_key, id) == NULL) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "Cannot set %s to unknown id: %lld",
                         member, (long long)id);
    }
    i64 present = 0;
    if (!document_i64(change->root, member, &present) || present != id) {
        document_set_i64(change->root, member, id);
        change->changed = true;
    }
    return OK;
}

err change_set_current_schema(struct change *change, const json_t *update, struct error *error)
{
    return layout_set_current(change, update, "schema-id", "current-schema-id", "schemas",
                              "schema-id", change->last_added_schema, error);
}

/* Removes the items whose id is in the update's `ids_key`; the one in use stays (400). */
MUST_USE static err layout_remove(struct change *change, const json_t *update, const char *ids_key,
                                  const char *list, const char *id_key, const char *in_use,
                                  struct error *error)
{
    const json_t *ids = json_object_get(update, ids_key);
    json_t *items = document_array(change->root, list);
    i64 used = document_i64_or(change->root, in_use, -1);
    if (!json_is_array(ids)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "update without %s", ids_key);
    }
    for (size_t i = 0; i < json_array_size(ids); i++) {
        i64 id = json_integer_value(json_array_get(ids, i));
        if (id == used) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST, "Cannot remove the %s: %lld",
                             in_use, (long long)id);
        }
        const json_t *item = document_find(items, id_key, id);
        if (item != NULL) {
            json_array_remove(items, document_index(items, item));
            change->changed = true;
        }
    }
    return OK;
}

err change_remove_schemas(struct change *change, const json_t *update, struct error *error)
{
    return layout_remove(change, update, "schema-ids", "schemas", "schema-id", "current-schema-id",
                         error);
}

err change_remove_specs(struct change *change, const json_t *update, struct error *error)
{
    return layout_remove(change, update, "spec-ids", "partition-specs", "spec-id",
                         "default-spec-id", error);
}

MUST_USE static err layout_current_schema(const struct change *change, struct schema *out_schema,
                                          struct error *error)
{
    if (document_i64_or(change->root, "current-schema-id", -1) == -1) {
        return layout_invalid(error, "there is no current schema yet");
    }
    return metadata_schema(change->arena, metadata_of(change->root), out_schema, error);
}

/* ---- partition specs ---- */

/* The transform as text, to compare those we do not know too. */
static str layout_transform(const json_t *field)
{
    return document_text(field, "transform");
}

static bool layout_same_source(const json_t *a, const json_t *b)
{
    return document_i64_or(a, "source-id", -1) == document_i64_or(b, "source-id", -2) &&
           str_equal(layout_transform(a), layout_transform(b));
}

static bool layout_same_spec(const json_t *a, const json_t *b)
{
    const json_t *left = json_object_get(a, "fields");
    const json_t *right = json_object_get(b, "fields");
    size_t count = json_array_size(left);
    bool same = count == json_array_size(right);
    for (size_t i = 0; i < count && same; i++) {
        const json_t *x = json_array_get(left, i);
        const json_t *y = json_array_get(right, i);
        same = layout_same_source(x, y) &&
               str_equal(document_text(x, "name"), document_text(y, "name"));
    }
    return same;
}

/* The id that an equal field has in any spec; 0: none. */
static i64 layout_field_id(const json_t *specs, const json_t *field)
{
    for (size_t i = 0; i < json_array_size(specs); i++) {
        const json_t *fields = json_object_get(json_array_get(specs, i), "fields");
        for (size_t j = 0; j < json_array_size(fields); j++) {
            const json_t *other = json_array_get(fields, j);
            if (layout_same_source(field, other)) {
                return document_i64_or(other, "field-id", 0);
            }
        }
    }
    return 0;
}

i64 metadata_number_spec(json_t *spec, const json_t *specs, i64 last_id)
{
    json_t *fields = json_object_get(spec, "fields");
    for (size_t i = 0; i < json_array_size(fields); i++) {
        last_id = num_max_i64(last_id, document_i64_or(json_array_get(fields, i), "field-id", 0));
    }
    for (size_t i = 0; i < json_array_size(fields); i++) {
        json_t *field = json_array_get(fields, i);
        if (document_i64_or(field, "field-id", 0) > 0) {
            continue;
        }
        i64 id = layout_field_id(specs, field);
        document_set_i64(field, "field-id", id > 0 ? id : ++last_id);
    }
    return last_id;
}

MUST_USE static err layout_check_spec(const struct change *change, const json_t *document,
                                      struct error *error)
{
    struct schema schema = {0};
    struct partition_spec spec = {0};
    TRY(layout_current_schema(change, &schema, error));
    TRY(partition_from_json(change->arena, document, &spec, error));
    return partition_check(&spec, &schema.root, error);
}

/* Version 1 numbers a spec's fields by their order. */
MUST_USE static err layout_check_v1_spec(const struct change *change, const json_t *spec,
                                         struct error *error)
{
    const json_t *fields = json_object_get(spec, "fields");
    bool ordered = true;
    for (size_t i = 0; i < json_array_size(fields); i++) {
        i64 id = document_i64_or(json_array_get(fields, i), "field-id", 0);
        ordered = ordered && id == METADATA_PARTITION_ID_FIRST + (i64)i;
    }
    bool first = document_i64_or(change->root, "format-version", 0) == 1;
    return ordered || !first
               ? OK
               : layout_invalid(error, "Spec does not use sequential IDs that are required in v1");
}

err change_add_spec(struct change *change, const json_t *update, struct error *error)
{
    const json_t *document = json_object_get(update, "spec");
    TRY(layout_check_spec(change, document, error));
    json_t *specs = document_array(change->root, "partition-specs");
    for (size_t i = 0; i < json_array_size(specs); i++) {
        const json_t *present = json_array_get(specs, i);
        if (layout_same_spec(present, document)) {
            change->last_added_spec = (i32)document_i64_or(present, "spec-id", 0);
            return OK;
        }
    }
    i64 id = layout_highest(specs, "spec-id", -1) + 1;
    i64 last = document_i64_or(change->root, "last-partition-id", METADATA_PARTITION_ID_FIRST - 1);
    json_t *copy = json_object();
    document_set_i64(copy, "spec-id", id);
    document_set(copy, "fields", document_copy(json_object_get(document, "fields")));
    last = metadata_number_spec(copy, specs, last);
    document_append(specs, copy);
    TRY(layout_check_v1_spec(change, copy, error));
    document_set_i64(change->root, "last-partition-id", last);
    change->last_added_spec = (i32)id;
    change->changed = true;
    return layout_check_spec(change, copy, error);
}

err change_set_default_spec(struct change *change, const json_t *update, struct error *error)
{
    return layout_set_current(change, update, "spec-id", "default-spec-id", "partition-specs",
                              "spec-id", change->last_added_spec, error);
}

/* ---- sort orders ---- */

static bool layout_order_field_valid(const json_t *field)
{
    str direction = document_text(field, "direction");
    str nulls = document_text(field, "null-order");
    i32 parameter = 0;
    return (str_equal(direction, STR("asc")) || str_equal(direction, STR("desc"))) &&
           (str_equal(nulls, STR("nulls-first")) || str_equal(nulls, STR("nulls-last"))) &&
           partition_transform_parse(layout_transform(field), &parameter) != PARTITION_OTHER;
}

err metadata_check_order(const json_t *order, const struct type *root, struct error *error)
{
    const json_t *fields = json_object_get(order, "fields");
    if (!json_is_array(fields)) {
        return layout_invalid(error, "sort order: no fields");
    }
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);
        i32 source = 0;
        if (!layout_order_field_valid(field)) {
            return layout_invalid(error, "sort order: a field has transform, source-id, direction "
                                         "and null-order");
        }
        if (!document_i32(field, "source-id", &source) || schema_find(root, source) == NULL) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "Cannot find source column for sort field: %d", source);
        }
    }
    return OK;
}

static bool layout_same_order(const json_t *a, const json_t *b)
{
    const json_t *left = json_object_get(a, "fields");
    const json_t *right = json_object_get(b, "fields");
    size_t count = json_array_size(left);
    bool same = count == json_array_size(right);
    for (size_t i = 0; i < count && same; i++) {
        const json_t *x = json_array_get(left, i);
        const json_t *y = json_array_get(right, i);
        same = layout_same_source(x, y) &&
               str_equal(document_text(x, "direction"), document_text(y, "direction")) &&
               str_equal(document_text(x, "null-order"), document_text(y, "null-order"));
    }
    return same;
}

err change_add_sort_order(struct change *change, const json_t *update, struct error *error)
{
    const json_t *document = json_object_get(update, "sort-order");
    struct schema schema = {0};
    TRY(layout_current_schema(change, &schema, error));
    TRY(metadata_check_order(document, &schema.root, error));
    json_t *orders = document_array(change->root, "sort-orders");
    for (size_t i = 0; i < json_array_size(orders); i++) {
        const json_t *present = json_array_get(orders, i);
        if (layout_same_order(present, document)) {
            change->last_added_order = (i32)document_i64_or(present, "order-id", 0);
            return OK;
        }
    }
    const json_t *fields = json_object_get(document, "fields");
    /* 0 is the unsorted order and no other. */
    i64 id = json_array_size(fields) == 0 ? 0 : layout_highest(orders, "order-id", 0) + 1;
    json_t *copy = json_object();
    document_set_i64(copy, "order-id", id);
    document_set(copy, "fields", document_copy(fields));
    document_append(orders, copy);
    change->last_added_order = (i32)id;
    change->changed = true;
    return OK;
}

err change_set_default_sort_order(struct change *change, const json_t *update, struct error *error)
{
    return layout_set_current(change, update, "sort-order-id", "default-sort-order-id",
                              "sort-orders", "order-id", change->last_added_order, error);
}
