/* decode_work SET ROWS: stored lines to columns. */
#include "work.h"

void work(struct decoder *decoder, str lines, i64 rows);

WORK void work(struct decoder *decoder, str lines, i64 rows)
{
    work_decode(decoder, lines, rows);
}

int main(int argc, char **argv)
{
    AUTO_ARENA struct arena *arena = arena_create(WORK_ARENA_BYTES);
    struct workload workload;
    i64 rows = work_arguments(argc, argv, arena, &workload);
    str lines = work_rows(&workload, arena, rows, "", "\n", "");
    struct schema schema = {0};
    struct decode_settings settings = {.unknown = DECODE_UNKNOWN_REJECT};
    struct decoder *decoder = NULL;
    struct error error = {0};
    work_schema(&workload, arena, &schema);
    if (decoder_open(arena, &schema, &settings, &decoder, &error) != OK) {
        work_fail(error.message);
    }
    work(decoder, lines, rows);
    size_t count = 0;
    return decoder_columns(decoder, &count)[0].count == rows ? 0 : 1;
}
