#include "table_fixture.h"

#include "format/avro.h"
#include "table/commit.h"

/* Many small manifests become few, and every reader finds what it found before. */

enum { EXISTING = 0, ADDED = 1, DELETED = 2 };

struct world {
    struct arena *arena;
    struct location item;
    struct location_set locations;
    u64 lots;
    struct seam seam;
    struct table table;
    i64 ids[16]; /* of the appends, in their order */
    size_t count;
};

#define FEW "'commit.manifest.min-count-to-merge':'3'"

static void set_properties(struct world *world, const char *properties)
{
    char text[600];
    (void)snprintf(text, sizeof(text), "[{'action':'set-properties','updates':{%s}}]", properties);
    fixture_apply(world->table.metadata, text);
}

/* No two names are the same, however many are drawn. */
static void draw(void *self, void *out_bytes, size_t size)
{
    u64 *lots = self;
    u8 *bytes = out_bytes;
    for (size_t i = 0; i < size; i++) {
        *lots = *lots * 6364136223846793005U + 1442695040888963407U;
        bytes[i] = (u8)(*lots >> 56);
    }
}

static int open_world(void **state, const char *version, const char *spec)
{
    struct arena *arena = arena_create(64 * MIB);
    struct world *world = arena_alloc(arena, sizeof(*world));
    world->arena = arena;
    world->item.prefix = STR("file:///w");
    assert_int_equal(store_open_mem(arena, 32 * MIB, &world->item.store, NULL), OK);
    world->locations = (struct location_set){&world->item, 1};
    world->seam = (struct seam){.now = fixture_now,
                                .monotonic_us = fixture_monotonic,
                                .random = draw,
                                .wait_us = fixture_wait,
                                .self = &world->lots};
    world->table.metadata = fixture_table(version, spec);
    set_properties(world, FEW);
    *state = world;
    return 0;
}

static int open_v2(void **state)
{
    return open_world(state, "2", "");
}

static int open_v3(void **state)
{
    return open_world(state, "3", "{'source-id':2,'name':'ts_day','transform':'day'}");
}

static int close_world(void **state)
{
    struct world *world = *state;
    table_close(&world->table);
    store_close(&world->item.store);
    arena_destroy(world->arena);
    return 0;
}

/* ---- commits ---- */

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

static i32 spec_of(const struct world *world)
{
    return (i32)json_integer_value(fixture_member(world->table.metadata, "default-spec-id"));
}

/* `count` files of ten rows each, of the days from `day` on; a negative day is null. */
static void append_days(struct world *world, size_t count, i64 day)
{
    static struct parquet_column_stats columns[] = {
        {1, 80, 10, 0, -1, STR_INIT("\1\0\0\0\0\0\0\0"), STR_INIT("\11\0\0\0\0\0\0\0")},
        {3, 60, 10, 1, -1, STR_INIT(""), STR_INIT("zz")},
    };
    static i64 splits[] = {4, 99};
    struct append append = commit_begin(&world->seam);
    append.files = arena_array(world->arena, count, sizeof(*append.files));
    append.file_count = count;
    for (size_t i = 0; i < count; i++) {
        struct partition_value *value = arena_alloc(world->arena, sizeof(*value));
        *value = (struct partition_value){.is_null = day < 0, .number = day + (i64)i};
        append.files[i] = (struct data_file){
            .path = str_format(world->arena, "file:///w/t/data/%zu-%zu.parquet", world->count, i),
            .stats = {.rows = 10,
                      .file_bytes = 100,
                      .columns = columns,
                      .column_count = ARRAY_COUNT(columns),
                      .split_offsets = splits,
                      .split_count = ARRAY_COUNT(splits)},
            .spec_id = spec_of(world),
            .partition = value};
    }
    json_t *request = NULL;
    assert_int_equal(commit_append(world->arena, &world->locations, &world->table, &world->seam,
                                   &append, &request, NULL),
                     OK);
    land(world, request);
    json_decref(request);
    world->ids[world->count++] = append.snapshot_id;
}

static void append(struct world *world)
{
    append_days(world, 1, (i64)world->count);
}

/* NULL: there was nothing to merge. */
static json_t *merge_request(struct world *world)
{
    json_t *request = NULL;
    struct error error = {0};
    err result = commit_merge(world->arena, &world->locations, &world->table, &world->seam,
                              &request, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(result, OK);
    return request;
}

static void merge(struct world *world)
{
    AUTO_JSON json_t *request = merge_request(world);
    assert_non_null(request);
    land(world, request);
}

static const json_t *snapshot_of(const json_t *request)
{
    return json_object_get(json_array_get(json_object_get(request, "updates"), 0), "snapshot");
}

/* ---- what stands in the table ---- */

static str bytes_of(struct world *world, str path)
{
    str bytes = {NULL, 0};
    assert_int_equal(location_get(&world->locations, world->arena, path, &bytes, NULL), OK);
    return bytes;
}

static const json_t *head_of(const struct world *world)
{
    i64 head = 0;
    assert_true(metadata_main(world->table.metadata, &head));
    return metadata_snapshot(world->table.metadata, head);
}

static str list_path(const json_t *snapshot)
{
    return str_from(json_string_value(json_object_get(snapshot, "manifest-list")));
}

static struct manifest_list list_of(struct world *world, const json_t *snapshot)
{
    struct manifest_list list = {0};
    assert_int_equal(
        manifest_list_read(world->arena, bytes_of(world, list_path(snapshot)), &list, NULL), OK);
    return list;
}

/* The head's list, with other manifests in it. */
static void put_list(struct world *world, struct manifest_file *files, size_t count)
{
    const json_t *head = head_of(world);
    struct manifest_list list = {files, count};
    str bytes = {NULL, 0};
    i32 version = metadata_format_version(world->table.metadata);
    assert_int_equal(
        manifest_list_write(world->arena, version, 1, false, 0, 1, 0, &list, &bytes, NULL), OK);
    assert_int_equal(
        location_put(&world->locations, world->arena, list_path(head), &bytes, 1, NULL), OK);
}

static const struct avro_value *member(const struct avro_value *record, i32 id)
{
    const struct avro_value *value = avro_field_of(record, id, STR("-"));
    if (value == NULL) {
        fail_msg("no field %d", id);
    }
    return value;
}

/* "file:status snapshot sequence file_sequence row_id;" for each entry, in the order of their
 * paths' numbers as they stand. Null is -. */
static void tell_number(buf *out, const struct avro_value *value)
{
    if (value == NULL || value->kind == AVRO_VALUE_NULL) {
        buf_append(out, STR(" -"));
    } else {
        buf_append_format(out, " %lld", (long long)value->number);
    }
}

static struct avro_file *read_manifest(struct world *world, str path)
{
    struct avro_file *file = NULL;
    assert_int_equal(avro_read(world->arena, bytes_of(world, path), &file, NULL), OK);
    return file;
}

/* The place of the append that made the snapshot, from 0. */
static i64 place_of(const struct world *world, i64 id)
{
    for (size_t i = 0; i < world->count; i++) {
        if (world->ids[i] == id) {
            return (i64)i;
        }
    }
    return id;
}

static str tell(struct world *world, str path)
{
    buf out = buf_create(world->arena, KIB, MIB);
    struct avro_file *file = read_manifest(world, path);
    for (size_t i = 0; i < avro_file_count(file); i++) {
        const struct avro_value *entry = avro_file_record(file, i);
        const struct avro_value *data = member(entry, 2);
        str name = member(data, 100)->bytes;
        name = str_slice(name, (size_t)str_find_last_byte(name, '/') + 1, name.size - 8);
        buf_append_format(&out, "%.*s: %lld #%lld", STR_ARG(name),
                          (long long)member(entry, 0)->number,
                          (long long)place_of(world, member(entry, 1)->number));
        tell_number(&out, member(entry, 3));
        tell_number(&out, member(entry, 4));
        tell_number(&out, avro_field_of(data, 142, STR("-")));
        buf_append(&out, STR("\n"));
    }
    return buf_str(&out);
}

/* ---- due or not ---- */

static void below_the_count_nothing_is_written(void **state)
{
    struct world *world = *state;
    assert_null(merge_request(world)); /* an empty table */
    append(world);
    append(world);
    assert_false(commit_merge_due(&world->table));
    assert_null(merge_request(world));
    append(world);
    assert_true(commit_merge_due(&world->table));
    set_properties(world, "'commit.manifest-merge.enabled':'FALSE'");
    assert_null(merge_request(world));
    set_properties(world, "'commit.manifest-merge.enabled':'true',"
                          "'commit.manifest.min-count-to-merge':'4'");
    assert_null(merge_request(world));
    set_properties(world, FEW);
    merge(world);
    assert_null(merge_request(world));
}

static void a_hundred_are_needed_by_default(void **state)
{
    struct world *world = *state;
    append(world);
    struct manifest_list list = list_of(world, head_of(world));
    struct manifest_file files[100];
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) { /* each is read; they are one file's copies */
        files[i] = list.files[0];
    }
    set_properties(world, "'commit.manifest.min-count-to-merge':'100'");
    fixture_apply(world->table.metadata, "[{'action':'remove-properties',"
                                         "'removals':['commit.manifest.min-count-to-merge']}]");
    json_t *summary = json_object_get(head_of(world), "summary");
    json_object_del(summary, "manifests-kept"); /* as of a writer that does not tell */
    put_list(world, files, 99);
    assert_null(merge_request(world));
    put_list(world, files, 100);
    AUTO_JSON json_t *request = merge_request(world);
    assert_int_equal(list_of(world, snapshot_of(request)).count, 1);
}

/* ---- what is written ---- */

static void the_request_replaces_manifests_and_nothing_else(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 4; i++) {
        append(world);
    }
    AUTO_JSON json_t *request = merge_request(world);
    char wanted[900];
    (void)snprintf(wanted, sizeof(wanted),
                   "[{'type':'assert-table-uuid','uuid':'%.*s'},"
                   "{'type':'assert-ref-snapshot-id','ref':'main','snapshot-id':%lld},"
                   "{'type':'assert-current-schema-id','current-schema-id':0},"
                   "{'type':'assert-default-spec-id','default-spec-id':0}]",
                   STR_ARG(metadata_uuid(world->table.metadata)), (long long)world->ids[3]);
    assert_json(json_object_get(request, "requirements"), wanted);
    assert_int_equal(json_array_size(json_object_get(request, "updates")), 2);
    const json_t *snapshot = snapshot_of(request);
    assert_json(json_object_get(snapshot, "summary"),
                "{'operation':'replace','changed-partition-count':'0','manifests-created':'1',"
                "'manifests-kept':'0','manifests-replaced':'4','entries-processed':'4',"
                "'total-records':'40','total-files-size':'400','total-data-files':'4',"
                "'total-delete-files':'0','total-position-deletes':'0',"
                "'total-equality-deletes':'0'}");
    assert_json(json_object_get(snapshot, "sequence-number"), "5");
    assert_int_equal(json_integer_value(json_object_get(snapshot, "parent-snapshot-id")),
                     world->ids[3]);
    land(world, request);
}

static void live_files_keep_their_snapshots_and_sequence_numbers(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 3; i++) {
        append_days(world, 2, i);
    }
    merge(world);
    struct manifest_list list = list_of(world, head_of(world));
    i64 head = 0;
    assert_true(metadata_main(world->table.metadata, &head));
    assert_int_equal(list.count, 1);
    const struct manifest_file *file = &list.files[0];
    assert_int_equal(file->length, bytes_of(world, file->path).size);
    assert_int_equal(file->sequence_number, 4);
    assert_int_equal(file->min_sequence_number, 1);
    assert_int_equal(file->added_snapshot_id, head);
    assert_int_equal(file->added_files, 0);
    assert_int_equal(file->existing_files, 6);
    assert_int_equal(file->deleted_files, 0);
    assert_int_equal(file->added_rows, 0);
    assert_int_equal(file->existing_rows, 60);
    assert_int_equal(file->deleted_rows, 0);
    assert_str(tell(world, file->path), "2-0: 0 #2 3 3 -\n2-1: 0 #2 3 3 -\n"
                                        "1-0: 0 #1 2 2 -\n1-1: 0 #1 2 2 -\n"
                                        "0-0: 0 #0 1 1 -\n0-1: 0 #0 1 1 -\n");
}

/* What stands in the record of a file, in the writer's own bytes. */
static void the_files_records_are_kept_byte_by_byte(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 3; i++) {
        append(world);
    }
    struct manifest_list before = list_of(world, head_of(world));
    merge(world);
    struct avro_file *merged = read_manifest(world, list_of(world, head_of(world)).files[0].path);
    for (size_t i = 0; i < before.count; i++) {
        struct avro_file *file = read_manifest(world, before.files[i].path);
        assert_true(str_equal(avro_file_schema(file), avro_file_schema(merged)));
        const struct avro_value *wanted = member(avro_file_record(file, 0), 2);
        const struct avro_value *found = member(avro_file_record(merged, i), 2);
        for (size_t j = 0; j < wanted->count; j++) {
            if (wanted->fields[j].field_id != 142) {
                assert_true(str_equal(found->items[j].raw, wanted->items[j].raw));
            }
        }
    }
    assert_str(avro_file_meta(merged, STR("content")), "data");
}

/* The next append carries what was merged, and the next merge takes both. */
static void merged_manifests_are_merged_again(void **state)
{
    struct world *world = *state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) {
            append(world);
        }
        merge(world);
    }
    struct manifest_list list = list_of(world, head_of(world));
    assert_int_equal(list.count, 1);
    assert_int_equal(list.files[0].existing_files, 9);
    assert_int_equal(list.files[0].min_sequence_number, 1);
    str told = tell(world, list.files[0].path);
    assert_true(str_starts(told, STR("8-0: 0 #8 11 11 ")));
    assert_true(str_find(told, STR("\n3-0: 0 #3 5 5 ")) > 0);
    assert_true(str_find(told, STR("\n0-0: 0 #0 1 1 ")) > 0);
}

/* ---- row ids ---- */

static void iceberg_8_6_90_rows_keep_their_ids(void **state)
{
    struct world *world = *state;
    append_days(world, 2, 5);
    append_days(world, 1, -1);
    append_days(world, 2, 3);
    AUTO_JSON json_t *request = merge_request(world);
    /* Reserved once more, as the reference library does; none is used. */
    assert_json(json_object_get(snapshot_of(request), "first-row-id"), "50");
    assert_json(json_object_get(snapshot_of(request), "added-rows"), "50");
    land(world, request);
    append(world);
    append(world);
    merge(world);
    struct manifest_list list = list_of(world, head_of(world));
    assert_int_equal(list.count, 1);
    assert_int_equal(list.files[0].first_row_id, 120);
    assert_str(tell(world, list.files[0].path),
               "4-0: 0 #4 6 6 110\n3-0: 0 #3 5 5 100\n"
               "2-0: 0 #2 3 3 30\n2-1: 0 #2 3 3 40\n1-0: 0 #1 2 2 20\n"
               "0-0: 0 #0 1 1 0\n0-1: 0 #0 1 1 10\n");
}

/* Before the first commit of version 3 no row has an id: they take those of the new manifest. */
static void rows_of_before_an_upgrade_take_new_ids(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 3; i++) {
        append(world);
    }
    fixture_apply(world->table.metadata,
                  "[{'action':'upgrade-format-version','format-version':3}]");
    merge(world);
    struct manifest_list list = list_of(world, head_of(world));
    assert_int_equal(list.files[0].first_row_id, 0);
    assert_int_equal(metadata_next_row_id(world->table.metadata), 30);
    assert_str(tell(world, list.files[0].path),
               "2-0: 0 #2 3 3 -\n1-0: 0 #1 2 2 -\n0-0: 0 #0 1 1 -\n");
}

/* ---- partitions ---- */

static void partition_bounds_are_those_of_the_live_files(void **state)
{
    struct world *world = *state;
    append_days(world, 2, 7);
    append_days(world, 1, 300);
    append_days(world, 1, 4);
    merge(world);
    struct manifest_list list = list_of(world, head_of(world));
    buf wanted = buf_create(world->arena, 64, 64);
    avro_put_long(&wanted, 1);
    avro_put_boolean(&wanted, false);
    avro_put_branch(&wanted, 1);
    avro_put_boolean(&wanted, false);
    avro_put_branch(&wanted, 1);
    avro_put_bytes(&wanted, STR("\4\0\0\0"));
    avro_put_branch(&wanted, 1);
    avro_put_bytes(&wanted, STR("\54\1\0\0"));
    avro_put_long(&wanted, 0);
    assert_true(str_equal(list.files[0].partitions, buf_str(&wanted)));
}

/* ---- what is left alone ---- */

static void other_specs_deletes_and_large_manifests_stay(void **state)
{
    struct world *world = *state;
    append(world);
    append(world);
    fixture_apply(world->table.metadata,
                  "[{'action':'add-spec','spec':{'spec-id':1,'fields':[{'source-id':2,"
                  "'field-id':1001,'name':'ts_hour','transform':'hour'}]}},"
                  "{'action':'set-default-spec','spec-id':-1}]");
    for (int i = 0; i < 4; i++) {
        append(world);
    }
    struct manifest_list list = list_of(world, head_of(world));
    assert_int_equal(list.count, 6);
    struct manifest_file files[8];
    memcpy(files, list.files, 6 * sizeof(files[0]));
    files[6] = list.files[3];
    files[6].path = STR("file:///w/t/metadata/deletes.avro");
    files[6].content = 1;
    files[7] = list.files[3];
    files[7].path = STR("file:///w/t/metadata/large.avro");
    files[7].length = 4 * MIB + 1;
    put_list(world, files, ARRAY_COUNT(files));
    AUTO_JSON json_t *request = merge_request(world);
    struct manifest_list after = list_of(world, snapshot_of(request));
    assert_int_equal(after.count, 5);
    assert_int_equal(after.files[0].spec_id, 1);
    assert_int_equal(after.files[0].existing_files, 4);
    for (size_t i = 1; i < after.count; i++) { /* in their order, as they were */
        assert_true(str_equal(after.files[i].path, files[i + 3].path));
        assert_int_equal(after.files[i].content, files[i + 3].content);
        assert_int_equal(after.files[i].sequence_number, files[i + 3].sequence_number);
        assert_int_equal(after.files[i].added_files, 1);
    }
    const json_t *summary = json_object_get(snapshot_of(request), "summary");
    assert_json(json_object_get(summary, "manifests-kept"), "'4'");
    assert_json(json_object_get(summary, "manifests-replaced"), "'4'");
}

static void manifests_are_packed_up_to_the_target(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 7; i++) {
        append(world);
    }
    char text[100];
    i64 length = list_of(world, head_of(world)).files[0].length;
    (void)snprintf(text, sizeof(text), "'commit.manifest.target-size-bytes':'%lld'",
                   (long long)(3 * length + length / 2)); /* they may differ by some bytes */
    set_properties(world, text);
    merge(world);
    struct manifest_list list = list_of(world, head_of(world));
    assert_int_equal(list.count, 3); /* 3, 3, and one alone, which stays */
    assert_int_equal(list.files[0].existing_files, 3);
    assert_int_equal(list.files[1].existing_files, 3);
    assert_int_equal(list.files[2].added_files, 1);
    assert_int_equal(list.files[2].added_snapshot_id, world->ids[0]);
    for (size_t i = 0; i < list.count; i++) {
        assert_true(bytes_of(world, list.files[i].path).size < (size_t)(4 * length));
    }
}

/* ---- manifests of others ---- */

#define FOREIGN_HEAD                                                                               \
    "{\"type\":\"record\",\"name\":\"manifest_entry\",\"fields\":["                                \
    "{\"name\":\"status\",\"type\":\"int\",\"field-id\":0},"                                       \
    "{\"name\":\"snapshot_id\",\"type\":[\"null\",\"long\"],\"field-id\":1},"                      \
    "{\"name\":\"data_sequence_number\",\"type\":[\"null\",\"long\"],\"field-id\":3},"             \
    "{\"name\":\"file_sequence_number\",\"type\":[\"null\",\"long\"],\"field-id\":4},"             \
    "{\"name\":\"data_file\",\"field-id\":2,\"type\":{\"type\":\"record\",\"name\":\"r2\","        \
    "\"fields\":[{\"name\":\"content\",\"type\":\"int\",\"field-id\":134},"                        \
    "{\"name\":\"file_path\",\"type\":\"string\",\"field-id\":100},"                               \
    "{\"name\":\"file_format\",\"type\":\"string\",\"field-id\":101},"                             \
    "{\"name\":\"partition\",\"field-id\":102,\"type\":{\"type\":\"record\",\"name\":\"r102\","    \
    "\"fields\":[]}},"                                                                             \
    "{\"name\":\"file_size_in_bytes\",\"type\":\"long\",\"field-id\":104},"                        \
    "{\"name\":\"record_count\",\"type\":\"long\",\"field-id\":103}"
#define FOREIGN_TAIL "]}}]}"
#define FOREIGN_MORE ",{\"name\":\"more\",\"type\":[\"null\",\"long\"],\"field-id\":999}"

struct foreign {
    i64 status;
    i64 numbers[3]; /* snapshot id and sequence numbers; -1: null */
    i64 more;       /* -1: null */
};

/* The head's first manifest, in another writer's words: its fields are fewer, and in another
 * order. Entry number i is of the file `f<i>`. */
static void put_foreign(struct world *world, struct manifest_file *file, const char *schema,
                        const struct foreign *entries, size_t count)
{
    buf records = buf_create(world->arena, KIB, MIB);
    for (size_t i = 0; i < count; i++) {
        avro_put_long(&records, entries[i].status);
        for (size_t j = 0; j < 3; j++) {
            avro_put_branch(&records, entries[i].numbers[j] < 0 ? 0 : 1);
            if (entries[i].numbers[j] >= 0) {
                avro_put_long(&records, entries[i].numbers[j]);
            }
        }
        avro_put_long(&records, 0);
        avro_put_bytes(&records, str_format(world->arena, "s3://b/f%zu.parquet", i));
        avro_put_bytes(&records, STR("PARQUET"));
        avro_put_long(&records, 100);
        avro_put_long(&records, 10);
        if (strstr(schema, "\"more\"") != NULL) {
            avro_put_branch(&records, entries[i].more < 0 ? 0 : 1);
            if (entries[i].more >= 0) {
                avro_put_long(&records, entries[i].more);
            }
        }
    }
    buf bytes = buf_create(world->arena, KIB, MIB);
    assert_int_equal(avro_write(&bytes, world->arena, str_from(schema), NULL, 0, AVRO_ZSTD,
                                buf_str(&records), (i64)count, NULL),
                     OK);
    str body = buf_str(&bytes);
    file->length = (i64)body.size;
    assert_int_equal(location_put(&world->locations, world->arena, file->path, &body, 1, NULL), OK);
}

/* Deleted entries go; a null is what an added file inherits. */
static void foreign_manifests_are_merged_without_what_is_deleted(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 3; i++) {
        append(world);
    }
    static const struct foreign entries[] = {{ADDED, {-1, -1, -1}, -1},
                                             {DELETED, {70, 1, 1}, -1},
                                             {ADDED, {71, 1, -1}, -1},
                                             {EXISTING, {72, 1, 2}, -1}};
    struct manifest_list list = list_of(world, head_of(world));
    put_foreign(world, &list.files[0], FOREIGN_HEAD FOREIGN_MORE FOREIGN_TAIL, entries,
                ARRAY_COUNT(entries));
    put_list(world, list.files, list.count);
    merge(world);
    struct manifest_list after = list_of(world, head_of(world));
    assert_int_equal(after.count, 1);
    assert_int_equal(after.files[0].existing_files, 5);
    assert_int_equal(after.files[0].existing_rows, 50);
    assert_int_equal(after.files[0].deleted_files, 0);
    assert_int_equal(after.files[0].min_sequence_number, 1);
    assert_str(tell(world, after.files[0].path),
               "f0: 0 #2 3 3 -\nf2: 0 #71 1 3 -\nf3: 0 #72 1 2 -\n"
               "1-0: 0 #1 2 2 -\n0-0: 0 #0 1 1 -\n");
}

static void manifests_of_deleted_files_alone_go(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 3; i++) {
        append(world);
    }
    static const struct foreign entry = {DELETED, {70, 1, 1}, -1};
    struct manifest_list list = list_of(world, head_of(world));
    for (size_t i = 0; i < list.count; i++) {
        put_foreign(world, &list.files[i], FOREIGN_HEAD FOREIGN_TAIL, &entry, 1);
    }
    put_list(world, list.files, list.count);
    AUTO_JSON json_t *request = merge_request(world);
    assert_int_equal(list_of(world, snapshot_of(request)).count, 0);
    const json_t *summary = json_object_get(snapshot_of(request), "summary");
    assert_json(json_object_get(summary, "manifests-created"), "'0'");
    assert_json(json_object_get(summary, "entries-processed"), "'0'");
}

/* What we could not write whole stays as it is: a value that we do not know, an old entry without
 * its sequence number, an entry of deletes, a manifest that is none. The others are merged. */
static void manifests_with_more_than_we_know_stay(void **state)
{
    struct world *world = *state;
    append(world);
    append(world);
    for (int i = 0; i < 5; i++) {
        append(world);
    }
    static const struct foreign unknown[] = {{ADDED, {-1, -1, -1}, -1}, {ADDED, {-1, -1, -1}, 7}};
    static const struct foreign unnumbered = {EXISTING, {70, -1, 1}, -1};
    static const struct foreign wrong = {3, {70, 1, 1}, -1};
    struct manifest_list list = list_of(world, head_of(world));
    str nonsense = STR("Obj\1 nonsense");
    put_foreign(world, &list.files[1], FOREIGN_HEAD FOREIGN_MORE FOREIGN_TAIL, unknown, 2);
    put_foreign(world, &list.files[2], FOREIGN_HEAD FOREIGN_TAIL, &unnumbered, 1);
    put_foreign(world, &list.files[3], FOREIGN_HEAD FOREIGN_TAIL, &wrong, 1);
    assert_int_equal(
        location_put(&world->locations, world->arena, list.files[4].path, &nonsense, 1, NULL), OK);
    put_list(world, list.files, list.count);
    merge(world);
    struct manifest_list after = list_of(world, head_of(world));
    assert_int_equal(after.count, 5);
    assert_str(tell(world, after.files[0].path),
               "6-0: 0 #6 7 7 -\n1-0: 0 #1 2 2 -\n0-0: 0 #0 1 1 -\n");
    assert_int_equal(after.files[0].existing_rows, 30);
    for (size_t i = 1; i < 5; i++) {
        assert_true(str_equal(after.files[i].path, list.files[i].path));
    }
}

/* ---- trouble ---- */

static void a_manifest_that_is_gone_stays_named(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 4; i++) {
        append(world);
    }
    struct manifest_list list = list_of(world, head_of(world));
    assert_int_equal(location_remove(&world->locations, world->arena, list.files[1].path, NULL),
                     OK);
    merge(world);
    struct manifest_list after = list_of(world, head_of(world));
    assert_int_equal(after.count, 2);
    assert_int_equal(after.files[0].existing_files, 3);
    assert_true(str_equal(after.files[1].path, list.files[1].path));
}

static void a_commit_in_between_refuses_the_request(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 3; i++) {
        append(world);
    }
    AUTO_JSON json_t *request = merge_request(world);
    append(world);
    assert_int_equal(
        metadata_check(world->table.metadata, json_object_get(request, "requirements"), NULL),
        CONFLICT);
    assert_int_equal(list_of(world, head_of(world)).count, 4);
}

static void a_full_arena_is_reported_at_every_growth(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 3; i++) {
        append(world);
    }
    bool done = false;
    for (i64 n = 1; !done; n++) {
        AUTO_ARENA struct arena *arena = arena_create(64 * MIB);
        json_t *request = NULL;
        arena_fail_allocation_at(n);
        err result = commit_merge(arena, &world->locations, &world->table, &world->seam, &request,
                                  NULL);
        done = arena_growths() < n;
        arena_fail_growth_at(0);
        if (result == OK && request != NULL) { /* one that could not be read stays */
            struct manifest_list list = list_of(world, snapshot_of(request));
            i64 files = 0;
            for (size_t i = 0; i < list.count; i++) {
                files += list.files[i].added_files + list.files[i].existing_files;
            }
            assert_int_equal(files, 3);
        } else if (result != OK) {
            assert_int_equal(result, LIMIT);
            assert_null(request);
        }
        json_decref(request);
    }
}

#define V2(test) cmocka_unit_test_setup_teardown(test, open_v2, close_world)
#define V3(test) cmocka_unit_test_setup_teardown(test, open_v3, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        V2(below_the_count_nothing_is_written),
        V2(a_hundred_are_needed_by_default),
        V2(the_request_replaces_manifests_and_nothing_else),
        V2(live_files_keep_their_snapshots_and_sequence_numbers),
        V2(the_files_records_are_kept_byte_by_byte),
        V3(the_files_records_are_kept_byte_by_byte),
        V2(merged_manifests_are_merged_again),
        V3(merged_manifests_are_merged_again),
        V3(iceberg_8_6_90_rows_keep_their_ids),
        V2(rows_of_before_an_upgrade_take_new_ids),
        V3(partition_bounds_are_those_of_the_live_files),
        V2(other_specs_deletes_and_large_manifests_stay),
        V3(other_specs_deletes_and_large_manifests_stay),
        V2(manifests_are_packed_up_to_the_target),
        V2(foreign_manifests_are_merged_without_what_is_deleted),
        V2(manifests_of_deleted_files_alone_go),
        V2(manifests_with_more_than_we_know_stay),
        V2(a_manifest_that_is_gone_stays_named),
        V2(a_commit_in_between_refuses_the_request),
        V2(a_full_arena_is_reported_at_every_growth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
