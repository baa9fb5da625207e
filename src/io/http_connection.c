/* A connection's life:
 *
 *   accept ──► HANDSHAKE ──► IDLE ──► HEAD ──► BODY ──► PARKED ──► ANSWER ──► DRAIN ──► CLOSED
 *                             ▲        │        │         ▲          │
 *                             │        └────────┴─────────┘          │
 *                             └──────────────────────────────────────┘
 *
 * HANDSHAKE -> IDLE    step_handshake     TLS stands; plain connections begin at IDLE
 * IDLE -> HEAD         request_begin      a first byte came; a request object is made
 * HEAD -> BODY         http_parse_input   the head passed all checks, `head` was called
 * BODY -> PARKED       request_complete   the message is whole, `complete` was called
 * BODY -> PARKED       step_read          the application answers without the rest of the body
 * HEAD, BODY -> PARKED connection_refuse  malformed, too large, too slow: the answer is ours
 * PARKED -> ANSWER     answer_begin       the answer is there
 * ANSWER -> IDLE       answer_end         written; the next request may be parsed
 * ANSWER -> DRAIN      answer_end         written and nothing may follow
 * any -> CLOSED        http_connection_close
 *
 * IDLE:   no request; input may hold pipelined bytes.
 * HEAD:   the request is ours, the application has not seen it.
 * BODY:   seen; callbacks run in this thread; an answer of ours must win `answered` first.
 * PARKED: the request is the application's until `ready`; nothing is read from the socket.
 * ANSWER: the request is ours again, its answer is being written.
 * DRAIN:  no request; our side is shut; what comes is thrown away so that the client reads the
 * answer.
 *
 * One deadline a connection, set at each change of state. Events are edge-triggered: `readable` and
 * `writable` say what the kernel last promised. */
#include "io/http_connection.h"

#include "base/assert.h"
#include "base/metric.h"

#include <sys/epoll.h>
#include <unistd.h>

/* Steps in a row, and bytes read, before others get their turn. */
enum { STEPS_MAX = 64, TURN_BYTES_MAX = 256 * KIB };

enum step { STEP_MORE, STEP_WAIT };

static void deadline_in(struct http_connection *connection, i64 microseconds)
{
    http_timer_set(&connection->loop->wheel, &connection->timer,
                   connection->loop->now_us + microseconds);
}

/* ---- input ---- */

static void input_drop(struct http_connection *connection)
{
    connection->input = (str){0};
    if (connection->saved != NULL) {
        http_loop_give_arena(connection->loop, connection->saved);
        connection->saved = NULL;
    }
}

/* The loop's buffer is about to serve another connection. */
static void input_save(struct http_connection *connection)
{
    if (connection->input.size == 0) {
        input_drop(connection);
        return;
    }
    if (connection->saved == NULL) {
        struct arena *arena = http_loop_take_arena(connection->loop);
        str copy = str_copy(arena, connection->input);
        assert(copy.data != NULL); /* an arena holds more than a buffer */
        connection->input = copy;
        connection->saved = arena;
    }
}

static enum http_transfer input_read(struct http_connection *connection)
{
    input_drop(connection);
    size_t size = 0;
    enum http_transfer result = http_transfer_read(connection, connection->loop->buffer,
                                                   HTTP_BUFFER_SIZE, &size);
    if (result == HTTP_TRANSFER_DONE) {
        connection->input = (str){connection->loop->buffer, size};
        connection->loop->turn_bytes += size;
    }
    return result;
}

/* ---- open and close ---- */

static struct http_connection *connection_take(struct http_loop *loop)
{
    struct http_connection *connection = loop->free;
    if (connection != NULL) {
        loop->free = connection->next;
        memset(connection, 0, sizeof(*connection));
        return connection;
    }
    return arena_alloc(loop->arena, sizeof(*connection));
}

static void connection_link(struct http_loop *loop, struct http_connection *connection)
{
    connection->next = loop->open;
    if (loop->open != NULL) {
        loop->open->previous = connection;
    }
    loop->open = connection;
    i64 count = 1 + atomic_fetch_add_explicit(&loop->server->connections, 1, memory_order_relaxed);
    metric_set(METRIC_HTTP_CONNECTIONS, count);
}

static void connection_unlink(struct http_loop *loop, struct http_connection *connection)
{
    if (connection->next != NULL) {
        connection->next->previous = connection->previous;
    }
    if (connection->previous != NULL) {
        connection->previous->next = connection->next;
    } else {
        loop->open = connection->next;
    }
    i64 count = atomic_fetch_sub_explicit(&loop->server->connections, 1, memory_order_relaxed) - 1;
    metric_set(METRIC_HTTP_CONNECTIONS, count);
}

static bool connection_watch(struct http_connection *connection)
{
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
        .data.ptr = connection,
    };
    return epoll_ctl(connection->loop->epoll_fd, EPOLL_CTL_ADD, connection->fd, &event) == 0;
}

struct http_connection *http_connection_open(struct http_loop *loop, int fd, str peer)
{
    struct http_connection *connection = connection_take(loop);
    if (connection == NULL) {
        close(fd);
        return NULL;
    }
    connection->loop = loop;
    connection->fd = fd;
    connection->writable = true;
    connection->peer_size = peer.size;
    memcpy(connection->peer, peer.data, peer.size);
    connection->state = HTTP_STATE_IDLE;
    connection_link(loop, connection);
    if (loop->server->tls != NULL) {
        connection->tls = http_tls_open(loop->server->tls, fd);
        connection->state = HTTP_STATE_HANDSHAKE;
    }
    if ((loop->server->tls != NULL && connection->tls == NULL) || !connection_watch(connection)) {
        http_connection_close(connection);
        return NULL;
    }
    /* A connection that never says a word is closed when its first head would be late. */
    deadline_in(connection, loop->server->tls != NULL ? HTTP_TLS_TIMEOUT_US
                                                      : loop->server->options.head_timeout_us);
    return connection;
}

/* The request is the application's: it stays until its answer has come by the loop's queue. */
static void request_detach(struct http_connection *connection)
{
    connection->request->connection = NULL;
    connection->request = NULL;
}

static void request_drop(struct http_connection *connection)
{
    struct http_request *request = connection->request;
    if (request == NULL) {
        return;
    }
    bool parked = connection->state == HTTP_STATE_PARKED;
    if (!request->ready &&
        (parked || atomic_flag_test_and_set_explicit(&request->answered, memory_order_acq_rel))) {
        request_detach(connection);
        return;
    }
    connection->request = NULL;
    http_request_end(request);
}

void http_connection_close(struct http_connection *connection)
{
    struct http_loop *loop = connection->loop;
    assert(connection->state != HTTP_STATE_CLOSED);
    request_drop(connection);
    connection->state = HTTP_STATE_CLOSED;
    http_timer_clear(&connection->timer);
    input_drop(connection);
    http_tls_close(connection->tls);
    connection->tls = NULL;
    explicit_bzero(connection->kept, sizeof(connection->kept));
    close(connection->fd);
    connection->fd = -1;
    connection_unlink(loop, connection);
    connection->next = loop->closed;
    loop->closed = connection;
}

i64 http_connection_close_idle(struct http_loop *loop)
{
    i64 count = 0;
    struct http_connection *connection = loop->open;
    while (connection != NULL) {
        struct http_connection *next = connection->next;
        if (connection->state == HTTP_STATE_IDLE && connection->input.size == 0) {
            http_connection_close(connection);
            count++;
        }
        connection = next;
    }
    return count;
}

/* ---- steps ---- */

static enum step connection_lost(struct http_connection *connection)
{
    http_connection_close(connection);
    return STEP_MORE;
}

static enum step step_handshake(struct http_connection *connection)
{
    switch (http_tls_handshake(connection->tls)) {
    case HTTP_TRANSFER_DONE:
        connection->state = HTTP_STATE_IDLE;
        connection->readable = true; /* the first record may have been read already */
        deadline_in(connection, connection->loop->server->options.head_timeout_us);
        return STEP_MORE;
    case HTTP_TRANSFER_WAIT:
        return STEP_WAIT;
    case HTTP_TRANSFER_END:
    case HTTP_TRANSFER_BROKEN:
        break;
    }
    return connection_lost(connection);
}

static enum step request_begin(struct http_connection *connection)
{
    connection->request = http_request_create(connection);
    if (connection->request == NULL) {
        return connection_lost(connection);
    }
    http_parse_begin(connection);
    connection->state = HTTP_STATE_HEAD;
    connection->phase_start_us = connection->loop->now_us;
    connection->close_after = false;
    deadline_in(connection, connection->loop->server->options.head_timeout_us);
    return STEP_MORE;
}

static enum step step_idle(struct http_connection *connection)
{
    if (connection->input.size > 0) {
        return request_begin(connection);
    }
    switch (input_read(connection)) {
    case HTTP_TRANSFER_DONE:
        return request_begin(connection);
    case HTTP_TRANSFER_WAIT:
        return STEP_WAIT;
    case HTTP_TRANSFER_END:
    case HTTP_TRANSFER_BROKEN:
        break;
    }
    return connection_lost(connection);
}

/* Our own answer, unless the application was faster; nothing more is read. */
static enum step connection_refuse(struct http_connection *connection)
{
    struct http_request *request = connection->request;
    connection->close_after = true;
    connection->state = HTTP_STATE_PARKED;
    deadline_in(connection, connection->loop->server->options.park_timeout_us);
    if (!atomic_flag_test_and_set_explicit(&request->answered, memory_order_acq_rel)) {
        http_response_refuse(request, connection->refusal.code, connection->refusal.message);
    }
    return STEP_MORE;
}

static enum step request_park(struct http_connection *connection)
{
    connection->state = HTTP_STATE_PARKED;
    deadline_in(connection, connection->loop->server->options.park_timeout_us);
    return STEP_MORE;
}

static enum step request_complete(struct http_connection *connection)
{
    const struct http_handlers *handlers = &connection->loop->server->handlers;
    enum step step = request_park(connection);
    handlers->complete(handlers->context, connection->request);
    return step;
}

static i64 body_deadline(const struct http_connection *connection)
{
    const struct http_options *options = &connection->loop->server->options;
    const struct http_request *request = connection->request;
    i64 bytes = request->chunked ? connection->body_bytes : request->content_length;
    i64 allowed_us = 0;
    if (!num_mul_i64(bytes, TIME_SECOND_US, &allowed_us)) {
        allowed_us = INT64_MAX / 2;
    }
    return connection->phase_start_us + options->body_timeout_us +
           allowed_us / options->body_rate_min;
}

static enum step step_parse(struct http_connection *connection)
{
    bool in_head = connection->state == HTTP_STATE_HEAD;
    enum http_parsed parsed = http_parse_input(connection);
    if (in_head && connection->state == HTTP_STATE_BODY) {
        connection->requests++;
        connection->continue_sent = 0;
        connection->phase_start_us = connection->loop->now_us;
    }
    switch (parsed) {
    case HTTP_PARSED_MORE:
        if (in_head && connection->state == HTTP_STATE_BODY) {
            http_timer_set(&connection->loop->wheel, &connection->timer, body_deadline(connection));
        }
        return STEP_MORE;
    case HTTP_PARSED_COMPLETE:
        return request_complete(connection);
    case HTTP_PARSED_ANSWERED:
        connection->close_after = http_request_has_body(connection->request);
        return request_park(connection);
    case HTTP_PARSED_REFUSED:
        return connection_refuse(connection);
    }
    return STEP_MORE;
}

static enum step step_read(struct http_connection *connection)
{
    if (connection->input.size > 0) {
        return step_parse(connection);
    }
    if (connection->state == HTTP_STATE_BODY && connection->continue_wanted) {
        enum http_transfer sent = http_transfer_continue(connection);
        if (sent == HTTP_TRANSFER_BROKEN) {
            return connection_lost(connection);
        }
        connection->continue_wanted = sent != HTTP_TRANSFER_DONE;
    }
    switch (input_read(connection)) {
    case HTTP_TRANSFER_DONE:
        connection->continue_wanted = false;
        return STEP_MORE;
    case HTTP_TRANSFER_WAIT:
        return STEP_WAIT;
    case HTTP_TRANSFER_END:
    case HTTP_TRANSFER_BROKEN:
        break;
    }
    return connection_lost(connection);
}

static enum step answer_begin(struct http_connection *connection)
{
    const struct http_server *server = connection->loop->server;
    const struct http_answer *answer = &connection->request->answer;
    if (answer->close || !connection->keep_alive ||
        connection->requests >= server->options.requests_per_connection ||
        atomic_load_explicit(&server->mode, memory_order_relaxed) != HTTP_MODE_SERVING) {
        connection->close_after = true;
    }
    connection->state = HTTP_STATE_ANSWER;
    connection->sent = 0;
    http_response_lead(connection);
    i64 seconds = (i64)answer->rest.size / server->options.body_rate_min;
    deadline_in(connection, server->options.answer_timeout_us + seconds * TIME_SECOND_US);
    return STEP_MORE;
}

static enum step step_parked(struct http_connection *connection)
{
    return connection->request->ready ? answer_begin(connection) : STEP_WAIT;
}

static void drain_begin(struct http_connection *connection)
{
    if (connection->tls != NULL) {
        http_tls_end(connection->tls);
    }
    input_drop(connection);
    shutdown(connection->fd, SHUT_WR);
    connection->state = HTTP_STATE_DRAIN;
    connection->drain_end_us = connection->loop->now_us + HTTP_DRAIN_US;
    deadline_in(connection, HTTP_DRAIN_QUIET_US);
}

static enum step answer_end(struct http_connection *connection)
{
    struct http_request *request = connection->request;
    connection->request = NULL;
    http_request_end(request);
    if (connection->close_after) {
        drain_begin(connection);
        return STEP_MORE;
    }
    connection->state = HTTP_STATE_IDLE;
    deadline_in(connection, connection->loop->server->options.idle_timeout_us);
    return STEP_MORE;
}

static enum step step_answer(struct http_connection *connection)
{
    switch (http_transfer_answer(connection)) {
    case HTTP_TRANSFER_DONE:
        return answer_end(connection);
    case HTTP_TRANSFER_WAIT:
        return STEP_WAIT;
    case HTTP_TRANSFER_END:
    case HTTP_TRANSFER_BROKEN:
        break;
    }
    return connection_lost(connection);
}

static enum step step_drain(struct http_connection *connection)
{
    switch (http_transfer_discard(connection)) {
    case HTTP_TRANSFER_DONE:
        http_timer_set(
            &connection->loop->wheel, &connection->timer,
            num_min_i64(connection->drain_end_us, connection->loop->now_us + HTTP_DRAIN_QUIET_US));
        return STEP_MORE;
    case HTTP_TRANSFER_WAIT:
        return STEP_WAIT;
    case HTTP_TRANSFER_END:
    case HTTP_TRANSFER_BROKEN:
        break;
    }
    return connection_lost(connection);
}

static enum step connection_step(struct http_connection *connection)
{
    switch (connection->state) {
    case HTTP_STATE_HANDSHAKE:
        return step_handshake(connection);
    case HTTP_STATE_IDLE:
        return step_idle(connection);
    case HTTP_STATE_HEAD:
    case HTTP_STATE_BODY:
        return step_read(connection);
    case HTTP_STATE_PARKED:
        return step_parked(connection);
    case HTTP_STATE_ANSWER:
        return step_answer(connection);
    case HTTP_STATE_DRAIN:
        return step_drain(connection);
    case HTTP_STATE_FREE:
    case HTTP_STATE_CLOSED:
        break;
    }
    return STEP_WAIT;
}

void http_connection_run(struct http_connection *connection)
{
    struct http_loop *loop = connection->loop;
    assert(loop->running == NULL);
    loop->running = connection;
    enum step step = STEP_MORE;
    loop->turn_bytes = 0;
    for (i32 steps = 0; step == STEP_MORE && steps < STEPS_MAX; steps++) {
        if (loop->turn_bytes >= TURN_BYTES_MAX && connection->input.size == 0) {
            break; /* nothing is to be saved now */
        }
        step = connection_step(connection);
    }
    loop->running = NULL;
    if (connection->state == HTTP_STATE_CLOSED) {
        return;
    }
    input_save(connection);
    if (step == STEP_MORE && !connection->queued) {
        connection->queued = true;
        connection->next_ready = loop->ready;
        loop->ready = connection;
    }
}

/* ---- deadlines ---- */

/* The application has not answered in time; when it does, its answer goes nowhere. */
static void parked_too_long(struct http_connection *connection)
{
    bool head_only = connection->request->head_only;
    request_detach(connection);
    connection->request = http_request_create(connection);
    if (connection->request == NULL) {
        http_connection_close(connection);
        return;
    }
    connection->request->head_only = head_only;
    connection->refusal = (struct http_refusal){ERROR_UNAVAILABLE, "no answer in time"};
    (void)connection_refuse(connection);
    http_connection_run(connection);
}

static void request_too_slow(struct http_connection *connection, const char *message)
{
    connection->refusal = (struct http_refusal){ERROR_REQUEST_TIMEOUT, message};
    (void)connection_refuse(connection);
    http_connection_run(connection);
}

/* When this thread, or the whole process, did not run for a while, the deadline is past and what
 * the client sent in time still waits in the socket. True: that changed something, or is not all
 * yet. */
static bool look_once_more(struct http_connection *connection)
{
    if (connection->state == HTTP_STATE_PARKED || connection->state == HTTP_STATE_DRAIN) {
        return false;
    }
    connection->readable = true; /* perhaps, and not told of yet */
    connection->writable = true;
    http_connection_run(connection);
    if (connection->queued) {
        deadline_in(connection, HTTP_TIMER_TICK_US);
    }
    return connection->state == HTTP_STATE_CLOSED || connection->timer.tick != 0;
}

void http_connection_expire(struct http_connection *connection)
{
    if (look_once_more(connection)) {
        return;
    }
    switch (connection->state) {
    case HTTP_STATE_HEAD:
        request_too_slow(connection, "the request head took too long");
        break;
    case HTTP_STATE_BODY:
        if (body_deadline(connection) > connection->loop->now_us) {
            http_timer_set(&connection->loop->wheel, &connection->timer, body_deadline(connection));
            break;
        }
        request_too_slow(connection, "the request body took too long");
        break;
    case HTTP_STATE_PARKED:
        parked_too_long(connection);
        break;
    case HTTP_STATE_HANDSHAKE:
    case HTTP_STATE_IDLE:
    case HTTP_STATE_ANSWER:
    case HTTP_STATE_DRAIN:
        http_connection_close(connection);
        break;
    case HTTP_STATE_FREE:
    case HTTP_STATE_CLOSED:
        break;
    }
}
