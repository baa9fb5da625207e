#include "sink/restore.h"

#include "base/log.h"
#include "base/planted.h"
#include "sink/restore_steps.h"
#include "sink/settings.h"

/*   flag ─► fence ─► property ─┬─ ahead: walk the chain ─► undo ─► redo ─┬─► verdicts ─► orphans ─►
 * clear ├─ the copy's last: undo ─────────────────┤ ├─ absent, not claimed: undo ─────────────┘ └─
 * anything else: ledger_mismatch
 *
 * flag:    nothing of the sink is accepted, planned or tried; all nodes register again.
 * fence:   no request of before the restore can land any more. Its ids are recorded since the flag
 * was set, so that a fence of an earlier recover does not count. undo:    what the copy calls
 * planned is pending. redo:    what the chain proves is committed, plan by plan in order of n.
 * orphans: what was accepted after the copy gets its rows again.
 *
 * A sink whose settings objects say `deleting` takes the same way as far as the verdicts, so that
 * what the table holds of it is known and nothing more of it can land, and is deleting again then;
 * in the place of a stop, too.
 *
 * Each step may be done again: a recover that was killed begins at the flag. */

enum { RESTORE_FENCE_TRIES = 8, RESTORE_FENCE_APART_MS = 500, RESTORE_SINK_MIB_MAX = 512 };

/* ---- steps 1 and 2 ---- */

static err carry_delete_on(struct restore *restore, struct error *error)
{
    restore->stopped = true;
    restore->report->end = RESTORE_DELETING;
    return ledger_recover_deleting(restore->roll.env->db, restore->roll.sink.id, error);
}

err restore_stop(struct restore *restore, const char *reason, str detail, enum ledger_stop flag,
                 struct error *error)
{
    if (restore->going) {
        return carry_delete_on(restore, error);
    }
    restore->stopped = true;
    restore->report->end = RESTORE_STOPPED;
    restore->report->detail = str_format(restore->roll.arena, "%s: %.*s", reason, STR_ARG(detail));
    return ledger_stop_recover(restore->roll.env->db, restore->roll.sink.id, str_from(reason),
                               detail, flag, error);
}

static err send_fence(struct restore *restore, const struct table *table, struct error *error)
{
    struct roll *roll = &restore->roll;
    struct append fence = commit_begin(roll->env->seam);
    TRY(ledger_record_recover_fence(roll->env->db, roll->sink.id, fence.snapshot_id, error));
    CRASH_POINT(recover_fence_recorded);
    json_t *request = NULL;
    TRY(commit_append(roll->arena, &roll->env->warehouse->locations, table, roll->env->seam, &fence,
                      &request, error));
    struct table after AUTO_TABLE = {0};
    roll_send(roll, request, NULL, &after);
    json_decref(request);
    CRASH_POINT(recover_fence_sent);
    return OK;
}

/* One look. *out_landed: the table of this load shows a fence of this recover. */
static err fence_once(struct restore *restore, bool *out_landed, struct table *out_table,
                      struct error *error)
{
    struct roll *roll = &restore->roll;
    struct table table = {0};
    enum roll_place place = ROLL_PLACE_GONE;
    TRY(roll_keep_lease(roll, error));
    TRY(roll_read_sink(roll, roll->sink.id, error));
    TRY(roll_find_table(roll, &place, &table, error));
    *out_landed = false;
    if (place != ROLL_PLACE_TABLE) {
        return restore_stop(restore, place == ROLL_PLACE_GONE ? "table_gone" : "table_replaced",
                            STR("there is no table to recover from"), LEDGER_STOP_CLEAR_FLAG,
                            error);
    }
    if (PLANTED(15) || plan_fence_landed(roll->sink.fences, table.metadata)) {
        *out_landed = true;
        *out_table = table;
        return OK;
    }
    err sent = send_fence(restore, &table, error);
    table_close(&table);
    return sent;
}

static err land_fence(struct restore *restore, struct table *out_table, struct error *error)
{
    bool landed = false;
    for (int tries = 0; tries <= RESTORE_FENCE_TRIES; tries++) {
        TRY(fence_once(restore, &landed, out_table, error));
        if (landed || restore->stopped) {
            return OK;
        }
        if (tries > 0) {
            seam_wait_us(restore->roll.env->seam, RESTORE_FENCE_APART_MS * 1000);
        }
    }
    return error_set(error, BUSY, ERROR_UNAVAILABLE, "the recover's fence has not landed yet");
}

/* ---- steps 3 to 9 ---- */

static err redo_by(struct restore *restore, const struct table *table, enum restore_reading reading,
                   const struct plan_property *property, struct error *error)
{
    const struct roll *roll = &restore->roll;
    str text = metadata_property(table->metadata, METADATA_ROLL_PROPERTY);
    switch (reading) {
    case RESTORE_AHEAD:
        return restore_redo(restore, table, property, error);
    case RESTORE_SAME:
        TRY(ledger_prove_claim(roll->env->db, roll->sink.id, error));
        return ledger_undo_plans(roll->env->db, roll->sink.id, STR(""), &restore->report->undone,
                                 error);
    case RESTORE_UNCLAIMED:
        return ledger_undo_plans(roll->env->db, roll->sink.id, STR(""), &restore->report->undone,
                                 error);
    case RESTORE_OTHER:
        break;
    }
    str detail = str_format(
        roll->arena, "the table's %s is %.*s, the ledger's last roll is %lld (%.*s)",
        METADATA_ROLL_PROPERTY, STR_ARG(text.data == NULL ? STR("absent") : text),
        (long long)roll->sink.last_n, STR_ARG(roll->sink.last_plan_id));
    return restore_stop(restore, "ledger_mismatch", detail, LEDGER_STOP_KEEP_FLAG, error);
}

static err recover_on(struct restore *restore, const struct table *table, struct error *error)
{
    enum restore_reading reading = RESTORE_OTHER;
    struct plan_property property = {0};
    TRY(restore_read(restore, table, &reading, &property, error));
    TRY(redo_by(restore, table, reading, &property, error));
    if (restore->stopped) {
        return OK;
    }
    TRY(restore_verdicts(restore, error));
    if (restore->going) {
        return carry_delete_on(restore, error);
    }
    if (!PLANTED(14)) {
        TRY(restore_adopt(restore, error));
    }
    CRASH_POINT(recover_adopted);
    TRY(ledger_end_recover(restore->roll.env->db, restore->roll.sink.id, error));
    restore->report->end = RESTORE_RECOVERED;
    return OK;
}

static void log_restored(const struct restore_sink *report)
{
    log_event(LOG_WARN, "sink_recovered", LOG_S("sink", report->sink_id),
              LOG_S("end", str_from(restore_end_text(report->end))), LOG_N("plans", report->plans),
              LOG_N("committed", report->committed), LOG_N("adopted", report->adopted),
              LOG_N("quarantined", report->quarantined), LOG_N("missing", report->missing));
}

/* The copy does not know of a delete that began after it; the settings objects do (O14). What
 * cannot be read for good says nothing. */
static err read_going(struct restore *restore, struct error *error)
{
    const struct roll *roll = &restore->roll;
    struct ledger_sink told = {0};
    struct error why = {0};
    err read = settings_read(&roll->env->warehouse->files, roll->arena, roll->env->installation_id,
                             roll->sink.id, &told, &why);
    restore->going = read == OK && (told.state == SINK_DELETING || told.state == SINK_DELETED);
    bool said = read == OK || read == NOT_FOUND || read == CORRUPT;
    return said ? OK : error_set(error, read, why.code, "%s", why.message);
}

/* Under the lease, the flag stands. */
static err recover_flagged(const struct roll_env *env, struct arena *arena, str sink_id,
                           struct restore_sink *out_sink, struct error *error)
{
    struct arena *work AUTO_ARENA = arena_create((size_t)RESTORE_SINK_MIB_MAX * MIB);
    struct table table AUTO_TABLE = {0};
    struct restore restore = {
        .roll = {.env = env, .arena = work, .sink = {.id = sink_id}},
        .report = out_sink,
    };
    TRY(read_going(&restore, error));
    TRY(land_fence(&restore, &table, error));
    CRASH_POINT(recover_fence_landed);
    if (!restore.stopped) {
        TRY(recover_on(&restore, &table, error));
    }
    /* What the report holds outlives the work. */
    out_sink->sink_id = str_copy(arena, restore.roll.sink.id);
    out_sink->name = str_copy(arena, restore.roll.sink.name);
    if (out_sink->detail.data != NULL) {
        out_sink->detail = str_copy(arena, out_sink->detail);
    }
    log_restored(out_sink);
    return OK;
}

err restore_flagged(const struct roll_env *env, struct arena *arena, str sink_id,
                    struct restore_sink *out_sink, struct error *error)
{
    struct restore_sink report = {.sink_id = sink_id, .end = RESTORE_LATER};
    TRY(roll_close_sink(env, sink_id, error)); /* begun by an earlier process, perhaps */
    TRY(recover_flagged(env, arena, sink_id, &report, error));
    *out_sink = report;
    return OK;
}

static void release_lease(const struct roll_env *env, str sink_id)
{
    struct error ignored = {0};
    err released = ledger_release_lease(env->db, sink_id, env->holder, &ignored);
    (void)released;
}

err restore_sink(const struct roll_env *env, struct arena *arena, str sink_id,
                 struct restore_sink *out_sink, struct error *error)
{
    struct ledger_sink sink = {0};
    TRY(ledger_find_sink(env->db, arena, STR(""), sink_id, &sink, error));
    if (sink.state == SINK_DELETING || sink.state == SINK_DELETED) {
        *out_sink = (struct restore_sink){.sink_id = sink.id,
                                          .name = sink.name,
                                          .end = sink.state == SINK_DELETED ? RESTORE_DELETED
                                                                            : RESTORE_DELETING};
        return OK;
    }
    TRY(roll_close_sink(env, sink.id, error));
    TRY(ledger_begin_recover(env->db, sink.id, error));
    CRASH_POINT(recover_flagged);
    TRY(ledger_take_lease(env->db, sink.id, env->holder, error));
    err result = restore_flagged(env, arena, sink.id, out_sink, error);
    release_lease(env, sink.id);
    return result;
}

err restore_note_ahead(const struct roll_env *env, const struct ledger_sink *sink,
                       const struct table *table, bool *out_behind, struct error *error)
{
    struct plan_property read = {0};
    str text = metadata_property(table->metadata, METADATA_ROLL_PROPERTY);
    *out_behind = false;
    if (text.data == NULL || !plan_parse_property(text, &read) ||
        !str_equal(read.installation, env->installation_id) || !str_equal(read.sink_id, sink->id)) {
        return OK;
    }
    TRY(roll_close_sink(env, sink->id, error));
    return ledger_note_ahead(env->db, sink->id, read.n, read.id, out_behind, error);
}

/* ---- reclaim ---- */

/* A second empty append, which sets the property; judged by a load. */
static err set_property(struct restore *restore, const struct table *table, bool *out_set,
                        struct error *error)
{
    struct roll *roll = &restore->roll;
    const struct plan_property property = {.installation = roll->env->installation_id,
                                           .sink_id = roll->sink.id,
                                           .n = roll->sink.last_n,
                                           .id = roll->sink.last_plan_id};
    struct commit_entry entry = {STR(METADATA_ROLL_PROPERTY),
                                 plan_print_property(roll->arena, &property)};
    str now = metadata_property(table->metadata, METADATA_ROLL_PROPERTY);
    if (entry.value.data == NULL) {
        return error_memory(error);
    }
    *out_set = now.data != NULL && str_equal(now, entry.value);
    if (*out_set) {
        return OK;
    }
    struct append append = commit_begin(roll->env->seam);
    append.properties = &entry;
    append.property_count = 1;
    json_t *request = NULL;
    TRY(commit_append(roll->arena, &roll->env->warehouse->locations, table, roll->env->seam,
                      &append, &request, error));
    struct table after AUTO_TABLE = {0};
    roll_send(roll, request, NULL, &after);
    json_decref(request);
    return OK;
}

static err reclaim_once(struct restore *restore, bool *out_set, struct error *error)
{
    struct roll *roll = &restore->roll;
    struct table table AUTO_TABLE = {0};
    enum roll_place place = ROLL_PLACE_GONE;
    TRY(roll_keep_lease(roll, error));
    TRY(roll_find_table(roll, &place, &table, error));
    if (place != ROLL_PLACE_TABLE) {
        return error_set(error, CONFLICT, ERROR_SINK_DISABLED, "the sink's table is gone");
    }
    return set_property(restore, &table, out_set, error);
}

static err reclaim_flagged(struct restore *restore, struct error *error)
{
    struct table table AUTO_TABLE = {0};
    bool set = false;
    TRY(land_fence(restore, &table, error));
    if (restore->stopped) {
        return error_set(error, CONFLICT, ERROR_SINK_DISABLED, "the sink's table is gone");
    }
    for (int tries = 0; tries < RESTORE_FENCE_TRIES && !set; tries++) {
        TRY(reclaim_once(restore, &set, error));
    }
    if (!set) {
        return error_set(error, BUSY, ERROR_UNAVAILABLE, "the property could not be set yet");
    }
    TRY(roll_point_store(&restore->roll, error));
    TRY(ledger_prove_claim(restore->roll.env->db, restore->roll.sink.id, error));
    TRY(ledger_undo_plans(restore->roll.env->db, restore->roll.sink.id, STR(""),
                          &restore->report->undone, error));
    TRY(restore_verdicts(restore, error));
    TRY(restore_adopt(restore, error));
    return ledger_end_recover(restore->roll.env->db, restore->roll.sink.id, error);
}

err restore_reclaim(const struct roll_env *env, struct arena *arena, str sink_id,
                    struct error *error)
{
    struct arena *work AUTO_ARENA = arena_create((size_t)RESTORE_SINK_MIB_MAX * MIB);
    struct restore_sink report = {0};
    struct restore restore = {.roll = {.env = env, .arena = work}, .report = &report};
    (void)arena;
    TRY(ledger_find_sink(env->db, work, STR(""), sink_id, &restore.roll.sink, error));
    if (restore.roll.sink.state != SINK_DISABLED ||
        !str_equal(restore.roll.sink.state_reason, STR("ledger_mismatch"))) {
        return error_set(error, CONFLICT, ERROR_SINK_DISABLED,
                         "only a sink that ledger_mismatch stopped can reclaim its table");
    }
    TRY(roll_close_sink(env, sink_id, error));
    TRY(ledger_begin_recover(env->db, sink_id, error));
    TRY(ledger_take_lease(env->db, sink_id, env->holder, error));
    err result = reclaim_flagged(&restore, error);
    release_lease(env, sink_id);
    return result;
}

/* ---- reports ---- */

const char *restore_end_text(enum restore_end end)
{
    switch (end) {
    case RESTORE_RECOVERED:
        return "recovered";
    case RESTORE_STOPPED:
        return "stopped";
    case RESTORE_DELETED:
        return "deleted";
    case RESTORE_DELETING:
        return "deleting";
    case RESTORE_LATER:
        return "later";
    }
    return "";
}

static void print_json(buf *out, const struct restore_sink *sink)
{
    const struct {
        const char *name;
        i64 value;
    } numbers[] = {
        {"plans", sink->plans},     {"committed", sink->committed},
        {"undone", sink->undone},   {"adopted", sink->adopted},
        {"taken", sink->taken},     {"quarantined", sink->quarantined},
        {"missing", sink->missing}, {"unknown_splits", sink->unknown},
    };
    buf_append(out, STR("{\"sink_id\":"));
    buf_append_json_string(out, sink->sink_id);
    buf_append(out, STR(",\"name\":"));
    buf_append_json_string(out, sink->name.data == NULL ? STR("") : sink->name);
    buf_append_format(out, ",\"end\":\"%s\",\"made\":%s", restore_end_text(sink->end),
                      sink->made ? "true" : "false");
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        buf_append_format(out, ",\"%s\":%lld", numbers[i].name, (long long)numbers[i].value);
    }
    if (sink->detail.data != NULL) {
        buf_append(out, STR(",\"detail\":"));
        buf_append_json_string(out, sink->detail);
    }
    buf_append(out, STR("}"));
}

static void print_text(buf *out, const struct restore_sink *sink)
{
    buf_append_format(out,
                      "%.*s %.*s: %s%s, %lld rolls and %lld batches found committed, %lld rolls "
                      "taken back, %lld batches adopted, %lld objects in quarantine, %lld missing",
                      STR_ARG(sink->sink_id), STR_ARG(sink->name), restore_end_text(sink->end),
                      sink->made ? " (made again)" : "", (long long)sink->plans,
                      (long long)sink->committed, (long long)sink->undone,
                      (long long)(sink->adopted + sink->taken), (long long)sink->quarantined,
                      (long long)sink->missing);
    if (sink->detail.data != NULL) {
        buf_append_format(out, "; %.*s", STR_ARG(sink->detail));
    }
    buf_append(out, STR("\n"));
}

void restore_print(buf *out, const struct restore_report *report, enum restore_form form)
{
    if (form == RESTORE_JSON) {
        buf_append(out, STR("{\"sinks\":["));
    }
    for (size_t i = 0; i < report->count; i++) {
        if (form == RESTORE_JSON) {
            buf_append(out, i > 0 ? STR(",") : STR(""));
            print_json(out, &report->sinks[i]);
        } else {
            print_text(out, &report->sinks[i]);
        }
    }
    if (form == RESTORE_JSON) {
        buf_append(out, STR("]}\n"));
    }
}
