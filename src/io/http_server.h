/* http_server: HTTP/1.1 over epoll, strict framing, deadlines by phase, parked requests, TLS.
 *
 * llhttp parses in strict mode; what it leaves to us (Host, versions, sizes, Expect, odd paths) is
 * checked here, and every malformed request gets its JSON error and a closed connection without
 * reaching the application. One loop and one listening socket (SO_REUSEPORT) per thread.
 *
 * Life of a request: `head` is called when the head is complete; it says what to do with the body.
 * `body` gets it in pieces; `complete` is called when all of it is there. The application answers
 * by http_respond, at once or later from any thread: between complete and the answer the request is
 * parked and costs no thread. Answering from `head` refuses the body unread. `gone` is called
 * exactly once for each request that `head` saw, when it is over (answered, timed out or broken);
 * after that its pointer must not be used. While a request is parked its connection may die:
 * http_respond is still allowed then, and needed, and `gone` follows it.
 *
 * Callbacks of one request come from its loop's thread, never two at once. They must not block. */
#ifndef LHBOX_IO_HTTP_SERVER_H
#define LHBOX_IO_HTTP_SERVER_H

#include "base/arena.h"
#include "base/error.h"
#include "base/seam.h"

struct http_server;
struct http_request;

enum { HTTP_KEPT_SIZE = 256 };

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_PATCH,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_OTHER,
};

struct http_header {
    str name;  /* as sent */
    str value; /* blanks around it removed */
};

/* What `head` wants done with the body. */
enum http_body_choice {
    HTTP_BODY_READ,     /* pieces come by `body` */
    HTTP_BODY_ANSWERED, /* http_respond was called; an unread body closes the connection */
};

struct http_handlers {
    enum http_body_choice (*head)(void *context, struct http_request *request);
    /* OK to go on; any other value: the application has answered and wants no more pieces. */
    err (*body)(void *context, struct http_request *request, str piece);
    void (*complete)(void *context, struct http_request *request);
    void (*gone)(void *context, struct http_request *request);
    void *context;
};

struct http_options {
    str address; /* IPv4 or IPv6 text, or "unix:<path>" */
    i32 port;    /* 0: any free one */
    i32 threads;
    str tls_certificate_file; /* empty: plain HTTP */
    str tls_key_file;
    i32 connections_max;
    i64 body_bytes_max;          /* of one request: 413 past it, at once when the length says so */
    i64 bodies_bytes_max;        /* of all requests being read or parked; 503 overloaded past it */
    str raw_prefix;              /* paths below it may have encoded slashes; empty: none may */
    i32 head_bytes_max;          /* 16 KiB */
    i32 target_bytes_max;        /* 8 KiB */
    i32 header_count_max;        /* 64 */
    i64 head_timeout_us;         /* whole head, 10 s */
    i64 body_timeout_us;         /* 10 s, plus the length / body_rate_min */
    i64 body_rate_min;           /* bytes a second, 16 KiB */
    i64 answer_timeout_us;       /* writing the answer, 10 s */
    i64 park_timeout_us;         /* complete to http_respond; then 503, 90 s */
    i64 idle_timeout_us;         /* between requests, 30 s */
    i32 requests_per_connection; /* 1,000 */
};
struct http_options http_options_default(void);

MUST_USE err http_server_start(struct arena *arena, const struct http_options *options,
                               const struct http_handlers *handlers, const struct seam *seam,
                               struct http_server **out_server, struct error *error);
i32 http_server_port(const struct http_server *server);
/* Stops taking connections; idle ones are closed, requests under way are finished with
 * `Connection: close`. */
void http_server_drain(struct http_server *server);
/* Closes every connection, with what was read of a request, and all that wait to be accepted; what
 * a handler has whole is answered first, and nothing is read after it. Taking new ones goes on.
 * Returns when that is done but for those answers. Any thread but a loop's. */
void http_server_drop(struct http_server *server);
/* Requests that `head` saw and `gone` has not. */
i64 http_server_active(const struct http_server *server);
/* Ends the threads and closes what is left. The application must have answered every request. */
void http_server_stop(struct http_server *server);

/* ---- a request ---- */

/* Lives until `gone`; for what the application keeps with the request. Limit: 32 MiB and four times
 * the largest body, for a buffer that grows leaves its former copies behind. Its loop's before
 * `complete`, the application's until http_respond. */
struct arena *http_request_arena(struct http_request *request);
/* HTTP_KEPT_SIZE bytes that go with the connection, zero at its beginning and wiped at its end: for
 * what the application remembers from one request to the next. Not while the request is parked. */
void *http_request_kept(struct http_request *request);
void http_request_set_user(struct http_request *request, void *user);
void *http_request_user(const struct http_request *request);
enum http_method http_request_method(const struct http_request *request);
/* The path, percent-decoded, without the query; well-formed and free of dot segments and NUL. An
 * encoded slash (below raw_prefix only) stays encoded. */
str http_request_path(const struct http_request *request);
/* The path as sent, for routes whose parts may hold %1F or %2F-like escapes. */
str http_request_raw_path(const struct http_request *request);
str http_request_query(const struct http_request *request); /* as sent, without the `?` */
/* A query parameter, decoded in the request's arena; data NULL when it is absent. */
str http_request_parameter(struct http_request *request, str name);
size_t http_request_header_count(const struct http_request *request);
struct http_header http_request_header_at(const struct http_request *request, size_t index);
/* The first header of this name (any case); data NULL when there is none. */
str http_request_header(const struct http_request *request, str name);
i32 http_request_header_times(const struct http_request *request, str name);
i64 http_request_content_length(const struct http_request *request); /* -1: chunked */
str http_request_id(const struct http_request *request);   /* what X-Request-Id will say */
str http_request_peer(const struct http_request *request); /* address text */
bool http_request_has_body(const struct http_request *request);

struct http_response {
    int status;
    str content_type; /* empty: application/json */
    struct http_header headers[8];
    size_t header_count;
    str body; /* copied; for HEAD only its length is sent */
    bool close;
};
/* Answers; the response is copied before it returns. Exactly once per request. Any thread. */
void http_respond(struct http_request *request, const struct http_response *response);
/* Between the two the answers that this thread gives are held back, and leave together: one wake
 * for each loop. For answers that are at hand. */
void http_answers_hold(void);
void http_answers_release(void);
/* The error as the contract's JSON object (§3), with Retry-After where it must be. */
void http_respond_error(struct http_request *request, const struct error *error);
/* That body alone, for who adds headers: {"error":{"code","message","hint","retryable",…}}. */
str http_error_body(struct arena *arena, const struct error *error);

#endif
