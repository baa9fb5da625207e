#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/time.h"

static void every_day_of_ten_thousand_years_comes_back(void **state)
{
    (void)state;
    static const i32 lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    i64 days = time_days_from_civil((struct civil){0, 1, 1});
    assert_int_equal(days, -719528);
    for (i32 year = 0; year <= 9999; year++) {
        bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        for (i32 month = 1; month <= 12; month++) {
            i32 length = lengths[month - 1] + (month == 2 && leap ? 1 : 0);
            for (i32 day = 1; day <= length; day++, days++) {
                struct civil civil = time_civil_from_days(days);
                bool same = civil.year == year && civil.month == month && civil.day == day;
                if (!same || time_days_from_civil(civil) != days || !time_civil_valid(civil)) {
                    fail_msg("%04d-%02d-%02d", year, month, day);
                }
            }
            assert_false(time_civil_valid((struct civil){year, month, length + 1}));
        }
    }
    assert_int_equal(days, 2932897);
    assert_int_equal(time_days_from_civil((struct civil){1970, 1, 1}), 0);
}

static void days_that_are_not_real_are_not_valid(void **state)
{
    (void)state;
    const struct civil bad[] = {{2024, 0, 1},  {2024, 13, 1}, {2024, 1, 0},  {2023, 2, 29},
                                {1900, 2, 29}, {2024, 4, 31}, {10000, 1, 1}, {-1, 1, 1}};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(time_civil_valid(bad[i]));
    }
    assert_true(time_civil_valid((struct civil){2000, 2, 29}));
    assert_true(time_civil_valid((struct civil){0, 2, 29}));
}

static void instants_have_one_text(void **state)
{
    (void)state;
    const struct {
        instant at;
        const char *wanted;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000000Z"},
        {-1, "1969-12-31T23:59:59.999999Z"},
        {-TIME_DAY_US, "1969-12-31T00:00:00.000000Z"},
        {-62135596800000000, "0001-01-01T00:00:00.000000Z"},
        {253402300799999999, "9999-12-31T23:59:59.999999Z"},
        {1789992000123456, "2026-09-21T12:00:00.123456Z"},
    };
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char text[TIME_TEXT_SIZE];
        assert_true(str_equal(time_format(cases[i].at, text), str_from(cases[i].wanted)));
        assert_true(str_equal(time_format_in(arena, cases[i].at), str_from(cases[i].wanted)));
        instant back = 0;
        assert_true(time_parse(str_from(cases[i].wanted), &back));
        assert_true(back == cases[i].at);
    }
    AUTO_ARENA struct arena *full = arena_create(0);
    assert_null(time_format_in(full, 0).data);
}

static void rfc3339_texts_are_read_to_the_microsecond(void **state)
{
    (void)state;
    const struct {
        const char *text;
        instant at;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01t00:00:00z", 0},
        {"1970-01-01 00:00:00+00:00", 0},
        {"1970-01-01T00:00:00-00:00", 0},
        {"1970-01-01T01:00:00+01:00", 0},
        {"1969-12-31T14:30:00-09:30", 0},
        {"1970-01-01T00:00:00.5Z", 500000},
        {"1970-01-01T00:00:00.0000019Z", 1},
        {"1969-12-31T23:59:59.9999999Z", -1},
        {"1969-12-31T23:59:59.999999999999999999999999999Z", -1},
        {"1970-01-02T23:59:00+23:59", TIME_DAY_US},
        {"1969-12-31T00:01:00-23:59", 0},
        {"2024-02-29T00:00:00Z", 1709164800000000},
        {"0001-01-01T00:00:00Z", -62135596800000000},
        {"0000-12-31T23:00:00-01:00", -62135596800000000},
        {"9999-12-31T23:59:59.999999Z", 253402300799999999},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        instant at = 4711;
        if (!time_parse(str_from(cases[i].text), &at) || at != cases[i].at) {
            fail_msg("%s", cases[i].text);
        }
    }
}

static void what_is_no_rfc3339_is_refused(void **state)
{
    (void)state;
    const char *bad[] = {
        "",
        "1970-01-01",
        "1970-01-01T00:00:00",
        "1970-01-01T00:00Z",
        "1970-01-01T00:00:00.Z",
        "1970-01-01T00:00:00,5Z",
        "1970-01-01T24:00:00Z",
        "1970-01-01T23:60:00Z",
        "1970-01-01T23:59:60Z",
        "1970-01-01T00:00:00+24:00",
        "1970-01-01T00:00:00+01:60",
        "1970-01-01T00:00:00+01",
        "1970-01-01T00:00:00+0100",
        "1970-01-01T00:00:00ZZ",
        "1970-01-01T00:00:00Z ",
        " 1970-01-01T00:00:00Z",
        "1970-1-01T00:00:00Z",
        "1970-01-1T00:00:00Z",
        "1970-02-30T00:00:00Z",
        "1970-13-01T00:00:00Z",
        "70-01-01T00:00:00Z",
        "+1970-01-01T00:00:00Z",
        "19700101T000000Z",
        "1970-01-01_00:00:00Z",
        "0000-12-31T23:59:59Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "10000-01-01T00:00:00Z",
        "1970-01-01T00:00:0aZ",
    };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        instant at = 4711;
        if (time_parse(str_from(bad[i]), &at) || at != 4711) {
            fail_msg("%s", bad[i]);
        }
    }
    instant at = 0;
    assert_false(time_parse(STR("1970-01-01\0"
                                "00:00:00Z"),
                            &at));
    assert_false(time_parse((str){NULL, 0}, &at));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_day_of_ten_thousand_years_comes_back),
        cmocka_unit_test(days_that_are_not_real_are_not_valid),
        cmocka_unit_test(instants_have_one_text),
        cmocka_unit_test(rfc3339_texts_are_read_to_the_microsecond),
        cmocka_unit_test(what_is_no_rfc3339_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
