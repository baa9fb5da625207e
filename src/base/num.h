/* num: integer names, checked arithmetic, and byte loads and stores.
 *
 * Every size, count or offset that comes from outside goes through the num_*_checked functions:
 * they answer false on overflow and leave the result alone. Loads and stores are little-endian and
 * need no alignment. Pure; any thread. */
#ifndef LHBOX_BASE_NUM_H
#define LHBOX_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;

#define MUST_USE           __attribute__((warn_unused_result))
#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { KIB = 1024, MIB = 1024 * 1024 };

static inline bool num_add_i64(i64 a, i64 b, i64 *out_sum)
{
    return !__builtin_add_overflow(a, b, out_sum);
}

static inline bool num_mul_i64(i64 a, i64 b, i64 *out_product)
{
    return !__builtin_mul_overflow(a, b, out_product);
}

static inline bool num_add_size(size_t a, size_t b, size_t *out_sum)
{
    return !__builtin_add_overflow(a, b, out_sum);
}

static inline bool num_mul_size(size_t a, size_t b, size_t *out_product)
{
    return !__builtin_mul_overflow(a, b, out_product);
}

static inline u32 num_load_u32(const void *bytes)
{
    u32 value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}

static inline u64 num_load_u64(const void *bytes)
{
    u64 value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}

static inline void num_store_u32(void *bytes, u32 value)
{
    memcpy(bytes, &value, sizeof(value));
}

static inline void num_store_u64(void *bytes, u64 value)
{
    memcpy(bytes, &value, sizeof(value));
}

static inline i64 num_min_i64(i64 a, i64 b)
{
    return a < b ? a : b;
}

static inline i64 num_max_i64(i64 a, i64 b)
{
    return a > b ? a : b;
}

#endif
