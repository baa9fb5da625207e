/* http_tls: TLS 1.2 and 1.3 for the server's connections, by OpenSSL on non-blocking sockets.
 *
 * One context for all loops, made at start from PEM files and read-only afterwards; one session a
 * connection, owned by its loop. The threads that use it must have SIGPIPE blocked. */
#ifndef LHBOX_IO_HTTP_TLS_H
#define LHBOX_IO_HTTP_TLS_H

#include "base/error.h"

struct http_tls;         /* SSL_CTX */
struct http_tls_session; /* SSL */

/* What a read or write on a socket came to. */
enum http_transfer {
    HTTP_TRANSFER_DONE,   /* at least a byte, or the handshake is complete */
    HTTP_TRANSFER_WAIT,   /* not now */
    HTTP_TRANSFER_END,    /* the peer has ended its side in good order */
    HTTP_TRANSFER_BROKEN, /* the connection is dead */
};

MUST_USE err http_tls_create(struct arena *arena, str certificate_file, str key_file,
                             struct http_tls **out_tls, struct error *error);
void http_tls_destroy(struct http_tls *tls); /* NULL is allowed */
/* NULL when OpenSSL has no memory. */
struct http_tls_session *http_tls_open(struct http_tls *tls, int fd);
/* Says goodbye when the session is in good order. */
void http_tls_end(struct http_tls_session *session);
void http_tls_close(struct http_tls_session *session); /* NULL is allowed */
enum http_transfer http_tls_handshake(struct http_tls_session *session);
enum http_transfer http_tls_read(struct http_tls_session *session, char *bytes, size_t size,
                                 size_t *out_read);
enum http_transfer http_tls_write(struct http_tls_session *session, str bytes, size_t *out_written);

#endif
