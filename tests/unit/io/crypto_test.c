#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base64.h"
#include "io/crypto.h"

static void assert_digest(struct sha256 digest, const char *hex)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)64 * KIB);
    buf text = buf_create(arena, 64, 64);
    base64_hex(&text, (str){(const char *)digest.bytes, sizeof(digest.bytes)});
    assert_true(str_equal(buf_str(&text), str_from(hex)));
}

static void digests_are_those_of_fips_180(void **state)
{
    (void)state;
    assert_digest(crypto_sha256((str){NULL, 0}),
                  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_digest(crypto_sha256(STR("abc")),
                  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_digest(crypto_sha256(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void pieces_give_the_digest_of_the_whole(void **state)
{
    (void)state;
    char bytes[1000];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(i * 7);
    }
    struct sha256 whole = crypto_sha256((str){bytes, sizeof(bytes)});
    for (size_t step = 1; step < 200; step += 13) {
        struct crypto_hash hash;
        crypto_hash_begin(&hash);
        for (size_t at = 0; at < sizeof(bytes); at += step) {
            crypto_hash_add(&hash, str_slice((str){bytes, sizeof(bytes)}, at, at + step));
        }
        struct sha256 digest = crypto_hash_end(&hash);
        assert_memory_equal(digest.bytes, whole.bytes, sizeof(whole.bytes));
    }
}

/* Lengths about each block's end, the two alike or not. */
static void a_pair_has_the_digests_of_each_alone(void **state)
{
    (void)state;
    char bytes[2 * 260];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(i * 131 + (i >> 3));
    }
    for (size_t first = 0; first <= 260; first++) {
        for (size_t second = 0; second <= 260; second += 1 + first % 7) {
            str a = {bytes, first};
            str b = {bytes + 260, second};
            struct sha256 both[2];
            struct sha256 alone[2] = {crypto_sha256(a), crypto_sha256(b)};
            crypto_sha256_pair(a, b, both);
            assert_memory_equal(both, alone, sizeof(both));
        }
    }
}

static void equal_means_every_byte(void **state)
{
    (void)state;
    u8 a[32] = {1, 2, 3};
    u8 b[32] = {1, 2, 3};
    assert_true(crypto_equal(a, b, sizeof(a)));
    b[31] = 1;
    assert_false(crypto_equal(a, b, sizeof(a)));
}

static void a_wiped_secret_is_gone(void **state)
{
    (void)state;
    u8 secret[16];
    u8 zero[16] = {0};
    memset(secret, 0x5a, sizeof(secret));
    crypto_wipe(secret, sizeof(secret));
    assert_memory_equal(secret, zero, sizeof(zero));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_those_of_fips_180),
        cmocka_unit_test(pieces_give_the_digest_of_the_whole),
        cmocka_unit_test(a_pair_has_the_digests_of_each_alone),
        cmocka_unit_test(equal_means_every_byte),
        cmocka_unit_test(a_wiped_secret_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
