#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/map.h"
#include "sink/batch.h"

static struct arena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = arena_create((size_t)16 * MIB);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

static void assert_text(str text, const char *wanted)
{
    assert_non_null(text.data);
    assert_string_equal(str_copy(arena, text).data, wanted);
}

static void ids_of_the_contract_pass(void **state)
{
    (void)state;
    static const char *const ids[][2] = {
        {"a", "a"},     {"2026-09-21T12:00:00Z-0001", "2026-09-21T12:00:00Z-0001"},
        {".", "."},     {"..", ".."},
        {"\"q\"", "q"}, {"A_b.c:d-9", "A_b.c:d-9"},
        {"dev", "dev"}, {"Dev.x", "Dev.x"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        str id = {0};
        assert_int_equal(batch_id_parse(str_from(ids[i][0]), &id, NULL), OK);
        assert_text(id, ids[i][1]);
    }
    char longest[BATCH_ID_MAX + 1];
    memset(longest, 'a', sizeof(longest));
    str id = {0};
    assert_int_equal(batch_id_parse((str){longest, BATCH_ID_MAX}, &id, NULL), OK);
    assert_int_equal(batch_id_parse((str){longest, BATCH_ID_MAX + 1}, &id, NULL), INVALID);
}

static void malformed_ids_are_refused(void **state)
{
    (void)state;
    static const str ids[] = {STR_INIT(""),      STR_INIT("\"\""), STR_INIT("\""),
                              STR_INIT("\"a"),   STR_INIT("a\""),  STR_INIT("\"\"a\"\""),
                              STR_INIT("a b"),   STR_INIT("../x"), STR_INIT("k\303\251y"),
                              STR_INIT("k1%2f"), STR_INIT("a\0b"), STR_INIT("a~b"),
                              STR_INIT("a,b"),   STR_INIT("a;b")};
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        str id = STR("untouched");
        struct error error = {0};
        assert_int_equal(batch_id_parse(ids[i], &id, &error), INVALID);
        assert_int_equal(error.code, ERROR_BAD_IDEMPOTENCY_KEY);
        assert_text(id, "untouched");
    }
}

static void the_servers_ids_are_reserved(void **state)
{
    (void)state;
    static const char *const ids[] = {"dev.1",     "idx.",     "sql.x",
                                      "srv.01ARZ", "replay.f", "\"dev.q\""};
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        str id = {0};
        struct error error = {0};
        assert_int_equal(batch_id_parse(str_from(ids[i]), &id, &error), INVALID);
        assert_int_equal(error.code, ERROR_BATCH_ID_RESERVED);
    }
}

static void ids_become_parts_of_paths(void **state)
{
    (void)state;
    assert_text(batch_path_part(arena, STR("a.b_c-D9")), "a.b_c-D9");
    assert_text(batch_path_part(arena, STR("q:1")), "q%3A1");
    assert_text(batch_path_part(arena, STR(".")), "%2E");
    assert_text(batch_path_part(arena, STR("..")), "%2E.");
}

static void a_long_part_is_cut_and_hashed(void **state)
{
    (void)state;
    char colons[BATCH_ID_MAX];
    memset(colons, ':', sizeof(colons));
    /* 53 colons are 159 bytes, 54 are 162. */
    assert_int_equal(batch_path_part(arena, (str){colons, 53}).size, 159);
    str part = batch_path_part(arena, (str){colons, 54});
    assert_int_equal(part.size, 100 + 1 + 26);
    assert_int_equal(part.data[100], '~');
    assert_true(str_starts(part, STR("%3A%3A")));
    str other = batch_path_part(arena, (str){colons, 55});
    assert_int_equal(other.size, part.size);
    assert_false(str_equal(part, other));
}

static void no_two_ids_share_a_part(void **state)
{
    (void)state;
    static const char alphabet[] = "a.:_-%";
    struct map *seen = map_create(arena, 1000);
    size_t made = 0;
    /* Every id of up to four of these bytes; `%` never passes the parser. */
    for (int number = 0; number < 6 * 6 * 6 * 6; number++) {
        char text[4];
        size_t size = 0;
        for (int rest = number; size < sizeof(text); rest /= 6) {
            text[size++] = alphabet[rest % 6];
        }
        str id = {0};
        if (batch_id_parse((str){text, sizeof(text)}, &id, NULL) != OK) {
            continue;
        }
        bool is_new = false;
        assert_non_null(map_put(seen, batch_path_part(arena, id), &is_new));
        assert_true(is_new);
        made++;
    }
    assert_int_equal(made, 5 * 5 * 5 * 5);
}

static void keys_are_those_of_the_protocol(void **state)
{
    (void)state;
    struct uid uid;
    assert_true(id_uid_parse(STR("0123456789abcdefghjkmnpqrs"), &uid));
    str sink = STR("snk_0123456789ab");
    assert_text(batch_object_key(arena, sink, STR("b:1"), &uid),
                "_sink/snk_0123456789ab/b%3A1.0123456789abcdefghjkmnpqrs.ndjson");
    assert_text(batch_rejects_key(arena, sink, STR("b1")),
                "_sink/snk_0123456789ab/rejects/b1.ndjson");
    assert_text(batch_intake_rejects_key(arena, sink, STR("b1"), &uid),
                "_sink/snk_0123456789ab/rejects/b1~0123456789abcdefghjkmnpqrs.intake.ndjson");
    assert_text(batch_plan_key(arena, sink, 17, STR("xyz")),
                "_sink/snk_0123456789ab/plans/17-xyz.json");
}

static void a_full_arena_gives_no_key(void **state)
{
    (void)state;
    struct uid uid;
    assert_true(id_uid_parse(STR("0123456789abcdefghjkmnpqrs"), &uid));
    AUTO_ARENA struct arena *none = arena_create(0);
    assert_null(batch_path_part(none, STR("b")).data);
    assert_null(batch_object_key(none, STR("s"), STR("b"), &uid).data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_of_the_contract_pass),
        cmocka_unit_test(malformed_ids_are_refused),
        cmocka_unit_test(the_servers_ids_are_reserved),
        cmocka_unit_test(ids_become_parts_of_paths),
        cmocka_unit_test(a_long_part_is_cut_and_hashed),
        cmocka_unit_test(no_two_ids_share_a_part),
        cmocka_unit_test(keys_are_those_of_the_protocol),
        cmocka_unit_test(a_full_arena_gives_no_key),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
