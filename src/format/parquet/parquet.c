#include "format/parquet/parquet.h"

#include "base/assert.h"
#include "format/parquet/writer.h"

enum {
    PARQUET_ROW_GROUP_ROWS = 1024 * 1024,
    PARQUET_ROW_GROUP_BYTES = 64 * 1024 * 1024,
    PARQUET_PAGE_ROWS = 20000,
    PARQUET_ZSTD_LEVEL = 1,
    PARQUET_PAGE_SLACK = 64 * 1024, /* what a full page has besides values */
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

/* ---- the kit ---- */

/* Where the body and what is packed of it are scratch for the choice too. */
static void encoder_link(struct encoder *encoder)
{
    encoder->choice.body = &encoder->body;
    encoder->choice.packed = &encoder->packed;
}

err parquet_kit_open(struct arena *arena, struct crew *crew, size_t bytes_max,
                     struct parquet_kit **out_kit, struct error *error)
{
    size_t count = crew_workers(crew);
    struct parquet_kit *kit = arena_alloc(arena, sizeof(*kit));
    struct encoder *encoders = arena_array(arena, count, sizeof(*encoders));
    if (kit == NULL || encoders == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        encoder_init(&encoders[i], arena_create(bytes_max));
        encoder_link(&encoders[i]);
    }
    *kit = (struct parquet_kit){.crew = crew, .encoders = encoders, .encoder_count = count};
    *out_kit = kit;
    return OK;
}

void parquet_kit_close(struct parquet_kit *kit)
{
    for (size_t i = 0; kit != NULL && i < kit->encoder_count; i++) {
        compressor_close(&kit->encoders[i].compressor);
        arena_destroy(kit->encoders[i].arena);
    }
}

void parquet_kit_close_at(struct parquet_kit **kit)
{
    parquet_kit_close(*kit);
}

/* A writer without a kit is one of its own, in the writer's arena. */
MUST_USE static err writer_init_kit(struct parquet_writer *writer, struct error *error)
{
    writer->kit = writer->options.kit;
    if (writer->kit != NULL) {
        return OK;
    }
    struct encoder *encoder = arena_alloc(writer->arena, sizeof(*encoder));
    if (encoder == NULL) {
        return error_memory(error);
    }
    encoder_init(encoder, writer->arena);
    encoder_link(encoder);
    writer->own = (struct parquet_kit){.encoders = encoder, .encoder_count = 1};
    writer->kit = &writer->own;
    return OK;
}

static void writer_init_indexes(struct parquet_writer *writer)
{
    writer->blooms = buf_create(writer->arena, 0, PARQUET_INDEXES_SIZE_MAX);
    writer->column_indexes = buf_create(writer->arena, 0, PARQUET_INDEXES_SIZE_MAX);
    writer->offset_indexes = buf_create(writer->arena, 0, PARQUET_INDEXES_SIZE_MAX);
}

/* ---- opening ---- */

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
    TRY(writer_init_kit(writer, error));
    writer_init_indexes(writer);
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

/* The chunks of a row group, encoded at the same time and put one after the other. */
struct encoding {
    struct parquet_writer *writer;
    const struct column *columns;
    struct chunk_done *done;
    struct chunk_meta *chunks;
    err result; /* of the first chunk that failed */
    struct error *error;
};

static void encode_one(void *context, size_t index, size_t worker)
{
    struct encoding *encoding = context;
    struct encoder *encoder = &encoding->writer->kit->encoders[worker];
    struct chunk_done *done = &encoding->done[index];
    if (atomic_load(&encoder->held) == 0) {
        arena_reset(encoder->output);
    }
    atomic_fetch_add(&encoder->held, 1);
    done->result = chunk_encode(encoding->writer, encoder, index, encoding->columns, done);
}

static void put_one(void *context, size_t index, size_t worker)
{
    (void)worker;
    struct encoding *encoding = context;
    struct chunk_done *done = &encoding->done[index];
    if (encoding->result == OK && done->result != OK) {
        encoding->result = done->result;
        if (encoding->error != NULL) {
            *encoding->error = done->error;
        }
    } else if (encoding->result == OK) {
        encoding->result = chunk_put(encoding->writer, index, done, &encoding->chunks[index],
                                     encoding->error);
    }
    atomic_fetch_sub(&done->encoder->held, 1);
}

/* Compressors are kept in a kit that was given; a writer has no end at which to close its own. */
MUST_USE static err encoders_begin(struct parquet_writer *writer, struct error *error)
{
    const struct parquet_options *options = &writer->options;
    for (size_t i = 0; i < writer->kit->encoder_count; i++) {
        struct encoder *encoder = &writer->kit->encoders[i];
        encoder->output = arena_create(PARQUET_INDEXES_SIZE_MAX);
        if (encoder->body.data == NULL) {
            size_t size = (size_t)options->page_bytes_max + PARQUET_PAGE_SLACK;
            encoder->body = buf_create(encoder->arena, size, INT32_MAX);
            encoder->packed = buf_create(encoder->arena, size, INT32_MAX);
        }
        if (encoder->compressor.context == NULL || encoder->compressor.codec != options->codec) {
            compressor_close(&encoder->compressor);
            TRY(compressor_open(options->codec, options->compress_level, &encoder->compressor,
                                error));
        }
        encoder->compressor.level = options->compress_level;
    }
    return OK;
}

static void encoders_end(struct parquet_writer *writer)
{
    for (size_t i = 0; i < writer->kit->encoder_count; i++) {
        struct encoder *encoder = &writer->kit->encoders[i];
        arena_destroy(encoder->output);
        encoder->output = NULL;
        if (writer->kit == &writer->own) {
            compressor_close(&encoder->compressor);
        }
    }
}

MUST_USE static err row_group_write(struct parquet_writer *writer, const struct column *columns,
                                    struct error *error)
{
    struct parquet_kit *kit = writer->kit;
    struct row_group_meta *group = NULL;
    i64 count = (i64)writer->leaf_count;
    TRY(encoders_begin(writer, error));
    TRY(row_group_add(writer, columns[0].count, &group, error));
    struct encoding encoding = {
        .writer = writer,
        .columns = columns,
        .done = room_take(&kit->done, kit->encoders[0].arena, count, sizeof(*encoding.done)),
        .chunks = group->chunks,
        .error = error,
    };
    bool *ended = room_take(&kit->ended, kit->encoders[0].arena, count, sizeof(*ended));
    if (encoding.done == NULL || ended == NULL) {
        return error_memory(error);
    }
    memset(ended, 0, writer->leaf_count * sizeof(*ended));
    crew_run_ordered(kit->crew, writer->leaf_count, encode_one, put_one, &encoding, ended);
    writer->rows += columns[0].count;
    return encoding.result;
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
    err written = row_group_write(writer, columns, error);
    encoders_end(writer);
    return written;
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
