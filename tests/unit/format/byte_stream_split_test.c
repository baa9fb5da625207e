#include "format/byte_stream_split.h"

#include "numbers_fixture.h"

static str encoded(const u8 *bytes, size_t width, i64 count)
{
    buf out = buf_create(arena, 0, ARENA_BYTES);
    byte_stream_split_put(&out, bytes, width, count);
    assert_true(buf_ok(&out));
    return buf_str(&out);
}

/* The example of Parquet's Encodings.md. */
static void split_is_to_the_letter(void **state)
{
    (void)state;
    static const u64 elements[] = {0xddccbbaa, 0x33221100, 0xd6c5b4a3};
    str bytes = encoded(narrowed(elements, 3, 4), 4, 3);
    str wanted = STR("\xaa\x00\xa3\xbb\x11\xb4\xcc\x22\xc5\xdd\x33\xd6");
    assert_int_equal(bytes.size, wanted.size);
    assert_memory_equal(bytes.data, wanted.data, wanted.size);
}

static void split_of_so_many(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    u64 numbers[COUNT];
    for (u64 i = 0; i < COUNT; i++) {
        numbers[i] = scrambled(i);
    }
    for (size_t width = 4; width <= 8; width += 4) {
        const u8 *all = narrowed(numbers, COUNT, width);
        for (size_t count = 0; count <= COUNT; count++) {
            str bytes = encoded(all, width, (i64)count);
            assert_int_equal(bytes.size, count * width);
            for (size_t i = 0; i < bytes.size; i++) {
                assert_int_equal((u8)bytes.data[i], all[i % count * width + i / count]);
            }
        }
    }
}

/* Wherever the buffer is full, it has failed and nothing is written past it. */
static void a_full_buffer_has_failed(void **state)
{
    (void)state;
    enum { COUNT = 500 };
    u64 numbers[COUNT];
    for (u64 i = 0; i < COUNT; i++) {
        numbers[i] = scrambled(i);
    }
    const u8 *bytes = narrowed(numbers, COUNT, 8);
    for (size_t most = 0; most < sizeof(numbers); most += 3) {
        buf out = buf_create(arena, 0, most);
        byte_stream_split_put(&out, bytes, 8, COUNT);
        assert_false(buf_ok(&out));
        assert_true(out.size <= most);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_arena, drop_arena)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(split_is_to_the_letter),
        TEST(split_of_so_many),
        TEST(a_full_buffer_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
