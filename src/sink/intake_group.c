#include "sink/intake_group.h"

#include "base/assert.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/planted.h"
#include "sink/batch.h"
#include "sink/intake_lease.h"
#include "sink/intake_line.h"
#include "sink/intake_told.h"

/* How often a transaction of a logged group is asked for whose answer is lost. */
enum { LOGGED_TRIES_MAX = 8 };

/* ---- known ids ---- */

static bool same_body(const struct intake_send *send, const u8 body_hash[16])
{
    struct sha256 hash = intake_body_hash(&send->body);
    return crypto_equal(hash.bytes, body_hash, 16) || PLANTED(4);
}

static void refuse_reused(struct intake_send *send)
{
    struct error error = {0};
    err kind = error_set(&error, CONFLICT, ERROR_IDEMPOTENCY_KEY_REUSED,
                         "the id %.*s was used for other bytes", STR_ARG(send->batch_id));
    assert(kind == CONFLICT);
    error_hint(&error, "a new batch wants a new Idempotency-Key");
    intake_send_refuse(send, &error);
}

static void answer_duplicate(const struct intake_groups *groups, struct intake_send *send,
                             str first_answer, enum batch_state state)
{
    metric_add(METRIC_INTAKE_DUPLICATES, 1);
    if (send->wait_us > 0) {
        send->answer = intake_answer_with_state(send->arena, first_answer, state,
                                                INTAKE_ANSWER_DUPLICATE);
        intake_wait_add(groups->waits, send);
        return;
    }
    intake_send_duplicate(send, first_answer, state);
}

bool intake_group_known(const struct intake_groups *groups, struct intake_send *send)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)MIB);
    struct ledger_batch batch = {0};
    struct error error = {0};
    err result = ledger_find_batch(groups->options->db, arena, send->sink->id, send->batch_id,
                                   &batch, &error);
    if (result == NOT_FOUND) {
        return false;
    }
    if (result != OK) {
        intake_send_refuse_code(send, ERROR_LEDGER_DOWN);
        return true;
    }
    if (!same_body(send, batch.body_hash)) {
        refuse_reused(send);
        return true;
    }
    error_clear(&error);
    result = ledger_count_duplicate(groups->options->db, send->sink->id, &error);
    if (result != OK) {
        log_error("duplicate_not_counted", result, &error, send->sink->id);
    }
    answer_duplicate(groups, send, batch.answer, batch.state);
    return true;
}

void intake_group_look_again(struct intake_group *group)
{
    while (group->again != NULL) {
        struct intake_send *send = group->again;
        group->again = send->next;
        send->next = NULL;
        send->look_again = false;
        if (!intake_group_known(group->groups, send)) {
            (void)pthread_mutex_lock(&group->sink->lock);
            intake_line_append(group->sink, send);
            (void)pthread_mutex_unlock(&group->sink->lock);
        }
    }
}

/* ---- durable objects ---- */

/* A batch's entry in the object's metadata: id, offset, bytes, rows, refused, both hashes. */
static void entry_print(buf *out, const struct ledger_accept *item)
{
    buf_append(out, out->size > 0 ? STR(";") : STR(""));
    buf_append_format(out, "%.*s,%lld,%lld,%lld,%lld,", STR_ARG(item->batch_id),
                      (long long)item->offset, (long long)item->bytes, (long long)item->rows,
                      (long long)item->refused);
    base64_encode_url(out, (str){(const char *)item->sha256.bytes, sizeof(item->sha256.bytes)});
    buf_append_byte(out, ',');
    base64_encode_url(out, (str){(const char *)item->body_hash, sizeof(item->body_hash)});
}

MUST_USE static err group_key_trouble(struct error *error)
{
    return error_set(error, LIMIT, ERROR_OVERLOADED, "the group is too large");
}

/* The rejects file of each send that has one; the others' are empty. */
MUST_USE static err print_rejects(struct intake_group *group, size_t index, struct error *error)
{
    const struct intake_send *send = group->sends[index];
    size_t room = 0;
    for (size_t i = 0; i < send->body.refused_count; i++) {
        room += send->body.refused[i].bytes.size / 3 * 4 + KIB;
    }
    buf lines = buf_create(group->arena, room, room);
    struct reject_batch batch = {.batch_id = send->batch_id,
                                 .received_at = send->received_at,
                                 .schema_id = -1,
                                 .mapping_version = -1};
    if (room > 0) {
        intake_body_print_rejects(&send->body, &batch, &lines);
    }
    group->rejects[index] = room > 0 ? buf_str(&lines) : STR("");
    return buf_ok(&lines) ? OK : group_key_trouble(error);
}

err intake_rejects_meta(struct arena *arena, str rejects, struct store_meta *out_meta,
                        struct error *error)
{
    *out_meta = (struct store_meta){.content_type = STR("application/x-ndjson"), .count = 1};
    out_meta->entries[0] = (struct store_meta_entry){STR("sha256"), reject_hash(arena, rejects)};
    return out_meta->entries[0].value.data != NULL ? OK : error_memory(error);
}

static enum store_durability group_durability(const struct intake_group *group)
{
    return group->logged.open ? STORE_LATER : STORE_DURABLE;
}

MUST_USE static err put_rejects(struct intake_group *group, size_t index, struct error *error)
{
    struct store_meta meta = {0};
    str key = batch_intake_rejects_key(group->arena, group->sink->id, group->items[index].batch_id,
                                       &group->uid);
    TRY(intake_rejects_meta(group->arena, group->rejects[index], &meta, error));
    if (key.data == NULL) {
        return group_key_trouble(error);
    }
    meta.durability = group_durability(group);
    return store_put(&group->warehouse->files, key, group->rejects[index], &meta, error);
}

/* The pieces of the object, a line end between two batches, and the offsets in it. */
static void object_pieces(struct intake_group *group)
{
    str *pieces = group->pieces;
    size_t count = 0;
    i64 offset = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct intake_send *send = group->sends[i];
        if (!intake_send_has_rows(send)) {
            continue;
        }
        if (count > 0) {
            pieces[count++] = STR("\n");
            offset++;
        }
        group->items[i].offset = offset;
        pieces[count++] = intake_body_stored(&send->body);
        offset += (i64)intake_body_stored(&send->body).size;
    }
    group->piece_count = count;
    group->body_size = (size_t)offset;
}

err intake_object_meta(struct arena *arena, str sink_id, const struct ledger_accept *items,
                       size_t count, struct store_meta *out_meta, struct error *error)
{
    buf batches = buf_create(arena, 2 * KIB, STORE_META_LIST_BYTES_MAX);
    instant received_at = 0;
    i64 rows = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ledger_accept *item = &items[i];
        if (item->rows > 0) {
            entry_print(&batches, item);
            received_at = received_at == 0 ? item->received_at : received_at;
            rows += item->rows;
        }
    }
    str received = time_format_in(arena, received_at);
    str row_text = str_format(arena, "%lld", (long long)rows);
    if (!buf_ok(&batches) || received.data == NULL || row_text.data == NULL) {
        return group_key_trouble(error);
    }
    *out_meta = (struct store_meta){
        .content_type = STR("application/x-ndjson"),
        .entries = {{STR("sink"), sink_id},
                    {STR("received"), received},
                    {STR("rows"), row_text},
                    {STR("batches"), buf_str(&batches)}},
        .count = 4,
    };
    return OK;
}

/* Named after its first batch with rows; empty when none has any. */
MUST_USE static err name_object(struct intake_group *group, struct error *error)
{
    for (size_t i = 0; i < group->count; i++) {
        if (intake_send_has_rows(group->sends[i])) {
            group->object_key = batch_object_key(group->arena, group->sink->id,
                                                 group->sends[i]->batch_id, &group->uid);
            return group->object_key.data != NULL ? OK : group_key_trouble(error);
        }
    }
    return OK;
}

MUST_USE static err put_object(struct intake_group *group, struct error *error)
{
    struct store_meta meta = {0};
    if (group->piece_count == 0) {
        return OK;
    }
    TRY(intake_object_meta(group->arena, group->sink->id, group->items, group->count, &meta,
                           error));
    meta.durability = group_durability(group);
    TRY(store_put_pieces(&group->warehouse->files, group->object_key, group->pieces,
                         group->piece_count, &meta, error));
    metric_add(METRIC_INTAKE_OBJECTS, 1);
    return OK;
}

err intake_group_put_rejects(struct intake_group *group, struct error *error)
{
    for (size_t i = 0; i < group->count; i++) {
        if (group->rejects[i].size > 0) {
            TRY(put_rejects(group, i, error));
        }
    }
    return OK;
}

err intake_group_put(struct intake_group *group, struct error *error)
{
    TRY(intake_group_put_rejects(group, error));
    TRY(put_object(group, error));
    CRASH_POINT(intake_after_put);
    return OK;
}

/* ---- the log ---- */

static struct intake_log_record log_record(const struct intake_group *group,
                                           enum intake_log_kind kind)
{
    return (struct intake_log_record){
        .kind = kind,
        .sink_id = group->sink->id,
        .uid = group->uid,
        .count = group->count,
        .warehouse = group->warehouse->name,
        .object_key = group->object_key,
        .body_at = group->body_at,
        .items = group->items,
        .rejects = group->rejects,
        .body = {NULL, group->body_size},
    };
}

/* Its writing begins; what is too large for the log is durable by itself, as without a log. One
 * that shares an object does not wait for room, for what is to make room may wait for it. */
MUST_USE static err log_begin(struct intake_group *group, struct error *error)
{
    struct intake_log *log = group->groups->log;
    struct intake_log_record record = log_record(group, INTAKE_LOG_ACCEPT);
    str *pieces = arena_array(group->arena, group->piece_count + group->count, sizeof(*pieces));
    if (!intake_log_takes(log, group->warehouse)) {
        return OK;
    }
    if (pieces == NULL) {
        return group_key_trouble(error);
    }
    memcpy(pieces, group->pieces, group->piece_count * sizeof(*pieces));
    memcpy(pieces + group->piece_count, group->rejects, group->count * sizeof(*pieces));
    err begun = intake_log_begin(log, group->arena, group->warehouse, &record, pieces,
                                 group->piece_count + group->count, group->shared == NULL,
                                 &group->logged, error);
    if (begun == LIMIT && group->shared == NULL) {
        error_clear(error);
        return OK;
    }
    return begun;
}

/* What has no row, and never will, is taken back before anybody hears of it (L3 of intake_log.c).
 * `recorded`: the ledger has judged them. */
MUST_USE static err log_void(struct intake_group *group, bool recorded, struct error *error)
{
    struct intake_log_record record = log_record(group, INTAKE_LOG_VOID);
    bool any = false;
    record.voided = arena_array(group->arena, group->count, sizeof(*record.voided));
    if (record.voided == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < group->count; i++) {
        record.voided[i] = !recorded || group->items[i].outcome != ACCEPT_NEW;
        any = any || record.voided[i];
    }
    return any ? intake_log_void(group->groups->log, group->arena, &record, error) : OK;
}

void intake_group_settle(struct intake_group *group, bool recorded)
{
    if (!group->logged.open) {
        return;
    }
    struct error error = {0};
    err settled = group->unsure ? UNKNOWN : log_void(group, recorded, &error);
    if (settled != OK) {
        log_error("intake_log_not_settled", settled, &error, group->sink->id);
        intake_log_doubt(group->groups->log, &group->logged);
    }
    intake_log_end(group->groups->log, &group->logged);
}

/* ---- the ledger's transaction ---- */

MUST_USE static err group_items(struct intake_group *group, struct error *error)
{
    group->items = arena_array(group->arena, group->count, sizeof(*group->items));
    group->rejects = arena_array(group->arena, group->count, sizeof(*group->rejects));
    group->pieces = arena_array(group->arena, 2 * group->count, sizeof(*group->pieces));
    if (group->items == NULL || group->rejects == NULL || group->pieces == NULL) {
        return group_key_trouble(error);
    }
    for (size_t i = 0; i < group->count; i++) {
        struct intake_send *send = group->sends[i];
        struct ledger_accept *item = &group->items[i];
        struct sha256 body = intake_body_hash(&send->body);
        send->answer = intake_answer_print(send);
        if (send->answer.data == NULL) {
            return group_key_trouble(error);
        }
        *item = (struct ledger_accept){
            .batch_id = send->batch_id,
            .uid = group->uid,
            .bytes = (i64)intake_body_stored(&send->body).size,
            .rows = send->body.accepted,
            .refused = (i64)send->body.refused_count,
            .sha256 = intake_body_stored_hash(&send->body),
            .received_at = send->received_at,
            .began_at = send->began_at,
            .began_running_us = send->began_running_us,
            .answer = send->answer,
            .refused_reasons = intake_body_refused_reasons(&send->body),
        };
        memcpy(item->body_hash, body.bytes, sizeof(item->body_hash));
        TRY(print_rejects(group, i, error));
    }
    object_pieces(group);
    TRY(name_object(group, error));
    for (size_t i = 0; i < group->count; i++) {
        group->items[i].object_key = intake_send_has_rows(group->sends[i]) ? group->object_key
                                                                           : STR("");
    }
    return OK;
}

/* The transaction's answer was lost: the row tells (A4). What it may still do for others is not
 * ours to undo, so nothing is deleted. */
static void item_look_up(struct intake_group *group, struct ledger_accept *item)
{
    struct ledger_batch batch = {0};
    err result = ledger_find_batch(group->groups->options->db, group->arena, group->sink->id,
                                   item->batch_id, &batch, NULL);
    item->outcome = ACCEPT_REFUSED;
    item->refusal = ERROR_LEDGER_DOWN;
    if (result != OK) {
        return;
    }
    item->state = batch.state;
    item->first_answer = batch.answer;
    if (str_equal(id_uid_str(&batch.uid), id_uid_str(&item->uid))) {
        item->outcome = ACCEPT_NEW;
    } else if (crypto_equal(batch.body_hash, item->body_hash, sizeof(item->body_hash))) {
        item->outcome = ACCEPT_DUPLICATE;
    } else {
        item->outcome = ACCEPT_REUSED;
    }
}

/* One transaction for all rows of the object. An answer that was lost is asked for again: the same
 * transaction finds its own rows. Without a log the rows are durable, and one look at them is
 * enough. */
err intake_group_record(struct intake_group *group, struct error *error)
{
    const struct intake_options *options = group->groups->options;
    bool logged = group->logged.open;
    err result = UNKNOWN;
    for (i32 i = 0; result == UNKNOWN && i < (logged ? LOGGED_TRIES_MAX : 1); i++) {
        error_clear(error);
        result = ledger_accept(options->db, group->arena,
                               (str){group->sends[0]->node_id, ID_SHORT_SIZE}, group->sink->id,
                               options->backlog, logged ? LEDGER_LATER : LEDGER_DURABLE,
                               group->items, group->count, error);
    }
    if (result == UNKNOWN) {
        group->unsure = true;
        for (size_t i = 0; i < group->count; i++) {
            item_look_up(group, &group->items[i]);
        }
        result = OK;
    }
    if (result == OK) {
        CRASH_POINT(intake_after_ledger);
    }
    return result;
}

err intake_group_store(struct intake_group *group, struct error *error)
{
    if (group->warehouse == NULL) {
        return error_set(error, IO, ERROR_STORE_DOWN, "the sink's warehouse is not known");
    }
    group->uid = id_uid_make(group->groups->options->seam);
    TRY(group_items(group, error));
    if (PLANTED(3) && group->count == 1) {
        TRY(intake_group_record(group, error));
    } else {
        intake_told_begin(group);
    }
    TRY(log_begin(group, error));
    if (group->logged.open) {
        TRY(intake_log_wait(group->groups->log, &group->logged, error));
        CRASH_POINT(intake_after_log);
    }
    return OK;
}

/* ---- after it ---- */

void intake_group_clean(struct intake_group *group)
{
    bool accepted = false;
    for (size_t i = 0; i < group->count; i++) {
        const struct intake_send *send = group->sends[i];
        bool is_new = group->items[i].outcome == ACCEPT_NEW;
        bool adopted = group->items[i].adopted;
        accepted = accepted || adopted || (is_new && intake_send_has_rows(send));
        if (is_new || adopted || send->body.refused_count == 0) {
            continue;
        }
        str key = batch_intake_rejects_key(group->arena, group->sink->id, send->batch_id,
                                           &group->uid);
        struct error error = {0};
        err result = key.data == NULL ? error_memory(&error)
                                      : store_remove(&group->warehouse->files, key, &error);
        if (result != OK) {
            log_error("rejects_file_left", result, &error, send->batch_id);
        }
    }
    struct error error = {0};
    if (!accepted && group->object_key.size > 0 &&
        store_remove(&group->warehouse->files, group->object_key, &error) != OK) {
        log_error("orphan_left", IO, &error, group->object_key);
    }
}

void intake_group_count(const struct intake_send *send)
{
    metric_add(METRIC_INTAKE_BATCHES, 1);
    metric_add(METRIC_INTAKE_ROWS, send->body.accepted);
    metric_add(METRIC_INTAKE_BYTES, (i64)intake_body_stored(&send->body).size);
}

static void item_answer(const struct intake_group *group, struct intake_send *send,
                        const struct ledger_accept *item)
{
    switch (item->outcome) {
    case ACCEPT_NEW:
        intake_group_count(send);
        if (send->wait_us > 0) {
            intake_wait_add(group->groups->waits, send);
        } else {
            intake_send_accepted(send, item->state);
        }
        return;
    case ACCEPT_DUPLICATE:
        answer_duplicate(group->groups, send, item->first_answer, item->state);
        return;
    case ACCEPT_REUSED:
        refuse_reused(send);
        return;
    case ACCEPT_REFUSED:
        if (item->refusal == ERROR_UNAVAILABLE && group->groups->lease != NULL) {
            intake_lease_wake(group->groups->lease);
        }
        intake_send_refuse_code(send, item->refusal == ERROR_SINK_NOT_FOUND ? ERROR_SINK_DELETED
                                                                            : item->refusal);
        return;
    }
}

void intake_group_answer_one(const struct intake_group *group, size_t index)
{
    item_answer(group, group->sends[index], &group->items[index]);
}

void intake_group_answer(struct intake_group *group)
{
    const struct intake_options *options = group->groups->options;
    bool any = false;
    for (size_t i = 0; i < group->count; i++) {
        any = any || (group->items[i].outcome == ACCEPT_NEW && group->items[i].rows > 0);
    }
    if (any && options->accepted != NULL) {
        options->accepted(options->accepted_context, group->sink->id);
    }
    for (size_t i = 0; i < group->count; i++) {
        intake_group_answer_one(group, i);
    }
}

void intake_group_hold_answers(const struct intake_groups *groups)
{
    if (groups->options->answers_begin != NULL) {
        groups->options->answers_begin();
    }
}

void intake_group_release_answers(const struct intake_groups *groups)
{
    if (groups->options->answers_end != NULL) {
        groups->options->answers_end();
    }
}

enum error_code intake_group_refusal(const struct error *error)
{
    bool told = error->code != ERROR_NONE && error_code_http_status(error->code) == 503;
    return told ? error->code : ERROR_UNAVAILABLE;
}

void intake_group_refuse(struct intake_group *group, err result, const struct error *error)
{
    log_error("intake_group_failed", result, error, group->sink->id);
    enum error_code code = intake_group_refusal(error);
    for (size_t i = 0; i < group->count; i++) {
        if (group->sends[i] != NULL) {
            intake_send_refuse_code(group->sends[i], code);
        }
    }
}
