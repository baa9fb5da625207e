#include "io/http_tls.h"

#include "base/arena.h"
#include "base/assert.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

/* Both names stand for OpenSSL's own objects, so that no other file sees its headers. */
static SSL_CTX *context_of(struct http_tls *tls)
{
    return (SSL_CTX *)(void *)tls;
}

static SSL *ssl_of(struct http_tls_session *session)
{
    return (SSL *)(void *)session;
}

/* Of what a client offers, only http/1.1 is taken; a client that offers nothing is served too. */
static int alpn_choose(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                       const unsigned char *offered, unsigned int offered_size, void *context)
{
    static const unsigned char known[] = "\x08http/1.1";
    (void)ssl;
    (void)context;
    unsigned char *chosen = NULL;
    if (SSL_select_next_proto(&chosen, out_size, known, sizeof(known) - 1, offered, offered_size) !=
        OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static err tls_failed(struct error *error, const char *what, str file)
{
    char reason[160] = "unknown reason";
    unsigned long code = ERR_get_error();
    if (code != 0) {
        ERR_error_string_n(code, reason, sizeof(reason));
    }
    ERR_clear_error();
    return error_set(error, INVALID, ERROR_INVALID_CONFIG, "%s %.*s: %s", what, STR_ARG(file),
                     reason);
}

err http_tls_create(struct arena *arena, str certificate_file, str key_file,
                    struct http_tls **out_tls, struct error *error)
{
    str certificate = str_copy(arena, certificate_file);
    str key = str_copy(arena, key_file);
    if (certificate.data == NULL || key.data == NULL) {
        return error_memory(error);
    }
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (context == NULL) {
        return tls_failed(error, "TLS cannot be set up for", certificate);
    }
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(context, alpn_choose, NULL);
    if (SSL_CTX_use_certificate_chain_file(context, certificate.data) != 1) {
        SSL_CTX_free(context);
        return tls_failed(error, "the certificate cannot be read:", certificate);
    }
    if (SSL_CTX_use_PrivateKey_file(context, key.data, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
        SSL_CTX_free(context);
        return tls_failed(error, "the certificate's key cannot be used:", key);
    }
    *out_tls = (struct http_tls *)(void *)context;
    return OK;
}

void http_tls_destroy(struct http_tls *tls)
{
    SSL_CTX_free(context_of(tls));
}

struct http_tls_session *http_tls_open(struct http_tls *tls, int fd)
{
    SSL *ssl = SSL_new(context_of(tls));
    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1) {
        SSL_free(ssl);
        ERR_clear_error();
        return NULL;
    }
    SSL_set_accept_state(ssl);
    return (struct http_tls_session *)(void *)ssl;
}

void http_tls_end(struct http_tls_session *session)
{
    ERR_clear_error();
    (void)SSL_shutdown(ssl_of(session));
    ERR_clear_error();
}

void http_tls_close(struct http_tls_session *session)
{
    SSL_free(ssl_of(session));
}

static enum http_transfer transfer_of(SSL *ssl, int result)
{
    switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_NONE:
        return HTTP_TRANSFER_DONE;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return HTTP_TRANSFER_WAIT;
    case SSL_ERROR_ZERO_RETURN:
        return HTTP_TRANSFER_END;
    default:
        ERR_clear_error();
        return HTTP_TRANSFER_BROKEN;
    }
}

enum http_transfer http_tls_handshake(struct http_tls_session *session)
{
    ERR_clear_error();
    return transfer_of(ssl_of(session), SSL_do_handshake(ssl_of(session)));
}

enum http_transfer http_tls_read(struct http_tls_session *session, char *bytes, size_t size,
                                 size_t *out_read)
{
    ERR_clear_error();
    return transfer_of(ssl_of(session), SSL_read_ex(ssl_of(session), bytes, size, out_read));
}

enum http_transfer http_tls_write(struct http_tls_session *session, str bytes, size_t *out_written)
{
    assert(bytes.size > 0);
    ERR_clear_error();
    return transfer_of(ssl_of(session),
                       SSL_write_ex(ssl_of(session), bytes.data, bytes.size, out_written));
}
