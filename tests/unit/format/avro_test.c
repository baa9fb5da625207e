#include "format/avro.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ARENA_BYTES = 64 * MIB, FILE_BYTES = 16 * MIB };

#define RECORD_SCHEMA                                                                              \
    "{\"type\":\"record\",\"name\":\"r\",\"fields\":["                                             \
    "{\"name\":\"n\",\"type\":\"long\",\"field-id\":1},"                                           \
    "{\"name\":\"s\",\"type\":[\"null\",\"string\"],\"field-id\":2},"                              \
    "{\"name\":\"x\",\"type\":\"double\"}]}"

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

/* ---- encodings ---- */

static void numbers_are_zigzag_varints(void **state)
{
    (void)state;
    const struct {
        i64 number;
        str bytes;
    } cases[] = {
        {0, STR("\x00")},
        {-1, STR("\x01")},
        {1, STR("\x02")},
        {-2, STR("\x03")},
        {2, STR("\x04")},
        {-64, STR("\x7f")},
        {64, STR("\x80\x01")},
        {8192, STR("\x80\x80\x01")},
        {INT64_MAX, STR("\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
        {INT64_MIN, STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        buf out = buf_create(arena, 16, 16);
        avro_put_long(&out, cases[i].number);
        assert_true(str_equal(buf_str(&out), cases[i].bytes));
    }
}

static void other_values_have_the_bytes_of_the_specification(void **state)
{
    (void)state;
    buf out = buf_create(arena, 64, 64);
    avro_put_boolean(&out, true);
    avro_put_boolean(&out, false);
    avro_put_float(&out, 1.0F);
    avro_put_double(&out, -2.0);
    avro_put_bytes(&out, STR("foo"));
    avro_put_branch(&out, 1);
    assert_true(str_equal(buf_str(&out), STR("\x01\x00"
                                             "\x00\x00\x80\x3f"
                                             "\x00\x00\x00\x00\x00\x00\x00\xc0"
                                             "\x06\x66\x6f\x6f"
                                             "\x02")));
}

/* ---- whole files ---- */

static void put_record(buf *records, i64 number)
{
    avro_put_long(records, number);
    if (number % 2 == 0) {
        avro_put_branch(records, 0);
    } else {
        avro_put_branch(records, 1);
        avro_put_bytes(records, STR("odd"));
    }
    avro_put_double(records, (double)number / 2);
}

static str write_file(enum avro_codec codec, i64 count)
{
    buf records = buf_create(arena, KIB, FILE_BYTES);
    for (i64 i = 0; i < count; i++) {
        put_record(&records, i);
    }
    const struct avro_meta meta[] = {{STR("content"), STR("data")}, {STR("empty"), STR("")}};
    buf file = buf_create(arena, KIB, FILE_BYTES);
    struct error error = {0};
    assert_int_equal(avro_write(&file, arena, STR(RECORD_SCHEMA), meta, ARRAY_COUNT(meta), codec,
                                buf_str(&records), count, &error),
                     OK);
    return buf_str(&file);
}

static void every_codec_gives_the_records_back(void **state)
{
    (void)state;
    for (enum avro_codec codec = AVRO_NULL; codec <= AVRO_ZSTD; codec++) {
        str bytes = write_file(codec, 1000);
        struct avro_file *file = NULL;
        assert_int_equal(avro_read(arena, bytes, &file, NULL), OK);
        assert_int_equal(avro_file_count(file), 1000);
        for (size_t i = 0; i < 1000; i++) {
            const struct avro_value *record = avro_file_record(file, i);
            assert_int_equal(record->kind, AVRO_VALUE_RECORD);
            assert_int_equal(record->items[0].number, i);
            bool odd = i % 2 == 1;
            assert_int_equal(record->items[1].kind, odd ? AVRO_VALUE_BYTES : AVRO_VALUE_NULL);
            assert_true(!odd || str_equal(record->items[1].bytes, STR("odd")));
            assert_true(record->items[2].real >= (double)i / 2 &&
                        record->items[2].real <= (double)i / 2);
        }
    }
}

/* ---- one after the other ---- */

struct taken {
    i64 count;
    i64 sum;
    i64 until; /* the one that is refused; 0: none */
};

static err take(void *context, const struct avro_value *record, struct error *error)
{
    struct taken *taken = context;
    taken->count++;
    taken->sum += record->items[0].number;
    return taken->count == taken->until
               ? error_set(error, CANCELLED, ERROR_INTERNAL, "that is enough")
               : OK;
}

static void records_can_be_taken_one_after_the_other(void **state)
{
    (void)state;
    for (enum avro_codec codec = AVRO_NULL; codec <= AVRO_ZSTD; codec++) {
        str bytes = write_file(codec, 10000);
        AUTO_ARENA struct arena *small = arena_create(MIB); /* all would take 4 MiB */
        struct taken taken = {0};
        assert_int_equal(avro_each(small, bytes, take, &taken, NULL), OK);
        assert_int_equal(taken.count, 10000);
        assert_int_equal(taken.sum, 49995000);
        struct taken some = {.until = 3};
        struct error error = {0};
        assert_int_equal(avro_each(small, bytes, take, &some, &error), CANCELLED);
        assert_string_equal(error.message, "that is enough");
        assert_int_equal(some.count, 3);
    }
}

static void the_header_is_kept_word_for_word(void **state)
{
    (void)state;
    struct avro_file *file = NULL;
    assert_int_equal(avro_read(arena, write_file(AVRO_DEFLATE, 0), &file, NULL), OK);
    assert_int_equal(avro_file_count(file), 0);
    assert_true(str_equal(avro_file_schema(file), STR(RECORD_SCHEMA)));
    assert_true(str_equal(avro_file_meta(file, STR("content")), STR("data")));
    assert_true(str_equal(avro_file_meta(file, STR("avro.codec")), STR("deflate")));
    assert_non_null(avro_file_meta(file, STR("empty")).data);
    assert_null(avro_file_meta(file, STR("other")).data);
}

static void equal_input_gives_equal_bytes(void **state)
{
    (void)state;
    assert_true(str_equal(write_file(AVRO_DEFLATE, 10), write_file(AVRO_DEFLATE, 10)));
    str one = write_file(AVRO_NULL, 1);
    str two = write_file(AVRO_NULL, 2);
    assert_memory_not_equal(one.data + one.size - 16, two.data + two.size - 16, 16);
}

static void fields_are_found_by_id_then_by_name(void **state)
{
    (void)state;
    struct avro_file *file = NULL;
    assert_int_equal(avro_read(arena, write_file(AVRO_NULL, 2), &file, NULL), OK);
    const struct avro_value *record = avro_file_record(file, 1);
    assert_ptr_equal(avro_field_of(record, 2, STR("n")), &record->items[1]);
    assert_ptr_equal(avro_field_of(record, 77, STR("x")), &record->items[2]);
    /* n has an id of its own, so that its name says nothing */
    assert_null(avro_field_of(record, 77, STR("n")));
    assert_null(avro_field_of(&record->items[0], 1, STR("n")));
    assert_null(avro_field_of(NULL, 1, STR("n")));
}

static void a_value_knows_its_own_encoding(void **state)
{
    (void)state;
    struct avro_file *file = NULL;
    assert_int_equal(avro_read(arena, write_file(AVRO_SNAPPY, 2), &file, NULL), OK);
    const struct avro_value *record = avro_file_record(file, 1);
    assert_true(str_equal(record->items[1].raw, STR("\x02\x06odd")));
    buf whole = buf_create(arena, 64, 64);
    put_record(&whole, 1);
    assert_true(str_equal(record->raw, buf_str(&whole)));
}

/* ---- hostile files ---- */

#define SYNC "0123456789abcdef"

/* A file of one block, all of it as given. */
static str file_of(str schema, str codec, i64 count, str block)
{
    buf file = buf_create(arena, KIB, FILE_BYTES);
    buf_append(&file, STR("Obj\x01"));
    avro_put_long(&file, 2);
    avro_put_bytes(&file, STR("avro.schema"));
    avro_put_bytes(&file, schema);
    avro_put_bytes(&file, STR("avro.codec"));
    avro_put_bytes(&file, codec);
    avro_put_long(&file, 0);
    buf_append(&file, STR(SYNC));
    avro_put_long(&file, count);
    avro_put_bytes(&file, block);
    buf_append(&file, STR(SYNC));
    assert_true(buf_ok(&file));
    return buf_str(&file);
}

static err read_of(str schema, i64 count, str block, const struct avro_value **out_first)
{
    struct avro_file *file = NULL;
    err result = avro_read(arena, file_of(schema, STR("null"), count, block), &file, NULL);
    if (result == OK && out_first != NULL) {
        *out_first = avro_file_record(file, 0);
    }
    return result;
}

static void blocks_of_an_array_may_carry_their_size(void **state)
{
    (void)state;
    const struct avro_value *array = NULL;
    str schema = STR("{\"type\":\"array\",\"items\":\"int\"}");
    /* -2 items in 2 bytes: 1, 2; then 1 item: 3; then the end */
    assert_int_equal(read_of(schema, 1, STR("\x03\x04\x02\x04\x02\x06\x00"), &array), OK);
    assert_int_equal(array->kind, AVRO_VALUE_ARRAY);
    assert_int_equal(array->count, 3);
    assert_int_equal(array->items[0].number, 1);
    assert_int_equal(array->items[2].number, 3);
}

static void values_that_cannot_be_are_corrupt(void **state)
{
    (void)state;
    const struct {
        str schema;
        str block;
    } cases[] = {
        {STR("\"boolean\""), STR("\x02")},
        {STR("\"int\""), STR("\xfe\xff\xff\xff\x7f")}, /* 2^34 - 1 */
        {STR("\"long\""), STR("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02")},
        {STR("\"long\""), STR("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01")},
        {STR("\"long\""), STR("\x80")},
        {STR("\"long\""), STR("")},
        {STR("\"long\""), STR("\x02\x02")},
        {STR("\"float\""), STR("123")},
        {STR("\"double\""), STR("1234567")},
        {STR("\"string\""), STR("\x01")}, /* length -1 */
        {STR("\"bytes\""), STR("\x06"
                               "ab")}, /* 3 announced */
        {STR("[\"null\",\"long\"]"), STR("\x04")},
        {STR("[\"null\",\"long\"]"), STR("\x01")},
        {STR("[]"), STR("\x00")},
        {STR("{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[\"A\"]}"), STR("\x02")},
        {STR("{\"type\":\"fixed\",\"name\":\"f\",\"size\":4}"), STR("abc")},
        {STR("{\"type\":\"array\",\"items\":\"int\"}"), STR("\x02\x02")}, /* no end */
        {STR("{\"type\":\"array\",\"items\":\"int\"}"),
         STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x00")}, /* -2^63 items */
        {STR("{\"type\":\"map\",\"values\":\"int\"}"), STR("\x02\x02")},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(read_of(cases[i].schema, 1, cases[i].block, NULL), CORRUPT);
    }
}

static void schemas_that_are_none_are_corrupt(void **state)
{
    (void)state;
    const str schemas[] = {
        STR(""),
        STR("{"),
        STR("\"long\" \"long\""),
        STR("\"other\""),
        STR("\"\xff\""),
        STR("7"),
        STR("null"),
        STR("{}"),
        STR("{\"type\":7}"),
        STR("\"record\""),
        STR("{\"type\":\"record\",\"name\":\"r\"}"),
        STR("{\"type\":\"record\",\"fields\":[]}"),
        STR("{\"type\":\"record\",\"name\":\"r\",\"fields\":[7]}"),
        STR("{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"f\"}]}"),
        STR("{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"type\":\"int\"}]}"),
        STR("{\"type\":\"record\",\"name\":\"r\",\"fields\":["
            "{\"name\":\"f\",\"type\":\"int\",\"field-id\":4294967296}]}"),
        STR("{\"type\":\"record\",\"name\":\"r\",\"fields\":["
            "{\"name\":\"f\",\"type\":\"int\",\"field-id\":\"1\"}]}"),
        STR("{\"type\":\"array\"}"),
        STR("{\"type\":\"map\"}"),
        STR("{\"type\":\"fixed\",\"name\":\"f\"}"),
        STR("{\"type\":\"fixed\",\"name\":\"f\",\"size\":-1}"),
        STR("{\"type\":\"fixed\",\"name\":\"f\",\"size\":1e3}"),
        STR("{\"type\":\"enum\",\"name\":\"e\"}"),
        STR("[\"null\",[\"int\"]]"),
        STR("[{\"type\":\"fixed\",\"name\":\"f\",\"size\":1},"
            "{\"type\":\"fixed\",\"name\":\"f\",\"size\":1}]"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(schemas); i++) {
        struct error error = {0};
        struct avro_file *file = NULL;
        str bytes = file_of(schemas[i], STR("null"), 0, STR(""));
        assert_int_equal(avro_read(arena, bytes, &file, &error), CORRUPT);
        assert_null(file);
        assert_int_not_equal(error.message[0], 0);
    }
}

static str nested_arrays(size_t depth)
{
    buf schema = buf_create(arena, KIB, MIB);
    for (size_t i = 0; i < depth; i++) {
        buf_append(&schema, STR("{\"type\":\"array\",\"items\":"));
    }
    buf_append(&schema, STR("\"int\""));
    for (size_t i = 0; i < depth; i++) {
        buf_append_byte(&schema, '}');
    }
    return buf_str(&schema);
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(read_of(nested_arrays(AVRO_DEPTH_MAX), 1, STR("\x00"), NULL), OK);
    assert_int_equal(read_of(nested_arrays(4 * AVRO_DEPTH_MAX), 1, STR("\x00"), NULL), CORRUPT);
    assert_int_equal(read_of(nested_arrays(5000), 1, STR("\x00"), NULL), CORRUPT);

    /* A list that goes on in itself: the schema is small, its values need not be. */
    str list = STR("{\"type\":\"record\",\"name\":\"r\",\"fields\":["
                   "{\"name\":\"next\",\"type\":[\"null\",\"r\"]}]}");
    char block[1000];
    memset(block, 2, sizeof(block));
    block[20] = 0;
    assert_int_equal(read_of(list, 1, (str){block, 21}, NULL), OK);
    block[20] = 2;
    block[999] = 0;
    assert_int_equal(read_of(list, 1, (str){block, 1000}, NULL), CORRUPT);
    /* and one that has no way to end */
    str endless = STR("{\"type\":\"record\",\"name\":\"r\",\"fields\":["
                      "{\"name\":\"next\",\"type\":\"r\"}]}");
    assert_int_equal(read_of(endless, 1, STR(""), NULL), CORRUPT);
}

static void counts_without_bytes_end_at_the_limit(void **state)
{
    (void)state;
    const i64 many = (i64)1 << 60;
    assert_int_equal(read_of(STR("\"null\""), many, STR(""), NULL), LIMIT);
    buf block = buf_create(arena, 64, 64);
    avro_put_long(&block, many);
    str nulls = STR("{\"type\":\"array\",\"items\":\"null\"}");
    arena_fail_growth_at(3);
    assert_int_equal(read_of(nulls, 1, buf_str(&block), NULL), LIMIT);
    arena_fail_growth_at(0);
    /* Items that take bytes are not believed beyond the bytes. */
    str longs = STR("{\"type\":\"array\",\"items\":\"long\"}");
    assert_int_equal(read_of(longs, 1, buf_str(&block), NULL), CORRUPT);
}

/* Records without bytes could go on for ever. */
static void records_of_no_bytes_are_not_taken(void **state)
{
    (void)state;
    struct taken taken = {0};
    str bytes = file_of(STR("\"null\""), STR("null"), INT64_MAX, STR(""));
    assert_int_equal(avro_each(arena, bytes, take, &taken, NULL), CORRUPT);
    assert_int_equal(taken.count, 0);
}

static void damaged_files_are_corrupt(void **state)
{
    (void)state;
    str good = write_file(AVRO_SNAPPY, 5);
    struct avro_file *file = NULL;
    for (size_t size = 0; size < good.size; size++) {
        err result = avro_read(arena, str_slice(good, 0, size), &file, NULL);
        bool whole_header = size > 16 && result == OK;
        assert_true(result == CORRUPT || (whole_header && avro_file_count(file) == 0));
    }
    char *bad = arena_alloc(arena, good.size);
    for (size_t back = 1; back <= 30; back++) {
        /* sync marker, checksum or last values */
        memcpy(bad, good.data, good.size);
        bad[good.size - back] ^= 1;
        assert_int_equal(avro_read(arena, (str){bad, good.size}, &file, NULL), CORRUPT);
    }
}

static void codecs_that_are_not_known_are_corrupt(void **state)
{
    (void)state;
    struct avro_file *file = NULL;
    str bytes = file_of(STR("\"int\""), STR("lzma"), 1, STR("\x02"));
    assert_int_equal(avro_read(arena, bytes, &file, NULL), CORRUPT);
    bytes = file_of(STR("\"int\""), STR(""), 1, STR("\x02"));
    assert_int_equal(avro_read(arena, bytes, &file, NULL), OK);
    bytes = file_of(STR("\"int\""), STR("snappy"), 1, STR("\x02"));
    assert_int_equal(avro_read(arena, bytes, &file, NULL), CORRUPT);
}

/* ---- limits ---- */

static err write_and_read(str *out_bytes)
{
    AUTO_ARENA struct arena *own = arena_create(ARENA_BYTES);
    buf records = buf_create(own, 0, FILE_BYTES);
    for (i64 i = 0; i < 20000; i++) {
        put_record(&records, i);
    }
    if (!buf_ok(&records)) {
        return LIMIT;
    }
    buf file = buf_create(own, 0, FILE_BYTES);
    TRY(avro_write(&file, own, STR(RECORD_SCHEMA), NULL, 0, AVRO_ZSTD, buf_str(&records), 20000,
                   NULL));
    struct avro_file *read = NULL;
    TRY(avro_read(own, buf_str(&file), &read, NULL));
    *out_bytes = avro_file_schema(read);
    return OK;
}

static void every_growth_that_fails_is_a_limit(void **state)
{
    (void)state;
    str bytes = {0};
    arena_fail_growth_at(0);
    assert_int_equal(write_and_read(&bytes), OK);
    i64 growths = arena_growths();
    assert_true(growths > 5);
    for (i64 n = 1; n <= growths; n++) {
        arena_fail_growth_at(n);
        assert_int_equal(write_and_read(&bytes), LIMIT);
        arena_fail_growth_at(0);
    }
}

static void records_past_the_maximum_are_refused(void **state)
{
    (void)state;
    buf file = buf_create(arena, KIB, FILE_BYTES);
    struct error error = {0};
    str records = {"", (size_t)AVRO_BLOCK_BYTES_MAX + 1};
    assert_int_equal(
        avro_write(&file, arena, STR("\"int\""), NULL, 0, AVRO_NULL, records, 1, &error), LIMIT);
    assert_int_equal(error.code, ERROR_OVERLOADED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_arena, drop_arena)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(numbers_are_zigzag_varints),
        TEST(other_values_have_the_bytes_of_the_specification),
        TEST(every_codec_gives_the_records_back),
        TEST(records_can_be_taken_one_after_the_other),
        TEST(the_header_is_kept_word_for_word),
        TEST(equal_input_gives_equal_bytes),
        TEST(fields_are_found_by_id_then_by_name),
        TEST(a_value_knows_its_own_encoding),
        TEST(blocks_of_an_array_may_carry_their_size),
        TEST(values_that_cannot_be_are_corrupt),
        TEST(schemas_that_are_none_are_corrupt),
        TEST(nesting_is_bounded),
        TEST(counts_without_bytes_end_at_the_limit),
        TEST(records_of_no_bytes_are_not_taken),
        TEST(damaged_files_are_corrupt),
        TEST(codecs_that_are_not_known_are_corrupt),
        TEST(every_growth_that_fails_is_a_limit),
        TEST(records_past_the_maximum_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
