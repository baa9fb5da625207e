#include "catalog_fixture.h"
#include "table/catalog_keep.h"
#include "table/commit.h"

#include <pthread.h>
#include <sys/wait.h>

#define APPEND                                                                                     \
    "{'action':'add-snapshot','snapshot':{'snapshot-id':%d,%s'sequence-number':%d,"                \
    "'timestamp-ms':%lld,'manifest-list':'%.*s/metadata/snap-%d.avro','schema-id':0,"              \
    "'summary':{'operation':'append'}}},"                                                          \
    "{'action':'set-snapshot-ref','ref-name':'main','type':'branch','snapshot-id':%d}"

/* An append of snapshot `id` on `parent` (0: none) that asserts the parent. */
static json_t *append(struct fixture *f, const char *name, int id, int parent, int sequence)
{
    AUTO_TABLE struct table table = load(f, name);
    long long now = seam_now(seam_system()) / 1000;
    char parent_member[64] = "";
    char wanted[32] = "null";
    if (parent != 0) {
        snprintf(parent_member, sizeof(parent_member), "'parent-snapshot-id':%d,", parent);
        snprintf(wanted, sizeof(wanted), "%d", parent);
    }
    return json("{'requirements':[{'type':'assert-ref-snapshot-id','ref':'main','snapshot-id':%s}],"
                "'updates':[" APPEND "]}",
                wanted, id, parent_member, sequence, now,
                STR_ARG(metadata_location(table.metadata)), id, id);
}

static err send(struct fixture *f, const char *name, const json_t *request)
{
    AUTO_TABLE struct table after = {0};
    f->error = (struct error){0};
    return catalog_commit(&f->catalog, f->arena, demo(name), request, &after, &f->error);
}

static void commit_moves_the_pointer_to_a_new_file_and_logs_the_old(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table before = create(f, "t");
    must(f, commit(f, "t",
                   "{'requirements':[],'updates':[{'action':'set-properties',"
                   "'updates':{'a':'1'}}]}"));
    AUTO_TABLE struct table after = load(f, "t");
    assert_false(str_equal(before.metadata_location, after.metadata_location));
    assert_true(str_find(after.metadata_location, STR("/metadata/00001-")) > 0);
    assert_true(exists(path_of(f, before.metadata_location)));
    assert_str(metadata_property(after.metadata, "a"), "1");
    const json_t *log = json_object_get(metadata_json(after.metadata), "metadata-log");
    assert_int_equal(json_array_size(log), 1);
    const char *logged = json_string_value(
        json_object_get(json_array_get(log, 0), "metadata-file"));
    assert_true(str_equal(str_from(logged), before.metadata_location));
}

static void every_file_is_its_document_printed_whole(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    for (int id = 1; id <= 5; id++) {
        json_auto_t *request = append(f, "t", id, id - 1, id);
        must(f, send(f, "t", request));
        AUTO_TABLE struct table after = load(f, "t");
        str printed = {0};
        must(f, metadata_print(f->arena, after.metadata, &printed, &f->error));
        assert_true(str_equal(read_file(f, path_of(f, after.metadata_location)), printed));
        assert_int_equal(
            json_array_size(json_object_get(metadata_json(after.metadata), "snapshots")), id);
    }
}

static void version_hint_names_the_current_file(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table before = create(f, "t");
    must(f, commit(f, "t", "{'updates':[{'action':'set-properties','updates':{'a':'1'}}]}"));
    AUTO_TABLE struct table after = load(f, "t");
    str hint = read_file(f, table_path(f, &after, "metadata/version-hint.text"));
    str named = str_format(f->arena, "metadata/%.*s.metadata.json", STR_ARG(hint));
    assert_string_equal(table_path(f, &after, named.data), path_of(f, after.metadata_location));
}

static void commit_without_an_effect_writes_nothing(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table before = create(f, "t");
    size_t files = count_files(f, "metadata.json");
    must(f, commit(f, "t", "{'updates':[]}"));
    must(f, commit(f, "t",
                   "{'updates':[{'action':'upgrade-format-version','format-version':2},"
                   "{'action':'set-current-schema','schema-id':0}]}"));
    assert_int_equal(count_files(f, "metadata.json"), files);
    AUTO_TABLE struct table after = load(f, "t");
    assert_true(str_equal(before.metadata_location, after.metadata_location));
}

static void failed_requirement_is_a_conflict_and_leaves_no_file(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table before = create(f, "t");
    size_t files = count_files(f, "metadata.json");
    assert_int_equal(commit(f, "t",
                            "{'requirements':[{'type':'assert-table-uuid','uuid':"
                            "'00000000-0000-4000-8000-000000000000'}],'updates':["
                            "{'action':'set-properties','updates':{'a':'1'}}]}"),
                     CONFLICT);
    assert_int_equal(f->error.code, ERROR_COMMIT_CONFLICT);
    assert_int_equal(count_files(f, "metadata.json"), files);
    AUTO_TABLE struct table after = load(f, "t");
    assert_true(str_equal(before.metadata_location, after.metadata_location));
}

static void malformed_and_unknown_requests_are_invalid(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table before = create(f, "t");
    assert_int_equal(commit(f, "t", "{'requirements':[]}"), INVALID);
    assert_int_equal(commit(f, "t", "{'requirements':{},'updates':[]}"), INVALID);
    assert_int_equal(commit(f, "t", "{'updates':[{'action':'paint-it-blue'}]}"), INVALID);
    assert_non_null(strstr(f->error.message, "paint-it-blue"));
    assert_int_equal(commit(f, "t", "{'requirements':[{'type':'assert-weather'}],'updates':[]}"),
                     INVALID);
    assert_non_null(strstr(f->error.message, "assert-weather"));
    assert_int_equal(commit(f, "missing", "{'updates':[]}"), NOT_FOUND);
    assert_string_equal(f->error.message, "Table does not exist: demo.missing");
}

static void stale_sequence_number_is_a_conflict(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table before = create(f, "t");
    json_auto_t *first = append(f, "t", 11, 0, 1);
    must(f, send(f, "t", first));
    json_auto_t *stale = append(f, "t", 12, 11, 1);
    assert_int_equal(send(f, "t", stale), CONFLICT);
    /* Snapshots without a parent too. */
    json_auto_t *orphan = append(f, "t", 13, 0, 1);
    json_object_del(orphan, "requirements");
    assert_int_equal(send(f, "t", orphan), CONFLICT);
    json_auto_t *next = append(f, "t", 14, 11, 2);
    must(f, send(f, "t", next));
}

static void append_on_an_old_base_is_a_conflict(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table before = create(f, "t");
    json_auto_t *first = append(f, "t", 11, 0, 1);
    json_auto_t *rival = append(f, "t", 12, 0, 1);
    must(f, send(f, "t", first));
    assert_int_equal(send(f, "t", rival), CONFLICT);
    AUTO_TABLE struct table after = load(f, "t");
    i64 head = 0;
    assert_true(metadata_main(after.metadata, &head));
    assert_int_equal(head, 11);
}

static void commit_sent_twice_is_answered_with_the_present_table(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table before = create(f, "t");
    json_auto_t *first = append(f, "t", 11, 0, 1);
    must(f, send(f, "t", first));
    json_auto_t *second = append(f, "t", 12, 11, 2);
    must(f, send(f, "t", second));
    size_t files = count_files(f, "metadata.json");
    AUTO_TABLE struct table present = {0};
    must(f, catalog_commit(&f->catalog, f->arena, demo("t"), first, &present, &f->error));
    i64 head = 0;
    assert_true(metadata_main(present.metadata, &head));
    assert_int_equal(head, 12);
    assert_int_equal(count_files(f, "metadata.json"), files);
    /* The same snapshot id with another manifest list is another commit. */
    json_t *snapshot = json_object_get(json_array_get(json_object_get(first, "updates"), 0),
                                       "snapshot");
    json_object_set_new(snapshot, "manifest-list", json_string("file:///elsewhere.avro"));
    assert_int_equal(send(f, "t", first), CONFLICT);
}

/* ---- races ---- */

enum { RACE_COMMITS = 20 };

struct racer {
    struct fixture *f;
    struct catalog catalog; /* its own: no lock is shared */
    const char *mark;
    int done;
};

static void *race(void *context)
{
    struct racer *racer = context;
    while (racer->done < RACE_COMMITS) {
        struct arena *arena = arena_create((size_t)64 * MIB);
        char text[160];
        snprintf(text, sizeof(text),
                 "{\"updates\":[{\"action\":\"set-properties\",\"updates\":{\"%s%d\":\"x\"}}]}",
                 racer->mark, racer->done);
        json_t *request = json_loads(text, 0, NULL);
        struct table after = {0};
        err result = catalog_commit(&racer->catalog, arena, demo("t"), request, &after, NULL);
        if (result != OK && result != CONFLICT) {
            abort();
        }
        racer->done += result == OK ? 1 : 0;
        table_close(&after);
        json_decref(request);
        arena_destroy(arena);
    }
    return NULL;
}

static void race_two(struct fixture *f, struct catalog one, struct catalog other)
{
    struct racer racers[] = {{f, one, "left", 0}, {f, other, "right", 0}};
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    AUTO_TABLE struct table after = load(f, "t");
    const json_t *properties = json_object_get(metadata_json(after.metadata), "properties");
    for (int i = 0; i < RACE_COMMITS; i++) {
        char key[32];
        snprintf(key, sizeof(key), "left%d", i);
        assert_non_null(json_object_get(properties, key));
        snprintf(key, sizeof(key), "right%d", i);
        assert_non_null(json_object_get(properties, key));
    }
    /* Every file is in the log or current: the losers' are gone. */
    const json_t *log = json_object_get(metadata_json(after.metadata), "metadata-log");
    assert_int_equal(json_array_size(log), 2 * RACE_COMMITS);
    assert_int_equal(count_files(f, "metadata.json"), 2 * RACE_COMMITS + 1);
}

static void two_processes_racing_on_one_table_lose_no_update(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table before = create(f, "t");
    struct catalog other = open_catalog(f);
    race_two(f, f->catalog, other);
    catalog_local_close(&other);
}

static void two_threads_racing_on_one_table_lose_no_update(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table before = create(f, "t");
    race_two(f, f->catalog, f->catalog);
}

/* ---- a database that fails ---- */

#define SET_A "{'updates':[{'action':'set-properties','updates':{'a':'1'}}]}"

static void refused_swap_leaves_the_table_and_no_file(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table before = create(f, "t");
    size_t files = count_files(f, "metadata.json");
    f->fault = FAULT_REFUSED;
    assert_int_equal(commit(f, "t", SET_A), IO);
    assert_int_equal(count_files(f, "metadata.json"), files);
    AUTO_TABLE struct table after = load(f, "t");
    assert_true(str_equal(before.metadata_location, after.metadata_location));
}

static void unknown_swap_is_unknown_and_keeps_the_file(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table before = create(f, "t");
    size_t files = count_files(f, "metadata.json");
    f->fault = FAULT_LOST;
    assert_int_equal(commit(f, "t", SET_A), UNKNOWN);
    assert_int_equal(count_files(f, "metadata.json"), files + 1);
    must(f, commit(f, "t", SET_A));
}

static void swap_that_landed_untold_is_a_success(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table before = create(f, "t");
    f->fault = FAULT_DONE_UNTOLD;
    must(f, commit(f, "t", SET_A));
    AUTO_TABLE struct table after = load(f, "t");
    assert_str(metadata_property(after.metadata, "a"), "1");
}

static void create_that_landed_untold_is_a_success(void **state)
{
    struct fixture *f = *state;
    f->fault = FAULT_DONE_UNTOLD;
    AUTO_TABLE struct table made = create(f, "t");
    AUTO_TABLE struct table after = load(f, "t");
    assert_true(str_equal(made.metadata_location, after.metadata_location));
}

static void death_between_file_and_pointer_leaves_the_table_as_it_was(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table before = create(f, "t");
    size_t files = count_files(f, "metadata.json");
    db_close(&f->inner);
    pid_t child = fork();
    if (child == 0) {
        struct error error = {0};
        str path = str_format(f->arena, "%s/lhbox.db", f->directory);
        if (db_open_sqlite(f->arena, path, seam_system(), &f->inner, &error) == OK) {
            f->fault = FAULT_EXIT;
            (void)commit(f, "t", SET_A);
        }
        _exit(1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    str path = str_format(f->arena, "%s/lhbox.db", f->directory);
    must(f, db_open_sqlite(f->arena, path, seam_system(), &f->inner, &f->error));
    assert_int_equal(count_files(f, "metadata.json"), files + 1);
    AUTO_TABLE struct table after = load(f, "t");
    assert_true(str_equal(before.metadata_location, after.metadata_location));
    must(f, commit(f, "t", SET_A));
}

/* ---- several tables ---- */

static err transact(struct fixture *f, const char *left, const char *right)
{
    json_auto_t *one = json("%s", left);
    json_auto_t *two = json("%s", right);
    struct catalog_change changes[] = {{.name = demo("l"), .request = one},
                                       {.name = demo("r"), .request = two}};
    f->error = (struct error){0};
    err result = catalog_local_commit(f->local, f->arena, changes, 2, &f->error);
    table_close(&changes[0].after);
    table_close(&changes[1].after);
    return result;
}

#define NOBODY                                                                                     \
    "{'requirements':[{'type':'assert-current-schema-id','current-schema-id':77}],"                \
    "'updates':[{'action':'set-properties','updates':{'a':'1'}}]}"

static void transaction_moves_all_tables_or_none(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table l = create(f, "l");
    AUTO_TABLE struct table r = create(f, "r");
    size_t files = count_files(f, "metadata.json");
    assert_int_equal(transact(f, SET_A, NOBODY), CONFLICT);
    assert_int_equal(transact(f, NOBODY, SET_A), CONFLICT);
    f->fault = FAULT_REFUSED;
    assert_int_equal(transact(f, SET_A, SET_A), IO);
    assert_int_equal(count_files(f, "metadata.json"), files);
    AUTO_TABLE struct table l_before = load(f, "l");
    assert_null(metadata_property(l_before.metadata, "a").data);
    must(f, transact(f, SET_A, SET_A));
    AUTO_TABLE struct table l_after = load(f, "l");
    AUTO_TABLE struct table r_after = load(f, "r");
    assert_str(metadata_property(l_after.metadata, "a"), "1");
    assert_str(metadata_property(r_after.metadata, "a"), "1");
}

static void transaction_names_a_table_once(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table l = create(f, "l");
    json_auto_t *one = json(SET_A);
    struct catalog_change changes[] = {{.name = demo("l"), .request = one},
                                       {.name = demo("l"), .request = one}};
    assert_int_equal(catalog_local_commit(f->local, f->arena, changes, 2, &f->error), INVALID);
}

/* ---- staged commits ---- */

static struct catalog_staged stage(struct fixture *f, const char *name, const json_t *request)
{
    struct store_group group = {.arena = f->arena};
    struct catalog_staged staged = {0};
    catalog_stage(&f->catalog, f->arena, demo(name), request, &group, &staged);
    must(f, store_group_end(&group, &f->error));
    return staged;
}

static err send_staged(struct fixture *f, const char *name, const json_t *request,
                       struct catalog_staged *staged)
{
    AUTO_TABLE struct table after = {0};
    f->error = (struct error){0};
    err result = catalog_commit_staged(&f->catalog, f->arena, demo(name), request, staged, &after,
                                       &f->error);
    assert_null(staged->after);
    return result;
}

static void what_was_staged_is_what_is_committed(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    json_auto_t *request = append(f, "t", 1, 0, 1);
    struct catalog_staged staged = stage(f, "t", request);
    assert_true(str_equal(staged.from, table.metadata_location));
    str file = staged.file;
    assert_true(exists(path_of(f, file)));
    AUTO_TABLE struct table before = load(f, "t");
    assert_true(str_equal(before.metadata_location, table.metadata_location));
    size_t files = count_files(f, "metadata.json");
    must(f, send_staged(f, "t", request, &staged));
    assert_int_equal(count_files(f, "metadata.json"), files);
    AUTO_TABLE struct table after = load(f, "t");
    assert_true(str_equal(after.metadata_location, file));
    assert_non_null(metadata_snapshot(after.metadata, 1));
    str hint = read_file(f, table_path(f, &after, "metadata/version-hint.text"));
    assert_true(str_find(file, hint) > 0);
}

static void what_was_staged_on_a_version_that_is_left_goes(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    json_auto_t *request = append(f, "t", 1, 0, 1);
    struct catalog_staged staged = stage(f, "t", request);
    str file = staged.file;
    must(f, commit(f, "t", "{'updates':[{'action':'set-properties','updates':{'a':'1'}}]}"));
    must(f, send_staged(f, "t", request, &staged));
    assert_false(exists(path_of(f, file)));
    AUTO_TABLE struct table after = load(f, "t");
    assert_str(metadata_property(after.metadata, "a"), "1");
    assert_non_null(metadata_snapshot(after.metadata, 1));
}

static void staged_commit_that_lost_its_base_is_refused_and_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    json_auto_t *request = append(f, "t", 1, 0, 1);
    json_auto_t *other = append(f, "t", 2, 0, 1);
    struct catalog_staged staged = stage(f, "t", request);
    must(f, send(f, "t", other));
    size_t files = count_files(f, "metadata.json");
    assert_int_equal(send_staged(f, "t", request, &staged), CONFLICT);
    assert_int_equal(count_files(f, "metadata.json"), files - 1);
    AUTO_TABLE struct table after = load(f, "t");
    assert_null(metadata_snapshot(after.metadata, 1));
}

static void staged_commit_whose_swap_fails_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    json_auto_t *request = append(f, "t", 1, 0, 1);
    size_t files = count_files(f, "metadata.json");
    struct catalog_staged staged = stage(f, "t", request);
    f->fault = FAULT_REFUSED;
    assert_int_equal(send_staged(f, "t", request, &staged), IO);
    assert_int_equal(count_files(f, "metadata.json"), files);
}

static void what_cannot_be_staged_is_told_by_its_commit(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    json_auto_t *request = append(f, "t", 1, 7, 1);
    struct catalog_staged staged = stage(f, "t", request);
    assert_null(staged.after);
    assert_int_equal(send_staged(f, "t", request, &staged), CONFLICT);
    json_auto_t *sound = append(f, "t", 1, 0, 1);
    size_t files = count_files(f, "metadata.json");
    staged = stage(f, "t", sound);
    catalog_unstage(&f->catalog, &staged);
    assert_int_equal(count_files(f, "metadata.json"), files);
}

/* ---- files of clients ---- */

/* One data file with its manifest and list, as a client writes them, and the request that adds it.
 */
static json_t *client_append(struct fixture *f, const char *name, const char *data_path)
{
    AUTO_TABLE struct table table = load(f, name);
    str data = str_format(f->arena, "file://%s", data_path);
    str bytes = STR("rows");
    must(f, location_put(&f->locations, f->arena, data, &bytes, 1, &f->error));
    struct append result = commit_begin(seam_system());
    struct data_file file = {.path = data, .stats = {.rows = 1, .file_bytes = (i64)bytes.size}};
    result.files = &file;
    result.file_count = 1;
    json_t *request = NULL;
    must(f, commit_append(f->arena, &f->locations, &table, seam_system(), &result, &request,
                          &f->error));
    return request;
}

static err client_sends(struct fixture *f, const char *name, const json_t *request)
{
    struct catalog_change change = {
        .name = demo(name), .request = request, .author = CATALOG_CLIENT};
    f->error = (struct error){0};
    err result = catalog_local_commit(f->local, f->arena, &change, 1, &f->error);
    table_close(&change.after);
    return result;
}

static void committed_file_that_its_writer_deletes_comes_back(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    const char *path = table_path(f, &table, "data/a.parquet");
    json_auto_t *request = client_append(f, "t", path);
    f->fault = FAULT_DONE_UNTOLD;
    must(f, client_sends(f, "t", request));
    assert_int_equal(unlink(path), 0);
    AUTO_TABLE struct table after = load(f, "t");
    assert_true(exists(path));
    assert_str(read_file(f, path), "rows");
}

static void file_of_a_refused_commit_stays_deleted(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    const char *path = table_path(f, &table, "data/a.parquet");
    json_auto_t *request = client_append(f, "t", path);
    f->fault = FAULT_REFUSED;
    assert_int_equal(client_sends(f, "t", request), IO);
    assert_int_equal(unlink(path), 0);
    AUTO_TABLE struct table after = load(f, "t");
    assert_false(exists(path));
}

static instant now_later(void *self)
{
    (void)self;
    return seam_now(seam_system()) + CATALOG_KEEP_US + TIME_SECOND_US;
}

static void kept_files_end_when_no_client_tries_again(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    const char *path = table_path(f, &table, "data/a.parquet");
    json_auto_t *request = client_append(f, "t", path);
    must(f, client_sends(f, "t", request));
    AUTO_TABLE struct table soon = load(f, "t");
    assert_true(count_files(f, "/kept/") > 0);
    struct seam later = *seam_system();
    later.now = now_later;
    struct catalog catalog = {0};
    const struct catalog_local_options options = {.db = &f->db,
                                                  .seam = &later,
                                                  .warehouse = STR("garden"),
                                                  .tables_uri = f->tables_uri,
                                                  .locations = &f->locations};
    must(f, catalog_local_open(f->arena, &options, &catalog, &f->error));
    /* What is missing comes back even then: the server may have been away. */
    assert_int_equal(unlink(path), 0);
    AUTO_TABLE struct table after = {0};
    must(f, catalog_load(&catalog, f->arena, demo("t"), &after, &f->error));
    assert_int_equal(count_files(f, "/kept/"), 0);
    assert_true(exists(path));
    catalog_local_close(&catalog);
}

static void purge_ends_the_kept_files(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table table = create(f, "t");
    const char *path = table_path(f, &table, "data/a.parquet");
    json_auto_t *request = client_append(f, "t", path);
    must(f, client_sends(f, "t", request));
    assert_true(count_files(f, "/kept/") > 0);
    must(f, catalog_local_drop(f->local, demo("t"), CATALOG_FILES_PURGE, &f->error));
    assert_int_equal(count_files(f, "/kept/"), 0);
    assert_int_equal(count_files(f, "/tables/demo/t-"), 0);
}

/* ---- staged creates ---- */

#define FROM_NOTHING                                                                               \
    "{'requirements':[{'type':'assert-create'}],'updates':["                                       \
    "{'action':'assign-uuid','uuid':'11111111-2222-4333-8444-5555555555%02d'},"                    \
    "{'action':'upgrade-format-version','format-version':2},"                                      \
    "{'action':'add-schema','schema':" SCHEMA ",'last-column-id':2},"                              \
    "{'action':'set-current-schema','schema-id':-1},"                                              \
    "{'action':'add-spec','spec':{'spec-id':0,'fields':[]}},"                                      \
    "{'action':'set-default-spec','spec-id':-1},"                                                  \
    "{'action':'add-sort-order','sort-order':{'order-id':0,'fields':[]}},"                         \
    "{'action':'set-default-sort-order','sort-order-id':-1},"                                      \
    "{'action':'set-location','location':'%.*s'}]}"

static void staged_table_is_stored_by_its_commit_only(void **state)
{
    struct fixture *f = *state;
    json_auto_t *request = json("{'name':'t','stage-create':true,'schema':" SCHEMA "}");
    AUTO_TABLE struct table staged = {0};
    must(f, catalog_create(&f->catalog, f->arena, demo("t"), request, &staged, &f->error));
    assert_int_equal(staged.metadata_location.size, 0);
    assert_true(exists(table_path(f, &staged, "metadata")));
    assert_true(exists(table_path(f, &staged, "data")));
    assert_int_equal(count_files(f, "metadata.json"), 0);
    struct table none = {0};
    assert_int_equal(catalog_load(&f->catalog, f->arena, demo("t"), &none, NULL), NOT_FOUND);

    json_auto_t *first = json(FROM_NOTHING, 1, STR_ARG(metadata_location(staged.metadata)));
    must(f, send(f, "t", first));
    AUTO_TABLE struct table made = load(f, "t");
    assert_str(metadata_uuid(made.metadata), "11111111-2222-4333-8444-555555555501");
    assert_true(str_equal(metadata_location(made.metadata), metadata_location(staged.metadata)));
    assert_true(str_find(made.metadata_location, STR("/metadata/00000-")) > 0);
}

static void second_create_commit_meets_the_table(void **state)
{
    struct fixture *f = *state;
    str place = str_format(f->arena, "%.*s/x", STR_ARG(f->tables_uri));
    json_auto_t *first = json(FROM_NOTHING, 1, STR_ARG(place));
    json_auto_t *rival = json(FROM_NOTHING, 2, STR_ARG(place));
    must(f, send(f, "t", first));
    assert_int_equal(send(f, "t", rival), CONFLICT);
    assert_int_equal(f->error.code, ERROR_TABLE_EXISTS);
    assert_string_equal(f->error.message, "Requirement failed: table already exists: t");
    /* The same one again: its answer was lost. */
    must(f, send(f, "t", first));
}

static void create_commit_needs_its_namespace(void **state)
{
    struct fixture *f = *state;
    str place = str_format(f->arena, "%.*s/x", STR_ARG(f->tables_uri));
    json_auto_t *request = json(FROM_NOTHING, 1, STR_ARG(place));
    struct table after = {0};
    struct table_name name = {STR("nowhere"), STR("t")};
    assert_int_equal(catalog_commit(&f->catalog, f->arena, name, request, &after, &f->error),
                     NOT_FOUND);
    assert_string_equal(f->error.message, "Namespace does not exist: nowhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(commit_moves_the_pointer_to_a_new_file_and_logs_the_old),
        T(every_file_is_its_document_printed_whole),
        T(version_hint_names_the_current_file),
        T(commit_without_an_effect_writes_nothing),
        T(failed_requirement_is_a_conflict_and_leaves_no_file),
        T(malformed_and_unknown_requests_are_invalid),
        T(stale_sequence_number_is_a_conflict),
        T(append_on_an_old_base_is_a_conflict),
        T(commit_sent_twice_is_answered_with_the_present_table),
        T(two_processes_racing_on_one_table_lose_no_update),
        T(two_threads_racing_on_one_table_lose_no_update),
        T(refused_swap_leaves_the_table_and_no_file),
        T(unknown_swap_is_unknown_and_keeps_the_file),
        T(swap_that_landed_untold_is_a_success),
        T(create_that_landed_untold_is_a_success),
        T(death_between_file_and_pointer_leaves_the_table_as_it_was),
        T(transaction_moves_all_tables_or_none),
        T(transaction_names_a_table_once),
        T(what_was_staged_is_what_is_committed),
        T(what_was_staged_on_a_version_that_is_left_goes),
        T(staged_commit_that_lost_its_base_is_refused_and_leaves_nothing),
        T(staged_commit_whose_swap_fails_leaves_nothing),
        T(what_cannot_be_staged_is_told_by_its_commit),
        T(committed_file_that_its_writer_deletes_comes_back),
        T(file_of_a_refused_commit_stays_deleted),
        T(kept_files_end_when_no_client_tries_again),
        T(purge_ends_the_kept_files),
        T(staged_table_is_stored_by_its_commit_only),
        T(second_create_commit_meets_the_table),
        T(create_commit_needs_its_namespace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
