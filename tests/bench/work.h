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

/* SET ROWS [BAD_PERCENT], from the command line. */
static inline i64 work_arguments(int argc, char **argv, struct arena *arena,
                                 struct workload *out_workload)
{
    i64 rows = 0;
    i64 bad = 0;
    if (argc < 3 || argc > 4 || !workload_init(out_workload, arena, str_from(argv[1])) ||
        !str_to_i64(str_from(argv[2]), &rows) ||
        (argc == 4 && !str_to_i64(str_from(argv[3]), &bad))) {
        work_fail("usage: SET ROWS [BAD_PERCENT]");
    }
    out_workload->bad_percent = (i32)bad;
    return rows;
}

/* Bad rows are recorded in `rejects`; NULL: there are none. */
static inline void work_decode(struct decoder *decoder, str lines, i64 rows, buf *rejects)
{
    const struct reject_batch batch = {.batch_id = STR_INIT("r1"), .mapping_version = -1};
    struct error error = {0};
    struct decode_result result = {0};
    str line;
    decoder_reads(decoder, lines);
    for (i64 i = 0; i < rows; i++) {
        if (decode_next(decoder, &lines, 0, &line, &result, &error) != OK) {
            work_fail(error.message);
        }
        if (result.verdict != DECODE_ROW) {
            if (rejects == NULL) {
                work_fail("a row was not taken");
            }
            const struct reject_row row = {.row = i,
                                           .hits = result.hits,
                                           .hit_count = result.hit_count,
                                           .did_you_mean = result.did_you_mean,
                                           .data = line,
                                           .is_json = true};
            reject_record(rejects, &batch, &row);
        }
    }
}

#endif
