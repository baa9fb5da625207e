/* id: the identifiers lhbox makes, and key texts.
 *
 * All randomness comes from the seam. Crockford base32 in lower case:
 * 0123456789abcdefghjkmnpqrstvwxyz. Base64url without padding (RFC 4648 section 5). Pure but for
 * the seam; any thread. */
#ifndef LHBOX_BASE_ID_H
#define LHBOX_BASE_ID_H

#include "base/seam.h"

enum {
    ID_UID_SIZE = 26,   /* 128 random bits in base32 */
    ID_UUID_SIZE = 36,  /* RFC 9562 text, version 4 */
    ID_ULID_SIZE = 26,  /* 48 bits of milliseconds, 80 random bits; upper case */
    ID_SHORT_SIZE = 16, /* 12 hex digits after a 4-byte prefix such as snk_ */
    ID_KEY_SECRET_SIZE = 43,
    ID_KEY_SIZE_MAX = 64,
};

struct uid {
    char text[ID_UID_SIZE];
};
struct uuid {
    u8 bytes[16];
};

struct uid id_uid_make(const struct seam *seam);
MUST_USE bool id_uid_parse(str text, struct uid *out_uid);
static inline str id_uid_str(const struct uid *uid)
{
    return (str){uid->text, ID_UID_SIZE};
}
/* The first 130 bits of at least 17 bytes as 26 characters. */
void id_base32_26(const u8 bytes[17], char out[ID_UID_SIZE]);

struct uuid id_uuid_make(const struct seam *seam);
MUST_USE bool id_uuid_parse(str text, struct uuid *out_uuid); /* 8-4-4-4-12 hex, either case */
str id_uuid_format(struct uuid uuid, char out[ID_UUID_SIZE]);
str id_ulid_make(const struct seam *seam, char out[ID_ULID_SIZE]);
/* prefix (4 bytes, as "snk_") and 12 random hex digits, in the arena. */
str id_short_make(struct arena *arena, const struct seam *seam, const char *prefix);

/* Key text: `al_key_` or `al_send_` or `al_tok_`, 12 hex, `_`, 43 characters: base64url of 32
 * random bytes whose last 6 characters are replaced by a checksum (CRC-32 of all that stands before
 * them, as 6 base64url characters). */
enum id_key_kind { ID_KEY_API, ID_KEY_SEND, ID_KEY_TOKEN };
struct id_key {
    enum id_key_kind kind;
    str text;
    str public_id; /* the 12 hex digits, inside text */
};
str id_key_make(struct arena *arena, const struct seam *seam, enum id_key_kind kind);
/* False when the form or the checksum is wrong. */
MUST_USE bool id_key_parse(str text, struct id_key *out_key);

/* The credential of an Authorization header (RFC 6750): what follows the scheme `Bearer` (any
 * case), blanks removed; data NULL when it is another scheme or nothing. */
str id_bearer(str authorization);

#endif
