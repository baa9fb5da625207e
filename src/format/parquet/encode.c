#include "format/parquet/encode.h"

#include "base/assert.h"
#include "format/parquet/hybrid.h"

enum { PLAIN_LENGTH_SIZE = 4 };

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

static char *put_length_and_bytes(char *at, str value)
{
    num_store_u32(at, (u32)value.size);
    at += PLAIN_LENGTH_SIZE;
    if (value.size > 0) {
        memcpy(at, value.data, value.size);
    }
    return at + value.size;
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
    char *at = bytes > 0 ? buf_reserve(out, bytes) : NULL;
    if (at == NULL) {
        return;
    }
    if (values->physical == LEAF_BOOLEAN) {
        put_booleans((u8 *)at, values->data + from, to - from);
    } else if (values->width > 0) {
        memcpy(at, values->data + (size_t)from * values->width, bytes);
    } else {
        for (i64 i = from; i < to; i++) {
            at = put_length_and_bytes(at, values_at(values, i));
        }
    }
    buf_commit(out, bytes);
}

/* ---- dictionary ---- */

enum {
    DICTIONARY_SAMPLE = 4096,   /* values after which it must have paid */
    DICTIONARY_TABLE_MIN = 512, /* power of two */
    DICTIONARY_PROBES_MAX = 16, /* on average: only values made to collide need more */
};

/* The fill loop is made three times, for 4, 8 and any other number of bytes. */
#define DICTIONARY_INLINE inline __attribute__((always_inline))

struct dictionary_fill {
    const struct values *values;
    struct arena *arena;
    struct dictionary_rooms *rooms;
    u32 *first;
    u64 *hashes; /* of the entries */
    u32 *table;  /* entry + 1, or 0 */
    u32 *indices;
    u64 mask;
    u32 count;
    u32 count_max;
    i64 bytes;
    i64 bytes_max;
    u64 probes;
    bool given_up;
};

static DICTIONARY_INLINE u64 hash_mix(u64 hash)
{
    hash *= 0x9e3779b97f4a7c15U;
    return hash ^ hash >> 32;
}

static u64 hash_bytes(str value)
{
    u64 hash = hash_mix(value.size + 1);
    size_t at = 0;
    for (; value.size - at >= sizeof(u64); at += sizeof(u64)) {
        hash = hash_mix(hash ^ num_load_u64(value.data + at));
    }
    if (at < value.size) {
        u64 tail = 0;
        memcpy(&tail, value.data + at, value.size - at);
        hash = hash_mix(hash ^ tail);
    }
    return hash_mix(hash);
}

static DICTIONARY_INLINE u64 value_hash(const struct values *values, size_t width, i64 index)
{
    if (width == sizeof(u32)) {
        return hash_mix(num_load_u32(values->data + index * 4));
    }
    if (width == sizeof(u64)) {
        return hash_mix(hash_mix(num_load_u64(values->data + index * 8)));
    }
    return hash_bytes(values_at(values, index));
}

static DICTIONARY_INLINE bool value_equal(const struct values *values, size_t width, i64 a, i64 b)
{
    if (width == sizeof(u32)) {
        return num_load_u32(values->data + a * 4) == num_load_u32(values->data + b * 4);
    }
    if (width == sizeof(u64)) {
        return num_load_u64(values->data + a * 8) == num_load_u64(values->data + b * 8);
    }
    return str_equal(values_at(values, a), values_at(values, b));
}

/* A table of `size` places, with the entries so far in it. */
MUST_USE static bool dictionary_table(struct dictionary_fill *fill, u64 size)
{
    fill->table = room_take(&fill->rooms->table, fill->arena, (i64)size, sizeof(u32));
    if (fill->table == NULL) {
        return false;
    }
    memset(fill->table, 0, size * sizeof(u32));
    fill->mask = size - 1;
    for (u32 entry = 0; entry < fill->count; entry++) {
        u64 place = fill->hashes[entry] & fill->mask;
        while (fill->table[place] != 0) {
            place = (place + 1) & fill->mask;
        }
        fill->table[place] = entry + 1;
    }
    return true;
}

/* A new entry. Gives up where the dictionary does not pay; false at the arena's limit. */
MUST_USE static bool dictionary_add(struct dictionary_fill *fill, u64 hash, u64 place, i64 index)
{
    fill->bytes += values_plain_bytes(fill->values, index, index + 1);
    if (fill->bytes > fill->bytes_max || fill->count == fill->count_max) {
        fill->given_up = true;
        return true;
    }
    fill->first[fill->count] = (u32)index;
    fill->hashes[fill->count] = hash;
    fill->count++;
    fill->table[place] = fill->count;
    fill->indices[index] = fill->count - 1;
    return (u64)fill->count * 2 <= fill->mask || dictionary_table(fill, (fill->mask + 1) * 2);
}

/* The entry of value `index`, found or made. */
static DICTIONARY_INLINE bool dictionary_take(struct dictionary_fill *fill, size_t width, i64 index)
{
    u64 hash = value_hash(fill->values, width, index);
    for (u64 place = hash & fill->mask;; place = (place + 1) & fill->mask) {
        u32 found = fill->table[place];
        if (found == 0) {
            return dictionary_add(fill, hash, place, index);
        }
        if (fill->hashes[found - 1] == hash &&
            value_equal(fill->values, width, fill->first[found - 1], index)) {
            fill->indices[index] = found - 1;
            return true;
        }
        fill->probes++;
    }
}

static DICTIONARY_INLINE bool dictionary_fill_all(struct dictionary_fill *fill, size_t width)
{
    for (i64 i = 0; i < fill->values->count && !fill->given_up; i++) {
        if (!dictionary_take(fill, width, i)) {
            return false;
        }
        bool sampled = i + 1 == DICTIONARY_SAMPLE;
        if (sampled && fill->count > DICTIONARY_SAMPLE / 4 * 3) {
            fill->given_up = true;
        }
        if (fill->probes > DICTIONARY_PROBES_MAX * ((u64)i + DICTIONARY_SAMPLE)) {
            fill->given_up = true;
        }
    }
    return true;
}

MUST_USE static bool dictionary_fill_any(struct dictionary_fill *fill)
{
    switch (fill->values->width) {
    case sizeof(u32):
        return dictionary_fill_all(fill, sizeof(u32));
    case sizeof(u64):
        return dictionary_fill_all(fill, sizeof(u64));
    default:
        return dictionary_fill_all(fill, 0);
    }
}

MUST_USE static bool dictionary_prepare(struct dictionary_fill *fill)
{
    const struct values *values = fill->values;
    i64 entry_bytes = values->width > 0 ? (i64)values->width : PLAIN_LENGTH_SIZE;
    fill->count_max = (u32)num_min_i64(values->count, fill->bytes_max / entry_bytes);
    fill->first = room_take(&fill->rooms->first, fill->arena, fill->count_max, sizeof(u32));
    fill->hashes = room_take(&fill->rooms->hashes, fill->arena, fill->count_max, sizeof(u64));
    fill->indices = room_take(&fill->rooms->indices, fill->arena, values->count, sizeof(u32));
    return fill->first != NULL && fill->hashes != NULL && fill->indices != NULL &&
           dictionary_table(fill, DICTIONARY_TABLE_MIN);
}

bool dictionary_build(const struct values *values, i64 bytes_max, struct arena *arena,
                      struct dictionary_rooms *rooms, struct dictionary *out_dictionary,
                      bool *out_used)
{
    *out_used = false;
    if (values->count == 0 || values->count >= INT32_MAX || values->physical == LEAF_BOOLEAN ||
        bytes_max <= 0) {
        return true;
    }
    struct dictionary_fill fill = {
        .values = values,
        .arena = arena,
        .rooms = rooms,
        .bytes_max = num_min_i64(bytes_max, INT32_MAX),
    };
    if (!dictionary_prepare(&fill) || !dictionary_fill_any(&fill)) {
        return false;
    }
    if (fill.given_up) {
        return true;
    }
    /* Readers have had trouble with indices of no bits, so a single entry takes one. */
    i32 width = fill.count > 1 ? hybrid_width(fill.count - 1) : 1;
    i64 indices_bytes = values->count * width / 8;
    if (fill.bytes + indices_bytes >= values_plain_bytes(values, 0, values->count)) {
        return true;
    }
    *out_dictionary = (struct dictionary){
        .count = fill.count,
        .first = fill.first,
        .indices = fill.indices,
        .bytes = fill.bytes,
        .width = width,
    };
    *out_used = true;
    return true;
}

void dictionary_put_entries(buf *out, const struct values *values,
                            const struct dictionary *dictionary)
{
    char *at = buf_reserve(out, (size_t)dictionary->bytes);
    if (at == NULL) {
        return;
    }
    for (u32 entry = 0; entry < dictionary->count; entry++) {
        str value = values_at(values, dictionary->first[entry]);
        if (values->width == 0) {
            at = put_length_and_bytes(at, value);
        } else {
            memcpy(at, value.data, value.size);
            at += value.size;
        }
    }
    buf_commit(out, (size_t)dictionary->bytes);
}

void dictionary_put_indices(buf *out, const struct dictionary *dictionary, i64 from, i64 to)
{
    buf_append_byte(out, (u8)dictionary->width);
    hybrid_put_u32(out, dictionary->indices + from, to - from, dictionary->width);
}
