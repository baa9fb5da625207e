#include "table_fixture.h"

#include "format/avro.h"
#include "table/commit.h"
#include "table/write.h"

struct world {
    struct arena *arena;
    struct location item;
    struct location_set locations;
    u8 next;
    struct seam seam;
    struct table table;
};

static struct world *open_world(void **state, const char *version, const char *spec)
{
    struct arena *arena = arena_create(32 * MIB);
    struct world *world = arena_alloc(arena, sizeof(*world));
    world->arena = arena;
    world->item.prefix = STR("file:///w");
    assert_int_equal(store_open_mem(arena, 8 * MIB, &world->item.store, NULL), OK);
    world->locations = (struct location_set){&world->item, 1};
    world->seam = fixture_seam(&world->next);
    world->table.metadata = fixture_table(version, spec);
    *state = world;
    return world;
}

static int open_v2(void **state)
{
    (void)open_world(state, "2", "");
    return 0;
}

static int open_v3(void **state)
{
    (void)open_world(state, "3", "{'source-id':2,'name':'ts_day','transform':'day'}");
    return 0;
}

static int close_world(void **state)
{
    struct world *world = *state;
    table_close(&world->table);
    assert_null(world->table.metadata);
    store_close(&world->item.store);
    arena_destroy(world->arena);
    return 0;
}

static struct partition_value DAYS[3] = {{.number = 1}, {.number = 2}, {.number = 1}};

/* `count` files of ten rows each. */
static struct append append_of(struct world *world, size_t count)
{
    struct append append = commit_begin(&world->seam);
    append.files = arena_array(world->arena, count, sizeof(*append.files));
    append.file_count = count;
    for (size_t i = 0; i < count; i++) {
        append.files[i] = (struct data_file){.path = str_format(world->arena,
                                                                "file:///w/t/data/%lld-%zu.parquet",
                                                                (long long)append.snapshot_id, i),
                                             .stats = {.rows = 10, .file_bytes = 100},
                                             .partition = &DAYS[i]};
    }
    return append;
}

static json_t *request_of(struct world *world, struct append *append)
{
    json_t *request = NULL;
    struct error error = {0};
    err result = commit_append(world->arena, &world->locations, &world->table, &world->seam, append,
                               &request, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(result, OK);
    return request;
}

/* What a catalog does with the request. */
static void land(struct world *world, const json_t *request)
{
    struct error error = {0};
    const json_t *updates = json_object_get(request, "updates");
    if (metadata_check(world->table.metadata, json_object_get(request, "requirements"), &error) !=
            OK ||
        metadata_apply(world->table.metadata, updates, FIXTURE_NOW, STR("m"), &error) != OK) {
        fail_msg("%s", error.message);
    }
}

static void commit(struct world *world, struct append *append)
{
    AUTO_JSON json_t *request = request_of(world, append);
    land(world, request);
}

static const json_t *update_of(const json_t *request, const char *action)
{
    const json_t *updates = json_object_get(request, "updates");
    for (size_t i = 0; i < json_array_size(updates); i++) {
        const json_t *update = json_array_get(updates, i);
        if (strcmp(json_string_value(json_object_get(update, "action")), action) == 0) {
            return update;
        }
    }
    return NULL;
}

static const json_t *snapshot_of(const json_t *request)
{
    return json_object_get(update_of(request, "add-snapshot"), "snapshot");
}

static struct manifest_list list_of(struct world *world, const json_t *snapshot)
{
    struct manifest_list list = {0};
    str bytes = {NULL, 0};
    str path = str_from(json_string_value(json_object_get(snapshot, "manifest-list")));
    assert_int_equal(location_get(&world->locations, world->arena, path, &bytes, NULL), OK);
    assert_int_equal(manifest_list_read(world->arena, bytes, &list, NULL), OK);
    return list;
}

/* ---- the request ---- */

/* 92: the spec is asserted too; 5: null is written; 6: the assertion says ref. */
static void iceberg_8_6_92_a_commit_asserts_uuid_head_schema_and_spec(void **state)
{
    struct world *world = *state;
    struct append append = append_of(world, 1);
    AUTO_JSON json_t *request = request_of(world, &append);
    char wanted[600];
    (void)snprintf(wanted, sizeof(wanted),
                   "[{'type':'assert-table-uuid','uuid':'%.*s'},"
                   "{'type':'assert-ref-snapshot-id','ref':'main','snapshot-id':null},"
                   "{'type':'assert-current-schema-id','current-schema-id':0},"
                   "{'type':'assert-default-spec-id','default-spec-id':0}]",
                   STR_ARG(metadata_uuid(world->table.metadata)));
    assert_json(json_object_get(request, "requirements"), wanted);
    land(world, request);
    struct append second = append_of(world, 1);
    AUTO_JSON json_t *again = request_of(world, &second);
    assert_int_equal(json_integer_value(json_object_get(
                         json_array_get(json_object_get(again, "requirements"), 1), "snapshot-id")),
                     append.snapshot_id);
}

static void the_first_snapshot_has_no_parent_and_totals_from_zero(void **state)
{
    struct world *world = *state;
    struct append append = append_of(world, 3);
    AUTO_JSON json_t *request = request_of(world, &append);
    char wanted[1200];
    (void)snprintf(wanted, sizeof(wanted),
                   "{'snapshot-id':%lld,'sequence-number':1,'timestamp-ms':1790000000001,"
                   "'manifest-list':'file:///w/t/metadata/snap-%lld-1-%.36s.avro','schema-id':0,"
                   "'summary':{'operation':'append','added-data-files':'3',"
                   "'added-records':'30','added-files-size':'300','changed-partition-count':'1',"
                   "'manifests-created':'1','manifests-kept':'0','manifests-replaced':'0',"
                   "'total-records':'30','total-files-size':'300','total-data-files':'3',"
                   "'total-delete-files':'0','total-position-deletes':'0',"
                   "'total-equality-deletes':'0'}}",
                   (long long)append.snapshot_id, (long long)append.snapshot_id,
                   append.commit_uuid);
    assert_json(snapshot_of(request), wanted);
    land(world, request);
    struct append second = append_of(world, 1);
    AUTO_JSON json_t *next = request_of(world, &second);
    const json_t *summary = json_object_get(snapshot_of(next), "summary");
    assert_json(json_object_get(summary, "total-records"), "'40'");
    assert_json(json_object_get(summary, "manifests-kept"), "'1'");
    assert_int_equal(json_integer_value(json_object_get(snapshot_of(next), "parent-snapshot-id")),
                     append.snapshot_id);
}

static void changed_partitions_are_counted_once(void **state)
{
    struct world *world = *state;
    struct append append = append_of(world, 3); /* days 1, 2, 1 */
    AUTO_JSON json_t *request = request_of(world, &append);
    const json_t *summary = json_object_get(snapshot_of(request), "summary");
    assert_json(json_object_get(summary, "changed-partition-count"), "'2'");
}

static void iceberg_8_1_10_the_retention_of_main_is_copied(void **state)
{
    struct world *world = *state;
    struct append append = append_of(world, 1);
    commit(world, &append);
    char text[300];
    (void)snprintf(text, sizeof(text),
                   "[{'action':'set-snapshot-ref','ref-name':'main','type':'branch',"
                   "'snapshot-id':%lld,'min-snapshots-to-keep':3,'max-snapshot-age-ms':4,"
                   "'max-ref-age-ms':5}]",
                   (long long)append.snapshot_id);
    fixture_apply(world->table.metadata, text);
    struct append second = append_of(world, 1);
    commit(world, &second);
    const json_t *refs = fixture_member(world->table.metadata, "refs");
    (void)snprintf(text, sizeof(text),
                   "{'main':{'snapshot-id':%lld,'type':'branch','min-snapshots-to-keep':3,"
                   "'max-snapshot-age-ms':4,'max-ref-age-ms':5}}",
                   (long long)second.snapshot_id);
    assert_json(refs, text);
}

static void set_summary_total(struct world *world, const char *key, json_t *value)
{
    const json_t *snapshots = fixture_member(world->table.metadata, "snapshots");
    json_t *summary = json_object_get(json_array_get(snapshots, 0), "summary");
    if (value == NULL) {
        json_object_del(summary, key);
    } else {
        json_object_set_new(summary, key, value);
    }
}

/* 12: 64 bits; 13: a missing total is left out; 16: totals of the base's head. */
static void iceberg_8_1_12_13_16_totals_are_exact_or_left_out(void **state)
{
    struct world *world = *state;
    struct append append = append_of(world, 1);
    commit(world, &append);
    set_summary_total(world, "total-records", json_string("5000000000"));
    set_summary_total(world, "total-data-files", NULL);
    set_summary_total(world, "total-files-size", json_string("many"));
    set_summary_total(world, "total-delete-files", json_string("9223372036854775807"));
    struct append second = append_of(world, 1);
    AUTO_JSON json_t *request = request_of(world, &second);
    const json_t *summary = json_object_get(snapshot_of(request), "summary");
    assert_json(json_object_get(summary, "total-records"), "'5000000010'");
    assert_null(json_object_get(summary, "total-data-files"));
    assert_null(json_object_get(summary, "total-files-size"));
    assert_json(json_object_get(summary, "total-delete-files"), "'9223372036854775807'");
}

static void iceberg_8_1_14_computed_keys_win(void **state)
{
    struct world *world = *state;
    struct append append = append_of(world, 1);
    struct commit_entry entries[] = {{STR("total-records"), STR("1")},
                                     {STR("deleted-records"), STR("8")},
                                     {STR("operation"), STR("delete")},
                                     {STR("lakehousebox.sink.rows"), STR("10")}};
    append.summary = entries;
    append.summary_count = ARRAY_COUNT(entries);
    AUTO_JSON json_t *request = request_of(world, &append);
    const json_t *summary = json_object_get(snapshot_of(request), "summary");
    assert_json(json_object_get(summary, "total-records"), "'10'");
    assert_json(json_object_get(summary, "operation"), "'append'");
    assert_null(json_object_get(summary, "deleted-records"));
    assert_json(json_object_get(summary, "lakehousebox.sink.rows"), "'10'");
}

static void properties_are_set_and_removed_in_the_same_request(void **state)
{
    struct world *world = *state;
    struct append append = append_of(world, 1);
    struct commit_entry property = {STR("lakehousebox.sink.roll"), STR("1 x")};
    const char *const removed[] = {"owner"};
    append.properties = &property;
    append.property_count = 1;
    append.removed_properties = removed;
    append.removed_property_count = 1;
    commit(world, &append);
    assert_str(metadata_property(world->table.metadata, METADATA_ROLL_PROPERTY), "1 x");
    assert_null(metadata_property(world->table.metadata, "owner").data);
}

/* ---- manifests ---- */

/* 36: all of the parent's manifests are carried; new ones stand first. */
static void iceberg_8_2_36_the_parents_manifests_follow_in_their_order(void **state)
{
    struct world *world = *state;
    struct append appends[3];
    for (size_t i = 0; i < 3; i++) {
        appends[i] = append_of(world, 1);
        commit(world, &appends[i]);
    }
    i64 head = 0;
    assert_true(metadata_main(world->table.metadata, &head));
    struct manifest_list list = list_of(world, metadata_snapshot(world->table.metadata, head));
    assert_int_equal(list.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(list.files[i].added_snapshot_id, appends[2 - i].snapshot_id);
        assert_int_equal(list.files[i].sequence_number, 3 - i);
        assert_int_equal(list.files[i].min_sequence_number, 3 - i);
    }
}

static void a_fence_carries_all_manifests_and_adds_nothing(void **state)
{
    struct world *world = *state;
    struct append fence = commit_begin(&world->seam);
    AUTO_JSON json_t *empty = request_of(world, &fence);
    assert_int_equal(list_of(world, snapshot_of(empty)).count, 0);
    struct append append = append_of(world, 2);
    commit(world, &append);
    struct append second = commit_begin(&world->seam);
    AUTO_JSON json_t *request = request_of(world, &second);
    const json_t *summary = json_object_get(snapshot_of(request), "summary");
    assert_int_equal(list_of(world, snapshot_of(request)).count, 1);
    assert_json(json_object_get(summary, "operation"), "'append'");
    assert_null(json_object_get(summary, "added-records"));
    assert_json(json_object_get(summary, "total-records"), "'20'");
    land(world, request);
}

/* 82: each try writes a list of its own, for its own base; the manifest and the id stay. */
static void iceberg_8_6_82_every_try_has_its_own_list(void **state)
{
    struct world *world = *state;
    struct append append = append_of(world, 1);
    AUTO_JSON json_t *lost = request_of(world, &append);
    struct manifest_list before = list_of(world, snapshot_of(lost));
    struct append other = append_of(world, 1);
    commit(world, &other);
    AUTO_JSON json_t *request = request_of(world, &append);
    struct manifest_list after = list_of(world, snapshot_of(request));
    assert_int_equal(append.try_number, 2);
    assert_string_not_equal(
        json_string_value(json_object_get(snapshot_of(lost), "manifest-list")),
        json_string_value(json_object_get(snapshot_of(request), "manifest-list")));
    assert_int_equal(before.count, 1);
    assert_int_equal(after.count, 2);
    assert_true(str_equal(before.files[0].path, after.files[0].path));
    assert_int_equal(after.files[0].sequence_number, 2);
    assert_int_equal(json_integer_value(json_object_get(snapshot_of(request), "snapshot-id")),
                     json_integer_value(json_object_get(snapshot_of(lost), "snapshot-id")));
    land(world, request);
}

/* ---- row lineage ---- */

static void iceberg_8_6_90_row_ids_do_not_overlap(void **state)
{
    struct world *world = *state;
    struct append first = append_of(world, 3);
    struct append second = append_of(world, 2);
    commit(world, &first);
    assert_int_equal(metadata_next_row_id(world->table.metadata), 30);
    AUTO_JSON json_t *request = request_of(world, &second);
    struct manifest_list list = list_of(world, snapshot_of(request));
    assert_json(json_object_get(snapshot_of(request), "first-row-id"), "30");
    assert_json(json_object_get(snapshot_of(request), "added-rows"), "20");
    assert_int_equal(list.files[0].first_row_id, 30);
    assert_int_equal(list.files[1].first_row_id, 0);
    land(world, request);
    assert_int_equal(metadata_next_row_id(world->table.metadata), 50);
}

static void the_first_commit_after_an_upgrade_numbers_old_rows(void **state)
{
    struct world *world = *state;
    struct append first = append_of(world, 1);
    commit(world, &first);
    fixture_apply(world->table.metadata,
                  "[{'action':'upgrade-format-version','format-version':3}]");
    struct append second = append_of(world, 2);
    AUTO_JSON json_t *request = request_of(world, &second);
    struct manifest_list list = list_of(world, snapshot_of(request));
    assert_int_equal(list.files[0].first_row_id, 0);
    assert_int_equal(list.files[1].first_row_id, 20);
    assert_json(json_object_get(snapshot_of(request), "added-rows"), "30");
    land(world, request);
}

/* A delete manifest in the head's list, older than all sequence numbers: carried, never given row
 * ids, and its 0 is a number. */
static void iceberg_8_2_37_and_iceberg_8_6_90_deletes_are_carried_as_they_are(void **state)
{
    struct world *world = *state;
    struct append first = append_of(world, 1);
    commit(world, &first);
    const json_t *head = metadata_snapshot(world->table.metadata, first.snapshot_id);
    struct manifest_list list = list_of(world, head);
    struct manifest_file files[2] = {list.files[0], list.files[0]};
    files[1].path = STR("file:///w/t/metadata/deletes.avro");
    files[1].content = 1;
    files[1].first_row_id = 10; /* as DuckDB writes it */
    files[1].sequence_number = 0;
    files[1].min_sequence_number = 0;
    list = (struct manifest_list){files, 2};
    str bytes = {NULL, 0};
    str path = str_from(json_string_value(json_object_get(head, "manifest-list")));
    assert_int_equal(manifest_list_write(world->arena, 3, first.snapshot_id, false, 0, 1, 0, &list,
                                         &bytes, NULL),
                     OK);
    assert_int_equal(location_put(&world->locations, world->arena, path, &bytes, 1, NULL), OK);
    struct append second = append_of(world, 1);
    AUTO_JSON json_t *request = request_of(world, &second);
    struct manifest_list after = list_of(world, snapshot_of(request));
    assert_int_equal(after.count, 3);
    assert_int_equal(after.files[2].content, 1);
    assert_int_equal(after.files[2].first_row_id, -1);
    assert_int_equal(after.files[2].sequence_number, 0);
    assert_int_equal(after.files[2].min_sequence_number, 0);
    assert_json(json_object_get(snapshot_of(request), "added-rows"), "10");
}

/* ---- paths and ids ---- */

static void tables_can_say_where_files_go(void **state)
{
    struct world *world = *state;
    assert_str(write_folder(world->arena, world->table.metadata, "write.data.path", "data"),
               "file:///w/t/data");
    fixture_apply(world->table.metadata,
                  "[{'action':'set-properties','updates':{'write.data.path':'file:///w/d/',"
                  "'write.metadata.path':'file:///w/m'}}]");
    assert_str(write_folder(world->arena, world->table.metadata, "write.data.path", "data"),
               "file:///w/d");
    struct append append = append_of(world, 1);
    AUTO_JSON json_t *request = request_of(world, &append);
    str list = str_from(json_string_value(json_object_get(snapshot_of(request), "manifest-list")));
    assert_true(str_starts(list, STR("file:///w/m/snap-")));
    assert_true(str_starts(append.manifest.path, STR("file:///w/m/")));
}

static void snapshot_ids_are_positive_and_below_two_to_the_53(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        i64 id = commit_snapshot_id(seam_system());
        assert_true(id > 0);
        assert_true(id < ((i64)1 << 53));
    }
}

/* ---- what cannot be committed ---- */

static void expect_failure(struct world *world, struct append *append, err wanted,
                           enum error_code code)
{
    json_t *request = NULL;
    struct error error = {0};
    assert_int_equal(commit_append(world->arena, &world->locations, &world->table, &world->seam,
                                   append, &request, &error),
                     wanted);
    assert_int_equal(error.code, code);
    assert_null(request);
}

static void a_table_outside_the_locations_is_refused(void **state)
{
    struct world *world = *state;
    struct append append = append_of(world, 1);
    fixture_apply(world->table.metadata, "[{'action':'set-location','location':'file:///etc'}]");
    expect_failure(world, &append, DENIED, ERROR_LOCATION_REFUSED);
    assert_false(append.manifest_written);
}

static void a_lost_or_broken_parent_list_stops_the_commit(void **state)
{
    struct world *world = *state;
    struct append first = append_of(world, 1);
    commit(world, &first);
    const json_t *head = metadata_snapshot(world->table.metadata, first.snapshot_id);
    str path = str_from(json_string_value(json_object_get(head, "manifest-list")));
    str broken = STR("Obj\1 nonsense");
    struct append second = append_of(world, 1);
    json_t *request = NULL;
    assert_int_equal(location_put(&world->locations, world->arena, path, &broken, 1, NULL), OK);
    assert_int_equal(commit_append(world->arena, &world->locations, &world->table, &world->seam,
                                   &second, &request, NULL),
                     CORRUPT);
    assert_int_equal(location_remove(&world->locations, world->arena, path, NULL), OK);
    assert_int_equal(commit_append(world->arena, &world->locations, &world->table, &world->seam,
                                   &second, &request, NULL),
                     CORRUPT);
    assert_null(request);
}

static void a_full_arena_is_reported_at_every_growth(void **state)
{
    struct world *world = *state;
    struct append first = append_of(world, 1);
    commit(world, &first);
    bool done = false;
    for (i64 n = 1; !done; n++) {
        AUTO_ARENA struct arena *arena = arena_create(64 * MIB);
        struct append append = append_of(world, 2);
        json_t *request = NULL;
        arena_fail_allocation_at(n);
        err result = commit_append(arena, &world->locations, &world->table, &world->seam, &append,
                                   &request, NULL);
        done = arena_growths() < n;
        arena_fail_growth_at(0);
        assert_int_equal(result, done ? OK : LIMIT);
        json_decref(request);
    }
}

#define V2(test) cmocka_unit_test_setup_teardown(test, open_v2, close_world)
#define V3(test) cmocka_unit_test_setup_teardown(test, open_v3, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        V2(iceberg_8_6_92_a_commit_asserts_uuid_head_schema_and_spec),
        V2(the_first_snapshot_has_no_parent_and_totals_from_zero),
        V3(changed_partitions_are_counted_once),
        V2(iceberg_8_1_10_the_retention_of_main_is_copied),
        V2(iceberg_8_1_12_13_16_totals_are_exact_or_left_out),
        V2(iceberg_8_1_14_computed_keys_win),
        V2(properties_are_set_and_removed_in_the_same_request),
        V2(iceberg_8_2_36_the_parents_manifests_follow_in_their_order),
        V3(iceberg_8_2_36_the_parents_manifests_follow_in_their_order),
        V2(a_fence_carries_all_manifests_and_adds_nothing),
        V3(a_fence_carries_all_manifests_and_adds_nothing),
        V2(iceberg_8_6_82_every_try_has_its_own_list),
        V3(iceberg_8_6_90_row_ids_do_not_overlap),
        V2(the_first_commit_after_an_upgrade_numbers_old_rows),
        V3(iceberg_8_2_37_and_iceberg_8_6_90_deletes_are_carried_as_they_are),
        V2(tables_can_say_where_files_go),
        cmocka_unit_test(snapshot_ids_are_positive_and_below_two_to_the_53),
        V2(a_table_outside_the_locations_is_refused),
        V2(a_lost_or_broken_parent_list_stops_the_commit),
        V2(a_full_arena_is_reported_at_every_growth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
