#include "format/parquet/levels.h"

#include "base/assert.h"

/* The slots found so far, on the way down to the leaf. */
struct slots {
    i64 count;
    u8 *definition;
    u8 *repetition;
    i64 *index; /* of the slot's value in the column reached; -1: it ended further up */
};

MUST_USE static bool slots_take(struct arena *arena, struct level_rooms *rooms, int side, i64 count,
                                struct slots *out_slots)
{
    struct slots slots = {
        .count = count,
        .definition = room_take(&rooms->definition[side], arena, count, sizeof(u8)),
        .repetition = room_take(&rooms->repetition[side], arena, count, sizeof(u8)),
        .index = room_take(&rooms->index[side], arena, count, sizeof(i64)),
    };
    if (slots.definition == NULL || slots.repetition == NULL || slots.index == NULL) {
        return false;
    }
    *out_slots = slots;
    return true;
}

/* Ends the slots whose value is null, and raises the level of the others. */
static void slots_pass_optional(struct slots *slots, const u8 *valid)
{
    for (i64 i = 0; i < slots->count; i++) {
        i64 index = slots->index[i];
        if (index < 0) {
            continue;
        }
        if (valid[index] != 0) {
            slots->definition[i]++;
        } else {
            slots->index[i] = -1;
        }
    }
}

static i64 slots_count_elements(const struct slots *slots, const i64 *offsets)
{
    i64 count = 0;
    for (i64 i = 0; i < slots->count; i++) {
        i64 index = slots->index[i];
        i64 elements = index >= 0 ? offsets[index + 1] - offsets[index] : 0;
        count += elements > 0 ? elements : 1;
    }
    return count;
}

/* From lists to their elements: an empty list keeps one slot and ends. */
static void slots_pass_repeated(const struct slots *from, const i64 *offsets, u8 repetition,
                                struct slots *into)
{
    i64 at = 0;
    for (i64 i = 0; i < from->count; i++) {
        i64 index = from->index[i];
        i64 first = index >= 0 ? offsets[index] : 0;
        i64 end = index >= 0 ? offsets[index + 1] : 0;
        into->repetition[at] = from->repetition[i];
        if (first == end) {
            into->definition[at] = from->definition[i];
            into->index[at++] = -1;
            continue;
        }
        u8 definition = (u8)(from->definition[i] + 1);
        for (i64 element = first; element < end; element++) {
            if (element > first) {
                into->repetition[at] = repetition;
            }
            into->definition[at] = definition;
            into->index[at++] = element;
        }
    }
    assert(at == into->count);
}

static bool slots_start(struct arena *arena, struct level_rooms *rooms, i64 rows,
                        struct slots *out_slots)
{
    if (!slots_take(arena, rooms, 0, rows, out_slots)) {
        return false;
    }
    for (i64 i = 0; i < rows; i++) {
        out_slots->definition[i] = 0;
        out_slots->repetition[i] = 0;
        out_slots->index[i] = i;
    }
    return true;
}

MUST_USE static bool levels_build_nested(const struct leaf *leaf, const struct column *columns,
                                         struct arena *arena, struct level_rooms *rooms,
                                         struct levels *out_levels)
{
    const struct column *column = &columns[leaf->path[0]];
    struct slots slots = {0};
    if (!slots_start(arena, rooms, column->count, &slots)) {
        return false;
    }
    u8 repetition = 0;
    int side = 0;
    for (size_t step = 1;; step++) {
        if (!column->field->required) {
            slots_pass_optional(&slots, column->valid);
        }
        if (step == leaf->depth) {
            break;
        }
        if (type_repeats(&column->field->type)) {
            static const i64 no_offsets[1] = {0};
            const i64 *offsets = column->offsets != NULL ? column->offsets : no_offsets;
            struct slots into = {0};
            side = 1 - side;
            if (!slots_take(arena, rooms, side, slots_count_elements(&slots, offsets), &into)) {
                return false;
            }
            slots_pass_repeated(&slots, offsets, ++repetition, &into);
            slots = into;
        }
        column = &column->children[leaf->path[step]];
    }
    assert(repetition == leaf->repetition_max);
    *out_levels = (struct levels){
        .count = slots.count,
        .definition = leaf->definition_max > 0 ? slots.definition : NULL,
        .repetition = repetition > 0 ? slots.repetition : NULL,
    };
    return true;
}

/* Whether no value on the way to the leaf is null, and none has several below it. */
static bool levels_are_full(const struct leaf *leaf, const struct column *columns)
{
    const struct column *column = &columns[leaf->path[0]];
    for (size_t step = 1; leaf->repetition_max == 0 && column->null_count == 0; step++) {
        if (step == leaf->depth) {
            return true;
        }
        column = &column->children[leaf->path[step]];
    }
    return false;
}

bool levels_build(const struct leaf *leaf, const struct column *columns, struct arena *arena,
                  struct level_rooms *rooms, struct levels *out_levels)
{
    assert(leaf->definition_max <= UINT8_MAX);
    const struct column *column = &columns[leaf->path[0]];
    if (levels_are_full(leaf, columns)) {
        *out_levels = (struct levels){.count = column->count};
        return true;
    }
    if (leaf->depth > 1) {
        return levels_build_nested(leaf, columns, arena, rooms, out_levels);
    }
    /* A column that is no child of another: its validity is its levels. */
    *out_levels = (struct levels){.count = column->count, .definition = column->valid};
    return true;
}
