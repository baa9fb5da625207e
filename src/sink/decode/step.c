#include "sink/decode/step.h"

/* Functions here walk a schema's tree by calling themselves: its depth is bounded where a schema is
 * read. */

/* A name that JSON must escape has no one way to stand in a line. */
static void step_make_key(struct scan_key *key, str name)
{
    if (name.size > SCAN_KEY_BYTES - 3) {
        return;
    }
    for (size_t i = 0; i < name.size; i++) {
        u8 byte = (u8)name.data[i];
        if (byte < 0x20 || byte == '"' || byte == '\\') {
            return;
        }
    }
    key->size = (u32)name.size + 3;
    key->padding = key->size < 32 ? UINT32_MAX << key->size : 0;
    key->bytes[0] = '"';
    memcpy(key->bytes + 1, name.data, name.size);
    key->bytes[name.size + 1] = '"';
    key->bytes[name.size + 2] = ':';
}

static void step_make_type(struct decode_step *step)
{
    const struct type *type = &step->plan->field->type;
    step->kind = type->kind;
    step->scale = type->scale;
    step->whole = type->precision - type->scale;
    step->nanoseconds = type->kind == TYPE_TIMESTAMP_NS || type->kind == TYPE_TIMESTAMPTZ_NS;
    step->zoned = type->kind == TYPE_TIMESTAMPTZ || type->kind == TYPE_TIMESTAMPTZ_NS;
}

static bool step_make(struct arena *arena, const struct decode_plan *plan, struct column *column,
                      struct decode_step *out_step);

static bool step_make_fields(struct arena *arena, struct decode_step *step, struct column *columns)
{
    size_t count = step->plan->child_count;
    /* One more, which is no field and matches no name: the first foretold where there are none. */
    step->fields = arena_array(arena, count + 1, sizeof(*step->fields));
    if (step->fields == NULL) {
        return false;
    }
    step->field_count = (u32)count;
    step->first[0] = step->first[1] = step->fields;
    for (size_t i = 0; i < count; i++) {
        if (!step_make(arena, &step->plan->children[i], &columns[i], &step->fields[i])) {
            return false;
        }
        step->fields[i].next[0] = step->fields[i].next[1] = &step->fields[i + 1];
        step->sent_count += step->fields[i].own ? 0 : 1;
    }
    return true;
}

static bool step_make(struct arena *arena, const struct decode_plan *plan, struct column *column,
                      struct decode_step *out_step)
{
    *out_step = (struct decode_step){
        .column = column,
        .plan = plan,
        .nullable = !plan->field->required && plan->role == DECODE_ORDINARY,
        .own = plan->role == DECODE_INGEST || plan->role == DECODE_CAPTURE,
        .date = "1970-01-01",
    };
    if (!out_step->own) {
        step_make_key(&out_step->key, plan->field->name);
    }
    step_make_type(out_step);
    return plan->child_count == 0 || step_make_fields(arena, out_step, column->children);
}

bool decode_step_make_root(struct arena *arena, const struct decode_plan *root,
                           struct column *columns, struct decode_step *out_step)
{
    *out_step = (struct decode_step){.plan = root, .kind = TYPE_STRUCT};
    return step_make_fields(arena, out_step, columns);
}
