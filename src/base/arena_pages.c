#include "base/arena_pages.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdlib.h>

enum { KEPT_MAX = 256 };

struct kept {
    struct pages pages;
    u64 round; /* of trims, when it was given back */
};

/* The lock guards all of it. The oldest come first. */
static struct {
    pthread_mutex_t lock;
    size_t bytes_max;
    size_t bytes;
    u64 round;
    size_t count;
    struct kept kept[KEPT_MAX];
} keep = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep_lock(void)
{
    int failed = pthread_mutex_lock(&keep.lock);
    assert(failed == 0);
}

static void keep_unlock(void)
{
    int failed = pthread_mutex_unlock(&keep.lock);
    assert(failed == 0);
}

static struct pages keep_take_out(size_t index)
{
    struct pages pages = keep.kept[index].pages;
    keep.bytes -= pages.size;
    keep.count--;
    memmove(&keep.kept[index], &keep.kept[index + 1], (keep.count - index) * sizeof(struct kept));
    return pages;
}

/* The smallest that is large enough, and not more than twice of it. Bytes NULL: none. */
static struct pages keep_find(size_t size)
{
    struct pages found = {NULL, size > SIZE_MAX / 2 ? SIZE_MAX : 2 * size};
    keep_lock();
    size_t at = keep.count;
    for (size_t i = keep.count; i-- > 0;) {
        size_t there = keep.kept[i].pages.size;
        if (there >= size && there < found.size) {
            found.size = there;
            at = i;
        }
    }
    if (at < keep.count) {
        found = keep_take_out(at);
    }
    keep_unlock();
    if (found.bytes != NULL) {
        UNPOISON(found.bytes, found.size);
    }
    return found;
}

/* Takes out the oldest until the rest fits and was given back in this round of trims or later. */
static size_t keep_make_room(size_t bytes_max, size_t count_max, u64 round,
                             struct pages out_left[static KEPT_MAX])
{
    size_t left = 0;
    while (keep.count > 0 &&
           (keep.bytes > bytes_max || keep.count > count_max || keep.kept[0].round < round)) {
        out_left[left++] = keep_take_out(0);
    }
    return left;
}

/* Outside of the lock: it takes the system a while. */
static void free_all(const struct pages *pages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        UNPOISON(pages[i].bytes, pages[i].size);
        free(pages[i].bytes);
    }
}

struct pages pages_take(size_t size)
{
    struct pages pages = size >= PAGES_BYTES_MIN ? keep_find(size) : (struct pages){0};
    if (pages.bytes == NULL) {
        pages = (struct pages){malloc(size), size};
    }
    assert(pages.bytes != NULL);
    return pages;
}

struct pages pages_grow(struct pages old, size_t used, size_t size)
{
    assert(used <= old.size);
    if (size <= old.size) {
        return old;
    }
    struct pages pages = size >= PAGES_BYTES_MIN ? keep_find(size) : (struct pages){0};
    if (pages.bytes != NULL) {
        memcpy(pages.bytes, old.bytes, used);
        pages_give(old);
        return pages;
    }
    pages = (struct pages){realloc(old.bytes, size), size};
    assert(pages.bytes != NULL);
    return pages;
}

void pages_give(struct pages pages)
{
    struct pages left[KEPT_MAX];
    size_t left_count = 0;
    if (pages.size < PAGES_BYTES_MIN) {
        free(pages.bytes);
        return;
    }
    keep_lock();
    bool kept = pages.size <= keep.bytes_max;
    if (kept) {
        left_count = keep_make_room(keep.bytes_max - pages.size, KEPT_MAX - 1, 0, left);
        POISON(pages.bytes, pages.size);
        keep.kept[keep.count++] = (struct kept){pages, keep.round};
        keep.bytes += pages.size;
    }
    keep_unlock();
    free_all(left, left_count);
    if (!kept) {
        free(pages.bytes);
    }
}

void pages_keep(size_t bytes_max)
{
    struct pages left[KEPT_MAX];
    keep_lock();
    keep.bytes_max = bytes_max;
    size_t left_count = keep_make_room(bytes_max, KEPT_MAX, 0, left);
    keep_unlock();
    free_all(left, left_count);
}

void pages_trim(void)
{
    struct pages left[KEPT_MAX];
    keep_lock();
    size_t left_count = keep_make_room(SIZE_MAX, KEPT_MAX, keep.round, left);
    keep.round++;
    keep_unlock();
    free_all(left, left_count);
}

size_t pages_kept(void)
{
    keep_lock();
    size_t bytes = keep.bytes;
    keep_unlock();
    return bytes;
}
