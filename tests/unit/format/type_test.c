#include "format/type.h"

#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_text(const struct type *type, const char *text, const char *short_text)
{
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    assert_true(str_equal(type_text(arena, type), str_from(text)));
    assert_true(str_equal(type_text_short(arena, type), str_from(short_text)));
}

static void scalars_are_written_with_their_parameters(void **state)
{
    (void)state;
    assert_text(&(struct type){.kind = TYPE_LONG}, "long", "long");
    assert_text(&(struct type){.kind = TYPE_TIMESTAMPTZ_NS}, "timestamptz_ns", "timestamptz_ns");
    assert_text(&(struct type){.kind = TYPE_DECIMAL, .precision = 10, .scale = 2}, "decimal(10,2)",
                "decimal(10,2)");
    assert_text(&(struct type){.kind = TYPE_FIXED, .length = 16}, "fixed[16]", "fixed[16]");
    assert_text(&(struct type){.kind = TYPE_GEOMETRY, .parameters = STR("(srid:4326)")},
                "geometry(srid:4326)", "geometry(srid:4326)");
}

static void nested_types_are_written_whole_or_by_their_word(void **state)
{
    (void)state;
    struct field pair[] = {{.name = STR("key"), .required = true, .type = {.kind = TYPE_STRING}},
                           {.name = STR("value"), .required = true, .type = {.kind = TYPE_DOUBLE}}};
    struct field element = {.name = STR("element"),
                            .type = {.kind = TYPE_MAP, .fields = pair, .field_count = 2}};
    struct field fields[] = {{.name = STR("a_1"), .required = true, .type = {.kind = TYPE_INT}},
                             {.name = STR("the \"name\""),
                              .type = {.kind = TYPE_LIST, .fields = &element, .field_count = 1}},
                             {.name = STR(""), .type = {.kind = TYPE_BINARY}}};
    assert_text(
        &(struct type){.kind = TYPE_STRUCT, .fields = fields, .field_count = 3},
        "struct<a_1: int required, \"the \\\"name\\\"\": list<map<string, double required>>, "
        "\"\": binary>",
        "struct");
    assert_text(&fields[1].type, "list<map<string, double required>>", "list");
    assert_text(&element.type, "map<string, double required>", "map");
    assert_text(&(struct type){.kind = TYPE_STRUCT}, "struct<>", "struct");
}

static void fields_are_found_by_their_exact_name(void **state)
{
    (void)state;
    struct field fields[] = {{.name = STR("X"), .id = 1}, {.name = STR("x"), .id = 2}};
    struct type type = {.kind = TYPE_STRUCT, .fields = fields, .field_count = 2};
    assert_int_equal(type_field(&type, STR("x"))->id, 2);
    assert_null(type_field(&type, STR("x ")));
    assert_null(type_field(&type, STR("")));
}

static void a_full_arena_gives_no_text(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct type type = {.kind = TYPE_DECIMAL, .precision = 10, .scale = 2};
    arena_fail_growth_at(1);
    str text = type_text(arena, &type);
    arena_fail_growth_at(0);
    assert_null(text.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_are_written_with_their_parameters),
        cmocka_unit_test(nested_types_are_written_whole_or_by_their_word),
        cmocka_unit_test(fields_are_found_by_their_exact_name),
        cmocka_unit_test(a_full_arena_gives_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
