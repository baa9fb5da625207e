#include "sink/roll_steps.h"

/* Between rolls: the manifests of a table's many small rolls packed into few (table/merge.h). To
 * the protocol that is what a compaction of somebody else is: it leaves the property alone, asserts
 * the base that it read, and may land, fail or come late as it likes. So there is no try after the
 * first, no judging, and nothing to settle: the next look at the table merges what is left. What a
 * request names stays in the store whatever was answered, for it may be in the table. */

enum { MERGE_ARENA_MIB_MAX = 512 };

/* A sink at rest: with a live plan the roll has the table, and what stopped others is theirs. */
static bool is_at_rest(const struct ledger_sink *sink)
{
    return sink->state == SINK_ACTIVE && sink->claim_state == CLAIM_CLAIMED && !sink->recovering &&
           !sink->has_live_plan;
}

/* The table is where the ledger left it. */
static bool is_ours(const struct roll *roll, const struct table *table)
{
    return plan_judge(roll->env->installation_id, &roll->sink, NULL,
                      metadata_property(table->metadata, METADATA_ROLL_PROPERTY)) ==
           PLAN_READS_NOT_COMMITTED;
}

MUST_USE static err merge(struct roll *roll, const struct table *table, struct error *error)
{
    json_t *request = NULL;
    TRY(commit_merge(roll->arena, &roll->env->warehouse->locations, table, roll->env->seam,
                     &request, error));
    if (request != NULL) {
        struct table after AUTO_TABLE = {0};
        roll_send(roll, request, NULL, &after);
        json_decref(request);
    }
    return OK;
}

/* Other rollers leave the table alone meanwhile. */
MUST_USE static err merge_under_lease(struct roll *roll, const struct table *table,
                                      struct error *error)
{
    struct error told = {0};
    err leased = roll_keep_lease(roll, &told);
    if (leased != OK) {
        return leased == BUSY ? OK : error_set(error, leased, told.code, "%s", told.message);
    }
    err merged = merge(roll, table, error);
    struct error ignored = {0};
    err released = ledger_release_lease(roll->env->db, roll->sink.id, roll->env->holder, &ignored);
    (void)released;
    return merged;
}

err roll_merge(const struct roll_env *env, str sink_id, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)MERGE_ARENA_MIB_MAX * MIB);
    struct table table AUTO_TABLE = {0};
    struct roll roll = {.env = env, .arena = arena};
    enum roll_place place = ROLL_PLACE_GONE;
    TRY(roll_read_sink(&roll, sink_id, error));
    if (!is_at_rest(&roll.sink) || roll_stopping(&roll)) {
        return OK;
    }
    TRY(roll_find_table(&roll, &place, &table, error));
    if (place != ROLL_PLACE_TABLE || !is_ours(&roll, &table) || !commit_merge_due(&table)) {
        return OK;
    }
    return merge_under_lease(&roll, &table, error);
}
