/* The promises of a store, kept by the directory and by memory alike. */
#include "store_fixture.h"

#include <sys/xattr.h>

static void what_is_put_is_got(void **state)
{
    struct fixture *f = *state;
    put(f, "a/b/c.ndjson", "hello");
    assert_body(f, "a/b/c.ndjson", "hello");
    put(f, "a/b/c.ndjson", "");
    assert_body(f, "a/b/c.ndjson", "");
    put(f, "top", "level");
    assert_body(f, "top", "level");
}

static void pieces_are_joined(void **state)
{
    struct fixture *f = *state;
    str pieces[] = {STR("one"), STR(""), {NULL, 0}, STR("\n"), STR("two")};
    assert_int_equal(store_put_pieces(&f->store, STR("p"), pieces, ARRAY_COUNT(pieces), NULL, NULL),
                     OK);
    assert_body(f, "p", "one\ntwo");
}

/* More than one call writes. */
static void many_pieces_are_joined(void **state)
{
    struct fixture *f = *state;
    char text[1000];
    str pieces[1000];
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) {
        text[i] = (char)('a' + i % 23);
        pieces[i] = (str){text + i, i % 7 == 0 ? 0 : 1};
    }
    assert_int_equal(store_put_pieces(&f->store, STR("p"), pieces, ARRAY_COUNT(pieces), NULL, NULL),
                     OK);
    char wanted[ARRAY_COUNT(pieces) + 1];
    size_t size = 0;
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) {
        memcpy(wanted + size, pieces[i].data, pieces[i].size);
        size += pieces[i].size;
    }
    wanted[size] = 0;
    assert_body(f, "p", wanted);
}

static void what_is_not_there_is_not_found(void **state)
{
    struct fixture *f = *state;
    struct store_object object = {0};
    struct error error = {0};
    put(f, "d/x", "1");
    assert_int_equal(store_get(&f->store, f->arena, STR("none"), &object, &error), NOT_FOUND);
    assert_int_equal(store_get(&f->store, f->arena, STR("e/none"), &object, NULL), NOT_FOUND);
    assert_int_equal(store_head(&f->store, f->arena, STR("d/x/y"), &object, NULL), NOT_FOUND);
    assert_int_equal(store_get(&f->store, f->arena, STR("d"), &object, NULL), NOT_FOUND);
    assert_int_equal(error.code, ERROR_NOT_FOUND);
}

static void removing_is_idempotent(void **state)
{
    struct fixture *f = *state;
    struct store_object object = {0};
    put(f, "d/x", "1");
    assert_int_equal(store_remove(&f->store, STR("d/x"), NULL), OK);
    assert_int_equal(store_remove(&f->store, STR("d/x"), NULL), OK);
    assert_int_equal(store_remove(&f->store, STR("none/x"), NULL), OK);
    assert_int_equal(store_get(&f->store, f->arena, STR("d/x"), &object, NULL), NOT_FOUND);
}

static void keys_that_could_escape_are_refused(void **state)
{
    struct fixture *f = *state;
    static const str keys[] = {
        STR_INIT(""),   STR_INIT("/a"),   STR_INIT("a/"),   STR_INIT("a//b"),  STR_INIT("."),
        STR_INIT(".."), STR_INIT("a/.."), STR_INIT("../a"), STR_INIT("a/./b"), STR_INIT("a\0b"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        assert_false(store_key_valid(keys[i]));
        assert_int_equal(store_put(&f->store, keys[i], STR("x"), NULL, NULL), INVALID);
        assert_int_equal(store_remove(&f->store, keys[i], NULL), INVALID);
    }
    char long_key[STORE_KEY_MAX + 2];
    memset(long_key, 'a', sizeof(long_key));
    assert_false(store_key_valid((str){long_key, STORE_KEY_MAX + 1}));
    assert_true(store_key_valid((str){long_key, STORE_KEY_MAX}));
    assert_true(store_key_valid(STR("a/..b/...")));
}

static void metadata_comes_back_as_it_was_given(void **state)
{
    struct fixture *f = *state;
    char batches[1800];
    memset(batches, 'b', sizeof(batches));
    struct store_meta meta = {.content_type = STR("application/x-ndjson"), .count = 3};
    meta.entries[0] = (struct store_meta_entry){STR("sink"), STR("snk_0123456789ab")};
    meta.entries[1] = (struct store_meta_entry){STR("batches"), {batches, sizeof(batches)}};
    meta.entries[2] = (struct store_meta_entry){STR("rows"), STR("")};
    assert_int_equal(store_put(&f->store, STR("m/x"), STR("body"), &meta, NULL), OK);
    struct store_object object = {0};
    assert_int_equal(store_head(&f->store, f->arena, STR("m/x"), &object, NULL), OK);
    assert_int_equal(object.size, 4);
    assert_null(object.body.data);
    assert_int_equal(object.meta.count, 3);
    assert_true(str_equal(object.meta.content_type, STR("application/x-ndjson")));
    assert_true(str_equal(store_meta_value(&object.meta, STR("Sink")), STR("snk_0123456789ab")));
    assert_true(str_equal(store_meta_value(&object.meta, STR("batches")), meta.entries[1].value));
    assert_int_equal(store_meta_value(&object.meta, STR("rows")).size, 0);
    assert_null(store_meta_value(&object.meta, STR("other")).data);
}

static err replace(struct fixture *f, const char *key, const char *body, str version)
{
    const struct store_meta meta = {.replaces = version};
    return store_put(&f->store, str_from(key), str_from(body), &meta, NULL);
}

static str version_of(struct fixture *f, const char *key)
{
    struct store_object object = {0};
    assert_int_equal(store_head(&f->store, f->arena, str_from(key), &object, NULL), OK);
    assert_true(object.version.size > 0);
    return object.version;
}

/* A put that arrives after another one finds its place taken. */
static void a_put_may_name_the_version_that_it_replaces(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(replace(f, "a/b", "first", STR("")), OK);
    assert_int_equal(replace(f, "a/b", "late", STR("")), CONFLICT);
    str first = version_of(f, "a/b");
    assert_int_equal(replace(f, "a/b", "second", first), OK);
    assert_int_equal(replace(f, "a/b", "late", first), CONFLICT);
    assert_body(f, "a/b", "second");
    assert_int_equal(replace(f, "a/c", "late", first), CONFLICT);
    struct store_object object = {0};
    assert_int_equal(store_head(&f->store, f->arena, STR("a/c"), &object, NULL), NOT_FOUND);
    put(f, "a/b", "whatever");
    assert_body(f, "a/b", "whatever");
    struct store_object got = {0};
    assert_int_equal(store_get(&f->store, f->arena, STR("a/b"), &got, NULL), OK);
    assert_true(str_equal(got.version, version_of(f, "a/b")));
}

static void odd_metadata_is_refused(void **state)
{
    struct fixture *f = *state;
    size_t room = store_meta_bytes_max(&f->store);
    char *large = arena_alloc(f->arena, room);
    assert_non_null(large);
    memset(large, 'x', room);
    struct store_meta meta = {.count = 1};
    meta.entries[0] = (struct store_meta_entry){STR("a"), STR("line\nline")};
    assert_int_equal(store_put(&f->store, STR("m"), STR("x"), &meta, NULL), INVALID);
    meta.entries[0] = (struct store_meta_entry){STR("a b"), STR("x")};
    assert_int_equal(store_put(&f->store, STR("m"), STR("x"), &meta, NULL), INVALID);
    meta.entries[0] = (struct store_meta_entry){STR("a"), {large, room}};
    assert_int_equal(store_put(&f->store, STR("m"), STR("x"), &meta, NULL), INVALID);
}

/* As much as the store takes: in a directory more than attributes hold. */
static void all_the_metadata_that_is_taken_comes_back(void **state)
{
    struct fixture *f = *state;
    size_t room = store_meta_bytes_max(&f->store) - 1;
    char *large = arena_alloc(f->arena, room);
    assert_non_null(large);
    memset(large, 'x', room);
    struct store_meta meta = {.content_type = STR("text/plain"), .count = 1};
    meta.entries[0] = (struct store_meta_entry){STR("a"), {large, room}};
    struct store_object object = {0};
    assert_int_equal(store_put(&f->store, STR("m"), STR("x"), &meta, NULL), OK);
    assert_int_equal(store_get(&f->store, f->arena, STR("m"), &object, NULL), OK);
    assert_true(str_equal(store_meta_value(&object.meta, STR("a")), (str){large, room}));
    assert_true(str_equal(object.meta.content_type, STR("text/plain")));
    assert_int_equal(store_remove(&f->store, STR("m"), NULL), OK);
    assert_int_equal(store_head(&f->store, f->arena, STR("m"), &object, NULL), NOT_FOUND);
}

static void assert_list(struct fixture *f, const char *prefix, const char *after, size_t limit,
                        const char *wanted, bool more)
{
    struct store_list list = {0};
    assert_int_equal(
        store_list(&f->store, f->arena, str_from(prefix), str_from(after), limit, &list, NULL), OK);
    buf text = buf_create(f->arena, 256, 4096);
    for (size_t i = 0; i < list.count; i++) {
        buf_append(&text, i > 0 ? STR(" ") : STR(""));
        buf_append(&text, list.objects[i].key);
    }
    buf_append_byte(&text, '\0');
    assert_string_equal(text.data, wanted);
    assert_int_equal(list.more, more);
}

static void keys_are_listed_in_byte_order_of_the_whole(void **state)
{
    struct fixture *f = *state;
    /* `.` and `-` sort before `/`, `0` after it. */
    static const char *const keys[] = {"a/x", "a.b", "a0", "a/b/c", "a-", "b", "a/b.x", "aa/q"};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        put(f, keys[i], "12345");
    }
    assert_list(f, "", "", 100, "a- a.b a/b.x a/b/c a/x a0 aa/q b", false);
    assert_list(f, "a/", "", 100, "a/b.x a/b/c a/x", false);
    assert_list(f, "a/b", "", 100, "a/b.x a/b/c", false);
    assert_list(f, "a", "a/b.x", 2, "a/b/c a/x", true);
    assert_list(f, "a", "a/b/", 1, "a/b/c", true);
    assert_list(f, "a", "a/x", 3, "a0 aa/q", false);
    assert_list(f, "zz/y", "", 3, "", false);
    assert_list(f, "", "b", 3, "", false);
    struct store_list list = {0};
    assert_int_equal(store_list(&f->store, f->arena, STR("b"), STR(""), 9, &list, NULL), OK);
    assert_int_equal(list.objects[0].size, 5);
    assert_true(list.objects[0].modified_at > TIME_DAY_US * 365 * 50);
}

static void pages_of_a_list_join_to_the_whole(void **state)
{
    struct fixture *f = *state;
    char key[64];
    for (int i = 0; i < 57; i++) {
        (void)snprintf(key, sizeof(key), "s/%d/%d.x", i % 5, i);
        put(f, key, "x");
    }
    str after = STR("");
    size_t seen = 0;
    struct store_list list = {.more = true};
    while (list.more) {
        assert_int_equal(store_list(&f->store, f->arena, STR("s/"), after, 10, &list, NULL), OK);
        for (size_t i = 0; i < list.count; i++) {
            assert_true(str_compare(list.objects[i].key, after) > 0);
            after = list.objects[i].key;
            seen++;
        }
    }
    assert_int_equal(seen, 57);
}

static void an_object_larger_than_the_arena_is_a_limit(void **state)
{
    struct fixture *f = *state;
    char *large = arena_alloc(f->arena, (size_t)512 * KIB);
    memset(large, 'x', (size_t)512 * KIB);
    str body = {large, (size_t)512 * KIB};
    assert_int_equal(store_put(&f->store, STR("large"), body, NULL, NULL), OK);
    AUTO_ARENA struct arena *small = arena_create((size_t)128 * KIB);
    struct store_object object = {0};
    assert_int_equal(store_get(&f->store, small, STR("large"), &object, NULL), LIMIT);
}

static void a_full_memory_store_says_so(void **state)
{
    struct fixture *f = *state;
    struct error error = {0};
    char *large = arena_alloc(f->arena, (size_t)700 * KIB);
    str body = {large, (size_t)700 * KIB};
    assert_int_equal(store_put(&f->store, STR("one"), body, NULL, NULL), OK);
    assert_int_equal(store_put(&f->store, STR("two"), body, NULL, &error), IO);
    assert_int_equal(error.code, ERROR_DISK_LOW);
    assert_int_equal(store_remove(&f->store, STR("one"), NULL), OK);
    assert_int_equal(store_put(&f->store, STR("two"), body, NULL, NULL), OK);
}

/* ---- the directory alone ---- */

static void links_are_not_followed(void **state)
{
    struct fixture *f = *state;
    struct store_object object = {0};
    put(f, "real/x", "1");
    assert_int_equal(symlink("/etc", in(f, "out").data), 0);
    assert_int_equal(symlink("/etc/passwd", in(f, "real/link").data), 0);
    assert_int_equal(store_get(&f->store, f->arena, STR("out/passwd"), &object, NULL), DENIED);
    assert_int_equal(store_get(&f->store, f->arena, STR("real/link"), &object, NULL), DENIED);
    assert_int_equal(store_put(&f->store, STR("out/mine"), STR("x"), NULL, NULL), DENIED);
    assert_int_equal(store_put(&f->store, STR("out/a/mine"), STR("x"), NULL, NULL), DENIED);
    assert_list(f, "", "", 100, "real/x", false);
    assert_list(f, "out/", "", 100, "", false);
    /* A link in the place of the object itself is replaced, not written through. */
    put(f, "real/link", "mine");
    assert_body(f, "real/link", "mine");
}

static void names_of_the_store_itself_are_refused(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(store_put(&f->store, STR(".tmp/x"), STR("x"), NULL, NULL), INVALID);
    assert_int_equal(store_put(&f->store, STR("a/.x.meta"), STR("x"), NULL, NULL), INVALID);
    char name[300];
    memset(name, 'n', sizeof(name));
    assert_int_equal(store_put(&f->store, (str){name, 256}, STR("x"), NULL, NULL), INVALID);
}

static void what_a_dead_process_left_is_cleaned_at_open(void **state)
{
    struct fixture *f = *state;
    FILE *file = fopen(str_format(f->arena, "%s/1-0123456789abcdef", temporary_directory(f)).data,
                       "w");
    assert_non_null(file);
    (void)fclose(file);
    struct store second = {0};
    assert_int_equal(temporary_files(f), 1);
    assert_int_equal(store_open_dir(f->arena, str_from(f->directory), &second, NULL), OK);
    assert_int_equal(temporary_files(f), 0);
    store_close(&second);
}

static void metadata_of_a_sidecar_is_read(void **state)
{
    struct fixture *f = *state;
    put(f, "d/x", "body");
    FILE *file = fopen(in(f, "d/.x.meta").data, "w");
    assert_non_null(file);
    assert_true(fputs("=application/x-ndjson\nsink=snk_1\nrows=2\n", file) >= 0);
    (void)fclose(file);
    struct store_object object = {0};
    assert_int_equal(store_head(&f->store, f->arena, STR("d/x"), &object, NULL), OK);
    assert_true(str_equal(object.meta.content_type, STR("application/x-ndjson")));
    assert_true(str_equal(store_meta_value(&object.meta, STR("rows")), STR("2")));
    assert_list(f, "d/", "", 9, "d/x", false);
    assert_int_equal(store_remove(&f->store, STR("d/x"), NULL), OK);
    assert_int_not_equal(access(in(f, "d/.x.meta").data, F_OK), 0);
}

static void metadata_of_an_older_object_is_read(void **state)
{
    struct fixture *f = *state;
    put(f, "d/x", "body");
    str path = in(f, "d/x");
    assert_int_equal(setxattr(path.data, "user.sink", "snk_1", 5, 0), 0);
    assert_int_equal(setxattr(path.data, "user.mime_type", "text/plain", 10, 0), 0);
    struct store_object object = {0};
    assert_int_equal(store_head(&f->store, f->arena, STR("d/x"), &object, NULL), OK);
    assert_true(str_equal(object.meta.content_type, STR("text/plain")));
    assert_true(str_equal(store_meta_value(&object.meta, STR("sink")), STR("snk_1")));
}

/* The limit on a file's size stands for a full disk: the write fails in its middle. */
static void a_write_that_fails_leaves_nothing_and_harms_nothing(void **state)
{
    struct fixture *f = *state;
    put(f, "d/x", "before");
    char *large = arena_alloc(f->arena, (size_t)256 * KIB);
    str body = {large, (size_t)256 * KIB};
    struct rlimit old;
    struct error error = {0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    struct rlimit low = {.rlim_cur = (rlim_t)100 * KIB, .rlim_max = old.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    err result = store_put(&f->store, STR("d/x"), body, NULL, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(result, IO);
    assert_int_equal(error.code, ERROR_STORE_DOWN);
    assert_int_equal(temporary_files(f), 0);
    assert_body(f, "d/x", "before");
    assert_int_equal(store_put(&f->store, STR("d/x"), body, NULL, NULL), OK);
}

static int put_get_and_escape(struct fixture *f)
{
    struct store_object object = {0};
    if (store_put(&f->store, STR("d/e/x"), STR("1"), NULL, NULL) != OK ||
        store_get(&f->store, f->arena, STR("d/e/x"), &object, NULL) != OK) {
        return 1;
    }
    if (store_get(&f->store, f->arena, STR("out/passwd"), &object, NULL) != DENIED ||
        store_get(&f->store, f->arena, STR("link"), &object, NULL) != DENIED ||
        store_get(&f->store, f->arena, STR("d/none"), &object, NULL) != NOT_FOUND) {
        return 2;
    }
    return 0;
}

static void names_stay_beneath_without_openat2_too(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(symlink("/etc", in(f, "out").data), 0);
    assert_int_equal(symlink("/etc/passwd", in(f, "link").data), 0);
    assert_int_equal(in_child(f, SYS_openat2, ENOSYS, put_get_and_escape), 0);
}

static int put_with_metadata(struct fixture *f)
{
    struct store_meta meta = {.content_type = STR("application/x-ndjson"), .count = 1};
    meta.entries[0] = (struct store_meta_entry){STR("sink"), STR("snk_1")};
    return store_put(&f->store, STR("d/x"), STR("body"), &meta, NULL) == OK ? 0 : 1;
}

static void metadata_survives_where_there_are_no_attributes(void **state)
{
    struct fixture *f = *state;
    struct store_object object = {0};
    assert_int_equal(in_child(f, SYS_fsetxattr, ENOTSUP, put_with_metadata), 0);
    assert_int_equal(access(in(f, "d/.x.meta").data, F_OK), 0);
    assert_int_equal(store_head(&f->store, f->arena, STR("d/x"), &object, NULL), OK);
    assert_true(str_equal(object.meta.content_type, STR("application/x-ndjson")));
    assert_true(str_equal(store_meta_value(&object.meta, STR("sink")), STR("snk_1")));
}

static int put_and_go_on(struct fixture *f)
{
    (void)close(STDERR_FILENO);
    err ignored = store_put(&f->store, STR("d/x"), STR("body"), NULL, NULL);
    return ignored == OK ? 1 : 2;
}

static void a_failed_fsync_ends_the_process_with_74(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(in_child(f, SYS_fsync, EIO, put_and_go_on), 74);
}

/* ---- what is durable later ---- */

static err put_later(struct fixture *f, str key)
{
    const struct store_meta meta = {.durability = STORE_LATER};
    return store_put(&f->store, key, STR("body"), &meta, NULL);
}

static void what_is_durable_later_is_there_at_once(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(put_later(f, STR("d/x")), OK);
    assert_body(f, "d/x", "body");
    assert_list(f, "d/", "", 9, "d/x", false);
    assert_int_equal(store_sync(&f->store, NULL), OK);
    assert_body(f, "d/x", "body");
}

static int put_two_later(struct fixture *f)
{
    return put_later(f, STR("d/x")) == OK && put_later(f, STR("d/y")) == OK ? 0 : 1;
}

/* Its directory is durable from the first put on, whichever kind that was. */
static void what_is_durable_later_is_not_synced(void **state)
{
    struct fixture *f = *state;
    put(f, "d/before", "1");
    assert_int_equal(in_child(f, SYS_fsync, EIO, put_two_later), 0);
    assert_body(f, "d/y", "body");
}

static int sync_store(struct fixture *f)
{
    (void)close(STDERR_FILENO);
    return store_sync(&f->store, NULL) == OK ? 1 : 2;
}

static void a_sync_writes_out_the_file_system_and_its_failure_ends_the_process(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(put_later(f, STR("d/x")), OK);
    assert_int_equal(in_child(f, SYS_syncfs, EIO, sync_store), 74);
}

static int put_on_a_full_disk(struct fixture *f)
{
    struct error error = {0};
    err result = store_put(&f->store, STR("d/x"), STR("body"), NULL, &error);
    return result == IO && error.code == ERROR_DISK_LOW ? 0 : 1;
}

static void a_full_disk_is_told_apart_and_passes(void **state)
{
    struct fixture *f = *state;
    struct store_object object = {0};
    assert_int_equal(in_child(f, SYS_writev, ENOSPC, put_on_a_full_disk), 0);
    assert_int_equal(temporary_files(f), 0);
    assert_int_equal(store_get(&f->store, f->arena, STR("d/x"), &object, NULL), NOT_FOUND);
    put(f, "d/x", "body");
}

static void *put_many(void *argument)
{
    struct fixture *f = argument;
    char key[64];
    for (int i = 0; i < 40; i++) {
        (void)snprintf(key, sizeof(key), "t/%d/%d/%lx-%d", i % 7, i % 3,
                       (unsigned long)pthread_self(), i);
        if (store_put(&f->store, str_from(key), STR("x"), NULL, NULL) != OK) {
            return f;
        }
    }
    return NULL;
}

static void threads_may_make_the_same_directories(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, f), 0);
    }
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    struct store_list list = {0};
    assert_int_equal(store_list(&f->store, f->arena, STR("t/"), STR(""), 1000, &list, NULL), OK);
    assert_int_equal(list.count, 160);
}

static err short_get(void *self, struct arena *arena, str key, struct store_object *out_object,
                     struct error *error)
{
    struct fixture *f = self;
    TRY(store_get(&f->store, arena, key, out_object, error));
    out_object->body.size--;
    return OK;
}

static void what_is_read_short_is_no_answer(void **state)
{
    struct fixture *f = *state;
    static const struct store_ops ops = {.get = short_get};
    const struct store cut = {.ops = &ops, .self = f};
    struct store_object object = {0};
    assert_int_equal(store_put(&f->store, STR("a"), STR("bytes"), NULL, NULL), OK);
    assert_int_equal(store_get(&cut, f->arena, STR("a"), &object, NULL), IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(what_is_put_is_got),
        BOTH(what_is_read_short_is_no_answer),
        BOTH(pieces_are_joined),
        BOTH(many_pieces_are_joined),
        BOTH(what_is_not_there_is_not_found),
        BOTH(removing_is_idempotent),
        BOTH(keys_that_could_escape_are_refused),
        BOTH(metadata_comes_back_as_it_was_given),
        BOTH(a_put_may_name_the_version_that_it_replaces),
        BOTH(odd_metadata_is_refused),
        BOTH(all_the_metadata_that_is_taken_comes_back),
        BOTH(keys_are_listed_in_byte_order_of_the_whole),
        BOTH(pages_of_a_list_join_to_the_whole),
        BOTH(an_object_larger_than_the_arena_is_a_limit),
        {"mem: a_full_memory_store_says_so", a_full_memory_store_says_so, set_up_mem, tear_down,
         NULL},
        BOTH(what_is_durable_later_is_there_at_once),
        DIR_ONLY(what_is_durable_later_is_not_synced),
        DIR_ONLY(a_sync_writes_out_the_file_system_and_its_failure_ends_the_process),
        DIR_ONLY(links_are_not_followed),
        DIR_ONLY(names_of_the_store_itself_are_refused),
        DIR_ONLY(what_a_dead_process_left_is_cleaned_at_open),
        DIR_ONLY(metadata_of_a_sidecar_is_read),
        DIR_ONLY(metadata_of_an_older_object_is_read),
        DIR_ONLY(a_write_that_fails_leaves_nothing_and_harms_nothing),
        DIR_ONLY(names_stay_beneath_without_openat2_too),
        DIR_ONLY(metadata_survives_where_there_are_no_attributes),
        DIR_ONLY(a_failed_fsync_ends_the_process_with_74),
        DIR_ONLY(a_full_disk_is_told_apart_and_passes),
        DIR_ONLY(threads_may_make_the_same_directories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
