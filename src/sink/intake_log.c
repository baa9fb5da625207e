#include "sink/intake_log.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/queue.h"

#include <pthread.h>
#include <stdatomic.h>

/* The rules of the log, on top of those of exactly-once:
 *
 * L1  The record of a group is durable before any of its files has its name, so that what a power
 *     loss leaves of a file can always be mended; and before its rows are committed, so that
 *     whoever sees a row, and answers a duplicate by it, has it durable. The files are written
 *     before the rows, so that whoever plans a row finds its bytes.
 * L2  Rows are committed later (db_transact_later): what a power loss takes of the ledger is an end
 *     of its history. A plan, a delete or a state that was committed durably took every row before
 *     it along: no acceptance is ever lost from under what was decided on it.
 * L3  When a group is through (and only then may another send of one of its ids be looked at), each
 *     of its batches has a row that the ledger shows, or is voided durably in the log. So of two
 *     records of one id without a void the first one is the accepted one. A transaction whose
 *     answer is lost is asked for again, for it is the same transaction; when it cannot be told
 *     at all, the log takes nothing more until it was released behind that record.
 * L4  A checkpoint takes the position before which every group is through; syncs the stores, then
 *     the ledger; then releases the log up to there. It is what pays for durability, once for all.
 * L5  The replay makes the row of a batch that has none and is not voided, as the ledger's own
 *     transaction would have: not in a sink that is being deleted or deleted, or recovering, not
 *     under a void uid, not for an id that another row has or that is in quarantine. What it does
 *     not make a row for, though nobody voided it, keeps its object: the orphan rules decide, as
 *     after every restore. A waiting row's object and rejects file are compared with the record,
 *     byte for byte, and put again where they differ. An object that several records share leaves
 *     the log at once; where a release has taken some of its records it is durable, and nothing is
 *     ever taken from it.
 * L6  Rows are forgotten 7 days after their end, by running time. A record tells at which running
 *     time its request had begun; what began more than 6 days before is not made a row of, so that
 *     neither a log that was put back nor a request that stood still makes a batch twice.
 * L7  An older ledger beside the log: the sinks are flagged before the replay, which then only puts
 *     objects; `recover` takes them in under fresh uids.
 * L8  A flush or sync that fails ends the process (I28). */

/* Kept free for voids, one block of 4 KiB for each group that can be under way: a full log can
 * always say what it does not hold. */
enum { VOID_ROOM_BYTES = 128 * 4096 };
#define CHECKPOINT_IDLE_US ((i64)5 * TIME_SECOND_US)
#define CHECKPOINT_LOOK_US ((i64)1 * TIME_SECOND_US)
#define ROOM_LOOK_US       ((i64)2000)

struct checkpoint {
    u64 end; /* every group before it is through */
    const struct warehouse *warehouses[WAREHOUSES_MAX];
    size_t count;
};

struct intake_log {
    struct intake_log_options options;
    pthread_mutex_t lock;
    struct intake_logged *under_way;
    const struct warehouse *unsynced[WAREHOUSES_MAX];
    size_t unsynced_count;
    u64 doubt;    /* nothing is taken until the log is released up to it; 0: none */
    u64 kept;     /* the log is not released from here on; UINT64_MAX: none of it is kept */
    i64 ended_us; /* when the last group was through */
    pthread_mutex_t checkpoint_lock; /* one at a time */
    struct checkpoint checkpoint;
    struct queue *wakes; /* NULL: no thread */
    atomic_bool stopping;
    pthread_t thread;
};

/* ---- one group ---- */

bool intake_log_takes(const struct intake_log *log, const struct warehouse *warehouse)
{
    return log != NULL && warehouse->files.ops->sync != NULL;
}

static void note_warehouse(struct intake_log *log, const struct warehouse *warehouse)
{
    for (size_t i = 0; i < log->unsynced_count; i++) {
        if (log->unsynced[i] == warehouse) {
            return;
        }
    }
    assert(log->unsynced_count < WAREHOUSES_MAX);
    log->unsynced[log->unsynced_count++] = warehouse;
}

static void unlink_logged(struct intake_log *log, struct intake_logged *logged)
{
    struct intake_logged **link = &log->under_way;
    while (*link != logged) {
        link = &(*link)->next;
    }
    *link = logged->next;
    logged->open = false;
}

/* With the lock. */
static bool has_room(const struct intake_log *log, u64 bytes)
{
    struct journal_space space = journal_space(log->options.journal);
    return log->doubt == 0 && space.used + bytes + VOID_ROOM_BYTES <= space.total;
}

bool intake_log_has_room(struct intake_log *log, size_t bytes, size_t batches)
{
    u64 most = (u64)bytes + (u64)batches * INTAKE_LOG_BATCH_BYTES;
    (void)pthread_mutex_lock(&log->lock);
    bool room = most <= INTAKE_LOG_GROUP_BYTES_MAX && has_room(log, most);
    (void)pthread_mutex_unlock(&log->lock);
    return room;
}

static void ask_checkpoint(struct intake_log *log)
{
    if (log->wakes != NULL) {
        bool woken = queue_push(log->wakes, log);
        (void)woken; /* one wake is as good as many */
    }
}

/* The floor is taken before the record is submitted, so that no checkpoint comes in between. */
static bool try_enter(struct intake_log *log, const struct warehouse *warehouse, u64 bytes,
                      struct intake_logged *logged)
{
    (void)pthread_mutex_lock(&log->lock);
    bool room = has_room(log, bytes);
    if (room) {
        *logged = (struct intake_logged){
            .floor = journal_end(log->options.journal), .open = true, .next = log->under_way};
        log->under_way = logged;
        note_warehouse(log, warehouse);
    }
    (void)pthread_mutex_unlock(&log->lock);
    return room;
}

MUST_USE static err enter(struct intake_log *log, const struct warehouse *warehouse, u64 bytes,
                          bool waits, struct intake_logged *logged, struct error *error)
{
    i64 left = waits ? log->options.full_wait_us : 0;
    while (!try_enter(log, warehouse, bytes, logged)) {
        ask_checkpoint(log);
        if (left <= 0) {
            return error_set(error, BUSY, ERROR_OVERLOADED, "the intake log takes nothing for now");
        }
        seam_wait_us(log->options.seam, ROOM_LOOK_US);
        left -= ROOM_LOOK_US;
    }
    return OK;
}

MUST_USE static err submit(struct intake_log *log, struct arena *arena, str head, const str *pieces,
                           size_t piece_count, u64 *out_position, struct error *error)
{
    str *all = arena_array(arena, piece_count + 1, sizeof(*all));
    if (all == NULL) {
        return error_memory(error);
    }
    all[0] = head;
    for (size_t i = 0; i < piece_count; i++) {
        all[i + 1] = pieces[i];
    }
    return journal_submit(log->options.journal, all, piece_count + 1, out_position, error);
}

MUST_USE static err print(struct arena *arena, const struct intake_log_record *record, buf *out,
                          struct error *error)
{
    *out = buf_create(arena, 16 * KIB, JOURNAL_RECORD_BYTES_MAX);
    intake_log_record_print(out, record);
    return buf_ok(out) ? OK
                       : error_set(error, LIMIT, ERROR_OVERLOADED,
                                   "the group is too large for the intake log");
}

err intake_log_begin(struct intake_log *log, struct arena *arena, const struct warehouse *warehouse,
                     const struct intake_log_record *record, const str *pieces, size_t piece_count,
                     bool waits, struct intake_logged *out_logged, struct error *error)
{
    buf head;
    TRY(print(arena, record, &head, error));
    u64 bytes = head.size;
    for (size_t i = 0; i < piece_count; i++) {
        bytes += pieces[i].size;
    }
    if (bytes > JOURNAL_RECORD_BYTES_MAX) {
        return error_set(error, LIMIT, ERROR_OVERLOADED,
                         "the group is too large for the intake log");
    }
    TRY(enter(log, warehouse, bytes, waits, out_logged, error));
    metric_add(METRIC_INTAKE_LOG_GROUPS, 1);
    err submitted = submit(log, arena, buf_str(&head), pieces, piece_count, &out_logged->position,
                           error);
    if (submitted != OK) {
        (void)pthread_mutex_lock(&log->lock);
        unlink_logged(log, out_logged);
        (void)pthread_mutex_unlock(&log->lock);
    }
    return submitted;
}

err intake_log_wait(struct intake_log *log, const struct intake_logged *logged, struct error *error)
{
    return journal_wait(log->options.journal, logged->position, error);
}

err intake_log_void(struct intake_log *log, struct arena *arena,
                    const struct intake_log_record *record, struct error *error)
{
    buf text;
    u64 position = 0;
    assert(record->kind == INTAKE_LOG_VOID);
    metric_add(METRIC_INTAKE_LOG_VOIDS, 1);
    TRY(print(arena, record, &text, error));
    TRY(submit(log, arena, buf_str(&text), NULL, 0, &position, error));
    return journal_wait(log->options.journal, position, error);
}

void intake_log_doubt(struct intake_log *log, const struct intake_logged *logged)
{
    (void)pthread_mutex_lock(&log->lock);
    log->doubt = journal_end(log->options.journal);
    (void)pthread_mutex_unlock(&log->lock);
    ask_checkpoint(log);
    log_event(LOG_WARN, "intake_log_in_doubt", LOG_N("position", (i64)logged->position));
}

void intake_log_keep(struct intake_log *log, struct intake_logged *logged)
{
    (void)pthread_mutex_lock(&log->lock);
    for (; logged != NULL; logged = logged->beside) {
        unlink_logged(log, logged);
        log->kept = logged->floor < log->kept ? logged->floor : log->kept;
    }
    (void)pthread_mutex_unlock(&log->lock);
}

void intake_log_end(struct intake_log *log, struct intake_logged *logged)
{
    (void)pthread_mutex_lock(&log->lock);
    for (; logged != NULL; logged = logged->beside) {
        unlink_logged(log, logged);
    }
    log->ended_us = seam_monotonic_us(log->options.seam);
    (void)pthread_mutex_unlock(&log->lock);
    struct journal_space space = journal_space(log->options.journal);
    if (space.used > space.total / 2) {
        ask_checkpoint(log);
    }
}

/* ---- checkpoints ---- */

/* A warehouse stays noted while a group is under way that may yet write to it. */
static void checkpoint_begin(struct intake_log *log, struct checkpoint *checkpoint)
{
    (void)pthread_mutex_lock(&log->lock);
    checkpoint->end = journal_end(log->options.journal);
    checkpoint->end = log->kept < checkpoint->end ? log->kept : checkpoint->end;
    for (const struct intake_logged *logged = log->under_way; logged != NULL;
         logged = logged->next) {
        checkpoint->end = logged->floor < checkpoint->end ? logged->floor : checkpoint->end;
    }
    checkpoint->count = log->unsynced_count;
    memcpy(checkpoint->warehouses, log->unsynced,
           checkpoint->count * sizeof(checkpoint->warehouses[0]));
    log->unsynced_count = log->under_way == NULL ? 0 : log->unsynced_count;
    (void)pthread_mutex_unlock(&log->lock);
}

MUST_USE static err checkpoint_sync(struct intake_log *log, const struct checkpoint *checkpoint,
                                    struct error *error)
{
    for (size_t i = 0; i < checkpoint->count; i++) {
        TRY(store_sync(&checkpoint->warehouses[i]->files, error));
    }
    TRY(db_sync(log->options.db, error));
    CRASH_POINT(intake_log_synced);
    return journal_release(log->options.journal, checkpoint->end, error);
}

static void checkpoint_end(struct intake_log *log, const struct checkpoint *checkpoint, err result)
{
    (void)pthread_mutex_lock(&log->lock);
    for (size_t i = 0; result != OK && i < checkpoint->count; i++) {
        note_warehouse(log, checkpoint->warehouses[i]);
    }
    if (result == OK && checkpoint->end >= log->doubt) {
        log->doubt = 0;
    }
    (void)pthread_mutex_unlock(&log->lock);
    metric_add(METRIC_INTAKE_LOG_CHECKPOINTS, result == OK ? 1 : 0);
    metric_set(METRIC_INTAKE_LOG_USED, (i64)journal_space(log->options.journal).used);
}

err intake_log_checkpoint(struct intake_log *log, struct error *error)
{
    (void)pthread_mutex_lock(&log->checkpoint_lock);
    checkpoint_begin(log, &log->checkpoint);
    err result = checkpoint_sync(log, &log->checkpoint, error);
    checkpoint_end(log, &log->checkpoint, result);
    (void)pthread_mutex_unlock(&log->checkpoint_lock);
    return result;
}

/* ---- the thread ---- */

/* Half full, or in doubt, or nothing came for a while and there is something to release. */
static bool checkpoint_is_due(struct intake_log *log)
{
    struct journal_space space = journal_space(log->options.journal);
    i64 now_us = seam_monotonic_us(log->options.seam);
    metric_set(METRIC_INTAKE_LOG_USED, (i64)space.used);
    (void)pthread_mutex_lock(&log->lock);
    bool idle = log->under_way == NULL && now_us - log->ended_us >= CHECKPOINT_IDLE_US;
    bool due = log->doubt != 0 || space.used > space.total / 2 || (idle && log->ended_us != 0);
    log->ended_us = idle ? 0 : log->ended_us;
    (void)pthread_mutex_unlock(&log->lock);
    return due;
}

static void checkpoint_or_tell(struct intake_log *log)
{
    struct error error = {0};
    err result = intake_log_checkpoint(log, &error);
    if (result != OK) {
        log_error("intake_log_not_released", result, &error, STR(""));
    }
}

static void *checkpoint_thread(void *argument)
{
    struct intake_log *log = argument;
    for (;;) {
        void *wake = queue_pop(log->wakes, CHECKPOINT_LOOK_US);
        (void)wake;
        if (atomic_load(&log->stopping)) {
            return NULL;
        }
        if (checkpoint_is_due(log)) {
            checkpoint_or_tell(log);
        }
    }
}

void intake_log_start(struct intake_log *log)
{
    log->wakes = queue_create(1);
    int made = pthread_create(&log->thread, NULL, checkpoint_thread, log);
    assert(made == 0);
}

void intake_log_stop(struct intake_log *log)
{
    if (log->wakes != NULL) {
        atomic_store(&log->stopping, true);
        queue_close(log->wakes);
        (void)pthread_join(log->thread, NULL);
        queue_destroy(log->wakes);
        log->wakes = NULL;
        checkpoint_or_tell(log);
    }
}

/* ---- life ---- */

err intake_log_open(struct arena *arena, const struct intake_log_options *options,
                    struct intake_log **out_log, struct error *error)
{
    struct intake_log *log = arena_alloc(arena, sizeof(*log));
    if (log == NULL) {
        return error_memory(error);
    }
    log->options = *options;
    log->kept = UINT64_MAX;
    int made = pthread_mutex_init(&log->lock, NULL);
    assert(made == 0);
    made = pthread_mutex_init(&log->checkpoint_lock, NULL);
    assert(made == 0);
    *out_log = log;
    return OK;
}

void intake_log_close(struct intake_log *log)
{
    assert(log->under_way == NULL);
    assert(log->wakes == NULL);
    (void)pthread_mutex_destroy(&log->lock);
    (void)pthread_mutex_destroy(&log->checkpoint_lock);
}

const struct intake_log_options *intake_log_options_of(const struct intake_log *log)
{
    return &log->options;
}

void intake_log_touch(struct intake_log *log, const struct warehouse *warehouse)
{
    (void)pthread_mutex_lock(&log->lock);
    note_warehouse(log, warehouse);
    (void)pthread_mutex_unlock(&log->lock);
}
