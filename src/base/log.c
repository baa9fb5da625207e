#include "base/log.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

/* A line no longer than a pipe's atomic write, so that lines of several processes don't mix. */
enum { LOG_LINE_MAX = 4096, LOG_TEXT_MAX = 1024 };

static const struct seam *_Atomic log_seam;
static _Atomic int log_level_min = LOG_INFO;

void log_init(const struct seam *seam, enum log_level level)
{
    atomic_store(&log_seam, seam);
    atomic_store(&log_level_min, (int)level);
}

static str level_text(enum log_level level)
{
    switch (level) {
    case LOG_DEBUG:
        return STR("debug");
    case LOG_INFO:
        return STR("info");
    case LOG_WARN:
        return STR("warn");
    case LOG_ERROR:
        return STR("error");
    }
    return STR("?");
}

/* The text as a JSON string, at most LOG_TEXT_MAX bytes of it, with U+FFFD for each byte that is no
 * UTF-8: a log line is JSON whatever came in. */
static void log_put_text(buf *line, str text)
{
    char clean[LOG_TEXT_MAX + 8];
    buf out = {.data = clean, .capacity = LOG_TEXT_MAX, .size_max = LOG_TEXT_MAX};
    while (text.size > 0 && buf_ok(&out)) {
        size_t good = utf8_check(text);
        str well_formed = utf8_cut(str_slice(text, 0, good), LOG_TEXT_MAX - out.size);
        buf_append(&out, well_formed);
        if (well_formed.size < good) {
            break;
        }
        if (good < text.size) {
            buf_append(&out, STR("\xef\xbf\xbd"));
            good++;
        }
        text = str_slice(text, good, text.size);
    }
    buf_append_json_string(line, buf_str(&out));
}

/* The prefix and the public id of a key, or "?" for what has not even the form of its front. */
static str key_public_part(str key)
{
    static const str prefixes[] = {STR_INIT("al_key_"), STR_INIT("al_send_"), STR_INIT("al_tok_")};
    enum { PUBLIC_ID_SIZE = 12 };
    for (size_t i = 0; i < ARRAY_COUNT(prefixes); i++) {
        size_t size = prefixes[i].size + PUBLIC_ID_SIZE;
        if (!str_starts(key, prefixes[i]) || key.size <= size || key.data[size] != '_') {
            continue;
        }
        size_t at = prefixes[i].size;
        while (at < size && key.data[at] != '\0' &&
               strchr("0123456789abcdef", key.data[at]) != NULL) {
            at++;
        }
        if (at == size) {
            return str_slice(key, 0, size);
        }
    }
    return STR("?");
}

static void log_put_field(buf *line, const struct log_field *field)
{
    size_t size_before = line->size;
    buf_append_byte(line, ',');
    buf_append_json_string(line, str_from(field->name));
    buf_append_byte(line, ':');
    switch (field->kind) {
    case LOG_TEXT:
        log_put_text(line, field->text);
        break;
    case LOG_I64:
        buf_append_i64(line, field->number);
        break;
    case LOG_SECRET:
        log_put_text(line, key_public_part(field->text));
        break;
    }
    if (!buf_ok(line)) {
        /* A field without room is left out whole; shorter ones after it may have room. */
        line->failed = false;
        buf_truncate(line, size_before);
    }
}

static void log_send(str line)
{
    ssize_t written = -1;
    do {
        written = write(STDERR_FILENO, line.data, line.size);
    } while (written < 0 && errno == EINTR);
    /* A log that cannot be written stops nobody. */
}

void log_write(enum log_level level, const char *event, const struct log_field *fields,
               size_t count)
{
    if ((int)level < atomic_load(&log_level_min)) {
        return;
    }
    int errno_before = errno;
    const struct seam *seam = atomic_load(&log_seam);
    char at[TIME_TEXT_SIZE];
    str at_text = time_format(seam_now(seam != NULL ? seam : seam_system()), at);

    char room[LOG_LINE_MAX];
    /* The last two bytes are for the closing brace and the newline. */
    buf line = {.data = room, .capacity = sizeof(room) - 2, .size_max = sizeof(room) - 2};
    buf_append(&line, STR("{\"at\":"));
    buf_append_json_string(&line, at_text);
    buf_append(&line, STR(",\"level\":"));
    buf_append_json_string(&line, level_text(level));
    buf_append(&line, STR(",\"event\":"));
    log_put_text(&line, str_from(event));
    assert(buf_ok(&line));
    for (size_t i = 0; i < count; i++) {
        log_put_field(&line, &fields[i]);
    }
    room[line.size] = '}';
    room[line.size + 1] = '\n';
    log_send((str){room, line.size + 2});
    errno = errno_before;
}

static enum log_level level_of(err kind)
{
    switch (kind) {
    case IO:
    case UNKNOWN:
    case CORRUPT:
        return LOG_ERROR;
    case OK:
    case INVALID:
    case DENIED:
    case NOT_FOUND:
    case CONFLICT:
    case LIMIT:
    case BUSY:
    case CANCELLED:
        return LOG_WARN;
    }
    return LOG_ERROR;
}

void log_error(const char *event, err kind, const struct error *error, str subject)
{
    struct log_field fields[4];
    size_t count = 0;
    if (subject.size > 0) {
        fields[count++] = LOG_S("subject", subject);
    }
    fields[count++] = LOG_S("kind", str_from(err_text(kind)));
    if (error != NULL && error->code != ERROR_NONE) {
        fields[count++] = LOG_S("code", str_from(error_code_text(error->code)));
        fields[count++] = LOG_S("message", str_from(error->message));
    }
    log_write(level_of(kind), event, fields, count);
}
