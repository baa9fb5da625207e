#include "base/assert.h"
#include "sink/roll_rows.h"

#include <stdlib.h>

enum { GROUPS_FIRST = 64, LINES_FIRST = 4096, SPEC_FIELDS_MAX = 64 };

static const struct column *column_of(const struct rows_pass *pass, i32 field_id)
{
    for (size_t i = 0; i < pass->column_count; i++) {
        if (pass->columns[i].field->id == field_id) {
            return &pass->columns[i];
        }
    }
    return NULL;
}

err rows_open_partitions(struct rows_pass *pass, struct error *error)
{
    pass->partitioned = false;
    pass->sources = arena_array(pass->scratch, pass->spec.count, sizeof(const struct column *));
    pass->group_places = map_create(pass->scratch, GROUPS_FIRST);
    if (pass->sources == NULL || pass->group_places == NULL) {
        return error_memory(error);
    }
    if (pass->spec.count > SPEC_FIELDS_MAX) {
        return error_set(error, LIMIT, ERROR_PARTITIONED_TABLE_UNSUPPORTED,
                         "the table has more than %d partition fields", SPEC_FIELDS_MAX);
    }
    for (size_t i = 0; i < pass->spec.count; i++) {
        if (pass->spec.fields[i].transform == PARTITION_VOID) {
            continue;
        }
        pass->partitioned = true;
        pass->sources[i] = column_of(pass, pass->spec.fields[i].source_id);
        if (pass->sources[i] == NULL) {
            return error_set(error, INVALID, ERROR_PARTITIONED_TABLE_UNSUPPORTED,
                             "partition field %.*s has no top-level column",
                             STR_ARG(pass->spec.fields[i].name));
        }
    }
    return OK;
}

/* Room for one more, doubled when it is used up. */
static void *grown(struct arena *arena, void *items, size_t *capacity, size_t first, size_t size)
{
    size_t wanted = *capacity == 0 ? first : *capacity * 2;
    void *room = arena_array(arena, wanted, size);
    if (room != NULL && *capacity > 0) {
        memcpy(room, items, *capacity * size);
    }
    if (room != NULL) {
        *capacity = wanted;
    }
    return room;
}

static err add_group(struct rows_pass *pass, str key, const struct partition_value *values,
                     u32 *out_group, struct error *error)
{
    if (pass->group_count == pass->group_capacity) {
        struct rows_group *groups = grown(pass->scratch, pass->groups, &pass->group_capacity,
                                          GROUPS_FIRST, sizeof(*groups));
        if (groups == NULL) {
            return error_memory(error);
        }
        pass->groups = groups;
    }
    /* Kept as long as the data files: in the roll's arena. */
    size_t size = pass->spec.count * sizeof(*values);
    struct partition_value *kept = arena_alloc(pass->roll->arena, size);
    str kept_key = str_copy(pass->scratch, key);
    bool fresh = false;
    u64 *place = kept_key.data == NULL ? NULL : map_put(pass->group_places, kept_key, &fresh);
    if (kept == NULL || place == NULL) {
        return error_memory(error);
    }
    memcpy(kept, values, size);
    *place = pass->group_count;
    pass->groups[pass->group_count] = (struct rows_group){.values = kept};
    *out_group = (u32)pass->group_count++;
    return OK;
}

err rows_find_group(struct rows_pass *pass, u32 *out_group, struct error *error)
{
    struct partition_value values[SPEC_FIELDS_MAX] = {0};
    i64 key[2 * SPEC_FIELDS_MAX] = {0};
    for (size_t i = 0; i < pass->spec.count; i++) {
        const struct column *source = pass->sources[i];
        values[i] = source == NULL
                        ? (struct partition_value){.is_null = true}
                        : partition_apply(&pass->spec.fields[i], source, source->count - 1);
        key[2 * i] = values[i].is_null ? 1 : 0;
        key[2 * i + 1] = values[i].is_null ? 0 : values[i].number;
    }
    str bytes = {(const char *)key, 2 * pass->spec.count * sizeof(key[0])};
    const u64 *place = map_get(pass->group_places, bytes);
    if (place != NULL) {
        *out_group = (u32)*place;
        return OK;
    }
    return add_group(pass, bytes, values, out_group, error);
}

err rows_keep_line(struct rows_pass *pass, str line, size_t batch, u32 group, struct error *error)
{
    pass->groups[group].rows++;
    if (pass->writer == NULL) {
        return OK;
    }
    if (pass->line_count == pass->line_capacity) {
        struct rows_line *lines = grown(pass->scratch, pass->lines, &pass->line_capacity,
                                        LINES_FIRST, sizeof(*lines));
        if (lines == NULL) {
            return error_memory(error);
        }
        pass->lines = lines;
    }
    pass->lines[pass->line_count++] = (struct rows_line){
        .data = line.data, .size = (u32)line.size, .batch = (u32)batch, .group = group};
    return OK;
}

struct ranked {
    i64 rows;
    size_t group;
};

/* Most rows first; of equals the one seen first, so that a second look says the same. */
static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    if (a->rows != b->rows) {
        return a->rows > b->rows ? -1 : 1;
    }
    return a->group < b->group ? -1 : a->group > b->group ? 1 : 0;
}

err rows_refuse_smallest(struct rows_pass *pass, struct error *error)
{
    struct ranked *ranked = arena_array(pass->scratch, pass->group_count, sizeof(*ranked));
    if (ranked == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < pass->group_count; i++) {
        ranked[i] = (struct ranked){.rows = pass->groups[i].rows, .group = i};
    }
    qsort(ranked, pass->group_count, sizeof(*ranked), compare_ranked);
    for (size_t i = ROWS_PARTITIONS_MAX; i < pass->group_count; i++) {
        pass->groups[ranked[i].group].refused = true;
    }
    return OK;
}
