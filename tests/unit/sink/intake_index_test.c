/* Known ids in memory: what was noted, or stands in the ledger, never looks new. */
#include "intake_fixture.h"
#include "sink/intake_index.h"

enum { THREADS = 4, EACH = 20000, PAST_A_PAGE = 2500 };

static struct intake_options options_of(i64 bytes_max)
{
    struct intake_options options = fixture_options(0);
    options.index_bytes_max = bytes_max;
    return options;
}

static bool claim(struct intake_index *index, const char *prefix, size_t number)
{
    char id[64];
    int size = snprintf(id, sizeof(id), "%s-%zu", prefix, number);
    return intake_index_claim(index,
                              intake_index_id(intake_index_sink(SINK), (str){id, (size_t)size}));
}

static struct intake_index *open_index(const struct intake_options *options)
{
    struct intake_index *index = NULL;
    assert_int_equal(intake_index_open(f.arena, options, &index, NULL), OK);
    return index;
}

static void an_id_is_new_once_and_in_its_sink_alone(void **state)
{
    (void)state;
    struct intake_options options = options_of(MIB);
    struct intake_index *index = open_index(&options);
    assert_true(claim(index, "a", 1));
    assert_false(claim(index, "a", 1));
    assert_true(claim(index, "a", 2));
    u64 other = intake_index_sink(STR("snk_00000000000f"));
    assert_true(intake_index_claim(index, intake_index_id(other, STR("a-1"))));
    intake_index_close(index);
}

static void without_memory_every_id_may_be_known(void **state)
{
    (void)state;
    struct intake_options options = options_of(0);
    struct intake_index *index = open_index(&options);
    assert_false(claim(index, "a", 1));
    assert_false(claim(index, "a", 2));
    intake_index_close(index);
}

/* Far more ids than the bound has room for: nothing that was noted looks new, and what is new is
 * looked up more and more often. */
static void past_the_bound_more_is_looked_up_and_nothing_is_forgotten(void **state)
{
    (void)state;
    struct intake_options options = options_of((i64)512 * KIB);
    struct intake_index *index = open_index(&options);
    size_t few = 0;
    size_t many = 0;
    for (size_t i = 0; i < 1500000; i++) {
        bool is_new = claim(index, "a", i);
        few += i < 100000 && !is_new ? 1 : 0;
        many += i >= 1400000 && !is_new ? 1 : 0;
    }
    assert_true(few < 3000);
    assert_true(many > 10000);
    for (size_t i = 0; i < 1500000; i++) {
        assert_false(claim(index, "a", i));
    }
    intake_index_close(index);
}

/* ---- from several threads, while the layers grow ---- */

static struct intake_index *shared;
static atomic_size_t looked_up;

static void *claim_many(void *argument)
{
    const char *prefix = argument;
    for (size_t i = 0; i < EACH; i++) {
        atomic_fetch_add(&looked_up, claim(shared, prefix, i) ? 0 : 1);
    }
    return NULL;
}

static void claims_of_many_threads_are_all_kept(void **state)
{
    (void)state;
    static char prefixes[THREADS][2] = {"a", "b", "c", "d"};
    struct intake_options options = options_of((i64)64 * MIB);
    pthread_t threads[THREADS];
    shared = open_index(&options);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, claim_many, prefixes[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    assert_true(atomic_load(&looked_up) < THREADS * EACH / 20);
    for (size_t i = 0; i < THREADS * EACH; i++) {
        assert_false(claim(shared, prefixes[i % THREADS], i / THREADS));
    }
    intake_index_close(shared);
}

/* ---- what the ledger knows ---- */

static err insert_many(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    for (i64 i = 0; i < PAST_A_PAGE; i++) {
        char id[64];
        int size = snprintf(id, sizeof(id), "old-%lld", (long long)i);
        const struct db_value values[] = {DB_T(SINK), DB_T(((str){id, (size_t)size})), DB_N(i)};
        TRY(db_exec(tx,
                    "INSERT INTO batch (sink, batch_id, uid, object_key, byte_offset, bytes, rows, "
                    "refused, sha256, body_hash, seq, received_at, ingest_ts, answer, state, held, "
                    "misses, retried, rows_committed, rows_rejected) VALUES (?1, ?2, ?2, '', 0, 0, "
                    "0, 0, x'', x'', ?3, 0, 0, '', 2, 0, 0, 0, 0, 0)",
                    values, ARRAY_COUNT(values), NULL, error));
    }
    return OK;
}

static void the_ids_of_the_ledger_are_known_from_the_start(void **state)
{
    (void)state;
    assert_int_equal(db_transact(&f.db, insert_many, NULL, NULL), OK);
    struct intake_options options = options_of(MIB);
    struct intake_index *index = open_index(&options);
    for (size_t i = 0; i < PAST_A_PAGE; i++) {
        assert_false(claim(index, "old", i));
    }
    /* Once the rest is read, other ids are new. */
    size_t number = 0;
    while (!claim(index, "young", number)) {
        number++;
        assert_true(number < 10000000);
    }
    for (size_t i = 0; i < PAST_A_PAGE; i++) {
        assert_false(claim(index, "old", i));
    }
    intake_index_close(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_id_is_new_once_and_in_its_sink_alone),
        TEST(without_memory_every_id_may_be_known),
        TEST(past_the_bound_more_is_looked_up_and_nothing_is_forgotten),
        TEST(claims_of_many_threads_are_all_kept),
        TEST(the_ids_of_the_ledger_are_known_from_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
