/* chain: the plan objects in the store, read back: the only memory of what was committed that a
 * lost ledger leaves (exactly-once C.5, section 9 step 4, O2, O12).
 *
 * A plan is proven by the chain alone: reached from the property's id through the prev links.
 * Blocking, over the store's seam; results are in the arena; any thread. */
#ifndef LHBOX_SINK_CHAIN_H
#define LHBOX_SINK_CHAIN_H

#include "io/store.h"
#include "sink/ledger.h"

struct chain_plan {
    str installation;
    str sink_id;
    i64 n;
    str id;
    str prev;
    i64 config_version;
    struct ledger_batch *batches; /* what the object tells of them */
    size_t count;
    instant written_at; /* by the store's clock; decides nothing */
};
/* CORRUPT for what plan_print_object did not write, another format included. */
MUST_USE err chain_parse(struct arena *arena, str bytes, struct chain_plan *out_plan,
                         struct error *error);
/* NOT_FOUND surely. CORRUPT also when it is another sink's or number's. */
MUST_USE err chain_read(const struct store *store, struct arena *arena, str sink_id, i64 n, str id,
                        struct chain_plan *out_plan, struct error *error);

struct chain_link {
    i64 n;
    str id;
};
/* The plans from (n, id) down to above `floor_n`, last one first. *out_floor is the id that the
 * last of them has as prev. NOT_FOUND: an object is missing (O12), `error` names it. */
MUST_USE err chain_walk(const struct store *store, struct arena *arena, str sink_id, i64 n, str id,
                        i64 floor_n, struct chain_link **out_links, size_t *out_count,
                        str *out_floor, struct error *error);

/* Calls `each` for every plan from (n, id) down as far as plan objects reach, and for the plans of
 * all verdicts. The plan is gone when the call returns. */
typedef err (*chain_visit)(void *context, const struct chain_plan *plan, struct error *error);
MUST_USE err chain_visit_all(const struct store *store, str sink_id, i64 n, str id,
                             chain_visit each, void *context, struct error *error);
/* Calls `each` with the plan of every verdict object (`<n>-<id>.void.json`). */
MUST_USE err chain_visit_verdicts(const struct store *store, str sink_id, chain_visit each,
                                  void *context, struct error *error);

#endif
