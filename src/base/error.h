/* error: what went wrong, once for deciding and once for telling.
 *
 * Deciding: a function that can fail in the world returns `err`, a small closed enum; OK is zero.
 * UNKNOWN means that the effect may have happened: it is neither success nor failure.
 * Telling: the caller may pass a `struct error`, filled where the fact is known with a stable code
 * (error_codes.def), a message, a hint and the extra members of that code. `error` is the last
 * parameter and may be NULL. Out-parameters are untouched on failure. */
#ifndef LHBOX_BASE_ERROR_H
#define LHBOX_BASE_ERROR_H

#include "base/str.h"

typedef enum err {
    OK = 0,
    INVALID,   /* the input is wrong */
    DENIED,    /* not allowed */
    NOT_FOUND, /* it is not there */
    CONFLICT,  /* somebody else was faster, or it exists already; surely not done */
    LIMIT,     /* a documented bound is reached */
    BUSY,      /* try again later */
    IO,        /* the outside failed; surely not done */
    UNKNOWN,   /* it may have happened */
    CORRUPT,   /* bytes are not what they must be */
    CANCELLED, /* the caller, or a stop, gave up */
} err;

enum error_code {
    ERROR_NONE = 0,
#define X(name, text, http_status, retryable, meaning, hint) ERROR_##name,
#include "base/error_codes.def"
#undef X
    ERROR_CODE_COUNT
};

enum { ERROR_MESSAGE_MAX = 480, ERROR_FIELDS_MAX = 4096 };

struct error {
    enum error_code code;
    int retry_after_seconds; /* 0: the code's default */
    char message[ERROR_MESSAGE_MAX];
    char hint[ERROR_MESSAGE_MAX];
    /* The code's extra members as JSON text without braces: `"sink_id":"snk_1","offset":3`. */
    char fields[ERROR_FIELDS_MAX];
};

/* Fill `error` (which may be NULL) and return `kind`, so that `return error_set(…)` reads well. A
 * message longer than its room is cut. The first fact stands: a filled error is not overwritten. */
err error_set(struct error *error, err kind, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The arena or buffer is full: LIMIT with code `overloaded`. */
err error_memory(struct error *error);
void error_hint(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
void error_field_text(struct error *error, const char *name, str value);
void error_field_i64(struct error *error, const char *name, i64 value);
/* `json` is a complete JSON value. */
void error_field_json(struct error *error, const char *name, str json);
void error_clear(struct error *error);

/* From the table of codes. */
const char *error_code_text(enum error_code code);
int error_code_http_status(enum error_code code);
bool error_code_retryable(enum error_code code);
const char *error_code_hint(enum error_code code); /* what helps most often; may be empty */
const char *err_text(err kind);                    /* "OK", "UNKNOWN", … for logs */

#define TRY(expression)                                                                            \
    do {                                                                                           \
        err try_result_ = (expression);                                                            \
        if (try_result_ != OK) {                                                                   \
            return try_result_;                                                                    \
        }                                                                                          \
    } while (0)

#endif
