/* intake_work SET ROWS: one body of so many rows, checked, split and hashed as it arrives. */
#include "sink/intake_body.h"
#include "work.h"

enum { PIECE_BYTES = 64 * KIB };

void work(struct intake_body *intake, str body);

WORK void work(struct intake_body *intake, str body)
{
    struct error error = {0};
    err result = OK;
    for (size_t at = 0; result == OK && at < body.size; at += PIECE_BYTES) {
        result = intake_body_add(intake, str_slice(body, at, at + PIECE_BYTES), &error);
    }
    if (result != OK || intake_body_end(intake, &error) != OK) {
        work_fail(error.message);
    }
}

int main(int argc, char **argv)
{
    AUTO_ARENA struct arena *arena = arena_create(WORK_ARENA_BYTES);
    struct workload workload;
    i64 rows = work_arguments(argc, argv, arena, &workload);
    str body = work_rows(&workload, arena, rows, "[", ",", "]");
    struct intake_limits limits = intake_limits_default();
    struct intake_body intake;
    intake_body_begin(&intake, arena, &limits, (i64)body.size);
    work(&intake, body);
    return intake.accepted == rows ? 0 : 1;
}
