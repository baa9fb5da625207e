/* bloom: a split block bloom filter over a column chunk's values, with its header.
 *
 * Spec: Apache Parquet format, BloomFilter.md: blocks of 256 bits, xxHash64 with seed 0 of each
 * value in PLAIN, without the length before byte arrays. Both zeros are in when one is, as engines
 * take them for equal. Private to parquet. */
#ifndef LHBOX_FORMAT_PARQUET_BLOOM_H
#define LHBOX_FORMAT_PARQUET_BLOOM_H

#include "format/parquet/encode.h"

/* Appends the filter of `count` values (those at `selection`, all when it is NULL), as large as
 * `fpp` asks for so many values and `bytes_max` allows. */
void bloom_put(buf *out, const struct values *values, const u32 *selection, i64 count, double fpp,
               i64 bytes_max);

#endif
