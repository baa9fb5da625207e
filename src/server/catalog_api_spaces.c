#include "server/catalog_api.h"

err catalog_list_spaces(struct catalog_request *request, struct error *error)
{
    str parent = http_request_parameter(request->call->request, STR("parent"));
    struct catalog_names names = {0};
    str next = {0};
    TRY(catalog_local_children(request->local, request->arena, parent, &names, error));
    TRY(catalog_page(request, &names, &next, error));
    json_t *items = json_array();
    for (size_t i = 0; i < names.count; i++) {
        json_array_append_new(items, catalog_space_to_json(names.names[i]));
    }
    return catalog_reply_page(request, "namespaces", items, next, error);
}

err catalog_create_space(struct catalog_request *request, struct error *error)
{
    json_auto_t *body = NULL;
    json_auto_t *stored = NULL;
    str name = {0};
    TRY(catalog_body(request, &body, error));
    TRY(catalog_space_from_json(request->arena, json_object_get(body, "namespace"), &name, error));
    if (!request->done) {
        TRY(catalog_local_make_namespace(request->local, name, json_object_get(body, "properties"),
                                         error));
    }
    TRY(catalog_local_load_namespace(request->local, name, &stored, error));
    return catalog_reply(
        request,
        json_pack("{s:o, s:O}", "namespace", catalog_space_to_json(name), "properties", stored),
        error);
}

err catalog_load_space(struct catalog_request *request, struct error *error)
{
    json_auto_t *properties = NULL;
    TRY(catalog_local_load_namespace(request->local, request->namespace_name, &properties, error));
    return catalog_reply(request,
                         json_pack("{s:o, s:O}", "namespace",
                                   catalog_space_to_json(request->namespace_name), "properties",
                                   properties),
                         error);
}

err catalog_head_space(struct catalog_request *request, struct error *error)
{
    json_auto_t *properties = NULL;
    TRY(catalog_local_load_namespace(request->local, request->namespace_name, &properties, error));
    return catalog_reply_nothing(request);
}

err catalog_drop_space(struct catalog_request *request, struct error *error)
{
    if (!request->done) {
        TRY(catalog_local_drop_namespace(request->local, request->namespace_name, error));
    }
    return catalog_reply_nothing(request);
}

/* The first key that is both removed and updated; NULL: none. */
static const char *key_in_both(const json_t *removals, const json_t *updates)
{
    for (size_t i = 0; i < json_array_size(removals); i++) {
        const char *key = json_string_value(json_array_get(removals, i));
        if (key != NULL && json_object_get(updates, key) != NULL) {
            return key;
        }
    }
    return NULL;
}

/* The answer to a repeat: what was missing the first time is among the removed. */
static json_t *changes_asked_for(const json_t *removals, const json_t *updates)
{
    json_t *updated = json_array();
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)updates, key, value)
    {
        json_array_append_new(updated, json_string(key));
    }
    json_t *removed = json_is_array(removals) ? json_deep_copy(removals) : json_array();
    return json_pack("{s:o, s:o, s:[]}", "updated", updated, "removed", removed, "missing");
}

err catalog_update_space(struct catalog_request *request, struct error *error)
{
    json_auto_t *body = NULL;
    json_auto_t *changes = NULL;
    TRY(catalog_body(request, &body, error));
    const json_t *removals = json_object_get(body, "removals");
    const json_t *updates = json_object_get(body, "updates");
    if (removals != NULL && !json_is_null(removals) && !json_is_array(removals)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "removals: an array is wanted");
    }
    const char *both = key_in_both(removals, updates);
    if (both != NULL) {
        return catalog_refuse(
            request, 422, "UnprocessableEntityException",
            str_format(request->arena, "the key %.200s is both removed and set", both));
    }
    if (request->done) {
        return catalog_reply(request, changes_asked_for(removals, updates), error);
    }
    TRY(catalog_local_set_properties(request->local, request->namespace_name, removals, updates,
                                     &changes, error));
    return catalog_reply(request, json_incref(changes), error);
}
