/* Two groups: one is filled while the other is written. Whoever waits for a group that nobody
 * writes yet writes it himself, so that a record goes to the disk without a change of threads; of
 * those who wait while the other group is written, one goes on with theirs. One write at a time, in
 * the order of the numbers. */
#include "io/journal_head.h"
#include "io/journal_scan.h"

#include "base/assert.h"
#include "base/log.h"

#include <pthread.h>

struct dir_journal {
    struct journal_files files;
    struct journal_head head;
    int segments[JOURNAL_SEGMENTS_MAX];
    bool filled[JOURNAL_SEGMENTS_MAX]; /* of whoever writes */
    struct journal_found found;        /* at the open */

    pthread_mutex_t lock; /* around all that follows */
    struct journal_ring ring;
    struct journal_group groups[2];
    size_t open;  /* the group that is being filled */
    bool writing; /* the other one is being written */
    bool poisoned;
    pthread_cond_t written[2]; /* this group was, or may be now */
    pthread_cond_t room;       /* the groups changed places, or may */
};

/* ---- writing ---- */

/* The room of a segment is written once before its first use: the first round through the log costs
 * that, and the start no more than the segment it goes on in. */
MUST_USE static err segment_fill(struct dir_journal *journal, u64 segment, struct error *error)
{
    if (!journal->filled[segment]) {
        TRY(journal->files.ops->fill(journal->files.self, journal->segments[segment],
                                     journal->head.segment_bytes, error));
        journal->filled[segment] = true;
    }
    return OK;
}

/* Blocks of consecutive numbers: a write for each segment that they touch. */
MUST_USE static err blocks_write(struct dir_journal *journal, const struct journal_group *group,
                                 struct error *error)
{
    const struct journal_geometry *geometry = &journal->ring.geometry;
    for (u64 done = 0; done < group->blocks;) {
        u64 slot = (group->number + done) % geometry->blocks;
        u64 within = slot % geometry->segment_blocks;
        u64 rest = geometry->segment_blocks - within;
        u64 count = group->blocks - done < rest ? group->blocks - done : rest;
        u64 segment = slot / geometry->segment_blocks;
        TRY(segment_fill(journal, segment, error));
        TRY(journal->files.ops->write(journal->files.self, journal->segments[segment],
                                      within * JOURNAL_BLOCK_BYTES,
                                      group->bytes + done * JOURNAL_BLOCK_BYTES,
                                      (size_t)(count * JOURNAL_BLOCK_BYTES), error));
        done += count;
    }
    return OK;
}

static void group_written(struct dir_journal *journal, size_t index, err result)
{
    journal->writing = false;
    if (result == OK) {
        journal_group_durable(&journal->ring, &journal->groups[index]);
        (void)pthread_cond_signal(&journal->written[1 - index]);
    } else {
        journal->poisoned = true;
        (void)pthread_cond_broadcast(&journal->written[1 - index]);
    }
    (void)pthread_cond_broadcast(&journal->written[index]);
    (void)pthread_cond_broadcast(&journal->room);
}

/* With the lock, which is let go while the disk works. */
static void group_write(struct dir_journal *journal)
{
    size_t index = journal->open;
    struct journal_group *group = &journal->groups[index];
    assert(!journal->writing && !journal->poisoned);
    journal_group_take(&journal->ring, group);
    journal->writing = true;
    journal->open = 1 - index;
    (void)pthread_cond_broadcast(&journal->room);
    (void)pthread_mutex_unlock(&journal->lock);
    journal_group_seal(&journal->ring, group);
    err result = blocks_write(journal, group, NULL);
    (void)pthread_mutex_lock(&journal->lock);
    group_written(journal, index, result);
}

static bool may_write(const struct dir_journal *journal)
{
    return !journal->writing && !journal->poisoned &&
           journal_group_waits(&journal->groups[journal->open]);
}

MUST_USE static err poisoned(struct error *error)
{
    return error_set(error, IO, ERROR_STORE_DOWN, "a write of the log failed");
}

/* Until what the open group holds now, or the one that is being written, is on the disk. */
static void group_await(struct dir_journal *journal, size_t index)
{
    if (index == journal->open && may_write(journal)) {
        group_write(journal);
    } else {
        (void)pthread_cond_wait(&journal->written[index], &journal->lock);
    }
}

/* ---- the seam ---- */

MUST_USE static err dir_submit(void *self, const str *pieces, size_t count, u64 *out_position,
                               struct error *error)
{
    struct dir_journal *journal = self;
    (void)pthread_mutex_lock(&journal->lock);
    err added = LIMIT;
    while (added == LIMIT && !journal->poisoned) {
        added = journal_group_add(&journal->ring, &journal->groups[journal->open], pieces, count,
                                  out_position);
        if (added == LIMIT && may_write(journal)) {
            group_write(journal);
        } else if (added == LIMIT) {
            (void)pthread_cond_wait(&journal->room, &journal->lock);
        }
    }
    bool failed = journal->poisoned;
    (void)pthread_mutex_unlock(&journal->lock);
    if (failed) {
        return poisoned(error);
    }
    return added == BUSY ? error_set(error, BUSY, ERROR_OVERLOADED, "the log is full") : OK;
}

MUST_USE static err dir_wait(void *self, u64 position, struct error *error)
{
    struct dir_journal *journal = self;
    u64 number = position / JOURNAL_BLOCK_BYTES;
    (void)pthread_mutex_lock(&journal->lock);
    while (number > journal->ring.flushed && !journal->poisoned) {
        bool taken = number < journal->ring.next;
        group_await(journal, taken ? 1 - journal->open : journal->open);
    }
    bool durable = number <= journal->ring.flushed;
    (void)pthread_mutex_unlock(&journal->lock);
    return durable ? OK : poisoned(error);
}

static void release_ask(struct dir_journal *journal, u64 number)
{
    const struct journal_group *other = &journal->groups[1 - journal->open];
    if (number > journal->ring.released) {
        journal->ring.released = number;
    }
    if (!journal->writing || other->released < number) {
        journal->groups[journal->open].mark = true;
    }
}

/* Nothing is released before it is durable. */
static void release_wait(struct dir_journal *journal, u64 number)
{
    while (number > journal->ring.flushed + 1 && !journal->poisoned) {
        if (journal->writing) {
            (void)pthread_cond_wait(&journal->written[1 - journal->open], &journal->lock);
        } else {
            group_write(journal);
        }
    }
}

/* Durable with the next group, which is written even if it holds nothing else. */
MUST_USE static err dir_release(void *self, u64 position, struct error *error)
{
    struct dir_journal *journal = self;
    u64 number = position / JOURNAL_BLOCK_BYTES;
    (void)pthread_mutex_lock(&journal->lock);
    release_wait(journal, number);
    if (number > journal->ring.freed && !journal->poisoned) {
        release_ask(journal, number);
    }
    while (number > journal->ring.freed && !journal->poisoned) {
        bool taken = !journal_group_waits(&journal->groups[journal->open]);
        group_await(journal, taken ? 1 - journal->open : journal->open);
    }
    bool freed = number <= journal->ring.freed;
    (void)pthread_mutex_unlock(&journal->lock);
    return freed ? OK : poisoned(error);
}

static u64 dir_end(void *self)
{
    struct dir_journal *journal = self;
    (void)pthread_mutex_lock(&journal->lock);
    u64 end = journal_group_end(&journal->ring, &journal->groups[journal->open]);
    (void)pthread_mutex_unlock(&journal->lock);
    return end;
}

static struct journal_space dir_space(void *self)
{
    struct dir_journal *journal = self;
    (void)pthread_mutex_lock(&journal->lock);
    u64 end = journal_group_end(&journal->ring, &journal->groups[journal->open]);
    struct journal_space space = {
        .used = end - journal->ring.freed * JOURNAL_BLOCK_BYTES,
        .total = journal->ring.geometry.blocks * JOURNAL_BLOCK_BYTES,
    };
    (void)pthread_mutex_unlock(&journal->lock);
    return space;
}

static void files_close(struct dir_journal *journal)
{
    journal_head_close(&journal->files, &journal->head, journal->segments);
    journal->files.ops->end(journal->files.self);
}

static void dir_close(void *self)
{
    struct dir_journal *journal = self;
    (void)pthread_mutex_lock(&journal->lock);
    while (may_write(journal)) {
        group_write(journal);
    }
    assert(!journal->writing);
    (void)pthread_mutex_unlock(&journal->lock);
    (void)pthread_mutex_destroy(&journal->lock);
    (void)pthread_cond_destroy(&journal->written[0]);
    (void)pthread_cond_destroy(&journal->written[1]);
    (void)pthread_cond_destroy(&journal->room);
    files_close(journal);
}

/* ---- reading ---- */

MUST_USE static err blocks_read(void *self, u64 slot, u64 count, void *out_bytes,
                                struct error *error)
{
    struct dir_journal *journal = self;
    u64 segment_blocks = journal->head.segment_bytes / JOURNAL_BLOCK_BYTES;
    return journal->files.ops->read(journal->files.self, journal->segments[slot / segment_blocks],
                                    slot % segment_blocks * JOURNAL_BLOCK_BYTES, out_bytes,
                                    (size_t)(count * JOURNAL_BLOCK_BYTES), error);
}

static struct journal_geometry geometry_of(const struct journal_head *head)
{
    u64 segment_blocks = head->segment_bytes / JOURNAL_BLOCK_BYTES;
    return (struct journal_geometry){
        .log = head->log,
        .blocks = segment_blocks * head->segments,
        .segment_blocks = segment_blocks,
    };
}

/* Before anything is submitted the groups' bytes are free: one for blocks, one for a record. */
static struct journal_source source_of(struct dir_journal *journal)
{
    return (struct journal_source){
        .geometry = geometry_of(&journal->head),
        .read = blocks_read,
        .self = journal,
        .window = journal->groups[0].bytes,
    };
}

MUST_USE static err dir_replay(void *self, journal_record record, void *context,
                               struct error *error)
{
    struct dir_journal *journal = self;
    assert(!journal->groups[0].mark && !journal_group_waits(&journal->groups[0]));
    assert(journal->ring.flushed == journal->found.last);
    struct journal_source source = source_of(journal);
    return journal_scan_records(&source, &journal->found, journal->groups[1].bytes, record, context,
                                error);
}

/* ---- opening ---- */

MUST_USE static err groups_make(struct arena *arena, struct dir_journal *journal,
                                struct error *error)
{
    for (size_t i = 0; i < ARRAY_COUNT(journal->groups); i++) {
        u8 *bytes = arena_alloc(arena, (size_t)JOURNAL_GROUP_BYTES + JOURNAL_ALIGNMENT);
        if (bytes == NULL) {
            return error_memory(error);
        }
        size_t over = (size_t)((uintptr_t)bytes % JOURNAL_ALIGNMENT);
        journal->groups[i].bytes = bytes + (over > 0 ? JOURNAL_ALIGNMENT - over : 0);
    }
    return OK;
}

MUST_USE static err log_scan(struct arena *arena, struct dir_journal *journal,
                             const struct journal_options *options, struct error *error)
{
    struct journal_source source = source_of(journal);
    TRY(journal_scan(&source, &journal->found, error));
    if (journal->found.cut > 0) {
        log_event(LOG_WARN, "journal_tail_cut", LOG_N("blocks", journal->found.cut));
    }
    bool other_size = journal->head.segment_bytes != options->segment_bytes ||
                      journal->head.segments != options->segments;
    if (other_size && journal->found.empty) {
        TRY(journal_head_replace(arena, &journal->files, options, &journal->head, journal->segments,
                                 error));
        journal->found = (struct journal_found){.first = 1, .freed = 1, .empty = true};
    }
    const struct journal_geometry geometry = geometry_of(&journal->head);
    journal->ring = journal_scan_ring(&geometry, &journal->found);
    u64 slot = journal->ring.next % geometry.blocks;
    return segment_fill(journal, slot / geometry.segment_blocks, error);
}

static void lock_make(struct dir_journal *journal)
{
    int made = pthread_mutex_init(&journal->lock, NULL) |
               pthread_cond_init(&journal->written[0], NULL) |
               pthread_cond_init(&journal->written[1], NULL) |
               pthread_cond_init(&journal->room, NULL);
    assert(made == 0);
}

MUST_USE static err files_open(struct arena *arena, struct dir_journal *journal,
                               const struct journal_options *options, struct error *error)
{
    TRY(groups_make(arena, journal, error));
    TRY(journal_head_open(arena, &journal->files, options, journal->groups[0].bytes, &journal->head,
                          journal->segments, error));
    err result = log_scan(arena, journal, options, error);
    if (result != OK) {
        journal_head_close(&journal->files, &journal->head, journal->segments);
    }
    return result;
}

err journal_open_files(struct arena *arena, const struct journal_options *options,
                       const struct journal_files *files, struct journal *out_journal,
                       struct error *error)
{
    static const struct journal_ops ops = {
        .replay = dir_replay,
        .submit = dir_submit,
        .wait = dir_wait,
        .release = dir_release,
        .end = dir_end,
        .space = dir_space,
        .close = dir_close,
    };
    struct dir_journal *journal = arena_alloc(arena, sizeof(*journal));
    err result = journal == NULL ? error_memory(error) : OK;
    if (result == OK) {
        journal->files = *files;
        result = files_open(arena, journal, options, error);
    }
    if (result != OK) {
        files->ops->end(files->self);
        return result;
    }
    lock_make(journal);
    *out_journal = (struct journal){.ops = &ops, .self = journal};
    return OK;
}

err journal_open_dir(struct arena *arena, const struct journal_options *options,
                     struct journal *out_journal, struct error *error)
{
    struct journal_files files = {0};
    TRY(journal_files_open_dir(arena, options->directory, &files, error));
    return journal_open_files(arena, options, &files, out_journal, error);
}
