#include "sink/ledger_orphan.h"

#include "base/buf.h"
#include "base/planted.h"
#include "sink/ledger_orphan_sql.h"
#include "sink/ledger_sql.h"

/* The decision table of section 7, for each segment; the object follows from its segments:
 *
 *   a row refers to it                      ROW         forgotten here
 *   quarantined already                     WAITS       stays, whatever its age
 *   a row has its batch id (another uid)    DEAD
 *   a plan on the chain names its uid       DEAD
 *   another orphan of the id, other bytes   QUARANTINE
 *   younger than 5 days, no keyed sink      ADOPT
 *   else                                    KEEP
 *
 * All segments DEAD: void row and doomed in this transaction; the sweep deletes after it. */

enum { ORPHAN_SCRATCH_BYTES_MAX = 16 * 1024 * 1024, ORPHAN_ANSWER_MAX = 4096 };

/* ---- rows to segments ---- */

static bool take_bytes(str bytes, void *out, size_t size)
{
    if (bytes.size != size) {
        return false;
    }
    memcpy(out, bytes.data, size);
    return true;
}

err orphan_rows(struct arena *arena, const struct db_rows *rows, struct orphan_row **out_orphans,
                struct error *error)
{
    struct orphan_row *orphans = arena_array(arena, rows->row_count, sizeof(*orphans));
    if (orphans == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < rows->row_count; i++) {
        struct ledger_segment *segment = &orphans[i].segment;
        *segment = (struct ledger_segment){
            .object_key = db_text(rows, i, 0),
            .batch_id = db_text(rows, i, 1),
            .offset = db_number(rows, i, 3),
            .bytes = db_number(rows, i, 4),
            .rows = db_number(rows, i, 5),
            .refused = db_number(rows, i, 6),
            .received_at = db_number(rows, i, 9),
            .modified_at = db_number(rows, i, 10),
            .proven = db_number(rows, i, 13) == ORPHAN_CHAIN_PROVEN,
        };
        orphans[i].first_seen_at = db_number(rows, i, 11);
        orphans[i].running_us = db_number(rows, i, 12);
        orphans[i].chain = (enum orphan_chain)db_number(rows, i, 13);
        if (!id_uid_parse(db_text(rows, i, 2), &segment->uid) ||
            !take_bytes(db_at(rows, i, 7)->bytes, segment->sha256.bytes,
                        sizeof(segment->sha256.bytes)) ||
            !take_bytes(db_at(rows, i, 8)->bytes, segment->body_hash, sizeof(segment->body_hash))) {
            return error_set(error, CORRUPT, ERROR_LEDGER_DOWN, "an orphan's row is damaged");
        }
    }
    *out_orphans = orphans;
    return OK;
}

/* ---- what stands in the ledger ---- */

static err has_rows(struct db_tx *tx, struct arena *arena, const char *sql,
                    const struct db_value *values, size_t count, bool *out_has, struct error *error)
{
    struct db_rows rows = {0};
    TRY(db_query(tx, arena, sql, values, count, &rows, error));
    *out_has = rows.row_count > 0;
    return OK;
}

err orphan_is_void(struct db_tx *tx, struct arena *arena, const struct uid *uid, bool *out_void,
                   struct error *error)
{
    const struct db_value values[] = {DB_T(id_uid_str(uid))};
    return has_rows(tx, arena, "SELECT 1 FROM void_uid WHERE uid = ?1", values, 1, out_void, error);
}

err orphan_is_referred(struct db_tx *tx, struct arena *arena, str sink_id, const struct uid *uid,
                       bool *out_referred, struct error *error)
{
    const struct db_value values[] = {DB_T(sink_id), DB_T(id_uid_str(uid))};
    return has_rows(tx, arena, "SELECT 1 FROM batch WHERE sink = ?1 AND uid = ?2 LIMIT 1", values,
                    2, out_referred, error);
}

err orphan_find_quarantine(struct db_tx *tx, struct arena *arena, str sink_id, str batch_id,
                           str *out_uids, struct error *error)
{
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT uids FROM quarantine WHERE sink = ?1 AND batch_id = ?2", DB_T(sink_id),
                   DB_T(batch_id)));
    *out_uids = rows.row_count > 0 ? db_text(&rows, 0, 0) : (str){NULL, 0};
    return OK;
}

/* Other bytes under the same id, void and explained ones left out. */
err orphan_has_rival(struct db_tx *tx, struct arena *arena, str sink_id,
                     const struct ledger_segment *segment, bool *out_rival, struct error *error)
{
    const struct db_value values[] = {DB_T(sink_id), DB_T(segment->batch_id),
                                      sql_bytes(segment->body_hash, sizeof(segment->body_hash))};
    return has_rows(tx, arena,
                    "SELECT 1 FROM orphan_segment WHERE sink = ?1 AND batch_id = ?2 AND "
                    "body_hash <> ?3 AND chain <> 2 AND NOT EXISTS (SELECT 1 FROM void_uid v WHERE "
                    "v.uid = orphan_segment.uid) LIMIT 1",
                    values, ARRAY_COUNT(values), out_rival, error);
}

err orphan_weigh(struct db_tx *tx, struct arena *arena, str sink_id,
                 const struct orphan_row *orphan, enum orphan_place *out_place, struct error *error)
{
    const struct ledger_segment *segment = &orphan->segment;
    str uid = id_uid_str(&segment->uid);
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT 1 FROM batch WHERE sink = ?1 AND uid = ?2 AND byte_offset = ?3",
                   DB_T(sink_id), DB_T(uid), DB_N(segment->offset)));
    if (rows.row_count > 0) {
        *out_place = ORPHAN_ROW;
        return OK;
    }
    str quarantined = {0};
    TRY(orphan_find_quarantine(tx, arena, sink_id, segment->batch_id, &quarantined, error));
    if (quarantined.data != NULL && str_find(quarantined, uid) >= 0) {
        *out_place = ORPHAN_WAITS;
        return OK;
    }
    TRY(sql_select(tx, arena, &rows, error, "SELECT 1 FROM batch WHERE sink = ?1 AND batch_id = ?2",
                   DB_T(sink_id), DB_T(segment->batch_id)));
    if (rows.row_count > 0 || orphan->chain == ORPHAN_CHAIN_PROVEN) {
        *out_place = rows.row_count > 0 ? ORPHAN_HAS_ROW : ORPHAN_PROVEN;
        return OK;
    }
    bool rival = false;
    TRY(orphan_has_rival(tx, arena, sink_id, segment, &rival, error));
    rival = rival || orphan->chain == ORPHAN_CHAIN_OTHER;
    *out_place = segment->batch_id.size > 0 && !PLANTED(18) && (rival || quarantined.data != NULL)
                     ? ORPHAN_RIVAL
                     : ORPHAN_ALONE;
    return OK;
}

/* ---- what is done ---- */

err orphan_quarantine(struct db_tx *tx, struct arena *arena, str sink_id, str batch_id,
                      const struct uid *uid, struct error *error)
{
    str before = {0};
    TRY(orphan_find_quarantine(tx, arena, sink_id, batch_id, &before, error));
    if (before.data == NULL) {
        return db_run(tx, error,
                      "INSERT INTO quarantine (sink, batch_id, uids, at) VALUES (?1, ?2, ?3, ?4)",
                      DB_T(sink_id), DB_T(batch_id), DB_T(id_uid_str(uid)), DB_N(db_now(tx)));
    }
    if (str_find(before, id_uid_str(uid)) >= 0) {
        return OK;
    }
    return db_run(tx, error,
                  "UPDATE quarantine SET uids = uids || ',' || ?3 WHERE sink = ?1 AND "
                  "batch_id = ?2",
                  DB_T(sink_id), DB_T(batch_id), DB_T(id_uid_str(uid)));
}

err orphan_void(struct db_tx *tx, str sink_id, const struct uid *uid, str object_key,
                struct error *error)
{
    if (!PLANTED(8)) {
        TRY(db_run(tx, error,
                   "INSERT INTO void_uid (uid, at) VALUES (?1, ?2) ON CONFLICT (uid) DO NOTHING",
                   DB_T(id_uid_str(uid)), DB_N(db_now(tx))));
    }
    return db_run(tx, error,
                  "INSERT INTO doomed_object (warehouse, object_key, at, tries) SELECT warehouse, "
                  "?2, ?3, 0 FROM sink WHERE id = ?1 "
                  "ON CONFLICT (warehouse, object_key) DO NOTHING",
                  DB_T(sink_id), DB_T(object_key), DB_N(db_now(tx)));
}

err orphan_print_answer(struct arena *arena, const struct ledger_segment *segment, str *out_answer,
                        struct error *error)
{
    char at[TIME_TEXT_SIZE];
    buf out = buf_create(arena, 256, ORPHAN_ANSWER_MAX);
    buf_append_format(&out, "{\"accepted\":%lld,\"rejected\":%lld,\"reasons\":[]%s,\"batch_id\":",
                      (long long)segment->rows, (long long)segment->refused,
                      segment->refused > 0 ? ",\"reasons_truncated\":true" : "");
    buf_append_json_string(&out, segment->batch_id);
    buf_append_format(&out, ",\"bytes\":%lld,\"received_at\":\"%.*s\",\"state\":\"pending\"}",
                      (long long)segment->bytes, STR_ARG(time_format(segment->received_at, at)));
    if (!buf_ok(&out)) {
        return error_memory(error);
    }
    *out_answer = buf_str(&out);
    return OK;
}

err orphan_count_reason(struct db_tx *tx, str sink_id, str reason, i64 rows, struct error *error)
{
    if (rows <= 0) {
        return OK;
    }
    return db_run(tx, error,
                  "INSERT INTO reject_count (sink, reason, rows) VALUES (?1, ?2, ?3) ON CONFLICT "
                  "(sink, reason) DO UPDATE SET rows = reject_count.rows + excluded.rows",
                  DB_T(sink_id), DB_T(reason), DB_N(rows));
}

err orphan_count_accepted(struct db_tx *tx, str sink_id, const struct ledger_segment *segment,
                          struct error *error)
{
    TRY(db_run(tx, error,
               "UPDATE sink SET batches = batches + 1, rows_accepted = rows_accepted + ?2, "
               "bytes_accepted = bytes_accepted + ?3, rows_refused = rows_refused + ?4, "
               "reject_batches = reject_batches + ?5, first_at = coalesce(first_at, ?6), "
               "last_at = CASE WHEN last_at IS NULL OR last_at < ?6 THEN ?6 ELSE last_at END "
               "WHERE id = ?1",
               DB_T(sink_id), DB_N(segment->rows), DB_N(segment->bytes), DB_N(segment->refused),
               DB_N(segment->refused > 0 ? 1 : 0), DB_N(segment->received_at)));
    TRY(orphan_count_reason(tx, sink_id, STR(ORPHAN_REASON_UNKNOWN), segment->refused, error));
    char text[TIME_TEXT_SIZE];
    str month = str_slice(time_format(db_now(tx), text), 0, 7);
    return db_run(tx, error,
                  "INSERT INTO usage_month (project, sink, month, batches, bytes, rows_accepted, "
                  "rows_rejected) SELECT project, id, ?2, 1, ?3, ?4, ?5 FROM sink WHERE id = ?1 "
                  "ON CONFLICT (project, sink, month) DO UPDATE SET batches = usage_month.batches "
                  "+ excluded.batches, bytes = usage_month.bytes + excluded.bytes, rows_accepted = "
                  "usage_month.rows_accepted + excluded.rows_accepted, rows_rejected = "
                  "usage_month.rows_rejected + excluded.rows_rejected",
                  DB_T(sink_id), DB_T(month), DB_N(segment->bytes), DB_N(segment->rows),
                  DB_N(segment->refused));
}

err orphan_insert_pending(struct db_tx *tx, struct arena *arena, str sink_id,
                          const struct ledger_segment *segment, str row_id, const struct uid *uid,
                          str object_key, struct error *error)
{
    str answer;
    TRY(orphan_print_answer(arena, segment, &answer, error));
    /* The update comes first: seq and ingest_ts are given under the row's lock (I20). A plan that
     * nobody knows any more may have written the batch's rejects file: retried. */
    TRY(db_run(tx, error,
               "UPDATE sink SET next_seq = next_seq + 1, last_ingest_ts = CASE WHEN "
               "last_ingest_ts < ?2 THEN ?2 ELSE last_ingest_ts END, waiting_batches = "
               "waiting_batches + 1, waiting_bytes = waiting_bytes + ?3 WHERE id = ?1",
               DB_T(sink_id), DB_N(segment->received_at), DB_N(segment->bytes)));
    TRY(db_run(tx, error,
               "INSERT INTO batch (sink, batch_id, uid, object_key, byte_offset, bytes, rows, "
               "refused, sha256, body_hash, seq, received_at, ingest_ts, answer, state, held, "
               "misses, retried, rows_committed, rows_rejected) SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, "
               "?8, ?9, ?10, next_seq - 1, ?11, last_ingest_ts, ?12, 0, 0, 0, 1, 0, 0 FROM sink "
               "WHERE id = ?1",
               DB_T(sink_id), DB_T(row_id), DB_T(id_uid_str(uid)), DB_T(object_key),
               DB_N(segment->offset), DB_N(segment->bytes), DB_N(segment->rows),
               DB_N(segment->refused), sql_bytes(segment->sha256.bytes, 32),
               sql_bytes(segment->body_hash, 16), DB_N(segment->received_at), DB_T(answer)));
    return orphan_count_accepted(tx, sink_id, segment, error);
}

err orphan_forget_segment(struct db_tx *tx, str sink_id, const struct ledger_segment *segment,
                          struct error *error)
{
    return db_run(tx, error,
                  "DELETE FROM orphan_segment WHERE sink = ?1 AND object_key = ?2 AND "
                  "byte_offset = ?3",
                  DB_T(sink_id), DB_T(segment->object_key), DB_N(segment->offset));
}

err orphan_load(struct db_tx *tx, struct arena *arena, str sink_id, str object_key,
                struct orphan_row **out_orphans, size_t *out_count, struct error *error)
{
    struct db_rows rows = {0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT " ORPHAN_COLUMNS " FROM orphan_segment WHERE sink = ?1 AND "
                   "object_key = ?2 ORDER BY byte_offset",
                   DB_T(sink_id), DB_T(object_key)));
    TRY(orphan_rows(arena, &rows, out_orphans, error));
    *out_count = rows.row_count;
    return OK;
}

/* ---- the decision table ---- */

struct judging {
    struct arena *arena;
    str sink_id;
    str object_key;
    /* read inside */
    enum sink_state state;
    bool keyed;
    i64 running_us;
    instant now;
    struct orphan_row *orphans;
    size_t count;
    enum orphan_place *places;
    struct ledger_orphan_verdict verdict;
};

static err read_sink(struct db_tx *tx, struct judging *judging, bool *out_known,
                     struct error *error)
{
    struct db_rows rows = {0};
    TRY(sql_select(tx, judging->arena, &rows, error,
                   "SELECT s.state, s.recovering, s.key_columns, i.running_us FROM sink s, "
                   "installation i WHERE s.id = ?1",
                   DB_T(judging->sink_id)));
    *out_known = rows.row_count == 1 && db_number(&rows, 0, 1) == 0 &&
                 db_number(&rows, 0, 0) != SINK_DELETING;
    if (*out_known) {
        judging->state = (enum sink_state)db_number(&rows, 0, 0);
        judging->keyed = db_text(&rows, 0, 2).data != NULL;
        judging->running_us = db_number(&rows, 0, 3);
    }
    judging->now = db_now(tx);
    return OK;
}

/* The lower bound holds by both clocks (I19). */
static bool is_young(const struct judging *judging, const struct orphan_row *orphan)
{
    return judging->now - orphan->first_seen_at < ORPHAN_YOUNG_US ||
           judging->running_us - orphan->running_us < ORPHAN_YOUNG_US;
}

/* The upper bound is reached by any of them: a wrong stamp can only keep. */
static bool is_too_old(const struct judging *judging, const struct orphan_row *orphan)
{
    return judging->now - orphan->first_seen_at >= ORPHAN_OLD_US ||
           judging->running_us - orphan->running_us >= ORPHAN_OLD_US ||
           judging->now - orphan->segment.received_at >= ORPHAN_OLD_US ||
           judging->now - orphan->segment.modified_at >= ORPHAN_OLD_US;
}

static bool is_dead(enum orphan_place place)
{
    return place == ORPHAN_HAS_ROW || place == ORPHAN_PROVEN;
}

/* Whether the table's first lines end it; else the places of all segments are known. */
static err weigh_object(struct db_tx *tx, struct judging *judging, bool *out_ended,
                        struct error *error)
{
    bool known = false;
    *out_ended = true;
    TRY(read_sink(tx, judging, &known, error));
    TRY(orphan_load(tx, judging->arena, judging->sink_id, judging->object_key, &judging->orphans,
                    &judging->count, error));
    if (!known || judging->count == 0) {
        judging->verdict.left = true;
        return OK;
    }
    const struct orphan_row *first = &judging->orphans[0];
    bool is_void = false;
    bool referred = false;
    TRY(orphan_is_void(tx, judging->arena, &first->segment.uid, &is_void, error));
    TRY(orphan_is_referred(tx, judging->arena, judging->sink_id, &first->segment.uid, &referred,
                           error));
    if (!referred && (judging->state == SINK_DELETED || (is_void && !is_young(judging, first)))) {
        judging->verdict.voided = true;
        return orphan_void(tx, judging->sink_id, &first->segment.uid, judging->object_key, error);
    }
    if (judging->state == SINK_DELETED || is_young(judging, first)) {
        judging->verdict.left = true;
        return OK;
    }
    judging->places = arena_array(judging->arena, judging->count, sizeof(*judging->places));
    if (judging->places == NULL) {
        return error_memory(error);
    }
    bool all_dead = !referred;
    for (size_t i = 0; i < judging->count; i++) {
        TRY(orphan_weigh(tx, judging->arena, judging->sink_id, &judging->orphans[i],
                         &judging->places[i], error));
        enum orphan_place place = judging->places[i];
        all_dead = all_dead && is_dead(place);
        judging->verdict.unchecked = judging->verdict.unchecked ||
                                     ((place == ORPHAN_RIVAL || place == ORPHAN_ALONE) &&
                                      judging->orphans[i].chain == ORPHAN_CHAIN_UNKNOWN);
    }
    if (all_dead) {
        judging->verdict.voided = true;
        return orphan_void(tx, judging->sink_id, &first->segment.uid, judging->object_key, error);
    }
    *out_ended = judging->verdict.unchecked;
    return OK;
}

static err keep_segment(struct db_tx *tx, const struct judging *judging,
                        const struct ledger_segment *segment, struct error *error)
{
    return db_run(tx, error,
                  "UPDATE orphan_segment SET kept = 1 WHERE sink = ?1 AND object_key = ?2 AND "
                  "byte_offset = ?3",
                  DB_T(judging->sink_id), DB_T(segment->object_key), DB_N(segment->offset));
}

static err judge_alone(struct db_tx *tx, struct judging *judging, const struct orphan_row *orphan,
                       struct error *error)
{
    const struct ledger_segment *segment = &orphan->segment;
    /* Later values of a keyed sink may have been committed meanwhile (O15). */
    if (segment->batch_id.size == 0 || judging->keyed || is_too_old(judging, orphan)) {
        judging->verdict.kept++;
        return keep_segment(tx, judging, segment, error);
    }
    judging->verdict.adopted++;
    TRY(orphan_insert_pending(tx, judging->arena, judging->sink_id, segment, segment->batch_id,
                              &segment->uid, segment->object_key, error));
    return orphan_forget_segment(tx, judging->sink_id, segment, error);
}

static err judge_segment(struct db_tx *tx, struct judging *judging, size_t index,
                         struct error *error)
{
    const struct orphan_row *orphan = &judging->orphans[index];
    switch (judging->places[index]) {
    case ORPHAN_ROW:
        return orphan_forget_segment(tx, judging->sink_id, &orphan->segment, error);
    case ORPHAN_HAS_ROW:
    case ORPHAN_PROVEN:
        return OK; /* goes with its object (O7) */
    case ORPHAN_WAITS:
    case ORPHAN_RIVAL:
        judging->verdict.quarantined++;
        return orphan_quarantine(tx, judging->arena, judging->sink_id, orphan->segment.batch_id,
                                 &orphan->segment.uid, error);
    case ORPHAN_ALONE:
        return judge_alone(tx, judging, orphan, error);
    }
    return OK;
}

static err judge_body(struct db_tx *tx, void *context, struct error *error)
{
    struct judging *judging = context;
    bool ended = false;
    judging->verdict = (struct ledger_orphan_verdict){0};
    TRY(weigh_object(tx, judging, &ended, error));
    for (size_t i = 0; i < judging->count && !ended; i++) {
        TRY(judge_segment(tx, judging, i, error));
    }
    return OK;
}

err ledger_judge_orphan(const struct db *db, struct arena *arena, str sink_id, str object_key,
                        struct ledger_orphan_verdict *out_verdict, struct error *error)
{
    struct judging judging = {.arena = arena, .sink_id = sink_id, .object_key = object_key};
    TRY(db_transact(db, judge_body, &judging, error));
    *out_verdict = judging.verdict;
    return OK;
}
