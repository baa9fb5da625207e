#include "sink/chain.h"

#include "base/base64.h"
#include "sink/batch.h"
#include "sink/plan.h"

#include <jansson.h>

enum { CHAIN_SCRATCH_MIB_MAX = 256, CHAIN_PAGE = 500, CHAIN_FORMAT = 1 };

/* ---- one plan object ---- */

/* Or there was no memory for reading it. */
static err damaged(const struct arena *arena, struct error *error, const char *what)
{
    if (arena_refused(arena)) {
        return error_memory(error);
    }
    return error_set(error, CORRUPT, ERROR_INTERNAL, "a plan object's %s is damaged", what);
}

static str text_of(struct arena *arena, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_string(value)) {
        return (str){NULL, 0};
    }
    return str_copy(arena, (str){json_string_value(value), json_string_length(value)});
}

static bool number_of(const json_t *object, const char *name, i64 *out_number)
{
    const json_t *value = json_object_get(object, name);
    *out_number = json_integer_value(value);
    return json_is_integer(value) && *out_number >= 0;
}

static bool hex_of(str text, u8 *out, size_t size)
{
    if (text.size != size * 2) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : (c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1);
        if (digit < 0) {
            return false;
        }
        out[i / 2] = (u8)(i % 2 == 0 ? digit << 4 : out[i / 2] | digit);
    }
    return true;
}

static bool base64_of(struct arena *arena, str text, u8 *out, size_t size)
{
    buf bytes = buf_create(arena, size, 64);
    if (text.data == NULL || !base64_decode(&bytes, text) || bytes.size != size) {
        return false;
    }
    memcpy(out, bytes.data, size);
    return true;
}

static err parse_batch(struct arena *arena, const json_t *entry, struct ledger_batch *out_batch,
                       struct error *error)
{
    struct ledger_batch batch = {
        .batch_id = text_of(arena, entry, "batch_id"),
        .object_key = text_of(arena, entry, "key"),
    };
    str uid = text_of(arena, entry, "uid");
    str sha256 = text_of(arena, entry, "sha256");
    str body = text_of(arena, entry, "body");
    str received = text_of(arena, entry, "received_at");
    bool good = batch.batch_id.size > 0 && batch.object_key.data != NULL &&
                number_of(entry, "offset", &batch.offset) &&
                number_of(entry, "bytes", &batch.bytes) && number_of(entry, "rows", &batch.rows) &&
                number_of(entry, "refused", &batch.refused) && number_of(entry, "seq", &batch.seq);
    good = good && uid.data != NULL && id_uid_parse(uid, &batch.uid) &&
           hex_of(sha256, batch.sha256.bytes, sizeof(batch.sha256.bytes)) &&
           base64_of(arena, body, batch.body_hash, sizeof(batch.body_hash)) &&
           received.data != NULL && time_parse(received, &batch.received_at);
    str ingest = json_object_get(entry, "ingest_ts") != NULL ? text_of(arena, entry, "ingest_ts")
                                                             : received;
    if (!good || ingest.data == NULL || !time_parse(ingest, &batch.ingest_ts)) {
        return damaged(arena, error, "batch");
    }
    *out_batch = batch;
    return OK;
}

static err parse_document(struct arena *arena, const json_t *document, struct chain_plan *out_plan,
                          struct error *error)
{
    const json_t *batches = json_object_get(document, "batches");
    i64 format = 0;
    struct chain_plan plan = {
        .installation = text_of(arena, document, "installation"),
        .sink_id = text_of(arena, document, "sink_id"),
        .id = text_of(arena, document, "id"),
        .prev = text_of(arena, document, "prev"),
        .count = json_array_size(batches),
    };
    if (!number_of(document, "format", &format) || format != CHAIN_FORMAT) {
        return error_set(error, CORRUPT, ERROR_INTERNAL, "a plan object has another format");
    }
    if (plan.installation.data == NULL || plan.sink_id.data == NULL || plan.id.data == NULL ||
        plan.prev.data == NULL || !json_is_array(batches) || !number_of(document, "n", &plan.n) ||
        !number_of(document, "config_version", &plan.config_version)) {
        return damaged(arena, error, "head");
    }
    plan.batches = arena_array(arena, plan.count, sizeof(*plan.batches));
    if (plan.batches == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < plan.count; i++) {
        TRY(parse_batch(arena, json_array_get(batches, i), &plan.batches[i], error));
    }
    *out_plan = plan;
    return OK;
}

err chain_parse(struct arena *arena, str bytes, struct chain_plan *out_plan, struct error *error)
{
    json_t *document = json_loadb(bytes.data, bytes.size, 0, NULL);
    if (document == NULL) {
        return damaged(arena, error, "text");
    }
    err parsed = parse_document(arena, document, out_plan, error);
    json_decref(document);
    return parsed;
}

err chain_read(const struct store *store, struct arena *arena, str sink_id, i64 n, str id,
               struct chain_plan *out_plan, struct error *error)
{
    struct store_object object = {0};
    struct chain_plan plan = {0};
    str key = batch_plan_key(arena, sink_id, n, id);
    if (key.data == NULL) {
        return error_memory(error);
    }
    TRY(store_get(store, arena, key, &object, error));
    TRY(chain_parse(arena, object.body, &plan, error));
    if (!str_equal(plan.sink_id, sink_id) || plan.n != n || !str_equal(plan.id, id)) {
        return damaged(arena, error, "name");
    }
    plan.written_at = object.modified_at;
    *out_plan = plan;
    return OK;
}

/* ---- the chain ---- */

/* Reads one object in a scratch arena; only its prev stays. */
static err read_prev(const struct store *store, struct arena *arena, struct arena *scratch,
                     str sink_id, const struct chain_link *link, str *out_prev, struct error *error)
{
    struct chain_plan plan = {0};
    arena_reset(scratch);
    struct error told = {0};
    err read = chain_read(store, scratch, sink_id, link->n, link->id, &plan, &told);
    if (read == NOT_FOUND) {
        return error_set(error, NOT_FOUND, ERROR_INTERNAL,
                         "the plan object %lld-%.*s is missing in the store", (long long)link->n,
                         STR_ARG(link->id));
    }
    if (read != OK) {
        return error_set(error, read, told.code, "%s", told.message);
    }
    *out_prev = str_copy(arena, plan.prev);
    return out_prev->data != NULL ? OK : error_memory(error);
}

err chain_walk(const struct store *store, struct arena *arena, str sink_id, i64 n, str id,
               i64 floor_n, struct chain_link **out_links, size_t *out_count, str *out_floor,
               struct error *error)
{
    struct arena *scratch AUTO_ARENA = arena_create((size_t)CHAIN_SCRATCH_MIB_MAX * MIB);
    size_t count = n > floor_n ? (size_t)(n - floor_n) : 0;
    struct chain_link *links = arena_array(arena, count, sizeof(*links));
    if (links == NULL) {
        return error_memory(error);
    }
    str next = id;
    for (size_t i = 0; i < count; i++) {
        links[i] = (struct chain_link){.n = n - (i64)i, .id = next};
        TRY(read_prev(store, arena, scratch, sink_id, &links[i], &next, error));
    }
    *out_links = links;
    *out_count = count;
    *out_floor = next;
    return OK;
}

/* ---- visits ---- */

static err visit_chain(const struct store *store, str sink_id, i64 n, str id, chain_visit each,
                       void *context, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)CHAIN_SCRATCH_MIB_MAX * MIB);
    char next[ID_UID_SIZE];
    struct uid first;
    if (!id_uid_parse(id, &first)) {
        return OK;
    }
    memcpy(next, first.text, sizeof(next));
    for (i64 at = n; at >= 1; at--) {
        struct chain_plan plan = {0};
        struct error told = {0};
        struct uid prev;
        arena_reset(arena);
        err read = chain_read(store, arena, sink_id, at, (str){next, sizeof(next)}, &plan, &told);
        if (read == NOT_FOUND) {
            return OK; /* older ones are forgotten */
        }
        if (read != OK) {
            return error_set(error, read, told.code, "%s", told.message);
        }
        TRY(each(context, &plan, error));
        if (!id_uid_parse(plan.prev, &prev)) {
            return damaged(arena, error, "prev");
        }
        memcpy(next, prev.text, sizeof(next));
    }
    return OK;
}

/* `<n>-<id>.void.json` */
static bool parse_verdict_key(str key, str prefix, i64 *out_n, str *out_id)
{
    static const str tail = STR_INIT(".void.json");
    if (!str_starts(key, prefix) || !str_ends(key, tail)) {
        return false;
    }
    str name = str_slice(key, prefix.size, key.size - tail.size);
    i64 dash = str_find_byte(name, '-');
    if (dash <= 0 || !str_to_i64(str_slice(name, 0, (size_t)dash), out_n)) {
        return false;
    }
    struct uid uid;
    *out_id = str_slice(name, (size_t)dash + 1, name.size);
    return id_uid_parse(*out_id, &uid);
}

static err visit_verdict(const struct store *store, str sink_id, i64 n, str id, chain_visit each,
                         void *context, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)CHAIN_SCRATCH_MIB_MAX * MIB);
    struct chain_plan plan = {0};
    struct error told = {0};
    err read = chain_read(store, arena, sink_id, n, id, &plan, &told);
    if (read == NOT_FOUND) {
        return OK; /* a verdict without its plan object says nothing about bytes */
    }
    if (read != OK) {
        return error_set(error, read, told.code, "%s", told.message);
    }
    return each(context, &plan, error);
}

err chain_visit_verdicts(const struct store *store, str sink_id, chain_visit each, void *context,
                         struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)16 * MIB);
    char after_bytes[STORE_KEY_MAX];
    char prefix_bytes[128];
    str made = str_format(arena, "_sink/%.*s/plans/", STR_ARG(sink_id));
    if (made.data == NULL || made.size > sizeof(prefix_bytes)) {
        return error_memory(error);
    }
    memcpy(prefix_bytes, made.data, made.size);
    str prefix = {prefix_bytes, made.size};
    str after = STR("");
    bool more = true;
    while (more) {
        struct store_list list = {0};
        arena_reset(arena);
        TRY(store_list(store, arena, prefix, after, CHAIN_PAGE, &list, error));
        for (size_t i = 0; i < list.count; i++) {
            i64 n = 0;
            str id = {0};
            if (parse_verdict_key(list.objects[i].key, prefix, &n, &id)) {
                TRY(visit_verdict(store, sink_id, n, id, each, context, error));
            }
        }
        more = list.more && list.count > 0;
        if (more) {
            str last = list.objects[list.count - 1].key;
            memcpy(after_bytes, last.data, last.size);
            after = (str){after_bytes, last.size};
        }
    }
    return OK;
}

err chain_visit_all(const struct store *store, str sink_id, i64 n, str id, chain_visit each,
                    void *context, struct error *error)
{
    TRY(visit_chain(store, sink_id, n, id, each, context, error));
    return chain_visit_verdicts(store, sink_id, each, context, error);
}
