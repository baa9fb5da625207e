#include "io/http_connection.h"

#include "base/assert.h"

#include <errno.h>
#include <sys/uio.h>

static const char continue_text[] = "HTTP/1.1 100 Continue\r\n\r\n";

enum { TLS_RECORD_BYTES = 16 * KIB };

static enum http_transfer failure_of(int number)
{
    return number == EAGAIN || number == EINTR ? HTTP_TRANSFER_WAIT : HTTP_TRANSFER_BROKEN;
}

static enum http_transfer plain_read(struct http_connection *connection, char *bytes, size_t size,
                                     size_t *out_read)
{
    ssize_t got = recv(connection->fd, bytes, size, 0);
    if (got > 0) {
        /* Fewer than asked for: there is no more now, and the next byte makes an event. An end that
         * was told already makes none. */
        connection->readable = (size_t)got == size || connection->hangup;
        *out_read = (size_t)got;
        return HTTP_TRANSFER_DONE;
    }
    return got == 0 ? HTTP_TRANSFER_END : failure_of(errno);
}

enum http_transfer http_transfer_read(struct http_connection *connection, char *bytes, size_t size,
                                      size_t *out_read)
{
    if (!connection->readable) {
        return connection->ended ? HTTP_TRANSFER_END : HTTP_TRANSFER_WAIT;
    }
    enum http_transfer result = connection->tls != NULL
                                    ? http_tls_read(connection->tls, bytes, size, out_read)
                                    : plain_read(connection, bytes, size, out_read);
    if (result != HTTP_TRANSFER_DONE) {
        connection->readable = false;
    }
    if (result == HTTP_TRANSFER_END) {
        connection->ended = true;
    }
    return result;
}

static enum http_transfer plain_write(struct http_connection *connection, const struct iovec *parts,
                                      size_t count, size_t *out_written)
{
    union {
        const struct iovec *given;
        struct iovec *asked; /* sendmsg does not write there */
    } vector = {.given = parts};
    struct msghdr message = {.msg_iov = vector.asked, .msg_iovlen = count};
    ssize_t sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL);
    if (sent < 0) {
        return failure_of(errno);
    }
    *out_written = (size_t)sent;
    return HTTP_TRANSFER_DONE;
}

/* Both parts in one record where they fit. */
static enum http_transfer tls_write(struct http_connection *connection, const struct iovec *parts,
                                    size_t count, size_t *out_written)
{
    str bytes = {parts[0].iov_base, parts[0].iov_len};
    if (count > 1 && bytes.size < TLS_RECORD_BYTES) {
        char *scratch = connection->loop->scratch;
        size_t room = TLS_RECORD_BYTES - bytes.size;
        size_t second = parts[1].iov_len < room ? parts[1].iov_len : room;
        memcpy(scratch, bytes.data, bytes.size);
        memcpy(scratch + bytes.size, parts[1].iov_base, second);
        bytes = (str){scratch, bytes.size + second};
    }
    return http_tls_write(connection->tls, bytes, out_written);
}

static enum http_transfer transfer_write(struct http_connection *connection,
                                         const struct iovec *parts, size_t count,
                                         size_t *out_written)
{
    if (!connection->writable) {
        return HTTP_TRANSFER_WAIT;
    }
    enum http_transfer result = connection->tls != NULL
                                    ? tls_write(connection, parts, count, out_written)
                                    : plain_write(connection, parts, count, out_written);
    if (result != HTTP_TRANSFER_DONE) {
        connection->writable = false;
    }
    return result;
}

/* An iovec over bytes that are only read. */
static struct iovec part_of(str bytes)
{
    union {
        const char *given;
        void *asked;
    } base = {.given = bytes.data};
    return (struct iovec){base.asked, bytes.size};
}

enum http_transfer http_transfer_answer(struct http_connection *connection)
{
    str lead = {connection->lead, connection->lead_size};
    str rest = connection->request->answer.rest;
    size_t size = lead.size + rest.size;
    while (connection->sent < size) {
        struct iovec parts[2];
        size_t count = 0;
        if (connection->sent < lead.size) {
            parts[count++] = part_of(str_slice(lead, connection->sent, lead.size));
        }
        size_t rest_sent = connection->sent < lead.size ? 0 : connection->sent - lead.size;
        parts[count++] = part_of(str_slice(rest, rest_sent, rest.size));
        size_t written = 0;
        enum http_transfer result = transfer_write(connection, parts, count, &written);
        if (result != HTTP_TRANSFER_DONE) {
            return result;
        }
        connection->sent += written;
    }
    return HTTP_TRANSFER_DONE;
}

enum http_transfer http_transfer_continue(struct http_connection *connection)
{
    str text = {continue_text, sizeof(continue_text) - 1};
    while (connection->continue_sent < text.size) {
        struct iovec part = part_of(str_slice(text, connection->continue_sent, text.size));
        size_t written = 0;
        enum http_transfer result = transfer_write(connection, &part, 1, &written);
        if (result != HTTP_TRANSFER_DONE) {
            return result;
        }
        connection->continue_sent += written;
    }
    return HTTP_TRANSFER_DONE;
}

enum http_transfer http_transfer_discard(struct http_connection *connection)
{
    ssize_t got = recv(connection->fd, connection->loop->buffer, HTTP_BUFFER_SIZE, 0);
    if (got > 0) {
        return HTTP_TRANSFER_DONE;
    }
    return got == 0 ? HTTP_TRANSFER_END : failure_of(errno);
}
