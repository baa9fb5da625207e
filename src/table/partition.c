#include "table/partition.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/time.h"
#include "table/document.h"
#include "table/schema_walk.h"

/* A path is a hint for people; parts that would make a key too long are left out. */
enum {
    PARTITION_PATH_MAX = 512,
    PARTITION_PART_MAX = 240, /* a file name's 255 bytes, rounded down */
    PARTITION_PARAMETER_MAX = 1000000000,
};

static const struct {
    const char *word;
    enum partition_transform transform;
    bool has_parameter;
    const char *name_suffix;
} PARTITION_WORDS[] = {
    {"identity", PARTITION_IDENTITY, false, ""},      {"bucket", PARTITION_BUCKET, true, "_bucket"},
    {"truncate", PARTITION_TRUNCATE, true, "_trunc"}, {"year", PARTITION_YEAR, false, "_year"},
    {"month", PARTITION_MONTH, false, "_month"},      {"day", PARTITION_DAY, false, "_day"},
    {"hour", PARTITION_HOUR, false, "_hour"},         {"void", PARTITION_VOID, false, "_null"},
};

/* ---- transforms ---- */

static const char *partition_word(enum partition_transform transform)
{
    for (size_t i = 0; i < ARRAY_COUNT(PARTITION_WORDS); i++) {
        if (PARTITION_WORDS[i].transform == transform) {
            return PARTITION_WORDS[i].word;
        }
    }
    return "unknown";
}

static bool partition_parameter(str text, i32 *out_parameter)
{
    i64 number = 0;
    if (text.size < 3 || text.data[0] != '[' || !str_ends(text, STR("]")) ||
        !str_to_i64(str_slice(text, 1, text.size - 1), &number) || number < 1 ||
        number > PARTITION_PARAMETER_MAX) {
        return false;
    }
    *out_parameter = (i32)number;
    return true;
}

enum partition_transform partition_transform_parse(str text, i32 *out_parameter)
{
    *out_parameter = 0;
    for (size_t i = 0; i < ARRAY_COUNT(PARTITION_WORDS); i++) {
        str word = str_from(PARTITION_WORDS[i].word);
        if (!str_starts(text, word)) {
            continue;
        }
        str rest = str_slice(text, word.size, text.size);
        bool fits = PARTITION_WORDS[i].has_parameter ? partition_parameter(rest, out_parameter)
                                                     : rest.size == 0;
        if (fits) {
            return PARTITION_WORDS[i].transform;
        }
    }
    return PARTITION_OTHER;
}

static bool partition_is_time(enum partition_transform transform)
{
    return transform == PARTITION_YEAR || transform == PARTITION_MONTH ||
           transform == PARTITION_DAY || transform == PARTITION_HOUR;
}

static bool partition_is_timestamp(enum type_kind kind)
{
    return kind == TYPE_TIMESTAMP || kind == TYPE_TIMESTAMPTZ || kind == TYPE_TIMESTAMP_NS ||
           kind == TYPE_TIMESTAMPTZ_NS;
}

static bool partition_truncates(enum type_kind kind)
{
    return kind == TYPE_INT || kind == TYPE_LONG || kind == TYPE_DECIMAL || kind == TYPE_STRING ||
           kind == TYPE_BINARY;
}

static bool partition_buckets(enum type_kind kind)
{
    return partition_truncates(kind) || partition_is_timestamp(kind) || kind == TYPE_DATE ||
           kind == TYPE_TIME || kind == TYPE_UUID || kind == TYPE_FIXED;
}

static bool partition_takes(enum partition_transform transform, const struct type *type)
{
    enum type_kind kind = type->kind;
    switch (transform) {
    case PARTITION_IDENTITY:
        return !type_is_nested(type) && kind != TYPE_VARIANT && kind != TYPE_GEOMETRY &&
               kind != TYPE_GEOGRAPHY && kind != TYPE_UNKNOWN;
    case PARTITION_BUCKET:
        return partition_buckets(kind);
    case PARTITION_TRUNCATE:
        return partition_truncates(kind);
    case PARTITION_YEAR:
    case PARTITION_MONTH:
    case PARTITION_DAY:
        return kind == TYPE_DATE || partition_is_timestamp(kind);
    case PARTITION_HOUR:
        return partition_is_timestamp(kind);
    case PARTITION_VOID:
        return true;
    case PARTITION_OTHER:
        return false;
    }
    return false;
}

bool partition_result_type(const struct partition_field *field, const struct type *root,
                           struct type *out_type)
{
    const struct field *source = schema_find(root, field->source_id);
    if (source == NULL || field->transform == PARTITION_OTHER) {
        return false;
    }
    switch (field->transform) {
    case PARTITION_BUCKET:
    case PARTITION_YEAR:
    case PARTITION_MONTH:
    case PARTITION_HOUR:
        *out_type = (struct type){.kind = TYPE_INT};
        break;
    case PARTITION_DAY:
        *out_type = (struct type){.kind = TYPE_DATE};
        break;
    case PARTITION_IDENTITY:
    case PARTITION_TRUNCATE:
    case PARTITION_VOID:
    case PARTITION_OTHER:
        *out_type = source->type;
        break;
    }
    return true;
}

/* ---- specs ---- */

MUST_USE static err partition_read_field(struct arena *arena, const json_t *document,
                                         struct partition_field *out_field, struct error *error)
{
    /* A transform of several sources is not known to us; its first source stands for them. */
    const json_t *sources = json_object_get(document, "source-ids");
    i64 source = json_integer_value(json_array_get(sources, 0));
    bool several = json_array_size(sources) > 1;
    str name = document_text(document, "name");
    str transform = document_text(document, "transform");
    if ((sources == NULL && !document_i64(document, "source-id", &source)) || source < 0 ||
        source > INT32_MAX || name.data == NULL || transform.data == NULL) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "partition spec: a field has name, transform and source-id");
    }
    out_field->source_id = (i32)source;
    i64 field_id = document_i64_or(document, "field-id", 0);
    if (field_id < 0 || field_id > INT32_MAX) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "partition spec: field-id %lld is out of bounds", (long long)field_id);
    }
    out_field->field_id = (i32)field_id;
    out_field->transform = several ? PARTITION_OTHER
                                   : partition_transform_parse(transform, &out_field->parameter);
    out_field->name = str_copy(arena, name);
    return out_field->name.data != NULL ? OK : error_memory(error);
}

err partition_from_json(struct arena *arena, const json_t *document,
                        struct partition_spec *out_spec, struct error *error)
{
    struct partition_spec spec = {0};
    i64 id = document_i64_or(document, "spec-id", 0);
    const json_t *fields = json_is_array(document) ? document : json_object_get(document, "fields");
    if (!json_is_array(fields) || id < 0 || id > INT32_MAX) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "partition spec: no spec-id or no fields");
    }
    spec.id = (i32)id;
    spec.count = json_array_size(fields);
    spec.fields = arena_array(arena, spec.count, sizeof(*spec.fields));
    if (spec.fields == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < spec.count; i++) {
        TRY(partition_read_field(arena, json_array_get(fields, i), &spec.fields[i], error));
    }
    *out_spec = spec;
    return OK;
}

MUST_USE static err partition_check_source(const struct partition_field *field,
                                           const struct type *root, struct error *error)
{
    if (field->transform == PARTITION_VOID) {
        return OK;
    }
    if (field->transform == PARTITION_OTHER) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "Cannot write an unknown transform: partition field %.*s",
                         STR_ARG(field->name));
    }
    const struct field *source = schema_find(root, field->source_id);
    if (source == NULL) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "Cannot find source column for partition field: %.*s, source id %d",
                         STR_ARG(field->name), field->source_id);
    }
    if (!partition_takes(field->transform, &source->type)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "Invalid source type for transform %s: column %.*s",
                         partition_word(field->transform), STR_ARG(source->name));
    }
    return OK;
}

/* Names of top-level columns; nested ones are dotted and cannot be meant. */
MUST_USE static err partition_check_name(const struct partition_field *field,
                                         const struct type *root, struct error *error)
{
    if (field->name.size == 0) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "Cannot use empty partition name");
    }
    const struct field *column = type_field(root, field->name);
    bool may_share = field->transform == PARTITION_IDENTITY || field->transform == PARTITION_VOID;
    if (column == NULL || (may_share && column->id == field->source_id)) {
        return OK;
    }
    return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                     "Cannot create partition from name that exists in schema: %.*s",
                     STR_ARG(field->name));
}

static bool partition_redundant(const struct partition_field *a, const struct partition_field *b)
{
    if (a->source_id != b->source_id || a->transform == PARTITION_VOID ||
        b->transform == PARTITION_VOID) {
        return false;
    }
    if (partition_is_time(a->transform) && partition_is_time(b->transform)) {
        return true;
    }
    return a->transform == b->transform && a->parameter == b->parameter;
}

MUST_USE static err partition_check_pair(const struct partition_field *field,
                                         const struct partition_field *earlier, struct error *error)
{
    if (str_equal(field->name, earlier->name)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "Cannot use partition name more than once: %.*s", STR_ARG(field->name));
    }
    if (field->field_id != 0 && field->field_id == earlier->field_id) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "Cannot use partition field id more than once: %d", field->field_id);
    }
    if (partition_redundant(field, earlier)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "Cannot add redundant partition: %.*s conflicts with %.*s",
                         STR_ARG(field->name), STR_ARG(earlier->name));
    }
    return OK;
}

err partition_check(const struct partition_spec *spec, const struct type *root, struct error *error)
{
    if (spec->count > PARTITION_FIELDS_MAX) {
        return error_set(error, LIMIT, ERROR_INVALID_REQUEST, "partition spec: more than %d fields",
                         PARTITION_FIELDS_MAX);
    }
    for (size_t i = 0; i < spec->count; i++) {
        TRY(partition_check_source(&spec->fields[i], root, error));
        TRY(partition_check_name(&spec->fields[i], root, error));
        for (size_t j = 0; j < i; j++) {
            TRY(partition_check_pair(&spec->fields[i], &spec->fields[j], error));
        }
    }
    return OK;
}

/* ---- text ---- */

static bool partition_path_is(const struct schema_walk *walk, const str *names, str wanted)
{
    for (i32 i = 0; i <= walk->depth; i++) {
        bool last = i == walk->depth;
        if (!str_starts(wanted, names[i])) {
            return false;
        }
        wanted = str_slice(wanted, names[i].size, wanted.size);
        if (last || !str_starts(wanted, STR("."))) {
            return last && wanted.size == 0;
        }
        wanted = str_slice(wanted, 1, wanted.size);
    }
    return false;
}

/* The field of this dotted name inside structs only. */
static const struct field *partition_find_source(const struct type *root, str name)
{
    str names[SCHEMA_DEPTH_MAX + 2];
    struct schema_walk walk;
    schema_walk_begin(&walk, root);
    for (const struct field *field = schema_walk_next(&walk); field != NULL;
         field = schema_walk_next(&walk)) {
        names[walk.depth] = field->name;
        if (walk.types[walk.depth]->kind == TYPE_STRUCT && partition_path_is(&walk, names, name)) {
            return field;
        }
    }
    return NULL;
}

/* `word[n](column)` taken apart; false when the text has not that form. */
static bool partition_split(str text, struct partition_field *out_field, str *out_column)
{
    i64 open = str_find_byte(text, '(');
    if (open < 0 || !str_ends(text, STR(")"))) {
        return false;
    }
    str word = str_trim(str_slice(text, 0, (size_t)open));
    out_field->transform = partition_transform_parse(word, &out_field->parameter);
    *out_column = str_trim(str_slice(text, (size_t)open + 1, text.size - 1));
    return out_field->transform != PARTITION_OTHER;
}

static json_t *partition_field_json(const struct partition_field *field)
{
    const char *suffix = "";
    json_t *transform = NULL;
    for (size_t i = 0; i < ARRAY_COUNT(PARTITION_WORDS); i++) {
        if (PARTITION_WORDS[i].transform == field->transform) {
            suffix = PARTITION_WORDS[i].name_suffix;
            transform = PARTITION_WORDS[i].has_parameter
                            ? json_sprintf("%s[%d]", PARTITION_WORDS[i].word, field->parameter)
                            : json_string(PARTITION_WORDS[i].word);
        }
    }
    json_t *result = json_object();
    document_set_i64(result, "source-id", field->source_id);
    document_set_i64(result, "field-id", field->field_id);
    document_set(result, "name", json_sprintf("%.*s%s", STR_ARG(field->name), suffix));
    document_set(result, "transform", transform);
    return result;
}

err partition_parse_text(str text, const struct type *root, i32 field_id, json_t **out_field,
                         struct error *error)
{
    struct partition_field field = {.field_id = field_id};
    str column = {NULL, 0};
    text = str_trim(text);
    const struct field *source = NULL;
    if (partition_split(text, &field, &column)) {
        source = partition_find_source(root, column);
    }
    if (source == NULL) { /* the text itself may be a column */
        const struct field *whole = partition_find_source(root, text);
        if (whole == NULL) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "partition \"%.*s\" is no transform of a column", STR_ARG(text));
        }
        source = whole;
        column = text;
        field.transform = PARTITION_IDENTITY;
        field.parameter = 0;
    }
    field.source_id = source->id;
    field.name = column;
    TRY(partition_check_source(&field, root, error));
    *out_field = partition_field_json(&field);
    return OK;
}

/* ---- values ---- */

static i64 partition_floor(i64 value, i64 unit)
{
    i64 quotient = value / unit;
    return value % unit < 0 ? quotient - 1 : quotient;
}

/* Units of a timestamp in an hour; 0 for a date. */
static i64 partition_hour_units(enum type_kind kind)
{
    if (kind == TYPE_TIMESTAMP_NS || kind == TYPE_TIMESTAMPTZ_NS) {
        return 3600 * TIME_SECOND_US * 1000;
    }
    return partition_is_timestamp(kind) ? 3600 * TIME_SECOND_US : 0;
}

static i64 partition_load(const struct column *column, i64 index)
{
    if (column->field->type.kind == TYPE_DATE) {
        i32 days = 0;
        memcpy(&days, column->data + (size_t)index * sizeof(days), sizeof(days));
        return days;
    }
    i64 value = 0;
    memcpy(&value, column->data + (size_t)index * sizeof(value), sizeof(value));
    return value;
}

struct partition_value partition_apply(const struct partition_field *field,
                                       const struct column *column, i64 index)
{
    assert(index >= 0);
    assert(index < column->count);
    if (field->transform == PARTITION_VOID || column->valid[index] == 0) {
        return (struct partition_value){.is_null = true};
    }
    i64 hour_units = partition_hour_units(column->field->type.kind);
    assert(partition_is_time(field->transform));
    assert(column->field->type.kind == TYPE_DATE || hour_units > 0);
    i64 value = partition_load(column, index);
    if (field->transform == PARTITION_HOUR) {
        assert(hour_units > 0);
        return (struct partition_value){.number = partition_floor(value, hour_units)};
    }
    i64 days = hour_units > 0 ? partition_floor(value, hour_units * 24) : value;
    if (field->transform == PARTITION_DAY) {
        return (struct partition_value){.number = days};
    }
    struct civil civil = time_civil_from_days(days);
    i64 years = (i64)civil.year - 1970;
    return (struct partition_value){
        .number = field->transform == PARTITION_YEAR ? years : years * 12 + civil.month - 1};
}

/* ---- paths ---- */

static void partition_append_encoded(buf *out, str text)
{
    for (size_t i = 0; i < text.size; i++) {
        u8 byte = (u8)text.data[i];
        bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.';
        if (plain) {
            buf_append_byte(out, byte);
        } else {
            buf_append_format(out, "%%%02X", byte);
        }
    }
}

static void partition_append_value(buf *out, enum partition_transform transform,
                                   struct partition_value value)
{
    if (value.is_null) {
        buf_append(out, STR("null"));
    } else if (transform == PARTITION_YEAR) {
        buf_append_format(out, "%04lld", (long long)(value.number + 1970));
    } else if (transform == PARTITION_MONTH) {
        i64 year = partition_floor(value.number, 12);
        buf_append_format(out, "%04lld-%02lld", (long long)(year + 1970),
                          (long long)(value.number - year * 12 + 1));
    } else if (transform == PARTITION_DAY || transform == PARTITION_HOUR) {
        bool hourly = transform == PARTITION_HOUR;
        i64 days = hourly ? partition_floor(value.number, 24) : value.number;
        struct civil civil = time_civil_from_days(days);
        buf_append_format(out, "%04d-%02d-%02d", civil.year, civil.month, civil.day);
        if (hourly) {
            buf_append_format(out, "-%02lld", (long long)(value.number - days * 24));
        }
    } else {
        buf_append_i64(out, value.number);
    }
}

str partition_path(struct arena *arena, const struct partition_spec *spec,
                   const struct partition_value *values)
{
    buf path = buf_create(arena, 64, 64 * KIB);
    for (size_t i = 0; i < spec->count; i++) {
        size_t before = path.size;
        if (i > 0 && before > 0) {
            buf_append_byte(&path, '/');
        }
        partition_append_encoded(&path, spec->fields[i].name);
        buf_append_byte(&path, '=');
        partition_append_value(&path, spec->fields[i].transform, values[i]);
        if (path.size > PARTITION_PATH_MAX || path.size - before > PARTITION_PART_MAX) {
            buf_truncate(&path, before);
        }
    }
    return buf_ok(&path) ? buf_str(&path) : (str){NULL, 0};
}
