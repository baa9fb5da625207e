#include "sim.h"

#include "base/assert.h"

#include <sqlite3.h>
#include <stdio.h>

/* The ledger's seam over one real SQLite connection in memory. A commit whose answer comes after
 * the caller has given up is shown as databases do it: until it lands readers see what was before,
 * and the next writer waits for it. */

/* Of the ledger as it was before the commit that is in doubt. */
static struct db_connection old_connection;
static struct arena *doubt_arena;

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

/* ---- copies of the ledger ---- */

/* All of its tables. The installation's row stays; the others are emptied for a run. */
static const char *const TABLES[] = {
    "installation",
    "incarnation_bucket",
    "node",
    "project",
    "api_key",
    "token",
    "warehouse",
    "sink",
    "batch",
    "plan",
    "void_uid",
    "quarantine",
    "orphan_segment",
    "clock_sample",
    "doomed_object",
    "reject_count",
    "reject_recent",
    "usage_month",
    "audit",
    "alert",
    "catalog_namespace",
    "catalog_table",
    "catalog_receipt",
};
enum { TABLE_COUNT = ARRAY_COUNT(TABLES), INSTALLATION = 0, COLUMNS_MAX = 64 };

struct sim_ledger {
    struct db_rows tables[TABLE_COUNT];
};

/* Statements are kept by where their text stands. */
static struct {
    char select[48];
    char clear[48];
    char insert[64 + 5 * COLUMNS_MAX];
} texts[TABLE_COUNT];

static void write_texts(size_t table, size_t columns)
{
    assert(columns > 0 && columns <= COLUMNS_MAX);
    (void)snprintf(texts[table].select, sizeof(texts[table].select), "SELECT * FROM %s",
                   TABLES[table]);
    (void)snprintf(texts[table].clear, sizeof(texts[table].clear), "DELETE FROM %s", TABLES[table]);
    char *out = texts[table].insert;
    int at = snprintf(out, sizeof(texts[table].insert), "INSERT INTO %s VALUES (?1", TABLES[table]);
    for (size_t i = 2; i <= columns; i++) {
        at += snprintf(out + at, sizeof(texts[table].insert) - (size_t)at, ",?%zu", i);
    }
    (void)snprintf(out + at, sizeof(texts[table].insert) - (size_t)at, ")");
}

static struct sim_ledger *copy_ledger(struct arena *arena)
{
    struct db_tx tx = db_connection_tx(sim->connection, 0);
    struct sim_ledger *copy = arena_alloc(arena, sizeof(*copy));
    assert(copy != NULL);
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        err read = db_query(&tx, arena, texts[i].select, NULL, 0, &copy->tables[i], NULL);
        assert(read == OK);
    }
    return copy;
}

static err fill_table(struct db_tx *tx, size_t table, const struct db_rows *rows,
                      struct error *error)
{
    TRY(db_exec(tx, texts[table].clear, NULL, 0, NULL, error));
    for (size_t i = 0; i < rows->row_count; i++) {
        TRY(db_exec(tx, texts[table].insert, rows->values + i * rows->column_count,
                    rows->column_count, NULL, error));
    }
    return OK;
}

static err fill_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct sim_ledger *copy = context;
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        TRY(fill_table(tx, i, &copy->tables[i], error));
    }
    return OK;
}

/* The schema stays, and with it every statement that was compiled. */
static void fill_ledger(struct db_connection *connection, const struct sim_ledger *copy)
{
    struct sim_ledger rows = *copy;
    err filled = run_on(connection, fill_body, &rows, NULL);
    assert(filled == OK);
}

/* ---- commits in doubt ---- */

static void end_doubt(void)
{
    if (sim->old_until != 0) {
        sim->ledger_version++; /* to readers */
        sim->old_until = 0;
    }
}

static void begin_doubt(void)
{
    end_doubt();
    arena_reset(doubt_arena);
    sim->old_ledger = copy_ledger(doubt_arena);
    sim->old_until = sim->now + sim_between(10000, 120 * TIME_SECOND_US);
}

/* What readers see: while a commit is in doubt, the ledger before it. */
static struct db_connection *seen_connection(void)
{
    if (sim->old_until != 0 && sim->old_until <= sim->now) {
        end_doubt();
    }
    if (sim->old_until == 0) {
        return sim->connection;
    }
    if (sim->old_ledger != NULL) {
        fill_ledger(&old_connection, sim->old_ledger);
        sim->old_ledger = NULL;
    }
    return &old_connection;
}

/* ---- commits that are not durable yet ---- */

/* Each is a savepoint that is not released: the ledger can fall back to what was before it. */
static struct {
    char begin[24];
    char undo[32];
    char end[24];
} points[SIM_LATER_MAX];

static void write_points(void)
{
    for (int i = 0; i < SIM_LATER_MAX; i++) {
        (void)snprintf(points[i].begin, sizeof(points[i].begin), "SAVEPOINT later%d", i);
        (void)snprintf(points[i].undo, sizeof(points[i].undo), "ROLLBACK TO later%d", i);
        (void)snprintf(points[i].end, sizeof(points[i].end), "RELEASE later%d", i);
    }
}

static void run_text(const char *sql)
{
    err done = db_connection_run(sim->connection, sql, NULL);
    assert(done == OK);
}

static void forget_later(void)
{
    if (sim->later_count > 0) {
        run_text(points[0].end); /* and all behind it */
    }
    sim->later_count = 0;
}

/* False: there are too many, and this commit is lost with the one before or not at all. */
static bool note_later(void)
{
    if (sim->later_count == SIM_LATER_MAX) {
        return false;
    }
    run_text(points[sim->later_count++].begin);
    return true;
}

static void undo_note(void)
{
    run_text(points[--sim->later_count].end);
}

/* ---- without faults ---- */

static err raw_transact(void *self, db_body body, void *context, struct error *error)
{
    (void)self;
    forget_later();
    return run_on(sim->connection, body, context, error);
}

/* A catalog of its own: that its changes are durable says nothing of the ledger. The embedded one
 * is a part of the ledger. */
static err apart_transact(void *self, db_body body, void *context, struct error *error)
{
    (void)self;
    if (sim->embedded) {
        forget_later();
    }
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
    bool noted = later && sim->logged && note_later();
    err result = run_on(sim->connection, body, context, error);
    if (result != OK) {
        if (noted) {
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
    err result = read_on(seen_connection(), body, context, error);
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

/* Every run begins with the same ledger, whatever its process did before: an empty one, whose
 * installation has an id of this run. */
static err clear_body(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    for (size_t i = INSTALLATION + 1; i < TABLE_COUNT; i++) {
        TRY(db_exec(tx, texts[i].clear, NULL, 0, NULL, error));
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

static void check_tables(void)
{
    struct arena_mark mark = arena_mark(sim->scratch);
    i64 tables = 0;
    err read = db_read(&sim->raw_db, count_body, &tables, NULL);
    assert(read == OK && (size_t)tables == TABLE_COUNT); /* a new one must be copied, too */
    struct db_tx tx = db_connection_tx(sim->connection, 0);
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        struct db_rows rows = {0};
        const char *sql = str_format(sim->scratch, "SELECT * FROM %s", TABLES[i]).data;
        read = db_query(&tx, sim->scratch, sql, NULL, 0, &rows, NULL);
        assert(read == OK);
        write_texts(i, rows.column_count);
    }
    arena_reset_to(sim->scratch, mark);
}

/* An empty ledger. */
static void open_ledger(struct db_connection *connection)
{
    struct error error = {0};
    sim->connection = connection;
    err opened = db_connection_open(connection, STR(":memory:"), DB_CONNECTION_MEMORY, &error);
    assert(opened == OK);
    int stable = sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_ENABLE_QPSG, 1, NULL);
    assert(stable == SQLITE_OK); /* a statement is planned once, whatever is bound to it */
    opened = db_connection_run(connection, "PRAGMA page_size=1024", &error);
    assert(opened == OK); /* the tables are small, and changed pages are copied */
    opened = ledger_open(&sim->raw_db, &sim->quiet_seam, &error);
    assert(opened == OK);
}

/* The connections and their statements outlive a run; an empty ledger is one whose tables are
 * empty. */
void sim_db_open(void)
{
    static struct db_connection kept;
    sim->raw_db = (struct db){&RAW, NULL};
    sim->apart_db = (struct db){&APART, NULL};
    if (kept.handle == NULL) {
        open_ledger(&old_connection);
        open_ledger(&kept);
        (void)sqlite3_update_hook(kept.handle, note_change, NULL);
        write_points();
        check_tables();
        doubt_arena = arena_create((size_t)16 * MIB);
        sim->outside_randoms = 0;
    }
    sim->connection = &kept;
    err opened = db_transact(&sim->raw_db, clear_body, NULL, NULL);
    assert(opened == OK);
}

/* ---- put back ---- */

struct sim_ledger *sim_db_copy(struct arena *arena)
{
    return copy_ledger(arena);
}

enum { CATALOG_TABLE_INDEX = TABLE_COUNT - 2 };

/* Scaled out, the catalog is not in the ledger: it stays as it is. */
static const struct db_rows *present_catalog(void)
{
    struct db_tx tx = db_connection_tx(sim->connection, 0);
    struct db_rows *rows = arena_alloc(sim->scratch, sizeof(*rows));
    assert(rows != NULL);
    err read = db_query(&tx, sim->scratch, texts[CATALOG_TABLE_INDEX].select, NULL, 0, rows, NULL);
    assert(read == OK);
    return rows;
}

static err return_catalog_body(struct db_tx *tx, void *context, struct error *error)
{
    return fill_table(tx, CATALOG_TABLE_INDEX, context, error);
}

static void return_catalog(const struct db_rows *rows)
{
    struct db_rows present = *rows;
    err done = sim->embedded ? OK : run_on(sim->connection, return_catalog_body, &present, NULL);
    assert(done == OK);
    sim->ledger_version++;
}

void sim_db_put_back(const struct sim_ledger *copy)
{
    struct arena_mark mark = arena_mark(sim->scratch);
    end_doubt();
    forget_later();
    const struct db_rows *catalog = present_catalog();
    fill_ledger(sim->connection, copy);
    return_catalog(catalog);
    arena_reset_to(sim->scratch, mark);
}

/* What is not durable may be lost from its end on: all of it, a part, or nothing. */
void sim_db_power_loss(void)
{
    size_t kept = (size_t)sim_below(sim->later_count + 1);
    if (kept < sim->later_count) {
        struct arena_mark mark = arena_mark(sim->scratch);
        sim_trace("** the ledger loses its last %zu commits or more", sim->later_count - kept);
        end_doubt();
        const struct db_rows *catalog = present_catalog();
        run_text(points[kept].undo);
        return_catalog(catalog);
        arena_reset_to(sim->scratch, mark);
    }
    forget_later();
}

void sim_db_close(void)
{
    forget_later();
    end_doubt();
}
