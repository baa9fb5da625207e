#include "cli/send_source.h"

#include "base/assert.h"
#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INPUT_CAPACITY = SEND_BODY_BYTES_MAX + MIB };

enum source_form { SOURCE_UNKNOWN, SOURCE_WHOLE, SOURCE_LINES, SOURCE_ENDED };

struct send_source {
    int fd;
    str path;
    enum source_form form;
    char *input; /* INPUT_CAPACITY; bytes [at, end) are not used yet */
    size_t at;
    size_t end;
    bool input_ended;
    i64 size;
    i64 bytes_read;
    i64 line;
    buf body;
};

err send_source_open(struct arena *arena, str path, struct send_source **out_source,
                     struct error *error)
{
    struct send_source *source = arena_alloc(arena, sizeof(*source));
    str copy = str_copy(arena, path);
    char *input = arena_alloc(arena, INPUT_CAPACITY);
    if (source == NULL || copy.data == NULL || input == NULL) {
        return error_memory(error);
    }
    bool standard = str_equal(path, STR("-"));
    int fd = standard ? STDIN_FILENO : open(copy.data, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return error_set(error, errno == ENOENT ? NOT_FOUND : IO, ERROR_INVALID_REQUEST,
                         "%s cannot be read: %s", copy.data, strerrordesc_np(errno));
    }
    struct stat status;
    bool plain = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    *source = (struct send_source){.fd = fd,
                                   .path = copy,
                                   .input = input,
                                   .size = plain ? (i64)status.st_size : -1,
                                   .body = buf_create(arena, MIB, SEND_BODY_BYTES_MAX)};
    *out_source = source;
    return OK;
}

void send_source_close(struct send_source *source)
{
    if (source != NULL && source->fd != STDIN_FILENO) {
        close(source->fd);
    }
}

i64 send_source_size(const struct send_source *source)
{
    return source->size;
}

/* Reads until the input is full or at its end. */
static err input_fill(struct send_source *source, struct error *error)
{
    memmove(source->input, source->input + source->at, source->end - source->at);
    source->end -= source->at;
    source->at = 0;
    while (!source->input_ended && source->end < INPUT_CAPACITY) {
        ssize_t got = read(source->fd, source->input + source->end, INPUT_CAPACITY - source->end);
        if (got < 0 && errno != EINTR) {
            return error_set(error, IO, ERROR_INVALID_REQUEST, "%.*s cannot be read: %s",
                             STR_ARG(source->path), strerrordesc_np(errno));
        }
        source->input_ended = got == 0;
        source->end += got > 0 ? (size_t)got : 0;
    }
    return OK;
}

static enum source_form form_of(const struct send_source *source)
{
    for (size_t at = source->at; at < source->end; at++) {
        char c = source->input[at];
        if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
            return c == '{' ? SOURCE_LINES : SOURCE_WHOLE;
        }
    }
    return SOURCE_WHOLE;
}

static err next_whole(struct send_source *source, struct send_batch *out_batch, struct error *error)
{
    size_t size = source->end - source->at;
    if (size > SEND_BODY_BYTES_MAX) {
        err result = error_set(error, LIMIT, ERROR_BODY_TOO_LARGE,
                               "%.*s is larger than one batch may be (16 MiB)",
                               STR_ARG(source->path));
        error_hint(error, "write one object a line (NDJSON): that is split into batches");
        return result;
    }
    source->form = SOURCE_ENDED;
    source->bytes_read += (i64)size;
    *out_batch = (struct send_batch){{source->input + source->at, size}, source->bytes_read, true};
    return OK;
}

/* The next line that is not blank, without taking it; NOT_FOUND at the end. */
static err line_peek(struct send_source *source, str *out_line, size_t *out_taken,
                     struct error *error)
{
    for (;;) {
        char *start = source->input + source->at;
        size_t rest = source->end - source->at;
        char *newline = memchr(start, '\n', rest);
        if (newline == NULL && !source->input_ended && rest < INPUT_CAPACITY) {
            TRY(input_fill(source, error));
            continue;
        }
        size_t size = newline != NULL ? (size_t)(newline - start) : rest;
        size_t taken = newline != NULL ? size + 1 : size;
        str line = {start, size};
        if (str_ends(line, STR("\r"))) {
            line.size--;
        }
        if (str_trim(line).size > 0) {
            *out_line = line;
            *out_taken = taken;
            return OK;
        }
        if (taken == 0) {
            return NOT_FOUND;
        }
        source->at += taken;
        source->bytes_read += (i64)taken;
        source->line++;
    }
}

static err line_too_long(const struct send_source *source, struct error *error)
{
    return error_set(error, LIMIT, ERROR_BODY_TOO_LARGE,
                     "line %lld of %.*s is larger than one batch may be (16 MiB)",
                     (long long)source->line + 1, STR_ARG(source->path));
}

static void line_take(struct send_source *source, str line, size_t taken)
{
    buf_append(&source->body, source->body.size == 0 ? STR("[") : STR(","));
    buf_append(&source->body, line);
    source->at += taken;
    source->bytes_read += (i64)taken;
    source->line++;
}

static err next_lines(struct send_source *source, struct send_batch *out_batch, struct error *error)
{
    str line = {0};
    size_t taken = 0;
    TRY(line_peek(source, &line, &taken, error)); /* at the end the last body stays as it is */
    if (line.size + 2 > SEND_BODY_BYTES_MAX) {
        return line_too_long(source, error);
    }
    buf_truncate(&source->body, 0);
    err peeked = OK;
    for (i64 rows = 0; peeked == OK && rows < SEND_ROWS_MAX &&
                       source->body.size + line.size + 2 <= SEND_BODY_BYTES_MAX;
         rows++) {
        line_take(source, line, taken);
        peeked = line_peek(source, &line, &taken, error);
    }
    if (peeked != OK && peeked != NOT_FOUND) {
        return peeked;
    }
    buf_append(&source->body, STR("]"));
    if (!buf_ok(&source->body)) {
        return error_memory(error);
    }
    *out_batch = (struct send_batch){buf_str(&source->body), source->bytes_read,
                                     peeked == NOT_FOUND};
    return OK;
}

err send_source_next(struct send_source *source, struct send_batch *out_batch, struct error *error)
{
    if (source->form == SOURCE_UNKNOWN) {
        TRY(input_fill(source, error));
        source->form = form_of(source);
    }
    switch (source->form) {
    case SOURCE_WHOLE:
        return next_whole(source, out_batch, error);
    case SOURCE_LINES:
        return next_lines(source, out_batch, error);
    case SOURCE_UNKNOWN:
    case SOURCE_ENDED:
        break;
    }
    return NOT_FOUND;
}
