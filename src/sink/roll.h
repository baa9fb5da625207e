/* roll: one roll of one sink, from the ledger's pending batches to rows in the table, exactly
 * once.
 *
 * Straight-line code over the seams (ledger, store, catalog, clock): no thread, no lock, no static
 * state. A roller calls roll_sink for a sink that is due; whatever an earlier process left half
 * done is settled first, by the table's property alone (I10). Safety does not rest on the sink's
 * lease: two rollers at once waste work and nothing else.
 *
 * The end of a tick is no failure: what could not be done is done by the next one. An err other
 * than OK tells why the tick ended; it was noted as the sink's last_error. */
#ifndef LHBOX_SINK_ROLL_H
#define LHBOX_SINK_ROLL_H

#include "sink/ledger.h"
#include "sink/sink_delete.h"
#include "sink/warehouse.h"

enum { ROLL_TRIES = 5, ROLL_ARENA_MIB_MAX = 1536 };

struct crew;
struct intake_early;

struct roll_env {
    const struct db *db;
    const struct seam *seam;
    const struct warehouse *warehouse; /* the sink's */
    str installation_id;
    str holder;        /* of sink leases: one per roll worker */
    struct crew *crew; /* helps to read and to encode; NULL: nobody does */
    struct intake_early
        *early; /* closed before a sink is changed (sink/intake_early.h); NULL: there is none */
    /* Asked between steps: true ends the tick before the next try. NULL: never. */
    bool (*stopping)(void *context);
    void *stopping_context;
};

/* Before a sink is changed by anybody but the intake, or gets rows from elsewhere: nobody is
 * answered any more before the ledger has judged, and whoever was has his rows. BUSY: that takes
 * long, or the process stops. */
MUST_USE err roll_close_sink(const struct roll_env *env, str sink_id, struct error *error);

enum roll_end {
    ROLL_NOTHING,   /* nothing to settle and nothing to plan, or the sink may not roll */
    ROLL_ENDED,     /* a plan ended: committed, or all its rows rejected */
    ROLL_LATER,     /* the next tick goes on */
    ROLL_DISABLED,  /* the sink was stopped; its state_reason says why */
    ROLL_ELSEWHERE, /* another roller has the lease */
};

/* Settles the live plan, claims the table if this is the first roll, plans and commits. `trigger`
 * is what last_roll.reason will say. *out_end is set on every return. */
MUST_USE err roll_sink(const struct roll_env *env, str sink_id, str trigger, enum roll_end *out_end,
                       struct error *error);

/* Housekeeping of the sink's table, never inside a roll: many small manifests become few, by a
 * commit of its own. OK also when there is nothing to merge, another roller has the sink, or
 * somebody else's commit came between. */
MUST_USE err roll_merge(const struct roll_env *env, str sink_id, struct error *error);

#endif
