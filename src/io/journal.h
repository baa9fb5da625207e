/* journal: a preallocated, checksummed, segmented log of records with group commit, behind a seam.
 *
 * A record is bytes that are durable once journal_wait answered OK for their position. Many threads
 * submit; what is submitted while a write is under way becomes the next write, without a timer. The
 * log is a ring of fixed size: journal_release says which records nobody needs any more, and their
 * room is used again. At the next start journal_replay gives every durable record that was not
 * released, in order.
 *
 * A position is a place in the log that only grows. All calls block; any thread may call, but
 * journal_replay comes before all others, and journal_close after them.
 *
 * After a write that failed nothing is durable any more: every wait and submit answers IO for ever
 * (with files of a disk the process has ended with code 74 by then, exactly-once I28). */
#ifndef LHBOX_IO_JOURNAL_H
#define LHBOX_IO_JOURNAL_H

#include "base/arena.h"
#include "base/error.h"
#include "base/seam.h"

enum {
    JOURNAL_RECORD_BYTES_MAX = 1000000, /* a larger one is better written to its own file */
    JOURNAL_IDENTITY_BYTES_MAX = 64,
    JOURNAL_SEGMENTS_MAX = 256,
    JOURNAL_SEGMENT_BYTES_MIN = MIB, /* and a multiple of 4 KiB */
};
#define JOURNAL_SEGMENT_BYTES_MAX ((u64)8 << 30)

struct journal_options {
    str directory;     /* made when missing, mode 0700; nothing else may live in it */
    u64 segment_bytes; /* of a new log, whose room is taken at once */
    u32 segments;      /* of a new log: at least 2 */
    str identity;      /* of the installation: whose log this is; plain text without spaces */
    const struct seam *seam;
};

/* What replay gives: one record. Anything but OK ends the replay, which answers it. */
typedef err (*journal_record)(void *context, u64 position, str bytes, struct error *error);

/* How much of the log is taken by what is not released yet, durably so; both in bytes. Each group
 * that is written ends with its block of 4 KiB. */
struct journal_space {
    u64 used;
    u64 total;
};

struct journal_ops {
    err (*replay)(void *self, journal_record record, void *context, struct error *error);
    err (*submit)(void *self, const str *pieces, size_t count, u64 *out_position,
                  struct error *error);
    err (*wait)(void *self, u64 position, struct error *error);
    err (*release)(void *self, u64 position, struct error *error);
    u64 (*end)(void *self);
    struct journal_space (*space)(void *self);
    void (*close)(void *self);
};

struct journal {
    const struct journal_ops *ops;
    void *self;
};

/* Every durable record that was not released, oldest first; some that were, too: what is released
 * is so by the block of 4 KiB. As often as it is asked for, before anything is submitted; the bytes
 * are lent. */
MUST_USE err journal_replay(const struct journal *journal, journal_record record, void *context,
                            struct error *error);
/* Takes a record, the pieces one after the other; it is written when somebody waits for it, or for
 * one after it. BUSY (overloaded): the log is full, nothing was taken. LIMIT: too large, or empty.
 * IO: a write failed. */
MUST_USE err journal_submit(const struct journal *journal, const str *pieces, size_t count,
                            u64 *out_position, struct error *error);
/* Until the record is durable: OK, or IO. */
MUST_USE err journal_wait(const struct journal *journal, u64 position, struct error *error);
/* What stands before the position may be forgotten, for what it stands for is durable elsewhere.
 * Waits for what is not durable here yet. OK: this is durable, too. Positions that were passed
 * already change nothing. */
MUST_USE err journal_release(const struct journal *journal, u64 position, struct error *error);
/* The position before which everything stands that was submitted before the call, and nothing that
 * is submitted after it. */
u64 journal_end(const struct journal *journal);
struct journal_space journal_space(const struct journal *journal);
void journal_close(struct journal *journal);

/* The log in a directory: a file `head` that says whose it is and how large, and the segments.
 * Files are the owner's alone (0600). Written directly to the disk (O_DIRECT) where the file system
 * takes it, each write durable when it returns (O_DSYNC). One process at a time: BUSY for another.
 * The journal and its buffers live in the arena (some 3 MiB).
 *
 * Other sizes than those of the log that is there are taken over at the first open that finds
 * nothing in it to replay; until then it stays as it is. The tail that a crash tore is cut off:
 * nobody was told that it was durable. INVALID: the log of another installation. CORRUPT: a record
 * that somebody was told is durable is damaged, or a file is missing or not of a log; the message
 * names the file and the place. */
MUST_USE err journal_open_dir(struct arena *arena, const struct journal_options *options,
                              struct journal *out_journal, struct error *error);

#endif
