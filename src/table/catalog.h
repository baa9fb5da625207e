/* catalog: where tables are found and committed, behind a seam (embedded, external REST).
 *
 * A namespace is its parts joined by the byte 0x1F. A commit is the REST spec's request; its answer
 * decides nothing for a roll (exactly-once I11): load and look. Calls block; any thread. */
#ifndef LHBOX_TABLE_CATALOG_H
#define LHBOX_TABLE_CATALOG_H

#include "table/location.h"
#include "table/metadata_text.h"

#define CATALOG_NAMESPACE_SEPARATOR '\x1f'

struct table_name {
    str namespace_name;
    str name;
};

/* One loaded version of a table. table_close drops the document. */
struct table {
    struct metadata *metadata;
    str metadata_location; /* in the arena of the load */
};
void table_close(struct table *table);
#define AUTO_TABLE __attribute__((cleanup(table_close)))

struct catalog_names {
    str *names; /* namespaces in joined form, or table names */
    size_t count;
};

/* The next version of a table, as a commit would make it, whose file waits in a group. */
struct catalog_staged {
    struct metadata_text *after; /* NULL: nothing is staged */
    str from;                    /* the file of the version that it follows */
    str file;
};

struct catalog_ops {
    err (*load)(void *self, struct arena *arena, struct table_name name, struct table *out_table,
                struct error *error);
    err (*commit)(void *self, struct arena *arena, struct table_name name, const json_t *request,
                  struct table *out_after, struct error *error);
    /* NULL, with what follows: a commit alone writes what it names. */
    err (*stage)(void *self, struct arena *arena, struct table_name name, const json_t *request,
                 struct store_group *group, struct catalog_staged *out_staged, struct error *error);
    err (*commit_staged)(void *self, struct arena *arena, struct table_name name,
                         const json_t *request, struct catalog_staged *staged,
                         struct table *out_after, struct error *error);
    void (*unstage)(void *self, struct catalog_staged *staged);
    err (*create)(void *self, struct arena *arena, struct table_name name, const json_t *request,
                  struct table *out_table, struct error *error);
    err (*drop)(void *self, struct table_name name, struct error *error);
    err (*create_namespace)(void *self, str namespace_name, struct error *error);
    err (*list_namespaces)(void *self, struct arena *arena, struct catalog_names *out_names,
                           struct error *error);
    err (*list_tables)(void *self, struct arena *arena, str namespace_name,
                       struct catalog_names *out_names, struct error *error);
    err (*find_by_uuid)(void *self, struct arena *arena, str uuid, struct table_name *out_name,
                        struct error *error);
};

struct catalog {
    const struct catalog_ops *ops;
    void *self;
};

/* NOT_FOUND: table_not_found or namespace_not_found, surely. */
MUST_USE err catalog_load(const struct catalog *catalog, struct arena *arena,
                          struct table_name name, struct table *out_table, struct error *error);
/* CONFLICT, INVALID, NOT_FOUND: surely not committed. UNKNOWN: it may have been. */
MUST_USE err catalog_commit(const struct catalog *catalog, struct arena *arena,
                            struct table_name name, const json_t *request, struct table *out_after,
                            struct error *error);
/* Puts into the group what the commit of this request would write now, so that it becomes durable
 * with the group's other files. Promises nothing: what the commit would say is left to it, and
 * where nothing can be staged nothing is. */
void catalog_stage(const struct catalog *catalog, struct arena *arena, struct table_name name,
                   const json_t *request, struct store_group *group,
                   struct catalog_staged *out_staged);
/* As catalog_commit, with what was staged of the same request, once its group has ended well; it is
 * used where the table is still the version that it follows, and gone either way. */
MUST_USE err catalog_commit_staged(const struct catalog *catalog, struct arena *arena,
                                   struct table_name name, const json_t *request,
                                   struct catalog_staged *staged, struct table *out_after,
                                   struct error *error);
/* No commit of it was sent. */
void catalog_unstage(const struct catalog *catalog, struct catalog_staged *staged);
/* `request` is a CreateTableRequest. CONFLICT when it exists. */
MUST_USE err catalog_create(const struct catalog *catalog, struct arena *arena,
                            struct table_name name, const json_t *request, struct table *out_table,
                            struct error *error);
MUST_USE err catalog_drop(const struct catalog *catalog, struct table_name name,
                          struct error *error);
/* OK also when it exists. */
MUST_USE err catalog_create_namespace(const struct catalog *catalog, str namespace_name,
                                      struct error *error);
MUST_USE err catalog_list_namespaces(const struct catalog *catalog, struct arena *arena,
                                     struct catalog_names *out_names, struct error *error);
/* NOT_FOUND: no such namespace. */
MUST_USE err catalog_list_tables(const struct catalog *catalog, struct arena *arena,
                                 str namespace_name, struct catalog_names *out_names,
                                 struct error *error);
/* The present name of a table that may have been renamed. */
MUST_USE err catalog_find_by_uuid(const struct catalog *catalog, struct arena *arena, str uuid,
                                  struct table_name *out_name, struct error *error);

#endif
