/* time: instants in microseconds UTC, civil days, and RFC 3339 text.
 *
 * Proleptic Gregorian calendar, years 0001 to 9999, no leap seconds. Pure; any thread. */
#ifndef LHBOX_BASE_TIME_H
#define LHBOX_BASE_TIME_H

#include "base/str.h"

/* Microseconds since 1970-01-01T00:00:00Z. */
typedef i64 instant;

enum { TIME_TEXT_SIZE = 27 }; /* 2026-09-21T12:00:00.123456Z */

#define TIME_SECOND_US ((i64)1000000)
#define TIME_DAY_US    ((i64)86400 * TIME_SECOND_US)

struct civil {
    i32 year;
    i32 month; /* 1..12 */
    i32 day;   /* 1..31 */
};

i64 time_days_from_civil(struct civil civil); /* days since 1970-01-01 */
struct civil time_civil_from_days(i64 days);
bool time_civil_valid(struct civil civil); /* a real day; any year 0..9999 */

/* Writes exactly TIME_TEXT_SIZE bytes, no NUL, and returns them as a slice of `out`. */
str time_format(instant at, char out[TIME_TEXT_SIZE]);
str time_format_in(struct arena *arena, instant at);
/* RFC 3339 with any offset, fraction cut to microseconds; false when it is none. */
MUST_USE bool time_parse(str text, instant *out_at);

#endif
