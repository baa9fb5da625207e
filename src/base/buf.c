#include "base/buf.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { BUF_FIRST_CAPACITY = 64 };

/* Makes the capacity `wanted`, with one byte more than that for the NUL of vsnprintf. */
static bool buf_resize(buf *buffer, size_t wanted)
{
    size_t old_size = buffer->data != NULL ? buffer->capacity + 1 : 0;
    size_t new_size = 0;
    char *data = NULL;
    if (num_add_size(wanted, 1, &new_size)) {
        data = arena_grow(buffer->arena, buffer->data, old_size, new_size);
    }
    if (data == NULL) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->capacity = wanted;
    return true;
}

buf buf_create(struct arena *arena, size_t capacity, size_t size_max)
{
    buf buffer = {.arena = arena, .size_max = size_max};
    if (capacity > 0) {
        buf_resize(&buffer, capacity < size_max ? capacity : size_max);
    }
    return buffer;
}

static __attribute__((noinline)) bool buf_grow(buf *buffer, size_t size)
{
    if (buffer->failed) {
        return false;
    }
    if (buffer->size > buffer->size_max || size > buffer->size_max - buffer->size) {
        buffer->failed = true;
        return false;
    }
    size_t wanted = buffer->size + size;
    size_t doubled = buffer->capacity <= buffer->size_max / 2 ? buffer->capacity * 2
                                                              : buffer->size_max;
    wanted = wanted > doubled ? wanted : doubled;
    if (wanted < BUF_FIRST_CAPACITY && BUF_FIRST_CAPACITY <= buffer->size_max) {
        wanted = BUF_FIRST_CAPACITY;
    }
    return buf_resize(buffer, wanted);
}

/* Room for `size` more bytes, or the buffer has failed. */
static inline bool buf_make_room(buf *buffer, size_t size)
{
    assert(buffer->size <= buffer->capacity);
    bool room = !buffer->failed && buffer->data != NULL && size <= buffer->capacity - buffer->size;
    return room || buf_grow(buffer, size);
}

void buf_append_bytes(buf *buffer, const void *bytes, size_t size)
{
    if (size > 0 && buf_make_room(buffer, size)) {
        memcpy(buffer->data + buffer->size, bytes, size);
        buffer->size += size;
    }
}

void buf_append(buf *buffer, str text)
{
    buf_append_bytes(buffer, text.data, text.size);
}

void buf_append_byte(buf *buffer, u8 byte)
{
    if (buf_make_room(buffer, 1)) {
        buffer->data[buffer->size] = (char)byte;
        buffer->size++;
    }
}

void buf_append_i64(buf *buffer, i64 value)
{
    char text[20];
    size_t at = sizeof(text);
    u64 rest = value < 0 ? 0 - (u64)value : (u64)value;
    do {
        at--;
        text[at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        at--;
        text[at] = '-';
    }
    buf_append_bytes(buffer, text + at, sizeof(text) - at);
}

void buf_append_format(buf *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    /* Most often it fits where the buffer ends. */
    size_t room = buffer->data != NULL && !buffer->failed ? buffer->capacity - buffer->size : 0;
    char *end = room > 0 ? buffer->data + buffer->size : NULL;
    int size = vsnprintf(end, room > 0 ? room + 1 : 0, format, arguments);
    va_end(arguments);
    assert(size >= 0);
    if (room > 0 && (size_t)size <= room) {
        buffer->size += (size_t)size;
    } else if (buf_make_room(buffer, (size_t)size)) {
        int written = vsnprintf(buffer->data + buffer->size, (size_t)size + 1, format, again);
        assert(written == size);
        buffer->size += (size_t)size;
    }
    va_end(again);
}

char *buf_reserve(buf *buffer, size_t size)
{
    return buf_make_room(buffer, size) ? buffer->data + buffer->size : NULL;
}

void buf_commit(buf *buffer, size_t size)
{
    assert(size <= buffer->capacity - buffer->size);
    buffer->size += size;
}

void buf_truncate(buf *buffer, size_t size)
{
    assert(size <= buffer->size);
    buffer->size = size;
}

static void buf_append_json_escape(buf *buffer, unsigned char byte)
{
    static const char short_forms[0x20] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    static const char digits[] = "0123456789abcdef";
    if (byte >= 0x20) {
        buf_append_bytes(buffer, (char[]){'\\', (char)byte}, 2);
    } else if (short_forms[byte] != 0) {
        buf_append_bytes(buffer, (char[]){'\\', short_forms[byte]}, 2);
    } else {
        char form[6] = {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
        buf_append_bytes(buffer, form, sizeof(form));
    }
}

/* Not 0 where one of the 8 bytes is a control, a quote or a backslash. */
static u64 buf_json_special(u64 word)
{
    const u64 ones = 0x0101010101010101ULL;
    const u64 highs = 0x8080808080808080ULL;
    u64 quotes = word ^ ones * '"';
    u64 slashes = word ^ ones * '\\';
    u64 found = (word - ones * 0x20) & ~word;
    found |= (quotes - ones) & ~quotes;
    found |= (slashes - ones) & ~slashes;
    return found & highs;
}

void buf_append_json_string(buf *buffer, str text)
{
    buf_append_byte(buffer, '"');
    size_t start = 0;
    for (size_t i = 0; i < text.size; i++) {
        while (text.size - i >= sizeof(u64) && buf_json_special(num_load_u64(text.data + i)) == 0) {
            i += sizeof(u64);
        }
        if (i == text.size) {
            break;
        }
        unsigned char byte = (unsigned char)text.data[i];
        if (byte >= 0x20 && byte != '"' && byte != '\\') {
            continue;
        }
        buf_append(buffer, str_slice(text, start, i));
        buf_append_json_escape(buffer, byte);
        start = i + 1;
    }
    buf_append(buffer, str_slice(text, start, text.size));
    buf_append_byte(buffer, '"');
}
