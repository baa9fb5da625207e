#include "sink/decode/hits.h"

#include "base/assert.h"
#include "table/schema.h"

#define ELLIPSIS "\xE2\x80\xA6"

enum {
    /* A path or a shown value with its cut mark, the type's text and the words around it. */
    HIT_TEXT_MAX = DECODE_PATH_BYTES_MAX + REJECT_VALUE_BYTES_MAX + 256,
    /* did_you_mean is one more path. */
    TEXT_MAX = (REJECT_ALSO_MAX + 2) * HIT_TEXT_MAX,
    PATH_NODES_MAX = JSON_DEPTH_MAX + 1,
};

bool decode_hits_init(struct decode_hits *hits, struct arena *arena)
{
    *hits = (struct decode_hits){.text = buf_create(arena, TEXT_MAX, TEXT_MAX)};
    return buf_ok(&hits->text);
}

void decode_hits_clear(struct decode_hits *hits)
{
    hits->count = 0;
    hits->did_you_mean = (str){NULL, 0};
    buf_truncate(&hits->text, 0);
}

/* ---- paths ---- */

/* The longest prefix of at most `size_max` bytes that ends between characters. */
static str cut(str text, size_t size_max)
{
    if (text.size <= size_max) {
        return text;
    }
    size_t size = size_max;
    while (size > 0 && ((u8)text.data[size] & 0xC0) == 0x80) {
        size--;
    }
    return (str){text.data, size};
}

/* Appends to the path that begins at `start`, up to its limit. False: it is full. */
static bool path_append(buf *out, size_t start, str text)
{
    size_t left = DECODE_PATH_BYTES_MAX - (out->size - start);
    buf_append(out, cut(text, left));
    return text.size <= left;
}

static bool path_append_name(buf *out, size_t start, str name, bool is_first)
{
    return (is_first || path_append(out, start, STR("."))) && path_append(out, start, name);
}

/* The element's position in its array. */
static bool path_append_position(buf *out, size_t start, const struct decode_tree *tree, u32 node)
{
    i64 position = 0;
    for (u32 at = tree->nodes[node].parent + 1; at < node; at = tree->nodes[at].next) {
        position++;
    }
    if (DECODE_PATH_BYTES_MAX - (out->size - start) < 24) {
        return false;
    }
    buf_append_byte(out, '[');
    buf_append_i64(out, position);
    buf_append_byte(out, ']');
    return true;
}

/* The path of a node: names joined by dots, positions in brackets. Empty for the root. */
static bool path_append_node(buf *out, size_t start, const struct decode_tree *tree, u32 node)
{
    u32 chain[PATH_NODES_MAX];
    size_t count = 0;
    for (u32 at = node; tree->nodes[at].parent != DECODE_NONE; at = tree->nodes[at].parent) {
        assert(count < PATH_NODES_MAX);
        chain[count] = at;
        count++;
    }
    bool room = true;
    for (size_t i = count; room && i > 0; i--) {
        u32 at = chain[i - 1];
        room = tree->nodes[at].name == DECODE_NONE
                   ? path_append_position(out, start, tree, at)
                   : path_append_name(out, start, decode_tree_name(tree, at)->text, i == count);
    }
    return room;
}

enum { TRAIL_MAX = SCHEMA_DEPTH_MAX + 1 };

static void path_append_trail(buf *out, size_t start, const struct decode_trail *trail,
                              bool is_first)
{
    str names[TRAIL_MAX];
    size_t count = 0;
    for (; trail != NULL; trail = trail->outer) {
        assert(count < TRAIL_MAX);
        names[count] = trail->name;
        count++;
    }
    for (size_t i = count; i > 0; i--) {
        if (!path_append_name(out, start, names[i - 1], is_first && i == count)) {
            return;
        }
    }
}

static str path_of(struct decode_hits *hits, const struct decode_tree *tree, struct decode_at at)
{
    buf *out = &hits->text;
    size_t start = out->size;
    if (at.node != DECODE_NONE) {
        (void)path_append_node(out, start, tree, at.node);
    } else if (path_append_node(out, start, tree, at.within)) {
        bool is_top = tree->nodes[at.within].parent == DECODE_NONE;
        path_append_trail(out, start, at.trail, is_top);
    }
    assert(buf_ok(out));
    return str_slice(buf_str(out), start, out->size);
}

/* ---- details ---- */

static str kind_text(enum json_kind kind)
{
    switch (kind) {
    case JSON_KIND_OBJECT:
        return STR("an object");
    case JSON_KIND_ARRAY:
        return STR("an array");
    case JSON_KIND_STRING:
        return STR("a string");
    case JSON_KIND_NUMBER:
        return STR("a number");
    case JSON_KIND_TRUE:
        return STR("true");
    case JSON_KIND_FALSE:
        return STR("false");
    case JSON_KIND_NULL:
        return STR("null");
    }
    return STR("");
}

/* The value as sent, on one line, cut. */
static void append_value(buf *out, str token)
{
    str shown = cut(token, REJECT_VALUE_BYTES_MAX);
    for (size_t i = 0; i < shown.size; i++) {
        char byte = shown.data[i];
        buf_append_byte(out, (u8)(byte == '\r' || byte == '\n' ? ' ' : byte));
    }
    if (shown.size < token.size) {
        buf_append(out, STR(ELLIPSIS));
    }
}

void decode_hit(struct decode_hits *hits, const struct decode_tree *tree, enum reject_reason reason,
                struct decode_at at, str detail)
{
    if (decode_hits_full(hits)) {
        return;
    }
    str column = path_of(hits, tree, at);
    hits->hits[hits->count] = (struct reject_hit){
        .reason = reason, .column = column, .detail = detail};
    hits->count++;
}

static void append_misfit(buf *out, enum reject_reason reason, const struct decode_plan *plan,
                          enum json_kind kind, str token, size_t length)
{
    if (reason == REJECT_WRONG_TYPE) {
        buf_append(out, kind_text(kind));
    } else if (reason == REJECT_WRONG_LENGTH) {
        buf_append_i64(out, (i64)length);
        buf_append(out, STR(" bytes"));
    } else {
        append_value(out, token);
    }
    buf_append(out, STR(" is no "));
    buf_append(out, plan->type_text);
}

void decode_hit_misfit(struct decode_hits *hits, const struct decode_tree *tree,
                       enum reject_reason reason, struct decode_at at,
                       const struct decode_plan *plan, enum json_kind kind, str token,
                       size_t length)
{
    if (decode_hits_full(hits)) {
        return;
    }
    if (reason == REJECT_BAD_UNICODE) {
        decode_hit(hits, tree, reason, at, STR("a surrogate without its pair"));
        return;
    }
    size_t start = hits->text.size;
    append_misfit(&hits->text, reason, plan, kind, token, length);
    str detail = str_slice(buf_str(&hits->text), start, hits->text.size);
    decode_hit(hits, tree, reason, at, detail);
}

void decode_hit_kind(struct decode_hits *hits, const struct decode_tree *tree, u32 node, str what)
{
    if (decode_hits_full(hits)) {
        return;
    }
    size_t start = hits->text.size;
    buf_append(&hits->text, kind_text(decode_tree_kind(tree, node)));
    buf_append(&hits->text, STR(" is no "));
    buf_append(&hits->text, what);
    str detail = str_slice(buf_str(&hits->text), start, hits->text.size);
    decode_hit(hits, tree, REJECT_WRONG_TYPE, decode_at_node(node), detail);
}

/* ---- unknown names ---- */

/* The first field in schema order whose name differs in ASCII case alone; at the top level not one
 * that the sink writes. */
static const struct decode_plan *near_miss(const struct decode_name *name)
{
    for (size_t i = 0; i < name->plan->child_count; i++) {
        const struct decode_plan *field = &name->plan->children[i];
        bool is_sinks_own = field->role == DECODE_INGEST || field->role == DECODE_CAPTURE;
        if (!is_sinks_own && str_equal_ignore_case(field->field->name, name->text)) {
            return field;
        }
    }
    return NULL;
}

void decode_hit_unknown(struct decode_hits *hits, const struct decode_tree *tree, u32 node)
{
    bool is_first = hits->count == 0;
    bool is_column = tree->nodes[node].parent == 0;
    decode_hit(hits, tree, REJECT_UNKNOWN_COLUMN, decode_at_node(node),
               is_column ? STR("no such column") : STR("no such field"));
    const struct decode_plan *meant = is_first ? near_miss(decode_tree_name(tree, node)) : NULL;
    if (meant != NULL) {
        struct decode_trail trail = {.name = meant->field->name};
        hits->did_you_mean = path_of(hits, tree,
                                     (struct decode_at){.node = DECODE_NONE,
                                                        .within = tree->nodes[node].parent,
                                                        .trail = &trail});
    }
}
