#include "roll_fixture.h"

#include "base/buf.h"

#include "sink/roll_rows.h"

#include <stdio.h>

/* What becomes of rows: partitions, their limits, batches that are no JSON, plans cut in two. */

#define PARTITIONED_TABLE                                                                          \
    "{'name':'events','schema':{'type':'struct','fields':["                                        \
    "{'id':1,'name':'ts','required':false,'type':'timestamptz'},"                                  \
    "{'id':2,'name':'x','required':true,'type':'int'}]},"                                          \
    "'partition-spec':{'spec-id':0,'fields':["                                                     \
    "{'source-id':1,'field-id':1000,'name':'ts_hour','transform':'hour'}]},"                       \
    "'properties':{'format-version':'3'}}"

static int open_plain(void **state)
{
    *state = fixture_open();
    return 0;
}

static int open_partitioned(void **state)
{
    *state = fixture_open_with(PARTITIONED_TABLE);
    return 0;
}

static int close_any(void **state)
{
    fixture_close(*state);
    return 0;
}

static i64 count_files(struct roll_fixture *f)
{
    struct table table = load_table(f);
    i64 main_id = 0;
    i64 files = 0;
    assert_true(metadata_main(table.metadata, &main_id));
    const json_t *snapshot = metadata_snapshot(table.metadata, main_id);
    const char *path = json_string_value(json_object_get(snapshot, "manifest-list"));
    str bytes;
    must(f, location_get(&f->sound_places, f->arena, str_from(path), &bytes, &f->error));
    struct manifest_list list = {0};
    must(f, manifest_list_read(f->arena, bytes, &list, &f->error));
    for (size_t i = 0; i < list.count; i++) {
        files += list.files[i].added_files + list.files[i].existing_files;
    }
    table_close(&table);
    return files;
}

/* `count` rows an hour apart from `first` hours after 2020 on. */
static const char *hourly(struct roll_fixture *f, i64 first, i64 count)
{
    buf body = buf_create(f->arena, 64 * KIB, 64 * MIB);
    for (i64 i = 0; i < count; i++) {
        char at[TIME_TEXT_SIZE];
        instant hour = 1577836800000000 + (first + i) * 3600 * TIME_SECOND_US;
        buf_append_format(&body, "%s{\"ts\":\"%.*s\",\"x\":%lld}", i > 0 ? "\n" : "",
                          STR_ARG(time_format(hour, at)), (long long)i);
    }
    buf_append_byte(&body, 0);
    return body.data;
}

static void each_partition_value_gets_one_file(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a",
               "{\"ts\":\"2026-05-01T10:00:00Z\",\"x\":1}\n{\"ts\":\"1969-12-31T23:00:00Z\","
               "\"x\":0}\n{\"x\":5}");
    send_batch(f, "b", "{\"ts\":\"2026-05-01T10:59:59Z\",\"x\":2}\n{\"x\":6}\n{\"x\":\"no\"}");
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_int_equal(table_rows(f), 5);
    assert_int_equal(count_files(f), 3);
    assert_int_equal(look_sink(f).rows_rejected, 1);
    assert_books(f);
}

static void rows_of_the_smallest_partitions_past_the_limit_are_rejected(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "k1", hourly(f, 0, 2100));
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_int_equal(table_rows(f), 2000);
    assert_int_equal(count_files(f), 2000);
    assert_int_equal(look_batch(f, "k1").rows_rejected, 100);
    struct ledger_count *reasons = NULL;
    str *recent = NULL;
    size_t reason_count = 0;
    size_t recent_count = 0;
    must(f, ledger_list_rejects(&f->db, f->arena, f->sink_id, &reasons, &reason_count, &recent,
                                &recent_count, &f->error));
    assert_int_equal(reason_count, 1);
    assert_true(str_equal(reasons[0].name, STR("partition_limit")));
    assert_int_equal(reasons[0].count, 100);
    assert_int_equal(recent_count, 5);
    assert_int_equal(look_sink(f).state, SINK_ACTIVE);
    assert_books(f);
}

static void a_plan_stops_taking_batches_at_500_partitions(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", hourly(f, 0, 300));
    send_batch(f, "b", hourly(f, 300, 200));
    send_batch(f, "c", hourly(f, 500, 300));
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_int_equal(look_batch(f, "b").state, BATCH_COMMITTED);
    assert_int_equal(look_batch(f, "c").state, BATCH_PENDING);
    assert_int_equal(table_rows(f), 500);
    roll_out(f);
    assert_int_equal(table_rows(f), 800);
    assert_int_equal(look_sink(f).rows_rejected, 0);
    assert_int_equal(look_sink(f).last_n, 2);
    assert_books(f);
}

static void a_partitioned_roll_killed_anywhere_loses_nothing(void **state)
{
    (void)state;
    bool reached = true;
    for (i64 at = 1; reached; at++) {
        struct roll_fixture *f = fixture_open_with(PARTITIONED_TABLE);
        send_batch(f, "a", hourly(f, 0, 3));
        send_batch(f, "b", "{\"x\":\"no\"}\n{\"x\":1}");
        door_arm(f, at % 2 == 0 ? DOOR_DIES_AFTER : DOOR_DIES_BEFORE, at);
        roll_tick(f);
        reached = f->doors.dead;
        door_heal(f);
        roll_out(f);
        assert_int_equal(table_rows(f), 4);
        assert_int_equal(look_sink(f).rows_rejected, 1);
        assert_books(f);
        fixture_close(f);
    }
}

/* No intake of ours stores such bytes; feeders may. The hash is right, so it is a verdict. */
static void a_batch_that_is_no_json_is_rejected_whole_and_alone(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "good", "{\"x\":1}");
    send_batch(f, "broken", "{\"x\":2}\n{\"x\":\n{\"x\":3}");
    send_batch(f, "late", "{\"x\":4}");
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_int_equal(look_batch(f, "good").state, BATCH_COMMITTED);
    assert_int_equal(look_batch(f, "broken").state, BATCH_REJECTED);
    assert_int_equal(look_batch(f, "broken").rows_rejected, 3);
    assert_int_equal(look_batch(f, "late").state, BATCH_COMMITTED);
    assert_int_equal(table_rows(f), 2);
    struct store_object file = {0};
    str key = batch_rejects_key(f->arena, f->sink_id, STR("broken"));
    must(f, store_get(&f->store, f->arena, key, &file, &f->error));
    assert_int_equal(count_lines(file.body), 1);
    assert_true(str_find(file.body, STR("\"row\":null,\"reason\":\"batch_unreadable\"")) >= 0);
    assert_books(f);
}

/* The writer's own refusal, which no row's check foretells. */
static void an_unwritable_batch_is_rejected_alone(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "early", "{\"x\":1}");
    send_batch(f, "poison", "{\"x\":2}\n\n{\"x\":\"?\"}\n{\"x\":22}");
    send_batch(f, "late", "{\"x\":3}");
    f->doors.poison = STR("bad_number"); /* the rejects file is put, the data file is not begun */
    for (int i = 0; i < 6 && look_sink(f).waiting_batches > 0; i++) {
        (void)roll_tick(f);
    }
    assert_int_equal(look_batch(f, "early").state, BATCH_COMMITTED);
    assert_int_equal(look_batch(f, "poison").state, BATCH_REJECTED);
    assert_int_equal(look_batch(f, "poison").rows_rejected, 3);
    assert_int_equal(look_batch(f, "late").state, BATCH_COMMITTED);
    assert_int_equal(table_rows(f), 2);
    struct store_object file = {0};
    str key = batch_rejects_key(f->arena, f->sink_id, STR("poison"));
    must(f, store_get(&f->store, f->arena, key, &file, &f->error));
    assert_int_equal(count_lines(file.body), 3);
    assert_true(str_find(file.body, STR("\"row\":0,\"reason\":\"batch_unwritable\",\"column\":null,"
                                        "\"detail\":\"the memory set aside")) >= 0);
    assert_true(str_find(file.body, STR("\"row\":3,\"reason\":\"batch_unwritable\"")) >= 0);
    assert_true(str_find(file.body, STR("\"data\":{\"x\":22}}")) >= 0);
    assert_true(str_find(file.body, f->doors.poison) < 0);
    assert_books(f);
}

/* Larger than any sender may send: what it says is not looked at. */
static void a_batch_too_large_is_rejected_whole_and_alone(void **state)
{
    struct roll_fixture *f = *state;
    buf body = buf_create(f->arena, ROWS_BATCH_BYTES_MAX + 16, ROWS_BATCH_BYTES_MAX + 16);
    buf_append(&body, STR("{\"x\":1}"));
    memset(body.data + body.size, ' ', ROWS_BATCH_BYTES_MAX);
    body.data[ROWS_BATCH_BYTES_MAX + 1] = 0;
    send_batch(f, "large", body.data);
    send_batch(f, "late", "{\"x\":3}");
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_int_equal(look_batch(f, "large").state, BATCH_REJECTED);
    assert_int_equal(look_batch(f, "late").state, BATCH_COMMITTED);
    struct store_object file = {0};
    str key = batch_rejects_key(f->arena, f->sink_id, STR("large"));
    must(f, store_get(&f->store, f->arena, key, &file, &f->error));
    assert_true(str_find(file.body, STR("\"row\":null,\"reason\":\"batch_too_large\"")) >= 0);
    assert_true(str_find(file.body, STR("\"data\":null")) >= 0);
    assert_int_equal(table_rows(f), 1);
    assert_books(f);
}

/* Stored bytes whose row count is not what the intake said: a fault of ours. Nothing is guessed. */
static void a_count_that_does_not_agree_stops_the_roll(void **state)
{
    struct roll_fixture *f = *state;
    str body = STR("{\"x\":1}\n{\"x\":2}");
    struct ledger_accept item = describe_batch(f, "a", body);
    item.rows = 3;
    must(f, store_put(&f->store, item.object_key, body, NULL, &f->error));
    accept_item(f, &item);
    enum roll_end end = ROLL_NOTHING;
    assert_int_equal(roll_sink(&f->env, f->sink_id, STR("asked"), &end, NULL), CORRUPT);
    assert_int_equal(end, ROLL_LATER);
    assert_int_equal(table_rows(f), 0);
    assert_int_equal(look_sink(f).waiting_rows, 3);
    assert_true(str_find(look_sink(f).last_error, STR("2 rows, 3 expected")) >= 0);
}

static void a_long_row_is_shown_cut_and_stored_whole(void **state)
{
    struct roll_fixture *f = *state;
    buf body = buf_create(f->arena, 4 * KIB, 64 * KIB);
    buf_append(&body, STR("{\"x\":1,\"nope\":\""));
    for (int i = 0; i < 1000; i++) {
        buf_append(&body, STR("\xC3\xA9"));
    }
    buf_append(&body, STR("\"}"));
    buf_append_byte(&body, 0);
    send_batch(f, "a", body.data);
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    struct ledger_count *reasons = NULL;
    str *recent = NULL;
    size_t reason_count = 0;
    size_t recent_count = 0;
    must(f, ledger_list_rejects(&f->db, f->arena, f->sink_id, &reasons, &reason_count, &recent,
                                &recent_count, &f->error));
    assert_int_equal(recent_count, 1);
    assert_true(recent[0].size < 1500);
    json_t *record = json_loadb(recent[0].data, recent[0].size, 0, NULL);
    assert_non_null(record);
    assert_true(json_is_string(json_object_get(record, "data")));
    json_decref(record);
    struct store_object file = {0};
    str key = batch_rejects_key(f->arena, f->sink_id, STR("a"));
    must(f, store_get(&f->store, f->arena, key, &file, &f->error));
    assert_true(file.body.size > 2000);
}

static void unknown_fields_can_be_ignored(void **state)
{
    struct roll_fixture *f = *state;
    str ignore = STR("ignore");
    const struct ledger_sink_patch patch = {.unknown_fields = &ignore};
    must(f, ledger_patch_sink(&f->db, f->sink_id, &patch, &f->error));
    send_batch(f, "a", "{\"x\":1,\"nope\":2}");
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_int_equal(table_rows(f), 1);
    assert_int_equal(look_sink(f).rows_rejected, 0);
}

static void a_table_a_sink_cannot_write_stops_it(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    foreign_commit(f, "{'requirements':[],'updates':[{'action':'add-spec','spec':{'fields':[{"
                      "'source-id':1,'name':'x','transform':'identity'}]}},"
                      "{'action':'set-default-spec','spec-id':-1}]}");
    assert_int_equal(roll_tick(f), ROLL_DISABLED);
    assert_true(str_equal(look_sink(f).state_reason, STR("schema_unsupported")));
    assert_int_equal(look_sink(f).waiting_batches, 1);
}

static void a_sink_whose_capture_column_is_gone_stops(void **state)
{
    struct roll_fixture *f = *state;
    str gone = STR("capture:gone");
    str ignore = STR("ignore");
    struct ledger_sink_patch patch = {.unknown_fields = &gone};
    must(f, ledger_patch_sink(&f->db, f->sink_id, &patch, &f->error));
    send_batch(f, "a", "{\"x\":1,\"nope\":2}");
    assert_int_equal(roll_tick(f), ROLL_DISABLED);
    assert_true(str_equal(look_sink(f).state_reason, STR("schema_unsupported")));
    assert_true(str_find(look_sink(f).last_error, STR("gone is no optional string")) >= 0);
    assert_int_equal(look_sink(f).waiting_batches, 1);
    patch = (struct ledger_sink_patch){.unknown_fields = &ignore};
    must(f, ledger_patch_sink(&f->db, f->sink_id, &patch, &f->error));
    must(f, ledger_resume_sink(&f->db, f->sink_id, &f->error));
    roll_out(f);
    assert_int_equal(table_rows(f), 1);
    assert_books(f);
}

/* ---- sweeps and recovery ---- */

static void put_rejects(struct roll_fixture *f, const char *sink_id, const char *name)
{
    str key = str_format(f->arena, "_sink/%s/rejects/%s.ndjson", sink_id, name);
    must(f, store_put(&f->store, key, STR("{}\n"), NULL, &f->error));
}

static void old_rejects_go_on_every_page_and_of_this_sink_alone(void **state)
{
    struct roll_fixture *f = *state;
    for (int i = 0; i < 20; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "old-%02d", i);
        put_rejects(f, "snk_000000000001", name);
        put_rejects(f, "snk_0000000000012", name);
        (void)snprintf(name, sizeof(name), "new-%02d", i);
        put_rejects(f, "snk_000000000001", name);
    }
    i64 deleted = 0;
    must(f, sweep_rejects(&f->env, f->sink_id, &deleted, &f->error));
    assert_int_equal(deleted, 20);
    assert_int_equal(count_objects(f, "rejects/new-"), 20);
    assert_int_equal(count_objects(f, "rejects/old-"), 0);
    struct store_list list = {0};
    must(f, store_list(&f->store, f->arena, STR("_sink/snk_0000000000012/"), STR(""), 100, &list,
                       &f->error));
    assert_int_equal(list.count, 20);
    must(f, sweep_rejects(&f->env, f->sink_id, &deleted, &f->error));
    assert_int_equal(deleted, 0);
}

static void an_object_that_cannot_be_deleted_is_tried_again(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    i64 deleted = 0;
    door_arm(f, DOOR_FAILS, 3); /* after the list, and the sync of the ledger */
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    assert_int_equal(deleted, 0);
    door_heal(f);
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    assert_int_equal(deleted, 1);
}

static void recovery_settles_what_was_left_and_nothing_else(void **state)
{
    (void)state;
    bool reached = true;
    for (i64 at = 1; reached; at++) {
        struct roll_fixture *f = fixture_open();
        send_batch(f, "a", "{\"x\":1}");
        door_arm(f, DOOR_DIES_AFTER, at);
        roll_tick(f);
        reached = f->doors.dead;
        door_heal(f);
        f->now += 60 * TIME_SECOND_US;
        bool live = look_sink(f).has_live_plan;
        struct recover_report report = {0};
        must(f, recover_sinks(&f->env, &report, &f->error));
        assert_int_equal(report.sinks, 1);
        assert_int_equal(report.settled, live ? 1 : 0);
        assert_int_equal(report.waiting, 0);
        assert_false(look_sink(f).has_live_plan);
        assert_books(f);
        fixture_close(f);
    }
}

static void recovery_finishes_a_delete(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    must(f, ledger_begin_delete(&f->db, f->sink_id, &f->error));
    struct recover_report report = {0};
    must(f, recover_sinks(&f->env, &report, &f->error));
    assert_int_equal(report.deleted, 1);
    assert_int_equal(look_sink(f).state, SINK_DELETED);
    assert_int_equal(look_sink(f).rows_discarded, 1);
    must(f, recover_sinks(&f->env, &report, &f->error));
    assert_int_equal(report.deleted, 0);
    assert_books(f);
}

#define PLAIN(name)       cmocka_unit_test_setup_teardown(name, open_plain, close_any)
#define PARTITIONED(name) cmocka_unit_test_setup_teardown(name, open_partitioned, close_any)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PARTITIONED(each_partition_value_gets_one_file),
        PARTITIONED(rows_of_the_smallest_partitions_past_the_limit_are_rejected),
        PARTITIONED(a_plan_stops_taking_batches_at_500_partitions),
        cmocka_unit_test(a_partitioned_roll_killed_anywhere_loses_nothing),
        PLAIN(a_batch_that_is_no_json_is_rejected_whole_and_alone),
        PLAIN(an_unwritable_batch_is_rejected_alone),
        PLAIN(a_batch_too_large_is_rejected_whole_and_alone),
        PLAIN(a_count_that_does_not_agree_stops_the_roll),
        PLAIN(a_long_row_is_shown_cut_and_stored_whole),
        PLAIN(unknown_fields_can_be_ignored),
        PLAIN(a_table_a_sink_cannot_write_stops_it),
        PLAIN(a_sink_whose_capture_column_is_gone_stops),
        PLAIN(old_rejects_go_on_every_page_and_of_this_sink_alone),
        PLAIN(an_object_that_cannot_be_deleted_is_tried_again),
        cmocka_unit_test(recovery_settles_what_was_left_and_nothing_else),
        PLAIN(recovery_finishes_a_delete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
