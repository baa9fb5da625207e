/* The splitter gives the same answer whole and in pieces, by steps and in one go, and the reader
 * finds the same first wrong byte. The input's first byte says how large the pieces are. */
#include "base/assert.h"
#include "format/json.h"
#include "fuzz.h"

enum { ELEMENTS_MAX = 1000 };

struct answer {
    enum json_array_event last;
    u64 offset;
    i64 count;
    u64 sum; /* of all that was said about elements */
    i32 depth_max;
};

static void add_element(struct answer *answer, const struct json_array_element *element, u64 after)
{
    assert(element->start < element->end);
    assert(element->start >= after);
    u64 parts[] = {element->start, element->end, (u64)element->depth, (u64)element->kind};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        answer->sum = answer->sum * 1000003 + parts[i];
    }
    answer->count++;
}

static struct answer split(str body, size_t step, enum json_array_way way)
{
    struct json_array array;
    struct answer answer = {.last = JSON_ARRAY_MORE};
    u64 after = 0;
    json_array_init(&array, ELEMENTS_MAX);
    (void)json_array_choose_way(&array, way);
    for (size_t start = 0; start < body.size && answer.last == JSON_ARRAY_MORE; start += step) {
        str piece = str_slice(body, start, start + step);
        size_t at = 0;
        struct json_array_element element;
        while ((answer.last = json_array_feed(&array, piece, &at, &element)) ==
               JSON_ARRAY_ELEMENT) {
            add_element(&answer, &element, after);
            after = element.end;
            answer.depth_max = element.depth > answer.depth_max ? element.depth : answer.depth_max;
        }
    }
    if (answer.last == JSON_ARRAY_MORE) {
        answer.last = json_array_end(&array);
    }
    answer.depth_max = array.depth > answer.depth_max ? array.depth : answer.depth_max;
    answer.offset = json_array_offset(&array);
    return answer;
}

/* The offset of the first wrong byte, or the size. */
static size_t read_all(str text)
{
    struct json_reader reader;
    json_reader_init(&reader, text);
    enum json_token token;
    do {
        token = json_next(&reader);
    } while (token != JSON_TOKEN_END && token != JSON_TOKEN_INVALID);
    return token == JSON_TOKEN_END ? text.size : reader.at;
}

static void check_same(const struct answer *a, const struct answer *b)
{
    assert(a->last == b->last);
    assert(a->offset == b->offset);
    assert(a->count == b->count);
    assert(a->sum == b->sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    str body = {(const char *)data + 1, size - 1};
    struct answer whole = split(body, size, JSON_ARRAY_BY_STEPS);
    for (enum json_array_way way = JSON_ARRAY_BY_STEPS; way <= JSON_ARRAY_WIDE; way++) {
        struct answer again = split(body, size, way);
        struct answer pieces = split(body, (size_t)(data[0] % 16) + 1, way);
        struct answer large = split(body, 64 + (size_t)data[0], way);
        check_same(&whole, &again);
        check_same(&whole, &pieces);
        check_same(&whole, &large);
    }
    /* The reader knows no byte order mark, and for it the body's array is a level too. */
    bool comparable = !str_starts(body, STR("\xEF\xBB\xBF")) && whole.depth_max < JSON_DEPTH_MAX &&
                      (whole.last == JSON_ARRAY_MORE || whole.last == JSON_ARRAY_INVALID);
    if (comparable) {
        assert(read_all(body) == (whole.last == JSON_ARRAY_MORE ? body.size : whole.offset));
    }
    return 0;
}
