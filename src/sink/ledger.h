/* ledger: the SQL records of the protocol: sinks, batches, plans, and the transactions on them.
 *
 * Every function is one transaction (exactly-once C.3, steps 1.6, 2, 4, 5, 6). The batch row alone makes a
 * batch accepted; the compare-and-swaps here are the only way a plan's or a batch's state changes. What
 * is decided from the table's property is decided in sink/roll and sink/recover. Any thread; blocking.
 *
 * UNKNOWN from any of them: read again before concluding anything. */
#ifndef LHBOX_SINK_LEDGER_H
#define LHBOX_SINK_LEDGER_H

#include "base/id.h"
#include "io/crypto.h"
#include "io/db.h"

enum sink_state { SINK_ACTIVE = 0, SINK_DISABLED = 1, SINK_DELETING = 3, SINK_DELETED = 4 };
enum batch_state {
    BATCH_PENDING = 0,
    BATCH_PLANNED = 1,
    BATCH_COMMITTED = 2,
    BATCH_REJECTED = 3,
    BATCH_DISCARDED = 4,
};
enum plan_state {
    PLAN_OPEN = 0,
    PLAN_ATTEMPTED = 1,
    PLAN_VOIDING = 2,
    PLAN_COMMITTED = 3,
    PLAN_VOID = 4,
};
enum claim_state { CLAIM_NONE = 0, CLAIM_ATTEMPTED = 1, CLAIM_CLAIMED = 2 };

/* Makes the tables in an empty database, with a fresh installation id; checks the version of others. */
MUST_USE err ledger_open(const struct db *db, const struct seam *seam, struct error *error);
MUST_USE err ledger_installation(const struct db *db, struct arena *arena, str *out_id,
                                 struct error *error);

/* ---- accepting (step 1.6) ---- */

/* The node's lease, renewed every 10 s, 30 s long. out_now: the ledger's time. */
MUST_USE err ledger_renew_node(const struct db *db, str node_id, str role, instant *out_now,
                               struct error *error);

struct ledger_accept {
    /* in */
    str batch_id;
    struct uid uid;
    str object_key; /* empty: rejected whole at the intake, no object */
    i64 offset;
    i64 bytes;
    i64 rows;    /* stored */
    i64 refused; /* at the intake */
    struct sha256 sha256;    /* of the stored bytes */
    u8 body_hash[16];        /* of the body as received, first 128 bits */
    instant received_at;
    instant began_at; /* ledger time of the request's start */
    str answer;       /* the first answer's body, JSON */
    str refused_reasons; /* JSON object reason -> count; empty: none */
    /* out */
    enum ledger_accept_outcome {
        ACCEPT_NEW,       /* the row is in */
        ACCEPT_DUPLICATE, /* the id was there with the same body hash: `first_answer`, `state` */
        ACCEPT_REUSED,    /* the id was there with other bytes */
        ACCEPT_REFUSED,   /* `refusal`: sink deleted or recovering, lease gone, too late, void uid,
                             quarantined id, backlog full */
    } outcome;
    str first_answer;
    enum batch_state state;
    enum error_code refusal;
};

/* One transaction for a group of one sink; each item gets its own outcome. Counters of the sink and
 * the month's usage move with it. Results are in the arena. */
MUST_USE err ledger_accept(const struct db *db, struct arena *arena, str node_id, str sink_id,
                           struct ledger_accept *items, size_t count, struct error *error);

struct ledger_batch {
    str batch_id;
    struct uid uid;
    str object_key;
    i64 offset;
    i64 bytes;
    i64 rows;
    i64 refused;
    struct sha256 sha256;
    u8 body_hash[16];
    i64 seq;
    instant received_at;
    instant ingest_ts;
    str answer;
    enum batch_state state;
    bool held;
    str held_reason;
    str plan_id;
    i64 rows_committed;
    i64 rows_rejected;
    instant finished_at; /* 0: not yet */
    i64 snapshot_id;     /* of its plan; 0: none */
};

/* NOT_FOUND with batch_not_found. */
MUST_USE err ledger_find_batch(const struct db *db, struct arena *arena, str sink_id, str batch_id,
                               struct ledger_batch *out_batch, struct error *error);
/* After the batch id `after` in seq order of acceptance (empty: from the start). state -1: any. */
MUST_USE err ledger_list_batches(const struct db *db, struct arena *arena, str sink_id, int state,
                                 bool held_only, i64 after_seq, size_t limit,
                                 struct ledger_batch **out_batches, size_t *out_count,
                                 struct error *error);
/* Counts a duplicate that was answered without a transaction of its own. */
MUST_USE err ledger_count_duplicate(const struct db *db, str sink_id, struct error *error);

/* ---- a sink as the protocol sees it ---- */

struct ledger_sink {
    str id;
    str project;
    str warehouse;
    str namespace_name;
    str table_name;
    str table_uuid;
    str name;
    enum sink_state state;
    str state_reason;
    bool recovering;
    i64 config_version;
    i64 roll_seconds;
    i64 roll_bytes;
    i64 inactivity_seconds; /* 0: off */
    str unknown_fields;
    str idempotency; /* "required" or "optional" */
    str key_columns; /* JSON array; data NULL: none */
    str send_key_id;
    struct sha256 send_key_sha256;
    str claim_id;
    enum claim_state claim_state;
    i64 last_n;
    str last_plan_id;
    instant roll_asked_at; /* 0: nobody asked */
    instant mismatch_at;   /* when a load first disagreed; 0: it does not (O4) */
    instant created_at;
    instant deleted_at;
    /* what the API shows */
    i64 batches;
    i64 rows_accepted;
    i64 bytes_accepted;
    i64 rows_refused;
    i64 duplicates;
    instant first_at;
    instant last_at;
    i64 rows_committed;
    i64 rows_rejected;
    i64 rows_discarded;
    i64 reject_batches;
    instant reject_last_at;
    str last_roll;  /* JSON; data NULL: none */
    str last_error; /* data NULL: none */
    /* from the batch rows */
    i64 waiting_batches; /* pending and planned, held ones included */
    i64 waiting_rows;
    i64 waiting_bytes;
    i64 due_batches; /* pending, not held */
    i64 due_bytes;
    instant oldest_waiting_at; /* received_at; 0: nothing waits */
    instant newest_waiting_at;
};

/* By id, or by name among live sinks of the project (project empty: by id only). NOT_FOUND:
 * sink_not_found. Deleted sinks are found by id. */
MUST_USE err ledger_find_sink(const struct db *db, struct arena *arena, str project, str id_or_name,
                              struct ledger_sink *out_sink, struct error *error);
/* By the public id of its send key. */
MUST_USE err ledger_find_sink_by_key(const struct db *db, struct arena *arena, str send_key_id,
                                     struct ledger_sink *out_sink, struct error *error);
/* After the id `after` in order of creation. project, warehouse empty: all. */
MUST_USE err ledger_list_sinks(const struct db *db, struct arena *arena, str project, str warehouse,
                               bool include_deleted, str after, size_t limit,
                               struct ledger_sink **out_sinks, size_t *out_count,
                               struct error *error);

#endif
