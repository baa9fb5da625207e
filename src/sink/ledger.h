/* ledger: the SQL records of the protocol: sinks, batches, plans, and the transactions on them.
 *
 * Every function is one transaction (exactly-once C.3, steps 1.6, 2, 4, 5, 6). The batch row alone
 * makes a batch accepted; the compare-and-swaps here are the only way a plan's or a batch's state
 * changes. What is decided from the table's property is decided in sink/roll and sink/recover. Any
 * thread; blocking.
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

/* Makes the tables in an empty database, with a fresh installation id; checks the version of
 * others. */
MUST_USE err ledger_open(const struct db *db, const struct seam *seam, struct error *error);
MUST_USE err ledger_installation(const struct db *db, struct arena *arena, str *out_id,
                                 struct error *error);

/* ---- accepting (step 1.6) ---- */

/* A node's lease, 30 s long, under an id that no earlier lease had. out_now: the ledger's time. */
MUST_USE err ledger_register_node(const struct db *db, str node_id, str role, instant *out_now,
                                  struct error *error);
/* 30 s from now on; asked for every 10 s. CONFLICT: it has ended, or a recover dropped it. */
MUST_USE err ledger_renew_node(const struct db *db, str node_id, instant *out_now,
                               struct error *error);

/* A sink takes no more while this much waits for its rolls. */
struct ledger_backlog {
    i64 batches_max;
    i64 bytes_max;
};
/* From before the head of a request was read to its row (I4), by the ledger's clock. */
#define LEDGER_ACCEPT_DEADLINE_US ((i64)30 * 60 * TIME_SECOND_US)
#define LEDGER_BACKLOG_DEFAULT    ((struct ledger_backlog){100000, (i64)4 * 1024 * MIB})

/* Of a sink that accepts whatever is new and young: neither deleting, deleted nor recovering, and
 * nothing of it is in quarantine. Else nothing is free. */
struct ledger_room {
    i64 batches; /* that its backlog still takes */
    i64 bytes;
};
MUST_USE err ledger_find_room(const struct db *db, str sink_id, struct ledger_backlog backlog,
                              struct ledger_room *out_room, struct error *error);

struct ledger_accept {
    /* in */
    str batch_id;
    struct uid uid;
    str object_key; /* empty: rejected whole at the intake, no object */
    i64 offset;
    i64 bytes;
    i64 rows;             /* stored */
    i64 refused;          /* at the intake */
    struct sha256 sha256; /* of the stored bytes */
    u8 body_hash[16];     /* of the body as received, first 128 bits */
    instant received_at;
    instant began_at;     /* ledger time of the request's start */
    i64 began_running_us; /* the installation's running time then; of a logged batch */
    str answer;           /* the first answer's body, JSON */
    str refused_reasons;  /* JSON object reason -> count; empty: none */
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
    bool adopted; /* refused, and a row refers to its object all the same; else its uid is void */
};

/* One transaction for a group of one sink, whose items share one object and its uid; each gets its
 * own outcome. Counters of the sink and the month's usage move with it. Results are in the arena.
 */
enum ledger_durability {
    LEDGER_DURABLE,
    LEDGER_LATER, /* db_transact_later: a log elsewhere can bring it back, or nothing rests on it */
};
MUST_USE err ledger_accept(const struct db *db, struct arena *arena, str node_id, str sink_id,
                           struct ledger_backlog backlog, enum ledger_durability durability,
                           struct ledger_accept *items, size_t count, struct error *error);

/* What becomes of a batch that the intake log holds. */
enum ledger_logged {
    LEDGER_LOGGED_WAITS,   /* its row waits for a roll, perhaps from now on: its files are needed */
    LEDGER_LOGGED_ENDED,   /* its row is final: of its files only that of refused elements is */
    LEDGER_LOGGED_ORPHAN,  /* no row is to be made here; its files are kept for the orphan rules */
    LEDGER_LOGGED_NOTHING, /* taken back, discarded, or its sink is deleted */
};
/* Makes the rows that an end of the history took along, one transaction for a group, durable later.
 * A row that is there stays. Else: nothing for a batch that is voided or whose sink is deleted; no
 * row where ledger_accept would refuse it, but for lease, deadline and backlog, which were judged
 * when it was logged, nor for one that began more than 6 days of running ago. */
MUST_USE err ledger_accept_logged(const struct db *db, struct arena *arena, str sink_id,
                                  struct ledger_accept *items, const bool *voided, size_t count,
                                  enum ledger_logged *out_logged, struct error *error);
/* The installation's running time (I19). */
MUST_USE err ledger_running(const struct db *db, i64 *out_running_us, struct error *error);

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
    str held_reason; /* object_missing or object_damaged */
    i64 misses;      /* ticks at which its bytes did not verify */
    instant missed_at;
    bool retried; /* an earlier plan was begun, and is void or forgotten: its rejects file may be
                     stale */
    str plan_id;  /* data NULL: none */
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
/* The ids after `after` (both parts empty: from the start), in the order of sink and id. */
struct ledger_id {
    str sink_id;
    str batch_id;
};
MUST_USE err ledger_list_ids(const struct db *db, struct arena *arena,
                             const struct ledger_id *after, size_t limit,
                             struct ledger_id **out_ids, size_t *out_count, struct error *error);
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
    i64 roll_asked_seq;    /* the last seq accepted before that */
    instant mismatch_at;   /* when a load first disagreed; 0: it does not (O4) */
    instant rolled_at;     /* when its last plan was made; 0: never */
    str fences;            /* JSON array: snapshot ids of a delete's fences; data NULL: none */
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
    instant oldest_due_at; /* received_at of pending batches that are not held */
    instant newest_due_at;
    i64 oldest_due_seq; /* 0: none */
    bool has_live_plan;
    instant now; /* the ledger's time of this read */
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

/* ---- a sink's life: create, change, stop, delete ---- */

/* Inserts an active sink with config version 1 from the identifying, policy and key members of
 * `sink` (state, counters and times are set here). CONFLICT: sink_exists (with sink_id) or
 * name_taken. */
MUST_USE err ledger_insert_sink(const struct db *db, const struct ledger_sink *sink,
                                struct error *error);

/* NULL: as it is. */
struct ledger_sink_patch {
    const str *name;
    const i64 *roll_seconds;
    const i64 *roll_bytes;
    const i64 *inactivity_seconds; /* 0: off */
    const str *unknown_fields;
    const str *idempotency;
    const str *key_columns; /* data NULL: no key */
};
/* One transaction; the config version goes up by one, which makes a live plan stale: the roller
 * voids it and plans again. NOT_FOUND: sink_not_found (deleting and deleted ones too). CONFLICT:
 * name_taken. */
MUST_USE err ledger_patch_sink(const struct db *db, str sink_id,
                               const struct ledger_sink_patch *patch, struct error *error);
/* active -> disabled. Others stay as they are. */
MUST_USE err ledger_disable_sink(const struct db *db, str sink_id, str reason, str detail,
                                 struct error *error);
/* disabled -> active; clears the reason, the last error, a noted mismatch and the count of begun
 * tries. An active sink stays one. NOT_FOUND: sink_not_found. */
MUST_USE err ledger_resume_sink(const struct db *db, str sink_id, struct error *error);
/* What GET shows as last_error; data NULL: none. */
MUST_USE err ledger_set_last_error(const struct db *db, str sink_id, str text, struct error *error);
/* The first step of a delete: active or disabled -> deleting; deleting stays. NOT_FOUND when it is
 * deleted or unknown, BUSY while it is recovering. From here on nothing is accepted, no plan is
 * made and no claim is attempted. */
MUST_USE err ledger_begin_delete(const struct db *db, str sink_id, struct error *error);
/* The last one: every waiting batch -> discarded, deleting -> deleted, objects doomed. CONFLICT
 * unless it is deleting and has no live plan. A deleted sink: OK with 0. */
MUST_USE err ledger_end_delete(const struct db *db, str sink_id, i64 *out_discarded_batches,
                               struct error *error);
/* A held batch -> discarded. NOT_FOUND with batch_not_found unless it is held. */
MUST_USE err ledger_discard_held(const struct db *db, str sink_id, str batch_id,
                                 struct error *error);
/* Asks for a roll; out_upto_seq: the last seq accepted before. NOT_FOUND: sink_not_found. */
MUST_USE err ledger_ask_roll(const struct db *db, str sink_id, instant *out_asked_at,
                             i64 *out_upto_seq, struct error *error);
/* How many batches with a seq up to this one are pending or planned, held ones included. */
MUST_USE err ledger_count_waiting(const struct db *db, str sink_id, i64 upto_seq, i64 *out_count,
                                  struct error *error);

struct ledger_count {
    str name;
    i64 count;
};
/* Rejected rows by reason, refused ones included, and the last 5 reject records (JSON), newest
 * first. */
MUST_USE err ledger_list_rejects(const struct db *db, struct arena *arena, str sink_id,
                                 struct ledger_count **out_reasons, size_t *out_reason_count,
                                 str **out_recent, size_t *out_recent_count, struct error *error);

/* ---- leases (section 6) ---- */

/* 30 s for `holder`; BUSY when somebody else has it. The holder takes it again to renew it. */
MUST_USE err ledger_take_lease(const struct db *db, str sink_id, str holder, struct error *error);
MUST_USE err ledger_release_lease(const struct db *db, str sink_id, str holder,
                                  struct error *error);

/* ---- the claim (first roll) ---- */

/* none or attempted -> attempted, of an active sink. CONFLICT otherwise. */
MUST_USE err ledger_attempt_claim(const struct db *db, str sink_id, struct error *error);
/* attempted -> claimed, L = (0, claim id). Claimed already: OK, nothing changes. */
MUST_USE err ledger_finish_claim(const struct db *db, str sink_id, struct error *error);

/* A load disagreed with the ledger (O4). The first look notes it; a look at least 5 s later
 * disables the sink with ledger_mismatch. out_disabled: it did. */
MUST_USE err ledger_note_mismatch(const struct db *db, str sink_id, str detail, bool *out_disabled,
                                  struct error *error);
MUST_USE err ledger_clear_mismatch(const struct db *db, str sink_id, struct error *error);

/* ---- plans (steps 2 to 5) ---- */

enum { PLAN_BATCHES_MAX = 20000, PLAN_BEGUN_MAX = 3 };

struct ledger_plan {
    str id;
    str sink_id;
    i64 n;
    str prev;
    i64 config_version;
    enum plan_state state;
    i64 begun;       /* tries begun without an end */
    i64 tries;       /* begun ever */
    str attempts;    /* JSON array of tries, see sink/plan.h */
    str counts;      /* what the last try makes of each batch, see sink/plan.h; data NULL: no try */
    str fences;      /* JSON array of snapshot ids; data NULL: none */
    str void_reason; /* data NULL: none */
    i64 snapshot_id;
    i64 rows_committed;
    i64 rows_rejected;
    str trigger;
    instant created_at;
    instant finished_at;
};

/* NOT_FOUND: it has none. */
MUST_USE err ledger_live_plan(const struct db *db, struct arena *arena, str sink_id,
                              struct ledger_plan *out_plan, struct error *error);
/* Makes plan `plan_id` (fresh, in the form of a uid) of pending batches that are not held, in seq
 * order, up to bytes_max (one batch at least) and batches_max; they become planned. NOT_FOUND:
 * nothing to plan. CONFLICT: the sink has a live plan, is not active, is recovering, or has not
 * claimed its table. */
MUST_USE err ledger_make_plan(const struct db *db, struct arena *arena, str sink_id, str plan_id,
                              i64 bytes_max, i64 batches_max, str trigger,
                              struct ledger_plan *out_plan, struct error *error);
/* In seq order. */
MUST_USE err ledger_plan_batches(const struct db *db, struct arena *arena, str plan_id,
                                 struct ledger_batch **out_batches, size_t *out_count,
                                 struct error *error);
/* The plan of this id, whatever its state. NOT_FOUND. */
MUST_USE err ledger_find_plan(const struct db *db, struct arena *arena, str plan_id,
                              struct ledger_plan *out_plan, struct error *error);
/* Counts a try before it decodes (decisions 31). *out_tries: its number, from 1; what the caller
 * knows of the plan may be old. A plan begun PLAN_BEGUN_MAX times without an end disables its sink
 * with crash_loop. CONFLICT then, and when the plan is voiding, void or finished: who decodes
 * nevertheless would overwrite the verdicts. */
MUST_USE err ledger_begin_try(const struct db *db, str plan_id, i64 *out_tries,
                              struct error *error);
/* The plan can still be tried, and no try was begun after the one of this number. */
MUST_USE err ledger_is_last_try(const struct db *db, str plan_id, i64 tries, bool *out_last,
                                struct error *error);
MUST_USE err ledger_end_try(const struct db *db, str plan_id, struct error *error);
/* open or attempted -> attempted, recording the try (a JSON object) and its counts (JSON).
 * CONFLICT when the plan is voiding, void or finished, its settings have changed, or the sink is
 * not active or is recovering. LEDGER_LATER only where the commit itself is a later transaction of
 * the same database, which cannot be durable without this one. */
MUST_USE err ledger_mark_attempted(const struct db *db, str plan_id, str try_json, str counts,
                                   enum ledger_durability durability, struct error *error);

/* What became of a plan's batches, by their rows. */
struct ledger_verdict {
    str batch_id;
    i64 rows_committed;
    i64 rows_rejected;
};
struct ledger_outcome {
    const struct ledger_verdict *verdicts; /* one per batch of the plan, in its order */
    size_t verdict_count;
    const struct ledger_count *reasons; /* rejected rows by reason */
    size_t reason_count;
    const str *recent; /* the last reject records, oldest first, at most 5 */
    size_t recent_count;
    i64 snapshot_id; /* 0: not known, or none */
    i64 roll_us;     /* how long the roll took; 0: not known */
};
/* attempted or voiding -> committed; batches -> committed or rejected with their counts; the sink's
 * last committed plan; objects of which every batch is final are doomed. Committed already: OK,
 * nothing changes. CONFLICT when the plan is open or void. Committed, not durable: what a power
 * loss takes of it, the table's property brings back; who deletes what it doomed calls db_sync
 * first. */
MUST_USE err ledger_finish_plan(const struct db *db, str plan_id,
                                const struct ledger_outcome *outcome, struct error *error);

/* A batch that becomes held as its plan becomes void. */
struct ledger_hold {
    str batch_id;
    str reason; /* object_missing or object_damaged */
};
/* open -> void; its batches -> pending, and those in `holds` held. CONFLICT when it is not open. */
MUST_USE err ledger_void_open(const struct db *db, str plan_id, str reason,
                              const struct ledger_hold *holds, size_t hold_count,
                              struct error *error);
/* open -> void with every batch rejected (5.3). Objects are not doomed yet: ledger_doom_rejected.
 */
MUST_USE err ledger_void_rejected(const struct db *db, str plan_id,
                                  const struct ledger_outcome *outcome, struct error *error);
/* After the verdict object is durable (O2). */
MUST_USE err ledger_doom_rejected(const struct db *db, str plan_id, struct error *error);
/* Void plans whose batches were all rejected and whose objects are not doomed yet; sink_id empty:
 * of all sinks. */
MUST_USE err ledger_list_undoomed(const struct db *db, struct arena *arena, str sink_id,
                                  struct ledger_plan **out_plans, size_t *out_count,
                                  struct error *error);
/* attempted -> voiding with a reason, or voiding stays. CONFLICT otherwise. */
MUST_USE err ledger_begin_void(const struct db *db, str plan_id, str reason, struct error *error);
/* Before a fence is sent: its snapshot id goes into the plan, unless that is not voiding:
 * CONFLICT. */
MUST_USE err ledger_record_fence(const struct db *db, str plan_id, i64 snapshot_id,
                                 struct error *error);
/* The same of a sink that is deleting. */
MUST_USE err ledger_record_sink_fence(const struct db *db, str sink_id, i64 snapshot_id,
                                      struct error *error);
/* voiding -> void after the fence has landed; batches -> pending, those in `holds` held. */
MUST_USE err ledger_end_void(const struct db *db, str plan_id, const struct ledger_hold *holds,
                             size_t hold_count, struct error *error);
/* The table was found under another name by its uuid. Nothing changes when a live sink has that
 * name. */
MUST_USE err ledger_rename_table(const struct db *db, str sink_id, str namespace_name,
                                 str table_name, struct error *error);

/* ---- damaged and lost objects (decisions 21) ---- */

enum { HELD_MISSES = 3 };
#define HELD_MISS_APART_US (10 * TIME_SECOND_US)
/* The bytes of a planned batch did not verify. Looks less than 10 s apart count once. */
MUST_USE err ledger_note_miss(const struct db *db, str sink_id, str batch_id, str reason,
                              i64 *out_misses, struct error *error);
/* They did after all: the batch is pending and not held any more. */
MUST_USE err ledger_release_held(const struct db *db, str sink_id, str batch_id,
                                 struct error *error);
/* It was looked at again, and still does not verify. */
MUST_USE err ledger_touch_held(const struct db *db, str sink_id, str batch_id, struct error *error);

/* ---- sweeping (I16, I19) ---- */

struct ledger_doomed {
    str warehouse;
    str object_key;
    i64 tries;
};
/* Of one warehouse, the oldest ones first; none of a sink that recovers. */
MUST_USE err ledger_list_doomed(const struct db *db, struct arena *arena, str warehouse,
                                size_t limit, struct ledger_doomed **out_objects, size_t *out_count,
                                struct error *error);
/* One transaction for all of them: deleted ones are forgotten, the others tried again after the
 * rest. */
struct ledger_doomed_done {
    struct ledger_doomed object;
    bool deleted;
};
MUST_USE err ledger_settle_doomed(const struct db *db, const struct ledger_doomed_done *objects,
                                  size_t count, struct error *error);
/* Adds running time; at most the monotonic time elapsed since the last call. */
MUST_USE err ledger_add_running(const struct db *db, i64 elapsed_us, struct error *error);
/* What was stamped before out_before is older than `age_us` both by the ledger's clock and by the
 * count of running time. */
MUST_USE err ledger_old_before(const struct db *db, i64 age_us, instant *out_before,
                               struct error *error);
/* Forgets up to `limit` batch rows that became final before `before`, whose objects are gone and
 * whose plan is final. */
MUST_USE err ledger_prune_batches(const struct db *db, instant before, size_t limit,
                                  i64 *out_pruned, struct error *error);
/* Forgets final plans of before `before` that no batch row names, and nodes long gone. */
MUST_USE err ledger_prune_plans(const struct db *db, instant before, struct error *error);

#endif
