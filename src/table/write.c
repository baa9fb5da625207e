#include "table/write.h"

#include "base/assert.h"
#include "table/schema_walk.h"

#include <stdlib.h>

enum {
    WRITE_ZSTD_LEVEL_MAX = 19,
    WRITE_GZIP_LEVEL = 6,
    WRITE_GZIP_LEVEL_MAX = 9,
    WRITE_BYTES_MIN = 1024,
    WRITE_BYTES_MAX = 64 * 1024 *
                      1024, /* of a row group, a page or a dictionary: they are in memory */
    WRITE_BLOOM_BYTES_MIN = 32,
    WRITE_INFERRED_COLUMNS = 100,
    WRITE_KEY_BYTES_MAX = 128 + SCHEMA_NAME_BYTES_MAX * (SCHEMA_DEPTH_MAX + 2),
};

#define WRITE_BLOOM_FPP 0.01

/* What one column is told, by write.metadata.metrics.*. */
struct write_metrics {
    enum parquet_metrics metrics;
    i64 units;
};

static const struct write_metrics WRITE_METRICS_DEFAULT = {PARQUET_METRICS_BOUNDS,
                                                           PARQUET_BOUND_UNITS};

/* ---- the file ---- */

static i64 property_in(const struct metadata *metadata, const char *key, i64 least, i64 greatest,
                       i64 otherwise)
{
    i64 value = metadata_property_i64(metadata, key, otherwise);
    return value < least ? otherwise : num_min_i64(value, greatest);
}

static void choose_codec(const struct metadata *metadata, struct parquet_options *options)
{
    str codec = metadata_property(metadata, "write.parquet.compression-codec");
    i64 most = WRITE_ZSTD_LEVEL_MAX;
    i64 least = 1;
    if (str_equal_ignore_case(codec, STR("uncompressed"))) {
        options->codec = COMPRESS_NONE;
    } else if (str_equal_ignore_case(codec, STR("snappy"))) {
        options->codec = COMPRESS_SNAPPY;
    } else if (str_equal_ignore_case(codec, STR("gzip"))) {
        options->codec = COMPRESS_GZIP;
        options->compress_level = WRITE_GZIP_LEVEL;
        most = WRITE_GZIP_LEVEL_MAX;
        least = 0;
    }
    options->compress_level = (i32)property_in(metadata, "write.parquet.compression-level", least,
                                               most, options->compress_level);
}

static void choose_encodings(const struct metadata *metadata, struct parquet_options *options)
{
    str encodings = metadata_property(metadata, "write.parquet.encodings");
    if (str_equal_ignore_case(encodings, STR("compact"))) {
        options->encodings = PARQUET_ENCODINGS_COMPACT;
    }
}

static void choose_sizes(const struct metadata *metadata, struct parquet_options *options)
{
    options->row_group_bytes_max = property_in(metadata, "write.parquet.row-group-size-bytes",
                                               WRITE_BYTES_MIN, WRITE_BYTES_MAX,
                                               options->row_group_bytes_max);
    options->page_bytes_max = property_in(metadata, "write.parquet.page-size-bytes",
                                          WRITE_BYTES_MIN, WRITE_BYTES_MAX,
                                          options->page_bytes_max);
    options->page_rows_max = property_in(metadata, "write.parquet.page-row-limit", 1, INT32_MAX,
                                         options->page_rows_max);
    options->dictionary_bytes_max = property_in(metadata, "write.parquet.dict-size-bytes",
                                                WRITE_BYTES_MIN, WRITE_BYTES_MAX,
                                                options->dictionary_bytes_max);
    options->bloom_bytes_max = property_in(metadata, "write.parquet.bloom-filter-max-bytes",
                                           WRITE_BLOOM_BYTES_MIN, WRITE_BYTES_MAX,
                                           options->bloom_bytes_max);
}

/* ---- metrics ---- */

/* none, counts, truncate(n) or full. */
static struct write_metrics parse_metrics(str text, struct write_metrics otherwise)
{
    static const str cut = STR_INIT("truncate(");
    i64 units = 0;
    if (str_equal_ignore_case(text, STR("none"))) {
        return (struct write_metrics){PARQUET_METRICS_NONE, PARQUET_BOUND_WHOLE};
    }
    if (str_equal_ignore_case(text, STR("counts"))) {
        return (struct write_metrics){PARQUET_METRICS_COUNTS, PARQUET_BOUND_WHOLE};
    }
    if (str_equal_ignore_case(text, STR("full"))) {
        return (struct write_metrics){PARQUET_METRICS_BOUNDS, PARQUET_BOUND_WHOLE};
    }
    if (text.size > cut.size && str_ends(text, STR(")")) &&
        str_equal_ignore_case(str_slice(text, 0, cut.size), cut) &&
        str_to_i64(str_slice(text, cut.size, text.size - 1), &units) && units > 0) {
        return (struct write_metrics){PARQUET_METRICS_BOUNDS, units};
    }
    return otherwise;
}

/* Without a default of the owner's only so many columns have metrics, those of the top first. */
static void infer_metrics(const struct metadata *metadata, struct parquet_column_options *columns,
                          const i32 *depths, size_t count)
{
    i64 left = property_in(metadata, "write.metadata.metrics.max-inferred-column-defaults", 0,
                           INT32_MAX, WRITE_INFERRED_COLUMNS);
    for (i32 depth = 0; depth <= SCHEMA_DEPTH_MAX; depth++) {
        for (size_t i = 0; i < count; i++) {
            if (depths[i] == depth && left-- <= 0) {
                columns[i].metrics = PARQUET_METRICS_NONE;
            }
        }
    }
}

/* ---- columns ---- */

struct write_columns {
    const struct metadata *metadata;
    str names[SCHEMA_DEPTH_MAX + 2];
    buf key;
};

/* The property `prefix<name>`, by the column's full name. */
static str column_property(struct write_columns *columns, const char *prefix, i32 depth)
{
    buf_truncate(&columns->key, 0);
    buf_append(&columns->key, str_from(prefix));
    for (i32 i = 0; i <= depth; i++) {
        buf_append(&columns->key, i > 0 ? STR(".") : STR(""));
        buf_append(&columns->key, columns->names[i]);
    }
    buf_append_byte(&columns->key, 0);
    return buf_ok(&columns->key) ? metadata_property(columns->metadata, columns->key.data)
                                 : (str){NULL, 0};
}

static double parse_fpp(struct arena *arena, str text)
{
    str copy = str_copy(arena, text);
    double value = text.data == NULL || copy.data == NULL ? 0 : strtod(copy.data, NULL);
    return value > 0 && value < 1 ? value : WRITE_BLOOM_FPP;
}

static void choose_column(struct arena *arena, struct write_columns *columns, i32 depth,
                          struct parquet_column_options *column)
{
    const struct write_metrics metrics = parse_metrics(
        column_property(columns, "write.metadata.metrics.column.", depth),
        (struct write_metrics){column->metrics, column->bound_units_max});
    column->metrics = metrics.metrics;
    column->bound_units_max = metrics.units;
    column->bloom = str_equal_ignore_case(
        column_property(columns, "write.parquet.bloom-filter-enabled.column.", depth), STR("true"));
    if (column->bloom) {
        column->bloom_fpp = parse_fpp(
            arena, column_property(columns, "write.parquet.bloom-filter-fpp.column.", depth));
    }
}

/* The depth of the field last given, -1 below a list or map: there are no metrics. */
static i32 metrics_depth(const struct schema_walk *walk)
{
    for (i32 i = 0; i <= walk->depth; i++) {
        if (walk->types[i]->kind != TYPE_STRUCT) {
            return -1;
        }
    }
    return walk->depth;
}

/* The leaves with their depth, in the schema's order. */
static size_t list_leaves(const struct schema *schema, struct parquet_column_options *columns,
                          i32 *depths)
{
    struct schema_walk walk;
    size_t count = 0;
    schema_walk_begin(&walk, &schema->root);
    for (const struct field *field = schema_walk_next(&walk); field != NULL;
         field = schema_walk_next(&walk)) {
        if (!type_is_nested(&field->type)) {
            if (columns != NULL) {
                columns[count].field_id = field->id;
                depths[count] = metrics_depth(&walk);
            }
            count++;
        }
    }
    return count;
}

static void choose_columns(struct arena *arena, struct write_columns *chosen,
                           const struct schema *schema, struct parquet_column_options *columns)
{
    struct schema_walk walk;
    size_t at = 0;
    schema_walk_begin(&walk, &schema->root);
    for (const struct field *field = schema_walk_next(&walk); field != NULL;
         field = schema_walk_next(&walk)) {
        chosen->names[walk.depth] = field->name;
        if (!type_is_nested(&field->type)) {
            assert(columns[at].field_id == field->id);
            choose_column(arena, chosen, walk.depth, &columns[at++]);
        }
    }
}

err write_parquet_options(struct arena *arena, const struct metadata *metadata,
                          const struct schema *schema, struct parquet_options *out_options,
                          struct error *error)
{
    struct parquet_options options = parquet_options_default();
    choose_codec(metadata, &options);
    choose_encodings(metadata, &options);
    choose_sizes(metadata, &options);
    size_t count = list_leaves(schema, NULL, NULL);
    struct parquet_column_options *columns = arena_array(arena, count, sizeof(*columns));
    i32 *depths = arena_array(arena, count, sizeof(*depths));
    struct write_columns chosen = {.metadata = metadata,
                                   .key = buf_create(arena, KIB, WRITE_KEY_BYTES_MAX)};
    if (columns == NULL || depths == NULL) {
        return error_memory(error);
    }
    (void)list_leaves(schema, columns, depths);
    str text = metadata_property(metadata, "write.metadata.metrics.default");
    struct write_metrics metrics = parse_metrics(text, WRITE_METRICS_DEFAULT);
    for (size_t i = 0; i < count; i++) {
        columns[i].metrics = metrics.metrics;
        columns[i].bound_units_max = metrics.units;
    }
    if (text.data == NULL) {
        infer_metrics(metadata, columns, depths, count);
    }
    choose_columns(arena, &chosen, schema, columns);
    if (!buf_ok(&chosen.key)) {
        return error_memory(error);
    }
    options.columns = columns;
    options.column_count = count;
    *out_options = options;
    return OK;
}
