/* journal_block: how records lie in the blocks of a journal, and which numbers may be written;
 * pure.
 *
 * The log is a ring of blocks of 4 KiB. Every block has a number, one more than that of the block
 * before, and stands in the slot `number modulo blocks`. Records are one stream of bytes, each with
 * its size in front, cut over the payloads of a group of blocks; a group is what is written at
 * once, and its last block is padded. A block's header says
 *
 *     checksum   of the rest of the block (CRC-32C)
 *     log        which log it belongs to (drawn when the log was made)
 *     number     old blocks of a slot have smaller ones
 *     run        how often the log was opened: what a torn group of an earlier run left behind
 *                can have the right number, but not this
 *     previous   the checksum of the block before: a chain
 *     flushed    all blocks up to this one were durable when this one was written; so a group
 * begins right after it released   all blocks before this one are needed no more
 *
 * A slot is written again only when a durable block says that what it holds is released. So what is
 * durable at any time is a chain without a hole from `released` on.
 *
 * Not thread-safe; the owner's lock is around every call but journal_group_seal. The journal in a
 * directory and the simulator's share this code. */
#ifndef LHBOX_IO_JOURNAL_BLOCK_H
#define LHBOX_IO_JOURNAL_BLOCK_H

#include "base/error.h"
#include "io/journal.h"

enum {
    JOURNAL_BLOCK_BYTES = 4096,
    JOURNAL_HEADER_BYTES = 64,
    JOURNAL_PAYLOAD_BYTES = JOURNAL_BLOCK_BYTES - JOURNAL_HEADER_BYTES,
    JOURNAL_GROUP_BLOCKS = 256,
    JOURNAL_GROUP_BYTES = JOURNAL_GROUP_BLOCKS * JOURNAL_BLOCK_BYTES,
    JOURNAL_NO_RECORD = 0xffff,
};

/* A block's header, checked. */
struct journal_block {
    u64 number;
    u64 flushed;
    u64 released;
    u32 run;
    u32 previous;
    u32 checksum;
    u16 used;  /* bytes of the payload */
    u16 first; /* where in the payload the first record begins; JOURNAL_NO_RECORD */
    bool last; /* of its group */
};

struct journal_geometry {
    u64 log;
    u64 blocks;         /* of all segments */
    u64 segment_blocks; /* of one */
};

enum journal_look {
    JOURNAL_BLANK,   /* nothing that was a block of a log */
    JOURNAL_FOREIGN, /* an intact block of another log */
    JOURNAL_INTACT,
};

enum journal_look journal_block_look(const struct journal_geometry *geometry, u64 slot,
                                     const u8 bytes[JOURNAL_BLOCK_BYTES],
                                     struct journal_block *out_block);
/* Whether `next` can stand right behind `block`. */
bool journal_block_follows(const struct journal_block *block, const struct journal_block *next);

/* The numbers of the ring. */
struct journal_ring {
    struct journal_geometry geometry;
    u32 run;
    u32 checksum; /* of the last sealed block; the sealing thread's own */
    u64 next;     /* the first number of the next group */
    u64 flushed;  /* the last number known to be durable */
    u64 released; /* as asked for */
    u64 freed;    /* as a durable block says: numbers below freed + blocks may be written */
};

/* A group while it is filled, and while it is written. */
struct journal_group {
    u8 *bytes;   /* JOURNAL_GROUP_BYTES, of the owner */
    size_t used; /* of the stream of payloads */
    bool mark;   /* to be written without a record, too */
    /* since it was taken */
    u64 number; /* of the first block */
    u64 blocks;
    u64 flushed;
    u64 released;
};

bool journal_group_waits(const struct journal_group *group); /* there is something to write */
/* Copies a record into the group. BUSY: the ring is full. LIMIT: this group is, and is written
 * soon. One block stays free in the ring, for the mark that a release may need. */
MUST_USE err journal_group_add(const struct journal_ring *ring, struct journal_group *group,
                               const str *pieces, size_t count, u64 *out_position);
/* Where the next record would begin. */
u64 journal_group_end(const struct journal_ring *ring, const struct journal_group *group);
/* The group gets its numbers. The one before it must be durable. */
void journal_group_take(struct journal_ring *ring, struct journal_group *group);
/* Headers and checksums: the first `blocks` blocks of the bytes are ready to be written. */
void journal_group_seal(struct journal_ring *ring, struct journal_group *group);
/* It was written, and is durable. The group is empty again. */
void journal_group_durable(struct journal_ring *ring, struct journal_group *group);

/* CRC-32C (Castagnoli), by the processor's instruction where it has one. */
u32 journal_checksum(const u8 *bytes, size_t size);
u32 journal_checksum_portable(const u8 *bytes, size_t size);

#endif
