/* Early answers: what is told when the log has it, and what holds until its rows are there. */
#include "intake_fixture.h"

#include "sink/intake_early.h"
#include "sink/intake_log.h"
#include "sink/orphan.h"
#include "sink/roll.h"

enum { SEGMENTS = 8 };

/* What the sets-up add to the fixture: a log in its directory. */
static struct logged {
    struct arena *arena;
    struct journal journal;
    struct intake_log *log;
    struct intake_early *early;
} logged;

static const struct warehouse *find(void *context, str name)
{
    (void)context;
    return warehouse_get(f.warehouses, name);
}

static void open_log(void)
{
    logged.arena = arena_create((size_t)64 * MIB);
    const struct journal_options journal = {
        .directory = str_format(f.arena, "%s/log", f.directory),
        .segment_bytes = JOURNAL_SEGMENT_BYTES_MIN,
        .segments = SEGMENTS,
        .identity = STR("0123456789"),
        .seam = &f.seam,
    };
    assert_int_equal(journal_open_dir(logged.arena, &journal, &logged.journal, NULL), OK);
    const struct intake_log_options log = {.db = &f.db,
                                           .journal = &logged.journal,
                                           .seam = &f.seam,
                                           .find = find,
                                           .full_wait_us = TIME_SECOND_US};
    assert_int_equal(intake_log_open(logged.arena, &log, &logged.log, NULL), OK);
    logged.early = intake_early_create();
}

static void close_log(void)
{
    intake_early_destroy(logged.early);
    intake_log_close(logged.log);
    journal_close(&logged.journal);
    arena_destroy(logged.arena);
}

static void open_logged_intake(void)
{
    struct intake_options options = fixture_options(0);
    options.log = logged.log;
    options.early = logged.early;
    assert_int_equal(intake_open(f.arena, &options, &f.intake, NULL), OK);
}

/* The first group of a sink is judged by the ledger; with it the sink is known to be plain. */
static int set_up_logged(void **state)
{
    (void)set_up(state);
    intake_close(f.intake);
    open_log();
    open_logged_intake();
    assert_accepted("first", "[{}]");
    return 0;
}

static int tear_down_logged(void **state)
{
    gate_set(&f.gate, false);
    hold_losses(false);
    intake_close(f.intake);
    close_log();
    open_intake(0); /* for the fixture to close */
    return tear_down(state);
}

static bool yes(void *context)
{
    (void)context;
    return true;
}

static struct roll_env env_of(void)
{
    return (struct roll_env){.db = &f.db,
                             .seam = &f.seam,
                             .warehouse = warehouse_get(f.warehouses, STR("garden")),
                             .early = logged.early};
}

static void fail_puts(err fail)
{
    (void)pthread_mutex_lock(&f.gate.lock);
    f.gate.fail = fail;
    f.gate.code = ERROR_DISK_LOW;
    (void)pthread_mutex_unlock(&f.gate.lock);
}

static void await_row(const char *id)
{
    assert_true(intake_early_await(logged.early, &f.seam, WAIT_US));
    assert_int_equal(row_of(id).state, BATCH_PENDING);
}

/* ---- what is told ---- */

static void a_new_batch_is_answered_before_its_files_are_there(void **state)
{
    (void)state;
    gate_set(&f.gate, true);
    struct answer answer;
    start_id(&answer, "a", "[{\"x\":1}]");
    finish(&answer);
    assert_int_equal(answer.status, 202);
    assert_has(&answer, "\"accepted\":1");
    assert_has(&answer, "\"state\":\"pending\"");
    assert_no_row("a");
    assert_false(intake_early_await(logged.early, &f.seam, 2000));
    assert_int_equal(intake_early_count(logged.early, SINK), 1);
    gate_set(&f.gate, false);
    await_row("a");
    struct ledger_batch batch = row_of("a");
    assert_verifies(&batch, "{\"x\":1}");
    assert_int_equal(str_find(batch.answer, STR("\"accepted\":1")) > 0, 1);
    assert_int_equal(intake_early_count(logged.early, SINK), 0);
    forget(&answer);
}

/* Who hears of refused elements finds them, and the counts. */
static void what_was_refused_is_there_before_its_answer(void **state)
{
    (void)state;
    gate_set(&f.gate, true);
    struct answer answer;
    struct answer whole;
    start_id(&answer, "a", "[{\"x\":1},7]");
    gate_await(&f.gate, 1);
    assert_null(queue_pop(answer.done, 20000));
    start_id(&whole, "b", "[7]");
    gate_set(&f.gate, false);
    finish(&answer);
    finish(&whole);
    assert_int_equal(count_files("rejects/"), 2);
    assert_has(&answer, "\"rejected\":1");
    assert_has(&whole, "\"state\":\"rejected\"");
    await_row("a");
    assert_int_equal(row_of("a").refused, 1);
    assert_int_equal(row_of("b").state, BATCH_REJECTED);
    assert_int_equal(count_files("rejects/"), 2);
    forget(&answer);
    forget(&whole);
}

/* The id is taken, though the ledger does not know it yet. */
static void a_resend_is_answered_when_the_first_has_its_row(void **state)
{
    (void)state;
    struct answer first;
    struct answer same;
    struct answer other;
    gate_set(&f.gate, true);
    start_id(&first, "a", "[{\"x\":1}]");
    finish(&first);
    start_id(&same, "a", "[{\"x\":1}]");
    start_id(&other, "a", "[{\"x\":2}]");
    assert_null(queue_pop(same.done, 20000));
    gate_set(&f.gate, false);
    finish(&same);
    finish(&other);
    assert_has(&same, "\"duplicate\":true");
    assert_int_equal(other.code, ERROR_IDEMPOTENCY_KEY_REUSED);
    forget(&first);
    forget(&same);
    forget(&other);
}

/* Two ids were claimed by sends that came to nothing: the ledger is asked for them. */
static void claim_in_vain(void)
{
    intake_close(f.intake);
    close_log();
    open_log();
    open_logged_intake();
    fail_puts(IO);
    assert_refused("vain0", "[{}]", ERROR_DISK_LOW);
    assert_refused("vain1", "[{}]", ERROR_DISK_LOW);
    fail_puts(OK);
    assert_accepted("again", "[{}]");
}

/* A resend whose first is still in the line does not overtake it with others that may be known. */
static void a_resend_does_not_overtake_the_first_in_the_line(void **state)
{
    (void)state;
    struct answer held[2];
    struct answer line[3];
    static const char *const ids[] = {"vain1", "a", "a"};
    static const char *const bodies[] = {"[{}]", "[{\"x\":1}]", "[{\"x\":2}]"};
    claim_in_vain();
    gate_set(&f.gate, true);
    for (int i = 0; i < 2; i++) { /* both of the sink's workers stand at the gate */
        start_id(&held[i], i == 0 ? "held" : "vain0", "[{}]");
        gate_await(&f.gate, i + 1);
    }
    for (int i = 0; i < 3; i++) {
        int before = turn_count;
        start_id(&line[i], ids[i], bodies[i]);
        turns_await(before + 1); /* so that they stand in this order */
    }
    gate_set(&f.gate, false);
    for (int i = 0; i < 2; i++) {
        finish(&held[i]);
        assert_int_equal(held[i].status, 202);
        forget(&held[i]);
    }
    for (int i = 0; i < 3; i++) {
        finish(&line[i]);
    }
    assert_int_equal(line[0].status, 202);
    assert_int_equal(line[1].status, 202);
    assert_int_equal(line[2].code, ERROR_IDEMPOTENCY_KEY_REUSED);
    await_row("a");
    struct ledger_batch batch = row_of("a");
    assert_verifies(&batch, "{\"x\":1}");
    for (int i = 0; i < 3; i++) {
        forget(&line[i]);
    }
}

/* ---- what is told meanwhile ---- */

static const char *const MORE_IDS[] = {"b", "c", "d"};
static const char *const MORE[] = {"[{\"x\":2}]", "[{\"x\":3},{\"x\":33}]", "[{\"x\":4},7]"};
static const char *const MORE_STORED[] = {"{\"x\":2}", "{\"x\":3}\n{\"x\":33}", "{\"x\":4}\n"};

/* The first is held at the gate. The last one's answer waits for its rejects file. */
static void tell_more(struct answer *last)
{
    gate_set(&f.gate, true);
    assert_accepted("a", "[{\"x\":1}]");
    gate_await(&f.gate, 1);
    assert_accepted(MORE_IDS[0], MORE[0]);
    assert_accepted(MORE_IDS[1], MORE[1]);
    start_id(last, MORE_IDS[2], MORE[2]);
    while (intake_early_count(logged.early, SINK) < 4) {
        seam_wait_us(seam_system(), 1000);
    }
}

static void assert_shared(void)
{
    struct ledger_batch first = row_of("a");
    assert_verifies(&first, "{\"x\":1}");
    struct ledger_batch rows[ARRAY_COUNT(MORE)];
    for (size_t i = 0; i < ARRAY_COUNT(MORE); i++) {
        rows[i] = row_of(MORE_IDS[i]);
        assert_int_equal(rows[i].state, BATCH_PENDING);
        assert_verifies(&rows[i], MORE_STORED[i]);
        assert_true(str_equal(rows[i].object_key, rows[0].object_key));
        assert_true(str_equal(id_uid_str(&rows[i].uid), id_uid_str(&rows[0].uid)));
    }
    assert_false(str_equal(rows[0].object_key, first.object_key));
    assert_int_equal(rows[2].refused, 1);
}

static void what_is_told_while_another_is_applied_shares_an_object(void **state)
{
    (void)state;
    struct answer last;
    size_t before = count_files("");
    tell_more(&last);
    gate_set(&f.gate, false);
    finish(&last);
    assert_has(&last, "\"rejected\":1");
    await_row("a");
    assert_shared();
    assert_int_equal(count_files(""), before + 3); /* and the rejects file */
    forget(&last);
}

/* The ledger may be taken for longer than one object has room; this store's metadata takes few. */
static void a_full_object_waits_and_another_one_begins(void **state)
{
    enum { MORE_THAN_FULL = 40 };
    (void)state;
    gate_set(&f.gate, true);
    assert_accepted("held", "[{}]");
    gate_await(&f.gate, 1);
    for (int i = 0; i < MORE_THAN_FULL; i++) {
        assert_accepted(str_format(f.arena, "n%d", i).data, "[{\"x\":1}]");
    }
    assert_int_equal(intake_early_count(logged.early, SINK), MORE_THAN_FULL + 1);
    gate_set(&f.gate, false);
    await_row("n39");
    for (int i = 0; i < MORE_THAN_FULL; i++) {
        struct ledger_batch batch = row_of(str_format(f.arena, "n%d", i).data);
        assert_verifies(&batch, "{\"x\":1}");
    }
    struct ledger_batch first = row_of("n0");
    struct ledger_batch second = row_of("n1");
    struct ledger_batch last = row_of("n39");
    assert_true(str_equal(first.object_key, second.object_key));
    assert_false(str_equal(first.object_key, last.object_key));
}

/* None of it was applied: the next start makes one object of their records. */
static void what_shares_an_object_is_there_after_the_next_start(void **state)
{
    (void)state;
    struct intake_log_replayed replayed = {0};
    struct answer last;
    tell_more(&last);
    fail_puts(IO);
    gate_set(&f.gate, false);
    intake_close(f.intake);
    finish(&last);
    assert_int_equal(last.code, ERROR_UNAVAILABLE);
    forget(&last);
    assert_no_row("a");
    fail_puts(OK);
    close_log();
    open_log();
    assert_int_equal(intake_log_replay(logged.log, &replayed, NULL), OK);
    open_logged_intake();
    assert_shared();
}

static void a_send_that_waits_for_its_commit_is_not_answered_early(void **state)
{
    (void)state;
    struct answer answer;
    struct intake_request request = {.batch_id = STR("a"), .wait_us = 50000};
    gate_set(&f.gate, true);
    start(&answer, SINK, f.key, request, STR("[{}]"));
    gate_await(&f.gate, 1);
    assert_null(queue_pop(answer.done, 20000));
    gate_set(&f.gate, false);
    finish(&answer);
    assert_int_equal(answer.status, 202);
    assert_int_equal(row_of("a").state, BATCH_PENDING);
    forget(&answer);
}

/* ---- what was told does not fail ---- */

/* What the first send that is not accepted hears: one group more may be under way. */
static enum error_code send_until_refused(void)
{
    for (int i = 0;; i++) {
        struct answer answer;
        start_id(&answer, str_format(f.arena, "more%d", i).data, "[{\"x\":2}]");
        finish(&answer);
        enum error_code code = answer.code;
        forget(&answer);
        if (answer.status != 202) {
            return code;
        }
    }
}

static void a_full_disk_only_delays_what_was_told(void **state)
{
    (void)state;
    fail_puts(IO);
    assert_accepted("a", "[{\"x\":1}]");
    assert_false(intake_early_await(logged.early, &f.seam, 2000));
    assert_int_equal(send_until_refused(), ERROR_DISK_LOW);
    fail_puts(OK);
    await_row("a");
    assert_accepted("c", "[{\"x\":3}]");
}

static void a_ledger_that_is_down_only_delays_what_was_told(void **state)
{
    (void)state;
    atomic_store(&f.lossy.down, true);
    assert_accepted("a", "[{\"x\":1}]");
    while (atomic_load(&f.lossy.refused) < 2) {
        seam_wait_us(seam_system(), 1000);
    }
    assert_no_row("a");
    atomic_store(&f.lossy.down, false);
    await_row("a");
}

/* The process ends first: the log keeps it, through a last checkpoint, for the next start. */
static void what_was_told_is_there_after_the_next_start(void **state)
{
    (void)state;
    struct intake_log_replayed replayed = {0};
    fail_puts(IO);
    assert_accepted("a", "[{\"x\":1}]");
    intake_close(f.intake);
    assert_no_row("a");
    fail_puts(OK);
    assert_int_equal(intake_log_checkpoint(logged.log, NULL), OK);
    close_log();
    open_log();
    assert_int_equal(intake_log_replay(logged.log, &replayed, NULL), OK);
    open_logged_intake();
    struct ledger_batch batch = row_of("a");
    assert_int_equal(batch.state, BATCH_PENDING);
    assert_verifies(&batch, "{\"x\":1}");
}

/* ---- when nothing is told ---- */

/* Whatever is done to the sink then, the ledger's transaction sees it before anybody is answered.
 */
static void a_closed_sink_is_judged_by_the_ledger(void **state)
{
    (void)state;
    const struct roll_env env = env_of();
    assert_int_equal(roll_close_sink(&env, SINK, NULL), OK);
    assert_int_equal(ledger_begin_delete(&f.db, SINK, NULL), OK);
    assert_refused("a", "[{}]", ERROR_SINK_DELETED);
    assert_no_row("a");
}

static void closing_waits_for_what_was_told(void **state)
{
    (void)state;
    struct roll_env env = env_of();
    struct error error = {0};
    gate_set(&f.gate, true);
    assert_accepted("a", "[{}]");
    gate_await(&f.gate, 1);
    env.stopping = yes;
    assert_int_equal(roll_close_sink(&env, SINK, &error), BUSY);
    assert_int_equal(error.code, ERROR_UNAVAILABLE);
    env.stopping = NULL;
    gate_set(&f.gate, false);
    assert_int_equal(roll_close_sink(&env, SINK, NULL), OK);
    assert_int_equal(row_of("a").state, BATCH_PENDING);
}

/* After it a new batch waits for the ledger. */
static void a_persons_decision_closes_its_sink(void **state)
{
    (void)state;
    const struct roll_env env = env_of();
    str row = {0};
    assert_int_equal(orphan_resolve(&env, f.arena, SINK, STR("x"), STR("y"), &row, NULL),
                     NOT_FOUND);
    gate_set(&f.gate, true);
    struct answer answer;
    start_id(&answer, "a", "[{}]");
    gate_await(&f.gate, 1);
    assert_null(queue_pop(answer.done, 20000));
    gate_set(&f.gate, false);
    finish(&answer);
    assert_int_equal(answer.status, 202);
    forget(&answer);
}

static void an_old_request_is_judged_by_the_ledger(void **state)
{
    (void)state;
    struct intake_sink *sink = NULL;
    struct intake_send *send = NULL;
    struct answer answer = {.done = queue_create(1), .arena = arena_create((size_t)4 * MIB)};
    const struct intake_request request = {
        .batch_id = STR("a"), .content_length = 4, .answered = answered, .context = &answer};
    assert_int_equal(
        intake_authenticate(f.intake, SINK, bearer(f.key), NULL, STR("1.1.1.1"), &sink, NULL), OK);
    assert_int_equal(intake_begin(f.intake, sink, &request, &send, NULL), OK);
    assert_int_equal(intake_send_body(send, STR("[{}]"), NULL), OK);
    atomic_store(&clock_ahead_us, 2 * 3600 * TIME_SECOND_US);
    intake_send_complete(send);
    finish(&answer);
    assert_int_equal(answer.code, ERROR_UNAVAILABLE);
    assert_no_row("a");
    forget(&answer);
}

static const struct journal_ops *quick;

/* The machine stands still between the log's flush and the answer. */
static err wait_for_hours(void *self, u64 position, struct error *error)
{
    err result = quick->wait(self, position, error);
    atomic_store(&clock_ahead_us, 2 * 3600 * TIME_SECOND_US);
    return result;
}

static void what_is_durable_too_late_is_taken_back(void **state)
{
    (void)state;
    struct answer answer;
    struct intake_log_replayed replayed = {0};
    quick = logged.journal.ops;
    struct journal_ops slow = *quick;
    slow.wait = wait_for_hours;
    logged.journal.ops = &slow;
    start_id(&answer, "a", "[{}]");
    finish(&answer);
    assert_int_equal(answer.code, ERROR_UNAVAILABLE);
    forget(&answer);
    intake_close(f.intake);
    logged.journal.ops = quick;
    close_log();
    open_log();
    assert_int_equal(intake_log_replay(logged.log, &replayed, NULL), OK);
    open_logged_intake();
    assert_no_row("a");
}

static void every_edge_of_telling_was_taken(void **state)
{
    (void)state;
    assert_int_equal(edges_missing_at("intake", "tell pass apply"), 0);
}

#define LOGGED_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_logged, tear_down_logged)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOGGED_TEST(a_new_batch_is_answered_before_its_files_are_there),
        LOGGED_TEST(what_was_refused_is_there_before_its_answer),
        LOGGED_TEST(a_resend_is_answered_when_the_first_has_its_row),
        LOGGED_TEST(a_resend_does_not_overtake_the_first_in_the_line),
        LOGGED_TEST(what_is_told_while_another_is_applied_shares_an_object),
        LOGGED_TEST(a_full_object_waits_and_another_one_begins),
        LOGGED_TEST(what_shares_an_object_is_there_after_the_next_start),
        LOGGED_TEST(a_send_that_waits_for_its_commit_is_not_answered_early),
        LOGGED_TEST(a_full_disk_only_delays_what_was_told),
        LOGGED_TEST(a_ledger_that_is_down_only_delays_what_was_told),
        LOGGED_TEST(what_was_told_is_there_after_the_next_start),
        LOGGED_TEST(a_closed_sink_is_judged_by_the_ledger),
        LOGGED_TEST(closing_waits_for_what_was_told),
        LOGGED_TEST(a_persons_decision_closes_its_sink),
        LOGGED_TEST(an_old_request_is_judged_by_the_ledger),
        LOGGED_TEST(what_is_durable_too_late_is_taken_back),
        cmocka_unit_test(every_edge_of_telling_was_taken),
    };
    machine_watch(watch);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
