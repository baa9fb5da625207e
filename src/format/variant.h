/* variant: the Parquet variant encoding, unshredded: one JSON-like value as two byte strings.
 *
 * "metadata" holds the names of all objects in the value, "value" the value itself. Parquet format,
 * VariantEncoding.md, version 1. A builder takes a value piece by piece, in document order:
 *
 *     variant_begin(builder);
 *     variant_object(builder);
 *     variant_name(builder, STR("x"));
 *     variant_integer(builder, 7);
 *     variant_end(builder);
 *     good = variant_finish(builder, &metadata, &value);
 *
 * A builder belongs to one thread and is used again for the next value; what it made lives until
 * then. Names are not copied: they live until variant_finish. */
#ifndef LHBOX_FORMAT_VARIANT_H
#define LHBOX_FORMAT_VARIANT_H

#include "base/buf.h"
#include "base/error.h"

enum {
    VARIANT_DEPTH_MAX = 512,
    VARIANT_DECIMAL_SCALE_MAX = 38,
};
#define VARIANT_BYTES_MAX ((size_t)1024 * 1024 * 1024)

/* A name of the value, and its place in the metadata. */
struct variant_name {
    str text;
    u32 hash;
};

/* A member or element of a container that is still open. */
struct variant_item {
    str name; /* of a member */
    u32 id;
    u32 start; /* in the value's bytes; then from the container's first item on */
};

struct variant_frame {
    bool is_object;
    u32 start;      /* of its bytes */
    u32 first_item; /* its items are the last ones */
};

struct variant_builder {
    struct arena *arena;
    buf value;
    buf metadata;
    struct variant_name *names;
    u32 name_count;
    u32 name_capacity;
    u32 *slots;     /* a hash table of the names: index + 1, empty places 0 */
    u32 slot_count; /* a power of two, in use by this value */
    u32 slot_capacity;
    struct variant_item *items;
    u32 item_count;
    u32 item_capacity;
    struct variant_frame frames[VARIANT_DEPTH_MAX];
    i32 depth;
    bool failed; /* the arena's limit, or VARIANT_BYTES_MAX */
};

/* False at the arena's limit. */
MUST_USE bool variant_builder_init(struct variant_builder *builder, struct arena *arena);

void variant_begin(struct variant_builder *builder);
void variant_null(struct variant_builder *builder);
void variant_boolean(struct variant_builder *builder, bool value);
/* In as few bytes as hold it. */
void variant_integer(struct variant_builder *builder, i64 value);
/* unscaled x 10^-scale, up to 38 digits, scale 0..38. */
void variant_decimal(struct variant_builder *builder, i128 unscaled, i32 scale);
void variant_double(struct variant_builder *builder, double value);
void variant_string(struct variant_builder *builder, str text);
void variant_array(struct variant_builder *builder);
/* An object's names are all different. */
void variant_object(struct variant_builder *builder);
/* Comes before each value in an object. */
void variant_name(struct variant_builder *builder, str name);
/* Ends the array or object begun last. */
void variant_end(struct variant_builder *builder);
/* False: out of memory, or past VARIANT_BYTES_MAX. */
MUST_USE bool variant_finish(struct variant_builder *builder, str *out_metadata, str *out_value);

/* Appends the value as JSON text. `metadata` and `value` are any bytes: CORRUPT when they are no
 * variant, or hold a value that JSON has no form for (dates, binaries, NaN, …: no builder of ours
 * writes them). LIMIT: out is full. Scratch comes from the arena. */
MUST_USE err variant_print(struct arena *arena, str metadata, str value, buf *out,
                           struct error *error);

#endif
