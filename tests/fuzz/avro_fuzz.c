/* The Avro reader: any bytes are read, corrupt or too much. What was read is written again, from
 * each record's own encoding, and reads as the same. */
#include "base/assert.h"
#include "format/avro.h"
#include "fuzz.h"

enum { INPUT_MAX = 64 * KIB, RECORDS_MAX = MIB, ARENA_BYTES = 64 * MIB };

static void check_same(const struct avro_value *a, const struct avro_value *b)
{
    assert(a->kind == b->kind);
    assert(a->number == b->number);
    assert(memcmp(&a->real, &b->real, sizeof(a->real)) == 0);
    assert(str_equal(a->bytes, b->bytes));
    assert(str_equal(a->raw, b->raw));
    assert(a->count == b->count);
    for (size_t i = 0; i < a->count; i++) {
        if (a->kind == AVRO_VALUE_RECORD) {
            assert(str_equal(a->fields[i].name, b->fields[i].name));
            assert(a->fields[i].field_id == b->fields[i].field_id);
            assert(avro_field_of(a, a->fields[i].field_id, a->fields[i].name) != NULL);
        }
        check_same(&a->items[i], &b->items[i]);
    }
}

static void check_again(struct arena *arena, const struct avro_file *file, enum avro_codec codec)
{
    buf records = buf_create(arena, KIB, RECORDS_MAX);
    size_t count = avro_file_count(file);
    for (size_t i = 0; i < count; i++) {
        buf_append(&records, avro_file_record(file, i)->raw);
    }
    if (!buf_ok(&records)) {
        return;
    }
    buf out = buf_create(arena, KIB, 4 * RECORDS_MAX);
    struct avro_file *again = NULL;
    err result = avro_write(&out, arena, avro_file_schema(file), NULL, 0, codec, buf_str(&records),
                            (i64)count, NULL);
    if (result == OK) {
        result = avro_read(arena, buf_str(&out), &again, NULL);
    }
    assert(result == OK || result == LIMIT);
    if (result == OK) {
        assert(avro_file_count(again) == count);
        for (size_t i = 0; i < count; i++) {
            check_same(avro_file_record(file, i), avro_file_record(again, i));
        }
    }
}

/* The records one after the other are the same; those of no bytes are not taken. */
struct each {
    const struct avro_file *file;
    size_t count;
};

static err take_same(void *context, const struct avro_value *record, struct error *error)
{
    struct each *each = context;
    (void)error;
    assert(each->count < avro_file_count(each->file));
    check_same(record, avro_file_record(each->file, each->count));
    each->count++;
    return OK;
}

static void check_each(str bytes, const struct avro_file *file)
{
    AUTO_ARENA struct arena *arena = arena_create(ARENA_BYTES);
    struct each each = {.file = file};
    err result = avro_each(arena, bytes, take_same, &each, NULL);
    assert(result == OK || result == CORRUPT);
    assert(result != OK || each.count == avro_file_count(file));
    assert(result == OK || avro_file_record(file, each.count)->raw.size == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_MAX) {
        return 0;
    }
    AUTO_ARENA struct arena *arena = arena_create(ARENA_BYTES);
    struct avro_file *file = NULL;
    struct error error = {0};
    err result = avro_read(arena, (str){(const char *)data, size}, &file, &error);
    assert(result == OK || result == CORRUPT || result == LIMIT);
    if (result != OK) {
        assert(file == NULL);
        assert(error.code != ERROR_NONE);
        return 0;
    }
    check_again(arena, file, (enum avro_codec)(size % 4));
    check_each((str){(const char *)data, size}, file);
    return 0;
}
