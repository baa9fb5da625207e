/* statistics: least and greatest value of a leaf, in Parquet's and in Iceberg's form.
 *
 * NaN is never a bound; -0.0 comes before +0.0. Strings are cut to some code points and binaries to
 * as many bytes; a cut upper bound is raised, and is none where nothing can be raised. Other types
 * are whole. Spec: parquet.thrift (ColumnOrder, Statistics); Iceberg spec, appendix D. Private to
 * parquet. */
#ifndef LHBOX_FORMAT_PARQUET_STATISTICS_H
#define LHBOX_FORMAT_PARQUET_STATISTICS_H

#include "format/parquet/encode.h"
#include "format/parquet/parquet.h"

/* Slices of whole physical values; data NULL: none (no values, or only NaNs). */
struct bounds {
    str lower;
    str upper;
};

/* Of the values at [from, to), and adds the NaNs among them to *nans. With a selection (NULL: none,
 * and none of numbers) of the values at selection[from..to). */
struct bounds bounds_of(const struct leaf *leaf, const struct values *values, const u32 *selection,
                        i64 from, i64 to, i64 *nans);
/* Widens `bounds` by `more`. */
void bounds_widen(const struct leaf *leaf, struct bounds *bounds, struct bounds more);

/* The bounds as they are kept: strings and binaries cut. `exact` says that nothing was. */
struct kept_bounds {
    struct bounds bounds;
    bool lower_exact;
    bool upper_exact;
};
/* Copies into the arena. `units_max`: code points or bytes, PARQUET_BOUND_WHOLE for all. False at
 * the arena's limit. */
MUST_USE bool bounds_keep(const struct leaf *leaf, struct bounds whole, i64 units_max,
                          struct arena *arena, struct kept_bounds *out_kept);
/* For Parquet's own statistics: a zero of either sign becomes -0.0 below and +0.0 above. */
struct bounds bounds_for_parquet(const struct leaf *leaf, struct bounds kept);
/* Iceberg's single-value form: differs for decimals only. False at the arena's limit. */
MUST_USE bool bounds_for_iceberg(const struct leaf *leaf, struct bounds kept, struct arena *arena,
                                 struct bounds *out_bounds);

#endif
