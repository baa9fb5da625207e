/* account_fixture: one private ledger a test, under a clock that the test moves. */
#ifndef LHBOX_TESTS_ACCOUNT_FIXTURE_H
#define LHBOX_TESTS_ACCOUNT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sink/ledger.h"

struct fixture {
    struct arena *arena;
    struct db db;
    struct seam seam;
    instant now;
    u64 random;
};

static instant fixture_now(void *self)
{
    return ((struct fixture *)self)->now;
}

static i64 fixture_monotonic(void *self)
{
    return ((struct fixture *)self)->now;
}

static void fixture_random(void *self, void *out, size_t size)
{
    struct fixture *fixture = self;
    u8 *bytes = out;
    for (size_t i = 0; i < size; i++) {
        fixture->random = fixture->random * 6364136223846793005U + 1442695040888963407U;
        bytes[i] = (u8)(fixture->random >> 56);
    }
}

static void fixture_wait(void *self, i64 microseconds)
{
    ((struct fixture *)self)->now += microseconds;
}

static int set_up(void **state)
{
    struct arena *arena = arena_create(64 * (size_t)MIB);
    struct fixture *fixture = arena_alloc(arena, sizeof(*fixture));
    fixture->arena = arena;
    fixture->now = 1790000000 * TIME_SECOND_US;
    fixture->seam = (struct seam){fixture_now, fixture_monotonic, fixture_random, fixture_wait,
                                  fixture};
    struct error error = {0};
    assert_int_equal(db_open_sqlite(arena, STR(":memory:"), &fixture->seam, &fixture->db, &error),
                     OK);
    assert_int_equal(ledger_open(&fixture->db, &fixture->seam, &error), OK);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    db_close(&fixture->db);
    arena_destroy(fixture->arena);
    return 0;
}

#endif
