/* Lines: a letter that names a route of the catalog, then the body of a request to it. They are
 * carried out in their order on an empty catalog with one namespace. Each is answered: with JSON,
 * or with a refusal that surely changed nothing; and no sequence of them makes a table or view that
 * the catalog itself cannot load. */
#include "base/assert.h"
#include "fuzz.h"
#include "server/catalog_api.h"
#include "sink/ledger.h"

enum { INPUT_MAX = 64 * KIB, LINES_MAX = 16 };

#define PLACE "s3://b/w"

static u64 ticks;

static instant counted_now(void *self)
{
    (void)self;
    return 1790000000000000 + (instant)++ticks;
}

static i64 counted_monotonic(void *self)
{
    (void)self;
    return (i64)++ticks;
}

/* Never the same twice: files are named by it. */
static void counted_random(void *self, void *out_bytes, size_t size)
{
    (void)self;
    u64 value = ++ticks * 0x9e3779b97f4a7c15ULL;
    for (size_t i = 0; i < size; i++) {
        ((u8 *)out_bytes)[i] = (u8)(value >> (i % 8 * 8));
    }
}

static void no_wait(void *self, i64 microseconds)
{
    (void)self;
    ticks += (u64)microseconds;
}

static const struct seam SEAM = {.now = counted_now,
                                 .monotonic_us = counted_monotonic,
                                 .random = counted_random,
                                 .wait_us = no_wait};

static const struct {
    char letter;
    catalog_handler handler;
} ROUTES[] = {
    {'n', catalog_create_space},   {'p', catalog_update_space}, {'t', catalog_create_table},
    {'g', catalog_register_table}, {'c', catalog_commit_table}, {'x', catalog_commit_all},
    {'r', catalog_rename_table},   {'v', catalog_create_view},  {'h', catalog_register_view},
    {'w', catalog_commit_view},    {'s', catalog_rename_view},
};

/* One catalog, made empty again for each input. */
struct ground {
    struct arena *arena;
    struct db db;
    struct store store;
    struct location place;
    struct location_set locations;
    struct catalog catalog;
};

static err empty_tables(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    TRY(db_exec(tx, "DELETE FROM catalog_table", NULL, 0, NULL, error));
    return db_exec(tx, "DELETE FROM catalog_namespace", NULL, 0, NULL, error);
}

static struct db *ledger(void)
{
    static struct arena *arena;
    static struct db db;
    if (arena == NULL) {
        arena = arena_create(64 * MIB);
        err opened = db_open_sqlite(arena, STR(":memory:"), &SEAM, &db, NULL);
        assert(opened == OK);
        err made = ledger_open(&db, &SEAM, NULL);
        assert(made == OK);
    }
    return &db;
}

static void ground_open(struct ground *ground)
{
    ground->db = *ledger();
    err emptied = db_transact(&ground->db, empty_tables, NULL, NULL);
    assert(emptied == OK);
    err stored = store_open_mem(ground->arena, 256 * MIB, &ground->store, NULL);
    assert(stored == OK);
    ground->place = (struct location){.prefix = STR(PLACE), .store = ground->store};
    ground->locations = (struct location_set){&ground->place, 1};
    const struct catalog_local_options options = {.db = &ground->db,
                                                  .seam = &SEAM,
                                                  .warehouse = STR("w"),
                                                  .tables_uri = STR(PLACE),
                                                  .locations = &ground->locations};
    err opened = catalog_local_open(ground->arena, &options, &ground->catalog, NULL);
    assert(opened == OK);
    err made = catalog_create_namespace(&ground->catalog, STR("n"), NULL);
    assert(made == OK);
}

static void ground_close(struct ground *ground)
{
    catalog_local_close(&ground->catalog);
    store_close(&ground->store);
}

static void check_answer(const struct catalog_request *request, err result)
{
    assert(result != UNKNOWN && result != IO && result != BUSY);
    if (result == OK && request->status != 204) {
        json_t *answer = json_loadb(request->body.data, request->body.size, JSON_ALLOW_NUL, NULL);
        assert(json_is_object(answer));
        json_decref(answer);
    }
}

/* What lies under a name of the catalog can be loaded. */
static void check_items(const struct ground *ground, struct arena *arena)
{
    struct call call = {.arena = arena};
    struct catalog_names names = {0};
    err listed = catalog_list_tables(&ground->catalog, arena, STR("n"), &names, NULL);
    assert(listed == OK);
    for (size_t i = 0; i < names.count; i++) {
        AUTO_TABLE struct table table = {0};
        err loaded = catalog_load(&ground->catalog, arena,
                                  (struct table_name){STR("n"), names.names[i]}, &table, NULL);
        assert(loaded == OK);
    }
    struct catalog_request request = {.call = &call,
                                      .arena = arena,
                                      .catalog = ground->catalog,
                                      .local = catalog_local_of(&ground->catalog),
                                      .namespace_name = STR("n"),
                                      .name = STR("v")};
    err viewed = catalog_load_view(&request, NULL);
    assert(viewed == OK || viewed == NOT_FOUND);
}

static void send(const struct ground *ground, char letter, str body)
{
    AUTO_ARENA struct arena *arena = arena_create(256 * MIB);
    struct call call = {.body = body, .arena = arena};
    struct catalog_request request = {.call = &call,
                                      .arena = arena,
                                      .catalog = ground->catalog,
                                      .local = catalog_local_of(&ground->catalog),
                                      .namespace_name = STR("n"),
                                      .status = 200};
    request.name = letter == 'w' ? STR("v") : STR("t");
    for (size_t i = 0; i < ARRAY_COUNT(ROUTES); i++) {
        if (ROUTES[i].letter == letter) {
            struct error error = {0};
            check_answer(&request, ROUTES[i].handler(&request, &error));
            check_items(ground, arena);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > INPUT_MAX) {
        return 0;
    }
    AUTO_ARENA struct arena *arena = arena_create(64 * MIB);
    struct ground ground = {.arena = arena};
    str rest = {(const char *)data, size};
    str line = {NULL, 0};
    ground_open(&ground);
    for (int i = 0; i < LINES_MAX && str_next(&rest, '\n', &line); i++) {
        if (line.size > 1) {
            send(&ground, line.data[0], str_slice(line, 1, line.size));
        }
    }
    ground_close(&ground);
    return 0;
}
