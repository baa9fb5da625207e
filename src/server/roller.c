#include "server/roller.h"

#include "base/assert.h"
#include "base/crew.h"
#include "base/log.h"
#include "server/process.h"
#include "server/roller_private.h"
#include "sink/orphan.h"
#include "sink/restore.h"

i64 roller_now(const struct roller *roller)
{
    return seam_monotonic_us(roller->options.seam);
}

/* One poke in the queue is enough: the tick looks at everything that was touched. */
void roller_poke(struct roller *roller)
{
    if (!atomic_exchange(&roller->poked, true)) {
        bool pushed = queue_push(roller->pokes, roller);
        (void)pushed; /* closed: the roller is stopping */
    }
}

struct roller_entry *roller_entry_of(struct roller *roller, str sink_id)
{
    const u64 *known = map_get(roller->places, sink_id);
    if (known != NULL) {
        return roller->entries[*known];
    }
    if (roller->entry_count == ROLLER_SINKS_MAX || sink_id.size > ROLLER_ID_MAX) {
        return NULL;
    }
    struct roller_entry *entry = arena_alloc(roller->arena, sizeof(*entry));
    if (entry == NULL) {
        return NULL;
    }
    memcpy(entry->id_text, sink_id.data, sink_id.size);
    entry->id = (str){entry->id_text, sink_id.size};
    entry->look_at = ROLLER_NEVER;
    bool fresh = false;
    u64 *place = map_put(roller->places, entry->id, &fresh);
    if (place == NULL) {
        return NULL;
    }
    *place = roller->entry_count;
    roller->entries[roller->entry_count++] = entry;
    return entry;
}

static bool is_stopping(void *context)
{
    struct roller *roller = context;
    return atomic_load(&roller->stopping);
}

struct roll_env roller_env(struct roller *roller, const struct warehouse *warehouse)
{
    return (struct roll_env){
        .db = roller->options.db,
        .seam = roller->options.seam,
        .warehouse = warehouse,
        .installation_id = roller->options.installation_id,
        /* One process has the data directory, so a lease that an earlier process left behind is
         * ours: no wait for its end after a crash. The entries keep the workers apart. */
        .holder = roller->options.installation_id,
        .crew = roller->crew,
        .early = roller->options.early,
        .stopping = is_stopping,
        .stopping_context = roller,
    };
}

void roller_wake(struct roller *roller, str sink_id)
{
    pthread_mutex_lock(&roller->lock);
    struct roller_entry *entry = roller_entry_of(roller, sink_id);
    bool news = entry != NULL && !entry->touched; /* else the tick knows when it will look */
    if (news) {
        entry->touched = true;
    }
    pthread_mutex_unlock(&roller->lock);
    if (news) {
        roller_poke(roller);
    }
}

void roller_look(struct roller *roller, str sink_id)
{
    pthread_mutex_lock(&roller->lock);
    struct roller_entry *entry = roller_entry_of(roller, sink_id);
    if (entry != NULL) {
        entry->touched = true;
        entry->look_floor = roller_now(roller);
    }
    pthread_mutex_unlock(&roller->lock);
    roller_poke(roller);
}

err roller_ask(struct roller *roller, str sink_id, instant *out_asked_at, i64 *out_upto_seq,
               struct error *error)
{
    TRY(ledger_ask_roll(roller->options.db, sink_id, out_asked_at, out_upto_seq, error));
    roller_look(roller, sink_id);
    return OK;
}

/* ---- delete ---- */

static void await_entry(struct roller *roller, struct roller_entry *entry)
{
    pthread_mutex_lock(&roller->lock);
    entry->awaited++;
    pthread_mutex_unlock(&roller->lock);
}

/* Of one who awaits it. */
static void hold_entry(struct roller *roller, struct roller_entry *entry)
{
    pthread_mutex_lock(&roller->lock);
    while (entry->busy) {
        pthread_cond_wait(&roller->freed, &roller->lock);
    }
    entry->awaited--;
    entry->busy = true;
    pthread_mutex_unlock(&roller->lock);
}

static void free_entry(struct roller *roller, struct roller_entry *entry)
{
    pthread_mutex_lock(&roller->lock);
    entry->busy = false;
    entry->touched = true;
    entry->look_floor = roller_now(roller);
    entry->wants_answers = true;
    pthread_cond_broadcast(&roller->freed);
    pthread_mutex_unlock(&roller->lock);
    roller_poke(roller);
}

static err find_entry(struct roller *roller, str sink_id, struct roller_entry **out_entry,
                      struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(MIB);
    struct ledger_sink sink = {0};
    TRY(ledger_find_sink(roller->options.db, arena, STR(""), sink_id, &sink, error));
    const struct warehouse *warehouse = warehouse_get(roller->options.warehouses, sink.warehouse);
    if (warehouse == NULL) {
        return error_set(error, NOT_FOUND, ERROR_WAREHOUSE_NOT_FOUND, "no warehouse %.*s",
                         STR_ARG(sink.warehouse));
    }
    pthread_mutex_lock(&roller->lock);
    struct roller_entry *entry = roller_entry_of(roller, sink.id);
    if (entry != NULL && entry->warehouse == NULL) {
        entry->warehouse = warehouse;
    }
    pthread_mutex_unlock(&roller->lock);
    if (entry == NULL) {
        return error_set(error, LIMIT, ERROR_OVERLOADED, "too many sinks in one process");
    }
    *out_entry = entry;
    return OK;
}

/* Deleting first, so that a roll under way starts no further try; then the entry, so that no worker
 * touches the sink meanwhile. It is awaited before: a worker that found the sink in deletion would
 * end the delete in our place, and nobody would know what was discarded. */
err roller_delete_sink(struct roller *roller, str sink_id, i64 *out_discarded_batches,
                       struct error *error)
{
    struct roller_entry *entry = NULL;
    TRY(find_entry(roller, sink_id, &entry, error));
    assert(entry != NULL);
    struct roll_env env = roller_env(roller, entry->warehouse);
    await_entry(roller, entry);
    err deleted = sink_delete_begin(&env, entry->id, error);
    hold_entry(roller, entry);
    if (deleted == OK) {
        deleted = sink_delete(&env, entry->id, out_discarded_batches, error);
    }
    entry->wants_sweep = true;
    free_entry(roller, entry);
    return deleted;
}

/* ---- what an operator decides ---- */

err roller_reclaim_sink(struct roller *roller, str sink_id, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(MIB);
    struct roller_entry *entry = NULL;
    TRY(find_entry(roller, sink_id, &entry, error));
    assert(entry != NULL);
    await_entry(roller, entry);
    hold_entry(roller, entry);
    struct roll_env env = roller_env(roller, entry->warehouse);
    err reclaimed = restore_reclaim(&env, arena, entry->id, error);
    free_entry(roller, entry);
    return reclaimed;
}

err roller_resolve_batch(struct roller *roller, struct arena *arena, str sink_id, str batch_id,
                         str keep_uid, str *out_row_id, struct error *error)
{
    struct roller_entry *entry = NULL;
    TRY(find_entry(roller, sink_id, &entry, error));
    assert(entry != NULL);
    await_entry(roller, entry);
    hold_entry(roller, entry);
    struct roll_env env = roller_env(roller, entry->warehouse);
    err resolved = orphan_resolve(&env, arena, entry->id, batch_id, keep_uid, out_row_id, error);
    free_entry(roller, entry);
    return resolved;
}

/* ---- no deletes for a while ---- */

err roller_pause_deletes(struct roller *roller, struct error *error)
{
    if (atomic_exchange(&roller->deletes_paused, true)) {
        return error_set(error, BUSY, ERROR_OVERLOADED, "a backup is under way already");
    }
    pthread_rwlock_wrlock(&roller->deletes);
    return OK;
}

void roller_resume_deletes(struct roller *roller)
{
    pthread_rwlock_unlock(&roller->deletes);
    atomic_store(&roller->deletes_paused, false);
}

/* ---- start and stop ---- */

static err start_threads(struct roller *roller, struct error *error)
{
    i32 wanted = roller->options.workers > 0 ? roller->options.workers : ROLLER_WORKERS;
    wanted = wanted < ROLLER_WORKERS_MAX ? wanted : ROLLER_WORKERS_MAX;
    for (i32 i = 0; i < wanted; i++) {
        if (pthread_create(&roller->workers[i], NULL, roller_work_run, roller) != 0) {
            return error_set(error, IO, ERROR_OVERLOADED, "no thread for a roll worker");
        }
        roller->worker_count++;
    }
    if (pthread_create(&roller->tick, NULL, roller_tick_run, roller) != 0) {
        return error_set(error, IO, ERROR_OVERLOADED, "no thread for the roller's tick");
    }
    arena_keep(ROLLER_WARM_BYTES);
    return OK;
}

static void join_workers(struct roller *roller)
{
    for (i32 i = 0; i < roller->worker_count; i++) {
        pthread_join(roller->workers[i], NULL);
    }
}

static err make(struct arena *arena, const struct roller_options *options,
                struct roller **out_roller, struct error *error)
{
    struct roller *roller = arena_alloc(arena, sizeof(*roller));
    if (roller == NULL) {
        return error_memory(error);
    }
    roller->options = *options;
    roller->arena = arena_create((size_t)64 * MIB);
    roller->places = map_create(roller->arena, 64);
    roller->entries = arena_array(roller->arena, ROLLER_SINKS_MAX, sizeof(struct roller_entry *));
    roller->waiters = arena_array(roller->arena, ROLLER_WAITERS_MAX, sizeof(*roller->waiters));
    if (roller->places == NULL || roller->entries == NULL || roller->waiters == NULL) {
        arena_destroy(roller->arena);
        return error_memory(error);
    }
    roller->pokes = queue_create(4);
    roller->jobs = queue_create(ROLLER_JOBS_MAX);
    if (options->threads > 1) {
        roller->crew = crew_create((size_t)options->threads - 1, process_step_back);
    }
    pthread_mutex_init(&roller->lock, NULL);
    pthread_cond_init(&roller->freed, NULL);
    pthread_rwlock_init(&roller->deletes, NULL);
    *out_roller = roller;
    return OK;
}

static void unmake(struct roller *roller)
{
    arena_keep(0);
    crew_destroy(roller->crew);
    queue_destroy(roller->pokes);
    queue_destroy(roller->jobs);
    pthread_cond_destroy(&roller->freed);
    pthread_rwlock_destroy(&roller->deletes);
    pthread_mutex_destroy(&roller->lock);
    arena_destroy(roller->arena);
}

err roller_start(struct arena *arena, const struct roller_options *options,
                 struct roller **out_roller, struct error *error)
{
    assert(options->limits.batches > 0);
    struct roller *roller = NULL;
    TRY(make(arena, options, &roller, error));
    assert(roller != NULL);
    err started = start_threads(roller, error);
    if (started != OK) {
        atomic_store(&roller->stopping, true);
        queue_close(roller->jobs);
        join_workers(roller);
        unmake(roller);
        return started;
    }
    *out_roller = roller;
    return OK;
}

void roller_stop(struct roller *roller)
{
    atomic_store(&roller->stopping, true);
    queue_close(roller->pokes);
    queue_close(roller->jobs);
    pthread_join(roller->tick, NULL);
    join_workers(roller);
    roller_answer_all(roller);
    unmake(roller);
}
