#include "server/recovery.h"

#include "base/log.h"
#include "server/ground.h"
#include "server/process.h"
#include "sink/intake_early.h"
#include "sink/intake_log.h"
#include "sink/ledger_recover.h"
#include "sink/orphan.h"
#include "table/catalog_restore.h"

enum { RECOVERY_BYTES_MAX = 256 * MIB, RECOVERY_PAGE = 100, EXIT_FOUND = 5 };
#define EARLY_WAIT_US ((i64)2 * TIME_SECOND_US)

static struct roll_env env_of(const struct recovery *recovery, const struct warehouse *warehouse)
{
    return (struct roll_env){
        .db = &recovery->service->db,
        .seam = recovery->service->seam,
        .warehouse = warehouse,
        .installation_id = recovery->service->installation_id,
        .holder = recovery->service->installation_id, /* as the roller's */
        .early = recovery->service->early,
    };
}

static void look_up_warehouses(struct recovery *recovery)
{
    const struct service *service = recovery->service;
    i64 seen = recovery->incarnation.seen;
    recovery->incarnation = (struct incarnation){
        .db = &service->db,
        .warehouses = recovery->warehouses,
        .count = warehouse_list(service->warehouses, STR(""), recovery->warehouses, WAREHOUSES_MAX),
        .installation_id = service->installation_id,
        .seen = seen,
    };
}

/* ---- step 0 ---- */

/* A pointer that had to move: whatever its incarnation says, the ledger is a copy. */
MUST_USE static err restore_pointers(const struct recovery *recovery, bool *out_moved,
                                     struct error *error)
{
    *out_moved = false;
    for (size_t i = 0; i < recovery->incarnation.count; i++) {
        const struct warehouse *warehouse = recovery->warehouses[i];
        struct catalog_local *local = catalog_local_of(&warehouse->catalog);
        struct catalog_restored restored = {0};
        if (local != NULL) {
            TRY(catalog_restore_pointers(local, &restored, error));
            *out_moved = *out_moved || restored.moved > 0;
        }
    }
    return OK;
}

/* ---- the sinks ---- */

MUST_USE static err restore_sinks(const struct recovery *recovery, struct arena *arena,
                                  enum restore_which which, struct restore_report *report,
                                  struct error *error)
{
    for (size_t i = 0; i < recovery->incarnation.count; i++) {
        const struct roll_env env = env_of(recovery, recovery->warehouses[i]);
        TRY(restore_warehouse(&env, arena, which, report, error));
    }
    return OK;
}

/* After the flags: into sinks of an older ledger nothing is accepted, but their files are kept for
 * what follows. */
MUST_USE static err replay_log(const struct service *service, struct error *error)
{
    struct intake_log_replayed replayed = {0};
    return service->log == NULL ? OK : intake_log_replay(service->log, &replayed, error);
}

err recovery_run(struct recovery *recovery, const struct service *service, struct arena *arena,
                 enum recovery_why why, struct restore_report *out_report, bool *out_copy,
                 struct error *error)
{
    enum incarnation_reading reading = INCARNATION_FINE;
    recovery->service = service;
    look_up_warehouses(recovery);
    *out_report = (struct restore_report){0};
    TRY(incarnation_read(&recovery->incarnation, &reading, error));
    bool moved = false;
    TRY(restore_pointers(recovery, &moved, error));
    *out_copy = reading == INCARNATION_BEHIND || moved;
    bool all = *out_copy || why == RECOVERY_COMMAND;
    if (all) {
        log_event(LOG_WARN, "recovering_all_sinks", LOG_S("data", service->data_directory),
                  LOG_S("reason", *out_copy ? STR("the ledger is an older copy")
                                            : STR("asked for by command")));
        /* The flags come first: whatever happens now, no sink is served that was not recovered. */
        intake_early_close_all(service->early);
        TRY(ledger_begin_recover(&service->db, STR(""), error));
    }
    TRY(replay_log(service, error));
    TRY(restore_sinks(recovery, arena, all ? RESTORE_ALL : RESTORE_FLAGGED, out_report, error));
    if (*out_copy) {
        TRY(ledger_unmark_copy(&service->db, error));
    }
    return incarnation_raise(&recovery->incarnation, error);
}

bool recovery_is_due(const struct recovery *recovery)
{
    const struct warehouse *all[WAREHOUSES_MAX];
    return warehouse_list(recovery->service->warehouses, STR(""), all, WAREHOUSES_MAX) !=
           recovery->incarnation.count;
}

void recovery_watch(struct recovery *recovery)
{
    enum incarnation_reading reading = INCARNATION_FINE;
    struct error error = {0};
    look_up_warehouses(recovery);
    err watched = incarnation_watch(&recovery->incarnation, &reading, &error);
    if (watched == OK && reading == INCARNATION_BEHIND) {
        log_event(LOG_ERROR, "ledger_put_back_while_serving",
                  LOG_S("data", recovery->service->data_directory));
        bool moved = false;
        intake_early_close_all(recovery->service->early);
        bool made = intake_early_await(recovery->service->early, recovery->service->seam,
                                       EARLY_WAIT_US);
        watched = made ? restore_pointers(recovery, &moved, &error)
                       : error_set(&error, BUSY, ERROR_UNAVAILABLE,
                                   "accepted batches are not in the ledger yet");
        watched = watched == OK ? ledger_begin_recover(&recovery->service->db, STR(""), &error)
                                : watched;
        watched = watched == OK ? incarnation_raise(&recovery->incarnation, &error) : watched;
    }
    if (watched != OK) {
        log_error("incarnation_not_watched", watched, &error, STR(""));
    }
}

/* ---- the command ---- */

static bool all_recovered(const struct restore_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        if (report->sinks[i].end == RESTORE_STOPPED || report->sinks[i].end == RESTORE_LATER) {
            return false;
        }
    }
    return true;
}

MUST_USE static err run_command(struct arena *arena, const struct config_source *source,
                                struct service *service, struct restore_report *out_report,
                                struct error *error)
{
    struct config *config = NULL;
    bool copy = false;
    struct recovery *recovery = arena_alloc(arena, sizeof(*recovery));
    if (recovery == NULL) {
        return error_memory(error);
    }
    TRY(config_load(arena, source, &config, error));
    struct ground_options ground = {.data = config_text(config, CONFIG_SERVER_DATA),
                                    .make = GROUND_EXISTING,
                                    .log_bytes = config_number(config, CONFIG_INTAKE_LOG_BYTES),
                                    .allowed_locations = config->locations,
                                    .allowed_count = config->location_count};
    service->seam = seam_system();
    TRY(ground_open(arena, &ground, service, error));
    return recovery_run(recovery, service, arena, RECOVERY_COMMAND, out_report, &copy, error);
}

int recovery_command(const struct config_source *source, enum restore_form form)
{
    AUTO_ARENA struct arena *arena = arena_create(RECOVERY_BYTES_MAX);
    struct service *service = arena_alloc(arena, sizeof(*service));
    struct restore_report report = {0};
    struct error error = {0};
    log_init(seam_system(), LOG_ERROR);
    process_harden();
    err result = run_command(arena, source, service, &report, &error);
    ground_close(service);
    if (result != OK) {
        process_complain(&error);
        return result == INVALID ? 2 : 1;
    }
    buf out = buf_create(arena, 16 * KIB, 64 * MIB);
    restore_print(&out, &report, form);
    if (form == RESTORE_TEXT && report.count == 0) {
        buf_append(&out, STR("there is no sink to recover\n"));
    }
    process_say(buf_str(&out));
    return all_recovered(&report) ? 0 : EXIT_FOUND;
}
