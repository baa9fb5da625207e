#include "server/serve.h"

#include "account/alert.h"
#include "base/assert.h"
#include "base/log.h"
#include "io/file.h"
#include "server/dev.h"
#include "server/dispatch.h"
#include "server/ground.h"
#include "server/process.h"
#include "server/recovery.h"
#include "server/roller.h"
#include "sink/intake.h"
#include "sink/intake_log.h"

#include <pthread.h>

enum { SERVER_BYTES_MAX = 256 * MIB, UNIX_PATH_MAX_SIZE = 107 };
#define INCARNATION_US   ((i64)60 * TIME_SECOND_US)
#define WATCH_US         ((i64)1 * TIME_SECOND_US)
#define WATCH_REST_TIMES 50
#define STOP_LOOK_US     ((i64)20 * 1000)

enum mode { MODE_SERVE, MODE_DEV };

struct server {
    struct arena *arena;
    struct config *config;
    enum mode mode;
    struct service service;
    struct dispatch *dispatch;
    struct http_server *_Atomic http; /* NULL: not yet */
    struct http_server *internal;     /* NULL: none */
    struct dev_profile profile;
    struct recovery recovery;
    pthread_mutex_t watch_lock; /* guards intake_open: the roller answers from its own threads */
    bool intake_open;
};

/* ---- intake and roller know each other through these ---- */

static void on_accepted(void *context, str sink_id)
{
    struct service *service = context;
    roller_wake(service->roller, sink_id);
}

/* A send that waits for its commit, at the roller. */
struct watch {
    struct arena *arena;
    struct server *server;
    str sink_id;
};

static void on_settled(void *context, bool settled)
{
    struct watch *watch = context;
    struct server *server = watch->server;
    (void)pthread_mutex_lock(&server->watch_lock);
    if (settled && server->intake_open) {
        intake_notify_committed(server->service.intake, watch->sink_id);
    }
    (void)pthread_mutex_unlock(&server->watch_lock);
    arena_destroy(watch->arena);
}

static void on_watch(void *context, str sink_id, i64 seq, i64 timeout_us)
{
    struct server *server = context;
    struct arena *arena = arena_create((size_t)4 * KIB);
    struct watch *watch = arena_alloc(arena, sizeof(*watch));
    assert(watch != NULL);
    *watch = (struct watch){.arena = arena, .server = server, .sink_id = str_copy(arena, sink_id)};
    struct error error = {0};
    err result = roller_wait(server->service.roller, watch->sink_id, seq, timeout_us, on_settled,
                             watch, &error);
    if (result != OK) {
        /* The send is answered at its timeout. */
        log_error("wait_not_watched", result, &error, sink_id);
        arena_destroy(arena);
    }
}

/* What was sent while this process was frozen must not look new after it (I4). */
static void on_lease_lost(void *context)
{
    struct server *server = context;
    struct http_server *http = atomic_load(&server->http);
    log_event(LOG_WARN, "node_lease_lost", LOG_S("data", server->service.data_directory));
    if (http != NULL) {
        http_server_drop(http);
    }
}

/* ---- start ---- */

MUST_USE static err start_intake(struct server *server, struct error *error)
{
    const struct config *config = server->config;
    struct intake_options options = intake_options_default();
    options.db = &server->service.db;
    options.seam = server->service.seam;
    options.warehouses = server->service.warehouses;
    options.limits = (struct intake_limits){
        .body_bytes_max = config_number(config, CONFIG_INTAKE_BODY_BYTES_MAX),
        .rows_max = config_number(config, CONFIG_INTAKE_ROWS_MAX),
        .row_bytes_max = config_number(config, CONFIG_INTAKE_ROW_BYTES_MAX),
        .row_depth_max = config_number(config, CONFIG_INTAKE_ROW_DEPTH_MAX),
    };
    options.workers = (i32)config_number(config, CONFIG_INTAKE_WORKERS);
    options.queue_max = (i32)config_number(config, CONFIG_INTAKE_QUEUE_MAX);
    options.index_bytes_max = config_number(config, CONFIG_INTAKE_INDEX_BYTES);
    options.waits_max = (i32)config_number(config, CONFIG_INTAKE_WAITS_MAX);
    options.dry_run_rows_max = config_number(config, CONFIG_INTAKE_DRY_RUN_ROWS_MAX);
    options.failures_per_minute_max = (i32)config_number(config, CONFIG_INTAKE_FAILURES_PER_MINUTE);
    options.backlog = (struct ledger_backlog){
        .batches_max = config_number(config, CONFIG_INTAKE_BACKLOG_BATCHES),
        .bytes_max = config_number(config, CONFIG_INTAKE_BACKLOG_BYTES),
    };
    options.bucket_bytes_max = config_number(config, CONFIG_QUOTA_BUCKET_BYTES);
    options.accepted = on_accepted;
    options.accepted_context = &server->service;
    options.answers_begin = http_answers_hold;
    options.answers_end = http_answers_release;
    options.watch = on_watch;
    options.watch_context = server;
    options.lease_lost = on_lease_lost;
    options.lease_lost_context = server;
    bool logs = config_number(config, CONFIG_INTAKE_LOG_BYTES) > 0;
    options.log = logs ? server->service.log : NULL;
    options.early = server->service.early;
    if (options.log != NULL) {
        intake_log_start(options.log);
    }
    TRY(intake_open(server->arena, &options, &server->service.intake, error));
    server->intake_open = true; /* before any other thread of ours asks */
    return OK;
}

MUST_USE static err start_roller(struct server *server, struct error *error)
{
    struct roller_options options = {
        .db = &server->service.db,
        .seam = server->service.seam,
        .warehouses = server->service.warehouses,
        .installation_id = server->service.installation_id,
        .node_id = server->service.node_id,
        .early = server->service.early,
        .limits = server->mode == MODE_DEV ? policy_limits_dev() : policy_limits_default(),
        .workers = (i32)config_number(server->config, CONFIG_ROLL_WORKERS),
        .threads = (i32)config_number(server->config, CONFIG_ROLL_THREADS),
    };
    options.limits.batches = config_number(server->config, CONFIG_ROLL_BATCHES);
    return roller_start(server->arena, &options, &server->service.roller, error);
}

static struct http_options http_options_of(const struct config *config)
{
    struct http_options options = http_options_default();
    options.address = config_text(config, CONFIG_SERVER_LISTEN);
    options.port = (i32)config_number(config, CONFIG_SERVER_PORT);
    options.threads = (i32)config_number(config, CONFIG_SERVER_THREADS);
    options.tls_certificate_file = config_text(config, CONFIG_SERVER_TLS_CERTIFICATE);
    options.tls_key_file = config_text(config, CONFIG_SERVER_TLS_KEY);
    options.connections_max = (i32)config_number(config, CONFIG_SERVER_CONNECTIONS_MAX);
    options.body_bytes_max = num_max_i64(config_number(config, CONFIG_INTAKE_BODY_BYTES_MAX),
                                         DISPATCH_BODY_BYTES_MAX);
    options.raw_prefix = STR("/iceberg/v1/"); /* names in the catalog may have slashes */
    options.bodies_bytes_max = config_number(config, CONFIG_SERVER_BODIES_BYTES_MAX);
    options.head_bytes_max = (i32)config_number(config, CONFIG_SERVER_HEAD_BYTES_MAX);
    options.target_bytes_max = (i32)config_number(config, CONFIG_SERVER_TARGET_BYTES_MAX);
    options.header_count_max = (i32)config_number(config, CONFIG_SERVER_HEADER_COUNT_MAX);
    options.head_timeout_us = config_number(config, CONFIG_SERVER_HEAD_SECONDS) * TIME_SECOND_US;
    options.body_timeout_us = config_number(config, CONFIG_SERVER_BODY_SECONDS) * TIME_SECOND_US;
    options.body_rate_min = config_number(config, CONFIG_SERVER_BODY_RATE_MIN);
    options.answer_timeout_us = config_number(config, CONFIG_SERVER_ANSWER_SECONDS) *
                                TIME_SECOND_US;
    options.park_timeout_us = config_number(config, CONFIG_SERVER_PARK_SECONDS) * TIME_SECOND_US;
    options.idle_timeout_us = config_number(config, CONFIG_SERVER_IDLE_SECONDS) * TIME_SECOND_US;
    options.requests_per_connection = (i32)config_number(config,
                                                         CONFIG_SERVER_REQUESTS_PER_CONNECTION);
    return options;
}

MUST_USE static err name_public_url(struct server *server, struct error *error)
{
    str given = config_text(server->config, CONFIG_SERVER_PUBLIC_URL);
    str address = config_text(server->config, CONFIG_SERVER_LISTEN);
    bool tls = config_text(server->config, CONFIG_SERVER_TLS_CERTIFICATE).size > 0;
    bool v6 = str_find_byte(address, ':') >= 0;
    server->service.public_url = given;
    if (given.size == 0) {
        server->service.public_url = str_format(
            server->arena, "%s://%s%.*s%s:%d", tls ? "https" : "http", v6 ? "[" : "",
            STR_ARG(address), v6 ? "]" : "", http_server_port(server->http));
    }
    return server->service.public_url.data != NULL ? OK : error_memory(error);
}

/* Metrics and the internal routes, on a socket in the data directory. */
MUST_USE static err start_internal(struct server *server, struct error *error)
{
    struct http_handlers handlers = dispatch_internal(server->dispatch);
    struct http_options options = http_options_of(server->config);
    str directory = server->service.data_directory;
    options.address = str_format(server->arena, "unix:%.*s/internal.sock", STR_ARG(directory));
    options.tls_certificate_file = STR("");
    options.tls_key_file = STR("");
    options.threads = 1;
    options.connections_max = 64;
    options.park_timeout_us = TIME_DAY_US; /* a backup takes its time */
    server->service.internal_url = STR("");
    if (options.address.size > UNIX_PATH_MAX_SIZE + 5) {
        log_event(LOG_WARN, "no_internal_listener", LOG_S("directory", directory),
                  LOG_S("reason", STR("the path is too long for a socket")));
        return OK;
    }
    TRY(http_server_start(server->arena, &options, &handlers, server->service.seam,
                          &server->internal, error));
    server->service.internal_url = options.address;
    return OK;
}

MUST_USE static err start_http(struct server *server, struct error *error)
{
    struct http_options options = http_options_of(server->config);
    TRY(dispatch_open(
        server->arena, &server->service, (i32)config_number(server->config, CONFIG_SERVER_WORKERS),
        (size_t)config_number(server->config, CONFIG_SERVER_QUEUE_MAX), &server->dispatch, error));
    struct http_handlers handlers = dispatch_public(server->dispatch);
    struct http_server *http = NULL;
    TRY(start_internal(server, error));
    TRY(http_server_start(server->arena, &options, &handlers, server->service.seam, &http, error));
    atomic_store(&server->http, http);
    return name_public_url(server, error);
}

/* Before anything is served (exactly-once section 9); each sink's story goes to the log. */
MUST_USE static err recover(struct server *server, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create(SERVER_BYTES_MAX);
    struct restore_report report = {0};
    bool copy = false;
    return recovery_run(&server->recovery, &server->service, arena, RECOVERY_START, &report, &copy,
                        error);
}

MUST_USE static err start_ground(struct server *server, struct error *error)
{
    struct service *service = &server->service;
    struct ground_options options = {
        .data = config_text(server->config, CONFIG_SERVER_DATA),
        .make = server->mode == MODE_DEV ? GROUND_MAKE : GROUND_EXISTING,
        .log_bytes = config_number(server->config, CONFIG_INTAKE_LOG_BYTES),
        .allowed_locations = server->config->locations,
        .allowed_count = server->config->location_count,
    };
    service->seam = seam_system();
    service->config = server->config;
    service->dev = server->mode == MODE_DEV;
    service->node_id = id_short_make(server->arena, service->seam, "nod_");
    TRY(ground_open(server->arena, &options, service, error));
    TRY(recover(server, error));
    return server->mode == MODE_DEV ? dev_prepare(server->arena, service, &server->profile, error)
                                    : OK;
}

MUST_USE static err start(struct server *server, struct error *error)
{
    TRY(ground_check_listener(server->config, error));
    TRY(start_ground(server, error));
    TRY(start_intake(server, error));
    TRY(start_roller(server, error));
    if (server->mode == MODE_DEV) {
        TRY(dev_renew_sink(server->arena, &server->service, &server->profile, error));
    }
    TRY(start_http(server, error));
    if (server->mode == MODE_DEV) {
        TRY(dev_save(server->arena, &server->service, &server->profile, error));
        process_say(dev_greeting(server->arena, &server->service, &server->profile));
    }
    log_event(LOG_INFO, "serving", LOG_S("url", server->service.public_url),
              LOG_S("data", server->service.data_directory),
              LOG_S("installation", server->service.installation_id));
    return OK;
}

/* ---- run ---- */

/* Below the limit the intake refuses; rolls, deletes and the ledger go on. */
static void watch_disk(const struct server *server)
{
    i64 free_bytes = 0;
    i64 total = 0;
    struct error error = {0};
    err result = file_space(server->service.data_directory, &free_bytes, &total, &error);
    if (result != OK) {
        log_error("disk_not_measured", result, &error, server->service.data_directory);
        return;
    }
    i64 percent = total / 100 * config_number(server->config, CONFIG_SERVER_DISK_FREE_PERCENT);
    i64 bytes = num_min_i64(config_number(server->config, CONFIG_SERVER_DISK_FREE_BYTES),
                            total / 10);
    bool low = free_bytes < num_max_i64(percent, bytes);
    intake_refuse(server->service.intake, low ? ERROR_DISK_LOW : ERROR_NONE);
}

static void watch_sinks(const struct server *server)
{
    struct error error = {0};
    err result = alert_look(&server->service.db, server->service.seam, &error);
    if (result != OK) {
        log_error("alerts_not_looked_at", result, &error, STR(""));
    }
}

static void run(struct server *server)
{
    i64 watched_at = seam_monotonic_us(server->service.seam);
    i64 sinks_at = watched_at;
    do {
        i64 now = seam_monotonic_us(server->service.seam);
        watch_disk(server);
        if (now >= sinks_at) {
            watch_sinks(server);
            i64 took = seam_monotonic_us(server->service.seam) - now;
            sinks_at = now + WATCH_REST_TIMES * took; /* it reads all that waits */
        }
        if (now - watched_at >= INCARNATION_US || recovery_is_due(&server->recovery)) {
            recovery_watch(&server->recovery);
            watched_at = now;
        }
    } while (!process_signalled(WATCH_US));
}

/* ---- stop ---- */

/* Waits until no request is under way. False: it took too long, or a second signal came. */
static bool wait_for_requests(const struct server *server, i64 timeout_us)
{
    for (i64 waited = 0; waited < timeout_us; waited += STOP_LOOK_US) {
        i64 active = http_server_active(server->http);
        active += server->internal != NULL ? http_server_active(server->internal) : 0;
        if (active == 0) {
            return true;
        }
        if (process_signalled(STOP_LOOK_US)) {
            return false;
        }
    }
    return false;
}

/* Who calls others goes before them: the requests call the intake and the roller, the intake wakes
 * the roller. What the roller still answers finds the intake closed. */
static void close_parts(struct server *server)
{
    if (server->dispatch != NULL) {
        dispatch_close(server->dispatch);
    }
    if (server->service.intake != NULL) {
        (void)pthread_mutex_lock(&server->watch_lock);
        server->intake_open = false;
        (void)pthread_mutex_unlock(&server->watch_lock);
        intake_close(server->service.intake);
    }
    if (server->service.roller != NULL) {
        roller_stop(server->service.roller);
    }
    if (server->http != NULL) {
        http_server_stop(server->http);
    }
    if (server->internal != NULL) {
        http_server_stop(server->internal);
    }
    ground_close(&server->service);
    (void)pthread_mutex_destroy(&server->watch_lock);
}

/* Readiness turns first, then the listener closes, then what is under way ends. A second signal
 * ends the process at once. */
static void stop(struct server *server)
{
    i64 linger_us = config_number(server->config, CONFIG_SERVER_LINGER_SECONDS) * TIME_SECOND_US;
    i64 finish_us = config_number(server->config, CONFIG_SERVER_FINISH_SECONDS) * TIME_SECOND_US;
    log_event(LOG_INFO, "stopping", LOG_S("data", server->service.data_directory));
    atomic_store(&server->service.draining, true);
    if (linger_us > 0 && process_signalled(linger_us)) {
        process_leave(0);
    }
    intake_refuse(server->service.intake, ERROR_DRAINING);
    intake_end_waits(server->service.intake);
    http_server_drain(server->http);
    if (server->internal != NULL) {
        http_server_drain(server->internal);
    }
    if (!wait_for_requests(server, finish_us)) {
        /* Their threads still use what would be closed; what is not answered was not promised. */
        process_leave(0);
    }
    close_parts(server);
    log_event(LOG_INFO, "stopped", LOG_S("data", server->service.data_directory));
}

/* ---- the commands ---- */

static enum log_level level_of(str text)
{
    return str_equal(text, STR("debug"))   ? LOG_DEBUG
           : str_equal(text, STR("warn"))  ? LOG_WARN
           : str_equal(text, STR("error")) ? LOG_ERROR
                                           : LOG_INFO;
}

static int fail(struct server *server, err result, const struct error *error)
{
    process_complain(error);
    close_parts(server);
    return result == INVALID ? 2 : 1;
}

/* A developer's machine: no pause before the stop, and a small disk is no reason to refuse. */
static void dev_defaults(struct config *config)
{
    config_default(config, CONFIG_SERVER_LINGER_SECONDS, STR("0"), 0);
    config_default(config, CONFIG_SERVER_DISK_FREE_PERCENT, STR("0"), 0);
    config_default(config, CONFIG_SERVER_DISK_FREE_BYTES, STR("64MiB"), (i64)64 * MIB);
    config_default(config, CONFIG_INTAKE_LOG_BYTES, STR("16MiB"), (i64)16 * MIB);
}

static int serve(const struct config_source *source, enum mode mode)
{
    AUTO_ARENA struct arena *arena = arena_create(SERVER_BYTES_MAX);
    struct server *server = arena_alloc(arena, sizeof(*server));
    struct error error = {0};
    assert(server != NULL);
    server->arena = arena;
    server->mode = mode;
    int made = pthread_mutex_init(&server->watch_lock, NULL);
    assert(made == 0);
    err result = config_load(arena, source, &server->config, &error);
    if (result != OK) {
        process_complain(&error);
        return 2;
    }
    if (mode == MODE_DEV) {
        dev_defaults(server->config);
    }
    log_init(seam_system(), level_of(config_text(server->config, CONFIG_LOG_LEVEL)));
    process_harden();
    process_hold_signals();
    result = start(server, &error);
    if (result != OK) {
        return fail(server, result, &error);
    }
    run(server);
    stop(server);
    return 0;
}

int serve_dev(const struct config_source *source)
{
    return serve(source, MODE_DEV);
}

int serve_run(const struct config_source *source)
{
    return serve(source, MODE_SERVE);
}
