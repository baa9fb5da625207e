#include "base/utf8.h"

#include "base/assert.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static bool in_range(u8 byte, u8 low, u8 high)
{
    return byte >= low && byte <= high;
}

/* The size of the well-formed sequence at `bytes` whose first byte is no ASCII, or 0. The cases are
 * the rows of table 3-7 of the Unicode standard. */
static size_t utf8_sequence(const u8 *bytes, size_t left)
{
    u8 first = bytes[0];
    if (in_range(first, 0xc2, 0xdf)) {
        return left >= 2 && in_range(bytes[1], 0x80, 0xbf) ? 2 : 0;
    }
    if (in_range(first, 0xe0, 0xef)) {
        u8 low = first == 0xe0 ? 0xa0 : 0x80;
        u8 high = first == 0xed ? 0x9f : 0xbf;
        bool good = left >= 3 && in_range(bytes[1], low, high) && in_range(bytes[2], 0x80, 0xbf);
        return good ? 3 : 0;
    }
    if (in_range(first, 0xf0, 0xf4)) {
        u8 low = first == 0xf0 ? 0x90 : 0x80;
        u8 high = first == 0xf4 ? 0x8f : 0xbf;
        bool good = left >= 4 && in_range(bytes[1], low, high) && in_range(bytes[2], 0x80, 0xbf) &&
                    in_range(bytes[3], 0x80, 0xbf);
        return good ? 4 : 0;
    }
    return 0;
}

static size_t utf8_check_bytes(const u8 *bytes, size_t size)
{
    size_t i = 0;
    while (i < size) {
        if (size - i >= 8 && (num_load_u64(bytes + i) & 0x8080808080808080U) == 0) {
            i += 8;
            continue;
        }
        if (bytes[i] < 0x80) {
            i++;
            continue;
        }
        size_t sequence = utf8_sequence(bytes + i, size - i);
        if (sequence == 0) {
            return i;
        }
        i += sequence;
    }
    return size;
}

/* ---- 32 bytes at a time ---- */

#if defined(__x86_64__)

#define WIDE __attribute__((target("avx2")))

enum { WIDE_BYTES = 32 };

/* What is wrong with two bytes in a row shows in the first one's halves and the second one's high
 * half: each of these says which errors its value allows, and what all three allow is one (J.
 * Keiser, D. Lemire, Validating UTF-8 in less than one instruction per byte). */
enum {
    TOO_SHORT = 1,       /* a lead, then no continuation */
    TOO_LONG = 2,        /* ASCII, then a continuation */
    OVERLONG_3 = 4,      /* E0, then 80 to 9F */
    TOO_LARGE = 8,       /* F4, then from 90 up */
    SURROGATE = 16,      /* ED, then from A0 up */
    OVERLONG_2 = 32,     /* C0 or C1 */
    TOO_LARGE_1000 = 64, /* from F5 up, then 80 to 8F; the same as OVERLONG_4: F0, then that */
    TWO_FOLLOW = 128,    /* two continuations */
    ANY_LOW = TOO_SHORT | TOO_LONG | TWO_FOLLOW,
};

#define TABLE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

WIDE static inline __m256i wide_nibble(__m256i table, __m256i bytes)
{
    return _mm256_shuffle_epi8(table, _mm256_and_si256(bytes, _mm256_set1_epi8(15)));
}

/* The bytes `count` places back: those of `before`, then those of `now`. */
#define WIDE_BACK(before, now, count)                                                              \
    _mm256_alignr_epi8(now, _mm256_permute2x128_si256(before, now, 0x21), 16 - (count))

WIDE static __m256i wide_pair_errors(__m256i now, __m256i back)
{
    const __m256i first_high = TABLE(TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG,
                                     TOO_LONG, TOO_LONG, (char)TWO_FOLLOW, (char)TWO_FOLLOW,
                                     (char)TWO_FOLLOW, (char)TWO_FOLLOW, TOO_SHORT | OVERLONG_2,
                                     TOO_SHORT, TOO_SHORT | OVERLONG_3 | SURROGATE,
                                     TOO_SHORT | TOO_LARGE | TOO_LARGE_1000);
    const __m256i first_low = TABLE(
        (char)(ANY_LOW | OVERLONG_3 | OVERLONG_2 | TOO_LARGE_1000), (char)(ANY_LOW | OVERLONG_2),
        (char)ANY_LOW, (char)ANY_LOW, (char)(ANY_LOW | TOO_LARGE),
        (char)(ANY_LOW | TOO_LARGE | TOO_LARGE_1000), (char)(ANY_LOW | TOO_LARGE | TOO_LARGE_1000),
        (char)(ANY_LOW | TOO_LARGE | TOO_LARGE_1000), (char)(ANY_LOW | TOO_LARGE | TOO_LARGE_1000),
        (char)(ANY_LOW | TOO_LARGE | TOO_LARGE_1000), (char)(ANY_LOW | TOO_LARGE | TOO_LARGE_1000),
        (char)(ANY_LOW | TOO_LARGE | TOO_LARGE_1000), (char)(ANY_LOW | TOO_LARGE | TOO_LARGE_1000),
        (char)(ANY_LOW | TOO_LARGE | TOO_LARGE_1000 | SURROGATE),
        (char)(ANY_LOW | TOO_LARGE | TOO_LARGE_1000), (char)(ANY_LOW | TOO_LARGE | TOO_LARGE_1000));
    const __m256i second_high = TABLE(
        TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
        (char)(TOO_LONG | OVERLONG_2 | TWO_FOLLOW | OVERLONG_3 | TOO_LARGE_1000),
        (char)(TOO_LONG | OVERLONG_2 | TWO_FOLLOW | OVERLONG_3 | TOO_LARGE),
        (char)(TOO_LONG | OVERLONG_2 | TWO_FOLLOW | SURROGATE | TOO_LARGE),
        (char)(TOO_LONG | OVERLONG_2 | TWO_FOLLOW | SURROGATE | TOO_LARGE), TOO_SHORT, TOO_SHORT,
        TOO_SHORT, TOO_SHORT);
    __m256i high = wide_nibble(first_high, _mm256_srli_epi16(back, 4));
    __m256i low = wide_nibble(first_low, back);
    __m256i second = wide_nibble(second_high, _mm256_srli_epi16(now, 4));
    return _mm256_and_si256(_mm256_and_si256(high, low), second);
}

/* Errors of the bytes in `now`, whose front may go on with what `before` began. */
WIDE static __m256i wide_errors(__m256i before, __m256i now)
{
    __m256i errors = wide_pair_errors(now, WIDE_BACK(before, now, 1));
    /* Two continuations must stand behind a lead of three or four, and only there. */
    __m256i third = _mm256_subs_epu8(WIDE_BACK(before, now, 2), _mm256_set1_epi8(0x60));
    __m256i fourth = _mm256_subs_epu8(WIDE_BACK(before, now, 3), _mm256_set1_epi8(0x70));
    __m256i wanted = _mm256_and_si256(_mm256_or_si256(third, fourth),
                                      _mm256_set1_epi8((char)TWO_FOLLOW));
    return _mm256_xor_si256(errors, wanted);
}

/* How many bytes from the front are well-formed for certain: all up to the last sequences before
 * the first error or the rest that is no whole register. */
WIDE static size_t utf8_check_wide(const u8 *bytes, size_t size)
{
    __m256i before = _mm256_setzero_si256();
    size_t at = 0;
    for (; size - at >= WIDE_BYTES; at += WIDE_BYTES) {
        __m256i now = _mm256_loadu_si256((const __m256i_u *)(bytes + at));
        bool ascii = _mm256_movemask_epi8(_mm256_or_si256(now, before)) == 0;
        if (!ascii) {
            __m256i errors = wide_errors(before, now);
            if (!_mm256_testz_si256(errors, errors)) {
                break;
            }
        }
        before = now;
    }
    /* What is looked at again begins with no continuation, unless that is an error. */
    while (at > 0 && bytes[at - 1] >= 0x80) {
        at--;
        if (bytes[at] >= 0xc0) {
            break;
        }
    }
    return at;
}

#endif

size_t utf8_check_plainly(str text)
{
    return utf8_check_bytes((const u8 *)text.data, text.size);
}

size_t utf8_check(str text)
{
    const u8 *bytes = (const u8 *)text.data;
    size_t good = 0;
#if defined(__x86_64__)
    if (text.size >= 2 * WIDE_BYTES && __builtin_cpu_supports("avx2")) {
        good = utf8_check_wide(bytes, text.size);
    }
#endif
    return good + utf8_check_bytes(bytes + good, text.size - good);
}

str utf8_cut(str text, size_t bytes_max)
{
    if (text.size <= bytes_max) {
        return text;
    }
    size_t size = bytes_max;
    while (size > 0 && ((u8)text.data[size] & 0xc0) == 0x80) {
        size--;
    }
    return str_slice(text, 0, size);
}

size_t utf8_encode(u32 code_point, char out[4])
{
    assert(code_point <= 0x10ffff);
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (char)(0xc0 | code_point >> 6);
        out[1] = (char)(0x80 | (code_point & 63));
        return 2;
    }
    if (code_point < 0x10000) {
        out[0] = (char)(0xe0 | code_point >> 12);
        out[1] = (char)(0x80 | (code_point >> 6 & 63));
        out[2] = (char)(0x80 | (code_point & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | code_point >> 18);
    out[1] = (char)(0x80 | (code_point >> 12 & 63));
    out[2] = (char)(0x80 | (code_point >> 6 & 63));
    out[3] = (char)(0x80 | (code_point & 63));
    return 4;
}
