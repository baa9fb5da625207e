#include "format/delta.h"

#include "numbers_fixture.h"

/* Against a decoder written here after the letter of Parquet's Encodings.md. That others read it
 * is tested in tests/oracle/test_parquet.py and tests/conformance. */

enum { BLOCK = 128, MINIBLOCKS = 4, MINIBLOCK = 32, COUNT_MAX = 20000 };

/* ---- reading ---- */

struct reader {
    const u8 *at;
    const u8 *end;
    i32 width_most; /* bits of the widest miniblock so far */
};

static u8 read_byte(struct reader *reader)
{
    assert_true(reader->at < reader->end);
    return *reader->at++;
}

static u64 read_varint(struct reader *reader)
{
    u64 value = 0;
    for (i32 shift = 0;; shift += 7) {
        assert_true(shift < 64);
        u8 byte = read_byte(reader);
        value |= (u64)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
}

static u64 read_zigzag(struct reader *reader)
{
    u64 value = read_varint(reader);
    return value >> 1 ^ (0 - (value & 1));
}

/* Bit by bit. */
static u64 read_packed(const u8 *bytes, i32 index, i32 width)
{
    u64 value = 0;
    for (i32 bit = 0; bit < width; bit++) {
        i32 at = index * width + bit;
        value |= (u64)(bytes[at / 8] >> at % 8 & 1) << bit;
    }
    return value;
}

/* Those behind the first `count` fill the miniblock up. */
static void read_miniblock(struct reader *reader, i32 width, i32 count, u64 least, u64 *numbers)
{
    const u8 *bytes = reader->at;
    reader->at += MINIBLOCK * width / 8;
    assert_true(reader->at <= reader->end);
    for (i32 i = 0; i < MINIBLOCK; i++) {
        u64 delta = read_packed(bytes, i, width);
        if (i < count) {
            numbers[i] = numbers[i - 1] + least + delta;
        } else {
            assert_int_equal(delta, 0);
        }
    }
}

static void read_block(struct reader *reader, i64 left, i32 width_max, u64 *numbers)
{
    u64 least = read_zigzag(reader);
    const u8 *widths = reader->at;
    reader->at += MINIBLOCKS;
    for (i64 i = 0; i < MINIBLOCKS; i++, left -= MINIBLOCK, numbers += MINIBLOCK) {
        if (left <= 0) {
            assert_int_equal(widths[i], 0);
            continue;
        }
        assert_in_range(widths[i], 0, width_max);
        reader->width_most = widths[i] > reader->width_most ? widths[i] : reader->width_most;
        read_miniblock(reader, widths[i], (i32)num_min_i64(left, MINIBLOCK), least, numbers);
    }
}

/* Checks that what comes of the numbers are the numbers, to its end. Returns the bits of the widest
 * miniblock, and the size of all in *out_size. */
static i32 check_sized(const u64 *numbers, i64 count, size_t width, size_t *out_size)
{
    buf out = buf_create(arena, 0, ARENA_BYTES);
    delta_put(&out, narrowed(numbers, count, width), width, count);
    assert_true(buf_ok(&out));
    struct reader reader = {.at = (const u8 *)out.data, .end = (const u8 *)out.data + out.size};
    u64 *found = arena_array(arena, COUNT_MAX + BLOCK, sizeof(u64));
    assert_int_equal(read_varint(&reader), BLOCK);
    assert_int_equal(read_varint(&reader), MINIBLOCKS);
    assert_int_equal(read_varint(&reader), count);
    found[0] = read_zigzag(&reader);
    for (i64 at = 1; at < count; at += BLOCK) {
        read_block(&reader, count - at, (i32)width * 8, found + at);
    }
    assert_ptr_equal(reader.at, reader.end);
    for (i64 i = 0; i < count; i++) {
        assert_memory_equal(&found[i], &numbers[i], width);
    }
    *out_size = out.size;
    return reader.width_most;
}

static i32 check_numbers(const u64 *numbers, i64 count, size_t width)
{
    size_t size = 0;
    return check_sized(numbers, count, width, &size);
}

/* ---- tests ---- */

static void expect_bytes(const u64 *numbers, i64 count, size_t width, str wanted)
{
    buf out = buf_create(arena, 0, ARENA_BYTES);
    delta_put(&out, narrowed(numbers, count, width), width, count);
    assert_int_equal(out.size, wanted.size);
    assert_memory_equal(out.data, wanted.data, wanted.size);
}

/* The two examples of the specification, with blocks of 128, and what has no block. */
static void delta_is_to_the_letter(void **state)
{
    (void)state;
    static const u64 up[] = {1, 2, 3, 4, 5};
    static const u64 down_and_up[] = {7, 5, 3, 1, 2, 3, 4, 5};
    static const u64 one[] = {UINT64_MAX};
    for (size_t width = 4; width <= 8; width += 4) {
        expect_bytes(up, 5, width, STR("\x80\x01\x04\x05\x02\x02\0\0\0\0"));
        expect_bytes(down_and_up, 8, width,
                     STR("\x80\x01\x04\x08\x0e\x03\x02\0\0\0\xc0\x3f\0\0\0\0\0\0"));
        expect_bytes(one, 1, width, STR("\x80\x01\x04\x01\x01"));
        expect_bytes(one, 0, width, STR("\x80\x01\x04\0\0"));
    }
}

/* Around the ends of miniblocks and blocks; the first value is in neither. */
static void delta_of_so_many(void **state)
{
    (void)state;
    static const i64 counts[] = {0,   1,   2,   31,  32,  33,  34,  63,   64,   65,       66,
                                 96,  97,  98,  127, 128, 129, 130, 160,  161,  162,      255,
                                 256, 257, 258, 384, 385, 386, 999, 1024, 1025, COUNT_MAX};
    u64 *numbers = arena_array(arena, COUNT_MAX, sizeof(u64));
    for (u64 i = 0; i < COUNT_MAX; i++) {
        numbers[i] = scrambled(i) % 1000 * (i % 7);
    }
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        check_numbers(numbers, counts[i], 4);
        check_numbers(numbers, counts[i], 8);
    }
}

/* Steps of least, or of 2^bits - 1 more, which wrap as often as not. */
static void check_bits(u64 least, i32 bits, size_t width)
{
    enum { COUNT = 1 + 2 * BLOCK + MINIBLOCK + 5 };
    u64 most = bits == 0 ? 0 : UINT64_MAX >> (64 - bits);
    u64 numbers[COUNT] = {scrambled((u64)bits)};
    for (u64 i = 1; i < COUNT; i++) {
        bool far = i % MINIBLOCK == 3 || scrambled(i) % 3 == 0;
        numbers[i] = numbers[i - 1] + least + (far ? most : 0);
    }
    assert_int_equal(check_numbers(numbers, COUNT, width), bits);
}

static void delta_of_every_width(void **state)
{
    (void)state;
    for (i32 bits = 0; bits <= 64; bits++) {
        check_bits((u64)INT64_MIN, bits, 8);
        check_bits(bits == 64 ? (u64)INT64_MIN : (u64)-7, bits == 63 ? 62 : bits, 8);
    }
    for (i32 bits = 0; bits <= 32; bits++) {
        check_bits((u64)INT32_MIN, bits, 4);
        check_bits(bits == 32 ? (u64)INT32_MIN : (u64)-7, bits == 31 ? 30 : bits, 4);
    }
}

/* Each pair's steps wrap, and never take more bits than the values have. */
static void delta_wraps(void **state)
{
    (void)state;
    static const u64 edges[] = {
        (u64)INT64_MIN, (u64)INT64_MAX, (u64)INT32_MIN, (u64)INT32_MAX, 0, UINT64_MAX, 1,
        UINT32_MAX};
    enum { COUNT = BLOCK + 40 };
    u64 numbers[COUNT];
    for (size_t a = 0; a < ARRAY_COUNT(edges); a++) {
        for (size_t b = 0; b < ARRAY_COUNT(edges); b++) {
            for (u64 i = 0; i < COUNT; i++) {
                numbers[i] = i % 3 == 1 ? edges[a] : edges[b];
            }
            check_numbers(numbers, COUNT, 4);
            check_numbers(numbers, COUNT, 8);
        }
    }
    for (u64 i = 0; i < COUNT; i++) {
        numbers[i] = edges[scrambled(i) % ARRAY_COUNT(edges)];
    }
    assert_int_equal(check_numbers(numbers, COUNT, 4), 32);
    assert_int_equal(check_numbers(numbers, COUNT, 8), 64);
}

static void delta_of_equals_is_no_more_than_heads(void **state)
{
    (void)state;
    u64 *numbers = arena_array(arena, COUNT_MAX, sizeof(u64));
    for (i64 i = 0; i < COUNT_MAX; i++) {
        numbers[i] = 0x123456789abcdef0U;
    }
    size_t size = 0;
    i64 blocks = (COUNT_MAX - 1 + BLOCK - 1) / BLOCK;
    assert_int_equal(check_sized(numbers, COUNT_MAX, 8, &size), 0);
    assert_in_range(size, 1, blocks * (1 + MINIBLOCKS) + 20);
}

/* Each miniblock with bits of its own. */
static void delta_of_differing_widths(void **state)
{
    (void)state;
    enum { COUNT = 7000 };
    u64 *numbers = arena_array(arena, COUNT, sizeof(u64));
    for (u64 i = 0; i < COUNT; i++) {
        numbers[i] = scrambled(i) >> scrambled(i / 50) % 64;
    }
    for (i64 from = 0; from < COUNT; from += 997) {
        check_numbers(numbers + from, COUNT - from, 4);
        check_numbers(numbers + from, COUNT - from, 8);
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
        delta_put(&out, bytes, 8, COUNT);
        assert_false(buf_ok(&out));
        assert_true(out.size <= most);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_arena, drop_arena)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(delta_is_to_the_letter),
        TEST(delta_of_so_many),
        TEST(delta_of_every_width),
        TEST(delta_wraps),
        TEST(delta_of_equals_is_no_more_than_heads),
        TEST(delta_of_differing_widths),
        TEST(a_full_buffer_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
