#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct arena *arena;
static char path[64];

static int set_up(void **state)
{
    (void)state;
    arena = arena_create((size_t)8 * MIB);
    (void)snprintf(path, sizeof(path), "/tmp/lhbox-config-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(path);
    arena_destroy(arena);
    return 0;
}

static err load(const char *text, const struct config_override *overrides, size_t count,
                struct config **out_config, struct error *error)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    struct config_source source = {.file = path, .overrides = overrides, .override_count = count};
    return config_load(arena, &source, out_config, error);
}

static struct config *load_good(const char *text)
{
    struct config *config = NULL;
    struct error error = {0};
    if (load(text, NULL, 0, &config, &error) != OK) {
        fail_msg("%s", error.message);
    }
    return config;
}

static void assert_refused(const char *text, const char *message, const char *hint)
{
    struct config *config = NULL;
    struct error error = {0};
    assert_int_equal(load(text, NULL, 0, &config, &error), INVALID);
    assert_int_equal(error.code, ERROR_INVALID_CONFIG);
    assert_null(config);
    if (str_find(str_from(error.message), str_from(message)) < 0) {
        fail_msg("%s: %s", text, error.message);
    }
    assert_string_equal(error.hint, hint);
}

static void without_anything_the_defaults_hold(void **state)
{
    (void)state;
    struct config *config = load_good("");
    assert_int_equal(config_number(config, CONFIG_SERVER_PORT), 8181);
    assert_int_equal(config_number(config, CONFIG_INTAKE_BODY_BYTES_MAX), 16 * MIB);
    assert_int_equal(config_number(config, CONFIG_INTAKE_ROWS_MAX), 100000);
    assert_true(str_equal(config_text(config, CONFIG_SERVER_LISTEN), STR("127.0.0.1")));
    assert_int_equal(config->location_count, 0);
}

static void a_file_sets_values_with_units(void **state)
{
    (void)state;
    struct config *config = load_good("; ours\n[server]\nport = 0\nlisten=::1\n"
                                      "bodies_bytes_max = 1GiB\n[intake]\nrow_bytes_max: 2 MiB\n"
                                      "[log]\nlevel = debug ; inline\n");
    assert_int_equal(config_number(config, CONFIG_SERVER_PORT), 0);
    assert_true(str_equal(config_text(config, CONFIG_SERVER_LISTEN), STR("::1")));
    assert_int_equal(config_number(config, CONFIG_SERVER_BODIES_BYTES_MAX), (i64)1 << 30);
    assert_int_equal(config_number(config, CONFIG_INTAKE_ROW_BYTES_MAX), 2 * MIB);
    assert_true(str_equal(config_text(config, CONFIG_LOG_LEVEL), STR("debug")));
    assert_true(str_equal(config->file, str_from(path)));
}

static void later_sources_win(void **state)
{
    (void)state;
    struct config *config = NULL;
    struct config_override overrides[] = {{"port", "3"}, {"intake.workers", "5"}};
    assert_int_equal(setenv("LHBOX_SERVER_PORT", "2", 1), 0);
    assert_int_equal(setenv("LHBOX_SERVER_THREADS", "4", 1), 0);
    assert_int_equal(setenv("LHBOX_API_KEY", "is no setting", 1), 0);
    assert_int_equal(load("[server]\nport=1\nthreads=1\n", overrides, 2, &config, NULL), OK);
    assert_int_equal(unsetenv("LHBOX_SERVER_PORT") | unsetenv("LHBOX_SERVER_THREADS") |
                         unsetenv("LHBOX_API_KEY"),
                     0);
    assert_int_equal(config_number(config, CONFIG_SERVER_PORT), 3);
    assert_int_equal(config_number(config, CONFIG_SERVER_THREADS), 4);
    assert_int_equal(config_number(config, CONFIG_INTAKE_WORKERS), 5);
}

static void unknown_names_are_refused_with_the_nearest_known_one(void **state)
{
    (void)state;
    assert_refused("[servr]\nport=1\n", "there is no section [servr]", "did you mean [server]?");
    assert_refused("[server]\nprot=1\n", "there is no prot in [server]", "did you mean port?");
    assert_refused("[intake]\nrows=1\n", "there is no rows in [intake]", "did you mean rows_max?");
    assert_refused("[catalog main]\nallowed=s3://x\n", "there is no allowed in [catalog main]",
                   "did you mean allowed_locations?");
    assert_refused("port=1\n", "port stands before any [section]",
                   "the first line is [server], [log] or the like");
    assert_int_equal(setenv("LHBOX_SERVER_PROT", "2", 1), 0);
    assert_refused("", "LHBOX_SERVER_PROT: there is no prot in [server]", "did you mean port?");
    assert_int_equal(unsetenv("LHBOX_SERVER_PROT"), 0);
}

static void values_out_of_bounds_are_refused(void **state)
{
    (void)state;
    assert_refused("[server]\nport=65536\n", "it must be 0 to 65535", "");
    assert_refused("[server]\nport=-1\n", "it must be 0 to 65535", "");
    assert_refused("[server]\nport=eighty\n", "a number is wanted", "");
    assert_refused("[server]\nport=\n", "a number is wanted", "");
    assert_refused("[intake]\nbody_bytes_max=1 MB\n", "a size such as 64MiB is wanted", "");
    assert_refused("[intake]\nbody_bytes_max=9999999TiB\n", "a size such as 64MiB is wanted", "");
    assert_refused("[server]\nnonsense\n", "line 2 is neither", "");
    assert_refused("[server]\nport=1\nport=2\n", "port in [server] is given twice",
                   "keep one; a line that begins with a blank continues the one before");
    assert_refused("[server]\ndata=./here\n  port=2\n", "data in [server] is given twice",
                   "keep one; a line that begins with a blank continues the one before");
}

static void a_named_file_must_be_there(void **state)
{
    (void)state;
    struct config *config = NULL;
    struct config_source source = {.file = "/tmp/lhbox-no-such-file.conf"};
    assert_int_equal(config_load(arena, &source, &config, NULL), NOT_FOUND);
}

static void locations_of_all_catalogs_are_taken(void **state)
{
    (void)state;
    struct config *config = load_good("[catalog a]\nallowed_locations = file:///x , file:///y\n"
                                      "[catalog b]\nallowed_locations = file:///z\n");
    assert_int_equal(config->location_count, 3);
    assert_true(str_equal(config->locations[1], STR("file:///y")));
    assert_true(str_equal(config->locations[2], STR("file:///z")));
}

static void what_is_printed_can_be_read_again(void **state)
{
    (void)state;
    struct config *config = load_good(
        "[server]\nport=77\n[catalog a]\nallowed_locations=file:///x\n");
    buf text = buf_create(arena, KIB, 64 * KIB);
    config_print(config, &text);
    buf_append_byte(&text, '\0');
    struct config *again = load_good(text.data);
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        assert_true(str_equal(config->texts[i], again->texts[i]));
        assert_int_equal(config->numbers[i], again->numbers[i]);
    }
    assert_int_equal(again->location_count, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_anything_the_defaults_hold),
        TEST(a_file_sets_values_with_units),
        TEST(later_sources_win),
        TEST(unknown_names_are_refused_with_the_nearest_known_one),
        TEST(values_out_of_bounds_are_refused),
        TEST(a_named_file_must_be_there),
        TEST(locations_of_all_catalogs_are_taken),
        TEST(what_is_printed_can_be_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
