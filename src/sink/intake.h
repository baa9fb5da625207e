/* intake: from an HTTP request to an accepted batch (exactly-once step 1).
 *
 *   head       intake_authenticate, intake_begin       http thread, never blocks
 *   body       intake_send_body, per piece             http thread
 *   complete   intake_send_complete                    http thread, never blocks
 *   known id?  a glance at the ids in memory           http thread
 *              one read of the ledger, if it may be    worker
 *   group      what waits for a sink while a PUT of it is in flight becomes ONE object
 *   PUT        rejects files, then the object          worker, durable
 *   ledger     one transaction for the group           worker
 *   answer     the callback given at the beginning     worker
 *
 * Object first, row second, answer third (I1); with a log, what is surely new is answered as soon
 * as its record is durable, and object and row follow (intake_early.h). Send keys are looked up in
 * memory; whoever changes a sink calls intake_notify_sink. A send belongs to the http thread until
 * it is complete, then to the intake. */
#ifndef LHBOX_SINK_INTAKE_H
#define LHBOX_SINK_INTAKE_H

#include "sink/intake_body.h"
#include "sink/ledger.h"
#include "sink/warehouse.h"

struct intake;
struct intake_early;
struct intake_log;
struct intake_sink;
struct intake_send;

struct intake_options {
    const struct db *db;
    const struct seam *seam;
    const struct warehouses *warehouses;
    struct intake_limits limits;
    i32 workers;          /* 8 */
    i32 queue_max;        /* sends on their way; 4,096 */
    i64 index_bytes_max;  /* of the set of known ids; 0: each id is read in the ledger; 64 MiB */
    i32 waits_max;        /* sends parked for their commit; 10,000 */
    i64 dry_run_rows_max; /* 1,000 */
    struct ledger_backlog backlog;
    struct intake_log *log;      /* sink/intake_log.h; NULL: none */
    struct intake_early *early;  /* sink/intake_early.h; with a log only; NULL: none */
    i64 bucket_bytes_max;        /* quota of each file bucket; 0: none */
    i32 failures_per_minute_max; /* refused keys of one address; 60 */
    /* Called after batches of a sink were accepted; may be NULL. Must not block. */
    void (*accepted)(void *context, str sink_id);
    void *accepted_context;
    /* Called before and after the answers of a group, on one thread; may be NULL. */
    void (*answers_begin)(void);
    void (*answers_end)(void);
    /* Called for a send that waits: intake_notify_committed is wanted when no batch of the sink up
     * to seq is pending or planned any more. May be NULL. */
    void (*watch)(void *context, str sink_id, i64 seq, i64 timeout_us);
    void *watch_context;
    /* The node has lost its lease, and what begins when this returns has a new one: connections and
     * what waits to be accepted are to be gone by then (I4). May block; may be NULL. */
    void (*lease_lost)(void *context);
    void *lease_lost_context;
};
struct intake_options intake_options_default(void);

/* Registers the node, reads the sinks, starts the workers. */
MUST_USE err intake_open(struct arena *arena, const struct intake_options *options,
                         struct intake **out_intake, struct error *error);
/* Carries out what was completed and ends the threads. No send may be under way on an http loop. */
void intake_close(struct intake *intake);

/* What every new send is refused with (disk_low, draining); ERROR_NONE: nothing. */
void intake_refuse(struct intake *intake, enum error_code code);
/* Before a stop: sends that wait for their commit are answered now. */
void intake_end_waits(struct intake *intake);
/* A sink was made, changed or deleted: reads it again. Blocking. */
void intake_notify_sink(struct intake *intake, str sink_id);
/* Batches of the sink became final: looks after the sends that wait for that. Does not block. */
void intake_notify_committed(struct intake *intake, str sink_id);

/* ---- one send ---- */

/* What became of a send; its slices are good during the call. */
struct intake_answer {
    int status;                       /* of `body` or `batch` */
    str body;                         /* JSON */
    const struct ledger_batch *batch; /* not NULL: the answer is this batch's status */
    const struct error *error;        /* not NULL: refused, and nothing else is set */
};
/* Called exactly once for each completed send, on whatever thread. */
typedef void (*intake_answered)(void *context, const struct intake_answer *answer);

/* The hash of the header that was seen last, so that a client that sends the same again and again
 * has it hashed once. It says nothing of what the key may do: that is compared each time. Zero at
 * first; one thread at a time. */
struct intake_known_key {
    u32 size; /* of the header; 0: none */
    char header[160];
    struct sha256 hash;
};

/* DENIED with bad_key (no such sink, no key or a wrong one: all alike), send_only (an API key),
 * sink_deleted, or BUSY with rate_limited. `authorization` may have data NULL, known be NULL. */
MUST_USE err intake_authenticate(struct intake *intake, str sink_id, str authorization,
                                 struct intake_known_key *known, str peer,
                                 struct intake_sink **out_sink, struct error *error);

struct intake_request {
    str batch_id;       /* the Idempotency-Key header; data NULL: none */
    i64 content_length; /* -1: chunked */
    enum intake_mode { INTAKE_ACCEPT, INTAKE_DRY_RUN } mode;
    i64 wait_us; /* answer when the batch is final, or after this long; 0: at once */
    intake_answered answered;
    void *context;
    struct arena *arena; /* for the send; goes with `context`. NULL: the send has one of its own */
};
/* Checks id, length and the state of the service. */
MUST_USE err intake_begin(struct intake *intake, struct intake_sink *sink,
                          const struct intake_request *request, struct intake_send **out_send,
                          struct error *error);
/* After a failure the send is still to be dropped. */
MUST_USE err intake_send_body(struct intake_send *send, str piece, struct error *error);
void intake_send_complete(struct intake_send *send);
void intake_send_drop(struct intake_send *send); /* instead of completing it */

#endif
