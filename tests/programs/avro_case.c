/* avro_case: writes an Avro file that is known, or says what is in any.
 *
 *     avro_case write CODEC FILE    three made-up entries in the manner of a manifest
 *     avro_case read FILE           the records as JSON on stdout
 *
 * In the JSON bytes and strings are hex, floats the hex of their 8 bytes, records arrays of
 * [name, field id, value], arrays {"items": […]}. A file that is no good: exit 3, the reason on
 * stderr. */
#include "format/avro.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ARENA_MAX = 512 * MIB, EXIT_CORRUPT = 3 };

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "avro_case: %s\n", what);
    exit(2);
}

/* ---- writing ---- */

static const char schema[] =
    "{\"type\":\"record\",\"name\":\"entry\",\"fields\":["
    "{\"name\":\"status\",\"type\":\"int\",\"field-id\":0},"
    "{\"name\":\"snapshot_id\",\"type\":[\"null\",\"long\"],\"default\":null,\"field-id\":1},"
    "{\"name\":\"data_file\",\"field-id\":2,\"type\":{\"type\":\"record\",\"name\":\"r2\","
    "\"fields\":["
    "{\"name\":\"path\",\"type\":\"string\",\"field-id\":100},"
    "{\"name\":\"ratio\",\"type\":\"double\",\"field-id\":101},"
    "{\"name\":\"small\",\"type\":\"float\",\"field-id\":102},"
    "{\"name\":\"flag\",\"type\":\"boolean\",\"field-id\":103},"
    "{\"name\":\"sizes\",\"field-id\":104,\"type\":[\"null\",{\"type\":\"array\",\"logicalType\":"
    "\"map\","
    "\"items\":{\"type\":\"record\",\"name\":\"k105_v106\",\"fields\":["
    "{\"name\":\"key\",\"type\":\"int\",\"field-id\":105},"
    "{\"name\":\"value\",\"type\":\"bytes\",\"field-id\":106}]}}]},"
    "{\"name\":\"splits\",\"field-id\":107,\"type\":{\"type\":\"array\",\"items\":\"long\","
    "\"element-id\":108}}]}}]}";

static void put_entry(buf *out, i64 index)
{
    static const i64 longs[] = {0, INT64_MIN, INT64_MAX};
    avro_put_long(out, index);
    avro_put_branch(out, index == 0 ? 0 : 1);
    if (index > 0) {
        avro_put_long(out, longs[index]);
    }
    avro_put_bytes(out, index == 1 ? STR("") : STR("s3://wh/\xc3\xbc.parquet"));
    avro_put_double(out, (double)index - 0.5);
    avro_put_float(out, (float)index / 3);
    avro_put_boolean(out, index == 1);
    avro_put_branch(out, index == 2 ? 0 : 1);
    if (index < 2) {
        avro_put_long(out, 2);
        for (i64 i = 0; i < 2; i++) {
            avro_put_long(out, 63 + i);
            avro_put_bytes(out, (str){"\0\xff\x80", (size_t)(3 - index)});
        }
        avro_put_long(out, 0);
    }
    if (index > 0) {
        avro_put_long(out, 3);
        for (size_t i = 0; i < ARRAY_COUNT(longs); i++) {
            avro_put_long(out, longs[i]);
        }
    }
    avro_put_long(out, 0);
}

static enum avro_codec codec_named(const char *name)
{
    static const char *const names[] = {
        [AVRO_NULL] = "null",
        [AVRO_DEFLATE] = "deflate",
        [AVRO_SNAPPY] = "snappy",
        [AVRO_ZSTD] = "zstandard",
    };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (str_equal(str_from(name), str_from(names[i]))) {
            return (enum avro_codec)i;
        }
    }
    fail("no such codec");
}

static void file_save(const char *path, str bytes)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes.data, 1, bytes.size, file) != bytes.size ||
        fclose(file) != 0) {
        fail("cannot write the file");
    }
}

static void case_write(struct arena *arena, const char *codec, const char *path)
{
    buf records = buf_create(arena, KIB, MIB);
    for (i64 i = 0; i < 3; i++) {
        put_entry(&records, i);
    }
    const struct avro_meta meta[] = {
        {STR("format-version"), STR("2")},
        {STR("partition-spec"), STR("[]")},
    };
    buf file = buf_create(arena, KIB, MIB);
    struct error error = {0};
    if (avro_write(&file, arena, str_from(schema), meta, ARRAY_COUNT(meta), codec_named(codec),
                   buf_str(&records), 3, &error) != OK) {
        fail(error.message);
    }
    file_save(path, buf_str(&file));
}

/* ---- reading ---- */

static str file_load(struct arena *arena, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail("cannot open the file");
    }
    buf bytes = buf_create(arena, MIB, ARENA_MAX / 2);
    size_t size = 0;
    do {
        char *room = buf_reserve(&bytes, 64 * KIB);
        if (room == NULL) {
            fail("the file is too large");
        }
        size = fread(room, 1, 64 * KIB, file);
        buf_commit(&bytes, size);
    } while (size > 0);
    fclose(file);
    return buf_str(&bytes);
}

static void print_hex(const void *bytes, size_t size)
{
    const u8 *at = bytes;
    putchar('"');
    for (size_t i = 0; i < size; i++) {
        printf("%02x", at[i]);
    }
    putchar('"');
}

static void print_value(const struct avro_value *value);

static void print_record(const struct avro_value *record)
{
    putchar('[');
    for (size_t i = 0; i < record->count; i++) {
        const struct avro_field *field = &record->fields[i];
        printf("%s[\"%.*s\",%d,", i > 0 ? "," : "", STR_ARG(field->name), field->field_id);
        print_value(&record->items[i]);
        putchar(']');
    }
    putchar(']');
}

static void print_array(const struct avro_value *array)
{
    printf("{\"items\":[");
    for (size_t i = 0; i < array->count; i++) {
        if (i > 0) {
            putchar(',');
        }
        print_value(&array->items[i]);
    }
    printf("]}");
}

static void print_value(const struct avro_value *value)
{
    switch (value->kind) {
    case AVRO_VALUE_NULL:
        printf("null");
        return;
    case AVRO_VALUE_BOOLEAN:
        printf(value->number != 0 ? "true" : "false");
        return;
    case AVRO_VALUE_LONG:
        printf("%" PRId64, value->number);
        return;
    case AVRO_VALUE_FLOAT:
    case AVRO_VALUE_DOUBLE:
        print_hex(&value->real, sizeof(value->real));
        return;
    case AVRO_VALUE_BYTES:
        print_hex(value->bytes.data, value->bytes.size);
        return;
    case AVRO_VALUE_RECORD:
        print_record(value);
        return;
    case AVRO_VALUE_ARRAY:
        print_array(value);
        return;
    }
}

static int case_read(struct arena *arena, const char *path)
{
    struct avro_file *file = NULL;
    struct error error = {0};
    err result = avro_read(arena, file_load(arena, path), &file, &error);
    if (result != OK) {
        fprintf(stderr, "%s: %s\n", err_text(result), error.message);
        return EXIT_CORRUPT;
    }
    putchar('[');
    for (size_t i = 0; i < avro_file_count(file); i++) {
        if (i > 0) {
            putchar(',');
        }
        print_value(avro_file_record(file, i));
    }
    printf("]\n");
    return 0;
}

int main(int argc, char **argv)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)ARENA_MAX);
    if (argc == 4 && str_equal(str_from(argv[1]), STR("write"))) {
        case_write(arena, argv[2], argv[3]);
        return 0;
    }
    if (argc == 3 && str_equal(str_from(argv[1]), STR("read"))) {
        return case_read(arena, argv[2]);
    }
    fail("usage: avro_case write CODEC FILE | avro_case read FILE");
}
