/* metadata_text: a version of a table and its text, kept to print the next version from.
 *
 * Versions share most of what they say (metadata_copy), and the longest part, their snapshots, only
 * grows from roll to roll: a commit prints what is new and copies the rest. What it writes is the
 * text that printing the whole document gives, byte for byte; no text of other writers is taken.
 *
 * Reference-counted and never changed; any thread. */
#ifndef LHBOX_TABLE_METADATA_TEXT_H
#define LHBOX_TABLE_METADATA_TEXT_H

#include "table/metadata.h"

struct metadata_text;

/* Keeps a reference to the document, which is not changed any more. `before`: of any other version,
 * best of the one that it follows; NULL: all is printed. */
MUST_USE err metadata_text_print(const struct metadata *metadata,
                                 const struct metadata_text *before,
                                 struct metadata_text **out_text, struct error *error);
struct metadata_text *metadata_text_share(struct metadata_text *text); /* NULL gives NULL */
void metadata_text_close(struct metadata_text *text);                  /* NULL is allowed */
void metadata_text_close_at(struct metadata_text **text);
#define AUTO_METADATA_TEXT __attribute__((cleanup(metadata_text_close_at)))
/* Borrowed. */
str metadata_text_bytes(const struct metadata_text *text);
const struct metadata *metadata_text_document(const struct metadata_text *text);

#endif
