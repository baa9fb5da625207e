#include "table/document.h"

#include "base/assert.h"
#include "base/buf.h"

enum {
    DOCUMENT_BYTES_MAX = 1024 * MIB,
    DOCUMENT_BYTES_FIRST = 4 * KIB,
    DOCUMENT_BYTES_ADDED = 16 * KIB, /* that one version has more than the last, mostly */
    LEVELS_FIRST = 16,
    REAL_TEXT_MAX = 64,
};

str document_str(const json_t *value)
{
    if (!json_is_string(value)) {
        return (str){NULL, 0};
    }
    return (str){json_string_value(value), json_string_length(value)};
}

str document_text(const json_t *object, const char *key)
{
    return document_str(json_object_get(object, key));
}

bool document_i64(const json_t *object, const char *key, i64 *out_value)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) {
        return false;
    }
    *out_value = json_integer_value(value);
    return true;
}

i64 document_i64_or(const json_t *object, const char *key, i64 otherwise)
{
    i64 value = otherwise;
    return document_i64(object, key, &value) ? value : otherwise;
}

bool document_i32(const json_t *object, const char *key, i32 *out_value)
{
    i64 value = 0;
    if (!document_i64(object, key, &value) || value < 0 || value > INT32_MAX) {
        return false;
    }
    *out_value = (i32)value;
    return true;
}

json_t *document_find(const json_t *array, const char *key, i64 value)
{
    size_t count = json_array_size(array);
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_array_get(array, i);
        i64 found = 0;
        if (document_i64(item, key, &found) && found == value) {
            return item;
        }
    }
    return NULL;
}

size_t document_index(const json_t *array, const json_t *item)
{
    size_t count = json_array_size(array);
    for (size_t i = 0; i < count; i++) {
        if (json_array_get(array, i) == item) {
            return i;
        }
    }
    return count;
}

json_t *document_array(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (!json_is_array(value)) {
        value = json_array();
        document_set(object, key, value);
    }
    return value;
}

json_t *document_object(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (!json_is_object(value)) {
        value = json_object();
        document_set(object, key, value);
    }
    return value;
}

void document_set(json_t *object, const char *key, json_t *value)
{
    int failed = json_object_set_new(object, key, value);
    assert(failed == 0);
}

void document_set_i64(json_t *object, const char *key, i64 value)
{
    document_set(object, key, json_integer(value));
}

void document_set_text(json_t *object, const char *key, str text)
{
    document_set(object, key, document_string(text));
}

void document_set_entry(json_t *object, str key, str text)
{
    int failed = json_object_setn_new(object, key.data, key.size, document_string(text));
    assert(failed == 0);
}

void document_append(json_t *array, json_t *value)
{
    int failed = json_array_append_new(array, value);
    assert(failed == 0);
}

json_t *document_copy(const json_t *value)
{
    json_t *copy = json_deep_copy(value);
    assert(copy != NULL);
    return copy;
}

json_t *document_branch(const json_t *object)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_t *branch = json_copy(document_mutable(object));
    assert(branch != NULL);
    json_object_foreach(document_mutable(object), key, value)
    {
        if (json_is_object(value) || json_is_array(value)) {
            json_t *copy = json_copy(value);
            assert(copy != NULL);
            document_set(branch, key, copy);
        }
    }
    return branch;
}

json_t *document_share(const json_t *value)
{
    json_t *shared = document_mutable(value);
    size_t count = __atomic_add_fetch(&shared->refcount, 1, __ATOMIC_RELAXED);
    assert(count > 1);
    return shared;
}

json_t *document_string(str text)
{
    json_t *value = json_stringn(text.data != NULL ? text.data : "", text.size);
    assert(value != NULL);
    return value;
}

void document_drop_nulls(json_t *object)
{
    const char *key = NULL;
    json_t *value = NULL;
    void *next = NULL;
    json_object_foreach_safe(object, next, key, value)
    {
        if (json_is_null(value)) {
            json_object_del(object, key);
        }
    }
}

json_t *document_mutable(const json_t *value)
{
    return (json_t *)(uintptr_t)value;
}

/* ---- printing ---- */

/* A container that is open. */
struct level {
    json_t *value;
    void *member; /* the next one; of an object */
    size_t index; /* how many are printed */
    size_t begin; /* of what is inside */
};

struct printer {
    struct arena *arena;
    const struct document_text *before; /* NULL: there is none */
    struct level *levels;
    size_t depth;
    size_t capacity;
    buf out;
    struct document_text *done; /* its lists */
};

/* Nothing of a container: it has a level of its own. */
static void print_scalar(buf *out, const json_t *value)
{
    char real[REAL_TEXT_MAX];
    switch (json_typeof(value)) {
    case JSON_STRING:
        buf_append_json_string(out, document_str(value));
        break;
    case JSON_INTEGER:
        buf_append_i64(out, json_integer_value(value));
        break;
    case JSON_REAL:
        buf_append_bytes(out, real, json_dumpb(value, real, sizeof(real), JSON_ENCODE_ANY));
        break;
    case JSON_TRUE:
        buf_append(out, STR("true"));
        break;
    case JSON_FALSE:
        buf_append(out, STR("false"));
        break;
    case JSON_NULL:
        buf_append(out, STR("null"));
        break;
    case JSON_OBJECT:
    case JSON_ARRAY:
        break;
    }
}

static bool begins_with(const json_t *list, const json_t *items)
{
    size_t count = json_array_size(items);
    for (size_t i = 0; i < count; i++) {
        if (json_array_get(list, i) != json_array_get(items, i)) {
            return false;
        }
    }
    return true;
}

/* The items that the document before had already. */
static void print_known(struct printer *printer, struct level *level)
{
    const struct document_text *before = printer->before;
    for (size_t i = 0; before != NULL && i < before->list_count; i++) {
        const struct document_list *known = &before->lists[i];
        if (begins_with(level->value, known->items)) {
            buf_append(&printer->out, str_slice(before->text, known->begin, known->end));
            level->index = json_array_size(known->items);
            return;
        }
    }
}

/* False without memory. */
static bool print_begin(struct printer *printer, json_t *value)
{
    if (!json_is_object(value) && !json_is_array(value)) {
        print_scalar(&printer->out, value);
        return true;
    }
    if (printer->depth == printer->capacity) {
        size_t next = printer->capacity * 2 + LEVELS_FIRST;
        struct level *levels = arena_grow(printer->arena, printer->levels,
                                          printer->capacity * sizeof(*levels),
                                          next * sizeof(*levels));
        if (levels == NULL) {
            return false;
        }
        printer->levels = levels;
        printer->capacity = next;
    }
    buf_append_byte(&printer->out, json_is_object(value) ? '{' : '[');
    struct level *level = &printer->levels[printer->depth++];
    *level = (struct level){value, json_object_iter(value), 0, printer->out.size};
    if (printer->depth == 2 && json_is_array(value)) {
        print_known(printer, level);
    }
    return true;
}

/* The next value of the innermost container, its name printed; NULL: there is none. */
static json_t *print_next(struct printer *printer)
{
    struct level *level = &printer->levels[printer->depth - 1];
    bool object = json_is_object(level->value);
    json_t *next = object ? json_object_iter_value(level->member)
                          : json_array_get(level->value, level->index);
    if (next != NULL && level->index++ > 0) {
        buf_append_byte(&printer->out, ',');
    }
    if (next != NULL && object) {
        str name = {json_object_iter_key(level->member), json_object_iter_key_len(level->member)};
        buf_append_json_string(&printer->out, name);
        buf_append_byte(&printer->out, ':');
        level->member = json_object_iter_next(level->value, level->member);
    }
    return next;
}

static void print_end(struct printer *printer)
{
    const struct level *level = &printer->levels[--printer->depth];
    struct document_text *done = printer->done;
    bool is_list = printer->depth == 1 && json_array_size(level->value) > 0;
    if (is_list && done->list_count < DOCUMENT_LISTS_MAX) {
        done->lists[done->list_count++] = (struct document_list){level->value, level->begin,
                                                                 printer->out.size};
    }
    buf_append_byte(&printer->out, json_is_object(level->value) ? '}' : ']');
}

err document_print_after(struct arena *arena, const json_t *document,
                         const struct document_text *before, struct document_text *out_text,
                         struct error *error)
{
    struct document_text done = {0};
    size_t first = before != NULL ? before->text.size + DOCUMENT_BYTES_ADDED : DOCUMENT_BYTES_FIRST;
    struct printer printer = {.arena = arena,
                              .before = before,
                              .out = buf_create(arena, first, DOCUMENT_BYTES_MAX),
                              .done = &done};
    bool printed = print_begin(&printer, document_mutable(document));
    while (printed && printer.depth > 0) {
        json_t *next = print_next(&printer);
        if (next != NULL) {
            printed = print_begin(&printer, next);
        } else {
            print_end(&printer);
        }
    }
    if (!printed || !buf_ok(&printer.out)) {
        return error_memory(error);
    }
    done.text = buf_str(&printer.out);
    *out_text = done;
    return OK;
}

err document_print(struct arena *arena, const json_t *value, str *out_text, struct error *error)
{
    struct document_text printed = {0};
    TRY(document_print_after(arena, value, NULL, &printed, error));
    *out_text = printed.text;
    return OK;
}
