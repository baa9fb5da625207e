/* catalog_rows: the embedded catalog's SQL: namespaces, and the pointer of each table and view to
 * its metadata.
 *
 * Tables and views have one set of names: a name is either's or free. Every function is one
 * transaction of its own. A pointer moves by compare-and-swap only, all pointers of one commit in
 * one transaction (exactly-once I32). A namespace need not have its parents: `a` exists when `a.b`
 * was made. Message texts are the ones that REST clients compare. Any thread. */
#ifndef LHBOX_TABLE_CATALOG_ROWS_H
#define LHBOX_TABLE_CATALOG_ROWS_H

#include "table/catalog_local.h"

struct catalog_rows {
    const struct db *db;
    str warehouse;
};

struct catalog_pointer {
    str uuid;
    str metadata_location;
};

/* One pointer to move. `from` empty: the name is given to it, and must be free. */
struct catalog_swap {
    struct table_name name;
    enum catalog_item item;
    str uuid;
    str from;
    str to;
};

/* ---- tables and views ---- */

/* NOT_FOUND: table_not_found or view_not_found, when the namespace is missing too. */
MUST_USE err catalog_rows_find(const struct catalog_rows *rows, struct arena *arena,
                               enum catalog_item item, struct table_name name,
                               struct catalog_pointer *out_pointer, struct error *error);
/* CONFLICT when the name is in use, said as clients expect it for who wants to make the item. */
MUST_USE err catalog_rows_check_free(const struct catalog_rows *rows, enum catalog_item item,
                                     struct table_name name, struct error *error);
MUST_USE err catalog_rows_find_by_uuid(const struct catalog_rows *rows, struct arena *arena,
                                       str uuid, struct table_name *out_name, struct error *error);
/* All or none. CONFLICT: commit_conflict when a pointer had moved, table_exists or name_taken when
 * a name is in use. NOT_FOUND: namespace_not_found. UNKNOWN: it may have been done. */
MUST_USE err catalog_rows_swap(const struct catalog_rows *rows, const struct catalog_swap *swaps,
                               size_t count, struct error *error);
/* Points the name at other metadata, whatever the pointer was before. */
MUST_USE err catalog_rows_replace(const struct catalog_rows *rows, const struct catalog_swap *swap,
                                  struct error *error);
MUST_USE err catalog_rows_rename(const struct catalog_rows *rows, enum catalog_item item,
                                 struct table_name from, struct table_name to, struct error *error);
MUST_USE err catalog_rows_drop(const struct catalog_rows *rows, enum catalog_item item,
                               struct table_name name, struct error *error);
/* In byte order. */
MUST_USE err catalog_rows_list(const struct catalog_rows *rows, struct arena *arena,
                               enum catalog_item item, str namespace_name,
                               struct catalog_names *out_names, struct error *error);

/* ---- namespaces ---- */

/* CONFLICT: name_taken. `properties` is the text of a JSON object. */
MUST_USE err catalog_rows_create_namespace(const struct catalog_rows *rows, str name,
                                           str properties, struct error *error);
/* The text of the properties' JSON object. NOT_FOUND: namespace_not_found. */
MUST_USE err catalog_rows_load_namespace(const struct catalog_rows *rows, struct arena *arena,
                                         str name, str *out_properties, struct error *error);
/* CONFLICT: the properties are no longer `from`. */
MUST_USE err catalog_rows_swap_properties(const struct catalog_rows *rows, str name, str from,
                                          str to, struct error *error);
/* CONFLICT: not empty. */
MUST_USE err catalog_rows_drop_namespace(const struct catalog_rows *rows, str name,
                                         struct error *error);
/* Names as stored, in byte order; without parents that only their children imply. */
MUST_USE err catalog_rows_list_namespaces(const struct catalog_rows *rows, struct arena *arena,
                                          struct catalog_names *out_names, struct error *error);

#endif
