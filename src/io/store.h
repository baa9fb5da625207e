/* store: durable objects under keys, behind a seam (local directory, S3, memory).
 *
 * A key is a relative path of parts joined by `/`; empty parts, `.`, `..`, NUL and a leading `/`
 * are refused with INVALID. All calls block; any thread may call. A store is a value: copy it
 * freely.
 *
 * OK from store_put means durable (file and directory fsynced, or PUT confirmed), but for a put
 * that asked for STORE_LATER: it is there for every reader, and durable with the next store_sync
 * that answers OK. Until then the machine may lose it, or parts of it, with its power. UNKNOWN
 * means that it may have happened. NOT_FOUND is certain. A put replaces what is there: write every
 * key once where it matters (exactly-once I5). */
#ifndef LHBOX_IO_STORE_H
#define LHBOX_IO_STORE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/time.h"

enum {
    STORE_KEY_MAX = 1024,
    STORE_META_MAX = 8,
    STORE_META_BYTES_MAX = 2048,           /* of an object, names and values */
    STORE_META_LIST_BYTES_MAX = 256 * KIB, /* the same, in a directory */
    STORE_GROUP_MAX = 64
};

/* STORE_LATER is for what can be brought back from elsewhere; a store may be durable at once. */
enum store_durability { STORE_DURABLE, STORE_LATER };

/* STORE_UNCACHED is for what is large and not read here soon: a local store spares itself the copy
 * in the system's memory of files, as far as the pieces are whole pages that begin at a multiple of
 * STORE_PAGE_BYTES. */
enum store_caching { STORE_CACHED, STORE_UNCACHED };
enum { STORE_PAGE_BYTES = 4096 };

/* One user metadata entry: name without the x-amz-meta- prefix. */
struct store_meta_entry {
    str name;
    str value;
};
struct store_meta {
    str content_type; /* empty: application/octet-stream */
    struct store_meta_entry entries[STORE_META_MAX];
    size_t count;
    /* Of a put alone. data NULL: whatever is there is replaced. Else only the object of this
     * version, empty: only a key without one; CONFLICT otherwise, also for a put that arrives late
     * (S3: If-Match and If-None-Match). */
    str replaces;
    enum store_durability durability; /* of a put alone */
    enum store_caching caching;       /* of a put alone */
};

struct store_object {
    str key;
    i64 size;
    instant modified_at;
    str body;               /* store_get only */
    struct store_meta meta; /* store_get and store_head only */
    str version;            /* the same: no two objects that stood under a key have one version */
};

struct store_list {
    struct store_object *objects; /* in byte order of their keys */
    size_t count;
    bool more; /* list again after the last key */
};

/* Puts that become durable together, in several stores of one kind: what each waits for, all wait
 * for once. One thread. At most STORE_GROUP_MAX wait: one more ends the group first. */
struct store_group;
struct store_group_ops {
    err (*end)(struct store_group *group, struct error *error); /* leaves it empty */
    void (*drop)(struct store_group *group);
};
struct store_group {
    struct arena *arena;               /* lives as long */
    const struct store_group_ops *ops; /* of the kind of store whose puts wait; NULL: none do */
    void *held;
    size_t count;
};

struct store_ops {
    /* The body is the pieces, one after the other. meta may be NULL. */
    err (*put)(void *self, str key, const str *pieces, size_t piece_count,
               const struct store_meta *meta, struct error *error);
    const struct store_group_ops *group; /* NULL, with what follows: it has no groups */
    err (*group_put)(void *self, struct store_group *group, str key, const str *pieces,
                     size_t piece_count, const struct store_meta *meta, struct error *error);
    err (*get)(void *self, struct arena *arena, str key, struct store_object *out_object,
               struct error *error);
    err (*head)(void *self, struct arena *arena, str key, struct store_object *out_object,
                struct error *error);
    err (*remove)(void *self, str key, struct error *error);
    err (*list)(void *self, struct arena *arena, str prefix, str after, size_t limit,
                struct store_list *out_list, struct error *error);
    err (*sync)(void *self, struct error *error); /* NULL: every put is durable at once */
    void (*close)(void *self);                    /* NULL: nothing to do */
};

struct store {
    const struct store_ops *ops;
    void *self;
    i32 puts_in_flight_max; /* per sink: 1 locally, 4 on S3 */
    size_t meta_bytes_max;  /* of an object, names and values; 0: STORE_META_BYTES_MAX */
    bool late;              /* what failed or was not answered may still land, at any time (S3) */
};

MUST_USE err store_put(const struct store *store, str key, str body, const struct store_meta *meta,
                       struct error *error);
MUST_USE err store_put_pieces(const struct store *store, str key, const str *pieces,
                              size_t piece_count, const struct store_meta *meta,
                              struct error *error);
/* Into the group, by stores that have them; by others at once. Until store_group_end says OK the
 * object is not counted on: nobody sees it yet, or only a whole one. meta->replaces is empty, if it
 * is set: the group's end says CONFLICT, then. */
MUST_USE err store_group_put(const struct store *store, struct store_group *group, str key,
                             const str *pieces, size_t piece_count, const struct store_meta *meta,
                             struct error *error);
/* OK: all are there and durable. Else some may be. The group is empty either way. */
MUST_USE err store_group_end(struct store_group *group, struct error *error);
/* What waits was never there. */
void store_group_drop(struct store_group *group);
/* Body and metadata in the arena. LIMIT when it does not fit. IO when it was read short. */
MUST_USE err store_get(const struct store *store, struct arena *arena, str key,
                       struct store_object *out_object, struct error *error);
MUST_USE err store_head(const struct store *store, struct arena *arena, str key,
                        struct store_object *out_object, struct error *error);
/* OK also when it was not there. */
MUST_USE err store_remove(const struct store *store, str key, struct error *error);
/* Up to `limit` keys that begin with `prefix` and stand after `after` in byte order. */
MUST_USE err store_list(const struct store *store, struct arena *arena, str prefix, str after,
                        size_t limit, struct store_list *out_list, struct error *error);
/* Makes every put durable that was answered before the call. In a directory this writes out the
 * whole file system that holds it, once. */
MUST_USE err store_sync(const struct store *store, struct error *error);
size_t store_meta_bytes_max(const struct store *store);
/* The value of a metadata entry; data NULL when there is none. */
str store_meta_value(const struct store_meta *meta, str name);
bool store_key_valid(str key);

/* A directory, made when missing (mode 0700), opened once; every name is resolved beneath it
 * (openat2 RESOLVE_BENEATH | NO_SYMLINKS). Temp files live beside it in `.<directory>.tmp`, or
 * inside in
 * `.tmp` where that is another file system; those of a dead process are removed at open. Metadata
 * is kept as extended attributes, or in a sidecar `.<name>.meta` where it is larger than
 * STORE_META_BYTES_MAX or the file system has none; sidecars and names beginning with `.` are not
 * listed. The store lives in the arena. */
MUST_USE err store_open_dir(struct arena *arena, str directory, struct store *out_store,
                            struct error *error);
/* Objects in memory, for tests and the simulator; thread-safe; bounded by bytes_max. */
MUST_USE err store_open_mem(struct arena *arena, size_t bytes_max, struct store *out_store,
                            struct error *error);
void store_close(struct store *store);

#endif
