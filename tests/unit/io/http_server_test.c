/* Requests, answers, early refusals, and how connections end. */
#include "http_fixture.h"

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

static void slash_in_a_name_stays_encoded_below_the_raw_prefix_only(void **state)
{
    client_ask(*state, STR("GET /names/a%2Fb%20c HTTP/1.1\r\n" H "\r\n"), &answer);
    assert_body(STR("/names/a%2Fb c"));
    client_ask(*state, STR("GET /name/a%2Fb HTTP/1.1\r\n" H "\r\n"), &answer);
    assert_int_equal(answer.status, 400);
    client_ask(*state, STR("GET /names/a%00b HTTP/1.1\r\n" H "\r\n"), &answer);
    assert_int_equal(answer.status, 400);
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

static void what_a_connection_keeps_goes_with_it(void **state)
{
    struct app *app = *state;
    for (int round = 0; round < 3; round++) {
        int fd = client_connect(app);
        for (int times = 1; times <= 3; times++) {
            char text[16];
            (void)snprintf(text, sizeof(text), "%d", times);
            client_send(fd, STR("GET /times HTTP/1.1\r\n" H "\r\n"));
            client_read(fd, &answer);
            assert_body(str_from(text));
        }
        close(fd);
        app_wait_active(app, 0);
    }
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
        T(slash_in_a_name_stays_encoded_below_the_raw_prefix_only),
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
        T(what_a_connection_keeps_goes_with_it),
        OWN(requests_per_connection_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
