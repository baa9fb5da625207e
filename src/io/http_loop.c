/* One thread's event loop: events, answers, connections that have more to do, deadlines; in this
 * order, each round. */
#include "io/http_connection.h"

#include "base/assert.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    SCRATCH_SIZE = 16 * KIB,
    HELD_LOOPS = 16,
    ARENA_KEPT_BYTES_MAX = 256 * KIB,
    CONNECTIONS_PER_LOOP_BYTES_MAX = 1 << 30,
};

/* The loop that this thread runs, if it runs one. */
static _Thread_local struct http_loop *loop_here;

/* Answers of this thread that leave together, per loop. */
struct held_chain {
    struct http_loop *loop;
    struct http_request *newest;
    struct http_request *oldest;
};
struct held {
    bool holding;
    struct held_chain chains[HELD_LOOPS]; /* more loops than that are told at once */
};
static _Thread_local struct held held;

/* ---- arenas of requests ---- */

struct arena *http_loop_take_arena(struct http_loop *loop)
{
    if (loop->pool_count > 0) {
        loop->pool_count--;
        return loop->pool[loop->pool_count];
    }
    size_t body_bytes_max = (size_t)loop->server->options.body_bytes_max;
    return arena_create(HTTP_REQUEST_BYTES_MAX + 4 * body_bytes_max);
}

void http_loop_give_arena(struct http_loop *loop, struct arena *arena)
{
    if (loop->pool_count == HTTP_REQUEST_POOL_MAX || arena_bytes(arena) > ARENA_KEPT_BYTES_MAX) {
        arena_destroy(arena);
        return;
    }
    arena_reset(arena);
    loop->pool[loop->pool_count] = arena;
    loop->pool_count++;
}

/* ---- answers ---- */

void http_loop_wake(struct http_loop *loop)
{
    u64 one = 1;
    ssize_t written = write(loop->wake_fd, &one, sizeof(one));
    (void)written; /* a full counter wakes it as well */
}

/* Hands a chain of answers over, from its newest to its oldest. */
static void answers_push(struct http_loop *loop, struct http_request *newest,
                         struct http_request *oldest)
{
    int wake_fd =
        loop->wake_fd; /* once the requests are in the queue, the loop may be at its end */
    struct http_request *first = atomic_load_explicit(&loop->answered, memory_order_relaxed);
    do {
        oldest->next_answered = first;
    } while (!atomic_compare_exchange_weak_explicit(&loop->answered, &first, newest,
                                                    memory_order_release, memory_order_relaxed));
    if (first == NULL) {
        u64 one = 1;
        ssize_t written = write(wake_fd, &one, sizeof(one));
        (void)written;
    }
}

static bool answer_hold(struct http_request *request)
{
    for (size_t i = 0; held.holding && i < HELD_LOOPS; i++) {
        struct held_chain *chain = &held.chains[i];
        if (chain->loop == NULL) {
            *chain = (struct held_chain){request->loop, NULL, request};
        }
        if (chain->loop == request->loop) {
            request->next_answered = chain->newest;
            chain->newest = request;
            return true;
        }
    }
    return false;
}

void http_answers_hold(void)
{
    assert(!held.holding);
    held.holding = true;
}

void http_answers_release(void)
{
    assert(held.holding);
    for (size_t i = 0; i < HELD_LOOPS && held.chains[i].loop != NULL; i++) {
        answers_push(held.chains[i].loop, held.chains[i].newest, held.chains[i].oldest);
    }
    held = (struct held){.holding = false};
}

void http_loop_answered(struct http_request *request)
{
    struct http_loop *loop = request->loop;
    if (loop == loop_here) {
        if (request->connection != NULL && request->connection == loop->running) {
            request->ready = true;
            return;
        }
        request->next_answered = loop->answered_here;
        loop->answered_here = request;
        return;
    }
    if (!answer_hold(request)) {
        answers_push(loop, request, request);
    }
}

static void answer_take(struct http_request *request)
{
    request->ready = true;
    if (request->connection == NULL) {
        http_request_end(request);
    } else {
        http_connection_run(request->connection);
    }
}

/* The queue holds the newest first; they are taken in the order of arrival. */
static struct http_request *answers_in_order(struct http_request *newest)
{
    struct http_request *oldest = NULL;
    while (newest != NULL) {
        struct http_request *next = newest->next_answered;
        newest->next_answered = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static void answers_take(struct http_request *list)
{
    while (list != NULL) {
        struct http_request *next = list->next_answered;
        answer_take(list);
        list = next;
    }
}

static void loop_take_answers(struct http_loop *loop)
{
    if (atomic_load_explicit(&loop->answered, memory_order_relaxed) != NULL) {
        answers_take(answers_in_order(
            atomic_exchange_explicit(&loop->answered, NULL, memory_order_acquire)));
    }
    while (loop->answered_here != NULL) {
        struct http_request *list = answers_in_order(loop->answered_here);
        loop->answered_here = NULL;
        answers_take(list);
    }
}

/* ---- one round ---- */

/* RFC 9110 5.6.7, without the locale. */
static void loop_read_clocks(struct http_loop *loop)
{
    static const char days[] = "ThuFriSatSunMonTueWed";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    loop->now_us = seam_monotonic_us(loop->server->seam);
    instant second = seam_now(loop->server->seam) / TIME_SECOND_US;
    if (second == loop->date_second) {
        return;
    }
    loop->date_second = second;
    i64 day = second / 86400;
    i64 rest = second % 86400;
    struct civil civil = time_civil_from_days(day);
    int size = snprintf(loop->date, sizeof(loop->date), "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
                        days + 3 * (day % 7), (int)civil.day, months + 3 * (civil.month - 1),
                        (int)civil.year, (int)(rest / 3600), (int)(rest / 60 % 60),
                        (int)(rest % 60));
    loop->date_size = (size_t)size;
}

static void connection_event(struct http_connection *connection, u32 events)
{
    if (connection->state == HTTP_STATE_CLOSED) {
        return;
    }
    if (connection->tls != NULL) {
        /* Either direction may be what the session waits for. */
        connection->readable = true;
        connection->writable = true;
    }
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        connection->readable = true;
    }
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        connection->hangup = true;
    }
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
        connection->writable = true;
    }
    if (connection->state == HTTP_STATE_PARKED && (events & (EPOLLHUP | EPOLLERR)) != 0) {
        http_connection_close(connection);
        return;
    }
    http_connection_run(connection);
}

static void loop_event(struct http_loop *loop, const struct epoll_event *event)
{
    if (event->data.ptr == loop) {
        u64 count = 0;
        ssize_t got = read(loop->wake_fd, &count, sizeof(count));
        (void)got;
    } else if (event->data.ptr == &loop->listen_fd) {
        http_listen_accept(loop);
    } else {
        connection_event(event->data.ptr, event->events);
    }
}

static void loop_run_ready(struct http_loop *loop)
{
    struct http_connection *connection = loop->ready;
    loop->ready = NULL;
    while (connection != NULL) {
        struct http_connection *next = connection->next_ready;
        connection->queued = false;
        connection->next_ready = NULL;
        if (connection->state != HTTP_STATE_CLOSED) {
            http_connection_run(connection);
        }
        connection = next;
    }
}

static void loop_expire(struct http_loop *loop)
{
    struct http_timer *timer = http_wheel_expire(&loop->wheel, loop->now_us);
    while (timer != NULL) {
        /* The timer is the connection's first member. */
        http_connection_expire((struct http_connection *)(void *)timer);
        timer = http_wheel_expire(&loop->wheel, loop->now_us);
    }
    if (loop->accept_again_us != 0 && loop->accept_again_us <= loop->now_us) {
        http_listen_resume(loop);
    }
}

/* No event of this round can point at them any more. */
static void loop_free_closed(struct http_loop *loop)
{
    struct http_connection *connection = loop->closed;
    loop->closed = NULL;
    while (connection != NULL) {
        struct http_connection *next = connection->next;
        if (connection->queued) {
            connection->next = loop->closed;
            loop->closed = connection;
        } else {
            connection->next = loop->free;
            loop->free = connection;
        }
        connection = next;
    }
}

static int loop_wait_ms(struct http_loop *loop)
{
    if (loop->ready != NULL) {
        return 0;
    }
    i64 wait_us = http_wheel_wait(&loop->wheel, loop->now_us);
    if (loop->accept_again_us != 0) {
        i64 pause_us = num_max_i64(0, loop->accept_again_us - loop->now_us);
        wait_us = wait_us < 0 ? pause_us : num_min_i64(wait_us, pause_us);
    }
    return wait_us < 0 ? -1 : (int)num_min_i64((wait_us + 999) / 1000, 60 * 1000);
}

static void loop_round(struct http_loop *loop)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, loop_wait_ms(loop));
    loop_read_clocks(loop);
    for (int index = 0; index < count; index++) {
        loop_event(loop, &events[index]);
    }
    loop_take_answers(loop);
    loop_run_ready(loop);
    loop_expire(loop);
    loop_take_answers(loop); /* of handlers that answered while others ran */
    loop_free_closed(loop);
}

static void loop_close_all(struct http_loop *loop)
{
    http_listen_end(loop);
    loop_take_answers(loop);
    while (loop->open != NULL) {
        http_connection_close(loop->open);
    }
    loop_take_answers(loop);
}

/* The connections first, so that there are descriptors to accept with. A request that is whole, and
 * with its handler, is answered all the same; it is its connection's last. */
static void loop_drop(struct http_loop *loop, int drops)
{
    struct http_server *server = loop->server;
    struct http_connection *next = NULL;
    for (struct http_connection *connection = loop->open; connection != NULL; connection = next) {
        next = connection->next;
        if (connection->state == HTTP_STATE_PARKED || connection->state == HTTP_STATE_ANSWER) {
            connection->close_after = true;
        } else {
            http_connection_close(connection);
        }
    }
    http_listen_drop(loop);
    loop_take_answers(loop); /* of handlers whose request is gone */
    (void)pthread_mutex_lock(&server->drop_lock);
    loop->dropped = drops;
    (void)pthread_cond_broadcast(&server->drop_done);
    (void)pthread_mutex_unlock(&server->drop_lock);
}

void *http_loop_run(void *argument)
{
    struct http_loop *loop = argument;
    struct http_server *server = loop->server;
    loop_here = loop;
    pthread_setname_np(pthread_self(), "http");
    int mode = HTTP_MODE_SERVING;
    while (mode != HTTP_MODE_STOPPING) {
        loop_round(loop);
        int drops = atomic_load_explicit(&server->drops, memory_order_acquire);
        if (drops != loop->dropped) {
            loop_drop(loop, drops);
        }
        mode = atomic_load_explicit(&server->mode, memory_order_acquire);
        if (mode == HTTP_MODE_DRAINING && loop->listen_fd >= 0) {
            http_listen_end(loop);
            (void)http_connection_close_idle(loop);
        }
    }
    loop_close_all(loop);
    loop_here = NULL;
    return NULL;
}

/* ---- making ---- */

static bool loop_watch_wake(struct http_loop *loop)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = loop};
    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) == 0;
}

err http_loop_create(struct http_server *server, struct http_loop **out_loop, struct error *error)
{
    struct arena *arena = arena_create(CONNECTIONS_PER_LOOP_BYTES_MAX);
    struct http_loop *loop = arena_alloc(arena, sizeof(*loop));
    char *buffer = arena_alloc(arena, HTTP_BUFFER_SIZE);
    char *scratch = arena_alloc(arena, SCRATCH_SIZE);
    assert(loop != NULL);
    assert(buffer != NULL);
    assert(scratch != NULL);
    loop->server = server;
    loop->arena = arena;
    loop->buffer = buffer;
    loop->scratch = scratch;
    loop->listen_fd = -1;
    loop->spare_fd = -1;
    seam_random(server->seam, &loop->id_prefix, sizeof(loop->id_prefix));
    loop->date_second = -1;
    loop_read_clocks(loop);
    http_wheel_init(&loop->wheel, loop->now_us);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    *out_loop = loop;
    if (loop->epoll_fd < 0 || loop->wake_fd < 0 || !loop_watch_wake(loop)) {
        return error_set(error, IO, ERROR_UNAVAILABLE, "an event loop cannot be made: %s",
                         strerrordesc_np(errno));
    }
    return OK;
}

static void descriptor_close(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

void http_loop_destroy(struct http_loop *loop)
{
    descriptor_close(loop->epoll_fd);
    descriptor_close(loop->wake_fd);
    descriptor_close(loop->listen_fd);
    descriptor_close(loop->spare_fd);
    while (loop->pool_count > 0) {
        loop->pool_count--;
        arena_destroy(loop->pool[loop->pool_count]);
    }
    arena_destroy(loop->arena);
}
