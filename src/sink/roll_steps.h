/* roll_steps: the steps of one roll, shared by sink/roll*.c and sink/recover.c. Private to them.
 *
 * A `struct roll` is one roller's work on one sink during one tick. It owns nothing but its arena;
 * the table versions it loads are closed by the function that loaded them. */
#ifndef LHBOX_SINK_ROLL_STEPS_H
#define LHBOX_SINK_ROLL_STEPS_H

#include "base/crew.h"
#include "sink/plan.h"
#include "sink/roll.h"
#include "table/commit.h"

struct roll {
    const struct roll_env *env;
    struct arena *arena;
    struct ledger_sink sink; /* as last read */
    str trigger;
    i64 batches_max; /* of the next plan; lower after a plan was too much for one roll */
    i64 began_at;    /* monotonic */
    i64 lease_taken; /* monotonic */
    /* The files of a plan that a commit makes durable before it is attempted: the plan object,
     * first rejects files, the data files. NULL: they are durable as soon as they are put. */
    struct store_group *group;
};

/* What a step leaves to do. */
enum roll_step {
    STEP_GO,       /* on with the next step */
    STEP_AGAIN,    /* the ledger's state has changed: look at it again */
    STEP_ENDED,    /* a plan ended */
    STEP_NOTHING,  /* there is nothing to do */
    STEP_LATER,    /* the tick ends */
    STEP_DISABLED, /* the sink was stopped */
};

/* A live plan with its batches. */
struct roll_plan {
    struct ledger_plan row;
    struct ledger_batch *batches;
    size_t batch_count;
    bool computed; /* in this try: rejects files of another schema may have been written */
};

bool roll_stopping(const struct roll *roll);
/* Takes the lease again when it is a third used up. BUSY: somebody else has it. */
MUST_USE err roll_keep_lease(struct roll *roll, struct error *error);
MUST_USE err roll_read_sink(struct roll *roll, str sink_id, struct error *error);
/* Stops the sink; *out_step is STEP_DISABLED. */
MUST_USE err roll_disable(struct roll *roll, const char *reason, str detail,
                          enum roll_step *out_step, struct error *error);

/* ---- roll_table: the table and what it says ---- */

/* What was found where the sink's table should be. */
enum roll_place {
    ROLL_PLACE_TABLE,    /* the claimed table, under its present name */
    ROLL_PLACE_GONE,     /* surely no such table */
    ROLL_PLACE_REPLACED, /* another table has its name */
};
/* Follows a rename by the table's uuid. *out_table is set with ROLL_PLACE_TABLE only. */
MUST_USE err roll_find_table(struct roll *roll, enum roll_place *out_place, struct table *out_table,
                             struct error *error);
/* The table, when the sink may write to it: else the sink is disabled (table_gone, table_replaced,
 * schema_unsupported, location_refused). *out_table is set with STEP_GO only. */
MUST_USE err roll_open_table(struct roll *roll, struct table *out_table, enum roll_step *out_step,
                             struct error *error);
enum plan_reading roll_judge(const struct roll *roll, const struct ledger_plan *plan,
                             const struct table *table);
/* The property is ahead or not ours (O4): noted, or the sink is disabled. */
MUST_USE err roll_mismatch(struct roll *roll, enum plan_reading reading, const struct table *table,
                           enum roll_step *out_step, struct error *error);
/* It agrees: forgets a noted mismatch. */
MUST_USE err roll_match(struct roll *roll, struct error *error);
/* What the commit of this request will write joins the roll's group, where the catalog can. */
void roll_stage(struct roll *roll, const json_t *request, struct catalog_staged *out_staged);
/* Sends one request. Whatever comes decides nothing; *out_after may be empty. `staged`: of the same
 * request, its group durable; NULL: nothing. */
void roll_send(struct roll *roll, const json_t *request, struct catalog_staged *staged,
               struct table *out_after);
/* The store tells of the table's present version (the pointer's copy, section 9). Before the ledger
 * tells of what the version proves: a copy of that ledger can be put back, and the table must not
 * have gone back behind it with an older one. */
MUST_USE err roll_point_store(const struct roll *roll, struct error *error);

/* ---- roll_claim ---- */

/* The first roll's metadata commit. STEP_AGAIN: the table is claimed. */
MUST_USE err roll_claim(struct roll *roll, enum roll_step *out_step, struct error *error);

/* ---- roll_read: the batches' bytes ---- */

/* The largest part of a roll's memory, so that it has an arena of its own, and is given back as
 * soon as the rows are in columns. */
struct roll_bytes {
    struct arena *arena; /* NULL: there are none, or not any more */
    str *segments;       /* one per batch of the plan, verified */
};
void roll_bytes_close(struct roll_bytes *bytes);
/* STEP_GO: all bytes verified. STEP_LATER: some did not. STEP_AGAIN: they did not for the third
 * time, and the plan is void or voiding with them held. */
MUST_USE err roll_read_batches(struct roll *roll, struct roll_plan *plan,
                               struct roll_bytes *out_bytes, enum roll_step *out_step,
                               struct error *error);
/* The same, one batch after the other: what was given is good until the next one. The segments of
 * an object follow each other, so that each is read once. Two batches are read and hashed together;
 * a crew does so for the next two while the rows of these are read. */
struct roll_object {
    struct arena *arena; /* NULL: not begun, or closed */
    str key;             /* of the object in the arena; data NULL: none */
    str body;
};
/* A batch and the one behind it, as the store gives them. */
struct roll_look {
    struct roll *roll;
    const struct roll_plan *plan;
    struct roll_stream *stream;
    size_t first;
    size_t count; /* 0: none was looked at */
    const struct roll_object *objects[2];
    str segments[2];
    bool verified[2];
};
struct roll_stream {
    struct roll_object objects[4]; /* two in use, two for the next look */
    struct roll_look now;
    struct roll_look next; /* the crew's while `beside` */
    struct crew_aside aside;
    bool beside;
};
void roll_stream_close(struct roll_stream *stream);
#define AUTO_ROLL_STREAM __attribute__((cleanup(roll_stream_close)))
/* *out_verified false: the batch is lost or damaged, roll_read_batches makes a note of that. */
MUST_USE err roll_stream_batch(struct roll *roll, const struct roll_plan *plan,
                               struct roll_stream *stream, size_t batch, str *out_segment,
                               bool *out_verified, struct error *error);
/* Reads and verifies one batch. CORRUPT: it is lost or damaged, *out_reason says which. */
MUST_USE err roll_read_batch(const struct roll_env *env, struct arena *arena,
                             const struct ledger_batch *batch, str *out_bytes, str *out_reason,
                             struct error *error);

/* ---- roll_rows, roll_write: rows, rejects, files ---- */

/* One computed result: kept over the tries of a tick, under one schema and one partition spec. */
struct roll_result {
    struct plan_counts counts;
    str counts_json;
    struct append append;
    str *file_paths;
    size_t file_count;
    bool recorded;  /* the ledger has its files */
    i64 written_at; /* monotonic */
};

/* Decodes, writes the rejects files and the data files, and gives the bytes back as early as it
 * can. STEP_GO with a result; STEP_AGAIN: the plan was too much for one roll and is void,
 * roll->batches_max was lowered. */
MUST_USE err roll_compute(struct roll *roll, struct roll_plan *plan, const struct table *table,
                          struct roll_bytes *bytes, struct roll_result *out_result,
                          enum roll_step *out_step, struct error *error);
/* Writes the rejects files that were overwritten by another schema's again (O18). */
MUST_USE err roll_mend_rejects(struct roll *roll, const struct roll_plan *plan,
                               const struct table *table, struct error *error);
/* The same by a roller that has lost its plan after it may have written rejects files: those of
 * batches that were committed meanwhile. */
MUST_USE err roll_mend_lost(struct roll *roll, const struct roll_plan *plan,
                            const struct table *table, struct error *error);

/* ---- roll_commit ---- */

/* Step 3 of an open or attempted plan of an active sink. */
MUST_USE err roll_commit_plan(struct roll *roll, struct roll_plan *plan, enum roll_step *out_step,
                              struct error *error);
/* Step 4: the property read (n, id) on `table`. */
MUST_USE err roll_finish(struct roll *roll, const struct roll_plan *plan, const struct table *table,
                         struct error *error);

/* ---- roll_void ---- */

/* Voids the plan, with a fence if it was attempted. STEP_AGAIN: it is void. STEP_ENDED: it had
 * landed, and is finished. STEP_LATER, STEP_DISABLED. */
MUST_USE err roll_void(struct roll *roll, struct roll_plan *plan, const char *reason,
                       const struct ledger_hold *holds, size_t hold_count, enum roll_step *out_step,
                       struct error *error);
/* Goes on with a voiding plan (5.2). */
MUST_USE err roll_fence(struct roll *roll, struct roll_plan *plan, const struct ledger_hold *holds,
                        size_t hold_count, enum roll_step *out_step, struct error *error);
/* All rows of an open plan were rejected (5.3). */
MUST_USE err roll_void_rejected(struct roll *roll, const struct roll_plan *plan,
                                const struct plan_counts *counts, struct error *error);
/* The outcome as the ledger takes it, from counts. */
MUST_USE err roll_outcome(struct roll *roll, const struct plan_counts *counts,
                          struct ledger_outcome *out_outcome, struct error *error);
/* The void verdict object, then the objects may go (O2). */
MUST_USE err roll_write_verdict(const struct roll_env *env, struct arena *arena,
                                const struct ledger_plan *plan, struct error *error);

#endif
