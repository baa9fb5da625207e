/* room: scratch memory that is taken again for every column chunk. Private to parquet.
 *
 * It only grows, doubling. What was in it is lost by room_take. Owned by a writer. */
#ifndef LHBOX_FORMAT_PARQUET_ROOM_H
#define LHBOX_FORMAT_PARQUET_ROOM_H

#include "base/arena.h"

struct room {
    void *data;
    size_t capacity;
};

/* At least count * size bytes, not zeroed; NULL at the arena's limit. */
static inline void *room_take(struct room *room, struct arena *arena, i64 count, size_t size)
{
    size_t needed = 0;
    if (count < 0 || !num_mul_size((size_t)count, size, &needed)) {
        return NULL;
    }
    if (room->data != NULL && needed <= room->capacity) {
        return room->data;
    }
    size_t doubled = room->capacity * 2;
    size_t capacity = needed > doubled ? needed : doubled;
    void *data = arena_regrow(arena, room->data, room->capacity, capacity);
    if (data == NULL) {
        return NULL;
    }
    room->data = data;
    room->capacity = capacity;
    return data;
}

#endif
