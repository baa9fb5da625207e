#include "base/time.h"

#include "base/arena.h"
#include "base/assert.h"

enum { DAYS_0001 = -719162, DAYS_10000 = 2932897 };

static bool is_leap(i32 year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

bool time_civil_valid(struct civil civil)
{
    static const i32 days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (civil.year < 0 || civil.year > 9999 || civil.month < 1 || civil.month > 12) {
        return false;
    }
    i32 last = civil.month == 2 && is_leap(civil.year) ? 29 : days[civil.month - 1];
    return civil.day >= 1 && civil.day <= last;
}

/* Days of the years counted from March, so that the leap day is a year's last (the era has 400
 * years and 146097 days). */
i64 time_days_from_civil(struct civil civil)
{
    i64 year = civil.month <= 2 ? (i64)civil.year - 1 : civil.year;
    i64 era = (year >= 0 ? year : year - 399) / 400;
    i64 year_of_era = year - era * 400;
    i64 month_from_march = (civil.month + 9) % 12;
    i64 day_of_year = (153 * month_from_march + 2) / 5 + civil.day - 1;
    i64 day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

struct civil time_civil_from_days(i64 days)
{
    i64 shifted = days + 719468;
    i64 era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    i64 day_of_era = shifted - era * 146097;
    i64 year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) /
                      365;
    i64 day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    i64 month_from_march = (5 * day_of_year + 2) / 153;
    i64 day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    i64 month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
    i64 year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
    return (struct civil){.year = (i32)year, .month = (i32)month, .day = (i32)day};
}

static char *put_digits(char *to, i64 value, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        to[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return to + count;
}

static char *put_byte(char *to, char byte)
{
    *to = byte;
    return to + 1;
}

str time_format(instant at, char out[TIME_TEXT_SIZE])
{
    i64 days = at / TIME_DAY_US;
    i64 rest = at % TIME_DAY_US;
    if (rest < 0) {
        days--;
        rest += TIME_DAY_US;
    }
    assert(days >= DAYS_0001 && days < DAYS_10000);
    struct civil civil = time_civil_from_days(days);
    i64 seconds = rest / TIME_SECOND_US;

    char *to = put_digits(out, civil.year, 4);
    to = put_byte(to, '-');
    to = put_digits(to, civil.month, 2);
    to = put_byte(to, '-');
    to = put_digits(to, civil.day, 2);
    to = put_byte(to, 'T');
    to = put_digits(to, seconds / 3600, 2);
    to = put_byte(to, ':');
    to = put_digits(to, seconds / 60 % 60, 2);
    to = put_byte(to, ':');
    to = put_digits(to, seconds % 60, 2);
    to = put_byte(to, '.');
    to = put_digits(to, rest % TIME_SECOND_US, 6);
    to = put_byte(to, 'Z');
    assert(to == out + TIME_TEXT_SIZE);
    return (str){out, TIME_TEXT_SIZE};
}

str time_format_in(struct arena *arena, instant at)
{
    char text[TIME_TEXT_SIZE];
    return str_copy(arena, time_format(at, text));
}

/* Takes `count` digits off the front. */
static bool take_digits(str *text, size_t count, i32 *out_value)
{
    if (text->size < count) {
        return false;
    }
    i32 value = 0;
    for (size_t i = 0; i < count; i++) {
        if (text->data[i] < '0' || text->data[i] > '9') {
            return false;
        }
        value = value * 10 + (text->data[i] - '0');
    }
    *text = str_slice(*text, count, text->size);
    *out_value = value;
    return true;
}

/* Takes one byte that is in `wanted` off the front. */
static bool take_byte(str *text, const char *wanted)
{
    if (text->size == 0 || text->data[0] == '\0' || strchr(wanted, text->data[0]) == NULL) {
        return false;
    }
    *text = str_slice(*text, 1, text->size);
    return true;
}

static bool take_date(str *text, i64 *out_days)
{
    struct civil civil = {0};
    bool form = take_digits(text, 4, &civil.year) && take_byte(text, "-") &&
                take_digits(text, 2, &civil.month) && take_byte(text, "-") &&
                take_digits(text, 2, &civil.day);
    if (!form || !time_civil_valid(civil)) {
        return false;
    }
    *out_days = time_days_from_civil(civil);
    return true;
}

/* Microseconds of a fraction of at least one digit; those past the sixth are cut. */
static bool take_fraction(str *text, i64 *out_us)
{
    size_t count = 0;
    i64 value = 0;
    while (count < text->size && text->data[count] >= '0' && text->data[count] <= '9') {
        value = count < 6 ? value * 10 + (text->data[count] - '0') : value;
        count++;
    }
    if (count == 0) {
        return false;
    }
    for (size_t i = count; i < 6; i++) {
        value *= 10;
    }
    *text = str_slice(*text, count, text->size);
    *out_us = value;
    return true;
}

static bool take_clock(str *text, i64 *out_us)
{
    i32 hour = 0;
    i32 minute = 0;
    i32 second = 0;
    i64 fraction_us = 0;
    bool form = take_digits(text, 2, &hour) && take_byte(text, ":") &&
                take_digits(text, 2, &minute) && take_byte(text, ":") &&
                take_digits(text, 2, &second);
    if (!form || hour > 23 || minute > 59 || second > 59) {
        return false;
    }
    if (take_byte(text, ".") && !take_fraction(text, &fraction_us)) {
        return false;
    }
    *out_us = ((i64)hour * 3600 + minute * 60 + second) * TIME_SECOND_US + fraction_us;
    return true;
}

static bool take_offset(str *text, i64 *out_us)
{
    if (take_byte(text, "Zz")) {
        *out_us = 0;
        return true;
    }
    bool west = str_starts(*text, STR("-"));
    i32 hours = 0;
    i32 minutes = 0;
    bool form = take_byte(text, "+-") && take_digits(text, 2, &hours) && take_byte(text, ":") &&
                take_digits(text, 2, &minutes);
    if (!form || hours > 23 || minutes > 59) {
        return false;
    }
    i64 offset_us = ((i64)hours * 3600 + minutes * 60) * TIME_SECOND_US;
    *out_us = west ? -offset_us : offset_us;
    return true;
}

bool time_parse(str text, instant *out_at)
{
    i64 days = 0;
    i64 clock_us = 0;
    i64 offset_us = 0;
    bool form = take_date(&text, &days) && take_byte(&text, "Tt ") &&
                take_clock(&text, &clock_us) && take_offset(&text, &offset_us);
    if (!form || text.size > 0) {
        return false;
    }
    instant at = days * TIME_DAY_US + clock_us - offset_us;
    if (at < DAYS_0001 * TIME_DAY_US || at >= DAYS_10000 * TIME_DAY_US) {
        return false;
    }
    *out_at = at;
    return true;
}
