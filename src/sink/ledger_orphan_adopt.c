#include "base/planted.h"
#include "sink/ledger_orphan_sql.h"
#include "sink/ledger_sql.h"

/* Adoption as a copy under a fresh uid (section 9, step 7), and a person's decision about what is
 * in quarantine (O6). A delete of the old object may be under way from before the restore: so the
 * copy is durable before these run, and the old uid is void with them. */

struct adopting {
    struct arena *arena;
    str sink_id;
    str object_key;
    const struct ledger_copy *copy;
    const struct map *missing;
    bool wanted;
    struct ledger_adopted adopted;
};

/* The id's row is pending and the bytes are the same: it takes these, and not only when its own
 * object is gone. That one may have been given up by an earlier recover, which the ledger that was
 * put back knows nothing of: then its delete may still be under way. */
static err row_takes_it(struct db_tx *tx, const struct adopting *adopting,
                        const struct ledger_segment *segment, bool *out_takes, bool *out_missing,
                        struct error *error)
{
    struct db_rows rows = {0};
    *out_takes = false;
    *out_missing = false;
    if (PLANTED(28)) {
        return OK;
    }
    TRY(sql_select(tx, adopting->arena, &rows, error,
                   "SELECT uid || '/' || batch_id FROM batch WHERE sink = ?1 AND batch_id = ?2 AND "
                   "state = 0 AND body_hash = ?3",
                   DB_T(adopting->sink_id), DB_T(segment->batch_id),
                   sql_bytes(segment->body_hash, sizeof(segment->body_hash))));
    *out_takes = rows.row_count > 0;
    *out_missing = *out_takes && map_get(adopting->missing, db_text(&rows, 0, 0)) != NULL;
    return OK;
}

/* ---- before the copy ---- */

static err weigh_body(struct db_tx *tx, void *context, struct error *error)
{
    struct adopting *adopting = context;
    struct orphan_row *orphans = NULL;
    size_t count = 0;
    bool is_void = false;
    adopting->wanted = false;
    adopting->adopted = (struct ledger_adopted){0};
    TRY(ledger_recover_goes_on(tx, adopting->sink_id, error));
    TRY(orphan_load(tx, adopting->arena, adopting->sink_id, adopting->object_key, &orphans, &count,
                    error));
    if (count > 0) {
        TRY(orphan_is_void(tx, adopting->arena, &orphans[0].segment.uid, &is_void, error));
    }
    for (size_t i = 0; i < count && !is_void; i++) {
        const struct ledger_segment *segment = &orphans[i].segment;
        enum orphan_place place = ORPHAN_ROW;
        bool takes = false;
        bool missing = false;
        TRY(orphan_weigh(tx, adopting->arena, adopting->sink_id, &orphans[i], &place, error));
        TRY(row_takes_it(tx, adopting, segment, &takes, &missing, error));
        if (place == ORPHAN_RIVAL) {
            TRY(orphan_quarantine(tx, adopting->arena, adopting->sink_id, segment->batch_id,
                                  &segment->uid, error));
            adopting->adopted.quarantined++;
        }
        bool alone = place == ORPHAN_ALONE && segment->batch_id.size > 0;
        bool taken = place == ORPHAN_HAS_ROW && takes;
        adopting->wanted = adopting->wanted || alone || taken;
    }
    return OK;
}

err ledger_weigh_orphan(const struct db *db, struct arena *arena, str sink_id, str object_key,
                        const struct map *missing, enum ledger_adoption *out_adoption,
                        i64 *out_quarantined, struct error *error)
{
    struct adopting adopting = {
        .arena = arena, .sink_id = sink_id, .object_key = object_key, .missing = missing};
    TRY(db_transact(db, weigh_body, &adopting, error));
    *out_adoption = adopting.wanted ? ADOPT_COPY : ADOPT_NOTHING;
    *out_quarantined = adopting.adopted.quarantined;
    return OK;
}

/* ---- after it ---- */

/* The row's own object is gone, or given up: its uid is void with this, unless others refer to it.
 */
static err void_own(struct db_tx *tx, const struct adopting *adopting, const struct uid *uid,
                    struct error *error)
{
    bool referred = false;
    TRY(orphan_is_referred(tx, adopting->arena, adopting->sink_id, uid, &referred, error));
    if (referred) {
        return OK;
    }
    return db_run(tx, error,
                  "INSERT INTO void_uid (uid, at) VALUES (?1, ?2) ON CONFLICT (uid) DO NOTHING",
                  DB_T(id_uid_str(uid)), DB_N(db_now(tx)));
}

static err take_object(struct db_tx *tx, const struct adopting *adopting,
                       const struct ledger_segment *segment, struct error *error)
{
    struct db_rows rows = {0};
    struct uid own;
    TRY(sql_select(tx, adopting->arena, &rows, error,
                   "SELECT uid FROM batch WHERE sink = ?1 AND batch_id = ?2",
                   DB_T(adopting->sink_id), DB_T(segment->batch_id)));
    if (rows.row_count != 1 || !id_uid_parse(db_text(&rows, 0, 0), &own)) {
        return error_set(error, CORRUPT, ERROR_LEDGER_DOWN, "batch row %.*s is damaged",
                         STR_ARG(segment->batch_id));
    }
    /* The same body under other limits may have left other elements. */
    TRY(db_run(tx, error,
               "UPDATE sink SET rows_accepted = rows_accepted + ?3 - (SELECT rows FROM batch WHERE "
               "sink = ?1 AND batch_id = ?2) WHERE id = ?1",
               DB_T(adopting->sink_id), DB_T(segment->batch_id), DB_N(segment->rows)));
    TRY(db_run(tx, error,
               "UPDATE batch SET uid = ?3, object_key = ?4, byte_offset = ?5, bytes = ?6, "
               "rows = ?8, sha256 = ?7, held = 0, held_reason = NULL, misses = 0, missed_at = NULL "
               "WHERE sink = ?1 AND batch_id = ?2 AND state = 0",
               DB_T(adopting->sink_id), DB_T(segment->batch_id),
               DB_T(id_uid_str(&adopting->copy->new_uid)), DB_T(adopting->copy->new_key),
               DB_N(segment->offset), DB_N(segment->bytes),
               sql_bytes(segment->sha256.bytes, sizeof(segment->sha256.bytes)),
               DB_N(segment->rows)));
    return void_own(tx, adopting, &own, error);
}

static err adopt_segment(struct db_tx *tx, struct adopting *adopting,
                         const struct orphan_row *orphan, struct error *error)
{
    const struct ledger_segment *segment = &orphan->segment;
    enum orphan_place place = ORPHAN_ROW;
    bool takes = false;
    bool missing = false;
    TRY(orphan_weigh(tx, adopting->arena, adopting->sink_id, orphan, &place, error));
    TRY(row_takes_it(tx, adopting, segment, &takes, &missing, error));
    if (place == ORPHAN_HAS_ROW && takes) {
        adopting->adopted.taken++;
        adopting->adopted.found += missing ? 1 : 0;
        TRY(take_object(tx, adopting, segment, error));
    } else if (place == ORPHAN_ALONE && segment->batch_id.size > 0) {
        adopting->adopted.adopted++;
        TRY(orphan_insert_pending(tx, adopting->arena, adopting->sink_id, segment,
                                  segment->batch_id, &adopting->copy->new_uid,
                                  adopting->copy->new_key, error));
    } else {
        return OK;
    }
    return orphan_forget_segment(tx, adopting->sink_id, segment, error);
}

/* The old object goes, unless a row refers to it or one of its segments is not settled. */
static err retire_old(struct db_tx *tx, const struct adopting *adopting, struct error *error)
{
    const struct ledger_copy *copy = adopting->copy;
    struct orphan_row *orphans = NULL;
    size_t count = 0;
    bool stays = false;
    TRY(orphan_is_referred(tx, adopting->arena, adopting->sink_id, &copy->old_uid, &stays, error));
    TRY(orphan_load(tx, adopting->arena, adopting->sink_id, copy->old_key, &orphans, &count,
                    error));
    for (size_t i = 0; i < count && !stays; i++) {
        enum orphan_place place = ORPHAN_ROW;
        TRY(orphan_weigh(tx, adopting->arena, adopting->sink_id, &orphans[i], &place, error));
        stays = place != ORPHAN_HAS_ROW && place != ORPHAN_PROVEN;
    }
    return stays ? OK : orphan_void(tx, adopting->sink_id, &copy->old_uid, copy->old_key, error);
}

/* Rows come to a uid only while it is not void (I6): one that was asleep may find that another
 * recover took its copy for an orphan, and gave it up. */
static err check_copy(struct db_tx *tx, struct arena *arena, const struct ledger_copy *copy,
                      struct error *error)
{
    bool is_void = false;
    TRY(orphan_is_void(tx, arena, &copy->new_uid, &is_void, error));
    return is_void ? ledger_lost(error, "the copy was given up meanwhile") : OK;
}

static err adopt_body(struct db_tx *tx, void *context, struct error *error)
{
    struct adopting *adopting = context;
    struct orphan_row *orphans = NULL;
    size_t count = 0;
    bool is_void = false;
    adopting->adopted = (struct ledger_adopted){0};
    TRY(ledger_recover_goes_on(tx, adopting->sink_id, error));
    TRY(orphan_is_void(tx, adopting->arena, &adopting->copy->old_uid, &is_void, error));
    if (is_void) {
        return OK; /* this very transaction has been done before */
    }
    TRY(check_copy(tx, adopting->arena, adopting->copy, error));
    TRY(orphan_load(tx, adopting->arena, adopting->sink_id, adopting->copy->old_key, &orphans,
                    &count, error));
    for (size_t i = 0; i < count; i++) {
        TRY(adopt_segment(tx, adopting, &orphans[i], error));
    }
    return retire_old(tx, adopting, error);
}

err ledger_adopt_copy(const struct db *db, struct arena *arena, str sink_id,
                      const struct ledger_copy *copy, const struct map *missing,
                      struct ledger_adopted *out_adopted, struct error *error)
{
    struct adopting adopting = {
        .arena = arena, .sink_id = sink_id, .copy = copy, .missing = missing};
    TRY(db_transact(db, adopt_body, &adopting, error));
    *out_adopted = adopting.adopted;
    return OK;
}

/* ---- quarantine ---- */

struct quarantine_query {
    struct arena *arena;
    str sink_id;
    str after;
    size_t limit;
    struct ledger_quarantined *items;
    size_t count;
};

static err list_body(struct db_tx *tx, void *context, struct error *error)
{
    struct quarantine_query *query = context;
    struct db_rows rows = {0};
    TRY(sql_select(tx, query->arena, &rows, error,
                   "SELECT batch_id, uids, at FROM quarantine WHERE sink = ?1 AND batch_id > ?2 "
                   "ORDER BY batch_id LIMIT ?3",
                   DB_T(query->sink_id), sql_text(query->after), DB_N(query->limit)));
    query->items = arena_array(query->arena, rows.row_count, sizeof(*query->items));
    if (query->items == NULL) {
        return error_memory(error);
    }
    query->count = rows.row_count;
    for (size_t i = 0; i < rows.row_count; i++) {
        query->items[i] = (struct ledger_quarantined){.batch_id = db_text(&rows, i, 0),
                                                      .uids = db_text(&rows, i, 1),
                                                      .at = db_number(&rows, i, 2)};
    }
    return OK;
}

err ledger_list_quarantined(const struct db *db, struct arena *arena, str sink_id, str after,
                            size_t limit, struct ledger_quarantined **out_items, size_t *out_count,
                            struct error *error)
{
    struct quarantine_query query = {
        .arena = arena, .sink_id = sink_id, .after = after, .limit = limit};
    TRY(db_read(db, list_body, &query, error));
    *out_items = query.items;
    *out_count = query.count;
    return OK;
}

struct resolving {
    struct arena *arena;
    str sink_id;
    str batch_id;
    const struct ledger_copy *copy; /* NULL: the row that is there stays */
    str row_id;
};

static err not_quarantined(const struct resolving *resolving, struct error *error)
{
    return error_set(error, NOT_FOUND, ERROR_BATCH_NOT_FOUND,
                     "no quarantined batch %.*s with that object", STR_ARG(resolving->batch_id));
}

static err find_row(struct db_tx *tx, const struct resolving *resolving, bool *out_found,
                    struct error *error)
{
    struct db_rows rows = {0};
    TRY(sql_select(tx, resolving->arena, &rows, error,
                   "SELECT 1 FROM batch WHERE sink = ?1 AND batch_id = ?2",
                   DB_T(resolving->sink_id), DB_T(resolving->batch_id)));
    *out_found = rows.row_count > 0;
    return OK;
}

static err release_id(struct db_tx *tx, const struct resolving *resolving, struct error *error)
{
    return db_run(tx, error, "DELETE FROM quarantine WHERE sink = ?1 AND batch_id = ?2",
                  DB_T(resolving->sink_id), DB_T(resolving->batch_id));
}

static err find_kept(struct db_tx *tx, const struct resolving *resolving,
                     struct ledger_segment *out_segment, struct error *error)
{
    struct orphan_row *orphans = NULL;
    size_t count = 0;
    str uids = {0};
    TRY(orphan_find_quarantine(tx, resolving->arena, resolving->sink_id, resolving->batch_id, &uids,
                               error));
    TRY(orphan_load(tx, resolving->arena, resolving->sink_id, resolving->copy->old_key, &orphans,
                    &count, error));
    bool listed = uids.data != NULL && str_find(uids, id_uid_str(&resolving->copy->old_uid)) >= 0;
    for (size_t i = 0; i < count && listed; i++) {
        if (str_equal(orphans[i].segment.batch_id, resolving->batch_id)) {
            *out_segment = orphans[i].segment;
            return OK;
        }
    }
    return not_quarantined(resolving, error);
}

static err resolve_body(struct db_tx *tx, void *context, struct error *error)
{
    struct resolving *resolving = context;
    const struct ledger_copy *copy = resolving->copy;
    struct ledger_segment segment = {0};
    bool taken = false;
    TRY(find_kept(tx, resolving, &segment, error));
    TRY(find_row(tx, resolving, &taken, error));
    resolving->row_id = taken ? str_format(resolving->arena, "replay.%.*s",
                                           STR_ARG(id_uid_str(&copy->old_uid)))
                              : resolving->batch_id;
    if (resolving->row_id.data == NULL) {
        return error_memory(error);
    }
    TRY(check_copy(tx, resolving->arena, copy, error));
    TRY(orphan_insert_pending(tx, resolving->arena, resolving->sink_id, &segment, resolving->row_id,
                              &copy->new_uid, copy->new_key, error));
    TRY(orphan_forget_segment(tx, resolving->sink_id, &segment, error));
    TRY(release_id(tx, resolving, error));
    const struct adopting retiring = {
        .arena = resolving->arena, .sink_id = resolving->sink_id, .copy = copy};
    return retire_old(tx, &retiring, error);
}

err ledger_resolve_quarantined(const struct db *db, struct arena *arena, str sink_id, str batch_id,
                               const struct ledger_copy *copy, str *out_row_id, struct error *error)
{
    struct resolving resolving = {
        .arena = arena, .sink_id = sink_id, .batch_id = batch_id, .copy = copy};
    TRY(db_transact(db, resolve_body, &resolving, error));
    *out_row_id = resolving.row_id;
    return OK;
}

static err dismiss_body(struct db_tx *tx, void *context, struct error *error)
{
    struct resolving *resolving = context;
    str uids = {0};
    bool taken = false;
    TRY(orphan_find_quarantine(tx, resolving->arena, resolving->sink_id, resolving->batch_id, &uids,
                               error));
    TRY(find_row(tx, resolving, &taken, error));
    if (uids.data == NULL || !taken) {
        return not_quarantined(resolving, error);
    }
    return release_id(tx, resolving, error);
}

err ledger_dismiss_quarantined(const struct db *db, str sink_id, str batch_id, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)MIB);
    struct resolving resolving = {.arena = arena, .sink_id = sink_id, .batch_id = batch_id};
    return db_transact(db, dismiss_body, &resolving, error);
}
