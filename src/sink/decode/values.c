#include "sink/decode/values.h"

#include "base/assert.h"
#include "sink/decode/value.h"

/* Functions here walk a schema's tree by calling themselves, never the row's: the depth of a
 * schema is bounded where it is read. */

/* After an append, or a hit. */
static bool row_goes_on(struct decode_row *row, bool appended)
{
    row->out_of_memory = row->out_of_memory || !appended;
    return appended && !decode_hits_full(row->hits);
}

static bool append_bad(struct decode_row *row, struct column *column)
{
    row->bad++;
    return row_goes_on(row, column_append_null(column));
}

/* A value that no nesting takes care of: a scalar, or one of the wrong kind for a nested type. */
static bool append_scalar(struct decode_row *row, const struct decode_plan *plan,
                          struct column *column, enum json_kind kind, str token,
                          struct decode_at at)
{
    buf *scratch = &row->tree->text;
    size_t start = scratch->size;
    struct decode_scalar value = {0};
    enum reject_reason reason = REJECT_WRONG_TYPE;
    enum decode_fit fit = decode_scalar_read(&plan->field->type, kind, token, scratch, &value,
                                             &reason);
    bool going = true;
    if (fit == DECODE_FITS) {
        going = row_goes_on(row, decode_value_append(column, &value));
    } else {
        decode_hit_misfit(row->hits, row->tree, reason, at, plan, kind, token, value.bytes.size);
        going = append_bad(row, column);
    }
    buf_truncate(scratch, start);
    return going;
}

/* A value where null may or may not stand. */
static bool append_slot(struct decode_row *row, struct decode_plan *plan, struct column *column,
                        struct decode_at at);

/* ---- struct ---- */

/* `at.node` may be DECODE_NONE: an absent struct whose default is {}. */
static bool append_struct(struct decode_row *row, struct decode_plan *plan, struct column *column,
                          struct decode_at at)
{
    u64 object = decode_tree_members(row->tree, plan, at.node);
    bool is_there = at.node != DECODE_NONE;
    for (size_t i = 0; i < plan->child_count; i++) {
        struct decode_trail trail = {.outer = is_there ? NULL : at.trail,
                                     .name = plan->children[i].field->name};
        struct decode_at field = {.node = plan->seen[i] == object ? plan->member[i] : DECODE_NONE,
                                  .within = is_there ? at.node : at.within,
                                  .trail = &trail};
        if (!decode_member(row, &plan->children[i], &column->children[i], field)) {
            return false;
        }
    }
    return row_goes_on(row, column_append_nested(column));
}

/* ---- list ---- */

static bool append_list(struct decode_row *row, struct decode_plan *plan, struct column *column,
                        u32 node)
{
    u32 end = row->tree->nodes[node].next;
    for (u32 at = node + 1; at < end; at = row->tree->nodes[at].next) {
        if (!append_slot(row, &plan->children[0], &column->children[0], decode_at_node(at))) {
            return false;
        }
    }
    return row_goes_on(row, column_append_nested(column));
}

/* ---- map ---- */

/* The keys of one map so far: those from value `first` of the key column on. */
struct key_set {
    struct decode_plan *plan;
    const struct column *keys;
    i64 first;
    size_t mask;
};

/* A table for as many keys as the JSON value has members or elements. False at the arena's
 * limit. */
static bool key_set_begin(struct decode_row *row, struct decode_plan *plan,
                          const struct column *keys, u32 node, struct key_set *out_set)
{
    const struct decode_tree *tree = row->tree;
    size_t wanted = 8;
    for (u32 at = node + 1, n = 0; at < tree->nodes[node].next; at = tree->nodes[at].next) {
        n++;
        wanted = wanted < 2 * (size_t)n ? 2 * wanted : wanted;
    }
    if (wanted > plan->slot_count) {
        plan->slots = arena_array(row->arena, wanted, sizeof(*plan->slots));
        plan->slot_count = plan->slots != NULL ? wanted : 0;
    }
    if (plan->slots == NULL) {
        return row_goes_on(row, false);
    }
    memset(plan->slots, 0, wanted * sizeof(*plan->slots));
    *out_set = (struct key_set){
        .plan = plan, .keys = keys, .first = keys->count, .mask = wanted - 1};
    return true;
}

/* Adds the key appended last. False: an equal one is there. */
static bool key_set_add(const struct key_set *set)
{
    i64 last = set->keys->count - 1;
    u32 *slots = set->plan->slots;
    size_t slot = (size_t)decode_value_hash(set->keys, last) & set->mask;
    while (slots[slot] != 0) {
        if (decode_value_equal(set->keys, set->first + slots[slot] - 1, last)) {
            return false;
        }
        slot = (slot + 1) & set->mask;
    }
    slots[slot] = (u32)(last - set->first + 1);
    return true;
}

/* After a key was appended: keys are compared as stored, those that could not be made not at
 * all. */
static bool check_key(struct decode_row *row, const struct key_set *set, u64 bad_before,
                      struct decode_at at)
{
    if (row->bad == bad_before && !key_set_add(set)) {
        decode_hit(row->hits, row->tree, REJECT_DUPLICATE_KEY, at, STR("the key appears twice"));
    }
    return row_goes_on(row, true);
}

/* String keys cannot repeat here: names that do are dropped members. Half pairs in names are
 * hits by now. */
static bool append_string_map(struct decode_row *row, struct decode_plan *plan,
                              struct column *column, u32 node)
{
    struct decode_tree *tree = row->tree;
    u32 end = tree->nodes[node].next;
    for (u32 at = node + 1; at < end; at = tree->nodes[at].next) {
        if ((tree->nodes[at].flags & DECODE_DROPPED) != 0) {
            continue;
        }
        str key = decode_tree_name(tree, at)->text;
        if (!row_goes_on(row, column_append_bytes(&column->children[0], key)) ||
            !append_slot(row, &plan->children[1], &column->children[1], decode_at_node(at))) {
            return false;
        }
    }
    return row_goes_on(row, column_append_nested(column));
}

/* Object form: a name is taken as the key type takes a JSON string. */
static bool append_map_of_names(struct decode_row *row, struct decode_plan *plan,
                                struct column *column, u32 node)
{
    struct decode_tree *tree = row->tree;
    struct key_set set;
    if (!key_set_begin(row, plan, &column->children[0], node, &set)) {
        return false;
    }
    u32 end = tree->nodes[node].next;
    for (u32 at = node + 1; at < end; at = tree->nodes[at].next) {
        if ((tree->nodes[at].flags & DECODE_DROPPED) != 0) {
            continue;
        }
        u64 bad = row->bad;
        struct decode_at place = decode_at_node(at);
        if (!append_scalar(row, &plan->children[0], &column->children[0], JSON_KIND_STRING,
                           decode_tree_name_token(tree, at), place) ||
            !check_key(row, &set, bad, place) ||
            !append_slot(row, &plan->children[1], &column->children[1], place)) {
            return false;
        }
    }
    return row_goes_on(row, column_append_nested(column));
}

/* One {"key": …, "value": …}. */
static bool append_entry(struct decode_row *row, struct decode_plan *plan, struct column *column,
                         u32 entry, const struct key_set *set)
{
    u64 object = decode_tree_members(row->tree, plan, entry);
    struct decode_trail trail[2];
    struct decode_at at[2];
    for (size_t i = 0; i < 2; i++) {
        trail[i] = (struct decode_trail){.name = plan->children[i].field->name};
        at[i] = (struct decode_at){.node = plan->seen[i] == object ? plan->member[i] : DECODE_NONE,
                                   .within = entry,
                                   .trail = &trail[i]};
    }
    u64 bad = row->bad;
    return append_slot(row, &plan->children[0], &column->children[0], at[0]) &&
           check_key(row, set, bad, at[0]) &&
           append_slot(row, &plan->children[1], &column->children[1], at[1]);
}

static bool append_map_of_entries(struct decode_row *row, struct decode_plan *plan,
                                  struct column *column, u32 node)
{
    struct decode_tree *tree = row->tree;
    struct key_set set;
    if (!key_set_begin(row, plan, &column->children[0], node, &set)) {
        return false;
    }
    u32 end = tree->nodes[node].next;
    for (u32 at = node + 1; at < end; at = tree->nodes[at].next) {
        enum json_kind kind = decode_tree_kind(tree, at);
        bool going = true;
        if (kind == JSON_KIND_OBJECT) {
            going = append_entry(row, plan, column, at, &set);
        } else if (kind == JSON_KIND_NULL) {
            decode_hit(row->hits, tree, REJECT_REQUIRED_MISSING, decode_at_node(at), STR("null"));
            going = row_goes_on(row, true);
        } else {
            decode_hit_kind(row->hits, tree, at, STR("map entry"));
            going = row_goes_on(row, true);
        }
        if (!going) {
            return false;
        }
    }
    return row_goes_on(row, column_append_nested(column));
}

static bool append_map(struct decode_row *row, struct decode_plan *plan, struct column *column,
                       u32 node)
{
    if (decode_tree_kind(row->tree, node) == JSON_KIND_ARRAY) {
        return append_map_of_entries(row, plan, column, node);
    }
    return decode_plan_has_string_keys(plan) ? append_string_map(row, plan, column, node)
                                             : append_map_of_names(row, plan, column, node);
}

/* ---- variant ---- */

static bool append_variant(struct decode_row *row, const struct decode_plan *plan,
                           struct column *column, u32 node)
{
    size_t hits = row->hits->count;
    bool appended = decode_variant_append(row->variant, row->hits, row->tree, plan, column, node);
    row->bad += row->hits->count > hits ? 1 : 0;
    return row_goes_on(row, appended);
}

/* ---- any ---- */

/* A value that is not null. */
static bool append_value(struct decode_row *row, struct decode_plan *plan, struct column *column,
                         u32 node)
{
    enum json_kind json = decode_tree_kind(row->tree, node);
    enum type_kind type = decode_plan_kind(plan);
    if (type == TYPE_STRUCT && json == JSON_KIND_OBJECT) {
        return append_struct(row, plan, column, decode_at_node(node));
    }
    if (type == TYPE_LIST && json == JSON_KIND_ARRAY) {
        return append_list(row, plan, column, node);
    }
    if (type == TYPE_MAP && (json == JSON_KIND_OBJECT ||
                             (json == JSON_KIND_ARRAY && !decode_plan_has_string_keys(plan)))) {
        return append_map(row, plan, column, node);
    }
    if (type == TYPE_VARIANT) {
        return append_variant(row, plan, column, node);
    }
    return append_scalar(row, plan, column, json, decode_tree_token(row->tree, node),
                         decode_at_node(node));
}

static bool append_slot(struct decode_row *row, struct decode_plan *plan, struct column *column,
                        struct decode_at at)
{
    bool is_there = at.node != DECODE_NONE;
    if (is_there && decode_tree_kind(row->tree, at.node) != JSON_KIND_NULL) {
        return append_value(row, plan, column, at.node);
    }
    if (!plan->field->required) {
        return row_goes_on(row, column_append_null(column));
    }
    decode_hit(row->hits, row->tree, REJECT_REQUIRED_MISSING, at,
               is_there ? STR("null") : STR("absent"));
    return append_bad(row, column);
}

bool decode_member(struct decode_row *row, struct decode_plan *plan, struct column *column,
                   struct decode_at at)
{
    if (at.node != DECODE_NONE || !plan->has_default) {
        return append_slot(row, plan, column, at);
    }
    if (decode_plan_kind(plan) == TYPE_STRUCT) {
        return append_struct(row, plan, column, at);
    }
    return row_goes_on(row, decode_value_copy(column, plan->default_value, 0));
}
