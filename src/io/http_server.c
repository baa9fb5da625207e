#include "io/http_server.h"

#include "io/http_connection.h"

#include "base/assert.h"

#include <signal.h>
#include <unistd.h>

struct http_options http_options_default(void)
{
    return (struct http_options){
        .address = STR("127.0.0.1"),
        .port = 0,
        .threads = 2,
        .connections_max = 10000,
        .body_bytes_max = 16 * MIB,
        .bodies_bytes_max = 256 * MIB,
        .head_bytes_max = 16 * KIB,
        .target_bytes_max = 8 * KIB,
        .header_count_max = 64,
        .head_timeout_us = 10 * TIME_SECOND_US,
        .body_timeout_us = 10 * TIME_SECOND_US,
        .body_rate_min = 16 * KIB,
        .answer_timeout_us = 10 * TIME_SECOND_US,
        .park_timeout_us = 90 * TIME_SECOND_US,
        .idle_timeout_us = 30 * TIME_SECOND_US,
        .requests_per_connection = 1000,
    };
}

/* The loops' threads take no signals: those are the main thread's. SIGPIPE blocked here also covers
 * what OpenSSL writes. */
static err server_start_threads(struct http_server *server, struct error *error)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failure = 0;
    for (i32 index = 0; index < server->loop_count && failure == 0; index++) {
        struct http_loop *loop = server->loops[index];
        failure = pthread_create(&loop->thread, NULL, http_loop_run, loop);
        loop->started = failure == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure == 0 ? OK
                        : error_set(error, IO, ERROR_UNAVAILABLE, "a thread cannot be started");
}

static err server_open(struct http_server *server, struct error *error)
{
    const struct http_options *options = &server->options;
    if (options->tls_certificate_file.size > 0) {
        TRY(http_tls_create(server->arena, options->tls_certificate_file, options->tls_key_file,
                            &server->tls, error));
    }
    for (i32 index = 0; index < options->threads; index++) {
        server->loop_count++;
        TRY(http_loop_create(server, &server->loops[index], error));
    }
    TRY(http_listen(server, error));
    return server_start_threads(server, error);
}

err http_server_start(struct arena *arena, const struct http_options *options,
                      const struct http_handlers *handlers, const struct seam *seam,
                      struct http_server **out_server, struct error *error)
{
    assert(options->threads > 0);
    assert(options->threads <= HTTP_LOOPS_MAX);
    assert(options->body_bytes_max > 0);
    assert(options->body_rate_min > 0);
    struct http_server *server = arena_alloc(arena, sizeof(*server));
    if (server == NULL) {
        return error_memory(error);
    }
    server->options = *options;
    server->handlers = *handlers;
    server->seam = seam;
    server->arena = arena;
    int failed = pthread_mutex_init(&server->drop_lock, NULL);
    failed |= pthread_cond_init(&server->drop_done, NULL);
    assert(failed == 0);
    err opened = server_open(server, error);
    if (opened != OK) {
        http_server_stop(server);
        return opened;
    }
    *out_server = server;
    return OK;
}

i32 http_server_port(const struct http_server *server)
{
    return server->port;
}

static void server_set_mode(struct http_server *server, enum http_mode mode)
{
    atomic_store_explicit(&server->mode, (int)mode, memory_order_release);
    for (i32 index = 0; index < server->loop_count; index++) {
        http_loop_wake(server->loops[index]);
    }
}

void http_server_drain(struct http_server *server)
{
    server_set_mode(server, HTTP_MODE_DRAINING);
}

static bool all_dropped(const struct http_server *server, int drops)
{
    for (i32 index = 0; index < server->loop_count; index++) {
        if (server->loops[index]->dropped - drops < 0) {
            return false;
        }
    }
    return true;
}

void http_server_drop(struct http_server *server)
{
    int drops = 1 + atomic_fetch_add_explicit(&server->drops, 1, memory_order_acq_rel);
    for (i32 index = 0; index < server->loop_count; index++) {
        http_loop_wake(server->loops[index]);
    }
    (void)pthread_mutex_lock(&server->drop_lock);
    while (!all_dropped(server, drops)) {
        (void)pthread_cond_wait(&server->drop_done, &server->drop_lock);
    }
    (void)pthread_mutex_unlock(&server->drop_lock);
}

i64 http_server_active(const struct http_server *server)
{
    return atomic_load_explicit(&server->active, memory_order_acquire);
}

void http_server_stop(struct http_server *server)
{
    server_set_mode(server, HTTP_MODE_STOPPING);
    for (i32 index = 0; index < server->loop_count; index++) {
        if (server->loops[index]->started) {
            pthread_join(server->loops[index]->thread, NULL);
        }
    }
    assert(http_server_active(server) == 0);
    for (i32 index = 0; index < server->loop_count; index++) {
        http_loop_destroy(server->loops[index]);
    }
    if (server->unix_path != NULL) {
        (void)unlink(server->unix_path);
    }
    http_tls_destroy(server->tls);
    (void)pthread_cond_destroy(&server->drop_done);
    (void)pthread_mutex_destroy(&server->drop_lock);
}
