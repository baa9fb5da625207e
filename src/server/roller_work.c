#include "base/log.h"
#include "server/process.h"
#include "server/roller_private.h"
#include "sink/orphan.h"
#include "sink/sweep.h"

/* The workers: one job on one sink at a time. */

#define LATER_US     (10 * TIME_SECOND_US) /* the next tick of a sink whose roll could not end */
#define ELSEWHERE_US (5 * TIME_SECOND_US)
#define STOPPED_US   (60 * TIME_SECOND_US) /* a disabled sink with a plan to settle */

/* How long the sink is left alone after this end. */
static i64 pause_after(enum roll_end end, enum policy_trigger trigger)
{
    switch (end) {
    case ROLL_NOTHING:
        return trigger == POLICY_SETTLE ? STOPPED_US : 0;
    case ROLL_ENDED:
    case ROLL_DISABLED:
        return 0;
    case ROLL_LATER:
        return LATER_US;
    case ROLL_ELSEWHERE:
        return ELSEWHERE_US;
    }
    return 0;
}

static void give_back(struct roller *roller, struct roller_entry *entry, i64 pause_us)
{
    i64 now = roller_now(roller);
    pthread_mutex_lock(&roller->lock);
    entry->busy = false;
    entry->touched = true;
    entry->wants_answers = true;
    if (pause_us > 0) {
        entry->look_floor = now + pause_us;
    }
    pthread_cond_broadcast(&roller->freed);
    pthread_mutex_unlock(&roller->lock);
    roller_poke(roller);
}

/* False while a backup copies the store: whoever wanted to delete comes again. */
static bool may_delete(struct roller *roller)
{
    return !atomic_load(&roller->deletes_paused) && pthread_rwlock_tryrdlock(&roller->deletes) == 0;
}

/* Right after a roll: its objects are the store's largest part. */
static void delete_objects(const struct roll_env *env)
{
    struct error told = {0};
    i64 deleted = 0;
    err swept = sweep_objects(env, &deleted, &told);
    if (swept != OK) {
        log_error("objects_not_swept", swept, &told, env->warehouse->name);
    }
}

static void roll(struct roller *roller, struct roller_entry *entry)
{
    struct roll_env env = roller_env(roller, entry->warehouse);
    struct error told = {0};
    enum roll_end end = ROLL_LATER;
    err rolled = roll_sink(&env, entry->id, policy_trigger_text(entry->trigger), &end, &told);
    if (rolled != OK) {
        log_error("roll_not_ended", rolled, &told, entry->id);
    }
    if (end == ROLL_DISABLED) {
        log_event(LOG_WARN, "sink_disabled", LOG_S("sink", entry->id));
    }
    /* Whoever waits for the rows is told before the objects go. */
    enum policy_trigger trigger = entry->trigger;
    if (end == ROLL_ENDED) {
        entry->wants_sweep = true;
    }
    const struct warehouse *warehouse = entry->warehouse;
    give_back(roller, entry, pause_after(end, trigger));
    if (end == ROLL_ENDED) {
        env.warehouse = warehouse;
        if (may_delete(roller)) {
            delete_objects(&env);
            pthread_rwlock_unlock(&roller->deletes);
        }
    }
}

static void recover(struct roller *roller, struct roller_entry *entry)
{
    struct roll_env env = roller_env(roller, entry->warehouse);
    struct recover_report report = {0};
    struct ledger_sink sink = {.id = entry->id, .state = SINK_DELETING};
    recover_sink(&env, &sink, &report);
    entry->wants_sweep = true;
    give_back(roller, entry, report.deleted > 0 ? 0 : LATER_US);
}

static void try_sweep(const char *event, err swept, const struct error *told, str sink_id)
{
    if (swept != OK) {
        log_error(event, swept, told, sink_id);
    }
}

static void sweep(struct roller *roller, struct roller_entry *entry)
{
    struct roll_env env = roller_env(roller, entry->warehouse);
    struct error told = {0};
    i64 deleted = 0;
    try_sweep("verdicts_not_written", recover_verdicts(&env, entry->id, &told), &told, entry->id);
    error_clear(&told);
    try_sweep("rejects_not_swept", sweep_rejects(&env, entry->id, &deleted, &told), &told,
              entry->id);
    error_clear(&told);
    delete_objects(&env);
    try_sweep("manifests_not_merged", roll_merge(&env, entry->id, &told), &told, entry->id);
    error_clear(&told);
    i64 now = roller_now(roller);
    if (entry->swept_at == 0 || now - entry->swept_at >= 3600 * TIME_SECOND_US) {
        try_sweep("plans_not_swept", sweep_plan_objects(&env, entry->id, &deleted, &told), &told,
                  entry->id);
        error_clear(&told);
        try_sweep("settings_not_swept", sweep_settings(&env, entry->id, &deleted, &told), &told,
                  entry->id);
        error_clear(&told);
        try_sweep("held_not_looked_at", sweep_held(&env, entry->id, &told), &told, entry->id);
        error_clear(&told);
        struct orphan_report orphans = {0};
        try_sweep("orphans_not_collected", orphan_collect(&env, entry->id, &orphans, &told), &told,
                  entry->id);
        error_clear(&told);
        try_sweep("rows_not_swept", sweep_rows(env.db, &told), &told, entry->id);
        entry->swept_at = now;
    }
}

static void housekeep(struct roller *roller, struct roller_entry *entry)
{
    if (may_delete(roller)) {
        sweep(roller, entry);
        pthread_rwlock_unlock(&roller->deletes);
    } else {
        entry->wants_sweep = true;
    }
    give_back(roller, entry, 0);
}

void *roller_work_run(void *context)
{
    struct roller *roller = context;
    process_step_back(); /* who waits for an answer comes first */
    struct roller_entry *entry = queue_pop(roller->jobs, -1);
    while (entry != NULL) {
        if (atomic_load(&roller->stopping)) {
            give_back(roller, entry, 0);
        } else {
            switch (entry->job) {
            case ROLLER_ROLL:
                roll(roller, entry);
                break;
            case ROLLER_RECOVER:
                recover(roller, entry);
                break;
            case ROLLER_HOUSEKEEP:
                housekeep(roller, entry);
                break;
            }
        }
        entry = queue_pop(roller->jobs, -1);
    }
    return NULL;
}
