#include "account_fixture.h"

#include "account/access.h"
#include "account/audit.h"

static str bearer(struct fixture *fixture, str key)
{
    return str_format(fixture->arena, "Bearer %.*s", STR_ARG(key));
}

static enum error_code refused(struct fixture *fixture, str authorization)
{
    struct error error = {0};
    struct principal principal = {0};
    err result = access_authenticate(&fixture->db, fixture->arena, authorization, &principal,
                                     &error);
    assert_int_equal(result, DENIED);
    return error.code;
}

static struct principal taken(struct fixture *fixture, str authorization)
{
    struct error error = {0};
    struct principal principal = {0};
    assert_int_equal(
        access_authenticate(&fixture->db, fixture->arena, authorization, &principal, &error), OK);
    return principal;
}

static str make_project(struct fixture *fixture, str *out_key)
{
    struct error error = {0};
    str id = {0};
    assert_int_equal(access_create_project(&fixture->db, fixture->arena, &fixture->seam,
                                           STR("farm"), &id, out_key, &error),
                     OK);
    return id;
}

static void a_first_key_is_an_admin_of_its_project(void **state)
{
    struct fixture *fixture = *state;
    str key = {0};
    str project = make_project(fixture, &key);
    struct principal principal = taken(fixture, bearer(fixture, key));
    assert_true(str_equal(principal.project, project));
    assert_int_equal(principal.level, ACCESS_ADMIN);
}

static void the_scheme_may_be_in_any_case_and_blanks_do_not_count(void **state)
{
    struct fixture *fixture = *state;
    str key = {0};
    (void)make_project(fixture, &key);
    (void)taken(fixture, str_format(fixture->arena, "bearer %.*s", STR_ARG(key)));
    (void)taken(fixture, str_format(fixture->arena, "BEARER   %.*s  ", STR_ARG(key)));
    assert_int_equal(refused(fixture, str_format(fixture->arena, "Basic %.*s", STR_ARG(key))),
                     ERROR_UNAUTHORIZED);
    assert_int_equal(refused(fixture, STR("Bearer")), ERROR_UNAUTHORIZED);
    assert_int_equal(refused(fixture, (str){NULL, 0}), ERROR_UNAUTHORIZED);
}

static void a_send_key_is_no_principal_whatever_it_is(void **state)
{
    struct fixture *fixture = *state;
    str key = id_key_make(fixture->arena, &fixture->seam, ID_KEY_SEND);
    assert_int_equal(refused(fixture, bearer(fixture, key)), ERROR_SEND_ONLY);
    struct error error = {0};
    str token = {0};
    i64 seconds = 0;
    assert_int_equal(access_make_token(&fixture->db, fixture->arena, &fixture->seam, key, &token,
                                       &seconds, &error),
                     DENIED);
    assert_int_equal(error.code, ERROR_SEND_ONLY);
}

static void another_key_with_the_same_public_id_is_refused(void **state)
{
    struct fixture *fixture = *state;
    str key = {0};
    (void)make_project(fixture, &key);
    str other = id_key_make(fixture->arena, &fixture->seam, ID_KEY_API);
    assert_int_equal(refused(fixture, bearer(fixture, other)), ERROR_UNAUTHORIZED);
    str mixed = str_format(fixture->arena, "Bearer %.*s%.*s", STR_ARG(str_slice(key, 0, 20)),
                           STR_ARG(str_slice(other, 20, other.size)));
    assert_int_equal(refused(fixture, mixed), ERROR_UNAUTHORIZED);
}

static struct access_key make_key(struct fixture *fixture, str project, enum access_level level,
                                  instant expires_at, str *out_key)
{
    struct error error = {0};
    struct access_key row = {0};
    assert_int_equal(access_create_key(&fixture->db, fixture->arena, &fixture->seam, project,
                                       STR("reader"), level, expires_at, out_key, &row, &error),
                     OK);
    return row;
}

static void a_deleted_key_and_its_tokens_end_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    str admin = {0};
    str key = {0};
    str token = {0};
    i64 seconds = 0;
    str project = make_project(fixture, &admin);
    struct access_key row = make_key(fixture, project, ACCESS_READ, 0, &key);
    assert_int_equal(access_make_token(&fixture->db, fixture->arena, &fixture->seam, key, &token,
                                       &seconds, &error),
                     OK);
    assert_int_equal(taken(fixture, bearer(fixture, token)).level, ACCESS_READ);
    assert_int_equal(access_delete_key(&fixture->db, project, row.id, &error), OK);
    assert_int_equal(refused(fixture, bearer(fixture, key)), ERROR_UNAUTHORIZED);
    assert_int_equal(refused(fixture, bearer(fixture, token)), ERROR_UNAUTHORIZED);
    assert_int_equal(access_delete_key(&fixture->db, project, row.id, &error), NOT_FOUND);
}

static void a_key_of_another_project_cannot_be_deleted(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    str admin = {0};
    str key = {0};
    str project = make_project(fixture, &admin);
    struct access_key row = make_key(fixture, project, ACCESS_WRITE, 0, &key);
    assert_int_equal(access_delete_key(&fixture->db, STR("prj_other"), row.id, &error), NOT_FOUND);
    assert_int_equal(taken(fixture, bearer(fixture, key)).level, ACCESS_WRITE);
}

static void keys_and_tokens_expire_by_the_ledgers_clock(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    str admin = {0};
    str key = {0};
    str token = {0};
    i64 seconds = 0;
    str project = make_project(fixture, &admin);
    (void)make_key(fixture, project, ACCESS_READ, fixture->now + 7200 * TIME_SECOND_US, &key);
    assert_int_equal(access_make_token(&fixture->db, fixture->arena, &fixture->seam, key, &token,
                                       &seconds, &error),
                     OK);
    assert_int_equal(seconds, 3600);
    fixture->now += 3600 * TIME_SECOND_US;
    assert_int_equal(refused(fixture, bearer(fixture, token)), ERROR_UNAUTHORIZED);
    assert_int_equal(taken(fixture, bearer(fixture, key)).level, ACCESS_READ);
    fixture->now += 3600 * TIME_SECOND_US;
    assert_int_equal(refused(fixture, bearer(fixture, key)), ERROR_UNAUTHORIZED);
}

static void a_level_covers_those_below_it(void **state)
{
    (void)state;
    struct error error = {0};
    const struct principal writer = {.level = ACCESS_WRITE};
    assert_int_equal(access_require(&writer, ACCESS_READ, &error), OK);
    assert_int_equal(access_require(&writer, ACCESS_WRITE, &error), OK);
    assert_int_equal(access_require(&writer, ACCESS_ADMIN, &error), DENIED);
    assert_int_equal(error.code, ERROR_FORBIDDEN);
}

static void names_are_checked_and_taken_once(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    str id = {0};
    str key = {0};
    (void)make_project(fixture, &key);
    assert_int_equal(access_create_project(&fixture->db, fixture->arena, &fixture->seam,
                                           STR("farm"), &id, &key, &error),
                     CONFLICT);
    assert_int_equal(error.code, ERROR_NAME_TAKEN);
    error_clear(&error);
    assert_int_equal(access_create_project(&fixture->db, fixture->arena, &fixture->seam, STR("a b"),
                                           &id, &key, &error),
                     INVALID);
    assert_int_equal(error.code, ERROR_INVALID_REQUEST);
}

static void keys_are_listed_in_pages_without_their_secrets(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    str admin = {0};
    str project = make_project(fixture, &admin);
    for (int i = 0; i < 5; i++) {
        str key = {0};
        (void)make_key(fixture, project, ACCESS_READ, 0, &key);
    }
    size_t seen = 0;
    str after = STR("");
    struct access_key *keys = NULL;
    size_t count = 0;
    do {
        assert_int_equal(access_list_keys(&fixture->db, fixture->arena, project, after, 2, &keys,
                                          &count, &error),
                         OK);
        seen += count;
        after = count > 0 ? keys[count - 1].id : after;
    } while (count > 0);
    assert_int_equal(seen, 6);
    i64 all = 0;
    assert_int_equal(access_count_keys(&fixture->db, project, &all, &error), OK);
    assert_int_equal(all, 6);
}

static void audit_entries_are_numbered_and_come_newest_first(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    for (int i = 0; i < 3; i++) {
        const struct audit_entry entry = {
            .project = STR("prj_1"),
            .actor = STR("000000000000"),
            .action = STR("sink.create"),
            .object = str_format(fixture->arena, "snk_%d", i),
            .outcome = STR("ok"),
            .request_id = STR("req"),
        };
        assert_int_equal(audit_write(&fixture->db, &entry, &error), OK);
    }
    struct audit_entry *entries = NULL;
    size_t count = 0;
    assert_int_equal(
        audit_list(&fixture->db, fixture->arena, STR("prj_1"), 0, 2, &entries, &count, &error), OK);
    assert_int_equal(count, 2);
    assert_true(str_equal(entries[0].object, STR("snk_2")));
    assert_int_equal(audit_list(&fixture->db, fixture->arena, STR("prj_1"), entries[1].seq, 2,
                                &entries, &count, &error),
                     OK);
    assert_int_equal(count, 1);
    assert_true(str_equal(entries[0].object, STR("snk_0")));
    assert_int_equal(
        audit_list(&fixture->db, fixture->arena, STR("prj_2"), 0, 2, &entries, &count, &error), OK);
    assert_int_equal(count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_first_key_is_an_admin_of_its_project),
        TEST(the_scheme_may_be_in_any_case_and_blanks_do_not_count),
        TEST(a_send_key_is_no_principal_whatever_it_is),
        TEST(another_key_with_the_same_public_id_is_refused),
        TEST(a_deleted_key_and_its_tokens_end_at_once),
        TEST(a_key_of_another_project_cannot_be_deleted),
        TEST(keys_and_tokens_expire_by_the_ledgers_clock),
        TEST(a_level_covers_those_below_it),
        TEST(names_are_checked_and_taken_once),
        TEST(keys_are_listed_in_pages_without_their_secrets),
        TEST(audit_entries_are_numbered_and_come_newest_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
