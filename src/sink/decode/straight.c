/* Compiled once as it is and once with AVX2 and STRAIGHT_WIDE. */
#include "sink/decode/straight.h"

#include "base/assert.h"
#include "format/json.h"
#include "sink/decode/read.h"
#include "sink/decode/value.h"

/* The walk_ functions go over a value at `at` and append it. They return the byte behind it, or
 * NULL: not so. They read freely, because the line feed behind the line is a byte that none of them
 * passes.
 *
 * Functions walk a schema's tree by calling themselves: its depth is bounded where a schema is
 * read. */

static inline const u8 *skip_space(const u8 *at)
{
    if (*at > ' ') {
        return at;
    }
    while (*at == ' ' || *at == '\t' || *at == '\r') {
        at++;
    }
    return at;
}

static void read_from(struct json_reader *reader, const struct straight *straight, const u8 *at)
{
    const u8 *end = memchr(at, '\n', (size_t)(straight->limit - at) + 1);
    assert(end != NULL);
    json_reader_init(reader, (str){(const char *)at, (size_t)(end - at)});
}

/* Any form of a scalar, as the tree reads it. */
static COLD const u8 *walk_scalar(struct straight *straight, const struct decode_step *step,
                                  const u8 *at)
{
    struct json_reader reader;
    read_from(&reader, straight, at);
    enum json_token token = json_next(&reader);
    if (token != JSON_TOKEN_STRING && token != JSON_TOKEN_NUMBER) {
        return NULL;
    }
    enum json_kind kind = token == JSON_TOKEN_STRING ? JSON_KIND_STRING : JSON_KIND_NUMBER;
    struct decode_scalar value = {0};
    enum reject_reason reason;
    buf_truncate(&straight->scratch, 0);
    if (!buf_reserve(&straight->scratch, 2 * reader.text.size + 64) ||
        decode_scalar_read(&step->plan->field->type, kind, reader.text, &straight->scratch, &value,
                           &reason) != DECODE_FITS ||
        !decode_value_append(step->column, &value)) {
        return NULL;
    }
    return at + reader.at;
}

static const u8 *walk_null(const struct decode_step *step, const u8 *at)
{
    bool null = step->nullable && memcmp(at, "null", 4) == 0;
    return null && column_append_null(step->column) ? at + 4 : NULL;
}

/* ---- nested ---- */

static const u8 *walk_nested(struct straight *straight, struct decode_step *step, const u8 *at);

/* All but the usual form of a scalar. */
static COLD const u8 *walk_unusual(struct straight *straight, struct decode_step *step,
                                   const u8 *at)
{
    if (step->fields != NULL) {
        return walk_nested(straight, step, at);
    }
    bool any = *at != 'n' && step->kind != TYPE_STRING && step->kind != TYPE_VARIANT;
    return any ? walk_scalar(straight, step, at) : walk_null(step, at);
}

static HOT const u8 *walk_field(struct straight *straight, struct decode_step *step, const u8 *at)
{
    const u8 *usual = read_usual(step, at);
    return usual != NULL ? usual : walk_unusual(straight, step, at);
}

/* The same out of line, for what is inside of lists and maps. */
static const u8 *walk_value(struct straight *straight, struct decode_step *step, const u8 *at)
{
    return walk_field(straight, step, at);
}

/* Behind a value: past a comma and the space around it, or to the end of what it stands in. NULL:
 * neither. */
static inline const u8 *skip_comma(const u8 *at, u8 end, bool *out_more)
{
    at = skip_space(at);
    *out_more = *at == ',';
    if (*out_more) {
        return skip_space(at + 1);
    }
    return *at == end ? at + 1 : NULL;
}

static inline const u8 *skip_colon(const u8 *at)
{
    at = skip_space(at);
    return *at == ':' ? skip_space(at + 1) : NULL;
}

/* A name with escapes, or a long one: its field becomes straight->named. */
static COLD const u8 *walk_odd_name(struct straight *straight, struct decode_step *step,
                                    const u8 *at)
{
    struct json_reader reader;
    bool lone = false;
    read_from(&reader, straight, at);
    if (json_next(&reader) != JSON_TOKEN_STRING) {
        return NULL;
    }
    buf_truncate(&straight->scratch, 0);
    str name = json_unescape(&straight->scratch, reader.text, &lone);
    u32 field = name.data == NULL || lone ? DECODE_NONE
                                          : decode_plan_find(step->plan, name, DECODE_NONE);
    if (field == DECODE_NONE || step->fields[field].own) {
        return NULL;
    }
    straight->named = &step->fields[field];
    return skip_colon(at + reader.at);
}

/* The same of any name that was not foretold. */
static COLD const u8 *walk_other_name(struct straight *straight, struct decode_step *step,
                                      const u8 *at)
{
    u32 size = 0;
    u32 more;
    do {
        more = scan_look(at + 1 + size).size;
        size += more;
    } while (more == SCAN_BYTES && size < SCAN_KEY_BYTES - SCAN_BYTES);
    if (at[0] != '"' || at[1 + size] != '"' || size > SCAN_KEY_BYTES - 3) {
        return walk_odd_name(straight, step, at);
    }
    const struct decode_plan *plan = step->plan;
    u64 first = num_load_u64(at + 1);
    u64 last = size < 8 ? 0 : num_load_u64(at + 1 + size - 8);
    first = size < 8 ? first & ((UINT64_C(1) << 8 * size) - 1) : first;
    u32 mask = UINT32_MAX >> (plan->by_name_shift - 32);
    u32 slot = decode_plan_slot(plan, first, last, size);
    for (; plan->by_name[slot] != 0; slot = (slot + 1) & mask) {
        struct decode_step *field = &step->fields[plan->by_name[slot] - 1];
        if (field->key.size == size + 3 && memcmp(at, field->key.bytes, size + 2) == 0) {
            straight->named = field;
            return skip_colon(at + size + 2);
        }
    }
    return NULL;
}

/* A name and its colon; `foretold` are the two that were seen here last, and become this one and
 * the last. */
static inline const u8 *walk_name(struct straight *straight, struct decode_step *step, const u8 *at,
                                  struct decode_step **foretold, struct decode_step **out_field)
{
    struct decode_step *last = foretold[0];
    *out_field = last;
    if (scan_is_key(at, &last->key)) {
        return skip_space(at + last->key.size);
    }
    struct decode_step *other = foretold[1];
    if (scan_is_key(at, &other->key)) {
        *out_field = other;
        at = skip_space(at + other->key.size);
    } else {
        at = walk_other_name(straight, step, at);
        if (at == NULL) {
            return NULL;
        }
        *out_field = straight->named;
    }
    foretold[0] = *out_field;
    foretold[1] = last;
    return at;
}

/* Fields that the object does not have. */
static bool fill_absent(const struct decode_step *step, i64 row)
{
    for (u32 i = 0; i < step->field_count; i++) {
        const struct decode_step *field = &step->fields[i];
        if (field->column->count != row || field->own) {
            continue;
        }
        bool filled = false;
        if (field->plan->has_default) {
            /* A default helps no key, and one of a struct is its fields'. */
            filled = field->kind != TYPE_STRUCT && field->plan->role == DECODE_ORDINARY &&
                     decode_value_copy(field->column, field->plan->default_value, 0);
        } else {
            filled = field->nullable && column_append_null(field->column);
        }
        if (!filled) {
            return false;
        }
    }
    return true;
}

static COLD const u8 *walk_stop(u32 *taken, u32 sent)
{
    *taken = sent;
    return NULL;
}

/* From behind the brace; the fields' columns have `row` values. NULL: *taken members were appended.
 */
static const u8 *walk_object(struct straight *straight, struct decode_step *step, const u8 *at,
                             i64 row, u32 *taken)
{
    u32 sent = 0;
    struct decode_step **foretold = step->first;
    at = skip_space(at);
    bool more = *at != '}';
    at += more ? 0 : 1;
    while (more) {
        struct decode_step *field;
        at = walk_name(straight, step, at, foretold, &field);
        /* No name comes twice. */
        if (at == NULL || field->column->count != row) {
            return walk_stop(taken, sent);
        }
        at = walk_field(straight, field, at);
        if (at == NULL) {
            return walk_stop(taken, sent);
        }
        field->end = at;
        foretold = field->next;
        sent++;
        at = skip_comma(at, '}', &more);
        if (at == NULL) {
            return walk_stop(taken, sent);
        }
    }
    return sent == step->sent_count || fill_absent(step, row) ? at : walk_stop(taken, sent);
}

static const u8 *walk_struct(struct straight *straight, struct decode_step *step, const u8 *at)
{
    u32 taken;
    at = walk_object(straight, step, at + 1, step->column->count, &taken);
    return at != NULL && column_append_nested(step->column) ? at : NULL;
}

static const u8 *walk_list(struct straight *straight, struct decode_step *step, const u8 *at)
{
    at = skip_space(at + 1);
    bool more = *at != ']';
    at += more ? 0 : 1;
    while (more) {
        at = walk_value(straight, &step->fields[0], at);
        at = at != NULL ? skip_comma(at, ']', &more) : NULL;
        if (at == NULL) {
            return NULL;
        }
    }
    return column_append_nested(step->column) ? at : NULL;
}

/* The last key is none of those from value `first` on. */
static bool key_is_new(const struct column *keys, i64 first)
{
    i64 last = keys->count - 1;
    for (i64 i = first; i < last; i++) {
        if (decode_value_equal(keys, i, last)) {
            return false;
        }
    }
    return true;
}

/* Of string keys, and not too many of them. */
static const u8 *walk_map(struct straight *straight, struct decode_step *step, const u8 *at)
{
    enum { KEYS_MAX = 16 };
    struct column *keys = step->fields[0].column;
    i64 first = keys->count;
    at = skip_space(at + 1);
    bool more = *at != '}';
    at += more ? 0 : 1;
    while (more) {
        at = *at == '"' ? read_string(keys, at + 1) : NULL;
        if (at == NULL || keys->count - first > KEYS_MAX || !key_is_new(keys, first)) {
            return NULL;
        }
        at = skip_colon(at);
        at = at != NULL ? walk_value(straight, &step->fields[1], at) : NULL;
        at = at != NULL ? skip_comma(at, '}', &more) : NULL;
        if (at == NULL) {
            return NULL;
        }
    }
    return column_append_nested(step->column) ? at : NULL;
}

static const u8 *walk_nested(struct straight *straight, struct decode_step *step, const u8 *at)
{
    if (step->kind == TYPE_STRUCT && *at == '{') {
        return walk_struct(straight, step, at);
    }
    if (step->kind == TYPE_LIST && *at == '[') {
        return walk_list(straight, step, at);
    }
    if (step->kind == TYPE_MAP && *at == '{' && step->fields[0].kind == TYPE_STRING) {
        return walk_map(straight, step, at);
    }
    return walk_null(step, at);
}

/* The end of the member's value; NULL: it is not taken. */
static const u8 *walk_member(struct straight *straight, const u8 *at, i64 row,
                             struct straight_member *out_member)
{
    struct decode_step *root = &straight->root;
    struct decode_step *field;
    const u8 *value = walk_name(straight, root, at, straight->foretold, &field);
    if (value == NULL) {
        return NULL;
    }
    straight->foretold = field->next;
    u32 index = (u32)(field - root->fields);
    if (field->column->count != row || root->plan->seen[index] == straight->object) {
        return NULL;
    }
    const u8 *end = walk_value(straight, field, value);
    const u8 *behind = end != NULL ? skip_space(end) : NULL;
    if (behind == NULL || (*behind != ',' && *behind != '}')) {
        column_truncate(field->column, row);
        return NULL;
    }
    *out_member = (struct straight_member){index, end};
    return end;
}

#if defined(STRAIGHT_WIDE)
size_t straight_members_wide(struct straight *straight, const u8 *at, i64 row,
                             struct straight_member *out_members, size_t max)
#else
size_t straight_members_portable(struct straight *straight, const u8 *at, i64 row,
                                 struct straight_member *out_members, size_t max)
#endif
{
    size_t count = 0;
    bool more = true;
    at = skip_space(at);
    if (straight->foretold == NULL) {
        straight->foretold = straight->root.first;
    }
    while (more && count < max) {
        at = walk_member(straight, at, row, &out_members[count]);
        if (at == NULL) {
            return count;
        }
        at = skip_comma(at, '}', &more);
        count++;
    }
    return count;
}

#if defined(STRAIGHT_WIDE)
const u8 *straight_row_wide(struct straight *straight, const u8 *at, i64 row)
#else
const u8 *straight_row_portable(struct straight *straight, const u8 *at, i64 row)
#endif
{
    struct decode_step *root = &straight->root;
    straight->taken = 0;
    at = skip_space(at);
    at = *at == '{' ? walk_object(straight, root, at + 1, row, &straight->taken) : NULL;
    at = at != NULL ? skip_space(at) : NULL;
    return at != NULL && *at == '\n' ? at : NULL;
}
