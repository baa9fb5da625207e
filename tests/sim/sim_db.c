#include "sim.h"

#include "base/assert.h"

#include <sqlite3.h>

/* The ledger's seam over one real SQLite connection in memory. A commit whose answer comes after
 * the caller has given up is shown as databases do it: until it lands readers see what was before,
 * and the next writer waits for it. */

/* Nothing comes in between: a read needs no transaction. */
static err read_on(struct db_connection *connection, db_body body, void *context,
                   struct error *error)
{
    bool outer = !sim->in_body;
    struct db_tx tx = db_connection_tx(connection, seam_now(&sim->ledger_seam));
    sim->in_body = true;
    err result = body(&tx, context, error);
    sim->in_body = !outer;
    return result;
}

static err run_on(struct db_connection *connection, db_body body, void *context,
                  struct error *error)
{
    TRY(db_connection_run(connection, "SAVEPOINT body", error));
    err result = read_on(connection, body, context, error);
    if (result != OK) {
        err undone = db_connection_run(connection, "ROLLBACK TO body", NULL);
        assert(undone == OK);
    }
    err released = db_connection_run(connection, "RELEASE body", error);
    return result != OK ? result : released;
}

/* ---- commits in doubt ---- */

static void load_bytes(struct db_connection *connection, str bytes)
{
    unsigned char *copy = sqlite3_malloc64(bytes.size);
    assert(copy != NULL);
    memcpy(copy, bytes.data, bytes.size);
    int loaded = sqlite3_deserialize(
        connection->handle, "main", copy, (sqlite3_int64)bytes.size, (sqlite3_int64)bytes.size,
        SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
    assert(loaded == SQLITE_OK);
}

static str take_bytes(struct db_connection *connection)
{
    sqlite3_int64 size = 0;
    unsigned char *bytes = sqlite3_serialize(connection->handle, "main", &size, 0);
    assert(bytes != NULL);
    return (str){(const char *)bytes, (size_t)size};
}

static void free_bytes(str bytes)
{
    sqlite3_free((void *)(uintptr_t)bytes.data);
}

static void end_doubt(void)
{
    if (sim->old_until != 0) {
        db_connection_close(&sim->old_connection);
        sim->ledger_version++; /* to readers */
        sim->old_until = 0;
    }
}

static void begin_doubt(void)
{
    struct error error = {0};
    end_doubt();
    str bytes = take_bytes(sim->connection);
    err opened = db_connection_open(&sim->old_connection, STR(":memory:"), DB_CONNECTION_MEMORY,
                                    &error);
    assert(opened == OK);
    load_bytes(&sim->old_connection, bytes);
    free_bytes(bytes);
    sim->old_until = sim->now + sim_between(10000, 120 * TIME_SECOND_US);
}

/* ---- commits that are not durable yet ---- */

static void forget_later(void)
{
    for (size_t i = 0; i < sim->later_count; i++) {
        free_bytes(sim->later[i]);
    }
    sim->later_count = 0;
}

/* Of many some in the middle are no place to which the ledger may fall back; any other is. */
static void note_later(void)
{
    if (sim->later_count == SIM_LATER_MAX) {
        size_t middle = SIM_LATER_MAX / 2;
        free_bytes(sim->later[middle]);
        memmove(&sim->later[middle], &sim->later[middle + 1],
                (SIM_LATER_MAX - middle - 1) * sizeof(sim->later[0]));
        sim->later_count--;
    }
    sim->later[sim->later_count++] = take_bytes(sim->connection);
}

static void undo_note(void)
{
    free_bytes(sim->later[--sim->later_count]);
}

/* ---- without faults ---- */

static err raw_transact(void *self, db_body body, void *context, struct error *error)
{
    (void)self;
    forget_later();
    return run_on(sim->connection, body, context, error);
}

/* A catalog of its own: that its changes are durable says nothing of the ledger. */
static err apart_transact(void *self, db_body body, void *context, struct error *error)
{
    (void)self;
    return run_on(sim->connection, body, context, error);
}

static err raw_read(void *self, db_body body, void *context, struct error *error)
{
    (void)self;
    return read_on(sim->connection, body, context, error);
}

static const struct db_ops RAW = {.transact = raw_transact, .read = raw_read};
static const struct db_ops APART = {.transact = apart_transact, .read = raw_read};

/* ---- with them ---- */

static err faulty(db_body body, void *context, bool later, struct error *error)
{
    enum sim_fault fault = sim_strike(SIM_ALLOW(SIM_FAULT_FULL) | SIM_ALLOW(SIM_FAULT_LOST) |
                                          SIM_ALLOW(SIM_FAULT_DONE) | SIM_ALLOW(SIM_FAULT_LATE),
                                      "ledger: transaction", STR(""));
    if (fault == SIM_FAULT_BEFORE || fault == SIM_FAULT_FULL || fault == SIM_FAULT_LOST ||
        fault == SIM_FAULT_DIE_BEFORE) {
        return sim_failed(fault, error);
    }
    if (sim->in_body) {
        return run_on(sim->connection, body, context, error);
    }
    end_doubt();
    if (fault == SIM_FAULT_LATE && sim_below(4) == 0) {
        begin_doubt();
    }
    if (later && sim->logged) {
        note_later();
    }
    err result = run_on(sim->connection, body, context, error);
    if (result != OK) {
        if (later && sim->logged) {
            undo_note();
        }
        end_doubt();
        sim_after(fault);
        return result;
    }
    if (!later) {
        forget_later();
    }
    sim->transactions++;
    if (sim->transactions % 16 == 0) {
        sim_check_ledger();
    }
    if (sim->embedded) {
        sim_table_observe(NULL);
    }
    sim_after(fault);
    return sim_failed(fault, error);
}

static err faulty_transact(void *self, db_body body, void *context, struct error *error)
{
    (void)self;
    return faulty(body, context, false, error);
}

static err faulty_transact_later(void *self, db_body body, void *context, struct error *error)
{
    (void)self;
    return faulty(body, context, true, error);
}

static err faulty_read(void *self, db_body body, void *context, struct error *error)
{
    (void)self;
    enum sim_fault fault = sim_strike(0, "ledger: read", STR(""));
    if (fault == SIM_FAULT_BEFORE || fault == SIM_FAULT_DIE_BEFORE) {
        err failed = sim_failed(SIM_FAULT_BEFORE, error);
        return failed;
    }
    if (sim->old_until != 0 && sim->old_until <= sim->now) {
        end_doubt();
    }
    struct db_connection *connection = sim->old_until != 0 ? &sim->old_connection : sim->connection;
    err result = read_on(connection, body, context, error);
    sim_after(fault);
    return result;
}

static const struct db_ops FAULTY = {
    .transact = faulty_transact, .transact_later = faulty_transact_later, .read = faulty_read};

struct db sim_db(struct sim_process *process)
{
    return (struct db){&FAULTY, process};
}

/* ---- opening ---- */

/* All of the ledger's tables but the installation's. */
static const char *const CLEARS[] = {
    "DELETE FROM incarnation_bucket",
    "DELETE FROM node",
    "DELETE FROM project",
    "DELETE FROM api_key",
    "DELETE FROM token",
    "DELETE FROM warehouse",
    "DELETE FROM sink",
    "DELETE FROM batch",
    "DELETE FROM plan",
    "DELETE FROM void_uid",
    "DELETE FROM quarantine",
    "DELETE FROM orphan_segment",
    "DELETE FROM clock_sample",
    "DELETE FROM doomed_object",
    "DELETE FROM reject_count",
    "DELETE FROM reject_recent",
    "DELETE FROM usage_month",
    "DELETE FROM audit",
    "DELETE FROM alert",
    "DELETE FROM catalog_namespace",
    "DELETE FROM catalog_table",
    "DELETE FROM catalog_receipt",
};

/* Every run begins with the same ledger, whatever its process did before: an empty one, whose
 * installation has an id of this run. */
static err clear_body(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    for (size_t i = 0; i < ARRAY_COUNT(CLEARS); i++) {
        TRY(db_exec(tx, CLEARS[i], NULL, 0, NULL, error));
    }
    struct uid id = id_uid_make(&sim->quiet_seam);
    TRY(db_run(tx, error,
               "UPDATE installation SET id = ?1, running_us = 0, incarnation = 0, copied = 0, "
               "created_at = ?2",
               DB_T(id_uid_str(&id)), DB_N(db_now(tx))));
    return db_run(tx, error, "INSERT INTO clock_sample (running_us, wall) VALUES (0, ?1)",
                  DB_N(db_now(tx)));
}

static err count_body(struct db_tx *tx, void *context, struct error *error)
{
    i64 *count = context;
    struct db_rows rows = {0};
    TRY(db_query(tx, sim->scratch, "SELECT count(*) FROM sqlite_master WHERE type = 'table'", NULL,
                 0, &rows, error));
    *count = db_number(&rows, 0, 0);
    return OK;
}

/* What rollers look at has changed; leases of nodes, clocks and the like are not of it. */
static void note_change(void *context, int operation, const char *database, const char *table,
                        sqlite3_int64 row)
{
    (void)context;
    (void)operation;
    (void)database;
    (void)row;
    if (strcmp(table, "sink") == 0 || strcmp(table, "batch") == 0 || strcmp(table, "plan") == 0) {
        sim->ledger_version++;
    }
}

/* The connection and its statements outlive a run; an empty ledger is one whose tables are empty.
 */
void sim_db_open(void)
{
    static struct db_connection kept;
    struct error error = {0};
    sim->raw_db = (struct db){&RAW, NULL};
    sim->apart_db = (struct db){&APART, NULL};
    sim->connection = &kept;
    err opened = OK;
    if (kept.handle == NULL) {
        opened = db_connection_open(&kept, STR(":memory:"), DB_CONNECTION_MEMORY, &error);
        assert(opened == OK);
        int stable = sqlite3_db_config(kept.handle, SQLITE_DBCONFIG_ENABLE_QPSG, 1, NULL);
        assert(stable == SQLITE_OK); /* a statement is planned once, whatever is bound to it */
        (void)sqlite3_update_hook(kept.handle, note_change, NULL);
        opened = db_connection_run(&kept, "PRAGMA page_size=1024", &error);
        assert(opened == OK); /* the tables are small, and changed pages are copied */
        opened = ledger_open(&sim->raw_db, &sim->quiet_seam, &error);
        assert(opened == OK);
        i64 tables = 0;
        opened = db_read(&sim->raw_db, count_body, &tables, &error);
        assert(opened == OK);
        assert((size_t)tables == ARRAY_COUNT(CLEARS) + 1); /* a new one must be cleared, too */
        sim->outside_randoms = 0;
    }
    opened = db_transact(&sim->raw_db, clear_body, NULL, &error);
    assert(opened == OK);
}

/* ---- copies ---- */

str sim_db_copy(struct arena *arena)
{
    str bytes = take_bytes(sim->connection);
    str copy = str_copy(arena, bytes);
    assert(copy.data != NULL);
    free_bytes(bytes);
    return copy;
}

/* Scaled out, the catalog is not in the ledger: it stays as it is. */
static err keep_catalog_body(struct db_tx *tx, void *context, struct error *error)
{
    struct db_rows *rows = context;
    return db_query(tx, sim->scratch,
                    "SELECT warehouse, namespace, name, kind, uuid, metadata_location FROM "
                    "catalog_table",
                    NULL, 0, rows, error);
}

static err return_catalog_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct db_rows *rows = context;
    TRY(db_exec(tx, "DELETE FROM catalog_table", NULL, 0, NULL, error));
    for (size_t i = 0; i < rows->row_count; i++) {
        TRY(db_run(tx, error,
                   "INSERT INTO catalog_table (warehouse, namespace, name, kind, uuid, "
                   "metadata_location) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                   DB_T(db_text(rows, i, 0)), DB_T(db_text(rows, i, 1)), DB_T(db_text(rows, i, 2)),
                   DB_N(db_number(rows, i, 3)), DB_T(db_text(rows, i, 4)),
                   DB_T(db_text(rows, i, 5))));
    }
    return OK;
}

static void overwrite(str bytes)
{
    struct db_connection source = {0};
    struct error error = {0};
    err opened = db_connection_open(&source, STR(":memory:"), DB_CONNECTION_MEMORY, &error);
    assert(opened == OK);
    load_bytes(&source, bytes);
    sqlite3_backup *backup = sqlite3_backup_init(sim->connection->handle, "main", source.handle,
                                                 "main");
    assert(backup != NULL);
    int stepped = sqlite3_backup_step(backup, -1);
    assert(stepped == SQLITE_DONE);
    int finished = sqlite3_backup_finish(backup);
    assert(finished == SQLITE_OK);
    db_connection_close(&source);
}

void sim_db_put_back(str bytes)
{
    struct arena_mark mark = arena_mark(sim->scratch);
    struct db_rows rows = {0};
    end_doubt();
    forget_later();
    err done = db_read(&sim->raw_db, keep_catalog_body, &rows, NULL);
    assert(done == OK);
    overwrite(bytes);
    sim->ledger_version++;
    if (!sim->embedded) {
        done = db_transact(&sim->raw_db, return_catalog_body, &rows, NULL);
        assert(done == OK);
    }
    arena_reset_to(sim->scratch, mark);
}

/* What is not durable may be lost from its end on: all of it, a part, or nothing. */
void sim_db_power_loss(void)
{
    size_t kept = (size_t)sim_below(sim->later_count + 1);
    if (kept == sim->later_count) {
        forget_later();
        return;
    }
    sim_trace("** the ledger loses its last %zu commits or more", sim->later_count - kept);
    str bytes = sim->later[kept];
    sim->later[kept] = sim->later[--sim->later_count];
    sim_db_put_back(bytes);
    free_bytes(bytes);
}

void sim_db_close(void)
{
    forget_later();
    end_doubt();
}
