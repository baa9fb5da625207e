#include "base/assert.h"
#include "format/crc.h"
#include "format/parquet/hybrid.h"
#include "format/parquet/thrift.h"
#include "format/parquet/writer.h"

enum {
    PAGE_LENGTH_SIZE = 4,
    SELECTED_REPEATS_MIN = 4,
    CODED_PERCENT_MAX = 117, /* of a page's bytes with a search: then the others have none */

    /* Numbers of parquet.thrift. */
    PAGE_DATA = 0,
    PAGE_DICTIONARY = 2,
};

struct chunk {
    const struct parquet_writer *writer;
    struct encoder *encoder;
    const struct leaf *leaf;
    const struct parquet_column_options *options;
    struct levels levels;
    struct values values;
    struct choice choice;
    u32 *stamps; /* per entry: the last page that has it, from 1 */
    u32 *selection;
    struct bounds bounds;
    i64 size; /* so far */
    struct chunk_done *done;
    struct chunk_meta *meta; /* its */
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
        encoding_put(body, chunk->choice.encoding, &chunk->values, page->value_from,
                     page->value_to);
    }
}

/* What the two kinds of pages have in common: type, sizes and checksum. */
static void header_begin(struct thrift *thrift, i32 type, size_t size, str packed)
{
    thrift_begin(thrift);
    thrift_i32(thrift, 1, type);
    thrift_i32(thrift, 2, (i32)size);
    thrift_i32(thrift, 3, (i32)packed.size);
    thrift_i32(thrift, 4, (i32)crc_of(packed));
}

static void header_put_data(struct thrift *thrift, const struct chunk *chunk, i64 slots)
{
    thrift_struct(thrift, 5);
    thrift_i32(thrift, 1, (i32)slots);
    thrift_i32(thrift, 2, (i32)chunk->choice.encoding);
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

/* What is tried is tried with the first page: the others are made in the better way. */
MUST_USE static err page_compress(struct chunk *chunk, str bytes, str *out_packed)
{
    struct compressor *compressor = &chunk->encoder->compressor;
    struct choice *choice = &chunk->choice;
    buf *packed = &chunk->encoder->packed;
    buf_truncate(packed, 0);
    TRY(compress_append_searched(compressor, choice->search, packed, bytes, chunk->error));
    size_t searched = packed->size;
    *out_packed = buf_str(packed);
    if (!choice->try_coding) {
        return OK;
    }
    choice->try_coding = false;
    TRY(compress_append_searched(compressor, COMPRESS_SEARCH_NONE, packed, bytes, chunk->error));
    *out_packed = str_slice(buf_str(packed), 0, searched);
    if ((packed->size - searched) / CODED_PERCENT_MAX <= searched / 100) {
        choice->search = COMPRESS_SEARCH_NONE;
        *out_packed = str_slice(buf_str(packed), searched, packed->size);
    }
    return OK;
}

/* Compresses the encoder's body. */
MUST_USE static err page_pack(struct chunk *chunk, str *out_packed)
{
    struct encoder *encoder = chunk->encoder;
    if (!buf_ok(&encoder->body)) {
        return error_memory(chunk->error);
    }
    if (encoder->body.size > INT32_MAX / 2) {
        return error_set(chunk->error, LIMIT, ERROR_OVERLOADED,
                         "one row of column %.*s is too large for a Parquet page",
                         STR_ARG(chunk->leaf->field->name));
    }
    str packed = buf_str(&encoder->body);
    if (chunk->choice.compressed) {
        TRY(page_compress(chunk, packed, &packed));
    }
    *out_packed = packed;
    return OK;
}

/* Keeps the page whose body and header are ready. */
MUST_USE static err page_keep(struct chunk *chunk, str packed, str *out_bytes)
{
    struct encoder *encoder = chunk->encoder;
    if (!buf_ok(&encoder->header)) {
        return error_memory(chunk->error);
    }
    size_t header = encoder->header.size;
    size_t size = header + packed.size;
    char *bytes = arena_grow(encoder->output, NULL, 0, size);
    if (bytes == NULL) {
        return error_memory(chunk->error);
    }
    memcpy(bytes, encoder->header.data, header);
    if (packed.size > 0) {
        memcpy(bytes + header, packed.data, packed.size);
    }
    chunk->size += (i64)size;
    chunk->meta->compressed_bytes += (i64)size;
    chunk->meta->uncompressed_bytes += (i64)(header + encoder->body.size);
    *out_bytes = (str){bytes, size};
    return OK;
}

MUST_USE static err page_encode_dictionary(struct chunk *chunk)
{
    struct encoder *encoder = chunk->encoder;
    buf_truncate(&encoder->body, 0);
    buf_append(&encoder->body, chunk->choice.dictionary.entries);
    str packed = {0};
    TRY(page_pack(chunk, &packed));
    buf_truncate(&encoder->header, 0);
    struct thrift thrift = {.out = &encoder->header};
    header_begin(&thrift, PAGE_DICTIONARY, encoder->body.size, packed);
    header_put_dictionary(&thrift, chunk);
    thrift_end(&thrift);
    return page_keep(chunk, packed, &chunk->done->dictionary_page);
}

MUST_USE static err page_encode_data(struct chunk *chunk, struct page *page)
{
    struct encoder *encoder = chunk->encoder;
    i64 slots = page->slot_to - page->slot_from;
    buf_truncate(&encoder->body, 0);
    page_put_body(chunk, page, &encoder->body);
    str packed = {0};
    TRY(page_pack(chunk, &packed));
    if (slots > INT32_MAX) {
        return error_set(chunk->error, LIMIT, ERROR_OVERLOADED,
                         "one row of column %.*s has too many values",
                         STR_ARG(chunk->leaf->field->name));
    }
    buf_truncate(&encoder->header, 0);
    struct thrift thrift = {.out = &encoder->header};
    header_begin(&thrift, PAGE_DATA, encoder->body.size, packed);
    header_put_data(&thrift, chunk, slots);
    thrift_end(&thrift);
    page->offset = chunk->size;
    return page_keep(chunk, packed, &page->bytes);
}

/* ---- statistics ---- */

bool chunk_has_statistics(const struct leaf *leaf)
{
    return leaf_has_bounds(leaf) && leaf->width <= CHUNK_STATISTICS_WIDTH_MAX;
}

/* The first values of the dictionary's entries that the page has, each once. */
static i64 page_select(struct chunk *chunk, const struct page *page, u32 stamp)
{
    const struct dictionary *dictionary = &chunk->choice.dictionary;
    for (i64 i = page->value_from; i < page->value_to; i++) {
        chunk->stamps[dictionary->indices[i]] = stamp;
    }
    i64 count = 0;
    for (u32 entry = 0; entry < dictionary->count; entry++) {
        chunk->selection[count] = dictionary->first[entry];
        count += chunk->stamps[entry] == stamp;
    }
    return count;
}

/* Numbers are looked at faster than they are selected, and so are values that seldom repeat. */
static bool page_pays_selecting(const struct chunk *chunk, const struct page *page)
{
    return chunk->choice.has_dictionary && !leaf_is_number(chunk->leaf) &&
           (i64)chunk->choice.dictionary.count <
               (page->value_to - page->value_from) / SELECTED_REPEATS_MIN;
}

MUST_USE static err page_keep_bounds(struct chunk *chunk, struct page *page)
{
    const u32 *selection = NULL;
    i64 from = page->value_from;
    i64 to = page->value_to;
    chunk->meta->page_count++;
    if (page_pays_selecting(chunk, page)) {
        to = page_select(chunk, page, (u32)chunk->meta->page_count);
        from = 0;
        selection = chunk->selection;
    }
    struct bounds bounds = bounds_of(chunk->leaf, &chunk->values, selection, from, to,
                                     &chunk->meta->nan_count);
    bounds_widen(chunk->leaf, &chunk->bounds, bounds);
    if (chunk_has_statistics(chunk->leaf) && !bounds_keep(chunk->leaf, bounds, PARQUET_BOUND_UNITS,
                                                          chunk->encoder->output, &page->kept)) {
        return error_memory(chunk->error);
    }
    return OK;
}

MUST_USE static err chunk_keep_bounds(struct chunk *chunk)
{
    struct chunk_meta *meta = chunk->meta;
    meta->value_count = chunk->levels.count;
    meta->null_count = chunk->levels.count - chunk->values.count;
    struct bounds told = {0};
    if (chunk->options->metrics == PARQUET_METRICS_BOUNDS) {
        told = chunk->bounds;
    }
    struct arena *arena = chunk->encoder->output;
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
    buf *out = &chunk->done->bloom;
    *out = buf_create(chunk->encoder->output, 0, INT32_MAX);
    bool selected = chunk->choice.has_dictionary;
    bloom_put(out, &chunk->values, selected ? chunk->choice.dictionary.first : NULL,
              selected ? chunk->choice.dictionary.count : chunk->values.count,
              chunk->options->bloom_fpp, chunk->writer->options.bloom_bytes_max);
    return buf_ok(out) ? OK : error_memory(chunk->error);
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
    struct encoder *encoder = chunk->encoder;
    struct arena *arena = encoder->arena;
    const struct column *column = leaf_column(chunk->leaf, columns);
    if (!levels_build(chunk->leaf, columns, arena, &encoder->levels, &chunk->levels) ||
        !values_build(chunk->leaf, column, arena, &encoder->values, &chunk->values)) {
        return error_memory(chunk->error);
    }
    TRY(choice_make(&chunk->values, &chunk->writer->options, &encoder->compressor, arena,
                    &encoder->choice, &chunk->choice, chunk->error));
    if (chunk->leaf->repetition_max > 0) {
        /* The sample knows nothing of levels, which always compress. */
        chunk->choice.compressed = chunk->encoder->compressor.codec != COMPRESS_NONE;
    }
    if (chunk->choice.has_dictionary) {
        i64 count = chunk->choice.dictionary.count;
        chunk->stamps = room_take(&encoder->stamps, arena, count, sizeof(u32));
        chunk->selection = room_take(&encoder->selection, arena, count, sizeof(u32));
        if (chunk->stamps == NULL || chunk->selection == NULL) {
            return error_memory(chunk->error);
        }
        memset(chunk->stamps, 0, (size_t)count * sizeof(u32));
    }
    return OK;
}

MUST_USE static err chunk_encode_pages(struct chunk *chunk)
{
    buf *pages = &chunk->done->pages;
    *pages = buf_create(chunk->encoder->output, 0, INT32_MAX);
    struct page page = {0};
    i64 row = 0;
    while (page.slot_to < chunk->levels.count) {
        page.row_from = row;
        row += page_next(chunk, &page);
        page.kept = (struct kept_bounds){0};
        TRY(page_keep_bounds(chunk, &page));
        TRY(page_encode_data(chunk, &page));
        buf_append_bytes(pages, &page, sizeof(page));
    }
    assert(page.value_to == chunk->values.count);
    return buf_ok(pages) ? OK : error_memory(chunk->error);
}

void encoder_init(struct encoder *encoder, struct arena *arena)
{
    *encoder = (struct encoder){
        .arena = arena,
        .body = buf_create(arena, 0, INT32_MAX),
        .packed = buf_create(arena, 0, INT32_MAX),
        .header = buf_create(arena, 0, INT32_MAX),
    };
}

err chunk_encode(const struct parquet_writer *writer, struct encoder *encoder, size_t leaf_index,
                 const struct column *columns, struct chunk_done *out_done)
{
    *out_done = (struct chunk_done){.encoder = encoder};
    struct chunk chunk = {
        .writer = writer,
        .encoder = encoder,
        .leaf = &writer->leaves[leaf_index],
        .options = &writer->columns[leaf_index],
        .done = out_done,
        .meta = &out_done->meta,
        .error = &out_done->error,
    };
    TRY(chunk_prepare(&chunk, columns));
    chunk.meta->has_dictionary = chunk.choice.has_dictionary;
    chunk.meta->encoding = chunk.choice.encoding;
    chunk.meta->codec = chunk.choice.compressed ? encoder->compressor.codec : COMPRESS_NONE;
    if (chunk.choice.has_dictionary) {
        TRY(page_encode_dictionary(&chunk));
    }
    chunk.meta->data_page_at = chunk.size;
    TRY(chunk_encode_pages(&chunk));
    TRY(chunk_keep_bounds(&chunk));
    return chunk_bloom(&chunk);
}
