#include "table_fixture.h"

static void expect(const struct metadata *metadata, err wanted, const char *message,
                   const char *requirements)
{
    AUTO_JSON json_t *list = fixture_json(requirements);
    struct error error = {0};
    err result = metadata_check(metadata, list, &error);
    if (result != wanted || strstr(error.message, message) == NULL) {
        fail_msg("%s: \"%s\" for %s", err_text(result), error.message, requirements);
    }
}

static struct metadata *table(void)
{
    struct metadata *metadata = fixture_table("2", "");
    fixture_apply(metadata,
                  "[{'action':'add-snapshot','snapshot':{'snapshot-id':7,'sequence-number':1,"
                  "'timestamp-ms':1790000000000,'manifest-list':'l','summary':{"
                  "'operation':'append'},'schema-id':0}},{'action':'set-snapshot-ref',"
                  "'ref-name':'main','type':'branch','snapshot-id':7}]");
    return metadata;
}

static void requirements_that_hold_pass(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table();
    AUTO_METADATA struct metadata *empty = fixture_table("3", "");
    char text[200];
    char upper[36];
    str uuid = metadata_uuid(metadata);
    for (size_t i = 0; i < sizeof(upper); i++) { /* uuids compare without case */
        char letter = uuid.data[i];
        upper[i] = letter >= 'a' && letter <= 'f' ? (char)(letter - 'a' + 'A') : letter;
    }
    (void)snprintf(text, sizeof(text), "[{'type':'assert-table-uuid','uuid':'%.*s'}]",
                   STR_ARG(uuid));
    expect(metadata, OK, "", text);
    (void)snprintf(text, sizeof(text), "[{'type':'assert-table-uuid','uuid':'%.36s'}]", upper);
    expect(metadata, OK, "", text);
    expect(metadata, OK, "", "[]");
    expect(metadata, OK, "", "[{'type':'assert-ref-snapshot-id','ref':'main','snapshot-id':7}]");
    expect(metadata, OK, "",
           "[{'type':'assert-ref-snapshot-id','ref':'other','snapshot-id':null}]");
    expect(metadata, OK, "",
           "[{'type':'assert-last-assigned-field-id','last-assigned-field-id':3},"
           "{'type':'assert-current-schema-id','current-schema-id':0},"
           "{'type':'assert-last-assigned-partition-id','last-assigned-partition-id':999},"
           "{'type':'assert-default-spec-id','default-spec-id':0},"
           "{'type':'assert-default-sort-order-id','default-sort-order-id':0}]");
    expect(empty, OK, "", "[{'type':'assert-ref-snapshot-id','ref':'main','snapshot-id':null}]");
    expect(NULL, OK, "", "[{'type':'assert-create'}]");
}

static void requirements_that_fail_name_what_changed(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table();
    expect(metadata, CONFLICT, "Requirement failed: table already exists",
           "[{'type':'assert-create'}]");
    expect(metadata, CONFLICT, "Requirement failed: UUID does not match",
           "[{'type':'assert-table-uuid','uuid':'00000000-0000-0000-0000-000000000000'}]");
    expect(metadata, CONFLICT, "Requirement failed: branch main has changed: expected id 6 != 7",
           "[{'type':'assert-ref-snapshot-id','ref':'main','snapshot-id':6}]");
    expect(metadata, CONFLICT, "Requirement failed: branch main was created concurrently",
           "[{'type':'assert-ref-snapshot-id','ref':'main','snapshot-id':null}]");
    expect(metadata, CONFLICT, "branch or tag t is missing, expected 7",
           "[{'type':'assert-ref-snapshot-id','ref':'t','snapshot-id':7}]");
    expect(metadata, CONFLICT, "Requirement failed: last assigned field id changed",
           "[{'type':'assert-last-assigned-field-id','last-assigned-field-id':2}]");
    expect(metadata, CONFLICT, "Requirement failed: current schema changed",
           "[{'type':'assert-current-schema-id','current-schema-id':1}]");
    expect(metadata, CONFLICT, "Requirement failed: last assigned partition id changed",
           "[{'type':'assert-last-assigned-partition-id','last-assigned-partition-id':1000}]");
    expect(metadata, CONFLICT, "Requirement failed: default partition spec changed",
           "[{'type':'assert-default-spec-id','default-spec-id':1}]");
    expect(metadata, CONFLICT, "Requirement failed: default sort order changed",
           "[{'type':'assert-default-sort-order-id','default-sort-order-id':1}]");
    expect(NULL, CONFLICT, "Requirement failed",
           "[{'type':'assert-table-uuid','uuid':'00000000-0000-0000-0000-000000000000'}]");
}

/* iceberg_8_1_2: -1 is no snapshot id. iceberg_8_1_5: an assertion without the member asks for
 * none. */
static void iceberg_8_1_2_and_5_no_snapshot_is_asked_for_in_three_ways(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table();
    AUTO_METADATA struct metadata *empty = fixture_table("2", "");
    static const char *const FORMS[] = {
        "[{'type':'assert-ref-snapshot-id','ref':'main','snapshot-id':null}]",
        "[{'type':'assert-ref-snapshot-id','ref':'main','snapshot-id':-1}]",
        "[{'type':'assert-ref-snapshot-id','ref':'main'}]"};
    for (size_t i = 0; i < ARRAY_COUNT(FORMS); i++) {
        expect(empty, OK, "", FORMS[i]);
        expect(metadata, CONFLICT, "created concurrently", FORMS[i]);
    }
}

static void iceberg_8_1_6_unknown_or_malformed_requirements_are_no_conflict(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *metadata = table();
    expect(metadata, INVALID, "ref", "[{'type':'assert-ref-snapshot-id','ref-name':'main'}]");
    expect(metadata, INVALID, "snapshot-id",
           "[{'type':'assert-ref-snapshot-id','ref':'main','snapshot-id':'7'}]");
    expect(metadata, INVALID, "unknown requirement assert-moon",
           "[{'type':'assert-create'},{'type':'assert-moon'}]");
    expect(metadata, INVALID, "type", "[{}]");
    expect(metadata, INVALID, "type", "[7]");
    expect(metadata, INVALID, "uuid", "[{'type':'assert-table-uuid'}]");
    expect(metadata, INVALID, "current-schema-id",
           "[{'type':'assert-current-schema-id','current-schema-id':'0'}]");
    expect(metadata, INVALID, "array", "{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requirements_that_hold_pass),
        cmocka_unit_test(requirements_that_fail_name_what_changed),
        cmocka_unit_test(iceberg_8_1_2_and_5_no_snapshot_is_asked_for_in_three_ways),
        cmocka_unit_test(iceberg_8_1_6_unknown_or_malformed_requirements_are_no_conflict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
