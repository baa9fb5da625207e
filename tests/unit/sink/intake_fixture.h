/* intake_fixture: accepting over a real ledger in memory and a store whose PUTs can be held back
 * and made to fail; sends, and what is asked of their answers. One per test program. */
#ifndef LHBOX_TESTS_INTAKE_FIXTURE_H
#define LHBOX_TESTS_INTAKE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/queue.h"
#include "sink/batch.h"
#include "sink/intake.h"

#include "edges.h"
#include "intake_fakes.h"

#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define WAIT_US ((i64)20 * TIME_SECOND_US)
#define SINK    STR("snk_0123456789ab")

/* ---- the fixture ---- */

struct fixture {
    struct arena *arena;
    struct seam seam;
    char directory[64];
    struct lossy lossy;
    struct db db;
    struct warehouses *warehouses;
    struct gate gate;
    struct intake *intake;
    str key;
    str other_key;
    atomic_int told; /* calls of `accepted` */
    pthread_mutex_t lost_lock;
    pthread_cond_t lost_changed;
    int losses; /* calls of `lease_lost` */
    bool lost_held;
};

static struct fixture f;

static inline void accepted(void *context, str sink_id)
{
    assert_true(str_equal(sink_id, SINK));
    atomic_fetch_add((atomic_int *)context, 1);
}

static inline void lease_lost(void *context)
{
    (void)context;
    (void)pthread_mutex_lock(&f.lost_lock);
    f.losses++;
    (void)pthread_cond_broadcast(&f.lost_changed);
    while (f.lost_held) {
        (void)pthread_cond_wait(&f.lost_changed, &f.lost_lock);
    }
    (void)pthread_mutex_unlock(&f.lost_lock);
}

static inline void hold_losses(bool held)
{
    (void)pthread_mutex_lock(&f.lost_lock);
    f.lost_held = held;
    (void)pthread_cond_broadcast(&f.lost_changed);
    (void)pthread_mutex_unlock(&f.lost_lock);
}

static inline void await_loss(void)
{
    (void)pthread_mutex_lock(&f.lost_lock);
    while (f.losses == 0) {
        (void)pthread_cond_wait(&f.lost_changed, &f.lost_lock);
    }
    (void)pthread_mutex_unlock(&f.lost_lock);
}

static inline void make_sink(str id, const char *name, const char *idempotency, str *out_key)
{
    struct id_key key;
    *out_key = id_key_make(f.arena, &f.seam, ID_KEY_SEND);
    assert_true(id_key_parse(*out_key, &key));
    struct ledger_sink sink = {.id = id,
                               .project = STR("prj_0123456789ab"),
                               .warehouse = STR("garden"),
                               .namespace_name = STR("demo"),
                               .table_name = str_from(name),
                               .table_uuid = STR("9c12d441-03fe-4693-9a96-a0705ddf69c1"),
                               .name = str_from(name),
                               .roll_seconds = 300,
                               .roll_bytes = 64 * MIB,
                               .unknown_fields = STR("reject"),
                               .idempotency = str_from(idempotency),
                               .send_key_id = key.public_id,
                               .send_key_sha256 = crypto_sha256(*out_key),
                               .claim_id = STR("0123456789abcdefghjkmnpqrs")};
    assert_int_equal(ledger_insert_sink(&f.db, &sink, NULL), OK);
}

static inline void open_stores(void)
{
    struct warehouse_options options = {.data_directory = str_from(f.directory)};
    const struct warehouse *warehouse = NULL;
    assert_int_equal(warehouses_open(f.arena, &f.db, &f.seam, &options, &f.warehouses, NULL), OK);
    assert_int_equal(warehouse_create(f.warehouses, STR("prj_0123456789ab"), STR("garden"), NULL,
                                      NULL, &warehouse, NULL),
                     OK);
    f.gate.inner = warehouse->files;
    (void)pthread_mutex_init(&f.gate.lock, NULL);
    (void)pthread_cond_init(&f.gate.changed, NULL);
    struct warehouse *writable = (struct warehouse *)(uintptr_t)warehouse;
    writable->files = (struct store){.ops = &gate_ops, .self = &f.gate, .puts_in_flight_max = 1};
}

/* ---- sends that a worker has done with: answered at once, or in a line that is driven ---- */

static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static int turn_count;

static inline void watch(const struct machine *machine, u32 from, u32 to)
{
    edges_note(machine, from, to);
    if (strcmp(machine->states[from], "take") != 0 && strcmp(machine->states[to], "done") == 0) {
        (void)pthread_mutex_lock(&turn_lock);
        turn_count++;
        (void)pthread_cond_broadcast(&turn_changed);
        (void)pthread_mutex_unlock(&turn_lock);
    }
}

static inline void turns_await(int count)
{
    (void)pthread_mutex_lock(&turn_lock);
    while (turn_count < count) {
        (void)pthread_cond_wait(&turn_changed, &turn_lock);
    }
    (void)pthread_mutex_unlock(&turn_lock);
}

/* 0: each send is looked up in the ledger. */
static i64 index_bytes_max = (i64)MIB;

static inline struct intake_options fixture_options(i64 bucket_bytes_max)
{
    struct intake_options options = intake_options_default();
    options.db = &f.db;
    options.seam = &f.seam;
    options.warehouses = f.warehouses;
    options.bucket_bytes_max = bucket_bytes_max;
    options.index_bytes_max = index_bytes_max;
    options.accepted = accepted;
    options.accepted_context = &f.told;
    options.lease_lost = lease_lost;
    return options;
}

static inline void open_intake(i64 bucket_bytes_max)
{
    struct intake_options options = fixture_options(bucket_bytes_max);
    struct error error = {0};
    if (intake_open(f.arena, &options, &f.intake, &error) != OK) {
        fail_msg("%s", error.message);
    }
}

static inline int set_up(void **state)
{
    (void)state;
    f = (struct fixture){.arena = arena_create((size_t)256 * MIB), .seam = *seam_system()};
    f.seam.monotonic_us = moved_monotonic_us;
    f.seam.now = moved_now;
    atomic_store(&clock_ahead_us, 0);
    (void)snprintf(f.directory, sizeof(f.directory), "/tmp/lhbox-intake-XXXXXX");
    assert_non_null(mkdtemp(f.directory));
    assert_int_equal(db_open_sqlite(f.arena, STR(":memory:"), &f.seam, &f.lossy.inner, NULL), OK);
    f.db = (struct db){.ops = &lossy_ops, .self = &f.lossy};
    assert_int_equal(ledger_open(&f.db, &f.seam, NULL), OK);
    open_stores();
    make_sink(SINK, "events", "required", &f.key);
    make_sink(STR("snk_00000000000f"), "loose", "optional", &f.other_key);
    (void)pthread_mutex_init(&f.lost_lock, NULL);
    (void)pthread_cond_init(&f.lost_changed, NULL);
    turn_count = 0;
    open_intake(0);
    return 0;
}

static inline int remove_entry(const char *path, const struct stat *status, int flag,
                               struct FTW *walk)
{
    (void)status;
    (void)flag;
    (void)walk;
    return remove(path);
}

static inline int tear_down(void **state)
{
    (void)state;
    gate_set(&f.gate, false);
    hold_losses(false);
    intake_close(f.intake);
    warehouses_close(f.warehouses);
    db_close(&f.db);
    arena_destroy(f.arena);
    (void)nftw(f.directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return 0;
}

/* ---- sending ---- */

/* What a send was answered. */
struct answer {
    struct queue *done;
    struct arena *arena;
    int status; /* 0: refused */
    str body;
    enum error_code code;
    enum batch_state batch_state;
    bool is_batch;
};

static inline void answered(void *context, const struct intake_answer *from)
{
    struct answer *answer = context;
    answer->status = from->status;
    answer->body = str_copy(answer->arena, from->body);
    if (from->error != NULL) {
        answer->code = from->error->code;
    }
    if (from->batch != NULL) {
        answer->is_batch = true;
        answer->batch_state = from->batch->state;
    }
    assert_true(queue_push(answer->done, answer));
}

/* Whom a send tells; calls answered in the end. */
static intake_answered answered_by = answered;

static inline str bearer(str key)
{
    return str_format(f.arena, "Bearer %.*s", STR_ARG(key));
}

/* Begins and completes a send; the answer comes later. */
static inline void start(struct answer *answer, str sink_id, str key, struct intake_request request,
                         str body)
{
    struct intake_sink *sink = NULL;
    struct intake_send *send = NULL;
    struct error error = {0};
    *answer = (struct answer){.done = queue_create(1), .arena = arena_create((size_t)4 * MIB)};
    request.content_length = (i64)body.size;
    request.answered = answered_by;
    request.context = answer;
    assert_int_equal(
        intake_authenticate(f.intake, sink_id, bearer(key), NULL, STR("1.1.1.1"), &sink, &error),
        OK);
    if (intake_begin(f.intake, sink, &request, &send, &error) != OK) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(intake_send_body(send, body, &error), OK);
    intake_send_complete(send);
}

static inline void start_id(struct answer *answer, const char *id, const char *body)
{
    start(answer, SINK, f.key, (struct intake_request){.batch_id = str_from(id)}, str_from(body));
}

static inline void finish(struct answer *answer)
{
    assert_ptr_equal(queue_pop(answer->done, WAIT_US), answer);
    queue_destroy(answer->done);
}

static inline void forget(struct answer *answer)
{
    arena_destroy(answer->arena);
}

static inline void assert_has(const struct answer *answer, const char *part)
{
    if (str_find(answer->body, str_from(part)) < 0) {
        fail_msg("%s is not in %.*s", part, STR_ARG(answer->body));
    }
}

static inline void assert_refused(const char *id, const char *body, enum error_code code)
{
    struct answer answer;
    start_id(&answer, id, body);
    finish(&answer);
    assert_int_equal(answer.status, 0);
    assert_int_equal(answer.code, code);
    forget(&answer);
}

static inline void assert_accepted(const char *id, const char *body)
{
    struct answer answer;
    start_id(&answer, id, body);
    finish(&answer);
    assert_int_equal(answer.status, 202);
    assert_true(str_find(answer.body, STR("duplicate")) < 0);
    forget(&answer);
}

static inline size_t count_files(const char *prefix)
{
    struct store_list list = {0};
    str whole = str_format(f.arena, "_sink/%.*s/%s", STR_ARG(SINK), prefix);
    assert_int_equal(store_list(&f.gate.inner, f.arena, whole, STR(""), 1000, &list, NULL), OK);
    return list.count;
}

static inline struct ledger_batch row_of(const char *id)
{
    struct ledger_batch batch = {0};
    assert_int_equal(ledger_find_batch(&f.db, f.arena, SINK, str_from(id), &batch, NULL), OK);
    return batch;
}

static inline void assert_no_row(const char *id)
{
    struct ledger_batch batch = {0};
    assert_int_equal(ledger_find_batch(&f.db, f.arena, SINK, str_from(id), &batch, NULL),
                     NOT_FOUND);
}

/* The bytes that the row points at are there, and are what the row says. */
static inline void assert_verifies(const struct ledger_batch *batch, const char *stored)
{
    struct store_object object = {0};
    assert_int_equal(store_get(&f.gate.inner, f.arena, batch->object_key, &object, NULL), OK);
    str segment = str_slice(object.body, (size_t)batch->offset,
                            (size_t)(batch->offset + batch->bytes));
    assert_true(str_equal(segment, str_from(stored)));
    struct sha256 hash = crypto_sha256(segment);
    assert_memory_equal(hash.bytes, batch->sha256.bytes, sizeof(hash.bytes));
}

static inline void assert_not_begun(struct intake_request request, err wanted, enum error_code code)
{
    struct intake_sink *sink = NULL;
    struct intake_send *send = NULL;
    struct error error = {0};
    request.answered = answered;
    assert_int_equal(
        intake_authenticate(f.intake, SINK, bearer(f.key), NULL, STR("1.1.1.1"), &sink, NULL), OK);
    assert_int_equal(intake_begin(f.intake, sink, &request, &send, &error), wanted);
    assert_int_equal(error.code, code);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
