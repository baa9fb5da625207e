/* A sink's batches and rejects: what became of what was sent. */
#include "base/base64.h"
#include "server/api.h"
#include "server/roller.h"
#include "server/sink_json.h"
#include "sink/batch.h"
#include "sink/ledger_orphan.h"

enum { REJECTS_PAGE_BYTES_MAX = 32 * MIB, REJECTS_FILE_BYTES_MAX = 512 * MIB };

/* ---- batches ---- */

err api_batch_get(struct api_request *request, struct error *error)
{
    struct ledger_sink sink = {0};
    struct ledger_batch batch = {0};
    TRY(api_find_sink(request, &sink, error));
    TRY(ledger_find_batch(&request->call->service->db, request->call->arena, sink.id,
                          request->parts[1], &batch, error));
    return api_reply(request, 200, sink_json_batch(&batch));
}

/* Ids that stand for several contents, with the objects to choose from (O6). */
static err list_quarantined(struct api_request *request, const struct ledger_sink *sink,
                            size_t limit, struct error *error)
{
    struct call *call = request->call;
    struct ledger_quarantined *items = NULL;
    size_t count = 0;
    str cursor = api_cursor(request);
    TRY(ledger_list_quarantined(&call->service->db, call->arena, sink->id,
                                cursor.data == NULL ? STR("") : cursor, limit + 1, &items, &count,
                                error));
    json_t *list = json_array();
    for (size_t i = 0; i < count && i < limit; i++) {
        json_t *uids = json_array();
        str rest = items[i].uids;
        str uid = {0};
        while (str_next(&rest, ',', &uid)) {
            json_array_append_new(uids, api_json_text(uid));
        }
        json_array_append_new(list,
                              json_pack("{s:o, s:s, s:o, s:o}", "batch_id",
                                        api_json_text(items[i].batch_id), "state", "quarantined",
                                        "objects", uids, "since", api_json_time(items[i].at)));
    }
    json_t *json = json_pack("{s:o}", "batches", list);
    if (count > limit) {
        json_object_set_new(json, "next_cursor", api_json_text(items[limit - 1].batch_id));
    }
    return api_reply(request, 200, json);
}

/* state=pending|…|held; -1: any. */
static err read_state(struct api_request *request, int *out_state, bool *out_held,
                      struct error *error)
{
    str wanted = http_request_parameter(request->call->request, STR("state"));
    *out_state = -1;
    *out_held = str_equal(wanted, STR("held"));
    if (wanted.data == NULL || *out_held) {
        return OK;
    }
    for (int state = BATCH_PENDING; state <= BATCH_DISCARDED; state++) {
        if (str_equal(wanted, str_from(sink_json_batch_state((enum batch_state)state)))) {
            *out_state = state;
            return OK;
        }
    }
    return api_invalid(error, "state",
                       "pending, planned, committed, rejected, discarded, held or quarantined");
}

err api_batch_list(struct api_request *request, struct error *error)
{
    struct call *call = request->call;
    struct ledger_sink sink = {0};
    struct ledger_batch *batches = NULL;
    size_t limit = 0;
    size_t count = 0;
    i64 after_seq = -1;
    int state = -1;
    bool held = false;
    str cursor = api_cursor(request);
    TRY(api_find_sink(request, &sink, error));
    TRY(api_limit(request, &limit, error));
    if (str_equal(http_request_parameter(call->request, STR("state")), STR("quarantined"))) {
        return list_quarantined(request, &sink, limit, error);
    }
    TRY(read_state(request, &state, &held, error));
    if (cursor.size > 0 && !str_to_i64(cursor, &after_seq)) {
        return api_invalid(error, "cursor", "a next_cursor of an earlier answer is wanted");
    }
    TRY(ledger_list_batches(&call->service->db, call->arena, sink.id, state, held, after_seq,
                            limit + 1, &batches, &count, error));
    json_t *list = json_array();
    for (size_t i = 0; i < count && i < limit; i++) {
        json_array_append_new(list, sink_json_batch(&batches[i]));
    }
    json_t *json = json_pack("{s:o}", "batches", list);
    if (count > limit) {
        str next = str_format(call->arena, "%lld", (long long)batches[limit - 1].seq);
        json_object_set_new(json, "next_cursor", api_json_text(next));
    }
    return api_reply(request, 200, json);
}

err api_batch_discard(struct api_request *request, struct error *error)
{
    struct ledger_sink sink = {0};
    TRY(api_find_sink(request, &sink, error));
    TRY(ledger_discard_held(&request->call->service->db, sink.id, request->parts[1], error));
    api_audit_write(request, "sink.discard", sink.id);
    return api_reply(request, 200,
                     json_pack("{s:o, s:s}", "batch_id", api_json_text(request->parts[1]), "state",
                               "discarded"));
}

/* {"keep": uid}: this object is what the id stands for. */
err api_batch_resolve(struct api_request *request, struct error *error)
{
    static const char *const known[] = {"keep", NULL};
    struct ledger_sink sink = {0};
    json_t *body = NULL;
    struct uid uid;
    str row_id = {0};
    TRY(api_find_sink(request, &sink, error));
    TRY(api_body(request, known, &body, error));
    const char *keep = json_string_value(json_object_get(body, "keep"));
    bool given = keep != NULL && id_uid_parse(str_from(keep), &uid);
    json_decref(body);
    if (!given) {
        return api_invalid(error, "keep", "one of the batch's `objects` is wanted");
    }
    TRY(roller_resolve_batch(request->call->service->roller, request->call->arena, sink.id,
                             request->parts[1], id_uid_str(&uid), &row_id, error));
    api_sink_changed(request, sink.id);
    api_audit_write(request, "sink.resolve", sink.id);
    struct ledger_batch batch = {0};
    TRY(ledger_find_batch(&request->call->service->db, request->call->arena, sink.id, row_id,
                          &batch, error));
    return api_reply(request, 200, sink_json_batch(&batch));
}

/* ---- rejects ---- */

struct reject_page {
    struct api_request *request;
    const struct store *store;
    str prefix;
    str reason;   /* data NULL: any */
    str batch_id; /* data NULL: any */
    instant since;
    size_t limit;
    buf out;
    size_t count;
    str after_key; /* go on behind line after_line of this file */
    i64 after_line;
    str last_key;
    i64 last_line;
    bool full;
};

static bool record_fits(const struct reject_page *page, str line)
{
    json_t *record = json_loadb(line.data, line.size, 0, NULL);
    str reason = str_from(json_string_value(json_object_get(record, "reason")));
    str batch_id = str_from(json_string_value(json_object_get(record, "batch_id")));
    str received = str_from(json_string_value(json_object_get(record, "received_at")));
    instant at = 0;
    bool fits = (page->reason.data == NULL || str_equal(reason, page->reason)) &&
                (page->batch_id.data == NULL || str_equal(batch_id, page->batch_id)) &&
                (page->since == 0 || (time_parse(received, &at) && at >= page->since));
    json_decref(record);
    return fits;
}

/* The lines go out as they stand: they hold the elements' own bytes. */
static void add_file(struct reject_page *page, str key, str body)
{
    bool behind = str_equal(key, page->after_key);
    str rest = body;
    str line = {0};
    for (i64 number = 0; !page->full && str_next(&rest, '\n', &line); number++) {
        if (line.size == 0 || (behind && number <= page->after_line) || !record_fits(page, line)) {
            continue;
        }
        if (page->count == page->limit || page->out.size + line.size > REJECTS_PAGE_BYTES_MAX) {
            page->full = page->count > 0;
            break;
        }
        buf_append(&page->out, page->count > 0 ? STR(",") : STR(""));
        buf_append(&page->out, line);
        page->count++;
        page->last_key = key;
        page->last_line = number;
    }
}

static err read_files(struct reject_page *page, struct error *error)
{
    struct arena *arena = page->request->call->arena;
    struct store_list list = {.more = true};
    str after = page->after_key;
    /* The file of the cursor itself is read again, from its next line. */
    bool again = after.size > 0;
    AUTO_ARENA struct arena *file_arena = arena_create(REJECTS_FILE_BYTES_MAX);
    while (!page->full && (again || list.more)) {
        struct store_object cursor_file = {.key = after};
        if (again) {
            list = (struct store_list){&cursor_file, 1, true};
            again = false;
        } else {
            TRY(store_list(page->store, arena, page->prefix, after, 1000, &list, error));
        }
        for (size_t i = 0; i < list.count && !page->full; i++) {
            struct store_object object = {0};
            arena_reset(file_arena);
            err got = store_get(page->store, file_arena, list.objects[i].key, &object, error);
            if (got == OK) {
                add_file(page, list.objects[i].key, object.body);
            } else if (got != NOT_FOUND) {
                return got; /* swept meanwhile is fine */
            }
            error_clear(error);
        }
        after = list.count > 0 ? list.objects[list.count - 1].key : after;
    }
    return OK;
}

/* The cursor is base64url of <key>\n<line>. */
static err read_cursor(struct api_request *request, struct reject_page *page, struct error *error)
{
    str cursor = api_cursor(request);
    buf text = buf_create(request->call->arena, 256, 2 * (size_t)STORE_KEY_MAX);
    if (cursor.size == 0) {
        return OK;
    }
    bool good = base64_decode(&text, cursor);
    i64 end = good ? str_find_last_byte(buf_str(&text), '\n') : -1;
    if (end < 0 ||
        !str_to_i64(str_slice(buf_str(&text), (size_t)end + 1, text.size), &page->after_line) ||
        !str_starts(buf_str(&text), page->prefix)) {
        return api_invalid(error, "cursor", "a next_cursor of an earlier answer is wanted");
    }
    page->after_key = str_slice(buf_str(&text), 0, (size_t)end);
    return OK;
}

static err read_filters(struct api_request *request, struct reject_page *page, struct error *error)
{
    struct http_request *http = request->call->request;
    TRY(api_limit(request, &page->limit, error));
    page->reason = http_request_parameter(http, STR("reason"));
    page->batch_id = http_request_parameter(http, STR("batch_id"));
    str since = http_request_parameter(http, STR("since"));
    if (since.data != NULL && !time_parse(since, &page->since)) {
        return api_invalid(error, "since", "an RFC 3339 time is wanted");
    }
    return read_cursor(request, page, error);
}

static err finish_page(struct reject_page *page, struct error *error)
{
    struct arena *arena = page->request->call->arena;
    buf_append(&page->out, STR("]"));
    if (page->full) {
        buf cursor = buf_create(arena, 256, 4 * (size_t)STORE_KEY_MAX);
        str text = str_format(arena, "%.*s\n%lld", STR_ARG(page->last_key),
                              (long long)page->last_line);
        base64_encode_url(&cursor, text);
        buf_append(&page->out, STR(",\"next_cursor\":"));
        buf_append_json_string(&page->out, buf_str(&cursor));
    }
    buf_append(&page->out, STR("}"));
    if (!buf_ok(&page->out)) {
        return error_memory(error);
    }
    page->request->answer = (struct api_answer){.status = 200, .text = buf_str(&page->out)};
    return OK;
}

err api_sink_rejects(struct api_request *request, struct error *error)
{
    struct call *call = request->call;
    struct ledger_sink sink = {0};
    TRY(api_find_sink(request, &sink, error));
    const struct warehouse *warehouse = warehouse_get(call->service->warehouses, sink.warehouse);
    struct reject_page page = {.request = request, .after_key = STR("")};
    page.store = &warehouse->files;
    page.prefix = str_format(call->arena, "_sink/%.*s/rejects/", STR_ARG(sink.id));
    page.out = buf_create(call->arena, 64 * (size_t)KIB, 2 * (size_t)REJECTS_PAGE_BYTES_MAX);
    TRY(read_filters(request, &page, error));
    if (page.batch_id.data != NULL) {
        str part = batch_path_part(call->arena, page.batch_id);
        page.prefix = str_format(call->arena, "_sink/%.*s/rejects/%.*s", STR_ARG(sink.id),
                                 STR_ARG(part));
    }
    buf_append(&page.out, STR("{\"rejects\":["));
    TRY(read_files(&page, error));
    return finish_page(&page, error);
}
