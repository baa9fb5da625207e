/* location: from a table's absolute URIs to a store and a key in it.
 *
 * A set lists the prefixes under which tables may lie, each with its store. Readers and writers
 * of table files go through it, so that nothing outside the prefixes can be reached. `file:///a/b`,
 * `file:/a/b` and a bare `/a/b` name the same place; we write the first form only. */
#ifndef LHBOX_TABLE_LOCATION_H
#define LHBOX_TABLE_LOCATION_H

#include "base/error.h"
#include "io/store.h"

struct location {
    str prefix; /* file:///abs/path or s3://bucket/path, no `/` at the end */
    struct store store;
};

struct location_set {
    struct location *items;
    size_t count;
};

/* The store and key of a URI; DENIED with location_refused when it lies under no prefix. */
MUST_USE err location_find(const struct location_set *set, struct arena *arena, str uri,
                           struct store *out_store, str *out_key, struct error *error);
MUST_USE err location_put(const struct location_set *set, struct arena *arena, str uri,
                          const str *pieces, size_t piece_count, struct error *error);
/* As store_group_put; a group of NULL: at once. */
MUST_USE err location_group_put(const struct location_set *set, struct arena *arena, str uri,
                                struct store_group *group, const str *pieces, size_t piece_count,
                                struct error *error);
MUST_USE err location_get(const struct location_set *set, struct arena *arena, str uri,
                          str *out_bytes, struct error *error);
MUST_USE err location_remove(const struct location_set *set, struct arena *arena, str uri,
                             struct error *error);
/* file:///… for an absolute path, in the arena. */
str location_from_path(struct arena *arena, str path);

#endif
