/* extremes: the least and the greatest of many numbers.
 *
 * Numbers are compared by keys: signed integers that sort as the numbers do, floats in their total
 * order with the NaNs outside of the infinities. The same code is compiled twice; extremes_best
 * knows which of the two the processor can run. Pure. */
#ifndef LHBOX_FORMAT_EXTREMES_H
#define LHBOX_FORMAT_EXTREMES_H

#include "base/num.h"

enum extremes_type {
    EXTREMES_U8,
    EXTREMES_I32,
    EXTREMES_I64,
    EXTREMES_FLOAT,
    EXTREMES_DOUBLE,
};

/* Of floats; a negative one's other bits are turned round. */
static inline i64 extremes_float_key(u32 bits)
{
    return (i32)(bits >> 31 != 0 ? bits ^ INT32_MAX : bits);
}

static inline i64 extremes_double_key(u64 bits)
{
    return (i64)(bits >> 63 != 0 ? bits ^ INT64_MAX : bits);
}

static inline i64 extremes_key(enum extremes_type type, const u8 *value)
{
    switch (type) {
    case EXTREMES_U8:
        return *value;
    case EXTREMES_I32:
        return (i32)num_load_u32(value);
    case EXTREMES_I64:
        return (i64)num_load_u64(value);
    case EXTREMES_FLOAT:
        return extremes_float_key(num_load_u32(value));
    case EXTREMES_DOUBLE:
        return extremes_double_key(num_load_u64(value));
    }
    return 0;
}

/* The greatest key that is no NaN's; the least one is what lies as far on the other side. */
static inline i64 extremes_key_max(enum extremes_type type)
{
    if (type == EXTREMES_FLOAT) {
        return 0x7f800000;
    }
    return type == EXTREMES_DOUBLE ? 0x7ff0000000000000 : INT64_MAX;
}

static inline bool extremes_key_is_nan(enum extremes_type type, i64 key)
{
    i64 most = extremes_key_max(type);
    return key > most || key < -most - 1;
}

struct extremes {
    i64 least; /* both are keys */
    i64 greatest;
};

/* Of `count` values of a type that is a number, one or more; NaNs count. */
typedef struct extremes extremes_function(enum extremes_type type, const u8 *data, i64 count);
extremes_function extremes_portable;
extremes_function extremes_wide; /* AVX2; on x86-64 only */
extremes_function *extremes_best(void);

#endif
