#include "table/catalog.h"

#include "base/assert.h"

void table_close(struct table *table)
{
    metadata_close(table->metadata);
    table->metadata = NULL;
}

err catalog_load(const struct catalog *catalog, struct arena *arena, struct table_name name,
                 struct table *out_table, struct error *error)
{
    assert(out_table->metadata == NULL);
    return catalog->ops->load(catalog->self, arena, name, out_table, error);
}

err catalog_commit(const struct catalog *catalog, struct arena *arena, struct table_name name,
                   const json_t *request, struct table *out_after, struct error *error)
{
    assert(out_after == NULL || out_after->metadata == NULL);
    return catalog->ops->commit(catalog->self, arena, name, request, out_after, error);
}

void catalog_stage(const struct catalog *catalog, struct arena *arena, struct table_name name,
                   const json_t *request, struct store_group *group,
                   struct catalog_staged *out_staged)
{
    struct error ignored = {0};
    *out_staged = (struct catalog_staged){0};
    if (catalog->ops->stage == NULL || catalog->ops->stage(catalog->self, arena, name, request,
                                                           group, out_staged, &ignored) != OK) {
        *out_staged = (struct catalog_staged){0}; /* the commit tells of it */
    }
}

err catalog_commit_staged(const struct catalog *catalog, struct arena *arena,
                          struct table_name name, const json_t *request,
                          struct catalog_staged *staged, struct table *out_after,
                          struct error *error)
{
    if (staged->after == NULL) {
        return catalog_commit(catalog, arena, name, request, out_after, error);
    }
    assert(out_after == NULL || out_after->metadata == NULL);
    return catalog->ops->commit_staged(catalog->self, arena, name, request, staged, out_after,
                                       error);
}

void catalog_unstage(const struct catalog *catalog, struct catalog_staged *staged)
{
    if (staged->after != NULL) {
        catalog->ops->unstage(catalog->self, staged);
    }
}

err catalog_create(const struct catalog *catalog, struct arena *arena, struct table_name name,
                   const json_t *request, struct table *out_table, struct error *error)
{
    assert(out_table->metadata == NULL);
    return catalog->ops->create(catalog->self, arena, name, request, out_table, error);
}

err catalog_drop(const struct catalog *catalog, struct table_name name, struct error *error)
{
    return catalog->ops->drop(catalog->self, name, error);
}

err catalog_create_namespace(const struct catalog *catalog, str namespace_name, struct error *error)
{
    return catalog->ops->create_namespace(catalog->self, namespace_name, error);
}

err catalog_list_namespaces(const struct catalog *catalog, struct arena *arena,
                            struct catalog_names *out_names, struct error *error)
{
    return catalog->ops->list_namespaces(catalog->self, arena, out_names, error);
}

err catalog_list_tables(const struct catalog *catalog, struct arena *arena, str namespace_name,
                        struct catalog_names *out_names, struct error *error)
{
    return catalog->ops->list_tables(catalog->self, arena, namespace_name, out_names, error);
}

err catalog_find_by_uuid(const struct catalog *catalog, struct arena *arena, str uuid,
                         struct table_name *out_name, struct error *error)
{
    return catalog->ops->find_by_uuid(catalog->self, arena, uuid, out_name, error);
}
