#include "restore_fixture.h"

#include "sink/incarnation.h"

/* O1: how an older copy of the ledger is recognised. */

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

struct node {
    const struct warehouse *warehouses[1];
    struct incarnation incarnation;
};

/* A process that starts. */
static void node_start(struct roll_fixture *f, struct node *node)
{
    *node = (struct node){.warehouses = {&f->warehouse}};
    node->incarnation = (struct incarnation){.db = &f->door_db,
                                             .warehouses = node->warehouses,
                                             .count = 1,
                                             .installation_id = f->installation};
}

static enum incarnation_reading read_now(struct roll_fixture *f)
{
    struct node node;
    enum incarnation_reading reading = INCARNATION_FINE;
    node_start(f, &node);
    must(f, incarnation_read(&node.incarnation, &reading, &f->error));
    return reading;
}

static void raise_now(struct roll_fixture *f)
{
    struct node node;
    enum incarnation_reading reading = INCARNATION_FINE;
    node_start(f, &node);
    must(f, incarnation_read(&node.incarnation, &reading, &f->error));
    must(f, incarnation_raise(&node.incarnation, &f->error));
}

static void a_new_installation_is_fine(void **state)
{
    struct roll_fixture *f = *state;
    assert_int_equal(read_now(f), INCARNATION_FINE);
    raise_now(f);
    assert_int_equal(read_now(f), INCARNATION_FINE);
    raise_now(f);
    assert_int_equal(read_now(f), INCARNATION_FINE);
}

static void an_older_copy_is_behind_until_it_is_raised(void **state)
{
    struct roll_fixture *f = *state;
    raise_now(f);
    struct db copy = take_copy(f);
    raise_now(f);
    copy_ledger(f, &copy, &f->db);
    assert_int_equal(read_now(f), INCARNATION_BEHIND);
    raise_now(f);
    assert_int_equal(read_now(f), INCARNATION_FINE);
    copy_ledger(f, &copy, &f->db);
    assert_int_equal(read_now(f), INCARNATION_BEHIND);
    db_close(&copy);
}

static void a_copy_of_before_the_first_number_is_behind(void **state)
{
    struct roll_fixture *f = *state;
    struct db copy = take_copy(f);
    raise_now(f);
    copy_ledger(f, &copy, &f->db);
    db_close(&copy);
    assert_int_equal(read_now(f), INCARNATION_BEHIND);
}

static void a_marked_copy_is_behind_whatever_its_number(void **state)
{
    struct roll_fixture *f = *state;
    raise_now(f);
    must(f, ledger_mark_copy(&f->db, &f->error));
    assert_int_equal(read_now(f), INCARNATION_BEHIND);
    must(f, ledger_unmark_copy(&f->db, &f->error));
    assert_int_equal(read_now(f), INCARNATION_FINE);
}

static void a_ledger_ahead_of_its_store_is_refused(void **state)
{
    struct roll_fixture *f = *state;
    struct store_object object = {0};
    struct node node;
    enum incarnation_reading reading = INCARNATION_FINE;
    raise_now(f);
    must(f, store_get(&f->store, f->arena, STR("_sink/incarnation.json"), &object, &f->error));
    raise_now(f);
    must(f, store_put(&f->store, object.key, object.body, NULL, &f->error));
    node_start(f, &node);
    assert_int_equal(incarnation_read(&node.incarnation, &reading, &f->error), CORRUPT);
    assert_non_null(strstr(f->error.message, "older than the ledger"));
    error_clear(&f->error);
    must(f, store_remove(&f->store, object.key, &f->error));
    assert_int_equal(incarnation_read(&node.incarnation, &reading, NULL), CORRUPT);
}

static void another_installations_store_is_refused(void **state)
{
    struct roll_fixture *f = *state;
    static const char *const texts[] = {
        "{\"format\":1,\"installation\":\"other\",\"incarnation\":7}", "{}", "", "[1]",
        "{\"format\":1,\"installation\":\"other\",\"incarnation\":-1}"};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct node node;
        enum incarnation_reading reading = INCARNATION_FINE;
        must(f, store_put(&f->store, STR("_sink/incarnation.json"), str_from(texts[i]), NULL,
                          &f->error));
        node_start(f, &node);
        assert_int_equal(incarnation_read(&node.incarnation, &reading, NULL), CORRUPT);
    }
}

static void a_store_that_does_not_answer_keeps_its_number(void **state)
{
    struct roll_fixture *f = *state;
    struct node node;
    raise_now(f);
    node_start(f, &node);
    enum incarnation_reading reading = INCARNATION_FINE;
    must(f, incarnation_read(&node.incarnation, &reading, &f->error));
    door_arm(f, DOOR_FAILS, 2); /* the put, after the ledger was read */
    must(f, incarnation_raise(&node.incarnation, &f->error));
    door_heal(f);
    assert_int_equal(read_now(f), INCARNATION_FINE);
}

/* Store first, then ledger: a death in between costs a recover, never hides a copy. */
static void a_raise_may_end_anywhere(void **state)
{
    struct roll_fixture *f = *state;
    bool more = true;
    for (i64 at = 1; more; at++) {
        struct node node;
        enum incarnation_reading reading = INCARNATION_FINE;
        raise_now(f);
        node_start(f, &node);
        must(f, incarnation_read(&node.incarnation, &reading, &f->error));
        door_arm(f, at % 2 == 0 ? DOOR_DIES_AFTER : DOOR_DIES_BEFORE, (at + 1) / 2);
        err raised = incarnation_raise(&node.incarnation, NULL);
        more = f->doors.dead || raised != OK;
        door_heal(f);
        enum incarnation_reading after = read_now(f);
        assert_true(after == INCARNATION_FINE || after == INCARNATION_BEHIND);
    }
}

static void a_running_node_sees_that_the_ledger_was_put_back(void **state)
{
    struct roll_fixture *f = *state;
    struct node node;
    enum incarnation_reading reading = INCARNATION_BEHIND;
    node_start(f, &node);
    must(f, incarnation_watch(&node.incarnation, &reading, &f->error));
    assert_int_equal(reading, INCARNATION_FINE);
    struct db copy = take_copy(f);
    must(f, incarnation_watch(&node.incarnation, &reading, &f->error));
    copy_ledger(f, &copy, &f->db);
    db_close(&copy);
    must(f, incarnation_watch(&node.incarnation, &reading, &f->error));
    assert_int_equal(reading, INCARNATION_BEHIND);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_installation_is_fine),
        TEST(an_older_copy_is_behind_until_it_is_raised),
        TEST(a_copy_of_before_the_first_number_is_behind),
        TEST(a_marked_copy_is_behind_whatever_its_number),
        TEST(a_ledger_ahead_of_its_store_is_refused),
        TEST(another_installations_store_is_refused),
        TEST(a_store_that_does_not_answer_keeps_its_number),
        TEST(a_raise_may_end_anywhere),
        TEST(a_running_node_sees_that_the_ledger_was_put_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
