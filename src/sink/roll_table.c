#include "base/planted.h"
#include "sink/attach.h"
#include "sink/restore.h"
#include "sink/roll_steps.h"
#include "table/catalog_restore.h"

static struct table_name sink_table(const struct roll *roll)
{
    return (struct table_name){.namespace_name = roll->sink.namespace_name,
                               .name = roll->sink.table_name};
}

static bool is_claimed(const struct roll *roll, const struct table *table)
{
    return str_equal(metadata_uuid(table->metadata), roll->sink.table_uuid);
}

/* The claimed table may live on under another name. */
static err find_renamed(struct roll *roll, enum roll_place otherwise, enum roll_place *out_place,
                        struct table *out_table, struct error *error)
{
    struct error ignored = {0};
    struct table_name name = {0};
    err found = catalog_find_by_uuid(&roll->env->warehouse->catalog, roll->arena,
                                     roll->sink.table_uuid, &name, &ignored);
    if (found == NOT_FOUND) {
        *out_place = otherwise;
        return OK;
    }
    if (found != OK) {
        return error_set(error, found, ignored.code, "%s", ignored.message);
    }
    struct table table = {0};
    TRY(catalog_load(&roll->env->warehouse->catalog, roll->arena, name, &table, error));
    if (!is_claimed(roll, &table)) {
        table_close(&table);
        *out_place = otherwise;
        return OK;
    }
    err renamed = ledger_rename_table(roll->env->db, roll->sink.id, name.namespace_name, name.name,
                                      error);
    if (renamed != OK) {
        table_close(&table);
        return renamed;
    }
    roll->sink.namespace_name = name.namespace_name;
    roll->sink.table_name = name.name;
    *out_place = ROLL_PLACE_TABLE;
    *out_table = table;
    return OK;
}

err roll_find_table(struct roll *roll, enum roll_place *out_place, struct table *out_table,
                    struct error *error)
{
    struct error told = {0};
    struct table table = {0};
    err loaded = catalog_load(&roll->env->warehouse->catalog, roll->arena, sink_table(roll), &table,
                              &told);
    if (loaded == NOT_FOUND) {
        return find_renamed(roll, ROLL_PLACE_GONE, out_place, out_table, error);
    }
    if (loaded != OK) {
        return error_set(error, loaded, told.code, "loading the table: %s", told.message);
    }
    if (!is_claimed(roll, &table)) {
        table_close(&table);
        return find_renamed(roll, ROLL_PLACE_REPLACED, out_place, out_table, error);
    }
    *out_place = ROLL_PLACE_TABLE;
    *out_table = table;
    return OK;
}

static err check_table(struct roll *roll, const struct table *table, enum roll_step *out_step,
                       struct error *error)
{
    struct error refusal = {0};
    err fits = attach_check_locations(roll->arena, roll->env->warehouse, table->metadata, &refusal);
    const char *reason = "location_refused";
    if (fits == OK) {
        fits = attach_check(roll->arena, table->metadata, &refusal);
        reason = "schema_unsupported";
    }
    *out_step = STEP_GO;
    if (fits == OK) {
        return OK;
    }
    if (fits != DENIED) {
        return error_set(error, fits, refusal.code, "%s", refusal.message);
    }
    return roll_disable(roll, reason, str_from(refusal.message), out_step, error);
}

err roll_open_table(struct roll *roll, struct table *out_table, enum roll_step *out_step,
                    struct error *error)
{
    struct table table = {0};
    enum roll_place place = ROLL_PLACE_GONE;
    TRY(roll_find_table(roll, &place, &table, error));
    switch (place) {
    case ROLL_PLACE_GONE:
        return roll_disable(roll, "table_gone", STR("the table is not in the catalog any more"),
                            out_step, error);
    case ROLL_PLACE_REPLACED:
        return roll_disable(roll, "table_replaced",
                            STR("another table has the name of the sink's table"), out_step, error);
    case ROLL_PLACE_TABLE:
        break;
    }
    err checked = check_table(roll, &table, out_step, error);
    if (checked != OK || *out_step != STEP_GO) {
        table_close(&table);
        return checked;
    }
    *out_table = table;
    return OK;
}

enum plan_reading roll_judge(const struct roll *roll, const struct ledger_plan *plan,
                             const struct table *table)
{
    PLANTED_RETURN(1, enum plan_reading, roll, plan, table);
    PLANTED_RETURN(5, enum plan_reading, roll, plan, table);
    return plan_judge(roll->env->installation_id, &roll->sink, plan,
                      metadata_property(table->metadata, METADATA_ROLL_PROPERTY));
}

err roll_mismatch(struct roll *roll, enum plan_reading reading, const struct table *table,
                  enum roll_step *out_step, struct error *error)
{
    if (reading == PLAN_READS_AHEAD) {
        /* Either another roller has finished it meanwhile, or the ledger is an older copy: the next
         * look goes on with the plan that is there, or recovers. */
        bool behind = false;
        TRY(restore_note_ahead(roll->env, &roll->sink, table, &behind, error));
        *out_step = behind ? STEP_AGAIN : STEP_LATER;
        return OK;
    }
    str text = metadata_property(table->metadata, METADATA_ROLL_PROPERTY);
    str detail = str_format(
        roll->arena, "%s: the table's %s is %.*s, the ledger's last roll is %lld (%.*s)",
        reading == PLAN_READS_AHEAD ? "the table is ahead of the ledger" : "the table disagrees",
        METADATA_ROLL_PROPERTY, STR_ARG(text.data == NULL ? STR("absent") : text),
        (long long)roll->sink.last_n, STR_ARG(roll->sink.last_plan_id));
    if (detail.data == NULL) {
        return error_memory(error);
    }
    bool disabled = false;
    TRY(ledger_note_mismatch(roll->env->db, roll->sink.id, detail, &disabled, error));
    *out_step = disabled ? STEP_DISABLED : STEP_LATER;
    return OK;
}

err roll_match(struct roll *roll, struct error *error)
{
    if (roll->sink.mismatch_at == 0) {
        return OK;
    }
    TRY(ledger_clear_mismatch(roll->env->db, roll->sink.id, error));
    roll->sink.mismatch_at = 0;
    return OK;
}

void roll_stage(struct roll *roll, const json_t *request, struct catalog_staged *out_staged)
{
    catalog_stage(&roll->env->warehouse->catalog, roll->arena, sink_table(roll), request,
                  roll->group, out_staged);
}

void roll_send(struct roll *roll, const json_t *request, struct catalog_staged *staged,
               struct table *out_after)
{
    struct error ignored = {0};
    struct table after = {0};
    struct catalog_staged none = {0};
    err sent = catalog_commit_staged(&roll->env->warehouse->catalog, roll->arena, sink_table(roll),
                                     request, staged != NULL ? staged : &none, &after, &ignored);
    PLANTED_ACT(22, sent == CONFLICT, roll, NULL, NULL);
    if (sent == OK) {
        *out_after = after;
    }
}

err roll_point_store(const struct roll *roll, struct error *error)
{
    struct catalog_local *local = catalog_local_of(&roll->env->warehouse->catalog);
    return local == NULL ? OK : catalog_restore_hint(local, sink_table(roll), error);
}
