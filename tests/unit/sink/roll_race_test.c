#include "roll_fixture.h"

#include "table/write.h"

/* Others at the same table, and requests that come late. */

static int open_plain(void **state)
{
    *state = fixture_open();
    return 0;
}

static int close_any(void **state)
{
    fixture_close(*state);
    return 0;
}

static void race_once(struct roll_fixture *f)
{
    f->before_commit = NULL;
    foreign_append(f);
}

static void a_lost_race_commits_the_same_file_again(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    f->before_commit = race_once;
    i64 commits = f->commits;
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_int_equal(f->commits - commits, 2);
    assert_int_equal(table_rows(f), 2);
    struct store_list files = {0};
    struct table table = load_table(f);
    str data = write_folder(f->arena, table.metadata, "write.data.path", "data");
    table_close(&table);
    str prefix = str_slice(data, f->place.prefix.size + 1, data.size);
    must(f, store_list(&f->store, f->arena, prefix, STR(""), 100, &files, &f->error));
    assert_int_equal(files.count, 2);
    assert_books(f);
}

static void race_always(struct roll_fixture *f)
{
    foreign_append(f);
}

static void five_lost_races_leave_it_to_the_next_tick(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    f->before_commit = race_always;
    i64 commits = f->commits;
    assert_int_equal(roll_tick(f), ROLL_LATER);
    assert_int_equal(f->commits - commits, ROLL_TRIES);
    f->before_commit = NULL;
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_int_equal(table_rows(f), 2);
    assert_books(f);
}

static void patch_under_way(struct roll_fixture *f)
{
    str ignore = STR("ignore");
    f->before_commit = NULL;
    const struct ledger_sink_patch patch = {.unknown_fields = &ignore};
    must(f, ledger_patch_sink(&f->db, f->sink_id, &patch, &f->error));
    foreign_append(f);
}

static void changed_settings_void_the_plan_and_plan_again(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2,\"y\":3}\n{\"x\":4}");
    f->before_commit = patch_under_way;
    roll_out(f);
    /* decoded under the new settings, in a plan of the same number */
    assert_int_equal(look_batch(f, "b").rows_committed, 2);
    assert_int_equal(look_sink(f).last_n, 2);
    assert_int_equal(count_objects(f, "rejects/"), 0);
    assert_int_equal(table_rows(f), 3);
    assert_books(f);
}

static void widen_under_way(struct roll_fixture *f)
{
    f->before_commit = NULL;
    widen(f);
}

/* O5: what was attempted under one schema is fenced and void before it is decoded under another. */
static void a_schema_changed_between_tries_fences_the_plan(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}\n{\"x\":3000000000}");
    f->before_commit = widen_under_way;
    roll_out(f);
    assert_int_equal(look_batch(f, "b").rows_committed, 2);
    assert_int_equal(table_rows(f), 3);
    assert_int_equal(look_sink(f).rows_rejected, 0);
    assert_int_equal(count_objects(f, "rejects/"), 0);
    assert_books(f);
}

/* Another roller takes over while this one is frozen before its commit: the lease has run out. */
static void another_roller_finishes(struct roll_fixture *f)
{
    f->before_commit = NULL;
    f->now += 60 * TIME_SECOND_US;
    struct roll_env other = f->env;
    enum roll_end end = ROLL_LATER;
    other.holder = STR("other");
    must(f, roll_sink(&other, f->sink_id, STR("asked"), &end, &f->error));
    assert_int_equal(end, ROLL_ENDED);
}

static void a_roller_that_wakes_late_commits_nothing_again(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    f->before_commit = another_roller_finishes;
    roll_tick(f);
    roll_out(f);
    assert_int_equal(table_rows(f), 2);
    assert_int_equal(look_sink(f).last_n, 2);
    assert_books(f);
}

static void another_roller_goes_two_plans_on(struct roll_fixture *f)
{
    another_roller_finishes(f);
    send_batch(f, "c", "{\"x\":3}");
    f->now += TIME_SECOND_US;
    struct roll_env other = f->env;
    enum roll_end end = ROLL_LATER;
    other.holder = STR("other");
    must(f, roll_sink(&other, f->sink_id, STR("asked"), &end, &f->error));
    assert_int_equal(end, ROLL_ENDED);
}

static void iceberg_8_7_102_a_roller_two_plans_behind_commits_nothing_again(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    f->before_commit = another_roller_goes_two_plans_on;
    roll_tick(f);
    roll_out(f);
    assert_int_equal(table_rows(f), 3);
    assert_int_equal(look_sink(f).state, SINK_ACTIVE);
    assert_int_equal(look_sink(f).last_n, 3);
    assert_books(f);
}

/* C7: an old try lands after the answer was given up for lost, before the next try. */
static void a_commit_that_lands_late_counts_once(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    f->keeps_requests = true;
    f->before_commit = NULL;
    i64 commits = f->commits;
    assert_int_equal(roll_tick(f), ROLL_ENDED); /* its second try has landed */
    assert_int_equal(f->commits - commits, 2);
    /* the embedded catalog answers a snapshot it has with the present table; nothing changes */
    err late = land_kept(f);
    (void)late;
    assert_int_equal(table_rows(f), 2);
    assert_books(f);
    send_batch(f, "c", "{\"x\":3}");
    roll_out(f);
    assert_int_equal(table_rows(f), 3);
    assert_books(f);
}

static void patch_sink(struct roll_fixture *f)
{
    str ignore = STR("ignore");
    const struct ledger_sink_patch patch = {.unknown_fields = &ignore};
    must(f, ledger_patch_sink(&f->db, f->sink_id, &patch, &f->error));
}

static void keep_then_patch(struct roll_fixture *f)
{
    f->before_commit = NULL;
    f->keeps_requests = true;
    patch_sink(f);
}

/* The fence: no request of a void plan can land, and its batches are in another plan by then. */
static void a_request_of_a_void_plan_cannot_land(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2,\"y\":1}\n{\"x\":4}");
    f->before_commit = keep_then_patch;
    roll_tick(f);
    roll_out(f);
    assert_non_null(f->kept);
    assert_int_equal(table_rows(f), 3);
    assert_int_not_equal(land_kept(f), OK);
    assert_int_equal(table_rows(f), 3);
    assert_books(f);
}

/* The other side of it: the old request lands before the fence, and wins. */
static void land_now(struct roll_fixture *f)
{
    f->before_commit = NULL;
    assert_int_equal(land_kept(f), OK);
}

static void a_plan_that_lands_before_its_fence_is_finished(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2,\"y\":1}\n{\"x\":4}");
    f->before_commit = keep_then_patch;
    /* the next try of this tick fails its swap: the settings have changed */
    assert_int_equal(roll_tick(f), ROLL_LATER);
    assert_non_null(f->kept);
    f->before_commit = land_now; /* as the fence is being sent */
    roll_out(f);
    assert_int_equal(look_batch(f, "b").rows_committed, 1);
    assert_int_equal(look_batch(f, "b").rows_rejected, 1);
    assert_int_equal(table_rows(f), 2);
    assert_int_equal(look_sink(f).last_n, 2);
    assert_books(f);
}

/* A deleted sink's last request comes too late. */
static void a_request_of_a_deleted_sink_cannot_land(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    f->before_commit = keep_then_patch;
    roll_tick(f);
    assert_non_null(f->kept);
    i64 discarded = 0;
    must(f, sink_delete(&f->env, f->sink_id, &discarded, &f->error));
    assert_int_equal(discarded, 1);
    assert_int_not_equal(land_kept(f), OK);
    assert_int_equal(table_rows(f), 1);
    assert_true(table_property(f).data == NULL);
    assert_books(f);
}

/* O18: a roller that froze while decoding writes its rejects after the commit of another. */
static void rejects_written_late_are_mended(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}\n{\"x\":\"no\"}");
    str key = batch_rejects_key(f->arena, f->sink_id, STR("a"));
    struct store_object right = {0};
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    must(f, store_get(&f->store, f->arena, key, &right, &f->error));
    send_batch(f, "b", "{\"x\":\"no\"}\n{\"x\":2}");
    key = batch_rejects_key(f->arena, f->sink_id, STR("b"));
    struct store_meta stale = {.count = 1};
    stale.entries[0] = (struct store_meta_entry){STR("schema-id"), STR("99")};
    /* killed after the commit: the finish, and the look at the rejects, are the next tick's */
    f->before_commit = die_after_the_commit;
    roll_tick(f);
    door_heal(f);
    must(f, store_put(&f->store, key, STR("{\"stale\":1}\n"), &stale, &f->error));
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    must(f, store_get(&f->store, f->arena, key, &right, &f->error));
    assert_true(str_find(right.body, STR("\"row\":0,\"reason\":\"bad_number\"")) >= 0);
    assert_books(f);
}

/* A roller that stood still between its look at the plan and its try must not decode a plan that
 * ended meanwhile: its rejects would take the place of the committed ones. And it must know of
 * tries that were begun meanwhile: their rejects may be there. */
static void a_plan_is_begun_as_it_is_now(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    struct ledger_plan plan = {0};
    must(f, ledger_make_plan(&f->db, f->arena, f->sink_id, STR("0123456789abcdefghjkmnpqrs"), MIB,
                             100, STR("asked"), &plan, &f->error));
    i64 tries = 0;
    must(f, ledger_begin_try(&f->db, plan.id, &tries, &f->error));
    assert_int_equal(tries, 1);
    must(f, ledger_begin_try(&f->db, plan.id, &tries, &f->error));
    assert_int_equal(tries, 2);
    must(f, ledger_end_try(&f->db, plan.id, &f->error));
    roll_out(f);
    assert_int_equal(look_batch(f, "b").state, BATCH_COMMITTED);
    assert_int_equal(ledger_begin_try(&f->db, plan.id, &tries, NULL), CONFLICT);
    assert_books(f);
}

/* ---- a store in which a put that was given up may still land ---- */

static struct {
    str key; /* data NULL: none is kept */
    str body;
    struct store_meta meta;
} late;

static str keep_text(struct roll_fixture *f, str text)
{
    return text.data == NULL ? text : str_copy(f->arena, text);
}

static err late_put(void *self, str key, const str *pieces, size_t count,
                    const struct store_meta *meta, struct error *error)
{
    struct roll_fixture *f = ((struct door_store *)self)->context;
    if (late.key.data != NULL || str_find(key, STR("/rejects/")) < 0) {
        return door_put(self, key, pieces, count, meta, error);
    }
    late.key = keep_text(f, key);
    late.body = keep_text(f, pieces[0]);
    late.meta = *meta;
    late.meta.replaces = keep_text(f, meta->replaces);
    for (size_t i = 0; i < meta->count; i++) {
        late.meta.entries[i].name = keep_text(f, meta->entries[i].name);
        late.meta.entries[i].value = keep_text(f, meta->entries[i].value);
    }
    return error_set(error, UNKNOWN, ERROR_STORE_DOWN, "the answer was lost");
}

static const struct store_ops LATE_STORE = {
    .put = late_put, .get = door_get, .head = door_head, .remove = door_remove, .list = door_list};

/* The first try, under the column's old type, and its put that is under way since; then a roll
 * under the new one. */
static str roll_past_a_late_verdict(struct roll_fixture *f, const char *body)
{
    late.key = (str){NULL, 0};
    f->warehouse.files = (struct store){
        .ops = &LATE_STORE, .self = &f->guarded_files, .puts_in_flight_max = 1, .late = true};
    send_batch(f, "a", body);
    roll_tick(f);
    assert_non_null(late.key.data);
    widen(f);
    roll_out(f);
    str key = batch_rejects_key(f->arena, f->sink_id, STR("a"));
    assert_true(str_equal(late.key, key));
    assert_int_equal(store_put(&f->store, late.key, late.body, &late.meta, NULL), CONFLICT);
    struct store_object now = {0};
    must(f, store_get(&f->store, f->arena, key, &now, &f->error));
    assert_books(f);
    return now.body;
}

/* I15 */
static void a_late_verdict_does_not_come_back(void **state)
{
    struct roll_fixture *f = *state;
    str body = roll_past_a_late_verdict(f, "{\"x\":\"no\"}\n{\"x\":3000000000}\n{\"x\":1}");
    assert_int_equal(look_batch(f, "a").rows_rejected, 1);
    assert_true(str_find(body, STR("\"row\":0,")) >= 0);
    assert_true(str_find(body, STR("\"row\":1,")) < 0);
}

static void a_late_verdict_does_not_reject_what_was_committed(void **state)
{
    struct roll_fixture *f = *state;
    str body = roll_past_a_late_verdict(f, "{\"x\":3000000000}\n{\"x\":1}");
    assert_int_equal(look_batch(f, "a").rows_rejected, 0);
    assert_int_equal(body.size, 0);
}

/* A roller that freezes with its verdict in hand, before the put. */
static bool frozen_once;

static err frozen_put(void *self, str key, const str *pieces, size_t count,
                      const struct store_meta *meta, struct error *error)
{
    struct roll_fixture *f = ((struct door_store *)self)->context;
    if (!frozen_once && str_find(key, STR("/rejects/")) >= 0) {
        frozen_once = true;
        widen(f);
        another_roller_finishes(f);
    }
    return door_put(self, key, pieces, count, meta, error);
}

static const struct store_ops FROZEN_STORE = {.put = frozen_put,
                                              .get = door_get,
                                              .head = door_head,
                                              .remove = door_remove,
                                              .list = door_list};

static void a_roller_that_wakes_with_an_old_verdict_rejects_nothing(void **state)
{
    struct roll_fixture *f = *state;
    frozen_once = false;
    f->warehouse.files = (struct store){
        .ops = &FROZEN_STORE, .self = &f->guarded_files, .puts_in_flight_max = 1, .late = true};
    send_batch(f, "a", "{\"x\":3000000000}\n{\"x\":1}");
    roll_tick(f);
    assert_true(frozen_once);
    struct store_object now = {0};
    str key = batch_rejects_key(f->arena, f->sink_id, STR("a"));
    must(f, store_get(&f->store, f->arena, key, &now, &f->error));
    assert_int_equal(now.size, 0);
    assert_int_equal(look_batch(f, "a").rows_committed, 2);
    assert_int_equal(table_rows(f), 2);
    assert_books(f);
}

/* Where nothing refuses the put: it lands, and who made it takes it back. */
static void roll_frozen_on_a_disk(struct roll_fixture *f, const char *body, i64 rows)
{
    frozen_once = false;
    f->warehouse.files = (struct store){
        .ops = &FROZEN_STORE, .self = &f->guarded_files, .puts_in_flight_max = 1};
    send_batch(f, "a", body);
    roll_tick(f);
    assert_true(frozen_once);
    assert_int_equal(count_objects(f, "rejects/"), 0);
    assert_int_equal(look_batch(f, "a").rows_committed, rows);
    assert_int_equal(table_rows(f), rows);
    assert_books(f);
}

static void a_verdict_that_lands_after_all_is_taken_back(void **state)
{
    roll_frozen_on_a_disk(*state, "{\"x\":3000000000}\n{\"x\":1}", 2);
}

static void a_verdict_on_all_rows_that_lands_after_all_is_taken_back(void **state)
{
    roll_frozen_on_a_disk(*state, "{\"x\":3000000000}", 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_plain, close_any)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lost_race_commits_the_same_file_again),
        TEST(five_lost_races_leave_it_to_the_next_tick),
        TEST(changed_settings_void_the_plan_and_plan_again),
        TEST(a_schema_changed_between_tries_fences_the_plan),
        TEST(a_roller_that_wakes_late_commits_nothing_again),
        TEST(iceberg_8_7_102_a_roller_two_plans_behind_commits_nothing_again),
        TEST(a_commit_that_lands_late_counts_once),
        TEST(a_request_of_a_void_plan_cannot_land),
        TEST(a_plan_that_lands_before_its_fence_is_finished),
        TEST(a_request_of_a_deleted_sink_cannot_land),
        TEST(rejects_written_late_are_mended),
        TEST(a_plan_is_begun_as_it_is_now),
        TEST(a_late_verdict_does_not_come_back),
        TEST(a_roller_that_wakes_with_an_old_verdict_rejects_nothing),
        TEST(a_late_verdict_does_not_reject_what_was_committed),
        TEST(a_verdict_that_lands_after_all_is_taken_back),
        TEST(a_verdict_on_all_rows_that_lands_after_all_is_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
