/* Answers: what the application says, in the form that goes on the wire.
 *
 * Whoever answers renders all that does not depend on the moment into the request's arena, once;
 * the loop adds the status line, Date and Connection when it begins to write. */
#include "io/http_connection.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/metric.h"

#include <stdio.h>

enum { REST_FIXED_BYTES = 256, RETRY_SECONDS_MAX = 60, ERROR_BODY_MAX = 64 * KIB };

const char http_response_full[] =
    "HTTP/1.1 503 Service Unavailable\r\n"
    "Connection: close\r\n"
    "Retry-After: 5\r\n"
    "Content-Type: application/json\r\n"
    "Content-Length: 91\r\n"
    "\r\n"
    "{\"error\":{\"code\":\"overloaded\",\"message\":\"too many connections\","
    "\"hint\":\"\",\"retryable\":true}}";

static const char *reason_phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {419, "Authentication Timeout"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t index = 0; index < ARRAY_COUNT(phrases); index++) {
        if (phrases[index].status == status) {
            return phrases[index].phrase;
        }
    }
    return "Status";
}

/* ---- rendering ---- */

static bool status_has_body(int status)
{
    return status != 204 && status != 304;
}

static bool header_given(const struct http_response *response, str name)
{
    for (size_t index = 0; index < response->header_count; index++) {
        if (str_equal_ignore_case(response->headers[index].name, name)) {
            return true;
        }
    }
    return false;
}

/* Seconds within [least, most], different from request to request. */
static int seconds_between(const struct http_request *request, int least, int most)
{
    u64 mixed = (request->loop->id_prefix ^ request->number) * 0x9e3779b97f4a7c15;
    return least + (int)((mixed >> 33) % (u64)(most - least + 1));
}

/* A value from outside cannot end its line. */
static void append_value(buf *out, str value)
{
    for (size_t at = 0; at < value.size; at++) {
        unsigned char c = (unsigned char)value.data[at];
        buf_append_byte(out, c < 0x20 || c == 0x7f ? ' ' : c);
    }
}

/* A header of our own words. */
static void append_plain(buf *out, str name, str value)
{
    buf_append(out, name);
    buf_append(out, value);
    buf_append(out, STR("\r\n"));
}

static void append_header(buf *out, str name, str value)
{
    buf_append(out, name);
    buf_append(out, STR(": "));
    append_value(out, value);
    buf_append(out, STR("\r\n"));
}

static size_t rest_size(const struct http_response *response)
{
    size_t size = REST_FIXED_BYTES + response->content_type.size + response->body.size;
    for (size_t index = 0; index < response->header_count; index++) {
        size += response->headers[index].name.size + response->headers[index].value.size + 4;
    }
    return size;
}

static void append_rest(buf *out, const struct http_request *request,
                        const struct http_response *response)
{
    append_plain(out, STR("X-Request-Id: "), http_request_id(request));
    for (size_t index = 0; index < response->header_count; index++) {
        append_header(out, response->headers[index].name, response->headers[index].value);
    }
    if ((response->status == 429 || response->status == 503) &&
        !header_given(response, STR("Retry-After"))) {
        buf_append(out, STR("Retry-After: "));
        buf_append_i64(out, seconds_between(request, 1, 5));
        buf_append(out, STR("\r\n"));
    }
    if (status_has_body(response->status)) {
        if (response->content_type.size > 0) {
            append_header(out, STR("Content-Type"), response->content_type);
        } else {
            append_plain(out, STR("Content-Type: "), STR("application/json"));
        }
        buf_append(out, STR("Content-Length: "));
        buf_append_i64(out, (i64)response->body.size);
        buf_append(out, STR("\r\n"));
    }
    buf_append(out, STR("\r\n"));
    if (status_has_body(response->status) && !request->head_only) {
        buf_append(out, response->body);
    }
}

static void render(struct http_request *request, const struct http_response *response)
{
    size_t size = rest_size(response);
    buf out = buf_create(request->arena, size, size);
    append_rest(&out, request, response);
    if (!buf_ok(&out)) {
        /* More than the request's arena has left: an arena for the answer alone. */
        request->answer.arena = arena_create(size * 2 + 64 * KIB);
        out = buf_create(request->answer.arena, size, size);
        append_rest(&out, request, response);
    }
    assert(buf_ok(&out));
    request->answer.status = response->status;
    request->answer.close = response->close;
    request->answer.rest = buf_str(&out);
}

/* ---- answering ---- */

void http_respond(struct http_request *request, const struct http_response *response)
{
    assert(response->status >= 200);
    assert(response->status <= 599);
    assert(response->header_count <= ARRAY_COUNT(response->headers));
    bool again = atomic_flag_test_and_set_explicit(&request->answered, memory_order_acq_rel);
    assert(!again);
    render(request, response);
    http_loop_answered(request);
}

str http_error_body(struct arena *arena, const struct error *error)
{
    enum error_code code = error->code == ERROR_NONE ? ERROR_INTERNAL : error->code;
    buf out = buf_create(arena, 512, ERROR_BODY_MAX);
    buf_append(&out, STR("{\"error\":{\"code\":"));
    buf_append_json_string(&out, str_from(error_code_text(code)));
    buf_append(&out, STR(",\"message\":"));
    buf_append_json_string(&out, str_from(error->message));
    buf_append(&out, STR(",\"hint\":"));
    const char *hint = error->hint[0] != '\0' ? error->hint : error_code_hint(code);
    buf_append_json_string(&out, str_from(hint));
    buf_append(&out, STR(",\"retryable\":"));
    buf_append(&out, error_code_retryable(code) ? STR("true") : STR("false"));
    if (error->fields[0] != 0) {
        buf_append(&out, STR(","));
        buf_append(&out, str_from(error->fields));
    }
    buf_append(&out, STR("}}"));
    return buf_ok(&out) ? buf_str(&out) : STR("{\"error\":{\"code\":\"internal\"}}");
}

/* Retry-After of a code; 0: it has none. */
static int retry_after(const struct http_request *request, const struct error *error)
{
    if (error->retry_after_seconds > 0) {
        return error->retry_after_seconds;
    }
    int status = error_code_http_status(error->code);
    if (error->code == ERROR_DISK_LOW || error->code == ERROR_QUOTA_EXCEEDED) {
        return seconds_between(request, 30, RETRY_SECONDS_MAX);
    }
    if (error->code == ERROR_DRAINING || error->code == ERROR_STORE_DOWN ||
        error->code == ERROR_LEDGER_DOWN) {
        return seconds_between(request, 5, 15);
    }
    return status == 429 || status == 503 ? seconds_between(request, 1, 5) : 0;
}

static void error_response(const struct http_request *request, const struct error *error,
                           char retry_text[16], struct http_response *response)
{
    enum error_code code = error->code == ERROR_NONE ? ERROR_INTERNAL : error->code;
    response->status = error_code_http_status(code);
    if (response->status == 401) {
        response->headers[response->header_count++] = (struct http_header){STR("WWW-Authenticate"),
                                                                           STR("Bearer")};
    }
    int seconds = code == ERROR_INTERNAL ? 0 : retry_after(request, error);
    if (seconds > 0) {
        int size = snprintf(retry_text, 16, "%d", seconds);
        response->headers[response->header_count++] = (struct http_header){
            STR("Retry-After"), {retry_text, (size_t)size}};
    }
}

void http_respond_error(struct http_request *request, const struct error *error)
{
    char retry_text[16];
    struct http_response response = {0};
    error_response(request, error, retry_text, &response);
    response.body = http_error_body(request->arena, error);
    http_respond(request, &response);
}

void http_response_refuse(struct http_request *request, enum error_code code, const char *message)
{
    char retry_text[16];
    struct error error = {0};
    (void)error_set(&error, INVALID, code, "%s", message);
    struct http_response response = {.close = true};
    error_response(request, &error, retry_text, &response);
    if (code == ERROR_METHOD_NOT_ALLOWED) {
        response.headers[response.header_count++] = (struct http_header){
            STR("Allow"), STR("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")};
    }
    response.body = http_error_body(request->arena, &error);
    render(request, &response);
    request->ready = true;
}

void http_response_lead(struct http_connection *connection)
{
    const struct http_loop *loop = connection->loop;
    int status = connection->request->answer.status;
    buf lead = {.data = connection->lead, .capacity = HTTP_LEAD_SIZE, .size_max = HTTP_LEAD_SIZE};
    buf_append(&lead, STR("HTTP/1.1 "));
    buf_append_i64(&lead, status);
    buf_append(&lead, STR(" "));
    buf_append(&lead, str_from(reason_phrase(status)));
    append_plain(&lead, STR("\r\nDate: "), (str){loop->date, loop->date_size});
    if (connection->close_after) {
        buf_append(&lead, STR("Connection: close\r\n"));
    } else if (connection->parser.http_minor == 0) {
        buf_append(&lead, STR("Connection: keep-alive\r\n"));
    }
    assert(buf_ok(&lead));
    connection->lead_size = lead.size;
    metric_add(METRIC_HTTP_REQUESTS, 1);
    if (status >= 400) {
        metric_add(METRIC_HTTP_REFUSED, 1);
    }
}
