#include "restore_fixture.h"

#include "sink/chain.h"

/* recover (exactly-once section 9): an older copy of the ledger is put back, the store goes on. */

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

/* ---- what a copy lacks ---- */

static void what_was_committed_after_the_copy_is_not_rolled_again(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    send_object(f, "b", "{\"x\":2}");
    struct db copy = take_copy(f);
    roll_out(f);
    sweep(f);
    send_object(f, "c", "{\"x\":3}");
    roll_out(f);
    sweep(f);
    put_back(f, &copy);
    db_close(&copy);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.end, RESTORE_RECOVERED);
    assert_int_equal(report.plans, 2);
    assert_int_equal(report.committed, 2);
    assert_int_equal(look_batch(f, "b").state, BATCH_COMMITTED);
    assert_int_equal(look_batch(f, "c").state, BATCH_COMMITTED);
    assert_int_equal(look_batch(f, "c").rows_committed, 1);
    assert_true(look_batch(f, "c").snapshot_id != 0);
    send_object(f, "d", "{\"x\":4}");
    assert_whole(f, 4);
    /* A resend is told so, whoever's row it is now. */
    struct ledger_accept again = describe_batch(f, "c", STR("{\"x\":3}"));
    accept_item(f, &again);
    assert_int_equal(again.outcome, ACCEPT_DUPLICATE);
}

static void what_was_accepted_after_the_copy_has_a_row_again(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    struct db copy = take_copy(f);
    struct ledger_accept late = send_object(f, "b", "{\"x\":2}\n{\"x\":3}");
    f->now += TIME_SECOND_US;
    send_object(f, "c", "{\"x\":4}");
    put_back(f, &copy);
    db_close(&copy);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.adopted, 2);
    assert_true(look_batch(f, "b").seq < look_batch(f, "c").seq);
    /* Fault 17: a delete from before the restore arrives. Nobody misses that object. */
    assert_true(is_void(f, &late.uid));
    must(f, store_remove(&f->store, late.object_key, &f->error));
    assert_whole(f, 4);
}

/* The chain explains the one batch of an object that it names, not its neighbour. */
static void a_group_of_which_one_batch_was_rolled_loses_none(void **state)
{
    struct roll_fixture *f = *state;
    roll_half_a_group(f);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.committed, 1);
    assert_int_equal(report.adopted, 1);
    assert_whole(f, 3);
}

/* Its row was forgotten, in the copy too: the chain still knows the batch, by any of its uids. */
static void a_resend_of_a_forgotten_batch_is_not_adopted(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    sweep(f);
    struct ledger_accept resend = store_batch(f, "a", "{\"x\":1}");
    tell_sql(f, "DELETE FROM batch");
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.adopted, 0);
    assert_false(has_batch(f, "a"));
    assert_true(has_object(f, resend.object_key));
    assert_int_equal(table_rows(f), 1);
}

/* Its other bytes are a matter for a person (O16). */
static void other_bytes_of_a_forgotten_batch_are_quarantined(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    sweep(f);
    store_batch(f, "a", "{\"x\":1}\n{\"x\":2}");
    tell_sql(f, "DELETE FROM batch");
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.adopted, 0);
    assert_int_equal(report.quarantined, 1);
    roll_out(f);
    assert_int_equal(table_rows(f), 1);
}

/* A plan that the copy does not know may have written their rejects files. */
static void what_waits_after_a_recover_writes_its_rejects_afresh(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    struct db copy = take_copy(f);
    send_object(f, "b", "{\"x\":2}");
    put_back(f, &copy);
    db_close(&copy);
    recover_sink_now(f);
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM batch WHERE retried = 1"), 2);
    must(f, store_put(&f->store, batch_rejects_key(f->arena, f->sink_id, STR("b")),
                      STR("{\"row\":0}\n"), NULL, &f->error));
    assert_whole(f, 2);
    assert_false(has_object(f, batch_rejects_key(f->arena, f->sink_id, STR("b"))));
}

static void a_copy_of_before_the_first_roll_finds_its_claim(void **state)
{
    struct roll_fixture *f = *state;
    struct db copy = take_copy(f);
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    send_object(f, "b", "{\"x\":2}");
    roll_out(f);
    sweep(f);
    send_object(f, "c", "{\"x\":3}");
    put_back(f, &copy);
    db_close(&copy);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.plans, 2);
    assert_int_equal(report.adopted, 1);
    assert_int_equal(look_sink(f).claim_state, CLAIM_CLAIMED);
    assert_whole(f, 3);
}

static void a_sink_that_never_rolled_recovers_too(void **state)
{
    struct roll_fixture *f = *state;
    struct db copy = take_copy(f);
    send_object(f, "a", "{\"x\":1}");
    put_back(f, &copy);
    db_close(&copy);
    assert_int_equal(recover_sink_now(f).adopted, 1);
    assert_whole(f, 1);
}

static void a_plan_that_the_copy_calls_live_and_that_landed_is_committed(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    f->before_commit = die_before_the_commit; /* the claim */
    roll_tick(f);
    door_heal(f);
    roll_out(f);
    send_object(f, "b", "{\"x\":2}");
    f->before_commit = die_before_the_commit;
    roll_tick(f);
    door_heal(f);
    assert_true(look_sink(f).has_live_plan);
    struct db copy = take_copy(f);
    roll_out(f);
    sweep(f);
    put_back(f, &copy);
    db_close(&copy);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.undone, 0);
    assert_int_equal(report.committed, 1);
    assert_whole(f, 2);
}

static void a_plan_that_the_copy_calls_live_and_that_never_landed_is_undone(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    send_object(f, "b", "{\"x\":2}");
    f->before_commit = die_before_the_commit;
    roll_tick(f);
    door_heal(f);
    struct db copy = take_copy(f);
    put_back(f, &copy);
    db_close(&copy);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.undone, 1);
    assert_int_equal(look_batch(f, "b").state, BATCH_PENDING);
    assert_whole(f, 2);
}

static void rejected_rows_are_counted_by_their_file(void **state)
{
    struct roll_fixture *f = *state;
    struct db copy = take_copy(f);
    send_object(f, "a", "{\"x\":1}\n{\"x\":\"no\"}\n{\"x\":3}");
    roll_out(f);
    sweep(f);
    put_back(f, &copy);
    db_close(&copy);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.unknown, 0);
    assert_int_equal(look_batch(f, "a").rows_committed, 2);
    assert_int_equal(look_batch(f, "a").rows_rejected, 1);
    assert_whole(f, 2);
}

/* Its snapshots are expired to the last one: the summaries are gone. */
static void expire(struct roll_fixture *f)
{
    foreign_append(f);
    expire_to_one(f);
}

static void expired_snapshots_change_nothing(void **state)
{
    struct roll_fixture *f = *state;
    struct db copy = take_copy(f);
    send_object(f, "a", "{\"x\":1}\n{\"x\":\"no\"}\n{\"x\":3}");
    send_object(f, "b", "{\"x\":4}");
    roll_out(f);
    sweep(f);
    expire(f);
    put_back(f, &copy);
    db_close(&copy);
    assert_int_equal(recover_sink_now(f).unknown, 0);
    assert_int_equal(look_batch(f, "a").rows_rejected, 1);
    assert_int_equal(look_batch(f, "a").snapshot_id, 0);
    assert_whole(f, 3);
}

static void a_split_that_nobody_knows_any_more_is_reported(void **state)
{
    struct roll_fixture *f = *state;
    struct db copy = take_copy(f);
    send_object(f, "a", "{\"x\":1}\n{\"x\":\"no\"}");
    roll_out(f);
    sweep(f);
    expire(f);
    put_back(f, &copy);
    db_close(&copy);
    must(f, store_remove(&f->store, batch_rejects_key(f->arena, f->sink_id, STR("a")), &f->error));
    f->now = seam_now(seam_system()) + 8 * TIME_DAY_US; /* the store's own stamps */
    assert_int_equal(recover_sink_now(f).unknown, 1);
    assert_int_equal(look_batch(f, "a").rows_committed, 2);
    assert_int_equal(look_sink(f).rows_accepted, look_sink(f).rows_committed);
}

/* ---- the planted faults 13 to 18, 27 and 28 ---- */

static void without_a_plan_object_it_stops_and_serves_nothing(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    struct db copy = take_copy(f);
    send_object(f, "b", "{\"x\":2}");
    roll_out(f);
    struct ledger_sink sink = look_sink(f);
    str key = batch_plan_key(f->arena, f->sink_id, sink.last_n, sink.last_plan_id);
    must(f, store_remove(&f->store, key, &f->error));
    put_back(f, &copy);
    db_close(&copy);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.end, RESTORE_STOPPED);
    assert_true(str_find(report.detail, sink.last_plan_id) > 0);
    assert_true(str_equal(look_sink(f).state_reason, STR("ledger_mismatch")));
    assert_true(look_sink(f).recovering);
    struct ledger_accept item = describe_batch(f, "c", STR("{\"x\":3}"));
    accept_item(f, &item);
    assert_int_equal(item.outcome, ACCEPT_REFUSED);
    assert_int_equal(roll_tick(f), ROLL_NOTHING);
}

/* The request of a plan is under way for long, nothing has landed, the copy knows nothing of it. */
static void the_fence_of_a_recover_kills_what_is_under_way(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    struct db copy = take_copy(f);
    send_object(f, "b", "{\"x\":2}");
    f->keeps_requests = true;
    f->before_commit = die_before_the_commit; /* kept, and then the process dies */
    roll_tick(f);
    door_heal(f);
    assert_non_null(f->kept);
    assert_int_equal(table_rows(f), 1);
    put_back(f, &copy);
    db_close(&copy);
    assert_int_equal(recover_sink_now(f).adopted, 1);
    assert_int_equal(land_kept(f), CONFLICT);
    assert_whole(f, 2);
}

static void a_plan_of_an_abandoned_fork_is_not_taken_for_committed(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    send_object(f, "b", "{\"x\":2}");
    struct db copy = take_copy(f);
    /* Plan 2 with b is written down, but its commit never gets out. */
    f->before_commit = die_before_the_commit;
    roll_tick(f);
    door_heal(f);
    put_back(f, &copy);
    recover_sink_now(f);
    /* Another plan 2, with c alone, is committed. */
    tell_sql(f, "UPDATE batch SET held = 1, held_reason = 'object_missing' WHERE batch_id = 'b'");
    send_object(f, "c", "{\"x\":3}");
    roll_out(f);
    assert_int_equal(table_rows(f), 2);
    assert_int_equal(count_objects(f, "plans/2-"), 2);
    put_back(f, &copy);
    db_close(&copy);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.plans, 1);
    assert_int_equal(look_batch(f, "b").state, BATCH_PENDING);
    assert_int_equal(look_batch(f, "c").state, BATCH_COMMITTED);
    assert_whole(f, 3);
}

static void different_orphans_of_one_id_are_not_guessed_at(void **state)
{
    struct roll_fixture *f = *state;
    struct db copy = take_copy(f);
    send_object(f, "a", "{\"x\":1}");
    struct ledger_accept other = store_batch(f, "a", "{\"x\":2}");
    put_back(f, &copy);
    db_close(&copy);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.quarantined, 2);
    assert_int_equal(report.adopted, 0);
    assert_false(has_batch(f, "a"));
    str row = {0};
    must(f, orphan_resolve(&f->env, f->arena, f->sink_id, STR("a"), id_uid_str(&other.uid), &row,
                           &f->error));
    assert_whole(f, 1);
}

static void a_row_whose_batch_the_chain_names_under_another_uid_is_committed(void **state)
{
    struct roll_fixture *f = *state;
    struct db before = take_copy(f);
    struct ledger_accept sent = send_object(f, "a", "{\"x\":1}");
    struct db pending = take_copy(f);
    put_back(f, &before);
    db_close(&before);
    assert_int_equal(recover_sink_now(f).adopted, 1);
    assert_whole(f, 1); /* committed under the copy's uid */
    struct uid copied = look_batch(f, "a").uid;
    put_back(f, &pending);
    db_close(&pending);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.committed, 1);
    assert_int_equal(look_batch(f, "a").state, BATCH_COMMITTED);
    assert_memory_equal(look_batch(f, "a").uid.text, copied.text, ID_UID_SIZE);
    assert_true(is_void(f, &sent.uid));
    assert_whole(f, 1);
}

static void a_pending_row_whose_object_is_gone_takes_the_same_bytes(void **state)
{
    struct roll_fixture *f = *state;
    struct db before = take_copy(f);
    struct ledger_accept sent = send_object(f, "a", "{\"x\":1}");
    struct db pending = take_copy(f);
    put_back(f, &before);
    db_close(&before);
    recover_sink_now(f);
    sweep(f); /* the old object goes, its copy waits */
    assert_false(has_object(f, sent.object_key));
    put_back(f, &pending);
    db_close(&pending);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.taken, 1);
    assert_int_equal(report.missing, 0);
    assert_true(is_void(f, &sent.uid));
    assert_whole(f, 1);
}

/* The second ledger knows nothing of the copy, and the delete of the old object lands after it was
 * put back. */
static void a_pending_row_whose_object_was_given_up_takes_its_copy(void **state)
{
    struct roll_fixture *f = *state;
    struct db before = take_copy(f);
    struct ledger_accept sent = send_object(f, "a", "{\"x\":1}");
    struct db pending = take_copy(f);
    put_back(f, &before);
    db_close(&before);
    assert_int_equal(recover_sink_now(f).adopted, 1);
    put_back(f, &pending);
    db_close(&pending);
    assert_true(has_object(f, sent.object_key));
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.taken, 1);
    assert_int_equal(report.missing, 0);
    assert_true(is_void(f, &sent.uid));
    must(f, store_remove(&f->store, sent.object_key, &f->error));
    assert_whole(f, 1);
}

static void other_bytes_under_the_chains_id_wait_for_a_person(void **state)
{
    struct roll_fixture *f = *state;
    struct db before = take_copy(f);
    struct ledger_accept first = send_object(f, "a", "{\"x\":1}");
    struct db pending = take_copy(f);
    /* A history in which the id stands for other bytes, and they are committed. */
    put_back(f, &before);
    db_close(&before);
    send_object(f, "a", "{\"x\":2}\n{\"x\":3}");
    roll_out(f);
    sweep(f);
    put_back(f, &pending);
    db_close(&pending);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.quarantined, 1);
    assert_int_equal(look_batch(f, "a").rows_committed, 2);
    assert_true(has_object(f, first.object_key));
    assert_books(f);
    str row = {0};
    must(f, orphan_resolve(&f->env, f->arena, f->sink_id, STR("a"), id_uid_str(&first.uid), &row,
                           &f->error));
    assert_true(str_starts(row, STR("replay.")));
    assert_whole(f, 3);
}

/* ---- the property ---- */

static void a_table_behind_the_ledger_stops_the_sink(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    const struct plan_property zero = {f->installation, f->sink_id, 0, look_sink(f).claim_id};
    str text = plan_print_property(f->arena, &zero);
    char request[512];
    int size = snprintf(request, sizeof(request),
                        "{'requirements':[],'updates':[{'action':'set-properties','updates':{"
                        "'lakehousebox.sink.roll':'%.*s'}}]}",
                        STR_ARG(text));
    assert_true(size > 0 && (size_t)size < sizeof(request));
    foreign_commit(f, request);
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.end, RESTORE_STOPPED);
    assert_true(str_equal(look_sink(f).state_reason, STR("ledger_mismatch")));
    /* An operator answers for it. */
    must(f, restore_reclaim(&f->env, f->arena, f->sink_id, &f->error));
    assert_int_equal(look_sink(f).state, SINK_ACTIVE);
    assert_false(look_sink(f).recovering);
    send_object(f, "b", "{\"x\":2}");
    assert_whole(f, 2);
}

/* A copy of before the claim, and a table whose owner took the property away since. */
static void a_property_that_was_taken_away_stops_an_unclaimed_copy(void **state)
{
    struct roll_fixture *f = *state;
    struct db copy = take_copy(f);
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    foreign_commit(f,
                   "{'updates':[{'action':'remove-properties','removals':['" METADATA_ROLL_PROPERTY
                   "']}]}");
    put_back(f, &copy);
    db_close(&copy);
    assert_int_equal(recover_sink_now(f).end, RESTORE_STOPPED);
    assert_true(str_equal(look_sink(f).state_reason, STR("ledger_mismatch")));
    roll_out(f);
    assert_int_equal(table_rows(f), 1);
}

/* Two histories: in one the batch was copied and its first uid is void, in the other that uid was
 * rolled. The table tells which of them was. */
static void the_chains_uid_is_not_void_whatever_the_copy_says(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "first", "{\"x\":0}");
    roll_out(f);
    struct ledger_accept item = send_object(f, "a", "{\"x\":1}");
    struct db copy = take_copy(f);
    roll_out(f);
    sweep(f);
    put_back(f, &copy);
    db_close(&copy);
    tell_sql(f, "INSERT INTO void_uid (uid, at) SELECT uid, 0 FROM batch WHERE batch_id = 'a'");
    tell_sql(f, "UPDATE batch SET uid = '0000000000000000000000000a' WHERE batch_id = 'a'");
    assert_int_equal(recover_sink_now(f).end, RESTORE_RECOVERED);
    assert_int_equal(look_batch(f, "a").state, BATCH_COMMITTED);
    assert_false(is_void(f, &item.uid));
    assert_whole(f, 2);
}

static void only_what_a_mismatch_stopped_can_reclaim(void **state)
{
    struct roll_fixture *f = *state;
    assert_int_equal(restore_reclaim(&f->env, f->arena, f->sink_id, NULL), CONFLICT);
    must(f, ledger_disable_sink(&f->db, f->sink_id, STR("table_claimed"), STR("x"), &f->error));
    assert_int_equal(restore_reclaim(&f->env, f->arena, f->sink_id, NULL), CONFLICT);
}

static void a_table_that_is_gone_stops_the_sink_and_frees_it(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    must(f, catalog_drop(&f->catalog, fixture_table(), &f->error));
    struct restore_sink report = recover_sink_now(f);
    assert_int_equal(report.end, RESTORE_STOPPED);
    assert_true(str_equal(look_sink(f).state_reason, STR("table_gone")));
    i64 discarded = 0;
    must(f, sink_delete(&f->env, f->sink_id, &discarded, &f->error));
}

static void a_stopped_recover_does_not_keep_a_sink_from_being_deleted(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    tell_sql(f, "UPDATE sink SET last_n = 7");
    assert_int_equal(recover_sink_now(f).end, RESTORE_STOPPED);
    i64 discarded = 0;
    must(f, sink_delete(&f->env, f->sink_id, &discarded, &f->error));
    assert_int_equal(look_sink(f).state, SINK_DELETED);
}

static void a_roll_that_finds_the_table_ahead_recovers_by_itself(void **state)
{
    struct roll_fixture *f = *state;
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    struct db copy = take_copy(f);
    send_object(f, "b", "{\"x\":2}");
    roll_out(f);
    sweep(f);
    send_object(f, "c", "{\"x\":3}");
    put_back(f, &copy);
    db_close(&copy);
    send_object(f, "d", "{\"x\":4}");
    assert_whole(f, 4);
    assert_int_equal(look_batch(f, "c").state, BATCH_COMMITTED);
}

/* ---- again, and killed anywhere ---- */

static void a_second_recover_changes_nothing(void **state)
{
    struct roll_fixture *f = *state;
    struct db copy = take_copy(f);
    send_object(f, "a", "{\"x\":1}");
    roll_out(f);
    sweep(f);
    send_object(f, "b", "{\"x\":2}");
    put_back(f, &copy);
    db_close(&copy);
    recover_sink_now(f);
    struct restore_sink second = recover_sink_now(f);
    assert_int_equal(second.end, RESTORE_RECOVERED);
    assert_int_equal(second.plans + second.committed + second.undone + second.adopted +
                         second.taken + second.quarantined,
                     0);
    assert_whole(f, 2);
}

/* Committed, rejected, accepted, in quarantine, taken: all of it at once. Three rows that belong
 * into the table once. */
static void make_history(struct roll_fixture *f)
{
    struct db before = take_copy(f);
    send_object(f, "taken", "{\"x\":1}");
    struct db copy = take_copy(f);
    put_back(f, &before);
    db_close(&before);
    recover_sink_now(f);
    sweep(f);
    tell_sql(f, "UPDATE batch SET held = 1, held_reason = 'object_missing'");
    send_object(f, "rolled", "{\"x\":2}");
    roll_tick(f);
    roll_tick(f);
    send_object(f, "rejected", "{\"x\":\"no\"}");
    roll_out(f);
    sweep(f);
    send_object(f, "late", "{\"x\":3}");
    store_batch(f, "rival", "{\"x\":4}");
    store_batch(f, "rival", "{\"x\":5}");
    put_back(f, &copy);
    db_close(&copy);
}

static void a_recover_may_end_anywhere(void **state)
{
    (void)state;
    static const enum door_fault faults[] = {DOOR_FAILS, DOOR_LOSES, DOOR_DIES_BEFORE,
                                             DOOR_DIES_AFTER, DOOR_LIES_409};
    for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
        bool more = true;
        for (i64 at = 1; more; at++) {
            struct roll_fixture *f = aged_fixture();
            struct restore_sink report = {0};
            make_history(f);
            door_arm(f, faults[i], at);
            err recovered = restore_sink(&f->env, f->arena, f->sink_id, &report, NULL);
            more = f->doors.calls >= at;
            assert_true(more || recovered == OK);
            door_heal(f);
            f->now += 60 * TIME_SECOND_US;
            assert_int_equal(recover_sink_now(f).end, RESTORE_RECOVERED);
            assert_whole(f, 3);
            assert_int_equal(look_batch(f, "rejected").state, BATCH_REJECTED);
            assert_int_equal(ask_sql(f, "SELECT count(*) FROM quarantine"), 1);
            assert_false(has_batch(f, "rival"));
            /* R2: what was copied in vain is voided by the collector. */
            struct orphan_report collected = {0};
            must(f, orphan_collect(&f->env, f->sink_id, &collected, &f->error));
            age(f, 25 * (i64)3600 * TIME_SECOND_US);
            must(f, orphan_collect(&f->env, f->sink_id, &collected, &f->error));
            assert_int_equal(collected.adopted, 0);
            assert_whole(f, 3);
            fixture_close(f);
            assert_true(at < 500);
        }
    }
}

/* What came later with an earlier stamp has the stamp of what came before it (I20), in the table;
 * and the ledger says the same of it again, whatever was rejected whole in between. */
static void the_time_of_ingest_is_that_of_the_table_again(void **state)
{
    struct roll_fixture *f = *state;
    static const char *const ids[] = {"a", "b", "c"};
    static const char *const bodies[] = {"{\"x\":1}", "{\"x\":\"no number\"}", "{\"x\":3}"};
    instant stamps[ARRAY_COUNT(ids)];
    struct db copy = take_copy(f);
    const instant first = f->now;
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        struct ledger_accept item = store_batch(f, ids[i], bodies[i]);
        item.received_at = first - (instant)i * 5000;
        accept_item(f, &item);
        stamps[i] = look_batch(f, ids[i]).ingest_ts;
        roll_out(f);
    }
    assert_true(stamps[0] <= stamps[1] && stamps[1] <= stamps[2]);
    assert_true(stamps[2] > look_batch(f, "c").received_at);
    put_back(f, &copy);
    db_close(&copy);
    assert_int_equal(recover_sink_now(f).end, RESTORE_RECOVERED);
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        assert_int_equal(look_batch(f, ids[i]).ingest_ts, stamps[i]);
    }
    assert_true(ask_sql(f, "SELECT last_ingest_ts FROM sink") >= stamps[2]);
}

/* The copy of another history: a recover that was asleep has copied an orphan, another one took
 * that copy for an orphan and gave it up. No row comes to it any more (I6). */
static void a_copy_that_was_given_up_gets_no_row(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept item = store_batch(f, "a", "{\"x\":1}");
    struct ledger_copy asleep = {.old_key = item.object_key, .old_uid = item.uid};
    struct ledger_adopted adopted = {0};
    struct map *missing = map_create(f->arena, 4);
    struct ledger_accept given_up = store_batch(f, "a", "{\"x\":1}");
    asleep.new_key = given_up.object_key;
    asleep.new_uid = given_up.uid;
    must(f, ledger_begin_recover(&f->db, f->sink_id, &f->error));
    must(f, orphan_record(&f->env, f->sink_id, ORPHAN_LOOK_ALL, &f->error));
    char sql[160];
    (void)snprintf(sql, sizeof(sql), "INSERT INTO void_uid (uid, at) VALUES ('%.*s', 1)",
                   ID_UID_SIZE, given_up.uid.text);
    tell_sql(f, sql);
    assert_int_equal(
        ledger_adopt_copy(&f->db, f->arena, f->sink_id, &asleep, missing, &adopted, NULL),
        CONFLICT);
    assert_false(has_batch(f, "a"));
}

/* ---- the chain ---- */

static void a_plan_object_is_read_back_as_it_was_printed(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept sent = send_object(f, "2026:a", "{\"x\":1}");
    roll_out(f);
    struct ledger_sink sink = look_sink(f);
    struct chain_plan plan = {0};
    must(f, chain_read(&f->store, f->arena, f->sink_id, sink.last_n, sink.last_plan_id, &plan,
                       &f->error));
    assert_int_equal(plan.count, 1);
    assert_true(str_equal(plan.prev, sink.claim_id));
    assert_true(str_equal(plan.batches[0].batch_id, STR("2026:a")));
    assert_memory_equal(plan.batches[0].uid.text, sent.uid.text, ID_UID_SIZE);
    assert_memory_equal(plan.batches[0].body_hash, sent.body_hash, 16);
    assert_memory_equal(plan.batches[0].sha256.bytes, sent.sha256.bytes, 32);
    assert_int_equal(plan.batches[0].received_at, sent.received_at);
}

static void a_damaged_plan_object_is_corrupt(void **state)
{
    struct roll_fixture *f = *state;
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"format\":2,\"installation\":\"i\",\"sink_id\":\"s\",\"n\":1,\"id\":\"a\",\"prev\":"
        "\"b\","
        "\"config_version\":1,\"batches\":[]}",
        "{\"format\":1,\"installation\":\"i\",\"sink_id\":\"s\",\"n\":1,\"id\":\"a\",\"prev\":"
        "\"b\","
        "\"config_version\":1,\"batches\":[{}]}",
        "{\"format\":1,\"installation\":\"i\",\"sink_id\":\"s\",\"n\":-1,\"id\":\"a\",\"prev\":"
        "\"b\","
        "\"config_version\":1,\"batches\":[]}",
    };
    struct chain_plan plan = {0};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        assert_int_equal(chain_parse(f->arena, str_from(texts[i]), &plan, NULL), CORRUPT);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_committed_after_the_copy_is_not_rolled_again),
        TEST(what_was_accepted_after_the_copy_has_a_row_again),
        TEST(a_group_of_which_one_batch_was_rolled_loses_none),
        TEST(a_resend_of_a_forgotten_batch_is_not_adopted),
        TEST(other_bytes_of_a_forgotten_batch_are_quarantined),
        TEST(what_waits_after_a_recover_writes_its_rejects_afresh),
        TEST(a_copy_of_before_the_first_roll_finds_its_claim),
        TEST(a_sink_that_never_rolled_recovers_too),
        TEST(a_plan_that_the_copy_calls_live_and_that_landed_is_committed),
        TEST(a_plan_that_the_copy_calls_live_and_that_never_landed_is_undone),
        TEST(rejected_rows_are_counted_by_their_file),
        TEST(expired_snapshots_change_nothing),
        TEST(a_split_that_nobody_knows_any_more_is_reported),
        TEST(without_a_plan_object_it_stops_and_serves_nothing),
        TEST(the_fence_of_a_recover_kills_what_is_under_way),
        TEST(a_plan_of_an_abandoned_fork_is_not_taken_for_committed),
        TEST(different_orphans_of_one_id_are_not_guessed_at),
        TEST(a_row_whose_batch_the_chain_names_under_another_uid_is_committed),
        TEST(a_pending_row_whose_object_is_gone_takes_the_same_bytes),
        TEST(a_pending_row_whose_object_was_given_up_takes_its_copy),
        TEST(other_bytes_under_the_chains_id_wait_for_a_person),
        TEST(a_table_behind_the_ledger_stops_the_sink),
        TEST(a_property_that_was_taken_away_stops_an_unclaimed_copy),
        TEST(the_chains_uid_is_not_void_whatever_the_copy_says),
        TEST(only_what_a_mismatch_stopped_can_reclaim),
        TEST(a_table_that_is_gone_stops_the_sink_and_frees_it),
        TEST(a_stopped_recover_does_not_keep_a_sink_from_being_deleted),
        TEST(a_roll_that_finds_the_table_ahead_recovers_by_itself),
        TEST(a_second_recover_changes_nothing),
        TEST(the_time_of_ingest_is_that_of_the_table_again),
        TEST(a_copy_that_was_given_up_gets_no_row),
        TEST(a_plan_object_is_read_back_as_it_was_printed),
        TEST(a_damaged_plan_object_is_corrupt),
        cmocka_unit_test(a_recover_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
