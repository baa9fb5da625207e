#include "format/parquet/bloom.h"

#include "base/assert.h"
#include "format/parquet/thrift.h"

#include <math.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    BLOOM_BLOCK_BYTES = 32,
    BLOOM_WORDS = 8,                     /* of 32 bits, in a block */
    BLOOM_BYTES_MAX = 128 * 1024 * 1024, /* what readers take */
};

/* A power of two: enough that of 2^-n queries for absent values one is answered wrongly. */
static size_t bloom_size(i64 count, double fpp, i64 bytes_max)
{
    assert(fpp > 0);
    assert(fpp < 1);
    double bits = -8.0 * (double)count / log(1 - pow(fpp, 1.0 / (double)BLOOM_WORDS));
    double wanted = bits / 8;
    size_t limit = (size_t)num_min_i64(bytes_max, BLOOM_BYTES_MAX);
    size_t size = BLOOM_BLOCK_BYTES;
    while ((double)size < wanted && size * 2 <= limit) {
        size *= 2;
    }
    return size;
}

static void bloom_put_header(buf *out, size_t size)
{
    struct thrift thrift = {.out = out};
    thrift_begin(&thrift);
    thrift_i32(&thrift, 1, (i32)size);
    for (i32 member = 2; member <= 4; member++) { /* BLOCK, XXHASH, UNCOMPRESSED: the first each */
        thrift_struct(&thrift, member);
        thrift_empty(&thrift, 1);
        thrift_end(&thrift);
    }
    thrift_end(&thrift);
}

/* One bit in each word of the block that the upper half names, by the lower half. */
static void bloom_insert(char *blocks, size_t size, str value)
{
    static const u32 salts[BLOOM_WORDS] = {0x47b6137bU, 0x44974d91U, 0x8824ad5bU, 0xa2b7289dU,
                                           0x705495c7U, 0x2df1424bU, 0x9efc4947U, 0x5c6bfb31U};
    u64 hash = XXH64(value.data, value.size, 0);
    u64 block = ((hash >> 32) * (size / BLOOM_BLOCK_BYTES)) >> 32;
    char *words = blocks + block * BLOOM_BLOCK_BYTES;
    for (size_t i = 0; i < BLOOM_WORDS; i++) {
        u32 bit = ((u32)hash * salts[i]) >> 27;
        num_store_u32(words + 4 * i, num_load_u32(words + 4 * i) | 1U << bit);
    }
}

static bool bloom_is_zero(const struct values *values, str value)
{
    if (values->physical == LEAF_FLOAT) {
        return (num_load_u32(value.data) & INT32_MAX) == 0;
    }
    return values->physical == LEAF_DOUBLE && (num_load_u64(value.data) & INT64_MAX) == 0;
}

void bloom_put(buf *out, const struct values *values, const u32 *selection, i64 count, double fpp,
               i64 bytes_max)
{
    static const char plus_zero[8] = {0};
    static const char minus_zero_float[4] = {0, 0, 0, (char)0x80};
    static const char minus_zero_double[8] = {0, 0, 0, 0, 0, 0, 0, (char)0x80};
    size_t size = bloom_size(count, fpp, bytes_max);
    bloom_put_header(out, size);
    char *blocks = buf_reserve(out, size);
    if (blocks == NULL) {
        return;
    }
    memset(blocks, 0, size);
    bool has_zero = false;
    for (i64 i = 0; i < count; i++) {
        str value = values_at(values, selection != NULL ? (i64)selection[i] : i);
        has_zero = has_zero || bloom_is_zero(values, value);
        bloom_insert(blocks, size, value);
    }
    if (has_zero) {
        bool is_float = values->physical == LEAF_FLOAT;
        bloom_insert(blocks, size, (str){plus_zero, values->width});
        bloom_insert(blocks, size,
                     (str){is_float ? minus_zero_float : minus_zero_double, values->width});
    }
    buf_commit(out, size);
}
