/* The variant encoding both ways. The first byte picks: a line of JSON, which must come back
 * through builder and printer with nothing lost; or two parts made of any bytes, which print as
 * JSON or not at all. */
#include "base/assert.h"
#include "base/utf8.h"
#include "format/json.h"
#include "format/variant.h"
#include "fuzz.h"
#include "sink/decode.h"

enum { TEXT_BYTES_MAX = 16 * MIB };

static void check_is_json(str text)
{
    assert(utf8_valid(text));
    struct json_reader reader;
    json_reader_init(&reader, text);
    enum json_token token = json_next(&reader);
    while (token != JSON_TOKEN_END) {
        assert(token != JSON_TOKEN_INVALID);
        token = json_next(&reader);
    }
}

/* {"v": <text>} through a column and back to text. data NULL: the row was no row. */
static str there_and_back(struct arena *arena, struct decoder *decoder, str text)
{
    str line = str_format(arena, "{\"v\":%.*s}", STR_ARG(text));
    struct decode_result result = {0};
    decoder_clear(decoder);
    err decoded = decode_line(decoder, line, 1, &result, NULL);
    assert(decoded == OK);
    size_t count = 0;
    const struct column *column = decoder_columns(decoder, &count);
    if (result.verdict != DECODE_ROW || column->valid[0] == 0) {
        return (str){NULL, 0};
    }
    const struct column *parts = column->children;
    str metadata = {(const char *)parts[0].data, (size_t)parts[0].offsets[1]};
    str value = {(const char *)parts[1].data, (size_t)parts[1].offsets[1]};
    buf out = buf_create(arena, 64, TEXT_BYTES_MAX);
    err printed = variant_print(arena, metadata, value, &out, NULL);
    assert(printed == OK);
    check_is_json(buf_str(&out));
    return buf_str(&out);
}

/* Once numbers have taken their form, nothing changes any more. */
static void check_line(struct arena *arena, str text)
{
    static struct field field = {.id = 1, .name = STR_INIT("v"), .type = {.kind = TYPE_VARIANT}};
    struct schema schema = {.root = {.kind = TYPE_STRUCT, .fields = &field, .field_count = 1}};
    struct decode_settings settings = {.unknown = DECODE_UNKNOWN_REJECT};
    struct decoder *decoder = NULL;
    err opened = decoder_open(arena, &schema, &settings, &decoder, NULL);
    assert(opened == OK);
    str first = there_and_back(arena, decoder, text);
    if (first.data == NULL) {
        return;
    }
    str second = there_and_back(arena, decoder, first);
    assert(second.data != NULL);
    str third = there_and_back(arena, decoder, second);
    assert(str_equal(second, third));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > MIB) {
        return 0;
    }
    AUTO_ARENA struct arena *arena = arena_create(256 * MIB);
    str rest = {(const char *)data + 2, size - 2};
    if (data[0] == 'j') {
        check_line(arena, rest);
        return 0;
    }
    buf out = buf_create(arena, 64, TEXT_BYTES_MAX);
    str metadata = str_slice(rest, 0, data[1]);
    str value = str_slice(rest, metadata.size, rest.size);
    if (variant_print(arena, metadata, value, &out, NULL) == OK) {
        check_is_json(buf_str(&out));
    }
    return 0;
}
