#include "base/error.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

struct error_code_entry {
    const char *text;
    int http_status;
    bool retryable;
    const char *hint;
};

static const struct error_code_entry error_codes[ERROR_CODE_COUNT] = {
    [ERROR_NONE] = {"none", 0, false, ""},
#define X(name, text, http_status, retryable, meaning, hint)                                       \
    [ERROR_##name] = {text, http_status, retryable, hint},
#include "base/error_codes.def"
#undef X
};

/* Where vsnprintf cut a longer text, a piece of a character may stand at the end. */
static void text_fill(char *out, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static void text_fill(char *out, const char *format, va_list arguments)
{
    int wanted = vsnprintf(out, ERROR_MESSAGE_MAX, format, arguments);
    assert(wanted >= 0);
    if (wanted < ERROR_MESSAGE_MAX) {
        return;
    }
    str text = str_from(out);
    size_t good = utf8_check(text);
    if (text.size - good < 4) {
        out[good] = '\0';
    }
}

err error_set(struct error *error, err kind, enum error_code code, const char *format, ...)
{
    assert(kind != OK);
    if (error == NULL || error->code != ERROR_NONE) {
        return kind;
    }
    error->code = code;
    va_list arguments;
    va_start(arguments, format);
    text_fill(error->message, format, arguments);
    va_end(arguments);
    return kind;
}

err error_memory(struct error *error)
{
    return error_set(error, LIMIT, ERROR_OVERLOADED, "the memory set aside for this is used up");
}

void error_hint(struct error *error, const char *format, ...)
{
    if (error == NULL || error->hint[0] != '\0') {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    text_fill(error->hint, format, arguments);
    va_end(arguments);
}

/* The members written so far, as a buffer that stays in its place: it is at its maximum already. */
static buf fields_open(struct error *error)
{
    return (buf){.data = error->fields,
                 .size = strlen(error->fields),
                 .capacity = ERROR_FIELDS_MAX - 1,
                 .size_max = ERROR_FIELDS_MAX - 1};
}

static void fields_begin_member(buf *fields, const char *name)
{
    if (fields->size > 0) {
        buf_append_byte(fields, ',');
    }
    buf_append_json_string(fields, str_from(name));
    buf_append_byte(fields, ':');
}

/* A member without room is left out whole, so that the rest stays JSON. */
static void fields_close(struct error *error, const buf *fields, size_t size_before)
{
    error->fields[buf_ok(fields) ? fields->size : size_before] = '\0';
}

void error_field_text(struct error *error, const char *name, str value)
{
    if (error == NULL) {
        return;
    }
    buf fields = fields_open(error);
    size_t size_before = fields.size;
    fields_begin_member(&fields, name);
    buf_append_json_string(&fields, value);
    fields_close(error, &fields, size_before);
}

void error_field_json(struct error *error, const char *name, str json)
{
    if (error == NULL) {
        return;
    }
    buf fields = fields_open(error);
    size_t size_before = fields.size;
    fields_begin_member(&fields, name);
    buf_append(&fields, json);
    fields_close(error, &fields, size_before);
}

void error_field_i64(struct error *error, const char *name, i64 value)
{
    char text[24];
    int size = snprintf(text, sizeof(text), "%lld", (long long)value);
    error_field_json(error, name, (str){text, (size_t)size});
}

void error_clear(struct error *error)
{
    if (error != NULL) {
        *error = (struct error){.code = ERROR_NONE};
    }
}

const char *error_code_text(enum error_code code)
{
    assert(code < ERROR_CODE_COUNT);
    return error_codes[code].text;
}

int error_code_http_status(enum error_code code)
{
    assert(code < ERROR_CODE_COUNT);
    return error_codes[code].http_status;
}

bool error_code_retryable(enum error_code code)
{
    assert(code < ERROR_CODE_COUNT);
    return error_codes[code].retryable;
}

const char *error_code_hint(enum error_code code)
{
    assert(code < ERROR_CODE_COUNT);
    return error_codes[code].hint;
}

const char *err_text(err kind)
{
    switch (kind) {
    case OK:
        return "OK";
    case INVALID:
        return "INVALID";
    case DENIED:
        return "DENIED";
    case NOT_FOUND:
        return "NOT_FOUND";
    case CONFLICT:
        return "CONFLICT";
    case LIMIT:
        return "LIMIT";
    case BUSY:
        return "BUSY";
    case IO:
        return "IO";
    case UNKNOWN:
        return "UNKNOWN";
    case CORRUPT:
        return "CORRUPT";
    case CANCELLED:
        return "CANCELLED";
    }
    return "?";
}
