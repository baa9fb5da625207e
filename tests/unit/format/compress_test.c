#include "format/compress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ARENA_BYTES = 64 * MIB, BYTES = 100000 };

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

/* Runs of 1 to 16 of the same byte: all codecs make less of them. */
static str bytes_make(size_t size)
{
    char *bytes = arena_alloc(arena, size);
    u32 random = 1;
    u32 left = 0;
    for (size_t i = 0; i < size; i++) {
        if (left-- == 0) {
            random = random * 1664525 + 1013904223;
            left = random >> 28;
        }
        bytes[i] = (char)(random >> 20);
    }
    return (str){bytes, size};
}

static str compressed(enum compress_codec codec, str bytes)
{
    AUTO_COMPRESSOR struct compressor compressor = {0};
    assert_int_equal(compressor_open(codec, 1, &compressor, NULL), OK);
    buf out = buf_create(arena, 0, 4 * MIB);
    assert_int_equal(compress_append(&compressor, &out, bytes, NULL), OK);
    return buf_str(&out);
}

static void what_is_compressed_comes_back(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 100, BYTES};
    for (enum compress_codec codec = COMPRESS_NONE; codec <= COMPRESS_ZSTD; codec++) {
        for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
            str bytes = bytes_make(sizes[i]);
            str packed = compressed(codec, bytes);
            str back = {0};
            assert_int_equal(compress_expand(arena, codec, packed, sizes[i], &back, NULL), OK);
            assert_true(str_equal(back, bytes));
            if (codec != COMPRESS_NONE && sizes[i] == BYTES) {
                assert_true(packed.size < BYTES);
            }
        }
    }
}

/* Hex digits: four bits of each byte, and no two words alike. */
static str hex_make(size_t size)
{
    char *bytes = arena_alloc(arena, size);
    u64 random = 1;
    for (size_t i = 0; i < size; i++) {
        random = random * UINT64_C(6364136223846793005) + 1;
        bytes[i] = "0123456789abcdef"[random >> 60];
    }
    return (str){bytes, size};
}

/* 64-bit numbers below a million. */
static str numbers_make(size_t size)
{
    u64 *numbers = arena_alloc(arena, size);
    u64 random = 1;
    for (size_t i = 0; i < size / sizeof(u64); i++) {
        random = random * UINT64_C(6364136223846793005) + 1;
        numbers[i] = (random >> 32) % 1000000;
    }
    return (str){(const char *)numbers, size};
}

/* Its size in a context that was used for something else before. */
static size_t searched_size(struct compressor *compressor, enum compress_search search, str bytes)
{
    buf out = buf_create(arena, 0, 4 * MIB);
    str back = {0};
    assert_int_equal(compress_append_searched(compressor, search, &out, bytes, NULL), OK);
    assert_int_equal(
        compress_expand(arena, compressor->codec, buf_str(&out), bytes.size, &back, NULL), OK);
    assert_true(str_equal(back, bytes));
    return out.size;
}

static void what_is_searched_in_any_way_comes_back(void **state)
{
    (void)state;
    for (enum compress_codec codec = COMPRESS_NONE; codec <= COMPRESS_ZSTD; codec++) {
        AUTO_COMPRESSOR struct compressor compressor = {0};
        assert_int_equal(compressor_open(codec, 1, &compressor, NULL), OK);
        const str samples[] = {
            {NULL, 0}, STR("a"), bytes_make(BYTES), hex_make(3 * BYTES), numbers_make(2 * BYTES)};
        for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
            for (enum compress_search way = COMPRESS_SEARCH; way <= COMPRESS_SEARCH_NONE; way++) {
                (void)searched_size(&compressor, way, samples[i]);
            }
        }
    }
}

static void each_search_is_for_what_it_is_made_for(void **state)
{
    (void)state;
    AUTO_COMPRESSOR struct compressor zstd = {0};
    assert_int_equal(compressor_open(COMPRESS_ZSTD, 1, &zstd, NULL), OK);
    str hex = hex_make(3 * BYTES);
    assert_in_range(searched_size(&zstd, COMPRESS_SEARCH_NONE, hex), hex.size / 2,
                    hex.size * 11 / 20);
    str numbers = numbers_make(3 * BYTES);
    assert_true(searched_size(&zstd, COMPRESS_SEARCH_NUMBERS, numbers) * 10 <
                searched_size(&zstd, COMPRESS_SEARCH, numbers) * 9);
}

static void a_context_is_good_for_many_blocks(void **state)
{
    (void)state;
    AUTO_COMPRESSOR struct compressor compressor = {0};
    assert_int_equal(compressor_open(COMPRESS_ZSTD, 3, &compressor, NULL), OK);
    for (size_t size = 1; size < 5000; size += 700) {
        buf out = buf_create(arena, 0, MIB);
        str bytes = bytes_make(size);
        assert_int_equal(compress_append(&compressor, &out, bytes, NULL), OK);
        str back = {0};
        assert_int_equal(compress_expand(arena, COMPRESS_ZSTD, buf_str(&out), size, &back, NULL),
                         OK);
        assert_true(str_equal(back, bytes));
    }
}

static void a_block_that_wants_more_than_it_may_is_corrupt(void **state)
{
    (void)state;
    char *zeros = arena_alloc(arena, MIB);
    for (enum compress_codec codec = COMPRESS_NONE; codec <= COMPRESS_ZSTD; codec++) {
        str packed = compressed(codec, (str){zeros, MIB});
        str back = {0};
        struct error error = {0};
        assert_int_equal(compress_expand(arena, codec, packed, MIB, &back, &error), OK);
        assert_int_equal(compress_expand(arena, codec, packed, MIB - 1, &back, &error), CORRUPT);
        assert_int_equal(compress_expand(arena, codec, packed, 0, &back, &error), CORRUPT);
        assert_int_not_equal(error.message[0], 0);
    }
}

static void a_block_that_is_cut_off_is_corrupt(void **state)
{
    (void)state;
    for (enum compress_codec codec = COMPRESS_DEFLATE; codec <= COMPRESS_ZSTD; codec++) {
        str packed = compressed(codec, bytes_make(300));
        for (size_t size = 0; size < packed.size; size++) {
            str back = {0};
            str part = str_slice(packed, 0, size);
            assert_int_equal(compress_expand(arena, codec, part, BYTES, &back, NULL), CORRUPT);
        }
    }
}

static void bytes_behind_the_end(void **state)
{
    (void)state;
    for (enum compress_codec codec = COMPRESS_DEFLATE; codec <= COMPRESS_ZSTD; codec++) {
        str bytes = bytes_make(300);
        buf longer = buf_create(arena, KIB, KIB);
        buf_append(&longer, compressed(codec, bytes));
        buf_append(&longer, STR("xyz"));
        str back = {0};
        err result = compress_expand(arena, codec, buf_str(&longer), BYTES, &back, NULL);
        /* zlib's trailer, which Avro writers leave there, is passed over */
        assert_int_equal(result, codec == COMPRESS_DEFLATE ? OK : CORRUPT);
    }
}

static void a_snappy_block_is_not_believed_about_its_size(void **state)
{
    (void)state;
    str back = {0};
    /* 200 MiB from a few bytes */
    err result = compress_expand(arena, COMPRESS_SNAPPY, STR("\x80\x80\x80\x64\x00x"),
                                 (size_t)256 * MIB, &back, NULL);
    assert_int_equal(result, CORRUPT);
}

static void full_memory_is_a_limit(void **state)
{
    (void)state;
    for (enum compress_codec codec = COMPRESS_DEFLATE; codec <= COMPRESS_ZSTD; codec++) {
        str packed = compressed(codec, bytes_make(BYTES));
        AUTO_ARENA struct arena *small = arena_create(BYTES / 2);
        str back = {0};
        struct error error = {0};
        assert_int_equal(compress_expand(small, codec, packed, BYTES, &back, &error), LIMIT);
        AUTO_COMPRESSOR struct compressor compressor = {0};
        assert_int_equal(compressor_open(codec, 1, &compressor, NULL), OK);
        buf out = buf_create(arena, 0, 10);
        assert_int_equal(compress_append(&compressor, &out, packed, &error), LIMIT);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_arena, drop_arena)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_compressed_comes_back),
        TEST(what_is_searched_in_any_way_comes_back),
        TEST(each_search_is_for_what_it_is_made_for),
        TEST(a_context_is_good_for_many_blocks),
        TEST(a_block_that_wants_more_than_it_may_is_corrupt),
        TEST(a_block_that_is_cut_off_is_corrupt),
        TEST(bytes_behind_the_end),
        TEST(a_snappy_block_is_not_believed_about_its_size),
        TEST(full_memory_is_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
