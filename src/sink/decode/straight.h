/* decode/straight: a row that is all well, in one pass from its bytes into the columns.
 *
 * Takes what nearly every row is: objects of known names in any order, values that fit, each name
 * once. Of anything else it says no and takes back what it appended, and the tree (decode/tree,
 * decode/values) judges the row: no verdict and no reason comes from here, and a row taken here is
 * one that the tree takes with the same values.
 *
 * The order of names is foretold from the rows before. The same source is compiled twice, once with
 * AVX2, which is chosen where the machine has it. Owned by one decoder. */
#ifndef LHBOX_SINK_DECODE_STRAIGHT_H
#define LHBOX_SINK_DECODE_STRAIGHT_H

#include "base/buf.h"
#include "sink/decode/step.h"

struct straight {
    struct decode_step root;
    buf scratch; /* of values that are rarely seen */
    const u8 *end;
};

/* Appends one value to each column but the sink's own ones. False: the row is not of that kind, or
 * memory is out; the columns are to be truncated. `line` has a line
 * feed and JSON_SCAN_SLACK readable bytes behind it. */
typedef bool straight_function(struct straight *straight, str line, i64 row);
straight_function straight_row_portable;
straight_function straight_row_wide; /* AVX2 */

#endif
