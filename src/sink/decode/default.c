/* Defaults, from their JSON to a value. */
#include "base/assert.h"
#include "format/json.h"
#include "sink/decode/plan.h"
#include "sink/decode/scalar.h"
#include "sink/decode/value.h"

/* Functions here walk a schema's tree by calling themselves: its depth is bounded where a schema is
 * read. */

struct default_reader {
    struct json_reader json;
    buf scratch;
};

static err default_wrong(const struct column *column, struct error *error)
{
    return error_set(error, INVALID, ERROR_UNSUPPORTED_COLUMN_TYPE,
                     "the default of %.*s is no value of its type", STR_ARG(column->field->name));
}

static err default_room(bool appended, struct error *error)
{
    return appended ? OK : error_memory(error);
}

static i32 hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    char lower = (char)(digit | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Binary and fixed defaults are hex digits, unlike base64 in rows. */
static bool default_hex(struct default_reader *reader, str token, str *out_bytes)
{
    str text = json_unescape(&reader->scratch, token, NULL);
    assert(text.data != NULL);
    size_t start = reader->scratch.size;
    for (size_t i = 0; i + 1 < text.size; i += 2) {
        i32 high = hex_value(text.data[i]);
        i32 low = hex_value(text.data[i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        buf_append_byte(&reader->scratch, (u8)(high << 4 | low));
    }
    *out_bytes = str_slice(buf_str(&reader->scratch), start, reader->scratch.size);
    return text.size % 2 == 0;
}

static bool default_kind(enum json_token token, enum json_kind *out_kind)
{
    switch (token) {
    case JSON_TOKEN_STRING:
        *out_kind = JSON_KIND_STRING;
        return true;
    case JSON_TOKEN_NUMBER:
        *out_kind = JSON_KIND_NUMBER;
        return true;
    case JSON_TOKEN_TRUE:
        *out_kind = JSON_KIND_TRUE;
        return true;
    case JSON_TOKEN_FALSE:
        *out_kind = JSON_KIND_FALSE;
        return true;
    case JSON_TOKEN_OBJECT:
    case JSON_TOKEN_OBJECT_END:
    case JSON_TOKEN_ARRAY:
    case JSON_TOKEN_ARRAY_END:
    case JSON_TOKEN_NAME:
    case JSON_TOKEN_NULL:
    case JSON_TOKEN_END:
    case JSON_TOKEN_INVALID:
        return false;
    }
    return false;
}

static err default_scalar(struct column *column, struct default_reader *reader,
                          enum json_token token, struct error *error)
{
    const struct type *type = &column->field->type;
    bool is_hex = type->kind == TYPE_BINARY || type->kind == TYPE_FIXED;
    struct decode_scalar value = {0};
    enum reject_reason reason;
    enum json_kind kind;
    if (!default_kind(token, &kind)) {
        return default_wrong(column, error);
    }
    if (is_hex) {
        bool fits = kind == JSON_KIND_STRING &&
                    default_hex(reader, reader->json.text, &value.bytes) &&
                    (type->kind == TYPE_BINARY || value.bytes.size == (size_t)type->length);
        if (!fits) {
            return default_wrong(column, error);
        }
    } else if (decode_scalar_read(type, kind, reader->json.text, &reader->scratch, &value,
                                  &reason) == DECODE_MISFITS) {
        return default_wrong(column, error);
    }
    return default_room(decode_value_append(column, &value), error);
}

static err default_value(struct column *column, struct default_reader *reader,
                         enum json_token token, struct error *error);

/* The array whose bracket has just been read, its elements into `column`. */
static err default_elements(struct column *column, struct default_reader *reader,
                            struct error *error)
{
    for (;;) {
        enum json_token token = json_next(&reader->json);
        if (token == JSON_TOKEN_ARRAY_END) {
            return OK;
        }
        TRY(default_value(column, reader, token, error));
    }
}

static err default_list(struct column *column, struct default_reader *reader, enum json_token token,
                        struct error *error)
{
    if (token != JSON_TOKEN_ARRAY) {
        return default_wrong(column, error);
    }
    TRY(default_elements(&column->children[0], reader, error));
    return default_room(column_append_nested(column), error);
}

/* {"keys": […], "values": […]}, as many of the one as of the other. */
static err default_map(struct column *column, struct default_reader *reader, enum json_token token,
                       struct error *error)
{
    if (token != JSON_TOKEN_OBJECT) {
        return default_wrong(column, error);
    }
    while ((token = json_next(&reader->json)) == JSON_TOKEN_NAME) {
        bool is_keys = str_equal(reader->json.text, STR("\"keys\""));
        if (!is_keys && !str_equal(reader->json.text, STR("\"values\""))) {
            return default_wrong(column, error);
        }
        if (json_next(&reader->json) != JSON_TOKEN_ARRAY) {
            return default_wrong(column, error);
        }
        TRY(default_elements(&column->children[is_keys ? 0 : 1], reader, error));
    }
    if (token != JSON_TOKEN_OBJECT_END || column->children[0].count != column->children[1].count) {
        return default_wrong(column, error);
    }
    return default_room(column_append_nested(column), error);
}

static err default_value(struct column *column, struct default_reader *reader,
                         enum json_token token, struct error *error)
{
    if (token == JSON_TOKEN_NULL) {
        return default_room(column_append_null(column), error);
    }
    switch (column->field->type.kind) {
    case TYPE_LIST:
        return default_list(column, reader, token, error);
    case TYPE_MAP:
        return default_map(column, reader, token, error);
    case TYPE_STRUCT:
        /* A struct's default is {} and stands at a field only. */
        return default_wrong(column, error);
    case TYPE_BOOLEAN:
    case TYPE_INT:
    case TYPE_LONG:
    case TYPE_FLOAT:
    case TYPE_DOUBLE:
    case TYPE_DECIMAL:
    case TYPE_DATE:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_TIMESTAMP_NS:
    case TYPE_TIMESTAMPTZ_NS:
    case TYPE_STRING:
    case TYPE_UUID:
    case TYPE_FIXED:
    case TYPE_BINARY:
    case TYPE_UNKNOWN:
    case TYPE_VARIANT:
    case TYPE_GEOMETRY:
    case TYPE_GEOGRAPHY:
        break;
    }
    return default_scalar(column, reader, token, error);
}

err decode_default_append(struct column *column, str json, struct error *error)
{
    size_t room = 0;
    if (!num_mul_size(json.size, 3, &room) || !num_add_size(room, 64, &room)) {
        return error_memory(error);
    }
    struct default_reader reader = {.scratch = buf_create(column->arena, room, room)};
    if (!buf_ok(&reader.scratch)) {
        return error_memory(error);
    }
    json_reader_init(&reader.json, json);
    TRY(default_value(column, &reader, json_next(&reader.json), error));
    return json_next(&reader.json) == JSON_TOKEN_END ? OK : default_wrong(column, error);
}
