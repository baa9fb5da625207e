#include "sink/decode/variant.h"

#include "base/assert.h"
#include "base/real.h"
#include "sink/decode/names.h"
#include "sink/decode/scalar.h"

/* What one value is made with. */
struct variant_making {
    struct variant_builder *builder;
    struct decode_hits *hits;
    struct decode_tree *tree;
    const struct decode_plan *plan;
};

static void make_number(const struct variant_making *making, u32 node)
{
    str text = decode_tree_token(making->tree, node);
    i128 unscaled = 0;
    i32 scale = 0;
    if (decode_exact(text, &unscaled, &scale)) {
        if (scale == 0 && unscaled >= INT64_MIN && unscaled <= INT64_MAX) {
            variant_integer(making->builder, (i64)unscaled);
        } else {
            variant_decimal(making->builder, unscaled, scale);
        }
        return;
    }
    double value = 0;
    if (!real_parse_double(text, &value)) {
        decode_hit_misfit(making->hits, making->tree, REJECT_OUT_OF_RANGE, decode_at_node(node),
                          making->plan, JSON_KIND_NUMBER, text, 0);
    }
    variant_double(making->builder, value);
}

static void make_string(const struct variant_making *making, u32 node)
{
    buf *scratch = &making->tree->text;
    size_t start = scratch->size;
    bool lone = false;
    str text = json_unescape(scratch, decode_tree_token(making->tree, node), &lone);
    assert(text.data != NULL);
    if (lone) {
        decode_hit(making->hits, making->tree, REJECT_BAD_UNICODE, decode_at_node(node),
                   STR("a surrogate without its pair"));
    }
    variant_string(making->builder, text);
    buf_truncate(scratch, start);
}

/* One node; what is inside an object or array comes next, and its end after that. */
static void make_node(const struct variant_making *making, u32 node)
{
    switch (decode_tree_kind(making->tree, node)) {
    case JSON_KIND_OBJECT:
        variant_object(making->builder);
        return;
    case JSON_KIND_ARRAY:
        variant_array(making->builder);
        return;
    case JSON_KIND_STRING:
        make_string(making, node);
        return;
    case JSON_KIND_NUMBER:
        make_number(making, node);
        return;
    case JSON_KIND_TRUE:
        variant_boolean(making->builder, true);
        return;
    case JSON_KIND_FALSE:
        variant_boolean(making->builder, false);
        return;
    case JSON_KIND_NULL:
        variant_null(making->builder);
        return;
    }
}

/* The value at `node` and all inside it. `parent` is the container that is still open around it. */
static void make_value(const struct variant_making *making, u32 node)
{
    const struct decode_node *nodes = making->tree->nodes;
    u32 end = nodes[node].next;
    u32 open = nodes[node].parent;
    for (u32 at = node; at < end; at = decode_tree_next(making->tree, at)) {
        while (open != nodes[at].parent) {
            variant_end(making->builder);
            open = nodes[open].parent;
        }
        if ((nodes[at].flags & DECODE_DROPPED) != 0) {
            continue;
        }
        if (at != node && nodes[at].name != DECODE_NONE) {
            variant_name(making->builder, decode_tree_name(making->tree, at)->text);
        }
        make_node(making, at);
        enum json_kind kind = decode_tree_kind(making->tree, at);
        if (kind == JSON_KIND_OBJECT || kind == JSON_KIND_ARRAY) {
            open = at;
        }
    }
    while (open != nodes[node].parent) {
        variant_end(making->builder);
        open = nodes[open].parent;
    }
}

static bool append_made(struct variant_builder *builder, struct column *column)
{
    str metadata = {0};
    str value = {0};
    return variant_finish(builder, &metadata, &value) &&
           column_append_bytes(&column->children[0], metadata) &&
           column_append_bytes(&column->children[1], value) && column_append_nested(column);
}

bool decode_variant_append(struct variant_builder *builder, struct decode_hits *hits,
                           struct decode_tree *tree, const struct decode_plan *plan,
                           struct column *column, u32 node)
{
    const struct variant_making making = {builder, hits, tree, plan};
    variant_begin(builder);
    make_value(&making, node);
    return append_made(builder, column);
}

bool decode_variant_capture(struct variant_builder *builder, struct decode_hits *hits,
                            struct decode_tree *tree, const struct decode_plan *plan,
                            struct column *column)
{
    const struct variant_making making = {builder, hits, tree, plan};
    size_t count = 0;
    variant_begin(builder);
    variant_object(builder);
    for (u32 at = 1; at < tree->node_count; at = tree->nodes[at].next) {
        if (decode_is_captured(tree, at)) {
            variant_name(builder, decode_tree_name(tree, at)->text);
            make_value(&making, at);
            count++;
        }
    }
    variant_end(builder);
    bool is_empty = count == 0 && !column->field->required;
    return is_empty ? column_append_null(column) : append_made(builder, column);
}
