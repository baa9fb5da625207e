/* arena_pages: the large pieces of memory that arenas are made of. For base/arena alone.
 *
 * A page that the system gives must be cleared and mapped first, which costs a roll as much as
 * decoding its rows does. So what is given back is kept for whoever takes next, up to a bound, and
 * goes to the system when nobody took it for a while (arena_trim). Nothing is kept until the bound
 * is set, and no small piece ever is.
 *
 * Any thread; one lock, held for a look at a short list. */
#ifndef LHBOX_BASE_ARENA_PAGES_H
#define LHBOX_BASE_ARENA_PAGES_H

#include "base/num.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISONS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ARENA_POISONS 1
#endif

#ifdef ARENA_POISONS
#include <sanitizer/asan_interface.h>
#define POISON(bytes, size)   __asan_poison_memory_region((bytes), (size))
#define UNPOISON(bytes, size) __asan_unpoison_memory_region((bytes), (size))
#else
#define POISON(bytes, size)   ((void)0)
#define UNPOISON(bytes, size) ((void)0)
#endif

/* Pieces of this size and more come from the system and are kept. */
enum { PAGES_BYTES_MIN = 512 * KIB };

struct pages {
    void *bytes;
    size_t size; /* at least what was asked for */
};

/* Not zeroed. */
struct pages pages_take(size_t size);
/* `used` bytes of the old ones stand at the front of the new ones. */
struct pages pages_grow(struct pages old, size_t used, size_t size);
void pages_give(struct pages pages);

void pages_keep(size_t bytes_max);
void pages_trim(void);
size_t pages_kept(void);

#endif
