#include "sink/ledger.h"

#include "sink/ledger_schema.h"
#include "sink/ledger_sql.h"

enum {
    NODE_LEASE_SECONDS = 30,
    SINK_LEASE_SECONDS = 30,
    LEDGER_SCRATCH_BYTES_MAX = 64 * 1024 * 1024,
};

/* ---- opening ---- */

struct opening {
    const struct seam *seam;
    i64 version; /* 0: an empty database */
};

static err read_table_count(struct db_tx *tx, struct arena *arena, i64 *out_count,
                            struct error *error)
{
    struct db_rows rows = {0};
    TRY(db_query(tx, arena, "SELECT count(*) FROM sqlite_master WHERE name = 'installation'", NULL,
                 0, &rows, error));
    *out_count = db_number(&rows, 0, 0);
    return OK;
}

static err create_tables(struct db_tx *tx, const struct seam *seam, struct error *error)
{
    for (size_t i = 0; i < ARRAY_COUNT(LEDGER_SCHEMA); i++) {
        TRY(db_exec(tx, LEDGER_SCHEMA[i], NULL, 0, NULL, error));
    }
    struct uid id = id_uid_make(seam);
    instant now = db_now(tx);
    TRY(db_run(tx, error,
               "INSERT INTO installation (id, schema_version, running_us, incarnation, created_at) "
               "VALUES (?1, ?2, 0, 0, ?3)",
               DB_T(id_uid_str(&id)), DB_N(LEDGER_SCHEMA_VERSION), DB_N(now)));
    return db_run(tx, error, "INSERT INTO clock_sample (running_us, wall) VALUES (0, ?1)",
                  DB_N(now));
}

static err open_body(struct db_tx *tx, void *context, struct error *error)
{
    struct opening *opening = context;
    struct arena *arena AUTO_ARENA = arena_create(LEDGER_SCRATCH_BYTES_MAX);
    i64 tables = 0;
    TRY(read_table_count(tx, arena, &tables, error));
    if (tables == 0) {
        TRY(create_tables(tx, opening->seam, error));
        opening->version = LEDGER_SCHEMA_VERSION;
        return OK;
    }
    struct db_rows rows = {0};
    TRY(db_query(tx, arena, "SELECT schema_version FROM installation", NULL, 0, &rows, error));
    if (rows.row_count != 1) {
        return error_set(error, CORRUPT, ERROR_LEDGER_DOWN, "the ledger has no installation row");
    }
    opening->version = db_number(&rows, 0, 0);
    return OK;
}

err ledger_open(const struct db *db, const struct seam *seam, struct error *error)
{
    struct opening opening = {.seam = seam};
    TRY(db_transact(db, open_body, &opening, error));
    if (opening.version != LEDGER_SCHEMA_VERSION) {
        return error_set(error, INVALID, ERROR_LEDGER_DOWN,
                         "the ledger has schema version %lld, this lhbox knows %d",
                         (long long)opening.version, LEDGER_SCHEMA_VERSION);
    }
    return OK;
}

struct one_text {
    struct arena *arena;
    str text;
};

static err installation_body(struct db_tx *tx, void *context, struct error *error)
{
    struct one_text *result = context;
    struct db_rows rows = {0};
    TRY(db_query(tx, result->arena, "SELECT id FROM installation", NULL, 0, &rows, error));
    if (rows.row_count != 1) {
        return error_set(error, CORRUPT, ERROR_LEDGER_DOWN, "the ledger has no installation row");
    }
    result->text = db_text(&rows, 0, 0);
    return OK;
}

err ledger_installation(const struct db *db, struct arena *arena, str *out_id, struct error *error)
{
    struct one_text result = {.arena = arena};
    TRY(db_read(db, installation_body, &result, error));
    *out_id = result.text;
    return OK;
}

/* ---- leases ---- */

struct node_lease {
    str node_id;
    str role;
    instant now;
};

static err register_node_body(struct db_tx *tx, void *context, struct error *error)
{
    struct node_lease *lease = context;
    lease->now = db_now(tx);
    return db_run(tx, error,
                  "INSERT INTO node (id, lease_until, role) VALUES (?1, ?2, ?3) "
                  "ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until",
                  DB_T(lease->node_id), DB_N(lease->now + NODE_LEASE_SECONDS * TIME_SECOND_US),
                  DB_T(lease->role));
}

err ledger_register_node(const struct db *db, str node_id, str role, instant *out_now,
                         struct error *error)
{
    struct node_lease lease = {.node_id = node_id, .role = role};
    TRY(db_transact(db, register_node_body, &lease, error));
    *out_now = lease.now;
    return OK;
}

static err renew_node_body(struct db_tx *tx, void *context, struct error *error)
{
    struct node_lease *lease = context;
    i64 changes = 0;
    lease->now = db_now(tx);
    TRY(sql_change(tx, error, &changes,
                   "UPDATE node SET lease_until = ?2 WHERE id = ?1 AND lease_until >= ?3",
                   DB_T(lease->node_id), DB_N(lease->now + NODE_LEASE_SECONDS * TIME_SECOND_US),
                   DB_N(lease->now)));
    return changes == 1 ? OK : ledger_lost(error, "the node's lease is gone");
}

err ledger_renew_node(const struct db *db, str node_id, instant *out_now, struct error *error)
{
    struct node_lease lease = {.node_id = node_id};
    TRY(db_transact(db, renew_node_body, &lease, error));
    *out_now = lease.now;
    return OK;
}

struct sink_lease {
    str sink_id;
    str holder;
};

/* A lease that ends later than one taken now would was taken before the clock was set back: whoever
 * took it may be long gone. */
static err take_lease_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct sink_lease *lease = context;
    instant now = db_now(tx);
    i64 changes = 0;
    TRY(sql_change(tx, error, &changes,
                   "UPDATE sink SET lease_holder = ?2, lease_until = ?3 WHERE id = ?1 AND "
                   "(lease_holder IS NULL OR lease_holder = ?2 OR lease_until < ?4 OR "
                   "lease_until > ?3)",
                   DB_T(lease->sink_id), DB_T(lease->holder),
                   DB_N(now + SINK_LEASE_SECONDS * TIME_SECOND_US), DB_N(now)));
    if (changes == 0) {
        return error_set(error, BUSY, ERROR_UNAVAILABLE, "another roller has the sink's lease");
    }
    return OK;
}

err ledger_take_lease(const struct db *db, str sink_id, str holder, struct error *error)
{
    struct sink_lease lease = {.sink_id = sink_id, .holder = holder};
    return db_transact_later(db, take_lease_body, &lease, error);
}

static err release_lease_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct sink_lease *lease = context;
    return db_run(tx, error,
                  "UPDATE sink SET lease_holder = NULL, lease_until = 0 WHERE id = ?1 AND "
                  "lease_holder = ?2",
                  DB_T(lease->sink_id), DB_T(lease->holder));
}

err ledger_release_lease(const struct db *db, str sink_id, str holder, struct error *error)
{
    struct sink_lease lease = {.sink_id = sink_id, .holder = holder};
    return db_transact_later(db, release_lease_body, &lease, error);
}

/* ---- rows to structs ---- */

static bool take_bytes(const struct db_rows *rows, size_t row, size_t column, void *out,
                       size_t size)
{
    str bytes = db_at(rows, row, column)->bytes;
    if (bytes.size != size) {
        return false;
    }
    memcpy(out, bytes.data, size);
    return true;
}

err ledger_row_batch(const struct db_rows *rows, size_t row, struct ledger_batch *out_batch,
                     struct error *error)
{
    struct ledger_batch batch = {
        .batch_id = db_text(rows, row, 0),
        .object_key = db_text(rows, row, 2),
        .offset = db_number(rows, row, 3),
        .bytes = db_number(rows, row, 4),
        .rows = db_number(rows, row, 5),
        .refused = db_number(rows, row, 6),
        .seq = db_number(rows, row, 9),
        .received_at = db_number(rows, row, 10),
        .ingest_ts = db_number(rows, row, 11),
        .answer = db_text(rows, row, 12),
        .state = (enum batch_state)db_number(rows, row, 13),
        .held = db_number(rows, row, 14) != 0,
        .held_reason = db_text(rows, row, 15),
        .misses = db_number(rows, row, 16),
        .missed_at = db_number(rows, row, 17),
        .plan_id = db_text(rows, row, 18),
        .rows_committed = db_number(rows, row, 19),
        .rows_rejected = db_number(rows, row, 20),
        .finished_at = db_number(rows, row, 21),
        .snapshot_id = db_number(rows, row, 22),
        .retried = db_number(rows, row, 23) != 0,
    };
    if (!id_uid_parse(db_text(rows, row, 1), &batch.uid) ||
        !take_bytes(rows, row, 7, batch.sha256.bytes, sizeof(batch.sha256.bytes)) ||
        !take_bytes(rows, row, 8, batch.body_hash, sizeof(batch.body_hash))) {
        return error_set(error, CORRUPT, ERROR_LEDGER_DOWN, "batch row %.*s is damaged",
                         STR_ARG(batch.batch_id));
    }
    *out_batch = batch;
    return OK;
}

err ledger_rows_batches(struct arena *arena, const struct db_rows *rows,
                        struct ledger_batch **out_batches, size_t *out_count, struct error *error)
{
    struct ledger_batch *batches = arena_array(arena, rows->row_count, sizeof(*batches));
    if (batches == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < rows->row_count; i++) {
        TRY(ledger_row_batch(rows, i, &batches[i], error));
    }
    *out_batches = batches;
    *out_count = rows->row_count;
    return OK;
}

struct ledger_plan ledger_row_plan(const struct db_rows *rows, size_t row)
{
    return (struct ledger_plan){
        .id = db_text(rows, row, 0),
        .sink_id = db_text(rows, row, 1),
        .n = db_number(rows, row, 2),
        .prev = db_text(rows, row, 3),
        .config_version = db_number(rows, row, 4),
        .state = (enum plan_state)db_number(rows, row, 5),
        .begun = db_number(rows, row, 6),
        .attempts = db_text(rows, row, 7),
        .counts = db_text(rows, row, 8),
        .fences = db_text(rows, row, 9),
        .void_reason = db_text(rows, row, 10),
        .snapshot_id = db_number(rows, row, 11),
        .rows_committed = db_number(rows, row, 12),
        .rows_rejected = db_number(rows, row, 13),
        .trigger = db_text(rows, row, 14),
        .created_at = db_number(rows, row, 15),
        .finished_at = db_number(rows, row, 16),
        .tries = db_number(rows, row, 17),
    };
}

err ledger_lost(struct error *error, const char *what)
{
    return error_set(error, CONFLICT, ERROR_UNAVAILABLE, "%s", what);
}
