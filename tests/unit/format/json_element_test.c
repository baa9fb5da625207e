/* Elements in one go: the same answers as by steps, on bodies of every shape with wrong bytes in
 * them. */
#include "format/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { BODY_MAX = 4096 };

struct body {
    char text[BODY_MAX];
    size_t size;
    u64 random;
};

static u64 next_random(struct body *body, u64 below)
{
    body->random = body->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (body->random >> 33) % below;
}

static void put(struct body *body, const char *text)
{
    str bytes = str_from(text);
    if (body->size + bytes.size < BODY_MAX) {
        memcpy(body->text + body->size, bytes.data, bytes.size);
        body->size += bytes.size;
    }
}

static void put_any(struct body *body, const char *const *texts, size_t count)
{
    put(body, texts[next_random(body, count)]);
}

static void put_space(struct body *body)
{
    static const char *const spaces[] = {"", "", "", "", " ", "\t", "\r\n", "          "};
    put_any(body, spaces, ARRAY_COUNT(spaces));
}

static void put_string(struct body *body)
{
    static const char *const pieces[] = {"",         "a",
                                         "\\n",      "\\\"",
                                         "\\u00e9",  "\\ud83d\\ude00",
                                         "\\\\",     "text of some length",
                                         "\xC3\xA4", "0123456789abcdef0123456789abcdef",
                                         "}",        "[,:"};
    put(body, "\"");
    for (u64 i = next_random(body, 4); i > 0; i--) {
        put_any(body, pieces, ARRAY_COUNT(pieces));
    }
    put(body, "\"");
}

/* Depth is bounded by the caller. */
static void put_value(struct body *body, int depth)
{
    static const char *const scalars[] = {"0",
                                          "-1",
                                          "12345678",
                                          "123456789012345678901234567890",
                                          "1.5",
                                          "-0.25e-7",
                                          "1E+400",
                                          "01",
                                          "1.",
                                          "-",
                                          ".5",
                                          "true",
                                          "false",
                                          "null",
                                          "nul",
                                          "truth",
                                          "1e",
                                          "0x1",
                                          "12345678.12345678"};
    u64 kind = next_random(body, depth > 0 ? 4 : 2);
    bool object = kind == 2;
    if (kind == 0) {
        put_any(body, scalars, next_random(body, 8) == 0 ? ARRAY_COUNT(scalars) : 7);
        return;
    }
    if (kind == 1) {
        put_string(body);
        return;
    }
    put(body, object ? "{" : "[");
    put_space(body);
    for (u64 i = next_random(body, 4); i > 0; i--) {
        if (object) {
            put_string(body);
            put_space(body);
            put(body, ":");
            put_space(body);
        }
        put_value(body, depth - 1);
        put_space(body);
        put(body, i > 1 ? "," : "");
        put_space(body);
    }
    put(body, object ? "}" : "]");
}

struct answer {
    enum json_array_event last;
    u64 offset;
    u64 sum; /* of all that was said about elements */
    i64 count;
};

static struct answer split(str body, enum json_array_way way)
{
    struct json_array array;
    struct answer answer = {.last = JSON_ARRAY_MORE};
    struct json_array_element element;
    size_t at = 0;
    json_array_init(&array, 1000);
    (void)json_array_choose_way(&array, way);
    while ((answer.last = json_array_feed(&array, body, &at, &element)) == JSON_ARRAY_ELEMENT) {
        u64 parts[] = {element.start, element.end, (u64)element.depth, (u64)element.kind};
        for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
            answer.sum = answer.sum * 1000003 + parts[i];
        }
        answer.count++;
    }
    answer.last = answer.last == JSON_ARRAY_MORE ? json_array_end(&array) : answer.last;
    answer.offset = json_array_offset(&array);
    return answer;
}

static void assert_same(str body)
{
    struct answer steps = split(body, JSON_ARRAY_BY_STEPS);
    for (enum json_array_way way = JSON_ARRAY_PORTABLE; way <= JSON_ARRAY_WIDE; way++) {
        struct answer answer = split(body, way);
        if (answer.last != steps.last || answer.offset != steps.offset ||
            answer.count != steps.count || answer.sum != steps.sum) {
            fail_msg("way %d differs on %.*s", (int)way, STR_ARG(body));
        }
    }
}

static void all_ways_come_to_the_same(void **state)
{
    (void)state;
    struct body body = {.random = 5};
    i64 good = 0;
    for (int i = 0; i < 30000; i++) {
        body.size = 0;
        put(&body, "[");
        for (u64 j = next_random(&body, 4) + 1; j > 0; j--) {
            put_value(&body, 4);
            put(&body, j > 1 ? "," : "");
        }
        put(&body, "]");
        for (u64 j = next_random(&body, 100); j > 0; j--) {
            put(&body, " ");
        }
        if (i % 2 == 0) {
            body.text[next_random(&body, body.size)] = (char)next_random(&body, 256);
        }
        assert_same((str){body.text, body.size});
        good += split((str){body.text, body.size}, JSON_ARRAY_BY_STEPS).last == JSON_ARRAY_MORE;
    }
    assert_in_range(good, 5000, 25000);
}

static void levels_past_those_of_one_go_are_taken(void **state)
{
    (void)state;
    char text[1400];
    for (size_t levels = 60; levels <= JSON_DEPTH_MAX + 1; levels++) {
        size_t size = 0;
        text[size++] = '[';
        memset(text + size, '[', levels);
        memset(text + size + levels, ']', levels);
        size += 2 * levels;
        text[size++] = ']';
        memset(text + size, ' ', 100);
        assert_same((str){text, size + 100});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ways_come_to_the_same),
        cmocka_unit_test(levels_past_those_of_one_go_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
