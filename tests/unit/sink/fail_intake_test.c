/* Accepting, with each call of ledger and store failing, each answer lost, and each allocation of
 * the worker failing: what was answered 202 is stored once, what was not says why, and sent again
 * it is stored once. */
#include "doors.h"
#include "intake_fixture.h"

static struct doors doors;
static struct door_db guarded_db;
static struct door_store guarded_store;

static void *open_world(void)
{
    void *state = NULL;
    (void)set_up(&state);
    intake_close(f.intake);
    doors_heal(&doors);
    guarded_db = (struct door_db){&doors, f.db};
    f.db = door_db_open(&guarded_db);
    const struct warehouse *warehouse = warehouse_get(f.warehouses, STR("garden"));
    guarded_store = (struct door_store){.doors = &doors, .inner = warehouse->files};
    ((struct warehouse *)(uintptr_t)warehouse)->files = door_store_open(&guarded_store);
    open_intake(0);
    turn_count = 0;
    return &f;
}

static void close_world(void *world)
{
    (void)world;
    (void)tear_down(NULL);
}

static struct doors *doors_of(void *world)
{
    (void)world;
    return &doors;
}

/* ---- what the sends of a scene came to ---- */

enum { SENDS_MAX = 3 };

struct sent {
    const char *id;
    const char *body;
    const char *stored;
    bool accepted;
};
static struct sent sent[SENDS_MAX];
static struct answer answers[SENDS_MAX];

static void begin(size_t i)
{
    start_id(&answers[i], sent[i].id, sent[i].body);
}

static void end(size_t i)
{
    finish(&answers[i]);
    sent[i].accepted = answers[i].status == 202;
    if (!sent[i].accepted) {
        assert_int_equal(answers[i].status, 0);
        assert_int_equal(error_code_http_status(answers[i].code), 503);
    }
    forget(&answers[i]);
}

/* Each is there once, however it was answered before. */
static void settle_sends(size_t count)
{
    i64 rows = 0;
    for (size_t i = 0; i < count; i++) {
        bool was_accepted = sent[i].accepted;
        begin(i);
        finish(&answers[i]);
        assert_int_equal(answers[i].status, 202);
        if (was_accepted) {
            assert_has(&answers[i], "\"duplicate\":true");
        }
        forget(&answers[i]);
        struct ledger_batch batch = row_of(sent[i].id);
        assert_verifies(&batch, sent[i].stored);
        rows += batch.rows;
    }
    struct ledger_sink sink = {0};
    assert_int_equal(ledger_find_sink(&f.db, f.arena, STR(""), SINK, &sink, NULL), OK);
    assert_int_equal(sink.waiting_batches, (i64)count);
    assert_int_equal(sink.waiting_rows, rows);
}

/* ---- one send, with a row and a refused element ---- */

static void *open_lone(void)
{
    sent[0] = (struct sent){"a", "[{\"x\":1},7,{\"x\":2}]", "{\"x\":1}\n\n{\"x\":2}", false};
    return open_world();
}

static err act_lone(void *world, struct error *error)
{
    (void)world;
    (void)error;
    begin(0);
    end(0);
    return OK;
}

static void settle_lone(void *world, err result)
{
    (void)world;
    (void)result;
    settle_sends(1);
    assert_int_equal(row_of("a").refused, 1);
    /* the rejects of the attempt that counts are there, and perhaps those of an orphan */
    assert_true(count_files("rejects/") >= 1);
}

/* ---- a batch that is known: the same bytes, and others ---- */

static void *open_known(void)
{
    void *world = open_world();
    sent[0] = (struct sent){"a", "[{\"x\":1}]", "{\"x\":1}", false};
    begin(0);
    end(0);
    assert_true(sent[0].accepted);
    return world;
}

static err act_known(void *world, struct error *error)
{
    (void)world;
    (void)error;
    begin(0);
    finish(&answers[0]);
    assert_true(answers[0].status == 202 || error_code_http_status(answers[0].code) == 503);
    if (answers[0].status == 202) {
        assert_has(&answers[0], "\"duplicate\":true");
    }
    forget(&answers[0]);
    start_id(&answers[0], "a", "[{\"x\":2}]");
    finish(&answers[0]);
    assert_int_equal(answers[0].status, 0);
    int status = error_code_http_status(answers[0].code);
    assert_true(status == 422 || status == 503);
    forget(&answers[0]);
    return OK;
}

static void settle_known(void *world, err result)
{
    (void)world;
    (void)result;
    settle_sends(1);
}

/* ---- a group: two sends come while the PUT of the first is in flight ---- */

static bool others_came;

static void others_come(void *context)
{
    (void)context;
    if (!others_came) {
        others_came = true;
        begin(1);
        begin(2);
        turns_await(2);
    }
}

static void *open_group(void)
{
    sent[0] = (struct sent){"a", "[{\"x\":1}]", "{\"x\":1}", false};
    sent[1] = (struct sent){"b", "[{\"x\":2},{\"x\":3}]", "{\"x\":2}\n{\"x\":3}", false};
    sent[2] = (struct sent){"c", "[{\"x\":4}]", "{\"x\":4}", false};
    others_came = false;
    return open_world();
}

static err act_group(void *world, struct error *error)
{
    (void)world;
    (void)error;
    doors.meddle = others_come;
    doors.meddle_at = index_bytes_max > 0 ? 1 : 2; /* after the look into the ledger */
    begin(0);
    end(0);
    if (!others_came) {
        others_came = true;
        begin(1);
        begin(2);
    }
    end(1);
    end(2);
    return OK;
}

static void settle_group(void *world, err result)
{
    (void)world;
    (void)result;
    settle_sends(3);
}

/* ---- the loops ---- */

#define SCENE(name, open, act, settle) {name, open, doors_of, act, settle, close_world}
static const struct door_scene SCENES[] = {
    SCENE("lone", open_lone, act_lone, settle_lone),
    SCENE("known", open_known, act_known, settle_known),
    SCENE("group", open_group, act_group, settle_group),
};

/* With the known ids in memory, and with a look into the ledger for each send. */
static void play(enum door_fault fault)
{
    for (size_t i = 0; i < 2 * ARRAY_COUNT(SCENES); i++) {
        index_bytes_max = i % 2 == 0 ? (i64)MIB : 0;
        assert_true(door_every(&SCENES[i / 2], fault) > 0);
    }
    index_bytes_max = (i64)MIB;
}

static void a_call_that_fails_costs_another_send(void **state)
{
    (void)state;
    play(DOOR_FAILS);
}

static void an_answer_that_is_lost_costs_another_send(void **state)
{
    (void)state;
    play(DOOR_LOSES);
}

/* ---- the worker's memory ---- */

static i64 starve_at;
static _Atomic i64 starved; /* growths of the worker, of which the last failed or none */

/* On the worker: from its first look into the ledger up to its answer. */
static void starve(void *context)
{
    (void)context;
    arena_fail_allocation_at(starve_at);
}

static void answered_by_the_starved(void *context, const struct intake_answer *answer)
{
    starved = arena_growths();
    arena_fail_growth_at(0);
    answered(context, answer);
}

static void an_allocation_that_fails_costs_another_send(void **state)
{
    (void)state;
    bool met = true;
    index_bytes_max = 0; /* the first call is the worker's */
    for (starve_at = 1; met; starve_at++) {
        void *world = open_lone();
        doors_arm(&doors, DOOR_SOUND, 0);
        doors.meddle = starve;
        doors.meddle_at = 1;
        answered_by = answered_by_the_starved;
        begin(0);
        end(0);
        answered_by = answered;
        doors_heal(&doors);
        met = starved >= starve_at;
        assert_true(met || sent[0].accepted);
        settle_lone(world, OK);
        close_world(world);
    }
    assert_true(starve_at > 5);
    index_bytes_max = (i64)MIB;
}

/* ---- opening ---- */

static void an_intake_that_cannot_be_opened_leaves_nothing(void **state)
{
    (void)state;
    for (i64 at = 1; at < 100; at++) {
        void *world = open_world();
        intake_close(f.intake);
        struct intake_options options = fixture_options(0);
        struct error error = {0};
        doors_arm(&doors, DOOR_FAILS, at);
        err opened = intake_open(f.arena, &options, &f.intake, &error);
        bool met = doors.calls >= at;
        doors_heal(&doors);
        if (opened != OK) {
            assert_true(error.code != ERROR_NONE && error.message[0] != '\0');
            open_intake(0);
        }
        assert_accepted("a", "[{\"x\":1}]");
        close_world(world);
        if (!met) {
            assert_int_equal(opened, OK);
            assert_true(at > 1);
            return;
        }
    }
    fail();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_fails_costs_another_send),
        cmocka_unit_test(an_answer_that_is_lost_costs_another_send),
        cmocka_unit_test(an_allocation_that_fails_costs_another_send),
        cmocka_unit_test(an_intake_that_cannot_be_opened_leaves_nothing),
    };
    machine_watch(watch);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
