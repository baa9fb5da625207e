/* The blocks of a journal on a disk in memory: what is written, torn, lost and found again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/journal_scan.h"

#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS_MAX = 64, RECORDS_MAX = 4096, RECORD_ROOM = 48 * 1024 };

/* ---- a log on a disk in memory, without threads ---- */

struct record {
    u32 id;
    u32 size;
    u64 position;
};

struct log {
    struct journal_geometry geometry;
    u8 *disk;
    u8 *window;
    u8 *room;
    struct journal_ring ring;
    struct journal_group group;
    struct journal_found found;
    /* of the last replay */
    struct record records[RECORDS_MAX];
    size_t count;
    u8 bytes[RECORD_ROOM];
};

static struct log *log_make(u64 segment_blocks, u64 segments)
{
    struct log *log = calloc(1, sizeof(*log));
    assert_non_null(log);
    log->geometry = (struct journal_geometry){
        .log = 77, .blocks = segment_blocks * segments, .segment_blocks = segment_blocks};
    assert_true(log->geometry.blocks <= BLOCKS_MAX);
    log->disk = calloc(log->geometry.blocks, JOURNAL_BLOCK_BYTES);
    log->window = malloc(JOURNAL_GROUP_BYTES);
    log->room = malloc(JOURNAL_RECORD_BYTES_MAX);
    log->group.bytes = malloc(JOURNAL_GROUP_BYTES);
    return log;
}

static void log_free(struct log *log)
{
    free(log->disk);
    free(log->window);
    free(log->room);
    free(log->group.bytes);
    free(log);
}

/* Bytes that tell which record they are of, at every place. */
static u8 byte_of(u32 id, size_t at)
{
    return (u8)((id * 2654435761U >> 11) + at * 7 + at / 256);
}

static str bytes_of(struct log *log, u32 id, u32 size)
{
    assert_true(size >= 4 && size <= sizeof(log->bytes));
    num_store_u32(log->bytes, id);
    for (size_t i = 4; i < size; i++) {
        log->bytes[i] = byte_of(id, i);
    }
    return (str){(const char *)log->bytes, size};
}

static err note_record(void *context, u64 position, str bytes, struct error *error)
{
    struct log *log = context;
    (void)error;
    assert_true(log->count < RECORDS_MAX && bytes.size >= 4);
    u32 id = num_load_u32(bytes.data);
    for (size_t i = 4; i < bytes.size; i++) {
        if ((u8)bytes.data[i] != byte_of(id, i)) {
            fail_msg("record %u is wrong at byte %zu", id, i);
        }
    }
    log->records[log->count++] = (struct record){id, (u32)bytes.size, position};
    return OK;
}

static err disk_read(void *self, u64 slot, u64 count, void *out_bytes, struct error *error)
{
    struct log *log = self;
    (void)error;
    assert_true(slot + count <= log->geometry.blocks);
    assert_true(slot / log->geometry.segment_blocks ==
                (slot + count - 1) / log->geometry.segment_blocks);
    memcpy(out_bytes, log->disk + slot * JOURNAL_BLOCK_BYTES, count * JOURNAL_BLOCK_BYTES);
    return OK;
}

/* As after a start: scans, replays into `records`, and goes on as the next run. */
static err log_open(struct log *log, struct error *error)
{
    struct journal_source source = {
        .geometry = log->geometry, .read = disk_read, .self = log, .window = log->window};
    log->count = 0;
    TRY(journal_scan(&source, &log->found, error));
    TRY(journal_scan_records(&source, &log->found, log->room, note_record, log, error));
    log->ring = journal_scan_ring(&log->geometry, &log->found);
    log->group = (struct journal_group){.bytes = log->group.bytes};
    return OK;
}

static void must_open(struct log *log)
{
    struct error error = {0};
    if (log_open(log, &error) != OK) {
        fail_msg("%s", error.message);
    }
}

static err log_add(struct log *log, u32 id, u32 size, u64 *out_position)
{
    str bytes = bytes_of(log, id, size);
    const str pieces[] = {str_slice(bytes, 0, 3), {NULL, 0}, str_slice(bytes, 3, size)};
    return journal_group_add(&log->ring, &log->group, pieces, ARRAY_COUNT(pieces), out_position);
}

static void must_add(struct log *log, u32 id, u32 size)
{
    u64 position = 0;
    assert_int_equal(log_add(log, id, size, &position), OK);
}

static u8 *block_on_disk(const struct log *log, u64 number)
{
    return log->disk + number % log->geometry.blocks * JOURNAL_BLOCK_BYTES;
}

/* What becomes of one block of a write that is cut short. */
enum fate { KEPT, LOST, HALF, FATES };

static void block_write(struct log *log, u64 index, enum fate fate)
{
    const u8 *from = log->group.bytes + index * JOURNAL_BLOCK_BYTES;
    u8 *to = block_on_disk(log, log->group.number + index);
    switch (fate) {
    case KEPT:
        memcpy(to, from, JOURNAL_BLOCK_BYTES);
        break;
    case HALF:
        memcpy(to, from, JOURNAL_BLOCK_BYTES / 2);
        break;
    case LOST:
    case FATES:
        break;
    }
}

static void group_seal(struct log *log)
{
    journal_group_take(&log->ring, &log->group);
    journal_group_seal(&log->ring, &log->group);
}

static void log_flush(struct log *log)
{
    group_seal(log);
    for (u64 i = 0; i < log->group.blocks; i++) {
        block_write(log, i, KEPT);
    }
    journal_group_durable(&log->ring, &log->group);
}

/* `fates` is a number to the base of FATES, a digit a block. Returns whether the group is whole. */
static bool log_tear(struct log *log, u64 fates)
{
    bool whole = true;
    group_seal(log);
    for (u64 i = 0; i < log->group.blocks; i++, fates /= FATES) {
        block_write(log, i, (enum fate)(fates % FATES));
        whole = whole &&
                memcmp(block_on_disk(log, log->group.number + i),
                       log->group.bytes + i * JOURNAL_BLOCK_BYTES, JOURNAL_BLOCK_BYTES) == 0;
    }
    return whole;
}

static void log_release(struct log *log, u64 number)
{
    log->ring.released = number > log->ring.released ? number : log->ring.released;
    log->group.mark = true;
    log_flush(log);
}

static u64 power(u64 base, u64 exponent)
{
    return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

static void assert_ids(const struct log *log, u32 first, size_t count)
{
    assert_int_equal(log->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(log->records[i].id, first + i);
    }
}

/* ---- checksums ---- */

static void checksums_are_crc32c_both_ways(void **state)
{
    (void)state;
    u8 bytes[300];
    assert_int_equal(journal_checksum((const u8 *)"123456789", 9), 0xe3069283);
    assert_int_equal(journal_checksum_portable((const u8 *)"123456789", 9), 0xe3069283);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = byte_of(5, i);
        assert_int_equal(journal_checksum(bytes, i), journal_checksum_portable(bytes, i));
        assert_int_equal(journal_checksum(bytes + i, 1), journal_checksum_portable(bytes + i, 1));
    }
}

/* ---- whole logs ---- */

static void an_empty_log_has_nothing_and_begins_at_one(void **state)
{
    (void)state;
    struct log *log = log_make(8, 2);
    must_open(log);
    assert_int_equal(log->count, 0);
    assert_int_equal(log->found.last, 0);
    assert_true(log->found.empty);
    assert_int_equal(log->ring.next, 1);
    log_free(log);
}

static void records_come_back_in_order_with_their_positions(void **state)
{
    (void)state;
    static const u32 sizes[] = {4,    5,    4027, 4028, 4029,  4032, 8060, 8059, 1024, 1024,
                                1024, 1024, 4000, 20,   12000, 4,    4,    4024, 4,    8192};
    struct log *log = log_make(16, 4);
    u64 positions[ARRAY_COUNT(sizes)] = {0};
    must_open(log);
    for (u32 i = 0; i < ARRAY_COUNT(sizes); i++) {
        assert_int_equal(log_add(log, i, sizes[i], &positions[i]), OK);
        assert_true(i == 0 || positions[i] > positions[i - 1]);
        assert_true(positions[i] < journal_group_end(&log->ring, &log->group));
        if (i % 3 == 2) {
            log_flush(log);
        }
    }
    log_flush(log);
    must_open(log);
    assert_ids(log, 0, ARRAY_COUNT(sizes));
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        assert_int_equal(log->records[i].size, sizes[i]);
        assert_true(log->records[i].position == positions[i]);
    }
    log_free(log);
}

static void what_is_released_is_not_replayed_and_its_room_is_used_again(void **state)
{
    (void)state;
    struct log *log = log_make(8, 2);
    must_open(log);
    for (u32 id = 0; id < 1000; id++) {
        u64 position = 0;
        assert_int_equal(log_add(log, id, 4 + id * 37 % 9000, &position), OK);
        log_flush(log);
        log_release(log, position / JOURNAL_BLOCK_BYTES);
        if (id % 10 == 9) {
            must_open(log);
            assert_ids(log, id, 1);
        }
    }
    assert_true(log->ring.next > 100 * log->geometry.blocks);
    assert_false(log->found.empty);
    log_release(log, log->ring.next);
    must_open(log);
    assert_int_equal(log->count, 0);
    assert_true(log->found.empty);
    log_free(log);
}

static void a_full_log_is_busy_until_a_release_for_which_room_is_kept(void **state)
{
    (void)state;
    struct log *log = log_make(8, 2);
    must_open(log);
    for (u32 round = 0; round < 100; round++) {
        u64 position = 0;
        u32 id = 0;
        while (log_add(log, id, 3000, &position) == OK) {
            log_flush(log);
            id++;
        }
        assert_int_equal(log_add(log, id, 3000, &position), BUSY);
        assert_true(id >= 14);
        log_release(log, log->ring.released + 1); /* the smallest there is */
        log_release(log, log->ring.next);
        must_open(log);
        assert_int_equal(log->count, 0);
    }
    log_free(log);
}

static void a_release_inside_a_long_record_begins_with_the_next_one(void **state)
{
    (void)state;
    struct log *log = log_make(16, 2);
    must_open(log);
    must_add(log, 0, 20000); /* blocks 1 to 5 and a part of 5 */
    must_add(log, 1, 100);
    log_flush(log);
    must_add(log, 2, 100);
    log_flush(log);
    for (u64 number = 2; number <= 5; number++) {
        log_release(log, number);
        must_open(log);
        assert_ids(log, 1, 2);
    }
    log_free(log);
}

/* ---- torn tails ---- */

/* A log that is new, or has gone round before, with three durable records. */
static struct log *log_with_three(bool has_gone_round)
{
    struct log *log = log_make(8, 2);
    must_open(log);
    for (u32 i = 0; has_gone_round && i < 9; i++) {
        must_add(log, 900 + i, 12000);
        log_flush(log);
        log_release(log, log->ring.next);
    }
    for (u32 id = 0; id < 3; id++) {
        must_add(log, id, 1000 + id * 3000);
        log_flush(log);
    }
    return log;
}

/* After a tear nothing durable is missing; the torn record is there when its group is whole. The
 * log goes on, and what is left of the torn group is never taken for what comes after it. */
static void tear_twice(bool has_gone_round, u32 blocks, u64 first_fates, u64 second_fates)
{
    struct log *log = log_with_three(has_gone_round);
    must_add(log, 3, blocks * JOURNAL_PAYLOAD_BYTES - 4);
    bool whole = log_tear(log, first_fates);
    must_open(log);
    assert_ids(log, 0, whole ? 4 : 3);
    u32 next = (u32)log->count;
    must_add(log, next, 2 * JOURNAL_PAYLOAD_BYTES - 4);
    whole = log_tear(log, second_fates);
    must_open(log);
    assert_ids(log, 0, next + (whole ? 1 : 0));
    next = (u32)log->count;
    must_add(log, next, 50);
    log_flush(log);
    must_open(log);
    assert_ids(log, 0, next + 1);
    log_free(log);
}

static void every_tearing_of_the_last_write_keeps_what_was_durable(void **state)
{
    (void)state;
    for (u32 blocks = 1; blocks <= 4; blocks++) {
        for (u64 first = 0; first < power(FATES, blocks); first++) {
            for (u64 second = 0; second < power(FATES, 2); second++) {
                tear_twice(false, blocks, first, second);
                tear_twice(true, blocks, first, second);
            }
        }
    }
}

/* The mark of a release may be torn, too: then it was never released, and nothing of it is gone. */
static void a_torn_release_frees_nothing(void **state)
{
    (void)state;
    for (u64 fates = 0; fates < FATES; fates++) {
        struct log *log = log_with_three(true);
        log->ring.released = log->ring.next;
        log->group.mark = true;
        bool whole = log_tear(log, fates);
        must_open(log);
        assert_int_equal(log->count, whole ? 0 : 3);
        log_free(log);
    }
}

static struct log *log_nearly_full(void)
{
    struct log *log = log_make(8, 2);
    must_open(log);
    for (u32 id = 0; id < 13; id++) {
        must_add(log, id, 100);
        log_flush(log);
    }
    return log;
}

/* The block that says so may be the next to be torn: then all that stood there before is needed. */
static void what_only_a_torn_block_says_is_released_is_not_written_over(void **state)
{
    (void)state;
    struct log *log = log_nearly_full();
    u64 position = 0;
    log->ring.released = log->ring.next;
    log->group.mark = true;
    must_add(log, 13, 5000);
    assert_false(log_tear(log, LOST + FATES * KEPT));
    must_open(log);
    assert_int_equal(log->count, 0);
    assert_int_equal(log_add(log, 14, 20000, &position), BUSY);
    must_add(log, 14, 7500);
    assert_false(log_tear(log, HALF + FATES * HALF));
    must_open(log);
    assert_ids(log, 0, 13);
    log_release(log, log->ring.next);
    must_add(log, 15, 20000);
    log_free(log);
}

static void what_is_released_during_a_write_is_not_durable_with_it(void **state)
{
    (void)state;
    struct log *log = log_nearly_full();
    u64 position = 0;
    must_add(log, 13, 100);
    group_seal(log);
    log->ring.released = 10;
    block_write(log, 0, KEPT);
    journal_group_durable(&log->ring, &log->group);
    assert_int_equal(log_add(log, 14, 20000, &position), BUSY);
    log_release(log, 10);
    assert_int_equal(log_add(log, 14, 20000, &position), OK);
    log_free(log);
}

/* ---- damage ---- */

static void assert_names(const struct error *error, u64 segment, u64 offset)
{
    char text[80];
    (void)snprintf(text, sizeof(text), "segment %llu at offset %llu ", (unsigned long long)segment,
                   (unsigned long long)offset);
    if (strstr(error->message, text) == NULL) {
        fail_msg("'%s' does not name %s", error->message, text);
    }
}

static void assert_names_block(const struct log *log, const struct error *error, u64 number)
{
    u64 slot = number % log->geometry.blocks;
    assert_names(error, slot / log->geometry.segment_blocks,
                 slot % log->geometry.segment_blocks * JOURNAL_BLOCK_BYTES);
}

/* Numbers of three durable groups, and of the last one, of which no later block speaks. */
static void a_flipped_bit_anywhere_is_found(void **state)
{
    (void)state;
    struct log *log = log_with_three(false);
    u64 last = log->ring.flushed;
    u64 known = last - 2; /* the last group has two blocks */
    u64 tail = 0;
    for (size_t at = 0; at < log->geometry.blocks * JOURNAL_BLOCK_BYTES;) {
        struct error error = {0};
        u64 number = at / JOURNAL_BLOCK_BYTES;
        log->disk[at] ^= (u8)(1U << at % 8);
        err result = log_open(log, &error);
        log->disk[at] ^= (u8)(1U << at % 8);
        if (number >= 1 && number <= known) {
            assert_int_equal(result, CORRUPT);
            assert_names_block(log, &error, number);
        } else {
            assert_int_equal(result, OK);
            bool cut = number > known && number <= last;
            assert_ids(log, 0, cut ? 2 : 3);
            tail += cut ? 1 : 0;
        }
        /* What a block says of itself byte by byte, the rest in steps; behind the last one nothing
         * was ever written. */
        at += number > last ? 61 : (at % JOURNAL_BLOCK_BYTES < 128 ? 1 : 7);
    }
    assert_true(tail > 2 * JOURNAL_BLOCK_BYTES / 8);
    log_release(log, 1); /* changes nothing, but stands behind the last group */
    for (u64 number = 1; number <= last; number++) {
        struct error error = {0};
        block_on_disk(log, number)[2000] ^= 1;
        assert_int_equal(log_open(log, &error), CORRUPT);
        assert_names_block(log, &error, number);
        block_on_disk(log, number)[2000] ^= 1;
    }
    log_free(log);
}

/* A disk that lied: a block that was durable is the old one again, or was never written. */
static void a_durable_block_that_is_missing_is_damage(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct log *log = log_with_three(round == 1);
        u8 before[BLOCKS_MAX * JOURNAL_BLOCK_BYTES];
        memcpy(before, log->disk, log->geometry.blocks * JOURNAL_BLOCK_BYTES);
        u64 number = log->ring.next;
        must_add(log, 3, 50);
        log_flush(log);
        must_add(log, 4, 50);
        log_flush(log);
        size_t at = number % log->geometry.blocks * JOURNAL_BLOCK_BYTES;
        memcpy(log->disk + at, before + at, JOURNAL_BLOCK_BYTES);
        struct error error = {0};
        assert_int_equal(log_open(log, &error), CORRUPT);
        assert_names_block(log, &error, number);
        log_free(log);
    }
}

static void blocks_in_a_wrong_place_or_of_another_log_are_refused(void **state)
{
    (void)state;
    struct log *log = log_with_three(false);
    struct log *other = log_make(8, 2);
    struct error error = {0};
    other->geometry.log = 78;
    must_open(other);
    must_add(other, 0, 10);
    log_flush(other);
    memcpy(block_on_disk(log, 9), block_on_disk(log, 2), JOURNAL_BLOCK_BYTES);
    assert_int_equal(log_open(log, &error), CORRUPT);
    assert_names_block(log, &error, 9);
    error_clear(&error);
    memcpy(block_on_disk(log, 9), block_on_disk(other, 1), JOURNAL_BLOCK_BYTES);
    assert_int_equal(log_open(log, &error), CORRUPT);
    assert_names_block(log, &error, 9);
    log_free(other);
    log_free(log);
}

/* ---- anything, in any order ---- */

static u64 random_state;

static u64 below(u64 limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % limit;
}

/* What was promised: of each record its place, and whether it is durable. */
struct model {
    struct log *log;
    struct record records[RECORDS_MAX];
    size_t count;   /* submitted and not known to be lost */
    size_t durable; /* the first of them */
    size_t released;
    u32 next_id;
};

static void model_add(struct model *model)
{
    u64 position = 0;
    u32 size = (u32)(4 + below(below(4) == 0 ? 20000 : 1500));
    err added = log_add(model->log, model->next_id, size, &position);
    assert_true(added == OK || added == BUSY);
    if (added == OK && model->count < RECORDS_MAX) {
        model->records[model->count++] = (struct record){model->next_id++, size, position};
    }
}

/* Returns whether a mark must be written. */
static bool model_release(struct model *model)
{
    struct log *log = model->log;
    if (model->durable == model->released) {
        return false;
    }
    size_t upto = model->released + below(model->durable - model->released + 1);
    u64 position = upto < model->count ? model->records[upto].position
                                       : (log->ring.flushed + 1) * JOURNAL_BLOCK_BYTES;
    model->released = upto;
    if (position / JOURNAL_BLOCK_BYTES <= log->ring.freed) {
        return false;
    }
    log->ring.released = position / JOURNAL_BLOCK_BYTES;
    return true;
}

/* Sometimes something is released while the disk works: it is not durable by that. */
static void model_flush(struct model *model)
{
    if (!journal_group_waits(&model->log->group)) {
        return;
    }
    group_seal(model->log);
    bool mark = below(3) == 0 && model_release(model);
    for (u64 i = 0; i < model->log->group.blocks; i++) {
        block_write(model->log, i, KEPT);
    }
    journal_group_durable(&model->log->ring, &model->log->group);
    model->log->group.mark = mark;
    model->durable = model->count;
}

/* Nothing durable is missing that was not released; a record that was not durable is there with its
 * whole group or not at all. */
static void model_check(struct model *model, bool whole)
{
    const struct log *log = model->log;
    size_t expected = whole ? model->count : model->durable;
    size_t at = model->released;
    size_t from = 0;
    while (from < log->count && at < expected && log->records[from].id != model->records[at].id) {
        assert_true(log->records[from].id < model->records[at].id); /* released, but still there */
        from++;
    }
    from = at == expected ? log->count : from;
    assert_int_equal(log->count - from, expected - at);
    for (size_t i = 0; at < expected; i++, at++) {
        assert_int_equal(log->records[from + i].id, model->records[at].id);
        assert_int_equal(log->records[from + i].size, model->records[at].size);
        assert_true(log->records[from + i].position == model->records[at].position);
    }
    model->count = expected;
    model->durable = expected;
}

static void model_crash(struct model *model)
{
    bool whole = true;
    if (below(3) > 0 && journal_group_waits(&model->log->group)) {
        u64 all = power(FATES, 30) / 2; /* of the digit 1: nothing is kept, or all are halves */
        u64 fates[] = {0, all, 2 * all, below(power(FATES, 8)), below(power(FATES, 30))};
        whole = log_tear(model->log, fates[below(ARRAY_COUNT(fates))]);
    } else if (journal_group_waits(&model->log->group)) {
        whole = model->count == model->durable;
    }
    must_open(model->log);
    model_check(model, whole);
}

static void any_order_of_writes_crashes_and_releases_keeps_the_promise(void **state)
{
    (void)state;
    const char *tier = getenv("LHBOX_TEST_TIER");
    u64 runs = tier != NULL && strcmp(tier, "all") == 0 ? 20000 : 150;
    for (u64 run = 1; run <= runs; run++) {
        random_state = run * 0x9e3779b97f4a7c15ULL;
        struct model *model = calloc(1, sizeof(*model));
        assert_non_null(model);
        model->log = log_make(4 + below(8), 2 + below(3));
        must_open(model->log);
        for (u64 step = 0; step < 300; step++) {
            u64 what = below(20);
            if (what < 10) {
                model_add(model);
            } else if (what < 15) {
                model_flush(model);
            } else if (what < 18) {
                model->log->group.mark |= model_release(model);
            } else {
                model_crash(model);
            }
        }
        log_free(model->log);
        free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_crc32c_both_ways),
        cmocka_unit_test(an_empty_log_has_nothing_and_begins_at_one),
        cmocka_unit_test(records_come_back_in_order_with_their_positions),
        cmocka_unit_test(what_is_released_is_not_replayed_and_its_room_is_used_again),
        cmocka_unit_test(a_full_log_is_busy_until_a_release_for_which_room_is_kept),
        cmocka_unit_test(a_release_inside_a_long_record_begins_with_the_next_one),
        cmocka_unit_test(every_tearing_of_the_last_write_keeps_what_was_durable),
        cmocka_unit_test(a_torn_release_frees_nothing),
        cmocka_unit_test(what_only_a_torn_block_says_is_released_is_not_written_over),
        cmocka_unit_test(what_is_released_during_a_write_is_not_durable_with_it),
        cmocka_unit_test(a_flipped_bit_anywhere_is_found),
        cmocka_unit_test(a_durable_block_that_is_missing_is_damage),
        cmocka_unit_test(blocks_in_a_wrong_place_or_of_another_log_are_refused),
        cmocka_unit_test(any_order_of_writes_crashes_and_releases_keeps_the_promise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
