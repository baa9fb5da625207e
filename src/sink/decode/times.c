/* Dates and times from their text. */
#include "base/time.h"
#include "sink/decode/scalar.h"

enum {
    DAY_FIRST = -719162, /* 0001-01-01 */
    DAY_AFTER = 2932897, /* 10000-01-01 */
    DAY_SECONDS = 86400,
    FRACTION_DIGITS_MAX = 18,
};

/* Takes exactly `count` digits off the front of the rest. */
static bool take_digits(str *rest, size_t count, i32 *out_value)
{
    if (rest->size < count) {
        return false;
    }
    i32 value = 0;
    for (size_t i = 0; i < count; i++) {
        char byte = rest->data[i];
        if (byte < '0' || byte > '9') {
            return false;
        }
        value = value * 10 + (byte - '0');
    }
    *out_value = value;
    *rest = str_slice(*rest, count, rest->size);
    return true;
}

static bool next_is(str rest, char byte)
{
    return rest.size > 0 && rest.data[0] == byte;
}

static bool take_byte(str *rest, char byte)
{
    if (!next_is(*rest, byte)) {
        return false;
    }
    *rest = str_slice(*rest, 1, rest->size);
    return true;
}

/* YYYY-MM-DD; the day need not be real. */
static bool take_date(str *rest, struct civil *out_civil)
{
    return take_digits(rest, 4, &out_civil->year) && take_byte(rest, '-') &&
           take_digits(rest, 2, &out_civil->month) && take_byte(rest, '-') &&
           take_digits(rest, 2, &out_civil->day);
}

struct clock {
    i32 hour;
    i32 minute;
    i32 second;
    u64 fraction; /* of a second, in units of 10^-18 */
};

/* One to FRACTION_DIGITS_MAX digits. */
static bool take_fraction(str *rest, u64 *out_fraction)
{
    u64 value = 0;
    size_t count = 0;
    while (count < rest->size && count < FRACTION_DIGITS_MAX && rest->data[count] >= '0' &&
           rest->data[count] <= '9') {
        value = value * 10 + (u64)(rest->data[count] - '0');
        count++;
    }
    for (size_t i = count; i < FRACTION_DIGITS_MAX; i++) {
        value *= 10;
    }
    *out_fraction = value;
    *rest = str_slice(*rest, count, rest->size);
    return count > 0;
}

/* HH:MM[:SS[.f…]]; the numbers need not be in range. */
static bool take_clock(str *rest, struct clock *out_clock)
{
    *out_clock = (struct clock){0};
    if (!take_digits(rest, 2, &out_clock->hour) || !take_byte(rest, ':') ||
        !take_digits(rest, 2, &out_clock->minute)) {
        return false;
    }
    if (!take_byte(rest, ':')) {
        return true;
    }
    if (!take_digits(rest, 2, &out_clock->second)) {
        return false;
    }
    return !take_byte(rest, '.') || take_fraction(rest, &out_clock->fraction);
}

static bool clock_valid(const struct clock *clock)
{
    return clock->hour <= 23 && clock->minute <= 59 && clock->second <= 59;
}

/* Since midnight; what is finer than the unit is cut. */
static i64 clock_units(const struct clock *clock, i64 per_second)
{
    i64 seconds = (i64)clock->hour * 3600 + (i64)clock->minute * 60 + clock->second;
    u64 unit = UINT64_C(1000000000000000000) / (u64)per_second;
    return seconds * per_second + (i64)(clock->fraction / unit);
}

struct zone {
    bool there;
    i32 hours;
    i32 minutes;
    bool negative;
};

/* Z z ±HH ±HHMM ±HH:MM, or nothing; all of the rest. */
static bool take_zone(str *rest, struct zone *out_zone)
{
    *out_zone = (struct zone){.there = rest->size > 0};
    if (rest->size == 0) {
        return true;
    }
    if (take_byte(rest, 'Z') || take_byte(rest, 'z')) {
        return rest->size == 0;
    }
    out_zone->negative = take_byte(rest, '-');
    if (!out_zone->negative && !take_byte(rest, '+')) {
        return false;
    }
    if (!take_digits(rest, 2, &out_zone->hours)) {
        return false;
    }
    if (rest->size == 0) {
        return true;
    }
    (void)take_byte(rest, ':');
    return take_digits(rest, 2, &out_zone->minutes) && rest->size == 0;
}

static enum decode_fit misfit(enum reject_reason reason, enum reject_reason *out_reason)
{
    *out_reason = reason;
    return DECODE_MISFITS;
}

enum decode_fit decode_date(str text, i32 *out_days, enum reject_reason *out_reason)
{
    struct civil civil;
    if (!take_date(&text, &civil) || text.size > 0 || !time_civil_valid(civil)) {
        return misfit(REJECT_BAD_DATE, out_reason);
    }
    i64 days = time_days_from_civil(civil);
    if (days < DAY_FIRST || days >= DAY_AFTER) {
        return misfit(REJECT_OUT_OF_RANGE, out_reason);
    }
    *out_days = (i32)days;
    return DECODE_FITS;
}

enum decode_fit decode_time(str text, i64 *out_microseconds, enum reject_reason *out_reason)
{
    struct clock clock;
    if (!take_clock(&text, &clock) || text.size > 0 || !clock_valid(&clock)) {
        return misfit(REJECT_BAD_TIME, out_reason);
    }
    *out_microseconds = clock_units(&clock, TIME_SECOND_US);
    return DECODE_FITS;
}

static bool take_timestamp(str text, struct civil *out_civil, struct clock *out_clock,
                           struct zone *out_zone)
{
    if (!take_date(&text, out_civil)) {
        return false;
    }
    if (!take_byte(&text, 'T') && !take_byte(&text, 't') && !take_byte(&text, ' ')) {
        return false;
    }
    return take_clock(&text, out_clock) && take_zone(&text, out_zone) &&
           time_civil_valid(*out_civil) && clock_valid(out_clock) && out_zone->hours <= 23 &&
           out_zone->minutes <= 59;
}

enum decode_fit decode_timestamp(str text, enum type_kind kind, i64 *out_units,
                                 enum reject_reason *out_reason)
{
    bool nanoseconds = kind == TYPE_TIMESTAMP_NS || kind == TYPE_TIMESTAMPTZ_NS;
    bool zoned = kind == TYPE_TIMESTAMPTZ || kind == TYPE_TIMESTAMPTZ_NS;
    i64 per_second = nanoseconds ? 1000 * TIME_SECOND_US : TIME_SECOND_US;
    struct civil civil;
    struct clock clock;
    struct zone zone;
    if (!take_timestamp(text, &civil, &clock, &zone)) {
        return misfit(REJECT_BAD_TIMESTAMP, out_reason);
    }
    if (zoned && !zone.there) {
        return misfit(REJECT_NO_OFFSET, out_reason);
    }
    i64 offset = ((i64)zone.hours * 60 + zone.minutes) * 60;
    i64 seconds = time_days_from_civil(civil) * DAY_SECONDS + (zone.negative ? offset : -offset);
    /* Years before 1677 and after 2262 overflow 64 bits of nanoseconds. */
    i128 value = (i128)seconds * per_second + clock_units(&clock, per_second);
    bool in_years = value >= (i128)DAY_FIRST * DAY_SECONDS * per_second &&
                    value < (i128)DAY_AFTER * DAY_SECONDS * per_second;
    if (!in_years || value < INT64_MIN || value > INT64_MAX) {
        return misfit(REJECT_OUT_OF_RANGE, out_reason);
    }
    *out_units = (i64)value;
    return DECODE_FITS;
}
