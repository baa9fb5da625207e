#include "base/crew.h"
#include "roll_fixture.h"

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

/* ---- the quiet world ---- */

static void a_roll_commits_every_row_once(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}\n{\"x\":2}");
    send_batch(f, "b", "{\"x\":3}");
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_int_equal(table_rows(f), 3);
    assert_int_equal(look_batch(f, "a").state, BATCH_COMMITTED);
    assert_int_equal(look_batch(f, "a").rows_committed, 2);
    assert_int_equal(look_batch(f, "b").rows_committed, 1);
    assert_true(look_batch(f, "b").snapshot_id != 0);
    assert_int_equal(look_sink(f).last_n, 1);
    assert_books(f);
    assert_int_equal(roll_tick(f), ROLL_NOTHING);
    assert_int_equal(table_rows(f), 3);
}

static void the_first_roll_claims_and_adds_the_column(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    struct table table = load_table(f);
    struct schema schema = {0};
    must(f, metadata_schema(f->arena, table.metadata, &schema, &f->error));
    const struct field *field = type_field(&schema.root, STR("__ingest_ts"));
    assert_non_null(field);
    assert_int_equal(field->type.kind, TYPE_TIMESTAMPTZ);
    assert_false(field->required);
    str enabled = metadata_property(table.metadata, "write.metadata.delete-after-commit.enabled");
    assert_true(str_equal(enabled, STR("true")));
    assert_true(str_equal(metadata_property(table.metadata, "write.metadata.previous-versions-max"),
                          STR("5")));
    table_close(&table);
    assert_int_equal(look_sink(f).claim_state, CLAIM_CLAIMED);
}

static void what_the_table_sets_already_is_left_alone(void **state)
{
    struct roll_fixture *f = *state;
    foreign_commit(f, "{'requirements':[],'updates':[{'action':'set-properties','updates':"
                      "{'write.metadata.previous-versions-max':'9'}}]}");
    send_batch(f, "a", "{\"x\":1}");
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    struct table table = load_table(f);
    assert_true(str_equal(metadata_property(table.metadata, "write.metadata.previous-versions-max"),
                          STR("9")));
    table_close(&table);
}

static void a_claim_without_a_new_column_moves_main(void **state)
{
    (void)state;
    struct roll_fixture *f = fixture_open_with(
        "{'name':'events','schema':{'type':'struct','fields':["
        "{'id':1,'name':'x','required':true,'type':'int'},"
        "{'id':2,'name':'__ingest_ts','required':false,'type':'timestamptz'}]}}");
    send_batch(f, "a", "{\"x\":1}");
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    struct table table = load_table(f);
    /* the claim's empty append, and the roll */
    assert_int_equal(metadata_last_sequence_number(table.metadata), 2);
    table_close(&table);
    assert_books(f);
    fixture_close(f);
}

static void the_summary_tells_what_was_rolled(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}\n{\"x\":\"no\"}");
    send_batch(f, "b", "{\"x\":3}");
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    struct table table = load_table(f);
    i64 main_id = 0;
    assert_true(metadata_main(table.metadata, &main_id));
    const json_t *summary = json_object_get(metadata_snapshot(table.metadata, main_id), "summary");
    const struct {
        const char *key;
        const char *value;
    } wanted[] = {
        {"lakehousebox.sink.id", "snk_000000000001"}, {"lakehousebox.sink.batches", "a,b"},
        {"lakehousebox.sink.batches_count", "2"},     {"lakehousebox.sink.rows", "2"},
        {"lakehousebox.sink.rejected_rows", "1"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        const char *value = json_string_value(json_object_get(summary, wanted[i].key));
        assert_non_null(value);
        assert_string_equal(value, wanted[i].value);
    }
    assert_non_null(json_object_get(summary, "lakehousebox.sink.roll"));
    assert_non_null(json_object_get(summary, "lakehousebox.sink.batches_sha256"));
    table_close(&table);
}

static void objects_go_only_after_the_finish(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept item = send_batch(f, "a", "{\"x\":1}");
    struct store_object object = {0};
    i64 deleted = 0;
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    assert_int_equal(deleted, 0);
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    must(f, store_head(&f->store, f->arena, item.object_key, &object, &f->error));
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    assert_int_equal(deleted, 1);
    assert_int_equal(store_head(&f->store, f->arena, item.object_key, &object, NULL), NOT_FOUND);
}

/* ---- rejects ---- */

static void rejected_rows_are_recorded_and_counted(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}\n\n{\"x\":\"no\"}\n{\"x\":2,\"y\":1}");
    struct store_object file = {0};
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    str key = batch_rejects_key(f->arena, f->sink_id, STR("a"));
    must(f, store_get(&f->store, f->arena, key, &file, &f->error));
    assert_int_equal(count_lines(file.body), 2);
    assert_true(str_find(file.body, STR("\"row\":2,\"reason\":\"bad_number\"")) >= 0);
    assert_true(str_find(file.body, STR("\"row\":3,\"reason\":\"unknown_column\"")) >= 0);
    struct ledger_count *reasons = NULL;
    str *recent = NULL;
    size_t reason_count = 0;
    size_t recent_count = 0;
    must(f, ledger_list_rejects(&f->db, f->arena, f->sink_id, &reasons, &reason_count, &recent,
                                &recent_count, &f->error));
    assert_int_equal(reason_count, 2);
    assert_int_equal(recent_count, 2);
    assert_true(str_find(recent[0], STR("unknown_column")) >= 0);
    assert_int_equal(look_sink(f).rows_rejected, 2);
    assert_int_equal(look_sink(f).reject_batches, 1);
    assert_books(f);
}

static void a_plan_whose_rows_are_all_rejected_commits_nothing(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "ok", "{\"x\":1}");
    roll_out(f);
    str before = table_property(f);
    struct ledger_accept item = send_batch(f, "bad", "{\"x\":\"no\"}");
    i64 commits = f->commits;
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_int_equal(f->commits, commits);
    assert_true(str_equal(table_property(f), before));
    assert_int_equal(look_batch(f, "bad").state, BATCH_REJECTED);
    assert_books(f);
    /* the verdict is durable before the object goes (O2) */
    struct store_list plans = {0};
    str prefix = str_format(f->arena, "_sink/%.*s/plans/2-", STR_ARG(f->sink_id));
    must(f, store_list(&f->store, f->arena, prefix, STR(""), 10, &plans, &f->error));
    assert_int_equal(plans.count, 2);
    i64 deleted = 0;
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    struct store_object object = {0};
    assert_int_equal(store_head(&f->store, f->arena, item.object_key, &object, NULL), NOT_FOUND);
    /* its number is used again */
    send_batch(f, "next", "{\"x\":2}");
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_int_equal(look_sink(f).last_n, 2);
    assert_books(f);
}

/* Killed between the void and its verdict: the object stays until the verdict is made up for. */
static void a_verdict_that_was_not_written_is_made_up_for(void **state)
{
    (void)state;
    i64 met = 0;
    bool reached = true;
    for (i64 at = 1; reached; at++) {
        struct roll_fixture *f = fixture_open();
        send_batch(f, "bad", "{\"x\":\"no\"}");
        door_arm(f, DOOR_DIES_BEFORE, at);
        roll_tick(f);
        reached = f->doors.dead;
        door_heal(f);
        i64 deleted = 0;
        struct ledger_plan *undoomed = NULL;
        size_t count = 0;
        must(f, ledger_list_undoomed(&f->db, f->arena, f->sink_id, &undoomed, &count, &f->error));
        if (count == 1) {
            met++;
            must(f, sweep_objects(&f->env, &deleted, &f->error));
            assert_int_equal(deleted, 0);
            must(f, recover_verdicts(&f->env, f->sink_id, &f->error));
            must(f, recover_verdicts(&f->env, f->sink_id, &f->error));
            must(f, sweep_objects(&f->env, &deleted, &f->error));
            assert_int_equal(deleted, 1);
            assert_int_equal(look_batch(f, "bad").state, BATCH_REJECTED);
            assert_int_equal(count_objects(f, "plans/"), 2);
        }
        assert_books(f);
        fixture_close(f);
    }
    assert_true(met > 0);
}

static void rejects_of_an_earlier_schema_go(void **state)
{
    (void)state;
    i64 met = 0;
    bool reached = true;
    for (i64 at = 1; reached; at++) {
        struct roll_fixture *f = fixture_open();
        send_batch(f, "k1", "{\"x\":1}\n{\"x\":3000000000}");
        door_arm(f, DOOR_DIES_AFTER, at);
        roll_tick(f);
        reached = f->doors.dead;
        door_heal(f);
        if (count_objects(f, "rejects/") == 1 && table_rows(f) == 0) {
            /* decoded as int, and then killed before anything was committed */
            met++;
            widen(f);
            roll_out(f);
            assert_int_equal(table_rows(f), 2);
            assert_int_equal(count_objects(f, "rejects/"), 0);
            assert_int_equal(look_sink(f).rows_rejected, 0);
        }
        roll_out(f);
        assert_books(f);
        fixture_close(f);
    }
    assert_true(met > 0);
}

/* ---- every seam call, every fault ---- */

static void send_three(struct roll_fixture *f)
{
    send_batch(f, "a", "{\"x\":1}\n{\"x\":\"no\"}\n{\"x\":2}");
    send_batch(f, "b", "{\"x\":\"no\"}");
    send_batch(f, "c", "{\"x\":3,\"who\":\"north\"}");
}

static void assert_three(struct roll_fixture *f)
{
    assert_int_equal(table_rows(f), 3);
    assert_int_equal(look_batch(f, "a").state, BATCH_COMMITTED);
    assert_int_equal(look_batch(f, "b").state, BATCH_REJECTED);
    assert_int_equal(look_batch(f, "c").state, BATCH_COMMITTED);
    assert_int_equal(look_sink(f).rows_rejected, 2);
    assert_int_equal(look_sink(f).last_n, 1);
    assert_int_equal(count_objects(f, "rejects/"), 2);
    assert_books(f);
    struct ledger_sink before = look_sink(f);
    /* a second recovery changes nothing (I26) */
    struct recover_report report = {0};
    must(f, recover_sinks(&f->env, &report, &f->error));
    assert_int_equal(look_sink(f).rows_committed, before.rows_committed);
    assert_int_equal(table_rows(f), 3);
    i64 deleted = 0;
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    assert_int_equal(deleted, 3);
    struct store_list list = {0};
    str prefix = str_format(f->arena, "_sink/%.*s/", STR_ARG(f->sink_id));
    must(f, store_list(&f->store, f->arena, prefix, STR(""), 100, &list, &f->error));
    for (size_t i = 0; i < list.count; i++) {
        str key = list.objects[i].key;
        assert_true(str_find(key, STR("/plans/")) >= 0 || str_find(key, STR("/rejects/")) >= 0);
    }
}

/* Calls of a whole first roll without a fault. */
static i64 count_calls(void)
{
    struct roll_fixture *f = fixture_open();
    send_three(f);
    door_arm(f, DOOR_SOUND, 0);
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    i64 calls = f->doors.calls;
    fixture_close(f);
    return calls;
}

static void fault_at_every_call(enum door_fault fault)
{
    i64 calls = count_calls();
    assert_true(calls > 20);
    for (i64 at = 1; at <= calls; at++) {
        struct roll_fixture *f = fixture_open();
        send_three(f);
        door_arm(f, fault, at);
        roll_tick(f);
        door_heal(f);
        roll_out(f);
        assert_three(f);
        fixture_close(f);
    }
}

static void a_call_that_fails_anywhere_loses_and_doubles_nothing(void **state)
{
    (void)state;
    fault_at_every_call(DOOR_FAILS);
}

static void iceberg_8_6_84_an_answer_lost_anywhere_loses_and_doubles_nothing(void **state)
{
    (void)state;
    fault_at_every_call(DOOR_LOSES);
}

static void a_death_before_any_call_loses_and_doubles_nothing(void **state)
{
    (void)state;
    fault_at_every_call(DOOR_DIES_BEFORE);
}

static void a_death_after_any_call_loses_and_doubles_nothing(void **state)
{
    (void)state;
    fault_at_every_call(DOOR_DIES_AFTER);
}

static void iceberg_8_6_85_a_409_that_committed_loses_and_doubles_nothing(void **state)
{
    (void)state;
    fault_at_every_call(DOOR_LIES_409);
}

/* ---- tables that are not what they were ---- */

static void a_table_that_is_gone_stops_the_sink(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    must(f, catalog_drop(&f->catalog, fixture_table(), &f->error));
    assert_int_equal(roll_tick(f), ROLL_DISABLED);
    assert_true(str_equal(look_sink(f).state_reason, STR("table_gone")));
    assert_int_equal(look_sink(f).waiting_batches, 1);
}

static void iceberg_8_1_26_a_table_that_was_replaced_is_not_written_to(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    must(f, catalog_drop(&f->catalog, fixture_table(), &f->error));
    make_table(f, PLAIN_TABLE);
    assert_int_equal(roll_tick(f), ROLL_DISABLED);
    assert_true(str_equal(look_sink(f).state_reason, STR("table_replaced")));
    assert_int_equal(table_rows(f), 0);
    assert_true(table_property(f).data == NULL);
}

static void a_renamed_table_is_followed(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    const struct table_name moved = {STR("demo"), STR("moved")};
    must(f, catalog_local_rename(catalog_local_of(&f->catalog), CATALOG_TABLE, fixture_table(),
                                 moved, &f->error));
    send_batch(f, "b", "{\"x\":2}");
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_true(str_equal(look_sink(f).table_name, STR("moved")));
    assert_int_equal(look_sink(f).rows_committed, 2);
}

static void another_sinks_claim_stops_the_first_roll(void **state)
{
    struct roll_fixture *f = *state;
    foreign_commit(f, "{'requirements':[],'updates':[{'action':'set-properties','updates':{"
                      "'lakehousebox.sink.roll':'00000000000000000000000000:snk_9:0:"
                      "00000000000000000000000000'}}]}");
    send_batch(f, "a", "{\"x\":1}");
    assert_int_equal(roll_tick(f), ROLL_DISABLED);
    assert_true(str_equal(look_sink(f).state_reason, STR("table_claimed")));
    assert_int_equal(table_rows(f), 0);
}

/* O4: one look may be stale; a later one, 5 s after, that agrees stops the sink. */
static void a_table_that_disagrees_twice_stops_the_sink(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    str right = table_property(f);
    send_batch(f, "b", "{\"x\":2}");
    foreign_set_property(f, STR("edited"));
    assert_int_equal(roll_tick(f), ROLL_LATER);
    assert_int_equal(look_sink(f).state, SINK_ACTIVE);
    foreign_set_property(f, right);
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_int_equal(table_rows(f), 2);
    send_batch(f, "c", "{\"x\":3}");
    foreign_set_property(f, STR("edited"));
    assert_int_equal(roll_tick(f), ROLL_LATER);
    assert_int_equal(roll_tick(f), ROLL_DISABLED);
    assert_true(str_equal(look_sink(f).state_reason, STR("ledger_mismatch")));
    assert_int_equal(table_rows(f), 2);
    assert_int_equal(look_sink(f).waiting_rows, 1);
}

static void a_table_ahead_of_the_ledger_stops_the_sink(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    struct uid id = id_uid_make(&f->seam);
    const struct plan_property ahead = {f->installation, f->sink_id, 9, id_uid_str(&id)};
    foreign_set_property(f, plan_print_property(f->arena, &ahead));
    /* There is no plan object from which it could recover. */
    assert_int_equal(roll_tick(f), ROLL_DISABLED);
    assert_true(str_equal(look_sink(f).state_reason, STR("ledger_mismatch")));
    assert_true(str_find(look_sink(f).last_error, STR("missing")) >= 0);
    assert_true(look_sink(f).recovering);
    assert_int_equal(roll_tick(f), ROLL_NOTHING);
    assert_int_equal(table_rows(f), 1);
}

/* ---- damage ---- */

/* Batches are verified two at a time: alone, as the first and as the second of a pair; with a crew
 * the pair behind meanwhile. */
static void change_each_of_five(struct roll_fixture *f, const char *name, i64 rows_before)
{
    enum { BATCHES = 5 };
    for (size_t changed = 0; changed < BATCHES; changed++) {
        for (size_t i = 0; i < BATCHES; i++) {
            char id[16];
            (void)snprintf(id, sizeof(id), "%s.%zu.%zu", name, i, changed);
            struct ledger_accept sent = send_batch(f, id, "{\"x\":1}");
            if (i == changed) {
                must(f, store_put(&f->store, sent.object_key, STR("{\"x\":9}"), NULL, &f->error));
            }
        }
        roll_out(f);
        assert_int_equal(table_rows(f), rows_before + (i64)(BATCHES - 1) * ((i64)changed + 1));
        assert_books(f);
    }
}

static void one_byte_that_changed_is_seen_in_each_batch_of_a_roll(void **state)
{
    struct roll_fixture *f = *state;
    struct crew *crew = crew_create(1, NULL);
    change_each_of_five(f, "alone", 0);
    f->env.crew = crew;
    change_each_of_five(f, "helped", 20);
    f->env.crew = NULL;
    assert_int_equal(look_sink(f).waiting_batches, 10);
    crew_destroy(crew);
}

static void damaged_bytes_are_held_and_the_others_go_on(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "k1", "{\"x\":1}");
    struct ledger_accept bad = send_batch(f, "k2", "{\"x\":2}\n{\"x\":22}");
    send_batch(f, "k3", "{\"x\":3}");
    must(f, store_put(&f->store, bad.object_key, STR("{\"x\":2}"), NULL, &f->error));
    roll_out(f);
    assert_int_equal(table_rows(f), 2);
    assert_true(look_batch(f, "k2").held);
    assert_true(str_equal(look_batch(f, "k2").held_reason, STR("object_damaged")));
    assert_int_equal(look_sink(f).waiting_batches, 1);
    assert_int_equal(look_sink(f).due_batches, 0);
    assert_int_equal(look_sink(f).rows_rejected, 0);
    assert_non_null(look_sink(f).last_error.data);
    assert_books(f);
    /* mended, it is rolled after an hour's look */
    must(f, store_put(&f->store, bad.object_key, STR("{\"x\":2}\n{\"x\":22}"), NULL, &f->error));
    must(f, sweep_held(&f->env, f->sink_id, &f->error));
    assert_true(look_batch(f, "k2").held);
    f->now += 3600 * TIME_SECOND_US;
    must(f, sweep_held(&f->env, f->sink_id, &f->error));
    assert_false(look_batch(f, "k2").held);
    roll_out(f);
    assert_int_equal(table_rows(f), 4);
    assert_books(f);
}

static void a_lost_object_is_held_and_can_be_discarded(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "k1", "{\"x\":1}");
    struct ledger_accept lost = send_batch(f, "k2", "{\"x\":2}");
    must(f, store_remove(&f->store, lost.object_key, &f->error));
    assert_int_equal(roll_tick(f), ROLL_LATER);
    assert_false(look_batch(f, "k2").held);
    roll_out(f);
    assert_true(str_equal(look_batch(f, "k2").held_reason, STR("object_missing")));
    assert_int_equal(table_rows(f), 1);
    must(f, ledger_discard_held(&f->db, f->sink_id, STR("k2"), &f->error));
    assert_int_equal(look_batch(f, "k2").state, BATCH_DISCARDED);
    assert_books(f);
}

/* Decisions 31. */
static void a_plan_that_kills_the_process_stops_its_sink(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    for (int deaths = 0; deaths < PLAN_BEGUN_MAX; deaths++) {
        f->before_commit = die_before_the_commit;
        roll_tick(f);
        door_heal(f);
        assert_int_equal(look_sink(f).state, SINK_ACTIVE);
    }
    roll_tick(f);
    assert_int_equal(look_sink(f).state, SINK_DISABLED);
    assert_true(str_equal(look_sink(f).state_reason, STR("crash_loop")));
    assert_int_equal(look_sink(f).waiting_rows, 1);
    must(f, ledger_resume_sink(&f->db, f->sink_id, &f->error));
    roll_out(f);
    assert_int_equal(table_rows(f), 2);
    assert_books(f);
}

#define TEST(name)       cmocka_unit_test_setup_teardown(name, open_plain, close_any)
#define TEST_ALONE(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_roll_commits_every_row_once),
        TEST(the_first_roll_claims_and_adds_the_column),
        TEST(what_the_table_sets_already_is_left_alone),
        TEST_ALONE(a_claim_without_a_new_column_moves_main),
        TEST(the_summary_tells_what_was_rolled),
        TEST(objects_go_only_after_the_finish),
        TEST(rejected_rows_are_recorded_and_counted),
        TEST(a_plan_whose_rows_are_all_rejected_commits_nothing),
        TEST_ALONE(a_verdict_that_was_not_written_is_made_up_for),
        TEST_ALONE(rejects_of_an_earlier_schema_go),
        TEST_ALONE(a_call_that_fails_anywhere_loses_and_doubles_nothing),
        TEST_ALONE(iceberg_8_6_84_an_answer_lost_anywhere_loses_and_doubles_nothing),
        TEST_ALONE(a_death_before_any_call_loses_and_doubles_nothing),
        TEST_ALONE(a_death_after_any_call_loses_and_doubles_nothing),
        TEST_ALONE(iceberg_8_6_85_a_409_that_committed_loses_and_doubles_nothing),
        TEST(a_table_that_is_gone_stops_the_sink),
        TEST(iceberg_8_1_26_a_table_that_was_replaced_is_not_written_to),
        TEST(a_renamed_table_is_followed),
        TEST(another_sinks_claim_stops_the_first_roll),
        TEST(a_table_that_disagrees_twice_stops_the_sink),
        TEST(a_table_ahead_of_the_ledger_stops_the_sink),
        TEST(one_byte_that_changed_is_seen_in_each_batch_of_a_roll),
        TEST(damaged_bytes_are_held_and_the_others_go_on),
        TEST(a_lost_object_is_held_and_can_be_discarded),
        TEST(a_plan_that_kills_the_process_stops_its_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
