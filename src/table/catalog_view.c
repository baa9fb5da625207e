#include "table/catalog_view.h"

#include "table/catalog_state.h"
#include "table/document.h"
#include "table/metadata_file.h"
#include "table/view.h"

void catalog_view_close(struct catalog_view *view)
{
    json_decref(view->document);
    *view = (struct catalog_view){0};
}

MUST_USE static err view_read(const struct catalog_local *local, struct arena *arena,
                              struct table_name name, struct catalog_pointer *out_pointer,
                              json_t **out_document, struct error *error)
{
    TRY(catalog_rows_find(&local->rows, arena, CATALOG_VIEW, name, out_pointer, error));
    return metadata_file_read_view(local->locations, out_pointer->metadata_location, out_document,
                                   error);
}

err catalog_view_load(const struct catalog_local *local, struct arena *arena,
                      struct table_name name, struct catalog_view *out_view, struct error *error)
{
    struct catalog_pointer pointer = {0};
    json_t *document = NULL;
    TRY(view_read(local, arena, name, &pointer, &document, error));
    *out_view = (struct catalog_view){document, pointer.metadata_location};
    return OK;
}

err catalog_view_find(const struct catalog_local *local, struct arena *arena,
                      struct table_name name, str *out_metadata_location, struct error *error)
{
    struct catalog_pointer pointer = {0};
    TRY(catalog_rows_find(&local->rows, arena, CATALOG_VIEW, name, &pointer, error));
    *out_metadata_location = pointer.metadata_location;
    return OK;
}

err catalog_view_create(struct catalog_local *local, struct arena *arena, struct table_name name,
                        const json_t *request, struct catalog_view *out_view, struct error *error)
{
    str location = {0};
    json_auto_t *document = NULL;
    TRY(catalog_find_place(local, arena, CATALOG_VIEW, name, request, &location, error));
    TRY(view_create(request, location, local->seam, &document, error));
    TRY(metadata_file_check(local->locations, document, error));
    struct catalog_swap swap = {
        .name = name, .item = CATALOG_VIEW, .uuid = document_text(document, "view-uuid")};
    u64 key = catalog_lock_key(name);
    TRY(catalog_lock_take(&local->shared->lock, local->seam, &key, 1, CATALOG_LOCK_WAIT_US, error));
    err result = catalog_store(local, arena, &swap, document, error);
    catalog_lock_release(&local->shared->lock, &key, 1);
    TRY(result);
    *out_view = (struct catalog_view){json_incref(document), swap.to};
    return OK;
}

MUST_USE static err commit_locked(struct catalog_local *local, struct arena *arena,
                                  struct table_name name, const json_t *request,
                                  struct catalog_view *out_view, struct error *error)
{
    struct catalog_pointer pointer = {0};
    json_auto_t *before = NULL;
    json_auto_t *after = NULL;
    bool changed = false;
    TRY(view_read(local, arena, name, &pointer, &before, error));
    TRY(view_check(before, json_object_get(request, "requirements"), error));
    TRY(view_apply(before, json_object_get(request, "updates"), seam_now(local->seam), &after,
                   &changed, error));
    struct catalog_swap swap = {.name = name,
                                .item = CATALOG_VIEW,
                                .uuid = pointer.uuid,
                                .from = pointer.metadata_location,
                                .to = pointer.metadata_location};
    if (changed) {
        TRY(metadata_file_check(local->locations, after, error));
        TRY(catalog_store(local, arena, &swap, after, error));
    }
    *out_view = (struct catalog_view){json_incref(after), swap.to};
    return OK;
}

err catalog_view_commit(struct catalog_local *local, struct arena *arena, struct table_name name,
                        const json_t *request, struct catalog_view *out_view, struct error *error)
{
    u64 key = catalog_lock_key(name);
    TRY(catalog_lock_take(&local->shared->lock, local->seam, &key, 1, CATALOG_LOCK_WAIT_US, error));
    err result = commit_locked(local, arena, name, request, out_view, error);
    catalog_lock_release(&local->shared->lock, &key, 1);
    return result;
}

err catalog_view_register(struct catalog_local *local, struct arena *arena, struct table_name name,
                          str metadata_location, enum catalog_register how,
                          struct catalog_view *out_view, struct error *error)
{
    str uri = {0};
    TRY(catalog_register_place(local, arena, name, metadata_location, &uri, error));
    json_auto_t *document = NULL;
    TRY(metadata_file_read_view(local->locations, uri, &document, error));
    struct catalog_swap swap = {.name = name,
                                .item = CATALOG_VIEW,
                                .uuid = document_text(document, "view-uuid"),
                                .to = uri};
    TRY(catalog_register_at(local, &swap, how, document, error));
    *out_view = (struct catalog_view){json_incref(document), uri};
    return OK;
}

err catalog_view_drop(struct catalog_local *local, struct table_name name, struct error *error)
{
    u64 key = catalog_lock_key(name);
    TRY(catalog_lock_take(&local->shared->lock, local->seam, &key, 1, CATALOG_LOCK_WAIT_US, error));
    err result = catalog_rows_drop(&local->rows, CATALOG_VIEW, name, error);
    catalog_lock_release(&local->shared->lock, &key, 1);
    return result;
}

err catalog_view_list(const struct catalog_local *local, struct arena *arena, str namespace_name,
                      struct catalog_names *out_names, struct error *error)
{
    return catalog_rows_list(&local->rows, arena, CATALOG_VIEW, namespace_name, out_names, error);
}
