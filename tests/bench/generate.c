/* generate: writes a workload (workload.h).
 *
 * generate SET --columns                    name: type, one a line
 * generate SET ROWS [ARRAY_BYTES] [options]
 *   so many rows to stdout, one a line; with ARRAY_BYTES as JSON arrays of about so many bytes, one
 *   a line
 *   --bad=PERCENT   of the rows are bad
 *   --seed=N        other rows
 *   --plain         of hostile: the good rows alone, written plainly
 * To stderr, at the end: how many rows, and how many of them bad. */
#include "base/assert.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARENA_BYTES = 64 * MIB, ROW_BYTES_MAX = 32 * KIB, OUT_BYTES = 1 * MIB };

struct generate {
    struct workload workload;
    buf out;
    i64 rows_max;
    i64 array_bytes; /* 0: lines */
    i64 in_array;    /* bytes of the array under way */
    i64 rows;
    i64 bad;
    bool good_only;
};

static _Noreturn void usage(void)
{
    fputs("usage: generate iot|event|wide|hostile --columns | ROWS [ARRAY_BYTES] [--bad=PERCENT] "
          "[--seed=N] [--plain]\n",
          stderr);
    exit(2);
}

static void flush(struct generate *generate)
{
    assert(buf_ok(&generate->out));
    size_t size = generate->out.size;
    if (fwrite(generate->out.data, 1, size, stdout) != size) {
        exit(1);
    }
    buf_truncate(&generate->out, 0);
}

/* What stands between this row and the one before. */
static void begin_row(struct generate *generate)
{
    if (generate->array_bytes == 0) {
        return;
    }
    if (generate->in_array >= generate->array_bytes) {
        buf_append(&generate->out, STR("]\n"));
        generate->in_array = 0;
    }
    buf_append_byte(&generate->out, generate->in_array == 0 ? '[' : ',');
}

static void add_row(struct generate *generate, str row)
{
    begin_row(generate);
    buf_append(&generate->out, row);
    if (generate->array_bytes == 0) {
        buf_append_byte(&generate->out, '\n');
    }
    generate->in_array += (i64)row.size + 1;
    generate->rows++;
    if (generate->out.size >= OUT_BYTES - 2 * ROW_BYTES_MAX) {
        flush(generate);
    }
}

static void run(struct generate *generate, struct arena *arena)
{
    buf row = buf_create(arena, ROW_BYTES_MAX, ROW_BYTES_MAX);
    while (generate->workload.row < generate->rows_max) {
        buf_truncate(&row, 0);
        bool good = workload_row(&generate->workload, &row);
        assert(buf_ok(&row));
        if (good || !generate->good_only) {
            generate->bad += good ? 0 : 1;
            add_row(generate, buf_str(&row));
        }
    }
    if (generate->array_bytes > 0) {
        buf_append(&generate->out, STR("]\n"));
    }
    flush(generate);
    fprintf(stderr, "rows=%lld bad=%lld\n", (long long)generate->rows, (long long)generate->bad);
}

static bool read_option(struct generate *generate, str option, i64 *out_seed)
{
    i64 percent = 0;
    if (str_equal(option, STR("--plain"))) {
        generate->good_only = true;
        generate->workload.plain = true;
        return true;
    }
    if (str_starts(option, STR("--seed="))) {
        return str_to_i64(str_slice(option, 7, option.size), out_seed);
    }
    bool is_bad = str_starts(option, STR("--bad=")) &&
                  str_to_i64(str_slice(option, 6, option.size), &percent);
    generate->workload.bad_percent = (i32)percent;
    return is_bad && percent >= 0 && percent <= 100;
}

int main(int argc, char **argv)
{
    AUTO_ARENA struct arena *arena = arena_create(ARENA_BYTES);
    struct generate generate = {.out = buf_create(arena, OUT_BYTES, OUT_BYTES)};
    i64 seed = 0;
    if (argc < 3 || !workload_init(&generate.workload, arena, str_from(argv[1]))) {
        usage();
    }
    if (str_equal(str_from(argv[2]), STR("--columns"))) {
        workload_print_columns(&generate.workload, "\n", &generate.out);
        buf_append_byte(&generate.out, '\n');
        flush(&generate);
        return 0;
    }
    int at = 3;
    if (!str_to_i64(str_from(argv[2]), &generate.rows_max)) {
        usage();
    }
    if (at < argc && str_to_i64(str_from(argv[at]), &generate.array_bytes)) {
        at++;
    }
    for (; at < argc; at++) {
        if (!read_option(&generate, str_from(argv[at]), &seed)) {
            usage();
        }
    }
    workload_seed(&generate.workload, (u64)seed);
    run(&generate, arena);
    return fflush(stdout) == 0 ? 0 : 1;
}
