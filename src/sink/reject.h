/* reject: the record of a row that did not fit, byte for byte (rejects.md section 4 of the rules in
 * docs/rejects.md; decisions D29 to D32 of the reference).
 *
 * Takes verdicts, never makes them. Pure; any thread. */
#ifndef LHBOX_SINK_REJECT_H
#define LHBOX_SINK_REJECT_H

#include "base/buf.h"
#include "base/time.h"

enum reject_reason {
#define X(name, text) REJECT_##name,
#include "sink/reject_reasons.def"
#undef X
    REJECT_REASON_COUNT
};

enum { REJECT_ALSO_MAX = 20, REJECT_VALUE_BYTES_MAX = 200, REJECT_COLUMN_BYTES_MAX = 512 };

struct reject_hit {
    enum reject_reason reason;
    str column; /* the JSON's own path; data NULL: the whole element. Lone surrogates as 3 bytes */
    str detail;
};

struct reject_batch {
    str batch_id;
    instant received_at;
    i32 schema_id;       /* -1: null, at the intake */
    i64 mapping_version; /* -1: null */
};

struct reject_row {
    i64 row;                       /* -1: null, the whole batch */
    const struct reject_hit *hits; /* the first is the reason, the rest `also` (20 at most) */
    size_t hit_count;
    str did_you_mean; /* data NULL: none */
    str data;         /* the element as stored or sent; data NULL: null */
    bool is_json;     /* `data` is known to be JSON in UTF-8; else it is looked at */
};

str reject_reason_text(enum reject_reason reason);
/* Appends one line, LF included. */
void reject_record(buf *out, const struct reject_batch *batch, const struct reject_row *row);

/* Lower-case hex of the SHA-256 of a rejects file: kept beside it, so that a change is seen. data
 * NULL at the arena's limit. */
str reject_hash(struct arena *arena, str bytes);

#endif
