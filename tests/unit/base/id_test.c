#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/id.h"

/* A seam whose random bytes are a counted sequence from `next` on. */
struct counted {
    u8 next;
    u8 step;
};

static void counted_random(void *self, void *out_bytes, size_t size)
{
    struct counted *counted = self;
    u8 *bytes = out_bytes;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = counted->next;
        counted->next = (u8)(counted->next + counted->step);
    }
}

static instant fixed_now(void *self)
{
    (void)self;
    return 1469922850259000; /* 2016-07-30T23:54:10.259Z */
}

static struct seam counted_seam(struct counted *counted)
{
    return (struct seam){.now = fixed_now, .random = counted_random, .self = counted};
}

static void uid_is_128_random_bits_in_base32(void **state)
{
    (void)state;
    struct counted zeros = {.next = 0, .step = 0};
    struct seam seam = counted_seam(&zeros);
    struct uid uid = id_uid_make(&seam);
    assert_true(str_equal(id_uid_str(&uid), STR("00000000000000000000000000")));
    struct counted ones = {.next = 0xff, .step = 0};
    seam = counted_seam(&ones);
    uid = id_uid_make(&seam);
    assert_true(str_equal(id_uid_str(&uid), STR("zzzzzzzzzzzzzzzzzzzzzzzzzw")));
    struct counted steps = {.next = 0, .step = 1};
    seam = counted_seam(&steps);
    uid = id_uid_make(&seam);
    assert_true(str_equal(id_uid_str(&uid), STR("000g40r40m30e209185gr38e1w")));
}

static void base32_takes_the_first_130_bits(void **state)
{
    (void)state;
    u8 bytes[17];
    memset(bytes, 0xff, sizeof(bytes));
    char text[ID_UID_SIZE];
    id_base32_26(bytes, text);
    assert_memory_equal(text, "zzzzzzzzzzzzzzzzzzzzzzzzzz", ID_UID_SIZE);
    bytes[16] = 0x3f; /* bits past the 130th do not show */
    id_base32_26(bytes, text);
    assert_memory_equal(text, "zzzzzzzzzzzzzzzzzzzzzzzzzw", ID_UID_SIZE);
}

static void uid_text_is_read_back_or_refused(void **state)
{
    (void)state;
    struct uid made = id_uid_make(seam_system());
    struct uid uid = {{0}};
    assert_true(id_uid_parse(id_uid_str(&made), &uid));
    assert_memory_equal(uid.text, made.text, ID_UID_SIZE);
    const str bad[] = {
        STR_INIT(""),
        STR_INIT("0000000000000000000000000"),
        STR_INIT("000000000000000000000000000"),
        STR_INIT("0000000000000000000000000A"),
        STR_INIT("0000000000000000000000000i"),
        STR_INIT("0000000000000000000000000l"),
        STR_INIT("0000000000000000000000000o"),
        STR_INIT("0000000000000000000000000u"),
        STR_INIT("0000000000000000000000000\0"),
        STR_INIT("../00000000000000000000000"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(id_uid_parse(bad[i], &uid));
    }
    assert_memory_equal(uid.text, made.text, ID_UID_SIZE);
}

static void uuid_is_version_4_with_the_rfc_variant(void **state)
{
    (void)state;
    struct counted ones = {.next = 0xff, .step = 0};
    struct seam seam = counted_seam(&ones);
    char text[ID_UUID_SIZE];
    assert_true(str_equal(id_uuid_format(id_uuid_make(&seam), text),
                          STR("ffffffff-ffff-4fff-bfff-ffffffffffff")));
    struct counted zeros = {.next = 0, .step = 0};
    seam = counted_seam(&zeros);
    assert_true(str_equal(id_uuid_format(id_uuid_make(&seam), text),
                          STR("00000000-0000-4000-8000-000000000000")));
}

static void uuid_text_is_read_in_either_case_or_refused(void **state)
{
    (void)state;
    struct uuid uuid = {{0}};
    char text[ID_UUID_SIZE];
    assert_true(id_uuid_parse(STR("F79C3E09-677c-4Bbd-A479-3f349cb785e7"), &uuid));
    assert_memory_equal(uuid.bytes,
                        "\xf7\x9c\x3e\x09\x67\x7c\x4b\xbd\xa4\x79\x3f\x34\x9c\xb7\x85\xe7", 16);
    assert_true(str_equal(id_uuid_format(uuid, text), STR("f79c3e09-677c-4bbd-a479-3f349cb785e7")));
    const str bad[] = {
        STR_INIT(""),
        STR_INIT("f79c3e09677c4bbda4793f349cb785e7"),
        STR_INIT("f79c3e09-677c-4bbd-a479-3f349cb785e"),
        STR_INIT("f79c3e09-677c-4bbd-a479-3f349cb785e70"),
        STR_INIT("f79c3e09-677c-4bbd-a479-3f349cb785eg"),
        STR_INIT("f79c3e0-9677c-4bbd-a479-3f349cb785e7"),
        STR_INIT("f79c3e09_677c_4bbd_a479_3f349cb785e7"),
        STR_INIT("{79c3e09-677c-4bbd-a479-3f349cb785e}"),
        STR_INIT("f79c3e09-677c-4bbd-a479-3f349cb785\0e"),
        STR_INIT("f79c3e09-677c-4bbd-a479-3f349cb785`e"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(id_uuid_parse(bad[i], &uuid));
    }
}

static void ulid_holds_the_milliseconds_in_front(void **state)
{
    (void)state;
    struct counted zeros = {.next = 0, .step = 0};
    struct seam seam = counted_seam(&zeros);
    char text[ID_ULID_SIZE];
    assert_true(str_equal(id_ulid_make(&seam, text), STR("01ARZ3NDEK0000000000000000")));
    struct counted ones = {.next = 0xff, .step = 0};
    seam = counted_seam(&ones);
    assert_true(str_equal(id_ulid_make(&seam, text), STR("01ARZ3NDEKZZZZZZZZZZZZZZZZ")));
}

static void short_id_is_prefix_and_12_hex(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct counted steps = {.next = 0xa9, .step = 1};
    struct seam seam = counted_seam(&steps);
    assert_true(str_equal(id_short_make(arena, &seam, "snk_"), STR("snk_a9aaabacadae")));
    AUTO_ARENA struct arena *full = arena_create(0);
    assert_null(id_short_make(full, &seam, "snk_").data);
}

static void keys_of_every_kind_are_read_back(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    const struct {
        enum id_key_kind kind;
        str prefix;
    } cases[] = {{ID_KEY_API, STR_INIT("al_key_")},
                 {ID_KEY_SEND, STR_INIT("al_send_")},
                 {ID_KEY_TOKEN, STR_INIT("al_tok_")}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        str text = id_key_make(arena, seam_system(), cases[i].kind);
        assert_true(str_starts(text, cases[i].prefix));
        assert_int_equal(text.size, cases[i].prefix.size + 12 + 1 + ID_KEY_SECRET_SIZE);
        assert_true(text.size <= ID_KEY_SIZE_MAX);
        struct id_key key = {0};
        assert_true(id_key_parse(text, &key));
        assert_int_equal(key.kind, cases[i].kind);
        assert_true(str_equal(key.text, text));
        assert_true(str_equal(key.public_id,
                              str_slice(text, cases[i].prefix.size, cases[i].prefix.size + 12)));
    }
    AUTO_ARENA struct arena *full = arena_create(0);
    assert_null(id_key_make(full, seam_system(), ID_KEY_API).data);
}

/* The checksum was computed by Python's zlib.crc32 and base64.urlsafe_b64encode. */
static void checksum_is_crc32_of_what_stands_before(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct counted steps = {.next = 0, .step = 1};
    struct seam seam = counted_seam(&steps);
    str text = id_key_make(arena, &seam, ID_KEY_SEND);
    assert_true(
        str_equal(text, STR("al_send_000102030405_BgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gImpUBWQ")));
}

static void key_with_any_character_changed_is_refused(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    str text = id_key_make(arena, seam_system(), ID_KEY_API);
    char changed[ID_KEY_SIZE_MAX];
    struct id_key key = {0};
    for (size_t i = 0; i < text.size; i++) {
        memcpy(changed, text.data, text.size);
        changed[i] = changed[i] == '0' ? '1' : '0';
        assert_false(id_key_parse((str){changed, text.size}, &key));
        changed[i] = '\0';
        assert_false(id_key_parse((str){changed, text.size}, &key));
    }
    assert_false(id_key_parse(str_slice(text, 0, text.size - 1), &key));
    assert_false(id_key_parse(str_slice(text, 1, text.size), &key));
    assert_false(id_key_parse(STR(""), &key));
    assert_false(id_key_parse(STR("al_key_"), &key));
    assert_null(key.text.data);
}

static void made_ids_differ(void **state)
{
    (void)state;
    struct uid a = id_uid_make(seam_system());
    struct uid b = id_uid_make(seam_system());
    assert_memory_not_equal(a.text, b.text, ID_UID_SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uid_is_128_random_bits_in_base32),
        cmocka_unit_test(base32_takes_the_first_130_bits),
        cmocka_unit_test(uid_text_is_read_back_or_refused),
        cmocka_unit_test(uuid_is_version_4_with_the_rfc_variant),
        cmocka_unit_test(uuid_text_is_read_in_either_case_or_refused),
        cmocka_unit_test(ulid_holds_the_milliseconds_in_front),
        cmocka_unit_test(short_id_is_prefix_and_12_hex),
        cmocka_unit_test(keys_of_every_kind_are_read_back),
        cmocka_unit_test(checksum_is_crc32_of_what_stands_before),
        cmocka_unit_test(key_with_any_character_changed_is_refused),
        cmocka_unit_test(made_ids_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
