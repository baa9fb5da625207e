#include "table_fixture.h"

#include "format/avro.h"
#include "table/manifest.h"

static struct parquet_column_stats COLUMNS[] = {
    {1, 80, 10, 0, -1, STR_INIT("\1\0\0\0\0\0\0\0"), STR_INIT("\11\0\0\0\0\0\0\0")},
    {2, 70, 10, 10, -1, {NULL, 0}, {NULL, 0}},
    {3, 60, 10, 1, -1, STR_INIT(""), STR_INIT("zz")},
};
static i64 SPLITS[] = {4};

static struct data_file file_of(const char *path, const struct partition_value *partition)
{
    return (struct data_file){.path = str_from(path),
                              .stats = {.rows = 10,
                                        .file_bytes = 1234,
                                        .columns = COLUMNS,
                                        .column_count = ARRAY_COUNT(COLUMNS),
                                        .split_offsets = SPLITS,
                                        .split_count = 1},
                              .spec_id = 0,
                              .partition = partition};
}

static err write(struct arena *arena, const struct metadata *metadata,
                 const struct data_file *files, size_t count, str *out_bytes,
                 struct manifest_file *out_file, struct error *error)
{
    struct schema schema = {0};
    struct partition_spec spec = {0};
    assert_int_equal(metadata_schema(arena, metadata, &schema, NULL), OK);
    assert_int_equal(metadata_spec(arena, metadata, &spec, NULL), OK);
    return manifest_write(arena, metadata, &schema, &spec, 77, files, count,
                          STR("file:///w/t/metadata/m.avro"), out_bytes, out_file, error);
}

static struct avro_file *read_back(struct arena *arena, str bytes)
{
    struct avro_file *avro = NULL;
    assert_int_equal(avro_read(arena, bytes, &avro, NULL), OK);
    return avro;
}

static const struct avro_value *member(const struct avro_value *record, i32 id)
{
    const struct avro_value *value = avro_field_of(record, id, STR("-"));
    if (value == NULL) {
        fail_msg("no field %d", id);
    }
    return value;
}

/* Field names with ids in order, records and lists opened: "status 0, snapshot_id 1, …". */
static void describe(buf *out, const json_t *type);

static void describe_fields(buf *out, const json_t *record)
{
    buf_append_format(out, "%s(", json_string_value(json_object_get(record, "name")));
    const json_t *fields = json_object_get(record, "fields");
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);
        buf_append_format(out, "%s%s %lld ", i > 0 ? ", " : "",
                          json_string_value(json_object_get(field, "name")),
                          (long long)json_integer_value(json_object_get(field, "field-id")));
        describe(out, json_object_get(field, "type"));
    }
    buf_append(out, STR(")"));
}

static void describe(buf *out, const json_t *type)
{
    if (json_is_string(type)) {
        buf_append(out, str_from(json_string_value(type)));
    } else if (json_is_array(type)) {
        buf_append(out, STR("?"));
        assert_string_equal(json_string_value(json_array_get(type, 0)), "null");
        describe(out, json_array_get(type, 1));
    } else if (json_object_get(type, "fields") != NULL) {
        describe_fields(out, type);
    } else if (json_object_get(type, "items") != NULL) {
        const json_t *logical = json_object_get(type, "logicalType");
        const json_t *element = json_object_get(type, "element-id");
        buf_append_format(out, "%s[", json_is_string(logical) ? json_string_value(logical) : "");
        if (element != NULL) {
            buf_append_format(out, "%lld ", (long long)json_integer_value(element));
        }
        describe(out, json_object_get(type, "items"));
        buf_append(out, STR("]"));
    } else {
        const json_t *logical = json_object_get(type, "logicalType");
        buf_append_format(out, "%s:%s", json_string_value(json_object_get(type, "type")),
                          json_is_string(logical) ? json_string_value(logical) : "-");
    }
}

static void expect_schema(struct arena *arena, str bytes, const char *wanted)
{
    str text = avro_file_schema(read_back(arena, bytes));
    AUTO_JSON json_t *schema = json_loadb(text.data, text.size, 0, NULL);
    buf out = buf_create(arena, 4 * KIB, MIB);
    describe(&out, schema);
    assert_str(buf_str(&out), wanted);
}

#define FILE_HEAD                                                                                  \
    "manifest_entry(status 0 int, snapshot_id 1 ?long, sequence_number 3 ?long, "                  \
    "file_sequence_number 4 ?long, data_file 2 r2(content 134 int, file_path 100 string, "         \
    "file_format 101 string, partition 102 r102("
#define FILE_METRICS                                                                               \
    "), record_count 103 long, file_size_in_bytes 104 long, "                                      \
    "column_sizes 108 ?map[k117_v118(key 117 int, value 118 long)], "                              \
    "value_counts 109 ?map[k119_v120(key 119 int, value 120 long)], "                              \
    "null_value_counts 110 ?map[k121_v122(key 121 int, value 122 long)], "                         \
    "nan_value_counts 137 ?map[k138_v139(key 138 int, value 139 long)], "                          \
    "lower_bounds 125 ?map[k126_v127(key 126 int, value 127 bytes)], "                             \
    "upper_bounds 128 ?map[k129_v130(key 129 int, value 130 bytes)], "                             \
    "key_metadata 131 ?bytes, split_offsets 132 ?[133 long], equality_ids 135 ?[136 int], "        \
    "sort_order_id 140 ?int, "

/* Names, order, ids and optionality: 28 field ids, 29 record names, 30 maps, 39 equality_ids of
 * int, 40 no distinct_counts, 43 content in version 3. */
static void iceberg_8_2_28_to_43_manifest_schema_is_the_reference_librarys(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    AUTO_METADATA struct metadata *v2 = fixture_table("2", "");
    AUTO_METADATA struct metadata *v3 = fixture_table(
        "3", "{'source-id':2,'name':'ts_day','transform':'day'}");
    struct partition_value day = {.number = 20000};
    struct data_file file = file_of("file:///w/t/data/a.parquet", &day);
    struct manifest_file entry = {0};
    str bytes = {NULL, 0};
    assert_int_equal(write(arena, v2, &file, 1, &bytes, &entry, NULL), OK);
    expect_schema(arena, bytes, FILE_HEAD FILE_METRICS "referenced_data_file 143 ?string))");
    assert_int_equal(write(arena, v3, &file, 1, &bytes, &entry, NULL), OK);
    expect_schema(arena, bytes,
                  FILE_HEAD "ts_day 1000 ?int:date" FILE_METRICS
                            "first_row_id 142 ?long, referenced_data_file 143 ?string, "
                            "content_offset 144 ?long, content_size_in_bytes 145 ?long))");
}

#define LIST_HEAD                                                                                  \
    "manifest_file(manifest_path 500 string, manifest_length 501 long, "                           \
    "partition_spec_id 502 int, content 517 int, sequence_number 515 long, "                       \
    "min_sequence_number 516 long, added_snapshot_id 503 long, added_files_count 504 int, "        \
    "existing_files_count 505 int, deleted_files_count 506 int, added_rows_count 512 long, "       \
    "existing_rows_count 513 long, deleted_rows_count 514 long, "                                  \
    "partitions 507 ?[508 r508(contains_null 509 boolean, contains_nan 518 ?boolean, "             \
    "lower_bound 510 ?bytes, upper_bound 511 ?bytes)], key_metadata 519 ?bytes"

static void iceberg_8_2_34_counts_of_a_list_are_required(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    struct manifest_list empty = {0};
    str bytes = {NULL, 0};
    assert_int_equal(manifest_list_write(arena, 2, 5, false, 0, 1, -1, &empty, &bytes, NULL), OK);
    expect_schema(arena, bytes, LIST_HEAD ")");
    assert_int_equal(manifest_list_write(arena, 3, 5, false, 0, 1, 0, &empty, &bytes, NULL), OK);
    expect_schema(arena, bytes, LIST_HEAD ", first_row_id 520 ?long)");
}

/* 31: partition-spec is the fields' array; 32: all six keys; 47: deflate. */
static void iceberg_8_2_31_and_32_the_header_has_all_six_keys(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    AUTO_METADATA struct metadata *plain = fixture_table("2", "");
    AUTO_METADATA struct metadata *daily = fixture_table(
        "3", "{'source-id':2,'name':'ts_day','transform':'day'}");
    struct partition_value day = {.number = 20000};
    struct data_file file = file_of("file:///w/t/data/a.parquet", &day);
    struct manifest_file entry = {0};
    str bytes = {NULL, 0};
    assert_int_equal(write(arena, plain, &file, 1, &bytes, &entry, NULL), OK);
    const struct avro_file *avro = read_back(arena, bytes);
    assert_str(avro_file_meta(avro, STR("partition-spec")), "[]");
    assert_str(avro_file_meta(avro, STR("schema-id")), "0");
    assert_str(avro_file_meta(avro, STR("partition-spec-id")), "0");
    assert_str(avro_file_meta(avro, STR("format-version")), "2");
    assert_str(avro_file_meta(avro, STR("content")), "data");
    assert_str(avro_file_meta(avro, STR("avro.codec")), "deflate");
    str text = avro_file_meta(avro, STR("schema"));
    AUTO_JSON json_t *schema = json_loadb(text.data, text.size, 0, NULL);
    assert_json(schema, FIXTURE_COLUMNS);
    assert_int_equal(write(arena, daily, &file, 1, &bytes, &entry, NULL), OK);
    avro = read_back(arena, bytes);
    assert_str(avro_file_meta(avro, STR("format-version")), "3");
    text = avro_file_meta(avro, STR("partition-spec"));
    AUTO_JSON json_t *fields = json_loadb(text.data, text.size, 0, NULL);
    assert_json(fields, "[{'source-id':2,'name':'ts_day','transform':'day','field-id':1000}]");
}

static void entries_say_what_the_file_is(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    AUTO_METADATA struct metadata *metadata = fixture_table(
        "2", "{'source-id':2,'name':'ts_day','transform':'day'}");
    struct partition_value day = {.number = -3};
    struct data_file file = file_of("file:///w/t/data/a.parquet", &day);
    struct manifest_file entry = {0};
    str bytes = {NULL, 0};
    assert_int_equal(write(arena, metadata, &file, 1, &bytes, &entry, NULL), OK);
    const struct avro_file *avro = read_back(arena, bytes);
    const struct avro_value *record = avro_file_record(avro, 0);
    const struct avro_value *data = member(record, 2);
    assert_int_equal(avro_file_count(avro), 1);
    assert_int_equal(member(record, 0)->number, 1);
    assert_int_equal(member(record, 1)->number, 77);
    assert_int_equal(member(record, 3)->kind, AVRO_VALUE_NULL);
    assert_int_equal(member(record, 4)->kind, AVRO_VALUE_NULL);
    assert_int_equal(member(data, 134)->number, 0);
    assert_str(member(data, 100)->bytes, "file:///w/t/data/a.parquet");
    assert_str(member(data, 101)->bytes, "PARQUET");
    assert_int_equal(member(member(data, 102), 1000)->number, -3);
    assert_int_equal(member(data, 103)->number, 10);
    assert_int_equal(member(data, 104)->number, 1234);
    assert_int_equal(member(data, 108)->count, 3);
    assert_int_equal(member(data, 110)->items[1].items[0].number, 2);
    assert_int_equal(member(data, 110)->items[1].items[1].number, 10);
    assert_int_equal(member(data, 137)->kind, AVRO_VALUE_NULL); /* no float column */
    assert_int_equal(member(data, 125)->count, 2);
    assert_int_equal(member(data, 125)->items[1].items[1].bytes.size,
                     0); /* an empty bound is one */
    assert_str(member(data, 128)->items[1].items[1].bytes, "zz");
    assert_int_equal(member(data, 132)->items[0].number, 4);
    assert_int_equal(member(data, 135)->kind, AVRO_VALUE_NULL);
    assert_int_equal(member(data, 140)->number, 0);
}

static void iceberg_8_2_42_no_split_offsets_are_null(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    struct data_file file = file_of("file:///w/t/data/a.parquet", NULL);
    struct manifest_file entry = {0};
    str bytes = {NULL, 0};
    file.stats.split_count = 0;
    file.stats.column_count = 0;
    assert_int_equal(write(arena, metadata, &file, 1, &bytes, &entry, NULL), OK);
    const struct avro_value *data = member(avro_file_record(read_back(arena, bytes), 0), 2);
    assert_int_equal(member(data, 132)->kind, AVRO_VALUE_NULL);
    assert_int_equal(member(data, 108)->kind, AVRO_VALUE_NULL);
}

/* 33: the length is that of the bytes; 44: partitions are [] in an unpartitioned table. */
static void iceberg_8_2_33_and_44_the_list_entry_is_exact(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    struct data_file files[2] = {file_of("a", NULL), file_of("b", NULL)};
    struct manifest_file entry = {0};
    str bytes = {NULL, 0};
    assert_int_equal(write(arena, metadata, files, 2, &bytes, &entry, NULL), OK);
    assert_int_equal(entry.length, bytes.size);
    assert_str(entry.path, "file:///w/t/metadata/m.avro");
    assert_int_equal(entry.added_files, 2);
    assert_int_equal(entry.added_rows, 20);
    assert_int_equal(entry.added_snapshot_id, 77);
    assert_int_equal(entry.first_row_id, -1);
    assert_int_equal(entry.partitions.size, 1);
    assert_int_equal(entry.partitions.data[0], 0);
}

static void partition_summaries_cover_all_values(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    AUTO_METADATA struct metadata *metadata = fixture_table(
        "2", "{'source-id':2,'name':'ts_day','transform':'day'}");
    struct partition_value days[3] = {{.number = 5}, {.is_null = true}, {.number = -2}};
    struct data_file files[3] = {file_of("a", &days[0]), file_of("b", &days[1]),
                                 file_of("c", &days[2])};
    struct manifest_file entry = {0};
    struct manifest_list list = {&entry, 1};
    struct manifest_list read = {0};
    str bytes = {NULL, 0};
    assert_int_equal(write(arena, metadata, files, 3, &bytes, &entry, NULL), OK);
    entry.sequence_number = 1;
    entry.min_sequence_number = 1;
    assert_int_equal(manifest_list_write(arena, 2, 77, false, 0, 1, -1, &list, &bytes, NULL), OK);
    const struct avro_value *record = avro_file_record(read_back(arena, bytes), 0);
    const struct avro_value *summary = &member(record, 507)->items[0];
    assert_int_equal(member(summary, 509)->number, 1);
    assert_int_equal(member(summary, 518)->number, 0);
    assert_memory_equal(member(summary, 510)->bytes.data, "\xfe\xff\xff\xff", 4);
    assert_memory_equal(member(summary, 511)->bytes.data, "\5\0\0\0", 4);
    assert_int_equal(member(summary, 511)->bytes.size, 4);
    assert_int_equal(manifest_list_read(arena, bytes, &read, NULL), OK);
    assert_true(str_equal(read.files[0].partitions, entry.partitions));
}

static void only_nulls_have_no_bounds(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    AUTO_METADATA struct metadata *metadata = fixture_table(
        "2", "{'source-id':2,'name':'ts_hour','transform':'hour'}");
    struct partition_value none = {.is_null = true};
    struct data_file file = file_of("a", &none);
    struct manifest_file entry = {0};
    struct manifest_list list = {&entry, 1};
    str bytes = {NULL, 0};
    assert_int_equal(write(arena, metadata, &file, 1, &bytes, &entry, NULL), OK);
    entry.sequence_number = 1;
    entry.min_sequence_number = 1;
    assert_int_equal(manifest_list_write(arena, 2, 77, false, 0, 1, -1, &list, &bytes, NULL), OK);
    const struct avro_value *record = avro_file_record(read_back(arena, bytes), 0);
    const struct avro_value *summary = &member(record, 507)->items[0];
    assert_int_equal(member(summary, 510)->kind, AVRO_VALUE_NULL);
    assert_int_equal(member(summary, 511)->kind, AVRO_VALUE_NULL);
}

/* 38: day is a date; 41: fixed of the declared width; 45: names are made fit, the original is
 * kept. */
static void iceberg_8_2_38_41_45_partition_types_and_names(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    AUTO_JSON json_t *request = fixture_json(
        "{'schema':{'type':'struct','fields':["
        "{'id':1,'name':'d','required':false,'type':'decimal(9,2)'},"
        "{'id':2,'name':'f','required':false,'type':'fixed[5]'},"
        "{'id':3,'name':'u','required':false,'type':'uuid'},"
        "{'id':4,'name':'e','required':false,'type':'decimal(9,2)'},"
        "{'id':5,'name':'t','required':false,'type':'timestamptz'}]},"
        "'partition-spec':{'fields':["
        "{'source-id':1,'name':'d','transform':'identity'},"
        "{'source-id':2,'name':'f','transform':'identity'},"
        "{'source-id':3,'name':'u','transform':'identity'},"
        "{'source-id':4,'name':'9 é🙂','transform':'void'},"
        "{'source-id':5,'name':'m','transform':'month'}]}}");
    u8 next = 0;
    struct seam seam = fixture_seam(&next);
    AUTO_METADATA struct metadata *metadata = NULL;
    assert_int_equal(metadata_create(request, STR("file:///w/t"), &seam, &metadata, NULL), OK);
    struct partition_value values[5] = {
        {.is_null = true}, {.is_null = true}, {.is_null = true}, {.is_null = true}, {.number = 7}};
    struct data_file file = file_of("a", values);
    struct manifest_file entry = {0};
    struct error error = {0};
    str bytes = {NULL, 0};
    assert_int_equal(write(arena, metadata, &file, 1, &bytes, &entry, &error), OK);
    str text = avro_file_schema(read_back(arena, bytes));
    AUTO_JSON json_t *schema = json_loadb(text.data, text.size, 0, NULL);
    const json_t *data = json_array_get(json_object_get(schema, "fields"), 4);
    const json_t *file_fields = json_object_get(json_object_get(data, "type"), "fields");
    const json_t *partition = json_object_get(json_array_get(file_fields, 3), "type");
    assert_json(
        json_object_get(partition, "fields"),
        "[{'name':'d','type':['null',{'type':'fixed','name':'decimal_9_2','size':4,"
        "'logicalType':'decimal','precision':9,'scale':2}],'default':null,'field-id':1000},"
        "{'name':'f','type':['null',{'type':'fixed','name':'fixed_5','size':5}],'default':null,"
        "'field-id':1001},"
        "{'name':'u','type':['null',{'type':'fixed','name':'uuid_fixed','size':16,"
        "'logicalType':'uuid'}],'default':null,'field-id':1002},"
        "{'name':'_9_x20_xE9_xD83D_xDE42','type':['null','decimal_9_2'],'default':null,"
        "'field-id':1003,'iceberg-field-name':'9 é🙂'},"
        "{'name':'m','type':['null','int'],'default':null,'field-id':1004}]");
    values[2] = (struct partition_value){.number = 1};
    assert_int_equal(write(arena, metadata, &file, 1, &bytes, &entry, &error), INVALID);
}

static void iceberg_8_2_53_a_path_is_written_once(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    struct data_file files[2] = {file_of("a", NULL), file_of("a", NULL)};
    struct manifest_file entry = {0};
    str bytes = {NULL, 0};
    assert_int_equal(write(arena, metadata, files, 2, &bytes, &entry, NULL), INVALID);
}

static void a_list_is_read_as_it_was_written(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    struct manifest_file files[2] = {{.path = STR("file:///a.avro"),
                                      .length = 5000000000,
                                      .spec_id = 3,
                                      .sequence_number = 9,
                                      .min_sequence_number = 0, /* 37: a real value */
                                      .added_snapshot_id = 9007199254740993,
                                      .added_files = 1,
                                      .existing_files = 2,
                                      .deleted_files = 3,
                                      .added_rows = 4,
                                      .existing_rows = 5000000000,
                                      .deleted_rows = 6,
                                      .first_row_id = 0,
                                      .key_metadata = STR("key")},
                                     {.path = STR("file:///d.avro"),
                                      .length = 1,
                                      .content = 1, /* 43: deletes stay deletes */
                                      .sequence_number = 9,
                                      .min_sequence_number = 9,
                                      .added_snapshot_id = 1,
                                      .first_row_id = -1}};
    struct manifest_list list = {files, 2};
    for (i32 version = 2; version <= 3; version++) {
        struct manifest_list read = {0};
        str bytes = {NULL, 0};
        assert_int_equal(manifest_list_write(arena, version, 5, true, 4, 9, version == 3 ? 100 : -1,
                                             &list, &bytes, NULL),
                         OK);
        assert_int_equal(manifest_list_read(arena, bytes, &read, NULL), OK);
        assert_int_equal(read.count, 2);
        assert_str(read.files[0].path, "file:///a.avro");
        assert_int_equal(read.files[0].length, 5000000000);
        assert_int_equal(read.files[0].spec_id, 3);
        assert_int_equal(read.files[0].min_sequence_number, 0);
        assert_int_equal(read.files[0].added_snapshot_id, 9007199254740993);
        assert_int_equal(read.files[0].existing_files, 2);
        assert_int_equal(read.files[0].existing_rows, 5000000000);
        assert_int_equal(read.files[0].first_row_id, version == 3 ? 0 : -1);
        assert_str(read.files[0].key_metadata, "key");
        assert_int_equal(read.files[1].content, 1);
        assert_null(read.files[1].key_metadata.data);
        assert_int_equal(read.files[1].partitions.size, 0);
        const struct avro_file *avro = read_back(arena, bytes);
        assert_str(avro_file_meta(avro, STR("parent-snapshot-id")), "4");
        assert_str(avro_file_meta(avro, STR("sequence-number")), "9");
        if (version == 3) {
            assert_str(avro_file_meta(avro, STR("first-row-id")), "100");
        }
    }
}

/* A manifest list as others write them. */
static str foreign(struct arena *arena, const char *schema, str records, i64 count)
{
    AUTO_JSON json_t *document = fixture_json(schema);
    char text[4000];
    size_t size = json_dumpb(document, text, sizeof(text), JSON_COMPACT);
    buf out = buf_create(arena, KIB, MIB);
    assert_true(size < sizeof(text));
    assert_int_equal(
        avro_write(&out, arena, (str){text, size}, NULL, 0, AVRO_NULL, records, count, NULL), OK);
    return buf_str(&out);
}

/* 35: old names of the counts, by id. 48: what is optional elsewhere may be missing. */
static void iceberg_8_2_35_and_48_foreign_lists_are_read_by_id(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    buf records = buf_create(arena, KIB, MIB);
    avro_put_long(&records, 7); /* the old name of 504 */
    avro_put_bytes(&records, STR("file:///m.avro"));
    avro_put_branch(&records, 1);
    avro_put_long(&records, 99);
    avro_put_branch(&records, 0); /* no rows */
    str bytes = foreign(arena,
                        "{'type':'record','name':'x','fields':["
                        "{'name':'added_data_files_count','type':'int','field-id':504},"
                        "{'name':'p','type':'string','field-id':500},"
                        "{'name':'l','type':['null','long'],'field-id':501},"
                        "{'name':'added_rows_count','type':['null','long'],'field-id':512}]}",
                        buf_str(&records), 1);
    struct manifest_list read = {0};
    assert_int_equal(manifest_list_read(arena, bytes, &read, NULL), OK);
    assert_str(read.files[0].path, "file:///m.avro");
    assert_int_equal(read.files[0].length, 99);
    assert_int_equal(read.files[0].added_files, 7);
    assert_int_equal(read.files[0].added_rows, -1);
    assert_int_equal(read.files[0].content, 0);
    assert_int_equal(read.files[0].sequence_number, 0);
    str again = {NULL, 0};
    assert_int_equal(manifest_list_write(arena, 2, 1, false, 0, 1, -1, &read, &again, NULL),
                     INVALID); /* never with counts that are made up */
}

static void counts_are_taken_from_the_manifest_itself(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    struct data_file files[2] = {file_of("a", NULL), file_of("b", NULL)};
    struct manifest_file entry = {0};
    str bytes = {NULL, 0};
    assert_int_equal(write(arena, metadata, files, 2, &bytes, &entry, NULL), OK);
    struct manifest_file counted = {.added_files = -1, .deleted_rows = -1, .spec_id = 4};
    assert_int_equal(manifest_count(arena, bytes, &counted, NULL), OK);
    assert_int_equal(counted.added_files, 2);
    assert_int_equal(counted.added_rows, 20);
    assert_int_equal(counted.existing_files, 0);
    assert_int_equal(counted.deleted_rows, 0);
    assert_int_equal(counted.spec_id, 4);
    assert_int_equal(manifest_count(arena, STR("Obj"), &counted, NULL), CORRUPT);
}

static void lists_that_are_no_lists_are_corrupt(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    buf records = buf_create(arena, KIB, MIB);
    avro_put_bytes(&records, STR("file:///m.avro"));
    struct manifest_list read = {0};
    assert_int_equal(manifest_list_read(arena, STR("nonsense"), &read, NULL), CORRUPT);
    str no_path = foreign(arena,
                          "{'type':'record','name':'x','fields':[{'name':'p','type':'string',"
                          "'field-id':9}]}",
                          buf_str(&records), 1);
    assert_int_equal(manifest_list_read(arena, no_path, &read, NULL), CORRUPT);
    str no_length = foreign(arena,
                            "{'type':'record','name':'x','fields':[{'name':'p','type':'string',"
                            "'field-id':500}]}",
                            buf_str(&records), 1);
    assert_int_equal(manifest_list_read(arena, no_length, &read, NULL), CORRUPT);
    str no_record = foreign(arena, "'string'", buf_str(&records), 1);
    assert_int_equal(manifest_list_read(arena, no_record, &read, NULL), CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iceberg_8_2_28_to_43_manifest_schema_is_the_reference_librarys),
        cmocka_unit_test(iceberg_8_2_34_counts_of_a_list_are_required),
        cmocka_unit_test(iceberg_8_2_31_and_32_the_header_has_all_six_keys),
        cmocka_unit_test(entries_say_what_the_file_is),
        cmocka_unit_test(iceberg_8_2_42_no_split_offsets_are_null),
        cmocka_unit_test(iceberg_8_2_33_and_44_the_list_entry_is_exact),
        cmocka_unit_test(partition_summaries_cover_all_values),
        cmocka_unit_test(only_nulls_have_no_bounds),
        cmocka_unit_test(iceberg_8_2_38_41_45_partition_types_and_names),
        cmocka_unit_test(iceberg_8_2_53_a_path_is_written_once),
        cmocka_unit_test(a_list_is_read_as_it_was_written),
        cmocka_unit_test(iceberg_8_2_35_and_48_foreign_lists_are_read_by_id),
        cmocka_unit_test(counts_are_taken_from_the_manifest_itself),
        cmocka_unit_test(lists_that_are_no_lists_are_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
