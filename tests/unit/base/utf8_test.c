#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/utf8.h"

static void well_formed_text_passes(void **state)
{
    (void)state;
    const str good[] = {
        STR_INIT(""),
        STR_INIT("plain ASCII of more than eight bytes"),
        STR_INIT("\0"),
        STR_INIT("\xc2\x80"),
        STR_INIT("\xdf\xbf"),
        STR_INIT("\xe0\xa0\x80"),
        STR_INIT("\xed\x9f\xbf"), /* U+D7FF, before the surrogates */
        STR_INIT("\xee\x80\x80"), /* U+E000, after them */
        STR_INIT("\xef\xbf\xbf"),
        STR_INIT("\xf0\x90\x80\x80"),
        STR_INIT("\xf4\x8f\xbf\xbf"), /* U+10FFFF */
        STR_INIT("ab\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 end"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        assert_int_equal(utf8_check(good[i]), good[i].size);
        assert_true(utf8_valid(good[i]));
    }
    assert_true(utf8_valid((str){NULL, 0}));
}

/* Each form stands after a prefix of every size up to 9 and before some ASCII: the place found is
 * always the first byte of the form. */
static void ill_formed_sequences_are_found_at_their_first_byte(void **state)
{
    (void)state;
    static const str bad[] = {
        STR_INIT("\x80"), /* a continuation alone */
        STR_INIT("\xbf"),
        STR_INIT("\xc0\x80"), /* overlong NUL */
        STR_INIT("\xc1\xbf"),
        STR_INIT("\xc2"), /* cut off */
        STR_INIT("\xc2\x41"),
        STR_INIT("\xc2\xc2"),
        STR_INIT("\xdf\xc0"),
        STR_INIT("\xe0\x80\x80"), /* overlong */
        STR_INIT("\xe0\x9f\xbf"),
        STR_INIT("\xe1\x80"),
        STR_INIT("\xe1\x80\x41"),
        STR_INIT("\xe1\x41\x80"),
        STR_INIT("\xed\xa0\x80"), /* U+D800 */
        STR_INIT("\xed\xbf\xbf"), /* U+DFFF */
        STR_INIT("\xef\xbf"),
        STR_INIT("\xf0\x80\x80\x80"), /* overlong */
        STR_INIT("\xf0\x8f\xbf\xbf"),
        STR_INIT("\xf0\x90\x80"),
        STR_INIT("\xf0\x90\x80\x41"),
        STR_INIT("\xf0\x90\x41\x80"),
        STR_INIT("\xf4\x90\x80\x80"), /* U+110000 */
        STR_INIT("\xf5\x80\x80\x80"),
        STR_INIT("\xf8\x88\x80\x80\x80"),
        STR_INIT("\xfe"),
        STR_INIT("\xff"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        for (size_t prefix = 0; prefix < 10; prefix++) {
            char text[32];
            memset(text, 'a', sizeof(text));
            memcpy(text + prefix, bad[i].data, bad[i].size);
            assert_int_equal(utf8_check((str){text, sizeof(text)}), prefix);
            assert_int_equal(utf8_check((str){text, prefix + bad[i].size}), prefix);
            assert_false(utf8_valid((str){text, sizeof(text)}));
        }
    }
}

static void every_code_point_but_surrogates_passes_as_encoded(void **state)
{
    (void)state;
    for (u32 code_point = 0; code_point <= 0x10ffff; code_point++) {
        char text[4];
        size_t size = utf8_encode(code_point, text);
        size_t wanted_size = code_point < 0x80      ? 1
                             : code_point < 0x800   ? 2
                             : code_point < 0x10000 ? 3
                                                    : 4;
        bool surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
        if (size != wanted_size || utf8_valid((str){text, size}) == surrogate) {
            fail_msg("U+%04X", code_point);
        }
    }
    char euro[4];
    assert_int_equal(utf8_encode(0x20ac, euro), 3);
    assert_memory_equal(euro, "\xe2\x82\xac", 3);
    char face[4];
    assert_int_equal(utf8_encode(0x1f600, face), 4);
    assert_memory_equal(face, "\xf0\x9f\x98\x80", 4);
}

static void cut_ends_at_a_character(void **state)
{
    (void)state;
    str text = STR("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    const size_t wanted[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
    for (size_t max = 0; max < ARRAY_COUNT(wanted); max++) {
        assert_int_equal(utf8_cut(text, max).size, wanted[max]);
    }
    assert_int_equal(utf8_cut((str){NULL, 0}, 5).size, 0);
}

static u64 next_random(u64 *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Texts of every length, well-formed but for some bytes: both ways find the same place. */
static void long_texts_are_judged_as_byte_by_byte(void **state)
{
    (void)state;
    static const u32 limits[] = {0x80, 0x80, 0x800, 0x10000, 0x110000};
    u64 random = 11;
    char text[256];
    for (int i = 0; i < 200000; i++) {
        size_t size = 0;
        size_t wanted = next_random(&random) % 200;
        bool ascii = i % 4 == 0;
        while (size < wanted) {
            u32 limit = limits[ascii ? 0 : next_random(&random) % ARRAY_COUNT(limits)];
            u32 point = (u32)(next_random(&random) % limit);
            size += utf8_encode(point >= 0xd800 && point <= 0xdfff ? 'x' : point, text + size);
        }
        for (u64 wrong = next_random(&random) % 3; wrong > 0 && size > 0; wrong--) {
            text[next_random(&random) % size] = (char)next_random(&random);
        }
        size -= size > 0 ? next_random(&random) % 2 : 0;
        str whole = {text, size};
        assert_int_equal(utf8_check(whole), utf8_check_plainly(whole));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed_text_passes),
        cmocka_unit_test(ill_formed_sequences_are_found_at_their_first_byte),
        cmocka_unit_test(every_code_point_but_surrogates_passes_as_encoded),
        cmocka_unit_test(long_texts_are_judged_as_byte_by_byte),
        cmocka_unit_test(cut_ends_at_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
