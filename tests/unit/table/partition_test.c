#include "table_fixture.h"

#include "table/partition.h"

static const char COLUMNS[] =
    "struct<id: long, ts: timestamp, tz: timestamptz, ns: timestamptz_ns, d: date, name: string, "
    "t: time, price: decimal(9,2), s: struct<x: date, \"y.z\": long>, l: list<date>, \"day(d)\": "
    "int>";

/* The columns with ids 1…; fails the test when it cannot. */
static struct type columns(struct arena *arena)
{
    struct type root = {0};
    i32 last_id = 0;
    assert_int_equal(schema_parse_type(arena, str_from(COLUMNS), &root, NULL, NULL), OK);
    schema_assign_ids(&root, &last_id);
    return root;
}

static void partition_text_becomes_a_spec_field(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *field;
    } CASES[] = {
        {"day(ts)", "{'source-id':2,'field-id':1000,'name':'ts_day','transform':'day'}"},
        {" hour( ns ) ", "{'source-id':4,'field-id':1000,'name':'ns_hour','transform':'hour'}"},
        {"month(d)", "{'source-id':5,'field-id':1000,'name':'d_month','transform':'month'}"},
        {"year(tz)", "{'source-id':3,'field-id':1000,'name':'tz_year','transform':'year'}"},
        {"bucket[16](id)",
         "{'source-id':1,'field-id':1000,'name':'id_bucket','transform':'bucket[16]'}"},
        {"truncate[4](name)",
         "{'source-id':6,'field-id':1000,'name':'name_trunc','transform':'truncate[4]'}"},
        {"identity(name)", "{'source-id':6,'field-id':1000,'name':'name','transform':'identity'}"},
        {"name", "{'source-id':6,'field-id':1000,'name':'name','transform':'identity'}"},
        {"year(s.x)", "{'source-id':12,'field-id':1000,'name':'s.x_year','transform':'year'}"},
        {"s.y.z", "{'source-id':13,'field-id':1000,'name':'s.y.z','transform':'identity'}"},
        {"void(name)", "{'source-id':6,'field-id':1000,'name':'name_null','transform':'void'}"},
    };
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct type root = columns(arena);
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        json_t *field = NULL;
        struct error error = {0};
        if (partition_parse_text(str_from(CASES[i].text), &root, 1000, &field, &error) != OK) {
            fail_msg("%s: %s", CASES[i].text, error.message);
        }
        assert_json(field, CASES[i].field);
        json_decref(field);
    }
}

static void a_column_named_like_a_transform_can_be_meant(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct type root = {0};
    i32 last_id = 0;
    assert_int_equal(schema_parse_type(arena, STR("struct<\"day(x)\": int>"), &root, NULL, NULL),
                     OK);
    schema_assign_ids(&root, &last_id);
    json_t *field = NULL;
    assert_int_equal(partition_parse_text(STR("day(x)"), &root, 1000, &field, NULL), OK);
    assert_json(field, "{'source-id':1,'field-id':1000,'name':'day(x)','transform':'identity'}");
    json_decref(field);
}

static void partition_text_that_fits_no_column_is_refused(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"",
                                        "day",
                                        "day()",
                                        "day(nothing)",
                                        "day(id)",
                                        "hour(d)",
                                        "hour(t)",
                                        "bucket(id)",
                                        "bucket[0](id)",
                                        "bucket[-3](id)",
                                        "bucket[x](id)",
                                        "truncate[3](d)",
                                        "week(ts)",
                                        "day(ts",
                                        "day[1](ts)",
                                        "identity(s)",
                                        "bucket[4](s)",
                                        "l",
                                        "day(l.element)",
                                        "s",
                                        "s.",
                                        "s.x.",
                                        ".x"};
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct type root = columns(arena);
    for (size_t i = 0; i < ARRAY_COUNT(TEXTS); i++) {
        json_t *field = NULL;
        if (partition_parse_text(str_from(TEXTS[i]), &root, 1000, &field, NULL) != INVALID) {
            fail_msg("%s was taken", TEXTS[i]);
        }
    }
}

static i64 apply(enum type_kind kind, enum partition_transform transform, i64 value)
{
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct field field = {.id = 1, .name = STR("c"), .type = {.kind = kind}};
    struct partition_field partition = {.source_id = 1, .transform = transform};
    struct column column;
    i32 days = (i32)value;
    assert_true(column_init(&column, arena, &field));
    assert_true(column_append_fixed(&column, kind == TYPE_DATE ? (const void *)&days : &value));
    struct partition_value result = partition_apply(&partition, &column, 0);
    assert_false(result.is_null);
    return result.number;
}

static void iceberg_8_5_74_values_before_1970_are_floored(void **state)
{
    (void)state;
    static const struct {
        i64 microseconds;
        i64 hour;
        i64 day;
        i64 month;
        i64 year;
    } CASES[] = {
        {0, 0, 0, 0, 0},
        {-1, -1, -1, -1, -1},
        {-3599000001, -1, -1, -1, -1}, /* where the reference library is off by one */
        {-3600000000, -1, -1, -1, -1},
        {-3600000001, -2, -1, -1, -1},
        {-86400000000, -24, -1, -1, -1},
        {-86400000001, -25, -2, -1, -1},
        {1510871468000000, 419686, 17486, 574, 47}, /* 2017-11-16T22:31:08 */
        {-31536000000000, -8760, -365, -12, -1},
        {-31536000000001, -8761, -366, -13, -2},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        i64 value = CASES[i].microseconds;
        assert_int_equal(apply(TYPE_TIMESTAMPTZ, PARTITION_HOUR, value), CASES[i].hour);
        assert_int_equal(apply(TYPE_TIMESTAMPTZ, PARTITION_DAY, value), CASES[i].day);
        assert_int_equal(apply(TYPE_TIMESTAMP, PARTITION_MONTH, value), CASES[i].month);
        assert_int_equal(apply(TYPE_TIMESTAMP, PARTITION_YEAR, value), CASES[i].year);
        assert_int_equal(apply(TYPE_DATE, PARTITION_DAY, CASES[i].day), CASES[i].day);
        assert_int_equal(apply(TYPE_DATE, PARTITION_MONTH, CASES[i].day), CASES[i].month);
        assert_int_equal(apply(TYPE_DATE, PARTITION_YEAR, CASES[i].day), CASES[i].year);
    }
}

static void iceberg_8_5_75_nanoseconds_have_their_own_unit(void **state)
{
    (void)state;
    assert_int_equal(apply(TYPE_TIMESTAMP_NS, PARTITION_HOUR, 1510871468000000001), 419686);
    assert_int_equal(apply(TYPE_TIMESTAMPTZ_NS, PARTITION_DAY, 1510871468000000001), 17486);
    assert_int_equal(apply(TYPE_TIMESTAMPTZ_NS, PARTITION_MONTH, 1510871468000000001), 574);
    assert_int_equal(apply(TYPE_TIMESTAMP_NS, PARTITION_YEAR, -1), -1);
}

static void a_null_gives_a_null(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct field field = {.id = 1, .name = STR("c"), .type = {.kind = TYPE_DATE}};
    struct partition_field partition = {.source_id = 1, .transform = PARTITION_DAY};
    struct column column;
    assert_true(column_init(&column, arena, &field));
    assert_true(column_append_null(&column));
    assert_true(partition_apply(&partition, &column, 0).is_null);
}

static str path(struct arena *arena, const char *name, enum partition_transform transform,
                i64 number)
{
    struct partition_field field = {.transform = transform, .name = str_from(name)};
    struct partition_spec spec = {.fields = &field, .count = 1};
    struct partition_value value = {.number = number};
    return partition_path(arena, &spec, &value);
}

/* iceberg_8_5_77: a year is an offset from 1970 and is shown as the year. */
static void iceberg_8_5_77_paths_show_years_months_days_and_hours(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    assert_str(path(arena, "y", PARTITION_YEAR, 56), "y=2026");
    assert_str(path(arena, "y", PARTITION_YEAR, -1), "y=1969");
    assert_str(path(arena, "m", PARTITION_MONTH, 680), "m=2026-09");
    assert_str(path(arena, "m", PARTITION_MONTH, -1), "m=1969-12");
    assert_str(path(arena, "d", PARTITION_DAY, 20717), "d=2026-09-21");
    assert_str(path(arena, "h", PARTITION_HOUR, 20717 * 24 + 13), "h=2026-09-21-13");
    assert_str(path(arena, "h", PARTITION_HOUR, -1), "h=1969-12-31-23");
}

static void iceberg_8_5_78_both_sides_of_a_path_are_encoded(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    assert_str(path(arena, "a/b=c ä%", PARTITION_YEAR, 0), "a%2Fb%3Dc%20%C3%A4%25=1970");
    struct partition_field fields[2] = {{.transform = PARTITION_DAY, .name = STR("..")},
                                        {.transform = PARTITION_VOID, .name = STR("v")}};
    struct partition_spec spec = {.fields = fields, .count = 2};
    struct partition_value values[2] = {{.number = 0}, {.is_null = true}};
    assert_str(partition_path(arena, &spec, values), "..=1970-01-01/v=null");
    spec.count = 0;
    assert_int_equal(partition_path(arena, &spec, values).size, 0);
}

static void a_long_name_leaves_its_part_out_of_the_path(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    char name[300] = {0};
    memset(name, 'n', sizeof(name) - 1);
    struct partition_field fields[2] = {{.transform = PARTITION_DAY, .name = str_from(name)},
                                        {.transform = PARTITION_DAY, .name = STR("d")}};
    struct partition_spec spec = {.fields = fields, .count = 2};
    struct partition_value values[2] = {{.number = 0}, {.number = 1}};
    assert_str(partition_path(arena, &spec, values), "d=1970-01-02");
}

static err check(const char *fields, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct type root = columns(arena);
    AUTO_JSON json_t *document = fixture_json(fields);
    struct partition_spec spec = {0};
    error_clear(error);
    assert_int_equal(partition_from_json(arena, document, &spec, error), OK);
    return partition_check(&spec, &root, error);
}

static void iceberg_8_5_79_two_time_transforms_of_one_column_are_refused(void **state)
{
    (void)state;
    struct error error = {0};
    assert_int_equal(check("[{'source-id':2,'name':'a','transform':'day'},"
                           "{'source-id':2,'name':'b','transform':'hour'}]",
                           &error),
                     INVALID);
    assert_non_null(strstr(error.message, "redundant"));
    assert_int_equal(check("[{'source-id':2,'name':'a','transform':'day'},"
                           "{'source-id':3,'name':'b','transform':'hour'}]",
                           &error),
                     OK);
    assert_int_equal(check("[{'source-id':2,'name':'a','transform':'void'},"
                           "{'source-id':2,'name':'b','transform':'hour'}]",
                           &error),
                     OK);
    assert_int_equal(check("[{'source-id':1,'name':'a','transform':'bucket[4]'},"
                           "{'source-id':1,'name':'b','transform':'bucket[8]'}]",
                           &error),
                     OK);
}

static void iceberg_8_5_80_a_partition_may_not_take_a_columns_name(void **state)
{
    (void)state;
    struct error error = {0};
    assert_int_equal(check("[{'source-id':2,'name':'name','transform':'day'}]", &error), INVALID);
    assert_non_null(strstr(error.message, "exists in schema: name"));
    assert_int_equal(check("[{'source-id':6,'name':'name','transform':'identity'}]", &error), OK);
    assert_int_equal(check("[{'source-id':6,'name':'id','transform':'identity'}]", &error),
                     INVALID);
    assert_int_equal(check("[{'source-id':2,'name':'a','transform':'day'},"
                           "{'source-id':3,'name':'a','transform':'day'}]",
                           &error),
                     INVALID);
}

static void iceberg_8_5_81_a_gone_source_is_refused_except_under_void(void **state)
{
    (void)state;
    struct error error = {0};
    assert_int_equal(check("[{'source-id':99,'name':'a','transform':'day'}]", &error), INVALID);
    assert_non_null(strstr(error.message, "Cannot find source column"));
    assert_int_equal(check("[{'source-id':99,'name':'a','transform':'void'}]", &error), OK);
}

static void an_unknown_transform_is_read_and_not_written(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    AUTO_JSON json_t *document = fixture_json(
        "{'spec-id':4,'fields':[{'source-id':1,'field-id':1000,'name':'z',"
        "'transform':'zorder'},{'source-ids':[1,2],'field-id':1001,'name':'w',"
        "'transform':'bucket[4]'}]}");
    struct partition_spec spec = {0};
    struct error error = {0};
    assert_int_equal(partition_from_json(arena, document, &spec, NULL), OK);
    assert_int_equal(spec.id, 4);
    assert_int_equal(spec.fields[0].transform, PARTITION_OTHER);
    assert_int_equal(spec.fields[1].transform, PARTITION_OTHER);
    assert_int_equal(check("[{'source-id':1,'name':'z','transform':'zorder'}]", &error), INVALID);
}

static void malformed_specs_are_refused(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "{'spec-id':1}",
        "{'spec-id':-1,'fields':[]}",
        "{'fields':[{'name':'a','transform':'day'}]}",
        "{'fields':[{'source-id':1,'transform':'day'}]}",
        "{'fields':[{'source-id':1,'name':'a'}]}",
        "{'fields':[{'source-id':1,'name':'a','transform':'day','field-id':-4}]}",
    };
    for (size_t i = 0; i < ARRAY_COUNT(TEXTS); i++) {
        AUTO_ARENA struct arena *arena = arena_create(MIB);
        AUTO_JSON json_t *document = fixture_json(TEXTS[i]);
        struct partition_spec spec = {0};
        assert_int_equal(partition_from_json(arena, document, &spec, NULL), INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partition_text_becomes_a_spec_field),
        cmocka_unit_test(a_column_named_like_a_transform_can_be_meant),
        cmocka_unit_test(partition_text_that_fits_no_column_is_refused),
        cmocka_unit_test(iceberg_8_5_74_values_before_1970_are_floored),
        cmocka_unit_test(iceberg_8_5_75_nanoseconds_have_their_own_unit),
        cmocka_unit_test(a_null_gives_a_null),
        cmocka_unit_test(iceberg_8_5_77_paths_show_years_months_days_and_hours),
        cmocka_unit_test(iceberg_8_5_78_both_sides_of_a_path_are_encoded),
        cmocka_unit_test(a_long_name_leaves_its_part_out_of_the_path),
        cmocka_unit_test(iceberg_8_5_79_two_time_transforms_of_one_column_are_refused),
        cmocka_unit_test(iceberg_8_5_80_a_partition_may_not_take_a_columns_name),
        cmocka_unit_test(iceberg_8_5_81_a_gone_source_is_refused_except_under_void),
        cmocka_unit_test(an_unknown_transform_is_read_and_not_written),
        cmocka_unit_test(malformed_specs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
