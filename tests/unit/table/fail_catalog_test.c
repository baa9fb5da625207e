/* Each call of database and store that the catalog makes fails, loses its answer, and each
 * allocation fails: a request that failed changed nothing, or nobody knows; sent again it is done,
 * and done once. */
#include "doors.h"
#include "table_fixture.h"

#include "catalog_schema.h"
#include "table/catalog_local.h"
#include "table/catalog_receipt.h"
#include "table/catalog_view.h"
#include "table/commit.h"

struct world {
    struct arena *arena;
    u8 random_next;
    struct seam seam;
    struct db db;
    struct store store;
    struct doors doors;
    struct door_db door_db;
    struct door_store door_store;
    struct db guarded_db;
    struct location place;
    struct location_set locations;
    struct location sound_place;
    struct location_set sound_locations;
    struct catalog catalog;
    struct catalog_local *local;
    json_t *request; /* what is sent; may be NULL */
    struct error error;
};

static void must(struct world *w, err result)
{
    if (result != OK) {
        fail_msg("%s: %s", err_text(result), w->error.message);
    }
}

static struct table_name named(const char *name)
{
    return (struct table_name){STR("demo"), str_from(name)};
}

/* ---- worlds ---- */

static void *open_empty(void)
{
    struct arena *arena = arena_create((size_t)64 * MIB);
    struct world *w = arena_alloc(arena, sizeof(*w));
    w->arena = arena;
    w->seam = fixture_seam(&w->random_next);
    must(w, db_open_sqlite(arena, STR(":memory:"), &w->seam, &w->db, &w->error));
    must(w, db_transact(&w->db, make_schema, NULL, &w->error));
    must(w, store_open_mem(arena, (size_t)64 * MIB, &w->store, &w->error));
    w->door_db = (struct door_db){&w->doors, w->db};
    w->door_store = (struct door_store){.doors = &w->doors, .inner = w->store};
    w->guarded_db = door_db_open(&w->door_db);
    w->place = (struct location){STR("file:///data/tables"), door_store_open(&w->door_store)};
    w->locations = (struct location_set){&w->place, 1};
    w->sound_place = (struct location){w->place.prefix, w->store};
    w->sound_locations = (struct location_set){&w->sound_place, 1};
    const struct catalog_local_options options = {.db = &w->guarded_db,
                                                  .seam = &w->seam,
                                                  .warehouse = STR("garden"),
                                                  .tables_uri = w->place.prefix,
                                                  .locations = &w->locations};
    must(w, catalog_local_open(arena, &options, &w->catalog, &w->error));
    w->local = catalog_local_of(&w->catalog);
    must(w, catalog_create_namespace(&w->catalog, STR("demo"), &w->error));
    return w;
}

static void close_world(void *world)
{
    struct world *w = world;
    json_decref(w->request);
    catalog_local_close(&w->catalog);
    store_close(&w->store);
    db_close(&w->db);
    arena_destroy(w->arena);
}

static struct doors *doors_of(void *world)
{
    return &((struct world *)world)->doors;
}

#define CREATE_T                                                                                   \
    "{'name':'t','schema':{'type':'struct','fields':["                                             \
    "{'id':1,'name':'id','required':true,'type':'long'}]}}"

static void make_table(struct world *w, const char *name)
{
    AUTO_TABLE struct table table = {0};
    json_auto_t *request = fixture_json(CREATE_T);
    json_object_set_new(request, "name", json_string(name));
    must(w, catalog_create(&w->catalog, w->arena, named(name), request, &table, &w->error));
}

static void *open_with_tables(void)
{
    struct world *w = open_empty();
    make_table(w, "t");
    make_table(w, "u");
    return w;
}

static bool has_table(struct world *w, const char *name)
{
    AUTO_TABLE struct table table = {0};
    err loaded = catalog_load(&w->catalog, w->arena, named(name), &table, &w->error);
    assert_true(loaded == OK || loaded == NOT_FOUND);
    return loaded == OK;
}

/* Done although it failed: then it must have said that it may be. */
static void assert_known(err result, bool done)
{
    assert_true(!done || result == OK || result == UNKNOWN);
    assert_true(done || result != OK);
}

/* ---- create ---- */

static void *open_to_create(void)
{
    struct world *w = open_empty();
    w->request = fixture_json(CREATE_T);
    return w;
}

static err act_create(void *world, struct error *error)
{
    struct world *w = world;
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    AUTO_TABLE struct table table = {0};
    return catalog_create(&w->catalog, arena, named("t"), w->request, &table, error);
}

static void settle_create(void *world, err result)
{
    struct world *w = world;
    bool done = has_table(w, "t");
    assert_known(result, done);
    assert_int_equal(act_create(w, &w->error), done ? CONFLICT : OK);
    assert_true(has_table(w, "t"));
}

/* ---- commit ---- */

static i64 snapshots_of(struct world *w, const char *name)
{
    AUTO_TABLE struct table table = {0};
    must(w, catalog_load(&w->catalog, w->arena, named(name), &table, &w->error));
    return (i64)json_array_size(json_object_get(metadata_json(table.metadata), "snapshots"));
}

/* An append of one file, whose manifests are written through the doors, too. */
static err act_append(void *world, struct error *error)
{
    struct world *w = world;
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    AUTO_TABLE struct table table = {0};
    AUTO_TABLE struct table after = {0};
    json_auto_t *request = NULL;
    TRY(catalog_load(&w->catalog, arena, named("t"), &table, error));
    struct append append = commit_begin(&w->seam);
    struct data_file file = {.path = STR("file:///data/tables/t/data/1.parquet"),
                             .stats = {.rows = 1, .file_bytes = 4}};
    append.files = &file;
    append.file_count = 1;
    TRY(commit_append(arena, &w->locations, &table, &w->seam, &append, &request, error));
    return catalog_commit(&w->catalog, arena, named("t"), request, &after, error);
}

static void settle_append(void *world, err result)
{
    struct world *w = world;
    bool done = snapshots_of(w, "t") == 1;
    assert_known(result, done);
    if (!done) {
        must(w, act_append(w, &w->error));
    }
    assert_int_equal(snapshots_of(w, "t"), 1);
}

#define SET_A "{'requirements':[],'updates':[{'action':'set-properties','updates':{'a':'1'}}]}"

static bool has_property(struct world *w, const char *name)
{
    AUTO_TABLE struct table table = {0};
    must(w, catalog_load(&w->catalog, w->arena, named(name), &table, &w->error));
    return metadata_property(table.metadata, "a").data != NULL;
}

static void *open_to_transact(void)
{
    struct world *w = open_with_tables();
    w->request = fixture_json(SET_A);
    return w;
}

static err act_transact(void *world, struct error *error)
{
    struct world *w = world;
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    struct catalog_change changes[] = {{.name = named("t"), .request = w->request},
                                       {.name = named("u"), .request = w->request}};
    err result = catalog_local_commit(w->local, arena, changes, 2, error);
    table_close(&changes[0].after);
    table_close(&changes[1].after);
    return result;
}

static void settle_transact(void *world, err result)
{
    struct world *w = world;
    bool done = has_property(w, "t");
    assert_int_equal(has_property(w, "u"), done); /* all or none */
    assert_known(result, done);
    must(w, act_transact(w, &w->error));
    assert_true(has_property(w, "t") && has_property(w, "u"));
}

/* ---- rename, drop, unregister, register ---- */

static err act_rename(void *world, struct error *error)
{
    struct world *w = world;
    return catalog_local_rename(w->local, CATALOG_TABLE, named("t"), named("v"), error);
}

static void settle_rename(void *world, err result)
{
    struct world *w = world;
    bool done = has_table(w, "v");
    assert_int_equal(has_table(w, "t"), !done);
    assert_known(result, done);
    if (!done) {
        must(w, act_rename(w, &w->error));
    }
    assert_true(has_table(w, "v") && !has_table(w, "t"));
}

static err act_drop(void *world, struct error *error)
{
    struct world *w = world;
    return catalog_local_drop(w->local, named("t"), CATALOG_FILES_PURGE, error);
}

static void settle_drop(void *world, err result)
{
    struct world *w = world;
    bool done = !has_table(w, "t");
    assert_known(result, done);
    if (!done) {
        must(w, act_drop(w, &w->error));
    }
    assert_false(has_table(w, "t"));
    assert_true(has_table(w, "u"));
}

static err act_unregister(void *world, struct error *error)
{
    struct world *w = world;
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    AUTO_TABLE struct table table = {0};
    return catalog_local_unregister(w->local, arena, named("t"), &table, error);
}

static void settle_unregister(void *world, err result)
{
    struct world *w = world;
    bool done = !has_table(w, "t");
    assert_known(result, done);
    if (!done) {
        must(w, act_unregister(w, &w->error));
    }
    assert_false(has_table(w, "t"));
}

static str metadata_place;

static void *open_unregistered(void)
{
    struct world *w = open_with_tables();
    must(w, catalog_local_find(w->local, w->arena, named("t"), &metadata_place, &w->error));
    must(w, act_unregister(w, &w->error));
    return w;
}

static err act_register(void *world, struct error *error)
{
    struct world *w = world;
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    AUTO_TABLE struct table table = {0};
    return catalog_local_register(w->local, arena, named("t"), metadata_place, CATALOG_REGISTER_NEW,
                                  &table, error);
}

static void settle_register(void *world, err result)
{
    struct world *w = world;
    bool done = has_table(w, "t");
    assert_known(result, done);
    if (!done) {
        must(w, act_register(w, &w->error));
    }
    assert_true(has_table(w, "t"));
}

/* ---- namespaces ---- */

static err act_namespace(void *world, struct error *error)
{
    struct world *w = world;
    return catalog_local_make_namespace(w->local, STR("more"), NULL, error);
}

static void settle_namespace(void *world, err result)
{
    struct world *w = world;
    json_auto_t *properties = NULL;
    err loaded = catalog_local_load_namespace(w->local, STR("more"), &properties, &w->error);
    assert_known(result, loaded == OK);
    assert_int_equal(act_namespace(w, &w->error), loaded == OK ? CONFLICT : OK);
}

/* ---- views ---- */

static json_t *view_request(void)
{
    return fixture_json(
        "{'name':'v','schema':{'type':'struct','fields':["
        "{'id':1,'name':'id','required':true,'type':'long'}]},'view-version':{'version-id':1,"
        "'schema-id':0,'timestamp-ms':5,'summary':{},'default-namespace':['demo'],"
        "'representations':[{'type':'sql','sql':'SELECT 1','dialect':'spark'}]}}");
}

static void *open_to_create_view(void)
{
    struct world *w = open_empty();
    w->request = view_request();
    return w;
}

static err act_create_view(void *world, struct error *error)
{
    struct world *w = world;
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    AUTO_VIEW struct catalog_view view = {0};
    return catalog_view_create(w->local, arena, named("v"), w->request, &view, error);
}

/* How many versions the view has; -1: there is none. */
static i64 versions_of(struct world *w)
{
    AUTO_VIEW struct catalog_view view = {0};
    err loaded = catalog_view_load(w->local, w->arena, named("v"), &view, &w->error);
    assert_true(loaded == OK || loaded == NOT_FOUND);
    return loaded == OK ? (i64)json_array_size(json_object_get(view.document, "versions")) : -1;
}

static void settle_create_view(void *world, err result)
{
    struct world *w = world;
    bool done = versions_of(w) == 1;
    assert_known(result, done);
    assert_int_equal(act_create_view(w, &w->error), done ? CONFLICT : OK);
    assert_int_equal(versions_of(w), 1);
}

static void *open_with_view(void)
{
    struct world *w = open_empty();
    AUTO_VIEW struct catalog_view view = {0};
    json_auto_t *request = view_request();
    must(w, catalog_view_create(w->local, w->arena, named("v"), request, &view, &w->error));
    w->request = fixture_json(
        "{'updates':[{'action':'add-view-version','view-version':{'schema-id':0,'summary':{},"
        "'default-namespace':['demo'],'representations':[{'type':'sql','sql':'SELECT 2',"
        "'dialect':'spark'}]}},{'action':'set-current-view-version','view-version-id':-1}]}");
    return w;
}

static err act_commit_view(void *world, struct error *error)
{
    struct world *w = world;
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    AUTO_VIEW struct catalog_view view = {0};
    return catalog_view_commit(w->local, arena, named("v"), w->request, &view, error);
}

static void settle_commit_view(void *world, err result)
{
    struct world *w = world;
    assert_known(result, versions_of(w) == 2);
    must(w, act_commit_view(w, &w->error)); /* the same one again changes nothing */
    assert_int_equal(versions_of(w), 2);
}

/* ---- under an Idempotency-Key ---- */

static err act_keyed(void *world, struct error *error)
{
    struct world *w = world;
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    struct catalog_receipt *receipt = NULL;
    TRY(catalog_receipt_open(arena, &w->catalog, STR("key"), STR("hash"), &receipt, error));
    struct catalog catalog = catalog_receipt_catalog(receipt);
    return catalog_local_make_namespace(catalog_local_of(&catalog), STR("more"), NULL, error);
}

static void settle_keyed(void *world, err result)
{
    struct world *w = world;
    json_auto_t *properties = NULL;
    struct catalog_receipt *receipt = NULL;
    struct catalog_outcome outcome = {.found = false};
    bool done = catalog_local_load_namespace(w->local, STR("more"), &properties, NULL) == OK;
    assert_known(result, done);
    must(w,
         catalog_receipt_open(w->arena, &w->catalog, STR("key"), STR("hash"), &receipt, &w->error));
    must(w, catalog_receipt_find(receipt, w->arena, &outcome, &w->error));
    assert_int_equal(outcome.found, done);
}

/* ---- the loops ---- */

#define SCENE(name, open, act, settle) {name, open, doors_of, act, settle, close_world}

static const struct door_scene SCENES[] = {
    SCENE("create", open_to_create, act_create, settle_create),
    SCENE("append", open_with_tables, act_append, settle_append),
    SCENE("transaction", open_to_transact, act_transact, settle_transact),
    SCENE("rename", open_with_tables, act_rename, settle_rename),
    SCENE("drop", open_with_tables, act_drop, settle_drop),
    SCENE("unregister", open_with_tables, act_unregister, settle_unregister),
    SCENE("register", open_unregistered, act_register, settle_register),
    SCENE("namespace", open_empty, act_namespace, settle_namespace),
    SCENE("view", open_to_create_view, act_create_view, settle_create_view),
    SCENE("view_commit", open_with_view, act_commit_view, settle_commit_view),
    SCENE("keyed", open_empty, act_keyed, settle_keyed),
};

static void every(enum door_fault fault)
{
    for (size_t i = 0; i < ARRAY_COUNT(SCENES); i++) {
        i64 met = door_every(&SCENES[i], fault);
        assert_true(met > 0 || fault == DOOR_STARVES_ANY); /* a new namespace allocates nothing */
    }
}

static void a_call_that_fails_changes_nothing_or_says_that_it_may_have(void **state)
{
    (void)state;
    every(DOOR_FAILS);
}

static void an_answer_that_is_lost_is_no_failure(void **state)
{
    (void)state;
    every(DOOR_LOSES);
}

static void an_allocation_that_fails_changes_nothing_or_says_that_it_may_have(void **state)
{
    (void)state;
    every(DOOR_STARVES_ANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_fails_changes_nothing_or_says_that_it_may_have),
        cmocka_unit_test(an_answer_that_is_lost_is_no_failure),
        cmocka_unit_test(an_allocation_that_fails_changes_nothing_or_says_that_it_may_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
