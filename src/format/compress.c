#include "format/compress.h"

#include "base/assert.h"

#define ZLIB_CONST
#include <snappy-c.h>
#include <zlib.h>
#define ZSTD_STATIC_LINKING_ONLY /* for the name of a parameter */
#include <zstd.h>

enum {
    DEFLATE_WINDOW_BITS = -15, /* negative: raw */
    GZIP_WINDOW_BITS = 15 + 16,
    DEFLATE_SMALL_BYTES = 8 * KIB,
    DEFLATE_SMALL_MEMORY_LEVEL = 5, /* its tables are cleared for each block */
    DEFLATE_MEMORY_LEVEL = 8,
    SNAPPY_RATIO_MAX = 32, /* the format reaches 22: 64 bytes from a 3-byte copy */
    DECOMPRESS_STEP_MIN = 4 * KIB,
};

/* Of zstd's fastest strategy. */
struct zstd_search {
    int hash_log;  /* of the table's places */
    int match_min; /* bytes */
    int step;      /* bytes from place to place where nothing repeats */
};

static const struct zstd_search zstd_searches[] = {
    [COMPRESS_SEARCH_NEAR] = {12, 7, 1},
    [COMPRESS_SEARCH_NUMBERS] = {13, 4, 2},
    /* So long a step meets next to no match. */
    [COMPRESS_SEARCH_NONE] = {ZSTD_HASHLOG_MIN, 7, ZSTD_TARGETLENGTH_MAX},
};

/* They hold for ZSTD_compress2 alone. A library that does not know one of them compresses worse,
 * and no more than that. */
static void zstd_set_search(struct compressor *compressor, enum compress_search search)
{
    ZSTD_CCtx *context = compressor->context;
    const struct zstd_search *set = &zstd_searches[search];
    if (compressor->search == search) {
        return;
    }
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_strategy, ZSTD_fast);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, set->hash_log);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, set->match_min);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_targetLength, set->step);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_literalCompressionMode, ZSTD_ps_enable);
    compressor->search = search;
}

err compressor_open(enum compress_codec codec, i32 level, struct compressor *out_compressor,
                    struct error *error)
{
    void *context = NULL;
    if (codec == COMPRESS_ZSTD) {
        context = ZSTD_createCCtx();
        if (context == NULL) {
            return error_memory(error);
        }
    }
    *out_compressor = (struct compressor){.codec = codec, .level = level, .context = context};
    return OK;
}

void compressor_close(struct compressor *compressor)
{
    if (compressor->context != NULL) {
        ZSTD_freeCCtx(compressor->context);
        compressor->context = NULL;
    }
}

/* ---- compressing ---- */

static int window_bits(enum compress_codec codec)
{
    return codec == COMPRESS_GZIP ? GZIP_WINDOW_BITS : DEFLATE_WINDOW_BITS;
}

MUST_USE static err deflate_append(const struct compressor *compressor, buf *out, str bytes,
                                   struct error *error)
{
    z_stream stream = {0};
    if (bytes.size > UINT32_MAX) {
        return error_set(error, LIMIT, ERROR_OVERLOADED, "a block of %zu bytes is too large",
                         bytes.size);
    }
    int memory = bytes.size <= DEFLATE_SMALL_BYTES ? DEFLATE_SMALL_MEMORY_LEVEL
                                                   : DEFLATE_MEMORY_LEVEL;
    if (deflateInit2(&stream, compressor->level, Z_DEFLATED, window_bits(compressor->codec), memory,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return error_memory(error);
    }
    size_t bound = deflateBound(&stream, bytes.size);
    char *room = bound <= UINT32_MAX ? buf_reserve(out, bound) : NULL;
    if (room == NULL) {
        deflateEnd(&stream);
        return error_memory(error);
    }
    stream.next_in = (const Bytef *)bytes.data;
    stream.avail_in = (uInt)bytes.size;
    stream.next_out = (Bytef *)room;
    stream.avail_out = (uInt)bound;
    int status = deflate(&stream, Z_FINISH);
    size_t size = stream.total_out;
    deflateEnd(&stream);
    assert(status == Z_STREAM_END);
    buf_commit(out, size);
    return OK;
}

MUST_USE static err snappy_append(buf *out, str bytes, struct error *error)
{
    size_t size = snappy_max_compressed_length(bytes.size);
    char *room = buf_reserve(out, size);
    if (room == NULL) {
        return error_memory(error);
    }
    snappy_status status = snappy_compress(bytes.data, bytes.size, room, &size);
    assert(status == SNAPPY_OK);
    buf_commit(out, size);
    return OK;
}

MUST_USE static err zstd_append(struct compressor *compressor, enum compress_search search,
                                buf *out, str bytes, struct error *error)
{
    size_t bound = ZSTD_compressBound(bytes.size);
    char *room = ZSTD_isError(bound) ? NULL : buf_reserve(out, bound);
    if (room == NULL) {
        return error_memory(error);
    }
    ZSTD_CCtx *context = compressor->context;
    size_t size = 0;
    if (search == COMPRESS_SEARCH) {
        size = ZSTD_compressCCtx(context, room, bound, bytes.data, bytes.size, compressor->level);
    } else {
        zstd_set_search(compressor, search);
        size = ZSTD_compress2(context, room, bound, bytes.data, bytes.size);
    }
    if (ZSTD_isError(size)) {
        /* With the bound as room only memory can be missing. */
        return error_memory(error);
    }
    buf_commit(out, size);
    return OK;
}

err compress_append(struct compressor *compressor, buf *out, str bytes, struct error *error)
{
    switch (compressor->codec) {
    case COMPRESS_NONE:
        buf_append(out, bytes);
        return buf_ok(out) ? OK : error_memory(error);
    case COMPRESS_DEFLATE:
    case COMPRESS_GZIP:
        return deflate_append(compressor, out, bytes, error);
    case COMPRESS_SNAPPY:
        return snappy_append(out, bytes, error);
    case COMPRESS_ZSTD:
        return zstd_append(compressor, COMPRESS_SEARCH, out, bytes, error);
    }
    return INVALID;
}

err compress_append_searched(struct compressor *compressor, enum compress_search search, buf *out,
                             str bytes, struct error *error)
{
    return compressor->codec == COMPRESS_ZSTD ? zstd_append(compressor, search, out, bytes, error)
                                              : compress_append(compressor, out, bytes, error);
}

/* ---- decompressing ---- */

MUST_USE static err decompress_corrupt(struct error *error, const char *codec, const char *why)
{
    return error_set(error, CORRUPT, ERROR_INTERNAL, "a %s block %s", codec, why);
}

/* Room for the next piece of the output: as much again as there is, so that growth is linear in
 * all, and never more than one byte past size_max, which the caller takes as too much. */
MUST_USE static err decompress_room(buf *out, size_t size_max, char **out_room, size_t *out_size,
                                    struct error *error)
{
    assert(out->size <= size_max);
    size_t size = out->size > DECOMPRESS_STEP_MIN ? out->size : DECOMPRESS_STEP_MIN;
    size_t left = size_max - out->size + 1;
    size = size < left ? size : left;
    char *room = buf_reserve(out, size);
    if (room == NULL) {
        return error_memory(error);
    }
    *out_room = room;
    *out_size = size;
    return OK;
}

/* An output buffer that starts at a likely size. */
static buf decompress_buf(struct arena *arena, str bytes, size_t size_max)
{
    size_t likely = bytes.size < size_max / 4 ? bytes.size * 4 : size_max;
    return buf_create(arena, likely, size_max + 1);
}

MUST_USE static err inflate_all(z_stream *stream, buf *out, size_t size_max, struct error *error)
{
    for (;;) {
        char *room = NULL;
        size_t size = 0;
        TRY(decompress_room(out, size_max, &room, &size, error));
        stream->next_out = (Bytef *)room;
        stream->avail_out = size < UINT32_MAX ? (uInt)size : UINT32_MAX;
        uInt room_size = stream->avail_out;
        int status = inflate(stream, Z_NO_FLUSH);
        buf_commit(out, room_size - stream->avail_out);
        if (out->size > size_max) {
            return decompress_corrupt(error, "deflate", "is too large");
        }
        if (status == Z_STREAM_END) {
            /* Some Avro writers leave parts of zlib's own trailer behind the end. */
            return OK;
        }
        if (status == Z_MEM_ERROR) {
            return error_memory(error);
        }
        if (status != Z_OK || (stream->avail_in == 0 && stream->avail_out > 0)) {
            return decompress_corrupt(error, "deflate", "is damaged");
        }
    }
}

MUST_USE static err inflate_block(struct arena *arena, enum compress_codec codec, str bytes,
                                  size_t size_max, str *out_bytes, struct error *error)
{
    if (bytes.size > UINT32_MAX) {
        return decompress_corrupt(error, "deflate", "is too large");
    }
    z_stream stream = {.next_in = (const Bytef *)bytes.data, .avail_in = (uInt)bytes.size};
    if (inflateInit2(&stream, window_bits(codec)) != Z_OK) {
        return error_memory(error);
    }
    buf out = decompress_buf(arena, bytes, size_max);
    err result = inflate_all(&stream, &out, size_max, error);
    inflateEnd(&stream);
    TRY(result);
    if (codec == COMPRESS_GZIP && stream.avail_in > 0) {
        return decompress_corrupt(error, "gzip", "has bytes behind its end");
    }
    *out_bytes = buf_str(&out);
    return OK;
}

MUST_USE static err unsnap_block(struct arena *arena, str bytes, size_t size_max, str *out_bytes,
                                 struct error *error)
{
    size_t size = 0;
    if (snappy_uncompressed_length(bytes.data, bytes.size, &size) != SNAPPY_OK) {
        return decompress_corrupt(error, "snappy", "is damaged");
    }
    if (size > size_max || size / SNAPPY_RATIO_MAX > bytes.size) {
        return decompress_corrupt(error, "snappy", "is too large");
    }
    char *room = arena_alloc(arena, size);
    if (room == NULL) {
        return error_memory(error);
    }
    size_t written = size;
    if (snappy_uncompress(bytes.data, bytes.size, room, &written) != SNAPPY_OK || written != size) {
        return decompress_corrupt(error, "snappy", "is damaged");
    }
    *out_bytes = (str){room, size};
    return OK;
}

MUST_USE static err unzstd_all(ZSTD_DCtx *context, str bytes, buf *out, size_t size_max,
                               struct error *error)
{
    ZSTD_inBuffer input = {.src = bytes.data, .size = bytes.size, .pos = 0};
    for (;;) {
        char *room = NULL;
        size_t size = 0;
        TRY(decompress_room(out, size_max, &room, &size, error));
        ZSTD_outBuffer output = {.dst = room, .size = size, .pos = 0};
        size_t left = ZSTD_decompressStream(context, &output, &input);
        if (ZSTD_isError(left)) {
            return decompress_corrupt(error, "zstd", ZSTD_getErrorName(left));
        }
        buf_commit(out, output.pos);
        if (out->size > size_max) {
            return decompress_corrupt(error, "zstd", "is too large");
        }
        if (left == 0 && input.pos == input.size) {
            return OK;
        }
        if (left != 0 && input.pos == input.size && output.pos < output.size) {
            return decompress_corrupt(error, "zstd", "ends too early");
        }
    }
}

MUST_USE static err unzstd_block(struct arena *arena, str bytes, size_t size_max, str *out_bytes,
                                 struct error *error)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (context == NULL) {
        return error_memory(error);
    }
    buf out = decompress_buf(arena, bytes, size_max);
    err result = unzstd_all(context, bytes, &out, size_max, error);
    ZSTD_freeDCtx(context);
    TRY(result);
    *out_bytes = buf_str(&out);
    return OK;
}

err compress_expand(struct arena *arena, enum compress_codec codec, str bytes, size_t size_max,
                    str *out_bytes, struct error *error)
{
    assert(size_max < SIZE_MAX);
    switch (codec) {
    case COMPRESS_NONE:
        if (bytes.size > size_max) {
            return decompress_corrupt(error, "plain", "is too large");
        }
        *out_bytes = bytes;
        return OK;
    case COMPRESS_DEFLATE:
    case COMPRESS_GZIP:
        return inflate_block(arena, codec, bytes, size_max, out_bytes, error);
    case COMPRESS_SNAPPY:
        return unsnap_block(arena, bytes, size_max, out_bytes, error);
    case COMPRESS_ZSTD:
        return unzstd_block(arena, bytes, size_max, out_bytes, error);
    }
    return INVALID;
}
