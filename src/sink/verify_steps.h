/* verify_steps: one look at a sink, shared by sink/verify*.c. Private to them.
 *
 * Everything that a look reads lives in its arena, which is dropped when the next look begins. */
#ifndef LHBOX_SINK_VERIFY_STEPS_H
#define LHBOX_SINK_VERIFY_STEPS_H

#include "base/map.h"
#include "sink/plan.h"
#include "sink/verify.h"
#include "table/catalog.h"

/* The sink's counters beside what struct ledger_sink has. */
struct verify_counters {
    i64 next_seq;
    i64 waiting_batches;
    i64 waiting_bytes;
    i64 reject_rows; /* of all reasons */
};

struct verify {
    const struct verify_env *env;
    struct arena *arena;
    struct arena *scratch; /* of one object at a time */
    struct verify_report *report;
    /* one snapshot of the ledger */
    struct ledger_sink sink; /* what the checks need of it */
    struct verify_counters counters;
    struct ledger_batch *batches; /* in seq order, `answer` left out */
    size_t batch_count;
    struct map *batch_of;      /* batch id -> index */
    struct ledger_plan *plans; /* in order of n, then creation */
    size_t plan_count;
    struct map *plan_of;          /* plan id -> index */
    struct ledger_batch *planned; /* the batches again, plan by plan */
    size_t *plan_first;           /* where each plan's begin in `planned`; one more at the end */
    instant young;      /* batches that became final later than this have their rows and rejects */
    instant young_plan; /* plans made later than this have their objects */
    /* filled by one check for the next */
    struct map *objects_known; /* keys below the sink's folder -> enum verify_key + 1 */
};

/* What a key of the sink's folder should be. */
enum verify_key {
    VERIFY_KEY_WAITING, /* intake object of a batch that is not final */
    VERIFY_KEY_FINAL,   /* all its batches are: it may be gone */
    VERIFY_KEY_PLAN,
    VERIFY_KEY_REJECTS,      /* counted rejects */
    VERIFY_KEY_REJECTS_OPEN, /* of a batch that is not final */
    VERIFY_KEY_REJECTS_NONE, /* of a final batch without rejects: must not be there */
};

/* What may be done about it; the texts stand in verify.c. */
extern const char *const VERIFY_CURE_LEDGER;
extern const char *const VERIFY_CURE_OBJECT;
extern const char *const VERIFY_CURE_PLAN;
extern const char *const VERIFY_CURE_REJECTS;
extern const char *const VERIFY_CURE_PROPERTY;
extern const char *const VERIFY_CURE_FILES;
extern const char *const VERIFY_CURE_TWICE;
extern const char *const VERIFY_CURE_AHEAD;

/* `subject` and the text are copied. */
void verify_find(struct verify *verify, const char *rule, str subject, const char *cure,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
void verify_note(struct verify *verify, const char *kind, str subject);

/* ---- verify_ledger ---- */

MUST_USE err verify_read_ledger(struct verify *verify, str sink_id, struct error *error);
/* I2, I6, I8, I13, I16, I17, I20 as far as the ledger alone shows them. */
void verify_ledger(struct verify *verify);
/* The batches whose row names this plan, in seq order. */
struct ledger_batch *verify_batches_of(const struct verify *verify, size_t plan, size_t *out_count);
bool verify_is_final(const struct ledger_batch *batch);

/* ---- verify_plans ---- */

/* I7, I8: the chain of committed plans, and the plan objects. */
MUST_USE err verify_plans(struct verify *verify, struct error *error);

/* ---- verify_objects ---- */

/* I1, I5: the bytes of what waits. Then what else lies in the folder. */
MUST_USE err verify_objects(struct verify *verify, struct error *error);
MUST_USE err verify_folder(struct verify *verify, struct error *error);

/* ---- verify_rejects ---- */

/* I13, I15: rejects files against the counts. */
MUST_USE err verify_rejects(struct verify *verify, struct error *error);

/* ---- verify_table ---- */

/* I10, I24, I32: the property, the snapshots of our rolls. Then verify_files. */
MUST_USE err verify_table(struct verify *verify, struct error *error);

/* ---- verify_files ---- */

/* I13, I25: manifests and data files of every snapshot, and of main above all. */
MUST_USE err verify_files(struct verify *verify, const struct metadata *metadata,
                          struct error *error);

#endif
