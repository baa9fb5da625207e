/* A sink is made and changed, a warehouse is made, with each call failing, each answer lost, each
 * allocation failing: what was refused is not there or is told of by the next try, and done again
 * it is there once. */
#include "doors.h"

#include "sink/lifecycle.h"
#include "sink/settings.h"

#include <ftw.h>
#include <stdio.h>

struct world {
    struct arena *arena;
    char directory[64];
    struct db db;
    struct doors doors;
    struct door_db door_db;
    struct door_store door_files;
    struct db guarded;
    struct warehouses *warehouses;
    const struct warehouse *warehouse;
    struct lifecycle lifecycle;
    struct ledger_sink sink;
    struct error error;
};

static void must(struct world *w, err result)
{
    if (result != OK) {
        fail_msg("%s: %s", err_text(result), w->error.message);
    }
}

/* ---- the world: a ledger, one warehouse, one table ---- */

static void *open_bare(void)
{
    struct arena *arena = arena_create((size_t)64 * MIB);
    struct world *w = arena_alloc(arena, sizeof(*w));
    w->arena = arena;
    (void)snprintf(w->directory, sizeof(w->directory), "/tmp/lhbox-lifecycle-XXXXXX");
    assert_non_null(mkdtemp(w->directory));
    must(w, db_open_sqlite(arena, STR(":memory:"), seam_system(), &w->db, &w->error));
    must(w, ledger_open(&w->db, seam_system(), &w->error));
    w->door_db = (struct door_db){&w->doors, w->db};
    w->guarded = door_db_open(&w->door_db);
    const struct warehouse_options options = {.data_directory = str_from(w->directory)};
    must(w,
         warehouses_open(arena, &w->guarded, seam_system(), &options, &w->warehouses, &w->error));
    return w;
}

static err act_warehouse(void *world, struct error *error)
{
    struct world *w = world;
    return warehouse_create(w->warehouses, STR("prj"), STR("garden"), NULL, NULL, &w->warehouse,
                            error);
}

static void *open_with_table(void)
{
    struct world *w = open_bare();
    must(w, act_warehouse(w, &w->error));
    struct warehouse *writable = (struct warehouse *)(uintptr_t)w->warehouse;
    w->door_files = (struct door_store){.doors = &w->doors, .inner = writable->files};
    writable->files = door_store_open(&w->door_files);
    w->lifecycle = (struct lifecycle){.db = &w->guarded,
                                      .seam = seam_system(),
                                      .warehouses = w->warehouses,
                                      .installation_id = STR("0123456789abcdefghjkmnpqrs")};
    const struct table_name name = {STR("demo"), STR("events")};
    AUTO_TABLE struct table table = {0};
    json_auto_t *request = json_pack("{s:s, s:{s:s, s:[{s:i, s:s, s:b, s:s}]}}", "name", "events",
                                     "schema", "type", "struct", "fields", "id", 1, "name", "x",
                                     "required", 0, "type", "long");
    must(w, catalog_create_namespace(&w->warehouse->catalog, STR("demo"), &w->error));
    must(w, catalog_create(&w->warehouse->catalog, w->arena, name, request, &table, &w->error));
    return w;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static void close_world(void *world)
{
    struct world *w = world;
    warehouses_close(w->warehouses);
    db_close(&w->db);
    (void)nftw(w->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_destroy(w->arena);
}

static struct doors *doors_of(void *world)
{
    return &((struct world *)world)->doors;
}

/* ---- a warehouse ---- */

static void settle_warehouse(void *world, err result)
{
    struct world *w = world;
    /* One that was made and not told of is there for who asks again. */
    assert_int_equal(act_warehouse(w, &w->error), result == OK ? CONFLICT : OK);
    assert_non_null(warehouse_get(w->warehouses, STR("garden")));
}

/* ---- create ---- */

static err act_create(void *world, struct error *error)
{
    struct world *w = world;
    AUTO_ARENA struct arena *arena = arena_create((size_t)4 * MIB);
    const struct lifecycle_bounds bounds = lifecycle_bounds_default();
    const struct lifecycle_request request = {.project = STR("prj"),
                                              .name = STR("events"),
                                              .warehouse = STR("garden"),
                                              .namespace_name = STR("demo"),
                                              .table_name = STR("events"),
                                              .roll_seconds = 300,
                                              .roll_bytes = bounds.roll_bytes_default,
                                              .unknown_fields = STR("reject"),
                                              .idempotency = STR("required")};
    struct lifecycle_created created = {0};
    TRY(lifecycle_create(&w->lifecycle, arena, &bounds, &request, &created, error));
    w->sink.id = str_copy(w->arena, created.sink_id);
    return OK;
}

static void settle_create(void *world, err result)
{
    struct world *w = world;
    struct error told = {0};
    err again = act_create(w, &told);
    if (result == OK) {
        assert_int_equal(again, CONFLICT);
    } else {
        /* There already, and not told: the answer says so. */
        assert_true(again == OK || told.code == ERROR_SINK_EXISTS);
    }
    assert_int_equal(act_create(w, &told), CONFLICT);
    assert_int_equal(told.code, ERROR_SINK_EXISTS);
}

/* ---- change ---- */

static void *open_with_sink(void)
{
    struct world *w = open_with_table();
    must(w, act_create(w, &w->error));
    must(w, ledger_find_sink(&w->db, w->arena, STR(""), w->sink.id, &w->sink, &w->error));
    return w;
}

static err act_patch(void *world, struct error *error)
{
    struct world *w = world;
    AUTO_ARENA struct arena *arena = arena_create((size_t)4 * MIB);
    const struct lifecycle_bounds bounds = lifecycle_bounds_default();
    const i64 seconds = 600;
    const str ignore = STR("ignore");
    const struct ledger_sink_patch patch = {.roll_seconds = &seconds, .unknown_fields = &ignore};
    return lifecycle_patch(&w->lifecycle, arena, &bounds, &w->sink, &patch, error);
}

static void settle_patch(void *world, err result)
{
    struct world *w = world;
    struct ledger_sink now = {0};
    struct ledger_sink stored = {0};
    str id = w->sink.id;
    must(w, ledger_find_sink(&w->db, w->arena, STR(""), id, &now, &w->error));
    bool done = now.roll_seconds == 600;
    assert_int_equal(str_equal(now.unknown_fields, STR("ignore")), done); /* all or nothing */
    assert_true(!done || result == OK || result == UNKNOWN);
    assert_true(done || result != OK);
    w->sink = now;
    must(w, act_patch(w, &w->error));
    must(w, ledger_find_sink(&w->db, w->arena, STR(""), id, &now, &w->error));
    must(w, settings_read(&w->warehouse->files, w->arena, w->lifecycle.installation_id, id, &stored,
                          &w->error));
    assert_int_equal(now.roll_seconds, 600);
    assert_int_equal(stored.config_version, now.config_version);
    assert_int_equal(stored.roll_seconds, 600);
}

/* ---- the loops ---- */

#define SCENE(name, open, act, settle) {name, open, doors_of, act, settle, close_world}
static const struct door_scene SCENES[] = {
    SCENE("warehouse", open_bare, act_warehouse, settle_warehouse),
    SCENE("create", open_with_table, act_create, settle_create),
    SCENE("change", open_with_sink, act_patch, settle_patch),
};

static void every(enum door_fault fault)
{
    for (size_t i = 0; i < ARRAY_COUNT(SCENES); i++) {
        assert_true(door_every(&SCENES[i], fault) > 0);
    }
}

static void a_call_that_fails_costs_another_request(void **state)
{
    (void)state;
    every(DOOR_FAILS);
}

static void an_answer_that_is_lost_costs_another_request(void **state)
{
    (void)state;
    every(DOOR_LOSES);
}

static void an_allocation_that_fails_costs_another_request(void **state)
{
    (void)state;
    every(DOOR_STARVES_ANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_fails_costs_another_request),
        cmocka_unit_test(an_answer_that_is_lost_costs_another_request),
        cmocka_unit_test(an_allocation_that_fails_costs_another_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
