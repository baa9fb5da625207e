#include "base/log.h"
#include "sink/restore_steps.h"
#include "sink/settings.h"
#include "sink/sweep.h"
#include "table/catalog_restore.h"

/* All sinks of a warehouse: first what the settings objects say of sinks, then each sink's recover.
 */

enum { RESTORE_PAGE = 100, RESTORE_SCRATCH_MIB_MAX = 64, RESTORE_REPORT_FIRST = 64 };

static err add_report(struct arena *arena, struct restore_report *report,
                      const struct restore_sink *sink, struct error *error)
{
    if (report->count == report->room) {
        size_t wider = report->room == 0 ? RESTORE_REPORT_FIRST : report->room * 2;
        struct restore_sink *sinks = arena_array(arena, wider, sizeof(*sinks));
        if (sinks == NULL) {
            return error_memory(error);
        }
        if (report->count > 0) {
            memcpy(sinks, report->sinks, report->count * sizeof(*sinks));
        }
        report->sinks = sinks;
        report->room = wider;
    }
    report->sinks[report->count++] = *sink;
    return OK;
}

/* ---- sinks by their settings objects ---- */

/* A table that was made after the copy has no pointer in it, but its hint lies in the store. */
static err restore_table(const struct roll_env *env, const struct ledger_sink *sink,
                         struct error *error)
{
    struct catalog_local *local = catalog_local_of(&env->warehouse->catalog);
    const struct table_name name = {sink->namespace_name, sink->table_name};
    if (local == NULL) {
        return OK;
    }
    return catalog_restore_table(local, env->warehouse->tables_uri, name, sink->table_uuid, error);
}

/* What is left of a creation that was cut off goes when it is old. */
static err remove_unmade(const struct roll_env *env, str sink_id, struct error *error)
{
    i64 deleted = 0;
    return sweep_settings(env, sink_id, &deleted, error);
}

static err restore_settings(const struct roll_env *env, struct arena *arena, str sink_id,
                            struct restore_sink *out_sink, bool *out_told, struct error *error)
{
    struct ledger_sink sink = {0};
    struct error told = {0};
    *out_told = false;
    err read = settings_read(&env->warehouse->files, arena, env->installation_id, sink_id, &sink,
                             &told);
    if (read == NOT_FOUND) {
        /* Its creation never ended, or nothing is known but its objects: a person decides. */
        return remove_unmade(env, sink_id, error);
    }
    /* The project may have been lost with the ledger, and made again. */
    sink.project = env->warehouse->project;
    if (read == OK && sink.state != SINK_DELETED) {
        read = restore_table(env, &sink, &told);
    }
    bool made = false;
    if (read == OK) {
        read = ledger_restore_sink(env->db, &sink, &made, &told);
    }
    if (read != OK && read != CORRUPT && read != CONFLICT) {
        return error_set(error, read, told.code, "%s", told.message);
    }
    if (read != OK) {
        *out_told = true;
        out_sink->end = RESTORE_LATER;
        out_sink->detail = str_copy(arena, str_from(told.message));
        log_error("sink_not_made_again", read, &told, sink_id);
        return OK;
    }
    out_sink->name = sink.name;
    out_sink->made = made && sink.state != SINK_DELETED;
    *out_told = sink.state == SINK_DELETED && !made;
    out_sink->end = sink.state == SINK_DELETED ? RESTORE_DELETED : RESTORE_LATER;
    return OK;
}

/* Objects that cannot be read for good say nothing; restore_settings tells. */
static err is_deleted(const struct roll_env *env, struct arena *arena, str sink_id,
                      bool *out_deleted, struct error *error)
{
    struct ledger_sink sink = {0};
    struct error told = {0};
    err read = settings_read(&env->warehouse->files, arena, env->installation_id, sink_id, &sink,
                             &told);
    *out_deleted = read == OK && sink.state == SINK_DELETED;
    bool said = read == OK || read == NOT_FOUND || read == CORRUPT;
    return said ? OK : error_set(error, read, told.code, "%s", told.message);
}

/* Deleted ones first: they give their table to others. */
static err restore_all_settings(const struct roll_env *env, struct arena *arena,
                                struct restore_report *report, struct error *error)
{
    str *ids = NULL;
    size_t count = 0;
    TRY(settings_list_sinks(&env->warehouse->files, arena, &ids, &count, error));
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < count; i++) {
            bool deleted = false;
            TRY(is_deleted(env, arena, ids[i], &deleted, error));
            if (deleted != (pass == 0)) {
                continue;
            }
            struct restore_sink told = {.sink_id = ids[i]};
            bool tell = false;
            TRY(restore_settings(env, arena, ids[i], &told, &tell, error));
            if (tell || told.made) {
                TRY(add_report(arena, report, &told, error));
            }
        }
    }
    return OK;
}

/* ---- each sink ---- */

/* What was told of a sink that was made again is told together with its recover. */
static err tell(struct arena *arena, struct restore_report *report, const struct restore_sink *sink,
                struct error *error)
{
    for (size_t i = 0; i < report->count; i++) {
        if (str_equal(report->sinks[i].sink_id, sink->sink_id)) {
            bool made = report->sinks[i].made;
            report->sinks[i] = *sink;
            report->sinks[i].made = made;
            return OK;
        }
    }
    return add_report(arena, report, sink, error);
}

static err restore_one(const struct roll_env *env, struct arena *arena,
                       const struct ledger_sink *sink, struct restore_report *report,
                       struct error *error)
{
    struct restore_sink told = {0};
    struct error why = {0};
    err recovered = restore_sink(env, arena, sink->id, &told, &why);
    if (recovered != OK) {
        log_error("sink_not_recovered", recovered, &why, sink->id);
        told = (struct restore_sink){.sink_id = str_copy(arena, sink->id),
                                     .name = str_copy(arena, sink->name),
                                     .end = RESTORE_LATER,
                                     .detail = str_copy(arena, str_from(why.message))};
    }
    if (told.end == RESTORE_DELETED) {
        return OK;
    }
    return tell(arena, report, &told, error);
}

err restore_warehouse(const struct roll_env *env, struct arena *arena, enum restore_which which,
                      struct restore_report *report, struct error *error)
{
    struct arena *page AUTO_ARENA = arena_create((size_t)RESTORE_SCRATCH_MIB_MAX * MIB);
    char last[64] = {0};
    str after = STR("");
    size_t count = RESTORE_PAGE;
    if (which == RESTORE_ALL) {
        TRY(restore_all_settings(env, arena, report, error));
    }
    while (count == RESTORE_PAGE) {
        struct ledger_sink *sinks = NULL;
        arena_reset(page);
        TRY(ledger_list_sinks(env->db, page, STR(""), env->warehouse->name, false, after,
                              RESTORE_PAGE, &sinks, &count, error));
        for (size_t i = 0; i < count; i++) {
            if (which == RESTORE_ALL || sinks[i].recovering) {
                TRY(restore_one(env, arena, &sinks[i], report, error));
            }
        }
        if (count > 0 && sinks[count - 1].id.size < sizeof(last)) {
            memcpy(last, sinks[count - 1].id.data, sinks[count - 1].id.size);
            after = (str){last, sinks[count - 1].id.size};
        }
    }
    return OK;
}
