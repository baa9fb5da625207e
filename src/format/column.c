#include "format/column.h"

#include "base/assert.h"

/* Functions here walk a schema's tree by calling themselves: its depth is bounded where a schema is
 * read, long before there is a column. */

enum { COLUMN_CAPACITY_FIRST = 32 };

size_t column_width(const struct type *type)
{
    switch (type->kind) {
    case TYPE_BOOLEAN:
        return 1;
    case TYPE_INT:
    case TYPE_FLOAT:
    case TYPE_DATE:
        return 4;
    case TYPE_LONG:
    case TYPE_DOUBLE:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_TIMESTAMP_NS:
    case TYPE_TIMESTAMPTZ_NS:
        return 8;
    case TYPE_DECIMAL:
    case TYPE_UUID:
        return 16;
    case TYPE_FIXED:
        return (size_t)type->length;
    case TYPE_STRING:
    case TYPE_BINARY:
    case TYPE_UNKNOWN:
    case TYPE_STRUCT:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_VARIANT:
    case TYPE_GEOMETRY:
    case TYPE_GEOGRAPHY:
        return 0;
    }
    return 0;
}

static bool column_has_bytes(const struct column *column)
{
    return column->field->type.kind == TYPE_STRING || column->field->type.kind == TYPE_BINARY;
}

static bool column_repeats(const struct column *column)
{
    return type_repeats(&column->field->type);
}

/* One value of each child for each of its own. */
static bool column_is_group(const struct column *column)
{
    return column->field->type.kind == TYPE_STRUCT || column->field->type.kind == TYPE_VARIANT;
}

/* Where value `index` starts in data or in the children. The array appears with the first value. */
static i64 column_offset(const struct column *column, i64 index)
{
    return column->offsets != NULL ? column->offsets[index] : 0;
}

bool column_init(struct column *column, struct arena *arena, const struct field *field)
{
    assert(!type_is_nested(&field->type) || field->type.field_count > 0 ||
           field->type.kind == TYPE_STRUCT);
    *column = (struct column){.field = field, .width = column_width(&field->type), .arena = arena};
    size_t count = 0;
    const struct field *parts = type_parts(&field->type, &count);
    if (count == 0) {
        return true;
    }
    struct column *children = arena_array(arena, count, sizeof(struct column));
    if (children == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!column_init(&children[i], arena, &parts[i])) {
            return false;
        }
    }
    column->children = children;
    column->child_count = count;
    return true;
}

/* ---- room ---- */

static bool column_grow_values(struct column *column, i64 capacity)
{
    u8 *valid = arena_regrow(column->arena, column->valid, (size_t)column->capacity,
                             (size_t)capacity);
    if (valid == NULL) {
        return false;
    }
    column->valid = valid;
    if (column_has_bytes(column) || column_repeats(column)) {
        size_t old_size = column->offsets != NULL ? ((size_t)column->capacity + 1) * 8 : 0;
        size_t new_size = 0;
        if (!num_mul_size((size_t)capacity + 1, 8, &new_size)) {
            return false;
        }
        i64 *offsets = arena_regrow(column->arena, column->offsets, old_size, new_size);
        if (offsets == NULL) {
            /* `valid` is larger than `capacity` says, which harms nobody. */
            return false;
        }
        if (column->offsets == NULL) {
            offsets[0] = 0;
        }
        column->offsets = offsets;
    }
    column->capacity = capacity;
    return true;
}

static bool column_grow_data(struct column *column, i64 capacity)
{
    u8 *data = arena_regrow(column->arena, column->data, (size_t)column->data_capacity,
                            (size_t)capacity);
    if (data == NULL) {
        return false;
    }
    column->data = data;
    column->data_capacity = capacity;
    return true;
}

/* Twice as much as before, and as much as is needed. */
static i64 doubled(i64 capacity, i64 needed)
{
    i64 twice = capacity <= INT64_MAX / 2 ? capacity * 2 : INT64_MAX;
    return num_max_i64(twice, num_max_i64(needed, COLUMN_CAPACITY_FIRST));
}

bool column_reserve(struct column *column, size_t size)
{
    if (column->count == column->capacity &&
        !column_grow_values(column, doubled(column->capacity, 0))) {
        return false;
    }
    if (size == 0) {
        return true;
    }
    i64 needed = 0;
    if (size > INT64_MAX || !num_add_i64(column->data_size, (i64)size, &needed)) {
        return false;
    }
    return needed <= column->data_capacity ||
           column_grow_data(column, doubled(column->data_capacity, needed));
}

/* Sizes of which the upper four bits may be set: those of one roll are found again by the next. */
static i64 coarse(i64 size)
{
    i64 step = 1;
    while (size / step >= 16) {
        step *= 2;
    }
    return (size + step - 1) / step * step;
}

bool column_foresee(struct column *column, i64 times)
{
    assert(times >= 0);
    assert(times <= COLUMN_TIMES_MAX);
    i64 values = 0;
    i64 data = 0;
    if (!num_mul_i64(column->count, times, &values) ||
        !num_mul_i64(column->data_size, times, &data)) {
        return false;
    }
    values = coarse(values / COLUMN_TIMES_ONE);
    data = coarse(data / COLUMN_TIMES_ONE);
    if ((values > column->capacity && !column_grow_values(column, values)) ||
        (data > column->data_capacity && !column_grow_data(column, data))) {
        return false;
    }
    for (size_t i = 0; i < column->child_count; i++) {
        if (!column_foresee(&column->children[i], times)) {
            return false;
        }
    }
    return true;
}

/* ---- appending ---- */

/* Counts the value whose data, or children, are in place already. */
static void column_commit(struct column *column, u8 valid)
{
    column->valid[column->count] = valid;
    column->null_count += valid == 0;
    column->count++;
    if (column_has_bytes(column)) {
        column->offsets[column->count] = column->data_size;
    } else if (column_repeats(column)) {
        column->offsets[column->count] = column->children[0].count;
    }
}

bool column_append_null(struct column *column)
{
    size_t width = column->width;
    if (!column_reserve(column, width)) {
        return false;
    }
    if (column_is_group(column)) {
        for (size_t i = 0; i < column->child_count; i++) {
            assert(column->children[i].count == column->count);
            if (!column_append_null(&column->children[i])) {
                column_truncate(column, column->count);
                return false;
            }
        }
    }
    if (width > 0) {
        memset(column->data + column->data_size, 0, width);
        column->data_size += (i64)width;
    }
    column_commit(column, 0);
    return true;
}

bool column_append_fixed(struct column *column, const void *bytes)
{
    size_t width = column->width;
    assert(width > 0);
    if (!column_reserve(column, width)) {
        return false;
    }
    memcpy(column->data + column->data_size, bytes, width);
    column->data_size += (i64)width;
    column_commit(column, 1);
    return true;
}

bool column_append_bytes(struct column *column, str bytes)
{
    assert(column_has_bytes(column));
    if (!column_reserve(column, bytes.size)) {
        return false;
    }
    if (bytes.size > 0) {
        memcpy(column->data + column->data_size, bytes.data, bytes.size);
        column->data_size += (i64)bytes.size;
    }
    column_commit(column, 1);
    return true;
}

bool column_append_nested(struct column *column)
{
    assert(column_is_group(column) || column_repeats(column));
    i64 expected = column_repeats(column) ? column->children[0].count : column->count + 1;
    for (size_t i = 0; i < column->child_count; i++) {
        assert(column->children[i].count == expected);
    }
    if (!column_reserve(column, 0)) {
        return false;
    }
    column_commit(column, 1);
    return true;
}

/* ---- the whole ---- */

void column_truncate(struct column *column, i64 count)
{
    assert(count >= 0);
    assert(count <= column->count);
    for (i64 i = count; i < column->count; i++) {
        column->null_count -= column->valid[i] == 0;
    }
    column->count = count;
    if (column->child_count == 0) {
        i64 width = (i64)column->width;
        column->data_size = width > 0 ? count * width : column_offset(column, count);
        return;
    }
    /* Children may be ahead of their parent when a row ended in its middle. */
    i64 child_count = column_repeats(column) ? column_offset(column, count) : count;
    for (size_t i = 0; i < column->child_count; i++) {
        column_truncate(&column->children[i], child_count);
    }
}

i64 column_bytes(const struct column *column)
{
    i64 bytes = column->count + column->data_size;
    if (column->offsets != NULL) {
        bytes += (column->count + 1) * (i64)sizeof(i64);
    }
    for (size_t i = 0; i < column->child_count; i++) {
        bytes += column_bytes(&column->children[i]);
    }
    return bytes;
}
