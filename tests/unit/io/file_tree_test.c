#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/file.h"
#include "io/file_tree.h"
#include "io/store.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    struct arena *arena;
    char directory[64];
    struct error error;
    i64 told;
};

static int set_up(void **state)
{
    struct arena *arena = arena_create((size_t)64 * MIB);
    struct fixture *f = arena_alloc(arena, sizeof(*f));
    f->arena = arena;
    (void)snprintf(f->directory, sizeof(f->directory), "/tmp/lhbox-tree-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    *state = f;
    return 0;
}

static int remove_entry(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
    (void)status;
    (void)flag;
    (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    (void)nftw(f->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    arena_destroy(f->arena);
    return 0;
}

static str in(struct fixture *f, const char *name)
{
    return str_format(f->arena, "%s/%s", f->directory, name);
}

static void put(struct fixture *f, const char *name, const char *bytes)
{
    assert_int_equal(file_write_durable(in(f, name), str_from(bytes), 0600, &f->error), OK);
}

static void make(struct fixture *f, const char *name)
{
    assert_int_equal(file_make_directory(in(f, name), &f->error), OK);
}

static void assert_bytes(struct fixture *f, const char *name, const char *wanted)
{
    str bytes = {0};
    assert_int_equal(file_read(f->arena, in(f, name), MIB, &bytes, &f->error), OK);
    assert_true(str_equal(bytes, str_from(wanted)));
}

static err count_told(void *context, const struct file_tree_file *file, struct error *error)
{
    struct fixture *f = context;
    str bytes = {0};
    TRY(file_read(f->arena, str_format(f->arena, "%s/from/%.*s", f->directory, STR_ARG(file->path)),
                  MIB, &bytes, error));
    struct sha256 hash = crypto_sha256(bytes);
    assert_int_equal(file->bytes, bytes.size);
    assert_true(!file->has_hash || memcmp(&hash, &file->hash, sizeof(hash)) == 0);
    f->told++;
    return OK;
}

static struct file_tree tree_of(struct fixture *f, enum file_tree_how how)
{
    return (struct file_tree){.from = in(f, "from"),
                              .to = in(f, "to"),
                              .how = how,
                              .only = STR(""),
                              .except = STR(""),
                              .told = count_told,
                              .context = f};
}

static void copy(struct fixture *f, enum file_tree_how how)
{
    struct file_tree tree = tree_of(f, how);
    f->told = 0;
    assert_int_equal(file_tree_copy(&tree, &f->error), OK);
}

static void plant(struct fixture *f)
{
    make(f, "from/a/b/c");
    make(f, "from/empty");
    make(f, "from/.tmp");
    put(f, "from/top", "1");
    put(f, "from/a/b/c/deep", "deep bytes");
    put(f, "from/a/nothing", "");
    put(f, "from/a/.deep.meta", "sidecar");
    put(f, "from/.tmp/half", "half written");
    put(f, "from/.lock", "");
    assert_int_equal(symlink("/etc/passwd", in(f, "from/a/link").data), 0);
}

/* ---- what is copied ---- */

static void everything_is_copied_but_links_and_what_is_hidden(void **state)
{
    struct fixture *f = *state;
    plant(f);
    copy(f, FILE_TREE_COPY);
    assert_int_equal(f->told, 4);
    assert_bytes(f, "to/top", "1");
    assert_bytes(f, "to/a/b/c/deep", "deep bytes");
    assert_bytes(f, "to/a/nothing", "");
    assert_bytes(f, "to/a/.deep.meta", "sidecar");
    assert_true(file_exists(in(f, "to/empty")));
    assert_false(file_exists(in(f, "to/a/link")));
    assert_false(file_exists(in(f, "to/.tmp")));
    assert_false(file_exists(in(f, "to/.lock")));
    assert_false(file_is_exposed(in(f, "to/top")));
}

static void links_share_their_bytes(void **state)
{
    struct fixture *f = *state;
    struct stat from;
    struct stat to;
    plant(f);
    copy(f, FILE_TREE_LINK);
    assert_int_equal(f->told, 4);
    assert_int_equal(stat(in(f, "from/a/b/c/deep").data, &from), 0);
    assert_int_equal(stat(in(f, "to/a/b/c/deep").data, &to), 0);
    assert_int_equal(from.st_ino, to.st_ino);
}

static void a_second_pass_takes_what_is_new_and_what_has_grown(void **state)
{
    struct fixture *f = *state;
    plant(f);
    copy(f, FILE_TREE_COPY);
    put(f, "from/a/new", "new");
    put(f, "from/top", "grown");
    copy(f, FILE_TREE_COPY);
    assert_int_equal(f->told, 2);
    assert_bytes(f, "to/a/new", "new");
    assert_bytes(f, "to/top", "grown");
}

static void one_name_alone_or_all_but_one(void **state)
{
    struct fixture *f = *state;
    plant(f);
    struct file_tree tree = tree_of(f, FILE_TREE_COPY);
    tree.only = STR("deep");
    assert_int_equal(file_tree_copy(&tree, &f->error), OK);
    assert_int_equal(f->told, 1);
    put(f, "from/a/b/c/deep", "a later version of it");
    tree.only = STR("");
    tree.except = STR("deep");
    assert_int_equal(file_tree_copy(&tree, &f->error), OK);
    assert_int_equal(f->told, 4);
    assert_bytes(f, "to/a/b/c/deep", "deep bytes");
}

static void a_stores_metadata_comes_with_its_objects(void **state)
{
    struct fixture *f = *state;
    struct store from = {0};
    struct store to = {0};
    struct store_meta meta = {.content_type = STR_INIT("text/plain"), .count = 1};
    struct store_object object = {0};
    meta.entries[0] = (struct store_meta_entry){STR("rows"), STR("17")};
    assert_int_equal(store_open_dir(f->arena, in(f, "from"), &from, &f->error), OK);
    assert_int_equal(store_put(&from, STR("a/b"), STR("body"), &meta, &f->error), OK);
    copy(f, FILE_TREE_COPY);
    assert_int_equal(store_open_dir(f->arena, in(f, "to"), &to, &f->error), OK);
    assert_int_equal(store_get(&to, f->arena, STR("a/b"), &object, &f->error), OK);
    assert_true(str_equal(object.body, STR("body")));
    assert_true(str_equal(store_meta_value(&object.meta, STR("rows")), STR("17")));
    store_close(&from);
    store_close(&to);
}

static void a_root_that_is_missing_is_nothing_to_copy(void **state)
{
    struct fixture *f = *state;
    copy(f, FILE_TREE_COPY);
    assert_int_equal(f->told, 0);
}

static void a_target_that_is_a_file_is_an_error(void **state)
{
    struct fixture *f = *state;
    plant(f);
    put(f, "to", "in the way");
    struct file_tree tree = tree_of(f, FILE_TREE_COPY);
    assert_int_equal(file_tree_copy(&tree, &f->error), IO);
    assert_bytes(f, "to", "in the way");
}

/* ---- hashes and emptiness ---- */

static void a_files_hash_is_that_of_its_bytes(void **state)
{
    struct fixture *f = *state;
    struct sha256 hash = {{0}};
    i64 bytes = 0;
    put(f, "file", "abc");
    assert_int_equal(file_tree_hash(in(f, "file"), &hash, &bytes, &f->error), OK);
    struct sha256 wanted = crypto_sha256(STR("abc"));
    assert_memory_equal(hash.bytes, wanted.bytes, sizeof(hash.bytes));
    assert_int_equal(bytes, 3);
    assert_int_equal(file_tree_hash(in(f, "none"), &hash, &bytes, &f->error), IO);
}

static void a_missing_directory_is_empty_and_a_hidden_file_fills_it(void **state)
{
    struct fixture *f = *state;
    bool empty = false;
    assert_int_equal(file_tree_is_empty(in(f, "none"), &empty, &f->error), OK);
    assert_true(empty);
    make(f, "folder");
    assert_int_equal(file_tree_is_empty(in(f, "folder"), &empty, &f->error), OK);
    assert_true(empty);
    put(f, "folder/.hidden", "");
    assert_int_equal(file_tree_is_empty(in(f, "folder"), &empty, &f->error), OK);
    assert_false(empty);
    assert_int_equal(file_tree_is_empty(in(f, "folder/.hidden"), &empty, &f->error), IO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everything_is_copied_but_links_and_what_is_hidden),
        TEST(links_share_their_bytes),
        TEST(a_second_pass_takes_what_is_new_and_what_has_grown),
        TEST(one_name_alone_or_all_but_one),
        TEST(a_stores_metadata_comes_with_its_objects),
        TEST(a_root_that_is_missing_is_nothing_to_copy),
        TEST(a_target_that_is_a_file_is_an_error),
        TEST(a_files_hash_is_that_of_its_bytes),
        TEST(a_missing_directory_is_empty_and_a_hidden_file_fills_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
