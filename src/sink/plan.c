#include "sink/plan.h"

#include "base/base64.h"
#include "base/buf.h"
#include "sink/batch.h"

#include <jansson.h>

enum { COUNTS_BYTES_MAX = 8 * 1024 * 1024, TRY_BYTES_MAX = 4 * 1024 * 1024 };

/* ---- the plan object ---- */

static void append_member(buf *out, const char *name, str value)
{
    buf_append_format(out, "\"%s\":", name);
    buf_append_json_string(out, value);
    buf_append_byte(out, ',');
}

static void append_batch(buf *out, const struct ledger_batch *batch)
{
    char at[TIME_TEXT_SIZE];
    buf_append_byte(out, '{');
    append_member(out, "batch_id", batch->batch_id);
    append_member(out, "uid", id_uid_str(&batch->uid));
    append_member(out, "key", batch->object_key);
    buf_append_format(out, "\"offset\":%lld,\"bytes\":%lld,\"rows\":%lld,\"refused\":%lld,",
                      (long long)batch->offset, (long long)batch->bytes, (long long)batch->rows,
                      (long long)batch->refused);
    buf_append(out, STR("\"sha256\":\""));
    base64_hex(out, (str){(const char *)batch->sha256.bytes, sizeof(batch->sha256.bytes)});
    buf_append(out, STR("\",\"body\":\""));
    base64_encode_url(out, (str){(const char *)batch->body_hash, sizeof(batch->body_hash)});
    buf_append_format(out, "\",\"seq\":%lld,\"received_at\":\"%.*s\"", (long long)batch->seq,
                      STR_ARG(time_format(batch->received_at, at)));
    if (batch->ingest_ts != batch->received_at) {
        buf_append_format(out, ",\"ingest_ts\":\"%.*s\"",
                          STR_ARG(time_format(batch->ingest_ts, at)));
    }
    buf_append_byte(out, '}');
}

static err finish_text(const buf *text, str *out_bytes, struct error *error)
{
    if (!buf_ok(text)) {
        return error_memory(error);
    }
    *out_bytes = buf_str(text);
    return OK;
}

err plan_print_object(struct arena *arena, str installation, const struct ledger_plan *plan,
                      const struct ledger_batch *batches, size_t count, str *out_bytes,
                      struct error *error)
{
    buf text = buf_create(arena, 512 + count * 448, PLAN_OBJECT_BYTES_MAX);
    buf_append(&text, STR("{\"format\":1,"));
    append_member(&text, "installation", installation);
    append_member(&text, "sink_id", plan->sink_id);
    buf_append_format(&text, "\"n\":%lld,", (long long)plan->n);
    append_member(&text, "id", plan->id);
    append_member(&text, "prev", plan->prev);
    buf_append_format(&text, "\"config_version\":%lld,\"batches\":[",
                      (long long)plan->config_version);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            buf_append_byte(&text, ',');
        }
        append_batch(&text, &batches[i]);
    }
    buf_append(&text, STR("]}\n"));
    return finish_text(&text, out_bytes, error);
}

err plan_print_void(struct arena *arena, str installation, const struct ledger_plan *plan,
                    const struct ledger_batch *batches, size_t count, str *out_bytes,
                    struct error *error)
{
    buf text = buf_create(arena, 512 + count * 192, PLAN_OBJECT_BYTES_MAX);
    buf_append(&text, STR("{\"format\":1,"));
    append_member(&text, "installation", installation);
    append_member(&text, "sink_id", plan->sink_id);
    buf_append_format(&text, "\"n\":%lld,", (long long)plan->n);
    append_member(&text, "id", plan->id);
    buf_append(&text, STR("\"verdict\":\"all_rejected\",\"batches\":["));
    for (size_t i = 0; i < count; i++) {
        buf_append(&text, i > 0 ? STR(",{") : STR("{"));
        append_member(&text, "batch_id", batches[i].batch_id);
        append_member(&text, "uid", id_uid_str(&batches[i].uid));
        buf_append_format(&text, "\"rejected_rows\":%lld}", (long long)batches[i].rows);
    }
    buf_append(&text, STR("]}\n"));
    return finish_text(&text, out_bytes, error);
}

str plan_void_key(struct arena *arena, str sink_id, i64 n, str plan_id)
{
    return str_format(arena, "_sink/%.*s/plans/%lld-%.*s.void.json", STR_ARG(sink_id), (long long)n,
                      STR_ARG(plan_id));
}

/* ---- the property ---- */

str plan_print_property(struct arena *arena, const struct plan_property *property)
{
    return str_format(arena, "%.*s:%.*s:%lld:%.*s", STR_ARG(property->installation),
                      STR_ARG(property->sink_id), (long long)property->n, STR_ARG(property->id));
}

/* Letters, digits, `_` and `-`: no blanks, no control characters, no separators. */
static bool part_is_word(str part)
{
    for (size_t i = 0; i < part.size; i++) {
        char c = part.data[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '-';
        if (!word) {
            return false;
        }
    }
    return part.size > 0;
}

static bool parse_n(str text, i64 *out_n)
{
    bool digits = text.size > 0 && (text.size == 1 || text.data[0] != '0');
    for (size_t i = 0; i < text.size; i++) {
        digits = digits && text.data[i] >= '0' && text.data[i] <= '9';
    }
    return digits && str_to_i64(text, out_n);
}

bool plan_parse_property(str text, struct plan_property *out_property)
{
    str parts[4];
    size_t count = 0;
    size_t begin = 0;
    for (size_t i = 0; i <= text.size; i++) {
        if (i < text.size && text.data[i] != ':') {
            continue;
        }
        if (count == ARRAY_COUNT(parts)) {
            return false;
        }
        parts[count++] = str_slice(text, begin, i);
        begin = i + 1;
    }
    struct uid id;
    i64 n = 0;
    if (count != ARRAY_COUNT(parts) || !part_is_word(parts[0]) || !part_is_word(parts[1]) ||
        !parse_n(parts[2], &n) || !id_uid_parse(parts[3], &id)) {
        return false;
    }
    *out_property = (struct plan_property){
        .installation = parts[0], .sink_id = parts[1], .n = n, .id = parts[3]};
    return true;
}

enum plan_reading plan_judge(str installation, const struct ledger_sink *sink,
                             const struct ledger_plan *plan, str text)
{
    struct plan_property read = {0};
    if (text.data == NULL || !plan_parse_property(text, &read) ||
        !str_equal(read.installation, installation) || !str_equal(read.sink_id, sink->id)) {
        return PLAN_READS_OTHER;
    }
    if (plan != NULL && read.n == plan->n && str_equal(read.id, plan->id)) {
        return PLAN_READS_COMMITTED;
    }
    if (read.n == sink->last_n && str_equal(read.id, sink->last_plan_id)) {
        return PLAN_READS_NOT_COMMITTED;
    }
    return read.n > sink->last_n ? PLAN_READS_AHEAD : PLAN_READS_OTHER;
}

/* ---- tries ---- */

static void append_reasons(buf *text, const struct plan_counts *counts)
{
    bool first = true;
    for (size_t i = 0; i < REJECT_REASON_COUNT; i++) {
        if (counts->reasons[i] == 0) {
            continue;
        }
        if (!first) {
            buf_append_byte(text, ',');
        }
        first = false;
        buf_append_json_string(text, reject_reason_text((enum reject_reason)i));
        buf_append_byte(text, ':');
        buf_append_i64(text, counts->reasons[i]);
    }
}

err plan_print_counts(struct arena *arena, const struct plan_counts *counts, str *out_json,
                      struct error *error)
{
    buf text = buf_create(arena, 256 + counts->verdict_count * 16, COUNTS_BYTES_MAX);
    buf_append_format(&text, "{\"schema_id\":%d,\"spec_id\":%d,\"rows\":[", counts->schema_id,
                      counts->spec_id);
    for (size_t i = 0; i < counts->verdict_count; i++) {
        buf_append_format(&text, "%s[%lld,%lld]", i > 0 ? "," : "",
                          (long long)counts->verdicts[i].rows_committed,
                          (long long)counts->verdicts[i].rows_rejected);
    }
    buf_append(&text, STR("],\"reasons\":{"));
    append_reasons(&text, counts);
    buf_append(&text, STR("},\"recent\":["));
    for (size_t i = 0; i < counts->recent_count; i++) {
        if (i > 0) {
            buf_append_byte(&text, ',');
        }
        buf_append_json_string(&text, counts->recent[i]);
    }
    buf_append(&text, STR("]}"));
    return finish_text(&text, out_json, error);
}

static err damaged(struct error *error, const char *what)
{
    return error_set(error, CORRUPT, ERROR_LEDGER_DOWN, "the plan's %s are damaged", what);
}

static err take_rows(const json_t *rows, struct plan_counts *counts, struct error *error)
{
    if (json_array_size(rows) != counts->verdict_count) {
        return damaged(error, "counts");
    }
    for (size_t i = 0; i < counts->verdict_count; i++) {
        const json_t *pair = json_array_get(rows, i);
        struct ledger_verdict *verdict = &counts->verdicts[i];
        if (json_array_size(pair) != 2) {
            return damaged(error, "counts");
        }
        verdict->rows_committed = json_integer_value(json_array_get(pair, 0));
        verdict->rows_rejected = json_integer_value(json_array_get(pair, 1));
        counts->rows_committed += verdict->rows_committed;
        counts->rows_rejected += verdict->rows_rejected;
    }
    return OK;
}

static str copy_text(struct arena *arena, const json_t *value)
{
    return str_copy(arena, (str){json_string_value(value), json_string_length(value)});
}

static err take_recent(struct arena *arena, const json_t *recent, struct plan_counts *counts,
                       struct error *error)
{
    size_t count = json_array_size(recent);
    if (count > PLAN_RECENT_MAX) {
        return damaged(error, "recent rejects");
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *record = json_array_get(recent, i);
        if (!json_is_string(record)) {
            return damaged(error, "recent rejects");
        }
        counts->recent[i] = copy_text(arena, record);
        if (counts->recent[i].data == NULL) {
            return error_memory(error);
        }
    }
    counts->recent_count = count;
    return OK;
}

static err take_counts(struct arena *arena, const json_t *document, struct plan_counts *counts,
                       struct error *error)
{
    counts->schema_id = (i32)json_integer_value(json_object_get(document, "schema_id"));
    counts->spec_id = (i32)json_integer_value(json_object_get(document, "spec_id"));
    TRY(take_rows(json_object_get(document, "rows"), counts, error));
    const json_t *reasons = json_object_get(document, "reasons");
    for (size_t i = 0; i < REJECT_REASON_COUNT; i++) {
        str name = reject_reason_text((enum reject_reason)i);
        const json_t *value = json_object_getn(reasons, name.data, name.size);
        counts->reasons[i] = json_integer_value(value);
    }
    return take_recent(arena, json_object_get(document, "recent"), counts, error);
}

err plan_parse_counts(struct arena *arena, str json, const struct ledger_batch *batches,
                      size_t batch_count, struct plan_counts *out_counts, struct error *error)
{
    struct plan_counts counts = {.verdict_count = batch_count};
    counts.verdicts = arena_array(arena, batch_count, sizeof(*counts.verdicts));
    if (counts.verdicts == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < batch_count; i++) {
        counts.verdicts[i].batch_id = batches[i].batch_id;
    }
    json_t *document = json.data == NULL ? NULL : json_loadb(json.data, json.size, 0, NULL);
    if (document == NULL) {
        return damaged(error, "counts");
    }
    err result = take_counts(arena, document, &counts, error);
    json_decref(document);
    TRY(result);
    *out_counts = counts;
    return OK;
}

err plan_print_try(struct arena *arena, const struct plan_try *try_made, str *out_json,
                   struct error *error)
{
    buf text = buf_create(arena, 256, TRY_BYTES_MAX);
    buf_append(&text, STR("{\"base\":"));
    if (try_made->has_base) {
        buf_append_i64(&text, try_made->base);
    } else {
        buf_append(&text, STR("null"));
    }
    buf_append_format(&text, ",\"snapshot\":%lld,\"files\":[", (long long)try_made->snapshot_id);
    for (size_t i = 0; i < try_made->file_count; i++) {
        if (i > 0) {
            buf_append_byte(&text, ',');
        }
        buf_append_json_string(&text, try_made->files[i]);
    }
    buf_append(&text, STR("]}"));
    return finish_text(&text, out_json, error);
}

i64 plan_landed_snapshot(str attempts, const struct metadata *metadata)
{
    json_t *tries = attempts.data == NULL ? NULL
                                          : json_loadb(attempts.data, attempts.size, 0, NULL);
    i64 landed = 0;
    for (size_t i = 0; i < json_array_size(tries); i++) {
        i64 id = json_integer_value(json_object_get(json_array_get(tries, i), "snapshot"));
        landed = metadata_snapshot(metadata, id) != NULL ? id : landed;
    }
    json_decref(tries);
    return landed;
}

bool plan_fence_landed(str fences, const struct metadata *metadata)
{
    json_t *ids = fences.data == NULL ? NULL : json_loadb(fences.data, fences.size, 0, NULL);
    bool landed = false;
    for (size_t i = 0; i < json_array_size(ids); i++) {
        i64 id = json_integer_value(json_array_get(ids, i));
        landed = landed || metadata_snapshot(metadata, id) != NULL;
    }
    json_decref(ids);
    return landed;
}

/* ---- the summary ---- */

str plan_join_ids(struct arena *arena, const struct ledger_batch *batches, size_t count)
{
    buf text = buf_create(arena, 256, PLAN_SUMMARY_IDS_MAX);
    for (size_t i = 0; i < count && buf_ok(&text); i++) {
        if (i > 0) {
            buf_append_byte(&text, ',');
        }
        buf_append(&text, batches[i].batch_id);
    }
    return buf_ok(&text) ? buf_str(&text) : (str){NULL, 0};
}

str plan_hash_ids(struct arena *arena, const struct ledger_batch *batches, size_t count)
{
    struct crypto_hash hash;
    crypto_hash_begin(&hash);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            crypto_hash_add(&hash, STR(","));
        }
        crypto_hash_add(&hash, batches[i].batch_id);
    }
    struct sha256 digest = crypto_hash_end(&hash);
    buf text = buf_create(arena, 64, 64);
    base64_hex(&text, (str){(const char *)digest.bytes, sizeof(digest.bytes)});
    return buf_ok(&text) ? buf_str(&text) : (str){NULL, 0};
}
