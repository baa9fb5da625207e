/* intake_early: which groups are answered as soon as their record in the log is durable, before
 * their rows are in the ledger (exactly-once section 16).
 *
 * Without this the ledger's transaction judges a group, and then it is answered. Before that
 * transaction an answer is safe only if it is certain what the transaction will say:
 *
 * E1  Every id of the group is new: nobody has claimed it before in the index of ids (claims are
 *     made under the lock of the sink's line, so that of two who bring one id one is first).
 * E2  The sink is plain: neither deleting nor recovering, nothing of it is in quarantine, and it is
 *     far from its backlog. A read of the ledger has said so, and how much may be accepted on the
 *     strength of that (a grant).
 * E3  Since that read nobody has changed it, nor given it ids that the index does not have: whoever
 *     is about to (a delete, a recover, an adoption, a person's decision) closes the sink first. No
 *     group of a closed sink is answered early any more while this process lives; and when closing
 *     returns, every group that was has its rows.
 * E4  The requests are young (I4). A batch of which elements were refused is answered when its
 *     rejects file is there.
 *
 * What is answered early and is not in the ledger yet is there for whoever asks after
 * intake_early_await.
 *
 * One for an installation whose files are local. Any thread. */
#ifndef LHBOX_SINK_INTAKE_EARLY_H
#define LHBOX_SINK_INTAKE_EARLY_H

#include "base/seam.h"
#include "base/str.h"

struct intake_early;
struct intake_early_sink; /* one sink's part; lives as long as all */

/* A group that was answered; lies in the group. */
struct intake_early_group {
    struct intake_early_sink *sink;
    u64 ticket;
    bool open;
    struct intake_early_group *next;
};

struct intake_early *intake_early_create(void);
void intake_early_destroy(struct intake_early *early); /* NULL: does nothing */

/* ---- whoever changes a sink; early may be NULL ---- */

/* From now on nothing of it is answered early. What was is waited for: intake_early_count,
 * and intake_early_await for all. */
void intake_early_close_sink(struct intake_early *early, str sink_id);
void intake_early_close_all(struct intake_early *early);
/* How many groups of the sink have their answer and not their rows. */
size_t intake_early_count(struct intake_early *early, str sink_id);

/* ---- whoever reads the ledger for somebody who may have an answer; early may be NULL ---- */

/* Until everything that was answered before this call has its rows. False: it takes longer than
 * most_us. */
bool intake_early_await(struct intake_early *early, const struct seam *seam, i64 most_us);

/* Somebody does so. */
bool intake_early_is_awaited(const struct intake_early *early);

/* ---- the intake ---- */

/* NULL at the memory limit: nothing of it is answered early. */
struct intake_early_sink *intake_early_sink_of(struct intake_early *early, str sink_id);
/* A grant would be of use. */
bool intake_early_wants(struct intake_early *early, const struct intake_early_sink *sink);
/* So many batches and bytes may be accepted; nothing of a closed sink. */
void intake_early_grant(struct intake_early *early, struct intake_early_sink *sink, i64 batches,
                        i64 bytes);
/* True: the group may be answered now, and intake_early_leave must follow. */
bool intake_early_enter(struct intake_early *early, struct intake_early_sink *sink, i64 batches,
                        i64 bytes, struct intake_early_group *out_group);
/* It has its rows, or (not `made`) the process ends: then it counts from here on. */
void intake_early_leave(struct intake_early *early, struct intake_early_group *group, bool made);

#endif
