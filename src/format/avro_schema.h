/* avro_schema: a schema's JSON text as a tree to decode along. Private to avro.
 *
 * Named types may be referred to by name, also from inside themselves, so that the tree can have
 * cycles: whoever walks it bounds the depth. Attributes other than field-id, key-id and value-id
 * are ignored. Lives in the arena given. Fails with CORRUPT (not a schema) and LIMIT. */
#ifndef LHBOX_FORMAT_AVRO_SCHEMA_H
#define LHBOX_FORMAT_AVRO_SCHEMA_H

#include "format/avro.h"

enum avro_type_kind {
    AVRO_TYPE_NULL,
    AVRO_TYPE_BOOLEAN,
    AVRO_TYPE_INT,
    AVRO_TYPE_LONG,
    AVRO_TYPE_FLOAT,
    AVRO_TYPE_DOUBLE,
    AVRO_TYPE_BYTES,
    AVRO_TYPE_STRING,
    AVRO_TYPE_FIXED,
    AVRO_TYPE_ENUM,
    AVRO_TYPE_RECORD,
    AVRO_TYPE_ARRAY,
    AVRO_TYPE_MAP,
    AVRO_TYPE_UNION,
};

struct avro_type {
    enum avro_type_kind kind;
    i64 size;                        /* fixed */
    const str *symbols;              /* enum */
    const struct avro_field *fields; /* record; map: key and value */
    /* record: of the fields; array: the one of the items; map: the one of the values; union: the
     * branches */
    const struct avro_type **types;
    size_t count; /* of symbols or types */
};

MUST_USE err avro_schema_parse(struct arena *arena, str json, const struct avro_type **out_type,
                               struct error *error);

#endif
