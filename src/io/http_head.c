/* What llhttp leaves to us of a whole head: versions, Host, doubled fields, framing, target,
 * Expect, length. The first check that fails decides the answer. */
#include "io/http_connection.h"

#include "base/assert.h"

enum { LENGTH_DIGITS_MAX = 19 };

/* The fields that may stand once at most, and those whose values are looked at. */
enum known_field {
    FIELD_HOST,
    FIELD_CONTENT_LENGTH,
    FIELD_TRANSFER_ENCODING,
    FIELD_CONTENT_TYPE,
    FIELD_AUTHORIZATION,
    FIELD_IDEMPOTENCY_KEY,
    FIELD_EXPECT,
    FIELD_COUNT,
};

static const str field_names[FIELD_COUNT] = {
    [FIELD_HOST] = STR_INIT("host"),
    [FIELD_CONTENT_LENGTH] = STR_INIT("content-length"),
    [FIELD_TRANSFER_ENCODING] = STR_INIT("transfer-encoding"),
    [FIELD_CONTENT_TYPE] = STR_INIT("content-type"),
    [FIELD_AUTHORIZATION] = STR_INIT("authorization"),
    [FIELD_IDEMPOTENCY_KEY] = STR_INIT("idempotency-key"),
    [FIELD_EXPECT] = STR_INIT("expect"),
};

struct known_fields {
    i32 times[FIELD_COUNT];
    str values[FIELD_COUNT];
};

bool http_refuse(struct http_connection *connection, enum error_code code, const char *message)
{
    if (connection->refusal.code == ERROR_NONE) {
        connection->refusal = (struct http_refusal){code, message};
    }
    return false;
}

static void fields_find(const struct http_request *request, struct known_fields *known)
{
    for (size_t index = 0; index < request->field_count; index++) {
        str name = http_request_span(request, request->fields[index].name);
        for (size_t field = 0; field < FIELD_COUNT; field++) {
            if (name.size == field_names[field].size &&
                str_equal_ignore_case(name, field_names[field])) {
                known->times[field]++;
                known->values[field] = http_request_span(request, request->fields[index].value);
            }
        }
    }
}

static enum http_method method_of(u8 method)
{
    switch (method) {
    case LLHTTP_GET:
        return HTTP_GET;
    case LLHTTP_HEAD:
        return HTTP_HEAD;
    case LLHTTP_POST:
        return HTTP_POST;
    case LLHTTP_PUT:
        return HTTP_PUT;
    case LLHTTP_PATCH:
        return HTTP_PATCH;
    case LLHTTP_DELETE:
        return HTTP_DELETE;
    case LLHTTP_OPTIONS:
        return HTTP_OPTIONS;
    default:
        return HTTP_OTHER;
    }
}

static bool check_version(struct http_connection *connection)
{
    const llhttp_t *parser = &connection->parser;
    if (parser->http_major != 1 || parser->http_minor > 1) {
        return http_refuse(connection, ERROR_HTTP_VERSION_UNSUPPORTED,
                           "this server speaks HTTP/1.1 and HTTP/1.0");
    }
    return true;
}

/* RFC 9110 7.2: what can stand in a host and port. */
static bool host_valid(str host)
{
    for (size_t at = 0; at < host.size; at++) {
        unsigned char c = (unsigned char)host.data[at];
        bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                            (c >= 'A' && c <= 'Z');
        if (!alphanumeric && (c == 0 || strchr(".-_~:[]%!$&'()*+;=", c) == NULL)) {
            return false;
        }
    }
    return host.size > 0;
}

static bool check_host(struct http_connection *connection, const struct known_fields *known)
{
    i32 times = known->times[FIELD_HOST];
    if (times > 1) {
        return http_refuse(connection, ERROR_BAD_REQUEST, "two Host fields");
    }
    if (times == 0) {
        return connection->parser.http_minor == 0
                   ? true
                   : http_refuse(connection, ERROR_BAD_REQUEST, "no Host field");
    }
    return host_valid(known->values[FIELD_HOST])
               ? true
               : http_refuse(connection, ERROR_BAD_REQUEST, "the Host field is not a host");
}

static bool check_doubles(struct http_connection *connection, const struct known_fields *known)
{
    if (known->times[FIELD_IDEMPOTENCY_KEY] > 1) {
        return http_refuse(connection, ERROR_BAD_IDEMPOTENCY_KEY, "two Idempotency-Key fields");
    }
    if (known->times[FIELD_AUTHORIZATION] > 1) {
        return http_refuse(connection, ERROR_BAD_REQUEST, "two Authorization fields");
    }
    if (known->times[FIELD_CONTENT_TYPE] > 1) {
        return http_refuse(connection, ERROR_BAD_REQUEST, "two Content-Type fields");
    }
    if (known->times[FIELD_CONTENT_LENGTH] > 1) {
        return http_refuse(connection, ERROR_BAD_REQUEST, "two Content-Length fields");
    }
    return true;
}

static bool check_framing(struct http_connection *connection, const struct known_fields *known)
{
    struct http_request *request = connection->request;
    bool has_length = known->times[FIELD_CONTENT_LENGTH] > 0;
    if (known->times[FIELD_TRANSFER_ENCODING] > 0) {
        if (has_length) {
            return http_refuse(connection, ERROR_BAD_REQUEST,
                               "Content-Length beside Transfer-Encoding");
        }
        if (connection->parser.http_minor == 0) {
            return http_refuse(connection, ERROR_BAD_REQUEST, "Transfer-Encoding in HTTP/1.0");
        }
        if (known->times[FIELD_TRANSFER_ENCODING] > 1 ||
            !str_equal_ignore_case(known->values[FIELD_TRANSFER_ENCODING], STR("chunked"))) {
            return http_refuse(connection, ERROR_NOT_IMPLEMENTED,
                               "of transfer-encodings only chunked is known");
        }
        request->chunked = true;
        return true;
    }
    if (has_length && (known->values[FIELD_CONTENT_LENGTH].size > LENGTH_DIGITS_MAX ||
                       connection->parser.content_length > INT64_MAX)) {
        return http_refuse(connection, ERROR_BAD_REQUEST, "the Content-Length is too long");
    }
    request->content_length = has_length ? (i64)connection->parser.content_length : 0;
    return true;
}

static bool check_length(struct http_connection *connection, const struct known_fields *known)
{
    struct http_request *request = connection->request;
    bool wants_body = request->method == HTTP_POST || request->method == HTTP_PUT ||
                      request->method == HTTP_PATCH;
    if (wants_body && !request->chunked && known->times[FIELD_CONTENT_LENGTH] == 0) {
        return http_refuse(connection, ERROR_LENGTH_REQUIRED,
                           "this method needs Content-Length or a chunked body");
    }
    if (request->content_length > connection->loop->server->options.body_bytes_max) {
        return http_refuse(connection, ERROR_BODY_TOO_LARGE, "the body is larger than its limit");
    }
    return true;
}

/* RFC 9110 10.1.1: an expectation in HTTP/1.0 is ignored. */
static bool check_expect(struct http_connection *connection, const struct known_fields *known)
{
    if (known->times[FIELD_EXPECT] == 0 || connection->parser.http_minor == 0) {
        return true;
    }
    if (known->times[FIELD_EXPECT] > 1 ||
        !str_equal_ignore_case(known->values[FIELD_EXPECT], STR("100-continue"))) {
        return http_refuse(connection, ERROR_EXPECTATION_FAILED,
                           "of expectations only 100-continue is known");
    }
    connection->continue_wanted = http_request_has_body(connection->request);
    return true;
}

static bool check_target(struct http_connection *connection)
{
    const char *wrong = http_request_read_target(connection->request,
                                                 connection->loop->server->options.raw_prefix);
    return wrong == NULL ? true : http_refuse(connection, ERROR_BAD_REQUEST, wrong);
}

bool http_head_check(struct http_connection *connection)
{
    struct http_request *request = connection->request;
    struct known_fields known = {0};
    request->method = method_of(connection->parser.method);
    request->head_only = request->method == HTTP_HEAD;
    if (!check_version(connection)) {
        return false;
    }
    if (connection->parser.method == LLHTTP_CONNECT) {
        return http_refuse(connection, ERROR_METHOD_NOT_ALLOWED, "this server is no proxy");
    }
    fields_find(request, &known);
    return check_host(connection, &known) && check_doubles(connection, &known) &&
           check_framing(connection, &known) && check_target(connection) &&
           check_expect(connection, &known) && check_length(connection, &known);
}
