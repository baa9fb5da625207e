/* schema_text: the words of types. Private to table/. */
#ifndef LHBOX_TABLE_SCHEMA_TEXT_H
#define LHBOX_TABLE_SCHEMA_TEXT_H

#include "table/schema.h"

/* long, timestamptz_ns, geometry, struct, …: the word without parameters. */
const char *schema_kind_word(enum type_kind kind);
/* False when no type begins with the word. */
MUST_USE bool schema_kind_find(str word, enum type_kind *out_kind);

#endif
