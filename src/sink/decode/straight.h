/* decode/straight: a row that is all well, in one pass from its bytes into the columns.
 *
 * Takes what nearly every row is: objects of known names in any order, values that fit, each name
 * once. Of anything else it says no and takes back what it appended, and the tree (decode/tree,
 * decode/values) judges the row: no verdict and no reason comes from here, and a row taken here is
 * one that the tree takes with the same values. The tree lets members be taken here, too, and looks
 * only at the others.
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
    u32 taken;                 /* members at the front of a row that was not taken whole */
    /* For straight_members: what is foretold, NULL where the row begins; and fields that the plan
     * has seen in this object are not taken. */
    struct decode_step **foretold;
    u64 object;
};

/* Appends one value to each column but the sink's own ones, from the line that begins at `at`, and
 * returns the line feed behind it. NULL: the row is not of that kind, or memory is out; the columns
 * are to be truncated, but for those that straight_taken tells of, and absent fields' that have a
 * value. straight->limit is a line feed with JSON_SCAN_SLACK readable bytes behind it. */
typedef const u8 *straight_function(struct straight *straight, const u8 *at, i64 row);
straight_function straight_row_portable;
straight_function straight_row_wide; /* AVX2 */

/* A member of the row whose value was appended. */
struct straight_member {
    u32 field; /* of the root */
    const u8 *end;
};

/* The next of the straight->taken members that were appended before the row was given up; *foretold
 * is straight->root.first for the first one. */
static inline struct straight_member straight_taken(const struct straight *straight,
                                                    struct decode_step ***foretold)
{
    const struct decode_step *field = (*foretold)[0];
    u32 index = (u32)(field - straight->root.fields);
    *foretold = straight->root.fields[index].next;
    return (struct straight_member){index, field->end};
}

/* Some members of a row that is not taken whole: those from `at` on, where a name is to come, as
 * many as are taken, at most `max`. Returns how many; other columns are as they were. */
typedef size_t straight_members_function(struct straight *straight, const u8 *at, i64 row,
                                         struct straight_member *out_members, size_t max);
straight_members_function straight_members_portable;
straight_members_function straight_members_wide; /* AVX2 */

#endif
