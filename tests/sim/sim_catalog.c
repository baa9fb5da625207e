#include "sim.h"

#include "base/assert.h"
#include "table/document.h"
#include "table/metadata_file.h"

#include <stdio.h>

/* The catalog's seam. Scaled out, the catalog is a service of its own: each call is atomic, its
 * answer may be lost, late, old or misleading. Embedded, every process runs the real one over its
 * own faulty ledger and store. */

static void sink_table_of(struct table_name name, char out[64])
{
    int size = snprintf(out, 64, "%.*s", STR_ARG(name.name));
    assert(size > 0);
}

/* ---- old versions ---- */

/* Half of the time the one before the present, unless that is long ago. */
static const struct sim_version *old_version(str uuid, i64 age)
{
    const struct sim_version *found = NULL;
    const struct sim_version *present = NULL;
    const struct sim_version *before = NULL;
    for (size_t i = 0; i < sim->version_count; i++) {
        const struct sim_version *version = &sim->versions[i];
        if (str_equal(str_from(sim->tables[version->table].uuid), uuid)) {
            before = present;
            present = version;
            found = version->at <= sim->now - age ? version : found;
        }
    }
    bool recent = before != NULL && sim->now - present->at < sim->horizon / 12;
    return recent && sim_below(2) == 0 ? before : found;
}

/* What was current `age` ago, if its file is still there. */
static bool load_old(str uuid, i64 age, struct arena *arena, struct table *out_table)
{
    const struct sim_version *found = old_version(uuid, age);
    if (found == NULL || !sim_is_there(arena, found->location) ||
        !str_equal(metadata_uuid(found->metadata), uuid)) {
        return false;
    }
    *out_table = (struct table){metadata_share(found->metadata), str_copy(arena, found->location)};
    return true;
}

static err sim_load(void *self, struct arena *arena, struct table_name name,
                    struct table *out_table, struct error *error)
{
    (void)self;
    char about[64];
    sink_table_of(name, about);
    enum sim_fault fault = sim_strike(SIM_ALLOW(SIM_FAULT_STALE), "catalog: load", str_from(about));
    if (fault == SIM_FAULT_BEFORE || fault == SIM_FAULT_DIE_BEFORE) {
        return sim_failed(SIM_FAULT_BEFORE, error);
    }
    struct table table = {0};
    TRY(catalog_load(&sim->catalog, arena, name, &table, error));
    if (fault == SIM_FAULT_STALE) {
        struct table old = {0};
        i64 most = sim_below(2) == 0 ? 4500000 : sim->horizon / 12;
        i64 age = sim_between(100000, most);
        if (load_old(metadata_uuid(table.metadata), age, arena, &old)) {
            table_close(&table);
            table = old;
        }
    }
    *out_table = table;
    sim_after(fault);
    return OK;
}

/* ---- commits ---- */

struct late_commit {
    struct table_name name;
    json_t *request;
    i64 *place; /* in late_bases; NULL: there was no room */
};

bool sim_commit_under_way(void)
{
    for (size_t i = 0; i < SIM_LATE_MAX; i++) {
        if (sim->late_bases[i] != 0) {
            return true;
        }
    }
    return false;
}

static i64 *note_base(const json_t *request)
{
    const json_t *requirements = json_object_get(request, "requirements");
    i64 base = -1;
    for (size_t i = 0; i < json_array_size(requirements); i++) {
        const json_t *requirement = json_array_get(requirements, i);
        if (str_equal(document_text(requirement, "type"), STR("assert-ref-snapshot-id"))) {
            base = document_i64_or(requirement, "snapshot-id", -1);
        }
    }
    for (size_t i = 0; i < SIM_LATE_MAX; i++) {
        if (sim->late_bases[i] == 0) {
            sim->late_bases[i] = base;
            return &sim->late_bases[i];
        }
    }
    return NULL;
}

static err commit_now(struct arena *arena, struct table_name name, const json_t *request,
                      struct table *out_after, struct error *error)
{
    TRY(catalog_commit(&sim->catalog, arena, name, request, out_after, error));
    sim_table_observe(out_after);
    return OK;
}

static void late_commit_lands(void *argument)
{
    struct late_commit *late = argument;
    if (late->place != NULL) {
        *late->place = 0;
    }
    if (!sim->stopping) {
        AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
        AUTO_TABLE struct table after = {0};
        struct error error = {0};
        err result = commit_now(arena, late->name, late->request, &after, &error);
        sim_trace("  late: commit to %.*s: %s %s", STR_ARG(late->name.name), err_text(result),
                  error.message);
    }
    json_decref(late->request);
}

static void send_late(struct table_name name, const json_t *request)
{
    struct late_commit *late = arena_alloc(sim->arena, sizeof(*late));
    assert(late != NULL);
    late->name = (struct table_name){str_copy(sim->arena, name.namespace_name),
                                     str_copy(sim->arena, name.name)};
    late->request = json_deep_copy(request);
    late->place = note_base(request);
    sim_later(sim_late_delay(), late_commit_lands, late);
}

static err sim_commit(void *self, struct arena *arena, struct table_name name,
                      const json_t *request, struct table *out_after, struct error *error)
{
    (void)self;
    char about[64];
    sink_table_of(name, about);
    if (!sim_dead()) {
        sim_check_commit(request);
    }
    enum sim_fault fault = sim_strike(SIM_ALLOW(SIM_FAULT_LOST) | SIM_ALLOW(SIM_FAULT_DONE) |
                                          SIM_ALLOW(SIM_FAULT_LATE) | SIM_ALLOW(SIM_FAULT_REFUSED),
                                      "catalog: commit", str_from(about));
    if (fault == SIM_FAULT_LOST || fault == SIM_FAULT_DIE_BEFORE) {
        return sim_failed(SIM_FAULT_LOST, error);
    }
    if (fault == SIM_FAULT_BEFORE) {
        return sim_failed(SIM_FAULT_REFUSED, error);
    }
    if (fault == SIM_FAULT_LATE) {
        send_late(name, request);
        return sim_failed(fault, error);
    }
    struct table after = {0};
    err result = commit_now(arena, name, request, &after, error);
    sim_trace("    -> %s", err_text(result));
    if (fault == SIM_FAULT_DONE || fault == SIM_FAULT_REFUSED || fault == SIM_FAULT_DIE_AFTER) {
        table_close(&after);
        sim_after(fault);
        if (error != NULL) {
            error_clear(error);
        }
        return sim_failed(fault, error);
    }
    if (result == OK) {
        *out_after = after;
    }
    return result;
}

static err sim_find_by_uuid(void *self, struct arena *arena, str uuid, struct table_name *out_name,
                            struct error *error)
{
    (void)self;
    enum sim_fault fault = sim_strike(0, "catalog: find", uuid);
    if (fault == SIM_FAULT_BEFORE || fault == SIM_FAULT_DIE_BEFORE) {
        return sim_failed(SIM_FAULT_BEFORE, error);
    }
    TRY(catalog_find_by_uuid(&sim->catalog, arena, uuid, out_name, error));
    sim_after(fault);
    return OK;
}

static err sim_list_tables(void *self, struct arena *arena, str namespace_name,
                           struct catalog_names *out_names, struct error *error)
{
    (void)self;
    return catalog_list_tables(&sim->catalog, arena, namespace_name, out_names, error);
}

static const struct catalog_ops OPS = {
    .load = sim_load,
    .commit = sim_commit,
    .find_by_uuid = sim_find_by_uuid,
    .list_tables = sim_list_tables,
};

/* ---- opening ---- */

static struct catalog_local_options options_of(const struct db *db, const struct seam *seam,
                                               const struct location_set *locations)
{
    return (struct catalog_local_options){.db = db,
                                          .seam = seam,
                                          .warehouse = STR("w"),
                                          .tables_uri = STR("s3://w/tables"),
                                          .locations = locations};
}

struct catalog sim_catalog(struct sim_process *process)
{
    if (!sim->embedded) {
        return (struct catalog){&OPS, process};
    }
    struct catalog catalog = {0};
    const struct catalog_local_options options = options_of(&process->db, &process->seam,
                                                            &process->locations);
    err opened = catalog_local_open(sim->arena, &options, &catalog, NULL);
    assert(opened == OK);
    return catalog;
}

void sim_catalog_close(void)
{
    for (size_t i = 0; i < sim->process_count && sim->embedded; i++) {
        catalog_local_close(&sim->processes[i]->warehouse.catalog);
    }
    catalog_local_close(&sim->catalog);
}

err sim_catalog_open(void)
{
    const struct catalog_local_options options = options_of(&sim->apart_db, &sim->quiet_seam,
                                                            &sim->raw_locations);
    return catalog_local_open(sim->arena, &options, &sim->catalog, NULL);
}
