/* work: what the programs whose instructions are counted have in common.
 *
 * Each makes its input first and then calls work(), once: tests/bench/test_instructions.py counts
 * what happens inside of that function. */
#ifndef LHBOX_BENCH_WORK_H
#define LHBOX_BENCH_WORK_H

#include "sink/decode.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORK_ARENA_BYTES = 512 * MIB, WORK_BYTES_MAX = 128 * MIB };

/* A function that stays one, under its own name. */
#ifdef __clang__
#define WORK __attribute__((noinline))
#else
#define WORK __attribute__((noinline, noclone))
#endif

static inline _Noreturn void work_fail(const char *what)
{
    fprintf(stderr, "work: %s\n", what);
    exit(2);
}

/* The rows with `before` the first, `between` two, and `after` the last. */
static inline str work_rows(struct workload *workload, struct arena *arena, i64 rows,
                            const char *before, const char *between, const char *after)
{
    buf out = buf_create(arena, WORK_BYTES_MAX / 4, WORK_BYTES_MAX);
    buf_append(&out, str_from(before));
    for (i64 i = 0; i < rows; i++) {
        buf_append(&out, str_from(i > 0 ? between : ""));
        workload_row(workload, &out);
    }
    buf_append(&out, str_from(after));
    if (!buf_ok(&out)) {
        work_fail("too many rows");
    }
    return buf_str(&out);
}

static inline void work_schema(const struct workload *workload, struct arena *arena,
                               struct schema *out_schema)
{
    buf text = buf_create(arena, KIB, 64 * KIB);
    struct error error = {0};
    i32 last_id = 0;
    buf_append(&text, STR("struct<"));
    workload_print_columns(workload, ", ", &text);
    buf_append_byte(&text, '>');
    if (schema_parse_type(arena, buf_str(&text), &out_schema->root, NULL, &error) != OK) {
        work_fail(error.message);
    }
    schema_assign_ids(&out_schema->root, &last_id);
}

/* SET ROWS, from the command line. */
static inline i64 work_arguments(int argc, char **argv, struct arena *arena,
                                 struct workload *out_workload)
{
    i64 rows = 0;
    if (argc != 3 || !workload_init(out_workload, arena, str_from(argv[1])) ||
        !str_to_i64(str_from(argv[2]), &rows)) {
        work_fail("usage: SET ROWS");
    }
    return rows;
}

static inline void work_decode(struct decoder *decoder, str lines, i64 rows)
{
    struct error error = {0};
    struct decode_result result = {0};
    str line;
    decoder_reads(decoder, lines);
    for (i64 i = 0; i < rows; i++) {
        if (decode_next(decoder, &lines, 0, &line, &result, &error) != OK ||
            result.verdict != DECODE_ROW) {
            work_fail("a row was not taken");
        }
    }
}

#endif
