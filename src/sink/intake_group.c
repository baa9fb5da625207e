#include "sink/intake_group.h"

#include "base/assert.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/planted.h"
#include "sink/batch.h"
#include "sink/intake_lease.h"
#include "sink/intake_line.h"

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

/* The send's entry in the object's metadata: id, offset, bytes, rows, refused, both hashes. */
static void entry_print(buf *out, const struct intake_send *send, i64 offset)
{
    struct sha256 stored = intake_body_stored_hash(&send->body);
    struct sha256 body = intake_body_hash(&send->body);
    buf_append(out, out->size > 0 ? STR(";") : STR(""));
    buf_append_format(out, "%.*s,%lld,%zu,%lld,%zu,", STR_ARG(send->batch_id), (long long)offset,
                      intake_body_stored(&send->body).size, (long long)send->body.accepted,
                      send->body.refused_count);
    base64_encode_url(out, (str){(const char *)stored.bytes, sizeof(stored.bytes)});
    buf_append_byte(out, ',');
    base64_encode_url(out, (str){(const char *)body.bytes, 16});
}

MUST_USE static err group_key_trouble(struct error *error)
{
    return error_set(error, LIMIT, ERROR_OVERLOADED, "the group is too large");
}

MUST_USE static err put_rejects(struct intake_group *group, struct intake_send *send,
                                struct error *error)
{
    size_t room = 0;
    for (size_t i = 0; i < send->body.refused_count; i++) {
        room += send->body.refused[i].bytes.size / 3 * 4 + KIB;
    }
    AUTO_ARENA struct arena *arena = arena_create(room + MIB);
    buf lines = buf_create(arena, room, room);
    struct reject_batch batch = {.batch_id = send->batch_id,
                                 .received_at = send->received_at,
                                 .schema_id = -1,
                                 .mapping_version = -1};
    intake_body_print_rejects(&send->body, &batch, &lines);
    str key = batch_intake_rejects_key(arena, group->sink->id, send->batch_id, &group->uid);
    if (!buf_ok(&lines) || key.data == NULL) {
        return group_key_trouble(error);
    }
    struct store_meta meta = {.content_type = STR("application/x-ndjson"), .count = 1};
    meta.entries[0] = (struct store_meta_entry){STR("sha256"), reject_hash(arena, buf_str(&lines))};
    return store_put(&group->warehouse->files, key, buf_str(&lines), &meta, error);
}

/* The pieces of the object, a line end between two batches, and the offsets in it. */
static size_t object_pieces(const struct intake_group *group, str pieces[2 * INTAKE_GROUP_MAX])
{
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
    return count;
}

MUST_USE static err object_meta(const struct intake_group *group, struct store_meta *out_meta,
                                struct error *error)
{
    buf batches = buf_create(group->arena, 2 * KIB, 2 * KIB);
    instant received_at = 0;
    i64 rows = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct intake_send *send = group->sends[i];
        if (intake_send_has_rows(send)) {
            entry_print(&batches, send, group->items[i].offset);
            received_at = received_at == 0 ? send->received_at : received_at;
            rows += send->body.accepted;
        }
    }
    str received = time_format_in(group->arena, received_at);
    str row_text = str_format(group->arena, "%lld", (long long)rows);
    if (!buf_ok(&batches) || received.data == NULL || row_text.data == NULL) {
        return group_key_trouble(error);
    }
    *out_meta = (struct store_meta){
        .content_type = STR("application/x-ndjson"),
        .entries = {{STR("sink"), group->sink->id},
                    {STR("received"), received},
                    {STR("rows"), row_text},
                    {STR("batches"), buf_str(&batches)}},
        .count = 4,
    };
    return OK;
}

MUST_USE static err put_object(struct intake_group *group, struct error *error)
{
    str pieces[2 * INTAKE_GROUP_MAX];
    size_t count = object_pieces(group, pieces);
    if (count == 0) {
        return OK;
    }
    size_t first = 0;
    while (!intake_send_has_rows(group->sends[first])) {
        first++;
    }
    struct store_meta meta = {0};
    TRY(object_meta(group, &meta, error));
    group->object_key = batch_object_key(group->arena, group->sink->id,
                                         group->sends[first]->batch_id, &group->uid);
    if (group->object_key.data == NULL) {
        return group_key_trouble(error);
    }
    TRY(store_put_pieces(&group->warehouse->files, group->object_key, pieces, count, &meta, error));
    metric_add(METRIC_INTAKE_OBJECTS, 1);
    return OK;
}

MUST_USE static err group_put(struct intake_group *group, struct error *error)
{
    for (size_t i = 0; i < group->count; i++) {
        if (group->sends[i]->body.refused_count > 0) {
            TRY(put_rejects(group, group->sends[i], error));
        }
    }
    TRY(put_object(group, error));
    CRASH_POINT(intake_after_put);
    return OK;
}

/* ---- the ledger's transaction ---- */

MUST_USE static err group_items(struct intake_group *group, struct error *error)
{
    group->items = arena_array(group->arena, group->count, sizeof(*group->items));
    if (group->items == NULL) {
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
            .answer = send->answer,
            .refused_reasons = intake_body_refused_reasons(&send->body),
        };
        memcpy(item->body_hash, body.bytes, sizeof(item->body_hash));
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

/* One transaction for each node id in the group: sends of before a lost lease have the old one. */
err intake_group_record(struct intake_group *group, struct error *error)
{
    size_t begin = 0;
    while (begin < group->count) {
        const char *node_id = group->sends[begin]->node_id;
        size_t end = begin + 1;
        while (end < group->count &&
               memcmp(group->sends[end]->node_id, node_id, ID_SHORT_SIZE) == 0) {
            end++;
        }
        for (size_t i = begin; i < end; i++) {
            group->items[i].object_key = intake_send_has_rows(group->sends[i]) ? group->object_key
                                                                               : STR("");
        }
        err result = ledger_accept(group->groups->options->db, group->arena,
                                   (str){node_id, ID_SHORT_SIZE}, group->sink->id,
                                   group->groups->options->backlog, group->items + begin,
                                   end - begin, error);
        if (result == UNKNOWN) {
            group->unsure = true;
            for (size_t i = begin; i < end; i++) {
                item_look_up(group, &group->items[i]);
            }
        } else if (result != OK) {
            return result;
        }
        begin = end;
    }
    CRASH_POINT(intake_after_ledger);
    return OK;
}

err intake_group_store(struct intake_group *group, struct error *error)
{
    if (group->warehouse == NULL) {
        return error_set(error, IO, ERROR_STORE_DOWN, "the sink's warehouse is not known");
    }
    group->uid = id_uid_make(group->groups->options->seam);
    TRY(group_items(group, error));
    if (PLANTED(3) && group->count == 1) {
        group->object_key = batch_object_key(group->arena, group->sink->id,
                                             group->sends[0]->batch_id, &group->uid);
        TRY(intake_group_record(group, error));
    }
    return group_put(group, error);
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

static void count_accepted(const struct intake_send *send)
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
        count_accepted(send);
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

void intake_group_answer(struct intake_group *group)
{
    const struct intake_options *options = group->groups->options;
    bool any = false;
    for (size_t i = 0; i < group->count; i++) {
        any = any ||
              (group->items[i].outcome == ACCEPT_NEW && intake_send_has_rows(group->sends[i]));
    }
    if (any && options->accepted != NULL) {
        options->accepted(options->accepted_context, group->sink->id);
    }
    for (size_t i = 0; i < group->count; i++) {
        item_answer(group, group->sends[i], &group->items[i]);
    }
}

void intake_group_refuse(struct intake_group *group, err result, const struct error *error)
{
    log_error("intake_group_failed", result, error, group->sink->id);
    enum error_code code = error->code;
    if (code == ERROR_NONE || error_code_http_status(code) != 503) {
        code = ERROR_UNAVAILABLE;
    }
    for (size_t i = 0; i < group->count; i++) {
        intake_send_refuse_code(group->sends[i], code);
    }
}
