#include "sink/decode/tree.h"

#include "base/assert.h"
#include "sink/decode.h"

enum { MEMBERS_COMPARED_MAX = 8, CAPACITY_FIRST = 64 };

void decode_tree_init(struct decode_tree *tree, struct arena *arena, const struct decode_plan *root)
{
    *tree = (struct decode_tree){.arena = arena, .root = root};
}

/* ---- room ---- */

/* Doubles an array of `size`-byte items when it is full. NULL at the arena's limit. */
static void *grown(struct arena *arena, void *items, size_t size, size_t count, size_t *capacity)
{
    if (count < *capacity) {
        return items;
    }
    size_t wanted = *capacity > 0 ? *capacity * 2 : CAPACITY_FIRST;
    size_t bytes = 0;
    if (!num_mul_size(wanted, size, &bytes)) {
        return NULL;
    }
    void *larger = arena_grow(arena, items, *capacity * size, bytes);
    if (larger != NULL) {
        *capacity = wanted;
    }
    return larger;
}

/* Room for the line twice, so that no text of this line moves. */
static bool tree_make_text_room(struct decode_tree *tree, size_t line_size)
{
    size_t wanted = 0;
    if (!num_mul_size(line_size, 2, &wanted) || !num_add_size(wanted, 128, &wanted)) {
        return false;
    }
    if (wanted > tree->text.capacity) {
        wanted = wanted > 2 * tree->text.capacity ? wanted : 2 * tree->text.capacity;
        tree->text = buf_create(tree->arena, wanted, wanted);
    }
    buf_truncate(&tree->text, 0);
    return buf_ok(&tree->text);
}

/* ---- nodes ---- */

static struct decode_node *tree_add_node(struct decode_tree *tree, enum json_kind kind, str token,
                                         u32 name)
{
    u32 start = (u32)(token.data - tree->line.data);
    struct decode_node *nodes = grown(tree->arena, tree->nodes, sizeof(*nodes), tree->node_count,
                                      &tree->node_capacity);
    if (nodes == NULL) {
        return NULL;
    }
    tree->nodes = nodes;
    struct decode_node *node = &nodes[tree->node_count];
    tree->node_count++;
    *node = (struct decode_node){.start = start,
                                 .end = start + (u32)token.size,
                                 .next = (u32)tree->node_count,
                                 .parent = tree->depth > 0 ? tree->frames[tree->depth - 1].node
                                                           : DECODE_NONE,
                                 .name = name,
                                 .kind = (u8)kind};
    return node;
}

/* Whether the name is a field of the frame's plan, and which. */
static void frame_resolve(struct decode_frame *frame, struct decode_name *name)
{
    name->field = DECODE_NONE;
    if (!frame->fields) {
        return;
    }
    const struct decode_plan *plan = frame->plan;
    name->plan = plan;
    name->field = decode_plan_find(plan, name->text, frame->expected);
    if (name->field == DECODE_NONE) {
        frame->unknown++;
        return;
    }
    frame->expected = name->field + 1;
    frame->repeats = frame->repeats || plan->seen[name->field] == frame->object;
    plan->seen[name->field] = frame->object;
}

static struct decode_name *tree_new_name(struct decode_tree *tree)
{
    struct decode_name *names = grown(tree->arena, tree->names, sizeof(*names), tree->name_count,
                                      &tree->name_capacity);
    if (names == NULL) {
        return NULL;
    }
    tree->names = names;
    return &names[tree->name_count++];
}

static struct decode_name *tree_add_name(struct decode_tree *tree, const struct json_reader *reader,
                                         size_t token_end, bool *out_lone)
{
    struct decode_name *name = tree_new_name(tree);
    if (name == NULL) {
        return NULL;
    }
    *name = (struct decode_name){.text = json_unescape(&tree->text, reader->text, out_lone),
                                 .start = (u32)(token_end - reader->text.size),
                                 .end = (u32)token_end};
    assert(name->text.data != NULL);
    frame_resolve(&tree->frames[tree->depth - 1], name);
    return name;
}

static u8 name_flags(const struct decode_tree *tree, const struct decode_name *name, bool lone)
{
    u8 flags = lone ? DECODE_LONE : 0;
    if (tree->depth == 1 && str_equal(name->text, STR(DECODE_INGEST_COLUMN))) {
        flags |= DECODE_RESERVED;
    } else if (name->plan != NULL && name->field == DECODE_NONE) {
        flags |= DECODE_UNKNOWN;
    }
    return flags;
}

/* ---- members of one name ---- */

static bool same_name(const struct decode_tree *tree, u32 a, u32 b)
{
    return str_equal(decode_tree_name(tree, a)->text, decode_tree_name(tree, b)->text);
}

/* `at` has the name of the earlier member `first`. */
static void tree_mark_repeated(struct decode_tree *tree, u32 first, u32 at)
{
    bool is_second = (tree->nodes[first].flags & DECODE_TWICE) == 0;
    tree->nodes[first].flags |= DECODE_TWICE;
    tree->nodes[at].flags |= is_second ? DECODE_REPEATED | DECODE_DROPPED : DECODE_DROPPED;
    tree->found |= DECODE_REPEATED | DECODE_DROPPED;
}

static void tree_compare_members(struct decode_tree *tree, u32 object)
{
    u32 end = tree->nodes[object].next;
    for (u32 at = object + 1; at < end; at = tree->nodes[at].next) {
        for (u32 first = object + 1; first < at; first = tree->nodes[first].next) {
            if (same_name(tree, first, at)) {
                tree_mark_repeated(tree, first, at);
                break;
            }
        }
    }
}

static bool tree_make_slots(struct decode_tree *tree, u32 members)
{
    size_t wanted = 4 * (size_t)MEMBERS_COMPARED_MAX;
    while (wanted < 2 * (size_t)members) {
        wanted *= 2;
    }
    if (wanted > tree->slot_count) {
        u32 *slots = arena_array(tree->arena, wanted, sizeof(*slots));
        if (slots == NULL) {
            return false;
        }
        tree->slots = slots;
        tree->slot_count = wanted;
    }
    return true;
}

/* The same by a hash table, of which as much is used as the object needs. */
static bool tree_hash_members(struct decode_tree *tree, u32 object, u32 members)
{
    if (!tree_make_slots(tree, members)) {
        return false;
    }
    size_t mask = 1;
    while (mask < 2 * (size_t)members) {
        mask *= 2;
    }
    memset(tree->slots, 0, mask * sizeof(*tree->slots));
    mask--;
    u32 end = tree->nodes[object].next;
    for (u32 at = object + 1; at < end; at = tree->nodes[at].next) {
        size_t slot = (size_t)str_hash(decode_tree_name(tree, at)->text) & mask;
        while (tree->slots[slot] != 0 && !same_name(tree, tree->slots[slot], at)) {
            slot = (slot + 1) & mask;
        }
        if (tree->slots[slot] != 0) {
            tree_mark_repeated(tree, tree->slots[slot], at);
        } else {
            tree->slots[slot] = at;
        }
    }
    return true;
}

/* The same of an object whose names are fields, but for one at most. */
static void tree_compare_fields(struct decode_tree *tree, const struct decode_frame *frame)
{
    const struct decode_plan *plan = frame->plan;
    u32 end = tree->nodes[frame->node].next;
    tree->objects++;
    for (u32 at = frame->node + 1; at < end; at = tree->nodes[at].next) {
        u32 field = decode_tree_name(tree, at)->field;
        if (field != DECODE_NONE && plan->seen[field] == tree->objects) {
            tree_mark_repeated(tree, plan->member[field], at);
        } else if (field != DECODE_NONE) {
            plan->seen[field] = tree->objects;
            plan->member[field] = at;
        }
    }
}

/* Fields were watched as they came; only names of no field can repeat unseen. */
static bool tree_find_repeated(struct decode_tree *tree, const struct decode_frame *frame)
{
    bool may_repeat = frame->fields ? frame->repeats || frame->unknown > 1 : frame->members > 1;
    if (!may_repeat) {
        return true;
    }
    if (frame->fields && frame->unknown <= 1) {
        tree_compare_fields(tree, frame);
        return true;
    }
    if (frame->members > MEMBERS_COMPARED_MAX) {
        return tree_hash_members(tree, frame->node, frame->members);
    }
    tree_compare_members(tree, frame->node);
    return true;
}

/* ---- open and close ---- */

/* What the schema says about the value that comes next in `frame`. */
static enum decode_place frame_inside(const struct decode_frame *frame,
                                      const struct decode_name *name,
                                      const struct decode_plan **out_plan)
{
    if (!frame->fields) {
        *out_plan = frame->plan;
        return frame->place;
    }
    if (name->field == DECODE_NONE) {
        return DECODE_PLACE_FREE;
    }
    *out_plan = &frame->plan->children[name->field];
    return DECODE_PLACE_VALUE;
}

/* Sets what the schema says about the inside of an object or array at `place` of `plan`. */
static void frame_place(struct decode_frame *frame, enum json_kind kind, enum decode_place place,
                        const struct decode_plan *plan)
{
    frame->place = DECODE_PLACE_FREE;
    frame->plan = plan;
    if (place == DECODE_PLACE_FREE) {
        return;
    }
    if (place == DECODE_PLACE_ENTRY) {
        frame->fields = kind == JSON_KIND_OBJECT;
        return;
    }
    enum type_kind type = decode_plan_kind(plan);
    if (type == TYPE_STRUCT && kind == JSON_KIND_OBJECT) {
        frame->fields = true;
    } else if (type == TYPE_LIST && kind == JSON_KIND_ARRAY) {
        frame->place = DECODE_PLACE_VALUE;
        frame->plan = &plan->children[0];
    } else if (type == TYPE_MAP && kind == JSON_KIND_OBJECT) {
        frame->place = DECODE_PLACE_VALUE;
        frame->plan = &plan->children[1];
    } else if (type == TYPE_MAP && !decode_plan_has_string_keys(plan)) {
        frame->place = DECODE_PLACE_ENTRY;
    }
}

static void tree_open(struct decode_tree *tree, enum json_kind kind, const struct decode_name *name)
{
    enum decode_place place = DECODE_PLACE_VALUE;
    const struct decode_plan *plan = tree->root;
    if (tree->depth > 0) {
        place = frame_inside(&tree->frames[tree->depth - 1], name, &plan);
    }
    assert(tree->depth <= JSON_DEPTH_MAX);
    struct decode_frame *frame = &tree->frames[tree->depth];
    tree->depth++;
    tree->objects++;
    *frame = (struct decode_frame){.node = (u32)(tree->node_count - 1), .object = tree->objects};
    frame_place(frame, kind, place, plan);
}

static bool tree_close(struct decode_tree *tree, const struct json_reader *reader)
{
    tree->depth--;
    struct decode_frame *frame = &tree->frames[tree->depth];
    struct decode_node *node = &tree->nodes[frame->node];
    node->end = (u32)reader->at;
    node->next = (u32)tree->node_count;
    return node->kind != JSON_KIND_OBJECT || tree_find_repeated(tree, frame);
}

/* ---- the line ---- */

static bool kind_of(enum json_token token, enum json_kind *out_kind)
{
    switch (token) {
    case JSON_TOKEN_OBJECT:
        *out_kind = JSON_KIND_OBJECT;
        return true;
    case JSON_TOKEN_ARRAY:
        *out_kind = JSON_KIND_ARRAY;
        return true;
    case JSON_TOKEN_STRING:
        *out_kind = JSON_KIND_STRING;
        return true;
    case JSON_TOKEN_NUMBER:
        *out_kind = JSON_KIND_NUMBER;
        return true;
    case JSON_TOKEN_TRUE:
        *out_kind = JSON_KIND_TRUE;
        return true;
    case JSON_TOKEN_FALSE:
        *out_kind = JSON_KIND_FALSE;
        return true;
    case JSON_TOKEN_NULL:
        *out_kind = JSON_KIND_NULL;
        return true;
    case JSON_TOKEN_NAME:
    case JSON_TOKEN_OBJECT_END:
    case JSON_TOKEN_ARRAY_END:
    case JSON_TOKEN_END:
    case JSON_TOKEN_INVALID:
        return false;
    }
    return false;
}

/* A value, a member's if `name_at` is a name. */
static bool tree_add_value(struct decode_tree *tree, const struct json_reader *reader,
                           enum json_kind kind, u32 name_at, u8 flags)
{
    struct decode_node *node = tree_add_node(tree, kind, reader->text, name_at);
    if (node == NULL) {
        return false;
    }
    node->flags = flags;
    tree->found |= flags;
    if (tree->depth > 0) {
        tree->frames[tree->depth - 1].members++;
    }
    if (kind == JSON_KIND_OBJECT || kind == JSON_KIND_ARRAY) {
        tree_open(tree, kind, name_at != DECODE_NONE ? &tree->names[name_at] : NULL);
    }
    return true;
}

/* The name just read and the value behind it. */
static enum decode_tree_result tree_add_member(struct decode_tree *tree, struct json_reader *reader)
{
    bool lone = false;
    size_t token_end = (size_t)(reader->text.data - tree->line.data) + reader->text.size;
    struct decode_name *name = tree_add_name(tree, reader, token_end, &lone);
    if (name == NULL) {
        return DECODE_TREE_LIMIT;
    }
    u32 name_at = (u32)(tree->name_count - 1);
    u8 flags = name_flags(tree, name, lone);
    enum json_kind kind;
    if (!kind_of(json_next(reader), &kind)) {
        return DECODE_TREE_NOT_JSON;
    }
    return tree_add_value(tree, reader, kind, name_at, flags) ? DECODE_TREE_OK : DECODE_TREE_LIMIT;
}

static enum decode_tree_result tree_add(struct decode_tree *tree, struct json_reader *reader,
                                        enum json_token token)
{
    if (token == JSON_TOKEN_NAME) {
        return tree_add_member(tree, reader);
    }
    enum json_kind kind;
    bool done = kind_of(token, &kind) ? tree_add_value(tree, reader, kind, DECODE_NONE, 0)
                                      : tree_close(tree, reader);
    return done ? DECODE_TREE_OK : DECODE_TREE_LIMIT;
}

/* ---- members that the straight way takes ---- */

/* False: memory is out. */
static bool tree_make_room(struct decode_tree *tree, size_t more)
{
    while (tree->nodes == NULL || tree->node_capacity - tree->node_count < more) {
        struct decode_node *nodes = grown(tree->arena, tree->nodes, sizeof(*nodes),
                                          tree->node_capacity, &tree->node_capacity);
        if (nodes == NULL) {
            return false;
        }
        tree->nodes = nodes;
    }
    while (tree->names == NULL || tree->name_capacity - tree->name_count < more) {
        struct decode_name *names = grown(tree->arena, tree->names, sizeof(*names),
                                          tree->name_capacity, &tree->name_capacity);
        if (names == NULL) {
            return false;
        }
        tree->names = names;
    }
    return true;
}

/* There is room. */
static void tree_add_taken(struct decode_tree *tree, const struct straight_member *member)
{
    struct decode_frame *frame = &tree->frames[0];
    struct decode_node *node = &tree->nodes[tree->node_count++];
    *node = (struct decode_node){.end = (u32)((const char *)member->end - tree->line.data),
                                 .next = (u32)tree->node_count,
                                 .parent = frame->node,
                                 .name = (u32)tree->name_count,
                                 .kind = JSON_KIND_TRUE};
    node->start = node->end;
    struct decode_name *name = &tree->names[tree->name_count++];
    name->text = tree->root->children[member->field].field->name;
    name->start = name->end = node->end;
    name->field = member->field;
    name->plan = tree->root;
    frame->expected = member->field + 1;
    frame->members++;
    tree->root->seen[member->field] = frame->object;
}

/* In front of the row's members: those that were taken before it was given up. False: memory is
 * out. */
static bool tree_keep(struct decode_tree *tree, struct json_reader *reader)
{
    struct straight *straight = tree->straight;
    struct decode_step **foretold = straight->root.first;
    if (straight->taken == 0) {
        return true;
    }
    if (!tree_make_room(tree, straight->taken)) {
        return false;
    }
    struct straight_member member = {0};
    for (u32 i = 0; i < straight->taken; i++) {
        member = straight_taken(straight, &foretold);
        tree_add_taken(tree, &member);
    }
    json_pass(reader, (const char *)member.end);
    straight->foretold = foretold;
    straight->taken = 0;
    return true;
}

/* Between members of the row: those that come next, up to the first that is not taken. False:
 * memory is out. */
static bool tree_take(struct decode_tree *tree, struct json_reader *reader)
{
    enum { TAKEN_MAX = 16 };
    struct straight_member members[TAKEN_MAX];
    str rest = json_rest(reader);
    bool first = tree->frames[0].members == 0;
    if (tree->take == NULL || decode_tree_kind(tree, 0) != JSON_KIND_OBJECT || rest.size == 0 ||
        rest.data[0] != (first ? '"' : ',')) {
        return true;
    }
    const char *at = first ? rest.data : rest.data + 1;
    tree->straight->object = tree->frames[0].object;
    size_t count = tree->take(tree->straight, (const u8 *)at, tree->row, members, TAKEN_MAX);
    if (!tree_make_room(tree, count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        tree_add_taken(tree, &members[i]);
    }
    if (count > 0) {
        json_pass(reader, (const char *)members[count - 1].end);
    }
    return true;
}

enum decode_tree_result decode_tree_read(struct decode_tree *tree, str line)
{
    tree->line = line;
    tree->node_count = 0;
    tree->name_count = 0;
    tree->found = 0;
    tree->depth = 0;
    if (line.size >= DECODE_NONE || !tree_make_text_room(tree, line.size)) {
        return DECODE_TREE_LIMIT;
    }
    struct json_reader reader;
    json_reader_init(&reader, line);
    for (;;) {
        if (tree->depth == 1 && !(tree_keep(tree, &reader) && tree_take(tree, &reader))) {
            return DECODE_TREE_LIMIT;
        }
        enum json_token token = json_next(&reader);
        if (token == JSON_TOKEN_END) {
            return DECODE_TREE_OK;
        }
        if (token == JSON_TOKEN_INVALID) {
            return DECODE_TREE_NOT_JSON;
        }
        enum decode_tree_result result = tree_add(tree, &reader, token);
        if (result != DECODE_TREE_OK) {
            return result;
        }
    }
}

u64 decode_tree_members(struct decode_tree *tree, struct decode_plan *plan, u32 at)
{
    tree->objects++;
    if (at == DECODE_NONE) {
        return tree->objects;
    }
    u32 end = tree->nodes[at].next;
    for (u32 member = at + 1; member < end; member = tree->nodes[member].next) {
        u32 field = decode_tree_name(tree, member)->field;
        if (field != DECODE_NONE && (tree->nodes[member].flags & DECODE_DROPPED) == 0) {
            plan->seen[field] = tree->objects;
            plan->member[field] = member;
        }
    }
    return tree->objects;
}
