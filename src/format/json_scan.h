/* json_scan: the bytes of JSON, a register at a time. For those two that read rows in one pass,
 * format/json_element and sink/decode/straight.
 *
 * Each function has two twins: 16 or 32 bytes with AVX2, where this file is compiled for it, and 8
 * bytes with nothing. (Strings are short: of theirs, 16 are faster than 32.) All may read
 * JSON_SCAN_SLACK bytes on from where they stand. Pure. */
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

/* A name as it stands in a line, in its quotes and with its colon. Without bytes (size 0): one that
 * has no such form; what seems to be found then is no value's beginning. */
enum { SCAN_KEY_BYTES = 64 };

struct scan_key {
    u8 bytes[SCAN_KEY_BYTES];
    u32 padding; /* a bit for each of the first 32 bytes that is not part of it */
    u32 size;
};

/* Digits as one number; how many stand before the point, and behind it; bytes in all. */
struct scan_number {
    u64 digits;
    i32 whole;
    i32 fraction;
    i32 size;
};

#if defined(__AVX2__)

enum { SCAN_BYTES = 16 };

static inline struct scan_piece scan_judge(__m128i bytes)
{
    __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
    __m128i stops = _mm_or_si128(_mm_or_si128(quote, slash), control);
    u64 mask = (u32)_mm_movemask_epi8(stops) | UINT64_C(1) << SCAN_BYTES;
    u32 high = (u32)_mm_movemask_epi8(bytes);
    return (struct scan_piece){(u32)__builtin_ctzll(mask), high & (mask ^ (mask - 1)) >> 1};
}

static inline struct scan_piece scan_look(const u8 *at)
{
    return scan_judge(_mm_loadu_si128((const __m128i_u *)at));
}

/* Copies SCAN_BYTES bytes of a string, which need not be all of its own. */
static inline struct scan_piece scan_copy(const u8 *from, u8 *to)
{
    __m128i bytes = _mm_loadu_si128((const __m128i_u *)from);
    _mm_storeu_si128((__m128i_u *)to, bytes);
    return scan_judge(bytes);
}

/* Whether the key's bytes stand at `at`. */
static inline bool scan_is_key(const u8 *at, const struct scan_key *key)
{
    __m256i there = _mm256_loadu_si256((const __m256i_u *)at);
    __m256i wanted = _mm256_loadu_si256((const __m256i_u *)key->bytes);
    u32 same = (u32)_mm256_movemask_epi8(_mm256_cmpeq_epi8(there, wanted));
    return (same | key->padding) == UINT32_MAX &&
           (key->size <= 32 || memcmp(at + 32, key->bytes + 32, key->size - 32) == 0);
}

/* Up to 15 bytes of digits, with one point in them at most. False: there may be more. */
static HOT bool scan_plain(const u8 *at, struct scan_number *out)
{
    const __m128i places = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m128i values = _mm_sub_epi8(_mm_loadu_si128((const __m128i_u *)at), _mm_set1_epi8('0'));
    __m128i digits = _mm_cmpeq_epi8(_mm_min_epu8(values, _mm_set1_epi8(9)), values);
    u32 others = ~(u32)_mm_movemask_epi8(digits);
    i32 whole = __builtin_ctz(others);
    i32 point = at[whole] == '.' ? 1 : 0;
    i32 end = point != 0 ? __builtin_ctz(others & (others - 1)) : whole;
    if (end > 15) {
        return false;
    }
    /* The digits at the end of the register, without the point, zeros in front. */
    i32 count = end - point;
    __m128i from = _mm_add_epi8(places, _mm_set1_epi8((char)(count - 16)));
    from = _mm_sub_epi8(from, _mm_cmpgt_epi8(from, _mm_set1_epi8((char)(whole - 1))));
    __m128i aligned = _mm_shuffle_epi8(values, from);
    __m128i pairs = _mm_maddubs_epi16(aligned, _mm_set1_epi16(10 | 1 << 8));
    __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(100 | 1 << 16));
    __m128i packed = _mm_packus_epi32(fours, fours);
    u64 eights = (u64)_mm_cvtsi128_si64(_mm_madd_epi16(packed, _mm_set1_epi32(10000 | 1 << 16)));
    *out = (struct scan_number){.digits = (eights & UINT32_MAX) * 100000000 + (eights >> 32),
                                .whole = whole,
                                .fraction = count - whole,
                                .size = end};
    return true;
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

static inline bool scan_is_key(const u8 *at, const struct scan_key *key)
{
    u64 first = num_load_u64(at) ^ num_load_u64(key->bytes);
    if (key->size <= 8) {
        return key->size > 0 && first << (64 - 8 * key->size) == 0;
    }
    return first == 0 && memcmp(at + 8, key->bytes + 8, key->size - 8) == 0;
}

/* The caller reads eight at a time. */
static HOT bool scan_plain(const u8 *at, struct scan_number *out)
{
    (void)at;
    (void)out;
    return false;
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
