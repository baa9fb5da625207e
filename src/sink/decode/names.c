#include "sink/decode/names.h"

/* Second places of names, inside dropped members too. */
static void check_repeated(struct decode_hits *hits, const struct decode_tree *tree)
{
    for (u32 at = 1; at < tree->node_count && !decode_hits_full(hits); at++) {
        if ((tree->nodes[at].flags & DECODE_REPEATED) != 0) {
            decode_hit(hits, tree, REJECT_DUPLICATE_KEY, decode_at_node(at),
                       STR("the name appears twice"));
        }
    }
}

static void check_unicode(struct decode_hits *hits, const struct decode_tree *tree)
{
    u32 at = 1;
    while (at < tree->node_count && !decode_hits_full(hits)) {
        u8 flags = tree->nodes[at].flags;
        if ((flags & DECODE_LONE) != 0 && (flags & DECODE_DROPPED) == 0) {
            decode_hit(hits, tree, REJECT_BAD_UNICODE, decode_at_node(at),
                       STR("a surrogate without its pair"));
        }
        at = decode_tree_next(tree, at);
    }
}

static void check_reserved(struct decode_hits *hits, const struct decode_tree *tree)
{
    u32 at = 1;
    while ((tree->nodes[at].flags & DECODE_RESERVED) == 0) {
        at = tree->nodes[at].next;
    }
    decode_hit(hits, tree, REJECT_RESERVED_COLUMN, decode_at_node(at),
               STR("the sink writes this column"));
}

static void check_unknown(struct decode_hits *hits, const struct decode_tree *tree,
                          enum decode_unknown unknown)
{
    u32 at = 1;
    while (at < tree->node_count && !decode_hits_full(hits)) {
        const struct decode_node *node = &tree->nodes[at];
        bool is_captured = unknown == DECODE_UNKNOWN_CAPTURE && node->parent == 0;
        if ((node->flags & DECODE_UNKNOWN) != 0 && (node->flags & DECODE_DROPPED) == 0 &&
            !is_captured) {
            decode_hit_unknown(hits, tree, at);
        }
        at = decode_tree_next(tree, at);
    }
}

void decode_check_names(struct decode_hits *hits, const struct decode_tree *tree,
                        enum decode_unknown unknown)
{
    if ((tree->found & DECODE_REPEATED) != 0) {
        check_repeated(hits, tree);
    }
    if ((tree->found & DECODE_LONE) != 0) {
        check_unicode(hits, tree);
    }
    if ((tree->found & DECODE_RESERVED) != 0) {
        check_reserved(hits, tree);
    }
    if ((tree->found & DECODE_UNKNOWN) != 0 && unknown != DECODE_UNKNOWN_IGNORE) {
        check_unknown(hits, tree, unknown);
    }
}

/* ---- capture ---- */

bool decode_is_captured(const struct decode_tree *tree, u32 member)
{
    const struct decode_node *node = &tree->nodes[member];
    if ((node->flags & (DECODE_RESERVED | DECODE_DROPPED)) != 0) {
        return false;
    }
    const struct decode_name *name = decode_tree_name(tree, member);
    return name->field == DECODE_NONE || name->plan->children[name->field].role == DECODE_CAPTURE;
}

/* Strings in captured values are stored, so they must be whole; names were looked at before. */
static void check_captured(struct decode_hits *hits, const struct decode_tree *tree, u32 member)
{
    if (!json_has_lone_surrogate(decode_tree_token(tree, member))) {
        return;
    }
    u32 at = member;
    while (at < tree->nodes[member].next && !decode_hits_full(hits)) {
        const struct decode_node *node = &tree->nodes[at];
        if (node->kind == JSON_KIND_STRING && (node->flags & DECODE_DROPPED) == 0 &&
            json_has_lone_surrogate(decode_tree_token(tree, at))) {
            decode_hit(hits, tree, REJECT_BAD_UNICODE, decode_at_node(at),
                       STR("a surrogate without its pair"));
        }
        at = decode_tree_next(tree, at);
    }
}

/* As sent, but on one line. */
static void append_token(buf *out, str token)
{
    size_t start = out->size;
    buf_append(out, token);
    for (size_t i = start; i < out->size; i++) {
        if (out->data[i] == '\r' || out->data[i] == '\n') {
            out->data[i] = ' ';
        }
    }
}

void decode_capture(struct decode_hits *hits, const struct decode_tree *tree, buf *out,
                    size_t *out_count)
{
    size_t count = 0;
    buf_append_byte(out, '{');
    for (u32 at = 1; at < tree->node_count; at = tree->nodes[at].next) {
        if (!decode_is_captured(tree, at)) {
            continue;
        }
        check_captured(hits, tree, at);
        if (count > 0) {
            buf_append_byte(out, ',');
        }
        append_token(out, decode_tree_name_token(tree, at));
        buf_append_byte(out, ':');
        append_token(out, decode_tree_token(tree, at));
        count++;
    }
    buf_append_byte(out, '}');
    *out_count = count;
}
