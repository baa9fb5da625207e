#include "sink/ledger_orphan_sql.h"
#include "sink/ledger_sql.h"

/* What a pass over the store finds and forgets; nothing is decided here. */

struct knowing {
    str sink_id;
    struct ledger_object *objects;
    size_t count;
};

static err know_body(struct db_tx *tx, void *context, struct error *error)
{
    struct knowing *knowing = context;
    struct arena *arena AUTO_ARENA = arena_create((size_t)MIB);
    for (size_t i = 0; i < knowing->count; i++) {
        struct ledger_object *object = &knowing->objects[i];
        struct db_rows rows = {0};
        arena_reset(arena);
        TRY(sql_select(tx, arena, &rows, error,
                       "SELECT (SELECT count(*) FROM batch WHERE sink = ?1 AND uid = ?2), (SELECT "
                       "count(*) FROM orphan_segment WHERE sink = ?1 AND object_key = ?3)",
                       DB_T(knowing->sink_id), DB_T(id_uid_str(&object->uid)),
                       DB_T(object->object_key)));
        object->rows = db_number(&rows, 0, 0);
        object->seen = db_number(&rows, 0, 1) > 0;
    }
    return OK;
}

err ledger_know_objects(const struct db *db, str sink_id, struct ledger_object *objects,
                        size_t count, struct error *error)
{
    struct knowing knowing = {.sink_id = sink_id, .objects = objects, .count = count};
    return db_read(db, know_body, &knowing, error);
}

struct seeing {
    str sink_id;
    i64 look;
    const struct ledger_segment *segments;
    size_t count;
    const struct ledger_object *again;
    size_t again_count;
};

static err see_segment(struct db_tx *tx, const struct seeing *seeing,
                       const struct ledger_segment *segment, struct error *error)
{
    return db_run(
        tx, error,
        "INSERT INTO orphan_segment (sink, object_key, batch_id, uid, byte_offset, bytes, rows, "
        "refused, sha256, body_hash, received_at, modified_at, first_seen_at, running_us, looked, "
        "chain, kept) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, running_us, "
        "?14, 0, 0 FROM installation WHERE NOT EXISTS (SELECT 1 FROM batch WHERE sink = ?1 AND "
        "uid = ?4 AND byte_offset = ?5) ON CONFLICT (sink, object_key, byte_offset) DO UPDATE SET "
        "looked = CASE WHEN looked < excluded.looked THEN excluded.looked ELSE looked END",
        DB_T(seeing->sink_id), DB_T(segment->object_key), sql_text(segment->batch_id),
        DB_T(id_uid_str(&segment->uid)), DB_N(segment->offset), DB_N(segment->bytes),
        DB_N(segment->rows), DB_N(segment->refused), sql_bytes(segment->sha256.bytes, 32),
        sql_bytes(segment->body_hash, 16), DB_N(segment->received_at), DB_N(segment->modified_at),
        DB_N(db_now(tx)), DB_N(seeing->look));
}

struct looking {
    str sink_id;
    i64 look;
};

static err next_look_body(struct db_tx *tx, void *context, struct error *error)
{
    struct looking *looking = context;
    struct arena *arena AUTO_ARENA = arena_create((size_t)64 * KIB);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT coalesce(max(looked), 0) + 1 FROM orphan_segment WHERE sink = ?1",
                   DB_T(looking->sink_id)));
    looking->look = db_number(&rows, 0, 0);
    return OK;
}

err ledger_next_look(const struct db *db, str sink_id, i64 *out_look, struct error *error)
{
    struct looking looking = {.sink_id = sink_id};
    TRY(db_read(db, next_look_body, &looking, error));
    *out_look = looking.look;
    return OK;
}

static err see_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct seeing *seeing = context;
    for (size_t i = 0; i < seeing->count; i++) {
        TRY(see_segment(tx, seeing, &seeing->segments[i], error));
    }
    for (size_t i = 0; i < seeing->again_count; i++) {
        TRY(db_run(tx, error,
                   "UPDATE orphan_segment SET looked = ?3 WHERE sink = ?1 AND object_key = ?2 "
                   "AND looked < ?3",
                   DB_T(seeing->sink_id), DB_T(seeing->again[i].object_key), DB_N(seeing->look)));
    }
    return OK;
}

err ledger_see_orphans(const struct db *db, str sink_id, i64 look,
                       const struct ledger_segment *segments, size_t count,
                       const struct ledger_object *again, size_t again_count, struct error *error)
{
    struct seeing seeing = {.sink_id = sink_id,
                            .look = look,
                            .segments = segments,
                            .count = count,
                            .again = again,
                            .again_count = again_count};
    return db_transact(db, see_body, &seeing, error);
}

static err forget_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct seeing *seeing = context;
    return db_run(tx, error, "DELETE FROM orphan_segment WHERE sink = ?1 AND looked < ?2",
                  DB_T(seeing->sink_id), DB_N(seeing->look));
}

err ledger_forget_orphans(const struct db *db, str sink_id, i64 look, struct error *error)
{
    struct seeing seeing = {.sink_id = sink_id, .look = look};
    return db_transact(db, forget_body, &seeing, error);
}

struct gone {
    str sink_id;
    str object_key;
};

static err forget_one_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct gone *gone = context;
    return db_run(tx, error, "DELETE FROM orphan_segment WHERE sink = ?1 AND object_key = ?2",
                  DB_T(gone->sink_id), DB_T(gone->object_key));
}

err ledger_forget_orphan(const struct db *db, str sink_id, str object_key, struct error *error)
{
    struct gone gone = {.sink_id = sink_id, .object_key = object_key};
    return db_transact(db, forget_one_body, &gone, error);
}

/* ---- listing ---- */

struct orphan_query {
    struct arena *arena;
    str sink_id;
    enum ledger_orphans which;
    str after_key;
    size_t limit;
    struct ledger_segment *segments;
    size_t count;
};

static const char *list_sql(enum ledger_orphans which)
{
    switch (which) {
    case ORPHANS_ALL:
        return "SELECT " ORPHAN_COLUMNS " FROM orphan_segment WHERE sink = ?1 AND ?2 = ?2 AND "
               "?3 = ?3 ORDER BY received_at, uid, byte_offset LIMIT ?4";
    case ORPHANS_OLD:
        return "SELECT " ORPHAN_COLUMNS " FROM orphan_segment WHERE sink = ?1 AND object_key > ?2 "
               "AND (first_seen_at <= ?3 OR EXISTS (SELECT 1 FROM sink s WHERE s.id = ?1 AND "
               "s.state = 4)) ORDER BY object_key, byte_offset LIMIT ?4";
    case ORPHANS_UNCHECKED:
        return "SELECT " ORPHAN_COLUMNS " FROM orphan_segment WHERE sink = ?1 AND object_key > ?2 "
               "AND first_seen_at <= ?3 AND chain = 0 ORDER BY object_key, byte_offset LIMIT ?4";
    }
    return "";
}

static err list_body(struct db_tx *tx, void *context, struct error *error)
{
    struct orphan_query *query = context;
    const struct db_value values[] = {DB_T(query->sink_id), sql_text(query->after_key),
                                      DB_N(db_now(tx) - ORPHAN_YOUNG_US), DB_N(query->limit)};
    struct db_rows rows = {0};
    struct orphan_row *orphans = NULL;
    TRY(db_query(tx, query->arena, list_sql(query->which), values, ARRAY_COUNT(values), &rows,
                 error));
    TRY(orphan_rows(query->arena, &rows, &orphans, error));
    query->segments = arena_array(query->arena, rows.row_count, sizeof(*query->segments));
    if (query->segments == NULL) {
        return error_memory(error);
    }
    query->count = rows.row_count;
    for (size_t i = 0; i < rows.row_count; i++) {
        query->segments[i] = orphans[i].segment;
    }
    return OK;
}

err ledger_list_orphans(const struct db *db, struct arena *arena, str sink_id,
                        enum ledger_orphans which, str after_key, size_t limit,
                        struct ledger_segment **out_segments, size_t *out_count,
                        struct error *error)
{
    struct orphan_query query = {
        .arena = arena, .sink_id = sink_id, .which = which, .after_key = after_key, .limit = limit};
    TRY(db_read(db, list_body, &query, error));
    *out_segments = query.segments;
    *out_count = query.count;
    return OK;
}

/* ---- the chain ---- */

struct checking {
    str sink_id;
    const struct ledger_checked *checked;
    size_t count;
};

static err check_body(struct db_tx *tx, void *context, struct error *error)
{
    const struct checking *checking = context;
    for (size_t i = 0; i < checking->count; i++) {
        const struct ledger_checked *checked = &checking->checked[i];
        TRY(db_run(tx, error,
                   "UPDATE orphan_segment SET chain = ?4 WHERE sink = ?1 AND uid = ?2 AND "
                   "batch_id = ?3 AND chain <> 2",
                   DB_T(checking->sink_id), DB_T(id_uid_str(&checked->uid)),
                   sql_text(checked->batch_id),
                   DB_N(checked->proven  ? ORPHAN_CHAIN_PROVEN
                        : checked->other ? ORPHAN_CHAIN_OTHER
                                         : ORPHAN_CHAIN_ABSENT)));
    }
    return OK;
}

err ledger_check_orphans(const struct db *db, str sink_id, const struct ledger_checked *checked,
                         size_t count, struct error *error)
{
    struct checking checking = {.sink_id = sink_id, .checked = checked, .count = count};
    return db_transact(db, check_body, &checking, error);
}

/* ---- forgetting ---- */

static err prune_voids_body(struct db_tx *tx, void *context, struct error *error)
{
    const instant *before = context;
    return db_run(tx, error,
                  "DELETE FROM void_uid WHERE at < ?1 AND NOT EXISTS (SELECT 1 FROM orphan_segment "
                  "o WHERE o.uid = void_uid.uid)",
                  DB_N(*before));
}

err ledger_prune_voids(const struct db *db, instant before, struct error *error)
{
    return db_transact(db, prune_voids_body, &before, error);
}
