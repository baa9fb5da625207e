/* parquet_generator: made-up values of every type, into a column and, as JSON, into the answer of
 * parquet_case. */
#ifndef LHBOX_TESTS_PARQUET_GENERATOR_H
#define LHBOX_TESTS_PARQUET_GENERATOR_H

#include "base/buf.h"
#include "format/column.h"

struct generator {
    struct arena *arena;
    u64 state;
    i32 last_id;
    buf json;
    buf file;
};

_Noreturn void fail(const char *what);
void *must(void *pointer);
void check(bool ok);
u64 next(struct generator *generator);
void comma(struct generator *g, size_t index);
void put_hex(buf *json, const void *bytes, size_t size);
void put_int(struct generator *g, struct column *column, i64 value);
void put_long(struct generator *g, struct column *column, i64 value);
void put_raw(struct generator *g, struct column *column, const void *bytes, size_t size);
void put_bytes(struct generator *g, struct column *column, str bytes);
void put_primitive(struct generator *g, struct column *column, u64 how);
void put_null(struct generator *g, struct column *column);
void put_value(struct generator *g, struct column *column, u64 how);

#endif
