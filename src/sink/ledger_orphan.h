/* ledger_orphan: what the ledger knows of intake objects that no batch row refers to, and the
 * transactions that decide about them (exactly-once section 7, 9 step 7, O6).
 *
 * Each function is one transaction. The decision table is one of them: everything that decides is
 * read inside it, the void row is durable before anybody deletes the object, and no row is ever
 * inserted with a void uid (I6). Any thread; blocking. UNKNOWN: the next pass looks again (K3). */
#ifndef LHBOX_SINK_LEDGER_ORPHAN_H
#define LHBOX_SINK_LEDGER_ORPHAN_H

#include "base/map.h"
#include "sink/ledger.h"

/* One batch's part of an intake object, as the object's metadata tells it. */
struct ledger_segment {
    str object_key;
    str batch_id; /* empty: the object cannot be read */
    struct uid uid;
    i64 offset;
    i64 bytes;
    i64 rows;
    i64 refused;
    struct sha256 sha256;
    u8 body_hash[16];
    instant received_at;
    instant modified_at;
    bool proven; /* a plan of the chain, or a verdict, explains it */
};

/* What the ledger knows of an object in the store. */
struct ledger_object {
    str object_key;
    struct uid uid;
    /* out */
    i64 rows;  /* batch rows that refer to its uid */
    bool seen; /* it was recorded as an orphan before */
};
MUST_USE err ledger_know_objects(const struct db *db, str sink_id, struct ledger_object *objects,
                                 size_t count, struct error *error);
/* The number of a pass that begins now. Two passes at once may have one number; a later one has no
 * lower. */
MUST_USE err ledger_next_look(const struct db *db, str sink_id, i64 *out_look, struct error *error);
/* Records the segments that no row refers to, and that the objects `again` are still there. `look`
 * numbers the pass. */
MUST_USE err ledger_see_orphans(const struct db *db, str sink_id, i64 look,
                                const struct ledger_segment *segments, size_t count,
                                const struct ledger_object *again, size_t again_count,
                                struct error *error);
/* Forgets what neither this pass nor a later one has found. */
MUST_USE err ledger_forget_orphans(const struct db *db, str sink_id, i64 look, struct error *error);
/* One object is gone from the store. */
MUST_USE err ledger_forget_orphan(const struct db *db, str sink_id, str object_key,
                                  struct error *error);

enum ledger_orphans {
    ORPHANS_ALL,       /* in order of received, then uid: recover's order */
    ORPHANS_OLD,       /* 24 h by both clocks, or of a deleted sink */
    ORPHANS_UNCHECKED, /* old ones that were not looked up on the chain */
};
/* One entry per segment; of ORPHANS_OLD in order of their keys. */
MUST_USE err ledger_list_orphans(const struct db *db, struct arena *arena, str sink_id,
                                 enum ledger_orphans which, str after_key, size_t limit,
                                 struct ledger_segment **out_segments, size_t *out_count,
                                 struct error *error);
/* Segments that were looked up on the chain. */
struct ledger_checked {
    struct uid uid;
    str batch_id;
    bool proven;
    bool other; /* a plan names its batch id with other bytes */
};
MUST_USE err ledger_check_orphans(const struct db *db, str sink_id,
                                  const struct ledger_checked *checked, size_t count,
                                  struct error *error);

/* Void rows of before `before` whose objects are gone: no attempt of that time is still under way.
 */
MUST_USE err ledger_prune_voids(const struct db *db, instant before, struct error *error);

/* What the decision table said of one object. */
struct ledger_orphan_verdict {
    bool left;      /* recovering, deleting, unknown, or too young */
    bool unchecked; /* nothing was done: look its uid up on the chain first */
    bool voided;    /* the whole object: void row durable, object doomed */
    i64 adopted;    /* segments */
    i64 quarantined;
    i64 kept;
};
#define ORPHAN_YOUNG_US TIME_DAY_US
#define ORPHAN_OLD_US   (5 * TIME_DAY_US)
MUST_USE err ledger_judge_orphan(const struct db *db, struct arena *arena, str sink_id,
                                 str object_key, struct ledger_orphan_verdict *out_verdict,
                                 struct error *error);

/* ---- recover (section 9, step 7) ---- */

/* The copy of an object under a fresh uid is durable: its orphan segments get rows under it. */
struct ledger_copy {
    str old_key;
    struct uid old_uid;
    str new_key;
    struct uid new_uid;
};
/* What recover may do with an object's segments. */
enum ledger_adoption {
    ADOPT_NOTHING, /* every segment is explained, void or quarantined now */
    ADOPT_COPY,    /* copy it, then ledger_adopt_copy */
};
struct ledger_adopted {
    i64 adopted;     /* rows made */
    i64 taken;       /* pending rows of the same bytes, that have this object now */
    i64 found;       /* those of them whose own object was gone */
    i64 quarantined; /* segments */
};
/* Quarantines what has to be; says whether a copy is wanted. The keys of `missing` are
 * `<uid>/<batch id>` of pending rows whose object is not there any more. */
MUST_USE err ledger_weigh_orphan(const struct db *db, struct arena *arena, str sink_id,
                                 str object_key, const struct map *missing,
                                 enum ledger_adoption *out_adoption, i64 *out_quarantined,
                                 struct error *error);
/* One transaction: rows with the new uid as pending, a void row for the old one unless a row still
 * refers to it. */
MUST_USE err ledger_adopt_copy(const struct db *db, struct arena *arena, str sink_id,
                               const struct ledger_copy *copy, const struct map *missing,
                               struct ledger_adopted *out_adopted, struct error *error);

/* ---- quarantine (O6) ---- */

struct ledger_quarantined {
    str batch_id;
    str uids; /* joined by `,` */
    instant at;
};
/* After the batch id `after`, in byte order. */
MUST_USE err ledger_list_quarantined(const struct db *db, struct arena *arena, str sink_id,
                                     str after, size_t limit, struct ledger_quarantined **out_items,
                                     size_t *out_count, struct error *error);
/* A copy of the kept object is durable as in `copy`: its batch becomes a pending row, and the id is
 * free again; the other objects are orphans whose id has a row. `batch_id` is the row's id: another
 * one than the quarantined when a row has that already. NOT_FOUND with batch_not_found when the id
 * is not quarantined or the uid not one of its. */
MUST_USE err ledger_resolve_quarantined(const struct db *db, struct arena *arena, str sink_id,
                                        str batch_id, const struct ledger_copy *copy,
                                        str *out_row_id, struct error *error);
/* The row that has the id stays; the quarantined objects go. NOT_FOUND as above, or when no row has
 * the id. */
MUST_USE err ledger_dismiss_quarantined(const struct db *db, str sink_id, str batch_id,
                                        struct error *error);

#endif
