#include "table/metadata_cache.h"

#include "base/assert.h"

static void mutex_do(int (*call)(pthread_mutex_t *), pthread_mutex_t *mutex)
{
    int result = call(mutex);
    assert(result == 0);
}

void metadata_cache_open(struct metadata_cache *cache)
{
    *cache = (struct metadata_cache){.next = 0};
    int result = pthread_mutex_init(&cache->lock, NULL);
    assert(result == 0);
}

void metadata_cache_close(struct metadata_cache *cache)
{
    for (size_t i = 0; i < METADATA_CACHE_FILES; i++) {
        metadata_close(cache->files[i].metadata);
        metadata_text_close(cache->files[i].text);
    }
    mutex_do(pthread_mutex_destroy, &cache->lock);
}

/* NULL: none has it. Under the lock. */
static struct metadata_cached *entry_of(struct metadata_cache *cache, str uri)
{
    for (size_t i = 0; i < METADATA_CACHE_FILES; i++) {
        struct metadata_cached *entry = &cache->files[i];
        if (entry->metadata != NULL && str_equal((str){entry->uri, entry->uri_size}, uri)) {
            return entry;
        }
    }
    return NULL;
}

struct metadata *metadata_cache_find(struct metadata_cache *cache, str uri)
{
    mutex_do(pthread_mutex_lock, &cache->lock);
    const struct metadata_cached *entry = entry_of(cache, uri);
    struct metadata *found = entry == NULL ? NULL : metadata_share(entry->metadata);
    mutex_do(pthread_mutex_unlock, &cache->lock);
    return found;
}

struct metadata_text *metadata_cache_find_text(struct metadata_cache *cache, str uri)
{
    mutex_do(pthread_mutex_lock, &cache->lock);
    const struct metadata_cached *entry = entry_of(cache, uri);
    struct metadata_text *found = entry == NULL ? NULL : metadata_text_share(entry->text);
    mutex_do(pthread_mutex_unlock, &cache->lock);
    return found;
}

/* Where the document goes; NULL: nowhere. Under the lock. */
static struct metadata_cached *place_of(struct metadata_cache *cache, str uri, str from, bool keeps)
{
    struct metadata_cached *entry = entry_of(cache, uri);
    entry = entry == NULL ? entry_of(cache, from) : entry;
    if (entry == NULL && keeps) {
        entry = &cache->files[cache->next];
        cache->next = (cache->next + 1) % METADATA_CACHE_FILES;
    }
    return entry;
}

static void put(struct metadata_cache *cache, str uri, str from, const struct metadata *metadata,
                struct metadata_text *text, size_t bytes)
{
    bool keeps = uri.size <= METADATA_CACHE_URI_MAX && bytes <= METADATA_CACHE_BYTES_MAX;
    struct metadata *before = NULL;
    struct metadata_text *text_before = NULL;
    mutex_do(pthread_mutex_lock, &cache->lock);
    struct metadata_cached *entry = place_of(cache, uri, from, keeps);
    if (entry != NULL) {
        before = entry->metadata;
        text_before = entry->text;
        entry->metadata = keeps ? metadata_share(metadata) : NULL;
        entry->text = keeps ? metadata_text_share(text) : NULL;
        entry->uri_size = keeps ? uri.size : 0;
        memcpy(entry->uri, uri.data, entry->uri_size);
    }
    mutex_do(pthread_mutex_unlock, &cache->lock);
    metadata_close(before); /* the last reference may take a while */
    metadata_text_close(text_before);
}

void metadata_cache_put(struct metadata_cache *cache, str uri, const struct metadata *metadata,
                        size_t bytes)
{
    put(cache, uri, uri, metadata, NULL, bytes);
}

void metadata_cache_put_text(struct metadata_cache *cache, str uri, str from,
                             struct metadata_text *text)
{
    put(cache, uri, from, metadata_text_document(text), text, metadata_text_bytes(text).size);
}
