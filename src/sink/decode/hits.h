/* decode/hits: what is wrong with the row at hand, found in the order of the law.
 *
 * The first hit and REJECT_ALSO_MAX more are kept with their texts; once that many are found
 * nothing more can change the record (decode_hits_full). Texts live until the next row. Owned by
 * one decoder. */
#ifndef LHBOX_SINK_DECODE_HITS_H
#define LHBOX_SINK_DECODE_HITS_H

#include "sink/decode/tree.h"
#include "sink/reject.h"

/* Longer paths are cut; more than a record shows of them. */
enum { DECODE_PATH_BYTES_MAX = 1024 };

struct decode_hits {
    struct reject_hit hits[REJECT_ALSO_MAX + 1];
    size_t count;
    str did_you_mean; /* of the first; data NULL: none */
    buf text;
};

/* Names of absent fields, the innermost first: a default {} has fields of its own. */
struct decode_trail {
    const struct decode_trail *outer; /* NULL: the object that is there */
    str name;
};

/* Where a value stands, or would stand: the node, or fields absent from the object `within`. */
struct decode_at {
    u32 node; /* DECODE_NONE: absent */
    u32 within;
    const struct decode_trail *trail;
};

static inline struct decode_at decode_at_node(u32 node)
{
    return (struct decode_at){.node = node, .within = DECODE_NONE};
}

MUST_USE bool decode_hits_init(struct decode_hits *hits, struct arena *arena);
void decode_hits_clear(struct decode_hits *hits);
static inline bool decode_hits_full(const struct decode_hits *hits)
{
    return hits->count == REJECT_ALSO_MAX + 1;
}

void decode_hit(struct decode_hits *hits, const struct decode_tree *tree, enum reject_reason reason,
                struct decode_at at, str detail);
/* A value that does not fit its type; `length` is of the bytes, for WRONG_LENGTH. `token` is the
 * value as sent (or the name that is a map's key). */
void decode_hit_misfit(struct decode_hits *hits, const struct decode_tree *tree,
                       enum reject_reason reason, struct decode_at at,
                       const struct decode_plan *plan, enum json_kind kind, str token,
                       size_t length);
/* A value of the wrong kind for `what`, as "map entry". */
void decode_hit_kind(struct decode_hits *hits, const struct decode_tree *tree, u32 node, str what);
/* A member that is no field, with the field that may be meant. */
void decode_hit_unknown(struct decode_hits *hits, const struct decode_tree *tree, u32 node);

#endif
