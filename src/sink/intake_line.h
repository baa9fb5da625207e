/* intake_line: the sends that wait for one sink, and which of them become the next object; private
 * to sink/intake*.c.
 *
 * In order of arrival, as far as the object's metadata and size allow. Never two sends of one batch
 * id in one object: the second waits for the first one's transaction and is then looked up in the
 * ledger again. The line and the groups in flight are guarded by the sink's lock. */
#ifndef LHBOX_SINK_INTAKE_LINE_H
#define LHBOX_SINK_INTAKE_LINE_H

#include "sink/intake_group.h"

enum { INTAKE_GROUP_PLACES = 2 * INTAKE_GROUP_MAX };

/* One group on its way; lies in its arena. */
struct intake_group {
    const struct intake_groups *groups;
    struct arena *arena;
    struct intake_sink *sink;
    const struct warehouse *warehouse;
    struct intake_send *sends[INTAKE_GROUP_MAX];
    size_t count;
    u64 ids[INTAKE_GROUP_PLACES]; /* fingerprints of theirs; 0: free */
    struct uid uid;
    str object_key;            /* empty: no batch has rows */
    struct intake_send *again; /* to be looked up once more before anything else */
    struct ledger_accept *items;
    str *rejects; /* of each send; empty: none was refused */
    str *pieces;  /* of the object */
    size_t piece_count;
    size_t body_size;
    i64 body_at; /* where its bytes begin in the object */
    struct intake_logged logged;
    struct intake_early_group early;
    struct intake_shared *shared; /* the object is others', too; NULL: it has one of its own */
    bool told;   /* those of its sends that do not wait have their answer, and are gone: NULL */
    bool unsure; /* a transaction's answer was lost: it may still commit */
    struct intake_group *next;   /* in flight beside it */
    struct intake_group *member; /* of the same object, behind it */
};

static inline bool intake_send_has_rows(const struct intake_send *send)
{
    return send->body.accepted > 0;
}

/* An upper bound of what a send's entry takes in the object's metadata. */
size_t intake_line_entry_max(const struct intake_send *send);
/* Room for the entries of one object. warehouse NULL: any store's. */
size_t intake_line_entries_max(const struct warehouse *warehouse);
/* With the sink's lock. */
void intake_line_append(struct intake_sink *sink, struct intake_send *send);
/* Takes the next group and counts it as in flight; false when nothing can be taken now, and then
 * the caller drives the sink no longer. What cannot be taken waits for a group in flight, whose
 * last worker looks again. */
bool intake_line_take(struct intake_group *group);
/* What waits for the sink, and until intake_line_go_on what comes for it, is refused. */
void intake_line_delay(struct intake_sink *sink, enum error_code code);
void intake_line_go_on(struct intake_sink *sink);
/* Instead of taking a group: what waits is refused, and the caller drives the sink no longer. */
void intake_line_give_up(struct intake_sink *sink, enum error_code code);
/* Before its sends are answered: those that wait for an id of it may go on. */
void intake_line_leave(struct intake_group *group);

#endif
