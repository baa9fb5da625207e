#include "io/store.h"

#include "base/assert.h"
#include "base/seam.h"

#include <pthread.h>

/* Each object has an arena of its own, so that a removed one gives its memory back. */
struct mem_object {
    struct arena *arena;
    struct store_object object;
};

struct store_mem {
    pthread_mutex_t lock;
    struct arena *index_arena;
    struct mem_object *objects; /* sorted by key */
    size_t count;
    size_t capacity;
    size_t bytes;
    size_t bytes_max;
    i64 puts;
};

/* Where the key is, or where it belongs. */
static size_t mem_place(const struct store_mem *mem, str key, bool *out_there)
{
    size_t low = 0;
    size_t high = mem->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_compare(mem->objects[middle].object.key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *out_there = low < mem->count && str_equal(mem->objects[low].object.key, key);
    return low;
}

MUST_USE static err meta_copy(struct arena *arena, const struct store_meta *meta,
                              struct store_meta *out_copy, struct error *error)
{
    struct store_meta copy = *meta;
    copy.durability = STORE_DURABLE; /* of a put alone */
    copy.replaces = (str){NULL, 0};
    copy.content_type = str_copy(arena, meta->content_type);
    bool fits = copy.content_type.data != NULL;
    for (size_t i = 0; i < meta->count; i++) {
        copy.entries[i].name = str_copy(arena, meta->entries[i].name);
        copy.entries[i].value = str_copy(arena, meta->entries[i].value);
        fits = fits && copy.entries[i].name.data != NULL && copy.entries[i].value.data != NULL;
    }
    if (!fits) {
        return error_memory(error);
    }
    *out_copy = copy;
    return OK;
}

MUST_USE static err object_fill(struct mem_object *made, str key, const str *pieces,
                                size_t piece_count, size_t size, const struct store_meta *meta,
                                struct error *error)
{
    char *body = arena_alloc(made->arena, size + 1);
    made->object.key = str_copy(made->arena, key);
    if (body == NULL || made->object.key.data == NULL) {
        return error_memory(error);
    }
    size_t at = 0;
    for (size_t i = 0; i < piece_count; i++) {
        if (pieces[i].size > 0) {
            memcpy(body + at, pieces[i].data, pieces[i].size);
            at += pieces[i].size;
        }
    }
    made->object.size = (i64)size;
    made->object.body = (str){body, size};
    made->object.modified_at = seam_now(seam_system());
    return meta == NULL ? OK : meta_copy(made->arena, meta, &made->object.meta, error);
}

MUST_USE static err mem_make_room(struct store_mem *mem, struct error *error)
{
    if (mem->count < mem->capacity) {
        return OK;
    }
    size_t capacity = mem->capacity == 0 ? 64 : mem->capacity * 2;
    struct mem_object *objects = arena_array(mem->index_arena, capacity, sizeof(*objects));
    if (objects == NULL) {
        return error_memory(error);
    }
    if (mem->count > 0) {
        memcpy(objects, mem->objects, mem->count * sizeof(*objects));
    }
    mem->objects = objects;
    mem->capacity = capacity;
    return OK;
}

MUST_USE static err mem_insert(struct store_mem *mem, struct mem_object *made, str replaces,
                               struct error *error)
{
    bool there = false;
    size_t at = mem_place(mem, made->object.key, &there);
    size_t before = there ? (size_t)mem->objects[at].object.size : 0;
    str version = there ? mem->objects[at].object.version : STR("");
    if (replaces.data != NULL && !str_equal(replaces, version)) {
        return error_set(error, CONFLICT, ERROR_UNAVAILABLE, "%.*s was replaced meanwhile",
                         STR_ARG(made->object.key));
    }
    made->object.version = str_format(made->arena, "%lld", (long long)++mem->puts);
    if (made->object.version.data == NULL) {
        return error_memory(error);
    }
    if (mem->bytes - before + (size_t)made->object.size > mem->bytes_max) {
        return error_set(error, IO, ERROR_DISK_LOW, "the store in memory is full");
    }
    if (there) {
        arena_destroy(mem->objects[at].arena);
    } else {
        TRY(mem_make_room(mem, error));
        memmove(mem->objects + at + 1, mem->objects + at,
                (mem->count - at) * sizeof(*mem->objects));
        mem->count++;
    }
    mem->bytes += (size_t)made->object.size - before;
    mem->objects[at] = *made;
    return OK;
}

MUST_USE static err mem_put(void *self, str key, const str *pieces, size_t piece_count,
                            const struct store_meta *meta, struct error *error)
{
    struct store_mem *mem = self;
    size_t size = 0;
    for (size_t i = 0; i < piece_count; i++) {
        if (!num_add_size(size, pieces[i].size, &size)) {
            return error_memory(error);
        }
    }
    if (size > mem->bytes_max) {
        return error_set(error, IO, ERROR_DISK_LOW, "the store in memory is full");
    }
    struct mem_object made = {.arena = arena_create(size + (size_t)64 * KIB)};
    err result = made.arena == NULL
                     ? error_memory(error)
                     : object_fill(&made, key, pieces, piece_count, size, meta, error);
    if (result == OK) {
        (void)pthread_mutex_lock(&mem->lock);
        result = mem_insert(mem, &made, meta != NULL ? meta->replaces : (str){NULL, 0}, error);
        (void)pthread_mutex_unlock(&mem->lock);
    }
    if (result != OK) {
        arena_destroy(made.arena);
    }
    return result;
}

enum want { WANT_HEAD, WANT_BODY };

/* With the lock held: what is given out is a copy. */
MUST_USE static err object_copy(const struct store_mem *mem, struct arena *arena, str key,
                                enum want want, struct store_object *out_object,
                                struct error *error)
{
    bool there = false;
    size_t at = mem_place(mem, key, &there);
    if (!there) {
        return error_set(error, NOT_FOUND, ERROR_NOT_FOUND, "there is no object %.*s",
                         STR_ARG(key));
    }
    struct store_object copy = mem->objects[at].object;
    copy.key = str_copy(arena, key);
    copy.version = str_copy(arena, copy.version);
    copy.body = want == WANT_BODY ? str_copy(arena, copy.body) : (str){NULL, 0};
    if (copy.key.data == NULL || copy.version.data == NULL ||
        (want == WANT_BODY && copy.body.data == NULL)) {
        return error_memory(error);
    }
    if (copy.meta.content_type.data != NULL) {
        TRY(meta_copy(arena, &mem->objects[at].object.meta, &copy.meta, error));
    }
    *out_object = copy;
    return OK;
}

MUST_USE static err mem_read(struct store_mem *mem, struct arena *arena, str key, enum want want,
                             struct store_object *out_object, struct error *error)
{
    (void)pthread_mutex_lock(&mem->lock);
    err result = object_copy(mem, arena, key, want, out_object, error);
    (void)pthread_mutex_unlock(&mem->lock);
    return result;
}

MUST_USE static err mem_get(void *self, struct arena *arena, str key,
                            struct store_object *out_object, struct error *error)
{
    return mem_read(self, arena, key, WANT_BODY, out_object, error);
}

MUST_USE static err mem_head(void *self, struct arena *arena, str key,
                             struct store_object *out_object, struct error *error)
{
    return mem_read(self, arena, key, WANT_HEAD, out_object, error);
}

MUST_USE static err mem_remove(void *self, str key, struct error *error)
{
    (void)error;
    struct store_mem *mem = self;
    bool there = false;
    (void)pthread_mutex_lock(&mem->lock);
    size_t at = mem_place(mem, key, &there);
    if (there) {
        mem->bytes -= (size_t)mem->objects[at].object.size;
        arena_destroy(mem->objects[at].arena);
        memmove(mem->objects + at, mem->objects + at + 1,
                (mem->count - at - 1) * sizeof(*mem->objects));
        mem->count--;
    }
    (void)pthread_mutex_unlock(&mem->lock);
    return OK;
}

MUST_USE static err list_locked(const struct store_mem *mem, struct arena *arena, str prefix,
                                str after, size_t limit, struct store_list *out_list,
                                struct error *error)
{
    bool there = false;
    str start = str_compare(prefix, after) > 0 ? prefix : after;
    size_t first = mem_place(mem, start, &there);
    if (there && str_equal(start, after)) {
        first++;
    }
    size_t end = first;
    while (end < mem->count && str_starts(mem->objects[end].object.key, prefix)) {
        end++;
    }
    size_t count = end - first < limit ? end - first : limit;
    struct store_list list = {.count = count, .more = end - first > limit};
    list.objects = arena_array(arena, count, sizeof(*list.objects));
    bool fits = list.objects != NULL;
    for (size_t i = 0; i < count && fits; i++) {
        const struct store_object *object = &mem->objects[first + i].object;
        list.objects[i] = (struct store_object){.key = str_copy(arena, object->key),
                                                .size = object->size,
                                                .modified_at = object->modified_at};
        fits = list.objects[i].key.data != NULL;
    }
    if (!fits) {
        return error_memory(error);
    }
    *out_list = list;
    return OK;
}

MUST_USE static err mem_list(void *self, struct arena *arena, str prefix, str after, size_t limit,
                             struct store_list *out_list, struct error *error)
{
    struct store_mem *mem = self;
    (void)pthread_mutex_lock(&mem->lock);
    err result = list_locked(mem, arena, prefix, after, limit, out_list, error);
    (void)pthread_mutex_unlock(&mem->lock);
    return result;
}

static void mem_close(void *self)
{
    struct store_mem *mem = self;
    for (size_t i = 0; i < mem->count; i++) {
        arena_destroy(mem->objects[i].arena);
    }
    arena_destroy(mem->index_arena);
    (void)pthread_mutex_destroy(&mem->lock);
}

static const struct store_ops mem_ops = {
    .put = mem_put,
    .get = mem_get,
    .head = mem_head,
    .remove = mem_remove,
    .list = mem_list,
    .close = mem_close,
};

err store_open_mem(struct arena *arena, size_t bytes_max, struct store *out_store,
                   struct error *error)
{
    struct store_mem *mem = arena_alloc(arena, sizeof(*mem));
    if (mem == NULL) {
        return error_memory(error);
    }
    mem->bytes_max = bytes_max;
    mem->index_arena = arena_create((size_t)64 * MIB);
    if (mem->index_arena == NULL) {
        return error_memory(error);
    }
    int made = pthread_mutex_init(&mem->lock, NULL);
    assert(made == 0);
    *out_store = (struct store){.ops = &mem_ops, .self = mem, .puts_in_flight_max = 1};
    return OK;
}
