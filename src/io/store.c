#include "io/store.h"

#include "base/assert.h"

static err key_refused(str key, struct error *error)
{
    return error_set(error, INVALID, ERROR_INVALID_REQUEST, "'%.*s' is no key of an object",
                     STR_ARG(str_slice(key, 0, 200)));
}

bool store_key_valid(str key)
{
    if (key.size == 0 || key.size > STORE_KEY_MAX || str_find_byte(key, '\0') >= 0) {
        return false;
    }
    size_t begin = 0;
    for (size_t at = 0; at <= key.size; at++) {
        if (at < key.size && key.data[at] != '/') {
            continue;
        }
        str part = str_slice(key, begin, at);
        if (part.size == 0 || str_equal(part, STR(".")) || str_equal(part, STR(".."))) {
            return false;
        }
        begin = at + 1;
    }
    return true;
}

static bool meta_name_valid(str name)
{
    for (size_t i = 0; i < name.size; i++) {
        char byte = name.data[i];
        if (!((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-')) {
            return false;
        }
    }
    return name.size > 0;
}

/* Printable ASCII: what an HTTP header can carry, and a line of a sidecar. */
static bool meta_value_valid(str value)
{
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] < 0x20 || value.data[i] > 0x7e) {
            return false;
        }
    }
    return true;
}

size_t store_meta_bytes_max(const struct store *store)
{
    return store->meta_bytes_max > 0 ? store->meta_bytes_max : (size_t)STORE_META_BYTES_MAX;
}

MUST_USE static err meta_check(const struct store_meta *meta, size_t bytes_max, struct error *error)
{
    if (meta == NULL) {
        return OK;
    }
    assert(meta->count <= STORE_META_MAX);
    size_t bytes = 0;
    bool valid = meta_value_valid(meta->content_type);
    for (size_t i = 0; i < meta->count; i++) {
        valid = valid && meta_name_valid(meta->entries[i].name) &&
                meta_value_valid(meta->entries[i].value);
        bytes += meta->entries[i].name.size + meta->entries[i].value.size;
    }
    if (!valid || bytes > bytes_max) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "the object's metadata is too large or not plain text");
    }
    return OK;
}

err store_put(const struct store *store, str key, str body, const struct store_meta *meta,
              struct error *error)
{
    return store_put_pieces(store, key, &body, 1, meta, error);
}

err store_put_pieces(const struct store *store, str key, const str *pieces, size_t piece_count,
                     const struct store_meta *meta, struct error *error)
{
    if (!store_key_valid(key)) {
        return key_refused(key, error);
    }
    TRY(meta_check(meta, store_meta_bytes_max(store), error));
    return store->ops->put(store->self, key, pieces, piece_count, meta, error);
}

err store_group_put(const struct store *store, struct store_group *group, str key,
                    const str *pieces, size_t piece_count, const struct store_meta *meta,
                    struct error *error)
{
    bool ours = group->ops == NULL || group->ops == store->ops->group;
    if (store->ops->group_put == NULL || !ours) {
        return store_put_pieces(store, key, pieces, piece_count, meta, error);
    }
    if (!store_key_valid(key)) {
        return key_refused(key, error);
    }
    TRY(meta_check(meta, store_meta_bytes_max(store), error));
    group->ops = store->ops->group;
    return store->ops->group_put(store->self, group, key, pieces, piece_count, meta, error);
}

err store_group_end(struct store_group *group, struct error *error)
{
    return group->ops == NULL ? OK : group->ops->end(group, error);
}

void store_group_drop(struct store_group *group)
{
    if (group->ops != NULL) {
        group->ops->drop(group);
    }
}

err store_get(const struct store *store, struct arena *arena, str key,
              struct store_object *out_object, struct error *error)
{
    if (!store_key_valid(key)) {
        return key_refused(key, error);
    }
    struct store_object object = {0};
    TRY(store->ops->get(store->self, arena, key, &object, error));
    if (object.body.size != (size_t)object.size) {
        return error_set(error, IO, ERROR_UNAVAILABLE, "%.*s was read short: %zu of %lld bytes",
                         STR_ARG(key), object.body.size, (long long)object.size);
    }
    *out_object = object;
    return OK;
}

err store_head(const struct store *store, struct arena *arena, str key,
               struct store_object *out_object, struct error *error)
{
    if (!store_key_valid(key)) {
        return key_refused(key, error);
    }
    return store->ops->head(store->self, arena, key, out_object, error);
}

err store_remove(const struct store *store, str key, struct error *error)
{
    if (!store_key_valid(key)) {
        return key_refused(key, error);
    }
    return store->ops->remove(store->self, key, error);
}

err store_list(const struct store *store, struct arena *arena, str prefix, str after, size_t limit,
               struct store_list *out_list, struct error *error)
{
    if (limit == 0 || prefix.size > STORE_KEY_MAX || after.size > STORE_KEY_MAX) {
        return key_refused(prefix, error);
    }
    return store->ops->list(store->self, arena, prefix, after, limit, out_list, error);
}

err store_sync(const struct store *store, struct error *error)
{
    return store->ops->sync == NULL ? OK : store->ops->sync(store->self, error);
}

str store_meta_value(const struct store_meta *meta, str name)
{
    for (size_t i = 0; i < meta->count; i++) {
        if (str_equal_ignore_case(meta->entries[i].name, name)) {
            return meta->entries[i].value;
        }
    }
    return (str){NULL, 0};
}

void store_close(struct store *store)
{
    if (store->ops != NULL && store->ops->close != NULL) {
        store->ops->close(store->self);
    }
    *store = (struct store){0};
}
