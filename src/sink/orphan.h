/* orphan: the collector (exactly-once section 7): intake objects that no batch row refers to are
 * adopted, voided, quarantined or kept, by rule, never by guess.
 *
 * A pass lists `_sink/<sink>/`, records what no row refers to with the time and the running time at
 * which it was first seen (I19), and puts what is 24 h old through the decision table, one ledger
 * transaction an object. The void row is durable before the object is deleted. Listing decides only
 * what is looked at. Straight-line code over the seams, no static state; idempotent, may be killed
 * anywhere (K1 to K3). Blocking; one thread at a time per sink. */
#ifndef LHBOX_SINK_ORPHAN_H
#define LHBOX_SINK_ORPHAN_H

#include "sink/ledger_orphan.h"
#include "sink/roll.h"

enum {
    ORPHAN_PAGE = 200,
    ORPHAN_SCRATCH_MIB_MAX = 64,
    ORPHAN_CHECKS_MAX = 100000, /* segments that are looked up at once */
};

struct orphan_report {
    i64 segments; /* recorded, whatever their age */
    i64 adopted;
    i64 voided; /* objects */
    i64 quarantined;
    i64 kept;
};

/* One pass over one sink, deleted sinks included. A recovering or deleting one is left alone. */
MUST_USE err orphan_collect(const struct roll_env *env, str sink_id,
                            struct orphan_report *out_report, struct error *error);
/* The first half of a pass: what is in the store is recorded. Every segment that no row refers to,
 * also of objects with other rows. */
enum orphan_look { ORPHAN_LOOK_OLD, ORPHAN_LOOK_ALL };
MUST_USE err orphan_record(const struct roll_env *env, str sink_id, enum orphan_look which,
                           struct error *error);

/* Notes which of the recorded orphans a plan of the proven chain, or a verdict, names. */
MUST_USE err orphan_check_chain(const struct roll_env *env, str sink_id, enum ledger_orphans which,
                                struct error *error);

/* The uid in an intake object's key `_sink/<sink>/<part>.<uid>.ndjson`. */
MUST_USE bool orphan_parse_key(str key, str sink_id, struct uid *out_uid);
/* What an object's metadata tells of its batches (C.5). CORRUPT: it cannot be read. */
MUST_USE err orphan_parse_object(struct arena *arena, const struct store_object *object,
                                 const struct uid *uid, struct ledger_segment **out_segments,
                                 size_t *out_count, struct error *error);
/* Copies an object under a fresh uid, with its metadata, durably. NOT_FOUND: it is gone. */
MUST_USE err orphan_copy(const struct roll_env *env, struct arena *arena, str sink_id,
                         const struct ledger_segment *segment, struct ledger_copy *out_copy,
                         struct error *error);
/* Keeps one object of a quarantined id (O6): it is copied and its batch becomes a pending row,
 * under its own id or, when another row has that, as *out_row_id. The uid of the row that is there:
 * that one stays. NOT_FOUND with batch_not_found. */
MUST_USE err orphan_resolve(const struct roll_env *env, struct arena *arena, str sink_id,
                            str batch_id, str keep_uid, str *out_row_id, struct error *error);

#endif
