#include "format/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* ---- the splitter ---- */

enum { TRACE_ELEMENTS_MAX = 32 };

/* All that the splitter says about one body. */
struct trace {
    enum json_array_event last;
    u64 offset;
    size_t count;
    struct json_array_element elements[TRACE_ELEMENTS_MAX];
};

static bool trace_feed(struct json_array *array, struct trace *trace, str piece)
{
    size_t at = 0;
    for (;;) {
        struct json_array_element element = {0};
        enum json_array_event event = json_array_feed(array, piece, &at, &element);
        if (event == JSON_ARRAY_MORE) {
            assert_int_equal(at, piece.size);
            return true;
        }
        if (event != JSON_ARRAY_ELEMENT) {
            trace->last = event;
            return false;
        }
        assert_true(trace->count < TRACE_ELEMENTS_MAX);
        trace->elements[trace->count++] = element;
    }
}

/* The body in pieces of `step` bytes, the first of `first`. */
static struct trace split(str body, size_t first, size_t step, i64 elements_max)
{
    struct json_array array;
    struct trace trace = {0};
    json_array_init(&array, elements_max);
    size_t at = 0;
    size_t size = first;
    bool going = true;
    while (going && at < body.size) {
        going = trace_feed(&array, &trace, str_slice(body, at, at + size));
        at += size;
        size = step;
    }
    if (going) {
        trace.last = json_array_end(&array);
    }
    trace.offset = json_array_offset(&array);
    return trace;
}

static void assert_same(const struct trace *a, const struct trace *b)
{
    assert_int_equal(a->last, b->last);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(a->elements[i].start, b->elements[i].start);
        assert_int_equal(a->elements[i].end, b->elements[i].end);
        assert_int_equal(a->elements[i].kind, b->elements[i].kind);
        assert_int_equal(a->elements[i].depth, b->elements[i].depth);
    }
}

/* Whole, byte by byte, and cut in two at every place: always the same answer. */
static struct trace split_all_ways(str body)
{
    struct trace whole = split(body, body.size, body.size, 1000);
    struct trace bytes = split(body, 1, 1, 1000);
    assert_same(&whole, &bytes);
    for (size_t first = 1; first < body.size; first++) {
        struct trace two = split(body, first, body.size, 1000);
        assert_same(&whole, &two);
    }
    return whole;
}

static void assert_invalid(str body, u64 offset)
{
    struct trace trace = split_all_ways(body);
    assert_int_equal(trace.last, JSON_ARRAY_INVALID);
    assert_int_equal(trace.offset, offset);
}

static void assert_elements(str body, size_t count)
{
    struct trace trace = split_all_ways(body);
    assert_int_equal(trace.last, JSON_ARRAY_MORE);
    assert_int_equal(trace.count, count);
}

static void splits_a_body_into_elements_with_their_places(void **state)
{
    (void)state;
    str body = STR(" [ 1 , {\"x\":[1,2.5e3]},\r\n\"a\\\"b\",-0,true , false,null,[[]]] \n");
    struct trace trace = split_all_ways(body);
    assert_int_equal(trace.last, JSON_ARRAY_MORE);
    struct {
        const char *text;
        enum json_kind kind;
        i32 depth;
    } wanted[] = {
        {"1", JSON_KIND_NUMBER, 0},          {"{\"x\":[1,2.5e3]}", JSON_KIND_OBJECT, 2},
        {"\"a\\\"b\"", JSON_KIND_STRING, 0}, {"-0", JSON_KIND_NUMBER, 0},
        {"true", JSON_KIND_TRUE, 0},         {"false", JSON_KIND_FALSE, 0},
        {"null", JSON_KIND_NULL, 0},         {"[[]]", JSON_KIND_ARRAY, 2},
    };
    assert_int_equal(trace.count, ARRAY_COUNT(wanted));
    for (size_t i = 0; i < trace.count; i++) {
        str text = str_slice(body, trace.elements[i].start, trace.elements[i].end);
        assert_true(str_equal(text, str_from(wanted[i].text)));
        assert_int_equal(trace.elements[i].kind, wanted[i].kind);
        assert_int_equal(trace.elements[i].depth, wanted[i].depth);
    }
}

static void an_empty_array_has_no_elements(void **state)
{
    (void)state;
    assert_elements(STR("[]"), 0);
    assert_elements(STR("\t\r\n [ \n ]  "), 0);
}

static void the_first_byte_that_cannot_stand_there_is_the_offset(void **state)
{
    (void)state;
    static const struct {
        str body;
        u64 offset;
    } vectors[] = {
        {STR_INIT("[1,]"), 3},
        {STR_INIT("[01]"), 2},
        {STR_INIT("[,1]"), 1},
        {STR_INIT("[1 2]"), 3},
        {STR_INIT("[1]2"), 3},
        {STR_INIT("[1],"), 3},
        {STR_INIT("[-]"), 2},
        {STR_INIT("[-a]"), 2},
        {STR_INIT("[+1]"), 1},
        {STR_INIT("[.5]"), 1},
        {STR_INIT("[1.]"), 3},
        {STR_INIT("[1.e5]"), 3},
        {STR_INIT("[1e]"), 3},
        {STR_INIT("[1e+]"), 4},
        {STR_INIT("[1e5.0]"), 4},
        {STR_INIT("[1.5.0]"), 4},
        {STR_INIT("[0x10]"), 2},
        {STR_INIT("[1e5e5]"), 4},
        {STR_INIT("[--1]"), 2},
        {STR_INIT("[1-1]"), 2},
        {STR_INIT("[nul]"), 4},
        {STR_INIT("[nulll]"), 5},
        {STR_INIT("[True]"), 1},
        {STR_INIT("[NaN]"), 1},
        {STR_INIT("[tru e]"), 4},
        {STR_INIT("[truefalse]"), 5},
        {STR_INIT("[\"\\x\"]"), 3},
        {STR_INIT("[\"\\u12g4\"]"), 6},
        {STR_INIT("[\"\\u12\"]"), 6},
        {STR_INIT("[\"a\nb\"]"), 3},
        {STR_INIT("[\"\x1f\"]"), 2},
        {STR_INIT("['a']"), 1},
        {STR_INIT("[\"12345678\n\"]"), 10},
        {STR_INIT("[{\"a\"}]"), 5},
        {STR_INIT("[{\"a\":}]"), 6},
        {STR_INIT("[{\"a\":1,}]"), 8},
        {STR_INIT("[{a:1}]"), 2},
        {STR_INIT("[{,}]"), 2},
        {STR_INIT("[{\"a\":1 \"b\":2}]"), 8},
        {STR_INIT("[{\"a\":1]}"), 7},
        {STR_INIT("[[1}]"), 3},
        {STR_INIT("[{\"a\",1}]"), 5},
        {STR_INIT("[{1:1}]"), 2},
        {STR_INIT("[1//c\n]"), 2},
        {STR_INIT("[\xC2\xA0 1]"), 1},
        {STR_INIT("[\"a\"\xEF\xBB\xBF]"), 4},
        {STR_INIT("[\f1]"), 1},
        {STR_INIT("[1\v]"), 2},
        {STR_INIT("]"), 0},
        {STR_INIT("}"), 0},
        {STR_INIT("x[]"), 0},
        {STR_INIT("  \xEF\xBB\xBF[]"), 2},
    };
    for (size_t i = 0; i < ARRAY_COUNT(vectors); i++) {
        assert_invalid(vectors[i].body, vectors[i].offset);
    }
}

static void a_body_that_ends_early_is_invalid_at_its_length(void **state)
{
    (void)state;
    str body = STR("[{\"a\\u00e9\":[1.5e+3,true,null,\"b\\n\"]},false]");
    for (size_t size = 0; size < body.size; size++) {
        assert_invalid(str_slice(body, 0, size), size);
    }
    assert_elements(body, 2);
    assert_invalid(STR(" \n"), 2);
}

static void another_json_value_is_not_an_array(void **state)
{
    (void)state;
    static const str bodies[] = {STR_INIT("{\"x\":1}\n{\"x\":2}"),
                                 STR_INIT("\"[\""),
                                 STR_INIT("-1"),
                                 STR_INIT("0"),
                                 STR_INIT("  true"),
                                 STR_INIT("f"),
                                 STR_INIT("nonsense"),
                                 STR_INIT("{{{")};
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
        struct trace trace = split_all_ways(bodies[i]);
        assert_int_equal(trace.last, JSON_ARRAY_NOT_ARRAY);
    }
}

static void a_byte_order_mark_is_skipped_at_the_very_start_only(void **state)
{
    (void)state;
    str marked = STR("\xEF\xBB\xBF[7,\"\xEF\xBB\xBF\"]");
    assert_elements(marked, 2);
    struct trace trace = split_all_ways(marked);
    assert_int_equal(trace.elements[0].start, 4);
    assert_invalid(STR("\xEF\xBB\xBF"), 3);
    assert_invalid(STR("\xEF\xBB\xBF\xEF\xBB\xBF[]"), 3);
    /* Part of a mark is no mark, so that its first byte is the wrong one. */
    assert_invalid(STR("\xEF\xBB[]"), 0);
    assert_invalid(STR("\xEF[]"), 0);
    assert_invalid(STR("\xEF\xBB"), 0);
    assert_invalid(STR("\xEF"), 0);
}

static void bytes_that_are_not_utf8_pass_inside_strings(void **state)
{
    (void)state;
    assert_elements(STR("[\"\xff\xc0\xaf\",{\"\x80\":1}]"), 2);
}

/* '[' and then `levels` brackets that open and as many that close, ']'. */
static str nested(struct arena *arena, size_t levels, const char *open, const char *close)
{
    buf body = buf_create(arena, 0, MIB);
    buf_append_byte(&body, '[');
    for (size_t i = 0; i < levels; i++) {
        buf_append(&body, str_from(open));
    }
    for (size_t i = 0; i < levels; i++) {
        buf_append(&body, str_from(close));
    }
    buf_append_byte(&body, ']');
    assert_true(buf_ok(&body));
    return buf_str(&body);
}

static void level_512_is_taken_and_513_is_invalid_at_its_bracket(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    str fine = nested(arena, 512, "[", "]");
    struct trace trace = split(fine, fine.size, fine.size, 1000);
    assert_int_equal(trace.last, JSON_ARRAY_MORE);
    assert_int_equal(trace.elements[0].depth, 512);

    str deep = nested(arena, 513, "[", "]");
    trace = split(deep, deep.size, deep.size, 1000);
    assert_int_equal(trace.last, JSON_ARRAY_INVALID);
    assert_int_equal(trace.offset, 513);
    struct trace bytes = split(deep, 1, 1, 1000);
    assert_same(&trace, &bytes);

    str objects = nested(arena, 513, "{\"\":", "}");
    trace = split(objects, 7, 7, 1000);
    assert_int_equal(trace.last, JSON_ARRAY_INVALID);
    assert_int_equal(trace.offset, 1 + 512 * 4);
}

static void mixed_levels_close_as_they_were_opened(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    str fine = nested(arena, 200, "[{\"a\":", "}]");
    /* The innermost object has no value: that is the first wrong byte. */
    struct trace trace = split(fine, 3, 5, 1000);
    assert_int_equal(trace.last, JSON_ARRAY_INVALID);
    assert_int_equal(trace.offset, 1 + 200 * 6);
    str body = STR("[[{\"a\":[{\"b\":[]},{}]}],{\"c\":{\"d\":[[],{}]}}]");
    trace = split_all_ways(body);
    assert_int_equal(trace.last, JSON_ARRAY_MORE);
    assert_int_equal(trace.elements[0].depth, 5);
    assert_int_equal(trace.elements[1].depth, 4);
}

static void an_element_past_the_maximum_is_seen_at_its_first_byte(void **state)
{
    (void)state;
    str body = STR("[1,{}, \"x\"]");
    struct trace trace = split(body, body.size, body.size, 2);
    assert_int_equal(trace.last, JSON_ARRAY_TOO_MANY);
    assert_int_equal(trace.offset, 7);
    assert_int_equal(trace.count, 2);
    trace = split(body, 1, 1, 3);
    assert_int_equal(trace.last, JSON_ARRAY_MORE);
    /* What is wrong before that place is found first, and so is a wrong byte at it. */
    trace = split(STR("[1,2,]"), 6, 6, 2);
    assert_int_equal(trace.last, JSON_ARRAY_INVALID);
    assert_int_equal(trace.offset, 5);
}

static void a_final_answer_is_given_again(void **state)
{
    (void)state;
    struct json_array array;
    struct json_array_element element;
    json_array_init(&array, 10);
    size_t at = 0;
    assert_int_equal(json_array_feed(&array, STR("[x"), &at, &element), JSON_ARRAY_INVALID);
    at = 0;
    assert_int_equal(json_array_feed(&array, STR("]"), &at, &element), JSON_ARRAY_INVALID);
    assert_int_equal(json_array_end(&array), JSON_ARRAY_INVALID);
    assert_int_equal(json_array_offset(&array), 1);
}

/* ---- the reader ---- */

/* The offset of the first wrong byte, or -1 when the text is one JSON value. */
static i64 read_all(str text)
{
    struct json_reader reader;
    json_reader_init(&reader, text);
    for (;;) {
        enum json_token token = json_next(&reader);
        if (token == JSON_TOKEN_INVALID) {
            assert_int_equal(json_next(&reader), JSON_TOKEN_INVALID);
            return (i64)reader.at;
        }
        if (token == JSON_TOKEN_END) {
            assert_int_equal(json_next(&reader), JSON_TOKEN_END);
            return -1;
        }
    }
}

static void the_reader_gives_every_token_as_a_slice(void **state)
{
    (void)state;
    static const struct {
        enum json_token token;
        str text;
    } wanted[] = {
        {JSON_TOKEN_OBJECT, STR_INIT("{")},    {JSON_TOKEN_NAME, STR_INIT("\"a\\n\"")},
        {JSON_TOKEN_ARRAY, STR_INIT("[")},     {JSON_TOKEN_NUMBER, STR_INIT("-1.50E+3")},
        {JSON_TOKEN_TRUE, STR_INIT("true")},   {JSON_TOKEN_FALSE, STR_INIT("false")},
        {JSON_TOKEN_NULL, STR_INIT("null")},   {JSON_TOKEN_STRING, STR_INIT("\"x\"")},
        {JSON_TOKEN_OBJECT, STR_INIT("{")},    {JSON_TOKEN_OBJECT_END, STR_INIT("}")},
        {JSON_TOKEN_ARRAY_END, STR_INIT("]")}, {JSON_TOKEN_NAME, STR_INIT("\"\"")},
        {JSON_TOKEN_NUMBER, STR_INIT("0")},    {JSON_TOKEN_OBJECT_END, STR_INIT("}")},
    };
    struct json_reader reader;
    json_reader_init(&reader,
                     STR(" {\"a\\n\" : [ -1.50E+3,true,false,null,\"x\",{}\t],\"\":0 }\r\n"));
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        assert_int_equal(json_next(&reader), wanted[i].token);
        assert_true(str_equal(reader.text, wanted[i].text));
    }
    assert_int_equal(json_next(&reader), JSON_TOKEN_END);
}

static void the_reader_and_the_splitter_find_the_same_wrong_byte(void **state)
{
    (void)state;
    static const char alphabet[] = "[]{},:\"\\u01e.-+tn \xff";
    static const str seeds[] = {STR_INIT("[{\"a\":[1,-2.5e+3,\"\\u00e9\\n\"],\"b\":{}},true,null]"),
                                STR_INIT("[[],[{}],0.5,false,\"x\"]")};
    for (size_t seed = 0; seed < ARRAY_COUNT(seeds); seed++) {
        for (size_t at = 1; at < seeds[seed].size; at++) {
            for (size_t letter = 0; letter + 1 < sizeof(alphabet); letter++) {
                char text[80];
                memcpy(text, seeds[seed].data, seeds[seed].size);
                text[at] = alphabet[letter];
                str body = {text, seeds[seed].size};
                struct trace trace = split(body, 7, 3, 1000);
                i64 wrong = read_all(body);
                assert_int_equal(wrong, trace.last == JSON_ARRAY_MORE ? -1 : (i64)trace.offset);
            }
        }
    }
}

static void the_reader_takes_any_value_and_nothing_else(void **state)
{
    (void)state;
    static const str good[] = {STR_INIT("1"),    STR_INIT(" -0.0e-0 "), STR_INIT("\"\""),
                               STR_INIT("true"), STR_INIT("null\n"),    STR_INIT("[]"),
                               STR_INIT("{}"),   STR_INIT("1E400"),     STR_INIT("[[[]]]")};
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        assert_int_equal(read_all(good[i]), -1);
    }
    assert_int_equal(read_all(STR("")), 0);
    assert_int_equal(read_all(STR("  ")), 2);
    assert_int_equal(read_all(STR("1 2")), 2);
    assert_int_equal(read_all(STR("1e")), 2);
    assert_int_equal(read_all(STR("-")), 1);
    assert_int_equal(read_all(STR("\xEF\xBB\xBF{}")), 0);
    assert_int_equal(read_all(STR("{\"a\":1}}")), 7);
    assert_int_equal(read_all(STR("\"a")), 2);
}

static void the_reader_stops_at_level_513(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(8 * MIB);
    /* nested() puts one array around its levels. */
    assert_int_equal(read_all(nested(arena, 511, "[", "]")), -1);
    assert_int_equal(read_all(nested(arena, 512, "[", "]")), 512);
}

static void skip_returns_the_whole_value(void **state)
{
    (void)state;
    struct json_reader reader;
    json_reader_init(&reader, STR("[ {\"a\":[1,{}] } ,\"x\", 12]"));
    assert_int_equal(json_next(&reader), JSON_TOKEN_ARRAY);
    enum json_token token = json_next(&reader);
    assert_true(str_equal(json_skip(&reader, token), STR("{\"a\":[1,{}] }")));
    token = json_next(&reader);
    assert_true(str_equal(json_skip(&reader, token), STR("\"x\"")));
    token = json_next(&reader);
    assert_true(str_equal(json_skip(&reader, token), STR("12")));
    assert_int_equal(json_next(&reader), JSON_TOKEN_ARRAY_END);
    assert_int_equal(json_next(&reader), JSON_TOKEN_END);

    json_reader_init(&reader, STR("[1,"));
    token = json_next(&reader);
    assert_null(json_skip(&reader, token).data);
}

/* ---- escapes ---- */

static void unescape_gives_the_text_a_token_stands_for(void **state)
{
    (void)state;
    static const struct {
        str token;
        str text;
        bool lone;
    } vectors[] = {
        {STR_INIT("\"\""), STR_INIT(""), false},
        {STR_INIT("\"plain \xC3\xA9\""), STR_INIT("plain \xC3\xA9"), false},
        {STR_INIT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), STR_INIT("\"\\/\b\f\n\r\t"), false},
        {STR_INIT("\"\\u0000a\\u00e9\\u20AC\""), STR_INIT("\0a\xC3\xA9\xE2\x82\xAC"), false},
        {STR_INIT("\"\\ud83d\\ude00\""), STR_INIT("\xF0\x9F\x98\x80"), false},
        {STR_INIT("\"\\udbff\\udfff\""), STR_INIT("\xF4\x8F\xBF\xBF"), false},
        {STR_INIT("\"\\ud83d\""), STR_INIT("\xED\xA0\xBD"), true},
        {STR_INIT("\"\\ude00\\ud83d\""), STR_INIT("\xED\xB8\x80\xED\xA0\xBD"), true},
        {STR_INIT("\"\\ud83d\\ud83d\\ude00\""), STR_INIT("\xED\xA0\xBD\xF0\x9F\x98\x80"), true},
        {STR_INIT("\"\\uD83D\\n\\uDE00\""), STR_INIT("\xED\xA0\xBD\n\xED\xB8\x80"), true},
        {STR_INIT("\"\\ud83dx\""), STR_INIT("\xED\xA0\xBDx"), true},
    };
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    for (size_t i = 0; i < ARRAY_COUNT(vectors); i++) {
        buf out = buf_create(arena, 64, 64);
        bool lone = !vectors[i].lone;
        str text = json_unescape(&out, vectors[i].token, &lone);
        assert_true(str_equal(text, vectors[i].text));
        assert_int_equal(lone, vectors[i].lone);
        assert_int_equal(json_has_lone_surrogate(vectors[i].token), vectors[i].lone);
        assert_true(str_equal(json_unescape(&out, vectors[i].token, NULL), vectors[i].text));
    }
}

static void unescape_needs_no_room_where_nothing_is_escaped(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    buf none = buf_create(arena, 0, 0);
    str token = STR("\"abc\"");
    str text = json_unescape(&none, token, NULL);
    assert_ptr_equal(text.data, token.data + 1);
    assert_null(json_unescape(&none, STR("\"\\n\""), NULL).data);
}

static void lone_surrogates_are_found_in_names_and_deep_values(void **state)
{
    (void)state;
    assert_true(json_has_lone_surrogate(STR("{\"\\ud800\":1}")));
    assert_true(json_has_lone_surrogate(STR("{\"a\":[{\"b\":\"\\\\\\udfff\"}]}")));
    assert_false(
        json_has_lone_surrogate(STR("{\"a\":\"\\\\ud800\",\"b\":[1,\"\\ud83d\\ude00\"]}")));
    assert_false(json_has_lone_surrogate(STR("{}")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_a_body_into_elements_with_their_places),
        cmocka_unit_test(an_empty_array_has_no_elements),
        cmocka_unit_test(the_first_byte_that_cannot_stand_there_is_the_offset),
        cmocka_unit_test(a_body_that_ends_early_is_invalid_at_its_length),
        cmocka_unit_test(another_json_value_is_not_an_array),
        cmocka_unit_test(a_byte_order_mark_is_skipped_at_the_very_start_only),
        cmocka_unit_test(bytes_that_are_not_utf8_pass_inside_strings),
        cmocka_unit_test(level_512_is_taken_and_513_is_invalid_at_its_bracket),
        cmocka_unit_test(mixed_levels_close_as_they_were_opened),
        cmocka_unit_test(an_element_past_the_maximum_is_seen_at_its_first_byte),
        cmocka_unit_test(a_final_answer_is_given_again),
        cmocka_unit_test(the_reader_gives_every_token_as_a_slice),
        cmocka_unit_test(the_reader_and_the_splitter_find_the_same_wrong_byte),
        cmocka_unit_test(the_reader_takes_any_value_and_nothing_else),
        cmocka_unit_test(the_reader_stops_at_level_513),
        cmocka_unit_test(skip_returns_the_whole_value),
        cmocka_unit_test(unescape_gives_the_text_a_token_stands_for),
        cmocka_unit_test(unescape_needs_no_room_where_nothing_is_escaped),
        cmocka_unit_test(lone_surrogates_are_found_in_names_and_deep_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
