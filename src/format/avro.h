/* avro: object container files, written and read (Apache Avro 1.11 specification).
 *
 * Iceberg manifests and manifest lists are such files. The schema is the caller's JSON text, kept
 * verbatim, so that field-id, element-id and logicalType survive; header metadata is any list of
 * keys. Values are encoded by the caller through the avro_put_* functions and decoded along the
 * writer's schema by avro_value, which gives records as arrays of values in the writer's field
 * order with the field ids that the schema names. Codecs: null, deflate, snappy (with its CRC),
 * zstandard.
 *
 * Files of other writers are hostile input: every length is checked against what is left, nesting
 * is bounded, a block that decompresses past AVRO_BLOCK_BYTES_MAX is CORRUPT. Pure; one thread. */
#ifndef LHBOX_FORMAT_AVRO_H
#define LHBOX_FORMAT_AVRO_H

#include "base/buf.h"
#include "base/error.h"

enum { AVRO_BLOCK_BYTES_MAX = 256 * MIB, AVRO_DEPTH_MAX = 32 };

enum avro_codec { AVRO_NULL, AVRO_DEFLATE, AVRO_SNAPPY, AVRO_ZSTD };

struct avro_meta {
    str key;
    str value;
};

/* ---- writing ---- */

void avro_put_long(buf *out, i64 value); /* int and long: zigzag varint */
void avro_put_boolean(buf *out, bool value);
void avro_put_double(buf *out, double value);
void avro_put_float(buf *out, float value);
void avro_put_bytes(buf *out, str value); /* bytes and string */
static inline void avro_put_branch(buf *out, i64 branch)
{
    avro_put_long(out, branch); /* index in a union */
}

/* A whole file: header (schema, codec and `meta`), then `records` (count encoded records) in one or
 * more blocks, each followed by the sync marker, which is derived from the content so that equal
 * input gives equal bytes. Fails with LIMIT. */
MUST_USE err avro_write(buf *out, struct arena *arena, str schema_json,
                        const struct avro_meta *meta, size_t meta_count, enum avro_codec codec,
                        str records, i64 record_count, struct error *error);

/* ---- reading ---- */

enum avro_kind {
    AVRO_VALUE_NULL,
    AVRO_VALUE_BOOLEAN,
    AVRO_VALUE_LONG, /* int and long */
    AVRO_VALUE_FLOAT,
    AVRO_VALUE_DOUBLE,
    AVRO_VALUE_BYTES,  /* bytes, string, fixed, enum's symbol */
    AVRO_VALUE_RECORD, /* items are the fields */
    AVRO_VALUE_ARRAY,  /* items; a map is an array of two-field records key, value */
};

struct avro_value {
    enum avro_kind kind;
    i64 number;
    double real;
    str bytes;
    str raw; /* as encoded, with the branch of a union in front */
    struct avro_value *items;
    const struct avro_field *fields; /* record: name and id of each item */
    size_t count;
};

struct avro_field {
    str name;
    i32 field_id; /* -1 when the schema names none */
};

struct avro_file; /* header and all records, in the arena given; slices point into `bytes` too */

MUST_USE err avro_read(struct arena *arena, str bytes, struct avro_file **out_file,
                       struct error *error);
/* The records one after the other, without all of them in memory: each is gone when `take` returns,
 * whose failure ends the reading. The arena holds the largest block and one record. */
typedef err (*avro_take)(void *context, const struct avro_value *record, struct error *error);
MUST_USE err avro_each(struct arena *arena, str bytes, avro_take take, void *context,
                       struct error *error);
str avro_file_schema(const struct avro_file *file);
/* The header's value of `key`; data NULL when it has none. */
str avro_file_meta(const struct avro_file *file, str key);
size_t avro_file_count(const struct avro_file *file);
const struct avro_value *avro_file_record(const struct avro_file *file, size_t index);
/* The item of this field id in a record; by name when the writer's schema gave no ids. NULL: none.
 */
const struct avro_value *avro_field_of(const struct avro_value *record, i32 field_id, str name);

#endif
