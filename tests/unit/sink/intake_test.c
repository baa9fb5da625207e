/* Accepting: promises, groups, refusals, waits, keys. */
#include "intake_fixture.h"

/* ---- promises ---- */

static void a_batch_is_stored_recorded_and_then_answered(void **state)
{
    (void)state;
    struct answer answer;
    start_id(&answer, "b:1", "[{\"x\":1},7,\n{\"who\":\"ann\"}]");
    finish(&answer);
    assert_int_equal(answer.status, 202);
    struct ledger_batch batch = row_of("b:1");
    char at[TIME_TEXT_SIZE];
    str wanted = str_format(f.arena,
                            "{\"accepted\":2,\"rejected\":1,\"reasons\":[{\"row\":1,\"reason\":"
                            "\"not_an_object\",\"detail\":\"a number is no object\"}],"
                            "\"batch_id\":\"b:1\",\"bytes\":22,\"received_at\":\"%.*s\","
                            "\"state\":\"pending\"}",
                            STR_ARG(time_format(batch.received_at, at)));
    assert_string_equal(answer.body.data, wanted.data);
    assert_verifies(&batch, "{\"x\":1}\n\n{\"who\":\"ann\"}");
    assert_int_equal(batch.rows, 2);
    assert_int_equal(batch.refused, 1);
    assert_true(str_starts(batch.object_key, STR("_sink/snk_0123456789ab/b%3A1.")));
    assert_int_equal(count_files("rejects/b%3A1~"), 1);
    struct store_object object = {0};
    assert_int_equal(store_head(&f.gate.inner, f.arena, batch.object_key, &object, NULL), OK);
    assert_true(str_equal(object.meta.content_type, STR("application/x-ndjson")));
    assert_true(str_equal(store_meta_value(&object.meta, STR("sink")), SINK));
    assert_true(str_equal(store_meta_value(&object.meta, STR("rows")), STR("2")));
    assert_true(str_starts(store_meta_value(&object.meta, STR("batches")), STR("b:1,0,22,2,1,")));
    assert_int_equal(atomic_load(&f.told), 1);
    forget(&answer);
}

static void the_same_bytes_again_are_a_duplicate(void **state)
{
    (void)state;
    struct answer first;
    struct answer again;
    start_id(&first, "d", "[{\"x\":1},2]");
    finish(&first);
    start_id(&again, "d", "[{\"x\":1},2]");
    finish(&again);
    assert_int_equal(again.status, 202);
    str wanted = str_format(f.arena, "%.*s,\"duplicate\":true}", (int)first.body.size - 1,
                            first.body.data);
    assert_string_equal(again.body.data, wanted.data);
    assert_int_equal(count_files(""), 2); /* the object and its rejects file */
    struct ledger_sink sink = {0};
    assert_int_equal(ledger_find_sink(&f.db, f.arena, STR(""), SINK, &sink, NULL), OK);
    assert_int_equal(sink.batches, 1);
    assert_int_equal(sink.duplicates, 1);
    forget(&first);
    forget(&again);
}

static void other_bytes_under_a_used_id_are_refused(void **state)
{
    (void)state;
    assert_accepted("r", "[{\"x\":1}]");
    assert_refused("r", "[{\"x\":2}]", ERROR_IDEMPOTENCY_KEY_REUSED);
    /* The stored bytes are the same, the bytes as sent are not. */
    assert_refused("r", "[{\"x\":1} ]", ERROR_IDEMPOTENCY_KEY_REUSED);
    struct ledger_batch batch = row_of("r");
    assert_verifies(&batch, "{\"x\":1}");
    assert_int_equal(count_files(""), 1);
}

static void an_empty_array_stores_nothing_and_leaves_the_id_free(void **state)
{
    (void)state;
    struct answer answer;
    start_id(&answer, "e", "[ ]");
    finish(&answer);
    assert_int_equal(answer.status, 202);
    assert_has(&answer, "\"accepted\":0,\"rejected\":0,\"reasons\":[]");
    assert_has(&answer, "\"state\":\"empty\"");
    assert_no_row("e");
    assert_int_equal(count_files(""), 0);
    assert_accepted("e", "[{}]");
    forget(&answer);
}

static void a_batch_refused_whole_leaves_only_its_rejects(void **state)
{
    (void)state;
    struct answer answer;
    start_id(&answer, "w", "[1,2]");
    finish(&answer);
    assert_int_equal(answer.status, 202);
    assert_has(&answer, "\"accepted\":0,\"rejected\":2");
    assert_has(&answer, "\"bytes\":0");
    assert_has(&answer, "\"state\":\"rejected\"");
    struct ledger_batch batch = row_of("w");
    assert_int_equal(batch.state, BATCH_REJECTED);
    assert_int_equal(batch.object_key.size, 0);
    assert_int_equal(count_files(""), 1);
    assert_int_equal(count_files("rejects/w~"), 1);
    assert_int_equal(atomic_load(&f.told), 0);
    forget(&answer);
}

static void bodies_that_are_not_json_store_nothing(void **state)
{
    (void)state;
    assert_refused("j", "[{\"x\":1}", ERROR_INVALID_JSON);
    assert_no_row("j");
    assert_int_equal(count_files(""), 0);
}

/* ---- grouping ---- */

enum { MANY = 40 };

/* Sends five batches while the PUT of another one is held back. Returns how many objects all six
 * made. */
static size_t group_round(size_t round)
{
    static const char *const bodies[] = {"[{}]", "[{\"n\":1}]",   "[{\"n\":22},5]",
                                         "[1]",  "[{\"n\":444}]", "[{}]"};
    static const char *const stored[] = {"{}", "{\"n\":1}",   "{\"n\":22}\n",
                                         NULL, "{\"n\":444}", "{}"};
    struct answer answers[ARRAY_COUNT(bodies)];
    size_t before = count_files("") - count_files("rejects/");
    gate_set(&f.gate, true);
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
        start_id(&answers[i], str_format(f.arena, "g%zu-%zu", round, i).data, bodies[i]);
        if (i == 0) {
            gate_await(&f.gate, 1);
        }
    }
    seam_wait_us(seam_system(), (i64)round * 1000);
    gate_set(&f.gate, false);
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
        finish(&answers[i]);
        assert_int_equal(answers[i].status, 202);
        forget(&answers[i]);
        struct ledger_batch batch = row_of(str_format(f.arena, "g%zu-%zu", round, i).data);
        if (stored[i] == NULL) {
            assert_int_equal(batch.object_key.size, 0);
        } else {
            assert_verifies(&batch, stored[i]);
        }
    }
    return count_files("") - count_files("rejects/") - before;
}

/* Whether the workers have seen all five before the gate opens is up to the machine, so rounds
 * leave them more and more time: without grouping none of them makes two objects. */
static void what_waits_during_a_put_becomes_one_object(void **state)
{
    (void)state;
    size_t objects = 0;
    for (size_t round = 0; round < 100 && objects != 2; round++) {
        objects = group_round(round);
        assert_true(objects >= 2 && objects <= 5);
    }
    assert_int_equal(objects, 2);
}

static void the_metadata_bounds_a_group(void **state)
{
    (void)state;
    static struct answer answers[MANY];
    static char ids[MANY][BATCH_ID_MAX + 1];
    gate_set(&f.gate, true);
    for (size_t i = 0; i < MANY; i++) {
        memset(ids[i], 'a', BATCH_ID_MAX);
        (void)snprintf(ids[i], 8, "%05zu", i);
        ids[i][5] = '-';
        start_id(&answers[i], ids[i], "[{\"x\":1}]");
    }
    gate_await(&f.gate, 1);
    gate_set(&f.gate, false);
    for (size_t i = 0; i < MANY; i++) {
        finish(&answers[i]);
        assert_int_equal(answers[i].status, 202);
        forget(&answers[i]);
    }
    struct store_list list = {0};
    assert_int_equal(store_list(&f.gate.inner, f.arena, STR("_sink/"), STR(""), 1000, &list, NULL),
                     OK);
    size_t batches = 0;
    for (size_t i = 0; i < list.count; i++) {
        struct store_object object = {0};
        assert_int_equal(store_head(&f.gate.inner, f.arena, list.objects[i].key, &object, NULL),
                         OK);
        size_t bytes = 0;
        for (size_t j = 0; j < object.meta.count; j++) {
            bytes += object.meta.entries[j].name.size + object.meta.entries[j].value.size;
        }
        assert_true(bytes <= 1900);
        str rest = store_meta_value(&object.meta, STR("batches"));
        str entry = {0};
        while (str_next(&rest, ';', &entry)) {
            batches++;
        }
    }
    assert_int_equal(batches, MANY);
    for (size_t i = 0; i < MANY; i++) {
        struct ledger_batch batch = row_of(ids[i]);
        assert_verifies(&batch, "{\"x\":1}");
    }
}

static void simultaneous_sends_of_one_id_are_stored_once(void **state)
{
    (void)state;
    static struct answer answers[MANY];
    size_t duplicates = 0;
    size_t reused = 0;
    gate_set(&f.gate, true);
    for (size_t i = 0; i < MANY; i++) {
        start_id(&answers[i], "same", i % 4 == 3 ? "[{\"x\":2}]" : "[{\"x\":1}]");
    }
    gate_await(&f.gate, 1);
    gate_set(&f.gate, false);
    for (size_t i = 0; i < MANY; i++) {
        finish(&answers[i]);
        bool duplicate = str_find(answers[i].body, STR("\"duplicate\":true")) > 0;
        duplicates += duplicate ? 1 : 0;
        reused += answers[i].code == ERROR_IDEMPOTENCY_KEY_REUSED ? 1 : 0;
        forget(&answers[i]);
    }
    assert_int_equal(1 + duplicates + reused, MANY);
    assert_true(duplicates == 29 || duplicates == 9); /* by which body came first */
    assert_int_equal(count_files(""), 1);
}

/* The second send of an id waits for the first one's transaction. By then more wait than went into
 * its group: they go on, and it is answered from the ledger. */
static void a_second_send_of_an_id_is_looked_up_while_others_go_on(void **state)
{
    (void)state;
    enum { SENDS = 30 };
    static struct answer answers[SENDS];
    gate_set(&f.gate, true);
    for (int i = 0; i < SENDS; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "id%02d", i == 2 ? 1 : i);
        start_id(&answers[i], id, "[{\"x\":1}]");
        if (i == 0) {
            gate_await(&f.gate, 1);
        } else {
            turns_await(i); /* so that they stand in this order */
        }
    }
    gate_set(&f.gate, false);
    for (int i = 0; i < SENDS; i++) {
        finish(&answers[i]);
        assert_int_equal(answers[i].status, 202);
        assert_int_equal(str_find(answers[i].body, STR("\"duplicate\":true")) >= 0, i == 2);
        forget(&answers[i]);
    }
    assert_int_equal(count_files(""), 3);
}

/* The same where nothing else waits any more: there is no group left to be stored. */
static void a_second_send_of_an_id_alone_is_answered_from_the_ledger(void **state)
{
    (void)state;
    static const char *const ids[] = {"held", "twice", "twice"};
    struct answer answers[ARRAY_COUNT(ids)];
    gate_set(&f.gate, true);
    for (int i = 0; i < (int)ARRAY_COUNT(ids); i++) {
        start_id(&answers[i], ids[i], "[{\"x\":1}]");
        if (i == 0) {
            gate_await(&f.gate, 1);
        } else {
            turns_await(i); /* so that they stand in this order */
        }
    }
    gate_set(&f.gate, false);
    for (int i = 0; i < (int)ARRAY_COUNT(ids); i++) {
        finish(&answers[i]);
        assert_int_equal(answers[i].status, 202);
        assert_int_equal(str_find(answers[i].body, STR("\"duplicate\":true")) >= 0, i == 2);
        forget(&answers[i]);
    }
    assert_int_equal(count_files(""), 2);
}

static void a_full_bucket_takes_nothing_but_knows_its_batches(void **state)
{
    (void)state;
    intake_close(f.intake);
    open_intake(1500); /* an object and what is kept beside it */
    assert_accepted("a", "[{\"x\":1}]");
    char body[2000];
    (void)snprintf(body, sizeof(body), "[{\"x\":\"%01500d\"}]", 0);
    assert_refused("b", body, ERROR_QUOTA_EXCEEDED);
    assert_no_row("b");
    struct answer answer;
    start_id(&answer, "a", "[{\"x\":1}]");
    finish(&answer);
    assert_has(&answer, "\"duplicate\":true");
    forget(&answer);
}

static void a_dry_run_stores_nothing_whatever_it_says(void **state)
{
    (void)state;
    struct answer answer;
    start(&answer, SINK, f.key,
          (struct intake_request){.batch_id = STR("dry"), .mode = INTAKE_DRY_RUN},
          STR("[{\"x\":1}]"));
    finish(&answer);
    assert_int_equal(answer.status, 0); /* there is no such table */
    assert_int_not_equal(answer.code, ERROR_NONE);
    forget(&answer);
    assert_no_row("dry");
    assert_int_equal(count_files(""), 0);
}

/* ---- trouble ---- */

static void a_failed_put_answers_503_and_records_nothing(void **state)
{
    (void)state;
    f.gate.fail = IO;
    f.gate.code = ERROR_DISK_LOW;
    assert_refused("p", "[{}]", ERROR_DISK_LOW);
    assert_no_row("p");
    f.gate.fail = UNKNOWN;
    f.gate.code = ERROR_STORE_DOWN;
    assert_refused("p", "[{}]", ERROR_STORE_DOWN);
    assert_no_row("p");
    f.gate.fail = OK;
    assert_accepted("p", "[{}]");
}

static err move_body(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    return db_run(tx, error, "UPDATE sink SET warehouse = 'nowhere' WHERE id = ?1", DB_T(SINK));
}

static void a_sink_of_an_unknown_warehouse_answers_503(void **state)
{
    (void)state;
    assert_int_equal(db_transact(&f.db, move_body, NULL, NULL), OK);
    intake_notify_sink(f.intake, SINK);
    assert_refused("a", "[{}]", ERROR_STORE_DOWN);
    assert_no_row("a");
}

/* The renewal of the lease is a transaction, too; it comes every 10 s. */
static void a_lost_ledger_answer_is_looked_up(void **state)
{
    (void)state;
    struct answer answer;
    atomic_store(&f.lossy.loss, LOSE_THE_ANSWER);
    start_id(&answer, "l", "[{\"x\":1}]");
    finish(&answer);
    assert_int_equal(answer.status, 202);
    struct ledger_batch batch = row_of("l");
    assert_verifies(&batch, "{\"x\":1}");
    forget(&answer);
}

static void a_lost_transaction_is_503_and_deletes_nothing(void **state)
{
    (void)state;
    atomic_store(&f.lossy.loss, LOSE_THE_WORK);
    assert_refused("l", "[{\"x\":1}]", ERROR_LEDGER_DOWN);
    assert_no_row("l");
    assert_int_equal(count_files(""), 1); /* an orphan: the transaction may still commit */
    assert_accepted("l", "[{\"x\":1}]");
}

static void a_sink_deleted_meanwhile_answers_410_and_keeps_nothing(void **state)
{
    (void)state;
    assert_int_equal(ledger_begin_delete(&f.db, SINK, NULL), OK);
    assert_refused("x", "[{},1]", ERROR_SINK_DELETED);
    assert_int_equal(count_files(""), 0);
    struct intake_sink *sink = NULL;
    struct error error = {0};
    intake_notify_sink(f.intake, SINK);
    assert_int_equal(
        intake_authenticate(f.intake, SINK, bearer(f.key), NULL, STR("1.1.1.1"), &sink, &error),
        DENIED);
    assert_int_equal(error.code, ERROR_SINK_DELETED);
}

static void the_head_alone_is_enough_to_refuse(void **state)
{
    (void)state;
    struct intake_request request = {.batch_id = STR("a b"), .content_length = 10};
    assert_not_begun(request, INVALID, ERROR_BAD_IDEMPOTENCY_KEY);
    request.batch_id = (str){NULL, 0};
    assert_not_begun(request, INVALID, ERROR_IDEMPOTENCY_KEY_REQUIRED);
    request.batch_id = STR("a");
    request.content_length = (i64)16 * MIB + 1;
    assert_not_begun(request, LIMIT, ERROR_BODY_TOO_LARGE);
    request.content_length = 10;
    intake_refuse(f.intake, ERROR_DISK_LOW);
    assert_not_begun(request, BUSY, ERROR_DISK_LOW);
    intake_refuse(f.intake, ERROR_NONE);
    assert_accepted("a", "[{}]");
}

static void a_dropped_send_leaves_nothing(void **state)
{
    (void)state;
    struct intake_sink *sink = NULL;
    struct intake_send *send = NULL;
    struct intake_request request = {
        .batch_id = STR("a"), .content_length = 100, .answered = answered};
    assert_int_equal(
        intake_authenticate(f.intake, SINK, bearer(f.key), NULL, STR("1.1.1.1"), &sink, NULL), OK);
    assert_int_equal(intake_begin(f.intake, sink, &request, &send, NULL), OK);
    assert_int_equal(intake_send_body(send, STR("[{\"x\":"), NULL), OK);
    intake_send_drop(send);
    assert_no_row("a");
    assert_int_equal(count_files(""), 0);
}

/* ---- keys ---- */

static err try_key(str sink_id, str authorization, str peer, struct error *error)
{
    struct intake_sink *sink = NULL;
    return intake_authenticate(f.intake, sink_id, authorization, NULL, peer, &sink, error);
}

static void keys_are_good_for_their_own_sink_only(void **state)
{
    (void)state;
    str scheme = str_format(f.arena, "bEARER   %.*s ", STR_ARG(f.key));
    assert_int_equal(try_key(SINK, scheme, STR("p"), NULL), OK);
    static const str sinks[] = {STR_INIT("snk_0123456789ab"), STR_INIT("snk_ffffffffffff")};
    struct error first = {0};
    for (size_t i = 0; i < ARRAY_COUNT(sinks); i++) {
        str tries[] = {bearer(f.other_key),
                       STR("Bearer "),
                       STR("Bearer"),
                       {NULL, 0},
                       str_format(f.arena, "Basic %.*s", STR_ARG(f.key)),
                       bearer(str_slice(f.key, 0, f.key.size - 1))};
        for (size_t j = 0; j < ARRAY_COUNT(tries); j++) {
            struct error error = {0};
            assert_int_equal(try_key(sinks[i], tries[j], STR("p"), &error), DENIED);
            assert_int_equal(error.code, ERROR_BAD_KEY);
            first = i == 0 && j == 0 ? error : first;
            assert_memory_equal(&error, &first, sizeof(error));
        }
    }
    struct error error = {0};
    str api_key = id_key_make(f.arena, &f.seam, ID_KEY_API);
    assert_int_equal(try_key(SINK, bearer(api_key), STR("p"), &error), DENIED);
    assert_int_equal(error.code, ERROR_SEND_ONLY);
}

static void refused_keys_slow_an_address_down_but_never_a_good_key(void **state)
{
    (void)state;
    struct error error = {0};
    size_t told = 0;
    for (size_t i = 0; i < 200; i++) {
        error_clear(&error);
        assert_int_not_equal(try_key(SINK, bearer(f.other_key), STR("9.9.9.9"), &error), OK);
        told += error.code == ERROR_RATE_LIMITED ? 1 : 0;
    }
    assert_true(told >= 200 - 2 * 60 && told <= 140);
    assert_int_equal(try_key(SINK, bearer(f.key), STR("9.9.9.9"), NULL), OK);
    error_clear(&error);
    assert_int_equal(try_key(SINK, bearer(f.other_key), STR("8.8.8.8"), &error), DENIED);
    assert_int_equal(error.code, ERROR_BAD_KEY);
}

/* What a connection remembers of a key gives it no right of its own. */
static void a_remembered_key_is_judged_each_time(void **state)
{
    (void)state;
    struct intake_known_key known = {0};
    struct intake_sink *sink = NULL;
    str good = bearer(f.key);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(intake_authenticate(f.intake, SINK, good, &known, STR("p"), &sink, NULL),
                         OK);
        assert_int_equal(known.size, good.size);
        assert_int_equal(intake_authenticate(f.intake, STR("snk_00000000000f"), good, &known,
                                             STR("p"), &sink, NULL),
                         DENIED);
    }
    assert_int_equal(
        intake_authenticate(f.intake, SINK, bearer(f.other_key), &known, STR("p"), &sink, NULL),
        DENIED);
    assert_int_equal(intake_authenticate(f.intake, SINK, STR(""), &known, STR("p"), &sink, NULL),
                     DENIED);
    assert_int_equal(intake_authenticate(f.intake, SINK, good, &known, STR("p"), &sink, NULL), OK);
    assert_int_equal(ledger_begin_delete(&f.db, SINK, NULL), OK);
    intake_notify_sink(f.intake, SINK);
    struct error error = {0};
    assert_int_equal(intake_authenticate(f.intake, SINK, good, &known, STR("p"), &sink, &error),
                     DENIED);
    assert_int_equal(error.code, ERROR_SINK_DELETED);
}

static void a_sink_made_later_is_known_when_told(void **state)
{
    (void)state;
    str key = {0};
    str id = STR("snk_aaaaaaaaaaaa");
    make_sink(id, "later", "required", &key);
    assert_int_equal(try_key(id, bearer(key), STR("p"), NULL), DENIED);
    intake_notify_sink(f.intake, id);
    assert_int_equal(try_key(id, bearer(key), STR("p"), NULL), OK);
}

static void an_optional_id_is_made_by_the_server(void **state)
{
    (void)state;
    struct answer answer;
    start(&answer, STR("snk_00000000000f"), f.other_key, (struct intake_request){0}, STR("[1]"));
    finish(&answer);
    assert_int_equal(answer.status, 202);
    assert_has(&answer, "\"batch_id\":\"srv.");
    assert_has(&answer, "\"idempotent\":false");
    forget(&answer);
}

/* ---- waiting for the commit ---- */

static err commit_body(struct db_tx *tx, void *context, struct error *error)
{
    return db_run(tx, error, "UPDATE batch SET state = 2 WHERE batch_id = ?1",
                  DB_T(*(str *)context));
}

static void a_send_that_waits_is_answered_when_its_batch_is_committed(void **state)
{
    (void)state;
    struct answer answer;
    struct intake_request request = {.batch_id = STR("c"), .wait_us = WAIT_US};
    start(&answer, SINK, f.key, request, STR("[{}]"));
    struct ledger_batch batch = {0};
    while (ledger_find_batch(&f.db, f.arena, SINK, STR("c"), &batch, NULL) != OK) {
        seam_wait_us(seam_system(), 1000);
    }
    assert_null(queue_pop(answer.done, 50000));
    str id = STR("c");
    assert_int_equal(db_transact(&f.db, commit_body, &id, NULL), OK);
    intake_notify_committed(f.intake, SINK);
    finish(&answer);
    assert_int_equal(answer.status, 200);
    assert_true(answer.is_batch);
    assert_int_equal(answer.batch_state, BATCH_COMMITTED);
    forget(&answer);
}

static void a_wait_that_is_over_is_answered_202(void **state)
{
    (void)state;
    struct answer answer;
    struct intake_request request = {.batch_id = STR("c"), .wait_us = 100000};
    start(&answer, SINK, f.key, request, STR("[{}]"));
    finish(&answer);
    assert_int_equal(answer.status, 202);
    assert_has(&answer, "\"state\":\"pending\"");
    forget(&answer);
    /* A duplicate may wait, too; one of a batch that is final does not wait at all. */
    str id = STR("c");
    assert_int_equal(db_transact(&f.db, commit_body, &id, NULL), OK);
    request.wait_us = WAIT_US;
    start(&answer, SINK, f.key, request, STR("[{}]"));
    finish(&answer);
    assert_int_equal(answer.status, 200);
    forget(&answer);
}

static void waits_end_with_the_present_state_when_the_server_stops(void **state)
{
    (void)state;
    struct answer answer;
    struct intake_request request = {.batch_id = STR("c"), .wait_us = WAIT_US};
    start(&answer, SINK, f.key, request, STR("[{}]"));
    struct ledger_batch batch = {0};
    while (ledger_find_batch(&f.db, f.arena, SINK, STR("c"), &batch, NULL) != OK) {
        seam_wait_us(seam_system(), 1000);
    }
    intake_end_waits(f.intake);
    assert_ptr_equal(queue_pop(answer.done, WAIT_US / 2), &answer);
    queue_destroy(answer.done);
    assert_int_equal(answer.status, 202);
    assert_has(&answer, "\"state\":\"pending\"");
    forget(&answer);
}

static void a_new_id_is_taken_without_a_look_into_the_ledger(void **state)
{
    (void)state;
    int before = atomic_load(&f.lossy.reads);
    assert_accepted("a", "[{\"x\":1}]");
    assert_accepted("b", "[{\"x\":1}]");
    assert_int_equal(atomic_load(&f.lossy.reads), before);
    assert_refused("a", "[{\"x\":2}]", ERROR_IDEMPOTENCY_KEY_REUSED);
    assert_int_equal(atomic_load(&f.lossy.reads), before + 1);
}

/* An id that looks new and is not: the transaction tells. */
static void an_id_that_another_intake_took_is_found_by_the_transaction(void **state)
{
    (void)state;
    struct answer answer;
    struct intake *first = f.intake;
    open_intake(0);
    struct intake *second = f.intake;
    f.intake = first;
    assert_accepted("a", "[{\"x\":1}]");
    assert_accepted("b", "[{\"x\":1}]");
    f.intake = second;
    start_id(&answer, "a", "[{\"x\":1}]");
    finish(&answer);
    assert_int_equal(answer.status, 202);
    assert_has(&answer, "\"duplicate\":true");
    forget(&answer);
    assert_refused("b", "[{\"x\":2}]", ERROR_IDEMPOTENCY_KEY_REUSED);
    intake_close(second);
    f.intake = first;
    assert_int_equal(count_files(""), 2);
}

static void every_edge_was_taken(void **state)
{
    (void)state;
    assert_int_equal(edges_missing_beside("intake", "tell pass apply"), 0); /* intake_told_test */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_batch_is_stored_recorded_and_then_answered),
        TEST(the_same_bytes_again_are_a_duplicate),
        TEST(other_bytes_under_a_used_id_are_refused),
        TEST(an_empty_array_stores_nothing_and_leaves_the_id_free),
        TEST(a_batch_refused_whole_leaves_only_its_rejects),
        TEST(bodies_that_are_not_json_store_nothing),
        TEST(what_waits_during_a_put_becomes_one_object),
        TEST(the_metadata_bounds_a_group),
        TEST(simultaneous_sends_of_one_id_are_stored_once),
        TEST(a_second_send_of_an_id_is_looked_up_while_others_go_on),
        TEST(a_second_send_of_an_id_alone_is_answered_from_the_ledger),
        TEST(a_full_bucket_takes_nothing_but_knows_its_batches),
        TEST(a_dry_run_stores_nothing_whatever_it_says),
        TEST(a_failed_put_answers_503_and_records_nothing),
        TEST(a_sink_of_an_unknown_warehouse_answers_503),
        TEST(a_lost_ledger_answer_is_looked_up),
        TEST(a_lost_transaction_is_503_and_deletes_nothing),
        TEST(a_sink_deleted_meanwhile_answers_410_and_keeps_nothing),
        TEST(the_head_alone_is_enough_to_refuse),
        TEST(a_dropped_send_leaves_nothing),
        TEST(keys_are_good_for_their_own_sink_only),
        TEST(refused_keys_slow_an_address_down_but_never_a_good_key),
        TEST(a_remembered_key_is_judged_each_time),
        TEST(a_sink_made_later_is_known_when_told),
        TEST(an_optional_id_is_made_by_the_server),
        TEST(a_send_that_waits_is_answered_when_its_batch_is_committed),
        TEST(a_wait_that_is_over_is_answered_202),
        TEST(waits_end_with_the_present_state_when_the_server_stops),
        TEST(a_new_id_is_taken_without_a_look_into_the_ledger),
        TEST(an_id_that_another_intake_took_is_found_by_the_transaction),
        cmocka_unit_test(every_edge_was_taken),
    };
    machine_watch(watch);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
