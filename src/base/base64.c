#include "base/base64.h"

#include "base/assert.h"

static const char standard_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static size_t base64_size(size_t bytes)
{
    return bytes / 3 * 4 + (bytes % 3 > 0 ? bytes % 3 + 1 : 0);
}

/* Writes the digits without padding. */
static void base64_put(buf *out, str bytes, const char *alphabet)
{
    assert(bytes.size <= SIZE_MAX / 2);
    size_t size = base64_size(bytes.size);
    char *to = buf_reserve(out, size);
    if (to == NULL) {
        return;
    }
    const u8 *from = (const u8 *)bytes.data;
    size_t whole = bytes.size / 3 * 3;
    for (size_t i = 0; i < whole; i += 3) {
        u32 group = (u32)from[i] << 16 | (u32)from[i + 1] << 8 | from[i + 2];
        *to++ = alphabet[group >> 18];
        *to++ = alphabet[group >> 12 & 63];
        *to++ = alphabet[group >> 6 & 63];
        *to++ = alphabet[group & 63];
    }
    size_t rest = bytes.size - whole;
    if (rest > 0) {
        u32 group = (u32)from[whole] << 16 | (rest > 1 ? (u32)from[whole + 1] << 8 : 0);
        *to++ = alphabet[group >> 18];
        *to++ = alphabet[group >> 12 & 63];
        if (rest > 1) {
            *to++ = alphabet[group >> 6 & 63];
        }
    }
    buf_commit(out, size);
}

void base64_encode(buf *out, str bytes)
{
    base64_put(out, bytes, standard_alphabet);
    for (size_t rest = bytes.size % 3; rest == 1 || rest == 2; rest++) {
        buf_append_byte(out, '=');
    }
}

void base64_encode_url(buf *out, str bytes)
{
    base64_put(out, bytes, url_alphabet);
}

void base64_hex(buf *out, str bytes)
{
    static const char digits[] = "0123456789abcdef";
    assert(bytes.size <= SIZE_MAX / 2);
    char *to = buf_reserve(out, bytes.size * 2);
    if (to == NULL) {
        return;
    }
    for (size_t i = 0; i < bytes.size; i++) {
        u8 byte = (u8)bytes.data[i];
        *to++ = digits[byte >> 4];
        *to++ = digits[byte & 15];
    }
    buf_commit(out, bytes.size * 2);
}

enum { DIGIT_NONE = 64, DIGIT_STANDARD_ONLY = 0x100, DIGIT_URL_ONLY = 0x200 };

/* The digit's value, with a flag when one alphabet alone has it. */
static u32 base64_digit(char digit)
{
    if (digit >= 'A' && digit <= 'Z') {
        return (u32)(digit - 'A');
    }
    if (digit >= 'a' && digit <= 'z') {
        return (u32)(digit - 'a' + 26);
    }
    if (digit >= '0' && digit <= '9') {
        return (u32)(digit - '0' + 52);
    }
    switch (digit) {
    case '+':
        return 62 | DIGIT_STANDARD_ONLY;
    case '/':
        return 63 | DIGIT_STANDARD_ONLY;
    case '-':
        return 62 | DIGIT_URL_ONLY;
    case '_':
        return 63 | DIGIT_URL_ONLY;
    default:
        return DIGIT_NONE;
    }
}

/* Takes all the padding off, or finds that it is wrong. */
static bool base64_strip(str *text)
{
    size_t padding = 0;
    while (padding < text->size && text->data[text->size - 1 - padding] == '=') {
        padding++;
    }
    if (padding > 0 && (padding > 2 || text->size % 4 != 0)) {
        return false;
    }
    text->size -= padding;
    return text->size % 4 != 1;
}

static bool base64_read(str text, char *to)
{
    u32 group = 0;
    u32 flags = 0;
    for (size_t i = 0; i < text.size; i++) {
        u32 digit = base64_digit(text.data[i]);
        if (digit == DIGIT_NONE) {
            return false;
        }
        flags |= digit & (DIGIT_STANDARD_ONLY | DIGIT_URL_ONLY);
        group = (group << 6 | (digit & 63)) & 0xffffff;
        if (i % 4 != 0) {
            *to++ = (char)(u8)(group >> (6 - i % 4 * 2) & 0xff);
        }
    }
    u32 left_over = text.size % 4 == 2 ? group & 15 : text.size % 4 == 3 ? group & 3 : 0;
    return left_over == 0 && flags != (DIGIT_STANDARD_ONLY | DIGIT_URL_ONLY);
}

bool base64_decode(buf *out, str text)
{
    if (!base64_strip(&text)) {
        return false;
    }
    size_t size = text.size / 4 * 3 + (text.size % 4 > 0 ? text.size % 4 - 1 : 0);
    char *to = buf_reserve(out, size);
    if (to == NULL || !base64_read(text, to)) {
        return false;
    }
    buf_commit(out, size);
    return true;
}
