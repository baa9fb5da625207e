#include "table_fixture.h"

static err create(const char *request, struct metadata **out_metadata, struct error *error)
{
    u8 next = 0;
    struct seam seam = fixture_seam(&next);
    AUTO_JSON json_t *document = fixture_json(request);
    return metadata_create(document, STR("file:///w/t/"), &seam, out_metadata, error);
}

static void a_new_table_has_every_member_a_reader_wants(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    assert_int_equal(metadata_uuid(metadata).size, 36);
    json_object_del((json_t *)(uintptr_t)metadata_json(metadata), "table-uuid");
    assert_json(metadata_json(metadata),
                "{'format-version':2,'location':'file:///w/t','last-sequence-number':0,"
                "'last-updated-ms':1790000000000,'last-column-id':3,'current-schema-id':0,"
                "'schemas':[" FIXTURE_COLUMNS
                "],'default-spec-id':0,'partition-specs':[{'spec-id':0,'fields':[]}],"
                "'last-partition-id':999,'default-sort-order-id':0,'sort-orders':[{'order-id':0,"
                "'fields':[]}],'properties':{'write.parquet.compression-codec':'zstd',"
                "'owner':'anna'},'current-snapshot-id':-1,'refs':{},'snapshots':[],"
                "'snapshot-log':[],'metadata-log':[],'statistics':[],'partition-statistics':[]}");
}

static void iceberg_8_1_22_version_3_has_next_row_id_at_the_top(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("3", "");
    assert_json(fixture_member(metadata, "next-row-id"), "0");
    assert_json(fixture_member(metadata, "current-snapshot-id"), "null");
    assert_int_equal(metadata_next_row_id(metadata), 0);
}

static void reserved_properties_are_used_and_not_kept(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = NULL;
    assert_int_equal(create("{'schema':" FIXTURE_COLUMNS
                            ",'properties':{'format-version':'3','uuid':'x',"
                            "'current-schema':'y','write.parquet.compression-codec':'snappy'}}",
                            &metadata, NULL),
                     OK);
    assert_int_equal(metadata_format_version(metadata), 3);
    assert_json(fixture_member(metadata, "properties"),
                "{'write.parquet.compression-codec':'snappy'}");
}

/* iceberg_8_1_19: partition field ids begin at 1000. */
static void iceberg_8_1_19_ids_are_given_afresh_and_followed_everywhere(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = NULL;
    struct error error = {0};
    err result = create(
        "{'schema':{'type':'struct','identifier-field-ids':[40],'fields':["
        "{'id':30,'name':'s','required':false,'type':{'type':'struct','fields':["
        "{'id':35,'name':'at','required':false,'type':'timestamp'}]}},"
        "{'id':40,'name':'id','required':true,'type':'long'}]},"
        "'partition-spec':{'fields':[{'source-id':35,'field-id':7,'name':'h','transform':'hour'},"
        "{'source-id':40,'name':'b','transform':'bucket[8]'}]},"
        "'write-order':{'order-id':5,'fields':[{'source-id':40,'transform':'identity',"
        "'direction':'asc','null-order':'nulls-first'}]}}",
        &metadata, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(result, OK);
    assert_json(json_array_get(fixture_member(metadata, "schemas"), 0),
                "{'type':'struct','schema-id':0,'identifier-field-ids':[2],'fields':["
                "{'id':1,'name':'s','required':false,'type':{'type':'struct','fields':["
                "{'id':3,'name':'at','required':false,'type':'timestamp'}]}},"
                "{'id':2,'name':'id','required':true,'type':'long'}]}");
    assert_json(fixture_member(metadata, "partition-specs"),
                "[{'spec-id':0,'fields':[{'source-id':3,'field-id':1000,'name':'h',"
                "'transform':'hour'},{'source-id':2,'field-id':1001,'name':'b',"
                "'transform':'bucket[8]'}]}]");
    assert_json(fixture_member(metadata, "sort-orders"),
                "[{'order-id':1,'fields':[{'source-id':2,'transform':'identity',"
                "'direction':'asc','null-order':'nulls-first'}]}]");
    assert_json(fixture_member(metadata, "last-partition-id"), "1001");
    assert_json(fixture_member(metadata, "default-sort-order-id"), "1");
    assert_int_equal(metadata_last_column_id(metadata), 3);
}

static void requests_that_cannot_become_a_table_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        enum error_code code;
        const char *message;
    } CASES[] = {
        {"{}", ERROR_INVALID_REQUEST, "schema"},
        {"{'schema':" FIXTURE_COLUMNS ",'properties':{'format-version':'0'}}",
         ERROR_FORMAT_VERSION_UNSUPPORTED, "format version: 0"},
        {"{'schema':" FIXTURE_COLUMNS ",'properties':{'format-version':'4'}}",
         ERROR_FORMAT_VERSION_UNSUPPORTED, "format version: 4"},
        {"{'schema':" FIXTURE_COLUMNS ",'properties':{'a':1}}", ERROR_INVALID_REQUEST,
         "property a"},
        {"{'schema':{'type':'struct','fields':[{'id':1,'name':'v','required':false,"
         "'type':'variant'}]}}",
         ERROR_INVALID_REQUEST, "variant is not supported until v3"},
        {"{'schema':{'type':'struct','fields':[{'id':1,'name':'v','required':false,"
         "'type':'timestamptz_ns'}]}}",
         ERROR_INVALID_REQUEST, "timestamptz_ns is not supported until v3"},
        {"{'schema':{'type':'struct','fields':[{'id':1,'name':'v','required':false,'type':'int',"
         "'write-default':4}]}}",
         ERROR_INVALID_REQUEST, "default is not supported until v3"},
        {"{'schema':{'type':'struct','fields':[{'id':1,'name':'v','required':false,'type':'int'},"
         "{'id':1,'name':'w','required':false,'type':'int'}]}}",
         ERROR_INVALID_REQUEST, "multiple fields for id 1"},
        {"{'schema':{'type':'struct','identifier-field-ids':[1],'fields':[{'id':1,'name':'v',"
         "'required':false,'type':'int'}]}}",
         ERROR_INVALID_REQUEST, "identifier field"},
        {"{'schema':{'type':'struct','identifier-field-ids':[9],'fields':[]}}",
         ERROR_INVALID_REQUEST, "does not exist"},
        {"{'schema':" FIXTURE_COLUMNS ",'partition-spec':{'fields':[{'source-id':9,'name':'p',"
         "'transform':'day'}]}}",
         ERROR_INVALID_REQUEST, "source column"},
        {"{'schema':" FIXTURE_COLUMNS ",'partition-spec':{'fields':[{'source-id':1,'name':'p',"
         "'transform':'day'}]}}",
         ERROR_INVALID_REQUEST, "Invalid source type"},
        {"{'schema':" FIXTURE_COLUMNS ",'write-order':{'fields':[{'source-id':1,"
         "'transform':'identity','direction':'up','null-order':'nulls-first'}]}}",
         ERROR_INVALID_REQUEST, "sort order"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        struct metadata *metadata = NULL;
        struct error error = {0};
        err result = create(CASES[i].request, &metadata, &error);
        if (result != INVALID || error.code != CASES[i].code ||
            strstr(error.message, CASES[i].message) == NULL) {
            fail_msg("%s \"%s\" for %s", err_text(result), error.message, CASES[i].request);
        }
    }
}

static const char STAGED[] =
    "[{'action':'assign-uuid','uuid':'11111111-2222-3333-4444-555555555555'},"
    "{'action':'upgrade-format-version','format-version':3},"
    "{'action':'add-schema','schema':" FIXTURE_COLUMNS ",'last-column-id':3},"
    "{'action':'set-current-schema','schema-id':-1},"
    "{'action':'add-spec','spec':{'spec-id':0,'fields':[{'source-id':2,'name':'ts_day',"
    "'transform':'day'}]}},{'action':'set-default-spec','spec-id':-1},"
    "{'action':'add-sort-order','sort-order':{'order-id':0,'fields':[]}},"
    "{'action':'set-default-sort-order','sort-order-id':-1},"
    "{'action':'set-location','location':'file:///w/elsewhere'},"
    "{'action':'set-properties','updates':{'a':'b'}},"
    "{'action':'add-snapshot','snapshot':{'snapshot-id':5,'sequence-number':1,"
    "'timestamp-ms':1790000000500,'manifest-list':'l','summary':{'operation':'append'},"
    "'schema-id':0,'first-row-id':0,'added-rows':12}},"
    "{'action':'set-snapshot-ref','ref-name':'main','type':'branch','snapshot-id':5}]";

static void the_end_of_a_staged_create_makes_the_table(void **state)
{
    (void)state;
    u8 next = 0;
    struct seam seam = fixture_seam(&next);
    AUTO_JSON json_t *updates = fixture_json(STAGED);
    AUTO_METADATA struct metadata *metadata = NULL;
    struct error error = {0};
    err result = metadata_create_from_updates(updates, STR("file:///w/t"), &seam, &metadata,
                                              &error);
    assert_string_equal(error.message, "");
    assert_int_equal(result, OK);
    assert_int_equal(metadata_format_version(metadata), 3);
    assert_str(metadata_uuid(metadata), "11111111-2222-3333-4444-555555555555");
    assert_str(metadata_location(metadata), "file:///w/elsewhere");
    assert_int_equal(metadata_next_row_id(metadata), 12);
    assert_json(fixture_member(metadata, "last-updated-ms"), "1790000000500");
    assert_json(fixture_member(metadata, "last-partition-id"), "1000");
    assert_json(fixture_member(metadata, "metadata-log"), "[]");
}

static void a_staged_create_without_a_schema_is_refused(void **state)
{
    (void)state;
    u8 next = 0;
    struct seam seam = fixture_seam(&next);
    AUTO_JSON json_t *updates = fixture_json("[{'action':'set-properties','updates':{'a':'b'}}]");
    struct metadata *metadata = NULL;
    assert_int_equal(
        metadata_create_from_updates(updates, STR("file:///w/t"), &seam, &metadata, NULL), INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_table_has_every_member_a_reader_wants),
        cmocka_unit_test(iceberg_8_1_22_version_3_has_next_row_id_at_the_top),
        cmocka_unit_test(reserved_properties_are_used_and_not_kept),
        cmocka_unit_test(iceberg_8_1_19_ids_are_given_afresh_and_followed_everywhere),
        cmocka_unit_test(requests_that_cannot_become_a_table_are_refused),
        cmocka_unit_test(the_end_of_a_staged_create_makes_the_table),
        cmocka_unit_test(a_staged_create_without_a_schema_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
