/* decimal: exact decimal numbers from their JSON text, up to 38 digits.
 *
 * A number is read as digits and exponent and is never expanded past what its type can hold. Pure.
 */
#ifndef LHBOX_BASE_DECIMAL_H
#define LHBOX_BASE_DECIMAL_H

#include "base/str.h"

enum decimal_result {
    DECIMAL_OK,
    DECIMAL_OUT_OF_RANGE, /* more digits before the point than precision - scale allows */
    DECIMAL_INEXACT,      /* non-zero digits past the scale; out of range wins over this */
};

/* `text` is a number of JSON's form. The value times 10^scale goes to *out_unscaled. An exponent as
 * written beyond ±999 is out of range unless all digits are zero. precision 1..38, scale
 * 0..precision. */
MUST_USE enum decimal_result decimal_parse(str text, i32 precision, i32 scale, i128 *out_unscaled);
/* The text with exactly `scale` digits after the point (none and no point when 0), no minus zero.
 * Room: 42 bytes. Returns the size. */
size_t decimal_format(i128 unscaled, i32 scale, char out[48]);
/* Integral value of a JSON number within 64 bits: DECIMAL_INEXACT when it has a fraction (which
 * wins over out of range here), DECIMAL_OUT_OF_RANGE beyond i64 or an exponent beyond ±999. */
MUST_USE enum decimal_result decimal_parse_i64(str text, i64 *out_value);
/* Big-endian two's complement, shortest form that keeps the sign (Iceberg single-value form).
 * Returns the size, 1..16. */
size_t decimal_bytes(i128 unscaled, u8 out[16]);

#endif
