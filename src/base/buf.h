/* buf: a growable byte buffer in an arena with a maximum given at creation.
 *
 * An append past the maximum, or past the arena's limit, sets `failed` and appends nothing; once
 * failed a buffer stays failed, so that a run of appends needs one check at its end
 * (buf_ok). The bytes live in the arena: growth leaves the old copy behind until the arena is
 * reset, so give a good first capacity to large ones. */
#ifndef LHBOX_BASE_BUF_H
#define LHBOX_BASE_BUF_H

#include "base/arena.h"
#include "base/str.h"

typedef struct buf {
    struct arena *arena;
    char *data;
    size_t size;
    size_t capacity;
    size_t size_max;
    bool failed;
} buf;

buf buf_create(struct arena *arena, size_t capacity, size_t size_max);
static inline bool buf_ok(const buf *buffer)
{
    return !buffer->failed;
}
static inline str buf_str(const buf *buffer)
{
    return (str){buffer->data, buffer->size};
}
void buf_append(buf *buffer, str text);
void buf_append_bytes(buf *buffer, const void *bytes, size_t size);
void buf_append_byte(buf *buffer, u8 byte);
void buf_append_i64(buf *buffer, i64 value); /* decimal text */
void buf_append_format(buf *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Room for `size` more bytes; NULL (and failed) past the maximum. Fill it and add to size by
 * buf_commit. */
char *buf_reserve(buf *buffer, size_t size);
void buf_commit(buf *buffer, size_t size);
void buf_truncate(buf *buffer, size_t size);

/* JSON string token: quotes around, `"` `\` and bytes below 0x20 escaped (\b \f \n \r \t, else
 * \u00xx in lower case), all other bytes as they are. `text` must be UTF-8. */
void buf_append_json_string(buf *buffer, str text);

#endif
