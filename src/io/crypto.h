/* crypto: SHA-256, HMAC and constant-time comparison, by OpenSSL's libcrypto. Thread-safe. */
#ifndef LHBOX_IO_CRYPTO_H
#define LHBOX_IO_CRYPTO_H

#include "base/str.h"

struct sha256 {
    u8 bytes[32];
};

struct sha256 crypto_sha256(str bytes);
/* Of two at once, which takes less time than one after the other where they are about as long. */
void crypto_sha256_pair(str first, str second, struct sha256 out[2]);

/* Hashing in pieces. The state is plain memory of fixed size; end it once, or just forget it. */
struct crypto_hash {
    _Alignas(16) u8 state[128];
};
void crypto_hash_begin(struct crypto_hash *hash);
void crypto_hash_add(struct crypto_hash *hash, str bytes);
struct sha256 crypto_hash_end(struct crypto_hash *hash);

bool crypto_equal(const void *a, const void *b, size_t size); /* constant time */
/* Overwrites a secret in memory. */
void crypto_wipe(void *bytes, size_t size);

#endif
