#include "format/parquet/encode.h"

#include "base/assert.h"

enum { PLAIN_COPY_BYTES = 16 };

/* ---- physical values ---- */

/* The decimals that are there, in the physical form of their precision. */
MUST_USE static bool values_build_decimal(const struct leaf *leaf, const struct column *column,
                                          struct arena *arena, struct value_rooms *rooms,
                                          struct values *values)
{
    size_t width = leaf->width;
    u8 *out = room_take(&rooms->data, arena, values->count, width);
    if (out == NULL) {
        return false;
    }
    values->data = out;
    for (i64 i = 0; i < column->count; i++) {
        if (column->valid[i] == 0) {
            continue;
        }
        u8 bytes[sizeof(i128)];
        memcpy(bytes, column->data + i * (i64)sizeof(i128), sizeof(bytes));
        if (leaf->physical != LEAF_FIXED) {
            memcpy(out, bytes, width);
        } else {
            for (size_t b = 0; b < width; b++) {
                out[b] = bytes[width - 1 - b];
            }
        }
        out += width;
    }
    return true;
}

/* Nulls take no bytes in a byte array, so that leaving their offsets out is enough. */
MUST_USE static bool values_build_bytes(const struct column *column, struct arena *arena,
                                        struct value_rooms *rooms, struct values *values)
{
    values->data = column->data;
    values->offsets = column->offsets;
    if (column->null_count == 0 && column->offsets != NULL) {
        return true;
    }
    i64 *offsets = room_take(&rooms->offsets, arena, values->count + 1, sizeof(i64));
    if (offsets == NULL) {
        return false;
    }
    i64 at = 0;
    for (i64 i = 0; i < column->count; i++) {
        offsets[at] = column->offsets[i];
        at += column->valid[i] != 0;
    }
    offsets[values->count] = column->data_size;
    values->offsets = offsets;
    return true;
}

MUST_USE static bool values_build_fixed(const struct column *column, struct arena *arena,
                                        struct value_rooms *rooms, struct values *values)
{
    values->data = column->data;
    if (column->null_count == 0) {
        return true;
    }
    size_t width = values->width;
    u8 *out = room_take(&rooms->data, arena, values->count, width);
    if (out == NULL) {
        return false;
    }
    values->data = out;
    const u8 *from = column->data;
    for (i64 i = 0; i < column->count; i++, from += width) {
        if (column->valid[i] != 0) {
            memcpy(out, from, width);
            out += width;
        }
    }
    return true;
}

bool values_build(const struct leaf *leaf, const struct column *column, struct arena *arena,
                  struct value_rooms *rooms, struct values *out_values)
{
    struct values values = {
        .count = column->count - column->null_count,
        .physical = leaf->physical,
        .width = leaf->width,
    };
    bool built = false;
    if (leaf->field->type.kind == TYPE_DECIMAL) {
        built = values_build_decimal(leaf, column, arena, rooms, &values);
    } else if (leaf->physical == LEAF_BYTE_ARRAY) {
        built = values_build_bytes(column, arena, rooms, &values);
    } else {
        built = values_build_fixed(column, arena, rooms, &values);
    }
    if (built) {
        *out_values = values;
    }
    return built;
}

/* ---- PLAIN ---- */

i64 values_plain_bytes(const struct values *values, i64 from, i64 to)
{
    assert(from <= to);
    if (values->physical == LEAF_BOOLEAN) {
        return (to - from + 7) / 8;
    }
    if (values->width > 0) {
        return (to - from) * (i64)values->width;
    }
    return values->offsets[to] - values->offsets[from] + (to - from) * PLAIN_LENGTH_SIZE;
}

/* Short values are copied as one block of a constant size where the source has so many bytes; what
 * is too much is written over by the next one, or is behind what counts. */
static void put_byte_arrays(char *at, const struct values *values, i64 from, i64 to)
{
    const u8 *end = values->data + values->offsets[values->count];
    for (i64 i = from; i < to; i++) {
        const u8 *bytes = values->data + values->offsets[i];
        size_t size = (size_t)(values->offsets[i + 1] - values->offsets[i]);
        num_store_u32(at, (u32)size);
        at += PLAIN_LENGTH_SIZE;
        if (size <= PLAIN_COPY_BYTES && end - bytes >= PLAIN_COPY_BYTES) {
            memcpy(at, bytes, PLAIN_COPY_BYTES);
        } else if (size > 0) {
            memcpy(at, bytes, size);
        }
        at += size;
    }
}

static void put_booleans(u8 *at, const u8 *values, i64 count)
{
    for (i64 i = 0; i < count; i += 8) {
        u32 bits = 0;
        i64 left = num_min_i64(count - i, 8);
        for (i64 b = 0; b < left; b++) {
            bits |= (u32)(values[i + b] != 0) << b;
        }
        *at++ = (u8)bits;
    }
}

void values_put_plain(buf *out, const struct values *values, i64 from, i64 to)
{
    size_t bytes = (size_t)values_plain_bytes(values, from, to);
    char *at = bytes > 0 ? buf_reserve(out, bytes + PLAIN_COPY_BYTES) : NULL;
    if (at == NULL) {
        return;
    }
    if (values->physical == LEAF_BOOLEAN) {
        put_booleans((u8 *)at, values->data + from, to - from);
    } else if (values->width > 0) {
        memcpy(at, values->data + (size_t)from * values->width, bytes);
    } else {
        put_byte_arrays(at, values, from, to);
    }
    buf_commit(out, bytes);
}
