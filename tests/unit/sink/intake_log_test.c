/* The intake log's records, and what its replay makes of them. */
#include "roll_fixture.h"

#include "sink/intake_group.h"
#include "sink/ledger_recover.h"

/* ---- a journal in memory, as after a start ---- */

enum { KEPT_MAX = 16 };

struct kept {
    str records[KEPT_MAX];
    size_t count;
    bool released;
};

static err kept_replay(void *self, journal_record record, void *context, struct error *error)
{
    const struct kept *kept = self;
    for (size_t i = 0; !kept->released && i < kept->count; i++) {
        TRY(record(context, i, kept->records[i], error));
    }
    return OK;
}

static err kept_release(void *self, u64 position, struct error *error)
{
    struct kept *kept = self;
    (void)error;
    kept->released = position == kept->count;
    return OK;
}

static u64 kept_end(void *self)
{
    return ((struct kept *)self)->count;
}

static struct journal_space kept_space(void *self)
{
    (void)self;
    return (struct journal_space){.used = 0, .total = 16 * MIB};
}

static const struct journal_ops KEPT = {
    .replay = kept_replay, .release = kept_release, .end = kept_end, .space = kept_space};

/* ---- a world: a sink, and a log of one record in front of it ---- */

static const char *const LINES = "{\"x\":1}\n{\"x\":2}";
static const char *const REJECTS = "{\"reason\":\"not_an_object\"}\n";

struct world {
    struct roll_fixture *f;
    struct kept kept;
    struct journal journal;
    struct intake_log *log;
    struct ledger_accept items[2];
    str rejects[2];
    struct intake_log_record record;
};

static const struct warehouse *find(void *context, str name)
{
    struct roll_fixture *f = context;
    return str_equal(name, f->warehouse.name) ? &f->warehouse : NULL;
}

static void keep(struct world *world, const struct intake_log_record *record)
{
    buf out = buf_create(world->f->arena, KIB, MIB);
    intake_log_record_print(&out, record);
    if (record->kind == INTAKE_LOG_ACCEPT) {
        buf_append(&out, record->body);
        for (size_t i = 0; i < record->count; i++) {
            buf_append(&out, record->rejects[i]);
        }
    }
    assert_true(buf_ok(&out));
    world->kept.records[world->kept.count++] = buf_str(&out);
    world->kept.released = false;
}

static void keep_void(struct world *world, bool first, bool second)
{
    bool voided[2] = {first, second};
    struct intake_log_record record = {.kind = INTAKE_LOG_VOID,
                                       .sink_id = world->f->sink_id,
                                       .uid = world->record.uid,
                                       .count = 2,
                                       .voided = voided};
    keep(world, &record);
}

/* Two batches of one object; of the second an element was refused. */
static void describe(struct world *world)
{
    struct roll_fixture *f = world->f;
    str lines = str_from(LINES);
    world->items[0] = describe_batch(f, "a", str_slice(lines, 0, 7));
    world->items[1] = describe_batch(f, "b", str_slice(lines, 8, 15));
    world->items[1].uid = world->items[0].uid;
    world->items[1].object_key = world->items[0].object_key;
    world->items[1].offset = 8;
    world->items[1].refused = 1;
    world->items[1].refused_reasons = STR("{\"not_an_object\":1}");
    world->rejects[0] = STR("");
    world->rejects[1] = str_from(REJECTS);
    world->record = (struct intake_log_record){.kind = INTAKE_LOG_ACCEPT,
                                               .sink_id = f->sink_id,
                                               .uid = world->items[0].uid,
                                               .count = 2,
                                               .warehouse = f->warehouse.name,
                                               .object_key = world->items[0].object_key,
                                               .items = world->items,
                                               .rejects = world->rejects,
                                               .body = lines};
}

static struct world *world_new(void)
{
    struct roll_fixture *f = fixture_open();
    struct world *world = arena_alloc(f->arena, sizeof(*world));
    assert_non_null(world);
    world->f = f;
    world->journal = (struct journal){&KEPT, &world->kept};
    const struct intake_log_options options = {.db = &f->door_db,
                                               .journal = &world->journal,
                                               .seam = &f->seam,
                                               .find = find,
                                               .find_context = f};
    must(f, intake_log_open(f->arena, &options, &world->log, &f->error));
    describe(world);
    keep(world, &world->record);
    return world;
}

static void world_free(struct world *world)
{
    intake_log_close(world->log);
    fixture_close(world->f);
}

static int open_any(void **state)
{
    *state = world_new();
    return 0;
}

static int close_any(void **state)
{
    world_free(*state);
    return 0;
}

static struct intake_log_replayed replay(struct world *world)
{
    struct intake_log_replayed replayed = {0};
    must(world->f, intake_log_replay(world->log, &replayed, &world->f->error));
    assert_true(world->kept.released);
    return replayed;
}

static bool stored(struct world *world, str key, const char *body)
{
    struct store_object object = {0};
    err got = store_get(&world->f->store, world->f->arena, key, &object, NULL);
    return got == OK && str_equal(object.body, str_from(body));
}

static str rejects_key(struct world *world)
{
    return batch_intake_rejects_key(world->f->arena, world->f->sink_id, STR("b"),
                                    &world->record.uid);
}

static bool has_row(struct world *world, const char *batch_id)
{
    struct ledger_batch batch = {0};
    return ledger_find_batch(&world->f->db, world->f->arena, world->f->sink_id, str_from(batch_id),
                             &batch, NULL) == OK;
}

/* ---- records ---- */

static void a_record_reads_back_as_it_was_printed(void **state)
{
    struct world *world = *state;
    struct intake_log_record read = {0};
    must(world->f,
         intake_log_record_parse(world->f->arena, world->kept.records[0], &read, &world->f->error));
    assert_int_equal(read.kind, INTAKE_LOG_ACCEPT);
    assert_int_equal(read.count, 2);
    assert_true(str_equal(read.sink_id, world->f->sink_id));
    assert_true(str_equal(read.object_key, world->record.object_key));
    assert_true(str_equal(read.body, str_from(LINES)));
    assert_true(str_equal(read.rejects[1], str_from(REJECTS)));
    assert_true(str_equal(read.items[1].batch_id, STR("b")));
    assert_int_equal(read.items[1].offset, 8);
    assert_int_equal(read.items[1].bytes, 7);
    assert_int_equal(read.items[1].refused, 1);
    assert_memory_equal(&read.items[1].sha256, &world->items[1].sha256, sizeof(struct sha256));
    keep_void(world, false, true);
    must(world->f,
         intake_log_record_parse(world->f->arena, world->kept.records[1], &read, &world->f->error));
    assert_int_equal(read.kind, INTAKE_LOG_VOID);
    assert_false(read.voided[0]);
    assert_true(read.voided[1]);
}

/* Never past its end, whatever a length says. */
static void a_cut_record_is_none(void **state)
{
    struct world *world = *state;
    str whole = world->kept.records[0];
    for (size_t size = 0; size < whole.size; size++) {
        AUTO_ARENA struct arena *arena = arena_create((size_t)MIB);
        struct intake_log_record read = {0};
        char *exact = malloc(size + 1); /* so that a sanitizer sees a byte too far */
        assert_non_null(exact);
        memcpy(exact, whole.data, size);
        assert_int_equal(intake_log_record_parse(arena, (str){exact, size}, &read, NULL), CORRUPT);
        free(exact);
    }
}

static void a_changed_byte_is_read_without_harm(void **state)
{
    struct world *world = *state;
    str whole = world->kept.records[0];
    for (size_t at = 0; at < whole.size; at++) {
        AUTO_ARENA struct arena *arena = arena_create((size_t)MIB);
        struct intake_log_record read = {0};
        char *changed = malloc(whole.size);
        assert_non_null(changed);
        memcpy(changed, whole.data, whole.size);
        changed[at] = (char)(changed[at] ^ 0x41);
        err parsed = intake_log_record_parse(arena, (str){changed, whole.size}, &read, NULL);
        assert_true(parsed == OK || parsed == CORRUPT || parsed == LIMIT);
        free(changed);
    }
}

/* ---- replay ---- */

static void what_ledger_and_store_lost_comes_back(void **state)
{
    struct world *world = *state;
    struct intake_log_replayed replayed = replay(world);
    assert_int_equal(replayed.batches, 2);
    assert_int_equal(replayed.objects, 2);
    assert_true(has_row(world, "a"));
    assert_int_equal(look_batch(world->f, "b").refused, 1);
    assert_int_equal(look_sink(world->f).batches, 2);
    assert_int_equal(look_sink(world->f).rows_refused, 1);
    assert_true(stored(world, world->record.object_key, LINES));
    assert_true(stored(world, rejects_key(world), REJECTS));
}

static void a_second_replay_changes_nothing(void **state)
{
    struct world *world = *state;
    (void)replay(world);
    world->kept.released = false;
    assert_int_equal(replay(world).objects, 0);
    assert_int_equal(look_sink(world->f).batches, 2);
}

static void a_torn_object_is_put_again(void **state)
{
    struct world *world = *state;
    (void)replay(world);
    must(world->f, store_put(&world->f->store, world->record.object_key, STR("{\"x\""), NULL,
                             &world->f->error));
    world->kept.released = false;
    assert_int_equal(replay(world).objects, 1);
    assert_true(stored(world, world->record.object_key, LINES));
}

static void what_was_taken_back_gets_no_row(void **state)
{
    struct world *world = *state;
    keep_void(world, true, true);
    assert_int_equal(replay(world).objects, 0);
    assert_false(has_row(world, "a"));
    assert_false(stored(world, world->record.object_key, LINES));
}

static void what_was_taken_back_leaves_the_others_of_its_object(void **state)
{
    struct world *world = *state;
    keep_void(world, true, false);
    (void)replay(world);
    assert_false(has_row(world, "a"));
    assert_true(has_row(world, "b"));
    assert_true(stored(world, world->record.object_key, LINES));
}

/* ---- an object of several records ---- */

/* The record of one of its batches. */
static struct intake_log_record part_of(struct world *world, size_t index)
{
    struct ledger_accept *item = &world->items[index];
    struct intake_log_record part = world->record;
    part.count = 1;
    part.items = item;
    part.rejects = &world->rejects[index];
    part.body_at = item->offset;
    part.body = str_slice(world->record.body, (size_t)item->offset,
                          (size_t)(item->offset + item->bytes));
    return part;
}

static void keep_part(struct world *world, size_t index)
{
    struct intake_log_record part = part_of(world, index);
    keep(world, &part);
}

static int open_shared(void **state)
{
    struct world *world = world_new();
    world->kept.count = 0;
    keep_part(world, 1); /* in whatever order they came into the log */
    keep_part(world, 0);
    *state = world;
    return 0;
}

static str batches_of(struct world *world)
{
    struct store_object object = {0};
    must(world->f, store_get(&world->f->store, world->f->arena, world->record.object_key, &object,
                             &world->f->error));
    return store_meta_value(&object.meta, STR("batches"));
}

static void an_object_comes_back_from_all_its_records(void **state)
{
    struct world *world = *state;
    assert_int_equal(replay(world).objects, 2); /* and the rejects file */
    assert_true(stored(world, world->record.object_key, LINES));
    str batches = batches_of(world);
    assert_true(str_starts(batches, STR("a,0,7,1,0,")));
    assert_true(str_find(batches, STR(";b,8,7,1,1,")) >= 0);
    world->kept.released = false;
    assert_int_equal(replay(world).objects, 0);
}

static void a_torn_object_is_put_again_from_all_its_records(void **state)
{
    struct world *world = *state;
    (void)replay(world);
    must(world->f, store_put(&world->f->store, world->record.object_key, STR("{\"x\""), NULL,
                             &world->f->error));
    world->kept.released = false;
    assert_int_equal(replay(world).objects, 1);
    assert_true(stored(world, world->record.object_key, LINES));
    assert_true(batches_of(world).size > 0);
}

/* The others were released: the object is durable, with more than the log can tell. */
static void an_object_of_which_records_were_released_stays_as_it_is(void **state)
{
    struct world *world = *state;
    (void)replay(world);
    for (size_t index = 0; index < 2; index++) {
        world->kept.count = 0;
        keep_part(world, index);
        assert_int_equal(replay(world).objects, 0);
        assert_true(stored(world, world->record.object_key, LINES));
        str batches = batches_of(world);
        assert_true(str_find(batches, STR(";b,8,7,1,1,")) >= 0);
    }
}

/* One that never came into the log: its place holds nothing. */
static void a_place_without_a_record_is_left_empty(void **state)
{
    struct world *world = *state;
    world->kept.count = 0;
    keep_part(world, 1);
    (void)replay(world);
    assert_false(has_row(world, "a"));
    assert_true(stored(world, world->record.object_key, "\n\n\n\n\n\n\n\n{\"x\":2}"));
    assert_true(str_starts(batches_of(world), STR("b,8,7,1,1,")));
}

static void a_record_is_taken_back_without_the_others_of_its_object(void **state)
{
    struct world *world = *state;
    bool voided = true;
    struct intake_log_record taken = part_of(world, 1);
    taken.kind = INTAKE_LOG_VOID;
    taken.voided = &voided;
    keep(world, &taken);
    (void)replay(world);
    assert_true(has_row(world, "a"));
    assert_false(has_row(world, "b"));
    assert_true(stored(world, world->record.object_key, LINES));
}

/* ---- what the ledger says to it ---- */

static void a_sink_that_is_being_deleted_gets_nothing(void **state)
{
    struct world *world = *state;
    must(world->f, ledger_begin_delete(&world->f->db, world->f->sink_id, &world->f->error));
    (void)replay(world);
    assert_false(has_row(world, "a"));
    assert_false(stored(world, world->record.object_key, LINES));
}

static void a_sink_that_is_recovering_keeps_the_object_for_recover(void **state)
{
    struct world *world = *state;
    must(world->f, ledger_begin_recover(&world->f->db, STR(""), &world->f->error));
    (void)replay(world);
    assert_false(has_row(world, "a"));
    assert_true(stored(world, world->record.object_key, LINES));
}

static void an_id_that_another_row_has_keeps_that_row(void **state)
{
    struct world *world = *state;
    struct ledger_accept first = send_batch(world->f, "a", "{\"x\":7}");
    (void)replay(world);
    struct ledger_batch row = look_batch(world->f, "a");
    assert_true(str_equal(id_uid_str(&row.uid), id_uid_str(&first.uid)));
    assert_true(has_row(world, "b"));
    assert_true(stored(world, world->record.object_key, LINES));
}

static void what_began_a_week_of_running_ago_is_no_new_batch(void **state)
{
    struct world *world = *state;
    must(world->f, ledger_add_running(&world->f->db, 7 * TIME_DAY_US, &world->f->error));
    (void)replay(world);
    assert_false(has_row(world, "a"));
    assert_true(stored(world, world->record.object_key, LINES)); /* the orphan rules decide */
}

static void a_warehouse_that_nobody_knows_stops_the_start(void **state)
{
    struct world *world = *state;
    struct intake_log_replayed replayed = {0};
    struct error error = {0};
    world->record.warehouse = STR("elsewhere");
    world->kept.count = 0;
    keep(world, &world->record);
    assert_int_equal(intake_log_replay(world->log, &replayed, &error), CORRUPT);
    assert_non_null(strstr(error.message, "elsewhere"));
    assert_false(world->kept.released);
}

/* ---- each call fails once ---- */

static void *scene_open(void)
{
    return world_new();
}

static void *scene_open_shared(void)
{
    void *world = NULL;
    (void)open_shared(&world);
    return world;
}

static struct doors *scene_doors(void *self)
{
    return &((struct world *)self)->f->doors;
}

static err scene_act(void *self, struct error *error)
{
    struct intake_log_replayed replayed = {0};
    return intake_log_replay(((struct world *)self)->log, &replayed, error);
}

static void scene_settle(void *self, err result)
{
    struct world *world = self;
    assert_int_equal(world->kept.released, result == OK);
    (void)replay(world);
    assert_int_equal(look_sink(world->f).batches, 2);
    assert_true(stored(world, world->record.object_key, LINES));
    assert_true(stored(world, rejects_key(world), REJECTS));
}

static void scene_close(void *self)
{
    world_free(self);
}

static void a_replay_that_stops_anywhere_is_done_again(void **state)
{
    static const enum door_fault faults[] = {DOOR_FAILS, DOOR_LOSES, DOOR_DIES_BEFORE,
                                             DOOR_DIES_AFTER, DOOR_STARVES};
    static const struct door_scene scenes[] = {
        {"replay", scene_open, scene_doors, scene_act, scene_settle, scene_close},
        {"of a shared one", scene_open_shared, scene_doors, scene_act, scene_settle, scene_close},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
        assert_true(door_every(&scenes[0], faults[i]) > 0);
        assert_true(door_every(&scenes[1], faults[i]) > 0);
    }
}

#define SHARED_TEST(name) cmocka_unit_test_setup_teardown(name, open_shared, close_any)
#define TEST(name)        cmocka_unit_test_setup_teardown(name, open_any, close_any)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_record_reads_back_as_it_was_printed),
        TEST(a_cut_record_is_none),
        TEST(a_changed_byte_is_read_without_harm),
        TEST(what_ledger_and_store_lost_comes_back),
        TEST(a_second_replay_changes_nothing),
        TEST(a_torn_object_is_put_again),
        TEST(what_was_taken_back_gets_no_row),
        TEST(what_was_taken_back_leaves_the_others_of_its_object),
        SHARED_TEST(an_object_comes_back_from_all_its_records),
        SHARED_TEST(a_torn_object_is_put_again_from_all_its_records),
        SHARED_TEST(an_object_of_which_records_were_released_stays_as_it_is),
        SHARED_TEST(a_place_without_a_record_is_left_empty),
        SHARED_TEST(a_record_is_taken_back_without_the_others_of_its_object),
        TEST(a_sink_that_is_being_deleted_gets_nothing),
        TEST(a_sink_that_is_recovering_keeps_the_object_for_recover),
        TEST(an_id_that_another_row_has_keeps_that_row),
        TEST(what_began_a_week_of_running_ago_is_no_new_batch),
        TEST(a_warehouse_that_nobody_knows_stops_the_start),
        cmocka_unit_test(a_replay_that_stops_anywhere_is_done_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
