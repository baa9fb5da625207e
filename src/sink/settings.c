#include "sink/settings.h"

#include "base/base64.h"

#include <jansson.h>

enum { SETTINGS_PAGE = 500, SETTINGS_BYTES_MAX = 64 * 1024, SETTINGS_SINKS_MAX = 100000 };

/* ---- writing ---- */

static const struct {
    const char *name;
    enum sink_state sink; /* what it makes of a sink in the ledger */
} STATES[] = {
    [SETTINGS_CREATING] = {"creating", SINK_ACTIVE},
    [SETTINGS_ACTIVE] = {"active", SINK_ACTIVE},
    [SETTINGS_DELETING] = {"deleting", SINK_DELETING},
    [SETTINGS_DELETED] = {"deleted", SINK_DELETED},
};

static void print_texts(buf *text, str installation_id, const struct ledger_sink *sink,
                        enum settings_state state, str key_hash)
{
    const struct {
        const char *name;
        str value;
    } members[] = {
        {"installation", installation_id},
        {"sink_id", sink->id},
        {"state", str_from(STATES[state].name)},
        {"name", sink->name},
        {"project", sink->project},
        {"warehouse", sink->warehouse},
        {"namespace", sink->namespace_name},
        {"table", sink->table_name},
        {"table_uuid", sink->table_uuid},
        {"claim_id", sink->claim_id},
        {"unknown_fields", sink->unknown_fields},
        {"idempotency", sink->idempotency},
        {"send_key_id", sink->send_key_id},
        {"send_key_sha256", key_hash},
    };
    for (size_t i = 0; i < ARRAY_COUNT(members); i++) {
        buf_append_format(text, ",\"%s\":", members[i].name);
        /* The separator of namespace parts is a control byte, which JSON escapes. */
        buf_append_json_string(text, members[i].value);
    }
}

err settings_write(const struct store *store, const struct seam *seam, struct arena *arena,
                   str installation_id, const struct ledger_sink *sink, enum settings_state state,
                   str *out_key, struct error *error)
{
    buf text = buf_create(arena, KIB, SETTINGS_BYTES_MAX);
    buf hash = buf_create(arena, 64, 128);
    base64_hex(&hash, (str){(const char *)sink->send_key_sha256.bytes, 32});
    buf_append_format(&text,
                      "{\"format\":1,\"config_version\":%lld,\"roll_seconds\":%lld,"
                      "\"roll_bytes\":%lld,\"inactivity_seconds\":%lld",
                      (long long)sink->config_version, (long long)sink->roll_seconds,
                      (long long)sink->roll_bytes, (long long)sink->inactivity_seconds);
    print_texts(&text, installation_id, sink, state, buf_str(&hash));
    if (sink->key_columns.data != NULL) {
        buf_append(&text, STR(",\"key_columns\":"));
        buf_append_json_string(&text, sink->key_columns);
    }
    buf_append(&text, STR("}\n"));
    struct uid uid = id_uid_make(seam);
    str key = str_format(arena, "_sink/%.*s/sink/%lld.%.*s.json", STR_ARG(sink->id),
                         (long long)sink->config_version, STR_ARG(id_uid_str(&uid)));
    if (!buf_ok(&text) || !buf_ok(&hash) || key.data == NULL) {
        return error_memory(error);
    }
    const struct store_meta meta = {.content_type = STR_INIT("application/json")};
    TRY(store_put(store, key, buf_str(&text), &meta, error));
    if (out_key != NULL) {
        *out_key = key;
    }
    return OK;
}

/* ---- reading ---- */

static str text_of(struct arena *arena, const json_t *document, const char *name)
{
    const json_t *value = json_object_get(document, name);
    if (!json_is_string(value)) {
        return (str){NULL, 0};
    }
    return str_copy(arena, (str){json_string_value(value), json_string_length(value)});
}

static i64 number_of(const json_t *document, const char *name)
{
    return json_integer_value(json_object_get(document, name));
}

static bool hash_of(str text, u8 out[32])
{
    for (size_t i = 0; i < 64 && text.size == 64; i++) {
        char c = text.data[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : (c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1);
        if (digit < 0) {
            return false;
        }
        out[i / 2] = (u8)(i % 2 == 0 ? digit << 4 : out[i / 2] | digit);
    }
    return text.size == 64;
}

static bool parse_state(str name, enum settings_state *out_state)
{
    for (size_t i = 0; i < ARRAY_COUNT(STATES); i++) {
        if (str_equal(name, str_from(STATES[i].name))) {
            *out_state = (enum settings_state)i;
            return true;
        }
    }
    return false;
}

static bool parse_document(struct arena *arena, const json_t *document, str installation_id,
                           struct ledger_sink *out_sink, enum settings_state *out_state)
{
    struct ledger_sink sink = {
        .id = text_of(arena, document, "sink_id"),
        .name = text_of(arena, document, "name"),
        .project = text_of(arena, document, "project"),
        .warehouse = text_of(arena, document, "warehouse"),
        .namespace_name = text_of(arena, document, "namespace"),
        .table_name = text_of(arena, document, "table"),
        .table_uuid = text_of(arena, document, "table_uuid"),
        .claim_id = text_of(arena, document, "claim_id"),
        .unknown_fields = text_of(arena, document, "unknown_fields"),
        .idempotency = text_of(arena, document, "idempotency"),
        .send_key_id = text_of(arena, document, "send_key_id"),
        .key_columns = text_of(arena, document, "key_columns"),
        .config_version = number_of(document, "config_version"),
        .roll_seconds = number_of(document, "roll_seconds"),
        .roll_bytes = number_of(document, "roll_bytes"),
        .inactivity_seconds = number_of(document, "inactivity_seconds"),
    };
    const str needed[] = {sink.id,          sink.name,        sink.project,        sink.warehouse,
                          sink.table_name,  sink.table_uuid,  sink.namespace_name, sink.claim_id,
                          sink.idempotency, sink.send_key_id, sink.unknown_fields};
    for (size_t i = 0; i < ARRAY_COUNT(needed); i++) {
        if (needed[i].data == NULL) {
            return false;
        }
    }
    bool good = str_equal(text_of(arena, document, "installation"), installation_id) &&
                number_of(document, "format") == 1 && sink.config_version > 0 &&
                hash_of(text_of(arena, document, "send_key_sha256"), sink.send_key_sha256.bytes) &&
                parse_state(text_of(arena, document, "state"), out_state);
    *out_sink = sink;
    return good;
}

static err read_one(const struct store *store, struct arena *arena, str installation_id, str key,
                    struct ledger_sink *out_sink, enum settings_state *out_state,
                    struct error *error)
{
    struct store_object object = {0};
    TRY(store_get(store, arena, key, &object, error));
    json_t *document = json_loadb(object.body.data, object.body.size, 0, NULL);
    bool good = parse_document(arena, document, installation_id, out_sink, out_state);
    json_decref(document);
    if (!good && arena_refused(arena)) {
        return error_memory(error);
    }
    if (!good) {
        return error_set(error, CORRUPT, ERROR_INTERNAL,
                         "%.*s is no settings object of this installation", STR_ARG(key));
    }
    return OK;
}

err settings_read(const struct store *store, struct arena *arena, str installation_id, str sink_id,
                  struct ledger_sink *out_sink, struct error *error)
{
    struct ledger_sink best = {0};
    enum settings_state latest = SETTINGS_CREATING;
    str prefix = str_format(arena, "_sink/%.*s/sink/", STR_ARG(sink_id));
    str after = STR("");
    bool more = prefix.data != NULL;
    while (more) {
        struct store_list list = {0};
        TRY(store_list(store, arena, prefix, after, SETTINGS_PAGE, &list, error));
        for (size_t i = 0; i < list.count; i++) {
            struct ledger_sink sink = {0};
            enum settings_state state = SETTINGS_CREATING;
            TRY(read_one(store, arena, installation_id, list.objects[i].key, &sink, &state, error));
            latest = state > latest ? state : latest;
            best = sink.config_version > best.config_version ? sink : best;
        }
        more = list.more && list.count > 0;
        after = more ? list.objects[list.count - 1].key : after;
    }
    if (latest == SETTINGS_CREATING || !str_equal(best.id, sink_id)) {
        return error_set(error, NOT_FOUND, ERROR_SINK_NOT_FOUND, "sink %.*s has no settings object",
                         STR_ARG(sink_id));
    }
    best.state = STATES[latest].sink;
    *out_sink = best;
    return OK;
}

/* ---- which sinks there are ---- */

/* One look per sink: behind everything of one stands the first key of the next. */
err settings_list_sinks(const struct store *store, struct arena *arena, str **out_ids,
                        size_t *out_count, struct error *error)
{
    static const str prefix = STR_INIT("_sink/");
    str *ids = NULL;
    size_t count = 0;
    size_t room = 0;
    str after = STR("");
    bool more = true;
    while (more && count < SETTINGS_SINKS_MAX) {
        struct store_list list = {0};
        TRY(store_list(store, arena, prefix, after, 1, &list, error));
        more = list.count > 0;
        if (!more) {
            break;
        }
        str rest = str_slice(list.objects[0].key, prefix.size, list.objects[0].key.size);
        i64 slash = str_find_byte(rest, '/');
        if (slash <= 0) {
            after = list.objects[0].key; /* a file of the bucket itself */
            continue;
        }
        if (count == room) {
            size_t wider = room == 0 ? 64 : room * 2;
            ids = room == 0 ? arena_array(arena, wider, sizeof(*ids))
                            : arena_grow(arena, ids, room * sizeof(*ids), wider * sizeof(*ids));
            if (ids == NULL) {
                return error_memory(error);
            }
            room = wider;
        }
        ids[count] = str_slice(rest, 0, (size_t)slash);
        after = str_format(arena, "%.*s%.*s0", STR_ARG(prefix), STR_ARG(ids[count]));
        count++;
        if (after.data == NULL) {
            return error_memory(error);
        }
    }
    *out_ids = ids;
    *out_count = count;
    return OK;
}
