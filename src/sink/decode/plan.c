#include "sink/decode/plan.h"

#include "base/assert.h"
#include "format/json.h"

/* Functions here walk a schema's tree by calling themselves: its depth is bounded where a schema is
 * read. */

static err plan_refuse_type(const struct field *field, str type_text, struct error *error)
{
    err refused = error_set(error, INVALID, ERROR_UNSUPPORTED_COLUMN_TYPE,
                            "column %.*s has type %.*s, which no sink writes", STR_ARG(field->name),
                            STR_ARG(type_text));
    error_field_text(error, "column", field->name);
    error_field_text(error, "type", type_text);
    return refused;
}

static bool plan_type_is_refused(enum type_kind kind)
{
    return kind == TYPE_GEOMETRY || kind == TYPE_GEOGRAPHY;
}

/* JSON null is no default. */
static bool default_is_there(str json)
{
    if (json.data == NULL) {
        return false;
    }
    struct json_reader reader;
    json_reader_init(&reader, json);
    return json_next(&reader) != JSON_TOKEN_NULL;
}

static err plan_make_default(struct arena *arena, struct decode_plan *plan, struct error *error)
{
    const struct field *field = plan->field;
    plan->has_default = default_is_there(field->write_default);
    if (!plan->has_default || field->type.kind == TYPE_STRUCT) {
        return OK;
    }
    struct column *column = arena_alloc(arena, sizeof(*column));
    if (column == NULL || !column_init(column, arena, field)) {
        return error_memory(error);
    }
    plan->default_value = column;
    return decode_default_append(column, field->write_default, error);
}

static bool plan_make_names(struct arena *arena, struct decode_plan *plan)
{
    plan->by_name = map_create(arena, plan->child_count);
    if (plan->by_name == NULL) {
        return false;
    }
    for (size_t i = 0; i < plan->child_count; i++) {
        bool is_new = false;
        u64 *place = map_put(plan->by_name, plan->children[i].field->name, &is_new);
        if (place == NULL) {
            return false;
        }
        assert(is_new);
        *place = i;
    }
    return true;
}

static err plan_make_children(struct arena *arena, struct decode_plan *plan, struct error *error)
{
    const struct type *type = &plan->field->type;
    plan->child_count = type->field_count;
    plan->children = arena_array(arena, type->field_count, sizeof(*plan->children));
    plan->seen = arena_array(arena, type->field_count, sizeof(*plan->seen));
    plan->member = arena_array(arena, type->field_count, sizeof(*plan->member));
    if (plan->children == NULL || plan->seen == NULL || plan->member == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < type->field_count; i++) {
        TRY(decode_plan_make(arena, &type->fields[i], &plan->children[i], error));
    }
    if (type->kind == TYPE_STRUCT && !plan_make_names(arena, plan)) {
        return error_memory(error);
    }
    return OK;
}

err decode_plan_make(struct arena *arena, const struct field *field, struct decode_plan *out_plan,
                     struct error *error)
{
    struct decode_plan plan = {.field = field};
    plan.type_text = type_text_short(arena, &field->type);
    if (plan.type_text.data == NULL) {
        return error_memory(error);
    }
    if (plan_type_is_refused(field->type.kind)) {
        return plan_refuse_type(field, plan.type_text, error);
    }
    if (type_is_nested(&field->type)) {
        TRY(plan_make_children(arena, &plan, error));
    }
    TRY(plan_make_default(arena, &plan, error));
    *out_plan = plan;
    return OK;
}

u32 decode_plan_find(const struct decode_plan *plan, str name, u32 expected)
{
    if (expected < plan->child_count && str_equal(plan->children[expected].field->name, name)) {
        return expected;
    }
    if (plan->by_name == NULL) {
        /* The two names of a map's entry. */
        u32 other = expected == 0 ? 1 : 0;
        return str_equal(plan->children[other].field->name, name) ? other : DECODE_NONE;
    }
    const u64 *index = map_get(plan->by_name, name);
    return index != NULL ? (u32)*index : DECODE_NONE;
}
