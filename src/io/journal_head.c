#include "io/journal_head.h"

#include "base/assert.h"

#include <stdio.h>

#define HEAD_NAME "head"

/* ---- the text ---- */

str journal_head_print(struct arena *arena, const struct journal_head *head)
{
    str body = str_format(
        arena, "lhbox log 1\nidentity %.*s\nlog %016llx\nsegment_bytes %llu\nsegments %u\n",
        STR_ARG(head->identity), (unsigned long long)head->log,
        (unsigned long long)head->segment_bytes, head->segments);
    if (body.data == NULL) {
        return body;
    }
    return str_format(arena, "%.*schecksum %08x\n", STR_ARG(body),
                      journal_checksum((const u8 *)body.data, body.size));
}

static bool hex_read(str text, u64 *out_value)
{
    u64 value = 0;
    for (size_t i = 0; i < text.size; i++) {
        char digit = text.data[i];
        bool letter = digit >= 'a' && digit <= 'f';
        if (!letter && !(digit >= '0' && digit <= '9')) {
            return false;
        }
        value = value << 4 | (u64)(letter ? digit - 'a' + 10 : digit - '0');
    }
    *out_value = value;
    return text.size == 16;
}

static bool identity_valid(str identity)
{
    for (size_t i = 0; i < identity.size; i++) {
        if (identity.data[i] <= ' ' || identity.data[i] > '~') {
            return false;
        }
    }
    return identity.size > 0 && identity.size <= JOURNAL_IDENTITY_BYTES_MAX;
}

static bool sizes_valid(u64 segment_bytes, i64 segments)
{
    return segment_bytes >= JOURNAL_SEGMENT_BYTES_MIN &&
           segment_bytes <= JOURNAL_SEGMENT_BYTES_MAX && segment_bytes % JOURNAL_BLOCK_BYTES == 0 &&
           segments >= 2 && segments <= JOURNAL_SEGMENTS_MAX;
}

/* The values of the lines; what else is in them shows when the head is printed again. */
static bool head_read(str text, struct journal_head *head)
{
    static const str names[] = {STR_INIT("lhbox log "), STR_INIT("identity "), STR_INIT("log "),
                                STR_INIT("segment_bytes "), STR_INIT("segments ")};
    str values[ARRAY_COUNT(names)];
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        str line = {0};
        if (!str_next(&text, '\n', &line) || !str_starts(line, names[i])) {
            return false;
        }
        values[i] = str_slice(line, names[i].size, line.size);
    }
    i64 bytes = 0;
    i64 segments = 0;
    head->identity = values[1];
    if (!identity_valid(values[1]) || !hex_read(values[2], &head->log) ||
        !str_to_i64(values[3], &bytes) || !str_to_i64(values[4], &segments) || bytes < 0 ||
        !sizes_valid((u64)bytes, segments)) {
        return false;
    }
    head->segment_bytes = (u64)bytes;
    head->segments = (u32)segments;
    return true;
}

err journal_head_parse(str text, struct journal_head *out_head, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * KIB);
    struct journal_head head = {0};
    if (!head_read(text, &head) || !str_equal(journal_head_print(arena, &head), text)) {
        return error_set(error, CORRUPT, ERROR_STORE_DOWN,
                         "the log's file " HEAD_NAME " is damaged, or of another version");
    }
    *out_head = head;
    return OK;
}

/* ---- segments ---- */

static str segment_name(u64 log, u32 index, char out[JOURNAL_NAME_ROOM])
{
    int size = snprintf(out, JOURNAL_NAME_ROOM, "%016llx.%03u", (unsigned long long)log, index);
    assert(size > 0 && size < JOURNAL_NAME_ROOM);
    return (str){out, (size_t)size};
}

static bool is_segment_name(str name)
{
    u64 log = 0;
    i64 index = 0;
    return name.size == 20 && name.data[16] == '.' && hex_read(str_slice(name, 0, 16), &log) &&
           str_to_i64(str_slice(name, 17, 20), &index);
}

static void segments_close(const struct journal_files *files, const int segments[], u32 count)
{
    for (u32 i = 0; i < count; i++) {
        files->ops->close(files->self, segments[i]);
    }
}

void journal_head_close(const struct journal_files *files, const struct journal_head *head,
                        const int segments[])
{
    segments_close(files, segments, head->segments);
}

MUST_USE static err segment_open(const struct journal_files *files, const struct journal_head *head,
                                 u32 index, int *out_file, struct error *error)
{
    char room[JOURNAL_NAME_ROOM];
    str name = segment_name(head->log, index, room);
    u64 bytes = 0;
    int file = -1;
    err opened = files->ops->open(files->self, name, &file, &bytes, error);
    if (opened != OK) {
        return opened == NOT_FOUND ? CORRUPT : opened;
    }
    if (bytes != head->segment_bytes) {
        files->ops->close(files->self, file);
        return error_set(error, CORRUPT, ERROR_STORE_DOWN,
                         "the log's file %.*s has %llu bytes in place of %llu", STR_ARG(name),
                         (unsigned long long)bytes, (unsigned long long)head->segment_bytes);
    }
    *out_file = file;
    return OK;
}

/* What an earlier process wrote, perhaps only into the page cache, is durable from here on. */
MUST_USE static err segments_open(const struct journal_files *files,
                                  const struct journal_head *head, int out_segments[],
                                  struct error *error)
{
    for (u32 i = 0; i < head->segments; i++) {
        err result = segment_open(files, head, i, &out_segments[i], error);
        if (result != OK) {
            segments_close(files, out_segments, i);
            return result;
        }
        result = files->ops->sync(files->self, out_segments[i], error);
        if (result != OK) {
            segments_close(files, out_segments, i + 1);
            return result;
        }
    }
    return OK;
}

/* ---- making ---- */

MUST_USE static err head_make(struct arena *arena, const struct journal_files *files,
                              const struct journal_options *options, struct journal_head *out_head,
                              struct error *error)
{
    struct journal_head head = {
        .identity = str_copy(arena, options->identity),
        .segment_bytes = options->segment_bytes,
        .segments = options->segments,
    };
    seam_random(options->seam, &head.log, sizeof(head.log));
    for (u32 i = 0; i < head.segments; i++) {
        char room[JOURNAL_NAME_ROOM];
        str name = segment_name(head.log, i, room);
        TRY(files->ops->make(files->self, name, head.segment_bytes, error));
    }
    str text = journal_head_print(arena, &head);
    if (head.identity.data == NULL || text.data == NULL) {
        return error_memory(error);
    }
    TRY(files->ops->save(files->self, STR(HEAD_NAME), text, error));
    *out_head = head;
    return OK;
}

MUST_USE static err blank_check(const struct journal_files *files, int file, u64 bytes, u8 *window,
                                str name, struct error *error)
{
    for (u64 at = 0; at < bytes / JOURNAL_BLOCK_BYTES * JOURNAL_BLOCK_BYTES;) {
        u64 rest = bytes / JOURNAL_BLOCK_BYTES * JOURNAL_BLOCK_BYTES - at;
        size_t size = rest < JOURNAL_GROUP_BYTES ? (size_t)rest : JOURNAL_GROUP_BYTES;
        TRY(files->ops->read(files->self, file, at, window, size, error));
        if (window[0] != 0 || memcmp(window, window + 1, size - 1) != 0) {
            return error_set(error, CORRUPT, ERROR_STORE_DOWN,
                             "the log's file " HEAD_NAME " is missing, and %.*s is not empty",
                             STR_ARG(name));
        }
        at += size;
    }
    return OK;
}

/* Without a head, segments are what a making left that was stopped, or the head was lost. */
MUST_USE static err stray_check(const struct journal_files *files, str name, u8 *window,
                                struct error *error)
{
    int file = -1;
    u64 bytes = 0;
    TRY(files->ops->open(files->self, name, &file, &bytes, error));
    err result = blank_check(files, file, bytes, window, name, error);
    files->ops->close(files->self, file);
    return result;
}

/* `window` is NULL where there is a head. */
MUST_USE static err strays_remove(const struct journal_files *files,
                                  const struct journal_head *head, u8 *window, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)MIB);
    str *names = arena_array(arena, JOURNAL_NAMES_MAX, sizeof(*names));
    size_t count = 0;
    if (names == NULL) {
        return error_memory(error);
    }
    TRY(files->ops->list(files->self, arena, names, &count, error));
    char room[JOURNAL_NAME_ROOM];
    str ours = head == NULL ? STR("-") : str_slice(segment_name(head->log, 0, room), 0, 16);
    for (size_t i = 0; i < count; i++) {
        if (!is_segment_name(names[i]) || str_starts(names[i], ours)) {
            continue;
        }
        if (head == NULL) {
            TRY(stray_check(files, names[i], window, error));
        }
        TRY(files->ops->remove(files->self, names[i], error));
    }
    return OK;
}

MUST_USE static err options_check(const struct journal_options *options, struct error *error)
{
    if (!identity_valid(options->identity) ||
        !sizes_valid(options->segment_bytes, (i64)options->segments)) {
        return error_set(error, INVALID, ERROR_INVALID_CONFIG,
                         "a log cannot have %u segments of %llu bytes", options->segments,
                         (unsigned long long)options->segment_bytes);
    }
    return OK;
}

err journal_head_open(struct arena *arena, const struct journal_files *files,
                      const struct journal_options *options, u8 *window,
                      struct journal_head *out_head, int out_segments[], struct error *error)
{
    struct journal_head head = {0};
    str text = {0};
    TRY(options_check(options, error));
    err loaded = files->ops->load(files->self, arena, STR(HEAD_NAME), &text, error);
    if (loaded == NOT_FOUND) {
        if (error != NULL) {
            error_clear(error);
        }
        TRY(strays_remove(files, NULL, window, error));
        TRY(head_make(arena, files, options, &head, error));
    } else {
        TRY(loaded);
        TRY(journal_head_parse(text, &head, error));
    }
    if (!str_equal(head.identity, options->identity)) {
        return error_set(error, INVALID, ERROR_INVALID_CONFIG,
                         "the log is of the installation %.*s, not of %.*s", STR_ARG(head.identity),
                         STR_ARG(options->identity));
    }
    TRY(strays_remove(files, &head, NULL, error));
    TRY(segments_open(files, &head, out_segments, error));
    *out_head = head;
    return OK;
}

err journal_head_replace(struct arena *arena, const struct journal_files *files,
                         const struct journal_options *options, struct journal_head *head,
                         int segments[], struct error *error)
{
    struct journal_head made = {0};
    TRY(head_make(arena, files, options, &made, error));
    segments_close(files, segments, head->segments);
    head->segments = 0; /* none is open */
    TRY(strays_remove(files, &made, NULL, error));
    TRY(segments_open(files, &made, segments, error));
    *head = made;
    return OK;
}
