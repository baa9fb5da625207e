#include "catalog_fixture.h"

#include "table/metadata_file.h"

#include <pthread.h>

#define SPACE(parent, child) STR(parent "\x1f" child)

/* ---- tables ---- */

static void create_makes_directories_a_first_file_and_a_hint(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    assert_true(exists(table_path(f, &table, "data")));
    assert_true(exists(path_of(f, table.metadata_location)));
    assert_true(exists(table_path(f, &table, "metadata/version-hint.text")));
    assert_true(str_starts(metadata_location(table.metadata), f->tables_uri));
    assert_true(str_find(table.metadata_location, STR("/metadata/00000-")) > 0);
    AUTO_TABLE struct table again = load(f, "t");
    assert_true(str_equal(metadata_uuid(again.metadata), metadata_uuid(table.metadata)));
}

static void create_refuses_a_name_in_use_and_a_missing_namespace(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    json_auto_t *request = json("{'name':'t','schema':" SCHEMA "}");
    struct table other = {0};
    assert_int_equal(catalog_create(&f->catalog, f->arena, demo("t"), request, &other, &f->error),
                     CONFLICT);
    assert_string_equal(f->error.message, "Table already exists: demo.t");
    f->error = (struct error){0};
    struct table_name nowhere = {STR("nowhere"), STR("t")};
    assert_int_equal(catalog_create(&f->catalog, f->arena, nowhere, request, &other, &f->error),
                     NOT_FOUND);
    assert_string_equal(f->error.message, "Namespace does not exist: nowhere");
}

static void names_that_cannot_be_are_invalid(void **state)
{
    struct fixture *f = *state;
    json_auto_t *request = json("{'name':'t','schema':" SCHEMA "}");
    const str bad[] = {STR(""), STR("///"), STR("a\nb"), STR("\xff\xfe")};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct table other = {0};
        struct table_name name = {STR("demo"), bad[i]};
        assert_int_equal(catalog_create(&f->catalog, f->arena, name, request, &other, NULL),
                         INVALID);
    }
    assert_int_equal(catalog_create_namespace(&f->catalog, STR(""), NULL), INVALID);
    assert_int_equal(catalog_create_namespace(&f->catalog, STR("a\x1f"), NULL), INVALID);
    assert_int_equal(catalog_create_namespace(&f->catalog,
                                              STR("\x1f"
                                                  "b"),
                                              NULL),
                     INVALID);
}

static void odd_names_get_plain_places(void **state)
{
    struct fixture *f = *state;
    json_auto_t *request = json("{'name':'t','schema':" SCHEMA "}");
    struct table_name name = {STR("demo"), STR("../wei rd/ü")};
    AUTO_TABLE struct table table = {0};
    must(f, catalog_create(&f->catalog, f->arena, name, request, &table, &f->error));
    str rest = str_slice(metadata_location(table.metadata), f->tables_uri.size, SIZE_MAX);
    assert_true(str_starts(rest, STR("/demo/_./")) || str_starts(rest, STR("/demo/_._wei_rd__")));
    assert_int_equal(str_find(rest, STR("..")), -1);
}

static err create_at(struct fixture *f, const char *location)
{
    json_auto_t *request = json("{'name':'t','location':'%s','schema':" SCHEMA "}", location);
    AUTO_TABLE struct table table = {0};
    f->error = (struct error){0};
    return catalog_create(&f->catalog, f->arena, demo("t"), request, &table, &f->error);
}

static void locations_outside_are_refused(void **state)
{
    struct fixture *f = *state;
    const char *root = f->tables_uri.data;
    char escape[256];
    snprintf(escape, sizeof(escape), "%s/../lhbox.db", root);
    assert_int_equal(create_at(f, "file:///etc/lhbox"), DENIED);
    assert_int_equal(f->error.code, ERROR_LOCATION_REFUSED);
    assert_int_equal(create_at(f, "s3://bucket/x"), DENIED);
    assert_int_equal(create_at(f, escape), DENIED);
    AUTO_TABLE struct table table = create(f, "t");
    assert_int_equal(commit(f, "t",
                            "{'updates':[{'action':'set-location',"
                            "'location':'file:///etc/lhbox'}]}"),
                     DENIED);
    assert_int_equal(commit(f, "t",
                            "{'updates':[{'action':'set-properties','updates':"
                            "{'write.data.path':'file:///etc/lhbox'}}]}"),
                     DENIED);
    assert_int_equal(commit(f, "t",
                            "{'updates':[{'action':'set-properties','updates':"
                            "{'write.metadata.path':'/etc/lhbox'}}]}"),
                     DENIED);
    AUTO_TABLE struct table after = load(f, "t");
    assert_true(str_equal(table.metadata_location, after.metadata_location));
}

static void other_spellings_of_a_place_are_understood(void **state)
{
    struct fixture *f = *state;
    const char *path = path_of(f, f->tables_uri);
    char location[256];
    snprintf(location, sizeof(location), "%s/plain/", path);
    must(f, create_at(f, location));
    AUTO_TABLE struct table plain = load(f, "t");
    assert_true(str_starts(metadata_location(plain.metadata), STR("file:///")));
    assert_true(str_ends(metadata_location(plain.metadata), STR("/plain")));
    must(f, catalog_drop(&f->catalog, demo("t"), &f->error));
    snprintf(location, sizeof(location), "file:%s/short", path);
    must(f, create_at(f, location));
    AUTO_TABLE struct table shorter = load(f, "t");
    assert_true(str_starts(shorter.metadata_location, STR("file:///")));
    assert_true(exists(path_of(f, shorter.metadata_location)));
}

static void metadata_path_moves_the_files(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    char text[400];
    snprintf(text, sizeof(text),
             "{'updates':[{'action':'set-properties','updates':"
             "{'write.metadata.path':'%.*s/elsewhere'}}]}",
             STR_ARG(f->tables_uri));
    must(f, commit(f, "t", text));
    AUTO_TABLE struct table after = load(f, "t");
    assert_true(str_find(after.metadata_location, STR("/tables/elsewhere/00001-")) > 0);
}

static void gzip_metadata_is_written_and_read(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    must(f, commit(f, "t",
                   "{'updates':[{'action':'set-properties','updates':"
                   "{'write.metadata.compression-codec':'gzip'}}]}"));
    AUTO_TABLE struct table after = load(f, "t");
    assert_true(str_ends(after.metadata_location, STR(".gz.metadata.json")));
    str bytes = read_file(f, path_of(f, after.metadata_location));
    assert_int_equal((u8)bytes.data[0], 0x1f);
    assert_int_equal((u8)bytes.data[1], 0x8b);
    must(f, commit(f, "t", "{'updates':[{'action':'set-properties','updates':{'a':'1'}}]}"));
}

static void gzip_of_another_writer_is_read_and_damage_is_seen(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    const char *path = path_of(f, table.metadata_location);
    char command[600];
    /* gzip names the file in its header, which ours does not. */
    snprintf(command, sizeof(command), "gzip %s && mv %s.gz %s", path, path, path);
    assert_int_equal(system(command), 0);
    AUTO_TABLE struct table read = load(f, "t");
    assert_true(str_equal(metadata_uuid(read.metadata), metadata_uuid(table.metadata)));
    str bytes = read_file(f, path);
    char *damaged = (char *)(uintptr_t)bytes.data;
    damaged[bytes.size - 6] = (char)(damaged[bytes.size - 6] ^ 1);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(damaged, 1, bytes.size, file), bytes.size);
    fclose(file);
    struct metadata *none = NULL;
    assert_int_equal(metadata_file_read(&f->locations, table.metadata_location, &none, NULL, NULL),
                     CORRUPT);
}

static void change_times(struct fixture *f, int times)
{
    for (int i = 0; i < times; i++) {
        char text[120];
        snprintf(text, sizeof(text),
                 "{'updates':[{'action':'set-properties','updates':{'a':'%d'}}]}", i);
        must(f, commit(f, "t", text));
    }
}

static void trimmed_metadata_files_are_removed(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    must(f, commit(f, "t",
                   "{'updates':[{'action':'set-properties','updates':{"
                   "'write.metadata.delete-after-commit.enabled':'true',"
                   "'write.metadata.previous-versions-max':'3'}}]}"));
    change_times(f, 8);
    assert_int_equal(count_files(f, ".metadata.json"), 4);
    AUTO_TABLE struct table after = load(f, "t");
    assert_true(str_find(after.metadata_location, STR("/00009-")) > 0);
    /* While somebody copies, they stay. */
    catalog_local_pause_trims(f->local);
    change_times(f, 8);
    assert_int_equal(count_files(f, ".metadata.json"), 12);
    assert_true(exists(path_of(f, after.metadata_location)));
    catalog_local_resume_trims(f->local);
    assert_int_equal(count_files(f, ".metadata.json"), 4);
    change_times(f, 1);
    assert_int_equal(count_files(f, ".metadata.json"), 4);
}

static void lost_metadata_file_is_told_and_the_name_can_be_freed(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    const char *path = path_of(f, table.metadata_location);
    str bytes = read_file(f, path);
    assert_int_equal(unlink(path), 0);
    struct table none = {0};
    assert_int_equal(catalog_load(&f->catalog, f->arena, demo("t"), &none, &f->error), CORRUPT);
    assert_non_null(strstr(f->error.message, "Failed to open input stream for file: file:///"));
    /* Registering over it works, and so does dropping it. */
    const char *saved = table_path(f, &table, "metadata/saved.metadata.json");
    FILE *file = fopen(saved, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, file), bytes.size);
    fclose(file);
    AUTO_TABLE struct table registered = {0};
    must(f, catalog_local_register(f->local, f->arena, demo("t"), str_from(saved),
                                   CATALOG_REGISTER_OVERWRITE, &registered, &f->error));
    assert_true(str_equal(metadata_uuid(registered.metadata), metadata_uuid(table.metadata)));
    assert_int_equal(unlink(saved), 0);
    must(f, catalog_local_drop(f->local, demo("t"), CATALOG_FILES_PURGE, &f->error));
    AUTO_TABLE struct table next = create(f, "t");
}

static void register_keeps_uuid_and_refuses_what_it_cannot_read(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    AUTO_TABLE struct table out = {0};
    struct error *error = &f->error;
    assert_int_equal(catalog_local_register(f->local, f->arena, demo("t"), table.metadata_location,
                                            CATALOG_REGISTER_NEW, &out, NULL),
                     CONFLICT);
    assert_int_equal(catalog_local_register(f->local, f->arena, demo("u"), STR("s3://b/x.json"),
                                            CATALOG_REGISTER_NEW, &out, NULL),
                     DENIED);
    str missing = str_format(f->arena, "%.*s/none.metadata.json", STR_ARG(f->tables_uri));
    assert_int_equal(catalog_local_register(f->local, f->arena, demo("u"), missing,
                                            CATALOG_REGISTER_NEW, &out, error),
                     CORRUPT);
    must(f, catalog_local_register(f->local, f->arena, demo("u"), table.metadata_location,
                                   CATALOG_REGISTER_NEW, &out, error));
    assert_true(str_equal(metadata_uuid(out.metadata), metadata_uuid(table.metadata)));
    assert_true(str_equal(out.metadata_location, table.metadata_location));
}

static void renamed_table_is_found_by_its_uuid(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    AUTO_TABLE struct table taken = create(f, "taken");
    must(f, catalog_create_namespace(&f->catalog, STR("other"), &f->error));
    struct table_name there = {STR("other"), STR("u")};
    struct table_name nowhere = {STR("nowhere"), STR("u")};
    struct error *error = &f->error;
    assert_int_equal(catalog_local_rename(f->local, CATALOG_TABLE, demo("none"), there, NULL),
                     NOT_FOUND);
    assert_int_equal(catalog_local_rename(f->local, CATALOG_TABLE, demo("t"), nowhere, NULL),
                     NOT_FOUND);
    assert_int_equal(catalog_local_rename(f->local, CATALOG_TABLE, demo("t"), demo("taken"), error),
                     CONFLICT);
    assert_string_equal(error->message, "Cannot rename demo.t to demo.taken. Table already exists");
    *error = (struct error){0};
    must(f, catalog_local_rename(f->local, CATALOG_TABLE, demo("t"), there, error));
    struct table_name found = {0};
    str uuid = metadata_uuid(table.metadata);
    must(f, catalog_find_by_uuid(&f->catalog, f->arena, uuid, &found, error));
    assert_str(found.namespace_name, "other");
    assert_str(found.name, "u");
    assert_int_equal(catalog_find_by_uuid(&f->catalog, f->arena, STR("nobody"), &found, NULL),
                     NOT_FOUND);
}

static void purge_removes_the_tables_files_and_no_others(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    AUTO_TABLE struct table other = create(f, "other");
    const char *stray = table_path(f, &table, "data/stray.parquet");
    FILE *file = fopen(stray, "wb");
    assert_non_null(file);
    fclose(file);
    must(f, commit(f, "t", "{'updates':[{'action':'set-properties','updates':{'a':'1'}}]}"));
    must(f, catalog_local_drop(f->local, demo("t"), CATALOG_FILES_PURGE, &f->error));
    assert_false(exists(path_of(f, table.metadata_location)));
    assert_false(exists(table_path(f, &table, "metadata/version-hint.text")));
    assert_true(exists(stray));
    assert_true(exists(path_of(f, other.metadata_location)));
}

static void drop_without_purge_keeps_the_files(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    must(f, catalog_drop(&f->catalog, demo("t"), &f->error));
    assert_true(exists(path_of(f, table.metadata_location)));
    assert_int_equal(catalog_drop(&f->catalog, demo("t"), &f->error), NOT_FOUND);
    assert_string_equal(f->error.message, "Table does not exist: demo.t");
}

static void gc_disabled_keeps_the_files_of_a_purge(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    must(f, commit(f, "t",
                   "{'updates':[{'action':'set-properties','updates':"
                   "{'gc.enabled':'false'}}]}"));
    must(f, catalog_local_drop(f->local, demo("t"), CATALOG_FILES_PURGE, &f->error));
    assert_true(exists(path_of(f, table.metadata_location)));
}

/* ---- namespaces ---- */

static void nested_namespaces_imply_their_parents(void **state)
{
    struct fixture *f = *state;
    struct error *error = &f->error;
    must(f, catalog_create_namespace(&f->catalog, SPACE("a", "b"), error));
    must(f, catalog_create_namespace(&f->catalog,
                                     STR("a\x1f"
                                         "b\x1f"
                                         "c"),
                                     error));
    must(f, catalog_create_namespace(&f->catalog, STR("ab"), error));
    struct catalog_names names = {0};
    must(f, catalog_local_children(f->local, f->arena, STR(""), &names, error));
    assert_int_equal(names.count, 3);
    assert_str(names.names[0], "a");
    assert_str(names.names[1], "ab");
    assert_str(names.names[2], "demo");
    must(f, catalog_local_children(f->local, f->arena, STR("a"), &names, error));
    assert_int_equal(names.count, 1);
    assert_str(names.names[0], "a\x1f"
                               "b");
    must(f, catalog_local_children(f->local, f->arena,
                                   STR("a\x1f"
                                       "b\x1f"
                                       "c"),
                                   &names, error));
    assert_int_equal(names.count, 0);
    assert_int_equal(catalog_local_children(f->local, f->arena, STR("x"), &names, NULL), NOT_FOUND);
    must(f, catalog_list_namespaces(&f->catalog, f->arena, &names, error));
    assert_int_equal(names.count, 5);
    json_auto_t *properties = NULL;
    must(f, catalog_local_load_namespace(f->local, STR("a"), &properties, error));
    assert_int_equal(json_object_size(properties), 0);
}

static void namespace_that_is_not_empty_stays(void **state)
{
    struct fixture *f = *state;
    struct error *error = &f->error;
    AUTO_TABLE struct table table = create(f, "t");
    assert_int_equal(catalog_local_drop_namespace(f->local, STR("demo"), error), CONFLICT);
    assert_string_equal(error->message, "Namespace demo is not empty");
    *error = (struct error){0};
    must(f, catalog_create_namespace(&f->catalog, SPACE("p", "q"), error));
    assert_int_equal(catalog_local_drop_namespace(f->local, STR("p"), NULL), CONFLICT);
    must(f, catalog_local_drop_namespace(f->local, SPACE("p", "q"), error));
    assert_int_equal(catalog_local_drop_namespace(f->local, SPACE("p", "q"), NULL), NOT_FOUND);
    must(f, catalog_drop(&f->catalog, demo("t"), error));
    must(f, catalog_local_drop_namespace(f->local, STR("demo"), error));
}

static void properties_are_set_and_removed(void **state)
{
    struct fixture *f = *state;
    struct error *error = &f->error;
    json_auto_t *first = json("{'a':'1','b':'2'}");
    must(f, catalog_local_make_namespace(f->local, STR("p"), first, error));
    json_auto_t *removals = json("['a','z']");
    json_auto_t *updates = json("{'b':'3','c':'4'}");
    json_auto_t *changes = NULL;
    must(f, catalog_local_set_properties(f->local, STR("p"), removals, updates, &changes, error));
    json_auto_t *wanted = json("{'updated':['b','c'],'removed':['a'],'missing':['z']}");
    assert_true(json_equal(changes, wanted));
    json_auto_t *properties = NULL;
    must(f, catalog_local_load_namespace(f->local, STR("p"), &properties, error));
    assert_true(json_equal(properties, updates));
    json_auto_t *numbers = json("{'n':1}");
    json_t *none = NULL;
    assert_int_equal(catalog_local_set_properties(f->local, STR("p"), NULL, numbers, &none, NULL),
                     INVALID);
    assert_int_equal(catalog_local_make_namespace(f->local, STR("q"), numbers, NULL), INVALID);
}

static void namespace_location_is_where_its_tables_go(void **state)
{
    struct fixture *f = *state;
    json_auto_t *place = json("{'location':'%.*s/special'}", STR_ARG(f->tables_uri));
    must(f, catalog_local_make_namespace(f->local, STR("p"), place, &f->error));
    json_auto_t *request = json("{'name':'t','schema':" SCHEMA "}");
    AUTO_TABLE struct table table = {0};
    struct table_name name = {STR("p"), STR("t")};
    must(f, catalog_create(&f->catalog, f->arena, name, request, &table, &f->error));
    assert_true(str_find(metadata_location(table.metadata), STR("/tables/special/")) > 0);
}

struct maker {
    struct fixture *f;
    int made;
    int taken;
};

static void *make_spaces(void *context)
{
    struct maker *maker = context;
    for (int i = 0; i < 30; i++) {
        char name[16];
        snprintf(name, sizeof(name), "space%d", i);
        err result = catalog_local_make_namespace(maker->f->local, str_from(name), NULL, NULL);
        maker->made += result == OK ? 1 : 0;
        maker->taken += result == CONFLICT ? 1 : 0;
    }
    return NULL;
}

static void racing_makers_of_a_namespace_get_one_success(void **state)
{
    struct fixture *f = *state;
    struct maker makers[2] = {{.f = f}, {.f = f}};
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, make_spaces, &makers[i]), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(makers[0].made + makers[1].made, 30);
    assert_int_equal(makers[0].taken + makers[1].taken, 30);
}

static void tables_are_listed_by_namespace(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table b = create(f, "b");
    AUTO_TABLE struct table a = create(f, "a");
    struct catalog_names names = {0};
    must(f, catalog_list_tables(&f->catalog, f->arena, STR("demo"), &names, &f->error));
    assert_int_equal(names.count, 2);
    assert_str(names.names[0], "a");
    assert_str(names.names[1], "b");
    assert_int_equal(catalog_list_tables(&f->catalog, f->arena, STR("none"), &names, NULL),
                     NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(create_makes_directories_a_first_file_and_a_hint),
        T(create_refuses_a_name_in_use_and_a_missing_namespace),
        T(names_that_cannot_be_are_invalid),
        T(odd_names_get_plain_places),
        T(locations_outside_are_refused),
        T(other_spellings_of_a_place_are_understood),
        T(metadata_path_moves_the_files),
        T(gzip_metadata_is_written_and_read),
        T(gzip_of_another_writer_is_read_and_damage_is_seen),
        T(trimmed_metadata_files_are_removed),
        T(lost_metadata_file_is_told_and_the_name_can_be_freed),
        T(register_keeps_uuid_and_refuses_what_it_cannot_read),
        T(renamed_table_is_found_by_its_uuid),
        T(purge_removes_the_tables_files_and_no_others),
        T(drop_without_purge_keeps_the_files),
        T(gc_disabled_keeps_the_files_of_a_purge),
        T(nested_namespaces_imply_their_parents),
        T(namespace_that_is_not_empty_stays),
        T(properties_are_set_and_removed),
        T(namespace_location_is_where_its_tables_go),
        T(racing_makers_of_a_namespace_get_one_success),
        T(tables_are_listed_by_namespace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
