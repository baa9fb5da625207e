/* workload: rows of JSON that are the same on every machine.
 *
 * iot      8 flat columns, about 130 bytes a row, 50,000 devices
 * event    15 columns, a struct and a list among them, about 500 bytes; escapes or UTF-8 in 19 % of
 *          the rows, nulls, decimals as strings
 * wide     41 numeric columns, about 610 bytes
 * hostile  event's columns: keys in any order, nulls left out, white space, 1e-320, integers of 19
 *          digits
 *
 * Any of them can have bad rows, which a sink rejects: a key too many, twice or missing, a value
 * that is no timestamp, out of range, or half a surrogate pair. Which rows are bad, and how a
 * hostile row is written down, does not change the values of the others. */
#ifndef LHBOX_BENCH_WORKLOAD_H
#define LHBOX_BENCH_WORKLOAD_H

#include "base/buf.h"

enum { WORKLOAD_COLUMNS_MAX = 41 };

enum workload_set { WORKLOAD_IOT, WORKLOAD_EVENT, WORKLOAD_WIDE, WORKLOAD_HOSTILE };

struct workload;

/* How a column's values are written; `low` to `high`, where they matter. */
struct workload_column {
    char name[16];
    const char *type; /* as POST /v1/tables takes it, ` required` included */
    void (*print)(struct workload *workload, const struct workload_column *column, buf *out);
    i64 low;
    i64 high;
};

struct workload {
    enum workload_set set;
    struct workload_column columns[WORKLOAD_COLUMNS_MAX];
    size_t column_count;
    i32 bad_percent;
    bool plain; /* rows of hostile as event would write them */
    i64 row;    /* of the next one */
    u64 values; /* three streams of random numbers */
    u64 shapes;
    u64 faults;
    buf fields; /* of the row under way */
    str field[WORKLOAD_COLUMNS_MAX];
};

/* False: there is no such set. */
bool workload_init(struct workload *workload, struct arena *arena, str set);
/* Other rows; 0 are those without it. */
void workload_seed(struct workload *workload, u64 seed);
/* One object, with no line's end. False: it is a bad one. */
bool workload_row(struct workload *workload, buf *out);
/* name: type, each followed by `after` but the last. */
void workload_print_columns(const struct workload *workload, const char *after, buf *out);

#endif
