#include "account/alert.h"

#include "base/id.h"
#include "base/metric.h"
#include "sink/ledger.h"

/* Every condition is one query that gives the sinks it holds for, and why. */
struct alert_kind {
    const char *kind;
    const char *sql;
};

static const struct alert_kind KINDS[] = {
    {"sink_lag",
     "SELECT s.id, 'oldest batch waits since ' || min(b.received_at) FROM sink s JOIN batch b "
     "ON b.sink = s.id AND b.state <= 1 WHERE s.state <> 4 GROUP BY s.id, s.roll_seconds "
     "HAVING min(b.received_at) + s.roll_seconds * 3000000 < ?1"},
    {"sink_disabled", "SELECT id, coalesce(state_reason, '') FROM sink WHERE state = 1 AND ?1 > 0"},
    {"ledger_mismatch", "SELECT id, coalesce(last_error, '') FROM sink WHERE state = 1 "
                        "AND state_reason = 'ledger_mismatch' AND ?1 > 0"},
    {"object_missing", "SELECT sink, min(batch_id) FROM batch WHERE held = 1 AND state <= 1 "
                       "AND held_reason = 'object_missing' AND ?1 > 0 GROUP BY sink"},
    {"object_damaged", "SELECT sink, min(batch_id) FROM batch WHERE held = 1 AND state <= 1 "
                       "AND held_reason = 'object_damaged' AND ?1 > 0 GROUP BY sink"},
    {"batch_quarantined", "SELECT sink, min(batch_id) FROM quarantine WHERE ?1 > 0 GROUP BY sink"},
    {"orphan_kept", "SELECT sink, min(object_key) FROM orphan_segment WHERE kept = 1 AND ?1 > 0 "
                    "GROUP BY sink"},
    {"books_difference",
     "SELECT s.id, 'difference ' || (s.rows_accepted - s.rows_committed - s.rows_rejected - "
     "s.rows_discarded - (SELECT coalesce(sum(b.rows), 0) FROM batch b WHERE b.sink = s.id "
     "AND b.state <= 1)) FROM sink s WHERE ?1 > 0 AND s.rows_accepted - s.rows_committed - "
     "s.rows_rejected - s.rows_discarded <> (SELECT coalesce(sum(b.rows), 0) FROM batch b "
     "WHERE b.sink = s.id AND b.state <= 1)"},
};

struct look {
    const struct seam *seam;
    struct arena *arena;
    i64 different;
};

static err open_alert(struct db_tx *tx, const struct look *look, const char *kind, str sink_id,
                      str detail, struct error *error)
{
    const struct db_value values[] = {DB_T(str_from(kind)), DB_T(sink_id)};
    struct db_rows rows = {0};
    TRY(db_query(tx, look->arena,
                 "SELECT id FROM alert WHERE kind = ?1 AND sink = ?2 AND closed_at IS NULL", values,
                 ARRAY_COUNT(values), &rows, error));
    if (rows.row_count > 0) {
        return OK;
    }
    str id = id_short_make(look->arena, look->seam, "alr_");
    if (id.data == NULL) {
        return error_memory(error);
    }
    return db_run(
        tx, error,
        "INSERT INTO alert (id, kind, sink, opened_at, detail) VALUES (?1, ?2, ?3, ?4, ?5)",
        DB_T(id), DB_T(str_from(kind)), DB_T(sink_id), DB_N(db_now(tx)), DB_T(detail));
}

static bool rows_have(const struct db_rows *rows, str sink_id)
{
    for (size_t i = 0; i < rows->row_count; i++) {
        if (str_equal(db_text(rows, i, 0), sink_id)) {
            return true;
        }
    }
    return false;
}

static err close_alerts(struct db_tx *tx, const struct look *look, const char *kind,
                        const struct db_rows *holds, struct error *error)
{
    const struct db_value values[] = {DB_T(str_from(kind))};
    struct db_rows open = {0};
    TRY(db_query(tx, look->arena,
                 "SELECT sink, id FROM alert WHERE kind = ?1 AND closed_at IS NULL", values,
                 ARRAY_COUNT(values), &open, error));
    for (size_t i = 0; i < open.row_count; i++) {
        if (!rows_have(holds, db_text(&open, i, 0))) {
            TRY(db_run(tx, error, "UPDATE alert SET closed_at = ?1 WHERE id = ?2", DB_N(db_now(tx)),
                       DB_T(db_text(&open, i, 1))));
        }
    }
    return OK;
}

static err holding(struct db_tx *tx, const struct look *look, const struct alert_kind *kind,
                   struct db_rows *out_rows, struct error *error)
{
    const struct db_value values[] = {DB_N(db_now(tx))};
    return db_query(tx, look->arena, kind->sql, values, ARRAY_COUNT(values), out_rows, error);
}

static err look_body(struct db_tx *tx, void *context, struct error *error)
{
    struct look *look = context;
    for (size_t k = 0; k < ARRAY_COUNT(KINDS); k++) {
        struct db_rows rows = {0};
        TRY(holding(tx, look, &KINDS[k], &rows, error));
        for (size_t i = 0; i < rows.row_count; i++) {
            TRY(open_alert(tx, look, KINDS[k].kind, db_text(&rows, i, 0), db_text(&rows, i, 1),
                           error));
        }
        TRY(close_alerts(tx, look, KINDS[k].kind, &rows, error));
        if (k == ARRAY_COUNT(KINDS) - 1) {
            look->different = (i64)rows.row_count;
        }
    }
    return OK;
}

/* Most looks change nothing: find that out without a write. */
static err look_needed(struct db_tx *tx, void *context, struct error *error)
{
    struct look *look = context;
    look->different = 0;
    for (size_t k = 0; k < ARRAY_COUNT(KINDS); k++) {
        struct db_rows rows = {0};
        TRY(holding(tx, look, &KINDS[k], &rows, error));
        look->different += (i64)rows.row_count;
    }
    struct db_rows open = {0};
    TRY(db_query(tx, look->arena, "SELECT count(*) FROM alert WHERE closed_at IS NULL", NULL, 0,
                 &open, error));
    look->different += db_number(&open, 0, 0);
    return OK;
}

err alert_look(const struct db *db, const struct seam *seam, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create(16 * (size_t)MIB);
    struct look look = {.seam = seam, .arena = arena};
    TRY(db_read(db, look_needed, &look, error));
    if (look.different == 0) {
        metric_set(METRIC_BOOKS_DIFFERENCE, 0);
        return OK;
    }
    TRY(db_transact(db, look_body, &look, error));
    metric_set(METRIC_BOOKS_DIFFERENCE, look.different);
    return OK;
}

struct alert_query {
    struct arena *arena;
    str project;
    size_t limit;
    struct alert *alerts;
    size_t count;
};

static err read_alerts(struct db_tx *tx, void *context, struct error *error)
{
    struct alert_query *query = context;
    const struct db_value values[] = {DB_T(query->project),
                                      DB_N(db_now(tx) - ALERT_SHOWN_DAYS * TIME_DAY_US),
                                      DB_N(query->limit)};
    struct db_rows rows = {0};
    TRY(db_query(tx, query->arena,
                 "SELECT a.id, a.kind, a.sink, a.opened_at, a.closed_at, a.detail FROM alert a "
                 "LEFT JOIN sink s ON s.id = a.sink WHERE (s.project = ?1 OR a.sink IS NULL) "
                 "AND (a.closed_at IS NULL OR a.closed_at > ?2) "
                 "ORDER BY a.opened_at DESC, a.id LIMIT ?3",
                 values, ARRAY_COUNT(values), &rows, error));
    query->alerts = arena_array(query->arena, rows.row_count, sizeof(*query->alerts));
    if (query->alerts == NULL) {
        return error_memory(error);
    }
    query->count = rows.row_count;
    for (size_t i = 0; i < rows.row_count; i++) {
        query->alerts[i] = (struct alert){
            .id = db_text(&rows, i, 0),
            .kind = db_text(&rows, i, 1),
            .sink_id = db_text(&rows, i, 2),
            .opened_at = db_number(&rows, i, 3),
            .closed_at = db_number(&rows, i, 4),
            .detail = db_text(&rows, i, 5),
        };
    }
    return OK;
}

err alert_list(const struct db *db, struct arena *arena, str project, size_t limit,
               struct alert **out_alerts, size_t *out_count, struct error *error)
{
    struct alert_query query = {.arena = arena, .project = project, .limit = limit};
    TRY(db_read(db, read_alerts, &query, error));
    *out_alerts = query.alerts;
    *out_count = query.count;
    return OK;
}
