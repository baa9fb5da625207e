/* verify: what can be seen of one sink's invariants from outside, read-only.
 *
 * Ledger, plan objects, waiting batches' bytes, rejects files, and the table with its manifests and
 * data files are held against each other. Nothing is locked and nothing is written: rolls go on
 * meanwhile. So a finding counts only when a second look, 2 s later on a fresh snapshot of the
 * ledger and a fresh load of the table, finds the same; what was merely under way has changed by
 * then.
 *
 * A finding names the rule of docs/exactly-once.md that it breaks, and what to do. It is a result,
 * not a failure: verify_sink fails only when it could not look (IO, LIMIT, NOT_FOUND). Blocking;
 * any thread; memory grows with the batches of the last 7 days. */
#ifndef LHBOX_SINK_VERIFY_H
#define LHBOX_SINK_VERIFY_H

#include "sink/ledger.h"
#include "sink/warehouse.h"

enum { VERIFY_FINDINGS_MAX = 200, VERIFY_NOTES_MAX = 200, VERIFY_MIB_MAX = 2048 };

enum verify_what {
    VERIFY_LIVE, /* a running installation */
    VERIFY_COPY, /* a backup: its store may be younger than its ledger */
};

enum verify_depth {
    VERIFY_SIZES, /* data files: they exist, with their size */
    VERIFY_ROWS,  /* they are read too, to the last byte: Parquet begins, and a footer ends them */
};

struct verify_env {
    const struct db *db;
    const struct seam *seam;
    const struct warehouse *warehouse; /* the sink's */
    str installation_id;
    enum verify_what what;
    enum verify_depth depth;
};

struct verify_finding {
    const char *rule; /* "I13" */
    str subject;      /* a batch, a plan, a file */
    str text;         /* what is wrong */
    const char *cure;
};

/* Nothing is wrong with it; somebody may want to know. */
struct verify_note {
    const char *kind; /* orphan, leftover, held, … */
    str subject;
};

struct verify_report {
    struct verify_finding *findings;
    size_t finding_count;
    i64 findings_in_all; /* more than finding_count when there were too many to keep */
    struct verify_note *notes;
    size_t note_count;
    i64 notes_in_all;
    /* how much was looked at */
    i64 batches;
    i64 plans;
    i64 objects;
    i64 rejects_files;
    i64 snapshots;
    i64 manifests;
    i64 data_files;
    i64 rows; /* in the live data files, by their manifests */
};

/* The report lives in the arena. */
MUST_USE err verify_sink(const struct verify_env *env, struct arena *arena, str sink_id,
                         struct verify_report *out_report, struct error *error);

#endif
