/* document: reading and changing the members of a JSON document of the table format.
 *
 * Thin over jansson: texts as slices, integers as i64, never through a double. Memory running
 * out in here aborts, as everywhere (base/arena); what is set becomes the object's. Private to
 * table/. */
#ifndef LHBOX_TABLE_DOCUMENT_H
#define LHBOX_TABLE_DOCUMENT_H

#include "base/arena.h"
#include "base/error.h"

#include <jansson.h>

/* Borrowed; data NULL when the value is no string. */
str document_str(const json_t *value);
/* The member as text; data NULL when it is absent or no string. */
str document_text(const json_t *object, const char *key);
/* False when the member is absent or no integer. */
MUST_USE bool document_i64(const json_t *object, const char *key, i64 *out_value);
i64 document_i64_or(const json_t *object, const char *key, i64 otherwise);
/* As document_i64, for values of 32 bits that are not negative. */
MUST_USE bool document_i32(const json_t *object, const char *key, i32 *out_value);
/* The first object in the array whose member `key` is the integer; NULL: none. */
json_t *document_find(const json_t *array, const char *key, i64 value);
size_t document_index(const json_t *array, const json_t *item);
/* The array or object under `key`, made when it is absent, null or something else. */
json_t *document_array(json_t *object, const char *key);
json_t *document_object(json_t *object, const char *key);
/* Takes the reference. */
void document_set(json_t *object, const char *key, json_t *value);
void document_set_i64(json_t *object, const char *key, i64 value);
void document_set_text(json_t *object, const char *key, str text); /* UTF-8 */
/* As document_set_text, under a key that is a slice (no NUL inside). */
void document_set_entry(json_t *object, str key, str text);
void document_append(json_t *array, json_t *value);
json_t *document_copy(const json_t *value); /* deep */
/* A document whose own members, and the items of those that are lists or objects, may be set, added
 * and removed. What lies deeper is shared, and may not be changed in place. */
json_t *document_branch(const json_t *object);
/* json_incref, which looks at the count first, and not atomically. For values that several threads
 * read. */
json_t *document_share(const json_t *value);
json_t *document_string(str text); /* UTF-8 */
/* Removes the members whose value is null. */
void document_drop_nulls(json_t *object);
/* For jansson's iterators, which want a mutable object and do not change it. */
json_t *document_mutable(const json_t *value);

/* ---- as text ---- */

enum { DOCUMENT_LISTS_MAX = 16 };

/* A document that was printed, and where in its text the items of its own lists stand: from the
 * first one's begin to the last one's end. As many lists as there is room for. */
struct document_text {
    str text;
    size_t list_count;
    struct document_list {
        const json_t *items; /* some; the document's */
        size_t begin;
        size_t end;
    } lists[DOCUMENT_LISTS_MAX];
};

/* Compact text in the arena. */
MUST_USE err document_print(struct arena *arena, const json_t *value, str *out_text,
                            struct error *error);
/* The same text, of a document that comes after another (document_branch): where a list begins with
 * all items of one of `before`, their text is copied. That is the same text, as what two documents
 * share is not changed. `before` may be NULL; else its document must live. */
MUST_USE err document_print_after(struct arena *arena, const json_t *document,
                                  const struct document_text *before,
                                  struct document_text *out_text, struct error *error);

#endif
