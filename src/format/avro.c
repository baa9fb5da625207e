#include "format/avro.h"

#include "base/assert.h"
#include "format/avro_schema.h"
#include "format/compress.h"
#include "format/crc.h"
#include "format/varint.h"
enum {
    AVRO_SYNC_SIZE = 16,
    AVRO_SNAPPY_CRC_SIZE = 4,
    AVRO_VARINT_SIZE_MAX = 10,
    AVRO_DEFLATE_LEVEL = 6,
    AVRO_ZSTD_LEVEL = 3,
};

#define AVRO_MAGIC STR("Obj\x01")

static const struct {
    str name;
    enum compress_codec codec;
    i32 level;
} codecs[] = {
    [AVRO_NULL] = {STR_INIT("null"), COMPRESS_NONE, 0},
    [AVRO_DEFLATE] = {STR_INIT("deflate"), COMPRESS_DEFLATE, AVRO_DEFLATE_LEVEL},
    [AVRO_SNAPPY] = {STR_INIT("snappy"), COMPRESS_SNAPPY, 0},
    [AVRO_ZSTD] = {STR_INIT("zstandard"), COMPRESS_ZSTD, AVRO_ZSTD_LEVEL},
};

/* ---- encoding values ---- */

void avro_put_long(buf *out, i64 value)
{
    varint_put_zigzag(out, value);
}

void avro_put_boolean(buf *out, bool value)
{
    buf_append_byte(out, value ? 1 : 0);
}

void avro_put_double(buf *out, double value)
{
    u8 bytes[8];
    memcpy(bytes, &value, sizeof(bytes));
    buf_append_bytes(out, bytes, sizeof(bytes));
}

void avro_put_float(buf *out, float value)
{
    u8 bytes[4];
    memcpy(bytes, &value, sizeof(bytes));
    buf_append_bytes(out, bytes, sizeof(bytes));
}

void avro_put_bytes(buf *out, str value)
{
    avro_put_long(out, (i64)value.size);
    buf_append(out, value);
}

/* ---- writing a file ---- */

/* FNV-1a in its 128-bit form, fed with all that makes the file. */
static void sync_feed(u128 *hash, str bytes)
{
    const u128 prime = ((u128)1 << 88) + 0x13b;
    u128 value = *hash;
    for (size_t i = 0; i < bytes.size; i++) {
        value = (value ^ (u8)bytes.data[i]) * prime;
    }
    *hash = (value ^ bytes.size) * prime;
}

static u128 sync_make(str schema_json, const struct avro_meta *meta, size_t meta_count,
                      enum avro_codec codec, str records)
{
    u128 hash = ((u128)0x6c62272e07bb0142U << 64) | 0x62b821756295c58dU;
    sync_feed(&hash, schema_json);
    sync_feed(&hash, codecs[codec].name);
    for (size_t i = 0; i < meta_count; i++) {
        sync_feed(&hash, meta[i].key);
        sync_feed(&hash, meta[i].value);
    }
    sync_feed(&hash, records);
    return hash;
}

static void header_put(buf *out, str schema_json, const struct avro_meta *meta, size_t meta_count,
                       enum avro_codec codec)
{
    buf_append(out, AVRO_MAGIC);
    avro_put_long(out, (i64)meta_count + 2);
    avro_put_bytes(out, STR("avro.schema"));
    avro_put_bytes(out, schema_json);
    avro_put_bytes(out, STR("avro.codec"));
    avro_put_bytes(out, codecs[codec].name);
    for (size_t i = 0; i < meta_count; i++) {
        avro_put_bytes(out, meta[i].key);
        avro_put_bytes(out, meta[i].value);
    }
    avro_put_long(out, 0);
}

MUST_USE static err block_compress(struct arena *arena, enum avro_codec codec, str records,
                                   str *out_block, struct error *error)
{
    if (codec == AVRO_NULL) {
        *out_block = records;
        return OK;
    }
    AUTO_COMPRESSOR struct compressor compressor = {0};
    TRY(compressor_open(codecs[codec].codec, codecs[codec].level, &compressor, error));
    /* No codec makes a block of AVRO_BLOCK_BYTES_MAX twice as large. */
    buf block = buf_create(arena, records.size / 2, 2 * (size_t)AVRO_BLOCK_BYTES_MAX);
    TRY(compress_append(&compressor, &block, records, error));
    if (codec == AVRO_SNAPPY) {
        u32 crc = crc_of(records);
        u32 big_endian = __builtin_bswap32(crc);
        buf_append_bytes(&block, &big_endian, AVRO_SNAPPY_CRC_SIZE);
    }
    if (!buf_ok(&block)) {
        return error_memory(error);
    }
    *out_block = buf_str(&block);
    return OK;
}

err avro_write(buf *out, struct arena *arena, str schema_json, const struct avro_meta *meta,
               size_t meta_count, enum avro_codec codec, str records, i64 record_count,
               struct error *error)
{
    assert(record_count >= 0);
    assert(record_count > 0 || records.size == 0);
    if (records.size > AVRO_BLOCK_BYTES_MAX) {
        return error_set(error, LIMIT, ERROR_OVERLOADED, "%zu bytes are too many for an Avro file",
                         records.size);
    }
    u128 sync = sync_make(schema_json, meta, meta_count, codec, records);
    header_put(out, schema_json, meta, meta_count, codec);
    buf_append_bytes(out, &sync, AVRO_SYNC_SIZE);
    if (record_count > 0) {
        str block = {0};
        TRY(block_compress(arena, codec, records, &block, error));
        avro_put_long(out, record_count);
        avro_put_bytes(out, block);
        buf_append_bytes(out, &sync, AVRO_SYNC_SIZE);
    }
    return buf_ok(out) ? OK : error_memory(error);
}

/* ---- decoding values ---- */

struct reader {
    struct arena *arena;
    str bytes;
    size_t at;
    struct error *error;
};

MUST_USE static err read_corrupt(const struct reader *reader, const char *why)
{
    return error_set(reader->error, CORRUPT, ERROR_INTERNAL, "an Avro file %s", why);
}

static size_t read_left(const struct reader *reader)
{
    return reader->bytes.size - reader->at;
}

MUST_USE static err read_raw(struct reader *reader, size_t size, str *out_bytes)
{
    if (size > read_left(reader)) {
        return read_corrupt(reader, "ends too early");
    }
    *out_bytes = (str){reader->bytes.data + reader->at, size};
    reader->at += size;
    return OK;
}

MUST_USE static err read_into(struct reader *reader, void *out, size_t size)
{
    if (size > read_left(reader)) {
        return read_corrupt(reader, "ends too early");
    }
    memcpy(out, reader->bytes.data + reader->at, size);
    reader->at += size;
    return OK;
}

MUST_USE static err read_long(struct reader *reader, i64 *out_value)
{
    u64 zigzag = 0;
    for (size_t i = 0; i < AVRO_VARINT_SIZE_MAX; i++) {
        if (read_left(reader) == 0) {
            return read_corrupt(reader, "ends too early");
        }
        u8 byte = (u8)reader->bytes.data[reader->at++];
        if (i == AVRO_VARINT_SIZE_MAX - 1 && byte > 1) {
            break;
        }
        zigzag |= (u64)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *out_value = (i64)(zigzag >> 1) ^ -(i64)(zigzag & 1);
            return OK;
        }
    }
    return read_corrupt(reader, "has a number of more than 64 bits");
}

MUST_USE static err read_bytes(struct reader *reader, str *out_bytes)
{
    i64 size = 0;
    TRY(read_long(reader, &size));
    if (size < 0) {
        return read_corrupt(reader, "has a negative length");
    }
    return read_raw(reader, (size_t)size, out_bytes);
}

/* The count of an array's or map's next block; 0 ends it. */
MUST_USE static err read_block_count(struct reader *reader, i64 *out_count)
{
    i64 count = 0;
    TRY(read_long(reader, &count));
    if (count < 0) {
        i64 size = 0; /* for those who want to skip the block */
        TRY(read_long(reader, &size));
        if (count == INT64_MIN || size < 0) {
            return read_corrupt(reader, "has a block of impossible size");
        }
        count = -count;
    }
    *out_count = count;
    return OK;
}

MUST_USE static err read_value(struct reader *reader, const struct avro_type *type, int depth,
                               struct avro_value *value);

MUST_USE static err read_index(struct reader *reader, size_t count, size_t *out_index)
{
    i64 index = 0;
    TRY(read_long(reader, &index));
    if (index < 0 || (u64)index >= count) {
        return read_corrupt(reader, "has an index that its schema has not");
    }
    *out_index = (size_t)index;
    return OK;
}

MUST_USE static err read_boolean(struct reader *reader, struct avro_value *value)
{
    u8 byte = 0;
    TRY(read_into(reader, &byte, 1));
    if (byte > 1) {
        return read_corrupt(reader, "has a boolean that is neither 0 nor 1");
    }
    value->kind = AVRO_VALUE_BOOLEAN;
    value->number = byte;
    return OK;
}

MUST_USE static err read_integer(struct reader *reader, enum avro_type_kind kind,
                                 struct avro_value *value)
{
    TRY(read_long(reader, &value->number));
    if (kind == AVRO_TYPE_INT && (value->number < INT32_MIN || value->number > INT32_MAX)) {
        return read_corrupt(reader, "has an int of more than 32 bits");
    }
    value->kind = AVRO_VALUE_LONG;
    return OK;
}

MUST_USE static err read_float(struct reader *reader, struct avro_value *value)
{
    float real = 0;
    TRY(read_into(reader, &real, sizeof(real)));
    value->kind = AVRO_VALUE_FLOAT;
    value->real = (double)real;
    return OK;
}

MUST_USE static err read_double(struct reader *reader, struct avro_value *value)
{
    value->kind = AVRO_VALUE_DOUBLE;
    return read_into(reader, &value->real, sizeof(value->real));
}

MUST_USE static err read_symbol(struct reader *reader, const struct avro_type *type,
                                struct avro_value *value)
{
    size_t index = 0;
    TRY(read_index(reader, type->count, &index));
    value->kind = AVRO_VALUE_BYTES;
    value->bytes = type->symbols[index];
    return OK;
}

MUST_USE static err read_record(struct reader *reader, const struct avro_type *type, int depth,
                                struct avro_value *value)
{
    struct avro_value *items = arena_array(reader->arena, type->count, sizeof(*items));
    if (items == NULL) {
        return error_memory(reader->error);
    }
    for (size_t i = 0; i < type->count; i++) {
        TRY(read_value(reader, type->types[i], depth + 1, &items[i]));
    }
    value->kind = AVRO_VALUE_RECORD;
    value->items = items;
    value->fields = type->fields;
    value->count = type->count;
    return OK;
}

/* One more item at the end of a list that grows. Each item but a null takes a byte at least, so
 * that what is left of the bytes bounds what is worth having room for. */
MUST_USE static err items_add(struct reader *reader, struct avro_value *list, size_t *capacity,
                              u64 expected, struct avro_value **out_item)
{
    if (list->count == *capacity) {
        u64 more = expected < read_left(reader) ? expected : read_left(reader);
        size_t next = *capacity + (more > *capacity ? (size_t)more : *capacity) + 1;
        struct avro_value *items = arena_grow(reader->arena, list->items,
                                              *capacity * sizeof(*items), next * sizeof(*items));
        if (items == NULL) {
            return error_memory(reader->error);
        }
        list->items = items;
        *capacity = next;
    }
    *out_item = &list->items[list->count++];
    **out_item = (struct avro_value){0};
    return OK;
}

/* An entry of a map, as a record of key and value. */
MUST_USE static err read_entry(struct reader *reader, const struct avro_type *type, int depth,
                               struct avro_value *entry)
{
    struct avro_value *items = arena_array(reader->arena, 2, sizeof(*items));
    if (items == NULL) {
        return error_memory(reader->error);
    }
    items[0].kind = AVRO_VALUE_BYTES;
    TRY(read_bytes(reader, &items[0].bytes));
    TRY(read_value(reader, type->types[0], depth + 1, &items[1]));
    *entry = (struct avro_value){
        .kind = AVRO_VALUE_RECORD, .items = items, .fields = type->fields, .count = 2};
    return OK;
}

MUST_USE static err read_list(struct reader *reader, const struct avro_type *type, int depth,
                              struct avro_value *value)
{
    value->kind = AVRO_VALUE_ARRAY;
    size_t capacity = 0;
    i64 count = 0;
    TRY(read_block_count(reader, &count));
    while (count > 0) {
        for (i64 i = 0; i < count; i++) {
            struct avro_value *item = NULL;
            TRY(items_add(reader, value, &capacity, (u64)(count - i), &item));
            if (type->kind == AVRO_TYPE_MAP) {
                TRY(read_entry(reader, type, depth + 1, item));
            } else {
                TRY(read_value(reader, type->types[0], depth + 1, item));
            }
        }
        TRY(read_block_count(reader, &count));
    }
    return OK;
}

MUST_USE static err read_kind(struct reader *reader, const struct avro_type *type, int depth,
                              struct avro_value *value)
{
    size_t branch = 0;
    switch (type->kind) {
    case AVRO_TYPE_NULL:
        value->kind = AVRO_VALUE_NULL;
        return OK;
    case AVRO_TYPE_BOOLEAN:
        return read_boolean(reader, value);
    case AVRO_TYPE_INT:
    case AVRO_TYPE_LONG:
        return read_integer(reader, type->kind, value);
    case AVRO_TYPE_FLOAT:
        return read_float(reader, value);
    case AVRO_TYPE_DOUBLE:
        return read_double(reader, value);
    case AVRO_TYPE_BYTES:
    case AVRO_TYPE_STRING:
        value->kind = AVRO_VALUE_BYTES;
        return read_bytes(reader, &value->bytes);
    case AVRO_TYPE_FIXED:
        value->kind = AVRO_VALUE_BYTES;
        return read_raw(reader, (size_t)type->size, &value->bytes);
    case AVRO_TYPE_ENUM:
        return read_symbol(reader, type, value);
    case AVRO_TYPE_RECORD:
        return read_record(reader, type, depth, value);
    case AVRO_TYPE_ARRAY:
    case AVRO_TYPE_MAP:
        return read_list(reader, type, depth, value);
    case AVRO_TYPE_UNION:
        TRY(read_index(reader, type->count, &branch));
        return read_kind(reader, type->types[branch], depth, value);
    }
    return OK;
}

static err read_value(struct reader *reader, const struct avro_type *type, int depth,
                      struct avro_value *value)
{
    /* A type may contain itself, so that the schema's own depth is no bound. */
    if (depth > AVRO_DEPTH_MAX) {
        return read_corrupt(reader, "is nested too deeply");
    }
    size_t start = reader->at;
    TRY(read_kind(reader, type, depth, value));
    value->raw = (str){reader->bytes.data + start, reader->at - start};
    return OK;
}

/* ---- reading a file ---- */

struct avro_file {
    str schema;
    struct avro_meta *meta;
    size_t meta_count;
    const struct avro_type *type;
    enum avro_codec codec;
    char sync[AVRO_SYNC_SIZE];
    struct avro_value records; /* an array */
    size_t record_capacity;
};

MUST_USE static err header_meta_read(struct reader *reader, struct avro_file *file)
{
    size_t capacity = 0;
    i64 count = 0;
    TRY(read_block_count(reader, &count));
    while (count > 0) {
        for (i64 i = 0; i < count; i++) {
            if (file->meta_count == capacity) {
                size_t next = capacity * 2 + 8;
                file->meta = arena_grow(reader->arena, file->meta, capacity * sizeof(*file->meta),
                                        next * sizeof(*file->meta));
                if (file->meta == NULL) {
                    return error_memory(reader->error);
                }
                capacity = next;
            }
            struct avro_meta *meta = &file->meta[file->meta_count];
            TRY(read_bytes(reader, &meta->key));
            TRY(read_bytes(reader, &meta->value));
            file->meta_count++;
        }
        TRY(read_block_count(reader, &count));
    }
    return OK;
}

MUST_USE static err header_codec_find(struct reader *reader, struct avro_file *file)
{
    str name = avro_file_meta(file, STR("avro.codec"));
    if (name.size == 0) {
        file->codec = AVRO_NULL;
        return OK;
    }
    for (size_t i = 0; i < ARRAY_COUNT(codecs); i++) {
        if (str_equal(name, codecs[i].name)) {
            file->codec = (enum avro_codec)i;
            return OK;
        }
    }
    return read_corrupt(reader, "has a codec that is not known");
}

MUST_USE static err header_read(struct reader *reader, struct avro_file *file)
{
    str magic = {0};
    TRY(read_raw(reader, AVRO_MAGIC.size, &magic));
    if (!str_equal(magic, AVRO_MAGIC)) {
        return read_corrupt(reader, "does not begin with Obj and 1");
    }
    TRY(header_meta_read(reader, file));
    TRY(read_into(reader, file->sync, AVRO_SYNC_SIZE));
    file->schema = avro_file_meta(file, STR("avro.schema"));
    if (file->schema.data == NULL) {
        return read_corrupt(reader, "has no schema");
    }
    TRY(header_codec_find(reader, file));
    return avro_schema_parse(reader->arena, file->schema, &file->type, reader->error);
}

MUST_USE static err block_decompress(struct reader *reader, enum avro_codec codec, str block,
                                     str *out_bytes)
{
    if (codec != AVRO_SNAPPY) {
        return compress_expand(reader->arena, codecs[codec].codec, block, AVRO_BLOCK_BYTES_MAX,
                               out_bytes, reader->error);
    }
    if (block.size < AVRO_SNAPPY_CRC_SIZE) {
        return read_corrupt(reader, "has a snappy block without its checksum");
    }
    size_t size = block.size - AVRO_SNAPPY_CRC_SIZE;
    str bytes = {0};
    TRY(compress_expand(reader->arena, COMPRESS_SNAPPY, str_slice(block, 0, size),
                        AVRO_BLOCK_BYTES_MAX, &bytes, reader->error));
    u32 crc = __builtin_bswap32(num_load_u32(block.data + size));
    if (crc != crc_of(bytes)) {
        return read_corrupt(reader, "has a block whose checksum is wrong");
    }
    *out_bytes = bytes;
    return OK;
}

/* The next block: its records and how many they are. */
MUST_USE static err block_open(struct reader *reader, const struct avro_file *file,
                               struct reader *out_records, i64 *out_count)
{
    i64 count = 0;
    TRY(read_long(reader, &count));
    str block = {0};
    TRY(read_bytes(reader, &block));
    char sync[AVRO_SYNC_SIZE] = {0};
    TRY(read_into(reader, sync, AVRO_SYNC_SIZE));
    if (count < 0 || memcmp(sync, file->sync, AVRO_SYNC_SIZE) != 0) {
        return read_corrupt(reader, "has a damaged block");
    }
    struct reader records = *reader;
    records.at = 0;
    TRY(block_decompress(reader, file->codec, block, &records.bytes));
    *out_records = records;
    *out_count = count;
    return OK;
}

MUST_USE static err block_close(const struct reader *records)
{
    return read_left(records) == 0 ? OK : read_corrupt(records, "has a block that is too long");
}

MUST_USE static err block_read(struct reader *reader, struct avro_file *file)
{
    struct reader records = {0};
    i64 count = 0;
    TRY(block_open(reader, file, &records, &count));
    for (i64 i = 0; i < count; i++) {
        struct avro_value *record = NULL;
        TRY(items_add(&records, &file->records, &file->record_capacity, (u64)(count - i), &record));
        TRY(read_value(&records, file->type, 0, record));
    }
    return block_close(&records);
}

MUST_USE static err block_each(struct reader *reader, const struct avro_file *file, avro_take take,
                               void *context)
{
    struct reader records = {0};
    i64 count = 0;
    TRY(block_open(reader, file, &records, &count));
    struct arena_mark mark = arena_mark(reader->arena);
    for (i64 i = 0; i < count; i++) {
        struct avro_value record = {0};
        TRY(read_value(&records, file->type, 0, &record));
        if (record.raw.size == 0) { /* there could be any number of them */
            return read_corrupt(reader, "has records of no bytes");
        }
        TRY(take(context, &record, reader->error));
        arena_reset_to(reader->arena, mark);
    }
    return block_close(&records);
}

err avro_read(struct arena *arena, str bytes, struct avro_file **out_file, struct error *error)
{
    struct avro_file *file = arena_alloc(arena, sizeof(*file));
    if (file == NULL) {
        return error_memory(error);
    }
    struct reader reader = {.arena = arena, .bytes = bytes, .error = error};
    TRY(header_read(&reader, file));
    while (read_left(&reader) > 0) {
        TRY(block_read(&reader, file));
    }
    *out_file = file;
    return OK;
}

err avro_each(struct arena *arena, str bytes, avro_take take, void *context, struct error *error)
{
    struct avro_file file = {0};
    struct reader reader = {.arena = arena, .bytes = bytes, .error = error};
    TRY(header_read(&reader, &file));
    struct arena_mark mark = arena_mark(arena);
    while (read_left(&reader) > 0) {
        TRY(block_each(&reader, &file, take, context));
        arena_reset_to(arena, mark);
    }
    return OK;
}

str avro_file_schema(const struct avro_file *file)
{
    return file->schema;
}

str avro_file_meta(const struct avro_file *file, str key)
{
    for (size_t i = 0; i < file->meta_count; i++) {
        if (str_equal(file->meta[i].key, key)) {
            return file->meta[i].value;
        }
    }
    return (str){0};
}

size_t avro_file_count(const struct avro_file *file)
{
    return file->records.count;
}

const struct avro_value *avro_file_record(const struct avro_file *file, size_t index)
{
    assert(index < file->records.count);
    return &file->records.items[index];
}

const struct avro_value *avro_field_of(const struct avro_value *record, i32 field_id, str name)
{
    if (record == NULL || record->kind != AVRO_VALUE_RECORD) {
        return NULL;
    }
    const struct avro_value *by_name = NULL;
    for (size_t i = 0; i < record->count; i++) {
        if (record->fields[i].field_id == field_id) {
            return &record->items[i];
        }
        if (record->fields[i].field_id < 0 && str_equal(record->fields[i].name, name)) {
            by_name = &record->items[i];
        }
    }
    return by_name;
}
