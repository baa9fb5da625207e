/* The journal with its threads: what it promises, over files in memory and in a directory. */
#include "journal_fixture.h"

/* ---- promises ---- */

static void what_was_waited_for_is_there_after_a_reopen(void **state)
{
    struct fixture *f = *state;
    static const size_t sizes[] = {8, 100, 5000, 100000, JOURNAL_RECORD_BYTES_MAX, 4028};
    must_open(f);
    assert_replay(f, 0, 0);
    for (u32 i = 0; i < ARRAY_COUNT(sizes); i++) {
        assert_int_equal(append(f, i, sizes[i]), OK);
    }
    reopen(f);
    assert_replay(f, 0, ARRAY_COUNT(sizes));
    assert_int_equal(append(f, ARRAY_COUNT(sizes), 10), OK);
    reopen(f);
    assert_replay(f, 0, ARRAY_COUNT(sizes) + 1);
}

static void a_record_that_is_empty_or_too_large_is_refused(void **state)
{
    struct fixture *f = *state;
    u64 position = 0;
    struct error error = {0};
    must_open(f);
    assert_int_equal(submit(f, 1, JOURNAL_RECORD_BYTES_MAX + 1, &position), LIMIT);
    assert_int_equal(journal_submit(&f->journal, NULL, 0, &position, &error), LIMIT);
    reopen(f);
    assert_replay(f, 0, 0);
}

static void what_is_released_is_gone_and_what_comes_after_stays(void **state)
{
    struct fixture *f = *state;
    u64 position = 0;
    must_open(f);
    assert_int_equal(append(f, 0, 10), OK);
    assert_int_equal(append(f, 1, 10), OK);
    assert_int_equal(submit(f, 2, 10, &position), OK);
    assert_int_equal(journal_wait(&f->journal, position, NULL), OK);
    assert_int_equal(append(f, 3, 10), OK);
    assert_int_equal(journal_release(&f->journal, position, NULL), OK);
    assert_int_equal(journal_release(&f->journal, 0, NULL), OK);
    reopen(f);
    assert_replay(f, 2, 2);
    assert_int_equal(append(f, 4, 10), OK);
    assert_int_equal(journal_release(&f->journal, journal_end(&f->journal), NULL), OK);
    assert_int_equal(journal_space(&f->journal).used, JOURNAL_BLOCK_BYTES); /* the mark */
    reopen(f);
    assert_replay(f, 0, 0);
}

static void a_full_log_is_busy_and_goes_round_once_it_is_released(void **state)
{
    struct fixture *f = *state;
    u32 id = 0;
    must_open(f);
    for (int round = 0; round < 4; round++) {
        u32 first = id;
        u64 position = 0;
        struct error error = {0};
        while (append(f, id, 90000) == OK) {
            id++;
        }
        assert_true(id - first >= 20);
        assert_int_equal(submit(f, id, 90000, &position), BUSY);
        const str bytes = STR("12345678");
        while (journal_submit(&f->journal, &bytes, 1, &position, &error) == OK) {
            assert_int_equal(journal_wait(&f->journal, position, NULL), OK);
        }
        assert_int_equal(error.code, ERROR_OVERLOADED);
        struct journal_space space = journal_space(&f->journal);
        assert_true(space.used <= space.total &&
                    space.used + 2 * JOURNAL_BLOCK_BYTES > space.total);
        assert_int_equal(journal_release(&f->journal, journal_end(&f->journal), NULL), OK);
        if (round % 2 == 1) {
            reopen(f);
            assert_replay(f, 0, 0);
        }
    }
}

static void another_installations_log_is_refused(void **state)
{
    struct fixture *f = *state;
    struct error error = {0};
    must_open(f);
    assert_int_equal(append(f, 0, 10), OK);
    journal_close(&f->journal);
    f->options.identity = STR("installation-2");
    assert_int_equal(try_open(f, &error), INVALID);
    assert_non_null(strstr(error.message, "installation-1"));
    f->options.identity = STR("installation-1");
    must_open(f);
    assert_replay(f, 0, 1);
}

static void sizes_that_no_log_has_are_refused(void **state)
{
    struct fixture *f = *state;
    static const struct journal_options wrong[] = {
        {.segment_bytes = MIB, .segments = 1},
        {.segment_bytes = MIB, .segments = JOURNAL_SEGMENTS_MAX + 1},
        {.segment_bytes = MIB + 1, .segments = 2},
        {.segment_bytes = MIB / 2, .segments = 2},
    };
    struct journal_options right = f->options;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        f->options.segment_bytes = wrong[i].segment_bytes;
        f->options.segments = wrong[i].segments;
        assert_int_equal(try_open(f, NULL), INVALID);
    }
    f->options = right;
    f->options.identity = STR("two words");
    assert_int_equal(try_open(f, NULL), INVALID);
    f->options = right;
}

static void other_sizes_are_taken_over_once_there_is_nothing_to_replay(void **state)
{
    struct fixture *f = *state;
    must_open(f);
    assert_int_equal(append(f, 0, 10), OK);
    f->options.segments = 3;
    reopen(f);
    assert_int_equal(journal_space(&f->journal).total, 2 * MIB);
    assert_replay(f, 0, 1);
    assert_int_equal(journal_release(&f->journal, journal_end(&f->journal), NULL), OK);
    reopen(f);
    assert_int_equal(journal_space(&f->journal).total, 3 * MIB);
    assert_replay(f, 0, 0);
    assert_int_equal(append(f, 7, 10), OK);
    reopen(f);
    assert_replay(f, 7, 1);
}

static void a_release_waits_for_what_it_releases(void **state)
{
    struct fixture *f = *state;
    u64 position = 0;
    must_open(f);
    for (u32 i = 0; i < 20; i++) {
        assert_int_equal(submit(f, i, 10 + i * 3000, &position), OK);
        if (i % 3 > 0) {
            u64 until = i % 3 == 1 ? position : journal_end(&f->journal);
            assert_int_equal(journal_release(&f->journal, until, NULL), OK);
        }
    }
    assert_int_equal(journal_release(&f->journal, position, NULL), OK);
    reopen(f);
    assert_replay(f, 19, 1);
}

/* ---- groups ---- */

struct awaited {
    struct fixture *fixture;
    u64 position;
    err result;
};

static void *await_record(void *argument)
{
    struct awaited *awaited = argument;
    awaited->result = journal_wait(&awaited->fixture->journal, awaited->position, NULL);
    return NULL;
}

static void what_comes_during_a_write_is_the_next_write(void **state)
{
    struct fixture *f = *state;
    struct awaited first = {.fixture = f, .result = UNKNOWN};
    pthread_t thread;
    u64 positions[50] = {0};
    must_open(f);
    fake_gate(f->fake, true);
    assert_int_equal(submit(f, 0, 1000, &positions[0]), OK);
    first.position = positions[0];
    assert_int_equal(pthread_create(&thread, NULL, await_record, &first), 0);
    fake_await_write(f->fake);
    for (u32 i = 1; i < ARRAY_COUNT(positions); i++) {
        assert_int_equal(submit(f, i, 1000, &positions[i]), OK);
    }
    fake_gate(f->fake, false);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(first.result, OK);
    for (u32 i = 1; i < ARRAY_COUNT(positions); i++) {
        assert_int_equal(journal_wait(&f->journal, positions[i], NULL), OK);
    }
    assert_int_equal(f->fake->writes, 2);
    reopen(f);
    assert_replay(f, 0, ARRAY_COUNT(positions));
}

/* Nobody waited for it: the end writes it. */
static void what_was_submitted_is_there_after_a_close(void **state)
{
    struct fixture *f = *state;
    u64 position = 0;
    must_open(f);
    assert_int_equal(submit(f, 5, 1000, &position), OK);
    reopen(f);
    assert_replay(f, 5, 1);
}

static void an_end_lies_between_what_came_before_and_after(void **state)
{
    struct fixture *f = *state;
    u64 before = 0;
    u64 after = 0;
    must_open(f);
    u64 end = journal_end(&f->journal);
    for (u32 i = 0; i < 20; i++) {
        fake_gate(f->fake, i % 2 == 0);
        assert_int_equal(submit(f, i, 1000 * (i + 1), &before), OK);
        assert_true(end <= before);
        end = journal_end(&f->journal);
        assert_true(before < end);
        assert_int_equal(submit(f, i, 10, &after), OK);
        assert_true(end <= after);
        end = journal_end(&f->journal);
        fake_gate(f->fake, false);
        assert_int_equal(journal_wait(&f->journal, after, NULL), OK);
    }
}

struct worker {
    struct fixture *fixture;
    u32 first;
    u32 count;
    size_t size;
    u32 done;
};

static void *append_many(void *argument)
{
    struct worker *worker = argument;
    for (u32 i = 0; i < worker->count; i++) {
        err result = append(worker->fixture, worker->first + i, worker->size);
        if (result != OK) {
            break;
        }
        worker->done++;
    }
    return NULL;
}

static u32 run_workers(struct fixture *f, u32 threads, u32 count, size_t size)
{
    static struct worker workers[64];
    pthread_t ids[64];
    u32 done = 0;
    assert_true(threads <= ARRAY_COUNT(workers));
    for (u32 i = 0; i < threads; i++) {
        workers[i] = (struct worker){f, i * count, count, size, 0};
        assert_int_equal(pthread_create(&ids[i], NULL, append_many, &workers[i]), 0);
    }
    for (u32 i = 0; i < threads; i++) {
        assert_int_equal(pthread_join(ids[i], NULL), 0);
        done += workers[i].done;
    }
    return done;
}

static void threads_share_writes_and_lose_nothing(void **state)
{
    struct fixture *f = *state;
    static struct replayed replayed;
    static bool seen[16 * 60];
    memset(seen, 0, sizeof(seen));
    f->options.segments = 8;
    must_open(f);
    assert_int_equal(run_workers(f, 16, 60, 1000), 16 * 60);
    reopen(f);
    replay(f, &replayed);
    assert_int_equal(replayed.count, 16 * 60);
    u32 next[16] = {0}; /* each thread's records are in its order */
    for (size_t i = 0; i < replayed.count; i++) {
        assert_false(seen[replayed.ids[i]]);
        seen[replayed.ids[i]] = true;
        assert_int_equal(replayed.ids[i] % 60, next[replayed.ids[i] / 60]++);
    }
}

/* Whoever finds the open group full waits until it goes to the disk. */
static void large_records_of_many_threads_wait_for_each_other(void **state)
{
    struct fixture *f = *state;
    static struct replayed replayed;
    f->options.segments = 16;
    must_open(f);
    assert_int_equal(run_workers(f, 8, 4, 400000), 32);
    reopen(f);
    replay(f, &replayed);
    assert_int_equal(replayed.count, 32);
}

static void *release_all_the_time(void *argument)
{
    struct worker *worker = argument;
    struct fixture *f = worker->fixture;
    u64 position = 0;
    while (worker->done == 0 && __atomic_load_n(&worker->count, __ATOMIC_ACQUIRE) == 0) {
        err appended = submit(f, worker->first, 20, &position);
        if (appended == OK) {
            appended = journal_wait(&f->journal, position, NULL);
        }
        if ((appended != OK && appended != BUSY) ||
            journal_release(&f->journal, position, NULL) != OK) {
            worker->done = 1;
        }
    }
    return NULL;
}

static void a_log_goes_round_under_threads_while_it_is_released(void **state)
{
    struct fixture *f = *state;
    struct worker releaser = {.fixture = f, .first = 1000000};
    pthread_t thread;
    must_open(f);
    assert_int_equal(pthread_create(&thread, NULL, release_all_the_time, &releaser), 0);
    u32 done = run_workers(f, 8, 300, 20000); /* less where it was full at some time */
    __atomic_store_n(&releaser.count, 1, __ATOMIC_RELEASE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(releaser.done, 0);
    assert_true(done > 100);
    reopen(f);
}

struct release {
    struct fixture *fixture;
    u64 position;
    err result;
};

static void *release_once(void *argument)
{
    struct release *release = argument;
    release->result = journal_release(&release->fixture->journal, release->position, NULL);
    return NULL;
}

/* What is released may be written to once the disk says so, too; until then it counts as taken. */
static void room_is_free_once_its_release_is_durable(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    must_open(f);
    assert_int_equal(append(f, 0, 900000), OK);
    assert_int_equal(append(f, 1, 900000), OK);
    struct release release = {.fixture = f, .position = journal_end(&f->journal)};
    u64 used = journal_space(&f->journal).used;
    fake_gate(f->fake, true);
    assert_int_equal(pthread_create(&thread, NULL, release_once, &release), 0);
    fake_await_write(f->fake);
    u64 position = 0;
    assert_true(journal_space(&f->journal).used > used); /* by the mark */
    assert_int_equal(submit(f, 2, 900000, &position), BUSY);
    fake_gate(f->fake, false);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(release.result, OK);
    assert_int_equal(journal_space(&f->journal).used, JOURNAL_BLOCK_BYTES);
    assert_int_equal(append(f, 2, 900000), OK);
}

/* ---- failures ---- */

static void a_failed_write_poisons_the_log_for_ever(void **state)
{
    struct fixture *f = *state;
    struct awaited first = {.fixture = f, .result = UNKNOWN};
    pthread_t thread;
    u64 position = 0;
    u64 second = 0;
    must_open(f);
    assert_int_equal(append(f, 0, 10), OK);
    fake_gate(f->fake, true);
    assert_int_equal(submit(f, 1, 10, &first.position), OK);
    assert_int_equal(pthread_create(&thread, NULL, await_record, &first), 0);
    fake_await_write(f->fake);
    assert_int_equal(submit(f, 2, 10, &second), OK);
    f->fake->fault = FAILS;
    f->fake->fault_at = f->fake->calls + 1;
    int writes = f->fake->writes;
    fake_gate(f->fake, false);
    assert_int_equal(journal_wait(&f->journal, second, NULL), IO);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(first.result, IO);
    assert_int_equal(submit(f, 3, 10, &position), IO);
    assert_int_equal(journal_release(&f->journal, JOURNAL_BLOCK_BYTES * 2, NULL), IO);
    assert_int_equal(f->fake->writes, writes); /* nothing was tried again */
    reopen(f);
    assert_replay(f, 0, 1);
}

/* The story whose every call is made to fail: a new log, records, a release, a start again, other
 * sizes. `kept` tells which records must be there. */
struct story {
    u32 begun;    /* records below it were submitted */
    u32 durable;  /* records below it were waited for */
    u32 released; /* records below it may be gone, once a release was asked for */
};

static err story_append(struct fixture *f, struct story *story, size_t size)
{
    u32 id = story->begun++;
    TRY(append(f, id, size));
    story->durable = id + 1;
    return OK;
}

static err story_open(struct fixture *f, struct story *story)
{
    static struct replayed replayed;
    TRY(try_open(f, NULL));
    replayed.count = 0;
    TRY(journal_replay(&f->journal, note, &replayed, NULL));
    for (size_t i = 0; i < replayed.count; i++) {
        u32 expected = replayed.ids[0] + (u32)i;
        assert_int_equal(replayed.ids[i], expected);
    }
    u32 first = replayed.count > 0 ? replayed.ids[0] : story->durable;
    u32 end = replayed.count > 0 ? first + (u32)replayed.count : story->durable;
    assert_true(first <= story->released || replayed.count == 0);
    assert_true(replayed.count > 0 || story->released >= story->durable);
    assert_true(end >= story->durable && end <= story->begun);
    story->durable = end;
    story->begun = end;
    return OK;
}

static err story_tell(struct fixture *f, struct story *story)
{
    TRY(story_open(f, story));
    TRY(story_append(f, story, 100));
    TRY(story_append(f, story, 30000));
    TRY(story_append(f, story, 100));
    u64 end = journal_end(&f->journal);
    TRY(story_append(f, story, 100));
    story->released = story->durable - 1;
    TRY(journal_release(&f->journal, end, NULL));
    TRY(story_append(f, story, 6000));
    journal_close(&f->journal);
    TRY(story_open(f, story));
    TRY(story_append(f, story, 500));
    story->released = story->durable;
    TRY(journal_release(&f->journal, journal_end(&f->journal), NULL));
    journal_close(&f->journal);
    f->options.segments = f->options.segments == 2 ? 3 : 2;
    TRY(story_open(f, story));
    TRY(story_append(f, story, 500));
    return OK;
}

static void after_any_failure_or_stop_nothing_durable_is_missing(void **state)
{
    struct fixture *f = *state;
    void *first = f;
    assert_int_equal(tear_down(&first), 0);
    for (enum fault fault = FAILS; fault < FAULTS; fault++) {
        bool met = true;
        for (int at = 1; met; at++) {
            void *world = f;
            struct story story = {0};
            assert_int_equal(set_up_fake(&world), 0);
            f->fake->fault = fault;
            f->fake->fault_at = at;
            err told = story_tell(f, &story);
            met = f->fake->calls >= at;
            assert_true(met ? told == IO : told == OK);
            journal_close(&f->journal);
            f->fake->fault = SOUND;
            f->fake->dead = false;
            assert_int_equal(story_open(f, &story), OK);
            assert_int_equal(story_append(f, &story, 100), OK);
            journal_close(&f->journal);
            assert_int_equal(story_open(f, &story), OK);
            assert_int_equal(tear_down(&world), 0);
        }
    }
    void *world = f;
    assert_int_equal(set_up_fake(&world), 0);
}

#define BOTH(test)                                                                                 \
    {"fake: " #test, test, set_up_fake, tear_down, NULL},                                          \
    {                                                                                              \
        "dir: " #test, test, set_up_dir, tear_down, NULL                                           \
    }
#define FAKE_ONLY(test) {"fake: " #test, test, set_up_fake, tear_down, NULL}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(what_was_waited_for_is_there_after_a_reopen),
        BOTH(a_record_that_is_empty_or_too_large_is_refused),
        BOTH(what_is_released_is_gone_and_what_comes_after_stays),
        BOTH(a_full_log_is_busy_and_goes_round_once_it_is_released),
        BOTH(a_release_waits_for_what_it_releases),
        BOTH(another_installations_log_is_refused),
        BOTH(sizes_that_no_log_has_are_refused),
        BOTH(other_sizes_are_taken_over_once_there_is_nothing_to_replay),
        FAKE_ONLY(what_comes_during_a_write_is_the_next_write),
        BOTH(what_was_submitted_is_there_after_a_close),
        FAKE_ONLY(an_end_lies_between_what_came_before_and_after),
        BOTH(threads_share_writes_and_lose_nothing),
        FAKE_ONLY(large_records_of_many_threads_wait_for_each_other),
        BOTH(a_log_goes_round_under_threads_while_it_is_released),
        FAKE_ONLY(room_is_free_once_its_release_is_durable),
        FAKE_ONLY(a_failed_write_poisons_the_log_for_ever),
        FAKE_ONLY(after_any_failure_or_stop_nothing_durable_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
