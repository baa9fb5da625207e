#include "sink/intake_told.h"

#include "base/assert.h"
#include "base/log.h"
#include "sink/intake_apply.h"
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

/* Early first, then the place: whoever closes the sink waits for what has entered. */
static bool enter(struct intake_group *group)
{
    struct intake_early *early = group->groups->early;
    struct intake_early_sink *sink = intake_early_sink_of(early, group->sink->id);
    if (sink == NULL ||
        !intake_early_enter(early, sink, (i64)group->count, (i64)group->body_size, &group->early)) {
        return false;
    }
    bool joined = intake_apply_join(group);
    if (!joined) {
        intake_early_leave(early, &group->early, true);
    }
    return joined;
}

/* A group without an object of its own has nothing to share. */
void intake_told_begin(struct intake_group *group)
{
    const struct intake_groups *groups = group->groups;
    bool may = groups->early != NULL && group->sends[0]->is_new && group->body_size > 0 &&
               intake_log_takes(groups->log, group->warehouse) &&
               intake_log_has_room(groups->log, group->body_size, group->count);
    bool joined = may && are_young(group) && keep_bytes(group) && enter(group);
    assert(joined == (group->shared != NULL));
}

err intake_told_check(const struct intake_group *group, struct error *error)
{
    return are_young(group) ? OK
                            : error_set(error, BUSY, ERROR_UNAVAILABLE,
                                        "the group was too long on its way to the log");
}

void intake_told_answer(struct intake_group *group)
{
    group->told = true;
    intake_group_hold_answers(group->groups);
    for (size_t i = 0; i < group->count; i++) {
        struct intake_send *send = group->sends[i];
        struct ledger_accept *item = &group->items[i];
        item->outcome = ACCEPT_NEW;
        item->state = item->rows > 0 ? BATCH_PENDING : BATCH_REJECTED;
        /* Who hears of refused elements finds them. */
        if (send->wait_us == 0 && item->refused == 0) {
            group->sends[i] = NULL;
            intake_group_count(send);
            intake_send_accepted(send, item->state);
        }
    }
    intake_group_release_answers(group->groups);
}

void intake_told_fail(struct intake_group *group, err result, const struct error *error)
{
    intake_group_settle(group, false);
    intake_told_end(group, true);
    intake_group_hold_answers(group->groups);
    intake_group_refuse(group, result, error);
    intake_group_release_answers(group->groups);
    group->count = 0;
}

/* ---- its rows ---- */

void intake_told_delay(struct intake_sink *sink, err result, const struct error *error)
{
    log_error("accepted_group_waits", result, error, sink->id);
    intake_line_delay(sink, intake_group_refusal(error));
}

void intake_told_end(struct intake_group *group, bool made)
{
    intake_early_leave(group->groups->early, &group->early, made);
}

void intake_told_answer_rest(struct intake_group *group, bool made)
{
    for (size_t i = 0; i < group->count; i++) {
        if (group->sends[i] != NULL && made) {
            intake_group_answer_one(group, i);
        } else if (group->sends[i] != NULL) {
            intake_send_refuse_code(group->sends[i], ERROR_UNAVAILABLE);
        }
    }
}

/* ---- the next ones ---- */

/* A part of the backlog's room, so that its bound is met by the ledger's own count. */
void intake_told_learn(struct intake_group *group)
{
    const struct intake_groups *groups = group->groups;
    struct intake_early *early = groups->early;
    struct ledger_room room = {0};
    if (early == NULL || !group->logged.open) {
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
