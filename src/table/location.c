#include "table/location.h"

enum { LOCATION_URI_MAX = 4096 };

/* file:/a/b and /a/b as file:///a/b; other URIs as they are. */
static str location_normal(struct arena *arena, str uri)
{
    if (str_starts(uri, STR("file:///"))) {
        return uri;
    }
    if (str_starts(uri, STR("file:/")) && !str_starts(uri, STR("file://"))) {
        return location_from_path(arena, str_slice(uri, 5, uri.size));
    }
    if (str_starts(uri, STR("/"))) {
        return location_from_path(arena, uri);
    }
    return uri;
}

/* The part after `prefix/`; data NULL when the URI lies elsewhere. */
static str location_key(str uri, str prefix)
{
    if (!str_starts(uri, prefix) || uri.size < prefix.size + 2 || uri.data[prefix.size] != '/') {
        return (str){NULL, 0};
    }
    return str_slice(uri, prefix.size + 1, uri.size);
}

err location_find(const struct location_set *set, struct arena *arena, str uri,
                  struct store *out_store, str *out_key, struct error *error)
{
    const struct location *best = NULL;
    str key = {NULL, 0};
    if (uri.size <= LOCATION_URI_MAX) {
        uri = location_normal(arena, uri);
        if (uri.data == NULL) {
            return error_memory(error);
        }
        for (size_t i = 0; i < set->count; i++) {
            const struct location *item = &set->items[i];
            str found = location_key(uri, item->prefix);
            if (found.data != NULL && (best == NULL || item->prefix.size > best->prefix.size)) {
                best = item;
                key = found;
            }
        }
    }
    if (best == NULL || !store_key_valid(key)) {
        return error_set(error, DENIED, ERROR_LOCATION_REFUSED,
                         "%.*s lies outside the allowed locations", STR_ARG(uri));
    }
    key = str_copy(arena, key);
    if (key.data == NULL) {
        return error_memory(error);
    }
    *out_store = best->store;
    *out_key = key;
    return OK;
}

err location_put(const struct location_set *set, struct arena *arena, str uri, const str *pieces,
                 size_t piece_count, struct error *error)
{
    struct store store = {0};
    str key = {NULL, 0};
    TRY(location_find(set, arena, uri, &store, &key, error));
    return store_put_pieces(&store, key, pieces, piece_count, NULL, error);
}

err location_group_put(const struct location_set *set, struct arena *arena, str uri,
                       struct store_group *group, const str *pieces, size_t piece_count,
                       struct error *error)
{
    struct store store = {0};
    str key = {NULL, 0};
    if (group == NULL) {
        return location_put(set, arena, uri, pieces, piece_count, error);
    }
    TRY(location_find(set, arena, uri, &store, &key, error));
    return store_group_put(&store, group, key, pieces, piece_count, NULL, error);
}

err location_get(const struct location_set *set, struct arena *arena, str uri, str *out_bytes,
                 struct error *error)
{
    struct store store = {0};
    struct store_object object = {0};
    str key = {NULL, 0};
    TRY(location_find(set, arena, uri, &store, &key, error));
    TRY(store_get(&store, arena, key, &object, error));
    *out_bytes = object.body;
    return OK;
}

err location_remove(const struct location_set *set, struct arena *arena, str uri,
                    struct error *error)
{
    struct store store = {0};
    str key = {NULL, 0};
    TRY(location_find(set, arena, uri, &store, &key, error));
    return store_remove(&store, key, error);
}

str location_from_path(struct arena *arena, str path)
{
    return str_format(arena, "file://%.*s", STR_ARG(path));
}
