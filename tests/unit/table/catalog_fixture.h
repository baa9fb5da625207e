/* catalog_fixture: a catalog over a real directory and a real database, for the tests of the
 * catalog.
 *
 * The database sits behind a door that a test can make fail: before it does anything, after it did
 * it, or by ending the process. */
#ifndef LHBOX_TEST_CATALOG_FIXTURE_H
#define LHBOX_TEST_CATALOG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "catalog_schema.h"
#include "table/catalog_local.h"

#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum fault { FAULT_NONE, FAULT_REFUSED, FAULT_LOST, FAULT_DONE_UNTOLD, FAULT_EXIT };

struct fixture {
    struct arena *arena;
    char directory[64];
    struct db inner;
    struct db db;     /* the door */
    atomic_int fault; /* of the next transact */
    atomic_int reads;
    struct location place;
    struct location_set locations;
    str tables_uri;
    struct catalog catalog;
    struct catalog_local *local;
    struct error error;
};

/* ---- the door ---- */

static err door_transact(void *self, db_body body, void *context, struct error *error)
{
    struct fixture *f = self;
    enum fault fault = (enum fault)atomic_exchange(&f->fault, FAULT_NONE);
    switch (fault) {
    case FAULT_NONE:
        return db_transact(&f->inner, body, context, error);
    case FAULT_REFUSED:
        return error_set(error, IO, ERROR_LEDGER_DOWN, "refused by the test");
    case FAULT_LOST:
        return error_set(error, UNKNOWN, ERROR_LEDGER_DOWN, "not done, and not told");
    case FAULT_DONE_UNTOLD: {
        err result = db_transact(&f->inner, body, context, error);
        return result == OK ? error_set(error, UNKNOWN, ERROR_LEDGER_DOWN, "done, and not told")
                            : result;
    }
    case FAULT_EXIT:
        _exit(9);
    }
    return CORRUPT;
}

static err door_read(void *self, db_body body, void *context, struct error *error)
{
    struct fixture *f = self;
    atomic_fetch_add(&f->reads, 1);
    return db_read(&f->inner, body, context, error);
}

static const struct db_ops DOOR = {.transact = door_transact, .read = door_read};

/* ---- set-up ---- */

static inline void must(struct fixture *f, err result)
{
    if (result != OK) {
        fail_msg("%s: %s", err_text(result), f->error.message);
    }
}

/* A second catalog over the same database and directory, as another process would have. */
static inline struct catalog open_catalog(struct fixture *f)
{
    struct catalog catalog = {0};
    const struct catalog_local_options options = {.db = &f->db,
                                                  .seam = seam_system(),
                                                  .warehouse = STR("garden"),
                                                  .tables_uri = f->tables_uri,
                                                  .locations = &f->locations};
    must(f, catalog_local_open(f->arena, &options, &catalog, &f->error));
    return catalog;
}

static inline int set_up(void **state)
{
    struct arena *arena = arena_create((size_t)512 * MIB);
    struct fixture *f = arena_alloc(arena, sizeof(*f));
    f->arena = arena;
    snprintf(f->directory, sizeof(f->directory), "/tmp/lhbox-catalog-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    str path = str_format(arena, "%s/lhbox.db", f->directory);
    must(f, db_open_sqlite(arena, path, seam_system(), &f->inner, &f->error));
    f->db = (struct db){&DOOR, f};
    must(f, db_transact(&f->db, make_schema, NULL, &f->error));
    str tables = str_format(arena, "%s/tables", f->directory);
    must(f, store_open_dir(arena, tables, &f->place.store, &f->error));
    f->tables_uri = location_from_path(arena, tables);
    f->place.prefix = f->tables_uri;
    f->locations = (struct location_set){&f->place, 1};
    f->catalog = open_catalog(f);
    f->local = catalog_local_of(&f->catalog);
    assert_non_null(f->local);
    must(f, catalog_create_namespace(&f->catalog, STR("demo"), &f->error));
    *state = f;
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;
    catalog_local_close(&f->catalog);
    store_close(&f->place.store);
    db_close(&f->inner);
    nftw(f->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_destroy(f->arena);
    return 0;
}

/* ---- short words ---- */

/* JSON with ' for ". The caller drops the reference. */
__attribute__((format(printf, 1, 2))) static inline json_t *json(const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    assert_true(size > 0 && (size_t)size < sizeof(text));
    for (int i = 0; i < size; i++) {
        text[i] = text[i] == '\'' ? '"' : text[i];
    }
    json_error_t why = {0};
    json_t *document = json_loads(text, 0, &why);
    if (document == NULL) {
        fail_msg("%s in %s", why.text, text);
    }
    return document;
}

#define SCHEMA                                                                                     \
    "{'type':'struct','fields':[{'id':1,'name':'id','required':true,'type':'long'},"               \
    "{'id':2,'name':'text','required':false,'type':'string'}]}"

static inline struct table_name demo(const char *name)
{
    return (struct table_name){STR("demo"), str_from(name)};
}

static inline struct table create(struct fixture *f, const char *name)
{
    json_auto_t *request = json("{'name':'%s','schema':" SCHEMA "}", name);
    struct table table = {0};
    must(f, catalog_create(&f->catalog, f->arena, demo(name), request, &table, &f->error));
    return table;
}

static inline struct table load(struct fixture *f, const char *name)
{
    struct table table = {0};
    must(f, catalog_load(&f->catalog, f->arena, demo(name), &table, &f->error));
    return table;
}

/* One commit of this text; the table after it is dropped. */
static inline err commit(struct fixture *f, const char *name, const char *text)
{
    json_auto_t *request = json("%s", text);
    AUTO_TABLE struct table after = {0};
    f->error = (struct error){0};
    return catalog_commit(&f->catalog, f->arena, demo(name), request, &after, &f->error);
}

static inline const char *path_of(struct fixture *f, str uri)
{
    assert_true(str_starts(uri, STR("file:///")));
    return str_copy(f->arena, str_slice(uri, 7, uri.size)).data;
}

/* A file below the table's location. */
static inline const char *table_path(struct fixture *f, const struct table *table, const char *name)
{
    str location = metadata_location(table->metadata);
    return path_of(f, str_format(f->arena, "%.*s/%s", STR_ARG(location), name));
}

static inline bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static inline str read_file(struct fixture *f, const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = arena_alloc(f->arena, MIB);
    size_t size = fread(bytes, 1, MIB, file);
    fclose(file);
    return (str){bytes, size};
}

static size_t files_counted;
static const char *files_wanted;

static int count_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)walk;
    files_counted += type == FTW_F && strstr(path, files_wanted) != NULL ? 1 : 0;
    return 0;
}

/* Files below the catalog's directory whose path contains the text. */
static inline size_t count_files(struct fixture *f, const char *wanted)
{
    files_counted = 0;
    files_wanted = wanted;
    nftw(f->directory, count_one, 16, FTW_PHYS);
    return files_counted;
}

#define assert_str(found, wanted) assert_true(str_equal((found), STR(wanted)))

#endif
