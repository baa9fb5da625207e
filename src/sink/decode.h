/* decode: one stored line to one row of columns, or to the reasons why not.
 *
 * The law is docs/rejects.md (spec "Rejects"); the reference model in tests/reference says the
 * same in Python. A verdict is a pure function of (bytes, schema, settings). A row is in the
 * columns whole or not at all. A row that is all well goes straight into the columns in one pass;
 * any other is taken apart first, and judged in the order of the law.
 *
 * A decoder belongs to one roll worker. Its columns grow in the arena given at open; what a row's
 * hits point at lives until the next line. Decoding fails with LIMIT only, and leaves the columns
 * as they were; opening also with INVALID. */
#ifndef LHBOX_SINK_DECODE_H
#define LHBOX_SINK_DECODE_H

#include "format/column.h"
#include "sink/reject.h"
#include "table/schema.h"

#define DECODE_INGEST_COLUMN "__ingest_ts"

enum decode_unknown { DECODE_UNKNOWN_REJECT, DECODE_UNKNOWN_IGNORE, DECODE_UNKNOWN_CAPTURE };

struct decode_settings {
    enum decode_unknown unknown;
    str capture_column;     /* with DECODE_UNKNOWN_CAPTURE */
    const str *key_columns; /* keyed sinks; else NULL */
    size_t key_count;
};

enum decode_verdict {
    DECODE_ROW,        /* one value was appended to every column */
    DECODE_REJECT,     /* see the hits */
    DECODE_EMPTY,      /* an empty line: refused at the intake */
    DECODE_UNREADABLE, /* not JSON: no intake of ours stored it */
};

struct decode_result {
    enum decode_verdict verdict;
    struct reject_hit hits[REJECT_ALSO_MAX + 1];
    size_t hit_count;
    str did_you_mean; /* data NULL: none */
};

/* Whether unknown names can be captured in a column of this type: string or variant. */
static inline bool decode_may_capture(const struct type *type)
{
    return type->kind == TYPE_STRING || type->kind == TYPE_VARIANT;
}

struct decoder;

/* The schema must outlive the decoder. `columns` get one entry per column of the schema,
 * __ingest_ts included where the schema has it. INVALID: a column or default that no sink writes
 * (unsupported_column_type, reserved_column_conflict), or settings that do not fit the schema. */
MUST_USE err decoder_open(struct arena *arena, const struct schema *schema,
                          const struct decode_settings *settings, struct decoder **out_decoder,
                          struct error *error);
struct column *decoder_columns(struct decoder *decoder, size_t *out_count);
/* Takes all columns back to no values (after a row group was written). */
void decoder_clear(struct decoder *decoder);
/* Lines that decode_next finds in `bytes` are read in place, others from a copy. */
void decoder_reads(struct decoder *decoder, str bytes);
/* ingest_ts is what __ingest_ts gets. */
MUST_USE err decode_line(struct decoder *decoder, str line, instant ingest_ts,
                         struct decode_result *out_result, struct error *error);
/* The same of the first of `lines`, which then begin behind it; their data is NULL if it was the
 * last one. */
MUST_USE err decode_next(struct decoder *decoder, str *lines, instant ingest_ts, str *out_line,
                         struct decode_result *out_result, struct error *error);

/* For tests. A decoder takes the fastest way that the machine has; all come to the same. */
enum decode_way { DECODE_WAY_TREE, DECODE_WAY_PORTABLE, DECODE_WAY_WIDE };
/* False: the machine does not have it. */
bool decoder_choose_way(struct decoder *decoder, enum decode_way way);

#endif
