/* The roller with its threads, over a real directory and a real clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/roller.h"
#include "sink/batch.h"

#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WAIT_US (20 * TIME_SECOND_US)

struct fixture {
    struct arena *arena;
    char directory[64];
    struct seam seam;
    struct db db;
    struct warehouses *warehouses;
    const struct warehouse *warehouse;
    struct roller *roller;
    str installation;
    instant ledger_now;
    atomic_bool looked_enough;
    struct error error;
};

static void must(struct fixture *f, err result)
{
    if (result != OK) {
        fail_msg("%s: %s", err_text(result), f->error.message);
    }
}

static _Atomic i64 clock_ahead_us;

static i64 moved_monotonic_us(void *self)
{
    (void)self;
    return seam_monotonic_us(seam_system()) + atomic_load(&clock_ahead_us);
}

static void start(struct fixture *f)
{
    f->seam = *seam_system();
    f->seam.monotonic_us = moved_monotonic_us;
    const struct roller_options options = {
        .db = &f->db,
        .seam = &f->seam,
        .warehouses = f->warehouses,
        .installation_id = f->installation,
        .node_id = STR("node"),
        .limits = policy_limits_dev(),
        .threads = 3,
    };
    must(f, roller_start(f->arena, &options, &f->roller, &f->error));
}

static void make_table(struct fixture *f, const char *name)
{
    const struct table_name table_name = {STR("demo"), str_from(name)};
    struct table table = {0};
    json_t *request = json_pack("{s:s, s:{s:s, s:[{s:i, s:s, s:b, s:s}]}}", "name", name, "schema",
                                "type", "struct", "fields", "id", 1, "name", "x", "required", 1,
                                "type", "int");
    must(f,
         catalog_create(&f->warehouse->catalog, f->arena, table_name, request, &table, &f->error));
    json_decref(request);
    const struct seam *seam = seam_system();
    struct uid claim = id_uid_make(seam);
    const struct ledger_sink sink = {
        .id = str_from(name),
        .project = STR("prj"),
        .warehouse = STR("garden"),
        .namespace_name = STR("demo"),
        .table_name = str_from(name),
        .table_uuid = metadata_uuid(table.metadata),
        .name = str_from(name),
        .roll_seconds = 3600,
        .roll_bytes = 64 * (i64)MIB,
        .unknown_fields = STR("reject"),
        .idempotency = STR("required"),
        .send_key_id = str_from(name),
        .claim_id = id_uid_str(&claim),
    };
    must(f, ledger_insert_sink(&f->db, &sink, &f->error));
    table_close(&table);
}

static int set_up(void **state)
{
    struct arena *arena = arena_create((size_t)512 * MIB);
    struct fixture *f = arena_alloc(arena, sizeof(*f));
    f->arena = arena;
    snprintf(f->directory, sizeof(f->directory), "/tmp/lhbox-roller-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    str path = str_format(arena, "%s/lhbox.db", f->directory);
    must(f, db_open_sqlite(arena, path, seam_system(), &f->db, &f->error));
    must(f, ledger_open(&f->db, seam_system(), &f->error));
    must(f, ledger_installation(&f->db, arena, &f->installation, &f->error));
    const struct warehouse_options options = {.data_directory = str_from(f->directory)};
    must(f, warehouses_open(arena, &f->db, seam_system(), &options, &f->warehouses, &f->error));
    must(f, warehouse_create(f->warehouses, STR("prj"), STR("garden"), NULL, NULL, &f->warehouse,
                             &f->error));
    must(f, catalog_create_namespace(&f->warehouse->catalog, STR("demo"), &f->error));
    make_table(f, "snk_a");
    make_table(f, "snk_b");
    start(f);
    *state = f;
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->roller != NULL) {
        roller_stop(f->roller);
    }
    warehouses_close(f->warehouses);
    db_close(&f->db);
    nftw(f->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_destroy(f->arena);
    return 0;
}

static void send_batch(struct fixture *f, const char *sink_id, const char *batch_id,
                       const char *body_text)
{
    const struct seam *seam = seam_system();
    str body = str_from(body_text);
    must(f, ledger_register_node(&f->db, STR("intake"), STR("all"), &f->ledger_now, &f->error));
    struct ledger_accept item = {
        .batch_id = str_from(batch_id),
        .uid = id_uid_make(seam),
        .bytes = (i64)body.size,
        .rows = 1,
        .sha256 = crypto_sha256(body),
        .received_at = seam_now(seam),
        .began_at = f->ledger_now,
        .answer = STR("{}"),
    };
    item.object_key = batch_object_key(f->arena, str_from(sink_id), item.batch_id, &item.uid);
    must(f, store_put(&f->warehouse->files, item.object_key, body, NULL, &f->error));
    must(f, ledger_accept(&f->db, f->arena, STR("intake"), str_from(sink_id),
                          LEDGER_BACKLOG_DEFAULT, LEDGER_DURABLE, &item, 1, &f->error));
    assert_int_equal(item.outcome, ACCEPT_NEW);
    roller_wake(f->roller, str_from(sink_id));
}

static struct ledger_sink look(struct fixture *f, const char *sink_id)
{
    struct ledger_sink sink = {0};
    must(f, ledger_find_sink(&f->db, f->arena, STR(""), str_from(sink_id), &sink, &f->error));
    return sink;
}

static err roll_and_wait(struct roller *roller, str sink_id, i64 timeout_us, instant *out_asked_at,
                         bool *out_settled, struct error *error)
{
    i64 upto_seq = 0;
    TRY(roller_ask(roller, sink_id, out_asked_at, &upto_seq, error));
    return roller_await(roller, sink_id, upto_seq, timeout_us, out_settled, error);
}

static void a_roll_that_is_asked_for_comes_at_once(void **state)
{
    struct fixture *f = *state;
    instant asked_at = 0;
    bool settled = false;
    i64 began = seam_monotonic_us(seam_system());
    send_batch(f, "snk_a", "one", "{\"x\":1}");
    must(f, roll_and_wait(f->roller, STR("snk_a"), WAIT_US, &asked_at, &settled, &f->error));
    assert_true(settled);
    assert_true(seam_monotonic_us(seam_system()) - began < 8 * TIME_SECOND_US);
    assert_int_equal(look(f, "snk_a").rows_committed, 1);
    assert_true(str_find(look(f, "snk_a").last_roll, STR("\"reason\":\"asked\"")) > 0);
}

static void asking_with_nothing_waiting_is_answered_at_once(void **state)
{
    struct fixture *f = *state;
    instant asked_at = 0;
    bool settled = false;
    must(f, roll_and_wait(f->roller, STR("snk_a"), WAIT_US, &asked_at, &settled, &f->error));
    assert_true(settled);
    assert_int_equal(
        roll_and_wait(f->roller, STR("snk_no"), WAIT_US, &asked_at, &settled, &f->error),
        NOT_FOUND);
}

static void a_wait_ends_at_its_timeout(void **state)
{
    struct fixture *f = *state;
    instant asked_at = 0;
    bool settled = true;
    must(f, ledger_disable_sink(&f->db, STR("snk_a"), STR("test"), STR("test"), &f->error));
    send_batch(f, "snk_a", "one", "{\"x\":1}");
    must(f, roll_and_wait(f->roller, STR("snk_a"), TIME_SECOND_US / 2, &asked_at, &settled,
                          &f->error));
    assert_false(settled);
    assert_int_equal(look(f, "snk_a").waiting_rows, 1);
}

struct told {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int calls;
    int settled;
};

static void on_done(void *context, bool settled)
{
    struct told *told = context;
    pthread_mutex_lock(&told->lock);
    told->calls++;
    told->settled += settled ? 1 : 0;
    pthread_cond_broadcast(&told->changed);
    pthread_mutex_unlock(&told->lock);
}

static void await_calls(struct told *told, int calls)
{
    pthread_mutex_lock(&told->lock);
    while (told->calls < calls) {
        pthread_cond_wait(&told->changed, &told->lock);
    }
    pthread_mutex_unlock(&told->lock);
}

/* A sink is due by itself once its oldest batch has waited roll_seconds; nobody asks. */
static void a_sink_rolls_when_it_becomes_due(void **state)
{
    struct fixture *f = *state;
    struct told told = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    i64 seconds = 1;
    const struct ledger_sink_patch patch = {.roll_seconds = &seconds};
    must(f, ledger_patch_sink(&f->db, STR("snk_a"), &patch, &f->error));
    i64 began = seam_monotonic_us(seam_system());
    send_batch(f, "snk_a", "one", "{\"x\":1}");
    must(f, roller_wait(f->roller, STR("snk_a"), 1, WAIT_US, on_done, &told, &f->error));
    await_calls(&told, 1);
    assert_int_equal(told.settled, 1);
    i64 took = seam_monotonic_us(seam_system()) - began;
    assert_true(took >= TIME_SECOND_US * 9 / 10);
    assert_true(took < 8 * TIME_SECOND_US); /* before the safety tick */
    assert_true(str_find(look(f, "snk_a").last_roll, STR("roll_seconds")) > 0);
}

/* One sink's trouble stops no other, and every waiter is told once. */
static void two_sinks_roll_side_by_side(void **state)
{
    struct fixture *f = *state;
    struct told told = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    instant asked_at = 0;
    i64 upto = 0;
    int waiters = 0;
    for (int i = 0; i < 10; i++) {
        char *id = arena_alloc(f->arena, 16);
        snprintf(id, 16, "batch-%d", i);
        const char *sink_id = i % 2 == 0 ? "snk_a" : "snk_b";
        send_batch(f, sink_id, id, i == 4 ? "{\"x\":\"no\"}" : "{\"x\":1}");
        must(f, roller_ask(f->roller, str_from(sink_id), &asked_at, &upto, &f->error));
        must(f,
             roller_wait(f->roller, str_from(sink_id), upto, WAIT_US, on_done, &told, &f->error));
        waiters++;
    }
    await_calls(&told, waiters);
    assert_int_equal(told.settled, waiters);
    assert_int_equal(look(f, "snk_a").rows_committed, 4);
    assert_int_equal(look(f, "snk_a").rows_rejected, 1);
    assert_int_equal(look(f, "snk_b").rows_committed, 5);
}

static void a_sink_is_deleted_while_the_roller_runs(void **state)
{
    struct fixture *f = *state;
    instant asked_at = 0;
    bool settled = false;
    i64 discarded = -1;
    send_batch(f, "snk_a", "one", "{\"x\":1}");
    must(f, roll_and_wait(f->roller, STR("snk_a"), WAIT_US, &asked_at, &settled, &f->error));
    assert_true(settled);
    send_batch(f, "snk_a", "two", "{\"x\":2}");
    must(f, roller_delete_sink(f->roller, STR("snk_a"), &discarded, &f->error));
    assert_int_equal(discarded, 1);
    assert_int_equal(look(f, "snk_a").state, SINK_DELETED);
    assert_int_equal(roller_delete_sink(f->roller, STR("snk_a"), &discarded, NULL), NOT_FOUND);
}

static void *look_all_the_time(void *argument)
{
    struct fixture *f = argument;
    while (!atomic_load(&f->looked_enough)) {
        roller_look(f->roller, STR("snk_a"));
    }
    return NULL;
}

/* No worker that finds the sink in deletion ends the delete in its place: it tells what it
 * discarded. */
static void who_deletes_a_sink_ends_it(void **state)
{
    struct fixture *f = *state;
    pthread_t looker;
    i64 discarded = -1;
    send_batch(f, "snk_a", "one", "{\"x\":1}");
    assert_int_equal(pthread_create(&looker, NULL, look_all_the_time, f), 0);
    err deleted = roller_delete_sink(f->roller, STR("snk_a"), &discarded, &f->error);
    atomic_store(&f->looked_enough, true);
    assert_int_equal(pthread_join(looker, NULL), 0);
    must(f, deleted);
    assert_int_equal(discarded, 1);
}

/* Stopping answers who still waits, and starts nothing. */
static void a_stop_answers_those_who_wait(void **state)
{
    struct fixture *f = *state;
    struct told told = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    send_batch(f, "snk_a", "one", "{\"x\":1}"); /* due in an hour */
    must(f,
         roller_wait(f->roller, STR("snk_a"), 1, 3600 * TIME_SECOND_US, on_done, &told, &f->error));
    roller_stop(f->roller);
    f->roller = NULL;
    assert_int_equal(told.calls, 1);
    assert_int_equal(told.settled, 0);
    assert_int_equal(look(f, "snk_a").waiting_rows, 1);
}

/* What an earlier process left planned is settled by the next one, unasked. */
static void a_start_settles_what_was_left(void **state)
{
    struct fixture *f = *state;
    struct told told = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    roller_stop(f->roller);
    f->roller = NULL;
    struct uid id = id_uid_make(seam_system());
    struct ledger_plan plan = {0};
    must(f, ledger_attempt_claim(&f->db, STR("snk_a"), &f->error));
    start(f);
    send_batch(f, "snk_a", "one", "{\"x\":1}");
    roller_stop(f->roller);
    f->roller = NULL;
    must(f, ledger_finish_claim(&f->db, STR("snk_a"), &f->error));
    must(f, ledger_make_plan(&f->db, f->arena, STR("snk_a"), id_uid_str(&id), 1000, 10,
                             STR("asked"), &plan, &f->error));
    /* the table was never claimed, so that the plan cannot be committed: the sink is stopped, not
     * guessed about */
    start(f);
    must(f, roller_wait(f->roller, STR("snk_a"), 1, 3 * TIME_SECOND_US, on_done, &told, &f->error));
    await_calls(&told, 1);
    assert_int_equal(told.settled, 0);
    assert_true(look(f, "snk_a").mismatch_at != 0);
    assert_int_equal(look(f, "snk_a").waiting_rows, 1);
}

/* Sinks that were deleted today, and were made before all others. */
static err bury_sinks(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    TRY(db_run(tx, error, "CREATE TABLE buried AS SELECT * FROM sink WHERE id = ?1",
               DB_T(STR("snk_b"))));
    TRY(db_run(tx, error,
               "UPDATE buried SET state = 4, warehouse = 'elsewhere', created_at = 0, "
               "deleted_at = ?1",
               DB_N(db_now(tx))));
    for (int i = 0; i <= ROLLER_SINKS_MAX; i++) {
        TRY(db_run(tx, error, "UPDATE buried SET id = 'snk_' || ?1, send_key_id = ?1", DB_N(i)));
        TRY(db_run(tx, error, "INSERT INTO sink SELECT * FROM buried WHERE ?1 = ?1", DB_N(i)));
    }
    return OK;
}

/* However many were deleted, those that live are rolled. */
static void deleted_sinks_leave_room_for_the_living(void **state)
{
    struct fixture *f = *state;
    instant asked_at = 0;
    i64 upto_seq = 0;
    send_batch(f, "snk_a", "one", "{\"x\":1}");
    roller_stop(f->roller);
    f->roller = NULL;
    must(f, ledger_ask_roll(&f->db, STR("snk_a"), &asked_at, &upto_seq, &f->error));
    must(f, db_transact(&f->db, bury_sinks, NULL, &f->error));
    i64 end_us = seam_monotonic_us(seam_system()) + WAIT_US;
    start(f);
    while (look(f, "snk_a").waiting_rows > 0) {
        assert_true(seam_monotonic_us(seam_system()) < end_us);
        (void)sched_yield();
    }
}

static err read_running(struct db_tx *tx, void *context, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)64 * KIB);
    struct db_rows rows = {0};
    TRY(db_query(tx, arena, "SELECT running_us FROM installation", NULL, 0, &rows, error));
    *(i64 *)context = db_number(&rows, 0, 0);
    return OK;
}

/* Eight days pass between two looks of the tick: it was frozen, and ids are forgotten by the time
 * that it ran (I4, I19). */
static void a_frozen_process_did_not_run(void **state)
{
    struct fixture *f = *state;
    instant asked_at = 0;
    bool settled = false;
    i64 running_us = 0;
    send_batch(f, "snk_a", "one", "{\"x\":1}");
    must(f, roll_and_wait(f->roller, STR("snk_a"), WAIT_US, &asked_at, &settled, &f->error));
    i64 end_us = seam_monotonic_us(seam_system()) + WAIT_US;
    atomic_store(&clock_ahead_us, 8 * TIME_DAY_US);
    while (running_us == 0) {
        roller_wake(f->roller, STR("snk_a"));
        must(f, db_read(&f->db, read_running, &running_us, &f->error));
        assert_true(seam_monotonic_us(seam_system()) < end_us);
    }
    atomic_store(&clock_ahead_us, 0);
    assert_true(running_us <= 300 * TIME_SECOND_US);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_roll_that_is_asked_for_comes_at_once),
        TEST(asking_with_nothing_waiting_is_answered_at_once),
        TEST(a_wait_ends_at_its_timeout),
        TEST(a_sink_rolls_when_it_becomes_due),
        TEST(two_sinks_roll_side_by_side),
        TEST(a_sink_is_deleted_while_the_roller_runs),
        TEST(who_deletes_a_sink_ends_it),
        TEST(a_stop_answers_those_who_wait),
        TEST(a_start_settles_what_was_left),
        TEST(deleted_sinks_leave_room_for_the_living),
        TEST(a_frozen_process_did_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
