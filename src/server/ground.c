#include "server/ground.h"

#include "base/base64.h"
#include "base/log.h"
#include "io/crypto.h"
#include "io/file.h"
#include "sink/intake_early.h"
#include "sink/intake_log.h"
#include "sink/ledger.h"

enum { SECRET_BYTES = 32, LOG_SEGMENTS = 8 };
/* How long a group waits for room in a full log before it is refused. */
#define LOG_FULL_WAIT_US ((i64)5 * TIME_SECOND_US)

/* ---- the bootstrap secret ---- */

static str bootstrap_path(struct arena *arena, str directory)
{
    return str_format(arena, "%.*s/keys/bootstrap", STR_ARG(directory));
}

MUST_USE static err bootstrap_make(struct arena *arena, const struct seam *seam, str directory,
                                   struct error *error)
{
    char secret[SECRET_BYTES];
    buf line = buf_create(arena, 64, 64);
    str keys = str_format(arena, "%.*s/keys", STR_ARG(directory));
    str path = bootstrap_path(arena, directory);
    if (keys.data == NULL || path.data == NULL) {
        return error_memory(error);
    }
    TRY(file_make_directory(keys, error));
    seam_random(seam, secret, sizeof(secret));
    base64_encode_url(&line, (str){secret, sizeof(secret)});
    buf_append_byte(&line, '\n');
    crypto_wipe(secret, sizeof(secret));
    err result = file_write_new(path, buf_str(&line), error);
    crypto_wipe(line.data, line.size);
    return result;
}

MUST_USE static err bootstrap_check(struct arena *arena, const struct service *service,
                                    struct error *error)
{
    str path = bootstrap_path(arena, service->data_directory);
    if (path.data == NULL) {
        return error_memory(error);
    }
    if (!file_exists(path)) {
        return bootstrap_make(arena, service->seam, service->data_directory, error);
    }
    if (file_is_exposed(path)) {
        err result = error_set(error, INVALID, ERROR_INVALID_CONFIG, "others can read %.*s",
                               STR_ARG(path));
        error_hint(error, "chmod 600 %.*s", STR_ARG(path));
        return result;
    }
    return OK;
}

/* ---- opening ---- */

MUST_USE static err directory_open(struct arena *arena, const struct ground_options *options,
                                   struct service *service, struct error *error)
{
    TRY(file_absolute(arena, options->data, &service->data_directory, error));
    str ledger = str_format(arena, "%.*s/lhbox.db", STR_ARG(service->data_directory));
    if (ledger.data == NULL) {
        return error_memory(error);
    }
    if (options->make == GROUND_EXISTING && !file_exists(ledger)) {
        err result = error_set(error, NOT_FOUND, ERROR_NOT_FOUND, "there is no ledger in %.*s",
                               STR_ARG(service->data_directory));
        error_hint(error, "`lhbox init` makes one; `lhbox dev` needs none");
        return result;
    }
    TRY(file_make_directory(service->data_directory, error));
    TRY(file_lock_directory(service->data_directory, error));
    err opened = db_open_sqlite(arena, ledger, service->seam, &service->db, error);
    if (opened != OK) {
        error_hint(error, "the ledger is %.*s; docs/operations.md tells how to restore one",
                   STR_ARG(ledger));
    }
    return opened;
}

/* ---- the intake log ---- */

/* Warehouses whose files are here, though the ledger does not know them: an older copy of it, to
 * which they are given back by hand. What the log holds of them goes into their files meanwhile. */
enum { STRAYS_MAX = 64 };
struct strays {
    struct arena *arena;
    const struct service *service;
    struct warehouse items[STRAYS_MAX];
    size_t count;
};

/* Stays open until the process ends. */
static const struct warehouse *stray_open(struct strays *strays, str name)
{
    str files = str_format(strays->arena, "%.*s/warehouse/%.*s/files",
                           STR_ARG(strays->service->data_directory), STR_ARG(name));
    struct warehouse *warehouse = &strays->items[strays->count % STRAYS_MAX];
    struct error error = {0};
    if (strays->count == STRAYS_MAX || !store_key_valid(name) || files.data == NULL ||
        !file_exists(files)) {
        return NULL;
    }
    *warehouse = (struct warehouse){.name = str_copy(strays->arena, name)};
    err opened = warehouse->name.data == NULL
                     ? error_memory(&error)
                     : store_open_dir(strays->arena, files, &warehouse->files, &error);
    if (opened != OK) {
        log_error("warehouse_of_the_log_not_opened", opened, &error, name);
        return NULL;
    }
    strays->count++;
    return warehouse;
}

static const struct warehouse *find_warehouse(void *context, str name)
{
    struct strays *strays = context;
    const struct warehouse *known = warehouse_get(strays->service->warehouses, name);
    for (size_t i = 0; known == NULL && i < strays->count; i++) {
        known = str_equal(strays->items[i].name, name) ? &strays->items[i] : NULL;
    }
    return known != NULL ? known : stray_open(strays, name);
}

MUST_USE static err log_open(struct arena *arena, const struct ground_options *options,
                             struct service *service, struct error *error)
{
    str directory = str_format(arena, "%.*s/intake-log", STR_ARG(service->data_directory));
    if (directory.data == NULL) {
        return error_memory(error);
    }
    if (options->log_bytes == 0 && !file_exists(directory)) {
        return OK;
    }
    i64 least = (i64)LOG_SEGMENTS * JOURNAL_SEGMENT_BYTES_MIN;
    i64 bytes = num_max_i64(options->log_bytes, least) / LOG_SEGMENTS;
    const struct journal_options journal = {
        .directory = directory,
        .segment_bytes = (u64)(bytes / (4 * KIB) * (4 * KIB)),
        .segments = LOG_SEGMENTS,
        .identity = service->installation_id,
        .seam = service->seam,
    };
    struct strays *strays = arena_alloc(arena, sizeof(*strays));
    if (strays == NULL) {
        return error_memory(error);
    }
    strays->arena = arena;
    strays->service = service;
    const struct intake_log_options log = {.db = &service->db,
                                           .journal = &service->journal,
                                           .seam = service->seam,
                                           .find = find_warehouse,
                                           .find_context = strays,
                                           .full_wait_us = LOG_FULL_WAIT_US};
    TRY(journal_open_dir(arena, &journal, &service->journal, error));
    service->early = intake_early_create();
    return intake_log_open(arena, &log, &service->log, error);
}

err ground_open(struct arena *arena, const struct ground_options *options, struct service *service,
                struct error *error)
{
    struct warehouse_options warehouses = {.allowed_locations = options->allowed_locations,
                                           .allowed_count = options->allowed_count};
    TRY(directory_open(arena, options, service, error));
    warehouses.data_directory = service->data_directory;
    TRY(ledger_open(&service->db, service->seam, error));
    TRY(ledger_installation(&service->db, arena, &service->installation_id, error));
    TRY(bootstrap_check(arena, service, error));
    TRY(warehouses_open(arena, &service->db, service->seam, &warehouses, &service->warehouses,
                        error));
    return log_open(arena, options, service, error);
}

void ground_close(struct service *service)
{
    if (service->log != NULL) {
        intake_log_stop(service->log);
        intake_log_close(service->log);
        service->log = NULL;
    }
    intake_early_destroy(service->early);
    service->early = NULL;
    journal_close(&service->journal);
    if (service->warehouses != NULL) {
        warehouses_close(service->warehouses);
        service->warehouses = NULL;
    }
    if (service->db.ops != NULL) {
        db_close(&service->db);
    }
}

err ground_check_listener(const struct config *config, struct error *error)
{
    str address = config_text(config, CONFIG_SERVER_LISTEN);
    str certificate = config_text(config, CONFIG_SERVER_TLS_CERTIFICATE);
    str key = config_text(config, CONFIG_SERVER_TLS_KEY);
    bool loopback = str_starts(address, STR("127.")) || str_equal(address, STR("::1"));
    if ((certificate.size > 0) != (key.size > 0)) {
        return error_set(error, INVALID, ERROR_INVALID_CONFIG,
                         "tls_certificate and tls_key are set together or not at all");
    }
    str missing = key.size > 0 && !file_exists(key) ? key : certificate;
    if (missing.size > 0 && !file_exists(missing)) {
        return error_set(error, INVALID, ERROR_INVALID_CONFIG, "there is no %.*s",
                         STR_ARG(missing));
    }
    if (key.size > 0 && file_is_exposed(key)) {
        err result = error_set(error, INVALID, ERROR_INVALID_CONFIG, "others can read %.*s",
                               STR_ARG(key));
        error_hint(error, "chmod 600 %.*s", STR_ARG(key));
        return result;
    }
    if (key.size == 0 && !loopback && config_number(config, CONFIG_SERVER_INSECURE_HTTP) == 0) {
        err result = error_set(error, INVALID, ERROR_INVALID_CONFIG,
                               "keys would cross the network in the clear on %.*s",
                               STR_ARG(address));
        error_hint(error, "set tls_certificate and tls_key, or insecure_http = 1 behind a proxy");
        return result;
    }
    return OK;
}
