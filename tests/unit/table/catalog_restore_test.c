#include "catalog_fixture.h"

#include "table/catalog_restore.h"

#include <pthread.h>
#include <sched.h>

/* Pointers of an older copy of the ledger, moved forward by the hints in the store. */

struct pointer {
    const char *location; /* NULL: the table has none */
};

static err set_pointer(struct db_tx *tx, void *context, struct error *error)
{
    const struct pointer *pointer = context;
    if (pointer->location == NULL) {
        return db_exec(tx, "DELETE FROM catalog_table", NULL, 0, NULL, error);
    }
    return db_run(tx, error, "UPDATE catalog_table SET metadata_location = ?1",
                  DB_T(str_from(pointer->location)));
}

/* The ledger is as it was. */
static void roll_back(struct fixture *f, const char *location)
{
    struct pointer pointer = {location};
    must(f, db_transact(&f->db, set_pointer, &pointer, &f->error));
}

static void change(struct fixture *f, const char *name, int times)
{
    char text[256];
    for (int i = 0; i < times; i++) {
        snprintf(
            text, sizeof(text),
            "{'requirements':[],'updates':[{'action':'set-properties','updates':{'turn':'%d'}}]}",
            i);
        for (char *c = text; *c != '\0'; c++) {
            *c = *c == '\'' ? '"' : *c;
        }
        must(f, commit(f, name, text));
    }
}

static str turn(struct fixture *f, const char *name)
{
    AUTO_TABLE struct table table = load(f, name);
    return str_copy(f->arena, metadata_property(table.metadata, "turn"));
}

static struct catalog_restored restore(struct fixture *f)
{
    struct catalog_restored restored = {0};
    must(f, catalog_restore_pointers(f->local, &restored, &f->error));
    return restored;
}

static void an_old_pointer_moves_to_what_the_hint_names(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table first = create(f, "events");
    change(f, "events", 3);
    assert_int_equal(restore(f).moved, 0);
    roll_back(f, first.metadata_location.data);
    assert_true(turn(f, "events").size == 0);
    struct catalog_restored restored = restore(f);
    assert_int_equal(restored.tables, 1);
    assert_int_equal(restored.moved, 1);
    assert_str(turn(f, "events"), "2");
    assert_int_equal(restore(f).moved, 0);
}

static void it_moves_also_when_the_old_file_was_trimmed(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table first = create(f, "events");
    change(f, "events", 2);
    assert_int_equal(remove(path_of(f, first.metadata_location)), 0);
    roll_back(f, first.metadata_location.data);
    assert_int_equal(restore(f).moved, 1);
    assert_str(turn(f, "events"), "1");
}

static void a_hint_that_is_behind_is_written_again(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table first = create(f, "events");
    const char *hint = table_path(f, &first, "metadata/version-hint.text");
    str old = read_file(f, hint);
    change(f, "events", 1);
    str right = read_file(f, hint);
    FILE *file = fopen(hint, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(old.data, 1, old.size, file), old.size);
    fclose(file);
    struct catalog_restored restored = restore(f);
    assert_int_equal(restored.moved, 0);
    assert_int_equal(restored.hints, 1);
    assert_true(str_equal(read_file(f, hint), right));
    assert_int_equal(remove(hint), 0);
    assert_int_equal(restore(f).hints, 1);
}

/* A store on which hints cannot be written, or wait. */
static bool hints_fail;
static atomic_bool hints_wait;
static atomic_bool hint_waits;
static struct store sound_store;

static err full_put(void *self, str key, const str *pieces, size_t count,
                    const struct store_meta *meta, struct error *error)
{
    (void)self;
    if (hints_fail && str_ends(key, STR("version-hint.text"))) {
        return error_set(error, IO, ERROR_DISK_LOW, "no space left on device");
    }
    while (atomic_load(&hints_wait) && str_ends(key, STR("version-hint.text"))) {
        atomic_store(&hint_waits, true);
        (void)sched_yield();
    }
    return store_put_pieces(&sound_store, key, pieces, count, meta, error);
}

static err full_get(void *self, struct arena *arena, str key, struct store_object *out,
                    struct error *error)
{
    (void)self;
    return store_get(&sound_store, arena, key, out, error);
}

static err full_remove(void *self, str key, struct error *error)
{
    (void)self;
    return store_remove(&sound_store, key, error);
}

static const struct store_ops FULL = {.put = full_put, .get = full_get, .remove = full_remove};

/* A commit whose hint fails is a commit; the hint follows without a start, once there is room. */
static void a_hint_that_could_not_be_written_is_written_later(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table first = create(f, "events");
    const char *hint = table_path(f, &first, "metadata/version-hint.text");
    str old = read_file(f, hint);
    sound_store = f->place.store;
    f->place.store = (struct store){.ops = &FULL, .self = f, .puts_in_flight_max = 1};
    hints_fail = true;
    change(f, "events", 2);
    assert_str(turn(f, "events"), "1");
    assert_true(str_equal(read_file(f, hint), old));
    assert_int_equal(catalog_restore_hints(f->local, NULL), IO);
    assert_int_equal(catalog_restore_hints(f->local, NULL), IO);
    hints_fail = false;
    must(f, catalog_restore_hints(f->local, &f->error));
    f->place.store = sound_store;
    assert_false(str_equal(read_file(f, hint), old));
    struct catalog_restored restored = restore(f);
    assert_int_equal(restored.hints + restored.moved, 0);
}

/* Who asks whether all hints are written, and what it then sees. */
struct asker {
    struct fixture *f;
    const char *hint;
    char seen[64];
    err result;
    atomic_bool done;
};

static void *ask(void *context)
{
    struct asker *asker = context;
    asker->result = catalog_restore_hints(asker->f->local, NULL);
    FILE *file = fopen(asker->hint, "rb");
    assert_non_null(file);
    assert_true(fread(asker->seen, 1, sizeof(asker->seen) - 1, file) > 0);
    (void)fclose(file);
    atomic_store(&asker->done, true);
    return NULL;
}

/* The sweep deletes objects on the strength of it. */
static void a_hint_that_another_is_writing_is_not_taken_for_written(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table first = create(f, "events");
    const char *hint = table_path(f, &first, "metadata/version-hint.text");
    struct asker writer = {.f = f, .hint = hint};
    struct asker other = {.f = f, .hint = hint};
    pthread_t threads[2];
    sound_store = f->place.store;
    f->place.store = (struct store){.ops = &FULL, .self = f, .puts_in_flight_max = 1};
    str old = read_file(f, hint);
    hints_fail = true;
    change(f, "events", 1);
    hints_fail = false;
    atomic_store(&hints_wait, true);
    assert_int_equal(pthread_create(&threads[0], NULL, ask, &writer), 0);
    while (!atomic_load(&hint_waits)) {
        (void)sched_yield();
    }
    int reads = atomic_load(&f->reads); /* the writer's are over */
    assert_int_equal(pthread_create(&threads[1], NULL, ask, &other), 0);
    while (!atomic_load(&other.done) && atomic_load(&f->reads) == reads) {
        (void)sched_yield();
    }
    atomic_store(&hints_wait, false);
    assert_int_equal(pthread_join(threads[0], NULL) | pthread_join(threads[1], NULL), 0);
    f->place.store = sound_store;
    assert_int_equal(writer.result, OK);
    assert_int_equal(other.result, OK);
    assert_false(str_equal(str_from(other.seen), old));
}

static void a_hint_of_nonsense_moves_nothing_and_stops_nobody(void **state)
{
    struct fixture *f = *state;
    static const char *const texts[] = {"../../../etc/passwd", "99999-none", "", "\n", "9999"};
    AUTO_TABLE struct table first = create(f, "events");
    const char *hint = table_path(f, &first, "metadata/version-hint.text");
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        FILE *file = fopen(hint, "wb");
        assert_non_null(file);
        fputs(texts[i], file);
        fclose(file);
        assert_int_equal(restore(f).moved, 0);
        AUTO_TABLE struct table now = load(f, "events");
        assert_true(str_equal(now.metadata_location, first.metadata_location));
    }
}

static void a_lost_answer_is_made_good_by_the_next_start(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table first = create(f, "events");
    change(f, "events", 2);
    static const enum fault faults[] = {FAULT_REFUSED, FAULT_LOST, FAULT_DONE_UNTOLD};
    for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
        struct catalog_restored restored = {0};
        roll_back(f, first.metadata_location.data);
        atomic_store(&f->fault, faults[i]);
        assert_int_not_equal(catalog_restore_pointers(f->local, &restored, NULL), OK);
        must(f, catalog_restore_pointers(f->local, &restored, &f->error));
        assert_str(turn(f, "events"), "1");
    }
}

static void a_table_without_a_pointer_is_found_by_its_uuid(void **state)
{
    struct fixture *f = *state;
    AUTO_TABLE struct table first = create(f, "events");
    str uuid = metadata_uuid(first.metadata);
    change(f, "events", 2);
    roll_back(f, NULL);
    const struct table_name name = {STR("else"), STR("events")};
    must(f, catalog_restore_table(f->local, f->tables_uri, name,
                                  STR("00000000-0000-0000-0000-000000000000"), &f->error));
    struct table table = {0};
    assert_int_equal(catalog_load(&f->catalog, f->arena, name, &table, NULL), NOT_FOUND);
    must(f, catalog_restore_table(f->local, f->tables_uri, name, uuid, &f->error));
    must(f, catalog_load(&f->catalog, f->arena, name, &table, &f->error));
    assert_str(metadata_property(table.metadata, "turn"), "1");
    table_close(&table);
    /* Again: it has one. */
    must(f, catalog_restore_table(f->local, f->tables_uri, demo("other"), uuid, &f->error));
    assert_int_equal(catalog_load(&f->catalog, f->arena, demo("other"), &table, NULL), NOT_FOUND);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_old_pointer_moves_to_what_the_hint_names),
        TEST(it_moves_also_when_the_old_file_was_trimmed),
        TEST(a_hint_that_is_behind_is_written_again),
        TEST(a_hint_that_could_not_be_written_is_written_later),
        TEST(a_hint_that_another_is_writing_is_not_taken_for_written),
        TEST(a_hint_of_nonsense_moves_nothing_and_stops_nobody),
        TEST(a_lost_answer_is_made_good_by_the_next_start),
        TEST(a_table_without_a_pointer_is_found_by_its_uuid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
