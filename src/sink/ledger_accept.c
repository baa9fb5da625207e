#include "sink/ledger_sql.h"

#include "base/assert.h"
#include "base/planted.h"

/* The inserting transaction of step 1.6. Everything that decides is read inside it. */

/* Less than the 7 days after which a row is forgotten. */
#define LOGGED_YOUNG_US (6 * TIME_DAY_US)

struct acceptance {
    struct arena *arena;
    str node_id;
    str sink_id;
    struct ledger_backlog backlog;
    struct ledger_accept *items;
    size_t count;
};

/* What the transaction knows of the sink, and what it adds to it. */
struct accepting_sink {
    str project;
    i64 next_seq;
    instant last_ingest_ts;
    enum error_code refusal; /* of the whole group */
    bool has_quarantine;
    instant now;
    i64 batches;
    i64 rows;
    i64 bytes;
    i64 refused;
    i64 duplicates;
    i64 reject_batches;
    i64 usage_batches;
    i64 usage_refused;
    i64 waiting_batches;
    i64 waiting_bytes;
    instant first_at;
    instant last_at;
};

/* The update comes first: it takes the sink's row, so that seq and ingest_ts are given under its
 * lock (I20) in both databases. */
static err load_sink(struct db_tx *tx, const struct acceptance *acceptance,
                     struct accepting_sink *out_sink, struct error *error)
{
    struct db_rows rows = {0};
    TRY(db_run(tx, error, "UPDATE sink SET next_seq = next_seq WHERE id = ?1",
               DB_T(acceptance->sink_id)));
    TRY(sql_select(tx, acceptance->arena, &rows, error,
                   "SELECT project, next_seq, last_ingest_ts, state, recovering, waiting_batches, "
                   "waiting_bytes FROM sink WHERE id = ?1",
                   DB_T(acceptance->sink_id)));
    struct accepting_sink sink = {.now = db_now(tx)};
    if (rows.row_count == 0) {
        sink.refusal = ERROR_SINK_NOT_FOUND;
        *out_sink = sink;
        return OK;
    }
    sink.project = db_text(&rows, 0, 0);
    sink.next_seq = db_number(&rows, 0, 1);
    sink.last_ingest_ts = db_number(&rows, 0, 2);
    sink.waiting_batches = db_number(&rows, 0, 5);
    sink.waiting_bytes = db_number(&rows, 0, 6);
    enum sink_state state = (enum sink_state)db_number(&rows, 0, 3);
    if ((state == SINK_DELETING || state == SINK_DELETED) && !PLANTED(30)) {
        sink.refusal = ERROR_SINK_DELETED;
    } else if (db_number(&rows, 0, 4) != 0) {
        sink.refusal = ERROR_UNAVAILABLE;
    }
    *out_sink = sink;
    return OK;
}

static err check_node(struct db_tx *tx, const struct acceptance *acceptance,
                      struct accepting_sink *sink, struct error *error)
{
    struct db_rows rows = {0};
    TRY(sql_select(tx, acceptance->arena, &rows, error,
                   "SELECT lease_until FROM node WHERE id = ?1", DB_T(acceptance->node_id)));
    bool alive = PLANTED(12) || (rows.row_count == 1 && db_number(&rows, 0, 0) >= sink->now);
    if (!alive && sink->refusal == ERROR_NONE) {
        sink->refusal = ERROR_UNAVAILABLE;
    }
    return OK;
}

/* What almost never is there, looked up once for the group: the uid's void row, and ids of the sink
 * in quarantine. The items of a group have one uid. */
static err check_group(struct db_tx *tx, const struct acceptance *acceptance,
                       struct accepting_sink *sink, struct error *error)
{
    struct db_rows rows = {0};
    str uid = id_uid_str(&acceptance->items[0].uid);
    TRY(sql_select(tx, acceptance->arena, &rows, error,
                   "SELECT EXISTS (SELECT 1 FROM void_uid WHERE uid = ?1), "
                   "EXISTS (SELECT 1 FROM quarantine WHERE sink = ?2)",
                   DB_T(uid), DB_T(acceptance->sink_id)));
    if (db_number(&rows, 0, 0) != 0 && sink->refusal == ERROR_NONE) {
        sink->refusal = ERROR_UNAVAILABLE;
    }
    sink->has_quarantine = db_number(&rows, 0, 1) != 0;
    return OK;
}

static err check_item(struct db_tx *tx, const struct acceptance *acceptance,
                      const struct accepting_sink *sink, struct ledger_accept *item,
                      struct error *error)
{
    item->refusal = sink->refusal;
    if (item->refusal != ERROR_NONE) {
        return OK;
    }
    if (sink->now - item->began_at > LEDGER_ACCEPT_DEADLINE_US && !PLANTED(12)) {
        item->refusal = ERROR_UNAVAILABLE;
        return OK;
    }
    if (!sink->has_quarantine) {
        return OK;
    }
    struct db_rows rows = {0};
    TRY(sql_select(tx, acceptance->arena, &rows, error,
                   "SELECT count(*) FROM quarantine WHERE sink = ?1 AND batch_id = ?2",
                   DB_T(acceptance->sink_id), DB_T(item->batch_id)));
    if (db_number(&rows, 0, 0) != 0) {
        item->refusal = ERROR_BATCH_QUARANTINED;
    }
    return OK;
}

/* The row that has the id already: this item is a loser (I2, I3). */
static err judge_conflict(struct db_tx *tx, const struct acceptance *acceptance,
                          struct accepting_sink *sink, struct ledger_accept *item, bool *out_found,
                          struct error *error)
{
    struct db_rows rows = {0};
    TRY(sql_select(tx, acceptance->arena, &rows, error,
                   "SELECT body_hash, answer, state, uid FROM batch WHERE sink = ?1 AND "
                   "batch_id = ?2",
                   DB_T(acceptance->sink_id), DB_T(item->batch_id)));
    *out_found = rows.row_count == 1;
    if (!*out_found) {
        return OK;
    }
    item->first_answer = db_text(&rows, 0, 1);
    item->state = (enum batch_state)db_number(&rows, 0, 2);
    str hash = db_at(&rows, 0, 0)->bytes;
    /* The same uid: this very item was inserted before, and its answer was lost. */
    if (str_equal(db_text(&rows, 0, 3), id_uid_str(&item->uid))) {
        item->outcome = ACCEPT_NEW;
    } else if (PLANTED(4) || (hash.size == sizeof(item->body_hash) &&
                              memcmp(hash.data, item->body_hash, hash.size) == 0)) {
        item->outcome = ACCEPT_DUPLICATE;
        sink->duplicates++;
    } else {
        item->outcome = ACCEPT_REUSED;
    }
    return OK;
}

static void count_item(struct accepting_sink *sink, const struct ledger_accept *item)
{
    sink->batches++;
    sink->rows += item->rows;
    sink->bytes += item->bytes;
    sink->refused += item->refused;
    sink->reject_batches += item->refused > 0 ? 1 : 0;
    /* A batch refused whole adds nothing to usage. */
    sink->usage_batches += item->rows > 0 ? 1 : 0;
    sink->usage_refused += item->rows > 0 ? item->refused : 0;
    sink->waiting_batches += item->object_key.size > 0 ? 1 : 0;
    sink->waiting_bytes += item->bytes;
    sink->first_at = sink->first_at == 0 ? item->received_at
                                         : num_min_i64(sink->first_at, item->received_at);
    sink->last_at = num_max_i64(sink->last_at, item->received_at);
}

/* *out_inserted false: the id has a row already, and nothing was changed. */
static err insert_item(struct db_tx *tx, const struct acceptance *acceptance,
                       struct accepting_sink *sink, struct ledger_accept *item, bool *out_inserted,
                       struct error *error)
{
    bool has_object = item->object_key.size > 0;
    instant ingest_ts = num_max_i64(item->received_at, sink->last_ingest_ts);
    enum batch_state state = has_object ? BATCH_PENDING : BATCH_REJECTED;
    i64 changes = 0;
    TRY(sql_change(
        tx, error, &changes,
        "INSERT INTO batch (sink, batch_id, uid, object_key, byte_offset, bytes, rows, "
        "refused, sha256, body_hash, seq, received_at, ingest_ts, answer, state, held, "
        "misses, retried, rows_committed, rows_rejected, finished_at) VALUES (?1, ?2, ?3, ?4, ?5, "
        "?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 0, 0, 0, 0, 0, ?16) "
        "ON CONFLICT (sink, batch_id) DO NOTHING",
        DB_T(acceptance->sink_id), DB_T(item->batch_id), DB_T(id_uid_str(&item->uid)),
        sql_text(item->object_key), DB_N(item->offset), DB_N(item->bytes), DB_N(item->rows),
        DB_N(item->refused), sql_bytes(item->sha256.bytes, sizeof(item->sha256.bytes)),
        sql_bytes(item->body_hash, sizeof(item->body_hash)), DB_N(sink->next_seq),
        DB_N(item->received_at), DB_N(ingest_ts), sql_text(item->answer), DB_N(state),
        has_object ? DB_NIL : DB_N(sink->now)));
    *out_inserted = changes == 1;
    if (!*out_inserted) {
        return OK;
    }
    item->state = state;
    item->outcome = ACCEPT_NEW;
    sink->next_seq++;
    sink->last_ingest_ts = ingest_ts;
    count_item(sink, item);
    return OK;
}

/* refused_reasons is our own flat object of names and numbers: {"too_deep":2,"not_an_object":1}. */
static err count_refused(struct db_tx *tx, str sink_id, str reasons, struct error *error)
{
    str rest = str_slice(reasons, 1, reasons.size > 0 ? reasons.size - 1 : 0);
    str entry;
    while (str_next(&rest, ',', &entry)) {
        str name;
        i64 count = 0;
        if (!str_next(&entry, ':', &name) || name.size < 2 ||
            !str_to_i64(str_trim(entry), &count)) {
            return error_set(error, INVALID, ERROR_INTERNAL, "refused reasons are malformed");
        }
        name = str_trim(name);
        TRY(db_run(tx, error,
                   "INSERT INTO reject_count (sink, reason, rows) VALUES (?1, ?2, ?3) "
                   "ON CONFLICT (sink, reason) DO UPDATE SET rows = reject_count.rows + "
                   "excluded.rows",
                   DB_T(sink_id), DB_T(str_slice(name, 1, name.size - 1)), DB_N(count)));
    }
    return OK;
}

static bool backlog_full(const struct acceptance *acceptance, const struct accepting_sink *sink)
{
    return sink->waiting_batches >= acceptance->backlog.batches_max ||
           sink->waiting_bytes >= acceptance->backlog.bytes_max;
}

static err accept_item(struct db_tx *tx, const struct acceptance *acceptance,
                       struct accepting_sink *sink, struct ledger_accept *item, struct error *error)
{
    TRY(check_item(tx, acceptance, sink, item, error));
    if (item->refusal != ERROR_NONE) {
        item->outcome = ACCEPT_REFUSED;
        return OK;
    }
    bool full = backlog_full(acceptance, sink);
    bool inserted = false;
    if (!full) {
        TRY(insert_item(tx, acceptance, sink, item, &inserted, error));
    }
    if (inserted) {
        return item->refused_reasons.size > 2
                   ? count_refused(tx, acceptance->sink_id, item->refused_reasons, error)
                   : OK;
    }
    bool found = false;
    TRY(judge_conflict(tx, acceptance, sink, item, &found, error));
    assert(found || full);
    if (!found) {
        item->outcome = ACCEPT_REFUSED;
        item->refusal = ERROR_SINK_BACKLOG_FULL;
    }
    return OK;
}

/* The object of a refused item may go at once when no row will ever have its uid (I6). A request
 * that stood still for a day may find that the collector has adopted it: then it stays. */
static err void_refused(struct db_tx *tx, const struct acceptance *acceptance,
                        struct ledger_accept *item, struct error *error)
{
    struct db_rows rows = {0};
    if (item->outcome != ACCEPT_REFUSED || item->object_key.size == 0) {
        return OK;
    }
    TRY(sql_select(tx, acceptance->arena, &rows, error,
                   "SELECT 1 FROM batch WHERE sink = ?1 AND uid = ?2 LIMIT 1",
                   DB_T(acceptance->sink_id), DB_T(id_uid_str(&item->uid))));
    item->adopted = rows.row_count > 0;
    return item->adopted ? OK
                         : db_run(tx, error,
                                  "INSERT INTO void_uid (uid, at) VALUES (?1, ?2) ON CONFLICT "
                                  "(uid) DO NOTHING",
                                  DB_T(id_uid_str(&item->uid)), DB_N(db_now(tx)));
}

static err update_sink(struct db_tx *tx, const struct acceptance *acceptance,
                       const struct accepting_sink *sink, struct error *error)
{
    bool any = sink->batches > 0;
    TRY(db_run(tx, error,
               "UPDATE sink SET next_seq = ?2, last_ingest_ts = ?3, batches = batches + ?4, "
               "rows_accepted = rows_accepted + ?5, bytes_accepted = bytes_accepted + ?6, "
               "rows_refused = rows_refused + ?7, duplicates = duplicates + ?8, "
               "reject_batches = reject_batches + ?9, waiting_batches = ?10, waiting_bytes = ?11, "
               "first_at = coalesce(first_at, ?12), last_at = coalesce(?13, last_at), "
               "reject_last_at = coalesce(?14, reject_last_at) WHERE id = ?1",
               DB_T(acceptance->sink_id), DB_N(sink->next_seq), DB_N(sink->last_ingest_ts),
               DB_N(sink->batches), DB_N(sink->rows), DB_N(sink->bytes), DB_N(sink->refused),
               DB_N(sink->duplicates), DB_N(sink->reject_batches), DB_N(sink->waiting_batches),
               DB_N(sink->waiting_bytes), any ? DB_N(sink->first_at) : DB_NIL,
               any ? DB_N(sink->last_at) : DB_NIL,
               sink->reject_batches > 0 ? DB_N(sink->now) : DB_NIL));
    if (sink->usage_batches == 0) {
        return OK;
    }
    char text[TIME_TEXT_SIZE];
    str month = str_slice(time_format(sink->now, text), 0, 7);
    return db_run(tx, error,
                  "INSERT INTO usage_month (project, sink, month, batches, bytes, rows_accepted, "
                  "rows_rejected) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (project, sink, "
                  "month) DO UPDATE SET batches = usage_month.batches + excluded.batches, "
                  "bytes = usage_month.bytes + excluded.bytes, "
                  "rows_accepted = usage_month.rows_accepted + excluded.rows_accepted, "
                  "rows_rejected = usage_month.rows_rejected + excluded.rows_rejected",
                  DB_T(sink->project), DB_T(acceptance->sink_id), DB_T(month),
                  DB_N(sink->usage_batches), DB_N(sink->bytes), DB_N(sink->rows),
                  DB_N(sink->usage_refused));
}

static err accept_body(struct db_tx *tx, void *context, struct error *error)
{
    struct acceptance *acceptance = context;
    struct accepting_sink sink = {0};
    TRY(load_sink(tx, acceptance, &sink, error));
    TRY(check_node(tx, acceptance, &sink, error));
    TRY(check_group(tx, acceptance, &sink, error));
    for (size_t i = 0; i < acceptance->count; i++) {
        TRY(accept_item(tx, acceptance, &sink, &acceptance->items[i], error));
    }
    for (size_t i = 0; i < acceptance->count; i++) {
        TRY(void_refused(tx, acceptance, &acceptance->items[i], error));
    }
    if (sink.batches == 0 && sink.duplicates == 0) {
        return OK;
    }
    return update_sink(tx, acceptance, &sink, error);
}

err ledger_accept(const struct db *db, struct arena *arena, str node_id, str sink_id,
                  struct ledger_backlog backlog, enum ledger_durability durability,
                  struct ledger_accept *items, size_t count, struct error *error)
{
    struct acceptance acceptance = {.arena = arena,
                                    .node_id = node_id,
                                    .sink_id = sink_id,
                                    .backlog = backlog,
                                    .items = items,
                                    .count = count};
    assert(count > 0);
    return durability == LEDGER_LATER ? db_transact_later(db, accept_body, &acceptance, error)
                                      : db_transact(db, accept_body, &acceptance, error);
}

/* ---- what would be accepted ---- */

struct room_query {
    str sink_id;
    struct ledger_backlog backlog;
    struct ledger_room room;
};

static err find_room_body(struct db_tx *tx, void *context, struct error *error)
{
    struct room_query *query = context;
    struct arena *arena AUTO_ARENA = arena_create((size_t)64 * KIB);
    struct db_rows rows = {0};
    query->room = (struct ledger_room){0};
    TRY(sql_select(tx, arena, &rows, error,
                   "SELECT waiting_batches, waiting_bytes FROM sink WHERE id = ?1 AND state <= 1 "
                   "AND recovering = 0 AND NOT EXISTS (SELECT 1 FROM quarantine WHERE sink = ?1)",
                   DB_T(query->sink_id)));
    if (rows.row_count == 1) {
        query->room = (struct ledger_room){
            .batches = num_max_i64(0, query->backlog.batches_max - db_number(&rows, 0, 0)),
            .bytes = num_max_i64(0, query->backlog.bytes_max - db_number(&rows, 0, 1)),
        };
    }
    return OK;
}

err ledger_find_room(const struct db *db, str sink_id, struct ledger_backlog backlog,
                     struct ledger_room *out_room, struct error *error)
{
    struct room_query query = {.sink_id = sink_id, .backlog = backlog};
    TRY(db_transact_later(db, find_room_body, &query, error));
    *out_room = query.room;
    return OK;
}

/* ---- what the log says was accepted ---- */

struct logged {
    struct acceptance acceptance;
    const bool *voided;
    enum ledger_logged *out;
    i64 running_us;
};

static err load_running(struct db_tx *tx, struct arena *arena, i64 *out_running_us,
                        struct error *error)
{
    struct db_rows rows = {0};
    TRY(db_query(tx, arena, "SELECT running_us FROM installation", NULL, 0, &rows, error));
    if (rows.row_count != 1) {
        return error_set(error, CORRUPT, ERROR_LEDGER_DOWN, "the ledger has no installation row");
    }
    *out_running_us = db_number(&rows, 0, 0);
    return OK;
}

/* *out_found: the id has a row; *out_logged is what it says then. */
static err find_logged(struct db_tx *tx, const struct acceptance *acceptance,
                       const struct ledger_accept *item, enum ledger_logged *out_logged,
                       bool *out_found, struct error *error)
{
    struct db_rows rows = {0};
    TRY(sql_select(tx, acceptance->arena, &rows, error,
                   "SELECT uid, state FROM batch WHERE sink = ?1 AND batch_id = ?2",
                   DB_T(acceptance->sink_id), DB_T(item->batch_id)));
    *out_found = rows.row_count == 1;
    if (!*out_found) {
        return OK;
    }
    enum batch_state state = (enum batch_state)db_number(&rows, 0, 1);
    bool ours = str_equal(db_text(&rows, 0, 0), id_uid_str(&item->uid));
    bool waits = state == BATCH_PENDING || state == BATCH_PLANNED;
    bool ended = state == BATCH_COMMITTED || state == BATCH_REJECTED;
    *out_logged = !ours   ? LEDGER_LOGGED_ORPHAN
                  : waits ? LEDGER_LOGGED_WAITS
                  : ended ? LEDGER_LOGGED_ENDED
                          : LEDGER_LOGGED_NOTHING;
    return OK;
}

/* A row that was forgotten 7 days of running after its end must not come back from a log that was
 * put back, or from a request that stood still for so long (see intake_log.c). */
static bool logged_long_ago(const struct logged *logged, const struct ledger_accept *item)
{
    return logged->running_us - item->began_running_us > LOGGED_YOUNG_US;
}

static err accept_logged_item(struct db_tx *tx, struct logged *logged, struct accepting_sink *sink,
                              size_t index, struct error *error)
{
    struct acceptance *acceptance = &logged->acceptance;
    struct ledger_accept *item = &acceptance->items[index];
    enum ledger_logged *out = &logged->out[index];
    bool long_ago = logged_long_ago(logged, item);
    bool inserted = false;
    item->began_at = sink->now; /* it was judged in time when it was logged */
    TRY(check_item(tx, acceptance, sink, item, error));
    bool plain = !logged->voided[index] && item->refusal == ERROR_NONE && !long_ago;
    if (plain) {
        TRY(insert_item(tx, acceptance, sink, item, &inserted, error));
    }
    if (inserted) {
        *out = item->object_key.size > 0 ? LEDGER_LOGGED_WAITS : LEDGER_LOGGED_ENDED;
        return item->refused_reasons.size > 2
                   ? count_refused(tx, acceptance->sink_id, item->refused_reasons, error)
                   : OK;
    }
    bool found = false;
    TRY(find_logged(tx, acceptance, item, out, &found, error));
    if (found) {
        *out = long_ago && *out == LEDGER_LOGGED_ENDED ? LEDGER_LOGGED_NOTHING : *out;
        return OK;
    }
    assert(!plain);
    bool taken_back = logged->voided[index] || sink->refusal == ERROR_SINK_DELETED;
    *out = taken_back ? LEDGER_LOGGED_NOTHING : LEDGER_LOGGED_ORPHAN;
    return OK;
}

static err accept_logged_body(struct db_tx *tx, void *context, struct error *error)
{
    struct logged *logged = context;
    struct acceptance *acceptance = &logged->acceptance;
    struct accepting_sink sink = {0};
    TRY(load_running(tx, acceptance->arena, &logged->running_us, error));
    TRY(load_sink(tx, acceptance, &sink, error));
    TRY(check_group(tx, acceptance, &sink, error));
    for (size_t i = 0; i < acceptance->count; i++) {
        TRY(accept_logged_item(tx, logged, &sink, i, error));
    }
    return sink.batches == 0 ? OK : update_sink(tx, acceptance, &sink, error);
}

err ledger_accept_logged(const struct db *db, struct arena *arena, str sink_id,
                         struct ledger_accept *items, const bool *voided, size_t count,
                         enum ledger_logged *out_logged, struct error *error)
{
    struct logged logged = {
        .acceptance = {.arena = arena, .sink_id = sink_id, .items = items, .count = count},
        .voided = voided,
        .out = out_logged,
    };
    assert(count > 0);
    return db_transact_later(db, accept_logged_body, &logged, error);
}

/* ---- beside it ---- */

struct running {
    struct arena *arena;
    i64 us;
};

static err running_body(struct db_tx *tx, void *context, struct error *error)
{
    struct running *running = context;
    return load_running(tx, running->arena, &running->us, error);
}

err ledger_running(const struct db *db, i64 *out_running_us, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)64 * KIB);
    struct running running = {.arena = arena};
    TRY(db_read(db, running_body, &running, error));
    *out_running_us = running.us;
    return OK;
}

static err count_duplicate_body(struct db_tx *tx, void *context, struct error *error)
{
    const str *sink_id = context;
    return db_run(tx, error, "UPDATE sink SET duplicates = duplicates + 1 WHERE id = ?1",
                  DB_T(*sink_id));
}

err ledger_count_duplicate(const struct db *db, str sink_id, struct error *error)
{
    return db_transact(db, count_duplicate_body, &sink_id, error);
}
