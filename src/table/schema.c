#include "table/schema.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/utf8.h"
#include "table/document.h"
#include "table/schema_text.h"
#include "table/schema_walk.h"

enum { SCHEMA_CHECK_BYTES_MAX = 256 * MIB };

/* ---- from JSON ---- */

/* A type that is still to be read; the newest first. */
struct schema_pending {
    const json_t *document;
    struct type *type;
    str name; /* of the field it belongs to */
    i32 depth;
    struct schema_pending *next;
};

struct schema_reader {
    struct arena *arena;
    struct schema_pending *pending;
    size_t field_count;
    struct error *error;
};

MUST_USE static err schema_fail(struct schema_reader *reader, str name, const char *what)
{
    return error_set(reader->error, INVALID, ERROR_INVALID_REQUEST, "schema: field \"%.*s\": %s",
                     STR_ARG(name), what);
}

MUST_USE static err schema_push(struct schema_reader *reader, const json_t *document,
                                struct type *type, str name, i32 depth)
{
    struct schema_pending *pending = arena_alloc(reader->arena, sizeof(*pending));
    if (pending == NULL) {
        return error_memory(reader->error);
    }
    *pending = (struct schema_pending){document, type, name, depth, reader->pending};
    reader->pending = pending;
    return OK;
}

MUST_USE static err schema_read_text(struct schema_reader *reader, const json_t *value,
                                     str *out_text)
{
    str text = str_copy(reader->arena, document_str(value));
    if (text.data == NULL) {
        return error_memory(reader->error);
    }
    *out_text = text;
    return OK;
}

MUST_USE static err schema_read_default(struct schema_reader *reader, const json_t *object,
                                        const char *key, str *out_text)
{
    const json_t *value = json_object_get(object, key);
    if (value == NULL || json_is_null(value)) {
        return OK;
    }
    return document_print(reader->arena, value, out_text, reader->error);
}

MUST_USE static err schema_read_field(struct schema_reader *reader, const json_t *document,
                                      str parent, i32 depth, struct field *out_field)
{
    const json_t *name = json_object_get(document, "name");
    const json_t *required = json_object_get(document, "required");
    if (!json_is_string(name)) {
        return schema_fail(reader, parent, "a field inside has no name");
    }
    TRY(schema_read_text(reader, name, &out_field->name));
    if (!document_i32(document, "id", &out_field->id)) {
        return schema_fail(reader, out_field->name, "no id");
    }
    if (!json_is_boolean(required)) {
        return schema_fail(reader, out_field->name, "required is not true or false");
    }
    out_field->required = json_is_true(required);
    const json_t *doc = json_object_get(document, "doc");
    if (json_is_string(doc)) {
        TRY(schema_read_text(reader, doc, &out_field->doc));
    }
    TRY(schema_read_default(reader, document, "initial-default", &out_field->initial_default));
    TRY(schema_read_default(reader, document, "write-default", &out_field->write_default));
    return schema_push(reader, json_object_get(document, "type"), &out_field->type, out_field->name,
                       depth + 1);
}

MUST_USE static err schema_read_fields(struct schema_reader *reader, struct type *type, str name,
                                       size_t count)
{
    reader->field_count += count;
    if (reader->field_count > SCHEMA_FIELDS_MAX) {
        return error_set(reader->error, INVALID, ERROR_INVALID_REQUEST,
                         "schema: field \"%.*s\": more than %d fields in all", STR_ARG(name),
                         SCHEMA_FIELDS_MAX);
    }
    type->fields = arena_array(reader->arena, count, sizeof(*type->fields));
    if (type->fields == NULL) {
        return error_memory(reader->error);
    }
    type->field_count = count;
    return OK;
}

MUST_USE static err schema_check_siblings(struct schema_reader *reader, const struct type *type)
{
    struct arena_mark mark = arena_mark(reader->arena);
    struct map *names = map_create(reader->arena, type->field_count);
    for (size_t i = 0; i < type->field_count; i++) {
        bool is_new = false;
        if (names == NULL || map_put(names, type->fields[i].name, &is_new) == NULL) {
            return error_memory(reader->error);
        }
        if (!is_new) {
            return schema_fail(reader, type->fields[i].name, "two fields of this name");
        }
    }
    arena_reset_to(reader->arena, mark);
    return OK;
}

MUST_USE static err schema_read_struct(struct schema_reader *reader,
                                       const struct schema_pending *from)
{
    const json_t *fields = json_object_get(from->document, "fields");
    if (!json_is_array(fields)) {
        return schema_fail(reader, from->name, "a struct without fields");
    }
    from->type->kind = TYPE_STRUCT;
    TRY(schema_read_fields(reader, from->type, from->name, json_array_size(fields)));
    /* Pushed last to first, so that they are read first to last. */
    for (size_t i = from->type->field_count; i-- > 0;) {
        TRY(schema_read_field(reader, json_array_get(fields, i), from->name, from->depth,
                              &from->type->fields[i]));
    }
    return schema_check_siblings(reader, from->type);
}

/* One child of a list or map, as "element", "key" or "value". */
MUST_USE static err schema_read_child(struct schema_reader *reader,
                                      const struct schema_pending *from, size_t index,
                                      const char *name, const char *id_key,
                                      const char *required_key)
{
    struct field *field = &from->type->fields[index];
    field->name = str_from(name);
    field->required = true;
    if (!document_i32(from->document, id_key, &field->id)) {
        return schema_fail(reader, from->name, "a list or map without its ids");
    }
    if (required_key != NULL) {
        const json_t *required = json_object_get(from->document, required_key);
        if (!json_is_boolean(required)) {
            return schema_fail(reader, from->name, "a list or map without its required marks");
        }
        field->required = json_is_true(required);
    }
    return schema_push(reader, json_object_get(from->document, name), &field->type, from->name,
                       from->depth + 1);
}

MUST_USE static err schema_read_nested(struct schema_reader *reader,
                                       const struct schema_pending *from)
{
    str word = document_text(from->document, "type");
    if (from->depth > SCHEMA_DEPTH_MAX) {
        return schema_fail(reader, from->name, "types are nested too deep");
    }
    if (str_equal(word, STR("struct"))) {
        return schema_read_struct(reader, from);
    }
    if (str_equal(word, STR("list"))) {
        from->type->kind = TYPE_LIST;
        TRY(schema_read_fields(reader, from->type, from->name, 1));
        return schema_read_child(reader, from, 0, "element", "element-id", "element-required");
    }
    if (str_equal(word, STR("map"))) {
        from->type->kind = TYPE_MAP;
        TRY(schema_read_fields(reader, from->type, from->name, 2));
        TRY(schema_read_child(reader, from, 1, "value", "value-id", "value-required"));
        return schema_read_child(reader, from, 0, "key", "key-id", NULL);
    }
    return schema_fail(reader, from->name, "a type that is neither struct, list nor map");
}

MUST_USE static err schema_read_type(struct schema_reader *reader,
                                     const struct schema_pending *from)
{
    if (json_is_object(from->document)) {
        return schema_read_nested(reader, from);
    }
    str text = document_str(from->document);
    if (text.data == NULL) {
        return schema_fail(reader, from->name, "no type");
    }
    struct type type = {0};
    if (schema_parse_type(reader->arena, text, &type, NULL, NULL) != OK || type_is_nested(&type)) {
        return error_set(reader->error, INVALID, ERROR_INVALID_REQUEST,
                         "schema: field \"%.*s\": \"%.*s\" is no type", STR_ARG(from->name),
                         STR_ARG(text));
    }
    *from->type = type;
    return OK;
}

err schema_from_json(struct arena *arena, const json_t *document, struct schema *out_schema,
                     struct error *error)
{
    struct schema_reader reader = {.arena = arena, .error = error};
    struct schema schema = {0};
    i64 id = document_i64_or(document, "schema-id", 0);
    if (!str_equal(document_text(document, "type"), STR("struct")) || id < 0 || id > INT32_MAX) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "schema: a schema is a struct with a schema-id");
    }
    schema.id = (i32)id;
    TRY(schema_push(&reader, document, &schema.root, STR(""), 0));
    while (reader.pending != NULL) {
        const struct schema_pending *from = reader.pending;
        reader.pending = from->next;
        TRY(schema_read_type(&reader, from));
    }
    TRY(schema_check_types(&schema.root, error));
    *out_schema = schema;
    return OK;
}

/* ---- to JSON ---- */

static json_t *schema_simple_to_json(const struct type *type)
{
    json_t *value = NULL;
    if (type->kind == TYPE_DECIMAL) {
        value = json_sprintf("decimal(%d, %d)", type->precision, type->scale);
    } else if (type->kind == TYPE_FIXED) {
        value = json_sprintf("fixed[%d]", type->length);
    } else {
        value = json_sprintf("%s%.*s", schema_kind_word(type->kind), STR_ARG(type->parameters));
    }
    assert(value != NULL);
    return value;
}

/* The object of a nested type without its children, or the string of another. */
static json_t *schema_type_head(const struct type *type)
{
    if (!type_is_nested(type)) {
        return schema_simple_to_json(type);
    }
    json_t *node = json_object();
    document_set_text(node, "type", str_from(schema_kind_word(type->kind)));
    if (type->kind == TYPE_STRUCT) {
        document_set(node, "fields", json_array());
    }
    return node;
}

static void schema_set_default(json_t *node, const char *key, str text)
{
    if (text.data == NULL) {
        return;
    }
    json_t *value = json_loadb(text.data, text.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert(value != NULL);
    document_set(node, key, value);
}

static void schema_set_struct_field(json_t *parent, const struct field *field, json_t *type)
{
    json_t *node = json_object();
    document_set_i64(node, "id", field->id);
    document_set_text(node, "name", field->name);
    document_set(node, "required", json_boolean(field->required));
    document_set(node, "type", type);
    if (field->doc.data != NULL) {
        document_set_text(node, "doc", field->doc);
    }
    schema_set_default(node, "initial-default", field->initial_default);
    schema_set_default(node, "write-default", field->write_default);
    document_append(json_object_get(parent, "fields"), node);
}

/* Puts a field, whose type's JSON is given, into the object of the type it belongs to. */
static void schema_set_field(json_t *parent, const struct type *of, const struct field *field,
                             json_t *type)
{
    if (of->kind == TYPE_STRUCT) {
        schema_set_struct_field(parent, field, type);
    } else if (of->kind == TYPE_LIST) {
        document_set_i64(parent, "element-id", field->id);
        document_set(parent, "element", type);
        document_set(parent, "element-required", json_boolean(field->required));
    } else if (field == &of->fields[0]) {
        document_set_i64(parent, "key-id", field->id);
        document_set(parent, "key", type);
    } else {
        document_set_i64(parent, "value-id", field->id);
        document_set(parent, "value", type);
        document_set(parent, "value-required", json_boolean(field->required));
    }
}

json_t *schema_type_to_json(const struct type *type)
{
    json_t *result = schema_type_head(type);
    json_t *nodes[SCHEMA_DEPTH_MAX + 2] = {result};
    struct schema_walk walk;
    schema_walk_begin(&walk, type);
    for (const struct field *field = schema_walk_next(&walk); field != NULL;
         field = schema_walk_next(&walk)) {
        const struct type *of = walk.types[walk.depth];
        json_t *node = schema_type_head(&field->type);
        schema_set_field(nodes[walk.depth], of, field, node);
        nodes[walk.depth + 1] = node;
    }
    return result;
}

json_t *schema_to_json(const struct schema *schema)
{
    json_t *fields = schema_type_to_json(&schema->root);
    json_t *result = json_object();
    document_set_text(result, "type", STR("struct"));
    document_set_i64(result, "schema-id", schema->id);
    document_set(result, "fields", json_incref(json_object_get(fields, "fields")));
    json_decref(fields);
    return result;
}

/* ---- ids ---- */

static void schema_assign_children(const struct type *type, i32 *last_id)
{
    for (size_t i = 0; i < type->field_count; i++) {
        assert(*last_id < INT32_MAX);
        type->fields[i].id = ++*last_id;
    }
}

void schema_assign_ids(struct type *root, i32 *last_id)
{
    schema_assign_children(root, last_id);
    struct schema_walk walk;
    schema_walk_begin(&walk, root);
    for (const struct field *field = schema_walk_next(&walk); field != NULL;
         field = schema_walk_next(&walk)) {
        schema_assign_children(&field->type, last_id);
    }
}

i32 schema_highest_id(const struct type *root)
{
    i32 highest = 0;
    struct schema_walk walk;
    schema_walk_begin(&walk, root);
    for (const struct field *field = schema_walk_next(&walk); field != NULL;
         field = schema_walk_next(&walk)) {
        highest = field->id > highest ? field->id : highest;
    }
    return highest;
}

const struct field *schema_find(const struct type *root, i32 field_id)
{
    struct schema_walk walk;
    schema_walk_begin(&walk, root);
    const struct field *field = schema_walk_next(&walk);
    while (field != NULL && field->id != field_id) {
        field = schema_walk_next(&walk);
    }
    return field;
}

/* ---- checks ---- */

err schema_check_types(const struct type *root, struct error *error)
{
    struct schema_walk walk;
    schema_walk_begin(&walk, root);
    for (const struct field *field = schema_walk_next(&walk); field != NULL;
         field = schema_walk_next(&walk)) {
        if (field->required && field->type.kind == TYPE_UNKNOWN) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "schema: field \"%.*s\": a required unknown", STR_ARG(field->name));
        }
    }
    return OK;
}

/* C0, DEL and C1. `name` is UTF-8. */
static bool schema_name_has_control(str name)
{
    for (size_t i = 0; i < name.size; i++) {
        u8 byte = (u8)name.data[i];
        bool second = i > 0 && (u8)name.data[i - 1] == 0xC2;
        if (byte < 0x20 || byte == 0x7F || (second && byte < 0xA0)) {
            return true;
        }
    }
    return false;
}

err schema_check_names(const struct type *root, struct error *error)
{
    struct schema_walk walk;
    schema_walk_begin(&walk, root);
    for (const struct field *field = schema_walk_next(&walk); field != NULL;
         field = schema_walk_next(&walk)) {
        str name = field->name;
        if (name.size == 0 || name.size > SCHEMA_NAME_BYTES_MAX) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "a name has 1 to %d bytes: \"%.*s\"", SCHEMA_NAME_BYTES_MAX,
                             STR_ARG(name));
        }
        if (!utf8_valid(name) || schema_name_has_control(name)) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "a name is UTF-8 without control characters");
        }
    }
    return schema_check_unique(root, error);
}

struct schema_names {
    struct arena *arena;
    struct map *paths;
    struct map *ids;
    str prefix[SCHEMA_DEPTH_MAX + 2]; /* dotted name of the type at each depth */
};

MUST_USE static err schema_note_path(struct schema_names *names, const struct field *field,
                                     i32 depth, struct error *error)
{
    str prefix = names->prefix[depth];
    str path = field->name;
    if (prefix.size > 0) {
        path = str_format(names->arena, "%.*s.%.*s", STR_ARG(prefix), STR_ARG(field->name));
    }
    bool is_new = false;
    if (path.data == NULL || map_put(names->paths, path, &is_new) == NULL) {
        return error_memory(error);
    }
    if (!is_new) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "schema: multiple fields for name %.*s", STR_ARG(path));
    }
    names->prefix[depth + 1] = path;
    return OK;
}

MUST_USE static err schema_note_id(struct schema_names *names, const struct field *field,
                                   struct error *error)
{
    bool is_new = false;
    if (field->id == 0) { /* not given yet */
        return OK;
    }
    str key = {(const char *)&field->id, sizeof(field->id)};
    if (map_put(names->ids, key, &is_new) == NULL) {
        return error_memory(error);
    }
    if (!is_new) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "schema: multiple fields for id %d: %.*s", field->id,
                         STR_ARG(field->name));
    }
    return OK;
}

err schema_check_unique(const struct type *root, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create(SCHEMA_CHECK_BYTES_MAX);
    struct schema_names names = {.arena = arena,
                                 .paths = map_create(arena, root->field_count),
                                 .ids = map_create(arena, root->field_count)};
    if (names.paths == NULL || names.ids == NULL) {
        return error_memory(error);
    }
    struct schema_walk walk;
    schema_walk_begin(&walk, root);
    for (const struct field *field = schema_walk_next(&walk); field != NULL;
         field = schema_walk_next(&walk)) {
        TRY(schema_note_path(&names, field, walk.depth, error));
        TRY(schema_note_id(&names, field, error));
    }
    return OK;
}
