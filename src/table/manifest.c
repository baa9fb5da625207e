/* Data manifests: those of new files have one entry, ADDED, for each. */
#include "table/manifest.h"

#include "base/assert.h"
#include "base/map.h"
#include "format/avro.h"
#include "table/document.h"
#include "table/manifest_schema.h"
#include "table/manifest_writer.h"

enum {
    MANIFEST_BYTES_MAX = AVRO_BLOCK_BYTES_MAX,
    MANIFEST_FILE_BYTES_MAX = AVRO_BLOCK_BYTES_MAX + 16 * MIB,
    MANIFEST_ENTRY_BYTES = 512, /* a first guess */
};

/* ---- partition values ---- */

static size_t manifest_value_width(enum type_kind kind)
{
    switch (kind) {
    case TYPE_INT:
    case TYPE_DATE:
        return 4;
    case TYPE_LONG:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_TIMESTAMP_NS:
    case TYPE_TIMESTAMPTZ_NS:
        return 8;
    case TYPE_BOOLEAN:
    case TYPE_FLOAT:
    case TYPE_DOUBLE:
    case TYPE_DECIMAL:
    case TYPE_STRING:
    case TYPE_UUID:
    case TYPE_FIXED:
    case TYPE_BINARY:
    case TYPE_UNKNOWN:
    case TYPE_STRUCT:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_VARIANT:
    case TYPE_GEOMETRY:
    case TYPE_GEOGRAPHY:
        return 0;
    }
    return 0;
}

static void manifest_widen(struct manifest_bound *bound, struct partition_value value)
{
    if (value.is_null) {
        bound->contains_null = true;
        return;
    }
    bound->lower = bound->has_value ? num_min_i64(bound->lower, value.number) : value.number;
    bound->upper = bound->has_value ? num_max_i64(bound->upper, value.number) : value.number;
    bound->has_value = true;
}

err manifest_put_partition(struct manifest_writer *writer, const struct partition_value *values,
                           struct error *error)
{
    for (size_t i = 0; i < writer->spec->count; i++) {
        struct manifest_bound *bound = &writer->bounds[i];
        if (!values[i].is_null && manifest_value_width(bound->type.kind) == 0) {
            return error_set(error, INVALID, ERROR_PARTITIONED_TABLE_UNSUPPORTED,
                             "values of partition field %.*s cannot be written",
                             STR_ARG(writer->spec->fields[i].name));
        }
        manifest_widen(bound, values[i]);
        avro_put_branch(&writer->entries, values[i].is_null ? 0 : 1);
        if (!values[i].is_null) {
            avro_put_long(&writer->entries, values[i].number);
        }
    }
    return OK;
}

static void manifest_put_bound(buf *out, const struct manifest_bound *bound, i64 value)
{
    if (!bound->has_value) {
        avro_put_branch(out, 0);
        return;
    }
    u8 bytes[8];
    num_store_u64(bytes, (u64)value); /* little-endian: the first bytes are the smaller type's */
    avro_put_branch(out, 1);
    avro_put_bytes(out, (str){(const char *)bytes, manifest_value_width(bound->type.kind)});
}

/* The list entry's `partitions`: an array, empty (not null) without partition fields. */
static void manifest_put_summary(buf *out, const struct manifest_bound *bounds, size_t count)
{
    if (count > 0) {
        avro_put_long(out, (i64)count);
    }
    for (size_t i = 0; i < count; i++) {
        avro_put_boolean(out, bounds[i].contains_null);
        avro_put_branch(out, 1);
        avro_put_boolean(out, false); /* there are no floats among them */
        manifest_put_bound(out, &bounds[i], bounds[i].lower);
        manifest_put_bound(out, &bounds[i], bounds[i].upper);
    }
    avro_put_long(out, 0);
}

/* ---- entries ---- */

enum manifest_map { MAP_SIZES, MAP_VALUES, MAP_NULLS, MAP_NANS, MAP_LOWER, MAP_UPPER };

static bool manifest_map_has(const struct parquet_column_stats *column, enum manifest_map map)
{
    switch (map) {
    case MAP_SIZES:
        return true;
    case MAP_VALUES:
        return column->value_count >= 0;
    case MAP_NULLS:
        return column->null_count >= 0;
    case MAP_NANS:
        return column->nan_count >= 0;
    case MAP_LOWER:
        return column->lower.data != NULL;
    case MAP_UPPER:
        return column->upper.data != NULL;
    }
    return false;
}

static void manifest_put_map_value(buf *out, const struct parquet_column_stats *column,
                                   enum manifest_map map)
{
    switch (map) {
    case MAP_SIZES:
        avro_put_long(out, column->compressed_bytes);
        break;
    case MAP_VALUES:
        avro_put_long(out, column->value_count);
        break;
    case MAP_NULLS:
        avro_put_long(out, column->null_count);
        break;
    case MAP_NANS:
        avro_put_long(out, column->nan_count);
        break;
    case MAP_LOWER:
        avro_put_bytes(out, column->lower);
        break;
    case MAP_UPPER:
        avro_put_bytes(out, column->upper);
        break;
    }
}

static void manifest_put_map(buf *out, const struct parquet_file_stats *stats,
                             enum manifest_map map)
{
    i64 count = 0;
    for (size_t i = 0; i < stats->column_count; i++) {
        count += manifest_map_has(&stats->columns[i], map) ? 1 : 0;
    }
    avro_put_branch(out, count > 0 ? 1 : 0);
    if (count == 0) {
        return;
    }
    avro_put_long(out, count);
    for (size_t i = 0; i < stats->column_count; i++) {
        if (manifest_map_has(&stats->columns[i], map)) {
            avro_put_long(out, stats->columns[i].field_id);
            manifest_put_map_value(out, &stats->columns[i], map);
        }
    }
    avro_put_long(out, 0);
}

static void manifest_put_splits(buf *out, const struct parquet_file_stats *stats)
{
    avro_put_branch(out, stats->split_count > 0 ? 1 : 0);
    if (stats->split_count == 0) {
        return;
    }
    avro_put_long(out, (i64)stats->split_count);
    for (size_t i = 0; i < stats->split_count; i++) {
        avro_put_long(out, stats->split_offsets[i]);
    }
    avro_put_long(out, 0);
}

/* In the order of manifest_entry_schema. */
MUST_USE static err manifest_put_file(struct manifest_writer *writer, const struct data_file *file,
                                      struct error *error)
{
    buf *out = &writer->entries;
    avro_put_long(out, 0); /* content: data */
    avro_put_bytes(out, file->path);
    avro_put_bytes(out, STR("PARQUET"));
    TRY(manifest_put_partition(writer, file->partition, error));
    avro_put_long(out, file->stats.rows);
    avro_put_long(out, file->stats.file_bytes);
    for (enum manifest_map map = MAP_SIZES; map <= MAP_UPPER; map++) {
        manifest_put_map(out, &file->stats, map);
    }
    avro_put_branch(out, 0); /* key_metadata */
    manifest_put_splits(out, &file->stats);
    avro_put_branch(out, 0); /* equality_ids */
    avro_put_branch(out, 0); /* sort_order_id: rows stand as they came, whatever the table's is */
    if (writer->format_version >= 3) {
        avro_put_branch(out, 0); /* first_row_id: inherited from the list */
    }
    avro_put_branch(out, 0); /* referenced_data_file */
    if (writer->format_version >= 3) {
        avro_put_branch(out, 0); /* content_offset */
        avro_put_branch(out, 0); /* content_size_in_bytes */
    }
    return OK;
}

MUST_USE static err manifest_put_entry(struct manifest_writer *writer, const struct data_file *file,
                                       struct error *error)
{
    assert(file->spec_id == writer->spec->id);
    avro_put_long(&writer->entries, MANIFEST_ADDED);
    avro_put_branch(&writer->entries, 1);
    avro_put_long(&writer->entries, writer->snapshot_id);
    avro_put_branch(&writer->entries, 0); /* both sequence numbers are inherited from the list */
    avro_put_branch(&writer->entries, 0);
    return manifest_put_file(writer, file, error);
}

/* A path twice would count its rows twice; some readers refuse the table. */
MUST_USE static err manifest_check_paths(struct arena *arena, const struct data_file *files,
                                         size_t count, struct error *error)
{
    struct map *paths = map_create(arena, count);
    for (size_t i = 0; i < count; i++) {
        bool is_new = false;
        if (paths == NULL || map_put(paths, files[i].path, &is_new) == NULL) {
            return error_memory(error);
        }
        if (!is_new) {
            return error_set(error, INVALID, ERROR_INTERNAL, "the data file %.*s is given twice",
                             STR_ARG(files[i].path));
        }
    }
    return OK;
}

/* ---- the file ---- */

MUST_USE static err manifest_header(struct arena *arena, const struct metadata *metadata,
                                    const struct schema *schema, const struct partition_spec *spec,
                                    struct avro_meta *out_meta, struct error *error)
{
    const json_t *root = metadata_json(metadata);
    const json_t *schema_json = document_find(json_object_get(root, "schemas"), "schema-id",
                                              schema->id);
    const json_t *spec_json = document_find(json_object_get(root, "partition-specs"), "spec-id",
                                            spec->id);
    if (schema_json == NULL || spec_json == NULL) {
        return error_set(error, INVALID, ERROR_INTERNAL,
                         "the table has no schema %d or no partition spec %d", schema->id,
                         spec->id);
    }
    str schema_text = {NULL, 0};
    str fields_text = {NULL, 0};
    TRY(document_print(arena, schema_json, &schema_text, error));
    TRY(document_print(arena, json_object_get(spec_json, "fields"), &fields_text, error));
    str numbers[3] = {str_format(arena, "%d", schema->id), str_format(arena, "%d", spec->id),
                      str_format(arena, "%d", metadata_format_version(metadata))};
    if (numbers[0].data == NULL || numbers[1].data == NULL || numbers[2].data == NULL) {
        return error_memory(error);
    }
    out_meta[0] = (struct avro_meta){STR("schema"), schema_text};
    out_meta[1] = (struct avro_meta){STR("schema-id"), numbers[0]};
    out_meta[2] = (struct avro_meta){STR("partition-spec"), fields_text};
    out_meta[3] = (struct avro_meta){STR("partition-spec-id"), numbers[1]};
    out_meta[4] = (struct avro_meta){STR("format-version"), numbers[2]};
    out_meta[5] = (struct avro_meta){STR("content"), STR("data")};
    return OK;
}

err manifest_writer_open(struct arena *arena, const struct metadata *metadata,
                         const struct schema *schema, const struct partition_spec *spec,
                         i64 snapshot_id, size_t bytes, struct manifest_writer *out_writer,
                         struct error *error)
{
    struct manifest_bound *bounds = arena_array(arena, spec->count, sizeof(*bounds));
    if (bounds == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < spec->count; i++) {
        TRY(manifest_partition_type(&spec->fields[i], &schema->root, &bounds[i].type, error));
    }
    *out_writer = (struct manifest_writer){
        .arena = arena,
        .metadata = metadata,
        .schema = schema,
        .spec = spec,
        .snapshot_id = snapshot_id,
        .format_version = metadata_format_version(metadata),
        .bounds = bounds,
        .entries = buf_create(arena, bytes < MANIFEST_BYTES_MAX ? bytes : MANIFEST_BYTES_MAX,
                              MANIFEST_BYTES_MAX),
    };
    return OK;
}

err manifest_tally_add(struct manifest_tally *tally, enum manifest_status status, i64 rows,
                       struct error *error)
{
    if (tally->files[status] == INT32_MAX ||
        !num_add_i64(tally->rows[status], rows, &tally->rows[status])) {
        return error_set(error, LIMIT, ERROR_INTERNAL, "too many rows for one manifest");
    }
    tally->files[status]++;
    return OK;
}

/* What is known of the manifest in a list; the commit adds the sequence numbers. */
MUST_USE static err manifest_describe(struct manifest_writer *writer, str path, size_t length,
                                      struct manifest_file *out_file, struct error *error)
{
    const struct manifest_tally *tally = &writer->tally;
    buf summary = buf_create(writer->arena, 64, MIB);
    manifest_put_summary(&summary, writer->bounds, writer->spec->count);
    if (!buf_ok(&summary)) {
        return error_memory(error);
    }
    *out_file = (struct manifest_file){.path = path,
                                       .length = (i64)length,
                                       .spec_id = writer->spec->id,
                                       .sequence_number = -1,
                                       .min_sequence_number = -1,
                                       .added_snapshot_id = writer->snapshot_id,
                                       .added_files = tally->files[MANIFEST_ADDED],
                                       .existing_files = tally->files[MANIFEST_EXISTING],
                                       .added_rows = tally->rows[MANIFEST_ADDED],
                                       .existing_rows = tally->rows[MANIFEST_EXISTING],
                                       .first_row_id = -1,
                                       .partitions = buf_str(&summary)};
    return OK;
}

err manifest_writer_end(struct manifest_writer *writer, str path, str *out_bytes,
                        struct manifest_file *out_file, struct error *error)
{
    struct arena *arena = writer->arena;
    struct avro_meta meta[6];
    str schema_text = {NULL, 0};
    struct manifest_file file = {0};
    const struct manifest_tally *tally = &writer->tally;
    i64 count = (i64)tally->files[MANIFEST_ADDED] + tally->files[MANIFEST_EXISTING];
    assert(count > 0);
    assert(tally->files[MANIFEST_DELETED] == 0);
    TRY(manifest_header(arena, writer->metadata, writer->schema, writer->spec, meta, error));
    TRY(manifest_entry_schema(arena, writer->format_version, writer->spec, &writer->schema->root,
                              &schema_text, error));
    if (!buf_ok(&writer->entries)) {
        return error_memory(error);
    }
    buf bytes = buf_create(arena, writer->entries.size / 2 + 4 * KIB, MANIFEST_FILE_BYTES_MAX);
    TRY(avro_write(&bytes, arena, schema_text, meta, ARRAY_COUNT(meta), AVRO_DEFLATE,
                   buf_str(&writer->entries), count, error));
    TRY(manifest_describe(writer, path, bytes.size, &file, error));
    *out_bytes = buf_str(&bytes);
    *out_file = file;
    return OK;
}

err manifest_write(struct arena *arena, const struct metadata *metadata,
                   const struct schema *schema, const struct partition_spec *spec, i64 snapshot_id,
                   const struct data_file *files, size_t count, str path, str *out_bytes,
                   struct manifest_file *out_file, struct error *error)
{
    assert(count > 0);
    assert(count <= INT32_MAX);
    struct manifest_writer writer = {0};
    TRY(manifest_check_paths(arena, files, count, error));
    TRY(manifest_writer_open(arena, metadata, schema, spec, snapshot_id,
                             count * MANIFEST_ENTRY_BYTES, &writer, error));
    for (size_t i = 0; i < count; i++) {
        TRY(manifest_put_entry(&writer, &files[i], error));
        TRY(manifest_tally_add(&writer.tally, MANIFEST_ADDED, files[i].stats.rows, error));
    }
    return manifest_writer_end(&writer, path, out_bytes, out_file, error);
}
