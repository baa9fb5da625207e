/* Objects that a directory writes past the cache, as far as their pieces allow. */
#include "store_fixture.h"

enum { PAGES_PIECE = 128 * KIB, PAGES_PIECES = 24, PAGES_TAIL = 5000 };

/* Pieces of whole pages, the last one only partly full, that begin `shift` bytes behind one. */
static void make_pages(struct fixture *f, size_t shift, str pieces[static PAGES_PIECES + 1])
{
    for (size_t i = 0; i <= PAGES_PIECES; i++) {
        char *room = arena_alloc(f->arena, PAGES_PIECE + 2 * (size_t)STORE_PAGE_BYTES);
        assert_non_null(room);
        room += -(uintptr_t)room % STORE_PAGE_BYTES + shift;
        for (size_t at = 0; at < PAGES_PIECE; at++) {
            room[at] = (char)(i + at * at / 3);
        }
        pieces[i] = (str){room, i == PAGES_PIECES ? PAGES_TAIL : PAGES_PIECE};
    }
}

static int put_pages(struct fixture *f, const str *pieces, size_t count)
{
    const struct store_meta meta = {.caching = STORE_UNCACHED};
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    struct store_object object = {0};
    if (store_put_pieces(&f->store, STR("p"), pieces, count, &meta, NULL) != OK ||
        store_get(&f->store, arena, STR("p"), &object, NULL) != OK) {
        return 1;
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (!str_equal(str_slice(object.body, at, at + pieces[i].size), pieces[i])) {
            return 2;
        }
        at += pieces[i].size;
    }
    return object.body.size == at ? 0 : 3;
}

static int put_pages_of_any_kind(struct fixture *f)
{
    static const size_t shifts[] = {0, 16};
    static const size_t counts[] = {0, 1, 7, 8, 9, PAGES_PIECES, PAGES_PIECES + 1};
    str pieces[PAGES_PIECES + 1];
    for (size_t i = 0; i < ARRAY_COUNT(shifts); i++) {
        make_pages(f, shifts[i], pieces);
        for (size_t j = 0; j < ARRAY_COUNT(counts); j++) {
            int failed = put_pages(f, pieces, counts[j]);
            if (failed != 0) {
                return failed;
            }
        }
        pieces[9].size -= 1; /* what follows begins at a page of memory, and at none of the file */
        pieces[PAGES_PIECES].size = 0;
        int failed = put_pages(f, pieces, ARRAY_COUNT(pieces));
        if (failed != 0) {
            return failed;
        }
    }
    return 0;
}

static void what_is_put_past_the_cache_is_got(void **state)
{
    assert_int_equal(put_pages_of_any_kind(*state), 0);
}

/* As a file system answers that cannot. */
static void a_disk_that_cannot_write_past_the_cache_gets_the_bytes_through_it(void **state)
{
    assert_int_equal(in_child(*state, SYS_fcntl, EINVAL, put_pages_of_any_kind), 0);
}

static int put_pages_once(struct fixture *f)
{
    str pieces[PAGES_PIECES + 1];
    make_pages(f, 0, pieces);
    return put_pages(f, pieces, ARRAY_COUNT(pieces));
}

static void a_failed_write_past_the_cache_is_told(void **state)
{
    struct fixture *f = *state;
    struct store_object object = {0};
    assert_int_equal(in_child(f, SYS_writev, ENOSPC, put_pages_once), 1);
    assert_int_equal(store_head(&f->store, f->arena, STR("p"), &object, NULL), NOT_FOUND);
    assert_int_equal(temporary_files(f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DIR_ONLY(what_is_put_past_the_cache_is_got),
        DIR_ONLY(a_disk_that_cannot_write_past_the_cache_gets_the_bytes_through_it),
        DIR_ONLY(a_failed_write_past_the_cache_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
