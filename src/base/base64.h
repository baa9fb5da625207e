/* base64: RFC 4648 base64 and base64url, strict.
 *
 * Pure; any thread. */
#ifndef LHBOX_BASE_BASE64_H
#define LHBOX_BASE_BASE64_H

#include "base/buf.h"

void base64_encode(buf *out, str bytes);     /* standard alphabet, padded */
void base64_encode_url(buf *out, str bytes); /* url alphabet, not padded */
void base64_hex(buf *out, str bytes);        /* lower-case hex digits */
/* Appends the bytes to `out`. Takes one alphabet or the other but not both, all the padding or
 * none; false (and `out` as before) on anything else, non-zero trailing bits included. */
MUST_USE bool base64_decode(buf *out, str text);

#endif
