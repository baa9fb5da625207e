#include "account/usage.h"

struct usage_query {
    struct arena *arena;
    str project;
    struct usage usage;
};

static err read_month(struct db_tx *tx, void *context, struct error *error)
{
    struct usage_query *query = context;
    char now[TIME_TEXT_SIZE];
    str month = str_slice(time_format(db_now(tx), now), 0, 7);
    const struct db_value values[] = {DB_T(query->project), DB_T(month)};
    struct db_rows rows = {0};
    TRY(db_query(tx, query->arena,
                 "SELECT u.sink, coalesce(s.name, ''), u.batches, u.bytes, u.rows_accepted, "
                 "u.rows_rejected FROM usage_month u LEFT JOIN sink s ON s.id = u.sink "
                 "WHERE u.project = ?1 AND u.month = ?2 ORDER BY u.bytes DESC, u.sink",
                 values, ARRAY_COUNT(values), &rows, error));
    struct usage usage = {.sink_count = rows.row_count};
    memcpy(usage.month, month.data, month.size);
    usage.by_sink = arena_array(query->arena, rows.row_count, sizeof(*usage.by_sink));
    if (usage.by_sink == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < rows.row_count; i++) {
        usage.by_sink[i] = (struct usage_sink){
            .sink_id = db_text(&rows, i, 0),
            .name = db_text(&rows, i, 1),
            .batches = db_number(&rows, i, 2),
            .bytes = db_number(&rows, i, 3),
            .rows_accepted = db_number(&rows, i, 4),
            .rows_rejected = db_number(&rows, i, 5),
        };
        usage.batches += usage.by_sink[i].batches;
        usage.bytes += usage.by_sink[i].bytes;
        usage.rows_accepted += usage.by_sink[i].rows_accepted;
        usage.rows_rejected += usage.by_sink[i].rows_rejected;
    }
    query->usage = usage;
    return OK;
}

err usage_month(const struct db *db, struct arena *arena, str project, struct usage *out_usage,
                struct error *error)
{
    struct usage_query query = {.arena = arena, .project = project};
    TRY(db_read(db, read_month, &query, error));
    *out_usage = query.usage;
    return OK;
}
