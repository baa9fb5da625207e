/* The commands beside serving: making a data directory, and looking at the configuration. */
#include "server/serve.h"

#include "base/log.h"
#include "io/file.h"
#include "server/ground.h"
#include "server/process.h"

enum { COMMAND_BYTES_MAX = 64 * MIB };

/* ---- init ---- */

static void init_say(struct arena *arena, const struct service *service, str key)
{
    buf out = buf_create(arena, KIB, 16 * KIB);
    buf_append_format(&out,
                      "made %.*s\nproject default, admin key:\n%.*s\n"
                      "Keep it: it is not shown again. `lhbox serve` starts the server.\n",
                      STR_ARG(service->data_directory), STR_ARG(key));
    process_say(buf_str(&out));
}

MUST_USE static err init_save(struct arena *arena, const struct service *service, const char *file,
                              str key, struct error *error)
{
    buf out = buf_create(arena, KIB, 16 * KIB);
    buf text = buf_create(arena, KIB, 16 * KIB);
    buf_append_format(&text, "{\"project\":\"default\",\"api_key\":\"%.*s\"}\n", STR_ARG(key));
    TRY(file_write_new(str_from(file), buf_str(&text), error));
    buf_append_format(&out,
                      "made %.*s\nproject default, its admin key is in %s\n"
                      "`lhbox serve` starts the server.\n",
                      STR_ARG(service->data_directory), file);
    process_say(buf_str(&out));
    return OK;
}

MUST_USE static err init_make(struct arena *arena, const struct serve_init_options *options,
                              struct service *service, struct error *error)
{
    struct config *config = NULL;
    str project = {0};
    str key = {0};
    TRY(config_load(arena, &options->source, &config, error));
    if (options->show == SERVE_SAVE_KEY && file_exists(str_from(options->save_file))) {
        return error_set(error, CONFLICT, ERROR_NAME_TAKEN, "%s exists already",
                         options->save_file);
    }
    struct ground_options ground = {.data = config_text(config, CONFIG_SERVER_DATA),
                                    .make = GROUND_MAKE};
    service->seam = seam_system();
    TRY(ground_open(arena, &ground, service, error));
    TRY(access_create_project(&service->db, arena, service->seam, STR("default"), &project, &key,
                              error));
    if (options->show == SERVE_SHOW_KEY) {
        init_say(arena, service, key);
        return OK;
    }
    return init_save(arena, service, options->save_file, key, error);
}

int serve_init(const struct serve_init_options *options)
{
    AUTO_ARENA struct arena *arena = arena_create(COMMAND_BYTES_MAX);
    struct service *service = arena_alloc(arena, sizeof(*service));
    struct error error = {0};
    log_init(seam_system(), LOG_WARN);
    process_harden();
    if (options->show == SERVE_SAVE_KEY && options->save_file == NULL) {
        err usage = error_set(&error, INVALID, ERROR_INVALID_REQUEST,
                              "the new key is shown once only");
        error_hint(&error, "say --save FILE or --show-key");
        process_complain(&error);
        return usage == INVALID ? 2 : 1;
    }
    err result = init_make(arena, options, service, &error);
    if (result != OK) {
        process_complain(&error);
    }
    ground_close(service);
    return result == OK ? 0 : (result == INVALID ? 2 : 1);
}

/* ---- config check ---- */

int serve_config_check(const struct config_source *source)
{
    AUTO_ARENA struct arena *arena = arena_create(COMMAND_BYTES_MAX);
    struct config *config = NULL;
    struct error error = {0};
    buf out = buf_create(arena, 4 * KIB, 64 * KIB);
    err result = config_load(arena, source, &config, &error);
    if (result == OK) {
        result = ground_check_listener(config, &error);
    }
    if (result != OK) {
        buf_append_format(&out, "%s\n", error.message);
        buf_append_format(&out, error.hint[0] != '\0' ? "  %s\n" : "%s", error.hint);
        process_say(buf_str(&out));
        return 5;
    }
    config_print(config, &out);
    process_say(buf_str(&out));
    return 0;
}
