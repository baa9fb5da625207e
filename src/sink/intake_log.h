/* intake_log: the log in front of store and ledger (exactly-once section 16); private to
 * sink/intake*.c but for opening, replay and checkpoints, which belong to whoever owns the intake.
 *
 * With it a group is accepted when its record in the log is durable: object and row are written at
 * once as without it, by the same code, so that everybody sees them, but unsynced. A checkpoint
 * syncs all of them together and releases the log. The rules are in intake_log.c.
 *
 * One log for an installation whose files are local. Any thread; replay comes before all else. */
#ifndef LHBOX_SINK_INTAKE_LOG_H
#define LHBOX_SINK_INTAKE_LOG_H

#include "io/journal.h"
#include "sink/intake_log_record.h"
#include "sink/warehouse.h"

enum {
    INTAKE_LOG_GROUP_BYTES_MAX = 900000, /* of a group that goes into the log, all of it */
    INTAKE_LOG_BATCH_BYTES = 640, /* of a batch beside its bytes: the row, and its first answer */
};

struct intake_log;

struct intake_log_options {
    const struct db *db;
    const struct journal *journal;
    const struct seam *seam;
    /* By name; NULL: not known. */
    const struct warehouse *(*find)(void *context, str name);
    void *find_context;
    i64 full_wait_us; /* how long a group waits for room in a full log; 0: not at all */
};

MUST_USE err intake_log_open(struct arena *arena, const struct intake_log_options *options,
                             struct intake_log **out_log, struct error *error);
/* No group may be under way. Does no checkpoint. */
void intake_log_close(struct intake_log *log);

struct intake_log_replayed {
    i64 records;
    i64 batches;
    i64 objects; /* put again */
};
/* Brings back what the ledger and the store lost, and releases the log. Before anything is served
 * or recovered, but after the sinks of an older copy of the ledger were flagged as recovering. May
 * be killed anywhere, and done again. */
MUST_USE err intake_log_replay(struct intake_log *log, struct intake_log_replayed *out_replayed,
                               struct error *error);

/* Everything that is through is durable without the log after it, and released. */
MUST_USE err intake_log_checkpoint(struct intake_log *log, struct error *error);
/* The thread that does so in time: when half the log is taken, and a while after the last group. */
void intake_log_start(struct intake_log *log);
void intake_log_stop(struct intake_log *log); /* and a last checkpoint */

/* ---- one group ---- */

/* A group that is not yet through; lies in the group. */
struct intake_logged {
    u64 floor;    /* the log is needed from here on */
    u64 position; /* of its record */
    bool open;
    struct intake_logged *next;
    struct intake_logged *beside; /* of others that end together with it */
};

/* Whether a group of this warehouse may be logged. */
bool intake_log_takes(const struct intake_log *log, const struct warehouse *warehouse);
/* A group of so many bytes and batches would not have to wait for room, as it looks. */
bool intake_log_has_room(struct intake_log *log, size_t bytes, size_t batches);
/* Submits the accepting record; the body's and the rejects files' bytes are the pieces behind it.
 * OK: intake_log_end must follow. LIMIT: too large for the log. BUSY: the log is full, or refuses
 * for a while; `waits`: and was so all the time that a group waits for room. */
MUST_USE err intake_log_begin(struct intake_log *log, struct arena *arena,
                              const struct warehouse *warehouse,
                              const struct intake_log_record *record, const str *pieces,
                              size_t piece_count, bool waits, struct intake_logged *out_logged,
                              struct error *error);
/* Until the record is durable. */
MUST_USE err intake_log_wait(struct intake_log *log, const struct intake_logged *logged,
                             struct error *error);
/* Takes batches of it back, durably. */
MUST_USE err intake_log_void(struct intake_log *log, struct arena *arena,
                             const struct intake_log_record *record, struct error *error);
/* Nobody can tell what became of it: the log takes nothing more until it is released. */
void intake_log_doubt(struct intake_log *log, const struct intake_logged *logged);
/* The process ends before they (it, and those beside it) are through: the log keeps them for the
 * next start. NULL: none. */
void intake_log_keep(struct intake_log *log, struct intake_logged *logged);
/* They are through, at once for every checkpoint: each batch has its row, or will never have one.
 */
void intake_log_end(struct intake_log *log, struct intake_logged *logged);

/* ---- of the replay ---- */

const struct intake_log_options *intake_log_options_of(const struct intake_log *log);
/* Something was put into this warehouse's files that a checkpoint is to sync. */
void intake_log_touch(struct intake_log *log, const struct warehouse *warehouse);

#endif
