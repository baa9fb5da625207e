/* metadata_cache: the versions of tables that were read or written last, by their files.
 *
 * A metadata file is written once and never changed, so its URI says what stands in it, and a
 * document that is in the cache needs neither be fetched nor parsed again. What is handed out is
 * shared: nobody changes a document that was loaded, a commit changes a copy. Large documents are
 * not kept, so that the cache has a bound: in memory a document takes some times its text. With one
 * that we wrote its text is kept too. A version takes the place of the one that it follows, which
 * nobody asks for any more; else the oldest entry makes room. Any thread. */
#ifndef LHBOX_TABLE_METADATA_CACHE_H
#define LHBOX_TABLE_METADATA_CACHE_H

#include "table/metadata_text.h"

#include <pthread.h>

enum {
    METADATA_CACHE_FILES = 16,
    METADATA_CACHE_URI_MAX = 512,
    METADATA_CACHE_BYTES_MAX = 1024 * 1024, /* of the text of a document that is kept */
};

struct metadata_cache {
    pthread_mutex_t lock;
    struct metadata_cached {
        struct metadata *metadata;  /* NULL: free */
        struct metadata_text *text; /* of the document; NULL: it was read */
        size_t uri_size;
        char uri[METADATA_CACHE_URI_MAX];
    } files[METADATA_CACHE_FILES];
    size_t next; /* the entry that makes room */
};

void metadata_cache_open(struct metadata_cache *cache);
void metadata_cache_close(struct metadata_cache *cache);
/* A reference of the caller's own; NULL: not in the cache. */
struct metadata *metadata_cache_find(struct metadata_cache *cache, str uri);
/* Takes a reference of its own, in place of what it had under this URI, unless the document or the
 * URI is too large to be kept. `bytes`: of the document's text. */
void metadata_cache_put(struct metadata_cache *cache, str uri, const struct metadata *metadata,
                        size_t bytes);
/* The same, of a document that was written as this text and follows what stands in `from`. */
void metadata_cache_put_text(struct metadata_cache *cache, str uri, str from,
                             struct metadata_text *text);
/* A reference of the caller's own; NULL: not in the cache. */
struct metadata_text *metadata_cache_find_text(struct metadata_cache *cache, str uri);

#endif
