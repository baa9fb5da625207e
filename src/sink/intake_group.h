/* intake_group: the work on one group, which becomes one object and one transaction; private to
 * sink/intake*.c. The order of it is the machine of intake_request.c.
 *
 * No timer: a lone batch is one object at once (step 1.4). Never two sends of one batch id in one
 * object: the second waits for the first one's transaction and then looks into the ledger again.
 * All of it on a worker, blocking. */
#ifndef LHBOX_SINK_INTAKE_GROUP_H
#define LHBOX_SINK_INTAKE_GROUP_H

#include "sink/intake_early.h"
#include "sink/intake_log.h"
#include "sink/intake_send.h"
#include "sink/intake_wait.h"

enum {
    INTAKE_META_BYTES_MAX = 1900,      /* of one object, names and values; but see meta_max */
    INTAKE_GROUP_BYTES_MAX = 16 * MIB, /* of its body, unless it is one batch */
    INTAKE_GROUP_MAX = 1024,           /* sends; the metadata may bound those with rows before */
};

#define INTAKE_GROUP_ARENA_MAX ((size_t)64 * MIB)

struct intake_index;
struct intake_lease;
struct intake_quota;
struct queue;
struct intake_groups {
    const struct intake_options *options;
    struct intake_waits *waits;
    struct intake_index *index; /* with the queue: what the http threads need */
    struct queue *queue;        /* of sends that workers take up */
    struct intake_quota *quota; /* NULL: none */
    struct intake_lease *lease; /* looked at when a batch is refused for now; NULL: none */
    struct intake_log *log;     /* NULL: each group is durable by itself */
    struct intake_early *early; /* NULL: the ledger judges each group before it is answered */
    const atomic_bool *closing; /* what fails now is left to the next start */
};
struct intake_group; /* sink/intake_line.h */

/* Answers a send whose id the ledger knows. False: it does not know it, and nothing was done. */
bool intake_group_known(const struct intake_groups *groups, struct intake_send *send);
/* Sends that waited for another one of their id are answered if the ledger knows it by now; else
 * they wait for the next group. */
void intake_group_look_again(struct intake_group *group);
/* What is to be stored, under a fresh uid; with a log it is durable in it. A group that may be
 * answered early has joined an object of others then (`shared`), whatever the outcome. */
MUST_USE err intake_group_store(struct intake_group *group, struct error *error);
/* The rejects files, then the object: durable each by itself, if the log does not have them. */
MUST_USE err intake_group_put(struct intake_group *group, struct error *error);
MUST_USE err intake_group_put_rejects(struct intake_group *group, struct error *error);
/* The ledger's transaction: OK when each send has its outcome. An answer that was lost is looked up
 * (`unsure`). */
MUST_USE err intake_group_record(struct intake_group *group, struct error *error);
/* A logged group is through: what has no row is taken back in the log. `recorded`: the ledger has
 * judged them. */
void intake_group_settle(struct intake_group *group, bool recorded);
/* Losers, and what was refused, take their files away before they answer, when no batch of the
 * object was accepted: the transaction has ended, and nobody else could insert this uid (step 1.7);
 * of what was refused it is void. */
void intake_group_clean(struct intake_group *group);
/* Each send by its outcome, but those that were answered early. */
void intake_group_answer(struct intake_group *group);
/* Failed or unknown: nothing is deleted, what was stored is an orphan that the collector knows. */
void intake_group_refuse(struct intake_group *group, err result, const struct error *error);

/* What is answered in between goes out together. */
void intake_group_hold_answers(const struct intake_groups *groups);
void intake_group_release_answers(const struct intake_groups *groups);
/* One send by its outcome. */
void intake_group_answer_one(const struct intake_group *group, size_t index);
/* What a send hears when its group cannot be stored or recorded; 503 whatever it was. */
enum error_code intake_group_refusal(const struct error *error);
/* A send of the group was accepted. */
void intake_group_count(const struct intake_send *send);

/* What stands beside a group's object and beside a rejects file. */
MUST_USE err intake_object_meta(struct arena *arena, str sink_id, const struct ledger_accept *items,
                                size_t count, struct store_meta *out_meta, struct error *error);
MUST_USE err intake_rejects_meta(struct arena *arena, str rejects, struct store_meta *out_meta,
                                 struct error *error);

#endif
