#include "roll_fixture.h"

/* Manifests merged between rolls: to the protocol somebody else's compaction. */

static void let_three_be_enough(struct roll_fixture *f)
{
    foreign_commit(f, "{'requirements':[],'updates':[{'action':'set-properties','updates':"
                      "{'commit.manifest.min-count-to-merge':'3'}}]}");
}

static int open_plain(void **state)
{
    struct roll_fixture *f = fixture_open();
    let_three_be_enough(f);
    *state = f;
    return 0;
}

static int close_any(void **state)
{
    fixture_close(*state);
    return 0;
}

/* ---- looking ---- */

static i64 head_of(struct roll_fixture *f)
{
    struct table table = load_table(f);
    i64 head = 0;
    assert_true(metadata_main(table.metadata, &head));
    table_close(&table);
    return head;
}

static size_t manifests_of(struct roll_fixture *f)
{
    struct table table = load_table(f);
    i64 head = 0;
    assert_true(metadata_main(table.metadata, &head));
    const json_t *snapshot = metadata_snapshot(table.metadata, head);
    str path = str_from(json_string_value(json_object_get(snapshot, "manifest-list")));
    str bytes = {NULL, 0};
    struct manifest_list list = {0};
    must(f, location_get(&f->sound_places, f->arena, path, &bytes, &f->error));
    must(f, manifest_list_read(f->arena, bytes, &list, &f->error));
    table_close(&table);
    return list.count;
}

/* ---- acting ---- */

static void roll_one(struct roll_fixture *f)
{
    char name[24];
    (void)snprintf(name, sizeof(name), "b%llu", (unsigned long long)f->lots);
    send_batch(f, name, "{\"x\":1}");
    roll_out(f);
}

static void roll_three(struct roll_fixture *f)
{
    for (int i = 0; i < 3; i++) {
        roll_one(f);
    }
}

static void merge(struct roll_fixture *f)
{
    must(f, roll_merge(&f->env, f->sink_id, &f->error));
}

/* The table is what it was, and rolls go on. */
static void expect_nothing_merged(struct roll_fixture *f, i64 head)
{
    assert_int_equal(head_of(f), head);
    roll_one(f);
    assert_books(f);
}

/* ---- what it does ---- */

static void the_sinks_manifests_become_one_and_its_rolls_go_on(void **state)
{
    struct roll_fixture *f = *state;
    roll_one(f);
    roll_one(f);
    i64 head = head_of(f);
    merge(f);
    expect_nothing_merged(f, head);
    str property = table_property(f);
    merge(f);
    assert_int_equal(manifests_of(f), 1);
    assert_int_equal(table_rows(f), 3);
    assert_true(str_equal(table_property(f), property));
    must(f, ledger_take_lease(&f->db, f->sink_id, STR("another"), &f->error)); /* given back */
    must(f, ledger_release_lease(&f->db, f->sink_id, STR("another"), &f->error));
    roll_one(f);
    assert_int_equal(manifests_of(f), 2);
    assert_int_equal(table_rows(f), 4);
    assert_books(f);
}

static void race_once(struct roll_fixture *f)
{
    f->before_commit = NULL;
    foreign_append(f);
}

static void a_commit_in_between_drops_the_merge(void **state)
{
    struct roll_fixture *f = *state;
    roll_three(f);
    f->before_commit = race_once;
    merge(f);
    assert_int_equal(manifests_of(f), 3);
    merge(f);
    assert_int_equal(manifests_of(f), 1);
    roll_one(f);
    assert_int_equal(table_rows(f), 4);
    assert_books(f);
}

/* The request of a merge that nobody heard of comes late: after a roll it is refused; before, the
 * roll is. */
static void a_late_merge_changes_nothing(void **state)
{
    struct roll_fixture *f = *state;
    roll_three(f);
    f->keeps_requests = true;
    merge(f);
    roll_one(f);
    assert_int_equal(land_kept(f), CONFLICT);
    assert_int_equal(table_rows(f), 4);
    f->keeps_requests = true;
    merge(f);
    assert_int_equal(land_kept(f), OK);
    assert_int_equal(manifests_of(f), 1);
    roll_one(f);
    assert_int_equal(table_rows(f), 5);
    assert_books(f);
}

static void merge_meanwhile(struct roll_fixture *f)
{
    struct table table = load_table(f);
    struct table after = {0};
    json_t *request = NULL;
    f->before_commit = NULL;
    must(f, commit_merge(f->arena, &f->sound_places, &table, &f->seam, &request, &f->error));
    must(f, catalog_commit(&f->catalog, f->arena, fixture_table(), request, &after, &f->error));
    json_decref(request);
    table_close(&after);
    table_close(&table);
}

/* Another roller, with a lease that has run out, merges under a plan that was attempted. */
static void a_roll_over_which_a_merge_came_commits_its_file_again(void **state)
{
    struct roll_fixture *f = *state;
    roll_three(f);
    send_batch(f, "late", "{\"x\":9}");
    f->before_commit = merge_meanwhile;
    i64 commits = f->commits;
    roll_out(f);
    assert_int_equal(f->commits - commits, 2);
    assert_int_equal(manifests_of(f), 2);
    assert_int_equal(table_rows(f), 4);
    assert_books(f);
}

/* ---- when it does nothing ---- */

static void another_rollers_lease_is_left_alone(void **state)
{
    struct roll_fixture *f = *state;
    roll_three(f);
    i64 head = head_of(f);
    must(f, ledger_take_lease(&f->db, f->sink_id, STR("another"), &f->error));
    merge(f);
    assert_int_equal(head_of(f), head);
}

static void a_table_that_is_not_where_the_ledger_left_it_is_left_alone(void **state)
{
    struct roll_fixture *f = *state;
    roll_three(f);
    i64 head = head_of(f);
    foreign_set_property(f, STR("mine:now:1:x"));
    merge(f);
    assert_int_equal(head_of(f), head);
}

static void a_sink_that_is_not_at_rest_is_left_alone(void **state)
{
    struct roll_fixture *f = *state;
    roll_three(f);
    i64 head = head_of(f);
    send_batch(f, "planned", "{\"x\":9}");
    struct ledger_plan plan = {0};
    must(f, ledger_make_plan(&f->db, f->arena, f->sink_id, STR("0123456789abcdefghjkmnpqrs"),
                             64 * (i64)MIB, 100, STR("time"), &plan, &f->error));
    merge(f);
    assert_int_equal(head_of(f), head);
    roll_out(f);
    head = head_of(f);
    must(f, ledger_disable_sink(&f->db, f->sink_id, STR("table_gone"), STR(""), &f->error));
    merge(f);
    assert_int_equal(head_of(f), head);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_plain, close_any)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_sinks_manifests_become_one_and_its_rolls_go_on),
        TEST(a_commit_in_between_drops_the_merge),
        TEST(a_late_merge_changes_nothing),
        TEST(a_roll_over_which_a_merge_came_commits_its_file_again),
        TEST(another_rollers_lease_is_left_alone),
        TEST(a_table_that_is_not_where_the_ledger_left_it_is_left_alone),
        TEST(a_sink_that_is_not_at_rest_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
