/* decode/straight: a row that is all well, in one pass from its bytes into the columns.
 *
 * Takes what nearly every row is: objects of known names in any order, values that fit, each name
 * once. Of anything else it says no and takes back what it appended, and the tree (decode/tree,
 * decode/values) judges the row: no verdict and no reason comes from here, and a row taken here is
 * one that the tree takes with the same values. The tree has its columns' values read here one by
 * one, and looks only at those that are not taken.
 *
 * The order of names is foretold from the rows before. The same source is compiled twice, once with
 * AVX2, which is chosen where the machine has it. Owned by one decoder. */
#ifndef LHBOX_SINK_DECODE_STRAIGHT_H
#define LHBOX_SINK_DECODE_STRAIGHT_H

#include "base/buf.h"
#include "sink/decode/step.h"

struct straight {
    struct decode_step root;
    buf scratch;               /* of values that are rarely seen */
    struct decode_step *named; /* the field of a name that was not foretold */
    const u8 *limit;           /* a line feed, that of the line or one behind it */
};

/* Appends one value to each column but the sink's own ones, from the line that begins at `at`, and
 * returns the line feed behind it. NULL: the row is not of that kind, or memory is out; the columns
 * are to be truncated. straight->limit is a line feed with JSON_SCAN_SLACK readable bytes behind
 * it. */
typedef const u8 *straight_function(struct straight *straight, const u8 *at, i64 row);
straight_function straight_row_portable;
straight_function straight_row_wide; /* AVX2 */

/* The same of one member of the row, the root's field `field`: from where its value begins, to the
 * byte behind it. NULL: the column is as it was, `row` values. */
typedef const u8 *straight_member_function(struct straight *straight, u32 field, const u8 *at,
                                           i64 row);
straight_member_function straight_member_portable;
straight_member_function straight_member_wide; /* AVX2 */

#endif
