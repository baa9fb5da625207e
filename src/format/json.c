/* Escapes; the doors themselves are json_array.c and json_reader.c. */
#include "format/json.h"

#include "base/assert.h"
#include "base/utf8.h"
#include "format/json_token.h"

static u32 hex_unit(const char *digits)
{
    u32 unit = 0;
    for (size_t i = 0; i < 4; i++) {
        unit = unit << 4 | (u32)json_hex_digit((u8)digits[i]);
    }
    return unit;
}

/* The code point of the \u escape that starts at `at`; a pair of surrogates is one. Returns the
 * bytes taken. The token is valid, so that the digits are all there. */
static size_t unescape_unit(const char *at, const char *end, u32 *out_point, bool *lone)
{
    u32 high = hex_unit(at + 2);
    *out_point = high;
    if (high < 0xD800 || high > 0xDFFF) {
        return 6;
    }
    if (high <= 0xDBFF && end - at >= 12 && at[6] == '\\' && at[7] == 'u') {
        u32 low = hex_unit(at + 8);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *out_point = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            return 12;
        }
    }
    *lone = true;
    return 6;
}

static char unescape_letter(char letter)
{
    switch (letter) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return letter;
    }
}

static size_t unescape_into(char *to, str inside, bool *lone)
{
    const char *at = inside.data;
    const char *end = inside.data + inside.size;
    char *start = to;
    while (at < end) {
        const char *slash = memchr(at, '\\', (size_t)(end - at));
        size_t plain = (size_t)((slash != NULL ? slash : end) - at);
        memcpy(to, at, plain);
        to += plain;
        at += plain;
        if (slash == NULL) {
            break;
        }
        if (at[1] == 'u') {
            u32 point;
            at += unescape_unit(at, end, &point, lone);
            to += utf8_encode(point, to);
        } else {
            *to++ = unescape_letter(at[1]);
            at += 2;
        }
    }
    return (size_t)(to - start);
}

str json_unescape(buf *out, str token, bool *out_lone)
{
    assert(token.size >= 2 && token.data[0] == '"');
    str inside = str_slice(token, 1, token.size - 1);
    bool lone = false;
    str text = inside;
    if (inside.size > 0 && memchr(inside.data, '\\', inside.size) != NULL) {
        /* Unescaped text is never longer than its escapes. */
        char *to = buf_reserve(out, inside.size);
        if (to == NULL) {
            return (str){NULL, 0};
        }
        text = (str){to, unescape_into(to, inside, &lone)};
        buf_commit(out, text.size);
    }
    if (out_lone != NULL) {
        *out_lone = lone;
    }
    return text;
}

bool json_has_lone_surrogate(str value)
{
    const char *at = value.data;
    const char *end = value.data + value.size;
    bool lone = false;
    /* In JSON a backslash stands in strings only. */
    while (!lone && at < end && (at = memchr(at, '\\', (size_t)(end - at))) != NULL) {
        u32 point;
        at += at[1] == 'u' ? unescape_unit(at, end, &point, &lone) : 2;
    }
    return lone;
}
