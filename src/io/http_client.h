/* http_client: one HTTP request and its answer, blocking, by libcurl.
 *
 * A client keeps one connection for the next request; it belongs to one thread at a time. Redirects
 * are not followed: the answer is theirs. Only http and https; certificates are verified. A host on
 * the loopback is reached directly, all others by the proxy of the environment, if there is one.
 *
 * Fails with IO when the request was surely not taken (no address, no connection, no trust),
 * UNKNOWN when it may have been (the connection broke or time ran out after it stood), INVALID for
 * a URL that is none, LIMIT when the answer is larger than asked for. Any status is an answer, not
 * a failure. */
#ifndef LHBOX_IO_HTTP_CLIENT_H
#define LHBOX_IO_HTTP_CLIENT_H

#include "base/arena.h"
#include "base/error.h"

struct http_client;

enum { HTTP_CLIENT_HEADERS_MAX = 16, HTTP_CLIENT_REPLY_HEADERS_MAX = 64 };

enum http_reuse {
    HTTP_REUSE_CONNECTION,
    HTTP_FRESH_CONNECTION, /* a new one, closed afterwards */
};

struct http_client_options {
    i64 connect_timeout_us; /* 0: 10 s */
    str user_agent;         /* empty: lhbox */
    str unix_path;          /* empty: by TCP */
    str ca_file;            /* empty: the system's */
};

struct http_client_header {
    str name;
    str value;
};

struct http_call {
    str method; /* GET, POST, … */
    str url;
    struct http_client_header headers[HTTP_CLIENT_HEADERS_MAX];
    size_t header_count;
    str body;            /* sent with its length, an empty one too, but for GET, HEAD and DELETE */
    i64 timeout_us;      /* for all of it; 0: 60 s */
    i64 reply_bytes_max; /* 0: 64 MiB */
    enum http_reuse reuse;
    /* May be NULL. Bytes of the body sent so far. */
    void (*progress)(void *context, i64 sent);
    void *progress_context;
};

struct http_reply {
    int status;
    str body;
    struct http_client_header headers[HTTP_CLIENT_REPLY_HEADERS_MAX]; /* more are dropped */
    size_t header_count;
};

MUST_USE err http_client_create(struct arena *arena, const struct http_client_options *options,
                                struct http_client **out_client, struct error *error);
void http_client_destroy(struct http_client *client); /* NULL is allowed */
/* The reply's bytes live in `arena`. */
MUST_USE err http_client_call(struct http_client *client, struct arena *arena,
                              const struct http_call *call, struct http_reply *out_reply,
                              struct error *error);
/* The first header of this name, any case; data NULL when there is none. */
str http_reply_header(const struct http_reply *reply, str name);
/* Appends a value with everything but A-Z a-z 0-9 - . _ ~ as %XX, for one part of a path or query.
 */
str http_client_escape(struct arena *arena, str text);

#endif
