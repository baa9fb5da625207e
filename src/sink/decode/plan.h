/* decode/plan: a schema made ready for decoding: one plan for each type in it, as a tree.
 *
 * Names can be looked up, defaults are values, and each struct and map has room for the
 * bookkeeping of the one JSON value of that type at hand. (A type cannot stand inside itself, so
 * that there is never more than one.) Lives in the decoder's arena. */
#ifndef LHBOX_SINK_DECODE_PLAN_H
#define LHBOX_SINK_DECODE_PLAN_H

#include "base/error.h"
#include "format/column.h"

/* No node, no field, no name. */
#define DECODE_NONE UINT32_MAX

enum decode_role {
    DECODE_ORDINARY,
    DECODE_KEY,
    DECODE_INGEST,  /* the sink writes it */
    DECODE_CAPTURE, /* it takes the unknown names */
};

struct decode_plan {
    const struct field *field;
    str type_text;
    enum decode_role role; /* of columns; inside them ORDINARY */
    struct decode_plan *children;
    size_t child_count;
    /* An absent field gets this: a struct its fields' defaults, others value 0 of the column. */
    bool has_default;
    struct column *default_value;
    /* Struct, and map for its entries {"key", "value"}: */
    /* Struct only: a hash table of the fields, one more than the index, 0 where there is none.
     * Names of the schema make it, so that no row can crowd it. */
    u32 *by_name;
    u32 by_name_shift;
    u64 *seen;   /* [child_count] the object that last had this field */
    u32 *member; /* [child_count] the node that it had there */
    /* Map: a hash table of the keys seen, empty places 0. */
    u32 *slots;
    size_t slot_count;
};

/* `field` must outlive the plan; its type may be the root of a schema. INVALID: a type that no sink
 * writes, or a default that is none. */
MUST_USE err decode_plan_make(struct arena *arena, const struct field *field,
                              struct decode_plan *out_plan, struct error *error);
static inline enum type_kind decode_plan_kind(const struct decode_plan *plan)
{
    return plan->field->type.kind;
}
/* Maps with string keys take the object form only. */
static inline bool decode_plan_has_string_keys(const struct decode_plan *plan)
{
    return decode_plan_kind(&plan->children[0]) == TYPE_STRING;
}
/* Where in by_name the search for a name begins. `first`: its bytes, or eight of them, zeros
 * behind; `last`: the last eight, 0 where there are less. */
static inline u32 decode_plan_slot(const struct decode_plan *plan, u64 first, u64 last, size_t size)
{
    u64 hash = (first ^ (last << 23 | last >> 41) ^ size) * UINT64_C(0x9E3779B97F4A7C15);
    return (u32)(hash >> plan->by_name_shift);
}
/* The index of the field of this name, or DECODE_NONE. `expected` is tried first. */
u32 decode_plan_find(const struct decode_plan *plan, str name, u32 expected);

/* Appends the value that a default's JSON text stands for (Iceberg table spec, appendix C,
 * single-value JSON). INVALID: it is none. LIMIT. */
MUST_USE err decode_default_append(struct column *column, str json, struct error *error);
#endif
