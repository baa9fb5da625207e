/* utf8: is it UTF-8 (RFC 3629), and cutting at a character.
 *
 * Overlong forms, encoded surrogates and code points past U+10FFFF are not UTF-8. Pure. */
#ifndef LHBOX_BASE_UTF8_H
#define LHBOX_BASE_UTF8_H

#include "base/str.h"

/* The index of the first byte of the first ill-formed sequence, or text.size when all is well. A
 * sequence cut off by the end is ill-formed at its first byte. */
size_t utf8_check(str text);
/* For tests: the same byte by byte, whatever the machine has. */
size_t utf8_check_plainly(str text);
static inline bool utf8_valid(str text)
{
    return utf8_check(text) == text.size;
}
/* The longest prefix of at most `bytes_max` bytes that ends at a character. text is UTF-8. */
str utf8_cut(str text, size_t bytes_max);
/* Writes 1 to 4 bytes of the code point (a surrogate is written as its 3 bytes). Returns how many.
 */
size_t utf8_encode(u32 code_point, char out[4]);

#endif
