/* roll_fixture: a whole installation in memory for the tests of the protocol: ledger, store,
 * embedded catalog, a clock that only waiting moves, and a door in front of every seam call that a
 * test can make fail.
 *
 * The roll goes through the doors; the test looks at what lies behind them. */
#ifndef LHBOX_TESTS_ROLL_FIXTURE_H
#define LHBOX_TESTS_ROLL_FIXTURE_H

#include "doors.h"

#include "sink/batch.h"
#include "sink/plan.h"
#include "sink/recover.h"
#include "sink/roll.h"
#include "sink/sweep.h"
#include "table/catalog_local.h"
#include "table/commit.h"
#include "table/manifest.h"

struct roll_fixture {
    struct arena *arena;
    instant now;
    u64 lots;
    struct seam seam;
    struct db db;       /* behind the door */
    struct store store; /* behind the door: files and tables */
    struct location place;
    struct location_set sound_places;
    struct store hinting;   /* the tables' store, while hints_fail */
    struct catalog catalog; /* behind the door */
    /* the doors */
    struct doors doors;
    struct door_db guarded_db;
    struct door_store guarded_files;
    struct door_store guarded_tables;
    struct location door_place;
    struct db door_db;
    struct warehouse warehouse;
    struct roll_env env;
    void (*meddle)(struct roll_fixture *fixture);
    /* asked before each commit passes the door; may change the table under the roll */
    void (*before_commit)(struct roll_fixture *fixture);
    i64 commits;
    bool keeps_requests; /* the next commit is not sent, but kept, and answered UNKNOWN */
    json_t *kept;
    str installation;
    str sink_id;
    struct error error;
};

/* ---- the doors ---- */

/* Files are 6 days old, those named old- 8 days. */
static inline void door_listed(void *context, struct store_list *list)
{
    const struct roll_fixture *f = context;
    for (size_t i = 0; i < list->count; i++) {
        struct store_object *object = &list->objects[i];
        bool old = str_find(object->key, STR("/old-")) >= 0;
        object->modified_at = f->now - (old ? 8 : 6) * TIME_DAY_US;
    }
}

static inline err door_load(void *self, struct arena *arena, struct table_name name,
                            struct table *out_table, struct error *error)
{
    struct roll_fixture *f = self;
    if (door_stops_read(&f->doors)) {
        return door_stopped(error);
    }
    return catalog_load(&f->catalog, arena, name, out_table, error);
}

static inline err door_commit(void *self, struct arena *arena, struct table_name name,
                              const json_t *request, struct table *out_after, struct error *error)
{
    struct roll_fixture *f = self;
    if (f->before_commit != NULL && !f->doors.dead) {
        f->before_commit(f);
    }
    f->commits++;
    if (f->keeps_requests) {
        f->keeps_requests = false;
        f->kept = json_deep_copy(request);
        return error_set(error, UNKNOWN, ERROR_UNAVAILABLE, "under way for long");
    }
    enum door_way way = door_way(&f->doors);
    if (way == DOOR_STOP) {
        return door_stopped(error);
    }
    struct table after = {0};
    err result = catalog_commit(&f->catalog, arena, name, request, &after, error);
    if (result != OK) {
        return result;
    }
    if (way == DOOR_PASS) {
        *out_after = after;
        return OK;
    }
    table_close(&after);
    return way == DOOR_PASS_409
               ? error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT, "a lie of the test")
               : door_untold(way, OK, error);
}

static inline err door_find(void *self, struct arena *arena, str uuid, struct table_name *out_name,
                            struct error *error)
{
    struct roll_fixture *f = self;
    if (door_stops_read(&f->doors)) {
        return door_stopped(error);
    }
    return catalog_find_by_uuid(&f->catalog, arena, uuid, out_name, error);
}

static const struct catalog_ops DOOR_CATALOG = {
    .load = door_load, .commit = door_commit, .find_by_uuid = door_find};

/* The next `at`-th call meets the fault. */
static inline void door_arm(struct roll_fixture *f, enum door_fault fault, i64 at)
{
    doors_arm(&f->doors, fault, at);
}

static inline void door_heal(struct roll_fixture *f)
{
    doors_heal(&f->doors);
    f->before_commit = NULL;
}

static inline void door_meddles(void *context)
{
    struct roll_fixture *f = context;
    f->meddle(f);
}

/* Somebody else does something before the `at`-th call from now. */
static inline void door_meddle(struct roll_fixture *f, void (*meddle)(struct roll_fixture *),
                               i64 at)
{
    door_arm(f, DOOR_SOUND, 0);
    f->meddle = meddle;
    f->doors.meddle = door_meddles;
    f->doors.meddle_context = f;
    f->doors.meddle_at = at;
}

/* The process dies with its commit: before it is sent, or after it has landed. */
static inline void die_before_the_commit(struct roll_fixture *f)
{
    door_arm(f, DOOR_DIES_BEFORE, 1);
}

static inline void die_after_the_commit(struct roll_fixture *f)
{
    door_arm(f, DOOR_DIES_AFTER, 1);
}

/* ---- the clock ---- */

static inline instant clock_now(void *self)
{
    const struct roll_fixture *f = self;
    return f->now;
}

static inline void clock_random(void *self, void *out_bytes, size_t size)
{
    struct roll_fixture *f = self;
    u8 *bytes = out_bytes;
    for (size_t i = 0; i < size; i++) {
        f->lots = f->lots * 6364136223846793005ULL + 1442695040888963407ULL;
        bytes[i] = (u8)(f->lots >> 56);
    }
}

static inline void clock_wait(void *self, i64 microseconds)
{
    struct roll_fixture *f = self;
    f->now += microseconds;
}

/* ---- set-up ---- */

static inline void must(struct roll_fixture *f, err result)
{
    if (result != OK) {
        fail_msg("%s: %s", err_text(result), f->error.message);
    }
    error_clear(&f->error);
}

static inline struct table_name fixture_table(void)
{
    return (struct table_name){STR("demo"), STR("events")};
}

/* JSON with ' for ". A new reference. */
static inline json_t *fixture_json(const char *text)
{
    char quoted[4096];
    size_t size = strlen(text);
    assert_true(size < sizeof(quoted));
    for (size_t i = 0; i < size; i++) {
        quoted[i] = text[i] == '\'' ? '"' : text[i];
    }
    json_error_t reason;
    json_t *value = json_loadb(quoted, size, 0, &reason);
    if (value == NULL) {
        fail_msg("%s: %s", reason.text, text);
    }
    return value;
}

static inline void make_table(struct roll_fixture *f, const char *request_text)
{
    struct table table = {0};
    json_t *request = fixture_json(request_text);
    must(f, catalog_create(&f->catalog, f->arena, fixture_table(), request, &table, &f->error));
    json_decref(request);
    table_close(&table);
}

static inline struct table load_table(struct roll_fixture *f)
{
    struct table table = {0};
    must(f, catalog_load(&f->catalog, f->arena, fixture_table(), &table, &f->error));
    return table;
}

/* Somebody else's commit. */
static inline void foreign_commit(struct roll_fixture *f, const char *request_text)
{
    struct table after = {0};
    json_t *request = fixture_json(request_text);
    must(f, catalog_commit(&f->catalog, f->arena, fixture_table(), request, &after, &f->error));
    json_decref(request);
    table_close(&after);
}

static inline void foreign_set_property(struct roll_fixture *f, str value)
{
    struct table after = {0};
    json_t *request = json_pack("{s:[],s:[{s:s,s:{s:s%}}]}", "requirements", "updates", "action",
                                "set-properties", "updates", METADATA_ROLL_PROPERTY, value.data,
                                value.size);
    must(f, catalog_commit(&f->catalog, f->arena, fixture_table(), request, &after, &f->error));
    json_decref(request);
    table_close(&after);
}

/* Somebody else's append of nothing: main and the sequence number move. */
static inline void foreign_append(struct roll_fixture *f)
{
    struct table base = load_table(f);
    struct append append = commit_begin(&f->seam);
    json_t *request = NULL;
    must(f,
         commit_append(f->arena, &f->sound_places, &base, &f->seam, &append, &request, &f->error));
    struct table after = {0};
    must(f, catalog_commit(&f->catalog, f->arena, fixture_table(), request, &after, &f->error));
    json_decref(request);
    table_close(&after);
    table_close(&base);
}

#define PLAIN_TABLE                                                                                \
    "{'name':'events','schema':{'type':'struct','fields':["                                        \
    "{'id':1,'name':'x','required':true,'type':'int'},"                                            \
    "{'id':2,'name':'who','required':false,'type':'string'}]}}"

static inline void make_sink(struct roll_fixture *f)
{
    struct table table = load_table(f);
    struct uid claim = id_uid_make(&f->seam);
    struct ledger_sink sink = {
        .id = STR("snk_000000000001"),
        .project = STR("prj"),
        .warehouse = STR("garden"),
        .namespace_name = STR("demo"),
        .table_name = STR("events"),
        .table_uuid = str_copy(f->arena, metadata_uuid(table.metadata)),
        .name = STR("events"),
        .roll_seconds = 60,
        .roll_bytes = 64 * (i64)MIB,
        .unknown_fields = STR("reject"),
        .idempotency = STR("required"),
        .send_key_id = STR("0123456789ab"),
        .claim_id = str_copy(f->arena, id_uid_str(&claim)),
    };
    table_close(&table);
    must(f, ledger_insert_sink(&f->db, &sink, &f->error));
    f->sink_id = sink.id;
}

static inline void open_doors(struct roll_fixture *f)
{
    f->guarded_db = (struct door_db){&f->doors, f->db};
    f->guarded_files = (struct door_store){&f->doors, f->store, 7, door_listed, f};
    f->guarded_tables = f->guarded_files;
    f->door_db = door_db_open(&f->guarded_db);
    f->door_place = (struct location){f->place.prefix, door_store_open(&f->guarded_tables)};
    f->warehouse = (struct warehouse){
        .name = STR("garden"),
        .project = STR("prj"),
        .files = door_store_open(&f->guarded_files),
        .catalog = {&DOOR_CATALOG, f},
        .locations = {&f->door_place, 1},
        .tables_uri = f->place.prefix,
        .embedded = true,
    };
    f->env = (struct roll_env){
        .db = &f->door_db,
        .seam = &f->seam,
        .warehouse = &f->warehouse,
        .installation_id = f->installation,
        .holder = STR("node"),
    };
}

static inline struct roll_fixture *fixture_open_with(const char *table_request)
{
    struct arena *arena = arena_create((size_t)1024 * MIB);
    struct roll_fixture *f = arena_alloc(arena, sizeof(*f));
    f->arena = arena;
    f->now = 1790000000000000;
    f->lots = 7;
    f->seam = (struct seam){clock_now, clock_now, clock_random, clock_wait, f};
    must(f, db_open_sqlite(arena, STR(":memory:"), &f->seam, &f->db, &f->error));
    must(f, ledger_open(&f->db, &f->seam, &f->error));
    must(f, ledger_installation(&f->db, arena, &f->installation, &f->error));
    must(f, store_open_mem(arena, (size_t)512 * MIB, &f->store, &f->error));
    f->place = (struct location){STR("file:///data/tables"), f->store};
    f->sound_places = (struct location_set){&f->place, 1};
    const struct catalog_local_options options = {.db = &f->db,
                                                  .seam = &f->seam,
                                                  .warehouse = STR("garden"),
                                                  .tables_uri = f->place.prefix,
                                                  .locations = &f->sound_places};
    must(f, catalog_local_open(arena, &options, &f->catalog, &f->error));
    must(f, catalog_create_namespace(&f->catalog, STR("demo"), &f->error));
    open_doors(f);
    make_table(f, table_request);
    make_sink(f);
    return f;
}

static inline struct roll_fixture *fixture_open(void)
{
    return fixture_open_with(PLAIN_TABLE);
}

/* The request that was kept arrives at last. */
static inline err land_kept(struct roll_fixture *f)
{
    struct table after = {0};
    err landed = catalog_commit(&f->catalog, f->arena, fixture_table(), f->kept, &after, NULL);
    if (landed == OK) {
        table_close(&after);
    }
    json_decref(f->kept);
    f->kept = NULL;
    return landed;
}

static inline void fixture_close(struct roll_fixture *f)
{
    json_decref(f->kept);
    struct arena *arena = f->arena;
    catalog_local_close(&f->catalog);
    store_close(&f->store);
    db_close(&f->db);
    arena_destroy(arena);
}

/* ---- tables whose version hint cannot be written ---- */

static inline err hintless_put(void *self, str key, const str *pieces, size_t count,
                               const struct store_meta *meta, struct error *error)
{
    const struct roll_fixture *f = self;
    if (str_ends(key, STR("version-hint.text"))) {
        return error_set(error, IO, ERROR_DISK_LOW, "no space left on device");
    }
    return store_put_pieces(&f->hinting, key, pieces, count, meta, error);
}

static inline err hintless_get(void *self, struct arena *arena, str key, struct store_object *out,
                               struct error *error)
{
    const struct roll_fixture *f = self;
    return store_get(&f->hinting, arena, key, out, error);
}

static inline err hintless_remove(void *self, str key, struct error *error)
{
    const struct roll_fixture *f = self;
    return store_remove(&f->hinting, key, error);
}

static const struct store_ops HINTLESS = {
    .put = hintless_put, .get = hintless_get, .remove = hintless_remove};

/* The roll knows its catalog as the embedded one from now on, without a door. */
static inline void hints_fail(struct roll_fixture *f)
{
    f->warehouse.catalog = f->catalog;
    f->hinting = f->place.store;
    f->place.store = (struct store){.ops = &HINTLESS, .self = f, .puts_in_flight_max = 1};
}

static inline void hints_heal(struct roll_fixture *f)
{
    f->place.store = f->hinting;
}

/* The table's first column becomes a long. */
static inline void widen(struct roll_fixture *f)
{
    struct table table = load_table(f);
    const json_t *schemas = json_object_get(metadata_json(table.metadata), "schemas");
    json_t *schema = json_deep_copy(json_array_get(schemas, json_array_size(schemas) - 1));
    json_object_set_new(json_array_get(json_object_get(schema, "fields"), 0), "type",
                        json_string("long"));
    json_t *request = json_pack("{s:[],s:[{s:s,s:o},{s:s,s:i}]}", "requirements", "updates",
                                "action", "add-schema", "schema", schema, "action",
                                "set-current-schema", "schema-id", -1);
    table_close(&table);
    must(f, catalog_commit(&f->catalog, f->arena, fixture_table(), request, &table, &f->error));
    json_decref(request);
    table_close(&table);
}

/* ---- sending ---- */

static inline i64 count_lines(str body)
{
    i64 rows = 0;
    str rest = body;
    str line;
    while (str_next(&rest, '\n', &line)) {
        rows += line.size > 0 ? 1 : 0;
    }
    return rows;
}

static inline struct ledger_accept describe_batch(struct roll_fixture *f, const char *batch_id,
                                                  str body)
{
    struct ledger_accept item = {
        .batch_id = str_copy(f->arena, str_from(batch_id)),
        .uid = id_uid_make(&f->seam),
        .bytes = (i64)body.size,
        .rows = count_lines(body),
        .sha256 = crypto_sha256(body),
        .received_at = f->now,
        .began_at = f->now,
        .answer = STR("{}"),
    };
    struct sha256 hash = crypto_sha256(body);
    memcpy(item.body_hash, hash.bytes, sizeof(item.body_hash));
    item.object_key = batch_object_key(f->arena, f->sink_id, item.batch_id, &item.uid);
    return item;
}

static inline void accept_item(struct roll_fixture *f, struct ledger_accept *item)
{
    instant now = 0;
    must(f, ledger_register_node(&f->db, STR("node"), STR("all"), &now, &f->error));
    must(f, ledger_accept(&f->db, f->arena, STR("node"), f->sink_id, LEDGER_BACKLOG_DEFAULT,
                          LEDGER_DURABLE, item, 1, &f->error));
}

/* As the intake does: object durable first, row second. `body` is the stored form. */
static inline struct ledger_accept send_batch(struct roll_fixture *f, const char *batch_id,
                                              const char *body_text)
{
    str body = str_from(body_text);
    struct ledger_accept item = describe_batch(f, batch_id, body);
    must(f, store_put(&f->store, item.object_key, body, NULL, &f->error));
    accept_item(f, &item);
    assert_int_equal(item.outcome, ACCEPT_NEW);
    return item;
}

/* ---- looking ---- */

static inline struct ledger_sink look_sink(struct roll_fixture *f)
{
    struct ledger_sink sink = {0};
    must(f, ledger_find_sink(&f->db, f->arena, STR(""), f->sink_id, &sink, &f->error));
    return sink;
}

static inline struct ledger_batch look_batch(struct roll_fixture *f, const char *batch_id)
{
    struct ledger_batch batch = {0};
    must(f, ledger_find_batch(&f->db, f->arena, f->sink_id, str_from(batch_id), &batch, &f->error));
    return batch;
}

/* Rows of main's data files, by the manifests themselves. */
static inline i64 table_rows(struct roll_fixture *f)
{
    struct table table = load_table(f);
    i64 main_id = 0;
    i64 rows = 0;
    if (metadata_main(table.metadata, &main_id)) {
        const json_t *snapshot = metadata_snapshot(table.metadata, main_id);
        const char *path = json_string_value(json_object_get(snapshot, "manifest-list"));
        str bytes;
        must(f, location_get(&f->sound_places, f->arena, str_from(path), &bytes, &f->error));
        struct manifest_list list = {0};
        must(f, manifest_list_read(f->arena, bytes, &list, &f->error));
        for (size_t i = 0; i < list.count; i++) {
            rows += list.files[i].added_rows + list.files[i].existing_rows;
        }
    }
    table_close(&table);
    return rows;
}

static inline str table_property(struct roll_fixture *f)
{
    struct table table = load_table(f);
    str text = metadata_property(table.metadata, METADATA_ROLL_PROPERTY);
    str copy = text.data == NULL ? text : str_copy(f->arena, text);
    table_close(&table);
    return copy;
}

static inline i64 count_objects(struct roll_fixture *f, const char *folder)
{
    struct store_list list = {0};
    str prefix = str_format(f->arena, "_sink/%.*s/%s", STR_ARG(f->sink_id), folder);
    must(f, store_list(&f->store, f->arena, prefix, STR(""), 100000, &list, &f->error));
    return (i64)list.count;
}

/* The books (I13), from two independent counts. */
static inline void assert_books(struct roll_fixture *f)
{
    struct ledger_sink sink = look_sink(f);
    assert_int_equal(sink.rows_accepted - sink.rows_committed - sink.rows_rejected -
                         sink.waiting_rows - sink.rows_discarded,
                     0);
    assert_int_equal(table_rows(f), sink.rows_committed);
}

/* One tick, whatever comes of it. */
static inline enum roll_end roll_tick(struct roll_fixture *f)
{
    enum roll_end end = ROLL_LATER;
    struct error told = {0};
    err rolled = roll_sink(&f->env, f->sink_id, STR("asked"), &end, &told);
    if (rolled != OK && f->doors.fault == DOOR_SOUND) {
        f->error = told;
    }
    f->now += 10 * TIME_SECOND_US;
    return end;
}

/* Ticks until nothing is left to do. */
static inline void roll_out(struct roll_fixture *f)
{
    enum roll_end end = ROLL_LATER;
    for (int ticks = 0; ticks < 50 && end != ROLL_NOTHING; ticks++) {
        end = roll_tick(f);
    }
    if (end != ROLL_NOTHING) {
        fail_msg("the sink does not come to rest: end %d, %s", (int)end, f->error.message);
    }
}

#endif
