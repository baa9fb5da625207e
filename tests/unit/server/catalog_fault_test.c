#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/catalog_fault.h"

static struct catalog_fault fault(enum catalog_kind kind, err result, enum error_code code,
                                  const char *message)
{
    struct error error = {0};
    (void)error_set(&error, result, code, "%s", message);
    return catalog_fault_of(kind, result, &error);
}

static void expect(enum catalog_kind kind, err result, enum error_code code, int status,
                   const char *type)
{
    struct catalog_fault found = fault(kind, result, code, "x");
    assert_int_equal(found.status, status);
    assert_string_equal(found.type, type);
}

/* R10: clients delete their data files after a 4xx: all that is surely not committed gets one. */
static void commit_that_surely_failed_is_a_4xx(void **state)
{
    (void)state;
    expect(CATALOG_COMMIT, CONFLICT, ERROR_COMMIT_CONFLICT, 409, "CommitFailedException");
    expect(CATALOG_COMMIT, BUSY, ERROR_OVERLOADED, 409, "CommitFailedException");
    expect(CATALOG_COMMIT, IO, ERROR_LEDGER_DOWN, 409, "CommitFailedException");
    expect(CATALOG_COMMIT, LIMIT, ERROR_OVERLOADED, 409, "CommitFailedException");
    expect(CATALOG_COMMIT, CORRUPT, ERROR_INTERNAL, 400, "BadRequestException");
    expect(CATALOG_COMMIT, INVALID, ERROR_INVALID_REQUEST, 400, "BadRequestException");
    expect(CATALOG_COMMIT, NOT_FOUND, ERROR_TABLE_NOT_FOUND, 404, "NoSuchTableException");
    expect(CATALOG_COMMIT, DENIED, ERROR_LOCATION_REFUSED, 403, "ForbiddenException");
}

/* And keep them after a 5xx: whatever may have been committed gets that, whichever code it carries.
 */
static void commit_that_may_have_happened_is_a_5xx(void **state)
{
    (void)state;
    for (int code = 0; code < ERROR_CODE_COUNT; code++) {
        struct catalog_fault found = fault(CATALOG_COMMIT, UNKNOWN, (enum error_code)code,
                                           "Failed to open");
        assert_int_equal(found.status, 500);
        assert_string_equal(found.type, "CommitStateUnknownException");
    }
}

/* R11: clients of some versions delete their files after a 503, whatever became of the commit. */
static void no_commit_is_answered_by_a_503(void **state)
{
    (void)state;
    for (int code = 0; code < ERROR_CODE_COUNT; code++) {
        for (int result = INVALID; result <= CANCELLED; result++) {
            struct catalog_fault found = fault(CATALOG_COMMIT, (err)result, (enum error_code)code,
                                               "x");
            assert_int_not_equal(found.status, 503);
            assert_true(found.status >= 400 && found.status <= 500);
        }
    }
}

static void registered_file_that_is_no_metadata_is_the_callers_fault(void **state)
{
    (void)state;
    expect(CATALOG_REGISTER, CORRUPT, ERROR_INTERNAL, 400, "BadRequestException");
    expect(CATALOG_REGISTER, BUSY, ERROR_OVERLOADED, 503, "ServiceUnavailableException");
    expect(CATALOG_PLAIN, CORRUPT, ERROR_INTERNAL, 500, "InternalServerError");
}

static void other_routes_say_busy_by_503(void **state)
{
    (void)state;
    expect(CATALOG_PLAIN, BUSY, ERROR_COMMIT_CONFLICT, 503, "ServiceUnavailableException");
    expect(CATALOG_PLAIN, IO, ERROR_LEDGER_DOWN, 503, "ServiceUnavailableException");
    expect(CATALOG_PLAIN, UNKNOWN, ERROR_LEDGER_DOWN, 500, "InternalServerError");
    expect(CATALOG_PLAIN, CONFLICT, ERROR_INVALID_REQUEST, 409, "NamespaceNotEmptyException");
}

static void lost_metadata_file_is_not_found(void **state)
{
    (void)state;
    struct catalog_fault found = fault(CATALOG_PLAIN, CORRUPT, ERROR_INTERNAL,
                                       "Failed to open input stream for file: file:///x");
    assert_int_equal(found.status, 404);
    assert_string_equal(found.type, "NotFoundException");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commit_that_surely_failed_is_a_4xx),
        cmocka_unit_test(commit_that_may_have_happened_is_a_5xx),
        cmocka_unit_test(no_commit_is_answered_by_a_503),
        cmocka_unit_test(registered_file_that_is_no_metadata_is_the_callers_fault),
        cmocka_unit_test(other_routes_say_busy_by_503),
        cmocka_unit_test(lost_metadata_file_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
