/* Compiled once as it is and once with AVX2 and JSON_ELEMENT_WIDE. */
#include "format/json_element.h"

#include "format/json_scan.h"
#include "format/json_token.h"

/* The skip_ functions begin at or before `limit`, JSON_SCAN_SLACK bytes before the end, or a few
 * bytes behind it, and look where they are again before they go far. NULL: not JSON, or too near to
 * the end. */

static HOT const u8 *skip_space(const u8 *at, const u8 *limit)
{
    if (*at > ' ') {
        return at;
    }
    while (at < limit && json_is_space(*at)) {
        at++;
    }
    return at;
}

static COLD const u8 *skip_escape(const u8 *at)
{
    if (at[1] == 'u') {
        bool hex = json_hex_digit(at[2]) >= 0 && json_hex_digit(at[3]) >= 0 &&
                   json_hex_digit(at[4]) >= 0 && json_hex_digit(at[5]) >= 0;
        return hex ? at + 6 : NULL;
    }
    return at[1] != 0 && strchr("\"\\/bfnrt", at[1]) != NULL ? at + 2 : NULL;
}

/* From behind the opening quote to behind the closing one. */
static HOT const u8 *skip_string(const u8 *at, const u8 *limit)
{
    while (at < limit) {
        u32 size = scan_look(at).size;
        at += size;
        if (size == SCAN_BYTES) {
            continue;
        }
        if (*at == '"') {
            return at + 1;
        }
        at = *at == '\\' ? skip_escape(at) : NULL;
        if (at == NULL) {
            return NULL;
        }
    }
    return NULL;
}

/* One digit or more. */
static HOT const u8 *skip_digits(const u8 *at, const u8 *limit)
{
    const u8 *start = at;
    u32 count;
    do {
        count = scan_digit_count(num_load_u64(at));
        at += count;
    } while (count == 8 && at < limit);
    return at > start && count < 8 ? at : NULL;
}

static COLD const u8 *skip_exponent(const u8 *at, const u8 *limit)
{
    at++;
    return skip_digits(*at == '+' || *at == '-' ? at + 1 : at, limit);
}

static HOT const u8 *skip_number(const u8 *at, const u8 *limit)
{
    at += *at == '-' ? 1 : 0;
    const u8 *start = at;
    at = skip_digits(at, limit);
    if (at == NULL || (*start == '0' && at > start + 1)) {
        return NULL;
    }
    if (*at == '.') {
        at = skip_digits(at + 1, limit);
    }
    return at != NULL && (*at | 0x20) == 'e' ? skip_exponent(at, limit) : at;
}

/* A value that is no object or array. */
static HOT const u8 *skip_scalar(const u8 *at, const u8 *limit)
{
    switch (*at) {
    case '"':
        return skip_string(at + 1, limit);
    case 't':
        return memcmp(at, "true", 4) == 0 ? at + 4 : NULL;
    case 'f':
        return memcmp(at, "false", 5) == 0 ? at + 5 : NULL;
    case 'n':
        return memcmp(at, "null", 4) == 0 ? at + 4 : NULL;
    default:
        return skip_number(at, limit);
    }
}

/* A name and the colon behind it. */
static HOT const u8 *skip_name(const u8 *at, const u8 *limit)
{
    at = *at == '"' ? skip_string(at + 1, limit) : NULL;
    at = at != NULL ? skip_space(at, limit) : NULL;
    return at != NULL && *at == ':' ? at + 1 : NULL;
}

/* The objects and arrays that are open: a bit each, 1 for objects, the innermost lowest. */
struct levels {
    u64 objects;
    i32 count;
    i32 most;
};

enum { LEVELS_MAX = 64 };

static HOT u8 closing(const struct levels *levels)
{
    return (levels->objects & 1) != 0 ? '}' : ']';
}

/* From behind the bracket to the first value, or to the bracket that closes it at once. */
static HOT const u8 *open_level(struct levels *levels, const u8 *at, const u8 *limit,
                                bool *out_empty)
{
    bool object = *at == '{';
    *out_empty = false;
    if (levels->count == LEVELS_MAX) {
        return NULL;
    }
    levels->objects = levels->objects << 1 | (object ? 1 : 0);
    levels->count++;
    levels->most = levels->count > levels->most ? levels->count : levels->most;
    at = skip_space(at + 1, limit);
    *out_empty = *at == closing(levels);
    return object && !*out_empty ? skip_name(at, limit) : at;
}

/* From behind a value to the next one, or behind the end of all levels. */
static HOT const u8 *close_levels(struct levels *levels, const u8 *at, const u8 *limit)
{
    while (at < limit) {
        at = skip_space(at, limit);
        if (*at == ',') {
            at = skip_space(at + 1, limit);
            return (levels->objects & 1) != 0 ? skip_name(at, limit) : at;
        }
        if (*at != closing(levels)) {
            return NULL;
        }
        at++;
        levels->objects >>= 1;
        levels->count--;
        if (levels->count == 0) {
            return at;
        }
    }
    return NULL;
}

#if defined(JSON_ELEMENT_WIDE)
const u8 *json_element_wide(const u8 *at, const u8 *end, i32 *out_depth)
#else
const u8 *json_element_portable(const u8 *at, const u8 *end, i32 *out_depth)
#endif
{
    struct levels levels = {0};
    const u8 *limit = end - at > JSON_SCAN_SLACK ? end - JSON_SCAN_SLACK : at;
    do {
        if (at >= limit) {
            return NULL;
        }
        at = skip_space(at, limit);
        bool empty = true;
        if (*at == '{' || *at == '[') {
            at = open_level(&levels, at, limit, &empty);
        } else {
            at = skip_scalar(at, limit);
        }
        at = at != NULL && empty ? close_levels(&levels, at, limit) : at;
    } while (at != NULL && levels.count > 0);
    if (at != NULL) {
        *out_depth = levels.most;
    }
    return at;
}
