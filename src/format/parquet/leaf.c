#include "format/parquet/leaf.h"

#include "base/assert.h"

/* Functions here walk a schema's tree by calling themselves: its depth is bounded where a schema is
 * read, and again by LEAF_DEPTH_MAX. */

enum {
    LEAF_DEPTH_MAX = 64,
    DECIMAL_INT32_PRECISION_MAX = 9,
    DECIMAL_INT64_PRECISION_MAX = 18,
    DECIMAL_PRECISION_MAX = 38,
};

enum leaf_physical leaf_physical_of(const struct type *type)
{
    switch (type->kind) {
    case TYPE_BOOLEAN:
        return LEAF_BOOLEAN;
    case TYPE_INT:
    case TYPE_DATE:
        return LEAF_INT32;
    case TYPE_LONG:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_TIMESTAMP_NS:
    case TYPE_TIMESTAMPTZ_NS:
        return LEAF_INT64;
    case TYPE_FLOAT:
        return LEAF_FLOAT;
    case TYPE_DOUBLE:
        return LEAF_DOUBLE;
    case TYPE_DECIMAL:
        if (type->precision <= DECIMAL_INT32_PRECISION_MAX) {
            return LEAF_INT32;
        }
        return type->precision <= DECIMAL_INT64_PRECISION_MAX ? LEAF_INT64 : LEAF_FIXED;
    case TYPE_UUID:
    case TYPE_FIXED:
        return LEAF_FIXED;
    case TYPE_STRING:
    case TYPE_BINARY:
    case TYPE_UNKNOWN:
    case TYPE_STRUCT:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_VARIANT:
    case TYPE_GEOMETRY:
    case TYPE_GEOGRAPHY:
        return LEAF_BYTE_ARRAY;
    }
    return LEAF_BYTE_ARRAY;
}

/* Fewest bytes n with 10^precision <= 2^(8n - 1). */
static size_t decimal_width(i32 precision)
{
    assert(precision >= 1);
    assert(precision <= DECIMAL_PRECISION_MAX);
    u128 largest = 1;
    for (i32 i = 0; i < precision; i++) {
        largest *= 10;
    }
    size_t width = 1;
    while (largest > (u128)1 << (8 * width - 1)) {
        width++;
    }
    return width;
}

size_t leaf_width_of(const struct type *type)
{
    switch (leaf_physical_of(type)) {
    case LEAF_BOOLEAN:
        return 1;
    case LEAF_INT32:
    case LEAF_FLOAT:
        return 4;
    case LEAF_INT64:
    case LEAF_DOUBLE:
        return 8;
    case LEAF_FIXED:
        return type->kind == TYPE_DECIMAL ? decimal_width(type->precision) : column_width(type);
    case LEAF_BYTE_ARRAY:
        return 0;
    }
    return 0;
}

bool leaf_is_stored(const struct field *field)
{
    if (field->type.kind == TYPE_UNKNOWN) {
        return false;
    }
    if (!type_is_nested(&field->type)) {
        return true;
    }
    for (size_t i = 0; i < field->type.field_count; i++) {
        if (leaf_is_stored(&field->type.fields[i])) {
            return true;
        }
    }
    return false;
}

/* Where the walk is, and what it found. */
struct leaf_walk {
    struct arena *arena;
    size_t path[LEAF_DEPTH_MAX];
    size_t depth;
    str names[2 * LEAF_DEPTH_MAX];
    size_t name_count;
    i32 definition;
    i32 repetition;
    struct leaf *leaves;
    size_t count;
    size_t capacity;
    struct error *error;
};

MUST_USE static err leaf_add(struct leaf_walk *walk, const struct field *field)
{
    if (walk->count == walk->capacity) {
        size_t next = walk->capacity * 2 + 16;
        struct leaf *leaves = arena_grow(walk->arena, walk->leaves,
                                         walk->capacity * sizeof(*leaves), next * sizeof(*leaves));
        if (leaves == NULL) {
            return error_memory(walk->error);
        }
        walk->leaves = leaves;
        walk->capacity = next;
    }
    size_t *path = arena_array(walk->arena, walk->depth, sizeof(*path));
    str *names = arena_array(walk->arena, walk->name_count, sizeof(*names));
    if (path == NULL || names == NULL) {
        return error_memory(walk->error);
    }
    memcpy(path, walk->path, walk->depth * sizeof(*path));
    memcpy(names, walk->names, walk->name_count * sizeof(*names));
    walk->leaves[walk->count++] = (struct leaf){
        .field = field,
        .path = path,
        .depth = walk->depth,
        .names = names,
        .name_count = walk->name_count,
        .definition_max = walk->definition,
        .repetition_max = walk->repetition,
        .physical = leaf_physical_of(&field->type),
        .width = leaf_width_of(&field->type),
    };
    return OK;
}

MUST_USE static err leaf_walk_field(struct leaf_walk *walk, const struct field *field,
                                    size_t index);

MUST_USE static err leaf_walk_children(struct leaf_walk *walk, const struct field *field)
{
    size_t count = 0;
    const struct field *parts = type_parts(&field->type, &count);
    bool repeats = type_repeats(&field->type);
    if (repeats) {
        walk->names[walk->name_count++] = field->type.kind == TYPE_LIST ? STR("list")
                                                                        : STR("key_value");
        walk->definition++;
        walk->repetition++;
    }
    for (size_t i = 0; i < count; i++) {
        TRY(leaf_walk_field(walk, &parts[i], i));
    }
    if (repeats) {
        walk->name_count--;
        walk->definition--;
        walk->repetition--;
    }
    return OK;
}

static err leaf_walk_field(struct leaf_walk *walk, const struct field *field, size_t index)
{
    enum type_kind kind = field->type.kind;
    if (kind == TYPE_GEOMETRY || kind == TYPE_GEOGRAPHY) {
        return error_set(walk->error, INVALID, ERROR_UNSUPPORTED_COLUMN_TYPE,
                         "column %.*s has a type that cannot be written", STR_ARG(field->name));
    }
    if (!leaf_is_stored(field)) {
        return OK;
    }
    if (walk->depth == LEAF_DEPTH_MAX) {
        return error_set(walk->error, INVALID, ERROR_UNSUPPORTED_COLUMN_TYPE,
                         "column %.*s is nested too deeply", STR_ARG(field->name));
    }
    walk->path[walk->depth++] = index;
    walk->names[walk->name_count++] = field->name;
    walk->definition += !field->required;
    bool is_group = type_is_nested(&field->type) || kind == TYPE_VARIANT;
    TRY(is_group ? leaf_walk_children(walk, field) : leaf_add(walk, field));
    walk->definition -= !field->required;
    walk->name_count--;
    walk->depth--;
    return OK;
}

err leaf_list(struct arena *arena, const struct field *fields, size_t field_count,
              struct leaf **out_leaves, size_t *out_count, struct error *error)
{
    struct leaf_walk walk = {.arena = arena, .error = error};
    for (size_t i = 0; i < field_count; i++) {
        TRY(leaf_walk_field(&walk, &fields[i], i));
    }
    *out_leaves = walk.leaves;
    *out_count = walk.count;
    return OK;
}
