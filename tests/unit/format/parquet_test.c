#include "base/buf.h"
#include "format/parquet/parquet.h"

#include "base/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* What is in the files, and that others read them, is tested with pyarrow and DuckDB in
 * tests/oracle/test_parquet.py. */

enum { ARENA_BYTES = 256 * MIB, FILE_BYTES = 64 * MIB };

static struct arena *arena;

static int make_arena(void **state)
{
    (void)state;
    arena = arena_create(ARENA_BYTES);
    return 0;
}

static int drop_arena(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

static struct field list_fields[] = {
    {.id = 6, .required = true, .name = STR_INIT("element"), .type = {.kind = TYPE_INT}},
};
static const struct field fields[] = {
    {.id = 1, .required = true, .name = STR_INIT("n"), .type = {.kind = TYPE_LONG}},
    {.id = 2, .name = STR_INIT("s"), .type = {.kind = TYPE_STRING}},
    {.id = 3, .name = STR_INIT("x"), .type = {.kind = TYPE_DOUBLE}},
    {.id = 4, .name = STR_INIT("d"), .type = {.kind = TYPE_DECIMAL, .precision = 9, .scale = 2}},
    {.id = 5,
     .name = STR_INIT("l"),
     .type = {.kind = TYPE_LIST, .fields = list_fields, .field_count = 1}},
    {.id = 7, .name = STR_INIT("u"), .type = {.kind = TYPE_UNKNOWN}},
};
enum { FIELDS = 6, LEAVES = 5 };

static err output_append(void *context, str bytes, struct error *error)
{
    buf *file = context;
    buf_append(file, bytes);
    return buf_ok(file) ? OK : error_memory(error);
}

struct file {
    buf bytes;
    struct parquet_writer *writer;
    struct column columns[FIELDS];
};

static err file_open_with(struct arena *in, struct parquet_kit *kit, struct file *file)
{
    *file = (struct file){.bytes = buf_create(in, 0, FILE_BYTES)};
    for (size_t i = 0; i < FIELDS; i++) {
        if (!column_init(&file->columns[i], in, &fields[i])) {
            return LIMIT;
        }
    }
    struct parquet_options options = parquet_options_default();
    options.kit = kit;
    return parquet_open(in, fields, FIELDS, &options, STR("{}"), output_append, &file->bytes,
                        &file->writer, NULL);
}

static err file_open(struct arena *in, struct file *file)
{
    return file_open_with(in, NULL, file);
}

struct row {
    i64 n;
    str s;
    double x;
    i128 d;
};

static bool row_append(struct file *file, const struct row *row)
{
    struct column *columns = file->columns;
    const i32 element = 7;
    return column_append_fixed(&columns[0], &row->n) &&
           (row->s.data != NULL ? column_append_bytes(&columns[1], row->s)
                                : column_append_null(&columns[1])) &&
           column_append_fixed(&columns[2], &row->x) && column_append_fixed(&columns[3], &row->d) &&
           column_append_fixed(&columns[4].children[0], &element) &&
           column_append_fixed(&columns[4].children[0], &element) &&
           column_append_nested(&columns[4]) && column_append_null(&columns[5]);
}

static err group_write(struct file *file, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!row_append(file, &rows[i])) {
            return LIMIT;
        }
    }
    TRY(parquet_row_group(file->writer, file->columns, NULL));
    for (size_t i = 0; i < FIELDS; i++) {
        column_truncate(&file->columns[i], 0);
    }
    return OK;
}

static void write_groups(const struct row *rows, size_t count, size_t per_group,
                         struct parquet_file_stats *out_stats)
{
    struct file file;
    assert_int_equal(file_open(arena, &file), OK);
    for (size_t i = 0; i < count; i += per_group) {
        size_t left = count - i;
        assert_int_equal(group_write(&file, rows + i, left < per_group ? left : per_group), OK);
    }
    assert_int_equal(parquet_finish(file.writer, out_stats, NULL), OK);
    str bytes = buf_str(&file.bytes);
    assert_true(str_starts(bytes, STR("PAR1")));
    assert_true(str_ends(bytes, STR("PAR1")));
    assert_int_equal(out_stats->file_bytes, bytes.size);
}

static const double nan_value = (double)__builtin_nanf("");

static void counts_and_bounds_are_over_all_row_groups(void **state)
{
    (void)state;
    const struct row rows[] = {
        {5, STR_INIT("b"), 1.5, 128},
        {-3, {NULL, 0}, nan_value, -128},
        {9, STR_INIT(""), -2.0, 0},
    };
    struct parquet_file_stats stats;
    write_groups(rows, 3, 1, &stats);
    assert_int_equal(stats.rows, 3);
    assert_int_equal(stats.split_count, 3);
    assert_int_equal(stats.split_offsets[0], 4);
    assert_true(stats.split_offsets[2] > stats.split_offsets[1]);
    assert_int_equal(stats.column_count, LEAVES);
    const i32 ids[] = {1, 2, 3, 4, 6};
    const i64 nulls[] = {0, 1, 0, 0, -1}; /* of the leaf in a list nothing is told */
    const i64 nans[] = {-1, -1, 1, -1, -1};
    const i64 values[] = {3, 3, 3, 3, -1};
    for (size_t i = 0; i < LEAVES; i++) {
        assert_int_equal(stats.columns[i].field_id, ids[i]);
        assert_int_equal(stats.columns[i].null_count, nulls[i]);
        assert_int_equal(stats.columns[i].nan_count, nans[i]);
        assert_int_equal(stats.columns[i].value_count, values[i]);
        assert_true(stats.columns[i].compressed_bytes > 0);
    }
    const struct parquet_column_stats *columns = stats.columns;
    assert_true(str_equal(columns[0].lower, STR("\xfd\xff\xff\xff\xff\xff\xff\xff")));
    assert_true(str_equal(columns[0].upper, STR("\x09\0\0\0\0\0\0\0")));
    /* the empty string is a bound */
    assert_non_null(columns[1].lower.data);
    assert_int_equal(columns[1].lower.size, 0);
    assert_true(str_equal(columns[1].upper, STR("b")));
    assert_true(str_equal(columns[2].lower, STR("\0\0\0\0\0\0\x00\xc0")));
    assert_true(str_equal(columns[2].upper, STR("\0\0\0\0\0\0\xf8\x3f")));
    assert_true(str_equal(columns[3].lower, STR("\x80")));
    assert_true(str_equal(columns[3].upper, STR("\x00\x80")));
    assert_null(columns[4].lower.data);
    assert_null(columns[4].upper.data);
}

static void an_upper_bound_that_cannot_be_raised_is_none_for_the_file(void **state)
{
    (void)state;
#define HIGHEST "\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf"
    const struct row rows[] = {
        {1, STR_INIT("a"), 0.0, 0},
        {2, STR_INIT(HIGHEST HIGHEST HIGHEST HIGHEST "-"), 0.0, 0},
        {3, STR_INIT("b"), 0.0, 0},
        {4, {NULL, 0}, 0.0, 0},
    };
    struct parquet_file_stats stats;
    write_groups(rows, 4, 1, &stats);
    assert_true(str_equal(stats.columns[1].lower, STR("a")));
    assert_null(stats.columns[1].upper.data);
}

static void only_nulls_or_nans_have_no_bounds(void **state)
{
    (void)state;
    const struct row rows[] = {{1, {NULL, 0}, nan_value, 0}, {2, {NULL, 0}, nan_value, 0}};
    struct parquet_file_stats stats;
    write_groups(rows, 2, 2, &stats);
    assert_null(stats.columns[1].lower.data);
    assert_null(stats.columns[1].upper.data);
    assert_int_equal(stats.columns[1].null_count, 2);
    assert_null(stats.columns[2].lower.data);
    assert_null(stats.columns[2].upper.data);
    assert_int_equal(stats.columns[2].nan_count, 2);
}

/* Tables that others made have it, and a column without its id would be read as null. */
static void zero_is_an_id(void **state)
{
    (void)state;
    static const struct field counted = {
        .id = 0, .required = true, .name = STR_INIT("n"), .type = {.kind = TYPE_LONG}};
    const struct parquet_options options = parquet_options_default();
    buf bytes = buf_create(arena, 0, FILE_BYTES);
    struct parquet_writer *writer = NULL;
    struct column column;
    const i64 value = 7;
    assert_true(column_init(&column, arena, &counted));
    assert_true(column_append_fixed(&column, &value));
    assert_int_equal(
        parquet_open(arena, &counted, 1, &options, STR("{}"), output_append, &bytes, &writer, NULL),
        OK);
    assert_int_equal(parquet_row_group(writer, &column, NULL), OK);
    struct parquet_file_stats stats;
    assert_int_equal(parquet_finish(writer, &stats, NULL), OK);
    assert_int_equal(stats.column_count, 1);
    assert_int_equal(stats.columns[0].field_id, 0);
    assert_int_equal(stats.columns[0].lower.size, 8);
    /* SchemaElement: name (4), field_id (9) */
    assert_true(str_find(buf_str(&bytes), STR("\x18\x01n\x55\x00")) >= 0);
}

enum { MANY = 50000 };

static u64 scrambled(u64 number)
{
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9U;
    number = (number ^ number >> 27) * 0x94d049bb133111ebU;
    return number ^ number >> 31;
}

static u64 one_of_many(u64 row)
{
    return scrambled(scrambled(row) % (MANY / 10));
}

static u64 counted_by_twos(u64 row)
{
    return row / 2;
}

/* What the numbers of so many rows take in a file. */
static i64 bytes_of(u64 (*number)(u64 row), i64 dictionary_bytes_max)
{
    static const struct field field = {
        .id = 1, .required = true, .name = STR_INIT("n"), .type = {.kind = TYPE_LONG}};
    struct parquet_options options = parquet_options_default();
    options.dictionary_bytes_max = dictionary_bytes_max;
    buf bytes = buf_create(arena, 0, FILE_BYTES);
    struct parquet_writer *writer = NULL;
    struct column column;
    struct parquet_file_stats stats = {0};
    assert_true(column_init(&column, arena, &field));
    for (u64 row = 0; row < MANY; row++) {
        u64 value = number(row);
        assert_true(column_append_fixed(&column, &value));
    }
    assert_int_equal(
        parquet_open(arena, &field, 1, &options, (str){0}, output_append, &bytes, &writer, NULL),
        OK);
    assert_int_equal(parquet_row_group(writer, &column, NULL), OK);
    assert_int_equal(parquet_finish(writer, &stats, NULL), OK);
    return stats.columns[0].compressed_bytes;
}

/* Ten of each, and yet nearly all of the first thousands are seen there for the first time. */
static void values_that_come_again_later_are_a_dictionary(void **state)
{
    (void)state;
    enum { INDICES = MANY * 13 / 8, ENTRIES = MANY / 10 * 8 };
    assert_in_range(bytes_of(one_of_many, MIB), INDICES, INDICES + ENTRIES + KIB);
    assert_true(bytes_of(one_of_many, ENTRIES / 2) > INDICES + ENTRIES + KIB);
}

/* Two of each would be a dictionary; the codec makes far less of the numbers. */
static void a_counter_stays_plain(void **state)
{
    (void)state;
    assert_true(bytes_of(counted_by_twos, MIB) < MANY * 15 / 8);
}

/* Of 33 bits. */
static u64 unlike_any_other(u64 row)
{
    return scrambled(row) >> 31;
}

/* Six bytes that others have, too, below two that come as they like. */
static u64 like_some_other(u64 row)
{
    return scrambled(scrambled(row) % 4000) >> 16 | scrambled(row) << 48;
}

/* There is nothing to search for in the one, and only in pages, not in the sample, in the other. */
static void what_repeats_is_searched_for(void **state)
{
    (void)state;
    assert_in_range(bytes_of(unlike_any_other, MIB), MANY * 33 / 8, MANY * 33 * 4 / 8 / 3);
    assert_in_range(bytes_of(like_some_other, MIB), MANY * 2, MANY * 7);
}

/* Groups of rows that differ from column to column and from group to group. */
static str write_differing(struct parquet_kit *kit)
{
    enum { GROUPS = 3, ROWS = 3000 };
    static const str texts[] = {STR_INIT("one"), STR_INIT("another"), {NULL, 0}};
    struct row *rows = arena_array(arena, ROWS, sizeof(*rows));
    struct file file;
    struct parquet_file_stats stats;
    assert_int_equal(file_open_with(arena, kit, &file), OK);
    for (u64 group = 0; group < GROUPS; group++) {
        for (u64 i = 0; i < ROWS; i++) {
            u64 any = scrambled(group * ROWS + i);
            rows[i] = (struct row){(i64)(any % 1000), texts[any % 3], (double)(i / 7), (i128)i};
        }
        assert_int_equal(group_write(&file, rows, ROWS), OK);
    }
    assert_int_equal(parquet_finish(file.writer, &stats, NULL), OK);
    return buf_str(&file.bytes);
}

/* One kit for several files, and whatever its crew did first. */
static void a_crew_writes_the_same_file(void **state)
{
    (void)state;
    str alone = write_differing(NULL);
    struct crew *crew = crew_create(3, NULL);
    struct parquet_kit *kit = NULL;
    assert_int_equal(parquet_kit_open(arena, crew, 64 * MIB, &kit, NULL), OK);
    for (int i = 0; i < 20; i++) {
        assert_true(str_equal(write_differing(kit), alone));
    }
    parquet_kit_close(kit);
    crew_destroy(crew);
    parquet_kit_close(NULL);
}

/* A worker's memory is its own, and its limit is told as any other. */
static void a_kit_that_is_too_small_is_a_limit(void **state)
{
    (void)state;
    struct crew *crew = crew_create(2, NULL);
    struct parquet_kit *kit = NULL;
    struct file file;
    assert_int_equal(parquet_kit_open(arena, crew, 16 * KIB, &kit, NULL), OK);
    assert_int_equal(file_open_with(arena, kit, &file), OK);
    const struct row row = {1, STR("one"), 1.0, 1};
    for (i64 i = 0; i < MANY; i++) {
        assert_true(row_append(&file, &row));
    }
    struct error error = {0};
    assert_int_equal(parquet_row_group(file.writer, file.columns, &error), LIMIT);
    assert_true(error.message[0] != 0);
    parquet_kit_close(kit);
    crew_destroy(crew);
}

static void zeros_of_both_signs_are_both_bounds(void **state)
{
    (void)state;
    const struct row rows[] = {{1, {NULL, 0}, 0.0, 0}, {2, {NULL, 0}, -0.0, 0}};
    struct parquet_file_stats stats;
    write_groups(rows, 2, 1, &stats);
    assert_true(str_equal(stats.columns[2].lower, STR("\0\0\0\0\0\0\0\x80")));
    assert_true(str_equal(stats.columns[2].upper, STR("\0\0\0\0\0\0\0\0")));
}

static void a_row_group_without_rows_is_none(void **state)
{
    (void)state;
    struct parquet_file_stats stats;
    write_groups(NULL, 0, 1, &stats);
    struct file file;
    assert_int_equal(file_open(arena, &file), OK);
    assert_int_equal(group_write(&file, NULL, 0), OK);
    assert_int_equal(file.bytes.size, 4);
    assert_int_equal(parquet_finish(file.writer, &stats, NULL), OK);
    assert_int_equal(stats.rows, 0);
    assert_int_equal(stats.split_count, 0);
}

/* ---- failures ---- */

struct failing {
    i64 left; /* calls that go well */
};

static err output_fail(void *context, str bytes, struct error *error)
{
    (void)bytes;
    struct failing *failing = context;
    if (failing->left-- > 0) {
        return OK;
    }
    return error_set(error, UNKNOWN, ERROR_STORE_DOWN, "the store is gone");
}

static err write_failing(i64 calls, struct error *error)
{
    const struct field *field = &fields[0];
    const struct parquet_options options = parquet_options_default();
    struct column column;
    assert_true(column_init(&column, arena, field));
    assert_true(column_append_fixed(&column, &(i64){1}));
    struct failing failing = {calls};
    struct parquet_writer *writer = NULL;
    TRY(parquet_open(arena, field, 1, &options, (str){0}, output_fail, &failing, &writer, error));
    TRY(parquet_row_group(writer, &column, error));
    struct parquet_file_stats stats;
    return parquet_finish(writer, &stats, error);
}

static void what_the_output_answers_is_passed_on(void **state)
{
    (void)state;
    i64 calls = 0;
    for (;; calls++) {
        struct error error = {0};
        err result = write_failing(calls, &error);
        if (result == OK) {
            break;
        }
        assert_int_equal(result, UNKNOWN);
        assert_int_equal(error.code, ERROR_STORE_DOWN);
    }
    assert_true(calls >= 5); /* magic, page header, page, indexes, footer */
}

static void types_that_have_no_form_are_refused(void **state)
{
    (void)state;
    struct field inner = {.id = 2, .name = STR_INIT("g"), .type = {.kind = TYPE_GEOMETRY}};
    const struct field bad[] = {
        {.id = 1, .name = STR_INIT("g"), .type = {.kind = TYPE_GEOMETRY}},
        {.id = 1, .name = STR_INIT("g"), .type = {.kind = TYPE_GEOGRAPHY}},
        {.id = 1,
         .name = STR_INIT("s"),
         .type = {.kind = TYPE_STRUCT, .fields = &inner, .field_count = 1}},
        {.id = 1, .name = STR_INIT("u"), .type = {.kind = TYPE_UNKNOWN}},
    };
    const struct parquet_options options = parquet_options_default();
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct error error = {0};
        struct failing failing = {100};
        struct parquet_writer *writer = NULL;
        assert_int_equal(parquet_open(arena, &bad[i], 1, &options, (str){0}, output_fail, &failing,
                                      &writer, &error),
                         INVALID);
        assert_int_equal(error.code, ERROR_UNSUPPORTED_COLUMN_TYPE);
        assert_int_equal(failing.left, 100);
    }
}

static err write_many(void)
{
    AUTO_ARENA struct arena *own = arena_create(ARENA_BYTES);
    struct file file;
    TRY(file_open(own, &file));
    for (i64 group = 0; group < 3; group++) {
        for (i64 i = 0; i < 3000; i++) {
            const struct row row = {i * 7919, i % 2 ? STR("odd") : STR("even"), 0.5, i % 10};
            if (!row_append(&file, &row)) {
                return LIMIT;
            }
        }
        TRY(group_write(&file, NULL, 0));
    }
    struct parquet_file_stats stats;
    return parquet_finish(file.writer, &stats, NULL);
}

static void every_growth_that_fails_is_a_limit(void **state)
{
    (void)state;
    arena_fail_growth_at(0);
    assert_int_equal(write_many(), OK);
    i64 growths = arena_growths();
    assert_true(growths > 5);
    for (i64 n = 1; n <= growths; n++) {
        arena_fail_growth_at(n);
        assert_int_equal(write_many(), LIMIT);
        arena_fail_growth_at(0);
    }
}

static void memory_is_bound_by_a_row_group(void **state)
{
    (void)state;
    struct file file;
    assert_int_equal(file_open(arena, &file), OK);
    size_t after_two = 0;
    for (i64 group = 0; group < 40; group++) {
        buf_truncate(&file.bytes, 0);
        for (i64 i = 0; i < 20000; i++) {
            const struct row row = {i * 7919, STR_INIT("a string"), (double)i, i % 10};
            assert_true(row_append(&file, &row));
        }
        assert_int_equal(group_write(&file, NULL, 0), OK);
        after_two = group == 1 ? arena_bytes(arena) : after_two;
    }
    assert_true(arena_bytes(arena) < after_two + MIB);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_arena, drop_arena)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(counts_and_bounds_are_over_all_row_groups),
        TEST(an_upper_bound_that_cannot_be_raised_is_none_for_the_file),
        TEST(only_nulls_or_nans_have_no_bounds),
        TEST(zero_is_an_id),
        TEST(values_that_come_again_later_are_a_dictionary),
        TEST(a_counter_stays_plain),
        TEST(what_repeats_is_searched_for),
        TEST(a_crew_writes_the_same_file),
        TEST(a_kit_that_is_too_small_is_a_limit),
        TEST(zeros_of_both_signs_are_both_bounds),
        TEST(a_row_group_without_rows_is_none),
        TEST(what_the_output_answers_is_passed_on),
        TEST(types_that_have_no_form_are_refused),
        TEST(every_growth_that_fails_is_a_limit),
        TEST(memory_is_bound_by_a_row_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
