/* json_scan: the bytes of JSON, a register at a time. For those two that read rows in one pass,
 * format/json_element and sink/decode/straight.
 *
 * Each function has two twins: 32 bytes with AVX2, where this file is compiled for it, and 8 bytes
 * with nothing. All may read JSON_SCAN_SLACK bytes on from where they stand. Pure. */
#ifndef LHBOX_FORMAT_JSON_SCAN_H
#define LHBOX_FORMAT_JSON_SCAN_H

#include "base/num.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* What may be read behind the end of a line, and what the end of a token may be away. */
enum { JSON_SCAN_SLACK = 64 };

/* Of what is small, or is passed through seldom, and stands in a loop that must be tight. */
#define HOT  inline __attribute__((always_inline))
#define COLD __attribute__((noinline))

/* What a piece of a string holds before its first quote, backslash or control byte. */
struct scan_piece {
    u32 size; /* SCAN_BYTES: none of these is in it */
    u64 high; /* not 0: a byte from 0x80 up is in it */
};

#if defined(__AVX2__)

enum { SCAN_BYTES = 32 };

static inline struct scan_piece scan_judge(__m256i bytes)
{
    __m256i quote = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('"'));
    __m256i slash = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\\'));
    __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1F)), bytes);
    __m256i stops = _mm256_or_si256(_mm256_or_si256(quote, slash), control);
    u64 mask = (u32)_mm256_movemask_epi8(stops) | UINT64_C(1) << SCAN_BYTES;
    u32 high = (u32)_mm256_movemask_epi8(bytes);
    return (struct scan_piece){(u32)__builtin_ctzll(mask), high & (mask ^ (mask - 1)) >> 1};
}

static inline struct scan_piece scan_look(const u8 *at)
{
    return scan_judge(_mm256_loadu_si256((const __m256i_u *)at));
}

/* Copies SCAN_BYTES bytes of a string, which need not be all of its own. */
static inline struct scan_piece scan_copy(const u8 *from, u8 *to)
{
    __m256i bytes = _mm256_loadu_si256((const __m256i_u *)from);
    _mm256_storeu_si256((__m256i_u *)to, bytes);
    return scan_judge(bytes);
}

/* Whether the `size` bytes of `key`, which is padded, stand at `at`. Never when there are none. */
static inline bool scan_is_key(const u8 *at, const u8 *key, u32 size)
{
    __m256i there = _mm256_loadu_si256((const __m256i_u *)at);
    __m256i wanted = _mm256_loadu_si256((const __m256i_u *)key);
    u32 same = (u32)_mm256_movemask_epi8(_mm256_cmpeq_epi8(there, wanted));
    if (size > 32) {
        return same == UINT32_MAX && memcmp(at + 32, key + 32, size - 32) == 0;
    }
    return size > 0 && ~same << (32 - size) == 0;
}

#else

enum { SCAN_BYTES = 8 };

#define SCAN_ONES  UINT64_C(0x0101010101010101)
#define SCAN_HIGHS UINT64_C(0x8080808080808080)

/* High bits where a byte is less than `limit`; exact up to the first one. */
static inline u64 scan_less(u64 word, u64 limit)
{
    return (word - SCAN_ONES * limit) & ~word & SCAN_HIGHS;
}

static inline struct scan_piece scan_look(const u8 *at)
{
    u64 word = num_load_u64(at);
    u64 stops = scan_less(word, 0x20) | scan_less(word ^ SCAN_ONES * '"', 1) |
                scan_less(word ^ SCAN_ONES * '\\', 1);
    u64 below = stops == 0 ? UINT64_MAX : (stops ^ (stops - 1)) >> 8;
    u32 size = stops == 0 ? SCAN_BYTES : (u32)__builtin_ctzll(stops) >> 3;
    return (struct scan_piece){size, word & below & SCAN_HIGHS};
}

static inline struct scan_piece scan_copy(const u8 *from, u8 *to)
{
    memcpy(to, from, SCAN_BYTES);
    return scan_look(from);
}

static inline bool scan_is_key(const u8 *at, const u8 *key, u32 size)
{
    u64 first = num_load_u64(at) ^ num_load_u64(key);
    if (size <= 8) {
        return size > 0 && first << (64 - 8 * size) == 0;
    }
    return first == 0 && memcmp(at + 8, key + 8, size - 8) == 0;
}

#endif

/* High bits from the first byte on that is no digit. */
static inline u64 scan_no_digits(u64 word)
{
    u64 x = word ^ UINT64_C(0x3030303030303030);
    return ((x + UINT64_C(0x7676767676767676)) | x) & UINT64_C(0x8080808080808080);
}

static inline u32 scan_digit_count(u64 word)
{
    u64 stops = scan_no_digits(word);
    return stops == 0 ? 8 : (u32)__builtin_ctzll(stops) >> 3;
}

/* The digits at the front of eight bytes: how many, and their value. */
static inline u32 scan_digits(u64 word, u64 *out_value)
{
    u64 x = word ^ UINT64_C(0x3030303030303030);
    u32 count = scan_digit_count(word);
    /* Zeros in front of them, then pairs, fours, all eight. */
    x = count == 0 ? 0 : x << (64 - 8 * count);
    x = x * 10 + (x >> 8);
    u64 pairs = UINT64_C(0x000000FF000000FF);
    *out_value = ((x & pairs) * (100 + (UINT64_C(1000000) << 32)) +
                  ((x >> 16) & pairs) * (1 + (UINT64_C(10000) << 32))) >>
                 32;
    return count;
}

#endif
