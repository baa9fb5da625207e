#include "sink/intake_body.h"

#include "base/assert.h"
#include "base/utf8.h"

#include <stdio.h>

enum { FIRST_CAPACITY = 4 * KIB, REFUSED_FIRST = 16 };

struct intake_limits intake_limits_default(void)
{
    return (struct intake_limits){.body_bytes_max = (i64)16 * MIB,
                                  .rows_max = 100000,
                                  .row_bytes_max = (i64)4 * MIB,
                                  .row_depth_max = 64};
}

void intake_body_begin(struct intake_body *body, struct arena *arena,
                       const struct intake_limits *limits, i64 content_length)
{
    assert(limits->body_bytes_max > 0);
    size_t size_max = (size_t)limits->body_bytes_max + 1;
    size_t wanted = content_length < 0 ? FIRST_CAPACITY : (size_t)content_length;
    *body = (struct intake_body){.arena = arena, .limits = *limits};
    body->stored = buf_create(arena, wanted, size_max);
    json_array_init(&body->array, limits->rows_max);
    crypto_hash_begin(&body->body_hash);
    crypto_hash_begin(&body->stored_hash);
}

/* ---- elements ---- */

MUST_USE static err refused_keep(struct intake_body *body, const struct intake_refused *refused,
                                 struct error *error)
{
    if (body->refused_count == body->refused_capacity) {
        size_t capacity = body->refused_capacity == 0 ? REFUSED_FIRST : body->refused_capacity * 2;
        struct intake_refused *grown = arena_array(body->arena, capacity, sizeof(*grown));
        if (grown == NULL) {
            return error_memory(error);
        }
        if (body->refused_count > 0) {
            memcpy(grown, body->refused, body->refused_count * sizeof(*grown));
        }
        body->refused = grown;
        body->refused_capacity = capacity;
    }
    struct intake_refused *kept = &body->refused[body->refused_count];
    *kept = *refused;
    kept->bytes = str_copy(body->arena, refused->bytes);
    if (kept->bytes.data == NULL) {
        return error_memory(error);
    }
    body->refused_count++;
    return OK;
}

/* The reasons in the order of the law; returns how many. */
static size_t refused_reasons(const struct intake_limits *limits,
                              const struct intake_refused *refused,
                              enum reject_reason out[INTAKE_REFUSALS])
{
    size_t count = 0;
    if (refused->kind != JSON_KIND_OBJECT) {
        out[count++] = REJECT_NOT_AN_OBJECT;
    }
    if (refused->bytes.size > (size_t)limits->row_bytes_max) {
        out[count++] = REJECT_ROW_TOO_LARGE;
    }
    if (refused->depth > limits->row_depth_max) {
        out[count++] = REJECT_TOO_DEEP;
    }
    if (refused->utf8_at < refused->bytes.size) {
        out[count++] = REJECT_INVALID_UTF8;
    }
    return count;
}

/* CR and LF stand between tokens only: JSON allows none inside a string. */
static void put_on_one_line(char *text, size_t size)
{
    char *end = text + size;
    for (char *at = memchr(text, '\n', size); at != NULL;
         at = memchr(at, '\n', (size_t)(end - at))) {
        *at = ' ';
    }
    for (char *at = memchr(text, '\r', size); at != NULL;
         at = memchr(at, '\r', (size_t)(end - at))) {
        *at = ' ';
    }
}

/* The element's bytes are the tail of `stored`. A good one stays, a refused one leaves an empty
 * line. */
MUST_USE static err element_end(struct intake_body *body, const struct json_array_element *element,
                                struct error *error)
{
    size_t size = body->stored.size - body->element_at;
    assert(size == element->end - element->start);
    struct intake_refused judged = {.row = body->rows,
                                    .bytes = {body->stored.data + body->element_at, size},
                                    .kind = element->kind,
                                    .depth = element->depth};
    judged.utf8_at = utf8_check(judged.bytes);
    enum reject_reason reasons[INTAKE_REFUSALS];
    if (refused_reasons(&body->limits, &judged, reasons) == 0) {
        put_on_one_line(body->stored.data + body->element_at, size);
        body->accepted++;
    } else {
        TRY(refused_keep(body, &judged, error));
        body->refused_by[reasons[0] - REJECT_NOT_AN_OBJECT]++;
        buf_truncate(&body->stored, body->element_at);
    }
    body->rows++;
    body->ended = element->end;
    body->element_at = body->stored.size;
    return OK;
}

/* Of what will not change any more. */
static void stored_hash_up_to(struct intake_body *body, size_t end)
{
    crypto_hash_add(&body->stored_hash, str_slice(buf_str(&body->stored), body->hashed, end));
    body->hashed = end;
}

/* The part of the open element that lies in the piece, which begins at `base` of the body. */
MUST_USE static err element_copy(struct intake_body *body, str piece, u64 base, u64 start, u64 end,
                                 struct error *error)
{
    if (start >= base && body->rows > 0) {
        buf_append_byte(&body->stored, '\n');
        body->element_at = body->stored.size;
    }
    u64 from = start > base ? start - base : 0;
    buf_append(&body->stored, str_slice(piece, (size_t)from, (size_t)(end - base)));
    return buf_ok(&body->stored) ? OK : error_memory(error);
}

/* ---- the body ---- */

MUST_USE static err body_refused(const struct intake_body *body, enum json_array_event event,
                                 struct error *error)
{
    if (event == JSON_ARRAY_NOT_ARRAY) {
        err result = error_set(error, INVALID, ERROR_NOT_AN_ARRAY, "the body is no JSON array");
        error_hint(error, "send an array of objects: [{…}, {…}]");
        return result;
    }
    if (event == JSON_ARRAY_TOO_MANY) {
        return error_set(error, INVALID, ERROR_TOO_MANY_ROWS,
                         "the array has more than %lld elements", (long long)body->limits.rows_max);
    }
    u64 offset = json_array_offset(&body->array);
    err result = error_set(error, INVALID, ERROR_INVALID_JSON, "the body is not JSON at byte %llu",
                           (unsigned long long)offset);
    error_field_i64(error, "offset", (i64)offset);
    if (json_array_is_too_deep(&body->array)) {
        error_hint(error, "at most %d levels of objects and arrays are read", JSON_DEPTH_MAX);
    }
    return result;
}

MUST_USE static err piece_split(struct intake_body *body, str piece, struct error *error)
{
    u64 base = json_array_offset(&body->array);
    size_t at = 0;
    for (;;) {
        struct json_array_element element = {0};
        enum json_array_event event = json_array_feed(&body->array, piece, &at, &element);
        switch (event) {
        case JSON_ARRAY_ELEMENT:
            TRY(element_copy(body, piece, base, element.start, element.end, error));
            TRY(element_end(body, &element, error));
            break;
        case JSON_ARRAY_MORE: {
            /* An element is open when one has begun after the last that ended. */
            u64 start = body->array.element_start;
            if (start > 0 && start >= body->ended) {
                return element_copy(body, piece, base, start, base + piece.size, error);
            }
            return OK;
        }
        case JSON_ARRAY_NOT_ARRAY:
        case JSON_ARRAY_INVALID:
        case JSON_ARRAY_TOO_MANY:
            return body_refused(body, event, error);
        }
    }
}

err intake_body_add(struct intake_body *body, str piece, struct error *error)
{
    body->bytes += piece.size;
    if (body->bytes > (u64)body->limits.body_bytes_max) {
        return error_set(error, INVALID, ERROR_BODY_TOO_LARGE, "a body has at most %lld bytes",
                         (long long)body->limits.body_bytes_max);
    }
    if (piece.size == 0) {
        return OK;
    }
    crypto_hash_add(&body->body_hash, piece);
    TRY(piece_split(body, piece, error));
    stored_hash_up_to(body, body->element_at);
    return OK;
}

err intake_body_end(struct intake_body *body, struct error *error)
{
    enum json_array_event event = json_array_end(&body->array);
    if (event != JSON_ARRAY_MORE) {
        return body_refused(body, event, error);
    }
    assert(body->accepted + (i64)body->refused_count == body->rows);
    stored_hash_up_to(body, body->stored.size);
    body->body_digest = crypto_hash_end(&body->body_hash);
    body->stored_digest = body->accepted > 0 ? crypto_hash_end(&body->stored_hash)
                                             : crypto_sha256(STR(""));
    return OK;
}

/* ---- what is told of it ---- */

str intake_body_stored(const struct intake_body *body)
{
    return body->accepted > 0 ? buf_str(&body->stored) : STR("");
}

struct sha256 intake_body_stored_hash(const struct intake_body *body)
{
    return body->stored_digest;
}

struct sha256 intake_body_hash(const struct intake_body *body)
{
    return body->body_digest;
}

static const char *kind_text(enum json_kind kind)
{
    switch (kind) {
    case JSON_KIND_OBJECT:
        return "an object";
    case JSON_KIND_ARRAY:
        return "an array";
    case JSON_KIND_STRING:
        return "a string";
    case JSON_KIND_NUMBER:
        return "a number";
    case JSON_KIND_TRUE:
        return "true";
    case JSON_KIND_FALSE:
        return "false";
    case JSON_KIND_NULL:
        return "null";
    }
    return "";
}

static str detail_print(const struct intake_limits *limits, const struct intake_refused *refused,
                        enum reject_reason reason, char out[INTAKE_DETAIL_ROOM])
{
    int size = 0;
    if (reason == REJECT_NOT_AN_OBJECT) {
        size = snprintf(out, INTAKE_DETAIL_ROOM, "%s is no object", kind_text(refused->kind));
    } else if (reason == REJECT_ROW_TOO_LARGE) {
        size = snprintf(out, INTAKE_DETAIL_ROOM, "%zu bytes, the limit is %lld",
                        refused->bytes.size, (long long)limits->row_bytes_max);
    } else if (reason == REJECT_TOO_DEEP) {
        size = snprintf(out, INTAKE_DETAIL_ROOM, "%d levels, the limit is %lld", refused->depth,
                        (long long)limits->row_depth_max);
    } else {
        size = snprintf(out, INTAKE_DETAIL_ROOM, "byte %zu is not UTF-8", refused->utf8_at);
    }
    assert(size > 0 && size < INTAKE_DETAIL_ROOM);
    return (str){out, (size_t)size};
}

void intake_body_print_reasons(const struct intake_body *body, buf *out)
{
    buf_append_byte(out, '[');
    for (size_t i = 0; i < body->refused_count && i < INTAKE_REASONS_SHOWN; i++) {
        const struct intake_refused *refused = &body->refused[i];
        enum reject_reason reasons[INTAKE_REFUSALS] = {0};
        char detail[INTAKE_DETAIL_ROOM];
        size_t count = refused_reasons(&body->limits, refused, reasons);
        assert(count > 0);
        buf_append_format(out, "%s{\"row\":%lld,\"reason\":\"%.*s\",\"detail\":", i > 0 ? "," : "",
                          (long long)refused->row, STR_ARG(reject_reason_text(reasons[0])));
        buf_append_json_string(out, detail_print(&body->limits, refused, reasons[0], detail));
        buf_append_byte(out, '}');
    }
    buf_append_byte(out, ']');
}

str intake_body_refused_reasons(const struct intake_body *body)
{
    if (body->refused_count == 0) {
        return (str){NULL, 0};
    }
    buf out = buf_create(body->arena, 128, KIB);
    const char *before = "{";
    for (size_t i = 0; i < INTAKE_REFUSALS; i++) {
        if (body->refused_by[i] > 0) {
            enum reject_reason reason = (enum reject_reason)(REJECT_NOT_AN_OBJECT + i);
            buf_append_format(&out, "%s\"%.*s\":%lld", before, STR_ARG(reject_reason_text(reason)),
                              (long long)body->refused_by[i]);
            before = ",";
        }
    }
    buf_append_byte(&out, '}');
    return buf_ok(&out) ? buf_str(&out) : (str){NULL, 0};
}

size_t intake_body_hits(const struct intake_body *body, const struct intake_refused *refused,
                        struct reject_hit hits[INTAKE_REFUSALS],
                        char details[INTAKE_REFUSALS][INTAKE_DETAIL_ROOM])
{
    enum reject_reason reasons[INTAKE_REFUSALS] = {0};
    size_t count = refused_reasons(&body->limits, refused, reasons);
    for (size_t i = 0; i < count; i++) {
        hits[i] = (struct reject_hit){.reason = reasons[i]};
        hits[i].detail = detail_print(&body->limits, refused, reasons[i], details[i]);
    }
    return count;
}

void intake_body_print_rejects(const struct intake_body *body, const struct reject_batch *batch,
                               buf *out)
{
    for (size_t i = 0; i < body->refused_count; i++) {
        const struct intake_refused *refused = &body->refused[i];
        struct reject_hit hits[INTAKE_REFUSALS];
        char details[INTAKE_REFUSALS][INTAKE_DETAIL_ROOM];
        size_t count = intake_body_hits(body, refused, hits, details);
        reject_record(
            out, batch,
            &(struct reject_row){
                .row = refused->row, .hits = hits, .hit_count = count, .data = refused->bytes});
    }
}
