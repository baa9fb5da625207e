#include "format/parquet/thrift.h"

#include "base/assert.h"
#include "format/varint.h"

enum { THRIFT_STEP_MAX = 15, THRIFT_SHORT_LIST_MAX = 14 };

static void put_binary(buf *out, str value)
{
    varint_put(out, value.size);
    buf_append(out, value);
}

static void put_field(struct thrift *thrift, i32 id, enum thrift_type type)
{
    assert(thrift->depth > 0);
    i32 *last_id = &thrift->last_id[thrift->depth - 1];
    i32 step = id - *last_id;
    assert(step > 0);
    if (step <= THRIFT_STEP_MAX) {
        buf_append_byte(thrift->out, (u8)((u32)step << 4 | (u32)type));
    } else {
        buf_append_byte(thrift->out, (u8)type);
        varint_put_zigzag(thrift->out, id);
    }
    *last_id = id;
}

void thrift_begin(struct thrift *thrift)
{
    assert(thrift->depth < THRIFT_DEPTH_MAX);
    thrift->last_id[thrift->depth++] = 0;
}

void thrift_end(struct thrift *thrift)
{
    assert(thrift->depth > 0);
    thrift->depth--;
    buf_append_byte(thrift->out, 0);
}

void thrift_boolean(struct thrift *thrift, i32 id, bool value)
{
    put_field(thrift, id, value ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_i8(struct thrift *thrift, i32 id, i8 value)
{
    put_field(thrift, id, THRIFT_I8);
    buf_append_byte(thrift->out, (u8)value);
}

void thrift_i16(struct thrift *thrift, i32 id, i16 value)
{
    put_field(thrift, id, THRIFT_I16);
    varint_put_zigzag(thrift->out, value);
}

void thrift_i32(struct thrift *thrift, i32 id, i32 value)
{
    put_field(thrift, id, THRIFT_I32);
    varint_put_zigzag(thrift->out, value);
}

void thrift_i64(struct thrift *thrift, i32 id, i64 value)
{
    put_field(thrift, id, THRIFT_I64);
    varint_put_zigzag(thrift->out, value);
}

void thrift_binary(struct thrift *thrift, i32 id, str value)
{
    put_field(thrift, id, THRIFT_BINARY);
    put_binary(thrift->out, value);
}

void thrift_struct(struct thrift *thrift, i32 id)
{
    put_field(thrift, id, THRIFT_STRUCT);
    thrift_begin(thrift);
}

void thrift_empty(struct thrift *thrift, i32 id)
{
    thrift_struct(thrift, id);
    thrift_end(thrift);
}

void thrift_list(struct thrift *thrift, i32 id, enum thrift_type element, size_t count)
{
    put_field(thrift, id, THRIFT_LIST);
    if (count <= THRIFT_SHORT_LIST_MAX) {
        buf_append_byte(thrift->out, (u8)(count << 4 | (size_t)element));
        return;
    }
    buf_append_byte(thrift->out, (u8)(0xf0U | (u32)element));
    varint_put(thrift->out, count);
}

void thrift_element_boolean(struct thrift *thrift, bool value)
{
    buf_append_byte(thrift->out, value ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_element_integer(struct thrift *thrift, i64 value)
{
    varint_put_zigzag(thrift->out, value);
}

void thrift_element_binary(struct thrift *thrift, str value)
{
    put_binary(thrift->out, value);
}
