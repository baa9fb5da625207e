#include "format/crc.h"

#include <zlib.h>

u32 crc_portable(str bytes)
{
    return (u32)crc32_z(0, (const Bytef *)bytes.data, bytes.size);
}

#if defined(__x86_64__)
#include <immintrin.h>

/* V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction",
 * Intel 2009: bytes are a polynomial over GF(2), whose remainder stays the same when its front is
 * multiplied by x^n mod P and added n bits further on. The constants are those x^n mod P, bits
 * reversed. */
#define CRC_INLINE __attribute__((target("pclmul,sse4.1"))) static inline
#define CRC_WIDE   __attribute__((target("pclmul,sse4.1"))) static

enum { CRC_STEP = 16, CRC_LANES = 4, CRC_WIDE_MIN = CRC_STEP * CRC_LANES };

CRC_INLINE __m128i crc_load(const char *bytes)
{
    return _mm_loadu_si128((const void *)bytes);
}

/* `front` by as many bits as the factors are for, added to `next`. */
CRC_INLINE __m128i crc_fold(__m128i front, __m128i factors, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(front, factors, 0x00);
    __m128i high = _mm_clmulepi64_si128(front, factors, 0x11);
    return _mm_xor_si128(next, _mm_xor_si128(low, high));
}

/* 128 bits to 64, to 32 by Barrett's reduction. */
CRC_INLINE u32 crc_reduce(__m128i rest, __m128i by_128)
{
    const __m128i by_64 = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i halves = _mm_setr_epi32(-1, 0, -1, 0);
    rest = _mm_xor_si128(_mm_srli_si128(rest, 8), _mm_clmulepi64_si128(rest, by_128, 0x10));
    __m128i high = _mm_srli_si128(rest, 4);
    rest = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(rest, halves), by_64, 0x00), high);
    __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(rest, halves), barrett, 0x10);
    quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, halves), barrett, 0x00);
    return (u32)_mm_extract_epi32(_mm_xor_si128(rest, quotient), 1);
}

/* Of CRC_WIDE_MIN bytes or more, a multiple of CRC_STEP; in four lanes that do not wait for each
 * other. */
CRC_WIDE u32 crc_wide(const char *bytes, size_t size)
{
    const __m128i by_512 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i by_128 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    __m128i lanes[CRC_LANES];
    for (size_t i = 0; i < CRC_LANES; i++) {
        lanes[i] = crc_load(bytes + i * CRC_STEP);
    }
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(-1));
    size_t at = CRC_WIDE_MIN;
    for (; at + CRC_WIDE_MIN <= size; at += CRC_WIDE_MIN) {
        for (size_t i = 0; i < CRC_LANES; i++) {
            lanes[i] = crc_fold(lanes[i], by_512, crc_load(bytes + at + i * CRC_STEP));
        }
    }
    __m128i rest = lanes[0];
    for (size_t i = 1; i < CRC_LANES; i++) {
        rest = crc_fold(rest, by_128, lanes[i]);
    }
    for (; at < size; at += CRC_STEP) {
        rest = crc_fold(rest, by_128, crc_load(bytes + at));
    }
    return ~crc_reduce(rest, by_128);
}

u32 crc_of(str bytes)
{
    bool wide = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
    if (!wide || bytes.size < CRC_WIDE_MIN) {
        return crc_portable(bytes);
    }
    size_t size = bytes.size / CRC_STEP * CRC_STEP;
    u32 crc = crc_wide(bytes.data, size);
    return (u32)crc32_z(crc, (const Bytef *)bytes.data + size, bytes.size - size);
}
#else
u32 crc_of(str bytes)
{
    return crc_portable(bytes);
}
#endif
