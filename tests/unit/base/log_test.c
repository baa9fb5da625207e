#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/id.h"
#include "base/log.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <unistd.h>

static instant fixed_now(void *self)
{
    (void)self;
    return 1789992000123456;
}

static const struct seam fixed_seam = {.now = fixed_now};
static int saved_stderr = -1;
static int pipe_ends[2];

static int capture_begin(void **state)
{
    (void)state;
    saved_stderr = dup(STDERR_FILENO);
    if (saved_stderr < 0 || pipe(pipe_ends) != 0) {
        return -1;
    }
    int flags = fcntl(pipe_ends[0], F_GETFL);
    fcntl(pipe_ends[0], F_SETFL, flags | O_NONBLOCK);
    dup2(pipe_ends[1], STDERR_FILENO);
    log_init(&fixed_seam, LOG_INFO);
    return 0;
}

static int capture_end(void **state)
{
    (void)state;
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    return 0;
}

static char captured_bytes[16 * KIB];

static str captured(void)
{
    ssize_t size = read(pipe_ends[0], captured_bytes, sizeof(captured_bytes));
    return (str){captured_bytes, size > 0 ? (size_t)size : 0};
}

static void line_is_one_object_with_typed_fields(void **state)
{
    (void)state;
    log_event(LOG_INFO, "roll_committed", LOG_S("sink", STR("snk_\"1\"")), LOG_N("rows", -12));
    assert_true(
        str_equal(captured(), STR("{\"at\":\"2026-09-21T12:00:00.123456Z\",\"level\":\"info\","
                                  "\"event\":\"roll_committed\",\"sink\":\"snk_\\\"1\\\"\","
                                  "\"rows\":-12}\n")));
    log_write(LOG_ERROR, "bare", NULL, 0);
    assert_true(str_ends(captured(), STR("\"level\":\"error\",\"event\":\"bare\"}\n")));
}

static void levels_below_the_least_are_silent(void **state)
{
    (void)state;
    log_event(LOG_DEBUG, "quiet", LOG_N("n", 1));
    assert_int_equal(captured().size, 0);
    log_init(&fixed_seam, LOG_WARN);
    log_event(LOG_INFO, "quiet", LOG_N("n", 1));
    assert_int_equal(captured().size, 0);
    log_event(LOG_WARN, "heard", LOG_N("n", 1));
    assert_true(captured().size > 0);
}

static void key_shows_its_public_part_only(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    str key = id_key_make(arena, seam_system(), ID_KEY_SEND);
    str secret = str_slice(key, key.size - ID_KEY_SECRET_SIZE, key.size);
    log_event(LOG_INFO, "denied", LOG_KEY("key", key));
    str line = captured();
    assert_true(str_find(line, str_slice(key, 0, key.size - ID_KEY_SECRET_SIZE - 1)) > 0);
    for (size_t i = 0; i + 4 <= secret.size; i++) {
        assert_int_equal(str_find(line, str_slice(secret, i, i + 4)), -1);
    }
}

static void what_is_no_key_shows_nothing_of_itself(void **state)
{
    (void)state;
    const str secrets[] = {STR_INIT("hunter2hunter2"),
                           STR_INIT("al_key_hunter2hunter2hunter2"),
                           STR_INIT("al_key_0123456789abhunter2"),
                           STR_INIT("al_key_hunter2"),
                           STR_INIT(""),
                           STR_INIT("al_key_hunter2hunt_x")};
    for (size_t i = 0; i < ARRAY_COUNT(secrets); i++) {
        log_event(LOG_INFO, "denied", LOG_KEY("key", secrets[i]));
        str line = captured();
        assert_int_equal(str_find(line, STR("hunter")), -1);
        assert_true(str_ends(line, STR("\"key\":\"?\"}\n")));
    }
}

static void ill_formed_text_is_replaced(void **state)
{
    (void)state;
    log_event(LOG_INFO, "odd",
              LOG_S("text", STR("a\xff"
                                "b\xc3\x28\n\xf0\x9f\x98")));
    str line = captured();
    assert_true(utf8_valid(line));
    assert_true(str_ends(line, STR("\"text\":\"a\xef\xbf\xbd"
                                   "b\xef\xbf\xbd(\\n"
                                   "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"}\n")));
}

static void long_fields_are_cut_and_fields_without_room_left_out(void **state)
{
    (void)state;
    static char text[6000];
    memset(text, '\x01', sizeof(text)); /* six bytes each when escaped */
    str large = {text, sizeof(text)};
    log_event(LOG_INFO, "large", LOG_S("a", large), LOG_N("b", 7));
    str line = captured();
    assert_true(line.size <= 4096);
    assert_int_equal(str_find(line, STR("\"a\"")), -1);
    assert_true(str_ends(line, STR(",\"b\":7}\n")));
    memset(text, 'x', sizeof(text));
    for (size_t at = 1; at + 2 <= sizeof(text); at += 2) {
        memcpy(text + at, "\xc3\xa4", 2);
    }
    log_event(LOG_INFO, "large", LOG_S("a", large), LOG_N("b", 7));
    line = captured();
    assert_true(utf8_valid(line));
    assert_true(line.size > 1000 && line.size < 1200);
    assert_true(str_ends(line, STR("\xc3\xa4\",\"b\":7}\n")));
}

static void error_line_has_kind_code_and_message(void **state)
{
    (void)state;
    struct error error = {0};
    error_set(&error, UNKNOWN, ERROR_STORE_DOWN, "no answer");
    log_error("roll_failed", UNKNOWN, &error, STR("snk_1"));
    assert_true(str_ends(captured(), STR("\"level\":\"error\",\"event\":\"roll_failed\","
                                         "\"subject\":\"snk_1\",\"kind\":\"UNKNOWN\","
                                         "\"code\":\"store_down\",\"message\":\"no answer\"}\n")));
    log_error("refused", LIMIT, NULL, (str){NULL, 0});
    assert_true(str_ends(captured(),
                         STR("\"level\":\"warn\",\"event\":\"refused\",\"kind\":\"LIMIT\"}\n")));
}

static void a_log_that_cannot_be_written_stops_nobody(void **state)
{
    (void)state;
    int before = dup(STDERR_FILENO);
    close(STDERR_FILENO);
    log_event(LOG_INFO, "lost", LOG_N("n", 1));
    dup2(before, STDERR_FILENO);
    close(before);
    log_event(LOG_INFO, "heard", LOG_N("n", 2));
    assert_true(str_ends(captured(), STR("\"n\":2}\n")));
}

int main(void)
{
#define CAPTURED(test) cmocka_unit_test_setup_teardown(test, capture_begin, capture_end)
    const struct CMUnitTest tests[] = {
        CAPTURED(line_is_one_object_with_typed_fields),
        CAPTURED(levels_below_the_least_are_silent),
        CAPTURED(key_shows_its_public_part_only),
        CAPTURED(what_is_no_key_shows_nothing_of_itself),
        CAPTURED(ill_formed_text_is_replaced),
        CAPTURED(long_fields_are_cut_and_fields_without_room_left_out),
        CAPTURED(error_line_has_kind_code_and_message),
        CAPTURED(a_log_that_cannot_be_written_stops_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
