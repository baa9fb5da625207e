#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sink/ledger_schema.h"
#include "sink/warehouse.h"
#include "table/catalog_local.h"

#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct fixture {
    struct arena *arena;
    char directory[64];
    struct db db;
    struct warehouses *warehouses;
    struct error error;
};

static err make_schema(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    for (size_t i = 0; i < ARRAY_COUNT(LEDGER_SCHEMA); i++) {
        TRY(db_exec(tx, LEDGER_SCHEMA[i], NULL, 0, NULL, error));
    }
    return OK;
}

static void must(struct fixture *f, err result)
{
    if (result != OK) {
        fail_msg("%s: %s", err_text(result), f->error.message);
    }
}

static err open_with(struct fixture *f, const str *allowed, size_t count)
{
    const struct warehouse_options options = {.data_directory = str_from(f->directory),
                                              .allowed_locations = allowed,
                                              .allowed_count = count};
    f->error = (struct error){0};
    return warehouses_open(f->arena, &f->db, seam_system(), &options, &f->warehouses, &f->error);
}

static int set_up(void **state)
{
    struct arena *arena = arena_create((size_t)64 * MIB);
    struct fixture *f = arena_alloc(arena, sizeof(*f));
    f->arena = arena;
    snprintf(f->directory, sizeof(f->directory), "/tmp/lhbox-warehouse-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    str path = str_format(arena, "%s/lhbox.db", f->directory);
    must(f, db_open_sqlite(arena, path, seam_system(), &f->db, &f->error));
    must(f, db_transact(&f->db, make_schema, NULL, &f->error));
    must(f, open_with(f, NULL, 0));
    *state = f;
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    warehouses_close(f->warehouses);
    db_close(&f->db);
    nftw(f->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_destroy(f->arena);
    return 0;
}

static const struct warehouse *make(struct fixture *f, const char *project, const char *name)
{
    const struct warehouse *warehouse = NULL;
    must(f, warehouse_create(f->warehouses, str_from(project), str_from(name), NULL, NULL,
                             &warehouse, &f->error));
    return warehouse;
}

static struct table make_table(struct fixture *f, const struct warehouse *warehouse,
                               const char *location)
{
    json_auto_t *request = json_pack("{s:s, s:{s:s, s:[{s:i, s:s, s:b, s:s}]}}", "name", "t",
                                     "schema", "type", "struct", "fields", "id", 1, "name", "a",
                                     "required", 0, "type", "long");
    if (location != NULL) {
        json_object_set_new(request, "location", json_string(location));
    }
    must(f, catalog_create_namespace(&warehouse->catalog, STR("demo"), &f->error));
    struct table table = {0};
    struct table_name name = {STR("demo"), STR("t")};
    must(f, catalog_create(&warehouse->catalog, f->arena, name, request, &table, &f->error));
    return table;
}

static void new_warehouse_has_files_tables_and_a_catalog(void **state)
{
    struct fixture *f = *state;
    const struct warehouse *warehouse = make(f, "prj_1", "garden");
    assert_ptr_equal(warehouse_get(f->warehouses, STR("garden")), warehouse);
    assert_true(warehouse->embedded);
    assert_true(str_ends(warehouse->files_path, STR("/warehouse/garden/files")));
    assert_true(str_starts(warehouse->tables_uri, STR("file:///")));
    must(f, store_put(&warehouse->files, STR("_sink/x"), STR("body"), NULL, &f->error));
    str path = str_format(f->arena, "%.*s/_sink/x", STR_ARG(warehouse->files_path));
    assert_int_equal(access(path.data, F_OK), 0);
    AUTO_TABLE struct table table = make_table(f, warehouse, NULL);
    assert_true(str_starts(metadata_location(table.metadata), warehouse->tables_uri));
}

static void warehouses_are_there_after_a_restart(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = make_table(f, make(f, "prj_1", "garden"), NULL);
    (void)make(f, "prj_2", "orchard");
    warehouses_close(f->warehouses);
    must(f, open_with(f, NULL, 0));
    const struct warehouse *warehouse = warehouse_get(f->warehouses, STR("garden"));
    assert_non_null(warehouse);
    assert_true(str_equal(warehouse->project, STR("prj_1")));
    AUTO_TABLE struct table again = {0};
    struct table_name name = {STR("demo"), STR("t")};
    must(f, catalog_load(&warehouse->catalog, f->arena, name, &again, &f->error));
    assert_true(str_equal(metadata_uuid(again.metadata), metadata_uuid(table.metadata)));
}

static void list_shows_a_project_its_own_oldest_first(void **state)
{
    struct fixture *f = *state;
    const struct warehouse *z = make(f, "prj_1", "z");
    const struct warehouse *b = make(f, "prj_2", "b");
    const struct warehouse *a = make(f, "prj_1", "a");
    const struct warehouse *found[4];
    assert_int_equal(warehouse_list(f->warehouses, STR("prj_1"), found, 4), 2);
    assert_ptr_equal(found[0], z);
    assert_ptr_equal(found[1], a);
    assert_int_equal(warehouse_list(f->warehouses, STR(""), found, 4), 3);
    assert_ptr_equal(found[1], b);
    assert_int_equal(warehouse_list(f->warehouses, STR(""), found, 1), 1);
    assert_null(warehouse_get(f->warehouses, STR("none")));
}

static void name_in_use_is_taken_and_odd_names_are_invalid(void **state)
{
    struct fixture *f = *state;
    const struct warehouse *out = NULL;
    (void)make(f, "prj_1", "garden");
    assert_int_equal(
        warehouse_create(f->warehouses, STR("prj_2"), STR("garden"), NULL, NULL, &out, &f->error),
        CONFLICT);
    assert_int_equal(f->error.code, ERROR_NAME_TAKEN);
    const str bad[] = {
        STR(""),    STR("Garden"),
        STR("a/b"), STR(".."),
        STR("a.b"), STR("0123456789012345678901234567890123456789012345678901234567890123")};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_int_equal(
            warehouse_create(f->warehouses, STR("prj_1"), bad[i], NULL, NULL, &out, NULL), INVALID);
    }
}

static err create_with(struct fixture *f, const char *store, const char *catalog)
{
    json_auto_t *store_json = json_loads(store, 0, NULL);
    json_auto_t *catalog_json = json_loads(catalog, 0, NULL);
    const struct warehouse *out = NULL;
    f->error = (struct error){0};
    return warehouse_create(f->warehouses, STR("prj_1"), STR("w"), store_json, catalog_json, &out,
                            &f->error);
}

static void other_stores_and_catalogs_are_not_implemented(void **state)
{
    struct fixture *f = *state;
    assert_int_not_equal(create_with(f, "{\"type\":\"s3\",\"bucket\":\"b\"}", "null"), OK);
    assert_int_equal(f->error.code, ERROR_NOT_IMPLEMENTED);
    assert_int_not_equal(create_with(f, "null", "{\"type\":\"rest\",\"uri\":\"http://x\"}"), OK);
    assert_int_equal(f->error.code, ERROR_NOT_IMPLEMENTED);
    assert_int_equal(create_with(f, "{\"type\":\"tape\"}", "null"), INVALID);
    assert_int_equal(f->error.code, ERROR_INVALID_REQUEST);
    assert_int_equal(create_with(f, "{}", "null"), INVALID);
    assert_int_equal(create_with(f, "{\"type\":\"dir\",\"path\":\"/etc\"}", "null"), INVALID);
    assert_int_equal(f->error.code, ERROR_UNKNOWN_FIELD);
    assert_null(warehouse_get(f->warehouses, STR("w")));
    must(f, create_with(f, "{\"type\":\"dir\"}", "{\"type\":\"embedded\"}"));
}

static void allowed_locations_take_tables_and_others_do_not(void **state)
{
    struct fixture *f = *state;
    warehouses_close(f->warehouses);
    const str relative[] = {STR("somewhere")};
    assert_int_equal(open_with(f, relative, 1), INVALID);
    assert_int_equal(f->error.code, ERROR_INVALID_CONFIG);
    const str allowed[] = {str_format(f->arena, "file://%s/allowed/", f->directory)};
    must(f, open_with(f, allowed, 1));
    const struct warehouse *warehouse = make(f, "prj_1", "garden");
    str place = str_format(f->arena, "file://%s/allowed/t", f->directory);
    AUTO_TABLE struct table table = make_table(f, warehouse, place.data);
    assert_true(str_equal(metadata_location(table.metadata), place));
    struct store store = {0};
    str key = {0};
    str outside = str_format(f->arena, "file://%s/lhbox.db", f->directory);
    assert_int_equal(location_find(&warehouse->locations, f->arena, outside, &store, &key, NULL),
                     DENIED);
}

struct maker {
    struct fixture *f;
    int made;
    int taken;
};

static void *make_many(void *context)
{
    struct maker *maker = context;
    for (int i = 0; i < 12; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%d", i);
        const struct warehouse *out = NULL;
        err result = warehouse_create(maker->f->warehouses, STR("prj_1"), str_from(name), NULL,
                                      NULL, &out, NULL);
        maker->made += result == OK ? 1 : 0;
        maker->taken += result == CONFLICT ? 1 : 0;
    }
    return NULL;
}

static void racing_makers_get_each_name_once(void **state)
{
    struct fixture *f = *state;
    struct maker makers[2] = {{.f = f}, {.f = f}};
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, make_many, &makers[i]), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    const struct warehouse *found[32];
    assert_int_equal(makers[0].made + makers[1].made, 12);
    assert_int_equal(makers[0].taken + makers[1].taken, 12);
    assert_int_equal(warehouse_list(f->warehouses, STR(""), found, 32), 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(new_warehouse_has_files_tables_and_a_catalog),
        T(warehouses_are_there_after_a_restart),
        T(list_shows_a_project_its_own_oldest_first),
        T(name_in_use_is_taken_and_odd_names_are_invalid),
        T(other_stores_and_catalogs_are_not_implemented),
        T(allowed_locations_take_tables_and_others_do_not),
        T(racing_makers_get_each_name_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
