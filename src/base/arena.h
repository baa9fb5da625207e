/* arena: memory of one lifetime (request, batch, roll, process), freed at once.
 *
 * Chunks come from malloc; the sum of all chunks stays under the limit given at creation, and
 * an allocation past it answers NULL, which callers report as LIMIT. malloc itself failing
 * aborts. An arena belongs to one thread at a time; giving it away is passing the pointer.
 * In sanitizer builds freed and unused bytes are poisoned. */
#ifndef LHBOX_BASE_ARENA_H
#define LHBOX_BASE_ARENA_H

#include "base/num.h"

struct arena;

/* A place to go back to with arena_reset_to. */
struct arena_mark {
    void *chunk;
    size_t used;
    u64 blocks;
};

struct arena *arena_create(size_t bytes_max);
void arena_destroy(struct arena *arena); /* NULL is allowed */
/* 16-byte aligned, zeroed; NULL when the limit is reached. size 0 gives a valid pointer. */
void *arena_alloc(struct arena *arena, size_t size);
/* count * size, checked; NULL on overflow or at the limit. */
void *arena_array(struct arena *arena, size_t count, size_t size);
/* Grows the most recent allocation in place where possible, else allocates and copies. The new
 * bytes are not zeroed. NULL at the limit (the old allocation is still there). */
void *arena_grow(struct arena *arena, void *old, size_t old_size, size_t new_size);
/* The same for an array that may become large and whose old place nobody looks at any more: past
 * ARENA_BLOCK_BYTES it is a block of its own, and what it leaves behind is given back at once. All
 * growths of an array, the first one too, are by this function or none. */
enum { ARENA_BLOCK_BYTES = 32 * KIB };
void *arena_regrow(struct arena *arena, void *old, size_t old_size, size_t new_size);
/* Frees everything allocated since creation or since the mark; chunks are kept for reuse. */
void arena_reset(struct arena *arena);
struct arena_mark arena_mark(const struct arena *arena);
void arena_reset_to(struct arena *arena, struct arena_mark mark);
size_t arena_bytes(const struct arena *arena); /* of all chunks */
/* Whether an allocation met the limit since creation or the last arena_reset. A reader of bytes
 * that may be damaged asks it before it calls them so. */
bool arena_refused(const struct arena *arena);

/* For the whole process, before its threads: large chunks go back to the system when freed. */
void arena_return_blocks(void);
/* For the whole process: up to so many bytes of large chunks and blocks that arenas gave back are
 * kept for whichever needs some next, instead. At first none is. */
void arena_keep(size_t bytes_max);
/* What was kept before the last call and not needed since goes back to the system. */
void arena_trim(void);
size_t arena_kept(void); /* bytes */

/* For tests: the n-th growth from now (1 = the next) fails as if at the limit; 0 turns it off.
 * Counts over all arenas of the thread. */
void arena_fail_growth_at(i64 n);
/* The same, and until it is turned off by arena_fail_growth_at a chunk holds one allocation, so
 * that each is a growth, but for those in chunks that were there before. */
void arena_fail_allocation_at(i64 n);
/* Growths of this thread since the last arena_fail_growth_at. */
i64 arena_growths(void);

/* Clean-up attribute for a local `struct arena *`. */
void arena_destroy_at(struct arena **arena);
#define AUTO_ARENA __attribute__((cleanup(arena_destroy_at)))

#endif
