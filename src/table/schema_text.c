/* The textual form of types: long, decimal(10,2), fixed[16], list<string required>,
 * map<string, long>, struct<a: int required, "b c": list<double>>.
 *
 * Nesting is kept on a stack of frames, one for each open bracket. A frame's type points into its
 * parent's field array, which grows only after the frame was popped. */
#include "table/schema_text.h"

#include "base/assert.h"
#include "table/document.h"

static const struct {
    const char *word;
    enum type_kind kind;
} SCHEMA_WORDS[] = {
    {"boolean", TYPE_BOOLEAN},
    {"int", TYPE_INT},
    {"long", TYPE_LONG},
    {"float", TYPE_FLOAT},
    {"double", TYPE_DOUBLE},
    {"decimal", TYPE_DECIMAL},
    {"date", TYPE_DATE},
    {"time", TYPE_TIME},
    {"timestamp", TYPE_TIMESTAMP},
    {"timestamptz", TYPE_TIMESTAMPTZ},
    {"timestamp_ns", TYPE_TIMESTAMP_NS},
    {"timestamptz_ns", TYPE_TIMESTAMPTZ_NS},
    {"string", TYPE_STRING},
    {"uuid", TYPE_UUID},
    {"fixed", TYPE_FIXED},
    {"binary", TYPE_BINARY},
    {"unknown", TYPE_UNKNOWN},
    {"struct", TYPE_STRUCT},
    {"list", TYPE_LIST},
    {"map", TYPE_MAP},
    {"variant", TYPE_VARIANT},
    {"geometry", TYPE_GEOMETRY},
    {"geography", TYPE_GEOGRAPHY},
};

const char *schema_kind_word(enum type_kind kind)
{
    const char *word = NULL;
    for (size_t i = 0; i < ARRAY_COUNT(SCHEMA_WORDS) && word == NULL; i++) {
        word = SCHEMA_WORDS[i].kind == kind ? SCHEMA_WORDS[i].word : NULL;
    }
    assert(word != NULL);
    return word;
}

bool schema_kind_find(str word, enum type_kind *out_kind)
{
    for (size_t i = 0; i < ARRAY_COUNT(SCHEMA_WORDS); i++) {
        if (str_equal(word, str_from(SCHEMA_WORDS[i].word))) {
            *out_kind = SCHEMA_WORDS[i].kind;
            return true;
        }
    }
    return false;
}

struct text_frame {
    struct type *type;
    size_t begun;    /* children begun */
    size_t capacity; /* of type->fields */
};

struct text {
    struct arena *arena;
    str input;
    size_t at;
    struct text_frame frames[SCHEMA_DEPTH_MAX];
    i32 level; /* open frames */
    size_t field_count;
    struct error *error;
};

static bool text_is_space(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static bool text_is_word(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '_';
}

/* The end of a quoted name that begins at `from`, or `from` when its closing quote is missing. */
static size_t text_quote_end(str input, size_t from)
{
    for (size_t i = from + 1; i < input.size; i++) {
        if (input.data[i] == '\\') {
            i++;
        } else if (input.data[i] == '"') {
            return i + 1;
        }
    }
    return from;
}

/* The next token: a word, a quoted name, or one byte; empty at the end. */
static str text_peek(const struct text *text, size_t *out_end)
{
    str input = text->input;
    size_t from = text->at;
    while (from < input.size && text_is_space(input.data[from])) {
        from++;
    }
    size_t end = from;
    while (end < input.size && text_is_word(input.data[end])) {
        end++;
    }
    if (end == from && from < input.size) {
        size_t quoted = input.data[from] == '"' ? text_quote_end(input, from) : from;
        end = quoted > from ? quoted : from + 1;
    }
    *out_end = end;
    return str_slice(input, from, end);
}

MUST_USE static err text_fail(struct text *text, const char *expected, str found)
{
    return error_set(text->error, INVALID, ERROR_INVALID_REQUEST,
                     "type \"%.*s\": expected %s, found %.*s", STR_ARG(text->input), expected,
                     STR_ARG(found.size > 0 ? found : STR("the end")));
}

static bool text_skip(struct text *text, str wanted)
{
    size_t end = 0;
    if (!str_equal(text_peek(text, &end), wanted)) {
        return false;
    }
    text->at = end;
    return true;
}

MUST_USE static err text_take(struct text *text, const char *wanted)
{
    size_t end = 0;
    str token = text_peek(text, &end);
    if (!str_equal(token, str_from(wanted))) {
        return text_fail(text, wanted, token);
    }
    text->at = end;
    return OK;
}

MUST_USE static err text_number(struct text *text, i32 *out_number)
{
    size_t end = 0;
    str token = text_peek(text, &end);
    i64 number = 0;
    if (token.size > 9 || !str_to_i64(token, &number) || number < 0) {
        return text_fail(text, "a number", token);
    }
    text->at = end;
    *out_number = (i32)number;
    return OK;
}

MUST_USE static err text_quoted(struct text *text, str token, str *out_name)
{
    json_t *value = json_loadb(token.data, token.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    str name = document_str(value);
    err result = OK;
    if (name.data == NULL) {
        result = text_fail(text, "a name", token);
    } else {
        name = str_copy(text->arena, name);
        result = name.data == NULL ? error_memory(text->error) : OK;
    }
    json_decref(value);
    if (result == OK) {
        *out_name = name;
    }
    return result;
}

MUST_USE static err text_name(struct text *text, str *out_name)
{
    size_t end = 0;
    str token = text_peek(text, &end);
    str name = {NULL, 0};
    if (token.size > 1 && token.data[0] == '"') {
        TRY(text_quoted(text, token, &name));
    } else if (token.size > 0 && text_is_word(token.data[0])) {
        name = str_copy(text->arena, token);
        if (name.data == NULL) {
            return error_memory(text->error);
        }
    } else {
        return text_fail(text, "a name", token);
    }
    text->at = end;
    *out_name = name;
    return OK;
}

MUST_USE static err text_decimal(struct text *text, struct type *type)
{
    TRY(text_take(text, "("));
    TRY(text_number(text, &type->precision));
    TRY(text_take(text, ","));
    TRY(text_number(text, &type->scale));
    TRY(text_take(text, ")"));
    if (type->precision < 1 || type->precision > 38 || type->scale > type->precision) {
        return error_set(text->error, INVALID, ERROR_INVALID_REQUEST,
                         "decimal(%d,%d) is out of bounds", type->precision, type->scale);
    }
    return OK;
}

MUST_USE static err text_fixed(struct text *text, struct type *type)
{
    TRY(text_take(text, "["));
    TRY(text_number(text, &type->length));
    TRY(text_take(text, "]"));
    if (type->length < 1) { /* Parquet has no empty fixed. */
        return error_set(text->error, INVALID, ERROR_INVALID_REQUEST, "fixed[0] is out of bounds");
    }
    return OK;
}

MUST_USE static err text_geo(struct text *text, struct type *type)
{
    size_t end = 0;
    if (!str_equal(text_peek(text, &end), STR("("))) {
        return OK;
    }
    str rest = str_slice(text->input, end - 1, text->input.size);
    i64 close = str_find_byte(rest, ')');
    if (close < 0) {
        return text_fail(text, ")", STR(""));
    }
    type->parameters = str_copy(text->arena, str_slice(rest, 0, (size_t)close + 1));
    if (type->parameters.data == NULL) {
        return error_memory(text->error);
    }
    text->at = end + (size_t)close;
    return OK;
}

MUST_USE static err text_add_field(struct text *text, struct text_frame *frame, str name)
{
    struct type *type = frame->type;
    if (++text->field_count > SCHEMA_FIELDS_MAX) {
        return error_set(text->error, INVALID, ERROR_INVALID_REQUEST, "more than %d fields",
                         SCHEMA_FIELDS_MAX);
    }
    if (type->field_count == frame->capacity) {
        size_t capacity = frame->capacity == 0 ? 2 : frame->capacity * 2;
        struct field *fields = arena_array(text->arena, capacity, sizeof(*fields));
        if (fields == NULL) {
            return error_memory(text->error);
        }
        if (type->field_count > 0) {
            memcpy(fields, type->fields, type->field_count * sizeof(*fields));
        }
        type->fields = fields;
        frame->capacity = capacity;
    }
    type->fields[type->field_count++] = (struct field){.name = name};
    return OK;
}

MUST_USE static err text_open(struct text *text, struct type *type)
{
    TRY(text_take(text, "<"));
    if (text->level == SCHEMA_DEPTH_MAX) {
        return error_set(text->error, INVALID, ERROR_INVALID_REQUEST,
                         "a type of more than %d levels", SCHEMA_DEPTH_MAX);
    }
    struct text_frame *frame = &text->frames[text->level++];
    *frame = (struct text_frame){.type = type};
    if (type->kind == TYPE_LIST) {
        return text_add_field(text, frame, STR("element"));
    }
    if (type->kind == TYPE_MAP) {
        TRY(text_add_field(text, frame, STR("key")));
        TRY(text_add_field(text, frame, STR("value")));
        type->fields[0].required = true;
    }
    return OK;
}

/* Reads a type up to where its children begin. */
MUST_USE static err text_begin(struct text *text, struct type *type)
{
    size_t end = 0;
    str word = text_peek(text, &end);
    enum type_kind kind = TYPE_UNKNOWN;
    if (!schema_kind_find(word, &kind)) {
        return text_fail(text, "a type", word);
    }
    text->at = end;
    *type = (struct type){.kind = kind};
    if (type_is_nested(type)) {
        return text_open(text, type);
    }
    if (kind == TYPE_DECIMAL) {
        return text_decimal(text, type);
    }
    if (kind == TYPE_FIXED) {
        return text_fixed(text, type);
    }
    if (kind == TYPE_GEOMETRY || kind == TYPE_GEOGRAPHY) {
        return text_geo(text, type);
    }
    return OK;
}

/* The frame's next child; NULL when its bracket closed. */
MUST_USE static err text_child(struct text *text, struct text_frame *frame, struct type **out_child)
{
    struct type *type = frame->type;
    if (type->kind == TYPE_STRUCT) {
        if (text_skip(text, STR(">"))) {
            *out_child = NULL;
            return OK;
        }
        if (frame->begun > 0) {
            TRY(text_take(text, ","));
        }
        str name = {NULL, 0};
        TRY(text_name(text, &name));
        TRY(text_take(text, ":"));
        TRY(text_add_field(text, frame, name));
    } else if (frame->begun == type->field_count) {
        TRY(text_take(text, ">"));
        *out_child = NULL;
        return OK;
    } else if (frame->begun > 0) {
        TRY(text_take(text, ","));
    }
    *out_child = &type->fields[frame->begun++].type;
    return OK;
}

/* After a type ended: the type to read next, or NULL when the outermost is complete. */
MUST_USE static err text_advance(struct text *text, struct type **out_next)
{
    struct type *next = NULL;
    while (text->level > 0 && next == NULL) {
        struct text_frame *frame = &text->frames[text->level - 1];
        if (frame->begun > 0 && text_skip(text, STR("required"))) {
            frame->type->fields[frame->begun - 1].required = true;
        }
        TRY(text_child(text, frame, &next));
        if (next == NULL) {
            text->level--;
        }
    }
    *out_next = next;
    return OK;
}

err schema_parse_type(struct arena *arena, str input, struct type *out_type, bool *out_required,
                      struct error *error)
{
    struct text text = {.arena = arena, .input = input, .error = error};
    struct type type = {0};
    struct type *next = &type;
    while (next != NULL) {
        TRY(text_begin(&text, next));
        TRY(text_advance(&text, &next));
    }
    bool required = out_required != NULL && text_skip(&text, STR("required"));
    size_t end = 0;
    str left = text_peek(&text, &end);
    if (left.size > 0) {
        return text_fail(&text, "the end", left);
    }
    struct field field = {.type = type, .required = required, .name = STR("")};
    struct type root = {.kind = TYPE_STRUCT, .fields = &field, .field_count = 1};
    TRY(schema_check_types(&root, error));
    *out_type = type;
    if (out_required != NULL) {
        *out_required = required;
    }
    return OK;
}
