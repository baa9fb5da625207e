#include "table/schema_walk.h"

#include "base/assert.h"

void schema_walk_begin(struct schema_walk *walk, const struct type *root)
{
    walk->level = 0;
    walk->depth = 0;
    walk->types[0] = root;
    walk->next[0] = 0;
}

struct field *schema_walk_next(struct schema_walk *walk)
{
    while (walk->level >= 0) {
        const struct type *type = walk->types[walk->level];
        if (walk->next[walk->level] == type->field_count) {
            walk->level--;
            continue;
        }
        struct field *field = &type->fields[walk->next[walk->level]++];
        walk->depth = walk->level;
        if (type_is_nested(&field->type)) {
            walk->level++;
            assert(walk->level <= SCHEMA_DEPTH_MAX);
            walk->types[walk->level] = &field->type;
            walk->next[walk->level] = 0;
        }
        return field;
    }
    return NULL;
}
