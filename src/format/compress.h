/* compress: whole blocks through zlib, zstd and snappy.
 *
 * A compressor keeps its library context from block to block (its memory is the library's, not an
 * arena's) and is closed by its owner, one thread at a time. Decompressing never gives more than
 * the size asked for, whatever the block claims of itself: a block that wants more, or is not
 * whole, is CORRUPT. Fails with LIMIT when the arena or buffer is full. */
#ifndef LHBOX_FORMAT_COMPRESS_H
#define LHBOX_FORMAT_COMPRESS_H

#include "base/buf.h"
#include "base/error.h"

enum compress_codec {
    COMPRESS_NONE,
    COMPRESS_DEFLATE, /* raw, RFC 1951 */
    COMPRESS_GZIP,    /* RFC 1952 */
    COMPRESS_SNAPPY,  /* raw block, no checksum */
    COMPRESS_ZSTD,
};

/* How zstd looks for what repeats. The other codecs know one way only. */
enum compress_search {
    COMPRESS_SEARCH,         /* as its level does */
    COMPRESS_SEARCH_NEAR,    /* in fewer places, which a processor has at hand */
    COMPRESS_SEARCH_NUMBERS, /* the same, for short pieces at every other byte: of 64-bit numbers */
    COMPRESS_SEARCH_NONE,    /* not at all: the bytes are only coded, which takes half the time */
};

struct compressor {
    enum compress_codec codec;
    i32 level;
    void *context;               /* zstd only */
    enum compress_search search; /* what the context is set to */
};

/* Level: of deflate, gzip and zstd. */
MUST_USE err compressor_open(enum compress_codec codec, i32 level,
                             struct compressor *out_compressor, struct error *error);
void compressor_close(struct compressor *compressor); /* a zeroed one is allowed */
#define AUTO_COMPRESSOR __attribute__((cleanup(compressor_close)))

/* Appends the compressed form of `bytes` to `out`. */
MUST_USE err compress_append(struct compressor *compressor, buf *out, str bytes,
                             struct error *error);
/* The same, with a search of zstd's fastest level other than its own. */
MUST_USE err compress_append_searched(struct compressor *compressor, enum compress_search search,
                                      buf *out, str bytes, struct error *error);
/* The result is in the arena; with COMPRESS_NONE it is `bytes` itself. */
MUST_USE err compress_expand(struct arena *arena, enum compress_codec codec, str bytes,
                             size_t size_max, str *out_bytes, struct error *error);

#endif
