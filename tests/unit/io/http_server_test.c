#include "http_fixture.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#define H "Host: a\r\n"

/* ---- requests and answers ---- */

static void answer_has_what_every_answer_has(void **state)
{
    client_ask(*state, STR("GET /some/path?x=1 HTTP/1.1\r\n" H "\r\n"), &answer);
    assert_int_equal(answer.status, 200);
    assert_body(STR("/some/path"));
    assert_true(str_equal(answer_header(&answer, STR("content-type")), STR("application/json")));
    assert_true(answer_header(&answer, STR("x-request-id")).size > 8);
    str date = answer_header(&answer, STR("date"));
    assert_int_equal(date.size, 29);
    assert_true(str_ends(date, STR(" GMT")));
    assert_null(answer_header(&answer, STR("connection")).data);
}

static void head_answer_has_the_length_and_no_body(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    client_send(fd, STR("HEAD /abc HTTP/1.1\r\n" H "\r\nGET /d HTTP/1.1\r\n" H "\r\n"));
    answer.size = 0;
    client_read_kind(fd, &answer, true);
    assert_int_equal(answer.status, 200);
    assert_true(str_equal(answer_header(&answer, STR("content-length")), STR("4")));
    client_read_next(fd, &answer);
    assert_body(STR("/d"));
    close(fd);
}

static void body_by_length_and_in_chunks_arrives_whole(void **state)
{
    client_ask(*state, STR("POST /echo HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nabcde"), &answer);
    assert_body(STR("abcde"));
    client_ask(*state,
               STR("POST /echo HTTP/1.1\r\n" H "transfer-encoding: Chunked\r\n\r\n"
                   "3\r\nabc\r\nA;x=y;z=\"q\"\r\n0123456789\r\n0\r\nX-T: a\r\nX-U: b\r\n\r\n"),
               &answer);
    assert_body(STR("abc0123456789"));
    client_ask(*state, STR("POST /echo HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n"), &answer);
    assert_int_equal(answer.status, 200);
    assert_body(STR(""));
    client_ask(*state,
               STR("POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
               &answer);
    assert_int_equal(answer.status, 200);
    assert_body(STR(""));
}

/* Two requests on one connection, cut in two at every byte. */
static void request_cut_at_every_byte_is_the_same_request(void **state)
{
    struct app *app = *state;
    static const str request = STR_INIT(
        "POST /echo HTTP/1.1\r\nHost: a\r\nX-Empty:\r\nX-Blank:  v  \r\n"
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;e=f\r\nde\r\n0\r\nX: y\r\n\r\n"
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nwxyz");
    for (size_t cut = 1; cut < request.size; cut++) {
        int fd = client_connect(app);
        client_send(fd, str_slice(request, 0, cut));
        int completes = atomic_load(&app->completes);
        (void)completes;
        struct pollfd nothing = {.fd = fd, .events = POLLIN};
        (void)poll(&nothing, 1, cut % 16 == 0 ? 2 : 0);
        client_send(fd, str_slice(request, cut, request.size));
        client_read(fd, &answer);
        assert_body(STR("abcde"));
        client_read_next(fd, &answer);
        assert_body(STR("wxyz"));
        close(fd);
    }
}

static void request_in_single_bytes_is_answered(void **state)
{
    struct app *app = *state;
    static const str request = STR_INIT("POST /echo HTTP/1.1\r\nHost: a\r\nX-Empty:\r\n"
                                        "Content-Length: 5\r\n\r\nabcde");
    int fd = client_connect(app);
    for (size_t at = 0; at < request.size; at++) {
        client_send(fd, str_slice(request, at, at + 1));
    }
    client_read(fd, &answer);
    assert_body(STR("abcde"));
    close(fd);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct app *app = *state;
    enum { COUNT = 500 };
    buf out = buf_create(app->arena, 64 * KIB, MIB);
    for (int index = 0; index < COUNT; index++) {
        buf_append_format(&out, "POST /echo HTTP/1.1\r\n" H "Content-Length: %d\r\n\r\n%06d", 6,
                          index);
    }
    int fd = client_connect(app);
    client_send(fd, buf_str(&out));
    client_read(fd, &answer);
    for (int index = 0; index < COUNT; index++) {
        char wanted[8];
        (void)snprintf(wanted, sizeof(wanted), "%06d", index);
        assert_body(str_from(wanted));
        if (index + 1 < COUNT) {
            client_read_next(fd, &answer);
        }
    }
    close(fd);
}

static void target_in_absolute_form_is_its_path(void **state)
{
    client_ask(*state, STR("GET http://a:80/x/y?q HTTP/1.1\r\n" H "\r\n"), &answer);
    assert_body(STR("/x/y"));
    client_ask(*state, STR("GET http://a HTTP/1.1\r\n" H "\r\n"), &answer);
    assert_body(STR("/"));
    client_ask(*state, STR("OPTIONS * HTTP/1.1\r\n" H "\r\n"), &answer);
    assert_body(STR("*"));
    client_ask(*state, STR("GET /a%20b%C3%A9%1F?c%2Fd HTTP/1.1\r\n" H "\r\n"), &answer);
    assert_body(STR("/a b\303\251\037"));
}

static void offered_upgrade_is_ignored(void **state)
{
    client_ask(*state,
               STR("GET /u HTTP/1.1\r\n" H "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                   "HTTP2-Settings: AAMAAABk\r\n\r\n"),
               &answer);
    assert_int_equal(answer.status, 200);
    assert_body(STR("/u"));
}

static void parameters_and_headers_are_read(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    client_send(fd, STR("GET /park?a=1&b%20c=x%26y+z&d&e= HTTP/1.1\r\n" H
                        "Accept: one\r\naccept: two\r\nX-Blank: \t v \t\r\n\r\n"));
    struct http_request *request = app_take_parked(app);
    assert_true(str_equal(http_request_parameter(request, STR("a")), STR("1")));
    assert_true(str_equal(http_request_parameter(request, STR("b c")), STR("x&y z")));
    assert_non_null(http_request_parameter(request, STR("d")).data);
    assert_int_equal(http_request_parameter(request, STR("e")).size, 0);
    assert_null(http_request_parameter(request, STR("f")).data);
    assert_true(str_equal(http_request_header(request, STR("ACCEPT")), STR("one")));
    assert_int_equal(http_request_header_times(request, STR("Accept")), 2);
    assert_true(str_equal(http_request_header(request, STR("x-blank")), STR("v")));
    assert_null(http_request_header(request, STR("x")).data);
    assert_true(str_equal(http_request_peer(request), STR("127.0.0.1")));
    assert_true(str_equal(http_request_raw_path(request), STR("/park")));
    assert_false(http_request_has_body(request));
    (void)app_answer(request, 204, STR(""));
    client_read(fd, &answer);
    assert_int_equal(answer.status, 204);
    assert_null(answer_header(&answer, STR("content-length")).data);
    close(fd);
}

/* ---- refusing early ---- */

static void early_refusal_leaves_the_body_unread_and_closes(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    client_send(fd, STR("POST /early HTTP/1.1\r\n" H "Content-Length: 1000000\r\n\r\nabc"));
    client_read(fd, &answer);
    assert_int_equal(answer.status, 401);
    assert_true(body_has("\"bad_key\""));
    assert_true(str_equal(answer_header(&answer, STR("www-authenticate")), STR("Bearer")));
    assert_true(str_equal(answer_header(&answer, STR("connection")), STR("close")));
    assert_true(client_ended(fd, &answer));
    close(fd);
    assert_int_equal(atomic_load(&app->body_bytes), 0);
    app_wait(app, &app->gones, 1);
    assert_int_equal(atomic_load(&app->completes), 0);
}

static void early_refusal_without_a_body_keeps_the_connection(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    client_send(fd, STR("GET /early HTTP/1.1\r\n" H "\r\nGET /x HTTP/1.1\r\n" H "\r\n"));
    client_read(fd, &answer);
    assert_int_equal(answer.status, 401);
    client_read_next(fd, &answer);
    assert_int_equal(answer.status, 200);
    close(fd);
}

/* What follows a refused request on its connection is never taken for one. */
static void bytes_after_a_refused_request_are_never_parsed(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    client_send(fd, STR("POST /early HTTP/1.1\r\n" H "Content-Length: 4\r\n\r\n"
                        "GET /x HTTP/1.1\r\n" H "\r\n"));
    client_read(fd, &answer);
    assert_true(client_ended(fd, &answer));
    assert_int_equal(atomic_load(&app->heads), 1);
    close(fd);
}

static void application_can_answer_in_the_middle_of_a_body(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    client_send(fd, STR("POST /cut HTTP/1.1\r\n" H "Content-Length: 100000\r\n\r\nabc"));
    client_read(fd, &answer);
    assert_int_equal(answer.status, 400);
    assert_body(STR("{\"cut\":true}"));
    assert_true(client_ended(fd, &answer));
    close(fd);
    app_wait(app, &app->gones, 1);
}

static void retry_after_stands_on_429_and_503(void **state)
{
    client_ask(*state, STR("GET /busy HTTP/1.1\r\n" H "\r\n"), &answer);
    assert_int_equal(answer.status, 429);
    i64 seconds = 0;
    assert_true(str_to_i64(answer_header(&answer, STR("retry-after")), &seconds));
    assert_true(seconds >= 1);
    assert_true(seconds <= 60);
}

/* ---- Expect ---- */

static void continue_is_sent_only_when_the_body_is_wanted(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    client_send(
        fd, STR("POST /echo HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"));
    client_read(fd, &answer);
    assert_int_equal(answer.status, 100);
    client_send(fd, STR("abc"));
    client_read(fd, &answer);
    assert_int_equal(answer.status, 200);
    assert_body(STR("abc"));
    client_send(
        fd, STR("POST /early HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"));
    client_read(fd, &answer);
    assert_int_equal(answer.status, 401);
    close(fd);
}

static void continue_is_not_sent_when_the_body_came_with_the_head(void **state)
{
    client_ask(
        *state,
        STR("POST /echo HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc"),
        &answer);
    assert_int_equal(answer.status, 200);
}

/* ---- how connections end ---- */

static void connection_closes_when_asked_to(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    client_send(fd, STR("GET /x HTTP/1.1\r\n" H "Connection: close\r\n\r\n"));
    client_read(fd, &answer);
    assert_true(str_equal(answer_header(&answer, STR("connection")), STR("close")));
    assert_true(client_ended(fd, &answer));
    close(fd);
}

static void http_1_0_closes_unless_it_asks_to_be_kept(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    client_send(fd, STR("GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    client_read(fd, &answer);
    assert_true(str_equal(answer_header(&answer, STR("connection")), STR("keep-alive")));
    client_send(fd, STR("GET /x HTTP/1.0\r\n\r\n"));
    client_read(fd, &answer);
    assert_int_equal(answer.status, 200);
    assert_true(client_ended(fd, &answer));
    close(fd);
}

/* As `printf … | nc` does. */
static void client_that_ends_its_side_still_gets_its_answer(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    client_send(fd, STR("GET /park HTTP/1.1\r\n" H "\r\n"));
    shutdown(fd, SHUT_WR);
    (void)app_answer(app_take_parked(app), 200, STR("late"));
    client_read(fd, &answer);
    assert_body(STR("late"));
    assert_true(client_ended(fd, &answer));
    close(fd);
}

static void request_broken_off_in_its_body_is_gone(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    client_send(fd, STR("POST /echo HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\nabc"));
    app_wait(app, &app->heads, 1);
    close(fd);
    app_wait(app, &app->gones, 1);
    assert_int_equal(atomic_load(&app->completes), 0);
    app_wait_active(app, 0);
}

static void requests_per_connection_are_limited(void **state)
{
    struct app *app = app_create();
    app->options.requests_per_connection = 2;
    app_start(app);
    *state = app;
    int fd = client_connect(app);
    client_send(fd, STR("GET /1 HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.1\r\n" H "\r\n"
                        "GET /3 HTTP/1.1\r\n" H "\r\n"));
    client_read(fd, &answer);
    assert_null(answer_header(&answer, STR("connection")).data);
    client_read_next(fd, &answer);
    assert_body(STR("/2"));
    assert_true(str_equal(answer_header(&answer, STR("connection")), STR("close")));
    assert_true(client_ended(fd, &answer));
    close(fd);
}

/* ---- parked requests ---- */

static void parked_request_is_answered_from_another_thread(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    for (int round = 0; round < 100; round++) {
        client_send(fd, STR("POST /park HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nhi"));
        struct http_request *request = app_take_parked(app);
        assert_true(str_equal(buf_str(http_request_user(request)), STR("hi")));
        (void)app_answer(request, 202, STR("{}"));
        client_read(fd, &answer);
        assert_int_equal(answer.status, 202);
    }
    close(fd);
    app_wait(app, &app->gones, 100);
}

static void pipelined_request_waits_until_the_parked_one_is_answered(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    client_send(fd, STR("GET /park HTTP/1.1\r\n" H "\r\nPOST /echo HTTP/1.1\r\n" H
                        "Content-Length: 3\r\n\r\na"));
    struct http_request *request = app_take_parked(app);
    client_send(fd, STR("bc"));
    assert_int_equal(atomic_load(&app->heads), 1);
    (void)app_answer(request, 200, STR("first"));
    client_read(fd, &answer);
    assert_body(STR("first"));
    client_read_next(fd, &answer);
    assert_body(STR("abc"));
    close(fd);
}

static void parked_request_outlives_its_connection(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    client_send(fd, STR("POST /park HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nhi"));
    struct http_request *request = app_take_parked(app);
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(fd);
    /* The loop has seen the reset when a later request of the same loop is answered. */
    for (int round = 0; round < 20; round++) {
        client_ask(app, STR("GET /x HTTP/1.1\r\n" H "\r\n"), &answer);
    }
    app_wait_active(app, 1);
    assert_true(str_equal(buf_str(http_request_user(request)), STR("hi")));
    (void)app_answer(request, 200, STR("to nobody"));
    app_wait(app, &app->gones, 21);
}

static void large_answer_from_another_thread_arrives_whole(void **state)
{
    struct app *app = *state;
    enum { SIZE = 900 * 1000 };
    char *bytes = arena_alloc(app->arena, SIZE);
    for (size_t at = 0; at < SIZE; at++) {
        bytes[at] = (char)('a' + at % 26);
    }
    int fd = client_connect(app);
    client_send(fd, STR("GET /park HTTP/1.1\r\n" H "\r\n"));
    (void)app_answer(app_take_parked(app), 200, (str){bytes, SIZE});
    client_read(fd, &answer);
    assert_body((str){bytes, SIZE});
    close(fd);
}

static void header_value_cannot_end_its_line(void **state)
{
    struct app *app = *state;
    int fd = client_connect(app);
    client_send(fd, STR("GET /park HTTP/1.1\r\n" H "\r\n"));
    struct http_response response = {
        .status = 200,
        .content_type = STR("text/plain"),
        .headers = {{STR("Location"), STR("a\r\nX-Evil: b")}},
        .header_count = 1,
        .body = STR("ok"),
    };
    http_respond(app_take_parked(app), &response);
    client_read(fd, &answer);
    assert_null(answer_header(&answer, STR("x-evil")).data);
    assert_true(str_equal(answer_header(&answer, STR("location")), STR("a  X-Evil: b")));
    assert_true(str_equal(answer_header(&answer, STR("content-type")), STR("text/plain")));
    close(fd);
}

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

/* ---- deadlines ---- */

static struct app *app_impatient(void)
{
    struct app *app = app_create();
    app->options.head_timeout_us = 100 * 1000;
    app->options.body_timeout_us = 100 * 1000;
    app->options.body_rate_min = 100 * 1000 * 1000;
    app->options.answer_timeout_us = 100 * 1000;
    app->options.park_timeout_us = 100 * 1000;
    app->options.idle_timeout_us = 100 * 1000;
    app_start(app);
    return app;
}

static void slow_head_is_408(void **state)
{
    struct app *app = app_impatient();
    *state = app;
    int fd = client_connect(app);
    client_send(fd, STR("GET /x HTTP/1.1\r\nHo"));
    client_read(fd, &answer);
    assert_int_equal(answer.status, 408);
    assert_true(body_has("\"request_timeout\""));
    assert_true(client_ended(fd, &answer));
    close(fd);
}

/* A byte now and then does not help: the whole head has one deadline. */
static void dripping_head_is_408(void **state)
{
    struct app *app = app_impatient();
    *state = app;
    int fd = client_connect(app);
    client_send(fd, STR("GET /x HTTP/1.1\r\nX: "));
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int drips = 0;
    while (poll(&ready, 1, 20) == 0) {
        (void)client_try_send(fd, STR("a"));
        drips++;
        assert_true(drips < 100);
    }
    client_read(fd, &answer);
    assert_int_equal(answer.status, 408);
    close(fd);
}

static void slow_body_is_408_and_gone(void **state)
{
    struct app *app = app_impatient();
    *state = app;
    static const str requests[] = {
        STR_INIT("POST /echo HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\nabc"),
        STR_INIT("POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
    };
    for (int index = 0; index < 2; index++) {
        int fd = client_connect(app);
        client_send(fd, requests[index]);
        client_read(fd, &answer);
        assert_int_equal(answer.status, 408);
        assert_true(client_ended(fd, &answer));
        close(fd);
        app_wait(app, &app->gones, index + 1);
    }
    assert_int_equal(atomic_load(&app->completes), 0);
}

static void request_parked_too_long_is_503_and_its_answer_goes_nowhere(void **state)
{
    struct app *app = app_impatient();
    *state = app;
    int fd = client_connect(app);
    client_send(fd, STR("GET /park HTTP/1.1\r\n" H "\r\n"));
    struct http_request *request = app_take_parked(app);
    client_read(fd, &answer);
    assert_int_equal(answer.status, 503);
    assert_true(body_has("\"unavailable\""));
    assert_true(answer_header(&answer, STR("retry-after")).size > 0);
    assert_true(client_ended(fd, &answer));
    close(fd);
    assert_int_equal(atomic_load(&app->gones), 0);
    (void)app_answer(request, 200, STR("too late"));
    app_wait(app, &app->gones, 1);
}

static void idle_connection_is_closed_without_a_word(void **state)
{
    struct app *app = app_impatient();
    *state = app;
    int fd = client_connect(app);
    assert_true(client_ended(fd, &answer));
    close(fd);
    fd = client_connect(app);
    client_send(fd, STR("GET /x HTTP/1.1\r\n" H "\r\n"));
    client_read(fd, &answer);
    assert_int_equal(answer.status, 200);
    assert_true(client_ended(fd, &answer));
    close(fd);
}

static void answer_that_nobody_reads_ends_the_connection(void **state)
{
    struct app *app = app_impatient();
    *state = app;
    enum { SIZE = 8 * MIB };
    char *bytes = arena_alloc(app->arena, SIZE);
    int fd = client_connect(app);
    int small = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    client_send(fd, STR("GET /park HTTP/1.1\r\n" H "\r\n"));
    (void)app_answer(app_take_parked(app), 200, (str){bytes, SIZE});
    app_wait(app, &app->gones, 1);
    close(fd);
}

/* ---- drain ---- */

/* Does the server still answer a new connection? */
static bool connection_is_taken(const struct app *app)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((u16)http_server_port(app->server)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    bool taken = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    close(fd);
    return taken;
}

static void drain_finishes_what_is_under_way(void **state)
{
    struct app *app = *state;
    int idle = client_connect(app);
    client_send(idle, STR("GET /x HTTP/1.1\r\n" H "\r\n"));
    client_read(idle, &answer);
    int busy = client_connect(app);
    client_send(busy, STR("GET /park HTTP/1.1\r\n" H "\r\n"));
    struct http_request *request = app_take_parked(app);
    http_server_drain(app->server);
    assert_true(client_ended(idle, &answer));
    close(idle);
    (void)app_answer(request, 200, STR("done"));
    client_read(busy, &answer);
    assert_body(STR("done"));
    assert_true(str_equal(answer_header(&answer, STR("connection")), STR("close")));
    assert_true(client_ended(busy, &answer));
    close(busy);
    app_wait(app, &app->gones, 2);
    for (int tries = 0; connection_is_taken(app); tries++) {
        assert_true(tries < PATIENCE_MS);
    }
}

static void stop_ends_requests_that_are_being_read(void **state)
{
    (void)state;
    struct app *app = app_create();
    app_start(app);
    int fd = client_connect(app);
    client_send(fd, STR("POST /echo HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\nabc"));
    app_wait(app, &app->heads, 1);
    http_server_stop(app->server);
    assert_int_equal(atomic_load(&app->gones), 1);
    close(fd);
    arena_destroy(app->arena);
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

static int own_teardown(void **state)
{
    if (*state != NULL) {
        app_stop(*state);
    }
    return 0;
}

int main(void)
{
#define T(name)   cmocka_unit_test_setup_teardown(name, app_setup, app_teardown)
#define OWN(name) cmocka_unit_test_setup_teardown(name, NULL, own_teardown)
    const struct CMUnitTest tests[] = {
        T(answer_has_what_every_answer_has),
        T(head_answer_has_the_length_and_no_body),
        T(body_by_length_and_in_chunks_arrives_whole),
        T(request_cut_at_every_byte_is_the_same_request),
        T(request_in_single_bytes_is_answered),
        T(pipelined_requests_are_answered_in_order),
        T(target_in_absolute_form_is_its_path),
        T(offered_upgrade_is_ignored),
        T(parameters_and_headers_are_read),
        T(early_refusal_leaves_the_body_unread_and_closes),
        T(early_refusal_without_a_body_keeps_the_connection),
        T(bytes_after_a_refused_request_are_never_parsed),
        T(application_can_answer_in_the_middle_of_a_body),
        T(retry_after_stands_on_429_and_503),
        T(continue_is_sent_only_when_the_body_is_wanted),
        T(continue_is_not_sent_when_the_body_came_with_the_head),
        T(connection_closes_when_asked_to),
        T(http_1_0_closes_unless_it_asks_to_be_kept),
        T(client_that_ends_its_side_still_gets_its_answer),
        T(request_broken_off_in_its_body_is_gone),
        OWN(requests_per_connection_are_limited),
        T(parked_request_is_answered_from_another_thread),
        T(pipelined_request_waits_until_the_parked_one_is_answered),
        T(parked_request_outlives_its_connection),
        T(large_answer_from_another_thread_arrives_whole),
        T(header_value_cannot_end_its_line),
        OWN(bodies_over_the_budget_of_all_are_503),
        OWN(connections_over_their_limit_are_turned_away),
        T(thousand_connections_are_served_at_once),
        T(lack_of_descriptors_passes),
        OWN(slow_head_is_408),
        OWN(dripping_head_is_408),
        OWN(slow_body_is_408_and_gone),
        OWN(request_parked_too_long_is_503_and_its_answer_goes_nowhere),
        OWN(idle_connection_is_closed_without_a_word),
        OWN(answer_that_nobody_reads_ends_the_connection),
        T(drain_finishes_what_is_under_way),
        OWN(stop_ends_requests_that_are_being_read),
        T(second_server_on_a_port_is_refused),
        OWN(address_that_is_none_is_refused),
        OWN(unix_socket_serves_its_owner),
        OWN(tls_serves_large_and_small_requests),
        OWN(tls_refuses_old_versions_and_plain_text),
        OWN(tls_without_its_files_does_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
