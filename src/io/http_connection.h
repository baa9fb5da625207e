/* http_connection: the server's own structs, and what its files ask of each other.
 *
 * Private to http_*.c; everybody else includes http_server.h.
 *
 * Who owns what: the server is made at start and read by all threads. A loop, its connections and
 * its wheel belong to the loop's thread. A request belongs to its loop too, but for the time
 * between `complete` (or an answer asked for by `head`) and http_respond: then it is the
 * application's, and the loop touches nothing of it but `connection`, `next_answered` and the
 * atomics. A connection that dies in that time cuts the bond (`request->connection = NULL`) and
 * goes; the request waits for its answer alone. */
#ifndef LHBOX_IO_HTTP_CONNECTION_H
#define LHBOX_IO_HTTP_CONNECTION_H

#include "io/http_server.h"
#include "io/http_timer.h"
#include "io/http_tls.h"

/* The names of methods are llhttp's as well as ours; its own become LLHTTP_…. */
#define HTTP_DELETE  LLHTTP_DELETE
#define HTTP_GET     LLHTTP_GET
#define HTTP_HEAD    LLHTTP_HEAD
#define HTTP_POST    LLHTTP_POST
#define HTTP_PUT     LLHTTP_PUT
#define HTTP_PATCH   LLHTTP_PATCH
#define HTTP_OPTIONS LLHTTP_OPTIONS
#define HTTP_CONNECT LLHTTP_CONNECT
#include <llhttp.h>
#undef HTTP_DELETE
#undef HTTP_GET
#undef HTTP_HEAD
#undef HTTP_POST
#undef HTTP_PUT
#undef HTTP_PATCH
#undef HTTP_OPTIONS
#undef HTTP_CONNECT
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

enum {
    HTTP_BUFFER_SIZE = 64 * KIB,
    HTTP_LOOPS_MAX = 64,
    HTTP_REQUEST_POOL_MAX = 256,
    HTTP_REQUEST_ID_SIZE = 24,
    HTTP_PEER_SIZE = 48,
    HTTP_LINE_START_SIZE = 24,
    HTTP_REQUEST_BYTES_MAX = 32 * MIB,
    HTTP_LEAD_SIZE = 192,
    HTTP_TRAILER_BYTES_MAX = 4 * KIB,
    HTTP_CHUNK_EXTENSION_BYTES_MAX = 256,
    HTTP_CHUNK_LINE_BYTES_MAX = 2 + 8 + 2, /* end of the chunk before, 8 digits, end of line */
};

#define HTTP_TLS_TIMEOUT_US  (5 * TIME_SECOND_US)
#define HTTP_DRAIN_QUIET_US  (1 * TIME_SECOND_US)
#define HTTP_DRAIN_US        (20 * TIME_SECOND_US)
#define HTTP_ACCEPT_PAUSE_US (100 * 1000)

enum http_state {
    HTTP_STATE_FREE,
    HTTP_STATE_HANDSHAKE,
    HTTP_STATE_IDLE,
    HTTP_STATE_HEAD,
    HTTP_STATE_BODY,
    HTTP_STATE_PARKED,
    HTTP_STATE_ANSWER,
    HTTP_STATE_DRAIN,
    HTTP_STATE_CLOSED,
};

enum http_mode { HTTP_MODE_SERVING, HTTP_MODE_DRAINING, HTTP_MODE_STOPPING };

/* Part of the head's text, by its place, because the text may move while it grows. */
struct http_span {
    u32 at;
    u32 size;
};

struct http_field {
    struct http_span name;
    struct http_span value;
};

/* The answer but for its first lines, which the loop writes at the last moment. */
struct http_answer {
    int status;
    bool close;
    str rest;            /* from X-Request-Id to the body's end */
    struct arena *arena; /* its own when the request's was too small, else NULL */
};

struct http_request {
    struct http_loop *loop;
    struct http_connection *connection; /* the loop's thread only */
    struct arena *arena;
    void *user;
    /* The head. */
    char *text; /* target, then names and values */
    size_t text_size;
    size_t text_capacity;
    struct http_span target;
    struct http_field *fields;
    size_t field_count;
    size_t field_capacity;
    str raw_path;
    str path;
    str query;
    enum http_method method;
    i64 content_length; /* -1: chunked; 0: none */
    bool chunked;
    bool seen; /* `head` was called, `gone` is owed */
    bool head_only;
    u64 number;
    char id[HTTP_REQUEST_ID_SIZE];
    size_t id_size;
    char peer[HTTP_PEER_SIZE];
    size_t peer_size;
    i64 reserved; /* of the budget for bodies */
    /* The answer. */
    atomic_flag answered; /* by the application or by us */
    bool ready;           /* the loop has taken it from the queue */
    struct http_answer answer;
    struct http_request *next_answered;
};

struct http_refusal {
    enum error_code code;
    const char *message;
};

struct http_connection {
    struct http_timer timer; /* first, so that a timer is its connection */
    struct http_loop *loop;
    struct http_connection *next; /* of all open ones, or of the free ones */
    struct http_connection *previous;
    struct http_connection *next_ready;
    int fd;
    enum http_state state;
    struct http_tls_session *tls;
    bool readable; /* since the last edge nothing said otherwise */
    bool writable;
    bool hangup; /* the kernel said that the peer's side is at its end */
    bool ended;  /* all that the peer sent was read */
    bool queued; /* on the loop's ready list */
    i32 requests;
    struct http_request *request;
    llhttp_t parser;
    /* Bytes that came and are not parsed. In the loop's buffer while it runs, else in `saved`. */
    str input;
    struct arena *saved;
    /* Of the request being read. */
    i64 phase_start_us;
    i64 head_bytes;
    i64 body_bytes;
    i64 trailer_bytes;
    bool field_open;      /* a name is being read */
    bool trailing;        /* the body's last chunk was seen */
    bool chunk_extended;  /* the chunk line being read has an extension */
    bool body_unwanted;   /* the application has answered before the end of the body */
    bool continue_wanted; /* 100 Continue is to be sent */
    bool message_complete;
    const char *framing_at; /* where bytes that are no body begin, in the piece being parsed */
    i64 framing_bytes;      /* of them in pieces before it */
    char line_start[HTTP_LINE_START_SIZE];
    struct http_refusal refusal; /* set by a check that failed */
    /* Of the answer being written. */
    char lead[HTTP_LEAD_SIZE];
    size_t lead_size;
    size_t sent;
    bool keep_alive; /* the request allows another one */
    bool close_after;
    size_t continue_sent;
    i64 drain_end_us;
    char peer[HTTP_PEER_SIZE];
    size_t peer_size;
    _Alignas(16) char kept[HTTP_KEPT_SIZE]; /* the application's */
};

struct http_loop {
    struct http_server *server;
    struct arena *arena; /* connections */
    pthread_t thread;
    bool started;
    int epoll_fd;
    int wake_fd;
    int listen_fd;
    int spare_fd;
    bool accepting;
    int dropped;         /* of the server's `drops`, those done */
    i64 accept_again_us; /* 0: not paused */
    i64 now_us;
    instant date_second;
    char date[64]; /* as in the Date header */
    size_t date_size;
    u64 request_number;
    u64 id_prefix;
    char *buffer;  /* HTTP_BUFFER_SIZE */
    char *scratch; /* 16 KiB, for one TLS record */
    struct http_connection *open;
    struct http_connection *free;
    struct http_connection *closed; /* free after this round of events */
    struct http_connection *ready;  /* have more to do, but others come first */
    struct http_connection *running;
    size_t turn_bytes;                  /* that it has read in this turn */
    struct http_request *answered_here; /* by this thread */
    struct arena *pool[HTTP_REQUEST_POOL_MAX];
    size_t pool_count;
    struct http_wheel wheel;
    char apart[64];                          /* from the cache line that other threads write */
    _Atomic(struct http_request *) answered; /* by any other thread, newest first */
};

struct http_server {
    struct http_options options;
    struct http_handlers handlers;
    const struct seam *seam;
    struct arena *arena;
    struct http_tls *tls;
    const char *unix_path; /* NULL for TCP */
    i32 port;
    i32 loop_count;
    struct http_loop *loops[HTTP_LOOPS_MAX];
    pthread_mutex_t drop_lock; /* guards the loops' `dropped` */
    pthread_cond_t drop_done;
    atomic_int drops; /* how often all connections were to be closed */
    atomic_int mode;  /* enum http_mode */
    char apart[64];   /* what follows is written for each request, what stands before only read */
    atomic_llong active;
    atomic_llong connections;
    atomic_llong bodies_bytes;
};

/* ---- http_listen.c: sockets to accept from ---- */

MUST_USE err http_listen(struct http_server *server, struct error *error);
/* Takes what waits at the listening socket. */
void http_listen_accept(struct http_loop *loop);
/* Goes on after a pause that a lack of descriptors made. */
void http_listen_resume(struct http_loop *loop);
/* Closes what waits at the listening socket. */
void http_listen_drop(struct http_loop *loop);
void http_listen_end(struct http_loop *loop);

/* ---- http_loop.c ---- */

MUST_USE err http_loop_create(struct http_server *server, struct http_loop **out_loop,
                              struct error *error);
void http_loop_destroy(struct http_loop *loop);
void *http_loop_run(void *loop);
void http_loop_wake(struct http_loop *loop);
/* The request's answer is there; any thread. */
void http_loop_answered(struct http_request *request);
struct arena *http_loop_take_arena(struct http_loop *loop);
void http_loop_give_arena(struct http_loop *loop, struct arena *arena);

/* ---- http_connection.c: the state machine ---- */

/* NULL when the descriptor was refused and closed. */
struct http_connection *http_connection_open(struct http_loop *loop, int fd, str peer);
/* Does all that can be done now. */
void http_connection_run(struct http_connection *connection);
void http_connection_expire(struct http_connection *connection);
void http_connection_close(struct http_connection *connection);
/* Closes those between requests; answers how many. */
i64 http_connection_close_idle(struct http_loop *loop);

/* ---- http_transfer.c: bytes in and out of a connection ---- */

enum http_transfer http_transfer_read(struct http_connection *connection, char *bytes, size_t size,
                                      size_t *out_read);
/* The answer's lead and rest, from connection->sent on. */
enum http_transfer http_transfer_answer(struct http_connection *connection);
enum http_transfer http_transfer_continue(struct http_connection *connection);
/* Throws away what comes; DONE when there was something. */
enum http_transfer http_transfer_discard(struct http_connection *connection);

/* ---- http_parse.c: llhttp and the checks it leaves to us ---- */

enum http_parsed {
    HTTP_PARSED_MORE,     /* all was taken, the request goes on */
    HTTP_PARSED_COMPLETE, /* the request is whole; input begins after it */
    HTTP_PARSED_ANSWERED, /* the application answers without the rest of the body */
    HTTP_PARSED_REFUSED,  /* connection->refusal says why */
};
void http_parse_begin(struct http_connection *connection);
/* Takes from connection->input. */
enum http_parsed http_parse_input(struct http_connection *connection);

/* ---- http_head.c: what a whole head must fulfil ---- */

/* Fills the request's path, method and length; false with connection->refusal set. */
MUST_USE bool http_head_check(struct http_connection *connection);
bool http_refuse(struct http_connection *connection, enum error_code code, const char *message);

/* ---- http_request.c ---- */

/* NULL when there is no memory under the limits. */
struct http_request *http_request_create(struct http_connection *connection);
/* Calls `gone` where it is owed and gives everything back. */
void http_request_end(struct http_request *request);
/* Appends to the head's text; false at the limit of the arena. */
MUST_USE bool http_request_append(struct http_request *request, const char *bytes, size_t size);
/* Room for one more field; NULL at the limit. */
struct http_field *http_request_field_add(struct http_request *request);
/* Splits and decodes the target; NULL when it is well, else what is wrong with it. */
const char *http_request_read_target(struct http_request *request, str raw_prefix);
/* Counts the bytes against the budget of all bodies; false when it is used up. */
MUST_USE bool http_request_reserve(struct http_request *request, i64 bytes);
static inline str http_request_span(const struct http_request *request, struct http_span span)
{
    return (str){request->text + span.at, span.size};
}

/* ---- http_response.c ---- */

/* Our own answer to a request that the application does not own. */
void http_response_refuse(struct http_request *request, enum error_code code, const char *message);
/* Writes the first lines of the answer into the connection. */
void http_response_lead(struct http_connection *connection);
/* A whole answer for a connection that is not taken: 503 overloaded. */
extern const char http_response_full[];

#endif
