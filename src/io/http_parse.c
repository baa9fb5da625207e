/* Feeding llhttp: its callbacks collect the head and hand the body over, and count what it does not
 * bound (head, target, fields, chunk lines, trailers).
 *
 * llhttp is paused when the head is whole, so that the checks and the application see it before a
 * byte of the body is parsed, and when the message is whole, so that a pipelined request waits. */
#include "io/http_connection.h"

#include "base/assert.h"

static struct http_connection *connection_of(llhttp_t *parser)
{
    return parser->data;
}

/* ---- the head ---- */

static int on_url(llhttp_t *parser, const char *at, size_t size)
{
    struct http_connection *connection = connection_of(parser);
    struct http_request *request = connection->request;
    size_t target_max = (size_t)connection->loop->server->options.target_bytes_max;
    if (request->target.size + size > target_max) {
        http_refuse(connection, ERROR_URI_TOO_LONG, "the request target is too long");
        return -1;
    }
    if (!http_request_append(request, at, size)) {
        http_refuse(connection, ERROR_OVERLOADED, "no memory for the request head");
        return -1;
    }
    request->target.size += (u32)size;
    return 0;
}

/* Bytes that are no body, from the last piece of body to `at`: a chunk's size line and `more_max`.
 */
static bool framing_within(struct http_connection *connection, const char *at, i64 more_max)
{
    i64 bytes = connection->framing_bytes + (at - connection->framing_at);
    i64 bytes_max = HTTP_CHUNK_LINE_BYTES_MAX + more_max;
    if (connection->chunk_extended) {
        bytes_max += HTTP_CHUNK_EXTENSION_BYTES_MAX;
    }
    return bytes <= bytes_max
               ? true
               : http_refuse(connection, ERROR_BAD_REQUEST, "the size line of a chunk is too long");
}

static bool framing_check(struct http_connection *connection, const char *at)
{
    i64 more_max = connection->trailing ? 2 : 0; /* the empty line at the end */
    if (connection->trailer_bytes > 0) {
        more_max += 2 * HTTP_TRAILER_BYTES_MAX; /* they have their own limit */
    }
    return framing_within(connection, at, more_max);
}

/* Trailers are read and dropped. */
static int trailer_count(struct http_connection *connection, size_t size)
{
    connection->trailer_bytes += (i64)size;
    if (connection->trailer_bytes > HTTP_TRAILER_BYTES_MAX) {
        http_refuse(connection, ERROR_BAD_REQUEST, "too many bytes of trailers");
        return -1;
    }
    return 0;
}

static int field_begin(struct http_connection *connection)
{
    struct http_request *request = connection->request;
    if (request->field_count >= (size_t)connection->loop->server->options.header_count_max) {
        http_refuse(connection, ERROR_HEADERS_TOO_LARGE, "the request has too many fields");
        return -1;
    }
    struct http_field *field = http_request_field_add(request);
    if (field == NULL) {
        http_refuse(connection, ERROR_OVERLOADED, "no memory for the request head");
        return -1;
    }
    field->name.at = (u32)request->text_size;
    connection->field_open = true;
    return 0;
}

static int on_header_field(llhttp_t *parser, const char *at, size_t size)
{
    struct http_connection *connection = connection_of(parser);
    struct http_request *request = connection->request;
    if (connection->state == HTTP_STATE_BODY) {
        /* The last size line ends where the first trailer begins, wherever the network cut. */
        if (connection->trailer_bytes == 0 && !framing_within(connection, at, 0)) {
            return -1;
        }
        return trailer_count(connection, size);
    }
    if (!connection->field_open && field_begin(connection) != 0) {
        return -1;
    }
    if (!http_request_append(request, at, size)) {
        http_refuse(connection, ERROR_OVERLOADED, "no memory for the request head");
        return -1;
    }
    request->fields[request->field_count - 1].name.size += (u32)size;
    return 0;
}

static int on_header_field_complete(llhttp_t *parser)
{
    struct http_connection *connection = connection_of(parser);
    struct http_request *request = connection->request;
    if (connection->state != HTTP_STATE_BODY) {
        connection->field_open = false;
        request->fields[request->field_count - 1].value.at = (u32)request->text_size;
    }
    return 0;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t size)
{
    struct http_connection *connection = connection_of(parser);
    struct http_request *request = connection->request;
    if (connection->state == HTTP_STATE_BODY) {
        return trailer_count(connection, size);
    }
    if (!http_request_append(request, at, size)) {
        http_refuse(connection, ERROR_OVERLOADED, "no memory for the request head");
        return -1;
    }
    request->fields[request->field_count - 1].value.size += (u32)size;
    return 0;
}

/* llhttp leaves blanks at the end of a value when it came in pieces. */
static int on_header_value_complete(llhttp_t *parser)
{
    struct http_connection *connection = connection_of(parser);
    struct http_request *request = connection->request;
    if (connection->state != HTTP_STATE_BODY) {
        struct http_span *value = &request->fields[request->field_count - 1].value;
        value->size = (u32)str_trim(http_request_span(request, *value)).size;
    }
    return 0;
}

static int on_headers_complete(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED;
}

/* ---- the body ---- */

static int on_chunk_extension(llhttp_t *parser, const char *at, size_t size)
{
    struct http_connection *connection = connection_of(parser);
    (void)size;
    /* What stands before the first one is the size, as on a line without. */
    if (!connection->chunk_extended && !framing_check(connection, at)) {
        return -1;
    }
    connection->chunk_extended = true;
    return 0;
}

static int on_chunk_header(llhttp_t *parser)
{
    struct http_connection *connection = connection_of(parser);
    i64 body_bytes_max = connection->loop->server->options.body_bytes_max;
    connection->trailing = parser->content_length == 0;
    if (parser->content_length > UINT32_MAX) {
        http_refuse(connection, ERROR_BAD_REQUEST, "a chunk's size has more than 8 digits");
        return -1;
    }
    if (connection->body_bytes + (i64)parser->content_length > body_bytes_max) {
        http_refuse(connection, ERROR_BODY_TOO_LARGE, "the body is larger than its limit");
        return -1;
    }
    return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t size)
{
    struct http_connection *connection = connection_of(parser);
    struct http_request *request = connection->request;
    const struct http_handlers *handlers = &connection->loop->server->handlers;
    if (request->chunked) {
        if (!framing_check(connection, at)) {
            return -1;
        }
        if (!http_request_reserve(request, (i64)size)) {
            http_refuse(connection, ERROR_OVERLOADED, "too many bodies are being read");
            return -1;
        }
    }
    connection->framing_at = at + size;
    connection->framing_bytes = 0;
    connection->chunk_extended = false;
    connection->body_bytes += (i64)size;
    if (handlers->body(handlers->context, request, (str){at, size}) != OK) {
        connection->body_unwanted = true;
        return -1;
    }
    return 0;
}

static int on_message_complete(llhttp_t *parser)
{
    connection_of(parser)->message_complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_field_complete = on_header_field_complete,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_chunk_extension_name = on_chunk_extension,
    .on_chunk_extension_value = on_chunk_extension,
    .on_chunk_header = on_chunk_header,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

void http_parse_begin(struct http_connection *connection)
{
    llhttp_init(&connection->parser, HTTP_REQUEST, &settings);
    connection->parser.data = connection;
    connection->head_bytes = 0;
    connection->body_bytes = 0;
    connection->trailer_bytes = 0;
    connection->field_open = false;
    connection->trailing = false;
    connection->chunk_extended = false;
    connection->body_unwanted = false;
    connection->continue_wanted = false;
    connection->message_complete = false;
    connection->keep_alive = false;
    connection->framing_bytes = 0;
    connection->refusal = (struct http_refusal){0};
    memset(connection->line_start, 0, sizeof(connection->line_start));
}

/* ---- what llhttp refused ---- */

/* Is the first line, as far as it has come, that of a request with a method that nobody knows? */
static bool method_is_token(const char line[HTTP_LINE_START_SIZE])
{
    size_t at = 0;
    while (at < HTTP_LINE_START_SIZE && line[at] != 0 &&
           ((line[at] >= 'A' && line[at] <= 'Z') || (line[at] >= 'a' && line[at] <= 'z') ||
            line[at] == '-' || line[at] == '_')) {
        at++;
    }
    if (at == 0 || at + 1 >= HTTP_LINE_START_SIZE) {
        return false;
    }
    if (line[at] == 0) {
        return true;
    }
    char next = line[at + 1];
    return line[at] == ' ' && (next == 0 || next == '/' || next == '*' || next == 'h');
}

static void refuse_transfer_encoding(struct http_connection *connection)
{
    bool has_length = http_request_header_times(connection->request, STR("content-length")) > 0;
    if (has_length || connection->parser.http_minor == 0) {
        http_refuse(connection, ERROR_BAD_REQUEST, "Transfer-Encoding where it cannot stand");
    } else {
        http_refuse(connection, ERROR_NOT_IMPLEMENTED,
                    "of transfer-encodings only chunked is known");
    }
}

/* llhttp counts a version that does not end in CRLF as a wrong version. */
static bool version_unsupported(const llhttp_t *parser)
{
    return str_find(str_from(llhttp_get_error_reason(parser)), STR("CRLF")) < 0;
}

static void refuse_by_parser(struct http_connection *connection, llhttp_errno_t failure)
{
    if (memcmp(connection->line_start, "PRI ", 4) == 0) {
        http_refuse(connection, ERROR_HTTP_VERSION_UNSUPPORTED,
                    "this server speaks HTTP/1.1 and HTTP/1.0");
        return;
    }
    switch ((int)failure) {
    case HPE_INVALID_VERSION:
        if (version_unsupported(&connection->parser)) {
            http_refuse(connection, ERROR_HTTP_VERSION_UNSUPPORTED,
                        "this server speaks HTTP/1.1 and HTTP/1.0");
            break;
        }
        http_refuse(connection, ERROR_BAD_REQUEST, "the request line does not end in CRLF");
        break;
    case HPE_INVALID_TRANSFER_ENCODING:
        refuse_transfer_encoding(connection);
        break;
    case HPE_INVALID_METHOD:
        if (method_is_token(connection->line_start)) {
            http_refuse(connection, ERROR_METHOD_NOT_ALLOWED, "the method is not known");
            break;
        }
        http_refuse(connection, ERROR_BAD_REQUEST, "the method is no method");
        break;
    default: {
        const char *reason = llhttp_get_error_reason(&connection->parser);
        http_refuse(connection, ERROR_BAD_REQUEST,
                    reason != NULL && reason[0] != 0 ? reason : "the request is malformed");
    }
    }
}

/* ---- feeding ---- */

static void line_start_keep(struct http_connection *connection, str piece)
{
    size_t kept = strnlen(connection->line_start, HTTP_LINE_START_SIZE);
    for (size_t at = 0; at < piece.size && kept < HTTP_LINE_START_SIZE; at++) {
        char c = piece.data[at];
        if (kept > 0 || (c != '\r' && c != '\n')) {
            connection->line_start[kept] = c;
            kept++;
        }
    }
}

/* The head is whole: our checks, then the application's choice. */
static enum http_parsed head_complete(struct http_connection *connection)
{
    struct http_request *request = connection->request;
    struct http_server *server = connection->loop->server;
    connection->parser.upgrade = 0; /* an offered upgrade is not taken */
    if (!http_head_check(connection)) {
        return HTTP_PARSED_REFUSED;
    }
    connection->keep_alive = llhttp_should_keep_alive(&connection->parser) != 0;
    request->seen = true;
    atomic_fetch_add_explicit(&server->active, 1, memory_order_relaxed);
    connection->state = HTTP_STATE_BODY;
    connection->framing_bytes = 2; /* the first chunk's line has no chunk before it to end */
    if (server->handlers.head(server->handlers.context, request) == HTTP_BODY_ANSWERED) {
        return HTTP_PARSED_ANSWERED;
    }
    if (request->content_length > 0 && !http_request_reserve(request, request->content_length)) {
        http_refuse(connection, ERROR_OVERLOADED, "too many bodies are being read");
        return HTTP_PARSED_REFUSED;
    }
    return HTTP_PARSED_MORE;
}

/* At most what is left of the head's limit and a byte, so that passing it is seen. */
static str piece_next(struct http_connection *connection)
{
    if (connection->state == HTTP_STATE_BODY) {
        return connection->input;
    }
    i64 head_bytes_max = connection->loop->server->options.head_bytes_max;
    return str_slice(connection->input, 0, (size_t)(head_bytes_max + 1 - connection->head_bytes));
}

static bool head_limit_check(struct http_connection *connection, size_t taken)
{
    connection->head_bytes += (i64)taken;
    return connection->head_bytes <= connection->loop->server->options.head_bytes_max
               ? true
               : http_refuse(connection, ERROR_HEADERS_TOO_LARGE, "the request head is too large");
}

/* All of a piece was taken and the request is not at an end. */
static enum http_parsed piece_taken(struct http_connection *connection, str piece)
{
    connection->input = str_slice(connection->input, piece.size, connection->input.size);
    if (connection->state != HTTP_STATE_BODY) {
        return head_limit_check(connection, piece.size) ? HTTP_PARSED_MORE : HTTP_PARSED_REFUSED;
    }
    if (connection->request->chunked) {
        const char *end = piece.data + piece.size;
        if (!framing_check(connection, end)) {
            return HTTP_PARSED_REFUSED;
        }
        connection->framing_bytes += end - connection->framing_at;
    }
    return HTTP_PARSED_MORE;
}

/* llhttp paused in our callback: at the end of the head, or of the message. */
static enum http_parsed piece_paused(struct http_connection *connection, str piece)
{
    const char *stopped = llhttp_get_error_pos(&connection->parser);
    size_t taken = (size_t)(stopped - piece.data);
    assert(taken <= piece.size);
    connection->input = str_slice(connection->input, taken, connection->input.size);
    llhttp_resume(&connection->parser);
    if (connection->state != HTTP_STATE_BODY) {
        if (!head_limit_check(connection, taken)) {
            return HTTP_PARSED_REFUSED;
        }
        return head_complete(connection);
    }
    if (connection->request->chunked && !framing_check(connection, stopped)) {
        return HTTP_PARSED_REFUSED;
    }
    return HTTP_PARSED_COMPLETE;
}

static enum http_parsed parse_piece(struct http_connection *connection)
{
    str piece = piece_next(connection);
    connection->framing_at = piece.data;
    if (connection->head_bytes < HTTP_LINE_START_SIZE) {
        line_start_keep(connection, piece);
    }
    llhttp_errno_t result = llhttp_execute(&connection->parser, piece.data, piece.size);
    if (connection->body_unwanted) {
        return HTTP_PARSED_ANSWERED;
    }
    if (result == HPE_OK) {
        return piece_taken(connection, piece);
    }
    if (result == HPE_PAUSED) {
        return piece_paused(connection, piece);
    }
    refuse_by_parser(connection, result); /* unless a callback of ours has refused already */
    return HTTP_PARSED_REFUSED;
}

enum http_parsed http_parse_input(struct http_connection *connection)
{
    enum http_parsed parsed = HTTP_PARSED_MORE;
    /* A message without a body is complete without another byte. */
    bool head_ended = false;
    while (parsed == HTTP_PARSED_MORE && (connection->input.size > 0 || head_ended)) {
        bool in_head = connection->state != HTTP_STATE_BODY;
        parsed = parse_piece(connection);
        head_ended = in_head && connection->state == HTTP_STATE_BODY;
    }
    return parsed;
}
