/* Compiled once as it is and once with AVX2 and EXTREMES_WIDE: loops that a compiler makes wide. */
#include "format/extremes.h"

#ifdef EXTREMES_WIDE
#define EXTREMES extremes_wide
#else
#define EXTREMES extremes_portable
#endif

#define EXTREMES_INLINE inline __attribute__((always_inline))

/* For a constant type and width. */
static EXTREMES_INLINE struct extremes find(enum extremes_type type, size_t width, const u8 *data,
                                            i64 count)
{
    i64 least = INT64_MAX;
    i64 greatest = INT64_MIN;
    for (i64 i = 0; i < count; i++) {
        i64 key = extremes_key(type, data + (size_t)i * width);
        least = key < least ? key : least;
        greatest = key > greatest ? key : greatest;
    }
    return (struct extremes){least, greatest};
}

struct extremes EXTREMES(enum extremes_type type, const u8 *data, i64 count) {
    switch (type) {
    case EXTREMES_U8:
        return find(EXTREMES_U8, 1, data, count);
    case EXTREMES_I32:
        return find(EXTREMES_I32, sizeof(u32), data, count);
    case EXTREMES_I64:
        return find(EXTREMES_I64, sizeof(u64), data, count);
    case EXTREMES_FLOAT:
        return find(EXTREMES_FLOAT, sizeof(u32), data, count);
    case EXTREMES_DOUBLE:
        return find(EXTREMES_DOUBLE, sizeof(u64), data, count);
    }
    return (struct extremes){0, 0};
}

#ifndef EXTREMES_WIDE
extremes_function *
extremes_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        return extremes_wide;
    }
#endif
    return extremes_portable;
}
#endif
