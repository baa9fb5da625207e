#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/base64.h"

static str encoded(struct arena *arena, str bytes)
{
    buf out = buf_create(arena, 0, 1000);
    base64_encode(&out, bytes);
    assert_true(buf_ok(&out));
    return buf_str(&out);
}

static str encoded_url(struct arena *arena, str bytes)
{
    buf out = buf_create(arena, 0, 1000);
    base64_encode_url(&out, bytes);
    assert_true(buf_ok(&out));
    return buf_str(&out);
}

/* The vectors of RFC 4648 section 10. */
static void rfc_vectors_in_both_directions(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    const struct {
        str bytes;
        str text;
        str url;
    } cases[] = {
        {STR_INIT(""), STR_INIT(""), STR_INIT("")},
        {STR_INIT("f"), STR_INIT("Zg=="), STR_INIT("Zg")},
        {STR_INIT("fo"), STR_INIT("Zm8="), STR_INIT("Zm8")},
        {STR_INIT("foo"), STR_INIT("Zm9v"), STR_INIT("Zm9v")},
        {STR_INIT("foob"), STR_INIT("Zm9vYg=="), STR_INIT("Zm9vYg")},
        {STR_INIT("fooba"), STR_INIT("Zm9vYmE="), STR_INIT("Zm9vYmE")},
        {STR_INIT("foobar"), STR_INIT("Zm9vYmFy"), STR_INIT("Zm9vYmFy")},
        {STR_INIT("\xfb\xff\xbf"), STR_INIT("+/+/"), STR_INIT("-_-_")},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_true(str_equal(encoded(arena, cases[i].bytes), cases[i].text));
        assert_true(str_equal(encoded_url(arena, cases[i].bytes), cases[i].url));
        const str texts[] = {cases[i].text, cases[i].url};
        for (size_t k = 0; k < ARRAY_COUNT(texts); k++) {
            buf out = buf_create(arena, 0, 1000);
            assert_true(base64_decode(&out, texts[k]));
            assert_true(str_equal(buf_str(&out), cases[i].bytes));
        }
    }
}

static void every_byte_comes_back(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    char bytes[256];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(u8)i;
    }
    for (size_t size = 0; size <= sizeof(bytes); size++) {
        buf out = buf_create(arena, 0, 1000);
        assert_true(base64_decode(&out, encoded(arena, (str){bytes, size})));
        assert_true(str_equal(buf_str(&out), (str){bytes, size}));
    }
}

static void what_is_no_base64_is_refused_and_leaves_the_buffer(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    const str bad[] = {
        STR_INIT("Z"),        STR_INIT("Zg="),      STR_INIT("Zg==="), STR_INIT("Zm8=="),
        STR_INIT("Zm9v="),    STR_INIT("Zm9v===="), STR_INIT("="),     STR_INIT("===="),
        STR_INIT("Zh=="),     STR_INIT("Zm9="),     STR_INIT("Zh"),    STR_INIT("Zm9"),
        STR_INIT("Zm 9v"),    STR_INIT("Zm9v\n"),   STR_INIT("Zm=v"),  STR_INIT("+/-_"),
        STR_INIT("Zm9\0"),    STR_INIT("Zm9\xc3"),  STR_INIT("Zm9vZ"), STR_INIT("Z==="),
        STR_INIT("Zg==Zg=="), STR_INIT("A.AA"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        buf out = buf_create(arena, 0, 1000);
        buf_append(&out, STR("as before"));
        assert_false(base64_decode(&out, bad[i]));
        assert_true(buf_ok(&out));
        assert_true(str_equal(buf_str(&out), STR("as before")));
    }
}

static void results_past_the_maximum_fail_the_buffer(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    buf out = buf_create(arena, 0, 3);
    base64_encode_url(&out, STR("foo"));
    assert_false(buf_ok(&out));
    buf bytes = buf_create(arena, 0, 2);
    assert_false(base64_decode(&bytes, STR("Zm9v")));
    assert_false(buf_ok(&bytes));
}

static void hex_is_lower_case(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    buf out = buf_create(arena, 0, 1000);
    base64_hex(&out, STR("\x00\x1f\xab\xff"));
    assert_true(str_equal(buf_str(&out), STR("001fabff")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc_vectors_in_both_directions),
        cmocka_unit_test(every_byte_comes_back),
        cmocka_unit_test(what_is_no_base64_is_refused_and_leaves_the_buffer),
        cmocka_unit_test(results_past_the_maximum_fail_the_buffer),
        cmocka_unit_test(hex_is_lower_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
