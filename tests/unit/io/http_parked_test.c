/* Parked requests, deadlines, drain and stop. */
#include "http_fixture.h"

#define H "Host: a\r\n"

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

static void held_answers_leave_together(void **state)
{
    struct app *app = *state;
    enum { COUNT = 40 };
    int fds[COUNT];
    http_answers_hold();
    for (int i = 0; i < COUNT; i++) {
        fds[i] = client_connect(app);
        client_send(fds[i], STR("GET /park HTTP/1.1\r\n" H "\r\n"));
        char text[16];
        int size = snprintf(text, sizeof(text), "%d", i);
        (void)app_answer(app_take_parked(app), 200, (str){text, (size_t)size});
    }
    assert_int_equal(atomic_load(&app->gones), 0);
    client_ask(app, STR("GET /x HTTP/1.1\r\n" H "\r\n"), &answer); /* the loops are not held up */
    http_answers_release();
    for (int i = 0; i < COUNT; i++) {
        char text[16];
        (void)snprintf(text, sizeof(text), "%d", i);
        client_read(fds[i], &answer);
        assert_body(str_from(text));
        close(fds[i]);
    }
    app_wait(app, &app->gones, COUNT + 1);
    http_answers_hold();
    http_answers_release();
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

/* ---- dropping all clients ---- */

static void *drop_all(void *server)
{
    http_server_drop(server);
    return NULL;
}

static void assert_cut(int fd)
{
    client_read(fd, &answer);
    assert_int_equal(answer.status, 0);
    close(fd);
}

/* The loop stands in its drop, held by the half-read request's `gone`, while another client
 * connects and sends: that one waits to be accepted. */
static void a_drop_answers_what_is_whole_and_ends_all_else(void **state)
{
    struct app *app = app_create();
    pthread_t thread;
    app->options.threads = 1;
    app_start(app);
    *state = app;
    int idle = client_connect(app);
    client_send(idle, STR("GET /x HTTP/1.1\r\n" H "\r\n"));
    client_read(idle, &answer);
    assert_int_equal(answer.status, 200);
    app_wait(app, &app->gones, 1);
    int half = client_connect(app);
    client_send(half, STR("POST /echo HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\nhalf"));
    app_wait(app, &app->pieces, 1);
    int parked = client_connect(app);
    client_send(parked, STR("POST /park HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nhi"
                            "GET /x HTTP/1.1\r\n" H "\r\n"));
    struct http_request *request = app_take_parked(app);
    app_hold_gone(app, true);
    assert_int_equal(pthread_create(&thread, NULL, drop_all, app->server), 0);
    app_wait(app, &app->gones, 2);
    int waiting = client_connect(app);
    client_send(waiting, STR("GET /x HTTP/1.1\r\n" H "\r\n"));
    app_hold_gone(app, false);
    pthread_join(thread, NULL);
    assert_cut(idle);
    assert_cut(half);
    assert_cut(waiting);
    (void)app_answer(request, 200, STR("the last"));
    client_read(parked, &answer);
    assert_int_equal(answer.status, 200);
    assert_cut(parked);
    assert_int_equal(atomic_load(&app->heads), 3);
    app_wait_active(app, 0);
    client_ask(app, STR("GET /x HTTP/1.1\r\n" H "\r\n"), &answer);
    assert_int_equal(answer.status, 200);
}

/* More connections than one look of the loop tells of: some deadlines are past before their bytes
 * are told of. */
static void what_was_sent_in_time_is_read_before_a_deadline_is_kept(void **state)
{
    enum { CLIENTS = 300 };
    static int clients[CLIENTS];
    struct app *app = app_create();
    *state = app;
    app->options.threads = 1;
    app->options.body_timeout_us = 1000 * 1000;
    app->options.body_rate_min = 100 * 1000 * 1000;
    app_start(app);
    for (int index = 0; index < CLIENTS; index++) {
        clients[index] = client_connect(app);
        client_send(clients[index], STR("POST /echo HTTP/1.1\r\n" H "Content-Length: 4\r\n\r\n"));
    }
    app_wait(app, &app->heads, CLIENTS);
    app_hold_gone(app, true);
    int holder = client_connect(app);
    client_send(holder, STR("GET /x HTTP/1.1\r\n" H "\r\n"));
    app_wait(app, &app->gones, 1);
    for (int index = 0; index < CLIENTS; index++) {
        client_send(clients[index], STR("body"));
    }
    (void)poll(NULL, 0, 1100);
    app_hold_gone(app, false);
    for (int index = 0; index < CLIENTS; index++) {
        client_read(clients[index], &answer);
        assert_int_equal(answer.status, 200);
        close(clients[index]);
    }
    close(holder);
}

int main(void)
{
#define T(name)   cmocka_unit_test_setup_teardown(name, app_setup, app_teardown)
#define OWN(name) cmocka_unit_test_setup_teardown(name, NULL, own_teardown)
    const struct CMUnitTest tests[] = {
        T(parked_request_is_answered_from_another_thread),
        T(pipelined_request_waits_until_the_parked_one_is_answered),
        T(parked_request_outlives_its_connection),
        T(held_answers_leave_together),
        T(large_answer_from_another_thread_arrives_whole),
        T(header_value_cannot_end_its_line),
        OWN(slow_head_is_408),
        OWN(dripping_head_is_408),
        OWN(slow_body_is_408_and_gone),
        OWN(what_was_sent_in_time_is_read_before_a_deadline_is_kept),
        OWN(request_parked_too_long_is_503_and_its_answer_goes_nowhere),
        OWN(idle_connection_is_closed_without_a_word),
        OWN(answer_that_nobody_reads_ends_the_connection),
        OWN(a_drop_answers_what_is_whole_and_ends_all_else),
        T(drain_finishes_what_is_under_way),
        OWN(stop_ends_requests_that_are_being_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
