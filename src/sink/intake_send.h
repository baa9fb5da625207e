/* intake_send: what the parts of the intake share; private to sink/intake*.c.
 *
 * A send has an arena of its own, which goes with it. A sink stays in memory once it was read; what
 * may change of it is guarded by the directory's lock, what waits for it by its own. */
#ifndef LHBOX_SINK_INTAKE_SEND_H
#define LHBOX_SINK_INTAKE_SEND_H

#include "sink/intake.h"

#include <pthread.h>
#include <stdatomic.h>

struct intake_sink {
    str id;
    u64 hash; /* intake_index_sink */
    /* under the directory's lock */
    struct sha256 key_hash;
    enum sink_state state;
    bool id_optional; /* the server may make the batch id */
    const struct warehouse *warehouse;

    pthread_mutex_t lock;
    struct intake_send *first; /* what waits for a PUT, in order of arrival */
    struct intake_send *last;
    struct intake_group *in_flight;
    i32 groups; /* workers that drive the line */
    /* intake_apply.h */
    struct intake_shared *open;   /* groups join it */
    struct intake_shared *sealed; /* none joins them any more; in their order */
    i32 sealed_count;
    bool applying;
    bool delayed;               /* what was answered cannot be applied for now */
    enum error_code delay_code; /* what is heard meanwhile */
    struct intake_send *driver; /* in the queue: drive this sink */
    _Atomic u64 commits;        /* how often batches of it became final */
};

/* Where a worker takes a send up. */
enum intake_entry {
    INTAKE_ENTRY_LOOK,  /* its id may be known */
    INTAKE_ENTRY_LINE,  /* it joins the line, as surely new */
    INTAKE_ENTRY_DRIVE, /* no send: this worker drives the line of the sink from here on */
};

struct intake_send {
    struct arena *arena;
    bool arena_lent; /* it goes with the caller's request, not with the send */
    enum intake_entry entry;
    struct intake *intake;
    struct intake_sink *sink;
    const struct warehouse *warehouse;
    str batch_id;
    u64 id_hash;  /* never 0 */
    bool id_made; /* by the server */
    enum intake_mode mode;
    i64 wait_us;
    intake_answered answered;
    void *context;
    struct intake_body body;
    char node_id[ID_SHORT_SIZE];
    instant began_at;     /* ledger time before the head was read (I4) */
    i64 began_running_us; /* the running time then */
    instant received_at;  /* when the body was complete */
    bool is_new;          /* surely, since it joined the line; else the ledger tells */
    bool look_again;      /* its id was in flight: the ledger may know it by now */
    str answer;           /* the first answer */
    i64 deadline_us;      /* of its wait, monotonic */
    bool watched;         /* the commit is asked for */
    u64 commits_seen;     /* of its sink, before its last look */
    struct intake_send *next;
};

/* ---- answering; each ends the send ---- */

void intake_send_accepted(struct intake_send *send, enum batch_state state);
void intake_send_duplicate(struct intake_send *send, str first_answer, enum batch_state state);
void intake_send_refuse(struct intake_send *send, const struct error *error);
void intake_send_refuse_code(struct intake_send *send, enum error_code code);
void intake_send_answer(struct intake_send *send, const struct intake_answer *answer);

/* The first answer as the ledger keeps it. data NULL at the arena's limit. */
str intake_answer_print(struct intake_send *send);
/* That answer with today's state; data NULL at the arena's limit. */
enum intake_answer_kind { INTAKE_ANSWER_FIRST, INTAKE_ANSWER_DUPLICATE };
str intake_answer_with_state(struct arena *arena, str first_answer, enum batch_state state,
                             enum intake_answer_kind kind);

#endif
