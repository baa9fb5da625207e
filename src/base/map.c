#include "base/map.h"

#include "base/assert.h"

enum { MAP_SLOTS_MIN = 8 };

struct map_slot {
    u64 hash; /* 0: empty */
    str key;
    u64 value;
};

/* At most three quarters of the slots are taken; their number is a power of two. */
struct map {
    struct arena *arena;
    struct map_slot *slots;
    size_t slot_count;
    size_t count;
};

static struct map_slot *map_slots_create(struct arena *arena, size_t slot_count)
{
    return arena_array(arena, slot_count, sizeof(struct map_slot));
}

struct map *map_create(struct arena *arena, size_t expected)
{
    size_t slot_count = MAP_SLOTS_MIN;
    while (slot_count / 4 * 3 < expected) {
        if (!num_mul_size(slot_count, 2, &slot_count)) {
            return NULL;
        }
    }
    struct map *map = arena_alloc(arena, sizeof(*map));
    if (map == NULL) {
        return NULL;
    }
    map->arena = arena;
    map->slot_count = slot_count;
    map->slots = map_slots_create(arena, slot_count);
    return map->slots != NULL ? map : NULL;
}

static u64 map_hash(str key)
{
    u64 hash = str_hash(key);
    return hash != 0 ? hash : 1;
}

/* The slot that holds the key, or the empty one where it belongs. */
static struct map_slot *map_find(const struct map *map, str key, u64 hash)
{
    size_t mask = map->slot_count - 1;
    size_t at = (size_t)hash & mask;
    while (map->slots[at].hash != 0) {
        if (map->slots[at].hash == hash && str_equal(map->slots[at].key, key)) {
            break;
        }
        at = (at + 1) & mask;
    }
    return &map->slots[at];
}

static bool map_double(struct map *map)
{
    struct map wider = *map;
    if (!num_mul_size(map->slot_count, 2, &wider.slot_count)) {
        return false;
    }
    wider.slots = map_slots_create(map->arena, wider.slot_count);
    if (wider.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->slot_count; i++) {
        const struct map_slot *slot = &map->slots[i];
        if (slot->hash != 0) {
            *map_find(&wider, slot->key, slot->hash) = *slot;
        }
    }
    *map = wider;
    return true;
}

u64 *map_put(struct map *map, str key, bool *out_new)
{
    u64 hash = map_hash(key);
    struct map_slot *slot = map_find(map, key, hash);
    if (slot->hash != 0) {
        *out_new = false;
        return &slot->value;
    }
    if (map->count >= map->slot_count / 4 * 3) {
        if (!map_double(map)) {
            return NULL;
        }
        slot = map_find(map, key, hash);
    }
    assert(slot->hash == 0);
    slot->hash = hash;
    slot->key = key;
    map->count++;
    *out_new = true;
    return &slot->value;
}

u64 *map_get(const struct map *map, str key)
{
    struct map_slot *slot = map_find(map, key, map_hash(key));
    return slot->hash != 0 ? &slot->value : NULL;
}

size_t map_count(const struct map *map)
{
    return map->count;
}
