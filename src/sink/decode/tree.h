/* decode/tree: one row as a flat array of nodes, in byte order, with its names looked up.
 *
 * Made in one pass without recursion. Members of the row that the straight way takes are in their
 * columns then: their nodes tell their names and order, not their kinds, nor what is inside. A
 * name is resolved where the schema reaches, that is, wherever the JSON kinds above it fit the
 * types. Of members of one name only the first counts: the others, and all inside them, are to be
 * passed over (decode_tree_next), except in the search for such names itself.
 *
 * Owned by one decoder; all is reused for the next line. */
#ifndef LHBOX_SINK_DECODE_TREE_H
#define LHBOX_SINK_DECODE_TREE_H

#include "format/json.h"
#include "sink/decode/straight.h"

enum {
    DECODE_REPEATED = 1,  /* the second member of its name in its object */
    DECODE_DROPPED = 2,   /* the second, third, … */
    DECODE_TWICE = 4,     /* the first of two or more */
    DECODE_LONE = 8,      /* half a surrogate pair in its name */
    DECODE_UNKNOWN = 16,  /* no column or field of its name */
    DECODE_RESERVED = 32, /* the sink's own column */
};

struct decode_node {
    u32 start; /* of the value in the line */
    u32 end;
    u32 next;   /* the node after all that is inside this one */
    u32 parent; /* the root's own is DECODE_NONE */
    u32 name;   /* index of the name; of the root and an array's element DECODE_NONE */
    u8 kind;    /* enum json_kind */
    u8 flags;
};

struct decode_name {
    str text;  /* unescaped; half pairs as three bytes each */
    u32 start; /* of the token in the line, quotes included */
    u32 end;
    u32 field;                      /* of `plan`; DECODE_NONE: none */
    const struct decode_plan *plan; /* whose fields were looked at; NULL: none */
};

/* What the schema has to say about values: nothing; they are of this plan's type; they are the
 * entries of this map. */
enum decode_place { DECODE_PLACE_FREE, DECODE_PLACE_VALUE, DECODE_PLACE_ENTRY };

/* An object or array that is still open. */
struct decode_frame {
    u32 node;
    u32 members;
    u32 unknown;             /* members that are no field */
    u32 expected;            /* the field that is tried first */
    bool fields;             /* an object whose names are looked up in plan */
    bool repeats;            /* a field came twice */
    enum decode_place place; /* of what is inside, by plan; of a struct's members see fields */
    const struct decode_plan *plan;
    u64 object; /* what `seen` of the plan says of its fields */
};

struct decode_tree {
    struct arena *arena;
    const struct decode_plan *root; /* a struct: the columns */
    /* The straight way, and the number of the row; NULL: every value is looked at here. */
    straight_members_function *take;
    struct straight *straight;
    i64 row;
    str line;
    struct decode_node *nodes;
    size_t node_count;
    size_t node_capacity;
    struct decode_name *names;
    size_t name_count;
    size_t name_capacity;
    buf text;   /* unescaped names; the values' scratch after them */
    u32 *slots; /* a hash table of one object's members, empty places 0 */
    size_t slot_count;
    u32 found;   /* all flags of all nodes */
    u64 objects; /* objects so far, over all lines */
    size_t depth;
    struct decode_frame frames[JSON_DEPTH_MAX + 1];
};

enum decode_tree_result { DECODE_TREE_OK, DECODE_TREE_NOT_JSON, DECODE_TREE_LIMIT };

void decode_tree_init(struct decode_tree *tree, struct arena *arena,
                      const struct decode_plan *root);
/* Columns may have got a value each, however it ends. */
enum decode_tree_result decode_tree_read(struct decode_tree *tree, str line);

/* The next node in byte order that counts, `at` being the one just looked at: past the inside of a
 * dropped one. node_count at the end. */
static inline u32 decode_tree_next(const struct decode_tree *tree, u32 at)
{
    const struct decode_node *node = &tree->nodes[at];
    return (node->flags & DECODE_DROPPED) != 0 ? node->next : at + 1;
}
static inline str decode_tree_token(const struct decode_tree *tree, u32 at)
{
    const struct decode_node *node = &tree->nodes[at];
    return (str){tree->line.data + node->start, node->end - node->start};
}
static inline str decode_tree_name_token(const struct decode_tree *tree, u32 at)
{
    const struct decode_name *name = &tree->names[tree->nodes[at].name];
    return (str){tree->line.data + name->start, name->end - name->start};
}
static inline const struct decode_name *decode_tree_name(const struct decode_tree *tree, u32 at)
{
    return &tree->names[tree->nodes[at].name];
}
static inline enum json_kind decode_tree_kind(const struct decode_tree *tree, u32 at)
{
    return (enum json_kind)tree->nodes[at].kind;
}

/* Notes where an object of a struct or an entry of a map has its fields: plan->seen[f] is the
 * returned number where it has field f, and plan->member[f] the node. `at` may be DECODE_NONE:
 * it has none. */
u64 decode_tree_members(struct decode_tree *tree, struct decode_plan *plan, u32 at);

#endif
