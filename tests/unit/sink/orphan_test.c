#include "restore_fixture.h"

#include "edges.h"

/* The decision table of exactly-once section 7, line by line, and its crash points. */

static int set_up(void **state)
{
    *state = aged_fixture();
    return 0;
}

static int tear_down(void **state)
{
    fixture_close(*state);
    return 0;
}

#define HOURS(n) ((n) * (i64)3600 * TIME_SECOND_US)

static struct orphan_report collect(struct roll_fixture *f)
{
    struct orphan_report report = {0};
    must(f, orphan_collect(&f->env, f->sink_id, &report, &f->error));
    return report;
}

static void the_uid_of_a_key_is_read_strictly(void **state)
{
    struct roll_fixture *f = *state;
    struct uid uid = id_uid_make(&f->seam);
    struct uid read;
    str sink = STR("snk_000000000001");
    str key = batch_object_key(f->arena, sink, STR("a"), &uid);
    assert_true(orphan_parse_key(key, sink, &read));
    assert_memory_equal(read.text, uid.text, ID_UID_SIZE);
    assert_false(orphan_parse_key(key, STR("snk_00000000000"), &read));
    assert_false(orphan_parse_key(STR("_sink/snk_000000000001/x.ndjson"), sink, &read));
    str rejects = batch_rejects_key(f->arena, sink, STR("a"));
    assert_false(orphan_parse_key(rejects, sink, &read));
    str intake = batch_intake_rejects_key(f->arena, sink, STR("a"), &uid);
    assert_false(orphan_parse_key(intake, sink, &read));
}

static void a_young_orphan_is_left(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept item = store_batch(f, "a", "{\"x\":1}");
    collect(f);
    age(f, HOURS(23));
    assert_int_equal(collect(f).adopted, 0);
    assert_false(has_batch(f, "a"));
    assert_true(has_object(f, item.object_key));
}

static void an_orphan_of_a_day_is_adopted_and_rolled(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "first", "{\"x\":1}");
    store_batch(f, "a", "{\"x\":2}\n{\"x\":3}");
    collect(f);
    age(f, HOURS(25));
    struct orphan_report report = collect(f);
    assert_int_equal(report.adopted, 1);
    struct ledger_batch batch = look_batch(f, "a");
    assert_int_equal(batch.state, BATCH_PENDING);
    assert_int_equal(batch.rows, 2);
    assert_true(batch.seq > look_batch(f, "first").seq);
    assert_true(str_find(batch.answer, STR("\"accepted\":2,\"rejected\":0")) > 0);
    roll_out(f);
    assert_int_equal(table_rows(f), 3);
    assert_books(f);
    assert_int_equal(collect(f).adopted, 0);
}

static void a_resend_of_an_adopted_batch_is_a_duplicate(void **state)
{
    struct roll_fixture *f = *state;
    store_batch(f, "a", "{\"x\":2}");
    collect(f);
    age(f, HOURS(25));
    collect(f);
    struct ledger_accept again = describe_batch(f, "a", STR("{\"x\":2}"));
    accept_item(f, &again);
    assert_int_equal(again.outcome, ACCEPT_DUPLICATE);
    assert_true(str_find(again.first_answer, STR("\"batch_id\":\"a\"")) > 0);
}

static void a_step_of_the_wall_clock_makes_nothing_old(void **state)
{
    struct roll_fixture *f = *state;
    store_batch(f, "a", "{\"x\":1}");
    collect(f);
    f->now += HOURS(48);
    assert_int_equal(collect(f).adopted, 0);
    assert_false(has_batch(f, "a"));
    must(f, ledger_add_running(&f->db, HOURS(25), &f->error));
    assert_int_equal(collect(f).adopted, 1);
}

static void an_orphan_whose_id_has_a_row_is_voided_before_it_is_deleted(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept loser = store_batch(f, "a", "{\"x\":1}");
    send_object(f, "a", "{\"x\":1}");
    collect(f);
    age(f, HOURS(25));
    /* K1: the process dies between the void row and the delete. */
    struct ledger_orphan_verdict verdict = {0};
    must(f,
         ledger_judge_orphan(&f->db, f->arena, f->sink_id, loser.object_key, &verdict, &f->error));
    assert_true(verdict.voided);
    assert_true(is_void(f, &loser.uid));
    assert_true(has_object(f, loser.object_key));
    collect(f);
    assert_false(has_object(f, loser.object_key));
    /* I6: nobody can insert it any more. */
    accept_item(f, &loser);
    assert_int_equal(loser.outcome, ACCEPT_REFUSED);
}

static void what_the_chain_names_is_voided_however_old_its_row(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept item = send_object(f, "a", "{\"x\":1}");
    struct store_object object = {0};
    must(f, store_get(&f->store, f->arena, item.object_key, &object, &f->error));
    roll_out(f);
    i64 deleted = 0;
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    /* Its row is pruned, and the object is there again. */
    tell_sql(f, "DELETE FROM batch");
    must(f, store_put(&f->store, item.object_key, object.body, &object.meta, &f->error));
    collect(f);
    age(f, HOURS(25));
    assert_int_equal(collect(f).voided, 1);
    assert_true(is_void(f, &item.uid));
    assert_false(has_object(f, item.object_key));
    assert_int_equal(table_rows(f), 1);
}

static void other_bytes_under_one_id_are_quarantined(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept first = store_batch(f, "a", "{\"x\":1}");
    collect(f);
    age(f, HOURS(25));
    /* Of any age. */
    struct ledger_accept second = store_batch(f, "a", "{\"x\":2}");
    collect(f);
    assert_false(has_batch(f, "a"));
    age(f, HOURS(25));
    struct orphan_report report = collect(f);
    assert_int_equal(report.quarantined, 2);
    struct ledger_accept third = describe_batch(f, "a", STR("{\"x\":1}"));
    accept_item(f, &third);
    assert_int_equal(third.outcome, ACCEPT_REFUSED);
    assert_int_equal(third.refusal, ERROR_BATCH_QUARANTINED);
    age(f, HOURS(24 * 60));
    collect(f);
    assert_true(has_object(f, first.object_key));
    assert_true(has_object(f, second.object_key));
    struct ledger_quarantined *items = NULL;
    size_t count = 0;
    must(f, ledger_list_quarantined(&f->db, f->arena, f->sink_id, STR(""), 10, &items, &count,
                                    &f->error));
    assert_int_equal(count, 1);
    assert_true(str_find(items[0].uids, id_uid_str(&first.uid)) >= 0);
    assert_true(str_find(items[0].uids, id_uid_str(&second.uid)) >= 0);
}

static void a_person_decides_what_is_in_quarantine(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept first = store_batch(f, "a", "{\"x\":1}");
    struct ledger_accept second = store_batch(f, "a", "{\"x\":2}\n{\"x\":3}");
    collect(f);
    age(f, HOURS(25));
    assert_int_equal(collect(f).quarantined, 2);
    str row = {0};
    assert_int_equal(orphan_resolve(&f->env, f->arena, f->sink_id, STR("a"),
                                    STR("00000000000000000000000000"), &row, NULL),
                     NOT_FOUND);
    assert_int_equal(orphan_resolve(&f->env, f->arena, f->sink_id, STR("b"),
                                    id_uid_str(&second.uid), &row, NULL),
                     NOT_FOUND);
    must(f, orphan_resolve(&f->env, f->arena, f->sink_id, STR("a"), id_uid_str(&second.uid), &row,
                           &f->error));
    assert_true(str_equal(row, STR("a")));
    assert_true(is_void(f, &second.uid)); /* it lives on as a copy */
    roll_out(f);
    assert_int_equal(table_rows(f), 2);
    assert_books(f);
    age(f, HOURS(25));
    assert_int_equal(collect(f).voided, 1);
    assert_false(has_object(f, first.object_key));
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM quarantine"), 0);
}

static void an_orphan_of_five_days_is_kept(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept item = store_batch(f, "a", "{\"x\":1}");
    collect(f);
    age(f, HOURS(24 * 5));
    assert_int_equal(collect(f).kept, 1);
    assert_false(has_batch(f, "a"));
    assert_true(has_object(f, item.object_key));
}

static void a_file_that_claims_to_be_old_is_kept(void **state)
{
    struct roll_fixture *f = *state;
    files_age_us = HOURS(24 * 5);
    store_batch(f, "a", "{\"x\":1}");
    collect(f);
    age(f, HOURS(25));
    assert_int_equal(collect(f).kept, 1);
    assert_false(has_batch(f, "a"));
}

static void a_sink_that_recovers_or_is_deleted_keeps_its_orphans(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept item = store_batch(f, "a", "{\"x\":1}");
    collect(f);
    age(f, HOURS(25));
    tell_sql(f, "UPDATE sink SET recovering = 1");
    assert_int_equal(collect(f).adopted, 0);
    tell_sql(f, "UPDATE sink SET recovering = 0, state = 3");
    assert_int_equal(collect(f).adopted, 0);
    assert_true(has_object(f, item.object_key));
    assert_false(has_batch(f, "a"));
}

static void orphans_of_a_deleted_sink_go_whatever_their_age(void **state)
{
    struct roll_fixture *f = *state;
    i64 discarded = 0;
    must(f, sink_delete(&f->env, f->sink_id, &discarded, &f->error));
    struct ledger_accept item = store_batch(f, "late", "{\"x\":1}");
    assert_int_equal(collect(f).voided, 1);
    assert_true(is_void(f, &item.uid));
    assert_false(has_object(f, item.object_key));
}

static void a_keyed_sink_keeps_its_orphans(void **state)
{
    struct roll_fixture *f = *state;
    tell_sql(f, "UPDATE sink SET key_columns = '[\"x\"]'");
    store_batch(f, "a", "{\"x\":1}");
    collect(f);
    age(f, HOURS(25));
    struct orphan_report report = collect(f);
    assert_int_equal(report.adopted, 0);
    assert_int_equal(report.kept, 1);
}

static void an_object_that_cannot_be_read_is_kept(void **state)
{
    struct roll_fixture *f = *state;
    struct uid uid = id_uid_make(&f->seam);
    str key = batch_object_key(f->arena, f->sink_id, STR("a"), &uid);
    must(f, store_put(&f->store, key, STR("{\"x\":1}"), NULL, &f->error));
    const struct store_meta bent = {.entries = {{STR("received"), STR("2026-09-21T00:00:00Z")},
                                                {STR("batches"), STR("a,0,7,1,0,AAAA,AAAA")}},
                                    .count = 2};
    struct uid other = id_uid_make(&f->seam);
    str second = batch_object_key(f->arena, f->sink_id, STR("b"), &other);
    must(f, store_put(&f->store, second, STR("{\"x\":1}"), &bent, &f->error));
    collect(f);
    age(f, HOURS(25));
    assert_int_equal(collect(f).kept, 2);
    assert_true(has_object(f, key));
    assert_true(has_object(f, second));
}

static void void_rows_are_forgotten_after_35_days(void **state)
{
    struct roll_fixture *f = *state;
    store_batch(f, "a", "{\"x\":1}");
    send_object(f, "a", "{\"x\":1}");
    collect(f);
    age(f, HOURS(25));
    assert_int_equal(collect(f).voided, 1);
    age(f, HOURS(2)); /* running time is sampled by the hour */
    age(f, HOURS(24 * 34));
    collect(f);
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM void_uid"), 1);
    age(f, HOURS(24 * 2));
    collect(f);
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM void_uid"), 0);
}

/* ---- groups ---- */

static void a_dead_segment_goes_with_its_object_only(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "b", "{\"x\":2}");
    struct ledger_accept items[] = {describe_batch(f, "a", STR("{\"x\":1}")),
                                    describe_batch(f, "b", STR("{\"x\":2}"))};
    const char *const bodies[] = {"{\"x\":1}", "{\"x\":2}"};
    store_group(f, items, bodies, 2);
    accept_item(f, &items[0]);
    files_age_us = HOURS(30);
    collect(f);
    age(f, HOURS(25));
    assert_int_equal(collect(f).voided, 0);
    assert_false(is_void(f, &items[0].uid));
    assert_true(has_object(f, items[0].object_key));
    roll_out(f);
    assert_int_equal(table_rows(f), 2);
}

static void a_group_is_voided_when_every_segment_is(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept items[] = {describe_batch(f, "a", STR("{\"x\":1}")),
                                    describe_batch(f, "b", STR("{\"x\":2}"))};
    const char *const bodies[] = {"{\"x\":1}", "{\"x\":2}"};
    store_group(f, items, bodies, 2);
    send_object(f, "a", "{\"x\":1}");
    collect(f);
    age(f, HOURS(25));
    struct orphan_report report = collect(f);
    assert_int_equal(report.adopted, 1); /* b */
    assert_int_equal(report.voided, 0);
    assert_int_equal(look_batch(f, "b").offset, 8);
    roll_out(f);
    assert_int_equal(table_rows(f), 2);
    assert_books(f);
}

/* ---- a request that stood still ---- */

static void what_is_refused_is_void_unless_it_was_adopted(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept late = store_batch(f, "late", "{\"x\":1}");
    struct ledger_accept adopted = store_batch(f, "adopted", "{\"x\":2}");
    collect(f);
    must(f, store_remove(&f->store, late.object_key, &f->error));
    age(f, HOURS(25));
    assert_int_equal(collect(f).adopted, 1);
    accept_item(f, &late);
    assert_int_equal(late.outcome, ACCEPT_REFUSED);
    assert_false(late.adopted);
    assert_true(is_void(f, &late.uid));
    accept_item(f, &adopted);
    assert_int_equal(adopted.outcome, ACCEPT_REFUSED);
    assert_true(adopted.adopted);
    assert_false(is_void(f, &adopted.uid));
    roll_out(f);
    assert_int_equal(table_rows(f), 1);
}

/* ---- two passes at once ---- */

static i64 begin_look(struct roll_fixture *f)
{
    i64 look = 0;
    must(f, ledger_next_look(&f->db, f->sink_id, &look, &f->error));
    return look;
}

static void what_a_later_pass_has_seen_is_not_forgotten(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept item = store_batch(f, "a", "{\"x\":1}");
    collect(f);
    i64 first = begin_look(f);
    const struct ledger_object again = {.object_key = item.object_key, .uid = item.uid};
    must(f, ledger_see_orphans(&f->db, f->sink_id, first, NULL, 0, &again, 1, &f->error));
    i64 second = begin_look(f);
    assert_true(second > first);
    must(f, ledger_see_orphans(&f->db, f->sink_id, second, NULL, 0, &again, 1, &f->error));
    must(f, ledger_forget_orphans(&f->db, f->sink_id, first, &f->error));
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM orphan_segment"), 1);
    /* Nor does the first one take the second one's look back. */
    must(f, ledger_see_orphans(&f->db, f->sink_id, first, NULL, 0, &again, 1, &f->error));
    must(f, ledger_forget_orphans(&f->db, f->sink_id, second, &f->error));
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM orphan_segment"), 1);
    must(f, ledger_forget_orphans(&f->db, f->sink_id, second + 1, &f->error));
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM orphan_segment"), 0);
}

/* ---- every call failing, lost, or the last ---- */

static void store_scene(struct roll_fixture *f)
{
    send_object(f, "there", "{\"x\":1}");
    store_batch(f, "there", "{\"x\":1}");
    store_batch(f, "adopt", "{\"x\":2}");
    store_batch(f, "rival", "{\"x\":3}");
    store_batch(f, "rival", "{\"x\":4}");
    collect(f);
    age(f, HOURS(25));
}

static void a_pass_may_end_anywhere(void **state)
{
    (void)state;
    static const enum door_fault faults[] = {DOOR_FAILS, DOOR_LOSES, DOOR_DIES_BEFORE,
                                             DOOR_DIES_AFTER};
    for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
        bool more = true;
        for (i64 at = 1; more; at++) {
            struct roll_fixture *f = aged_fixture();
            struct orphan_report report = {0};
            struct error told = {0};
            store_scene(f);
            door_arm(f, faults[i], at);
            err collected = orphan_collect(&f->env, f->sink_id, &report, &told);
            more = f->doors.calls >= at;
            assert_true(more || collected == OK);
            door_heal(f);
            collect(f);
            roll_out(f);
            assert_int_equal(table_rows(f), 2);
            assert_books(f);
            assert_int_equal(ask_sql(f, "SELECT count(*) FROM batch"), 2);
            assert_int_equal(ask_sql(f, "SELECT count(*) FROM quarantine"), 1);
            assert_int_equal(ask_sql(f, "SELECT count(*) FROM void_uid v JOIN batch b ON b.uid = "
                                        "v.uid"),
                             0);
            fixture_close(f);
            assert_true(at < 200);
        }
    }
}

/* A page is full when the last object of all is in it: the next one is empty. */
static void orphans_are_judged_page_after_page(void **state)
{
    struct roll_fixture *f = *state;
    for (int i = 0; i < ORPHAN_PAGE; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "b%03d", i);
        store_batch(f, id, "{\"x\":1}");
    }
    i64 discarded = 0;
    must(f, sink_delete(&f->env, f->sink_id, &discarded, &f->error));
    struct orphan_report report = collect(f);
    assert_int_equal(report.segments, ORPHAN_PAGE);
    assert_int_equal(report.voided, ORPHAN_PAGE);
    assert_int_equal(count_objects(f, "b"), 0);
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM void_uid"), ORPHAN_PAGE);
}

static void every_edge_was_taken(void **state)
{
    (void)state;
    assert_int_equal(edges_missing("orphan"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_uid_of_a_key_is_read_strictly, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_young_orphan_is_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_orphan_of_a_day_is_adopted_and_rolled, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_resend_of_an_adopted_batch_is_a_duplicate, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_step_of_the_wall_clock_makes_nothing_old, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_orphan_whose_id_has_a_row_is_voided_before_it_is_deleted,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_chain_names_is_voided_however_old_its_row, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(other_bytes_under_one_id_are_quarantined, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_person_decides_what_is_in_quarantine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_orphan_of_five_days_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_claims_to_be_old_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_sink_that_recovers_or_is_deleted_keeps_its_orphans,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(orphans_of_a_deleted_sink_go_whatever_their_age, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_keyed_sink_keeps_its_orphans, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_object_that_cannot_be_read_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(void_rows_are_forgotten_after_35_days, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dead_segment_goes_with_its_object_only, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_group_is_voided_when_every_segment_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(orphans_are_judged_page_after_page, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_refused_is_void_unless_it_was_adopted, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_a_later_pass_has_seen_is_not_forgotten, set_up,
                                        tear_down),
        cmocka_unit_test(a_pass_may_end_anywhere),
        cmocka_unit_test(every_edge_was_taken),
    };
    machine_watch(edges_note);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
