/* thrift: the writing half of Thrift's compact protocol, as far as Parquet's metadata needs it.
 *
 * Spec: Apache Thrift, thrift-compact-protocol.md. Appends to a buffer; whether it had room is
 * asked once at the end (buf_ok). Fields are written in ascending order of their ids. Private to
 * parquet. */
#ifndef LHBOX_FORMAT_PARQUET_THRIFT_H
#define LHBOX_FORMAT_PARQUET_THRIFT_H

#include "base/buf.h"

enum { THRIFT_DEPTH_MAX = 12 };

enum thrift_type {
    THRIFT_TRUE = 1, /* as a list's element type: boolean */
    THRIFT_FALSE = 2,
    THRIFT_I8 = 3,
    THRIFT_I16 = 4,
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_BINARY = 8,
    THRIFT_LIST = 9,
    THRIFT_STRUCT = 12,
};

struct thrift {
    buf *out;
    i32 last_id[THRIFT_DEPTH_MAX]; /* ids are written as the step from the one before */
    i32 depth;
};

/* The outermost struct, or one that is an element of a list, is begun by thrift_begin; one that is
 * a field by thrift_struct. Both are ended by thrift_end. */
void thrift_begin(struct thrift *thrift);
void thrift_end(struct thrift *thrift);

void thrift_boolean(struct thrift *thrift, i32 id, bool value);
void thrift_i8(struct thrift *thrift, i32 id, i8 value);
void thrift_i16(struct thrift *thrift, i32 id, i16 value);
void thrift_i32(struct thrift *thrift, i32 id, i32 value);
void thrift_i64(struct thrift *thrift, i32 id, i64 value);
void thrift_binary(struct thrift *thrift, i32 id, str value);
void thrift_struct(struct thrift *thrift, i32 id);
/* A struct without fields: what most members of Parquet's unions are. */
void thrift_empty(struct thrift *thrift, i32 id);
/* `count` elements follow, by thrift_begin or thrift_element_…. */
void thrift_list(struct thrift *thrift, i32 id, enum thrift_type element, size_t count);
void thrift_element_boolean(struct thrift *thrift, bool value);
void thrift_element_integer(struct thrift *thrift, i64 value);
void thrift_element_binary(struct thrift *thrift, str value);

#endif
