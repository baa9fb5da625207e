/* real: the double or float nearest to a decimal number, ties to even.
 *
 * Straight from the digits, whatever their number: what fits is done by one exact multiplication
 * or division, nearly all else by a 128-bit product (the method of Eisel and Lemire), and what such
 * a product leaves open by exact division. No locale has a say. Pure; any thread. */
#ifndef LHBOX_BASE_REAL_H
#define LHBOX_BASE_REAL_H

#include "base/str.h"

enum { REAL_WRITTEN_MAX = 999 };

/* Of what stands behind a number's `e`, and of nothing: the exponent as written, kept at
 * ±(REAL_WRITTEN_MAX + 1) when it is beyond. */
i32 real_written_exponent(str text);

/* `text` has JSON's number form. An exponent as written beyond ±REAL_WRITTEN_MAX gives zero or
 * infinity. False: the nearest is infinity. */
MUST_USE bool real_parse_double(str text, double *out_value);
MUST_USE bool real_parse_float(str text, float *out_value);

/* mantissa x 10^exponent, of any size. False: the nearest is infinity. */
MUST_USE bool real_double_of_any(u64 mantissa, i32 exponent, double *out_value);
extern const double real_tens[23];
/* False: not in one step. */
static inline bool real_double_at_once(u64 mantissa, i32 exponent, double *out_value)
{
    /* Both are exact, so that one step rounds once. */
    if (mantissa > UINT64_C(1) << 53 || exponent < -22 || exponent > 22) {
        return false;
    }
    *out_value = exponent < 0 ? (double)mantissa / real_tens[-exponent]
                              : (double)mantissa * real_tens[exponent];
    return true;
}
static inline bool real_double(u64 mantissa, i32 exponent, double *out_value)
{
    return real_double_at_once(mantissa, exponent, out_value) ||
           real_double_of_any(mantissa, exponent, out_value);
}
MUST_USE bool real_float(u64 mantissa, i32 exponent, float *out_value);

/* For tests: the same as the parse functions by exact division alone. */
MUST_USE bool real_exact_double(str text, double *out_value);
MUST_USE bool real_exact_float(str text, float *out_value);

#endif
