/* table_fixture: what the tests of table/ share: a clock that stands still, random bytes that
 * count, and JSON in single quotes. */
#ifndef LHBOX_TESTS_TABLE_FIXTURE_H
#define LHBOX_TESTS_TABLE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "table/metadata.h"

#define FIXTURE_NOW    ((instant)1790000000000000)
#define FIXTURE_NOW_MS ((i64)1790000000000)

static inline instant fixture_now(void *self)
{
    (void)self;
    return FIXTURE_NOW;
}

static inline i64 fixture_monotonic(void *self)
{
    (void)self;
    return 0;
}

static inline void fixture_random(void *self, void *out_bytes, size_t size)
{
    u8 *next = self;
    u8 *bytes = out_bytes;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = ++*next;
    }
}

static inline void fixture_wait(void *self, i64 microseconds)
{
    (void)self;
    (void)microseconds;
}

static inline struct seam fixture_seam(u8 *next)
{
    return (struct seam){.now = fixture_now,
                         .monotonic_us = fixture_monotonic,
                         .random = fixture_random,
                         .wait_us = fixture_wait,
                         .self = next};
}

/* JSON with ' for ". A new reference. */
static inline json_t *fixture_json(const char *text)
{
    AUTO_ARENA struct arena *arena = arena_create(16 * MIB);
    buf quoted = buf_create(arena, 256, 16 * MIB);
    for (const char *at = text; *at != '\0'; at++) {
        buf_append_byte(&quoted, *at == '\'' ? (u8)'"' : (u8)*at);
    }
    json_error_t reason;
    json_t *value = json_loadb(quoted.data, quoted.size, JSON_DECODE_ANY, &reason);
    if (value == NULL) {
        fail_msg("%s: %s", reason.text, text);
    }
    return value;
}

static inline void fixture_json_close(json_t **value)
{
    json_decref(*value);
}
#define AUTO_JSON __attribute__((cleanup(fixture_json_close)))

static inline void assert_json(const json_t *found, const char *wanted)
{
    AUTO_JSON json_t *value = fixture_json(wanted);
    if (!json_equal(found, value)) {
        AUTO_ARENA struct arena *arena = arena_create(16 * MIB);
        char text[4000];
        size_t size = found == NULL ? 0
                                    : json_dumpb(found, text, sizeof(text) - 1,
                                                 JSON_COMPACT | JSON_ENCODE_ANY);
        text[size < sizeof(text) ? size : sizeof(text) - 1] = '\0';
        fail_msg("found %s\nwanted %s", text, wanted);
    }
}

static inline void assert_str(str found, const char *wanted)
{
    if (!str_equal(found, str_from(wanted))) {
        fail_msg("found \"%.*s\", wanted \"%s\"", STR_ARG(found), wanted);
    }
}

#define FIXTURE_COLUMNS                                                                            \
    "{'type':'struct','schema-id':0,'fields':["                                                    \
    "{'id':1,'name':'id','required':true,'type':'long'},"                                          \
    "{'id':2,'name':'ts','required':false,'type':'timestamptz'},"                                  \
    "{'id':3,'name':'name','required':false,'type':'string'}]}"

/* A table of version `version` with the columns id, ts, name, partitioned as given. */
static inline struct metadata *fixture_table(const char *version, const char *spec_fields)
{
    u8 next = 0;
    struct seam seam = fixture_seam(&next);
    char text[4096];
    (void)snprintf(text, sizeof(text),
                   "{'name':'t','schema':" FIXTURE_COLUMNS
                   ",'partition-spec':{'spec-id':0,'fields':[%s]},"
                   "'properties':{'format-version':'%s','owner':'anna'}}",
                   spec_fields, version);
    AUTO_JSON json_t *request = fixture_json(text);
    struct metadata *metadata = NULL;
    struct error error = {0};
    if (metadata_create(request, STR("file:///w/t"), &seam, &metadata, &error) != OK) {
        fail_msg("%s", error.message);
    }
    return metadata;
}

/* Applies the updates at `now` with the previous file m0. */
static inline err fixture_apply_at(struct metadata *metadata, instant now, const char *updates,
                                   struct error *error)
{
    AUTO_JSON json_t *list = fixture_json(updates);
    error_clear(error);
    return metadata_apply(metadata, list, now, STR("file:///w/t/metadata/m0.json"), error);
}

static inline void fixture_apply(struct metadata *metadata, const char *updates)
{
    struct error error = {0};
    if (fixture_apply_at(metadata, FIXTURE_NOW, updates, &error) != OK) {
        fail_msg("%s", error.message);
    }
}

/* What the document says, to see later that it has not changed. */
static inline str fixture_text(struct arena *arena, const struct metadata *metadata)
{
    str text = {NULL, 0};
    assert_int_equal(metadata_print(arena, metadata, &text, NULL), OK);
    return text;
}

/* Applying to a copy fails with `wanted` and a message that holds `message`. */
static inline void fixture_refused(const struct metadata *metadata, err wanted, const char *message,
                                   const char *updates)
{
    struct metadata *copy = NULL;
    struct error error = {0};
    AUTO_ARENA struct arena *arena = arena_create(16 * MIB);
    str before = fixture_text(arena, metadata);
    assert_int_equal(metadata_copy(metadata, &copy, NULL), OK);
    err result = fixture_apply_at(copy, FIXTURE_NOW, updates, &error);
    metadata_close(copy);
    assert_true(str_equal(fixture_text(arena, metadata), before));
    if (result != wanted || strstr(error.message, message) == NULL) {
        fail_msg("%s: \"%s\" for %s", err_text(result), error.message, updates);
    }
}

static inline const json_t *fixture_member(const struct metadata *metadata, const char *key)
{
    return json_object_get(metadata_json(metadata), key);
}

#endif
