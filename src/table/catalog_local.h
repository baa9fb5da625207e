/* catalog_local: the embedded catalog: pointers in SQL, metadata files in the warehouse's store.
 *
 * A commit loads the pointer, checks the requirements on what it points to, applies the updates,
 * writes the new metadata file durably, and then moves the pointer in one compare-and-swap; a
 * crash in between leaves an orphan file, never a dangling pointer. What was staged
 * (catalog_stage) is checked, applied and written already, for as long as the pointer stands where
 * it stood. A lost swap is checked and applied again on the new base. After the swap
 * `metadata/version-hint.text` is set to the new file, still under the table's lock, and trimmed
 * metadata files are removed. A commit that was sent twice is answered with the present table.
 * Tables lie under the prefixes of a location set and nowhere else.
 *
 * CONFLICT, INVALID, NOT_FOUND, DENIED, BUSY and IO mean surely not committed; UNKNOWN that it may
 * have been. A metadata file that is gone or unreadable is CORRUPT, unless it is one of the last
 * that were read or written: those are remembered, and never read again. Any thread; calls block.
 */
#ifndef LHBOX_TABLE_CATALOG_LOCAL_H
#define LHBOX_TABLE_CATALOG_LOCAL_H

#include "io/db.h"
#include "table/catalog.h"

enum {
    CATALOG_NAME_BYTES_MAX = 256,
    CATALOG_NAMESPACE_PARTS_MAX = 16,
    CATALOG_CHANGES_MAX = 256, /* tables in one transaction */
    CATALOG_LOCK_WAIT_US = 5000000,
};

struct catalog_local;

struct catalog_local_options {
    const struct db *db;
    const struct seam *seam;
    str warehouse;
    str tables_uri; /* where tables without a location of their own go */
    const struct location_set *locations;
};

/* What the options point to must live as long as the catalog, which lives in the arena. */
MUST_USE err catalog_local_open(struct arena *arena, const struct catalog_local_options *options,
                                struct catalog *out_catalog, struct error *error);
void catalog_local_close(struct catalog *catalog);
/* NULL when the catalog is of another kind. */
struct catalog_local *catalog_local_of(const struct catalog *catalog);
/* Whether its pointers are rows of this database: then no commit is durable without all that was
 * committed to the database before. */
bool catalog_local_is_in(const struct catalog_local *local, const struct db *db);

/* UTF-8 without control characters, 1 to CATALOG_NAME_BYTES_MAX bytes, not slashes alone. */
MUST_USE err catalog_check_name(str name, struct error *error);
MUST_USE err catalog_check_namespace(str namespace_name, struct error *error);

/* What a name stands for; the numbers are stored. */
enum catalog_item { CATALOG_TABLE, CATALOG_VIEW };

/* ---- tables ---- */

/* Whose commit it is: a client of ours may delete its files when our answer is lost (catalog_keep),
 * the roller never does. */
enum catalog_author { CATALOG_ROLLER, CATALOG_CLIENT };

/* One table of a commit. `request` is the REST spec's CommitTableRequest. */
struct catalog_change {
    struct table_name name;
    const json_t *request;
    enum catalog_author author;
    const struct catalog_staged *staged; /* of the same request; NULL: nothing is staged */
    struct table after;                  /* out; the caller closes it */
};
/* All or none. Each table at most once. */
MUST_USE err catalog_local_commit(struct catalog_local *local, struct arena *arena,
                                  struct catalog_change *changes, size_t count,
                                  struct error *error);
/* As catalog_stage and catalog_unstage. */
MUST_USE err catalog_local_stage(struct catalog_local *local, struct arena *arena,
                                 struct table_name name, const json_t *request,
                                 struct store_group *group, struct catalog_staged *out_staged,
                                 struct error *error);
void catalog_local_unstage(struct catalog_local *local, struct catalog_staged *staged);
/* The pointer alone. */
MUST_USE err catalog_local_find(struct catalog_local *local, struct arena *arena,
                                struct table_name name, str *out_metadata_location,
                                struct error *error);
enum catalog_register { CATALOG_REGISTER_NEW, CATALOG_REGISTER_OVERWRITE };
MUST_USE err catalog_local_register(struct catalog_local *local, struct arena *arena,
                                    struct table_name name, str metadata_location,
                                    enum catalog_register how, struct table *out_table,
                                    struct error *error);
/* A table or a view. CONFLICT: the other name is in use, by either. */
MUST_USE err catalog_local_rename(struct catalog_local *local, enum catalog_item item,
                                  struct table_name from, struct table_name to,
                                  struct error *error);
/* PURGE removes the files that the table's metadata names, below its location, after the pointer is
 * gone; `gc.enabled=false` keeps them. Works on a table whose metadata file is lost. */
enum catalog_files { CATALOG_FILES_KEEP, CATALOG_FILES_PURGE };
MUST_USE err catalog_local_drop(struct catalog_local *local, struct table_name name,
                                enum catalog_files files, struct error *error);

/* Ends the pointer and tells what it was; the files stay. */
MUST_USE err catalog_local_unregister(struct catalog_local *local, struct arena *arena,
                                      struct table_name name, struct table *out_table,
                                      struct error *error);
/* Until catalog_local_resume_trims old metadata files stay: whoever copies the tables' files finds
 * those that pointers and hints name. One pause at a time. */
void catalog_local_pause_trims(struct catalog_local *local);
/* They go now. */
void catalog_local_resume_trims(struct catalog_local *local);

/* ---- namespaces ---- */

/* `properties` is an object of strings, or NULL. CONFLICT: name_taken. */
MUST_USE err catalog_local_make_namespace(struct catalog_local *local, str name,
                                          const json_t *properties, struct error *error);
/* A new reference to an object of strings. */
MUST_USE err catalog_local_load_namespace(struct catalog_local *local, str name,
                                          json_t **out_properties, struct error *error);
/* Removes and sets; *out_changes is {"updated":[…],"removed":[…],"missing":[…]}, a new reference.
 */
MUST_USE err catalog_local_set_properties(struct catalog_local *local, str name,
                                          const json_t *removals, const json_t *updates,
                                          json_t **out_changes, struct error *error);
/* CONFLICT: it has tables or namespaces. */
MUST_USE err catalog_local_drop_namespace(struct catalog_local *local, str name,
                                          struct error *error);
/* The direct children (full names) of a namespace; of none when `parent` is empty. */
MUST_USE err catalog_local_children(struct catalog_local *local, struct arena *arena, str parent,
                                    struct catalog_names *out_names, struct error *error);

#endif
