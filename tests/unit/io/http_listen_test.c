/* Limits over all connections, addresses, TLS. */
#include "http_fixture.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#define H "Host: a\r\n"

/* ---- limits ---- */

static void bodies_over_the_budget_of_all_are_503(void **state)
{
    struct app *app = app_create();
    app->options.bodies_bytes_max = 1000;
    app_start(app);
    *state = app;
    int held = client_connect(app);
    client_send(held, STR("POST /echo HTTP/1.1\r\n" H "Content-Length: 900\r\n\r\na"));
    app_wait(app, &app->pieces, 1);
    client_ask(app, STR("POST /echo HTTP/1.1\r\n" H "Content-Length: 200\r\n\r\n"), &answer);
    assert_int_equal(answer.status, 503);
    assert_true(body_has("\"overloaded\""));
    assert_true(answer_header(&answer, STR("retry-after")).size > 0);
    app_wait_active(app, 1);
    client_ask(app,
               STR("POST /echo HTTP/1.1\r\n" H "Content-Length: 100\r\n\r\n1234567890"
                   "12345678901234567890123456789012345678901234567890"
                   "1234567890123456789012345678901234567890"),
               &answer);
    assert_int_equal(answer.status, 200);
    close(held);
    app_wait_active(app, 0);
    client_ask(
        app,
        STR("POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        &answer);
    assert_int_equal(answer.status, 200);
}

static void connections_over_their_limit_are_turned_away(void **state)
{
    struct app *app = app_create();
    app->options.connections_max = 3;
    app_start(app);
    *state = app;
    int kept[3];
    for (int index = 0; index < 3; index++) {
        kept[index] = client_connect(app);
        client_send(kept[index], STR("GET /x HTTP/1.1\r\n" H "\r\n"));
        client_read(kept[index], &answer);
        assert_int_equal(answer.status, 200);
    }
    int fd = client_connect(app);
    client_read(fd, &answer);
    assert_int_equal(answer.status, 503);
    assert_body(STR("{\"error\":{\"code\":\"overloaded\",\"message\":\"too many connections\","
                    "\"hint\":\"\",\"retryable\":true}}"));
    assert_true(client_ended(fd, &answer));
    close(fd);
    for (int index = 0; index < 3; index++) {
        close(kept[index]);
    }
}

static void thousand_connections_are_served_at_once(void **state)
{
    struct app *app = *state;
    enum { COUNT = 1000 };
    static int fds[COUNT];
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 2 * COUNT + 100) {
        skip();
    }
    for (int index = 0; index < COUNT; index++) {
        fds[index] = client_connect(app);
        client_send(fds[index], STR("POST /park HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nhi"));
    }
    for (int index = 0; index < COUNT; index++) {
        (void)app_answer(app_take_parked(app), 202, STR("{}"));
    }
    for (int index = 0; index < COUNT; index++) {
        client_read(fds[index], &answer);
        assert_int_equal(answer.status, 202);
        client_send(fds[index], STR("POST /echo HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nho"));
    }
    for (int index = 0; index < COUNT; index++) {
        client_read(fds[index], &answer);
        assert_body(STR("ho"));
        close(fds[index]);
    }
    app_wait(app, &app->gones, 2 * COUNT);
}

/* With no descriptor left the server stops accepting for a while, makes room, and comes back. */
static void lack_of_descriptors_passes(void **state)
{
    struct app *app = *state;
    struct rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    int idle = client_connect(app);
    client_send(idle, STR("GET /x HTTP/1.1\r\n" H "\r\n"));
    client_read(idle, &answer);
    int waiting = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* Every number below `next` is taken. */
    int next = fcntl(idle, F_DUPFD_CLOEXEC, 0);
    close(next);
    struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((u16)http_server_port(app->server)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    assert_int_equal(connect(waiting, (struct sockaddr *)&address, sizeof(address)), 0);
    /* It is closed unanswered, by help of the spare descriptor. */
    assert_true(client_ended(waiting, &answer));
    setrlimit(RLIMIT_NOFILE, &before);
    close(waiting);
    close(idle);
    client_ask(app, STR("GET /y HTTP/1.1\r\n" H "\r\n"), &answer);
    assert_body(STR("/y"));
}

/* ---- addresses ---- */

static err start_at(str address, i32 port, struct error *error)
{
    struct app *app = app_create();
    app->options.address = address;
    app->options.port = port;
    const struct http_handlers handlers = {app_head, app_body, app_complete, app_gone, app};
    err started = http_server_start(app->arena, &app->options, &handlers, seam_system(),
                                    &app->server, error);
    if (started == OK) {
        http_server_stop(app->server);
    }
    arena_destroy(app->arena);
    return started;
}

static void second_server_on_a_port_is_refused(void **state)
{
    struct app *app = *state;
    struct error error = {0};
    assert_int_equal(start_at(STR("127.0.0.1"), http_server_port(app->server), &error), CONFLICT);
    assert_true(error.message[0] != 0);
}

static void address_that_is_none_is_refused(void **state)
{
    (void)state;
    assert_int_equal(start_at(STR("nowhere"), 0, NULL), INVALID);
    assert_int_equal(start_at(STR("127.0.0.1"), 65536, NULL), INVALID);
    assert_int_equal(start_at(STR("unix:"), 0, NULL), INVALID);
    assert_int_equal(start_at(STR("unix:/no/such/folder/s"), 0, NULL), IO);
    assert_int_equal(start_at(STR("203.0.113.1"), 0, NULL), IO);
}

static void unix_socket_serves_its_owner(void **state)
{
    char path[] = "/tmp/lhbox-http-XXXXXX";
    assert_non_null(mkdtemp(path));
    struct app *app = app_create();
    app->options.address = str_format(app->arena, "unix:%s/s", path);
    app_start(app);
    *state = app;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", path);
    struct stat status;
    assert_int_equal(stat(address.sun_path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    for (int round = 0; round < 10; round++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        client_send(fd, STR("POST /echo HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc"));
        client_read(fd, &answer);
        assert_body(STR("abc"));
        close(fd);
    }
    assert_int_equal(start_at(app->options.address, 0, NULL), CONFLICT);
    app_stop(app);
    assert_int_equal(stat(address.sun_path, &status), -1);
    rmdir(path);
    *state = NULL;
}

/* ---- TLS ---- */

static void write_pem(const char *path, EVP_PKEY *key, X509 *certificate)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    if (certificate != NULL) {
        assert_int_equal(PEM_write_X509(file, certificate), 1);
    } else {
        assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    }
    fclose(file);
}

static void make_certificate(const char *certificate_path, const char *key_path)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    assert_non_null(key);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1,
                               0);
    X509_set_issuer_name(certificate, name);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    write_pem(certificate_path, key, certificate);
    write_pem(key_path, key, NULL);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

struct tls_app {
    struct app *app;
    char folder[32];
    char certificate[64];
    char key[64];
};

static void tls_app_open(struct tls_app *tls)
{
    memcpy(tls->folder, "/tmp/lhbox-tls-XXXXXX", 22);
    assert_non_null(mkdtemp(tls->folder));
    (void)snprintf(tls->certificate, sizeof(tls->certificate), "%s/c", tls->folder);
    (void)snprintf(tls->key, sizeof(tls->key), "%s/k", tls->folder);
    make_certificate(tls->certificate, tls->key);
    tls->app = app_create();
    tls->app->options.tls_certificate_file = str_from(tls->certificate);
    tls->app->options.tls_key_file = str_from(tls->key);
    app_start(tls->app);
}

static void tls_app_close(struct tls_app *tls)
{
    app_stop(tls->app);
    unlink(tls->certificate);
    unlink(tls->key);
    rmdir(tls->folder);
}

/* Reads until the answer's body ends in `last`. */
static void tls_read_until(SSL *ssl, char last)
{
    answer.size = 0;
    while (answer.size == 0 || answer.bytes[answer.size - 1] != last) {
        size_t got = 0;
        assert_int_equal(
            SSL_read_ex(ssl, answer.bytes + answer.size, ANSWER_MAX - answer.size, &got), 1);
        answer.size += got;
    }
}

static void tls_ask(SSL *ssl, str request, char last)
{
    size_t written = 0;
    assert_int_equal(SSL_write_ex(ssl, request.data, request.size, &written), 1);
    tls_read_until(ssl, last);
    assert_true(str_starts((str){answer.bytes, answer.size}, STR("HTTP/1.1 200 OK\r\n")));
}

static void tls_serves_large_and_small_requests(void **state)
{
    (void)state;
    struct tls_app tls;
    tls_app_open(&tls);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    int fd = client_connect(tls.app);
    SSL_set_fd(ssl, fd);
    assert_int_equal(SSL_set_alpn_protos(ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12), 0);
    assert_int_equal(SSL_connect(ssl), 1);
    const unsigned char *chosen = NULL;
    unsigned int chosen_size = 0;
    SSL_get0_alpn_selected(ssl, &chosen, &chosen_size);
    assert_true(str_equal((str){(const char *)chosen, chosen_size}, STR("http/1.1")));
    for (int round = 0; round < 20; round++) {
        tls_ask(ssl, STR("POST /echo HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nab!"), '!');
    }
    enum { SIZE = 500 * 1000 };
    buf large = buf_create(tls.app->arena, SIZE + 200, SIZE + 200);
    buf_append_format(&large, "POST /echo HTTP/1.1\r\n" H "Content-Length: %d\r\n\r\n", SIZE);
    for (size_t at = 0; at < SIZE - 1; at++) {
        buf_append_byte(&large, 'x');
    }
    buf_append_byte(&large, '!');
    tls_ask(ssl, buf_str(&large), '!');
    assert_true(answer.size > SIZE);
    SSL_shutdown(ssl);
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(fd);
    tls_app_close(&tls);
}

static void tls_refuses_old_versions_and_plain_text(void **state)
{
    (void)state;
    struct tls_app tls;
    tls_app_open(&tls);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_max_proto_version(context, TLS1_1_VERSION);
    SSL *ssl = SSL_new(context);
    int fd = client_connect(tls.app);
    SSL_set_fd(ssl, fd);
    assert_int_not_equal(SSL_connect(ssl), 1);
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(fd);
    fd = client_connect(tls.app);
    client_send(fd, STR("GET / HTTP/1.1\r\n" H "\r\n"));
    answer.size = 0;
    while (client_more(fd, &answer)) {
        assert_true(answer.size < 100); /* at most an alert */
    }
    close(fd);
    assert_int_equal(atomic_load(&tls.app->heads), 0);
    tls_app_close(&tls);
}

static void tls_without_its_files_does_not_start(void **state)
{
    (void)state;
    struct app *app = app_create();
    app->options.tls_certificate_file = STR("/no/such/certificate");
    app->options.tls_key_file = STR("/no/such/key");
    const struct http_handlers handlers = {app_head, app_body, app_complete, app_gone, app};
    struct error error = {0};
    assert_int_equal(http_server_start(app->arena, &app->options, &handlers, seam_system(),
                                       &app->server, &error),
                     INVALID);
    assert_int_equal(error.code, ERROR_INVALID_CONFIG);
    assert_non_null(strstr(error.message, "/no/such/certificate"));
    arena_destroy(app->arena);
}

int main(void)
{
#define T(name)   cmocka_unit_test_setup_teardown(name, app_setup, app_teardown)
#define OWN(name) cmocka_unit_test_setup_teardown(name, NULL, own_teardown)
    const struct CMUnitTest tests[] = {
        OWN(bodies_over_the_budget_of_all_are_503),
        OWN(connections_over_their_limit_are_turned_away),
        T(thousand_connections_are_served_at_once),
        T(lack_of_descriptors_passes),
        T(second_server_on_a_port_is_refused),
        OWN(address_that_is_none_is_refused),
        OWN(unix_socket_serves_its_owner),
        OWN(tls_serves_large_and_small_requests),
        OWN(tls_refuses_old_versions_and_plain_text),
        OWN(tls_without_its_files_does_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
