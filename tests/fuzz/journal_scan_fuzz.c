/* The scan of a journal after a crash: any blocks are found sound, torn or damaged. What was found
 * sound goes on: a record that is added then is found behind those that were there, and a block
 * that is lost from among them is found missing.
 *
 * The input describes a disk: a byte for the sizes, a byte for the size of the numbers, then for
 * each slot a byte of flags, and a header. Checksums are right unless the flags say otherwise, so
 * that what follows them is reached. */
#include "base/assert.h"
#include "fuzz.h"
#include "io/journal_scan.h"

#include <stdlib.h>

enum { SEGMENT_BLOCKS = 4, SEGMENTS_MAX = 3, BLOCKS_MAX = SEGMENT_BLOCKS * SEGMENTS_MAX };
enum { PRESENT = 1, WRONG_CHECKSUM = 2, WRONG_CHAIN = 4, OTHER_LOG = 8, LAST = 16 };

struct bytes {
    const uint8_t *data;
    size_t size;
};

static u32 take(struct bytes *bytes, int count)
{
    u32 value = 0;
    for (int i = 0; i < count; i++) {
        value |= bytes->size > 0 ? (u32)bytes->data[0] << (8 * i) : 0;
        bytes->data += bytes->size > 0 ? 1 : 0;
        bytes->size -= bytes->size > 0 ? 1 : 0;
    }
    return value;
}

static _Alignas(16) u8 disk[BLOCKS_MAX * JOURNAL_BLOCK_BYTES];
static u8 window[JOURNAL_GROUP_BYTES];
static u8 group_bytes[JOURNAL_GROUP_BYTES];
static u8 room[JOURNAL_RECORD_BYTES_MAX];

static void block_make(struct bytes *bytes, u64 base, u32 *checksum, u8 *block)
{
    memset(block, 0, JOURNAL_BLOCK_BYTES);
    u32 flags = take(bytes, 1);
    if ((flags & PRESENT) == 0) {
        return;
    }
    num_store_u32(block + 4, 0x314a484c);
    num_store_u64(block + 8, (flags & OTHER_LOG) != 0 ? 6 : 5);
    for (size_t at = 16; at <= 32; at += 8) { /* number, flushed, released */
        num_store_u64(block + at, base + take(bytes, 1));
    }
    num_store_u32(block + 40, (flags & WRONG_CHAIN) != 0 ? 1 : *checksum);
    num_store_u32(block + 44, take(bytes, 1));
    num_store_u32(block + 48, take(bytes, 4)); /* used, first */
    num_store_u32(block + 52, (flags & LAST) != 0 ? 1 : 0);
    u32 filled = take(bytes, 1);
    for (u32 i = 0; i < filled; i++) {
        block[JOURNAL_HEADER_BYTES + i] = (u8)take(bytes, 1);
    }
    *checksum = journal_checksum(block + 4, JOURNAL_BLOCK_BYTES - 4);
    num_store_u32(block, (flags & WRONG_CHECKSUM) != 0 ? 0 : *checksum);
}

static err disk_read(void *self, u64 slot, u64 count, void *out_bytes, struct error *error)
{
    const struct journal_geometry *geometry = self;
    (void)error;
    assert(slot < geometry->blocks && count <= geometry->blocks - slot);
    memcpy(out_bytes, disk + slot * JOURNAL_BLOCK_BYTES, count * JOURNAL_BLOCK_BYTES);
    return OK;
}

struct replay {
    u64 count;
    u64 bytes;
    u64 position; /* of the last one */
};

static err note(void *context, u64 position, str bytes, struct error *error)
{
    struct replay *replay = context;
    (void)error;
    assert(bytes.size > 0 && bytes.size <= JOURNAL_RECORD_BYTES_MAX);
    assert(position > replay->position);
    replay->count++;
    replay->bytes += bytes.size;
    replay->position = position;
    return OK;
}

static err scan(const struct journal_geometry *geometry, struct journal_found *found,
                struct replay *replay)
{
    struct error error = {0};
    struct journal_geometry copy = *geometry;
    struct journal_source source = {
        .geometry = *geometry, .read = disk_read, .self = &copy, .window = window};
    *replay = (struct replay){0};
    err result = journal_scan(&source, found, &error);
    if (result == OK) {
        assert(found->first > 0 && found->first <= found->last + 1);
        assert(found->freed <= found->first && found->last - found->freed + 1 <= copy.blocks);
        result = journal_scan_records(&source, found, room, note, replay, &error);
    }
    assert(result == OK || (result == CORRUPT && error.message[0] != '\0'));
    return result;
}

/* Only where the ring has room: a log that is full of a damaged kind needs a release first. */
static void go_on(const struct journal_geometry *geometry, const struct journal_found *found,
                  const struct replay *before)
{
    struct journal_ring ring = journal_scan_ring(geometry, found);
    struct journal_group group = {.bytes = group_bytes};
    struct journal_found again = {0};
    struct replay after = {0};
    const str record = STR("one more");
    u64 position = 0;
    if (ring.run == 0 || journal_group_add(&ring, &group, &record, 1, &position) != OK) {
        return;
    }
    journal_group_take(&ring, &group);
    journal_group_seal(&ring, &group);
    memcpy(disk + group.number % geometry->blocks * JOURNAL_BLOCK_BYTES, group.bytes,
           JOURNAL_BLOCK_BYTES);
    journal_group_durable(&ring, &group);
    err result = scan(geometry, &again, &after);
    assert(result == OK);
    assert(again.last == found->last + 1);
    assert(after.count == before->count + 1);
    assert(after.bytes == before->bytes + record.size);
    assert(after.position == position);
    if (found->last >= found->first && found->last > 0) {
        disk[found->last % geometry->blocks * JOURNAL_BLOCK_BYTES + 100] ^= 1;
        result = scan(geometry, &again, &after);
        assert(result == CORRUPT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes bytes = {data, size};
    u64 segments = 2 + take(&bytes, 1) % (SEGMENTS_MAX - 1);
    u64 base = (u64)take(&bytes, 1) * take(&bytes, 1) << 32;
    const struct journal_geometry geometry = {
        .log = 5, .blocks = segments * SEGMENT_BLOCKS, .segment_blocks = SEGMENT_BLOCKS};
    u32 checksum = 0;
    for (u64 slot = 0; slot < geometry.blocks; slot++) {
        block_make(&bytes, base, &checksum, disk + slot * JOURNAL_BLOCK_BYTES);
    }
    struct journal_found found = {0};
    struct replay replay = {0};
    if (scan(&geometry, &found, &replay) == OK) {
        go_on(&geometry, &found, &replay);
    }
    return 0;
}
