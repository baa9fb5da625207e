#include "table_fixture.h"

/* add-snapshot and set-snapshot-ref main, `n` being id, sequence number and list. */
#define SNAPSHOT(n)                                                                                \
    "{'action':'add-snapshot','snapshot':{'snapshot-id':" #n ",'sequence-number':" #n              \
    ",'timestamp-ms':179000000000" #n ",'manifest-list':'list" #n                                  \
    "','summary':{'operation':'append'},'schema-id':0}}"
#define MAIN(n)                                                                                    \
    "{'action':'set-snapshot-ref','ref-name':'main','type':'branch','snapshot-id':" #n "}"

static struct metadata *table_with_snapshots(void)
{
    struct metadata *metadata = fixture_table("2", "");
    fixture_apply(metadata, "[" SNAPSHOT(1) "," MAIN(1) "]");
    fixture_apply(metadata, "[" SNAPSHOT(2) "," MAIN(2) "]");
    fixture_apply(metadata, "[" SNAPSHOT(3) "," MAIN(3) "]");
    return metadata;
}

/* ---- stamps and logs ---- */

static void iceberg_8_1_9_every_change_moves_last_updated(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    fixture_apply(metadata, "[{'action':'set-properties','updates':{'a':'b'}}]");
    assert_json(fixture_member(metadata, "last-updated-ms"), "1790000000001");
    assert_json(fixture_member(metadata, "metadata-log"),
                "[{'timestamp-ms':1790000000000,'metadata-file':'file:///w/t/metadata/m0.json'}]");
}

static void iceberg_8_1_25_a_clock_that_ran_back_is_clamped(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    struct error error = {0};
    assert_int_equal(fixture_apply_at(metadata, FIXTURE_NOW - 3600 * TIME_SECOND_US,
                                      "[{'action':'remove-properties','removals':['owner']}]",
                                      &error),
                     OK);
    assert_json(fixture_member(metadata, "last-updated-ms"), "1790000000001");
}

static void updates_without_an_effect_stamp_nothing(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    instant before = metadata_last_updated(metadata);
    fixture_apply(metadata, "[]");
    fixture_apply(metadata, "[" MAIN(3) "]");
    fixture_apply(metadata, "[{'action':'set-location','location':'file:///w/t/'}]");
    fixture_apply(metadata, "[{'action':'remove-properties','removals':['none']}]");
    fixture_apply(metadata, "[{'action':'remove-snapshots','snapshot-ids':[77]}]");
    fixture_apply(metadata, "[{'action':'remove-snapshot-ref','ref-name':'none'}]");
    fixture_apply(metadata, "[{'action':'upgrade-format-version','format-version':2}]");
    fixture_apply(metadata, "[{'action':'remove-statistics','snapshot-id':3}]");
    assert_int_equal(metadata_last_updated(metadata), before);
    assert_int_equal(json_array_size(fixture_member(metadata, "metadata-log")), 3);
}

static void iceberg_8_1_23_the_log_is_trimmed_by_the_new_property(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *before = table_with_snapshots();
    AUTO_METADATA struct metadata *after = NULL;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    AUTO_JSON json_t *updates = fixture_json(
        "[{'action':'set-properties','updates':{'write.metadata.previous-versions-max':'2',"
        "'write.metadata.delete-after-commit.enabled':'true'}}]");
    str *gone = NULL;
    size_t count = 0;
    json_t *log = json_object_get(metadata_json(before), "metadata-log");
    json_object_set_new(json_array_get(log, 0), "metadata-file", json_string("first"));
    json_object_set_new(json_array_get(log, 1), "metadata-file", json_string("second"));
    json_object_set_new(json_array_get(log, 2), "metadata-file", json_string("third"));
    assert_int_equal(metadata_copy(before, &after, NULL), OK);
    assert_int_equal(metadata_apply(after, updates, FIXTURE_NOW, STR("fourth"), NULL), OK);
    assert_int_equal(json_array_size(fixture_member(after, "metadata-log")), 2);
    assert_int_equal(metadata_trimmed(arena, before, after, &gone, &count, NULL), OK);
    assert_int_equal(count, 2);
    assert_str(gone[0], "first");
    assert_str(gone[1], "second");
}

static void trimmed_files_stay_unless_the_table_asks(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *before = table_with_snapshots();
    AUTO_METADATA struct metadata *after = NULL;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    str *gone = NULL;
    size_t count = 7;
    assert_int_equal(metadata_copy(before, &after, NULL), OK);
    fixture_apply(after, "[{'action':'set-properties','updates':{"
                         "'write.metadata.previous-versions-max':'0'}}]");
    assert_int_equal(json_array_size(fixture_member(after, "metadata-log")), 1);
    assert_int_equal(metadata_trimmed(arena, before, after, &gone, &count, NULL), OK);
    assert_int_equal(count, 0);
}

/* ---- the table as a whole ---- */

static void a_uuid_is_never_changed(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    char text[200];
    (void)snprintf(text, sizeof(text), "[{'action':'assign-uuid','uuid':'%.*s'}]",
                   STR_ARG(metadata_uuid(metadata)));
    fixture_apply(metadata, text);
    fixture_refused(metadata, INVALID, "Cannot reassign",
                    "[{'action':'assign-uuid','uuid':'00000000-0000-0000-0000-000000000000'}]");
    fixture_refused(metadata, INVALID, "no uuid", "[{'action':'assign-uuid'}]");
}

static void iceberg_8_1_21_an_upgrade_keeps_old_snapshots(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    fixture_apply(metadata, "[{'action':'upgrade-format-version','format-version':3}]");
    assert_int_equal(metadata_next_row_id(metadata), 0);
    assert_json(json_array_get(fixture_member(metadata, "snapshots"), 0),
                "{'snapshot-id':1,'sequence-number':1,'timestamp-ms':1790000000001,"
                "'manifest-list':'list1','summary':{'operation':'append'},'schema-id':0}");
    fixture_refused(metadata, INVALID, "Cannot downgrade v3 table to v2",
                    "[{'action':'upgrade-format-version','format-version':2}]");
    fixture_refused(metadata, INVALID, "unsupported format version: v4",
                    "[{'action':'upgrade-format-version','format-version':4}]");
}

static void an_empty_table_says_so_in_the_form_of_its_version(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    assert_json(fixture_member(metadata, "current-snapshot-id"), "-1");
    fixture_apply(metadata, "[{'action':'upgrade-format-version','format-version':3}]");
    assert_json(fixture_member(metadata, "current-snapshot-id"), "null");
}

static void version_1_keeps_its_copies_until_it_is_upgraded(void **state)
{
    (void)state;
    AUTO_JSON json_t *document = fixture_json(
        "{'format-version':1,'table-uuid':'u','location':'file:///w/t','last-updated-ms':1,"
        "'last-column-id':1,'schema':{'type':'struct','fields':[{'id':1,'name':'a',"
        "'required':false,'type':'int'}]},'partition-spec':[]}");
    AUTO_METADATA struct metadata *metadata = NULL;
    assert_int_equal(metadata_from_json(document, &metadata, NULL), OK);
    fixture_apply(metadata,
                  "[{'action':'add-schema','schema':{'type':'struct','fields':[{'id':1,'name':'b',"
                  "'required':false,'type':'long'}]}},"
                  "{'action':'set-current-schema','schema-id':-1},"
                  "{'action':'add-spec','spec':{'fields':[{'source-id':1,'transform':'identity',"
                  "'name':'b'}]}},{'action':'set-default-spec','spec-id':-1}]");
    assert_json(fixture_member(metadata, "schema"),
                "{'type':'struct','schema-id':1,'fields':[{'id':1,'name':'b','required':false,"
                "'type':'long'}]}");
    assert_json(fixture_member(metadata, "partition-spec"),
                "[{'source-id':1,'transform':'identity','name':'b','field-id':1000}]");
    fixture_refused(metadata, INVALID, "sequential IDs that are required in v1",
                    "[{'action':'add-spec','spec':{'fields':[{'source-id':1,'field-id':1001,"
                    "'transform':'void','name':'c'}]}}]");
    fixture_apply(metadata, "[{'action':'add-snapshot','snapshot':{'snapshot-id':5,"
                            "'timestamp-ms':2,'manifest-list':'l','summary':"
                            "{'operation':'append'}}}]");
    fixture_apply(metadata, "[{'action':'upgrade-format-version','format-version':2}]");
    assert_null(fixture_member(metadata, "schema"));
    assert_null(fixture_member(metadata, "partition-spec"));
    assert_json(fixture_member(metadata, "current-schema-id"), "1");
}

static void properties_are_set_and_removed_under_both_names(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    fixture_apply(metadata, "[{'action':'set-properties','updates':{'a':'1','b':'2'}},"
                            "{'action':'set-properties','updated':{'c':'3','uuid':'no'}},"
                            "{'action':'remove-properties','removals':['a','none']},"
                            "{'action':'remove-properties','removed':['b']}]");
    assert_json(fixture_member(metadata, "properties"),
                "{'write.parquet.compression-codec':'zstd','owner':'anna','c':'3'}");
    fixture_refused(metadata, INVALID, "no string",
                    "[{'action':'set-properties','updates':{'a':1}}]");
    fixture_refused(metadata, INVALID, "no updates", "[{'action':'set-properties'}]");
    fixture_refused(metadata, INVALID, "no removals", "[{'action':'remove-properties'}]");
}

static void a_location_is_kept_without_its_last_slash(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    fixture_apply(metadata, "[{'action':'set-location','location':'s3://b/t//'}]");
    assert_json(fixture_member(metadata, "location"), "'s3://b/t'");
    fixture_refused(metadata, INVALID, "location", "[{'action':'set-location'}]");
}

static void encryption_keys_are_kept_as_sent(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("3", "");
    fixture_refused(metadata, INVALID, "key-id", "[{'action':'add-encryption-key'}]");
    fixture_apply(metadata, "[{'action':'add-encryption-key','encryption-key':{'key-id':'k1',"
                            "'encrypted-key-metadata':'bm8=','encrypted-by-id':'k0','x':1}}]");
    assert_json(fixture_member(metadata, "encryption-keys"),
                "[{'key-id':'k1','encrypted-key-metadata':'bm8=','encrypted-by-id':'k0','x':1}]");
    fixture_apply(metadata, "[{'action':'remove-encryption-key','key-id':'k1'}]");
    assert_json(fixture_member(metadata, "encryption-keys"), "[]");
}

static void unknown_and_malformed_updates_are_named(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    fixture_refused(metadata, INVALID, "unknown update fly-to-moon", "[{'action':'fly-to-moon'}]");
    fixture_refused(metadata, INVALID, "unknown update", "[{}]");
    fixture_refused(metadata, INVALID, "unknown update", "[3]");
    fixture_refused(metadata, INVALID, "no array", "{}");
}

/* ---- schemas ---- */

#define WITH_MORE(fields)                                                                          \
    "{'action':'add-schema','schema':{'type':'struct','schema-id':9,'fields':["                    \
    "{'id':1,'name':'id','required':true,'type':'long'},"                                          \
    "{'id':2,'name':'ts','required':false,'type':'timestamptz'},"                                  \
    "{'id':3,'name':'name','required':false,'type':'string'}" fields "]}}"

static void iceberg_8_1_17_last_column_id_never_goes_down(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    fixture_apply(
        metadata,
        "[" WITH_MORE(
            ",{'id':9,'name':'l','required':false,'type':{'type':'list',"
            "'element-id':12,'element':'int','element-required':false}}") ",{'action':'set-current-"
                                                                          "schema','schema-id':-1}"
                                                                          "]");
    assert_int_equal(metadata_last_column_id(metadata), 12);
    assert_json(fixture_member(metadata, "current-schema-id"), "1");
    assert_json(
        json_object_get(json_array_get(fixture_member(metadata, "schemas"), 1), "schema-id"), "1");
    fixture_apply(metadata, "[{'action':'set-current-schema','schema-id':0}]");
    assert_int_equal(metadata_last_column_id(metadata), 12);
}

static void iceberg_8_1_20_an_equal_schema_is_used_again(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    instant before = metadata_last_updated(metadata);
    fixture_apply(metadata, "[" WITH_MORE("") ",{'action':'set-current-schema','schema-id':-1}]");
    assert_int_equal(json_array_size(fixture_member(metadata, "schemas")), 1);
    assert_int_equal(metadata_last_updated(metadata), before);
    /* Another doc is another schema. */
    fixture_apply(metadata, "[" WITH_MORE(",{'id':4,'name':'n','required':false,"
                                          "'type':'decimal(9,2)','doc':'d'}") "]");
    fixture_apply(metadata, "[" WITH_MORE(",{'id':4,'name':'n','required':false,"
                                          "'type':'decimal(9, 2)','doc':'d'}") "]");
    assert_int_equal(json_array_size(fixture_member(metadata, "schemas")), 2);
    fixture_apply(metadata, "[" WITH_MORE(",{'id':4,'name':'n','required':false,"
                                          "'type':'decimal(9, 2)'}") "]");
    assert_int_equal(json_array_size(fixture_member(metadata, "schemas")), 3);
}

static void minus_one_is_what_this_request_added_last(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    fixture_refused(metadata, INVALID, "none has been added",
                    "[{'action':'set-current-schema','schema-id':-1}]");
    fixture_refused(metadata, INVALID, "none has been added",
                    "[{'action':'set-default-spec','spec-id':-1}]");
    fixture_refused(metadata, INVALID, "none has been added",
                    "[{'action':'set-default-sort-order','sort-order-id':-1}]");
    fixture_refused(metadata, INVALID, "unknown id: 5",
                    "[{'action':'set-current-schema','schema-id':5}]");
    fixture_refused(metadata, INVALID, "unknown id: 5",
                    "[{'action':'set-default-spec','spec-id':5}]");
    fixture_refused(metadata, INVALID, "unknown id: 5",
                    "[{'action':'set-default-sort-order','sort-order-id':5}]");
    fixture_refused(metadata, INVALID, "schema-id", "[{'action':'set-current-schema'}]");
}

static void schemas_that_the_version_lacks_are_refused(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    fixture_refused(metadata, INVALID, "variant is not supported until v3",
                    "[" WITH_MORE(",{'id':4,'name':'v','required':false,'type':'variant'}") "]");
    fixture_refused(metadata, INVALID, "default is not supported until v3",
                    "[" WITH_MORE(",{'id':4,'name':'v','required':false,'type':'int',"
                                  "'initial-default':3}") "]");
    fixture_refused(metadata, INVALID, "multiple fields for id 3",
                    "[" WITH_MORE(",{'id':3,'name':'v','required':false,'type':'int'}") "]");
    fixture_refused(metadata, INVALID, "schema", "[{'action':'add-schema'}]");
    fixture_apply(metadata, "[{'action':'upgrade-format-version','format-version':3}," WITH_MORE(
                                ",{'id':4,'name':'v','required':false,'type':'variant'}") "]");
}

static void iceberg_8_5_80_a_new_column_may_not_take_a_partitions_name(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table(
        "2", "{'source-id':2,'name':'ts_day','transform':'day'}");
    fixture_refused(metadata, INVALID, "Cannot add column ts_day",
                    "[" WITH_MORE(",{'id':4,'name':'ts_day','required':false,'type':'date'}") "]");
}

static void schemas_and_specs_are_removed_unless_in_use(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    fixture_apply(
        metadata,
        "[" WITH_MORE(
            ",{'id':4,'name':'n','required':false,'type':'int'}") ",{'action':'set-current-schema',"
                                                                  "'schema-id':-1},"
                                                                  "{'action':'add-spec','spec':{'"
                                                                  "fields':[{'source-id':2,'name':'"
                                                                  "d',"
                                                                  "'transform':'day'}]}},{'action':"
                                                                  "'set-default-spec','spec-id':-1}"
                                                                  "]");
    fixture_refused(metadata, INVALID, "Cannot remove the current-schema-id",
                    "[{'action':'remove-schemas','schema-ids':[1]}]");
    fixture_refused(metadata, INVALID, "Cannot remove the default-spec-id",
                    "[{'action':'remove-partition-specs','spec-ids':[1]}]");
    fixture_refused(metadata, INVALID, "schema-ids", "[{'action':'remove-schemas'}]");
    fixture_apply(metadata, "[{'action':'remove-schemas','schema-ids':[0,44]},"
                            "{'action':'remove-partition-specs','spec-ids':[0]}]");
    assert_int_equal(json_array_size(fixture_member(metadata, "schemas")), 1);
    assert_int_equal(json_array_size(fixture_member(metadata, "partition-specs")), 1);
}

/* ---- specs and sort orders ---- */

static void iceberg_8_1_19_partition_ids_are_used_again_for_equal_fields(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table(
        "2", "{'source-id':2,'name':'ts_day','transform':'day'}");
    fixture_apply(metadata, "[{'action':'add-spec','spec':{'spec-id':5,'fields':["
                            "{'source-id':1,'name':'b','transform':'bucket[4]'},"
                            "{'source-id':2,'name':'again','transform':'day'}]}},"
                            "{'action':'set-default-spec','spec-id':-1}]");
    assert_json(json_array_get(fixture_member(metadata, "partition-specs"), 1),
                "{'spec-id':1,'fields':["
                "{'source-id':1,'name':'b','transform':'bucket[4]','field-id':1001},"
                "{'source-id':2,'name':'again','transform':'day','field-id':1000}]}");
    assert_json(fixture_member(metadata, "last-partition-id"), "1001");
    assert_json(fixture_member(metadata, "default-spec-id"), "1");
}

static void an_equal_spec_or_order_is_used_again(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table(
        "2", "{'source-id':2,'name':'ts_day','transform':'day'}");
    instant before = metadata_last_updated(metadata);
    fixture_apply(metadata, "[{'action':'add-spec','spec':{'fields':[{'source-id':2,"
                            "'name':'ts_day','transform':'day','field-id':1000}]}},"
                            "{'action':'set-default-spec','spec-id':-1},"
                            "{'action':'add-sort-order','sort-order':{'order-id':8,'fields':[]}},"
                            "{'action':'set-default-sort-order','sort-order-id':-1}]");
    assert_int_equal(metadata_last_updated(metadata), before);
    assert_int_equal(json_array_size(fixture_member(metadata, "partition-specs")), 1);
    static const char ORDER[] =
        "[{'action':'add-sort-order','sort-order':{'order-id':8,'fields':[{'source-id':1,"
        "'transform':'identity','direction':'desc','null-order':'nulls-last'}]}},"
        "{'action':'set-default-sort-order','sort-order-id':-1}]";
    fixture_apply(metadata, ORDER);
    fixture_apply(metadata, ORDER);
    assert_int_equal(json_array_size(fixture_member(metadata, "sort-orders")), 2);
    assert_json(fixture_member(metadata, "default-sort-order-id"), "1");
}

static void specs_and_orders_that_fit_no_column_are_refused(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    fixture_refused(metadata, INVALID, "Cannot find source column",
                    "[{'action':'add-spec','spec':{'fields':[{'source-id':9,'name':'d',"
                    "'transform':'day'}]}}]");
    fixture_refused(metadata, INVALID, "redundant",
                    "[{'action':'add-spec','spec':{'fields':[{'source-id':2,'name':'d',"
                    "'transform':'day'},{'source-id':2,'name':'h','transform':'hour'}]}}]");
    fixture_refused(metadata, INVALID, "partition spec", "[{'action':'add-spec'}]");
    fixture_refused(metadata, INVALID, "Cannot find source column",
                    "[{'action':'add-sort-order','sort-order':{'fields':[{'source-id':9,"
                    "'transform':'identity','direction':'asc','null-order':'nulls-last'}]}}]");
    fixture_refused(metadata, INVALID, "no fields", "[{'action':'add-sort-order'}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iceberg_8_1_9_every_change_moves_last_updated),
        cmocka_unit_test(iceberg_8_1_25_a_clock_that_ran_back_is_clamped),
        cmocka_unit_test(updates_without_an_effect_stamp_nothing),
        cmocka_unit_test(iceberg_8_1_23_the_log_is_trimmed_by_the_new_property),
        cmocka_unit_test(trimmed_files_stay_unless_the_table_asks),
        cmocka_unit_test(a_uuid_is_never_changed),
        cmocka_unit_test(iceberg_8_1_21_an_upgrade_keeps_old_snapshots),
        cmocka_unit_test(an_empty_table_says_so_in_the_form_of_its_version),
        cmocka_unit_test(version_1_keeps_its_copies_until_it_is_upgraded),
        cmocka_unit_test(properties_are_set_and_removed_under_both_names),
        cmocka_unit_test(a_location_is_kept_without_its_last_slash),
        cmocka_unit_test(encryption_keys_are_kept_as_sent),
        cmocka_unit_test(unknown_and_malformed_updates_are_named),
        cmocka_unit_test(iceberg_8_1_17_last_column_id_never_goes_down),
        cmocka_unit_test(iceberg_8_1_20_an_equal_schema_is_used_again),
        cmocka_unit_test(minus_one_is_what_this_request_added_last),
        cmocka_unit_test(schemas_that_the_version_lacks_are_refused),
        cmocka_unit_test(iceberg_8_5_80_a_new_column_may_not_take_a_partitions_name),
        cmocka_unit_test(schemas_and_specs_are_removed_unless_in_use),
        cmocka_unit_test(iceberg_8_1_19_partition_ids_are_used_again_for_equal_fields),
        cmocka_unit_test(an_equal_spec_or_order_is_used_again),
        cmocka_unit_test(specs_and_orders_that_fit_no_column_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
