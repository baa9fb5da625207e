#include "sim.h"

#include "base/assert.h"
#include "io/journal_scan.h"

/* The intake log's journal: the shipped blocks, checksums and scan over a disk in memory, in place
 * of a thread a coroutine that waits writes. A write that is under way when its process dies is on
 * the disk whole, not at all, or in any part of its blocks. */

enum { BLOCKS_MIN = 136, BLOCKS_MAX = 256, WAITERS_MAX = 128 };
#define PATIENCE_US (10 * SIM_HOUR)

struct sim_journal {
    struct sim_process *process;
    struct journal_ring ring;
    struct journal_group groups[2];
    struct journal_found found;
    size_t open;
    bool writing;
    bool poisoned;
    struct actor *waiters[WAITERS_MAX];
    size_t waiter_count;
};

/* One run at a time, and in it one process at a time that has the log open. */
static u8 disk[BLOCKS_MAX * JOURNAL_BLOCK_BYTES];
static size_t disk_used; /* behind it all is zero */
static u8 group_bytes[2][JOURNAL_GROUP_BYTES];

static struct journal_geometry geometry(void)
{
    u64 drawn = sim_hash(sim->config->seed ^ 0x109, 0, 0);
    u64 blocks = drawn % 3 == 0 ? BLOCKS_MIN + (drawn >> 8) % 24 : BLOCKS_MAX;
    return (struct journal_geometry){.log = drawn | 1, .blocks = blocks, .segment_blocks = blocks};
}

/* ---- the disk ---- */

void sim_journal_erase(void)
{
    memset(disk, 0, disk_used);
    disk_used = 0;
}

static void disk_write(const struct sim_journal *journal, const struct journal_group *group, u64 i,
                       size_t bytes)
{
    size_t at = (size_t)((group->number + i) % journal->ring.geometry.blocks) * JOURNAL_BLOCK_BYTES;
    memcpy(disk + at, group->bytes + i * JOURNAL_BLOCK_BYTES, bytes);
    disk_used = at + bytes > disk_used ? at + bytes : disk_used;
}

static void block_lands(const struct sim_journal *journal, const struct journal_group *group, u64 i)
{
    disk_write(journal, group, i, JOURNAL_BLOCK_BYTES);
}

/* Whole blocks or halves of them. */
static void block_tears(const struct sim_journal *journal, const struct journal_group *group, u64 i,
                        u64 drawn)
{
    if (drawn % 4 == 0) {
        disk_write(journal, group, i, JOURNAL_BLOCK_BYTES / 2);
    } else if (drawn % 2 == 0) {
        block_lands(journal, group, i);
    }
}

void sim_journal_died(struct sim_journal *journal)
{
    if (journal == NULL || !journal->writing) {
        return;
    }
    const struct journal_group *group = &journal->groups[1 - journal->open];
    u64 drawn = sim_hash(sim->config->seed ^ 0x7ea4, (u64)sim->now, group->number);
    for (u64 i = 0; i < group->blocks; i++) {
        if (drawn % 3 == 0) {
            block_lands(journal, group, i);
        } else if (drawn % 3 == 1) {
            block_tears(journal, group, i, sim_hash(drawn, i, 0));
        }
    }
    journal->writing = false;
    journal->poisoned = true;
}

static err disk_read(void *self, u64 slot, u64 count, void *out_bytes, struct error *error)
{
    (void)self;
    (void)error;
    memcpy(out_bytes, disk + slot * JOURNAL_BLOCK_BYTES, (size_t)(count * JOURNAL_BLOCK_BYTES));
    return OK;
}

/* ---- writing ---- */

static bool gone(const struct sim_journal *journal)
{
    return journal->poisoned || journal->process->dead || sim->stopping;
}

static void group_write(struct sim_journal *journal)
{
    struct journal_group *group = &journal->groups[journal->open];
    journal_group_take(&journal->ring, group);
    journal->writing = true;
    journal->open = 1 - journal->open;
    journal_group_seal(&journal->ring, group);
    enum sim_fault fault = sim_strike(0, "log: write", STR(""));
    if (fault == SIM_FAULT_BEFORE) {
        sim_kill(journal->process); /* a write that fails ends the process (I28) */
    }
    if (gone(journal) || fault == SIM_FAULT_DIE_BEFORE) {
        return;
    }
    for (u64 i = 0; i < group->blocks; i++) {
        block_lands(journal, group, i);
    }
    journal->writing = false;
    journal_group_durable(&journal->ring, group);
    for (size_t i = 0; i < journal->waiter_count; i++) {
        sim_wake(journal->waiters[i]);
    }
    journal->waiter_count = 0;
    sim_after(fault);
}

static err failed(struct error *error)
{
    return error_set(error, IO, ERROR_STORE_DOWN, "simulated: the log cannot be written");
}

static void step(struct sim_journal *journal)
{
    if (!journal->writing && journal_group_waits(&journal->groups[journal->open])) {
        group_write(journal);
    } else {
        assert(journal->waiter_count < WAITERS_MAX);
        journal->waiters[journal->waiter_count++] = sim->current;
        sim_sleep(PATIENCE_US);
    }
}

/* ---- the seam ---- */

static err journal_do_replay(void *self, journal_record record, void *context, struct error *error)
{
    struct sim_journal *journal = self;
    struct journal_source source = {
        .geometry = journal->ring.geometry, .read = disk_read, .window = group_bytes[0]};
    return journal_scan_records(&source, &journal->found, group_bytes[1], record, context, error);
}

static err journal_do_submit(void *self, const str *pieces, size_t count, u64 *out_position,
                             struct error *error)
{
    struct sim_journal *journal = self;
    enum sim_fault fault = sim_strike(0, "log: submit", STR(""));
    if (fault == SIM_FAULT_BEFORE) {
        return error_set(error, BUSY, ERROR_OVERLOADED, "simulated: the log is full");
    }
    err added = LIMIT;
    while (added == LIMIT && !gone(journal)) {
        added = journal_group_add(&journal->ring, &journal->groups[journal->open], pieces, count,
                                  out_position);
        if (added == LIMIT) {
            step(journal);
        }
    }
    if (gone(journal)) {
        return failed(error);
    }
    sim_after(fault);
    return added == BUSY ? error_set(error, BUSY, ERROR_OVERLOADED, "the log is full") : OK;
}

static err journal_do_wait(void *self, u64 position, struct error *error)
{
    struct sim_journal *journal = self;
    u64 number = position / JOURNAL_BLOCK_BYTES;
    while (number > journal->ring.flushed && !gone(journal)) {
        step(journal);
    }
    return gone(journal) ? failed(error) : OK;
}

static err journal_do_release(void *self, u64 position, struct error *error)
{
    struct sim_journal *journal = self;
    u64 number = position / JOURNAL_BLOCK_BYTES;
    assert(gone(journal) || number <= journal->ring.flushed + 1);
    while (number > journal->ring.freed && !gone(journal)) {
        journal->ring.released = number > journal->ring.released ? number : journal->ring.released;
        journal->groups[journal->open].mark = true;
        step(journal);
    }
    return gone(journal) ? failed(error) : OK;
}

static u64 journal_do_end(void *self)
{
    struct sim_journal *journal = self;
    return journal_group_end(&journal->ring, &journal->groups[journal->open]);
}

static struct journal_space journal_do_space(void *self)
{
    struct sim_journal *journal = self;
    return (struct journal_space){.used = journal_do_end(self) -
                                          journal->ring.released * JOURNAL_BLOCK_BYTES,
                                  .total = journal->ring.geometry.blocks * JOURNAL_BLOCK_BYTES};
}

static void journal_do_close(void *self)
{
    (void)self;
}

static const struct journal_ops OPS = {
    .replay = journal_do_replay,
    .submit = journal_do_submit,
    .wait = journal_do_wait,
    .release = journal_do_release,
    .end = journal_do_end,
    .space = journal_do_space,
    .close = journal_do_close,
};

/* The files' lock would refuse a second process. One that starts or recovers the machine has the
 * log while it runs; a node until it dies. */
static void check_alone(const struct sim_process *process)
{
    const struct sim_process *other = sim->journal == NULL ? process : sim->journal->process;
    if (other != process && !other->dead && (other->role == SIM_INTAKE || other->actors > 0)) {
        sim_violate("log", "%s opens the log that %s has open", process->name, other->name);
    }
}

struct journal sim_journal_open(struct sim_process *process)
{
    check_alone(process);
    struct sim_journal *journal = arena_alloc(sim->arena, sizeof(*journal));
    assert(journal != NULL);
    struct journal_source source = {
        .geometry = geometry(), .read = disk_read, .window = group_bytes[0]};
    struct error error = {0};
    *journal = (struct sim_journal){.process = process};
    err scanned = journal_scan(&source, &journal->found, &error);
    if (scanned != OK) {
        sim_violate("log", "%s", error.message);
    }
    journal->ring = journal_scan_ring(&source.geometry, &journal->found);
    journal->groups[0].bytes = group_bytes[0];
    journal->groups[1].bytes = group_bytes[1];
    sim->journal = journal;
    return (struct journal){&OPS, journal};
}
