#include "table/document.h"

#include "base/assert.h"
#include "base/buf.h"

enum { DOCUMENT_BYTES_MAX = 1024 * MIB, DOCUMENT_BYTES_FIRST = 4 * KIB };

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

static int document_print_piece(const char *bytes, size_t size, void *context)
{
    buf *out = context;
    buf_append_bytes(out, bytes, size);
    return buf_ok(out) ? 0 : -1;
}

err document_print(struct arena *arena, const json_t *value, str *out_text, struct error *error)
{
    buf out = buf_create(arena, DOCUMENT_BYTES_FIRST, DOCUMENT_BYTES_MAX);
    int failed = json_dump_callback(value, document_print_piece, &out,
                                    JSON_COMPACT | JSON_ENCODE_ANY);
    if (failed != 0 || !buf_ok(&out)) {
        return error_memory(error);
    }
    *out_text = buf_str(&out);
    return OK;
}
