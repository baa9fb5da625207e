/* Every malformed request gets its status, its code and, where it says so, a closed connection. */
#include "http_fixture.h"

#define H     "Host: a\r\n"
#define POST  "POST /echo HTTP/1.1\r\n" H
#define CHUNK POST "Transfer-Encoding: chunked\r\n\r\n"

struct malformed {
    const char *what;
    str request;
    int status;
    const char *code;
};

#define R(what, request, status, code) {what, STR_INIT(request), status, code}

static const struct malformed malformed[] = {
    R("length and chunked", POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", 400,
      "bad_request"),
    R("chunked and length", POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc", 400,
      "bad_request"),
    R("two lengths", POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400, "bad_request"),
    R("length +5", POST "Content-Length: +5\r\n\r\nabcde", 400, "bad_request"),
    R("length 0x5", POST "Content-Length: 0x5\r\n\r\nabcde", 400, "bad_request"),
    R("length 5,5", POST "Content-Length: 5,5\r\n\r\nabcde", 400, "bad_request"),
    R("length -5", POST "Content-Length: -5\r\n\r\nabcde", 400, "bad_request"),
    R("length empty", POST "Content-Length: \r\n\r\nabcde", 400, "bad_request"),
    R("length inside blank", POST "Content-Length: 5 5\r\n\r\nabcde", 400, "bad_request"),
    R("length of 20 digits", POST "Content-Length: 00000000000000000005\r\n\r\nabcde", 400,
      "bad_request"),
    R("length past 64 bits", POST "Content-Length: 99999999999999999999\r\n\r\n", 400,
      "bad_request"),
    R("length of 16 MiB and a byte", POST "Content-Length: 16777217\r\n\r\n", 413,
      "body_too_large"),
    R("no length", POST "\r\n", 411, "length_required"),
    R("no length, PUT", "PUT / HTTP/1.1\r\n" H "\r\n", 411, "length_required"),
    R("gzip, chunked", POST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501, "not_implemented"),
    R("chunked, gzip", POST "Transfer-Encoding: chunked, gzip\r\n\r\n", 501, "not_implemented"),
    R("identity", POST "Transfer-Encoding: identity\r\n\r\n", 501, "not_implemented"),
    R("xchunked", POST "Transfer-Encoding: xchunked\r\n\r\n", 501, "not_implemented"),
    R("chunked twice", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501,
      "not_implemented"),
    R("chunked on 1.0", "POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
      "bad_request"),
    R("chunk size 0x", CHUNK "0x5\r\nabcde\r\n0\r\n\r\n", 400, "bad_request"),
    R("chunk size signed", CHUNK "+5\r\nabcde\r\n0\r\n\r\n", 400, "bad_request"),
    R("chunk size of 9 digits", CHUNK "000000005\r\nabcde\r\n0\r\n\r\n", 400, "bad_request"),
    R("chunk size past 8 digits", CHUNK "100000000\r\nabcde\r\n0\r\n\r\n", 400, "bad_request"),
    R("last chunk of 9 digits", CHUNK "5\r\nabcde\r\n000000000\r\n\r\n", 400, "bad_request"),
    R("chunk size empty", CHUNK "\r\nabcde\r\n0\r\n\r\n", 400, "bad_request"),
    R("chunk size and blank", CHUNK "5 \r\nabcde\r\n0\r\n\r\n", 400, "bad_request"),
    R("chunk without CR", CHUNK "5\nabcde\r\n0\r\n\r\n", 400, "bad_request"),
    R("chunk too long for its size", CHUNK "5\r\nabcdef\r\n0\r\n\r\n", 400, "bad_request"),
    R("chunk of 17 MiB", CHUNK "1100000\r\n", 413, "body_too_large"),
    R("bare LF", "GET / HTTP/1.1\nHost: a\n\n", 400, "bad_request"),
    R("bare LF after a field", "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 400, "bad_request"),
    R("bare CR in a value", "GET / HTTP/1.1\r\n" H "X: a\rb\r\n\r\n", 400, "bad_request"),
    R("obs-fold", "GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n", 400, "bad_request"),
    R("blank before colon", "GET / HTTP/1.1\r\n" H "X : a\r\n\r\n", 400, "bad_request"),
    R("blank before the first field", "GET / HTTP/1.1\r\n X: a\r\n" H "\r\n", 400, "bad_request"),
    R("empty name", "GET / HTTP/1.1\r\n" H ": a\r\n\r\n", 400, "bad_request"),
    R("no colon", "GET / HTTP/1.1\r\n" H "X\r\n\r\n", 400, "bad_request"),
    R("name is no token", "GET / HTTP/1.1\r\n" H "X(y): a\r\n\r\n", 400, "bad_request"),
    R("NUL in a value", "GET / HTTP/1.1\r\n" H "X: a\0b\r\n\r\n", 400, "bad_request"),
    R("control byte in a value", "GET / HTTP/1.1\r\n" H "X: a\001b\r\n\r\n", 400, "bad_request"),
    R("DEL in a value", "GET / HTTP/1.1\r\n" H "X: a\177b\r\n\r\n", 400, "bad_request"),
    R("no Host", "GET / HTTP/1.1\r\n\r\n", 400, "bad_request"),
    R("empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400, "bad_request"),
    R("two Hosts", "GET / HTTP/1.1\r\n" H H "\r\n", 400, "bad_request"),
    R("Host with a slash", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "bad_request"),
    R("two Authorizations",
      POST "Authorization: a\r\nAuthorization: b\r\nContent-Length: 0\r\n\r\n", 400, "bad_request"),
    R("two Content-Types", POST "Content-Type: a\r\ncontent-type: a\r\nContent-Length: 0\r\n\r\n",
      400, "bad_request"),
    R("two Idempotency-Keys",
      POST "Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 0\r\n\r\n", 400,
      "bad_idempotency_key"),
    R("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "http_version_unsupported"),
    R("HTTP/2.0", "GET / HTTP/2.0\r\n" H "\r\n", 505, "http_version_unsupported"),
    R("HTTP/1.2", "GET / HTTP/1.2\r\n" H "\r\n", 505, "http_version_unsupported"),
    R("HTTP/0.9", "GET / HTTP/0.9\r\n" H "\r\n", 505, "http_version_unsupported"),
    R("no version", "GET /\r\n\r\n", 505, "http_version_unsupported"),
    R("http/1.1", "GET / http/1.1\r\n" H "\r\n", 400, "bad_request"),
    R("unknown method", "BREW /pot HTTP/1.1\r\n" H "\r\n", 405, "method_not_allowed"),
    R("CONNECT", "CONNECT a:1 HTTP/1.1\r\n" H "\r\n", 405, "method_not_allowed"),
    R("TLS on a plain port", "\026\003\001\002\000\001\000\001\374\003\003", 400, "bad_request"),
    R("other Expect", POST "Expect: 200-ok\r\nContent-Length: 3\r\n\r\n", 417,
      "expectation_failed"),
    R("encoded slash", "GET /a%2Fb HTTP/1.1\r\n" H "\r\n", 400, "bad_request"),
    R("encoded slash in lower case", "GET /a%2fb HTTP/1.1\r\n" H "\r\n", 400, "bad_request"),
    R("NUL in the path", "GET /a%00 HTTP/1.1\r\n" H "\r\n", 400, "bad_request"),
    R("dot segment", "GET /a/../b HTTP/1.1\r\n" H "\r\n", 400, "bad_request"),
    R("encoded dot segment", "GET /a/%2e%2E HTTP/1.1\r\n" H "\r\n", 400, "bad_request"),
    R("single dot", "GET /./b HTTP/1.1\r\n" H "\r\n", 400, "bad_request"),
    R("half an escape", "GET /a%2 HTTP/1.1\r\n" H "\r\n", 400, "bad_request"),
    R("no hex in an escape", "GET /a%zz HTTP/1.1\r\n" H "\r\n", 400, "bad_request"),
    R("half an escape in the query", "GET /a?b=%4 HTTP/1.1\r\n" H "\r\n", 400, "bad_request"),
    R("path is not UTF-8", "GET /a%ff HTTP/1.1\r\n" H "\r\n", 400, "bad_request"),
    R("fragment", "GET /a#b HTTP/1.1\r\n" H "\r\n", 400, "bad_request"),
    R("blank in the target", "GET /a b HTTP/1.1\r\n" H "\r\n", 400, "bad_request"),
    R("asterisk for GET", "GET * HTTP/1.1\r\n" H "\r\n", 400, "bad_request"),
};

static void assert_refused(const struct malformed *row)
{
    if (answer.status != row->status) {
        fail_msg("%s: status %d, not %d: %.*s", row->what, answer.status, row->status,
                 STR_ARG(answer.body));
    }
    char member[80];
    (void)snprintf(member, sizeof(member), "{\"error\":{\"code\":\"%s\",\"message\":\"", row->code);
    if (!str_starts(answer.body, str_from(member))) {
        fail_msg("%s: body %.*s", row->what, STR_ARG(answer.body));
    }
    assert_true(body_has("\"retryable\":"));
    assert_true(body_has("\"hint\":"));
    assert_true(str_equal(answer_header(&answer, STR("connection")), STR("close")));
    assert_true(answer_header(&answer, STR("x-request-id")).size > 8);
    assert_int_equal(answer_header(&answer, STR("date")).size, 29);
}

static void malformed_request_is_refused_and_closed(void **state)
{
    struct app *app = *state;
    for (size_t index = 0; index < ARRAY_COUNT(malformed); index++) {
        int fd = client_connect(app);
        client_send(fd, malformed[index].request);
        client_read(fd, &answer);
        assert_refused(&malformed[index]);
        if (!client_ended(fd, &answer) || answer.reset) {
            fail_msg("%s: not closed in good order", malformed[index].what);
        }
        close(fd);
    }
}

static void malformed_request_in_single_bytes_is_refused_too(void **state)
{
    struct app *app = *state;
    for (size_t index = 0; index < ARRAY_COUNT(malformed); index++) {
        int fd = client_connect(app);
        str request = malformed[index].request;
        for (size_t at = 0; at < request.size; at++) {
            if (!client_try_send(fd, str_slice(request, at, at + 1))) {
                break;
            }
        }
        client_read(fd, &answer);
        assert_refused(&malformed[index]);
        close(fd);
    }
}

static void malformed_request_never_reaches_the_application(void **state)
{
    struct app *app = *state;
    for (size_t index = 0; index < ARRAY_COUNT(malformed); index++) {
        client_ask(app, malformed[index].request, &answer);
    }
    assert_int_equal(atomic_load(&app->completes), 0);
    app_wait_active(app, 0);
    assert_int_equal(atomic_load(&app->heads), atomic_load(&app->gones));
}

/* ---- sizes ---- */

static str request_of(struct app *app, const char *before, size_t filler, const char *after)
{
    buf out = buf_create(app->arena, 1024, 4 * MIB);
    buf_append(&out, str_from(before));
    for (size_t at = 0; at < filler; at++) {
        buf_append_byte(&out, 'x');
    }
    buf_append(&out, str_from(after));
    assert_true(buf_ok(&out));
    return buf_str(&out);
}

static void target_over_its_limit_is_414(void **state)
{
    struct app *app = *state;
    client_ask(app, request_of(app, "GET /", 8191, " HTTP/1.1\r\n" H "\r\n"), &answer);
    assert_int_equal(answer.status, 200);
    client_ask(app, request_of(app, "GET /", 8192, " HTTP/1.1\r\n" H "\r\n"), &answer);
    assert_int_equal(answer.status, 414);
    assert_true(body_has("\"uri_too_long\""));
}

static void head_over_its_limit_is_431(void **state)
{
    struct app *app = *state;
    const char *before = "GET / HTTP/1.1\r\n" H "X: ";
    size_t room = 16 * KIB - strlen(before) - 4;
    client_ask(app, request_of(app, before, room, "\r\n\r\n"), &answer);
    assert_int_equal(answer.status, 200);
    client_ask(app, request_of(app, before, room + 1, "\r\n\r\n"), &answer);
    assert_int_equal(answer.status, 431);
    assert_true(body_has("\"headers_too_large\""));
    client_ask(app, request_of(app, before, 200 * KIB, "\r\n\r\n"), &answer);
    assert_int_equal(answer.status, 431);
}

static void too_many_fields_are_431(void **state)
{
    struct app *app = *state;
    for (int count = 63; count <= 64; count++) {
        buf out = buf_create(app->arena, 1024, MIB);
        buf_append(&out, STR("GET / HTTP/1.1\r\n" H));
        for (int index = 0; index < count; index++) {
            buf_append_format(&out, "X-%d: y\r\n", index);
        }
        buf_append(&out, STR("\r\n"));
        client_ask(app, buf_str(&out), &answer);
        assert_int_equal(answer.status, count == 63 ? 200 : 431);
    }
}

static void long_chunk_lines_and_trailers_are_refused(void **state)
{
    struct app *app = *state;
    client_ask(app, request_of(app, CHUNK "5;a=", 200, "\r\nabcde\r\n0\r\n\r\n"), &answer);
    assert_int_equal(answer.status, 200);
    client_ask(app, request_of(app, CHUNK "5;a=", 300, "\r\nabcde\r\n0\r\n\r\n"), &answer);
    assert_int_equal(answer.status, 400);
    client_ask(app, request_of(app, CHUNK "5;a=", 100000, "\r\nabcde\r\n0\r\n\r\n"), &answer);
    assert_int_equal(answer.status, 400);
    client_ask(app, request_of(app, CHUNK "5\r\nabcde\r\n0\r\nX: ", 4000, "\r\n\r\n"), &answer);
    assert_int_equal(answer.status, 200);
    assert_body(STR("abcde"));
    client_ask(app, request_of(app, CHUNK "5\r\nabcde\r\n0\r\nX: ", 4100, "\r\n\r\n"), &answer);
    assert_int_equal(answer.status, 400);
    client_ask(app, request_of(app, CHUNK "5\r\nabcde\r\n0\r\nX: ", 200000, "\r\n\r\n"), &answer);
    assert_int_equal(answer.status, 400);
}

static void endless_zeros_of_a_chunk_size_are_refused(void **state)
{
    struct app *app = *state;
    str zeros = request_of(app, "", 1000, "");
    int fd = client_connect(app);
    client_send(fd, STR(CHUNK));
    char *digits = arena_alloc(app->arena, zeros.size);
    memset(digits, '0', zeros.size);
    while (client_try_send(fd, (str){digits, zeros.size})) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (poll(&ready, 1, 0) == 1) {
            break;
        }
    }
    client_read(fd, &answer);
    assert_int_equal(answer.status, 400);
    close(fd);
}

/* The client writes all of its 17 MiB before it reads, and still sees the answer. */
static void large_body_is_refused_at_once_and_the_answer_is_seen(void **state)
{
    struct app *app = *state;
    static char filler[MIB];
    int fd = client_connect(app);
    client_send(fd, STR(POST "Content-Length: 17825792\r\n\r\n"));
    bool alive = true;
    for (int index = 0; index < 17 && alive; index++) {
        alive = client_try_send(fd, (str){filler, sizeof(filler)});
    }
    assert_true(alive);
    client_read(fd, &answer);
    assert_int_equal(answer.status, 413);
    assert_int_equal(atomic_load(&app->heads), 0);
    close(fd);
}

static void chunked_body_passing_the_limit_is_refused(void **state)
{
    struct app *app = *state;
    static char filler[MIB + 2];
    memcpy(filler + MIB, "\r\n", 2);
    int fd = client_connect(app);
    client_send(fd, STR(CHUNK));
    for (int index = 0; index < 17; index++) {
        client_send(fd, STR("100000\r\n"));
        client_send(fd, (str){filler, sizeof(filler)});
    }
    client_read(fd, &answer);
    assert_int_equal(answer.status, 413);
    assert_int_equal(atomic_load(&app->completes), 0);
    close(fd);
    app_wait(app, &app->gones, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, app_setup, app_teardown)
    const struct CMUnitTest tests[] = {
        T(malformed_request_is_refused_and_closed),
        T(malformed_request_in_single_bytes_is_refused_too),
        T(malformed_request_never_reaches_the_application),
        T(target_over_its_limit_is_414),
        T(head_over_its_limit_is_431),
        T(too_many_fields_are_431),
        T(long_chunk_lines_and_trailers_are_refused),
        T(endless_zeros_of_a_chunk_size_are_refused),
        T(large_body_is_refused_at_once_and_the_answer_is_seen),
        T(chunked_body_passing_the_limit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
