#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sink/plan.h"

#include <stdio.h>

#define UID_A "0123456789abcdefghjkmnpqrs"
#define UID_B "1123456789abcdefghjkmnpqrs"
#define UID_C "2123456789abcdefghjkmnpqrs"

static int set_up(void **state)
{
    *state = arena_create(64 * MIB);
    return 0;
}

static int tear_down(void **state)
{
    arena_destroy(*state);
    return 0;
}

static struct ledger_batch one_batch(void)
{
    struct ledger_batch batch = {
        .batch_id = STR("2026-09-21T12:00:00Z-0001"),
        .object_key = STR("_sink/snk_0123456789ab/b." UID_C ".ndjson"),
        .offset = 0,
        .bytes = 33,
        .rows = 2,
        .seq = 4711,
        .received_at = 1790000000123456,
        .ingest_ts = 1790000000123456,
    };
    memcpy(batch.uid.text, UID_C, ID_UID_SIZE);
    memset(batch.sha256.bytes, 0xAB, sizeof(batch.sha256.bytes));
    memset(batch.body_hash, 0xFF, sizeof(batch.body_hash));
    return batch;
}

static struct ledger_plan plan_17(void)
{
    return (struct ledger_plan){
        .id = STR(UID_A),
        .sink_id = STR("snk_0123456789ab"),
        .n = 17,
        .prev = STR(UID_B),
        .config_version = 3,
    };
}

static void the_plan_object_has_one_form(void **state)
{
    struct ledger_batch batch = one_batch();
    struct ledger_plan plan = plan_17();
    char at[TIME_TEXT_SIZE];
    str wanted = str_format(
        *state,
        "{\"format\":1,\"installation\":\"inst\",\"sink_id\":\"snk_0123456789ab\",\"n\":17,\"id\":"
        "\"" UID_A "\",\"prev\":\"" UID_B "\",\"config_version\":3,\"batches\":[{\"batch_id\":"
        "\"2026-09-21T12:00:00Z-0001\",\"uid\":\"" UID_C
        "\",\"key\":\"_sink/snk_0123456789ab/b." UID_C
        ".ndjson\",\"offset\":0,\"bytes\":33,\"rows\":2,\"refused\":0,\"sha256\":"
        "\"abababababababababababababababababababababababababababababababab\",\"body\":"
        "\"_____________________w\",\"seq\":4711,\"received_at\":\"%.*s\"}]}\n",
        STR_ARG(time_format(batch.received_at, at)));
    str bytes;
    str again;
    assert_int_equal(plan_print_object(*state, STR("inst"), &plan, &batch, 1, &bytes, NULL), OK);
    assert_int_equal(plan_print_object(*state, STR("inst"), &plan, &batch, 1, &again, NULL), OK);
    assert_string_equal(str_copy(*state, bytes).data, wanted.data);
    assert_true(str_equal(bytes, again));
}

static void the_void_verdict_names_the_plan_and_its_batches(void **state)
{
    struct ledger_batch batch = one_batch();
    struct ledger_plan plan = plan_17();
    str bytes;
    assert_int_equal(plan_print_void(*state, STR("inst"), &plan, &batch, 1, &bytes, NULL), OK);
    json_t *read = json_loadb(bytes.data, bytes.size, 0, NULL);
    assert_non_null(read);
    assert_string_equal(json_string_value(json_object_get(read, "verdict")), "all_rejected");
    assert_int_equal(json_array_size(json_object_get(read, "batches")), 1);
    json_decref(read);
    str key = plan_void_key(*state, plan.sink_id, 17, plan.id);
    assert_string_equal(key.data, "_sink/snk_0123456789ab/plans/17-" UID_A ".void.json");
}

static void a_property_is_four_well_formed_parts(void **state)
{
    const struct plan_property property = {STR("inst"), STR("snk_1"), 17, STR(UID_A)};
    struct plan_property read = {0};
    str text = plan_print_property(*state, &property);
    assert_string_equal(text.data, "inst:snk_1:17:" UID_A);
    assert_true(plan_parse_property(text, &read));
    assert_int_equal(read.n, 17);
    assert_true(str_equal(read.id, property.id));
    assert_true(plan_parse_property(STR("i:s:0:" UID_A), &read));
    static const char *const others[] = {
        "",
        "i",
        "i:s:1",
        "i:s:1:" UID_A ":x",
        ":s:1:" UID_A,
        "i::1:" UID_A,
        "i:s::" UID_A,
        "i:s:1:",
        "i:s:01:" UID_A,
        "i:s:00:" UID_A,
        "i:s:-1:" UID_A,
        "i:s:+1:" UID_A,
        "i:s:1 :" UID_A,
        "i:s: 1:" UID_A,
        "i :s:1:" UID_A,
        "i:s\n:1:" UID_A,
        "i:s:9223372036854775808:" UID_A,
        "i:s:1:0123456789abcdefghjkmnpqr",
        "i:s:1:0123456789ABCDEFGHJKMNPQRS",
        "i:s:1:0123456789abcdefghjkmnpqru",
    };
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        if (plan_parse_property(str_from(others[i]), &read)) {
            fail_msg("taken: %s", others[i]);
        }
    }
}

/* The table of C.6: L = (16, B), P = (17, A). */
static void the_property_is_read_against_the_ledger(void **state)
{
    (void)state;
    const struct ledger_sink sink = {.id = STR("snk_1"), .last_n = 16, .last_plan_id = STR(UID_B)};
    const struct ledger_plan plan = {.id = STR(UID_A), .n = 17, .prev = STR(UID_B)};
    static const struct {
        const char *text; /* NULL: absent */
        enum plan_reading with_plan;
        enum plan_reading without;
    } cases[] = {
        {"inst:snk_1:17:" UID_A, PLAN_READS_COMMITTED, PLAN_READS_AHEAD},
        {"inst:snk_1:16:" UID_B, PLAN_READS_NOT_COMMITTED, PLAN_READS_NOT_COMMITTED},
        {"inst:snk_1:17:" UID_C, PLAN_READS_AHEAD, PLAN_READS_AHEAD},
        {"inst:snk_1:18:" UID_C, PLAN_READS_AHEAD, PLAN_READS_AHEAD},
        {"inst:snk_1:18:" UID_A, PLAN_READS_AHEAD, PLAN_READS_AHEAD},
        {"inst:snk_1:16:" UID_C, PLAN_READS_OTHER, PLAN_READS_OTHER},
        {"inst:snk_1:16:" UID_A, PLAN_READS_OTHER, PLAN_READS_OTHER},
        {"inst:snk_1:15:" UID_B, PLAN_READS_OTHER, PLAN_READS_OTHER},
        {"inst:snk_1:0:" UID_B, PLAN_READS_OTHER, PLAN_READS_OTHER},
        {"inst:snk_2:17:" UID_A, PLAN_READS_OTHER, PLAN_READS_OTHER},
        {"other:snk_1:17:" UID_A, PLAN_READS_OTHER, PLAN_READS_OTHER},
        {"inst:snk_1:17", PLAN_READS_OTHER, PLAN_READS_OTHER},
        {"inst:snk_1:17:" UID_A ":more", PLAN_READS_OTHER, PLAN_READS_OTHER},
        {"", PLAN_READS_OTHER, PLAN_READS_OTHER},
        {NULL, PLAN_READS_OTHER, PLAN_READS_OTHER},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        str text = cases[i].text == NULL ? (str){NULL, 0} : str_from(cases[i].text);
        assert_int_equal(plan_judge(STR("inst"), &sink, &plan, text), cases[i].with_plan);
        assert_int_equal(plan_judge(STR("inst"), &sink, NULL, text), cases[i].without);
    }
}

static void counts_come_back_as_they_went(void **state)
{
    struct ledger_batch batches[2] = {{.batch_id = STR("a")}, {.batch_id = STR("b")}};
    struct ledger_verdict verdicts[2] = {{STR("a"), 3, 0}, {STR("b"), 0, 5}};
    struct plan_counts counts = {
        .schema_id = 4,
        .spec_id = 1,
        .verdicts = verdicts,
        .verdict_count = 2,
        .recent = {STR("{\"row\":1,\"data\":{\"x\":\"\\u00e9\"}}")},
        .recent_count = 1,
    };
    counts.reasons[REJECT_OUT_OF_RANGE] = 2;
    counts.reasons[REJECT_WRONG_TYPE] = 3;
    str json;
    struct plan_counts read = {0};
    assert_int_equal(plan_print_counts(*state, &counts, &json, NULL), OK);
    assert_int_equal(plan_parse_counts(*state, json, batches, 2, &read, NULL), OK);
    assert_int_equal(read.schema_id, 4);
    assert_int_equal(read.spec_id, 1);
    assert_int_equal(read.rows_committed, 3);
    assert_int_equal(read.rows_rejected, 5);
    assert_true(str_equal(read.verdicts[1].batch_id, STR("b")));
    assert_int_equal(read.verdicts[1].rows_rejected, 5);
    assert_int_equal(read.reasons[REJECT_OUT_OF_RANGE], 2);
    assert_int_equal(read.reasons[REJECT_WRONG_TYPE], 3);
    assert_int_equal(read.recent_count, 1);
    assert_true(str_equal(read.recent[0], counts.recent[0]));
    assert_int_equal(plan_parse_counts(*state, json, batches, 1, &read, NULL), CORRUPT);
    assert_int_equal(plan_parse_counts(*state, STR("[]"), batches, 2, &read, NULL), CORRUPT);
    assert_int_equal(plan_parse_counts(*state, STR("{"), batches, 2, &read, NULL), CORRUPT);
    assert_int_equal(plan_parse_counts(*state, (str){NULL, 0}, batches, 2, &read, NULL), CORRUPT);
}

static void a_try_is_json_with_its_base(void **state)
{
    const str files[] = {STR("file:///a"), STR("file:///b\"")};
    const struct plan_try first = {.snapshot_id = 5, .files = files, .file_count = 2};
    const struct plan_try again = {.has_base = true, .base = 4, .snapshot_id = 5};
    str json;
    assert_int_equal(plan_print_try(*state, &first, &json, NULL), OK);
    assert_string_equal(
        str_copy(*state, json).data,
        "{\"base\":null,\"snapshot\":5,\"files\":[\"file:///a\",\"file:///b\\\"\"]}");
    assert_int_equal(plan_print_try(*state, &again, &json, NULL), OK);
    assert_true(str_equal(json, STR("{\"base\":4,\"snapshot\":5,\"files\":[]}")));
}

static void the_summary_names_ids_up_to_one_kib(void **state)
{
    enum { MANY = 40 };
    struct ledger_batch batches[MANY];
    for (size_t i = 0; i < MANY; i++) {
        batches[i] = (struct ledger_batch){
            .batch_id = str_format(*state, "%026zu", i)}; /* 27 bytes with its comma */
    }
    str few = plan_join_ids(*state, batches, 2);
    assert_true(str_equal(few, STR("00000000000000000000000000,00000000000000000000000001")));
    assert_int_equal(plan_join_ids(*state, batches, 37).size, 37 * 27 - 1);
    assert_null(plan_join_ids(*state, batches, 38).data);
    str hash = plan_hash_ids(*state, batches, 2);
    struct sha256 wanted = crypto_sha256(few);
    assert_int_equal(hash.size, 64);
    char first[3] = {0};
    memcpy(first, hash.data, 2);
    char digits[3];
    (void)snprintf(digits, sizeof(digits), "%02x", wanted.bytes[0]);
    assert_string_equal(first, digits);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_plan_object_has_one_form),
        TEST(the_void_verdict_names_the_plan_and_its_batches),
        TEST(a_property_is_four_well_formed_parts),
        TEST(the_property_is_read_against_the_ledger),
        TEST(counts_come_back_as_they_went),
        TEST(a_try_is_json_with_its_base),
        TEST(the_summary_names_ids_up_to_one_kib),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
