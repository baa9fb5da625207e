#include "base/assert.h"
#include "format/parquet/thrift.h"
#include "format/parquet/writer.h"

enum { BOUNDARY_UNORDERED = 0 }; /* a number of parquet.thrift */

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

static void column_index_put_bounds(struct thrift *thrift, const struct leaf *leaf, i32 id,
                                    const struct page *pages, size_t count)
{
    enum { ID_MIN_VALUES = 2 };
    thrift_list(thrift, id, THRIFT_BINARY, count);
    for (size_t i = 0; i < count; i++) {
        struct bounds bounds = bounds_for_parquet(leaf, pages[i].kept.bounds);
        thrift_element_binary(thrift, id == ID_MIN_VALUES ? bounds.lower : bounds.upper);
    }
}

static void column_index_put(struct thrift *thrift, const struct leaf *leaf,
                             const struct page *pages, size_t count)
{
    thrift_begin(thrift);
    thrift_list(thrift, 1, THRIFT_TRUE, count);
    for (size_t i = 0; i < count; i++) {
        thrift_element_boolean(thrift, pages[i].value_from == pages[i].value_to);
    }
    column_index_put_bounds(thrift, leaf, 2, pages, count);
    column_index_put_bounds(thrift, leaf, 3, pages, count);
    thrift_i32(thrift, 4, BOUNDARY_UNORDERED);
    thrift_list(thrift, 5, THRIFT_I64, count);
    for (size_t i = 0; i < count; i++) {
        i64 slots = pages[i].slot_to - pages[i].slot_from;
        thrift_element_integer(thrift, slots - (pages[i].value_to - pages[i].value_from));
    }
    thrift_end(thrift);
}

static void offset_index_put(struct thrift *thrift, i64 start, const struct page *pages,
                             size_t count)
{
    thrift_begin(thrift);
    thrift_list(thrift, 1, THRIFT_STRUCT, count);
    for (size_t i = 0; i < count; i++) {
        thrift_begin(thrift);
        thrift_i64(thrift, 1, start + pages[i].offset);
        thrift_i32(thrift, 2, (i32)pages[i].bytes.size);
        thrift_i64(thrift, 3, pages[i].row_from);
        thrift_end(thrift);
    }
    thrift_end(thrift);
}

MUST_USE static err put_indexes(struct parquet_writer *writer, const struct leaf *leaf,
                                const struct page *pages, size_t count, struct chunk_meta *meta,
                                struct error *error)
{
    buf *out = &writer->offset_indexes;
    i64 start = (i64)out->size;
    offset_index_put(&(struct thrift){.out = out}, meta->start, pages, count);
    meta->offset_index = (struct index_place){start, (i64)out->size - start};
    if (chunk_has_statistics(leaf) && pages_have_bounds(pages, count)) {
        out = &writer->column_indexes;
        start = (i64)out->size;
        column_index_put(&(struct thrift){.out = out}, leaf, pages, count);
        meta->column_index = (struct index_place){start, (i64)out->size - start};
    }
    bool ok = buf_ok(&writer->offset_indexes) && buf_ok(&writer->column_indexes);
    return ok ? OK : error_memory(error);
}

MUST_USE static err put_bloom(struct parquet_writer *writer, str bloom, struct chunk_meta *meta,
                              struct error *error)
{
    meta->bloom = (struct index_place){(i64)writer->blooms.size, (i64)bloom.size};
    buf_append(&writer->blooms, bloom);
    return buf_ok(&writer->blooms) ? OK : error_memory(error);
}

/* ---- the chunk ---- */

MUST_USE static err keep_str(struct arena *arena, str *text, struct error *error)
{
    if (text->data == NULL) {
        return OK;
    }
    *text = str_copy(arena, *text);
    return text->data == NULL ? error_memory(error) : OK;
}

/* Out of the row group's memory into the writer's. */
MUST_USE static err keep_bounds(struct arena *arena, struct chunk_meta *meta, struct error *error)
{
    TRY(keep_str(arena, &meta->kept.bounds.lower, error));
    TRY(keep_str(arena, &meta->kept.bounds.upper, error));
    TRY(keep_str(arena, &meta->manifest.bounds.lower, error));
    return keep_str(arena, &meta->manifest.bounds.upper, error);
}

err chunk_put(struct parquet_writer *writer, size_t leaf_index, const struct chunk_done *done,
              struct chunk_meta *out_meta, struct error *error)
{
    struct chunk_meta meta = done->meta;
    const void *data = done->pages.data;
    const struct page *pages = data;
    size_t count = done->pages.size / sizeof(struct page);
    assert((i64)count == meta.page_count);
    meta.start = writer->offset;
    meta.data_page_at += meta.start;
    TRY(parquet_put(writer, done->dictionary_page, error));
    for (size_t i = 0; i < count; i++) {
        assert(writer->offset == meta.start + pages[i].offset);
        TRY(parquet_put(writer, pages[i].bytes, error));
    }
    TRY(keep_bounds(writer->arena, &meta, error));
    TRY(put_bloom(writer, buf_str(&done->bloom), &meta, error));
    TRY(put_indexes(writer, &writer->leaves[leaf_index], pages, count, &meta, error));
    *out_meta = meta;
    return OK;
}
