/* varint: integers in as few bytes as they need, as Avro, Thrift and Parquet's encodings have them.
 *
 * Appends to a buffer; whether it had room is asked once at the end (buf_ok). Pure; any thread. */
#ifndef LHBOX_FORMAT_VARINT_H
#define LHBOX_FORMAT_VARINT_H

#include "base/buf.h"

/* Unsigned LEB128: seven bits a byte, the lowest first. */
void varint_put(buf *out, u64 value);
/* The same of 0, -1, 1, -2, … as 0, 1, 2, 3, …. */
void varint_put_zigzag(buf *out, i64 value);

#endif
