#include "base/assert.h"
#include "format/parquet/thrift.h"
#include "format/parquet/writer.h"

enum {
    FOOTER_VERSION = 1, /* parquet.thrift: "writers should always populate 1" */

    /* Numbers of parquet.thrift. */
    REPETITION_REQUIRED = 0,
    REPETITION_OPTIONAL = 1,
    REPETITION_REPEATED = 2,
    CONVERTED_UTF8 = 0,
    CONVERTED_MAP = 1,
    CONVERTED_LIST = 3,
    CONVERTED_DECIMAL = 5,
    CONVERTED_DATE = 6,
    CONVERTED_TIME_MICROS = 8,
    CONVERTED_TIMESTAMP_MICROS = 10,
    LOGICAL_STRING = 1,
    LOGICAL_MAP = 2,
    LOGICAL_LIST = 3,
    LOGICAL_DECIMAL = 5,
    LOGICAL_DATE = 6,
    LOGICAL_TIME = 7,
    LOGICAL_TIMESTAMP = 8,
    LOGICAL_UUID = 14,
    LOGICAL_VARIANT = 16,
    VARIANT_VERSION = 1,
    UNIT_MICROS = 2,
    UNIT_NANOS = 3,
    CODEC_UNCOMPRESSED = 0,
    CODEC_SNAPPY = 1,
    CODEC_GZIP = 2,
    CODEC_ZSTD = 6,
    PAGE_DATA = 0,
    PAGE_DICTIONARY = 2,
};

/* ---- schema ---- */

static void converted_put(struct thrift *thrift, const struct type *type)
{
    enum { CONVERTED_ID = 6 };
    switch (type->kind) {
    case TYPE_STRING:
        thrift_i32(thrift, CONVERTED_ID, CONVERTED_UTF8);
        return;
    case TYPE_LIST:
        thrift_i32(thrift, CONVERTED_ID, CONVERTED_LIST);
        return;
    case TYPE_MAP:
        thrift_i32(thrift, CONVERTED_ID, CONVERTED_MAP);
        return;
    case TYPE_DECIMAL:
        thrift_i32(thrift, CONVERTED_ID, CONVERTED_DECIMAL);
        thrift_i32(thrift, 7, type->scale);
        thrift_i32(thrift, 8, type->precision);
        return;
    case TYPE_DATE:
        thrift_i32(thrift, CONVERTED_ID, CONVERTED_DATE);
        return;
    case TYPE_TIME:
        thrift_i32(thrift, CONVERTED_ID, CONVERTED_TIME_MICROS);
        return;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        thrift_i32(thrift, CONVERTED_ID, CONVERTED_TIMESTAMP_MICROS);
        return;
    case TYPE_BOOLEAN:
    case TYPE_INT:
    case TYPE_LONG:
    case TYPE_FLOAT:
    case TYPE_DOUBLE:
    case TYPE_TIMESTAMP_NS:
    case TYPE_TIMESTAMPTZ_NS:
    case TYPE_UUID:
    case TYPE_FIXED:
    case TYPE_BINARY:
    case TYPE_UNKNOWN:
    case TYPE_STRUCT:
    case TYPE_VARIANT:
    case TYPE_GEOMETRY:
    case TYPE_GEOGRAPHY:
        return;
    }
}

enum footer_zone { FOOTER_LOCAL, FOOTER_UTC };

/* TIME or TIMESTAMP. */
static void logical_put_time(struct thrift *thrift, i32 logical, enum footer_zone zone, i32 unit)
{
    thrift_struct(thrift, logical);
    thrift_boolean(thrift, 1, zone == FOOTER_UTC);
    thrift_struct(thrift, 2);
    thrift_empty(thrift, unit);
    thrift_end(thrift);
    thrift_end(thrift);
}

static void logical_put_decimal(struct thrift *thrift, const struct type *type)
{
    thrift_struct(thrift, LOGICAL_DECIMAL);
    thrift_i32(thrift, 1, type->scale);
    thrift_i32(thrift, 2, type->precision);
    thrift_end(thrift);
}

static void logical_put_variant(struct thrift *thrift)
{
    thrift_struct(thrift, LOGICAL_VARIANT);
    thrift_i8(thrift, 1, VARIANT_VERSION);
    thrift_end(thrift);
}

/* The one member of the union LogicalType. */
static void logical_put_member(struct thrift *thrift, const struct type *type)
{
    switch (type->kind) {
    case TYPE_STRING:
        thrift_empty(thrift, LOGICAL_STRING);
        return;
    case TYPE_LIST:
        thrift_empty(thrift, LOGICAL_LIST);
        return;
    case TYPE_MAP:
        thrift_empty(thrift, LOGICAL_MAP);
        return;
    case TYPE_DECIMAL:
        logical_put_decimal(thrift, type);
        return;
    case TYPE_DATE:
        thrift_empty(thrift, LOGICAL_DATE);
        return;
    case TYPE_TIME:
        logical_put_time(thrift, LOGICAL_TIME, FOOTER_LOCAL, UNIT_MICROS);
        return;
    case TYPE_TIMESTAMP:
        logical_put_time(thrift, LOGICAL_TIMESTAMP, FOOTER_LOCAL, UNIT_MICROS);
        return;
    case TYPE_TIMESTAMPTZ:
        logical_put_time(thrift, LOGICAL_TIMESTAMP, FOOTER_UTC, UNIT_MICROS);
        return;
    case TYPE_TIMESTAMP_NS:
        logical_put_time(thrift, LOGICAL_TIMESTAMP, FOOTER_LOCAL, UNIT_NANOS);
        return;
    case TYPE_TIMESTAMPTZ_NS:
        logical_put_time(thrift, LOGICAL_TIMESTAMP, FOOTER_UTC, UNIT_NANOS);
        return;
    case TYPE_UUID:
        thrift_empty(thrift, LOGICAL_UUID);
        return;
    case TYPE_VARIANT:
        logical_put_variant(thrift);
        return;
    case TYPE_BOOLEAN:
    case TYPE_INT:
    case TYPE_LONG:
    case TYPE_FLOAT:
    case TYPE_DOUBLE:
    case TYPE_FIXED:
    case TYPE_BINARY:
    case TYPE_UNKNOWN:
    case TYPE_STRUCT:
    case TYPE_GEOMETRY:
    case TYPE_GEOGRAPHY:
        return;
    }
}

static bool type_has_logical(const struct type *type)
{
    switch (type->kind) {
    case TYPE_STRING:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_DECIMAL:
    case TYPE_DATE:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_TIMESTAMP_NS:
    case TYPE_TIMESTAMPTZ_NS:
    case TYPE_UUID:
    case TYPE_VARIANT:
        return true;
    case TYPE_BOOLEAN:
    case TYPE_INT:
    case TYPE_LONG:
    case TYPE_FLOAT:
    case TYPE_DOUBLE:
    case TYPE_FIXED:
    case TYPE_BINARY:
    case TYPE_UNKNOWN:
    case TYPE_STRUCT:
    case TYPE_GEOMETRY:
    case TYPE_GEOGRAPHY:
        return false;
    }
    return false;
}

static i32 stored_count(const struct field *fields, size_t field_count)
{
    i32 count = 0;
    for (size_t i = 0; i < field_count; i++) {
        count += leaf_is_stored(&fields[i]);
    }
    return count;
}

/* SchemaElement of a field itself. */
static void element_put(struct thrift *thrift, const struct field *field)
{
    const struct type *type = &field->type;
    size_t part_count = 0;
    const struct field *parts = type_parts(type, &part_count);
    thrift_begin(thrift);
    if (part_count == 0) {
        thrift_i32(thrift, 1, (i32)leaf_physical_of(type));
        if (leaf_physical_of(type) == LEAF_FIXED) {
            thrift_i32(thrift, 2, (i32)leaf_width_of(type));
        }
    }
    thrift_i32(thrift, 3, field->required ? REPETITION_REQUIRED : REPETITION_OPTIONAL);
    thrift_binary(thrift, 4, field->name);
    if (part_count > 0) {
        thrift_i32(thrift, 5, type_repeats(type) ? 1 : stored_count(parts, part_count));
    }
    converted_put(thrift, type);
    if (field->id != TYPE_NO_ID) {
        thrift_i32(thrift, 9, field->id);
    }
    if (type_has_logical(type)) {
        thrift_struct(thrift, 10);
        logical_put_member(thrift, type);
        thrift_end(thrift);
    }
    thrift_end(thrift);
}

/* The middle level of a list or map, which has no field id. */
static void element_put_repeated(struct thrift *thrift, const struct type *type)
{
    thrift_begin(thrift);
    thrift_i32(thrift, 3, REPETITION_REPEATED);
    thrift_binary(thrift, 4, type->kind == TYPE_LIST ? STR("list") : STR("key_value"));
    thrift_i32(thrift, 5, stored_count(type->fields, type->field_count));
    thrift_end(thrift);
}

/* The elements of a tree, parents before their children: calls itself, as deep as leaf_list
 * allowed. With thrift NULL it only counts. */
static size_t elements_put(struct thrift *thrift, const struct field *fields, size_t field_count)
{
    size_t count = 0;
    for (size_t i = 0; i < field_count; i++) {
        if (!leaf_is_stored(&fields[i])) {
            continue;
        }
        const struct type *type = &fields[i].type;
        bool repeats = type_repeats(type);
        count += repeats ? 2 : 1;
        if (thrift != NULL) {
            element_put(thrift, &fields[i]);
            if (repeats) {
                element_put_repeated(thrift, type);
            }
        }
        size_t part_count = 0;
        const struct field *parts = type_parts(type, &part_count);
        count += elements_put(thrift, parts, part_count);
    }
    return count;
}

static void schema_put(struct thrift *thrift, const struct parquet_writer *writer)
{
    size_t count = elements_put(NULL, writer->fields, writer->field_count);
    thrift_list(thrift, 2, THRIFT_STRUCT, count + 1);
    thrift_begin(thrift);
    thrift_binary(thrift, 4, STR("table"));
    thrift_i32(thrift, 5, stored_count(writer->fields, writer->field_count));
    thrift_end(thrift);
    elements_put(thrift, writer->fields, writer->field_count);
}

/* ---- row groups ---- */

static void statistics_put(struct thrift *thrift, const struct leaf *leaf,
                           const struct chunk_meta *chunk)
{
    struct bounds bounds = {0};
    if (leaf_has_bounds(leaf) && leaf->width <= CHUNK_STATISTICS_WIDTH_MAX) {
        bounds = bounds_for_parquet(leaf, chunk->kept.bounds);
    }
    thrift_struct(thrift, 12);
    thrift_i64(thrift, 3, chunk->null_count);
    if (bounds.upper.data != NULL) {
        thrift_binary(thrift, 5, bounds.upper);
    }
    if (bounds.lower.data != NULL) {
        thrift_binary(thrift, 6, bounds.lower);
    }
    if (bounds.upper.data != NULL) {
        thrift_boolean(thrift, 7, chunk->kept.upper_exact);
    }
    if (bounds.lower.data != NULL) {
        thrift_boolean(thrift, 8, chunk->kept.lower_exact);
    }
    thrift_end(thrift);
}

/* Of the dictionary, the levels and the data pages, in this order. */
static void encodings_put(struct thrift *thrift, const struct chunk_meta *chunk)
{
    bool has_plain = chunk->has_dictionary || chunk->encoding == ENCODING_PLAIN;
    bool has_other = chunk->encoding != ENCODING_PLAIN;
    thrift_list(thrift, 2, THRIFT_I32, 1 + (size_t)has_plain + (size_t)has_other);
    if (has_plain) {
        thrift_element_integer(thrift, ENCODING_PLAIN);
    }
    thrift_element_integer(thrift, ENCODING_RLE);
    if (has_other) {
        thrift_element_integer(thrift, (i64)chunk->encoding);
    }
}

static void page_count_put(struct thrift *thrift, i32 page_type, i32 encoding, i64 count)
{
    thrift_begin(thrift);
    thrift_i32(thrift, 1, page_type);
    thrift_i32(thrift, 2, encoding);
    thrift_i32(thrift, 3, (i32)count);
    thrift_end(thrift);
}

/* By these a reader knows that a dictionary has all values of the chunk. */
static void page_counts_put(struct thrift *thrift, const struct chunk_meta *chunk)
{
    thrift_list(thrift, 13, THRIFT_STRUCT, chunk->has_dictionary ? 2 : 1);
    if (chunk->has_dictionary) {
        page_count_put(thrift, PAGE_DICTIONARY, ENCODING_PLAIN, 1);
    }
    page_count_put(thrift, PAGE_DATA, (i32)chunk->encoding, chunk->page_count);
}

static i32 codec_number(enum compress_codec codec)
{
    switch (codec) {
    case COMPRESS_NONE:
    case COMPRESS_DEFLATE: /* not in Parquet: parquet_open asserts that it is not asked for */
        return CODEC_UNCOMPRESSED;
    case COMPRESS_SNAPPY:
        return CODEC_SNAPPY;
    case COMPRESS_GZIP:
        return CODEC_GZIP;
    case COMPRESS_ZSTD:
        return CODEC_ZSTD;
    }
    return CODEC_UNCOMPRESSED;
}

/* Where what stands between the row groups and the footer begins. */
struct footer_places {
    i64 blooms;
    i64 column_indexes;
    i64 offset_indexes;
};

static void chunk_put_meta(struct thrift *thrift, const struct leaf *leaf,
                           const struct chunk_meta *chunk, const struct footer_places *places)
{
    thrift_struct(thrift, 3);
    thrift_i32(thrift, 1, (i32)leaf->physical);
    encodings_put(thrift, chunk);
    thrift_list(thrift, 3, THRIFT_BINARY, leaf->name_count);
    for (size_t i = 0; i < leaf->name_count; i++) {
        thrift_element_binary(thrift, leaf->names[i]);
    }
    thrift_i32(thrift, 4, codec_number(chunk->codec));
    thrift_i64(thrift, 5, chunk->value_count);
    thrift_i64(thrift, 6, chunk->uncompressed_bytes);
    thrift_i64(thrift, 7, chunk->compressed_bytes);
    thrift_i64(thrift, 9, chunk->data_page_at);
    if (chunk->has_dictionary) {
        thrift_i64(thrift, 11, chunk->start);
    }
    statistics_put(thrift, leaf, chunk);
    page_counts_put(thrift, chunk);
    if (chunk->bloom.size > 0) {
        thrift_i64(thrift, 14, places->blooms + chunk->bloom.at);
        thrift_i32(thrift, 15, (i32)chunk->bloom.size);
    }
    thrift_end(thrift);
}

static void column_chunk_put(struct thrift *thrift, const struct leaf *leaf,
                             const struct chunk_meta *chunk, const struct footer_places *places)
{
    thrift_begin(thrift);
    thrift_i64(thrift, 2, 0); /* deprecated, and required */
    chunk_put_meta(thrift, leaf, chunk, places);
    thrift_i64(thrift, 4, places->offset_indexes + chunk->offset_index.at);
    thrift_i32(thrift, 5, (i32)chunk->offset_index.size);
    if (chunk->column_index.size > 0) {
        thrift_i64(thrift, 6, places->column_indexes + chunk->column_index.at);
        thrift_i32(thrift, 7, (i32)chunk->column_index.size);
    }
    thrift_end(thrift);
}

static void row_group_put(struct thrift *thrift, const struct parquet_writer *writer, size_t index,
                          const struct footer_places *places)
{
    const struct row_group_meta *group = &writer->row_groups[index];
    i64 uncompressed = 0;
    i64 compressed = 0;
    thrift_begin(thrift);
    thrift_list(thrift, 1, THRIFT_STRUCT, writer->leaf_count);
    for (size_t i = 0; i < writer->leaf_count; i++) {
        const struct chunk_meta *chunk = &group->chunks[i];
        uncompressed += chunk->uncompressed_bytes;
        compressed += chunk->compressed_bytes;
        column_chunk_put(thrift, &writer->leaves[i], chunk, places);
    }
    thrift_i64(thrift, 2, uncompressed);
    thrift_i64(thrift, 3, group->rows);
    thrift_i64(thrift, 5, group->start);
    thrift_i64(thrift, 6, compressed);
    if (index <= INT16_MAX) {
        thrift_i16(thrift, 7, (i16)index);
    }
    thrift_end(thrift);
}

/* ---- the footer ---- */

static void key_values_put(struct thrift *thrift, str schema_json)
{
    if (schema_json.size == 0) {
        return;
    }
    thrift_list(thrift, 5, THRIFT_STRUCT, 1);
    thrift_begin(thrift);
    thrift_binary(thrift, 1, STR("iceberg.schema"));
    thrift_binary(thrift, 2, schema_json);
    thrift_end(thrift);
}

/* Every leaf sorts as its type says. */
static void column_orders_put(struct thrift *thrift, size_t count)
{
    thrift_list(thrift, 7, THRIFT_STRUCT, count);
    for (size_t i = 0; i < count; i++) {
        thrift_begin(thrift);
        thrift_empty(thrift, 1);
        thrift_end(thrift);
    }
}

static void footer_put(buf *out, const struct parquet_writer *writer,
                       const struct footer_places *places)
{
    struct thrift thrift = {.out = out};
    thrift_begin(&thrift);
    thrift_i32(&thrift, 1, FOOTER_VERSION);
    schema_put(&thrift, writer);
    thrift_i64(&thrift, 3, writer->rows);
    thrift_list(&thrift, 4, THRIFT_STRUCT, writer->row_group_count);
    for (size_t i = 0; i < writer->row_group_count; i++) {
        row_group_put(&thrift, writer, i, places);
    }
    key_values_put(&thrift, writer->schema_json);
    thrift_binary(&thrift, 6, str_from(writer->options.created_by));
    column_orders_put(&thrift, writer->leaf_count);
    thrift_end(&thrift);
}

err footer_write(struct parquet_writer *writer, struct error *error)
{
    struct footer_places places = {.blooms = writer->offset};
    TRY(parquet_put(writer, buf_str(&writer->blooms), error));
    places.column_indexes = writer->offset;
    TRY(parquet_put(writer, buf_str(&writer->column_indexes), error));
    places.offset_indexes = writer->offset;
    TRY(parquet_put(writer, buf_str(&writer->offset_indexes), error));

    buf footer = buf_create(writer->arena, 4 * KIB, INT32_MAX);
    footer_put(&footer, writer, &places);
    u8 size[4];
    num_store_u32(size, (u32)footer.size);
    buf_append_bytes(&footer, size, sizeof(size));
    buf_append(&footer, STR("PAR1"));
    if (!buf_ok(&footer)) {
        return error_memory(error);
    }
    return parquet_put(writer, buf_str(&footer), error);
}
