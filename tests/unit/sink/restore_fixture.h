/* restore_fixture: what roll_fixture has, with intake objects that carry their metadata, a clock of
 * running time, and copies of the ledger that can be put back. */
#ifndef LHBOX_TESTS_RESTORE_FIXTURE_H
#define LHBOX_TESTS_RESTORE_FIXTURE_H

#include "roll_fixture.h"

#include "base/base64.h"
#include "sink/ledger_orphan.h"
#include "sink/ledger_recover.h"
#include "sink/orphan.h"
#include "sink/restore.h"
#include "table/catalog_restore.h"

/* ---- a store whose files are as old as the test says ---- */

/* By how much files seem older than the test's clock. */
static i64 files_age_us;

static inline void aged_listed(void *context, struct store_list *list)
{
    const struct roll_fixture *f = context;
    for (size_t i = 0; i < list->count; i++) {
        list->objects[i].modified_at = f->now - files_age_us;
    }
}

static inline struct roll_fixture *aged_fixture(void)
{
    struct roll_fixture *f = fixture_open();
    f->guarded_files.page = 3;
    f->guarded_files.listed = aged_listed;
    f->guarded_tables = f->guarded_files;
    files_age_us = 0;
    return f;
}

/* Wall clock and running time go on together. */
static inline void age(struct roll_fixture *f, i64 us)
{
    f->now += us;
    must(f, ledger_add_running(&f->db, us, &f->error));
}

/* ---- objects as the intake writes them ---- */

static inline void describe_entry(buf *out, const struct ledger_accept *item)
{
    buf_append(out, out->size > 0 ? STR(";") : STR(""));
    buf_append_format(out, "%.*s,%lld,%lld,%lld,%lld,", STR_ARG(item->batch_id),
                      (long long)item->offset, (long long)item->bytes, (long long)item->rows,
                      (long long)item->refused);
    base64_encode_url(out, (str){(const char *)item->sha256.bytes, 32});
    buf_append_byte(out, ',');
    base64_encode_url(out, (str){(const char *)item->body_hash, 16});
}

/* One object of all items, under the first one's uid and key. */
static inline void store_group(struct roll_fixture *f, struct ledger_accept *items,
                               const char *const *bodies, size_t count)
{
    buf entries = buf_create(f->arena, KIB, 8 * KIB);
    buf body = buf_create(f->arena, KIB, MIB);
    for (size_t i = 0; i < count; i++) {
        buf_append(&body, i > 0 ? STR("\n") : STR(""));
        items[i].uid = items[0].uid;
        items[i].object_key = items[0].object_key;
        items[i].offset = (i64)body.size;
        buf_append(&body, str_from(bodies[i]));
        describe_entry(&entries, &items[i]);
    }
    const struct store_meta meta = {
        .content_type = STR("application/x-ndjson"),
        .entries = {{STR("sink"), f->sink_id},
                    {STR("received"), time_format_in(f->arena, items[0].received_at)},
                    {STR("rows"), STR("1")},
                    {STR("batches"), buf_str(&entries)}},
        .count = 4,
    };
    must(f, store_put(&f->store, items[0].object_key, buf_str(&body), &meta, &f->error));
}

static inline struct ledger_accept store_batch(struct roll_fixture *f, const char *batch_id,
                                               const char *body)
{
    struct ledger_accept item = describe_batch(f, batch_id, str_from(body));
    store_group(f, &item, &body, 1);
    return item;
}

/* Object durable, row durable: acknowledged. */
static inline struct ledger_accept send_object(struct roll_fixture *f, const char *batch_id,
                                               const char *body)
{
    struct ledger_accept item = store_batch(f, batch_id, body);
    accept_item(f, &item);
    assert_int_equal(item.outcome, ACCEPT_NEW);
    return item;
}

static inline bool has_object(struct roll_fixture *f, str key)
{
    struct store_object object = {0};
    return store_head(&f->store, f->arena, key, &object, NULL) == OK;
}

static inline bool has_batch(struct roll_fixture *f, const char *batch_id)
{
    struct ledger_batch batch = {0};
    return ledger_find_batch(&f->db, f->arena, f->sink_id, str_from(batch_id), &batch, NULL) == OK;
}

/* The table's owner keeps the present snapshot alone. */
static inline void expire_to_one(struct roll_fixture *f)
{
    struct table table = load_table(f);
    const json_t *snapshots = json_object_get(metadata_json(table.metadata), "snapshots");
    json_t *ids = json_array();
    for (size_t i = 0; i + 1 < json_array_size(snapshots); i++) {
        json_array_append(ids, json_object_get(json_array_get(snapshots, i), "snapshot-id"));
    }
    json_t *request = json_pack("{s:[], s:[{s:s, s:o}]}", "requirements", "updates", "action",
                                "remove-snapshots", "snapshot-ids", ids);
    struct table after = {0};
    table_close(&table);
    must(f, catalog_commit(&f->catalog, f->arena, fixture_table(), request, &after, &f->error));
    assert_int_equal(json_array_size(json_object_get(metadata_json(after.metadata), "snapshots")),
                     1);
    json_decref(request);
    table_close(&after);
}

/* ---- SQL of the test's own ---- */

struct asking {
    struct arena *arena;
    const char *sql;
    i64 number;
};

static inline err ask_body(struct db_tx *tx, void *context, struct error *error)
{
    struct asking *asking = context;
    struct db_rows rows = {0};
    TRY(db_query(tx, asking->arena, asking->sql, NULL, 0, &rows, error));
    asking->number = rows.row_count > 0 ? db_number(&rows, 0, 0) : 0;
    return OK;
}

/* The first column of the first row. */
static inline i64 ask_sql(struct roll_fixture *f, const char *sql)
{
    struct asking asking = {f->arena, sql, 0};
    must(f, db_read(&f->db, ask_body, &asking, &f->error));
    return asking.number;
}

static inline err tell_body(struct db_tx *tx, void *context, struct error *error)
{
    const char *sql = ((struct asking *)context)->sql;
    return db_exec(tx, sql, NULL, 0, NULL, error);
}

static inline void tell_sql(struct roll_fixture *f, const char *sql)
{
    struct asking telling = {f->arena, sql, 0};
    must(f, db_transact(&f->db, tell_body, &telling, &f->error));
}

static inline bool is_void(struct roll_fixture *f, const struct uid *uid)
{
    char sql[128];
    int size = snprintf(sql, sizeof(sql), "SELECT count(*) FROM void_uid WHERE uid = '%.*s'",
                        ID_UID_SIZE, uid->text);
    assert_true(size > 0 && (size_t)size < sizeof(sql));
    return ask_sql(f, sql) == 1;
}

/* ---- copies of the ledger ---- */

struct copying {
    struct roll_fixture *fixture;
    struct db *to;
    struct db_rows tables;
    struct db_rows rows;
    str table;
};

static inline err read_tables(struct db_tx *tx, void *context, struct error *error)
{
    struct copying *copying = context;
    return db_query(tx, copying->fixture->arena,
                    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE "
                    "'sqlite%' ORDER BY name",
                    NULL, 0, &copying->tables, error);
}

static inline err read_rows(struct db_tx *tx, void *context, struct error *error)
{
    struct copying *copying = context;
    str sql = str_format(copying->fixture->arena, "SELECT * FROM %.*s", STR_ARG(copying->table));
    return db_query(tx, copying->fixture->arena, sql.data, NULL, 0, &copying->rows, error);
}

static inline err write_rows(struct db_tx *tx, void *context, struct error *error)
{
    struct copying *copying = context;
    struct arena *arena = copying->fixture->arena;
    str sql = str_format(arena, "DELETE FROM %.*s", STR_ARG(copying->table));
    TRY(db_exec(tx, sql.data, NULL, 0, NULL, error));
    buf text = buf_create(arena, KIB, 8 * KIB);
    buf_append_format(&text, "INSERT INTO %.*s VALUES (", STR_ARG(copying->table));
    for (size_t i = 0; i < copying->rows.column_count; i++) {
        buf_append_format(&text, "%s?%zu", i > 0 ? "," : "", i + 1);
    }
    buf_append_format(&text, ")%c", '\0');
    for (size_t i = 0; i < copying->rows.row_count; i++) {
        TRY(db_exec(tx, buf_str(&text).data, copying->rows.values + i * copying->rows.column_count,
                    copying->rows.column_count, NULL, error));
    }
    return OK;
}

static inline void copy_ledger(struct roll_fixture *f, const struct db *from, struct db *to)
{
    struct copying copying = {.fixture = f, .to = to};
    must(f, db_read(from, read_tables, &copying, &f->error));
    for (size_t i = 0; i < copying.tables.row_count; i++) {
        copying.table = db_text(&copying.tables, i, 0);
        must(f, db_read(from, read_rows, &copying, &f->error));
        must(f, db_transact(to, write_rows, &copying, &f->error));
    }
}

static inline struct db take_copy(struct roll_fixture *f)
{
    struct db copy = {0};
    must(f, db_open_sqlite(f->arena, STR(":memory:"), &f->seam, &copy, &f->error));
    must(f, ledger_open(&copy, &f->seam, &f->error));
    copy_ledger(f, &f->db, &copy);
    return copy;
}

/* The ledger, and the catalog in it, is as it was; the store is as it is. Pointers are moved
 * forward (step 0). The copy can be put back again. */
static inline void put_back(struct roll_fixture *f, const struct db *copy)
{
    struct catalog_restored restored = {0};
    copy_ledger(f, copy, &f->db);
    must(f, catalog_restore_pointers(catalog_local_of(&f->catalog), &restored, &f->error));
    assert_int_equal(restored.lost, 0);
}

static inline struct restore_sink recover_sink_now(struct roll_fixture *f)
{
    struct restore_sink report = {0};
    must(f, restore_sink(&f->env, f->arena, f->sink_id, &report, &f->error));
    return report;
}

/* ---- what comes of it ---- */

static inline void sweep(struct roll_fixture *f)
{
    i64 deleted = 0;
    must(f, sweep_objects(&f->env, &deleted, &f->error));
}

/* All is rolled and swept; each of the sent rows is in the table once. */
static inline void assert_whole(struct roll_fixture *f, i64 rows)
{
    roll_out(f);
    sweep(f);
    assert_int_equal(table_rows(f), rows);
    assert_books(f);
    assert_int_equal(look_sink(f).waiting_batches, 0);
    assert_int_equal(ask_sql(f, "SELECT count(*) FROM void_uid v JOIN batch b ON b.uid = v.uid"),
                     0);
}

/* One batch of an object, a, is rolled after the copy that is put back; the other one, b, is not.
 */
static inline void roll_half_a_group(struct roll_fixture *f)
{
    send_object(f, "first", "{\"x\":0}");
    roll_out(f);
    struct db copy = take_copy(f);
    struct ledger_accept items[] = {describe_batch(f, "a", STR("{\"x\":1}")),
                                    describe_batch(f, "b", STR("{\"x\":2}"))};
    const char *const bodies[] = {"{\"x\":1}", "{\"x\":2}"};
    store_group(f, items, bodies, 2);
    accept_item(f, &items[0]);
    accept_item(f, &items[1]);
    tell_sql(f, "UPDATE sink SET roll_bytes = 1");
    f->now += 120 * TIME_SECOND_US;
    roll_tick(f);
    assert_int_equal(look_batch(f, "a").state, BATCH_COMMITTED);
    assert_int_equal(look_batch(f, "b").state, BATCH_PENDING);
    put_back(f, &copy);
    db_close(&copy);
}

#endif
