/* Two SHA-256 at a time. One block's rounds wait for each other, and a core's SHA unit waits with
 * them; rounds of two messages fill it. Where the machine has no such unit, one after the other. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "io/crypto.h"

#include "base/assert.h"

#include <openssl/sha.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define SHA_UNIT __attribute__((target("sha,sse4.1")))

enum { LANES = 2, BLOCK_BYTES = 64, ROUNDS = 64 };

static const u32 round_keys[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* The state as the SHA unit wants it, and the last sixteen words of the message. */
struct lane {
    __m128i abef;
    __m128i cdgh;
    __m128i words[4];
};

SHA_UNIT static inline struct lane lane_load(const u32 state[8])
{
    __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i_u *)state), 0xB1);
    __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i_u *)(state + 4)), 0x1B);
    return (struct lane){.abef = _mm_alignr_epi8(badc, hgfe, 8),
                         .cdgh = _mm_blend_epi16(hgfe, badc, 0xF0)};
}

SHA_UNIT static inline void lane_store(const struct lane *lane, u32 state[8])
{
    __m128i feba = _mm_shuffle_epi32(lane->abef, 0x1B);
    __m128i dchg = _mm_shuffle_epi32(lane->cdgh, 0xB1);
    _mm_storeu_si128((__m128i_u *)state, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((__m128i_u *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

/* Words 4 * four to 4 * four + 3 of the message, and their rounds. */
SHA_UNIT static inline void lane_four_rounds(struct lane *lane, const u8 *block, u32 four)
{
    const __m128i big_endian = _mm_set_epi64x(0x0C0D0E0F08090A0B, 0x0405060700010203);
    __m128i *words = lane->words;
    __m128i *now = &words[four % 4];
    if (four < 4) {
        *now = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i_u *)(block + 16 * four)),
                                big_endian);
    } else {
        __m128i last = words[(four + 3) % 4];
        __m128i middle = _mm_alignr_epi8(last, words[(four + 2) % 4], 4);
        *now = _mm_add_epi32(_mm_sha256msg1_epu32(*now, words[(four + 1) % 4]), middle);
        *now = _mm_sha256msg2_epu32(*now, last);
    }
    __m128i keys = _mm_loadu_si128((const __m128i_u *)(round_keys + 4 * four));
    __m128i keyed = _mm_add_epi32(*now, keys);
    lane->cdgh = _mm_sha256rnds2_epu32(lane->cdgh, lane->abef, keyed);
    keyed = _mm_shuffle_epi32(keyed, 0x0E);
    lane->abef = _mm_sha256rnds2_epu32(lane->abef, lane->cdgh, keyed);
}

SHA_UNIT static void hash_blocks(u32 *const states[LANES], const u8 *const messages[LANES],
                                 size_t blocks)
{
    struct lane a = lane_load(states[0]);
    struct lane b = lane_load(states[1]);
    for (size_t i = 0; i < blocks; i++) {
        struct lane a_was = a;
        struct lane b_was = b;
#pragma GCC unroll 16
        for (u32 four = 0; four < ROUNDS / 4; four++) {
            lane_four_rounds(&a, messages[0] + i * BLOCK_BYTES, four);
            lane_four_rounds(&b, messages[1] + i * BLOCK_BYTES, four);
        }
        a.abef = _mm_add_epi32(a.abef, a_was.abef);
        a.cdgh = _mm_add_epi32(a.cdgh, a_was.cdgh);
        b.abef = _mm_add_epi32(b.abef, b_was.abef);
        b.cdgh = _mm_add_epi32(b.cdgh, b_was.cdgh);
    }
    lane_store(&a, states[0]);
    lane_store(&b, states[1]);
}

static bool machine_has_sha(void)
{
    return __builtin_cpu_supports("sha") && __builtin_cpu_supports("sse4.1");
}

/* The whole blocks that both have; their number. */
static size_t hash_common(SHA256_CTX contexts[2], str first, str second)
{
    size_t size = first.size < second.size ? first.size : second.size;
    size_t blocks = machine_has_sha() ? size / BLOCK_BYTES : 0;
    if (blocks > 0) {
        hash_blocks((u32 *const[LANES]){contexts[0].h, contexts[1].h},
                    (const u8 *const[LANES]){(const u8 *)first.data, (const u8 *)second.data},
                    blocks);
    }
    return blocks * BLOCK_BYTES;
}

#else

static size_t hash_common(SHA256_CTX contexts[2], str first, str second)
{
    (void)contexts, (void)first, (void)second;
    return 0;
}

#endif

static struct sha256 hash_rest(SHA256_CTX *context, str bytes, size_t done)
{
    struct sha256 digest;
    context->Nl = (u32)(done << 3);
    context->Nh = (u32)(done >> 29);
    int fine = done == bytes.size ||
               SHA256_Update(context, bytes.data + done, bytes.size - done) == 1;
    fine = fine && SHA256_Final(digest.bytes, context) == 1;
    assert(fine);
    return digest;
}

void crypto_sha256_pair(str first, str second, struct sha256 out[2])
{
    SHA256_CTX contexts[2];
    int begun = SHA256_Init(&contexts[0]) & SHA256_Init(&contexts[1]);
    assert(begun == 1);
    size_t done = hash_common(contexts, first, second);
    out[0] = hash_rest(&contexts[0], first, done);
    out[1] = hash_rest(&contexts[1], second, done);
}
