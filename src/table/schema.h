/* schema: an Iceberg schema as a value, from and to its JSON, and the textual types of the API.
 *
 * Schemas live in the arena they were read into. Iceberg table spec, "Schemas"; appendix C for
 * JSON. */
#ifndef LHBOX_TABLE_SCHEMA_H
#define LHBOX_TABLE_SCHEMA_H

#include "base/error.h"
#include "format/type.h"

#include <jansson.h>

enum { SCHEMA_DEPTH_MAX = 32, SCHEMA_FIELDS_MAX = 20000, SCHEMA_NAME_BYTES_MAX = 256 };

struct schema {
    i32 id;
    struct type root; /* a struct: the columns */
};

/* Reads {"type":"struct","schema-id":…,"fields":[…]}. INVALID names the field. */
MUST_USE err schema_from_json(struct arena *arena, const json_t *document,
                              struct schema *out_schema, struct error *error);
/* A new reference; NULL only when memory is out. */
json_t *schema_to_json(const struct schema *schema);
json_t *schema_type_to_json(const struct type *type);
/* A textual type, with the `required` marks allowed inside; field ids are 0. `text` may end in
 * ` required` when out_required is not NULL. */
MUST_USE err schema_parse_type(struct arena *arena, str text, struct type *out_type,
                               bool *out_required, struct error *error);
/* Gives fresh ids from *last_id + 1 on: all fields of a struct first, then what is inside each. */
void schema_assign_ids(struct type *root, i32 *last_id);
i32 schema_highest_id(const struct type *root);
/* The field of this id at any depth, or NULL. */
const struct field *schema_find(const struct type *root, i32 field_id);
/* Names: UTF-8, no control characters, at most SCHEMA_NAME_BYTES_MAX, no two alike in a struct, no
 * `a.b` beside a struct `a` with a field `b`. INVALID with invalid_request. */
MUST_USE err schema_check_names(const struct type *root, struct error *error);
/* No two fields of one id, none of the same dotted name: what any table library asks. */
MUST_USE err schema_check_unique(const struct type *root, struct error *error);
/* `unknown` is optional wherever it stands. */
MUST_USE err schema_check_types(const struct type *root, struct error *error);

#endif
