#include "sink/attach.h"

#include "base/assert.h"
#include "table/write.h"

/* ---- column types ---- */

/* Schemas are bounded in depth (SCHEMA_DEPTH_MAX), so a stack of that many places is enough. */
struct type_walk {
    struct {
        const struct type *type;
        size_t next;
    } stack[SCHEMA_DEPTH_MAX + 2];
    size_t level;
};

static void walk_begin(struct type_walk *walk, const struct type *root)
{
    walk->level = 1;
    walk->stack[0].type = root;
    walk->stack[0].next = 0;
}

/* The next field in depth-first order, or NULL. */
static const struct field *walk_next(struct type_walk *walk)
{
    while (walk->level > 0) {
        size_t top = walk->level - 1;
        const struct type *type = walk->stack[top].type;
        if (walk->stack[top].next == type->field_count) {
            walk->level--;
            continue;
        }
        const struct field *field = &type->fields[walk->stack[top].next++];
        if (type_is_nested(&field->type)) {
            assert(walk->level < ARRAY_COUNT(walk->stack));
            walk->stack[walk->level].type = &field->type;
            walk->stack[walk->level].next = 0;
            walk->level++;
        }
        return field;
    }
    return NULL;
}

static bool kind_is_written(enum type_kind kind)
{
    return kind != TYPE_GEOMETRY && kind != TYPE_GEOGRAPHY;
}

/* A list or map of unknown, or a struct of nothing else: Parquet has no form for it, so that empty,
 * null and full would read alike. */
static bool type_is_hollow(const struct type *type)
{
    size_t first = type->kind == TYPE_MAP ? 1 : 0;
    for (size_t i = first; i < type->field_count; i++) {
        if (type->fields[i].type.kind != TYPE_UNKNOWN) {
            return false;
        }
    }
    return type_is_nested(type);
}

static err check_types(struct arena *arena, const struct schema *schema, struct error *error)
{
    struct type_walk walk;
    walk_begin(&walk, &schema->root);
    for (const struct field *field = walk_next(&walk); field != NULL; field = walk_next(&walk)) {
        if (kind_is_written(field->type.kind) && !type_is_hollow(&field->type)) {
            continue;
        }
        str text = type_text(arena, &field->type);
        error_field_text(error, "column", field->name);
        error_field_text(error, "type", text);
        err result = error_set(error, DENIED, ERROR_UNSUPPORTED_COLUMN_TYPE,
                               "column %.*s is of type %.*s, which a sink cannot write",
                               STR_ARG(field->name), STR_ARG(text));
        error_hint(error, "use a table without this column, or send it as a string");
        return result;
    }
    const struct field *stamp = type_field(&schema->root, STR(DECODE_INGEST_COLUMN));
    if (stamp != NULL && stamp->type.kind != TYPE_TIMESTAMPTZ) {
        err result = error_set(error, DENIED, ERROR_RESERVED_COLUMN_CONFLICT,
                               "the table has a column __ingest_ts that is no timestamptz");
        error_hint(error, "rename it: a sink stamps each row's arrival there");
        return result;
    }
    return OK;
}

/* ---- partitioning ---- */

static bool kind_is_time(enum type_kind kind)
{
    return kind == TYPE_DATE || kind == TYPE_TIMESTAMP || kind == TYPE_TIMESTAMPTZ ||
           kind == TYPE_TIMESTAMP_NS || kind == TYPE_TIMESTAMPTZ_NS;
}

static bool field_is_allowed(const struct partition_field *field, i32 format_version,
                             const struct schema *schema)
{
    if (field->transform == PARTITION_VOID) {
        return true;
    }
    bool by_time = field->transform == PARTITION_YEAR || field->transform == PARTITION_MONTH ||
                   field->transform == PARTITION_DAY || field->transform == PARTITION_HOUR;
    if (format_version < 3 || !by_time) {
        return false;
    }
    for (size_t i = 0; i < schema->root.field_count; i++) {
        if (schema->root.fields[i].id == field->source_id) {
            return kind_is_time(schema->root.fields[i].type.kind);
        }
    }
    return false;
}

static err check_partitioning(struct arena *arena, const struct metadata *metadata,
                              const struct schema *schema, struct error *error)
{
    struct partition_spec spec = {0};
    TRY(metadata_spec(arena, metadata, &spec, error));
    i32 version = metadata_format_version(metadata);
    for (size_t i = 0; i < spec.count; i++) {
        if (!field_is_allowed(&spec.fields[i], version, schema)) {
            err result = error_set(error, DENIED, ERROR_PARTITIONED_TABLE_UNSUPPORTED,
                                   "the table is partitioned by %.*s",
                                   STR_ARG(spec.fields[i].name));
            error_hint(error,
                       "a sink takes unpartitioned tables, and format-version 3 tables "
                       "partitioned by day, hour, month or year of a date or timestamp column");
            return result;
        }
    }
    return OK;
}

err attach_check(struct arena *arena, const struct metadata *metadata, struct error *error)
{
    i32 version = metadata_format_version(metadata);
    if (version != 2 && version != 3) {
        err result = error_set(error, DENIED, ERROR_FORMAT_VERSION_UNSUPPORTED,
                               "the table is of format version %d, a sink needs 2 or 3", version);
        error_hint(error,
                   "upgrade it with your engine: set the table property format-version to 2");
        return result;
    }
    struct schema schema = {0};
    TRY(metadata_schema(arena, metadata, &schema, error));
    TRY(check_partitioning(arena, metadata, &schema, error));
    return check_types(arena, &schema, error);
}

/* ---- locations ---- */

err attach_check_locations(struct arena *arena, const struct warehouse *warehouse,
                           const struct metadata *metadata, struct error *error)
{
    const str places[] = {
        metadata_location(metadata),
        write_folder(arena, metadata, "write.data.path", "data"),
        write_folder(arena, metadata, "write.metadata.path", "metadata"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        str inside = str_format(arena, "%.*s/x", STR_ARG(places[i]));
        if (places[i].data == NULL || inside.data == NULL) {
            return error_memory(error);
        }
        struct store store = {0};
        str key = {0};
        TRY(location_find(&warehouse->locations, arena, inside, &store, &key, error));
    }
    return OK;
}

/* ---- unknown fields ---- */

err attach_parse_unknown(str unknown_fields, const struct schema *schema,
                         struct decode_settings *out_settings, struct error *error)
{
    struct decode_settings settings = *out_settings;
    if (str_equal(unknown_fields, STR("reject"))) {
        settings.unknown = DECODE_UNKNOWN_REJECT;
    } else if (str_equal(unknown_fields, STR("ignore"))) {
        settings.unknown = DECODE_UNKNOWN_IGNORE;
    } else if (str_starts(unknown_fields, STR("capture:"))) {
        settings.unknown = DECODE_UNKNOWN_CAPTURE;
        settings.capture_column = str_slice(unknown_fields, 8, unknown_fields.size);
        const struct field *field = type_field(&schema->root, settings.capture_column);
        if (field == NULL || field->required || !decode_may_capture(&field->type)) {
            error_field_text(error, "path", STR("unknown_fields"));
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "unknown_fields: %.*s is no optional string or variant column of the "
                             "table",
                             STR_ARG(settings.capture_column));
        }
    } else {
        error_field_text(error, "path", STR("unknown_fields"));
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "unknown_fields: reject, ignore or capture:<column> is wanted");
    }
    *out_settings = settings;
    return OK;
}

/* ---- warnings ---- */

struct warnings {
    struct arena *arena;
    str *texts;
    size_t count;
    bool failed;
};

static void warn(struct warnings *warnings, str text)
{
    if (warnings->count == ATTACH_WARNINGS_MAX) {
        return;
    }
    warnings->failed = warnings->failed || text.data == NULL;
    warnings->texts[warnings->count++] = text;
}

/* Which of the engines of docs/types.md refuse a table with such a column; empty: none. */
static str engines_without(enum type_kind kind)
{
    switch (kind) {
    case TYPE_TIME:
    case TYPE_TIMESTAMP_NS:
        return STR("Spark 3.5");
    case TYPE_TIMESTAMPTZ_NS:
        return STR("DuckDB 1.5 and Spark 3.5");
    case TYPE_UNKNOWN:
        return STR("DuckDB 1.5");
    case TYPE_VARIANT:
        return STR("PyIceberg 0.12 and Spark 3.5");
    case TYPE_BOOLEAN:
    case TYPE_INT:
    case TYPE_LONG:
    case TYPE_FLOAT:
    case TYPE_DOUBLE:
    case TYPE_DECIMAL:
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_STRING:
    case TYPE_UUID:
    case TYPE_FIXED:
    case TYPE_BINARY:
    case TYPE_STRUCT:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_GEOMETRY:
    case TYPE_GEOGRAPHY:
        return STR("");
    }
    return STR("");
}

err attach_warnings(struct arena *arena, const struct metadata *metadata,
                    str out_warnings[ATTACH_WARNINGS_MAX], size_t *out_count, struct error *error)
{
    struct warnings warnings = {.arena = arena, .texts = out_warnings};
    struct schema schema = {0};
    TRY(metadata_schema(arena, metadata, &schema, error));
    if (metadata_format_version(metadata) == 3) {
        warn(&warnings,
             STR("format version 3: PyIceberg 0.12 reads the table but cannot append to it"));
    }
    struct type_walk walk;
    walk_begin(&walk, &schema.root);
    for (const struct field *field = walk_next(&walk); field != NULL; field = walk_next(&walk)) {
        str engines = engines_without(field->type.kind);
        if (engines.size > 0) {
            str type = type_text(arena, &field->type);
            warn(&warnings, str_format(arena, "column %.*s is %.*s: %.*s cannot open the table",
                                       STR_ARG(field->name), STR_ARG(type), STR_ARG(engines)));
        }
    }
    if (warnings.failed) {
        return error_memory(error);
    }
    *out_count = warnings.count;
    return OK;
}
