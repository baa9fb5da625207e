#include "base/arena.h"

#include "base/arena_pages.h"
#include "base/assert.h"

#include <malloc.h>
#include <stdlib.h>

#ifdef ARENA_POISONS
/* A poisoned gap after each allocation catches an overrun into the next one. */
enum { ARENA_GAP = 16 };
#else
enum { ARENA_GAP = 0 };
#endif

enum { ARENA_ALIGN = 16, ARENA_CHUNK_MIN = 4 * KIB, ARENA_CHUNK_MAX = 1 * MIB };
enum { TOP_RETURNED_BYTES = 1 * MIB };

/* The payload follows the head. `size` is the payload's. */
struct chunk {
    struct chunk *next;
    size_t size;
    struct pages pages; /* where it is */
};

_Static_assert(sizeof(struct chunk) % ARENA_ALIGN == 0, "the payload must be aligned");

/* An array of its own (arena_regrow); the bytes follow the head. */
struct block {
    struct block *next; /* made before this one */
    struct block *previous;
    size_t size; /* head included */
    u64 number;
    struct pages pages; /* where it is */
};

_Static_assert(sizeof(struct block) % ARENA_ALIGN == 0, "the bytes must be aligned");

/* The chunks from `first` up to `current` are in use, those after `current` are free. */
struct arena {
    struct chunk *first;
    struct chunk *current; /* NULL: nothing is in use */
    size_t used;           /* of current's payload */
    size_t bytes;          /* of all chunks and blocks, heads included */
    size_t bytes_max;
    size_t chunk_size; /* of the next ordinary chunk, head included */
    struct block *blocks;
    u64 block_count; /* made since creation */
    bool refused;    /* an allocation, since the last reset */
};

static _Thread_local i64 growth_count;
static _Thread_local i64 growth_fails_at;
static _Thread_local bool growth_is_each; /* allocation */

static char *chunk_payload(struct chunk *chunk)
{
    return (char *)(chunk + 1);
}

/* The first free chunk hangs here. */
static struct chunk **arena_free_list(struct arena *arena)
{
    return arena->current != NULL ? &arena->current->next : &arena->first;
}

static void arena_drop_free(struct arena *arena)
{
    struct chunk **list = arena_free_list(arena);
    struct chunk *chunk = *list;
    *list = NULL;
    while (chunk != NULL) {
        struct chunk *next = chunk->next;
        arena->bytes -= sizeof(struct chunk) + chunk->size;
        UNPOISON(chunk_payload(chunk), chunk->size);
        pages_give(chunk->pages);
        chunk = next;
    }
}

struct arena *arena_create(size_t bytes_max)
{
    struct arena *arena = calloc(1, sizeof(*arena));
    assert(arena != NULL);
    arena->bytes_max = bytes_max;
    arena->chunk_size = ARENA_CHUNK_MIN;
    return arena;
}

void arena_destroy(struct arena *arena)
{
    if (arena == NULL) {
        return;
    }
    arena_reset(arena);
    arena_drop_free(arena);
    assert(arena->bytes == 0);
    free(arena);
}

void arena_destroy_at(struct arena **arena)
{
    arena_destroy(*arena);
    *arena = NULL;
}

/* Bodies and rolls need much memory for a short time. Left alone, glibc learns to keep blocks of
 * that size for the next time, in each thread anew. */
void arena_return_blocks(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, PAGES_BYTES_MIN);
    (void)mallopt(M_TRIM_THRESHOLD, TOP_RETURNED_BYTES);
}

void arena_keep(size_t bytes_max)
{
    pages_keep(bytes_max);
}

void arena_trim(void)
{
    pages_trim();
}

size_t arena_kept(void)
{
    return pages_kept();
}

void arena_fail_growth_at(i64 n)
{
    assert(n >= 0);
    growth_fails_at = n;
    growth_is_each = false;
    growth_count = 0;
}

void arena_fail_allocation_at(i64 n)
{
    arena_fail_growth_at(n);
    growth_is_each = true;
}

i64 arena_growths(void)
{
    return growth_count;
}

/* What an allocation of `size` bytes takes of a chunk; false on overflow. */
static bool arena_footprint(size_t size, size_t *out_footprint)
{
    size_t padded = 0;
    if (!num_add_size(size > 0 ? size : 1, ARENA_ALIGN - 1, &padded)) {
        return false;
    }
    return num_add_size(padded / ARENA_ALIGN * ARENA_ALIGN, ARENA_GAP, out_footprint);
}

/* Whether the limit, and a test, let `size` more bytes come from the system. */
static bool arena_may_take(struct arena *arena, size_t size)
{
    growth_count++;
    if (growth_count == growth_fails_at) {
        return false;
    }
    if (arena->bytes > arena->bytes_max || size > arena->bytes_max - arena->bytes) {
        /* Chunks kept for reuse must not make the limit nearer than it is. */
        arena_drop_free(arena);
    }
    return size <= arena->bytes_max - arena->bytes;
}

/* Puts a new chunk with room for `need` at the head of the free list. */
static bool arena_add_chunk(struct arena *arena, size_t need)
{
    size_t least = 0;
    if (!num_add_size(need, sizeof(struct chunk), &least) || !arena_may_take(arena, least)) {
        return false;
    }
    size_t left = arena->bytes_max - arena->bytes;
    size_t total = least > arena->chunk_size || growth_is_each ? least : arena->chunk_size;
    total = total < left ? total : left;

    struct chunk **list = arena_free_list(arena);
    struct pages pages = pages_take(total);
    struct chunk *chunk = pages.bytes;
    *chunk = (struct chunk){.next = *list, .size = total - sizeof(struct chunk), .pages = pages};
    *list = chunk;
    arena->bytes += total;
    if (arena->chunk_size < ARENA_CHUNK_MAX) {
        arena->chunk_size *= 2;
    }
    POISON(chunk_payload(chunk), chunk->size);
    return true;
}

/* Makes a chunk with room for `need` the current one. */
static bool arena_advance(struct arena *arena, size_t need)
{
    struct chunk **list = arena_free_list(arena);
    struct chunk **at = list;
    while (*at != NULL && (*at)->size < need) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        struct chunk *found = *at;
        *at = found->next;
        found->next = *list;
        *list = found;
    } else if (!arena_add_chunk(arena, need)) {
        return false;
    }
    arena->current = *list;
    arena->used = 0;
    return true;
}

static void *arena_take(struct arena *arena, size_t size)
{
    size_t footprint = 0;
    bool fits = arena_footprint(size, &footprint);
    if (fits && (arena->current == NULL || arena->current->size - arena->used < footprint)) {
        fits = arena_advance(arena, footprint);
    }
    if (!fits) {
        arena->refused = true;
        return NULL;
    }
    char *bytes = chunk_payload(arena->current) + arena->used;
    arena->used += footprint;
    assert(arena->used <= arena->current->size);
    UNPOISON(bytes, size);
    return bytes;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    void *bytes = arena_take(arena, size);
    if (bytes != NULL) {
        memset(bytes, 0, size);
    }
    return bytes;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    size_t total = 0;
    if (!num_mul_size(count, size, &total)) {
        return NULL;
    }
    return arena_alloc(arena, total);
}

/* Resizes where it stands; false when it is not the most recent one, or has no room there. */
static bool arena_grow_in_place(struct arena *arena, void *old, size_t old_size, size_t new_size)
{
    size_t old_footprint = 0;
    size_t new_footprint = 0;
    if (arena->current == NULL || !arena_footprint(old_size, &old_footprint) ||
        !arena_footprint(new_size, &new_footprint) || old_footprint > arena->used) {
        return false;
    }
    char *payload = chunk_payload(arena->current);
    size_t start = arena->used - old_footprint;
    if (payload + start != (char *)old || arena->current->size - start < new_footprint) {
        return false;
    }
    arena->used = start + new_footprint;
    POISON(payload + start, arena->current->size - start);
    UNPOISON(payload + start, new_size);
    return true;
}

void *arena_grow(struct arena *arena, void *old, size_t old_size, size_t new_size)
{
    assert(old != NULL || old_size == 0);
    if (old != NULL && arena_grow_in_place(arena, old, old_size, new_size)) {
        return old;
    }
    if (old != NULL && new_size <= old_size) {
        return old;
    }
    void *bytes = arena_take(arena, new_size);
    if (bytes != NULL && old_size > 0) {
        memcpy(bytes, old, old_size);
    }
    return bytes;
}

/* ---- blocks ---- */

/* Its neighbours and the arena, after it moved. */
static void block_link(struct arena *arena, struct block *block)
{
    if (block->next != NULL) {
        block->next->previous = block;
    }
    if (block->previous != NULL) {
        block->previous->next = block;
    } else {
        arena->blocks = block;
    }
}

static void *block_make(struct arena *arena, size_t size)
{
    struct pages pages = pages_take(size);
    struct block *block = pages.bytes;
    *block = (struct block){
        .next = arena->blocks, .size = size, .number = arena->block_count++, .pages = pages};
    block_link(arena, block);
    arena->bytes += size;
    return block + 1;
}

static void *block_resize(struct arena *arena, struct block *block, size_t size)
{
    struct pages pages = pages_grow(block->pages, block->size, size);
    struct block *moved = pages.bytes;
    arena->bytes += size - moved->size;
    moved->size = size;
    moved->pages = pages;
    block_link(arena, moved);
    return moved + 1;
}

/* Those made since there were so many. */
static void blocks_free(struct arena *arena, u64 count)
{
    while (arena->blocks != NULL && arena->blocks->number >= count) {
        struct block *block = arena->blocks;
        arena->blocks = block->next;
        if (block->next != NULL) {
            block->next->previous = NULL;
        }
        arena->bytes -= block->size;
        pages_give(block->pages);
    }
}

void *arena_regrow(struct arena *arena, void *old, size_t old_size, size_t new_size)
{
    assert(new_size >= old_size);
    if (new_size <= ARENA_BLOCK_BYTES) {
        return arena_grow(arena, old, old_size, new_size);
    }
    struct block *block = old_size > ARENA_BLOCK_BYTES ? (struct block *)old - 1 : NULL;
    size_t size = 0;
    bool fits = num_add_size(new_size, sizeof(struct block), &size) &&
                arena_may_take(arena, block != NULL ? size - block->size : size);
    if (!fits) {
        arena->refused = true;
        return NULL;
    }
    if (block != NULL) {
        return block_resize(arena, block, size);
    }
    void *bytes = block_make(arena, size);
    if (old_size > 0) {
        memcpy(bytes, old, old_size);
    }
    return bytes;
}

/* ---- going back ---- */

struct arena_mark arena_mark(const struct arena *arena)
{
    return (struct arena_mark){
        .chunk = arena->current, .used = arena->used, .blocks = arena->block_count};
}

void arena_reset_to(struct arena *arena, struct arena_mark mark)
{
    blocks_free(arena, mark.blocks);
    arena->current = mark.chunk;
    arena->used = mark.used;
    if (arena->current != NULL) {
        assert(arena->used <= arena->current->size);
        POISON(chunk_payload(arena->current) + arena->used, arena->current->size - arena->used);
    }
#ifdef ARENA_POISONS
    for (struct chunk *chunk = *arena_free_list(arena); chunk != NULL; chunk = chunk->next) {
        POISON(chunk_payload(chunk), chunk->size);
    }
#endif
}

void arena_reset(struct arena *arena)
{
    arena_reset_to(arena, (struct arena_mark){.chunk = NULL});
    arena->refused = false;
}

bool arena_refused(const struct arena *arena)
{
    return arena->refused;
}

size_t arena_bytes(const struct arena *arena)
{
    return arena->bytes;
}
