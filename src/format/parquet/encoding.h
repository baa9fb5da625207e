/* encoding: what a chunk's data pages are written in, dictionaries aside (dictionary.h).
 *
 * Appends to a buffer; whether it had room is asked once at the end (buf_ok). Spec: Parquet
 * Encodings.md. Private to parquet. */
#ifndef LHBOX_FORMAT_PARQUET_ENCODING_H
#define LHBOX_FORMAT_PARQUET_ENCODING_H

#include "format/parquet/encode.h"

/* The numbers of parquet.thrift's Encoding. */
enum page_encoding {
    ENCODING_PLAIN = 0,
    ENCODING_RLE = 3,
    ENCODING_DELTA_BINARY_PACKED = 5,
    ENCODING_RLE_DICTIONARY = 8,
    ENCODING_BYTE_STREAM_SPLIT = 9,
};

/* The one that was made for such values; PLAIN for those that have none. */
enum page_encoding encoding_compact(enum leaf_physical physical);
/* The values [from, to) in PLAIN or the one for such values. */
void encoding_put(buf *out, enum page_encoding encoding, const struct values *values, i64 from,
                  i64 to);

#endif
