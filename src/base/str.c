#include "base/str.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/seam.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

str str_from(const char *c_string)
{
    return (str){c_string, strlen(c_string)};
}

bool str_equal(str a, str b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool str_equal_ignore_case(str a, str b)
{
    if (a.size != b.size) {
        return false;
    }
    for (size_t i = 0; i < a.size; i++) {
        unsigned char one = (unsigned char)a.data[i];
        unsigned char difference = one ^ (unsigned char)b.data[i];
        one |= 0x20;
        if (difference != 0 && (difference != 0x20 || one < 'a' || one > 'z')) {
            return false;
        }
    }
    return true;
}

int str_compare(str a, str b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common > 0 ? memcmp(a.data, b.data, common) : 0;
    if (order != 0) {
        return order < 0 ? -1 : 1;
    }
    return a.size < b.size ? -1 : a.size > b.size;
}

bool str_starts(str text, str prefix)
{
    return text.size >= prefix.size && str_equal((str){text.data, prefix.size}, prefix);
}

bool str_ends(str text, str suffix)
{
    return text.size >= suffix.size &&
           str_equal(str_slice(text, text.size - suffix.size, text.size), suffix);
}

i64 str_find_byte(str text, char byte)
{
    const char *found = text.size > 0 ? memchr(text.data, byte, text.size) : NULL;
    return found != NULL ? found - text.data : -1;
}

i64 str_find_last_byte(str text, char byte)
{
    const char *found = text.size > 0 ? memrchr(text.data, byte, text.size) : NULL;
    return found != NULL ? found - text.data : -1;
}

i64 str_find(str text, str wanted)
{
    if (wanted.size == 0) {
        return 0;
    }
    if (text.size < wanted.size) {
        return -1;
    }
    const char *found = memmem(text.data, text.size, wanted.data, wanted.size);
    return found != NULL ? found - text.data : -1;
}

str str_slice(str text, size_t from, size_t to)
{
    to = to < text.size ? to : text.size;
    from = from < to ? from : to;
    return (str){from > 0 ? text.data + from : text.data, to - from};
}

static bool str_is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

str str_trim(str text)
{
    size_t from = 0;
    size_t to = text.size;
    while (from < to && str_is_blank(text.data[from])) {
        from++;
    }
    while (to > from && str_is_blank(text.data[to - 1])) {
        to--;
    }
    return str_slice(text, from, to);
}

bool str_next(str *rest, char separator, str *out_part)
{
    if (rest->data == NULL) {
        return false;
    }
    i64 at = str_find_byte(*rest, separator);
    if (at < 0) {
        *out_part = *rest;
        *rest = (str){NULL, 0};
        return true;
    }
    *out_part = str_slice(*rest, 0, (size_t)at);
    *rest = (str){rest->data + at + 1, rest->size - (size_t)at - 1};
    return true;
}

bool str_to_i64(str text, i64 *out_value)
{
    bool negative = str_starts(text, STR("-"));
    size_t i = negative ? 1 : 0;
    if (i == text.size) {
        return false;
    }
    i64 value = 0;
    for (; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        /* Downward, for the smallest number has no positive. */
        i64 digit = text.data[i] - '0';
        if (!num_mul_i64(value, 10, &value) || !num_add_i64(value, -digit, &value)) {
            return false;
        }
    }
    if (!negative && value == INT64_MIN) {
        return false;
    }
    *out_value = negative ? value : -value;
    return true;
}

str str_copy(struct arena *arena, str text)
{
    size_t size = 0;
    if (!num_add_size(text.size, 1, &size)) {
        return (str){NULL, 0};
    }
    char *data = arena_grow(arena, NULL, 0, size);
    if (data == NULL) {
        return (str){NULL, 0};
    }
    if (text.size > 0) {
        memcpy(data, text.data, text.size);
    }
    data[text.size] = '\0';
    return (str){data, text.size};
}

str str_format(struct arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    assert(size >= 0);

    str text = {NULL, 0};
    char *data = arena_grow(arena, NULL, 0, (size_t)size + 1);
    if (data != NULL) {
        int written = vsnprintf(data, (size_t)size + 1, format, again);
        assert(written == size);
        text = (str){data, (size_t)size};
    }
    va_end(again);
    return text;
}

static u64 hash_key[2];
static pthread_once_t hash_key_once = PTHREAD_ONCE_INIT;

static void hash_key_draw(void)
{
    seam_random(seam_system(), hash_key, sizeof(hash_key));
}

static u64 rotate_left(u64 value, int bits)
{
    return (value << bits) | (value >> (64 - bits));
}

static void sip_round(u64 v[4])
{
    v[0] += v[1];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[3];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[2] = rotate_left(v[2], 32);
}

static void sip_word(u64 v[4], u64 word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

u64 str_hash(str text)
{
    pthread_once(&hash_key_once, hash_key_draw);
    u64 v[4] = {hash_key[0] ^ 0x736f6d6570736575U, hash_key[1] ^ 0x646f72616e646f6dU,
                hash_key[0] ^ 0x6c7967656e657261U, hash_key[1] ^ 0x7465646279746573U};
    size_t i = 0;
    for (; text.size - i >= 8; i += 8) {
        sip_word(v, num_load_u64(text.data + i));
    }
    u64 last = (u64)text.size << 56;
    for (size_t k = 0; i + k < text.size; k++) {
        last |= (u64)(unsigned char)text.data[i + k] << (8 * k);
    }
    sip_word(v, last);
    v[2] ^= 0xff;
    for (int round = 0; round < 4; round++) {
        sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
