/* decode/scalar: one JSON value to one value of a scalar type, or the reason why not.
 *
 * Section 3 of the rules, row by row. Numbers are judged on their decimal text. Pure but for the
 * scratch buffer, which must have room for the token twice and 64 bytes more; what a result
 * points at lives there or in the token. */
#ifndef LHBOX_SINK_DECODE_SCALAR_H
#define LHBOX_SINK_DECODE_SCALAR_H

#include "base/buf.h"
#include "format/json.h"
#include "format/type.h"
#include "sink/reject.h"

struct decode_scalar {
    u8 fixed[16]; /* types of a fixed width, in memory order; but fixed[L] */
    str bytes;    /* string, binary, fixed[L]; of another length with WRONG_LENGTH too */
};

enum decode_fit {
    DECODE_FITS,
    DECODE_MISFITS,
};

/* MISFITS: *out_reason says why. `token` is the value as sent, quotes included. */
enum decode_fit decode_scalar_read(const struct type *type, enum json_kind kind, str token,
                                   buf *scratch, struct decode_scalar *out,
                                   enum reject_reason *out_reason);

/* ---- one kind of text each ---- */

/* A text of JSON's number form as unscaled x 10^-scale with the smallest scale from 0 to 38. False:
 * it is not exact in 38 digits. */
MUST_USE bool decode_exact(str text, i128 *out_unscaled, i32 *out_scale);
bool decode_is_number(str text);  /* JSON's number form */
bool decode_is_integer(str text); /* -?(0|[1-9][0-9]*) */

enum decode_fit decode_date(str text, i32 *out_days, enum reject_reason *out_reason);
enum decode_fit decode_time(str text, i64 *out_microseconds, enum reject_reason *out_reason);
/* timestamp, timestamptz and their _ns: the unit and whether a zone is needed come from the
 * type. */
enum decode_fit decode_timestamp(str text, enum type_kind kind, i64 *out_units,
                                 enum reject_reason *out_reason);

#endif
