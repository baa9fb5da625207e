#include "table/catalog_state.h"
#include "table/document.h"

enum { PROPERTY_TRIES_MAX = 5, PROPERTIES_BYTES_MAX = 256 * KIB };

/* ---- properties ---- */

MUST_USE static err check_strings(const json_t *properties, struct error *error)
{
    if (properties == NULL || json_is_null(properties)) {
        return OK;
    }
    bool strings = json_is_object(properties);
    const char *key;
    json_t *value;
    json_object_foreach(document_mutable(properties), key, value)
    {
        strings = strings && json_is_string(value);
    }
    return strings ? OK
                   : error_set(error, INVALID, ERROR_INVALID_REQUEST,
                               "properties must be an object of strings");
}

/* The object's text in the arena; of the same content always the same. */
MUST_USE static err print_properties(struct arena *arena, const json_t *properties, str *out_text,
                                     struct error *error)
{
    size_t flags = JSON_COMPACT | JSON_SORT_KEYS;
    size_t size = json_dumpb(properties, NULL, 0, flags);
    if (size == 0 || size > PROPERTIES_BYTES_MAX) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "a namespace has at most %d bytes of properties", PROPERTIES_BYTES_MAX);
    }
    char *bytes = arena_alloc(arena, size);
    if (bytes == NULL) {
        return error_memory(error);
    }
    *out_text = (str){bytes, json_dumpb(properties, bytes, size, flags)};
    return OK;
}

MUST_USE static err parse_properties(str text, json_t **out_properties, struct error *error)
{
    json_t *properties = json_loadb(text.data, text.size, 0, NULL);
    if (!json_is_object(properties)) {
        json_decref(properties);
        return error_set(error, CORRUPT, ERROR_INTERNAL, "a namespace's properties are damaged");
    }
    *out_properties = properties;
    return OK;
}

err catalog_local_make_namespace(struct catalog_local *local, str name, const json_t *properties,
                                 struct error *error)
{
    TRY(catalog_check_namespace(name, error));
    TRY(check_strings(properties, error));
    AUTO_ARENA struct arena *scratch = arena_create(4 * MIB);
    str text = STR("{}");
    if (json_is_object(properties)) {
        TRY(print_properties(scratch, properties, &text, error));
    }
    return catalog_rows_create_namespace(&local->rows, name, text, error);
}

err catalog_local_load_namespace(struct catalog_local *local, str name, json_t **out_properties,
                                 struct error *error)
{
    AUTO_ARENA struct arena *scratch = arena_create(4 * MIB);
    str text = {0};
    TRY(catalog_rows_load_namespace(&local->rows, scratch, name, &text, error));
    return parse_properties(text, out_properties, error);
}

/* Changes `properties` and tells what it did. */
static json_t *change_properties(json_t *properties, const json_t *removals, const json_t *updates)
{
    json_t *updated = json_array();
    json_t *removed = json_array();
    json_t *missing = json_array();
    for (size_t i = 0; i < json_array_size(removals); i++) {
        const char *key = json_string_value(json_array_get(removals, i));
        bool there = key != NULL && json_object_del(properties, key) == 0;
        json_array_append_new(there ? removed : missing, json_string(key));
    }
    const char *key;
    json_t *value;
    json_object_foreach(document_mutable(updates), key, value)
    {
        json_object_set(properties, key, value);
        json_array_append_new(updated, json_string(key));
    }
    return json_pack("{s:o, s:o, s:o}", "updated", updated, "removed", removed, "missing", missing);
}

MUST_USE static err set_properties_try(struct catalog_local *local, str name,
                                       const json_t *removals, const json_t *updates,
                                       json_t **out_changes, struct error *error)
{
    AUTO_ARENA struct arena *scratch = arena_create(4 * MIB);
    str before = {0};
    TRY(catalog_rows_load_namespace(&local->rows, scratch, name, &before, error));
    json_auto_t *properties = NULL;
    TRY(parse_properties(before, &properties, error));
    json_auto_t *changes = change_properties(properties, removals, updates);
    if (changes == NULL) {
        return error_memory(error);
    }
    str after = {0};
    TRY(print_properties(scratch, properties, &after, error));
    TRY(catalog_rows_swap_properties(&local->rows, name, before, after, error));
    *out_changes = json_incref(changes);
    return OK;
}

err catalog_local_set_properties(struct catalog_local *local, str name, const json_t *removals,
                                 const json_t *updates, json_t **out_changes, struct error *error)
{
    TRY(check_strings(updates, error));
    for (size_t i = 0; i < json_array_size(removals); i++) {
        if (!json_is_string(json_array_get(removals, i))) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "removals must be an array of strings");
        }
    }
    struct error why = {0};
    err result = CONFLICT;
    for (int i = 0; i < PROPERTY_TRIES_MAX && result == CONFLICT; i++) {
        error_clear(&why);
        result = set_properties_try(local, name, removals, updates, out_changes, &why);
    }
    return result == OK ? OK : error_set(error, result, why.code, "%s", why.message);
}

/* ---- names ---- */

/* Appends `name` unless it, or something below it, was appended last. Names come in byte order, in
 * which nothing stands between a namespace and what is below it. */
static void append_name(struct catalog_names *names, str name)
{
    str last = names->count > 0 ? names->names[names->count - 1] : (str){0};
    bool below = str_starts(last, name) && last.size > name.size &&
                 last.data[name.size] == CATALOG_NAMESPACE_SEPARATOR;
    if (!below && !str_equal(last, name)) {
        names->names[names->count++] = name;
    }
}

/* How many names the rows can give at most, parents included. */
static size_t count_parts(const struct catalog_names *stored)
{
    size_t parts = 0;
    for (size_t i = 0; i < stored->count; i++) {
        str rest = stored->names[i];
        str part;
        while (str_next(&rest, CATALOG_NAMESPACE_SEPARATOR, &part)) {
            parts++;
        }
    }
    return parts;
}

err catalog_all_namespaces(struct catalog_local *local, struct arena *arena,
                           struct catalog_names *out_names, struct error *error)
{
    struct catalog_names stored = {0};
    TRY(catalog_rows_list_namespaces(&local->rows, arena, &stored, error));
    struct catalog_names all = {
        .names = arena_array(arena, count_parts(&stored), sizeof(*all.names))};
    if (all.names == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < stored.count; i++) {
        str name = stored.names[i];
        for (size_t end = 1; end <= name.size; end++) {
            if (end == name.size || name.data[end] == CATALOG_NAMESPACE_SEPARATOR) {
                append_name(&all, str_slice(name, 0, end));
            }
        }
    }
    *out_names = all;
    return OK;
}

err catalog_local_children(struct catalog_local *local, struct arena *arena, str parent,
                           struct catalog_names *out_names, struct error *error)
{
    if (parent.size > 0) {
        str properties = {0};
        TRY(catalog_rows_load_namespace(&local->rows, arena, parent, &properties, error));
    }
    struct catalog_names all = {0};
    TRY(catalog_all_namespaces(local, arena, &all, error));
    struct catalog_names children = {all.names, 0};
    size_t skip = parent.size > 0 ? parent.size + 1 : 0;
    for (size_t i = 0; i < all.count; i++) {
        str name = all.names[i];
        bool under = name.size > skip && str_starts(name, parent) &&
                     (skip == 0 || name.data[parent.size] == CATALOG_NAMESPACE_SEPARATOR);
        if (under &&
            str_find_byte(str_slice(name, skip, name.size), CATALOG_NAMESPACE_SEPARATOR) < 0) {
            children.names[children.count++] = name;
        }
    }
    *out_names = children;
    return OK;
}

err catalog_local_drop_namespace(struct catalog_local *local, str name, struct error *error)
{
    return catalog_rows_drop_namespace(&local->rows, name, error);
}
