/* Listening sockets, one a loop, and what happens when there are too many connections. */
#include "io/http_connection.h"

#include "base/assert.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 4096, ACCEPTS_MAX = 64 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

/* ---- making ---- */

static socklen_t address_size(const union address *address)
{
    switch (address->any.sa_family) {
    case AF_INET:
        return sizeof(address->v4);
    case AF_INET6:
        return sizeof(address->v6);
    default:
        return sizeof(address->local);
    }
}

static err address_read(const struct http_options *options, union address *out_address,
                        struct error *error)
{
    char text[INET6_ADDRSTRLEN];
    union address address = {0};
    if (options->address.size >= sizeof(text) || options->port < 0 || options->port > 65535) {
        return error_set(error, INVALID, ERROR_INVALID_CONFIG, "%.*s:%d is no address to listen on",
                         STR_ARG(options->address), (int)options->port);
    }
    memcpy(text, options->address.data, options->address.size);
    text[options->address.size] = 0;
    if (inet_pton(AF_INET, text, &address.v4.sin_addr) == 1) {
        address.v4.sin_family = AF_INET;
        address.v4.sin_port = htons((u16)options->port);
    } else if (inet_pton(AF_INET6, text, &address.v6.sin6_addr) == 1) {
        address.v6.sin6_family = AF_INET6;
        address.v6.sin6_port = htons((u16)options->port);
    } else {
        return error_set(error, INVALID, ERROR_INVALID_CONFIG,
                         "%s is neither an IPv4 nor an IPv6 address", text);
    }
    *out_address = address;
    return OK;
}

static void option_set(int fd, int level, int name)
{
    int on = 1;
    (void)setsockopt(fd, level, name, &on, sizeof(on));
}

static i32 port_of(int fd)
{
    union address address = {0};
    socklen_t size = sizeof(address);
    if (getsockname(fd, &address.any, &size) != 0) {
        return 0;
    }
    return ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
}

/* A socket bound with SO_REUSEPORT from the start would share the port with another process of the
 * same user. The first one is bound without, which the kernel refuses when the port is taken, and
 * opened to its brothers afterwards. */
static err listen_tcp(struct http_loop *loop, union address *address, struct error *error)
{
    bool first = loop == loop->server->loops[0];
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return error_set(error, IO, ERROR_UNAVAILABLE, "a socket cannot be made: %s",
                         strerrordesc_np(errno));
    }
    loop->listen_fd = fd;
    option_set(fd, SOL_SOCKET, SO_REUSEADDR);
    option_set(fd, IPPROTO_TCP, TCP_NODELAY); /* accepted sockets inherit it */
    if (!first) {
        option_set(fd, SOL_SOCKET, SO_REUSEPORT);
    }
    bool bound = bind(fd, &address->any, address_size(address)) == 0;
    if (bound && first) {
        option_set(fd, SOL_SOCKET, SO_REUSEPORT);
    }
    if (!bound || listen(fd, BACKLOG) != 0) {
        const struct http_options *options = &loop->server->options;
        bool taken = errno == EADDRINUSE;
        err result = error_set(error, taken ? CONFLICT : IO, ERROR_UNAVAILABLE,
                               "%.*s:%d cannot be listened on: %s", STR_ARG(options->address),
                               (int)options->port, strerrordesc_np(errno));
        if (taken) {
            error_hint(error, "stop who has it, or take another port: --port 0 takes a free one");
        }
        return result;
    }
    return OK;
}

/* A socket file that nobody listens on any more is in the way. */
static void remove_stale(const union address *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }
    if (connect(fd, &address->any, sizeof(address->local)) != 0 && errno == ECONNREFUSED) {
        (void)unlink(address->local.sun_path);
    }
    close(fd);
}

/* All loops accept from the one socket. Only its owner may connect. */
static err listen_unix(struct http_server *server, struct error *error)
{
    union address address = {0};
    str path = str_slice(server->options.address, 5, server->options.address.size);
    if (path.size == 0 || path.size >= sizeof(address.local.sun_path)) {
        return error_set(error, INVALID, ERROR_INVALID_CONFIG,
                         "a socket's path has 1 to 107 bytes: %.*s", STR_ARG(path));
    }
    address.local.sun_family = AF_UNIX;
    memcpy(address.local.sun_path, path.data, path.size);
    remove_stale(&address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return error_set(error, IO, ERROR_UNAVAILABLE, "a socket cannot be made: %s",
                         strerrordesc_np(errno));
    }
    server->loops[0]->listen_fd = fd;
    if (fchmod(fd, S_IRUSR | S_IWUSR) != 0 || bind(fd, &address.any, sizeof(address.local)) != 0 ||
        listen(fd, BACKLOG) != 0) {
        return error_set(error, errno == EADDRINUSE ? CONFLICT : IO, ERROR_UNAVAILABLE,
                         "%.*s cannot be listened on: %s", STR_ARG(path), strerrordesc_np(errno));
    }
    server->unix_path = str_copy(server->arena, path).data;
    for (i32 index = 1; index < server->loop_count; index++) {
        server->loops[index]->listen_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (server->loops[index]->listen_fd < 0) {
            return error_set(error, IO, ERROR_UNAVAILABLE, "a socket cannot be shared: %s",
                             strerrordesc_np(errno));
        }
    }
    return OK;
}

static bool listen_watch(struct http_loop *loop)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.ptr = &loop->listen_fd};
    loop->accepting = epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->listen_fd, &event) == 0;
    return loop->accepting;
}

static err listen_all_tcp(struct http_server *server, struct error *error)
{
    union address address = {0};
    TRY(address_read(&server->options, &address, error));
    for (i32 index = 0; index < server->loop_count; index++) {
        TRY(listen_tcp(server->loops[index], &address, error));
        server->port = port_of(server->loops[0]->listen_fd);
        if (address.any.sa_family == AF_INET) {
            address.v4.sin_port = htons((u16)server->port);
        } else {
            address.v6.sin6_port = htons((u16)server->port);
        }
    }
    return OK;
}

err http_listen(struct http_server *server, struct error *error)
{
    if (str_starts(server->options.address, STR("unix:"))) {
        TRY(listen_unix(server, error));
    } else {
        TRY(listen_all_tcp(server, error));
    }
    for (i32 index = 0; index < server->loop_count; index++) {
        server->loops[index]->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (!listen_watch(server->loops[index])) {
            return error_set(error, IO, ERROR_UNAVAILABLE, "a socket cannot be watched: %s",
                             strerrordesc_np(errno));
        }
    }
    return OK;
}

/* ---- accepting ---- */

static size_t peer_format(const union address *address, char out[HTTP_PEER_SIZE])
{
    const char *text = NULL;
    if (address->any.sa_family == AF_INET) {
        text = inet_ntop(AF_INET, &address->v4.sin_addr, out, HTTP_PEER_SIZE);
    } else if (address->any.sa_family == AF_INET6) {
        text = inet_ntop(AF_INET6, &address->v6.sin6_addr, out, HTTP_PEER_SIZE);
    }
    if (text == NULL) {
        memcpy(out, "unix", 4);
        return 4;
    }
    return strnlen(out, HTTP_PEER_SIZE);
}

/* No descriptor left. The spare one lets a client see a closed connection in place of silence; then
 * accepting pauses, and connections between requests make room. */
static void listen_pause(struct http_loop *loop)
{
    if (loop->spare_fd >= 0) {
        close(loop->spare_fd);
        int fd = accept4(loop->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            close(fd);
        }
        loop->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    (void)http_connection_close_idle(loop);
    (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, loop->listen_fd, NULL);
    loop->accepting = false;
    loop->accept_again_us = loop->now_us + HTTP_ACCEPT_PAUSE_US;
}

void http_listen_resume(struct http_loop *loop)
{
    loop->accept_again_us = 0;
    if (loop->spare_fd < 0) {
        loop->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    if (loop->listen_fd >= 0 && !loop->accepting && !listen_watch(loop)) {
        loop->accept_again_us = loop->now_us + HTTP_ACCEPT_PAUSE_US;
    }
}

static bool listen_full(const struct http_server *server)
{
    return atomic_load_explicit(&server->connections, memory_order_relaxed) >=
           server->options.connections_max;
}

/* One connection too many: it is told, if it can be told at once. */
static void connection_turn_away(const struct http_server *server, int fd)
{
    if (server->tls == NULL) {
        (void)send(fd, http_response_full, strlen(http_response_full), MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)shutdown(fd, SHUT_WR);
    }
    close(fd);
}

void http_listen_accept(struct http_loop *loop)
{
    for (i32 index = 0; index < ACCEPTS_MAX && loop->accepting; index++) {
        union address address = {0};
        socklen_t size = sizeof(address);
        int fd = accept4(loop->listen_fd, &address.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                listen_pause(loop);
            }
            return;
        }
        if (listen_full(loop->server)) {
            connection_turn_away(loop->server, fd);
            continue;
        }
        char peer[HTTP_PEER_SIZE];
        size_t peer_size = peer_format(&address, peer);
        (void)http_connection_open(loop, fd, (str){peer, peer_size});
    }
}

/* The spare descriptor makes room for one at a time. */
void http_listen_drop(struct http_loop *loop)
{
    if (loop->listen_fd < 0) {
        return;
    }
    if (loop->spare_fd >= 0) {
        close(loop->spare_fd);
    }
    bool more = true;
    for (int count = 0; more && count <= BACKLOG; count++) {
        int fd = accept4(loop->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        more = fd >= 0 || errno == ECONNABORTED || errno == EINTR;
        if (fd >= 0) {
            close(fd);
        }
    }
    loop->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void http_listen_end(struct http_loop *loop)
{
    if (loop->listen_fd >= 0) {
        close(loop->listen_fd);
        loop->listen_fd = -1;
    }
    loop->accepting = false;
    loop->accept_again_us = 0;
}
