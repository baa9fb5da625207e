#include "io/journal_block.h"

#include "base/assert.h"

#define MAGIC 0x314a484cU /* "LHJ1" */

enum {
    AT_CHECKSUM = 0,
    AT_MAGIC = 4,
    AT_LOG = 8,
    AT_NUMBER = 16,
    AT_FLUSHED = 24,
    AT_RELEASED = 32,
    AT_PREVIOUS = 40,
    AT_RUN = 44,
    AT_USED = 48, /* used, first */
    AT_LAST = 52,
    SIZE_BYTES = 4, /* in front of each record */
};

/* ---- groups ---- */

static u8 *block_at(const struct journal_group *group, u64 index)
{
    assert(index < JOURNAL_GROUP_BLOCKS);
    return group->bytes + index * JOURNAL_BLOCK_BYTES;
}

static u64 blocks_for(size_t used)
{
    return (used + JOURNAL_PAYLOAD_BYTES - 1) / JOURNAL_PAYLOAD_BYTES;
}

bool journal_group_waits(const struct journal_group *group)
{
    return group->mark || group->used > 0;
}

/* Where the first record of a block begins is noted when its bytes are copied: in the header that
 * is made later, in place of what was there. */
static void note_first(struct journal_group *group, size_t at)
{
    u8 *place = block_at(group, at / JOURNAL_PAYLOAD_BYTES) + AT_USED + 2;
    u16 first = 0;
    memcpy(&first, place, sizeof(first));
    if (first == JOURNAL_NO_RECORD) {
        first = (u16)(at % JOURNAL_PAYLOAD_BYTES);
        memcpy(place, &first, sizeof(first));
    }
}

static void stream_copy(struct journal_group *group, const void *bytes, size_t size)
{
    const u8 *from = bytes;
    while (size > 0) {
        size_t within = group->used % JOURNAL_PAYLOAD_BYTES;
        u8 *block = block_at(group, group->used / JOURNAL_PAYLOAD_BYTES);
        if (within == 0) {
            const u16 none = JOURNAL_NO_RECORD;
            memcpy(block + AT_USED + 2, &none, sizeof(none));
        }
        size_t room = JOURNAL_PAYLOAD_BYTES - within;
        size_t part = size < room ? size : room;
        memcpy(block + JOURNAL_HEADER_BYTES + within, from, part);
        group->used += part;
        from += part;
        size -= part;
    }
}

static u64 position_of(const struct journal_ring *ring, size_t at)
{
    return (ring->next + at / JOURNAL_PAYLOAD_BYTES) * JOURNAL_BLOCK_BYTES +
           at % JOURNAL_PAYLOAD_BYTES;
}

u64 journal_group_end(const struct journal_ring *ring, const struct journal_group *group)
{
    return position_of(ring, group->used);
}

err journal_group_add(const struct journal_ring *ring, struct journal_group *group,
                      const str *pieces, size_t count, u64 *out_position)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += pieces[i].size;
    }
    assert(size > 0 && size <= JOURNAL_RECORD_BYTES_MAX);
    u64 blocks = blocks_for(group->used + SIZE_BYTES + size);
    if (blocks > JOURNAL_GROUP_BLOCKS) {
        return LIMIT;
    }
    if (ring->next + blocks >= ring->freed + ring->geometry.blocks) {
        return BUSY;
    }
    size_t at = group->used;
    u8 prefix[SIZE_BYTES];
    num_store_u32(prefix, (u32)size);
    stream_copy(group, prefix, sizeof(prefix));
    note_first(group, at);
    for (size_t i = 0; i < count; i++) {
        stream_copy(group, pieces[i].data, pieces[i].size);
    }
    *out_position = position_of(ring, at);
    return OK;
}

void journal_group_take(struct journal_ring *ring, struct journal_group *group)
{
    assert(journal_group_waits(group));
    assert(ring->flushed + 1 == ring->next);
    group->blocks = group->used > 0 ? blocks_for(group->used) : 1;
    group->number = ring->next;
    group->flushed = ring->flushed;
    group->released = ring->released;
    ring->next += group->blocks;
    assert(ring->next <= ring->freed + ring->geometry.blocks);
}

static void header_write(const struct journal_ring *ring, const struct journal_group *group,
                         u64 index, u32 previous)
{
    u8 *block = block_at(group, index);
    bool last = index + 1 == group->blocks;
    size_t used = last ? group->used - index * JOURNAL_PAYLOAD_BYTES : JOURNAL_PAYLOAD_BYTES;
    u16 first = JOURNAL_NO_RECORD;
    if (used > 0) {
        memcpy(&first, block + AT_USED + 2, sizeof(first));
    }
    memset(block, 0, JOURNAL_HEADER_BYTES);
    memset(block + JOURNAL_HEADER_BYTES + used, 0, JOURNAL_PAYLOAD_BYTES - used);
    num_store_u32(block + AT_MAGIC, MAGIC);
    num_store_u64(block + AT_LOG, ring->geometry.log);
    num_store_u64(block + AT_NUMBER, group->number + index);
    num_store_u64(block + AT_FLUSHED, group->flushed);
    num_store_u64(block + AT_RELEASED, group->released);
    num_store_u32(block + AT_PREVIOUS, previous);
    num_store_u32(block + AT_RUN, ring->run);
    num_store_u32(block + AT_USED, (u32)used | (u32)first << 16);
    num_store_u32(block + AT_LAST, last ? 1 : 0);
}

void journal_group_seal(struct journal_ring *ring, struct journal_group *group)
{
    for (u64 i = 0; i < group->blocks; i++) {
        header_write(ring, group, i, ring->checksum);
        u8 *block = block_at(group, i);
        ring->checksum = journal_checksum(block + AT_MAGIC, JOURNAL_BLOCK_BYTES - AT_MAGIC);
        num_store_u32(block + AT_CHECKSUM, ring->checksum);
    }
}

void journal_group_durable(struct journal_ring *ring, struct journal_group *group)
{
    assert(group->number == ring->flushed + 1);
    ring->flushed = group->number + group->blocks - 1;
    ring->freed = group->released;
    group->used = 0;
    group->mark = false;
    group->blocks = 0;
}

/* ---- one block ---- */

static struct journal_block header_read(const u8 *bytes)
{
    u32 used = num_load_u32(bytes + AT_USED);
    return (struct journal_block){
        .number = num_load_u64(bytes + AT_NUMBER),
        .flushed = num_load_u64(bytes + AT_FLUSHED),
        .released = num_load_u64(bytes + AT_RELEASED),
        .run = num_load_u32(bytes + AT_RUN),
        .previous = num_load_u32(bytes + AT_PREVIOUS),
        .checksum = num_load_u32(bytes + AT_CHECKSUM),
        .used = (u16)used,
        .first = (u16)(used >> 16),
        .last = num_load_u32(bytes + AT_LAST) == 1,
    };
}

/* What journal_group_seal writes, and nothing else. */
static bool header_sound(const struct journal_geometry *geometry, u64 slot,
                         const struct journal_block *block)
{
    bool begins = block->first < block->used ||
                  (block->first == JOURNAL_NO_RECORD && block->used <= JOURNAL_PAYLOAD_BYTES);
    return block->number > block->flushed &&
           block->number - block->flushed <= JOURNAL_GROUP_BLOCKS && block->released > 0 &&
           block->released <= block->flushed + 1 &&
           block->number - block->released < geometry->blocks &&
           block->number % geometry->blocks == slot && block->used <= JOURNAL_PAYLOAD_BYTES &&
           (block->last || block->used == JOURNAL_PAYLOAD_BYTES) && begins && block->run > 0;
}

enum journal_look journal_block_look(const struct journal_geometry *geometry, u64 slot,
                                     const u8 bytes[JOURNAL_BLOCK_BYTES],
                                     struct journal_block *out_block)
{
    if (num_load_u32(bytes + AT_MAGIC) != MAGIC ||
        num_load_u32(bytes + AT_CHECKSUM) !=
            journal_checksum(bytes + AT_MAGIC, JOURNAL_BLOCK_BYTES - AT_MAGIC)) {
        return JOURNAL_BLANK;
    }
    struct journal_block block = header_read(bytes);
    if (num_load_u64(bytes + AT_LOG) != geometry->log || !header_sound(geometry, slot, &block)) {
        return JOURNAL_FOREIGN;
    }
    *out_block = block;
    return JOURNAL_INTACT;
}

bool journal_block_follows(const struct journal_block *block, const struct journal_block *next)
{
    bool chained = next->number == block->number + 1 && next->previous == block->checksum &&
                   next->released >= block->released;
    bool in_place = block->last ? next->flushed == block->number && next->run >= block->run
                                : next->flushed == block->flushed && next->run == block->run;
    return chained && in_place;
}

/* ---- the checksum ---- */

u32 journal_checksum_portable(const u8 *bytes, size_t size)
{
    /* of the four lowest bits, for the reflected polynomial 0x82f63b78 */
    static const u32 table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    u32 crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return crc ^ 0xffffffff;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static u32 checksum_sse42(const u8 *bytes, size_t size)
{
    u64 crc = 0xffffffff;
    for (; size >= 8; bytes += 8, size -= 8) {
        crc = __builtin_ia32_crc32di(crc, num_load_u64(bytes));
    }
    for (; size > 0; bytes++, size--) {
        crc = __builtin_ia32_crc32qi((u32)crc, *bytes);
    }
    return (u32)crc ^ 0xffffffff;
}
#endif

u32 journal_checksum(const u8 *bytes, size_t size)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) {
        return checksum_sse42(bytes, size);
    }
#endif
    return journal_checksum_portable(bytes, size);
}
