/* The HTTP server's parsing: no input may break it, and where the network cuts the bytes may not
 * change what a request is. The first byte says where to cut; the limits are small, so that they
 * are reached. */
#include "fuzz.h"

#include "io/http_connection.h"

#include <stdio.h>
#include <stdlib.h>

enum { TRACE_SIZE = 64 * 1024 };

/* What the application saw, and how it ended. */
struct trace {
    char text[TRACE_SIZE];
    size_t size;
};

static void trace_add(struct trace *trace, str text)
{
    size_t room = TRACE_SIZE - trace->size;
    size_t size = text.size < room ? text.size : room;
    memcpy(trace->text + trace->size, text.data, size);
    trace->size += size;
}

static enum http_body_choice take_head(void *context, struct http_request *request)
{
    trace_add(context, STR("\nhead "));
    trace_add(context, http_request_path(request));
    trace_add(context, STR("?"));
    trace_add(context, http_request_query(request));
    for (size_t index = 0; index < http_request_header_count(request); index++) {
        struct http_header header = http_request_header_at(request, index);
        trace_add(context, STR("\n"));
        trace_add(context, header.name);
        trace_add(context, STR(":"));
        trace_add(context, header.value);
    }
    (void)http_request_parameter(request, STR("a"));
    return str_starts(http_request_path(request), STR("/e")) ? HTTP_BODY_ANSWERED : HTTP_BODY_READ;
}

static err take_body(void *context, struct http_request *request, str piece)
{
    (void)request;
    trace_add(context, piece);
    return OK;
}

static void take_end(void *context, struct http_request *request)
{
    (void)context;
    (void)request;
}

static struct http_server server;
static struct http_loop loop;

/* False when no more of the connection is parsed. */
static bool feed(struct http_connection *connection, struct trace *trace, str piece)
{
    connection->input = piece;
    while (connection->input.size > 0) {
        switch (http_parse_input(connection)) {
        case HTTP_PARSED_MORE:
            break;
        case HTTP_PARSED_REFUSED:
            trace_add(trace, STR("\nrefused"));
            return false;
        case HTTP_PARSED_ANSWERED:
            trace_add(trace, STR("\nanswered"));
            return false;
        case HTTP_PARSED_COMPLETE:
            trace_add(trace, STR("\ncomplete"));
            if (!connection->keep_alive) {
                return false;
            }
            http_request_end(connection->request);
            connection->request = http_request_create(connection);
            connection->state = HTTP_STATE_HEAD;
            http_parse_begin(connection);
            break;
        }
    }
    return true;
}

static void run(struct trace *trace, str bytes, size_t cut)
{
    static struct http_connection connection;
    trace->size = 0;
    server.handlers = (struct http_handlers){take_head, take_body, take_end, take_end, trace};
    connection = (struct http_connection){.loop = &loop, .state = HTTP_STATE_HEAD};
    connection.request = http_request_create(&connection);
    http_parse_begin(&connection);
    if (feed(&connection, trace, str_slice(bytes, 0, cut))) {
        (void)feed(&connection, trace, str_slice(bytes, cut, bytes.size));
    }
    http_request_end(connection.request);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    static struct trace whole;
    static struct trace pieces;
    if (size < 2) {
        return 0;
    }
    server.options = http_options_default();
    server.options.head_bytes_max = 512;
    server.options.target_bytes_max = 64;
    server.options.header_count_max = 8;
    server.options.body_bytes_max = 1000;
    loop.server = &server;
    str bytes = {(const char *)data + 1, size - 1};
    run(&whole, bytes, bytes.size);
    run(&pieces, bytes, (size_t)data[0] * bytes.size / 256);
    /* A body that ends in a refusal may have been seen more or less far. */
    bool refused = str_ends((str){whole.text, whole.size}, STR("refused"));
    bool same = refused ? str_ends((str){pieces.text, pieces.size}, STR("refused"))
                        : str_equal((str){whole.text, whole.size}, (str){pieces.text, pieces.size});
    if (!same) {
        (void)fprintf(stderr, "whole:%.*s\npieces:%.*s\n", (int)whole.size, whole.text,
                      (int)pieces.size, pieces.text);
        abort();
    }
    return 0;
}
