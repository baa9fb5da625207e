#include "base/assert.h"
#include "format/parquet/hybrid.h"
#include "format/parquet/thrift.h"
#include "format/parquet/writer.h"

#include <zlib.h>

enum {
    PAGE_LENGTH_SIZE = 4,

    /* Numbers of parquet.thrift. */
    PAGE_DATA = 0,
    PAGE_DICTIONARY = 2,
    ENCODING_PLAIN = 0,
    ENCODING_RLE = 3,
    ENCODING_RLE_DICTIONARY = 8,
    BOUNDARY_UNORDERED = 0,
};

struct page {
    i64 slot_from;
    i64 slot_to;
    i64 value_from;
    i64 value_to;
    i64 row_from;
    i64 offset;
    i64 compressed_bytes; /* with the header */
    struct kept_bounds kept;
};

struct chunk {
    struct parquet_writer *writer;
    const struct leaf *leaf;
    const struct parquet_column_options *options;
    struct compressor *compressor;
    struct levels levels;
    struct values values;
    struct choice choice;
    u32 *stamps; /* per entry: the last page that has it, from 1 */
    u32 *selection;
    struct bounds bounds;
    struct chunk_meta *meta;
    struct error *error;
};

/* ---- pages ---- */

static bool slot_starts_row(const struct chunk *chunk, i64 slot)
{
    return chunk->levels.repetition == NULL || chunk->levels.repetition[slot] == 0;
}

static bool slot_has_value(const struct chunk *chunk, i64 slot)
{
    return chunk->levels.definition == NULL ||
           chunk->levels.definition[slot] == chunk->leaf->definition_max;
}

static i64 values_bits(const struct chunk *chunk, i64 from, i64 to)
{
    if (chunk->choice.has_dictionary) {
        return (to - from) * chunk->choice.dictionary.width;
    }
    if (chunk->values.physical == LEAF_BOOLEAN) {
        return to - from;
    }
    return 8 * values_plain_bytes(&chunk->values, from, to);
}

static i64 slots_count_values(const struct chunk *chunk, i64 from, i64 to)
{
    if (chunk->levels.definition == NULL) {
        return to - from;
    }
    i64 count = 0;
    for (i64 slot = from; slot < to; slot++) {
        count += chunk->levels.definition[slot] == chunk->leaf->definition_max;
    }
    return count;
}

/* As many rows as a page may have, when their bytes fit and each is one slot. False: look closer.
 */
static bool page_next_whole(const struct chunk *chunk, struct page *page, i64 *out_rows)
{
    if (chunk->levels.repetition != NULL) {
        return false;
    }
    const struct parquet_options *options = &chunk->writer->options;
    i64 left = chunk->levels.count - page->slot_from;
    i64 rows = num_min_i64(left, options->page_rows_max);
    i64 to = page->value_from + slots_count_values(chunk, page->slot_from, page->slot_from + rows);
    assert(to <= chunk->values.count);
    if (values_bits(chunk, page->value_from, to) > options->page_bytes_max * 8) {
        return false;
    }
    page->slot_to = page->slot_from + rows;
    page->value_to = to;
    *out_rows = rows;
    return true;
}

/* The page behind `page`, which ends where a row does. Returns its rows. */
static i64 page_next(const struct chunk *chunk, struct page *page)
{
    i64 bits_max = chunk->writer->options.page_bytes_max * 8;
    i64 rows_max = chunk->writer->options.page_rows_max;
    i64 bits = 0;
    i64 rows = 0;
    i64 slot = page->slot_to;
    i64 value = page->value_to;
    page->slot_from = slot;
    page->value_from = value;
    if (page_next_whole(chunk, page, &rows)) {
        return rows;
    }
    for (; slot < chunk->levels.count; slot++) {
        if (slot_starts_row(chunk, slot)) {
            if (rows == rows_max || (rows > 0 && bits >= bits_max)) {
                break;
            }
            rows++;
        }
        if (slot_has_value(chunk, slot)) {
            bits += values_bits(chunk, value, value + 1);
            value++;
        }
    }
    /* A column's parents give it a null for each of theirs, and a required one has none. */
    assert(value <= chunk->values.count);
    page->slot_to = slot;
    page->value_to = value;
    return rows;
}

static void levels_put(buf *out, const u8 *levels, i64 from, i64 to, i32 max)
{
    if (max == 0) {
        return;
    }
    size_t start = out->size;
    buf_append_bytes(out, &(u32){0}, PAGE_LENGTH_SIZE);
    i32 width = hybrid_width((u32)max);
    if (levels != NULL) {
        hybrid_put_u8(out, levels + from, to - from, width);
    } else {
        hybrid_put_run(out, (u32)max, to - from, width);
    }
    if (buf_ok(out)) {
        num_store_u32(out->data + start, (u32)(out->size - start - PAGE_LENGTH_SIZE));
    }
}

static void page_put_body(const struct chunk *chunk, const struct page *page, buf *body)
{
    const struct levels *levels = &chunk->levels;
    levels_put(body, levels->repetition, page->slot_from, page->slot_to,
               chunk->leaf->repetition_max);
    levels_put(body, levels->definition, page->slot_from, page->slot_to,
               chunk->leaf->definition_max);
    if (chunk->choice.has_dictionary) {
        dictionary_put_indices(body, &chunk->choice.dictionary, page->value_from, page->value_to);
    } else {
        values_put_plain(body, &chunk->values, page->value_from, page->value_to);
    }
}

/* What the two kinds of pages have in common: type, sizes and checksum. */
static void header_begin(struct thrift *thrift, i32 type, size_t size, str packed)
{
    thrift_begin(thrift);
    thrift_i32(thrift, 1, type);
    thrift_i32(thrift, 2, (i32)size);
    thrift_i32(thrift, 3, (i32)packed.size);
    thrift_i32(thrift, 4, (i32)crc32_z(0, (const Bytef *)packed.data, packed.size));
}

static void header_put_data(struct thrift *thrift, const struct chunk *chunk, i64 slots)
{
    thrift_struct(thrift, 5);
    thrift_i32(thrift, 1, (i32)slots);
    thrift_i32(thrift, 2, chunk->choice.has_dictionary ? ENCODING_RLE_DICTIONARY : ENCODING_PLAIN);
    thrift_i32(thrift, 3, ENCODING_RLE);
    thrift_i32(thrift, 4, ENCODING_RLE);
    thrift_end(thrift);
}

static void header_put_dictionary(struct thrift *thrift, const struct chunk *chunk)
{
    thrift_struct(thrift, 7);
    thrift_i32(thrift, 1, (i32)chunk->choice.dictionary.count);
    thrift_i32(thrift, 2, ENCODING_PLAIN);
    thrift_end(thrift);
}

/* Compresses the body in scratch. */
MUST_USE static err page_pack(struct chunk *chunk, str *out_packed)
{
    struct scratch *scratch = &chunk->writer->scratch;
    if (!buf_ok(&scratch->body)) {
        return error_memory(chunk->error);
    }
    if (scratch->body.size > INT32_MAX / 2) {
        return error_set(chunk->error, LIMIT, ERROR_OVERLOADED,
                         "one row of column %.*s is too large for a Parquet page",
                         STR_ARG(chunk->leaf->field->name));
    }
    str packed = buf_str(&scratch->body);
    if (chunk->choice.compressed) {
        buf_truncate(&scratch->packed, 0);
        TRY(compress_append(chunk->compressor, &scratch->packed, packed, chunk->error));
        packed = buf_str(&scratch->packed);
    }
    *out_packed = packed;
    return OK;
}

/* Writes the page whose body and header are ready. Returns its bytes in *out_bytes. */
MUST_USE static err page_put(struct chunk *chunk, str packed, i64 *out_bytes)
{
    struct scratch *scratch = &chunk->writer->scratch;
    if (!buf_ok(&scratch->header)) {
        return error_memory(chunk->error);
    }
    str header = buf_str(&scratch->header);
    TRY(parquet_put(chunk->writer, header, chunk->error));
    TRY(parquet_put(chunk->writer, packed, chunk->error));
    *out_bytes = (i64)(header.size + packed.size);
    chunk->meta->compressed_bytes += *out_bytes;
    chunk->meta->uncompressed_bytes += (i64)(header.size + scratch->body.size);
    return OK;
}

MUST_USE static err page_write_dictionary(struct chunk *chunk)
{
    struct scratch *scratch = &chunk->writer->scratch;
    buf_truncate(&scratch->body, 0);
    buf_append(&scratch->body, chunk->choice.dictionary.entries);
    str packed = {0};
    TRY(page_pack(chunk, &packed));
    buf_truncate(&scratch->header, 0);
    struct thrift thrift = {.out = &scratch->header};
    header_begin(&thrift, PAGE_DICTIONARY, scratch->body.size, packed);
    header_put_dictionary(&thrift, chunk);
    thrift_end(&thrift);
    i64 bytes = 0;
    return page_put(chunk, packed, &bytes);
}

MUST_USE static err page_write_data(struct chunk *chunk, struct page *page)
{
    struct scratch *scratch = &chunk->writer->scratch;
    i64 slots = page->slot_to - page->slot_from;
    buf_truncate(&scratch->body, 0);
    page_put_body(chunk, page, &scratch->body);
    str packed = {0};
    TRY(page_pack(chunk, &packed));
    if (slots > INT32_MAX) {
        return error_set(chunk->error, LIMIT, ERROR_OVERLOADED,
                         "one row of column %.*s has too many values",
                         STR_ARG(chunk->leaf->field->name));
    }
    buf_truncate(&scratch->header, 0);
    struct thrift thrift = {.out = &scratch->header};
    header_begin(&thrift, PAGE_DATA, scratch->body.size, packed);
    header_put_data(&thrift, chunk, slots);
    thrift_end(&thrift);
    page->offset = chunk->writer->offset;
    return page_put(chunk, packed, &page->compressed_bytes);
}

/* ---- statistics ---- */

static bool chunk_has_statistics(const struct chunk *chunk)
{
    return leaf_has_bounds(chunk->leaf) && chunk->leaf->width <= CHUNK_STATISTICS_WIDTH_MAX;
}

/* The first values of the dictionary's entries that the page has, each once. */
static i64 page_select(struct chunk *chunk, const struct page *page, u32 stamp)
{
    i64 count = 0;
    for (i64 i = page->value_from; i < page->value_to; i++) {
        u32 entry = chunk->choice.dictionary.indices[i];
        if (chunk->stamps[entry] != stamp) {
            chunk->stamps[entry] = stamp;
            chunk->selection[count++] = chunk->choice.dictionary.first[entry];
        }
    }
    return count;
}

MUST_USE static err page_keep_bounds(struct chunk *chunk, struct page *page)
{
    struct bounds bounds = {0};
    chunk->meta->page_count++;
    if (chunk->choice.has_dictionary) {
        i64 count = page_select(chunk, page, (u32)chunk->meta->page_count);
        bounds = bounds_of(chunk->leaf, &chunk->values, chunk->selection, 0, count);
    } else {
        bounds = bounds_of(chunk->leaf, &chunk->values, NULL, page->value_from, page->value_to);
    }
    bounds_widen(chunk->leaf, &chunk->bounds, bounds);
    if (chunk_has_statistics(chunk) &&
        !bounds_keep(chunk->leaf, bounds, PARQUET_BOUND_UNITS, chunk->writer->arena, &page->kept)) {
        return error_memory(chunk->error);
    }
    return OK;
}

MUST_USE static err chunk_keep_bounds(struct chunk *chunk)
{
    struct chunk_meta *meta = chunk->meta;
    meta->value_count = chunk->levels.count;
    meta->null_count = chunk->levels.count - chunk->values.count;
    meta->nan_count = statistics_count_nans(&chunk->values);
    struct bounds told = {0};
    if (chunk->options->metrics == PARQUET_METRICS_BOUNDS) {
        told = chunk->bounds;
    }
    struct arena *arena = chunk->writer->arena;
    if (!bounds_keep(chunk->leaf, chunk->bounds, PARQUET_BOUND_UNITS, arena, &meta->kept) ||
        !bounds_keep(chunk->leaf, told, chunk->options->bound_units_max, arena, &meta->manifest)) {
        return error_memory(chunk->error);
    }
    return OK;
}

/* ---- bloom filter ---- */

/* Not of booleans, which have two values, and not of bytes: DuckDB up to 1.5.5 looks a BLOB up by
 * its printed form and takes whole row groups for empty of what they hold (duckdb#23829). */
static bool chunk_takes_bloom(const struct chunk *chunk)
{
    enum type_kind kind = chunk->leaf->field->type.kind;
    return chunk->options->bloom && chunk->values.count > 0 && kind != TYPE_BOOLEAN &&
           kind != TYPE_BINARY && kind != TYPE_FIXED;
}

MUST_USE static err chunk_bloom(struct chunk *chunk)
{
    if (!chunk_takes_bloom(chunk)) {
        return OK;
    }
    buf *out = &chunk->writer->blooms;
    i64 start = (i64)out->size;
    if (chunk->choice.has_dictionary) {
        bloom_put(out, &chunk->values, chunk->choice.dictionary.first,
                  chunk->choice.dictionary.count, chunk->options->bloom_fpp,
                  chunk->writer->options.bloom_bytes_max);
    } else {
        bloom_put(out, &chunk->values, NULL, chunk->values.count, chunk->options->bloom_fpp,
                  chunk->writer->options.bloom_bytes_max);
    }
    chunk->meta->bloom = (struct index_place){start, (i64)out->size - start};
    return buf_ok(out) ? OK : error_memory(chunk->error);
}

/* ---- page indexes ---- */

/* A column index is possible only when every page with values has both bounds. */
static bool pages_have_bounds(const struct page *pages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct bounds *bounds = &pages[i].kept.bounds;
        bool has_values = pages[i].value_to > pages[i].value_from;
        if (has_values && (bounds->lower.data == NULL || bounds->upper.data == NULL)) {
            return false;
        }
    }
    return true;
}

static void column_index_put_bounds(struct thrift *thrift, const struct chunk *chunk, i32 id,
                                    const struct page *pages, size_t count)
{
    enum { ID_MIN_VALUES = 2 };
    thrift_list(thrift, id, THRIFT_BINARY, count);
    for (size_t i = 0; i < count; i++) {
        struct bounds bounds = bounds_for_parquet(chunk->leaf, pages[i].kept.bounds);
        thrift_element_binary(thrift, id == ID_MIN_VALUES ? bounds.lower : bounds.upper);
    }
}

static void column_index_put(struct thrift *thrift, const struct chunk *chunk,
                             const struct page *pages, size_t count)
{
    thrift_begin(thrift);
    thrift_list(thrift, 1, THRIFT_TRUE, count);
    for (size_t i = 0; i < count; i++) {
        thrift_element_boolean(thrift, pages[i].value_from == pages[i].value_to);
    }
    column_index_put_bounds(thrift, chunk, 2, pages, count);
    column_index_put_bounds(thrift, chunk, 3, pages, count);
    thrift_i32(thrift, 4, BOUNDARY_UNORDERED);
    thrift_list(thrift, 5, THRIFT_I64, count);
    for (size_t i = 0; i < count; i++) {
        i64 slots = pages[i].slot_to - pages[i].slot_from;
        thrift_element_integer(thrift, slots - (pages[i].value_to - pages[i].value_from));
    }
    thrift_end(thrift);
}

static void offset_index_put(struct thrift *thrift, const struct page *pages, size_t count)
{
    thrift_begin(thrift);
    thrift_list(thrift, 1, THRIFT_STRUCT, count);
    for (size_t i = 0; i < count; i++) {
        thrift_begin(thrift);
        thrift_i64(thrift, 1, pages[i].offset);
        thrift_i32(thrift, 2, (i32)pages[i].compressed_bytes);
        thrift_i64(thrift, 3, pages[i].row_from);
        thrift_end(thrift);
    }
    thrift_end(thrift);
}

MUST_USE static err chunk_index(struct chunk *chunk)
{
    struct parquet_writer *writer = chunk->writer;
    const buf *buffer = &writer->scratch.pages;
    const void *data = buffer->data;
    const struct page *pages = data;
    size_t count = buffer->size / sizeof(struct page);

    buf *out = &writer->offset_indexes;
    i64 start = (i64)out->size;
    offset_index_put(&(struct thrift){.out = out}, pages, count);
    chunk->meta->offset_index = (struct index_place){start, (i64)out->size - start};
    if (chunk_has_statistics(chunk) && pages_have_bounds(pages, count)) {
        out = &writer->column_indexes;
        start = (i64)out->size;
        column_index_put(&(struct thrift){.out = out}, chunk, pages, count);
        chunk->meta->column_index = (struct index_place){start, (i64)out->size - start};
    }
    bool ok = buf_ok(&writer->offset_indexes) && buf_ok(&writer->column_indexes);
    return ok ? OK : error_memory(chunk->error);
}

/* ---- the chunk ---- */

static const struct column *leaf_column(const struct leaf *leaf, const struct column *columns)
{
    const struct column *column = &columns[leaf->path[0]];
    for (size_t i = 1; i < leaf->depth; i++) {
        column = &column->children[leaf->path[i]];
    }
    return column;
}

MUST_USE static err chunk_prepare(struct chunk *chunk, const struct column *columns)
{
    struct arena *arena = chunk->writer->arena;
    struct scratch *scratch = &chunk->writer->scratch;
    const struct column *column = leaf_column(chunk->leaf, columns);
    if (!levels_build(chunk->leaf, columns, arena, &scratch->levels, &chunk->levels) ||
        !values_build(chunk->leaf, column, arena, &scratch->values, &chunk->values)) {
        return error_memory(chunk->error);
    }
    TRY(choice_make(&chunk->values, chunk->writer->options.dictionary_bytes_max, chunk->compressor,
                    arena, &scratch->choice, &chunk->choice, chunk->error));
    if (chunk->leaf->repetition_max > 0) {
        /* The sample knows nothing of levels, which always compress. */
        chunk->choice.compressed = chunk->compressor->codec != COMPRESS_NONE;
    }
    if (chunk->choice.has_dictionary) {
        i64 count = chunk->choice.dictionary.count;
        chunk->stamps = room_take(&scratch->stamps, arena, count, sizeof(u32));
        chunk->selection = room_take(&scratch->selection, arena, count, sizeof(u32));
        if (chunk->stamps == NULL || chunk->selection == NULL) {
            return error_memory(chunk->error);
        }
        memset(chunk->stamps, 0, (size_t)count * sizeof(u32));
    }
    return OK;
}

MUST_USE static err chunk_write_pages(struct chunk *chunk)
{
    buf *pages = &chunk->writer->scratch.pages;
    buf_truncate(pages, 0);
    struct page page = {0};
    i64 row = 0;
    while (page.slot_to < chunk->levels.count) {
        page.row_from = row;
        row += page_next(chunk, &page);
        page.kept = (struct kept_bounds){0};
        TRY(page_keep_bounds(chunk, &page));
        TRY(page_write_data(chunk, &page));
        buf_append_bytes(pages, &page, sizeof(page));
    }
    assert(page.value_to == chunk->values.count);
    return buf_ok(pages) ? OK : error_memory(chunk->error);
}

err chunk_write(struct parquet_writer *writer, size_t leaf_index, const struct column *columns,
                struct compressor *compressor, struct chunk_meta *out_meta, struct error *error)
{
    struct chunk chunk = {
        .writer = writer,
        .leaf = &writer->leaves[leaf_index],
        .options = &writer->columns[leaf_index],
        .compressor = compressor,
        .meta = out_meta,
        .error = error,
    };
    *out_meta = (struct chunk_meta){.start = writer->offset};
    TRY(chunk_prepare(&chunk, columns));
    out_meta->has_dictionary = chunk.choice.has_dictionary;
    out_meta->codec = chunk.choice.compressed ? compressor->codec : COMPRESS_NONE;
    if (chunk.choice.has_dictionary) {
        TRY(page_write_dictionary(&chunk));
    }
    out_meta->data_page_at = writer->offset;
    TRY(chunk_write_pages(&chunk));
    TRY(chunk_keep_bounds(&chunk));
    TRY(chunk_bloom(&chunk));
    return chunk_index(&chunk);
}
