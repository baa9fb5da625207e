#include "table_fixture.h"

/* add-snapshot and set-snapshot-ref main, `n` being id, sequence number and list. */
#define SNAPSHOT(n)                                                                                \
    "{'action':'add-snapshot','snapshot':{'snapshot-id':" #n ",'sequence-number':" #n              \
    ",'timestamp-ms':179000000000" #n ",'manifest-list':'list" #n                                  \
    "','summary':{'operation':'append'},'schema-id':0}}"
#define MAIN(n)                                                                                    \
    "{'action':'set-snapshot-ref','ref-name':'main','type':'branch','snapshot-id':" #n "}"
/* One add-snapshot with other members. */
#define OTHER(members) "[{'action':'add-snapshot','snapshot':{" members "}}]"
#define SUMMARY        "'summary':{'operation':'append'}"

static struct metadata *table_with_snapshots(void)
{
    struct metadata *metadata = fixture_table("2", "");
    fixture_apply(metadata, "[" SNAPSHOT(1) "," MAIN(1) "]");
    fixture_apply(metadata, "[" SNAPSHOT(2) "," MAIN(2) "]");
    fixture_apply(metadata, "[" SNAPSHOT(3) "," MAIN(3) "]");
    return metadata;
}

static void a_snapshot_becomes_the_head_and_is_logged_with_its_own_time(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    i64 id = 0;
    assert_true(metadata_main(metadata, &id));
    assert_int_equal(id, 3);
    assert_int_equal(metadata_last_sequence_number(metadata), 3);
    assert_json(fixture_member(metadata, "snapshot-log"),
                "[{'timestamp-ms':1790000000001,'snapshot-id':1},"
                "{'timestamp-ms':1790000000002,'snapshot-id':2},"
                "{'timestamp-ms':1790000000003,'snapshot-id':3}]");
    assert_json(fixture_member(metadata, "refs"), "{'main':{'snapshot-id':3,'type':'branch'}}");
}

static void iceberg_8_1_3_a_null_or_minus_one_parent_is_left_out(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("2", "");
    fixture_apply(metadata, OTHER("'snapshot-id':5,'parent-snapshot-id':null,'sequence-number':1,"
                                  "'timestamp-ms':1790000000001,'manifest-list':'l',"
                                  "'key-id':null," SUMMARY));
    fixture_apply(metadata, OTHER("'snapshot-id':6,'parent-snapshot-id':-1,'sequence-number':2,"
                                  "'timestamp-ms':1790000000001,'manifest-list':'l'," SUMMARY));
    assert_json(fixture_member(metadata, "snapshots"),
                "[{'snapshot-id':5,'sequence-number':1,'timestamp-ms':1790000000001,"
                "'manifest-list':'l'," SUMMARY "},"
                "{'snapshot-id':6,'sequence-number':2,'timestamp-ms':1790000000001,"
                "'manifest-list':'l'," SUMMARY "}]");
}

/* I32: without exception; also for a snapshot without a parent. */
static void iceberg_8_6_87_a_stale_sequence_number_is_a_conflict(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    fixture_refused(metadata, CONFLICT, "sequence number 3 older than last sequence number 3",
                    OTHER("'snapshot-id':9,'parent-snapshot-id':3,'sequence-number':3,"
                          "'timestamp-ms':1790000000009,'manifest-list':'l'," SUMMARY));
    fixture_refused(metadata, CONFLICT, "sequence number 2",
                    OTHER("'snapshot-id':9,'sequence-number':2,"
                          "'timestamp-ms':1790000000009,'manifest-list':'l'," SUMMARY));
}

/* A client that replaces the table takes main away and begins a new history; its number may be
 * another's by now. Only then, only without a parent, and the table's last number never falls. */
static void a_replace_keeps_its_sequence_number(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
#define REMOVE_MAIN "{'action':'remove-snapshot-ref','ref-name':'main'},"
#define REPLACING(parent)                                                                          \
    "{'action':'add-snapshot','snapshot':{'snapshot-id':9," parent "'sequence-number':2,"          \
    "'timestamp-ms':1790000000009,'manifest-list':'l'," SUMMARY "}}"
    fixture_refused(metadata, CONFLICT, "sequence number 2",
                    "[" REMOVE_MAIN REPLACING("'parent-snapshot-id':3,") "]");
    fixture_refused(metadata, CONFLICT, "sequence number 2", "[" REPLACING("") "]");
    fixture_apply(metadata, "[" REMOVE_MAIN REPLACING("") "]");
    assert_json(fixture_member(metadata, "last-sequence-number"), "3");
    fixture_refused(metadata, CONFLICT, "sequence number 3",
                    OTHER("'snapshot-id':10,'sequence-number':3,"
                          "'timestamp-ms':1790000000009,'manifest-list':'l'," SUMMARY));
}

static void iceberg_8_1_27_a_snapshot_id_is_taken_once(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    fixture_refused(metadata, CONFLICT, "already exists for id: 2",
                    OTHER("'snapshot-id':2,'sequence-number':4,"
                          "'timestamp-ms':1790000000009,'manifest-list':'l'," SUMMARY));
    fixture_refused(
        metadata, CONFLICT, "already exists",
        "[" SNAPSHOT(
            4) ",{'action':'add-snapshot','snapshot':{'snapshot-id':4,"
               "'sequence-number':5,'timestamp-ms':1790000000009,'manifest-list':'l'," SUMMARY
               "}}]");
}

static void malformed_snapshots_are_refused(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    static const struct {
        const char *update;
        const char *message;
    } CASES[] = {
        {"[{'action':'add-snapshot'}]", "no snapshot-id"},
        {OTHER("'snapshot-id':'9','sequence-number':9"), "no snapshot-id"},
        {OTHER("'snapshot-id':9.0,'sequence-number':9"), "no snapshot-id"},
        {OTHER("'snapshot-id':9,'sequence-number':9"), "no timestamp-ms"},
        {OTHER("'snapshot-id':9,'timestamp-ms':1790000000009"), "no sequence-number"},
        {OTHER("'snapshot-id':9,'sequence-number':9,'timestamp-ms':1790000000009," SUMMARY),
         "no manifest-list"},
        {OTHER("'snapshot-id':9,'sequence-number':9,'timestamp-ms':1790000000009,"
               "'manifest-list':'l'"),
         "summary"},
        {OTHER("'snapshot-id':9,'sequence-number':9,'timestamp-ms':1790000000009,"
               "'manifest-list':'l','summary':{'operation':'upsert'}"),
         "operation is"},
        {OTHER("'snapshot-id':9,'sequence-number':9,'timestamp-ms':1790000000009,"
               "'manifest-list':'l','summary':{'operation':'append','n':1}"),
         "no string"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        fixture_refused(metadata, INVALID, CASES[i].message, CASES[i].update);
    }
}

static void iceberg_8_1_25_a_log_may_not_go_back_a_minute(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    fixture_refused(metadata, INVALID, "Invalid snapshot timestamp",
                    "[{'action':'add-snapshot','snapshot':{'snapshot-id':9,'sequence-number':9,"
                    "'timestamp-ms':1789999940002,'manifest-list':'l'," SUMMARY "}}," MAIN(9) "]");
    fixture_apply(metadata,
                  "[{'action':'add-snapshot','snapshot':{'snapshot-id':9,'sequence-number':9,"
                  "'timestamp-ms':1789999940003,'manifest-list':'l'," SUMMARY "}}," MAIN(9) "]");
}

static void a_rollback_is_logged_with_the_time_of_the_commit(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    fixture_apply(metadata, "[" MAIN(1) "]");
    assert_json(json_array_get(fixture_member(metadata, "snapshot-log"), 3),
                "{'timestamp-ms':1790000000004,'snapshot-id':1}");
    assert_json(fixture_member(metadata, "last-updated-ms"), "1790000000004");
    assert_int_equal(metadata_last_sequence_number(metadata), 3);
}

static void what_one_commit_added_and_left_is_not_in_the_log(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    fixture_apply(metadata, "[" SNAPSHOT(4) "," MAIN(4) "," SNAPSHOT(5) "," MAIN(5) "]");
    assert_int_equal(json_array_size(fixture_member(metadata, "snapshot-log")), 4);
    assert_json(json_array_get(fixture_member(metadata, "snapshot-log"), 3),
                "{'timestamp-ms':1790000000005,'snapshot-id':5}");
}

/* ---- refs ---- */

static void refs_are_set_with_their_retention(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    fixture_apply(metadata,
                  "[{'action':'set-snapshot-ref','ref-name':'t','type':'tag','snapshot-id':1,"
                  "'max-ref-age-ms':5},{'action':'set-snapshot-ref','ref-name':'b',"
                  "'type':'branch','snapshot-id':2,'min-snapshots-to-keep':3,"
                  "'max-snapshot-age-ms':4,'max-ref-age-ms':null}]");
    assert_json(fixture_member(metadata, "refs"),
                "{'main':{'snapshot-id':3,'type':'branch'},"
                "'t':{'snapshot-id':1,'type':'tag','max-ref-age-ms':5},"
                "'b':{'snapshot-id':2,'type':'branch','min-snapshots-to-keep':3,"
                "'max-snapshot-age-ms':4}}");
    assert_int_equal(json_array_size(fixture_member(metadata, "snapshot-log")), 3);
}

static void malformed_refs_are_refused(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    static const struct {
        const char *members;
        const char *message;
    } CASES[] = {
        {"'type':'tag','snapshot-id':1", "ref-name"},
        {"'ref-name':'t','snapshot-id':1", "branch or tag"},
        {"'ref-name':'t','type':'bookmark','snapshot-id':1", "branch or tag"},
        {"'ref-name':'t','type':'tag','snapshot-id':8", "Cannot set t to unknown snapshot: 8"},
        {"'ref-name':'t','type':'tag'", "unknown snapshot"},
        {"'ref-name':'main','type':'tag','snapshot-id':1", "Cannot set main to a tag"},
        {"'ref-name':'t','type':'tag','snapshot-id':1,'min-snapshots-to-keep':1", "Tags"},
        {"'ref-name':'b','type':'branch','snapshot-id':1,'max-ref-age-ms':0", "greater than 0"},
        {"'ref-name':'b','type':'branch','snapshot-id':1,'max-snapshot-age-ms':'9'", "greater"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        char text[300];
        (void)snprintf(text, sizeof(text), "[{'action':'set-snapshot-ref',%s}]", CASES[i].members);
        fixture_refused(metadata, INVALID, CASES[i].message, text);
    }
}

static void iceberg_8_1_8_the_log_survives_the_removal_of_main(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    i64 id = 0;
    fixture_apply(metadata, "[{'action':'remove-snapshot-ref','ref-name':'main'}]");
    assert_false(metadata_main(metadata, &id));
    assert_json(fixture_member(metadata, "current-snapshot-id"), "-1");
    assert_int_equal(json_array_size(fixture_member(metadata, "snapshot-log")), 3);
    assert_json(fixture_member(metadata, "refs"), "{}");
    fixture_refused(metadata, INVALID, "ref-name", "[{'action':'remove-snapshot-ref'}]");
}

/* ---- remove-snapshots ---- */

static void removed_snapshots_take_their_refs_and_statistics_with_them(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    fixture_apply(
        metadata,
        "[{'action':'set-snapshot-ref','ref-name':'t','type':'tag','snapshot-id':2},"
        "{'action':'set-snapshot-ref','ref-name':'u','type':'tag','snapshot-id':1},"
        "{'action':'set-statistics','snapshot-id':2,'statistics':{'snapshot-id':2,"
        "'statistics-path':'p2'}},"
        "{'action':'set-statistics','statistics':{'snapshot-id':3,'statistics-path':'p3'}},"
        "{'action':'set-partition-statistics','partition-statistics':{'snapshot-id':2,"
        "'statistics-path':'q2'}}]");
    fixture_apply(metadata, "[{'action':'remove-snapshots','snapshot-ids':[2,66]}]");
    assert_null(metadata_snapshot(metadata, 2));
    assert_json(fixture_member(metadata, "refs"), "{'main':{'snapshot-id':3,'type':'branch'},"
                                                  "'u':{'snapshot-id':1,'type':'tag'}}");
    assert_json(fixture_member(metadata, "statistics"),
                "[{'snapshot-id':3,'statistics-path':'p3'}]");
    assert_json(fixture_member(metadata, "partition-statistics"), "[]");
    /* A gap would answer a look-up by time wrongly: what stands before it goes too. */
    assert_json(fixture_member(metadata, "snapshot-log"),
                "[{'timestamp-ms':1790000000003,'snapshot-id':3}]");
}

static void iceberg_8_7_99_the_head_of_main_cannot_be_removed(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    fixture_refused(metadata, INVALID, "Cannot remove the current snapshot of main: 3",
                    "[{'action':'remove-snapshots','snapshot-ids':[1,3]}]");
    fixture_refused(metadata, INVALID, "snapshot-ids", "[{'action':'remove-snapshots'}]");
}

static void a_commit_may_remove_and_add_at_once(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    fixture_apply(metadata, "[" SNAPSHOT(4) "," MAIN(4) ",{'action':'remove-snapshots',"
                                                        "'snapshot-ids':[1,2]}]");
    assert_json(fixture_member(metadata, "snapshot-log"),
                "[{'timestamp-ms':1790000000003,'snapshot-id':3},"
                "{'timestamp-ms':1790000000004,'snapshot-id':4}]");
}

/* ---- statistics ---- */

static void iceberg_8_1_7_statistics_live_through_commits(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    fixture_apply(metadata, "[{'action':'set-statistics','statistics':{'snapshot-id':3,"
                            "'statistics-path':'old'}}]");
    fixture_apply(metadata, "[" SNAPSHOT(4) "," MAIN(4) "]");
    fixture_apply(metadata, "[{'action':'set-statistics','statistics':{'snapshot-id':3,"
                            "'statistics-path':'new','blob-metadata':[]}},"
                            "{'action':'set-partition-statistics','partition-statistics':{"
                            "'snapshot-id':4,'statistics-path':'q','file-size-in-bytes':7}}]");
    assert_json(fixture_member(metadata, "statistics"),
                "[{'snapshot-id':3,'statistics-path':'new','blob-metadata':[]}]");
    fixture_apply(metadata, "[{'action':'remove-statistics','snapshot-id':3},"
                            "{'action':'remove-partition-statistics','snapshot-id':4}]");
    assert_json(fixture_member(metadata, "statistics"), "[]");
    assert_json(fixture_member(metadata, "partition-statistics"), "[]");
    fixture_refused(metadata, INVALID, "set-statistics", "[{'action':'set-statistics'}]");
    fixture_refused(metadata, INVALID, "remove-partition-statistics",
                    "[{'action':'remove-partition-statistics'}]");
}

/* ---- row lineage ---- */

#define ROWS(n, rest)                                                                              \
    "[{'action':'add-snapshot','snapshot':{'snapshot-id':" #n ",'sequence-number':" #n             \
    ",'timestamp-ms':1790000000001,'manifest-list':'l'," SUMMARY rest "}}]"

static void row_ids_are_taken_once(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = fixture_table("3", "");
    fixture_apply(metadata, ROWS(1, ",'first-row-id':0,'added-rows':10"));
    assert_int_equal(metadata_next_row_id(metadata), 10);
    fixture_refused(metadata, CONFLICT, "behind table next-row-id",
                    ROWS(2, ",'first-row-id':9,'added-rows':1"));
    fixture_refused(metadata, INVALID, "first-row-id is null", ROWS(2, ",'added-rows':1"));
    fixture_refused(metadata, INVALID, "added-rows", ROWS(2, ",'first-row-id':10"));
    fixture_refused(metadata, INVALID, "row ids are used up",
                    ROWS(2, ",'first-row-id':10,'added-rows':9223372036854775807"));
    /* Over-reserving is allowed, an overlap is not. */
    fixture_apply(metadata, ROWS(2, ",'first-row-id':15,'added-rows':5"));
    assert_int_equal(metadata_next_row_id(metadata), 20);
}

/* ---- sent twice ---- */

static bool has_applied(const struct metadata *metadata, const char *updates)
{
    AUTO_JSON json_t *list = fixture_json(updates);
    return metadata_has_applied(metadata, list);
}

static void iceberg_8_6_85_a_request_sent_twice_is_known(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table_with_snapshots();
    assert_true(has_applied(metadata, "[" SNAPSHOT(2) "," MAIN(2) "]"));
    assert_true(has_applied(metadata, "[" SNAPSHOT(1) "," SNAPSHOT(3) "]"));
    assert_false(has_applied(metadata, "[" SNAPSHOT(1) "," SNAPSHOT(4) "]"));
    assert_false(has_applied(metadata, "[" MAIN(2) "]"));
    assert_false(has_applied(metadata, "[]"));
    assert_false(has_applied(metadata, OTHER("'snapshot-id':2,'manifest-list':'another'")));
    assert_false(has_applied(metadata, OTHER("'snapshot-id':2")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_becomes_the_head_and_is_logged_with_its_own_time),
        cmocka_unit_test(iceberg_8_1_3_a_null_or_minus_one_parent_is_left_out),
        cmocka_unit_test(iceberg_8_6_87_a_stale_sequence_number_is_a_conflict),
        cmocka_unit_test(a_replace_keeps_its_sequence_number),
        cmocka_unit_test(iceberg_8_1_27_a_snapshot_id_is_taken_once),
        cmocka_unit_test(malformed_snapshots_are_refused),
        cmocka_unit_test(iceberg_8_1_25_a_log_may_not_go_back_a_minute),
        cmocka_unit_test(a_rollback_is_logged_with_the_time_of_the_commit),
        cmocka_unit_test(what_one_commit_added_and_left_is_not_in_the_log),
        cmocka_unit_test(refs_are_set_with_their_retention),
        cmocka_unit_test(malformed_refs_are_refused),
        cmocka_unit_test(iceberg_8_1_8_the_log_survives_the_removal_of_main),
        cmocka_unit_test(removed_snapshots_take_their_refs_and_statistics_with_them),
        cmocka_unit_test(iceberg_8_7_99_the_head_of_main_cannot_be_removed),
        cmocka_unit_test(a_commit_may_remove_and_add_at_once),
        cmocka_unit_test(iceberg_8_1_7_statistics_live_through_commits),
        cmocka_unit_test(row_ids_are_taken_once),
        cmocka_unit_test(iceberg_8_6_85_a_request_sent_twice_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
