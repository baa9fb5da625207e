#include "sink/roll_write.h"

#include "base/assert.h"
#include "io/store.h"
#include "table/write.h"

#include <stdint.h>

enum {
    PIECE_BYTES = 128 * 1024,
    PIECES_MAX = 8192, /* 1 GiB a file */
    ROWS_BETWEEN_LOOKS = 256,
};

static err print_schema(struct arena *arena, const struct schema *schema, str *out_json,
                        struct error *error)
{
    json_t *document = schema_to_json(schema);
    if (document == NULL) {
        return error_memory(error);
    }
    size_t size = json_dumpb(document, NULL, 0, JSON_COMPACT);
    char *text = arena_alloc(arena, size + 1);
    bool printed = text != NULL && json_dumpb(document, text, size, JSON_COMPACT) == size;
    json_decref(document);
    if (!printed) {
        return error_memory(error);
    }
    *out_json = (str){text, size};
    return OK;
}

err roll_writer_init(struct roll_writer *writer, struct roll *roll, const struct table *table,
                     const struct schema *schema, const struct partition_spec *spec,
                     struct arena *scratch, struct error *error)
{
    *writer = (struct roll_writer){
        .roll = roll,
        .schema = schema,
        .spec = spec,
        .metadata = table->metadata,
        .scratch = scratch,
        .files = arena_grow(roll->arena, NULL, 0, ROLL_FILES_MAX * sizeof(struct data_file)),
    };
    if (writer->files == NULL) {
        return error_memory(error);
    }
    TRY(write_parquet_options(roll->arena, table->metadata, schema, &writer->options, error));
    return print_schema(roll->arena, schema, &writer->schema_json, error);
}

bool roll_writer_wants(const struct roll_writer *writer, const struct column *columns, size_t count)
{
    i64 rows = count == 0 ? 0 : columns[0].count;
    if (rows >= writer->options.row_group_rows_max) {
        return true;
    }
    if (rows == 0 || rows % ROWS_BETWEEN_LOOKS != 0) {
        return false;
    }
    i64 bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += column_bytes(&columns[i]);
    }
    return bytes >= writer->options.row_group_bytes_max;
}

err roll_writer_foresee(const struct roll_writer *writer, struct column *columns, size_t count,
                        i64 done, i64 total, struct error *error)
{
    enum { MARGIN = 1 }; /* of COLUMN_TIMES_ONE: batches differ */
    i64 bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += column_bytes(&columns[i]);
    }
    if (done <= 0 || bytes == 0) {
        return OK;
    }
    i64 times = num_min_i64(total / done + 1, writer->options.row_group_bytes_max / bytes + 1);
    times = num_min_i64(times, COLUMN_TIMES_MAX / (COLUMN_TIMES_ONE + MARGIN));
    for (size_t i = 0; i < count; i++) {
        if (!column_foresee(&columns[i], times * (COLUMN_TIMES_ONE + MARGIN))) {
            return error_memory(error);
        }
    }
    return OK;
}

/* ---- the file under way ---- */

static err new_piece(struct roll_writer *writer, struct error *error)
{
    char *room = arena_grow(writer->scratch, NULL, 0, PIECE_BYTES + STORE_PAGE_BYTES);
    if (room == NULL || writer->piece_count == PIECES_MAX) {
        return error_memory(error);
    }
    room += -(uintptr_t)room % STORE_PAGE_BYTES;
    writer->pieces[writer->piece_count++] = (str){room, 0};
    writer->piece_end = room;
    writer->piece_room = PIECE_BYTES;
    return OK;
}

/* The file's bytes are kept until it is put: its length must be known, and a put is one attempt. */
static err take_bytes(void *context, str bytes, struct error *error)
{
    struct roll_writer *writer = context;
    size_t taken = 0;
    while (taken < bytes.size) {
        if (writer->piece_room == 0) {
            TRY(new_piece(writer, error));
        }
        str *piece = &writer->pieces[writer->piece_count - 1];
        size_t size = bytes.size - taken;
        size = size < writer->piece_room ? size : writer->piece_room;
        memcpy(writer->piece_end, bytes.data + taken, size);
        writer->piece_end += size;
        piece->size += size;
        writer->piece_room -= size;
        taken += size;
    }
    writer->bytes += (i64)bytes.size;
    return OK;
}

static err begin_file(struct roll_writer *writer, struct error *error)
{
    assert(writer->parquet == NULL);
    arena_reset(writer->scratch);
    writer->pieces = arena_grow(writer->scratch, NULL, 0, PIECES_MAX * sizeof(*writer->pieces));
    writer->piece_count = 0;
    writer->piece_room = 0;
    writer->bytes = 0;
    if (writer->pieces == NULL) {
        return error_memory(error);
    }
    return parquet_open(writer->scratch, writer->schema->root.fields,
                        writer->schema->root.field_count, &writer->options, writer->schema_json,
                        take_bytes, writer, &writer->parquet, error);
}

err roll_writer_rows(struct roll_writer *writer, const struct column *columns, struct error *error)
{
    if (columns[0].count == 0) {
        return OK;
    }
    if (writer->parquet == NULL) {
        TRY(begin_file(writer, error));
    }
    return parquet_row_group(writer->parquet, columns, error);
}

/* ---- its end ---- */

static err keep_bound(struct arena *arena, str *bound, struct error *error)
{
    if (bound->data == NULL) {
        return OK;
    }
    *bound = str_copy(arena, *bound);
    return bound->data == NULL ? error_memory(error) : OK;
}

/* Out of the file's scratch into the roll's arena. */
static err keep_stats(struct arena *arena, struct parquet_file_stats *stats, struct error *error)
{
    struct parquet_column_stats *columns = arena_array(arena, stats->column_count,
                                                       sizeof(*columns));
    i64 *splits = arena_array(arena, stats->split_count, sizeof(*splits));
    if (columns == NULL || splits == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < stats->column_count; i++) {
        columns[i] = stats->columns[i];
        TRY(keep_bound(arena, &columns[i].lower, error));
        TRY(keep_bound(arena, &columns[i].upper, error));
    }
    for (size_t i = 0; i < stats->split_count; i++) {
        splits[i] = stats->split_offsets[i];
    }
    stats->columns = columns;
    stats->split_offsets = splits;
    return OK;
}

static err name_file(struct roll_writer *writer, const struct partition_value *values,
                     str *out_path, struct error *error)
{
    struct arena *arena = writer->roll->arena;
    char text[ID_UUID_SIZE];
    str unique = id_uuid_format(id_uuid_make(writer->roll->env->seam), text);
    str folder = writer->spec->count == 0 ? STR("") : partition_path(arena, writer->spec, values);
    str name = str_format(arena, "%05zu-%.*s.parquet", writer->file_count, STR_ARG(unique));
    if (folder.data == NULL || name.data == NULL) {
        return error_memory(error);
    }
    *out_path = write_data_uri(arena, writer->metadata, folder, name);
    return out_path->data == NULL ? error_memory(error) : OK;
}

static err put_file(struct roll_writer *writer, str path, struct error *error)
{
    const struct store_meta meta = {.caching = STORE_UNCACHED};
    struct store store = {0};
    str key = {0};
    TRY(location_find(&writer->roll->env->warehouse->locations, writer->scratch, path, &store, &key,
                      error));
    return store_group_put(&store, writer->roll->group, key, writer->pieces, writer->piece_count,
                           &meta, error);
}

err roll_writer_end(struct roll_writer *writer, const struct partition_value *values,
                    struct error *error)
{
    if (writer->parquet == NULL) {
        return OK;
    }
    assert(writer->file_count < ROLL_FILES_MAX);
    struct data_file file = {.spec_id = writer->spec->id, .partition = values};
    TRY(parquet_finish(writer->parquet, &file.stats, error));
    writer->parquet = NULL;
    TRY(keep_stats(writer->roll->arena, &file.stats, error));
    TRY(name_file(writer, values, &file.path, error));
    TRY(put_file(writer, file.path, error));
    CRASH_POINT(data_file_written);
    writer->files[writer->file_count++] = file;
    return OK;
}
