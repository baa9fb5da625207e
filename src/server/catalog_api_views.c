#include "server/catalog_api.h"
#include "table/catalog_view.h"

/* {"metadata-location","metadata"}; no `config`, as for tables. */
MUST_USE static err reply_view(struct catalog_request *request, const struct catalog_view *view,
                               struct error *error)
{
    return catalog_reply(request,
                         json_pack("{s:o, s:O}", "metadata-location",
                                   catalog_text(view->metadata_location), "metadata",
                                   view->document),
                         error);
}

err catalog_list_views(struct catalog_request *request, struct error *error)
{
    struct catalog_names names = {0};
    TRY(catalog_view_list(request->local, request->arena, request->namespace_name, &names, error));
    return catalog_reply_names(request, &names, error);
}

err catalog_load_view(struct catalog_request *request, struct error *error)
{
    AUTO_VIEW struct catalog_view view = {0};
    TRY(catalog_view_load(request->local, request->arena, catalog_named(request), &view, error));
    return reply_view(request, &view, error);
}

err catalog_create_view(struct catalog_request *request, struct error *error)
{
    json_auto_t *body = NULL;
    AUTO_VIEW struct catalog_view view = {0};
    TRY(catalog_body(request, &body, error));
    TRY(catalog_body_name(body, &request->name, error));
    if (request->done) {
        return catalog_load_view(request, error);
    }
    TRY(catalog_view_create(request->local, request->arena, catalog_named(request), body, &view,
                            error));
    return reply_view(request, &view, error);
}

err catalog_register_view(struct catalog_request *request, struct error *error)
{
    json_auto_t *body = NULL;
    AUTO_VIEW struct catalog_view view = {0};
    struct catalog_registration wanted = {0};
    TRY(catalog_body(request, &body, error));
    TRY(catalog_read_registration(body, &wanted, error));
    request->name = wanted.name;
    if (request->done) {
        return catalog_load_view(request, error);
    }
    TRY(catalog_view_register(request->local, request->arena, catalog_named(request),
                              wanted.metadata_location, wanted.how, &view, error));
    return reply_view(request, &view, error);
}

err catalog_head_view(struct catalog_request *request, struct error *error)
{
    str location = {0};
    TRY(catalog_view_find(request->local, request->arena, catalog_named(request), &location,
                          error));
    return catalog_reply_nothing(request);
}

err catalog_commit_view(struct catalog_request *request, struct error *error)
{
    json_auto_t *body = NULL;
    AUTO_VIEW struct catalog_view view = {0};
    TRY(catalog_body(request, &body, error));
    if (request->done) {
        return catalog_load_view(request, error);
    }
    TRY(catalog_view_commit(request->local, request->arena, catalog_named(request), body, &view,
                            error));
    return reply_view(request, &view, error);
}

err catalog_drop_view(struct catalog_request *request, struct error *error)
{
    if (!request->done) {
        TRY(catalog_view_drop(request->local, catalog_named(request), error));
    }
    return catalog_reply_nothing(request);
}

err catalog_rename_view(struct catalog_request *request, struct error *error)
{
    return catalog_rename(request, CATALOG_VIEW, error);
}
