#include "server/dispatch.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/queue.h"
#include "server/send.h"
#include "sink/intake.h"
#include "sink/intake_early.h"

#include <pthread.h>

enum { WORKERS_MAX = 64 };
#define EARLY_WAIT_US ((i64)2 * TIME_SECOND_US)

/* One of the two listeners. */
struct door {
    struct dispatch *dispatch;
    bool internal;
};

struct dispatch {
    struct service *service;
    struct door public_door;
    struct door internal_door;
    struct queue *queue; /* of exchanges */
    pthread_t workers[WORKERS_MAX];
    i32 worker_count;
};

/* What the application keeps with a request, in the request's arena: a send on its way, or the body
 * of a call, which has an arena of its own. */
struct exchange {
    struct door *door;
    struct http_request *request;
    struct intake_send *send; /* NULL: a call, or no longer ours */
    struct arena *arena;      /* of the call's body; NULL: given away */
    buf body;
};

static void refuse(struct http_request *request, enum error_code code, const char *message)
{
    struct error error = {0};
    err kind = error_set(&error, BUSY, code, "%s", message);
    assert(kind == BUSY);
    http_respond_error(request, &error);
}

/* ---- on the http loops ---- */

static enum http_body_choice call_head(struct exchange *exchange)
{
    i64 length = http_request_content_length(exchange->request);
    if (length > DISPATCH_BODY_BYTES_MAX) {
        refuse(exchange->request, ERROR_BODY_TOO_LARGE, "the body is too large");
        return HTTP_BODY_ANSWERED;
    }
    exchange->arena = arena_create((size_t)DISPATCH_BODY_BYTES_MAX * 3);
    exchange->body = buf_create(exchange->arena, length > 0 ? (size_t)length : 0,
                                DISPATCH_BODY_BYTES_MAX);
    return HTTP_BODY_READ;
}

static enum http_body_choice on_head(void *context, struct http_request *request)
{
    struct door *door = context;
    struct exchange *exchange = arena_alloc(http_request_arena(request), sizeof(struct exchange));
    http_request_set_user(request, exchange);
    if (exchange == NULL) {
        refuse(request, ERROR_OVERLOADED, "the request needs too much memory");
        return HTTP_BODY_ANSWERED;
    }
    *exchange = (struct exchange){.door = door, .request = request};
    str sink_id = send_route(request);
    if (sink_id.data != NULL && !door->internal) {
        return send_head(door->dispatch->service, request, sink_id, &exchange->send);
    }
    return call_head(exchange);
}

static err on_body(void *context, struct http_request *request, str piece)
{
    (void)context;
    struct exchange *exchange = http_request_user(request);
    if (exchange->send != NULL) {
        err result = send_body(request, exchange->send, piece);
        exchange->send = result == OK ? exchange->send : NULL;
        return result;
    }
    buf_append(&exchange->body, piece);
    if (!buf_ok(&exchange->body)) {
        refuse(request, ERROR_BODY_TOO_LARGE, "the body is too large");
        return LIMIT;
    }
    return OK;
}

static void on_complete(void *context, struct http_request *request)
{
    struct door *door = context;
    struct exchange *exchange = http_request_user(request);
    if (exchange->send != NULL) {
        struct intake_send *send = exchange->send;
        exchange->send = NULL; /* the intake's from here on */
        send_complete(send);
    } else if (!queue_push(door->dispatch->queue, exchange)) {
        refuse(request, ERROR_OVERLOADED, "too many requests wait");
    }
}

static void on_gone(void *context, struct http_request *request)
{
    (void)context;
    struct exchange *exchange = http_request_user(request);
    if (exchange == NULL) {
        return;
    }
    if (exchange->send != NULL) {
        intake_send_drop(exchange->send);
        exchange->send = NULL;
    }
    arena_destroy(exchange->arena);
    exchange->arena = NULL;
}

/* ---- on the workers ---- */

/* After the answer the request, and the exchange in it, may be gone. */
static void call_handle(struct exchange *exchange)
{
    AUTO_ARENA struct arena *arena = arena_create(DISPATCH_CALL_BYTES_MAX);
    struct arena *body_arena = exchange->arena;
    exchange->arena = NULL;
    struct call call = {.service = exchange->door->dispatch->service,
                        .request = exchange->request,
                        .body = buf_str(&exchange->body),
                        .arena = arena,
                        .internal = exchange->door->internal};
    str path = http_request_path(exchange->request);
    if (str_starts(path, STR("/v1/"))) {
        /* Whoever has an answer of ours in hand finds what it says. */
        bool found = intake_early_await(call.service->early, call.service->seam, EARLY_WAIT_US);
        (void)found; /* the disk may be full: what there is to see is seen all the more */
    }
    bool catalog = str_equal(path, STR("/iceberg")) || str_starts(path, STR("/iceberg/"));
    if (catalog && !call.internal) {
        catalog_api_handle(&call);
    } else {
        api_handle(&call);
    }
    arena_destroy(body_arena);
}

static void *worker_thread(void *argument)
{
    struct dispatch *dispatch = argument;
    for (;;) {
        struct exchange *exchange = queue_pop(dispatch->queue, -1);
        if (exchange == NULL) {
            return NULL;
        }
        call_handle(exchange);
    }
}

err dispatch_open(struct arena *arena, struct service *service, i32 workers, size_t queue_max,
                  struct dispatch **out_dispatch, struct error *error)
{
    assert(workers > 0 && workers <= WORKERS_MAX);
    struct dispatch *dispatch = arena_alloc(arena, sizeof(*dispatch));
    if (dispatch == NULL) {
        return error_memory(error);
    }
    dispatch->service = service;
    dispatch->public_door = (struct door){.dispatch = dispatch};
    dispatch->internal_door = (struct door){.dispatch = dispatch, .internal = true};
    dispatch->queue = queue_create(queue_max);
    dispatch->worker_count = workers;
    for (i32 i = 0; i < workers; i++) {
        int made = pthread_create(&dispatch->workers[i], NULL, worker_thread, dispatch);
        assert(made == 0);
    }
    *out_dispatch = dispatch;
    return OK;
}

static struct http_handlers handlers_of(struct door *door)
{
    return (struct http_handlers){.head = on_head,
                                  .body = on_body,
                                  .complete = on_complete,
                                  .gone = on_gone,
                                  .context = door};
}

struct http_handlers dispatch_public(struct dispatch *dispatch)
{
    return handlers_of(&dispatch->public_door);
}

struct http_handlers dispatch_internal(struct dispatch *dispatch)
{
    return handlers_of(&dispatch->internal_door);
}

void dispatch_close(struct dispatch *dispatch)
{
    queue_close(dispatch->queue);
    for (i32 i = 0; i < dispatch->worker_count; i++) {
        (void)pthread_join(dispatch->workers[i], NULL);
    }
    queue_destroy(dispatch->queue);
}
