#include "table/manifest_schema.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/utf8.h"

enum { SCHEMA_TEXT_FIRST = 4 * KIB, SCHEMA_TEXT_MAX = 4 * MIB };

static const struct manifest_column LIST_COLUMNS[] = {
    {"manifest_path", 500, "string", COLUMN_PLAIN, false, 2, 0, 0},
    {"manifest_length", 501, "long", COLUMN_PLAIN, false, 2, 0, 0},
    {"partition_spec_id", 502, "int", COLUMN_PLAIN, false, 2, 0, 0},
    {"content", 517, "int", COLUMN_PLAIN, false, 2, 0, 0},
    {"sequence_number", 515, "long", COLUMN_PLAIN, false, 2, 0, 0},
    {"min_sequence_number", 516, "long", COLUMN_PLAIN, false, 2, 0, 0},
    {"added_snapshot_id", 503, "long", COLUMN_PLAIN, false, 2, 0, 0},
    {"added_files_count", 504, "int", COLUMN_PLAIN, false, 2, 0, 0},
    {"existing_files_count", 505, "int", COLUMN_PLAIN, false, 2, 0, 0},
    {"deleted_files_count", 506, "int", COLUMN_PLAIN, false, 2, 0, 0},
    {"added_rows_count", 512, "long", COLUMN_PLAIN, false, 2, 0, 0},
    {"existing_rows_count", 513, "long", COLUMN_PLAIN, false, 2, 0, 0},
    {"deleted_rows_count", 514, "long", COLUMN_PLAIN, false, 2, 0, 0},
    {"partitions", 507, "", COLUMN_SUMMARY, true, 2, 0, 508},
    {"key_metadata", 519, "bytes", COLUMN_PLAIN, true, 2, 0, 0},
    {"first_row_id", 520, "long", COLUMN_PLAIN, true, 3, 0, 0},
};

static const struct manifest_column SUMMARY_COLUMNS[] = {
    {"contains_null", 509, "boolean", COLUMN_PLAIN, false, 2, 0, 0},
    {"contains_nan", 518, "boolean", COLUMN_PLAIN, true, 2, 0, 0},
    {"lower_bound", 510, "bytes", COLUMN_PLAIN, true, 2, 0, 0},
    {"upper_bound", 511, "bytes", COLUMN_PLAIN, true, 2, 0, 0},
};

static const struct manifest_column ENTRY_COLUMNS[] = {
    {"status", 0, "int", COLUMN_PLAIN, false, 2, 0, 0},
    {"snapshot_id", 1, "long", COLUMN_PLAIN, true, 2, 0, 0},
    {"sequence_number", 3, "long", COLUMN_PLAIN, true, 2, 0, 0},
    {"file_sequence_number", 4, "long", COLUMN_PLAIN, true, 2, 0, 0},
};

static const struct manifest_column FILE_COLUMNS[] = {
    {"content", 134, "int", COLUMN_PLAIN, false, 2, 0, 0},
    {"file_path", 100, "string", COLUMN_PLAIN, false, 2, 0, 0},
    {"file_format", 101, "string", COLUMN_PLAIN, false, 2, 0, 0},
    {"partition", 102, "", COLUMN_PARTITION, false, 2, 0, 0},
    {"record_count", 103, "long", COLUMN_PLAIN, false, 2, 0, 0},
    {"file_size_in_bytes", 104, "long", COLUMN_PLAIN, false, 2, 0, 0},
    {"column_sizes", 108, "long", COLUMN_MAP, true, 2, 117, 118},
    {"value_counts", 109, "long", COLUMN_MAP, true, 2, 119, 120},
    {"null_value_counts", 110, "long", COLUMN_MAP, true, 2, 121, 122},
    {"nan_value_counts", 137, "long", COLUMN_MAP, true, 2, 138, 139},
    {"lower_bounds", 125, "bytes", COLUMN_MAP, true, 2, 126, 127},
    {"upper_bounds", 128, "bytes", COLUMN_MAP, true, 2, 129, 130},
    {"key_metadata", 131, "bytes", COLUMN_PLAIN, true, 2, 0, 0},
    {"split_offsets", 132, "long", COLUMN_ARRAY, true, 2, 0, 133},
    {"equality_ids", 135, "int", COLUMN_ARRAY, true, 2, 0, 136},
    {"sort_order_id", 140, "int", COLUMN_PLAIN, true, 2, 0, 0},
    {"first_row_id", 142, "long", COLUMN_PLAIN, true, 3, 0, 0},
    {"referenced_data_file", 143, "string", COLUMN_PLAIN, true, 2, 0, 0},
    {"content_offset", 144, "long", COLUMN_PLAIN, true, 3, 0, 0},
    {"content_size_in_bytes", 145, "long", COLUMN_PLAIN, true, 3, 0, 0},
};

const struct manifest_column *manifest_file_columns(size_t *out_count)
{
    *out_count = ARRAY_COUNT(FILE_COLUMNS);
    return FILE_COLUMNS;
}

/* ---- names ---- */

static bool name_letter(u32 unit)
{
    return (unit >= 'a' && unit <= 'z') || (unit >= 'A' && unit <= 'Z') || unit == '_';
}

static void name_append_unit(buf *out, u32 unit, bool first)
{
    bool digit = unit >= '0' && unit <= '9';
    if (name_letter(unit) || (digit && !first)) {
        buf_append_byte(out, (u8)unit);
    } else if (digit) {
        buf_append_format(out, "_%c", (char)unit);
    } else {
        buf_append_format(out, "_x%X", unit);
    }
}

/* The code point at `at`, and the bytes it takes. `text` is UTF-8. */
static u32 name_code_point(str text, size_t at, size_t *out_size)
{
    u8 lead = (u8)text.data[at];
    size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    u32 point = size == 1 ? lead : (u32)(lead & (0x7F >> size));
    for (size_t i = 1; i < size; i++) {
        point = (point << 6) | ((u8)text.data[at + i] & 0x3FU);
    }
    *out_size = size;
    return point;
}

str manifest_avro_name(struct arena *arena, str name, bool *out_changed)
{
    assert(utf8_valid(name));
    buf out = buf_create(arena, name.size + 1, name.size * 6 + 16);
    size_t size = 0;
    for (size_t at = 0; at < name.size; at += size) {
        u32 point = name_code_point(name, at, &size);
        if (point >= 0x10000) { /* two UTF-16 units */
            name_append_unit(&out, 0xD800 + ((point - 0x10000) >> 10), at == 0);
            name_append_unit(&out, 0xDC00 + ((point - 0x10000) & 0x3FF), false);
        } else {
            name_append_unit(&out, point, at == 0);
        }
    }
    *out_changed = !str_equal(buf_str(&out), name);
    return buf_ok(&out) ? buf_str(&out) : (str){NULL, 0};
}

/* ---- partition values ---- */

err manifest_partition_type(const struct partition_field *field, const struct type *root,
                            struct type *out_type, struct error *error)
{
    if (partition_result_type(field, root, out_type)) {
        return OK;
    }
    if (field->transform == PARTITION_OTHER) {
        return error_set(error, INVALID, ERROR_PARTITIONED_TABLE_UNSUPPORTED,
                         "partition field %.*s has a transform that is not known",
                         STR_ARG(field->name));
    }
    /* The source column was dropped: only nulls are written, and any type holds them. */
    *out_type = (struct type){.kind = TYPE_INT};
    return OK;
}

static i32 decimal_width(i32 precision)
{
    static const i32 LAST_PRECISION[] = {2,  4,  6,  9,  11, 14, 16, 18,
                                         21, 23, 26, 28, 31, 33, 35, 38};
    size_t width = 0;
    while (LAST_PRECISION[width] < precision) {
        width++;
    }
    return (i32)width + 1;
}

/* The words of a type that has no name of its own; NULL for fixed ones. */
static const char *partition_simple(const struct type *type)
{
    switch (type->kind) {
    case TYPE_BOOLEAN:
        return "\"boolean\"";
    case TYPE_INT:
        return "\"int\"";
    case TYPE_LONG:
        return "\"long\"";
    case TYPE_FLOAT:
        return "\"float\"";
    case TYPE_DOUBLE:
        return "\"double\"";
    case TYPE_DATE:
        return "{\"type\":\"int\",\"logicalType\":\"date\"}";
    case TYPE_TIME:
        return "{\"type\":\"long\",\"logicalType\":\"time-micros\"}";
    case TYPE_TIMESTAMP:
        return "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\",\"adjust-to-utc\":false}";
    case TYPE_TIMESTAMPTZ:
        return "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\",\"adjust-to-utc\":true}";
    case TYPE_TIMESTAMP_NS:
        return "{\"type\":\"long\",\"logicalType\":\"timestamp-nanos\",\"adjust-to-utc\":false}";
    case TYPE_TIMESTAMPTZ_NS:
        return "{\"type\":\"long\",\"logicalType\":\"timestamp-nanos\",\"adjust-to-utc\":true}";
    case TYPE_STRING:
        return "\"string\"";
    case TYPE_BINARY:
        return "\"bytes\"";
    case TYPE_UUID:
    case TYPE_FIXED:
    case TYPE_DECIMAL:
        return NULL;
    case TYPE_UNKNOWN:
    case TYPE_STRUCT:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_VARIANT:
    case TYPE_GEOMETRY:
    case TYPE_GEOGRAPHY:
        return "\"int\""; /* sources of void only */
    }
    return NULL;
}

static str partition_fixed_name(struct arena *arena, const struct type *type)
{
    if (type->kind == TYPE_UUID) {
        return STR("uuid_fixed");
    }
    if (type->kind == TYPE_FIXED) {
        return str_format(arena, "fixed_%d", type->length);
    }
    return str_format(arena, "decimal_%d_%d", type->precision, type->scale);
}

static void put_fixed(buf *out, const struct type *type, str name)
{
    i32 size = type->kind == TYPE_UUID    ? 16
               : type->kind == TYPE_FIXED ? type->length
                                          : decimal_width(type->precision);
    buf_append_format(out, "{\"type\":\"fixed\",\"name\":\"%.*s\",\"size\":%d", STR_ARG(name),
                      size);
    if (type->kind == TYPE_UUID) {
        buf_append(out, STR(",\"logicalType\":\"uuid\""));
    } else if (type->kind == TYPE_DECIMAL) {
        buf_append_format(out, ",\"logicalType\":\"decimal\",\"precision\":%d,\"scale\":%d",
                          type->precision, type->scale);
    }
    buf_append_byte(out, '}');
}

/* A named type may be defined once in a schema; `defined` holds the names so far. */
static void put_partition_type(buf *out, const struct type *type, str *defined, size_t *count)
{
    const char *simple = partition_simple(type);
    if (simple != NULL) {
        buf_append(out, str_from(simple));
        return;
    }
    str name = partition_fixed_name(out->arena, type);
    for (size_t i = 0; i < *count; i++) {
        if (str_equal(defined[i], name)) {
            buf_append_json_string(out, name);
            return;
        }
    }
    defined[(*count)++] = name;
    put_fixed(out, type, name);
}

MUST_USE static err put_partition_field(buf *out, const struct partition_field *field,
                                        const struct type *type, str *defined, size_t *count,
                                        struct error *error)
{
    bool changed = false;
    str name = manifest_avro_name(out->arena, field->name, &changed);
    if (name.data == NULL) {
        return error_memory(error);
    }
    buf_append(out, STR("{\"name\":"));
    buf_append_json_string(out, name);
    buf_append(out, STR(",\"type\":[\"null\","));
    put_partition_type(out, type, defined, count);
    buf_append_format(out, "],\"default\":null,\"field-id\":%d", field->field_id);
    if (changed) {
        buf_append(out, STR(",\"iceberg-field-name\":"));
        buf_append_json_string(out, field->name);
    }
    buf_append_byte(out, '}');
    return OK;
}

MUST_USE static err put_partition(buf *out, const struct partition_spec *spec,
                                  const struct type *root, struct error *error)
{
    size_t count = 0;
    str *defined = arena_array(out->arena, spec->count, sizeof(*defined));
    if (defined == NULL) {
        return error_memory(error);
    }
    buf_append(out, STR("{\"type\":\"record\",\"name\":\"r102\",\"fields\":["));
    for (size_t i = 0; i < spec->count; i++) {
        struct type type = {0};
        TRY(manifest_partition_type(&spec->fields[i], root, &type, error));
        if (i > 0) {
            buf_append_byte(out, ',');
        }
        TRY(put_partition_field(out, &spec->fields[i], &type, defined, &count, error));
    }
    buf_append(out, STR("]}"));
    return OK;
}

/* ---- columns ---- */

static void put(buf *out, const char *text)
{
    buf_append(out, str_from(text));
}

/* {"name":"…","type": */
static void put_column_begin(buf *out, const struct manifest_column *column, bool first)
{
    put(out, first ? "{\"name\":\"" : ",{\"name\":\"");
    put(out, column->name);
    put(out, column->optional ? "\",\"type\":[\"null\"," : "\",\"type\":");
}

static void put_column_end(buf *out, const struct manifest_column *column)
{
    put(out, column->optional ? "],\"default\":null,\"field-id\":" : ",\"field-id\":");
    buf_append_i64(out, column->id);
    put(out, "}");
}

static void put_name(buf *out, const char *name)
{
    put(out, "\"");
    put(out, name);
    put(out, "\"");
}

static void put_plain_columns(buf *out, const struct manifest_column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put_column_begin(out, &columns[i], i == 0);
        put_name(out, columns[i].type);
        put_column_end(out, &columns[i]);
    }
}

static void put_map(buf *out, const struct manifest_column *column)
{
    buf_append_format(out,
                      "{\"type\":\"array\",\"items\":{\"type\":\"record\",\"name\":\"k%d_v%d\","
                      "\"fields\":[{\"name\":\"key\",\"type\":\"int\",\"field-id\":%d},"
                      "{\"name\":\"value\",\"type\":\"%s\",\"field-id\":%d}]},"
                      "\"logicalType\":\"map\"}",
                      column->key_id, column->value_id, column->key_id, column->type,
                      column->value_id);
}

static void put_summary(buf *out, const struct manifest_column *column)
{
    buf_append(out, STR("{\"type\":\"array\",\"items\":{\"type\":\"record\",\"name\":\"r508\","
                        "\"fields\":["));
    put_plain_columns(out, SUMMARY_COLUMNS, ARRAY_COUNT(SUMMARY_COLUMNS));
    buf_append_format(out, "]},\"element-id\":%d}", column->value_id);
}

MUST_USE static err put_type(buf *out, const struct manifest_column *column,
                             const struct partition_spec *spec, const struct type *root,
                             struct error *error)
{
    switch (column->kind) {
    case COLUMN_PLAIN:
        put_name(out, column->type);
        break;
    case COLUMN_MAP:
        put_map(out, column);
        break;
    case COLUMN_ARRAY:
        buf_append_format(out, "{\"type\":\"array\",\"items\":\"%s\",\"element-id\":%d}",
                          column->type, column->value_id);
        break;
    case COLUMN_SUMMARY:
        put_summary(out, column);
        break;
    case COLUMN_PARTITION:
        return put_partition(out, spec, root, error);
    }
    return OK;
}

MUST_USE static err put_columns(buf *out, i32 format_version, const struct manifest_column *columns,
                                size_t count, const struct partition_spec *spec,
                                const struct type *root, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct manifest_column *column = &columns[i];
        if (column->since > format_version) {
            continue;
        }
        put_column_begin(out, column, i == 0);
        TRY(put_type(out, column, spec, root, error));
        put_column_end(out, column);
    }
    return OK;
}

MUST_USE static err schema_done(const buf *out, str *out_text, struct error *error)
{
    if (!buf_ok(out)) {
        return error_memory(error);
    }
    *out_text = buf_str(out);
    return OK;
}

err manifest_list_schema(struct arena *arena, i32 format_version, str *out_text,
                         struct error *error)
{
    buf out = buf_create(arena, SCHEMA_TEXT_FIRST, SCHEMA_TEXT_MAX);
    buf_append(&out, STR("{\"type\":\"record\",\"name\":\"manifest_file\",\"fields\":["));
    TRY(put_columns(&out, format_version, LIST_COLUMNS, ARRAY_COUNT(LIST_COLUMNS), NULL, NULL,
                    error));
    buf_append(&out, STR("]}"));
    return schema_done(&out, out_text, error);
}

err manifest_entry_schema(struct arena *arena, i32 format_version,
                          const struct partition_spec *spec, const struct type *root, str *out_text,
                          struct error *error)
{
    buf out = buf_create(arena, SCHEMA_TEXT_FIRST, SCHEMA_TEXT_MAX);
    buf_append(&out, STR("{\"type\":\"record\",\"name\":\"manifest_entry\",\"fields\":["));
    put_plain_columns(&out, ENTRY_COLUMNS, ARRAY_COUNT(ENTRY_COLUMNS));
    buf_append(&out, STR(",{\"name\":\"data_file\",\"type\":{\"type\":\"record\",\"name\":\"r2\","
                         "\"fields\":["));
    TRY(put_columns(&out, format_version, FILE_COLUMNS, ARRAY_COUNT(FILE_COLUMNS), spec, root,
                    error));
    buf_append(&out, STR("]},\"field-id\":2}]}"));
    return schema_done(&out, out_text, error);
}
