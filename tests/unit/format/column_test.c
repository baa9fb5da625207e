#include "format/column.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ARENA_BYTES = 64 * MIB };

/* s: struct<n: long required, t: string>, l: list<string>, m: map<string, fixed[3]> */
static struct field struct_fields[] = {
    {.id = 2, .required = true, .name = STR_INIT("n"), .type = {.kind = TYPE_LONG}},
    {.id = 3, .name = STR_INIT("t"), .type = {.kind = TYPE_STRING}},
};
static struct field list_fields[] = {
    {.id = 5, .name = STR_INIT("element"), .type = {.kind = TYPE_STRING}},
};
static struct field map_fields[] = {
    {.id = 7, .required = true, .name = STR_INIT("key"), .type = {.kind = TYPE_STRING}},
    {.id = 8, .name = STR_INIT("value"), .type = {.kind = TYPE_FIXED, .length = 3}},
};
static const struct field field_struct = {
    .id = 1,
    .name = STR_INIT("s"),
    .type = {.kind = TYPE_STRUCT, .fields = struct_fields, .field_count = 2},
};
static const struct field field_list = {
    .id = 4,
    .name = STR_INIT("l"),
    .type = {.kind = TYPE_LIST, .fields = list_fields, .field_count = 1},
};
static const struct field field_map = {
    .id = 6,
    .name = STR_INIT("m"),
    .type = {.kind = TYPE_MAP, .fields = map_fields, .field_count = 2},
};
static const struct field field_int = {.id = 9, .type = {.kind = TYPE_INT}};
static const struct field field_string = {.id = 10, .type = {.kind = TYPE_STRING}};
static const struct field field_unknown = {.id = 11, .type = {.kind = TYPE_UNKNOWN}};

static bool append_int(struct column *column, i32 value)
{
    return column_append_fixed(column, &value);
}

static i32 int_at(const struct column *column, i64 index)
{
    return (i32)num_load_u32(column->data + index * 4);
}

static str bytes_at(const struct column *column, i64 index)
{
    i64 start = column->offsets[index];
    return (str){(const char *)column->data + start, (size_t)(column->offsets[index + 1] - start)};
}

static void what_was_foreseen_is_not_moved(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(ARENA_BYTES);
    struct column column;
    assert_true(column_init(&column, arena, &field_list));
    struct column *element = &column.children[0];
    for (int i = 0; i < 100; i++) {
        assert_true(column_append_bytes(element, STR("twenty bytes of text")));
        assert_true(column_append_nested(&column));
    }
    assert_true(column_foresee(&column, 1000 * COLUMN_TIMES_ONE));
    assert_true(column.capacity >= 100000 && column.capacity < 120000);
    assert_true(element->data_capacity >= 2000000 && element->data_capacity < 2400000);
    const u8 *valid = column.valid;
    const i64 *offsets = element->offsets;
    const u8 *data = element->data;
    for (int i = 100; i < 100000; i++) {
        assert_true(column_append_bytes(element, STR("twenty bytes of text")));
        assert_true(column_append_nested(&column));
    }
    assert_ptr_equal(column.valid, valid);
    assert_ptr_equal(element->offsets, offsets);
    assert_ptr_equal(element->data, data);
    assert_true(str_equal(bytes_at(element, 99999), STR("twenty bytes of text")));
    assert_int_equal(column.offsets[100000], 100000);
    /* What is there already is no reason to move, and more than fits is told. */
    assert_true(column_foresee(&column, COLUMN_TIMES_ONE));
    assert_ptr_equal(element->data, data);
    assert_false(column_foresee(&column, COLUMN_TIMES_MAX));
    assert_int_equal(column.count, 100000);
}

static void values_and_nulls_stand_where_they_were_put(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(ARENA_BYTES);
    struct column column;
    assert_true(column_init(&column, arena, &field_int));
    for (i32 i = 0; i < 1000; i++) {
        assert_true(i % 3 == 0 ? column_append_null(&column) : append_int(&column, i - 500));
    }
    assert_int_equal(column.count, 1000);
    assert_int_equal(column.null_count, 334);
    assert_int_equal(column.data_size, 4000);
    for (i32 i = 0; i < 1000; i++) {
        assert_int_equal(column.valid[i], i % 3 != 0);
        assert_int_equal(int_at(&column, i), i % 3 == 0 ? 0 : i - 500);
    }
}

static void strings_have_offsets_and_nulls_take_no_bytes(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(ARENA_BYTES);
    struct column column;
    assert_true(column_init(&column, arena, &field_string));
    assert_true(column_append_bytes(&column, STR("abc")));
    assert_true(column_append_null(&column));
    assert_true(column_append_bytes(&column, (str){NULL, 0}));
    assert_true(column_append_bytes(&column, STR("d")));
    const i64 offsets[] = {0, 3, 3, 3, 4};
    assert_memory_equal(column.offsets, offsets, sizeof(offsets));
    assert_true(str_equal(bytes_at(&column, 0), STR("abc")));
    assert_true(str_equal(bytes_at(&column, 3), STR("d")));
    assert_int_equal(column.null_count, 1);
    assert_int_equal(column.data_size, 4);
}

static void a_null_struct_has_a_null_in_every_child(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(ARENA_BYTES);
    struct column column;
    assert_true(column_init(&column, arena, &field_struct));
    assert_true(column_append_null(&column));
    assert_true(column_append_fixed(&column.children[0], &(i64){7}));
    assert_true(column_append_bytes(&column.children[1], STR("seven")));
    assert_true(column_append_nested(&column));
    assert_int_equal(column.count, 2);
    assert_int_equal(column.null_count, 1);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(column.children[i].count, 2);
        assert_int_equal(column.children[i].valid[0], 0);
        assert_int_equal(column.children[i].valid[1], 1);
    }
}

static void lists_end_where_their_children_do(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(ARENA_BYTES);
    struct column column;
    assert_true(column_init(&column, arena, &field_list));
    assert_true(column_append_nested(&column)); /* [] */
    assert_true(column_append_bytes(&column.children[0], STR("a")));
    assert_true(column_append_null(&column.children[0]));
    assert_true(column_append_nested(&column)); /* ["a", null] */
    assert_true(column_append_null(&column));
    const i64 offsets[] = {0, 0, 2, 2};
    assert_memory_equal(column.offsets, offsets, sizeof(offsets));
    const u8 valid[] = {1, 1, 0};
    assert_memory_equal(column.valid, valid, sizeof(valid));
}

static void put_map_row(struct column *column, const char *key, const char *value)
{
    assert_true(column_append_bytes(&column->children[0], str_from(key)));
    assert_true(column_append_fixed(&column->children[1], value));
    assert_true(column_append_nested(column));
}

static void a_row_that_ended_in_its_middle_is_taken_back_whole(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(ARENA_BYTES);
    struct column map;
    struct column record;
    assert_true(column_init(&map, arena, &field_map));
    assert_true(column_init(&record, arena, &field_struct));
    put_map_row(&map, "k", "abc");
    assert_true(column_append_null(&record));

    /* A key without its value, and a struct with the first of its fields only. */
    assert_true(column_append_bytes(&map.children[0], STR("left over")));
    assert_true(column_append_fixed(&record.children[0], &(i64){1}));
    column_truncate(&map, 1);
    column_truncate(&record, 1);
    assert_int_equal(map.children[0].count, 1);
    assert_int_equal(map.children[0].data_size, 1);
    assert_int_equal(map.children[1].count, 1);
    assert_int_equal(record.children[0].count, 1);

    put_map_row(&map, "l", "def");
    assert_int_equal(map.count, 2);
    assert_true(str_equal(bytes_at(&map.children[0], 1), STR("l")));
    assert_memory_equal(map.children[1].data, "abcdef", 6);
}

static void truncating_gives_nulls_and_bytes_back(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(ARENA_BYTES);
    struct column column;
    assert_true(column_init(&column, arena, &field_list));
    i64 empty = column_bytes(&column);
    column_truncate(&column, 0);
    assert_int_equal(column_bytes(&column), empty);
    for (i32 i = 0; i < 100; i++) {
        assert_true(column_append_bytes(&column.children[0], STR("text")));
        assert_true(i % 2 == 0 ? column_append_nested(&column)
                               : (column_truncate(&column, i), column_append_null(&column)));
    }
    assert_int_equal(column.null_count, 50);
    column_truncate(&column, 10);
    assert_int_equal(column.count, 10);
    assert_int_equal(column.null_count, 5);
    assert_int_equal(column.children[0].count, 5);
    assert_int_equal(column.children[0].data_size, 20);
    column_truncate(&column, 0);
    assert_int_equal(column.null_count, 0);
    assert_int_equal(column.children[0].count, 0);
}

static void bytes_in_use_count_values_offsets_and_children(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(ARENA_BYTES);
    struct column column;
    assert_true(column_init(&column, arena, &field_list));
    assert_true(column_append_bytes(&column.children[0], STR("text")));
    assert_true(column_append_nested(&column));
    /* the list: 1 validity, 2 offsets; the element: 1 validity, 2 offsets, 4 bytes */
    assert_int_equal(column_bytes(&column), (1 + 16) + (1 + 16 + 4));
}

static void an_unknown_column_counts_its_nulls(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(ARENA_BYTES);
    struct column column;
    assert_true(column_init(&column, arena, &field_unknown));
    assert_true(column_append_null(&column));
    assert_true(column_append_null(&column));
    assert_int_equal(column.count, 2);
    assert_int_equal(column.null_count, 2);
    assert_int_equal(column.data_size, 0);
}

static void widths_are_those_of_the_header(void **state)
{
    (void)state;
    const struct {
        enum type_kind kind;
        size_t width;
    } widths[] = {
        {TYPE_BOOLEAN, 1},     {TYPE_INT, 4},          {TYPE_LONG, 8},
        {TYPE_FLOAT, 4},       {TYPE_DOUBLE, 8},       {TYPE_DECIMAL, 16},
        {TYPE_DATE, 4},        {TYPE_TIME, 8},         {TYPE_TIMESTAMP, 8},
        {TYPE_TIMESTAMPTZ, 8}, {TYPE_TIMESTAMP_NS, 8}, {TYPE_TIMESTAMPTZ_NS, 8},
        {TYPE_STRING, 0},      {TYPE_UUID, 16},        {TYPE_FIXED, 77},
        {TYPE_BINARY, 0},      {TYPE_UNKNOWN, 0},      {TYPE_STRUCT, 0},
        {TYPE_LIST, 0},        {TYPE_MAP, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(widths); i++) {
        const struct type type = {.kind = widths[i].kind, .length = 77, .precision = 9};
        assert_int_equal(column_width(&type), widths[i].width);
    }
}

/* Grows a struct, a list and a map until growth fails; each append either happens or doesn't. */
static i64 grow_until(struct arena *arena, i64 rows)
{
    struct column record;
    struct column list;
    if (!column_init(&record, arena, &field_struct) || !column_init(&list, arena, &field_list)) {
        return 0;
    }
    static const char text[2000] = "text";
    i64 row = 0;
    while (row < rows) {
        bool done = row % 2 == 0
                        ? column_append_null(&record)
                        : column_append_fixed(&record.children[0], &(i64){row}) &&
                              column_append_bytes(&record.children[1], (str){text, 2000}) &&
                              column_append_nested(&record);
        done = done && column_append_bytes(&list.children[0], (str){text, 2000}) &&
               column_append_nested(&list);
        if (!done) {
            break;
        }
        row++;
    }
    column_truncate(&record, row);
    column_truncate(&list, row);
    assert_int_equal(record.null_count, (row + 1) / 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(record.children[i].count, row);
        assert_int_equal(record.children[i].null_count, (row + 1) / 2);
    }
    assert_int_equal(list.children[0].count, row);
    for (i64 i = 0; i < row; i++) {
        assert_memory_equal(bytes_at(&list.children[0], i).data, text, 2000);
    }
    return row;
}

static void an_append_at_the_limit_leaves_the_rows_before_it(void **state)
{
    (void)state;
    enum { ROWS = 500 };
    arena_fail_growth_at(0);
    struct arena *arena = arena_create(ARENA_BYTES);
    assert_int_equal(grow_until(arena, ROWS), ROWS);
    i64 growths = arena_growths();
    arena_destroy(arena);
    assert_true(growths > 3);
    for (i64 n = 1; n <= growths; n++) {
        arena = arena_create(ARENA_BYTES);
        arena_fail_growth_at(n);
        assert_true(grow_until(arena, ROWS) < ROWS);
        arena_fail_growth_at(0);
        arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_foreseen_is_not_moved),
        cmocka_unit_test(values_and_nulls_stand_where_they_were_put),
        cmocka_unit_test(strings_have_offsets_and_nulls_take_no_bytes),
        cmocka_unit_test(a_null_struct_has_a_null_in_every_child),
        cmocka_unit_test(lists_end_where_their_children_do),
        cmocka_unit_test(a_row_that_ended_in_its_middle_is_taken_back_whole),
        cmocka_unit_test(truncating_gives_nulls_and_bytes_back),
        cmocka_unit_test(bytes_in_use_count_values_offsets_and_children),
        cmocka_unit_test(an_unknown_column_counts_its_nulls),
        cmocka_unit_test(widths_are_those_of_the_header),
        cmocka_unit_test(an_append_at_the_limit_leaves_the_rows_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
