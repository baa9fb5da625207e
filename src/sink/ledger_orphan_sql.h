/* ledger_orphan_sql: what the transactions about orphans share. Private to sink/ledger_orphan*.c
 * and sink/ledger_recover.c. All of it runs inside a transaction's body. */
#ifndef LHBOX_SINK_LEDGER_ORPHAN_SQL_H
#define LHBOX_SINK_LEDGER_ORPHAN_SQL_H

#include "sink/ledger_orphan.h"

enum orphan_chain {
    ORPHAN_CHAIN_UNKNOWN = 0,
    ORPHAN_CHAIN_ABSENT = 1,
    ORPHAN_CHAIN_PROVEN = 2,
    ORPHAN_CHAIN_OTHER = 3, /* its batch id was rolled with other bytes (O16) */
};

struct orphan_row {
    struct ledger_segment segment;
    instant first_seen_at;
    i64 running_us;
    enum orphan_chain chain;
};

#define ORPHAN_COLUMNS                                                                             \
    "object_key, batch_id, uid, byte_offset, bytes, rows, refused, sha256, body_hash, "            \
    "received_at, modified_at, first_seen_at, running_us, chain"
MUST_USE err orphan_rows(struct arena *arena, const struct db_rows *rows,
                         struct orphan_row **out_orphans, struct error *error);
/* The segments of one object, in their order. */
MUST_USE err orphan_load(struct db_tx *tx, struct arena *arena, str sink_id, str object_key,
                         struct orphan_row **out_orphans, size_t *out_count, struct error *error);

/* Where a segment stands, by what the ledger knows. */
enum orphan_place {
    ORPHAN_ROW,     /* a row refers to it after all */
    ORPHAN_WAITS,   /* it is in quarantine */
    ORPHAN_HAS_ROW, /* a row has its batch id under another uid */
    ORPHAN_PROVEN,  /* the chain names its uid */
    ORPHAN_RIVAL,   /* another orphan of its id has other bytes, or the id is in quarantine */
    ORPHAN_ALONE,
};
MUST_USE err orphan_weigh(struct db_tx *tx, struct arena *arena, str sink_id,
                          const struct orphan_row *orphan, enum orphan_place *out_place,
                          struct error *error);
MUST_USE err orphan_is_void(struct db_tx *tx, struct arena *arena, const struct uid *uid,
                            bool *out_void, struct error *error);
MUST_USE err orphan_is_referred(struct db_tx *tx, struct arena *arena, str sink_id,
                                const struct uid *uid, bool *out_referred, struct error *error);
MUST_USE err orphan_has_rival(struct db_tx *tx, struct arena *arena, str sink_id,
                              const struct ledger_segment *segment, bool *out_rival,
                              struct error *error);
/* The uids in quarantine under the id; data NULL: it is not in quarantine. */
MUST_USE err orphan_find_quarantine(struct db_tx *tx, struct arena *arena, str sink_id,
                                    str batch_id, str *out_uids, struct error *error);

MUST_USE err orphan_quarantine(struct db_tx *tx, struct arena *arena, str sink_id, str batch_id,
                               const struct uid *uid, struct error *error);
/* Void row and doomed object (I6). */
MUST_USE err orphan_void(struct db_tx *tx, str sink_id, const struct uid *uid, str object_key,
                         struct error *error);
/* The segment becomes the pending row `row_id`, with the next seq and in the books. */
MUST_USE err orphan_insert_pending(struct db_tx *tx, struct arena *arena, str sink_id,
                                   const struct ledger_segment *segment, str row_id,
                                   const struct uid *uid, str object_key, struct error *error);
/* The name under which rows are counted whose reason no file tells any more. */
#define ORPHAN_REASON_UNKNOWN "unknown"
MUST_USE err orphan_count_reason(struct db_tx *tx, str sink_id, str reason, i64 rows,
                                 struct error *error);
/* The sink's counters of what was accepted. */
MUST_USE err orphan_count_accepted(struct db_tx *tx, str sink_id,
                                   const struct ledger_segment *segment, struct error *error);
MUST_USE err orphan_forget_segment(struct db_tx *tx, str sink_id,
                                   const struct ledger_segment *segment, struct error *error);
/* A first answer, by the counts alone. */
MUST_USE err orphan_print_answer(struct arena *arena, const struct ledger_segment *segment,
                                 str *out_answer, struct error *error);

#endif
