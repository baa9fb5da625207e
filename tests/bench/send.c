/* send: posts one body again and again over HTTP/1.1 connections that are kept, each time under an
 * id of its own, and tells how long the answers took.
 *
 * send PORT TARGETS BODY CONNECTIONS SECONDS [options]
 *   TARGETS  a file with lines "path key": taken in turn; the key goes into Authorization
 *   BODY     a file
 *   --rate=N        so many a second at fixed times, whether answers come or not; a latency then
 *                   counts from the time at which its request was due (no coordinated omission)
 *   --ids=PREFIX    of the Idempotency-Keys
 *   --duplicates=N  every second request is one of N + 1 requests ago, again; N is even
 *   --log=FILE      two int64 a request: due or sent, and answered, in monotonic microseconds
 *
 * Without a rate each connection sends when its answer came. One thread. Prints one line of JSON;
 * fails when an answer was no 2xx. */
#include "base/num.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 1024,
    TARGETS_MAX = 2000,
    HEAD_MAX = 1024,
    ANSWER_MAX = 8192,
    DRAIN_US = 5000000,
};

struct target {
    char path[128];
    char key[128];
};

struct connection {
    int fd;
    bool busy;
    char head[HEAD_MAX];
    size_t head_size;
    size_t sent; /* of head and body */
    char answer[ANSWER_MAX];
    size_t answer_size;
    i64 begun_us; /* due, or sent */
};

struct sample {
    i64 begun_us;
    i64 ended_us;
};

struct sender {
    struct sockaddr_in address;
    struct target *targets;
    size_t target_count;
    char *body;
    size_t body_size;
    size_t connection_count;
    double rate;
    const char *ids;
    i64 duplicates; /* 0: none */
    const char *log;
    int epoll;
    struct connection *connections;
    i64 start_us;
    i64 end_us;
    i64 begun; /* requests */
    i64 refused;
    i64 broken;
    struct sample *samples;
    size_t sample_count;
    size_t sample_capacity;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "send: %s: %s\n", what, errno != 0 ? strerror(errno) : "no");
    exit(2);
}

static i64 now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (i64)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- connections ---- */

static void watch(struct sender *sender, struct connection *connection, u32 events, int how)
{
    struct epoll_event event = {.events = events, .data.ptr = connection};
    if (epoll_ctl(sender->epoll, how, connection->fd, &event) != 0) {
        die("epoll_ctl");
    }
}

static void connection_open(struct sender *sender, struct connection *connection)
{
    int one = 1;
    connection->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connection->fd < 0 || connect(connection->fd, (struct sockaddr *)&sender->address,
                                      sizeof(sender->address)) != 0) {
        die("connect");
    }
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    fcntl(connection->fd, F_SETFL, O_NONBLOCK);
    watch(sender, connection, EPOLLIN, EPOLL_CTL_ADD);
}

static void connection_reopen(struct sender *sender, struct connection *connection)
{
    close(connection->fd);
    connection_open(sender, connection);
}

/* ---- requests ---- */

static i64 id_of(const struct sender *sender, i64 number)
{
    bool again = sender->duplicates > 0 && number % 2 == 1 && number > sender->duplicates;
    return again ? number - 1 - sender->duplicates : number;
}

static void make_head(struct sender *sender, struct connection *connection)
{
    i64 number = sender->begun++;
    const struct target *target = &sender->targets[(size_t)number % sender->target_count];
    int size = snprintf(connection->head, HEAD_MAX,
                        "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
                        "Content-Type: application/json\r\nIdempotency-Key: %s-%lld\r\n"
                        "Content-Length: %zu\r\n\r\n",
                        target->path, target->key, sender->ids, (long long)id_of(sender, number),
                        sender->body_size);
    if (size <= 0 || size >= HEAD_MAX) {
        die("a head is too long");
    }
    connection->head_size = (size_t)size;
}

static void push(struct sender *sender, struct connection *connection)
{
    size_t head_left = connection->sent < connection->head_size
                           ? connection->head_size - connection->sent
                           : 0;
    size_t body_sent = connection->sent - (connection->head_size - head_left);
    struct iovec parts[2] = {
        {connection->head + connection->head_size - head_left, head_left},
        {sender->body + body_sent, sender->body_size - body_sent},
    };
    ssize_t wrote = writev(connection->fd, parts, 2);
    if (wrote < 0 && errno != EAGAIN) {
        sender->broken++;
        return;
    }
    size_t all = connection->head_size + sender->body_size;
    bool was_short = connection->sent > 0;
    connection->sent += wrote > 0 ? (size_t)wrote : 0;
    if (connection->sent < all || was_short) {
        watch(sender, connection, connection->sent < all ? EPOLLIN | EPOLLOUT : EPOLLIN,
              EPOLL_CTL_MOD);
    }
}

static void begin(struct sender *sender, struct connection *connection, i64 begun_us)
{
    make_head(sender, connection);
    connection->busy = true;
    connection->sent = 0;
    connection->answer_size = 0;
    connection->begun_us = begun_us;
    push(sender, connection);
}

/* ---- answers ---- */

static void keep(struct sender *sender, const struct connection *connection)
{
    if (sender->sample_count == sender->sample_capacity) {
        sender->sample_capacity = sender->sample_capacity * 2 + 65536;
        sender->samples = realloc(sender->samples,
                                  sender->sample_capacity * sizeof(*sender->samples));
        if (sender->samples == NULL) {
            die("memory");
        }
    }
    sender->samples[sender->sample_count++] = (struct sample){connection->begun_us, now_us()};
}

static const char *find_field(const char *head, const char *name)
{
    const char *found = strcasestr(head, name);
    return found == NULL ? NULL : found + strlen(name);
}

/* Whether the whole answer is there. */
static bool is_complete(struct connection *connection)
{
    connection->answer[connection->answer_size] = 0;
    const char *head_end = strstr(connection->answer, "\r\n\r\n");
    if (head_end == NULL) {
        return false;
    }
    const char *length = find_field(connection->answer, "\r\ncontent-length:");
    size_t body = length == NULL ? 0 : strtoul(length, NULL, 10);
    return connection->answer_size >= (size_t)(head_end + 4 - connection->answer) + body;
}

/* False: the answer is not whole yet. */
static bool take_answer(struct sender *sender, struct connection *connection)
{
    ssize_t got = recv(connection->fd, connection->answer + connection->answer_size,
                       ANSWER_MAX - 1 - connection->answer_size, 0);
    if (got < 0 && errno == EAGAIN) {
        return false;
    }
    if (got <= 0) {
        sender->broken += connection->busy ? 1 : 0;
        connection->busy = false;
        connection_reopen(sender, connection);
        return true;
    }
    connection->answer_size += (size_t)got;
    if (!is_complete(connection)) {
        return false;
    }
    const char *status = strchr(connection->answer, ' ');
    if (status == NULL || status[1] != '2') {
        if (sender->refused++ == 0) {
            fprintf(stderr, "send: refused: %.300s\n", connection->answer);
        }
    } else {
        keep(sender, connection);
    }
    connection->busy = false;
    if (find_field(connection->answer, "\r\nconnection: close") != NULL) {
        connection_reopen(sender, connection);
    }
    return true;
}

/* ---- the two ways ---- */

/* When the n-th request is due. */
static i64 due_us(const struct sender *sender, i64 number)
{
    return sender->start_us + (i64)((double)number * 1e6 / sender->rate);
}

static void begin_due(struct sender *sender)
{
    i64 now = now_us();
    for (size_t i = 0; i < sender->connection_count && sender->begun >= 0; i++) {
        i64 due = due_us(sender, sender->begun);
        if (due > now || due >= sender->end_us) {
            return;
        }
        if (!sender->connections[i].busy) {
            begin(sender, &sender->connections[i], due);
        }
    }
}

static size_t busy_count(const struct sender *sender)
{
    size_t count = 0;
    for (size_t i = 0; i < sender->connection_count; i++) {
        count += sender->connections[i].busy ? 1 : 0;
    }
    return count;
}

static void look(struct sender *sender, i64 wait_us)
{
    struct epoll_event events[64];
    struct timespec wait = {.tv_sec = wait_us / 1000000, .tv_nsec = wait_us % 1000000 * 1000};
    int count = epoll_pwait2(sender->epoll, events, 64, &wait, NULL);
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;
        if ((events[i].events & EPOLLOUT) != 0) {
            push(sender, connection);
        }
        if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0 ||
            !take_answer(sender, connection)) {
            continue;
        }
        i64 now = now_us();
        if (sender->rate <= 0 && now < sender->end_us) {
            begin(sender, connection, now);
        }
    }
}

static i64 until_due(const struct sender *sender)
{
    i64 wait = due_us(sender, sender->begun) - now_us();
    bool is_over = due_us(sender, sender->begun) >= sender->end_us;
    return is_over || wait > 100000 ? 100000 : wait > 0 ? wait : 0;
}

static void run(struct sender *sender, double seconds)
{
    sender->start_us = now_us();
    sender->end_us = sender->start_us + (i64)(seconds * 1e6);
    for (size_t i = 0; i < sender->connection_count; i++) {
        if (sender->rate <= 0) {
            begin(sender, &sender->connections[i], now_us());
        }
    }
    while (now_us() < sender->end_us) {
        bool room = sender->rate > 0 && busy_count(sender) < sender->connection_count;
        if (room) {
            begin_due(sender);
        }
        look(sender, room ? until_due(sender) : 100000);
    }
    i64 patience = now_us() + DRAIN_US;
    while (busy_count(sender) > 0 && now_us() < patience) {
        look(sender, 10000);
    }
}

/* ---- the telling ---- */

static int by_latency(const void *left, const void *right)
{
    const struct sample *a = left;
    const struct sample *b = right;
    i64 difference = (a->ended_us - a->begun_us) - (b->ended_us - b->begun_us);
    return difference < 0 ? -1 : difference > 0;
}

static i64 latency_at(const struct sender *sender, double share)
{
    if (sender->sample_count == 0) {
        return 0;
    }
    size_t index = (size_t)((double)(sender->sample_count - 1) * share);
    return sender->samples[index].ended_us - sender->samples[index].begun_us;
}

static void write_log(const struct sender *sender)
{
    FILE *file = fopen(sender->log, "wb");
    if (file == NULL || fwrite(sender->samples, sizeof(*sender->samples), sender->sample_count,
                               file) != sender->sample_count) {
        die(sender->log);
    }
    fclose(file);
}

static int tell(struct sender *sender, double seconds)
{
    size_t within = 0;
    for (size_t i = 0; i < sender->sample_count; i++) {
        within += sender->samples[i].ended_us <= sender->end_us ? 1 : 0;
    }
    if (sender->log != NULL) {
        write_log(sender);
    }
    if (sender->sample_count > 0) {
        qsort(sender->samples, sender->sample_count, sizeof(*sender->samples), by_latency);
    }
    printf(
        "{\"answers\":%zu,\"per_second\":%.1f,\"refused\":%lld,\"broken\":%lld,\"unanswered\":%zu,"
        "\"p50_us\":%lld,\"p99_us\":%lld,\"p999_us\":%lld}\n",
        sender->sample_count, (double)within / seconds, (long long)sender->refused,
        (long long)sender->broken, busy_count(sender), (long long)latency_at(sender, 0.5),
        (long long)latency_at(sender, 0.99), (long long)latency_at(sender, 0.999));
    return sender->refused + sender->broken == 0 && sender->sample_count > 0 ? 0 : 1;
}

/* ---- set-up ---- */

static void read_targets(struct sender *sender, const char *path)
{
    FILE *file = fopen(path, "r");
    sender->targets = calloc(TARGETS_MAX, sizeof(*sender->targets));
    if (file == NULL || sender->targets == NULL) {
        die(path);
    }
    struct target *target = sender->targets;
    while (sender->target_count < TARGETS_MAX &&
           fscanf(file, "%127s %127s", target->path, target->key) == 2) {
        sender->target_count++;
        target++;
    }
    fclose(file);
    if (sender->target_count == 0) {
        die("no targets");
    }
}

static void read_body(struct sender *sender, const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &status) != 0) {
        die(path);
    }
    sender->body_size = (size_t)status.st_size;
    sender->body = malloc(sender->body_size + 1);
    if (sender->body == NULL ||
        read(fd, sender->body, sender->body_size) != (ssize_t)sender->body_size) {
        die(path);
    }
    close(fd);
}

static void read_option(struct sender *sender, const char *option)
{
    if (strncmp(option, "--rate=", 7) == 0) {
        sender->rate = strtod(option + 7, NULL);
    } else if (strncmp(option, "--ids=", 6) == 0) {
        sender->ids = option + 6;
    } else if (strncmp(option, "--duplicates=", 13) == 0) {
        sender->duplicates = strtoll(option + 13, NULL, 10) / 2 * 2;
    } else if (strncmp(option, "--log=", 6) == 0) {
        sender->log = option + 6;
    } else {
        die(option);
    }
}

int main(int argc, char **argv)
{
    struct sender sender = {.ids = "b"};
    if (argc < 6) {
        die("usage: send PORT TARGETS BODY CONNECTIONS SECONDS [options]");
    }
    sender.address = (struct sockaddr_in){.sin_family = AF_INET,
                                          .sin_port = htons((u16)strtoul(argv[1], NULL, 10)),
                                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    read_targets(&sender, argv[2]);
    read_body(&sender, argv[3]);
    sender.connection_count = strtoul(argv[4], NULL, 10);
    double seconds = strtod(argv[5], NULL);
    for (int i = 6; i < argc; i++) {
        read_option(&sender, argv[i]);
    }
    if (sender.connection_count == 0 || sender.connection_count > CONNECTIONS_MAX || seconds <= 0) {
        die("so many connections or seconds");
    }
    sender.epoll = epoll_create1(0);
    sender.connections = calloc(sender.connection_count, sizeof(*sender.connections));
    if (sender.epoll < 0 || sender.connections == NULL) {
        die("epoll");
    }
    for (size_t i = 0; i < sender.connection_count; i++) {
        connection_open(&sender, &sender.connections[i]);
    }
    run(&sender, seconds);
    return tell(&sender, seconds);
}
