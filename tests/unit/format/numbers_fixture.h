/* Columns of numbers in random order, for the tests of encodings; in an arena of each test. */
#ifndef LHBOX_TEST_FORMAT_NUMBERS_FIXTURE_H
#define LHBOX_TEST_FORMAT_NUMBERS_FIXTURE_H

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ARENA_BYTES = 64 * MIB };

static struct arena *arena;

static inline int make_arena(void **state)
{
    (void)state;
    arena = arena_create(ARENA_BYTES);
    return 0;
}

static inline int drop_arena(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

static inline u64 scrambled(u64 number)
{
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9U;
    number = (number ^ number >> 27) * 0x94d049bb133111ebU;
    return number ^ number >> 31;
}

/* Numbers as a column of `width` bytes has them. */
static inline const u8 *narrowed(const u64 *numbers, i64 count, size_t width)
{
    u8 *bytes = arena_alloc(arena, (size_t)count * width + 1);
    for (i64 i = 0; i < count; i++) {
        memcpy(bytes + (size_t)i * width, &numbers[i], width);
    }
    return bytes;
}

#endif
