#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "sink/attach.h"
#include "sink/lifecycle.h"

/* A table of one column list and one partition list, as an engine would make it. */
static struct metadata *table_of(const char *version, const char *fields, const char *partition)
{
    json_error_t why;
    json_t *request = json_pack("{s:s, s:{s:s, s:i, s:o}, s:{s:i, s:o}, s:{s:s, s:s}}", "name", "t",
                                "schema", "type", "struct", "schema-id", 0, "fields",
                                json_loads(fields, 0, &why), "partition-spec", "spec-id", 0,
                                "fields", json_loads(partition, 0, &why), "properties",
                                "format-version", version, "comment", "rows");
    assert_non_null(request);
    struct metadata *metadata = NULL;
    struct error error = {0};
    err made = metadata_create(request, STR("file:///w/t"), seam_system(), &metadata, &error);
    json_decref(request);
    assert_int_equal(made, OK);
    return metadata;
}

static enum error_code judged(const char *version, const char *fields, const char *partition)
{
    AUTO_METADATA struct metadata *metadata = table_of(version, fields, partition);
    AUTO_ARENA struct arena *arena = arena_create(4 * (size_t)MIB);
    struct error error = {0};
    err result = attach_check(arena, metadata, &error);
    assert_int_equal(result == OK, error.code == ERROR_NONE);
    return error.code;
}

#define COLUMN(id, name, type)                                                                     \
    "{\"id\":" #id ",\"name\":\"" name "\",\"required\":false,\"type\":" type "}"
#define TIMES                                                                                      \
    "[" COLUMN(1, "x", "\"long\"") "," COLUMN(2, "ts", "\"timestamptz\"") "," COLUMN(              \
        3, "d", "\"date\"") "]"
#define PART(source, transform)                                                                    \
    "[{\"source-id\":" #source ",\"field-id\":1000,\"name\":\"p\",\"transform\":\"" transform "\"" \
    "}]"

static void plain_tables_of_version_2_and_3_are_taken(void **state)
{
    (void)state;
    assert_int_equal(judged("2", TIMES, "[]"), ERROR_NONE);
    assert_int_equal(judged("3", TIMES, "[]"), ERROR_NONE);
}

static void version_3_may_be_partitioned_by_time_alone(void **state)
{
    (void)state;
    assert_int_equal(judged("3", TIMES, PART(2, "day")), ERROR_NONE);
    assert_int_equal(judged("3", TIMES, PART(2, "hour")), ERROR_NONE);
    assert_int_equal(judged("3", TIMES, PART(3, "month")), ERROR_NONE);
    assert_int_equal(judged("3", TIMES, PART(3, "year")), ERROR_NONE);
    assert_int_equal(judged("3", TIMES, PART(1, "void")), ERROR_NONE);
    assert_int_equal(judged("3", TIMES, PART(1, "identity")), ERROR_PARTITIONED_TABLE_UNSUPPORTED);
    assert_int_equal(judged("3", TIMES, PART(1, "bucket[4]")), ERROR_PARTITIONED_TABLE_UNSUPPORTED);
    assert_int_equal(judged("3", TIMES, PART(1, "truncate[4]")),
                     ERROR_PARTITIONED_TABLE_UNSUPPORTED);
    assert_int_equal(judged("2", TIMES, PART(2, "day")), ERROR_PARTITIONED_TABLE_UNSUPPORTED);
}

static void columns_that_rows_cannot_be_decoded_to_are_named(void **state)
{
    (void)state;
    assert_int_equal(judged("3", "[" COLUMN(1, "v", "\"variant\"") "]", "[]"), ERROR_NONE);
    assert_int_equal(judged("3", "[" COLUMN(1, "g", "\"geography\"") "]", "[]"),
                     ERROR_UNSUPPORTED_COLUMN_TYPE);
    assert_int_equal(
        judged("3",
               "[" COLUMN(1, "l",
                          "{\"type\":\"list\",\"element-id\":2,\"element-required\":false,"
                          "\"element\":\"geometry\"}") "]",
               "[]"),
        ERROR_UNSUPPORTED_COLUMN_TYPE);
}

#define LIST_OF(type)                                                                              \
    "{\"type\":\"list\",\"element-id\":2,\"element-required\":false,\"element\":" type "}"
#define MAP_OF(type)                                                                               \
    "{\"type\":\"map\",\"key-id\":3,\"key\":\"string\",\"value-id\":4,"                            \
    "\"value-required\":false,\"value\":" type "}"
#define STRUCT_OF(fields) "{\"type\":\"struct\",\"fields\":[" fields "]}"

static void what_holds_only_unknown_is_refused(void **state)
{
    (void)state;
    static const char *const hollow[] = {
        "[" COLUMN(1, "l", LIST_OF("\"unknown\"")) "]",
        "[" COLUMN(1, "m", MAP_OF("\"unknown\"")) "]",
        "[" COLUMN(1, "s", STRUCT_OF(COLUMN(5, "u", "\"unknown\""))) "]",
        "[" COLUMN(1, "deep", LIST_OF(STRUCT_OF(COLUMN(5, "m", MAP_OF("\"unknown\""))))) "]",
    };
    for (size_t i = 0; i < ARRAY_COUNT(hollow); i++) {
        assert_int_equal(judged("3", hollow[i], "[]"), ERROR_UNSUPPORTED_COLUMN_TYPE);
    }
    assert_int_equal(
        judged(
            "3",
            "[" COLUMN(1, "u", "\"unknown\"") "," COLUMN(
                6, "s", STRUCT_OF(COLUMN(5, "u", "\"unknown\"") "," COLUMN(7, "x", "\"int\""))) "]",
            "[]"),
        ERROR_NONE);
}

static void the_arrival_column_must_be_a_timestamptz(void **state)
{
    (void)state;
    assert_int_equal(judged("2", "[" COLUMN(1, "__ingest_ts", "\"timestamptz\"") "]", "[]"),
                     ERROR_NONE);
    assert_int_equal(judged("2", "[" COLUMN(1, "__ingest_ts", "\"timestamp\"") "]", "[]"),
                     ERROR_RESERVED_COLUMN_CONFLICT);
}

static void unknown_fields_go_to_an_optional_string_or_variant_column_only(void **state)
{
    (void)state;
    struct field fields[] = {
        {.id = 1, .name = STR_INIT("rest"), .type = {.kind = TYPE_STRING}},
        {.id = 2, .name = STR_INIT("must"), .required = true, .type = {.kind = TYPE_STRING}},
        {.id = 3, .name = STR_INIT("x"), .type = {.kind = TYPE_LONG}},
        {.id = 4, .name = STR_INIT("any"), .type = {.kind = TYPE_VARIANT}},
    };
    const struct schema schema = {
        .root = {.kind = TYPE_STRUCT, .fields = fields, .field_count = ARRAY_COUNT(fields)}};
    struct decode_settings settings = {0};
    struct error error = {0};
    assert_int_equal(attach_parse_unknown(STR("reject"), &schema, &settings, &error), OK);
    assert_int_equal(settings.unknown, DECODE_UNKNOWN_REJECT);
    assert_int_equal(attach_parse_unknown(STR("ignore"), &schema, &settings, &error), OK);
    assert_int_equal(settings.unknown, DECODE_UNKNOWN_IGNORE);
    assert_int_equal(attach_parse_unknown(STR("capture:rest"), &schema, &settings, &error), OK);
    assert_int_equal(settings.unknown, DECODE_UNKNOWN_CAPTURE);
    assert_true(str_equal(settings.capture_column, STR("rest")));
    assert_int_equal(attach_parse_unknown(STR("capture:any"), &schema, &settings, &error), OK);
    assert_true(str_equal(settings.capture_column, STR("any")));
    const char *const refused[] = {"capture:must", "capture:x", "capture:none",
                                   "capture:",     "drop",      ""};
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        assert_int_equal(attach_parse_unknown(str_from(refused[i]), &schema, &settings, NULL),
                         INVALID);
    }
}

static void warnings_name_engines_that_cannot_open_the_table(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *plain = table_of("2", TIMES, "[]");
    AUTO_METADATA struct metadata *nano = table_of(
        "3", "[" COLUMN(1, "t", "\"timestamptz_ns\"") "]", "[]");
    AUTO_ARENA struct arena *arena = arena_create(4 * (size_t)MIB);
    str warnings[ATTACH_WARNINGS_MAX];
    size_t count = 9;
    assert_int_equal(attach_warnings(arena, plain, warnings, &count, NULL), OK);
    assert_int_equal(count, 0);
    assert_int_equal(attach_warnings(arena, nano, warnings, &count, NULL), OK);
    assert_int_equal(count, 2);
    assert_true(str_find(warnings[1], STR("column t is timestamptz_ns")) >= 0);
}

static void the_docs_hint_is_the_command_that_adds_what_is_missing(void **state)
{
    (void)state;
    AUTO_METADATA struct metadata *bare = table_of("2", "[" COLUMN(1, "x", "\"long\"") "]", "[]");
    AUTO_METADATA struct metadata *told = table_of(
        "2", "[{\"id\":1,\"name\":\"x\",\"required\":false,\"type\":\"long\",\"doc\":\"a count\"}]",
        "[]");
    AUTO_ARENA struct arena *arena = arena_create(4 * (size_t)MIB);
    str hint = {0};
    assert_int_equal(lifecycle_docs_hint(arena, STR("w.n.t"), bare, &hint, NULL), OK);
    assert_true(str_equal(hint, STR("lhbox table document w.n.t --column 'x=…'")));
    assert_int_equal(lifecycle_docs_hint(arena, STR("w.n.t"), told, &hint, NULL), OK);
    assert_null(hint.data);
}

static void the_docs_hint_of_a_wide_table_is_short_and_safe_to_paste(void **state)
{
    (void)state;
    json_t *fields = json_array();
    json_array_append_new(fields, json_pack("{s:i, s:s, s:b, s:s}", "id", 1, "name", "it's",
                                            "required", 0, "type", "long"));
    for (int i = 2; i <= 4000; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "c%d", i);
        json_array_append_new(fields, json_pack("{s:i, s:s, s:b, s:s}", "id", i, "name", name,
                                                "required", 0, "type", "long"));
    }
    char *text = json_dumps(fields, 0);
    AUTO_METADATA struct metadata *wide = table_of("2", text, "[]");
    AUTO_ARENA struct arena *arena = arena_create(64 * (size_t)MIB);
    str hint = {0};
    assert_int_equal(lifecycle_docs_hint(arena, STR("w.n.t"), wide, &hint, NULL), OK);
    assert_true(
        str_starts(hint, STR("lhbox table document w.n.t --column 'it'\\''s=…' --column 'c2=…'")));
    assert_true(str_ends(hint, STR(" --column 'c20=…'   # and 3980 columns more")));
    json_free_t free_text = NULL;
    json_get_alloc_funcs(NULL, &free_text);
    free_text(text);
    json_decref(fields);
}

static void a_full_name_nests_namespaces_with_dots(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct table_name name = {0};
    struct error error = {0};
    assert_int_equal(lifecycle_parse_table(arena, STR("a.b.t"), &name, &error), OK);
    assert_true(str_equal(name.namespace_name, STR("a\x1f"
                                                   "b")));
    assert_true(str_equal(name.name, STR("t")));
    assert_true(str_equal(lifecycle_full_name(arena, STR("w"), name.namespace_name, name.name),
                          STR("w.a.b.t")));
    const char *const refused[] = {"t", ".t", "a.", ""};
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        assert_int_equal(lifecycle_parse_table(arena, str_from(refused[i]), &name, NULL), INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_tables_of_version_2_and_3_are_taken),
        cmocka_unit_test(version_3_may_be_partitioned_by_time_alone),
        cmocka_unit_test(columns_that_rows_cannot_be_decoded_to_are_named),
        cmocka_unit_test(what_holds_only_unknown_is_refused),
        cmocka_unit_test(the_arrival_column_must_be_a_timestamptz),
        cmocka_unit_test(unknown_fields_go_to_an_optional_string_or_variant_column_only),
        cmocka_unit_test(warnings_name_engines_that_cannot_open_the_table),
        cmocka_unit_test(the_docs_hint_is_the_command_that_adds_what_is_missing),
        cmocka_unit_test(the_docs_hint_of_a_wide_table_is_short_and_safe_to_paste),
        cmocka_unit_test(a_full_name_nests_namespaces_with_dots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
