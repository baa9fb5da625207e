/* journal_scan: what the blocks of a journal say after a crash; pure but for a read of blocks.
 *
 * The verdict on the blocks from the first that is needed on: intact to the end, or with a torn
 * tail, which is cut off in front of the first group that is not whole; or damaged. A block that is
 * missing or wrong is damage when an intact block says that it was durable (`flushed`), torn
 * otherwise: only the group in flight can be, and nobody was told of it. Damage to the very last
 * group cannot be told from tearing, until a release or a later group stands behind it. */
#ifndef LHBOX_IO_JOURNAL_SCAN_H
#define LHBOX_IO_JOURNAL_SCAN_H

#include "io/journal_block.h"

/* Blocks of consecutive slots of one segment. */
struct journal_source {
    struct journal_geometry geometry;
    err (*read)(void *self, u64 slot, u64 count, void *out_bytes, struct error *error);
    void *self;
    u8 *window; /* JOURNAL_GROUP_BYTES, aligned as the reads need it */
    u64 window_slot;
    u64 window_blocks; /* 0: nothing was read */
};

struct journal_found {
    u64 first;    /* the first block that is needed */
    u64 last;     /* 0: nothing was written yet */
    u64 freed;    /* the ring's, which goes on behind `last` */
    u32 checksum; /* of block `last` */
    u32 run;      /* the highest there is; 0: none */
    bool empty;   /* no record begins in them */
    u64 cut;      /* intact blocks behind `last`: what is left of a torn group */
};

/* CORRUPT: damaged; the message names segment, offset and position. IO: it cannot be read. */
MUST_USE err journal_scan(struct journal_source *source, struct journal_found *out_found,
                          struct error *error);
/* The records of blocks first to last. `room` holds JOURNAL_RECORD_BYTES_MAX. */
MUST_USE err journal_scan_records(struct journal_source *source, const struct journal_found *found,
                                  u8 *room, journal_record record, void *context,
                                  struct error *error);
/* A ring that goes on where the scan ended, as the next run. */
struct journal_ring journal_scan_ring(const struct journal_geometry *geometry,
                                      const struct journal_found *found);

#endif
