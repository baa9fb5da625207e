/* Puts that become durable together. */
#include "store_fixture.h"

static bool is_there(struct fixture *f, const char *key)
{
    struct store_object object = {0};
    return store_head(&f->store, f->arena, str_from(key), &object, NULL) == OK;
}

static err later(struct fixture *f, struct store_group *group, const char *key, const char *body)
{
    str piece = str_from(body);
    const struct store_meta meta = {.content_type = STR_INIT("text/plain")};
    return store_group_put(&f->store, group, str_from(key), &piece, 1, &meta, NULL);
}

static void what_a_group_ends_is_there(void **state)
{
    struct fixture *f = *state;
    struct store_group group = {.arena = f->arena};
    assert_int_equal(later(f, &group, "a/b/x", "1"), OK);
    assert_int_equal(later(f, &group, "a/b/y", "2"), OK);
    assert_int_equal(later(f, &group, "a/c/d/z", "3"), OK);
    assert_int_equal(later(f, &group, "top", "4"), OK);
    assert_int_equal(store_group_end(&group, NULL), OK);
    assert_body(f, "a/b/x", "1");
    assert_body(f, "a/b/y", "2");
    assert_body(f, "a/c/d/z", "3");
    assert_body(f, "top", "4");
    struct store_object object = {0};
    assert_int_equal(store_head(&f->store, f->arena, STR("top"), &object, NULL), OK);
    assert_true(str_equal(object.meta.content_type, STR("text/plain")));
    assert_int_equal(store_group_end(&group, NULL), OK);
    assert_int_equal(later(f, &group, "a/b/x", "5"), OK);
    assert_int_equal(store_group_end(&group, NULL), OK);
    assert_body(f, "a/b/x", "5");
}

static void a_group_takes_any_number(void **state)
{
    struct fixture *f = *state;
    struct store_group group = {.arena = f->arena};
    char key[64];
    for (int i = 0; i < 3 * STORE_GROUP_MAX + 7; i++) {
        (void)snprintf(key, sizeof(key), "n/p=%d/q=%d/x", i, i % 5);
        assert_int_equal(later(f, &group, key, "1"), OK);
    }
    assert_int_equal(store_group_end(&group, NULL), OK);
    struct store_list list = {0};
    assert_int_equal(store_list(&f->store, f->arena, STR("n/"), STR(""), 1000, &list, NULL), OK);
    assert_int_equal(list.count, 3 * STORE_GROUP_MAX + 7);
}

static void what_a_group_drops_was_never_there(void **state)
{
    struct fixture *f = *state;
    struct store_group group = {.arena = f->arena};
    put(f, "a/x", "before");
    assert_int_equal(later(f, &group, "a/x", "1"), OK);
    assert_int_equal(later(f, &group, "b/y", "2"), OK);
    assert_int_equal(temporary_files(f), 2);
    store_group_drop(&group);
    assert_int_equal(temporary_files(f), 0);
    assert_body(f, "a/x", "before");
    assert_false(is_there(f, "b/y"));
    store_group_drop(&group);
    put(f, "b/y", "after");
}

static void a_group_that_fails_leaves_no_temporary_files(void **state)
{
    struct fixture *f = *state;
    struct store_group group = {.arena = f->arena};
    struct error error = {0};
    put(f, "a/directory/x", "1");
    assert_int_equal(later(f, &group, "a/first", "1"), OK);
    assert_int_equal(later(f, &group, "a/directory", "2"), OK);
    assert_int_equal(later(f, &group, "a/last", "3"), OK);
    assert_int_equal(store_group_end(&group, &error), IO);
    assert_int_equal(error.code, ERROR_STORE_DOWN);
    assert_int_equal(temporary_files(f), 0);
    assert_false(is_there(f, "a/last"));
    assert_int_equal(later(f, &group, "a/last", "3"), OK);
    assert_int_equal(store_group_end(&group, NULL), OK);
    assert_body(f, "a/last", "3");
}

static void a_group_replaces_nothing_that_came_meanwhile(void **state)
{
    struct fixture *f = *state;
    const struct store_meta meta = {.replaces = STR_INIT("")};
    const str body = STR("ours");
    struct store_group group = {.arena = f->arena};
    struct store_object there = {0};
    assert_int_equal(store_group_put(&f->store, &group, STR("a/x"), &body, 1, &meta, NULL), OK);
    assert_int_equal(store_put(&f->store, STR("a/y"), STR("theirs"), NULL, NULL), OK);
    assert_int_equal(store_group_put(&f->store, &group, STR("a/y"), &body, 1, &meta, NULL), OK);
    assert_int_equal(store_group_end(&group, NULL), CONFLICT);
    assert_int_equal(store_get(&f->store, f->arena, STR("a/x"), &there, NULL), OK);
    assert_true(str_equal(there.body, body));
    assert_int_equal(store_get(&f->store, f->arena, STR("a/y"), &there, NULL), OK);
    assert_true(str_equal(there.body, STR("theirs")));
}

static int end_a_group(struct fixture *f)
{
    (void)close(STDERR_FILENO);
    struct store_group group = {.arena = f->arena};
    if (later(f, &group, "d/x", "1") != OK || later(f, &group, "d/y", "2") != OK) {
        return 1;
    }
    return store_group_end(&group, NULL) == OK ? 2 : 3;
}

static void a_failed_fsync_of_a_group_ends_the_process_with_74(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(in_child(f, SYS_fsync, EIO, end_a_group), 74);
    assert_false(is_there(f, "d/x"));
}

static int end_a_large_group(struct fixture *f)
{
    (void)close(STDERR_FILENO);
    struct store_group group = {.arena = f->arena};
    for (int i = 0; i < STORE_GROUP_MAX; i++) {
        char key[32];
        (void)snprintf(key, sizeof(key), "l/%d/x", i);
        if (later(f, &group, key, "1") != OK) {
            return 1;
        }
    }
    return store_group_end(&group, NULL) == OK ? 2 : 3;
}

/* It syncs the whole file system, or each file where the kernel is too old for that. */
static void a_failed_sync_of_a_large_group_ends_the_process_with_74(void **state)
{
    struct fixture *f = *state;
    int whole = in_child(f, SYS_syncfs, EIO, end_a_large_group);
    int each = in_child(f, SYS_fsync, EIO, end_a_large_group);
    assert_true((whole == 74 && each == 2) || (whole == 2 && each == 74));
}

static int end_a_group_without_attributes(struct fixture *f)
{
    return end_a_group(f) == 2 ? 0 : 1;
}

static void a_group_keeps_metadata_where_there_are_no_attributes(void **state)
{
    struct fixture *f = *state;
    struct store_object object = {0};
    assert_int_equal(in_child(f, SYS_fsetxattr, ENOTSUP, end_a_group_without_attributes), 0);
    assert_int_equal(store_head(&f->store, f->arena, STR("d/y"), &object, NULL), OK);
    assert_true(str_equal(object.meta.content_type, STR("text/plain")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(what_a_group_ends_is_there),
        BOTH(a_group_takes_any_number),
        DIR_ONLY(what_a_group_drops_was_never_there),
        DIR_ONLY(a_group_that_fails_leaves_no_temporary_files),
        DIR_ONLY(a_group_replaces_nothing_that_came_meanwhile),
        DIR_ONLY(a_failed_fsync_of_a_group_ends_the_process_with_74),
        DIR_ONLY(a_failed_sync_of_a_large_group_ends_the_process_with_74),
        DIR_ONLY(a_group_keeps_metadata_where_there_are_no_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
