#include "table_fixture.h"

static const char V2[] =
    "{'format-version':2,'table-uuid':'0c1f9f7e-1c9d-4b0e-8a0e-9f6f3a1d2b3c',"
    "'location':'file:///w/t/','last-sequence-number':4,'last-updated-ms':1700000000123,"
    "'last-column-id':3,'current-schema-id':0,'schemas':[" FIXTURE_COLUMNS "],"
    "'default-spec-id':1,'partition-specs':[{'spec-id':0,'fields':[]},{'spec-id':1,'fields':["
    "{'source-id':2,'field-id':1000,'name':'ts_day','transform':'day'}]}],"
    "'last-partition-id':1000,'default-sort-order-id':0,'sort-orders':[{'order-id':0,"
    "'fields':[]}],'properties':{'a':'b','n':'17','bad':'x1'},"
    "'current-snapshot-id':9007199254740993,'snapshots':[{'snapshot-id':9007199254740993,"
    "'sequence-number':4,'timestamp-ms':1700000000000,'manifest-list':'file:///w/t/l.avro',"
    "'summary':{'operation':'append'},'schema-id':0,'odd':{'kept':[1,2.5]}}],"
    "'refs':{'main':{'snapshot-id':9007199254740993,'type':'branch'}},"
    "'snapshot-log':[{'timestamp-ms':1700000000000,'snapshot-id':9007199254740993}],"
    "'metadata-log':[],'statistics':[],'partition-statistics':[],'x-unknown':{'deep':null}}";

/* The text with ' for " as bytes. */
static str quoted(struct arena *arena, const char *text)
{
    AUTO_JSON json_t *value = fixture_json(text);
    size_t size = json_dumpb(value, NULL, 0, JSON_COMPACT);
    char *bytes = arena_alloc(arena, size);
    assert_int_equal(json_dumpb(value, bytes, size, JSON_COMPACT), size);
    return (str){bytes, size};
}

static struct metadata *parse(const char *text)
{
    AUTO_ARENA struct arena *arena = arena_create(4 * MIB);
    struct metadata *metadata = NULL;
    struct error error = {0};
    if (metadata_parse(quoted(arena, text), &metadata, &error) != OK) {
        fail_msg("%s: %s", error.message, text);
    }
    return metadata;
}

static void getters_say_what_the_document_says(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = parse(V2);
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    i64 main_id = 0;
    struct schema schema = {0};
    struct partition_spec spec = {0};
    assert_int_equal(metadata_format_version(metadata), 2);
    assert_str(metadata_uuid(metadata), "0c1f9f7e-1c9d-4b0e-8a0e-9f6f3a1d2b3c");
    assert_str(metadata_location(metadata), "file:///w/t");
    assert_int_equal(metadata_last_sequence_number(metadata), 4);
    assert_int_equal(metadata_last_updated(metadata), 1700000000123000);
    assert_int_equal(metadata_last_column_id(metadata), 3);
    assert_int_equal(metadata_next_row_id(metadata), -1);
    assert_true(metadata_main(metadata, &main_id));
    assert_non_null(metadata_snapshot(metadata, main_id));
    assert_null(metadata_snapshot(metadata, main_id - 1));
    assert_str(metadata_property(metadata, "a"), "b");
    assert_null(metadata_property(metadata, "z").data);
    assert_int_equal(metadata_property_i64(metadata, "n", 5), 17);
    assert_int_equal(metadata_property_i64(metadata, "bad", 5), 5);
    assert_int_equal(metadata_schema(arena, metadata, &schema, NULL), OK);
    assert_int_equal(schema.root.field_count, 3);
    assert_int_equal(metadata_spec(arena, metadata, &spec, NULL), OK);
    assert_int_equal(spec.id, 1);
    assert_int_equal(spec.fields[0].transform, PARTITION_DAY);
    assert_int_equal(metadata_schema_by_id(arena, metadata, 7, &schema, NULL), CORRUPT);
    assert_int_equal(metadata_spec_by_id(arena, metadata, 0, &spec, NULL), OK);
    assert_int_equal(spec.count, 0);
}

static void iceberg_8_1_11_ids_and_unknown_members_survive_exactly(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = parse(V2);
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    str bytes = {NULL, 0};
    i64 main_id = 0;
    assert_int_equal(metadata_print(arena, metadata, &bytes, NULL), OK);
    assert_true(str_find(bytes, STR("\"current-snapshot-id\":9007199254740993,")) > 0);
    assert_true(metadata_main(metadata, &main_id));
    assert_int_equal(main_id, 9007199254740993);
    AUTO_JSON json_t *again = json_loadb(bytes.data, bytes.size, 0, NULL);
    AUTO_JSON json_t *wanted = fixture_json(V2);
    assert_true(json_equal(again, wanted));
    assert_int_equal(str_find_byte(bytes, '\n'), -1);
}

static struct metadata *parse_without_snapshots(const char *version, const char *current)
{
    char text[2048];
    (void)snprintf(text, sizeof(text),
                   "{'format-version':%s,'table-uuid':'u','location':'file:///w/t',"
                   "'last-sequence-number':0,'last-updated-ms':1,'last-column-id':3,"
                   "'current-schema-id':0,'schemas':[" FIXTURE_COLUMNS "],'default-spec-id':0,"
                   "'partition-specs':[{'spec-id':0,'fields':[]}],'last-partition-id':999,"
                   "'default-sort-order-id':0,'sort-orders':[{'order-id':0,'fields':[]}]%s}",
                   version, current);
    return parse(text);
}

static void iceberg_8_1_1_an_empty_table_is_read_in_every_form(void **state)
{
    (void)state;
    static const char *const FORMS[] = {"", ",'current-snapshot-id':-1",
                                        ",'current-snapshot-id':null",
                                        ",'refs':null,'snapshots':null,'statistics':null"};
    for (size_t i = 0; i < ARRAY_COUNT(FORMS); i++) {
        AUTO_METADATA struct metadata *v2 = parse_without_snapshots("2", FORMS[i]);
        AUTO_METADATA struct metadata *v3 = parse_without_snapshots("3,'next-row-id':0", FORMS[i]);
        i64 id = 0;
        assert_false(metadata_main(v2, &id));
        assert_false(metadata_main(v3, &id));
        assert_json(fixture_member(v2, "current-snapshot-id"), "-1");
        assert_json(fixture_member(v3, "current-snapshot-id"), "null");
        assert_json(fixture_member(v2, "snapshots"), "[]");
        assert_json(fixture_member(v2, "refs"), "{}");
        assert_json(fixture_member(v2, "properties"), "{}");
        assert_int_equal(metadata_next_row_id(v3), 0);
    }
}

static void iceberg_8_1_21_older_documents_are_completed(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = parse(
        "{'format-version':1,'location':'file:///w/t','last-updated-ms':1,'last-column-id':3,"
        "'schema':{'type':'struct','fields':[{'id':2,'name':'ts','required':false,"
        "'type':'timestamp'}]},'partition-spec':[{'source-id':2,'name':'ts_day',"
        "'transform':'day'}],'current-snapshot-id':5,'snapshots':[{'snapshot-id':5,"
        "'timestamp-ms':1,'parent-snapshot-id':null,'manifests':['a','b']}]}");
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct schema schema = {0};
    struct partition_spec spec = {0};
    assert_int_equal(metadata_schema(arena, metadata, &schema, NULL), OK);
    assert_int_equal(metadata_spec(arena, metadata, &spec, NULL), OK);
    assert_int_equal(spec.fields[0].field_id, 1000);
    assert_json(fixture_member(metadata, "last-partition-id"), "1000");
    assert_json(fixture_member(metadata, "refs"), "{'main':{'snapshot-id':5,'type':'branch'}}");
    assert_json(json_array_get(fixture_member(metadata, "snapshots"), 0),
                "{'snapshot-id':5,'timestamp-ms':1,'manifests':['a','b']}");
}

static void documents_that_no_reader_opens_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        const char *value; /* NULL: the member is taken away */
        const char *message;
    } CASES[] = {
        {"format-version", "4", "unsupported version 4"},
        {"format-version", "'2'", "unsupported version"},
        {"format-version", "3", "next-row-id"},
        {"location", NULL, "location"},
        {"table-uuid", NULL, "table-uuid"},
        {"last-updated-ms", "1.5", "last-updated-ms"},
        {"last-column-id", NULL, "last-column-id"},
        {"current-schema-id", "7", "no schema-id 7"},
        {"default-spec-id", NULL, "spec-id"},
        {"default-sort-order-id", "3", "no order-id 3"},
        {"partition-specs", "[{'spec-id':1,'fields':[]},{'spec-id':1,'fields':[]}]", "twice"},
        {"refs", "{'main':{'snapshot-id':1,'type':'branch'}}", "names no snapshot"},
        {"current-snapshot-id", "-1", "main is not the current snapshot"},
        {"last-sequence-number", "3", "ahead of last-sequence-number"},
        {"snapshots", "[{'sequence-number':1}]", "no snapshot-id"},
        {"partition-specs", "[{'spec-id':1}]", "item of partition-specs has no fields"},
        {"schemas", "[{'schema-id':0,'fields':null}]", "item of schemas has no fields"},
        {"sort-orders", "[{'order-id':0,'fields':{}}]", "item of sort-orders has no fields"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        AUTO_JSON json_t *document = fixture_json(V2);
        if (CASES[i].value == NULL) {
            json_object_del(document, CASES[i].key);
        } else {
            json_object_set_new(document, CASES[i].key, fixture_json(CASES[i].value));
        }
        struct metadata *metadata = NULL;
        struct error error = {0};
        assert_int_equal(metadata_from_json(document, &metadata, &error), INVALID);
        if (strstr(error.message, CASES[i].message) == NULL) {
            fail_msg("%s: %s", CASES[i].key, error.message);
        }
    }
}

static void iceberg_8_1_27_equal_snapshot_ids_are_refused(void **state)
{
    (void)state;
    AUTO_JSON json_t *document = fixture_json(V2);
    json_t *snapshots = json_object_get(document, "snapshots");
    json_array_append_new(snapshots, json_deep_copy(json_array_get(snapshots, 0)));
    struct metadata *metadata = NULL;
    assert_int_equal(metadata_from_json(document, &metadata, NULL), INVALID);
}

static void bytes_that_are_no_json_are_corrupt(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"",
                                        "{",
                                        "[1,2",
                                        "{\"a\":1}x",
                                        "{\"a\":1,\"a\":2}",
                                        "{\"a\":99999999999999999999}",
                                        "{\"a\":\"\xff\"}"};
    for (size_t i = 0; i < ARRAY_COUNT(TEXTS); i++) {
        struct metadata *metadata = NULL;
        assert_int_equal(metadata_parse(str_from(TEXTS[i]), &metadata, NULL), CORRUPT);
    }
    struct metadata *metadata = NULL;
    assert_int_equal(metadata_parse(STR("[]"), &metadata, NULL), INVALID);
    assert_int_equal(metadata_parse(STR("{}"), &metadata, NULL), INVALID);
}

static void a_copy_is_a_document_of_its_own(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = parse(V2);
    AUTO_METADATA struct metadata *copy = NULL;
    assert_int_equal(metadata_copy(metadata, &copy, NULL), OK);
    fixture_apply(copy, "[{'action':'set-properties','updates':{'a':'changed'}}]");
    assert_str(metadata_property(metadata, "a"), "b");
    assert_str(metadata_property(copy, "a"), "changed");
    metadata_close(NULL);
}

/* Each kind of update on a copy, which shares items with its original. */
static void updates_of_a_copy_leave_the_original_alone(void **state)
{
    (void)state;
    static const char *const UPDATES =
        "[{'action':'add-schema','schema':{'type':'struct','fields':["
        "{'id':1,'name':'id','required':true,'type':'long'},"
        "{'id':9,'name':'more','required':false,'type':'string'}]}},"
        "{'action':'set-current-schema','schema-id':-1},"
        "{'action':'add-spec','spec':{'fields':[{'source-id':1,'transform':'bucket[4]',"
        "'name':'id_bucket'}]}},{'action':'set-default-spec','spec-id':-1},"
        "{'action':'add-sort-order','sort-order':{'order-id':1,'fields':[{'source-id':1,"
        "'transform':'identity','direction':'asc','null-order':'nulls-first'}]}},"
        "{'action':'set-default-sort-order','sort-order-id':-1},"
        "{'action':'set-properties','updates':{'owner':'berta'}},"
        "{'action':'add-snapshot','snapshot':{'snapshot-id':%d,'sequence-number':%d,"
        "'timestamp-ms':1790000000000,'manifest-list':'m','summary':{'operation':'append'}}},"
        "{'action':'set-snapshot-ref','ref-name':'main','type':'branch','snapshot-id':%d,"
        "'min-snapshots-to-keep':%d},"
        "{'action':'set-statistics','statistics':{'snapshot-id':%d,'statistics-path':'s%d',"
        "'file-size-in-bytes':1,'file-footer-size-in-bytes':1,'blob-metadata':[]}}]";
    char text[4096];
    AUTO_ARENA struct arena *arena = arena_create(16 * MIB);
    AUTO_METADATA struct metadata *original = fixture_table("2", "");
    (void)snprintf(text, sizeof(text), UPDATES, 1, 1, 1, 1, 1, 1);
    fixture_apply(original, text);
    str before = fixture_text(arena, original);
    AUTO_METADATA struct metadata *copy = NULL;
    assert_int_equal(metadata_copy(original, &copy, NULL), OK);
    assert_true(str_equal(fixture_text(arena, copy), before));
    (void)snprintf(text, sizeof(text), UPDATES, 2, 2, 2, 7, 1, 2);
    fixture_apply(copy, text);
    fixture_apply(copy, "[{'action':'remove-snapshots','snapshot-ids':[1]}]");
    assert_true(str_equal(fixture_text(arena, original), before));
    assert_false(str_equal(fixture_text(arena, copy), before));
    metadata_close(original);
    original = NULL; /* what they shared lives on */
    assert_null(metadata_snapshot(copy, 1));
    assert_non_null(metadata_snapshot(copy, 2));
    (void)fixture_text(arena, copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_of_a_copy_leave_the_original_alone),
        cmocka_unit_test(getters_say_what_the_document_says),
        cmocka_unit_test(iceberg_8_1_11_ids_and_unknown_members_survive_exactly),
        cmocka_unit_test(iceberg_8_1_1_an_empty_table_is_read_in_every_form),
        cmocka_unit_test(iceberg_8_1_21_older_documents_are_completed),
        cmocka_unit_test(documents_that_no_reader_opens_are_refused),
        cmocka_unit_test(iceberg_8_1_27_equal_snapshot_ids_are_refused),
        cmocka_unit_test(bytes_that_are_no_json_are_corrupt),
        cmocka_unit_test(a_copy_is_a_document_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
