/* type: Iceberg types as a tree, shared by rows, columns and files.
 *
 * A plain value: built once in an arena (by table/schema) and read by many. Field ids are
 * Iceberg's; Parquet, Avro and statistics name columns by them. Iceberg table spec, "Schemas and
 * data types". */
#ifndef LHBOX_FORMAT_TYPE_H
#define LHBOX_FORMAT_TYPE_H

#include "base/str.h"

enum type_kind {
    TYPE_BOOLEAN,
    TYPE_INT,
    TYPE_LONG,
    TYPE_FLOAT,
    TYPE_DOUBLE,
    TYPE_DECIMAL,
    TYPE_DATE,
    TYPE_TIME,
    TYPE_TIMESTAMP,
    TYPE_TIMESTAMPTZ,
    TYPE_TIMESTAMP_NS,
    TYPE_TIMESTAMPTZ_NS,
    TYPE_STRING,
    TYPE_UUID,
    TYPE_FIXED,
    TYPE_BINARY,
    TYPE_UNKNOWN,
    TYPE_STRUCT,
    TYPE_LIST,
    TYPE_MAP,
    TYPE_VARIANT,
    /* Named so that a schema with them can be read; no sink writes them yet. */
    TYPE_GEOMETRY,
    TYPE_GEOGRAPHY,
};

struct type {
    enum type_kind kind;
    i32 precision;  /* decimal: 1..38 */
    i32 scale;      /* decimal: 0..precision */
    i32 length;     /* fixed: bytes, from 1 */
    str parameters; /* geometry, geography: what stands in the brackets, with them; else empty */
    /* struct: its fields; list: one field "element"; map: two, "key" (required) and "value". */
    struct field *fields;
    size_t field_count;
};

struct field {
    i32 id;
    bool required;
    str name;
    struct type type;
    str doc;             /* data NULL: none */
    str initial_default; /* the schema's own JSON text; data NULL: none */
    str write_default;   /* the same; JSON null counts as none */
};

static inline bool type_is_nested(const struct type *type)
{
    return type->kind == TYPE_STRUCT || type->kind == TYPE_LIST || type->kind == TYPE_MAP;
}
/* Lists and maps: any number of values in one. */
static inline bool type_repeats(const struct type *type)
{
    return type->kind == TYPE_LIST || type->kind == TYPE_MAP;
}
enum { TYPE_NO_ID = INT32_MIN }; /* 0 is an id like others: tables from elsewhere have it */
/* What a value is made of in columns and files: the fields of a nested type; of a variant
 * "metadata" and "value", two required binaries without an id (format/variant.h); else nothing. */
const struct field *type_parts(const struct type *type, size_t *out_count);
/* The field of exactly this name among a struct's, or NULL. */
const struct field *type_field(const struct type *type, str name);
/* The textual form: decimal(10,2), fixed[16], list<string required>, map<string, long>,
 * struct<a: int required>; a field name that is not letters, digits or _ as a JSON string. data is
 * NULL when the arena's limit is reached. */
str type_text(struct arena *arena, const struct type *type);
/* The same, nested types by their bare word (struct, list, map): what a reject's detail says. */
str type_text_short(struct arena *arena, const struct type *type);

#endif
