#include "sink/decode/value.h"

#include "base/assert.h"

/* Functions here walk a schema's tree by calling themselves: its depth is bounded where a schema is
 * read. */

bool decode_value_append(struct column *column, const struct decode_scalar *value)
{
    switch (column->field->type.kind) {
    case TYPE_STRING:
    case TYPE_BINARY:
        return column_append_bytes(column, value->bytes);
    case TYPE_FIXED:
        return column_append_fixed(column, value->bytes.data);
    case TYPE_BOOLEAN:
    case TYPE_INT:
    case TYPE_LONG:
    case TYPE_FLOAT:
    case TYPE_DOUBLE:
    case TYPE_DECIMAL:
    case TYPE_DATE:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_TIMESTAMP_NS:
    case TYPE_TIMESTAMPTZ_NS:
    case TYPE_UUID:
        return column_append_fixed(column, value->fixed);
    case TYPE_UNKNOWN:
    case TYPE_STRUCT:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_VARIANT:
    case TYPE_GEOMETRY:
    case TYPE_GEOGRAPHY:
        break;
    }
    assert(false);
    return false;
}

/* Whether values are in children: of nested types, and of a variant. */
static bool value_has_parts(const struct column *column)
{
    return type_is_nested(&column->field->type) || column->child_count > 0;
}

/* The bytes of a scalar that is there. */
static str value_bytes(const struct column *column, i64 index)
{
    const char *data = (const char *)column->data;
    size_t width = column_width(&column->field->type);
    if (width > 0) {
        return (str){data + (size_t)index * width, width};
    }
    if (column->data_size == 0) {
        return STR("");
    }
    i64 start = column->offsets[index];
    return (str){data + start, (size_t)(column->offsets[index + 1] - start)};
}

/* Where the children's values of a nested value that is there begin, and how many there are. */
static i64 value_children(const struct column *column, i64 index, i64 *out_first)
{
    if (!type_repeats(&column->field->type)) {
        *out_first = index;
        return 1;
    }
    *out_first = column->offsets[index];
    return column->offsets[index + 1] - column->offsets[index];
}

static bool copy_children(struct column *to, const struct column *from, i64 index)
{
    i64 first = 0;
    i64 count = value_children(from, index, &first);
    for (size_t child = 0; child < from->child_count; child++) {
        for (i64 i = first; i < first + count; i++) {
            if (!decode_value_copy(&to->children[child], &from->children[child], i)) {
                return false;
            }
        }
    }
    return column_append_nested(to);
}

bool decode_value_copy(struct column *to, const struct column *from, i64 index)
{
    assert(index < from->count);
    assert(to->field->type.kind == from->field->type.kind);
    if (from->valid[index] == 0) {
        return column_append_null(to);
    }
    if (value_has_parts(from)) {
        return copy_children(to, from, index);
    }
    str bytes = value_bytes(from, index);
    return column_width(&from->field->type) > 0 ? column_append_fixed(to, bytes.data)
                                                : column_append_bytes(to, bytes);
}

u64 decode_value_hash(const struct column *column, i64 index)
{
    if (column->valid[index] == 0) {
        return 1;
    }
    if (!value_has_parts(column)) {
        return str_hash(value_bytes(column, index));
    }
    i64 first = 0;
    i64 count = value_children(column, index, &first);
    u64 hash = (u64)count;
    for (size_t child = 0; child < column->child_count; child++) {
        for (i64 i = first; i < first + count; i++) {
            u64 parts[2] = {hash, decode_value_hash(&column->children[child], i)};
            hash = str_hash((str){(const char *)parts, sizeof(parts)});
        }
    }
    return hash;
}

static bool children_equal(const struct column *column, i64 a, i64 b)
{
    i64 first_a = 0;
    i64 first_b = 0;
    i64 count = value_children(column, a, &first_a);
    if (count != value_children(column, b, &first_b)) {
        return false;
    }
    for (size_t child = 0; child < column->child_count; child++) {
        for (i64 i = 0; i < count; i++) {
            if (!decode_value_equal(&column->children[child], first_a + i, first_b + i)) {
                return false;
            }
        }
    }
    return true;
}

bool decode_value_equal(const struct column *column, i64 a, i64 b)
{
    if (column->valid[a] == 0 || column->valid[b] == 0) {
        return column->valid[a] == column->valid[b];
    }
    if (value_has_parts(column)) {
        return children_equal(column, a, b);
    }
    return str_equal(value_bytes(column, a), value_bytes(column, b));
}
