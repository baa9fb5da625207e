#include "table_fixture.h"

#include "table/schema.h"

static err parse(struct arena *arena, const char *text, struct type *out_type, bool *out_required)
{
    return schema_parse_type(arena, str_from(text), out_type, out_required, NULL);
}

static void textual_types_are_read_back_as_they_are_written(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "timestamp_ns",
        "timestamptz_ns",
        "string",
        "uuid",
        "binary",
        "unknown",
        "variant",
        "geometry",
        "geography",
        "geometry(srid:4326)",
        "geography(OGC:CRS84, spherical)",
        "decimal(10,2)",
        "decimal(38,38)",
        "fixed[16]",
        "list<string>",
        "list<int required>",
        "map<string, long>",
        "map<string, list<long required> required>",
        "struct<a: int required, b: list<double>, required: string>",
        "struct<>",
        "struct<\"odd \\\"name\\\"\": map<uuid, struct<x: date>>>"};
    for (size_t i = 0; i < ARRAY_COUNT(TEXTS); i++) {
        AUTO_ARENA struct arena *arena = arena_create(MIB);
        struct type type = {0};
        assert_int_equal(parse(arena, TEXTS[i], &type, NULL), OK);
        assert_str(type_text(arena, &type), TEXTS[i]);
    }
}

static void blanks_and_inner_marks_are_allowed_in_textual_types(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct type type = {0};
    bool required = false;
    assert_int_equal(
        parse(arena, " map < string required ,\n decimal( 9 , 2 ) > required ", &type, &required),
        OK);
    assert_true(required);
    assert_str(type_text(arena, &type), "map<string, decimal(9,2)>");
    assert_true(type.fields[0].required);
    assert_int_equal(parse(arena, "long", &type, &required), OK);
    assert_false(required);
}

static void malformed_textual_types_are_refused(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"",
                                        "strings",
                                        "Long",
                                        "decimal",
                                        "decimal(0,0)",
                                        "decimal(39,0)",
                                        "decimal(5,6)",
                                        "decimal(5)",
                                        "decimal(5,-1)",
                                        "decimal(1234567890,0)",
                                        "fixed[0]",
                                        "fixed[]",
                                        "fixed(3)",
                                        "list",
                                        "list<>",
                                        "list<int",
                                        "list<int>>",
                                        "list<int,int>",
                                        "map<int>",
                                        "map<int int>",
                                        "struct<a int>",
                                        "struct<a: int,>",
                                        "struct<a: int b: int>",
                                        "struct<,>",
                                        "struct<-: int>",
                                        "struct<\"a: int>",
                                        "long required",
                                        "list<unknown required>",
                                        "struct<a: unknown required>",
                                        "map<unknown, int>",
                                        "geometry(",
                                        "int int",
                                        "int;"};
    for (size_t i = 0; i < ARRAY_COUNT(TEXTS); i++) {
        AUTO_ARENA struct arena *arena = arena_create(MIB);
        struct type type = {0};
        if (parse(arena, TEXTS[i], &type, NULL) != INVALID) {
            fail_msg("%s was taken", TEXTS[i]);
        }
    }
}

static void nesting_of_a_textual_type_is_bounded(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    for (size_t depth = SCHEMA_DEPTH_MAX; depth <= SCHEMA_DEPTH_MAX + 1; depth++) {
        buf text = buf_create(arena, 512, KIB);
        for (size_t i = 0; i < depth; i++) {
            buf_append(&text, STR("list<"));
        }
        buf_append(&text, STR("int"));
        for (size_t i = 0; i < depth; i++) {
            buf_append(&text, STR(">"));
        }
        struct type type = {0};
        err wanted = depth == SCHEMA_DEPTH_MAX ? OK : INVALID;
        assert_int_equal(schema_parse_type(arena, buf_str(&text), &type, NULL, NULL), wanted);
    }
}

/* Field order of the reference library: a struct's own fields first, then what is inside each. */
static void ids_are_given_level_by_level_inside_each_struct(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct type type = {0};
    assert_int_equal(parse(arena,
                           "struct<a: struct<x: int, y: list<int>>, b: map<string, struct<z: "
                           "int>>, c: long>",
                           &type, NULL),
                     OK);
    i32 last_id = 10;
    schema_assign_ids(&type, &last_id);
    struct schema schema = {.id = 7, .root = type};
    AUTO_JSON json_t *document = schema_to_json(&schema);
    assert_json(
        document,
        "{'type':'struct','schema-id':7,'fields':["
        "{'id':11,'name':'a','required':false,'type':{'type':'struct','fields':["
        "{'id':14,'name':'x','required':false,'type':'int'},"
        "{'id':15,'name':'y','required':false,'type':{'type':'list','element-id':16,"
        "'element':'int','element-required':false}}]}},"
        "{'id':12,'name':'b','required':false,'type':{'type':'map','key-id':17,'key':'string',"
        "'value-id':18,'value':{'type':'struct','fields':["
        "{'id':19,'name':'z','required':false,'type':'int'}]},'value-required':false}},"
        "{'id':13,'name':'c','required':false,'type':'long'}]}");
    assert_int_equal(last_id, 19);
}

static void iceberg_8_1_18_the_highest_id_counts_lists_and_maps(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct schema schema = {0};
    AUTO_JSON json_t *document = fixture_json(
        "{'type':'struct','fields':[{'id':1,'name':'l','required':false,'type':{'type':'list',"
        "'element-id':7,'element':'int','element-required':true}},{'id':2,'name':'m',"
        "'required':false,'type':{'type':'map','key-id':8,'key':'string','value-id':9,"
        "'value':'int','value-required':false}}]}");
    assert_int_equal(schema_from_json(arena, document, &schema, NULL), OK);
    assert_int_equal(schema_highest_id(&schema.root), 9);
    assert_str(schema_find(&schema.root, 9)->name, "value");
    assert_null(schema_find(&schema.root, 10));
}

static void a_schema_is_read_and_written_without_loss(void **state)
{
    (void)state;
    static const char TEXT[] =
        "{'type':'struct','schema-id':3,'fields':["
        "{'id':1,'name':'a','required':true,'type':'decimal(9, 2)','doc':'a doc',"
        "'initial-default':'1.50','write-default':'2.00'},"
        "{'id':2,'name':'b','required':false,'type':'fixed[4]','write-default':'00ff00ff'},"
        "{'id':3,'name':'c','required':false,'type':'long','write-default':9007199254740993},"
        "{'id':4,'name':'d','required':false,'type':{'type':'struct','fields':[]},"
        "'write-default':{}},"
        "{'id':5,'name':'e','required':false,'type':'geometry(srid:3857)'}]}";
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    AUTO_JSON json_t *document = fixture_json(TEXT);
    struct schema schema = {0};
    assert_int_equal(schema_from_json(arena, document, &schema, NULL), OK);
    assert_str(schema.root.fields[0].doc, "a doc");
    assert_str(schema.root.fields[0].initial_default, "\"1.50\"");
    assert_str(schema.root.fields[2].write_default, "9007199254740993");
    assert_null(schema.root.fields[1].initial_default.data);
    AUTO_JSON json_t *again = schema_to_json(&schema);
    assert_json(again, TEXT);
}

static void a_default_of_null_counts_as_none(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    AUTO_JSON json_t *document = fixture_json(
        "{'type':'struct','fields':[{'id':1,'name':'a','required':false,"
        "'type':'int','write-default':null}]}");
    struct schema schema = {0};
    assert_int_equal(schema_from_json(arena, document, &schema, NULL), OK);
    assert_null(schema.root.fields[0].write_default.data);
}

static void schemas_that_cannot_be_read_are_refused_by_field(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        const char *message;
    } CASES[] = {
        {"{'id':1,'required':true,'type':'int'}", "no name"},
        {"{'name':'q','required':true,'type':'int'}", "\"q\": no id"},
        {"{'id':-1,'name':'q','required':true,'type':'int'}", "\"q\": no id"},
        {"{'id':2147483648,'name':'q','required':true,'type':'int'}", "\"q\": no id"},
        {"{'id':1.0,'name':'q','required':true,'type':'int'}", "\"q\": no id"},
        {"{'id':1,'name':'q','type':'int'}", "\"q\": required"},
        {"{'id':1,'name':'q','required':true}", "\"q\": no type"},
        {"{'id':1,'name':'q','required':true,'type':'list<int>'}", "\"q\": \"list<int>\""},
        {"{'id':1,'name':'q','required':true,'type':'integer'}", "\"q\": \"integer\""},
        {"{'id':1,'name':'q','required':true,'type':{'type':'set'}}", "\"q\": a type"},
        {"{'id':1,'name':'q','required':true,'type':{'type':'list','element':'int'}}", "\"q\""},
        {"{'id':1,'name':'q','required':true,'type':{'type':'list','element':'int',"
         "'element-id':2}}",
         "\"q\""},
        {"{'id':1,'name':'q','required':true,'type':{'type':'map','key':'int','key-id':2}}",
         "\"q\""},
        {"{'id':1,'name':'q','required':true,'type':{'type':'struct'}}", "\"q\""},
        {"{'id':1,'name':'q','required':true,'type':'unknown'}", "\"q\": a required unknown"},
        {"{'id':1,'name':'q','required':true,'type':'int'},"
         "{'id':2,'name':'q','required':true,'type':'int'}",
         "\"q\": two fields"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        AUTO_ARENA struct arena *arena = arena_create(MIB);
        char text[512];
        (void)snprintf(text, sizeof(text), "{'type':'struct','fields':[%s]}", CASES[i].fields);
        AUTO_JSON json_t *document = fixture_json(text);
        struct schema schema = {0};
        struct error error = {0};
        assert_int_equal(schema_from_json(arena, document, &schema, &error), INVALID);
        assert_int_equal(error.code, ERROR_INVALID_REQUEST);
        if (strstr(error.message, CASES[i].message) == NULL) {
            fail_msg("%s: %s", CASES[i].fields, error.message);
        }
    }
}

static void depth_of_a_schema_is_bounded(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    json_t *type = json_string("int");
    for (int i = 0; i < SCHEMA_DEPTH_MAX; i++) {
        type = json_pack("{s:s,s:i,s:o,s:b}", "type", "list", "element-id", i + 2, "element", type,
                         "element-required", 0);
    }
    for (int extra = 0; extra < 2; extra++) {
        if (extra == 1) {
            type = json_pack("{s:s,s:i,s:o,s:b}", "type", "list", "element-id", 99, "element", type,
                             "element-required", 0);
        }
        AUTO_JSON json_t *document = json_pack("{s:s,s:[{s:i,s:s,s:b,s:O}]}", "type", "struct",
                                               "fields", "id", 1, "name", "a", "required", 0,
                                               "type", type);
        struct schema schema = {0};
        err result = schema_from_json(arena, document, &schema, NULL);
        assert_int_equal(result, extra == 0 ? OK : INVALID);
    }
    json_decref(type);
}

static err check_names(const char *text)
{
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct type type = {0};
    assert_int_equal(parse(arena, text, &type, NULL), OK);
    return schema_check_names(&type, NULL);
}

static void names_that_libraries_confuse_are_refused(void **state)
{
    (void)state;
    assert_int_equal(check_names("struct<a: struct<b: int>, \"a.c\": int>"), OK);
    assert_int_equal(check_names("struct<a: struct<b: int>, \"a.b\": int>"), INVALID);
    assert_int_equal(check_names("struct<\"a.b\": int, a: struct<b: int>>"), INVALID);
    assert_int_equal(check_names("struct<s: struct<a: struct<b: int>, \"a.b\": int>>"), INVALID);
    assert_int_equal(check_names("struct<a: int, a: int>"), INVALID);
    assert_int_equal(check_names("struct<a: int, A: int>"), OK);
    assert_int_equal(check_names("struct<l: list<struct<a: int, a: long>>>"), INVALID);
    assert_int_equal(check_names("struct<x: struct<a: int>, y: struct<a: int>>"), OK);
}

static void names_are_utf8_without_control_characters(void **state)
{
    (void)state;
    assert_int_equal(check_names("struct<\"größe 100% 🙂\": int>"), OK);
    assert_int_equal(check_names("struct<\"\": int>"), INVALID);
    assert_int_equal(check_names("struct<\"a\\nb\": int>"), INVALID);
    assert_int_equal(check_names("struct<\"a\\u0000\": int>"), INVALID);
    assert_int_equal(check_names("struct<\"a\\u007f\": int>"), INVALID);
    assert_int_equal(check_names("struct<\"a\\u0085\": int>"), INVALID);
    assert_int_equal(check_names("struct<\"a\\u00a0\": int>"), OK);
    char text[400];
    for (int size = SCHEMA_NAME_BYTES_MAX; size <= SCHEMA_NAME_BYTES_MAX + 1; size++) {
        char name[SCHEMA_NAME_BYTES_MAX + 2] = {0};
        memset(name, 'n', (size_t)size);
        (void)snprintf(text, sizeof(text), "struct<%s: int>", name);
        assert_int_equal(check_names(text), size > SCHEMA_NAME_BYTES_MAX ? INVALID : OK);
    }
}

static void equal_ids_are_refused(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct type type = {0};
    assert_int_equal(parse(arena, "struct<a: int, b: list<int>>", &type, NULL), OK);
    i32 last_id = 0;
    schema_assign_ids(&type, &last_id);
    assert_int_equal(schema_check_unique(&type, NULL), OK);
    type.fields[1].type.fields[0].id = 1;
    assert_int_equal(schema_check_unique(&type, NULL), INVALID);
}

static void a_full_arena_is_reported_and_nothing_is_left_behind(void **state)
{
    (void)state;
    AUTO_JSON json_t *document = fixture_json(FIXTURE_COLUMNS);
    bool done = false;
    for (i64 n = 1; !done; n++) {
        AUTO_ARENA struct arena *arena = arena_create(MIB);
        struct schema schema = {0};
        arena_fail_allocation_at(n);
        err result = schema_from_json(arena, document, &schema, NULL);
        done = arena_growths() < n;
        arena_fail_growth_at(0);
        assert_int_equal(result, done ? OK : LIMIT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(textual_types_are_read_back_as_they_are_written),
        cmocka_unit_test(blanks_and_inner_marks_are_allowed_in_textual_types),
        cmocka_unit_test(malformed_textual_types_are_refused),
        cmocka_unit_test(nesting_of_a_textual_type_is_bounded),
        cmocka_unit_test(ids_are_given_level_by_level_inside_each_struct),
        cmocka_unit_test(iceberg_8_1_18_the_highest_id_counts_lists_and_maps),
        cmocka_unit_test(a_schema_is_read_and_written_without_loss),
        cmocka_unit_test(a_default_of_null_counts_as_none),
        cmocka_unit_test(schemas_that_cannot_be_read_are_refused_by_field),
        cmocka_unit_test(depth_of_a_schema_is_bounded),
        cmocka_unit_test(names_that_libraries_confuse_are_refused),
        cmocka_unit_test(names_are_utf8_without_control_characters),
        cmocka_unit_test(equal_ids_are_refused),
        cmocka_unit_test(a_full_arena_is_reported_and_nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
