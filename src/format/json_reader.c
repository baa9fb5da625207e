#include "format/json_token.h"

#include "base/assert.h"

enum reader_state {
    READER_VALUE,
    READER_FIRST_VALUE,
    READER_NAME,
    READER_FIRST_NAME,
    READER_COMMA,
    READER_INVALID,
};

void json_reader_init(struct json_reader *reader, str input)
{
    *reader = (struct json_reader){.input = input, .state = READER_VALUE};
}

static const u8 *reader_at(const struct json_reader *reader)
{
    return (const u8 *)reader->input.data + reader->at;
}

static const u8 *reader_end(const struct json_reader *reader)
{
    return (const u8 *)reader->input.data + reader->input.size;
}

/* The byte after white space, or -1 at the end. */
static i32 reader_peek(struct json_reader *reader)
{
    while (reader->at < reader->input.size) {
        u8 byte = (u8)reader->input.data[reader->at];
        if (!json_is_space(byte)) {
            return byte;
        }
        reader->at++;
    }
    return -1;
}

static enum json_token reader_fail(struct json_reader *reader)
{
    reader->state = READER_INVALID;
    reader->text = (str){NULL, 0};
    return JSON_TOKEN_INVALID;
}

/* Takes the bytes up to `to` as the token's text. */
static void reader_take(struct json_reader *reader, const u8 *to)
{
    size_t size = (size_t)(to - reader_at(reader));
    reader->text = (str){reader->input.data + reader->at, size};
    reader->at += size;
}

static enum json_token reader_close(struct json_reader *reader, enum json_token token)
{
    reader_take(reader, reader_at(reader) + 1);
    reader->level--;
    reader->state = READER_COMMA;
    return token;
}

static enum json_token reader_string(struct json_reader *reader, enum json_token token)
{
    i32 state = STRING_BODY;
    const u8 *to = json_string_scan(reader_at(reader) + 1, reader_end(reader), &state);
    if (state != STRING_END) {
        reader->at = (size_t)(to - (const u8 *)reader->input.data);
        return reader_fail(reader);
    }
    reader_take(reader, to);
    return token;
}

static enum json_token reader_number(struct json_reader *reader)
{
    i32 state = json_number_begin(*reader_at(reader));
    const u8 *to = json_number_scan(reader_at(reader) + 1, reader_end(reader), &state);
    if (state != NUMBER_END && !(to == reader_end(reader) && json_number_may_end(state))) {
        reader->at = (size_t)(to - (const u8 *)reader->input.data);
        return reader_fail(reader);
    }
    reader_take(reader, to);
    return JSON_TOKEN_NUMBER;
}

static enum json_token reader_word(struct json_reader *reader, enum json_kind kind)
{
    str word = json_word_of(kind);
    i32 done = 0;
    const u8 *to = json_word_scan(reader_at(reader), reader_end(reader), word, &done);
    if ((size_t)done != word.size) {
        reader->at = (size_t)(to - (const u8 *)reader->input.data);
        return reader_fail(reader);
    }
    reader_take(reader, to);
    return kind == JSON_KIND_TRUE    ? JSON_TOKEN_TRUE
           : kind == JSON_KIND_FALSE ? JSON_TOKEN_FALSE
                                     : JSON_TOKEN_NULL;
}

static enum json_token reader_open(struct json_reader *reader, enum json_kind kind)
{
    if (reader->level == JSON_DEPTH_MAX) {
        return reader_fail(reader);
    }
    reader_take(reader, reader_at(reader) + 1);
    reader->level++;
    json_level_open(reader->stack, reader->level, kind);
    reader->state = kind == JSON_KIND_OBJECT ? READER_FIRST_NAME : READER_FIRST_VALUE;
    return kind == JSON_KIND_OBJECT ? JSON_TOKEN_OBJECT : JSON_TOKEN_ARRAY;
}

static enum json_token reader_value(struct json_reader *reader, i32 byte)
{
    enum json_kind kind;
    if (byte < 0 || !json_kind_of((u8)byte, &kind)) {
        return reader_fail(reader);
    }
    reader->state = READER_COMMA;
    switch (kind) {
    case JSON_KIND_OBJECT:
    case JSON_KIND_ARRAY:
        return reader_open(reader, kind);
    case JSON_KIND_STRING:
        return reader_string(reader, JSON_TOKEN_STRING);
    case JSON_KIND_NUMBER:
        return reader_number(reader);
    case JSON_KIND_TRUE:
    case JSON_KIND_FALSE:
    case JSON_KIND_NULL:
        return reader_word(reader, kind);
    }
    return reader_fail(reader);
}

/* A name and the colon behind it. The token's text is the name. */
static enum json_token reader_name(struct json_reader *reader, i32 byte)
{
    if (byte != '"') {
        return reader_fail(reader);
    }
    if (reader_string(reader, JSON_TOKEN_NAME) == JSON_TOKEN_INVALID) {
        return JSON_TOKEN_INVALID;
    }
    if (reader_peek(reader) != ':') {
        return reader_fail(reader);
    }
    reader->at++;
    reader->state = READER_VALUE;
    return JSON_TOKEN_NAME;
}

/* After a value: the level ends, or a comma and the next name or value. */
static enum json_token reader_comma(struct json_reader *reader, i32 byte)
{
    if (reader->level == 0) {
        return byte < 0 ? JSON_TOKEN_END : reader_fail(reader);
    }
    bool in_object = json_level_is_object(reader->stack, reader->level);
    if (byte == (in_object ? '}' : ']')) {
        return reader_close(reader, in_object ? JSON_TOKEN_OBJECT_END : JSON_TOKEN_ARRAY_END);
    }
    if (byte != ',') {
        return reader_fail(reader);
    }
    reader->at++;
    i32 next = reader_peek(reader);
    return in_object ? reader_name(reader, next) : reader_value(reader, next);
}

enum json_token json_next(struct json_reader *reader)
{
    if (reader->state == READER_INVALID) {
        return JSON_TOKEN_INVALID;
    }
    i32 byte = reader_peek(reader);
    switch ((enum reader_state)reader->state) {
    case READER_FIRST_VALUE:
        if (byte == ']') {
            return reader_close(reader, JSON_TOKEN_ARRAY_END);
        }
        return reader_value(reader, byte);
    case READER_VALUE:
        return reader_value(reader, byte);
    case READER_FIRST_NAME:
        if (byte == '}') {
            return reader_close(reader, JSON_TOKEN_OBJECT_END);
        }
        return reader_name(reader, byte);
    case READER_NAME:
        return reader_name(reader, byte);
    case READER_COMMA:
        return reader_comma(reader, byte);
    case READER_INVALID:
        break;
    }
    return reader_fail(reader);
}

str json_rest(struct json_reader *reader)
{
    (void)reader_peek(reader);
    return str_slice(reader->input, reader->at, reader->input.size);
}

void json_pass(struct json_reader *reader, const char *end)
{
    assert(reader->state == READER_FIRST_NAME || reader->state == READER_COMMA);
    reader_take(reader, (const u8 *)end);
    reader->state = READER_COMMA;
}

str json_skip(struct json_reader *reader, enum json_token token)
{
    if (token != JSON_TOKEN_OBJECT && token != JSON_TOKEN_ARRAY) {
        return reader->text;
    }
    assert(reader->level > 0);
    size_t start = reader->at - 1;
    i32 outside = reader->level - 1;
    while (reader->level > outside) {
        if (json_next(reader) == JSON_TOKEN_INVALID) {
            return (str){NULL, 0};
        }
    }
    return (str){reader->input.data + start, reader->at - start};
}
