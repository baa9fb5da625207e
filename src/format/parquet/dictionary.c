#include "format/parquet/dictionary.h"

#include "base/assert.h"
#include "format/parquet/hybrid.h"

enum {
    DICTIONARY_TAG_BITS = 32,   /* the upper half of a hash */
    DICTIONARY_TABLE_BITS = 10, /* at least: 2^10 places */
    TABLE_SPARSE = 4,           /* places for each entry, at least */
    DICTIONARY_PROBES_MAX = 16, /* on average: only values made to collide need more */
    DICTIONARY_PROBES_FREE = 65536,
    DICTIONARY_AHEAD = 32, /* values hashed, and their places fetched, before they are looked up */
};

#define HASH_SEED   0xa0761d6478bd642fU
#define HASH_FACTOR 0x9e3779b97f4a7c15U

/* The fill loop is made three times, for 4, 8 and any other number of bytes. */
#define DICTIONARY_INLINE inline __attribute__((always_inline))

struct dictionary_fill {
    const struct values *values;
    const u8 *values_end;
    struct arena *arena;
    struct dictionary_rooms *rooms;
    u32 *first;
    u8 *entries;
    const u8 *entries_end; /* of their room */
    u32 *places;           /* byte arrays: where each entry's bytes begin */
    u64 *table;            /* the tag, and below it the entry + 1; 0: none */
    i32 bits;              /* of a place in the table: the tag's first */
    int side;              /* which of its two rooms the table is in */
    u32 *indices;
    u32 count;
    u32 count_max;
    i64 bytes;
    i64 bytes_max;
    u64 probes;
    bool given_up;
};

/* ---- values ---- */

static DICTIONARY_INLINE u64 hash_mix(u64 a, u64 b)
{
    u128 product = (u128)a * b;
    return (u64)product ^ (u64)(product >> 64);
}

/* Up to eight bytes, zeros behind them. Eight are read where there are so many before `end`. */
static DICTIONARY_INLINE u64 load_some(const u8 *bytes, size_t size, const u8 *end)
{
    if (end - bytes >= (i64)sizeof(u64)) {
        return size == 0 ? 0 : num_load_u64(bytes) & UINT64_MAX >> (64 - 8 * size);
    }
    u64 loaded = 0;
    for (size_t i = 0; i < size; i++) {
        loaded |= (u64)bytes[i] << (8 * i);
    }
    return loaded;
}

/* The first and last eight bytes: all of a value of up to sixteen. Without branches on the size,
 * which nothing foresees where it varies. */
struct ends {
    u64 first;
    u64 last;
};

static DICTIONARY_INLINE struct ends load_ends(const u8 *bytes, size_t size, const u8 *end)
{
    size_t some = size < sizeof(u64) ? size : sizeof(u64);
    return (struct ends){load_some(bytes, some, end), load_some(bytes + size - some, some, end)};
}

static DICTIONARY_INLINE u64 hash_bytes(const u8 *bytes, size_t size, const u8 *end)
{
    struct ends ends = load_ends(bytes, size, end);
    u64 hash = HASH_SEED ^ size;
    for (size_t at = sizeof(u64); at + sizeof(u64) < size; at += 2 * sizeof(u64)) {
        size_t second = at + 2 * sizeof(u64) < size ? at + sizeof(u64) : size - sizeof(u64);
        hash = hash_mix(hash ^ num_load_u64(bytes + at),
                        HASH_FACTOR ^ num_load_u64(bytes + second));
    }
    return hash_mix(hash ^ ends.first, HASH_FACTOR ^ ends.last);
}

static DICTIONARY_INLINE bool bytes_equal(const u8 *a, const u8 *a_end, const u8 *b,
                                          const u8 *b_end, size_t size)
{
    struct ends a_ends = load_ends(a, size, a_end);
    struct ends b_ends = load_ends(b, size, b_end);
    u64 differing = (a_ends.first ^ b_ends.first) | (a_ends.last ^ b_ends.last);
    for (size_t at = sizeof(u64); at + sizeof(u64) < size; at += sizeof(u64)) {
        differing |= num_load_u64(a + at) ^ num_load_u64(b + at);
    }
    return differing == 0;
}

static const u8 *values_end(const struct values *values)
{
    i64 bytes = values->width > 0 ? values->count * (i64)values->width
                                  : values->offsets[values->count];
    return bytes > 0 ? values->data + bytes : values->data;
}

/* `width`: of the values as a constant, 0 for any other. The upper bits of a hash depend on all of
 * a value's. */
static DICTIONARY_INLINE u64 value_hash(const struct values *values, const u8 *end, size_t width,
                                        i64 index)
{
    if (width == sizeof(u32)) {
        return num_load_u32(values->data + index * 4) * HASH_FACTOR;
    }
    if (width == sizeof(u64)) {
        return num_load_u64(values->data + index * 8) * HASH_FACTOR;
    }
    str value = values_at(values, index);
    return hash_bytes((const u8 *)value.data, value.size, end);
}

u64 dictionary_hash(const struct values *values, i64 index)
{
    return value_hash(values, values_end(values), values->width, index);
}

static DICTIONARY_INLINE bool entry_is(const struct dictionary_fill *fill,
                                       const struct values *values, size_t width, u32 entry,
                                       i64 index)
{
    const u8 *entries = fill->entries;
    if (width == sizeof(u32)) {
        return num_load_u32(entries + (size_t)entry * 4) == num_load_u32(values->data + index * 4);
    }
    if (width == sizeof(u64)) {
        return num_load_u64(entries + (size_t)entry * 8) == num_load_u64(values->data + index * 8);
    }
    str value = values_at(values, index);
    const u8 *bytes = (const u8 *)value.data;
    if (values->width > 0) {
        return bytes_equal(entries + entry * values->width, fill->entries_end, bytes,
                           fill->values_end, value.size);
    }
    entries += fill->places[entry];
    return num_load_u32(entries) == value.size &&
           bytes_equal(entries + PLAIN_LENGTH_SIZE, fill->entries_end, bytes, fill->values_end,
                       value.size);
}

/* ---- the table ---- */

static DICTIONARY_INLINE u64 tag_place(u64 tag, i32 bits)
{
    return tag >> (DICTIONARY_TAG_BITS - bits);
}

static void table_put(struct dictionary_fill *fill, u64 tagged)
{
    u64 mask = ((u64)1 << fill->bits) - 1;
    u64 place = tag_place(tagged >> DICTIONARY_TAG_BITS, fill->bits);
    while (fill->table[place] != 0) {
        place = (place + 1) & mask;
    }
    fill->table[place] = tagged;
}

/* A table of 2^bits places with the entries so far in it, in the room that the old one is not. */
MUST_USE static bool table_make(struct dictionary_fill *fill, i32 bits)
{
    assert(bits <= DICTIONARY_TAG_BITS);
    const u64 *old = fill->table;
    u64 old_size = old == NULL ? 0 : (u64)1 << fill->bits;
    fill->side = 1 - fill->side;
    struct room *room = &fill->rooms->table[fill->side];
    u64 *table = room_take(room, fill->arena, (i64)1 << bits, sizeof(u64));
    if (table == NULL) {
        return false;
    }
    memset(table, 0, sizeof(u64) << bits);
    fill->table = table;
    fill->bits = bits;
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
    fill->table[place] = tag << DICTIONARY_TAG_BITS | fill->count;
    return (u64)fill->count * TABLE_SPARSE < (u64)1 << fill->bits ||
           table_make(fill, fill->bits + 1);
}

/* ---- filling it ---- */

/* Values from `from` on that have an entry, up to the first that has none, whose place goes to
 * *out_place. What the loop needs is in local variables: its stores might change the fill. */
static DICTIONARY_INLINE i64 find_known(struct dictionary_fill *fill, size_t width,
                                        const u64 *hashes, i64 from, i64 to, u64 *out_place)
{
    const struct dictionary_fill known = *fill;
    const struct values values = *fill->values;
    u64 mask = ((u64)1 << known.bits) - 1;
    u64 probes = 0;
    i64 index = from;
    for (; index < to; index++) {
        u64 tag = hashes[index - from] >> DICTIONARY_TAG_BITS;
        u64 place = tag_place(tag, known.bits);
        u64 found = known.table[place];
        while (found != 0 && (found >> DICTIONARY_TAG_BITS != tag ||
                              !entry_is(&known, &values, width, (u32)found - 1, index))) {
            place = (place + 1) & mask;
            found = known.table[place];
            probes++;
        }
        if (found == 0) {
            *out_place = place;
            break;
        }
        known.indices[index] = (u32)found - 1;
    }
    fill->probes += probes;
    return index;
}

static DICTIONARY_INLINE bool fill_all(struct dictionary_fill *fill, size_t width)
{
    u64 hashes[DICTIONARY_AHEAD];
    const struct values values = *fill->values;
    for (i64 from = 0; from < values.count && !fill->given_up; from += DICTIONARY_AHEAD) {
        i64 to = num_min_i64(from + DICTIONARY_AHEAD, values.count);
        for (i64 i = from; i < to; i++) {
            u64 hash = value_hash(&values, fill->values_end, width, i);
            hashes[i - from] = hash;
            __builtin_prefetch(&fill->table[tag_place(hash >> DICTIONARY_TAG_BITS, fill->bits)]);
        }
        for (i64 at = from; at < to && !fill->given_up; at++) {
            u64 place = 0;
            at = find_known(fill, width, hashes + (at - from), at, to, &place);
            if (at < to && !entry_add(fill, hashes[at - from] >> DICTIONARY_TAG_BITS, place, at)) {
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

/* Bits of a table for so many entries. In a fuller one more of the looks go on past the first
 * place, which the processor does not foresee. */
static i32 table_bits(i64 entries)
{
    i32 bits = DICTIONARY_TABLE_BITS;
    while (bits < DICTIONARY_TAG_BITS && (i64)1 << bits <= TABLE_SPARSE * entries) {
        bits++;
    }
    return bits;
}

MUST_USE static bool fill_prepare(struct dictionary_fill *fill, i64 entries_likely)
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
    if (fill->first == NULL || fill->entries == NULL || fill->places == NULL ||
        fill->indices == NULL) {
        return false;
    }
    fill->entries_end = fill->entries + fill->bytes_max;
    return table_make(fill, table_bits(num_min_i64(entries_likely, fill->count_max)));
}

i32 dictionary_width(i64 count)
{
    /* Readers have had trouble with indices of no bits, so a single entry takes one. */
    return count > 1 ? hybrid_width((u32)(count - 1)) : 1;
}

bool dictionary_build(const struct values *values, i64 entries_likely, i64 bytes_max,
                      struct arena *arena, struct dictionary_rooms *rooms,
                      struct dictionary *out_dictionary, bool *out_made)
{
    assert(values->count > 0);
    assert(values->count < INT32_MAX);
    struct dictionary_fill fill = {
        .values = values,
        .values_end = values_end(values),
        .arena = arena,
        .rooms = rooms,
        .bytes_max = num_min_i64(bytes_max, INT32_MAX),
    };
    if (!fill_prepare(&fill, entries_likely) || !fill_any(&fill)) {
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
