#include "format/type.h"

#include "base/buf.h"

const struct field *type_field(const struct type *type, str name)
{
    for (size_t i = 0; i < type->field_count; i++) {
        if (str_equal(type->fields[i].name, name)) {
            return &type->fields[i];
        }
    }
    return NULL;
}

const struct field *type_parts(const struct type *type, size_t *out_count)
{
    static const struct field variant[] = {
        {.id = TYPE_NO_ID,
         .required = true,
         .name = STR_INIT("metadata"),
         .type = {.kind = TYPE_BINARY}},
        {.id = TYPE_NO_ID,
         .required = true,
         .name = STR_INIT("value"),
         .type = {.kind = TYPE_BINARY}},
    };
    if (type->kind == TYPE_VARIANT) {
        *out_count = ARRAY_COUNT(variant);
        return variant;
    }
    *out_count = type->field_count;
    return type->fields;
}

/* The word that begins the textual form. */
static str type_word(enum type_kind kind)
{
    switch (kind) {
    case TYPE_BOOLEAN:
        return STR("boolean");
    case TYPE_INT:
        return STR("int");
    case TYPE_LONG:
        return STR("long");
    case TYPE_FLOAT:
        return STR("float");
    case TYPE_DOUBLE:
        return STR("double");
    case TYPE_DECIMAL:
        return STR("decimal");
    case TYPE_DATE:
        return STR("date");
    case TYPE_TIME:
        return STR("time");
    case TYPE_TIMESTAMP:
        return STR("timestamp");
    case TYPE_TIMESTAMPTZ:
        return STR("timestamptz");
    case TYPE_TIMESTAMP_NS:
        return STR("timestamp_ns");
    case TYPE_TIMESTAMPTZ_NS:
        return STR("timestamptz_ns");
    case TYPE_STRING:
        return STR("string");
    case TYPE_UUID:
        return STR("uuid");
    case TYPE_FIXED:
        return STR("fixed");
    case TYPE_BINARY:
        return STR("binary");
    case TYPE_UNKNOWN:
        return STR("unknown");
    case TYPE_STRUCT:
        return STR("struct");
    case TYPE_LIST:
        return STR("list");
    case TYPE_MAP:
        return STR("map");
    case TYPE_VARIANT:
        return STR("variant");
    case TYPE_GEOMETRY:
        return STR("geometry");
    case TYPE_GEOGRAPHY:
        return STR("geography");
    }
    return STR("");
}

static void type_write_scalar(buf *out, const struct type *type)
{
    buf_append(out, type_word(type->kind));
    if (type->kind == TYPE_DECIMAL) {
        buf_append_format(out, "(%d,%d)", type->precision, type->scale);
    } else if (type->kind == TYPE_FIXED) {
        buf_append_format(out, "[%d]", type->length);
    } else {
        buf_append(out, type->parameters);
    }
}

static bool name_is_plain(str name)
{
    for (size_t i = 0; i < name.size; i++) {
        char byte = name.data[i];
        char lower = (char)(byte | 0x20);
        if (!(lower >= 'a' && lower <= 'z') && !(byte >= '0' && byte <= '9') && byte != '_') {
            return false;
        }
    }
    return name.size > 0;
}

/* Walks by calling itself: a schema's depth is bounded where it is read. */
static void type_write(buf *out, const struct type *type)
{
    if (!type_is_nested(type)) {
        type_write_scalar(out, type);
        return;
    }
    buf_append(out, type_word(type->kind));
    buf_append_byte(out, '<');
    for (size_t i = 0; i < type->field_count; i++) {
        const struct field *field = &type->fields[i];
        if (i > 0) {
            buf_append(out, STR(", "));
        }
        if (type->kind == TYPE_STRUCT) {
            if (name_is_plain(field->name)) {
                buf_append(out, field->name);
            } else {
                buf_append_json_string(out, field->name);
            }
            buf_append(out, STR(": "));
        }
        type_write(out, &field->type);
        bool is_key = type->kind == TYPE_MAP && i == 0;
        if (field->required && !is_key) {
            buf_append(out, STR(" required"));
        }
    }
    buf_append_byte(out, '>');
}

static str type_text_of(buf *out)
{
    return buf_ok(out) ? buf_str(out) : (str){NULL, 0};
}

str type_text(struct arena *arena, const struct type *type)
{
    buf out = buf_create(arena, 32, SIZE_MAX / 2);
    type_write(&out, type);
    return type_text_of(&out);
}

str type_text_short(struct arena *arena, const struct type *type)
{
    if (type_is_nested(type)) {
        return type_word(type->kind);
    }
    buf out = buf_create(arena, 32, SIZE_MAX / 2);
    type_write_scalar(&out, type);
    return type_text_of(&out);
}
