/* http_fixture: a small application on a real server, and a client of raw sockets.
 *
 * Routes: /echo answers with the body; /early is refused by its head with 401; /park waits until
 * the test answers; /times counts those of one connection; /cut answers after the first piece of
 * body; everything else gets 200 and its path. */
#ifndef LHBOX_TESTS_HTTP_FIXTURE_H
#define LHBOX_TESTS_HTTP_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "io/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PARKED_MAX = 2048, ANSWER_MAX = 1 << 20, PATIENCE_MS = 10000 };

struct app {
    struct arena *arena;
    struct http_server *server;
    struct http_options options;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct http_request *parked[PARKED_MAX];
    size_t parked_count;
    atomic_int heads;
    atomic_int pieces;
    atomic_int completes;
    atomic_int gones;
    atomic_llong body_bytes;
    bool hold_gone; /* under the lock: `gone` does not return */
};

static inline enum http_body_choice app_answer(struct http_request *request, int status, str body)
{
    struct http_response response = {.status = status, .body = body};
    http_respond(request, &response);
    return HTTP_BODY_ANSWERED;
}

static inline void app_count(struct app *app, atomic_int *counter)
{
    pthread_mutex_lock(&app->lock);
    atomic_fetch_add(counter, 1);
    pthread_cond_broadcast(&app->changed);
    pthread_mutex_unlock(&app->lock);
}

static inline enum http_body_choice app_head(void *context, struct http_request *request)
{
    struct app *app = context;
    app_count(app, &app->heads);
    str path = http_request_path(request);
    if (str_equal(path, STR("/early"))) {
        struct error error = {0};
        (void)error_set(&error, DENIED, ERROR_BAD_KEY, "wrong key");
        http_respond_error(request, &error);
        return HTTP_BODY_ANSWERED;
    }
    if (str_equal(path, STR("/busy"))) {
        struct error error = {0};
        (void)error_set(&error, BUSY, ERROR_RATE_LIMITED, "slower");
        http_respond_error(request, &error);
        return HTTP_BODY_ANSWERED;
    }
    buf *body = arena_alloc(http_request_arena(request), sizeof(*body));
    assert_non_null(body);
    *body = buf_create(http_request_arena(request), 0, 32 * MIB);
    http_request_set_user(request, body);
    return HTTP_BODY_READ;
}

static inline err app_body(void *context, struct http_request *request, str piece)
{
    struct app *app = context;
    atomic_fetch_add(&app->body_bytes, (long long)piece.size);
    app_count(app, &app->pieces);
    if (str_equal(http_request_path(request), STR("/cut"))) {
        (void)app_answer(request, 400, STR("{\"cut\":true}"));
        return INVALID;
    }
    buf_append(http_request_user(request), piece);
    return OK;
}

static inline void app_complete(void *context, struct http_request *request)
{
    struct app *app = context;
    atomic_fetch_add(&app->completes, 1);
    buf *body = http_request_user(request);
    assert_true(buf_ok(body));
    str path = http_request_path(request);
    if (str_equal(path, STR("/park"))) {
        pthread_mutex_lock(&app->lock);
        assert_true(app->parked_count < PARKED_MAX);
        app->parked[app->parked_count++] = request;
        pthread_cond_broadcast(&app->changed);
        pthread_mutex_unlock(&app->lock);
        return;
    }
    if (str_equal(path, STR("/times"))) {
        path = str_format(http_request_arena(request), "%d", ++*(int *)http_request_kept(request));
    }
    bool echo = str_equal(path, STR("/echo"));
    (void)app_answer(request, 200, echo ? buf_str(body) : path);
}

static inline void app_gone(void *context, struct http_request *request)
{
    struct app *app = context;
    (void)request;
    app_count(app, &app->gones);
    pthread_mutex_lock(&app->lock);
    while (app->hold_gone) {
        pthread_cond_wait(&app->changed, &app->lock);
    }
    pthread_mutex_unlock(&app->lock);
}

static inline void app_hold_gone(struct app *app, bool hold)
{
    pthread_mutex_lock(&app->lock);
    app->hold_gone = hold;
    pthread_cond_broadcast(&app->changed);
    pthread_mutex_unlock(&app->lock);
}

static inline struct app *app_create(void)
{
    struct arena *arena = arena_create(16 * MIB);
    struct app *app = arena_alloc(arena, sizeof(*app));
    assert_non_null(app);
    app->arena = arena;
    app->options = http_options_default();
    app->options.raw_prefix = STR("/names/");
    pthread_mutex_init(&app->lock, NULL);
    pthread_cond_init(&app->changed, NULL);
    return app;
}

static inline void app_start(struct app *app)
{
    const struct http_handlers handlers = {app_head, app_body, app_complete, app_gone, app};
    struct error error = {0};
    err started = http_server_start(app->arena, &app->options, &handlers, seam_system(),
                                    &app->server, &error);
    if (started != OK) {
        fail_msg("the server does not start: %s", error.message);
    }
}

static inline void app_stop(struct app *app)
{
    http_server_stop(app->server);
    arena_destroy(app->arena);
}

static inline int app_setup(void **state)
{
    struct app *app = app_create();
    app_start(app);
    *state = app;
    return 0;
}

static inline int app_teardown(void **state)
{
    app_stop(*state);
    return 0;
}

/* For a test that starts its own server. */
static inline int own_teardown(void **state)
{
    if (*state != NULL) {
        app_stop(*state);
    }
    return 0;
}

/* Waits until `counter` is at least `wanted`. */
static inline void app_wait(struct app *app, const atomic_int *counter, int wanted)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_MS / 1000;
    pthread_mutex_lock(&app->lock);
    while (atomic_load(counter) < wanted) {
        if (pthread_cond_timedwait(&app->changed, &app->lock, &end) != 0) {
            pthread_mutex_unlock(&app->lock);
            fail_msg("waited in vain: %d of %d", atomic_load(counter), wanted);
        }
    }
    pthread_mutex_unlock(&app->lock);
}

/* Waits until so many requests are left: a moment after the `gone` of the others. */
static inline void app_wait_active(struct app *app, i64 wanted)
{
    for (int looks = 0; http_server_active(app->server) != wanted; looks++) {
        assert_true(looks < PATIENCE_MS);
        (void)poll(NULL, 0, 1);
    }
}

/* The next parked request. */
static inline struct http_request *app_take_parked(struct app *app)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_MS / 1000;
    pthread_mutex_lock(&app->lock);
    while (app->parked_count == 0) {
        if (pthread_cond_timedwait(&app->changed, &app->lock, &end) != 0) {
            pthread_mutex_unlock(&app->lock);
            fail_msg("nothing was parked");
        }
    }
    app->parked_count--;
    struct http_request *request = app->parked[app->parked_count];
    pthread_mutex_unlock(&app->lock);
    return request;
}

/* ---- the client ---- */

static inline int client_connect(const struct app *app)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((u16)http_server_port(app->server)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

/* False when the peer has had enough. */
static inline bool client_try_send(int fd, str bytes)
{
    size_t sent = 0;
    while (sent < bytes.size) {
        ssize_t now = send(fd, bytes.data + sent, bytes.size - sent, MSG_NOSIGNAL);
        if (now <= 0) {
            return false;
        }
        sent += (size_t)now;
    }
    return true;
}

static inline void client_send(int fd, str bytes)
{
    assert_true(client_try_send(fd, bytes));
}

struct answer {
    int status; /* 0: the connection ended without one */
    str head;
    str body;
    bool reset;
    char bytes[ANSWER_MAX];
    size_t size;
};

/* More bytes; false at the end of the connection. */
static inline bool client_more(int fd, struct answer *answer)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (poll(&ready, 1, PATIENCE_MS) != 1) {
        fail_msg("no answer in time");
    }
    assert_true(answer->size < ANSWER_MAX);
    ssize_t got = recv(fd, answer->bytes + answer->size, ANSWER_MAX - answer->size, 0);
    answer->reset = got < 0;
    answer->size += got > 0 ? (size_t)got : 0;
    return got > 0;
}

static inline str answer_header(const struct answer *answer, str name)
{
    str rest = answer->head;
    str line;
    while (str_next(&rest, '\n', &line)) {
        i64 colon = str_find_byte(line, ':');
        if (colon > 0 && str_equal_ignore_case(str_slice(line, 0, (size_t)colon), name)) {
            str value = str_slice(line, (size_t)colon + 1, line.size);
            return str_trim(str_slice(value, 0, value.size - 1));
        }
    }
    return (str){0};
}

/* One answer; what follows it stays in answer->bytes, after the body. */
static inline void client_read_kind(int fd, struct answer *answer, bool head_only)
{
    i64 end = -1;
    answer->status = 0;
    while ((end = str_find((str){answer->bytes, answer->size}, STR("\r\n\r\n"))) < 0) {
        if (!client_more(fd, answer)) {
            assert_int_equal(answer->size, 0);
            return;
        }
    }
    answer->head = (str){answer->bytes, (size_t)end + 2};
    i64 status = 0;
    assert_true(str_starts(answer->head, STR("HTTP/1.1 ")));
    assert_true(str_to_i64(str_slice(answer->head, 9, 12), &status));
    answer->status = (int)status;
    i64 length = 0;
    str length_text = answer_header(answer, STR("content-length"));
    if (length_text.data != NULL && !head_only) {
        assert_true(str_to_i64(length_text, &length));
    }
    while (answer->size < (size_t)end + 4 + (size_t)length) {
        assert_true(client_more(fd, answer));
    }
    answer->body = (str){answer->bytes + end + 4, (size_t)length};
}

static inline void client_read(int fd, struct answer *answer)
{
    answer->size = 0;
    client_read_kind(fd, answer, false);
}

/* The answer after the one that is in `answer`. */
static inline void client_read_next(int fd, struct answer *answer)
{
    size_t used = (size_t)(answer->body.data + answer->body.size - answer->bytes);
    answer->size -= used;
    memmove(answer->bytes, answer->bytes + used, answer->size);
    client_read_kind(fd, answer, false);
}

/* Nothing but the end follows. */
static inline bool client_ended(int fd, struct answer *answer)
{
    answer->size = 0;
    return !client_more(fd, answer);
}

static inline void client_ask(struct app *app, str request, struct answer *answer)
{
    int fd = client_connect(app);
    (void)client_try_send(fd, request);
    client_read(fd, answer);
    close(fd);
}

/* Nobody's: reused by the tests, which run one after the other. */
static struct answer answer;

static inline void assert_body(str wanted)
{
    if (!str_equal(answer.body, wanted)) {
        fail_msg("body is %.*s, not %.*s", STR_ARG(answer.body), STR_ARG(wanted));
    }
}

static inline bool body_has(const char *text)
{
    return str_find(answer.body, str_from(text)) >= 0;
}

#endif
