#include "server/backup.h"

#include "base/assert.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/log.h"
#include "io/file.h"
#include "server/roller.h"
#include "sink/intake_early.h"
#include "sink/intake_log.h"
#include "sink/ledger_recover.h"
#include "table/catalog_local.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SUMS_BYTES_MAX = 1024 * MIB, COPY_BYTES_MAX = 256 * MIB, SINKS_PAGE = 100 };

#define HINT          "version-hint.text"
#define EARLY_WAIT_US ((i64)10 * TIME_SECOND_US)

struct backup {
    struct service *service;
    struct arena *arena;
    str from;
    str to;
    enum file_tree_how how;
    str part; /* of the directory that is being copied: "warehouse" */
    buf sums; /* SHA256SUMS, as sha256sum(1) reads it */
    struct backup_report *report;
};

/* ---- where to ---- */

static bool lies_in(str path, str directory)
{
    return str_equal(path, directory) ||
           (str_starts(path, directory) && path.data[directory.size] == '/');
}

MUST_USE static err check_target(const struct backup *backup, struct error *error)
{
    bool empty = false;
    if (backup->to.size < 2 || backup->to.data[0] != '/') {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "the backup's directory must be an absolute path");
    }
    if (lies_in(backup->to, backup->from) || lies_in(backup->from, backup->to)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "the backup's directory and the data directory lie in each other");
    }
    TRY(file_tree_is_empty(backup->to, &empty, error));
    if (!empty) {
        return error_set(error, CONFLICT, ERROR_NAME_TAKEN, "there is something in %.*s already",
                         STR_ARG(backup->to));
    }
    return OK;
}

static str below(const struct backup *backup, str root, const char *name)
{
    return str_format(backup->arena, "%.*s/%s", STR_ARG(root), name);
}

/* ---- copying ---- */

static void add_sum(struct backup *backup, const struct sha256 *hash, str part, str path)
{
    base64_hex(&backup->sums, (str){(const char *)hash->bytes, sizeof(hash->bytes)});
    buf_append(&backup->sums, STR("  "));
    buf_append(&backup->sums, part);
    buf_append(&backup->sums, part.size > 0 ? STR("/") : STR(""));
    buf_append(&backup->sums, path);
    buf_append_byte(&backup->sums, '\n');
}

static err on_file(void *context, const struct file_tree_file *file, struct error *error)
{
    struct backup *backup = context;
    backup->report->files++;
    backup->report->bytes += file->bytes;
    if (file->has_hash && str_find_byte(file->path, '\\') < 0) {
        add_sum(backup, &file->hash, backup->part, file->path);
    }
    return buf_ok(&backup->sums) ? OK : error_memory(error);
}

MUST_USE static err copy_part(struct backup *backup, const char *part, const char *only,
                              const char *except, struct error *error)
{
    struct file_tree tree = {
        .from = below(backup, backup->from, part),
        .to = below(backup, backup->to, part),
        .how = backup->how,
        .only = str_from(only),
        .except = str_from(except),
        .told = on_file,
        .context = backup,
    };
    backup->part = str_from(part);
    if (tree.from.data == NULL || tree.to.data == NULL) {
        return error_memory(error);
    }
    return file_tree_copy(&tree, error);
}

/* One file of the data directory itself, when it is there. Mode 0600, as it was. */
MUST_USE static err copy_single(struct backup *backup, const char *name, struct error *error)
{
    str from = below(backup, backup->from, name);
    str to = below(backup, backup->to, name);
    str bytes = {0};
    if (from.data == NULL || to.data == NULL) {
        return error_memory(error);
    }
    if (!file_exists(from)) {
        return OK;
    }
    TRY(file_read(backup->arena, from, MIB, &bytes, error));
    TRY(file_write_new(to, bytes, error));
    struct sha256 hash = crypto_sha256(bytes);
    add_sum(backup, &hash, STR(""), str_from(name));
    backup->report->files++;
    backup->report->bytes += (i64)bytes.size;
    return OK;
}

/* The ledger first: what it names is durable. It gets its name when all is done. */
MUST_USE static err copy_all(struct backup *backup, str ledger, struct error *error)
{
    if (!intake_early_await(backup->service->early, backup->service->seam, EARLY_WAIT_US)) {
        return error_set(error, BUSY, ERROR_UNAVAILABLE,
                         "accepted batches are not in the ledger yet: is the disk full?");
    }
    TRY(file_make_directory(backup->to, error));
    TRY(db_backup(&backup->service->db, ledger, error));
    TRY(copy_part(backup, "keys", "", "", error));
    TRY(copy_single(backup, "dev.json", error));
    TRY(copy_part(backup, "warehouse", HINT, "", error));
    TRY(copy_part(backup, "warehouse", "", HINT, error));
    /* A link shares the original's bytes, of which the log may be the only durable copy: now the
     * store is. The log itself is no part of a backup; what it holds is in ledger and store. */
    struct intake_log *log = backup->service->log;
    return log == NULL ? OK : intake_log_checkpoint(log, error);
}

/* ---- the copy is looked at ---- */

/* A warehouse whose files are those of the copy, though its URIs name the original's places. */
struct copied_warehouse {
    struct warehouse warehouse;
    struct store tables;
};

MUST_USE static err open_copy(struct backup *backup, struct arena *arena, const struct db *db,
                              const struct warehouse *original, struct copied_warehouse *copy,
                              struct error *error)
{
    str root = str_format(arena, "%.*s/warehouse/%.*s", STR_ARG(backup->to),
                          STR_ARG(original->name));
    str files = str_format(arena, "%.*s/files", STR_ARG(root));
    str tables = str_format(arena, "%.*s/tables", STR_ARG(root));
    struct location *items = arena_array(arena, original->locations.count, sizeof(*items));
    if (files.data == NULL || tables.data == NULL || items == NULL) {
        return error_memory(error);
    }
    TRY(store_open_dir(arena, files, &copy->warehouse.files, error));
    err opened = store_open_dir(arena, tables, &copy->tables, error);
    if (opened != OK) {
        store_close(&copy->warehouse.files);
        return opened;
    }
    memcpy(items, original->locations.items, original->locations.count * sizeof(*items));
    items[0].store = copy->tables;
    copy->warehouse.name = original->name;
    copy->warehouse.project = original->project;
    copy->warehouse.embedded = original->embedded;
    copy->warehouse.tables_uri = original->tables_uri;
    copy->warehouse.locations = (struct location_set){items, original->locations.count};
    const struct catalog_local_options options = {
        .db = db,
        .seam = backup->service->seam,
        .warehouse = original->name,
        .tables_uri = original->tables_uri,
        .locations = &copy->warehouse.locations,
    };
    return catalog_local_open(arena, &options, &copy->warehouse.catalog, error);
}

static void close_copy(struct copied_warehouse *copy)
{
    catalog_local_close(&copy->warehouse.catalog);
    store_close(&copy->warehouse.files);
    store_close(&copy->tables);
}

MUST_USE static err keep_findings(struct backup *backup, str name,
                                  const struct verify_report *found, struct error *error)
{
    struct backup_report *report = backup->report;
    report->sinks++;
    report->findings_in_all += found->findings_in_all;
    for (size_t i = 0; i < found->finding_count && report->finding_count < BACKUP_FINDINGS_MAX;
         i++) {
        struct backup_finding *kept = &report->findings[report->finding_count++];
        kept->sink = str_copy(backup->arena, name);
        kept->finding = found->findings[i];
        kept->finding.subject = str_copy(backup->arena, kept->finding.subject);
        kept->finding.text = str_copy(backup->arena, kept->finding.text);
        if (kept->sink.data == NULL || kept->finding.subject.data == NULL ||
            kept->finding.text.data == NULL) {
            return error_memory(error);
        }
    }
    return OK;
}

MUST_USE static err verify_warehouse(struct backup *backup, const struct db *db,
                                     const struct warehouse *warehouse, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create(COPY_BYTES_MAX);
    const struct verify_env env = {
        .db = db,
        .seam = backup->service->seam,
        .warehouse = warehouse,
        .installation_id = backup->service->installation_id,
        .what = VERIFY_COPY,
        .depth = VERIFY_SIZES,
    };
    str after = STR("");
    size_t count = SINKS_PAGE;
    while (count == SINKS_PAGE) {
        struct ledger_sink *sinks = NULL;
        TRY(ledger_list_sinks(db, arena, STR(""), warehouse->name, false, after, SINKS_PAGE, &sinks,
                              &count, error));
        for (size_t i = 0; i < count; i++) {
            struct verify_report found = {0};
            struct arena_mark mark = arena_mark(arena);
            TRY(verify_sink(&env, arena, sinks[i].id, &found, error));
            TRY(keep_findings(backup, sinks[i].name, &found, error));
            arena_reset_to(arena, mark);
        }
        after = count > 0 ? sinks[count - 1].id : after;
    }
    return OK;
}

MUST_USE static err verify_copy(struct backup *backup, const struct db *db, struct error *error)
{
    const struct warehouse **all = arena_array(backup->arena, WAREHOUSES_MAX, sizeof(*all));
    if (all == NULL) {
        return error_memory(error);
    }
    size_t count = warehouse_list(backup->service->warehouses, STR(""), all, WAREHOUSES_MAX);
    for (size_t i = 0; i < count; i++) {
        AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
        struct copied_warehouse copy = {0};
        TRY(open_copy(backup, arena, db, all[i], &copy, error));
        err verified = verify_warehouse(backup, db, &copy.warehouse, error);
        close_copy(&copy);
        TRY(verified);
    }
    return OK;
}

/* Marked before it is looked at: whatever becomes of it, it recovers before it serves. */
MUST_USE static err look_at_copy(struct backup *backup, str ledger, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create(COPY_BYTES_MAX);
    struct db db = {0};
    TRY(db_open_sqlite(arena, ledger, backup->service->seam, &db, error));
    err result = ledger_mark_copy(&db, error);
    result = result == OK ? verify_copy(backup, &db, error) : result;
    db_close(&db);
    return result;
}

/* ---- its end ---- */

MUST_USE static err finish(struct backup *backup, str ledger, struct error *error)
{
    struct sha256 hash = {{0}};
    i64 bytes = 0;
    str name = below(backup, backup->to, "lhbox.db");
    str sums = below(backup, backup->to, "SHA256SUMS");
    if (name.data == NULL || sums.data == NULL) {
        return error_memory(error);
    }
    TRY(file_tree_hash(ledger, &hash, &bytes, error));
    add_sum(backup, &hash, STR(""), STR("lhbox.db"));
    if (!buf_ok(&backup->sums)) {
        return error_memory(error);
    }
    backup->report->files++;
    backup->report->bytes += bytes;
    if (rename(ledger.data, name.data) != 0) {
        return error_set(error, IO, ERROR_STORE_DOWN, "naming %.*s: %s", STR_ARG(name),
                         strerror(errno));
    }
    /* Its directory is synced with it, and so is the new name. */
    return file_write_durable(sums, buf_str(&backup->sums), 0600, error);
}

/* Rolls go on, and leave a few old metadata files to each table: what the copied ledger or a copied
 * hint names would be gone before it is copied. */
static size_t pause_trims(const struct backup *backup)
{
    const struct warehouse *all[WAREHOUSES_MAX];
    size_t count = warehouse_list(backup->service->warehouses, STR(""), all, WAREHOUSES_MAX);
    for (size_t i = 0; i < count; i++) {
        struct catalog_local *local = catalog_local_of(&all[i]->catalog);
        if (local != NULL) {
            catalog_local_pause_trims(local);
        }
    }
    return count;
}

/* Of the first `count` warehouses: others were made since. */
static void resume_trims(const struct backup *backup, size_t count)
{
    const struct warehouse *all[WAREHOUSES_MAX];
    size_t there = warehouse_list(backup->service->warehouses, STR(""), all, WAREHOUSES_MAX);
    assert(there >= count);
    for (size_t i = 0; i < count; i++) {
        struct catalog_local *local = catalog_local_of(&all[i]->catalog);
        if (local != NULL) {
            catalog_local_resume_trims(local);
        }
    }
}

MUST_USE static err make(struct backup *backup, struct error *error)
{
    str ledger = below(backup, backup->to, "lhbox.db.part");
    if (ledger.data == NULL) {
        return error_memory(error);
    }
    TRY(check_target(backup, error));
    TRY(roller_pause_deletes(backup->service->roller, error));
    size_t paused = pause_trims(backup);
    err copied = copy_all(backup, ledger, error);
    resume_trims(backup, paused);
    roller_resume_deletes(backup->service->roller);
    TRY(copied);
    TRY(look_at_copy(backup, ledger, error));
    return finish(backup, ledger, error);
}

err backup_make(struct service *service, struct arena *arena, str directory, enum file_tree_how how,
                struct backup_report *out_report, struct error *error)
{
    AUTO_ARENA struct arena *sums = arena_create(SUMS_BYTES_MAX);
    struct backup backup = {
        .service = service,
        .arena = arena,
        .from = service->data_directory,
        .to = directory,
        .how = how,
        .sums = buf_create(sums, 64 * KIB, SUMS_BYTES_MAX / 2),
        .report = out_report,
    };
    i64 began = seam_monotonic_us(service->seam);
    *out_report = (struct backup_report){
        .directory = directory,
        .findings = arena_array(arena, BACKUP_FINDINGS_MAX, sizeof(struct backup_finding))};
    if (out_report->findings == NULL) {
        return error_memory(error);
    }
    err made = make(&backup, error);
    out_report->us = seam_monotonic_us(service->seam) - began;
    if (made != OK) {
        log_error("backup_failed", made, error, directory);
        return made;
    }
    log_event(LOG_INFO, "backup_made", LOG_S("directory", directory),
              LOG_N("files", out_report->files), LOG_N("bytes", out_report->bytes),
              LOG_N("findings", out_report->findings_in_all));
    return OK;
}
