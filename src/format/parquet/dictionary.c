#include "format/parquet/dictionary.h"

#include "base/assert.h"
#include "format/parquet/hybrid.h"

enum {
    DICTIONARY_TABLE_MIN = 1024, /* power of two */
    DICTIONARY_PROBES_MAX = 16,  /* on average: only values made to collide need more */
    DICTIONARY_PROBES_FREE = 65536,
    DICTIONARY_AHEAD = 32, /* values hashed, and their places fetched, before they are looked up */
};

/* The fill loop is made three times, for 4, 8 and any other number of bytes. */
#define DICTIONARY_INLINE inline __attribute__((always_inline))

struct dictionary_fill {
    const struct values *values;
    struct arena *arena;
    struct dictionary_rooms *rooms;
    u32 *first;
    u8 *entries;
    u32 *places; /* byte arrays: where each entry's bytes begin */
    u64 *table;  /* the hash's upper half, and below it the entry + 1; 0: none */
    int side;    /* which of its two rooms the table is in */
    u32 *indices;
    u64 mask;
    u32 count;
    u32 count_max;
    i64 bytes;
    i64 bytes_max;
    u64 probes;
    bool given_up;
};

/* ---- values ---- */

static DICTIONARY_INLINE u64 hash_mix(u64 hash)
{
    hash *= 0x9e3779b97f4a7c15U;
    return hash ^ hash >> 32;
}

/* All of fewer than eight bytes in one number. */
static DICTIONARY_INLINE u64 load_short(const u8 *bytes, size_t size)
{
    if (size >= sizeof(u32)) {
        return (u64)num_load_u32(bytes) << 32 | num_load_u32(bytes + size - sizeof(u32));
    }
    return size == 0 ? 0 : (u64)bytes[0] << 16 | (u64)bytes[size / 2] << 8 | bytes[size - 1];
}

static DICTIONARY_INLINE u64 hash_bytes(const u8 *bytes, size_t size)
{
    u64 hash = hash_mix(size + 1);
    if (size < sizeof(u64)) {
        return hash_mix(hash_mix(hash ^ load_short(bytes, size)));
    }
    for (size_t at = 0; at + sizeof(u64) < size; at += sizeof(u64)) {
        hash = hash_mix(hash ^ num_load_u64(bytes + at));
    }
    return hash_mix(hash_mix(hash ^ num_load_u64(bytes + size - sizeof(u64))));
}

static DICTIONARY_INLINE bool bytes_equal(const u8 *a, const u8 *b, size_t size)
{
    if (size < sizeof(u64)) {
        return load_short(a, size) == load_short(b, size);
    }
    for (size_t at = 0; at + sizeof(u64) < size; at += sizeof(u64)) {
        if (num_load_u64(a + at) != num_load_u64(b + at)) {
            return false;
        }
    }
    return num_load_u64(a + size - sizeof(u64)) == num_load_u64(b + size - sizeof(u64));
}

/* `width`: of the values as a constant, 0 for any other. */
static DICTIONARY_INLINE u64 value_hash(const struct values *values, size_t width, i64 index)
{
    if (width == sizeof(u32)) {
        return hash_mix(hash_mix(num_load_u32(values->data + index * 4)));
    }
    if (width == sizeof(u64)) {
        return hash_mix(hash_mix(num_load_u64(values->data + index * 8)));
    }
    str value = values_at(values, index);
    return hash_bytes((const u8 *)value.data, value.size);
}

u64 dictionary_hash(const struct values *values, i64 index)
{
    return value_hash(values, values->width, index);
}

static DICTIONARY_INLINE bool entry_is(const struct values *values, const u8 *entries,
                                       const u32 *places, size_t width, u32 entry, i64 index)
{
    if (width == sizeof(u32)) {
        return num_load_u32(entries + (size_t)entry * 4) == num_load_u32(values->data + index * 4);
    }
    if (width == sizeof(u64)) {
        return num_load_u64(entries + (size_t)entry * 8) == num_load_u64(values->data + index * 8);
    }
    str value = values_at(values, index);
    if (values->width > 0) {
        return bytes_equal(entries + entry * values->width, (const u8 *)value.data, value.size);
    }
    const u8 *bytes = entries + places[entry];
    return num_load_u32(bytes) == value.size &&
           bytes_equal(bytes + PLAIN_LENGTH_SIZE, (const u8 *)value.data, value.size);
}

/* ---- the table ---- */

static void table_put(struct dictionary_fill *fill, u64 tagged)
{
    u64 place = (tagged >> 32) & fill->mask;
    while (fill->table[place] != 0) {
        place = (place + 1) & fill->mask;
    }
    fill->table[place] = tagged;
}

/* A table of `size` places with the entries so far in it, in the room that the old one is not. */
MUST_USE static bool table_make(struct dictionary_fill *fill, u64 size)
{
    const u64 *old = fill->table;
    u64 old_size = old == NULL ? 0 : fill->mask + 1;
    fill->side = 1 - fill->side;
    struct room *room = &fill->rooms->table[fill->side];
    u64 *table = room_take(room, fill->arena, (i64)size, sizeof(u64));
    if (table == NULL) {
        return false;
    }
    memset(table, 0, size * sizeof(u64));
    fill->table = table;
    fill->mask = size - 1;
    for (u64 i = 0; i < old_size; i++) {
        if (old[i] != 0) {
            table_put(fill, old[i]);
        }
    }
    return true;
}

/* A new entry. Gives up past the limits; false at the arena's limit. */
MUST_USE static bool entry_add(struct dictionary_fill *fill, u64 tag, u64 place, i64 index)
{
    i64 bytes = values_plain_bytes(fill->values, index, index + 1);
    if (fill->bytes + bytes > fill->bytes_max || fill->count == fill->count_max) {
        fill->given_up = true;
        return true;
    }
    str value = values_at(fill->values, index);
    u8 *at = fill->entries + fill->bytes;
    if (fill->values->width == 0) {
        fill->places[fill->count] = (u32)fill->bytes;
        num_store_u32(at, (u32)value.size);
        at += PLAIN_LENGTH_SIZE;
    }
    if (value.size > 0) {
        memcpy(at, value.data, value.size);
    }
    fill->bytes += bytes;
    fill->first[fill->count] = (u32)index;
    fill->indices[index] = fill->count;
    fill->count++;
    fill->table[place] = tag << 32 | fill->count;
    return (u64)fill->count * 2 <= fill->mask || table_make(fill, (fill->mask + 1) * 2);
}

/* ---- filling it ---- */

/* Values from `from` on that have an entry, up to the first that has none, whose place goes to
 * *out_place. What the loop needs is in local variables: its stores might change the fill. */
static DICTIONARY_INLINE i64 find_known(struct dictionary_fill *fill, size_t width,
                                        const u64 *hashes, i64 from, i64 to, u64 *out_place)
{
    const struct values values = *fill->values;
    const u64 *table = fill->table;
    const u8 *entries = fill->entries;
    const u32 *places = fill->places;
    u32 *indices = fill->indices;
    u64 mask = fill->mask;
    i64 index = from;
    for (; index < to; index++) {
        u64 tag = hashes[index - from] >> 32;
        u64 place = tag & mask;
        while (table[place] != 0 &&
               (table[place] >> 32 != tag ||
                !entry_is(&values, entries, places, width, (u32)table[place] - 1, index))) {
            place = (place + 1) & mask;
            fill->probes++;
        }
        if (table[place] == 0) {
            *out_place = place;
            break;
        }
        indices[index] = (u32)table[place] - 1;
    }
    return index;
}

static DICTIONARY_INLINE bool fill_all(struct dictionary_fill *fill, size_t width)
{
    u64 hashes[DICTIONARY_AHEAD];
    i64 count = fill->values->count;
    for (i64 from = 0; from < count && !fill->given_up; from += DICTIONARY_AHEAD) {
        i64 to = num_min_i64(from + DICTIONARY_AHEAD, count);
        for (i64 i = from; i < to; i++) {
            u64 hash = value_hash(fill->values, width, i);
            hashes[i - from] = hash;
            __builtin_prefetch(&fill->table[(hash >> 32) & fill->mask]);
        }
        for (i64 at = from; at < to && !fill->given_up; at++) {
            u64 place = 0;
            at = find_known(fill, width, hashes + (at - from), at, to, &place);
            if (at < to && !entry_add(fill, hashes[at - from] >> 32, place, at)) {
                return false;
            }
        }
        if (fill->probes > DICTIONARY_PROBES_MAX * (u64)to + DICTIONARY_PROBES_FREE) {
            fill->given_up = true;
        }
    }
    return true;
}

MUST_USE static bool fill_any(struct dictionary_fill *fill)
{
    switch (fill->values->width) {
    case sizeof(u32):
        return fill_all(fill, sizeof(u32));
    case sizeof(u64):
        return fill_all(fill, sizeof(u64));
    default:
        return fill_all(fill, 0);
    }
}

MUST_USE static bool fill_prepare(struct dictionary_fill *fill)
{
    const struct values *values = fill->values;
    struct dictionary_rooms *rooms = fill->rooms;
    i64 entry_bytes = values->width > 0 ? (i64)values->width : PLAIN_LENGTH_SIZE;
    fill->bytes_max = num_min_i64(fill->bytes_max, values_plain_bytes(values, 0, values->count));
    fill->count_max = (u32)num_min_i64(values->count, fill->bytes_max / entry_bytes);
    fill->first = room_take(&rooms->first, fill->arena, fill->count_max, sizeof(u32));
    fill->entries = room_take(&rooms->entries, fill->arena, fill->bytes_max, 1);
    fill->places = room_take(&rooms->places, fill->arena, fill->count_max, sizeof(u32));
    fill->indices = room_take(&rooms->indices, fill->arena, values->count, sizeof(u32));
    return fill->first != NULL && fill->entries != NULL && fill->places != NULL &&
           fill->indices != NULL && table_make(fill, DICTIONARY_TABLE_MIN);
}

i32 dictionary_width(i64 count)
{
    /* Readers have had trouble with indices of no bits, so a single entry takes one. */
    return count > 1 ? hybrid_width((u32)(count - 1)) : 1;
}

bool dictionary_build(const struct values *values, i64 bytes_max, struct arena *arena,
                      struct dictionary_rooms *rooms, struct dictionary *out_dictionary,
                      bool *out_made)
{
    assert(values->count > 0);
    assert(values->count < INT32_MAX);
    struct dictionary_fill fill = {
        .values = values,
        .arena = arena,
        .rooms = rooms,
        .bytes_max = num_min_i64(bytes_max, INT32_MAX),
    };
    if (!fill_prepare(&fill) || !fill_any(&fill)) {
        return false;
    }
    *out_made = !fill.given_up;
    *out_dictionary = (struct dictionary){
        .count = fill.count,
        .first = fill.first,
        .indices = fill.indices,
        .entries = {(const char *)fill.entries, (size_t)fill.bytes},
        .width = dictionary_width(fill.count),
    };
    return true;
}

void dictionary_put_indices(buf *out, const struct dictionary *dictionary, i64 from, i64 to)
{
    buf_append_byte(out, (u8)dictionary->width);
    hybrid_put_u32(out, dictionary->indices + from, to - from, dictionary->width);
}
