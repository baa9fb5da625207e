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

static u32 slot_of(const struct decode_plan *plan, str name)
{
    u64 first = 0;
    if (name.size >= 8) {
        return decode_plan_slot(plan, num_load_u64(name.data),
                                num_load_u64(name.data + name.size - 8), name.size);
    }
    if (name.size > 0) {
        memcpy(&first, name.data, name.size);
    }
    return decode_plan_slot(plan, first, 0, name.size);
}

/* Its place in by_name, or the empty one where it belongs. */
static u32 find_slot(const struct decode_plan *plan, str name)
{
    u32 mask = UINT32_MAX >> (plan->by_name_shift - 32);
    u32 slot = slot_of(plan, name);
    while (plan->by_name[slot] != 0 &&
           !str_equal(plan->children[plan->by_name[slot] - 1].field->name, name)) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

static bool plan_make_names(struct arena *arena, struct decode_plan *plan)
{
    u32 bits = 3;
    while (((size_t)1 << bits) < 4 * plan->child_count) {
        bits++;
    }
    plan->by_name_shift = 64 - bits;
    plan->by_name = arena_array(arena, (size_t)1 << bits, sizeof(*plan->by_name));
    for (size_t i = 0; plan->by_name != NULL && i < plan->child_count; i++) {
        u32 slot = find_slot(plan, plan->children[i].field->name);
        assert(plan->by_name[slot] == 0);
        plan->by_name[slot] = (u32)(i + 1);
    }
    return plan->by_name != NULL;
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
    u32 place = plan->by_name[find_slot(plan, name)];
    return place != 0 ? place - 1 : DECODE_NONE;
}
