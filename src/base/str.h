/* str: a slice of bytes, pointer and length, never owning, never needing a NUL.
 *
 * The bytes belong to somebody else (an arena, a literal, a buffer) and must outlive the slice.
 * Pure; any thread. */
#ifndef LHBOX_BASE_STR_H
#define LHBOX_BASE_STR_H

#include "base/num.h"

typedef struct str {
    const char *data;
    size_t size;
} str;

struct arena;

/* A slice of a string literal. STR_INIT is the same for static initialisers. */
#define STR(literal)      ((str){("" literal), sizeof(literal) - 1})
#define STR_INIT(literal) {("" literal), sizeof(literal) - 1}
/* For printf: "%.*s", STR_ARG(s). */
#define STR_ARG(s) ((int)(s).size), ((s).data != NULL ? (s).data : "")

str str_from(const char *c_string);
bool str_equal(str a, str b);
bool str_equal_ignore_case(str a, str b); /* ASCII only */
int str_compare(str a, str b);            /* by bytes, as memcmp, shorter first */
bool str_starts(str text, str prefix);
bool str_ends(str text, str suffix);
/* The index of the first byte or slice, or -1. */
i64 str_find_byte(str text, char byte);
i64 str_find_last_byte(str text, char byte);
i64 str_find(str text, str wanted);
/* text[from..to), both clamped to the size. */
str str_slice(str text, size_t from, size_t to);
str str_trim(str text); /* blanks and tabs at both ends */
/* Takes the part before the first `separator` off `*rest` and returns it; without a separator the
 * whole rest. Returns false when nothing is left (rest->data is NULL then). */
bool str_next(str *rest, char separator, str *out_part);
/* Decimal digits with an optional minus, whole slice, no blanks; false when it is none or too big.
 */
MUST_USE bool str_to_i64(str text, i64 *out_value);
/* A copy in the arena; data is NULL when the arena's limit is reached. The copy is followed by a
 * NUL byte (not counted), for library doors. */
str str_copy(struct arena *arena, str text);
/* printf into the arena; data is NULL when the arena's limit is reached. NUL-terminated. */
str str_format(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Seeded hash for tables (SipHash-2-4 with a random key of the process). */
u64 str_hash(str text);

#endif
