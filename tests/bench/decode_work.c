/* decode_work SET ROWS [BAD_PERCENT]: stored lines to columns, and to records of rejects. */
#include "work.h"

void work(struct decoder *decoder, str lines, i64 rows, buf *rejects);

WORK void work(struct decoder *decoder, str lines, i64 rows, buf *rejects)
{
    work_decode(decoder, lines, rows, rejects);
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
    buf rejects = buf_create(arena, WORK_BYTES_MAX, WORK_BYTES_MAX);
    work(decoder, lines, rows, &rejects);
    size_t count = 0;
    i64 taken = decoder_columns(decoder, &count)[0].count;
    return (workload.bad_percent > 0 ? rejects.size > 0 && taken < rows : taken == rows) ? 0 : 1;
}
