#include "http_fixture.h"

#include "io/http_client.h"

#include <stdlib.h>

struct caller {
    struct app *app;
    struct arena *arena;
    struct http_client *client;
    struct http_call call;
    struct http_reply reply;
    struct error error;
    i64 sent;
};

static int caller_setup(void **state)
{
    struct app *app = app_create();
    app_start(app);
    struct caller *caller = arena_alloc(app->arena, sizeof(*caller));
    assert_non_null(caller);
    caller->app = app;
    caller->arena = app->arena;
    const struct http_client_options options = {0};
    assert_int_equal(http_client_create(app->arena, &options, &caller->client, NULL), OK);
    *state = caller;
    return 0;
}

static int caller_teardown(void **state)
{
    struct caller *caller = *state;
    http_client_destroy(caller->client);
    app_stop(caller->app);
    return 0;
}

static err call(struct caller *caller, const char *method, const char *path, str body)
{
    caller->call.method = str_from(method);
    caller->call.url = str_format(caller->arena, "http://127.0.0.1:%d%s",
                                  http_server_port(caller->app->server), path);
    caller->call.body = body;
    error_clear(&caller->error);
    return http_client_call(caller->client, caller->arena, &caller->call, &caller->reply,
                            &caller->error);
}

static void answer_comes_with_status_headers_and_body(void **state)
{
    struct caller *caller = *state;
    assert_int_equal(call(caller, "POST", "/echo", STR("hello")), OK);
    assert_int_equal(caller->reply.status, 200);
    assert_true(str_equal(caller->reply.body, STR("hello")));
    assert_true(
        str_equal(http_reply_header(&caller->reply, STR("CONTENT-TYPE")), STR("application/json")));
    assert_true(http_reply_header(&caller->reply, STR("x-request-id")).size > 0);
    assert_null(http_reply_header(&caller->reply, STR("x-none")).data);
    assert_int_equal(call(caller, "GET", "/a/b", (str){0}), OK);
    assert_true(str_equal(caller->reply.body, STR("/a/b")));
    assert_int_equal(call(caller, "HEAD", "/a/b", (str){0}), OK);
    assert_int_equal(caller->reply.status, 200);
    assert_int_equal(caller->reply.body.size, 0);
}

/* 411 would be the answer to a POST without a length. */
static void empty_bodies_are_sent_with_their_length(void **state)
{
    struct caller *caller = *state;
    static const char *const methods[] = {"POST", "PUT", "PATCH", "DELETE"};
    for (size_t index = 0; index < ARRAY_COUNT(methods); index++) {
        assert_int_equal(call(caller, methods[index], "/echo", (str){0}), OK);
        assert_int_equal(caller->reply.status, 200);
    }
}

static void refusal_is_an_answer(void **state)
{
    struct caller *caller = *state;
    assert_int_equal(call(caller, "POST", "/early", STR("x")), OK);
    assert_int_equal(caller->reply.status, 401);
    assert_int_equal(call(caller, "GET", "/busy", (str){0}), OK);
    assert_int_equal(caller->reply.status, 429);
    assert_true(http_reply_header(&caller->reply, STR("retry-after")).size > 0);
}

static void note_progress(void *context, i64 sent)
{
    struct caller *caller = context;
    caller->sent = sent;
}

static void large_body_arrives_whole_and_its_progress_is_told(void **state)
{
    struct caller *caller = *state;
    enum { SIZE = 3 * MIB };
    struct arena *arena = arena_create(16 * MIB);
    char *bytes = arena_alloc(arena, SIZE);
    memset(bytes, 'x', SIZE);
    caller->call.progress = note_progress;
    caller->call.progress_context = caller;
    assert_int_equal(call(caller, "POST", "/up", (str){bytes, SIZE}), OK);
    assert_int_equal(caller->reply.status, 200);
    assert_int_equal(caller->sent, SIZE);
    assert_int_equal(atomic_load(&caller->app->body_bytes), SIZE);
    arena_destroy(arena);
}

static void answer_larger_than_asked_for_is_a_limit(void **state)
{
    struct caller *caller = *state;
    caller->call.reply_bytes_max = 4;
    assert_int_equal(call(caller, "POST", "/echo", STR("1234")), OK);
    assert_int_equal(call(caller, "POST", "/echo", STR("12345")), LIMIT);
}

static void nobody_listening_is_surely_not_done(void **state)
{
    struct caller *caller = *state;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    caller->call.method = STR("POST");
    caller->call.url = str_format(caller->arena, "http://127.0.0.1:%d/",
                                  (int)ntohs(address.sin_port));
    assert_int_equal(http_client_call(caller->client, caller->arena, &caller->call, &caller->reply,
                                      &caller->error),
                     IO);
    assert_true(strstr(caller->error.message, "cannot be reached") != NULL);
    close(fd);
}

static void answer_that_does_not_come_is_unknown(void **state)
{
    struct caller *caller = *state;
    caller->call.timeout_us = 200 * 1000;
    assert_int_equal(call(caller, "POST", "/park", STR("x")), UNKNOWN);
    struct http_request *request = app_take_parked(caller->app);
    (void)app_answer(request, 200, STR("late"));
}

static void *close_one(void *context)
{
    int fd = accept(*(const int *)context, NULL, NULL);
    char bytes[1024];
    ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
    (void)got;
    close(fd);
    return NULL;
}

static void connection_closed_without_an_answer_is_unknown(void **state)
{
    struct caller *caller = *state;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(listen(fd, 1), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, close_one, &fd), 0);
    caller->call.method = STR("POST");
    caller->call.url = str_format(caller->arena, "http://127.0.0.1:%d/",
                                  (int)ntohs(address.sin_port));
    caller->call.body = STR("[]");
    assert_int_equal(http_client_call(caller->client, caller->arena, &caller->call, &caller->reply,
                                      &caller->error),
                     UNKNOWN);
    pthread_join(thread, NULL);
    close(fd);
}

static void url_that_is_none_is_invalid(void **state)
{
    struct caller *caller = *state;
    static const str urls[] = {STR_INIT("ftp://127.0.0.1/"), STR_INIT("file:///etc/passwd"),
                               STR_INIT("http://"), STR_INIT(""), STR_INIT("http://a\0b/")};
    for (size_t index = 0; index < ARRAY_COUNT(urls); index++) {
        caller->call.method = STR("GET");
        caller->call.url = urls[index];
        assert_int_equal(http_client_call(caller->client, caller->arena, &caller->call,
                                          &caller->reply, &caller->error),
                         INVALID);
    }
}

static void connection_is_reused_unless_a_fresh_one_is_asked_for(void **state)
{
    struct caller *caller = *state;
    for (int index = 0; index < 3; index++) {
        assert_int_equal(call(caller, "GET", "/x", (str){0}), OK);
        assert_null(http_reply_header(&caller->reply, STR("connection")).data);
    }
    caller->call.reuse = HTTP_FRESH_CONNECTION;
    for (int index = 0; index < 3; index++) {
        assert_int_equal(call(caller, "GET", "/x", (str){0}), OK);
    }
}

static void unix_socket_is_reached(void **state)
{
    (void)state;
    char folder[] = "/tmp/lhbox-client-XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct app *app = app_create();
    app->options.address = str_format(app->arena, "unix:%s/s", folder);
    app_start(app);
    const struct http_client_options options = {
        .unix_path = str_format(app->arena, "%s/s", folder)};
    struct http_client *client = NULL;
    assert_int_equal(http_client_create(app->arena, &options, &client, NULL), OK);
    const struct http_call asked = {.method = STR("GET"), .url = STR("http://localhost/internal")};
    struct http_reply reply = {0};
    assert_int_equal(http_client_call(client, app->arena, &asked, &reply, NULL), OK);
    assert_true(str_equal(reply.body, STR("/internal")));
    http_client_destroy(client);
    app_stop(app);
    rmdir(folder);
}

static void escape_leaves_only_plain_characters(void **state)
{
    struct caller *caller = *state;
    assert_true(str_equal(http_client_escape(caller->arena, STR("a-Z.0_~ /?&=%\303\251")),
                          STR("a-Z.0_~%20%2F%3F%26%3D%25%C3%A9")));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, caller_setup, caller_teardown)
    const struct CMUnitTest tests[] = {
        T(answer_comes_with_status_headers_and_body),
        T(empty_bodies_are_sent_with_their_length),
        T(refusal_is_an_answer),
        T(large_body_arrives_whole_and_its_progress_is_told),
        T(answer_larger_than_asked_for_is_a_limit),
        T(nobody_listening_is_surely_not_done),
        T(answer_that_does_not_come_is_unknown),
        T(connection_closed_without_an_answer_is_unknown),
        T(url_that_is_none_is_invalid),
        T(connection_is_reused_unless_a_fresh_one_is_asked_for),
        cmocka_unit_test(unix_socket_is_reached),
        T(escape_leaves_only_plain_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
