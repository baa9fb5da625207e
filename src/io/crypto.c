/* The low-level SHA256_* calls are deprecated in OpenSSL 3, but only they keep the state in memory
 * of ours: no allocation for each batch, nothing to free when a request is dropped half-way. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "io/crypto.h"

#include "base/assert.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct crypto_hash), "the state must fit");
_Static_assert(sizeof(struct sha256) == SHA256_DIGEST_LENGTH, "a digest has 32 bytes");

static SHA256_CTX *hash_context(struct crypto_hash *hash)
{
    return (SHA256_CTX *)(void *)hash->state;
}

struct sha256 crypto_sha256(str bytes)
{
    struct crypto_hash hash;
    crypto_hash_begin(&hash);
    crypto_hash_add(&hash, bytes);
    return crypto_hash_end(&hash);
}

void crypto_hash_begin(struct crypto_hash *hash)
{
    int done = SHA256_Init(hash_context(hash));
    assert(done == 1);
}

void crypto_hash_add(struct crypto_hash *hash, str bytes)
{
    if (bytes.size == 0) {
        return;
    }
    int done = SHA256_Update(hash_context(hash), bytes.data, bytes.size);
    assert(done == 1);
}

struct sha256 crypto_hash_end(struct crypto_hash *hash)
{
    struct sha256 digest;
    int done = SHA256_Final(digest.bytes, hash_context(hash));
    assert(done == 1);
    return digest;
}

bool crypto_equal(const void *a, const void *b, size_t size)
{
    return CRYPTO_memcmp(a, b, size) == 0;
}

void crypto_wipe(void *bytes, size_t size)
{
    OPENSSL_cleanse(bytes, size);
}
