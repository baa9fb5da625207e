#include "sim.h"

#include "base/assert.h"
#include "sink/batch.h"
#include "sink/plan.h"
#include "table/document.h"

#include <stdarg.h>
#include <stdio.h>

/* The judge. It reads the real ledger, store and tables and compares them with what producers were
 * told. */

void sim_violate(const char *rule, const char *format, ...)
{
    char text[sizeof(sim->result->violation.text)];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    sim_trace("VIOLATION %s: %s", rule, text);
    if (!sim->result->failed) {
        sim->result->failed = true;
        (void)snprintf(sim->result->violation.rule, sizeof(sim->result->violation.rule), "%s",
                       rule);
        memcpy(sim->result->violation.text, text, sizeof(text));
    }
    sim->stopping = true;
}

void sim_trace(const char *format, ...)
{
    if (!sim->config->trace || sim->stopping) {
        return;
    }
    i64 ms = sim->now / 1000;
    const struct actor *actor = sim->current;
    const char *process = actor == NULL || actor->process == NULL ? "" : actor->process->name;
    (void)printf("%3lldd %02lld:%02lld:%02lld.%03lld  %-12s %-14s ", (long long)(ms / 86400000),
                 (long long)(ms / 3600000 % 24), (long long)(ms / 60000 % 60),
                 (long long)(ms / 1000 % 60), (long long)(ms % 1000), process,
                 actor == NULL ? "" : actor->name);
    va_list arguments;
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
    (void)printf("\n");
}

/* ---- reading the ledger ---- */

struct query {
    struct arena *arena;
    const char *sql;
    struct db_value values[3];
    size_t count;
    struct db_rows rows;
};

static err query_body(struct db_tx *tx, void *context, struct error *error)
{
    struct query *query = context;
    return db_query(tx, query->arena, query->sql, query->values, query->count, &query->rows, error);
}

static const struct db_rows *ask(struct query *query)
{
    struct error error = {0};
    err read = db_read(&sim->raw_db, query_body, query, &error);
    if (read != OK) {
        (void)printf("%s\n", error.message);
    }
    assert(read == OK);
    return &query->rows;
}

/* ---- at any instant ---- */

static void check_books(struct arena *arena)
{
    struct query query = {
        .arena = arena,
        .sql = "SELECT s.id, s.rows_accepted, s.rows_committed, s.rows_rejected, s.rows_discarded, "
               "s.waiting_batches, count(b.seq), coalesce(sum(b.rows), 0), s.recovering FROM sink "
               "s LEFT JOIN batch b ON b.sink = s.id AND b.state <= 1 GROUP BY s.id"};
    const struct db_rows *rows = ask(&query);
    for (size_t i = 0; i < rows->row_count; i++) {
        i64 accepted = db_number(rows, i, 1);
        i64 known = db_number(rows, i, 2) + db_number(rows, i, 3) + db_number(rows, i, 4) +
                    db_number(rows, i, 7);
        if (accepted != known) {
            sim_violate("I13", "sink %.*s: %lld rows accepted, %lld accounted for",
                        STR_ARG(db_text(rows, i, 0)), (long long)accepted, (long long)known);
        }
        if (db_number(rows, i, 5) != db_number(rows, i, 6) && db_number(rows, i, 8) == 0) {
            sim_violate("I13", "sink %.*s: %lld batches said to wait, %lld do",
                        STR_ARG(db_text(rows, i, 0)), (long long)db_number(rows, i, 5),
                        (long long)db_number(rows, i, 6));
        }
    }
}

/* What was seen of a batch row: state in the low bits, seq above. */
static void check_batches(struct arena *arena)
{
    struct query query = {.arena = arena,
                          .sql = "SELECT b.sink || '/' || b.batch_id, b.seq, b.state FROM batch b "
                                 "JOIN sink s ON s.id = b.sink WHERE s.recovering = 0"};
    if (sim_stopped()) {
        return; /* what the copy says is not what was */
    }
    const struct db_rows *rows = ask(&query);
    for (size_t i = 0; i < rows->row_count; i++) {
        str key = db_text(rows, i, 0);
        i64 seq = db_number(rows, i, 1);
        i64 state = db_number(rows, i, 2);
        bool is_new = false;
        u64 *seen = map_get(sim->shadow, key);
        if (seen == NULL) {
            seen = map_put(sim->shadow, str_copy(sim->arena, key), &is_new);
            assert(seen != NULL);
        }
        i64 old_state = (i64)(*seen & 7);
        i64 old_seq = (i64)(*seen >> 3);
        if (!is_new && old_seq != seq && (old_state <= BATCH_PLANNED || seq < old_seq)) {
            sim_violate("I2", "batch %.*s was row %lld and is row %lld", STR_ARG(key),
                        (long long)old_seq, (long long)seq);
        }
        if (!is_new && old_seq == seq && old_state > BATCH_PLANNED && old_state != state) {
            sim_violate("I17", "batch %.*s went from state %lld to %lld", STR_ARG(key),
                        (long long)old_state, (long long)state);
        }
        *seen = (u64)seq << 3 | (u64)state;
    }
}

static void check_voids(struct arena *arena)
{
    struct query query = {.arena = arena,
                          .sql = "SELECT v.uid FROM void_uid v JOIN batch b ON b.uid = v.uid"};
    const struct db_rows *rows = ask(&query);
    if (rows->row_count > 0) {
        sim_violate("I6", "uid %.*s is void and in use", STR_ARG(db_text(rows, 0, 0)));
    }
}

void sim_check_ledger(void)
{
    struct arena_mark mark = arena_mark(sim->scratch);
    check_books(sim->scratch);
    check_batches(sim->scratch);
    check_voids(sim->scratch);
    arena_reset_to(sim->scratch, mark);
}

/* ---- objects ---- */

/* The batch of `_sink/<sink>/rejects/b0001…`; NULL: another key. */
static struct sim_batch *batch_of_rejects(str key)
{
    i64 at = str_find(key, STR("/rejects/b"));
    i64 index = 0;
    if (at < 0 || str_ends(key, STR(".intake.ndjson")) ||
        !str_to_i64(str_slice(key, (size_t)at + 10, (size_t)at + 14), &index) || index < 0 ||
        index >= sim->batch_count) {
        return NULL;
    }
    struct sim_batch *batch = &sim->batches[index];
    bool same = str_find(key, str_from(sim->sinks[batch->sink].id)) >= 0;
    return same ? batch : NULL;
}

void sim_check_put(str key, str body)
{
    struct sim_batch *batch = batch_of_rejects(key);
    if (batch == NULL) {
        return;
    }
    u16 rows[SIM_ROWS_MAX];
    size_t count = sim_rows_in(body, rows, SIM_ROWS_MAX);
    memset(batch->rejects, 0, sizeof(batch->rejects));
    for (size_t i = 0; i < count; i++) {
        batch->rejects[rows[i] % SIM_ROWS_MAX] = 1;
    }
    batch->rejects_seen = true;
}

bool sim_recovering(str sink_id)
{
    struct arena_mark mark = arena_mark(sim->scratch);
    struct query query = {.arena = sim->scratch,
                          .sql = "SELECT recovering FROM sink WHERE id = ?1",
                          .values = {DB_T(sink_id)},
                          .count = 1};
    const struct db_rows *rows = ask(&query);
    bool recovering = rows->row_count == 1 && db_number(rows, 0, 0) != 0;
    arena_reset_to(sim->scratch, mark);
    return sim_stopped() || recovering;
}

/* `_sink/<sink>/<batch>.<uid>.ndjson` that no row refers to: its uid is void, or it is an intake's
 * own that lost its id. What was sent before a restore is not known to the copy. */
static void check_void(struct arena *arena, str key, i64 sent_at)
{
    size_t tail = ID_UID_SIZE + sizeof(".ndjson") - 1;
    const struct actor *actor = sim->current;
    bool intake = actor != NULL && actor->process != NULL && actor->process->role == SIM_INTAKE;
    struct store_object object = {0};
    if (intake || sent_at < sim->now || str_find(key, STR("/plans/")) >= 0 ||
        str_find(key, STR("/sink/")) >= 0 || !str_ends(key, STR(".ndjson")) || key.size < tail ||
        store_head(&sim->raw_store, arena, key, &object, NULL) != OK) {
        return;
    }
    str uid = str_slice(key, key.size - tail, key.size - tail + ID_UID_SIZE);
    struct query query = {.arena = arena,
                          .sql = "SELECT 1 FROM batch WHERE uid = ?1 UNION SELECT 1 FROM void_uid "
                                 "WHERE uid = ?1",
                          .values = {DB_T(uid)},
                          .count = 1};
    if (ask(&query)->row_count == 0) {
        sim_violate("I6", "%.*s goes, without a row and without a void row", STR_ARG(key));
    }
}

/* A file of rejects that is old goes by the sweep when its batch is final; before, it is an earlier
 * try's, where its sink is rolled at all. */
static bool is_waiting(const struct sim_batch *batch)
{
    struct arena_mark mark = arena_mark(sim->scratch);
    struct query query = {
        .arena = sim->scratch,
        .sql = "SELECT 1 FROM batch b JOIN sink s ON s.id = b.sink WHERE b.sink = ?1 AND "
               "b.batch_id = ?2 AND b.state <= 1 AND s.state = 0 AND s.recovering = 0",
        .values = {DB_T(str_from(sim->sinks[batch->sink].id)), DB_T(str_from(batch->id))},
        .count = 2};
    bool waits = ask(&query)->row_count > 0;
    arena_reset_to(sim->scratch, mark);
    return waits;
}

/* Before the ledger was put back; the fence of the delete has taken the property away. */
static bool was_deleting(str sink_id)
{
    for (i32 i = 0; i < sim->sink_count; i++) {
        const struct sim_sink *sink = &sim->sinks[i];
        if (str_equal(str_from(sink->id), sink_id)) {
            return sink->deleting && sink->deleting_at <= sim->restored_at;
        }
    }
    return false;
}

/* Asked when a remove is sent and, if it lands late, again when it lands. One that was sent before
 * a restore was proven by the table of then: when the owner, or the sink's own delete, has taken
 * that away, `recover` stops (step 3), and what the copy has waiting can not be told from what was
 * committed. */
void sim_check_remove(str key, i64 sent_at)
{
    struct sim_batch *batch = batch_of_rejects(key);
    const u64 *put_at = map_get(sim->times, key);
    /* The store stamps by a clock of its own. */
    i64 apart = num_max_i64(2 * TIME_DAY_US, sim->ledger_offset_max);
    bool old = put_at != NULL && SIM_EPOCH + sim->now - (instant)*put_at > 7 * TIME_DAY_US - apart;
    if (batch != NULL && (!old || is_waiting(batch))) {
        memset(batch->rejects, 0, sizeof(batch->rejects));
    }
    if (!str_starts(key, STR("_sink/")) || str_find(key, STR("/rejects/")) >= 0) {
        return;
    }
    struct arena_mark mark = arena_mark(sim->scratch);
    struct query query = {
        .arena = sim->scratch,
        .sql = "SELECT b.sink, b.batch_id, s.table_uuid FROM batch b JOIN sink s ON s.id = b.sink "
               "WHERE b.object_key = ?1 AND b.state <= 1",
        .values = {DB_T(key)},
        .count = 1};
    check_void(sim->scratch, key, sent_at);
    const struct db_rows *rows = ask(&query);
    bool waits = rows->row_count > 0 && !sim_recovering(db_text(rows, 0, 0));
    bool unknown = waits && sent_at < sim->restored_at &&
                   (sim_table_broken(db_text(rows, 0, 2)) || was_deleting(db_text(rows, 0, 0)));
    if (waits && !unknown) {
        sim_violate("I16", "%.*s goes, and batch %.*s waits for it", STR_ARG(key),
                    STR_ARG(db_text(rows, 0, 1)));
    }
    arena_reset_to(sim->scratch, mark);
}

/* ---- commits ---- */

static const json_t *find_by(const json_t *array, const char *member, const char *value)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);
        if (str_equal(document_text(item, member), str_from(value))) {
            return item;
        }
    }
    return NULL;
}

void sim_check_commit(const json_t *request)
{
    static const char *const asserts[] = {"assert-table-uuid", "assert-ref-snapshot-id",
                                          "assert-current-schema-id"};
    if (sim->config->planted != 0) {
        return; /* what it does must be seen by its consequences */
    }
    const json_t *requirements = json_object_get(request, "requirements");
    const json_t *updates = json_object_get(request, "updates");
    for (size_t i = 0; i < ARRAY_COUNT(asserts); i++) {
        if (find_by(requirements, "type", asserts[i]) == NULL) {
            sim_violate("I9", "a request of ours has no %s", asserts[i]);
        }
    }
    bool grows = find_by(updates, "action", "add-snapshot") != NULL ||
                 find_by(updates, "action", "add-schema") != NULL;
    if (!grows) {
        sim_violate("I9", "a request of ours moves nothing that a late copy would break on");
    }
}

/* A version has landed: its property names a plan that may be there. That of a sink which was
 * deleted before the ledger was put back is void there, and may be named again where the version of
 * the delete's fence went with the ledger that knew it. */
void sim_check_landed(str property)
{
    struct plan_property read = {0};
    if (property.data == NULL || !plan_parse_property(property, &read) || read.n == 0 ||
        !str_equal(read.installation, sim->installation)) {
        return;
    }
    struct arena_mark mark = arena_mark(sim->scratch);
    struct query query = {.arena = sim->scratch,
                          .sql = "SELECT state FROM plan WHERE id = ?1",
                          .values = {DB_T(read.id)},
                          .count = 1};
    const struct db_rows *rows = ask(&query);
    i64 state = rows->row_count == 1 ? db_number(rows, 0, 0) : -1;
    if (rows->row_count == 1 && (state == PLAN_OPEN || state == PLAN_VOID) &&
        !sim_recovering(read.sink_id) && !was_deleting(read.sink_id)) {
        sim_violate("I10", "the property reads plan %.*s, whose state is %lld", STR_ARG(read.id),
                    (long long)state);
    }
    struct store_object head = {0};
    str key = batch_plan_key(sim->scratch, read.sink_id, read.n, read.id);
    if (sim->now < 30 * TIME_DAY_US &&
        store_head(&sim->raw_store, sim->scratch, key, &head, NULL) != OK) {
        sim_violate("I7", "plan %.*s is committed and has no object", STR_ARG(read.id));
    }
    arena_reset_to(sim->scratch, mark);
}

/* ---- at the end ---- */

struct verdict {
    i64 state; /* -1: the ledger does not know it */
    bool may_wait;
};

static void check_known_rows(const struct sim_batch *batch, const struct verdict *verdict)
{
    i32 count = batch->row_counts[batch->acknowledged];
    for (i32 i = 0; i < count; i++) {
        enum sim_row kind = batch->rows[i];
        i32 wanted = kind == SIM_ROW_GOOD ? 1 : 0;
        bool rejected = batch->rejects[i] != 0;
        bool wrong = kind == SIM_ROW_NARROW
                         ? batch->landed[i] + (rejected ? 1 : 0) != 1
                         : batch->landed[i] != wanted || (kind == SIM_ROW_BAD) != rejected;
        if (kind == SIM_ROW_REFUSED) {
            wrong = batch->landed[i] != 0 || rejected;
        }
        if (wrong) {
            sim_violate(batch->landed[i] == 0 && !rejected ? "lost" : "I15",
                        "batch %s, acknowledged, state %lld: row %d of kind %d is %d times in the "
                        "table and %s the rejects",
                        batch->id, (long long)verdict->state, i, (int)kind, batch->landed[i],
                        rejected ? "in" : "not in");
        }
    }
}

/* ---- what waits in quarantine: ids that were sent with two contents ---- */

static bool holds_body(struct arena *arena, const struct sim_batch *batch, str uid)
{
    struct store_list list = {0};
    str prefix = str_format(arena, "_sink/%s/", sim->sinks[batch->sink].id);
    err listed = store_list(&sim->raw_store, arena, prefix, STR(""), 10000, &list, NULL);
    assert(listed == OK);
    i32 stored = 0;
    for (i32 i = 0; i < batch->row_counts[batch->acknowledged]; i++) {
        stored += batch->rows[i] != SIM_ROW_REFUSED ? 1 : 0;
    }
    for (size_t i = 0; i < list.count; i++) {
        struct store_object object = {0};
        u16 rows[SIM_BATCHES_MAX];
        i32 held = 0;
        if (str_find(list.objects[i].key, uid) < 0 ||
            store_get(&sim->raw_store, arena, list.objects[i].key, &object, NULL) != OK) {
            continue;
        }
        size_t count = sim_rows_in(object.body, rows, ARRAY_COUNT(rows));
        for (size_t j = 0; j < count; j++) {
            held += &sim->batches[rows[j] / SIM_ROWS_MAX] == batch ? 1 : 0;
        }
        return held == stored;
    }
    return false;
}

/* An acknowledged batch may wait for a person when its id was sent with other bytes too; its own
 * bytes are then still there. */
static bool waits_in_quarantine(struct arena *arena, const struct sim_batch *batch)
{
    struct query query = {
        .arena = arena,
        .sql = "SELECT uids FROM quarantine WHERE sink = ?1 AND batch_id = ?2",
        .values = {DB_T(str_from(sim->sinks[batch->sink].id)), DB_T(str_from(batch->id))},
        .count = 2};
    const struct db_rows *rows = ask(&query);
    bool twice = batch->body_count > 1 && batch->sent[0] && batch->sent[1];
    if (rows->row_count == 0 || !twice) {
        return false;
    }
    str rest = db_text(rows, 0, 0);
    str uid = {0};
    while (str_next(&rest, ',', &uid)) {
        if (holds_body(arena, batch, uid)) {
            return true;
        }
    }
    return false;
}

/* Answered early, and then its process stood still for days before it died: the replay makes no row
 * of what is so old (L6), but keeps its object, which the collector takes in a day later. */
static bool is_orphan(struct arena *arena, const struct sim_batch *batch)
{
    struct store_list list = {0};
    if (!sim->logged || sim->now - batch->sent_at < 5 * TIME_DAY_US) {
        return false;
    }
    struct uid any;
    memset(any.text, '0', sizeof(any.text));
    str key = batch_object_key(arena, str_from(sim->sinks[batch->sink].id), str_from(batch->id),
                               &any);
    i64 dot = str_find_last_byte(str_slice(key, 0, key.size - (sizeof(".ndjson") - 1)), '.');
    err listed = store_list(&sim->raw_store, arena, str_slice(key, 0, (size_t)dot + 1), STR(""), 1,
                            &list, NULL);
    assert(listed == OK);
    return list.count > 0;
}

/* The rows that landed are all good ones of one body that was sent, or none at all. */
static void check_one_body(const struct sim_batch *batch, bool must_be_none)
{
    for (i32 generation = -1; generation < batch->body_count; generation++) {
        bool possible = generation < 0 ? true : batch->sent[generation] && !must_be_none;
        i32 count = generation < 0 ? 0 : batch->row_counts[generation];
        for (i32 i = 0; i < SIM_ROWS_MAX && possible; i++) {
            i32 landed = batch->landed[i];
            bool in_body = i < count;
            possible = !in_body                           ? landed == 0
                       : batch->rows[i] == SIM_ROW_GOOD   ? landed == 1
                       : batch->rows[i] == SIM_ROW_NARROW ? landed <= 1
                                                          : landed == 0;
        }
        if (possible) {
            return;
        }
    }
    sim_violate(must_be_none ? "I23" : "never sent",
                "the rows of batch %s in the table are those of no body that was sent", batch->id);
}

static struct verdict judge_row(struct arena *arena, const struct sim_batch *batch)
{
    const struct sim_sink *sink = &sim->sinks[batch->sink];
    struct query query = {
        .arena = arena,
        .sql = "SELECT b.state, b.held, s.state, s.state_reason, s.table_uuid, b.held_reason FROM "
               "batch b JOIN sink s ON s.id = b.sink WHERE b.sink = ?1 AND b.batch_id = ?2",
        .values = {DB_T(str_from(sink->id)), DB_T(str_from(batch->id))},
        .count = 2};
    const struct db_rows *rows = ask(&query);
    struct verdict verdict = {.state = -1};
    if (rows->row_count == 0) {
        return verdict;
    }
    verdict.state = db_number(rows, 0, 0);
    verdict.may_wait = sim_table_broken(db_text(rows, 0, 4));
    if (verdict.state <= BATCH_PLANNED && !verdict.may_wait) {
        sim_violate("I29",
                    "batch %s is stuck in state %lld, held %lld (%.*s); its sink's state is "
                    "%lld %.*s",
                    batch->id, (long long)verdict.state, (long long)db_number(rows, 0, 1),
                    STR_ARG(db_text(rows, 0, 5)), (long long)db_number(rows, 0, 2),
                    STR_ARG(db_text(rows, 0, 3)));
    }
    return verdict;
}

static void check_batch(struct arena *arena, const struct sim_batch *batch)
{
    const struct sim_sink *sink = &sim->sinks[batch->sink];
    struct verdict verdict = judge_row(arena, batch);
    bool discarded = verdict.state == BATCH_DISCARDED;
    /* Of a table that was dropped, or whose property is gone, nothing can be proven any more; nor
     * of what an older copy of a ledger had waiting when its sink was deleted. */
    bool put_back = sim->restored_at > 0 && sink->deleting_at <= sim->restored_at;
    check_one_body(batch, discarded && !verdict.may_wait && !put_back);
    if (sim->stopping || batch->acknowledged < 0 || discarded) {
        return;
    }
    bool waits = verdict.state == BATCH_PENDING || verdict.state == BATCH_PLANNED;
    if (waits && verdict.may_wait) {
        return;
    }
    if (verdict.state == -1 && sink->deleting) {
        return; /* discarded and forgotten */
    }
    if (verdict.state == -1 && is_orphan(arena, batch)) {
        return;
    }
    if (verdict.state == -1 && (waits_in_quarantine(arena, batch) ||
                                sim_table_broken(str_from(sim->tables[sink->table].uuid)))) {
        return;
    }
    check_known_rows(batch, &verdict);
}

static void check_recovers(struct arena *arena)
{
    struct query query = {.arena = arena,
                          .sql = "SELECT id, table_uuid, state_reason FROM sink WHERE recovering = "
                                 "1 AND state <= 1"};
    const struct db_rows *rows = ask(&query);
    for (size_t i = 0; i < rows->row_count; i++) {
        if (!sim_table_broken(db_text(rows, i, 1))) {
            sim_violate("I27", "the recover of sink %.*s does not end: %.*s",
                        STR_ARG(db_text(rows, i, 0)), STR_ARG(db_text(rows, i, 2)));
        }
    }
}

static void check_deletes(struct arena *arena)
{
    struct query query = {.arena = arena, .sql = "SELECT id FROM sink WHERE state = 3"};
    const struct db_rows *rows = ask(&query);
    if (rows->row_count > 0) {
        sim_violate("I29", "the delete of sink %.*s does not end", STR_ARG(db_text(rows, 0, 0)));
    }
}

void sim_check_final(void)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    sim_check_ledger();
    for (i32 i = 0; i < sim->batch_count && !sim->stopping; i++) {
        check_batch(arena, &sim->batches[i]);
    }
    if (!sim->stopping) {
        check_deletes(arena);
        check_recovers(arena);
    }
    if (!sim->stopping) {
        sim_table_check_final();
    }
}
