/* log: one JSON object a line to stderr.
 *
 * {"at":"…","level":"info","event":"roll_committed","sink":"snk_…","rows":12}. Fields are typed;
 * a secret has its own type and prints as its public part only, so that it cannot be logged by
 * mistake. Lines are written whole by one write(2). Thread-safe. */
#ifndef LHBOX_BASE_LOG_H
#define LHBOX_BASE_LOG_H

#include "base/error.h"
#include "base/seam.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

enum log_kind { LOG_TEXT, LOG_I64, LOG_SECRET };
struct log_field {
    const char *name;
    enum log_kind kind;
    str text;
    i64 number;
};
#define LOG_S(name, value) ((struct log_field){(name), LOG_TEXT, (value), 0})
#define LOG_N(name, value) ((struct log_field){(name), LOG_I64, {NULL, 0}, (i64)(value)})
/* A key: printed up to its 12 hex digits. */
#define LOG_KEY(name, value) ((struct log_field){(name), LOG_SECRET, (value), 0})

void log_init(const struct seam *seam, enum log_level level);
void log_write(enum log_level level, const char *event, const struct log_field *fields,
               size_t count);
#define log_event(level, event, ...)                                                               \
    log_write((level), (event), (const struct log_field[]){__VA_ARGS__},                           \
              sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))
/* The event with the error's kind, code and message. */
void log_error(const char *event, err kind, const struct error *error, str subject);

#endif
