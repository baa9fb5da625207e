#include "format/avro_schema.h"

#include "base/assert.h"
#include "base/map.h"
#include "base/utf8.h"
#include "format/json.h"

enum {
    AVRO_NAMED_EXPECTED = 16,
    NODES_EXPECTED = 1024,
    AVRO_FIXED_SIZE_MAX = AVRO_BLOCK_BYTES_MAX
};

/* The schema's JSON, read once: a token, and the one behind the whole value that it begins. */
struct node {
    enum json_token token;
    str text;
    size_t after;
};

struct parser {
    struct arena *arena;
    struct node *nodes; /* the first stands for what is not there */
    size_t node_count;
    size_t node_capacity;
    struct map *named; /* full name to index in types */
    struct avro_type **types;
    size_t type_count;
    size_t type_capacity;
    struct error *error;
};

/* What stands in a schema's or field's object, by node. */
struct members {
    size_t type;
    size_t name;
    size_t space;
    size_t fields;
    size_t items;
    size_t values;
    size_t symbols;
    size_t size;
    size_t field_id;
    size_t key_id;
    size_t value_id;
};
enum { NOTHING = 0, ROOT = 1 };

MUST_USE static err type_parse(struct parser *parser, size_t node, str space, int depth,
                               const struct avro_type **out_type);

MUST_USE static err schema_corrupt(struct parser *parser, const char *why)
{
    return error_set(parser->error, CORRUPT, ERROR_INTERNAL, "an Avro schema %s", why);
}

/* ---- JSON ---- */

MUST_USE static err node_add(struct parser *parser, enum json_token token, str text)
{
    if (parser->node_count == parser->node_capacity) {
        size_t next = parser->node_capacity * 2 + NODES_EXPECTED;
        struct node *nodes = arena_grow(parser->arena, parser->nodes,
                                        parser->node_capacity * sizeof(*nodes),
                                        next * sizeof(*nodes));
        if (nodes == NULL) {
            return error_memory(parser->error);
        }
        parser->nodes = nodes;
        parser->node_capacity = next;
    }
    size_t index = parser->node_count++;
    parser->nodes[index] = (struct node){token, text, index + 1};
    return OK;
}

MUST_USE static err nodes_read(struct parser *parser, str json)
{
    struct json_reader reader;
    size_t open[JSON_DEPTH_MAX + 1];
    size_t depth = 0;
    json_reader_init(&reader, json);
    TRY(node_add(parser, JSON_TOKEN_INVALID, (str){0}));
    enum json_token token = utf8_valid(json) ? json_next(&reader) : JSON_TOKEN_INVALID;
    while (token != JSON_TOKEN_END) {
        if (token == JSON_TOKEN_INVALID) {
            return schema_corrupt(parser, "is not JSON");
        }
        if (token == JSON_TOKEN_OBJECT || token == JSON_TOKEN_ARRAY) {
            assert(depth < ARRAY_COUNT(open));
            open[depth++] = parser->node_count;
        }
        TRY(node_add(parser, token, reader.text));
        if (token == JSON_TOKEN_OBJECT_END || token == JSON_TOKEN_ARRAY_END) {
            assert(depth > 0);
            parser->nodes[open[--depth]].after = parser->node_count;
        }
        token = json_next(&reader);
    }
    return node_add(parser, JSON_TOKEN_END, (str){0});
}

static enum json_token token_of(const struct parser *parser, size_t node)
{
    return parser->nodes[node].token;
}

MUST_USE static err text_parse(struct parser *parser, size_t node, str *out_text)
{
    if (token_of(parser, node) != JSON_TOKEN_STRING) {
        return schema_corrupt(parser, "has something else where a name must be");
    }
    str token = parser->nodes[node].text;
    buf text = buf_create(parser->arena, 0, token.size); /* for one with escapes */
    str result = json_unescape(&text, token, NULL);
    if (result.data == NULL) {
        return error_memory(parser->error);
    }
    *out_text = result;
    return OK;
}

static bool integer_parse(const struct parser *parser, size_t node, i64 *out_value)
{
    return token_of(parser, node) == JSON_TOKEN_NUMBER &&
           str_to_i64(parser->nodes[node].text, out_value);
}

MUST_USE static err id_parse(struct parser *parser, size_t node, i32 *out_id)
{
    i64 id = -1;
    bool good = node == NOTHING || integer_parse(parser, node, &id);
    if (!good || id < INT32_MIN || id > INT32_MAX) {
        return schema_corrupt(parser, "has an id that is no 32-bit number");
    }
    *out_id = (i32)id;
    return OK;
}

static void members_put(struct members *members, str name, size_t value)
{
    const struct {
        str name;
        size_t *place;
    } places[] = {
        {STR("\"type\""), &members->type},         {STR("\"name\""), &members->name},
        {STR("\"namespace\""), &members->space},   {STR("\"fields\""), &members->fields},
        {STR("\"items\""), &members->items},       {STR("\"values\""), &members->values},
        {STR("\"symbols\""), &members->symbols},   {STR("\"size\""), &members->size},
        {STR("\"field-id\""), &members->field_id}, {STR("\"key-id\""), &members->key_id},
        {STR("\"value-id\""), &members->value_id},
    };
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        if (str_equal(name, places[i].name)) {
            *places[i].place = value;
            return;
        }
    }
}

MUST_USE static err members_parse(struct parser *parser, size_t node, struct members *out_members)
{
    struct members members = {0};
    if (token_of(parser, node) != JSON_TOKEN_OBJECT) {
        return schema_corrupt(parser, "has something else where an object must be");
    }
    for (size_t at = node + 1; token_of(parser, at) == JSON_TOKEN_NAME;) {
        size_t value = at + 1;
        members_put(&members, parser->nodes[at].text, value);
        at = parser->nodes[value].after;
    }
    *out_members = members;
    return OK;
}

/* The nodes of an array's elements. */
MUST_USE static err elements_parse(struct parser *parser, size_t node, size_t **out_elements,
                                   size_t *out_count)
{
    if (token_of(parser, node) != JSON_TOKEN_ARRAY) {
        return schema_corrupt(parser, "has something else where an array must be");
    }
    size_t end = parser->nodes[node].after - 1;
    size_t count = 0;
    for (size_t at = node + 1; at < end; at = parser->nodes[at].after) {
        count++;
    }
    size_t *elements = arena_array(parser->arena, count, sizeof(*elements));
    if (elements == NULL) {
        return error_memory(parser->error);
    }
    size_t at = node + 1;
    for (size_t i = 0; i < count; i++) {
        elements[i] = at;
        at = parser->nodes[at].after;
    }
    *out_elements = elements;
    *out_count = count;
    return OK;
}

/* ---- names ---- */

static const struct {
    str name;
    enum avro_type_kind kind;
} primitives[] = {
    {STR_INIT("null"), AVRO_TYPE_NULL},     {STR_INIT("boolean"), AVRO_TYPE_BOOLEAN},
    {STR_INIT("int"), AVRO_TYPE_INT},       {STR_INIT("long"), AVRO_TYPE_LONG},
    {STR_INIT("float"), AVRO_TYPE_FLOAT},   {STR_INIT("double"), AVRO_TYPE_DOUBLE},
    {STR_INIT("bytes"), AVRO_TYPE_BYTES},   {STR_INIT("string"), AVRO_TYPE_STRING},
    {STR_INIT("fixed"), AVRO_TYPE_FIXED},   {STR_INIT("enum"), AVRO_TYPE_ENUM},
    {STR_INIT("record"), AVRO_TYPE_RECORD}, {STR_INIT("array"), AVRO_TYPE_ARRAY},
    {STR_INIT("map"), AVRO_TYPE_MAP},
};

static bool kind_of(str name, enum avro_type_kind *out_kind)
{
    for (size_t i = 0; i < ARRAY_COUNT(primitives); i++) {
        if (str_equal(name, primitives[i].name)) {
            *out_kind = primitives[i].kind;
            return true;
        }
    }
    return false;
}

/* `name` itself when it has a dot or there is no namespace. */
MUST_USE static err full_name(struct parser *parser, str name, str space, str *out_name)
{
    *out_name = name;
    if (space.size > 0 && str_find_byte(name, '.') < 0) {
        *out_name = str_format(parser->arena, "%.*s.%.*s", STR_ARG(space), STR_ARG(name));
    }
    return out_name->data != NULL ? OK : error_memory(parser->error);
}

MUST_USE static err named_find(struct parser *parser, str name, str space,
                               const struct avro_type **out_type)
{
    str full = {0};
    TRY(full_name(parser, name, space, &full));
    u64 *index = map_get(parser->named, full);
    if (index == NULL) {
        index = map_get(parser->named, name);
    }
    if (index == NULL) {
        return schema_corrupt(parser, "refers to a type that is not defined before");
    }
    *out_type = parser->types[*index];
    return OK;
}

/* Records `type` under its name and answers the namespace that holds inside it. */
MUST_USE static err named_add(struct parser *parser, const struct members *members, str space,
                              struct avro_type *type, str *out_space)
{
    str name = {0};
    TRY(text_parse(parser, members->name, &name));
    if (members->space != NOTHING) {
        TRY(text_parse(parser, members->space, &space));
    }
    i64 dot = str_find_last_byte(name, '.');
    *out_space = dot >= 0 ? str_slice(name, 0, (size_t)dot) : space;
    str full = {0};
    TRY(full_name(parser, name, space, &full));

    if (parser->type_count == parser->type_capacity) {
        size_t next = parser->type_capacity * 2 + AVRO_NAMED_EXPECTED;
        struct avro_type **types = arena_grow(parser->arena, parser->types,
                                              parser->type_capacity * sizeof(void *),
                                              next * sizeof(void *));
        if (types == NULL) {
            return error_memory(parser->error);
        }
        parser->types = types;
        parser->type_capacity = next;
    }
    bool is_new = false;
    u64 *index = map_put(parser->named, full, &is_new);
    if (index == NULL) {
        return error_memory(parser->error);
    }
    if (!is_new) {
        return schema_corrupt(parser, "defines a name twice");
    }
    *index = parser->type_count;
    parser->types[parser->type_count++] = type;
    return OK;
}

/* ---- types ---- */

MUST_USE static err types_alloc(struct parser *parser, size_t count, struct avro_type *type)
{
    type->types = arena_array(parser->arena, count, sizeof(struct avro_type *));
    if (type->types == NULL) {
        return error_memory(parser->error);
    }
    type->count = count;
    return OK;
}

MUST_USE static err record_parse(struct parser *parser, const struct members *members, str space,
                                 int depth, struct avro_type *type)
{
    size_t *elements = NULL;
    size_t count = 0;
    TRY(elements_parse(parser, members->fields, &elements, &count));
    TRY(types_alloc(parser, count, type));
    struct avro_field *fields = arena_array(parser->arena, count, sizeof(*fields));
    if (fields == NULL) {
        return error_memory(parser->error);
    }
    type->fields = fields;
    for (size_t i = 0; i < count; i++) {
        struct members field = {0};
        TRY(members_parse(parser, elements[i], &field));
        TRY(text_parse(parser, field.name, &fields[i].name));
        TRY(id_parse(parser, field.field_id, &fields[i].field_id));
        TRY(type_parse(parser, field.type, space, depth + 1, &type->types[i]));
    }
    return OK;
}

MUST_USE static err enum_parse(struct parser *parser, const struct members *members,
                               struct avro_type *type)
{
    size_t *elements = NULL;
    size_t count = 0;
    TRY(elements_parse(parser, members->symbols, &elements, &count));
    str *symbols = arena_array(parser->arena, count, sizeof(*symbols));
    if (symbols == NULL) {
        return error_memory(parser->error);
    }
    for (size_t i = 0; i < count; i++) {
        TRY(text_parse(parser, elements[i], &symbols[i]));
    }
    type->symbols = symbols;
    type->count = count;
    return OK;
}

MUST_USE static err fixed_parse(struct parser *parser, const struct members *members,
                                struct avro_type *type)
{
    if (!integer_parse(parser, members->size, &type->size) || type->size < 0 ||
        type->size > AVRO_FIXED_SIZE_MAX) {
        return schema_corrupt(parser, "has a fixed type without a good size");
    }
    return OK;
}

MUST_USE static err map_parse(struct parser *parser, const struct members *members, str space,
                              int depth, struct avro_type *type)
{
    struct avro_field *fields = arena_array(parser->arena, 2, sizeof(*fields));
    if (fields == NULL) {
        return error_memory(parser->error);
    }
    fields[0].name = STR("key");
    fields[1].name = STR("value");
    TRY(id_parse(parser, members->key_id, &fields[0].field_id));
    TRY(id_parse(parser, members->value_id, &fields[1].field_id));
    type->fields = fields;
    TRY(types_alloc(parser, 1, type));
    return type_parse(parser, members->values, space, depth + 1, &type->types[0]);
}

MUST_USE static err union_parse(struct parser *parser, size_t node, str space, int depth,
                                struct avro_type *type)
{
    size_t *elements = NULL;
    size_t count = 0;
    TRY(elements_parse(parser, node, &elements, &count));
    TRY(types_alloc(parser, count, type));
    for (size_t i = 0; i < count; i++) {
        TRY(type_parse(parser, elements[i], space, depth + 1, &type->types[i]));
        if (type->types[i]->kind == AVRO_TYPE_UNION) {
            return schema_corrupt(parser, "has a union directly in a union");
        }
    }
    return OK;
}

MUST_USE static err kind_parse(struct parser *parser, const struct members *members, str space,
                               int depth, struct avro_type *type)
{
    switch (type->kind) {
    case AVRO_TYPE_FIXED:
        TRY(named_add(parser, members, space, type, &space));
        return fixed_parse(parser, members, type);
    case AVRO_TYPE_ENUM:
        TRY(named_add(parser, members, space, type, &space));
        return enum_parse(parser, members, type);
    case AVRO_TYPE_RECORD:
        TRY(named_add(parser, members, space, type, &space));
        return record_parse(parser, members, space, depth, type);
    case AVRO_TYPE_ARRAY:
        TRY(types_alloc(parser, 1, type));
        return type_parse(parser, members->items, space, depth + 1, &type->types[0]);
    case AVRO_TYPE_MAP:
        return map_parse(parser, members, space, depth, type);
    case AVRO_TYPE_NULL:
    case AVRO_TYPE_BOOLEAN:
    case AVRO_TYPE_INT:
    case AVRO_TYPE_LONG:
    case AVRO_TYPE_FLOAT:
    case AVRO_TYPE_DOUBLE:
    case AVRO_TYPE_BYTES:
    case AVRO_TYPE_STRING:
    case AVRO_TYPE_UNION:
        return OK;
    }
    return OK;
}

/* A name or an object; `members` has the name as its type in both cases. */
MUST_USE static err named_or_kind_parse(struct parser *parser, const struct members *members,
                                        str space, int depth, struct avro_type *type,
                                        const struct avro_type **out_type)
{
    str name = {0};
    TRY(text_parse(parser, members->type, &name));
    if (!kind_of(name, &type->kind)) {
        return named_find(parser, name, space, out_type);
    }
    TRY(kind_parse(parser, members, space, depth, type));
    *out_type = type;
    return OK;
}

static err type_parse(struct parser *parser, size_t node, str space, int depth,
                      const struct avro_type **out_type)
{
    /* Unions, and {"type": {…}} around a type, take a level here but none in a value. */
    if (depth > 3 * AVRO_DEPTH_MAX) {
        return schema_corrupt(parser, "is nested too deeply");
    }
    if (node == NOTHING) {
        return schema_corrupt(parser, "has something without a type");
    }
    struct avro_type *type = arena_alloc(parser->arena, sizeof(*type));
    if (type == NULL) {
        return error_memory(parser->error);
    }
    if (token_of(parser, node) == JSON_TOKEN_ARRAY) {
        type->kind = AVRO_TYPE_UNION;
        *out_type = type;
        return union_parse(parser, node, space, depth, type);
    }
    struct members members = {.type = node};
    if (token_of(parser, node) != JSON_TOKEN_STRING) {
        TRY(members_parse(parser, node, &members));
        if (token_of(parser, members.type) != JSON_TOKEN_STRING) {
            return type_parse(parser, members.type, space, depth + 1, out_type);
        }
    }
    return named_or_kind_parse(parser, &members, space, depth, type, out_type);
}

err avro_schema_parse(struct arena *arena, str json, const struct avro_type **out_type,
                      struct error *error)
{
    assert(arena != NULL);
    struct parser parser = {.arena = arena, .error = error};
    TRY(nodes_read(&parser, json));
    parser.named = map_create(arena, AVRO_NAMED_EXPECTED);
    if (parser.named == NULL) {
        return error_memory(error);
    }
    const struct avro_type *type = NULL;
    TRY(type_parse(&parser, ROOT, (str){0}, 0, &type));
    *out_type = type;
    return OK;
}
