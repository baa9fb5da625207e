#include "base/assert.h"
#include "format/json_element.h"
#include "format/json_token.h"

/*   START ─► BOM ─► OPEN ─[─► FIRST_VALUE ─► … COMMA ⇄ VALUE … ─]─► AFTER
 *
 * Inside: FIRST_VALUE and VALUE want a value, FIRST_NAME and NAME a member's name, COLON and COMMA
 * what follows one; IN_* is inside a token whose own state is array->token. Level 0 is the body's
 * array. The last three are final. */
enum array_state {
    ARRAY_START,
    ARRAY_BOM_2,
    ARRAY_BOM_3,
    ARRAY_OPEN,
    ARRAY_FIRST_VALUE,
    ARRAY_VALUE,
    ARRAY_FIRST_NAME,
    ARRAY_NAME,
    ARRAY_COLON,
    ARRAY_COMMA,
    ARRAY_IN_NAME,
    ARRAY_IN_STRING,
    ARRAY_IN_NUMBER,
    ARRAY_IN_TRUE,
    ARRAY_IN_FALSE,
    ARRAY_IN_NULL,
    ARRAY_AFTER,
    ARRAY_NOT_ARRAY,
    ARRAY_INVALID,
    ARRAY_TOO_MANY,
};

/* The piece at hand. */
struct cursor {
    const u8 *at;
    const u8 *end;
    const u8 *begin;
    u64 offset; /* of `begin` in the body */
};

static u64 cursor_offset(const struct cursor *cursor)
{
    return cursor->offset + (u64)(cursor->at - cursor->begin);
}

void json_array_init(struct json_array *array, i64 elements_max)
{
    assert(elements_max >= 0);
    *array = (struct json_array){.elements_max = elements_max, .state = ARRAY_START};
    if (!json_array_choose_way(array, JSON_ARRAY_WIDE)) {
        array->way = JSON_ARRAY_PORTABLE;
    }
}

bool json_array_choose_way(struct json_array *array, enum json_array_way way)
{
    bool wide = false;
#if defined(__x86_64__)
    wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
#endif
    if (way == JSON_ARRAY_WIDE && !wide) {
        return false;
    }
    array->way = (i32)way;
    return true;
}

/* The whole of an object or array that begins at the cursor, if it is all there. */
static const u8 *array_element_in_one(struct json_array *array, const struct cursor *cursor)
{
    if (array->way == JSON_ARRAY_BY_STEPS) {
        return NULL;
    }
#if defined(__x86_64__)
    if (array->way == JSON_ARRAY_WIDE) {
        return json_element_wide(cursor->at, cursor->end, &array->depth);
    }
#endif
    return json_element_portable(cursor->at, cursor->end, &array->depth);
}

u64 json_array_offset(const struct json_array *array)
{
    return array->offset;
}

bool json_array_is_too_deep(const struct json_array *array)
{
    return array->too_deep;
}

static enum json_array_event array_fail(struct json_array *array, enum array_state state)
{
    array->state = (i32)state;
    return state == ARRAY_INVALID     ? JSON_ARRAY_INVALID
           : state == ARRAY_NOT_ARRAY ? JSON_ARRAY_NOT_ARRAY
                                      : JSON_ARRAY_TOO_MANY;
}

/* A mark is whole or it is no mark: then the body's first byte was wrong. */
static enum json_array_event array_step_mark(struct json_array *array, struct cursor *cursor)
{
    static const u8 mark[3] = {0xEF, 0xBB, 0xBF};
    i32 place = array->state - ARRAY_START;
    if (*cursor->at == mark[place]) {
        cursor->at++;
        array->state++;
        return JSON_ARRAY_MORE;
    }
    if (place == 0) {
        array->state = ARRAY_OPEN;
        return JSON_ARRAY_MORE;
    }
    cursor->at = cursor->begin;
    cursor->offset = 0;
    return array_fail(array, ARRAY_INVALID);
}

static enum json_array_event array_step_open(struct json_array *array, struct cursor *cursor)
{
    cursor->at = json_space_scan(cursor->at, cursor->end);
    if (cursor->at == cursor->end) {
        return JSON_ARRAY_MORE;
    }
    if (*cursor->at == '[') {
        cursor->at++;
        array->state = ARRAY_FIRST_VALUE;
        return JSON_ARRAY_MORE;
    }
    enum json_kind kind;
    return array_fail(array, json_kind_of(*cursor->at, &kind) ? ARRAY_NOT_ARRAY : ARRAY_INVALID);
}

/* A value has ended just before the cursor. */
static enum json_array_event array_value_end(struct json_array *array)
{
    array->state = ARRAY_COMMA;
    if (array->level > 0) {
        return JSON_ARRAY_MORE;
    }
    array->elements++;
    return JSON_ARRAY_ELEMENT;
}

static enum json_array_event array_close(struct json_array *array, struct cursor *cursor)
{
    cursor->at++;
    if (array->level == 0) {
        array->state = ARRAY_AFTER;
        return JSON_ARRAY_MORE;
    }
    array->level--;
    return array_value_end(array);
}

static void array_begin_token(struct json_array *array, struct cursor *cursor, enum json_kind kind)
{
    array->token = 0;
    switch (kind) {
    case JSON_KIND_OBJECT:
    case JSON_KIND_ARRAY:
        array->level++;
        array->depth = array->level > array->depth ? array->level : array->depth;
        json_level_open(array->stack, array->level, kind);
        array->state = kind == JSON_KIND_OBJECT ? ARRAY_FIRST_NAME : ARRAY_FIRST_VALUE;
        cursor->at++;
        return;
    case JSON_KIND_STRING:
        array->token = STRING_BODY;
        array->state = ARRAY_IN_STRING;
        cursor->at++;
        return;
    case JSON_KIND_NUMBER:
        array->token = json_number_begin(*cursor->at);
        array->state = ARRAY_IN_NUMBER;
        cursor->at++;
        return;
    case JSON_KIND_TRUE:
        array->state = ARRAY_IN_TRUE;
        return;
    case JSON_KIND_FALSE:
        array->state = ARRAY_IN_FALSE;
        return;
    case JSON_KIND_NULL:
        array->state = ARRAY_IN_NULL;
        return;
    }
}

static enum json_array_event array_step_value(struct json_array *array, struct cursor *cursor)
{
    if (*cursor->at == ']' && array->state == ARRAY_FIRST_VALUE) {
        return array_close(array, cursor);
    }
    enum json_kind kind;
    if (!json_kind_of(*cursor->at, &kind)) {
        return array_fail(array, ARRAY_INVALID);
    }
    if (array->level == 0) {
        if (array->elements == array->elements_max) {
            return array_fail(array, ARRAY_TOO_MANY);
        }
        array->element_start = cursor_offset(cursor);
        array->kind = (i32)kind;
        array->depth = 0;
    }
    bool nested = kind == JSON_KIND_OBJECT || kind == JSON_KIND_ARRAY;
    const u8 *end = nested && array->level == 0 ? array_element_in_one(array, cursor) : NULL;
    if (end != NULL) {
        cursor->at = end;
        return array_value_end(array);
    }
    if (nested && array->level == JSON_DEPTH_MAX) {
        array->too_deep = true;
        return array_fail(array, ARRAY_INVALID);
    }
    array_begin_token(array, cursor, kind);
    return JSON_ARRAY_MORE;
}

static enum json_array_event array_step_name(struct json_array *array, struct cursor *cursor)
{
    if (*cursor->at == '"') {
        cursor->at++;
        array->token = STRING_BODY;
        array->state = ARRAY_IN_NAME;
        return JSON_ARRAY_MORE;
    }
    if (*cursor->at == '}' && array->state == ARRAY_FIRST_NAME) {
        return array_close(array, cursor);
    }
    return array_fail(array, ARRAY_INVALID);
}

static enum json_array_event array_step_comma(struct json_array *array, struct cursor *cursor)
{
    bool in_object = array->level > 0 && json_level_is_object(array->stack, array->level);
    if (*cursor->at == ',') {
        cursor->at++;
        array->state = in_object ? ARRAY_NAME : ARRAY_VALUE;
        return JSON_ARRAY_MORE;
    }
    if (*cursor->at == (in_object ? '}' : ']')) {
        return array_close(array, cursor);
    }
    return array_fail(array, ARRAY_INVALID);
}

/* Where white space may stand: skips it, then acts on the byte after. */
static enum json_array_event array_step_between(struct json_array *array, struct cursor *cursor)
{
    cursor->at = json_space_scan(cursor->at, cursor->end);
    if (cursor->at == cursor->end) {
        return JSON_ARRAY_MORE;
    }
    switch (array->state) {
    case ARRAY_FIRST_VALUE:
    case ARRAY_VALUE:
        return array_step_value(array, cursor);
    case ARRAY_FIRST_NAME:
    case ARRAY_NAME:
        return array_step_name(array, cursor);
    case ARRAY_COMMA:
        return array_step_comma(array, cursor);
    case ARRAY_COLON:
        if (*cursor->at == ':') {
            cursor->at++;
            array->state = ARRAY_VALUE;
            return JSON_ARRAY_MORE;
        }
        return array_fail(array, ARRAY_INVALID);
    default:
        return array_fail(array, ARRAY_INVALID);
    }
}

static enum json_array_event array_step_string(struct json_array *array, struct cursor *cursor)
{
    cursor->at = json_string_scan(cursor->at, cursor->end, &array->token);
    if (array->token == STRING_BAD) {
        return array_fail(array, ARRAY_INVALID);
    }
    if (array->token != STRING_END) {
        return JSON_ARRAY_MORE;
    }
    if (array->state == ARRAY_IN_NAME) {
        array->state = ARRAY_COLON;
        return JSON_ARRAY_MORE;
    }
    return array_value_end(array);
}

static enum json_array_event array_step_number(struct json_array *array, struct cursor *cursor)
{
    cursor->at = json_number_scan(cursor->at, cursor->end, &array->token);
    if (array->token == NUMBER_BAD) {
        return array_fail(array, ARRAY_INVALID);
    }
    return array->token == NUMBER_END ? array_value_end(array) : JSON_ARRAY_MORE;
}

static enum json_array_event array_step_word(struct json_array *array, struct cursor *cursor,
                                             enum json_kind kind)
{
    str word = json_word_of(kind);
    cursor->at = json_word_scan(cursor->at, cursor->end, word, &array->token);
    if ((size_t)array->token == word.size) {
        return array_value_end(array);
    }
    return cursor->at == cursor->end ? JSON_ARRAY_MORE : array_fail(array, ARRAY_INVALID);
}

static enum json_array_event array_step(struct json_array *array, struct cursor *cursor)
{
    switch ((enum array_state)array->state) {
    case ARRAY_START:
    case ARRAY_BOM_2:
    case ARRAY_BOM_3:
        return array_step_mark(array, cursor);
    case ARRAY_OPEN:
        return array_step_open(array, cursor);
    case ARRAY_IN_NAME:
    case ARRAY_IN_STRING:
        return array_step_string(array, cursor);
    case ARRAY_IN_NUMBER:
        return array_step_number(array, cursor);
    case ARRAY_IN_TRUE:
        return array_step_word(array, cursor, JSON_KIND_TRUE);
    case ARRAY_IN_FALSE:
        return array_step_word(array, cursor, JSON_KIND_FALSE);
    case ARRAY_IN_NULL:
        return array_step_word(array, cursor, JSON_KIND_NULL);
    case ARRAY_FIRST_VALUE:
    case ARRAY_VALUE:
    case ARRAY_FIRST_NAME:
    case ARRAY_NAME:
    case ARRAY_COLON:
    case ARRAY_COMMA:
    case ARRAY_AFTER:
        return array_step_between(array, cursor);
    case ARRAY_NOT_ARRAY:
    case ARRAY_INVALID:
    case ARRAY_TOO_MANY:
        return array_fail(array, (enum array_state)array->state);
    }
    return array_fail(array, ARRAY_INVALID);
}

enum json_array_event json_array_feed(struct json_array *array, str piece, size_t *at,
                                      struct json_array_element *out_element)
{
    assert(*at <= piece.size);
    if (piece.size == 0) {
        return JSON_ARRAY_MORE;
    }
    const u8 *data = (const u8 *)piece.data;
    struct cursor cursor = {
        .at = data + *at, .end = data + piece.size, .begin = data + *at, .offset = array->offset};
    enum json_array_event event = JSON_ARRAY_MORE;
    while (event == JSON_ARRAY_MORE && cursor.at < cursor.end) {
        event = array_step(array, &cursor);
    }
    array->offset = cursor_offset(&cursor);
    *at = (size_t)(cursor.at - data);
    if (event == JSON_ARRAY_ELEMENT) {
        *out_element = (struct json_array_element){.start = array->element_start,
                                                   .end = array->offset,
                                                   .kind = (enum json_kind)array->kind,
                                                   .depth = array->depth};
    }
    return event;
}

enum json_array_event json_array_end(struct json_array *array)
{
    switch ((enum array_state)array->state) {
    case ARRAY_AFTER:
        return JSON_ARRAY_MORE;
    case ARRAY_NOT_ARRAY:
    case ARRAY_TOO_MANY:
        return array_fail(array, (enum array_state)array->state);
    case ARRAY_BOM_2:
    case ARRAY_BOM_3:
        array->offset = 0;
        return array_fail(array, ARRAY_INVALID);
    case ARRAY_START:
    case ARRAY_OPEN:
    case ARRAY_FIRST_VALUE:
    case ARRAY_VALUE:
    case ARRAY_FIRST_NAME:
    case ARRAY_NAME:
    case ARRAY_COLON:
    case ARRAY_COMMA:
    case ARRAY_IN_NAME:
    case ARRAY_IN_STRING:
    case ARRAY_IN_NUMBER:
    case ARRAY_IN_TRUE:
    case ARRAY_IN_FALSE:
    case ARRAY_IN_NULL:
    case ARRAY_INVALID:
        return array_fail(array, ARRAY_INVALID);
    }
    return array_fail(array, ARRAY_INVALID);
}
