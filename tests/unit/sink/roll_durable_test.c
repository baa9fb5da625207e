#include "roll_fixture.h"

/* What a roll has made durable before what, and how often it waits for that. */

enum { HELD_MAX = 8 };

/* A ledger that knows whether its last commits are durable, and stores with groups. */
struct watch {
    struct roll_fixture *f;
    i64 durable; /* transactions that were to be */
    bool later;  /* something is committed and not durable */
    i64 rejects; /* puts of rejects files */
    i64 removed;
    str keys[HELD_MAX]; /* what waits in the group */
    str bodies[HELD_MAX];
    struct store_meta metas[HELD_MAX];
};

/* ---- the ledger ---- */

static err watch_transact(void *self, db_body body, void *context, struct error *error)
{
    struct watch *watch = self;
    TRY(db_transact(&watch->f->db, body, context, error));
    watch->durable++;
    watch->later = false;
    return OK;
}

static err watch_transact_later(void *self, db_body body, void *context, struct error *error)
{
    struct watch *watch = self;
    TRY(db_transact(&watch->f->db, body, context, error));
    watch->later = true;
    return OK;
}

static err watch_read(void *self, db_body body, void *context, struct error *error)
{
    struct watch *watch = self;
    return db_read(&watch->f->db, body, context, error);
}

static const struct db_ops WATCH_DB = {
    .transact = watch_transact, .transact_later = watch_transact_later, .read = watch_read};

/* ---- the stores ---- */

static void watch_rejects(struct watch *watch, str key)
{
    if (str_find(key, STR("/rejects/")) >= 0) {
        watch->rejects++;
        assert_false(watch->later); /* I15: a try that may leave rejects is not forgotten */
    }
}

static err watch_put(void *self, str key, const str *pieces, size_t count,
                     const struct store_meta *meta, struct error *error)
{
    struct watch *watch = self;
    watch_rejects(watch, key);
    return store_put_pieces(&watch->f->store, key, pieces, count, meta, error);
}

static err group_end(struct store_group *group, struct error *error)
{
    struct watch *watch = group->held;
    size_t count = group->count;
    group->count = 0;
    for (size_t i = 0; i < count; i++) {
        TRY(store_put(&watch->f->store, watch->keys[i], watch->bodies[i], &watch->metas[i], error));
    }
    return OK;
}

static void group_drop(struct store_group *group)
{
    group->count = 0;
}

static const struct store_group_ops GROUP = {.end = group_end, .drop = group_drop};

static err watch_group_put(void *self, struct store_group *group, str key, const str *pieces,
                           size_t count, const struct store_meta *meta, struct error *error)
{
    struct watch *watch = self;
    (void)error;
    assert_true(group->count < HELD_MAX);
    watch_rejects(watch, key);
    group->held = watch;
    watch->keys[group->count] = str_copy(watch->f->arena, key);
    buf body = buf_create(watch->f->arena, KIB, MIB);
    for (size_t i = 0; i < count; i++) {
        buf_append(&body, pieces[i]);
    }
    struct store_meta *kept = &watch->metas[group->count];
    *kept = meta != NULL ? *meta : (struct store_meta){0};
    for (size_t i = 0; i < kept->count; i++) {
        kept->entries[i].value = str_copy(watch->f->arena, kept->entries[i].value);
    }
    watch->bodies[group->count++] = buf_str(&body);
    return OK;
}

static err watch_get(void *self, struct arena *arena, str key, struct store_object *out,
                     struct error *error)
{
    const struct watch *watch = self;
    return store_get(&watch->f->store, arena, key, out, error);
}

static err watch_head(void *self, struct arena *arena, str key, struct store_object *out,
                      struct error *error)
{
    const struct watch *watch = self;
    return store_head(&watch->f->store, arena, key, out, error);
}

static err watch_remove(void *self, str key, struct error *error)
{
    struct watch *watch = self;
    if (str_find(key, STR("/rejects/")) < 0) {
        watch->removed++;
        assert_false(watch->later); /* step 4: what doomed the object is durable */
    }
    return store_remove(&watch->f->store, key, error);
}

static const struct store_ops WATCH_STORE = {.put = watch_put,
                                             .group = &GROUP,
                                             .group_put = watch_group_put,
                                             .get = watch_get,
                                             .head = watch_head,
                                             .remove = watch_remove};

/* ---- a fixture that is watched ---- */

static struct watch *watch_of(struct roll_fixture *f)
{
    return f->env.db->self;
}

static int open_watched(void **state)
{
    struct roll_fixture *f = fixture_open();
    struct watch *watch = arena_alloc(f->arena, sizeof(*watch));
    watch->f = f;
    f->door_db = (struct db){&WATCH_DB, watch};
    const struct store store = {.ops = &WATCH_STORE, .self = watch, .puts_in_flight_max = 1};
    f->warehouse.files = store;
    f->door_place.store = store;
    *state = f;
    return 0;
}

static int close_watched(void **state)
{
    fixture_close(*state);
    return 0;
}

static void mark_is_durable(struct roll_fixture *f)
{
    assert_false(watch_of(f)->later);
}

static void a_catalog_apart_is_sent_nothing_before_the_mark_is_durable(void **state)
{
    struct roll_fixture *f = *state;
    f->before_commit = mark_is_durable;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    roll_out(f);
    assert_int_equal(f->commits, 3); /* with the claim */
    assert_int_equal(table_rows(f), 2);
}

static void a_roll_into_the_embedded_catalog_waits_for_the_ledger_once(void **state)
{
    struct roll_fixture *f = *state;
    const struct catalog_local_options options = {.db = &f->door_db,
                                                  .seam = &f->seam,
                                                  .warehouse = STR("garden"),
                                                  .tables_uri = f->place.prefix,
                                                  .locations = &f->sound_places};
    struct catalog catalog = {0};
    must(f, catalog_local_open(f->arena, &options, &catalog, &f->error));
    f->warehouse.catalog = catalog;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    send_batch(f, "b", "{\"x\":2}");
    i64 durable = watch_of(f)->durable;
    assert_int_equal(roll_tick(f), ROLL_ENDED);
    assert_int_equal(watch_of(f)->durable - durable, 1); /* the pointer's swap */
    assert_int_equal(table_rows(f), 2);
    catalog_local_close(&catalog);
}

static void rejects_are_there(struct roll_fixture *f)
{
    struct store_list list = {0};
    str prefix = str_format(f->arena, "_sink/%.*s/rejects/", STR_ARG(f->sink_id));
    must(f, store_list(&f->store, f->arena, prefix, STR(""), 10, &list, &f->error));
    assert_int_equal(list.count, watch_of(f)->rejects);
}

static void rejects_are_written_by_a_try_that_is_not_forgotten(void **state)
{
    struct roll_fixture *f = *state;
    f->before_commit = rejects_are_there;
    send_batch(f, "a", "{\"x\":1}\n{\"x\":\"no\"}");
    send_batch(f, "b", "{\"x\":\"no\"}\n{\"x\":2}");
    roll_out(f);
    assert_int_equal(watch_of(f)->rejects, 2);
    assert_int_equal(table_rows(f), 2);
}

static void objects_go_when_what_doomed_them_is_durable(void **state)
{
    struct roll_fixture *f = *state;
    i64 deleted = 0;
    send_batch(f, "a", "{\"x\":1}");
    roll_out(f);
    assert_true(watch_of(f)->later);
    must(f, sweep_objects(&f->env, &deleted, &f->error));
    assert_int_equal(deleted, 1);
    assert_int_equal(watch_of(f)->removed, 1);
}

/* The plan's own object waits in the group meanwhile: the store is asked for it all the same. */
static void a_lost_object_is_told_from_a_store_that_fails(void **state)
{
    struct roll_fixture *f = *state;
    send_batch(f, "k1", "{\"x\":1}");
    struct ledger_accept lost = send_batch(f, "k2", "{\"x\":2}");
    must(f, store_remove(&f->store, lost.object_key, &f->error));
    roll_out(f);
    assert_true(look_batch(f, "k2").held);
    assert_true(str_equal(look_batch(f, "k2").held_reason, STR("object_missing")));
    assert_int_equal(table_rows(f), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_watched, close_watched)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_catalog_apart_is_sent_nothing_before_the_mark_is_durable),
        TEST(a_roll_into_the_embedded_catalog_waits_for_the_ledger_once),
        TEST(rejects_are_written_by_a_try_that_is_not_forgotten),
        TEST(objects_go_when_what_doomed_them_is_durable),
        TEST(a_lost_object_is_told_from_a_store_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
