/* The reader against jansson: both take a text or both refuse it, but for what jansson cannot hold.
 * Every token lies in the input, unescaping stays within the token's size, and skipping ends where
 * walking ends. */
#include "base/assert.h"
#include "base/utf8.h"
#include "format/json.h"
#include "fuzz.h"

#include <jansson.h>

enum { SCRATCH = 64 * KIB, INPUT_MAX = 32 * KIB };

static bool inside(str text, str slice)
{
    return slice.data >= text.data && slice.data + slice.size <= text.data + text.size;
}

static void check_string(struct arena *arena, str token, bool utf8)
{
    buf out = buf_create(arena, token.size, SCRATCH);
    bool lone = false;
    str text = json_unescape(&out, token, &lone);
    assert(text.data != NULL);
    assert(text.size <= token.size - 2);
    assert(lone == json_has_lone_surrogate(token));
    if (utf8 && !lone) {
        assert(utf8_valid(text));
    }
}

/* Whether the text is one value; what jansson cannot hold is noted. */
static bool walk(struct arena *arena, str text, bool *out_big_number)
{
    struct json_reader reader;
    bool utf8 = utf8_valid(text);
    i32 level = 0;
    json_reader_init(&reader, text);
    for (;;) {
        enum json_token token = json_next(&reader);
        assert(reader.at <= text.size);
        if (token == JSON_TOKEN_END || token == JSON_TOKEN_INVALID) {
            assert(token == JSON_TOKEN_INVALID || level == 0);
            return token == JSON_TOKEN_END;
        }
        assert(inside(text, reader.text));
        assert(reader.text.size > 0);
        if (token == JSON_TOKEN_OBJECT || token == JSON_TOKEN_ARRAY) {
            level++;
        } else if (token == JSON_TOKEN_OBJECT_END || token == JSON_TOKEN_ARRAY_END) {
            level--;
        } else if (token == JSON_TOKEN_STRING || token == JSON_TOKEN_NAME) {
            check_string(arena, reader.text, utf8);
        } else if (token == JSON_TOKEN_NUMBER && reader.text.size > 17) {
            *out_big_number = true;
        } else if (token == JSON_TOKEN_NUMBER &&
                   (str_find_byte(reader.text, 'e') >= 0 || str_find_byte(reader.text, 'E') >= 0)) {
            *out_big_number = true;
        }
        assert(level >= 0 && level <= JSON_DEPTH_MAX);
    }
}

static bool skip_whole(str text)
{
    struct json_reader reader;
    json_reader_init(&reader, text);
    enum json_token token = json_next(&reader);
    if (token == JSON_TOKEN_INVALID) {
        return false;
    }
    str value = json_skip(&reader, token);
    assert(value.data == NULL || inside(text, value));
    return value.data != NULL && json_next(&reader) == JSON_TOKEN_END;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_MAX) {
        return 0;
    }
    AUTO_ARENA struct arena *arena = arena_create(64 * MIB);
    str text = {(const char *)data, size};
    bool big_number = false;
    bool taken = walk(arena, text, &big_number);
    assert(skip_whole(text) == taken);
    /* jansson takes a NUL byte behind a number, and refuses numbers and half pairs it cannot hold.
     */
    bool has_nul = str_find_byte(text, 0) >= 0;
    if (!utf8_valid(text) || has_nul || big_number || (taken && json_has_lone_surrogate(text))) {
        return 0;
    }
    json_error_t error;
    json_t *judge = json_loadb(text.data, text.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    assert((judge != NULL) == taken);
    json_decref(judge);
    return 0;
}
