/* The machines of a roll and of a commit: from each state in which a tick may find a sink, every
 * call fails or loses its answer, and somebody else does something before every call. Whatever
 * came, the sink comes to rest with each row in the table once; and each edge was taken. */
#include "restore_fixture.h"

#include "edges.h"

/* ---- scenes: all are to end with the rows of a, b and c in the table ---- */

static void scene_first(struct roll_fixture *f)
{
    send_object(f, "a", "{\"x\":1}\n{\"x\":\"no\"}");
    send_object(f, "b", "{\"x\":2}");
    send_object(f, "c", "{\"x\":3}");
}

static void scene_second(struct roll_fixture *f)
{
    send_object(f, "a", "{\"x\":1}\n{\"x\":\"no\"}");
    roll_out(f);
    send_object(f, "b", "{\"x\":2}");
    send_object(f, "c", "{\"x\":3}");
}

/* Attempted, and perhaps under way: the process died before or after its commit. */
static void attempt(struct roll_fixture *f, void (*death)(struct roll_fixture *))
{
    scene_second(f);
    f->before_commit = death;
    roll_tick(f);
    assert_true(f->doors.dead);
    door_heal(f);
    f->now += 60 * TIME_SECOND_US;
}

static void scene_attempted(struct roll_fixture *f)
{
    attempt(f, die_before_the_commit);
}

static void scene_landed(struct roll_fixture *f)
{
    attempt(f, die_after_the_commit);
}

static void change_settings(struct roll_fixture *f)
{
    str ignore = STR("ignore");
    const struct ledger_sink_patch patch = {.unknown_fields = &ignore};
    must(f, ledger_patch_sink(&f->db, f->sink_id, &patch, &f->error));
}

static void scene_open_patched(struct roll_fixture *f)
{
    struct uid id = id_uid_make(&f->seam);
    struct ledger_plan plan = {0};
    scene_second(f);
    must(f, ledger_make_plan(&f->db, f->arena, f->sink_id, id_uid_str(&id), MIB, 100, STR("asked"),
                             &plan, &f->error));
    change_settings(f);
}

static void scene_attempted_patched(struct roll_fixture *f)
{
    scene_attempted(f);
    change_settings(f);
}

static void scene_landed_patched(struct roll_fixture *f)
{
    scene_landed(f);
    change_settings(f);
}

static void scene_voiding(struct roll_fixture *f)
{
    scene_attempted_patched(f);
    f->before_commit = die_before_the_commit; /* the fence's */
    roll_tick(f);
    assert_true(f->doors.dead);
    door_heal(f);
    f->now += 60 * TIME_SECOND_US;
}

static void scene_widened(struct roll_fixture *f)
{
    scene_attempted(f);
    widen(f);
}

static void stop_sink(struct roll_fixture *f)
{
    must(f, ledger_disable_sink(&f->db, f->sink_id, STR("owner"), STR("stopped"), &f->error));
}

static void scene_landed_disabled(struct roll_fixture *f)
{
    scene_landed(f);
    stop_sink(f);
}

static void scene_attempted_disabled(struct roll_fixture *f)
{
    scene_attempted(f);
    stop_sink(f);
}

/* The ledger is a copy of before the roll of b. */
static void scene_ahead(struct roll_fixture *f)
{
    send_object(f, "a", "{\"x\":1}\n{\"x\":\"no\"}");
    roll_out(f);
    struct db copy = take_copy(f);
    send_object(f, "b", "{\"x\":2}");
    roll_out(f);
    put_back(f, &copy);
    db_close(&copy);
    send_object(f, "c", "{\"x\":3}");
}

/* Bytes that do not verify for the third time, and are mended in time. */
static void scene_damaged(struct roll_fixture *f)
{
    scene_second(f);
    struct ledger_accept lost = send_batch(f, "lost", "{\"x\":9}");
    must(f, store_remove(&f->store, lost.object_key, &f->error));
    assert_int_equal(roll_tick(f), ROLL_LATER);
    f->now += TIME_SECOND_US;
    assert_int_equal(roll_tick(f), ROLL_LATER);
}

static void scene_rejected(struct roll_fixture *f)
{
    scene_first(f);
    roll_out(f);
    send_object(f, "bad", "{\"x\":\"no\"}");
}

/* ---- the end that all of them have ---- */

static str right_property;

/* What an owner does about a sink that was stopped. */
static void put_right(struct roll_fixture *f)
{
    if (right_property.data != NULL && str_equal(table_property(f), STR("edited"))) {
        foreign_set_property(f, right_property);
    }
    if (look_sink(f).state == SINK_DISABLED) {
        must(f, ledger_resume_sink(&f->db, f->sink_id, &f->error));
    }
}

static void assert_at_rest(struct roll_fixture *f, const char *scene, i64 at)
{
    door_heal(f);
    f->now += 60 * TIME_SECOND_US;
    put_right(f);
    roll_out(f);
    if (table_rows(f) != 3) {
        fail_msg("%s, call %lld: %lld rows", scene, (long long)at, (long long)table_rows(f));
    }
    static const char *const ids[] = {"a", "b", "c"};
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        assert_int_equal(look_batch(f, ids[i]).state, BATCH_COMMITTED);
    }
    assert_int_equal(look_batch(f, "a").rows_rejected, 1);
    assert_books(f);
}

struct scene {
    const char *name;
    void (*make)(struct roll_fixture *f);
};
#define SCENE(name) {#name, scene_##name}
static const struct scene SCENES[] = {
    SCENE(first),
    SCENE(second),
    SCENE(attempted),
    SCENE(landed),
    SCENE(open_patched),
    SCENE(attempted_patched),
    SCENE(landed_patched),
    SCENE(voiding),
    SCENE(widened),
    SCENE(landed_disabled),
    SCENE(attempted_disabled),
    SCENE(ahead),
    SCENE(damaged),
    SCENE(rejected),
};

/* ---- every call fails ---- */

static void fault_at_every_call(const struct scene *scene, enum door_fault fault)
{
    bool reached = true;
    for (i64 at = 1; reached; at++) {
        struct roll_fixture *f = aged_fixture();
        scene->make(f);
        door_arm(f, fault, at);
        roll_tick(f);
        reached = f->doors.calls >= at;
        assert_at_rest(f, scene->name, at);
        fixture_close(f);
    }
}

static void a_call_that_fails_in_any_state_costs_a_tick(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(SCENES); i++) {
        fault_at_every_call(&SCENES[i], DOOR_FAILS);
    }
}

static void an_answer_lost_while_a_plan_is_taken_back_costs_a_tick(void **state)
{
    (void)state;
    static const struct scene scenes[] = {SCENE(voiding), SCENE(attempted_patched),
                                          SCENE(open_patched), SCENE(landed_disabled)};
    for (size_t i = 0; i < ARRAY_COUNT(scenes); i++) {
        fault_at_every_call(&scenes[i], DOOR_LOSES);
    }
}

/* ---- somebody else does something before every call ---- */

static void other_rolls(struct roll_fixture *f)
{
    f->now += 60 * TIME_SECOND_US;
    struct roll_env other = f->env;
    other.holder = STR("other");
    enum roll_end end = ROLL_LATER;
    for (int ticks = 0; ticks < 9 && end != ROLL_NOTHING; ticks++) {
        must(f, roll_sink(&other, f->sink_id, STR("asked"), &end, &f->error));
    }
}

static void other_edits(struct roll_fixture *f)
{
    right_property = table_property(f);
    if (right_property.data != NULL) {
        foreign_set_property(f, STR("edited"));
    }
}

static void other_edits_for_long(struct roll_fixture *f)
{
    other_edits(f);
    bool disabled = false;
    must(f, ledger_note_mismatch(&f->db, f->sink_id, STR("seen"), &disabled, &f->error));
    f->now += 8 * TIME_SECOND_US;
}

static void before_every_call(const struct scene *scene, void (*meddle)(struct roll_fixture *))
{
    bool reached = true;
    for (i64 at = 1; reached; at++) {
        struct roll_fixture *f = aged_fixture();
        right_property = (str){NULL, 0};
        scene->make(f);
        door_meddle(f, meddle, at);
        roll_tick(f);
        reached = f->doors.calls >= at;
        assert_at_rest(f, scene->name, at);
        fixture_close(f);
    }
}

static void somebody_may_come_between_anywhere(void **state)
{
    (void)state;
    static const struct {
        struct scene scene;
        void (*meddle)(struct roll_fixture *f);
    } cases[] = {
        {SCENE(first), other_rolls},
        {SCENE(attempted), other_rolls},
        {SCENE(voiding), other_rolls},
        {SCENE(ahead), other_rolls},
        {SCENE(second), change_settings},
        {SCENE(attempted), change_settings},
        {SCENE(second), stop_sink},
        {SCENE(voiding), stop_sink},
        {SCENE(attempted), widen},
        {SCENE(second), other_edits},
        {SCENE(second), other_edits_for_long},
        {SCENE(voiding), other_edits_for_long},
        {SCENE(widened), other_edits_for_long},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        before_every_call(&cases[i].scene, cases[i].meddle);
    }
}

static void other_drops(struct roll_fixture *f)
{
    must(f, catalog_drop(&f->catalog, fixture_table(), &f->error));
}

/* The rows that wait stay; nothing is counted as committed that was not. */
static void a_table_may_be_dropped_anywhere(void **state)
{
    (void)state;
    static const struct scene scenes[] = {SCENE(first), SCENE(attempted_patched), SCENE(widened)};
    for (size_t i = 0; i < ARRAY_COUNT(scenes); i++) {
        bool reached = true;
        for (i64 at = 1; reached; at++) {
            struct roll_fixture *f = aged_fixture();
            scenes[i].make(f);
            door_meddle(f, other_drops, at);
            roll_tick(f);
            reached = f->doors.calls >= at;
            door_heal(f);
            f->now += 60 * TIME_SECOND_US;
            roll_out(f);
            struct ledger_sink sink = look_sink(f);
            assert_true(sink.state == SINK_DISABLED || sink.due_batches == 0);
            assert_int_equal(sink.rows_accepted, sink.rows_committed + sink.rows_rejected +
                                                     sink.waiting_rows + sink.rows_discarded);
            fixture_close(f);
        }
    }
}

/* ---- ends that only a stop, or somebody persistent, brings about ---- */

static bool always(void *context)
{
    (void)context;
    return true;
}

static void a_stop_ends_the_tick_before_the_next_try(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(SCENES); i++) {
        struct roll_fixture *f = aged_fixture();
        SCENES[i].make(f);
        i64 commits = f->commits;
        f->env.stopping = always;
        roll_tick(f);
        assert_true(f->commits - commits <= 1);
        f->env.stopping = NULL;
        assert_at_rest(f, SCENES[i].name, 0);
        fixture_close(f);
    }
}

static void others_append(struct roll_fixture *f)
{
    foreign_append(f);
}

static void a_race_that_is_always_lost_is_given_up(void **state)
{
    (void)state;
    struct roll_fixture *f = aged_fixture();
    scene_second(f);
    i64 commits = f->commits;
    f->before_commit = others_append;
    assert_int_equal(roll_tick(f), ROLL_LATER);
    assert_int_equal(f->commits - commits, ROLL_TRIES);
    assert_at_rest(f, "lost races", 0);
    fixture_close(f);
}

static void other_goes_two_plans_on(struct roll_fixture *f)
{
    f->before_commit = NULL;
    other_rolls(f);
    send_object(f, "d", "{\"x\":\"no\"}\n{\"x\":4}");
    other_rolls(f);
}

static void a_plan_that_was_finished_and_left_behind_is_let_go(void **state)
{
    (void)state;
    struct roll_fixture *f = aged_fixture();
    scene_second(f);
    f->before_commit = other_goes_two_plans_on;
    roll_tick(f);
    roll_out(f);
    assert_int_equal(table_rows(f), 4);
    assert_int_equal(look_sink(f).last_n, 3);
    assert_books(f);
    fixture_close(f);
}

/* The ledger is put back to an older copy under the roll, which lost a race besides. */
static void other_is_far_ahead(struct roll_fixture *f)
{
    struct uid id = id_uid_make(&f->seam);
    const struct plan_property ahead = {f->installation, f->sink_id, 9, id_uid_str(&id)};
    f->before_commit = NULL;
    foreign_set_property(f, plan_print_property(f->arena, &ahead));
    foreign_append(f);
}

static void a_table_that_gets_ahead_during_a_try_is_recovered_from(void **state)
{
    (void)state;
    struct roll_fixture *f = aged_fixture();
    scene_second(f);
    f->before_commit = other_is_far_ahead;
    /* there is no plan object from which it could recover */
    assert_int_equal(roll_tick(f), ROLL_DISABLED);
    assert_true(str_equal(look_sink(f).state_reason, STR("ledger_mismatch")));
    assert_int_equal(table_rows(f), 1);
    assert_books(f);
    fixture_close(f);
}

static void every_edge_was_taken(void **state)
{
    (void)state;
    assert_int_equal(edges_missing("roll") + edges_missing("commit"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_fails_in_any_state_costs_a_tick),
        cmocka_unit_test(an_answer_lost_while_a_plan_is_taken_back_costs_a_tick),
        cmocka_unit_test(somebody_may_come_between_anywhere),
        cmocka_unit_test(a_table_may_be_dropped_anywhere),
        cmocka_unit_test(a_stop_ends_the_tick_before_the_next_try),
        cmocka_unit_test(a_race_that_is_always_lost_is_given_up),
        cmocka_unit_test(a_plan_that_was_finished_and_left_behind_is_let_go),
        cmocka_unit_test(a_table_that_gets_ahead_during_a_try_is_recovered_from),
        cmocka_unit_test(every_edge_was_taken),
    };
    machine_watch(edges_note);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
