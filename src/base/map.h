/* map: byte-string keys to pointers or numbers, in an arena, open addressing.
 *
 * Keys are not copied and must outlive the map. Seeded hash. One thread at a time. */
#ifndef LHBOX_BASE_MAP_H
#define LHBOX_BASE_MAP_H

#include "base/arena.h"
#include "base/str.h"

struct map;

/* NULL when the arena's limit is reached. */
struct map *map_create(struct arena *arena, size_t expected);
/* The value's place, made (zero) when new; NULL at the arena's limit. */
u64 *map_put(struct map *map, str key, bool *out_new);
/* The value's place, or NULL when the key is not there. */
u64 *map_get(const struct map *map, str key);
size_t map_count(const struct map *map);

#endif
