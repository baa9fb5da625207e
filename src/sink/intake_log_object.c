#include "sink/intake_log_object.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/map.h"
#include "base/planted.h"
#include "sink/intake_group.h"

/* All names of the log's objects; and one object with its rows, from the store and from the log. */
enum { NAMES_BYTES_MAX = 512 * MIB, OBJECT_BYTES_MAX = 64 * MIB };

struct part {
    i64 at;
    str body;
    struct ledger_accept *items;
    size_t count;
    struct part *next; /* behind it in the object */
};

struct object {
    u64 last; /* the position of its last record */
    struct arena *arena;
    struct part *parts; /* by their place */
    size_t items;
    i64 end;
    bool needed;
    struct object *next; /* of all */
};

struct intake_log_objects {
    struct arena *arena;
    struct map *map; /* by object key */
    struct object *first;
};

struct intake_log_objects *intake_log_objects_create(void)
{
    struct arena *arena = arena_create((size_t)NAMES_BYTES_MAX);
    struct intake_log_objects *objects = arena_alloc(arena, sizeof(*objects));
    struct map *map = objects == NULL ? NULL : map_create(arena, 64);
    if (map == NULL) {
        arena_destroy(arena);
        return NULL;
    }
    *objects = (struct intake_log_objects){.arena = arena, .map = map};
    return objects;
}

void intake_log_objects_destroy(struct intake_log_objects *objects)
{
    if (objects == NULL) {
        return;
    }
    for (struct object *object = objects->first; object != NULL; object = object->next) {
        arena_destroy(object->arena); /* of one whose last part did not come */
    }
    arena_destroy(objects->arena);
}

err intake_log_objects_note(struct intake_log_objects *objects,
                            const struct intake_log_record *record, u64 position,
                            struct error *error)
{
    if (record->object_key.size == 0) {
        return OK;
    }
    u64 *place = map_get(objects->map, record->object_key);
    if (place == NULL) {
        bool is_new = false;
        struct object *object = arena_alloc(objects->arena, sizeof(*object));
        str key = str_copy(objects->arena, record->object_key);
        place = object == NULL || key.data == NULL ? NULL : map_put(objects->map, key, &is_new);
        if (place == NULL) {
            return error_memory(error);
        }
        *object = (struct object){.next = objects->first};
        objects->first = object;
        *place = (u64)(uintptr_t)object;
    }
    ((struct object *)(uintptr_t)*place)->last = position;
    return OK;
}

/* ---- the store's ---- */

static bool same_meta(const struct store_meta *a, const struct store_meta *b)
{
    for (size_t i = 0; i < b->count; i++) {
        str value = store_meta_value(a, b->entries[i].name);
        if (value.data == NULL || !str_equal(value, b->entries[i].value)) {
            return false;
        }
    }
    return true;
}

/* `found` is what the store has; `got`: whether it has it. */
MUST_USE static err settle_file(const struct warehouse *warehouse, str key, err got,
                                const struct store_object *found, str body, struct store_meta *meta,
                                bool *out_put, struct error *error)
{
    *out_put = got != OK || !str_equal(found->body, body) || !same_meta(&found->meta, meta);
    if (!*out_put) {
        return OK;
    }
    meta->durability = STORE_LATER;
    return store_put(&warehouse->files, key, body, meta, error);
}

err intake_log_ensure_file(const struct warehouse *warehouse, str key, str body,
                           struct store_meta *meta, bool *out_put, struct error *error)
{
    struct store_object found = {0};
    struct arena *arena AUTO_ARENA = arena_create((size_t)OBJECT_BYTES_MAX);
    err got = store_get(&warehouse->files, arena, key, &found, NULL);
    return settle_file(warehouse, key, got, &found, body, meta, out_put, error);
}

/* ---- from its parts ---- */

static bool parts_are_in(const struct object *object, str body)
{
    for (const struct part *part = object->parts; part != NULL; part = part->next) {
        size_t at = (size_t)part->at;
        if (at > body.size || body.size - at < part->body.size ||
            memcmp(body.data + at, part->body.data, part->body.size) != 0) {
            return false;
        }
    }
    return true;
}

/* All of the object, as far as the log can tell. */
static bool are_contiguous(const struct object *object)
{
    i64 at = 0;
    for (const struct part *part = object->parts; part != NULL; part = part->next) {
        if (part->at != at) {
            return false;
        }
        at += (i64)part->body.size + 1;
    }
    return true;
}

/* The parts over what is there; line ends where nothing is. */
MUST_USE static err compose(const struct object *object, str found, str *out_body,
                            struct ledger_accept **out_items, struct error *error)
{
    size_t size = found.size > (size_t)object->end ? found.size : (size_t)object->end;
    char *body = arena_alloc(object->arena, size);
    struct ledger_accept *items = arena_array(object->arena, object->items, sizeof(*items));
    size_t count = 0;
    if (body == NULL || items == NULL) {
        return error_memory(error);
    }
    memset(body, '\n', size);
    if (found.size > 0) {
        memcpy(body, found.data, found.size);
    }
    for (const struct part *part = object->parts; part != NULL; part = part->next) {
        memcpy(body + part->at, part->body.data, part->body.size);
        memcpy(items + count, part->items, part->count * sizeof(*items));
        count += part->count;
    }
    *out_body = (str){body, size};
    *out_items = items;
    return OK;
}

/* Where the log lacks records of it they were released, and then the object is durable as a whole;
 * or they never came into the log, and then nobody has heard of them. So what holds more than the
 * parts is left alone, and nothing is ever taken from it. */
MUST_USE static err ensure(const struct object *object, const struct warehouse *warehouse,
                           const struct intake_log_record *record, bool *out_put,
                           struct error *error)
{
    struct store_object found = {0};
    struct store_meta meta = {0};
    struct ledger_accept *items = NULL;
    str body = {0};
    err got = store_get(&warehouse->files, object->arena, record->object_key, &found, error);
    if (got != OK && got != NOT_FOUND) {
        return got;
    }
    if (got == NOT_FOUND && !object->needed) {
        return OK;
    }
    str there = got == OK && !PLANTED(36) ? found.body : STR("");
    bool partial = !are_contiguous(object) || there.size > (size_t)object->end;
    if (partial && parts_are_in(object, there) &&
        store_meta_value(&found.meta, STR("batches")).size > 0) {
        return OK;
    }
    if (partial) {
        log_event(LOG_WARN, "intake_log_has_parts", LOG_S("object", record->object_key));
    }
    TRY(compose(object, there, &body, &items, error));
    TRY(intake_object_meta(object->arena, record->sink_id, items, object->items, &meta, error));
    return settle_file(warehouse, record->object_key, got, &found, body, &meta, out_put, error);
}

/* The record's own bytes are lent. */
MUST_USE static err add_part(struct object *object, const struct intake_log_record *record,
                             struct error *error)
{
    struct arena *arena = object->arena;
    struct part *part = arena_alloc(arena, sizeof(*part));
    struct ledger_accept *items = arena_array(arena, record->count, sizeof(*items));
    str body = str_copy(arena, record->body);
    if (part == NULL || items == NULL || body.data == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < record->count; i++) {
        items[i] = record->items[i];
        items[i].batch_id = str_copy(arena, items[i].batch_id);
        if (items[i].batch_id.data == NULL) {
            return error_memory(error);
        }
    }
    struct part **link = &object->parts;
    while (*link != NULL && (*link)->at <= record->body_at) {
        link = &(*link)->next;
    }
    *part = (struct part){
        .at = record->body_at, .body = body, .items = items, .count = record->count, .next = *link};
    *link = part;
    object->items += record->count;
    object->end = num_max_i64(object->end, record->body_at + (i64)record->body.size);
    return OK;
}

err intake_log_objects_add(struct intake_log_objects *objects,
                           const struct intake_log_record *record, u64 position,
                           const struct warehouse *warehouse, bool needed, bool *out_put,
                           struct error *error)
{
    *out_put = false;
    if (record->object_key.size == 0) {
        return OK;
    }
    const u64 *place = map_get(objects->map, record->object_key);
    assert(place != NULL); /* the first pass has seen it */
    struct object *object = (struct object *)(uintptr_t)*place;
    if (object->arena == NULL) {
        object->arena = arena_create((size_t)OBJECT_BYTES_MAX);
    }
    object->needed = object->needed || needed;
    err result = add_part(object, record, error);
    if (result == OK && position < object->last) {
        return OK;
    }
    if (result == OK) {
        result = ensure(object, warehouse, record, out_put, error);
    }
    arena_destroy(object->arena);
    object->arena = NULL;
    return result;
}
