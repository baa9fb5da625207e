/* intake_log_record: one record of the intake log, printed and read; private to sink/intake*.c and
 * their tests. Pure.
 *
 * An accepting record holds all that a group's object, its rejects files and its ledger rows hold,
 * so that they can be made again from it alone. A voiding one takes batches of an earlier record
 * back: they got no row, and were answered so. Integers are little-endian; every length is checked
 * against what is there, for a record is read from a disk. */
#ifndef LHBOX_SINK_INTAKE_LOG_RECORD_H
#define LHBOX_SINK_INTAKE_LOG_RECORD_H

#include "base/buf.h"
#include "sink/ledger.h"

enum { INTAKE_LOG_BATCHES_MAX = 1024 };

enum intake_log_kind { INTAKE_LOG_ACCEPT = 1, INTAKE_LOG_VOID = 2 };

struct intake_log_record {
    enum intake_log_kind kind;
    str sink_id;
    struct uid uid;
    size_t count; /* of the group's batches */
    /* accepting; the items' uid is the record's, their outcome is not of it */
    str warehouse;
    str object_key; /* empty: no batch has rows */
    i64 body_at;    /* where the body begins in the object, of which other records may have parts;
                     * with the uid it names the record to its voids, too */
    struct ledger_accept *items;
    str *rejects; /* of each batch; empty: no element of it was refused */
    str body;     /* of the object; the items' offsets are those in the object */
    /* voiding */
    bool *voided; /* of each batch */
};

/* What stands in front of body and rejects files in an accepting record, and all of a voiding one.
 */
void intake_log_record_print(buf *out, const struct intake_log_record *record);
/* Slices of `bytes`; arrays in the arena. CORRUPT: it is no record of ours. */
MUST_USE err intake_log_record_parse(struct arena *arena, str bytes,
                                     struct intake_log_record *out_record, struct error *error);

#endif
