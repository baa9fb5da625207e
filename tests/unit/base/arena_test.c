#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/arena.h"

/* The limit counts chunks with their heads, so that tests leave room for those. */
enum { HEAD_ROOM = 64 };

static void allocations_are_aligned_and_zeroed_also_after_reset(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    for (int round = 0; round < 2; round++) {
        for (size_t size = 0; size < 100; size++) {
            unsigned char *bytes = arena_alloc(arena, size);
            assert_non_null(bytes);
            assert_int_equal((uintptr_t)bytes % 16, 0);
            for (size_t i = 0; i < size; i++) {
                assert_int_equal(bytes[i], 0);
                bytes[i] = 0xff;
            }
        }
        arena_reset(arena);
    }
}

static void allocations_do_not_overlap(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    enum { COUNT = 200 };
    unsigned char *pieces[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        pieces[i] = arena_alloc(arena, i * 7);
        memset(pieces[i], (int)i, i * 7);
    }
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < i * 7; k++) {
            assert_int_equal(pieces[i][k], i);
        }
    }
}

static void allocation_past_the_limit_is_null_and_smaller_ones_still_fit(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * KIB);
    assert_null(arena_alloc(arena, 8 * KIB));
    assert_non_null(arena_alloc(arena, 8 * KIB - HEAD_ROOM));
    assert_true(arena_bytes(arena) <= 8 * KIB);
    assert_null(arena_alloc(arena, 64));
    arena_reset(arena);
    assert_non_null(arena_alloc(arena, 8 * KIB - HEAD_ROOM));
}

static void every_byte_up_to_the_limit_can_be_used_in_small_pieces(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(100 * KIB);
    size_t taken = 0;
    while (arena_alloc(arena, 512) != NULL) {
        taken += 512;
        assert_true(arena_bytes(arena) <= 100 * KIB);
    }
    assert_true(taken > 90 * KIB);
    assert_true(taken < 100 * KIB);
}

static void chunks_kept_for_reuse_do_not_bring_the_limit_nearer(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(64 * KIB);
    while (arena_alloc(arena, 1000) != NULL) {
    }
    arena_reset(arena);
    assert_non_null(arena_alloc(arena, 64 * KIB - HEAD_ROOM));
    assert_true(arena_bytes(arena) <= 64 * KIB);
}

static void sizes_that_overflow_are_null(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(SIZE_MAX);
    assert_null(arena_alloc(arena, SIZE_MAX));
    assert_null(arena_alloc(arena, SIZE_MAX - 20));
    assert_null(arena_array(arena, SIZE_MAX / 2, 3));
    assert_null(arena_array(arena, (size_t)1 << 33, (size_t)1 << 33));
    assert_non_null(arena_array(arena, 0, SIZE_MAX));
    char *bytes = arena_alloc(arena, 8);
    assert_null(arena_grow(arena, bytes, 8, SIZE_MAX - 4));
}

static void growing_the_newest_allocation_stays_in_place(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    char *bytes = arena_alloc(arena, 10);
    memset(bytes, 'a', 10);
    char *grown = arena_grow(arena, bytes, 10, 1000);
    assert_ptr_equal(grown, bytes);
    memset(grown, 'b', 1000);
    assert_ptr_equal(arena_grow(arena, grown, 1000, 20), bytes);
    char *next = arena_alloc(arena, 10);
    assert_true(next < bytes + 1000); /* the tail was given back */
}

static void growing_an_older_allocation_copies_it(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    char *old = arena_alloc(arena, 10);
    memcpy(old, "0123456789", 10);
    char *newer = arena_alloc(arena, 10);
    memcpy(newer, "abcdefghij", 10);
    char *grown = arena_grow(arena, old, 10, 50);
    assert_ptr_not_equal(grown, old);
    assert_memory_equal(grown, "0123456789", 10);
    assert_memory_equal(old, "0123456789", 10);
    assert_memory_equal(newer, "abcdefghij", 10);
    assert_ptr_equal(arena_grow(arena, old, 10, 5), old);
    assert_non_null(arena_grow(arena, NULL, 0, 5));
}

static void growing_past_the_limit_keeps_the_old_bytes(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(4 * KIB);
    char *old = arena_alloc(arena, 10);
    memcpy(old, "0123456789", 10);
    assert_null(arena_grow(arena, old, 10, 8 * KIB));
    assert_memory_equal(old, "0123456789", 10);
}

static void reset_to_a_mark_keeps_what_is_older(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct arena_mark empty = arena_mark(arena);
    char *old = arena_alloc(arena, 100);
    memset(old, 'x', 100);
    struct arena_mark mark = arena_mark(arena);
    char *first_after = arena_alloc(arena, 16);
    for (int i = 0; i < 50; i++) {
        assert_non_null(arena_alloc(arena, 3000));
    }
    size_t bytes = arena_bytes(arena);
    arena_reset_to(arena, mark);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(old[i], 'x');
    }
    assert_ptr_equal(arena_alloc(arena, 16), first_after);
    for (int i = 0; i < 50; i++) {
        assert_non_null(arena_alloc(arena, 3000));
    }
    assert_int_equal(arena_bytes(arena), bytes);
    arena_reset_to(arena, empty);
    assert_ptr_equal(arena_alloc(arena, 100), old);
}

static void nth_growth_fails_as_at_the_limit(void **state)
{
    (void)state;
    arena_fail_growth_at(2);
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    assert_non_null(arena_alloc(arena, 5000));
    assert_null(arena_alloc(arena, 5000));
    assert_int_equal(arena_growths(), 2);
    assert_non_null(arena_alloc(arena, 5000));
    assert_int_equal(arena_growths(), 3);
    arena_fail_growth_at(0);
    assert_int_equal(arena_growths(), 0);
    assert_non_null(arena_alloc(arena, 50000));
}

static void armed_for_allocations_each_is_a_growth(void **state)
{
    (void)state;
    arena_fail_allocation_at(3);
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    assert_non_null(arena_alloc(arena, 1));
    assert_non_null(arena_alloc(arena, 1));
    assert_false(arena_refused(arena));
    assert_null(arena_alloc(arena, 1));
    assert_true(arena_refused(arena));
    assert_int_equal(arena_growths(), 3);
    arena_fail_growth_at(0);
    assert_non_null(arena_alloc(arena, 1));
    assert_non_null(arena_alloc(arena, 1));
    assert_int_equal(arena_growths(), 1);
    assert_true(arena_refused(arena));
    arena_reset(arena);
    assert_false(arena_refused(arena));
}

/* Two arrays growing side by side: what they leave behind is not kept. */
static void arrays_that_grow_large_leave_nothing_behind(void **state)
{
    (void)state;
    enum { LAST = 4 * MIB };
    AUTO_ARENA struct arena *arena = arena_create(2 * LAST + MIB);
    u32 *arrays[2] = {0};
    size_t size = 0;
    for (size_t next = 64; next <= LAST; next *= 2) {
        for (u32 i = 0; i < 2; i++) {
            arrays[i] = arena_regrow(arena, arrays[i], size, next);
            assert_non_null(arrays[i]);
            for (size_t at = size / sizeof(u32); at < next / sizeof(u32); at++) {
                arrays[i][at] = (u32)at * 2 + i;
            }
        }
        size = next;
    }
    for (size_t at = 0; at < LAST / sizeof(u32); at++) {
        assert_int_equal(arrays[0][at], at * 2);
        assert_int_equal(arrays[1][at], at * 2 + 1);
    }
    assert_in_range(arena_bytes(arena), 2 * LAST, 2 * LAST + 8 * ARENA_BLOCK_BYTES);
    assert_null(arena_regrow(arena, arrays[0], LAST, 2 * LAST));
    assert_true(arena_refused(arena));
    assert_int_equal(arrays[0][1], 2);
    arena_reset(arena);
    assert_in_range(arena_bytes(arena), 0, 8 * ARENA_BLOCK_BYTES);
}

static void a_mark_gives_back_the_arrays_made_since(void **state)
{
    (void)state;
    enum { SIZE = 2 * ARENA_BLOCK_BYTES };
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    char *old = arena_regrow(arena, NULL, 0, SIZE);
    memset(old, 'x', SIZE);
    struct arena_mark mark = arena_mark(arena);
    size_t bytes = arena_bytes(arena);
    assert_non_null(arena_regrow(arena, NULL, 0, SIZE));
    old = arena_regrow(arena, old, SIZE, 2 * SIZE);
    arena_reset_to(arena, mark);
    assert_int_equal(arena_bytes(arena), bytes + SIZE);
    for (int i = 0; i < SIZE; i++) {
        assert_int_equal(old[i], 'x');
    }
}

static void each_growth_of_a_large_array_can_fail(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    arena_fail_growth_at(2);
    char *array = arena_regrow(arena, NULL, 0, 2 * ARENA_BLOCK_BYTES);
    assert_non_null(array);
    assert_null(arena_regrow(arena, array, 2 * ARENA_BLOCK_BYTES, 4 * ARENA_BLOCK_BYTES));
    assert_int_equal(arena_growths(), 2);
    arena_fail_growth_at(0);
}

/* ---- memory that is kept for the next arena ---- */

enum { LARGE_BYTES = 2 * MIB };

static void *make_large_and_give_it_back(size_t size)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)64 * MIB);
    char *array = arena_regrow(arena, NULL, 0, size);
    assert_non_null(array);
    memset(array, 'x', size);
    return array;
}

static void large_memory_is_kept_for_the_next_arena_up_to_the_bound(void **state)
{
    (void)state;
    assert_int_equal(arena_kept(), 0);
    (void)make_large_and_give_it_back(LARGE_BYTES);
    assert_int_equal(arena_kept(), 0);
    arena_keep((size_t)5 * MIB);
    void *first = make_large_and_give_it_back(LARGE_BYTES);
    size_t kept = arena_kept();
    assert_in_range(kept, LARGE_BYTES, LARGE_BYTES + KIB);
    assert_ptr_equal(make_large_and_give_it_back(LARGE_BYTES), first);
    assert_int_equal(arena_kept(), kept);
    /* It is much too large for this, which is kept beside it. */
    (void)make_large_and_give_it_back(LARGE_BYTES / 4 + KIB);
    assert_in_range(arena_kept(), kept + LARGE_BYTES / 4, kept + LARGE_BYTES / 4 + 2 * KIB);
    /* The oldest go first, and what is larger than the bound is not kept at all. */
    (void)make_large_and_give_it_back(2 * LARGE_BYTES);
    assert_in_range(arena_kept(), 2 * LARGE_BYTES, 5 * MIB);
    (void)make_large_and_give_it_back(4 * LARGE_BYTES);
    assert_in_range(arena_kept(), 2 * LARGE_BYTES, 5 * MIB);
    arena_keep(0);
    assert_int_equal(arena_kept(), 0);
}

static void kept_memory_that_nobody_takes_goes_back_at_the_second_trim(void **state)
{
    (void)state;
    arena_keep((size_t)8 * MIB);
    (void)make_large_and_give_it_back(LARGE_BYTES);
    arena_trim();
    assert_int_not_equal(arena_kept(), 0);
    (void)make_large_and_give_it_back(LARGE_BYTES);
    arena_trim();
    assert_int_not_equal(arena_kept(), 0);
    arena_trim();
    assert_int_equal(arena_kept(), 0);
    arena_keep(0);
}

static void arrays_grow_over_kept_memory_with_their_bytes(void **state)
{
    (void)state;
    arena_keep((size_t)16 * MIB);
    for (size_t size = MIB; size <= 4 * MIB; size *= 2) {
        (void)make_large_and_give_it_back(size);
    }
    AUTO_ARENA struct arena *arena = arena_create((size_t)64 * MIB);
    size_t size = 64 * KIB;
    u32 *array = arena_regrow(arena, NULL, 0, size);
    for (size_t i = 0; i < size / sizeof(u32); i++) {
        array[i] = (u32)i;
    }
    for (size_t count = size / sizeof(u32); size < 8 * MIB; size *= 2) {
        array = arena_regrow(arena, array, size, 2 * size);
        assert_non_null(array);
        for (size_t i = 0; i < 2 * size / sizeof(u32); i++) {
            assert_true(i >= count || array[i] == (u32)i);
            array[i] = (u32)i;
        }
        count = 2 * size / sizeof(u32);
    }
    /* What they were in is there for others; the limit counts what was asked for. */
    assert_int_not_equal(arena_kept(), 0);
    assert_in_range(arena_bytes(arena), size, size + KIB);
    arena_keep(0);
}

static void destroying_nothing_is_allowed(void **state)
{
    (void)state;
    arena_destroy(NULL);
    struct arena *arena = arena_create(0);
    assert_null(arena_alloc(arena, 1));
    arena_destroy_at(&arena);
    assert_null(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_aligned_and_zeroed_also_after_reset),
        cmocka_unit_test(allocations_do_not_overlap),
        cmocka_unit_test(allocation_past_the_limit_is_null_and_smaller_ones_still_fit),
        cmocka_unit_test(every_byte_up_to_the_limit_can_be_used_in_small_pieces),
        cmocka_unit_test(chunks_kept_for_reuse_do_not_bring_the_limit_nearer),
        cmocka_unit_test(sizes_that_overflow_are_null),
        cmocka_unit_test(growing_the_newest_allocation_stays_in_place),
        cmocka_unit_test(growing_an_older_allocation_copies_it),
        cmocka_unit_test(growing_past_the_limit_keeps_the_old_bytes),
        cmocka_unit_test(reset_to_a_mark_keeps_what_is_older),
        cmocka_unit_test(nth_growth_fails_as_at_the_limit),
        cmocka_unit_test(armed_for_allocations_each_is_a_growth),
        cmocka_unit_test(arrays_that_grow_large_leave_nothing_behind),
        cmocka_unit_test(a_mark_gives_back_the_arrays_made_since),
        cmocka_unit_test(each_growth_of_a_large_array_can_fail),
        cmocka_unit_test(large_memory_is_kept_for_the_next_arena_up_to_the_bound),
        cmocka_unit_test(kept_memory_that_nobody_takes_goes_back_at_the_second_trim),
        cmocka_unit_test(arrays_grow_over_kept_memory_with_their_bytes),
        cmocka_unit_test(destroying_nothing_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
