#include "catalog_fixture.h"

#include "table/catalog_receipt.h"

static struct catalog_receipt *open_receipt(struct fixture *f, const char *id, const char *hash)
{
    struct catalog_receipt *receipt = NULL;
    must(f, catalog_receipt_open(f->arena, &f->catalog, str_from(id), str_from(hash), &receipt,
                                 &f->error));
    return receipt;
}

static struct catalog_outcome find(struct fixture *f, const char *id)
{
    struct catalog_outcome outcome = {.found = false};
    must(f, catalog_receipt_find(open_receipt(f, id, "h"), f->arena, &outcome, &f->error));
    return outcome;
}

static err make_space(struct fixture *f, const char *id, const char *name)
{
    struct catalog catalog = catalog_receipt_catalog(open_receipt(f, id, "h"));
    f->error = (struct error){0};
    return catalog_local_make_namespace(catalog_local_of(&catalog), str_from(name), NULL,
                                        &f->error);
}

static bool has_space(struct fixture *f, const char *name)
{
    json_auto_t *properties = NULL;
    return catalog_local_load_namespace(f->local, str_from(name), &properties, NULL) == OK;
}

static void receipt_is_there_when_the_effect_is(void **state)
{
    struct fixture *f = *state;
    assert_false(find(f, "1").found);
    must(f, make_space(f, "1", "a"));
    assert_true(find(f, "1").found);
    assert_int_equal(find(f, "1").status, 0);
    f->fault = FAULT_REFUSED;
    assert_int_equal(make_space(f, "2", "b"), IO);
    assert_false(find(f, "2").found || has_space(f, "b"));
    f->fault = FAULT_DONE_UNTOLD;
    assert_int_equal(make_space(f, "3", "c"), UNKNOWN);
    assert_true(find(f, "3").found && has_space(f, "c"));
}

/* The second of two at a time: it found no receipt before it began. */
static void second_effect_under_one_id_is_undone(void **state)
{
    struct fixture *f = *state;
    must(f, make_space(f, "1", "a"));
    assert_int_equal(make_space(f, "1", "b"), CONFLICT);
    assert_false(has_space(f, "b"));
}

static void refusal_is_kept_with_its_words(void **state)
{
    struct fixture *f = *state;
    struct catalog_receipt *receipt = open_receipt(f, "1", "h");
    must(f, catalog_receipt_write(receipt, 404, STR("{}"), &f->error));
    must(f, catalog_receipt_write(receipt, 409, STR("other"), &f->error));
    struct catalog_outcome outcome = find(f, "1");
    assert_int_equal(outcome.status, 404);
    assert_str(outcome.body, "{}");
}

static void id_of_another_request_is_invalid(void **state)
{
    struct fixture *f = *state;
    must(f, make_space(f, "1", "a"));
    struct catalog_outcome outcome = {.found = false};
    assert_int_equal(
        catalog_receipt_find(open_receipt(f, "1", "other"), f->arena, &outcome, &f->error),
        INVALID);
}

static err age(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    return db_run(tx, error, "UPDATE catalog_receipt SET at = at - ?1", DB_N(CATALOG_RECEIPT_US));
}

static err count(struct db_tx *tx, void *context, struct error *error)
{
    struct fixture *f = context;
    struct db_rows rows = {0};
    TRY(db_query(tx, f->arena, "SELECT id FROM catalog_receipt", NULL, 0, &rows, error));
    assert_int_equal(rows.row_count, 1);
    assert_str(db_text(&rows, 0, 0), "2");
    return OK;
}

static void old_receipts_are_forgotten_and_removed(void **state)
{
    struct fixture *f = *state;
    must(f, make_space(f, "1", "a"));
    must(f, db_transact(&f->db, age, NULL, &f->error));
    assert_false(find(f, "1").found);
    must(f, make_space(f, "2", "b"));
    must(f, db_read(&f->db, count, f, &f->error));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(receipt_is_there_when_the_effect_is),    T(second_effect_under_one_id_is_undone),
        T(refusal_is_kept_with_its_words),         T(id_of_another_request_is_invalid),
        T(old_receipts_are_forgotten_and_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
