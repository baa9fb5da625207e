#include "format/parquet/parquet.h"

#include "base/assert.h"
#include "format/parquet/writer.h"

enum {
    PARQUET_ROW_GROUP_ROWS = 1024 * 1024,
    PARQUET_ROW_GROUP_BYTES = 64 * 1024 * 1024,
    PARQUET_PAGE_ROWS = 20000,
    PARQUET_ZSTD_LEVEL = 1,
};

#define PARQUET_INDEXES_SIZE_MAX ((size_t)INT32_MAX)

struct parquet_options parquet_options_default(void)
{
    return (struct parquet_options){
        .codec = COMPRESS_ZSTD,
        .compress_level = PARQUET_ZSTD_LEVEL,
        .row_group_rows_max = PARQUET_ROW_GROUP_ROWS,
        .row_group_bytes_max = PARQUET_ROW_GROUP_BYTES,
        .page_bytes_max = MIB,
        .page_rows_max = PARQUET_PAGE_ROWS,
        .dictionary_bytes_max = MIB,
        .bloom_bytes_max = MIB,
        .created_by = "lhbox version 0.1.0",
    };
}

err parquet_put(struct parquet_writer *writer, str bytes, struct error *error)
{
    if (bytes.size == 0) {
        return OK;
    }
    TRY(writer->output(writer->output_context, bytes, error));
    writer->offset += (i64)bytes.size;
    return OK;
}

static void scratch_init(struct parquet_writer *writer)
{
    struct scratch *scratch = &writer->scratch;
    scratch->pages = buf_create(writer->arena, 0, INT32_MAX);
    scratch->body = buf_create(writer->arena, 0, INT32_MAX);
    scratch->packed = buf_create(writer->arena, 0, INT32_MAX);
    scratch->header = buf_create(writer->arena, 0, INT32_MAX);
    scratch->choice.body = &scratch->body;
    scratch->choice.packed = &scratch->packed;
    writer->blooms = buf_create(writer->arena, 0, PARQUET_INDEXES_SIZE_MAX);
    writer->column_indexes = buf_create(writer->arena, 0, PARQUET_INDEXES_SIZE_MAX);
    writer->offset_indexes = buf_create(writer->arena, 0, PARQUET_INDEXES_SIZE_MAX);
}

/* Each leaf's options: a merge, as both stand in the schema's order. */
MUST_USE static err columns_match(struct parquet_writer *writer, struct error *error)
{
    const struct parquet_options *options = &writer->options;
    writer->columns = arena_array(writer->arena, writer->leaf_count, sizeof(*writer->columns));
    if (writer->columns == NULL) {
        return error_memory(error);
    }
    size_t at = 0;
    for (size_t i = 0; i < writer->leaf_count; i++) {
        i32 id = writer->leaves[i].field->id;
        size_t found = at;
        while (found < options->column_count && options->columns[found].field_id != id) {
            found++;
        }
        struct parquet_column_options column = {.field_id = id,
                                                .metrics = PARQUET_METRICS_BOUNDS,
                                                .bound_units_max = PARQUET_BOUND_UNITS};
        if (found < options->column_count) {
            column = options->columns[found];
            at = found;
        }
        if (writer->leaves[i].repetition_max > 0) {
            column.metrics = PARQUET_METRICS_NONE;
        }
        writer->columns[i] = column;
    }
    return OK;
}

err parquet_open(struct arena *arena, const struct field *fields, size_t field_count,
                 const struct parquet_options *options, str schema_json, parquet_output output,
                 void *output_context, struct parquet_writer **out_writer, struct error *error)
{
    assert(options->codec != COMPRESS_DEFLATE);
    assert(options->page_bytes_max > 0);
    assert(options->page_rows_max > 0);
    assert(options->created_by != NULL);
    struct parquet_writer *writer = arena_alloc(arena, sizeof(*writer));
    if (writer == NULL) {
        return error_memory(error);
    }
    writer->arena = arena;
    writer->fields = fields;
    writer->field_count = field_count;
    writer->options = *options;
    writer->schema_json = schema_json;
    writer->output = output;
    writer->output_context = output_context;
    TRY(leaf_list(arena, fields, field_count, &writer->leaves, &writer->leaf_count, error));
    if (writer->leaf_count == 0) {
        return error_set(error, INVALID, ERROR_UNSUPPORTED_COLUMN_TYPE,
                         "the table has no column that a Parquet file can hold");
    }
    TRY(columns_match(writer, error));
    scratch_init(writer);
    TRY(parquet_put(writer, STR("PAR1"), error));
    *out_writer = writer;
    return OK;
}

/* ---- row groups ---- */

MUST_USE static err row_group_add(struct parquet_writer *writer, i64 rows,
                                  struct row_group_meta **out_group, struct error *error)
{
    struct arena *arena = writer->arena;
    if (writer->row_group_count == writer->row_group_capacity) {
        size_t next = writer->row_group_capacity * 2 + 4;
        struct row_group_meta *groups = arena_grow(arena, writer->row_groups,
                                                   writer->row_group_capacity * sizeof(*groups),
                                                   next * sizeof(*groups));
        if (groups == NULL) {
            return error_memory(error);
        }
        writer->row_groups = groups;
        writer->row_group_capacity = next;
    }
    struct chunk_meta *chunks = arena_array(arena, writer->leaf_count, sizeof(*chunks));
    if (chunks == NULL) {
        return error_memory(error);
    }
    struct row_group_meta *group = &writer->row_groups[writer->row_group_count++];
    *group = (struct row_group_meta){.rows = rows, .start = writer->offset, .chunks = chunks};
    *out_group = group;
    return OK;
}

err parquet_row_group(struct parquet_writer *writer, const struct column *columns,
                      struct error *error)
{
    i64 rows = columns[0].count;
    for (size_t i = 0; i < writer->field_count; i++) {
        assert(columns[i].field == &writer->fields[i]);
        assert(columns[i].count == rows);
    }
    if (rows == 0) {
        return OK;
    }
    struct row_group_meta *group = NULL;
    TRY(row_group_add(writer, rows, &group, error));

    AUTO_COMPRESSOR struct compressor compressor = {0};
    TRY(compressor_open(writer->options.codec, writer->options.compress_level, &compressor, error));
    for (size_t i = 0; i < writer->leaf_count; i++) {
        TRY(chunk_write(writer, i, columns, &compressor, &group->chunks[i], error));
    }
    writer->rows += rows;
    return OK;
}

/* ---- finishing ---- */

/* Over all row groups. A chunk with values whose upper bound was dropped leaves the file without.
 */
static struct bounds file_bounds(const struct parquet_writer *writer, size_t leaf_index)
{
    const struct leaf *leaf = &writer->leaves[leaf_index];
    struct bounds bounds = {0};
    bool upper_known = true;
    for (size_t i = 0; i < writer->row_group_count; i++) {
        struct bounds chunk = writer->row_groups[i].chunks[leaf_index].manifest.bounds;
        upper_known = upper_known && (chunk.lower.data == NULL || chunk.upper.data != NULL);
        bounds_widen(leaf, &bounds, chunk);
    }
    if (!upper_known) {
        bounds.upper = (str){0};
    }
    return bounds;
}

static void column_stats_count(const struct parquet_writer *writer, size_t leaf_index,
                               struct parquet_column_stats *stats)
{
    const struct leaf *leaf = &writer->leaves[leaf_index];
    bool is_float = leaf->physical == LEAF_FLOAT || leaf->physical == LEAF_DOUBLE;
    *stats = (struct parquet_column_stats){.field_id = leaf->field->id};
    for (size_t i = 0; i < writer->row_group_count; i++) {
        const struct chunk_meta *chunk = &writer->row_groups[i].chunks[leaf_index];
        stats->compressed_bytes += chunk->compressed_bytes;
        stats->value_count += chunk->value_count;
        stats->null_count += chunk->null_count;
        stats->nan_count += chunk->nan_count;
    }
    if (writer->columns[leaf_index].metrics == PARQUET_METRICS_NONE) {
        stats->value_count = -1;
        stats->null_count = -1;
    }
    if (writer->columns[leaf_index].metrics == PARQUET_METRICS_NONE || !is_float) {
        stats->nan_count = -1;
    }
}

MUST_USE static err column_stats_make(const struct parquet_writer *writer, size_t leaf_index,
                                      struct parquet_column_stats *stats, struct error *error)
{
    const struct leaf *leaf = &writer->leaves[leaf_index];
    column_stats_count(writer, leaf_index, stats);
    struct bounds bounds = {0};
    if (!bounds_for_iceberg(leaf, file_bounds(writer, leaf_index), writer->arena, &bounds)) {
        return error_memory(error);
    }
    stats->lower = bounds.lower;
    stats->upper = bounds.upper;
    return OK;
}

err parquet_finish(struct parquet_writer *writer, struct parquet_file_stats *out_stats,
                   struct error *error)
{
    struct parquet_file_stats stats = {
        .rows = writer->rows,
        .columns = arena_array(writer->arena, writer->leaf_count, sizeof(*stats.columns)),
        .split_offsets = arena_array(writer->arena, writer->row_group_count, sizeof(i64)),
        .split_count = writer->row_group_count,
    };
    if (stats.columns == NULL || stats.split_offsets == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < writer->leaf_count; i++) {
        if (writer->leaves[i].field->id != TYPE_NO_ID) {
            TRY(column_stats_make(writer, i, &stats.columns[stats.column_count++], error));
        }
    }
    for (size_t i = 0; i < writer->row_group_count; i++) {
        stats.split_offsets[i] = writer->row_groups[i].start;
    }
    TRY(footer_write(writer, error));
    stats.file_bytes = writer->offset;
    *out_stats = stats;
    return OK;
}
