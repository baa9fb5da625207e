/* encode_work SET ROWS: columns to one Parquet file of one row group. */
#include "format/parquet/parquet.h"
#include "work.h"

void work(struct parquet_writer *writer, const struct column *columns);

static err count_bytes(void *context, str bytes, struct error *error)
{
    (void)error;
    *(size_t *)context += bytes.size;
    return OK;
}

WORK void work(struct parquet_writer *writer, const struct column *columns)
{
    struct error error = {0};
    struct parquet_file_stats stats = {0};
    if (parquet_row_group(writer, columns, &error) != OK ||
        parquet_finish(writer, &stats, &error) != OK || stats.rows != columns[0].count) {
        work_fail(error.message);
    }
}

int main(int argc, char **argv)
{
    AUTO_ARENA struct arena *arena = arena_create(WORK_ARENA_BYTES);
    struct workload workload;
    i64 rows = work_arguments(argc, argv, arena, &workload);
    str lines = work_rows(&workload, arena, rows, "", "\n", "");
    struct schema schema = {0};
    struct decode_settings settings = {.unknown = DECODE_UNKNOWN_REJECT};
    struct parquet_options options = parquet_options_default();
    struct decoder *decoder = NULL;
    struct parquet_writer *writer = NULL;
    struct error error = {0};
    size_t bytes = 0;
    size_t count = 0;
    work_schema(&workload, arena, &schema);
    if (decoder_open(arena, &schema, &settings, &decoder, &error) != OK ||
        parquet_open(arena, schema.root.fields, schema.root.field_count, &options, STR("{}"),
                     count_bytes, &bytes, &writer, &error) != OK) {
        work_fail(error.message);
    }
    work_decode(decoder, lines, rows, NULL);
    work(writer, decoder_columns(decoder, &count));
    return bytes > 0 ? 0 : 1;
}
