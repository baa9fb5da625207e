#include "sink/ledger_sql.h"

/* What may go, and when: doomed objects, and the age that counts (I16, I19). */

enum {
    SWEEP_SCRATCH_BYTES_MAX = 8 * 1024 * 1024,
    SAMPLE_APART_SECONDS = 3600,
    SAMPLE_JUMP_SECONDS = 60,
    NODE_KEPT_SECONDS = 86400,
};
#define SAMPLES_KEPT_US (40 * TIME_DAY_US)

struct doomed_query {
    struct arena *arena;
    str warehouse;
    size_t limit;
    struct ledger_doomed *objects;
    size_t count;
};

/* Of a sink that recovers none is listed: the rows say that each batch of an object is final, and a
 * neighbour of them that was not adopted yet has no row. `_sink/<sink>/…`. */
static err list_doomed_body(struct db_tx *tx, void *context, struct error *error)
{
    struct doomed_query *query = context;
    struct db_rows rows = {0};
    TRY(sql_select(tx, query->arena, &rows, error,
                   "SELECT warehouse, object_key, tries FROM doomed_object WHERE warehouse = ?1 "
                   "AND NOT EXISTS (SELECT 1 FROM sink WHERE id = substr(object_key, ?3, ?4) AND "
                   "recovering = 1) ORDER BY tries, at, object_key LIMIT ?2",
                   DB_T(query->warehouse), DB_N(query->limit), DB_N(sizeof("_sink/")),
                   DB_N(ID_SHORT_SIZE)));
    struct ledger_doomed *objects = arena_array(query->arena, rows.row_count, sizeof(*objects));
    if (objects == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < rows.row_count; i++) {
        objects[i] = (struct ledger_doomed){
            .warehouse = db_text(&rows, i, 0),
            .object_key = db_text(&rows, i, 1),
            .tries = db_number(&rows, i, 2),
        };
    }
    query->objects = objects;
    query->count = rows.row_count;
    return OK;
}

err ledger_list_doomed(const struct db *db, struct arena *arena, str warehouse, size_t limit,
                       struct ledger_doomed **out_objects, size_t *out_count, struct error *error)
{
    struct doomed_query query = {.arena = arena, .warehouse = warehouse, .limit = limit};
    TRY(db_read(db, list_doomed_body, &query, error));
    *out_objects = query.objects;
    *out_count = query.count;
    return OK;
}

struct settling {
    const struct ledger_doomed_done *objects;
    size_t count;
};

static err settle_doomed_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct settling *settling = context;
    for (size_t i = 0; i < settling->count; i++) {
        const struct ledger_doomed_done *done = &settling->objects[i];
        const char *sql = done->deleted ? "DELETE FROM doomed_object WHERE warehouse = ?1 AND "
                                          "object_key = ?2"
                                        : "UPDATE doomed_object SET tries = tries + 1 WHERE "
                                          "warehouse = ?1 AND object_key = ?2";
        TRY(db_run(tx, error, sql, DB_T(done->object.warehouse), DB_T(done->object.object_key)));
    }
    return OK;
}

err ledger_settle_doomed(const struct db *db, const struct ledger_doomed_done *objects,
                         size_t count, struct error *error)
{
    struct settling settling = {.objects = objects, .count = count};
    return db_transact_later(db, settle_doomed_body, &settling, error);
}

/* ---- age ---- */

/* A sample stands for the time until the next one. One is taken every hour of running, and
 * whenever the wall clock has moved otherwise than the running time did. */
static err add_running_body(struct db_tx *tx, void *context, struct error *error)
{
    const i64 *elapsed_us = context;
    struct arena *arena AUTO_ARENA = arena_create(SWEEP_SCRATCH_BYTES_MAX);
    TRY(db_run(tx, error, "UPDATE installation SET running_us = running_us + ?1",
               DB_N(*elapsed_us)));
    struct db_rows rows = {0};
    TRY(db_query(tx, arena,
                 "SELECT i.running_us, c.running_us, c.wall FROM installation i LEFT JOIN "
                 "clock_sample c ON c.running_us = (SELECT max(running_us) FROM clock_sample)",
                 NULL, 0, &rows, error));
    if (rows.row_count == 0) {
        return error_set(error, CORRUPT, ERROR_LEDGER_DOWN, "the ledger has no installation row");
    }
    i64 running = db_number(&rows, 0, 0);
    i64 since = running - db_number(&rows, 0, 1);
    i64 drift = db_now(tx) - db_number(&rows, 0, 2) - since;
    bool jumped = drift > SAMPLE_JUMP_SECONDS * TIME_SECOND_US ||
                  drift < -SAMPLE_JUMP_SECONDS * TIME_SECOND_US;
    if (since < SAMPLE_APART_SECONDS * TIME_SECOND_US && !jumped) {
        return OK;
    }
    TRY(db_run(tx, error,
               "INSERT INTO clock_sample (running_us, wall) VALUES (?1, ?2) ON CONFLICT "
               "(running_us) DO UPDATE SET wall = excluded.wall",
               DB_N(running), DB_N(db_now(tx))));
    return db_run(tx, error, "DELETE FROM clock_sample WHERE running_us < ?1",
                  DB_N(running - SAMPLES_KEPT_US));
}

err ledger_add_running(const struct db *db, i64 elapsed_us, struct error *error)
{
    return db_transact(db, add_running_body, &elapsed_us, error);
}

struct old_query {
    i64 age_us;
    instant before;
};

/* Whatever was stamped while the running time was young has a stamp not below the least wall clock
 * of that time; so what lies below it is old by running time, whatever the clock did. */
static err old_before_body(struct db_tx *tx, void *context, struct error *error)
{
    struct old_query *query = context;
    struct arena *arena AUTO_ARENA = arena_create(SWEEP_SCRATCH_BYTES_MAX);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT min(c.wall) FROM clock_sample c, installation i WHERE c.running_us >= "
                   "coalesce((SELECT max(d.running_us) FROM clock_sample d WHERE d.running_us <= "
                   "i.running_us - ?1), 0)",
                   DB_N(query->age_us)));
    instant young = db_number(&rows, 0, 0);
    query->before = num_min_i64(db_now(tx) - query->age_us, young);
    return OK;
}

err ledger_old_before(const struct db *db, i64 age_us, instant *out_before, struct error *error)
{
    struct old_query query = {.age_us = age_us};
    TRY(db_read(db, old_before_body, &query, error));
    *out_before = query.before;
    return OK;
}

/* ---- forgetting ---- */

struct pruning {
    instant before;
    size_t limit;
    i64 pruned;
};

static err prune_batches_body(struct db_tx *tx, void *context, struct error *error)
{
    struct pruning *pruning = context;
    return sql_change(
        tx, error, &pruning->pruned,
        "DELETE FROM batch WHERE (sink, batch_id) IN (SELECT b.sink, b.batch_id FROM batch b JOIN "
        "sink s ON s.id = b.sink LEFT JOIN plan p ON p.id = b.plan WHERE b.finished_at < ?1 AND "
        "b.state >= 2 AND NOT EXISTS (SELECT 1 FROM doomed_object d WHERE d.warehouse = "
        "s.warehouse AND d.object_key = b.object_key) AND (b.sink, b.uid) NOT IN (SELECT o.sink, "
        "o.uid FROM batch o WHERE o.state <= 1) AND (p.id IS NULL OR p.state = 3 OR "
        "(p.state = 4 AND p.doomed = 1)) LIMIT ?2)",
        DB_N(pruning->before), DB_N(pruning->limit));
}

err ledger_prune_batches(const struct db *db, instant before, size_t limit, i64 *out_pruned,
                         struct error *error)
{
    struct pruning pruning = {.before = before, .limit = limit};
    TRY(db_transact(db, prune_batches_body, &pruning, error));
    *out_pruned = pruning.pruned;
    return OK;
}

static err prune_plans_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct pruning *pruning = context;
    TRY(db_run(tx, error,
               "DELETE FROM plan WHERE state >= 3 AND doomed = (CASE WHEN state = 4 THEN 1 ELSE "
               "doomed END) AND finished_at < ?1 AND NOT EXISTS (SELECT 1 FROM batch b WHERE "
               "b.plan = plan.id)",
               DB_N(pruning->before)));
    return db_run(tx, error, "DELETE FROM node WHERE lease_until < ?1",
                  DB_N(db_now(tx) - NODE_KEPT_SECONDS * TIME_SECOND_US));
}

err ledger_prune_plans(const struct db *db, instant before, struct error *error)
{
    struct pruning pruning = {.before = before};
    return db_transact(db, prune_plans_body, &pruning, error);
}
