/* plan: what is written down about a roll: the plan object, the table property, a try and its
 * counts.
 *
 * Printing and reading of the forms of exactly-once C.5 and C.6, and the judgement of a property
 * (I10). Pure; any thread. Readers answer CORRUPT for what they did not write. */
#ifndef LHBOX_SINK_PLAN_H
#define LHBOX_SINK_PLAN_H

#include "sink/ledger.h"
#include "sink/reject.h"
#include "table/metadata.h"

enum { PLAN_OBJECT_BYTES_MAX = 32 * 1024 * 1024, PLAN_SUMMARY_IDS_MAX = 1024, PLAN_RECENT_MAX = 5 };

/* ---- the plan object (C.5) ---- */

/* Any two writers of one plan print the same bytes. */
MUST_USE err plan_print_object(struct arena *arena, str installation,
                               const struct ledger_plan *plan, const struct ledger_batch *batches,
                               size_t count, str *out_bytes, struct error *error);
/* Beside it, when all rows of a void plan were rejected (O2): `<n>-<id>.void.json`. */
MUST_USE err plan_print_void(struct arena *arena, str installation, const struct ledger_plan *plan,
                             const struct ledger_batch *batches, size_t count, str *out_bytes,
                             struct error *error);
str plan_void_key(struct arena *arena, str sink_id, i64 n, str plan_id);

/* ---- the property (C.6) ---- */

struct plan_property {
    str installation;
    str sink_id;
    i64 n;
    str id;
};
str plan_print_property(struct arena *arena, const struct plan_property *property);
/* Exactly four well-formed parts, or false. */
MUST_USE bool plan_parse_property(str text, struct plan_property *out_property);

enum plan_reading {
    PLAN_READS_COMMITTED,     /* the plan's (n, id) */
    PLAN_READS_NOT_COMMITTED, /* the last committed (n, id) */
    PLAN_READS_AHEAD,         /* this sink, above the last committed n, not the plan's id */
    PLAN_READS_OTHER,         /* anything else: stop */
};
/* `text` is the property (data NULL: absent). `plan` is the live plan, or NULL. */
enum plan_reading plan_judge(str installation, const struct ledger_sink *sink,
                             const struct ledger_plan *plan, str text);

/* ---- what a try records (step 3.7) ---- */

struct plan_counts {
    i32 schema_id;
    i32 spec_id;
    struct ledger_verdict *verdicts; /* one per batch, in the plan's order */
    size_t verdict_count;
    i64 rows_committed;
    i64 rows_rejected;
    i64 reasons[REJECT_REASON_COUNT]; /* rejected rows by reason */
    str recent[PLAN_RECENT_MAX];      /* the last reject records, oldest first */
    size_t recent_count;
};
MUST_USE err plan_print_counts(struct arena *arena, const struct plan_counts *counts, str *out_json,
                               struct error *error);
MUST_USE err plan_parse_counts(struct arena *arena, str json, const struct ledger_batch *batches,
                               size_t batch_count, struct plan_counts *out_counts,
                               struct error *error);

struct plan_try {
    bool has_base;
    i64 base;
    i64 snapshot_id;
    const str *files; /* URIs of data files that no earlier try recorded */
    size_t file_count;
};
MUST_USE err plan_print_try(struct arena *arena, const struct plan_try *try_made, str *out_json,
                            struct error *error);
/* The snapshot of a plan's tries that the table has (the last of them), or 0. */
i64 plan_landed_snapshot(str attempts, const struct metadata *metadata);
/* True when one of a JSON array of snapshot ids is in the table. */
bool plan_fence_landed(str fences, const struct metadata *metadata);

/* ---- the summary (C.7) ---- */

/* Ids joined by `,`; data NULL when that is more than PLAN_SUMMARY_IDS_MAX bytes. */
str plan_join_ids(struct arena *arena, const struct ledger_batch *batches, size_t count);
/* Lower-case hex of the SHA-256 of the ids joined by `,`. */
str plan_hash_ids(struct arena *arena, const struct ledger_batch *batches, size_t count);

#endif
