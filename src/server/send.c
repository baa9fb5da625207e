#include "server/send.h"

#include "base/log.h"
#include "server/sink_json.h"
#include "sink/intake.h"

_Static_assert(sizeof(struct intake_known_key) <= HTTP_KEPT_SIZE, "what a connection keeps");

enum { WAIT_SECONDS_DEFAULT = 30, WAIT_SECONDS_MAX = 60, ANSWER_BYTES_MAX = 64 * KIB };

str send_route(const struct http_request *request)
{
    static const str prefix = STR_INIT("/v1/sinks/");
    str path = http_request_path(request);
    if (http_request_method(request) != HTTP_POST || !str_starts(path, prefix)) {
        return (str){NULL, 0};
    }
    str id = str_slice(path, prefix.size, path.size);
    return id.size > 0 && str_find_byte(id, '/') < 0 ? id : (str){NULL, 0};
}

/* ---- answering ---- */

enum ending { KEEP_OPEN, CLOSE };

static void respond_error(struct http_request *request, const struct error *error,
                          enum ending ending)
{
    int status = error_code_http_status(error->code);
    if (status != 401 && ending == KEEP_OPEN) {
        http_respond_error(request, error);
        return;
    }
    AUTO_ARENA struct arena *arena = arena_create(ANSWER_BYTES_MAX);
    struct http_response response = {
        .status = status, .body = http_error_body(arena, error), .close = ending == CLOSE};
    if (status == 401) {
        response.headers[response.header_count++] = (struct http_header){STR("WWW-Authenticate"),
                                                                         STR("Bearer")};
    }
    http_respond(request, &response);
}

static void respond_batch(struct http_request *request, int status,
                          const struct ledger_batch *batch)
{
    json_t *json = sink_json_batch(batch);
    char text[4 * KIB];
    size_t size = json_dumpb(json, text, sizeof(text), JSON_COMPACT);
    json_decref(json);
    if (size == 0 || size > sizeof(text)) {
        struct error error = {0};
        err kind = error_set(&error, LIMIT, ERROR_INTERNAL, "the batch cannot be shown");
        log_error("batch_not_shown", kind, &error, batch->batch_id);
        http_respond_error(request, &error);
        return;
    }
    http_respond(request, &(struct http_response){.status = status, .body = (str){text, size}});
}

static void answered(void *context, const struct intake_answer *answer)
{
    struct http_request *request = context;
    if (answer->error != NULL) {
        respond_error(request, answer->error, KEEP_OPEN);
    } else if (answer->batch != NULL) {
        respond_batch(request, answer->status, answer->batch);
    } else {
        http_respond(request,
                     &(struct http_response){.status = answer->status, .body = answer->body});
    }
}

/* ---- the head ---- */

/* Two of a header that may stand once: whoever reads the request next may take the other one. Of
 * Authorization, Idempotency-Key, Content-Type and Content-Length io/http has seen to that. */
MUST_USE static err check_doubled(const struct http_request *request, struct error *error)
{
    static const str name = STR_INIT("Content-Encoding");
    return http_request_header_times(request, name) <= 1
               ? OK
               : error_set(error, INVALID, ERROR_BAD_REQUEST, "the header %.*s stands twice",
                           STR_ARG(name));
}

MUST_USE static err check_query(const struct http_request *request, struct error *error)
{
    str query = http_request_query(request);
    if (query.size == 0) {
        return OK;
    }
    if (str_find(query, STR("al_send_")) < 0 && str_find(query, STR("al_key_")) < 0) {
        return OK;
    }
    err result = error_set(error, INVALID, ERROR_KEY_IN_QUERY, "a key stood in the URL");
    error_hint(error, "send it in the Authorization header, and make a new one: URLs are logged");
    return result;
}

MUST_USE static err media_refused(struct error *error)
{
    err result = error_set(error, INVALID, ERROR_UNSUPPORTED_MEDIA_TYPE,
                           "the send route takes application/json in UTF-8, not encoded");
    error_hint(error, "send `Content-Type: application/json`");
    return result;
}

static bool charset_is_utf8(str parameter)
{
    i64 equals = str_find_byte(parameter, '=');
    str name = str_trim(str_slice(parameter, 0, equals < 0 ? parameter.size : (size_t)equals));
    if (equals < 0 || !str_equal_ignore_case(name, STR("charset"))) {
        return true;
    }
    str value = str_trim(str_slice(parameter, (size_t)equals + 1, parameter.size));
    if (value.size >= 2 && value.data[0] == '"' && value.data[value.size - 1] == '"') {
        value = str_slice(value, 1, value.size - 1);
    }
    return str_equal_ignore_case(value, STR("utf-8")) || str_equal_ignore_case(value, STR("utf8"));
}

MUST_USE static err check_media(const struct http_request *request, struct error *error)
{
    str encoding = http_request_header(request, STR("Content-Encoding"));
    str rest = http_request_header(request, STR("Content-Type"));
    str part = {0};
    if (encoding.data != NULL && !str_equal_ignore_case(encoding, STR("identity"))) {
        return media_refused(error);
    }
    if (rest.data == NULL || !str_next(&rest, ';', &part) ||
        !str_equal_ignore_case(str_trim(part), STR("application/json"))) {
        return media_refused(error);
    }
    while (str_next(&rest, ';', &part)) {
        if (!charset_is_utf8(part)) {
            return media_refused(error);
        }
    }
    return OK;
}

MUST_USE static err parameter_refused(struct error *error, const char *name, const char *wanted)
{
    error_field_text(error, "path", str_from(name));
    return error_set(error, INVALID, ERROR_INVALID_REQUEST, "%s: %s is wanted", name, wanted);
}

/* ?wait=committed&timeout=30, ?dry_run=1 */
MUST_USE static err read_parameters(struct http_request *request, struct intake_request *wanted,
                                    struct error *error)
{
    if (http_request_query(request).size == 0) {
        return OK; /* as `wanted` stands: at once, and no dry run */
    }
    str wait = http_request_parameter(request, STR("wait"));
    str timeout = http_request_parameter(request, STR("timeout"));
    str dry_run = http_request_parameter(request, STR("dry_run"));
    i64 seconds = WAIT_SECONDS_DEFAULT;
    if (wait.data != NULL && !str_equal(wait, STR("committed"))) {
        return parameter_refused(error, "wait", "committed");
    }
    if (timeout.data != NULL &&
        (!str_to_i64(timeout, &seconds) || seconds < 0 || seconds > WAIT_SECONDS_MAX)) {
        return parameter_refused(error, "timeout", "0 to 60 seconds");
    }
    if (dry_run.data != NULL && !str_equal(dry_run, STR("1")) && !str_equal(dry_run, STR("0"))) {
        return parameter_refused(error, "dry_run", "1");
    }
    wanted->wait_us = wait.data != NULL ? seconds * TIME_SECOND_US : 0;
    wanted->mode = str_equal(dry_run, STR("1")) ? INTAKE_DRY_RUN : INTAKE_ACCEPT;
    return OK;
}

MUST_USE static err head_judge(struct service *service, struct http_request *request, str sink_id,
                               struct intake_send **out_send, struct error *error)
{
    struct intake_sink *sink = NULL;
    struct intake_send *send = NULL;
    struct intake_request wanted = {
        .batch_id = http_request_header(request, STR("Idempotency-Key")),
        .content_length = http_request_content_length(request),
        .answered = answered,
        .context = request,
        .arena = http_request_arena(request),
    };
    TRY(intake_authenticate(service->intake, sink_id,
                            http_request_header(request, STR("Authorization")),
                            http_request_kept(request), http_request_peer(request), &sink, error));
    TRY(read_parameters(request, &wanted, error));
    TRY(intake_begin(service->intake, sink, &wanted, &send, error));
    err result = check_media(request, error);
    if (result != OK) {
        intake_send_drop(send);
        return result;
    }
    *out_send = send;
    return OK;
}

enum http_body_choice send_head(struct service *service, struct http_request *request, str sink_id,
                                struct intake_send **out_send)
{
    struct error error = {0};
    err result = check_doubled(request, &error);
    if (result == OK) {
        result = check_query(request, &error);
    }
    if (result != OK) {
        respond_error(request, &error, CLOSE);
        return HTTP_BODY_ANSWERED;
    }
    result = head_judge(service, request, sink_id, out_send, &error);
    if (result != OK) {
        respond_error(request, &error, KEEP_OPEN);
        return HTTP_BODY_ANSWERED;
    }
    return HTTP_BODY_READ;
}

/* ---- the body ---- */

err send_body(struct http_request *request, struct intake_send *send, str piece)
{
    struct error error = {0};
    err result = intake_send_body(send, piece, &error);
    if (result != OK) {
        intake_send_drop(send);
        respond_error(request, &error, CLOSE);
    }
    return result;
}

void send_complete(struct intake_send *send)
{
    intake_send_complete(send);
}
