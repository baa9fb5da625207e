#include "sink/intake_told.h"

#include "base/log.h"
#include "sink/intake_line.h"

/* A group that is answered before its rows are in the ledger: intake_early.h tells when that may
 * be. From then on it can no longer fail, only take longer. */

enum { ROOM_SHARE = 2 };

/* ---- may it be answered? ---- */

static bool are_young(const struct intake_group *group)
{
    instant now = seam_now(group->groups->options->seam);
    for (size_t i = 0; i < group->count; i++) {
        if (now - group->sends[i]->began_at > LEDGER_ACCEPT_DEADLINE_US) {
            return false;
        }
    }
    return true;
}

static bool keep(struct arena *arena, str *text)
{
    str copy = text->data != NULL ? str_copy(arena, *text) : *text;
    bool kept = text->data == NULL || copy.data != NULL;
    *text = kept ? copy : *text;
    return kept;
}

/* The object as one piece, and what the row and the names of the files are made of. */
static bool keep_bytes(struct intake_group *group)
{
    bool kept = true;
    buf body = buf_create(group->arena, group->body_size, group->body_size);
    for (size_t i = 0; i < group->piece_count; i++) {
        buf_append(&body, group->pieces[i]);
    }
    for (size_t i = 0; i < group->count; i++) {
        struct ledger_accept *item = &group->items[i];
        kept = kept && keep(group->arena, &item->batch_id) && keep(group->arena, &item->answer) &&
               keep(group->arena, &item->refused_reasons);
    }
    if (!kept || !buf_ok(&body)) {
        return false;
    }
    group->piece_count = group->piece_count > 0 ? 1 : 0;
    group->pieces[0] = buf_str(&body);
    return true;
}

static bool enter(struct intake_group *group)
{
    struct intake_early *early = group->groups->early;
    struct intake_early_sink *sink = intake_early_sink_of(early, group->sink->id);
    return sink != NULL &&
           intake_early_enter(early, sink, (i64)group->count, (i64)group->body_size, &group->early);
}

bool intake_told_begin(struct intake_group *group)
{
    bool may = group->groups->early != NULL && group->logged.open && group->sends[0]->is_new;
    group->told = may && are_young(group) && keep_bytes(group) && enter(group);
    for (size_t i = 0; i < group->count && group->told; i++) {
        struct ledger_accept *item = &group->items[i];
        item->outcome = ACCEPT_NEW;
        item->state = item->rows > 0 ? BATCH_PENDING : BATCH_REJECTED;
    }
    return group->told;
}

void intake_told_answer(struct intake_group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        struct intake_send *send = group->sends[i];
        /* Who hears of refused elements finds them. */
        if (send->wait_us == 0 && group->items[i].refused == 0) {
            group->sends[i] = NULL;
            intake_group_count(send);
            intake_send_accepted(send, group->items[i].state);
        }
    }
}

/* ---- its rows ---- */

/* A row that is not made, against all that was certain, has its object kept: the orphan rules take
 * it in. */
err intake_told_record(struct intake_group *group, struct error *error)
{
    enum ledger_logged *logged = arena_array(group->arena, group->count, sizeof(*logged));
    bool *voided = arena_array(group->arena, group->count, sizeof(*voided));
    if (logged == NULL || voided == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < group->count; i++) {
        group->items[i].began_running_us = INT64_MAX; /* nobody else has had the id meanwhile */
    }
    TRY(ledger_accept_logged(group->groups->options->db, group->arena, group->sink->id,
                             group->items, voided, group->count, logged, error));
    CRASH_POINT(intake_after_ledger);
    for (size_t i = 0; i < group->count; i++) {
        if (logged[i] == LEDGER_LOGGED_ORPHAN || logged[i] == LEDGER_LOGGED_NOTHING) {
            log_event(LOG_ERROR, "accepted_batch_has_no_row", LOG_S("sink", group->sink->id),
                      LOG_S("batch_id", group->items[i].batch_id),
                      LOG_S("object", group->object_key));
        }
    }
    return OK;
}

void intake_told_delay(struct intake_group *group, err result, const struct error *error)
{
    enum error_code code = intake_group_refusal(error);
    struct intake_send *send = intake_line_delay(group->sink, code);
    log_error("accepted_group_waits", result, error, group->sink->id);
    while (send != NULL) {
        struct intake_send *next = send->next;
        intake_send_refuse_code(send, code);
        send = next;
    }
}

void intake_told_go_on(struct intake_group *group)
{
    intake_line_go_on(group->sink);
}

void intake_told_end(struct intake_group *group, bool made)
{
    if (group->early.open) {
        intake_early_leave(group->groups->early, &group->early, made);
    }
}

/* ---- the next ones ---- */

/* A part of the backlog's room, so that its bound is met by the ledger's own count. */
void intake_told_learn(struct intake_group *group)
{
    const struct intake_groups *groups = group->groups;
    struct intake_early *early = groups->early;
    struct ledger_room room = {0};
    if (early == NULL || !group->logged.open || group->told) {
        return;
    }
    struct intake_early_sink *sink = intake_early_sink_of(early, group->sink->id);
    if (sink == NULL || !intake_early_wants(early, sink)) {
        return;
    }
    if (ledger_find_room(groups->options->db, group->sink->id, groups->options->backlog, &room,
                         NULL) == OK) {
        intake_early_grant(early, sink, room.batches / ROOM_SHARE, room.bytes / ROOM_SHARE);
    }
}
