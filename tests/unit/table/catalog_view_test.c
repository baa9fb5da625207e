#include "catalog_fixture.h"

#include "table/catalog_restore.h"
#include "table/catalog_view.h"
#include "table/view.h"

#define VERSION                                                                                    \
    "{'version-id':1,'schema-id':0,'timestamp-ms':5,'summary':{},'default-namespace':['demo'],"    \
    "'representations':[{'type':'sql','sql':'SELECT 1','dialect':'spark'}]}"

static struct catalog_view create_view(struct fixture *f, const char *name)
{
    json_auto_t *request = json("{'name':'%s','schema':" SCHEMA ",'view-version':" VERSION "}",
                                name);
    struct catalog_view view = {0};
    must(f, catalog_view_create(f->local, f->arena, demo(name), request, &view, &f->error));
    return view;
}

static err set_property(struct fixture *f, const char *name, const char *value)
{
    json_auto_t *request = json("{'updates':[{'action':'set-properties','updates':{'p':'%s'}}]}",
                                value);
    AUTO_VIEW struct catalog_view after = {0};
    f->error = (struct error){0};
    return catalog_view_commit(f->local, f->arena, demo(name), request, &after, &f->error);
}

static const char *property(struct fixture *f, const char *name)
{
    AUTO_VIEW struct catalog_view view = {0};
    must(f, catalog_view_load(f->local, f->arena, demo(name), &view, &f->error));
    const char *value = json_string_value(
        json_object_get(json_object_get(view.document, "properties"), "p"));
    return value != NULL ? str_copy(f->arena, str_from(value)).data : "";
}

/* As old clients write them, and as tables take them. */
static void former_names_of_properties_updates_are_understood(void **state)
{
    struct fixture *f = *state;
    AUTO_VIEW struct catalog_view made = create_view(f, "v");
    json_auto_t *set = json("{'updates':[{'action':'set-properties','updated':{'p':'1'}}]}");
    json_auto_t *drop = json("{'updates':[{'action':'remove-properties','removed':['p']}]}");
    AUTO_VIEW struct catalog_view first = {0};
    AUTO_VIEW struct catalog_view second = {0};
    must(f, catalog_view_commit(f->local, f->arena, demo("v"), set, &first, &f->error));
    assert_string_equal(property(f, "v"), "1");
    must(f, catalog_view_commit(f->local, f->arena, demo("v"), drop, &second, &f->error));
    assert_string_equal(property(f, "v"), "");
}

/* Takes the updates. */
static size_t log_after(struct fixture *f, const char *name, json_t *updates)
{
    json_auto_t *request = json_pack("{s:o}", "updates", updates);
    AUTO_VIEW struct catalog_view after = {0};
    must(f, catalog_view_commit(f->local, f->arena, demo(name), request, &after, &f->error));
    return json_array_size(json_object_get(after.document, "version-log"));
}

/* Clients may go back and forth between two versions for years. */
static void the_version_log_has_a_limit(void **state)
{
    struct fixture *f = *state;
    AUTO_VIEW struct catalog_view made = create_view(f, "v");
    json_t *second = json(
        "{'action':'add-view-version','view-version':{'version-id':2,"
        "'schema-id':0,'summary':{},'default-namespace':['demo'],"
        "'representations':[{'type':'sql','sql':'SELECT 2','dialect':'spark'}]}}");
    assert_int_equal(log_after(f, "v", json_pack("[o]", second)), 1);
    for (int round = 1; round <= 3; round++) {
        json_t *updates = json_array();
        for (int i = 0; i < VIEW_ITEMS_MAX / 2; i++) {
            json_array_append_new(updates, json("{'action':'set-current-view-version',"
                                                "'view-version-id':%d}",
                                                i % 2 == 0 ? 2 : 1));
        }
        int wanted = 1 + round * VIEW_ITEMS_MAX / 2;
        assert_int_equal(log_after(f, "v", updates),
                         wanted < VIEW_ITEMS_MAX ? wanted : VIEW_ITEMS_MAX);
    }
}

#define FILES "/metadata/0"

static void refused_swap_leaves_the_view_and_no_file(void **state)
{
    struct fixture *f = *state;
    AUTO_VIEW struct catalog_view made = create_view(f, "v");
    f->fault = FAULT_REFUSED;
    assert_int_equal(set_property(f, "v", "1"), IO);
    assert_string_equal(property(f, "v"), "");
    assert_int_equal(count_files(f, FILES), 1);
}

static void swap_that_was_done_and_not_told_is_a_success(void **state)
{
    struct fixture *f = *state;
    AUTO_VIEW struct catalog_view made = create_view(f, "v");
    f->fault = FAULT_DONE_UNTOLD;
    must(f, set_property(f, "v", "1"));
    assert_string_equal(property(f, "v"), "1");
}

/* It may be done yet: the file stays. */
static void swap_of_unknown_end_is_unknown_and_keeps_the_file(void **state)
{
    struct fixture *f = *state;
    AUTO_VIEW struct catalog_view made = create_view(f, "v");
    f->fault = FAULT_LOST;
    assert_int_equal(set_property(f, "v", "1"), UNKNOWN);
    assert_string_equal(property(f, "v"), "");
    assert_int_equal(count_files(f, FILES), 2);
}

/* Two processes over one database: neither sees the other's lock, and the swap decides. */
static void pointer_that_moved_is_not_overwritten(void **state)
{
    struct fixture *f = *state;
    struct catalog other = open_catalog(f);
    AUTO_VIEW struct catalog_view made = create_view(f, "v");
    json_auto_t *request = json("{'updates':[{'action':'set-properties','updates':{'p':'2'}}]}");
    AUTO_VIEW struct catalog_view after = {0};
    must(f, catalog_view_commit(catalog_local_of(&other), f->arena, demo("v"), request, &after,
                                &f->error));
    must(f, set_property(f, "v", "3"));
    assert_string_equal(property(f, "v"), "3");
    catalog_local_close(&other);
}

static void create_that_is_refused_leaves_the_name_free(void **state)
{
    struct fixture *f = *state;
    json_auto_t *request = json("{'name':'v','schema':" SCHEMA ",'view-version':" VERSION "}");
    struct catalog_view view = {0};
    f->fault = FAULT_REFUSED;
    assert_int_equal(catalog_view_create(f->local, f->arena, demo("v"), request, &view, &f->error),
                     IO);
    assert_int_equal(count_files(f, FILES), 0);
    AUTO_VIEW struct catalog_view made = create_view(f, "v");
}

static err point_back(struct db_tx *tx, void *context, struct error *error)
{
    return db_run(tx, error, "UPDATE catalog_table SET metadata_location = ?1",
                  DB_T(*(const str *)context));
}

static void older_pointer_of_a_view_moves_to_what_the_hint_names(void **state)
{
    struct fixture *f = *state;
    struct catalog_restored restored = {0};
    AUTO_VIEW struct catalog_view made = create_view(f, "v");
    must(f, set_property(f, "v", "1"));
    must(f, db_transact(&f->db, point_back, &made.metadata_location, &f->error));
    assert_string_equal(property(f, "v"), "");
    must(f, catalog_restore_pointers(f->local, &restored, &f->error));
    assert_int_equal(restored.moved, 1);
    assert_string_equal(property(f, "v"), "1");
}

static void items_beyond_the_limit_are_refused(void **state)
{
    struct fixture *f = *state;
    AUTO_VIEW struct catalog_view made = create_view(f, "v");
    json_auto_t *request = json("{'updates':[]}");
    json_t *updates = json_object_get(request, "updates");
    for (int i = 0; i <= 1000; i++) {
        json_array_append_new(updates, json("{'action':'set-location','location':'x%d'}", i));
    }
    struct catalog_view after = {0};
    assert_int_equal(catalog_view_commit(f->local, f->arena, demo("v"), request, &after, &f->error),
                     INVALID);
    assert_non_null(strstr(f->error.message, "at most 1000"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(former_names_of_properties_updates_are_understood),
        T(the_version_log_has_a_limit),
        T(refused_swap_leaves_the_view_and_no_file),
        T(swap_that_was_done_and_not_told_is_a_success),
        T(swap_of_unknown_end_is_unknown_and_keeps_the_file),
        T(pointer_that_moved_is_not_overwritten),
        T(create_that_is_refused_leaves_the_name_free),
        T(older_pointer_of_a_view_moves_to_what_the_hint_names),
        T(items_beyond_the_limit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
