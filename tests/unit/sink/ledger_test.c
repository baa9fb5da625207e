#include "roll_fixture.h"

#include "sink/ledger_recover.h"

static int open_any(void **state)
{
    *state = fixture_open();
    return 0;
}

static int close_any(void **state)
{
    fixture_close(*state);
    return 0;
}

static err change(struct db_tx *tx, void *context, struct error *error)
{
    return db_exec(tx, context, NULL, 0, NULL, error);
}

/* What another release, or an operator, left in the ledger. */
static void run_sql(struct roll_fixture *f, char *sql)
{
    must(f, db_transact(&f->db, change, sql, &f->error));
}

/* ---- opening ---- */

static void a_ledger_is_made_once(void **state)
{
    struct roll_fixture *f = *state;
    str again;
    must(f, ledger_open(&f->db, &f->seam, &f->error));
    must(f, ledger_installation(&f->db, f->arena, &again, &f->error));
    assert_true(str_equal(again, f->installation));
    assert_int_equal(again.size, ID_UID_SIZE);
}

static void a_ledger_of_another_version_is_refused(void **state)
{
    struct roll_fixture *f = *state;
    char sql[] = "UPDATE installation SET schema_version = 99";
    run_sql(f, sql);
    assert_int_equal(ledger_open(&f->db, &f->seam, &f->error), INVALID);
    assert_non_null(strstr(f->error.message, "99"));
}

/* ---- accepting ---- */

static void a_new_batch_is_pending_with_the_next_seq(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    send_batch(f, "b", "{\"x\":2}\n{\"x\":3}");
    struct ledger_batch a = look_batch(f, "a");
    struct ledger_batch b = look_batch(f, "b");
    assert_int_equal(a.state, BATCH_PENDING);
    assert_int_equal(b.seq, a.seq + 1);
    struct ledger_sink sink = look_sink(f);
    assert_int_equal(sink.batches, 2);
    assert_int_equal(sink.rows_accepted, 3);
    assert_int_equal(sink.bytes_accepted, 7 + 15);
    assert_int_equal(sink.waiting_rows, 3);
    assert_int_equal(sink.due_batches, 2);
    assert_int_equal(sink.oldest_due_seq, a.seq);
    assert_books(f);
}

/* I2, I3 */
static void the_same_bytes_again_are_a_duplicate(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept first = describe_batch(f, "a", STR("{\"x\":1}"));
    first.answer = STR("{\"accepted\":1}");
    accept_item(f, &first);
    assert_int_equal(first.outcome, ACCEPT_NEW);
    struct ledger_accept again = describe_batch(f, "a", STR("{\"x\":1}"));
    accept_item(f, &again);
    assert_int_equal(again.outcome, ACCEPT_DUPLICATE);
    assert_true(str_equal(again.first_answer, STR("{\"accepted\":1}")));
    assert_int_equal(look_sink(f).duplicates, 1);
    assert_int_equal(look_sink(f).batches, 1);
    struct ledger_batch row = look_batch(f, "a");
    assert_memory_equal(row.uid.text, first.uid.text, ID_UID_SIZE);
}

static void other_bytes_under_a_used_id_change_nothing(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept first = send_batch(f, "a", "{\"x\":1}");
    struct ledger_accept grown = describe_batch(f, "a", STR("{\"x\":1}\n{\"x\":2}"));
    accept_item(f, &grown);
    assert_int_equal(grown.outcome, ACCEPT_REUSED);
    assert_int_equal(look_batch(f, "a").rows, 1);
    assert_memory_equal(look_batch(f, "a").uid.text, first.uid.text, ID_UID_SIZE);
    roll_out(f);
    accept_item(f, &grown);
    assert_int_equal(grown.outcome, ACCEPT_REUSED);
    assert_int_equal(look_sink(f).rows_accepted, 1);
    assert_books(f);
}

static void two_sends_of_one_id_in_one_group_are_one_batch(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept items[2] = {
        describe_batch(f, "a", STR("{\"x\":1}")),
        describe_batch(f, "a", STR("{\"x\":1}")),
    };
    instant now = 0;
    must(f, ledger_register_node(&f->db, STR("node"), STR("all"), &now, &f->error));
    must(f, ledger_accept(&f->db, f->arena, STR("node"), f->sink_id, LEDGER_BACKLOG_DEFAULT,
                          LEDGER_DURABLE, items, 2, &f->error));
    assert_int_equal(items[0].outcome, ACCEPT_NEW);
    assert_int_equal(items[1].outcome, ACCEPT_DUPLICATE);
    assert_int_equal(look_sink(f).batches, 1);
}

static void the_same_attempt_again_is_no_duplicate(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept item = send_batch(f, "a", "{\"x\":1}");
    accept_item(f, &item); /* its first answer was lost */
    assert_int_equal(item.outcome, ACCEPT_NEW);
    assert_int_equal(look_sink(f).batches, 1);
    assert_int_equal(look_sink(f).duplicates, 0);
}

static void assert_refused(struct roll_fixture *f, struct ledger_accept item, enum error_code code)
{
    must(f, ledger_accept(&f->db, f->arena, STR("node"), f->sink_id, LEDGER_BACKLOG_DEFAULT,
                          LEDGER_DURABLE, &item, 1, &f->error));
    assert_int_equal(item.outcome, ACCEPT_REFUSED);
    assert_int_equal(item.refusal, code);
    struct ledger_batch row;
    assert_int_equal(ledger_find_batch(&f->db, f->arena, f->sink_id, item.batch_id, &row, NULL),
                     NOT_FOUND);
}

/* I4 */
static void a_node_without_a_lease_accepts_nothing(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept item = describe_batch(f, "a", STR("{\"x\":1}"));
    assert_refused(f, item, ERROR_UNAVAILABLE);
    instant now = 0;
    must(f, ledger_register_node(&f->db, STR("node"), STR("all"), &now, &f->error));
    assert_int_equal(now, f->now);
    f->now += 31 * TIME_SECOND_US;
    assert_refused(f, item, ERROR_UNAVAILABLE);
}

static void a_request_older_than_half_an_hour_is_refused(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept late = describe_batch(f, "late", STR("{\"x\":1}"));
    struct ledger_accept just = describe_batch(f, "just", STR("{\"x\":1}"));
    f->now += 30 * 60 * TIME_SECOND_US;
    accept_item(f, &just);
    assert_int_equal(just.outcome, ACCEPT_NEW);
    f->now += 1;
    instant now = 0;
    must(f, ledger_register_node(&f->db, STR("node"), STR("all"), &now, &f->error));
    assert_refused(f, late, ERROR_UNAVAILABLE);
}

/* I6, O6 */
static void void_uids_and_quarantined_ids_are_refused(void **state)
{
    struct roll_fixture *f = *state;
    instant now = 0;
    must(f, ledger_register_node(&f->db, STR("node"), STR("all"), &now, &f->error));
    struct ledger_accept item = describe_batch(f, "a", STR("{\"x\":1}"));
    str sql = str_format(f->arena, "INSERT INTO void_uid (uid, at) VALUES ('%.*s', 0)",
                         STR_ARG(id_uid_str(&item.uid)));
    char text[256];
    memcpy(text, sql.data, sql.size + 1);
    run_sql(f, text);
    assert_refused(f, item, ERROR_UNAVAILABLE);
    char quarantined[] = "INSERT INTO quarantine (sink, batch_id, uids, at) VALUES "
                         "('snk_000000000001', 'q', '[]', 0)";
    run_sql(f, quarantined);
    assert_refused(f, describe_batch(f, "q", STR("{\"x\":1}")), ERROR_BATCH_QUARANTINED);
}

static void a_recovering_sink_accepts_and_plans_nothing(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    char sql[] = "UPDATE sink SET recovering = 1";
    run_sql(f, sql);
    assert_refused(f, describe_batch(f, "b", STR("{\"x\":1}")), ERROR_UNAVAILABLE);
    struct ledger_plan plan = {0};
    assert_int_equal(ledger_make_plan(&f->db, f->arena, f->sink_id, STR("0123"), 1, 1, STR("asked"),
                                      &plan, NULL),
                     CONFLICT);
    i64 discarded = 0;
    assert_int_equal(sink_delete(&f->env, f->sink_id, &discarded, NULL), BUSY);
}

static void an_unknown_sink_accepts_nothing(void **state)
{
    struct roll_fixture *f = *state;
    instant now = 0;
    must(f, ledger_register_node(&f->db, STR("node"), STR("all"), &now, &f->error));
    struct ledger_accept item = describe_batch(f, "a", STR("{\"x\":1}"));
    must(f, ledger_accept(&f->db, f->arena, STR("node"), STR("snk_no"), LEDGER_BACKLOG_DEFAULT,
                          LEDGER_DURABLE, &item, 1, &f->error));
    assert_int_equal(item.outcome, ACCEPT_REFUSED);
    assert_int_equal(item.refusal, ERROR_SINK_NOT_FOUND);
}

static void a_full_backlog_refuses_new_ids_and_knows_old_ones(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept first = send_batch(f, "a", "{\"x\":1}");
    char sql[] = "UPDATE sink SET waiting_batches = 100000";
    run_sql(f, sql);
    assert_refused(f, describe_batch(f, "b", STR("{\"x\":1}")), ERROR_SINK_BACKLOG_FULL);
    struct ledger_accept again = describe_batch(f, "a", STR("{\"x\":1}"));
    accept_item(f, &again);
    assert_int_equal(again.outcome, ACCEPT_DUPLICATE);
    (void)first;
}

static void the_backlog_shrinks_as_batches_end(void **state)
{
    struct roll_fixture *f = *state;
    char sql[] = "UPDATE sink SET waiting_batches = waiting_batches + 99999";
    send_batch(f, "a", "{\"x\":1}");
    run_sql(f, sql);
    assert_refused(f, describe_batch(f, "b", STR("{\"x\":1}")), ERROR_SINK_BACKLOG_FULL);
    roll_out(f);
    send_batch(f, "b", "{\"x\":1}");
}

/* I20 */
static void ingest_ts_never_decreases_with_seq(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    instant first = f->now;
    f->now -= 3600 * TIME_SECOND_US;
    send_batch(f, "b", "{\"x\":2}");
    assert_int_equal(look_batch(f, "b").received_at, f->now);
    assert_int_equal(look_batch(f, "b").ingest_ts, first);
    f->now += 7200 * TIME_SECOND_US;
    send_batch(f, "c", "{\"x\":3}");
    assert_int_equal(look_batch(f, "c").ingest_ts, f->now);
}

static void a_batch_refused_whole_is_rejected_and_counts_no_usage(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_accept item = describe_batch(f, "a", STR(""));
    item.object_key = STR("");
    item.rows = 0;
    item.refused = 2;
    item.refused_reasons = STR("{\"not_an_object\":1,\"too_deep\":1}");
    accept_item(f, &item);
    assert_int_equal(item.outcome, ACCEPT_NEW);
    assert_int_equal(look_batch(f, "a").state, BATCH_REJECTED);
    assert_true(look_batch(f, "a").finished_at != 0);
    struct ledger_sink sink = look_sink(f);
    assert_int_equal(sink.rows_refused, 2);
    assert_int_equal(sink.rows_accepted, 0);
    assert_int_equal(sink.waiting_batches, 0);
    struct ledger_count *reasons = NULL;
    str *recent = NULL;
    size_t reason_count = 0;
    size_t recent_count = 0;
    must(f, ledger_list_rejects(&f->db, f->arena, f->sink_id, &reasons, &reason_count, &recent,
                                &recent_count, &f->error));
    assert_int_equal(reason_count, 2);
    assert_true(str_equal(reasons[0].name, STR("not_an_object")));
    assert_int_equal(reasons[0].count, 1);
    assert_books(f);
}

/* ---- sinks ---- */

static void a_table_has_one_live_sink(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_sink second = look_sink(f);
    second.id = STR("snk_000000000002");
    second.name = STR("other");
    second.send_key_id = STR("ba9876543210");
    assert_int_equal(ledger_insert_sink(&f->db, &second, &f->error), CONFLICT);
    assert_int_equal(f->error.code, ERROR_SINK_EXISTS);
    assert_non_null(strstr(f->error.fields, "snk_000000000001"));
    error_clear(&f->error);
    second.table_name = STR("elsewhere");
    second.name = STR("events");
    assert_int_equal(ledger_insert_sink(&f->db, &second, &f->error), CONFLICT);
    assert_int_equal(f->error.code, ERROR_NAME_TAKEN);
    error_clear(&f->error);
    /* both are free again once the first is deleted */
    i64 discarded = 0;
    must(f, sink_delete(&f->env, f->sink_id, &discarded, &f->error));
    second.table_name = STR("events");
    must(f, ledger_insert_sink(&f->db, &second, &f->error));
    struct ledger_sink found = {0};
    must(f, ledger_find_sink(&f->db, f->arena, STR("prj"), STR("events"), &found, &f->error));
    assert_true(str_equal(found.id, second.id));
    must(f, ledger_find_sink(&f->db, f->arena, STR("prj"), f->sink_id, &found, &f->error));
    assert_int_equal(found.state, SINK_DELETED);
}

static void sinks_are_found_by_their_project_alone(void **state)
{
    struct roll_fixture *f = *state;
    struct ledger_sink found = {0};
    must(f, ledger_find_sink(&f->db, f->arena, STR("prj"), STR("events"), &found, &f->error));
    must(f, ledger_find_sink_by_key(&f->db, f->arena, STR("0123456789ab"), &found, &f->error));
    assert_true(str_equal(found.id, f->sink_id));
    assert_int_equal(ledger_find_sink(&f->db, f->arena, STR("other"), f->sink_id, &found, NULL),
                     NOT_FOUND);
    assert_int_equal(ledger_find_sink(&f->db, f->arena, STR(""), STR("events"), &found, NULL),
                     NOT_FOUND);
    assert_int_equal(ledger_find_sink_by_key(&f->db, f->arena, STR("nobody"), &found, &f->error),
                     NOT_FOUND);
    assert_int_equal(f->error.code, ERROR_SINK_NOT_FOUND);
}

static void a_patch_changes_what_it_names(void **state)
{
    struct roll_fixture *f = *state;
    str name = STR("renamed");
    i64 seconds = 120;
    i64 off = 0;
    i64 inactivity = 30;
    struct ledger_sink_patch patch = {
        .name = &name, .roll_seconds = &seconds, .inactivity_seconds = &inactivity};
    must(f, ledger_patch_sink(&f->db, f->sink_id, &patch, &f->error));
    struct ledger_sink sink = look_sink(f);
    assert_true(str_equal(sink.name, name));
    assert_int_equal(sink.roll_seconds, 120);
    assert_int_equal(sink.inactivity_seconds, 30);
    assert_int_equal(sink.roll_bytes, 64 * (i64)MIB);
    assert_int_equal(sink.config_version, 2);
    patch = (struct ledger_sink_patch){.inactivity_seconds = &off};
    must(f, ledger_patch_sink(&f->db, f->sink_id, &patch, &f->error));
    assert_int_equal(look_sink(f).inactivity_seconds, 0);
    str key = STR("[\"x\"]");
    patch = (struct ledger_sink_patch){.key_columns = &key};
    must(f, ledger_patch_sink(&f->db, f->sink_id, &patch, &f->error));
    assert_true(str_equal(look_sink(f).key_columns, key));
    str none = {NULL, 0};
    patch.key_columns = &none;
    must(f, ledger_patch_sink(&f->db, f->sink_id, &patch, &f->error));
    assert_null(look_sink(f).key_columns.data);
    assert_int_equal(ledger_patch_sink(&f->db, STR("snk_no"), &patch, &f->error), NOT_FOUND);
}

static void a_disabled_sink_accepts_and_makes_no_plan(void **state)
{
    struct roll_fixture *f = *state;
    must(f, ledger_disable_sink(&f->db, f->sink_id, STR("table_gone"), STR("why"), &f->error));
    must(f, ledger_disable_sink(&f->db, f->sink_id, STR("another"), STR("no"), &f->error));
    assert_true(str_equal(look_sink(f).state_reason, STR("table_gone")));
    assert_true(str_equal(look_sink(f).last_error, STR("why")));
    send_batch(f, "a", "{\"x\":1}");
    assert_int_equal(roll_tick(f), ROLL_NOTHING);
    must(f, ledger_resume_sink(&f->db, f->sink_id, &f->error));
    assert_int_equal(look_sink(f).state, SINK_ACTIVE);
    assert_null(look_sink(f).state_reason.data);
    assert_int_equal(roll_tick(f), ROLL_ENDED);
}

static void asking_for_a_roll_knows_what_came_before(void **state)
{
    struct roll_fixture *f = *state;
    instant asked_at = 0;
    i64 upto = 0;
    i64 waiting = 0;
    send_batch(f, "a", "{\"x\":1}");
    must(f, ledger_ask_roll(&f->db, f->sink_id, &asked_at, &upto, &f->error));
    send_batch(f, "b", "{\"x\":2}");
    assert_int_equal(asked_at, f->now);
    assert_int_equal(upto, look_batch(f, "a").seq);
    must(f, ledger_count_waiting(&f->db, f->sink_id, upto, &waiting, &f->error));
    assert_int_equal(waiting, 1);
    roll_out(f);
    must(f, ledger_count_waiting(&f->db, f->sink_id, upto, &waiting, &f->error));
    assert_int_equal(waiting, 0);
    assert_int_equal(ledger_ask_roll(&f->db, STR("snk_no"), &asked_at, &upto, NULL), NOT_FOUND);
}

/* A sink that is deleted between a request's first look at it and its change. */
static void a_change_of_a_deleted_sink_says_that_it_is_deleted(void **state)
{
    struct roll_fixture *f = *state;
    const str name = STR("other");
    const struct ledger_sink_patch patch = {.name = &name};
    instant asked_at = 0;
    i64 upto = 0;
    struct error error = {0};
    must(f, ledger_begin_delete(&f->db, f->sink_id, &f->error));
    assert_int_equal(ledger_ask_roll(&f->db, f->sink_id, &asked_at, &upto, &error), NOT_FOUND);
    assert_int_equal(error.code, ERROR_SINK_DELETED);
    assert_int_equal(ledger_resume_sink(&f->db, f->sink_id, &error), NOT_FOUND);
    assert_int_equal(error.code, ERROR_SINK_DELETED);
    assert_int_equal(ledger_patch_sink(&f->db, f->sink_id, &patch, &error), NOT_FOUND);
    assert_int_equal(error.code, ERROR_SINK_DELETED);
}

static void a_lease_is_one_holders_until_it_ends(void **state)
{
    struct roll_fixture *f = *state;
    must(f, ledger_take_lease(&f->db, f->sink_id, STR("one"), &f->error));
    must(f, ledger_take_lease(&f->db, f->sink_id, STR("one"), &f->error));
    assert_int_equal(ledger_take_lease(&f->db, f->sink_id, STR("two"), NULL), BUSY);
    must(f, ledger_release_lease(&f->db, f->sink_id, STR("two"), &f->error));
    assert_int_equal(ledger_take_lease(&f->db, f->sink_id, STR("two"), NULL), BUSY);
    f->now += 31 * TIME_SECOND_US;
    must(f, ledger_take_lease(&f->db, f->sink_id, STR("two"), &f->error));
    assert_int_equal(ledger_take_lease(&f->db, f->sink_id, STR("one"), NULL), BUSY);
    must(f, ledger_release_lease(&f->db, f->sink_id, STR("two"), &f->error));
    must(f, ledger_take_lease(&f->db, f->sink_id, STR("one"), &f->error));
}

static void the_claim_never_goes_back(void **state)
{
    struct roll_fixture *f = *state;
    must(f, ledger_attempt_claim(&f->db, f->sink_id, &f->error));
    must(f, ledger_attempt_claim(&f->db, f->sink_id, &f->error));
    must(f, ledger_finish_claim(&f->db, f->sink_id, &f->error));
    assert_int_equal(ledger_attempt_claim(&f->db, f->sink_id, NULL), CONFLICT);
    assert_int_equal(look_sink(f).claim_state, CLAIM_CLAIMED);
    char sql[] = "UPDATE sink SET last_n = 5, last_plan_id = 'p'";
    run_sql(f, sql);
    must(f, ledger_finish_claim(&f->db, f->sink_id, &f->error));
    assert_int_equal(look_sink(f).last_n, 5);
}

/* ---- plans ---- */

static struct ledger_plan claimed_plan(struct roll_fixture *f, i64 bytes_max, i64 batches_max)
{
    struct uid id = id_uid_make(&f->seam);
    struct ledger_plan plan = {0};
    if (look_sink(f).claim_state != CLAIM_CLAIMED) {
        must(f, ledger_attempt_claim(&f->db, f->sink_id, &f->error));
        must(f, ledger_finish_claim(&f->db, f->sink_id, &f->error));
    }
    must(f, ledger_make_plan(&f->db, f->arena, f->sink_id, id_uid_str(&id), bytes_max, batches_max,
                             STR("asked"), &plan, &f->error));
    return plan;
}

static size_t plan_size(struct roll_fixture *f, const struct ledger_plan *plan)
{
    struct ledger_batch *batches = NULL;
    size_t count = 0;
    must(f, ledger_plan_batches(&f->db, f->arena, plan->id, &batches, &count, &f->error));
    return count;
}

static void a_plan_takes_batches_in_seq_order_up_to_its_limits(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    send_batch(f, "b", "{\"x\":2}");
    send_batch(f, "c", "{\"x\":3}");
    struct ledger_plan plan = claimed_plan(f, 14, 100);
    assert_int_equal(plan.n, 1);
    assert_true(str_equal(plan.prev, look_sink(f).claim_id));
    assert_int_equal(plan_size(f, &plan), 2);
    assert_int_equal(look_batch(f, "b").state, BATCH_PLANNED);
    assert_int_equal(look_batch(f, "c").state, BATCH_PENDING);
    must(f, ledger_void_open(&f->db, plan.id, STR("test"), NULL, 0, &f->error));
    plan = claimed_plan(f, 1, 100); /* one at least */
    assert_int_equal(plan_size(f, &plan), 1);
    must(f, ledger_void_open(&f->db, plan.id, STR("test"), NULL, 0, &f->error));
    plan = claimed_plan(f, 1000, 2);
    assert_int_equal(plan_size(f, &plan), 2);
    assert_int_equal(plan.n, 1); /* a void plan's number is used again */
}

/* I8 */
static void a_sink_has_one_live_plan(void **state)
{
    struct roll_fixture *f = *state;
    struct uid id = id_uid_make(&f->seam);
    struct ledger_plan plan = {0};
    send_batch(f, "a", "{\"x\":1}");
    assert_int_equal(ledger_make_plan(&f->db, f->arena, f->sink_id, id_uid_str(&id), 1000, 100,
                                      STR("asked"), &plan, NULL),
                     CONFLICT); /* not claimed */
    claimed_plan(f, 1000, 100);
    send_batch(f, "b", "{\"x\":1}");
    assert_int_equal(ledger_make_plan(&f->db, f->arena, f->sink_id, id_uid_str(&id), 1000, 100,
                                      STR("asked"), &plan, NULL),
                     CONFLICT);
    must(f, ledger_live_plan(&f->db, f->arena, f->sink_id, &plan, &f->error));
    assert_int_equal(plan_size(f, &plan), 1);
    must(f, ledger_void_open(&f->db, plan.id, STR("test"), NULL, 0, &f->error));
    assert_int_equal(ledger_live_plan(&f->db, f->arena, f->sink_id, &plan, NULL), NOT_FOUND);
}

static void nothing_pending_makes_no_plan(void **state)
{
    struct roll_fixture *f = *state;
    struct uid id = id_uid_make(&f->seam);
    struct ledger_plan plan = {0};
    must(f, ledger_attempt_claim(&f->db, f->sink_id, &f->error));
    must(f, ledger_finish_claim(&f->db, f->sink_id, &f->error));
    assert_int_equal(ledger_make_plan(&f->db, f->arena, f->sink_id, id_uid_str(&id), 1000, 100,
                                      STR("asked"), &plan, NULL),
                     NOT_FOUND);
    assert_int_equal(look_sink(f).rolled_at, 0);
}

static void no_try_starts_after_a_void_a_stop_or_a_patch(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    struct ledger_plan plan = claimed_plan(f, 1000, 100);
    str tried = STR("{\"snapshot\":1}");
    str counts = STR("{}");
    must(f, ledger_mark_attempted(&f->db, plan.id, tried, counts, LEDGER_DURABLE, &f->error));
    must(f, ledger_mark_attempted(&f->db, plan.id, tried, counts, LEDGER_DURABLE, &f->error));
    must(f, ledger_disable_sink(&f->db, f->sink_id, STR("test"), STR(""), &f->error));
    assert_int_equal(ledger_mark_attempted(&f->db, plan.id, tried, counts, LEDGER_DURABLE, NULL),
                     CONFLICT);
    must(f, ledger_resume_sink(&f->db, f->sink_id, &f->error));
    must(f, ledger_mark_attempted(&f->db, plan.id, tried, counts, LEDGER_DURABLE, &f->error));
    i64 seconds = 90;
    const struct ledger_sink_patch patch = {.roll_seconds = &seconds};
    must(f, ledger_patch_sink(&f->db, f->sink_id, &patch, &f->error));
    assert_int_equal(ledger_mark_attempted(&f->db, plan.id, tried, counts, LEDGER_DURABLE, NULL),
                     CONFLICT);
    must(f, ledger_begin_void(&f->db, plan.id, STR("test"), &f->error));
    assert_int_equal(ledger_mark_attempted(&f->db, plan.id, tried, counts, LEDGER_DURABLE, NULL),
                     CONFLICT);
    must(f, ledger_live_plan(&f->db, f->arena, f->sink_id, &plan, &f->error));
    assert_true(
        str_equal(plan.attempts, STR("[{\"snapshot\":1},{\"snapshot\":1},{\"snapshot\":1}]")));
    assert_int_equal(plan.state, PLAN_VOIDING);
}

static void an_attempted_plan_is_not_voided_without_voiding(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    struct ledger_plan plan = claimed_plan(f, 1000, 100);
    assert_int_equal(ledger_begin_void(&f->db, plan.id, STR("test"), NULL), CONFLICT);
    assert_int_equal(ledger_record_fence(&f->db, plan.id, 5, NULL), CONFLICT);
    must(f,
         ledger_mark_attempted(&f->db, plan.id, STR("{}"), STR("{}"), LEDGER_DURABLE, &f->error));
    assert_int_equal(ledger_void_open(&f->db, plan.id, STR("test"), NULL, 0, NULL), CONFLICT);
    assert_int_equal(ledger_end_void(&f->db, plan.id, NULL, 0, NULL), CONFLICT);
    must(f, ledger_begin_void(&f->db, plan.id, STR("first"), &f->error));
    must(f, ledger_begin_void(&f->db, plan.id, STR("second"), &f->error));
    must(f, ledger_record_fence(&f->db, plan.id, 5, &f->error));
    must(f, ledger_record_fence(&f->db, plan.id, 6, &f->error));
    must(f, ledger_live_plan(&f->db, f->arena, f->sink_id, &plan, &f->error));
    assert_true(str_equal(plan.fences, STR("[5,6]")));
    assert_true(str_equal(plan.void_reason, STR("first")));
    assert_int_equal(look_batch(f, "a").state, BATCH_PLANNED);
    must(f, ledger_end_void(&f->db, plan.id, NULL, 0, &f->error));
    assert_int_equal(look_batch(f, "a").state, BATCH_PENDING);
    assert_int_equal(ledger_record_fence(&f->db, plan.id, 7, NULL), CONFLICT);
}

static void a_finish_is_done_once_however_often_it_is_repeated(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}\n{\"x\":2}");
    struct ledger_plan plan = claimed_plan(f, 1000, 100);
    const struct ledger_verdict verdict = {STR("a"), 1, 1};
    const struct ledger_count reason = {STR("wrong_type"), 1};
    const struct ledger_outcome outcome = {.verdicts = &verdict,
                                           .verdict_count = 1,
                                           .reasons = &reason,
                                           .reason_count = 1,
                                           .snapshot_id = 77,
                                           .roll_us = 1500000};
    assert_int_equal(ledger_finish_plan(&f->db, plan.id, &outcome, NULL), CONFLICT);
    must(f,
         ledger_mark_attempted(&f->db, plan.id, STR("{}"), STR("{}"), LEDGER_DURABLE, &f->error));
    for (int i = 0; i < 3; i++) {
        must(f, ledger_finish_plan(&f->db, plan.id, &outcome, &f->error));
    }
    struct ledger_sink sink = look_sink(f);
    assert_int_equal(sink.rows_committed, 1);
    assert_int_equal(sink.rows_rejected, 1);
    assert_int_equal(sink.last_n, 1);
    assert_true(str_equal(sink.last_plan_id, plan.id));
    assert_true(str_find(sink.last_roll, STR("\"rows\":1,\"rejected_rows\":1,\"snapshot_id\":77,"
                                             "\"seconds\":1.500000,\"reason\":\"asked\"}")) > 0);
    assert_int_equal(look_batch(f, "a").snapshot_id, 77);
}

static void a_finish_that_does_not_fit_the_plan_changes_nothing(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    struct ledger_plan plan = claimed_plan(f, 1000, 100);
    must(f,
         ledger_mark_attempted(&f->db, plan.id, STR("{}"), STR("{}"), LEDGER_DURABLE, &f->error));
    const struct ledger_verdict verdict = {STR("b"), 1, 0};
    struct ledger_outcome outcome = {.verdicts = &verdict, .verdict_count = 1};
    assert_int_equal(ledger_finish_plan(&f->db, plan.id, &outcome, NULL), CORRUPT);
    outcome.verdict_count = 0;
    assert_int_equal(ledger_finish_plan(&f->db, plan.id, &outcome, NULL), CORRUPT);
    assert_int_equal(look_batch(f, "a").state, BATCH_PLANNED);
    assert_int_equal(look_sink(f).last_n, 0);
}

static void misses_count_when_they_are_ten_seconds_apart(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "a", "{\"x\":1}");
    claimed_plan(f, 1000, 100);
    i64 misses = 0;
    const i64 wanted[] = {1, 1, 1, 2, 2, 2, 3};
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        must(f, ledger_note_miss(&f->db, f->sink_id, STR("a"), STR("object_missing"), &misses,
                                 &f->error));
        assert_int_equal(misses, wanted[i]);
        f->now += 4 * TIME_SECOND_US;
    }
}

static void a_group_object_goes_with_the_last_of_its_batches(void **state)
{
    struct roll_fixture *f = *state;
    str body = STR("{\"x\":1}{\"x\":2}");
    struct ledger_accept items[2] = {
        describe_batch(f, "a", str_slice(body, 0, 7)),
        describe_batch(f, "b", str_slice(body, 7, 14)),
    };
    items[1].uid = items[0].uid;
    items[1].object_key = items[0].object_key;
    items[1].offset = 7;
    must(f, store_put(&f->store, items[0].object_key, body, NULL, &f->error));
    instant now = 0;
    must(f, ledger_register_node(&f->db, STR("node"), STR("all"), &now, &f->error));
    must(f, ledger_accept(&f->db, f->arena, STR("node"), f->sink_id, LEDGER_BACKLOG_DEFAULT,
                          LEDGER_DURABLE, items, 2, &f->error));
    char sql[] = "UPDATE sink SET roll_bytes = 1"; /* one batch a plan */
    run_sql(f, sql);
    i64 deleted = 0;
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    assert_int_equal(deleted, 0);
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    assert_int_equal(deleted, 1);
    assert_int_equal(table_rows(f), 2);
    assert_books(f);
}

/* ---- node leases (I4) ---- */

static void a_lease_that_ended_or_was_dropped_is_not_renewed(void **state)
{
    struct roll_fixture *f = *state;
    instant now = 0;
    assert_int_equal(ledger_renew_node(&f->db, STR("nod_new"), &now, NULL), CONFLICT);
    must(f, ledger_register_node(&f->db, STR("nod_new"), STR("intake"), &now, &f->error));
    f->now += 30 * TIME_SECOND_US;
    must(f, ledger_renew_node(&f->db, STR("nod_new"), &now, &f->error));
    assert_int_equal(now, f->now);
    f->now += 31 * TIME_SECOND_US;
    assert_int_equal(ledger_renew_node(&f->db, STR("nod_new"), &now, NULL), CONFLICT);
    must(f, ledger_register_node(&f->db, STR("nod_other"), STR("intake"), &now, &f->error));
    must(f, ledger_begin_recover(&f->db, STR("snk_none"), &f->error));
    assert_int_equal(ledger_renew_node(&f->db, STR("nod_other"), &now, NULL), CONFLICT);
}

/* It saw the table before another recover, which has ended since: the sink is well. */
static void a_recover_that_wakes_too_late_stops_no_sink(void **state)
{
    struct roll_fixture *f = *state;
    must(f, ledger_begin_recover(&f->db, f->sink_id, &f->error));
    must(f, ledger_end_recover(&f->db, f->sink_id, &f->error));
    assert_int_equal(ledger_stop_recover(&f->db, f->sink_id, STR("ledger_mismatch"), STR("late"),
                                         LEDGER_STOP_KEEP_FLAG, NULL),
                     CONFLICT);
    assert_int_equal(look_sink(f).state, SINK_ACTIVE);
    must(f, ledger_begin_recover(&f->db, f->sink_id, &f->error));
    must(f, ledger_stop_recover(&f->db, f->sink_id, STR("ledger_mismatch"), STR("now"),
                                LEDGER_STOP_KEEP_FLAG, &f->error));
    assert_int_equal(look_sink(f).state, SINK_DISABLED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_any, close_any)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_ledger_is_made_once),
        TEST(a_ledger_of_another_version_is_refused),
        TEST(a_new_batch_is_pending_with_the_next_seq),
        TEST(the_same_bytes_again_are_a_duplicate),
        TEST(other_bytes_under_a_used_id_change_nothing),
        TEST(two_sends_of_one_id_in_one_group_are_one_batch),
        TEST(the_same_attempt_again_is_no_duplicate),
        TEST(a_node_without_a_lease_accepts_nothing),
        TEST(a_request_older_than_half_an_hour_is_refused),
        TEST(void_uids_and_quarantined_ids_are_refused),
        TEST(a_recovering_sink_accepts_and_plans_nothing),
        TEST(an_unknown_sink_accepts_nothing),
        TEST(a_full_backlog_refuses_new_ids_and_knows_old_ones),
        TEST(the_backlog_shrinks_as_batches_end),
        TEST(ingest_ts_never_decreases_with_seq),
        TEST(a_batch_refused_whole_is_rejected_and_counts_no_usage),
        TEST(a_table_has_one_live_sink),
        TEST(sinks_are_found_by_their_project_alone),
        TEST(a_patch_changes_what_it_names),
        TEST(a_disabled_sink_accepts_and_makes_no_plan),
        TEST(asking_for_a_roll_knows_what_came_before),
        TEST(a_change_of_a_deleted_sink_says_that_it_is_deleted),
        TEST(a_lease_is_one_holders_until_it_ends),
        TEST(the_claim_never_goes_back),
        TEST(a_plan_takes_batches_in_seq_order_up_to_its_limits),
        TEST(a_sink_has_one_live_plan),
        TEST(nothing_pending_makes_no_plan),
        TEST(no_try_starts_after_a_void_a_stop_or_a_patch),
        TEST(an_attempted_plan_is_not_voided_without_voiding),
        TEST(a_finish_is_done_once_however_often_it_is_repeated),
        TEST(a_finish_that_does_not_fit_the_plan_changes_nothing),
        TEST(misses_count_when_they_are_ten_seconds_apart),
        TEST(a_group_object_goes_with_the_last_of_its_batches),
        TEST(a_lease_that_ended_or_was_dropped_is_not_renewed),
        TEST(a_recover_that_wakes_too_late_stops_no_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
